"""Figures on a dark page: a second colour for each of the first, as rules of a style sheet.

Drawings hold plain colours, which every program understands. A page that is read in the dark adds
these rules; they match the drawing's own colours, so nothing in a drawing has to know of them.
"""

from __future__ import annotations

from .styles import AXIS, GRID, INK, OWN_COLOURS, QUIET, THEIR_COLOURS

PAPER = "#15191f"
DARK: dict[str, str] = {
    "#fff": PAPER,
    INK: "#f1f3f5",
    QUIET: "#b6bec8",
    GRID: "#333b45",
    AXIS: "#8d97a3",
    "#bdbdbd": "#5a6470",  # the floor's hatching
    "#3a6ea5": "#5b93d1",  # a budget's second shade
    **dict(
        zip(
            OWN_COLOURS,
            ("#86b9f7", "#ff9d7a", "#5fd0bd", "#cf9df0", "#e0b94f", "#ff93bb"),
            strict=True,
        )
    ),
    **dict(
        zip(
            THEIR_COLOURS,
            ("#c4c4c4", "#e0ac66", "#a9b8c8", "#cfa7cf", "#97c9a6", "#dba394"),
            strict=True,
        )
    ),
}
"""Every colour that a drawing may hold, and what it becomes."""


def dark_rules(scope: str = "") -> str:
    """Rules for a style sheet, a line a colour; `scope` stands before each selector, `svg ` on a
    page."""
    kinds = ("fill", "stroke")
    return "\n".join(
        f'{scope}[{kind}="{light}"] {{ {kind}: {dark}; }}'
        for light, dark in DARK.items()
        for kind in kinds
    )


def with_dark(drawn: str) -> str:
    """A drawing for a file of its own: it carries the rules with it, for whoever looks at it in the
    dark."""
    head, end, rest = drawn.partition(">")
    style = "\n".join(("<style>@media (prefers-color-scheme: dark) {", dark_rules(), "}</style>"))
    return f"{head}{end}\n{style}{rest}"
