"""Constrained group-objective optimisation by a private linear oracle (Alabi, Algorithms 2 and 4,
as in theory.md#objectives).

    min over mixtures Q of decisions:   h(l(Q)) = f(l(Q)) + G max(0, g(l(Q)))

Each round an oracle is asked for a decision with little w . l, w made of what was released before,
and how that decision falls is released with noise. `Differs:` the published loop takes w = h'(l(c,
D)) from the data themselves, which no accounting of its oracle covers: one row flips the indicator
1[g >= 0] (docs/group_objective.md has the counterexample).

    init    counts by cell and label, and what the oracle needs, released once; how its rule without constraints decides
    step    price w -> the oracle's rule -> its losses (noisy); where rounds would be in vain, see
            `alone`
    stop    after the rounds of the plan; without noise, when no decision is better
    finish  the mixture, or what `group_floor` makes of it, and its losses from releases that did not choose it

Where w comes from, all from the mean of released losses, which damps their noise:

- "auditor": f' at the mean, and duals on a simplex of size G for what is constrained, by
  exponentiated gradient on the sum of excesses, as far as it is no noise (`group_hearing`): max
  over duals of duals . excess is G max(0, g), so this is a no-regret player of h's subgradients
  (Remark 5.7), and the uniform mixture is Algorithm 2's answer. `Differs:` w at the last decision
  alone, as published, flips for ever; and the answer's weights are the best for the released losses
  of blocks of rounds, which noise makes long;
- "leader": the dual prices of the best mixture so far (`master`), for losses with little noise or
  none;
- "last": where h is linear, so that prices never change: the last decision is the answer;
- "frank-wolfe": h' at l <- (1 - s) l + s l_t (Algorithm 4), max(0, .) and largest ones being
  smoothed; s is 2/(t + 1), or what makes h less (Lemma B.2 holds for that, too).

Guarantees (tests/learning/test_learning_group_loop.py):
1. A loop's log is its plan, event for event.
2. Weights and mixture depend on the rows through the curator's answers alone.
3. What is reported of the mixture has noise that is independent of how it was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from ..._types import Floats
from ...curator import Curator
from ...fairness.functions import smoothed, smoothing_adds
from ..descent import Reason
from ..lagrangian.duals import ExponentiatedGradientState
from ..oracles import audited
from .alone import LoopOrAlone
from .floor import Stake, shares_of
from .found import Found
from .hearing import Heard, aimed, blocks_of, noise_of_excesses
from .master import ENOUGH, LAST_PASSES, NEAR, PASSES, Master
from .played import FREE, Played, PlayedState, constants, crowd_of

LEAST_STEP = 0.1


SHARES = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 60)])


# deviations of a block's noise, by which g has to be above 0 for constants to take part
BEYOND = 3.0


CLEARLY = 1.0  # deviations by which it has to be smaller than that of the opening's rules


@dataclass(frozen=True, eq=False)
class Loop(LoopOrAlone):
    """A loop that is planned and priced: public values alone. Made by `group_plan.plan_loop`."""

    # -- init, step, stop, finish ------------------------------------------------------------------

    def init(self, curator: Curator) -> PlayedState:
        """Counts, and what the oracle needs; the first price is that of decisions by chance."""
        counts, prepared = self.oracle.prepare(curator, self.ground, self.counts_multiplier)
        posed = self.problem.pose(counts, self.counts_multiplier, self.penalty)
        h = smoothed(posed.h, self.width) if self.step_by == "frank-wolfe" else posed.h
        chance, master = posed.chance, Master(h)
        value = master.touch(chance)
        price = h.gradient(chance)
        base = value - float((price * chance).sum())
        none = np.zeros(len(posed.excesses(chance)))
        if self.opening:
            price = posed.rows * self.ground.costs(np.zeros_like(price), posed.rows)
        elif self.step_by == "auditor":
            price = posed.f.gradient(chance) + posed.pull(
                self.auditor.duals(ExponentiatedGradientState(none)), chance
            )
        ear = Heard(
            noise_of_excesses(posed, chance, self._noise(self._multipliers[0])), self.rounds
        )
        fixed = constants(posed) if self.oracle.any_linear and self.step_by != "last" else []
        played: dict[Hashable, Played] = {one.rule.key: one for one in fixed}
        if self.compares:
            rule = self.oracle.free_rule(prepared)
            shown = audited(curator, self.ground, rule, self._free_multipliers, counts)
            times = (self.audit_multiplier / self.free_multiplier) ** 2
            played[FREE] = Played(
                rule, posed.possible(shown[0] / posed.rows), shown[1] / posed.rows, times
            )
        walk = None
        if self.going_on is not None and self.in_vain(posed, played[FREE]):
            walk = self.going_on.begin(prepared, posed.rows)
        zeros = np.zeros(len(played))
        return PlayedState(
            posed,
            prepared,
            master,
            played,
            zeros,
            chance,
            price,
            base,
            ExponentiatedGradientState(none),
            none,
            ear,
            walk=walk,
        )

    def step(self, curator: Curator, state: PlayedState) -> PlayedState:
        """One round."""
        if state.walk is not None and self.going_on is not None:
            return self._went_on(curator, state, self.going_on, state.walk)
        posed = state.posed
        costs = state.price / posed.rows - self.ground.costs(np.zeros_like(state.price), posed.rows)
        rule, prepared = self.oracle.respond(
            curator, self.ground, state.prepared, costs, posed.rows
        )
        shown = audited(curator, self.ground, rule, self._multipliers, posed.counts)
        steering, measuring = posed.possible(shown[0] / posed.rows), shown[1] / posed.rows
        least = state.base + float((state.price * steering).sum())
        if state.round > 0:
            known = state.least
            least = (
                max(known, least)
                if self.ground.is_exact
                else known + (least - known) / (state.round + 1)
            )
        old = state.played.get(rule.key)
        new = Played(rule, steering, measuring) if old is None else old.again(steering, measuring)
        place = len(state.played) if old is None else list(state.played).index(rule.key)
        played = state.played | {rule.key: new}
        state = replace(
            state,
            prepared=prepared,
            played=played,
            round=state.round + 1,
            least=least,
            heard=(*state.heard, steering),
            places=(*state.places, place),
            repeated=old is not None,
        )
        if self.step_by == "last":
            weights = np.zeros(len(played))
            weights[place] = 1.0
            return replace(state, weights=weights, mean=new.steering)
        if self.step_by == "leader":
            return self._leading(state)
        return self._averaging(state, place, steering)

    def _leading(self, state: PlayedState) -> PlayedState:
        """The best mixture of what was released, and its prices. Without noise a rule that comes
        again closes the program."""
        atoms = np.array([one.steering for one in state.played.values()])
        last = state.repeated and self.ground.is_exact
        weights, price, base = state.master.solve(atoms, passes=LAST_PASSES if last else PASSES)
        return replace(
            state,
            weights=weights,
            mean=np.tensordot(weights, atoms, axes=1),
            price=price,
            base=base,
        )

    def _averaging(self, state: PlayedState, place: int, steering: Floats) -> PlayedState:
        """The mean of what was released moves to the new decision's losses, and prices with it."""
        if self.step_by == "frank-wolfe":
            place, steering = self._cheapest(state, place, steering)
        share = 1.0 / state.round if self.step_by == "auditor" else self._share(state, steering)
        weights = np.append(state.weights, np.zeros(len(state.played) - len(state.weights))) * (
            1.0 - share
        )
        weights[place] += share
        mean = (1.0 - share) * state.mean + share * steering
        state = replace(state, weights=weights, mean=mean)
        if self.step_by == "auditor":
            return self._pressing(state)
        h = state.master.h
        price = h.gradient(mean)
        return replace(state, price=price, base=float(h.value(mean)) - float((price * mean).sum()))

    def _cheapest(self, state: PlayedState, place: int, steering: Floats) -> tuple[int, Floats]:
        """The oracle's answer, or a constant that costs less by what was released; in the first
        round, at which h is less."""

        def cost(losses: Floats) -> float:
            return (
                float(state.master.h.value(losses))
                if state.round == 1
                else float((state.price * losses).sum())
            )

        least, found = cost(steering), (place, steering)
        for j, one in enumerate(state.played.values()):
            if math.isinf(one.times) and cost(one.steering) < least:
                least, found = cost(one.steering), (j, one.steering)
        return found

    def _share(self, state: PlayedState, steering: Floats) -> float:
        """How far Frank-Wolfe moves: 2/(t + 1), or what is better for the released losses; no less
        than `LEAST_STEP` / t where these have noise, which a mean of many damps."""
        usual = 2.0 / (state.round + 1)
        if state.round == 1:
            return 1.0
        shares = np.append(SHARES, usual)
        if not self.ground.is_exact:
            shares = np.geomspace(LEAST_STEP / state.round, usual, 20)
        across = shares.reshape(-1, *(1,) * steering.ndim)
        return float(
            shares[state.master.h.value((1.0 - across) * state.mean + across * steering).argmin()]
        )

    def _pressing(self, state: PlayedState) -> PlayedState:
        """The auditor hears what this round added to the sum of excesses, as far as it is no
        noise."""
        posed, t = state.posed, state.round
        if t < self.opening:
            return state
        leaning = state.ear.step(self.auditor, state.leaning, t * posed.excesses(state.mean))
        duals = state.ear.duals(self.auditor, leaning, t)
        price = posed.f.gradient(state.mean) + posed.pull(duals, state.mean)
        base = (
            float(posed.f.value(state.mean))
            + float(duals @ posed.excesses(state.mean))
            - float((price * state.mean).sum())
        )
        return replace(state, leaning=leaning, duals=state.duals + duals, price=price, base=base)

    def stop(self, state: PlayedState) -> Reason | None:
        """When the rounds of the plan are done; without noise, when no decision is better: to
        `ENOUGH` of h's scale, or to `NEAR` where the leader's oracle can name no other decision
        than those that are mixed."""
        if self.ground.is_exact and self.oracle.looks_for_the_least and state.round > 0:
            value = float(state.master.h.value(state.mean))
            enough = NEAR if state.repeated and self.step_by == "leader" else ENOUGH
            if value - state.least <= enough * max(1.0, abs(value)):
                return Reason.BEST
        done = Reason.ROUNDS if state.walk is None else Reason.HIDDEN
        return done if state.round >= self.rounds else None

    def finish(self, state: PlayedState, reason: Reason) -> Found:
        """The mixture, with its losses from the releases that took no part in choosing it."""
        kept_share = 1.0
        if state.walk is not None and self.going_on is not None:
            state, kept_share = self._alone(state, self.going_on, state.walk), 0.0
        else:
            if self.step_by == "auditor":
                by = self._in_turn if self.oracle.in_turn else self._by_blocks
                state = replace(state, weights=by(state))
            if self.compares:
                state, kept_share = self._floored(state)
        kept = [
            (one, float(weight))
            for one, weight in zip(state.played.values(), state.weights, strict=True)
            if weight > 0.0
        ]
        weights = np.array([weight for _, weight in kept])
        times = np.array([one.times for one, _ in kept])
        constant = np.zeros(self.ground.classes)
        for one, weight in kept:
            if one.always is not None:
                constant[one.always] += weight
        return Found.of(
            state.posed,
            tuple(one.rule for one, _ in kept),
            weights,
            np.array([one.measuring for one, _ in kept]),
            noise=self._noise(self._multipliers[1]) * math.sqrt(float((weights**2 / times).sum())),
            count_noise=self.noise_of_counts,
            duals=self._final_duals(state),
            reason=reason,
            rounds=state.round,
            constant=constant,
            free=None
            if (free := state.played.get(FREE)) is None
            else (free.measuring, self._noise_after(free.times, 1)),
            excess=self._excess(state, weights, np.array([one.measuring for one, _ in kept])),
            kept=kept_share,
        )

    def _excess(self, state: PlayedState, weights: Floats, atoms: Floats) -> float | None:
        """How far h is above what no mixture is below, which smoothing may have raised."""
        if not self.oracle.looks_for_the_least:
            return None
        h = state.posed.h
        over = smoothing_adds(h, self.width) if self.step_by == "frank-wolfe" else 0.0
        return float(h.value(np.tensordot(weights, atoms, axes=1))) - state.least + over

    def _by_blocks(self, state: PlayedState) -> Floats:
        """The best mixture of blocks of rounds that followed each other, whose prices and so whose
        rules are alike; with constants, where these leave g above 0 by more than noise. Rule by
        rule the best would be the luckiest."""
        played, posed, t = list(state.played.values()), state.posed, state.round
        size = self.size_of(posed, state.mean)
        first, t = np.arange(self.opening // 2, self.opening), t - self.opening
        blocks = np.array_split(np.arange(self.opening, state.round), blocks_of(size, t))
        one = noise_of_excesses(posed, state.mean, self._noise(self._multipliers[0]))
        h = aimed(posed, state.mean, one * math.sqrt(len(blocks) / t))
        heard, places = np.array(state.heard), np.array(state.places)
        atoms = np.array([heard[block].mean(axis=0) for block in blocks])
        shares = Master(h).solve(atoms)[0]
        if len(first):
            opened, best = heard[first].mean(axis=0), np.tensordot(shares, atoms, axes=1)
            noise = size * math.sqrt(1.0 / len(first) + float((shares**2).sum()) * len(blocks) / t)
            if float(h.value(opened)) - float(h.value(best)) < CLEARLY * noise:
                return np.bincount(places[first], minlength=len(played)) / len(first)
        free = [j for j, one in enumerate(played) if math.isinf(one.times)]
        g = posed.h.g
        if g is not None and float(
            g.value(np.tensordot(shares, atoms, axes=1))
        ) > BEYOND * size / math.sqrt(t / len(blocks)):
            shares = Master(h).solve(
                np.concatenate([atoms, *([played[j].steering[np.newaxis] for j in free])])
            )[0]
        weights = np.zeros(len(played))
        for block, share in zip(blocks, shares[: len(blocks)], strict=True):
            np.add.at(weights, places[block], share / len(block))
        if len(shares) > len(blocks):
            weights[free] += shares[len(blocks) :]
        return weights

    def _floored(self, state: PlayedState) -> tuple[PlayedState, float]:
        """With the weights of the final model: of the mixture, the rule without constraints, and
        constants; and the share of the mixture."""
        fixed = constants(state.posed)
        played = state.played | {
            one.rule.key: one for one in fixed if one.rule.key not in state.played
        }
        listed = list(played.values())
        weights = np.append(state.weights, np.zeros(len(listed) - len(state.weights)))
        times = np.array([one.times for one in listed])
        found = Stake(
            np.tensordot(weights, np.array([one.steering for one in listed]), axes=1),
            self._noise(self._multipliers[0]) * math.sqrt(float((weights**2 / times).sum())),
        )
        free = played[FREE]
        others = [
            Stake(free.steering, self._noise_after(free.times, 0)),
            *(Stake(one.steering, 0.0) for one in fixed),
        ]
        shares = shares_of(state.posed, found, others, of_steps=True)
        weights = shares[0] * weights
        for key, share in zip([FREE, *(one.rule.key for one in fixed)], shares[1:], strict=True):
            weights[list(played).index(key)] += share
        return replace(state, played=played, weights=weights), float(shares[0])

    def _in_turn(self, state: PlayedState) -> Floats:
        """The best mixture of a list that was looked at, none above a few fair shares, or what
        leaves its noise tolerable."""
        atoms = np.array([one.steering for one in state.played.values()])
        share = crowd_of(self.size_of(state.posed, state.mean), state.round)
        most = np.minimum(1.0, share * np.array([one.times for one in state.played.values()]))
        return Master(state.posed.h).solve(atoms, most)[0]

    def _final_duals(self, state: PlayedState) -> Floats:
        """How hard each comparison was pressed: the mean of the auditor's plays, or h's own slope
        at the end."""
        if self.step_by == "auditor" or state.walk is not None:
            return np.asarray(state.duals / max(1, state.round))
        excesses = state.posed.excesses(state.mean)
        top = excesses.max(initial=-math.inf)
        return np.where((excesses == top) & (top >= 0.0), self.penalty, 0.0)
