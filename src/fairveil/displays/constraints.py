"""What was required of a fit beside what it released, on axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

from .. import _checks
from ..errors import InputError
from ..estimators.reading.fitted_parts import parts_of
from ..estimators.reports.constraint_report import ConstraintLine, ConstraintReport
from ..figures import Measure
from ..figures.axes_rows import draw_constraints
from ..figures.constraints import VALUE, Bounded, ConstraintsFigure
from .display import Display

if TYPE_CHECKING:
    from ..figures.axes import Axes

TITLE = "Constraints as measured in training, with noise"


class ConstraintDisplay(Display):
    """Released training value, bound and verdict of each constraint.

    Broad lines are intervals over the noise alone: they are about the training rows. Thin lines add
    the sampling error: they are about the population of the rows, and so is the verdict. All drawn
    values are released.

    Attributes
    ----------
    contents : ConstraintsFigure
        The constraints.
    ax_ : matplotlib axes
        Axes of the picture, once drawn.
    figure_ : matplotlib figure
        Figure of the picture, once drawn.
    artists_ : list
        Drawn marks, in the order of the contents.
    """

    def __init__(self, contents: ConstraintsFigure) -> None:
        _checks.instance(
            ConstraintsFigure, "contents", contents, "Use ConstraintDisplay.from_estimator."
        )
        self.contents = contents

    @classmethod
    def from_estimator(cls, estimator: object, *, ax: object = None) -> Self:
        """Draw the ``constraint_report_`` of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator that has the report.
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.

        Returns
        -------
        ConstraintDisplay
            The display, drawn.
        """
        report = parts_of(estimator).constraint_report
        if report is None:
            remedy = "Fit one that has constraints, such as RateConstrainedClassifier."
            got = type(estimator).__name__
            raise InputError.expected(
                "a fit with a constraint_report_", of="estimator", got=got, remedy=remedy
            )
        return cls.from_report(report, ax=ax)

    @classmethod
    def from_report(cls, report: ConstraintReport, *, ax: object = None) -> Self:
        """Draw a `ConstraintReport`.

        Parameters
        ----------
        report : ConstraintReport
            The report.
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.

        Returns
        -------
        ConstraintDisplay
            The display, drawn.
        """
        _checks.instance(ConstraintReport, "report", report, "Pass clf.constraint_report_.")
        lines = tuple(_bounded(line) for line in _apart(report.lines))
        measure = VALUE if report.of_what == "decisions" else Measure("constrained loss", "plain")
        return cls(ConstraintsFigure(TITLE, lines, measure)).plot(ax)

    @property
    def description(self) -> str:
        """The picture in words: each constraint with its interval and verdict."""
        return self.contents.description

    def _draw(self, axes: Axes) -> list[Any]:
        return draw_constraints(self.contents, axes)


def _bounded(line: ConstraintLine) -> Bounded:
    label = line.target.partition(" <= ")[0]
    words = label if label.isprintable() else ascii(label)
    bound = line.bound if math.isfinite(line.bound) else None
    return Bounded(words, line.value, line.noise, line.sampling, bound, line.population_verdict)


def _apart(lines: tuple[ConstraintLine, ...]) -> list[ConstraintLine]:
    """Without a gap from one group to another that is the gap back with its sign turned; of the two
    the larger stays."""
    mirrored = {(line.bound, line.noise, -line.value) for line in lines if line.value > 0.0}
    return [
        line
        for line in lines
        if not (line.value < 0.0 and (line.bound, line.noise, line.value) in mirrored)
    ]
