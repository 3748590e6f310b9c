"""Every method under attack, one of them under every relation: whole fits on a worst pair stay under
their claim, and a quarter of the noise is caught.

Each run is scored by the log likelihood ratio of all that was released, and its noise is heard.
False alarms: a test that a right claim stands fails for 5 % of fresh seeds at most; seeds are fixed.
"""

from __future__ import annotations

from typing import Any

import pytest

import fairveil as fv
import ways
from fairveil.audit import scores
from fairveil.audit.corners import pairs_of
from fairveil.audit.running import Attack, Seeds
from fairveil.audit.targets import HALF_NOISE, Bug, FitTarget
from fairveil.core import pricing
from fairveil.facts import Boolean, Category, Number, Schema
from knobs import made

COLUMNS: dict[str, Any] = {"age": Number(17, 90), "sex": Category(("f", "m"))}
SCHEMA = Schema(COLUMNS | {"hired": Boolean()}, target="hired", sensitive=("sex",), rows=60)
WAGES = Schema(COLUMNS | {"wage": Number(0, 9)}, target="wage", sensitive=("sex",), rows=60)
PARITY, ODDS = "demographic_parity:0.1", "equalized_odds:0.1"
RELATIONS: dict[str, dict[str, Any]] = {
    "add-remove": {},
    "replace-one": {"neighbours": "replace-one"},
    "sensitive": {"protects": "sensitive_features"},
}
METHODS: dict[str, Any] = {
    "rate": lambda **more: made(fv.FairClassifier, PARITY, rounds=3, **more),
    "fermi": lambda **more: made(ways.fermi, "equalized_odds", rounds=3, **more),
    "game": lambda **more: made(ways.game, ODDS, rounds=3, **more),
    "mixture": lambda **more: made(ways.objective, "gmean", constraint=ODDS, rounds=3, **more),
    "regression": lambda **more: ways.objective_regression("largest_group_loss", **more),
    "tailored": lambda **more: made(ways.tailored, rounds=3, **more),
}


def attack(name: str, relation: str, bug: Bug | None = None) -> Attack:
    more = RELATIONS[relation]
    schema = WAGES if name == "regression" else SCHEMA
    clf = METHODS[name](schema=schema, epsilon=4.0, delta=1e-5, **more)
    neighbours = "add-remove" if relation == "add-remove" else "replace-one"
    pairs = pairs_of(schema, more.get("protects", "records"), neighbours, others=60)
    target = FitTarget(clf, schema, pairs[0], 0)
    given: dict[str, Any] = {"delta": 1e-5, "risk": 0.05, "planned": 40}
    return Attack(target, Seeds(1), target.claim, **given, bug=bug).fix(10)


ONE = {"fermi": "replace-one", "game": "add-remove", "mixture": "sensitive"}
ONE |= {"regression": "replace-one", "tailored": "add-remove"}
"""Methods that are attacked under one relation; `rate` under all that there are."""


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        (name, relation)
        for name in METHODS
        for relation in RELATIONS
        if ONE.get(name, relation) == relation
    ],
)
def test_a_whole_fit_stays_under_its_claim_and_less_noise_is_caught(
    name: str, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = attack(name, relation)
    kept.go_on(12)
    assert not kept.refuted_by
    assert kept.target.sees_noise
    assert 0 < kept.target.distance <= scores.mu_of(kept.claim.total_variation) * (1 + 1e-6)
    assert kept.noise is not None
    assert 0 < kept.noise.total_variation(0.05) <= kept.claim.total_variation
    broken = attack(name, relation, Bug(HALF_NOISE))
    scale = pricing.noise_scale
    monkeypatch.setattr(pricing, "noise_scale", lambda *given: scale(*given) / 2)
    broken.go_on(40)
    assert broken.refuted_by == "noise"
