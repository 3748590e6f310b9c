"""A group planted into images: a tint of the strokes that goes with the class, as strongly as is
stated."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import Floats
from ...errors import InputError

Pixels = npt.NDArray[np.uint8]
SATURATION = 0.7
"""How far a tint is from white: its darkest channel is 1 - 0.7 of its brightest."""


@dataclass(frozen=True)
class Tints:
    """Each image belongs to a group, drawn by its class c, and shows it by the tint of its strokes.

    P(group = r | class = c) = (1 - strength) / groups + strength 1[r = c mod groups],

    independently of the image otherwise. Strength 0: groups say nothing about classes; 1: the class
    decides the group.

    A pixel of brightness v in [0, 1] becomes clip(v + noise z, 0, 1) times the group's colour, z
    standard normal, one for each pixel and the same in all three channels. Noise hides the class
    and not the group: the larger it is, the more a classifier gains by reading the tint, and the
    further its rates differ between groups, beyond what the classes' shares themselves do.

    >>> tints = Tints(strength=0.5)
    >>> tints.chances[0].round(2).tolist()
    [0.6, 0.1, 0.1, 0.1, 0.1]
    >>> round(tints.label_gap(), 3)
    0.25
    """

    classes: int = 10
    groups: int = 5
    strength: float = 0.5
    noise: float = 0.0

    def __post_init__(self) -> None:
        _checks.whole(classes=self.classes, at_least=2)
        _checks.whole(groups=self.groups, at_least=2)
        _checks.fraction(strength=self.strength)
        _checks.non_negative(noise=self.noise)

    @property
    def colours(self) -> Floats:
        """The tints, (groups, 3): red, green and blue of hues equally far apart, each with one
        channel at 1."""
        return np.array(
            [colorsys.hsv_to_rgb(r / self.groups, SATURATION, 1.0) for r in range(self.groups)]
        )

    @property
    def chances(self) -> Floats:
        """P(group | class), (classes, groups)."""
        own = np.arange(self.classes)[:, np.newaxis] % self.groups == np.arange(self.groups)
        chances: Floats = (1.0 - self.strength) / self.groups + self.strength * own
        return chances

    def label_rates(self, class_shares: npt.ArrayLike | None = None) -> Floats:
        """P(class | group), (groups, classes), by Bayes' rule: the rates of a classifier that makes
        no error.

        `class_shares`: P(class); None: all classes alike. A group that nobody can be in has NaN.
        """
        shares = (
            np.full(self.classes, 1.0 / self.classes)
            if class_shares is None
            else np.asarray(class_shares, np.float64)
        )
        if (
            shares.shape != (self.classes,)
            or not (shares >= 0).all()
            or not np.isfinite(shares).all()
            or shares.sum() <= 0
        ):
            remedy = "Count the classes, for example."
            raise InputError.expected(
                f"{self.classes} numbers of at least 0",
                of="class_shares",
                got=class_shares,
                remedy=remedy,
            )
        both = (self.chances * shares[:, np.newaxis]).T
        total = both.sum(axis=1, keepdims=True)
        rates: Floats = np.divide(both, total, out=np.full_like(both, np.nan), where=total > 0)
        return rates

    def label_gap(self, class_shares: npt.ArrayLike | None = None) -> float:
        """The demographic-parity gap of a classifier that makes no error: of the rates above, over
        classes and pairs of groups.

        With equal shares and as many classes for each group it is strength x groups / classes.
        """
        rates = self.label_rates(class_shares)
        return float((np.nanmax(rates, axis=0) - np.nanmin(rates, axis=0)).max())

    def plant(
        self, images: npt.ArrayLike, labels: npt.ArrayLike, random_state: int | np.random.Generator
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Images (n, 3, height, width), float32 in [0, 1], and groups (n,), for grey bytes (n,
        height, width) and labels (n,).

        The same random state gives the same groups whatever the images and the noise are.
        """
        grey = bytes_of(images, (3,), "(n, height, width)")
        codes = np.asarray(labels)
        fits = codes.shape == (len(grey),) and codes.dtype.kind in "iu"
        if not fits or not ((codes >= 0) & (codes < self.classes)).all():
            remedy = "Pass one whole number an image."
            got = f"{codes.dtype} of shape {codes.shape}"
            raise InputError.expected(
                f"{len(grey)} classes below {self.classes}", of="labels", got=got, remedy=remedy
            )
        rng = np.random.default_rng(random_state)
        free = rng.integers(self.groups, size=len(codes))
        groups = np.where(rng.random(len(codes)) < self.strength, codes % self.groups, free).astype(
            np.int64
        )
        bright = as_floats(grey)
        if self.noise:
            bright += np.float32(self.noise) * rng.standard_normal(bright.shape, dtype=np.float32)
            np.clip(bright, 0.0, 1.0, out=bright)
        return bright * self.colours.astype(np.float32)[groups][
            :, :, np.newaxis, np.newaxis
        ], groups


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
