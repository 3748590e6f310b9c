"""The ledger of a block is every thread's, ends with the block, and is the only one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import fairveil
from fairveil.core.events import Gaussian
from fairveil.errors import DataNotFoundError, InputError, LedgerError
from fairveil.privacy.ledger import Ledger, current, ledger
from fairveil.privacy.ledger.ambient import already_charged


@pytest.fixture
def one() -> Ledger:
    return Ledger.create(None, "ones", 1.0, 1e-5)


@pytest.fixture
def two() -> Ledger:
    return Ledger.create(None, "twos", 1.0, 1e-5)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    assert current() is None
    yield
    assert current() is None


def in_thread(action: Callable[[], Any]) -> Any:
    """What it comes to in another thread."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(action).result(timeout=600)


def test_guarantee_3_what_is_charged_hides_the_block_from_its_own_context_alone(
    one: Ledger,
) -> None:
    with ledger(one):
        with already_charged():
            assert current() is None
            assert in_thread(current) is one
        assert current() is one


def test_guarantee_1_blocks_nest_and_end(one: Ledger, two: Ledger) -> None:
    with ledger(one) as outer:
        assert outer is current() is one
        with ledger(two), ledger(one):
            assert current() is one
        with ledger(two) as inner:
            assert inner is current() is two
        assert current() is one
    assert current() is None
    assert fairveil.ledger is ledger


def test_guarantee_1_a_block_that_raises_ends(one: Ledger, two: Ledger) -> None:
    for error in (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(error), ledger(one), ledger(two):
            raise error
        assert current() is None
    with ledger(one):
        for wrong in ("nothing.db", 3, Path("nowhere") / "nothing.db"):
            with pytest.raises((DataNotFoundError, InputError, TypeError)), ledger(wrong):  # type: ignore[arg-type]
                pass
        with pytest.raises(InputError, match="leave dataset out"), ledger(two, "twos"):
            pass
        assert current() is one


def test_guarantee_1_a_block_is_every_threads(one: Ledger, two: Ledger) -> None:
    with ledger(one):
        assert in_thread(current) is one
        with ledger(two):
            assert in_thread(current) is two
        assert in_thread(current) is one

    def begin_and_fail() -> None:
        with ledger(one):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_thread(begin_and_fail)
    assert in_thread(current) is None


def test_guarantee_2_two_threads_have_no_blocks_of_different_ledgers(
    one: Ledger, two: Ledger
) -> None:
    def block(of: Ledger) -> Ledger | None:
        with ledger(of):
            return current()

    with ledger(one):
        assert in_thread(lambda: block(one)) is one
        with pytest.raises(LedgerError, match="one ledger at a time"):
            in_thread(lambda: block(two))
        assert current() is one
        # also of the outer one
        with ledger(two), pytest.raises(LedgerError, match="one ledger at a time"):
            in_thread(lambda: block(one))
    assert in_thread(lambda: block(two)) is two


def test_guarantee_2_a_block_inside_is_refused_while_another_thread_has_the_outer_one(
    one: Ledger, two: Ledger
) -> None:
    begun, done = threading.Event(), threading.Event()

    def other() -> Ledger | None:
        with ledger(one):
            begun.set()
            done.wait(20)
            return current()

    with ThreadPoolExecutor(1) as threads:
        told = threads.submit(other)
        assert begun.wait(20)
        with ledger(one):
            with pytest.raises(LedgerError, match="their own ledger="), ledger(two):
                pass
            assert current() is one
        assert current() is one  # the other thread's
        done.set()
        assert told.result(20) is one


def test_guarantee_2_whatever_threads_do_no_two_ledgers_are_ever_in_force(
    one: Ledger, two: Ledger
) -> None:
    """Blocks begun and ended at once: whoever got one sees that ledger for as long as it lasts."""
    ready, wrong = threading.Barrier(6), []

    def begin(of: Ledger) -> int:
        refused = 0
        ready.wait(20)
        for _ in range(200):
            try:
                with ledger(of):
                    wrong.extend([current()] if current() is not of else [])
            except LedgerError:
                refused += 1
        return refused

    with ThreadPoolExecutor(6) as threads:
        refused = list(threads.map(begin, [one, two] * 3))
    assert not wrong
    assert all(0 <= times <= 200 for times in refused)


def test_a_generator_holds_its_block_until_it_ends_in_whatever_order(
    one: Ledger, two: Ledger
) -> None:
    def fits(of: Ledger) -> Iterator[Ledger | None]:
        with ledger(of):
            yield current()
            yield current()

    first = fits(one)
    assert next(first) is one
    assert current() is one
    second = fits(two)
    assert next(second) is two
    assert list(first) == [two]  # the innermost is in force, and the outer one ends first
    assert current() is two
    second.close()
    assert current() is None
    third = fits(one)
    next(third)
    with ledger(two):
        third.close()
        assert current() is two
    fourth = fits(one)
    next(fourth)
    in_thread(fourth.close)  # the last to hold it may be another thread
    assert current() is None


def test_two_handles_of_one_ledger_are_one(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    made = Ledger.create(path, "people", 1.0, 1e-5)
    Ledger.create(path, "others", 1.0, 1e-5).close()

    def reserve(name: str) -> None:
        with ledger(path, name) as found:
            assert current() is found
            found.reserve(Gaussian(50.0)).commit()
            found.close()

    with ledger(made):
        in_thread(lambda: reserve("people"))
        with pytest.raises(LedgerError, match="one ledger at a time"):
            in_thread(lambda: reserve("others"))
    with ledger(str(path), "people") as found:
        assert found.balance().committed == 1
        found.close()
    with pytest.raises(DataNotFoundError, match="'others', 'people'"), ledger(path):
        pass
    made.close()
