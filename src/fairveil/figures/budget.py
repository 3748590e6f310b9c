"""A budget that many releases share: what each release took of it and what is left, and how it came
to that over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from .. import _checks
from ..errors import InputError
from .checked import finite, line, several
from .contents import Measure
from .scales import AxisScale, axis_title, round_ticks, tick_texts, with_unit
from .styles import AXIS, GRID, INK, OWN_COLOURS, QUIET
from .svg import BOLDER, Drawing, shortened, text_width

SIZE, SMALL = 13.0, 12.0
LEFT, RIGHT, OVER, UNDER = 52.0, 24.0, 34.0, 52.0
TOP, BAR, BELOW, LINE = 8.0, 40.0, 58.0, 18.0  # of the bar
BESIDE = 560  # from this width on the list has two columns
SHADES = (OWN_COLOURS[0], "#3a6ea5")
MOST_SEGMENTS, MOST_LISTED = 100, 12
SHARE = Measure("share of the budget")
DAY = 86_400
SECONDS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
DAYS = tuple(DAY * days for days in (1, 2, 7, 14, 28, 91, 182, 365, 730, 1826, 3652, 18_262))
MOST_TICKS = 5


@dataclass(frozen=True)
class BudgetPart:
    """What one release took: a share of the budget."""

    label: str
    share: float

    def __post_init__(self) -> None:
        line(label=self.label)
        _checks.normalise(self, share=finite("share", self.share))


@dataclass(frozen=True)
class BudgetFigure:
    """Releases in a row, the oldest first, and what is left. Of many, the oldest are drawn as
    one."""

    dataset: str
    parts: tuple[BudgetPart, ...]
    left: float

    def __post_init__(self) -> None:
        line(dataset=self.dataset)
        _checks.normalise(
            self,
            left=finite("left", self.left),
            parts=several(BudgetPart, "parts", self.parts) if self.parts else (),
        )

    @property
    def title(self) -> str:
        """What the figure is."""
        return f"The budget of {self.dataset}, release by release"

    @property
    def description(self) -> str:
        """The figure in words."""
        rows = [
            *((part.label, spent_text(part.share)) for part in self.segments),
            ("left", left_text(self.left)),
        ]
        return "; ".join(f"{label}: {share}%" for label, share in rows) + "."

    @property
    def segments(self) -> tuple[BudgetPart, ...]:
        """The releases that have a segment each, and the older ones together."""
        older, own = self.parts[:-MOST_SEGMENTS], self.parts[-MOST_SEGMENTS:]
        if not older:
            return own
        return (
            BudgetPart(f"{len(older):,} older releases", sum(part.share for part in older)),
            *own,
        )


@dataclass(frozen=True)
class Moment:
    """What was charged from a moment on: `days` after the beginning, a share of the budget."""

    days: float
    share: float

    def __post_init__(self) -> None:
        _checks.normalise(self, days=finite("days", self.days), share=finite("share", self.share))


@dataclass(frozen=True)
class CourseFigure:
    """What was charged, from moment to moment, against the cap. `begun`: the date and time of day
    0, in ISO 8601."""

    dataset: str
    begun: str
    moments: tuple[Moment, ...]

    def __post_init__(self) -> None:
        line(dataset=self.dataset)
        found = sorted(several(Moment, "moments", self.moments), key=lambda one: one.days)
        _checks.normalise(self, moments=tuple(found))
        try:
            self.when(found[0].days), self.when(found[-1].days)
        except (TypeError, ValueError, OverflowError):
            remedy = "Pass begun='2026-01-31T12:00:00Z', for example."
            raise InputError.expected(
                "a date and time", of="begun", got=self.begun, remedy=remedy
            ) from None

    @property
    def title(self) -> str:
        """What the figure is."""
        return f"What was charged to the budget of {self.dataset}, over time"

    @property
    def description(self) -> str:
        """The figure in words."""
        first, last = self.moments[0], self.moments[-1]
        highest = max(self.moments, key=lambda one: one.share)
        said = (
            f"from {with_unit(first.share, 'percent')} on {self._on(first)} to "
            f"{with_unit(last.share, 'percent')} on"
        )
        return (
            f"A line of steps {said} {self._on(last)}; at most "
            f"{with_unit(highest.share, 'percent')}, cap 100.0%."
        )

    def _on(self, moment: Moment) -> str:
        return self.when(moment.days).strftime("%Y-%m-%d")

    def when(self, days: float) -> datetime:
        """The date and time of so many days after the beginning, in UTC."""
        begun = datetime.fromisoformat(self.begun)
        start = begun.replace(tzinfo=UTC) if begun.tzinfo is None else begun.astimezone(UTC)
        return start + timedelta(days=days)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """(days, text) at round times of the clock or the calendar, in UTC.

        >>> CourseFigure(
        ...     "census", "2026-01-30T00:00:00Z", (Moment(0.0, 0.0), Moment(3.5, 0.2))
        ... ).ticks()[1]
        (1.0, '2026-01-31')
        """
        start = self.when(0.0).timestamp()
        low, high = (start + DAY * one.days for one in (self.moments[0], self.moments[-1]))
        step = next(
            (one for one in (*SECONDS, *DAYS) if (high - low) / one <= MOST_TICKS), DAYS[-1]
        )
        shape = "%Y-%m-%d" if step >= DAY else "%H:%M" if step >= 60 else "%H:%M:%S"
        times = [
            float(step * at) for at in range(math.ceil(low / step), math.floor(high / step) + 1)
        ]
        if len(times) < 2:
            times, shape = [low, high] if high > low else [low], "%H:%M:%S" if step < DAY else shape
        return tuple(
            ((time - start) / DAY, datetime.fromtimestamp(time, UTC).strftime(shape))
            for time in times
        )


def svg_budget(figure: BudgetFigure, *, width: int = 720, name: str = "budget") -> str:
    """One bar for the whole budget, a segment a release, numbered; under it a line for each of the
    largest."""
    width = _checks.whole(at_least=320, width=width)
    scale = share_scale().moved(8.0, width - 8.0 - text_width("100", SMALL) / 2)
    segments = list(enumerate(figure.segments, 1))
    listed = sorted(sorted(segments, key=lambda one: -one[1].share)[:MOST_LISTED])
    columns = 2 if width >= BESIDE and len(listed) > 1 else 1
    rows = -(-len(listed) // columns)
    drawing = Drawing(width, TOP + BAR + BELOW + LINE * rows + 4, name)
    drawing.add("rect", width=width, height=drawing.height, fill="#fff")
    for value, text in zip(scale.ticks, tick_texts(scale.ticks, "percent"), strict=True):
        drawing.line(scale(value), TOP + BAR, scale(value), TOP + BAR + 5, AXIS)
        drawing.text(
            scale(value), TOP + BAR + 18, text, SMALL, "middle", fill=QUIET, data_tick=repr(value)
        )
    drawing.text(scale.end, TOP + BAR + 36, axis_title(SHARE), SMALL, "end")
    begins = 0.0
    for number, part in segments:
        ends = min(1.0, begins + part.share)
        _segment(drawing, number, part, scale(begins), scale(ends))
        begins = ends
    _left(drawing, figure, scale(begins), scale.end)
    room = (width - 16) / columns
    for place, (number, part) in enumerate(listed):
        column, row = divmod(place, rows)
        x, y = 8 + column * room, TOP + BAR + BELOW + LINE * row + 6
        share = f"{spent_text(part.share)}%"
        space = room - text_width(f"{number}  ", SMALL) - text_width(share, SMALL) * BOLDER - 26
        drawing.text(x, y, f"{number}", SMALL, fill=QUIET)
        drawing.text(x + 24, y, shortened(part.label, SMALL, space), SMALL)
        drawing.text(x + room - 12, y, share, SMALL, "end", font_weight="bold")
    return drawing.whole(figure.title, figure.description)


def _segment(drawing: Drawing, number: int, part: BudgetPart, left: float, right: float) -> None:
    """Neighbours differ in shade, and a line parts them."""
    drawing.open(
        "g", f"{number}. {part.label}: {spent_text(part.share)}%", data_share=repr(part.share)
    )
    wide = max(right - left, 0.75)
    drawing.add(
        "rect",
        x=left,
        y=TOP,
        width=wide,
        height=BAR,
        fill=SHADES[number % 2],
        stroke="#fff",
        stroke_width=0.8,
    )
    if wide > text_width(str(number), SMALL) + 4:
        drawing.text(left + wide / 2, TOP + BAR / 2 + 4, str(number), SMALL, "middle", fill="#fff")
    drawing.close("g")


def _left(drawing: Drawing, figure: BudgetFigure, left: float, right: float) -> None:
    words = f"{left_text(figure.left)}% left"
    drawing.open("g", words, data_share=repr(figure.left))
    wide = max(right - left, 0.0)
    drawing.add(
        "rect", x=left, y=TOP, width=wide, height=BAR, fill="#fff", stroke=AXIS, stroke_width=1.2
    )
    if wide > text_width(words, SIZE) * BOLDER + 8:
        drawing.text(left + wide / 2, TOP + BAR / 2 + 5, words, SIZE, "middle", font_weight="bold")
    drawing.close("g")


def svg_course(figure: CourseFigure, *, width: int = 720, name: str = "course") -> str:
    """A line of steps under the dashed line of the cap."""
    width = _checks.whole(at_least=320, width=width)
    plot = width - LEFT - RIGHT
    bottom = OVER + min(max(0.45 * plot, 170.0), 300.0)
    drawing = Drawing(width, bottom + UNDER, name)
    drawing.add("rect", width=width, height=drawing.height, fill="#fff")
    low, high = figure.moments[0].days, figure.moments[-1].days
    across = AxisScale(low, high if high > low else low + 1.0, LEFT, LEFT + plot, ())
    up = share_scale().moved(bottom, OVER)
    for value, text in zip(up.ticks, tick_texts(up.ticks, "percent"), strict=True):
        drawing.line(LEFT, up(value), LEFT + plot, up(value), GRID)
        drawing.text(LEFT - 7, up(value) + 4, text, SMALL, "end", fill=QUIET, data_tick=repr(value))
    for days, text in figure.ticks():
        drawing.line(across(days), bottom, across(days), bottom + 5, AXIS)
        half = text_width(text, SMALL) / 2
        place = min(max(across(days), half + 2), width - half - 2)
        drawing.text(place, bottom + 19, text, SMALL, "middle", fill=QUIET, data_tick=repr(days))
    drawing.line(LEFT, bottom, LEFT + plot, bottom, AXIS, 1.2)
    drawing.line(LEFT, up(1.0), LEFT + plot, up(1.0), INK, 1.4, "5 4")
    drawing.text(LEFT + plot, up(1.0) - 6, "the cap", SMALL, "end")
    drawing.text(4, 14, shortened(axis_title(SHARE), SMALL, width - 8), SMALL)
    drawing.text(
        LEFT + plot, bottom + 40, f"Time (UTC), from {figure.when(low):%Y-%m-%d} on", SMALL, "end"
    )
    spots: list[tuple[float, float]] = []
    for moment in figure.moments:
        if spots:
            spots.append((across(moment.days), spots[-1][1]))
        spots.append((across(moment.days), up(min(1.0, moment.share))))
    line_of = " ".join(f"{x:.2f},{y:.2f}" for x, y in spots)
    drawing.add(
        "polyline",
        points=line_of,
        fill="none",
        stroke=OWN_COLOURS[0],
        stroke_width=2,
        stroke_linejoin="round",
    )
    return drawing.whole(figure.title, figure.description)


def share_scale() -> AxisScale:
    """From nothing to the whole budget."""
    return AxisScale(0.0, 1.0, 0.0, 1.0, round_ticks(0.0, 1.0))


def spent_text(share: float) -> str:
    """A share that is gone, in per cent with two decimals, rounded up.

    >>> spent_text(0.070001), spent_text(0.07)
    ('7.01', '7.00')
    """
    return f"{math.ceil(share * 10_000 - 1e-6) / 100:.2f}"


def left_text(share: float) -> str:
    """A share that is left, in per cent with two decimals, rounded down.

    >>> left_text(0.92999)
    '92.99'
    """
    return f"{math.floor(share * 10_000 + 1e-6) / 100:.2f}"
