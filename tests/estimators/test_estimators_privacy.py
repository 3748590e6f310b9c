"""The guarantees of `FairClassifier`, by number, and what its statement says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimator_samples import Columns, short

import fairveil as fv
from fairveil.statement.form import READ_FROM_DATA

FEATURES = ["age", "hours", "job", "union"]
PARITY = fv.DemographicParity(0.9)


def read_from_data(clf: Any) -> set[str]:
    return {fact.name for fact in clf.privacy_.facts if fact.origin == READ_FROM_DATA}


def test_guarantee_1_what_was_read_from_the_data_is_listed(people: Columns) -> None:
    table = pd.DataFrame(people)
    clf = short(PARITY).fit(table[[*FEATURES, "sex"]], table["hired"], sensitive_features="sex")
    assert read_from_data(clf) == {
        "number of features",
        "classes",
        "groups of sex",
        "categories of job",
    }
    summary = clf.privacy_.summary()
    for words in (
        "classes was read from the data",
        "categories of job was read from the data",
        "clerk, none, smith",
    ):
        assert words in summary
    assert "INSECURE" in summary
    assert "seeded-noise" in clf.privacy_.stamps


def test_guarantee_3_with_a_schema_nothing_is_read_from_the_data(
    people: Columns, schema: fv.facts.Schema
) -> None:
    clf = short(PARITY, schema=schema).fit(pd.DataFrame(people))
    assert read_from_data(clf) == set()
    facts = {fact.name: (fact.value, fact.origin) for fact in clf.privacy_.facts}
    assert facts["number of rows"] == ("1000", "schema")
    assert facts["classes"] == ("no, yes", "schema")
    assert facts["groups of sex"] == ("f, m", "schema")
    stated = short(PARITY, schema=schema, public_rows=900).fit(pd.DataFrame(people))
    assert [fact.value for fact in stated.privacy_.facts if fact.name == "number of rows"] == [
        "900"
    ]
    assert stated.outcome_.rows == 900
    # One row more or less, with values beyond all bounds, changes no public fact.
    strange = pd.DataFrame(people).iloc[[0]].assign(age=1e9, job="priest")
    more = short(PARITY, schema=schema).fit(pd.concat([pd.DataFrame(people), strange]))
    assert more.privacy_.facts == clf.privacy_.facts
    assert more.coding_ == clf.coding_


def test_under_add_remove_the_number_of_rows_is_released_unless_it_is_stated(
    people: Columns,
) -> None:
    X = people["hours"][:, np.newaxis] / 30
    bought = short().fit(X, people["hired"])
    assert bought.outcome_.rows != 800
    assert bought.outcome_.rows == pytest.approx(800, abs=150)
    assert "number of rows" not in {fact.name for fact in bought.privacy_.facts}
    stated = short(public_rows=1000).fit(X, people["hired"])
    assert stated.outcome_.rows == 1000
    assert ("number of rows", "1000", "schema") in {
        (f.name, f.value, f.origin) for f in stated.privacy_.facts
    }
    assert short(neighbours="replace-one").fit(X, people["hired"]).outcome_.rows == 800


def test_secure_fits_differ_and_seeded_ones_repeat(people: Columns) -> None:
    X = people["hours"][:, np.newaxis] / 30
    secure = [short(random_state=None).fit(X, people["hired"]).coef_.tobytes() for _ in range(2)]
    assert secure[0] != secure[1]
    for seed in (7, np.int64(7)):
        assert (
            short(random_state=seed).fit(X, people["hired"]).coef_
            == short(random_state=7).fit(X, people["hired"]).coef_
        )
    for make in (np.random.RandomState, np.random.default_rng):
        one, other = (short(random_state=make(3)).fit(X, people["hired"]) for _ in range(2))
        assert one.coef_.tobytes() == other.coef_.tobytes()
        assert "seeded-noise" in one.privacy_.stamps


def test_only_sensitive_features_are_protected_without_groups_too(people: Columns) -> None:
    X = people["hours"][:, np.newaxis] / 30
    clf = short(protects="sensitive_features").fit(X, people["hired"])
    assert clf.privacy_.epsilon == 0
    assert clf.score(X, people["hired"]) > 0.6
