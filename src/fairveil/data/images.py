"""Images as arrays of bytes, and as what a network takes. A byte a pixel until then: MNIST is 55 MB
so, and 220 as floats."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .files import PathLike
from .raw_sets import PIXELS
from .registry import get

Pixels = npt.NDArray[np.uint8]
SIDE = 28
"""Rows and columns of a digit."""


@dataclass(frozen=True, eq=False)
class Digits:
    """MNIST as images: `pixels` (n, 28, 28), 0 the background, and `labels` (n,), the digits.

    The first `training_rows` come from the published training files (None: there is no such order).
    `where`: the place that they were found in; `notes`: how this edition differs from the published
    one.
    """

    pixels: Pixels = field(repr=False)
    labels: npt.NDArray[np.int64] = field(repr=False)
    training_rows: int | None
    where: str
    notes: tuple[str, ...]


def mnist_images(path: PathLike | None = None) -> Digits:
    """The set "mnist" as images, found and checked as `get("mnist", path)` finds and checks it."""
    found = get("mnist", path)
    pixels = np.empty((found.size, PIXELS), np.uint8)
    for at in range(PIXELS):
        pixels[:, at] = found.table[f"pixel{at}"]
    labels = np.asarray(found.table["digit"], np.int64)
    return Digits(
        pixels.reshape(-1, SIDE, SIDE), labels, found.training_rows, found.where, found.notes
    )


def as_floats(pixels: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Bytes (n, height, width) or (n, channels, height, width) as float32 (n, channels, height,
    width) in [0, 1].

    A fixed map of each pixel by itself: it reads nothing from the images. Convert a part at a time
    where memory is short.

    >>> as_floats(np.array([[[0, 255]]], np.uint8)).tolist()
    [[[[0.0, 1.0]]]]
    """
    array = bytes_of(pixels, (3, 4), "(n, height, width) or (n, channels, height, width)")
    floats = array.astype(np.float32)
    floats /= 255.0
    return floats if floats.ndim == 4 else floats[:, np.newaxis]


def bytes_of(pixels: object, axes: tuple[int, ...], shape: str) -> Pixels:
    """An array of bytes with so many axes; an error otherwise."""
    array = np.asarray(pixels)
    if array.dtype != np.uint8 or array.ndim not in axes:
        remedy = "Pass the pixels as they were read, 0 to 255."
        got = f"{array.dtype} of shape {array.shape}"
        raise InputError.expected(f"uint8 of shape {shape}", of="images", got=got, remedy=remedy)
    return array
