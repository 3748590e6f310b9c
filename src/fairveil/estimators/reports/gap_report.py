"""How far apart groups' decisions are, as a fit measured it once with noise of its plan."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from ... import _html
from ...learning import Outcome

NOT_REQUIRED = (
    "no bound was required: a penalty makes gaps smaller, so none of them is met or not met"
)
SHOWN = 10  # of the widest gaps; every gap is there in both directions, and one of them is enough


@dataclass(frozen=True)
class GapLine:
    """One comparison of groups: `what` in words, its noisy training `value` and the standard
    deviation of that `noise`."""

    what: str
    value: float
    noise: float


@dataclass(frozen=True)
class GapReport:
    """Released values only: differences of rates of the model's decisions on the training rows."""

    lines: tuple[GapLine, ...]
    rounds: int
    reason: str

    @staticmethod
    def of(outcome: Outcome) -> GapReport:
        """The report of a search's outcome."""
        columns = zip(outcome.names, outcome.values.tolist(), outcome.spread.tolist(), strict=True)
        lines = tuple(GapLine(_without_bound(name), value, noise) for name, value, noise in columns)
        return GapReport(lines, outcome.rounds, outcome.reason.value)

    @property
    def largest(self) -> GapLine | None:
        """The widest gap; None where groups were not distinguished."""
        defined = [line for line in self.lines if not math.isnan(line.value)]
        return max(defined, key=lambda line: line.value, default=None)

    def table(self) -> list[dict[str, Any]]:
        """One mapping a comparison, of plain values; undefined is None."""
        return [
            {
                "what": line.what,
                "value": None if math.isnan(line.value) else line.value,
                "noise": line.noise,
            }
            for line in self.lines
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "rounds": self.rounds,
            "reason": self.reason,
            "verdict": None,
            "why": NOT_REQUIRED,
            "gaps": self.table(),
        }

    def to_json(self) -> str:
        """The report as a JSON document."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def _repr_html_(self) -> str:
        widest = sorted(
            (line for line in self.lines if line.value >= 0), key=lambda line: -line.value
        )[:SHOWN]
        rows = [
            (line.what, f"{100 * line.value:.1f} points", f"{100 * line.noise:.1f} points")
            for line in widest
        ]
        said = _html.paragraph(f"{NOT_REQUIRED[:1].upper()}{NOT_REQUIRED[1:]}.")
        return said + (_html.table(("comparison", "measured", "noise"), rows) if rows else "")

    def __str__(self) -> str:
        head = (
            f"{NOT_REQUIRED[:1].upper()}{NOT_REQUIRED[1:]}.\n{self.rounds} rounds: {self.reason}."
        )
        if not self.lines:
            return f"{head}\nThe fit had no groups."
        widest = sorted(
            (line for line in self.lines if line.value >= 0), key=lambda line: -line.value
        )
        body = [f"  {line.what}: {line.value:.4f} +- {line.noise:.4f}" for line in widest[:SHOWN]]
        more = (
            [f"  and {len(widest) - SHOWN} smaller ones, in table()"] if len(widest) > SHOWN else []
        )
        return "\n".join(
            [
                head,
                "Gaps of the model's decisions in training, with the noise of their release:",
                *body,
                *more,
            ]
        )


def _without_bound(name: str) -> str:
    """A constraint's name without the bound at its end, which says 0 and means nothing here."""
    return name.partition(" <= ")[0]
