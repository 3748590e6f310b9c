"""What displays share: contents that are drawn once `plot` is called, and the axes that they were
drawn on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from ..figures.axes import axes_of

if TYPE_CHECKING:
    from ..figures.axes import Axes


class Display:
    """Public numbers, and how they are drawn.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure of matplotlib, once drawn.
    artists_ : list
        What was drawn, in the order of the contents.
    """

    ax_: Any
    figure_: Any
    artists_: list[Any]

    @property
    def description(self) -> str:
        """The picture in words, for those who do not see it: the text alternative that a page would
        have."""
        raise NotImplementedError

    def plot(self, ax: object = None) -> Self:
        """Draw on these axes, or on new ones. Needs matplotlib (the extra ``report``).

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.

        Returns
        -------
        self
            The display, drawn.
        """
        axes = axes_of(ax)
        self.artists_ = self._draw(axes)
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def _draw(self, axes: Axes) -> list[Any]:
        raise NotImplementedError
