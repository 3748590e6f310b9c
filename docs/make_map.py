"""Draws docs/rooms.svg and docs/walk.svg, and writes the table of sub-rooms in
docs/architecture.md, from the sources.

    python docs/make_map.py

tests/test_map.py says whether they are up to date, and whether every step of the walk is a function
that exists.
"""

from __future__ import annotations

import ast
import html
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent / "src" / "fairveil"
sys.path.insert(0, str(DOCS.parent / "tests"))

from test_rooms import INSIDE, LINES, _imports  # noqa: E402  # the order that the tests hold

FRAME = 'font-family="Helvetica, Arial, sans-serif" role="img"'
INK, FAINT, PAPER, ACCENT, HELD = "#1b1b1b", "#8a8a8a", "#ffffff", "#0b5cad", "#fdf3e1"
BEGIN, END = "<!-- rooms: begin -->", "<!-- rooms: end -->"

WALK = (
    # where it is said, what is called, what becomes of X
    (
        "estimators/faces.py",
        "CodedEstimator._fitted",
        "X, y and the groups arrive as the user holds them",
    ),
    (
        "estimators/reading.py",
        "read",
        "columns become numbers and codes: a Training with its Rows",
    ),
    (
        "estimators/fitting.py",
        "OpenedFit.of",
        "cautions; the ledger is asked; nothing is asked of rows",
    ),
    (
        "methods/primal_dual.py",
        "planned",
        "the whole run is planned and its noise calibrated: no rows needed",
    ),
    (
        "core/curator.py",
        "Curator",
        "holds the Rows from here on; reserves the plan in the ledger",
    ),
    (
        "methods/descent.py",
        "descend",
        "asks what the method yields, and sends it the answers",
    ),
    (
        "core/curator.py",
        "Curator.answer",
        "checks that the plan covers the ask, and writes the log",
    ),
    (
        "core/passes.py",
        "Passes.run",
        "one pass over blocks for all that is asked together",
    ),
    (
        "core/kernels.py",
        None,
        "a row's gradient is clipped and added, in whole units of a grid",
    ),
    ("core/curator.py", "LaidOut.answers", "discrete noise is added to the exact totals"),
    (
        "methods/primal_dual.py",
        "PrimalDual.search",
        "the released gradient moves the model, the histogram the duals",
    ),
    ("methods/comparison.py", "chosen", "what was released last chooses the final model"),
    (
        "estimators/descending.py",
        "DescentWay.conclude",
        "model_, privacy_ and the reports are published",
    ),
)


def rooms() -> str:
    """The map: a line of rooms each ring, what is public or held below, who asks above; arrows to
    the next rooms below."""
    level = {name: number for number, names in enumerate(LINES) for name in names}
    shown = [[name for name in names if (ROOT / name).is_dir()] for names in LINES]
    shown = [names for names in shown if names]
    box: dict[str, tuple[float, float, float, float]] = {}
    y, parts = 20.0, []
    for names in reversed(shown):
        heights = {name: 34.0 + 15.0 * len(INSIDE.get(name, ())) for name in names}
        width = (860.0 - 14.0 * (len(names) - 1)) / len(names)
        for place, name in enumerate(names):
            box[name] = (20.0 + place * (width + 14.0), y, width, heights[name])
        y += max(heights.values()) + 34.0
    for source, target in _drawn(level, set(box)):
        (xs, ys, ws, hs), (xt, yt, wt, _) = box[source], box[target]
        parts.append(
            f'<line x1="{xs + ws / 2:.0f}" y1="{ys + hs:.0f}" x2="{xt + wt / 2:.0f}" y2="{yt:.0f}" '
            f'stroke="{FAINT}" stroke-width="1" marker-end="url(#tip)"/>'
        )
    for name, (left, top, width, height) in box.items():
        filling = HELD if name == "core" else PAPER
        parts.append(
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" rx="4" '
            f'fill="{filling}" '
            f'stroke="{ACCENT if name == "core" else INK}"/>'
        )
        parts.append(_text(left + 10, top + 22, name, 14, bold=True))
        for number, line in enumerate(reversed(INSIDE.get(name, ()))):
            parts.append(_text(left + 10, top + 40 + 15 * number, " · ".join(line), 11))
    said = (
        "Rooms of the library from the command line down to what is public; arrows lead to rooms "
        "that are imported."
    )
    return _svg(900, y - 10, "The rooms of fairveil", said, parts)


def walk() -> str:
    """How X goes from `fit` to the compiled loop and what comes back."""
    columns = ("estimators", "methods", "core")
    parts = []
    for number, name in enumerate(columns):
        left = 20 + 290 * number
        parts.append(
            f'<rect x="{left}" y="14" width="280" height="{34 + 58 * len(WALK)}" '
            f'fill="{HELD if number == 2 else PAPER}"'
        )
        parts[-1] += f' stroke="{FAINT}"/>'
        parts.append(
            _text(left + 10, 36, f"{name}: sees rows" if number == 2 else name, 14, bold=True)
        )
    earlier: tuple[float, float] | None = None
    for number, (path, called, becomes) in enumerate(WALK):
        room = path.split("/")[0]
        at = columns.index(room)
        left, top = 28 + 290 * at, 48 + 58 * number
        if earlier is not None:
            parts.append(
                f'<line x1="{earlier[0]:.0f}" y1="{earlier[1]:.0f}" x2="{left + 132}" y2="{top}" '
                f'stroke="{FAINT}" '
                'marker-end="url(#tip)"/>'
            )
        parts.append(
            f'<rect x="{left}" y="{top}" width="264" height="46" rx="4" fill="{PAPER}" '
            f'stroke="{INK}"/>'
        )
        title = (
            path.split("/", 1)[1]
            if called is None
            else f"{called.split('.', 1)[-1]}  ({path.split('/', 1)[1]})"
        )
        parts.append(_text(left + 8, top + 15, f"{number + 1}. {title}", 11, bold=True))
        first, rest = _two(becomes)
        parts.append(_text(left + 8, top + 28, first, 10))
        parts.append(_text(left + 8, top + 40, rest, 10))
        earlier = (left + 132, top + 46)
    said = "; ".join(f"{path}: {becomes}" for path, _, becomes in WALK)
    return _svg(
        900,
        70 + 58 * len(WALK),
        "The walk of X from fit to the compiled loop and back",
        said,
        parts,
    )


def table() -> str:
    """The sub-rooms, each with the sentence that it says of itself."""
    lines = ["| room | sub-room | what it holds |", "|---|---|---|"]
    for room, order in INSIDE.items():
        for name in (name for line in order for name in line):
            door = ROOT / room / name / "__init__.py"
            if door.exists():
                said = _sentence(ast.get_docstring(ast.parse(door.read_text("utf-8"))) or "")
                lines.append(f"| `{room}` | `{name}` | {said} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page on the architecture with the table as it should be."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


def _drawn(level: dict[str, int], there: set[str]) -> list[tuple[str, str]]:
    """Who imports whom, without what follows from the rest."""
    direct: dict[str, set[str]] = {name: set() for name in there}
    for name in there:
        for path in sorted((ROOT / name).rglob("*.py")):
            found = {
                target.split(".")[1]
                for target in _imports(path.relative_to(ROOT), path.read_text("utf-8"))
                if "." in target
            }
            direct[name] |= (found & there) - {name}

    def reached(name: str) -> set[str]:
        return (
            direct[name].union(*(reached(other) for other in direct[name]))
            if direct[name]
            else set()
        )

    drawn = []
    for name in sorted(there, key=lambda name: (level[name], name)):
        beyond: set[str] = set().union(*(reached(other) for other in direct[name]))
        drawn += [(name, other) for other in sorted(direct[name] - beyond)]
    return drawn


def _two(text: str) -> tuple[str, str]:
    """One line or two, of at most 48 characters where words allow it."""
    words, first = text.split(), ""
    while words and len(first) + len(words[0]) < 48:
        first = f"{first} {words.pop(0)}".strip()
    return first, " ".join(words)


def _text(x: float, y: float, text: str, size: int, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" '
        f'fill="{INK}"{weight}>{html.escape(text)}</text>'
    )


def _svg(width: float, height: float, title: str, said: str, parts: list[str]) -> str:
    tip = '<marker id="tip" markerWidth="8" markerHeight="8" refX="6" refY="3" orient="auto">'
    tip += f'<path d="M0,0 L6,3 L0,6" fill="{FAINT}"/></marker>'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {FRAME} '
        f'aria-labelledby="t d">'
    )
    words = f'<title id="t">{html.escape(title)}</title><desc id="d">{html.escape(said)}</desc>'
    paper = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
    return "\n".join((head, words, f"<defs>{tip}</defs>", paper, *parts, "</svg>\n"))


def main() -> None:
    (DOCS / "rooms.svg").write_text(rooms(), "utf-8")
    (DOCS / "walk.svg").write_text(walk(), "utf-8")
    architecture = DOCS / "architecture.md"
    architecture.write_text(page(architecture.read_text("utf-8")), "utf-8")


def _sentence(text: str) -> str:
    """The lines up to the first that ends a sentence, as one."""
    ends = re.match(r".*?[.:](?=\n|$)", text, re.DOTALL)
    return " ".join((ends[0] if ends else text).split())


if __name__ == "__main__":
    main()
