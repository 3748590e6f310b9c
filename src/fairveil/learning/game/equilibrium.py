"""What a game found, and what it holds between rounds."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from ..._types import Floats
from ...fairness.systems import FixedCounts
from ..comparison import Comparison
from ..descent import Reason
from ..lagrangian.duals import ExponentiatedGradientState
from ..lagrangian.program import Choice
from ..oracles.going_on import Walk
from ..oracles.oracle import LinearRule, Rule
from ..oracles.settled import Settled
from ..outcome import not_met
from .bounds import Guarantee, Seen


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """What a game found: released values only.

    `rules` and how often each was played, `plays`; `values`: each constraint's value of the
    mixture, noisy, and the standard deviation of its noise in `spread`, over draws of the rows in
    `sampling`; `duals`: the mean of the auditor's plays. `comparison`: what was released to compare
    it with what costs nothing; None of a game that was read from disk. `looks`: from how many
    mixtures this one may have been picked by these very values; `choice`: what `program` picked,
    None where it did not choose.
    """

    rules: tuple[Rule, ...]
    plays: tuple[int, ...]
    reason: Reason
    rounds: int
    names: tuple[str, ...]
    bounds: Floats
    values: Floats
    spread: Floats
    duals: Floats
    counts: Floats
    rows: float
    guarantee: Guarantee | None
    comparison: Comparison | None = None
    sampling: Floats | None = None
    looks: int = 1
    choice: Choice | None = None

    @property
    def broken(self) -> tuple[int, ...]:
        """The constraints that are not met."""
        return not_met(self.values, self.bounds, self.spread)

    @property
    def learnt(self) -> bool:
        """Whether there is anything in the rules."""
        return any(
            not isinstance(rule, LinearRule) or bool(rule.weights.any()) for rule in self.rules
        )


@dataclass(frozen=True, eq=False)
class EquilibriumState:
    """Between rounds: released values only. `noise`: of each value in one audit, where the oracle
    settles. `free`: the rule without constraints and how it decides, (cells, labels, classes).
    `walk`: where that rule goes on in place of the game; None: the game is played."""

    prepared: Any
    counts: Floats
    rows: float
    fixed: FixedCounts | None
    leaning: ExponentiatedGradientState
    played: dict[Hashable, tuple[Rule, int]]
    seen: Seen
    round: int = 0
    noise: Floats | None = None
    settled: Settled | None = None
    free: tuple[Rule, Floats] | None = None
    walk: Walk | None = None
