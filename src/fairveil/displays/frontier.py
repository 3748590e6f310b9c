"""A frontier on axes: error against gap, one curve an epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from .. import _checks
from ..figures import Floor, FrontierFigure
from ..figures.axes_curves import draw_frontier
from ..figures.words import frontier_description
from ..study import Frontier
from .display import Display

if TYPE_CHECKING:
    from ..figures.axes import Axes


class FrontierDisplay(Display):
    """Error against fairness gap on held-out rows, one curve an epsilon, published curves beside.

    Use `from_frontier`, then `plot`. Held-out rows are read without noise: the figure is not
    covered by the guarantee.

    Attributes
    ----------
    contents : FrontierFigure
        The curves, such as ``frontier.figure()``.
    ax_ : matplotlib axes
        Axes of the picture, once drawn.
    figure_ : matplotlib figure
        Figure of the picture, once drawn.
    artists_ : list
        Drawn marks, in the order of the contents.
    """

    def __init__(self, contents: FrontierFigure) -> None:
        _checks.instance(
            FrontierFigure,
            "contents",
            contents,
            "Pass frontier.figure(), or use FrontierDisplay.from_frontier.",
        )
        self.contents = contents

    @classmethod
    def from_frontier(
        cls,
        frontier: Frontier,
        *,
        dataset: str = "held-out rows",
        floor: Floor | None = None,
        notes: Sequence[str] = (),
        ax: object = None,
    ) -> Self:
        """Draw what `fairveil.frontier` found.

        Parameters
        ----------
        frontier : Frontier
            A frontier with held-out rows.
        dataset : str, default="held-out rows"
            Whose rows, for the title.
        floor : Floor, default=None
            Gap that an exactly fair model measures at on so few rows. None: not drawn.
        notes : sequence of str, default=()
            Sentences for the text alternative.
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.

        Returns
        -------
        FrontierDisplay
            The display, drawn.
        """
        _checks.instance(
            Frontier, "frontier", frontier, "Pass what fairveil.frontier(...) returns."
        )
        return cls(frontier.figure(dataset=dataset, floor=floor, notes=notes)).plot(ax)

    @property
    def description(self) -> str:
        """The picture in words: what lies where, curve by curve."""
        return frontier_description(self.contents)

    def _draw(self, axes: Axes) -> list[Any]:
        return draw_frontier(self.contents, axes)
