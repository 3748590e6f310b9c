"""A rate-constrained fit to groups that were released once: post-processing of the release, with
the face of every fit."""

from __future__ import annotations

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.errors import FairveilError, InputError, Overspent
from knobs import made

ROWS = 3000


def people():
    rng = np.random.default_rng(4)
    group = rng.integers(2, size=ROWS)
    X = rng.normal(size=(ROWS, 3)) + 0.8 * group[:, None]
    y = (X.sum(axis=1) + rng.normal(size=ROWS) > 1).astype(int)
    return X, y, group


@pytest.fixture(scope="module")
def released():
    X, y, group = people()
    return fv.release_groups(X, y, sensitive_features=group, epsilon=2.0, random_state=0)


def classifier(constraints="demographic_parity:0.05", **options):
    options = {"protects": "sensitive_features"} | options
    if not {"solver", "randomised"} & set(options):
        options["randomised"] = True
    return made(fv.FairClassifier, constraints, **options)


def test_it_is_the_mixture_of_the_release_at_no_price(released):
    X, y, group = people()
    fitted = classifier().fit(X, y, sensitive_features=released)
    assert fitted.privacy_ == released.privacy
    assert fitted.privacy_.check() == []
    assert fitted.groups_ == (0, 1)
    assert fitted.n_features_in_ == 3
    assert fv.demographic_parity_gap(None, fitted.predict_proba(X), group, classes=[0, 1]) < 0.1
    free = classifier(None).fit(X, y, sensitive_features=released)
    assert fv.demographic_parity_gap(None, free.predict(X), group) > 0.2


def test_a_fit_leaves_nothing_of_an_earlier_one_by_another_solver(released):
    X, y, group = people()
    one = classifier(solver=fv.OracleGame(rounds=2), random_state=0).fit(
        X, y, sensitive_features=group
    )
    one.set_params(solver=fv.PrimalDual(randomised=True)).fit(X, y, sensitive_features=released)
    assert not hasattr(one, "guarantee_")
    with pytest.raises(InputError, match="derandomise: expected a mixture by OracleGame or"):
        one.derandomise()


def test_nothing_of_the_groups_but_the_release_is_read(released):
    """The same release beside other groups gives the same model: it has no way to them."""
    X, y, _ = people()
    ledger = fv.Ledger.create(None, "people", 1.0, 1e-6, protects="sensitive_features")
    fitted = classifier(ledger=ledger, epsilon=50.0).fit(X, y, sensitive_features=released)
    assert ledger.balance().spent == 0.0
    with pytest.raises(Overspent):
        classifier(ledger=ledger, epsilon=50.0).fit(X, y, sensitive_features=people()[2])
    assert fitted.privacy_.epsilon == released.privacy.epsilon


def test_reported_values_are_those_of_the_release(released):
    X, y, group = people()
    fitted = classifier().fit(X, y, sensitive_features=released)
    values = released.rates(X, y, fitted.predict_proba(X), "demographic_parity:0.05")
    for line, value in zip(fitted.constraint_report_.lines, values, strict=True):
        assert line.value == pytest.approx(value.value, abs=1e-12)
        assert line.noise >= value.within - 1e-12
    true = fv.demographic_parity_gap(None, fitted.predict_proba(X), group, classes=[0, 1])
    worst = fitted.constraint_report_.worst
    assert abs(true - abs(worst.value)) < 5 * worst.noise
    assert fitted.constraint_report_.met is not False


def test_one_rule_where_chance_is_forbidden(released):
    X, y, _ = people()
    fitted = classifier("equalized_odds:0.05", randomised=False).fit(
        X, y, sensitive_features=released
    )
    assert fitted.coef_.shape == (1, 3)
    assert np.array_equal(fitted.predict(X), fitted.predict(X))


def test_it_is_saved_and_read_back(released, tmp_path):
    X, y, _ = people()
    fitted = classifier().fit(X, y, sensitive_features=released)
    back = fv.load(fv.save(fitted, tmp_path / "model"))
    assert np.array_equal(back.predict_proba(X), fitted.predict_proba(X))
    assert back.privacy_ == fitted.privacy_
    assert back.constraint_report_.table() == fitted.constraint_report_.table()


@pytest.mark.parametrize(
    ("options", "weights", "named"),
    [
        ({"protects": "records"}, None, "protects"),
        ({}, np.ones(ROWS), "sample_weight"),
        ({"solver": fv.PrimalDual(rounds=10)}, None, "rounds"),
        ({"solver": fv.PrimalDual(clip=1.0)}, None, "clip"),
        ({"unit": "person", "max_rows_per_unit": 3}, None, "unit"),
    ],
)
def test_what_a_release_cannot_give_is_refused(released, options, weights, named):
    X, y, _ = people()
    estimator = made(
        fv.FairClassifier,
        "demographic_parity:0.05",
        **({"protects": "sensitive_features"} | options),
    )
    with pytest.raises(InputError, match=named):
        estimator.fit(X, y, sensitive_features=released, sample_weight=weights)
    assert not hasattr(estimator, "privacy_")


def test_a_certificate_of_released_groups_is_refused(released):
    X, y, _ = people()
    with pytest.raises(FairveilError):
        classifier(fv.DemographicParity(0.05, confidence=0.95)).fit(
            X, y, sensitive_features=released
        )


@pytest.mark.parametrize(
    "kind",
    [ways.game, ways.fermi, fv.FairPostProcessor, ways.tailored],
)
def test_others_name_what_they_were_given(kind, released):
    X, y, _ = people()
    with pytest.raises(InputError, match="ReleasedGroups"):
        kind(protects="sensitive_features").fit(X, y, sensitive_features=released)
