"""Drawing the noise of a joint answer, in whole grid units, from one stream a question and model.

Guarantee (tests/curator/test_curator_steps.py):
1. What is drawn side by side is what `draw` gives for each stream by itself, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np

from .._types import Floats, Ints
from ..core.noise import Gaussians, NoiseSource, Stream, symmetric_gaussians
from ..core.threads import beside
from .measurements import Measurement
from .questions.by_cell import inner_of
from .questions.of_rows import GramMatrices

WORTH_DRAWING_BESIDE = 1 << 13  # coordinates: below, another thread costs more than it saves
_NOTHING: Ints = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class NoiseRequest:
    """Noise that one model's answer to one ask needs: of which scale and shape, and from which
    stream."""

    job: int
    model: int
    measurement: Measurement
    size: float | Floats
    shape: tuple[int, ...]
    source: int
    path: tuple[int, ...]  # of the stream, after the number of the release

    @property
    def plain(self) -> bool:
        """Gaussian, of one scale above 0."""
        gaussian = self.measurement.noise == "gaussian" and not isinstance(
            inner_of(self.measurement.question), GramMatrices
        )
        return gaussian and type(self.size) is float and self.size > 0.0

    def stream(self, sources: Sequence[NoiseSource], number: int) -> Stream:
        """The stream of its own."""
        return sources[self.source].stream("noise", number, *self.path)


class NoisePlan:
    """The noise of an answer that is asked for again and again, laid out once: plain Gaussians, in
    one pass."""

    __slots__ = ("_gaussians", "_needs", "_places")

    def __init__(self, needs: Sequence[NoiseRequest]) -> None:
        counts = [math.prod(need.shape) for need in needs]
        self._needs = tuple(needs)
        self._gaussians = Gaussians([float(need.size) for need in needs], counts)
        self._places = [
            (need.job, need.model, at - n, at)
            for need, n, at in zip(needs, counts, accumulate(counts), strict=True)
        ]

    @staticmethod
    def of(needs: Sequence[NoiseRequest]) -> NoisePlan | None:
        """None where some of it is of another kind."""
        return NoisePlan(needs) if all(need.plain for need in needs) else None

    def draws(self, sources: Sequence[NoiseSource], number: int) -> list[Ints]:
        """The noise of each need, flat."""
        drawn = self._gaussians.draw([need.stream(sources, number) for need in self._needs])
        return [drawn[start:stop] for _, _, start, stop in self._places]

    def begin(self, sources: Sequence[NoiseSource], number: int) -> Callable[[], Ints]:
        """Start to draw; the function waits for it. Much noise is drawn beside the pass over the
        rows."""
        streams = [need.stream(sources, number) for need in self._needs]
        if sum(self._gaussians.sizes) < WORTH_DRAWING_BESIDE:
            return partial(self._gaussians.draw, streams)
        return beside(partial(self._gaussians.draw, streams))

    def add(self, sums: Sequence[Ints], begun: Callable[[], Ints]) -> None:
        """sums += noise, as integers."""
        if not self._needs:
            return
        drawn = begun()
        for job, model, start, stop in self._places:
            total = sums[job][model]
            total += drawn[start:stop].reshape(total.shape)


def draws(needs: Sequence[NoiseRequest], sources: Sequence[NoiseSource], number: int) -> list[Ints]:
    """The noise of each, plain Gaussians in one pass."""
    plain = [need for need in needs if need.plain]
    batched = iter(NoisePlan(plain).draws(sources, number))
    return [
        next(batched).reshape(need.shape)
        if need.plain
        else draw(need.measurement, need.size, need.shape, need.stream(sources, number))
        for need in needs
    ]


def draw(
    measurement: Measurement, size: float | Floats, shape: tuple[int, ...], stream: Stream
) -> Ints:
    """Noise of the given scale (one, or one a coordinate), every coordinate its own draw."""
    if np.max(size) == 0.0:  # nothing can move this answer: W = 0, equal costs (theory.md#public)
        return np.zeros(shape, np.int64)
    if measurement.noise == "discrete-laplace":
        return stream.discrete_laplace(float(size), math.prod(shape)).reshape(shape)
    if measurement.noise == "discrete-gaussian":
        return stream.discrete_gaussian(float(size), math.prod(shape)).reshape(shape)
    if isinstance(inner_of(measurement.question), GramMatrices):
        return symmetric_gaussians(stream, size, shape)
    if isinstance(size, np.ndarray):
        return stream.rounded_gaussian(size.ravel()).reshape(shape)
    return stream.rounded_gaussian(size, math.prod(shape)).reshape(shape)
