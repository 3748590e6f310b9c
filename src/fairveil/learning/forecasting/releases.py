"""What a planned search will release, a line a release: from the very asks and events that the
search was priced by.

Guarantees (tests/learning/test_learning_forecast.py):
1. The noise multipliers, and how often each is drawn, are those of the plan's event: nothing is
   left out and nothing is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...core import events
from ...core.events import Event
from ...core.promise import Promise
from ...curator import FULL, Measurement, Part, Poisson
from ...curator.measurements import as_measurements
from ...curator.pricing import constant_scale, is_free, unit_size
from ...curator.questions.by_cell import inner_of
from ...curator.totals.public_scale import needs_rows
from ...facts import RowLayout
from ..descent import Batch

NAMES = {
    "AttachedHistogram": "rows by group, label and base decision",
    "CellCounts": "rows by group",
    "CodeHistogram": "rows by group, label and score",
    "FeatureSums": "sums of features by group",
    "GradientSum": "gradients",
    "GramMatrices": "second moments of the features",
    "GroupLosses": "losses by group",
    "GroupedHistogram": "decisions by group",
    "NetworkGradient": "gradients",
    "NetworkHistogram": "decisions by group",
    "NumberMoments": "means and deviations of the numbers",
    "PredictionHistogram": "decisions by group",
    "RowCount": "number of rows",
    "ScoreHistogram": "scores by group",
    "ShiftedHistogram": "decisions by group",
}


@dataclass(frozen=True)
class Release:
    """One kind of release: `multiplier`, the standard deviation of its noise over its
    `sensitivity`, drawn `times` over.

    `sensitivity`: L2, the most that one person moves it; None where that is a maximum over public
    rows, or of a private choice. `share`: about which share of the budget all of them have, in
    zero-concentrated terms (1 / (2 multiplier^2) each). `epsilon`: of a private choice, which has
    no multiplier.
    """

    name: str
    multiplier: float | None
    sensitivity: float | None
    times: int
    share: float
    epsilon: float | None = None

    @property
    def weight(self) -> float:
        """What it costs, all draws together, before it is set beside the others."""
        if self.multiplier is None:
            return 0.0 if self.epsilon is None else self.times * self.epsilon**2 / 8.0
        return self.times / (2.0 * self.multiplier**2)


def of_measurements(
    measurements: Sequence[Measurement],
    layout: RowLayout,
    promise: Promise,
    *,
    times: int = 1,
    batch: Batch = FULL,
    cap: float | None = None,
    remark: str = "",
) -> list[Release]:
    """One line a measurement that has noise. `times`: in how many rounds; of fixed parts, in how many
    of a person's own."""
    found = []
    rate = batch.rate if isinstance(batch, Poisson) else 1.0
    for measurement in as_measurements(measurements) if measurements else []:
        if not promise.is_private or is_free(measurement.question, promise) or measurement.is_exact:
            continue
        known = not (promise.protects == "sensitive_features" and needs_rows(measurement.question))
        scale = (
            constant_scale(measurement.question, layout, promise, cap, measurement.order)
            if known
            else None
        )
        size = (
            None
            if scale is None
            else unit_size(scale, promise, FULL if isinstance(batch, Part) else batch)
        )
        if size == 0.0:  # the number of rows, where nobody comes or goes
            continue
        vector = measurement.by_cell
        multiplier = float(measurement.multiplier) if vector is None else float(vector.min())
        name = (
            NAMES.get(type(inner_of(measurement.question)).__name__, measurement.question.name)
            + remark
        )
        line = Release(name, multiplier, size, times * measurement.question.models, 0.0)
        found.append(replace(line, share=line.weight * rate**2))
    return found


def of_event(event: Event | None, name: str, *, times: int = 1) -> list[Release]:
    """The leaves of an event, where nothing more is known of them."""
    found = []
    for leaf, count, rate in _leaves(event, times, 1.0):
        multiplier, epsilon = _noise_of(leaf), _epsilon_of(leaf)
        what = "private choices" if isinstance(leaf, events.Exponential) else name
        line = Release(
            what, multiplier, None, count, 0.0, None if multiplier is not None else epsilon
        )
        found.append(replace(line, share=line.weight * rate**2))
    return found


def shared_out(lines: Iterable[Release]) -> tuple[Release, ...]:
    """The same, with shares of sum 1; equal lines that follow each other are one."""
    merged: list[Release] = []
    for line in lines:
        last = merged[-1] if merged else None
        if last is not None and replace(line, times=1, share=0.0) == replace(
            last, times=1, share=0.0
        ):
            merged[-1] = replace(last, times=last.times + line.times, share=last.share + line.share)
        else:
            merged.append(line)
    total = math.fsum(line.share for line in merged)
    return tuple(replace(line, share=line.share / total if total else 0.0) for line in merged)


_WITH_NOISE = events.Gaussian | events.DiscreteGaussian | events.Laplace | events.DiscreteLaplace


def _noise_of(leaf: Event) -> float | None:
    if isinstance(leaf, events.PerCell):
        return min(min(line) for line in leaf.multipliers)
    if isinstance(leaf, _WITH_NOISE):
        return float(leaf.noise_multiplier)
    return None


def _epsilon_of(leaf: Event) -> float | None:
    private = events.Pure | events.Exponential | events.Approximate
    return float(leaf.epsilon) if isinstance(leaf, private) else None


def _leaves(event: Event | None, times: int, rate: float) -> Iterator[tuple[Event, int, float]]:
    if event is None or isinstance(event, events.NoOp | events.NonPrivate):
        return
    if isinstance(event, events.Composed):
        for part in event.events:
            yield from _leaves(part, times, rate)
    elif isinstance(event, events.Repeated):
        yield from _leaves(event.event, times * event.count, rate)
    elif isinstance(event, events.PoissonSampled | events.VisiblySampled):
        yield from _leaves(event.event, times, rate * event.rate)
    elif isinstance(event, events.OnPart):
        if event.part == 0:  # a person is in one of the parts
            yield from _leaves(event.event, times, rate)
    else:
        yield event, times, rate
