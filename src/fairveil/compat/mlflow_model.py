"""Fitted estimators as MLflow models, without pickle: the folder of `fairveil.save` inside, read by
the same strict readers.

    MLmodel              the flavours: fairveil, and python_function with this module as its loader
    model/               what `fairveil.save` wrote: model.json, arrays.npz, statement.json, estimator.json
    certificate.json     and other files that were handed in, checked before they are copied

Guarantees (tests/compat/test_mlflow.py):
1. The pyfunc predicts what the estimator predicts.
2. Metrics are numbers of the statement, the constraint report and the certificate: released values,
   nothing of the rows.
3. No file is a pickle, and a refused call writes nothing.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from ..data.files import PathLike
from ..errors import InputError
from ..estimators import Certificate
from ..estimators import load as load_folder
from ..estimators import save as save_folder
from ..estimators.reading.fitted_parts import parts_of
from ..estimators.reports.constraint_report import ConstraintReport
from ..estimators.reports.gap_report import GapReport
from ..export.reading import columns_of_groups
from ..models.folders import read_folder
from ..tables.given import column_names_of
from .libraries import missing

FOLDER, CERTIFICATE, FLAVOUR = "model", "certificate.json", "fairveil"
REPORTS = ("report.html", "report.json")
MOST_LETTERS = 200
NOT_IN_A_NAME = re.compile(r"[^\w\-. :/]")


def save_model(
    estimator: object,
    path: str | os.PathLike[str],
    *,
    certificate: Certificate | str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
) -> Path:
    """Write an MLflow model folder.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this library.
    path : path
        A folder that is not there yet.
    certificate : Certificate or path, default=None
        Of this model; recomputed before it is copied.
    report : path, default=None
        A page that `fairveil fit` or `fairveil.report.write` wrote; its JSON twin is copied, too.
    """
    flow = _mlflow()
    target = Path(path)
    if target.exists():
        remedy = "Name another folder."
        raise InputError.expected(
            "a folder that is not there yet", of="path", got=str(target), remedy=remedy
        )
    extras = {**_certificate(certificate), **_report(report)}
    with tempfile.TemporaryDirectory() as made:
        data = Path(made) / FOLDER
        save_folder(estimator, data)
        flow.pyfunc.save_model(
            path=str(Path(made) / "flow"),
            loader_module=__name__,
            data_path=str(data),
            pip_requirements=[_requirement()],
            signature=_signature(),
            mlflow_model=_described(flow, estimator),
        )
        for name, raw in extras.items():
            (Path(made) / "flow" / name).write_bytes(raw)
        shutil.copytree(Path(made) / "flow", target)
    return target


def log_model(
    estimator: object,
    name: str = FOLDER,
    *,
    certificate: Certificate | str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
) -> Any:
    """Log the model to the active run (or a new one), with `metrics` and `parameters`; statement,
    certificate and report are artifacts beside it. MLflow's own description of the model is
    returned."""
    flow = _mlflow()
    extras = {**_certificate(certificate), **_report(report)}
    told = None if certificate is None else Certificate.from_json(extras[CERTIFICATE].decode())
    with tempfile.TemporaryDirectory() as made:
        data = Path(made) / FOLDER
        save_folder(estimator, data)
        for one, raw in extras.items():
            (Path(made) / one).write_bytes(raw)
        logged = flow.pyfunc.log_model(
            name=name,
            loader_module=__name__,
            data_path=str(data),
            pip_requirements=[_requirement()],
            signature=_signature(),
            metadata=_about(estimator),
        )
        flow.log_params(parameters(estimator))
        flow.log_metrics(metrics(estimator, told))
        flow.log_artifact(str(data / "statement.json"))
        for one in extras:
            flow.log_artifact(str(Path(made) / one))
    return logged


def metrics(estimator: BaseEstimator, certificate: Certificate | None = None) -> dict[str, float]:
    """Numbers of a fit, under names that MLflow takes: epsilon, delta, each constraint's value with
    its noise, and what a certificate bounds. A number that is not finite is left out: MLflow's
    stores do not all keep it."""
    statement = estimator.privacy_
    found: dict[str, float] = {"epsilon": float(statement.epsilon), "delta": float(statement.delta)}
    report = parts_of(estimator).constraint_report
    if isinstance(report, ConstraintReport):
        for line in report.lines:
            found[f"constraint value: {line.target}"] = line.value
            found[f"constraint noise: {line.target}"] = line.noise
    gaps = parts_of(estimator).gap_report
    if isinstance(gaps, GapReport) and gaps.largest is not None:
        found["largest gap"] = gaps.largest.value
        found["largest gap: noise"] = gaps.largest.noise
    if certificate is not None:
        found["certified"] = float(certificate.certified)
        found["certificate confidence"] = certificate.confidence
        for notion, bound in zip(certificate.notions, certificate.bounds, strict=True):
            if bound.at_most is not None:
                found[f"certified at most: {notion}"] = bound.at_most
    return {_name(name): float(value) for name, value in found.items() if math.isfinite(value)}


def parameters(estimator: BaseEstimator) -> dict[str, str]:
    """The estimator's parameters that are plain values, and what the statement says of the
    promise."""
    promise = estimator.privacy_.promise
    plain = {
        name: value
        for name, value in estimator.get_params().items()
        if isinstance(value, str | bool | int | float)
        and name not in ("epsilon", "delta")
        and name.partition("__")[0] != "estimator"
    }
    told = {
        "protects": promise.protects,
        "neighbours": promise.neighbours,
        "method": type(estimator).__name__,
    }
    return {_name(name): str(value)[:MOST_LETTERS] for name, value in (plain | told).items()}


def load_model(path: str | os.PathLike[str]) -> Any:
    """The estimator of an MLflow model folder."""
    folder = Path(path)
    inside = folder / "data" / FOLDER
    return load_folder(inside if inside.is_dir() else folder / FOLDER)


class Function:
    """What MLflow calls: `predict(frame, params)`."""

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator
        self.groups = columns_of_groups(estimator)

    def predict(self, data: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Decisions; with `{"proba": True}` probabilities, a column a class.

        A model that reads the group finds it in columns of the frame. `{"random_state": 7}` repeats
        the draws of a randomized model.
        """
        given = dict(params or {})
        options: dict[str, Any] = {}
        if self.groups:
            missing = [name for name in self.groups if name not in column_names_of(data)]
            if missing:
                remedy = "This model reads the group: pass a frame with its columns."
                got = list(column_names_of(data)) or type(data).__name__
                raise InputError.expected(f"columns {missing}", of="data", got=got, remedy=remedy)
            options["sensitive_features"] = {name: data[name] for name in self.groups}
        if given.get("proba"):
            return self.estimator.predict_proba(data, **options)
        seed = given.get("random_state", -1)
        if seed is not None and seed >= 0 and _draws(self.estimator):
            options["random_state"] = int(seed)
        return self.estimator.predict(data, **options)


def _load_pyfunc(path: str) -> Function:
    """MLflow's entry point."""
    return Function(load_folder(path))


def _draws(estimator: BaseEstimator) -> bool:
    import inspect

    return "random_state" in inspect.signature(estimator.predict).parameters


def _mlflow() -> Any:
    try:
        import mlflow
        import mlflow.pyfunc
    except ImportError as error:
        raise missing(error, "mlflow") from None
    return mlflow


def _signature() -> Any:
    """Parameters of `predict`; columns are checked by the estimator itself, in its own words."""
    _mlflow()
    from mlflow import models
    from mlflow.types import schema as types

    options = [
        types.ParamSpec("proba", "boolean", False),
        types.ParamSpec("random_state", "long", -1),
    ]
    return models.ModelSignature(params=types.ParamSchema(options))


def _described(flow: Any, estimator: object) -> Any:
    return flow.models.Model(metadata=_about(estimator))


def _about(estimator: BaseEstimator) -> dict[str, Any]:
    statement = estimator.privacy_
    return {FLAVOUR: {"estimator": type(estimator).__name__, "privacy": statement.summary()}}


def _requirement() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"fairveil=={version('fairveil')}"
    except PackageNotFoundError:  # a source tree on the path
        return "fairveil"


def _name(name: str) -> str:
    """A name as MLflow takes it."""
    return NOT_IN_A_NAME.sub("_", name.replace("<=", "at most"))[:MOST_LETTERS]


def _certificate(given: Certificate | PathLike | None) -> dict[str, bytes]:
    """Read strictly: a certificate that does not follow from its counts is refused."""
    if given is None:
        return {}
    if isinstance(given, Certificate):
        return {CERTIFICATE: given.to_json().encode()}
    text = read_folder(Path(given).parent, (Path(given).name,))[Path(given).name]
    Certificate.from_json(text.decode("utf-8", "replace"))
    return {CERTIFICATE: text}


def _report(given: PathLike | None) -> dict[str, bytes]:
    if given is None:
        return {}
    page = Path(given)
    names = (page.name, page.with_suffix(".json").name)
    found = read_folder(page.parent, names)
    return dict(zip(REPORTS, (found[name] for name in names), strict=True))
