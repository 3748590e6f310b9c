"""Groups released once: noisy counts in public clusters, and fits of linear rules to them. All but
the one release is arithmetic on it and on public rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from .. import _checks
from .._codec import Kind
from .._json import Node
from .._types import ColumnsLike, Floats, Ints, TableLike
from ..core.errors import need
from ..core.promise import Promise
from ..curator import Curator
from ..data.elsewhere import Elsewhere
from ..errors import PrivacyError
from ..facts import Cells, Reports, Schema
from ..fairness import ConstraintSystem, deviations, resolve
from ..methods import Outcome
from ..methods import released as group_release
from ..methods.counts import CountNoise
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
from ..models import LinearModel
from ..models.model import is_sparse, known_classes
from ..show.numbers import at_most
from ..statement.document import PrivacyStatement, PublicFact
from ..tables.columns import same_length
from . import cautions, fitting, reading
from .coding import Coding, SchemaCoding, TableCoding
from .counted import CODEC, CountedFile, CountsFile
from .faces import as_array, labels_in
from .reading import SoftGroups, Training, groups_of
from .settings import PrimalDual, knobs
from .words import COUNTED, GIVEN, entries, told
from .wrapped import codes_of, names_of

MOST = 1 << 28
"""Numbers of a dense table of features."""
LEAST = 1e-12  # a membership below has no row
LAST = 12
"""Digits of an epsilon behind the point: what is behind them is last bits, and rounds none up."""
WORDS = entries("""
X : table or array
    Features of the rows of the release.
y : array
    Their labels.
""")
"""Arguments of several methods."""

# ------------------------------ what was released


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedGroups(CountedFile):
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
    FairClassifier : Is fitted to it, as ``sensitive_features``.
    """

    FILE: ClassVar = CountsFile(
        "released groups",
        3,
        ("epsilon", "delta", "accounting", "stamps", "checksum", "noise of the counts"),
        ("the counts", "the clusters", "the facts", "that the events happened"),
    )
    STATEMENT: ClassVar = "privacy"

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
        sizes = np.bincount(at, minlength=self.clusters.count)
        own = np.array_equal(sizes, self.counts.sizes)
        fix = "Pass the X and y of release_groups; measure other rows where their groups are known."
        need(own, "the rows of the release", of="X, y", got="others", fix=fix)
        return at

    @property
    def noise(self) -> CountNoise:
        """Noise of each count."""
        return self.counts.noise

    def _doubts(self) -> Iterator[str]:
        if self.privacy.promise.protects != "sensitive_features":
            yield "the statement is not about sensitive features, which the counts are of"
        if self.counts.one_group and not (self.counts.raw.sum(axis=0) == self.counts.sizes).all():
            yield "the counts of two groups do not add up to the sizes of the clusters"

    def __repr__(self) -> str:
        price = f"epsilon {self.privacy.epsilon:.3g}"
        return (
            f"ReleasedGroups({len(self.groups)} groups in {self.clusters.count} clusters of public "
            f"rows, {price})"
        )


def features_of(coding: Coding, X: TableLike) -> Floats:
    """Coded features, (rows, width): numbers, then indicators of categories."""
    out = []
    for block in coding.blocks(X):
        layout, rows = coding.layout, block.rows
        got, fix = f"{rows:,} rows of {layout.width:,} numbers", "Pass fewer columns or rows."
        need(rows * layout.width <= MOST, "a table that fits", of="X", got=got, fix=fix)
        dense, numbers, first = np.zeros((rows, layout.width)), block.numbers, layout.numbers
        dense[:, :first] = sparse.csr_array(numbers).toarray() if is_sparse(numbers) else numbers.T
        for column, size in zip(block.codes, layout.code_sizes, strict=True):
            dense[np.arange(rows), first + column.astype(np.intp)] = 1.0
            first += size
        out.append(dense)
    return np.concatenate(out)


def distribution_given(predictions: ColumnsLike, classes: Sequence[Hashable], rows: int) -> Floats:
    """Decisions as probabilities (rows, classes): of classes, or as given."""
    given = np.asarray(predictions)
    same_length({"y": rows, "predictions": len(given) if given.ndim else 0})
    if given.ndim == 1:
        return np.asarray(np.eye(len(classes))[codes_of(given, classes, "predictions")])
    law = given.astype(np.float64) if given.dtype.kind in "fiub" else np.full((1, 1), np.nan)
    sound = law.shape == (rows, len(classes)) and (law >= 0).all()
    sound = sound and np.abs(law.sum(axis=1) - 1.0).max(initial=0.0) <= 1e-6
    fix = f"Pass a class a row, or probabilities of shape ({rows}, {len(classes)}) that sum to 1."
    got = f"an array of shape {given.shape}"
    need(sound, "decisions", of="predictions", got=got, fix=fix, quote=False)
    return law


# ------------------------------ the release


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
    FairClassifier : Is fitted to the release, as ``sensitive_features``.
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
    >>> from fairveil import FairClassifier
    >>> released = release_groups(X, y, sensitive_features=A, epsilon=1.0, random_state=0)
    >>> released.memberships(X, y).shape, released.privacy.epsilon <= 1.0, released.privacy.check()
    ((2000, 2), True, [])
    >>> clf = FairClassifier("equalized_odds:0.05", protects="sensitive_features")
    >>> clf.fit(X, y, sensitive_features=released).predict(X, random_state=0).shape
    (2000,)
    """
    fix = (
        "Fit a classifier on the remote data; or release the groups where features and labels are."
    )
    expected, here = "features and labels, which clusters are made of", not isinstance(X, Elsewhere)
    need(here, expected, of="X", got="remote data", fix=fix)
    whose = reading.whose(unit, max_rows_per_unit, schema, epsilon)
    promise = fitting.promise_of(epsilon, delta, protects, whose)
    group_release.require_public_features(promise)
    drawn, of = isinstance(sensitive_features, SoftGroups), "sensitive_features"
    fix = "Pass the recorded groups as they are; or protect rows: unit=None."
    expected = "groups that were not drawn by chance, beside a unit"
    certain = whose is None or not (drawn or reports is not None)
    need(certain, expected, of=of, got="drawn ones", fix=fix, error=PrivacyError)
    asked = SimpleNamespace(ledger=ledger, random_state=random_state, _facts=Schema.of(schema))
    record, source = fitting.ledger_of(asked, promise), fitting.noise_of(random_state)
    listed = None
    if isinstance(sensitive_features, SoftGroups):
        fix = "Leave reports out, or pass recorded groups."
        need(reports is None, "None beside distributions", of="reports", got="some", fix=fix)
        listed, reports = sensitive_features.groups, sensitive_features.reports
        sensitive_features = sensitive_features.drawn(source)
    limit = None if clusters is None else _checks.whole(at_least=1, clusters=clusters)
    ways = fitting.ways_of(schema, promise, whose=whose)
    training = reading.read(X, y, sensitive_features, None, replace(ways, groups=listed))
    cautions.of_promise(promise, training.rows.exact_count)
    if record is not None:
        record.require(promise, schema=training.schema)
    cells = _several_groups(training)
    planned = group_release.plan_groups(promise, cells)
    facts = [*training.facts]
    labels = np.concatenate([np.asarray(block.labels, np.intp) for block in training.rows.blocks()])
    features, classes = features_of(training.coding, X), len(training.classes)
    if limit is None:
        limit = group_release.leaves_for(len(labels), classes, cells.count, planned.noise.sd)
    made = group_release.grown_clusters(features, labels, classes, limit)
    at = made.codes(features, labels)
    words = f"{made.count} leaves of trees on features, label and a public score"
    facts.append(PublicFact("clusters", words, "public features"))
    if reports is not None:
        reports = reports.in_order(cells.keys)
        facts.append(PublicFact("recorded groups", _in_words(reports, promise), "argument"))
    curator = Curator(
        training.rows,
        promise,
        plan=planned.event if promise.is_private else None,
        noise=source,
        facts=facts,
        ledger=record,
        purpose="release_groups",
    )
    with curator:
        read = frozenset({"features", "label"})
        attached = curator.attach_codes(at, made.count, columns_read=read, title="public clusters")
        sizes = np.bincount(at, minlength=made.count).astype(np.float64)
        counts = group_release.release_groups(curator, attached, planned, sizes, reports)
        curator.finish()
    statement = PrivacyStatement.of_run(curator, not_covered=training.not_covered)
    return ReleasedGroups(
        statement, cells, known_classes(training.classes), training.coding, made, counts
    )


def _several_groups(training: Training) -> Cells:
    """The groups of the rows: two or more."""
    cells = groups_of(training, either=False)
    several = cells is not None and cells.count > 1 and training.rows.exact_count
    got = "none" if cells is None else f"{cells.count} group"
    got = "rows with weights" if training.rows.weighted else got
    fix = "Pass sensitive_features with two groups or more; a schema may list groups that do not occur."
    sound, of = several and not training.rows.weighted, "sensitive_features"
    need(sound, "rows of several groups", of=of, got=got, fix=fix)
    assert cells is not None
    return cells


def _in_words(reports: Reports, promise: Promise) -> str:
    """What the statement says of recorded groups that are not the true ones."""
    if reports.drawn:
        return "each drawn from that person's distribution over groups"
    local, both = (
        at_most(round(one, LAST)) for one in (reports.epsilon, reports.together(promise.epsilon))
    )
    return (
        f"true ones flipped with known rates; epsilon {local} of each report, {both} of a true "
        f"group by this release"
    )


# ------------------------------ the file

TREE = ("feature", "left", "right")


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


def _check_whole(found: dict[str, Any], node: Node) -> None:
    """Counts, clusters, coding and groups are of one release."""
    known_classes(found["classes"])
    made, counts, cells = found["clusters"], found["counts"], found["cells"]
    if counts.raw.shape != (cells.count, made.count) or counts.totals.shape != (made.count,):
        node["counts"].refuse("a line of counts for each group", list(counts.raw.shape))
    if not (np.isfinite(counts.raw).all() and np.isfinite(counts.totals).all()):
        node["counts"].refuse("finite counts", "others")
    node["counts"]["noise"]["kind"].one_of(("none", "discrete-laplace"))
    width = found["coding"].layout.width
    if len(made.trees) != len(found["classes"]) or len(made.centre) != width:
        trees = "a tree for each class, on the features of the coding"
        node["clusters"].refuse(trees, len(made.trees))
    if counts.reports is not None and counts.reports.groups != cells.keys:
        node["counts"]["reports"].refuse("reports of these groups", "others")


ReleasedGroups.CODEC = CODEC.with_kinds(
    Kind(ReleasedGroups, check=_check_whole),
    Kind(Clusters, check=_check_clusters),
    Kind(Tree, without=("leaf",), check=_check_tree),
    Kind(GroupCounts),
    Kind(Reports),
)


# ------------------------------ a fit
# Linear rules fitted to released groups, told as fits on rows are told: a model, an outcome, a
# statement. Everything is post-processing of the release and of public rows, so it costs nothing.

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
    notions = [one for one in fitting.notions_of(estimator.constraints) if not one.is_vacuous]
    system = resolve(notions, released.cells, released.classes)
    soft = _soft_of(released, X, y, system)
    lines, fixed = group_release.path(soft), group_release.constants(soft)
    eye, layout, classes = np.eye(soft.rows.classes), released.coding.layout, released.classes
    weights = [v @ soft.rows.basis for v in lines]
    rules = [LinearModel(w[:, 1:], w[:, 0], classes=classes, layout=layout) for w in weights]
    rules += [_constant(released, k) for k, _ in fixed]
    laws = [*(eye[soft.rows.decided(v)] for v in lines), *(law for _, law in fixed)]
    candidates = Candidates.of(soft, laws)
    solver = estimator._setting("solver", PrimalDual)
    choose = candidates.single if not solver.randomised else candidates.mixture
    shares, _ = choose(system.bounds)
    kept = np.flatnonzero(shares)
    law = np.clip(np.sum([shares[j] * laws[j] for j in kept], axis=0), 0.0, 1.0)
    chosen = tuple(rules[j] for j in kept)
    constraints = estimator.constraints
    told = released.rates(X, y, law, constraints, confidence=CONFIDENCE) if len(system) else ()
    histogram, first = soft.histogram(law), chosen[0]
    # half the 95 % interval over the noise as a deviation (it is for all rates together, so rather
    # too wide), and the deviation by chance within clusters beside it
    spread = [math.hypot((one.high - one.low) / (2.0 * TWO_SIDED), one.within) for one in told]
    outcome = Outcome(
        weights=np.column_stack([first.intercept, first.weights]),
        reason=Reason.BEST,
        rounds=0,
        names=tuple(one.name for one in told),
        bounds=np.array([one.bound for one in told]),
        values=np.array([one.value for one in told]),
        spread=np.array(spread),
        duals=np.zeros(len(told)),
        counts=histogram.sum(axis=2),
        rows=float(len(soft.rows.labels)),
        looks=len(rules),
        sampling=deviations(system, histogram, histogram.sum(axis=2)),
    )
    return ReleasedFit(chosen, tuple(shares[kept].tolist()), outcome)


def _require_what_a_release_gives(estimator: BaseEstimator, sample_weight: ColumnsLike) -> None:
    fix = (
        "Pass protects='sensitive_features', which is what a release of groups protects, or fit to "
        "the groups themselves."
    )
    got, expected = estimator.protects, "'sensitive_features' with released groups"
    need(got == "sensitive_features", expected, of="protects", got=got, fix=fix)
    fix = "Leave sample_weight out: the release counted each row once."
    expected, bare = "no weights with released groups", sample_weight is None
    need(bare, expected, of="sample_weight", got="some", fix=fix)
    unit, fix = estimator._facts.unit, "Leave it out: who is protected was decided by the release."
    need(unit is None, "None with released groups", of="unit", got=unit, fix=fix)
    fitting.refuse_unused(estimator, dict.fromkeys(UNUSED, "with released groups"))
    idle = [name for name in knobs(PrimalDual) if name != "randomised"]
    solver = estimator._setting("solver", PrimalDual)
    fitting.refuse_unused(solver, dict.fromkeys(idle, "with released groups"))


def _soft_of(given: ReleasedGroups, X: TableLike, y: ColumnsLike, system: ConstraintSystem) -> Soft:
    """Public rows, whitened, with memberships."""
    features = features_of(given.coding, X)
    labels = codes_of(labels_in(X, y, as_array(given.classes)), given.classes, "y")
    table = np.column_stack([np.ones(len(features)), features])
    basis = np.concatenate(
        [np.eye(1, table.shape[1]), principal(table.T @ table, features.shape[1])]
    )
    members = given.counts.memberships[given.clusters.codes(features, labels)]
    weights, count = np.full(len(table), 1.0 / len(table)), len(given.classes)
    rows = PublicRows(table @ basis.T, basis, labels, members, weights, count, True)
    return Soft.of(rows, system)


def _constant(given: ReleasedGroups, k: int) -> LinearModel:
    """One class for everybody."""
    outputs = 1 if len(given.classes) == 2 else len(given.classes)
    intercept = np.full(outputs, 1.0 if k else -1.0) if outputs == 1 else np.eye(outputs)[k]
    layout = given.coding.layout
    none = np.zeros((outputs, layout.width))
    return LinearModel(none, intercept, classes=given.classes, layout=layout)


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
