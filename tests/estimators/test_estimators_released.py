"""Groups released once: price, what is refused, what is made of a release, an audit."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairveil as fv
from fairveil.audit import audit_fit
from fairveil.core.events import DiscreteLaplace
from fairveil.errors import (
    InputError,
    LedgerError,
    Overspent,
    PrivacyError,
)
from fairveil.facts import Boolean, Category, Number, Schema

RNG = np.random.default_rng(0)
ROWS = 1200
A = RNG.integers(2, size=ROWS)
X = RNG.normal(size=(ROWS, 3)) + 0.8 * A[:, None]
Y = (X.sum(axis=1) + RNG.normal(size=ROWS) > 1).astype(int)


def made(**options: Any) -> fv.estimators.ReleasedGroups:
    return fv.release_groups(X, Y, **{"sensitive_features": A, "random_state": 0, **options})


def fitted(released: fv.estimators.ReleasedGroups, constraints: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = fv.FairClassifier(constraints, protects="sensitive_features")
        return clf.fit(X, Y, sensitive_features=released)


RELEASED = made()


def gap_of(law: Any, groups: Any = A) -> float:
    return max(
        abs(law[(groups == 0) & (y == Y), 1].mean() - law[(groups == 1) & (y == Y), 1].mean())
        for y in (0, 1)
    )


# -- guarantees


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("groups", [2, 3])
def test_guarantee_1_one_release_is_stated_and_costs_the_promise(
    epsilon: float, groups: int
) -> None:
    released = made(
        epsilon=epsilon, sensitive_features=A if groups == 2 else RNG.integers(3, size=ROWS)
    )
    statement = released.privacy
    assert statement.check() == []
    assert statement.delta == 0
    assert 0.999 * epsilon <= statement.epsilon <= epsilon
    (event,) = statement.events
    assert isinstance(event, DiscreteLaplace)
    assert statement.promise.protects == "sensitive_features"
    assert statement.user_code == "none"
    assert statement.from_json(statement.to_json()) == statement


def test_guarantee_2_the_release_holds_noisy_counts_alone() -> None:
    codes = RELEASED.codes(X, Y)
    exact = np.stack(
        [np.bincount(codes[g == A], minlength=RELEASED.clusters.count) for g in (0, 1)]
    )
    off = RELEASED.counts.raw - exact
    assert (off[0] == -off[1]).all()
    assert 0.3 < (off[0] != 0).mean() < 0.75  # of discrete Laplace noise at epsilon 1: 0.54
    assert (RELEASED.counts.sizes == np.bincount(codes)).all()
    assert not np.shares_memory(RELEASED.counts.raw, A)


def test_guarantee_3_clusters_are_the_same_whatever_the_groups_are() -> None:
    other = made(sensitive_features=RNG.permutation(A))
    assert (other.codes(X, Y) == RELEASED.codes(X, Y)).all()
    assert other.clusters.count == RELEASED.clusters.count


def test_two_columns_make_product_groups() -> None:
    released = made(
        sensitive_features=pd.DataFrame({"sex": A, "old": X[:, 0] > RNG.normal(size=ROWS)})
    )
    assert len(released.groups) == 4
    assert released.memberships(X, Y).shape == (ROWS, 4)
    clf = fitted(released, fv.DemographicParity(0.1, groups="marginal"))
    assert len(clf.constraint_report_.lines) == 4


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"protects": "records"}, PrivacyError, "protects"),
        ({"sensitive_features": None}, InputError, "several groups"),
        ({"sensitive_features": np.zeros(ROWS)}, InputError, "several groups"),
        ({"clusters": 0}, InputError, "clusters"),
        ({"epsilon": -1.0}, InputError, "epsilon"),
        ({"sensitive_features": A[:-1]}, InputError, "rows"),
        ({"sensitive_features": np.where(A == 0, np.nan, 1.0)}, InputError, "missing|NaN|None"),
    ],
)
def test_what_cannot_be_released_is_refused(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        made(**options)


def test_a_copy_of_the_sensitive_column_among_the_features_is_refused() -> None:
    with pytest.raises(PrivacyError, match="copy of sensitive column"):
        fv.release_groups(np.column_stack([X, A]), Y, sensitive_features=A)


def test_groups_of_a_schema_that_nobody_is_in_have_small_memberships() -> None:
    table = pd.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "sex": np.where(A, "m", "f"), "hired": Y.astype(bool)}
    )
    columns = {
        "a": Number(-5, 5),
        "b": Number(-5, 5),
        "sex": Category(["f", "m", "x"]),
        "hired": Boolean(),
    }
    schema = Schema(columns, target="hired", sensitive=("sex",))
    y = table.pop("hired")
    released = fv.release_groups(table, y, sensitive_features="sex", schema=schema, random_state=0)
    assert released.groups == ("f", "m", "x")
    assert released.memberships(table, y)[:, 2].mean() < 0.1
    # groups are declared: nothing was read from the data
    assert released.privacy.stamps == ("seeded-noise",)
    clf = fv.FairClassifier("demographic_parity:0.2", protects="sensitive_features")
    assert clf.fit(table, y, sensitive_features=released).predict(table).dtype == bool


@pytest.mark.filterwarnings("ignore::fairveil.errors.FairveilWarning")
def test_few_rows_and_one_label_are_no_error() -> None:
    released = fv.release_groups(
        X[:6],
        [0, 1, 0, 1, 1, 0],
        sensitive_features=[0, 1, 0, 1, 0, 1],
        epsilon=0.5,
        random_state=0,
    )
    assert released.clusters.count == 2
    clf = fv.FairClassifier("demographic_parity:0.1", protects="sensitive_features")
    clf.fit(X[:6], [0, 1, 0, 1, 1, 0], sensitive_features=released)


# -- what is made of it


def test_the_same_release_serves_all_fits_for_nothing(tmp_path: Path) -> None:
    ledger = fv.Ledger.create(tmp_path / "l.sqlite", "people", 1.0, 1e-6, "sensitive_features")
    released = made(ledger=ledger, delta=1e-6, random_state=0)
    spent = list(ledger.history())
    free, fair = fitted(released), fitted(released, "equalized_odds:0.03")
    released.rates(X, Y, free.predict(X), "equalized_odds:0.05")
    assert len(list(ledger.history())) == len(spent)
    assert all(clf.privacy_ == released.privacy for clf in (free, fair))
    law = np.eye(2)[free.predict(X)]
    assert gap_of(fair.predict_proba(X)) < 0.6 * gap_of(law)
    assert released.privacy.ledger is not None
    with pytest.raises(Overspent):
        made(ledger=ledger, delta=1e-6, random_state=0)


def test_a_ledger_of_other_people_is_refused(tmp_path: Path) -> None:
    ledger = fv.Ledger.create(tmp_path / "l.sqlite", "people", 1.0, 1e-6)
    with pytest.raises(LedgerError):
        made(ledger=ledger)


def test_rates_have_bars_that_hold_the_truth() -> None:
    """At the known groups of this sample: the widest bounds hold it, and so does the interval with
    two deviations inside."""
    decided = (X[:, 0] > 0.4).astype(int)
    law = np.eye(2)[decided]
    truth = [law[(a == A) & (y == Y), 1].mean() for y in (0, 1) for a in (0, 1)]
    found = RELEASED.rates(X, Y, decided, "equalized_odds:0.05")
    assert found == RELEASED.rates(X, Y, law, "equalized_odds:0.05")
    for line, value in zip(found[::2], (truth[0] - truth[1], truth[2] - truth[3]), strict=True):
        assert line.lowest <= value <= line.highest
        assert line.low - 2 * line.within <= value <= line.high + 2 * line.within
    with pytest.raises(InputError, match="rows of the release"):
        RELEASED.rates(X[:-1], Y[:-1], decided[:-1], "equalized_odds:0.05")
    for wrong in (np.full(ROWS, 7), law[:, :1], law * 2):
        with pytest.raises(InputError, match="predictions"):
            RELEASED.rates(X, Y, wrong, "equalized_odds:0.05")


# -- an attack


def test_an_audit_stays_below_the_claim_and_catches_noise_that_is_too_small() -> None:
    """One person changes group, in a table where that moves the count of one cluster. 150 runs a
    side; a false alarm of the honest release is 1 in 20 at most, and seeds are fixed."""
    rng = np.random.default_rng(3)
    features, labels = rng.normal(size=(10, 1)), np.array([0, 1] * 5)
    groups = np.array([0, 1, 1, 0, 1] * 2)
    other = groups.copy()
    other[-1] = 1 - other[-1]

    def released(data: Any, seed: int, epsilon: float = 2.0) -> float:
        made = fv.release_groups(
            features, labels, sensitive_features=data, epsilon=epsilon, random_state=seed
        )
        return float(made.counts.raw[0, made.codes(features, labels)[-1]]) * (
            1 if groups[-1] else -1
        )

    honest = audit_fit(released, groups, other, trials=150, delta=0.0, claimed=2.0)
    assert not honest.contradicts()
    assert honest.epsilon_lower > 0.5  # the attack sees something
    wrong = audit_fit(
        lambda data, seed: released(data, seed, 4.0),
        groups,
        other,
        trials=150,
        delta=0.0,
        claimed=2.0,
    )
    assert wrong.contradicts()
