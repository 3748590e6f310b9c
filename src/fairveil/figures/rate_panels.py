"""Several rates by group side by side: a small panel a rate, a row a group, dots with their
intervals."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _checks
from ..errors import InputError
from .checked import line, several
from .contents import Rate, RatesFigure
from .gaps import row_scale
from .scales import AxisScale, number, round_ticks, tick_texts, with_unit
from .styles import AXIS, GRID, OWN_COLOURS, QUIET, Style
from .svg import BOLDER, Drawing, shortened, text_width, wrapped
from .words import rates_description

SIZE, SMALL, TINY = 13.0, 12.0, 11.5
ROW, BELOW, BETWEEN, NAMES = 34.0, 30.0, 18.0, 0.24
BESIDE = 560  # from this width on all panels stand beside each other
COLUMNS = 4


@dataclass(frozen=True)
class RatePanels:
    """Rates of the same groups in the same order; `last_is_everyone`: the last row is no group."""

    title: str
    panels: tuple[RatesFigure, ...]
    last_is_everyone: bool = True

    def __post_init__(self) -> None:
        line(title=self.title)
        _checks.normalise(self, panels=several(RatesFigure, "panels", self.panels))
        labels = {tuple(rate.label for rate in one.rates) for one in self.panels}
        if len(labels) > 1:
            remedy = "Pass rates of the same groups in the same order."
            raise InputError.expected(
                "the same groups", of="panels", got=sorted(labels), remedy=remedy
            )

    @property
    def description(self) -> str:
        """The figure in words."""
        return " ".join(rates_description(one) for one in self.panels)

    def gap(self, panel: RatesFigure) -> float | None:
        """The largest difference of two groups' rates; None where fewer than two have one."""
        rates = panel.rates[:-1] if self.last_is_everyone else panel.rates
        values = [rate.value for rate in rates if rate.value is not None]
        return max(values) - min(values) if len(values) > 1 else None


def svg_rate_panels(figure: RatePanels, *, width: int = 720, name: str = "rates") -> str:
    """The panels beside each other, on a narrow page two by two; each axis begins at zero and has
    its own end."""
    width = _checks.whole(at_least=320, width=width)
    columns = min(len(figure.panels), COLUMNS if width >= BESIDE else 2)
    labels = [rate.label for rate in figure.panels[0].rates]
    names = min(max(text_width(label, SIZE) for label in labels) * BOLDER + 16, NAMES * width)
    plot = (width - names - BETWEEN * columns) / columns
    heads = [wrapped(one.name, SMALL, plot) for one in figure.panels]
    over = 16.0 * max(map(len, heads)) + 24
    tall = over + ROW * len(labels) + BELOW
    rows = -(-len(figure.panels) // columns)
    drawing = Drawing(width, rows * tall, name)
    drawing.add("rect", width=width, height=drawing.height, fill="#fff")
    for place, (panel, head) in enumerate(zip(figure.panels, heads, strict=True)):
        row, column = divmod(place, columns)
        top, left = row * tall, names + column * (plot + BETWEEN)
        if column == 0:
            _names(drawing, figure, labels, names, top + over)
        _panel(drawing, figure, panel, head, (left, left + plot), top, top + over)
    return drawing.whole(figure.title, figure.description)


def _names(
    drawing: Drawing, figure: RatePanels, labels: list[str], room: float, top: float
) -> None:
    for place, label in enumerate(labels):
        weight = "bold" if figure.last_is_everyone and place == len(labels) - 1 else None
        size = (room - 14) / (BOLDER if weight else 1.0)
        drawing.text(
            room - 8,
            top + ROW * place + 24,
            shortened(label, SIZE, size),
            SIZE,
            "end",
            font_weight=weight,
        )


def _panel(
    drawing: Drawing,
    figure: RatePanels,
    panel: RatesFigure,
    head: list[str],
    ends: tuple[float, float],
    top: float,
    under: float,
) -> None:
    left, right = ends
    bottom = under + ROW * len(panel.rates)
    scale = panel_scale(panel).moved(left, right)
    for place, words in enumerate(head):
        drawing.text(left, top + 14 + 16 * place, words, SMALL, font_weight="bold")
    gap = figure.gap(panel)
    said = "no gap is defined" if gap is None else f"gap {with_unit(gap, 'points')}"
    drawing.text(
        left,
        top + 14 + 16 * len(head),
        shortened(said, TINY, right - left + BETWEEN - 4),
        TINY,
        fill=QUIET,
    )
    for value, text in zip(scale.ticks, tick_texts(scale.ticks, "percent"), strict=True):
        drawing.line(scale(value), under, scale(value), bottom, GRID)
        half = text_width(text, TINY) / 2
        drawing.text(
            min(scale(value), right - half + 6),
            bottom + 15,
            text,
            TINY,
            "middle",
            fill=QUIET,
            data_tick=repr(value),
        )
    drawing.line(left, bottom, right, bottom, AXIS, 1.2)
    for place, rate in enumerate(panel.rates):
        _rate(drawing, rate, scale, under + ROW * place + 20)


def _rate(drawing: Drawing, rate: Rate, scale: AxisScale, middle: float) -> None:
    if rate.value is None:
        drawing.text(
            scale.start + 3,
            middle + 4,
            shortened("undefined", TINY, scale.end - scale.start),
            TINY,
            fill=QUIET,
        )
        return
    style = Style("circle", not rate.small, "", OWN_COLOURS[0], 2)
    ends = (
        ""
        if rate.low is None or rate.high is None
        else f" ({number(rate.low, 'percent')}–{number(rate.high, 'percent')})"
    )
    drawing.open(
        "g", f"{rate.label}: {number(rate.value, 'percent')}%{ends}", data_value=repr(rate.value)
    )
    if rate.low is not None and rate.high is not None:
        drawing.line(scale(rate.low), middle, scale(rate.high), middle, style.colour, 2)
        for end in (rate.low, rate.high):
            drawing.line(scale(end), middle - 4, scale(end), middle + 4, style.colour, 2)
    drawing.marker(scale(rate.value), middle, style, 4.4)
    drawing.close("g")
    text = number(rate.value, "percent")
    half = text_width(text, TINY) / 2
    place = min(max(scale(rate.value), scale.start + half), scale.end - half + BETWEEN / 2)
    drawing.text(place, middle - 8, text, TINY, "middle")


def panel_scale(panel: RatesFigure) -> AxisScale:
    """From 0 to 1 over what is there, from zero on, with few ticks: panels are small."""
    values = [value for rate in panel.rates for value in (rate.value, rate.low, rate.high)]
    made = row_scale(values)
    return AxisScale(made.low, made.high, 0.0, 1.0, round_ticks(made.low, made.high, 3))
