"""A game of learner against auditor (Jagielski et al., "Differentially private fair learning",
Algorithm 3, in the form of theory.md#game).

    min over mixtures Q, max over duals:   L(Q, duals) = error(Q) + sum_k duals_k (value_k(Q) -
    bound_k)

The auditor plays exponentiated gradient over the simplex of size `dual_bound`; the learner answers
with a private oracle (`oracles`). Each round the auditor is told how the learner's rule decides,
with noise; the answer is the uniform mixture of the rules.

    begin     counts by cell and label, and what the oracle needs, released once; from the counts
              follows whether noise would hide what is constrained
    step      duals -> dL/dH -> the oracle's rule -> its decisions by cell (noisy) -> excesses ->
              duals
    settle    after the rounds of the plan: how the oracle's rule without constraints decides, or
              the mixture that the oracle makes, where it has one
    finish    the mixture, the mean of the released decisions, and what theory says of them
              (`game_bounds`); or what `program` makes of it, of the rule without constraints and of
              constants

*Rounds in vain.* Where noise would hide a constraint in the mean of all audits, a game follows that
noise, and its mixture gives way to the rule without constraints at the end. So the rounds go on
with that rule, at the prices of the plan (`oracles.GoingOn`), and no game is played.

`Differs:` the paper's noise is Laplace, scaled by the smallest cell of the data, which is not
released, and its learner spends in every round. Here multipliers are constants, counts are
released, and the regression oracle spends once.

Guarantees (tests/methods/test_methods_game.py):
1. A game's plan is the trace of its run: what it asks does not depend on what it is answered, and
   its log is its plan, event for event.
2. The mixture depends on the rows through the curator's answers alone.
3. A game that is interrupted leaves a log that is a beginning of the plan, and the curator closed.
4. Whether the rounds go on without constraints follows from released counts alone
   (tests/methods/test_methods_going_on.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import chdtri, ndtri

from .. import _checks
from .._types import Floats
from ..core.cost import gaussian_mu
from ..core.events import Event, Repeated, compose
from ..curator import Asked, MadeUp
from ..fairness import ConstraintSystem, deviations
from ..fairness.systems import FixedCounts
from . import comparison as program
from . import constants
from .comparison import Choice, Comparison, DecisionTable, Free, Limits
from .descent import Progress, Reason
from .duals import ExponentiatedGradient, ExponentiatedGradientState
from .game_bounds import PARTS, ROUNDING, Guarantee, Seen
from .gaussian import quietest
from .likely import drowned
from .oracles import (
    Asks,
    Begun,
    GameInstance,
    GoingOn,
    GroupedRule,
    LinearRule,
    Oracle,
    Rule,
    Walk,
    any_measurement,
    audited,
    constant_rule,
    counted,
    in_parts,
    indicators,
)
from .outcome import not_met
from .systems import slopes_of_counts, slopes_of_decisions

FEWEST, MOST = 50, 500  # rounds
LEAST_BOUND, MOST_BOUND = 2.0, 5.0
PRESSURE = 0.05  # of the noise of all audits, times the dual bound
SETTLED = 0.6
"""Of the audits' share, where the oracle makes the mixture: for the mixture's own count."""
COMPARED = 0.15
"""Of the audits' share, for how the oracle's rule without constraints decides."""
COMPARING = 0.3
"""Of an audit's price, for the comparison with the indicators, where there are any. What is
measured has noise of its own: kept by a comparison on the same noise, rules would look better than
they are."""
PARTS_OF_MIXTURE = 1_000_000
"""In which shares of a choice are told: rates of the final model are off by a millionth for each
rule at most."""
TINY = 1e-9  # of a number of rows that divides


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
        return any(not isinstance(rule, LinearRule) or rule.learnt for rule in self.rules)


@dataclass(frozen=True, eq=False)
class Game:
    """A game that is priced: public values alone. Made by `plan`."""

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

    def run(
        self,
        curator: Asks,
        progress: Progress | None = None,
        *,
        watch: Callable[[Play], None] | None = None,
    ) -> Equilibrium:
        """Play to the end with a curator that was made for the plan; the curator is closed
        afterwards, in every case."""
        with curator:
            play = Play.begin(self, curator)
            while play.round < self.rounds:
                play.step()
                if watch is not None:
                    watch(play)
                if progress is not None:
                    progress(play.round, self.rounds)
            play.settle()
            found = play.finish()
            curator.finish()
        return found

    def asked(self, made_up: MadeUp | None = None) -> tuple[list[Asked], list[Asked], list[Asked]]:
        """What is asked before the first round, in every round of a game that is played, and after
        the last: a trace."""
        trace = self.ground.trace(made_up)
        play = Play.begin(self, trace)
        play.walk = None
        once = len(trace.asked)
        play.step()
        one = len(trace.asked)
        play.settle()
        return trace.asked[:once], trace.asked[once:one], trace.asked[one:]

    @cached_property
    def plan(self) -> Event | None:
        """All that the game releases, as one event; None without privacy."""
        if not self.ground.promise.is_private:
            return None
        first, one, last = (in_parts(asked) for asked in self.asked())
        return compose([*first, Repeated(compose(one), self.rounds), *last])

    # -- what is public of it ----------------------------------------------------------------------

    @property
    def system(self) -> ConstraintSystem | None:
        """The constraints, or None."""
        return self.ground.system

    @property
    def floor(self) -> float | None:
        """The least number of rows that an event is taken to have. None without noise: one without
        rows is undefined."""
        return None if self.ground.is_exact else self.ground.floor(self.counts_multiplier)

    @property
    def settles(self) -> bool:
        """Whether the oracle makes the mixture, which is counted once more."""
        return self.oracle.settles and self.system is not None

    @property
    def compares(self) -> bool:
        """Whether the mixture may give way to the oracle's rule without constraints, which is
        audited for it."""
        return compared(self.ground, self.oracle)

    @property
    def auditor(self) -> ExponentiatedGradient:
        """How the duals are played."""
        return ExponentiatedGradient(self.dual_bound)

    @cached_property
    def going_on(self) -> GoingOn | None:
        """What the rounds are spent on if they would be in vain; None where they never are."""
        if not self.compares or not isinstance(self.oracle, Begun):
            return None
        return GoingOn(self.oracle, self.ground, self.rounds, tuple(self.multipliers))

    def in_vain(self, counts: Floats) -> bool:
        """Whether noise would hide what is constrained in the mean of all audits: by the released
        counts, and decisions by a fair coin."""
        even = np.repeat(counts[..., np.newaxis], self.ground.classes, axis=-1)
        heard = self.rounds - int(self.oracle.burn_in * self.rounds)
        return drowned(self.noise_of(counts, even / self.ground.classes, heard))

    @cached_property
    def indicators(self) -> list[GroupedRule]:
        """The maximally discriminatory classifiers, where rules may read the group and there are
        two classes."""
        g = self.ground
        if not g.group_aware or g.cells is None or g.outputs > 1:
            return []
        return indicators(g.cells, g.layout.width)

    @property
    def multipliers(self) -> list[float]:
        """Of one audit; where rules are compared with the indicators of two, that together cost as
        much: to compare, to measure."""
        shares = (COMPARING, 1.0 - COMPARING) if self.indicators else (1.0,)
        return [self.audit_multiplier / math.sqrt(share) for share in shares]

    # -- how noisy answers are ---------------------------------------------------------------------

    def noise_of(self, counts: Floats, histogram: Floats, heard: int) -> Floats:
        """The standard deviation of each constraint's value: of the mean of so many audits (of the
        mixture's own count, where it has one), and of the counts."""
        scale = self.audit_scale / math.sqrt(max(1, heard))
        return self.noise(counts, histogram, self.settled_scale if self.settles else scale)

    def noise(self, counts: Floats, histogram: Floats, scale: float) -> Floats:
        """The same where each number of that histogram has noise of that deviation."""
        of_counts = np.zeros(len(self.asked_for))
        if self.floor is not None:
            known = self.asked_for, counts, histogram, self.floor, self.ground.outputs
            of_counts = self.count_scale * slopes_of_counts(*known)
        return np.hypot(self.noise_of_audits(counts, scale), of_counts)

    def noise_of_audits(self, counts: Floats, scale: float) -> Floats:
        """The same with exact counts."""
        if self.ground.is_exact or self.floor is None:
            return np.zeros(len(self.asked_for))
        slopes = slopes_of_decisions(self.asked_for, counts, self.floor, self.ground.outputs)
        return np.asarray(scale * slopes)

    @property
    def asked_for(self) -> ConstraintSystem:
        """The constraints, of a game that has some."""
        assert self.system is not None
        return self.system

    @cached_property
    def count_scale(self) -> float:
        """The standard deviation of the noise in one count."""
        g = self.ground
        return 0.0 if g.is_exact else self.counts_multiplier * g.move(g.counts)

    @cached_property
    def audit_scale(self) -> float:
        """The standard deviation of the noise in one number of what an audit measures."""
        return self._of_decisions(self.multipliers[-1])

    @cached_property
    def free_scale(self) -> float:
        """The same of the audit of the rule without constraints."""
        return self._of_decisions(self.free_multiplier)

    @cached_property
    def settled_scale(self) -> float:
        """The same of the mixture's own count."""
        g = self.ground
        question = any_measurement(g, self.settled_multiplier).question
        return 0.0 if g.is_exact else self.settled_multiplier * g.move(question)

    def _of_decisions(self, multiplier: float) -> float:
        g = self.ground
        question = LinearRule(g.zeros).decisions(g.cells, g.by_label)
        return 0.0 if g.is_exact else multiplier * g.move(question)


def compared(ground: GameInstance, oracle: Oracle[Any]) -> bool:
    """Whether a game on this ground audits the oracle's rule without constraints: where records are
    protected, by label."""
    constrained = ground.system is not None and ground.by_label
    return oracle.knows_free and constrained and not ground.sees_features


@dataclass(eq=False)
class Play:
    """A game that is being played: released values only.

    `noise`: of each value in one audit, where the oracle settles; `settled`: its mixture, the duals,
    and how it decides. `free`: the rule without constraints and how it decides. `walk`: where that
    rule goes on in place of the game; None: the game is played.
    """

    game: Game
    curator: Asks
    prepared: Any
    counts: Floats
    rows: float
    fixed: FixedCounts | None
    leaning: ExponentiatedGradientState
    seen: Seen
    played: dict[Hashable, tuple[Rule, int]] = field(default_factory=dict)
    round: int = 0
    noise: Floats | None = None
    settled: tuple[list[tuple[Rule, int]], Floats, Floats] | None = None
    free: tuple[Rule, Floats] | None = None
    walk: Walk | None = None

    @staticmethod
    def begin(game: Game, curator: Asks) -> Play:
        """Counts, and what the oracle needs."""
        g, system = game.ground, game.system
        counts, prepared = game.oracle.prepare(curator, g, game.counts_multiplier)
        # weights are counted, not rows
        stated = None if g.max_sample_weight is not None else g.public_rows
        rows = float(stated or max(game.floor or TINY, counts.sum() / g.per_row))
        none = np.zeros(0 if system is None else len(system))
        fixed, usual = None, 1.0
        if system is not None:
            # The lag's unit with all pressure on the first constraint: a scale, known in advance.
            fixed = system.at(counts, game.floor)
            duals = game.dual_bound * np.eye(1, len(system))[0]
            unit = game.oracle.regret(g, g.costs(fixed.cell_costs(duals), rows))[0]
            usual = unit if math.isfinite(unit) else 1.0
        seen, leaning = (
            Seen.nothing(none, counts, g.classes, usual),
            ExponentiatedGradientState(none),
        )
        play = Play(game, curator, prepared, counts, rows, fixed, leaning, seen)
        if game.settles:
            play.noise = game.noise_of_audits(counts, game.audit_scale)
        if game.going_on is not None and game.in_vain(counts):
            play.walk = game.going_on.begin(prepared, rows)
        return play

    def step(self) -> None:
        """One round."""
        game, curator = self.game, self.curator
        g, oracle, fixed = game.ground, game.oracle, self.fixed
        self.round += 1
        if self.walk is not None and game.going_on is not None:
            self.walk = game.going_on.step(curator, self.walk)
            return
        duals = self._duals()
        cell_costs = np.zeros((*self.counts.shape, g.classes))
        if fixed is not None:
            cell_costs = fixed.cell_costs(duals)
        rule, self.prepared = oracle.respond(curator, g, self.prepared, cell_costs, self.rows)
        late = self.round > oracle.burn_in * game.rounds
        if fixed is not None and game.system is not None:
            costs = g.costs(cell_costs, self.rows)
            rule, histogram = self._better(rule, costs)
            self.prepared = oracle.heard(self.prepared, rule, histogram)
            excess = fixed.values(histogram) - game.system.bounds
            lag = self.seen.lag.after(*oracle.regret(g, costs), self._doubt(costs))
            pull = cell_costs[..., 1:] - cell_costs[..., :1] if g.outputs == 1 else cell_costs
            variance = (game.audit_scale * float(np.linalg.norm(pull))) ** 2
            self.seen = self.seen.after(duals, excess, histogram, lag, variance, late)
            values = None
            if self.noise is not None:
                values = oracle.expected(self.prepared, fixed, self.noise)
            if values is None:
                values = game.system.exact_values(histogram, self.counts, game.floor, clip=True)
            heard = values - game.system.bounds
            self.leaning = game.auditor.step(self.leaning, heard)
        if late:
            plays = self.played.get(rule.key, (rule, 0))[1]
            self.played[rule.key] = rule, plays + 1

    def _duals(self) -> Floats:
        """The auditor's play, or prices that the oracle would rather answer: of what was released
        before this round."""
        wished = None
        if self.fixed is not None and self.noise is not None:
            wished = self.game.oracle.prices(self.prepared, self.fixed, self.noise)
        return self.game.auditor.duals(self.leaning) if wished is None else wished

    def _better(self, rule: Rule, costs: Floats) -> tuple[Rule, Floats]:
        """The rule, and how it decides, (cells, labels, classes), as it is released; or the
        cheapest indicator of a group if released values say that it costs less: how those decide is
        in the counts, and costs nothing (Theorem 4.6 needs them in the class)."""
        game = self.game
        shown = audited(self.curator, game.ground, rule, game.multipliers, self.counts)
        # to compare, and to measure
        best, cost = (rule, shown[-1]), float((costs * shown[0]).sum())
        for other in game.indicators:
            decided = self.counts * (other.offsets > 0)
            known = np.stack([self.counts - decided, decided], axis=-1)
            if (price := float((costs * known).sum())) < cost:
                best, cost = (other, known), price
        return best

    def _doubt(self, costs: Floats) -> float:
        """How far a comparison with the indicators may be off by noise, but for a share of the
        chance; 0 where none is made.

        The audit's noise is drawn after the costs are fixed: a Gaussian, in every round. The
        counts' was drawn before, and costs follow it: its length bounds what it does to any of
        them.
        """
        game = self.game
        if not game.indicators or game.ground.is_exact:
            return 0.0
        part = (1.0 - game.confidence) / PARTS / 2.0
        quantile = float(ndtri(1.0 - part / 2.0 / game.rounds))
        audit = game.audit_scale * math.sqrt((1.0 - COMPARING) / COMPARING) * quantile
        counts = game.count_scale * math.sqrt(float(chdtri(costs[..., 0].size, part)))
        apart = float(np.linalg.norm(costs[..., 1] - costs[..., 0]))
        return apart * max(audit + counts, 2.0 * counts)

    def settle(self) -> None:
        """How the rule without constraints decides, or the mixture that the oracle makes, if it
        does: after the last round."""
        game, curator, oracle = self.game, self.curator, self.game.oracle
        if game.compares:
            free = oracle.free_rule(self.prepared)
            if self.walk is not None and game.going_on is not None:
                free = game.going_on.rule(self.walk)
            (shown,) = audited(
                curator,
                game.ground,
                free,
                [game.free_multiplier],
                self.counts,
            )
            self.free = free, shown
        elif self.noise is not None and self.fixed is not None:
            rules, duals = oracle.settle(self.prepared, self.fixed, self.noise)
            multiplier = game.settled_multiplier
            histogram = counted(curator, game.ground, rules, multiplier, self.counts)
            self.settled = rules, duals, histogram

    # -- what was found ----------------------------------------------------------------------------

    def finish(self) -> Equilibrium:
        """The mixture and what was released of it."""
        game, system = self.game, self.game.system
        parts, duals = list(self.played.values()), self.seen.mean_duals
        if self.settled is not None:
            parts, duals, _ = self.settled
        names, bounds, values, spread = (), np.zeros(0), np.zeros(0), np.zeros(0)
        comparison, choice, looks, guarantee = None, None, 1, None
        drawn: Floats | None = np.zeros(0)
        if system is not None:
            histogram, scale = self._found()
            names, bounds = system.names, system.bounds  # type: ignore[assignment]
            values = system.exact_values(histogram, self.counts, game.floor)
            spread = game.noise(self.counts, histogram, scale)
            drawn = self._sampling(histogram)
            comparison = self._comparison(values, spread)
            if comparison is not None and comparison.free is not None:
                looks = program.looks_at(comparison)
                choice = self._choice(comparison, drawn)
                if not choice.is_model:
                    comparison, drawn = program.comparison_of(comparison, choice, drawn)
                    assert comparison.limits is not None
                    values, spread = comparison.limits.values, comparison.limits.spread
                    parts = self._chosen(choice)
            guarantee = self._guarantee(values, choice, looks)
        return Equilibrium(
            rules=tuple(rule.published() for rule, _ in parts),
            plays=tuple(plays for _, plays in parts),
            reason=Reason.ROUNDS if self.walk is None else Reason.HIDDEN,
            rounds=self.round,
            names=names,
            bounds=bounds,
            values=values,
            spread=spread,
            duals=duals,
            counts=self.counts,
            rows=self.rows,
            guarantee=guarantee,
            comparison=comparison,
            sampling=drawn,
            looks=looks,
            choice=choice,
        )

    def _found(self) -> tuple[Floats, float]:
        """How the mixture decides, or the rule that went on in its place, as it was released; and
        the deviation of the noise in each number."""
        game = self.game
        if self.walk is not None and self.free is not None:
            return self.free[1], game.free_scale
        if self.settled is not None:
            return self.settled[2], game.settled_scale
        scale = game.audit_scale / math.sqrt(max(1, self.seen.counted))
        return self.seen.mean_histogram, scale

    def _sampling(self, histogram: Floats) -> Floats:
        heaviest = self.game.ground.heaviest
        return deviations(self.game.asked_for, histogram, self.counts, heaviest=heaviest)

    def _comparison(self, values: Floats, spread: Floats) -> Comparison | None:
        """The mixture beside constants and the rule without constraints, where decisions were
        counted by label."""
        game, g = self.game, self.game.ground
        if not g.by_label or not self.rows > 0:
            return None
        histogram, scale = self._found()
        of_one = math.sqrt(len(self.counts)) / g.per_row
        # audits were put onto exact ones
        audit = 0.0 if g.sees_features and not g.group_aware else scale * of_one
        heard_of = 0.0 if g.sees_features else game.count_scale * of_one

        def table_of(histogram: Floats, audit: float) -> DecisionTable:
            noise = np.full((g.classes, g.classes), audit)
            if g.outputs == 1 and self.settled is None:
                noise[:, 0] = math.hypot(audit, heard_of)
            return DecisionTable(histogram.sum(axis=0) / g.per_row, noise)

        free = None
        if self.free is not None:
            rule, shown = self.free
            assert isinstance(rule, LinearRule)
            table = table_of(shown, game.free_scale * of_one)
            alone = game.asked_for.exact_values(shown, self.counts, game.floor)
            noise = game.noise(self.counts, shown, game.free_scale)
            free = Free(rule.weights, table, alone, noise, self._sampling(shown))
        known = game.asked_for, self.counts, game.floor
        doubts = constants.noise_of(*known, game.count_scale)
        drawn = constants.sampling_of(*known, g.heaviest)
        of_constants = constants.values_of(*known)
        limits = Limits(values, game.asked_for.bounds, spread, of_constants, doubts, drawn)
        return Comparison(table_of(histogram, audit), self.rows, limits, free)

    def _choice(self, found: Comparison, drawn: Floats | None) -> Choice:
        """What becomes the final model. Where no game was played, the rule without constraints is
        all that there is beside constants."""
        if self.walk is None:
            return program.chosen(found, sampling=drawn, of_steps=True)
        alone = program.chosen(replace(found, free=None), sampling=drawn)
        return Choice(0.0, alone.model, alone.constants)

    def _chosen(self, choice: Choice) -> list[tuple[Rule, int]]:
        """The rules of a choice, and how many of about `PARTS_OF_MIXTURE` parts each is."""
        assert self.free is not None
        played = max(1, sum(plays for _, plays in self.played.values()))
        parts = [(rule, choice.model * plays / played) for rule, plays in self.played.values()]
        parts.append((self.free[0], choice.free))
        shares = enumerate(choice.constants.tolist())
        parts += [(constant_rule(self.game.ground, k), share) for k, share in shares]
        told = [(rule, round(PARTS_OF_MIXTURE * share)) for rule, share in parts]
        return [(rule, whole) for rule, whole in told if whole]

    def _guarantee(self, values: Floats, choice: Choice | None, looks: int) -> Guarantee:
        """What theory says of these values: of the mean plays, of a mixture that was counted by
        itself, or of a choice."""
        game, counts = self.game, self.counts
        audit, noise = game.noise_of_audits(counts, game.audit_scale), None
        if self.settled is not None:
            noise = game.noise_of_audits(counts, game.settled_scale)
        elif choice is not None and not choice.is_model:
            of_free = game.noise_of_audits(counts, game.free_scale)
            of_model = choice.model * audit / math.sqrt(max(1, self.seen.counted))
            noise = of_model + choice.free * of_free
            noise = noise + choice.constants @ constants.noise_of(
                game.asked_for, counts, game.floor, game.count_scale
            )
        indicated = game.indicators and game.only_false_positives
        return Guarantee.of(
            self.seen,
            game.asked_for,
            counts,
            game.floor,
            values,
            dual_bound=game.dual_bound,
            audit_noise=audit,
            mixture_noise=noise,
            count_noise=game.count_scale,
            rows_off=self._rows_off(),
            indicated=game.ground.groups if indicated else None,
            confidence=game.confidence,
            looks=looks,
        )

    def _rows_off(self) -> tuple[float, float]:
        """Between what the true number of rows lies, over the number that errors are divided by."""
        game, g = self.game, self.game.ground
        unweighted = g.promise.rows_are_public and g.max_sample_weight is None
        if unweighted and self.rows == g.public_rows:
            return 1.0, 1.0
        total, size, away = float(self.counts.sum()) / g.per_row, self.counts.size, 0.0
        if not g.sees_features:
            part = (1.0 - game.confidence) / PARTS / 2.0
            quantile = float(ndtri(1.0 - part))
            away = quantile * game.count_scale * math.sqrt(size) + ROUNDING * size
        return (total - away / g.per_row) / self.rows, (total + away / g.per_row) / self.rows


# -- the plan ------------------------------------------------------------------------------------


def plan(
    ground: GameInstance,
    oracle: Oracle[Any],
    *,
    dual_bound: float | None = None,
    rounds: int | None = None,
    confidence: float = 0.95,
    only_false_positives: bool = False,
    counts_share: float = 0.05,
) -> Game:
    """The game whose noise is the least that keeps the promise: made of public values alone.

    Shares of the squared budget: the counts', the oracle's, the auditor's the rest; rounds and dual
    bound follow from the noise that this foretells. Without constraints there is one round, or none
    that asks, where what the oracle releases once is a rule already.
    """
    oracle.require(ground)
    constraints = 0 if ground.system is None else len(ground.system)
    audit_share = (
        1.0 - counts_share - oracle.once_share - oracle.rounds_share if constraints else 0.0
    )
    compares = compared(ground, oracle)
    prepares = oracle.knows_free and not constraints
    noise = _audit_noise(ground, audit_share) if constraints else 0.0
    usual = float(ground.groups) if ground.group_aware else _dual_bound(noise)  # Corollary 4.6.1
    bound = usual if dual_bound is None else _checks.positive(dual_bound=dual_bound)
    chosen = (
        _rounds(ground, oracle, constraints, noise)
        if rounds is None
        else _checks.whole(at_least=1, rounds=rounds)
    )

    def at(z: float) -> Game:
        once_share = 1.0 - counts_share if prepares else oracle.once_share
        once = z / math.sqrt(once_share) if once_share else 0.0
        share = oracle.rounds_share
        in_a_round = z * math.sqrt(chosen / share) if share and not prepares else 0.0
        heard = audit_share * (
            1.0 - SETTLED if oracle.settles else 1.0 - COMPARED if compares else 1.0
        )
        audit = z * math.sqrt(chosen / heard) if constraints else 0.0
        settles = constraints and oracle.settles
        return Game(
            ground,
            oracle.at(once, in_a_round),
            chosen,
            bound,
            z / math.sqrt(counts_share),
            audit,
            confidence,
            only_false_positives,
            z / math.sqrt(audit_share * SETTLED) if settles else 0.0,
            z / math.sqrt(audit_share * COMPARED) if compares else 0.0,
        )

    def priced(game: Game) -> Event:
        assert game.plan is not None
        return game.plan

    return quietest(ground.promise, at, priced, exact=ground.is_exact)


def _audit_noise(ground: GameInstance, share: float) -> float:
    """The noise of all audits together, in units of a rate of a cell of usual size: of one of T
    audits it is sqrt(T) of that.

    Public facts alone; as much as a whole rate where the number of rows is not among them.
    """
    if ground.is_exact:
        return 0.0
    mu, rows = gaussian_mu(ground.promise.epsilon, ground.promise.delta), ground.public_rows
    if rows is None or mu <= 0:
        return 1.0
    moved = math.sqrt(2.0) * ground.promise.rows_per_unit
    return moved / (mu * math.sqrt(share)) / _usual_cell(ground, rows)


def _usual_cell(ground: GameInstance, rows: float) -> float:
    return rows / (ground.groups * (ground.classes if ground.by_label else 1))


def _dual_bound(noise: float) -> float:
    """As large as leaves dual_bound x noise, which the auditor's regret is made of, below
    `PRESSURE`: the larger, the closer to the bounds the game ends (Theorem 4.4)."""
    return min(max(PRESSURE / noise if noise > 0 else math.inf, LEAST_BOUND), MOST_BOUND)


def _rounds(ground: GameInstance, oracle: Oracle[Any], constraints: int, noise: float) -> int:
    """How many rounds: the paper's balance of the two players' regrets, with the constants of this
    game's noise.

    With noise c sqrt(T) in one of T audits the auditor's regret is about dual_bound sqrt(ln(1 + K))
    sqrt(1 / T + c^2): T = 1 / c^2 rounds come within sqrt(2) of the best. A learner that spends in
    every round has a regret of r sqrt(T) dual_bound: T = sqrt(ln(1 + K)) / r (the paper's formula).
    """
    if not constraints:
        return 1 if oracle.burn_in == 0 or oracle.knows_free else FEWEST
    most = oracle.most_rounds or MOST
    if noise == 0.0:
        return most
    rows = ground.public_rows
    if rows is None:
        return min(2 * FEWEST, most)
    wanted = 1.0 / noise**2
    if oracle.rounds_share:
        mu = gaussian_mu(ground.promise.epsilon, ground.promise.delta)
        costs = np.zeros((ground.groups, ground.classes, ground.classes))
        costs[0, :, 0] = 1.0 / _usual_cell(ground, rows)
        once = oracle.at(1.0, 1.0 / (mu * math.sqrt(oracle.rounds_share)))
        unit, known = once.regret(ground, costs)
        if 0 < unit < math.inf:
            wanted = min(wanted, math.sqrt(math.log(1 + constraints)) / (unit * (known + 1.0)))
    return int(min(max(wanted, FEWEST), most))
