"""Private descent for neural networks, against the same players as linear models: stochastic
descent-ascent (DP-FERMI's Algorithm 1, RaCO-DP's on networks), corrected.

A round is one joint answer about one batch: the sum of the rows' gradients, loss and costs of
predictions as *one* number a row and so one gradient, clipped to norm `clip`; and the histogram
of predictions by cell that the max player is told.

Where records are protected a batch is drawn secretly, anew each round (Poisson, theory.md#t2, #t3).
Where features are public, fixed parts of the rows take turns (T8), and a row's gradient has two
parts: what does not depend on its group is public and exact; of

    sum_k (c[s, k] - centre_k) grad F_k,      centre_k = sum_s p[s] c[s, k],

each row's is clipped to `clip`, and a change of group moves it by at most 2 clip. The rest, loss
and centre, is public; it is clipped to `clip` too, so that both parts pull as hard, and one step
size serves every protection.

Guarantees (tests/learning/test_learning_network.py):
1. The plan costs at most the promise, under its relation, and the log equals the plan.
2. Nothing that is asked depends on a row except through released answers and, where they are
   public, features and labels.

`Differs:` from Algorithm 1: gradients of whole rows are clipped, so no Lipschitz constant is
taken on trust (theory.md#fermi, H8 and H9); noise for W is the histogram's; the step size falls to
0 over the last rounds, and Nesterov's momentum is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats
from ...core.promise import Promise
from ...curator import Measurement, Network, NetworkGradient, NetworkHistogram
from ...facts import Cells
from ..descent import Answers, Batch, Reason, Search
from ..outcome import Outcome
from ..systems import columns_of
from .companion import compared
from .noise import usual_clip
from .plan import Plan
from .players import Player
from .primal import PrimalState
from .settings import Settings


@dataclass(frozen=True, eq=False)
class NetworkState:
    """Between two rounds: released or public values only. `play`: the max player's own state."""

    walk: PrimalState
    play: Any
    counts: Floats
    rows: Floats
    round: int


@dataclass(frozen=True, eq=False)
class NetworkDescent(Search[NetworkState, Outcome]):
    """The search for one network. `planned`: what is asked, and at what price; `bounds` of its
    constraints (1, constraints)."""

    planned: Plan
    bounds: Floats
    player: Player[Any] | None = None

    def __post_init__(self) -> None:
        _checks.normalise(
            self,
            plan=self.planned.events(None),
            batch=self.planned.batch,
            rounds=self.planned.settings.rounds,
        )

    def first(self) -> list[Measurement]:
        return self.planned.first(None)

    def init(self, answers: Answers) -> NetworkState:
        counts, rows = self.planned.read_counts(answers, 1)
        assert self.planned.skeleton is not None
        walk = PrimalState.at(self.planned.skeleton.start)
        return NetworkState(
            walk, None if self.player is None else self.player.begin(counts, rows), counts, rows, 0
        )

    def batch_for(self, state: NetworkState) -> Batch:
        return self.planned.batch_of(state.round)

    def measurements(self, state: NetworkState) -> list[Measurement]:
        assert self.planned.skeleton is not None
        model = Network(
            self.planned.skeleton, state.walk.weights, 1.0 / self.planned.settings.temperature
        )
        costs, loss_scale = (
            (None, np.ones(1)) if self.player is None else self.player.costs(state.play)
        )
        return [
            self._again(measurement, model, costs, loss_scale, state.counts[0])
            for measurement in self._round
        ]

    def step(self, state: NetworkState, answers: Answers) -> NetworkState:
        s, t, planned = self.planned.settings, state.round, self.planned
        gradients = [
            measurement
            for measurement in self._round
            if isinstance(measurement.question, NetworkGradient)
        ]
        total = sum(answers[1 : len(gradients)], answers[0])
        gradient = np.asarray(total) / (planned.sampling_rate * float(state.rows[0]))
        walk = state.walk.step(
            gradient,
            s.learning_rate * planned.fading(t),
            s.momentum,
            count=planned.counts_iterate(t),
        )
        play = state.play
        if self.player is not None:
            histogram = answers[len(gradients)][np.newaxis] / planned.sampling_rate
            if len(answers) > len(gradients) + 1:
                histogram = planned.onto_totals(
                    histogram, answers[len(gradients) + 1][np.newaxis] / planned.sampling_rate
                )
            play = self.player.step(play, planned.by_class(histogram, state.counts), t)
        return replace(state, walk=walk, play=play, round=t + 1)

    def stop(self, state: NetworkState) -> Reason | None:
        return Reason.ROUNDS if state.round >= self.rounds else None

    def last(self, state: NetworkState) -> list[Measurement]:
        assert self.planned.skeleton is not None
        return self.planned.last(
            Network(
                self.planned.skeleton, state.walk.average, 1.0 / self.planned.settings.temperature
            )
        )

    def finish(self, state: NetworkState, reason: Reason, answers: Answers) -> Outcome:
        planned, values, spread, sampling = self.planned, np.zeros((1, 0)), np.zeros(0), np.zeros(0)
        names: tuple[str, ...] = ()
        if (system := planned.system) is not None:
            names = system.names
            histogram = answers[0][np.newaxis]
            values = system.exact_values(
                planned.by_class(histogram, state.counts), state.counts, planned.floor
            )
            spread = planned.noise_of(state.counts[0], histogram.reshape(*system.shape[:2], -1))(0)
            sampling = planned.sampling_of(
                state.counts[0], histogram.reshape(*system.shape[:2], -1)
            )
        duals = (
            np.zeros((1, 0)) if self.player is None else self.player.duals(state.play, len(names))
        )
        weights = state.walk.average.copy()
        bounds, counts, rows = self.bounds[0], state.counts[0], float(state.rows[0])
        numbers = (names, bounds, values[0], spread, duals[0], counts, rows)
        found = Outcome(weights, reason, state.round, *numbers, sampling=sampling)
        asked = planned.compare_measurements(planned.start(), 0.0)
        if not asked:
            return found
        return compared(
            planned,
            found,
            planned.read_compare(answers[-len(asked) :], 1, planned.compare_multiplier).of(0),
        )

    # -- inside ------------------------------------------------------------------------------------

    @cached_property
    def _round(self) -> list[Measurement]:
        """A round's asks at the start: every round asks the same of other parameters and costs."""
        return self.planned.round_measurements(self.planned.start(), None)

    def _again(
        self,
        measurement: Measurement,
        model: Network,
        costs: Floats | None,
        loss_scale: Floats,
        counts: Floats,
    ) -> Measurement:
        question = measurement.question
        if isinstance(question, NetworkHistogram):
            return measurement.about(question.at(model))
        assert isinstance(question, NetworkGradient)
        if costs is None or question.cell_costs is None:
            return measurement.about(question.at(model, None, loss_scale))
        cells = self.planned.cells
        if cells is None or not self.planned.sees_features:
            return measurement.about(question.at(model, costs[0], loss_scale))
        centres = centres_of(costs[0], cells, counts)
        if question.cells is None:
            return measurement.about(question.at(model, sum(centres), loss_scale))
        parts = zip(centres, columns_of(cells), strict=True)
        return measurement.about(
            question.at(
                model, np.concatenate([costs[0][column] - centre for centre, column in parts])
            )
        )


def usual_settings(promise: Promise, rows: int | None) -> Settings:
    """Of a network's run: 400 batches of a twentieth of the rows, and of 256 where these are more.

    Where sensitive features alone are protected the noise of a run grows as the square root of the
    number of parts: 150 rounds of all rows.
    """
    if promise.protects == "sensitive_features" and promise.is_private:
        rounds, rate = 150, 1.0
    else:
        rounds, rate = 400, 0.05 if rows is None else min(1.0, max(0.05, 256.0 / max(1, rows)))
    return Settings(
        rounds=rounds,
        clip=2.0 if promise.protects == "sensitive_features" else usual_clip(promise),
        sampling_rate=rate,
        averaged=0.35,
        dual_ema_nu=0.9,
        dual_start=0.1,
        dual_ki=8.0,
        dual_kp=1.6,
        dual_fade=0.2,
        dual_unit="largest",
        thresholds_share=0.0,
        counts_share=0.05,
        iterate="last",
    )


def centres_of(costs: Floats, cells: Cells, counts: Floats) -> list[Floats]:
    """For each sensitive column what a prediction costs its groups in the mean, by released counts:
    (1, labels, classes)."""
    out = []
    for column in columns_of(cells):
        sizes = np.maximum(counts[column], 1.0)[..., np.newaxis]
        out.append(
            (costs[column] * sizes).sum(axis=0, keepdims=True) / sizes.sum(axis=0, keepdims=True)
        )
    return out
