"""What a descent against a max player asks, and at what price: made of public values alone, before
any data are touched.

    mu^2 = counts + report + rounds (1 / z_histogram^2 + 1 / z_gradient^2)          (full batches; theory.md#t1)

Shares of the budget, step sizes, clip and rounds have defaults from public facts; none is tuned to
a data set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..._types import Floats
from ...core.events import Composed, Event, Repeated, compose
from ...curator import (
    FULL,
    CellCounts,
    GradientSum,
    Linear,
    Measurement,
    Network,
    NetworkGradient,
    NetworkHistogram,
    PredictionHistogram,
    Question,
    RowCount,
    ScoreHistogram,
    describe,
)
from ..comparison import DecisionTables
from ..descent import Answers, Batch
from ..gaussian import averaged
from .batches import Form
from .noise import PlannedNoise

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False)
class Plan(PlannedNoise):
    """The measurements of a run and their multipliers. `cells` and `by_label`: what histograms distinguish,
    the least that will do.

    `scales`: whether numbers are scaled by their released moments, inside the curator, before the
    first round. `decisions`: what the histograms of the rounds are of; the last one is of hard
    decisions. `uses_totals`: whether their sums over groups are asked for too, exactly, where
    features are public. `skeleton`: of a network; None for a linear model.
    """

    def first(self, models: int | None) -> list[Measurement]:
        """Counts of the cells, or the number of rows where it is private; then the moments of
        numbers that are scaled."""
        out: list[Measurement] = []
        if self.system is not None:
            out.append(
                Measurement(
                    CellCounts(self.cells, self.by_label, copies=models), self.counts_multiplier
                )
            )
        elif self.public_rows is None or self.counts_for_moments:
            out.append(Measurement(RowCount(copies=models), self.counts_multiplier))
        if self.scales:
            out.append(Measurement(self._moments, self.moments_multiplier))
        return out

    def events(self, models: int | None) -> Event | None:
        """The whole run's events, for one model (None) or several side by side; None without
        privacy."""
        if not self.promise.is_private:
            return None
        return self._events(self.start(models), models)

    def _events(self, model: Form, models: int | None) -> Event:
        def event(measurements: list[Measurement], batch: Batch = FULL) -> Event:
            return describe(
                measurements,
                self.layout,
                self.promise,
                batch,
                max_sample_weight=self.max_sample_weight,
            )

        parts = [event(first)] if (first := self.first(models)) else []
        parts += self._rounds(lambda batch: event(self.round_measurements(model, models), batch))
        if last := self.last(model):
            parts.append(event(last))
        if self.follows:
            assert isinstance(model, Linear)
            parts += (
                [Repeated(event(self.free_measurements(model)), self.free_rounds)]
                if self.free_rounds
                else []
            )
            parts.append(event([*self.settled_measurements(model), *self.free_last(model)]))
        return compose(parts)

    def _rounds(self, event: Callable[[Batch], Event]) -> list[Event]:
        """All rounds: the same again and again, or parts that take turns, and what is left of a
        turn."""
        if not self.parts or self.is_exact:  # what is free is not distinguished by part
            return [Repeated(event(self.batch), self.settings.rounds)]
        turn = [event(self.batch_of(j)) for j in range(self.parts)]
        turns, rest = divmod(self.settings.rounds, self.parts)
        return [Repeated(Composed(tuple(turn)), turns), *turn[:rest]] if turns else turn[:rest]

    @property
    def has_thresholds(self) -> bool:
        """Whether the threshold of the final model may be moved: two classes, and
        constraints."""
        linear = self.skeleton is None
        return (
            linear
            and self.system is not None
            and self.outputs == 1
            and self.settings.thresholds_share > 0
        )

    def last(self, model: Form) -> list[Measurement]:
        """The decisions of the model that was found, and how its scores fall between other
        thresholds; or, where its threshold stays, how it decides by label, which is what constants
        are compared with."""
        out: list[Measurement] = []
        if self.system is not None:
            out.append(Measurement(self.histogram(model), self.report_multiplier))
        if not self.has_thresholds:
            return [*out, *self.compare_measurements(model, self.compare_multiplier)]
        assert isinstance(model, Linear)
        return [*out, Measurement(self._scores(model), self.thresholds_multiplier)]

    @property
    def follows(self) -> bool:
        """Whether more is asked once the model is there."""
        return self.companion or self.settles

    @property
    def settles(self) -> bool:
        """Whether a model with its threshold put is measured anew: of the values that chose it, it
        has the luckiest."""
        return self.has_thresholds and self.settings.compare_share > 0

    def settled_measurements(self, model: Linear) -> list[Measurement]:
        """What is asked of the final model, once nothing of it moves."""
        if not self.settles:
            return []
        return [
            Measurement(self.histogram(model), self.report_multiplier),
            *self.compare_measurements(model, self.compare_multiplier),
        ]

    def compare_measurements(self, model: Form, multiplier: float) -> list[Measurement]:
        """How a model decides by label, whatever the group: one table, each row in one place of
        it."""
        if not self.settings.compare_share:
            return []
        if isinstance(model, Network):
            asked: Question = NetworkHistogram(model, None, "hard", by_label=True)
        elif self.outputs > 1:
            asked = PredictionHistogram(model, None, "hard", by_label=True)
        else:
            return [Measurement(ScoreHistogram(model, (0.0,), None, by_label=True), multiplier)]
        counts = (
            [Measurement(CellCounts(None, by_label=True), multiplier)] if self.outputs == 1 else []
        )
        return [Measurement(asked, multiplier), *counts]

    def read_compare(self, answers: Answers, models: int, multiplier: float) -> DecisionTables:
        """What `compare_asks` were answered: tables (models, labels, classes), and the noise of
        each number of them."""
        classes = len(self.layout.classes or ())
        noise = 0.0
        if not self.sees_features:
            model = self.start()
            noise = multiplier * self._unit(
                self.compare_measurements(model, multiplier)[0].question
            )
        table = np.asarray(answers[0], np.float64).reshape(models, classes, -1)
        if table.shape[-1] == classes:
            return DecisionTables(table, np.full((classes, classes), noise))
        totals = np.asarray(answers[1], np.float64).reshape(1, classes, 1)
        return DecisionTables(
            np.concatenate([totals - table, table], axis=-1),
            np.array([[math.sqrt(2.0) * noise, noise]] * classes),
        )

    def free_measurements(self, model: Linear) -> list[Measurement]:
        """What a round of the companion asks: the gradient of the loss alone."""
        clip = None if self.is_exact else self.clip
        return [
            Measurement(GradientSum(model, clip, loss_clip=self.loss_clip), self.free_multiplier)
        ]

    def loss_measurements(self, model: Linear) -> list[Measurement]:
        """What a round asks where noise hides the constraints: the gradient of the loss alone, once
        for each price of the round. So its event is that of any other round, whatever was
        released."""
        asked = GradientSum(model, self.clip, loss_clip=self.loss_clip)
        return [
            Measurement(asked, self.gradient_multiplier),
            Measurement(asked, self.histogram_multiplier),
        ]

    def read_loss(self, answers: Answers) -> Floats:
        """The mean of the two, weighed by their precision."""
        prices = self.gradient_multiplier, self.histogram_multiplier
        return averaged(answers, prices)

    def free_last(self, model: Linear) -> list[Measurement]:
        """What is asked of the companion: how it decides by cell, and by label."""
        if not self.companion:
            return []
        out = Measurement(self.histogram(model), self.free_report_multiplier)
        return [
            out,
            *self.compare_measurements(
                model, 0.0 if self.sees_features else self.free_report_multiplier
            ),
        ]

    def round_measurements(
        self, model: Form, models: int | None, clip: float | None = None
    ) -> list[Measurement]:
        """A round's asks at zero costs: for plans, which depend on shapes alone. `clip`: of a
        linear model; None: the least."""
        if isinstance(model, Network):
            return self._network_measurements(model)
        costs = None
        if self.system is not None:
            cells, labels, classes = self.system.shape
            costs = np.zeros(
                (cells, labels, classes) if models is None else (models, cells, labels, classes)
            )
        loss_scale = np.ones(models or 1) if self.system is not None else 1.0
        asked = GradientSum(
            model,
            clip or self.clip,
            self.cells,
            costs,
            loss_weight=loss_scale,
            loss_clip=self.loss_clip,
        )
        out = [Measurement(asked, self.gradient_multiplier)]
        return out if self.system is None else [*out, *self._histograms(model)]

    def _network_measurements(self, model: Network) -> list[Measurement]:
        """Where features are public, the gradient of the loss and of the costs' centre is exact,
        and a question of its own.

        It is clipped all the same, so that one step size serves every protection. Without privacy
        nothing is.
        """
        costs = None if self.system is None else np.zeros(self.system.shape)
        weight = np.ones(1)
        if self.sees_features and self.cells is not None:
            centre = np.zeros((1, *costs.shape[1:])) if costs is not None else None
            out = [
                Measurement(
                    NetworkGradient(model, self.clip, None, centre, loss_weight=weight), 0.0
                ),
                Measurement(
                    NetworkGradient(model, self.clip, self.cells, costs, "none"),
                    self.gradient_multiplier,
                ),
            ]
        else:
            out = [
                Measurement(
                    NetworkGradient(model, self.clip, self.cells, costs, loss_weight=weight),
                    self.gradient_multiplier,
                )
            ]
        return out if self.system is None else [*out, *self._histograms(model)]

    def _histograms(self, model: Form) -> list[Measurement]:
        asked = self.histogram(model, self.decisions)
        out = [Measurement(asked, self.histogram_multiplier)]
        if self.uses_totals and self.sees_features and not self.is_exact:
            out.append(Measurement(replace(asked, cells=None), 0.0))
        return out

    # -- what answers mean -------------------------------------------------------------------------

    def read_counts(self, answers: Answers, models: int) -> tuple[Floats, Floats]:
        """Rows by (model, cell, label), and the number of rows that averages divide by."""
        if self.system is None:
            asked = self.public_rows is None or self.counts_for_moments
            counts = (
                np.asarray(answers[0]).reshape(-1, 1, 1)
                if asked
                else np.full((1, 1, 1), self.public_rows)
            )
            counts = np.broadcast_to(counts, (models, 1, 1)).astype(np.float64)
        else:
            counts = np.broadcast_to(
                np.asarray(answers[0]).reshape(-1, *self.system.shape[:2]),
                (models, *self.system.shape[:2]),
            )
        if self.public_rows is not None:
            return counts, np.full(models, float(self.public_rows))
        per_row = 1 if self.cells is None else self.cells.per_row
        rows = counts.reshape(models, -1).sum(axis=1) / per_row
        return counts, np.maximum(rows, self.floor)

    def standard(
        self, answers: Answers, counts: Floats, rows: Floats
    ) -> tuple[Floats, Floats] | None:
        """Centre and scale of each number, from its moments: mean and standard deviation. None
        where numbers are left alone.

        Many models share one scale, so it is made of what they share: the public number of rows,
        where that is exact. A noisy variance is taken to be no less than the noise of a mean, and
        no more than 1, as numbers lie in [-1, 1].
        """
        if not self.scales:
            return None
        total = float(rows[0])
        if self.counts_for_moments:
            total = max(
                self.floor,
                float(counts[0].sum()) / (1 if self.cells is None else self.cells.per_row),
            )
        mean, square = np.asarray(answers[-1]) / total
        if self.sees_features:
            variance = square - mean * mean
            return mean, np.where(
                variance > 1e-12 * square, np.sqrt(np.maximum(variance, 0.0)), 1.0
            )
        mean = np.clip(mean, -1.0, 1.0)
        noise = self.moments_multiplier * self._unit(self._moments) / total
        return mean, np.sqrt(np.clip(square - mean * mean, min(noise, 1.0), 1.0))
