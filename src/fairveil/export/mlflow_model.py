"""Fitted estimators as MLflow models, without pickle: the folder of `fairveil.save` inside, read by
the same strict readers.

    MLmodel              the flavours: fairveil, and python_function with this module as its loader
    model/               what `fairveil.save` wrote: model.json, arrays.npz, statement.json, estimator.json
    certificate.json     where one was handed in

Guarantees (tests/export/test_mlflow.py):
1. The pyfunc predicts what the estimator predicts.
2. Metrics are numbers of the statement, the constraint report and the certificate: released values,
   nothing of the rows.
3. No file is a pickle, and a refused call writes nothing.
"""

from __future__ import annotations

import inspect
import math
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from ..errors import InputError
from ..estimators import Certificate
from ..estimators import load as load_folder
from ..estimators import save as save_folder
from ..estimators.coding import parts_of
from ..estimators.reports import ConstraintReport, GapReport
from ..statement.document import versions_now
from ..tables.frames import column_names_of
from .columns import columns_of_groups

FOLDER, CERTIFICATE = "model", "certificate.json"
MOST_LETTERS = 200
NOT_IN_A_NAME = re.compile(r"[^\w\-. :/]")


def save_model(
    estimator: object, path: str | os.PathLike[str], *, certificate: Certificate | None = None
) -> Path:
    """Write an MLflow model folder.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this library.
    path : path
        A folder that is not there yet.
    certificate : Certificate, default=None
        Of this model; written beside it.
    """
    from mlflow import models, pyfunc

    target = Path(path)
    if target.exists():
        remedy = "Name another folder."
        expected = "a folder that is not there yet"
        raise InputError.expected(expected, of="path", got=str(target), remedy=remedy)
    with tempfile.TemporaryDirectory() as made:
        written, whole = _written(estimator, made), Path(made) / "flow"
        about = models.Model(metadata=_about(estimator))
        pyfunc.save_model(path=str(whole), mlflow_model=about, **written)
        if certificate is not None:
            (whole / CERTIFICATE).write_text(certificate.to_json(), "utf-8")
        shutil.copytree(whole, target)
    return target


def log_model(
    estimator: object, name: str = FOLDER, *, certificate: Certificate | None = None
) -> Any:
    """Log the model to the active run (or a new one), with `metrics` and `parameters`; statement
    and certificate are artifacts beside it. MLflow's own description of the model is returned."""
    import mlflow
    from mlflow import pyfunc

    with tempfile.TemporaryDirectory() as made:
        written = _written(estimator, made)
        logged = pyfunc.log_model(name=name, metadata=_about(estimator), **written)
        mlflow.log_params(parameters(estimator))
        mlflow.log_metrics(metrics(estimator, certificate))
        mlflow.log_artifact(str(Path(written["data_path"]) / "statement.json"))
        if certificate is not None:
            mlflow.log_text(certificate.to_json(), CERTIFICATE)
    return logged


def load_model(path: str | os.PathLike[str]) -> Any:
    """The estimator of an MLflow model folder."""
    return load_folder(Path(path) / "data" / FOLDER)


def _written(estimator: object, made: str) -> dict[str, Any]:
    """The model's own files in a folder, and what MLflow is told of them."""
    save_folder(estimator, Path(made) / FOLDER)
    from mlflow import models
    from mlflow.types import schema as types

    # parameters of `predict`; columns are checked by the estimator itself, in its own words
    options = [
        types.ParamSpec("proba", "boolean", False),
        types.ParamSpec("random_state", "long", -1),
    ]
    return {
        "loader_module": __name__,
        "data_path": str(Path(made) / FOLDER),
        "pip_requirements": [f"fairveil=={dict(versions_now())['fairveil']}"],
        "signature": models.ModelSignature(params=types.ParamSchema(options)),
    }


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
    told: dict[str, Any] = {
        name: value
        for name, value in estimator.get_params().items()
        if isinstance(value, str | bool | int | float)
        and name not in ("epsilon", "delta")
        and name.partition("__")[0] != "estimator"
    }
    told |= {"protects": promise.protects, "neighbours": promise.neighbours}
    told["method"] = type(estimator).__name__
    return {_name(name): str(value)[:MOST_LETTERS] for name, value in told.items()}


class Function:
    """What MLflow calls: `predict(frame, params)`."""

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator
        self.groups = columns_of_groups(estimator)
        self.draws = "random_state" in inspect.signature(estimator.predict).parameters

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
        if seed is not None and seed >= 0 and self.draws:
            options["random_state"] = int(seed)
        return self.estimator.predict(data, **options)


def _load_pyfunc(path: str) -> Function:
    """MLflow's entry point."""
    return Function(load_folder(path))


def _about(estimator: BaseEstimator) -> dict[str, Any]:
    told = {"estimator": type(estimator).__name__, "privacy": estimator.privacy_.summary()}
    return {"fairveil": told}


def _name(name: str) -> str:
    """A name as MLflow takes it."""
    return NOT_IN_A_NAME.sub("_", name.replace("<=", "at most"))[:MOST_LETTERS]
