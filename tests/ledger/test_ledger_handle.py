"""A ledger as its users have it: found, pickled, asked, spent from, in blocks, and what it refuses."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import pickle
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone

from fairveil.core import events as ev
from fairveil.core.cost import epsilon as epsilon_of
from fairveil.core.promise import Promise
from fairveil.errors import DataNotFoundError, FairveilError, LedgerError, Overspent
from fairveil.facts import Number, Schema
from fairveil.ledger import Entry, Ledger, Spend, already_charged, current
from fairveil.ledger.lines import (
    COMMITTED,
    NAMES,
    REFUNDED,
    RESERVED,
    encoded,
)
from fairveil.privacy.calibration import calibrate, scaled

SMALL = ev.Gaussian(50.0)
PROMISE = Promise(1.0, 1e-5)
SENSITIVE = Promise(1.0, 1e-5, "sensitive_features")
REPLACE_ONE = Promise(1.0, 1e-5, neighbours="replace-one")


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.create(None, "people", 1.0, 1e-5)


@pytest.fixture
def kept(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budget.db", "people", 1.0, 1e-5)


def kinds(ledger: Ledger) -> list[str]:
    return [line.kind for line in ledger.history(1)]


def grave(ledger: Ledger) -> list[str]:
    return [found.sentence for found in ledger.check() if found.grave]


# -- handles ---------------------------------------------------------------------------------------


def test_a_handle_is_never_copied_and_a_pickle_opens_the_store_when_it_is_used(
    kept: Ledger, tmp_path: Path
) -> None:
    assert clone(kept) is copy.copy(kept) is copy.deepcopy(kept) is kept
    spend = kept.reserve(SMALL, purpose="one")
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(kept, protocol))
        assert again is not kept
        assert (again.dataset, again.address) == (kept.dataset, kept.address)
        assert again.standing(spend.id) == kept.standing(spend.id)
        again.reserve(SMALL).commit()
    assert kept.balance().committed == 4
    place, away = Path(kept.address or ""), tmp_path / "moved.db"
    place.rename(away)
    other = pickle.loads(pickle.dumps(kept))
    with pytest.raises(DataNotFoundError):
        other.balance()
    away.rename(place)
    assert other.standing(other.reserve(SMALL).id).reserved.who == kept.who
    odd = Ledger.create(tmp_path / "password=x", "people", 1.0, 1e-5)
    assert pickle.loads(pickle.dumps(odd)).is_untouched
    memory = Ledger.create(None, "people", 1.0, 1e-5)
    with pytest.raises(LedgerError, match=r"one in memory.*Ledger.create\('budget.db'"):
        pickle.dumps(memory)


def test_a_handle_to_look_does_not_write(kept: Ledger) -> None:
    spend, before = kept.reserve(SMALL), list(kept.history())
    reader = Ledger.open(kept.address or "", read_only=True)
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
    assert (reader.balance(), [*reader.history()]) == (kept.balance(), [*kept.history()])
    assert reader.fits(SMALL)
    assert not [found for found in reader.check([spend.receipt]) if found.grave]
    assert "read_only=True" in repr(reader)


# -- errors ----------------------------------------------------------------------------------------


def test_an_error_changes_nothing(ledger: Ledger) -> None:
    held, settled = ledger.reserve(SMALL), ledger.reserve(SMALL)
    settled.commit()
    before = list(ledger.history())
    asks: list[tuple[Any, ...]] = [
        *(
            (ev.Gaussian(0.1),),
            (ev.NonPrivate(),),
            ([SMALL, ev.NonPrivate()],),
            (None,),
            ("gaussian",),
        ),
        *(([SMALL, 3],), (ev.OnPart(SMALL, 0, 2),)),
        *((SMALL, Promise(math.inf, 1e-5)), (SMALL, REPLACE_ONE), (SMALL, SENSITIVE)),
        (SMALL, "records"),
    ]
    bad: list[Callable[[], object]] = [
        *(lambda ask=ask: ledger.reserve(*ask) for ask in asks),  # type: ignore[misc]
        lambda: ledger.reserve(SMALL, purpose=3),  # type: ignore[arg-type]
        lambda: ledger.reserve(SMALL, read_from_data="age"),
        lambda: ledger.reserve(SMALL, read_from_data=[1]),  # type: ignore[list-item]
        lambda: ledger.reserve(SMALL, fixed=1),  # type: ignore[arg-type]
        lambda: held.commit(ev.Gaussian(20.0)),
        lambda: held.commit(ev.NonPrivate()),
        lambda: ledger.resume(held.id, 0),
        lambda: ledger.resume("f" * 32, 1),
        lambda: ledger.standing("f" * 32),
        settled.commit,
        settled.refund,
        lambda: list(ledger.history(-1)),
        lambda: ledger.fits(SMALL, REPLACE_ONE),
    ]
    for action in bad:
        with pytest.raises(FairveilError):
            action()
        assert list(ledger.history()) == before


def test_what_the_terms_forbid_is_refused_before_and_at_a_reservation() -> None:
    schema, other = Schema({"age": Number(0, 120)}), Schema({"age": Number(0, 121)})
    strict = Ledger.create(None, "strict", 1.0, 1e-5, production=True, schema=schema)
    for ask in (strict.require, lambda promise, **told: strict.reserve(SMALL, promise, **told)):
        with pytest.raises(LedgerError, match=r"in production.*secure noise.*random_state=None"):
            ask(PROMISE, secure=False)
        with pytest.raises(LedgerError, match=r"nothing read from the data.*bounds of age, groups"):
            ask(PROMISE, read_from_data=["groups", "bounds of age", "groups"])
        ask(PROMISE, secure=True, read_from_data=())
    loose = Ledger.create(None, "loose", 1.0, 1e-5)
    for secure, noise in ((True, "secure"), (False, "seeded")):
        spend = loose.reserve(SMALL, secure=secure, read_from_data=["age"])
        told = loose.standing(spend.id).reserved.values
        assert (told["noise"], told["read_from_data"]) == (noise, ["age"])
    strict.require(PROMISE, schema=schema)
    for wrong in (other, None):
        with pytest.raises(LedgerError, match=f"a schema of fingerprint {schema.fingerprint[:16]}"):
            strict.require(PROMISE, schema=wrong)
    assert strict.balance().entries == 2


def test_a_release_that_protects_other_columns_is_refused_for_it_publishes_the_ledger_s(
    tmp_path: Path,
) -> None:
    ledger = Ledger.create(tmp_path / "b.db", "people", 1.0, 1e-5, "sensitive_features")
    ledger.reserve(SMALL)  # by hand: the ledger's
    ledger.reserve(SMALL, columns=["sex"])
    # as another process finds it: the first release that named some decides
    ledger = Ledger.open(tmp_path / "b.db")
    ledger.reserve(SMALL, columns=["race", "sex"])  # more is fine
    # all of a record is protected, whatever is named
    ledger.reserve(SMALL, Promise(1.0, 1e-5), columns=["age"])
    named = Ledger.create(None, "others", 1.0, 1e-5, "sensitive_features", columns=["sex", "race"])
    strict = Ledger.create(None, "strict", 1.0, 1e-5, "sensitive_features", production=True)
    before = list(ledger.history())
    bad: list[tuple[Ledger, list[Any]]] = [(ledger, ["race"]), (ledger, []), (ledger, ["Sex"])]
    for book, columns in (*bad, (ledger, [3]), (named, ["sex"]), (strict, ["sensitive_0"])):
        with pytest.raises(FairveilError, match=r"protect|column"):
            book.reserve(SMALL, SENSITIVE, columns=columns)
    assert list(ledger.history()) == before
    assert not grave(ledger)


# -- what there is ---------------------------------------------------------------------------------


def event_of(kind: str, chance: random.Random) -> ev.Event:
    """Something to ask for; not yet of the right size."""
    pure: list[ev.Event] = [
        ev.Pure(0.3),
        ev.Laplace(3.0),
        ev.Composed((ev.Pure(0.2), ev.Laplace(7.0))),
    ]
    gaussian: list[ev.Event] = [ev.Gaussian(3.0), ev.Repeated(ev.Gaussian(9.0), 12)]
    any_: list[ev.Event] = [
        ev.Composed((ev.Gaussian(8.0), ev.Pure(0.05))),
        ev.PoissonSampled(0.1, ev.Gaussian(0.8)),
    ]
    every = {"pure": pure, "gaussian": gaussian + pure[:2]}
    return chance.choice({**every, "renyi": gaussian + pure + any_}[kind])


@pytest.mark.parametrize("seed", range(10))
def test_the_largest_epsilon_that_is_named_fits_and_little_more_does_not(seed: int) -> None:
    chance = random.Random(seed)
    kind = ("renyi", "renyi", "gaussian", "renyi", "pure")[seed % 5]
    delta = 0.0 if kind == "pure" and seed % 2 else 10 ** -chance.uniform(4, 8)
    neighbours = chance.choice(["add-remove", "replace-one"])
    how: dict[str, Any] = {"neighbours": neighbours, "kind": kind}
    ledger = Ledger.create(None, "people", chance.uniform(0.3, 3.0), delta, **how)
    other = chance.choice([delta, delta / 10, min(0.5, delta * 100)])
    asked = Promise(1.0, other, neighbours="add-remove")
    if kind == "renyi":
        asked = ledger.promise if neighbours == "replace-one" else asked
    part = scaled(ev.Pure(0.4) if kind == "pure" else ev.Gaussian(3.0))(chance.uniform(1.5, 5.0))
    for _ in range(chance.randint(0, 4)):
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

    def of(epsilon: float) -> ev.Event:
        promise = Promise(epsilon, asked.delta, neighbours=asked.neighbours)
        return calibrate(promise, scaled(event), precision=1e-5).events

    assert not ledger.fits(of(error.largest_epsilon * 1.005), asked)
    ledger.reserve(of(error.largest_epsilon), asked).commit()
    assert not grave(ledger)


def test_a_refusal_says_what_is_missing_and_keeps_its_figures(ledger: Ledger) -> None:
    ledger.reserve(ev.Approximate(0.001, 9e-8))
    of_delta = r"at most 10.00% of what delta may leak, got 50.00% .* spent 90.00%, left 10.00%"
    with pytest.raises(Overspent, match=of_delta):
        ledger.reserve(ev.Approximate(0.001, 5e-8))
    of_all = r"at most 99.99% of the budget, got more than 200% .* spent 0.01%, left 99.99%"
    with pytest.raises(Overspent, match=of_all) as told:
        ledger.reserve(ev.Gaussian(0.5))
    again = pickle.loads(pickle.dumps(told.value))
    assert (str(again), vars(again)) == (str(told.value), vars(told.value))
    full = Ledger.create(None, "tables", 1.0, 0.0)
    full.reserve(ev.Laplace(2.0)).commit()
    full.reserve([ev.Exponential(0.25), ev.Pure(0.25)]).commit(ev.Exponential(0.25), complete=False)
    assert (full.balance().spent, full.balance().left) == (0.75, 0.25)
    with pytest.raises(LedgerError, match="delta above 0"):
        full.reserve(ev.Gaussian(100.0))
    full.reserve(ev.Pure(0.25))
    with pytest.raises(
        Overspent, match=r"spent 100.00%.*Nothing of this kind fits any more"
    ) as told:
        full.reserve(ev.Pure(0.5))
    figures = (told.value.spent, told.value.asked, told.value.left, told.value.largest_epsilon)
    assert figures == (1.0, 0.5, 0.0, 0.0)


def test_what_is_left_is_told_in_fits_like_the_newest_one() -> None:
    ledger = Ledger.create(None, "fits", 1.0, 1e-6)
    assert ledger.balance().more is None
    ledger.reserve(ev.Gaussian(12.0)).commit()
    more = ledger.balance().more
    assert more is not None
    assert f"about {more} more fits like this one" in str(ledger.balance())
    ledger.reserve(ev.Gaussian(30.0)).refund()
    assert ledger.balance().more == more
    for _ in range(more):
        ledger.reserve(ev.Gaussian(12.0)).commit()
    assert ledger.balance().more == 0
    assert "about 0 more fits like this one" in ledger._repr_html_()
    with pytest.raises(Overspent):
        ledger.reserve(ev.Gaussian(12.0))


# -- spends as blocks ------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit, SystemExit])
def test_an_error_of_a_block_is_charged_and_comes_out(
    error: type[BaseException], ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(error), ledger.reserve(SMALL, purpose="broken off"):
        raise error
    last = list(ledger.history())[-1]
    assert (last.kind, last.units, last.values["complete"]) == (COMMITTED, 0, False)
    with ledger.reserve([SMALL] * 3) as spend:
        spend.commit([SMALL], complete=False)
    with ledger.reserve(SMALL) as spend:
        spend.refund()
    assert kinds(ledger) == [RESERVED, COMMITTED] * 2 + [RESERVED, REFUNDED]

    def gone(*_: object) -> None:
        raise LedgerError("the store is gone")

    monkeypatch.setattr(Ledger, "_settle", gone)
    with pytest.raises(error), ledger.reserve(SMALL) as spend:
        raise error
    with pytest.raises(LedgerError, match="the store is gone"), ledger.reserve(SMALL):
        pass
    assert spend.is_open  # and charged as reserved


# -- the ledger of a block -------------------------------------------------------------------------


def in_thread(action: Callable[[], Any]) -> Any:
    """What it comes to in another thread."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(action).result(timeout=600)


def test_a_recording_is_every_threads_and_ends_with_its_block(kept: Ledger) -> None:
    two = Ledger.create(None, "twos", 1.0, 1e-5)
    again = Ledger.open(kept.address or "")

    def block(of: Ledger) -> Ledger | None:
        with of.recording():
            return current()

    for error in (ValueError, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(error), kept.recording(), two.recording():
            raise error
        assert current() is None
    with kept.recording() as inside:
        assert inside is current() is in_thread(current) is kept
        with already_charged():  # hides it from its own context alone
            assert current() is None
            assert in_thread(current) is kept
        assert in_thread(lambda: block(again)) is again  # the same budget
        with pytest.raises(LedgerError, match="one ledger at a time"):
            in_thread(lambda: block(two))
        with two.recording():
            assert in_thread(current) is two
            with pytest.raises(LedgerError, match="their own ledger="):
                in_thread(lambda: block(kept))
        assert current() is kept
    assert in_thread(lambda: block(two)) is two
    assert current() is None


# -- lines and documents ---------------------------------------------------------------------------


def test_a_line_is_hashed_as_the_page_says_and_read_strictly(ledger: Ledger) -> None:
    ledger.reserve(SMALL, purpose="a line").commit()
    lines = list(ledger.history())
    for line in lines:
        fields = [line.to_dict()[name] for name in NAMES if name != "hash"]
        text = json.dumps(fields, separators=(",", ":"))
        assert line.hash == hashlib.sha256(text.encode()).hexdigest()
        assert Entry.from_dict(json.loads(json.dumps(line.to_dict()))) == line
        for name, value in line.to_dict().items():
            other = value + 1 if isinstance(value, int) else f"{value}x"
            changed = replace(line, **{name: other})
            assert (changed.digest() != line.digest()) is (name != "hash")
            for wrong in (None, [value], 1.5, True, "a\nb" if isinstance(value, str) else "1"):
                with pytest.raises(LedgerError):
                    Entry.from_dict({**line.to_dict(), name: wrong})
            with pytest.raises(LedgerError):
                Entry.from_dict({**line.to_dict(), "more": 1})
    for content in ("[]", "3", "no json", '{"a":1,"a":2}', '{"a":NaN}', "[" * 300):
        with pytest.raises(LedgerError):
            _ = replace(lines[1], content=content).values
    with pytest.raises(LedgerError):
        encoded({"a": "\ud800"})
