"""Audits in one run: the bound is reached by mechanisms that are known, leaks are found, nobody's
rows are read.

Randomized response and a mechanism that tells everything with probability delta are computed, not
drawn: no false alarms.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

import fairveil as fv
from fairveil.audit import GaussianClaim, PointClaim
from fairveil.audit.canary_bounds import (
    PLACES,
    delta_of,
    epsilon_lower,
    mu_lower,
    p_value,
    points_of,
    refutes,
)
from fairveil.audit.claims import EventsClaim
from fairveil.errors import InputError
from fairveil.facts import Boolean, Category, Number, Schema
from fairveil.privacy.events import Gaussian

SCHEMA = Schema(
    {f"x{at}": Number(-1, 1) for at in range(6)}
    | {"sex": Category(("f", "m")), "hired": Boolean()},
    target="hired",
    sensitive="sex",
)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("guesses", [20, 60])
def test_guarantee_1_of_randomized_response_a_true_claim_is_refuted_as_often_as_the_risk_says(
    epsilon, guesses
) -> None:
    right = np.arange(guesses + 1)
    chance = stats.binom.pmf(right, guesses, 1.0 / (1.0 + math.exp(-epsilon)))
    for risk in (0.05, 0.01):
        wrongly = sum(
            chance[v] for v in right if refutes(PointClaim(epsilon, 0.0), 60, guesses, int(v), risk)
        )
        assert wrongly <= risk
        smaller = PointClaim(epsilon / 3.0, 0.0)
        rightly = sum(chance[v] for v in right if refutes(smaller, 60, guesses, int(v), risk))
        assert rightly >= wrongly


@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.05])
def test_guarantee_1_what_tells_everything_with_probability_delta_is_not_refuted_more_often(
    delta,
) -> None:
    for guesses in (5, 20, 60):
        for right in range(1, guesses + 1):
            likely = delta + (1.0 - delta) * float(stats.binom.sf(right - 1, guesses, 0.5))
            assert likely <= p_value(60, guesses, right, 0.0, delta) + 1e-12
    without = float(stats.binom.sf(59, 60, 0.5))
    assert without < delta  # without its second part the bound would be wrong


def test_guarantee_2_a_curve_is_tried_at_fixed_points() -> None:
    one, other = (
        points_of(GaussianClaim(1.5)),
        points_of(EventsClaim([Gaussian(1 / 1.5)], "add-remove")),
    )
    assert np.allclose(one, other)
    assert [at for at, _ in one] == list(PLACES)
    assert refutes(GaussianClaim(0.1), 400, 100, 100, 0.05)
    assert not refutes(GaussianClaim(20.0), 400, 100, 100, 0.05)


def test_bounds_are_where_the_claim_begins_to_stand() -> None:
    for right in (0, 60, 80, 100):
        found = epsilon_lower(400, 100, right, 1e-6, 0.05)
        if found:
            assert p_value(400, 100, right, found - 1e-6, 1e-6) <= 0.05
        assert p_value(400, 100, right, found + 1e-6, 1e-6) > 0.05 or found == 0.0
    assert epsilon_lower(400, 100, 50, 1e-6, 0.05) == mu_lower(400, 100, 50, 0.05) == 0.0
    assert 0.0 < mu_lower(400, 100, 90, 0.05) < mu_lower(400, 100, 100, 0.05)
    assert delta_of(0.0, 1.0) == 0.0


def network(**more):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    with torch.no_grad():  # canaries whose gradients point apart
        for parameters in module.parameters():
            parameters *= 4.0
    options = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "schema": SCHEMA,
        "rounds": 4,
        "sampling_rate": 1.0,
        "public_rows": 150,
    }
    options["clip"] = 0.3
    return fv.RateConstrainedClassifier(None, model=module, **{**options, **more})


def test_a_network_is_audited_in_one_run_and_a_planted_leak_is_found() -> None:
    ledger = fv.Ledger.create(None, "people", epsilon=9.0, delta=1e-4)
    clf = network(ledger=ledger)
    found = fv.audit.one_run(clf, canaries=100, guesses=30, rows=100)
    assert not found.refuted
    assert found.epsilon_lower <= 1.0
    assert dict(found.planted)["100-fold epsilon"]
    assert ledger.is_untouched
    assert not hasattr(clf, "model_")
    assert "100-fold epsilon: found" in str(found)
    assert "no proof" in str(found)
    values = json.loads(found.to_json())
    assert (values["canaries"], values["guesses"], values["verdict"]) == (100, 30, "cannot be told")
    again = fv.audit.one_run(clf, canaries=100, guesses=30, rows=100, power=False)
    assert again.right == found.right  # the seed repeats it


def test_a_large_epsilon_shows_in_one_run_of_a_network() -> None:
    found = fv.audit.one_run(network(epsilon=40.0), canaries=100, guesses=30, rows=100, power=False)
    assert 1.0 < found.epsilon_lower <= 40.0
    assert 0.0 < found.gaussian_epsilon_lower <= 40.0


def test_linear_fits_and_secret_batches_are_scored_too() -> None:
    """Seven numbers a round tell few coins of 40: the guesses are the surest six."""
    for more in ({}, {"sampling_rate": 0.5}):
        clf = fv.RateConstrainedClassifier(
            None, epsilon=50.0, delta=1e-6, schema=SCHEMA, rounds=4, public_rows=120, **more
        )
        found = fv.audit.one_run(clf, canaries=40, guesses=6, rows=100, power=False)
        assert not found.refuted
        assert 0 <= found.right <= 6


def test_a_function_returns_a_score_of_membership() -> None:
    def kept(table, seed):
        names = [f"x{at}" for at in range(6)]
        there = set(zip(*(table[name].tolist() for name in names), strict=True))
        return lambda rows: [
            one in there for one in zip(*(rows[name].tolist() for name in names), strict=True)
        ]

    def silent(table, seed):
        return lambda rows: np.zeros(len(rows["x0"]))

    options = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-6, "rows": 50}
    assert fv.audit.one_run(kept, **options).refuted
    assert not fv.audit.one_run(silent, **options).refuted
    assert fv.audit.one_run(kept, **options).planted == ()


@pytest.mark.parametrize(
    ("target", "more", "words"),
    [
        (lambda table, seed: 1.0, {"epsilon": 1.0, "delta": 0.0}, "what fit returns"),
        (lambda table, seed: lambda rows: [1.0], {"epsilon": 1.0, "delta": 0.0}, "scores"),
        (
            lambda table, seed: lambda rows: rows["x0"] * math.nan,
            {"epsilon": 1.0, "delta": 0.0},
            "scores",
        ),
        (lambda table, seed: None, {}, "epsilon"),
        (lambda table, seed: None, {"canaries": 3}, "canaries"),
        (lambda table, seed: None, {"guesses": 900}, "guesses"),
        (lambda table, seed: None, {"schema": None}, "schema"),
        (7, {}, "TARGET"),
        (fv.RateConstrainedClassifier(protects="sensitive_features"), {}, "added or removed"),
        (fv.RateConstrainedClassifier(neighbours="replace-one"), {}, "added or removed"),
        (fv.RateConstrainedClassifier(epsilon=math.inf), {}, "a finite epsilon"),
        (fv.GroupObjectiveClassifier(method="exponential"), {}, "a fit that releases gradients"),
    ],
)
def test_what_cannot_be_audited_so_is_refused(target, more, words) -> None:
    with pytest.raises(InputError, match=words):
        fv.audit.one_run(target, **{"schema": SCHEMA, "rows": 30, **more})
