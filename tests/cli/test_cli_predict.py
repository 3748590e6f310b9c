"""`fairveil predict` and `fairveil audit`: a saved model's decisions, and the exact group table of
any decisions."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from people_who_do_not_exist import Command, applicants, write_csv

import fairveil as fv
from fairveil.cli.tables import Place
from fairveil.data import load_csv
from fairveil.facts import Schema

ROLES = ("--target", "hired", "--sensitive", "sex")


@pytest.fixture
def model(fairveil: Command, table: Path, schema: Path, tmp_path: Path) -> Path:
    done = fairveil(
        "fit",
        table,
        "--schema",
        schema,
        "--constraint",
        "demographic_parity:0.1",
        "--seed",
        0,
        "--out",
        "model",
    )
    assert done.code == 0, done.err
    return tmp_path / "model"


@pytest.fixture
def plain_model(fairveil: Command, table: Path, tmp_path: Path) -> Path:
    done = fairveil(
        "fit", table, *ROLES, "--seed", 0, "--unsafe-data-dependent-bounds", "--out", "plain"
    )
    assert done.code == 0, done.err
    return tmp_path / "plain"


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_predictions_are_the_models_in_the_order_of_the_table(
    fairveil: Command, model: Path, others: Path, schema: Path, tmp_path: Path
) -> None:
    done = fairveil("predict", model, others, "--out", "p.csv", "--proba", "--keep", "hired")
    assert done.code == 0, done.err
    lines = read(tmp_path / "p.csv")
    clf, rows = fv.load(model), load_csv(others, Schema.load(schema))
    assert [line["prediction"] for line in lines] == clf.predict(rows).tolist()
    shown = np.array([[float(line[f"probability[{k}]"]) for k in ("no", "yes")] for line in lines])
    assert np.array_equal(shown, clf.predict_proba(rows))
    assert [line["hired"] for line in lines] == [row[4] for row in applicants(1500, 2)]


@pytest.mark.parametrize("at_once", [7, 40])
def test_what_is_written_run_by_run_is_the_whole(
    fairveil: Command, model: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, tmp_path: Path
) -> None:
    few = write_csv(tmp_path / "few.csv", applicants(40, 3))
    arguments = ("predict", model, few, "--proba", "--keep", "city", "--seed", 1)
    whole = fairveil(*arguments).out
    monkeypatch.setattr(sys.modules["fairveil.cli.predict"], "ROWS_AT_ONCE", at_once)
    assert fairveil(*arguments).out == whole
    assert fairveil(*arguments, "--out", "p.csv").code == 0
    assert (tmp_path / "p.csv").read_text() == whole
    assert len(whole.splitlines()) == 41


def test_rows_to_predict_need_neither_target_nor_groups(
    fairveil: Command, model: Path, plain_model: Path, tmp_path: Path
) -> None:
    rows = applicants(40, 3)
    bare = write_csv(tmp_path / "bare.csv", [row[:3] for row in rows], ["age", "score", "city"])
    whole = write_csv(tmp_path / "whole.csv", rows)
    for folder in (model, plain_model):
        one, two = fairveil("predict", folder, bare), fairveil("predict", folder, whole)
        assert (one.code, two.code) == (0, 0), one.err + two.err
        assert one.out == two.out
        assert one.out.splitlines()[0] == "prediction"
        assert len(one.out.splitlines()) == 41


def test_words_that_look_like_numbers_stay_words(fairveil: Command, tmp_path: Path) -> None:
    rows = applicants(600, 1)
    for row in rows:
        row[2] = {"a": "1", "b": "two"}[str(row[2])]
    assert (
        fairveil("fit", write_csv(tmp_path / "t.csv", rows), *ROLES, "--seed", 0, "--out", "m").code
        == 0
    )
    ones = write_csv(tmp_path / "ones.csv", [row for row in rows if row[2] == "1"])
    assert fairveil("predict", "m", ones).code == 0
    assert (
        fairveil("fit", tmp_path / "t.csv", *ROLES, "--test", ones, "--seed", 0, "--out", "m2").code
        == 0
    )


def test_prediction_is_refused_in_one_line_and_writes_nothing(
    fairveil: Command, model: Path, others: Path, tmp_path: Path
) -> None:
    assert fairveil("predict", model, others, "--out", "p.csv").code == 0
    before = (tmp_path / "p.csv").read_bytes()
    lacking = write_csv(tmp_path / "lacking.csv", [[1]], ["age"])
    for arguments, says in (
        ((model, others, "--out", "p.csv"), "--force"),
        ((model, lacking, "--out", "p.csv", "--force"), "score"),
        ((model, tmp_path / "no.csv"), "no.csv"),
        ((tmp_path, others), "estimator.json"),
        ((model, others, "--keep", "no"), "--keep"),
        ((model, others, "--out", "nowhere/p.csv"), "Make that folder"),
    ):
        done = fairveil("predict", *arguments)
        assert done.code == 2
        assert says in done.err
        assert done.refusal.count("\n") == 2
        assert (tmp_path / "p.csv").read_bytes() == before
    assert fairveil("predict", model, others, "--out", "p.csv", "--proba", "--force").code == 0
    assert (tmp_path / "p.csv").read_bytes() != before


def test_the_audit_is_the_group_table(
    fairveil: Command, model: Path, others: Path, tmp_path: Path
) -> None:
    keep = ("--keep", "hired", "--keep", "sex")
    assert fairveil("predict", model, others, "--out", "p.csv", *keep).code == 0
    lines = read(tmp_path / "p.csv")
    y, decided, sex = ([line[name] for line in lines] for name in ("hired", "prediction", "sex"))
    by_column = fairveil("audit", "p.csv", *ROLES, "--prediction", "prediction", "--json")
    by_model = fairveil("audit", others, "--model", model, "--json")
    assert (by_column.code, by_model.code) == (0, 0), by_column.err + by_model.err
    found = json.loads(by_column.out)
    assert json.loads(by_model.out) == found
    assert found["table"] == json.loads(fv.group_table(y, decided, sex).to_json())
    assert found["gaps"]["demographic parity"]["value"] == pytest.approx(
        fv.demographic_parity_gap(y, decided, sex)
    )
    assert found["gaps"]["equalized odds"]["value"] == pytest.approx(
        fv.equalized_odds_gap(y, decided, sex)
    )
    words = fairveil("audit", "p.csv", *ROLES, "--prediction", "prediction").out
    assert str(fv.group_table(y, decided, sex)) in words
    assert "nothing in this table is private" in words


def test_a_model_without_a_schema_is_audited_too(
    fairveil: Command, plain_model: Path, others: Path
) -> None:
    done = fairveil(
        "audit",
        others,
        "--model",
        plain_model,
        "--target",
        "hired",
        "--sensitive",
        "sex",
        "--sensitive",
        "city",
    )
    assert done.code == 0, done.err
    assert "female" in done.out
    # which column is the target?
    assert fairveil("audit", others, "--model", plain_model).code == 2


def test_the_exit_status_says_whether_a_constraint_holds(fairveil: Command, others: Path) -> None:
    command = ("audit", others, *ROLES, "--prediction", "hired", "--constraint")
    broken = fairveil(*command, "demographic_parity:0.05")
    assert broken.code == 1
    assert "not met" in broken.out
    assert fairveil(*command, "demographic_parity:0.9").code == 0
    assert (
        fairveil(*command, "demographic_parity:0.9", "--constraint", "demographic_parity:0.01").code
        == 1
    )


def test_the_page_has_the_numbers(fairveil: Command, others: Path, tmp_path: Path) -> None:
    command = ("audit", others, *ROLES, "--prediction", "hired", "--html", "audit.html")
    assert fairveil(*command).code == 0
    twin = json.loads((tmp_path / "audit.json").read_text("utf-8"))
    assert twin["tables"][0]["overall"]["rows"] == 1500
    assert "<script" not in (tmp_path / "audit.html").read_text("utf-8")
    assert fairveil(*command).code == 2
    assert fairveil(*command, "--force").code == 0


def test_small_groups_and_undefined_rates_are_said(fairveil: Command, tmp_path: Path) -> None:
    counted = ((40, "yes", "yes", "a"), (40, "no", "no", "a"), (3, "no", "yes", "b"))
    rows: list[list[object]] = [list(row) for count, *row in counted for _ in range(count)]
    table = write_csv(tmp_path / "t.csv", rows, ["y", "p", "g"])
    command = ("audit", table, "--target", "y", "--prediction", "p", "--sensitive", "g")
    done = fairveil(*command)
    assert done.code == 0
    assert "b *" in done.out
    assert "*: fewer than 30 rows." in done.out
    assert "equalized odds gap: undefined" in done.out
    # what is not known does not hold
    assert fairveil(*command, "--constraint", "equalized_odds:0.5").code == 1
    assert json.loads(fairveil(*command, "--json").out)["gaps"]["equalized odds"]["value"] is None
    assert fairveil(*command, "--html", "audit.html").code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (ROLES, "one of --prediction and --model"),
        ((*ROLES, "--prediction", "hired", "--model", "m"), "one of --prediction and --model"),
        (("--target", "hired", "--prediction", "hired"), "expected a column"),
        ((*ROLES, "--prediction", "no"), "expected columns out of"),
        ((*ROLES, "--prediction", "score"), "error: "),
        ((*ROLES, "--prediction", "hired", "--groups", "all"), "expected"),
        ((*ROLES, "--prediction", "hired", "--html", "page.txt"), "ends in .html"),
        ((*ROLES, "--model", "nowhere"), "expected a folder"),
    ],
)
def test_an_audit_is_refused_in_one_line(
    fairveil: Command, others: Path, tmp_path: Path, arguments: tuple[object, ...], says: str
) -> None:
    before = set(tmp_path.iterdir())
    done = fairveil("audit", others, *arguments)
    assert done.code == 2
    assert says in done.err
    assert done.refusal.count("\n") == 2
    assert set(tmp_path.iterdir()) == before


def test_cells_of_a_csv_become_whole_numbers_numbers_or_words(tmp_path: Path) -> None:
    rows: list[list[object]] = [[1, "1.5", "a", "", "1_0", "02"], [2, "", "", "", "2", "3"]]
    columns = Place(str(write_csv(tmp_path / "t.csv", rows, list("abcdef")))).columns(words=["f"])
    assert columns["a"].tolist() == [1, 2]
    assert columns["a"].dtype == np.int64
    assert np.array_equal(columns["b"], [1.5, np.nan], equal_nan=True)
    assert columns["c"].tolist() == ["a", None]
    assert columns["d"].tolist() == [None, None]
    assert columns["e"].tolist() == ["1_0", "2"]
    assert columns["f"].tolist() == ["02", "3"]
