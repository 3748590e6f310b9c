"""Entries of the deployments registry keep its schema, and say what the statement says."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from cards_samples import FACTS, model

from fairveil.cards import registry_entry, registry_findings
from fairveil.cards.registry import FIELDS
from fairveil.errors import InputError
from fairveil.privacy.promise import Promise
from fairveil.privacy.statement.statement import PrivacyStatement
from fairveil.privacy.units import Unit


def entry(**facts: Any) -> dict[str, Any]:
    return registry_entry(model().privacy_, {**FACTS, **facts})


def test_guarantee_1_an_entry_keeps_the_schema_and_says_what_the_statement_says() -> None:
    made = entry()
    assert registry_findings(made) == []
    deployment, statement = made["deployment"], model().privacy_
    assert deployment["privacy_loss"]["privacy_parameters"] == {
        "epsilon": statement.epsilon,
        "delta": statement.delta,
    }
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    assert deployment["basic"]["data_product_type"] == "Machine learning model"
    assert made["status"] == "Draft"
    assert set(deployment["administrative"]) == {"registry_authors"}


def test_the_unit_is_that_of_the_promise() -> None:
    statement = model().privacy_
    units = {
        None: "One row of the table",
        Unit("patient", 3): "One person, at most 3 of their rows",
    }
    for unit, words in units.items():
        promise = Promise(2.0, 1e-6, unit=unit)
        made = registry_entry(
            PrivacyStatement.of(promise, statement.events, plan=statement.events), FACTS
        )
        assert made["deployment"]["privacy_loss"]["privacy_unit"] == words


CHANGES: list[tuple[tuple[str, ...], Any]] = [
    (("url_slug",), "Not A Slug"),
    (("status",), "Final"),
    (("tier",), 4),
    (("tier",), True),
    (("more",), 1),
    (("deployment",), []),
    (("deployment", "extra"), {}),
    (("deployment", "basic", "data_curators"), []),
    (("deployment", "basic", "data_curators"), "A firm"),
    (("deployment", "basic", "publication_date"), "31.1.2026"),
    (("deployment", "basic", "publication_date"), "2026-02-31"),
    (("deployment", "basic", "surprise"), "x"),
    (("deployment", "basic", "name"), ""),
    (("deployment", "dp_variant", "variant_name"), "DP"),
    (("deployment", "privacy_loss", "privacy_parameters"), {"epsilon": "1"}),
    (("deployment", "privacy_loss", "privacy_parameters"), {"alpha": 1}),
    (("deployment", "deployment_model", "access_type"), "Sometimes"),
]


@pytest.mark.parametrize(("path", "value"), CHANGES)
def test_guarantee_1_what_departs_from_the_schema_is_found(
    path: tuple[str, ...], value: Any
) -> None:
    made = copy.deepcopy(entry())
    here: Any = made
    for part in path[:-1]:
        here = here[part]
    here[path[-1]] = value
    assert registry_findings(made)


@pytest.mark.parametrize(
    "path",
    [
        *[("url_slug",), ("status",), ("tier",), ("deployment",), ("deployment", "basic")],
        *[
            ("deployment", "basic", name)
            for name in FIELDS["basic"]
            if name != "data_product_sector"
        ],
        ("deployment", "administrative", "registry_authors"),
    ],
)
def test_guarantee_1_what_is_missing_is_found(path: tuple[str, ...]) -> None:
    made = copy.deepcopy(entry())
    here: Any = made
    for part in path[:-1]:
        here = here[part]
    del here[path[-1]]
    assert registry_findings(made)


def test_guarantee_2_the_tier_is_that_of_the_fields_that_are_there() -> None:
    assert entry()["tier"] == 1
    assert entry(data_source_type="Static")["tier"] == 2
    more = dict.fromkeys(("data_domain", "actors", "post_processing", "justification"), "Stated.")
    assert entry(data_source_type="Static", **more)["tier"] == 3
    assert entry(**more)["tier"] == 1


@pytest.mark.parametrize("name", list(FACTS))
def test_what_no_statement_knows_is_asked_for(name: str) -> None:
    facts = {key: value for key, value in FACTS.items() if key != name}
    with pytest.raises(InputError, match=name):
        registry_entry(model().privacy_, facts)


@pytest.mark.parametrize(
    "facts",
    [
        {"surprise": 1},
        {"privacy_parameters": {"epsilon": 0.1}},
        {"privacy_unit": "A person for ever"},
        {"data_product_sector": "Hiring"},
        {"publication_date": "soon"},
        {"registry_authors": []},
    ],
)
def test_facts_that_are_not_of_the_schema_or_contradict_the_statement_are_refused(
    facts: dict[str, Any],
) -> None:
    with pytest.raises(InputError):
        entry(**facts)


def test_what_is_not_private_is_no_entry() -> None:
    with pytest.raises(InputError, match="finite epsilon"):
        registry_entry(model(float("inf"), None, None).privacy_, FACTS)
    for bad in (None, {}, "text"):
        with pytest.raises(InputError):
            registry_entry(bad, FACTS)
        with pytest.raises(InputError):
            registry_entry(model().privacy_, bad)
