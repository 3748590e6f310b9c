"""Privacy statements: what was promised, what was spent, and what a second accountant says."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from typing import Any

import numpy as np
import pytest
from configurations import CONFIGURATIONS, Configuration, Table
from dp_accounting.pld import privacy_loss_distribution as losses
from seam import recording

import fairveil as fv
from fairveil.core import events
from fairveil.privacy import PrivacyStatement, epsilon, price

GRID = 2e-4  # of privacy losses


def elsewhere(event: Any, replaced: bool) -> Any:
    """The privacy loss of an event by another library. Sensitivities are those of the relation
    already, so its own relation is add-remove."""
    if isinstance(event, events.Composed):
        parts = [elsewhere(one, replaced) for one in event.events]
        return functools.reduce(lambda one, other: one.compose(other), parts)
    if isinstance(event, events.Repeated):
        return elsewhere(event.event, replaced).self_compose(event.count)
    if isinstance(event, events.DiscreteLaplace):
        scale = event.noise_multiplier * event.sensitivity
        return losses.from_discrete_laplace_mechanism(
            1.0 / scale, sensitivity=int(event.sensitivity), value_discretization_interval=GRID
        )
    rate, noise = 1.0, 0.0
    if isinstance(event, events.Gaussian):
        noise = event.noise_multiplier
    elif isinstance(event, events.PerCell):
        wide = max(1.0, *event.spreads) if replaced else 1.0
        noise = min(min(column) for column in event.multipliers) / wide
    elif isinstance(event, events.PoissonSampled) and (event.rate == 1.0 or not replaced):
        # Gaussian releases of one batch are one: multipliers add up as inverse squares.
        rate = event.rate
        leaves = gaussians(event.event)
        wide = event.spreads or [1.0] * len(leaves)
        leaked = [(w / leaf.noise_multiplier) ** 2 for leaf, w in zip(leaves, wide, strict=True)]
        noise = sum(leaked) ** -0.5
    else:
        raise NotImplementedError(type(event).__name__)
    return losses.from_gaussian_mechanism(
        noise, sampling_prob=rate, value_discretization_interval=GRID
    )


def gaussians(event: Any) -> list[Any]:
    if isinstance(event, events.Composed):
        return [leaf for one in event.events for leaf in gaussians(one)]
    if isinstance(event, events.Repeated):
        return gaussians(event.event) * event.count
    return [event]


def has(event: Any, kinds: Any) -> bool:
    if isinstance(event, kinds):
        return True
    inner = getattr(event, "events", None) or [getattr(event, "event", None)]
    return any(one is not None and has(one, kinds) for one in inner)


# Of these another library has no price: choices, a search's best run, parts of rows, two steps.
UNKNOWN = (events.Exponential, events.PrivateSelection, events.Pure, events.OnPart)


def test_what_was_spent_is_within_what_was_promised(row: Configuration, fitted: Any) -> None:
    statement, given = row.statement(fitted(row)), row.given
    promise = statement.promise
    assert 0 < statement.epsilon <= given["epsilon"] == promise.epsilon
    assert statement.delta == promise.delta == given["delta"]
    assert promise.protects == row.protects
    assert promise.neighbours == statement.neighbours == row.neighbours
    unit = promise.unit
    assert (None if unit is None else unit.max_rows) == (None if row.unit is None else row.most)
    assert statement.check() == []


def test_most_of_the_budget_is_used(row: Configuration, fitted: Any) -> None:
    """Noise is calibrated to the promise, not far below: a fit pays for what it gets."""
    assert row.statement(fitted(row)).epsilon >= 0.99 * row.given["epsilon"]


def test_the_log_is_the_plan(row: Configuration, fitted: Any) -> None:
    statement = row.statement(fitted(row))
    if statement.plan is None:
        assert statement.cap is not None
        return
    finer = any(has(one, events.PerCell) for one in statement.events)
    if not finer:
        relation, delta = statement.neighbours, statement.delta
        assert math.isclose(
            epsilon(statement.events, delta, relation), epsilon(statement.plan, delta, relation)
        )
    assert statement.events


def test_the_price_is_that_of_the_events(row: Configuration, fitted: Any) -> None:
    statement = row.statement(fitted(row))
    if statement.plan is None:
        return
    found = price(statement.plan, statement.delta, statement.neighbours)
    assert math.isclose(found.epsilon, statement.epsilon, rel_tol=1e-9)
    more = epsilon([*statement.plan, events.Gaussian(5.0)], statement.delta, statement.neighbours)
    assert more > statement.epsilon


def test_another_library_finds_the_same_price(row: Configuration, fitted: Any) -> None:
    statement = row.statement(fitted(row))
    if statement.plan is None or any(has(one, UNKNOWN) for one in statement.plan):
        return
    if statement.delta == 0:
        pure = sum(1 / leaf.noise_multiplier for one in statement.plan for leaf in gaussians(one))
        assert math.isclose(pure, statement.epsilon, rel_tol=1e-9)
        return
    replaced = row.neighbours == "replace-one" and row.protects == "records"
    plan = [elsewhere(one, replaced) for one in statement.plan]
    loss = functools.reduce(lambda one, other: one.compose(other), plan)
    second = loss.get_epsilon_for_delta(statement.delta)
    assert 0.995 * second <= statement.epsilon <= 1.001 * second


def test_json_holds_the_whole_statement(row: Configuration, fitted: Any) -> None:
    statement = row.statement(fitted(row))
    again = PrivacyStatement.from_json(statement.to_json())
    assert again == statement
    assert again.to_json() == statement.to_json()
    assert again.summary() == statement.summary()


@pytest.mark.parametrize("field", ["epsilon", "delta", "neighbours"])
def test_a_statement_that_was_changed_contradicts_itself(
    row: Configuration, fitted: Any, field: str
) -> None:
    statement = row.statement(fitted(row))
    changed = {"epsilon": statement.epsilon / 2, "delta": statement.delta / 10 + 1e-9}
    changed["neighbours"] = "add-remove" if row.neighbours == "replace-one" else "replace-one"
    false = dataclasses.replace(statement, **{field: changed[field]})
    assert false.check() != []


def test_less_noise_in_the_log_is_found(row: Configuration, fitted: Any) -> None:
    """One multiplier of the file, made smaller: the price no longer fits."""
    text = row.statement(fitted(row)).to_json()
    document = json.loads(text)
    changed = 0

    def halve(node: Any) -> None:
        nonlocal changed
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if key in {"noise_multiplier", "epsilon"} and changed == 0 and inside(node):
                node[key] = value / 2 if key == "noise_multiplier" else value * 2
                changed += 1
            elif isinstance(value, dict | list):
                halve(value)

    def inside(node: Any) -> bool:
        return isinstance(node, dict) and "kind" in node | {"type": 0} and "promise" not in node

    halve(document.get("plan") or document["events"])
    if not changed:
        return
    try:
        false = PrivacyStatement.from_json(json.dumps(document))
    except fv.errors.FairveilError:
        return
    assert false.check() != []


def test_what_is_read_from_the_data_is_said(row: Configuration, fitted: Any) -> None:
    """With a schema nothing is; without one, classes and groups are, and each is named."""
    statement = row.statement(fitted(row))
    origins = {fact.origin for fact in statement.facts}
    peeked = {fact.name for fact in statement.facts if "not covered" in fact.origin}
    if row.schema:
        assert not peeked
        assert "schema" in origins
    else:
        assert peeked
        assert any(name in " ".join(peeked) for name in row.sensitive) or row.protects != "records"
    assert "data-dependent-bounds" not in statement.stamps
    assert "not-private" not in statement.stamps


def test_without_privacy_the_statement_says_so(
    estimator_row: Configuration, unprotected: Any
) -> None:
    if "search" in estimator_row.tags:  # it is refused, with words of its own
        return
    statement = estimator_row.statement(unprotected(estimator_row))
    assert statement.epsilon == math.inf
    assert "not-private" in statement.stamps
    assert '"inf"' in statement.to_json()


def test_a_larger_budget_has_less_noise(row: Configuration, released: Any, table: Table) -> None:
    """Twice epsilon never has more noise in any release."""
    made = {1.0: released(row)}
    for share in (0.5, 2.0):
        with recording() as tape:
            row.run(table, epsilon=share * row.given["epsilon"])
        made[share] = tape.entries
    half, one, two = (
        [np.min(m) for one in made[share] for m in one.multipliers if "choice" not in one.names]
        for share in (0.5, 1.0, 2.0)
    )
    for more, less in ((half, one), (one, two)):
        if len(more) == len(less):
            assert all(noise >= other for noise, other in zip(more, less, strict=True))


def test_configurations_stand_for_every_protection() -> None:
    seen = {(row.protects, row.neighbours) for row in CONFIGURATIONS.values()}
    assert seen == {
        ("records", "add-remove"),
        ("records", "replace-one"),
        ("sensitive_features", "replace-one"),
    }
