"""`fairveil fit --unit`: persons on the command line are those of the library, whole in every part,
and named in no error."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from people_who_do_not_exist import HEADER, Command, applicants, write_csv

import fairveil as fv
from fairveil.cli.persons import one_of_each, split
from fairveil.cli.samples import ColumnSample
from fairveil.facts import Schema
from fairveil.privacy import Unit

NAMES = [*HEADER, "patient"]
PARITY = ("--constraint", "demographic_parity:0.1")
PERSONS = ("--unit", "patient", "--max-rows-per-unit", 3)


def visits(path: Path, people: range, seed: int) -> Path:
    """Rows of persons, 1 to 5 each, in no order."""
    draw = np.random.default_rng(seed)
    whose = draw.permutation(np.repeat(list(people), draw.integers(1, 6, len(people))))
    return write_csv(
        path,
        [[*row, f"p-{i}"] for row, i in zip(applicants(len(whose), seed), whose, strict=True)],
        NAMES,
    )


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    return visits(tmp_path / "clinic.csv", range(400), 1)


def columns_of(path: Path) -> dict[str, np.ndarray]:
    with open(path, newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return {name: np.array([row[at] for row in rows]) for at, name in enumerate(head)}


def test_a_fit_of_persons_is_the_library_s(
    fairveil: Command, clinic: Path, schema: Path, tmp_path: Path
) -> None:
    done = fairveil(
        "fit",
        clinic,
        "--schema",
        schema,
        *PARITY,
        *PERSONS,
        "--seed",
        0,
        "--out",
        "model",
        "--verbose",
    )
    assert done.code == 0, done.err
    assert "Unit: one person, at most 3 of their rows" in done.out
    statement = fv.PrivacyStatement.from_json(
        (tmp_path / "model/statement.json").read_text("utf-8")
    )
    assert statement.promise == fv.Promise(1.0, 1e-6, unit=Unit("patient", 3))
    assert statement.check() == []
    assert fairveil("verify", "model/statement.json").code == 0
    table = columns_of(clinic)
    rows = {
        name: table[name].astype(float) if name in ("age", "score") else table[name]
        for name in HEADER
    }
    clf = fv.RateConstrainedClassifier(
        "demographic_parity:0.1", schema=Schema.load(schema), random_state=0
    )
    clf.set_params(unit=table["patient"], max_rows_per_unit=3).fit(
        rows, rows["hired"], sensitive_features="sex"
    )
    assert np.array_equal(fv.load(tmp_path / "model").coef_, clf.coef_)
    assert not any(b"p-17" in file.read_bytes() for file in (tmp_path / "model").iterdir())


def test_the_schema_may_say_it(
    fairveil: Command, clinic: Path, schema: Path, tmp_path: Path
) -> None:
    Schema.load(schema).with_unit("patient", 2).save(tmp_path / "persons.toml")
    done = fairveil("fit", clinic, "--schema", "persons.toml", *PARITY, "--out", "model")
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "model/statement.json").read_text("utf-8"))
    assert found["promise"]["unit"] == {"name": "patient", "max_rows": 2}
    done = fairveil(
        "plan", "--schema", "persons.toml", "--constraint", "demographic_parity:0.1", "--rows", 5000
    )
    assert "one person, at most 2 of their rows" in done.out
    for command in (("frontier", clinic), ("release-groups", clinic)):
        done = fairveil(*command, "--schema", "persons.toml", "--out", "new")
        assert done.code == 2, done.err
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "method", ["game", "post-processing", "parity-post-processing", "group-objective"]
)
def test_other_methods_protect_persons(
    fairveil: Command, clinic: Path, schema: Path, tmp_path: Path, method: str
) -> None:
    for number, more in enumerate(
        (("--schema", schema), ("--target", "hired", "--sensitive", "sex"))
    ):
        out = f"model-{number}"
        done = fairveil(
            "fit",
            clinic,
            *more,
            *PARITY,
            *PERSONS,
            "--method",
            method,
            "--holdout",
            0.3,
            "--out",
            out,
        )
        assert done.code == 0, done.err
        statement = fv.PrivacyStatement.from_json(
            (tmp_path / out / "statement.json").read_text("utf-8")
        )
        assert statement.promise.unit == Unit("patient", 3)
        assert statement.check() == []
        assert fairveil("predict", out, clinic, "--out", f"decided-{number}.csv").code == 0


def test_a_search_and_a_certificate_keep_persons_whole(
    fairveil: Command, clinic: Path, schema: Path, tmp_path: Path
) -> None:
    for number, more in enumerate(
        (("--schema", schema), ("--target", "hired", "--sensitive", "sex"))
    ):
        grid = ("--grid", "rounds=3,4", "--way", "all")
        done = fairveil("tune", clinic, *more, *PARITY, *PERSONS, *grid, "--out", f"best-{number}")
        assert done.code == 0, done.err
        found = json.loads((tmp_path / f"best-{number}/statement.json").read_text("utf-8"))
        assert found["promise"]["unit"] == {"name": "patient", "max_rows": 3}
        done = fairveil(
            "fit",
            clinic,
            *more,
            *PARITY,
            *PERSONS,
            "--confidence",
            0.9,
            "--out",
            f"sure-{number}",
            "--verbose",
        )
        assert done.code == 0, done.err
        said = json.loads((tmp_path / f"sure-{number}/statement.json").read_text("utf-8"))["notes"]
        assert any("persons were set aside by an independent draw" in one for one in said)


def test_a_tailored_fit_protects_persons(
    fairveil: Command, clinic: Path, schema: Path, tmp_path: Path
) -> None:
    done = fairveil(
        "fit", clinic, "--schema", schema, *PERSONS, "--method", "tailored", "--out", "model"
    )
    assert done.code == 0, done.err
    statement = fv.PrivacyStatement.from_json(
        (tmp_path / "model/statement.json").read_text("utf-8")
    )
    assert statement.promise.unit == Unit("patient", 3)
    assert statement.check() == []


def test_without_a_schema_the_column_is_no_feature(
    fairveil: Command, clinic: Path, tmp_path: Path
) -> None:
    done = fairveil(
        "fit",
        clinic,
        "--target",
        "hired",
        "--sensitive",
        "sex",
        *PARITY,
        *PERSONS,
        "--seed",
        0,
        "--out",
        "model",
    )
    assert done.code == 0, done.err
    names = fv.load(tmp_path / "model").coef_names_  # a constant has none: hence the seed
    assert not any("patient" in name for name in names)
    assert fairveil("predict", "model", clinic, "--out", "decided.csv").code == 0


def test_a_holdout_keeps_persons_whole(
    fairveil: Command, clinic: Path, schema: Path, tmp_path: Path
) -> None:
    table = columns_of(clinic)
    sample = ColumnSample(table, "hired", ("sex",))
    for seed in (None, 3):
        train, held, people, others = split(sample, table["patient"], 0.3, seed)
        assert not set(train.columns["patient"]) & set(held.columns["patient"])
        assert train.size + held.size == sample.size
        assert (people == train.columns["patient"]).all()
        alone = one_of_each(held, others, seed)
        # their intervals take rows for independent draws
        assert sorted(alone.columns["patient"]) == sorted(set(others))
    for more in (("--schema", schema), ("--target", "hired", "--sensitive", "sex")):
        out = f"model-{len(more)}"
        done = fairveil(
            "fit", clinic, *more, *PARITY, *PERSONS, "--holdout", 0.3, "--seed", 1, "--out", out
        )
        assert done.code == 0, done.err
        said = json.loads((tmp_path / out / "statement.json").read_text("utf-8"))["not_covered"]
        assert any(
            "each person, with all of their rows, was set aside" in sentence for sentence in said
        )
        measured = json.loads((tmp_path / out / "report.json").read_text("utf-8"))["tables"][0][
            "overall"
        ]["rows"]
        assert 70 <= measured <= 170  # of 400 persons, with about 1,200 rows


def test_nobody_is_measured_on_who_was_fitted_to(
    fairveil: Command, clinic: Path, schema: Path, tmp_path: Path
) -> None:
    same = visits(tmp_path / "same.csv", range(390, 500), 2)
    done = fairveil(
        "fit", clinic, "--schema", schema, *PARITY, *PERSONS, "--test", same, "--out", "model"
    )
    assert done.code == 2
    assert "other persons than TABLE's" in done.err
    assert "p-" not in done.err
    assert not (tmp_path / "model").exists()
    apart = visits(tmp_path / "apart.csv", range(400, 500), 2)
    assert (
        fairveil(
            "fit", clinic, "--schema", schema, *PARITY, *PERSONS, "--test", apart, "--out", "model"
        ).code
        == 0
    )


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--unit", "patient"), "--max-rows-per-unit"),
        (("--max-rows-per-unit", 3), "--unit"),
        (("--unit", "patient", "--max-rows-per-unit", 0), "--max-rows-per-unit"),
        (("--unit", "doctor", "--max-rows-per-unit", 3), "--unit"),
        (("--unit", "sex", "--max-rows-per-unit", 3), "ignored|no other role|no sensitive"),
    ],
)
def test_what_is_wrong_leaves_nothing(
    fairveil: Command,
    clinic: Path,
    schema: Path,
    tmp_path: Path,
    options: tuple[object, ...],
    what: str,
) -> None:
    for more in (("--schema", schema), ("--target", "hired", "--sensitive", "sex")):
        done = fairveil("fit", clinic, *more, *PARITY, *options, "--out", "model")
        assert done.code == 2, done.out
        assert any(word in done.err for word in what.split("|")), done.err
        assert not (tmp_path / "model").exists()


def test_a_row_of_nobody_is_refused(fairveil: Command, schema: Path, tmp_path: Path) -> None:
    rows = [[*row, "" if at == 7 else f"p-{at // 2}"] for at, row in enumerate(applicants(60, 1))]
    table = write_csv(tmp_path / "gap.csv", rows, NAMES)
    for more in (("--schema", schema), ("--target", "hired", "--sensitive", "sex")):
        for also in ((), ("--holdout", 0.3)):
            done = fairveil("fit", table, *more, *PARITY, *PERSONS, *also, "--out", "model")
            assert done.code == 2
            assert "a person for every row" in done.err
            assert "p-" not in done.err


def test_a_ledger_of_persons(fairveil: Command, clinic: Path, schema: Path) -> None:
    made = fairveil(
        "ledger",
        "create",
        "budget.db",
        "clinic",
        "--epsilon",
        3,
        "--delta",
        1e-5,
        "--unit",
        "patient",
    )
    assert made.code == 0, made.err
    assert "persons are identified by 'patient'" in made.out
    done = fairveil(
        "fit", clinic, "--schema", schema, *PARITY, "--ledger", "budget.db", "--out", "rows"
    )
    assert done.code == 2
    assert "a guarantee for persons, by patient" in done.err
    done = fairveil(
        "fit",
        clinic,
        "--schema",
        schema,
        *PARITY,
        *PERSONS,
        "--ledger",
        "budget.db",
        "--out",
        "model",
    )
    assert done.code == 0, done.err
    assert fairveil("ledger", "check", "budget.db").code == 0
    done = fairveil(
        "ledger",
        "create",
        "other.db",
        "clinic",
        "--epsilon",
        3,
        "--delta",
        1e-5,
        "--max-rows-per-unit",
        4,
    )
    assert done.code == 2
    assert "--max-rows-per-unit" in done.err
