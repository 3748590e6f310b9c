"""Ways to find rows' gradients of a torch module: by layers, by torch.func, row by row. Here alone
a module is run.

A way that gives other gradients than autograd gives row by row, on made-up rows, is none. Whether a
row's bits are its own is another question: see `torch_alone`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import numpy.typing as npt
import torch

from ...models.torch_network import Skeleton, probes
from .torch_aligned import Aligned
from .torch_layers import Call, Layer, captured, layers_of
from .torch_parts import Built, GradientPiece, Scratch

AGREE = 1e-3  # relative, of float32 gradients found in two ways
ROW_BY_ROW = "row by row"
Slopes = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Logits of rows, and the parts of which their gradients are made; `calls`: the layers' inputs
    and slopes."""

    logits: torch.Tensor
    parts: Sequence[GradientPiece]
    calls: Sequence[Call] = ()


@dataclass(frozen=True, eq=False)
class Way:
    """How the gradients of one skeleton are found. `aligned`: with products of whole cache
    lines."""

    skeleton: Skeleton
    name: str
    layers: Sequence[Layer] = ()
    aligned: bool = False

    def pieces(
        self,
        given: torch.Tensor,
        slopes: Slopes | None,
        exact: bool,
        scratch: Scratch | None = None,
    ) -> Pieces:
        """Of rows as the module reads them, at the parameters that are set. `slopes`: None for
        logits alone.

        Forward always as where gradients are asked for, so that logits have the same bits.
        """
        with self._settings():
            if self.name == "by layers":
                with torch.enable_grad():
                    return self._by_layers(given, slopes, exact, scratch)
            if self.name == ROW_BY_ROW:
                with torch.enable_grad():
                    return self._row_by_row(given, slopes, exact)
            with torch.no_grad():
                logits = self.skeleton.logits(given)
            if slopes is None:
                return Pieces(logits, ())
            return Pieces(logits, (Built(self._by_func(given, slopes(logits)), 0, exact),))

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """On a GPU no algorithm is chosen by the clock, nor one whose sums have no order."""
        if self.skeleton.device.type == "cuda":
            now = torch.backends.cudnn
            with now.flags(
                enabled=now.enabled, benchmark=False, deterministic=True, allow_tf32=now.allow_tf32
            ):
                yield
        elif self.aligned:
            with Aligned():
                yield
        else:
            yield

    def _by_layers(
        self, given: torch.Tensor, slopes: Slopes | None, exact: bool, scratch: Scratch | None
    ) -> Pieces:
        with captured(self.layers) as calls:
            logits = self.skeleton.logits(given)
        edges = [call.edge for call in calls if call.edge is not None]
        if slopes is None or not edges or not logits.requires_grad:
            return Pieces(logits, ())
        back = iter(
            torch.autograd.grad(logits, edges, grad_outputs=slopes(logits), allow_unused=True)
        )
        for call in calls:
            call.slopes = next(back) if call.edge is not None else None
        parts: list[GradientPiece] = []
        for layer in self.layers:
            made = [call for call in calls if call.layer is layer and call.slopes is not None]
            if made:
                parts += layer.parts(made, len(given), exact, scratch)
        return Pieces(logits, parts, calls)

    def _by_func(self, given: torch.Tensor, slopes: torch.Tensor) -> torch.Tensor:
        """Every row's gradient, (rows, parameters)."""

        def objective(
            parameters: dict[str, torch.Tensor], row: torch.Tensor, slope: torch.Tensor
        ) -> torch.Tensor:
            return (self.skeleton.logits(row.unsqueeze(0), parameters)[0] * slope).sum()

        plain = {name: p.detach() for name, p in self._parameters.items()}
        by_name = torch.func.vmap(torch.func.grad(objective), in_dims=(None, 0, 0))(
            plain, given, slopes
        )
        return torch.cat(
            [by_name[name].reshape(len(given), -1) for name in self.skeleton.names], dim=1
        )

    def _row_by_row(self, given: torch.Tensor, slopes: Slopes | None, exact: bool) -> Pieces:
        """Each row in memory of its own: where it would begin in a chunk's is nothing of the
        row's."""
        logits = [self.skeleton.logits(given[i : i + 1].clone()) for i in range(len(given))]
        if slopes is None:
            return Pieces(torch.cat(logits), ())
        found, wanted = (
            torch.zeros(len(given), self.skeleton.size, device=given.device),
            slopes(torch.cat(logits)),
        )
        inputs = list(self._parameters.values())
        for i, out in enumerate(logits):
            if out.requires_grad:
                row = torch.autograd.grad(
                    out, inputs, grad_outputs=wanted[i : i + 1].clone(), allow_unused=True
                )
                some = cast(tuple[torch.Tensor | None, ...], row)
                flat = [
                    torch.zeros_like(p) if g is None else g
                    for p, g in zip(inputs, some, strict=True)
                ]
                found[i] = torch.cat([g.reshape(-1) for g in flat])
        return Pieces(torch.cat(logits), (Built(found, 0, exact),))

    @property
    def _parameters(self) -> dict[str, torch.Tensor]:
        return {name: p for name, p in self.skeleton.module.named_parameters() if p.requires_grad}


def ways_of(skeleton: Skeleton) -> list[Way]:
    """Those that agree with gradients row by row, best first; the last is row by row."""
    last, layers = Way(skeleton, ROW_BY_ROW), layers_of(skeleton)
    rng = np.random.default_rng(17)
    # layers that begin at zero would hide others
    skeleton.load(skeleton.start + 0.03 * rng.normal(size=skeleton.size))
    trouble: Exception | None = None
    for made_up in probes(skeleton.width, rows=3):
        slopes = torch.from_numpy(rng.normal(size=(3, skeleton.outputs)).astype(np.float32)).to(
            skeleton.device
        )
        try:
            truth = last.pieces(skeleton.padded(made_up), _fixed(slopes), False)
        except Exception as error:
            trouble = error
            continue
        plain = [
            *([] if layers is None else [Way(skeleton, "by layers", layers)]),
            Way(skeleton, "by torch.func"),
        ]
        tried = [way for one in plain for way in (one, *_aligned(one))]
        return [*(way for way in tried if _agrees(way, made_up, slopes, truth)), last]
    assert trouble is not None
    raise trouble


def _fixed(slopes: torch.Tensor) -> Slopes:
    return lambda logits: slopes


def _aligned(way: Way) -> tuple[Way, ...]:
    return () if way.skeleton.device.type == "cuda" else (replace(way, aligned=True),)


def _agrees(
    way: Way, made_up: npt.NDArray[np.float32], slopes: torch.Tensor, truth: Pieces
) -> bool:
    """Whether a way finds the gradients that were found row by row: each row's norm, and the
    sum."""
    skeleton = way.skeleton
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = way.pieces(skeleton.padded(made_up), _fixed(slopes), False).parts
        squares, total = (
            sum(part.squares() for part in parts),
            torch.zeros(skeleton.size, dtype=torch.float64),
        )
        total = total.to(skeleton.device)
        for part in parts:
            part.add(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, device=total.device), total)
    except Exception:  # whatever torch cannot do: the next way is tried
        return False
    (found,) = truth.parts
    assert isinstance(found, Built)
    right = found.pieces
    norms, wanted = (
        torch.sqrt(torch.as_tensor(squares)),
        (right * right.new_tensor([[1.0], [2.0], [3.0]])).sum(dim=0),
    )
    near = torch.allclose(
        norms, right.norm(dim=1), rtol=AGREE, atol=AGREE * (1e-6 + float(right.norm(dim=1).max()))
    )
    return bool(near and (total - wanted).norm() <= AGREE * (1e-6 + float(wanted.norm())))
