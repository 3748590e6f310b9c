"""The guarantees of `RateConstrainedClassifier`, by number, and what its statement says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimator_samples import Columns, short

import fairveil as fv
from fairveil.statement.check import READ_FROM_DATA

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


def test_guarantee_1_two_tables_with_the_same_public_facts_differ_by_answers_alone(
    people: Columns,
) -> None:
    """With rounds of noise far above the signal two neighbouring tables give almost, but never
    exactly, one model."""
    table = pd.DataFrame(people)
    one = short(PARITY, epsilon=1e-3, public_rows=800).fit(
        table[FEATURES], table["hired"], sensitive_features=table["sex"]
    )
    other = short(PARITY, epsilon=1e-3, public_rows=800).fit(
        table[FEATURES][1:], table["hired"][1:], sensitive_features=table["sex"][1:]
    )
    assert np.allclose(one.coef_, other.coef_, atol=0.05 * np.abs(one.coef_).max())
    assert one.privacy_.facts == other.privacy_.facts
    assert one.privacy_.events == other.privacy_.events
    assert one.privacy_.bounds == other.privacy_.bounds


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
@pytest.mark.parametrize("neighbours", [None, "replace-one"])
@pytest.mark.parametrize("notion", [None, PARITY], ids=["none", "parity"])
def test_guarantee_2_the_statement_is_the_price_of_the_plan(
    people: Columns, protects: str, neighbours: str | None, notion: Any
) -> None:
    table = pd.DataFrame(people)
    clf = short(
        notion, protects=protects, neighbours=neighbours, epsilon=1.0, random_state=None
    ).fit(table[FEATURES], table["hired"], sensitive_features=table["sex"])
    statement = clf.privacy_
    free = notion is None and protects == "sensitive_features"
    assert statement.epsilon == 0 if free else 0.95 < statement.epsilon <= 1.0
    assert statement.delta == 1e-6
    assert statement.promise == fv.Promise(1.0, 1e-6, protects, neighbours)
    assert statement.plan == statement.events
    assert not statement.check()
    assert statement.stamps == ()
    if not free:
        assert fv.privacy.epsilon(statement.events, 1e-6, statement.neighbours) == pytest.approx(
            statement.epsilon
        )


def test_guarantee_2_without_privacy_it_says_so(people: Columns) -> None:
    X = people["hours"][:, np.newaxis] / 30
    clf = short(epsilon=math.inf).fit(X, people["hired"])
    assert not clf.privacy_.is_private
    assert "not-private" in clf.privacy_.stamps
    assert '"inf"' in clf.privacy_.to_json()


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


def test_guarantee_4_a_fit_that_fails_or_is_interrupted_changes_nothing(
    people: Columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = pd.DataFrame(people)[FEATURES]
    clf = short().fit(X, people["hired"])
    before = dict(vars(clf))
    with pytest.raises(fv.errors.InputError):
        clf.fit(X, people["age"] / 7)
    from fairveil.curator import Curator

    answered = []
    answer = Curator.answer

    def broken_off(self: Curator, *args: Any, **options: Any) -> Any:
        answered.append(self)
        if len(answered) > 5:
            raise KeyboardInterrupt
        return answer(self, *args, **options)

    monkeypatch.setattr(Curator, "answer", broken_off)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X * 1, people["hired"])
    assert len(answered) > 5
    assert vars(clf) == before


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
    assert ("number of rows", "1000", "argument") in {
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
