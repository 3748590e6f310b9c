"""The privacy statement. G1 to G4 are the numbered guarantees of
fairveil/statement/statement.py."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairveil.core.events import (
    Composed,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    PoissonSampled,
    Pure,
    Repeated,
    SamplerError,
    VisiblySampled,
)
from fairveil.core.filters import KINDS as FILTERS
from fairveil.core.filters import Filter
from fairveil.errors import BudgetError, FairveilError, InputError, StatementError
from fairveil.privacy import Promise, price
from fairveil.statement import check as statement_checks
from fairveil.statement import rule
from fairveil.statement.check import READ_FROM_DATA, checksum, schema
from fairveil.statement.document import (
    Audit,
    PrivacyStatement,
    PublicFact,
    Receipt,
    StatedBound,
    examine,
    items,
)
from fairveil.statement.rule import is_prefix as is_beginning

GAUSSIANS = [Gaussian(20.0), *[Gaussian(30.0)] * 5]
PROMISE = Promise(1.0, 1e-6)
LOOSE = Promise(5.0, 1e-6, neighbours="replace-one")
RECEIPT = Receipt("census", "5f1d", 12, "0a" * 32)


def is_prefix(log: Any, plan: Any, neighbours: str = "add-remove") -> bool:
    """Whether these events are how those begin."""
    both = [statement_checks.event(Composed(tuple(one)).to_dict()) for one in (log, plan)]
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


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_g2_sampled_events_are_priced_under_the_promised_relation(neighbours: str) -> None:
    event = PoissonSampled(0.05, Gaussian(3.0))
    statement = PrivacyStatement.of(
        Promise(5.0, 1e-6, neighbours=neighbours), [event], plan=[event]
    )
    assert statement.epsilon == pytest.approx(price([event], 1e-6, neighbours).epsilon)


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


def test_g2_a_sampler_error_inside_is_charged() -> None:
    event = VisiblySampled(0.5, Composed((Laplace(2.0), SamplerError(0.4))))
    statement = PrivacyStatement.of(
        Promise(1.0, 1e-6, neighbours="replace-one"), [event], plan=[event]
    )
    assert statement.epsilon == math.inf
    assert grave(statement)


@pytest.mark.parametrize("error", [IndexError("no such index"), TypeError("not a number")])
def test_g3_whatever_breaks_the_pricing_is_a_finding(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise error

    statement = full()
    monkeypatch.setattr(rule, "charge", broken)
    assert any("cannot be priced" in sentence for sentence in grave(statement))


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


# What contradicts itself
# ------------------------------------------------------------------------------------------------


CONTRADICTIONS: list[tuple[Callable[[], PrivacyStatement], list[tuple[str, Any]], str]] = [
    (full, [("epsilon", lambda e: e * 0.99)], "the events cost"),
    (full, [("epsilon", lambda e: e * (1 - 1e-7))], "the events cost"),
    (full, [("epsilon", 0.0)], "the events cost"),
    (
        full,
        [("epsilon", "inf"), ("stamps", lambda s: ["not-private", *s])],
        "nothing in them is unprotected",
    ),
    (full, [("plan.event.events.0.noise_multiplier", 10.0)], "the events cost"),
    (full, [("plan.event.events.1.count", 6)], "the events cost"),
    (full, [("plan.event.events.1.event.noise_multiplier", 29.9)], "the events cost"),
    (full, [("events.event.events.0.noise_multiplier", 19.0)], "not a beginning of the plan"),
    (full, [("events.event.events.1.count", 6)], "not a beginning of the plan"),
    (full, [("plan", None)], "neither a plan nor a filter"),
    (full, [("delta", 1e-5)], "at delta 1e-05"),
    (full, [("delta", 1e-7), ("promise.delta", 1e-7)], "the events cost"),
    (full, [("promise.delta", 1e-7)], "delta 1e-07"),
    (full, [("promise.epsilon", 0.2)], "above the guarantee's"),
    (full, [("accounting.neighbours", "replace-one")], "priced under 'replace-one'"),
    (full, [("promise.neighbours", "replace-one")], "priced under 'add-remove'"),
    (full, [("stamps", [])], "'seeded-noise' is missing"),
    (
        full,
        [("stamps", lambda s: [x for x in s if x != "user-code-trusted"])],
        "'user-code-trusted' is missing",
    ),
    (
        full,
        [("stamps", lambda s: [x for x in s if x != "data-dependent-bounds"])],
        "'data-dependent-bounds' is missing",
    ),
    (full, [("stamps", lambda s: ["not-private", *s])], "'not-private' contradicts"),
    (full, [("noise", "secure")], "'seeded-noise' contradicts"),
    (full, [("audit.epsilon", 2.0)], "an audit shows"),
    (
        full,
        [("versions", {"fairveil": "0.1.0", "python": "3.11.0", "numpy": "2.0"})],
        "scipy is not named",
    ),
    (sampled, [("plan.event.events.0.event.rate", 0.06)], "the events cost"),
    (
        sampled,
        [("plan.event.events.0.event.event.events.1.noise_multiplier", 3.9)],
        "the events cost",
    ),
    (sampled, [("plan.event.events.0.count", 25)], "the events cost"),
    (sampled, [("promise.epsilon", 0.5)], "above the guarantee's"),
]


@pytest.mark.parametrize(("make", "changes", "expected"), CONTRADICTIONS)
def test_g3_a_change_that_matters_is_found(
    make: Callable[[], PrivacyStatement], changes: list[tuple[str, Any]], expected: str
) -> None:
    assert not grave(make())
    assert any(expected in sentence for sentence in grave(edited(make(), *changes)))


def test_g3_a_relation_that_costs_more_is_found() -> None:
    event = PoissonSampled(0.05, Gaussian(3.0))
    cheap = PrivacyStatement.of(Promise(5.0, 1e-6), [event], plan=[event])
    forged = edited(
        cheap, ("promise.neighbours", "replace-one"), ("accounting.neighbours", "replace-one")
    )
    assert any("the events cost" in sentence for sentence in grave(forged))


def test_g3_an_unprotected_event_cannot_have_a_finite_epsilon() -> None:
    private = PrivacyStatement.of(PROMISE, [Gaussian(30.0)], plan=[Gaussian(30.0)])
    both = [(f"{part}.event.events", [NonPrivate().to_dict()]) for part in ("events", "plan")]
    assert any("the events cost inf" in sentence for sentence in grave(edited(private, *both)))


def test_g3_a_broken_promise_is_found() -> None:
    broken = PrivacyStatement.of(Promise(0.01, 1e-6), [Gaussian(30.0)], plan=[Gaussian(30.0)])
    assert any("above the guarantee's 0.01" in sentence for sentence in grave(broken))


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


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("events.event.events.0.noise_multiplier", 3.0)], "the events cost"),
        ([("events.event.events", [NonPrivate().to_dict()])], "the events cost"),
        ([("epsilon", 0.9)], "the events cost"),
        ([("cap", None)], "neither a plan nor a filter"),
        ([("promise.epsilon", 0.1), ("epsilon", 0.1)], "the events cost"),
        ([("cap.reserve", 0.9999999)], "the events cost"),
        ([("cap.order", None)], "cannot be priced"),
        ([("plan", lambda _: full().to_dict()["plan"])], "a filter is named, but there is a plan"),
    ],
)
def test_g3_a_log_beyond_its_filter_is_found(changes: list[tuple[str, Any]], expected: str) -> None:
    log = [Gaussian(7.0), Gaussian(40.0)]
    statement = PrivacyStatement.of(PROMISE, log)
    assert not statement.check()
    assert any(expected in sentence for sentence in grave(edited(statement, *changes)))


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


@pytest.mark.parametrize(
    "make", [full, sampled, lambda: PrivacyStatement.of(Promise(math.inf, 0.0), [NonPrivate()])]
)
def test_g4_a_round_trip_of_whole_statements(make: Callable[[], PrivacyStatement]) -> None:
    statement = make()
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


def test_g4_any_changed_value_is_refused() -> None:
    text = full().to_json()
    paths = [path for path in leaves(json.loads(text)) if path != ("created",)]
    assert len(paths) > 50
    for path in paths:
        values = json.loads(text)
        target = values
        for step in path[:-1]:
            target = target[step]
        old = target[path[-1]]
        target[path[-1]] = old + 1 if isinstance(old, int | float) else f"{old}x"
        with pytest.raises(StatementError):
            PrivacyStatement.from_json(json.dumps(values))


def test_the_date_is_no_part_of_the_checksum() -> None:
    from dataclasses import replace

    assert (
        full().to_dict()["checksum"] == replace(full(), created="2030-12-31").to_dict()["checksum"]
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"format"', '"more": 1, "format"'),
        ('"noise"', '"noises"'),
        ('"version": 1', '"version": 2'),
        ('"version": 1', '"version": true'),
        ('"epsilon": 1.0', '"epsilon": NaN'),
        ('"epsilon": 1.0', '"epsilon": Infinity'),
        ('"epsilon": 1.0', '"epsilon": 1e999'),
        ('"epsilon": 1.0', '"epsilon": -1.0'),
        ('"epsilon": 1.0', '"epsilon": 1' + "0" * 5000),
        ('"epsilon": 1.0', '"epsilon": true'),
        ('"format"', '"format": 1, "format"'),
        ('"kind": "gaussian"', '"kind": "magic"'),
        ('"count": 5', '"count": 99999999999999999999'),
        ('"noise_multiplier": 20.0', '"noise_multiplier": 0'),
        ('"noise_multiplier": 20.0', '"noise_multiplier": [1]'),
        ('"read from the data, not covered"', '"nobody knows"'),
        ('"entry": 12', '"entry": -1'),
        ('"spend": "5f1d"', '"spent": "5f1d"'),
        ('"dataset": "census"', '"dataset": null'),
    ],
)
def test_g4_a_malformed_file_is_refused(old: str, new: str) -> None:
    text = full().to_json()
    assert old in text
    with pytest.raises(StatementError):
        PrivacyStatement.from_json(text.replace(old, new, 1))


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


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"format": ' * 50_000, "1" * 10_000, "null", "[]", "{}"]
)
def test_hostile_text_is_refused_politely(text: str) -> None:
    with pytest.raises(StatementError):
        PrivacyStatement.from_json(text)


@pytest.mark.parametrize(
    "event",
    [
        '{"kind": "poisson-sampled", "rate": 0.01, "spreads": null, "event": '
        '{"kind": "repeated", "count": 1125899906842624, "event": {"kind": "gaussian", '
        '"noise_multiplier": 1.0}}}',
        '{"kind": "repeated", "count": 1000000000, "event": '
        '{"kind": "poisson-sampled", "rate": 0.01, "spreads": null, "event": {"kind": "gaussian", '
        '"noise_multiplier": 1.0}}}',
        '{"kind": "gaussian", "noise_multiplier": 1e-300}',
        '{"kind": "repeated", "count": 1000000, "event": {"kind": "exponential", "epsilon": '
        "1e300}}",
        '{"kind": "composed", "events": [' * 400 + "]}" * 400,
    ],
)
def test_hostile_events_are_refused_or_found_too_expensive(event: str) -> None:
    values = PrivacyStatement.of(PROMISE, []).to_dict()
    values["events"]["event"]["events"] = ["here"]
    text = json.dumps(values).replace('"here"', event)
    try:
        _, found = examine(text)
    except StatementError:
        return
    assert any(
        "cost" in finding.sentence or "cannot be priced" in finding.sentence
        for finding in found
        if finding.grave
    )


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
