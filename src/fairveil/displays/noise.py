"""The noise of a fit, before it is made, on axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator

from .. import _checks
from ..estimators.fitting.plan import Plan
from ..figures import CurvesFigure
from ..figures.axes_curves import draw_curves
from ..figures.curves import curves_description
from .display import Display

if TYPE_CHECKING:
    from ..figures.axes import Axes


class NoiseDisplay(Display):
    """Smallest bound that noise allows, against epsilon: a line a group, and the required bound.

    It is made of public facts alone: nothing is read, and nothing is spent.

    Attributes
    ----------
    contents : CurvesFigure
        The curves.
    ax_ : matplotlib axes
        Axes of the picture, once drawn.
    figure_ : matplotlib figure
        Figure of the picture, once drawn.
    artists_ : list
        Drawn marks, in the order of the contents.
    """

    def __init__(self, contents: CurvesFigure) -> None:
        _checks.instance(CurvesFigure, "contents", contents, "Use NoiseDisplay.from_plan.")
        self.contents = contents

    @classmethod
    def from_plan(cls, plan: Plan, *, ax: object = None) -> Self:
        """Draw the noise of a plan.

        Parameters
        ----------
        plan : Plan
            What ``estimator.plan(...)`` returns.
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.

        Returns
        -------
        NoiseDisplay
            The display, drawn.
        """
        _checks.instance(Plan, "plan", plan, "Pass clf.plan(schema).")
        return cls(plan.curves()).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        schema: object = None,
        *,
        ax: object = None,
        **options: object,
    ) -> Self:
        """Plan a fit and draw its noise.

        Parameters
        ----------
        estimator : estimator
            An estimator, fitted or not.
        schema : Schema, default=None
            Public facts of the table. None: the estimator's own.
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.
        **options
            Further arguments of ``estimator.plan``.

        Returns
        -------
        NoiseDisplay
            The display, drawn.
        """
        return cls.from_plan(estimator.plan(schema, **options), ax=ax)

    @property
    def description(self) -> str:
        """The picture in words: where each line begins and ends."""
        return curves_description(self.contents)

    def _draw(self, axes: Axes) -> list[Any]:
        return draw_curves(self.contents, axes)
