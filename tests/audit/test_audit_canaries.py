"""Audits in one run: the bound is reached by mechanisms that are known, leaks are found, nobody's
rows are read.

What right guesses prove stands in test_audit_canary_bounds.py.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import fairveil as fv
from fairveil.audit.canaries import BUGS
from fairveil.audit.canary_estimate import HeardRun
from fairveil.errors import InputError
from fairveil.facts import Boolean, Category, Number, Schema

SCHEMA = Schema(
    {f"x{at}": Number(-1, 1) for at in range(6)}
    | {"sex": Category(("f", "m")), "hired": Boolean()},
    target="hired",
    sensitive="sex",
)


def network(**more):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    with torch.no_grad():  # canaries whose gradients point apart
        for parameters in module.parameters():
            parameters *= 4.0
    options = {"epsilon": 1.0, "delta": 1e-6, "schema": SCHEMA, "public_rows": 150}
    options["solver"] = fv.Descent(rounds=4, sampling_rate=1.0, clip=0.3)
    return fv.RateConstrainedClassifier(None, model=module, **{**options, **more})


def test_a_network_is_audited_in_one_run_and_every_planted_leak_is_found() -> None:
    """The furthest canary shows nearly the whole claim, and 8,200 numbers tell their noise."""
    ledger = fv.Ledger.create(None, "people", epsilon=9.0, delta=1e-4)
    clf = network(ledger=ledger)
    found = fv.audit.one_run(clf, canaries=100, guesses=30, rows=100)
    assert not found.refuted
    assert found.epsilon_lower <= 1.0
    assert {name for name, there in found.planted if there} == {one.name for one in BUGS}
    assert found.numbers > 8_000
    assert found.furthest is not None
    assert 0.9 < found.furthest <= 1.0
    assert ledger.is_untouched
    assert not hasattr(clf, "model_")
    assert "1.5-fold epsilon: found" in str(found)
    assert "no proof" in str(found)
    values = json.loads(found.to_json())
    assert (values["canaries"], values["guesses"], values["verdict"]) == (100, 30, "inconclusive")
    assert (values["refuted_by"], values["furthest_canary_share_of_mu"]) == (None, found.furthest)
    again = fv.audit.one_run(clf, canaries=100, guesses=30, rows=100, power=False)
    assert again.right == found.right  # the seed repeats it


def test_noise_as_stated_is_called_less_as_seldom_as_the_risk_says() -> None:
    """800 runs of 400 numbers at risk .05: at most 40 in the mean, 59 or more in 1 of 500."""
    rng, nobody = np.random.default_rng(0), np.zeros(1)
    runs = [HeardRun(nobody, None, rng.normal(size=400)) for _ in range(800)]
    assert sum(run.has_less_noise(0.05) for run in runs) < 59
    less = [HeardRun(nobody, None, 0.8 * rng.normal(size=400)) for _ in range(50)]
    assert all(run.has_less_noise(0.05) for run in less)
    assert not HeardRun(nobody, None, np.zeros(0)).has_less_noise(0.05)


def test_a_canary_further_than_a_plan_allows_refutes_it_and_one_at_the_bound_does_not() -> None:
    nobody = np.zeros(1)
    assert not HeardRun(nobody, 4.0, nobody).is_too_far(4.0)
    assert HeardRun(nobody, 4.001, nobody).is_too_far(4.0)
    assert not HeardRun(nobody, None, nobody).is_too_far(0.0)


def test_a_large_epsilon_shows_in_one_run_of_a_network() -> None:
    found = fv.audit.one_run(network(epsilon=40.0), canaries=100, guesses=30, rows=100, power=False)
    assert 1.0 < found.epsilon_lower <= 40.0
    assert 0.0 < found.gaussian_epsilon_lower <= 40.0


def test_linear_fits_and_secret_batches_are_scored_too() -> None:
    """Seven numbers a round tell few coins of 40: the guesses are the surest six."""
    for more in ({}, {"sampling_rate": 0.5}):
        clf = fv.RateConstrainedClassifier(
            None,
            epsilon=50.0,
            delta=1e-6,
            schema=SCHEMA,
            solver=fv.Descent(rounds=4, **more),
            public_rows=120,
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
