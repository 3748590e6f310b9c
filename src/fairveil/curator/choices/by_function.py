"""A private choice by any function of a candidate's sums whose slopes are bounded.

It is the exponential mechanism with the R of `ranges`. Scores are found in floating point and then
put on a coarse grid of integers, so that what is drawn from is exact. The step of the grid is a
function of public values alone: the range R, the slopes, the number of rows that may be there.
Rounding a score to the grid, and what floating point lost before, move each score by a bounded part
of a step on either side of the neighbourhood: they are added to the range, in steps.

What is enforced: scores that are no numbers, and exceptions, are masked; values are cut to an
interval that is public; the arithmetic. What is trusted, as any bound that the caller states: that
`function` treats each candidate by itself, has the slopes that `lowest` and `highest` say, and
loses no more than `rounding` in floating point. A function that fails on sums that can occur does
not have these slopes there: what is masked is that it failed, and why.

Guarantees (tests/curator/test_curator_choice_by_function.py):
1. No neighbour's change of the integer scores ranges further over the candidates than `steps`, so
   no probability of a choice changes by more than a factor e^epsilon.
2. The grid is the same whatever the rows are.
3. No exception and no warning of the function on private sums is shown before the run has ended; no
   error shows a score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats, Ints
from ...core.bound import OUTWARDS
from ...core.noise import Stream
from ...core.promise import Promise
from ...errors import InputError
from ..question import Scale
from ..questions.of_models import GroupLosses
from ..quiet.calls import Troubles, quietly
from ..rows.rows import Rows
from ..totals.passes import totals
from . import ranges
from .choice import SCORE_BITS, largest_loss, rate

LARGEST_SLOPE = 2.0**500
# of the largest value that slopes and sums allow: hundreds of operations, each off by 2^-53
ROUNDING = 2.0**-44
FINEST = 2.0**-1000  # far from numbers that lose digits
AT_ONCE = 1 << 21  # sums that a function is given at a time


@dataclass(frozen=True, eq=False)
class Score:
    """What a candidate is worth, to be minimized: a function of its exact sums, and bounds on its
    slopes.

    `function(sums)`: (candidates, *shape) to (candidates,), each candidate by itself. `shape`:
    (cells,) for `GroupLosses`; (cells, labels or 1, classes) for counts of decisions, the first
    class's too. `lowest`, `highest`: bounds on the partial derivatives, arrays that broadcast to
    `shape`, over all sums of as many rows as there may be, none included, and between any two such
    vectors; where a derivative jumps they hold on both sides. Make them from public constants and
    released values only. Whatever all candidates share is free: the range over candidates counts.

    `within`: an interval that all values lie in, where there is a closer one than slopes and sums
    give. `rounding`: more than floating point may change of one value; without it 2^-44 of
    |function(0)| + largest slope x largest sum. `trusted`: the function is a user's own, and the
    statement says that user code was trusted; False where slopes are proved.
    """

    function: Callable[[Floats], Any]
    lowest: Any
    highest: Any
    within: tuple[float, float] | None = None
    rounding: float | None = None
    trusted: bool = True

    def __post_init__(self) -> None:
        given: object = self.function
        if not callable(given):
            remedy = "Pass a function of sums (candidates, ...) to (candidates,) numbers."
            raise InputError.expected(
                "a function", of="Score.function", got=type(given).__name__, remedy=remedy
            )
        lowest, highest = (
            _slopes("lowest", self.lowest),
            _slopes("highest", self.highest),
        )
        try:
            ordered = bool((lowest <= highest).all())
        except ValueError:
            ordered = False
        if not ordered:
            remedy = "lowest <= derivative <= highest, sum by sum."
            raise InputError.expected(
                "slopes of one shape, none above highest",
                of="Score.lowest",
                got="others",
                remedy=remedy,
            )
        _checks.normalise(self, lowest=lowest, highest=highest)
        if self.within is not None:
            ends = _numbers(self.within)
            if ends.shape != (2,) or not -math.inf < ends[0] <= ends[1] < math.inf:
                remedy = "Leave it out where slopes say enough."
                raise InputError.expected(
                    "two finite numbers that rise", of="within", got=self.within, remedy=remedy
                )
            _checks.normalise(self, within=tuple(ends.tolist()))
        if self.rounding is not None:
            _checks.normalise(self, rounding=_checks.non_negative(rounding=self.rounding))

    @property
    def steepest(self) -> float:
        """The largest size of a slope."""
        return float(
            max(np.abs(self.lowest).max(initial=0.0), np.abs(self.highest).max(initial=0.0))
        )

    def slopes(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Lowest and highest, one for each sum."""
        try:
            return np.broadcast_to(self.lowest, shape), np.broadcast_to(self.highest, shape)
        except ValueError:
            got = (np.shape(self.lowest), np.shape(self.highest))
            remedy = (
                "One slope for each cell, true label (or 1 for all) and predicted class; for "
                "losses one a cell."
            )
            raise InputError.expected(
                f"slopes of shape {shape}", of="Score", got=got, remedy=remedy
            ) from None

    def at_nothing(self, shape: tuple[int, ...]) -> float:
        """The value where no row is: a rehearsal before any row is read, whose failures may be told
        at once."""
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(self.function(np.zeros((2, *shape))), np.float64)
            got = str(found.tolist()) if found.shape == (2,) else f"shape {found.shape}"
        except Exception as error:
            found, got = np.empty(0), f"{type(error).__name__}: {error}"
        if found.shape != (2,) or not np.isfinite(found).all():
            expected = (
                f"a finite number a candidate, from sums of shape (candidates, "
                f"{', '.join(map(str, shape))})"
            )
            remedy = (
                "These were sums of zeros: no row was read. Try the function on sums of your own "
                "making."
            )
            raise InputError.expected(expected, of="Score.function", got=got, remedy=remedy)
        return float(np.abs(found).max())


def _slopes(name: str, given: object) -> Floats:
    slopes = _numbers(given)
    if not (np.abs(slopes) <= LARGEST_SLOPE).all():
        remedy = "A function whose slopes have no bound has no price: cut or smooth it."
        raise InputError.expected(
            "finite numbers of size at most 2^500", of=f"Score.{name}", got="others", remedy=remedy
        )
    slopes.setflags(write=False)
    return slopes


def _numbers(given: object) -> Floats:
    try:
        return np.array(given, np.float64)
    except (TypeError, ValueError):
        return np.full(1, np.nan)


@dataclass(frozen=True, slots=True)
class Sums:
    """Where candidates' sums come from, and how large they can be: the latter public."""

    found: Callable[[], Ints]  # a line of whole numbers a candidate, totalled when it is asked for
    shaped: Callable[[Ints], Floats]  # lines as sums, (candidates, *shape)
    shape: tuple[int, ...]
    # the most that one row adds to one sum: its weight, or its weight x the largest loss
    per_row: float
    most: float  # no candidate's sums are more than this together
    unit: float  # sums are whole multiples of it


@dataclass(frozen=True, slots=True)
class FunctionContest:
    """A choice to be made by a function of sums. The grid is 2^exponent wide; `steps`: the range on
    it."""

    score: Score
    sums: Sums
    stated: float  # the range in the units of the score
    ends: tuple[float, float]
    exponent: int
    steps: float
    troubles: Troubles

    def best(self) -> int:
        """The first of the smallest scores."""
        return int(self._values(self.sums.found()).argmin())

    def drawn(self, epsilon: float, stream: Stream) -> int:
        """The exponential mechanism."""
        return stream.choose(
            self.rounded(self._values(self.sums.found())), rate(epsilon, self.steps)
        )

    def rounded(self, values: Floats) -> Ints:
        """Scores in steps of the grid: at most 2^44 of them from zero, so the quotients are as
        exact as the values."""
        return np.rint(np.ldexp(np.clip(values, *self.ends), -self.exponent)).astype(np.int64)

    def _values(self, lines: Ints) -> Floats:
        """What the function makes of private sums; infinite where it made no number."""
        pieces = (self.sums.shaped(part) for part in _pieces(lines, math.prod(self.sums.shape)))
        parts = [quietly(self.troubles, self._masked, sums) for sums in pieces]
        values = np.concatenate(parts)
        bad = ~np.isfinite(values)
        if bad.any():
            self.troubles.append(
                "some candidates' scores were not finite numbers; they counted as the largest"
            )
            values[bad] = np.inf
        return values

    def _masked(self, sums: Floats) -> Floats:
        values = self._call(sums)
        if values is None:
            each = (self._call(sums[i : i + 1]) for i in range(len(sums)))
            values = np.concatenate([np.full(1, np.nan) if one is None else one for one in each])
        return values

    def _call(self, sums: Floats) -> Floats | None:
        sums.setflags(write=False)
        try:
            if not self.score.trusted:  # our own: its arithmetic is no news to anybody
                np.seterr(all="ignore")  # of this call alone, see `quietly`
            values = np.array(self.score.function(sums), np.float64)
        except Exception as error:  # masked on purpose: an error may depend on one private row
            self.troubles.append(f"{type(error).__name__}: {error}")
            return None
        if values.shape != (len(sums),):
            self.troubles.append(f"expected shape ({len(sums)},), got {values.shape}")
            return None
        return values


def _pieces(lines: Ints, width: int) -> Iterator[Ints]:
    length = max(1, AT_ONCE // max(1, width))
    for a in range(0, len(lines), length):
        yield lines[a : a + length]


def by_function(score: Score, sums: Sums, reach: float, troubles: Troubles) -> FunctionContest:
    """The contest. `reach`: the range over candidates of what one neighbour changes, for rows that
    add at most 1 to a sum."""
    steepest = score.steepest
    # slopes were subtracted: rounding is in proportion
    reach = (reach + steepest * (OUTWARDS - 1.0)) * sums.per_row * OUTWARDS
    # No score is further from 0 than the value at empty sums and the slopes allow: public, like the
    # grid made from it.
    size = (score.at_nothing(sums.shape) + steepest * sums.most) * OUTWARDS
    low, high = (-size, size) if score.within is None else score.within
    lost = size * ROUNDING if score.rounding is None else score.rounding
    # sums as floats
    lost += steepest * sums.most * 2.0**-53 if sums.most > sums.unit * 2.0**53 else 0.0
    # A step is large against what floating point loses, so that rounding adds few steps to the
    # range.
    finest = max(reach * 2.0**-SCORE_BITS, 16.0 * lost, max(abs(low), abs(high)) * 2.0**-44, FINEST)
    if not math.isfinite(size) or not math.isfinite(finest):
        remedy = "Take the score in other units: divide by a public number of rows."
        raise InputError.expected(
            "scores of finite size", of="Score", got="slopes too steep", remedy=remedy
        )
    exponent = math.frexp(finest)[1]
    step = math.ldexp(1.0, exponent)
    # Half a step of rounding on either side of a neighbour, for two candidates, and what was lost
    # before it.
    steps = (reach / step + 2.0 + 4.0 * lost / step) * OUTWARDS
    return FunctionContest(score, sums, reach, (low, high), exponent, steps, troubles)


def by_losses(
    question: GroupLosses,
    score: Score,
    scale: Scale,
    rows: Rows,
    promise: Promise,
    troubles: Troubles,
    *,
    most_rows: int,
    threads: int | None,
) -> FunctionContest:
    """Many models, by a function of their sums of losses, all totalled on one grid."""
    shape = question.shape(rows.layout)
    largest = math.ldexp(largest_loss(scale, question), -scale.exponent)

    def found() -> Ints:
        return totals([(question, [scale])], rows, rows.passed(), threads)[0]

    def shaped(lines: Ints) -> Floats:
        return np.ldexp(lines, -scale.exponent, dtype=np.float64)

    reach = float(ranges.of_losses(*score.slopes(shape), question.cells, promise))
    sums = Sums(found, shaped, shape, largest, most_rows * question.per_row * largest, scale.unit)
    return by_function(score, sums, reach, troubles)
