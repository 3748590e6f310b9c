"""What a statement tells of groups whose noise differs: recomputed from the plan, or after the fact
from the log."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from fairveil.core import mechanisms as leaves
from fairveil.core.cost import epsilon
from fairveil.core.events import Event, Gaussian, NonPrivate, PerCell, PoissonSampled, Repeated
from fairveil.curator import CellCounts, Curator, Rows, describe
from fairveil.errors import FairveilError, InputError, StatementError
from fairveil.privacy import NamedGroups, NoiseSource, PrivacyStatement, Promise
from fairveil.statement.document import GroupGuarantee
from fairveil.statement.form import checksum
from fairveil.statement.words import items
from group_prices import by_group

PROMISE = Promise(8.0, 1e-6)
CELLS = PerCell(((5.0, 9.0, 20.0),), (2.0,))
PLAN: list[Event] = [Gaussian(15.0), *[CELLS] * 4, PerCell(((25.0, 90.0),), (1.0,), (), 1)]
BOUNDS: list[Event] = [Gaussian(15.0), *[Gaussian(5.0)] * 4, Gaussian(25.0)]
NAMES = NamedGroups(("a", "b", "c"))
OTHERS = NamedGroups(("old", "young"), column=1)


def fixed() -> PrivacyStatement:
    return PrivacyStatement.of(PROMISE, PLAN, plan=PLAN, groups=[NAMES, OTHERS])


def after(events: list[Event] = PLAN) -> PrivacyStatement:
    late = [NamedGroups(names.names, names.column, fixed=False) for names in (NAMES, OTHERS)]
    return PrivacyStatement.of(PROMISE, events, plan=BOUNDS, groups=late)


def edited(statement: PrivacyStatement, change: Any) -> PrivacyStatement:
    """What a dishonest editor makes of it, checksum and all."""
    values = json.loads(statement.to_json())
    change(values)
    values["checksum"] = checksum(values)
    return PrivacyStatement.from_json(json.dumps(values))


def grave(statement: PrivacyStatement) -> list[str]:
    return [finding.sentence for finding in statement.check() if finding.grave]


def said(statement: PrivacyStatement, heading: str = "Groups") -> str:
    return dict(items(statement))[heading]


def test_with_shares_fixed_before_a_group_has_the_plans_price() -> None:
    statement = fixed()
    found = [group.epsilon for group in statement.groups]
    assert found[:3] == pytest.approx(by_group(PLAN, 1e-6, "add-remove", 3), rel=1e-9)
    assert found[3:] == pytest.approx(by_group(PLAN, 1e-6, "add-remove", 2, 1), rel=1e-9)
    assert [(group.name, group.cell, group.column) for group in statement.groups][2:4] == [
        ("c", 2, 0),
        ("old", 0, 1),
    ]
    assert max(found) == statement.epsilon
    assert statement.check() == []
    begun = PrivacyStatement.of(PROMISE, PLAN[:2], plan=PLAN, groups=[NAMES, OTHERS])
    assert begun.groups == statement.groups
    assert begun.check() == []


def test_after_the_fact_all_but_a_groups_own_releases_are_charged_as_planned() -> None:
    """The other column's shares were made later too: its releases are no constants, their bounds
    are."""
    statement = after()
    found = [group.epsilon for group in statement.groups]
    common, own = [Gaussian(15.0), Gaussian(25.0)], [*[Gaussian(9.0)] * 4]
    assert found[1] == pytest.approx(epsilon(common, 5e-7) + epsilon(own, 5e-7), rel=1e-9)
    common, own = [Gaussian(15.0), *[Gaussian(5.0)] * 4], [Gaussian(90.0)]
    assert found[4] == pytest.approx(epsilon(common, 5e-7) + epsilon(own, 5e-7), rel=1e-9)
    assert not any(group.fixed for group in statement.groups)
    assert statement.epsilon == pytest.approx(epsilon(BOUNDS, 1e-6))
    assert statement.check() == []
    assert "some by cell; nobody had less noise than planned" in said(statement, "Composition")


def test_a_run_that_was_interrupted_tells_nothing_of_shares_that_were_made_later() -> None:
    statement = after(PLAN[:3])
    assert all(math.isinf(group.epsilon) for group in statement.groups)
    assert statement.check() == []
    assert "a: no guarantee of its own; b:" in said(statement)
    assert "interrupted" in said(statement, "Composition")
    assert PrivacyStatement.from_json(statement.to_json()) == statement


@pytest.mark.parametrize("promise", [Promise(8.0, 1e-6), Promise(math.inf, 1e-6)])
def test_without_a_plan_every_group_has_what_the_filter_allows(promise: Promise) -> None:
    statement = PrivacyStatement.of(
        promise, PLAN if promise.is_private else [NonPrivate()], groups=[NAMES]
    )
    assert {group.epsilon for group in statement.groups} == {promise.epsilon}
    assert statement.check() == []


# Files and words
# --------------------------------------------------------------------------------------------------


def test_files_keep_groups_and_older_ones_have_none() -> None:
    statement = fixed()
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    plain = PrivacyStatement.of(PROMISE, PLAN, plan=PLAN)
    assert "groups" not in json.loads(plain.to_json())
    assert PrivacyStatement.from_json(plain.to_json()) == plain
    changed = statement.to_json().replace('"name": "b"', '"name": "B"')
    with pytest.raises(StatementError, match="checksum"):
        PrivacyStatement.from_json(changed)
    for wrong in ({"cell": -1}, {"epsilon": -1.0}, {"fixed": 1}, {"name": ""}, {"more": 2}):
        with pytest.raises(StatementError):
            edited(statement, lambda values, wrong=wrong: values["groups"][0].update(wrong))
    with pytest.raises(StatementError):
        edited(statement, lambda values: values.update(groups=3))


def test_words_say_each_groups_number_rounded_up_and_that_more_is_weaker() -> None:
    words = said(fixed())
    numbers = [group.epsilon for group in fixed().groups]
    for name, number in zip(("a", "b", "c", "old", "young"), numbers, strict=True):
        shown = float(words.split(f"{name}: epsilon = ")[1].split(";")[0].split(". ")[0])
        assert number <= shown <= number * 1.01
    assert "fixed in advance" in words
    assert "after the fact" not in words
    assert "a larger epsilon, is a weaker guarantee for that group." in words
    late = said(after())
    assert "after the fact" in late
    assert "fixed before" not in late
    assert "at twice this delta" in late


def test_without_named_groups_the_words_say_whether_noise_differs() -> None:
    assert (
        said(PrivacyStatement.of(PROMISE, [Gaussian(30.0)])) == "everybody has the same guarantee."
    )
    for event in (CELLS, PoissonSampled(0.01, CELLS), Repeated(CELLS, 2)):
        assert "no group was named" in said(PrivacyStatement.of(PROMISE, [event], plan=[event]))


def test_of_many_groups_the_words_tell_the_first_and_how_many_more() -> None:
    event = PerCell((tuple(np.linspace(5, 50, 47)),), (2.0,))
    statement = PrivacyStatement.of(
        PROMISE, [event], plan=[event], groups=[NamedGroups([f"g{k}" for k in range(47)])]
    )
    assert len(statement.groups) == 47
    words = said(statement)
    assert "g19: " in words
    assert "g20: " not in words
    assert "and 27 more, listed in the JSON" in words
    assert statement.check() == []


def test_named_groups_are_checked() -> None:
    for wrong in ((), ("a", "a"), ("a", "\x1b[2J"), "female", 3):
        with pytest.raises(StatementError):
            NamedGroups(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="column"):
        NamedGroups(("a", "b"), -1)
    with pytest.raises(StatementError, match="fixed"):
        NamedGroups(("a", "b"), fixed=1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one NamedGroups a column"):
        PrivacyStatement.of(PROMISE, PLAN, plan=PLAN, groups=[NAMES, NAMES])
    with pytest.raises(InputError, match=r"one of \[3\] cells"):
        PrivacyStatement.of(PROMISE, PLAN, plan=PLAN, groups=[NamedGroups(("a", "b"))])
    with pytest.raises(FairveilError):
        GroupGuarantee("a", 0, 0, math.nan, True)


# With a curator
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "promise",
    [
        Promise(9.0, 1e-6),
        Promise(9.0, 1e-6, neighbours="replace-one"),
        Promise(9.0, 1e-6, protects="sensitive_features"),
    ],
    ids=str,
)
def test_a_curator_tells_each_group_what_its_people_spent(promise: Promise) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 60)
    rows = Rows.from_arrays(
        rng.normal(size=(60, 2)), rng.integers(0, 2, 60), [a], classes=(0, 1), groups=[(0, 1, 2)]
    )
    counts, multipliers = CellCounts(rows.cells()), [6.0, 12.0, 20.0]
    event = describe([(counts, multipliers)], rows.layout, promise)
    assert isinstance(event, PerCell)
    bound = Gaussian(leaves.inventory(event, promise.neighbours).gaussian ** -0.5)
    curator = Curator(rows, promise, plan=[Gaussian(10.0), bound], noise=NoiseSource.seeded(0))
    curator.answer([(counts, 10.0)])
    curator.answer([(counts, multipliers)])
    curator.finish()
    statement = PrivacyStatement.of_run(curator, groups=[NamedGroups(("a", "b", "c"), fixed=False)])
    assert statement.check() == []
    found = [group.epsilon for group in statement.groups]
    own = by_group([Gaussian(10.0), event], 1e-6, promise.neighbours, 3, fixed=False)
    assert found == pytest.approx(own, rel=1e-9)
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("limits", [(2.0,), (2.0, None, None, None)])
def test_limits_are_one_a_name(limits: Any) -> None:
    with pytest.raises(StatementError, match="limits: expected 3 limits"):
        NamedGroups(("a", "b", "c"), limits=limits)


def test_a_limit_is_a_filter_of_gaussians_that_is_recomputed_from_the_log() -> None:
    """Kept where the squared distances of all that a group's people see add up to no more than it
    allows, and by no others."""
    own = [
        leaves.inventory(Gaussian(15.0), "add-remove").gaussian + 4.0 / m**2 + 1.0 / 25.0**2
        for m in CELLS.multipliers[0]
    ]
    at = [epsilon(Gaussian(square**-0.5), 1e-6, "add-remove") for square in own]
    kept = NamedGroups(NAMES.names, limits=(at[0] * (1.0 + 1e-6), None, at[2] * (1.0 + 1e-6)))
    statement = PrivacyStatement.of(PROMISE, PLAN, plan=PLAN, groups=[kept, OTHERS])
    assert statement.check() == []
    assert edited(statement, lambda values: None) == statement
    assert "a: at most" in said(statement)
    assert "b: epsilon" in said(statement)

    def lower(values: Any) -> None:
        values["groups"][2]["limit"] = at[2] * 0.999

    assert any("group 'c' has a limit" in sentence for sentence in grave(edited(statement, lower)))
    sampled = [PoissonSampled(0.5, CELLS)]
    batch = PrivacyStatement.of(
        PROMISE, sampled, plan=sampled, groups=[NamedGroups(NAMES.names, limits=(7.9, None, None))]
    )
    assert any("group 'a' has a limit" in sentence for sentence in grave(batch))
