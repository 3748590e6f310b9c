"""What is certain of a post-processed classifier, from released counts alone: Theorem 3.1 as
numbers for one fit.

The noise of the counts is independent of the rows and its distribution is known. Half of 1 -
confidence is spent on a box in which all true counts lie, half on the sum of all |noise|. Where
both hold, so do all bounds below; docs/post_processing.md proves them. Of thresholds on a score the
bounds are those of `threshold_bounds`, and the best table is the best of thresholds.

Guarantees (tests/learning/test_learning_postprocess.py, a simulation over seeds):
1. With probability at least `confidence` over the noise, every constraint's exact training value is
   at most its `value_bounds`, the exact training error at most `error_bound`, and it exceeds that
   of the best table without noise for the same bounds by at most `excess_bound`: all at once.
2. Nothing here reads an exact count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..._types import Floats
from ...fairness import ConstraintSystem
from ...show.bounds import Bound, bounds, points
from ...show.numbers import bound
from ...show.parts import Column, Part, Shown, Table
from . import mixing, threshold_bounds
from .counting import Released
from .mixing import Mixed, Program


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
        return _largest(self.values)

    @property
    def gap_bound(self) -> float:
        """What the largest exact value is at most."""
        return _largest(self.value_bounds)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is undefined is None."""
        return {name: _plain(value) for name, value in asdict(self).items()} | {
            "gap": _plain(self.gap),
            "gap_bound": _plain(self.gap_bound),
        }

    def parts(self) -> Iterator[Part]:
        """The bounds, and what they are conditional on."""
        over = [
            value - most
            for value, most in zip(self.value_bounds, self.bounds, strict=True)
            if not math.isnan(value)
        ]
        no_table = "no table of chances is certain to keep the bounds"
        yield from bounds(
            self.confidence,
            f"every constraint's training value is at most {points(self.gap_bound)}",
            (
                Bound("largest value of a constraint", self.gap_bound, self.gap),
                Bound("furthest above its bound", max(0.0, max(over, default=0.0))),
                Bound("error", self.error_bound, self.error, "percent"),
                Bound(
                    "error above that of the best table without noise",
                    self.excess_bound,
                    missing=no_table,
                ),
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
    slack = slacks(released, system, confidence)
    values = program.values(table)
    if released.edges is None:
        # Half of the miss for the box of counts, half for the sum of all noise.
        low, high = released.box((1.0 - confidence) / 2.0)
        most, e = (
            _value_bounds(system, table, low, high),
            _error_slack(released, confidence),
        )
    else:
        most, e = (
            _at_most(system, values + slack),
            threshold_bounds.error_slack(released, confidence),
        )
    error = program.error(table)
    best = mixing.least_error(Program.of(released, system, slack, shared=shared))
    return MixingGuarantee(
        confidence=confidence,
        names=system.names,
        bounds=tuple(system.bounds.tolist()),
        values=tuple(values.tolist()),
        noise=tuple(value_noise(released, system, table).tolist()),
        value_bounds=tuple(np.where(program.kept, most, np.nan).tolist()),
        error=error,
        error_bound=min(1.0, error + e),
        excess_bound=min(1.0, max(0.0, error - best) + 2.0 * e)
        if not math.isnan(best)
        else math.nan,
    )


def slacks(released: Released, system: ConstraintSystem, confidence: float) -> Floats:
    """How far, for any table at all, a constraint's value at the counts of the program is from its
    exact value: at most so.

    A rate over counts that are each off by at most w_i, M of them in the program, is off by at most
    (sum w_i - min w_i) / M for every table. Without a row an event's rates are undefined, and the
    best table need not keep the constraint: where that may be so, the slack gives it up. With these
    slacks the best table of the exact counts is feasible (the paper's slack in (1), from our
    noise).
    """
    if released.edges is not None:
        return threshold_bounds.slacks(released, system, confidence)
    if not released.noise.sd:
        return np.zeros(len(system))
    counts = mixing.filled(released, system)
    low, high = released.box((1.0 - confidence) / 2.0)
    away = np.maximum(counts - low, high - counts).ravel()
    members = _members(system, counts.shape[2])
    added = float((counts - released.counts).sum())
    # Counts that were moved onto public totals may be off by twice as much: their own noise, and
    # what the move took.
    most = (1.0 if released.totals is None else 2.0) * _sum_of_noise(released, confidence) + added
    sizes = members @ counts.ravel()
    total = members @ away
    least = np.array([away[members.indices[a:b]].min(initial=math.inf) for a, b in _runs(members)])
    with np.errstate(divide="ignore"):
        off = np.minimum(1.0, np.minimum(total - least, most) / sizes)
    sized = np.asarray(abs(system.coefficients) @ off[system.event_of])
    unsure = np.asarray(
        (system.coefficients != 0) @ (members @ low.ravel() <= 0)[system.event_of], bool
    )
    return np.where(
        unsure, np.maximum(sized, np.asarray(abs(system.coefficients).sum(axis=1)).ravel()), sized
    )


def _sum_of_noise(released: Released, confidence: float) -> float:
    return released.noise.sum_tail(released.independent, (1.0 - confidence) / 2.0)


def _error_slack(released: Released, confidence: float) -> float:
    """|error at the released counts - exact error| for any table, at most: sum |noise| / n, with n
    as small as it may be."""
    s = _sum_of_noise(released, confidence)
    n = released.rows if released.rows is not None else float(released.counts.sum()) - s
    return min(1.0, s / n) if n > 0 else 1.0 if s > 0 else 0.0


def _members(system: ConstraintSystem, answers: int) -> Any:
    """Which counts N[c, y, j] an event is about, (events, cells x labels x answers)."""
    return sparse.csr_array(sparse.kron(system.members, np.ones((1, answers)), format="csr"))


def _at_most(system: ConstraintSystem, values: Floats) -> Floats:
    """Values, none larger than rates between 0 and 1 allow."""
    return np.asarray(
        np.minimum(values, np.asarray(system.coefficients.maximum(0).sum(axis=1)).ravel())
    )


def _runs(lines: sparse.csr_array) -> list[tuple[int, int]]:
    return list(zip(lines.indptr[:-1].tolist(), lines.indptr[1:].tolist(), strict=True))


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
        least = 1.0 - _largest_rate(1.0 - q, lows[places], highs[places])
        ends[rate] = least, most
    signs = system.coefficients
    up, down = signs.maximum(0), signs.minimum(0)
    return np.asarray(up @ ends[:, 1] + down @ ends[:, 0])


def _largest_rate(q: Floats, low: Floats, high: Floats) -> float:
    """max sum N q / sum N over low <= N <= high: the counts of the largest q are large, those of
    the others small."""
    order = np.argsort(-q, kind="stable")
    q, low, high = q[order], low[order], high[order]
    # Infinity times a probability of 0 would be no number.
    high = np.where(np.isinf(high), 1e300, high)
    # In the best corner of the box the counts of the largest q are at their upper ends, all others
    # at their lower: one cut in the order of q.
    tops = np.concatenate([[0.0], np.cumsum(high * q)]) + np.append(
        np.cumsum((low * q)[::-1])[::-1], 0.0
    )
    sizes = np.concatenate([[0.0], np.cumsum(high)]) + np.append(np.cumsum(low[::-1])[::-1], 0.0)
    rates = tops[sizes > 0] / sizes[sizes > 0]
    return (
        float(min(1.0, max(0.0, rates.max(initial=0.0))))
        if len(rates)
        else float(q.max(initial=0.0))
    )


def value_noise(released: Released, system: ConstraintSystem, table: Floats) -> Floats:
    """The standard deviation of each value at the released counts, to first order."""
    sd = released.noise.sd
    if not sd:
        return np.zeros(len(system))
    counts = mixing.filled(released, system)
    members, outcomes = _members(system, table.shape[1])[system.event_of], _outcomes(system, table)
    sizes = members @ counts.ravel()
    rates = (outcomes @ counts.ravel()) / sizes
    slopes = sparse.diags_array(1.0 / sizes) @ (outcomes - sparse.diags_array(rates) @ members)
    moves = sparse.csr_array(system.coefficients @ slopes)
    if released.one_group:
        # Of two groups with a public total one was released: the other has the same noise, with
        # the other sign.
        half = moves.shape[1] // 2
        moves = sparse.csr_array(moves[:, :half] - moves[:, half:])
    return np.asarray(sd * np.sqrt(np.asarray(moves.power(2).sum(axis=1)).ravel()))


def _largest(values: tuple[float, ...]) -> float:
    return max((value for value in values if not math.isnan(value)), default=0.0)


def _plain(value: object) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def mixed(
    released: Released,
    system: ConstraintSystem,
    confidence: float,
    *,
    with_slack: bool,
    shared: bool = False,
    by_chance: bool = True,
) -> Mixed:
    """The best table, or the best without chance, its bounds loosened by `slacks` or not."""
    slack: Floats | float = slacks(released, system, confidence) if with_slack else 0.0
    program = Program.of(released, system, slack, shared=shared)
    return mixing.solve(program) if by_chance else mixing.deterministic(program)
