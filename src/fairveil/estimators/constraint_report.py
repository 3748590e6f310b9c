"""What was required of a model, what its decisions were measured to be in training, and whether the noise lets one tell.

Verdicts are those of `_verdicts`, at a confidence of 95 % over the noise of the release. They are about the training
rows: what holds for other people is another question, with a sampling error of its own.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from .. import _verdicts as verdicts
from .._verdicts import Verdict
from ..learning import Outcome
from ..learning.game import Equilibrium
from ..learning.group_problem import Found
from ..learning.regression_task import RegressionOutcome

MATERIAL = 0.01
NOTHING_LEARNT = "the released number of rows cannot be told from none: the model was left at zero, which favours no class"


@dataclass(frozen=True)
class ConstraintLine:
    """One constraint: `target` in words, its `bound`, its noisy training `value` and the standard deviation of that `noise`.

    `pressure`: how hard the search pressed it at the end. `among`: of how many constraints it is one. `looks`: from how many
    models this one may have been picked by its value.
    """

    target: str
    bound: float
    value: float
    noise: float
    pressure: float
    among: int = 1
    looks: int = 1

    @property
    def verdict(self) -> Verdict:
        """ "met", "not met", or "cannot be told" from the noise (or because the value is undefined)."""
        return verdicts.of_noisy(self.value, self.bound, self.noise, among=self.among, looks=self.looks)


@dataclass(frozen=True)
class ConstraintReport:
    """Released values only: rates of the model's decisions on the training rows, measured once with noise of the plan.

    `of_what`: "decisions", or "predictions" where the model says numbers.
    """

    lines: tuple[ConstraintLine, ...]
    rounds: int
    reason: str
    of_what: str = "decisions"

    @staticmethod
    def of(outcome: Outcome | Equilibrium | Found) -> ConstraintReport:
        """The report of a search's outcome."""
        columns = (outcome.names, outcome.bounds, outcome.values, outcome.spread, outcome.duals)
        lines = _lines(columns, outcome.looks if isinstance(outcome, Outcome) else 1)
        return ConstraintReport(lines, outcome.rounds, outcome.reason.value if outcome.learnt else NOTHING_LEARNT)

    @staticmethod
    def of_losses(outcome: RegressionOutcome, of_what: str = "predictions") -> ConstraintReport:
        """The report of bounds on groups' losses."""
        columns = (outcome.names, outcome.bounds, outcome.values, outcome.spread, outcome.pressed)
        return ConstraintReport(_lines(columns), outcome.calls, outcome.reason, of_what)

    @property
    def met(self) -> bool | None:
        """True where every constraint is met, False where one is not, None where the noise does not let one tell."""
        return verdicts.together(line.verdict for line in self.lines)

    @property
    def missed_by_far(self) -> bool:
        """Whether a constraint is not met by more than a point, or a bound on losses by more than a hundredth of it: what a fit
        warns of. Many people's values have little noise, and a search may end a few tenths of a point above its bound."""
        worst = self.worst
        if worst is None or worst.verdict != verdicts.NOT_MET:
            return False
        return worst.value - worst.bound > MATERIAL * (1.0 if self.of_what == "decisions" else abs(worst.bound))

    @property
    def worst(self) -> ConstraintLine | None:
        """The constraint that is furthest above its bound, among those that are not met if there is one; None where nothing was
        required."""
        defined = [line for line in self.lines if not math.isnan(line.value)]
        return max(defined, key=lambda line: (line.verdict == verdicts.NOT_MET, line.value - line.bound), default=None)

    def table(self) -> list[dict[str, Any]]:
        """One mapping a constraint, of plain values; undefined is None."""
        return [
            {
                "target": line.target,
                "bound": line.bound,
                "value": None if math.isnan(line.value) else line.value,
                "noise": line.noise,
                "pressure": line.pressure,
                "verdict": line.verdict,
            }
            for line in self.lines
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"rounds": self.rounds, "reason": self.reason, "met": self.met, "constraints": list(map(_written, self.table()))}

    def to_json(self) -> str:
        """The report as a JSON document."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def __str__(self) -> str:
        count = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        head = f"{count}: {self.reason}." if self.rounds else f"{self.reason[:1].upper()}{self.reason[1:]}."
        if not self.lines:
            return f"{head}\nNo constraint was asked for."
        body = [f"  {line.target}: {line.value:.4f} +- {line.noise:.4f}, {line.verdict}" for line in self.lines]
        return "\n".join([head, f"Training values of the model's {self.of_what}, with the noise of their release:", *body])


def _written(line: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinities: "inf", as everywhere in the library, and null for what is undefined."""
    return {name: _plain(value) if isinstance(value, float) else value for name, value in line.items()}


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return str(value) if math.isinf(value) else value


def _lines(columns: tuple[Any, ...], looks: int = 1) -> tuple[ConstraintLine, ...]:
    lines = list(zip(*columns, strict=True))
    return tuple(
        ConstraintLine(name, float(bound), float(value), float(noise), float(pressure), len(lines), looks)
        for name, bound, value, noise, pressure in lines
    )
