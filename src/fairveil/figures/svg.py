"""A drawing in SVG: elements in order, every text escaped, and the width that a text will take."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field

from .styles import INK, Style

FONT = "Arial, 'Liberation Sans', 'Helvetica Neue', Helvetica, sans-serif"
BOLDER = 1.1  # how much wider bold letters are
# The larger of the widths in Helvetica and in DejaVu Sans, which a machine without Arial takes, in
# thousandths of the size; others are taken for wide letters.
NARROW = {
    280: "'ijl",
    320: "I ,.",
    360: "/:;\\|f-",
    400: "()[]t",
    420: "!r",
    500: '"*J`',
    560: "?L_csz",
    600: "kvxy",
    620: "FTaeo",
    640: "$0123456789bdghnpqu{}",
}
WIDE = {
    680: "EKPSY",
    700: "ABVXZ",
    740: "CRU",
    760: "HN",
    800: "&DGOQ",
    840: "w#+<=>^~",
    880: "M",
    1000: "%mW",
    1020: "@",
}
WIDTHS = {
    letter: width / 1000
    for table in (NARROW, WIDE)
    for width, letters in table.items()
    for letter in letters
}


# For letters that lie over lines: whatever is behind them is taken off.
HALO: dict[str, object] = {
    "stroke": "#fff",
    "stroke_width": 3,
    "stroke_linejoin": "round",
    "paint_order": "stroke",
}


@dataclass
class Drawing:
    """Elements of one picture. `name` starts every id, so that several pictures fit on one page."""

    width: float
    height: float
    name: str
    parts: list[str] = field(default_factory=list)

    def add(self, tag: str, content: str | None = None, /, **attributes: object) -> None:
        """One element; `stroke_width` is written `stroke-width`, attributes that are None are left
        out."""
        if content is None:
            self.parts.append(f"<{tag}{_written(attributes)}/>")
        else:
            self.parts.append(
                f"<{tag}{_written(attributes)}>{html.escape(content, quote=False)}</{tag}>"
            )

    def open(self, tag: str, /, title: str = "", **attributes: object) -> None:
        """The beginning of a group; `title` is shown by a pointer that rests on it."""
        self.parts.append(f"<{tag}{_written(attributes)}>")
        if title:
            self.add("title", title)

    def close(self, tag: str) -> None:
        """The end of a group."""
        self.parts.append(f"</{tag}>")

    def line(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        colour: str,
        width: float = 1.0,
        dash: str = "",
    ) -> None:
        """A straight line."""
        ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        self.add("line", **ends, stroke=colour, stroke_width=width, stroke_dasharray=dash or None)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 13,
        anchor: str = "start",
        **attributes: object,
    ) -> None:
        """Words at a place."""
        placed = {
            "x": x,
            "y": y,
            "font_size": size,
            "text_anchor": None if anchor == "start" else anchor,
        }
        self.add("text", text, **placed, **({"fill": INK} | attributes))

    def marker(self, x: float, y: float, style: Style, size: float = 4.6) -> None:
        """A mark in its own shape: filled, or with a white middle."""
        fill = style.colour if style.filled else "#fff"
        paint = {
            "fill": fill,
            "stroke": style.colour,
            "stroke_width": 1.6,
            "stroke_linejoin": "round",
        }
        if style.shape == "circle":
            self.add("circle", cx=x, cy=y, r=size, **paint)
            return
        corners = [(x + size * dx, y + size * dy) for dx, dy in SHAPES[style.shape]]
        if style.shape in OPEN:
            ends = zip(corners[::2], corners[1::2], strict=True)
            path = "".join(
                f"M{_text(a)} {_text(b)}L{_text(c)} {_text(d)}" for (a, b), (c, d) in ends
            )
            self.add("path", d=path, fill="none", stroke="#fff", stroke_width=5)
            self.add(
                "path",
                d=path,
                fill="none",
                stroke=style.colour,
                stroke_width=2.2 if style.filled else 1.6,
            )
        else:
            self.add(
                "polygon", points=" ".join(f"{_text(a)},{_text(b)}" for a, b in corners), **paint
            )

    def whole(self, title: str, description: str) -> str:
        """The picture as one element that stands by itself, with its text alternative."""
        ids = f"{self.name}-title {self.name}-description"
        head = {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {_text(self.width)} {_text(self.height)}",
            "width": self.width,
            "height": self.height,
            "role": "img",
            "aria-labelledby": ids,
            "font_family": FONT,
        }
        words = [
            f'<title id="{self.name}-title">{html.escape(title, quote=False)}</title>',
            f'<desc id="{self.name}-description">{html.escape(description, quote=False)}</desc>',
        ]
        return "\n".join((f"<svg{_written(head)}>", *words, *self.parts, "</svg>"))


def _ring(corners: int, turn: float, size: float = 1.0) -> tuple[tuple[float, float], ...]:
    angles = [math.tau * (turn + corner / corners) for corner in range(corners)]
    return tuple((size * math.sin(angle), -size * math.cos(angle)) for angle in angles)


# Corners in units of the size, sized so that all look equally large; for open shapes the ends of
# strokes, two by two.
SHAPES = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "triangle": _ring(3, 0.0, 1.3),
    "diamond": _ring(4, 0.0, 1.3),
    "down": _ring(3, 0.5, 1.3),
    "cross": ((-0.95, -0.95), (0.95, 0.95), (-0.95, 0.95), (0.95, -0.95)),
    "plus": ((0.0, -1.25), (0.0, 1.25), (-1.25, 0.0), (1.25, 0.0)),
    "star": tuple(
        tip for pair in zip(_ring(5, 0.0, 1.55), _ring(5, 0.1, 0.62), strict=True) for tip in pair
    ),
}
OPEN = ("cross", "plus")


def text_width(text: str, size: float) -> float:
    """How wide a text will be at most, in pixels: in Helvetica, its metric equals, DejaVu Sans.

    >>> text_width("0.5", 10)
    16.0
    """
    return round(
        size * sum(WIDTHS.get(letter, 0.7 if ord(letter) < 0x2E80 else 1.0) for letter in text), 3
    )


def wrapped(text: str, size: float, width: float) -> list[str]:
    """The text in lines that are not wider, broken at spaces; a word that alone is too wide is cut.

    >>> wrapped("whole records protected", 10, 80)
    ['whole records', 'protected']
    """
    lines: list[str] = []
    for word in text.split(" "):
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [shortened(line, size, width) for line in lines]


def shortened(text: str, size: float, width: float) -> str:
    """The text, cut with an ellipsis where it would be wider."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _written(attributes: dict[str, object]) -> str:
    pairs = (
        (name.replace("_", "-"), value) for name, value in attributes.items() if value is not None
    )
    return "".join(f' {name}="{_text(value)}"' for name, value in pairs)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".") or "0"
    return html.escape(str(value))
