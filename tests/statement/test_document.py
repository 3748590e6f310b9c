"""The privacy statement. G1 to G4 are the numbered guarantees of
fairveil/statement/statement.py."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairveil.core.cost import KINDS as FILTERS
from fairveil.core.cost import Filter
from fairveil.core.events import (
    Composed,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    NonPrivate,
    NoOp,
    PoissonSampled,
    Pure,
    Repeated,
)
from fairveil.errors import BudgetError, FairveilError, InputError, StatementError
from fairveil.privacy import Promise, price
from fairveil.statement import check as statement_checks
from fairveil.statement import form
from fairveil.statement.document import (
    Audit,
    PrivacyStatement,
    PublicFact,
    Receipt,
    StatedBound,
    examine,
)
from fairveil.statement.form import READ_FROM_DATA, checksum, schema
from fairveil.statement.rule import is_prefix as is_beginning
from fairveil.statement.words import items

GAUSSIANS = [Gaussian(20.0), *[Gaussian(30.0)] * 5]
PROMISE = Promise(1.0, 1e-6)
LOOSE = Promise(5.0, 1e-6, neighbours="replace-one")
RECEIPT = Receipt("census", "5f1d", 12, "0a" * 32)


def is_prefix(log: Any, plan: Any, neighbours: str = "add-remove") -> bool:
    """Whether these events are how those begin."""
    both = [form.event(Composed(tuple(one)).to_dict()) for one in (log, plan)]
    return is_beginning(both[0], both[1], neighbours)


def full() -> PrivacyStatement:
    """A statement with something in every field; its price is a closed form."""
    stated = PrivacyStatement.of(
        PROMISE,
        GAUSSIANS[:3],
        plan=GAUSSIANS,
        facts=[
            PublicFact("rows", "about 30000", "schema"),
            PublicFact("classes", "no, yes", READ_FROM_DATA),
            PublicFact("delta", "1e-06", "library default"),
        ],
        bounds=[
            StatedBound("gradient sum", "L2", 1.5, "clipped to norm 1.5"),
            StatedBound("age", "L2", 2.0, "seen", READ_FROM_DATA),
        ],
        not_covered=["held-out tables were exact"],
        tuning="one fit, no search",
        earlier_releases="none",
        audit=Audit(0.1, 0.95, "membership inference on 1000 canaries"),
        noise="seeded",
        arithmetic="float32-by-row",
        user_code="trusted",
        created="2024-01-01",
        ledger=RECEIPT,
    )
    return replace(stated, notes=("rows were set aside by independent draws",))


def sampled() -> PrivacyStatement:
    """A statement whose price needs the subsampled accountant."""
    event = Repeated(PoissonSampled(0.05, Composed((Gaussian(3.0), Gaussian(4.0)))), 20)
    return PrivacyStatement.of(LOOSE, [event], plan=[event])


def edited(statement: PrivacyStatement, *changes: tuple[str, Any]) -> PrivacyStatement:
    """What a dishonest editor makes of it: fields changed by path, checksum made anew."""
    values = json.loads(statement.to_json())
    for path, value in changes:
        *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
        target = values
        for step in steps:
            target = target[step]
        target[last] = value(target[last]) if callable(value) else value
    values["checksum"] = checksum(values)
    return PrivacyStatement.from_json(json.dumps(values))


def grave(statement: PrivacyStatement) -> list[str]:
    return [finding.sentence for finding in statement.check() if finding.grave]


# What it says
# --------------------------------------------------------------------------------------------------


def test_g1_only_words_and_checked_numbers_get_in() -> None:
    with pytest.raises(InputError, match="words"):
        PublicFact("rows", [1, 2, 3], "schema")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="origin"):
        PublicFact("rows", "many", "hearsay")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="sensitivity"):
        StatedBound("sum", "L2", math.nan, "clipped")
    with pytest.raises(InputError, match="words"):
        PublicFact("rows", "\x1b[2Jmany", "schema")
    for values in (
        ("", "5f", 1, "0a" * 32),
        ("census", "\n", 1, "0a" * 32),
        ("census", "5f", -1, "0a" * 32),
        ("census", "5f", 1, "0A"),
    ):
        with pytest.raises(InputError):
            Receipt(*values)
    with pytest.raises(StatementError, match="ledger"):
        PrivacyStatement.of(PROMISE, [], ledger="census")  # type: ignore[arg-type]


def test_g2_epsilon_is_the_accountants_price() -> None:
    statement = PrivacyStatement.of(PROMISE, GAUSSIANS, plan=GAUSSIANS)
    expected = price(GAUSSIANS, PROMISE.delta, PROMISE.neighbours)
    assert statement.epsilon == pytest.approx(expected.epsilon, rel=1e-12)
    assert statement.route == expected.route
    assert statement.delta == PROMISE.delta
    assert not statement.check()


def test_g2_a_run_interrupted_is_charged_whole() -> None:
    whole = PrivacyStatement.of(PROMISE, GAUSSIANS, plan=GAUSSIANS)
    begun = PrivacyStatement.of(PROMISE, GAUSSIANS[:2], plan=GAUSSIANS)
    assert begun.epsilon == whole.epsilon
    assert begun.events != whole.events
    assert not begun.check()
    assert "charged whole" in begun.summary()


def test_g2_a_log_that_nothing_bounds_is_not_private() -> None:
    nothing_promised = PrivacyStatement.of(Promise(math.inf, 1e-6), [Gaussian(12.0)] * 4)
    assert nothing_promised.epsilon == math.inf
    assert nothing_promised.stamps == ("not-private",)
    assert not nothing_promised.check()
    assert grave(edited(nothing_promised, ("epsilon", 0.7), ("stamps", [])))
    assert PrivacyStatement.of(Promise(math.inf, 1e-6), [NoOp()]).epsilon == 0


def test_g2_a_filter_of_another_promise_bounds_nothing_here() -> None:
    for other in (Promise(10.0, 1e-2), Promise(1.0, 1e-6, neighbours="replace-one")):
        with pytest.raises(InputError, match=r"^cap: expected a filter for epsilon=1"):
            PrivacyStatement.of(PROMISE, [Gaussian(12.0)], cap=Filter.create(other))


def test_equal_events_are_folded_and_free_ones_dropped() -> None:
    statement = PrivacyStatement.of(PROMISE, [Gaussian(30.0), NoOp(), Gaussian(30.0)])
    assert statement.events == (Repeated(Gaussian(30.0), 2),)
    assert PrivacyStatement.of(PROMISE, [NoOp()]).epsilon == 0


ITEMS = {
    "Definition and parameters": "differential privacy",
    "Groups": "everybody has the same guarantee",
    "Neighbours": "add-remove",
    "What is protected": "records: features",
    "Unit": "one row is one person",
    "Trust model": "central curator",
    "Mechanisms": "Gaussian noise  20 ",
    "Bounds": "clipped to norm 1.5 (from: argument)",
    "Composition": "computed by",
    "Sampling": "no random batch",
    "Tuning": "one fit, no search",
    "Earlier releases": "none",
    "Noise source": "INSECURE",
    "Floating point": "float32",
    "Versions": "scipy",
    "Taken as public": "delta = 1e-06 (the library's default value)",
    "Not covered": "held-out tables were exact",
    "Notes": "rows were set aside",
    "Audit": "at least 0.1, at confidence 0.95",
}


def test_the_summary_says_every_item_of_sp_800_226() -> None:
    words = dict(items(full()))
    assert list(words) == list(ITEMS)
    for heading, expected in ITEMS.items():
        assert expected in words[heading], heading
    lines = full().summary().splitlines()
    assert len([line for line in lines if not line.startswith("  ")]) == len(ITEMS)
    assert str(full()) == full().summary()


def test_every_field_of_a_file_is_recomputed_or_taken_on_trust() -> None:
    named = {*statement_checks.RECOMPUTED, *statement_checks.ON_TRUST}
    assert named == (set(schema()["properties"])) - {"format", "version"}


def test_the_summary_of_a_bare_statement_has_every_item_too() -> None:
    words = dict(items(PrivacyStatement.of(PROMISE, [])))
    assert list(words) == list(ITEMS)
    assert all(text.endswith(".") for text in words.values())


def test_words_follow_the_contents() -> None:
    sensitive = PrivacyStatement.of(
        Promise(1.0, 1e-6, protects="sensitive_features"), [Gaussian(9.0)]
    )
    assert "the sensitive columns only" in sensitive.summary()
    assert "treated as public" in sensitive.summary()
    assert "ChaCha20" in sensitive.summary()
    assert "a secret random batch, each row with probability 0.05" in sampled().summary()
    assert "(Poisson)" in sampled().summary()
    assert "classes was read from the data" in full().summary()
    assert "the bound of age was read from the data" in full().summary()
    assert "with probability 0.05  20" in dict(items(sampled()))["Mechanisms"]


def test_a_receipt_says_where_the_other_releases_are() -> None:
    words = dict(items(full()))["Earlier releases"]
    assert words.startswith("none. The ledger of data set 'census' holds this release as line 12")
    assert RECEIPT.hash in words
    alone = PrivacyStatement.of(PROMISE, GAUSSIANS, plan=GAUSSIANS)
    assert "is not counted" in dict(items(alone))["Earlier releases"]
    assert "ledger" not in alone.to_dict()
    assert dict(items(edited(alone, ("ledger", RECEIPT.__dict__))))["Earlier releases"].startswith(
        "the ledger of data set"
    )


def test_words_never_promise_more_than_the_number() -> None:
    statement = full()
    printed = float(statement.summary().split("epsilon = ")[1].split()[0])
    assert statement.epsilon <= printed <= statement.epsilon * 1.01


def test_no_privacy_is_said_everywhere() -> None:
    statement = PrivacyStatement.of(Promise(math.inf, 0.0), [NonPrivate()])
    assert math.isinf(statement.epsilon)
    assert not statement.is_private
    assert statement.stamps == ("not-private",)
    assert "NOT PRIVATE" in statement.summary()
    assert json.loads(statement.to_json())["epsilon"] == "inf"
    assert not statement.check()


# Without a plan
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, *FILTERS])
def test_g2_answers_chosen_one_after_another_are_charged_what_the_filter_allows(
    kind: str | None,
) -> None:
    cap = None if kind is None else Filter.create(PROMISE, kind)
    log = [Pure(0.01), Pure(0.02)] if kind == "pure" else [Gaussian(30.0), Gaussian(40.0)]
    statement = PrivacyStatement.of(PROMISE, log, cap=cap)
    assert statement.epsilon == PROMISE.epsilon
    assert statement.epsilon > price(log, PROMISE.delta, PROMISE.neighbours).epsilon
    assert not statement.check()
    assert f"{kind or 'renyi'} filter" in statement.summary()
    assert PrivacyStatement.from_json(statement.to_json()) == statement


def test_g2_a_log_that_the_filter_would_not_have_admitted_has_no_statement() -> None:
    with pytest.raises(BudgetError):
        PrivacyStatement.of(PROMISE, [Gaussian(1.0)])
    with pytest.raises(BudgetError):
        PrivacyStatement.of(PROMISE, [NonPrivate()])


def test_nothing_done_costs_nothing_and_needs_no_filter() -> None:
    statement = PrivacyStatement.of(PROMISE, [])
    assert statement.epsilon == 0
    assert statement.cap is None
    assert not statement.check()


def test_a_stated_epsilon_above_the_cost_is_noted_and_not_grave() -> None:
    generous = edited(full(), ("epsilon", lambda e: e * 1.05))
    assert not grave(generous)
    assert any("above the" in finding.sentence for finding in generous.check())


def test_another_version_is_noted_and_not_grave() -> None:
    elder = edited(full(), ("versions.scipy", "0.5.9"))
    assert not grave(elder)
    assert any("0.5.9" in finding.sentence for finding in elder.check())


EVENTS = st.lists(st.sampled_from([Gaussian(1.0), Gaussian(2.0), Pure(0.5)]), max_size=6)


@given(log=EVENTS, plan=EVENTS, begins=st.booleans())
def test_beginning_of_a_plan_is_what_it_is_when_spelled_out(
    log: list[Event], plan: list[Event], begins: bool
) -> None:
    if begins:
        plan = log + plan

    def folded(events: list[Event]) -> tuple[Event, ...]:
        return tuple(Repeated(event, len(list(run))) for event, run in itertools.groupby(events))

    expected = log == plan[: len(log)]
    for first, second in itertools.product((tuple(log), folded(log)), (tuple(plan), folded(plan))):
        assert is_prefix(first, second) == expected


def test_a_plan_in_rounds_is_begun_by_a_log_of_single_answers() -> None:
    one, two = Gaussian(30.0), Gaussian(40.0)
    plan = (Pure(0.1), Repeated(Composed((one, two)), 3), Repeated(Repeated(two, 2), 2))
    log = (Pure(0.1), one, two, one, two, one, two, two, two, two, two)
    for length in range(len(log) + 1):
        assert is_prefix((NoOp(), *log[:length]), plan)
    assert not is_prefix((*log, two), plan)
    assert not is_prefix((*log[:2], one), plan)


def test_long_plans_are_compared_quickly() -> None:
    assert is_prefix(
        (Repeated(Gaussian(1.0), 2**50),), (Repeated(Repeated(Gaussian(1.0), 2**50), 2),)
    )
    assert not is_prefix((Repeated(Gaussian(1.0), 2**50 + 1),), (Repeated(Gaussian(1.0), 2**50),))
    assert is_prefix((), (Repeated(Composed((Composed(()), NoOp())), 2**50),))
    rounds = Composed((Gaussian(1.0), Gaussian(2.0)))
    assert not is_prefix((Repeated(rounds, 2**50),), (Repeated(rounds, 2**50), NoOp()))


# Files
# --------------------------------------------------------------------------------------------------


ANY_EVENT = st.one_of(
    st.floats(0.5, 50).map(Gaussian),
    st.floats(0.01, 2).map(Exponential),
    st.builds(DiscreteLaplace, st.floats(0.5, 50), st.integers(1, 3)),
    st.builds(Repeated, st.floats(0.5, 50).map(Gaussian), st.integers(2, 9)),
)
PRICED = full()


@settings(max_examples=60)
@given(
    events=st.lists(ANY_EVENT, max_size=4),
    words=st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20),
    delta=st.floats(0, 0.5),
    epsilon=st.floats(0, 1e300),
)
def test_g4_a_round_trip_changes_nothing(
    events: list[Event], words: str, delta: float, epsilon: float
) -> None:
    from dataclasses import replace

    statement = replace(
        PRICED,
        events=tuple(events),
        plan=None,
        not_covered=(words,),
        tuning=words,
        delta=delta,
        epsilon=epsilon,
        route="Renyi",
    )
    assert PrivacyStatement.from_json(statement.to_json()) == statement


def leaves(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = (
        values.items()
        if isinstance(values, dict)
        else enumerate(values)
        if isinstance(values, list)
        else ()
    )
    for key, value in entries:
        yield from leaves(value, (*path, key))
    if not isinstance(values, dict | list):
        yield path


def test_the_date_is_no_part_of_the_checksum() -> None:
    from dataclasses import replace

    assert (
        full().to_dict()["checksum"] == replace(full(), created="2030-12-31").to_dict()["checksum"]
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("inf"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=4,
)


@settings(max_examples=200)
@given(data=st.data())
def test_whatever_stands_in_a_file_it_is_read_or_refused(data: st.DataObject) -> None:
    values = json.loads(PRICED.to_json())
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(leaves(values))))
        target = values
        for step in path[: data.draw(st.integers(1, len(path))) - 1]:
            target, path = target[step], path[1:]
        target[path[0]] = data.draw(JSON)
    try:
        statement, found = examine(json.dumps(values))
    except FairveilError:
        return
    assert (
        statement == PRICED
        or any(finding.grave for finding in found)
        or statement.created != PRICED.created
    )


@given(text=st.text(max_size=200))
def test_any_text_is_refused_politely(text: str) -> None:
    with pytest.raises(StatementError):
        PrivacyStatement.from_json(text)


def test_writing_makes_a_file_that_reads_back(tmp_path: Path) -> None:
    path = full().write(tmp_path / "statement.json")
    assert PrivacyStatement.from_json(path.read_text("utf-8")) == full()
    assert os.listdir(tmp_path) == ["statement.json"]


def test_a_broken_write_leaves_the_old_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "statement.json"
    sampled().write(path)
    before = path.read_bytes()

    def break_off(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", break_off)
    with pytest.raises(KeyboardInterrupt):
        full().write(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["statement.json"]


def test_rounds_of_several_releases_that_were_all_made_are_told_as_the_plan_tells_them() -> None:
    a_round = Composed((Exponential(0.1), Gaussian(50.0)))
    statement = PrivacyStatement.of(
        Promise(1.0, 1e-6),
        [Gaussian(40.0), *a_round.events * 3],
        plan=[Gaussian(40.0), Repeated(a_round, 3)],
    )
    assert statement.events == statement.plan
    assert "all of them were made" in statement.summary()
    broken_off = PrivacyStatement.of(
        Promise(1.0, 1e-6),
        [Gaussian(40.0), *a_round.events * 2],
        plan=[Gaussian(40.0), Repeated(a_round, 3)],
    )
    assert "interrupted" in broken_off.summary()
    assert broken_off.epsilon == statement.epsilon
