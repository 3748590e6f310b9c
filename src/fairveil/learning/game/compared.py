"""What a finished game is compared with, and what is guaranteed of it: released values alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from ..._types import Floats
from .. import constants
from ..comparison import Comparison, DecisionTable, Free, Limits
from ..lagrangian import program
from ..lagrangian.program import Choice
from ..oracles.oracle import LinearRule, Rule, constant_rule
from .bounds import PARTS, ROUNDING, Guarantee
from .description import DescribedGame
from .equilibrium import EquilibriumState

PARTS_OF_MIXTURE = 1_000_000
"""In which shares of a choice are told: rates of the final model are off by a millionth for each
rule at most."""


class ComparedGame(DescribedGame):
    """A game's last state beside constants and the rule without constraints. Abstract: see
    `Game`."""

    def _guarantee(
        self, state: EquilibriumState, values: Floats, choice: Choice | None, looks: int
    ) -> Guarantee:
        """What theory says of these values: of the mean plays, of a mixture that was counted by
        itself, or of a choice."""
        assert self.system is not None
        audit, noise = self._audit_noise(state.counts), None
        if state.settled is not None:
            noise = self._noise_of_values(state.counts, self._settled_scale)
        elif choice is not None and not choice.is_model:
            of_free = self._noise_of_values(state.counts, self._free_scale)
            noise = (
                choice.model * audit / math.sqrt(max(1, state.seen.counted)) + choice.free * of_free
            )
            noise = noise + choice.constants @ constants.noise_of(
                self.system, state.counts, self.floor, self._count_scale
            )
        return Guarantee.of(
            state.seen,
            self.system,
            state.counts,
            self.floor,
            values,
            dual_bound=self.dual_bound,
            audit_noise=audit,
            mixture_noise=noise,
            count_noise=self._count_scale,
            rows_off=self._rows_off(state),
            indicated=self.ground.groups
            if self._indicators and self.only_false_positives
            else None,
            confidence=self.confidence,
            looks=looks,
        )

    def _parts(self, state: EquilibriumState, choice: Choice) -> tuple[tuple[Rule, int], ...]:
        """The rules of a choice, and how many of about `PARTS_OF_MIXTURE` parts each is."""
        assert state.free is not None
        played = max(1, sum(plays for _, plays in state.played.values()))
        parts = [(rule, choice.model * plays / played) for rule, plays in state.played.values()]
        parts.append((state.free[0], choice.free))
        shares = enumerate(choice.constants.tolist())
        parts += [(constant_rule(self.ground, k), share) for k, share in shares]
        told = [(rule, round(PARTS_OF_MIXTURE * share)) for rule, share in parts]
        return tuple((rule, whole) for rule, whole in told if whole)

    @staticmethod
    def _choice(state: EquilibriumState, found: Comparison, drawn: Floats | None) -> Choice:
        """What becomes the final model. Where no game was played, the rule without constraints is
        all that there is beside constants."""
        if state.walk is None:
            return program.chosen(found, sampling=drawn, of_steps=True)
        alone = program.chosen(replace(found, free=None), sampling=drawn)
        return Choice(0.0, alone.model, alone.constants)

    @staticmethod
    def _found(state: EquilibriumState) -> Floats:
        """How the mixture decides, or the rule that went on in its place, as it was released."""
        if state.walk is not None and state.free is not None:
            return state.free[1]
        return state.seen.mean_histogram if state.settled is None else state.settled.histogram

    def _scale(self, state: EquilibriumState) -> float:
        """The deviation of each number of that."""
        if state.walk is not None:
            return self._free_scale
        if state.settled is not None:
            return self._settled_scale
        return self._audit_scale / math.sqrt(max(1, state.seen.counted))

    def _spread(self, state: EquilibriumState, histogram: Floats) -> Floats:
        """The deviation of each constraint's value, found from that histogram."""
        of_audits = self._noise_of_values(state.counts, self._scale(state))
        return np.hypot(of_audits, self._count_noise(state.counts, histogram))

    def _compared(
        self, state: EquilibriumState, values: Floats, spread: Floats
    ) -> Comparison | None:
        """The mixture beside constants, where decisions were counted by label."""
        if self.system is None or not self.ground.by_label or not state.rows > 0:
            return None
        per_row = 1 if self.ground.cells is None else self.ground.cells.per_row
        of_one = math.sqrt(len(state.counts)) / per_row
        # audits were put onto exact ones
        totals = self.ground.sees_features and not self.ground.group_aware
        audit = 0.0 if totals else self._scale(state) * of_one
        heard_of = 0.0 if self.ground.sees_features else self._count_scale * of_one

        def table_of(histogram: Floats, audit: float) -> DecisionTable:
            noise = np.full((self.ground.classes, self.ground.classes), audit)
            if self.ground.outputs == 1 and state.settled is None:
                noise[:, 0] = math.hypot(audit, heard_of)
            return DecisionTable(histogram.sum(axis=0) / per_row, noise)

        table = table_of(self._found(state), audit)
        known = (self.system, state.counts, self.floor)
        doubts = constants.noise_of(*known, self._count_scale)
        drawn = constants.sampling_of(*known, self.ground.heaviest)
        limits = Limits(
            values, self.system.bounds, spread, constants.values_of(*known), doubts, drawn
        )
        return Comparison(table, state.rows, limits, self._free_of(state, table_of))

    def _free_of(
        self, state: EquilibriumState, table_of: Callable[[Floats, float], DecisionTable]
    ) -> Free | None:
        """The rule without constraints, as it was released."""
        if state.free is None or self.system is None:
            return None
        rule, shown = state.free
        assert isinstance(rule, LinearRule)
        per_row = 1 if self.ground.cells is None else self.ground.cells.per_row
        values = self.system.exact_values(shown, state.counts, self.floor)
        spread = np.hypot(
            self._noise_of_values(state.counts, self._free_scale),
            self._count_noise(state.counts, shown),
        )
        table = table_of(shown, self._free_scale * math.sqrt(len(state.counts)) / per_row)
        return Free(rule.weights, table, values, spread, self._sampling(shown, state.counts))

    def _rows_off(self, state: EquilibriumState) -> tuple[float, float]:
        """Between what the true number of rows lies, over the number that errors are divided by."""
        g = self.ground
        per_row = 1 if g.cells is None else g.cells.per_row
        if (
            g.promise.rows_are_public
            and g.max_sample_weight is None
            and state.rows == g.public_rows
        ):
            return 1.0, 1.0
        total = float(state.counts.sum()) / per_row
        part = (1.0 - self.confidence) / PARTS / 2.0
        size = state.counts.size
        away = (
            0.0
            if g.sees_features
            else float(ndtri(1.0 - part)) * self._count_scale * math.sqrt(size) + ROUNDING * size
        )
        return (total - away / per_row) / state.rows, (total + away / per_row) / state.rows
