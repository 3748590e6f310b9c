"""Models on disk: `model.json` (words and numbers) and `arrays.npz` (arrays, to the last bit). Never pickle.

A new kind of model takes part by `register(kind, reader)`. What is read is checked before it is used: format, version, kinds,
the SHA-256 of the arrays, their names, types and shapes. That shows damage, not authorship: anyone can write a model.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ChecksumError, FairveilError, InputError, complaint
from .folders import read_folder, write_folder
from .grouped import GroupedLinearModel
from .linear import LinearModel
from .mixture import DerandomisedModel, MixtureModel
from .model import Parts, Predictor
from .postprocessed import PostProcessedModel
from .regression import RegressionModel

FORMAT = "fairveil-model"
FORMAT_VERSION = 1
MODEL_FILE, ARRAYS_FILE = "model.json", "arrays.npz"
DEEPEST = 8  # models inside models
NETWORK = "network"  # `torch_network.NetworkModel.kind`, without loading torch
TYPES = ("<f8", "<f4", "<i8", "<i4", "|u1", "<u2", "|b1")

Reader = Callable[[Parts, tuple[Any, ...]], Predictor]
_readers: dict[str, Reader] = {}


def register(kind: str, reader: Reader) -> None:
    """Say how models of a kind are put together again, from their parts and the models that they are made of."""
    if kind in _readers:
        raise InputError(complaint(expected="a kind that is not taken", of="kind", got=kind, remedy="Choose another name."))
    _readers[kind] = reader


register(LinearModel.kind, lambda parts, models: LinearModel.from_parts(parts))
register(MixtureModel.kind, lambda parts, models: MixtureModel(models, parts.arrays["weights"]))
register(DerandomisedModel.kind, lambda parts, models: DerandomisedModel(models[0], parts.values["threshold"]))
register(PostProcessedModel.kind, PostProcessedModel.from_parts)
register(GroupedLinearModel.kind, lambda parts, models: GroupedLinearModel.from_parts(parts, models[0]))
register(RegressionModel.kind, lambda parts, models: RegressionModel.from_parts(parts))


def save(model: Predictor, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a folder, whole or not at all. An existing one is replaced only if it holds a model and `overwrite=True`."""
    return write_folder(path, to_files(model), replaces=MODEL_FILE if overwrite else None)


def load(path: str | os.PathLike[str], *, model: Any = None) -> Any:
    """The model that `save` wrote, bit for bit. `model`: the torch module of a network, whose class is never on disk."""
    return from_files(read_folder(path, (MODEL_FILE, ARRAYS_FILE)), model)


def to_files(model: Predictor) -> dict[str, bytes]:
    """The content of a model's files by name, for a folder that holds more than the model."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    described = _describe(model.to_parts(), "", arrays)
    packed = _pack(arrays)
    content = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "model": described,
        "arrays": {name: {"type": array.dtype.str, "shape": list(array.shape)} for name, array in arrays.items()},
        "arrays_sha256": hashlib.sha256(packed).hexdigest(),
    }
    text = json.dumps(content, indent=1, allow_nan=False, sort_keys=True)
    return {MODEL_FILE: (text + "\n").encode(), ARRAYS_FILE: packed}


def from_files(files: Mapping[str, bytes], module: Any = None) -> Any:
    """The inverse of `to_files`; anything unexpected is an error that says what. `module`: the one of the networks in it."""
    content = _read_json(files[MODEL_FILE])
    packed = files[ARRAYS_FILE]
    if hashlib.sha256(packed).hexdigest() != content["arrays_sha256"]:
        remedy = "The file is damaged or from another model: save it again."
        expected = f"SHA-256 {content['arrays_sha256']}"
        raise ChecksumError(complaint(expected=expected, of=ARRAYS_FILE, got="another", remedy=remedy))
    try:
        return _revive(content["model"], _read_arrays(packed, content["arrays"]), 0, module)
    except FairveilError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise _broken("a complete description of a model", f"{type(error).__name__}: {error}") from error


def _pack(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """An .npz archive without times in it: the same arrays make the same bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            raw = io.BytesIO()
            np.lib.format.write_array(raw, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), raw.getvalue())
    return packed.getvalue()


def _describe(parts: Parts, place: str, arrays: dict[str, npt.NDArray[Any]], depth: int = 0) -> dict[str, Any]:
    if depth > DEEPEST:
        remedy = "Flatten the mixtures."
        raise InputError(
            complaint(expected=f"at most {DEEPEST} models inside each other", of="model", got=depth, remedy=remedy)
        )
    if parts.kind not in (*_readers, NETWORK):
        remedy = "Register it with models.files.register."
        raise InputError(complaint(expected=f"one of {sorted(_readers)}", of="kind of model", got=parts.kind, remedy=remedy))
    for name, array in parts.arrays.items():
        if array.dtype.str not in TYPES:
            remedy = "Convert the array first."
            raise InputError(complaint(expected=f"one of {TYPES}", of=f"type of {name}", got=array.dtype.str, remedy=remedy))
        arrays[f"{place}{name}"] = array
    inner = [_describe(model, f"{place}{t}.", arrays, depth + 1) for t, model in enumerate(parts.models)]
    names = {name: f"{place}{name}" for name in parts.arrays}
    return {"kind": parts.kind, "values": dict(parts.values), "arrays": names, "models": inner}


def _revive(described: Any, arrays: Mapping[str, npt.NDArray[Any]], depth: int, module: Any) -> Predictor:
    if not isinstance(described, Mapping) or set(described) != {"kind", "values", "arrays", "models"}:
        raise _broken("a model with 'kind', 'values', 'arrays' and 'models'", described)
    if depth > DEEPEST:
        raise _broken(f"at most {DEEPEST} models inside each other", depth)
    reader = _readers.get(described["kind"]) if isinstance(described["kind"], str) else None
    if reader is None and described["kind"] != NETWORK:
        remedy = "Read it with the version of Fairveil that wrote it, or load the extra that it needs."
        expected = f"one of {sorted(_readers)}"
        raise InputError(complaint(expected=expected, of="kind of model", got=described["kind"], remedy=remedy))
    models = tuple(_revive(inner, arrays, depth + 1, module) for inner in described["models"])
    named = {name: arrays[place] for name, place in described["arrays"].items()}
    inner_parts = tuple(model.to_parts() for model in models)
    parts = Parts(described["kind"], described["values"], named, inner_parts)
    if reader is None:
        from .torch_network import NetworkModel

        return NetworkModel.from_parts(parts, module)
    return reader(parts, models)


def _read_json(raw: bytes) -> dict[str, Any]:
    try:
        content = json.loads(raw.decode("utf-8"), parse_constant=lambda word: _refuse_constant(word))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise _broken("a JSON text", str(error)) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _broken(f"an object whose 'format' is {FORMAT!r}", content)
    if content.get("version") != FORMAT_VERSION:
        remedy = "Read it with the version of Fairveil that wrote it."
        got = content.get("version")
        raise InputError(complaint(expected=f"version {FORMAT_VERSION}", of=MODEL_FILE, got=got, remedy=remedy))
    if set(content) != {"format", "version", "model", "arrays", "arrays_sha256"} or not isinstance(content["arrays"], dict):
        raise _broken("'model', 'arrays' and 'arrays_sha256'", sorted(content))
    return content


def _refuse_constant(word: str) -> Any:
    raise _broken("finite numbers", word)


def _read_arrays(packed: bytes, declared: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Arrays of the declared names, types and shapes, and no others. Stored, not compressed: no bomb can grow on reading."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            members = archive.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise _broken("stored arrays", "compressed ones", of=ARRAYS_FILE)
            if sorted(member.filename for member in members) != sorted(f"{name}.npy" for name in declared):
                raise _broken(f"the arrays {sorted(declared)}", [m.filename for m in members], of=ARRAYS_FILE)
            found = {name: _read_array(archive.read(f"{name}.npy"), name, facts) for name, facts in declared.items()}
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _broken("arrays", str(error), of=ARRAYS_FILE) from error
    return found


def _read_array(raw: bytes, name: str, facts: Any) -> npt.NDArray[Any]:
    array = np.lib.format.read_array(io.BytesIO(raw), allow_pickle=False)
    got = {"type": array.dtype.str, "shape": list(array.shape)}
    if got != facts or array.dtype.str not in TYPES:
        raise _broken(f"{name} of {facts}", got, of=ARRAYS_FILE)
    return array


def _broken(expected: str, got: object, *, of: str = MODEL_FILE) -> InputError:
    text = got if isinstance(got, str) else repr(got)
    shown = text if len(text) <= 200 else text[:197] + "..."
    return InputError(complaint(expected=expected, of=of, got=shown, remedy="It is not what was saved: save the model again."))
