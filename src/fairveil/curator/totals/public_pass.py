"""A round of descent over public rows in one pass: exact and protected gradient, histograms, and
the maxima that grids hang on.

A grid follows from a maximum over the rows, and integers from their grid, so that two passes seem
needed. But a grid is a power of two, and from one round to the next little but the costs changes:
sums are made on a grid that is guessed from the round before, and once more where the maxima say
another.

Guarantees (tests/curator/test_curator_public_pass.py):
1. Sums and scales are those of `public_scale.of` and `Passes`, to the bit, whatever the round
   before was.
2. Nothing here can fail once a release was admitted: rows and weights that might overflow go the
   other way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..._types import Floats, Ints
from ...core.rows import Block, Mapping, Rows, Unmapped
from ...core.threads import cut, in_line
from ..question import Question, Scale, cell_count
from ..questions.gradients import GradientSum
from ..questions.histograms import PredictionHistogram
from ..sharded import ShardedRows
from . import public_scale
from .descent_pass import DECISION_CODES
from .reach import reach_of, rounding_of

Maxima = tuple[Floats, Floats]
Found = tuple[Ints, Ints, Ints, Floats]  # gradients, both histograms, maxima
# a measurement's place, the question, its maxima where it has some
Scaling = Callable[[int, Question, Maxima | None], list[Scale]]
# a measurement's place, what was asked of it, its grid and its sum
Total = tuple[int, Question, list[Scale], Ints]
FAR = 1e290  # sums of products below it do not overflow
_NOTHING: Ints = np.zeros((0, 1), np.int64)


class PublicPass:
    """The pass for measurements of one key: a gradient of log loss with costs by cell, and histograms
    of the same model's decisions, by cell or of everybody. Of one model of two classes; on rows
    with weights where decisions are hard."""

    def __init__(self, questions: Sequence[Question], rows: Rows) -> None:
        gradient = questions[0]
        assert isinstance(gradient, GradientSum)
        self._rows, self._common, self._rest = rows, *gradient.parted()
        self._ends = public_scale.ends_of(gradient)
        self._places: dict[bool, int] = {}  # of the histogram by cell, and of that of everybody
        for place, question in enumerate(questions[1:], 1):
            assert isinstance(question, PredictionHistogram)
            self._places[question.cells is not None] = place
        self._grids = [0, 0, 0]  # of the costs' gradient and of both histograms
        self._asked: GradientSum | None = None
        self._found: tuple[Floats, Floats, float] = (np.zeros((0, 0)), np.zeros((0, 0)), 0.0)
        # the largest gradient of costs in the round before, in units of how far these reached
        self._felt = 1.0
        # the largest |row|: one that hardly counts may be far longer than those that do
        self._farthest: float | None = None

    @staticmethod
    def takes(questions: Sequence[Question], rows: Rows) -> bool:
        """Whether it answers these."""
        gradient, *others = questions
        if (
            not isinstance(gradient, GradientSum)
            or gradient.loss != "log"
            or gradient.cell_costs is None
            or not others
        ):
            return False
        alone = (
            gradient.models == gradient.model.outputs == 1
            and gradient.cells is not None
            and gradient.cell_weights is None
        )
        hard = all(
            isinstance(one, PredictionHistogram) and one.decisions == "hard" for one in others
        )
        plain = rows.exact_count > 0 and rows.labelled and (hard or not rows.weighted)
        same = all(_is_beside(one, gradient) for one in others)
        apart = len({one.cells for one in others}) == len(others)
        kinds = len({one.decisions for one in others}) == 1
        return alone and plain and same and apart and kinds

    def is_safe(self, questions: Sequence[Question]) -> bool:
        """Whether nothing overflows at these weights and costs, and all are about one model: to be
        asked before a charge."""
        gradient: Any = questions[0]
        if any(one.model is not gradient.model for one in questions):
            return False
        longest, (_, reach, slack) = public_scale.longest_row(self._rows), self._costs(gradient)
        if self._farthest is None:
            self._farthest = public_scale.longest_row(self._rows, weighed=False)
        score = float(np.abs(gradient.model.array).sum()) * max(1.0, gradient.model.sharpness)
        score *= self._farthest
        pull = (
            gradient.model.sharpness * float(reach.max(initial=0.0))
            + slack
            + float(gradient.loss_weights[0])
        ) * longest
        return bool(score < FAR and pull < FAR)

    def run(
        self, questions: Sequence[Question], scaling: Scaling, threads: int | None
    ) -> list[Total]:
        """Totals of all rows. `scaling` turns maxima into scales."""
        gradient: Any = questions[0]
        common = self._common.again(model=gradient.model, loss_weight=gradient.loss_weight)
        rest = self._rest.again(
            model=gradient.model, cell_costs=gradient.cell_costs, _costs=gradient._costs
        )
        loss = scaling(0, common, None)
        _, reach, slack = self._costs(gradient)
        far, least = float(reach.max(initial=0.0)), slack * public_scale.longest_row(self._rows)
        guess = np.array([self._felt * far + least])
        self._grids[0] = public_scale.of_maxima(rest, self._rows, 2, (guess, guess.copy()))[
            0
        ].exponent
        while True:
            sums, found = self._once(questions, loss[0], threads)
            scales: dict[int, list[Scale]] = {}
            moved = scaling(0, rest, (found[0:1], found[1:2]))
            grids = [moved[0].exponent, 0, 0]
            for place in self._places.values():
                question: Any = questions[place]
                soft = question.decisions == "soft"
                maxima = public_scale.of_probability(question, found[3]) if soft else None
                scales[place] = scaling(place, question, maxima)
                grids[1 if question.cells is not None else 2] = scales[place][0].exponent
            if grids == self._grids:
                break
            self._grids = grids
        self._felt = (float(found[0]) - least) / far if far > 0 else self._felt
        gradients, histogram, total = sums
        pair = np.ascontiguousarray(gradients.T)
        out: list[Total] = [
            (0, rest, moved, pair[1].reshape(1, 1, -1)),
            (0, common, loss, pair[0].reshape(1, 1, -1)),
        ]
        for by_cell, place in self._places.items():
            shape = (1, *questions[place].shape(self._rows.layout))
            out.append(
                (
                    place,
                    questions[place],
                    scales[place],
                    (histogram if by_cell else total).reshape(shape),
                )
            )
        return out

    def _costs(self, gradient: GradientSum) -> tuple[Floats, Floats, float]:
        """Costs by cell and label, how far they reach, and what rounding adds: once a round."""
        if self._asked is not gradient:
            costs = gradient.costs(self._rows.layout)[0]
            reach = reach_of(costs, gradient.cost_labels, self._ends)
            slack = rounding_of(gradient, costs, float(gradient.loss_weights[0]))
            self._asked, self._found = gradient, (costs, reach, slack)
        return self._found

    def _once(
        self, questions: Sequence[Question], loss: Scale, threads: int | None
    ) -> tuple[tuple[Ints, Ints, Ints], Floats]:
        """Sums on the grids of the round before, and the maxima."""
        if isinstance(self._rows, ShardedRows):
            found = _added(self._rows.public_round(questions, loss, self._grids))
        else:
            found = self.passed(questions, loss, self._grids, threads)
        return found[:3], found[3]

    def passed(
        self, questions: Sequence[Question], loss: Scale, grids: Sequence[int], threads: int | None
    ) -> Found:
        """Sums of all rows on these grids, and the maxima: of rows here, or of one shard."""
        from ..kernels import public_descent as kernels

        gradient: Any = questions[0]
        rows, layout, model = self._rows, self._rows.layout, gradient.model
        costs, reach, slack = self._costs(gradient)
        histograms = {by_cell: questions[place] for by_cell, place in self._places.items()}
        decisions = DECISION_CODES[next(iter(histograms.values())).decisions]
        labels = {
            by: len(layout.classes or ()) if one.by_label else 1 for by, one in histograms.items()
        }
        sizes = {by: labels[by] * cell_count(one.cells) for by, one in histograms.items()}
        limit = math.inf if self._common.clip is None else self._common.clip
        clip = math.inf if self._rest.clip is None else self._rest.clip
        g, h, t = (math.ldexp(1.0, exponent) for exponent in grids)
        pull, by_loss = float(gradient.loss_weights[0]), math.ldexp(1.0, loss.exponent)
        head = (
            pull,
            limit,
            by_loss,
            model.sharpness,
            costs,
            gradient.cost_labels,
            clip,
            g,
            reach,
            slack,
            decisions,
        )

        def job(block: Block, a: int, b: int) -> tuple[Ints, Ints, Ints, Floats]:
            features, squares = block.features(rows.offsets)
            fixed = (*features, block.labels)
            made, found = np.zeros((1 + layout.width, 2), np.int64), np.zeros(4)
            histogram, total = (
                np.zeros((sizes[by], 1), np.int64) if by in sizes else _NOTHING
                for by in (True, False)
            )
            tail = (
                labels.get(True, 1),
                h,
                histogram,
                labels.get(False, 1),
                t,
                total,
                made,
                found,
                squares,
            )
            kernels.descend_public(
                *fixed,
                block.cells(gradient.cells),
                block.weights,
                model.array[0],
                a,
                b,
                *head,
                *tail,
            )
            return made, histogram, total, found

        def jobs() -> Iterator[tuple[int, Callable[[list[Found]], None]]]:
            left = rows.exact_count
            for block in rows.passed():
                read = block.begin() if isinstance(block, Unmapped) else block
                if isinstance(read, Block):
                    read.passed_again()
                for a, b in cut(block.rows, left, threads, small=isinstance(read, Mapping)):
                    yield block.rows if a == 0 else 0, partial(add, read, a, b)
                left -= block.rows

        def add(read: Block | Mapping, a: int, b: int, parts: list[Found]) -> None:
            block = read.read(a, b) if isinstance(read, Mapping) else read
            parts[:] = [_added([*parts, job(block, a, b)])]
            if isinstance(read, Mapping):
                read.done(b - a)

        found = in_line(jobs(), list[Found], threads)
        return _added([part for parts in found for part in parts])


def _is_beside(question: Question, gradient: GradientSum) -> bool:
    """A histogram of the same model, over the same cells or of everybody."""
    beside = isinstance(question, PredictionHistogram) and question.model is gradient.model
    return beside and question.cells in (None, gradient.cells)


def _added(parts: Sequence[Found]) -> Found:
    """Sums are added, and of maxima the largest is kept."""
    if len(parts) == 1:
        return parts[0]
    made, histogram, total = (np.sum([part[at] for part in parts], axis=0) for at in range(3))
    return made, histogram, total, np.max([part[3] for part in parts], axis=0)
