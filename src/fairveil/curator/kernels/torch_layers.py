"""What a layer's calls say about rows' gradients: inputs and slopes made into parts, whose norms
and clipped sums are found.

See `torch_gradient` for the formulas, the grid and its bits. A part holds one piece of the gradient
for every row of a chunk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ...models.torch_network import Skeleton, probes
from . import layers as kernels_layers

A_BITS = 16  # of an input's largest number, in a product
MOST_SCRATCH = 1 << 24  # numbers that are kept: a knob of speed only
# an input all of whose numbers are below counts as this large: its rounding is then absolute
SMALLEST = 2.0**-60


class Scratch:
    """Memory for the numbers of one chunk, used again for the next: fresh pages cost as much as
    what is written on them.

    It holds private numbers, so it belongs to the curator's own pass, never to a module or an
    engine.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[int, str], torch.Tensor] = {}

    def take(
        self, name: tuple[int, str], rows: int, width: int, device: torch.device
    ) -> torch.Tensor:
        """(rows, width) float64 of anything. What was taken under that name before is written
        over."""
        held = self._held.get(name)
        if held is None or held.numel() < rows * width or held.device != device:
            if rows * width > MOST_SCRATCH:
                return torch.empty(rows, width, dtype=torch.float64, device=device)
            held = self._held[name] = torch.empty(
                rows * width * 9 // 8, dtype=torch.float64, device=device
            )
        return held[: rows * width].view(rows, width)


class Part:
    """A piece of every row's gradient, at some place of the flat vector. Abstract."""

    def squares(self) -> torch.Tensor:
        """The squared norm of every row's piece, float64."""
        raise NotImplementedError

    def drop(self, bad: torch.Tensor) -> None:
        """Rows that hold no numbers become zero."""
        raise NotImplementedError

    def add(self, factors: torch.Tensor, total: torch.Tensor) -> None:
        """total += sum over rows of factor x piece, each rounded to whole numbers first where the
        part is exact. Once."""
        raise NotImplementedError


class Product(Part):
    """d a' of one dense position: inputs (rows, in), slopes (rows, out). A bias is one more input,
    which is always 1.

    On a CPU the whole numbers are made by `kernels_layers`, in one pass: the same ones.
    """

    def __init__(
        self,
        inputs: torch.Tensor,
        slopes: torch.Tensor,
        weight: int,
        bias: int | None = None,
        exact: bool = True,
        scratch: Scratch | None = None,
    ) -> None:
        rows, width = inputs.shape
        self.weight, self.bias, self.exact = weight, bias, exact
        self.compiled = (
            exact
            and inputs.device.type == "cpu"
            and inputs.dtype == torch.float32
            and slopes.is_contiguous()
        )
        room = scratch if scratch is not None and self.compiled else Scratch()
        self.a = room.take((weight, "a"), rows, width + (bias is not None), inputs.device)
        self.d = (
            room.take((weight, "d"), rows, slopes.shape[1], inputs.device).copy_(slopes)
            if self.compiled
            else slopes.double()
        )
        if self.compiled:
            self.up = torch.empty(rows, dtype=torch.float64)
            self.norms = torch.empty(rows, dtype=torch.float64)
            least = np.float32(SMALLEST if bias is None else 1.0).view(np.int32)
            given = (inputs.contiguous().numpy(), int(least), A_BITS, width)
            kernels_layers.whole_numbers(
                *given, self.a.numpy(), self.up.numpy(), self.norms.numpy(), 0, rows
            )
            return
        if exact:
            top = (
                inputs.abs().amax(dim=1, keepdim=True).clamp_min(SMALLEST if bias is None else 1.0)
            )
            up = torch.frexp(top).exponent - A_BITS
            # whole numbers of at most 2^16
            self.a[:, :width] = (inputs * torch.ldexp(torch.ones_like(top), -up)).round_()
            self.up = torch.ldexp(
                torch.ones(rows, dtype=torch.float64, device=inputs.device), up[:, 0]
            )
        else:
            self.a[:, :width], self.up = (
                inputs,
                torch.ones(rows, dtype=torch.float64, device=inputs.device),
            )
        if bias is not None:
            # a power of two, exactly, unless all others are above 2^16
            self.a[:, width] = torch.round(1.0 / self.up)
        self.norms = torch.linalg.vector_norm(self.a, dim=1)

    def squares(self) -> torch.Tensor:
        return torch.square(self.norms * self.up * torch.linalg.vector_norm(self.d, dim=1))

    def drop(self, bad: torch.Tensor) -> None:
        self.a[bad], self.d[bad], self.up[bad] = 0.0, 0.0, 1.0

    def add(self, factors: torch.Tensor, total: torch.Tensor) -> None:
        by = factors * self.up
        if self.compiled:
            kernels_layers.scaled(self.d.numpy(), by.numpy(), 0, len(by))
        else:
            self.d.mul_(by.unsqueeze(1))
            if self.exact:
                self.d.round_()
        found = self.d.T @ self.a
        height, width = found.shape[0], found.shape[1] - (self.bias is not None)
        total[self.weight : self.weight + height * width] += found[:, :width].reshape(-1)
        if self.bias is not None:
            total[self.bias : self.bias + height] += found[:, width]

    @staticmethod
    def error(width: int, height: int) -> float:
        """What rounding may add to a row's norm, in grid steps."""
        return math.sqrt(width * height) * 2.0 ** (A_BITS - 1)


class Built(Part):
    """Pieces that are there: (rows, numbers)."""

    def __init__(self, pieces: torch.Tensor, start: int, exact: bool = True) -> None:
        self.pieces, self.start, self.exact = pieces.double(), start, exact

    def squares(self) -> torch.Tensor:
        return torch.square(torch.linalg.vector_norm(self.pieces, dim=1))

    def drop(self, bad: torch.Tensor) -> None:
        self.pieces[bad] = 0.0

    def add(self, factors: torch.Tensor, total: torch.Tensor) -> None:
        n = self.pieces.shape[1]
        if not self.exact:
            total[self.start : self.start + n] += factors @ self.pieces
            return
        total[self.start : self.start + n] += (
            self.pieces.mul_(factors.unsqueeze(1)).round_().sum(dim=0)
        )

    @staticmethod
    def error(numbers: int) -> float:
        """What rounding may add to a row's norm, in grid steps."""
        return math.sqrt(numbers) / 2.0


class Looked(Part):
    """Lines of a table that rows looked up, each line's slopes of a row added up: a row's gradient
    is zero elsewhere."""

    def __init__(
        self, index: torch.Tensor, slopes: torch.Tensor, lines: int, start: int, exact: bool = True
    ) -> None:
        rows, times = index.shape
        self.rows, self.start, self.exact = rows, start, exact
        keys = index + lines * torch.arange(rows, device=index.device).unsqueeze(1)
        unique, places = torch.unique(keys.reshape(-1), return_inverse=True)
        self.row, self.line = torch.div(unique, lines, rounding_mode="floor"), unique % lines
        self.values = torch.zeros(
            len(unique), slopes.shape[-1], dtype=torch.float64, device=slopes.device
        )
        self.values.index_add_(0, places, slopes.reshape(rows * times, -1).double())

    def squares(self) -> torch.Tensor:
        squares = (self.values * self.values).sum(dim=1)
        return torch.zeros(self.rows, dtype=torch.float64, device=squares.device).index_add_(
            0, self.row, squares
        )

    def drop(self, bad: torch.Tensor) -> None:
        self.values[bad[self.row]] = 0.0

    def add(self, factors: torch.Tensor, total: torch.Tensor) -> None:
        values = self.values * factors[self.row].unsqueeze(1)
        values = values.round_() if self.exact else values
        width = values.shape[1]
        at = (self.start + self.line * width).unsqueeze(1) + torch.arange(
            width, device=values.device
        )
        total.index_add_(0, at.reshape(-1), values.reshape(-1))


@dataclass(eq=False)
class Call:
    """One call of a layer: its input, and the place in the graph of its output."""

    layer: Layer
    given: torch.Tensor
    edge: Any
    shape: torch.Size  # of its output
    slopes: torch.Tensor | None = None


@dataclass(eq=False)
class Layer:
    """A layer whose rows' gradients are known in closed form. `weight`, `bias`: places in the flat
    vector; None where there is none, or it is frozen."""

    module: nn.Module
    weight: int | None
    bias: int | None
    built: int = 0  # numbers of one row's gradient that are built
    unfolded: int = 0  # numbers of one row's inputs once unfolded
    errors: list[float] = field(default_factory=list)
    lookups: int = 0

    def parts(
        self, calls: Sequence[Call], rows: int, exact: bool = True, scratch: Scratch | None = None
    ) -> list[Part]:
        """What its calls on a chunk of rows add to their gradients; `exact`: on the grid."""
        if isinstance(self.module, nn.Linear):
            return self._dense([_linear(call, rows) for call in calls], exact, scratch)
        if isinstance(self.module, nn.Conv1d | nn.Conv2d):
            return self._dense([_conv(self.module, call, rows) for call in calls], exact, scratch)
        if isinstance(self.module, nn.Embedding):
            return self._table(calls, rows, exact)
        return self._norms(calls, rows, exact)

    def _dense(
        self, made: list[tuple[torch.Tensor, torch.Tensor]], exact: bool, scratch: Scratch | None
    ) -> list[Part]:
        """From inputs (rows, groups, positions, in) and slopes (rows, groups, positions, out)."""
        a, d = (
            torch.cat(list(side), dim=2) if len(made) > 1 else side[0]
            for side in zip(*made, strict=True)
        )
        rows, groups, positions, width = a.shape
        parts: list[Part] = []
        if self.weight is not None and groups == positions == 1:
            return [
                Product(
                    a.reshape(rows, width),
                    d.reshape(rows, -1),
                    self.weight,
                    self.bias,
                    exact,
                    scratch,
                )
            ]
        if self.weight is not None:
            height = d.shape[-1]
            pieces = torch.bmm(
                d.reshape(rows * groups, positions, height).mT,
                a.reshape(rows * groups, positions, width),
            )
            parts.append(Built(pieces.reshape(rows, groups * height * width), self.weight, exact))
        if self.bias is not None:
            parts.append(Built(d.sum(dim=2).reshape(rows, -1), self.bias, exact))
        return parts

    def _table(self, calls: Sequence[Call], rows: int, exact: bool) -> list[Part]:
        module = self.module
        assert isinstance(module, nn.Embedding)
        assert self.weight is not None
        index = torch.cat([call.given.reshape(rows, -1).long() for call in calls], dim=1)
        width = module.embedding_dim
        slopes = torch.cat(
            [call.slopes.reshape(rows, -1, width) for call in calls if call.slopes is not None],
            dim=1,
        )
        if module.padding_idx is not None:
            slopes = slopes * (index != module.padding_idx).unsqueeze(2)
        if self.lookups and index.shape[1] > self.lookups:
            raise ValueError("more lookups a row than on made-up rows")
        return [Looked(index, slopes, module.num_embeddings, self.weight, exact)]

    def _norms(self, calls: Sequence[Call], rows: int, exact: bool) -> list[Part]:
        module, scales, shifts = self.module, [], []
        for call in calls:
            assert call.slopes is not None
            if isinstance(module, nn.LayerNorm):
                plain = functional.layer_norm(call.given, module.normalized_shape, eps=module.eps)
                shape: tuple[int, ...] = (rows, -1, math.prod(module.normalized_shape), 1)
            else:
                assert isinstance(module, nn.GroupNorm)
                plain = functional.group_norm(call.given, module.num_groups, eps=module.eps)
                shape = (rows, call.given.shape[0] // rows, module.num_channels, -1)
            scales.append((call.slopes * plain).reshape(shape).sum(dim=(1, 3)))
            shifts.append(call.slopes.reshape(shape).sum(dim=(1, 3)))
        places = ((self.weight, scales), (self.bias, shifts))
        return [
            Built(torch.stack(pieces).sum(dim=0), place, exact)
            for place, pieces in places
            if place is not None
        ]


def _linear(call: Call, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    assert call.slopes is not None
    return (side.reshape(rows, 1, -1, side.shape[-1]) for side in (call.given, call.slopes))  # type: ignore[return-value]


def _conv(
    module: nn.Conv1d | nn.Conv2d, call: Call, rows: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Unfolded: every position's patch, for each group of channels."""
    assert call.slopes is not None
    given, slopes = call.given, call.slopes
    if given.ndim != len(module.kernel_size) + 2:
        raise ValueError("rows without a batch axis")
    pads, mode = module._reversed_padding_repeated_twice, module.padding_mode
    if any(pads):
        given = functional.pad(given, pads, mode="constant" if mode == "zeros" else mode)
    axes = zip(module.kernel_size, module.dilation, module.stride, strict=True)
    # a view: each position's patch, on axes at the end
    for axis, (kernel, dilation, stride) in enumerate(axes, start=2):
        given = given.unfold(axis, (kernel - 1) * dilation + 1, stride)[..., ::dilation]
    n = len(module.kernel_size)
    order = (0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n))
    patches = given.permute(order).reshape(given.shape[0], -1, math.prod(given.shape[2 : 2 + n]))
    groups, images = module.groups, given.shape[0] // rows
    patches = patches.reshape(rows, images, groups, -1, patches.shape[-1])
    slopes = slopes.reshape(rows, images, groups, module.out_channels // groups, -1)
    # (rows, groups, images x positions, numbers): without copying where a row is one image
    return tuple(  # type: ignore[return-value]
        side[:, 0].mT if images == 1 else side.permute(0, 2, 1, 4, 3).flatten(2, 3)
        for side in (patches, slopes)
    )


KINDS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Embedding, nn.LayerNorm, nn.GroupNorm)


def layers_of(skeleton: Skeleton) -> list[Layer] | None:
    """The layers that hold trainable parameters, measured on made-up rows; None where one is not
    known in closed form, or a parameter belongs to two."""
    names = {id(p): name for name, p in skeleton.module.named_parameters() if p.requires_grad}
    layers: list[Layer] = []
    taken: set[int] = set()
    for module in skeleton.module.modules():
        own = {key: p for key, p in module._parameters.items() if p is not None and p.requires_grad}
        if not own:
            continue
        known = (
            type(module) in KINDS
            and set(own) <= {"weight", "bias"}
            and not taken & {id(p) for p in own.values()}
        )
        if not known or (
            isinstance(module, nn.Embedding)
            and (module.max_norm is not None or module.scale_grad_by_freq)
        ):
            return None
        taken |= {id(p) for p in own.values()}
        places = {key: skeleton.places[names[id(p)]][0] for key, p in own.items()}
        layers.append(Layer(module, places.get("weight"), places.get("bias")))
    return layers if _measure(skeleton, layers) else None


def _measure(skeleton: Skeleton, layers: list[Layer]) -> bool:
    """How many numbers a row takes in each layer, and what rounding adds: shapes alone."""
    rows = 3
    for made_up in probes(skeleton.width, rows=rows):
        try:
            with captured(layers) as calls:
                skeleton.logits(skeleton.tensor(made_up))
            for call in calls:
                call.slopes = torch.zeros(call.shape, device=skeleton.device)
            for layer in layers:
                mine = [call for call in calls if call.layer is layer]
                layer.lookups = sum(call.given.numel() for call in mine) // rows
                for part in layer.parts(mine, rows) if mine else []:
                    layer.errors.append(_error(part, layer))
                    layer.built += part.pieces.shape[1] if isinstance(part, Built) else 0
                layer.unfolded = _unfolded(layer, mine, rows)
            return True
        except Exception:  # modules that take no such rows, or whose rows are not on the first axis
            continue
    return False


def _error(part: Part, layer: Layer) -> float:
    if isinstance(part, Product):
        return Product.error(part.a.shape[1], part.d.shape[1])
    if isinstance(part, Looked):
        module = layer.module
        assert isinstance(module, nn.Embedding)
        return Built.error(min(layer.lookups, module.num_embeddings) * module.embedding_dim)
    assert isinstance(part, Built)
    return Built.error(part.pieces.shape[1])


def _unfolded(layer: Layer, calls: Sequence[Call], rows: int) -> int:
    if not isinstance(layer.module, nn.Conv1d | nn.Conv2d):
        return 0
    return sum(math.prod(_conv(layer.module, call, rows)[0].shape) for call in calls) // rows


@contextmanager
def captured(layers: Sequence[Layer]) -> Iterator[list[Call]]:
    """Inside, every call of a layer is noted down."""
    calls: list[Call] = []

    def note(layer: Layer) -> Any:
        def hook(module: nn.Module, given: tuple[Any, ...], out: torch.Tensor) -> None:
            edge = torch.autograd.graph.get_gradient_edge(out) if out.requires_grad else None
            calls.append(Call(layer, given[0].detach(), edge, out.shape))

        return hook

    hooks = [layer.module.register_forward_hook(note(layer)) for layer in layers]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
