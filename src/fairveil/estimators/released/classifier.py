"""`ReleasedClassifier`: a fair mixture of any learner's rules, fitted to groups that were released
once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ... import _checks
from ..._types import ColumnsLike, Floats, TableLike
from ...errors import ConstraintNotMet, InputError
from ...facts import RowSource
from ...fairness import ConstraintSystem, resolve
from ...learning import released as soft_search
from ...learning.oracles import principal
from ...learning.public_rows import PublicRows
from ...learning.released import Candidates, Soft, SoftValue
from ...models import LinearModel, MixtureModel
from ...models.model import RandomState, draw_codes
from ...statement.document import PrivacyStatement
from .. import fitting
from ..faces import CodedReader, as_array
from ..fitting import length_of
from ..reading.coding import SchemaCoding, TableCoding
from ..words import worded
from ..wrapped import codes_of, names_of, without
from .public_features import features_of, labels_in
from .released_counts import ReleasedCounts

FEASIBLE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)  # it holds public rows
class Searched:
    """Candidates and what they do. `rules`: linear models, fitted estimators, or codes of a
    constant class."""

    released: ReleasedCounts
    soft: Soft
    rules: tuple[Any, ...]
    laws: tuple[Floats, ...]
    candidates: Candidates


class ReleasedClassifier(ClassifierMixin, CodedReader):  # type: ignore[misc]  # scikit-learn has no types
    """Mixture of rules that keeps rate constraints at released memberships of groups.

    Fits cost nothing beyond the release. Make one by `ReleasedGroups.fit`.

    Parameters
    ----------
    constraints : notion, str or list of these, default=None
        Constraints on rates of decisions: a notion such as ``DemographicParity(max_gap=0.05)``, or
        its name and bound, ``"demographic_parity:0.05"``. A list combines them. Bounds are shares
        of 1, so 0.05 is 5 percentage points. None: no constraint.
    estimator : classifier, default=None
        Any classifier of scikit-learn with `sample_weight`, such as networks or boosted trees.
        Exponentiated gradient fits clones of it. None: linear models, by descent.
    rounds : int, default=30
        Number of clones of `estimator` that are fitted.

    Attributes
    ----------
    privacy_ : PrivacyStatement
        Statement of what the fit cost and of what it covers.
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
    classes_ : ndarray of shape (n_classes,)
        Classes, in the order of the columns of `predict_proba`.
    groups_ : tuple
        Keys of the groups; empty for a fit without sensitive features.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the columns of X; there only if X had names.
    coding_ : TableCoding or SchemaCoding
        How tables are coded: which column is which number or category.
    cells_ : Cells or None
        Groups as cells of the sensitive columns; None for a fit without them.

    See Also
    --------
    release_groups : Makes the release, with examples.
    """

    privacy_: PrivacyStatement
    model_: MixtureModel | None

    def __init__(
        self, constraints: object = None, *, estimator: BaseEstimator = None, rounds: int = 30
    ) -> None:
        self.constraints = constraints
        self.estimator = estimator
        self.rounds = rounds

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
        ReleasedCounts, "sensitive_features", given, remedy, "a ReleasedGroups"
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


def soft_of(given: ReleasedCounts, X: TableLike, y: ColumnsLike, system: ConstraintSystem) -> Soft:
    """Public rows, whitened, with memberships."""
    features = features_of(given.coding, X)
    labels = codes_of(labels_in(X, y, given.classes), given.classes, "y")
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
    given: ReleasedCounts, soft: Soft, X: TableLike, estimator: object, rounds: int
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


def linear_of(given: ReleasedCounts, rows: PublicRows, v: Floats) -> LinearModel:
    """A model of coded rows."""
    weights = v @ rows.basis
    return LinearModel(
        weights[:, 1:], weights[:, 0], classes=given.classes, layout=given.coding.layout
    )


def constant_of(given: ReleasedCounts, k: int) -> LinearModel:
    """One class for everybody."""
    outputs = 1 if len(given.classes) == 2 else len(given.classes)
    intercept = np.full(outputs, 1.0 if k else -1.0) if outputs == 1 else np.eye(outputs)[k]
    layout = given.coding.layout
    return LinearModel(
        np.zeros((outputs, layout.width)), intercept, classes=given.classes, layout=layout
    )
