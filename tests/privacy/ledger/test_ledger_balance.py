"""What is spent and left, by kind of promise, by purpose, spend by spend and over time."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairveil.core.events import Gaussian, Pure
from fairveil.core.promise import Promise
from fairveil.errors import Overspent
from fairveil.privacy.ledger import Entry, Ledger
from fairveil.privacy.ledger.balance import Step, account_of, is_open, thinned
from fairveil.privacy.ledger.costs import WHOLE
from fairveil.privacy.ledger.terms_words import (
    left_epsilon,
    left_share,
    spent_epsilon,
    spent_share,
    unsettled,
)

ADDED, REPLACED = (
    Promise(1.0, 1e-6, neighbours=relation) for relation in ("add-remove", "replace-one")
)


@pytest.fixture
def ledger() -> Ledger:
    """Two relations, three purposes, spends of each state."""
    ledger = Ledger.create(None, "balance", 3.0, 1e-6, neighbours="replace-one", who="somebody")
    spends = [
        ledger.reserve(Gaussian(12.0 + k), (ADDED, REPLACED)[k % 2], purpose=f"p{k % 3}")
        for k in range(7)
    ]
    for spend in spends[:4]:
        spend.commit(Gaussian(40.0))
    spends[4].refund()
    ledger.resume(spends[5].id, 1)
    return ledger


def test_parts_are_whole_units_and_make_up_the_budget(ledger: Ledger) -> None:
    """Guarantee 1."""
    balance, last = ledger.balance(), list(ledger.history())[-1]
    assert [(one.under, one.spends) for one in balance.by_promise] == [
        ("records, add-remove", 3),
        ("records, replace-one", 3),
    ]
    assert balance.spent_share == last.spent / WHOLE
    account = account_of(ledger.history())
    for parts in (balance.by_promise, account.by_purpose, account.spends):
        assert sum(Fraction(one.share) for one in parts) == pytest.approx(
            Fraction(last.spent, WHOLE), abs=1e-15
        )
    assert balance.spent_share + balance.left_share == pytest.approx(1.0, abs=1e-15)
    assert (balance.open, balance.committed, balance.refunded, balance.entries) == (2, 4, 1, 14)
    assert (
        json.loads(json.dumps(balance.to_dict(), allow_nan=False))["spent_share"]
        == balance.spent_share
    )


def test_spends_are_told_one_by_one(ledger: Ledger) -> None:
    account, lines = account_of(ledger.history()), list(ledger.history())
    assert [one.state for one in account.spends] == ["committed"] * 4 + [
        "refunded",
        "resumed",
        "reserved",
    ]
    assert [one.entry for one in account.spends] == list(range(1, 8))
    for one in account.spends:
        now = ledger.standing(one.spend)
        assert (one.share, is_open(one)) == (now.units / WHOLE, now.is_open)
        assert one.reserved_share == lines[one.entry].units / WHOLE
    assert ledger.balance().waiting == tuple(one.spend for one in account.spends[5:])
    assert [(one.purpose, one.spends) for one in account.by_purpose] == [
        ("p0", 3),
        ("p2", 2),
        ("p1", 1),
    ]
    assert [one.share for one in account.by_purpose] == sorted(
        (one.share for one in account.by_purpose), reverse=True
    )


def test_steps_are_the_sums_of_the_lines(ledger: Ledger) -> None:
    steps = account_of(ledger.history()).steps
    assert [(one.entry, one.share) for one in steps] == [
        (line.number, line.spent / WHOLE) for line in ledger.history()
    ]
    assert steps[0].days == 0.0
    assert all(a.days <= b.days for a, b in pairwise(steps))


def test_a_clock_that_was_set_back_and_a_date_that_is_none_turn_no_curve_round() -> None:
    first = next(Ledger.create(None, "clock", 1.0, 0.0).history())
    times = (
        "2026-01-02T00:00:00Z",
        "2026-01-05T12:00:00Z",
        "2026-01-01T00:00:00Z",
        "?",
        "2026-01-03",
    )
    lines = [replace(first, number=k, at=at) for k, at in enumerate(times)]
    assert [one.days for one in account_of(lines).steps] == [0.0, 3.5, 3.5, 3.5, 3.5]


def test_lines_that_contradict_each_other_are_summed_up_as_they_stand(ledger: Ledger) -> None:
    """Guarantee 3: settlements of nothing, lines twice, none at all."""
    lines = list(ledger.history())
    account = account_of([lines[0], lines[-1], *lines[8:], *lines[8:]])
    assert len(account.spends) == 1 or all(one.share <= 1.0 for one in account.spends)
    assert account_of([]).spends == ()


def test_a_balance_reads_no_content(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guarantee 2."""

    def refuse(entry: Entry) -> None:
        raise AssertionError(entry)

    monkeypatch.setattr(Entry, "values", property(refuse))
    assert ledger.balance().open == 2
    assert len(account_of(ledger.history()).spends) == 7


def test_the_first_spend_may_take_all_and_no_more_is_told() -> None:
    ledger = Ledger.create(None, "whole", 1.0, 0.0)
    ledger.reserve(Pure(1.0)).commit()
    balance = ledger.balance()
    assert (balance.spent_share, balance.left_share, balance.spent, balance.left) == (
        1.0,
        0.0,
        1.0,
        0.0,
    )
    assert balance.by_promise[0].share == 1.0


@given(
    st.lists(st.tuples(st.floats(0, 9), st.floats(0, 1)), min_size=1, max_size=600),
    st.integers(4, 40),
)
def test_a_thinned_curve_keeps_its_ends_and_its_height(
    points: list[tuple[float, float]], most: int
) -> None:
    times = sorted(days for days, _ in points)
    steps = [
        Step(k, "", days, share)
        for k, (days, (_, share)) in enumerate(zip(times, points, strict=True))
    ]
    kept = thinned(steps, most)
    assert len(kept) <= max(most, 4)
    assert (kept[0], kept[-1]) == (steps[0], steps[-1])
    assert max(one.share for one in kept) == max(one.share for one in steps)
    assert [one.entry for one in kept] == sorted({one.entry for one in kept})


@given(st.floats(0, 1), st.floats(1e-9, 1e3))
def test_words_promise_no_more_than_numbers(share: float, epsilon: float) -> None:
    assert float(spent_share(share).rstrip("%")) / 100 >= share - 1e-9
    assert float(left_share(share).rstrip("%")) / 100 <= share + 1e-9
    assert float(left_epsilon(epsilon)) <= epsilon * (1 + 1e-8)
    assert float(spent_epsilon(epsilon)) >= epsilon * (1 - 1e-8)
    assert float(spent_epsilon(epsilon)) <= epsilon * 1.011


def test_one_open_spend_is_told_in_the_singular() -> None:
    assert unsettled(1).startswith("1 is not settled: it runs")
    assert unsettled(1200).startswith("1,200 are not settled: they run")


def test_what_is_left_is_told_in_releases_like_the_newest_one() -> None:
    ledger = Ledger.create(None, "fits", 1.0, 1e-6)
    assert ledger.balance().more is None
    with ledger.reserve(Gaussian(12.0), purpose="a fit"):
        pass
    more = ledger.balance().more
    assert more is not None
    assert f"about {more} more releases like the newest one fit" in str(ledger.balance())
    ledger.reserve(Gaussian(30.0), purpose="refunded").refund()
    assert ledger.balance().more == more
    for _ in range(more):
        with ledger.reserve(Gaussian(12.0), purpose="a fit"):
            pass
    assert ledger.balance().more == 0
    assert "no more release like the newest one fits" in str(ledger.balance())
    with pytest.raises(Overspent):
        ledger.reserve(Gaussian(12.0), purpose="a fit")
