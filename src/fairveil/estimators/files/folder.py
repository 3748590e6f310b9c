"""An estimator's folder: the files that all kinds have, their checksums, and estimators inside
estimators."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..._json import MALFORMED, Node, shown
from ...errors import ChecksumError, FairveilError, InputError
from ...estimators.oracle_game import OracleGameClassifier
from ...models import Model
from ...models import files as model_files
from ...models.folders import read_folder, write_folder
from ...statement.document import PrivacyStatement
from ..certifying import certified_aim
from ..certifying.certificate import Certificate
from ..fitting.requirements import said
from ..group_objective import GroupObjectiveClassifier
from ..reading import agreement
from ..reading.additive import Additive
from ..reading.fitted_parts import names_of_features, parts_of
from ..reports.baselines import BaselineReport
from ..saving import values as files_json
from ..settings.oracles import OracleGame
from ..wrapped import bases
from .kind import DOCUMENT, ESTIMATOR_FILE, STATEMENT_FILE, broken
from .kinds import KINDS

FORMAT = "fairveil-estimator"


FORMAT_VERSION = 1


MOST_FEATURES = 1 << 31


OTHERS = (model_files.MODEL_FILE, model_files.ARRAYS_FILE, STATEMENT_FILE)


BASELINES = "baselines"  # of what was released to know them


SHARED = {"format", "version", "kind", "parameters", "cells", "columns", "features", "sha256"}


CERTIFICATE_FILE = "certificate.json"  # of fits with a confidence


AIM = "certified_aim"


BASE = "base."


DEEPEST = 4  # estimators inside estimators


KNOWN_FILES = {
    f"{BASE * depth}{name}"
    for depth in range(DEEPEST + 1)
    for name in (*OTHERS, ESTIMATOR_FILE, CERTIFICATE_FILE)
}


def save(estimator: object, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a fitted estimator to a folder, whole or not at all.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this library.
    path : path
        The folder.
    overwrite : bool, default=False
        Whether a folder that holds an estimator is replaced.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InputError
        If the estimator is not fitted, or the folder holds something else.

    Warns
    -----
    NotWritten
        If a part of the estimator is not written.

    See Also
    --------
    load : Reads the folder.
    sql_query : Writes a model for databases.

    Notes
    -----
    Some things are not written, and the loaded estimator lacks them. A random generator: it has
    ``random_state=None``. A ledger: it has ``ledger=None``. A base classifier of another library:
    pass it to `load`. Functions of yours (`objectives.Custom`): it predicts without them, holds the
    word "given", and a warning says so.
    """
    return write_folder(path, to_files(estimator), replaces=ESTIMATOR_FILE if overwrite else None)


def load(path: str | os.PathLike[str], *, estimator: object = None, model: object = None) -> Any:
    """Read the estimator that `save` wrote: it predicts the same bits.

    Unexpected content is an error that names it.

    Parameters
    ----------
    path : path
        The folder.
    estimator : classifier or list of classifiers, default=None
        The fitted base classifier of another library, which is not written, or the candidates of a
        mixture of given classifiers. None: there are none.
    model : torch.nn.Module, default=None
        A module of the same architecture, for a network, whose class is never written. It is
        copied, and gets the weights of the fit. None: there is no network.

    Returns
    -------
    estimator
        Of the class that was saved.

    Raises
    ------
    InputError
        If the folder, or what has to be passed beside it, is not what was saved.
    ChecksumError
        If a file was changed.

    See Also
    --------
    save : Writes the folder.
    """
    files = _read(path)
    loaded = from_files(files, estimator, model)
    if model is not None and not any(
        _has_network(raw) for name, raw in files.items() if name.endswith(ESTIMATOR_FILE)
    ):
        remedy = "Leave model=None: the folder has all that it needs."
        raise InputError.expected("None", of="model", got=type(model).__name__, remedy=remedy)
    return loaded


def _read(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """The files of a folder: texts first, because they say how large the arrays are."""
    files = read_folder(path, (ESTIMATOR_FILE,))
    listed = _content(files[ESTIMATOR_FILE])["sha256"]
    strange = sorted(set(listed.mapping()) - KNOWN_FILES)
    if strange:
        listed.refuse("files that an estimator has", strange)
    arrays = sorted(name for name in listed.mapping() if name.endswith(model_files.ARRAYS_FILE))
    files |= read_folder(path, tuple(sorted(set(listed.mapping()) - set(arrays))))
    for name in arrays:
        described = name.removesuffix(model_files.ARRAYS_FILE) + model_files.MODEL_FILE
        if described not in files:
            listed.refuse(f"{described} beside {name}", sorted(listed.mapping()))
        most = model_files.largest_arrays(files[described])
        files |= read_folder(path, (name,), lambda _, most=most: most)  # type: ignore[misc]
    return files


def to_files(estimator: BaseEstimator, depth: int = 0) -> dict[str, bytes]:
    from sklearn.utils.validation import check_is_fitted

    kind = next((name for name, kind in KINDS.items() if type(estimator) is kind.cls), None)
    if kind is None or depth > DEEPEST:
        raise InputError.expected(
            f"one of {', '.join(KINDS)}",
            of="estimator",
            got=type(estimator).__name__,
            remedy="Models alone are saved with fairveil.models.save(model, path).",
        )
    check_is_fitted(estimator, "model_")
    model = {} if estimator.model_ is None else model_files.to_files(estimator.model_)
    files = model | {STATEMENT_FILE: estimator.privacy_.to_json().encode()}
    parts = parts_of(estimator)
    certified = parts.certificate
    if certified is not None:
        files[CERTIFICATE_FILE] = certified.to_json().encode()
    parameters = estimator.get_params(deep=False)
    parameters |= {"ledger": None} if "ledger" in parameters else {}
    # one value a row says whose each row is: never written
    if not isinstance(parameters.get("unit", ""), str):
        parameters["unit"] = None
    if parts.candidates:
        parameters |= _without_listed(estimator)
    if "estimator" in parameters and hasattr(estimator, "estimator_"):
        if bases.carries_a_promise(estimator.estimator_):
            inner = to_files(bases.thawed(estimator.estimator_), depth + 1)
            files |= {f"{BASE}{name}": raw for name, raw in inner.items()}
        parameters["estimator"] = None if parameters["estimator"] is None else "given"
    if "model" in parameters:
        parameters["model"] = _model_written(parameters["model"])
    names = names_of_features(estimator)
    content = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "kind": kind,
        "parameters": {
            name: files_json.parameter(value, name) for name, value in parameters.items()
        },
        "cells": files_json.cells_to_dict(estimator.cells_),
        "columns": None if not names else list(names),
        "features": estimator.n_features_in_,
        "sha256": {name: hashlib.sha256(raw).hexdigest() for name, raw in files.items()},
        **KINDS[kind].content(estimator),
    }
    if (compared := parts.baselines) is not None:
        content[BASELINES] = compared.to_dict()
    if (aim := parts.certified_aim) is not None:
        content[AIM] = certified_aim.to_dict(aim)
    text = json.dumps(content, indent=1, allow_nan=False, sort_keys=True) + "\n"
    return files | {ESTIMATOR_FILE: text.encode()}


def _model_written(model: object) -> Any:
    """A module is handed in again; what says which steps an additive model has is plain values."""
    return model if model is None or isinstance(model, str | Additive) else "given"


def _without_listed(estimator: GroupObjectiveClassifier | OracleGameClassifier) -> dict[str, Any]:
    """The parameter in which classifiers made elsewhere were given, with a word for them."""
    if isinstance(estimator, GroupObjectiveClassifier):
        return {"decisions": "given"}
    return {"solver": replace(estimator._setting("solver", OracleGame), candidates="given")}


def from_files(files: Mapping[str, bytes], given: object, module: object, depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise broken(f"at most {DEEPEST} estimators inside each other", depth)
    content = _content(files[ESTIMATOR_FILE])
    # rules made elsewhere: no model of ours
    foreign = content.mapping().get("candidates") is not None
    listed = content["sha256"].mapping()
    for name in sorted({*((STATEMENT_FILE,) if foreign else OTHERS), *listed}):
        found = hashlib.sha256(files.get(name, b"")).hexdigest()
        if found != listed.get(name):
            remedy = "A file is damaged or from another folder: save the estimator again."
            expected = f"SHA-256 {shown(listed.get(name))}"
            raise ChecksumError.expected(expected, of=name, got=found, remedy=remedy)
    model = None if foreign else model_files.from_files(files, module)
    statement = PrivacyStatement.from_json(files[STATEMENT_FILE].decode("utf-8", "replace"))
    inner = {name.removeprefix(BASE): raw for name, raw in files.items() if name.startswith(BASE)}
    base = _base_of(
        content,
        from_files(inner, None, module, depth + 1) if ESTIMATOR_FILE in inner else None,
        given,
    )
    try:
        revived = _revive(content, model, statement, base, module)
        if CERTIFICATE_FILE in listed:
            revived.certificate_ = Certificate.from_json(
                files[CERTIFICATE_FILE].decode("utf-8", "replace")
            )
            if AIM in content.mapping():
                revived.certified_aim_ = certified_aim.from_dict(content[AIM])
        return revived
    except FairveilError:
        raise
    except MALFORMED as error:
        found = model_files.contradiction(error)
    raise broken("a complete description of an estimator", found)


def _has_network(raw: bytes) -> bool:
    """Whether an estimator's file asks for a module."""
    return bool(_content(raw)["parameters"].mapping().get("model") == "given")


def _base_of(content: Node, written: object, given: object) -> Any:
    """The base that was written, or the one that was handed in: exactly one of them, where there is
    one at all."""
    fields = content.mapping()
    if fields.get("candidates") is not None:
        return _candidates_of(content["candidates"].texts(), given)
    wanted = content["base"].text() if "base" in fields else None
    if wanted is not None and written is not None and type(written).__name__ != wanted:
        raise broken(f"a base that is a {wanted}", type(written).__name__)
    if wanted is None or written is not None:
        if given is not None:
            remedy = "Leave estimator=None: the folder has all that it needs."
            raise InputError.expected(
                "None", of="estimator", got=type(given).__name__, remedy=remedy
            )
        return written
    fitted = given is not None and bases.is_fitted(given)
    if not fitted or type(given).__name__ != wanted:
        raise InputError.expected(
            f"the fitted base classifier, a {wanted}, which is not written",
            of="estimator",
            got=(
                "None"
                if given is None
                else type(given).__name__ + ("" if fitted else ", not fitted")
            ),
            remedy="Pass fairveil.load(path, estimator=base).",
        )
    return given


def _candidates_of(wanted: Sequence[str], given: object) -> tuple[Any, ...]:
    """The candidates of a game, handed in again in their order."""
    listed = tuple(given) if isinstance(given, list | tuple) else ()
    names = [type(one).__name__ for one in listed]
    if names != list(wanted):
        raise InputError.expected(
            f"the list of candidates, which is not written: {', '.join(wanted)}",
            of="estimator",
            got=names if listed else type(given).__name__,
            remedy="Pass fairveil.load(path, estimator=[...]), in the order of the fit.",
        )
    return listed


def _revive(
    content: Node,
    model: Model | None,
    statement: PrivacyStatement,
    base: BaseEstimator,
    module: object,
) -> Any:
    kind = KINDS[content["kind"].value]
    written = content["parameters"]
    parameters = {name: files_json.read_parameter(written[name]) for name in written.mapping()}
    known = set(kind.cls().get_params(deep=False))
    if not set(parameters) <= known:
        written.refuse(f"the parameters of {kind.cls.__name__}", sorted(set(parameters) - known))
    if parameters.get("estimator") == "given":
        parameters["estimator"] = base
    if isinstance(parameters.get("decisions"), str) and parameters["decisions"] == "given":
        parameters["decisions"] = list(base or ())
    game = parameters.get("solver")
    if (
        isinstance(game, OracleGame)
        and isinstance(game.candidates, str)
        and game.candidates == "given"
    ):
        parameters["solver"] = replace(game, candidates=list(base or ()))
    if parameters.get("model") == "given":
        parameters["model"] = module
    estimator = kind.cls(**parameters)
    estimator.privacy_ = statement
    estimator.cells_ = files_json.cells_from_dict(content["cells"])
    estimator.groups_ = () if estimator.cells_ is None else estimator.cells_.keys
    estimator.n_features_in_ = content["features"].whole(at_most=MOST_FEATURES)
    if not content["columns"].is_null:
        estimator.feature_names_in_ = np.array(content["columns"].texts(), dtype=object)
    estimator.baselines_ = (
        BaselineReport.from_dict(content[BASELINES]) if BASELINES in content.mapping() else None
    )
    kind.revive(estimator, content, model, base)
    if hasattr(estimator, "constraint_report_"):  # classes are there now
        estimator.constraint_report_ = estimator.constraint_report_.saying(said(estimator))
    agreement.require(estimator, content)
    return estimator


def _content(raw: bytes) -> Node:
    content = DOCUMENT.node(raw)
    if content.mapping().get("format") != FORMAT:
        content.refuse(f"an object whose 'format' is {FORMAT!r}", content.value)
    remedy = "Read it with the version of Fairveil that wrote it."
    version, name = content["version"].value, content["kind"].value
    if type(version) is not int or version != FORMAT_VERSION:
        expected = f"version {FORMAT_VERSION}"
        raise InputError.expected(
            expected, of=ESTIMATOR_FILE, got=shown(version), remedy=remedy, quote=False
        )
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        expected = f"one of {', '.join(KINDS)}"
        raise InputError.expected(expected, of="kind", got=shown(name), remedy=remedy, quote=False)
    content.only(SHARED | kind.fields, (BASELINES, AIM))
    for name in content["sha256"].mapping():
        content["sha256"][name].text()
    content["parameters"].mapping()
    return content
