"""Groups released once, for any number of public models: one count of groups by public cluster, with
pure epsilon; rates of decisions from it, and a search on public rows. Our own; the mixtures are the
reduction of Agarwal et al. (2018).

    M[c, a] = number of rows of cluster c and group cell a,    released with discrete Laplace noise,
       sum over a public

One person's sensitive value changes, and nothing else: a row leaves one cell of its cluster for
another (`counts.CountPlan`). Clusters are disjoint, so their number costs nothing
(docs/release_once.md).

Clusters. One function of features and label, which sorts each row by itself and never reads a group:

    z = (features - centre) @ axes      the leading principal components, and a public score: logistic regression of the label
    cluster = the leaf of z in the tree of the row's label

The trees predict z itself (predictive clustering). Inside a leaf a group's members are taken to be
like the others; so leaves should be small. The noise of a leaf's count does not depend on its size;
so they should not be too small: `leaves_for` says how many.

Rates. With q_i in [0, 1] what a row adds to a rate, q_c its mean in cluster c, m_c the event's
members there (released counts: m~_c),

    rate = sum_i A_i q_i / sum_c m_c  =  sum_c m_c q_c / sum_c m_c  +  sum_c cov_c / sum_c m_c,

where cov_c adds up what members of cluster c differ in from its mean. The first term is estimated
by putting m~ for m. Three numbers say how far off it may be, each under its own assumption:

- noise: `low` to `high` holds the first term, for all rates together, with the stated probability
  over the noise. It is the set of r with |sum_c m~_c (q_c - r)| <= t(r), t(r) the tail of sum_c Z_c
  (q_c - r): Chernoff's bound for the exact law of Z.
- `within`: the standard deviation of the second term if a cluster's members were drawn from it at
  random.
- `lowest` to `highest`: whatever the members are, with the stated probability over the noise.

Recorded groups may be true ones by chance (`reports`): m~ are then estimates, and all bounds cover
that chance, too.

Search. Candidates of the linear model lie on a path of growing penalty mu, each started at the one
before (L-BFGS):

    mean log loss + mu sum_j max(0, value_j - b_j)^2,    b_j = 0 for a difference of rates, else its bound,

with values of softened decisions, sharpened by `SHARP`. Each candidate's error and expected histogram are
numbers of public rows, so the best mixture for any bound is a small linear program.

Guarantees (tests/methods/test_methods_released.py):
1. The plan is one event, made of the promise and the groups, and keeps the promise at delta 0.
   `GroupCounts` holds nothing exact but the clusters' sizes, which are public: all else is
   arithmetic on noisy, unbiased counts (over noise and flips).
2. A row's cluster is a function of its own features and label, and of public arrays; the number of
   clusters follows from public facts.
3. [low, high] holds the first term as often as it says. Without noise [lowest, highest] holds the
   true rate of every assignment with these counts.
4. The mixture keeps every bound at the released memberships, where any mixture of the candidates
   does, and none errs less.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from .._types import Floats
from ..core.promise import Promise
from ..curator import Attached, Curator
from ..errors import PrivacyError
from ..facts import Cells, Reports
from ..fairness import ConstraintSystem
from ..fairness.systems import FixedCounts
from .counts import Counted, CountPlan, onto_totals, plan_counts
from .mixture import best_mixture
from .public_rows import PublicRows, log_losses

Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]
PURPOSE = "rows by cluster and group"
COMPONENTS = 10
SCORE = 0.5  # the score's weight beside the components, which have a variance of at most 1 together
DEVIATIONS = 8.0
"""Rows of a leaf for each standard deviation of one count's noise and pair of groups: a share is
then known to 1/8."""
FEWEST, MOST = 8, 1024
"""Rows of a leaf at least, and leaves at most."""
NO_CHILD, MOST_NODES = -1, 1 << 20
GRID, HALVED = 41, 8  # rates that are tried; the ends are then found by halving
TILTS = 24
HALVINGS = 50
SHARP = 2.0
PENALTIES = tuple(np.geomspace(0.1, 100.0, 9).tolist())
FIRST_STEPS, STEPS = 100, 50
SHIFTS = (-0.6, -0.3, 0.3, 0.6)  # of the intercept: other cuts of the same score, two classes
EXCESS = 10.0  # errors that one unit of excess is worth: bounds come first
SMALL = 1e-9

# -- clusters --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tree:
    """`feature` (nodes,), -1 at a leaf; rows with z <= `threshold` go `left`, others `right`;
    `leaf` numbers the leaves."""

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    leaf: Ints

    @property
    def leaves(self) -> int:
        """How many."""
        return int((self.feature == NO_CHILD).sum())

    def codes(self, z: npt.NDArray[np.float32]) -> Ints:
        """The leaf of each row."""
        at, rows = np.zeros(len(z), np.intp), np.arange(len(z))
        while (inner := self.feature[at] != NO_CHILD).any():
            some = rows[inner]
            node = at[some]
            down = z[some, self.feature[node]] <= self.threshold[node]
            at[some] = np.where(down, self.left[node], self.right[node])
        return np.asarray(self.leaf[at])


@dataclass(frozen=True, eq=False)
class Clusters:
    """`centre` (width,) and `axes` (width, numbers) of the coded features; one tree a label."""

    centre: Floats
    axes: Floats
    trees: tuple[Tree, ...]

    @cached_property
    def count(self) -> int:
        """How many clusters."""
        return sum(tree.leaves for tree in self.trees)

    @cached_property
    def labels(self) -> Ints:
        """The label code of each cluster."""
        return np.repeat(np.arange(len(self.trees)), [tree.leaves for tree in self.trees])

    def codes(self, features: Floats, labels: Ints) -> Ints:
        """The cluster of each row, from coded features (rows, width) and label codes."""
        z = self.numbers(features)
        out, first = np.zeros(len(z), np.intp), 0
        for label, tree in enumerate(self.trees):
            at = labels == label
            out[at] = first + tree.codes(z[at])
            first += tree.leaves
        return out

    def numbers(self, features: Floats) -> npt.NDArray[np.float32]:
        """What the trees split."""
        return np.asarray((features - self.centre) @ self.axes, np.float32)


def leaves_for(rows: int, classes: int, groups: int, deviation: float) -> int:
    """How many clusters, from public facts alone. `deviation`: of the noise of one count.

    >>> (
    ...     leaves_for(1994, 2, 2, 1.36),
    ...     leaves_for(1994, 2, 2, 14.1),
    ...     leaves_for(30_000, 2, 2, 1.36),
    ...     leaves_for(20, 2, 2, 14.1),
    ... )
    (183, 17, 1024, 2)
    """
    each = max(float(FEWEST), DEVIATIONS * deviation * max(1.0, groups / 2.0))
    return int(max(classes, min(MOST, rows / each)))


def grown_clusters(features: Floats, labels: Ints, classes: int, leaves: int) -> Clusters:
    """Clusters of these public rows, `leaves` of them or fewer, shared among labels as their rows
    are."""
    centre, spread = features.mean(axis=0), features.std(axis=0)
    inverse = np.where(spread > 1e-12, 1.0 / np.where(spread > 1e-12, spread, 1.0), 0.0)
    white = (features - centre) * inverse
    components, score = _components(white), _score(white, labels)
    axes = inverse[:, np.newaxis] * np.concatenate([components, score], axis=1)
    z = Clusters(centre, axes, ()).numbers(features)
    weights = np.ones(z.shape[1])
    weights[: components.shape[1]] = 1.0 / math.sqrt(max(1, white.shape[1]))
    deviations = np.maximum(z.std(axis=0)[components.shape[1] :], 1e-12)
    weights[components.shape[1] :] = SCORE / deviations / math.sqrt(max(1, score.shape[1]))
    sizes = np.bincount(labels, minlength=classes).tolist()
    shares = [max(1, int(leaves * size / max(1, len(labels)))) for size in sizes]
    trees = (_tree(z[labels == k], weights, share) for k, share in enumerate(shares))
    return Clusters(centre, axes, tuple(trees))


def _components(white: Floats) -> Floats:
    """Leading eigenvectors of the features' correlations, (width, numbers); signs fixed."""
    values, vectors = np.linalg.eigh(white.T @ white / max(1, len(white)))
    kept = vectors[:, ::-1][:, :COMPONENTS][:, values[::-1][:COMPONENTS] > 1e-9]
    signs = np.sign(kept[np.abs(kept).argmax(axis=0), np.arange(kept.shape[1])])
    return np.asarray(kept * signs)


def _score(white: Floats, labels: Ints) -> Floats:
    """Directions (width, scores) of a logistic regression of the label: a public score, which never
    sees a group."""
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(labels)) < 2:
        return np.zeros((white.shape[1], 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = LogisticRegression(max_iter=200).fit(white, labels)
    return np.asarray(found.coef_.T, np.float64)


def _tree(z: npt.NDArray[np.float32], weights: Floats, leaves: int) -> Tree:
    """Best-first, by the variance of z that a split takes away."""
    from sklearn.tree import DecisionTreeRegressor

    if leaves < 2 or len(z) < 2 * FEWEST or not z.shape[1]:
        one = np.array([NO_CHILD])
        return Tree(one, np.zeros(1), one, one, np.zeros(1, np.intp))
    limits = {"max_leaf_nodes": leaves, "min_samples_leaf": max(2, len(z) // (4 * leaves))}
    made: Any = DecisionTreeRegressor(random_state=0, **limits).fit(z, z * weights).tree_
    is_leaf = made.children_left == NO_CHILD
    leaf = np.where(is_leaf, np.cumsum(is_leaf) - 1, NO_CHILD)
    arrays = (np.where(is_leaf, NO_CHILD, made.feature), made.children_left, made.children_right)
    feature, left, right = (np.asarray(array, np.intp) for array in arrays)
    return Tree(feature, np.where(is_leaf, 0.0, made.threshold), left, right, np.asarray(leaf))


# -- the release -----------------------------------------------------------------------------------


def plan_groups(promise: Promise, cells: Cells) -> CountPlan:
    """The least noise that keeps the promise at delta 0, of sensitive features alone."""
    require_public_features(promise)
    return plan_counts(promise, cells, rows=promise.rows_per_unit, pure=True)


def require_public_features(promise: Promise) -> None:
    """An error where rows are protected: clusters would be made of what is private."""
    if promise.protects != "sensitive_features":
        raise PrivacyError.expected(
            "'sensitive_features'",
            of="protects",
            got=promise.protects,
            remedy="Clusters are made of features and labels, which must be public: pass "
            "protects='sensitive_features'.",
        )


def release_groups(
    curator: Curator,
    attached: Attached,
    plan: CountPlan,
    sizes: Floats,
    reports: Reports | None = None,
) -> GroupCounts:
    """Ask once. `sizes`: the public number of rows of each cluster; `reports`: what the groups of
    the rows are."""
    found = plan.release(curator, attached, PURPOSE, totals=sizes)
    return GroupCounts(found.raw, sizes, found.noise, reports)


@dataclass(frozen=True, eq=False)
class Parts:
    """An estimated number of `members` of each cluster: `noises` (noises, clusters), by how much it
    moves with each noise, and `spread` (clusters,), by how much with one row's recorded group,
    where that is by chance."""

    members: Floats
    noises: Floats
    spread: Floats


@dataclass(frozen=True, eq=False)
class GroupCounts(Counted):
    """Released counts (cells, clusters), unbiased; their totals are the public sizes of the
    clusters. `reports`: how the counted groups come from the true ones, None where they are the
    same."""

    totals: Floats
    reports: Reports | None = None

    @property
    def sizes(self) -> Floats:
        """The number of rows of each cluster."""
        return self.totals

    @cached_property
    def estimates(self) -> Floats:
        """Unbiased counts of the true groups, (cells, clusters)."""
        return self.raw if self.reports is None else np.asarray(self.reports.undone @ self.raw)

    def parts(self, cells: Bools) -> Parts:
        """How many members there are of `cells` (cells, clusters), and what that estimate is made
        of."""
        undone = np.eye(len(self.raw)) if self.reports is None else self.reports.undone
        adds = undone.T @ cells  # of a recorded group, in each cluster
        # All groups of a cluster together are its public size, which has no noise.
        everybody = cells.all(axis=0)
        members = np.where(everybody, self.sizes, (adds * self.raw).sum(axis=0))
        # Of two groups one is counted, and the other is the public rest: one noise, with opposite
        # signs.
        noises = (adds[:1] - adds[1:]) if self.one_group else adds
        spread = np.zeros(len(self.sizes))
        if self.reports is not None:
            spread = adds.max(axis=0) - adds.min(axis=0)
        return Parts(members, np.where(everybody, 0.0, noises), np.where(everybody, 0.0, spread))

    @cached_property
    def memberships(self) -> Floats:
        """P(group | cluster), (clusters, cells), of the nearest possible counts: not negative, with
        the public sizes. A cluster without rows has the shares of all rows."""
        found = onto_totals(self.estimates[:, np.newaxis, :], self.sizes[np.newaxis])[:, 0, :]
        whole = found.sum(axis=1)
        alike = (whole / max(float(whole.sum()), 1e-300))[:, np.newaxis]
        filled = np.where(self.sizes > 0, found, alike)
        return np.asarray((filled / np.where(self.sizes > 0, self.sizes, 1.0)).T)


# -- rates -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SoftValue:
    """A constraint's value, made of rates: the estimate, the interval over the noise, the deviation
    by chance within clusters, and the widest bounds."""

    name: str
    bound: float
    value: float
    low: float
    high: float
    within: float
    lowest: float
    highest: float


TURNED = [0, 2, 1, 3, 5, 4]  # of a rate that is taken away


def soft_values(
    counts: GroupCounts,
    codes: Ints,
    labels: Ints,
    law: Floats,
    system: ConstraintSystem,
    probability: float,
) -> list[SoftValue]:
    """Every constraint's value of decisions with these probabilities (rows, classes). `codes`: the
    cluster of each row; `labels` (clusters,): its label; `probability`: of an interval that fails,
    for all rates together."""
    cells, classes, decisions = system.shape
    # All rates hold together by the union bound.
    rates, each = [], probability / max(1, system.numerators.shape[0])
    for at, event in enumerate(system.event_of.tolist()):
        members = system.members[[event]].toarray().reshape(cells, classes) > 0
        told = system.numerators[[at]].toarray().reshape(cells, classes, decisions).max(axis=0)
        rates.append(_rate(counts, codes, law, members[:, labels], told[labels], each))
    out = []
    coefficients = system.coefficients.toarray()
    for name, bound, line in zip(system.names, system.bounds.tolist(), coefficients, strict=True):
        terms = [(float(c), rate) for c, rate in zip(line, rates, strict=True) if c]
        ends: Floats = np.zeros(len(TURNED))
        for c, found in terms:
            ends = ends + c * (found if c > 0 else found[TURNED])
        ends[3] = sum(abs(c) * found[3] for c, found in terms)
        out.append(SoftValue(name, bound, *map(float, ends)))
    return out


def _rate(
    counts: GroupCounts,
    codes: Ints,
    law: Floats,
    cells: Bools,
    outcome: Floats,
    probability: float,
) -> Floats:
    """One rate: value, low, high, within, lowest, highest. Of members `cells` (cells, clusters),
    counting decisions `outcome` (clusters, classes)."""
    q, sizes = np.clip((law * outcome[codes]).sum(axis=1), 0.0, 1.0), counts.sizes
    mean = np.bincount(codes, weights=q, minlength=len(sizes)) / np.maximum(sizes, 1.0)
    parts = counts.parts(cells)
    m = parts.members
    total = float(m.sum())
    if total <= 0:
        return np.array([math.nan, 0.0, 1.0, math.nan, 0.0, 1.0])
    value = float(m @ mean) / total
    low, high = _interval(counts, parts, mean, value, probability)
    squares = np.bincount(codes, weights=(q - mean[codes]) ** 2, minlength=len(sizes))
    likely = np.clip(m, 0.0, sizes)
    # The variance of a sample without replacement: which of a cluster's rows are members is what
    # nobody released.
    drawn = likely * (sizes - likely) / np.maximum(sizes - 1.0, 1.0)
    within = math.sqrt(float((drawn * squares / np.maximum(sizes, 1.0)).sum())) / total
    width = _widths(counts, parts, probability)
    least, most = np.clip(m - width, 0.0, sizes), np.clip(m + width, 0.0, sizes)
    lowest, highest = (_extreme(one, codes, least, most) for one in (1.0 - q, q))
    return np.array([value, low, high, within, 1.0 - lowest, highest])


def _widths(counts: GroupCounts, parts: Parts, probability: float) -> Floats:
    """By how much the members of each cluster may be off: all clusters together with this
    probability at most."""
    by_chance = bool(parts.spread.any())
    each = probability / 2.0 if by_chance else probability
    noisy = int((parts.noises != 0).sum())
    width = np.abs(parts.noises).sum(axis=0) * (counts.noise.tail(each / noisy) if noisy else 0.0)
    if by_chance:  # flips are independent coins: Hoeffding, a cluster after another
        flips = counts.sizes / 2.0 * math.log(2.0 * len(counts.sizes) / each)
        width = width + parts.spread * np.sqrt(flips)
    return np.asarray(width)


def _interval(
    counts: GroupCounts, parts: Parts, mean: Floats, value: float, probability: float
) -> tuple[float, float]:
    """The outermost rates that noise of this law, and flips, can explain: on a grid, and between
    its points by halving."""
    m, noise = parts.members, counts.noise
    if (noise.kind == "none" or not parts.noises.any()) and not parts.spread.any():
        return value, value
    noises = parts.noises if noise.kind != "none" else parts.noises[:0]
    by_chance = counts.sizes * parts.spread**2 / 8.0

    def fits(rates: Floats) -> Bools:
        weights = mean[np.newaxis] - rates[:, np.newaxis]
        tail = _tail(weights, noises, by_chance, noise.scale, probability)
        return np.asarray(np.abs(weights @ m) <= tail)

    rates, inside = np.linspace(0.0, 1.0, GRID), min(1.0, max(0.0, value))
    found = np.append(rates[fits(rates)], inside)
    ends = np.array([found.min(), found.max()])
    below = max(0, np.searchsorted(rates, ends[0]) - 1)
    above = min(GRID - 1, np.searchsorted(rates, ends[1], "right"))
    outer = np.array([rates[below], rates[above]])
    for _ in range(HALVED):
        middle = (ends + outer) / 2.0
        good = fits(middle)
        ends, outer = np.where(good, middle, ends), np.where(good, outer, middle)
    return float(outer[0]), float(outer[1])


def _tail(
    weights: Floats, noises: Floats, by_chance: Floats, scale: float, probability: float
) -> Floats:
    """For each line w: t with P(|sum_c w_c (sum_j d_jc Z_jc + F_c)| > t) <= probability: Z
    independent discrete Laplace, d `noises`, and F_c a sum of the chance of rows, each between
    bounds; `by_chance`: their squared spreads / 8, added.

    Chernoff:  t = min over s of (sum_jc log E exp(s w_c d_jc Z) + s^2 sum_c w_c^2 by_chance_c + log
    2 / probability) / s, E exp(u Z) = (1 - r)^2 / ((1 - r e^u) (1 - r e^-u)),  r = exp(-1 / scale).
     Without noise the best s is known.
    """
    squares, log = (weights**2) @ by_chance, math.log(2.0 / probability)
    if not noises.any():
        return np.asarray(2.0 * np.sqrt(squares * log))  # the minimum of s x squares + log / s
    r = math.exp(-1.0 / scale)
    largest = np.maximum(np.abs(weights[:, np.newaxis, :] * noises).max(axis=(1, 2)), 1e-12)
    best = np.full(len(weights), np.inf)
    for part in np.linspace(0.0, 1.0, TILTS + 2)[1:-1] ** 2:
        s = part / scale / largest
        logs = s**2 * squares
        for line in noises:
            u = s[:, np.newaxis] * weights * line
            each = 2.0 * math.log1p(-r) - np.log1p(-r * np.exp(u)) - np.log1p(-r * np.exp(-u))
            logs = logs + each.sum(axis=1)
        best = np.minimum(best, (logs + log) / s)
    return best


def _extreme(q: Floats, codes: Ints, least: Floats, most: Floats) -> float:
    """The largest mean of q over members, of whom each cluster has between `least` and `most`
    (Dinkelbach, by halving)."""
    order = np.lexsort((-q, codes))
    ordered, clusters = q[order], codes[order]
    rank = np.arange(len(q)) - np.searchsorted(clusters, np.arange(len(least)))[clusters]
    # how much of a row must be taken, best rows first, and how much may be
    sure = np.clip(least[clusters] - rank, 0.0, 1.0)
    free = np.clip(most[clusters] - rank, 0.0, 1.0)
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        r = (low + high) / 2.0
        gain = ordered - r
        # At a guess r of the mean: rows above it as far as they may be taken, those below as far as
        # they must.
        low, high = (r, high) if float(np.where(gain > 0, free, sure) @ gain) >= 0 else (low, r)
    return high


# -- the search ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Soft:
    """Public rows with memberships (`rows.members`), and constraints at their counts."""

    rows: PublicRows
    system: ConstraintSystem
    fixed: FixedCounts

    @staticmethod
    def of(rows: PublicRows, system: ConstraintSystem) -> Soft:
        """Counts of each cell and label are sums of memberships; at least a part of a row."""
        counts = [rows.members[rows.labels == k].sum(axis=0) for k in range(rows.classes)]
        return Soft(rows, system, system.at(np.stack(counts, axis=1), 0.5))

    def histogram(self, law: Floats) -> Floats:
        """Of decisions with probabilities (rows, classes): (cells, labels, classes)."""
        of_label = (self.rows.labels == k for k in range(self.rows.classes))
        return np.stack([self.rows.members[at].T @ law[at] for at in of_label], axis=1)

    def error(self, law: Floats) -> float:
        """The share of rows decided wrong."""
        return float(self.rows.weights @ (1.0 - law[np.arange(len(law)), self.rows.labels]))

    def values(self, law: Floats) -> Floats:
        """Each constraint's value."""
        return self.fixed.values(self.histogram(law))

    @property
    def aims(self) -> Floats:
        """What the path drives values to: 0 for differences of rates, whose coefficients sum to
        0."""
        sums = np.asarray(self.system.coefficients.sum(axis=1)).ravel()
        return np.where(np.abs(sums) < SMALL, 0.0, self.system.bounds)


@dataclass(frozen=True, eq=False)
class Candidates:
    """What each candidate does: `errors` (candidates,), `values` (candidates, constraints) at the
    memberships."""

    errors: Floats
    values: Floats

    @staticmethod
    def of(soft: Soft, laws: Sequence[Floats]) -> Candidates:
        """Of their probabilities of decisions about the public rows."""
        errors = np.array([soft.error(law) for law in laws])
        return Candidates(errors, np.array([soft.values(law) for law in laws]))

    def mixture(self, bounds: Floats) -> tuple[Floats, float]:
        """The best shares (candidates,), and by how much the most broken bound had to give."""
        shares, _ = best_mixture(self.errors, self.values, bounds, worth=EXCESS)
        kept = np.where(shares < 1e-6, 0.0, shares)
        shares = kept if (kept == shares).all() else kept / kept.sum()
        over = float((shares @ self.values - bounds).max(initial=0.0))
        return shares, over if over > SMALL else 0.0

    def single(self, bounds: Floats) -> tuple[Floats, float]:
        """The same with one candidate alone: that of the least error among those that keep the
        bounds best."""
        excess = np.maximum(self.values - bounds, 0.0).max(axis=1, initial=0.0)
        j = int(np.lexsort((self.errors, np.where(excess <= SMALL, 0.0, excess)))[0])
        return np.eye(len(excess))[j], float(excess[j])


def path(soft: Soft) -> list[Floats]:
    """Linear models (outputs, k) in whitened coordinates, from the one without constraints to the
    most constrained."""
    rows = soft.rows
    zeros = np.zeros((rows.classes, rows.classes))[rows.labels]
    out = [rows.descended(np.zeros((rows.outputs, rows.design.shape[1])), zeros, FIRST_STEPS)]
    for penalty in PENALTIES if len(soft.system) else ():
        out.append(rows.down(out[-1], _penalised(soft, penalty), STEPS))
    if rows.outputs == 1:
        intercept = np.eye(1, rows.design.shape[1])
        out += [v + shift * intercept for v in out for shift in SHIFTS]
    return out


def _penalised(soft: Soft, penalty: float) -> Callable[[Floats], tuple[float, Floats]]:
    rows, fixed, aims = soft.rows, soft.fixed, soft.aims

    def loss(scores: Floats) -> tuple[float, Floats]:
        value, slopes = log_losses(scores, rows.labels, rows.weights)
        if rows.outputs == 1:
            second = expit(SHARP * scores[:, 0])
            q = np.column_stack([1.0 - second, second])
        else:
            q = softmax(SHARP * scores, axis=1)
        excess = np.maximum(fixed.values(soft.histogram(q)) - aims, 0.0)
        pulls = rows.costs(fixed.cell_costs(2.0 * penalty * excess))
        pulled = SHARP * q * (pulls - (q * pulls).sum(axis=1, keepdims=True))
        pulled = pulled[:, 1:] if rows.outputs == 1 else pulled
        return value + penalty * float(excess @ excess), slopes + pulled

    return loss


def constants(soft: Soft) -> list[tuple[int, Floats]]:
    """One class for everybody."""
    shape = (len(soft.rows.labels), soft.rows.classes)
    return [(k, np.broadcast_to(one, shape)) for k, one in enumerate(np.eye(soft.rows.classes))]
