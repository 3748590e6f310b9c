"""Exports that are refused: with the reason, and nothing is written; files that are there stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_samples import labels, mixture, people, sample

import fairveil as fv
from fairveil.errors import FairveilError, InputError
from fairveil.export import sql_query
from fairveil.export.columns import word_column
from fairveil.facts import Category, Number, Schema
from knobs import made


class Decides:
    """A classifier that was made elsewhere."""

    classes_ = np.array(["no", "yes"])

    def fit(self, X: Any, y: Any = None) -> Decides:
        return self

    def predict(self, X: Any) -> Any:
        return np.where(np.asarray(X)[:, 0] > 40, "yes", "no")


def network() -> Any:
    torch = pytest.importorskip("torch")
    table = people(200)
    X = np.column_stack([table["age"], table["hours a week"]]) / 80
    clf = fv.RateConstrainedClassifier(
        model=torch.nn.Linear(2, 1), epsilon=5.0, random_state=0, solver=fv.Descent(rounds=2)
    )
    return clf.fit(X, labels(table), sensitive_features=table["sex"])


def of_candidates() -> Any:
    table = people(200)
    X = np.column_stack([table["age"], table["hours a week"]])
    options: dict[str, Any] = {
        "protects": "sensitive_features",
        "epsilon": 3.0,
        "random_state": 0,
        "rounds": 5,
    }
    game = made(
        fv.OracleGameClassifier,
        "demographic_parity:0.2",
        oracle="exponential",
        solver=fv.OracleGame(candidates=[Decides()]),
        **options,
    )
    return game.fit(X, labels(table), sensitive_features=table["sex"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("made", "reason"), [(network, "code of yours"), (of_candidates, "made elsewhere")]
)
def test_code_of_others_is_refused_with_its_reason(made: Any, reason: str, tmp_path: Path) -> None:
    clf = made()
    with pytest.raises(InputError, match=reason):
        fv.export_sql(clf, tmp_path / "model")
    with pytest.raises(InputError, match=reason):
        fv.to_sklearn(clf)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "model", [None, "model", Decides(), fv.RateConstrainedClassifier, object()]
)
def test_what_is_no_model_of_ours_is_refused(model: Any) -> None:
    with pytest.raises(InputError, match="estimator of Fairveil"):
        sql_query(model)


def test_a_model_that_is_not_fitted_is_refused_as_scikit_learn_does() -> None:
    with pytest.raises(ValueError, match="not fitted"):
        sql_query(fv.RateConstrainedClassifier())


@pytest.mark.parametrize("values", [("a", 1), (1, 2**60), ("a", True)])
def test_values_of_two_kinds_are_refused(values: Any) -> None:
    with pytest.raises(InputError, match="texts"):
        word_column("town", values)


def test_a_column_with_a_name_of_the_exports_own_is_refused_where_it_is_one() -> None:
    name = "uniform"
    table = people(200)
    columns = {name: table["age"], "sex": table["sex"]}
    kinds = {name: Number(0, 100), "sex": Category(("f", "m")), "y": Category(("no", "yes"))}
    kept = Schema(kinds, target="y", sensitive=("sex",))
    clf = fv.RateConstrainedClassifier(schema=kept, epsilon=5.0, random_state=0)
    clf.fit(columns, labels(table), sensitive_features=table["sex"])
    assert "uniform" in sql_query(clf)
    mixture(clf)
    with pytest.raises(InputError, match="of the export's own"):
        sql_query(clf)


def test_guarantee_1_a_file_that_is_there_stays_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    path, clf = tmp_path / "model.sql", sample("linear")
    path.write_text("mine")
    with pytest.raises(InputError, match="overwrite=True"):
        fv.export_sql(clf, path)
    with pytest.raises(FairveilError):
        fv.export_sql(clf, path, table="", overwrite=True)
    with pytest.raises(InputError, match="True or False"):
        fv.export_sql(clf, path, overwrite=1)  # type: ignore[arg-type]
    assert path.read_text() == "mine"
    assert fv.export_sql(clf, path, overwrite=True) == path
    assert path.read_text() == sql_query(clf)
    for bad in (tmp_path, tmp_path / "none" / "model.sql"):
        with pytest.raises(InputError):
            fv.export_sql(clf, bad, overwrite=True)
    assert [file.name for file in tmp_path.iterdir()] == ["model.sql"]
