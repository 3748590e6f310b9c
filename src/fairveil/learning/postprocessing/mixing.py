"""The linear program of post-processing: how decisions are changed, by group, so that rate
constraints hold at the least error.

With counts N[c, y, j] of group cell c, label y and answer j of the base (its decision, or the bin
of its score), and p[c, j, k] the probability that k is decided there,

    minimise    error(p) = 1 - sum_{c, y, j} N[c, y, j] p[c, j, y] / n
    such that   value_i(p) <= bound_i + slack_i  for every constraint i,   sum_k p[c, j, k] = 1,   p >= 0

where values are those of the histogram H[c, y, k] = sum_j N[c, y, j] p[c, j, k]
(`fairness.ConstraintSystem`): linear in p. This is (1) of Jagielski et al., with Hardt, Price and
Srebro (2016) inside; `tables` says which p are allowed. Everything here is post-processing of
`Released`.

Always a solution: counts are not negative, small groups are filled up (`filled`), and where the
constraints contradict each other the least uniform excess is found first. Among optimal tables one
that changes few decisions is taken, by a cost of `TIE` a changed decision. Of thresholds for one
group or two, those without chance are taken where chance would gain less than `CHANCE` of error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse

from ..._types import Floats
from ...errors import InputError
from ...fairness import ConstraintSystem
from . import score_bins
from .counting import Released
from .tables import Tables

Ints = npt.NDArray[np.intp]
TIE = 1e-6
FLOOR = 4.0
"""A group with a label is taken to have at least so many standard deviations of its count's
noise."""
# of the branch and bound for deterministic tables, over the size of the table: a limit that no
# clock moves
NODES = 50_000
MOST_ENTRIES = 400
MOST_TRIED = 1 << 22
FEASIBLE = 1e-9
CHANCE = 5e-4
"""Of error: less is no reason to randomize, where thresholds without it can all be tried."""


@dataclass(frozen=True, eq=False)
class Mixed:
    """A solution: `table` (cells, answers of the base, decisions), `pressures` (duals of the
    constraints, per unit of error), and `excess`, what had to be added to every bound because the
    constraints contradict each other (else 0)."""

    table: Floats
    pressures: Floats
    excess: float


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
        counts = filled(released, system)
        values = system.jacobian(counts.sum(axis=2)) @ _histogram_of_tables(counts, system.shape[2])
        kept = ~np.isnan(np.asarray(values.sum(axis=1)).ravel())
        # A decision for the label's own class saves one error: the error is 1 plus this.
        cost = -np.moveaxis(released.counts, 1, 2) / max(float(released.counts.sum()), 1e-300)
        limits = system.bounds + np.broadcast_to(np.asarray(slack, np.float64), system.bounds.shape)
        lines = sparse.csr_array(values)[np.flatnonzero(kept)]
        return Program(
            tables_of(released, system.shape[2], shared=shared),
            lines,
            limits[kept],
            kept,
            cost.ravel(),
        )

    def values(self, table: Floats) -> Floats:
        """Each constraint's value of a table; NaN where undefined."""
        out = np.full(len(self.kept), np.nan)
        out[self.kept] = self.rows @ table.ravel()
        return out

    def error(self, table: Floats) -> float:
        """The share of rows on which the decision is wrong, in expectation."""
        return float(1.0 + self.cost @ table.ravel())


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
    floor = max(1.0, FLOOR * released.noise.sd * math.sqrt(counts[0].size / sizes[0].size))
    # What lacks is added as all groups together have it, so that it pulls no rate away from them.
    pooled = counts.sum(axis=0, keepdims=True)
    whole = sizes.sum(axis=0, keepdims=True)
    shares = np.where(
        whole > 0, pooled / np.where(whole > 0, whole, 1.0), sizes[0].size / counts[0].size
    )
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


def deterministic(program: Program) -> Mixed:
    """The best table of zeros and ones: the least excess over the bounds first, then the least
    error (mixed-integer programs).

    Every group and base decision gets one class. With little freedom the best may be one class for
    everybody. Tables of more than `MOST_ENTRIES` entries are not searched for: the best of one
    class for all, the base's own decisions and the likeliest classes of the best table of chances;
    likewise where a search ends without a proof (`NODES`), beside what it met.
    """
    allowed = program.tables
    tables = allowed.single()
    tables.append(allowed.likeliest(_best(program)[0].x))
    # None of the simple tables keeps the bounds: first the least excess, then the least error at
    # it.
    if min(_excess(program, table) for table in tables) > FEASIBLE:
        lines = optimize.LinearConstraint(
            _beside(program.rows @ allowed.spread, -1.0), -np.inf, program.limits
        )
        ends = optimize.LinearConstraint(_beside(allowed.sums, 0.0), 1.0, 1.0)
        tables += _integer(program, np.append(np.zeros(allowed.unknowns), 1.0), [lines, ends])
    excess = min(_excess(program, table) for table in tables)
    limits = optimize.LinearConstraint(
        program.rows @ allowed.spread, -np.inf, program.limits + excess + FEASIBLE
    )
    simplex = optimize.LinearConstraint(allowed.sums, 1.0, 1.0)
    tables += _integer(
        program, _tied(program), [limits, simplex] if len(program.limits) else [simplex]
    )
    kept = [table for table in tables if _excess(program, table) <= excess + 2.0 * FEASIBLE]
    best = min(
        kept,
        key=lambda table: program.error(table) + TIE * float(np.abs(table - allowed.base).mean()),
    )
    return Mixed(np.array(best), np.zeros(len(program.kept)), excess)


def _best(program: Program) -> tuple[Any, float]:
    """HiGHS's solution, and the least excess with which there is one."""
    found = _linear(program, _tied(program), program.limits)
    if found is not None:
        return found, 0.0
    excess = _least_excess(program)
    found = _linear(program, _tied(program), program.limits + excess + FEASIBLE)
    if found is None:
        raise _unsolved("the least excess was not enough")
    return found, excess


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
    values = np.asarray((program.rows @ allowed.spread).toarray()).reshape(-1, allowed.parts, each)
    costs = _tied(program).reshape(allowed.parts, each)
    over, cost = values[:, 0] - program.limits[:, np.newaxis], costs[0]
    if allowed.parts == 2:
        over = over[:, :, np.newaxis] + values[:, 1, np.newaxis, :]
        cost = cost[:, np.newaxis] + costs[1]
    broken = over.max(axis=0, initial=-np.inf) > excess + FEASIBLE
    cost = np.where(broken, np.inf, cost)
    if broken.all():
        return None
    chosen = np.unravel_index(int(cost.argmin()), cost.shape)
    return allowed.table(np.eye(each)[list(chosen)].ravel())


def _excess(program: Program, table: Floats) -> float:
    """How far a table is above the bounds, at most; 0 where it keeps them all."""
    return max(0.0, float((program.rows @ table.ravel() - program.limits).max(initial=0.0)))


def _histogram_of_tables(counts: Floats, classes: int) -> Any:
    """The linear map from tables p[c, j, k] to histograms H[c, y, k] = sum_j N[c, y, j] p[c, j,
    k]."""
    cells, labels, answers = counts.shape
    c, y, j, k = (axis.ravel() for axis in np.indices((cells, labels, answers, classes)))
    places = ((c * labels + y) * classes + k, (c * answers + j) * classes + k)
    size = (cells * labels * classes, cells * answers * classes)
    return sparse.csr_array((np.repeat(counts.ravel(), classes), places), shape=size)


def _tied(program: Program) -> Floats:
    """The cost of the unknowns, and far less for every changed decision."""
    return np.asarray(program.cost @ program.tables.spread + TIE * program.tables.changed)


def _linear(program: Program, cost: Floats, limits: Floats) -> Any:
    """HiGHS's solution, or None where there is none. `cost`: of the unknowns."""
    some, sums = len(limits) > 0, program.tables.sums
    found: Any = optimize.linprog(
        cost,
        A_ub=program.rows @ program.tables.spread if some else None,
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


def _least_excess(program: Program) -> float:
    width, sums = program.tables.unknowns, program.tables.sums
    found: Any = optimize.linprog(
        np.append(np.zeros(width), 1.0),
        A_ub=_beside(program.rows @ program.tables.spread, -1.0),
        b_ub=program.limits,
        A_eq=_beside(sums, 0.0),
        b_eq=np.ones(sums.shape[0]),
        bounds=[(0.0, 1.0)] * width + [(0.0, None)],
        method="highs",
    )
    if not found.success:
        raise _unsolved(found.message)
    return float(found.fun)


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


def _beside(lines: sparse.csr_array, value: float) -> Any:
    """One more column, of one value."""
    column = sparse.csr_array(np.full((lines.shape[0], 1), value))
    return sparse.csr_array(sparse.hstack([sparse.csr_array(lines), column]))


def _unsolved(message: str) -> InputError:
    remedy = "Ask for larger bounds, or report the constraints with this message."
    return InputError.expected(
        "a program that HiGHS solves", of="constraints", got=message, remedy=remedy
    )
