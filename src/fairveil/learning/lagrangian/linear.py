"""Private descent for linear models against a max player, any number of them side by side: RaCO-DP
and DP-FERMI, corrected.

    min_w  E[loss(w)]   such that   value_j(w) <= bound_j,      L(w, duals) = E[loss] + sum_j
    duals_j (value_j - bound_j)

is RaCO-DP's problem (theory.md#raco); `fermi` says what DP-FERMI puts in the duals' place. A round
is one joint answer: the sum of gradients of the rows' own Lagrangians, each clipped to norm
`clip`, and the histogram of predictions by cell (*hard* decisions for constraints). The model steps
along the first, the max player along the second; nothing else is read. Counts of the cells do not
change over rounds, so they are released once, before the first, with the moments by which numbers
are scaled where a schema bounds them. The constraints of the final model are measured
once more, after the last, and its threshold is moved where they do not hold.

Guarantees (tests/learning/test_learning_rate_constrained.py; theory in docs/rate_constrained.md):
1. The plan costs at most the promise, under its relation, and is made of public values alone.
2. The log equals the plan; all noise of a round is one event on one batch.
3. Nothing that is asked depends on a row except through released answers: costs, averages and step
   sizes use released counts.
4. A model's bits do not depend on the models beside it.

`Differs:` from the paper on rate constraints (eq. 6-12, alg. 1); for DP-FERMI see `fermi` and
`players`:
- Gaussian noise for the histogram, jointly with the gradient: one event. The paper samples two
  mechanisms as if independently.
- Full batches unless a sampling rate is given; the paper draws Poisson batches.
- Averages divide by a released or public number of rows, never by the batch; under replace-one all
  scales are doubled.
- The dual step follows hard decisions (its sec. E.4 compares them with soft ones), and is that of
  `duals.ProjectedAscent`.
- The Lagrangian is divided by 1 + dual_ease x the sum of the duals: the more they press, the less
  the loss pulls, and the clip does not clip what constraints add (the paper's sec. E.6 finds
  that it does).
- The handed-out model is the average of the late iterates, not the best on exact training
  statistics.
- Where released counts say that noise hides the constraints, rounds ask for the loss alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats
from ...core.promise import Promise
from ...curator import FULL, GradientSum, Linear, Measurement, PredictionHistogram
from ...errors import InputError
from ...fairness import ConstraintSystem
from ..descent import Answers, Batch, Reason, Search
from ..outcome import Outcome
from ..units import in_coded_units
from .companion import Companion, compared
from .exact_rounds import accelerated, looked, warmed
from .linear_state import LinearState, start_of
from .moving import moved
from .plan import Plan
from .players import Player, constraints_of
from .primal import PrimalState
from .settings import Settings


@dataclass(frozen=True, eq=False)
class LinearDescent(Search[LinearState, list[Outcome]]):
    """The search for one model, or for many that differ in the bounds of their constraints or in
    their noise alone.

    `plan`: what is asked, and at what price (`plans.make`). `bounds` (models, constraints).
    """

    planned: Plan
    bounds: Floats
    many: bool = False
    player: Player[Any] | None = None

    def __post_init__(self) -> None:
        if self.many and not self.planned.is_shared:
            remedy = (
                "Fit one after another: each has a scale, a clip or rounds of its own, made of "
                "what is released for it alone."
            )
            raise InputError.expected(
                "one model", of="LinearDescent", got=len(self.bounds), remedy=remedy
            )
        s = self.settings
        if self.player is None and self.system is not None:
            _checks.normalise(self, player=constraints_of(self.planned, self.bounds))
        _checks.normalise(
            self,
            plan=self.planned.events(self.models if self.many else None),
            batch=self.planned.batch,
        )
        _checks.normalise(self, rounds=s.most_rounds if self.planned.is_exact else s.rounds)

    # -- what it is made of ------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The public choices of the run."""
        return self.planned.settings

    @property
    def promise(self) -> Promise:
        """What one model may cost."""
        return self.planned.promise

    @property
    def system(self) -> ConstraintSystem | None:
        """The constraints, or None."""
        return self.planned.system

    @property
    def models(self) -> int:
        """How many models are looked for side by side."""
        return len(self.bounds)

    @property
    def _shape(self) -> tuple[int, int, int]:
        return (self.models, self.planned.outputs, 1 + self.planned.layout.width)

    # -- the search --------------------------------------------------------------------------------

    def first(self) -> list[Measurement]:
        return self.planned.first(self.models if self.many else None)

    def init(self, answers: Answers) -> LinearState:
        counts, rows = self.planned.read_counts(answers, self.models)
        standard = self.planned.standard(answers, counts, rows)
        walk, play = (
            PrimalState.begin(self._shape),
            None if self.player is None else self.player.begin(counts, rows),
        )
        alone = self._is_loss_alone(play)
        rate = self.planned.rate_of(rows, loss_alone=alone)
        # Chosen by the released number of rows: the multiplier, which alone is priced, does not
        # change (docs/theory/gaussian.md, T9).
        clip = self.planned.clip_at(float(rows[0]))  # the same of all models
        reach = rate[:, np.newaxis, np.newaxis]
        state = LinearState(
            walk, play, counts, rows, rate, reach, clip, standard=standard, loss_alone=alone
        )
        if self.planned.sees_features:
            warming = not self.planned.is_exact
            state = replace(state, probe=start_of(self._shape[2], self.models), warming=warming)
        return state

    def scaling(self, state: LinearState) -> tuple[Floats, Floats] | None:
        if state.standard is None:
            return None
        centre, scale = state.standard
        return 1.0 / scale, -centre / scale

    def batch_for(self, state: LinearState) -> Batch:
        return FULL if state.probe is not None or state.warming else self.batch

    def measurements(self, state: LinearState) -> list[Measurement]:
        if state.probe is not None:
            zero = np.zeros_like(state.probe)
            return [
                Measurement(
                    GradientSum(
                        self._linear(zero if state.pull is None else state.probe),
                        None,
                        loss="squared",
                    ),
                    0.0,
                )
            ]
        model = self._linear(state.walk.weights)
        if state.warming:
            return [Measurement(GradientSum(model, None, loss_clip=self.planned.loss_clip), 0.0)]
        if state.loss_alone:
            return [self._again(one, model, None, None) for one in self._round(None)]
        costs = None
        loss_scale = None
        if self.player is not None:
            costs, loss_scale = self.player.costs(state.play)
            costs = costs if self.many else costs[0]
        return [
            self._again(measurement, model, costs, loss_scale)
            for measurement in self._round(state.clip)
        ]

    def step(self, state: LinearState, answers: Answers) -> LinearState:
        if state.probe is not None:
            return looked(state, self._each(answers[0]), self.planned.outputs)
        s, t = self.settings, state.round
        answer = self._each(self.planned.read_loss(answers) if state.loss_alone else answers[0])
        # The expected size of a batch. Its true size is secret.
        share = self.planned.sampling_rate * state.rows
        if state.warming:
            return warmed(state, answer / state.rows[:, np.newaxis, np.newaxis])
        play = state.play
        if self.player is not None and not state.loss_alone:
            histogram = self._histogram(answers[1:], state)
            play = self.player.step(play, histogram, t)
        if not self.planned.is_exact:
            momentum = self.planned.momentum_at(state.clip)
            rate = np.minimum(state.rate, state.reach[:, 0, 0]) * self.planned.fading(t)
            counts = self.planned.counts_iterate(t)
            walk = state.walk.along(answer, share, rate, momentum, count=counts)
            return state.after(walk, play)
        gradient = answer / share[:, np.newaxis, np.newaxis]
        # Without noise there is nothing to average out: accelerated descent, to convergence.
        walk, age = accelerated(state, gradient, count=t >= s.most_rounds // 2)
        still = np.abs(gradient).max(axis=(1, 2)) <= s.tolerance
        if self.player is not None:
            still = still & self.player.rests(state.play, play, histogram, t, s.tolerance)
        stopped = np.zeros(self.models) if state.stopped is None else state.stopped
        # A model that has converged must end where it would alone.
        before = stopped > 0  # these stay where they were, whatever becomes of the others
        walk = replace(
            walk,
            weights=np.where(before[:, np.newaxis, np.newaxis], state.walk.weights, walk.weights),
        )
        if self.player is not None:
            play = self.player.keep(state.play, play, before)
        stopped = np.where(~before & still, t + 1.0, stopped)
        return replace(state, walk=walk, play=play, round=t + 1, age=age, stopped=stopped)

    def stop(self, state: LinearState) -> Reason | None:
        if state.stopped is not None and state.stopped.all():
            return Reason.CONVERGED
        if state.probe is not None or state.warming or state.round < self.rounds:
            return None
        return Reason.LIMIT if self.planned.is_exact else Reason.ROUNDS

    def last(self, state: LinearState) -> list[Measurement]:
        return self.planned.last(self._linear(self._found(state)))

    def sequel(self, state: LinearState, result: list[Outcome]) -> Companion | None:
        if not self.planned.follows:
            return None
        begin = self._found(state) if state.opened is None else state.opened
        walk = state.walk if state.loss_alone and self.planned.continues else None
        rate = state.rate
        if self.planned.free_rounds and walk is None and not self.planned.is_exact:
            rate = self.planned.rate_of(state.rows, free=True)
        return Companion(self.planned, tuple(result), begin, state.standard, rate, self.many, walk)

    def finish(self, state: LinearState, reason: Reason, answers: Answers) -> list[Outcome]:
        found = self._found(state)
        names: tuple[str, ...] = ()
        values = np.zeros((self.models, 0))
        spread = np.zeros((self.models, 0))
        looks, sampling = [1] * self.models, np.zeros((self.models, 0))
        if self.system is not None:
            names = self.system.names
            if self.planned.has_thresholds:
                found, values, spread, sampling, looks = moved(
                    self.planned,
                    found,
                    [self._each(one) for one in answers],
                    self.bounds,
                    state.counts,
                    state.rows,
                )
            else:
                values = self._values(self._each(answers[0]), state)
                histograms = self._each(answers[0]).reshape(self.models, *self.system.shape[:2], -1)
                pairs = zip(state.counts, histograms, strict=True)
                spread = np.stack(
                    [self.planned.noise_of(counts, decisions)(0) for counts, decisions in pairs]
                )
                sampling = np.stack(
                    [
                        self.planned.sampling_of(*pair)
                        for pair in zip(state.counts, histograms, strict=True)
                    ]
                )
        duals = (
            np.zeros((self.models, 0))
            if self.player is None
            else self.player.duals(state.play, len(names))
        )
        weights = in_coded_units(found, state.standard)
        rates = np.broadcast_to(state.rate, state.rows.shape)
        noise = self.planned.weight_noise(state.rows, rates, state.loss_alone)
        stopped = np.zeros(self.models) if state.stopped is None else state.stopped
        listed = [
            Outcome(
                weights[m].copy(),
                reason if stopped[m] == 0 else Reason.CONVERGED,
                int(stopped[m]) or state.round,
                names,
                self.bounds[m],
                values[m],
                spread[m],
                duals[m],
                state.counts[m],
                float(state.rows[m]),
                looks[m],
                sampling=sampling[m],
                weight_noise=float(noise[m]),
            )
            for m in range(self.models)
        ]
        return self._compared(listed, answers, state)

    # -- inside ------------------------------------------------------------------------------------

    def _compared(
        self, found: list[Outcome], answers: Answers, state: LinearState
    ) -> list[Outcome]:
        """With what was released to compare models whose thresholds stay."""
        asked = self.planned.compare_measurements(self._linear(state.walk.weights), 0.0)
        if not asked or self.planned.has_thresholds:
            return found
        tables = self.planned.read_compare(
            answers[-len(asked) :], self.models, self.planned.compare_multiplier
        )
        return [compared(self.planned, one, tables.of(m)) for m, one in enumerate(found)]

    def _is_loss_alone(self, play: object) -> bool:
        """Whether released counts say that noise hides the constraints from all rounds."""
        player = self.player if self.planned.may_ask_loss_alone else None
        return player is not None and not player.hears(play)

    def _found(self, state: LinearState) -> Floats:
        """The final models: the average of the late iterates; where the search converged,
        where it stands."""
        if state.stopped is None:
            return state.walk.average
        return np.where(
            state.stopped[:, np.newaxis, np.newaxis] > 0, state.walk.weights, state.walk.average
        )

    def _linear(self, weights: Floats) -> Linear:
        return self._origin.at(weights if self.many else weights[0])

    @cached_property
    def _origin(self) -> Linear:
        zeros = np.zeros(self._shape)
        return Linear(zeros if self.many else zeros[0], 1.0 / self.settings.temperature)

    def _round(self, clip: float | None) -> list[Measurement]:
        """What every round asks, at zero weights and costs; None: where it asks for the loss alone."""
        if clip not in self._rounds:
            zeros, models = self._linear(np.zeros(self._shape)), self.models if self.many else None
            self._rounds[clip] = (
                self.planned.loss_measurements(zeros)
                if clip is None
                else self.planned.round_measurements(zeros, models, clip)
            )
        return self._rounds[clip]

    @cached_property
    def _rounds(self) -> dict[float | None, list[Measurement]]:
        return {}

    def _again(
        self,
        measurement: Measurement,
        model: Linear,
        costs: Floats | None,
        loss_scale: Floats | None,
    ) -> Measurement:
        """A measurement of the first round about another round's model."""
        question = measurement.question
        if isinstance(question, GradientSum):
            return measurement.about(question.at(model, costs, loss_scale))
        assert isinstance(question, PredictionHistogram)
        return measurement.about(question.at(model))

    def _each(self, answer: Floats) -> Floats:
        """An answer with the leading model axis that one model's answer has not."""
        return answer if self.many else answer[np.newaxis]

    def _histogram(self, answers: Answers, state: LinearState) -> Floats:
        """A round's histogram by class, in units of all rows; put onto its exact totals where they
        were asked for."""
        histogram = self._each(answers[0]) / self.planned.sampling_rate
        if len(answers) > 1:
            histogram = self.planned.onto_totals(
                histogram, self._each(answers[1]) / self.planned.sampling_rate
            )
        return self.planned.by_class(histogram, state.counts)

    def _values(self, answer: Floats, state: LinearState) -> Floats:
        """Each constraint's value from a histogram of the decisions of all rows."""
        assert self.system is not None
        return self.system.exact_values(
            self.planned.by_class(answer, state.counts), state.counts, self.planned.floor
        )
