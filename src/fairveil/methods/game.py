"""A game of learner against auditor (Jagielski et al., "Differentially private fair learning",
Algorithm 3, in the form of theory.md#game).

    min over mixtures Q, max over duals:   L(Q, duals) = error(Q) + sum_k duals_k (value_k(Q) -
    bound_k)

The auditor plays exponentiated gradient over the simplex of size `dual_bound`; the learner answers
with a private oracle (`oracles`). Each round the auditor is told how the learner's rule decides,
with noise; the answer is the uniform mixture of the rules. `Game.play` is the whole of it:

    before    counts by cell and label, and what the oracle needs, released once
    a round   duals -> dL/dH -> the oracle's rule -> its decisions by cell (noisy) -> excesses ->
              duals
    after     how the oracle's rule without constraints decides, or the mixture that the oracle
              makes, where it has one

What is returned is the mixture, the mean of the released decisions, and what theory says of them
(`game_bounds`); or what `comparison` makes of it, of the rule without constraints and of constants.

*Rounds in vain.* Where noise would hide a constraint in the mean of all audits, a game follows that
noise: its mixture gives way to the rule without constraints and constants.

`Differs:` the paper's noise is Laplace, scaled by the smallest cell of the data, which is not
released, and its learner spends in every round. Here multipliers are constants, counts are
released, and the regression oracle spends once.

Guarantees (tests/methods/test_methods_game.py):
1. A game's plan is the trace of its run: what it asks does not depend on what it is answered, and
   its log is its plan, event for event.
2. The mixture depends on the rows through the curator's answers alone.
3. A game that is interrupted leaves a log that is a beginning of the plan, and the curator closed.
4. Whether rounds were in vain follows from released counts alone.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Hashable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import chdtri, ndtri

from .. import _checks
from .._types import Floats
from ..core.cost import gaussian_mu
from ..fairness import ConstraintSystem, deviations
from . import comparison as program
from . import constants
from .comparison import Choice, Comparison, DecisionTable, Free, Limits
from .descent import Reason
from .duals import ExponentiatedGradient, ExponentiatedGradientState
from .game_bounds import PARTS, ROUNDING, Guarantee, Seen
from .gaussian import quietest
from .likely import drowned
from .oracles import (
    Asks,
    GameInstance,
    GroupedRule,
    LinearRule,
    Oracle,
    Rule,
    Search,
    constant_rule,
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
class Game(Search[Equilibrium]):
    """A game that is priced: public values alone. Made by `plan`."""

    oracle: Oracle
    dual_bound: float
    counts_multiplier: float
    audit_multiplier: float
    confidence: float = 0.95
    only_false_positives: bool = False
    settled_multiplier: float = 0.0
    free_multiplier: float = 0.0
    asks_last = True

    def play(self, curator: Asks) -> Generator[None, None, Equilibrium]:
        """Algorithm 3."""
        g, oracle, system = self.ground, self.oracle, self.system
        counts, told = oracle.prepare(curator, g, self.counts_multiplier)
        rows = float(g.stated_rows or max(self.floor or TINY, counts.sum() / g.per_row))
        none, unit = np.zeros(0 if system is None else len(system)), 1.0
        fixed = None if system is None else system.at(counts, self.floor)
        if fixed is not None:
            # The lag's unit with all pressure on the first constraint: a scale, known in advance.
            duals = self.dual_bound * np.eye(1, len(none))[0]
            unit = oracle.regret(g, g.costs(fixed.cell_costs(duals), rows))[0]
        scale = unit if math.isfinite(unit) else 1.0
        seen, leaning = (
            Seen.nothing(none, counts, g.classes, scale),
            ExponentiatedGradientState(none),
        )
        auditor, played = ExponentiatedGradient(self.dual_bound), dict[Hashable, tuple[Rule, int]]()
        # of each value in one audit
        noise = self.noise_of_audits(counts, self.audit_scale) if self.settles else None
        yield
        for t in range(1, self.rounds + 1):
            # The auditor's play, or prices that the oracle would rather answer: of what was
            # released before this round.
            wished = None if fixed is None or noise is None else told.prices(fixed, noise)
            duals = auditor.duals(leaning) if wished is None else wished
            cell_costs = np.zeros((*counts.shape, g.classes))
            if fixed is not None:
                cell_costs = fixed.cell_costs(duals)
            rule, told = oracle.respond(curator, g, told, cell_costs, rows)
            late = t > oracle.burn_in * self.rounds
            if fixed is not None and system is not None:
                costs = g.costs(cell_costs, rows)
                rule, histogram = self._better(curator, rule, costs, counts)
                excess = fixed.values(histogram) - system.bounds
                lag = seen.lag.after(*oracle.regret(g, costs), self._doubt(costs))
                pull = cell_costs[..., 1:] - cell_costs[..., :1] if g.outputs == 1 else cell_costs
                variance = (self.audit_scale * float(np.linalg.norm(pull))) ** 2
                seen = seen.after(duals, excess, histogram, lag, variance, late)
                if noise is not None:
                    told.hear(rule, histogram)
                    values = told.last_values(fixed, noise)
                else:
                    values = system.exact_values(histogram, counts, self.floor, clip=True)
                leaning = auditor.step(leaning, values - system.bounds)
            if late:
                played[rule.key] = rule, played.get(rule.key, (rule, 0))[1] + 1
            yield
        # after the last round
        parts, duals, scale = list(played.values()), seen.mean_duals, self.audit_scale
        scale /= math.sqrt(max(1, seen.counted))
        found, free, vain = seen.mean_histogram, None, False
        if self.compares:
            alone, vain = oracle.free_rule(told), self.in_vain(counts)
            (shown,) = g.audit(curator, alone, [self.free_multiplier], counts)
            free = alone, shown
            if vain:
                found, scale = shown, self.free_scale
        elif noise is not None and fixed is not None:
            parts, duals = told.settled(fixed, noise)
            found = g.count_mixture(curator, parts, self.settled_multiplier, counts)
            scale = self.settled_scale
        yield
        outcome = Equilibrium(
            rules=(),
            plays=(),
            reason=Reason.HIDDEN if vain else Reason.ROUNDS,
            rounds=self.rounds,
            names=(),
            bounds=np.zeros(0),
            values=np.zeros(0),
            spread=np.zeros(0),
            duals=duals,
            counts=counts,
            rows=rows,
            guarantee=None,
            sampling=np.zeros(0),
        )
        if system is not None:
            outcome, parts = self._told(outcome, parts, found, scale, free, seen)
        rules = tuple(rule.published() for rule, _ in parts)
        return replace(outcome, rules=rules, plays=tuple(plays for _, plays in parts))

    # -- a round -------------------------------------------------------------------------------------

    def _better(
        self, curator: Asks, rule: Rule, costs: Floats, counts: Floats
    ) -> tuple[Rule, Floats]:
        """The rule, and how it decides, (cells, labels, classes), as it is released; or the
        cheapest indicator of a group if released values say that it costs less: how those decide is
        in the counts, and costs nothing (Theorem 4.6 needs them in the class)."""
        shown = self.ground.audit(curator, rule, self.multipliers, counts)
        # to compare, and to measure
        best, cost = (rule, shown[-1]), float((costs * shown[0]).sum())
        for other in self.indicators:
            decided = counts * (other.offsets > 0)
            known = np.stack([counts - decided, decided], axis=-1)
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
        if not self.indicators or self.ground.is_exact:
            return 0.0
        part = (1.0 - self.confidence) / PARTS / 2.0
        quantile = float(ndtri(1.0 - part / 2.0 / self.rounds))
        audit = self.audit_scale * math.sqrt((1.0 - COMPARING) / COMPARING) * quantile
        counts = self.count_scale * math.sqrt(float(chdtri(costs[..., 0].size, part)))
        apart = float(np.linalg.norm(costs[..., 1] - costs[..., 0]))
        return apart * max(audit + counts, 2.0 * counts)

    # -- what is public of it ------------------------------------------------------------------------

    @property
    def system(self) -> ConstraintSystem | None:
        """The constraints, or None."""
        return self.ground.system

    @property
    def asked_for(self) -> ConstraintSystem:
        """The constraints, of a game that has some."""
        assert self.system is not None
        return self.system

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

    def in_vain(self, counts: Floats) -> bool:
        """Whether noise hides what is constrained in the mean of all audits: by the released
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

    # -- how noisy answers are: standard deviations --------------------------------------------------

    def noise_of(self, counts: Floats, histogram: Floats, heard: int) -> Floats:
        """Of each constraint's value: of the mean of so many audits (of the mixture's own count,
        where it has one), and of the counts."""
        scale = self.audit_scale / math.sqrt(max(1, heard))
        return self.noise(counts, histogram, self.settled_scale if self.settles else scale)

    def noise(self, counts: Floats, histogram: Floats, scale: float) -> Floats:
        """Of the same where each number of that histogram has noise of this deviation."""
        of_counts = np.zeros(len(self.asked_for))
        if self.floor is not None:
            known = self.asked_for, counts, histogram, self.floor, self.ground.outputs
            of_counts = self.count_scale * slopes_of_counts(*known)
        return np.hypot(self.noise_of_audits(counts, scale), of_counts)

    def noise_of_audits(self, counts: Floats, scale: float) -> Floats:
        """Of the same with exact counts."""
        if self.ground.is_exact or self.floor is None:
            return np.zeros(len(self.asked_for))
        slopes = slopes_of_decisions(self.asked_for, counts, self.floor, self.ground.outputs)
        return np.asarray(scale * slopes)

    @cached_property
    def count_scale(self) -> float:
        """Of one count."""
        return self.ground.deviation(self.ground.counts, self.counts_multiplier)

    @cached_property
    def audit_scale(self) -> float:
        """Of one number of what an audit measures."""
        return self.ground.deviation(self.ground.decisions, self.multipliers[-1])

    @cached_property
    def free_scale(self) -> float:
        """Of the audit of the rule without constraints."""
        return self.ground.deviation(self.ground.decisions, self.free_multiplier)

    @cached_property
    def settled_scale(self) -> float:
        """Of the mixture's own count."""
        return self.ground.deviation(self.ground.mixed, self.settled_multiplier)

    # -- what was found ------------------------------------------------------------------------------

    def _told(
        self,
        outcome: Equilibrium,
        parts: list[tuple[Rule, int]],
        found: Floats,
        scale: float,
        free: tuple[Rule, Floats] | None,
        seen: Seen,
    ) -> tuple[Equilibrium, list[tuple[Rule, int]]]:
        """Values of the mixture and what it is compared with, from how it decides, `found`, with
        noise of `scale`; and the rules of what becomes the final model."""
        system, counts = self.asked_for, outcome.counts
        values = system.exact_values(found, counts, self.floor)
        spread, drawn = self.noise(counts, found, scale), self._sampling(found, counts)
        compared = self._comparison(outcome, values, spread, found, scale, free)
        choice, looks = None, 1
        if compared is not None and compared.free is not None and free is not None:
            looks = program.looks_at(compared)
            # Where the game was in vain, the rule without constraints is all that there is beside
            # constants.
            if outcome.reason is Reason.HIDDEN:
                alone = program.chosen(replace(compared, free=None), sampling=drawn)
                choice = Choice(0.0, alone.model, alone.constants)
            else:
                choice = program.chosen(compared, sampling=drawn, of_steps=True)
            if not choice.is_model:
                compared, told = program.comparison_of(compared, choice, drawn)
                assert compared.limits is not None
                values, spread, drawn = compared.limits.values, compared.limits.spread, told  # type: ignore[assignment]
                parts = self._chosen(choice, parts, free[0])
        told_of = replace(
            outcome,
            names=system.names,
            bounds=system.bounds,
            values=values,
            spread=spread,
            comparison=compared,
            sampling=drawn,
            looks=looks,
            choice=choice,
        )
        return replace(told_of, guarantee=self._guarantee(told_of, seen)), parts

    def _sampling(self, histogram: Floats, counts: Floats) -> Floats:
        return deviations(self.asked_for, histogram, counts, heaviest=self.ground.heaviest)

    def _comparison(
        self,
        outcome: Equilibrium,
        values: Floats,
        spread: Floats,
        found: Floats,
        scale: float,
        free: tuple[Rule, Floats] | None,
    ) -> Comparison | None:
        """The mixture beside constants and the rule without constraints, where decisions were
        counted by label."""
        g, system, counts, rows = self.ground, self.asked_for, outcome.counts, outcome.rows
        if not g.by_label or not rows > 0:
            return None
        of_one = math.sqrt(len(counts)) / g.per_row
        # audits were put onto exact ones
        audit = 0.0 if g.sees_features and not g.group_aware else scale * of_one
        heard_of = 0.0 if g.sees_features else self.count_scale * of_one

        def table_of(histogram: Floats, audit: float) -> DecisionTable:
            noise = np.full((g.classes, g.classes), audit)
            if g.outputs == 1 and not self.settles:
                noise[:, 0] = math.hypot(audit, heard_of)
            return DecisionTable(histogram.sum(axis=0) / g.per_row, noise)

        other = None
        if free is not None:
            rule, shown = free
            assert isinstance(rule, LinearRule)
            table = table_of(shown, self.free_scale * of_one)
            alone = system.exact_values(shown, counts, self.floor)
            noise = self.noise(counts, shown, self.free_scale)
            other = Free(rule.weights, table, alone, noise, self._sampling(shown, counts))
        known = system, counts, self.floor
        doubts = constants.noise_of(*known, self.count_scale)
        drawn = constants.sampling_of(*known, g.heaviest)
        limits = Limits(values, system.bounds, spread, constants.values_of(*known), doubts, drawn)
        return Comparison(table_of(found, audit), rows, limits, other)

    def _chosen(
        self, choice: Choice, played: list[tuple[Rule, int]], free: Rule
    ) -> list[tuple[Rule, int]]:
        """The rules of a choice, and how many of about `PARTS_OF_MIXTURE` parts each is."""
        total = max(1, sum(plays for _, plays in played))
        parts = [(rule, choice.model * plays / total) for rule, plays in played]
        parts.append((free, choice.free))
        shares = enumerate(choice.constants.tolist())
        parts += [(constant_rule(self.ground, k), share) for k, share in shares]
        told = [(rule, round(PARTS_OF_MIXTURE * share)) for rule, share in parts]
        return [(rule, whole) for rule, whole in told if whole]

    def _guarantee(self, outcome: Equilibrium, seen: Seen) -> Guarantee:
        """What theory says of these values: of the mean plays, of a mixture that was counted by
        itself, or of a choice."""
        counts, choice, system = outcome.counts, outcome.choice, self.asked_for
        audit, noise = self.noise_of_audits(counts, self.audit_scale), None
        if self.settles:
            noise = self.noise_of_audits(counts, self.settled_scale)
        elif choice is not None and not choice.is_model:
            of_free = self.noise_of_audits(counts, self.free_scale)
            of_model = choice.model * audit / math.sqrt(max(1, seen.counted))
            noise = of_model + choice.free * of_free
            known = system, counts, self.floor, self.count_scale
            noise = noise + choice.constants @ constants.noise_of(*known)
        indicated = self.indicators and self.only_false_positives
        return Guarantee.of(
            seen,
            system,
            counts,
            self.floor,
            outcome.values,
            dual_bound=self.dual_bound,
            audit_noise=audit,
            mixture_noise=noise,
            count_noise=self.count_scale,
            rows_off=self._rows_off(outcome),
            indicated=self.ground.groups if indicated else None,
            confidence=self.confidence,
            looks=outcome.looks,
        )

    def _rows_off(self, outcome: Equilibrium) -> tuple[float, float]:
        """Between what the true number of rows lies, over the number that errors are divided by."""
        g, rows, counts = self.ground, outcome.rows, outcome.counts
        if g.promise.rows_are_public and rows == g.stated_rows:
            return 1.0, 1.0
        total, away = float(counts.sum()) / g.per_row, 0.0
        if not g.sees_features:
            part = (1.0 - self.confidence) / PARTS / 2.0
            quantile = float(ndtri(1.0 - part))
            away = quantile * self.count_scale * math.sqrt(counts.size) + ROUNDING * counts.size
        return (total - away / g.per_row) / rows, (total + away / g.per_row) / rows


def compared(ground: GameInstance, oracle: Oracle) -> bool:
    """Whether a game on this ground audits the oracle's rule without constraints: where records are
    protected, by label."""
    constrained = ground.system is not None and ground.by_label
    return oracle.knows_free and constrained and not ground.sees_features


# -- the plan ------------------------------------------------------------------------------------


def plan(
    ground: GameInstance,
    oracle: Oracle,
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
    heard = 1.0 - counts_share - oracle.once_share - oracle.rounds_share if constraints else 0.0
    compares = compared(ground, oracle)
    prepares = oracle.knows_free and not constraints
    noise = _audit_noise(ground, heard) if constraints else 0.0
    usual = float(ground.groups) if ground.group_aware else _dual_bound(noise)  # Corollary 4.6.1
    bound = usual if dual_bound is None else _checks.positive(dual_bound=dual_bound)
    chosen = (
        _rounds(ground, oracle, constraints, noise)
        if rounds is None
        else _checks.whole(at_least=1, rounds=rounds)
    )

    def at(z: float) -> Game:
        def of(share: float, times: float = 1.0) -> float:
            return z * math.sqrt(times / share) if share else 0.0

        once_share = 1.0 - counts_share if prepares else oracle.once_share
        once = z / math.sqrt(once_share) if once_share else 0.0
        share = oracle.rounds_share
        in_a_round = of(share, chosen) if not prepares else 0.0
        last = SETTLED if oracle.settles else COMPARED if compares else 0.0
        audit = of(heard * (1.0 - last), chosen)
        at_last = z / math.sqrt(heard * last) if last and constraints else 0.0
        return Game(
            rounds=chosen,
            ground=ground,
            oracle=oracle.at(once, in_a_round),
            dual_bound=bound,
            counts_multiplier=z / math.sqrt(counts_share),
            audit_multiplier=audit,
            confidence=confidence,
            only_false_positives=only_false_positives,
            settled_multiplier=at_last if oracle.settles else 0.0,
            free_multiplier=at_last if compares else 0.0,
        )

    return quietest(ground.promise, at, lambda game: game.event, exact=ground.is_exact)


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


def _rounds(ground: GameInstance, oracle: Oracle, constraints: int, noise: float) -> int:
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
