"""Epsilons in words: never above the limit beside them, never below the number, in no text of a
statement, report or ledger."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from fairveil.core.events import Event, Gaussian, Laplace, PerCell, Repeated
from fairveil.ledger import Ledger
from fairveil.privacy import Promise
from fairveil.privacy.calibration import calibrate, full_batch
from fairveil.show import Report
from fairveil.show.numbers import at_least, at_most, promised
from fairveil.statement.document import NamedGroups, PrivacyStatement

RNG = np.random.default_rng(0)


def epsilons(count: int) -> list[float]:
    """Round ones, crooked ones, and neighbours of round ones by the last bits."""
    round_ones = [
        0.1,
        0.3,
        0.6,
        0.7,
        1.0,
        1.1,
        2.0,
        3.0,
        8.0,
        10.0,
        0.12345,
        1 / 3,
        2 / 3,
        1.005,
        123.456,
    ]
    crooked = (10 ** RNG.uniform(-3, 2, size=count)).tolist()
    beside = [math.nextafter(one, end) for one in round_ones for end in (0.0, 1e9)]
    return [*round_ones, *crooked, *beside]


def test_guarantee_1_bounds_round_up_and_what_is_left_rounds_down() -> None:
    for value in epsilons(2000):
        assert value * (1 - 1e-12) <= float(at_most(value)) <= value * 1.01
        assert value * 0.99 <= float(at_least(value)) <= value * (1 + 1e-12)
        assert value * (1 - 1e-12) <= float(promised(value)) <= value * 1.01


def test_guarantee_2_nothing_is_shown_above_the_limit_that_it_keeps() -> None:
    for limit in epsilons(500):
        for part in (1.0, 1 - 1e-16, 1 - 1e-12, 1 - 1e-7, 0.99999, 0.9995, 0.9, 0.1, 1 + 5e-10):
            shown = at_most(limit * part, limit)
            assert float(shown) <= float(promised(limit)), (limit, part)
            assert float(shown) >= limit * part * (1 - 1e-9)


def test_guarantee_2_what_breaks_its_limit_shows_it() -> None:
    for limit in epsilons(200):
        for more in (1.00001, 1.01, 2.0):
            assert float(at_most(limit * more, limit)) > limit


def test_guarantee_3_three_digits_and_no_more() -> None:
    assert [at_most(value) for value in (0.6, 0.60000001, 0.98761, 12.34, 123456.0, 0.0, 1e-9)] == [
        *("0.6", "0.601", "0.988", "12.4", "124000", "0", "1e-09"),
    ]
    assert at_most(math.inf) == promised(math.inf) == at_least(math.inf) == "inf"


# -- every text ------------------------------------------------------------------------------------

SPENT = re.compile(r"(?:epsilon|ε) ?= ?([0-9.e+-]*[0-9])|^\S*\(([0-9.e+-]*[0-9]), ")


def shown_in(text: str) -> list[float]:
    """Every epsilon that a text shows."""
    return [float(number) for pair in SPENT.findall(text) for number in pair if number]


def plans(promise: Promise) -> list[Event]:
    """Calibrated to it: by the closed form, by quadrature, pure, on batches."""
    found: list[Event] = []
    if promise.delta > 0:
        found += [
            Repeated(Gaussian(full_batch(promise, 7)), 7),
            calibrate(promise, lambda z: Repeated(Gaussian(z), 50)).events,
        ]
    found.append(calibrate(promise, lambda z: Repeated(Laplace(z), 3)).events)
    return found


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-6, 1e-3])
def test_no_text_of_a_statement_or_a_report_shows_more_than_was_promised(delta: float) -> None:
    for epsilon in [*epsilons(0)[:15], *(10 ** RNG.uniform(-2, 1, size=8)).tolist()]:
        promise = Promise(epsilon, delta)
        for plan in plans(promise):
            statement = PrivacyStatement.of(promise, [plan], plan=[plan])
            for text in (
                str(statement),
                words_of(Report("A model", statement=statement).to_html()),
            ):
                numbers = shown_in(text)
                assert numbers
                assert max(numbers) <= float(promised(epsilon)), text


def words_of(page: str) -> str:
    return re.sub(r"<[^>]*>", " ", page)


@pytest.mark.parametrize("fixed", [True, False])
def test_groups_are_not_shown_above_their_limit_nor_above_everybody(fixed: bool) -> None:
    for epsilon in (0.3, 0.6, 1.0, 1 / 3, 2.0):
        promise = Promise(epsilon, 1e-6)
        z = full_batch(promise, 4)
        for share in (0.2, 0.5, 0.999, 1.0):
            small = full_batch(Promise(epsilon * share, 1e-6), 4)
            plan = Repeated(Gaussian(min(z, small)), 4)
            log = Repeated(PerCell(((small, z),), (1.0,)), 4)
            limits = (epsilon * share, None)
            groups = [NamedGroups(("small", "large"), 0, fixed, limits)]
            statement = PrivacyStatement.of(
                promise, [log], plan=[plan if fixed else log], groups=groups
            )
            words = dict(
                line.split(": ", 1) for line in str(statement).splitlines() if ": " in line
            )["Groups"]
            told = words.split(";")[0]
            numbers = [
                float(one) for one in re.findall(r"(?:at most|epsilon =) ([0-9.]*[0-9])", told)
            ]
            assert numbers
            assert max(numbers) <= float(promised(epsilon * share)), told
            assert max(shown_in(words), default=0.0) <= float(promised(epsilon)), words


def test_a_group_that_spent_more_than_it_was_told_after_the_fact_is_told_its_limit_alone() -> None:
    promise = Promise(1.0, 1e-6)
    z = full_batch(promise, 2)
    log = Repeated(PerCell(((z, z),), (1.0,)), 2)
    statement = PrivacyStatement.of(
        promise, [log], plan=[log], groups=[NamedGroups(("a", "b"), 0, False, (0.6, None))]
    )
    words = str(statement)
    assert "a: at most 0.6, a limit fixed in advance;" in words
    assert "0.601" not in words


def test_no_text_of_a_ledger_shows_more_than_its_budget() -> None:
    for number, epsilon in enumerate([0.3, 0.6, 1.0, 1 / 3, 0.12345, 2.0]):
        book = Ledger.create(None, f"people {number}", epsilon, 1e-6)
        for part in (0.3, 0.5, 1.0):
            left = book.balance().left
            one = Gaussian(full_batch(Promise(left * part, 1e-6), 1) * (1 + 1e-6))
            book.reserve(one, purpose="counts").commit()
            page = words_of(book.to_html())
            for text in (str(book.balance()), page):
                assert max(shown_in(text)) <= float(promised(epsilon)), text
