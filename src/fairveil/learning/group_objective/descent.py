"""Group objectives of a convex loss by private descent: the linear oracle of Bassily et al. for
losses, a step a round.

    min over weights v of a linear model:   h(l(v)) = f(l(v)) + G max(0, g(l(v))),     l_k(v) = (1 /
    n0) sum of log losses in k

l is convex in v, so where h grows with every loss h(l(.)) is convex, and one model is as good as a
mixture (Jensen). Each round is one joint release on all rows: the gradient of sum_k w_k l_k, and
the losses by group, cut at `MOST`. The weights w = f' + sum_j duals_j g_j' are made of what earlier
rounds released, the duals by exponentiated gradient on the sums of excesses (`group_loop`).

*The clip follows the weights.* A row of the group that weighs most is clipped to `clip` before it
is weighed, so its part of the sum is at most `clip` x the largest weight that listed groups can
give a row (`_room`). That is the sensitivity; the noise grows with it, and its multiplier, so the
price, is the same in every round. A clip of what is weighed already would take from the small group
exactly what a bound on its loss gives it: w grows as dual / share, and the sum would stay as it
was. Where features are public the part of w that all groups share is exact and unclipped; the rest
is half the range of w at most.

*A weight is followed as far as noise lets a step follow it.* f' is 1 / share for the worst group:
360 for one of 94 rows in 33,916, with 360 times the noise for everybody's model. So losses are what
they are likely to be by their noise (`learning.likely`), the largest of several is softened by
`WIDTH`, and what of a weight is above the one at which noise begins to take from the step size
counts for everybody alike (`_followed`). The limit rises with epsilon, to none.

*The model that weighs everybody alike is the floor.* The first half of the rounds finds it; the
others go on from there. It is returned where h of what late rounds released is less for it. The
values that are reported were released apart.

*Excess inside its noise is not obeyed.* The duals hear the sum of a group's excesses as far as it
is above one deviation of that sum's own noise (`BEYOND`), and an excess is divided by what its
mean's noise is over `TOLERATED`: the small group's noise would else decide the model. Both vanish
as epsilon grows, and constraints that are scaled have the same solutions.

`Differs:` the paper's constant is 2 where the gradient of a squared loss reaches 4, and its weights
go up to 1 + G; here weights are of means by group and reach G / share, and the clip goes along. Its
answer for "PK" coordinates is not needed: weights by cell are one array a round.

Guarantees (tests/learning/test_learning_group_descent.py):
1. The log is the plan, event for event, whatever the weights were.
2. Weights, clips and model depend on the rows through the curator's answers alone.
3. No neighbour moves a round's answers further, in units of their noise, than its event says:
   enumerated, for any weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ... import _checks
from ..._types import Floats
from ...core.events import Event, Repeated, compose
from ...core.sums import weights_reach as reach
from ...curator import Curator, GradientSum, GroupLosses, Linear, Measurement, Question
from ...fairness.functions import softened
from ..descent import Progress, Reason, run_to_the_end
from ..gaussian import quietest
from ..lagrangian.duals import ExponentiatedGradient, ExponentiatedGradientState
from ..lagrangian.noise import usual_clip
from ..lagrangian.primal import PrimalState
from ..likely import likely
from ..oracles import LinearRule, count_rows, counting_event
from ..systems import columns_of
from .descent_state import Course, GroupDescentState
from .found import Found
from .planned import PlannedSearch
from .problem import Problem, ReleasedProblem

MOST = 3.0  # of one row's log loss
# of the squared budget; gradients have the rest
COUNTS_SHARE, LOSSES_SHARE, REPORT_SHARE = 0.05, 0.2, 0.05
ROUNDS, EXACT_ROUNDS = 100, 600
RATE, MOMENTUM = 1.0, 0.9
PENALTY = 5.0
ALIKE = 0.5  # of the rounds, at the beginning: everybody weighs alike
# of those rounds, and of the others, at the end: the means of their models are what is found
LATE, LATE_APART = 0.5, 0.75
STEADY = 0.3  # of a logit: how far noise may walk, by one step and what momentum makes of it
WIDTH = 0.05  # of the loss: within it groups are about as bad as the worst
BEYOND = 1.0  # deviations of a sum of excesses' noise, below which it presses nothing
# noise of an excess's mean over all rounds, in units of the loss, that slows no dual
TOLERATED = 0.005
FAINT = 1e-6  # the least weight that a clip is made for: noise of nothing is next to nothing


@dataclass(frozen=True, eq=False)
class LossDescent(PlannedSearch):
    """A descent that is planned and priced: public values alone. Made by `plan_descent`."""

    rounds: int
    penalty: float
    clip: float
    counts_multiplier: float = 0.0
    gradient_multiplier: float = 0.0
    losses_multiplier: float = 0.0
    report_multiplier: float = 0.0

    def events(self) -> Event:
        """The whole run's events."""
        ground = self.ground
        zeros = np.zeros((ground.outputs, 1 + ground.layout.width))
        one = ground.event(self._measurements(zeros, np.ones(ground.groups)))
        last = ground.event([Measurement(self._losses(zeros), self.report_multiplier)])
        return compose(
            [counting_event(ground, self.counts_multiplier), Repeated(one, self.rounds), last]
        )

    def _measurements(self, v: Floats, weights: Floats) -> list[Measurement]:
        cells = self.ground.cells
        gradient = GradientSum(
            Linear(v), self.clip * self._room(weights), cells, cell_weights=weights
        )
        return [
            Measurement(gradient, self.gradient_multiplier),
            Measurement(self._losses(v), self.losses_multiplier),
        ]

    def _losses(self, v: Floats) -> Question:
        return GroupLosses(Linear(v), self.ground.cells, "log", MOST)

    def _room(self, weights: Floats) -> float:
        """What the clip is multiplied by: how much a row can weigh in any listed cells; where
        features are public, how far from what all of them share."""
        most, apart = reach(weights, self.ground.cells)
        return max(FAINT, float(apart / 2.0 if self.ground.sees_features else most))

    # -- init, step, stop, finish ------------------------------------------------------------------

    def init(self, curator: Curator) -> GroupDescentState:
        """Counts."""
        ground = self.ground
        counts = count_rows(curator, ground, self.counts_multiplier)
        posed = self.problem.pose(counts, self.counts_multiplier, self.penalty)
        chance = posed.shares[:, 0] * math.log(ground.classes)
        none = np.zeros(len(posed.excesses(chance)))
        walk = PrimalState.begin((1, ground.outputs, 1 + ground.layout.width))
        noise = self._noise_of_excesses(posed, chance)
        return GroupDescentState(
            posed,
            walk,
            self._alike,
            ExponentiatedGradientState(none),
            none,
            chance,
            noise,
            Course(walk.average[0]),
        )

    @property
    def _alike(self) -> Floats:
        """Weights with which every row counts once."""
        cells = self.problem.cells
        return np.full(cells.count, 1.0 / cells.per_row)

    def _rounds_alike(self, posed: ReleasedProblem) -> int:
        """The rounds in which everybody weighs alike; none where that is what f says."""
        slopes = np.array(posed.f.slopes)[..., posed.shares[:, 0] > posed.least]
        return 0 if np.allclose(slopes, self._alike[0]) else int(ALIKE * self.rounds)

    def _noise_of_excesses(self, posed: ReleasedProblem, losses: Floats) -> Floats:
        """Of one round's, each: public multipliers over released shares."""
        moved = self._noise_of_losses(posed)
        alone = np.eye(len(posed.excesses(losses)))
        return np.array([moved * float(np.linalg.norm(posed.pull(one, losses))) for one in alone])

    def _final_duals(self, leaning: ExponentiatedGradientState, noise: Floats, t: int) -> Floats:
        """The duals of sums of excesses, less what may be noise in them."""
        beyond = np.maximum(leaning.sums - BEYOND * math.sqrt(t) * noise, 0.0)
        return self.auditor.duals(
            replace(leaning, sums=np.where(leaning.sums > 0.0, beyond, leaning.sums))
        )

    @property
    def auditor(self) -> ExponentiatedGradient:
        """How the duals are played."""
        return ExponentiatedGradient(self.penalty)

    def step(self, curator: Curator, state: GroupDescentState) -> GroupDescentState:
        """One round."""
        posed, v = state.posed, state.walk.weights[0]
        gradient, sums = curator.answer(
            self._measurements(v, state.weights), purpose="gradient and losses of the groups"
        )
        losses = np.clip(sums / posed.rows, 0.0, MOST * np.maximum(posed.shares[:, 0], posed.least))
        t, alike = state.round + 1, self._rounds_alike(posed)
        mean = (
            losses if t == 1 else state.mean + (losses - state.mean) * max(1.0 / t, 1.0 - MOMENTUM)
        )
        counted = self._late(t, alike)
        walk = state.walk.step(
            gradient[np.newaxis] / posed.rows,
            self._rate(posed, state.weights),
            MOMENTUM,
            count=counted,
        )
        late = state.late.heard(losses) if counted else state.late
        state = replace(state, walk=walk, late=late, mean=mean, round=t)
        if t < alike:
            return state
        if t == alike:
            found = walk.average
            state = replace(
                state,
                alike=replace(late, weights=found[0]),
                walk=PrimalState.at(found),
                late=Course(found[0]),
            )
        return self._weighed(state, losses, t - alike)

    def _late(self, t: int, alike: int) -> bool:
        """Whether the model of a round is one of those that are averaged."""
        if t > alike > 0:
            return t - alike > (1.0 - LATE_APART) * (self.rounds - alike)
        return t > (1.0 - LATE) * (alike or self.rounds)

    def _weighed(self, state: GroupDescentState, losses: Floats, heard: int) -> GroupDescentState:
        """With the weights that follow from the losses of a round, the `heard`th from which duals
        follow."""
        posed, duals, leaning = state.posed, np.zeros_like(state.duals), state.leaning
        if heard > 0:
            slowed = 1.0 / np.maximum(1.0, state.noise / math.sqrt(self.rounds) / TOLERATED)
            leaning = self.auditor.step(leaning, slowed * posed.excesses(losses))
            duals = self._final_duals(leaning, slowed * state.noise, heard)
        noise = self._noise_of_losses(posed) * math.sqrt(
            max(1.0 / state.round, (1.0 - MOMENTUM) / (1.0 + MOMENTUM))
        )
        wanted = softened(posed.f, WIDTH).gradient(self._likely(posed, state.mean, noise))
        followed = self._followed(posed, wanted)
        pushed = (
            followed
            if state.pushed is None
            else state.pushed + (followed - state.pushed) / (1 + heard)
        )
        weights = pushed + posed.pull(duals, state.mean)
        return replace(
            state, weights=weights, pushed=pushed, leaning=leaning, duals=state.duals + duals
        )

    def _noise_of_losses(self, posed: ReleasedProblem) -> float:
        """Of one round's, each: a deviation, in shares of the rows."""
        ground = self.ground
        return (
            0.0
            if ground.is_exact
            else self.losses_multiplier * ground.move(self._losses(np.zeros((1, 1)))) / posed.rows
        )

    def _likely(self, posed: ReleasedProblem, losses: Floats, noise: float) -> Floats:
        """Losses of groups, with noise of that deviation, as they are likely to be: of each
        sensitive column by itself."""
        sizes = np.maximum(posed.shares[:, 0], posed.least)
        means, deviations = losses / sizes, noise / sizes
        return np.asarray(
            sizes
            * np.concatenate(
                [likely(means[part], deviations[part]) for part in columns_of(self.problem.cells)]
            )
        )

    def _followed(self, posed: ReleasedProblem, weights: Floats) -> Floats:
        """Weights up to what noise lets a step follow. The rest of the pull is everybody's."""
        heaviest = max(1.0, STEADY / max(FAINT, RATE * self._wandering(posed, 1.0)))
        kept = np.minimum(weights, heaviest * self._alike)
        return np.asarray(kept + float((weights - kept) @ posed.shares[:, 0]) * self._alike)

    def _wandering(self, posed: ReleasedProblem, weight: float) -> float:
        """How far noise moves a logit at a rate of 1, with what momentum adds, where the heaviest
        row weighs so much."""
        layout = self.ground.layout
        length = math.sqrt(1.0 + layout.numbers + len(layout.code_sizes))
        largest = self.clip * weight * (self.ground.max_sample_weight or 1.0)
        return self.gradient_multiplier * largest / posed.rows * length / (1.0 - MOMENTUM)

    def _rate(self, posed: ReleasedProblem, weights: Floats) -> float:
        """One over the curvature of sum_k w_k l_k, over that of a mean of rows: group k has its
        share of it. Less where noise would walk a logit or so."""
        usual = RATE / max(1.0, float(np.abs(weights) @ posed.shares[:, 0]))
        return min(usual, STEADY / max(FAINT, self._wandering(posed, self._room(weights))))

    def stop(self, state: GroupDescentState) -> Reason | None:
        """When the rounds of the plan are done."""
        return Reason.ROUNDS if state.round >= self.rounds else None

    def finish(self, curator: Curator, state: GroupDescentState, reason: Reason) -> Found:
        """The mean of the late models, or the one that weighs everybody alike, and its losses,
        released once."""
        ground, posed = self.ground, state.posed
        v = self._chosen(state)
        (sums,) = curator.answer(
            [Measurement(self._losses(v), self.report_multiplier)], purpose="losses of the answer"
        )
        exact = ground.is_exact
        return Found.of(
            posed,
            (LinearRule(v),),
            np.ones(1),
            sums[np.newaxis] / posed.rows,
            noise=0.0 if exact else self.report_multiplier * ground.move(self._losses(v)),
            count_noise=0.0 if exact else self.counts_multiplier * ground.move(ground.counts),
            duals=state.duals / max(1, state.round - self._rounds_alike(posed)),
            reason=reason,
            rounds=state.round,
        )

    def _chosen(self, state: GroupDescentState) -> Floats:
        """The weights of the model whose h is less, by what was released of late iterates."""
        posed, noise = state.posed, self._noise_of_losses(state.posed)
        apart = replace(state.late, weights=state.walk.average[0])
        courses = [apart] if state.alike is None else [state.alike, apart]
        heard = [
            self._likely(posed, one.losses, noise / math.sqrt(max(1, one.rounds)))
            for one in courses
        ]
        return min(
            zip(courses, heard, strict=True), key=lambda pair: float(posed.h.value(pair[1]))
        )[0].weights

    def run(self, curator: Curator, progress: Progress | None = None) -> Found:
        """Descend, with a curator that was made for the plan; the curator is closed afterwards,
        in every case."""
        return run_to_the_end(curator, self, partial(self.finish, curator), progress)


def plan_descent(
    problem: Problem,
    *,
    rounds: int | None = None,
    penalty: float | None = None,
    clip: float | None = None,
) -> LossDescent:
    """The descent whose noise is the least that keeps the promise."""
    ground = problem.ground
    problem.require_convex(monotone=True)
    chosen = (
        _checks.whole(at_least=1, rounds=rounds)
        if rounds is not None
        else EXACT_ROUNDS
        if ground.is_exact
        else ROUNDS
    )
    pressed = PENALTY if penalty is None else _checks.positive(penalty=penalty)
    longest = usual_clip(ground.promise) if clip is None else clip
    gradients = 1.0 - COUNTS_SHARE - LOSSES_SHARE - REPORT_SHARE

    def at(z: float) -> LossDescent:
        each = z * math.sqrt(chosen)
        shares = (
            z / math.sqrt(COUNTS_SHARE),
            each / math.sqrt(gradients),
            each / math.sqrt(LOSSES_SHARE),
        )
        return LossDescent(problem, chosen, pressed, longest, *shares, z / math.sqrt(REPORT_SHARE))

    return quietest(ground.promise, at, LossDescent.events, exact=ground.is_exact)
