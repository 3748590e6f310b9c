"""Rows that share a chunk, and bits that are a row's own: chunks of a few fixed shapes, each tried
on made-up rows.

What a library of linear algebra makes of a row may depend on how many rows there are, on the row's
place among them, and on their numbers: another order of a sum, the scalar end of a vector loop,
another path for huge numbers. A row whose pre-activations are rounding noise then has another
gradient with and without a neighbour, and each such row moves a clipped sum by up to two clips. So
rows go through a module in chunks of public shapes only, filled up by a public row. A way and a
shape are used only where all of this holds on made-up rows and parameters, to the bit:

- what each layer makes of a row, its slopes, pieces of gradients, norms and factors are the same in
  every shape that is used;
- and at other places: all rows moved by one place, mixed, and one row at all places at once;
- and beside others: zeros, tiny, huge and infinite numbers, NaN.

Sums in another order differ in a good part of all random numbers, and all places and thousands of
numbers are compared. Ends of vector loops differ in few (of torch 2.13's sigmoid 3 %): shapes are
multiples of two vectors, also where threads split a layer's numbers (`smooth`). Where nothing
passes, rows go one by one, which is by itself a function of the row.

All of it is public: the module, this machine, torch and its number of threads. It is found when a
pass first needs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ..._types import Ints, Singles
from ...models.torch_network import Skeleton, probes
from .torch_parts import Built, GradientPiece, Looked, Product
from .torch_wanted import Wanted, factors, slopes
from .torch_ways import ROW_BY_ROW, Way

# rows: two vectors of 16 numbers, so that no count of numbers of such a chunk leaves a scalar end
LEAST = 32
MOST = 1 << 11
SPLIT = 1 << 15  # numbers from which torch shares an operation on each of them among threads
OVERHEAD = 1 << 17  # numbers of rows that take as long as beginning another chunk
# of companions' numbers
SIZES = (0.0, 1e-30, -1e-30, 1.0), (1e4, -1e6, 1e30), (np.inf, -np.inf, np.nan)


@dataclass(frozen=True, eq=False)
class Method:
    """A way, and the shapes of its chunks, rising. `filler`: the public row behind rows that do not
    fill one."""

    way: Way
    shapes: tuple[int, ...]
    filler: Singles

    def chunks(self, rows: int) -> list[int]:
        """The shapes that hold this many rows."""
        more = rows % self.shapes[-1]
        return [self.shapes[-1]] * (rows // self.shapes[-1]) + (self._rest(more)[1] if more else [])

    def _rest(self, rows: int) -> tuple[int, list[int]]:
        """Of one chunk, or a full smaller one and what is left, that which takes less time."""
        overhead = OVERHEAD // self.way.skeleton.numbers_per_row
        at = next(i for i, shape in enumerate(self.shapes) if rows <= shape)
        whole = (self.shapes[at] + overhead, [self.shapes[at]])
        if at == 0:
            return whole
        fit = rows // self.shapes[at - 1] * self.shapes[at - 1]
        count = fit // self.shapes[at - 1]
        cost, more = self._rest(rows - fit) if rows > fit else (0, [])
        return min(whole, (fit + count * overhead + cost, [self.shapes[at - 1]] * count + more))


def state() -> tuple[Any, ...]:
    """What torch's arithmetic hangs on besides the module and the shape: a method is found anew
    where it is another."""
    return (
        torch.get_num_threads(),
        torch.get_float32_matmul_precision(),
        torch.backends.mkldnn.enabled,
    )


def settle(ways: Sequence[Way], most: int) -> Method:
    """The first way whose rows are alone in chunks of up to `most` rows; else that with the largest
    chunks."""
    trial = Trial.of(ways[0].skeleton, most)
    for name in dict.fromkeys(way.name for way in ways if way.name != ROW_BY_ROW):
        best: tuple[Way | None, tuple[int, ...]] = (None, ())
        for way in (way for way in ways if way.name == name):
            shapes = trial.passed(way) if trial is not None else ()
            if shapes and (not best[1] or shapes[-1] > best[1][-1]):
                best = way, shapes
            if trial is not None and shapes and shapes[-1] == trial.shapes[-1]:
                break
        if best[0] is not None and trial is not None:
            return Method(best[0], best[1], trial.filler)
    return Method(ways[-1], (1,), np.zeros(ways[0].skeleton.width, np.float32))


def ladder(most: int, threads: int) -> tuple[int, ...]:
    """Shapes up to about `most` rows, rising: fours where they are many, else twos.

    Where the threads are no power of two also shapes that they share evenly.
    """
    odd = threads
    while odd % 2 == 0:
        odd //= 2
    found: set[int] = set()
    for least in {LEAST, LEAST * odd}:
        top = least
        while 2 * top <= min(most, MOST):
            top *= 2
        step = 4 if top > 16 * least else 2
        while top > least:
            found.add(top)
            top //= step
        found.add(least)
    return tuple(sorted(found))


def smooth(shape: int, sizes: Sequence[int], threads: int) -> bool:
    """Whether no thread's share of a layer's numbers ends within two vectors, where one of `sizes`
    is a row's numbers."""
    for size in sizes:
        shares = min(threads, -(-shape * size // SPLIT))
        if shares > 1 and shape * size % (shares * LEAST):
            return False
    return True


@dataclass(frozen=True, eq=False)
class Trial:
    """Made-up rows that a module takes, with labels and costs, and the public row that fills
    chunks."""

    skeleton: Skeleton
    rows: Singles
    wanted: Wanted
    filler: Singles
    plain: bool  # which parameters: see `_made_up`
    shapes: tuple[int, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def of(skeleton: Skeleton, most: int) -> Trial | None:
        """None where the module takes no chunk of a public row."""
        shapes, rng = ladder(most, torch.get_num_threads()), np.random.default_rng(23)
        labels = rng.integers(0, skeleton.classes, shapes[-1])
        wanted = Wanted(
            1.0,
            2.0**-37,
            True,
            1.7,
            0.8,
            labels,
            rng.normal(size=(shapes[-1], skeleton.outputs)),
            None,
        )
        for rows in probes(skeleton.width, rows=shapes[-1]):
            for filler in (np.zeros_like(rows[0]), rows[0].copy()):
                for plain in (True, False):
                    try:
                        with _made_up(skeleton, plain):
                            sizes, _ = _sizes(
                                skeleton, np.repeat(filler[np.newaxis], LEAST, axis=0)
                            )
                            _, finite = _sizes(skeleton, rows[:LEAST])
                    except Exception:  # modules that take no such rows
                        continue
                    if 2 * finite > LEAST:
                        return Trial(skeleton, rows, wanted, filler, plain, shapes, sizes)
        return None

    def passed(self, way: Way) -> tuple[int, ...]:
        """The shapes in which every row is alone."""
        with _made_up(self.skeleton, self.plain):
            return self._passed(way)

    def _passed(self, way: Way) -> tuple[int, ...]:
        out: list[int] = []
        truth, known, threads = np.zeros(self.shapes[-1], np.int64), 0, torch.get_num_threads()
        for shape in self.shapes:
            if not smooth(shape, self.sizes, threads):
                continue
            try:
                found, good = self._prints(way, np.arange(shape))
            except Exception:  # whatever torch cannot do
                return ()
            if (found[:known] == truth[:known])[good[:known]].all() and self._alone(
                way, found, good
            ):
                truth[:shape], known = found, shape
                out.append(shape)
        return tuple(out)

    def _alone(self, way: Way, truth: Ints, good: npt.NDArray[np.bool_]) -> bool:
        """The rows of one shape, at other places and beside others."""
        for order in _orders(len(truth)):
            found, _ = self._prints(way, order)
            if not (found == truth[order])[good[order]].all():
                return False
        rng = np.random.default_rng(29)
        for sizes in SIZES:
            others = rng.random(len(truth)) < 0.5
            try:
                found, _ = self._prints(
                    way, np.arange(len(truth)), others, rng.choice(sizes, len(truth))
                )
            except Exception:  # a module that refuses such rows: they share no chunk with others
                continue
            if not (found == truth)[good & ~others].all():
                return False
        return True

    def _prints(
        self, way: Way, order: Any, others: object = None, sizes: Any = None
    ) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """One number of 64 bits for all that is found of each row, and which rows hold numbers."""
        rows, wanted = self.rows[order], self.wanted.of(order)
        if others is not None:
            with np.errstate(all="ignore"):
                rows[others] = (
                    np.where(rows[others] == 0.0, 1.0, rows[others]) * sizes[others, np.newaxis]
                ).astype(np.float32)
        given = self.skeleton.padded(rows)
        with _printed(self.skeleton, len(rows), way.name == "by layers") as found:
            pieces = way.pieces(given, lambda z: slopes(z, wanted), True)
        if not found:  # inside torch.func tensors hold no numbers
            with _printed(self.skeleton, len(rows), True) as found:
                way.pieces(given, None, True)
        seen = [
            tensor
            for call in pieces.calls
            for tensor in (call.given, call.slopes)
            if tensor is not None
        ]
        found += [_print(tensor, len(rows)) for tensor in (pieces.logits.detach(), *seen)]
        found += [print_of(part) for part in pieces.parts]
        factor, good = factors(pieces.parts, pieces.logits, wanted)
        found.append(_print(factor, len(rows)))
        total = torch.zeros_like(found[0])
        for one in found:
            total = total * 0x5851F42D4C957F2D + one
        return total.cpu().numpy(), good.cpu().numpy()


def _orders(shape: int) -> Iterator[Any]:
    rng = np.random.default_rng(31)
    yield np.roll(np.arange(shape), 1)
    yield np.full(shape, shape // 3)
    yield rng.permutation(shape)


@contextmanager
def _made_up(skeleton: Skeleton, plain: bool) -> Iterator[None]:
    """Parameters, frozen ones too, at which no neuron is dead and no bias drowns what rows add:
    other orders show there.

    Not `plain`: near those that were handed in, for modules that are not finite at others.
    """
    rng = np.random.default_rng(37)
    frozen = [p for p in skeleton.module.parameters() if not p.requires_grad] if plain else []
    before = [p.detach().clone() for p in frozen]
    if plain:
        skeleton.load(np.concatenate([_draw(shape, rng).ravel() for shape in skeleton.shapes]))
    else:
        skeleton.load(skeleton.start + 0.03 * rng.normal(size=skeleton.size))
    try:
        with torch.no_grad():
            for p in frozen:
                p.copy_(torch.from_numpy(_draw(tuple(p.shape), rng)))
        yield
    finally:
        with torch.no_grad():
            for p, kept in zip(frozen, before, strict=True):
                p.copy_(kept)


def _draw(shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Of a size that sums over a layer's inputs keep; of a bias, 1."""
    return np.asarray(rng.normal(size=shape) / math.sqrt(math.prod(shape[1:])))


@contextmanager
def _printed(skeleton: Skeleton, rows: int, on: bool) -> Iterator[list[torch.Tensor]]:
    """Inside, all that the module's parts give is printed; a step in place may change it
    afterwards."""
    found: list[torch.Tensor] = []

    def note(module: object, given: object, out: object) -> None:
        if isinstance(out, torch.Tensor) and out.numel() % rows == 0:
            found.append(_print(out.detach(), rows))

    leaves = [module for module in skeleton.module.modules() if not list(module.children())]
    hooks = [module.register_forward_hook(note) for module in leaves if on]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _sizes(skeleton: Skeleton, rows: Singles) -> tuple[tuple[int, ...], int]:
    """How many numbers of a row the module's parts read and give; and of how many rows the logits
    are finite."""
    found = {skeleton.width}

    def note(module: object, given: tuple[object, ...], out: object) -> None:
        found.update(t.numel() // len(rows) for t in (*given, out) if isinstance(t, torch.Tensor))

    hooks = [module.register_forward_hook(note) for module in skeleton.module.modules()]
    try:
        with torch.no_grad():
            logits = skeleton.logits(skeleton.padded(rows))
    finally:
        for hook in hooks:
            hook.remove()
    return tuple(sorted(found)), int(torch.isfinite(logits).all(dim=1).sum())


def print_of(part: GradientPiece) -> torch.Tensor:
    """One number of 64 bits for what a part holds of each row."""
    if isinstance(part, Product):
        return sum((_print(t, len(part.up)) for t in part.seen()), start=torch.tensor(0))
    if isinstance(part, Built):
        return _print(part.pieces, len(part.pieces))
    assert isinstance(part, Looked)
    at = part.line.unsqueeze(1) * part.values.shape[1] + torch.arange(
        part.values.shape[1], device=part.line.device
    )
    lines = (_bits(part.values) * (2 * at + 1) * 0x14057B7EF767814F).sum(
        dim=1
    ) + part.line * 0x27BB2EE687B0B0FD
    return torch.zeros(part.rows, dtype=torch.int64, device=lines.device).index_add_(
        0, part.row, lines
    )


def _print(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    bits = _bits(tensor.reshape(rows, -1))
    return (bits * _keys(bits.shape[1]).to(bits.device)).sum(dim=1)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Zero and minus zero alike: they add nothing."""
    if not tensor.is_floating_point():
        return tensor.long()
    plain = (tensor + 0.0).contiguous()
    return plain.view(torch.int64 if plain.dtype == torch.float64 else torch.int32).long()


@lru_cache(maxsize=64)
def _keys(numbers: int) -> torch.Tensor:
    rng = np.random.default_rng(numbers)
    return torch.from_numpy(rng.integers(-(2**63), 2**63 - 1, numbers) | 1)
