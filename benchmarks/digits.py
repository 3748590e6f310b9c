"""MNIST as images, for benchmarks of networks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairveil import data

SIDE = 28


@dataclass(frozen=True, eq=False)
class Digits:
    """MNIST as images: `pixels` (n, 28, 28), 0 the background, and `labels` (n,), the digits.

    The first `training_rows` come from the published training files (None: there is no such order).
    `where`: the place that they were found in; `notes`: how this edition differs from the published
    one.
    """

    pixels: npt.NDArray[np.uint8] = field(repr=False)
    labels: npt.NDArray[np.int64] = field(repr=False)
    training_rows: int | None
    where: str
    notes: tuple[str, ...]


def mnist_images(path: str | Path | None = None) -> Digits:
    """The set "mnist" as images, found and checked as `get("mnist", path)` finds and checks it."""
    found = data.get("mnist", path)
    pixels = np.empty((found.size, SIDE**2), np.uint8)
    for at in range(SIDE**2):
        pixels[:, at] = found.table[f"pixel{at}"]
    labels = np.asarray(found.table["digit"], np.int64)
    return Digits(
        pixels.reshape(-1, SIDE, SIDE), labels, found.training_rows, found.where, found.notes
    )
