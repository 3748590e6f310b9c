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

import torch
from torch import nn
from torch.nn import functional

from ...models.torch_network import Skeleton, probes
from .torch_parts import Built, GradientPiece, Looked, Product, Scratch, product_of


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
    ) -> list[GradientPiece]:
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
    ) -> list[GradientPiece]:
        """From inputs (rows, groups, positions, in) and slopes (rows, groups, positions, out)."""
        a, d = (
            torch.cat(list(side), dim=2) if len(made) > 1 else side[0]
            for side in zip(*made, strict=True)
        )
        rows, groups, positions, width = a.shape
        parts: list[GradientPiece] = []
        if self.weight is not None and groups == positions == 1:
            dense = a.reshape(rows, width), d.reshape(rows, -1)
            return [product_of(*dense, self.weight, self.bias, exact, scratch)]
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

    def _table(self, calls: Sequence[Call], rows: int, exact: bool) -> list[GradientPiece]:
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

    def _norms(self, calls: Sequence[Call], rows: int, exact: bool) -> list[GradientPiece]:
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


def _error(part: GradientPiece, layer: Layer) -> float:
    if isinstance(part, Product):
        return Product.error(*part.shape)
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
