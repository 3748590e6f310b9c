"""What a figure shows: plain, public numbers and words. Checked here, so that drawing cannot fail
half way."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from .. import _checks
from .._verdicts import Verdict, deviations, of_interval, of_noisy
from ..errors import InputError
from .checked import finite, finite_if_given, interval, line, sentences, several

Protects = Literal["records", "sensitive_features", "nothing"]
Unit = Literal["percent", "points", "plain"]
Layout = Literal["auto", "together", "by-epsilon"]

PROTECTS: tuple[Protects, ...] = ("records", "sensitive_features", "nothing")
UNITS: tuple[Unit, ...] = ("percent", "points", "plain")
LAYOUTS: tuple[Layout, ...] = ("auto", "together", "by-epsilon")


@dataclass(frozen=True)
class Measure:
    """What an axis measures. `unit`: "percent" and "points" show a fraction times 100, "plain"
    shows the number itself."""

    name: str
    unit: Unit = "percent"

    def __post_init__(self) -> None:
        line(name=self.name)
        _checks.one_of(UNITS, unit=self.unit)


ERROR = Measure("error")
GAP = Measure("gap", "points")


@dataclass(frozen=True)
class Point:
    """One place on a curve: the mean error and gap over `seeds` runs, each with its interval where
    one is known; `target` is the gap that was asked for."""

    error: float
    gap: float
    error_low: float | None = None
    error_high: float | None = None
    gap_low: float | None = None
    gap_high: float | None = None
    target: float | None = None
    seeds: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("error", self.error), ("gap", self.gap)):
            _checks.normalise(self, **{name: finite(name, value)})
            interval(self, f"{name}_low", f"{name}_high")
        finite_if_given(self, "target")
        if self.seeds is not None:
            _checks.normalise(self, seeds=_checks.whole(at_least=1, seeds=self.seeds))


@dataclass(frozen=True)
class Series:
    """One curve. `label` says whose, `epsilon` and `protects` under which promise (inf and
    "nothing": not private); `published`: numbers of others, from `source`. `short` stands beside
    the curve (by default `label` without brackets)."""

    label: str
    epsilon: float
    protects: Protects
    points: tuple[Point, ...]
    published: bool = False
    source: str = ""
    short: str = ""

    def __post_init__(self) -> None:
        line(label=self.label)
        line(empty=True, source=self.source)
        line(empty=True, short=self.short)
        _checks.normalise(self, epsilon=_checks.positive(epsilon=self.epsilon, allow_inf=True))
        _checks.one_of(PROTECTS, protects=self.protects)
        if (self.protects == "nothing") != math.isinf(self.epsilon):
            remedy = "Say protects='nothing' where epsilon is inf, and only there."
            raise InputError.expected(
                "an epsilon that fits it", of="protects", got=self.protects, remedy=remedy
            )
        _checks.normalise(
            self,
            points=several(Point, "points", self.points),
            short=self.short or self.label.partition(" (")[0],
        )


@dataclass(frozen=True)
class Floor:
    """What an exactly fair model of that error is measured at, for want of rows: (error, gap)
    pairs. No curve can be judged to its left."""

    points: tuple[tuple[float, float], ...]
    label: str = "floor: an exactly fair model, measured on a test set of this size"

    def __post_init__(self) -> None:
        line(label=self.label)
        try:
            pairs = tuple(
                (finite("floor", error), finite("floor", gap)) for error, gap in self.points
            )
        except (TypeError, ValueError) as problem:
            if isinstance(problem, InputError):
                raise
            remedy = "Pass points=[(0.16, 0.004), (0.2, 0.004)], for example."
            raise InputError.expected(
                "(error, gap) pairs", of="floor", got=self.points, remedy=remedy
            ) from None
        if len(pairs) < 2:
            raise InputError.expected(
                "two points or more", of="floor", got=pairs, remedy="Pass at least two."
            )
        _checks.normalise(self, points=tuple(sorted(pairs)))


@dataclass(frozen=True)
class FrontierFigure:
    """Error against fairness gap: one curve an epsilon, published ones beside.

    `notion`: what the gap is of, in words. `interval`: what the low and high ends of points mean.
    `layout`: all curves in one pair of axes, or one pair for each epsilon (with curves that are not
    private in all); "auto": by epsilon when curves are of two or more. Ends of intervals that lie
    below zero are put to zero: no rate is negative, and no gap.
    """

    notion: str
    dataset: str
    series: tuple[Series, ...]
    floor: Floor | None = None
    notes: tuple[str, ...] = ()
    interval: str = "95% interval of the mean over seeds"
    error: Measure = ERROR
    gap: Measure = GAP
    layout: Layout = "auto"

    def __post_init__(self) -> None:
        line(notion=self.notion)
        line(dataset=self.dataset)
        line(interval=self.interval)
        found = several(Series, "series", self.series)
        _checks.normalise(
            self, series=tuple(_clipped(one, self.error.unit, self.gap.unit) for one in found)
        )
        _checks.normalise(self, notes=sentences("notes", self.notes))
        _checks.one_of(LAYOUTS, layout=self.layout)
        if self.floor is not None:
            several(Floor, "floor", (self.floor,))

    @property
    def is_split(self) -> bool:
        """Whether it is drawn as one pair of axes for each epsilon."""
        finite_ones = {series.epsilon for series in self.series if not math.isinf(series.epsilon)}
        if self.layout != "auto":
            return self.layout == "by-epsilon" and len(finite_ones) > 0
        return len(finite_ones) > 1


def _clipped(series: Series, error: Unit, gap: Unit) -> Series:
    """Without ends below zero, where they are of shares."""
    units = {"error": error, "gap": gap}
    changes = []
    for point in series.points:
        ends = _checks.named(point, [f"{name}_{end}" for name in units for end in ("low", "high")])
        below = {
            name: 0.0
            for name, end in ends.items()
            if end is not None and end < 0 and units[name.partition("_")[0]] != "plain"
        }
        changes.append(replace(point, **below) if below else point)  # type: ignore[arg-type]
    return series if tuple(changes) == series.points else replace(series, points=tuple(changes))


@dataclass(frozen=True)
class GapFigure:
    """Three numbers that are often taken for one: the gap required, the noisy one that training
    saw, and the one on held-out people with its interval. None: not there.

    `training_noise`: the standard deviation of the noise of `training_noisy`. `training_verdict`:
    of all constraints of which `training_noisy` is the largest; None: that of the largest alone.
    `population_verdict`: about the people that the training rows were drawn from, by noise and
    sampling error together; None: not known. `measure`: what is bounded, for what is no gap
    `Measure("rate", "percent")` of a false negative rate. `sentence`: the constraint in words,
    without a full stop.
    """

    notion: str
    target: float | None
    training_noisy: float | None = None
    held_out: float | None = None
    held_out_low: float | None = None
    held_out_high: float | None = None
    confidence: float = 0.95
    notes: tuple[str, ...] = ()
    measure: Measure = GAP
    training_noise: float | None = None
    training_verdict: Verdict | None = None
    sentence: str = ""
    population_verdict: Verdict | None = None

    def __post_init__(self) -> None:
        line(notion=self.notion)
        line(empty=True, sentence=self.sentence)
        finite_if_given(self, "target", "training_noisy", "held_out", "training_noise")
        interval(self, "held_out_low", "held_out_high")
        if self.held_out is None and self.held_out_low is not None:
            remedy = "Pass held_out too, or no interval."
            raise InputError.expected(
                "a gap with the interval", of="held_out", got=None, remedy=remedy
            )
        if self.target is None and self.training_noisy is None and self.held_out is None:
            remedy = "Pass at least one of target, training_noisy and held_out."
            raise InputError.expected("a number to show", of="GapFigure", got=None, remedy=remedy)
        _checks.normalise(
            self,
            confidence=_checks.fraction(confidence=self.confidence, low_open=True, high_open=True),
        )
        _checks.normalise(self, notes=sentences("notes", self.notes))
        if self.training_verdict is None and None not in (
            self.target,
            self.training_noisy,
            self.training_noise,
        ):
            told = of_noisy(  # all three are finite: their figures were checked above
                self.training_noisy,  # type: ignore[arg-type]
                self.target,  # type: ignore[arg-type]
                self.training_noise,  # type: ignore[arg-type]
                confidence=self.confidence,
            )
            _checks.normalise(self, training_verdict=told)

    @property
    def name(self) -> str:
        """What is bounded, such as "demographic parity gap" or "false negative rate"."""
        return f"{self.notion} {self.measure.name}"

    @property
    def held_out_verdict(self) -> Verdict | None:
        """Whether the target is met by the people that the held-out ones were drawn from; None: no
        target, or not measured."""
        if self.target is None or self.held_out is None:
            return None
        return of_interval(self.held_out_low, self.held_out_high, self.target)

    @property
    def training_ends(self) -> tuple[float, float] | None:
        """The interval of the training value over its noise, at the figure's confidence; None where
        the noise is not known."""
        if self.training_noisy is None or self.training_noise is None:
            return None
        reach = deviations(0.5 + self.confidence / 2) * self.training_noise
        return self._possible(self.training_noisy - reach), self._possible(
            self.training_noisy + reach
        )

    @property
    def training_shown(self) -> float | None:
        """The training value, moved to what there can be: noise may carry it elsewhere."""
        return None if self.training_noisy is None else self._possible(self.training_noisy)

    def _possible(self, value: float) -> float:
        """No rate, and no gap of rates, is above 1."""
        return max(0.0, value if self.measure.unit == "plain" else min(1.0, value))


@dataclass(frozen=True)
class Rate:
    """A rate of one group with its interval, out of `size` rows; None where it is undefined."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    size: float
    small: bool = False

    def __post_init__(self) -> None:
        finite_if_given(self, "value")
        interval(self, "low", "high")


@dataclass(frozen=True)
class RatesFigure:
    """One rate, group by group."""

    name: str
    rates: tuple[Rate, ...]
    confidence: float = 0.95

    def __post_init__(self) -> None:
        _checks.normalise(self, rates=several(Rate, "rates", self.rates))
        _checks.normalise(
            self,
            confidence=_checks.fraction(confidence=self.confidence, low_open=True, high_open=True),
        )
