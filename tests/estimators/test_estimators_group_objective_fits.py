"""`GroupObjectiveClassifier`: every objective and constraint, predictions, kinds of data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from estimator_samples import Columns
from group_objective_samples import (
    GROUPS,
    METHODS,
    ODDS,
    ROWS,
    SEX,
    X,
    Y,
    fair,
    largest,
    quietly,
    sample,
    verified,
)

import fairveil as fv
from fairveil.errors import FairveilError
from fairveil.estimators.reading import Coded as Source
from fairveil.facts import RowBlock, RowLayout
from fairveil.fairness import objectives as ob

INF = math.inf
RELATIONS: Any = pytest.mark.parametrize(
    "relation", [GROUPS, {}, {"neighbours": "replace-one"}], ids=["groups", "add", "replace"]
)
RULES = np.random.default_rng(0).normal(size=(20, 4))

# ---- objectives and constraints
# -------------------------------------------------------------------------------------------

OBJECTIVES = [
    "gmean",
    "hmean",
    "largest_group_loss",
    "false_negative_rate",
    "false_positive_rate",
    "demographic_parity",
    "equalized_odds",
    "equal_opportunity",
    "false_positive_rate_parity",
    "error_rate_parity",
    ob.WeightedError({(1, 0): 5.0}, {0: 2.0}),
    ob.Gap("equalized_odds", 30.0),
    largest(),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_is_minimized(objective: Any, method: str) -> None:
    """And it is what it is said to be: within five deviations of the rows' own value (false alarm
    1e-6)."""
    clf = fair(objective, None, method, epsilon=20.0, **GROUPS)
    quietly(clf, X, Y, sensitive_features=SEX)
    law = clf.predict_proba(X)
    exact, by_chance = (_value(objective, one) for one in (law, np.full_like(law, 0.5)))
    noise = clf.outcome_.objective_noise
    assert clf.objective_ == pytest.approx(exact, abs=5 * noise + 0.01)
    # no gap is as small as that of chance
    assert exact < by_chance + (0.05 if by_chance < 0.1 else 0.0)
    assert clf.constraint_report_.lines == ()
    verified(clf, 20.0)


def _value(objective: Any, law: Any) -> float:
    """Of the training rows, exactly."""
    losses = (
        np.array([[law[(a == SEX) & (y == Y)].sum(axis=0) for y in (0, 1)] for a in (0, 1)]) / ROWS
    )
    cells = fv.facts.Cells(((0, 1),))
    return float(
        ob.parse_objective(objective).at(ob.Frame(cells, (0, 1), losses.sum(axis=-1))).value(losses)
    )


CONSTRAINTS = [
    "equalized_odds:0.05",
    "gmean:0.25",
    "false_positive_rate:0.1",
    fv.EqualOpportunity(0.05),
    fv.FalseNegativeRate(0.15, "each"),
    fv.BoundedGroupLoss(0.3),
    ob.Gini().at_most(0.05),
    ob.Gap("equalized_odds", 50.0).at_most(0.08),
    ob.GMean().at_least(0.7),
    ["demographic_parity:0.1", "false_negative_rate:0.4"],
    largest().at_most(0.3),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_without_privacy_constraints_are_met(constraint: Any, method: str) -> None:
    """Within 0.02, and the error is no better where something is asked. A single decision out of a
    list is allowed 0.05."""
    rounds = {} if method == "exponential" else {"rounds": 300}
    more = {"decisions": "directions"} if method == "exponential" else {}
    clf = fair("error", constraint, method, epsilon=INF, **rounds, **more)
    quietly(clf, X, Y, sensitive_features=SEX)
    for line in clf.constraint_report_.lines:
        assert line.value <= line.bound + (0.05 if method == "exponential" else 0.02)
        assert line.noise == 0.0
    free = quietly(fair("error", None, method, epsilon=INF, **rounds, **more), X, Y)
    # one decision, of a surrogate where rules are linear, against a mixture
    assert free.score(X, Y) >= clf.score(X, Y) - 0.01
    assert clf.objective_ == pytest.approx(1.0 - clf.score(X, Y), abs=1e-9)
    assert clf.privacy_.epsilon == INF
    assert "not-private" in clf.privacy_.stamps


def test_parity_costs_errors() -> None:
    """Of a mixture, privately: the gap on the rows themselves, against none asked for."""
    gaps = []
    for constraint in (None, "equalized_odds:0.02"):
        clf = quietly(
            fair("error", constraint, epsilon=8.0, rounds=40, **GROUPS),
            X,
            Y,
            sensitive_features=SEX,
        )
        gaps.append(fv.equalized_odds_gap(Y, clf.predict_proba(X), SEX, classes=[0, 1]))
    assert gaps[0] > 0.1
    assert gaps[1] < 0.5 * gaps[0]


def test_what_is_certain_of_a_choice_holds() -> None:
    """40 seeds at confidence 0.9, against brute force: more than 11 broken ones have a chance below
    5e-4."""
    broken = 0
    x = np.clip(X / 3, -1, 1)
    exact = quietly(
        fair("error", None, "exponential", epsilon=INF, unsafe_data_dependent_bounds=False), x, Y
    )
    best = 1.0 - exact.score(x, Y)
    for seed in range(40):
        options = {
            "public_rows": ROWS,
            "unsafe_data_dependent_bounds": False,
            "epsilon": 0.5,
            "random_state": seed,
        }
        clf = fair("error", None, "exponential", **options).fit(x, Y)
        assert clf.certain_.confidence == 0.9
        assert clf.certain_.g == 0.0
        broken += (1.0 - clf.score(x, Y)) > best + clf.certain_.f
    assert broken <= 11


# ---- predictions
# --------------------------------------------------------------------------------------------------


def test_predictions_follow_the_exact_mixture() -> None:
    """60 seeds x 1,500 rows: each row's frequency within five deviations of its distribution (false
    alarm: 1e-3)."""
    clf = quietly(fair(**GROUPS), X, Y, sensitive_features=SEX)
    law = clf.predict_proba(X)
    by_hand = np.zeros_like(law)
    for model, share in zip(
        clf.model_.models, clf.outcome_.weights / clf.outcome_.weights.sum(), strict=True
    ):
        (block,) = clf.coding_.blocks(X)
        by_hand += share * model.decision_proba(block)
    assert np.allclose(law, by_hand)
    assert ((law > 0) & (law < 1)).any()
    assert (clf.predict(X, random_state=3) == clf.predict(X, random_state=3)).all()
    assert (clf.predict(X, random_state=3) != clf.predict(X, random_state=4)).any()
    drawn = np.mean([clf.predict(X, random_state=seed) for seed in range(60)], axis=0)
    size = np.sqrt(np.maximum(law[:, 1] * law[:, 0], 1e-12) / 60)
    assert (np.abs(drawn - law[:, 1]) <= 5 * size + 1e-9).all()
    assert clf.score(X, Y) == pytest.approx(law[np.arange(ROWS), Y].mean())
    w = np.random.default_rng(0).uniform(size=ROWS)
    assert clf.score(X, Y, w) == pytest.approx(np.average(law[np.arange(ROWS), Y], weights=w))
    assert clf.score(X, np.full(ROWS, 7)) == 0.0  # a label that nobody is given


def test_a_choice_decides_without_chance() -> None:
    clf = quietly(fair(method="exponential"), X, Y, sensitive_features=SEX)
    assert set(clf.predict_proba(X).ravel().tolist()) <= {0.0, 1.0}
    assert (clf.predict(X) == clf.predict(X, random_state=1)).all()


def test_without_chance_the_majority_of_rules_decides() -> None:
    clf = quietly(fair(**GROUPS), X, Y, sensitive_features=SEX)
    law, before = clf.predict_proba(X), clf.constraint_report_.table()
    one = clf.derandomise()
    assert (one.predict(X) == one.predict(X, random_state=1)).all()
    assert (one.predict(X) == clf.classes_[law.argmax(axis=1)]).mean() > 0.999
    assert not one.model_.is_randomised
    assert all(line.verdict == "inconclusive" for line in one.constraint_report_.lines)
    assert math.isnan(one.objective_)
    assert one.certain_ is None
    assert one.derandomise() is one
    assert clf.constraint_report_.table() == before
    assert (clf.predict_proba(X) == law).all()


# ---- data
# --------------------------------------------------------------------------------------------------


def test_any_container_gives_the_same_model(people: Columns) -> None:
    frame = pd.DataFrame(people)
    features, y, sex = frame[["age", "hours"]], frame["hired"], frame["sex"]
    ways = [
        (features, y, sex),
        (
            pl.DataFrame(people)[["age", "hours"]],
            pl.Series(people["hired"]),
            pl.Series(people["sex"]),
        ),
        (
            pa.table({"age": people["age"], "hours": people["hours"]}),
            pa.array(people["hired"]),
            pa.array(people["sex"]),
        ),
        ({"age": people["age"], "hours": people["hours"]}, people["hired"], {"sex": people["sex"]}),
        (frame[["age", "hours", "sex"]], people["hired"], "sex"),
        (features.to_numpy(float), people["hired"], people["sex"]),
    ]
    for method in METHODS:
        laws = []
        for features, labels, groups in ways:
            clf = quietly(
                fair("gmean", ODDS, method, **GROUPS), features, labels, sensitive_features=groups
            )
            laws.append(clf.predict_proba(features))
            assert clf.classes_.tolist() == ["no", "yes"]
            assert clf.groups_ == ("f", "m")
        assert all(np.array_equal(laws[0], law) for law in laws)


@pytest.mark.parametrize("values", [["no", "yes"], [False, True], [3, 8], [-1.0, 1.0]])
def test_labels_of_any_kind(values: Any) -> None:
    y = np.array(values)[Y]
    clf = quietly(fair(**GROUPS), X, y, sensitive_features=SEX)
    assert clf.classes_.tolist() == values
    assert set(clf.predict(X, random_state=0).tolist()) <= set(values)
    plain = quietly(fair(**GROUPS), X, Y, sensitive_features=SEX)
    assert (clf.predict_proba(X) == plain.predict_proba(X)).all()
    assert clf.score(X, y) == plain.score(X, Y)


def test_a_schema_leaves_nothing_to_read_from_the_data(
    people: Columns, schema: fv.facts.Schema
) -> None:
    frame = pd.DataFrame(people)
    options = {"schema": schema, "unsafe_data_dependent_bounds": False}
    for method in METHODS:
        clf = quietly(fair("gmean", ODDS, method, **options), frame)
        assert not [fact for fact in clf.privacy_.facts if "read from the data" in fact.origin]
        assert clf.privacy_.not_covered == ()
        assert clf.outcome_.rows == 1000
        assert clf.predict_proba(frame).shape == (800, 2)
        verified(clf)
    half = quietly(fair("gmean", ODDS, method, **options), frame[frame["job"] != "smith"])
    assert half.coding_.layout == clf.coding_.layout


def test_coded_rows_are_their_own_labels_and_groups() -> None:
    layout = RowLayout(3, (), (0, 1), ((0, 1),), ("sex",))
    scaled = np.clip(X / 4, -1, 1)
    blocks = [
        RowBlock(
            np.ascontiguousarray(part.T),
            np.empty((0, len(part)), np.uint8),
            y.astype(np.int32),
            a[None].astype(np.uint16),
        )
        for part, y, a in zip(np.split(scaled, 3), np.split(Y, 3), np.split(SEX, 3), strict=True)
    ]
    options = {"unsafe_data_dependent_bounds": False}
    for method in METHODS:
        clf = quietly(fair("gmean", ODDS, method, **options), Source(layout, tuple(blocks)))
        again = quietly(
            fair("gmean", ODDS, method, **options), scaled, Y, sensitive_features={"sex": SEX}
        )
        assert (
            clf.predict_proba(Source(layout, tuple(blocks))) == again.predict_proba(scaled)
        ).all()
        assert clf.score(Source(layout, tuple(blocks))) == pytest.approx(again.score(scaled, Y))


def test_everyone_may_be_one_group() -> None:
    """Without sensitive features, what compares nobody is optimised all the same."""
    for method in METHODS:
        clf = quietly(fair("gmean", "false_positive_rate:0.3", method), X, Y)
        assert (clf.groups_, clf.cells_) == ((), None)
        assert len(clf.constraint_report_.lines) == 1
        verified(clf)


@pytest.mark.parametrize("method", METHODS)
def test_without_privacy_integer_weights_are_copies(method: str) -> None:
    few, y, a = X[:300], Y[:300], SEX[:300]
    w = np.random.default_rng(0).integers(1, 4, size=300)
    at = np.arange(300).repeat(w)
    clf = fair("gmean", ODDS, method, epsilon=INF, unsafe_data_dependent_bounds=False)
    weighted = quietly(clf, few, y, sensitive_features=a, sample_weight=w)
    found = weighted.outcome_, weighted.predict_proba(few)
    copies = quietly(clf, few[at], y[at], sensitive_features=a[at])
    assert np.array_equal(found[0].counts, copies.outcome_.counts)
    np.testing.assert_allclose(found[1], copies.predict_proba(few), atol=1e-6)
    np.testing.assert_allclose(found[0].losses, copies.outcome_.losses, atol=1e-9)
    plain = quietly(clf, few, y, sensitive_features=a)
    assert not np.array_equal(plain.outcome_.counts, found[0].counts)
    assert found[0].objective != plain.objective_


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
@pytest.mark.parametrize("method", METHODS)
def test_private_weights_are_capped_and_counted(method: str, protects: str) -> None:
    w = np.random.default_rng(0).uniform(0.2, 1.0, size=ROWS)
    clf = quietly(
        fair("error", ODDS, method, protects=protects),
        X,
        Y,
        sensitive_features=SEX,
        sample_weight=w,
    )
    verified(clf)
    assert clf.outcome_.counts.sum() == pytest.approx(w.sum(), rel=0.08)
    heavy = quietly(
        fair("error", ODDS, method, protects=protects),
        X,
        Y,
        sensitive_features=SEX,
        sample_weight=20 * w,
    )
    assert heavy.outcome_.counts.sum() == pytest.approx(ROWS, rel=0.08)  # each at most 1
    with pytest.raises(FairveilError, match="max_sample_weight"):
        fair("error", ODDS, method, protects=protects, max_sample_weight=INF).fit(
            X, Y, sensitive_features=SEX, sample_weight=w
        )


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
@pytest.mark.parametrize("method", METHODS)
def test_empty_and_tiny_cells(method: str, protects: str) -> None:
    """A group of one label, and a group of one row: fitted; rates that noise hides are undefined,
    all others finite."""
    a = np.where(np.arange(ROWS) == 7, 2, SEX)
    y = np.where(a == 1, 1, Y)
    for objective in ("gmean", "largest_group_loss"):
        clf = quietly(fair(objective, ODDS, method, protects=protects), X, y, sensitive_features=a)
        assert np.isfinite(clf.predict_proba(X)).all()
        defined = np.isfinite(clf.outcome_.values)
        assert 2 <= defined.sum() < len(defined)
        lines = clf.constraint_report_.lines
        assert [math.isnan(line.value) for line in lines] == (~defined).tolist()
        assert all(line.verdict == "inconclusive" for line in lines if math.isnan(line.value))
        assert np.isfinite(clf.objective_)


def test_marginal_groups_beside_product_ones() -> None:
    """Marginal groups are unions of product cells, which are counted where both are asked for."""
    x, y, a = sample(2, 2, 2)
    both = ["equalized_odds:0.3", fv.DemographicParity(0.3, groups="marginal")]
    clf = quietly(fair("error", both), x, y, sensitive_features=a)
    assert clf.cells_.mode == "product"
    assert len(clf.constraint_report_.lines) == 4 * 3 * 2 + 4
    for objective, constraint in (
        (ob.Gap(groups="marginal"), None),
        ("error", both[1]),
        (ob.Gap(groups="marginal"), both[1]),
    ):
        clf = quietly(fair(objective, constraint), x, y, sensitive_features=a)
        assert clf.groups_ == (("a0", 0), ("a0", 1), ("a1", 0), ("a1", 1))
