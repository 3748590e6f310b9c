"""Faces with age, gender and race in their file names, as UTKFace has them: a folder that the user
holds.

A name is `[age]_[gender]_[race]_[date&time].jpg`, or `.jpg.chip.jpg` for the aligned and cropped
faces. Nothing is downloaded; the set is for research that is not commercial, under terms that its
authors state.
"""

from __future__ import annotations

import importlib.util
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _checks
from ..errors import DataNotFoundError, InputError
from .files import PathLike
from .images import Pixels

GENDERS = ("male", "female")
RACES = ("White", "Black", "Asian", "Indian", "Other")
"""The values of the codes in the names, in their order."""
OLDEST = 116
"""The largest age, as the set's description has it."""
AGE_EDGES = (3, 10, 20, 30, 40, 50, 60, 70)
"""Nine age groups: 0-2, 3-9, 10-19, ..., 60-69, 70 and more. An edge is the first age of a
group."""
MOST_NAMED = 5  # how many faults an error tells of
_NAME = re.compile(
    r"([0-9]{1,3})_([01])_([0-4])_([0-9]+)\.jpe?g(?:\.chip\.jpe?g)?", re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True)
class Skipped:
    """A file that was left out, and why."""

    name: str
    why: str


@dataclass(frozen=True, eq=False)
class Faces:
    """Faces in the order of their file names. `pixels`: (n, 3, size, size), red, green, blue.
    `age_groups`: 0, 1, ..., those of `age_edges`. `genders`, `races`: codes, positions in `GENDERS`
    and `RACES`. `skipped`: what was left out, and why.
    """

    pixels: Pixels = field(repr=False)
    ages: npt.NDArray[np.int64] = field(repr=False)
    age_groups: npt.NDArray[np.int64] = field(repr=False)
    genders: npt.NDArray[np.int64] = field(repr=False)
    races: npt.NDArray[np.int64] = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    age_edges: tuple[int, ...]
    skipped: tuple[Skipped, ...]

    @property
    def size(self) -> int:
        """How many faces."""
        return len(self.names)

    def report(self) -> str:
        """What was read and what was left out, in words."""
        lines = [f"{self.size} faces read, {len(self.skipped)} files left out."]
        return "\n".join([*lines, *(f"{one.name}: {one.why}" for one in self.skipped)])


def load_utkface(
    folder: PathLike,
    *,
    size: int = 64,
    age_edges: Iterable[int] = AGE_EDGES,
    on_error: str = "raise",
) -> Faces:
    """All faces of a folder. Needs Pillow (extra `images`).

    Each is resized to `size` x `size` by bilinear interpolation, whatever its shape; grey ones
    become colour. Files come in the order of their names, on any system. Subfolders are not
    entered, names that begin with a dot are passed over, and a link is followed only where it stays
    inside the folder. `on_error`: what becomes of a malformed name, of a link that leads out and of
    an image that cannot be read: an error that names the first five ("raise"), or each is left out
    and listed in `skipped` ("skip").
    Names are looked at before any image is read.
    """
    edges, size = _edges(age_edges), _checks.whole(size=size, at_least=1)
    _checks.one_of(("raise", "skip"), on_error=on_error)
    if importlib.util.find_spec("PIL") is None:
        raise InputError.expected(
            "Pillow", of="load_utkface", got="no Pillow", remedy="pip install 'fairveil[images]'"
        )
    good, skipped = _listed(Path(folder).expanduser())
    if on_error == "raise" and skipped:
        raise _faulty(skipped)  # before any image is read
    kept: list[str] = []
    codes: list[tuple[int, int, int]] = []
    pixels = np.empty((len(good), 3, size, size), np.uint8)
    for path, of_name in good:
        fault = _into(pixels[len(kept)], path)
        if fault is None:
            kept.append(path.name)
            codes.append(of_name)
        else:
            skipped.append(Skipped(path.name, fault))
            if on_error == "raise":
                raise _faulty(skipped)
    if not kept:
        got = f"{len(skipped)} files, none of which is one"
        remedy = "Pass the folder that holds the .jpg files themselves."
        raise DataNotFoundError.expected("images of faces", of=str(folder), got=got, remedy=remedy)
    ages, genders, races = (np.array(column, np.int64) for column in zip(*codes, strict=True))
    groups = np.array([bisect_right(edges, age) for age in ages], np.int64)
    order = tuple(sorted(skipped, key=lambda one: one.name))
    return Faces(pixels[: len(kept)], ages, groups, genders, races, tuple(kept), edges, order)


def _edges(given: Iterable[int]) -> tuple[int, ...]:
    edges = tuple(_checks.whole(age_edges=edge, at_least=1) for edge in given)
    if not edges or any(after <= before for before, after in pairwise(edges)):
        remedy = "Pass (18, 65), for example, for 0-17, 18-64, 65 and more."
        raise InputError.expected(
            "rising whole numbers above 0", of="age_edges", got=edges, remedy=remedy
        )
    return edges


def _listed(folder: Path) -> tuple[list[tuple[Path, tuple[int, int, int]]], list[Skipped]]:
    """The folder's files with what their names say, in the order of the names; and those that are
    no such file."""
    if not folder.is_dir():
        came = "a file" if folder.exists() else "nothing there"
        remedy = f"Look for its name; the current folder is {Path.cwd()}."
        raise DataNotFoundError.expected(
            "a folder of faces", of=str(folder), got=came, remedy=remedy
        )
    root, good, bad = folder.resolve(), [], []
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.startswith(".") or (path.is_dir() and not path.is_symlink()):
            continue
        fault = _strays(path, root)
        said = _said(path.name)
        if fault is None and said is not None:
            good.append((path, said))
        else:
            bad.append(
                Skipped(path.name, fault or "its name is not [age]_[gender]_[race]_[date&time].jpg")
            )
    return good, bad


def _strays(path: Path, root: Path) -> str | None:
    """Why an entry is no file of this folder."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return "it is a link that leads nowhere"
    if path.is_symlink() and not target.is_relative_to(root):
        return "it is a link that leads out of the folder"
    return None if target.is_file() else "it is not a file"


def _said(name: str) -> tuple[int, int, int] | None:
    """Age, gender and race of a name; None where it is no such name."""
    found = _NAME.fullmatch(name)
    if found is None or int(found[1]) > OLDEST:
        return None
    return int(found[1]), int(found[2]), int(found[3])


def _into(out: Pixels, path: Path) -> str | None:
    """Read one image into (3, size, size); why it cannot be read, or None."""
    from PIL import Image

    side = out.shape[1]
    try:
        with warnings.catch_warnings():
            # Pillow only warns of an image that is far too large to be a face
            warnings.simplefilter("error")
            # no other decoder runs, whatever the bytes are
            with Image.open(path, formats=("JPEG",)) as opened:
                image = opened.convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
    except (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError) as error:
        return f"it cannot be read: {_words(error, path)}"
    out[:] = np.asarray(image, np.uint8).transpose(2, 0, 1)
    return None


def _words(error: BaseException, path: Path) -> str:
    said: Any = str(error) or type(error).__name__
    return str(said).replace(str(path), path.name)


def _faulty(skipped: list[Skipped]) -> InputError:
    named = "; ".join(f"{one.name}: {one.why}" for one in skipped[:MOST_NAMED])
    more = "" if len(skipped) <= MOST_NAMED else f"; and {len(skipped) - MOST_NAMED} more"
    remedy = "Mend or remove them, or pass on_error='skip' and read .skipped."
    return InputError.expected(
        "files that all are faces", of="load_utkface", got=named + more, remedy=remedy
    )
