"""`fairveil fit --method group-objective`: end to end, and what is refused."""

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
from fairveil.cli.deciding import by_chance
from fairveil.curator import Curator
from fairveil.data import load_csv
from fairveil.errors import ConstraintNotMet
from fairveil.facts import Schema

ROLES = ("--target", "hired", "--sensitive", "sex")
ASKED = ("--method", "group-objective", "--seed", 0)


def expected(clf: Any, rows: Any) -> Any:
    """Joint frequencies of decisions by group and label, of the distribution of decisions, on the
    other applicants."""
    people = applicants(1500, 2)
    y, sex = (np.array([row[at] for row in people]) for at in (4, 3))
    law = clf.predict_proba(rows)
    return np.array(
        [
            [law[(sex == a) & (y == k)].sum(axis=0) for k in ("no", "yes")]
            for a in ("female", "male")
        ]
    ) / len(y)


@pytest.mark.parametrize(
    ("search", "decisions"),
    [
        (None, None),
        ("frank-wolfe", None),
        ("exponential", None),
        ("exponential", "directions"),
        ("linear-oracle", "thresholds"),
    ],
)
@pytest.mark.parametrize("protects", ["records", "sensitive-features"])
def test_fit_writes_model_statement_and_report(
    fairveil: Command,
    table: Path,
    others: Path,
    schema: Path,
    tmp_path: Path,
    search: str | None,
    decisions: str | None,
    protects: str,
) -> None:
    asked = (
        "--objective",
        "gmean",
        "--constraint",
        "equalized_odds:0.2",
        "--constraint",
        "false_positive_rate:0.3",
    )
    how = (
        *(() if search is None else ("--search", search)),
        *(() if decisions is None else ("--decisions", decisions)),
    )
    command = (
        "fit",
        table,
        "--schema",
        schema,
        *ASKED,
        *asked,
        *how,
        "--protects",
        protects,
        "--epsilon",
        3,
    )
    done = fairveil(*command, "--test", others, "--out", "model")
    assert done.code == 0, done.err
    saved = fv.load(tmp_path / "model")
    assert type(saved) is fv.GroupObjectiveClassifier
    assert fairveil("verify", "model/statement.json").code == 0
    assert saved.privacy_.promise == fv.Promise(3.0, 1e-6, protects.replace("-", "_"))
    assert saved.privacy_.epsilon <= 3.0
    assert any("separate test table" in sentence for sentence in saved.privacy_.not_covered)

    # The same as in Python, to the bit.
    declared = Schema.load(schema)
    clf = fv.GroupObjectiveClassifier(
        "gmean",
        ["equalized_odds:0.2", "false_positive_rate:0.3"],
        search or "linear-oracle",
        decisions,
        epsilon=3.0,
        public_rows=4000,
        random_state=0,
        protects=protects.replace("-", "_"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)  # the command has said it as a note
        clf.fit(load_csv(table, declared))
    rows = load_csv(others, declared)
    assert saved.predict_proba(rows).tobytes() == clf.predict_proba(rows).tobytes()

    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    page = html.unescape((tmp_path / "model/report.html").read_text("utf-8"))
    assert "GroupObjectiveClassifier" in twin["method"]
    assert twin["method"] in page
    chance = by_chance(clf)
    assert by_chance(saved) == chance
    assert not (chance and search == "exponential")
    assert any("randomized classifier" in note for note in twin["notes"]) == chance
    gap, bound = twin["gaps"]
    assert (gap["notion"], gap["target"]) == ("equalized odds", 0.2)
    worst = max(line.value for line in clf.constraint_report_.lines if "<= 0.2" in line.target)
    assert gap["training_noisy"] == max(worst, 0.0)

    # What is minimized stands in a note, what else is bounded in a figure: the released value, and
    # the exact one of the distribution.
    losses = expected(clf, rows)
    recalls = [losses[:, k, k].sum() / losses[:, k].sum() for k in (0, 1)]
    shortfall = 1.0 - (np.sqrt((recalls[0] + 0.01) * (recalls[1] + 0.01)) - 0.01)
    small = next(note for note in twin["notes"] if note.startswith("Minimized: 1 - gmean"))
    assert f"noisy training value {clf.objective_:.4f}" in small
    # but for the smoothing's form
    assert float(small.rpartition(" ")[2].rstrip(".")) == pytest.approx(shortfall, abs=0.006)
    false_alarms = losses[:, 0, 1].sum() / losses[:, 0].sum()
    assert (bound["target"], bound["held_out"]) == (0.3, pytest.approx(false_alarms))
    line = next(
        line for line in clf.constraint_report_.lines if line.target == "false_positive_rate <= 0.3"
    )
    assert (bound["training_noisy"], bound["training_noise"], bound["training_verdict"]) == (
        line.value,
        line.noise,
        line.verdict,
    )
    asked = "Required: at most 30.0% of all negatives are taken for positives."
    assert any(fact["words"] == asked for fact in twin["decision"])
    assert ("What is certain" in twin["results"]) == (search == "exponential")
    if search == "exponential":
        assert twin["results"]["What is certain"]["objective"] == clf.certain_.f
        assert str(clf.certain_).splitlines()[0].partition("  ")[2] in page

    # And the commands that follow.
    done = fairveil("predict", "model", others, "--proba", "--seed", 1)
    assert done.code == 0, done.err
    assert [line.split(",")[0] for line in done.out.splitlines()[1:]] == clf.predict(
        rows, random_state=1
    ).tolist()
    assert ("drawn from their distribution" in done.err) == chance
    done = fairveil("audit", others, "--model", "model", "--html", "audit.html", "--json")
    assert done.code == 0
    assert json.loads(done.out)["expected"] is chance


def test_a_table_as_it_comes_with_two_sensitive_columns(
    fairveil: Command, table: Path, tmp_path: Path
) -> None:
    constraint = (
        "--constraint",
        "demographic_parity:0.3,groups=marginal",
        "--constraint",
        "gini:0.4",
    )
    command = ("fit", table, *ROLES, "--sensitive", "city", *ASKED, *constraint)
    done = fairveil(*command, "--holdout", 0.3, "--unsafe-data-dependent-bounds", "--out", "model")
    assert done.code == 0, done.err
    saved = fv.load(tmp_path / "model")
    assert saved.groups_ == (("sex", "female"), ("sex", "male"), ("city", "a"), ("city", "b"))
    assert (saved.objective, saved.method) == ("error", "linear-oracle")
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    assert twin["gaps"][0]["held_out"] is not None
    gini = twin["gaps"][1]
    assert gini["target"] == 0.4
    assert 0.0 <= gini["held_out"] < 0.5
    assert fairveil("predict", "model", table).code == 0


def test_everyone_may_be_one_group(fairveil: Command, table: Path, tmp_path: Path) -> None:
    done = fairveil(
        "fit", table, *ROLES[:2], *ASKED, "--objective", "hmean", "--holdout", 0.2, "--out", "model"
    )
    assert done.code == 0, done.err
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    assert twin["gaps"] == []
    assert any(
        note.startswith("Minimized: 1 - hmean; noisy training value") for note in twin["notes"]
    )
    assert any("on held-out rows" in note for note in twin["notes"])


def test_a_pure_promise_is_kept_by_a_choice(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    command = ("fit", table, "--schema", schema, *ASKED, "--delta", 0, "--out", "model")
    done = fairveil(*command)
    assert (done.code, done.refusal.count("\n")) == (2, 2)
    assert "--search exponential" in done.err
    assert fairveil(*command, "--search", "exponential").code == 0
    assert fv.load(tmp_path / "model").privacy_.promise.delta == 0.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            (*ASKED, *ROLES, "--objective", "eror"),
            "expected an objective, or a name out of error, gmean",
        ),
        ((*ASKED, *ROLES, "--objective", "gini"), "--constraint gini:0.1"),
        ((*ASKED, *ROLES, "--objective", "equalized_odds:0.1"), "a bound is a --constraint"),
        ((*ASKED, *ROLES, "--constraint", "equalized_odds"), "Write equalized_odds:0.1"),
        ((*ASKED, *ROLES, "--constraint", "gmean"), "Write gmean:0.1"),
        ((*ASKED, *ROLES, "--constraint", "karma:0.1"), "expected a name out of"),
        (
            (*ASKED, *ROLES, "--search", "annealing"),
            "expected linear-oracle or exponential or frank-wolfe",
        ),
        ((*ASKED, *ROLES, "--decisions", "all"), "expected thresholds or directions or labellings"),
        ((*ASKED, *ROLES, "--decisions", "labellings"), "public features"),
        (
            (*ASKED, *ROLES[:2], "--constraint", "equalized_odds:0.1"),
            "groups, which equalized_odds:0.1 compares",
        ),
        ((*ASKED, *ROLES, "--strength", "2"), "--method fermi"),
        ((*ASKED, *ROLES, "--notion", "equalized_odds"), "--method fermi"),
        ((*ASKED, *ROLES, "--epsilon", "0"), "expected"),
        ((*ROLES, "--objective", "gmean"), "--method group-objective"),
        (("--method", "game", *ROLES, "--search", "exponential"), "--method group-objective"),
        (("--method", "fermi", *ROLES, "--decisions", "thresholds"), "--method group-objective"),
        ((*ROLES, "--constraint", "gmean:0.3"), "expected a name out of"),
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


def test_candidates_that_were_not_written_are_said_with_the_way_out(
    fairveil: Command, others: Path, tmp_path: Path
) -> None:
    from sklearn.linear_model import LogisticRegression

    rows = applicants(800, 1)
    X = np.array([[row[0], row[1]] for row in rows], float)
    y, sex = (np.array([row[at] for row in rows]) for at in (4, 3))
    listed = [LogisticRegression(C=c).fit(X, y) for c in (0.01, 1.0)]
    clf = fv.GroupObjectiveClassifier(
        "gmean", None, "exponential", listed, protects="sensitive_features", random_state=0
    )
    fv.save(clf.fit(X, y, sensitive_features=sex), tmp_path / "listed")
    for command in (("predict", "listed", others), ("audit", others, "--model", "listed", *ROLES)):
        done = fairveil(*command)
        assert (done.code, done.refusal.count("\n")) == (2, 2), done.err
        assert "one around LogisticRegression: made elsewhere and not written" in done.err


def test_rows_of_digits_as_groups_and_labels(fairveil: Command, tmp_path: Path) -> None:
    rows = [[*row[:3], int(row[3] == "male"), int(row[4] == "yes")] for row in applicants(1200, 1)]
    path = write_csv(tmp_path / "digits.csv", rows)
    command = (
        "fit",
        path,
        *ROLES,
        *ASKED,
        "--objective",
        "largest_group_loss",
        "--epsilon",
        5,
        "--holdout",
        0.25,
    )
    done = fairveil(*command, "--out", "model")
    assert done.code == 0, done.err
    assert fairveil("predict", "model", path, "--seed", 0).code == 0
    assert fairveil("audit", path, "--model", "model", *ROLES).code == 0
