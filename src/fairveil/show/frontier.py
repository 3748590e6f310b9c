"""Frontiers: error against fairness gap, one curve an epsilon, curves of others beside; their charts
and their table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .. import _checks
from ..errors import InputError
from .charts import OWN, PUBLISHED, Axis, Curve, Curves, Rule
from .parts import Column, Table

Protects = Literal["records", "sensitive_features", "nothing"]
PROTECTS: tuple[Protects, ...] = ("records", "sensitive_features", "nothing")
PROTECTED = {
    "records": "record-level privacy",
    "sensitive_features": "attribute-level privacy",
    "nothing": "not private",
}


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
        for name in ("error", "gap"):
            low, value, high = self.ends(name)
            if not low <= high or not all(map(math.isfinite, (low, value, high))):
                remedy = f"Pass finite numbers, {name}_low <= {name}_high."
                raise InputError.expected(
                    "two ends in order", of=name, got=(low, high), remedy=remedy
                )

    def ends(self, name: str) -> tuple[float, float, float]:
        """The low end, the value and the high end of "error" or "gap"; no rate, and no gap, is below
        zero."""
        value = float(getattr(self, name))
        low, high = getattr(self, f"{name}_low"), getattr(self, f"{name}_high")
        known = low is not None and high is not None
        return (
            (max(float(low), min(0.0, value)), value, float(high))
            if known
            else (value, value, value)
        )


@dataclass(frozen=True)
class Series:
    """One curve. `label` says whose, `epsilon` and `protects` under which promise (inf and
    "nothing": not private); `published`: numbers of others, from `source`."""

    label: str
    epsilon: float
    protects: Protects
    points: tuple[Point, ...]
    published: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        _checks.normalise(self, epsilon=_checks.positive(epsilon=self.epsilon, allow_inf=True))
        _checks.one_of(PROTECTS, protects=self.protects)
        if (self.protects == "nothing") != math.isinf(self.epsilon):
            remedy = "Say protects='nothing' where epsilon is inf, and only there."
            raise InputError.expected(
                "an epsilon that fits it", of="protects", got=self.protects, remedy=remedy
            )
        points: Any = self.points
        right = isinstance(points, (list, tuple)) and all(isinstance(one, Point) for one in points)
        if not right or not points:
            raise InputError.expected("points", of="points", got=points, remedy="Pass Point(...)s.")
        _checks.normalise(self, points=tuple(points))

    @property
    def name(self) -> str:
        """Whose curve, at which epsilon, and what is protected."""
        if math.isinf(self.epsilon):
            fair = "fair, " if not self.published else ""
            return f"{self.label}: {fair}not private"
        return f"{self.label}, ε = {self.epsilon:g}: {PROTECTED[self.protects]}"

    def curve(self) -> Curve:
        """What is drawn of it."""
        points = sorted(self.points, key=lambda one: (one.gap, one.error))
        low, up, high = zip(*(one.ends("error") for one in points), strict=True)
        left, across, right = zip(*(one.ends("gap") for one in points), strict=True)
        kind = PUBLISHED if self.published else OWN
        bars = ((),) * 4 if (low, left) == (high, right) else (low, high, left, right)
        return Curve(self.name, tuple(zip(across, up, strict=True)), *bars, kind=kind)


def charts(
    measure: str,
    dataset: str,
    series: Sequence[Series],
    *,
    required: Sequence[float] = (),
    notes: Sequence[str] = (),
    unit: str = "points",
) -> Iterator[Curves]:
    """One chart of all curves of one's own; for each epsilon that others published curves of, one
    with theirs beside.

    `measure`: what the gap is of, in words; `required`: bounds that were asked for.
    """
    own = [one for one in series if not one.published]
    across, up = Axis(measure, unit), Axis("error", "percent")
    shown = sorted(set(required))
    rules = tuple(
        Rule("required gaps" if at == 0 else "_", gap, across=True) for at, gap in enumerate(shown)
    )
    told = ("Lower and further left is better.", *notes)
    title = f"Error against {measure}, {dataset}"
    if own:
        yield Curves(title, across, up, tuple(one.curve() for one in own), rules, told)
    others = [one for one in series if one.published]
    for epsilon in sorted({one.epsilon for one in others}):
        curves = tuple(one.curve() for one in (*own, *others) if one.epsilon == epsilon)
        about = "not private" if math.isinf(epsilon) else f"ε = {epsilon:g}"
        yield Curves(f"{title}: {about}, beside published curves", across, up, curves, (), told)


def table(series: Sequence[Series], measure: str, unit: str = "points") -> Table:
    """Every point of every curve."""
    rows = [
        (one, point)
        for one in series
        for point in sorted(one.points, key=lambda p: (p.gap, p.error))
    ]

    def column(name: str, of: str, unit: str) -> Column:
        low, values, high = zip(*(point.ends(of) for _, point in rows), strict=True)
        return Column(name, values, unit, *((low, high) if low != high else ((), ())))

    columns = (
        Column(
            "curve", tuple(one.name + (" (published)" if one.published else "") for one, _ in rows)
        ),
        Column("required", tuple(point.target for _, point in rows), unit, missing="-"),
        column(measure.replace(" ", "_"), "gap", unit),
        column("error", "error", "percent"),
        Column("models", tuple(point.seeds for _, point in rows), "count", missing="-"),
    )
    return Table(columns, "Every point, with its interval where one is known")
