"""What a search for a group objective found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ..comparison import Constant, Rival
from ..descent import Reason
from ..oracles import Rule
from ..outcome import not_met
from .problem import ReleasedProblem


@dataclass(frozen=True, eq=False)
class Found:
    """What was found: released values only.

    `rules` with their `weights`; `objective`: f of the mixture, with the deviation of its noise in
    `objective_noise`; `values` of what is constrained, with `spread` of noise and `sampling` error;
    `duals`: how hard each was pressed. `losses`: the mixture's, as released. `excess`: no mixture's
    h is lower by more, if the oracle is as good as without noise; None where nothing is known.
    `constant`: the best decision that is the same for everybody, by the objective; None where
    decisions are not counted by label, and of what was read from disk. `free`: the rule without
    constraints, beside it; None where there is none, too. `kept`: of the final model, the share
    of the mixture that was found; 1 of what was read.
    """

    rules: tuple[Rule, ...]
    weights: Floats
    reason: Reason
    rounds: int
    names: tuple[str, ...]
    bounds: Floats
    values: Floats
    spread: Floats
    duals: Floats
    counts: Floats
    rows: float
    losses: Floats
    objective: float
    objective_noise: float
    penalty: float
    excess: float | None = None
    constant: Constant | None = None
    sampling: Floats | None = None
    free: Rival | None = None
    kept: float = 1.0

    @property
    def broken(self) -> tuple[int, ...]:
        """The constraints that are not met."""
        return not_met(self.values, self.bounds, self.spread)

    @property
    def learnt(self) -> bool:
        """Whether there is anything in the rules."""
        return any(rule.learnt for rule in self.rules)

    @staticmethod
    def of(
        posed: ReleasedProblem,
        rules: tuple[Rule, ...],
        weights: Floats,
        measured: Floats,
        *,
        noise: float,
        count_noise: float,
        duals: Floats,
        reason: Reason,
        rounds: int,
        excess: float | None = None,
        constant: Floats | None = None,
        free: tuple[Floats, float] | None = None,
        kept: float = 1.0,
    ) -> Found:
        """From losses (rules, *shape) that were released with that noise, each number's, and
        independent of the weights.

        `constant`: see `ReleasedProblem.spread`. `free`: losses of a rule without constraints, and
        their noise."""
        losses = np.tensordot(weights, measured, axes=1)
        names, bounds, values = posed.values(losses)
        of_objective, spread = posed.spread(
            losses, noise / posed.rows, count_noise / posed.rows, constant
        )
        return Found(
            rules=tuple(rule.published() for rule in rules),
            weights=weights,
            reason=reason,
            rounds=rounds,
            names=names,
            bounds=bounds,
            values=values,
            spread=spread,
            duals=posed.placed(duals),
            counts=posed.counts,
            rows=posed.rows,
            losses=losses,
            objective=float(posed.f.value(losses)),
            objective_noise=of_objective,
            penalty=posed.h.penalty,
            excess=excess,
            constant=posed.best_constant(losses, of_objective, count_noise / posed.rows),
            sampling=posed.sampling(losses),
            free=None
            if free is None
            else posed.beside(losses, free[0], noise / posed.rows, free[1] / posed.rows),
            kept=kept,
        )
