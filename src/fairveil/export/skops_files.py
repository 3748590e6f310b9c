"""Fitted estimators, and pipelines that end in one, in skops files. No pickle, and one type to
trust: `Portable`.

skops writes an object as its attributes, and a file names every type that is not its own: whoever
reads the file trusts them one by one. An estimator of this library is written as the files of
`fairveil.save`, inside one `Portable`, and read back by the same strict readers.

Guarantees (tests/export/test_skops.py):
1. What was read predicts the same bits, and has the same statement.
2. Reading asks for the trust of `Portable` alone, beside what other people's steps of a pipeline
   need.
3. Damaged files, and those that `fairveil.save` did not write, are refused as `fairveil.load`
   refuses them.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ..errors import FairveilError, InputError
from ..estimators import load as load_folder
from ..estimators import save as save_folder

NAME = "fairveil.export.skops_files.Portable"
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
    from skops import io

    return bytes(io.dumps(_wrapped(model)))


def loads(data: bytes, *, trusted: Iterable[str] = ()) -> Any:
    """The inverse of `dumps`. `trusted`: types of other people's steps that you trust too, as
    `skops.io.loads` takes them."""
    from skops import io

    if isinstance(trusted, str):
        remedy = f"Pass [{trusted!r}]."
        raise InputError.expected("a list of names", of="trusted", got=trusted, remedy=remedy)
    try:
        found = io.loads(data, trusted=[NAME, *trusted])
    except FairveilError:
        raise
    except Exception as error:
        got = f"another ({type(error).__name__})"
        raise InputError.expected(
            "a skops file of trusted types", of="data", got=got, remedy=f"It says: {error}"
        ) from error
    return _unwrapped(found)


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
        or not all(isinstance(name, str) for name in files)
        or not all(isinstance(raw, bytes | bytearray) for raw in files.values())
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


def _broken(expected: str, got: object) -> InputError:
    remedy = "Write it again with fairveil.export.skops_files.dumps."
    return InputError.expected(expected, of="skops file", got=got, remedy=remedy)


def _wrapped(model: object) -> Any:
    if not isinstance(model, Pipeline):
        return Portable(model)
    out, (name, last) = copy.copy(model), model.steps[-1]
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
