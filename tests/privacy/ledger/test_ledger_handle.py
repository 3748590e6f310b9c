"""A ledger as a handle: never copied, refuses early and says why, grants what there is and no
more."""

from __future__ import annotations

import ast
import copy
import gc
import inspect
import math
import pickle
import random
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone

from fairveil.core.cost import epsilon as epsilon_of
from fairveil.core.events import (
    Approximate,
    Composed,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    OnPart,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
)
from fairveil.core.filters import KINDS
from fairveil.core.promise import Promise
from fairveil.errors import DataNotFoundError, FairveilError, InputError, LedgerError, Overspent
from fairveil.facts import Number, Schema
from fairveil.privacy.accounting.calibration import calibrate, scaled
from fairveil.privacy.ledger import Ledger, Spend
from fairveil.privacy.ledger.stores.entries import COMMITTED, REFUNDED, RESERVED, Entry
from fairveil.privacy.ledger.stores.store import MemoryStore
from fairveil.privacy.statement.parts import Receipt

PROMISE = Promise(1.0, 1e-5)
SMALL = Gaussian(50.0)
UNPRINTABLE = (
    "two\nlines",
    "a tab\t",
    "a bell\x07",
    "nothing\x00",
    "\x1b[31mred",
    "right\u202eleft",
    "\ud800",
    "x" * 501,
)
Child = Callable[[Callable[[], object]], Callable[[], str]]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.create(None, "people", 1.0, 1e-5)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger in a file."""
    made = Ledger.create(tmp_path / "budget.db", "people", 1.0, 1e-5, who="me@here")
    yield made
    made.close()


# -- copies ----------------------------------------------------------------------------------------


def test_guarantee_5_a_handle_is_never_copied(ledger: Ledger) -> None:
    assert clone(ledger) is copy.copy(ledger) is copy.deepcopy(ledger) is ledger
    assert copy.deepcopy([{"ledger": ledger}])[0]["ledger"] is ledger


def test_guarantee_5_pickling_opens_the_store_again(kept: Ledger) -> None:
    again = pickle.loads(pickle.dumps(kept))
    again.reserve(SMALL, purpose="in a worker").commit()
    *_, reserved, _ = kept.history()
    assert (reserved.purpose, reserved.who) == ("in a worker", "me@here")
    assert (again.dataset, again.terms, again.address, again.shown) == (
        kept.dataset,
        kept.terms,
        kept.address,
        kept.shown,
    )
    reader = Ledger.open(kept.address, read_only=True)
    assert pickle.loads(pickle.dumps(reader)).read_only
    again.close()
    reader.close()


def test_guarantee_5_a_ledger_in_memory_is_not_pickled_and_says_where_to_keep_it(
    ledger: Ledger,
) -> None:
    with pytest.raises(LedgerError, match=r"Ledger\.create\('budget\.db'"):
        pickle.dumps(ledger)
    with pytest.raises(LedgerError, match="one in memory"):
        pickle.dumps({"a": [ledger.reserve(SMALL)]})


def test_a_fork_of_a_ledger_in_memory_does_not_write_in_its_copy(
    ledger: Ledger, in_child: Child
) -> None:
    answer = in_child(lambda: ledger.reserve(SMALL))()
    assert "LedgerError" in answer
    assert "budget.db" in answer
    assert ledger.balance().entries == 1


# -- finding one -----------------------------------------------------------------------------------


def test_a_ledger_in_memory_is_found_by_its_name_while_it_lives() -> None:
    first, second = Ledger.create(None, "ones", 1.0, 1e-5), Ledger.create(None, "twos", 2.0, 1e-5)
    first.reserve(SMALL)
    assert Ledger.open(None, "ones").balance() == first.balance()
    assert Ledger.open(None, "twos").promise == second.promise
    with pytest.raises(DataNotFoundError, match="'ones', 'twos'"):
        Ledger.open(None)
    with pytest.raises(DataNotFoundError):
        Ledger.open(None, "threes")
    del first, second
    gc.collect()
    with pytest.raises(DataNotFoundError):
        Ledger.open(None, "ones")


def test_the_only_ledger_of_a_store_needs_no_name(kept: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    only = Ledger.open(path)
    assert only.dataset == "people"
    with pytest.raises(LedgerError, match="has no ledger of"):
        Ledger.create(path, "people", 9.0, 1e-5)
    Ledger.create(path, "others", 1.0, 1e-5).close()
    assert Ledger.datasets(path) == ["others", "people"]
    for name in (None, "nobody", "", "a\nb"):
        with pytest.raises(DataNotFoundError, match="'others', 'people'"):
            Ledger.open(path, name)
    with pytest.raises(DataNotFoundError):
        Ledger.open(tmp_path / "nothing.db")
    assert not (tmp_path / "nothing.db").exists()
    only.close()


def test_a_ledger_lets_go_of_its_file_and_takes_it_again(tmp_path: Path) -> None:
    path, log = tmp_path / "budget.db", tmp_path / "budget.db-wal"
    made = Ledger.create(path, "people", 1.0, 1e-5)
    for use in (
        lambda: None,
        lambda: made.reserve(SMALL),
        made.balance,
        lambda: list(made.history()),
    ):
        use()
        made.close()
        assert path.exists()
        assert not log.exists()  # the last connection took it along
        made.close()
    assert made.balance().open == 1
    made.close()


@pytest.mark.parametrize("name", [*UNPRINTABLE, "", " ", " people", "x" * 201, None, 3])
def test_names_that_cannot_be_printed_begin_no_ledger(name: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dataset"):
        Ledger.create(tmp_path / "budget.db", name, 1.0, 1e-5)
    assert not list(tmp_path.iterdir())


def test_what_promises_nothing_begins_no_ledger() -> None:
    with pytest.raises(LedgerError, match="finite epsilon"):
        Ledger.create(None, "people", math.inf, 1e-5)
    for epsilon, delta in ((0.0, 1e-5), (-1.0, 1e-5), (math.nan, 1e-5), (1.0, 1.0), (1.0, -1e-5)):
        with pytest.raises(InputError):
            Ledger.create(None, "people", epsilon, delta)
    with pytest.raises(InputError, match="neighbours"):
        Ledger.create(None, "people", 1.0, 1e-5, "sensitive_features", "add-remove")


# -- early refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize("words", UNPRINTABLE)
def test_words_that_cannot_be_printed_are_refused(ledger: Ledger, words: str) -> None:
    with pytest.raises(InputError, match="purpose: expected at most 500 printable letters"):
        ledger.reserve(SMALL, purpose=words)
    with pytest.raises(InputError, match="who"):
        Ledger.create(None, "others", 1.0, 1e-5, who=words)
    with pytest.raises(InputError, match="who"):
        Ledger.open(None, "people", who=words)
    assert ledger.balance().entries == 1


def test_guarantee_3_an_error_changes_nothing(ledger: Ledger) -> None:
    held, settled = ledger.reserve(SMALL), ledger.reserve(SMALL)
    settled.commit()
    before = list(ledger.history())
    replace_one = Promise(1.0, 1e-5, neighbours="replace-one")
    bad: list[Callable[[], object]] = [
        lambda: ledger.reserve(Gaussian(0.1)),
        lambda: ledger.reserve(NonPrivate()),
        lambda: ledger.reserve([SMALL, NonPrivate()]),
        lambda: ledger.reserve(SMALL, Promise(math.inf, 1e-5)),
        lambda: ledger.reserve(SMALL, replace_one),
        lambda: ledger.reserve(SMALL, Promise(1.0, 1e-5, "sensitive_features")),
        lambda: ledger.reserve(OnPart(SMALL, 0, 2)),
        lambda: ledger.reserve(PrivateSelection(Pure(0.01), 1.7e308, 1.0)),
        lambda: ledger.reserve(None),  # type: ignore[arg-type]
        lambda: ledger.reserve("gaussian"),  # type: ignore[arg-type]
        lambda: ledger.reserve([SMALL, 3]),  # type: ignore[list-item]
        lambda: ledger.reserve(SMALL, "records"),  # type: ignore[arg-type]
        lambda: ledger.reserve(SMALL, purpose=3),  # type: ignore[arg-type]
        lambda: ledger.reserve(SMALL, read_from_data="age"),
        lambda: ledger.reserve(SMALL, read_from_data=[1]),  # type: ignore[list-item]
        lambda: held.commit(Gaussian(20.0)),
        lambda: held.commit(NonPrivate()),
        lambda: held.commit([SMALL, "x"]),  # type: ignore[list-item]
        lambda: ledger.resume(held.id, 0),
        lambda: ledger.resume("f" * 32, 1),
        lambda: ledger.standing("f" * 32),
        settled.commit,
        settled.refund,
        lambda: list(ledger.history(-1)),
    ]
    for action in bad:
        with pytest.raises(FairveilError):
            action()
        assert list(ledger.history()) == before
    for question in (ledger.fits, ledger.terms.cost):
        with pytest.raises(FairveilError):
            question(SMALL, replace_one)


class Spied(MemoryStore):
    """It says what was read."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def entries(self, dataset: str, first: int = 0, limit: int | None = None) -> Iterator[Entry]:
        self.asked.append("entries")
        return super().entries(dataset, first, limit)

    def charges(self, dataset: str) -> Iterator[tuple[str, str, str, int]]:
        self.asked.append("charges")
        return super().charges(dataset)


def test_guarantee_4_a_spend_reads_the_head_and_its_own_lines() -> None:
    store = Spied()
    store.create("people", next(Ledger.create(None, "people", 1.0, 1e-5).history()))
    ledger = Ledger(store, "people")
    assert ledger.promise == PROMISE  # the first line is read once
    store.asked.clear()
    ledger.reserve(SMALL).commit(NoOp())
    ledger.resume(ledger.reserve(SMALL).id, 1).refund()
    with pytest.raises(Overspent):
        ledger.reserve(Gaussian(0.5))
    assert ledger.fits(SMALL)
    assert not store.asked


def test_a_production_ledger_takes_no_seeded_noise_and_nothing_that_was_read_from_the_data() -> (
    None
):
    strict, usual = (
        Ledger.create(None, name, 1.0, 1e-5, production=name == "strict")
        for name in ("strict", "usual")
    )
    for ask in (strict.require, lambda promise, **told: strict.reserve(SMALL, promise, **told)):
        with pytest.raises(LedgerError, match=r"in production.*secure noise.*random_state=None"):
            ask(PROMISE, secure=False)
        with pytest.raises(LedgerError, match=r"nothing read from the data.*bounds of age, groups"):
            ask(PROMISE, read_from_data=["groups", "bounds of age", "groups"])
        ask(PROMISE, secure=True, read_from_data=())
    spend = usual.reserve(SMALL, secure=False, read_from_data=["groups", "bounds of age", "groups"])
    line = usual.standing(spend.id).reserved
    assert (line.values["noise"], line.values["read_from_data"]) == (
        "seeded",
        ["bounds of age", "groups"],
    )
    assert strict.balance().entries == 2


def test_a_ledger_of_one_schema_takes_rows_read_by_it_alone() -> None:
    schema, other = Schema({"age": Number(0, 120)}), Schema({"age": Number(0, 121)})
    bound = Ledger.create(None, "people", 1.0, 1e-5, schema=schema)
    assert bound.terms.fingerprint == schema.fingerprint
    bound.require(PROMISE, schema=schema)
    bound.require(PROMISE)  # not known yet
    for wrong in (other, None):
        with pytest.raises(LedgerError, match=f"a schema of fingerprint {schema.fingerprint[:16]}"):
            bound.require(PROMISE, schema=wrong)
    Ledger.create(None, "others", 1.0, 1e-5).require(PROMISE, schema=None)


def test_what_cannot_be_added_up_is_refused_before_a_row_is_read(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="finite epsilon"):
        ledger.require(Promise(math.inf, 1e-5))
    with pytest.raises(LedgerError, match="a promise for records, add-remove"):
        ledger.require(Promise(1.0, 1e-5, neighbours="replace-one"))
    ledger.require(Promise(7.0, 1e-3))  # only the relation matters: what it costs is for `reserve`


def test_a_handle_to_look_does_not_write(kept: Ledger) -> None:
    spend = kept.reserve(SMALL)
    reader = Ledger.open(kept.address, read_only=True)
    before = list(kept.history())
    for action in (
        lambda: reader.require(PROMISE),
        lambda: reader.reserve(SMALL),
        lambda: reader.resume(spend.id, 1),
        Spend(reader, kept.standing(spend.id).reserved).commit,
        Spend(reader, kept.standing(spend.id).reserved).refund,
    ):
        with pytest.raises(LedgerError, match="read_only=True"):
            action()
    assert list(reader.history()) == before
    assert reader.balance() == kept.balance()
    assert reader.fits(SMALL)
    assert reader.export() == kept.export()
    assert not [finding for finding in reader.check([spend.receipt]) if finding.grave]
    assert "read_only=True" in repr(reader)
    reader.close()


# -- what there is ---------------------------------------------------------------------------------


def test_a_ledger_without_delta_adds_up_epsilons() -> None:
    ledger = Ledger.create(None, "tables", 1.0, 0.0)
    assert ledger.terms.kind == "pure"
    ledger.reserve(Laplace(4.0)).commit()
    ledger.reserve([Exponential(0.25), Pure(0.125)]).commit(Exponential(0.25), complete=False)
    balance = ledger.balance()
    assert (balance.spent, balance.left, balance.spent_share) == (0.5, 0.5, 0.5)
    with pytest.raises(LedgerError, match="delta above 0"):
        ledger.reserve(Gaussian(100.0))
    with pytest.raises(Overspent) as told:
        ledger.reserve(Approximate(0.1, 1e-12))  # it has no delta to lose
    assert told.value.largest_epsilon == 0.0
    with pytest.raises(Overspent) as told:
        ledger.reserve(Laplace(1.0))
    assert told.value.largest_epsilon == 0.5
    ledger.reserve(Laplace(2.0)).commit()
    assert ledger.balance().left == 0.0


def test_guarantee_1_eight_threads_of_one_handle_get_exactly_what_there_is(kept: Ledger) -> None:
    memory = Ledger.create(None, "crowd", 1.0, 0.0)
    file = Ledger.create(kept.address, "crowd", 1.0, 0.0)
    for ledger, times in ((memory, 50), (file, 15)):
        ready = threading.Barrier(8)

        def ask(
            _: int, ledger: Ledger = ledger, ready: threading.Barrier = ready, times: int = times
        ) -> list[str]:
            granted = []
            ready.wait()
            for _ in range(times):
                try:
                    granted.append(ledger.reserve(Pure(0.01)).id)
                except Overspent:
                    continue
            return granted

        with ThreadPoolExecutor(8) as threads:
            granted = [name for names in threads.map(ask, range(8)) for name in names]
        lines = [line.spend for line in ledger.history() if line.kind == RESERVED]
        assert len(granted) == len(set(granted)) == 100
        assert sorted(granted) == sorted(lines)
        assert ledger.balance().left == 0.0
        assert not [finding for finding in ledger.check() if finding.grave]


def test_guarantee_2_a_reservation_is_there_for_everybody_once_it_is_granted(kept: Ledger) -> None:
    other = Ledger.open(kept.address)
    spend = kept.reserve(SMALL, purpose="fit")
    line = other.standing(spend.id).reserved
    assert (line.number, line.hash, line.purpose) == (spend.entry, spend.hash, "fit")
    assert other.balance() == kept.balance()
    assert spend.receipt == Receipt("people", spend.id, line.number, line.hash)
    other.close()


# -- what is said where there is no room -----------------------------------------------------------


def event_of(kind: str, chance: random.Random) -> Event:
    """Something to ask for; not yet of the right size."""
    pure: list[Event] = [
        Pure(0.3),
        Laplace(3.0),
        Exponential(0.2),
        Composed((Pure(0.2), Laplace(7.0))),
    ]
    gaussian: list[Event] = [
        Gaussian(3.0),
        Repeated(Gaussian(9.0), 12),
        Composed((Gaussian(4.0), Gaussian(9.0))),
    ]
    any_: list[Event] = [Composed((Gaussian(8.0), Pure(0.05))), PoissonSampled(0.1, Gaussian(0.8))]
    return chance.choice(
        {
            "pure": pure,
            "gaussian": gaussian,
            "zcdp": gaussian + pure,
            "renyi": gaussian + pure + any_,
        }[kind]
    )


@pytest.mark.parametrize("seed", range(24))
def test_the_largest_epsilon_that_is_named_fits_and_little_more_does_not(seed: int) -> None:
    chance = random.Random(seed)
    kind = chance.choice(["renyi", "renyi", "gaussian", "zcdp", "pure"])
    delta = 0.0 if kind == "pure" and seed % 2 else 10 ** -chance.uniform(4, 8)
    neighbours = chance.choice(["add-remove", "replace-one"])
    ledger = Ledger.create(
        None, "people", chance.uniform(0.3, 3.0), delta, neighbours=neighbours, kind=kind
    )
    asked = Promise(
        1.0, chance.choice([delta, delta / 10, min(0.5, delta * 100)]), neighbours="add-remove"
    )
    if kind in ("renyi", "zcdp"):
        asked = ledger.promise if neighbours == "replace-one" else asked
    touched = chance.random() < 0.8
    if touched:
        part = scaled(Pure(0.4) if kind == "pure" else Gaussian(3.0))(chance.uniform(1.5, 5.0))
        for _ in range(chance.randint(1, 4)):
            if ledger.fits(part):
                ledger.reserve(part).commit()
    event = event_of(kind, chance)
    while ledger.fits(event, asked):
        event = scaled(event)(0.6)
    before = ledger.balance()
    with pytest.raises(Overspent) as told:
        ledger.reserve(event, asked)
    error = told.value
    assert (error.spent, error.left) == (before.spent, before.left)
    assert error.asked == epsilon_of(event, asked.delta, asked.neighbours)
    assert 0 < error.largest_epsilon < error.asked
    assert f"{error.largest_epsilon:g}" in str(error)

    def of(epsilon: float) -> Event:
        promise = Promise(epsilon, asked.delta, neighbours=asked.neighbours)
        return calibrate(promise, scaled(event), precision=1e-5, cache=False).events

    assert not ledger.fits(of(error.largest_epsilon * 1.001), asked)
    ledger.reserve(of(error.largest_epsilon), asked).commit()
    assert not [finding for finding in ledger.check() if finding.grave]


def test_a_full_ledger_says_that_nothing_fits() -> None:
    ledger = Ledger.create(None, "people", 1.0, 1e-5)
    while ledger.fits(Gaussian(20.0)):
        ledger.reserve(Gaussian(20.0))
    for event in (Gaussian(3.0), Laplace(1.0), Gaussian(1e99), Pure(1e-300)):
        if not ledger.fits(event):
            with pytest.raises(
                Overspent,
                match=r"The largest epsilon that fits is|Nothing of this kind fits any more",
            ):
                ledger.reserve(event)
    full = Ledger.create(None, "tables", 1.0, 0.0)
    full.reserve(Pure(1.0))
    with pytest.raises(Overspent, match=r"Nothing of this kind fits any more") as told:
        full.reserve(Pure(0.5))
    assert (told.value.spent, told.value.asked, told.value.left, told.value.largest_epsilon) == (
        1.0,
        0.5,
        0.0,
        0.0,
    )
    assert "spent 100%" in str(told.value)


def test_where_delta_is_what_is_missing_the_error_says_so(ledger: Ledger) -> None:
    ledger.reserve(Approximate(0.001, 9e-8))
    with pytest.raises(
        Overspent, match=r"at most 10% of what delta may leak, got 50% .* spent 90%, left 10%"
    ):
        ledger.reserve(Approximate(0.001, 5e-8))
    with pytest.raises(
        Overspent,
        match=r"at most 99.99% of the budget, got more than 200% .* spent 0.01%, left 99.99%",
    ):
        ledger.reserve(Gaussian(0.5))


def test_the_error_keeps_its_figures_when_a_worker_sends_it_home(ledger: Ledger) -> None:
    with pytest.raises(Overspent) as told:
        ledger.reserve(Gaussian(0.5))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(told.value, protocol))
        assert type(again) is Overspent
        assert str(again) == str(told.value)
        assert vars(again) == vars(told.value)
        assert set(vars(again)) == {"spent", "asked", "left", "largest_epsilon"}
    assert "'" not in str(told.value).split("got")[1]  # figures, not a quoted text


# -- spends as blocks ------------------------------------------------------------------------------


def test_a_block_commits_its_spend_as_reserved(ledger: Ledger) -> None:
    with ledger.reserve(SMALL) as spend:
        assert spend.is_open
    line = list(ledger.history())[-1]
    assert (line.kind, line.values) == (COMMITTED, {"events": None, "complete": True})
    assert not spend.is_open


def test_a_block_that_raises_commits_too_and_lets_the_error_out(ledger: Ledger) -> None:
    for error in (ValueError, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(error), ledger.reserve(SMALL) as spend:
            raise error
        line = list(ledger.history())[-1]
        assert (line.kind, line.spend, line.units) == (COMMITTED, spend.id, 0)
        assert line.values["complete"] is False


def test_what_a_block_settled_itself_is_left_alone(ledger: Ledger) -> None:
    with ledger.reserve([SMALL] * 3) as spend:
        spend.commit([SMALL], complete=False)
    with ledger.reserve(SMALL) as spend:
        spend.refund()

    def refund_and_fail(spend: Spend) -> None:
        spend.refund()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), ledger.reserve(SMALL) as spend:
        refund_and_fail(spend)
    assert [line.kind for line in ledger.history()][1:] == [RESERVED, COMMITTED] + [
        RESERVED,
        REFUNDED,
    ] * 2


def test_an_error_of_the_block_is_not_hidden_by_one_of_the_store(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise LedgerError("the store is gone")

    monkeypatch.setattr(Ledger, "_settle", gone)
    with pytest.raises(ZeroDivisionError), ledger.reserve(SMALL) as spend:
        raise ZeroDivisionError
    with pytest.raises(LedgerError, match="the store is gone"), ledger.reserve(SMALL):
        pass
    monkeypatch.undo()
    assert spend.is_open  # and charged as reserved


def test_words_of_a_handle_and_of_its_spends(ledger: Ledger) -> None:
    assert repr(ledger) == "Ledger('memory', 'people')"
    spend = ledger.reserve(SMALL)
    assert repr(spend) == f"Spend({spend.id!r} of {ledger!r})"
    assert (ledger.shown, ledger.address) == ("memory", None)
    line = ledger.standing(spend.id).reserved
    assert line.at.endswith("Z")
    assert line.code.startswith("fairveil ")
    assert "@" in line.who


def test_every_kind_and_every_parameter_is_documented() -> None:
    (kinds,) = re.findall(r"kind : \{(.*?)\}", inspect.getdoc(Ledger.create) or "")
    assert sorted(ast.literal_eval(f"[{kinds}]")) == sorted(KINDS)
    for name in inspect.signature(Ledger).parameters:
        assert f"\n{name} : " in (inspect.getdoc(Ledger) or "").partition("Attributes")[0]
