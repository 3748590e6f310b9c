"""Drawing the noise of a joint answer, in whole grid units, from one stream a question and model.

Guarantee (tests/curator/test_curator_steps.py):
1. What is drawn side by side is what `draw` gives for each stream by itself, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..privacy.samplers import Stream, rounded_gaussians
from .pricing import Ask
from .row_questions import GramMatrices

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


_NOTHING: Ints = np.empty(0, np.int64)
Wanted = tuple[Ask, float | Floats, tuple[int, ...], Stream]  # what, of which scale, of which shape, from where


def draws(wanted: Sequence[Wanted]) -> list[Ints]:
    """`draw` of each, plain Gaussians in one pass."""
    out: list[Ints] = []
    plain: list[tuple[int, float, tuple[int, ...], Stream]] = []
    for i, (ask, size, shape, stream) in enumerate(wanted):
        if type(size) is float and size > 0.0 and ask.noise == "gaussian" and not isinstance(ask.question, GramMatrices):
            plain.append((i, size, shape, stream))
            out.append(_NOTHING)
        else:
            out.append(draw(ask, size, shape, stream))
    if plain:
        places, sizes, shapes, streams = zip(*plain, strict=True)
        counts = [math.prod(shape) for shape in shapes]
        drawn, at = rounded_gaussians(streams, sizes, counts), 0
        for i, shape, count in zip(places, shapes, counts, strict=True):
            out[i] = drawn[at : at + count].reshape(shape)
            at += count
    return out


def draw(ask: Ask, size: float | Floats, shape: tuple[int, ...], stream: Stream) -> Ints:
    """Noise of the given scale (one, or one a coordinate), every coordinate its own draw."""
    if np.max(size) == 0.0:  # nothing can move this answer: W = 0, equal costs (PRIVACY 9)
        return np.zeros(shape, np.int64)
    if ask.noise == "discrete-laplace":
        return stream.discrete_laplace(float(size), math.prod(shape)).reshape(shape)
    if ask.noise == "discrete-gaussian":
        return stream.discrete_gaussian(float(size), math.prod(shape)).reshape(shape)
    if isinstance(ask.question, GramMatrices):
        return symmetric(size, shape, stream)
    if isinstance(size, np.ndarray):
        return stream.rounded_gaussian(size.ravel()).reshape(shape)
    return stream.rounded_gaussian(size, math.prod(shape)).reshape(shape)


def symmetric(size: float | Floats, shape: tuple[int, ...], stream: Stream) -> Ints:
    """Symmetric matrices of noise: standard deviation s on the diagonal and s / sqrt(2) beside it (PRIVACY 3.4)."""
    cells, d, _ = shape
    upper = np.triu_indices(d)
    factors = np.where(upper[0] == upper[1], 1.0, math.sqrt(0.5))
    per_cell = np.broadcast_to(np.asarray(size, np.float64), shape)[:, 0, 0]
    drawn = stream.rounded_gaussian((per_cell[:, np.newaxis] * factors).ravel()).reshape(cells, -1)
    noise = np.zeros(shape, np.int64)
    noise[:, upper[0], upper[1]] = drawn
    noise[:, upper[1], upper[0]] = drawn
    return noise
