"""Estimators as MLflow models: what the pyfunc predicts, what is logged, in a local store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairveil as fv
import ways
from fairveil.errors import FairveilError, InputError
from fairveil.export import mlflow_model
from knobs import made

mlflow = pytest.importorskip(
    "mlflow", reason="mlflow is not installed: pip install 'fairveil[mlflow]'"
)
pytestmark = [
    pytest.mark.filterwarnings("ignore::fairveil.errors.FairveilWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SEEN: dict[str, Any] = {"protects": "sensitive_features", "epsilon": 5.0, "random_state": 0}


def people(rows: int = 400, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.uniform(-1, 1, rows),
            "b": rng.uniform(-1, 1, rows),
            "sex": rng.choice(["f", "m"], rows),
        }
    )
    return X, np.where(X["a"] > 0, "yes", "no")


def fitted(clf: Any) -> Any:
    X, y = people()
    return clf.fit(X, y, sensitive_features=["sex"])


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {
        "rate": fitted(fv.FairClassifier("demographic_parity:0.2", epsilon=5.0, random_state=0)),
        "game": fitted(made(ways.game, "demographic_parity:0.1", rounds=10, **SEEN)),
        "post": fitted(made(fv.FairPostProcessor, None, "equalized_odds:0.1", **SEEN)),
    }


@pytest.mark.parametrize("name", ["rate", "game", "post"])
def test_guarantee_1_the_pyfunc_predicts_what_the_estimator_does(
    name: str, models: dict[str, Any], tmp_path: Path
) -> None:
    clf, (X, _) = models[name], people(60, 1)
    path = mlflow_model.save_model(clf, tmp_path / "flow")
    loaded = mlflow.pyfunc.load_model(str(path))
    options = {"sensitive_features": X["sex"]} if name == "post" else {}
    assert np.array_equal(
        loaded.predict(X, params={"proba": True}), clf.predict_proba(X, **options)
    )
    if name == "rate":
        assert np.array_equal(loaded.predict(X), clf.predict(X))
    else:
        expected = clf.predict(X, random_state=7, **options)
        assert np.array_equal(loaded.predict(X, params={"random_state": 7}), expected)
    assert mlflow_model.load_model(path).privacy_ == clf.privacy_


def test_guarantee_3_no_file_is_a_pickle(models: dict[str, Any], tmp_path: Path) -> None:
    path = mlflow_model.save_model(models["post"], tmp_path / "flow")
    files = [file for file in path.rglob("*") if file.is_file()]
    assert {"MLmodel", "model.json", "statement.json"} <= {file.name for file in files}
    assert not [
        file
        for file in files
        if file.suffix in (".pkl", ".pickle", ".joblib") or file.read_bytes()[:2] == b"\x80\x04"
    ]


def test_guarantee_2_a_run_has_the_numbers_of_statement_report_and_certificate(
    models: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    clf, (X, y) = models["rate"], people(3000, 2)
    certificate = fv.certify(
        clf,
        X,
        y,
        sensitive_features=["sex"],
        constraints="demographic_parity:0.3",
        epsilon=1.0,
        random_state=0,
    )
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    try:
        mlflow.set_experiment("fair")
        with mlflow.start_run() as run:
            logged = mlflow_model.log_model(clf, certificate=certificate)
        told = mlflow.get_run(run.info.run_id).data
        assert told.metrics["epsilon"] == clf.privacy_.epsilon
        assert told.metrics["certified"] == float(certificate.certified)
        line = clf.constraint_report_.lines[0]
        assert line.value in told.metrics.values()
        assert line.noise in told.metrics.values()
        assert told.params["protects"] == "records"
        names = {one.path for one in mlflow.MlflowClient().list_artifacts(run.info.run_id)}
        assert {"statement.json", "certificate.json"} <= names
        again = mlflow.pyfunc.load_model(logged.model_uri)
        assert np.array_equal(again.predict(X), clf.predict(X))
    finally:
        mlflow.set_tracking_uri(None)


def test_metrics_have_names_that_every_store_takes(models: dict[str, Any]) -> None:
    for clf in models.values():
        found = mlflow_model.metrics(clf)
        assert all(np.isfinite(list(found.values())))
        assert not [name for name in found if mlflow_model.NOT_IN_A_NAME.search(name)]
    private = fitted(fv.FairClassifier(epsilon=float("inf")))
    assert "epsilon" not in mlflow_model.metrics(private)


def test_a_model_that_reads_the_group_wants_its_columns(
    models: dict[str, Any], tmp_path: Path
) -> None:
    loaded = mlflow.pyfunc.load_model(
        str(mlflow_model.save_model(models["post"], tmp_path / "flow"))
    )
    with pytest.raises(InputError, match="sex"):
        loaded.predict(people(5)[0].drop(columns="sex"))


def test_a_refused_call_writes_nothing(models: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    bad: list[tuple[Any, str]] = [
        (models["rate"], "there"),
        (fv.FairClassifier(), "flow"),
        (object(), "flow"),
    ]
    for clf, name in bad:
        with pytest.raises((FairveilError, ValueError)):
            mlflow_model.save_model(clf, tmp_path / name)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["there"]
