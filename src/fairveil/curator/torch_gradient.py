"""Clipped gradient sums of torch modules, by layers: one pass forward, one backward to the layers' outputs, no per-row passes.

Every call of a layer gives its input a and, from the backward pass, the gradient d with respect to its output. A row's
gradient with respect to a weight is sum_t d_t a_t' over the positions t of its calls. With one position (a dense layer) it is
d a', its norm |d| |a|, and it is never built ("ghost clipping", Goodfellow 2015, Li et al. 2022); else it is built for a chunk
of rows by one batched product. Layers: Linear, Conv1d, Conv2d, Embedding, LayerNorm, GroupNorm, with or without biases,
reused, frozen. Other modules, and parameters shared by several layers, go through torch.func, or, where that fails, row by row.

Differs: others add float32 gradients; here each row's contribution is put on a grid, as PRIVACY 8.7 asks, and sums are exact.

The bits. The grid's step is u; a row's contribution is at most 2^36 u before rounding.
(1) d a': a is rounded to whole multiples of 2^(e - 16), where the largest |a| lies between 2^(e - 1) and 2^e: to integers A of
at most 2^16. The norm is that of the rounded a.
(2) d times the row's factor is rounded to integers D of u / 2^(e - 16). Where A = 0 nothing is added, else |A| |d| <= 2^36 u.
(3) So |A D| <= 2^37, and a product over at most 2^12 rows has partial sums below 2^49: float64 has them exactly, in any order.
Gradients that are built are rounded to u themselves, and are at most 2^37.
(4) Chunks are added as int64; 2^25 rows stay below 2^62.
(5) Rounding adds to a row's norm at most sqrt(in x out) 2^15 u for each d a', sqrt(n) / 2 u for n built numbers: `rounding`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from ..models.torch_network import Skeleton, probes
from .quiet import Troubles
from .torch_layers import Built, Layer, Part, Scratch, captured, layers_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]
CHUNK_NUMBERS = 1 << 25  # float32 numbers of one chunk of rows: inputs, outputs, built gradients
MOST_CHUNK = 1 << 12
AGREE = 1e-3  # relative, of float32 gradients found in two ways


@dataclass(frozen=True)
class Wanted:
    """Which gradient sum: all but the rows. `costs` (rows, outputs) and what follows are private and stay inside."""

    clip: float
    unit: float
    exact: bool
    sharpness: float
    loss_weight: float
    labels: Ints | None
    costs: Floats | None
    weights: Floats | None
    scratch: Scratch | None = None  # of the asking curator's pass

    def of(self, rows: slice) -> Wanted:
        """The same of some rows."""
        given: tuple[Any, ...] = (self.labels, self.costs, self.weights)
        labels, costs, weights = (None if values is None else values[rows] for values in given)
        return replace(self, labels=labels, costs=costs, weights=weights)


def engine(skeleton: Skeleton) -> Engine:
    """The engine of a skeleton, made once."""
    if "engine" not in skeleton.kept:
        with skeleton.lock:
            skeleton.kept["engine"] = Engine(skeleton)
    found: Engine = skeleton.kept["engine"]
    return found


class Engine:
    """How the gradients of one skeleton are found: by layers, by torch.func, or row by row; and in chunks of how many rows.

    Chosen once by trying the module on made-up rows against gradients found row by row, so it is public.
    """

    def __init__(self, skeleton: Skeleton) -> None:
        self.skeleton = skeleton
        self.layers: list[Layer] = []
        self.way = "row by row"
        self._parameters = {n: p for n, p in skeleton.module.named_parameters() if p.requires_grad}
        numbers, roundings = skeleton.numbers_per_row + skeleton.size, [Built.error(skeleton.size)]
        rows, truth, slopes = self._truth()
        layers = layers_of(skeleton)
        for way, chosen in (("by layers", layers), ("by torch.func", [])):
            if (way == "by layers" and layers is None) or not self._agrees(way, chosen or [], rows, slopes, truth):
                continue
            self.way, self.layers = way, chosen or []
            if way == "by layers":
                numbers = skeleton.numbers_per_row + sum(layer.built + layer.unfolded for layer in self.layers)
                roundings = [error for layer in self.layers for error in layer.errors]
            break
        self.rounding = math.sqrt(sum(error * error for error in roundings))  # in grid steps
        self.chunk = max(1, min(MOST_CHUNK, CHUNK_NUMBERS // numbers))

    def run(self, parameters: Floats, rows: Singles, wanted: Wanted | None, troubles: Troubles) -> tuple[Floats, Ints | None]:
        """Logits (rows, outputs), NaN where user code failed, and the total of clipped gradients in grid steps."""
        skeleton = self.skeleton
        logits = np.full((len(rows), skeleton.outputs), np.nan)
        total = None if wanted is None else torch.zeros(skeleton.size, dtype=torch.int64, device=skeleton.device)
        with skeleton.lock:
            skeleton.load(parameters)
            for a in range(0, len(rows), self.chunk):
                part = slice(a, a + self.chunk)
                self._try(rows, part, wanted, logits, total, troubles)
        if not np.isfinite(logits).all():
            troubles.append("some rows gave NaN or infinite values; they contributed zero")
        return logits, None if total is None else total.cpu().numpy()

    def _try(
        self, rows: Singles, part: slice, wanted: Wanted | None, logits: Floats, total: torch.Tensor | None, troubles: Troubles
    ) -> None:
        """A chunk; where user code fails on it, its rows one by one."""
        found = rows[part]
        try:
            out, added = self._chunk(found, None if wanted is None else wanted.of(part), troubles)
        except Exception as error:  # masked on purpose: an error may depend on one private row
            troubles.append(f"{type(error).__name__}: {error}")
            for i in range(part.start, part.start + len(found)) if len(found) > 1 else ():
                self._try(rows, slice(i, i + 1), wanted, logits, total, troubles)
            return
        logits[part] = out
        if total is not None and added is not None:
            total += added

    def _chunk(self, rows: Singles, wanted: Wanted | None, troubles: Troubles) -> tuple[Floats, torch.Tensor | None]:
        given = self.skeleton.tensor(rows)
        if wanted is None:
            with torch.no_grad():
                return self._numbers(self.skeleton.logits(given)), None
        if self.way != "by layers":
            with torch.no_grad():
                logits = self.skeleton.logits(given)
            slopes = _slopes(logits, wanted)
            parts: Sequence[Part] = [Built(self._each(self.way, given, slopes), 0, wanted.exact)]
        else:
            with torch.enable_grad():
                logits, parts = self._by_layers(self.layers, given, lambda z: _slopes(z, wanted), wanted.exact, wanted.scratch)
        return self._numbers(logits), self._total(parts, logits, wanted, troubles)

    def _numbers(self, logits: torch.Tensor) -> Floats:
        return np.asarray(logits.detach().cpu().numpy(), np.float64)

    def _total(self, parts: Sequence[Part], logits: torch.Tensor, wanted: Wanted, troubles: Troubles) -> torch.Tensor:
        """Shorten each row's whole gradient and add, on the grid."""
        device, n = self.skeleton.device, len(logits)
        squares = torch.zeros(n, dtype=torch.float64, device=device)
        for part in parts:
            squares += part.squares()
        good = torch.isfinite(logits.detach()).all(dim=1) & torch.isfinite(squares)
        if not bool(good.all()):
            troubles.append("some rows gave NaN or infinite gradients; they contributed zero")
            squares = torch.where(good, squares, 0.0)
            for part in parts:
                part.drop(~good)
        factors = torch.clamp(wanted.clip / torch.sqrt(squares).clamp_min(1e-300), max=1.0)
        if wanted.weights is not None:
            factors = factors * torch.from_numpy(wanted.weights).to(device)
        factors = torch.where(good, factors, 0.0) / wanted.unit
        total = torch.zeros(self.skeleton.size, dtype=torch.float64, device=device)
        for part in parts:
            part.add(factors, total)
        return torch.round(total).to(torch.int64)

    def _by_layers(
        self,
        layers: Sequence[Layer],
        given: torch.Tensor,
        slopes: Callable[[torch.Tensor], torch.Tensor],
        exact: bool,
        scratch: Scratch | None = None,
    ) -> tuple[torch.Tensor, list[Part]]:
        """Logits, and the parts of which the rows' gradients are made."""
        with captured(layers) as calls:
            logits = self.skeleton.logits(given)
        edges = [call.edge for call in calls if call.edge is not None]
        if not edges or not logits.requires_grad:
            return logits, []
        found = torch.autograd.grad(logits, edges, grad_outputs=slopes(logits), allow_unused=True)
        back = iter(found)
        for call in calls:
            call.slopes = next(back) if call.edge is not None else None
        parts: list[Part] = []
        for layer in layers:
            made = [call for call in calls if call.layer is layer and call.slopes is not None]
            if made:
                parts += layer.parts(made, len(given), exact, scratch)
        return logits, parts

    def _each(self, way: str, given: torch.Tensor, slopes: torch.Tensor) -> torch.Tensor:
        """Every row's gradient, (rows, parameters)."""
        if way == "by torch.func":

            def objective(parameters: dict[str, torch.Tensor], row: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
                return (self.skeleton.logits(row.unsqueeze(0), parameters)[0] * slope).sum()

            plain = {name: p.detach() for name, p in self._parameters.items()}
            by_name = torch.func.vmap(torch.func.grad(objective), in_dims=(None, 0, 0))(plain, given, slopes)
            return torch.cat([by_name[name].reshape(len(given), -1) for name in self.skeleton.names], dim=1)
        out = torch.zeros(len(given), self.skeleton.size, device=self.skeleton.device)
        with torch.enable_grad():
            for i in range(len(given)):
                logits = self.skeleton.logits(given[i : i + 1])
                inputs, slope = list(self._parameters.values()), slopes[i : i + 1]
                if logits.requires_grad:
                    found = torch.autograd.grad(logits, inputs, grad_outputs=slope, allow_unused=True)
                    row = cast(tuple[torch.Tensor | None, ...], found)
                    flat = [torch.zeros_like(p) if g is None else g for p, g in zip(inputs, row, strict=True)]
                    out[i] = torch.cat([g.reshape(-1) for g in flat])
        return out

    def _truth(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Made-up rows that the module takes, their gradients row by row, and the slopes at which these were found."""
        skeleton, rng = self.skeleton, np.random.default_rng(17)
        skeleton.load(skeleton.start + 0.03 * rng.normal(size=skeleton.size))  # layers that begin at zero would hide others
        trouble: Exception | None = None
        for made_up in probes(skeleton.width, rows=3):
            try:
                given = skeleton.tensor(made_up)
                slopes = torch.from_numpy(rng.normal(size=(3, skeleton.outputs)).astype(np.float32)).to(skeleton.device)
                return given, self._each("row by row", given, slopes), slopes
            except Exception as error:
                trouble = error
        assert trouble is not None
        raise trouble

    def _agrees(self, way: str, layers: list[Layer], given: torch.Tensor, slopes: torch.Tensor, truth: torch.Tensor) -> bool:
        """Whether a way finds the gradients that were found row by row: each row's norm, and the sum."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if way == "by layers":
                    with torch.enable_grad():
                        _, parts = self._by_layers(layers, given, lambda z: slopes, False)
                else:
                    parts = [Built(self._each(way, given, slopes), 0, False)]
            squares, total = sum(part.squares() for part in parts), torch.zeros(self.skeleton.size, dtype=torch.float64)
            total = total.to(self.skeleton.device)
            for part in parts:
                part.add(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, device=total.device), total)
        except Exception:  # whatever torch cannot do: the next way is tried
            return False
        right = truth.double()
        norms, wanted = torch.sqrt(torch.as_tensor(squares)), (right * right.new_tensor([[1.0], [2.0], [3.0]])).sum(dim=0)
        near = torch.allclose(norms, right.norm(dim=1), rtol=AGREE, atol=AGREE * (1e-6 + float(right.norm(dim=1).max())))
        return bool(near and (total - wanted).norm() <= AGREE * (1e-6 + float(wanted.norm())))


def _slopes(logits: torch.Tensor, wanted: Wanted) -> torch.Tensor:
    """The derivative of each row's objective with respect to its logits. A row of NaN keeps it to itself."""
    z = logits.detach().double()
    device, one = z.device, z.shape[1] == 1
    out = torch.zeros_like(z)
    if wanted.labels is not None:
        labels = torch.from_numpy(wanted.labels).to(device)
        if one:
            out += wanted.loss_weight * (torch.sigmoid(z) - labels.unsqueeze(1))
        else:
            out += wanted.loss_weight * (torch.softmax(z, dim=1) - torch.nn.functional.one_hot(labels, z.shape[1]))
    if wanted.costs is not None:
        costs, s = torch.from_numpy(wanted.costs).to(device), wanted.sharpness
        if one:
            p = torch.sigmoid(s * z)
            out += s * costs * p * (1.0 - p)
        else:
            p = torch.softmax(s * z, dim=1)
            out += s * p * (costs - (p * costs).sum(dim=1, keepdim=True))
    return out.to(logits.dtype)
