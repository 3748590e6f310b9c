"""Groups released once, and what is fitted to them: counts, classifiers, frontiers, and their files."""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .. import _checks
from .._codec import Kind
from .._json import Document, Node
from .._reading import read_text
from .._types import ColumnsLike, Floats, TableLike
from ..core.events import NoOp
from ..core.noise import NoiseSource
from ..core.promise import Promise
from ..curator import Curator
from ..data.elsewhere import Elsewhere
from ..errors import ChecksumError, ConstraintNotMet, InputError, PrivacyError, SignatureError
from ..facts import Cells, Reports, RowBlock, RowLayout, RowSource, Schema
from ..fairness import ConstraintSystem, deviations, resolve
from ..fairness.notions import parse
from ..methods import Outcome
from ..methods import released as group_release
from ..methods import released as soft_search
from ..methods.counts import CountNoise, noise_of
from ..methods.descent import Reason
from ..methods.oracles import principal
from ..methods.public_rows import PublicRows
from ..methods.released import (
    MOST_NODES,
    NO_CHILD,
    Candidates,
    Clusters,
    GroupCounts,
    Soft,
    SoftValue,
    Tree,
    soft_values,
)
from ..models import LinearModel, MixtureModel
from ..models.folders import LARGEST_TEXT, read_folder, write_folder
from ..models.linear import is_sparse
from ..models.model import RandomState, draw_codes, known_classes
from ..show.numbers import at_most
from ..statement import document, signing
from ..statement.document import PrivacyStatement, PublicFact
from ..statement.form import Finding, canonical
from ..statement.signing import Signature, private_key
from ..tables.columns import same_length
from . import fitting
from .faces import CodedReader, as_array, labels_in
from .fitting import length_of
from .reading import cautions, inputs, units
from .reading.carried import groups_of
from .reading.coded_files import CODINGS
from .reading.coding import Coding, SchemaCoding, TableCoding
from .reading.soft_groups import SoftGroups
from .reading.training import Training
from .reading.units import Whose
from .settings import PrimalDual, knobs
from .words import COUNTED, GIVEN, described, entries, told, worded
from .wrapped import codes_of, names_of, without

# ------------------------------ public_features
# Public rows as arrays: features by a coding, labels, decisions; and rows with soft groups for
# other learners.

Ints = npt.NDArray[np.intp]
MOST = 1 << 28
"""Numbers of a dense table of features."""


def features_of(coding: Coding, X: TableLike) -> Floats:
    """Coded features, (rows, width): numbers, then indicators of categories."""
    return np.concatenate([_dense(block, coding.layout) for block in coding.blocks(X)])


def _dense(block: RowBlock, layout: RowLayout) -> Floats:
    rows = block.rows
    if rows * layout.width > MOST:
        got = f"{rows:,} rows of {layout.width:,} numbers"
        raise InputError.expected(
            "a table that fits", of="X", got=got, remedy="Pass fewer columns or rows."
        )
    out = np.zeros((rows, layout.width))
    numbers: Any = block.numbers
    out[:, : layout.numbers] = (
        sparse.csr_array(numbers).toarray() if is_sparse(numbers) else numbers.T
    )
    first = layout.numbers
    for column, size in zip(block.codes, layout.code_sizes, strict=True):
        out[np.arange(rows), first + column.astype(np.intp)] = 1.0
        first += size
    return out


def distribution_given(predictions: ColumnsLike, classes: Sequence[Hashable], rows: int) -> Floats:
    """Decisions as probabilities (rows, classes): of classes, or as given."""
    given = np.asarray(predictions)
    same_length({"y": rows, "predictions": len(given) if given.ndim else 0})
    if given.ndim == 1:
        return np.asarray(np.eye(len(classes))[codes_of(given, classes, "predictions")])
    law = given.astype(np.float64) if given.dtype.kind in "fiub" else np.full((1, 1), np.nan)
    if (
        law.shape != (rows, len(classes))
        or not (law >= 0).all()
        or np.abs(law.sum(axis=1) - 1.0).max(initial=0.0) > 1e-6
    ):
        remedy = (
            f"Pass a class a row, or probabilities of shape ({rows}, {len(classes)}) that sum to 1."
        )
        got = f"an array of shape {given.shape}"
        raise InputError.expected(
            "decisions", of="predictions", got=got, remedy=remedy, quote=False
        )
    return law


def dealt(codes: Ints, shares: Floats, rng: np.random.Generator) -> Ints:
    """A group for each row: inside a cluster each group's share of rows, up to one that is rounded
    by chance; who they are is by chance alone."""
    order = np.lexsort((rng.random(len(codes)), codes))
    sizes = np.bincount(codes, minlength=len(shares))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.arange(len(codes)) - starts[codes[order]] + rng.random(len(shares))[codes[order]]
    # systematic sampling
    place = np.minimum(place / np.maximum(sizes[codes[order]], 1), 1.0 - 1e-12)
    limits = np.cumsum(shares, axis=1)[codes[order]]
    out = np.empty(len(codes), np.intp)
    out[order] = np.minimum(
        (place[:, np.newaxis] >= limits - 1e-12).sum(axis=1), shares.shape[1] - 1
    )
    return out


# ------------------------------ released_counts
# Counts of groups in public clusters, as they were released, and what follows from them for public
# rows.

LEAST = 1e-12  # a membership below has no row


WORDS = entries("""
X : table or array
    Features of the rows of the release.
y : array
    Their labels.
constraints : notion, str or list of these, default=None
    Constraints on rates of decisions: a notion such as ``DemographicParity(max_gap=0.05)``, or its
    name and bound, ``"demographic_parity:0.05"``. A list combines them. Bounds are shares of 1, so
    0.05 is 5 percentage points. None: no constraint.
estimator : classifier, default=None
    Classifier of scikit-learn with `sample_weight`, whose clones are fitted. None: linear models.
rounds : int, default=30
    Number of clones of `estimator` that are fitted.
""")
"""Arguments of several methods."""


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedGroups:
    """Noisy counts of groups in public clusters, which may be published.

    It holds nothing else of the groups. Every method is arithmetic on the release and on public
    rows, so calls cost no further privacy. Make one with `release_groups`.

    Attributes
    ----------
    privacy : PrivacyStatement
        Statement of the release.
    cells : Cells
        Groups as cells of the sensitive columns.
    classes : tuple
        Classes of the label.
    coding : Coding
        How tables are coded.
    clusters : Clusters
        Public function that sorts rows into clusters.
    counts : GroupCounts
        Released counts.

    See Also
    --------
    release_groups : Makes the release.
    ReleasedClassifier : Is fitted from it.
    """

    privacy: PrivacyStatement
    cells: Cells
    classes: tuple[Hashable, ...]
    coding: Coding
    clusters: Clusters
    counts: GroupCounts

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The groups, in the order of the memberships' columns."""
        return self.cells.keys

    def memberships(self, X: TableLike, y: ColumnsLike = None) -> Floats:
        """Released share of each group in each row's cluster.

        Parameters
        ----------
        X : table or array
            Features.
        y : array, default=None
            Labels, or None where rows have none.

        Returns
        -------
        ndarray of shape (n_rows, n_groups)
            P(group | cluster of the row).
        """
        return np.asarray(self.counts.memberships[self.codes(X, y)])

    def codes(self, X: TableLike, y: ColumnsLike = None) -> Ints:
        """Cluster of each row, a function of its features and label.

        Parameters
        ----------
        X : table or array
            Features.
        y : array, default=None
            Labels, or None where rows have none.

        Returns
        -------
        ndarray of int
            Clusters.
        """
        labels = codes_of(labels_in(X, y, as_array(self.classes)), self.classes, "y")
        return self.clusters.codes(features_of(self.coding, X), labels)

    @told(WORDS)
    def rates(
        self,
        X: TableLike,
        y: ColumnsLike,
        predictions: ColumnsLike,
        constraints: object,
        *,
        confidence: float = 0.95,
    ) -> tuple[SoftValue, ...]:
        """Value of each comparison of the constraints for these predictions, with error bars.

        Parameters
        ----------
        predictions : array
            Classes, or probabilities of decisions (rows, classes).
        constraints : notion, str or list of these
            Constraints that are compared.
        confidence : float, default=0.95
            Confidence of the error bars.

        Returns
        -------
        tuple of SoftValue
            One for each comparison.
        """
        probability = 1.0 - _checks.fraction(confidence=confidence, low_open=True, high_open=True)
        system = resolve(fitting.notions_of(constraints), self.cells, self.classes)
        at = self.own_codes(X, y)
        law = distribution_given(predictions, self.classes, len(at))
        return tuple(soft_values(self.counts, at, self.clusters.labels, law, system, probability))

    @told(WORDS)
    def own_codes(self, X: TableLike, y: ColumnsLike) -> Ints:
        """Clusters of the rows of the release.

        Returns
        -------
        ndarray of int
            Clusters. Other rows are an error, since the release says nothing exact about them.
        """
        at = self.codes(X, y)
        if not np.array_equal(np.bincount(at, minlength=self.clusters.count), self.counts.sizes):
            remedy = (
                "Pass the X and y of release_groups; measure other rows where their groups are "
                "known."
            )
            raise InputError.expected(
                "the rows of the release", of="X, y", got="others", remedy=remedy
            )
        return at

    @told(WORDS)
    def expanded(
        self,
        X: TableLike,
        y: ColumnsLike,
        *,
        copies: int | None = None,
        random_state: object = None,
    ) -> tuple[Any, npt.NDArray[Any], npt.NDArray[Any], Floats]:
        """Rows for learners that take one group a row.

        Parameters
        ----------
        copies : int, default=None
            How often each row is repeated, with weight 1, its groups dealt at random in the
            released shares. For learners that take no weights. None: once for each group, weighted
            by its membership.
        random_state : int or Generator, default=None
            Seed of the dealing. None: fresh draws.

        Returns
        -------
        tuple of four arrays
            X, y, groups and weights.
        """
        from sklearn.utils import _safe_indexing

        labels = labels_in(X, y, as_array(self.classes))
        if isinstance(X, RowSource):
            remedy, got = "Pass an array or a table.", type(X).__name__
            raise InputError.expected("rows that can be repeated", of="X", got=got, remedy=remedy)
        keys, soft = as_array(self.groups), self.memberships(X, labels)
        if copies is None:
            rows, cells = np.nonzero(soft > LEAST)
            return _safe_indexing(X, rows), labels[rows], keys[cells], soft[rows, cells]
        rng = np.random.default_rng(fitting.seed_of(random_state))
        codes, shares = self.codes(X, labels), self.counts.memberships
        cells = np.concatenate([dealt(codes, shares, rng) for _ in range(copies)])
        rows = np.tile(np.arange(len(codes)), copies)
        return _safe_indexing(X, rows), labels[rows], keys[cells], np.ones(len(rows))

    @told(WORDS)
    def fit(
        self,
        X: TableLike,
        y: ColumnsLike,
        constraints: object = None,
        *,
        estimator: object = None,
        rounds: int = 30,
    ) -> ReleasedClassifier:
        """Fit a classifier that keeps constraints at the released memberships.

        Returns
        -------
        ReleasedClassifier
            The fitted classifier; it costs no further privacy.
        """
        return ReleasedClassifier(constraints, estimator=estimator, rounds=rounds).fit(
            X, y, sensitive_features=self
        )

    @told(WORDS)
    def frontier(
        self,
        X: TableLike,
        y: ColumnsLike,
        constraint: object = "equalized_odds",
        gaps: Iterable[float | None] = tuple(np.linspace(0.0, 0.245, 50).round(3).tolist()),
        *,
        estimator: object = None,
        rounds: int = 30,
    ) -> ReleasedFrontier:
        """Fit a classifier for each gap, all from this one release.

        Parameters
        ----------
        constraint : str or callable, default="equalized_odds"
            A notion's name, or a function from a gap to constraints.
        gaps : iterable of float or None, default=0.0 to 0.245 in steps of 0.005
            Bounds, as shares of 1; None is a model without one.

        Returns
        -------
        ReleasedFrontier
            Classifiers and their measured gaps.
        """
        listed = tuple(_checks.non_negative(gaps=gap) for gap in gaps)
        if not listed:
            raise InputError.expected(
                "at least one gap", of="gaps", got=[], remedy="Pass gaps=(0.1, 0.05), for example."
            )
        asked = [
            fitting.notions_of(
                constraint(gap) if callable(constraint) else parse(f"{constraint}:{gap}")
            )
            for gap in listed
        ]
        found = searched(self, X, y, asked[int(np.argmin(listed))], estimator, rounds)
        models = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConstraintNotMet)
            for notions in asked:
                one = ReleasedClassifier(notions, estimator=estimator, rounds=rounds)
                one.settle(found, resolve(notions, self.cells, self.classes).bounds, X, y)
                models.append(one)
        return ReleasedFrontier(listed, tuple(models), self.privacy)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write a folder with `groups.json` and `statement.json`, which `fairveil verify` checks.

        Parameters
        ----------
        path : path
            The folder.
        overwrite : bool, default=False
            Whether an existing folder is replaced.

        Returns
        -------
        Path
            The folder.
        """
        statement = self.privacy.to_json().encode()
        content = {"format": FORMAT, "version": VERSION, "groups": CODEC.write(self)}
        content["statement_sha256"] = hashlib.sha256(statement).hexdigest()
        text = json.dumps(content, allow_nan=False, sort_keys=True) + "\n"
        files = {GROUPS_FILE: text.encode(), STATEMENT_FILE: statement}
        return write_folder(path, files, replaces=GROUPS_FILE if overwrite else None)

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        key: str | os.PathLike[str] | None = None,
        passphrase: str | None = None,
        note: str | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write one file with counts and statement, to be handed over; `fairveil verify` checks it.

        Parameters
        ----------
        path : path
            The file.
        key : path, default=None
            Private key that signs counts and statement together. None: not signed.
        passphrase : str, default=None
            Passphrase of the key, where it has one.
        note : str, default=None
            Line of words that is signed, too.
        overwrite : bool, default=False
            Whether an existing file is replaced.

        Returns
        -------
        Path
            The file.
        """
        target = Path(path)
        if target.is_dir() or (target.exists() and not overwrite):
            remedy = "Name another file, or pass overwrite=True."
            raise InputError.expected(
                "a file that is not there yet", of="path", got=str(path), remedy=remedy
            )
        self._written(target, None if key is None else private_key(key, passphrase), note)
        return target

    def _written(self, path: Path, private: object, note: str | None) -> None:
        """One file with counts and statement. `private`: the key that signs both, or None."""
        statement, groups = self.privacy.to_json(), CODEC.write(self)
        signed = (
            None
            if private is None
            else signing.signed_text(statement, private, note=note, files=_signed(groups))
        )
        content = {
            "format": FILE_FORMAT,
            "version": FILE_VERSION,
            "statement": json.loads(statement),
            "groups": groups,
            "checksum": _checksum(groups),
            "signature": None if signed is None else json.loads(signed.to_json()),
        }
        document.write(path, json.dumps(content, allow_nan=False) + "\n")

    @staticmethod
    def load(
        path: str | os.PathLike[str], key: str | os.PathLike[str] | None = None
    ) -> ReleasedGroups:
        """Read what `save` or `write` wrote.

        Parameters
        ----------
        path : path
            The folder, or the file.
        key : path, default=None
            Public key of whoever signed the file, or the folder. Another signature, or none, is an
            error. None: signatures are not looked at.

        Returns
        -------
        ReleasedGroups
            The release. Unexpected content is an error that names it.
        """
        if Path(path).is_file():
            text = text_of(path)
            if key is not None:
                require_signed(text, signing.public_key(key), str(path))
            return read(text)[0]
        if key is not None:
            signing.verify_signature(path, key)
        files = read_folder(path, (GROUPS_FILE, STATEMENT_FILE))
        content = DOCUMENT.node(files[GROUPS_FILE])
        shown = content.mapping()
        if shown.get("format") != FORMAT or shown.get("version") != VERSION:
            content.refuse(f"{FORMAT!r}, version {VERSION}", shown.get("format"))
        content.only(FIELDS)
        found = hashlib.sha256(files[STATEMENT_FILE]).hexdigest()
        if found != content["statement_sha256"].text():
            remedy = "A file is damaged or from another folder: save the released groups again."
            raise ChecksumError.expected(
                "the statement of these counts", of=STATEMENT_FILE, got=found, remedy=remedy
            )
        statement = files[STATEMENT_FILE].decode("utf-8", "replace")
        return _released(content["groups"], PrivacyStatement.from_json(statement))

    def __repr__(self) -> str:
        price = f"epsilon {self.privacy.epsilon:.3g}"
        return (
            f"ReleasedGroups({len(self.groups)} groups in {self.clusters.count} clusters of public "
            f"rows, {price})"
        )


# ------------------------------ classifier
# `ReleasedClassifier`: a fair mixture of any learner's rules, fitted to groups that were released
# once.

FEASIBLE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)  # it holds public rows
class Searched:
    """Candidates and what they do. `rules`: linear models, fitted estimators, or codes of a
    constant class."""

    released: ReleasedGroups
    soft: Soft
    rules: tuple[Any, ...]
    laws: tuple[Floats, ...]
    candidates: Candidates


@described
class ReleasedClassifier(ClassifierMixin, CodedReader):  # type: ignore[misc]  # scikit-learn has no types
    """Mixture of rules that keeps rate constraints at released memberships of groups.

    Fits cost nothing beyond the release. Make one by `ReleasedGroups.fit`.

    Parameters
    ----------
    estimator : classifier, default=None
        Any classifier of scikit-learn with `sample_weight`, such as networks or boosted trees.
        Exponentiated gradient fits clones of it. None: linear models, by descent.
    rounds : int, default=30
        Number of clones of `estimator` that are fitted.

    Attributes
    ----------
    model_ : MixtureModel or None
        The mixture of linear models; None with an `estimator`.
    rules_ : list
        Rules of the mixture.
    shares_ : ndarray
        Share of decisions that each rule makes.
    report_ : tuple of SoftValue
        Value of each constraint with its error bars, from the release.
    error_ : float
        Expected error on the public rows, exact; a share of 1.
    privacy_, classes_, groups_, n_features_in_, feature_names_in_, coding_, cells_

    See Also
    --------
    release_groups : Makes the release, with examples.
    """

    privacy_: PrivacyStatement = field(init=False)
    model_: MixtureModel | None = field(init=False)

    constraints: object = None
    _: KW_ONLY
    estimator: BaseEstimator = None
    rounds: int = 30

    @worded
    def fit(
        self, X: TableLike, y: ColumnsLike = None, *, sensitive_features: ColumnsLike = None
    ) -> ReleasedClassifier:
        """Fit to the rows of the release.

        Parameters
        ----------
        sensitive_features : ReleasedGroups, default=None
            The release, never a column of groups. It must be given.

        Raises
        ------
        InputError

        Warns
        -----
        ConstraintNotMet
        """
        found = searched(sensitive_features, X, y, self.constraints, self.estimator, self.rounds)
        self.settle(found, found.soft.system.bounds, X, y)
        return self

    def settle(self, found: Searched, bounds: Floats, X: TableLike, y: ColumnsLike) -> None:
        """Take the best mixture of candidates for these bounds.

        Parameters
        ----------
        found : Searched
            Candidates and their released rates.
        bounds : ndarray
            Bounds of the constraints, as shares of 1.
        X : table or array
            Features: an array, a table or a source of coded rows; see docs/data.md.
        y : array
            Labels.
        """
        released = found.released
        shares, excess = found.candidates.mixture(bounds)
        kept = np.flatnonzero(shares)
        law = np.sum([shares[j] * found.laws[j] for j in kept], axis=0)
        self.rules_ = [found.rules[j] for j in kept]
        self.shares_ = shares[kept]
        linear = all(isinstance(rule, LinearModel) for rule in self.rules_)
        self.model_ = MixtureModel(self.rules_, self.shares_) if linear else None
        self.error_ = found.soft.error(law)
        self.report_: tuple[SoftValue, ...] = ()
        if len(bounds):
            self.report_ = released.rates(X, y, np.clip(law, 0.0, 1.0), self.constraints)
        self.privacy_, self.coding_, self.cells_ = released.privacy, released.coding, released.cells
        self.classes_, self.groups_ = as_array(released.classes), released.groups
        publish_columns(self, X)
        if excess > FEASIBLE:
            text = (
                f"no mixture of the rules keeps the constraints: bounds had to give {excess:.4f}. "
                f"Allow a larger gap."
            )
            warnings.warn(text, ConstraintNotMet, stacklevel=3)

    @worded
    def predict_proba(self, X: TableLike) -> Floats:
        """Distribution of decisions: the share of the rules that decide for each class.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self, "model_")
        if self.model_ is not None:
            return np.concatenate([self.model_.decision_proba(block) for block in self._blocks(X)])
        features = features_for(X, self.cells_.names)
        eye, out = np.eye(len(self.classes_)), []
        for rule, share in zip(self.rules_, self.shares_, strict=True):
            at = (
                rule
                if isinstance(rule, int)
                else codes_of(rule.predict(features), self.classes_.tolist(), "a rule's decisions")
            )
            out.append(
                share
                * (
                    np.broadcast_to(eye[at], (length_of(X) or 0, len(eye)))
                    if isinstance(rule, int)
                    else eye[at]
                )
            )
        return np.asarray(np.sum(out, axis=0))

    @worded
    def predict(self, X: TableLike, random_state: RandomState = None) -> npt.NDArray[Any]:
        """Predict the class of each row, drawn from the mixture: a rule anew for every row.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes, as the labels were written.
        """
        codes = draw_codes(self.predict_proba(X), random_state)
        return np.asarray(self.classes_[codes])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.sparse = True
        return tags


def publish_columns(estimator: BaseEstimator, X: TableLike) -> None:
    """How many features there are, and their names if they have any: those of a schema, else those
    of X."""
    coding, names = estimator.coding_, names_of(X)
    if isinstance(coding, SchemaCoding):
        names = tuple(coding.encoding.features)
    if names:
        estimator.n_features_in_, estimator.feature_names_in_ = (
            len(names),
            np.array(names, dtype=object),
        )
        return
    layout = coding.layout
    own = layout.numbers + len(layout.code_sizes)
    estimator.n_features_in_ = len(coding.columns) if isinstance(coding, TableCoding) else own
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def searched(
    given: object,
    X: TableLike,
    y: ColumnsLike,
    constraints: object,
    estimator: object,
    rounds: object,
) -> Searched:
    """Candidates for these constraints, by memberships alone."""
    remedy = (
        "Release the groups first: released = fairveil.release_groups(X, y, "
        "sensitive_features=...)."
    )
    given = _checks.instance(
        ReleasedGroups, "sensitive_features", given, remedy, "a ReleasedGroups"
    )
    count = _checks.whole(at_least=1, rounds=rounds)
    notions = [notion for notion in fitting.notions_of(constraints) if not notion.is_vacuous]
    system = resolve(notions, given.cells, given.classes)
    soft = soft_of(given, X, y, system)
    fixed = soft_search.constants(soft)
    if estimator is None:
        lines = soft_search.path(soft)
        eye = np.eye(len(given.classes))
        rules: list[Any] = [linear_of(given, soft.rows, v) for v in lines]
        laws = [eye[soft.rows.decided(v)] for v in lines]
        rules += [constant_of(given, k) for k, _ in fixed]
    else:
        pairs = _taught(given, soft, X, estimator, count)
        rules, laws = [rule for rule, _ in pairs], [law for _, law in pairs]
        rules += [k for k, _ in fixed]
    laws += [law for _, law in fixed]
    return Searched(given, soft, tuple(rules), tuple(laws), Candidates.of(soft, laws))


def soft_of(given: ReleasedGroups, X: TableLike, y: ColumnsLike, system: ConstraintSystem) -> Soft:
    """Public rows, whitened, with memberships."""
    features = features_of(given.coding, X)
    labels = codes_of(labels_in(X, y, as_array(given.classes)), given.classes, "y")
    table = np.column_stack([np.ones(len(features)), features])
    basis = np.concatenate(
        [np.eye(1, table.shape[1]), principal(table.T @ table, features.shape[1])]
    )
    members = given.counts.memberships[given.clusters.codes(features, labels)]
    weights = np.full(len(table), 1.0 / len(table))
    return Soft.of(
        PublicRows(table @ basis.T, basis, labels, members, weights, len(given.classes), True),
        system,
    )


def _taught(
    given: ReleasedGroups, soft: Soft, X: TableLike, estimator: object, rounds: int
) -> Sequence[tuple[Any, Floats]]:
    if not has_fit_parameter(estimator, "sample_weight"):
        remedy = "Use one that takes sample weights, or rows of released.expanded(X, y, copies=1)."
        raise InputError.expected(
            "an estimator with sample_weight",
            of="estimator",
            got=type(estimator).__name__,
            remedy=remedy,
        )
    classes = as_array(given.classes)
    features = features_for(X, given.cells.names)

    def taught(targets: npt.NDArray[np.intp], weights: Floats) -> Any:
        return clone(estimator).fit(
            features,
            classes[targets],
            sample_weight=weights * len(weights) / max(weights.sum(), 1e-300),
        )

    def decide(rule: Any) -> npt.NDArray[np.intp]:
        return codes_of(rule.predict(features), given.classes, "a rule's decisions")

    return soft_search.reduced(soft, soft.system.bounds, taught, decide, rounds)


def features_for(X: TableLike, sensitive: Sequence[str]) -> Any:
    """X as another's estimator is shown it: without columns named as sensitive."""
    if isinstance(X, RowSource):
        remedy = "Pass an array or a table, or leave estimator=None."
        raise InputError.expected(
            "features for the estimator", of="X", got=type(X).__name__, remedy=remedy
        )
    names = names_of(X)
    return without(X, [name for name in sensitive if name in names]) if names else X


def linear_of(given: ReleasedGroups, rows: PublicRows, v: Floats) -> LinearModel:
    """A model of coded rows."""
    weights = v @ rows.basis
    return LinearModel(
        weights[:, 1:], weights[:, 0], classes=given.classes, layout=given.coding.layout
    )


def constant_of(given: ReleasedGroups, k: int) -> LinearModel:
    """One class for everybody."""
    outputs = 1 if len(given.classes) == 2 else len(given.classes)
    intercept = np.full(outputs, 1.0 if k else -1.0) if outputs == 1 else np.eye(outputs)[k]
    layout = given.coding.layout
    return LinearModel(
        np.zeros((outputs, layout.width)), intercept, classes=given.classes, layout=layout
    )


# ------------------------------ frontier
# A whole frontier from one release: a classifier for every gap, at one price.


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedFrontier:
    """`models`: a classifier for each of `gaps`. `privacy`: of the release, which is the price of
    looking at all of them."""

    gaps: tuple[float, ...]
    models: tuple[ReleasedClassifier, ...]
    privacy: PrivacyStatement

    def table(self) -> list[dict[str, float]]:
        """One line a gap: the exact error on the public rows, and the largest value at the release
        with its bounds."""
        out = []
        for gap, model in zip(self.gaps, self.models, strict=True):
            at = max(model.report_, key=lambda line: line.value)
            line = {"target": gap, "error": model.error_, "gap": at.value, "within": at.within}
            out.append(line | {"gap_high": max(one.high for one in model.report_)})
        return out

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[ReleasedClassifier]:
        return iter(self.models)

    def __repr__(self) -> str:
        return (
            f"ReleasedFrontier({len(self)} models from one release of epsilon "
            f"{self.privacy.epsilon:.3g})"
        )


# ------------------------------ saving
# Released groups on disk: a folder with the counts and the statement, or one file with both,
# signed if there is a key.
#
# Never pickle. Checksums show damage, not authorship; a signature says who stands by counts and
# statement together.
#
# Guarantees (tests/estimators/test_estimators_released_file.py):
# 1. No field of a signed file can be changed without the signature being refused; spaces and the
#    order of fields can.
# 2. `examine` recomputes what follows: the price, from the events, and the distribution of the
#    counts, from price and groups.

FORMAT, VERSION = "fairveil-released-groups", 2
GROUPS_FILE, STATEMENT_FILE = "groups.json", "statement.json"
FIELDS = ("format", "version", "groups", "statement_sha256")
TREE = ("feature", "left", "right")
FILE_FORMAT, FILE_VERSION = "fairveil released groups", 2
FILE_FIELDS = ("format", "version", "statement", "groups", "checksum", "signature")
RECOMPUTED = (
    "epsilon",
    "delta",
    "accounting",
    "stamps",
    "checksum",
    "noise of the counts",
    "totals of two groups",
)
ON_TRUST = ("the counts", "the clusters", "the facts", "that the events happened")
DOCUMENT = Document(
    GROUPS_FILE, "It is not what was saved: save the released groups again.", largest=LARGEST_TEXT
)
FILE_DOCUMENT = Document(
    "released groups", "Ask the attribute's holder for the file again.", largest=LARGEST_TEXT
)
NOISES = ("none", "discrete-laplace")
SLACK = 1e-9


def _check_tree(found: dict[str, Any], node: Node) -> None:
    """Nodes lead to later ones."""
    feature, size = found["feature"], len(found["threshold"])
    if not size or size > MOST_NODES or any(found[name].shape != (size,) for name in TREE):
        node.refuse("as many of each as nodes", size)
    at, is_leaf = np.arange(size), feature == NO_CHILD
    children = np.stack([found["left"], found["right"]])
    if (feature < NO_CHILD).any() or ((children <= at) | (children >= size))[:, ~is_leaf].any():
        node.refuse("a tree whose nodes lead to later ones", size)
    found["leaf"] = np.where(is_leaf, np.cumsum(is_leaf) - 1, NO_CHILD)


def _check_clusters(found: dict[str, Any], node: Node) -> None:
    axes = found["axes"]
    if found["centre"].ndim != 1 or axes.ndim != 2 or len(axes) != len(found["centre"]):
        node["axes"]["shape"].refuse(f"{len(found['centre'])} lines", list(axes.shape))
    if any((tree.feature >= axes.shape[1]).any() for tree in found["trees"]):
        node["trees"].refuse(f"features below {axes.shape[1]}", "others")


def _check_noise(found: dict[str, Any], node: Node) -> None:
    node["kind"].one_of(NOISES)
    if not (0.0 < found["scale"] < math.inf or found["kind"] == "none"):
        node["scale"].refuse("a scale above 0", found["scale"])


def _check_whole(found: dict[str, Any], node: Node) -> None:
    """Counts, clusters, coding and groups are of one release."""
    known_classes(found["classes"])
    made, counts, cells = found["clusters"], found["counts"], found["cells"]
    if counts.raw.shape != (cells.count, made.count) or counts.sizes.shape != (made.count,):
        node["counts"].refuse("a line of counts for each group", list(counts.raw.shape))
    if not (np.isfinite(counts.raw).all() and np.isfinite(counts.sizes).all()):
        node["counts"].refuse("finite counts", "others")
    width = found["coding"].layout.width
    if len(made.trees) != len(found["classes"]) or len(made.centre) != width:
        trees = "a tree for each class, on the features of the coding"
        node["clusters"].refuse(trees, len(made.trees))
    if counts.reports is not None and counts.reports.groups != cells.keys:
        node["counts"]["reports"].refuse("reports of these groups", "others")


CODEC = CODINGS.with_kinds(
    Kind(ReleasedGroups, without=("privacy",), check=_check_whole),
    Kind(Clusters, check=_check_clusters),
    Kind(Tree, without=("leaf",), check=_check_tree),
    Kind(GroupCounts),
    Kind(CountNoise, check=_check_noise),
    Kind(Reports),
)


def _released(content: Node, statement: PrivacyStatement) -> ReleasedGroups:
    found: ReleasedGroups = CODEC.read(content, ReleasedGroups, privacy=statement)
    return found


def text_of(path: str | os.PathLike[str]) -> str:
    """The file's text."""
    remedy = "Pass the file that the attribute's holder sent."
    return read_text(path, what="a file of released groups", most=LARGEST_TEXT, remedy=remedy)


def read(text: str) -> tuple[ReleasedGroups, Signature | None]:
    """What `write` wrote, and its signature, which is not held against a key here: see
    `require_signed`."""
    content = FILE_DOCUMENT.node(text)
    if (
        content.mapping().get("format") != FILE_FORMAT
        or content.mapping().get("version") != FILE_VERSION
    ):
        content.refuse(f"{FILE_FORMAT!r}, version {FILE_VERSION}", content.mapping().get("format"))
    content.only(FILE_FIELDS)
    groups = content["groups"]
    if content["checksum"].text() != _checksum(groups.value):
        remedy = "The file is damaged: ask the attribute's holder for it again."
        raise ChecksumError.expected(
            "the counts that were written", of="groups", got="others", remedy=remedy
        )
    signature = content["signature"]
    found = None if signature.is_null else Signature.from_json(json.dumps(signature.value))
    statement = PrivacyStatement.from_json(json.dumps(content["statement"].value))
    return _released(groups, statement), found


def require_signed(text: str, public: object, of: str) -> Signature:
    """The signature, made with the private half of this key over these counts and this statement;
    else an error."""
    content = FILE_DOCUMENT.json(text)
    _, found = read(text)
    expected, remedy = "a signature", "Ask the attribute's holder to sign it."
    if found is None:
        raise SignatureError.expected(expected, of=of, got=None, remedy=remedy)
    signing.verify_text(json.dumps(content["statement"]), found, public, of)
    if found.files != _signed(content["groups"]):
        expected, got = "the signed counts", "others, or such that were changed since"
        raise SignatureError.expected(expected, of=of, got=got, remedy=remedy, quote=False)
    return found


def examine(text: str) -> tuple[ReleasedGroups, list[Finding]]:
    """The release, and what in it does not fit together."""
    released, _ = read(text)
    found = list(released.privacy.check())
    counts, promise = released.counts, released.privacy.promise
    if promise.protects != "sensitive_features":
        found.append(
            Finding(True, "the statement is not about sensitive features, which the counts are of")
        )
    elif len(released.privacy.events) != 1:
        found.append(
            Finding(
                True, "the counts are one release, and the statement has another number of events"
            )
        )
    elif (
        isinstance(event := released.privacy.events[0], NoOp)
        or (law := noise_of(event, promise.neighbours)) is None
        or law.kind != counts.noise.kind
    ):
        found.append(Finding(True, "the event of the statement is not one of such counts"))
    elif not math.isclose(law.scale, counts.noise.scale, rel_tol=SLACK):
        words = (
            f"noise of scale {counts.noise.scale:.6g} is stated; that of the event is "
            f"{law.scale:.6g}"
        )
        found.append(Finding(True, f"the counts are not of the event: {words}"))
    if counts.one_group and not (counts.raw.sum(axis=0) == counts.sizes).all():
        found.append(
            Finding(True, "the counts of two groups do not add up to the sizes of the clusters")
        )
    return released, found


def _signed(groups: ColumnsLike) -> tuple[tuple[str, str], ...]:
    return ((GROUPS_FILE, f"sha256:{_checksum(groups)}"),)


def _checksum(groups: ColumnsLike) -> str:
    return hashlib.sha256(canonical(groups).encode()).hexdigest()


# ------------------------------ groups
# `release_groups`: counts of groups in public clusters, released once; `ReleasedGroups`: all that
# is made of them for free.

PURPOSE = "release_groups"
LAST = 12
"""Digits of an epsilon behind the point: what is behind them is last bits, and rounds none up."""


@told(COUNTED | GIVEN)
def release_groups(
    X: TableLike,
    y: ColumnsLike = None,
    *,
    sensitive_features: ColumnsLike = None,
    epsilon: float = 1.0,
    delta: float = 0.0,
    protects: str = "sensitive_features",
    schema: Schema | None = None,
    clusters: int | None = None,
    reports: Reports | None = None,
    ledger: object = None,
    random_state: object = None,
    unit: ColumnsLike = None,
    max_rows_per_unit: int | None = None,
) -> ReleasedGroups:
    """Release how many people of each group are in each public cluster, once, with pure epsilon.

    Features and labels are public, and only the sensitive features are protected. Clusters are
    leaves of trees on principal components of the features and a public score, one tree a label. No
    group is read to make them (docs/release_once.md). `SoftGroups` as `sensitive_features` are
    distributions over groups: one group is drawn for each row.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the one release. ``float('inf')`` adds no noise and gives no privacy.
    delta : float, default=0.0
        The release itself has delta 0. A ledger with a delta above 0 needs the same here.
    protects : "sensitive_features", default="sensitive_features"
        What is protected. Anything else is refused.
    schema : Schema, default=None
        Declares columns and groups. None: the groups are read from the data, and the statement says
        so.
    clusters : int, default=None
        Largest number of clusters. None: it follows the number of rows, classes and groups, and the
        noise of one count.
    reports : Reports, default=None
        How recorded groups come from true ones, where they were flipped with known rates. None:
        they are the true ones.
    unit : str, mapping of one name, or one value a row, default=None
        Column of X that tells persons apart, where a person may have several rows. Persons are then
        protected, with all of their rows. The column is no feature. None: protects each row by
        itself.
    max_rows_per_unit : int, default=None
        Most rows of one person, required beside `unit`. All rows count, so it is at least what the
        person with most rows has. Noise grows with it.

    Returns
    -------
    ReleasedGroups
        Counts to fit and measure from, any number of times.

    Raises
    ------
    InputError
        If an argument or the table cannot be used.
    Overspent
        If the ledger's budget does not suffice for the cost.

    See Also
    --------
    ReleasedClassifier : Classifier from a release.
    FairPostProcessor : Releases counts for one classifier alone.
    Reports : Groups that were flipped with known rates.
    SoftGroups : Distributions over groups.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_released.py):

    1. `privacy` is the price of one release of counts, at most epsilon, at delta 0.
    2. What is returned depends on the groups through the noisy counts alone, except for what
       `privacy.facts` lists as read from the data.
    3. Clusters are the same whatever the groups are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + 0.7 * A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=2000) > 1).astype(int)
    >>> released = release_groups(X, y, sensitive_features=A, epsilon=1.0, random_state=0)
    >>> released.memberships(X, y).shape, released.privacy.epsilon <= 1.0, released.privacy.check()
    ((2000, 2), True, [])
    >>> clf = released.fit(X, y, "equalized_odds:0.05")
    >>> clf.predict(X, random_state=0).shape
    (2000,)
    """
    if isinstance(X, Elsewhere):
        remedy = (
            "Fit a classifier on the remote data; or release the groups where features and labels "
            "are."
        )
        expected = "features and labels, which clusters are made of"
        raise InputError.expected(expected, of="X", got="remote data", remedy=remedy)
    whose = units.whose(unit, max_rows_per_unit, schema, epsilon)
    promise = promise_for(epsilon, delta, protects, whose)
    if whose is not None and (reports is not None or isinstance(sensitive_features, SoftGroups)):
        remedy = "Pass the recorded groups as they are; or protect rows: unit=None."
        expected = "groups that were not drawn by chance, beside a unit"
        raise PrivacyError.expected(
            expected, of="sensitive_features", got="drawn ones", remedy=remedy
        )
    facts = Schema.of(schema)
    asked = SimpleNamespace(ledger=ledger, random_state=random_state, _facts=facts)
    record = fitting.ledger_of(asked, promise)
    source = fitting.noise_of(random_state)
    listed = sensitive_features.groups if isinstance(sensitive_features, SoftGroups) else None
    sensitive_features, reports = recorded(sensitive_features, reports, source)
    limit = None if clusters is None else _checks.whole(at_least=1, clusters=clusters)
    ways = fitting.ways_of(schema, promise, whose=whose)
    training = inputs.read(X, y, sensitive_features, None, replace(ways, groups=listed))
    cautions.of_promise(promise, training.rows.exact_count)
    if record is not None:
        record.require(promise, schema=training.schema)
    cells = _several_groups(training)
    planned = group_release.plan_groups(promise, cells)
    told: tuple[PublicFact, ...] = ()
    if reports is not None:
        reports = reports.in_order(cells.keys)
        told = (fact_of(reports, promise),)
    labels = np.concatenate([np.asarray(block.labels, np.intp) for block in training.rows.blocks()])
    features = features_of(training.coding, X)
    made = grown(features, labels, len(training.classes), limit, cells.count, planned.noise.sd)
    at = made.codes(features, labels)
    sizes = np.bincount(at, minlength=made.count).astype(np.float64)
    fact = PublicFact(
        "clusters",
        f"{made.count} leaves of trees on features, label and a public score",
        "public features",
    )
    curator = Curator(
        training.rows,
        promise,
        plan=planned.event if promise.is_private else None,
        noise=source,
        facts=[*training.facts, fact, *told],
        ledger=record,
        purpose=PURPOSE,
    )
    with curator:
        read = frozenset({"features", "label"})
        attached = curator.attach_codes(at, made.count, columns_read=read, title="public clusters")
        counts = group_release.release_groups(curator, attached, planned, sizes, reports)
        curator.finish()
    statement = PrivacyStatement.of_run(curator, not_covered=training.not_covered)
    return ReleasedGroups(
        statement, cells, known_classes(training.classes), training.coding, made, counts
    )


def _several_groups(training: Training) -> Cells:
    """The groups of the rows: two or more."""
    cells = groups_of(training, either=False)
    if cells is None or cells.count < 2 or training.rows.weighted or not training.rows.exact_count:
        got = (
            "none"
            if cells is None
            else "rows with weights"
            if training.rows.weighted
            else f"{cells.count} group"
        )
        remedy = (
            "Pass sensitive_features with two groups or more; a schema may list groups that do not "
            "occur."
        )
        raise InputError.expected(
            "rows of several groups", of="sensitive_features", got=got, remedy=remedy
        )
    return cells


def recorded(
    given: object, reports: Reports | None, source: NoiseSource
) -> tuple[Any, Reports | None]:
    """Groups as they are counted, and what they are: of distributions, drawn ones."""
    if not isinstance(given, SoftGroups):
        return given, reports
    if reports is not None:
        remedy = "Leave reports out, or pass recorded groups."
        raise InputError.expected(
            "None beside distributions", of="reports", got="some", remedy=remedy
        )
    return given.drawn(source), given.reports


def fact_of(reports: Reports, promise: Promise) -> PublicFact:
    """What the statement says of recorded groups that are not the true ones."""
    words = "each drawn from that person's distribution over groups"
    if not reports.drawn:
        local, both = (
            at_most(round(one, LAST))
            for one in (reports.epsilon, reports.together(promise.epsilon))
        )
        words = (
            f"true ones flipped with known rates; epsilon {local} of each report, {both} of a true "
            f"group by this release"
        )
    return PublicFact("recorded groups", words, "argument")


def promise_for(epsilon: float, delta: float, protects: str, whose: Whose | None = None) -> Promise:
    """The promise; an error where it is not about sensitive features alone."""
    promise = fitting.promise_of(epsilon, delta, protects, whose)
    group_release.require_public_features(promise)
    return promise


def grown(
    features: Floats, labels: Ints, classes: int, limit: int | None, groups: int, deviation: float
) -> Clusters:
    """The clusters of public rows. `limit`: how many at most; None: from public facts."""
    leaves = (
        group_release.leaves_for(len(labels), classes, groups, deviation)
        if limit is None
        else limit
    )
    return group_release.grown_clusters(features, labels, classes, leaves)


# ------------------------------ as_fit
# A fit of linear rules to groups that were released once, told as fits on rows are told: a model,
# an outcome, a statement.
#
# Everything is post-processing of the release and of public rows, so it costs nothing further.

CONFIDENCE, TWO_SIDED = 0.95, 1.959964
UNUSED = ("model", "checkpoint")


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedFit:
    """What was found: linear rules with their shares, and how it compares with what was
    required."""

    rules: tuple[LinearModel, ...]
    shares: tuple[float, ...]
    outcome: Outcome


def fit_released(
    estimator: BaseEstimator,
    X: TableLike,
    y: ColumnsLike,
    released: ReleasedGroups,
    sample_weight: ColumnsLike,
) -> ReleasedFit:
    """The best mixture of linear rules for the estimator's constraints; one rule where
    `randomised=False`."""
    _require_what_a_release_gives(estimator, sample_weight)
    found = searched(released, X, y, estimator.constraints, None, 1)
    bounds = found.soft.system.bounds
    solver = estimator._setting("solver", PrimalDual)
    choose = found.candidates.single if not solver.randomised else found.candidates.mixture
    shares, _ = choose(bounds)
    kept = np.flatnonzero(shares)
    law = np.clip(np.sum([shares[j] * found.laws[j] for j in kept], axis=0), 0.0, 1.0)
    rules = tuple(found.rules[j] for j in kept)
    return ReleasedFit(
        rules,
        tuple(shares[kept].tolist()),
        _outcome(found, law, rules, X, y, estimator.constraints),
    )


def _require_what_a_release_gives(estimator: BaseEstimator, sample_weight: ColumnsLike) -> None:
    if estimator.protects != "sensitive_features":
        remedy = (
            "Pass protects='sensitive_features', which is what a release of groups protects, or "
            "fit to the groups themselves."
        )
        expected, of = "'sensitive_features' with released groups", "protects"
        raise InputError.expected(expected, of=of, got=estimator.protects, remedy=remedy)
    if sample_weight is not None:
        remedy = "Leave sample_weight out, or weigh the rows of released.expanded(X, y)."
        raise InputError.expected(
            "no weights with released groups", of="sample_weight", got="some", remedy=remedy
        )
    if (unit := estimator._facts.unit) is not None:
        remedy = "Leave it out: who is protected was decided by the release."
        raise InputError.expected("None with released groups", of="unit", got=unit, remedy=remedy)
    fitting.refuse_unused(estimator, dict.fromkeys(UNUSED, "with released groups"))
    solver = estimator._setting("solver", PrimalDual)
    idle = [name for name in knobs(PrimalDual) if name != "randomised"]
    fitting.refuse_unused(solver, dict.fromkeys(idle, "with released groups"))


def _outcome(
    found: Searched,
    law: Floats,
    rules: tuple[LinearModel, ...],
    X: TableLike,
    y: ColumnsLike,
    constraints: object,
) -> Outcome:
    """`spread`: half the 95 % interval over the noise as a deviation (it is for all rates together,
    so rather too wide), and the deviation by chance within clusters beside it."""
    soft, released = found.soft, found.released
    told = released.rates(X, y, law, constraints, confidence=CONFIDENCE) if len(soft.system) else ()
    histogram = soft.histogram(law)
    first = rules[0]
    return Outcome(
        weights=np.column_stack([first.intercept, first.weights]),
        reason=Reason.BEST,
        rounds=0,
        names=tuple(one.name for one in told),
        bounds=np.array([one.bound for one in told]),
        values=np.array([one.value for one in told]),
        spread=np.array(
            [math.hypot((one.high - one.low) / (2.0 * TWO_SIDED), one.within) for one in told]
        ),
        duals=np.zeros(len(told)),
        counts=histogram.sum(axis=2),
        rows=float(len(soft.rows.labels)),
        looks=len(found.rules),
        sampling=deviations(soft.system, histogram, histogram.sum(axis=2)),
    )
