"""Group objectives of a convex loss by private descent: the linear oracle of Bassily et al. for losses, a step a round.

    min over weights v of a linear model:   h(l(v)) = f(l(v)) + G max(0, g(l(v))),     l_k(v) = (1 / n0) sum of log losses in k

l is convex in v, so where h grows with every loss h(l(.)) is convex, and one model is as good as a mixture (Jensen). Each round
is one joint release on all rows: the gradient of sum_k w_k l_k, and the losses by group, cut at `MOST`. The weights
w = f' + sum_j duals_j g_j' are made of what earlier rounds released, the duals by exponentiated gradient on the sums of
excesses (`group_loop`).

*The clip follows the weights.* A row of the group that weighs most is shortened to `clip` before it is weighed, so its part
of the sum is at most `clip` x the largest weight that listed groups can give a row (`_room`). That is the sensitivity; the
noise grows with it, and its multiplier, so the price, is the same in every round. A clip of what is weighed already would
take from the small group exactly what a bound on its loss gives it: w grows as dual / share, and the sum would stay as it was.
Where features are public the part of w that all groups share is exact and unclipped; the rest is half the range of w at most.

*Excess inside its noise is not obeyed.* The duals hear the sum of a group's excesses as far as it is above one deviation of
that sum's own noise (`BEYOND`), and an excess is divided by what its mean's noise is over `TOLERATED`: the small group's noise
would else decide the model. Both vanish as epsilon grows, and constraints that are scaled have the same solutions.

`Differs:` the paper's constant is 2 where the gradient of a squared loss reaches 4, and its weights go up to 1 + G; here
weights are of means by group and reach G / share, and the clip goes along. Its answer for "PK" coordinates is not needed:
weights by cell are one array a round.

Guarantees (tests/learning/test_learning_group_descent.py):
1. The log is the plan, event for event, whatever the weights were.
2. Weights, clips and model depend on the rows through the curator's answers alone.
3. No neighbour moves a round's answers further, in units of their noise, than its event says: enumerated, for any weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from ... import _checks
from ..._types import Floats
from ...curator import Ask, Curator, GradientSum, GroupLosses, Linear, Question
from ...curator.questions.cell_weights import reach
from ...privacy import calibrate
from ...privacy.events import Event, Repeated, compose
from ..descent import Progress, Reason
from ..gaussian import budget_of
from ..lagrangian.duals import ExponentiatedGradient, ExponentiatedGradientState
from ..lagrangian.noise import usual_clip
from ..lagrangian.primal import PrimalState
from ..oracles.oracle import LinearRule, count_rows, counting_event
from .found import Found
from .problem import Problem, ReleasedProblem

MOST = 3.0  # of one row's log loss
COUNTS_SHARE, LOSSES_SHARE, REPORT_SHARE = 0.05, 0.2, 0.05  # of the squared budget; gradients have the rest
ROUNDS, EXACT_ROUNDS = 100, 600
RATE, MOMENTUM = 1.0, 0.9
PENALTY = 5.0
LATE = 0.5  # of the rounds, at the end: their mean is the answer
BEYOND = 1.0  # deviations of a sum of excesses' noise, below which it presses nothing
TOLERATED = 0.005  # noise of an excess's mean over all rounds, in units of the loss, that slows no dual
FAINT = 1e-6  # the least weight that a clip is made for: noise of nothing is next to nothing


@dataclass(frozen=True, eq=False)
class State:
    """Between rounds: released values only. `leaning`: the auditor's, by excesses so far; `duals`: the sum of its plays;
    `noise`: the deviation of each excess of one round."""

    posed: ReleasedProblem
    walk: PrimalState
    weights: Floats
    leaning: ExponentiatedGradientState
    duals: Floats
    mean: Floats
    noise: Floats
    round: int = 0


@dataclass(frozen=True, eq=False)
class LossDescent:
    """A descent that is planned and priced: public values alone. Made by `plan_descent`."""

    problem: Problem
    rounds: int
    penalty: float
    clip: float
    counts_multiplier: float = 0.0
    gradient_multiplier: float = 0.0
    losses_multiplier: float = 0.0
    report_multiplier: float = 0.0
    plan: Event | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan", self.events() if self.problem.ground.promise.is_private else None)

    def events(self) -> Event:
        """The whole run's events."""
        ground = self.problem.ground
        zeros = np.zeros((ground.outputs, 1 + ground.layout.width))
        one = ground.event(self._asks(zeros, np.ones(ground.groups)))
        last = ground.event([Ask(self._losses(zeros), self.report_multiplier)])
        return compose([counting_event(ground, self.counts_multiplier), Repeated(one, self.rounds), last])

    def _asks(self, v: Floats, weights: Floats) -> list[Ask]:
        cells = self.problem.ground.cells
        gradient = GradientSum(Linear(v), self.clip * self._room(weights), cells, cell_weights=weights)
        return [Ask(gradient, self.gradient_multiplier), Ask(self._losses(v), self.losses_multiplier)]

    def _losses(self, v: Floats) -> Question:
        return GroupLosses(Linear(v), self.problem.ground.cells, "log", MOST)

    def _room(self, weights: Floats) -> float:
        """What the clip is multiplied by: how much a row can weigh in any listed cells; where features are public, how far
        from what all of them share."""
        most, apart = reach(weights, self.problem.ground.cells)
        return max(FAINT, float(apart / 2.0 if self.problem.ground.sees_features else most))

    # -- init, step, stop, finish ------------------------------------------------------------------------------------------

    def init(self, curator: Curator) -> State:
        """Counts; the first weights are those of losses by chance."""
        ground = self.problem.ground
        counts = count_rows(curator, ground, self.counts_multiplier)
        posed = self.problem.pose(counts, self.counts_multiplier, self.penalty)
        chance = posed.shares[:, 0] * math.log(ground.classes)
        none = np.zeros(len(posed.excesses(chance)))
        walk = PrimalState.begin((1, ground.outputs, 1 + ground.layout.width))
        weights = _weights(posed, chance, self.auditor.duals(ExponentiatedGradientState(none)))
        return State(
            posed, walk, weights, ExponentiatedGradientState(none), none, chance, self._noise_of_excesses(posed, chance)
        )

    def _noise_of_excesses(self, posed: ReleasedProblem, losses: Floats) -> Floats:
        """Of one round's, each: public multipliers over released shares."""
        ground = self.problem.ground
        moved = 0.0 if ground.is_exact else self.losses_multiplier * ground.move(self._losses(np.zeros((1, 1)))) / posed.rows
        alone = np.eye(len(posed.excesses(losses)))
        return np.array([moved * float(np.linalg.norm(posed.pull(one, losses))) for one in alone])

    def _pressed(self, leaning: ExponentiatedGradientState, noise: Floats, t: int) -> Floats:
        """The duals of sums of excesses, less what may be noise in them."""
        beyond = np.maximum(leaning.sums - BEYOND * math.sqrt(t) * noise, 0.0)
        return self.auditor.duals(replace(leaning, sums=np.where(leaning.sums > 0.0, beyond, leaning.sums)))

    @property
    def auditor(self) -> ExponentiatedGradient:
        """How the duals are played."""
        return ExponentiatedGradient(self.penalty)

    def step(self, curator: Curator, state: State) -> State:
        """One round."""
        posed, v = state.posed, state.walk.weights[0]
        gradient, sums = curator.answer(self._asks(v, state.weights), purpose="gradient and losses of the groups")
        losses = np.clip(sums / posed.rows, 0.0, MOST * np.maximum(posed.shares[:, 0], posed.least))
        t = state.round + 1
        mean = losses if t == 1 else state.mean + (losses - state.mean) * max(1.0 / t, 1.0 - MOMENTUM)
        heard = 1.0 / np.maximum(1.0, state.noise / math.sqrt(self.rounds) / TOLERATED)
        leaning = self.auditor.step(state.leaning, heard * posed.excesses(losses))
        duals = self._pressed(leaning, heard * state.noise, t)
        walk = state.walk.step(
            gradient[np.newaxis] / posed.rows, self._rate(posed, state.weights, t), MOMENTUM, count=self._late(t)
        )
        return replace(
            state,
            walk=walk,
            weights=_weights(posed, mean, duals),
            leaning=leaning,
            duals=state.duals + duals,
            mean=mean,
            round=t,
        )

    def _late(self, t: int) -> bool:
        return t > (1.0 - LATE) * self.rounds

    def _rate(self, posed: ReleasedProblem, weights: Floats, t: int) -> float:
        """One over the curvature of sum_k w_k l_k, over that of a mean of rows: group k has its share of it. It falls towards
        one over f's largest slope, since where f's weights go from group to group late models must balance them, and not
        follow the one that is worst. Less where noise would walk a logit or so."""
        layout = self.problem.ground.layout
        heavy = max(1.0, float(np.abs(weights) @ posed.shares[:, 0]))
        heavy *= float(max(1.0, float(posed.f.slopes[1].max()) / heavy) ** min(1.0, 2.0 * t / self.rounds))
        length = math.sqrt(1.0 + layout.numbers + len(layout.code_sizes))
        largest = self.clip * self._room(weights) * (self.problem.ground.max_sample_weight or 1.0)
        noise = self.gradient_multiplier * largest / posed.rows
        usual = RATE / heavy
        return usual if noise == 0 else min(usual, 0.3 * (1.0 - MOMENTUM) / (noise * length))

    def stop(self, state: State) -> Reason | None:
        """When the rounds of the plan are done."""
        return Reason.ROUNDS if state.round >= self.rounds else None

    def finish(self, curator: Curator, state: State, reason: Reason) -> Found:
        """The mean of the late models, and its losses, released once."""
        ground, posed = self.problem.ground, state.posed
        v = state.walk.average[0]
        (sums,) = curator.answer([Ask(self._losses(v), self.report_multiplier)], purpose="losses of the answer")
        exact = ground.is_exact
        return Found.of(
            posed,
            (LinearRule(v),),
            np.ones(1),
            sums[np.newaxis] / posed.rows,
            noise=0.0 if exact else self.report_multiplier * ground.move(self._losses(v)),
            count_noise=0.0 if exact else self.counts_multiplier * ground.move(ground.counts),
            duals=state.duals / max(1, state.round),
            reason=reason,
            rounds=state.round,
        )

    def run(self, curator: Curator, progress: Progress | None = None) -> Found:
        """Descend, with a curator that was made for the plan; the curator is closed afterwards, come what may."""
        try:
            state = self.init(curator)
            while (reason := self.stop(state)) is None:
                state = self.step(curator, state)
                if progress is not None:
                    progress(state.round, self.rounds)
            found = self.finish(curator, state, reason)
            curator.finish()
        finally:
            curator.close()
        return found


def _weights(posed: ReleasedProblem, losses: Floats, duals: Floats) -> Floats:
    """What one more unit of each group's loss costs."""
    return np.asarray(posed.f.gradient(losses) + posed.pull(duals, losses))


def plan_descent(
    problem: Problem, *, rounds: int | None = None, penalty: float | None = None, clip: float | None = None
) -> LossDescent:
    """The descent whose noise is the least that keeps the promise."""
    ground = problem.ground
    problem.require_convex(monotone=True)
    chosen = _checks.whole(at_least=1, rounds=rounds) if rounds is not None else EXACT_ROUNDS if ground.is_exact else ROUNDS
    pressed = PENALTY if penalty is None else _checks.positive(penalty=penalty)
    longest = usual_clip(ground.promise) if clip is None else clip
    gradients = 1.0 - COUNTS_SHARE - LOSSES_SHARE - REPORT_SHARE

    def at(z: float) -> LossDescent:
        each = z * math.sqrt(chosen)
        shares = (z / math.sqrt(COUNTS_SHARE), each / math.sqrt(gradients), each / math.sqrt(LOSSES_SHARE))
        return LossDescent(problem, chosen, pressed, longest, *shares, z / math.sqrt(REPORT_SHARE))

    if ground.is_exact:
        return at(0.0)
    budget_of(ground.promise)

    def events(z: float) -> Event:
        return at(z).events()

    return at(calibrate(ground.promise, events, start=10.0).multiplier)
