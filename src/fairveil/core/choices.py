"""Private choices among candidates: what is scored, how far one neighbour moves the scores apart,
and the draw.

What the exponential mechanism needs is the *range* R of a neighbour's changes of the scores,
largest minus smallest over candidates: P(i) ~ exp(-epsilon score_i / R) has epsilon-bounded range,
hence is epsilon-DP (theory.md#t6). Differs: the paper's exp(-epsilon score / (2 sensitivity)); R
is never above twice the sensitivity. What all candidates share does not enter it.

A score is F(S), S a candidate's sums: of losses by cell (`GroupLosses`), or counts of hard
decisions by cell, label and class. Candidates share F and the rows; they differ in S, and in what
one row adds to it. F is known by bounds on its partial derivatives, `lowest` <= dF/dS <= `highest`,
arrays of the shape of S: along the straight line from S to S + d the change of F is sum_j g_j d_j
with every g_j within its bounds (mean value theorem; for a locally Lipschitz F that of Clarke and
Lebourg). A linear F (weights of cells, costs of decisions) has lowest == highest, and then R is
exact. R is the largest, over neighbours, of (largest change - smallest change), each candidate free
in its g and in its losses or decisions. The line must stay where the bounds hold: they hold between
any two vectors of sums that data of so many rows give. `range_of_losses` and `range_of_decisions`
have the cases; all cells are *listed* ones. Weights multiply R by the largest weight. **Persons**
with at most k rows: d is the sum of what k rows add, or of what is added and taken away, and each
candidate's change is the sum of its changes by row at one g: k times R (theory.md#units).

Scores are put on a coarse grid of whole numbers, so that what is drawn from is exact. The step of
the grid is made of public values alone; what rounding to it moves is added to the range.

A `ScoreHistogram` is a question about many cuts: candidate `direction * edges + edge` decides for
the second class where the score of its direction is above its edge, and for the first at the edge
and where the score is no number. One pass over the rows a direction counts all its edges.

What is enforced of a user's function of sums: scores that are no numbers, and exceptions, are
masked; values are cut to a public interval; the arithmetic. What is trusted, as any bound that the
caller states: that it treats each candidate by itself, has the slopes that `lowest` and `highest`
say, and loses no more than `ROUNDING` in floating point. A function that fails on sums that can
occur does not have these slopes there: what is masked is that it failed, and why.

Guarantees (tests/curator/test_curator_choices.py)
    1. No neighbour's changes of the scores range further over the candidates than R says, of the
       whole scores that are drawn from no further than `steps`, under every relation; some do range
       as far.
    2. The grid is the same whatever the rows are; scores by weights and costs are exact.
    3. A candidate's histogram is totalled once for as long as its question is held.
    4. No exception and no warning of a function of private sums is shown before the run has ended;
       no error shows a score.
    5. A cut's counts are those of a linear model with the edge taken from its intercept, and the
       first class's are what the others leave of all rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from . import checks
from .bound import OUTWARDS
from .errors import need
from .layout import Cells, Floats, Ints, RowLayout
from .noise import Stream
from .passes import shared, totals
from .pricing import Bounds, Measurement
from .promise import Promise
from .questions import SENSITIVE, Question, Scale, cell_count, classes_of
from .quiet import Troubles, quietly
from .rows import MOST_ROWS, Rows
from .sums import CellCounts, GroupLosses, ScoreHistogram

SCORE_BITS = 20
"""About so many bits of steps are to the range."""
WEIGHT_BITS, COST_BITS = 24, 40
"""Weights of cells are multiples of 2^-24; costs of 2^-40 of the largest, whatever their unit."""
EXACT_BITS = 61
"""Below this, sums of 64-bit integers and their differences are exact."""
LARGEST = 2.0**500
"""The largest cost, and the largest slope."""
ROUNDING = 2.0**-44
"""What floating point may change of a value, relative to the largest that slopes and sums allow:
hundreds of operations, each off by 2^-53."""
FINEST = 2.0**-1000
"""A step of scores is larger: far from numbers that lose digits."""
AT_ONCE = 1 << 21
"""Sums that a function is given at a time."""

Slopes = npt.NDArray[Any]
"""Whole numbers or floats."""


# -- ranges ----------------------------------------------------------------------------------------


def range_of_losses(lowest: Slopes, highest: Slopes, cells: Cells | None, promise: Promise) -> Any:
    """R of sums of losses in [0, 1], slopes of shape (cells,); whole where the slopes are.

    A row adds its loss b in [0, 1] to one cell of each column.

    - add-remove: the change is b sum_j g[c_j]: R = max(0, H, -L, H - L) with H = sum_j max highest,
      L = sum_j min lowest, and H - L taken cell by cell. One way only where slopes have one sign;
    - replace-one: two rows, both free: twice that;
    - sensitive features alone: a row keeps its b, whatever that is for each candidate, and moves
      from c to c' != c: b sum_j (g[c'_j] - g[c_j]), so R is as for add-remove with H = sum_j max
      (highest[c'] - lowest[c]) and -L = H. A column in which the row stays adds nothing.
    """
    columns = _columns(cells)
    if promise.protects == "sensitive_features":
        up = sum(np.maximum(_apart(highest[c], -lowest[c]), 0) for c in columns)
        wide = [highest[c] - lowest[c] for c in columns]
        return max(up, sum(np.maximum(_apart(one, one), 0) for one in wide))
    # A loss of one candidate may be 0 where that of another is 1: the range reaches from the least
    # slope, or 0, to the largest.
    up, down = sum(highest[c].max() for c in columns), sum(-lowest[c].min() for c in columns)
    both = sum((highest[c] - lowest[c]).max() for c in columns)
    return max(0, up, down, both) * (1 if promise.neighbours == "add-remove" else 2)


def range_of_decisions(
    lowest: Slopes,
    highest: Slopes,
    cells: Cells | None,
    promise: Promise,
    layout: RowLayout,
    *,
    reads_groups: bool,
) -> Any:
    """R of counts of decisions, slopes of shape (cells, labels, classes); whole where they are.
    `reads_groups`: whether a candidate reads the sensitive columns.

    A row adds 1 to one class k of its cells and label.

    - add-remove: R = max over y, k, k' of sum_j max_c (highest[c, y, k] - lowest[c, y, k']), k = k'
      included;
    - replace-one: twice that;
    - sensitive features alone, candidates that do not read them: k stays: the change is sum_j
      (g[c'_j, y, k] - g[c_j, y, k]), R the largest, over y, k, k', of sum_j max_{c != c'}
      (highest[c', y, k] - lowest[c, y, k] - lowest[c', y, k'] + highest[c, y, k']);
    - sensitive features alone, some candidates that read them: any k in c and k' in c': R = max
      over y, c != c' of r(c) + r(c'), r the range of add-remove in one cell; twice add-remove's R
      where a row may change other sensitive columns and stay in c, or be in several cells.
    """

    def over_classes(part: Callable[[Slopes, Slopes], Slopes]) -> Any:
        found = []
        for k, other in itertools.product(range(lowest.shape[2]), repeat=2):
            one = highest[:, :, k] - lowest[:, :, other]
            another = highest[:, :, other] - lowest[:, :, k]
            found.append(np.max(sum(part(one[c], another[c]) for c in _columns(cells))))
        return max(found)

    def added(one: Slopes, another: Slopes) -> Slopes:
        return np.asarray(one.max(axis=0))

    def moved(one: Slopes, another: Slopes) -> Slopes:
        return np.asarray(np.maximum(_apart(one, another), 0))

    if promise.protects == "records":
        return over_classes(added) * (1 if promise.neighbours == "add-remove" else 2)
    if not reads_groups:
        return over_classes(moved)
    if cells is None or cells.mode != "product" or set(cells.names) != set(layout.sensitive_names):
        return 2 * over_classes(added)
    wide = highest.max(axis=2) - lowest.min(axis=2)
    return np.max(moved(wide, wide))


def _columns(cells: Cells | None) -> list[slice]:
    """The cells that a row is in one of: all, or those of one sensitive column."""
    if cells is None or cells.mode == "product":
        return [slice(None)]
    ends = itertools.pairwise(itertools.accumulate(cells.sizes, initial=0))
    return [slice(first, last) for first, last in ends]


def _apart(p: Slopes, q: Slopes) -> Slopes:
    """max of p[c'] + q[c] over cells c != c', the first axis; nothing where there is one alone."""
    if len(p) < 2:
        return np.zeros_like(p[0])
    # The two largest of each are enough: where both peaks are in one cell, one side takes its
    # second.
    best, second = np.partition(p, -2, axis=0)[-1:-3:-1], np.partition(q, -2, axis=0)[-1:-3:-1]
    crossed = np.maximum(best[0] + second[1], best[1] + second[0])
    return np.asarray(np.where(p.argmax(axis=0) != q.argmax(axis=0), best[0] + second[0], crossed))


# -- the draw --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contest:
    """A choice to be made. `found`: totals the candidates' scores; `rounded`: scores as whole
    multiples of 2^exponent; `steps`: R on that grid, with what rounding adds; `stated`: R for the
    statement."""

    found: Callable[[], npt.NDArray[Any]]
    rounded: Callable[[npt.NDArray[Any]], Ints]
    steps: float
    exponent: int
    stated: float | None = None

    def best(self) -> int:
        """The first of the smallest scores."""
        return int(self.found().argmin())

    def drawn(self, epsilon: float, stream: Stream) -> int:
        """The exponential mechanism."""
        return stream.choose(self.rounded(self.found()), rate(epsilon, self.steps))


def rate(epsilon: float, steps: float) -> float:
    """epsilon over the range, rounded down by more than these roundings."""
    return epsilon / steps * (1.0 - 2.0**-40)


def _exact(
    found: Callable[[], npt.NDArray[Any]],
    reach: int,
    largest: int,
    exponent: int,
    stated: float | None = None,
) -> Contest:
    """By exact scores in units of 2^-exponent, R of them, and more than any two's distance for any
    data of so many rows."""
    # Coarser where a difference of two scores would not fit 64 bits. Both numbers are public.
    shift = max(0, reach.bit_length() - SCORE_BITS, largest.bit_length() - EXACT_BITS)
    half = (1 << shift) >> 1

    def rounded(scores: npt.NDArray[Any]) -> Ints:
        return np.asarray((scores - scores.min() + half) >> shift).astype(np.int64)

    # A score moves by at most half a step on either side of the neighbourhood: two more steps.
    return Contest(found, rounded, reach / 2**shift + 2.0, shift - exponent, stated)


# -- a function of sums ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Score:
    """What a candidate is worth, to be minimized: a function of its exact sums, and bounds on its
    slopes.

    Parameters
    ----------
    function : callable
        From sums (candidates, *shape) to (candidates,), each candidate by itself. `shape`: (cells,)
        for `GroupLosses`; (cells, labels or 1, classes) for counts of decisions, the first class's
        too.
    lowest, highest : array-like
        Bounds on the partial derivatives, which broadcast to `shape`, over all sums of as many rows
        as there may be, none included, and between any two such vectors; where a derivative jumps
        they hold on both sides. Make them from public constants and released values only. Whatever
        all candidates share is free: the range over candidates counts.
    trusted : bool, default=True
        The function is a user's own, and the statement says that user code was trusted; False where
        slopes are proved.
    """

    function: Callable[[Floats], Any]
    lowest: Any
    highest: Any
    trusted: bool = True

    def __post_init__(self) -> None:
        given: object = self.function
        fix = "Pass a function of sums (candidates, ...) to (candidates,) numbers."
        need(callable(given), "a function", of="Score.function", got=type(given).__name__, fix=fix)
        lowest, highest = _numbers(self.lowest), _numbers(self.highest)
        fix = "A function whose slopes have no bound has no price: cut or smooth it."
        for name, slopes in (("lowest", lowest), ("highest", highest)):
            fits, words = (np.abs(slopes) <= LARGEST).all(), "finite numbers of size at most 2^500"
            need(fits, words, of=f"Score.{name}", got="others", fix=fix)
        try:
            ordered = bool((lowest <= highest).all())
        except ValueError:
            ordered = False
        words, fix = "slopes of one shape, none above highest", "lowest <= slope <= highest."
        need(ordered, words, of="Score.lowest", got="others", fix=fix)
        checks.normalise(self, lowest=lowest, highest=highest)

    def slopes(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Lowest and highest, one for each sum."""
        low, high = np.shape(self.lowest), np.shape(self.highest)
        try:
            fits = np.broadcast_shapes(low, high, shape) == shape
        except ValueError:
            fits = False
        fix = (
            "One slope for each cell, true label (or 1 for all) and predicted class; for losses "
            "one a cell."
        )
        need(fits, f"slopes of shape {shape}", of="Score", got=(low, high), fix=fix)
        return np.broadcast_to(self.lowest, shape), np.broadcast_to(self.highest, shape)

    def at_nothing(self, shape: tuple[int, ...]) -> float:
        """The value where no row is: a rehearsal before any row is read, whose failures may be told
        at once."""
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(self.function(np.zeros((2, *shape))), np.float64)
            got = str(found.tolist()) if found.shape == (2,) else f"shape {found.shape}"
        except Exception as error:
            found, got = np.empty(0), f"{type(error).__name__}: {error}"
        words = ", ".join(map(str, shape))
        need(
            found.shape == (2,) and np.isfinite(found).all(),
            f"a finite number a candidate, from sums of shape (candidates, {words})",
            of="Score.function",
            got=got,
            fix="These were sums of zeros: no row was read. Try the function on sums of your own "
            "making.",
        )
        return float(np.abs(found).max())


def _numbers(given: object) -> Floats:
    try:
        numbers = np.array(given, np.float64)
    except (TypeError, ValueError):
        numbers = np.full(1, np.nan)
    numbers.setflags(write=False)
    return numbers


# -- what decisions cost ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Costs:
    """What decisions cost more than the first class, in whole multiples of 2^-exponent: (cells,
    labels, classes). Every row is decided exactly once, so the first class's costs move all scores
    alike, and it need not be counted."""

    cells: Cells | None
    integers: Ints
    exponent: int

    @staticmethod
    def of(given: object, question: Question, layout: RowLayout) -> Costs:
        """Checked, and rounded to 2^-40 of the largest: a score is then an exact integer
        combination of exact counts."""
        classes = classes_of(layout, "a choice by decisions")
        labels, count = classes if question.by_label else 1, cell_count(question.cells)
        costs = _numbers(np.nan if given is None else given)
        shaped = costs.shape in ((count, labels, classes), (count, 1, classes))
        words = f"finite numbers of size at most 2^500, shape ({count}, {labels} or 1, {classes})"
        fix = (
            "One cost for each cell, true label (or 1 for all) and predicted class, from released "
        )
        fix, got = f"{fix}values only.", "others" if shaped else costs.shape
        need(shaped and (np.abs(costs) <= LARGEST).all(), words, of="costs", got=got, fix=fix)
        more = costs - costs[..., :1]
        exponent = COST_BITS - math.frexp(float(np.abs(more).max()))[1]
        whole = np.rint(np.ldexp(more, exponent)).astype(np.int64)
        return Costs(question.cells, np.broadcast_to(whole, (count, labels, classes)), exponent)

    @property
    def largest(self) -> int:
        """What one row of weight 1 costs at most, more or less than with the first class."""
        per_row = 1 if self.cells is None else self.cells.per_row
        return per_row * int(np.abs(self.integers).max(initial=0))

    def reach(self, promise: Promise, layout: RowLayout, *, reads_groups: bool) -> int:
        """R of the scores, of a row of weight 1."""
        of = (self.cells, promise, layout)
        return int(range_of_decisions(self.integers, self.integers, *of, reads_groups=reads_groups))

    def scores(self, counts: Ints, most: int) -> npt.NDArray[Any]:
        """sum costs H for each candidate, in units of 2^-exponent x grid unit. `most`: no cell and
        label holds more grid units."""
        line = self.integers[..., 1:].reshape(-1)
        # Where 64 bits may not hold the sum, Python's whole numbers add it, more slowly.
        if most * self.largest < 2**EXACT_BITS:
            return np.asarray(counts @ line)
        return np.asarray(counts.astype(object) @ line.astype(object))


# -- candidates ------------------------------------------------------------------------------------


class Chooser:
    """Scores candidates for a curator of these rows. Exact histograms of questions' decisions are
    kept inside, while somebody holds the question."""

    def __init__(
        self, rows: Rows, promise: Promise, bounds: Bounds, troubles: Troubles, threads: int | None
    ) -> None:
        self._rows, self._promise, self._bounds = rows, promise, bounds
        self._troubles, self._threads = troubles, threads
        self._tables: WeakKeyDictionary[Question, Ints] = WeakKeyDictionary()
        self._counts: dict[tuple[Cells | None, bool], Ints] = {}
        counted = promise.features_are_public or promise.rows_are_public
        self._most = rows.exact_count if counted else MOST_ROWS  # rows, at most: public

    def __len__(self) -> int:
        return len(self._tables)

    def contest(
        self,
        asked: tuple[Question, ...],
        cell_weights: Any = None,
        costs: object = None,
        score: Score | None = None,
    ) -> Contest:
        """Scores and their range; what is wrong with weights, costs or slopes is an error before
        anything is charged."""
        losses = asked[0].kind is GroupLosses
        fix = "Losses are weighed by cell_weights, decisions have costs, and a score stands alone."
        for of, given, fits in (
            ("cell_weights", cell_weights, losses),
            ("costs", costs, not losses),
        ):
            free = given is None or (score is None and fits)
            need(free, f"none, for {asked[0].name}", of=of, got=given, fix=fix)
        if score is not None:
            checks.instance(Score, "score", score, "Pass Score(function, lowest, highest).")
        if losses:
            return self._of_losses(asked[0], cell_weights, score)
        return self._of_decisions(asked, costs, score)

    def _total(self, question: Question, scale: Scale) -> Ints:
        """Exact sums on one grid."""
        (found,) = totals([(question, [scale])], self._rows, self._rows.blocks(), self._threads)
        return found

    def _of_losses(self, question: Question, cell_weights: object, score: Score | None) -> Contest:
        """Candidates by their losses, all totalled on one grid."""
        shape, per_row = question.shape(self._rows.layout), question.per_row
        scales = self._bounds.scales(Measurement(question, 1.0))
        scale = scales[0] if len(scales) == 1 else shared(scales, question, self._rows)
        # of a row, its weight included, in grid steps; a loss is a whole number of them
        largest = math.floor(scale.bound.norm / math.sqrt(per_row) / scale.unit * OUTWARDS)
        if score is not None:
            size = math.ldexp(largest, -scale.exponent)

            def sums() -> Floats:
                return np.ldexp(self._total(question, scale), -scale.exponent, dtype=np.float64)

            reach = float(range_of_losses(*score.slopes(shape), question.cells, self._promise))
            return self._by_function(score, sums, shape, reach, size, per_row, scale.unit)
        given = np.ones(shape) if cell_weights is None else _numbers(cell_weights)
        right = given.shape == shape and (np.abs(given) <= 2.0**WEIGHT_BITS).all()
        words = f"{shape[0]} finite numbers of size at most 2^24, one a cell"
        fix = "Take weights from released values only."
        need(right, words, of="cell_weights", got=cell_weights, fix=fix)
        whole = [round(w * 2**WEIGHT_BITS) for w in given.tolist()]

        def exact() -> npt.NDArray[Any]:
            # whole numbers of any size
            return np.asarray(self._total(question, scale).astype(object) @ np.array(whole, object))

        weights, heaviest = np.array(whole, np.int64), max(1, *map(abs, whole))
        reach = largest * int(range_of_losses(weights, weights, question.cells, self._promise))
        far = 2 * self._most * per_row * largest * heaviest
        return _exact(exact, reach, far, scale.exponent + WEIGHT_BITS)

    def _of_decisions(
        self, asked: tuple[Question, ...], costs: object, score: Score | None
    ) -> Contest:
        """Candidates by their hard decisions, counted in the same cells and labels, on one grid."""
        first, promise, layout = asked[0], self._promise, self._rows.layout
        for one in asked:
            hard = one.kind is ScoreHistogram or one.decisions == "hard"
            got = "one group alone" if hard else f"{one.decisions} decisions"
            whole, fix = hard and one.group is None, 'Pass decisions="hard", and no group.'
            need(whole, "hard decisions in all cells", of="choose", got=got, fix=fix)
            same = one.cells == first.cells and one.by_label == first.by_label
            fix = "Ask all questions of a choice about the same cells and labels."
            need(same, "the same cells and labels", of="choose", got="others", fix=fix)
        cap, of_one = self._bounds.cap, promise.rows_per_unit
        scale = first.scale(layout, cap)
        # the largest weight, in grid units
        weight = 1 if cap is None else math.ceil(math.ldexp(cap, scale.exponent))
        handles = [one.attached for one in asked if one.attached is not None]
        reads = any(SENSITIVE in handle.columns_read for handle in handles)

        def counts() -> Ints:
            return np.concatenate([self._decided(one, scale) for one in asked])

        if score is None:
            table = Costs.of(costs, first, layout)
            reach = weight * table.reach(promise, layout, reads_groups=reads) * of_one
            exponent = table.exponent + scale.exponent
            return _exact(
                lambda: table.scores(counts(), self._rows.exact_count * weight),
                reach,
                2 * self._most * weight * max(1, table.largest),
                exponent,
                math.ldexp(reach, -exponent) * OUTWARDS,
            )
        classes = classes_of(layout, "a choice by decisions")
        shape = cell_count(first.cells), classes if first.by_label else 1, classes

        def sums() -> Floats:
            lines, key = counts(), (first.cells, first.by_label)
            if key not in self._counts:
                self._counts[key] = self._total(CellCounts(*key), scale).reshape(-1)
            everybody = self._counts[key]
            others = lines.reshape(len(lines), len(everybody), -1)
            own = (everybody - others.sum(axis=2))[..., np.newaxis]
            whole = np.concatenate([own, others], axis=2)
            return np.asarray(np.ldexp(whole, -scale.exponent)).reshape(len(lines), *shape)

        of = (*score.slopes(shape), first.cells, promise, layout)
        far = float(range_of_decisions(*of, reads_groups=reads)) * of_one
        size = math.ldexp(weight, -scale.exponent)
        return self._by_function(score, sums, shape, far, size, first.per_row, scale.unit)

    def _decided(self, question: Question, scale: Scale) -> Ints:
        """(candidates, cells x labels x (classes - 1)): how often each decides for each class but
        the first. Of bins: how many rows are above each edge."""
        if question not in self._tables:
            found, lines = self._total(question, scale), question.models
            if question.kind is ScoreHistogram:
                above = found[..., :0:-1].cumsum(axis=-1)[..., ::-1]
                found, lines = np.moveaxis(above, -1, 1), lines * len(question.edges)
            elif found.shape[-1] > 1:
                found = found[..., 1:]
            self._tables[question] = np.ascontiguousarray(found.reshape(lines, -1))
        return self._tables[question]

    def _by_function(
        self,
        score: Score,
        sums: Callable[[], Floats],
        shape: tuple[int, ...],
        reach: float,
        size: float,
        per_row: int,
        unit: float,
    ) -> Contest:
        """By any function of sums, (candidates, *shape), whole multiples of `unit`. `reach`: R for
        rows that add at most 1 to a sum; `size`: the most that one adds, to `per_row` of them."""
        most = self._most * per_row * size  # no candidate's sums are more than this together
        ends = (np.abs(slopes).max(initial=0.0) for slopes in (score.lowest, score.highest))
        steepest = float(max(ends))
        # slopes were subtracted: rounding is in proportion
        reach = (reach + steepest * (OUTWARDS - 1.0)) * size * OUTWARDS
        # No score is further from 0 than the value at empty sums and the slopes allow: public, like
        # the grid made from it.
        far = (score.at_nothing(shape) + steepest * most) * OUTWARDS
        lost = far * ROUNDING + (steepest * most * 2.0**-53 if most > unit * 2.0**53 else 0.0)
        # A step is large against what floating point loses, so that rounding adds few steps to the
        # range. At most 2^44 of them are from zero, so quotients are as exact as the values.
        finest = max(reach * 2.0**-SCORE_BITS, 16.0 * lost, far * 2.0**-44, FINEST)
        right = math.isfinite(far) and math.isfinite(finest)
        fix = "Take the score in other units: divide by a public number of rows."
        need(right, "scores of finite size", of="Score", got="slopes too steep", fix=fix)
        exponent = math.frexp(finest)[1]
        step = math.ldexp(1.0, exponent)

        def rounded(values: npt.NDArray[Any]) -> Ints:
            return np.asarray(np.rint(np.ldexp(np.clip(values, -far, far), -exponent)), np.int64)

        # Half a step of rounding on either side of a neighbour, for two candidates, and what was
        # lost before it.
        steps = (reach / step + 2.0 + 4.0 * lost / step) * OUTWARDS
        return Contest(lambda: self._masked(score, sums()), rounded, steps, exponent, reach)

    def _masked(self, score: Score, sums: Floats) -> Floats:
        """What the function makes of private sums; infinite where it made no number."""
        troubles = self._troubles

        def called(some: Floats) -> Floats | None:
            some.setflags(write=False)
            try:
                if not score.trusted:  # our own: its arithmetic is no news to anybody
                    np.seterr(all="ignore")  # of this call alone, see `quietly`
                values = np.array(score.function(some), np.float64)
            except Exception as error:  # masked on purpose: an error may depend on one private row
                troubles.append(f"{type(error).__name__}: {error}")
                return None
            if values.shape != (len(some),):
                troubles.append(f"expected shape ({len(some)},), got {values.shape}")
                return None
            return values

        def each(some: Floats) -> Floats:
            values = called(some)
            if values is None:
                alone = (called(some[i : i + 1]) for i in range(len(some)))
                nothing = np.full(1, np.nan)
                values = np.concatenate([nothing if one is None else one for one in alone])
            return values

        length = max(1, AT_ONCE // max(1, math.prod(sums.shape[1:])))
        pieces = (sums[a : a + length] for a in range(0, len(sums), length))
        values = np.concatenate([quietly(troubles, each, some) for some in pieces])
        bad = ~np.isfinite(values)
        if bad.any():
            words = "some candidates' scores were not finite numbers; they counted as the largest"
            troubles.append(words)
            values[bad] = np.inf
        return values
