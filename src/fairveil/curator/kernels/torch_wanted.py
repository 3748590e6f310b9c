"""What a pass of a network is to find, and the two formulas that are not the user's: slopes of
rows' objectives, and factors.

Every number here is of one row alone: the formulas run on all rows of a chunk, of a fixed shape,
and mix none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ..._types import Array, Floats, Ints
from .torch_parts import GradientPiece, Scratch


@dataclass(frozen=True)
class Wanted:
    """Which gradient sum: all but the rows. `costs` (rows, outputs) and what follows are private
    and stay inside."""

    clip: float
    unit: float
    exact: bool
    sharpness: float
    loss_weight: float
    labels: Ints | None
    costs: Floats | None
    weights: Floats | None
    scratch: Scratch | None = None  # of the asking curator's pass
    persons: Ints | None = None  # whose each row is, where a person's sum is clipped
    most: float = 0.0  # the norm to which a person's sum is clipped

    def of(self, rows: object, shape: int = 0) -> Wanted:
        """The same of some rows; with zeros behind them up to `shape` rows."""
        given: tuple[Any, ...] = (self.labels, self.costs, self.weights)
        labels, costs, weights = (
            None if values is None else _filled(values[rows], shape) for values in given
        )
        return replace(self, labels=labels, costs=costs, weights=weights)


def _filled(values: Array, shape: int) -> Any:
    if len(values) >= shape:
        return values
    out = np.zeros((shape, *values.shape[1:]), values.dtype)
    out[: len(values)] = values
    return out


def slopes(logits: torch.Tensor, wanted: Wanted) -> torch.Tensor:
    """The derivative of each row's objective with respect to its logits. A row of NaN keeps it to
    itself."""
    z = logits.detach().double()
    device, one = z.device, z.shape[1] == 1
    out = torch.zeros_like(z)
    if wanted.labels is not None:
        labels = torch.from_numpy(wanted.labels).to(device)
        if one:
            out += wanted.loss_weight * (torch.sigmoid(z) - labels.unsqueeze(1))
        else:
            out += wanted.loss_weight * (
                torch.softmax(z, dim=1) - torch.nn.functional.one_hot(labels, z.shape[1])
            )
    if wanted.costs is not None:
        costs, s = torch.from_numpy(wanted.costs).to(device), wanted.sharpness
        if one:
            p = torch.sigmoid(s * z)
            out += s * costs * p * (1.0 - p)
        else:
            p = torch.softmax(s * z, dim=1)
            out += s * p * (costs - (p * costs).sum(dim=1, keepdim=True))
    return out.to(logits.dtype)


def factors(
    parts: Sequence[GradientPiece], logits: torch.Tensor, wanted: Wanted
) -> tuple[torch.Tensor, torch.Tensor]:
    """By what each row's whole gradient is multiplied, in grid steps, and which rows hold numbers;
    others become zero."""
    squares = torch.zeros(len(logits), dtype=torch.float64, device=logits.device)
    for part in parts:
        squares += part.squares()
    good = torch.isfinite(logits.detach()).all(dim=1) & torch.isfinite(squares)
    if not bool(good.all()):
        squares = torch.where(good, squares, 0.0)
        for part in parts:
            part.drop(~good)
    found = torch.clamp(wanted.clip / torch.sqrt(squares).clamp_min(1e-300), max=1.0)
    if wanted.weights is not None:
        found = found * torch.from_numpy(wanted.weights).to(found.device)
    return torch.where(good, found, 0.0) / wanted.unit, good
