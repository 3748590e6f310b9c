"""Post-processing (Jagielski et al. 2019, Section 3; Hardt, Price and Srebro 2016): one private count
of how a finished model decides by group and label, and a linear program that changes decisions by
group so that rate constraints hold at the least error.

    N[c, y, j] = number of rows (sum of weights) of group cell c and label y on which the base
    decides j

or whose score of the base is in bin j: a row is in one bin, so both cost the same. With p[c, j, k]
the probability that k is decided there,

    minimise    error(p) = 1 - sum_{c, y, j} N[c, y, j] p[c, j, y] / n
    such that   value_i(p) <= bound_i + slack_i  for every constraint i,   sum_k p[c, j, k] = 1,   p >= 0

where values are those of the histogram H[c, y, k] = sum_j N[c, y, j] p[c, j, k], linear in p: (1)
of the paper. What differs from it:

    the paper                               here
    protects the sensitive attribute        or the record; any number of groups, columns, classes
    Laplace noise on frequencies            discrete Laplace or Gaussian on counts; of two groups one
    equalized odds of decisions             any rate constraints; thresholds on a score, too
    slack from a bound before the release   slack (optional) and bounds from the noise of this release
    counts as they are                      possible counts; small groups are filled up (`filled`)

Of scores the unknowns are weights of thresholds (`Tables`), so that no table follows the noise of a
single bin. There is always a solution: counts are not negative, and where constraints contradict
each other the least uniform excess is found first. Among optimal tables one that changes few
decisions is taken, by a cost of `TIE` a changed decision; of thresholds for one group or two, those
without chance are taken where chance would gain less than `CHANCE` of error.

Theorem 3.1 as numbers for one fit: the noise of the counts is independent of the rows and its law
is known. Half of 1 - confidence is spent on a box in which all true counts lie (of thresholds: on
how far sums of first or last bins wander in each cell and label), half on the sum of all of it.
Where both hold, so do all bounds below, for every table at once (docs/post_processing.md).

Guarantees (tests/methods/test_methods_postprocess.py):
1. `Released` holds noisy counts and what is public, never an exact count of what is protected, and
   all that follows is arithmetic on it.
2. With probability at least `confidence` over the noise, every constraint's exact training value is
   at most its `value_bounds`, the exact training error at most `error_bound`, and it exceeds that
   of the best table without noise for the same bounds by at most `excess_bound`: all at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse

from .._types import Floats
from ..core.events import Event
from ..core.promise import Promise
from ..curator import Attached, Curator
from ..errors import InputError
from ..facts import Cells
from ..fairness import ConstraintSystem, deviations
from ..show.bounds import Bound, bounds, points
from ..show.numbers import bound
from ..show.parts import Column, Part, Shown, Table
from . import score_bins
from .comparison import Comparison, DecisionTable, Free, Limits
from .counts import (
    Counted,
    CountPlan,
    onto_totals,
    plan_counts,
    possible_counts,
)
from .duals import aims

ANOTHER = 0.2
"""Of the errors of a table's values: what those of one further inside may be larger by, and more."""
TIE = 1e-6
FLOOR = 4.0
"""A group with a label is taken to have at least so many standard deviations of its count's
noise."""
NODES, MOST_ENTRIES = 50_000, 400
"""Of the branch and bound for tables without chance, over the size of the table: a limit that no
clock moves; and entries of a table that is searched for."""
MOST_TRIED = 1 << 22
FEASIBLE = 1e-9
CHANCE = 5e-4
"""Of error: less is no reason to randomize, where thresholds without it can all be tried."""

# -- the release -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Released(Counted):
    """The counts (cells, labels, answers) as they were released. `rows`: their number (the sum of
    weights), where public; `edges`: of the bins of the base's score that are the answers, None
    where these are its decisions."""

    rows: float | None
    edges: Floats | None = None

    @cached_property
    def counts(self) -> Floats:
        """The nearest possible counts: not negative, and of the known totals. Of bins, whose zeros
        would add up: those that keep each group's number, too."""
        if self.edges is not None:
            return possible_counts(self.raw, self.totals) if self.noise.sd else self.raw
        return (
            np.maximum(self.raw, 0.0) if self.totals is None else onto_totals(self.raw, self.totals)
        )


def plan(
    promise: Promise,
    cells: Cells | None,
    spent: Iterable[Event] = (),
    *,
    weighted: bool = False,
    looked_at: bool = False,
) -> CountPlan:
    """The least noise of the counts that keeps the promise beside what the base spent; see
    `counts.plan_counts`."""
    return plan_counts(
        promise,
        cells,
        reads_groups=cells is not None,
        rows=promise.rows_per_unit,
        spent=spent,
        looked_at=looked_at,
        weighted=weighted,
    )


def release(
    curator: Curator,
    attached: Attached,
    plan: CountPlan,
    max_sample_weight: float | None = None,
    edges: Floats | None = None,
) -> Released:
    """Ask, and put the answer together. `max_sample_weight`: the cap, where rows have weights.
    `edges`: of attached codes."""
    what = "base decision" if edges is None else "score"
    purpose, most = f"rows by group, label and {what}", max_sample_weight or 1.0
    found = plan.release(curator, attached, purpose, by_label=True, largest_weight=most)
    rows = None if found.totals is None else float(found.totals.sum())
    if rows is None and not plan.promise.is_private:
        rows = float(found.raw.sum())
    elif rows is None and plan.promise.rows_are_public and max_sample_weight is None:
        rows = float(curator.public_rows)
    return Released(found.raw, found.totals, found.noise, rows, edges)


# -- the linear program ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tables:
    """Allowed tables of `shape` (cells, answers, classes). A solver's unknowns are weights, at
    least 0, of which some add up to 1:

        any        p[c, j, k] itself, for each c and j
        thresholds w[c, t] for each c, t = 0..bins: the second class is decided from bin t on, so
                   p[c, j, 1] = sum_{t <= j} w[c, t]

    A mixture of thresholds never decides for the second class less often where the score is larger.
    `usual`: of thresholds, that of the base itself; None: any table. `shared`: one for all cells,
    which does not read the group."""

    shape: tuple[int, int, int]
    usual: int | None = None
    shared: bool = False

    @property
    def parts(self) -> int:
        """How many tables are chosen: one a cell, or one for all."""
        return 1 if self.shared else self.shape[0]

    @cached_property
    def base(self) -> Floats:
        """The base's own decisions."""
        _, answers, classes = self.shape
        j = np.arange(answers)
        chosen = j if self.usual is None else (j >= self.usual).astype(np.intp)
        return np.broadcast_to(np.eye(classes)[chosen], self.shape)

    @cached_property
    def sums(self) -> Any:
        """Which unknowns add up to 1, (sums, unknowns)."""
        _, answers, classes = self.shape
        lines, each = (self.parts * answers, classes)
        if self.usual is not None:
            lines, each = self.parts, answers + 1
        return sparse.kron(sparse.eye_array(lines), np.ones((1, each)), format="csr")

    @property
    def unknowns(self) -> int:
        """How many."""
        return int(self.sums.shape[1])

    @cached_property
    def spread(self) -> Any:
        """The table of the unknowns, (cells x answers x classes, unknowns)."""
        cells, answers, classes = self.shape
        one: Any = sparse.eye_array(answers * classes)
        if self.usual is not None:
            above = (np.arange(answers + 1) <= np.arange(answers)[:, np.newaxis]).astype(np.float64)
            one = np.stack([1.0 - above, above], axis=1).reshape(answers * classes, answers + 1)
        repeated = np.ones((cells, 1)) if self.shared else sparse.eye_array(cells)
        return sparse.csr_array(sparse.kron(repeated, one))

    @cached_property
    def changed(self) -> Floats:
        """What each unknown changes of the base's decisions, (unknowns,): a little different for
        each, so that one table is best among equal ones."""
        _, answers, classes = self.shape
        if self.usual is None:
            c, j, k = np.indices((self.parts, answers, classes))
            apart = 1.0 + 0.1 * c / self.parts + 0.01 * (k + 1) / classes + 0.001 * j / answers
            return np.asarray(np.where(j != k, apart, 0.0) / (self.parts * answers)).ravel()
        c, t = np.indices((self.parts, answers + 1))
        apart = 1.0 + 0.1 * c / self.parts + 0.01 * (t > self.usual)
        return np.asarray(apart * np.abs(t - self.usual) / (self.parts * answers)).ravel()

    def table(self, unknowns: Floats) -> Floats:
        """The table, its rows probabilities to the last bit that sums allow."""
        exact = self.spread @ np.where(unknowns < 1e-9, 0.0, unknowns)
        p = np.clip(np.asarray(exact).reshape(self.shape), 0.0, 1.0)
        p = np.where(p < 1e-9, 0.0, p)
        return np.asarray(p / p.sum(axis=2, keepdims=True))


@dataclass(frozen=True, eq=False)
class Mixed:
    """A solution: `table` (cells, answers of the base, decisions), `pressures` (duals of the
    constraints, per unit of error), and `excess`, what had to be added to every bound because the
    constraints contradict each other (else 0). `inside`: what was aimed at, inside the bounds;
    None: the bounds."""

    table: Floats
    pressures: Floats
    excess: float
    inside: Floats | None = None


@dataclass(frozen=True, eq=False)
class Program:
    """The program at released counts. `rows` (constraints, cells x answers x decisions): values of
    a table; `cost`: its error less 1; `kept`: constraints that are defined (without noise, events
    may be empty); `limits`: their bounds and slacks."""

    tables: Tables
    rows: Any
    limits: Floats
    kept: npt.NDArray[np.bool_]
    cost: Floats

    @staticmethod
    def of(
        released: Released,
        system: ConstraintSystem,
        slack: Floats | float = 0.0,
        *,
        shared: bool = False,
    ) -> Program:
        """The program for these counts and constraints. `shared`: one table for all cells."""
        counts, classes = filled(released, system), system.shape[2]
        cells, labels, answers = counts.shape
        # The linear map from tables p[c, j, k] to histograms H[c, y, k].
        c, y, j, k = (axis.ravel() for axis in np.indices((*counts.shape, classes)))
        places = ((c * labels + y) * classes + k, (c * answers + j) * classes + k)
        size = (cells * labels * classes, cells * answers * classes)
        decided = sparse.csr_array((np.repeat(counts.ravel(), classes), places), shape=size)
        values = system.jacobian(counts.sum(axis=2)) @ decided
        kept = ~np.isnan(np.asarray(values.sum(axis=1)).ravel())
        # A decision for the label's own class saves one error: the error is 1 plus this.
        cost = -np.moveaxis(released.counts, 1, 2) / max(float(released.counts.sum()), 1e-300)
        limits = system.bounds + np.broadcast_to(np.asarray(slack, np.float64), system.bounds.shape)
        lines = sparse.csr_array(values)[np.flatnonzero(kept)]
        tables = tables_of(released, classes, shared=shared)
        return Program(tables, lines, limits[kept], kept, cost.ravel())

    def values(self, table: Floats) -> Floats:
        """Each constraint's value of a table; NaN where undefined."""
        out = np.full(len(self.kept), np.nan)
        out[self.kept] = self.rows @ table.ravel()
        return out

    def error(self, table: Floats) -> float:
        """The share of rows on which the decision is wrong, in expectation."""
        return float(1.0 + self.cost @ table.ravel())

    def excess(self, table: Floats) -> float:
        """How far a table is above the bounds, at most; 0 where it keeps them all."""
        return max(0.0, float((self.rows @ table.ravel() - self.limits).max(initial=0.0)))

    @cached_property
    def lines(self) -> Any:
        """Values of the unknowns."""
        return self.rows @ self.tables.spread

    @cached_property
    def costs(self) -> Floats:
        """Errors of the unknowns less 1, and far less for every changed decision."""
        return np.asarray(self.cost @ self.tables.spread + TIE * self.tables.changed)


def tables_of(released: Released, classes: int, *, shared: bool = False) -> Tables:
    """The tables that these counts can tell of."""
    cells, _, answers = released.raw.shape
    usual = None if released.edges is None else score_bins.usual(released.edges)
    return Tables((cells, answers, classes), usual, shared)


def filled(released: Released, system: ConstraintSystem) -> Floats:
    """Counts in which every group and label has at least a public number of rows, or every group
    where no constraint looks at labels: what lacks is added as all groups together have it. Without
    noise nothing is added.

    A group that may be empty then neither divides by zero nor rules the others by its noise.
    """
    counts = released.counts
    if not released.noise.sd:
        return counts
    axes = (2,) if system.needs_labels else (1, 2)  # of what a group is filled up to, and with
    sizes = counts.sum(axis=axes, keepdims=True)
    each = counts[0].size / sizes[0].size
    floor = max(1.0, FLOOR * released.noise.sd * math.sqrt(each))
    # What lacks is added as all groups together have it, so that it pulls no rate away from them.
    pooled, whole = counts.sum(axis=0, keepdims=True), sizes.sum(axis=0, keepdims=True)
    alike = sizes[0].size / counts[0].size
    shares = np.where(whole > 0, pooled / np.where(whole > 0, whole, 1.0), alike)
    return np.asarray(counts + np.maximum(floor - sizes, 0.0) * shares)


def solve(program: Program) -> Mixed:
    """The best table. `excess` is above 0 where no table keeps the constraints: it is then the
    least that all must give."""
    found, excess = _best(program)
    pressures = np.zeros(len(program.kept))
    pressures[program.kept] = -found.ineqlin.marginals if len(program.limits) else 0.0
    table = program.tables.table(found.x)
    single = _single_thresholds(program, excess)
    # A threshold without chance is easier to explain: it is taken where chance gains next to
    # nothing.
    if single is not None and program.error(single) <= program.error(table) + CHANCE:
        table = single
    return Mixed(table, np.maximum(pressures, 0.0), excess)


def least_error(program: Program) -> float:
    """The error of the best table; NaN where no table keeps the constraints."""
    found = _linear(program, np.asarray(program.cost @ program.tables.spread), program.limits)
    return math.nan if found is None else float(1.0 + found.fun)


def _best(program: Program) -> tuple[Any, float]:
    """HiGHS's solution, and the least excess with which there is one."""
    found = _linear(program, program.costs, program.limits)
    if found is not None:
        return found, 0.0
    width, sums = program.tables.unknowns, program.tables.sums
    least: Any = optimize.linprog(
        np.append(np.zeros(width), 1.0),
        A_ub=_beside(program.lines, -1.0),
        b_ub=program.limits,
        A_eq=_beside(sums, 0.0),
        b_eq=np.ones(sums.shape[0]),
        bounds=[(0.0, 1.0)] * width + [(0.0, None)],
        method="highs",
    )
    if not least.success:
        raise _unsolved(least.message)
    excess = float(least.fun)
    found = _linear(program, program.costs, program.limits + excess + FEASIBLE)
    if found is None:
        raise _unsolved("the least excess was not enough")
    return found, excess


def _linear(program: Program, cost: Floats, limits: Floats) -> Any:
    """HiGHS's solution, or None where there is none. `cost`: of the unknowns."""
    some, sums = len(limits) > 0, program.tables.sums
    found: Any = optimize.linprog(
        cost,
        A_ub=program.lines if some else None,
        b_ub=limits if some else None,
        A_eq=sums,
        b_eq=np.ones(sums.shape[0]),
        bounds=(0.0, 1.0),
        method="highs",
    )
    if found.success:
        return found
    if found.status == 2:
        return None
    raise _unsolved(found.message)


def _unsolved(message: str) -> InputError:
    remedy = "Ask for larger bounds, or report the constraints with this message."
    return InputError.expected(
        "a program that HiGHS solves", of="constraints", got=message, remedy=remedy
    )


def _beside(lines: sparse.csr_array, value: float) -> Any:
    """One more column, of one value."""
    column = sparse.csr_array(np.full((lines.shape[0], 1), value))
    return sparse.csr_array(sparse.hstack([sparse.csr_array(lines), column]))


def _single_thresholds(program: Program, excess: float) -> Floats | None:
    """The best table of one threshold a group, of one group or two; None where none is within
    bounds, or too many."""
    allowed = program.tables
    each = allowed.unknowns // allowed.sums.shape[0]
    if (
        allowed.usual is None
        or allowed.parts > 2
        or len(program.limits) * each**allowed.parts > MOST_TRIED
    ):
        return None
    values = np.asarray(program.lines.toarray()).reshape(-1, allowed.parts, each)
    costs = program.costs.reshape(allowed.parts, each)
    over, cost = values[:, 0] - program.limits[:, np.newaxis], costs[0]
    if allowed.parts == 2:
        over = over[:, :, np.newaxis] + values[:, 1, np.newaxis, :]
        cost = cost[:, np.newaxis] + costs[1]
    broken = over.max(axis=0, initial=-np.inf) > excess + FEASIBLE
    if broken.all():
        return None
    cost = np.where(broken, np.inf, cost)
    chosen = np.unravel_index(int(cost.argmin()), cost.shape)
    return allowed.table(np.eye(each)[list(chosen)].ravel())


def deterministic(program: Program) -> Mixed:
    """The best table of zeros and ones: the least excess over the bounds first, then the least
    error (mixed-integer programs).

    Every group and base decision gets one class. With little freedom the best may be one class for
    everybody. Tables of more than `MOST_ENTRIES` entries are not searched for: the best of one
    class for all, the base's own decisions and the likeliest classes of the best table of chances;
    likewise where a search ends without a proof (`NODES`), beside what it met.
    """
    allowed = program.tables
    width = allowed.unknowns // allowed.sums.shape[0]
    likeliest = _best(program)[0].x.reshape(-1, width).argmax(axis=1)
    tables = [np.broadcast_to(one, allowed.shape) for one in np.eye(allowed.shape[2])]
    tables += [allowed.base, allowed.table(np.eye(width)[likeliest].ravel())]
    # None of the simple tables keeps the bounds: first the least excess, then the least error at
    # it.
    if min(map(program.excess, tables)) > FEASIBLE:
        lines = optimize.LinearConstraint(_beside(program.lines, -1.0), -np.inf, program.limits)
        ends = optimize.LinearConstraint(_beside(allowed.sums, 0.0), 1.0, 1.0)
        cost = np.append(np.zeros(allowed.unknowns), 1.0)
        tables += _integer(program, cost, [lines, ends])
    excess = min(map(program.excess, tables))
    within = [optimize.LinearConstraint(allowed.sums, 1.0, 1.0)]
    if len(program.limits):
        limits = program.limits + excess + FEASIBLE
        within.insert(0, optimize.LinearConstraint(program.lines, -np.inf, limits))
    tables += _integer(program, program.costs, within)
    best = min(
        (table for table in tables if program.excess(table) <= excess + 2.0 * FEASIBLE),
        key=lambda table: program.error(table) + TIE * float(np.abs(table - allowed.base).mean()),
    )
    return Mixed(np.array(best), np.zeros(len(program.kept)), excess)


def _integer(program: Program, cost: Floats, constraints: list[Any]) -> list[Floats]:
    """The best table of zeros and ones that was found, or none. Costs beyond the unknowns' are of
    numbers of at least 0."""
    width = program.tables.unknowns
    whole = np.arange(len(cost)) < width
    if width > MOST_ENTRIES:
        return []
    found: Any = optimize.milp(
        cost,
        constraints=constraints,
        integrality=whole.astype(np.intp),
        bounds=optimize.Bounds(0.0, np.where(whole, 1.0, np.inf)),
        options={"node_limit": max(1, NODES // width)},
    )
    return [] if found.x is None else [program.tables.table(np.rint(found.x[:width]))]


def best_table(
    released: Released,
    system: ConstraintSystem,
    confidence: float,
    *,
    with_slack: bool,
    shared: bool = False,
    by_chance: bool = True,
    judged: bool = True,
    heaviest: float | None = None,
) -> Mixed:
    """The best table, or the best without chance: inside the bounds by what a verdict "met" needs
    (`duals.aims`), where a table keeps that and it is `judged` by its own values; or its bounds
    loosened by `slacks`."""
    best = solve if by_chance else deterministic
    if with_slack:
        slack = slacks(released, system, confidence)
        return best(Program.of(released, system, slack, shared=shared))
    found = best(Program.of(released, system, shared=shared))
    if found.excess > FEASIBLE or not judged:
        return found
    counts = filled(released, system)
    histogram, rows = np.einsum("cyj,cjk->cyk", counts, found.table), counts.sum(axis=2)
    noise = value_noise(released, system, found.table)
    drawn = deviations(system, histogram, rows, heaviest=heaviest)
    # the value that is released is the one that is chosen; its errors are those of another table
    errors = noise, drawn, ANOTHER * np.hypot(noise, drawn)
    inside = aims(system, system.bounds, histogram, rows, 1e-300, errors)
    inner = best(Program.of(released, system, inside - system.bounds, shared=shared))
    return found if inner.excess > FEASIBLE else replace(inner, inside=inside)


# -- the bounds ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MixingGuarantee(Shown):
    """Bounds for one fit, on the training rows, about the distribution of its decisions, with
    probability `confidence` over the noise.

    `values`: each constraint's value at the released counts; `noise`: its standard deviation;
    `value_bounds`: what its exact value is at most. `error`, `error_bound`: the same of the error.
    `excess_bound`: how much larger the error is at most than that of the best table that knew the
    exact counts and kept the same bounds; NaN: no table is certain to keep them. Undefined values
    (without noise: of groups with no row) are NaN.
    """

    confidence: float
    names: tuple[str, ...]
    bounds: tuple[float, ...]
    values: tuple[float, ...]
    noise: tuple[float, ...]
    value_bounds: tuple[float, ...]
    error: float
    error_bound: float
    excess_bound: float

    @property
    def gap(self) -> float:
        """The largest value, at the released counts."""
        return max((value for value in self.values if not math.isnan(value)), default=0.0)

    @property
    def gap_bound(self) -> float:
        """What the largest exact value is at most."""
        return max((value for value in self.value_bounds if not math.isnan(value)), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is undefined is None."""
        values = asdict(self) | {"gap": self.gap, "gap_bound": self.gap_bound}
        return {name: _plain(value) for name, value in values.items()}

    def parts(self) -> Iterator[Part]:
        """The bounds, and what they are conditional on."""
        pairs = zip(self.value_bounds, self.bounds, strict=True)
        over = [value - most for value, most in pairs if not math.isnan(value)]
        no_table = "no table of chances is certain to keep the bounds"
        best = "error above that of the best table without noise"
        yield from bounds(
            self.confidence,
            f"every constraint's training value is at most {points(self.gap_bound)}",
            (
                Bound("largest value of a constraint", self.gap_bound, self.gap),
                Bound("furthest above its bound", max(0.0, max(over, default=0.0))),
                Bound("error", self.error_bound, self.error, "percent"),
                Bound(best, self.excess_bound, missing=no_table),
            ),
            "It is about expected rates, of the distribution of decisions: a single draw of all "
            "decisions varies around them.",
            "The base classifier is taken as it is: what it might have decided otherwise is not "
            "compared.",
        )
        columns = (
            Column("constraint", self.names),
            Column("released", self.values, "points"),
            Column("at most", tuple(f"{bound(one, 'points')} points" for one in self.value_bounds)),
        )
        yield Table(columns, "Training values")


def _plain(value: object) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def guarantee(
    released: Released,
    system: ConstraintSystem,
    table: Floats,
    confidence: float,
    *,
    shared: bool = False,
) -> MixingGuarantee:
    """The bounds for a table, whatever made it from the released counts. `shared`: it is one for
    all cells, as its rivals."""
    program = Program.of(released, system, shared=shared)
    slack, e = slacks(released, system, confidence), error_slack(released, confidence)
    values, error = program.values(table), program.error(table)
    if released.edges is None:
        most = _value_bounds(system, table, *released.box((1.0 - confidence) / 2.0))
    else:
        # none larger than rates between 0 and 1 allow
        largest = np.asarray(system.coefficients.maximum(0).sum(axis=1)).ravel()
        most = np.minimum(values + slack, largest)
    best = least_error(Program.of(released, system, slack, shared=shared))
    return MixingGuarantee(
        confidence=confidence,
        names=system.names,
        bounds=tuple(system.bounds.tolist()),
        values=tuple(values.tolist()),
        noise=tuple(value_noise(released, system, table).tolist()),
        value_bounds=tuple(np.where(program.kept, most, np.nan).tolist()),
        error=error,
        error_bound=min(1.0, error + e),
        excess_bound=math.nan if math.isnan(best) else min(1.0, max(0.0, error - best) + 2.0 * e),
    )


def slacks(released: Released, system: ConstraintSystem, confidence: float) -> Floats:
    """How far, for any table that is allowed, a constraint's value at the counts of the program is
    from its exact value: at most so.

    Any table: a rate over counts that are each off by at most w_i, M of them in the program, is off
    by at most (sum w_i - min w_i) / M. Thresholds: they add up whole ends of a histogram, so it is
    off by how far sums of first or last bins wander, over M (`Walks`). Without a row an event's
    rates are undefined, and the best table need not keep the constraint: where that may be so, the
    slack gives it up. With these slacks the best table of the exact counts is feasible (the paper's
    slack in (1), from our noise).
    """
    if not released.noise.sd:
        return np.zeros(len(system))
    counts = filled(released, system)
    if released.edges is None:
        low, high = released.box((1.0 - confidence) / 2.0)
        away = np.maximum(counts - low, high - counts).ravel()
        members = _members(system, counts.shape[2])
        added = float((counts - released.counts).sum())
        # Counts that were moved onto public totals may be off by twice as much: their own noise,
        # and what the move took.
        twice = 1.0 if released.totals is None else 2.0
        most = twice * _sum_of_noise(released, confidence) + added
        runs = zip(members.indptr[:-1], members.indptr[1:], strict=True)
        least = np.array([away[members.indices[a:b]].min(initial=math.inf) for a, b in runs])
        off, sizes = np.minimum(members @ away - least, most), members @ counts.ravel()
        empty = members @ low.ravel() <= 0
    else:
        members = system.members
        each, whole = _walks(released, confidence)
        wandered = np.minimum(np.asarray(members.sum(axis=1)).ravel() * each, whole)
        off = wandered + members @ _ends(counts - released.raw).ravel()
        sizes = members @ counts.sum(axis=2).ravel()
        empty = members @ released.raw.sum(axis=2).ravel() - wandered <= 0
    with np.errstate(divide="ignore"):
        off = np.minimum(1.0, off / sizes)
    sized = np.asarray(abs(system.coefficients) @ off[system.event_of])
    unsure = np.asarray((system.coefficients != 0) @ empty[system.event_of], bool)
    largest = np.asarray(abs(system.coefficients).sum(axis=1)).ravel()
    return np.where(unsure, np.maximum(sized, largest), sized)


def error_slack(released: Released, confidence: float) -> float:
    """|error at the released counts - exact error| for any table that is allowed, at most: of what
    counts are off by in all, over n, with n as small as it may be."""
    if not released.noise.sd:
        return 0.0
    if released.edges is None:
        off = away = _sum_of_noise(released, confidence)
        found = float(released.counts.sum())
    else:
        _, away = _walks(released, confidence)
        off = away + float(_ends(released.counts - released.raw).sum())
        found = float(released.raw.sum())
    n = released.rows if released.rows is not None else found - away
    return min(1.0, off / n) if n > 0 else 1.0


def _sum_of_noise(released: Released, confidence: float) -> float:
    return released.noise.sum_tail(released.independent, (1.0 - confidence) / 2.0)


def _walks(released: Released, confidence: float) -> tuple[float, float]:
    """How far the noise of sums of first or last bins wanders: each cell and label's at most, and
    all of them together."""
    cells, labels, bins = released.raw.shape
    independent = labels if released.one_group else cells * labels
    half = (1.0 - confidence) / 2.0
    each = released.noise.walk_tail(bins, 1, half / independent)
    whole = released.noise.walk_tail(bins, independent, half)
    return each, whole * (2.0 if released.one_group else 1.0)


def _ends(change: Floats) -> Floats:
    """The largest size that a sum of the first or of the last bins has, (cells, labels)."""
    first = np.cumsum(change, axis=2)
    last = first[:, :, -1:] - first
    return np.asarray(np.maximum(np.abs(first).max(axis=2), np.abs(last).max(axis=2)))


def _members(system: ConstraintSystem, answers: int) -> Any:
    """Which counts N[c, y, j] an event is about, (events, cells x labels x answers)."""
    return sparse.csr_array(sparse.kron(system.members, np.ones((1, answers)), format="csr"))


def _outcomes(system: ConstraintSystem, table: Floats) -> Any:
    """How likely a row of N[c, y, j] counts in a rate's numerator, (rates, cells x labels x
    answers)."""
    cells, labels, classes = system.shape
    answers = table.shape[1]
    c, y, j, k = (axis.ravel() for axis in np.indices((cells, labels, answers, classes)))
    values = np.broadcast_to(table[:, np.newaxis], (cells, labels, answers, classes)).ravel()
    places = ((c * labels + y) * classes + k, (c * labels + y) * answers + j)
    size = (cells * labels * classes, cells * labels * answers)
    return sparse.csr_array(system.numerators @ sparse.csr_array((values, places), shape=size))


def _value_bounds(system: ConstraintSystem, table: Floats, low: Floats, high: Floats) -> Floats:
    """The largest value in the box, each rate on its own: a sum of linear fractions."""
    members, outcomes = _members(system, table.shape[1]), _outcomes(system, table).tocsr()
    lows, highs = low.ravel(), high.ravel()
    ends = np.zeros((outcomes.shape[0], 2))
    for rate, event in enumerate(system.event_of.tolist()):
        places = members.indices[members.indptr[event] : members.indptr[event + 1]]
        q = np.asarray(outcomes[[rate]].toarray()).ravel()[places]
        most = _largest_rate(q, lows[places], highs[places])
        ends[rate] = 1.0 - _largest_rate(1.0 - q, lows[places], highs[places]), most
    signs = system.coefficients
    return np.asarray(signs.maximum(0) @ ends[:, 1] + signs.minimum(0) @ ends[:, 0])


def _largest_rate(q: Floats, low: Floats, high: Floats) -> float:
    """max sum N q / sum N over low <= N <= high: the counts of the largest q are large, those of
    the others small."""
    order = np.argsort(-q, kind="stable")
    q, low, high = q[order], low[order], high[order]
    # Infinity times a probability of 0 would be no number.
    high = np.where(np.isinf(high), 1e300, high)

    def cut(upper: Floats, lower: Floats) -> Floats:
        """Sums with the first ones at their upper ends and all others at their lower, for one cut
        after another: the best corner of the box is one of them."""
        ups = np.concatenate([[0.0], np.cumsum(upper)])
        return np.asarray(ups + np.append(np.cumsum(lower[::-1])[::-1], 0.0))

    tops, sizes = cut(high * q, low * q), cut(high, low)
    rates = tops[sizes > 0] / sizes[sizes > 0]
    if not len(rates):
        return float(q.max(initial=0.0))
    return float(min(1.0, max(0.0, rates.max(initial=0.0))))


def value_slopes(
    system: ConstraintSystem, outcomes: Any, sizes: Floats, rates: Floats, answers: int
) -> Any:
    """d values / d counts (cells x labels x answers), at these sizes of events and rates."""
    members = _members(system, answers)[system.event_of]
    slopes = sparse.diags_array(1.0 / sizes) @ (outcomes - sparse.diags_array(rates) @ members)
    return sparse.csr_array(system.coefficients @ slopes)


def value_noise(released: Released, system: ConstraintSystem, table: Floats) -> Floats:
    """The standard deviation of each value at the released counts, to first order."""
    sd = released.noise.sd
    if not sd:
        return np.zeros(len(system))
    counts, outcomes = filled(released, system).ravel(), _outcomes(system, table)
    sizes = _members(system, table.shape[1])[system.event_of] @ counts
    moves = value_slopes(system, outcomes, sizes, (outcomes @ counts) / sizes, table.shape[1])
    if released.one_group:
        # Of two groups with a public total one was released: the other has the same noise, with
        # the other sign.
        half = moves.shape[1] // 2
        moves = sparse.csr_array(moves[:, :half] - moves[:, half:])
    return np.asarray(sd * np.sqrt(np.asarray(moves.power(2).sum(axis=1)).ravel()))


# -- beside what costs nothing ---------------------------------------------------------------------


def compared(released: Released, system: ConstraintSystem, table: Floats) -> Comparison:
    """A table of chances (cells, answers of the base, decisions) beside the base itself, and beside
    constants: what the same counts say."""
    program, classes = Program.of(released, system), table.shape[-1]
    base, constants = program.tables.base, np.zeros((classes, *table.shape))
    for k in range(classes):
        constants[k, ..., k] = 1.0

    def noise(one: Floats) -> Floats:
        return value_noise(released, system, one)

    limits = Limits(
        program.values(table),
        system.bounds,
        noise(table),
        np.stack([program.values(one) for one in constants]),
        np.stack([noise(one) for one in constants]),
    )
    free = Free(None, _decided(released, base), program.values(base), noise(base))
    rows = max(float(released.counts.sum()), 1e-9)
    return Comparison(_decided(released, table), rows, limits, free)


def _decided(released: Released, table: Floats) -> DecisionTable:
    """How rows fall by label and decision. Where totals over groups are public, noise is in how
    rows divide among them."""
    counts = np.einsum("cyj,cjk->yk", released.counts, table)
    pulls = table if released.totals is None else table - table.mean(axis=0)
    if released.one_group:
        pulls = (table[0] - table[1])[np.newaxis]
    sizes = released.noise.sd * np.sqrt((pulls**2).sum(axis=(0, 1)))
    return DecisionTable(counts, np.broadcast_to(sizes, (len(counts), table.shape[-1])))
