"""Constrained group-objective optimisation by a private linear oracle (Alabi, Algorithms 2 and 4, as
in theory.md#objectives).

    min over mixtures Q of decisions:   h(l(Q)) = f(l(Q)) + G max(0, g(l(Q)))

Each round an oracle is asked for a decision with little w . l, w made of what was released before,
and how that decision falls is released with noise: one part steers, the other is reported.

`Differs:`
- the published loop takes w = h'(l(c, D)) from the data themselves, which no accounting of its
  oracle covers: one row flips the indicator 1[g >= 0] (docs/group_objective.md has the
  counterexample). Here w is of the mean of released losses, which damps their noise;
- w at the last decision alone, as published, flips for ever; the answer's weights are the best for
  the released losses of blocks of rounds, which noise makes long;
- an excess inside its noise presses nothing, and a bound is aimed at from inside: a rate of a small
  cell is released with noise that may be larger than any bound, and who obeys it ends by deciding
  alike for everybody;
- a mixture gives way to a rule without constraints and constants where these are better by what was
  released, or noise hides what is constrained (`shares_of`);
- where features are public, rules are searched on public rows and their mixture is counted once
  (`PublicSearch`).

Guarantees (tests/methods/test_methods_objective_loop.py):
1. A search's log is its plan, event for event.
2. Weights and mixture depend on the rows through the curator's answers alone.
3. What is reported of the mixture has noise that is independent of how it was chosen.
4. Without noise no mixture of what was met and of constants is better, but for `ENOUGH`; and by the
   likely losses nothing that is returned is above mixing at its own largest excess.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import nnls

from .. import _checks
from .._types import Floats
from ..core.cost import gaussian_mu
from ..fairness.functions import Joint, smoothed, smoothing_adds
from .descent import Reason
from .duals import ExponentiatedGradient, ExponentiatedGradientState
from .gaussian import OR_EXPONENTIAL, quietest
from .likely import HEARD, drowned, likely, unheard
from .objectives import (
    ENOUGH,
    LAST_PASSES,
    NEAR,
    PASSES,
    Found,
    Master,
    Problem,
    ReleasedProblem,
)
from .oracles import (
    PARTS,
    Asks,
    GameInstance,
    Oracle,
    Responses,
    ResponseState,
    Rule,
    Search,
    constant_rule,
    kept_of_bias,
)
from .systems import columns_of

FREE = "without constraints"
"""The key of that rule among those that were played."""
MEASURING = 0.3  # of an audit's price, for what is reported; the rest steers
CROWD, TOLERATED_MIXED = 2.0, 0.015
"""How many times a fair share one rule may weigh in a mixture of noisy ones, since best weights would
pick the luckiest noise; and noise of the objective that is put up with in a list."""
BEYOND = 1.0  # deviations of a sum of excesses' noise, below which it presses nothing
TOLERATED = 0.005  # noise of an excess's mean over all rounds that slows no dual
KNOWN, BLOCKS = 0.005, 8  # noise of a block, and how many blocks at most where it is not far below
CLEAR_BLOCK = 0.001  # noise of a block, at which there may be more of them
ROUGH, FEW = 0.05, 4
"""Where the noise of a `FEW`-th of all rounds is below this, there are as many blocks at least;
else all rounds are one."""
LEAST_STEP = 0.1
SHARES = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 60)])
# deviations of a block's noise, by which g has to be above 0 for constants to take part
FAR_ABOVE = 3.0
CLEARLY = 1.0  # deviations
OPENING = 0.4  # of the rounds, where another objective than the error is to be small
HIDDEN = 1.645  # deviations of an excess' noise, within which it is left alone
BETTER = 1e-3  # of the objective
NEGLIGIBLE = 1e-3  # a share below it is left out
# what a point of excess is worth in points of f where a limit is kept, and how well it is
WELL_KEPT, CLOSE = 100.0, 1e-3
COUNTS_SHARE = 0.05
"""Of the squared budget, for the counts; the oracle's shares are its own, and the rest is for what
rules turn out to do."""
COMPARED = 0.15  # of the rest, for how the oracle's rule without constraints decides
SETTLED = 0.6  # of the rest, where rules are searched on public rows: for the mixture's own count
ROUNDS, LEADING, ON_PUBLIC_ROWS = 100, 20, 60
# rounds of an oracle that comes nearer from round to round, where one decision is the answer
SETTLING = 50
CLEAR = 0.006
"""Noise of one round's rates, in a cell of usual size, below which the leader's prices are
followed: they move at once, and few rounds do. More, and the auditor's are, which noise moves
less."""
MOST = 500  # rounds without noise
PENALTY, SMOOTH_PENALTY = 20.0, 5.0  # the second of Frank-Wolfe, whose steps it makes smaller
WIDTH = 0.01
FEWEST_PARTS = 5  # of PARTS: a rule that weighs less than that is left out of the mixture
TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Played:
    """A rule with its losses as they were released: to steer by, and to measure; the mean of
    `times` releases each. `always`: the class that it decides for, whatever the row: its losses are
    in the counts, without noise of their own."""

    rule: Rule
    steering: Floats
    measuring: Floats
    times: float = 1
    always: int | None = None

    def again(self, steering: Floats, measuring: Floats) -> Played:
        """Released once more; which tells nothing of what is in the counts."""
        n = self.times
        if math.isinf(n):
            return self
        return Played(
            self.rule,
            (n * self.steering + steering) / (n + 1),
            (n * self.measuring + measuring) / (n + 1),
            n + 1,
        )


def constants(posed: ReleasedProblem) -> list[Played]:
    """The rules that decide alike for everybody, a class each."""
    out = []
    for k in range(posed.problem.ground.classes):
        measuring = np.zeros_like(posed.constant(k))
        measuring[..., k] = posed.counts / posed.rows
        rule = constant_rule(posed.problem.ground, k)
        out.append(Played(rule, posed.constant(k), measuring, math.inf, k))
    return out


def duals_of(
    auditor: ExponentiatedGradient, leaning: ExponentiatedGradientState, hidden: Floats
) -> Floats:
    """The auditor's play, of what is no noise in the sums of excesses: a noise of `hidden`."""
    clear = np.maximum(leaning.sums - hidden, 0.0)
    return auditor.duals(replace(leaning, sums=np.where(leaning.sums > 0.0, clear, leaning.sums)))


def blocks_of(size: float, rounds: int) -> int:
    """Into how many blocks the rounds are cut, where one round's steering has noise of this size:
    rounds that followed each other are put together until their noise is about `KNOWN`."""
    few = FEW if size * math.sqrt(FEW / rounds) <= ROUGH else 1
    some, many = (
        rounds // min(rounds, math.ceil((size / known) ** 2) or 1) for known in (KNOWN, CLEAR_BLOCK)
    )
    return min(rounds, max(few, many, min(some, BLOCKS)))


def crowd_of(size: float, rounds: int) -> float:
    """The most that one rule of a list may weigh, where one round's steering has noise of this
    size."""
    return max(CROWD / rounds, (TOLERATED_MIXED / size) ** 2 if size > 0 else 1.0)


# ------------------------------------------------------------------------------------- the loop


@dataclass(eq=False)
class _Course:
    """Between rounds: released values only.

    `played`: rules with their losses; `weights` of theirs, in that order; `mean`: the losses of that
    mixture. `price`: what the next decision is asked to be cheap at, and `base`: no mixture is below
    base + the cheapest decision's price, of which `least` is the largest so far, or, with noise, the
    mean. `leaning`: the auditor's; `duals`: the sum of its plays; `noise` of each excess of a round.
    `heard`: what each round released of its rule, to steer by, and `places` the rules' places in
    `played`. `repeated`: the last answer was a rule that was there already.
    """

    posed: ReleasedProblem
    master: Master
    played: dict[Hashable, Played]
    weights: Floats
    mean: Floats
    price: Floats
    base: float
    leaning: ExponentiatedGradientState
    duals: Floats
    noise: Floats
    heard: list[Floats] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    least: float = -math.inf
    round: int = 0
    repeated: bool = False


@dataclass(frozen=True, eq=False)
class Loop(Search[Found]):
    """A loop that is planned and priced: public values alone. Made by `plan_loop`.

    Where prices w come from (`step_by`), all from the mean of released losses:

    - "auditor": f' at the mean, and duals on a simplex of size G for what is constrained, by
      exponentiated gradient on the sum of excesses, as far as it is no noise: max over duals of
      duals . excess is G max(0, g), so this is a no-regret player of h's subgradients (Remark 5.7),
      and the uniform mixture is Algorithm 2's answer;
    - "leader": the dual prices of the best mixture so far (`Master`), for losses with little noise
      or none;
    - "last": where h is linear, so that prices never change: the last decision is the answer;
    - "frank-wolfe": h' at l <- (1 - s) l + s l_t (Algorithm 4), max(0, .) and largest ones being
      smoothed over `width`; s is 2/(t + 1), or what makes h less (Lemma B.2 holds for that, too).
    """

    problem: Problem
    oracle: Oracle
    step_by: str
    penalty: float
    width: float
    counts_multiplier: float
    audit_multiplier: float
    free_multiplier: float = 0.0

    def play(self, curator: Asks) -> Generator[None, None, Found]:
        """Counts, and what the oracle needs; then, in a round: price w -> the oracle's rule -> its
        losses, released -> the next price."""
        ground, oracle = self.ground, self.oracle
        counts, told = oracle.prepare(curator, ground, self.counts_multiplier)
        posed = self.problem.pose(counts, self.counts_multiplier, self.penalty)
        played: dict[Hashable, Played] = {}
        if oracle.any_linear and self.step_by != "last":
            played = {one.rule.key: one for one in constants(posed)}
        vain = False
        if self.compares:
            rule = oracle.free_rule(told)
            shown = ground.audit(curator, rule, _halves(self.free_multiplier), counts)
            times = (self.audit_multiplier / self.free_multiplier) ** 2
            steering = posed.possible(shown[0] / posed.rows)
            played[FREE] = Played(rule, steering, shown[1] / posed.rows, times)
            vain = not self.problem.is_free and self.in_vain(posed, played[FREE])
        yield
        course = self._begun(posed, played)
        while (reason := self._stop(course)) is None:
            none = np.zeros_like(course.price)
            costs = course.price / posed.rows - ground.costs(none, posed.rows)
            rule, told = oracle.respond(curator, ground, told, costs, posed.rows)
            shown = ground.audit(curator, rule, self._multipliers, counts)
            yield
            self._hear(course, rule, posed.possible(shown[0] / posed.rows), shown[1] / posed.rows)
        # the mixture, or what takes its place, by the releases that took no part in choosing it
        weights, kept = course.weights, 1.0
        if self.step_by == "auditor":
            weights = self._in_turn(course) if oracle.in_turn else self._by_blocks(course)
        if self.compares:
            weights, kept = self._floored(course, weights, vain)
        excess = None
        if oracle.looks_for_the_least:
            some = weights > 0.0
            atoms = np.array([one.measuring for one in course.played.values()])[some]
            over = smoothing_adds(posed.h, self.width) if self.step_by == "frank-wolfe" else 0.0
            value = float(posed.h.value(np.tensordot(weights[some], atoms, axes=1)))
            excess = value - course.least + over
        duals = course.duals / max(1, course.round)
        if self.step_by != "auditor":
            at = posed.excesses(course.mean)
            top = at.max(initial=-math.inf)
            duals = np.where((at == top) & (top >= 0.0), self.penalty, 0.0)
        reason = Reason.HIDDEN if vain else reason
        told_of = {"reason": reason, "rounds": course.round, "excess": excess, "kept": kept}
        return self._found(posed, course.played, weights, duals, **told_of)

    # -- noise -------------------------------------------------------------------------------------

    @property
    def compares(self) -> bool:
        """Whether the mixture may give way to the oracle's rule without constraints, which is
        audited for it: where records are protected."""
        return _compares(self.ground, self.oracle)

    @property
    def _multipliers(self) -> tuple[float, float]:
        """Of one round's release: what steers, what is reported."""
        return _halves(self.audit_multiplier)

    def _noise(self, multiplier: float, times: float = 1.0) -> float:
        """The deviation of each number of an audit, released so often."""
        return self.ground.deviation(self.ground.decisions, multiplier) / math.sqrt(times)

    def _size_of(self, posed: ReleasedProblem, losses: Floats) -> float:
        """The noise of what steers, in one round, in the objective or in what is constrained,
        whichever has more."""
        noise = self._noise(self._multipliers[0]) / posed.rows
        of_objective, spread = posed.spread(losses, noise, 0.0)
        return max(of_objective, float(spread.max(initial=0.0)))

    def noise_of_mixture(self, posed: ReleasedProblem, losses: Floats) -> float:
        """Before there is a mixture: about the standard deviation of each number that will be
        reported of it, where its losses are like these. Of one block of rounds, of the rules of a
        list that may weigh most, or of one rule alone."""
        size, t = self._size_of(posed, losses), self.rounds
        squares = {"auditor": blocks_of(size, t) / t, "frank-wolfe": 4.0 / (3.0 * t)}.get(
            self.step_by, 1.0
        )
        if self.step_by == "auditor" and self.oracle.in_turn:
            squares = crowd_of(size, t)
        return self._noise(self._multipliers[1]) * math.sqrt(min(1.0, squares))

    @cached_property
    def opening(self) -> int:
        """Rounds at the start whose price is the error's: where linear rules are to make another
        objective small, and nothing is constrained. What they find is returned unless the others
        are better by more than noise. None where a rule without constraints is there already."""
        opens = self.step_by == "auditor" and self.oracle.any_linear and not self.compares
        opens = opens and self.problem.is_free and not self.problem.is_linear
        return int(OPENING * self.rounds) if opens and not self.ground.is_exact else 0

    # -- a round -----------------------------------------------------------------------------------

    @property
    def _auditor(self) -> ExponentiatedGradient:
        return ExponentiatedGradient(self.penalty)

    def _found(
        self,
        posed: ReleasedProblem,
        played: dict[Hashable, Played],
        weights: Floats,
        duals: Floats,
        **told: Any,
    ) -> Found:
        """What is said of these rules."""
        kept = [one for one, share in zip(played.values(), weights, strict=True) if share > 0.0]
        weights = weights[weights > 0.0]
        times = np.array([one.times for one in kept])
        constant = np.zeros(self.ground.classes)
        for one, weight in zip(kept, weights.tolist(), strict=True):
            if one.always is not None:
                constant[one.always] += weight
        reported, free = self._multipliers[1], played.get(FREE)
        return Found.of(
            posed,
            [one.rule for one in kept],
            weights,
            np.array([one.measuring for one in kept]),
            noise=self._noise(reported) * math.sqrt(float((weights**2 / times).sum())),
            count_noise=self.ground.deviation(self.ground.counts, self.counts_multiplier),
            duals=duals,
            constant=constant,
            free=None if free is None else (free.measuring, self._noise(reported, free.times)),
            **told,
        )

    def _begun(self, posed: ReleasedProblem, played: dict[Hashable, Played]) -> _Course:
        """Before the first round: the first price is that of decisions by chance."""
        h = smoothed(posed.h, self.width) if self.step_by == "frank-wolfe" else posed.h
        chance, master = posed.chance, Master(h)
        value, price = master.touch(chance), h.gradient(chance)
        base = value - float((price * chance).sum())
        none = np.zeros(len(posed.excesses(chance)))
        leaning = ExponentiatedGradientState(none)
        if self.opening:
            price = posed.rows * self.ground.costs(np.zeros_like(price), posed.rows)
        elif self.step_by == "auditor":
            price = posed.f.gradient(chance) + posed.pull(self._auditor.duals(leaning), chance)
        noise = posed.noise_of_excesses(chance, self._noise(self._multipliers[0]))
        zeros = np.zeros(len(played))
        return _Course(posed, master, played, zeros, chance, price, base, leaning, none, noise)

    def _stop(self, course: _Course) -> Reason | None:
        """When the rounds of the plan are done; without noise, when no decision is better: to
        `ENOUGH` of h's scale, or to `NEAR` where the leader's oracle can name no other decision
        than those that are mixed."""
        if self.ground.is_exact and self.oracle.looks_for_the_least and course.round > 0:
            value = float(course.master.h.value(course.mean))
            enough = NEAR if course.repeated and self.step_by == "leader" else ENOUGH
            if value - course.least <= enough * max(1.0, abs(value)):
                return Reason.BEST
        return Reason.ROUNDS if course.round >= self.rounds else None

    def _hear(self, course: _Course, rule: Rule, steering: Floats, measuring: Floats) -> None:
        """One round's rule and its losses: weights, mean and price follow."""
        least = course.base + float((course.price * steering).sum())
        if course.round > 0 and self.ground.is_exact:
            least = max(course.least, least)
        elif course.round > 0:
            least = course.least + (least - course.least) / (course.round + 1)
        played, old = course.played, course.played.get(rule.key)
        new = Played(rule, steering, measuring) if old is None else old.again(steering, measuring)
        place = len(played) if old is None else list(played).index(rule.key)
        played[rule.key] = new
        course.least, course.round, course.repeated = least, course.round + 1, old is not None
        course.heard.append(steering)
        course.places.append(place)
        if self.step_by == "last":
            course.weights, course.mean = np.eye(len(played))[place], new.steering
        elif self.step_by == "leader":
            # Without noise a rule that comes again closes the program.
            atoms = np.array([one.steering for one in played.values()])
            passes = LAST_PASSES if course.repeated and self.ground.is_exact else PASSES
            solved = course.master.solve(atoms, passes=passes)
            course.weights, course.price, course.base = solved
            course.mean = np.tensordot(course.weights, atoms, axes=1)
        else:
            self._average(course, place, steering)

    def _average(self, course: _Course, place: int, steering: Floats) -> None:
        """The mean of what was released moves to the new decision's losses, and prices with it."""
        share = 1.0 / course.round
        if self.step_by == "frank-wolfe":
            place, steering = self._cheapest(course, place, steering)
            share = self._share(course, steering)
        more = len(course.played) - len(course.weights)
        course.weights = np.append(course.weights, np.zeros(more)) * (1.0 - share)
        course.weights[place] += share
        course.mean = mean = (1.0 - share) * course.mean + share * steering
        posed, t = course.posed, course.round
        if self.step_by == "frank-wolfe":
            h = course.master.h
            course.price = price = h.gradient(mean)
            course.base = float(h.value(mean)) - float((price * mean).sum())
        elif t >= self.opening:
            # The auditor hears what this round added to the sum of excesses, as far as it is no
            # noise; an excess whose mean over all rounds has much noise is scaled down.
            calm = 1.0 / np.maximum(1.0, course.noise / math.sqrt(self.rounds) / TOLERATED)
            sums = calm * (t * posed.excesses(mean))
            course.leaning = self._auditor.step(course.leaning, sums - course.leaning.sums)
            hidden = BEYOND * math.sqrt(t) * calm * course.noise
            duals = duals_of(self._auditor, course.leaning, hidden)
            course.duals = course.duals + duals
            course.price = price = posed.f.gradient(mean) + posed.pull(duals, mean)
            lagrangian = float(posed.f.value(mean)) + float(duals @ posed.excesses(mean))
            course.base = lagrangian - float((price * mean).sum())

    def _cheapest(self, course: _Course, place: int, steering: Floats) -> tuple[int, Floats]:
        """The oracle's answer, or a constant that costs less by what was released; in the first
        round, at which h is less."""

        def cost(losses: Floats) -> float:
            first = course.round == 1
            return float(course.master.h.value(losses) if first else (course.price * losses).sum())

        least, found = cost(steering), (place, steering)
        for j, one in enumerate(course.played.values()):
            if math.isinf(one.times) and cost(one.steering) < least:
                least, found = cost(one.steering), (j, one.steering)
        return found

    def _share(self, course: _Course, steering: Floats) -> float:
        """How far Frank-Wolfe moves: 2/(t + 1), or what is better for the released losses; no less
        than `LEAST_STEP` / t where these have noise, which a mean of many damps."""
        usual = 2.0 / (course.round + 1)
        if course.round == 1:
            return 1.0
        shares = np.append(SHARES, usual)
        if not self.ground.is_exact:
            shares = np.geomspace(LEAST_STEP / course.round, usual, 20)
        across = shares.reshape(-1, *(1,) * steering.ndim)
        moved = (1.0 - across) * course.mean + across * steering
        return float(shares[course.master.h.value(moved).argmin()])

    # -- the mixture -------------------------------------------------------------------------------

    def _by_blocks(self, course: _Course) -> Floats:
        """The best mixture of blocks of rounds that followed each other, whose prices and so whose
        rules are alike; with constants, where these leave g above 0 by more than noise. Rule by
        rule the best would be the luckiest."""
        played, posed, opening = list(course.played.values()), course.posed, self.opening
        size, t = self._size_of(posed, course.mean), course.round - opening
        first = np.arange(opening // 2, opening)
        blocks = np.array_split(np.arange(opening, course.round), blocks_of(size, t))
        one = posed.noise_of_excesses(course.mean, self._noise(self._multipliers[0]))
        h = posed.aimed(course.mean, one * math.sqrt(len(blocks) / t))
        heard, places = np.array(course.heard), np.array(course.places)
        atoms = np.array([heard[block].mean(axis=0) for block in blocks])
        shares = Master(h).solve(atoms)[0]
        if len(first):
            opened, best = heard[first].mean(axis=0), np.tensordot(shares, atoms, axes=1)
            noise = size * math.sqrt(1.0 / len(first) + float((shares**2).sum()) * len(blocks) / t)
            if float(h.value(opened)) - float(h.value(best)) < CLEARLY * noise:
                return np.bincount(places[first], minlength=len(played)) / len(first)
        free = [j for j, one in enumerate(played) if math.isinf(one.times)]
        g, above = posed.h.g, FAR_ABOVE * size / math.sqrt(t / len(blocks))
        if g is not None and float(g.value(np.tensordot(shares, atoms, axes=1))) > above:
            alike = [played[j].steering[np.newaxis] for j in free]
            shares = Master(h).solve(np.concatenate([atoms, *alike]))[0]
        weights = np.zeros(len(played))
        for block, share in zip(blocks, shares[: len(blocks)], strict=True):
            np.add.at(weights, places[block], share / len(block))
        if len(shares) > len(blocks):
            weights[free] += shares[len(blocks) :]
        return weights

    def _in_turn(self, course: _Course) -> Floats:
        """The best mixture of a list that was looked at, none above a few fair shares, or what
        leaves its noise tolerable."""
        atoms = np.array([one.steering for one in course.played.values()])
        share = crowd_of(self._size_of(course.posed, course.mean), course.round)
        most = np.minimum(1.0, share * np.array([one.times for one in course.played.values()]))
        return Master(course.posed.h).solve(atoms, most)[0]

    def _floored(self, course: _Course, weights: Floats, vain: bool) -> tuple[Floats, float]:
        """Weights of the final model: of the mixture, unless its rounds were in `vain`, the rule
        without constraints, and constants, which join what was played; and the share of the
        mixture."""
        fixed, played = constants(course.posed), course.played
        for one in fixed:
            played.setdefault(one.rule.key, one)
        listed = list(played.values())
        weights = np.append(weights, np.zeros(len(listed) - len(weights)))
        times = np.array([one.times for one in listed])
        found = Stake(
            np.tensordot(weights, np.array([one.steering for one in listed]), axes=1),
            self._noise(self._multipliers[0]) * math.sqrt(float((weights**2 / times).sum())),
        )
        others = [self._stake(played[FREE]), *(Stake(one.steering, 0.0) for one in fixed)]
        if vain:
            shares = np.append(0.0, shares_of(course.posed, others[0], others[1:]))
        else:
            shares = shares_of(course.posed, found, others, of_steps=True)
        weights = shares[0] * weights
        for key, share in zip([FREE, *(one.rule.key for one in fixed)], shares[1:], strict=True):
            weights[list(played).index(key)] += share
        return weights, float(shares[0])

    def _stake(self, free: Played) -> Stake:
        return Stake(free.steering, self._noise(self._multipliers[0], free.times))

    def in_vain(self, posed: ReleasedProblem, free: Played) -> bool:
        """Whether noise would hide something that is constrained: by the released counts, and
        decisions by chance. Less noise is enough where the rule without constraints breaks no bound
        by more than its own noise. Comparisons of cells that cannot be told from none take no part;
        where none is left, there is nothing to hear."""
        steering = self._noise(self._multipliers[0], self.rounds)
        noise = posed.noise_of_excesses(posed.chance, steering)
        if not posed.defined.any() or drowned(noise, HEARD):
            return True
        own = self._stake(free)
        losses = likely_losses(posed, own)
        known = CLEARLY * posed.noise_of_excesses(losses, own.noise)
        return drowned(noise) and bool((posed.excesses(losses) <= known).all())


def _compares(ground: GameInstance, oracle: Oracle) -> bool:
    return oracle.knows_free and not ground.sees_features


def _halves(multiplier: float) -> tuple[float, float]:
    """Of a release at that price: what steers, what is reported."""
    return multiplier / math.sqrt(1.0 - MEASURING), multiplier / math.sqrt(MEASURING)


def plan_loop(
    problem: Problem,
    oracle: Oracle,
    *,
    step_by: str | None = None,
    rounds: int | None = None,
    penalty: float | None = None,
    width: float | None = None,
) -> Loop:
    """The loop whose noise is the least that keeps the promise. `step_by`: None for the auditor,
    without noise the leader."""
    ground = problem.ground
    oracle.require(ground)
    audit_share = 1.0 - COUNTS_SHARE - oracle.once_share - oracle.rounds_share
    compares = _compares(ground, oracle)
    stated = None if rounds is None else _checks.whole(at_least=1, rounds=rounds)
    clear = _usual_noise(ground, audit_share, stated or LEADING) <= CLEAR
    usual = "leader" if clear and oracle.looks_for_the_least else "auditor"
    how = "last" if problem.is_linear and not oracle.in_turn else step_by or usual
    fewest = {"last": SETTLING if oracle.burn_in else 1, "leader": LEADING}.get(how, ROUNDS)
    chosen = stated or (MOST if ground.is_exact and how == "leader" else fewest)
    strong = SMOOTH_PENALTY if how == "frank-wolfe" else PENALTY
    pressed = strong if penalty is None else _checks.positive(penalty=penalty)
    blurred = WIDTH if width is None else _checks.positive(width=width)

    def at(z: float) -> Loop:
        once = z / math.sqrt(oracle.once_share) if oracle.once_share else 0.0
        in_a_round = z * math.sqrt(chosen / oracle.rounds_share) if oracle.rounds_share else 0.0
        heard = audit_share * (1.0 - COMPARED if compares else 1.0)
        counts, audit = z / math.sqrt(COUNTS_SHARE), z * math.sqrt(chosen / heard)
        free = z / math.sqrt(audit_share * COMPARED) if compares else 0.0
        own = oracle.at(once, in_a_round)
        how_to = problem, own, how, pressed, blurred
        return Loop(ground, chosen, *how_to, counts, audit, free)

    exact = ground.is_exact
    return quietest(
        ground.promise, at, lambda loop: loop.event, exact=exact, way_out=OR_EXPONENTIAL
    )


def _usual_noise(ground: GameInstance, share: float, rounds: int) -> float:
    """The noise that steers in one of so many rounds, in units of a rate of a cell of usual size.
    Public facts alone: infinite where the number of rows is not among them."""
    if ground.is_exact:
        return 0.0
    mu = gaussian_mu(ground.promise.epsilon, ground.promise.delta)
    if ground.public_rows is None or mu <= 0:
        return math.inf
    usual = ground.public_rows / (ground.groups * ground.classes)
    steering = math.sqrt(2.0 * rounds / (share * (1.0 - MEASURING)))
    return steering * ground.promise.rows_per_unit / mu / usual


# ------------------------------------------------------------------------ what a loop returns


@dataclass(frozen=True, eq=False)
class Stake:
    """Losses that may be a part of the final model, and the deviation of the noise in each
    number of them, of rows."""

    losses: Floats
    noise: float


def shares_of(
    posed: ReleasedProblem, found: Stake, others: list[Stake], *, of_steps: bool = False
) -> Floats:
    """The share of each: of what was found, then of the others: a rule without constraints, and
    constants. Post-processing of released losses, each taken for what its rates are likely to be.

    With q over {the mixture, the rule without constraints, each constant}

        minimise    f(sum_a q_a l_a) + G max(0, g'(sum_a q_a l_a))

    where the bounds of g' are those that were asked for, or where the mixture is, if that is above
    by no more than its noise. The mixture is kept unless that is less by more than `CLEARLY`
    deviations of the noise in f of what differs, and `BETTER` at least. `of_steps`: what was found
    is a mixture of single noisy steps, which gives way to the first of the others where noise hides
    every excess of it, or that rule keeps all bounds with as small an f, both up to noise.
    """
    stakes = [replace(one, losses=likely_losses(posed, one)) for one in (found, *others)]
    shares = _floored(posed, stakes, _best(posed, stakes))
    needless = of_steps and shares[0] and _needless(posed, stakes)
    return np.asarray(np.eye(len(stakes))[1]) if needless else shares


def likely_losses(posed: ReleasedProblem, stake: Stake) -> Floats:
    """Losses whose rates are what they are likely to be (`methods.likely`), by their noise and the
    luck of the rows, of each sensitive column's groups; exact ones are what they are. The largest
    of many rates of small cells is mostly noise."""
    if not stake.noise or stake.losses.ndim != 3:
        return stake.losses
    sizes = np.maximum(posed.shares, posed.least)[..., np.newaxis]
    rates = np.clip(stake.losses / sizes, 0.0, 1.0)
    rows = sizes * posed.rows
    drawn = (rates * rows + 1.0) / (rows + 2.0)
    deviations = np.sqrt((stake.noise / rows) ** 2 + drawn * (1.0 - drawn) / rows)
    columns = columns_of(posed.problem.cells)
    out = np.concatenate([likely(rates[part], deviations[part]) for part in columns])
    return posed.possible(sizes * out)


def _needless(posed: ReleasedProblem, stakes: list[Stake]) -> bool:
    if not posed.constraints:
        return False
    found, free = stakes[:2]
    if unheard(posed.noise_of_excesses(found.losses, found.noise)):
        return True
    doubt = posed.spread(free.losses, math.hypot(found.noise, free.noise) / posed.rows, 0.0)[0]
    more = float(posed.f.value(free.losses)) - float(posed.f.value(found.losses))
    hidden = CLEARLY * posed.noise_of_excesses(free.losses, free.noise)
    return bool((posed.excesses(free.losses) <= hidden).all() and more < CLEARLY * doubt)


def _solved(h: Joint, atoms: Floats) -> Floats:
    """The best mixture, without shares that are next to nothing."""
    shares = Master(h).solve(atoms)[0]
    shares = np.where(shares < NEGLIGIBLE, 0.0, shares)
    return np.asarray(shares / shares.sum())


def _best(posed: ReleasedProblem, stakes: list[Stake]) -> Floats:
    """What was found, or what is better by more than noise explains."""
    found, h = stakes[0], posed.h
    atoms = np.array([one.losses for one in stakes])
    if posed.constraints:  # the bounds that a choice must keep
        noise = posed.noise_of_excesses(found.losses, found.noise)
        by = np.clip(-posed.excesses(found.losses), -HIDDEN * noise, 0.0)
        h = Joint(posed.f, posed.tightened(by), posed.h.penalty)
    best, alone = _solved(h, atoms), np.eye(len(stakes))[0]
    mixed = np.tensordot(best, atoms, axes=1)
    gain = float(h.value(found.losses)) - float(h.value(mixed))
    differs = math.hypot(*(best - alone) * np.array([one.noise for one in stakes]))
    doubt = posed.spread(mixed, differs / posed.rows, 0.0)[0]
    return best if gain > max(BETTER, CLEARLY * doubt) else alone


def _floored(posed: ReleasedProblem, stakes: list[Stake], shares: Floats) -> Floats:
    """These shares, or the rule without constraints and constants alone: no further above the
    bounds, and with a smaller f."""
    if not posed.constraints or not shares[0] or len(stakes) < 2:
        return shares
    atoms = np.array([one.losses for one in stakes])
    mixed = np.tensordot(shares, atoms, axes=1)
    most = float(posed.excesses(mixed).max())
    g = posed.tightened(np.full(len(posed.excesses(mixed)), -most))
    floor = np.append(0.0, _solved(Joint(posed.f, g, WELL_KEPT), atoms[1:]))
    other = np.tensordot(floor, atoms, axes=1)
    keeps = float(posed.excesses(other).max()) <= most + CLOSE
    return floor if keeps and float(posed.f.value(other)) < float(posed.f.value(mixed)) else shares


# ------------------------------------------------------------------- where features are public


@dataclass(frozen=True, eq=False)
class PublicSearch(Search[Found]):
    """Rules are searched on public rows, and their mixture is counted once. Planned and priced:
    public values alone. Made by `plan_public`.

    The oracle is the game's (`responses`): sums that are released once say who may be in which
    group, so what any rule costs is foretold, and several searches answer a round all but free.
    Losses are linear in the mixture and h is convex, so the best mixture of all rules that were met,
    and its prices, are the `Master`'s. Each round's rule is counted: that says how far off what is
    foretold is. The mixture's own count has noise that no choice has seen.
    """

    problem: Problem
    oracle: Responses
    penalty: float
    counts_multiplier: float = 0.0
    audit_multiplier: float = 0.0
    settled_multiplier: float = 0.0
    asks_last = True

    @property
    def _noise(self) -> float:
        """The deviation of each number of an audit."""
        return self.ground.deviation(self.ground.decisions, self.audit_multiplier)

    def noise_of_mixture(self, posed: ReleasedProblem, losses: Floats) -> float:
        """The standard deviation of each number that is reported of the mixture."""
        return self.ground.deviation(self.ground.mixed, self.settled_multiplier)

    def play(self, curator: Asks) -> Generator[None, None, Found]:
        ground, oracle = self.ground, self.oracle
        counts, told = oracle.prepare(curator, ground, self.counts_multiplier)
        posed = self.problem.pose(counts, self.counts_multiplier, self.penalty)
        at = posed.chance
        noise = posed.noise_of_excesses(at, self._noise / math.sqrt(self.rounds))
        master = Master(posed.aimed(at, noise))

        def best(passes: int = PASSES) -> tuple[Floats, Floats]:
            return master.solve(foretold(posed, told, self._noise), passes=passes)[:2]

        yield
        # prices of the best mixture so far -> the oracle's rule -> its losses, released
        price = best()[1]
        for _ in range(self.rounds):
            costs = price / posed.rows - ground.costs(np.zeros_like(price), posed.rows)
            rule, told = oracle.respond(curator, ground, told, costs, posed.rows)
            (shown,) = ground.audit(curator, rule, [self.audit_multiplier], counts)
            yield
            told.hear(rule, shown)
            price = best()[1]
        # the best mixture, in so many parts of each rule, and how it decides
        parts = np.rint(PARTS * best(LAST_PASSES)[0]).astype(int)
        parts[parts < FEWEST_PARTS] = 0
        parts[int(parts.argmax())] += PARTS - int(parts.sum())
        pairs = zip(told.atoms.values(), parts.tolist(), strict=True)
        rules: list[tuple[Rule, int]] = [(one.rule, part) for one, part in pairs if part > 0]
        table = ground.count_mixture(curator, rules, self.settled_multiplier, counts)
        yield
        # how hard each comparison was pressed, about: of the last prices, what each slope explains
        lines = np.array([posed.pull(one, at).ravel() for one in np.eye(len(noise))])
        left = (price - posed.f.gradient(at)).ravel()
        duals = np.asarray(nnls(lines.T, left)[0]) if len(lines) else np.zeros(0)
        if ground.outputs == 1:
            table = ground.by_class(table[..., 1:], counts)
        return Found.of(
            posed,
            tuple(rule for rule, _ in rules),
            np.array([part for _, part in rules]) / PARTS,
            np.broadcast_to(table / posed.rows, (len(rules), *table.shape)),
            noise=self.noise_of_mixture(posed, at),
            count_noise=ground.deviation(ground.counts, self.counts_multiplier),
            duals=duals,
            reason=Reason.ROUNDS,
            rounds=self.rounds,
        )


def foretold(posed: ReleasedProblem, told: ResponseState, noise_of_one: float) -> Floats:
    """About how each rule that was met decides, (rules, cells, labels, classes), as shares of all
    rows: moved by what is kept of the mean over rounds of what was counted less what was foretold,
    as parts of the cells (`kept_of_bias`)."""
    off = np.zeros_like(posed.chance)
    if told.rounds:
        sizes = np.maximum(posed.counts, posed.least * posed.rows)[..., np.newaxis]
        variance = (noise_of_one / math.sqrt(told.rounds) / sizes) ** 2 + TINY**2
        off = sizes * kept_of_bias(told.off / told.rounds / sizes, variance)
    tables = [one.table if one.certain else one.table + off for one in told.atoms.values()]
    return np.array([posed.possible(table / posed.rows) for table in tables])


def plan_public(
    problem: Problem, oracle: Responses, *, rounds: int | None = None, penalty: float | None = None
) -> PublicSearch:
    """The search on public rows whose noise is the least that keeps the promise."""
    ground = problem.ground
    oracle.require(ground)
    audit_share = 1.0 - COUNTS_SHARE - oracle.once_share
    chosen = ON_PUBLIC_ROWS if rounds is None else _checks.whole(at_least=1, rounds=rounds)
    pressed = PENALTY if penalty is None else _checks.positive(penalty=penalty)

    def at(z: float) -> PublicSearch:
        once, counts = z / math.sqrt(oracle.once_share), z / math.sqrt(COUNTS_SHARE)
        audit = z * math.sqrt(chosen / (audit_share * (1.0 - SETTLED)))
        settled = z / math.sqrt(audit_share * SETTLED)
        own = oracle.at(once, 0.0)
        return PublicSearch(ground, chosen, problem, own, pressed, counts, audit, settled)

    exact = ground.is_exact
    return quietest(
        ground.promise, at, lambda search: search.event, exact=exact, way_out=OR_EXPONENTIAL
    )
