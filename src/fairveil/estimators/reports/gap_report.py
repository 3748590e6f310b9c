"""How far apart groups' decisions are, as a fit measured it once with noise of its plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...learning import Outcome
from ...show.parts import Column, Fact, Facts, Note, Part, Shown, Table

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
class GapReport(Shown):
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

    def parts(self) -> Iterator[Part]:
        """What is said of it, and a line a gap, the widest first."""
        yield Facts(
            (
                Fact("verdict", NOT_REQUIRED),
                Fact("rounds", f"{self.rounds}: {self.reason}"),
            )
        )
        widest = sorted(
            (line for line in self.lines if line.value >= 0), key=lambda line: -line.value
        )
        if not self.lines:
            yield Note("The fit had no groups.")
            return
        yield Table(
            (
                Column("comparison", tuple(line.what for line in widest)),
                Column("gap", tuple(line.value for line in widest), "points"),
                Column("noise", tuple(line.noise for line in widest), "points"),
            ),
            "Gaps of the model's decisions in training, with the standard deviation of their noise",
            shown=SHOWN,
        )
        undefined = sum(math.isnan(line.value) for line in self.lines)
        if undefined:
            yield Note(f"Undefined, for want of rows: {undefined}.")


def _without_bound(name: str) -> str:
    """A constraint's name without the bound at its end, which says 0 and means nothing here."""
    return name.partition(" <= ")[0]
