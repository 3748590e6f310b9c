"""Fitted estimators, and pipelines that end in one, in skops files. No pickle, and one type to
trust: `Portable`.

skops writes an object as its attributes, and a file names every type that is not its own: whoever
reads the file trusts them one by one. An estimator of this library is written as the files of
`fairveil.save`, inside one `Portable`, and read back by the same strict readers.

Guarantees (tests/compat/test_skops.py):
1. What was read predicts the same bits, and has the same statement.
2. Reading asks for the trust of `Portable` alone, beside what other people's steps of a pipeline
   need.
3. Damaged files, and those that `fairveil.save` did not write, are refused as `fairveil.load`
   refuses them.
"""

from __future__ import annotations

import copy
import os
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from .. import _checks
from ..errors import FairveilError, InputError
from ..estimators import load as load_folder
from ..estimators import save as save_folder
from .libraries import missing

NAME = "fairveil.compat.skops_files.Portable"
MOST_FILES = 64


class Portable(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A fitted estimator whose state is the files of `fairveil.save`.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this library.
    """

    def __init__(self, estimator: BaseEstimator = None) -> None:
        self.estimator = estimator

    def __getstate__(self) -> dict[str, Any]:
        """The files, by name."""
        return {"files": packed(self.estimator)}

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, dict) or set(state) != {"files"}:
            raise _broken("the files of one estimator", type(state).__name__)
        self.estimator = unpacked(state["files"])


def dumps(model: object) -> bytes:
    """A fitted estimator of this library, or a scikit-learn `Pipeline` that ends in one, as the
    bytes of a skops file."""
    return bytes(_skops().dumps(_wrapped(model)))


def loads(data: object, *, trusted: Iterable[str] = ()) -> Any:
    """The inverse of `dumps`. `trusted`: types of other people's steps that you trust too, as
    `skops.io.loads` takes them."""
    remedy = "Read the file: path.read_bytes()."
    data = _checks.instance(bytes, "data", data, remedy, "bytes")
    if isinstance(trusted, str):
        raise InputError.expected(
            "a list of names", of="trusted", got=trusted, remedy=f"Pass [{trusted!r}]."
        )
    skops = _skops()
    try:
        found = skops.loads(data, trusted=[NAME, *trusted])
    except FairveilError:
        raise
    except Exception as error:
        remedy = f"It says: {error}"
        raise InputError.expected(
            "a skops file of trusted types",
            of="data",
            got=f"another ({type(error).__name__})",
            remedy=remedy,
        ) from error
    return _unwrapped(found)


def dump(model: object, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """`dumps` to a file, written whole or not at all."""
    target = Path(path)
    if target.is_dir() or (target.exists() and not overwrite):
        remedy = "Name another file, or pass overwrite=True."
        raise InputError.expected(
            "a file that is not there yet", of="path", got=str(target), remedy=remedy
        )
    content = dumps(model)
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        part.write_bytes(content)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    return target


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> Any:
    """`loads` of a file."""
    return loads(Path(path).read_bytes(), trusted=trusted)


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise missing(error, "skops") from None
    return skops.io


def packed(estimator: object) -> dict[str, bytes]:
    """The files of `fairveil.save`, by name."""
    with tempfile.TemporaryDirectory() as folder:
        place = save_folder(estimator, Path(folder) / "model")
        return {file.name: file.read_bytes() for file in sorted(place.iterdir())}


def unpacked(files: object) -> Any:
    """The estimator of such files."""
    if (
        not isinstance(files, dict)
        or len(files) > MOST_FILES
        or not all(isinstance(name, str) and _is_bytes(raw) for name, raw in files.items())
    ):
        raise _broken("files by name", type(files).__name__)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        place.mkdir()
        for name, raw in files.items():
            if Path(name).name != name or name in ("", ".", ".."):
                raise _broken("names of files", name)
            (place / name).write_bytes(raw)
        return load_folder(place)


def _is_bytes(raw: object) -> bool:
    return isinstance(raw, bytes | bytearray)


def _broken(expected: str, got: object) -> InputError:
    remedy = "Write it again with fairveil.compat.skops_files.dump."
    return InputError.expected(expected, of="skops file", got=got, remedy=remedy)


def _wrapped(model: object) -> Any:
    if not isinstance(model, Pipeline):
        return Portable(model)
    out = copy.copy(model)
    name, last = model.steps[-1]
    out.steps = [*model.steps[:-1], (name, Portable(last))]
    return out


def _unwrapped(found: object) -> Any:
    if isinstance(found, Portable):
        return found.estimator
    if isinstance(found, Pipeline) and isinstance(found.steps[-1][1], Portable):
        name, last = found.steps[-1]
        found.steps = [*found.steps[:-1], (name, last.estimator)]
        return found
    raise _broken("an estimator of Fairveil, or a pipeline that ends in one", type(found).__name__)
