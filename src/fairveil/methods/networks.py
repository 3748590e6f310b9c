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

Guarantees (tests/methods/test_methods_network.py):
1. The plan costs at most the promise, under its relation, and the log equals the plan.
2. Nothing that is asked depends on a row except through released answers and, where they are
   public, features and labels.

`Differs:` from Algorithm 1: gradients of whole rows are clipped, so no Lipschitz constant is
taken on trust (theory.md#fermi, H8 and H9); noise for W is the histogram's; the step size falls to
0 over the last rounds, and Nesterov's momentum is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Floats
from ..core.promise import Promise
from ..curator import FULL, Measurement, NetworkGradient
from ..facts import Cells
from .descent import BEFORE, Answers, Ask, Method, Reason
from .duals import PrimalState
from .outcome import Outcome
from .primal_dual import Plan, Search, Settings, Sight, Told, last_of, usual_clip
from .systems import columns_of


class NetworkDescent(Search):
    """The search for one network, where its skeleton stands in the plan."""

    def round_measurements(self, clip: float) -> list[Measurement]:
        planned = self.planned
        none = planned.system is None
        return [*_gradients(planned), *([] if none else planned.histograms(planned.model()))]

    def search(self) -> Method[Outcome]:
        planned, s = self.planned, self.planned.settings
        skeleton = planned.skeleton
        assert skeleton is not None
        first = planned.first()
        answers: Answers = (yield Ask(first, FULL, BEFORE)) if first else []
        counts, rows = planned.read_counts(answers)
        player = self.player(counts, rows)
        play = None if player is None else player.begin()
        walk, gradients = PrimalState.at(skeleton.start), _gradients(planned)
        histograms = self.round_measurements(0.0)[len(gradients) :]
        sight = Sight(self, counts)
        for t in range(self.rounds):
            model: Any = planned.model(walk.weights)
            costs: Floats | None = None
            weight = np.ones(1)
            if player is not None:
                costs, ease = player.costs(play)
                weight = np.array([ease])
            asked = _round(planned, gradients, model, costs, weight, counts)
            for one in histograms:
                question: Any = one.question
                asked.append(one.about(question.at(model=model)))
            answers = yield Ask(asked, planned.batch_of(t))
            total = sum(answers[1 : len(gradients)], answers[0])
            gradient = np.asarray(total) / (planned.sampling_rate * rows)
            rate, counted = s.learning_rate * planned.fading(t), planned.counts_iterate(t)
            walk = walk.step(gradient, rate, s.momentum, count=counted)
            if player is not None:
                histogram = planned.of_round(answers[len(gradients) :], counts)
                play = player.step(play, histogram, t)
                player = sight.after(t, histogram, player)
        answers = yield from last_of(planned, planned.model(walk.average))
        names: tuple[str, ...] = ()
        told: Told = (np.zeros(0),) * 3
        inside: Floats | None = None
        if planned.system is not None:
            names, told = planned.system.names, planned.told(answers[0], counts)
            inside = self.aims(counts, answers[0].reshape(*planned.system.shape[:2], -1))
        duals = np.zeros(0) if player is None else player.duals(play)
        numbers = (names, self.limits, told[0], told[1], duals, counts, rows)
        weights = walk.average.copy()
        found = Outcome(
            weights, Reason.ROUNDS, self.rounds, *numbers, sampling=told[2], inside=inside
        )
        compared = planned.compare_measurements(planned.model(), 0.0)
        if not compared:
            return found
        table = planned.table(answers[-len(compared) :], planned.compare_multiplier)
        return planned.compared(found, table)


def _gradients(planned: Plan) -> list[Measurement]:
    """A round's, at the start. Where features are public, the gradient of the loss and of the
    costs' centre is exact, and a question of its own. It is clipped all the same, so that one step
    size serves every protection. Without privacy nothing is."""
    model: Any = planned.model()
    costs = None if planned.system is None else np.zeros(planned.system.shape)
    weight, cells = np.ones(1), planned.cells
    if planned.sees_features and cells is not None:
        centre = None if costs is None else np.zeros((1, *costs.shape[1:]))
        shared = NetworkGradient(model, planned.clip, None, centre, loss_weight=weight)
        apart = NetworkGradient(model, planned.clip, cells, costs, "none")
        return [Measurement(shared, 0.0), Measurement(apart, planned.gradient_multiplier)]
    asked = NetworkGradient(model, planned.clip, cells, costs, loss_weight=weight)
    return [Measurement(asked, planned.gradient_multiplier)]


def _round(
    planned: Plan,
    gradients: list[Measurement],
    model: Any,
    costs: Floats | None,
    weight: Floats,
    counts: Floats,
) -> list[Measurement]:
    """The gradients of a round."""
    out, cells = [], planned.cells
    for measurement in gradients:
        question: Any = measurement.question
        if costs is None or question.cell_costs is None:
            asked = question.at(model=model, loss_weight=weight)
        elif cells is None or not planned.sees_features:
            asked = question.at(model=model, cell_costs=costs, loss_weight=weight)
        else:
            centres = centres_of(costs, cells, counts)
            parts = zip(centres, columns_of(cells), strict=True)
            apart = np.concatenate([costs[column] - centre for centre, column in parts])
            if question.cells is None:
                asked = question.at(model=model, cell_costs=sum(centres), loss_weight=weight)
            else:
                asked = question.at(model=model, cell_costs=apart)
        out.append(measurement.about(asked))
    return out


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
