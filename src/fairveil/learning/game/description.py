"""A game as it is described before data are read: what is asked, at what price, and with how
much noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats
from ...core.events import Event, Repeated, compose
from ...curator import Measurement
from ...fairness import ConstraintSystem, deviations
from ..lagrangian.duals import ExponentiatedGradient
from ..likely import drowned
from ..oracles.descent import Begun
from ..oracles.going_on import GoingOn
from ..oracles.ground import GameInstance
from ..oracles.oracle import GroupedRule, LinearRule, Oracle, Rule, audit_measurements, indicators
from ..oracles.settled import any_measurement
from ..systems import lengths, slopes_of_counts

COMPARING = 0.3
"""Of an audit's price, for the comparison with the indicators, where there are any. What is
measured has noise of its own: kept by a comparison on the same noise, rules would look better than
they are."""


@dataclass(frozen=True, eq=False)
class DescribedGame:
    """What is public of a game, and fixed before its first round. Abstract: see `Game`."""

    ground: GameInstance
    oracle: Oracle[Any]
    rounds: int
    dual_bound: float
    counts_multiplier: float
    audit_multiplier: float
    confidence: float = 0.95
    only_false_positives: bool = False
    settled_multiplier: float = 0.0
    free_multiplier: float = 0.0
    plan: Event | None = field(init=False)

    def __post_init__(self) -> None:
        _checks.normalise(self, plan=self.events() if self.ground.promise.is_private else None)

    @property
    def system(self) -> ConstraintSystem | None:
        """The constraints, or None."""
        return self.ground.system

    @property
    def floor(self) -> float | None:
        """The least number of rows that an event is taken to have. None without noise: one without
        rows is undefined."""
        return None if self.ground.is_exact else self.ground.floor(self.counts_multiplier)

    def events(self) -> Event:
        """The whole game's events."""
        parts = self.oracle.first_events(self.ground, self.counts_multiplier)
        one = self.oracle.round_events(self.ground)
        if self.system is not None:
            one = [*one, self._audit_event()]
        last = (
            [self.ground.event(measurements)] if (measurements := self.last_measurements()) else []
        )
        return compose([*parts, Repeated(compose(one), self.rounds), *last] if one else parts)

    @property
    def settles(self) -> bool:
        """Whether the oracle makes the mixture, which is counted once more."""
        return self.oracle.settles and self.system is not None

    @property
    def compares(self) -> bool:
        """Whether the mixture may give way to the oracle's rule without constraints, which is
        audited for it."""
        return compared(self.ground, self.oracle)

    @cached_property
    def going_on(self) -> GoingOn | None:
        """What the rounds are spent on if they would be in vain; None where they never are."""
        if not self.compares or not isinstance(self.oracle, Begun):
            return None
        return GoingOn(self.oracle, self.ground, self.rounds, tuple(self._multipliers))

    def in_vain(self, counts: Floats) -> bool:
        """Whether noise would hide what is constrained in the mean of all audits: by the released
        counts, and decisions by a fair coin."""
        even = np.repeat(counts[..., np.newaxis], self.ground.classes, axis=-1)
        heard = self.rounds - int(self.oracle.burn_in * self.rounds)
        return drowned(self.noise_of(counts, even / self.ground.classes, heard))

    def _audit_event(self) -> Event:
        return self.ground.event(self.audit_measurements())

    def audit_measurements(self) -> list[Measurement]:
        """What a round asks of a rule: for plans, which depend on shapes alone."""
        return [] if self.system is None else self._audits(self._any_rule)

    @property
    def _any_rule(self) -> LinearRule:
        return LinearRule(np.zeros((self.ground.outputs, 1 + self.ground.layout.width)))

    def last_measurements(self) -> list[Measurement]:
        """What is asked at the end, for plans: of the mixture, or of the rule without
        constraints."""
        if self.compares:
            return audit_measurements(self.ground, self._any_rule, [self.free_multiplier])
        return [any_measurement(self.ground, self.settled_multiplier)] if self.settles else []

    def noise_of(self, counts: Floats, histogram: Floats, heard: int) -> Floats:
        """The standard deviation of each constraint's value: of the mean of so many audits (of the
        mixture's own count, where it has one), and of the counts."""
        scale = (
            self._settled_scale if self.settles else self._audit_scale / math.sqrt(max(1, heard))
        )
        return np.hypot(self._noise_of_values(counts, scale), self._count_noise(counts, histogram))

    def _audits(self, rule: Rule) -> list[Measurement]:
        return audit_measurements(self.ground, rule, self._multipliers)

    @property
    def _multipliers(self) -> list[float]:
        """Of one audit; where rules are compared with the indicators of two, that together cost as
        much: to compare, to measure."""
        shares = (COMPARING, 1.0 - COMPARING) if self._indicators else (1.0,)
        return [self.audit_multiplier / math.sqrt(share) for share in shares]

    @property
    def auditor(self) -> ExponentiatedGradient:
        """How the duals are played."""
        return ExponentiatedGradient(self.dual_bound)

    @cached_property
    def _indicators(self) -> list[GroupedRule]:
        """The maximally discriminatory classifiers, where rules may read the group and there are
        two classes."""
        g = self.ground
        return (
            indicators(g.cells, g.layout.width)
            if g.group_aware and g.cells is not None and g.outputs == 1
            else []
        )

    def _sampling(self, histogram: Floats, counts: Floats) -> Floats:
        assert self.system is not None
        return deviations(self.system, histogram, counts, heaviest=self.ground.heaviest)

    @cached_property
    def _count_scale(self) -> float:
        """The standard deviation of the noise in one count."""
        return (
            0.0
            if self.ground.is_exact
            else self.counts_multiplier * self.ground.move(self.ground.counts)
        )

    @cached_property
    def _audit_scale(self) -> float:
        """The standard deviation of the noise in one number of what an audit measures."""
        return self._scale_of(self._audits(self._any_rule)[-1])

    @cached_property
    def _free_scale(self) -> float:
        """The same of the audit of the rule without constraints."""
        return self._scale_of(self.last_measurements()[0])

    def _scale_of(self, measurement: Measurement) -> float:
        return (
            0.0
            if self.ground.is_exact
            else measurement.multiplier * self.ground.move(measurement.question)
        )

    @cached_property
    def _settled_scale(self) -> float:
        """The standard deviation of the noise in one number of the mixture's own count."""
        return self._scale_of(any_measurement(self.ground, self.settled_multiplier))

    def _audit_noise(self, counts: Floats) -> Floats:
        """The standard deviation of each constraint's value by the noise of one audit."""
        return self._noise_of_values(counts, self._audit_scale)

    def _noise_of_values(self, counts: Floats, scale: float) -> Floats:
        """The same where each number of a histogram has noise of that deviation."""
        g, system = self.ground, self.system
        assert system is not None
        if g.is_exact:
            return np.zeros(len(system))
        pulls = system.jacobian(counts, self.floor)
        if g.outputs == 1:
            pulls = pulls[:, 1::2] - pulls[:, ::2]
        return np.asarray(scale * lengths(pulls))

    def _count_noise(self, counts: Floats, histogram: Floats) -> Floats:
        """The same by the noise of the counts."""
        g, system = self.ground, self.system
        assert system is not None
        if self.floor is None:
            return np.zeros(len(system))
        return self._count_scale * slopes_of_counts(
            system, counts, histogram, self.floor, g.outputs
        )


def compared(ground: GameInstance, oracle: Oracle[Any]) -> bool:
    """Whether a game on this ground audits the oracle's rule without constraints: where records are
    protected, by label."""
    return (
        oracle.knows_free
        and ground.system is not None
        and ground.by_label
        and not ground.sees_features
    )
