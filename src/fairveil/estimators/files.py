"""Fitted estimators on disk: a folder with the model, the statement and what the estimator needs to
predict. Never pickle.

`model.json` and `arrays.npz` are the model's own files (`models.load` reads them alone),
`statement.json` the privacy statement, `certificate.json` the certificate, and `estimator.json` the
parameters and what else was fitted, with the SHA-256 of the other files. A base estimator of this
library inside another is written beside it, under names that begin with "base."; one of another
library is not written, and handed back to `load`. The checksums show damage, not authorship.

`CODEC` has every class that `estimator.json` may hold, and `KINDS` what each estimator writes
beside what all do, and how its fitted attributes are set from that.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._codec import Kind, UnwrittenError
from .._json import MALFORMED, Document, Node, shown
from ..errors import ChecksumError, FairveilError, InputError, NotWritten
from ..facts import Cells, Schema
from ..fairness import notions, objectives
from ..fairness.objectives import Bound, Constraint, Objective
from ..methods import Outcome
from ..methods.counts import CountNoise
from ..methods.game import Equilibrium
from ..methods.game_bounds import Guarantee
from ..methods.least_squares import RegressionOutcome
from ..methods.objectives import Certain, Found
from ..methods.oracles import AttachedRule, Rule
from ..methods.postprocess import MixingGuarantee, Released
from ..models import (
    DerandomisedModel,
    GroupedLinearModel,
    LinearModel,
    MixtureModel,
    Model,
    PostProcessedModel,
    RegressionModel,
    ShiftedModel,
)
from ..models import files as model_files
from ..models.folders import LARGEST_TEXT, read_folder, write_folder
from ..models.model import known_classes
from ..statement.document import PrivacyStatement
from . import wrapped
from .certifying.certificate import Certificate
from .certifying.certified_fits import CertifiedAim
from .coding import (
    CODINGS,
    Additive,
    Coding,
    SchemaCoding,
    TableCoding,
    names_of_features,
    parts_of,
)
from .faces import as_array
from .fair import MIXTURES, FairClassifier, FairRegressor
from .fitting import said
from .mixing import rule_of
from .post_processing import FairPostProcessor
from .reading import TargetScale
from .reports import (
    CONSTANT,
    ERROR,
    FREE,
    MIXING,
    MIXTURE,
    MODEL,
    OBJECTIVE,
    ONE_CLASS,
    SQUARES,
    BaselineReport,
    Compared,
    ConstraintLine,
    ConstraintReport,
)
from .settings import (
    SETTINGS,
    Fermi,
    GroupObjective,
    OracleGame,
    PrimalDual,
    Setting,
    Tailored,
)
from .tailored import TailoringReport

FORMAT, FORMAT_VERSION = "fairveil-estimator", 2
ESTIMATOR_FILE, STATEMENT_FILE = "estimator.json", "statement.json"
CERTIFICATE_FILE = "certificate.json"  # of fits with a confidence
OTHERS = (model_files.MODEL_FILE, model_files.ARRAYS_FILE, STATEMENT_FILE)
DOCUMENT = Document(
    ESTIMATOR_FILE, "It is not what was saved: save the estimator again.", largest=LARGEST_TEXT
)
MOST_FEATURES = 1 << 31
BASE, DEEPEST = "base.", 4
"""Before the names of files of an estimator inside another, of which there are so many at most."""
KNOWN_FILES = {
    f"{BASE * depth}{name}"
    for depth in range(DEEPEST + 1)
    for name in (*OTHERS, ESTIMATOR_FILE, CERTIFICATE_FILE)
}
SHARED: dict[str, Any] = {
    "cells": Cells | None,
    "columns": tuple[str, ...] | None,
    "features": int,
    "baselines": BaselineReport | None,
    "certified_aim": CertifiedAim | None,
}
"""What all estimators write, each with its type."""
HEAD = ("format", "version", "kind", "parameters", "sha256")


# What documents may hold


def _one_each(*names: str) -> Callable[[dict[str, Any], Node], None]:
    """One number for each constraint."""

    def check(found: dict[str, Any], node: Node) -> None:
        for name in names:
            if found.get(name) is not None and np.shape(found[name]) != (len(found["names"]),):
                expected = f"{len(found['names'])} {name}, one for each of 'names'"
                node[name].refuse(expected, list(np.shape(found[name])))

    return check


_of_outcome = _one_each("bounds", "values", "spread", "duals", "sampling", "inside")


def _check_outcome(found: dict[str, Any], node: Node) -> None:
    _of_outcome(found, node)
    for name in ("rounds", "looks"):
        node[name].whole(at_least=int(name == "looks"))


def _check_found(found: dict[str, Any], node: Node) -> None:
    _of_outcome(found, node)
    rules, shape = len(found["rules"]), found["weights"].shape
    if shape != (rules,):
        node["weights"]["shape"].refuse(f"[{rules}], a weight for each rule", list(shape))


def _check_equilibrium(found: dict[str, Any], node: Node) -> None:
    _check_outcome(found, node)
    plays = node["plays"].list()
    if [one.whole() for one in plays] and len(plays) != len(found["rules"]):
        node["plays"].refuse(f"{len(found['rules'])} numbers of plays", len(plays))


def _check_target(found: dict[str, Any], node: Node) -> None:
    if not -math.inf < found["low"] <= found["high"] < math.inf:
        node.refuse("low <= high", [found["low"], found["high"]])


def _check_released(found: dict[str, Any], node: Node) -> None:
    """Counts of (cells, labels, answers), and what has one number for each of some of these."""
    shape, totals, edges = found["raw"].shape, found["totals"], found["edges"]
    if len(shape) != 3:
        node["raw"]["shape"].refuse("three axes", list(shape))
    if totals is not None and totals.shape != shape[1:]:
        node["totals"]["shape"].refuse(f"{list(shape[1:])}", list(totals.shape))
    if edges is not None and edges.shape != (shape[2] - 1,):
        node["edges"]["shape"].refuse(f"[{shape[2] - 1}]", list(edges.shape))


def _one_of(**words: Collection[str]) -> Callable[[dict[str, Any], Node], None]:
    """Words out of a list."""

    def check(found: dict[str, Any], node: Node) -> None:
        for name, known in words.items():
            node[name].one_of(known)

    return check


def _check_tailoring(found: dict[str, Any], node: Node) -> None:
    for name in ("shares", "errors", "counts", "epsilons"):
        node[name].list(len(found["groups"]))


CODEC = CODINGS.with_kinds(
    Kind(Schema, write=Schema.to_dict, read=lambda node: Schema.from_dict(node.mapping())),
    Kind(Additive),
    *(Kind(cls, typed=False) for cls in SETTINGS.values()),
    *notions.KINDS,
    *objectives.KINDS,
    Kind(Outcome, without=("comparison",), check=_check_outcome),
    Kind(Equilibrium, without=("rules", "comparison", "choice"), check=_check_equilibrium),
    Kind(Found, without=("rules", "constant", "free", "kept"), check=_check_found),
    Kind(
        RegressionOutcome,
        without=("constant", "free"),
        check=_one_each("bounds", "values", "spread", "pressed", "sampling"),
    ),
    Kind(Certain),
    Kind(Guarantee),
    Kind(TargetScale, check=_check_target),
    Kind(CountNoise),
    Kind(Released, check=_check_released),
    Kind(MixingGuarantee, check=_one_each("bounds", "values", "noise", "value_bounds")),
    Kind(ConstraintLine),
    Kind(ConstraintReport, without=("required",)),
    Kind(Compared, check=_one_of(name=(CONSTANT, MIXING, FREE))),
    Kind(
        BaselineReport,
        check=_one_of(
            unit=(ERROR, SQUARES, OBJECTIVE),
            handed_out=(MODEL, MIXTURE, MIXING, ONE_CLASS, FREE),
        ),
    ),
    Kind(CertifiedAim),
    Kind(TailoringReport, without=("groups",), check=_check_tailoring),
)


# How each estimator is written and read


@dataclass(frozen=True)
class Read:
    """The content of `estimator.json` beside what all have, the model, and the base that was
    written or handed in."""

    content: Node
    parts: Mapping[str, Any]
    model: Any
    base: Any

    def __call__(self, name: str, **given: Any) -> Any:
        return CODEC.read(self.content[name], self.parts[name][0], **given)

    def coding(self, models: Sequence[LinearModel | RegressionModel]) -> Any:
        """The coding, of columns that these models have."""
        coding: Coding = self("coding")
        layout = coding.layout
        for model in models:
            if (layout.numbers, tuple(layout.code_sizes)) != (
                model.layout.numbers,
                model.layout.code_sizes,
            ):
                found = f"{layout.numbers} numbers and codes of {layout.code_sizes}"
                raise broken("a coding that fits the model", found)
        return coding


def _set_descent(estimator: Any, read: Read) -> None:
    """A descent's: a linear model, a network, or a mixture of these."""
    model = read.model
    parts = model.models if isinstance(model, MixtureModel) else (model,)
    linear = [one for one in parts if isinstance(one, LinearModel)]
    networks: list[Any] = [one for one in parts if one is not None and one.kind == "network"]
    if len(linear) + len(networks) < len(parts):
        raise broken("linear models and networks", type(model).__name__)
    estimator._set_model(model, read.coding(linear))
    if "tailoring" in read.parts:
        _set_tailored(estimator, read)
    else:
        # the weights of a network stand in its model: what was found comes first
        given = {"weights": networks[0].parameters} if networks else {}
        estimator._way.set_outcome(read("outcome", **given))


def _set_tailored(estimator: Any, read: Read) -> None:
    groups = ("everyone",) if estimator.cells_ is None else estimator.cells_.keys
    estimator._way.set_outcome(read("outcome"), read("tailoring", groups=tuple(groups)))


def _set_regression(estimator: Any, read: Read) -> None:
    if not isinstance(read.model, RegressionModel):
        raise broken("a linear regression", type(read.model).__name__)
    estimator._set_model(read.model, read.coding([read.model]), read("target"))
    if "tailoring" in read.parts:
        _set_tailored(estimator, read)
    else:
        estimator._way.set_outcome(read("outcome"))


def _set_mixed(estimator: Any, read: Read) -> None:
    """A game's, or a group objective's: a mixture of linear models, one of them, or candidates."""
    model = read.model
    mixed = model.model if isinstance(model, DerandomisedModel) else model
    models = mixed.models if isinstance(mixed, MixtureModel) else ()
    models = (mixed,) if isinstance(mixed, LinearModel) else models
    linear: list[Any] = [
        one.linear if isinstance(one, GroupedLinearModel) else one for one in models
    ]
    listed = read("candidates")
    if (listed is None) == (not models) or not all(isinstance(one, LinearModel) for one in linear):
        raise broken("a mixture of linear models, or candidates", type(model).__name__)
    estimator.coding_ = read.coding(linear)
    classes = known_classes(read("classes")) if model is None else tuple(model.classes)
    estimator.classes_ = as_array(classes)
    if isinstance(model, LinearModel):
        estimator._set_model(model, estimator.coding_)
    rules: tuple[Rule, ...] = tuple(map(rule_of, models))
    rules = rules or tuple(AttachedRule(place) for place in read("places"))
    kept = model if isinstance(model, (*MIXTURES, LinearModel)) else None
    outcome, given = read("outcome", rules=rules), tuple(read.base or ())
    if "named" in read.parts:
        estimator._way.set_outcome(outcome, kept, given)
        estimator.named_ = read("named")
    else:
        estimator._way.set_outcome(outcome, kept, given, read("certain"))


def _set_post_processor(estimator: FairPostProcessor, read: Read) -> None:
    model = read.model
    if not isinstance(model, PostProcessedModel | ShiftedModel):
        raise broken("a post-processed or shifted model", type(model).__name__)
    shapes, shifted = {}, False
    known: tuple[str, ...] = wrapped.SCORES
    if isinstance(model, ShiftedModel):
        shapes = {"rates": model.offsets.shape, "moved": model.offsets.shape[:1]}
        shifted, known = True, ("predict_proba",)
    elif model.edges is None:
        known = (wrapped.DECIDED,)
    for name in ("rates", "moved", "noise"):
        found = read(name)
        if (found is not None) is not shifted:
            read.content[name].refuse("a value of offsets alone", found)
        if name in shapes and found.shape != shapes[name]:
            read.content[name]["shape"].refuse(f"{list(shapes[name])}", list(found.shape))
        setattr(estimator, f"{name}_", found)
    asked = read("predict_method")
    if asked not in known:
        read.content["predict_method"].refuse("how the base of this model is asked", asked)
    estimator.constraint_report_ = read("report")
    estimator.sensitive_names_, estimator.groups_named_ = read("sensitive"), read("named")
    estimator.released_, estimator.guarantee_ = read("released"), read("guarantee")
    estimator._set_model(read.base, model, asked)


@dataclass(frozen=True)
class Written:
    """How one class of estimators is written, `parts` by their names with types and attributes, and
    read: `revive` sets what was fitted."""

    parts: dict[str, tuple[Any, str]]
    revive: Callable[[Any, Read], None]


Keys = tuple[Hashable, ...]
_coded = {"coding": (Coding, "coding_")}
_descent: Any = {**_coded, "outcome": (Outcome, "outcome_")}
_tailored: Any = {
    **_coded,
    "outcome": (RegressionOutcome, "outcome_"),
    "tailoring": (TailoringReport, "tailoring_"),
}
_mixed: Any = {
    **_coded,
    "classes": (Keys, "classes_"),
    "places": (tuple[int, ...], "outcome_"),
    "candidates": (tuple[str, ...] | None, "candidates_"),
}
_regression: Any = {
    **_coded,
    "outcome": (RegressionOutcome, "outcome_"),
    "target": (TargetScale, "target_"),
}
SOLVED: dict[tuple[type[Any], type[Setting]], Written] = {
    (FairClassifier, PrimalDual): Written(_descent, _set_descent),
    (FairClassifier, Fermi): Written(_descent, _set_descent),
    (FairClassifier, Tailored): Written(_tailored, _set_descent),
    (FairClassifier, OracleGame): Written(
        {**_mixed, "outcome": (Equilibrium, "outcome_"), "named": (bool, "named_")}, _set_mixed
    ),
    (FairClassifier, GroupObjective): Written(
        {**_mixed, "outcome": (Found, "outcome_"), "certain": (Certain | None, "certain_")},
        _set_mixed,
    ),
    (FairRegressor, GroupObjective): Written(_regression, _set_regression),
    (FairRegressor, Tailored): Written(
        {**_regression, "tailoring": (TailoringReport, "tailoring_")}, _set_regression
    ),
}
"""How the fits of each solver are written."""
KINDS: dict[type[Any], Written] = {
    FairPostProcessor: Written(
        {
            "base": (str, "estimator_"),
            "sensitive": (tuple[str, ...], "sensitive_names_"),
            "named": (bool, "groups_named_"),
            "report": (ConstraintReport, "constraint_report_"),
            "predict_method": (str, "predict_method_"),
            "released": (Released | None, "released_"),
            "guarantee": (MixingGuarantee | None, "guarantee_"),
            "rates": (np.ndarray | None, "rates_"),
            "noise": (float | None, "noise_"),
            "moved": (np.ndarray[Any, np.dtype[np.bool_]] | None, "moved_"),
        },
        _set_post_processor,
    ),
}
ALL: tuple[type[Any], ...] = (FairClassifier, FairRegressor, *KINDS)
BY_NAME = {cls.__name__: cls for cls in ALL}


def _written(estimator: Any) -> Written:
    """How this estimator is written: by its class, and its solver."""
    cls = type(estimator)
    if cls in KINDS:
        return KINDS[cls]
    kind = type(estimator._setting("solver", Setting))
    if (cls, kind) not in SOLVED:
        raise broken(f"a solver of {cls.__name__}", kind.__name__)
    return SOLVED[cls, kind]


def _content_of(estimator: Any) -> dict[str, Any]:
    """What this class writes beside what all do."""
    out = {}
    for name, (of, attribute) in _written(estimator).parts.items():
        value = getattr(estimator, attribute)
        if name == "places":
            value = [rule.place for rule in value.rules if isinstance(rule, AttachedRule)]
        elif name == "candidates":
            value = tuple(type(one).__name__ for one in value) or None
        elif name == "base":
            value = type(value).__name__
        elif name == "classes":
            value = value.tolist()
        network = isinstance(value, Outcome) and _has_network(estimator.model_)
        out[name] = CODEC.write(value, of, without=("weights",) if network else ())
    return out


def _has_network(model: Any) -> bool:
    parts = model.models if isinstance(model, MixtureModel) else (model,)
    return any(one.kind == "network" for one in parts)


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
    asked = (
        _content(raw)["parameters"].mapping().get("model")
        for name, raw in files.items()
        if name.endswith(ESTIMATOR_FILE)
    )
    if model is not None and "given" not in asked:
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
    """The content of an estimator's files by name."""
    from sklearn.utils.validation import check_is_fitted

    if BY_NAME.get(type(estimator).__name__) is not type(estimator) or depth > DEEPEST:
        raise InputError.expected(
            f"one of {', '.join(BY_NAME)}",
            of="estimator",
            got=type(estimator).__name__,
            remedy="Models alone are saved with fairveil.models.save(model, path).",
        )
    check_is_fitted(estimator, "model_")
    model = {} if estimator.model_ is None else model_files.to_files(estimator.model_)
    files = model | {STATEMENT_FILE: estimator.privacy_.to_json().encode()}
    parts = parts_of(estimator)
    if parts.certificate is not None:
        files[CERTIFICATE_FILE] = parts.certificate.to_json().encode()
    if wrapped.carries_a_promise(inner := getattr(estimator, "estimator_", None)):
        inner_files = to_files(wrapped.thawed(inner), depth + 1)
        files |= {f"{BASE}{name}": raw for name, raw in inner_files.items()}
    shared = {
        "cells": estimator.cells_,
        "columns": names_of_features(estimator) or None,
        "features": estimator.n_features_in_,
        "baselines": parts.baselines,
        "certified_aim": parts.certified_aim,
    }
    content = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "kind": type(estimator).__name__,
        "parameters": _parameters(estimator),
        "sha256": {name: hashlib.sha256(raw).hexdigest() for name, raw in files.items()},
        **{name: CODEC.write(value, SHARED[name]) for name, value in shared.items()},
        **_content_of(estimator),
    }
    text = json.dumps(content, indent=1, allow_nan=False, sort_keys=True) + "\n"
    return files | {ESTIMATOR_FILE: text.encode()}


LISTED = {OracleGame: "candidates", GroupObjective: "decisions"}
"""Where classifiers made elsewhere are handed in."""


def _parameters(estimator: Any) -> dict[str, Any]:
    """Parameters as plain values, with a word for what is handed in again."""
    given = estimator.get_params(deep=False)
    given |= {"ledger": None} if "ledger" in given else {}
    # one value a row says whose each row is: never written
    if not isinstance(given.get("unit", ""), str):
        given["unit"] = None
    if parts_of(estimator).candidates:
        solver: Any = given["solver"]
        given["solver"] = replace(solver, **{LISTED[type(solver)]: "given"})
    if hasattr(estimator, "estimator_"):
        given["estimator"] = None if given["estimator"] is None else "given"
    if not isinstance(given.get("model"), str | Additive | None):
        given["model"] = "given"
    return {name: _parameter(value, name) for name, value in given.items()}


def _parameter(value: object, name: str) -> Any:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [_parameter(one, name) for one in value]
    try:
        return CODEC.write(value)
    except UnwrittenError as error:
        if isinstance(value, Objective | Bound | Constraint):
            text = (
                f"{name}: functions of yours are not written. The loaded estimator decides without "
                f"them; to fit it again, set {name} anew with set_params"
            )
            warnings.warn(text, NotWritten, stacklevel=6)
            return "given"
        remedy = "Use parameters that JSON can hold."
        raise InputError.expected(
            "a parameter that can be written", of=name, got=str(error), remedy=remedy
        ) from None


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
            text = files[CERTIFICATE_FILE].decode("utf-8", "replace")
            revived.certificate_ = Certificate.from_json(text)
        return revived
    except FairveilError:
        raise
    except MALFORMED as error:
        found = model_files.contradiction(error)
    raise broken("a complete description of an estimator", found)


def broken(expected: str, got: object) -> InputError:
    """The error of a description whose parts do not fit."""
    return InputError(str(DOCUMENT.refusal(expected, got)))


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
    fitted = given is not None and wrapped.is_fitted(given)
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
    cls = BY_NAME[content["kind"].text()]
    written = content["parameters"]
    parameters = {name: CODEC.read(written[name]) for name in written.mapping()}
    known = set(cls().get_params(deep=False))
    if not set(parameters) <= known:
        written.refuse(f"the parameters of {cls.__name__}", sorted(set(parameters) - known))
    listed = list(base) if isinstance(base, tuple) else []
    handed = {"estimator": base, "model": module}
    for name in handed:
        if isinstance(parameters.get(name), str) and parameters[name] == "given":
            parameters[name] = handed[name]
    solver: Any = parameters.get("solver")
    place = LISTED.get(type(solver))
    if place is not None and isinstance(got := getattr(solver, place), str) and got == "given":
        parameters["solver"] = replace(solver, **{place: listed})
    estimator = cls(**parameters)
    features = content["features"].whole(at_most=MOST_FEATURES)
    shared = {name: CODEC.read(content[name], of) for name, of in SHARED.items()}
    estimator.privacy_, estimator.cells_ = statement, shared["cells"]
    estimator.groups_ = () if estimator.cells_ is None else estimator.cells_.keys
    estimator.n_features_in_ = features
    if shared["columns"] is not None:
        estimator.feature_names_in_ = np.array(shared["columns"], dtype=object)
    estimator.baselines_ = shared["baselines"]
    if shared["certified_aim"] is not None:
        estimator.certified_aim_ = shared["certified_aim"]
    kind = _written(estimator)
    content.only({*HEAD, *SHARED, *kind.parts})
    kind.revive(estimator, Read(content, kind.parts, model, base))
    if hasattr(estimator, "constraint_report_"):  # classes are there now
        estimator.constraint_report_ = estimator.constraint_report_.saying(said(estimator))
    _require_agreement(estimator, content)
    return estimator


def _require_agreement(estimator: Any, content: Node) -> None:
    """Columns and coding, coding and model, classes, groups, and what was found agree: what does
    not is refused now, not when it predicts."""
    names, features, model = (
        names_of_features(estimator),
        estimator.n_features_in_,
        estimator.model_,
    )
    if names and len(names) != features:
        content["columns"].refuse(f"{features} names, one for each of 'features'", len(names))
    parts = parts_of(estimator)
    coding, outcome = parts.coding, parts.outcome
    if coding is not None:
        own = coding.own_layout
        width = own.numbers + len(own.code_sizes)
        known = {width}
        if isinstance(coding, TableCoding):
            known = {len(coding.columns)}
        elif isinstance(coding, SchemaCoding):
            known = {width, width + len(coding.encoding.schema.sensitive)}
        if features not in known:
            content["features"].refuse(f"{min(known)}, as the coding has columns", features)
        layout = coding.layout
        coded = model is not None and model.kind in ("linear", "linear-regression", "network")
        shape = layout.numbers, tuple(layout.code_sizes)
        if coded and shape != (model.layout.numbers, model.layout.code_sizes):
            expected = f"a coding of {model.layout.numbers} numbers, as the model has"
            content["coding"].refuse(expected, layout.numbers)
    weights = outcome.weights if isinstance(outcome, Outcome) else None
    if isinstance(model, LinearModel) and weights is not None:
        outputs, width = model.weights.shape
        if np.shape(weights) != (outputs, 1 + width):
            expected = f"weights of shape {[outputs, 1 + width]}, as the model has"
            content["outcome"].refuse(expected, list(np.shape(weights)))
    found = outcome.coefficients if isinstance(outcome, RegressionOutcome) else None
    count = 1 + len(model.weights) if isinstance(model, RegressionModel) else None
    if found is not None and count not in (None, len(found)):
        expected = f"{count} numbers, as the model has"
        content["outcome"]["coefficients"].refuse(expected, len(found))
    inner = model.model if isinstance(model, DerandomisedModel) else model
    mixed: Any = inner.models if isinstance(inner, MixtureModel) else ()
    for one in (inner, *mixed):
        grouped = isinstance(one, GroupedLinearModel | PostProcessedModel | ShiftedModel)
        if grouped and one.cells is not None and one.cells != estimator.cells_:
            content["cells"].refuse("the groups that the model reads", content["cells"].value)
    classes = np.asarray(estimator.classes_).tolist() if isinstance(model, Model) else []
    if isinstance(model, Model) and list(model.classes) != classes:
        content.refuse("the classes of the model", classes)


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
    cls = BY_NAME.get(name) if isinstance(name, str) else None
    if cls is None:
        expected = f"one of {', '.join(BY_NAME)}"
        raise InputError.expected(expected, of="kind", got=shown(name), remedy=remedy, quote=False)
    for name in content["sha256"].mapping():
        content["sha256"][name].text()
    content["parameters"].mapping()
    return content
