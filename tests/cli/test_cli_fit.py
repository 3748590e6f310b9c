"""`fairveil fit`: what it writes is what was promised, from every kind of table; what is wrong
leaves nothing."""

from __future__ import annotations

import csv
import json
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pytest
from people_who_do_not_exist import HEADER, Command, applicants, write_csv

import fairveil as fv
from fairveil import errors
from fairveil.cli.measured import Measured, measure
from fairveil.cli.options import warnings_as_notes
from fairveil.cli.samples import ColumnSample, Roles, Truth
from fairveil.cli.tables import Place
from fairveil.curator import Curator
from fairveil.data import load_csv
from fairveil.facts import Schema

FILES = {
    "arrays.npz",
    "estimator.json",
    "model.json",
    "report.html",
    "report.json",
    "statement.json",
}
PARITY = ("--constraint", "demographic_parity:0.05")


def test_a_csv_with_a_schema_becomes_a_model_a_statement_and_a_report(
    fairveil: Command, table: Path, others: Path, schema: Path, tmp_path: Path
) -> None:
    done = fairveil(
        "fit",
        table,
        "--schema",
        schema,
        *PARITY,
        "--test",
        others,
        "--out",
        "model",
        "--seed",
        0,
        "--verbose",
    )
    assert done.code == 0, done.err
    assert {file.name for file in (tmp_path / "model").iterdir()} == FILES
    statement = fv.PrivacyStatement.from_json(
        (tmp_path / "model/statement.json").read_text("utf-8")
    )
    assert statement.promise == fv.Promise(1.0, 1e-6)
    assert statement.check() == []
    assert any("separate test table" in sentence for sentence in statement.not_covered)
    assert all(fact.origin != "read from the data, not covered" for fact in statement.facts)
    assert fairveil("verify", "model/statement.json").code == 0
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    assert all(fact["words"].removesuffix(".") in done.out for fact in twin["decision"])
    assert twin["gaps"][0]["target"] == 0.05
    assert twin["tables"][0]["overall"]["rows"] == 1500
    (weights,) = twin["results"]["Coefficients of the linear score"].values()
    assert len(weights) == 1 + 2 + 2

    # The same as in Python, to the bit: the command adds nothing but what is said.
    declared = Schema.load(schema)
    clf = fv.RateConstrainedClassifier("demographic_parity:0.05", public_rows=4000, random_state=0)
    clf.fit(load_csv(table, declared))
    saved = fv.load(tmp_path / "model")
    assert np.array_equal(saved.coef_, clf.coef_)
    assert np.array_equal(
        saved.predict(load_csv(others, declared)), clf.predict(load_csv(others, declared))
    )


def test_every_kind_of_table_gives_the_same_model(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    rows = applicants(4000, 1)
    base = sqlite3.connect(tmp_path / "people.db")
    base.execute("create table people (age int, score real, city text, sex text, hired text)")
    base.executemany("insert into people values (?, ?, ?, ?, ?)", rows)
    base.commit()
    base.close()
    places: list[tuple[object, ...]] = [
        (table,),
        (tmp_path / "people.db", "--query", "people"),
        ("sqlite:///people.db", "--query", "select * from people"),
        (write_tsv(tmp_path / "people.tsv", rows),),
    ]
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = dict(zip(HEADER, map(list, zip(*rows, strict=True)), strict=True))
    parquet.write_table(pa.table(columns), tmp_path / "people.parquet")
    places.append((tmp_path / "people.parquet",))
    for with_schema in (True, False):
        roles = ("--schema", schema) if with_schema else ("--target", "hired", "--sensitive", "sex")
        coefficients = []
        for at, place in enumerate(places):
            out = f"model-{with_schema}-{at}"
            done = fairveil("fit", *place, *roles, *PARITY, "--seed", 5, "--out", out)
            assert done.code == 0, done.err
            coefficients.append(fv.load(tmp_path / out).coef_)
        assert all(np.array_equal(coefficients[0], one) for one in coefficients[1:])


def write_tsv(path: Path, rows: list[list[object]]) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t").writerows([HEADER, *rows])
    return path


def test_without_a_schema_what_was_read_from_the_data_is_said(
    fairveil: Command, table: Path, tmp_path: Path
) -> None:
    roles = ("--target", "hired", "--sensitive", "sex", "--ignore", "age")
    done = fairveil(
        "fit",
        table,
        *roles,
        *PARITY,
        "--unsafe-data-dependent-bounds",
        "--no-randomised",
        "--out",
        "model",
    )
    assert done.code == 0, done.err
    statement = fv.PrivacyStatement.from_json(
        (tmp_path / "model/statement.json").read_text("utf-8")
    )
    read = {
        fact.name for fact in statement.facts if fact.origin == "read from the data, not covered"
    }
    assert {"classes", "groups of sex", "categories of city"} <= read
    assert "data-dependent-bounds" in statement.stamps
    assert statement.noise == "secure"
    assert fv.load(tmp_path / "model").coef_names_ == ("score", "city=a", "city=b")


def test_numbers_without_a_schema_and_a_weak_promise_are_noted_in_words_of_the_shell(
    fairveil: Command, table: Path, schema: Path
) -> None:
    done = fairveil(
        "fit",
        table,
        "--target",
        "hired",
        "--sensitive",
        "sex",
        *PARITY,
        "--delta",
        "0.01",
        "--out",
        "model",
    )
    assert done.code == 0, done.err
    assert "note: TABLE: expected numbers whose bounds are public" in done.err
    assert "Pass --schema with a low and a high" in done.err
    assert "note: --delta: expected a number well below one over the rows, got 0.01." in done.err
    assert "schema=" not in done.err
    done = fairveil(
        "fit",
        table,
        "--schema",
        schema,
        *PARITY,
        "--delta",
        "0.01",
        "--epsilon",
        "20",
        "--out",
        "other",
    )
    assert "note: --epsilon: expected at most 10" in done.err
    assert "note: --delta: expected a number well below 1/4000" in done.err
    assert "TABLE" not in done.err


def test_the_statement_says_where_the_number_of_rows_comes_from(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    passed = ("--public-rows", 4100)
    held = ("--holdout", 0.25)
    cases: list[tuple[tuple[object, ...], str, str]] = [
        ((), "4000", "schema"),
        (held, "3000", "schema x (1 - holdout)"),
        (passed, "4100", "argument"),
        ((*passed, *held), "3075", "argument x (1 - holdout)"),
    ]
    for at, (options, rows, origin) in enumerate(cases):
        assert (
            fairveil(
                "fit", table, "--schema", schema, *PARITY, *options, "--out", f"model{at}"
            ).code
            == 0
        )
        text = (tmp_path / f"model{at}/statement.json").read_text("utf-8")
        (fact,) = (
            one for one in fv.PrivacyStatement.from_json(text).facts if one.name == "number of rows"
        )
        assert (fact.value, fact.origin) == (rows, origin)


def test_words_of_the_promise_arrive(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    done = fairveil(
        *(
            "fit",
            table,
            "--schema",
            schema,
            "--out",
            "model",
            "--epsilon",
            "2",
            "--delta",
            "1e-7",
            *PARITY,
        ),
        *("--protects", "sensitive-features", "--tuning", "none", "--earlier-releases", "a count"),
    )
    assert done.code == 0, done.err
    statement = fv.PrivacyStatement.from_json(
        (tmp_path / "model/statement.json").read_text("utf-8")
    )
    assert statement.promise == fv.Promise(2.0, 1e-7, "sensitive_features")
    assert (statement.tuning, statement.earlier_releases) == ("none", "a count")


def test_no_privacy_is_flagged(fairveil: Command, table: Path, schema: Path) -> None:
    done = fairveil("fit", table, "--schema", schema, "--out", "model", "--epsilon", "inf")
    assert done.code == 0
    assert "NOT PRIVATE" in done.out


def test_a_constraint_that_is_no_gap_is_reported_too(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    done = fairveil(
        *(
            "fit",
            table,
            "--schema",
            schema,
            "--constraint",
            "false_negative_rate:0.3",
            "--holdout",
            "0.3",
        ),
        *("--seed", 2, "--out", "model"),
    )
    assert done.code == 0, done.err
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    (rate,) = twin["gaps"]
    assert (rate["name"], rate["unit"], rate["target"]) == (
        "false negative rate",
        "percent",
        0.3,
    )
    assert rate["held_out_low"] < rate["held_out"] < rate["held_out_high"]
    (fairness,) = (fact for fact in twin["decision"] if fact["label"] == "Fairness")
    assert fairness["words"] == "Required: at most 30.0% of all positives are missed."


def test_an_infeasible_wish_is_a_note_and_no_traceback(
    fairveil: Command, table: Path, schema: Path
) -> None:
    wishes = (
        "--constraint",
        "false_negative_rate:0.01",
        "--constraint",
        "false_positive_rate_parity:0.0,compare=rest",
    )
    done = fairveil(
        "fit",
        table,
        "--schema",
        schema,
        *wishes,
        "--constraint",
        "bounded_group_loss:0.01",
        "--out",
        "m",
        "--seed",
        1,
    )
    assert done.code == 0
    assert "fairveil: note: a constraint is not met" in done.err
    assert "constraint_report_" not in done.err
    assert "site-packages" not in done.err


# Rows held out


def test_held_out_rows_are_not_trained_on_and_the_number_of_rows_follows(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    done = fairveil(
        "fit",
        table,
        "--schema",
        schema,
        *PARITY,
        "--holdout",
        "0.25",
        "--seed",
        3,
        "--out",
        "model",
    )
    assert done.code == 0, done.err
    statement = fv.PrivacyStatement.from_json(
        (tmp_path / "model/statement.json").read_text("utf-8")
    )
    assert any("probability 0.25" in sentence for sentence in statement.not_covered)
    assert {fact.value for fact in statement.facts if fact.name == "number of rows"} == {"3000"}
    sample = Roles.of(Schema.load(schema), None, None, None).read(Place(str(table)))
    kept, held = sample.split(0.25, 3)
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    assert twin["tables"][0]["overall"]["rows"] == held.size
    clf = fv.RateConstrainedClassifier(
        "demographic_parity:0.05", public_rows=3000, random_state=3
    ).fit(kept.fit_arguments[0])
    assert np.array_equal(fv.load(tmp_path / "model").coef_, clf.coef_)


def test_a_replaced_row_moves_the_parts_by_itself_alone_and_coins_read_nothing() -> None:
    """The split is a coin a place: neighbours under replace-one have neighbouring training parts of
    equal size."""
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=500), "y": rng.integers(2, size=500)}
    one = ColumnSample(columns, "y", ())
    for place in (0, 17, 499):
        changed = {name: column.copy() for name, column in columns.items()}
        changed["x"][place] = 1e9
        for mine, theirs in zip(
            one.split(0.3, 7), ColumnSample(changed, "y", ()).split(0.3, 7), strict=True
        ):
            assert mine.size == theirs.size
            assert (mine.features["x"] != theirs.features["x"]).sum() <= 1


def test_a_coin_lands_as_often_as_was_asked() -> None:
    """5 standard deviations of 20,000 coins: false alarms below 1e-6; a share off by a factor of
    1.5 is far outside."""
    sample = ColumnSample({"y": np.zeros(20_000, int)}, "y", ())
    for seed in (None, 1):
        held = sample.split(0.2, seed)[1].size
        assert abs(held - 4000) < 5 * (20_000 * 0.2 * 0.8) ** 0.5
    assert sample.split(0.2, 1)[1].size != sample.split(0.2, 2)[1].size


# The interval of a gap


def test_the_interval_of_a_gap_holds_the_truth_as_often_as_it_says() -> None:
    """Three groups, 400 tables. Coverage is at least 95 % in theory; fewer than 370 has a chance
    below 1e-2 at exactly 95 % and below 1e-9 at the level that forgetting the other pairs would
    give in the worst case. Half-width intervals fail."""
    rng = np.random.default_rng(5)
    rates, held, halved = np.array([0.3, 0.5, 0.45]), 0, 0
    for _ in range(400):
        groups = rng.integers(3, size=600)
        prediction = (rng.random(600) < rates[groups]).astype(int)
        truth = Truth(np.zeros(600, int), {"g": groups})
        found = measure(fv.DemographicParity(0.05), truth, prediction, classes=[0, 1])
        assert found.low <= found.value <= found.high
        assert found.value == pytest.approx(fv.demographic_parity_gap(None, prediction, groups))
        held += found.low <= 0.2 <= found.high
        halved += abs(found.value - 0.2) <= (found.high - found.low) / 4
    assert held >= 370
    assert halved < 370


def test_an_undefined_gap_is_nan() -> None:
    truth = Truth(np.array([0, 1, 0, 0]), {"g": np.array(["a", "a", "b", "b"])})
    found = measure(fv.EqualizedOdds(0.05), truth, np.array([0, 1, 0, 1]), classes=[0, 1])
    assert isinstance(found, Measured)
    assert np.isnan([found.value, found.low, found.high]).all()


# Refused


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--target", "no", "--sensitive", "sex"), "expected columns out of"),
        (("--target", "hired", "--sensitive", "no"), "expected columns out of"),
        (("--target", "hired", "--sensitive", "hired"), "expected distinct columns"),
        ((), "expected a column"),
        (("--target", "hired", *PARITY), "expected groups"),
        (("--target", "hired", "--constraint", "karma:0.1"), "expected a name out of"),
        (("--target", "hired", "--epsilon", "-1"), "expected"),
        (("--target", "hired", "--delta", "2"), "expected"),
        (("--target", "hired", "--protects", "nobody"), "expected"),
        (("--target", "hired", "--holdout", "1"), "expected"),
        (
            ("--target", "hired", "--holdout", "0.5", "--test", "others.csv"),
            "no --holdout beside --test",
        ),
        (("--target", "hired", "--test", "nowhere.csv"), "expected a CSV or Parquet file"),
        (("--target", "hired", "--schema", "nowhere.toml"), "expected a schema file"),
        (
            (
                "--target",
                "score",
            ),
            "Unknown label type",
        ),
        (("--target", "hired", "--query", "people"), "expected rows from a query"),
        (("--target", "hired", "--ignore", "no"), "expected columns out of"),
    ],
)
def test_what_is_wrong_is_one_line_and_leaves_nothing(
    fairveil: Command, table: Path, tmp_path: Path, arguments: tuple[object, ...], says: str
) -> None:
    before = set(tmp_path.iterdir())
    done = fairveil("fit", table, *arguments, "--out", "model")
    assert done.code == 2
    assert done.refusal.startswith("error: ")
    assert says in done.err
    assert done.refusal.count("\n") == 2
    assert set(tmp_path.iterdir()) == before


def test_rows_that_do_not_fit_are_refused_before_any_release(
    fairveil: Command, schema: Path, tmp_path: Path
) -> None:
    rows = applicants(50, 1)
    for at, wrong in ((3, "unknown"), (0, "old"), (1, "")):
        bad = [list(row) for row in rows]
        bad[7][at] = wrong
        done = fairveil(
            "fit", write_csv(tmp_path / "bad.csv", bad), "--schema", schema, "--out", "model"
        )
        assert done.code == 2
        assert HEADER[at] in done.err
    short = write_csv(tmp_path / "short.csv", [*rows, [1, 2]])
    for roles in (("--schema", schema), ("--target", "hired")):
        done = fairveil("fit", short, *roles, "--out", "model")
        assert (done.code, (tmp_path / "model").exists()) == (2, False)
    empty = write_csv(tmp_path / "empty.csv", [])
    for roles in (("--schema", schema), ("--target", "hired")):
        done = fairveil("fit", empty, *roles, "--out", "model")
        assert done.code == 2
        assert "expected some rows" in done.err


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for every release: a refusal must come before the first."""
    asked: list[int] = []
    answer = Curator.answer

    def counting(self: Curator, *arguments: object, **named: object) -> object:
        asked.append(1)
        return answer(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Curator, "answer", counting)
    return asked


@pytest.mark.parametrize(
    ("at", "value", "says"),
    [
        (
            2,
            "z",
            "expected words, classes and groups of the rows to fit, got 'z' in rows to measure on",
        ),
        (3, "other", "expected words, classes and groups of the rows to fit"),
        (4, "perhaps", "expected words, classes and groups of the rows to fit"),
        (2, "", "column 'city'"),
        (3, "", "expected a value in every row"),
        (4, "", "expected a value in every row"),
        (0, "", "column 'age'"),
        (1, "much", "expected numbers"),
    ],
)
def test_test_rows_that_cannot_be_measured_on_are_refused_before_the_fit_is_charged(
    fairveil: Command,
    table: Path,
    tmp_path: Path,
    answers: list[int],
    at: int,
    value: str,
    says: str,
) -> None:
    rows = applicants(60, 2)
    rows[7][at] = value
    others = write_csv(tmp_path / "others.csv", rows)
    done = fairveil(
        "fit",
        table,
        "--target",
        "hired",
        "--sensitive",
        "sex",
        *PARITY,
        "--test",
        others,
        "--out",
        "model",
    )
    assert (done.code, done.refusal.count("\n"), (tmp_path / "model").exists()) == (2, 2, False)
    assert says in done.err
    assert not answers


def test_a_test_table_without_a_feature_is_refused_before_the_fit_is_charged(
    fairveil: Command, table: Path, tmp_path: Path, answers: list[int]
) -> None:
    other = write_csv(
        tmp_path / "others.csv", applicants(60, 2), ["age", "points", "city", "sex", "hired"]
    )
    done = fairveil(
        "fit",
        table,
        "--target",
        "hired",
        "--sensitive",
        "sex",
        *PARITY,
        "--test",
        other,
        "--out",
        "model",
    )
    assert (done.code, done.refusal.count("\n"), (tmp_path / "model").exists()) == (2, 2, False)
    assert "expected columns out of" in done.err
    assert not answers


def test_a_word_that_was_only_held_out_is_refused_before_the_fit_is_charged(
    fairveil: Command, tmp_path: Path, answers: list[int]
) -> None:
    """Ten words of one row each: with a fixed seed some are held out. A schema that lists them is
    the way out."""
    rows = applicants(400, 1)
    for at in range(10):
        rows[at][2] = f"rare{at}"
    path = write_csv(tmp_path / "rare.csv", rows)
    command = (
        "fit",
        path,
        "--target",
        "hired",
        "--sensitive",
        "sex",
        *PARITY,
        "--holdout",
        "0.4",
        "--seed",
        0,
        "--out",
        "model",
    )
    done = fairveil(*command)
    assert (done.code, done.refusal.count("\n"), (tmp_path / "model").exists()) == (2, 2, False)
    assert "rare" in done.err
    assert "--schema" in done.err
    assert not answers
    assert fairveil(*command, "--ignore", "city").code == 0
    assert answers


@pytest.mark.parametrize("option", ["--tuning", "--earlier-releases"])
def test_words_for_the_statement_are_checked_before_the_fit_is_charged(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path, answers: list[int], option: str
) -> None:
    done = fairveil("fit", table, "--schema", schema, "--out", "model", option, "two\nlines")
    assert (done.code, done.refusal.count("\n"), (tmp_path / "model").exists()) == (2, 2, False)
    assert not answers


def test_a_label_without_a_value_is_one_line(fairveil: Command, tmp_path: Path) -> None:
    rows = [[*row[:4], 1 if row[4] == "yes" else 0] for row in applicants(60, 1)]
    rows[3][4] = ""
    path = write_csv(tmp_path / "blank.csv", rows)
    done = fairveil(
        "fit", path, "--target", "hired", "--sensitive", "sex", *PARITY, "--out", "model"
    )
    assert (done.code, (tmp_path / "model").exists()) == (2, False)
    assert done.err.startswith(
        "error: expected a value in every row, got 1 of 60 empty (column 'hired')"
    )
    assert done.refusal.count("\n") == 2


def test_a_rate_that_is_undefined_on_held_out_rows_is_called_so(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    nobody = write_csv(
        tmp_path / "others.csv", [row for row in applicants(200, 2) if row[4] == "no"]
    )
    wish = ("--constraint", "false_negative_rate:0.9")
    done = fairveil(
        "fit", table, "--schema", schema, *wish, "--test", nobody, "--seed", 0, "--out", "model"
    )
    assert done.code == 0, done.err
    (rate,) = json.loads((tmp_path / "model/report.json").read_text("utf-8"))["gaps"]
    assert (rate["held_out"], rate["held_out_verdict"]) == (None, None)
    assert rate["notes"] == [
        "Undefined on the held-out rows: a group has no row of a kind that should be compared."
    ]


def test_a_password_is_never_shown(fairveil: Command) -> None:
    for query in ((), ("--query", "people")):
        done = fairveil(
            "fit", "nosuchdriver://me:hunter2@host/base", *query, "--target", "y", "--out", "model"
        )
        assert done.code == 2
        assert "hunter2" not in done.err + done.out


def test_what_is_there_is_replaced_only_when_asked_and_only_if_it_is_a_model(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    command = ("fit", table, "--schema", schema, "--out", "model")
    assert fairveil(*command, "--seed", 1).code == 0
    before = (tmp_path / "model/arrays.npz").read_bytes()
    refused = fairveil(*command, "--seed", 2)
    assert refused.code == 2
    assert "--force" in refused.err
    assert (tmp_path / "model/arrays.npz").read_bytes() == before
    assert fairveil(*command, "--seed", 2, "--force").code == 0
    assert (tmp_path / "model/arrays.npz").read_bytes() != before
    other = tmp_path / "photos"
    other.mkdir()
    (other / "me.jpg").write_bytes(b"1")
    assert fairveil("fit", table, "--schema", schema, "--out", other, "--force").code == 2
    assert [file.name for file in other.iterdir()] == ["me.jpg"]
    taken = tmp_path / "taken"
    taken.write_text("a file", "utf-8")
    assert fairveil("fit", table, "--schema", schema, "--out", taken, "--force").code == 2
    assert taken.read_text("utf-8") == "a file"


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_interrupted_it_leaves_what_was_there(
    fairveil: Command,
    table: Path,
    schema: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
) -> None:
    command = ("fit", table, "--schema", schema, "--out", "model")
    assert fairveil(*command, "--seed", 1).code == 0
    # where the new model goes
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("elsewhere")))
    before = {file: file.read_bytes() for file in (tmp_path / "model").iterdir()}
    listed = set(tmp_path.iterdir())

    def breaks(*_: object) -> None:
        raise failure

    monkeypatch.setattr("fairveil.show.report.os.replace", breaks)
    done = fairveil(*command, "--seed", 2, "--force")
    assert done.code in (3, 130)
    assert "Traceback" not in done.err
    assert {file: file.read_bytes() for file in (tmp_path / "model").iterdir()} == before
    assert set(tmp_path.iterdir()) == listed
    assert "estimator.json" in {file.name for file in before}


def test_a_number_as_target_is_refused_with_a_way_out(fairveil: Command, table: Path) -> None:
    """The table has some sixty ages: a fit of as many classes would take for ever."""
    done = fairveil("fit", table, "--target", "age", "--sensitive", "sex", "--out", "model")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(
        "error: expected a schema that lists the classes, or at most 20 distinct values, got a "
        "number with more, and no schema (--target)\nhint: without a schema classes are read from "
        "the data, not covered: "
    )
    assert "fairveil schema init" in done.err


def test_a_warning_before_a_spend_is_printed_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings_as_notes() as notes:
        for _ in range(2):
            warnings.warn("no bounds", errors.UnstatedBounds, stacklevel=1)
        assert capsys.readouterr().err == "fairveil: note: no bounds\n"
    assert notes == ["no bounds"]
    assert capsys.readouterr().err == ""
