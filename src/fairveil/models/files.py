"""Models on disk: `model.json` (words and numbers) and `arrays.npz` (arrays, to the last bit).
Never pickle.

A new kind of model takes part by `register(kind, reader)`. What is read is checked before it is
used: format, version, kinds, the SHA-256 of the arrays, their names, types and shapes. That shows
damage, not authorship: anyone can write a model.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from .._json import MALFORMED, Document, Node, shown
from ..errors import ChecksumError, FairveilError, InputError
from . import npz
from .folders import LARGEST_TEXT, read_folder, write_folder
from .grouped import GroupedLinearModel
from .linear import LinearModel
from .mixture import DerandomisedModel, MixtureModel
from .model import Parts, Predictor
from .postprocessed import PostProcessedModel
from .regression import RegressionModel
from .shifted import ShiftedModel

FORMAT = "fairveil-model"
FORMAT_VERSION = 1
MODEL_FILE, ARRAYS_FILE = "model.json", "arrays.npz"
DEEPEST = 8  # models inside models
NETWORK = "network"  # `torch_network.NetworkModel.kind`, without loading torch
TYPES = npz.TYPES
REMEDY = "It is not what was saved: save the model again."
DOCUMENT = Document(MODEL_FILE, REMEDY, largest=LARGEST_TEXT)
ARRAYS = Document(ARRAYS_FILE, REMEDY)

Reader = Callable[[Parts, tuple[Any, ...]], Predictor]
_readers: dict[str, Reader] = {}


def register(kind: str, reader: Reader) -> None:
    """Say how models of a kind are put together again, from their parts and the models that they
    are made of."""
    if kind in _readers:
        raise InputError.expected(
            "a kind that is not taken", of="kind", got=kind, remedy="Choose another name."
        )
    _readers[kind] = reader


register(LinearModel.kind, lambda parts, models: LinearModel.from_parts(parts))
register(MixtureModel.kind, lambda parts, models: MixtureModel(models, parts.arrays["weights"]))
register(DerandomisedModel.kind, lambda parts, models: DerandomisedModel(models[0]))
register(PostProcessedModel.kind, PostProcessedModel.from_parts)
register(ShiftedModel.kind, ShiftedModel.from_parts)
register(
    GroupedLinearModel.kind, lambda parts, models: GroupedLinearModel.from_parts(parts, models[0])
)
register(RegressionModel.kind, lambda parts, models: RegressionModel.from_parts(parts))


def save(model: Predictor, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a folder, whole or not at all. An existing one is replaced only if it holds a model and
    `overwrite=True`."""
    return write_folder(path, to_files(model), replaces=MODEL_FILE if overwrite else None)


def load(path: str | os.PathLike[str], *, model: object = None) -> Any:
    """The model that `save` wrote, bit for bit. `model`: the torch module of a network, whose class
    is never on disk."""
    files = read_folder(path, (MODEL_FILE,))
    most = largest_arrays(files[MODEL_FILE])
    return from_files(files | read_folder(path, (ARRAYS_FILE,), lambda _: most), model)


def to_files(model: Predictor) -> dict[str, bytes]:
    """The content of a model's files by name, for a folder that holds more than the model."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    described = _describe(model.to_parts(), "", arrays)
    packed = npz.packed(arrays)
    content = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "model": described,
        "arrays": {
            name: {"type": array.dtype.str, "shape": list(array.shape)}
            for name, array in arrays.items()
        },
        "arrays_sha256": hashlib.sha256(packed).hexdigest(),
    }
    text = json.dumps(content, indent=1, allow_nan=False, sort_keys=True)
    return {MODEL_FILE: (text + "\n").encode(), ARRAYS_FILE: packed}


def from_files(files: Mapping[str, bytes], module: object = None) -> Any:
    """The inverse of `to_files`; anything unexpected is an error that says what. `module`: the one
    of the networks in it."""
    content = _content(files[MODEL_FILE])
    packed = files[ARRAYS_FILE]
    expected = content["arrays_sha256"].text()
    if hashlib.sha256(packed).hexdigest() != expected:
        remedy = "The file is damaged or from another model: save it again."
        got = "another"
        raise ChecksumError.expected(
            f"SHA-256 {expected[:64]}", of=ARRAYS_FILE, got=got, remedy=remedy
        )
    arrays = npz.read(packed, npz.declared(content["arrays"]), ARRAYS)
    try:
        return _revive(content["model"], arrays, 0, module)
    except FairveilError:
        raise
    except MALFORMED as error:
        found = contradiction(error)
    raise _broken("a complete description of a model", found)


def _describe(
    parts: Parts, place: str, arrays: dict[str, npt.NDArray[Any]], depth: int = 0
) -> dict[str, Any]:
    if depth > DEEPEST:
        remedy = "Flatten the mixtures."
        raise InputError.expected(
            f"at most {DEEPEST} models inside each other", of="model", got=depth, remedy=remedy
        )
    if parts.kind not in (*_readers, NETWORK):
        remedy = "Register it with models.files.register."
        raise InputError.expected(
            f"one of {sorted(_readers)}", of="kind of model", got=parts.kind, remedy=remedy
        )
    for name, array in parts.arrays.items():
        if array.dtype.str not in TYPES:
            remedy = "Convert the array first."
            raise InputError.expected(
                f"one of {TYPES}", of=f"type of {name}", got=array.dtype.str, remedy=remedy
            )
        arrays[f"{place}{name}"] = array
    inner = [
        _describe(model, f"{place}{t}.", arrays, depth + 1) for t, model in enumerate(parts.models)
    ]
    names = {name: f"{place}{name}" for name in parts.arrays}
    return {"kind": parts.kind, "values": dict(parts.values), "arrays": names, "models": inner}


def _revive(
    described: Node, arrays: Mapping[str, npt.NDArray[Any]], depth: int, module: Any
) -> Predictor:
    described.only(("kind", "values", "arrays", "models"))
    if depth > DEEPEST:
        described.refuse(f"at most {DEEPEST} models inside each other", depth)
    kind = described["kind"].text()
    reader = _readers.get(kind)
    if reader is None and kind != NETWORK:
        remedy = (
            "Read it with the version of Fairveil that wrote it, or load the extra that it needs."
        )
        expected = f"one of {sorted(_readers)}"
        raise InputError.expected(expected, of="kind of model", got=kind, remedy=remedy)
    models = tuple(
        _revive(inner, arrays, depth + 1, module) for inner in described["models"].list()
    )
    places = described["arrays"]
    named = {name: arrays[places[name].one_of(arrays)] for name in places.mapping()}
    inner_parts = tuple(model.to_parts() for model in models)
    parts = Parts(kind, described["values"].mapping(), named, inner_parts)
    if reader is None:
        from .torch_model import NetworkModel

        return NetworkModel.from_parts(parts, module)
    return reader(parts, models)


def largest_arrays(raw: bytes) -> int:
    """Bytes that the arrays of a model may have, by what its `model.json` declares."""
    return npz.largest_file(npz.declared(_content(raw)["arrays"]))


def _content(raw: bytes) -> Node:
    content = DOCUMENT.node(raw)
    if content.mapping().get("format") != FORMAT:
        content.refuse(f"an object whose 'format' is {FORMAT!r}", content.value)
    version = content["version"].value
    if type(version) is not int or version != FORMAT_VERSION:
        remedy = "Read it with the version of Fairveil that wrote it."
        expected = f"version {FORMAT_VERSION}"
        raise InputError.expected(
            expected, of=MODEL_FILE, got=shown(version), remedy=remedy, quote=False
        )
    return content.only(("format", "version", "model", "arrays", "arrays_sha256"))


def contradiction(error: Exception) -> str:
    """What is wrong with a description whose parts do not fit, of the error that came of it; never
    the error's own words."""
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        return f"one without {shown(error.args[0])}"
    return f"one whose parts do not fit ({type(error).__name__})"


def _broken(expected: str, got: object) -> InputError:
    return InputError(str(DOCUMENT.refusal(expected, got)))
