"""Clipped gradient sums of torch modules, in chunks of rows of a few fixed, public shapes. Where all
trainable parameters are of dense layers and plain convolutions, a row's gradient is found of a layer's
inputs a and the slopes d of its outputs: that of a dense weight is d a', its norm |d| |a|, and it is
never built (after Goodfellow 2015). Else each row's gradient is found by `torch.func.vmap`; row by
row where that fails.

A row's contribution is put on a grid, as theory.md#sums asks. The grid's step is u; a row's gradient
is at most 2^36 u. What is built has each of its n numbers rounded to u itself, which adds sqrt(n) / 2
steps to its norm at most. Of d a', a is rounded to whole multiples A of 2^(e - 16), where the largest
|a| lies between 2^(e - 1) and 2^e, and d times the row's factor to whole multiples D of u / 2^(e -
16): the norm is that of the rounded a, and rounding D adds sqrt(in x out) 2^15 steps at most. So
|A D| <= 2^37. Sums over a chunk's rows, at most 2^15, are whole and below 2^52, so float64 has them
exactly, in any order; these are added as int64, modulo 2^64. Noise is added to that remainder,
which is then a function of the noisy total and as private as that is.

What a library of linear algebra makes of a row may depend on how many rows there are, on the row's
place among them, and on their numbers. A row whose pre-activations are rounding noise then has
another gradient with and without a neighbour. So rows go through a module in chunks of public shapes
only, filled up by a public row, and a way and a shape are used only where made-up rows, at made-up
parameters, have the same logits and gradients to the bit in every shape that is used, at other
places (moved by one, mixed, one row at all of them), and beside zeros, tiny, huge and infinite
numbers and NaN. All places and thousands of numbers are compared, so sums in another order show.
Ends of vector loops differ in few numbers: shapes are multiples of two vectors, also where threads
split a layer's numbers (`is_smooth`). All of it is public: the module, this machine, torch and its
number of threads.

Guarantee (tests/curator/test_curator_torch.py):
1. What a row adds, and its logits, are a function of that row, the parameters and public constants:
   not of how many rows share its pass, of their numbers, errors or NaN, nor of its place. Taking
   away a row takes away its contribution, to the last step.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from ..kernels import close_person
from ..layout import Array, Floats, Ints, Singles
from ..quiet import Troubles, quietly

CHUNK_NUMBERS = 1 << 25
"""float32 numbers of one chunk: inputs, outputs and gradients of its rows."""
LEAST, MOST = 32, 1 << 11
"""Rows of a chunk: two vectors of 16 numbers, so that no count of numbers leaves a scalar end."""
SPLIT = 1 << 15
"""Numbers from which torch shares an operation on each of them among threads."""
LINE = 16
"""float32 numbers of a cache line, where torch's own memory begins."""
SIZES = (0.0, 1e-30, -1e-30, 1.0), (1e4, -1e6, 1e30), (np.inf, -np.inf, np.nan)
"""Of the numbers of made-up companions."""
AGREE = 1e-3
"""Relative, of float32 gradients that were found in two ways."""

A_BITS = 16
"""Of an input's largest number, in a product."""
SMALLEST = 2.0**-60
"""An input all of whose numbers are below counts as this large: its rounding is then absolute."""

Slopes = Callable[[torch.Tensor], torch.Tensor]
"""From logits to the derivative of each row's objective with respect to them."""


class Built:
    """Pieces of rows' gradients that are there, (rows, numbers), from a place of the flat vector on.
    `exact`: on the grid."""

    def __init__(self, pieces: torch.Tensor, start: int, exact: bool) -> None:
        self.pieces, self._start, self._exact = pieces, start, exact

    def seen(self) -> list[torch.Tensor]:
        """All that is found of the rows, each on the first axis."""
        return [self.pieces]

    def squares(self) -> torch.Tensor:
        """The squared norm of every row's piece, float64."""
        return torch.square(torch.linalg.vector_norm(self.pieces.double(), dim=1))

    def scale(self, by: torch.Tensor) -> None:
        """Each row's piece x its factor, in whole numbers where it is exact. Once."""
        pieces = self.pieces.double()
        pieces[by == 0.0] = 0.0
        pieces.mul_(by.unsqueeze(1))
        self.pieces = pieces.round_() if self._exact else pieces

    def add(self, first: int, last: int, out: torch.Tensor) -> None:
        """out += the sum of what is now there of these rows."""
        found = self.pieces[first:last].sum(dim=0)
        out[self._start : self._start + len(found)] += found


class Product:
    """The same of a dense layer, from its inputs (rows, in) and slopes (rows, out). A bias is one
    more input, which is always 1."""

    def __init__(self, a: Any, d: Any, weight: int, bias: int | None, exact: bool) -> None:
        least = SMALLEST if bias is None else 1.0
        top = a.abs().amax(dim=1, keepdim=True).clamp_min(least)
        up = torch.frexp(top).exponent - A_BITS
        # scaled by a power of two: whole numbers of at most 2^16
        self._unit = torch.ldexp(torch.ones_like(top, dtype=torch.float64), up)
        a = a.double() / self._unit
        a = a if bias is None else torch.cat([a, 1.0 / self._unit], dim=1)
        self._a, self._d = a.round_() if exact else a, d.double()
        self._weight, self._bias, self._exact = weight, bias, exact

    def seen(self) -> list[torch.Tensor]:
        return [self._a, self._d, self._unit]

    def squares(self) -> torch.Tensor:
        norms = [torch.linalg.vector_norm(one, dim=1) for one in (self._a, self._d)]
        return torch.square(norms[0] * self._unit[:, 0] * norms[1])

    def scale(self, by: torch.Tensor) -> None:
        self._a[by == 0.0], self._d[by == 0.0], self._unit[by == 0.0] = 0.0, 0.0, 1.0
        self._d.mul_(by.unsqueeze(1) * self._unit)
        if self._exact:
            self._d.round_()

    def add(self, first: int, last: int, out: torch.Tensor) -> None:
        found = self._d[first:last].T @ self._a[first:last]
        width = found.shape[1] - (self._bias is not None)
        out[self._weight : self._weight + len(found) * width] += found[:, :width].reshape(-1)
        if self._bias is not None:
            out[self._bias : self._bias + len(found)] += found[:, width]


class Gradients:
    """Rows' gradients, in pieces."""

    def __init__(self, size: int, pieces: Sequence[Built | Product]) -> None:
        self._size, self.pieces = size, pieces

    def squares(self) -> torch.Tensor:
        """The squared norm of every row's gradient, float64."""
        return torch.stack([one.squares() for one in self.pieces]).sum(dim=0)

    def scale(self, by: torch.Tensor) -> None:
        """Each row's gradient x its factor. Once."""
        for one in self.pieces:
            one.scale(by)

    def total(self, first: int, last: int) -> torch.Tensor:
        """The sum of what is now there of these rows, (parameters,)."""
        device = self.pieces[0].seen()[0].device
        out = torch.zeros(self._size, dtype=torch.float64, device=device)
        for one in self.pieces:
            one.add(first, last, out)
        return out


Found = tuple[torch.Tensor, Gradients | None]
"""Logits (rows, outputs), and gradients."""


@dataclass(frozen=True)
class Wanted:
    """Which gradient sum: all but the rows. `costs` (rows, outputs) and what follows are private
    and stay inside."""

    clip: float
    unit: float
    exact: bool  # on the grid; else where nobody can move the answer
    sharpness: float
    loss_weight: float
    labels: Ints | None
    costs: Floats | None
    weights: Floats | None
    persons: Ints | None = None  # whose each row is, where a person's sum is clipped
    most: float = 0.0  # the norm to which a person's sum is clipped

    def of(self, rows: Any, shape: int = 0) -> Wanted:
        """The same of some rows; with zeros behind them up to `shape` rows."""

        def filled(values: Array | None) -> Any:
            if values is None:
                return None
            own = values[rows]
            if len(own) >= shape:
                return own
            return np.concatenate([own, np.zeros((shape - len(own), *own.shape[1:]), own.dtype)])

        given = {name: filled(getattr(self, name)) for name in ("labels", "costs", "weights")}
        return replace(self, **given)

    def slopes(self, logits: torch.Tensor) -> torch.Tensor:
        """The derivative of each row's objective with respect to its logits. A row of NaN keeps it
        to itself."""
        z = logits.detach().double()
        out, one = torch.zeros_like(z), z.shape[1] == 1
        if self.labels is not None:
            labels = torch.from_numpy(self.labels).to(z.device)
            p = torch.sigmoid(z) if one else torch.softmax(z, dim=1)
            right = labels[:, None] if one else torch.nn.functional.one_hot(labels, z.shape[1])
            out += self.loss_weight * (p - right)
        if self.costs is not None:
            costs, s = torch.from_numpy(self.costs).to(z.device), self.sharpness
            p = torch.sigmoid(s * z) if one else torch.softmax(s * z, dim=1)
            mean = (p * costs).sum(dim=1, keepdim=True)
            out += s * costs * p * (1.0 - p) if one else s * p * (costs - mean)
        return out.to(logits.dtype)

    def scaled(self, found: Found) -> torch.Tensor:
        """Clip each row's gradient, in grid steps; which rows hold numbers: others are zero."""
        logits, gradients = found
        assert gradients is not None
        squares = gradients.squares()
        good = torch.isfinite(logits).all(dim=1) & torch.isfinite(squares)
        factor = torch.clamp(self.clip / torch.sqrt(squares).clamp_min(1e-300), max=1.0)
        if self.weights is not None:
            factor = factor * torch.from_numpy(self.weights).to(factor.device)
        gradients.scale(torch.where(good, factor / self.unit, 0.0))
        return good


# -- ways to find gradients ------------------------------------------------------------------------


class Padded(TorchFunctionMode):
    """Inside, dense layers multiply matrices whose every row begins at the same place of a cache
    line: a library may add up a row's product in another order where the row begins elsewhere in
    memory (with 33 inputs of 4 bytes, at each fourth row). Zeros beside the numbers change no sum."""

    def __torch_function__(
        self, func: Any, types: object, args: Any = (), kwargs: Any = None
    ) -> torch.Tensor:
        if func is not functional.linear:
            out: torch.Tensor = func(*args, **(kwargs or {}))
            return out
        return _linear(*args, **(kwargs or {}))


def _linear(given: Any, weight: Any, bias: Any = None) -> torch.Tensor:
    width, height = -weight.shape[1] % LINE, -weight.shape[0] % LINE
    sides = functional.pad(given, (0, width)), functional.pad(weight, (0, width, 0, height))
    out: torch.Tensor = torch.matmul(sides[0], sides[1].mT)[..., : weight.shape[0]]
    return out if bias is None else out + bias


def known_layers(skeleton: Any) -> dict[nn.Module, tuple[int | None, int | None]]:
    """The dense layers and plain convolutions of images that hold all trainable parameters, with
    the places of weight and bias; none where others do."""
    names = {id(p): name for name, p in skeleton.module.named_parameters() if p.requires_grad}
    out, taken = dict[nn.Module, tuple[int | None, int | None]](), list[int]()
    for layer in skeleton.module.modules():
        own = {k: p for k, p in layer._parameters.items() if p is not None and p.requires_grad}
        if own:
            taken += [id(p) for p in own.values()]
            places = {key: skeleton.places[names[id(p)]][0] for key, p in own.items()}
            known = type(layer) is nn.Linear and "weight" in own
            if type(layer) is nn.Conv2d and not isinstance(layer.padding, str):
                known = layer.groups == 1 and layer.padding_mode == "zeros"
            if not known or len(set(taken)) < len(taken):
                return {}
            out[layer] = places.get("weight"), places.get("bias")
    return out


def rounding_of(skeleton: Any) -> float:
    """What rounding may add to the norm of a row's gradient, in grid steps, whichever way finds
    it."""
    errors = [math.sqrt(skeleton.size) / 2.0]
    for layer, (_, bias) in known_layers(skeleton).items():
        if isinstance(layer, nn.Linear):
            height, width = layer.weight.shape
            errors.append(math.sqrt(height * (width + (bias is not None))) * 2.0 ** (A_BITS - 1))
    return math.hypot(*errors)


def by_layers(skeleton: Any, given: torch.Tensor, slopes: Slopes | None, exact: bool) -> Found:
    """One pass forward and one back to the outputs of layers, each of which is called once, with
    rows on the first axis."""
    layers, calls = known_layers(skeleton), list[tuple[Any, ...]]()

    def note(layer: nn.Module, args: tuple[Any, ...], out: torch.Tensor) -> None:
        edge = torch.autograd.graph.get_gradient_edge(out)  # a step in place may follow
        calls.append((layer, args[0].detach(), edge))

    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        with torch.enable_grad():
            logits = skeleton.logits(given)
    finally:
        for hook in hooks:
            hook.remove()
    once = bool(layers) and len(calls) == len(layers) == len({id(one) for one, *_ in calls})
    plain = all(
        len(a) == len(given) and a.ndim == (2 if isinstance(one, nn.Linear) else 4)
        for one, a, _ in calls
    )
    if not (once and plain):
        raise ValueError("layers that are called once, with rows on the first axis")
    if slopes is None:
        return logits.detach(), None
    edges, pieces = [edge for *_, edge in calls], list[Built | Product]()
    back: Any = torch.autograd.grad(logits, edges, grad_outputs=slopes(logits))
    for (layer, a, _), d in zip(calls, back, strict=True):
        weight, bias = layers[layer]
        if isinstance(layer, nn.Linear):
            assert weight is not None
            pieces.append(Product(a, d, weight, bias, exact))
            continue
        d = d.flatten(2)  # (rows, channels, places)
        if weight is not None:
            ways = (layer.kernel_size, layer.dilation, layer.padding, layer.stride)
            patches = functional.unfold(a, *ways)
            pieces.append(Built(torch.bmm(d, patches.mT).flatten(1), weight, exact))
        if bias is not None:
            pieces.append(Built(d.sum(dim=2), bias, exact))
    return logits.detach(), Gradients(skeleton.size, pieces)


Way = Callable[[Any, torch.Tensor, Slopes | None, bool], Found]
"""From a skeleton, rows as it reads them, slopes (None: logits alone), and whether gradients are put
on the grid."""


def padded(way: Way) -> Way:
    """The same by products of whole lines."""

    def found(skeleton: Any, given: torch.Tensor, slopes: Slopes | None, exact: bool) -> Found:
        with Padded():
            return way(skeleton, given, slopes, exact)

    return found


def by_vmap(skeleton: Any, given: torch.Tensor, slopes: Slopes | None, exact: bool) -> Found:
    """All rows at once."""
    n, named = len(given), skeleton.module.named_parameters()
    parameters = {name: p.detach() for name, p in named if p.requires_grad}

    def one(own: dict[str, torch.Tensor], row: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = skeleton.logits(row.unsqueeze(0), own)[0]
        return logits

    def objective(own: dict[str, torch.Tensor], row: torch.Tensor, slope: Any) -> torch.Tensor:
        found: torch.Tensor = (one(own, row) * slope).sum()
        return found

    with torch.no_grad():
        logits = torch.func.vmap(one, in_dims=(None, 0))(parameters, given)
    if slopes is None:
        return logits, None
    each = torch.func.vmap(torch.func.grad(objective), in_dims=(None, 0, 0))
    found = each(parameters, given, slopes(logits))
    parts = [found[name].reshape(n, -1) for name in skeleton.names]
    return logits, Gradients(skeleton.size, [Built(torch.cat(parts, dim=1), 0, exact)])


def by_row(skeleton: Any, given: torch.Tensor, slopes: Slopes | None, exact: bool) -> Found:
    """Each row by itself, in memory of its own: where it would begin in a chunk's is nothing of the
    row's."""
    inputs = [p for _, p in skeleton.module.named_parameters() if p.requires_grad]
    with torch.enable_grad():
        outs = [skeleton.logits(given[i : i + 1].clone()) for i in range(len(given))]
    logits = torch.cat(outs).detach()
    if slopes is None:
        return logits, None
    gradients, slope = torch.zeros(len(given), skeleton.size, device=given.device), slopes(logits)
    for i, out in enumerate(outs):
        if out.requires_grad:
            own = (slope[i : i + 1].clone(),)
            row: Any = torch.autograd.grad(out, inputs, grad_outputs=own, allow_unused=True)
            flat = [torch.zeros_like(p) if g is None else g for p, g in zip(inputs, row)]  # noqa: B905
            gradients[i] = torch.cat([g.reshape(-1) for g in flat])
    return logits, Gradients(skeleton.size, [Built(gradients, 0, exact)])


WAYS: dict[str, Way] = {
    "layers": by_layers,
    "padded layers": padded(by_layers),
    "vmap": by_vmap,
    "padded vmap": padded(by_vmap),
    "row by row": by_row,
}
"""The fastest first."""


@contextmanager
def _settings(device: torch.device) -> Iterator[None]:
    """On a GPU no algorithm is chosen by the clock, nor one whose sums have no order."""
    now = torch.backends.cudnn
    if device.type != "cuda":
        yield
    else:
        fixed = {"enabled": now.enabled, "allow_tf32": now.allow_tf32}
        with now.flags(benchmark=False, deterministic=True, **fixed):
            yield


# -- the trial -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Method:
    """A way, and the shapes of its chunks, rising. `filler`: the public row behind rows that do not
    fill one."""

    way: str
    shapes: tuple[int, ...]
    filler: Singles

    def chunks(self, rows: int) -> Iterator[slice]:
        """Runs of rows, each of at most one shape: the largest, and for the rest the smallest that
        holds it."""
        for a in range(0, rows, self.shapes[-1]):
            yield slice(a, min(rows, a + self.shapes[-1]))


def is_smooth(shape: int, sizes: Sequence[int], threads: int) -> bool:
    """Whether no thread's share of a layer's numbers ends within two vectors, where one of `sizes`
    is a row's numbers."""
    for size in sizes:
        shares = min(threads, -(-shape * size // SPLIT))
        if shares > 1 and shape * size % (shares * LEAST):
            return False
    return True


def shapes_up_to(most: int, threads: int) -> list[int]:
    """Shapes up to about `most` rows, rising by fours; where the threads are no power of two they
    share them evenly."""
    shape, out = LEAST * (threads // (threads & -threads)), list[int]()
    while not out or shape <= min(most, MOST):
        out.append(shape)
        shape *= 4
    return out


class Trial:
    """Made-up rows that a module takes at made-up parameters, with labels and costs, and the public
    row that fills chunks."""

    def __init__(self, skeleton: Any, rows: Singles, filler: Singles) -> None:
        self._skeleton, self._rows, self.filler = skeleton, rows, filler
        rng = np.random.default_rng(23)
        labels = rng.integers(0, skeleton.classes, len(rows))
        costs = rng.normal(size=(len(rows), skeleton.outputs))
        self._wanted = Wanted(1.0, 2.0**-37, True, 1.7, 0.8, labels, costs, None)
        self._sizes = self._numbers()

    def gradients(self, way: str, order: Any, rows: Singles | None = None) -> Found:
        """Logits and gradients of the rows at `order`, or of others in their places."""
        given = self._skeleton.padded(self._rows[order] if rows is None else rows)
        with _settings(self._skeleton.device):
            return WAYS[way](self._skeleton, given, self._wanted.of(order).slopes, True)

    def found(self, way: str, order: Any, rows: Singles | None = None) -> tuple[Any, Any]:
        """The bits of each row's logits, gradient and norm, zero and minus zero alike; and which
        rows hold numbers."""
        logits, gradients = self.gradients(way, order, rows)
        assert gradients is not None
        squares = gradients.squares().unsqueeze(1)
        parts = [tensor for piece in gradients.pieces for tensor in piece.seen()]
        seen = [(one + 0.0).contiguous() for one in (logits, *parts, squares)]
        bits = torch.cat([one.view(torch.int32) for one in seen], dim=1)
        return bits, torch.isfinite(logits).all(dim=1) & torch.isfinite(squares[:, 0])

    def passed(self, way: str, most: int) -> tuple[int, ...]:
        """The shapes in which every row is alone."""
        out, truth, threads = list[int](), None, torch.get_num_threads()
        for shape in shapes_up_to(min(most, len(self._rows)), threads):
            if not is_smooth(shape, self._sizes, threads):
                continue
            order = np.arange(shape)
            try:
                found, good = self.found(way, order)
            except Exception:  # whatever torch cannot do
                return ()
            known = truth is None or bool((found[: len(truth)] == truth)[good[: len(truth)]].all())
            if known and self._is_alone(way, order, found, good):
                truth = found
                out.append(shape)
        return tuple(out)

    def _is_alone(self, way: str, order: Ints, truth: Any, good: Any) -> bool:
        """The rows of one shape, at other places and beside others."""
        n, rng = len(order), np.random.default_rng(29)
        for other in (np.roll(order, 1), np.full(n, n // 3), rng.permutation(n)):
            found, _ = self.found(way, other)
            if not bool((found == truth[other])[good[other]].all()):
                return False
        for sizes in SIZES:
            beside, rows = rng.random(n) < 0.5, self._rows[order].copy()
            plain = np.where(rows[beside] == 0.0, 1.0, rows[beside])
            with np.errstate(all="ignore"):
                rows[beside] = plain * rng.choice(sizes, (int(beside.sum()), 1)).astype(np.float32)
            try:
                found, _ = self.found(way, order, rows)
            except Exception:  # a module that refuses such rows: they share no chunk with others
                continue
            mine = good & torch.from_numpy(~beside).to(good.device)
            if not bool((found == truth)[mine].all()):
                return False
        return True

    def _numbers(self) -> tuple[int, ...]:
        """How many numbers of a row the module's parts read and give."""
        sizes = {self._skeleton.width}

        def note(module: object, given: tuple[object, ...], out: object) -> None:
            some = (t for t in (*given, out) if isinstance(t, torch.Tensor))
            sizes.update(t.numel() // LEAST for t in some)

        hooks = [m.register_forward_hook(note) for m in self._skeleton.module.modules()]
        try:
            with torch.no_grad():
                logits = self._skeleton.logits(self._skeleton.padded(self._rows[:LEAST]))
                filled = np.repeat(self.filler[np.newaxis], LEAST, axis=0)
                self._skeleton.logits(self._skeleton.padded(filled))
        finally:
            for hook in hooks:
                hook.remove()
        if not 2 * int(torch.isfinite(logits).all(dim=1).sum()) > LEAST:
            raise ValueError("made-up rows that are finite")
        return tuple(sorted(sizes))


def settle(skeleton: Any, most: int) -> Method:
    """The first way that finds the gradients of rows one by one, and whose rows are alone, in chunks
    of up to `most` rows."""
    for rows in skeleton.probes(max(LEAST * torch.get_num_threads(), min(most, MOST))):
        for filler, plain in itertools.product((np.zeros_like(rows[0]), rows[0].copy()), (1, 0)):
            with _made_up(skeleton, plain=bool(plain)):
                try:
                    trial = Trial(skeleton, rows, filler)
                except Exception:  # a module that takes no such rows
                    continue
                for way in list(WAYS)[:-1]:
                    shapes = trial.passed(way, most) if _agrees(trial, way) else ()
                    if shapes:
                        return Method(way, shapes, filler)
            return Method("row by row", (1,), filler)
    return Method("row by row", (1,), np.zeros(skeleton.width, np.float32))


def _agrees(trial: Trial, way: str) -> bool:
    """Whether a way finds the gradients that are found row by row."""
    order = np.arange(3)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sums = [_rows(trial.gradients(one, order)) for one in (way, "row by row")]
    except Exception:  # whatever torch cannot do: the next way is tried
        return False
    largest = float(sums[1].norm(dim=1).max())
    return bool((sums[0] - sums[1]).norm(dim=1).max() <= AGREE * (1e-6 + largest))


def _rows(found: Found) -> torch.Tensor:
    """Three rows' gradients, each by itself."""
    assert found[1] is not None
    found[1].scale(torch.full((3,), 2.0**30, dtype=torch.float64, device=found[0].device))
    return torch.stack([found[1].total(i, i + 1) for i in range(3)]) * 2.0**-30


@contextmanager
def _made_up(skeleton: Any, *, plain: bool) -> Iterator[None]:
    """Parameters, frozen ones too, at which no neuron is dead and no bias drowns what rows add:
    other orders show there. Not `plain`: near those that were handed in, for modules that are not
    finite at others."""
    rng = np.random.default_rng(37)

    def draw(shape: tuple[int, ...]) -> Floats:
        """Of a size that sums over a layer's inputs keep; of a bias, 1."""
        return np.asarray(rng.normal(size=shape) / math.sqrt(math.prod(shape[1:])))

    frozen = [p for p in skeleton.module.parameters() if not p.requires_grad] if plain else []
    before = [p.detach().clone() for p in frozen]
    if plain:
        skeleton.load(np.concatenate([draw(shape).ravel() for shape in skeleton.shapes]))
    else:
        skeleton.load(skeleton.start + 0.03 * rng.normal(size=skeleton.size))
    try:
        with torch.no_grad():
            for p in frozen:
                p.copy_(torch.from_numpy(draw(tuple(p.shape))))
        yield
    finally:
        with torch.no_grad():
            for p, kept in zip(frozen, before, strict=True):
                p.copy_(kept)


# -- the pass --------------------------------------------------------------------------------------


def engine(skeleton: Any) -> Engine:
    """The engine of a skeleton, made once."""
    if "engine" not in skeleton.kept:
        with skeleton.lock:
            skeleton.kept["engine"] = Engine(skeleton)
    found: Engine = skeleton.kept["engine"]
    return found


class Engine:
    """How the gradients of one skeleton are found, in chunks of how many rows: tried once for each
    number of threads and the like that torch's arithmetic hangs on besides module and shape."""

    def __init__(self, skeleton: Any) -> None:
        self.skeleton = skeleton
        self._methods: dict[Any, Method] = {}

    @property
    def method(self) -> Method:
        """The way and the shapes of chunks, for torch as it is set in this thread."""
        precision, library = torch.get_float32_matmul_precision(), torch.backends.mkldnn
        now = (torch.get_num_threads(), precision, library.enabled)
        if now not in self._methods:
            most = CHUNK_NUMBERS // (self.skeleton.numbers_per_row + self.skeleton.size)
            with self.skeleton.lock:  # made-up rows: nobody need hear
                self._methods[now] = quietly(Troubles(), settle, self.skeleton, most)
        return self._methods[now]

    def run(
        self, parameters: Floats, rows: Singles, wanted: Wanted | None, troubles: Troubles
    ) -> tuple[Floats, Ints | None]:
        """Logits (rows, outputs), NaN where user code failed, and the total of clipped gradients in
        grid steps: of rows, or of persons, where it is wanted by person."""
        skeleton = self.skeleton
        logits = np.full((len(rows), skeleton.outputs), np.nan)
        total = None if wanted is None else Total(skeleton, wanted)
        with skeleton.lock:
            method = self.method
            skeleton.load(parameters)
            for part in method.chunks(len(rows)):
                self._try(method, rows, part, wanted, logits, total, troubles)
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
        total: Total | None,
        troubles: Troubles,
    ) -> None:
        """A chunk; where user code fails on it, its halves, each filled up: the other rows'
        arithmetic stays what it was."""
        count = part.stop - part.start
        shape = next(n for n in method.shapes if count <= n)
        given = self.skeleton.padded(rows[part], shape, method.filler)
        filled = None if wanted is None else wanted.of(part, shape)
        slopes = None if filled is None else filled.slopes
        try:
            with _settings(self.skeleton.device):
                exact = filled is None or filled.exact
                found = WAYS[method.way](self.skeleton, given, slopes, exact)
            if filled is not None:
                good = filled.scaled(found)
                if not bool(good[:count].all()):
                    troubles.append(
                        "some rows gave NaN or infinite gradients; they contributed zero"
                    )
        except Exception as error:  # masked on purpose: an error may depend on one private row
            troubles.append(f"{type(error).__name__}: {error}")
            if count > 1:
                middle = part.start + count // 2
                for half in (slice(part.start, middle), slice(middle, part.stop)):
                    self._try(method, rows, half, wanted, logits, total, troubles)
            return
        logits[part] = found[0].detach().cpu().numpy()[:count]
        if total is not None and found[1] is not None:
            total.add(found[1], part)


class Total:
    """Contributions added up on the grid. Of persons, whose rows stand one after another: a person's
    rows are added as whole numbers, from chunk to chunk, and only then is their sum clipped."""

    def __init__(self, skeleton: Any, wanted: Wanted) -> None:
        kind: dict[str, Any] = {"dtype": torch.int64, "device": skeleton.device}
        self._sum, self._out = (
            torch.zeros(skeleton.size, **kind),
            np.zeros((1, skeleton.size), np.int64),
        )
        self._persons, self._limit = wanted.persons, wanted.most / wanted.unit
        self._person, self._open = np.zeros_like(self._out), -1  # whose rows it is made of

    def add(self, found: Gradients, rows: slice) -> None:
        """What the rows at these places add: they come in their order."""
        count = rows.stop - rows.start
        if self._persons is None:
            self._sum += torch.round(found.total(0, count)).to(torch.int64)
            return
        whose = self._persons[rows]
        cuts = [0, *(1 + np.flatnonzero(whose[1:] != whose[:-1])).tolist(), count]
        for first, last in itertools.pairwise(cuts):
            if whose[first] != self._open:
                self._close()
            self._open = whose[first]
            self._person[0] += found.total(first, last).cpu().numpy().astype(np.int64)

    def steps(self) -> Ints:
        """The total."""
        self._close()
        found: Ints = self._out[0] + self._sum.cpu().numpy()
        return found

    def _close(self) -> None:
        close_person(self._person, self._limit, self._out)
