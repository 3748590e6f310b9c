"""The linear program of post-processing: how decisions are changed, by group, so that rate constraints hold at the least error.

With counts N[c, y, j] of group cell c, label y and base decision j, and p[c, j, k] the probability that k is decided there,

    minimise    error(p) = 1 - sum_{c, y, j} N[c, y, j] p[c, j, y] / n
    such that   value_i(p) <= bound_i + slack_i  for every constraint i,   sum_k p[c, j, k] = 1,   p >= 0

where values are those of the histogram H[c, y, k] = sum_j N[c, y, j] p[c, j, k] (`fairness.ConstraintSystem`): linear in p.
This is (1) of Jagielski et al., with Hardt, Price and Srebro (2016) inside. Everything here is post-processing of `Released`.

Always a solution: counts are not negative, small groups are filled up (`filled`), and where the constraints contradict each
other the least uniform excess is found first. Among optimal tables one that changes few decisions is taken, by a cost of
`TIE` a changed decision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse

from ..errors import InputError, complaint
from ..fairness import ConstraintSystem
from .postprocess import Released

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
TIE = 1e-6
FLOOR = 4.0
"""A group with a label is taken to have at least so many standard deviations of its count's noise."""
NODES = 50_000  # of the branch and bound for deterministic tables, over the size of the table: a limit that no clock moves
MOST_ENTRIES = 400
FEASIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class Mixed:
    """A solution: `table` (cells, base decisions, decisions), `pressures` (duals of the constraints, per unit of error), and
    `excess`, what had to be added to every bound because the constraints contradict each other (else 0)."""

    table: Floats
    pressures: Floats
    excess: float


@dataclass(frozen=True, eq=False)
class Program:
    """The program at released counts. `rows` (constraints, cells x decisions x decisions): values of a table; `cost`: its error
    less 1; `kept`: constraints that are defined (without noise, events may be empty); `limits`: their bounds and slacks."""

    shape: tuple[int, int, int]
    rows: Any
    limits: Floats
    kept: npt.NDArray[np.bool_]
    cost: Floats

    @staticmethod
    def of(released: Released, system: ConstraintSystem, slack: Floats | float = 0.0) -> Program:
        """The program for these counts and constraints."""
        cells, _, classes = system.shape
        counts = filled(released)
        values = system.jacobian(counts.sum(axis=2)) @ _histogram_of_tables(counts)
        kept = ~np.isnan(np.asarray(values.sum(axis=1)).ravel())
        cost = -np.moveaxis(released.counts, 1, 2) / max(float(released.counts.sum()), 1e-300)
        limits = system.bounds + np.broadcast_to(np.asarray(slack, np.float64), system.bounds.shape)
        lines = sparse.csr_array(values)[np.flatnonzero(kept)]
        return Program((cells, classes, classes), lines, limits[kept], kept, cost.ravel())

    def values(self, table: Floats) -> Floats:
        """Each constraint's value of a table; NaN where undefined."""
        out = np.full(len(self.kept), np.nan)
        out[self.kept] = self.rows @ table.ravel()
        return out

    def error(self, table: Floats) -> float:
        """The share of rows on which the decision is wrong, in expectation."""
        return float(1.0 + self.cost @ table.ravel())


def filled(released: Released) -> Floats:
    """Counts in which every group and label has at least a public number of rows: what lacks is added with the decisions that
    all groups together have for that label. Without noise nothing is added.

    A group that may be empty then neither divides by zero nor rules the others by its noise.
    """
    counts = released.counts
    if not released.noise.sd:
        return counts
    floor = max(1.0, FLOOR * released.noise.sd * math.sqrt(counts.shape[2]))
    pooled = counts.sum(axis=0)
    sizes = pooled.sum(axis=1, keepdims=True)
    shares = np.where(sizes > 0, pooled / np.where(sizes > 0, sizes, 1.0), 1.0 / counts.shape[2])
    lacking = np.maximum(floor - counts.sum(axis=2), 0.0)
    return np.asarray(counts + lacking[:, :, np.newaxis] * shares)


def solve(program: Program) -> Mixed:
    """The best table. `excess` is above 0 where no table keeps the constraints: it is then the least that all must give."""
    found = _linear(program, _tied(program), program.limits)
    excess = 0.0
    if found is None:
        excess = _least_excess(program)
        found = _linear(program, _tied(program), program.limits + excess + FEASIBLE)
    if found is None:
        raise _unsolved("the least excess was not enough")
    pressures = np.zeros(len(program.kept))
    pressures[program.kept] = -found.ineqlin.marginals if len(program.limits) else 0.0
    return Mixed(_as_table(found.x, program.shape), np.maximum(pressures, 0.0), excess)


def least_error(program: Program) -> float:
    """The error of the best table; NaN where no table keeps the constraints."""
    found = _linear(program, program.cost, program.limits)
    return math.nan if found is None else float(1.0 + found.fun)


def deterministic(program: Program) -> Mixed:
    """The best table of zeros and ones: the least excess over the bounds first, then the least error (mixed-integer programs).

    Every group and base decision gets one class. With little freedom the best may be one class for everybody. Tables of more
    than `MOST_ENTRIES` entries are not searched for: the best of one class for all, the base's own decisions and the likeliest
    classes of the best table of chances; likewise where a search ends without a proof (`NODES`), beside what it met.
    """
    cells, classes, _ = program.shape
    tables = [np.broadcast_to(one, program.shape) for one in np.eye(classes)]
    tables.append(np.broadcast_to(np.eye(classes), program.shape))
    tables.append(np.eye(classes)[solve(program).table.argmax(axis=2)])
    if min(_excess(program, table) for table in tables) > FEASIBLE:
        lines = optimize.LinearConstraint(_beside(program.rows, -1.0), -np.inf, program.limits)
        ends = optimize.LinearConstraint(_beside(_sums(program.shape), 0.0), 1.0, 1.0)
        width = cells * classes * classes
        tables += _integer(program, np.append(np.zeros(width), 1.0), [lines, ends])
    excess = min(_excess(program, table) for table in tables)
    limits = optimize.LinearConstraint(program.rows, -np.inf, program.limits + excess + FEASIBLE)
    simplex = optimize.LinearConstraint(_sums(program.shape), 1.0, 1.0)
    tables += _integer(program, _tied(program), [limits, simplex] if len(program.limits) else [simplex])
    cost = _tied(program)
    kept = [table for table in tables if _excess(program, table) <= excess + 2.0 * FEASIBLE]
    best = min(kept, key=lambda table: float(cost @ table.ravel()))
    return Mixed(np.array(best), np.zeros(len(program.kept)), excess)


def _excess(program: Program, table: Floats) -> float:
    """How far a table is above the bounds, at most; 0 where it keeps them all."""
    return max(0.0, float((program.rows @ table.ravel() - program.limits).max(initial=0.0)))


def _histogram_of_tables(counts: Floats) -> Any:
    """The linear map from tables p[c, j, k] to histograms H[c, y, k] = sum_j N[c, y, j] p[c, j, k]."""
    cells, labels, classes = counts.shape
    c, y, j, k = (axis.ravel() for axis in np.indices((cells, labels, classes, classes)))
    places = ((c * labels + y) * classes + k, (c * classes + j) * classes + k)
    size = (cells * labels * classes, cells * classes * classes)
    return sparse.csr_array((np.repeat(counts.ravel(), classes), places), shape=size)


def _tied(program: Program) -> Floats:
    """The cost, and far less for every changed decision; a little different for each, so that one table is best."""
    cells, classes, _ = program.shape
    c, j, k = np.indices(program.shape)
    apart = 1.0 + 0.1 * c / cells + 0.01 * (k + 1) / classes + 0.001 * j / classes
    changed = np.where(j != k, apart, 0.0) / (cells * classes)
    return program.cost + TIE * changed.ravel()


def _linear(program: Program, cost: Floats, limits: Floats) -> Any:
    """HiGHS's solution, or None where there is none."""
    cells, classes, _ = program.shape
    some = len(limits) > 0
    found: Any = optimize.linprog(
        cost,
        A_ub=program.rows if some else None,
        b_ub=limits if some else None,
        A_eq=_sums(program.shape),
        b_eq=np.ones(cells * classes),
        bounds=(0.0, 1.0),
        method="highs",
    )
    if found.success:
        return found
    if found.status == 2:
        return None
    raise _unsolved(found.message)


def _least_excess(program: Program) -> float:
    cells, classes, _ = program.shape
    width = cells * classes * classes
    found: Any = optimize.linprog(
        np.append(np.zeros(width), 1.0),
        A_ub=_beside(program.rows, -1.0),
        b_ub=program.limits,
        A_eq=_beside(_sums(program.shape), 0.0),
        b_eq=np.ones(cells * classes),
        bounds=[(0.0, 1.0)] * width + [(0.0, None)],
        method="highs",
    )
    if not found.success:
        raise _unsolved(found.message)
    return float(found.fun)


def _integer(program: Program, cost: Floats, constraints: list[Any]) -> list[Floats]:
    """The best table of zeros and ones that was found, or none. Costs beyond the table's are of numbers of at least 0."""
    width = math.prod(program.shape)
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
    return [] if found.x is None else [np.rint(found.x[:width]).reshape(program.shape)]


def _beside(lines: Any, value: float) -> Any:
    """One more column, of one value."""
    column = sparse.csr_array(np.full((lines.shape[0], 1), value))
    return sparse.csr_array(sparse.hstack([sparse.csr_array(lines), column]))


def _sums(shape: tuple[int, int, int]) -> Any:
    """Sums over decisions: one for each cell and base decision."""
    return sparse.kron(sparse.eye_array(shape[0] * shape[1]), np.ones((1, shape[2])), format="csr")


def _as_table(values: Floats, shape: tuple[int, int, int]) -> Floats:
    """Rows of probabilities to the last bit that sums allow."""
    p = np.clip(values.reshape(shape), 0.0, 1.0)
    p = np.where(p < 1e-9, 0.0, p)
    return np.asarray(p / p.sum(axis=2, keepdims=True))


def _unsolved(message: str) -> InputError:
    remedy = "Ask for larger bounds, or report the constraints with this message."
    return InputError(complaint(expected="a program that HiGHS solves", of="constraints", got=message, remedy=remedy))
