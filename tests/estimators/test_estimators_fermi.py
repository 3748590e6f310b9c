"""`FermiClassifier`: its guarantees by number, what it is fitted to, its knobs and files."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimator_samples import Columns
from fermi_samples import net, penalised, unfair
from scipy import sparse

import fairveil as fv
import ways
from covering import pairs
from fairveil.data import encode
from fairveil.data.synthetic import GroupedClasses
from fairveil.errors import (
    ChecksumError,
    InputError,
    NoGroups,
    PrivacyError,
    WeakDelta,
)
from fairveil.estimators.reports import GapLine, GapReport
from fairveil.statement.form import READ_FROM_DATA
from knobs import made

FEATURES = ["age", "hours", "job", "union"]
NOTIONS = ["demographic_parity", "equalized_odds", "equal_opportunity"]


def read_from_data(clf: Any) -> set[str]:
    return {fact.name for fact in clf.privacy_.facts if fact.origin == READ_FROM_DATA}


# Guarantees


def test_guarantee_1_what_was_read_from_the_data_is_listed(people: Columns) -> None:
    table = pd.DataFrame(people)
    clf = penalised().fit(table[[*FEATURES, "sex"]], table["hired"], sensitive_features="sex")
    assert read_from_data(clf) == {
        "number of features",
        "classes",
        "groups of sex",
        "categories of job",
    }
    assert "categories of job was read from the data" in clf.privacy_.summary()
    assert "seeded-noise" in clf.privacy_.stamps


def test_guarantee_2_without_a_penalty_sensitive_features_cost_nothing() -> None:
    X, y, A = unfair(400)
    clf = penalised(strength=0.0, protects="sensitive_features").fit(X, y, sensitive_features=A)
    assert clf.privacy_.epsilon == 0
    plain = fv.FairClassifier(
        protects="sensitive_features", solver=fv.PrimalDual(rounds=8, clip=0.6), random_state=0
    )
    assert np.allclose(clf.coef_, plain.fit(X, y, sensitive_features=A).coef_)
    assert clf.gap_report_.lines == ()
    assert "had no groups" in str(clf.gap_report_)


def test_guarantee_3_with_a_schema_nothing_is_read_from_the_data(
    people: Columns, schema: fv.facts.Schema
) -> None:
    clf = penalised(schema=schema).fit(pd.DataFrame(people))
    assert read_from_data(clf) == set()
    facts = {fact.name: (fact.value, fact.origin) for fact in clf.privacy_.facts}
    assert facts["number of rows"] == ("1000", "schema")
    assert facts["groups of sex"] == ("f, m", "schema")
    strange = pd.DataFrame(people).iloc[[0]].assign(age=1e9, job="priest")
    more = penalised(schema=schema).fit(pd.concat([pd.DataFrame(people), strange]))
    assert more.privacy_.facts == clf.privacy_.facts
    assert more.coding_ == clf.coding_


# Classes, groups, columns, protections

SHAPES = pairs(
    (2, 5),
    ((2,), (12,), (2, 3), (12, 2)),
    ("records", "sensitive_features"),
    (False, True),
    NOTIONS,
    ("product", "marginal"),
)


@pytest.mark.parametrize(("classes", "sizes", "protects", "network", "notion", "groups"), SHAPES)
def test_any_classes_groups_columns_protection_and_model(
    classes: int, sizes: tuple[int, ...], protects: str, network: bool, notion: str, groups: str
) -> None:
    table = GroupedClasses(classes=classes, sensitive_sizes=sizes).draw(800, 0)
    X = np.column_stack([table[f"x{j}"] for j in range(3)])
    A = {f"group{j}": table[f"group{j}"] for j in range(len(sizes))}
    model = net(3, 1 if classes == 2 else classes) if network else None
    positive = 1 if notion == "equal_opportunity" else None
    clf = penalised(
        notion, 2.0, model, groups=groups, positive=positive, protects=protects, rounds=3
    )
    clf.fit(X, table["label"], sensitive_features=A)
    marginal = len(sizes) > 1 and groups == "marginal"
    assert len(clf.groups_) == (sum(sizes) if marginal else math.prod(sizes))
    assert clf.classes_.tolist() == list(range(classes))
    assert 2.9 < clf.privacy_.epsilon <= 3.0
    assert clf.predict_proba(X).shape == (800, classes)
    assert np.allclose(clf.predict_proba(X).sum(axis=1), 1)
    assert clf.decision_function(X).shape == ((800,) if classes == 2 else (800, classes))
    assert len(clf.gap_report_.lines) == len(clf.outcome_.values) > 0
    assert hasattr(clf, "coef_") != network


def test_many_classes_need_a_positive_one_for_equal_opportunity_alone() -> None:
    X, y, A = unfair(600, classes=3)
    with pytest.raises(InputError, match="positive"):
        penalised("equal_opportunity").fit(X, y, sensitive_features=A)
    with pytest.raises(InputError, match="positive"):
        penalised("equal_opportunity", positive=7).fit(X, y, sensitive_features=A)
    words = np.array(["low", "middle", "high"])[y]
    clf = penalised("equal_opportunity", positive="high").fit(X, words, sensitive_features=A)
    assert all("label high" in line.what for line in clf.gap_report_.lines)


# What it does


@pytest.mark.parametrize("notion", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_a_stronger_penalty_narrows_the_gap(notion: str, protects: str) -> None:
    """The halves are about 0.11 and 0.05, the gaps about 0.04 and 0.03; noise is seeded."""
    X, y, A = unfair(6000)
    measure = {
        "demographic_parity": fv.demographic_parity_gap,
        "equalized_odds": fv.equalized_odds_gap,
    }[notion]

    def gap(strength: float) -> float:
        clf = ways.fermi(notion, strength, protects=protects, epsilon=8.0, random_state=1)
        clf.fit(X, y, sensitive_features=A)
        assert clf.score(X, y) > 0.6
        return float(measure(y, clf.predict(X), A))

    assert gap(20.0) < 0.5 * gap(0.0)


def test_the_report_is_what_the_model_does_within_its_noise() -> None:
    X, y, A = unfair(5000, groups=3)
    clf = ways.fermi(strength=1.0, epsilon=4.0, random_state=0).fit(X, y, sensitive_features=A)
    rates = np.array([[np.mean(clf.predict(X)[a == A] == k) for a in range(3)] for k in range(2)])
    report = clf.gap_report_
    assert len(report.lines) == 6
    for line in report.lines:
        words = line.what.replace("|", " ").replace(")", " ").split()
        k, a, b = int(words[2]), int(words[4]), int(words[-1])
        # 6 lines: 2e-8 of false alarms
        assert line.value == pytest.approx(rates[k, a] - rates[k, b], abs=6 * line.noise)
        assert 0 < line.noise < 0.1
        assert "<=" not in line.what
    assert report.largest.value == max(line.value for line in report.lines)
    assert json.loads(report.to_json()) == report.to_dict()
    assert [line["what"] for line in report.table()] == [line.what for line in report.lines]
    assert report.largest.what in str(report)


@pytest.mark.parametrize("epsilon", [3.0, math.inf])
def test_a_group_without_rows_is_taken_to_have_few(
    schema: fv.facts.Schema, people: Columns, epsilon: float
) -> None:
    women = pd.DataFrame(people).assign(sex="f")
    for notion in NOTIONS:
        clf = penalised(notion, schema=schema, epsilon=epsilon).fit(women)
        assert clf.groups_ == ("f", "m")
        assert np.isfinite(clf.coef_).all()
        assert json.loads(clf.gap_report_.to_json())["gaps"] == clf.gap_report_.table()
        # and that is told
        assert epsilon == math.inf or min(line.noise for line in clf.gap_report_.lines) > 0.3


def test_an_undefined_gap_is_told_as_such() -> None:
    lines = (GapLine("P(a) - P(b)", math.nan, 0.1), GapLine("P(b) - P(a)", 0.25, 0.1))
    report = GapReport(lines, 5, "all rounds were done")
    assert report.largest == lines[1]
    assert [line["value"] for line in json.loads(report.to_json())["gaps"]] == [None, 0.25]
    assert GapReport(lines[:1], 5, "all rounds were done").largest is None
    report = GapReport(lines[:1], 5, "all rounds were done")
    assert "no bound was required: a penalty makes gaps smaller" in str(report)
    assert (report.to_dict()["verdict"], report.to_dict()["why"][:21]) == (
        None,
        "no bound was required",
    )


def test_without_groups_nothing_is_penalised_and_that_is_said() -> None:
    X, y, _ = unfair(600)
    with pytest.warns(NoGroups, match="No penalty applies"):
        clf = penalised().fit(X, y)
    assert clf.groups_ == ()
    # and here nothing is said
    assert clf.coef_.tobytes() == penalised(strength=0.0).fit(X, y).coef_.tobytes()


def test_one_group_cannot_be_compared() -> None:
    X, y, A = unfair(600)
    with pytest.raises(InputError, match="at least two groups"):
        penalised().fit(X, y, sensitive_features=0 * A)
    penalised(strength=0.0).fit(X, y, sensitive_features=0 * A)


# Knobs


def test_knobs_go_to_the_algorithm() -> None:
    X, y, A = unfair(600)
    clf = penalised(rounds=7, sampling_rate=0.2, temperature=0.5, clip=0.5).fit(
        X, y, sensitive_features=A
    )
    assert clf.n_iter_ == 7
    assert '"poisson-sampled"' in clf.privacy_.to_json()
    one = penalised().fit(X, y, sensitive_features=A).coef_.tobytes()
    for other in (
        {"radius": 0.1},
        {"least_share": 0.5},
        {"iterate": "last"},
        {"iterate": "uniform"},
        {"clip": 0.1},
    ):
        assert penalised(**other).fit(X, y, sensitive_features=A).coef_.tobytes() != one, other
    assert penalised(iterate="average").fit(X, y, sensitive_features=A).coef_.tobytes() == one


def test_every_iterate_costs_the_same() -> None:
    X, y, A = unfair(600)
    fits = [
        penalised(iterate=i, random_state=3).fit(X, y, sensitive_features=A)
        for i in ("last", "average", "uniform")
    ]
    assert len({fit.privacy_.epsilon for fit in fits}) == 1
    assert len({fit.coef_.tobytes() for fit in fits}) == 3
    again = penalised(iterate="uniform", random_state=3).fit(X, y, sensitive_features=A)
    assert again.coef_.tobytes() == fits[2].coef_.tobytes()


WRONG: list[dict[str, Any]] = [
    {"strength": -1},
    {"strength": math.nan},
    {"strength": math.inf},
    {"strength": "2"},
    {"notion": "parity"},
    {"notion": fv.DemographicParity(0.1)},
    {"radius": 0},
    {"radius": math.inf},
    {"least_share": 0.0},
    {"least_share": 0.6},
    {"iterate": "best"},
    {"iterate": 3},
    {"rounds": 0},
    {"clip": -1.0},
    {"temperature": 0.0},
    {"sampling_rate": 2.0},
    {"learning_rate": 0.0},
    {"epsilon": 0},
    {"delta": 0.0},
    {"delta": 1.0},
    {"protects": "labels"},
    {"protects": "records:swap"},
    {"protects": "sensitive_features", "neighbours": "add-remove"},
    {"public_rows": 0},
    {"max_sample_weight": 0.0},
    {"random_state": "seed"},
    {"model": 3},
    {"iterate": "uniform", "checkpoint": "here"},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_arguments_that_make_no_sense(
    wrong: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y, A = unfair(100)
    with pytest.raises(InputError, match="|".join([*wrong, "rows: "])):
        made(ways.fermi, **{"random_state": 0, **wrong}).fit(X, y, sensitive_features=A)
    assert not list(tmp_path.iterdir())


def test_a_batch_that_would_mostly_be_empty_is_refused_where_the_number_of_rows_is_public() -> None:
    X, y, A = unfair(500)
    for options in ({"public_rows": 500}, {"neighbours": "replace-one"}):
        with pytest.raises(InputError, match="sampling_rate: expected at least 1/500"):
            penalised(sampling_rate=1e-3, **options).fit(X, y, sensitive_features=A)
    # it is private: batches are empty at times
    clf = penalised(sampling_rate=1e-3, rounds=20).fit(X, y, sensitive_features=A)
    assert np.isfinite(clf.coef_).all()
    few = penalised(sampling_rate=1 / 400, rounds=30, public_rows=500).fit(
        X, y, sensitive_features=A
    )
    assert np.isfinite(few.coef_).all()  # 1.25 rows a batch: a quarter of them are empty


def test_a_ledger_is_not_taken_silently_and_a_weak_delta_warns() -> None:
    X, y, A = unfair(500)
    with pytest.raises(PrivacyError, match="ledger"):
        penalised(ledger="budget.db").fit(X, y, sensitive_features=A)
    with pytest.warns(WeakDelta, match="1/500"):
        penalised(delta=0.01, protects="sensitive_features").fit(X, y, sensitive_features=A)


# Data in


def test_any_table_gives_one_model(people: Columns, schema: fv.facts.Schema) -> None:
    y, A = people["hired"], people["sex"]
    fits = [
        penalised().fit(table[FEATURES], y, sensitive_features=A)
        for table in (pd.DataFrame(people), pl.DataFrame(people))
    ]
    assert len({fit.coef_.tobytes() for fit in fits}) == 1
    assert fits[0].coef_names_ == ("age", "hours", "union", "job=clerk", "job=none", "job=smith")
    coded = penalised().fit(encode(people, schema))
    by_schema = penalised(schema=schema).fit(pl.DataFrame(people))
    assert coded.model_.weights.tobytes() == by_schema.model_.weights.tobytes()
    X = np.column_stack([people["age"] / 50, people["hours"] / 30])
    dense, thin = (
        penalised().fit(kind(X), y, sensitive_features=A) for kind in (np.asarray, sparse.csr_array)
    )
    assert np.allclose(dense.coef_, thin.coef_)


def test_without_privacy_a_weight_of_k_is_k_copies() -> None:
    X, y, A = unfair(300)
    k = np.arange(300) % 4
    for notion in NOTIONS:
        weighted = penalised(notion, epsilon=math.inf).fit(
            X, y, sensitive_features=A, sample_weight=k
        )
        copies = penalised(notion, epsilon=math.inf).fit(
            np.repeat(X, k, axis=0), np.repeat(y, k), sensitive_features=np.repeat(A, k)
        )
        assert np.allclose(weighted.coef_, copies.coef_, rtol=1e-7, atol=1e-9)
        assert np.allclose(weighted.outcome_.values, copies.outcome_.values)


def test_weights_are_capped_and_the_cap_multiplies_every_sensitivity() -> None:
    X, y, A = unfair(400)
    weights = np.where(np.arange(400) % 2, 1.0, 2.0)
    capped = penalised(max_sample_weight=2.0).fit(X, y, sensitive_features=A, sample_weight=weights)
    beyond = penalised(max_sample_weight=2.0).fit(
        X, y, sensitive_features=A, sample_weight=weights**5
    )
    assert capped.coef_.tobytes() == beyond.coef_.tobytes()
    ones = penalised().fit(X, y, sensitive_features=A, sample_weight=np.ones(400))
    plain = {bound.question: bound.sensitivity for bound in ones.privacy_.bounds}
    assert {bound.question: bound.sensitivity for bound in capped.privacy_.bounds} == pytest.approx(
        {name: 2.0 * size for name, size in plain.items()}
    )
    with pytest.raises(InputError, match="max_sample_weight"):
        penalised(max_sample_weight=math.inf).fit(X, y, sensitive_features=A, sample_weight=weights)


@pytest.mark.parametrize(
    ("protects", "neighbours", "network"),
    [
        ("records", None, False),
        ("records", "replace-one", True),
        ("sensitive_features", None, True),
    ],
)
def test_weights_under_every_relation(protects: str, neighbours: str | None, network: bool) -> None:
    X, y, A = unfair(800)
    clf = penalised(
        model=net() if network else None, protects=protects, neighbours=neighbours, epsilon=8.0
    )
    clf.fit(X, y, sensitive_features=A, sample_weight=np.full(800, 0.5))
    assert clf.outcome_.rows == pytest.approx(400, abs=60)
    assert not clf.privacy_.check()


def test_a_copy_of_the_sensitive_column_among_public_features_is_refused() -> None:
    X, y, A = unfair(600)
    with pytest.raises(PrivacyError, match="follows from the group"):
        penalised(protects="sensitive_features").fit(
            np.column_stack([X, A]), y, sensitive_features=A
        )


# Files


@pytest.mark.parametrize(
    "way", ["frame", "array", "schema", "coded", "unsafe", "many classes", "no groups"]
)
def test_what_is_loaded_predicts_the_same_bits(
    people: Columns, schema: fv.facts.Schema, way: str, tmp_path: Path
) -> None:
    table, y, A = pd.DataFrame(people), people["hired"], people["sex"]
    X: Any = table[FEATURES]
    if way == "schema":
        clf = penalised(schema=schema).fit(table)
    elif way == "coded":
        X = encode(people, schema)
        clf = penalised().fit(X)
    elif way == "unsafe":
        clf = penalised(unsafe_data_dependent_bounds=True).fit(X, y, sensitive_features=A)
    elif way == "many classes":
        clf = penalised("equal_opportunity", positive="north", random_state=None, groups="marginal")
        clf.fit(X, people["region"], sensitive_features=table[["sex", "union"]])
    elif way == "no groups":
        clf = penalised(strength=0.0).fit(X, y)
    else:
        X = X if way == "frame" else np.column_stack([people["age"], people["hours"]])
        clf = penalised("equalized_odds", epsilon=math.inf).fit(X, y, sensitive_features=A)
    loaded = fv.load(fv.save(clf, tmp_path / "model"))
    assert repr(loaded) == repr(clf)
    assert loaded.predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()
    assert (loaded.predict(X) == clf.predict(X)).all()
    assert loaded.coef_.tobytes() == clf.coef_.tobytes()
    assert loaded.privacy_ == clf.privacy_
    assert loaded.groups_ == clf.groups_
    assert str(loaded.gap_report_) == str(clf.gap_report_)
    assert loaded.outcome_.values.tobytes() == clf.outcome_.values.tobytes()
    assert set(vars(loaded)) == set(vars(clf))
    again = pickle.loads(pickle.dumps(clf))
    assert again.predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()


def test_damage_is_seen(tmp_path: Path) -> None:
    X, y, A = unfair(300)
    path = fv.save(penalised().fit(X, y, sensitive_features=A), tmp_path / "model")
    with pytest.raises(InputError, match=r"model: expected None"):
        fv.load(path, model=net())
    content = json.loads((path / "estimator.json").read_text())
    content["parameters"]["depth"] = 3
    (path / "estimator.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"parameters of FairClassifier, got \['depth'\]"):
        fv.load(path)
    (path / "statement.json").write_bytes(
        (path / "statement.json").read_bytes().replace(b'"epsilon": 3.0', b'"epsilon": 1.0')
    )
    with pytest.raises(ChecksumError, match=r"statement\.json"):
        fv.load(path)
