"""A ledger's budget on axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from .. import _checks
from ..errors import InputError
from ..figures import BudgetFigure, CourseFigure
from ..figures.axes_rows import draw_budget, draw_course
from ..privacy.ledger import Ledger
from ..report import ledger as ledger_section
from ..report.ledger import budget_figure, course_figure
from .display import Display

if TYPE_CHECKING:
    from ..figures.axes import Axes

Kind = Literal["releases", "time"]
KINDS: tuple[Kind, ...] = ("releases", "time")


class BudgetDisplay(Display):
    """Releases from a budget and what is left of it, or the charges over time.

    Shares are parts of the budget as the ledger charges it; they add up, and epsilons do not. Use
    `from_ledger`, then `plot`.

    Attributes
    ----------
    contents : BudgetFigure or CourseFigure
        The releases, or the moments.
    ax_ : matplotlib axes
        Axes of the picture, once drawn.
    figure_ : matplotlib figure
        Figure of the picture, once drawn.
    artists_ : list
        Drawn marks, in the order of the contents.
    """

    def __init__(self, contents: BudgetFigure | CourseFigure) -> None:
        kind = CourseFigure if isinstance(contents, CourseFigure) else BudgetFigure
        _checks.instance(kind, "contents", contents, "Use BudgetDisplay.from_ledger.")
        self.contents = contents

    @classmethod
    def from_ledger(cls, ledger: Ledger, *, kind: Kind = "releases", ax: object = None) -> Self:
        """Draw a ledger as it is now.

        Parameters
        ----------
        ledger : Ledger
            An open ledger; a read-only one will do.
        kind : {"releases", "time"}, default="releases"
            A row a release, or a line of charges over time.
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.

        Returns
        -------
        BudgetDisplay
            The display, drawn.
        """
        _checks.instance(
            Ledger,
            "ledger",
            ledger,
            "Pass fairveil.Ledger.open('budget.db', read_only=True), for example.",
        )
        _checks.one_of(KINDS, kind=kind)
        section = ledger_section(ledger, ())
        contents = budget_figure(section) if kind == "releases" else course_figure(section)
        if contents is None:
            remedy = "Nothing was charged yet: draw kind='releases'."
            raise InputError.expected(
                "a ledger with a charge", of="ledger", got="none", remedy=remedy
            )
        return cls(contents).plot(ax)

    @property
    def description(self) -> str:
        """The picture in words: each release and what is left."""
        return self.contents.description

    def _draw(self, axes: Axes) -> list[Any]:
        draw: Any = draw_budget if isinstance(self.contents, BudgetFigure) else draw_course
        found: list[Any] = draw(self.contents, axes)
        return found
