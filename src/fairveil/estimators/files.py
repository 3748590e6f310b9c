"""Fitted estimators on disk: a folder with the model, the statement and what the estimator needs to predict. Never pickle.

`model.json` and `arrays.npz` are the model's own files (`models.load` reads them alone), `statement.json` the privacy
statement, `estimator.json` the parameters, the coding of X, classes, groups and the outcome, with the SHA-256 of the other
files. The checksums show damage, not authorship. This is the one module of the room that may import its siblings' estimators.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ChecksumError, FairveilError, InputError, complaint
from ..facts import Cells, Schema
from ..fairness import Notion, keys
from ..fairness.notions import from_dict as notion_from_dict
from ..learning import Outcome, Reason
from ..models import LinearModel
from ..models import files as model_files
from ..models.folders import read_folder, write_folder
from ..privacy.statement import PrivacyStatement
from . import coding_json
from .linear import LinearClassifier
from .rate_constrained import RateConstrainedClassifier

FORMAT = "fairveil-estimator"
FORMAT_VERSION = 1
ESTIMATOR_FILE, STATEMENT_FILE = "estimator.json", "statement.json"
OTHERS = (model_files.MODEL_FILE, model_files.ARRAYS_FILE, STATEMENT_FILE)
KINDS: dict[str, type[RateConstrainedClassifier]] = {"RateConstrainedClassifier": RateConstrainedClassifier}
FIELDS = {"format", "version", "kind", "parameters", "coding", "cells", "columns", "features", "outcome", "sha256"}
ARRAYS = ("weights", "bounds", "values", "spread", "duals", "counts")


def save(estimator: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a fitted estimator to a folder, whole or not at all.

    An existing folder is replaced only if it holds an estimator and `overwrite=True`. A random generator is not written: the
    loaded estimator has `random_state=None`.
    """
    from sklearn.utils.validation import check_is_fitted

    kind = next((name for name, cls in KINDS.items() if type(estimator) is cls), None)
    if kind is None:
        raise InputError(
            complaint(
                expected=f"one of {', '.join(KINDS)}",
                of="estimator",
                got=type(estimator).__name__,
                remedy="Models alone are saved with fairveil.models.save(model, path).",
            )
        )
    check_is_fitted(estimator, "model_")
    files = model_files.to_files(estimator.model_) | {STATEMENT_FILE: estimator.privacy_.to_json().encode()}
    names = getattr(estimator, "feature_names_in_", None)
    content = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "kind": kind,
        "parameters": {name: _to_json(value, name) for name, value in estimator.get_params(deep=False).items()},
        "coding": coding_json.to_dict(estimator.coding_),
        "cells": _cells_to_dict(estimator.cells_),
        "columns": None if names is None else list(names),
        "features": estimator.n_features_in_,
        "outcome": _outcome_to_dict(estimator.outcome_),
        "sha256": {name: hashlib.sha256(raw).hexdigest() for name, raw in files.items()},
    }
    text = json.dumps(content, indent=1, allow_nan=False, sort_keys=True) + "\n"
    return write_folder(path, files | {ESTIMATOR_FILE: text.encode()}, replaces=ESTIMATOR_FILE if overwrite else None)


def load(path: str | os.PathLike[str]) -> RateConstrainedClassifier:
    """The estimator that `save` wrote: it predicts the same bits. Anything unexpected is an error that says what."""
    files = read_folder(path, (ESTIMATOR_FILE, *OTHERS))
    content = _content(files[ESTIMATOR_FILE])
    for name in OTHERS:
        found = hashlib.sha256(files[name]).hexdigest()
        if found != content["sha256"].get(name):
            remedy = "A file is damaged or from another folder: save the estimator again."
            expected = f"SHA-256 {content['sha256'].get(name)}"
            raise ChecksumError(complaint(expected=expected, of=name, got=found, remedy=remedy))
    model = model_files.from_files(files)
    statement = PrivacyStatement.from_json(files[STATEMENT_FILE].decode("utf-8", "replace"))
    try:
        return _revive(content, model, statement)
    except FairveilError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise _broken("a complete description of an estimator", f"{type(error).__name__}: {error}") from error


def _revive(content: Mapping[str, Any], model: Any, statement: PrivacyStatement) -> RateConstrainedClassifier:
    cls = KINDS.get(content["kind"]) if isinstance(content["kind"], str) else None
    if cls is None:
        remedy = "Read it with the version of Fairveil that wrote it."
        raise InputError(complaint(expected=f"one of {', '.join(KINDS)}", of="kind", got=content["kind"], remedy=remedy))
    if not isinstance(model, LinearModel):
        raise _broken("a linear model", type(model).__name__)
    estimator = cls(**{name: _from_json(value) for name, value in content["parameters"].items()})
    estimator.privacy_ = statement
    coding = coding_json.from_dict(content["coding"])
    layout = coding.layout
    if (layout.numbers, tuple(layout.code_sizes)) != (model.numbers, model.code_sizes):
        raise _broken("a coding that fits the model", f"{layout.numbers} numbers and codes of {layout.code_sizes}")
    _revive_shape(estimator, content)
    estimator._set_model(model, coding)
    estimator._set_outcome(_outcome_from_dict(content["outcome"]))
    return estimator


def _revive_shape(estimator: LinearClassifier, content: Mapping[str, Any]) -> None:
    cells = content["cells"]
    estimator.cells_ = (
        None
        if cells is None
        else Cells(tuple(tuple(map(_hashable, column)) for column in cells["columns"]), cells["mode"], tuple(cells["names"]))
    )
    estimator.groups_ = () if estimator.cells_ is None else estimator.cells_.keys
    estimator.n_features_in_ = int(content["features"])
    if content["columns"] is not None:
        estimator.feature_names_in_ = np.array(list(map(str, content["columns"])), dtype=object)


# JSON, both ways


def _to_json(value: Any, name: str) -> Any:
    """A parameter: plain values as they are, the rest under a word that says what it is."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": str(value)}
    if isinstance(value, Notion):
        return {"notion": value.to_dict()}
    if isinstance(value, Schema):
        return {"schema": value.to_dict()}
    if isinstance(value, (list, tuple)):
        return [_to_json(item, name) for item in value]
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    remedy = "Use parameters that JSON can hold."
    raise InputError(complaint(expected="a parameter that can be written", of=name, got=type(value).__name__, remedy=remedy))


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((word, content),) = value.items()
    readers: dict[str, Callable[[Any], Any]] = {
        "number": float,
        "notion": notion_from_dict,
        "schema": Schema.from_dict,
    }
    return readers[word](content)


def _cells_to_dict(cells: Cells | None) -> dict[str, Any] | None:
    if cells is None:
        return None
    columns = [[keys.to_json(value, of="groups") for value in column] for column in cells.columns]
    return {"columns": columns, "mode": cells.mode, "names": list(cells.names)}


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _outcome_to_dict(outcome: Outcome) -> dict[str, Any]:
    """Numbers to the last bit: JSON writes the shortest text that reads back as the same float."""
    arrays = {name: getattr(outcome, name) for name in ARRAYS}
    listed = {name: {"shape": list(array.shape), "values": _numbers(array)} for name, array in arrays.items()}
    return {
        "reason": outcome.reason.name,
        "rounds": outcome.rounds,
        "names": list(outcome.names),
        "rows": outcome.rows,
        "arrays": listed,
    }


def _outcome_from_dict(values: Mapping[str, Any]) -> Outcome:
    arrays = {
        name: np.array([float(number) for number in values["arrays"][name]["values"]]).reshape(values["arrays"][name]["shape"])
        for name in ARRAYS
    }
    return Outcome(
        reason=Reason[values["reason"]],
        rounds=int(values["rounds"]),
        names=tuple(map(str, values["names"])),
        rows=float(values["rows"]),
        **arrays,
    )


def _numbers(array: Any) -> list[Any]:
    return [number if math.isfinite(number) else str(number) for number in np.asarray(array, np.float64).ravel().tolist()]


def _content(raw: bytes) -> dict[str, Any]:
    try:
        content = json.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise _broken("a JSON text", str(error)) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _broken(f"an object whose 'format' is {FORMAT!r}", type(content).__name__)
    if content.get("version") != FORMAT_VERSION:
        remedy = "Read it with the version of Fairveil that wrote it."
        got = content.get("version")
        raise InputError(complaint(expected=f"version {FORMAT_VERSION}", of=ESTIMATOR_FILE, got=got, remedy=remedy))
    if set(content) != FIELDS or not isinstance(content["sha256"], dict):
        raise _broken(f"the fields {sorted(FIELDS)}", sorted(content))
    return content


def _broken(expected: str, got: object) -> InputError:
    remedy = "It is not what was saved: save the estimator again."
    return InputError(complaint(expected=expected, of=ESTIMATOR_FILE, got=str(got)[:200], remedy=remedy))
