"""Models on disk: `model.json` (words and numbers) and `arrays.npz` (arrays, to the last bit).
Never pickle.

What is read is checked before it is used: format, version, kinds, the SHA-256 of the arrays, their
names, types and shapes. That shows damage, not authorship: anyone can write a model.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from .._json import MALFORMED, Document, Node, shown
from ..core.errors import need
from ..errors import ChecksumError, FairveilError, InputError
from . import npz
from .folders import LARGEST_TEXT, read_folder, write_folder
from .linear import GroupedLinearModel, LinearModel, RegressionModel
from .mixture import DerandomisedModel, MixtureModel
from .model import Parts, Predictor
from .postprocessed import PostProcessedModel, ShiftedModel

FORMAT = "fairveil-model"
FORMAT_VERSION = 1
MODEL_FILE, ARRAYS_FILE = "model.json", "arrays.npz"
DEEPEST = 8  # models inside models
NETWORK = "network"  # `torch_network.NetworkModel.kind`, without loading torch
TYPES = npz.TYPES
REMEDY = "It is not what was saved: save the model again."
DOCUMENT = Document(MODEL_FILE, REMEDY, largest=LARGEST_TEXT)
ARRAYS = Document(ARRAYS_FILE, REMEDY)
KINDS: Mapping[str, type[Predictor]] = {
    one.kind: one
    for one in (
        *(LinearModel, GroupedLinearModel, RegressionModel, MixtureModel, DerandomisedModel),
        *(PostProcessedModel, ShiftedModel),
    )
}
"""Every kind of model but networks."""
KNOWN = sorted((*KINDS, NETWORK))
OTHER = "Read it with the version of Fairveil that wrote it."


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
    content, packed = _content(files[MODEL_FILE]), files[ARRAYS_FILE]
    told = content["arrays_sha256"].text()
    same = hashlib.sha256(packed).hexdigest() == told
    words, fix = f"SHA-256 {told[:64]}", "The file is damaged or from another model: save it again."
    need(same, words, of=ARRAYS_FILE, got="another", fix=fix, error=ChecksumError)
    arrays = npz.read(packed, npz.declared(content["arrays"]), ARRAYS)
    try:
        return _revive(content["model"], arrays, 0, module)
    except FairveilError:
        raise
    except MALFORMED as error:
        found = contradiction(error)
    raise InputError(str(DOCUMENT.refusal("a complete description of a model", found)))


def _describe(
    parts: Parts, place: str, arrays: dict[str, npt.NDArray[Any]], depth: int = 0
) -> dict[str, Any]:
    words, fix = f"at most {DEEPEST} models inside each other", "Flatten the mixtures."
    need(depth <= DEEPEST, words, of="model", got=depth, fix=fix)
    fix = "Save a model of fairveil.models."
    need(parts.kind in KNOWN, f"one of {KNOWN}", of="kind of model", got=parts.kind, fix=fix)
    arrays |= {f"{place}{name}": array for name, array in parts.arrays.items()}
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
    need(kind in KNOWN, f"one of {KNOWN}", of="kind of model", got=kind, fix=OTHER)
    inner = described["models"].list()
    models = tuple(_revive(one, arrays, depth + 1, module) for one in inner)
    places = described["arrays"]
    named = {name: arrays[places[name].one_of(arrays)] for name in places.mapping()}
    parts = Parts(kind, described["values"].mapping(), named)
    if kind == NETWORK:
        from .torch_network import NetworkModel

        return NetworkModel.revived(parts, module)
    return KINDS[kind].from_parts(parts, models)


def largest_arrays(raw: bytes) -> int:
    """Bytes that the arrays of a model may have, by what its `model.json` declares."""
    return npz.largest_file(npz.declared(_content(raw)["arrays"]))


def _content(raw: bytes) -> Node:
    content = DOCUMENT.node(raw)
    if content.mapping().get("format") != FORMAT:
        content.refuse(f"an object whose 'format' is {FORMAT!r}", content.value)
    version = content["version"].value
    same, got = type(version) is int and version == FORMAT_VERSION, shown(version)
    words = f"version {FORMAT_VERSION}"
    need(same, words, of=MODEL_FILE, got=got, fix=OTHER, quote=False)
    return content.only(("format", "version", "model", "arrays", "arrays_sha256"))


def contradiction(error: Exception) -> str:
    """What is wrong with a description whose parts do not fit, of the error that came of it; never
    the error's own words."""
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        return f"one without {shown(error.args[0])}"
    return f"one whose parts do not fit ({type(error).__name__})"
