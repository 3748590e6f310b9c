"""Candidates of a private choice that are scored by their decisions, and what each decision costs.

`costs` (cells, labels or 1, classes) says what one prediction of class k costs for a row of that
cell and label. A candidate's score is sum_cyk costs[c, y, k] H[c, y, k], H its histogram of hard
decisions. Every row is decided exactly once, whoever decides, so sum_k H[c, y, k] is the same for
all candidates: costs[..., 0] may be subtracted from all costs of its cell and label, which moves
every score alike, and the first class need not be counted at all. `choice` derives how far a person
moves scores.

A `ScoreHistogram` is a question about many cuts: candidate `direction * edges + edge` decides for
the second class where the score of its direction is above its edge, and for the first at the edge
and where the score is no number. One pass over the rows a direction counts the decisions of all its
edges.

Guarantees (tests/curator/test_curator_decisions.py):
1. No neighbour's changes of the scores range further over the candidates than `reach`, under every
   relation.
2. Scores are exact integers, the same from 64-bit sums, where these provably hold them, as from
   whole numbers of any size.
3. A candidate's histogram is totalled once: later choices among the same questions read it again,
   and give the same bits.
4. A cut's counts are those of a linear model with the edge taken from its intercept, and the first
   class's are what the others leave of all rows (tests/curator/test_curator_choice_by_function.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ..._types import Ints
from ...core.bound import OUTWARDS
from ...core.promise import Promise
from ...errors import InputError
from ...facts import Cells, RowLayout
from ..pricing import Deciding
from ..question import Scale, cell_count, need_classes
from ..questions.attached import AttachedHistogram
from ..questions.histograms import ScoreHistogram
from ..questions.of_rows import CellCounts
from ..quiet.calls import Troubles
from ..rows.rows import Rows
from ..totals.passes import totals
from . import ranges
from .by_function import FunctionContest, Score, Sums, by_function
from .choice import ExponentialMechanism

COST_BITS = 40  # costs are whole numbers up to 2^40, whatever their unit
LARGEST_COST = 2.0**500
EXACT_BITS = 61  # below this, sums of 64-bit integers and their differences are exact


def check(questions: Sequence[Deciding]) -> None:
    """Whole decisions, counted in the same cells and labels."""
    first = questions[0]
    for question in questions:
        decisions = "hard" if isinstance(question, ScoreHistogram) else question.decisions
        if decisions != "hard" or question.group is not None:
            got = f"{decisions} decisions" if decisions != "hard" else "one group alone"
            remedy = 'Pass decisions="hard", and no group.'
            raise InputError.expected(
                "hard decisions in all cells", of="choose", got=got, remedy=remedy
            )
        if question.cells != first.cells or question.by_label != first.by_label:
            remedy = "Ask all questions of a choice about the same cells and labels."
            raise InputError.expected(
                "the same cells and labels", of="choose", got="others", remedy=remedy
            )


@dataclass(frozen=True, eq=False)
class Costs:
    """What decisions cost more than the first class, in whole multiples of 2^-exponent: (cells,
    labels, classes)."""

    cells: Cells | None
    integers: Ints
    exponent: int

    @staticmethod
    def of(given: object, question: Deciding, layout: RowLayout) -> Costs:
        """Checked, and rounded to 2^-40 of the largest: a score is then an exact integer
        combination of exact counts."""
        classes = need_classes(layout, "a choice by decisions")
        labels, count = classes if question.by_label else 1, cell_count(question.cells)
        try:
            costs = np.asarray(np.nan if given is None else given, np.float64)
        except (TypeError, ValueError):
            costs = np.empty(0)
        good = costs.shape in ((count, labels, classes), (count, 1, classes))
        if not good or not (np.abs(costs) <= LARGEST_COST).all():
            raise InputError.expected(
                (
                    f"finite numbers of size at most 2^500, shape ({count}, {labels} or "
                    f"1, {classes})"
                ),
                of="costs",
                got="others" if good else costs.shape,
                remedy=(
                    "One cost for each cell, true label (or 1 for all) and predicted class, "
                    "from released values only."
                ),
            )
        # Every row is decided exactly once, so the first class's costs move all scores alike and
        # may go.
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
        """The range R of one neighbour's changes of the scores, of a row of weight 1: see
        `choice`."""
        costs = self.integers
        return int(
            ranges.of_decisions(
                costs, costs, self.cells, promise, layout, reads_groups=reads_groups
            )
        )


class HistogramCache:
    """The exact histograms of questions' decisions, kept inside the curator while somebody holds
    the question."""

    def __init__(self) -> None:
        self._tables: WeakKeyDictionary[Deciding, Ints] = WeakKeyDictionary()
        self._rows: dict[tuple[Cells | None, bool], Ints] = {}

    def clear(self) -> None:
        """Forget them: the rows' units have changed."""
        self._tables.clear()
        self._rows.clear()

    def of(self, question: Deciding, rows: Rows, scale: Scale, threads: int | None) -> Ints:
        """(candidates, cells x labels x (classes - 1)): how often each decides for each class but
        the first."""
        if question not in self._tables:
            (sums,) = totals([(question, [scale])], rows, rows.passed(), threads)
            self._tables[question] = few(question, sums)
        return self._tables[question]

    def rows_of(self, question: Deciding, rows: Rows, scale: Scale, threads: int | None) -> Ints:
        """(cells x labels,): how many rows decide, for whichever class."""
        key = (question.cells, question.by_label)
        if key not in self._rows:
            (sums,) = totals([(CellCounts(*key), [scale])], rows, rows.passed(), threads)
            self._rows[key] = sums.reshape(-1)
        return self._rows[key]


def few(question: Deciding, sums: Ints) -> Ints:
    """Of a question's totals a line a candidate, without the first class. Of bins: how many rows
    are above each edge."""
    if isinstance(question, ScoreHistogram):
        # Rows above an edge are those of all later bins.
        above = sums[..., :0:-1].cumsum(axis=-1)[..., ::-1]
        return np.ascontiguousarray(
            np.moveaxis(above, -1, 1).reshape(question.models * len(question.edges), -1)
        )
    counted = sums if sums.shape[-1] == 1 else sums[..., 1:]
    return np.ascontiguousarray(counted.reshape(question.models, -1))


@dataclass(frozen=True, slots=True)
class CandidateTable:
    """The candidates of questions, in order, and where their histograms come from. `cap`: the
    largest weight, if any."""

    questions: tuple[Deciding, ...]
    decided: HistogramCache
    rows: Rows
    cap: float | None
    threads: int | None = None

    def counts(self) -> Ints:
        """A line of counts a candidate."""
        scale = self.scale
        lines = [
            self.decided.of(question, self.rows, scale, self.threads) for question in self.questions
        ]
        return lines[0] if len(lines) == 1 else np.concatenate(lines)

    @property
    def scale(self) -> Scale:
        """One grid for all."""
        return self.questions[0].scale(self.rows.layout, self.cap)

    def shaped(self, counts: Ints) -> npt.NDArray[np.float64]:
        """(candidates, cells, labels or 1, classes), the first class too, in rows."""
        everybody = self.decided.rows_of(self.questions[0], self.rows, self.scale, self.threads)
        others = counts.reshape(len(counts), len(everybody), -1)
        whole = np.concatenate([(everybody - others.sum(axis=2))[..., np.newaxis], others], axis=2)
        return np.asarray(np.ldexp(whole, -self.scale.exponent)).reshape(len(counts), *self.shape)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one candidate's whole table."""
        question, classes = (
            self.questions[0],
            need_classes(self.rows.layout, "a choice by decisions"),
        )
        return cell_count(question.cells), classes if question.by_label else 1, classes

    @property
    def heaviest(self) -> int:
        """The largest weight, in grid units."""
        return 1 if self.cap is None else math.ceil(math.ldexp(self.cap, self.scale.exponent))

    @property
    def reads_groups(self) -> bool:
        """Whether a candidate may decide by the sensitive columns."""
        return any(
            "sensitive" in one.attached.columns_read
            for one in self.questions
            if isinstance(one, AttachedHistogram)
        )


def by_decisions(
    table: CandidateTable, given: object, promise: Promise, most_rows: int
) -> ExponentialMechanism:
    """The scores of all candidates, and how far one person moves them."""
    check(table.questions)
    layout, weight = table.rows.layout, table.heaviest
    costs = Costs.of(given, table.questions[0], layout)
    reach = (
        weight
        * costs.reach(promise, layout, reads_groups=table.reads_groups)
        * ranges.rows_of_one(promise)
    )

    def exact() -> npt.NDArray[Any]:
        return exact_scores(table.counts(), costs, table.rows.exact_count * weight)

    stated = math.ldexp(reach, -costs.exponent - table.scale.exponent) * OUTWARDS
    return ExponentialMechanism(
        exact, reach, 2 * most_rows * weight * max(1, costs.largest), stated
    )


def by_score(
    table: CandidateTable, score: Score, promise: Promise, most_rows: int, troubles: Troubles
) -> FunctionContest:
    """The same candidates, by a function of their whole tables."""
    check(table.questions)
    cells, layout, weight = (
        table.questions[0].cells,
        table.rows.layout,
        math.ldexp(table.heaviest, -table.scale.exponent),
    )
    low, high = score.slopes(table.shape)
    reach = float(
        ranges.of_decisions(low, high, cells, promise, layout, reads_groups=table.reads_groups)
    )
    reach *= ranges.rows_of_one(promise)
    most = most_rows * table.questions[0].per_row * weight
    return by_function(
        score,
        Sums(table.counts, table.shaped, table.shape, weight, most, table.scale.unit),
        reach,
        troubles,
    )


def exact_scores(counts: Ints, costs: Costs, most: int) -> npt.NDArray[Any]:
    """sum costs H for each candidate, in units of 2^-exponent x grid unit. `most`: no cell and
    label holds more grid units."""
    line = costs.integers[..., 1:].reshape(-1)
    # Where 64 bits may not hold the sum, Python's whole numbers add it, more slowly.
    if most * costs.largest < 2**EXACT_BITS:
        return np.asarray(counts @ line)
    return np.asarray(counts.astype(object) @ line.astype(object))
