"""`fairveil fit`: options, `--set`, `fit.toml`, held-out rows, persons, searches, and what is printed
of the result."""

from __future__ import annotations

import csv
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from people_who_do_not_exist import HEADER, Command, Done, applicants, write_csv

import fairveil as fv
from fairveil.cli.tables import set_aside
from fairveil.facts import Schema
from fairveil.metrics import group_table
from fairveil.privacy import Unit

PARITY = ("--constraint", "demographic_parity:0.1")


def statement_of(folder: Path) -> fv.PrivacyStatement:
    return fv.PrivacyStatement.from_json((folder / "statement.json").read_text("utf-8"))


def ok(done: Done) -> Done:
    assert done.code == 0, done.err
    return done


# what is asked reaches the estimator


ASKED: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "primal-dual": (
        (*PARITY, "--set", "rounds=7", "--set", "clip=1.5", "--set", "randomised=false"),
        {"solver__rounds": 7, "solver__clip": 1.5, "solver__randomised": False},
    ),
    "post-processing": (
        (*PARITY, "--set", "group_aware=false", "--set", "predict_method=predict"),
        {"solver__group_aware": False, "solver__predict_method": "predict"},
    ),
    "oracle-game": ((*PARITY, "--set", "rounds=5"), {"solver__rounds": 5}),
    "group-objective": (
        ("--objective", "gmean", "--constraint", "gmean:0.4", "--set", "rounds=5"),
        {"objective": "gmean", "solver__rounds": 5},
    ),
    "fermi": (
        ("--constraint", "equalized_odds", "--set", "strength=2", "--set", "rounds=5"),
        {"constraints": "equalized_odds", "solver__strength": 2, "solver__rounds": 5},
    ),
    "tailored": (
        ("--set", "max_epsilon={female = 1.6}", "--set", "spend=person", "--set", "rounds=5"),
        {"solver__max_epsilon": {"female": 1.6}, "solver__rounds": 5},
    ),
}


@pytest.mark.parametrize("method", ASKED)
def test_every_method_takes_its_parameters_and_writes_a_model(
    method: str, fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    words, known = ASKED[method]
    promise = ("--epsilon", 2, "--delta", "1e-7", "--protects", "records")
    where = ("--schema", schema, "--holdout", 0.2, "--seed", 1)
    done = ok(fairveil("fit", table, "--method", method, *words, *promise, *where, "--out", "m"))
    model = fv.load(tmp_path / "m")
    given = model.get_params()
    assert {name: given[name] for name in known} == known
    statement = statement_of(tmp_path / "m")
    assert statement.promise == fv.Promise(2.0, 1e-7)
    assert statement.check() == []
    facts = {one.name: (one.value, one.origin) for one in statement.facts}
    rows = facts.get("number of rows", ("3200", "schema x (1 - holdout)"))
    assert rows == ("3200", "schema x (1 - holdout)")
    assert {one.name for one in (tmp_path / "m").iterdir()} >= {
        "model.json",
        "estimator.json",
        "statement.json",
        "report.html",
        "report.json",
    }
    heads = [line[:12].strip() for line in done.out.splitlines()]
    assert [head for head in heads if head not in ("warning", "")] == [
        "fairness",
        "privacy",
        "error",
        "written",
    ]
    ok(fairveil("predict", "m", table, "--seed", 1, "--out", "decided.csv"))


def test_an_additive_model_with_interactions(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    more = ("--set", 'interactions=[["age", "score"]]', "--set", "bins=4")
    for out, method in (("m", "primal-dual"), ("after", "post-processing")):
        words = ("--method", method, "--model", "additive", *more, *PARITY, "--seed", 1)
        ok(fairveil("fit", table, "--schema", schema, *words, "--out", out))
    found = fv.load(tmp_path / "m").model
    assert found == fv.Additive(bins=4, interactions=(("age", "score"),))
    assert fv.load(tmp_path / "after").estimator.model == found


def test_a_file_of_options_is_the_same_fit_and_words_override_it(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    (tmp_path / "fit.toml").write_text(
        f'table = "{table}"\nschema = "{schema}"\nconstraint = ["demographic_parity:0.1"]\n'
        'epsilon = 1\nseed = 3\nout = "one"\n[set]\nrounds = 9\nclip = 2.0\n'
    )
    ok(fairveil("fit", "fit.toml"))
    plain = ("--schema", schema, *PARITY, "--set", "rounds=9", "--set", "clip=2.0", "--seed", 3)
    ok(fairveil("fit", table, *plain, "--out", "two"))
    models = [fv.load(tmp_path / name) for name in ("one", "two")]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    ok(
        fairveil(
            "fit", "fit.toml", "--epsilon", 2, "--constraint", "equalized_odds:0.2", "--out", "3"
        )
    )
    third = fv.load(tmp_path / "3")
    assert third.privacy_.promise.epsilon == 2.0
    assert [type(one).__name__ for one in third.constraints] == ["EqualizedOdds"]
    for text, words in (
        ("epsilon = [", "expected TOML"),
        ("epsilom = 1", "Did you mean epsilon?"),
        ('epsilon = "x"', "--epsilon: expected a number"),
        ("[set]\nround = 1", "Did you mean rounds?"),
    ):
        (tmp_path / "bad.toml").write_text(f'table = "{table}"\nout = "bad"\n{text}\n')
        done = fairveil("fit", "bad.toml", "--schema", schema)
        assert (done.code, words in done.err) == (2, True), done.err
    assert fairveil("fit", "nowhere.toml").code == 2
    assert not (tmp_path / "bad").exists()


def test_a_fit_certifies_with_one_option(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    words = ("--confidence", 0.9, "--epsilon", 8, "--set", "share=0.4")
    loose = ("--constraint", "demographic_parity:60%")
    done = ok(fairveil("fit", table, "--schema", schema, *loose, *words, "--seed", 1, "--out", "m"))
    assert re.search(r" certified: The people set aside \([\d,]+, as released\)", done.out)
    assert "in the population, with 90% confidence" in done.out
    assert json.loads((tmp_path / "m" / "certificate.json").read_text())
    assert fv.load(tmp_path / "m").certify == fv.SetAside(share=0.4)
    certify = ("--method", "fermi", "--certify", "demographic_parity:90%", "--epsilon", 8)
    done = ok(fairveil("fit", table, "--schema", schema, *certify, "--seed", 1, "--out", "n"))
    assert "with 95% confidence" in done.out


def test_a_search_is_one_fit_with_a_grid(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    grid = ("--grid", "clip=0.5,2", "--grid", "rounds=5,9", "--set", "way=all")
    words = (*PARITY, *grid, "--scoring", "lagrangian", "--set", "holdout=0.3", "--seed", 1)
    done = ok(fairveil("fit", table, "--schema", schema, *words, "--epsilon", 3, "--out", "m"))
    assert done.out.count("with noise: ") == 4
    assert re.search(r"best +clip=[\d.]+, rounds=\d", done.out)
    assert statement_of(tmp_path / "m").epsilon <= 3.0
    best = fv.load(tmp_path / "m")
    assert best.solver.clip in (0.5, 2)
    assert best.solver.rounds in (5, 9)


# rows to measure on


def test_without_held_out_rows_a_fit_says_how_to_have_them(
    fairveil: Command, table: Path, schema: Path
) -> None:
    done = ok(fairveil("fit", table, "--schema", schema, "--seed", 3, "--out", "m"))
    assert "nothing was required; --constraint" in done.out
    assert "INSECURE" in done.out


def test_held_out_rows_are_measured_exactly(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    """The error on the page is that of the very rows that coins set aside."""
    words = (*PARITY, "--holdout", 0.3, "--seed", 2, "--out", "m")
    done = ok(fairveil("fit", table, "--schema", schema, *words))
    twin = json.loads((tmp_path / "m" / "report.json").read_text())
    ok(fairveil("predict", "m", table, "--keep", "sex", "--keep", "hired", "--out", "d.csv"))
    with open(tmp_path / "d.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    apart = set_aside(len(rows), 0.3, 2)
    columns = {name: np.array([row[name] for row in rows])[apart] for name in rows[0]}
    truth = group_table(columns["hired"], columns["prediction"], {"sex": columns["sex"]})
    (found,) = twin["tables"]
    value = truth.overall.rates["error"].value
    assert found["overall"]["rates"]["error"]["value"] == pytest.approx(value)
    assert f"Of {apart.sum():,} held-out people, {100 * value:.1f}%" in done.out
    said = statement_of(tmp_path / "m").not_covered
    assert sum(one.startswith("rows held out: ") for one in said) == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "by a secret coin of its own that reads no data and hangs on no other row"),
        (("--seed", 5), "the seed and its place in the table decide"),
        (
            ("--seed", 5, "--protects", "records:replace-one"),
            "the seed and its place in the table decide",
        ),
    ],
)
def test_the_statement_says_how_rows_were_set_aside(
    more: tuple[Any, ...],
    said: str,
    fairveil: Command,
    others: Path,
    schema: Path,
    tmp_path: Path,
) -> None:
    ok(
        fairveil(
            "fit",
            others,
            "--schema",
            schema,
            "--epsilon",
            20,
            "--holdout",
            0.3,
            *more,
            "--out",
            "m",
        )
    )
    statement = statement_of(tmp_path / "m")
    (found,) = (one for one in statement.not_covered if one.startswith("rows held out"))
    assert said in found
    moves = "a row more or less moves the coins of those after it" in found
    assert moves == (more == ("--seed", 5))
    assert ("seeded-noise" in statement.stamps) == bool(more)


def test_sentences_of_the_caller_stand_in_the_statement(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    said = ("--tuning", "clip from a paper", "--earlier-releases", "counts of 2024")
    ok(fairveil("fit", table, "--schema", schema, *said, "--seed", 1, "--out", "m"))
    statement = statement_of(tmp_path / "m")
    assert (statement.tuning, statement.earlier_releases) == said[1::2]


# persons


def visits(path: Path, people: range, seed: int) -> Path:
    """Rows of persons, 1 to 5 each, in no order."""
    draw = np.random.default_rng(seed)
    whose = draw.permutation(np.repeat(list(people), draw.integers(1, 6, len(people))))
    rows = zip(applicants(len(whose), seed), whose, strict=True)
    return write_csv(path, [[*row, f"p-{i}"] for row, i in rows], [*HEADER, "patient"])


def test_persons_are_whole_in_every_part(fairveil: Command, schema: Path, tmp_path: Path) -> None:
    clinic = visits(tmp_path / "clinic.csv", range(300), 1)
    Schema.load(schema).with_unit("patient", 3).save(tmp_path / "persons.toml")
    words = ("--schema", "persons.toml", *PARITY, "--holdout", 0.3, "--epsilon", 5)
    done = ok(fairveil("fit", clinic, *words, "--out", "m"))
    statement = statement_of(tmp_path / "m")
    assert statement.promise.unit == Unit("patient", 3)
    (said,) = (one for one in statement.not_covered if one.startswith("rows held out"))
    assert "each person, with all of their rows" in said
    assert "one row of each of these persons was measured" in said
    measured = int(re.search(r"Of ([\d,]+) held-out people", done.out)[1].replace(",", ""))  # type: ignore[index]
    assert 40 < measured < 140  # of 300 persons, one row each
    assert not any(b"p-17" in file.read_bytes() for file in (tmp_path / "m").iterdir())
    Schema.load(schema).with_unit("doctor", 3).save(tmp_path / "others.toml")
    assert fairveil("fit", clinic, "--schema", "others.toml", *PARITY, "--out", "o").code == 2
    assert not (tmp_path / "o").exists()


def test_a_fit_of_persons_is_the_librarys(fairveil: Command, schema: Path, tmp_path: Path) -> None:
    clinic = visits(tmp_path / "clinic.csv", range(200), 1)
    Schema.load(schema).with_unit("patient", 2).save(tmp_path / "persons.toml")
    words = ("--schema", "persons.toml", *PARITY, "--seed", 0, "--out", "m")
    ok(fairveil("fit", clinic, *words))
    with open(clinic, newline="") as file:
        rows = list(csv.DictReader(file))
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    for name in ("age", "score"):
        table[name] = table[name].astype(float)
    known = Schema.load(tmp_path / "persons.toml")
    clf = fv.FairClassifier("demographic_parity:0.1", schema=known, random_state=0)
    np.testing.assert_array_equal(fv.load(tmp_path / "m").coef_, clf.fit(table).coef_)


# what is printed


def test_what_is_printed_is_what_the_page_says(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    words = (*PARITY, "--holdout", 0.25, "--seed", 3, "--out", "m")
    done = ok(fairveil("fit", table, "--schema", schema, *words))
    page = (tmp_path / "m" / "report.html").read_text()
    for line in done.out.splitlines():
        label, said = line[:12].strip(), line[12:]
        if label in ("fairness", "privacy", "error"):
            assert html.escape(said.partition(": ")[2][:60], quote=False)[:50] in page, line


def test_a_model_that_is_one_answer_for_everybody_says_so_before_its_verdict(
    fairveil: Command, tmp_path: Path
) -> None:
    """Nearly nobody is paid, and the noise is large: the model says "no" to everybody."""
    rng = np.random.default_rng(1)
    rows = [
        [v, "fm"[at % 2], "yes" if v > 98 else "no"]
        for at, v in enumerate(rng.uniform(0, 100, 8000))
    ]
    table = write_csv(tmp_path / "t.csv", rows, ["income", "sex", "paid"])
    init = ("schema", "init", table, "--target", "paid", "--sensitive", "sex", "--public")
    ok(fairveil(*init, "--out", "t.toml"))
    asked = ("--schema", "t.toml", *PARITY, "--seed", 0, "--out", "m")
    done = ok(fairveil("fit", table, *asked, "--epsilon", 0.01))
    line = next(line for line in done.out.splitlines() if line.startswith("fairness"))
    assert not line[12:].startswith("met"), line
    assert "constant" in line, line


@pytest.mark.parametrize("refused", [("--holdout", 0), ("--holdout", 1)])
def test_numbers_at_the_edge(
    refused: tuple[Any, ...], fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    done = fairveil("fit", table, "--schema", schema, *refused, "--seed", 1, "--out", "m")
    assert (done.code == 0) == (tmp_path / "m").exists()
    assert done.code in (0, 2)


def test_a_bound_that_is_no_notion_is_a_figure_of_the_page(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    words = ("--method", "group-objective", "--constraint", "gmean:0.9", "--seed", 1)
    done = ok(fairveil("fit", table, "--schema", schema, *words, "--out", "m"))
    assert "gmean" in done.out.lower() or "G-mean" in done.out
    loss = ("--method", "tailored", "--constraint", "largest_group_loss:2.0", "--seed", 1)
    done = ok(fairveil("fit", table, "--schema", schema, *loss, "--out", "n"))
    assert done.out.count("fairness") == 1
    assert "met" in done.out
