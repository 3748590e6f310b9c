"""The life of a spend: the sum is what each was last charged, and within the cap, whatever is asked
in whatever order."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fairveil.core import events as ev
from fairveil.core.cost import epsilon as epsilon_of
from fairveil.core.promise import Promise
from fairveil.errors import FairveilError, LedgerError, Overspent, WentOnElsewhere
from fairveil.ledger import Ledger, Spend
from fairveil.ledger.lines import (
    COMMITTED,
    CREATED,
    MOST,
    REFUNDED,
    RESERVED,
    RESUMED,
    WHOLE,
)

DELTA = 2.0**-17
WHOLE_PLAN = ev.Pure(1.0 + 2.0**-17)
"""Tightly priced within (1, DELTA), and by its epsilon beyond 1."""
PROMISE = Promise(1.0, 1e-5)


# -- any sequence of steps, against a model --------------------------------------------------------

Piece = tuple[int, int]
"""An answer of epsilon k/64 and delta part/2^24: their sums are exact."""
PLANS = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 25)), min_size=0, max_size=4)


def event_of(pieces: list[Piece], split: int = 1) -> ev.Event:
    """All of them; `split`: each as so many finer ones (1 or 2)."""
    return ev.Composed(
        tuple(
            ev.Approximate(k / 64 / split, part / 2**24 / split)
            for k, part in pieces
            for _ in range(split)
        )
    )


def price_of(pieces: list[Piece]) -> tuple[int, int]:
    """In units, worked out by itself: of an epsilon of 1, and of DELTA."""
    units = math.ceil(sum(Fraction(k, 64) for k, _ in pieces) * WHOLE)
    leak = math.ceil(sum(Fraction(part, 2**24) for _, part in pieces) / Fraction(DELTA) * WHOLE)
    return min(units, 2 * WHOLE), min(leak, 2 * WHOLE)


@dataclass(frozen=True)
class Known:
    """What the model says of a spend."""

    pieces: tuple[Piece, ...]
    charge: tuple[int, int]
    whole: bool = False
    state: str = RESERVED
    sitting: int = 0
    complete: bool = False


OPEN, SETTLED = (RESERVED, RESUMED), (COMMITTED, REFUNDED)


def some(*states: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Where there is a spend in one of these states."""
    return precondition(lambda self: any(one.state in states for one in self.known.values()))


class Machine(RuleBasedStateMachine):
    """Reservations, settlements, resumed runs and dead processes, in any order."""

    lasting = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.url = str(Path(self.folder.name) / "budget.db") if self.lasting else None
        self.ledger = Ledger.create(self.url, "people", 1.0, DELTA, kind="pure")
        self.known: dict[str, Known] = {}
        self.held: dict[str, Spend] = {}
        self.lines = list(self.ledger.history())

    def teardown(self) -> None:
        self.folder.cleanup()

    # -- helpers

    def spent(self) -> tuple[int, int]:
        charges = [one.charge for one in self.known.values()]
        return sum(units for units, _ in charges), sum(leak for _, leak in charges)

    def drawn(self, data: st.DataObject, *states: str) -> tuple[str, Known, Spend]:
        """One in these states, and the handle that a process holds, or that of another process."""
        names = [name for name, one in self.known.items() if one.state in states]
        name = data.draw(st.sampled_from(names))
        now = self.known[name]
        other = Spend(self.ledger, self.ledger.standing(name).reserved, now.sitting)
        return name, now, self.held.get(name) or other

    def refused(
        self, action: Callable[[], object], error: type[FairveilError] = LedgerError
    ) -> None:
        """It raises, and not a line is added."""
        with pytest.raises(error):
            action()
        assert list(self.ledger.history()) == self.lines

    def stepped(self, name: str, now: Known) -> None:
        """A step was done: one line more, which says so."""
        old = self.known[name].charge if name in self.known else (0, 0)
        self.known[name] = now
        *before, last = self.ledger.history()
        assert before == self.lines
        assert (last.kind, last.spend) == (now.state, name)
        assert (last.units, last.leak) == (now.charge[0] - old[0], now.charge[1] - old[1])
        self.lines.append(last)

    def reserved(self, event: ev.Event, now: Known) -> None:
        assert self.ledger.fits(event)
        spend = self.ledger.reserve(event, purpose="a fit")
        assert spend.id not in self.known
        self.held[spend.id] = spend
        self.stepped(spend.id, now)
        assert (spend.entry, spend.hash) == (self.lines[-1].number, self.lines[-1].hash)

    # -- steps

    @initialize()
    def begin(self) -> None:
        assert [line.kind for line in self.lines] == [CREATED]

    @rule(pieces=PLANS, times=st.integers(1, 3))
    def reserve(self, pieces: list[Piece], times: int) -> None:
        event, charge = event_of(pieces), price_of(pieces)
        for _ in range(times):
            if all(now + more <= MOST for now, more in zip(self.spent(), charge, strict=True)):
                self.reserved(event, Known(tuple(pieces), charge))
            elif self.spent() != (0, 0) or epsilon_of(event, DELTA) > 1.0:
                # nobody is given more than is there
                assert not self.ledger.fits(event)
                self.refused(lambda: self.ledger.reserve(event), Overspent)

    @rule(at_all=st.sampled_from([True, False, False, False]))
    def reserve_all_of_it(self, at_all: bool) -> None:
        if self.spent() != (0, 0):
            assert not self.ledger.fits(WHOLE_PLAN)
            self.refused(lambda: self.ledger.reserve(WHOLE_PLAN), Overspent)
        elif at_all:
            self.reserved(WHOLE_PLAN, Known(((64, 0),), (MOST, MOST), whole=True))

    @some(*OPEN)
    @rule(
        data=st.data(),
        how=st.sampled_from(["as reserved", "a beginning", "all", "finer"]),
        complete=st.booleans(),
    )
    def commit(self, data: st.DataObject, how: str, complete: bool) -> None:
        name, now, spend = self.drawn(data, *OPEN)
        done = list(now.pieces)[: data.draw(st.integers(0, 4)) if how == "a beginning" else None]
        events = None if how == "as reserved" else event_of(done, 2 if how == "finer" else 1)
        spend.commit(events, complete=complete)
        charge = now.charge if events is None or now.whole else price_of(done)
        assert charge <= now.charge
        self.stepped(name, replace(now, charge=charge, state=COMMITTED, complete=complete))

    @some(*OPEN)
    @rule(data=st.data(), more=st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(any))
    def commit_what_was_not_reserved(self, data: st.DataObject, more: Piece) -> None:
        """More expensive in one of the two is more expensive: the other may be cheaper."""
        _, now, spend = self.drawn(data, *OPEN)
        changed = [(k + more[0], part + more[1]) for k, part in now.pieces[:1]] or [more]
        if data.draw(st.booleans()):
            changed = [(k, 0) if more[0] else (0, part) for k, part in changed]
        pieces = [*changed, *now.pieces[1:]]
        cheap = all(one <= other for one, other in zip(price_of(pieces), now.charge, strict=True))
        if not (now.whole or cheap):
            self.refused(lambda: spend.commit(event_of(pieces)))

    @some(*OPEN)
    @rule(data=st.data())
    def refund(self, data: st.DataObject) -> None:
        name, now, spend = self.drawn(data, *OPEN)
        spend.refund()
        self.stepped(name, replace(now, charge=(0, 0), state=REFUNDED))

    @some(*OPEN)
    @rule(data=st.data(), sitting=st.integers(1, 6))
    def resume(self, data: st.DataObject, sitting: int) -> None:
        name, now, earlier = self.drawn(data, *OPEN)
        if sitting <= now.sitting:
            self.refused(lambda: self.ledger.resume(name, sitting))
            return
        self.held[name] = self.ledger.resume(name, sitting)
        assert self.held[name].receipt == earlier.receipt
        self.stepped(name, replace(now, state=RESUMED, sitting=sitting))
        for settle in (earlier.commit, earlier.refund):  # its run went on elsewhere
            self.refused(settle, WentOnElsewhere)

    @some(*SETTLED)
    @rule(data=st.data())
    def settle_again(self, data: st.DataObject) -> None:
        name, now, spend = self.drawn(data, *SETTLED)
        for settle in (spend.commit, lambda: spend.commit([], complete=False), spend.refund):
            self.refused(settle)
        if now.complete:
            assert not self.ledger.resume(name, 9).is_open
            assert list(self.ledger.history()) == self.lines
        else:
            self.refused(lambda: self.ledger.resume(name, 9))

    @some(*OPEN)
    @rule()
    def die(self) -> None:
        """The process ends, with what it held: another one opens the ledger."""
        self.held.clear()
        if self.url is not None:
            self.ledger = Ledger.open(self.url, "people")
        for name in ("nobody's", ""):  # the first line has no spend
            self.refused(lambda name=name: self.ledger.resume(name, 1))  # type: ignore[misc]

    # -- what always holds

    @invariant()
    def what_is_charged_is_the_sum_over_spends_and_within_the_cap(self) -> None:
        last, balance = self.lines[-1], self.ledger.balance()
        assert (last.spent, last.leaked) == self.spent()
        assert max(self.spent()) <= MOST
        assert balance.spent_share == min(1.0, last.spent / WHOLE)
        assert balance.open == sum(one.state in OPEN for one in self.known.values())
        for name, one in self.known.items():
            found = self.ledger.standing(name)
            assert ((found.units, found.leak), found.last) == (one.charge, one.state)
            told = (found.sitting, found.whole, found.complete)
            assert told == (one.sitting, one.whole, one.complete)

    @invariant()
    def a_check_finds_nothing_grave(self) -> None:
        assert not [finding for finding in self.ledger.check() if finding.grave]


class LastingMachine(Machine):
    """The same in a file."""

    lasting = True


@pytest.mark.parametrize(("machine", "examples"), [(Machine, 30), (LastingMachine, 4)])
def test_guarantees_1_and_2_after_any_steps(machine: type[Machine], examples: int) -> None:
    how = settings(max_examples=examples, stateful_step_count=25, deadline=None)
    run_state_machine_as_test(machine, settings=how)


# -- settling --------------------------------------------------------------------------------------


def test_of_two_bounds_one_is_charged_and_not_the_smaller_half_of_each() -> None:
    """A log more expensive in units and cheaper in delta than its plan: the least of each would be
    less than either."""
    ledger = Ledger.create(None, "people", 1.0, 1e-5)
    plan, log = ev.Approximate(0.001, 5e-8), ev.Gaussian(6.0)
    planned, done = ledger.terms.cost(plan, PROMISE), ledger.terms.cost(log, PROMISE)
    assert done.units > planned.units
    assert done.leak < planned.leak
    for first, second in ((plan, log), (log, plan)):
        spend = ledger.reserve(first)
        with pytest.raises(
            LedgerError, match=r"costs at most the .* reserved, got .* of the budget"
        ):
            spend.commit(second)
        assert spend.is_open
        spend.commit()


def test_last_bits_of_a_log_are_no_overspending() -> None:
    """Many parts of one plan, added up one by one: a little more than at once."""
    ledger = Ledger.create(None, "people", 1.0, 0.0)
    spend = ledger.reserve(ev.Pure(0.3))
    parts = [ev.Pure(0.1), ev.Pure(0.2)]  # 0.30000000000000004
    assert (
        ledger.terms.cost(parts, ledger.promise).units
        > ledger.terms.cost(ev.Pure(0.3), ledger.promise).units
    )
    spend.commit(parts)
    found = ledger.standing(spend.id)
    assert found.units == ledger.terms.cost(ev.Pure(0.3), ledger.promise).units
    assert not [finding for finding in ledger.check() if finding.grave]
    with pytest.raises(LedgerError, match="costs at most"):
        ledger.reserve(ev.Pure(0.3)).commit([ev.Pure(0.1), ev.Pure(0.2 + 1e-9)])
