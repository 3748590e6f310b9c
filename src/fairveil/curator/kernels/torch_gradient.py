"""Clipped gradient sums of torch modules, by layers: one pass forward, one backward to the layers'
outputs, no per-row passes.

Every call of a layer gives its input a and, from the backward pass, the gradient d with respect to
its output. A row's gradient with respect to a weight is sum_t d_t a_t' over the positions t of its
calls. With one position (a dense layer) it is d a', its norm |d| |a|, and it is never built ("ghost
clipping", Goodfellow 2015, Li et al. 2022); else it is built for a chunk of rows by one batched
product. Layers: Linear, Conv1d, Conv2d, Embedding, LayerNorm, GroupNorm, with or without biases,
reused, frozen. Other modules, and parameters shared by several layers, go through torch.func, or,
where that fails, row by row.

Differs: others add float32 gradients; here each row's contribution is put on a grid, as
theory.md#sums asks; sums are exact.

The bits. The grid's step is u; a row's contribution is at most 2^36 u before rounding.
(1) d a': a is rounded to whole multiples of 2^(e - 16), where the largest |a| lies between 2^(e -
1) and 2^e: to integers A of at most 2^16. The norm is that of the rounded a.
(2) d times the row's factor is rounded to integers D of u / 2^(e - 16). Where A = 0 nothing is
added, else |A| |d| <= 2^36 u. (3) So |A D| <= 2^37, and a product over at most 2^12 rows has
partial sums below 2^49: float64 has them exactly, in any order. Gradients that are built are
rounded to u themselves, and are at most 2^37.
(4) So have totals over at most 2^15 rows, below 2^52; these are added as int64, modulo 2^64. Noise
is added to that remainder, which is then a function of the noisy total and as private as that is,
however many rows there are; up to 2^25 rows the remainder is the total. (5) Rounding adds to a
row's norm at most sqrt(in x out) 2^15 u for each d a', sqrt(n) / 2 u for n built numbers:
`rounding`.

Guarantee (tests/curator/test_curator_torch_alone.py):
1. What a row adds, and its logits, are a function of that row, the parameters and public constants:
   not of how many rows share its pass, of their numbers, errors or NaN, nor of its place. Taking
   away a row takes away its contribution, to the last step. See `torch_alone` for how, and for what
   user code is trusted with.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..._types import Floats, Ints, Singles
from ...core.kernels import close_person
from ...models.torch_network import Skeleton
from ..quiet import Troubles, quietly
from .torch_alone import Method, settle, state
from .torch_parts import Built, GradientPiece
from .torch_wanted import Wanted, factors, slopes
from .torch_ways import Way, ways_of

CHUNK_NUMBERS = 1 << 25  # float32 numbers of one chunk of rows: inputs, outputs, built gradients
MOST_FLOATS = 1 << 15  # rows whose total is exact in float64


def engine(skeleton: Skeleton) -> Engine:
    """The engine of a skeleton, made once."""
    if "engine" not in skeleton.kept:
        with skeleton.lock:
            skeleton.kept["engine"] = Engine(skeleton)
    found: Engine = skeleton.kept["engine"]
    return found


@dataclass(frozen=True, eq=False)
class _Chunk:
    """What a pass found of the rows of one chunk, before anything is added."""

    logits: Floats
    parts: tuple[GradientPiece, ...]
    factors: torch.Tensor | None


class Engine:
    """How the gradients of one skeleton are found: by layers, by torch.func, or row by row; and in
    chunks of how many rows.

    Chosen by trying the module on made-up rows, so it is public: `way` once, against gradients
    found row by row; `method` for torch's number of threads, so that a row's bits are its own.
    `rounding` holds for every method.
    """

    def __init__(self, skeleton: Skeleton) -> None:
        self.skeleton = skeleton
        self._ways = ways_of(skeleton)
        self._methods: dict[Any, Method] = {}
        first = self._ways[0]
        self.way, self.layers = first.name, list(first.layers)
        numbers, roundings = skeleton.numbers_per_row + skeleton.size, [Built.error(skeleton.size)]
        # more than that of built gradients: what a row did not look up is zero in these, too
        if self.layers:
            numbers = skeleton.numbers_per_row + sum(
                layer.built + layer.unfolded for layer in self.layers
            )
            roundings = [error for layer in self.layers for error in layer.errors]
        self.rounding = math.sqrt(sum(error * error for error in roundings))  # in grid steps
        self._most = CHUNK_NUMBERS // numbers

    @property
    def method(self) -> Method:
        """The way and the shapes of chunks, for torch as it is set in this thread."""
        now = state()
        if now not in self._methods:
            with self.skeleton.lock:
                # made-up rows: nobody need hear
                self._methods[now] = quietly(Troubles(), settle, self._ways, self._most)
        return self._methods[now]

    def run(
        self, parameters: Floats, rows: Singles, wanted: Wanted | None, troubles: Troubles
    ) -> tuple[Floats, Ints | None]:
        """Logits (rows, outputs), NaN where user code failed, and the total of clipped gradients in
        grid steps: of rows, or of persons, where it is wanted by person."""
        skeleton = self.skeleton
        logits = np.full((len(rows), skeleton.outputs), np.nan)
        total = None if wanted is None else _total_of(skeleton, wanted)
        with skeleton.lock:
            method, at = self.method, 0
            skeleton.load(parameters)
            for shape in method.chunks(len(rows)):
                part = slice(at, min(at + shape, len(rows)))
                self._try(method, rows, part, wanted, logits, total, troubles)
                at += shape
        if not np.isfinite(logits).all():
            troubles.append("some rows gave NaN or infinite values; they contributed zero")
        return logits, None if total is None else total.steps()

    def _try(
        self,
        method: Method,
        rows: Singles,
        part: slice,
        wanted: Wanted | None,
        logits: Floats,
        total: _Total | _TotalByPerson | None,
        troubles: Troubles,
    ) -> None:
        """A chunk; where user code fails on it, its halves, each filled up: the other rows'
        arithmetic stays what it was."""
        count = part.stop - part.start
        try:
            found = self._chunk(
                method, rows[part], None if wanted is None else wanted.of(part), troubles
            )
        except Exception as error:  # masked on purpose: an error may depend on one private row
            troubles.append(f"{type(error).__name__}: {error}")
            if count > 1:
                middle = part.start + count // 2
                for half in (slice(part.start, middle), slice(middle, part.stop)):
                    self._try(method, rows, half, wanted, logits, total, troubles)
            return
        logits[part] = found.logits
        if total is not None and found.factors is not None:
            total.add(found.parts, found.factors, part)

    def _chunk(
        self, method: Method, rows: Singles, wanted: Wanted | None, troubles: Troubles
    ) -> _Chunk:
        """Rows in the smallest shape that holds them."""
        shape, way, count = next(n for n in method.shapes if len(rows) <= n), method.way, len(rows)
        given = self.skeleton.padded(rows, shape, method.filler)
        if wanted is None:
            return _Chunk(_numbers(way.pieces(given, None, False).logits)[:count], (), None)
        filled = wanted.of(slice(None), shape)
        pieces = way.pieces(given, lambda z: slopes(z, filled), wanted.exact, wanted.scratch)
        by, good = factors(pieces.parts, pieces.logits, filled)
        by[count:] = 0.0
        if not bool(good[:count].all()):
            troubles.append("some rows gave NaN or infinite gradients; they contributed zero")
        return _Chunk(_numbers(pieces.logits)[:count], tuple(pieces.parts), by)


class _Total:
    """Contributions added up, on the grid."""

    def __init__(self, skeleton: Skeleton) -> None:
        self._sum = torch.zeros(skeleton.size, dtype=torch.float64, device=skeleton.device)
        self._steps = torch.zeros(skeleton.size, dtype=torch.int64, device=skeleton.device)
        self._rows = 0

    def add(self, parts: tuple[GradientPiece, ...], factors: torch.Tensor, rows: slice) -> None:
        """What the rows at these places add."""
        count = rows.stop - rows.start
        if self._rows + count > MOST_FLOATS:
            self._flush()
        for part in parts:
            part.add(factors, self._sum)
        self._rows += count

    def steps(self) -> Ints:
        self._flush()
        found: Ints = self._steps.cpu().numpy()
        return found

    def _flush(self) -> None:
        self._steps += torch.round(self._sum).to(torch.int64)
        self._sum.zero_()
        self._rows = 0


class _TotalByPerson:
    """The same of persons: a person's rows are added as whole numbers, from chunk to chunk, and only
    then is their sum clipped.

    Rows stand person by person. A sum of at most 2^12 rows of one chunk is exact in float64, and
    chunks are added as int64.
    """

    def __init__(self, skeleton: Skeleton, persons: Ints, limit: float) -> None:
        self._persons, self._limit = persons, limit
        self._piece = torch.zeros(skeleton.size, dtype=torch.float64, device=skeleton.device)
        self._person = np.zeros((1, skeleton.size), np.int64)
        self._out = np.zeros((1, skeleton.size), np.int64)
        self._open: int | None = None  # whose rows `_person` is made of

    def add(self, parts: tuple[GradientPiece, ...], factors: torch.Tensor, rows: slice) -> None:
        """What the rows at these places add: they come in their order."""
        for part in parts:
            part.scale(factors)
        mine = self._persons[rows]
        cuts = [0, *(1 + np.flatnonzero(mine[1:] != mine[:-1])).tolist(), len(mine)]
        for first, last in itertools.pairwise(cuts):
            if self._open is not None and self._open != mine[first]:
                self._close()
            self._open = int(mine[first])
            for part in parts:
                part.add_rows(first, last, self._piece)
            self._person[0] += self._piece.cpu().numpy().astype(np.int64)
            self._piece.zero_()

    def steps(self) -> Ints:
        self._close()
        found: Ints = self._out[0]
        return found

    def _close(self) -> None:
        close_person(self._person, self._limit, self._out)
        self._open = None


def _total_of(skeleton: Skeleton, wanted: Wanted) -> _Total | _TotalByPerson:
    if wanted.persons is None:
        return _Total(skeleton)
    return _TotalByPerson(skeleton, wanted.persons, wanted.most / wanted.unit)


def _numbers(logits: torch.Tensor) -> Floats:
    return np.asarray(logits.detach().cpu().numpy(), np.float64)


__all__ = ["Engine", "Wanted", "Way", "engine"]
