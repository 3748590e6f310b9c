"""Frontiers: error against fairness gap, one curve an epsilon, curves of others beside; their chart
and their table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .. import _checks
from ..core.errors import need
from .charts import OWN, PUBLISHED, Axis, Curve, Curves, Rule
from .parts import Column, Table

Protects = Literal["records", "sensitive_features", "nothing"]
PROTECTED: dict[Protects, str] = {
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
            right = low <= high and all(map(math.isfinite, (low, value, high)))
            fix = f"Pass finite numbers, {name}_low <= {name}_high."
            need(right, "two ends in order", of=name, got=(low, high), fix=fix)

    def ends(self, name: str) -> tuple[float, float, float]:
        """The low end, the value and the high end of "error" or "gap"; no rate, and no gap, is below
        zero."""
        value = float(getattr(self, name))
        low, high = getattr(self, f"{name}_low"), getattr(self, f"{name}_high")
        if low is None or high is None:
            return value, value, value
        return max(float(low), min(0.0, value)), value, float(high)


@dataclass(frozen=True)
class Series:
    """One curve. `label` says whose, `epsilon` and `protects` under which promise (inf and
    "nothing": not private); `published`: numbers of others."""

    label: str
    epsilon: float
    protects: Protects
    points: tuple[Point, ...]
    published: bool = False

    def __post_init__(self) -> None:
        _checks.normalise(self, epsilon=_checks.positive(epsilon=self.epsilon, allow_inf=True))
        _checks.one_of(PROTECTED, protects=self.protects)
        fits = (self.protects == "nothing") == math.isinf(self.epsilon)
        fix = "Say protects='nothing' where epsilon is inf, and only there."
        need(fits, "an epsilon that fits it", of="protects", got=self.protects, fix=fix)
        _checks.normalise(self, points=tuple(self.points))
        right = self.points and all(isinstance(one, Point) for one in self.points)
        need(right, "points", of="points", got=self.points, fix="Pass Point(...)s.")

    @property
    def name(self) -> str:
        """Whose curve, at which epsilon, and what is protected."""
        if math.isinf(self.epsilon):
            return f"{self.label}: {'' if self.published else 'fair, '}not private"
        return f"{self.label}, ε = {self.epsilon:g}: {PROTECTED[self.protects]}"

    def curve(self) -> Curve:
        """What is drawn of it."""
        points = sorted(self.points, key=lambda one: (one.gap, one.error))
        low, up, high = zip(*(one.ends("error") for one in points), strict=True)
        left, across, right = zip(*(one.ends("gap") for one in points), strict=True)
        kind = PUBLISHED if self.published else OWN
        bars = ((),) * 4 if (low, left) == (high, right) else (low, high, left, right)
        return Curve(self.name, tuple(zip(across, up, strict=True)), *bars, kind=kind)


def parts_of(
    measure: str,
    dataset: str,
    series: Sequence[Series],
    *,
    required: Sequence[float] = (),
    notes: Sequence[str] = (),
    unit: str = "points",
) -> Iterator[Curves | Table]:
    """One chart of all curves, and a table of every point. `measure`: what the gap is of, in words;
    `required`: bounds that were asked for."""
    shown = enumerate(sorted(set(required)))
    rules = tuple(Rule("required gaps" if at == 0 else "_", gap, across=True) for at, gap in shown)
    told = ("Lower and further left is better.", *notes)
    axes, curves = (Axis(measure, unit), Axis("error", "percent")), (x.curve() for x in series)
    yield Curves(f"Error against {measure}, {dataset}", *axes, tuple(curves), rules, told)
    rows: list[tuple[Series, Point]] = []
    for one in series:
        rows += [(one, point) for point in sorted(one.points, key=lambda p: (p.gap, p.error))]

    def column(name: str, of: str, unit: str) -> Column:
        low, values, high = zip(*(point.ends(of) for _, point in rows), strict=True)
        return Column(name, values, unit, *((low, high) if low != high else ((), ())))

    def plain(name: str, of: str, unit: str) -> Column:
        values: Any = tuple(getattr(point, of) for _, point in rows)
        return Column(name, values, unit, missing="-")

    names = tuple(one.name + " (published)" * one.published for one, _ in rows)
    columns = (
        Column("curve", names),
        plain("required", "target", unit),
        column(measure.replace(" ", "_"), "gap", unit),
        column("error", "error", "percent"),
        plain("models", "seeds", "count"),
    )
    yield Table(columns, "Every point, with its interval where one is known")
