"""The pass that adds gradients person by person: which rows a thread takes, and what
`kernels_persons` is told."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..._types import Ints
from ...core import bound as sensitivity
from ...core.persons import whole
from ...core.rows import Block, Drawn, Rows
from ...facts import RowLayout
from ..question import Question, Scale, gridded
from ..questions.by_cell import ByCell, Weighed
from ..questions.cell_weights import by_model
from ..questions.gradients import GradientSum
from ..questions.networks import NetworkGradient
from .descent_pass import LOSS_CODES, DescentJob, units

_NOTHING = np.empty((0, 0))
_NO_WEIGHTS = np.empty(0)


def is_by_person(question: Question, rows: Rows) -> bool:
    """Whether a person's gradients are to be added before they are clipped."""
    kinds = GradientSum | NetworkGradient
    return rows.adds_by_person and isinstance(question, kinds) and question.clip is not None


def limit_of(question: GradientSum | NetworkGradient, coordinates: int, cap: float | None) -> float:
    """The largest norm of a person's sum, and what rounding of the norm may add to it, far
    above."""
    clip = math.inf if question.clip is None else question.clip
    return clip * (cap or 1.0) * (1.0 + (coordinates + 64) * 2.0**-52)


def scale_of_gradient(
    question: GradientSum | NetworkGradient, layout: RowLayout, cap: float | None
) -> Scale:
    """Bound and grid of a sum over persons: a person's sum is clipped, whatever the number of their
    rows (theory.md#units)."""
    row = question.scale(layout, cap)  # a clip that is missing is said there
    coordinates = math.prod(question.shape(layout))
    # Once more for a person: their summed gradient is clipped to the same norm as a row's would be.
    bound = sensitivity.of_signed(limit_of(question, coordinates, cap))
    if isinstance(question, GradientSum):
        return gridded(bound, coordinates)
    rounded = sensitivity.on_grid(bound, row.unit, coordinates)  # the grid of rows' whole numbers
    return Scale(rounded, row.exponent, (rounded.diameter - bound.diameter) / rounded.norm)


def scale_by_person(question: Question, layout: RowLayout, cap: float | None) -> Scale:
    """The same of a gradient sum, or of one told apart or weighed by cell: a person is in one cell,
    with all rows."""
    if isinstance(question, ByCell):
        return question.across(scale_by_person(question.inner, layout, cap), alone=False)
    if isinstance(question, Weighed):
        inner = scale_by_person(question.inner, layout, question.cap(cap))
        return question.weighing(inner, layout, alone=False, by_person=True)
    assert isinstance(question, GradientSum | NetworkGradient)
    return scale_of_gradient(question, layout, cap)


class PersonPass:
    """A gradient sum by person: all but the weights, the costs and the weights of the loss."""

    def __init__(self, asked: tuple[Question, Sequence[Scale]], rows: Rows) -> None:
        question, scales = asked
        assert isinstance(question, GradientSum)
        self._models, self._outputs, self._width = (
            question.models,
            question.model.outputs,
            1 + rows.layout.width,
        )
        self._units = units(scales, question.models)

    def job(self, questions: Sequence[Question], rows: Rows) -> DescentJob:
        """What to do with rows a to b of a block: the persons whose first row is among them."""
        (question,) = questions
        assert isinstance(question, GradientSum)
        assert question.clip is not None
        costs = question.costs(rows.layout) if question.cell_costs is not None else None
        loss_scale = question.loss_weights
        parts = (
            None if question.cell_weights is None else by_model(question.cell_weights, self._models)
        )
        clip, cap = question.clip, rows.max_sample_weight if rows.weighted else 1.0
        kind, labels = LOSS_CODES[question.loss], question.cost_labels
        cells = question.cells if question.reads_cells else None

        def job(given: Block | Drawn, a: int, b: int) -> tuple[Ints, ...]:
            from ..kernels import persons as kernels_persons

            block = given.gathered if isinstance(given, Drawn) else given
            # A thread takes persons, not rows: none is cut between two threads, so each is clipped
            # once.
            start, stop = whole(block.persons, a), whole(block.persons, b)
            out = np.zeros((self._models, self._outputs, self._width), np.int64)
            head = (
                *block.arrays(rows.offsets),
                block.labels,
                block.cells(cells),
                block.weights,
                block.persons,
                block.reach,
            )
            for m in range(self._models if stop > start else 0):
                c, w = (
                    _NOTHING if costs is None else costs[m],
                    _NO_WEIGHTS if parts is None else parts[m],
                )
                loss = (kind, float(loss_scale[m]), w, question.model.sharpness, c, labels)
                unit = float(self._units[m])
                end = (clip, clip * cap * unit, unit, out[m])
                kernels_persons.person_gradients(
                    *head, question.model.array[m], start, stop, *loss, *end
                )
            return (out,)

        return job
