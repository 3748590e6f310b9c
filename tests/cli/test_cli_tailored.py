"""`fairveil fit --method tailored`: end to end, what each group spends on its page, and what is
refused."""

from __future__ import annotations

import html
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from people_who_do_not_exist import Command, applicants

import fairveil as fv
from fairveil.cli.by_group import numbers
from fairveil.curator import Curator
from fairveil.data import load_csv
from fairveil.errors import ConstraintNotMet, InputError
from fairveil.facts import Schema
from knobs import made

ROLES = ("--target", "hired", "--sensitive", "sex")
TAILORED = ("--method", "tailored", "--seed", 0)
BY_GROUP = (
    "--allocation",
    "female:3",
    "--allocation",
    "male:1",
    "--group-loss-bound",
    "female:0.4",
)


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ((), {}),
        (
            (*BY_GROUP, "--max-epsilon", "male:1.5"),
            {
                "allocation": {"female": 3.0, "male": 1.0},
                "group_loss_bound": {"female": 0.4},
                "max_epsilon": {"male": 1.5},
            },
        ),
        (
            (
                "--allocation",
                "standard-error",
                "--spend",
                "total",
                "--objective",
                "people",
                "--protects",
                "sensitive-features",
            ),
            {
                "allocation": "standard-error",
                "spend": "total",
                "objective": "people",
                "protects": "sensitive_features",
            },
        ),
    ],
    ids=["default", "by-group", "total"],
)
def test_fit_writes_model_statement_and_report(
    fairveil: Command,
    table: Path,
    others: Path,
    schema: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    arguments: dict[str, object],
) -> None:
    command = ("fit", table, "--schema", schema, *TAILORED, *options, "--epsilon", 3)
    done = fairveil(*command, "--test", others, "--out", "model")
    assert done.code == 0, done.err
    saved = fv.load(tmp_path / "model")
    assert type(saved) is fv.TailoredClassifier
    assert fairveil("verify", "model/statement.json").code == 0

    # The same as in Python, to the bit.
    declared = Schema.load(schema)
    clf = made(fv.TailoredClassifier, **arguments, epsilon=3.0, public_rows=4000, random_state=0)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)  # the command has said it as a note
        clf.fit(load_csv(table, declared))
    rows = load_csv(others, declared)
    assert saved.predict_proba(rows).tobytes() == clf.predict_proba(rows).tobytes()
    assert saved.privacy_.epsilon == clf.privacy_.epsilon <= 3.0

    # What each group spends, and what is not covered.
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    page = html.unescape((tmp_path / "model/report.html").read_text("utf-8"))
    assert "TailoredClassifier" in twin["method"]
    spends = twin["results"]["What each group spends"]
    lines = {line["group"]: line for line in spends["groups"]}
    assert [line["epsilon"] for line in lines.values()] == list(clf.tailoring_.epsilons)
    assert [line["share"] for line in lines.values()] == list(clf.tailoring_.shares)
    assert "What each group spends" in page
    assert ("holds at twice delta" in page) == (not clf.tailoring_.fixed)
    if "max_epsilon" in arguments:
        assert lines["male"]["epsilon"] <= 1.5
    (weights,) = twin["results"]["Coefficients of the linear score"].values()
    assert len(weights) == 1 + len(clf.coef_names_)

    # Log losses stand in notes: as they were released, and exactly on held-out rows.
    people = applicants(1500, 2)
    y, sex = (np.array([row[at] for row in people]) for at in (4, 3))
    law = clf.predict_proba(rows)
    losses = np.minimum(-np.log(law[np.arange(len(y)), (y == "yes").astype(int)]), 3.0)
    for at, group in enumerate(("female", "male")):
        (note,) = (
            note for note in twin["notes"] if note.startswith(f"Mean log loss of group {group}")
        )
        assert f"noisy training value {clf.outcome_.losses[at]:.4f}" in note
        assert float(note.rpartition(" ")[2].rstrip(".")) == pytest.approx(
            losses[sex == group].mean(), abs=6e-5
        )
        assert ("required at most 0.4" in note) == (
            "group_loss_bound" in arguments and group == "female"
        )
    (small,) = (note for note in twin["notes"] if note.startswith("Minimized"))
    assert ("the mean log loss;" in small) == (arguments.get("objective") == "people")

    # And the commands that follow.
    done = fairveil("predict", "model", others, "--proba")
    assert (done.code, done.err) == (0, "")
    assert [line.split(",")[0] for line in done.out.splitlines()[1:]] == clf.predict(rows).tolist()
    assert fairveil("audit", others, "--model", "model").code == 0


def test_losses_of_a_noiseless_fit_are_those_that_are_measured(
    fairveil: Command, table: Path, tmp_path: Path
) -> None:
    command = (
        "fit",
        table,
        *ROLES,
        *TAILORED,
        "--unsafe-data-dependent-bounds",
        "--epsilon",
        "inf",
    )
    assert fairveil(*command, "--test", table, "--out", "model").code == 0
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    notes = [note for note in twin["notes"] if note.startswith("Mean log loss of group")]
    assert len(notes) == 2
    for note in notes:
        released = float(note.partition("training value ")[2].split()[0])
        assert float(note.rpartition(" ")[2].rstrip(".")) == pytest.approx(released, abs=1e-4)
    assert [line["epsilon"] for line in twin["results"]["What each group spends"]["groups"]] == [
        "inf",
        "inf",
    ]


@pytest.mark.parametrize("groups", ["product", "marginal"])
def test_a_table_as_it_comes_with_two_sensitive_columns(
    fairveil: Command, table: Path, tmp_path: Path, groups: str
) -> None:
    name = "female / a" if groups == "product" else "sex / female"
    command = (
        "fit",
        table,
        *ROLES,
        "--sensitive",
        "city",
        *TAILORED,
        "--groups",
        groups,
        "--group-loss-bound",
        f"{name}:2",
    )
    done = fairveil(
        *command,
        "--holdout",
        0.3,
        "--unsafe-data-dependent-bounds",
        "--epsilon",
        20,
        "--out",
        "model",
    )
    assert done.code == 0, done.err
    saved = fv.load(tmp_path / "model")
    assert saved.group_loss_bound == {
        ("female", "a") if groups == "product" else ("sex", "female"): 2.0
    }
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    assert len(twin["results"]["What each group spends"]["groups"]) == 4
    assert name in [line["group"] for line in twin["results"]["What each group spends"]["groups"]]
    assert any("required at most 2;" in note and "held-out rows" in note for note in twin["notes"])


def test_everyone_may_be_one_group(fairveil: Command, table: Path, tmp_path: Path) -> None:
    done = fairveil("fit", table, *ROLES[:2], *TAILORED, "--holdout", 0.2, "--out", "model")
    assert done.code == 0, done.err
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    assert [line["group"] for line in twin["results"]["What each group spends"]["groups"]] == [
        "everyone"
    ]
    assert any(
        note.startswith("Mean log loss of everyone; noisy training value") for note in twin["notes"]
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            (*TAILORED, *ROLES, "--allocation", "fair"),
            "expected least-noise, standard-error, equal, size",
        ),
        (
            (*TAILORED, *ROLES, "--allocation", "equal", "--allocation", "size"),
            "expected least-noise",
        ),
        (
            (*TAILORED, *ROLES, "--allocation", "female:1", "--allocation", "female:2"),
            "each group once",
        ),
        ((*TAILORED, *ROLES, "--allocation", "female:1"), "a share for each of"),
        (
            (*TAILORED, *ROLES, "--allocation", "f:1", "--allocation", "m:1"),
            "groups out of female, male",
        ),
        (
            (*TAILORED, *ROLES, "--allocation", "female:0", "--allocation", "male:1"),
            "positive numbers",
        ),
        ((*TAILORED, *ROLES[:2], "--max-epsilon", "female:1"), "expected groups out of nothing"),
        ((*TAILORED, *ROLES, "--max-epsilon", "half"), "expected a number, or GROUP:NUMBER"),
        ((*TAILORED, *ROLES, "--max-epsilon", "0"), "expected a number above 0"),
        (
            (*TAILORED, *ROLES, "--max-epsilon", "female:1", "--neighbours", "replace-one"),
            "add-remove",
        ),
        ((*TAILORED, *ROLES, "--min-epsilon", "female:5"), "min_epsilon"),
        ((*TAILORED, *ROLES, "--group-loss-bound", "-1"), "expected a number above 0"),
        ((*TAILORED, *ROLES, "--spend", "all"), "expected person or total"),
        ((*TAILORED, *ROLES, "--groups", "all"), "expected product or marginal"),
        ((*TAILORED, *ROLES, "--objective", "gmean"), "expected groups or people"),
        ((*TAILORED, *ROLES, "--constraint", "demographic_parity:0.1"), "--group-loss-bound"),
        ((*TAILORED, *ROLES, "--strength", "2"), "--method fermi"),
        ((*ROLES, "--allocation", "equal"), "--method tailored"),
        (
            ("--method", "game", *ROLES, "--max-epsilon", "1"),
            "expected nothing: it is of --method tailored",
        ),
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


def test_numbers_by_group_are_read_from_the_right() -> None:
    assert numbers("--max-epsilon", None) is None
    assert numbers("--max-epsilon", ["2"]) == 2.0
    assert numbers("--max-epsilon", ["a:b:2", "c:3"]) == {"a:b": 2.0, "c": 3.0}
    for wrong in (["2", "3"], [":2"], ["a:"], ["a:2", "3"]):
        with pytest.raises(InputError, match="GROUP:NUMBER"):
            numbers("--max-epsilon", wrong)
