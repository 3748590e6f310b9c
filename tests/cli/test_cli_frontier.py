"""`fairveil frontier`: the sweep's numbers, plot and statement, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from people_who_do_not_exist import Command, applicants, write_csv

import fairveil as fv
from fairveil.cli.samples import Roles
from fairveil.cli.tables import Place
from fairveil.facts import Schema
from fairveil.show.numbers import at_most

SMALL = ("--gaps", "0.2,0.05", "--epsilons", "1,3")
FILES = {"frontier.json", "frontier.svg", "report.html", "report.json", "statement.json"}


def test_a_sweep_is_the_librarys(
    fairveil: Command, table: Path, others: Path, schema: Path, tmp_path: Path
) -> None:
    done = fairveil(
        "frontier", table, "--schema", schema, "--test", others, *SMALL, "--seeds", 2, "--out", "f"
    )
    assert done.code == 0, done.err
    assert {file.name for file in (tmp_path / "f").iterdir()} == FILES
    roles = Roles.of(Schema.load(schema), None, None, None)
    mine, held = (roles.read(Place(str(path))) for path in (table, others))
    expected = fv.frontier(
        *mine.fit_arguments,
        gaps=(0.2, 0.05),
        epsilons=(1, 3),
        seeds=2,
        test=held.fit_arguments,
        estimator=fv.RateConstrainedClassifier(public_rows=4000),
    )
    written = (tmp_path / "f/frontier.json").read_text("utf-8")
    assert json.loads(written)["runs"] == json.loads(expected.to_json())["runs"]
    statement = fv.PrivacyStatement.from_json((tmp_path / "f/statement.json").read_text("utf-8"))
    assert statement.epsilon == pytest.approx(expected.epsilon)
    assert statement.epsilon > 3
    assert statement.stamps == ("seeded-noise",)
    assert fairveil("verify", "f/statement.json").code == 0
    twin = json.loads((tmp_path / "f/report.json").read_text("utf-8"))
    (chart,) = (
        part
        for name, part in twin["results"]["What fairness and privacy cost"].items()
        if name.startswith("Error against")
    )
    assert [len(curve["points"]) for curve in chart["curves"]] == [2, 2]
    assert expected.summary in done.out
    assert (tmp_path / "f/frontier.svg").read_text("utf-8").startswith("<svg")


def test_without_a_test_table_a_quarter_is_held_out(
    fairveil: Command, table: Path, tmp_path: Path
) -> None:
    roles = ("--target", "hired", "--sensitive", "sex", "--unsafe-data-dependent-bounds")
    wish = ("--constraint", "equalized-odds", "--constraint", "false_negative_rate:0.9")
    done = fairveil(
        "frontier", table, *roles, *wish, "--gaps", "0.1", "--epsilons", "inf,2", "--out", "f"
    )
    assert done.code == 0, done.err
    content = json.loads((tmp_path / "f/report.json").read_text("utf-8"))
    assert "equalized odds gap" in done.out
    assert "covered by no guarantee" in done.out
    (sentence,) = [one for one in content["statement"]["not_covered"] if "held-out rows" in one]
    held = int("".join(letter for letter in sentence.partition(" held-out")[0] if letter.isdigit()))
    # 6 standard deviations of 4,000 coins: false alarms below 1e-8.
    assert abs(held - 1000) < 6 * 750**0.5


def test_without_any_defined_gap_the_numbers_and_the_price_are_written_all_the_same(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    """The models are charged by the time that is seen."""
    women = write_csv(
        tmp_path / "women.csv", [row for row in applicants(300, 2) if row[3] == "female"]
    )
    done = fairveil("frontier", table, "--schema", schema, "--test", women, *SMALL, "--out", "f")
    assert done.code == 0, done.err
    assert {file.name for file in (tmp_path / "f").iterdir()} == FILES - {"frontier.svg"}
    assert "every gap is undefined on the held-out rows" in done.err
    found = fv.Frontier.from_json((tmp_path / "f/frontier.json").read_text("utf-8"))
    assert all(run.gap is None and run.error is not None for run in found.runs)
    assert fairveil("verify", "f/statement.json").code == 0
    twin = json.loads((tmp_path / "f/report.json").read_text("utf-8"))
    assert not twin["results"]
    assert any("There is no plot" in note for note in twin["notes"])


def test_the_page_says_first_what_looking_at_all_models_costs(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    assert fairveil("frontier", table, "--schema", schema, *SMALL, "--out", "f").code == 0
    twin = json.loads((tmp_path / "f/report.json").read_text("utf-8"))
    epsilon = fv.PrivacyStatement.from_json(
        (tmp_path / "f/statement.json").read_text("utf-8")
    ).epsilon
    assert epsilon > 3.0
    (spent,) = (fact["words"] for fact in twin["decision"] if fact["label"] == "Privacy")
    assert f"Epsilon = {at_most(epsilon)}" in spent
    assert any(f"costs epsilon {at_most(epsilon)} at delta 1e-06" in note for note in twin["notes"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--gaps", "a"), "expected numbers between commas"),
        (("--epsilons", "0"), "expected"),
        (("--gaps", "0.1,0.1"), "expected distinct numbers"),
        (("--constraint", "karma"), "karma"),
        (("--constraint", "demographic_parity:0.1"), "change with the bound"),
        (("--holdout", "0"), "expected rows in both parts"),
        (("--seeds", "0"), "expected"),
        (("--holdout", "0.3", "--test", "others.csv"), "no --holdout beside --test"),
    ],
)
def test_what_is_wrong_is_one_line_and_leaves_nothing(
    fairveil: Command,
    table: Path,
    schema: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    says: str,
) -> None:
    before = set(tmp_path.iterdir())
    done = fairveil("frontier", table, "--schema", schema, *arguments, "--out", "f")
    assert done.code == 2
    assert says in done.err
    assert done.refusal.count("\n") == 2
    assert set(tmp_path.iterdir()) == before
