"""`fairveil fit --method fermi`: end to end, and what is refused; networks and the command line."""

from __future__ import annotations

import html
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from people_who_do_not_exist import Command, applicants, write_csv

import fairveil as fv
from fairveil.curator import Curator
from fairveil.data import load_csv
from fairveil.facts import Schema

ROLES = ("--target", "hired", "--sensitive", "sex")
FERMI = ("--method", "fermi", "--seed", 0)


@pytest.mark.parametrize("notion", [None, "equalized_odds", "equal-opportunity,positive=yes"])
@pytest.mark.parametrize("protects", ["records", "sensitive-features"])
def test_fit_writes_model_statement_and_report(
    fairveil: Command,
    table: Path,
    others: Path,
    schema: Path,
    tmp_path: Path,
    notion: str | None,
    protects: str,
) -> None:
    asked = ("--strength", 4, *(() if notion is None else ("--notion", notion)))
    command = (
        "fit",
        table,
        "--schema",
        schema,
        *FERMI,
        *asked,
        "--protects",
        protects,
        "--epsilon",
        3,
    )
    done = fairveil(*command, "--test", others, "--out", "model")
    assert done.code == 0, done.err
    saved = fv.load(tmp_path / "model")
    assert type(saved) is fv.FermiClassifier
    name = (notion or "demographic_parity").partition(",")[0].replace("-", "_")
    about = fv.EqualOpportunity(None, positive="yes") if name == "equal_opportunity" else name
    assert (saved.notion, saved.strength) == (about, 4.0)
    assert fairveil("verify", "model/statement.json").code == 0
    assert saved.privacy_.promise == fv.Promise(3.0, 1e-6, protects.replace("-", "_"))
    assert saved.privacy_.epsilon <= 3.0
    assert any("separate test table" in sentence for sentence in saved.privacy_.not_covered)

    # The same as in Python, to the bit.
    declared = Schema.load(schema)
    clf = fv.FermiClassifier(
        about,
        4.0,
        epsilon=3.0,
        public_rows=4000,
        random_state=0,
        protects=protects.replace("-", "_"),
    ).fit(load_csv(table, declared))
    rows = load_csv(others, declared)
    assert saved.predict_proba(rows).tobytes() == clf.predict_proba(rows).tobytes()

    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    page = html.unescape((tmp_path / "model/report.html").read_text("utf-8"))
    assert "FermiClassifier" in twin["method"]
    assert twin["method"] in page
    assert "mutual information" in twin["subject"]
    assert "What is certain" not in twin["results"]
    (gap,) = twin["gaps"]
    assert (gap["notion"], gap["target"]) == (name.replace("_", " "), None)
    assert gap["training_noisy"] == clf.gap_report_.largest.value
    decided = [
        (row[4], decision, row[3])
        for row, decision in zip(applicants(1500, 2), clf.predict(rows), strict=True)
    ]
    columns = list(zip(*decided, strict=True))
    if notion is None:
        assert gap["held_out"] == pytest.approx(fv.demographic_parity_gap(*columns))
    elif notion == "equalized_odds":
        assert gap["held_out"] == pytest.approx(fv.equalized_odds_gap(*columns))
    assert any("No gap was bounded: 4 times" in note for note in twin["notes"])
    (weights,) = twin["results"]["Coefficients of the linear score"].values()
    assert [one["feature"] for one in weights] == ["(intercept)", *clf.coef_names_]
    assert twin["tables"][0]["expected"] is False

    # And the commands that follow.
    done = fairveil("predict", "model", others, "--proba")
    assert done.out.splitlines()[0] == "prediction,probability[no],probability[yes]"
    assert [line.split(",")[0] for line in done.out.splitlines()[1:]] == clf.predict(rows).tolist()
    assert fairveil("audit", others, "--model", "model", "--html", "audit.html").code == 0


def test_a_table_as_it_comes_with_two_sensitive_columns(
    fairveil: Command, table: Path, tmp_path: Path
) -> None:
    command = (
        "fit",
        table,
        *ROLES,
        "--sensitive",
        "city",
        *FERMI,
        "--notion",
        "demographic_parity,groups=marginal",
    )
    done = fairveil(*command, "--holdout", 0.3, "--unsafe-data-dependent-bounds", "--out", "model")
    assert done.code == 0, done.err
    saved = fv.load(tmp_path / "model")
    assert saved.groups_ == (("sex", "female"), ("sex", "male"), ("city", "a"), ("city", "b"))
    assert saved.strength == 1.0
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    assert twin["gaps"][0]["held_out"] is not None
    assert fairveil("predict", "model", table).code == 0


def test_without_groups_it_says_that_nothing_is_penalised(
    fairveil: Command, table: Path, tmp_path: Path
) -> None:
    done = fairveil("fit", table, *ROLES[:2], *FERMI, "--out", "model")
    assert done.code == 0, done.err
    assert "No penalty applies" in done.err
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    assert twin["gaps"] == []
    none = fairveil("fit", table, *ROLES, *FERMI, "--strength", 0, "--out", "none")
    assert none.code == 0
    assert "No penalty applies" not in none.err
    assert json.loads((tmp_path / "none/report.json").read_text("utf-8"))["gaps"] == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            (*FERMI, *ROLES, "--constraint", "demographic_parity:0.05"),
            "--notion demographic_parity --strength 5",
        ),
        ((*FERMI, *ROLES, "--notion", "demographic_parity:0.05"), "without a bound"),
        ((*FERMI, *ROLES, "--notion", "karma"), "expected one of"),
        ((*FERMI, *ROLES, "--notion", "error_rate_parity"), "expected one of"),
        ((*FERMI, *ROLES, "--notion", "equalized_odds,compare=rest"), "no compare="),
        ((*FERMI, *ROLES, "--notion", "equalized_odds,max_gap=0.1"), "expected no bound"),
        ((*FERMI, *ROLES, "--notion", "equal_opportunity,positive=perhaps"), "positive"),
        ((*FERMI, *ROLES, "--strength", "-1"), "expected"),
        ((*FERMI, *ROLES, "--strength", "nan"), "expected"),
        ((*ROLES, "--strength", "2"), "--method fermi"),
        (("--method", "game", *ROLES, "--notion", "equalized_odds"), "--method fermi"),
        ((*FERMI, *ROLES, "--epsilon", "0"), "expected"),
    ],
)
def test_what_is_refused_asks_nothing_and_leaves_nothing(
    fairveil: Command,
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[object, ...],
    says: str,
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(Curator, "answer", lambda *_, **__: asked.append(1))
    before = set(tmp_path.iterdir())
    done = fairveil("fit", table, *arguments, "--out", "model")
    assert (done.code, done.refusal.count("\n")) == (2, 2), done.err
    assert says in done.err
    assert set(tmp_path.iterdir()) == before
    assert not asked


def test_the_help_says_where_networks_are_fitted(fairveil: Command) -> None:
    words = " ".join(fairveil("fit", "--help").out.replace("│", " ").split())
    assert "networks are fitted in Python" in words
    assert "--strength" in words


def test_a_network_is_said_to_need_its_module(
    fairveil: Command, others: Path, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    rows = applicants(600, 1)
    X = np.array([[row[0] / 80, row[1] / 100] for row in rows])  # type: ignore[operator]
    y, sex = ([row[at] for row in rows] for at in (4, 3))
    clf = fv.FermiClassifier(
        model=torch.nn.Linear(2, 1), solver=fv.Descent(rounds=3), random_state=0
    ).fit(X, y, sensitive_features=sex)
    around = fv.OddsPostProcessor(clf, "equalized_odds:0.5", epsilon=3.0, random_state=0)
    fv.save(clf, tmp_path / "network")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fv.errors.ConstraintNotMet)
        fv.save(around.fit(X, y, sensitive_features=sex), tmp_path / "around")
    for folder in ("network", "around"):
        for command in (("predict", folder, others), ("audit", others, "--model", folder, *ROLES)):
            done = fairveil(*command)
            assert (done.code, done.refusal.count("\n")) == (2, 2), done.err
            assert "a torch module: made elsewhere and not written" in done.err
            assert "--prediction COLUMN" in done.err


def test_a_penalised_model_under_a_post_processor_is_predicted_with(
    fairveil: Command, tmp_path: Path
) -> None:
    rows = applicants(1500, 1)
    X: dict[str, Any] = {
        "score": np.array([row[1] for row in rows], float),
        "age": np.array([row[0] for row in rows], float),
    }
    y, sex = ([row[at] for row in rows] for at in (4, 3))
    base = fv.FermiClassifier(solver=fv.Descent(rounds=10), unsafe_data_dependent_bounds=True)
    clf = fv.OddsPostProcessor(base, "equalized_odds:0.3", epsilon=4.0, random_state=0)
    fv.save(clf.fit(X, y, sensitive_features={"sex": sex}), tmp_path / "model")
    path = write_csv(tmp_path / "t.csv", rows)
    done = fairveil("predict", "model", path, "--seed", 1)
    assert done.code == 0, done.err
    assert (
        done.out.splitlines()[1:]
        == clf.predict(X, sensitive_features={"sex": sex}, random_state=1).tolist()
    )
