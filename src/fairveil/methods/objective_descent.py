"""Group objectives of a convex loss by private descent: the linear oracle of Bassily et al. for
losses (Alabi, sec. 5), a step a round.

    min over weights v of a linear model:   h(l(v)) = f(l(v)) + G max(0, g(l(v))),     l_k(v) = (1 /
    n0) sum of log losses in k

l is convex in v, so where h grows with every loss h(l(.)) is convex, and one model is as good as a
mixture (Jensen). Each round is one joint release on all rows: the gradient of sum_k w_k l_k, and
the losses by group, cut at `MOST`. The weights w = f' + sum_j duals_j g_j' are made of what earlier
rounds released, the duals by exponentiated gradient on the sums of excesses.

`Differs:`
- the paper's constant is 2 where the gradient of a squared loss reaches 4, and its weights go up to
  1 + G; here weights are of means by group and reach G / share. *The clip follows the weights*: a row
  of the group that weighs most is clipped to `clip` before it is weighed, so its part of the sum is
  at most `clip` x the largest weight that listed groups can give a row (`_room`). That is the
  sensitivity; noise grows with it, and its multiplier, so the price, is the same in every round. A
  clip of what is weighed already would take from the small group exactly what a bound on its loss
  gives it. Where features are public the part of w that all groups share is exact and unclipped;
- its answer for "PK" coordinates is not needed: weights by cell are one array a round;
- *a weight is followed as far as noise lets a step follow it* (`_followed`): f' is 1 / share for the
  worst group, 360 for one of 94 rows in 33,916, with 360 times the noise for everybody's model. So
  losses are what they are likely to be by their noise (`likely`), and the largest of several is
  softened by `WIDTH`;
- *the model that weighs everybody alike is the floor*: the first half of the rounds finds it, the
  others go on from there, and it is returned where h of what late rounds released is less for it;
- *excess inside its noise is not obeyed*: the duals hear a sum of excesses as far as it is above one
  deviation of its own noise, and an excess is divided by what its mean's noise is over `TOLERATED`.

Guarantees (tests/methods/test_methods_objective_descent.py):
1. The log is the plan, event for event, whatever the weights were.
2. Weights, clips and model depend on the rows through the curator's answers alone.
3. No neighbour moves a round's answers further, in units of their noise, than its event says:
   enumerated, for any weights. What is reported was released apart.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from .. import _checks
from .._types import Floats
from ..core.sums import weights_reach as reach
from ..curator import GradientSum, GroupLosses, Linear, Measurement, Question
from ..fairness.functions import softened
from .descent import Reason
from .duals import ExponentiatedGradient, ExponentiatedGradientState, PrimalState
from .gaussian import quietest
from .likely import likely
from .objective_loop import BEYOND, TOLERATED, duals_of
from .objectives import Found, Problem, ReleasedProblem
from .oracles import Asks, LinearRule, Search
from .primal_dual import usual_clip
from .systems import columns_of

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
FAINT = 1e-6  # the least weight that a clip is made for: noise of nothing is next to nothing


@dataclass(frozen=True, eq=False)
class LossDescent(Search[Found]):
    """A descent that is planned and priced: public values alone. Made by `plan_descent`."""

    problem: Problem
    penalty: float
    clip: float
    counts_multiplier: float = 0.0
    gradient_multiplier: float = 0.0
    losses_multiplier: float = 0.0
    report_multiplier: float = 0.0
    asks_last = True

    def _measurements(self, v: Floats, weights: Floats) -> list[Measurement]:
        cells = self.ground.cells
        clip = self.clip * self._room(weights)
        gradient = GradientSum(Linear(v), clip, cells, cell_weights=weights)
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

    def play(self, curator: Asks) -> Generator[None, None, Found]:
        ground, cells = self.ground, self.problem.cells
        counts = ground.count(curator, self.counts_multiplier)
        posed = self.problem.pose(counts, self.counts_multiplier, self.penalty)
        shares, rows = posed.shares[:, 0], posed.rows
        sizes, columns = np.maximum(shares, posed.least), columns_of(cells)
        auditor = ExponentiatedGradient(self.penalty)
        mean = chance = shares * math.log(ground.classes)
        # the deviations of one round's losses, in shares of the rows, and of its excesses
        question = self._losses(ground.zeros)
        moved = ground.deviation(question, self.losses_multiplier) / rows
        none = np.zeros(len(posed.excesses(chance)))
        pulls = [posed.pull(one, chance) for one in np.eye(len(none))]
        noise = np.array([moved * float(np.linalg.norm(pull)) for pull in pulls])
        slowed = 1.0 / np.maximum(1.0, noise / math.sqrt(self.rounds) / TOLERATED)
        leaning, pressed = ExponentiatedGradientState(none), none
        # everybody weighs alike in the first rounds; in all, or none, where that is what f says
        weighs = alike_for_all = np.full(cells.count, 1.0 / cells.per_row)
        slopes = np.array(posed.f.slopes)[..., shares > posed.least]
        alike = 0 if np.allclose(slopes, alike_for_all[0]) else int(ALIKE * self.rounds)
        walk = PrimalState.at(ground.zeros[np.newaxis])
        first: tuple[Floats, Floats, int] | None = None  # weights of that model, losses, releases
        late, heard = np.zeros(1), 0  # losses of the iterates that are averaged
        pushed = np.zeros_like(weighs)

        def probable(losses: Floats, noise: float) -> Floats:
            """Losses of groups, with noise of that deviation, as they are likely to be: of each
            sensitive column by itself."""
            means, deviations = losses / sizes, noise / sizes
            parts = [likely(means[part], deviations[part]) for part in columns]
            return np.asarray(sizes * np.concatenate(parts))

        yield
        for t in range(1, self.rounds + 1):
            gradient, sums = curator.answer(
                self._measurements(walk.weights[0], weighs),
                purpose="gradient and losses of the groups",
            )
            yield
            losses = np.clip(sums / rows, 0.0, MOST * sizes)
            mean = losses if t == 1 else mean + (losses - mean) * max(1.0 / t, 1.0 - MOMENTUM)
            if t > alike > 0:
                counted = t - alike > (1.0 - LATE_APART) * (self.rounds - alike)
            else:
                counted = t > (1.0 - LATE) * (alike or self.rounds)
            rate = self._rate(posed, weighs)
            walk = walk.step(gradient[np.newaxis] / rows, rate, MOMENTUM, count=counted)
            if counted:
                heard += 1
                late = late + (losses - late) / heard
            if t == alike:
                first = walk.average[0], late, heard
                walk, late, heard = PrimalState.at(walk.average), np.zeros(1), 0
            if t >= alike:
                # weights of the next round: f' of likely losses, as far as noise lets a step follow
                # them, and the pull of duals
                since, duals = t - alike, np.zeros_like(pressed)
                if since > 0:
                    leaning = auditor.step(leaning, slowed * posed.excesses(losses))
                    hidden = BEYOND * math.sqrt(since) * (slowed * noise)
                    duals = duals_of(auditor, leaning, hidden)
                left = max(1.0 / t, (1.0 - MOMENTUM) / (1.0 + MOMENTUM))
                wanted = softened(posed.f, WIDTH).gradient(probable(mean, moved * math.sqrt(left)))
                followed = self._followed(posed, wanted, alike_for_all)
                begins = t == max(1, alike)
                pushed = followed if begins else pushed + (followed - pushed) / (1 + since)
                weighs = pushed + posed.pull(duals, mean)
                pressed = pressed + duals
        # the mean of the late models, or the one that weighs everybody alike, whose h is less by
        # what was released of late iterates; and its losses, released once
        found = [*([] if first is None else [first]), (walk.average[0], late, heard)]
        values = [
            float(posed.h.value(probable(one, moved / math.sqrt(max(1, times)))))
            for _, one, times in found
        ]
        v = found[int(np.argmin(values))][0]
        last = Measurement(self._losses(v), self.report_multiplier)
        (sums,) = curator.answer([last], purpose="losses of the answer")
        yield
        return Found.of(
            posed,
            (LinearRule(v),),
            np.ones(1),
            sums[np.newaxis] / rows,
            noise=ground.deviation(question, self.report_multiplier),
            count_noise=ground.deviation(ground.counts, self.counts_multiplier),
            duals=pressed / max(1, self.rounds - alike),
            reason=Reason.ROUNDS,
            rounds=self.rounds,
        )

    def _followed(self, posed: ReleasedProblem, weights: Floats, alike: Floats) -> Floats:
        """Weights up to what noise lets a step follow. The rest of the pull is everybody's."""
        heaviest = max(1.0, STEADY / max(FAINT, RATE * self._wandering(posed, 1.0)))
        kept = np.minimum(weights, heaviest * alike)
        return np.asarray(kept + float((weights - kept) @ posed.shares[:, 0]) * alike)

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
    chosen = EXACT_ROUNDS if ground.is_exact else ROUNDS
    if rounds is not None:
        chosen = _checks.whole(at_least=1, rounds=rounds)
    pressed = PENALTY if penalty is None else _checks.positive(penalty=penalty)
    longest = usual_clip(ground.promise) if clip is None else clip
    gradients = 1.0 - COUNTS_SHARE - LOSSES_SHARE - REPORT_SHARE

    def at(z: float) -> LossDescent:
        each = z * math.sqrt(chosen)
        rounds_share = each / math.sqrt(gradients), each / math.sqrt(LOSSES_SHARE)
        once = z / math.sqrt(COUNTS_SHARE), z / math.sqrt(REPORT_SHARE)
        multipliers = once[0], *rounds_share, once[1]
        return LossDescent(ground, chosen, problem, pressed, longest, *multipliers)

    return quietest(ground.promise, at, lambda search: search.event, exact=ground.is_exact)
