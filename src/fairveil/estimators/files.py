"""Fitted estimators on disk: a folder with the model, the statement and what the estimator needs to predict. Never pickle.

`model.json` and `arrays.npz` are the model's own files (`models.load` reads them alone), `statement.json` the privacy
statement, `estimator.json` the parameters and what else was fitted, with the SHA-256 of the other files. A base estimator of
this library inside another is written beside it, under names that begin with "base."; one of another library is not written,
and handed back to `load`. The checksums show damage, not authorship. This is the one module of the room that may import its
siblings' estimators. Each kind of estimator has an entry in `KINDS`: what it writes beside what all do, and how it is read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from .._json import Document, Node, shown
from ..errors import ChecksumError, FairveilError, InputError, complaint
from ..fairness import keys
from ..learning.oracles.choosing import AttachedRule
from ..learning.oracles.oracle import Rule
from ..learning.postprocessing import counting as postprocess
from ..learning.postprocessing import mixing_bounds
from ..learning.released.rates import SoftValue
from ..models import (
    DerandomisedModel,
    GroupedLinearModel,
    LinearModel,
    MixtureModel,
    Model,
    PostProcessedModel,
    RegressionModel,
)
from ..models import files as model_files
from ..models.folders import LARGEST_TEXT, read_folder, write_folder
from ..models.model import known_classes
from ..privacy.statement.statement import PrivacyStatement
from .certifying import certified_aim
from .certifying.certificate import Certificate
from .descending import DescentClassifier
from .faces.coded import as_array
from .fermi import FermiClassifier
from .fitting.requirements import said
from .group_objective import GroupObjectiveClassifier
from .group_objective_regressor import GroupObjectiveRegressor
from .mixing import rule_of
from .oracle_game import OracleGameClassifier
from .post_processing.odds_post_processor import OddsPostProcessor
from .rate_constrained import RateConstrainedClassifier
from .reading import agreement, coding_json
from .reading.additive import Additive
from .released.classifier import ReleasedClassifier
from .reports.baselines import BaselineReport
from .reports.constraint_report import ConstraintLine, ConstraintReport
from .saving import group_objective as group_objective_json
from .saving import regression as regression_json
from .saving import values as files_json
from .tailored import TailoringReport
from .tailored_classifier import TailoredClassifier
from .tailored_regressor import TailoredRegressor
from .wrapped import answers as base_answers
from .wrapped import bases

FORMAT = "fairveil-estimator"
FORMAT_VERSION = 1
MOST_FEATURES = 1 << 31
ESTIMATOR_FILE, STATEMENT_FILE = "estimator.json", "statement.json"
OTHERS = (model_files.MODEL_FILE, model_files.ARRAYS_FILE, STATEMENT_FILE)
BASELINES = "baselines"  # of what was released to know them: nothing of earlier versions' fits
SHARED = {"format", "version", "kind", "parameters", "cells", "columns", "features", "sha256"}
CERTIFICATE_FILE = "certificate.json"  # of fits with a confidence
AIM = "certified_aim"
BASE = "base."
DEEPEST = 4  # estimators inside estimators
KNOWN_FILES = {f"{BASE * depth}{name}" for depth in range(DEEPEST + 1) for name in (*OTHERS, ESTIMATOR_FILE, CERTIFICATE_FILE)}
DOCUMENT = Document(ESTIMATOR_FILE, "It is not what was saved: save the estimator again.", largest=LARGEST_TEXT)


@dataclass(frozen=True)
class Kind:
    """How one class of estimators is written: `content` beside what all write, its `fields` (`optional`: which earlier versions
    did not write); and read: `revive` sets the fitted
    attributes of a new estimator from content, model, and the base (its own, read back, or handed in)."""

    cls: type[Any]
    fields: frozenset[str]
    content: Callable[[Any], dict[str, Any]]
    revive: Callable[[Any, Node, Model | None, Any], None]
    optional: frozenset[str] = frozenset()


def save(estimator: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
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

    See Also
    --------
    load : Reads the folder.
    export_onnx : Writes a model for other programs.

    Notes
    -----
    Some things are not written, and the loaded estimator lacks them. A random generator: it has ``random_state=None``. A
    ledger: it has ``ledger=None``. A base classifier of another library: pass it to `load`. Functions of yours
    (`objectives.Custom`): it predicts without them, holds the word "given", and a warning says so.
    """
    return write_folder(path, _to_files(estimator), replaces=ESTIMATOR_FILE if overwrite else None)


def load(path: str | os.PathLike[str], *, estimator: Any = None, model: Any = None) -> Any:
    """Read the estimator that `save` wrote: it predicts the same bits.

    Unexpected content is an error that names it.

    Parameters
    ----------
    path : path
        The folder.
    estimator : classifier or list of classifiers, default=None
        The fitted base classifier of another library, which is not written, or the candidates of a mixture of given
        classifiers. None: there are none.
    model : torch.nn.Module, default=None
        A module of the same architecture, for a network, whose class is never written. It is copied, and gets the weights of
        the fit. None: there is no network.

    Returns
    -------
    estimator
        Of the class that was saved.

    See Also
    --------
    save : Writes the folder.
    """
    files = _read(path)
    loaded = _from_files(files, estimator, model)
    if model is not None and not any(_has_network(raw) for name, raw in files.items() if name.endswith(ESTIMATOR_FILE)):
        remedy = "Leave model=None: the folder has all that it needs."
        raise InputError(complaint(expected="None", of="model", got=type(model).__name__, remedy=remedy))
    return loaded


# Files


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


def _to_files(estimator: Any, depth: int = 0) -> dict[str, bytes]:
    from sklearn.utils.validation import check_is_fitted

    kind = next((name for name, kind in KINDS.items() if type(estimator) is kind.cls), None)
    if kind is None or depth > DEEPEST:
        raise InputError(
            complaint(
                expected=f"one of {', '.join(KINDS)}",
                of="estimator",
                got=type(estimator).__name__,
                remedy="Models alone are saved with fairveil.models.save(model, path).",
            )
        )
    check_is_fitted(estimator, "model_")
    model = {} if estimator.model_ is None else model_files.to_files(estimator.model_)
    files = model | {STATEMENT_FILE: estimator.privacy_.to_json().encode()}
    certified = getattr(estimator, "certificate_", None)
    if certified is not None:
        files[CERTIFICATE_FILE] = certified.to_json().encode()
    parameters = estimator.get_params(deep=False)
    parameters |= {"ledger": None} if "ledger" in parameters else {}
    if not isinstance(parameters.get("unit", ""), str):  # one value a row says whose each row is: never written
        parameters["unit"] = None
    if getattr(estimator, "candidates_", ()):
        parameters[_listed_in(estimator)] = "given"
    if "estimator" in parameters and hasattr(estimator, "estimator_"):
        if bases.carries_a_promise(estimator.estimator_):
            inner = _to_files(bases.thawed(estimator.estimator_), depth + 1)
            files |= {f"{BASE}{name}": raw for name, raw in inner.items()}
        parameters["estimator"] = None if parameters["estimator"] is None else "given"
    if "model" in parameters:
        parameters["model"] = _model_written(parameters["model"])
    names = getattr(estimator, "feature_names_in_", None)
    content = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "kind": kind,
        "parameters": {name: files_json.parameter(value, name) for name, value in parameters.items()},
        "cells": files_json.cells_to_dict(estimator.cells_),
        "columns": None if names is None else list(names),
        "features": estimator.n_features_in_,
        "sha256": {name: hashlib.sha256(raw).hexdigest() for name, raw in files.items()},
        **KINDS[kind].content(estimator),
    }
    if (compared := getattr(estimator, "baselines_", None)) is not None:
        content[BASELINES] = compared.to_dict()
    if certified is not None:
        content[AIM] = certified_aim.to_dict(estimator.certified_aim_)
    text = json.dumps(content, indent=1, allow_nan=False, sort_keys=True) + "\n"
    return files | {ESTIMATOR_FILE: text.encode()}


def _model_written(model: Any) -> Any:
    """A module is handed in again; what says which steps an additive model has is plain values."""
    return model if model is None or isinstance(model, str | Additive) else "given"


def _listed_in(estimator: Any) -> str:
    """The parameter in which classifiers made elsewhere were given."""
    return "decisions" if isinstance(estimator, GroupObjectiveClassifier) else "candidates"


def _from_files(files: Mapping[str, bytes], given: Any, module: Any, depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise _broken(f"at most {DEEPEST} estimators inside each other", depth)
    content = _content(files[ESTIMATOR_FILE])
    foreign = content.mapping().get("candidates") is not None  # rules made elsewhere: no model of ours
    listed = content["sha256"].mapping()
    for name in sorted({*((STATEMENT_FILE,) if foreign else OTHERS), *listed}):
        found = hashlib.sha256(files.get(name, b"")).hexdigest()
        if found != listed.get(name):
            remedy = "A file is damaged or from another folder: save the estimator again."
            expected = f"SHA-256 {shown(listed.get(name))}"
            raise ChecksumError(complaint(expected=expected, of=name, got=found, remedy=remedy))
    model = None if foreign else model_files.from_files(files, module)
    statement = PrivacyStatement.from_json(files[STATEMENT_FILE].decode("utf-8", "replace"))
    inner = {name.removeprefix(BASE): raw for name, raw in files.items() if name.startswith(BASE)}
    base = _base_of(content, _from_files(inner, None, module, depth + 1) if ESTIMATOR_FILE in inner else None, given)
    try:
        revived = _revive(content, model, statement, base, module)
        if CERTIFICATE_FILE in listed:
            revived.certificate_ = Certificate.from_json(files[CERTIFICATE_FILE].decode("utf-8", "replace"))
            revived.certified_aim_ = certified_aim.from_dict(content[AIM])
        return revived
    except FairveilError:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, MemoryError, RecursionError) as error:
        found = model_files.contradiction(error)
    raise _broken("a complete description of an estimator", found)


def _has_network(raw: bytes) -> bool:
    """Whether an estimator's file asks for a module."""
    return bool(_content(raw)["parameters"].mapping().get("model") == "given")


def _base_of(content: Node, written: Any, given: Any) -> Any:
    """The base that was written, or the one that was handed in: exactly one of them, where there is one at all."""
    fields = content.mapping()
    if fields.get("candidates") is not None:
        return _candidates_of(content["candidates"].texts(), given)
    wanted = content["base"].text() if "base" in fields else None
    if wanted is not None and written is not None and type(written).__name__ != wanted:
        raise _broken(f"a base that is a {wanted}", type(written).__name__)
    if wanted is None or written is not None:
        if given is not None:
            remedy = "Leave estimator=None: the folder has all that it needs."
            raise InputError(complaint(expected="None", of="estimator", got=type(given).__name__, remedy=remedy))
        return written
    fitted = given is not None and bases.is_fitted(given)
    if not fitted or type(given).__name__ != wanted:
        raise InputError(
            complaint(
                expected=f"the fitted base classifier, a {wanted}, which is not written",
                of="estimator",
                got="None" if given is None else type(given).__name__ + ("" if fitted else ", not fitted"),
                remedy="Pass fairveil.load(path, estimator=base).",
            )
        )
    return given


def _candidates_of(wanted: Sequence[str], given: Any) -> tuple[Any, ...]:
    """The candidates of a game, handed in again in their order."""
    listed = tuple(given) if isinstance(given, list | tuple) else ()
    names = [type(one).__name__ for one in listed]
    if names != list(wanted):
        raise InputError(
            complaint(
                expected=f"the list of candidates, which is not written: {', '.join(wanted)}",
                of="estimator",
                got=names if listed else type(given).__name__,
                remedy="Pass fairveil.load(path, estimator=[...]), in the order of the fit.",
            )
        )
    return listed


def _revive(content: Node, model: Model | None, statement: PrivacyStatement, base: Any, module: Any) -> Any:
    kind = KINDS[content["kind"].value]
    written = content["parameters"]
    parameters = {name: files_json.read_parameter(written[name]) for name in written.mapping()}
    known = set(kind.cls().get_params(deep=False))
    if not set(parameters) <= known:
        written.refuse(f"the parameters of {kind.cls.__name__}", sorted(set(parameters) - known))
    if parameters.get("estimator") == "given":
        parameters["estimator"] = base
    for name in ("candidates", "decisions"):
        if isinstance(parameters.get(name), str) and parameters[name] == "given":
            parameters[name] = list(base or ())
    if parameters.get("model") == "given":
        parameters["model"] = module
    estimator = kind.cls(**parameters)
    estimator.privacy_ = statement
    estimator.cells_ = files_json.cells_from_dict(content["cells"])
    estimator.groups_ = () if estimator.cells_ is None else estimator.cells_.keys
    estimator.n_features_in_ = content["features"].whole(at_most=MOST_FEATURES)
    if not content["columns"].is_null:
        estimator.feature_names_in_ = np.array(content["columns"].texts(), dtype=object)
    estimator.baselines_ = BaselineReport.from_dict(content[BASELINES]) if BASELINES in content.mapping() else None
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
        raise InputError(complaint(expected=expected, of=ESTIMATOR_FILE, got=shown(version), remedy=remedy, quote=False))
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        expected = f"one of {', '.join(KINDS)}"
        raise InputError(complaint(expected=expected, of="kind", got=shown(name), remedy=remedy, quote=False))
    content.only(SHARED | kind.fields, (BASELINES, AIM, *kind.optional))
    for name in content["sha256"].mapping():
        content["sha256"][name].text()
    content["parameters"].mapping()
    return content


def _broken(expected: str, got: object) -> InputError:
    return InputError(str(DOCUMENT.refusal(expected, got)))


# Kinds


def _descent_content(estimator: DescentClassifier) -> dict[str, Any]:
    linear = isinstance(estimator.model_, LinearModel | MixtureModel)
    outcome = files_json.outcome_to_dict(estimator.outcome_, weights=linear)
    return {"coding": coding_json.to_dict(estimator.coding_), "outcome": outcome}


def _revive_descent(estimator: DescentClassifier, content: Node, model: Model | None, base: Any) -> None:
    if isinstance(model, MixtureModel) and all(isinstance(one, LinearModel) for one in model.models):
        linear: Any = model.models
        estimator._set_mixture(model, _coding_of(content, linear))
        estimator._set_outcome(files_json.outcome_from_dict(content["outcome"]))
        return
    if isinstance(model, LinearModel):
        estimator._set_model(model, _coding_of(content, [model]))
        estimator._set_outcome(files_json.outcome_from_dict(content["outcome"]))
        return
    if model is None or model.kind != "network":
        raise _broken("a linear model or a network", type(model).__name__)
    network: Any = model
    estimator._set_network(network, coding_json.from_dict(content["coding"]))
    estimator._set_outcome(files_json.outcome_from_dict(content["outcome"], network.parameters))


def _coding_of(content: Node, models: Sequence[LinearModel | RegressionModel]) -> Any:
    coding = coding_json.from_dict(content["coding"])
    layout = coding.layout
    for model in models:
        if (layout.numbers, tuple(layout.code_sizes)) != (model.numbers, model.code_sizes):
            raise _broken("a coding that fits the model", f"{layout.numbers} numbers and codes of {layout.code_sizes}")
    return coding


def _mixture_content(estimator: OracleGameClassifier | GroupObjectiveClassifier) -> dict[str, Any]:
    listed = estimator.candidates_
    return {
        "coding": coding_json.to_dict(estimator.coding_),
        "classes": [keys.to_json(value, of="classes") for value in estimator.classes_.tolist()],
        "places": [rule.place for rule in estimator.outcome_.rules if isinstance(rule, AttachedRule)],
        "candidates": [type(one).__name__ for one in listed] if listed else None,
    }


def _game_content(estimator: OracleGameClassifier) -> dict[str, Any]:
    outcome = files_json.equilibrium_to_dict(estimator.outcome_)
    return _mixture_content(estimator) | {"outcome": outcome, "named": estimator.named_}


def _revive_game(estimator: OracleGameClassifier, content: Node, model: Model | None, base: Any) -> None:
    coding, rules = _mixed(content, model)
    outcome = files_json.equilibrium_from_dict(content["outcome"], rules)
    if len(outcome.plays) != len(rules):
        content["outcome"]["plays"].refuse(f"{len(rules)} numbers of plays", len(outcome.plays))
    estimator._set_game(outcome, model if isinstance(model, MixtureModel | DerandomisedModel) else None, tuple(base or ()))
    estimator.coding_, estimator.classes_, estimator.named_ = coding, _classes_of(content, model), content["named"].truth()


def _mixed(content: Node, model: Model | None) -> tuple[Any, tuple[Rule, ...]]:
    """Coding and rules of a mixture: of linear models, or of candidates by their places."""
    mixed = model.model if isinstance(model, DerandomisedModel) else model
    models = mixed.models if isinstance(mixed, MixtureModel) else ()
    linear = [one.linear if isinstance(one, GroupedLinearModel) else one for one in models]
    if content["candidates"].is_null == (not models) or not all(isinstance(one, LinearModel) for one in linear):
        raise _broken("a mixture of linear models, or candidates", type(model).__name__)
    coding = _coding_of(content, [one for one in linear if isinstance(one, LinearModel)])
    return coding, tuple(map(rule_of, models)) or tuple(AttachedRule(place.whole()) for place in content["places"].list())


def _classes_of(content: Node, model: Model | None) -> Any:
    if model is not None:
        return as_array(tuple(model.classes))
    return as_array(known_classes([keys.plain(value.value, of="classes") for value in content["classes"].list()]))


def _group_objective_content(estimator: GroupObjectiveClassifier) -> dict[str, Any]:
    return _mixture_content(estimator) | {
        "outcome": group_objective_json.found_to_dict(estimator.outcome_),
        "certain": group_objective_json.certain_to_dict(estimator.certain_),
    }


def _revive_group_objective(estimator: GroupObjectiveClassifier, content: Node, model: Model | None, base: Any) -> None:
    coding, rules = _mixed(content, model)
    outcome = group_objective_json.found_from_dict(content["outcome"], rules)
    certain = group_objective_json.certain_from_dict(content["certain"])
    mixture = model if isinstance(model, MixtureModel | DerandomisedModel) else None
    estimator._set_found(outcome, mixture, tuple(base or ()), certain)
    estimator.coding_, estimator.classes_ = coding, _classes_of(content, model)


def _post_content(estimator: OddsPostProcessor) -> dict[str, Any]:
    report = estimator.constraint_report_
    return {
        "base": type(estimator.estimator_).__name__,
        "predict_method": estimator.predict_method_,
        "sensitive": [list(estimator.sensitive_names_), estimator.groups_named_],
        "released": None if estimator.released_ is None else postprocess.to_dict(estimator.released_),
        "guarantee": None if estimator.guarantee_ is None else estimator.guarantee_.to_dict(),
        "report": {"reason": report.reason, "lines": [_line(line) for line in report.lines]},
    }


def _line(line: ConstraintLine) -> list[Any]:
    numbers = files_json.numbers([line.bound, line.value, line.noise, line.pressure])
    return [line.target, *numbers, {"sampling": files_json.numbers(line.sampling)[0]}]


def _read_line(line: Node, lines: int) -> ConstraintLine:
    """Earlier versions wrote no sixth part, or one that follows from the others."""
    target, *numbers = line.list(6 if len(line.list()) == 6 else 5)
    bound, value, noise, pressure = (one.number(words=True) for one in numbers[:4])
    told = len(numbers) == 5 and isinstance(numbers[4].value, dict)
    drawn = numbers[4].only(("sampling",))["sampling"].number(words=True) if told else math.nan
    return ConstraintLine(target.text(), bound, value, noise, pressure, lines, sampling=drawn)


def _revive_post(estimator: OddsPostProcessor, content: Node, model: Model | None, base: Any) -> None:
    if not isinstance(model, PostProcessedModel):
        raise _broken("a post-processed model", type(model).__name__)
    report, released, guarantee = content["report"].only(("reason", "lines")), content["released"], content["guarantee"]
    names, in_X = content["sensitive"].list(2)
    written = report["lines"].list()
    lines = tuple(_read_line(line, len(written)) for line in written)
    estimator.constraint_report_ = ConstraintReport(lines, 0, report["reason"].text())
    estimator.released_ = None if released.is_null else postprocess.from_dict(files_json.released_fields(released))
    estimator.guarantee_ = (
        None
        if guarantee.is_null
        else mixing_bounds.MixingGuarantee.from_dict(
            files_json.guarantee_fields(guarantee, ("bounds", "values", "noise", "value_bounds"), unknown=True)
        )
    )
    estimator.sensitive_names_, estimator.groups_named_ = names.texts(), in_X.truth()
    asked = content["predict_method"].text() if "predict_method" in content.mapping() else base_answers.DECIDED
    if asked not in ((base_answers.DECIDED,) if model.edges is None else base_answers.SCORES):
        content["predict_method"].refuse("how the base of this model is asked", asked)
    estimator._set_base(base, model, asked)


def _regression_content(estimator: GroupObjectiveRegressor | TailoredRegressor) -> dict[str, Any]:
    return {
        "coding": coding_json.to_dict(estimator.coding_),
        "outcome": regression_json.outcome_to_dict(estimator.outcome_),
        "target": regression_json.target_to_dict(estimator.target_),
    }


def _revive_regression(estimator: GroupObjectiveRegressor, content: Node, model: Any, base: Any) -> None:
    _set_regression(estimator, content, model)
    estimator._set_outcome(regression_json.outcome_from_dict(content["outcome"]))


def _set_regression(estimator: GroupObjectiveRegressor | TailoredRegressor, content: Node, model: Any) -> None:
    if not isinstance(model, RegressionModel):
        raise _broken("a linear regression", type(model).__name__)
    estimator._set_model(model, _coding_of(content, [model]), regression_json.target_from_dict(content["target"]))


def _tailored_regression_content(estimator: TailoredRegressor) -> dict[str, Any]:
    return _regression_content(estimator) | {"tailoring": estimator.tailoring_.written()}


def _revive_tailored_regression(estimator: TailoredRegressor, content: Node, model: Any, base: Any) -> None:
    _set_regression(estimator, content, model)
    _revive_tailored(estimator, content)


def _revive_tailored(estimator: TailoredRegressor | TailoredClassifier, content: Node) -> None:
    groups = ("everyone",) if estimator.cells_ is None else estimator.cells_.keys
    report = TailoringReport._read(content["tailoring"], groups)
    estimator._set_outcome(regression_json.outcome_from_dict(content["outcome"]), report)


def _tailored_content(estimator: TailoredClassifier) -> dict[str, Any]:
    return {
        "coding": coding_json.to_dict(estimator.coding_),
        "outcome": regression_json.outcome_to_dict(estimator.outcome_),
        "tailoring": estimator.tailoring_.written(),
    }


def _revive_tailored_classifier(estimator: TailoredClassifier, content: Node, model: Any, base: Any) -> None:
    if isinstance(model, LinearModel):
        estimator._set_model(model, _coding_of(content, [model]))
    elif model is not None and model.kind == "network":
        estimator._set_network(model, coding_json.from_dict(content["coding"]))
    else:
        raise _broken("a linear model or a network", type(model).__name__)
    _revive_tailored(estimator, content)


def _released_content(estimator: ReleasedClassifier) -> dict[str, Any]:
    if estimator.model_ is None:
        remedy = "Save the release, and these rules with their own library; or fit with estimator=None."
        got = f"rules of {type(estimator.estimator).__name__}"
        raise InputError(complaint(expected="linear rules", of="estimator", got=got, remedy=remedy))
    lines = [[line.name, *files_json.numbers(astuple(line)[1:])] for line in estimator.report_]
    return {"coding": coding_json.to_dict(estimator.coding_), "error": estimator.error_, "report": lines}


def _revive_released(estimator: ReleasedClassifier, content: Node, model: Model | None, base: Any) -> None:
    if not isinstance(model, MixtureModel) or not all(isinstance(one, LinearModel) for one in model.models):
        raise _broken("a mixture of linear models", type(model).__name__)
    linear: Any = model.models
    estimator.coding_, estimator.model_ = _coding_of(content, linear), model
    estimator.rules_, estimator.shares_ = list(linear), np.array(model.weights, np.float64)
    estimator.classes_, estimator.error_ = as_array(tuple(model.classes)), content["error"].number()
    lines = [line.list(len(fields(SoftValue))) for line in content["report"].list()]
    estimator.report_ = tuple(SoftValue(name.text(), *(one.number(words=True) for one in numbers)) for name, *numbers in lines)


KINDS: dict[str, Kind] = {
    "RateConstrainedClassifier": Kind(
        RateConstrainedClassifier, frozenset({"coding", "outcome"}), _descent_content, _revive_descent
    ),
    "FermiClassifier": Kind(FermiClassifier, frozenset({"coding", "outcome"}), _descent_content, _revive_descent),
    "OracleGameClassifier": Kind(
        OracleGameClassifier,
        frozenset({"coding", "classes", "outcome", "places", "candidates", "named"}),
        _game_content,
        _revive_game,
    ),
    "GroupObjectiveClassifier": Kind(
        GroupObjectiveClassifier,
        frozenset({"coding", "classes", "outcome", "places", "candidates", "certain"}),
        _group_objective_content,
        _revive_group_objective,
    ),
    "GroupObjectiveRegressor": Kind(
        GroupObjectiveRegressor, frozenset({"coding", "outcome", "target"}), _regression_content, _revive_regression
    ),
    "TailoredRegressor": Kind(
        TailoredRegressor,
        frozenset({"coding", "outcome", "target", "tailoring"}),
        _tailored_regression_content,
        _revive_tailored_regression,
    ),
    "TailoredClassifier": Kind(
        TailoredClassifier, frozenset({"coding", "outcome", "tailoring"}), _tailored_content, _revive_tailored_classifier
    ),
    "ReleasedClassifier": Kind(
        ReleasedClassifier, frozenset({"coding", "error", "report"}), _released_content, _revive_released
    ),
    "OddsPostProcessor": Kind(
        OddsPostProcessor,
        frozenset({"base", "sensitive", "released", "guarantee", "report"}),
        _post_content,
        _revive_post,
        frozenset({"predict_method"}),
    ),
}
