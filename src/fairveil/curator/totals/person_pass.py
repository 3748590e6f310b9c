"""How far a person moves a sum of gradients, which are added and then clipped (theory.md#units)."""

from __future__ import annotations

import math

from ...core import bound as sensitivity
from ...core.rows import Rows
from ...facts import RowLayout
from ..question import Question, Scale, gridded
from ..questions.by_cell import ByCell, Weighed
from ..questions.gradients import GradientSum
from ..questions.networks import NetworkGradient


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
