"""A ledger that was tampered with is found out: every field of every line, every line taken out,
added, doubled or moved."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

from fairveil.core.events import (
    Approximate,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    PoissonSampled,
    Repeated,
    from_dict,
    to_json_dict,
)
from fairveil.core.promise import Promise
from fairveil.privacy.accounting.calibration import calibrate, scaled
from fairveil.privacy.ledger import Ledger
from fairveil.privacy.ledger.checking import findings
from fairveil.privacy.ledger.costs import MOST
from fairveil.privacy.ledger.stores.entries import (
    COMMITTED,
    CREATED,
    KINDS,
    REFUNDED,
    RESERVED,
    RESUMED,
    Entry,
    encoded,
)
from fairveil.privacy.ledger.stores.store import MemoryStore
from fairveil.privacy.ledger.terms import Terms
from fairveil.privacy.statement.parts import Receipt

PROMISE = Promise(1.0, 1e-5, neighbours="replace-one")
ADD_REMOVE = Promise(1.0, 1e-6)
EXACTLY: Event = calibrate(PROMISE, Gaussian, precision=1e-9).events
STEP = PoissonSampled(0.01, Gaussian(2.0))
UNSAID = ("at", "who", "code", "purpose")
"""What no other line says again: a ledger that was written anew from there on agrees with
itself."""
Lines = list[Entry]


def written() -> tuple[Ledger, list[Receipt]]:
    """Lines of every kind, and the receipts of the spends."""
    ledger = Ledger.create(None, "people", 1.0, 1e-5, neighbours="replace-one", who="me@here")
    spends = [ledger.reserve(EXACTLY, purpose="all of it")]
    spends[-1].refund()
    spends.append(ledger.reserve(Repeated(STEP, 40), purpose="broke off"))
    spends[-1].commit(Repeated(STEP, 11), complete=False)
    spends.append(ledger.reserve(Gaussian(40.0), purpose="in three sittings"))
    ledger.resume(spends[-1].id, 1)
    ledger.resume(spends[-1].id, 2).commit()
    spends.append(
        ledger.reserve(
            [Gaussian(60.0)] * 3, ADD_REMOVE, purpose="under add-remove", read_from_data=["groups"]
        )
    )
    spends[-1].commit([Gaussian(60.0), Gaussian(60.0), Gaussian(200.0)])
    spends.append(
        ledger.reserve([Approximate(0.01, 2e-9), Laplace(300.0)], purpose="leaks", secure=False)
    )
    spends[-1].commit([Laplace(300.0), Approximate(0.01, 1e-9)])
    spends.append(ledger.reserve(Gaussian(50.0), purpose="goes on"))
    ledger.reserve(Gaussian(45.0), purpose="died")
    spends.append(ledger.reserve(Gaussian(55.0), purpose="was not asked"))
    spends[-1].refund()
    return ledger, [spend.receipt for spend in spends]


LEDGER, RECEIPTS = written()
LINES: Lines = list(LEDGER.history())
HEAD = (LINES[-1].number, LINES[-1].hash)


def grave(
    lines: Lines, head: tuple[int, str] | None = None, receipts: list[Receipt] | None = None
) -> list[str]:
    """What is grave; the head is as the lines have it where none is given."""
    kept = head or ((lines[-1].number, lines[-1].hash) if lines else HEAD)
    return [finding.sentence for finding in findings(lines, kept, receipts or []) if finding.grave]


def chained(lines: Lines, *, sums: bool = False, numbers: bool = False) -> Lines:
    """Hashes made anew from the first line on; sums and numbers, too, if told."""
    out: Lines = []
    spent = leaked = 0
    for place, line in enumerate(lines):
        spent, leaked = spent + line.units, leaked + line.leak
        line = replace(line, previous=out[-1].hash if out else line.previous)
        line = replace(line, spent=spent, leaked=leaked) if sums else line
        out.append((replace(line, number=place) if numbers else line).sealed())
    return out


def with_line(place: int, line: Entry) -> Lines:
    return [*LINES[:place], line, *LINES[place + 1 :]]


def edits(line: Entry) -> Iterator[tuple[str, Entry]]:
    """Every field otherwise, in several ways."""
    for field in fields(Entry):
        old = getattr(line, field.name)
        values: list[Any]
        if field.type == "int":
            values = [old + 1, old - 1, -old - 1, old // 2 - 1]
        elif field.name == "kind":
            values = [kind for kind in KINDS if kind != old]
        elif field.name == "content":
            values = [text for text in contents(old) if text != old]
        else:
            values = [
                old + "0",
                old[:-1] + "g",
                "",
                LINES[1].spend if field.name == "spend" else "other",
            ]
        yield from (
            (field.name, replace(line, **{field.name: value})) for value in values if value != old
        )


def contents(text: str) -> Iterator[str]:
    """Every part of a content left out, or otherwise."""
    values = json.loads(text)
    yield from (
        encoded({}),
        encoded({**values, "more": 1}),
        "[]",
        text + " ",
        "null",
        "no json",
        "[" * 2000,
    )
    for name, value in values.items():
        yield encoded({key: other for key, other in values.items() if key != name})
        for other in (None, not value, 7, "x", {}, NonPrivate().to_dict()):
            yield encoded({**values, name: other})


# -- every edit ------------------------------------------------------------------------------------


def test_guarantee_3_what_a_ledger_wrote_has_no_grave_finding() -> None:
    assert {line.kind for line in LINES} == set(KINDS)
    found = LEDGER.check(RECEIPTS)
    assert not [finding for finding in found if finding.grave]
    assert [finding.sentence.split(":")[0] for finding in found] == ["2 spends are not settled"]
    assert grave(LINES, HEAD, RECEIPTS) == []


@pytest.mark.parametrize("place", range(len(LINES)))
def test_guarantee_1_every_edit_of_every_field_is_found(place: int) -> None:
    for name, line in edits(LINES[place]):
        edited = with_line(place, line)
        assert grave(edited, HEAD), name
        if name != "hash":
            # the next line, or the head, has the old hash
            assert grave(with_line(place, line.sealed()), HEAD), name
            assert grave([*LINES[:place], *chained_from(place, line)], HEAD), name  # the head has


def chained_from(place: int, line: Entry) -> Lines:
    """The line as it was made, sealed, and all later ones chained to it anew."""
    out = [line.sealed()]
    for later in LINES[place + 1 :]:
        out.append(replace(later, previous=out[-1].hash).sealed())
    return out


@pytest.mark.parametrize("place", range(len(LINES)))
def test_guarantee_1_lines_head_and_hashes_written_anew_are_found_by_what_they_say_or_by_a_later_receipt(
    place: int,
) -> None:
    last_receipt = max(receipt.entry for receipt in RECEIPTS)
    for name, line in edits(LINES[place]):
        if name == "hash":
            continue
        rewritten = [*LINES[:place], *chained_from(place, line)]
        alone = grave(rewritten)
        if name not in (*UNSAID, "content", "spend"):
            assert alone, (name, line)
        if name in UNSAID:
            assert not alone
        if place <= last_receipt:
            assert grave(rewritten, receipts=RECEIPTS), (name, line)


@pytest.mark.parametrize("place", range(1, len(LINES)))
def test_guarantee_2_a_charge_that_was_lowered_everywhere_is_found_by_pricing_again(
    place: int,
) -> None:
    """Sums, hashes and head made anew: nothing contradicts it but what the events cost."""
    line = LINES[place]
    if line.kind in (RESUMED, REFUNDED):
        changes = [
            replace(line, units=line.units - 1),
            replace(line, units=line.units + 1),
            replace(line, leak=line.leak + 1),
        ]
    else:
        charged = LEDGER.standing(line.spend) if line.kind == COMMITTED else None
        units, leak = (charged.units, charged.leak) if charged else (line.units, line.leak)
        changes = [replace(line, units=line.units - max(2, units // 10**8))]
        changes += [replace(line, leak=line.leak - max(2, leak // 10**8))] if leak else []
    for changed in changes:
        forged = chained(with_line(place, changed), sums=True)
        assert grave(forged), changed


def test_guarantee_2_plans_and_logs_that_cost_more_than_was_charged_are_found() -> None:
    dearer = {3: "plan", 4: "events", 10: "events", 12: "events", 13: "plan", 15: "plan"}
    for place, name in dearer.items():
        values = json.loads(LINES[place].content)
        values[name] = scaled(from_dict(values[name]))(0.3).to_dict()
        forged = chained(with_line(place, replace(LINES[place], content=encoded(values))))
        assert any("its events cost" in sentence for sentence in grave(forged)), place
    # Also where nothing was given back: a log beside a charge that is as it was reserved.
    place = next(line.number for line in LINES if line.kind == COMMITTED and line.units == 0)
    forged = with_line(
        place,
        replace(
            LINES[place], content=encoded({"events": Gaussian(3.0).to_dict(), "complete": True})
        ),
    )
    assert any("its events cost" in sentence for sentence in grave(chained(forged)))
    nonsense = with_line(
        place,
        replace(LINES[place], content=encoded({"events": to_json_dict(STEP), "complete": True})),
    )
    assert grave(chained(nonsense))


# -- every line taken out, added, doubled, moved ---------------------------------------------------


@pytest.mark.parametrize("place", range(len(LINES)))
def test_guarantee_1_every_line_taken_out_is_found(place: int) -> None:
    rest = [*LINES[:place], *LINES[place + 1 :]]
    assert grave(rest, HEAD)
    anew = chained(rest, sums=True, numbers=True)
    assert grave(anew, HEAD)
    if place == len(LINES) - 1:
        # the end of a list, and the head with it: only what was kept elsewhere tells
        assert not grave(anew)
        assert grave(anew, receipts=[receipt_of(LINES[place])])
    else:
        assert grave(rest)
        assert grave(anew, receipts=RECEIPTS) or LINES[place].number > RECEIPTS[-1].entry


def receipt_of(line: Entry) -> Receipt:
    return Receipt("people", line.spend, line.number, line.hash)


@pytest.mark.parametrize("place", range(len(LINES)))
def test_guarantee_1_every_line_doubled_is_found_however_it_is_chained(place: int) -> None:
    doubled = [*LINES[: place + 1], *LINES[place:]]
    assert grave(doubled, HEAD)
    assert grave(doubled)
    assert grave(chained(doubled, numbers=True))
    assert grave(chained(doubled, sums=True, numbers=True))
    at_the_end = chained([*LINES, LINES[place]], sums=True, numbers=True)
    assert grave(at_the_end, HEAD)
    assert grave(at_the_end)


@pytest.mark.parametrize("place", range(len(LINES) - 1))
def test_guarantee_1_lines_that_changed_places_are_found(place: int) -> None:
    first, second = LINES[place : place + 2]
    moved = [*LINES[:place], second, first, *LINES[place + 2 :]]
    assert grave(moved, HEAD)
    assert grave(moved)
    anew = chained(moved, sums=True, numbers=True)
    assert grave(anew, HEAD)
    assert grave(anew, receipts=RECEIPTS) or place > RECEIPTS[-1].entry
    if first.spend == second.spend:
        assert grave(anew)


def test_no_lines_and_another_ledgers_lines_are_found() -> None:
    assert grave([], HEAD)
    assert grave(LINES[1:], HEAD)
    other = Ledger.create(None, "others", 1.0, 1e-5)
    other.reserve(Gaussian(50.0))
    assert grave([*LINES[:2], *list(other.history())[2:]], HEAD)
    assert grave([LINES[0], *list(other.history())[1:]])


# -- what a line may not say -----------------------------------------------------------------------


def test_lines_beyond_the_cap_are_found() -> None:
    last = LINES[-1]
    content = json.loads(LINES[15].content)
    more = Entry(
        *(
            last.number + 1,
            RESERVED,
            "e" * 32,
            last.at,
            "me",
            "1.0",
            "",
            LINES[15].under,
            encoded(content),
        ),
        *(MOST, 0, last.spent + MOST, last.leaked, last.hash),
    ).sealed()
    assert any("passes the cap" in sentence for sentence in grave([*LINES, more]))
    assert not grave([*LINES, replace(more, units=MOST - last.spent, spent=MOST).sealed()])


def test_a_whole_ledger_is_only_given_where_nothing_was_charged() -> None:
    def forged(place: int, **changes: Any) -> list[str]:
        content = {**json.loads(LINES[place].content), **changes.pop("content", {})}
        return grave(
            chained(
                with_line(place, replace(LINES[place], content=encoded(content), **changes)),
                sums=True,
            )
        )

    assert LINES[1].units == LINES[1].leak == MOST
    assert any("could not be" in found for found in forged(1, leak=MOST - 1))
    assert any("could not be" in found for found in forged(1, units=MOST - 1))
    assert any(
        "could not be" in found for found in forged(1, content={"plan": Gaussian(3.0).to_dict()})
    )
    assert any(
        "its events cost" in found for found in forged(1, content={"whole": False}, units=5, leak=0)
    )
    assert any("could not be" in found for found in forged(3, content={"whole": True}))
    assert any(
        "could not be" in found
        for found in forged(13, content={"whole": True}, units=MOST, leak=MOST)
    )
    assert any(
        "could not be" in found for found in forged(1, content={"promise": ADD_REMOVE.to_dict()})
    )


def test_a_whole_spend_is_not_given_back_in_parts() -> None:
    ledger = Ledger.create(None, "people", 1.0, 1e-5)
    ledger.reserve(EXACTLY).commit(Gaussian(100.0), complete=False)
    lines = list(ledger.history())
    assert not grave(lines)
    for changes in ({"units": -MOST // 2}, {"leak": -1}):
        forged = chained([*lines[:2], replace(lines[2], **changes)], sums=True)
        assert any("gives back a part" in found for found in grave(forged)), changes


def test_a_line_that_cannot_even_be_priced_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise OverflowError("too large")

    monkeypatch.setattr(Terms, "cost", breaks)
    assert any("OverflowError: too large" in found for found in grave(LINES))


def test_a_first_line_says_its_terms_and_no_more() -> None:
    for changes in (
        {"units": 5},
        {"leak": 5},
        {"units": -5},
        {"spend": "5f"},
        {"under": "records, add-remove"},
    ):
        forged = chained([replace(LINES[0], **changes), *LINES[1:]], sums=True)  # type: ignore[arg-type]
        assert any("says more than its terms" in found for found in grave(forged)), changes
    assert grave(chained([replace(LINES[0], kind=RESERVED), *LINES[1:]]))
    assert grave(chained([replace(LINES[0], number=1, kind=CREATED), *LINES[1:]]))


def test_in_production_a_line_with_seeded_noise_is_found() -> None:
    ledger = Ledger.create(None, "people", 1.0, 1e-5, production=True)
    ledger.reserve(Gaussian(50.0)).commit()
    lines = list(ledger.history())
    assert not grave(lines)
    for changes in (
        {"noise": "seeded"},
        {"noise": None},
        {"read_from_data": ["age"]},
        {"read_from_data": None},
    ):
        content = encoded({**json.loads(lines[1].content), **changes})
        assert any(
            "production" in found
            for found in grave(chained([lines[0], replace(lines[1], content=content), lines[2]]))
        )


def test_a_line_that_does_not_protect_the_ledgers_columns_is_found() -> None:
    for columns in (["race", "sex"], None):  # of the terms, or of the first release
        ledger = Ledger.create(None, "people", 1.0, 1e-5, "sensitive_features", columns=columns)
        ledger.reserve(Gaussian(50.0))
        ledger.reserve(Gaussian(50.0), columns=["race", "sex"])
        ledger.reserve(Gaussian(50.0), columns=["age", "race", "sex"])
        ledger.reserve(Gaussian(90.0), Promise(1.0, 1e-5))
        lines = list(ledger.history())
        assert not grave(lines)
        for place, named in (
            (3, ["age", "sex"]),
            (3, ["sex"]),
            (3, ["sex", "race"]),
            (3, "sex"),
            (3, []),
            (4, ["race", "sex"]),
        ):
            content = encoded({**json.loads(lines[place].content), "columns": named})
            assert grave(
                chained(
                    [*lines[:place], replace(lines[place], content=content), *lines[place + 1 :]]
                )
            ), (place, named)


def test_a_date_before_the_last_is_told_and_not_grave() -> None:
    lines = chained(with_line(5, replace(LINES[5], at="2001-01-01T00:00:00.000000Z")))
    found = findings(lines, (lines[-1].number, lines[-1].hash))
    assert [one.sentence for one in found if "dated before" in one.sentence] == [
        "line 5 is dated before the line above it"
    ]
    assert not any(one.grave for one in found)


# -- receipts, and a ledger that is written in meanwhile -------------------------------------------


def test_receipts_that_do_not_fit_are_found_each() -> None:
    good = RECEIPTS[2]
    bad = {
        "is not the one of which a receipt was given": [
            replace(good, hash="0" * 64),
            replace(good, spend=RECEIPTS[3].spend),
        ],
        "which is not there": [replace(good, entry=len(LINES)), replace(good, entry=10**6)],
        "of data set 'others'": [replace(good, dataset="others")],
    }
    for words, receipts in bad.items():
        for receipt in receipts:
            for given in (
                [receipt],
                [receipt, good],
                [good, receipt],
                [*RECEIPTS, receipt, receipt],
            ):
                assert any(words in sentence for sentence in grave(LINES, receipts=given)), given
                assert [finding for finding in LEDGER.check(given) if finding.grave]
    assert not grave(LINES, receipts=[*RECEIPTS, *RECEIPTS])


class Busy(MemoryStore):
    """Somebody writes between any two readings."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] = lambda: None

    def kept_head(self, dataset: str) -> tuple[int, str]:
        head = super().kept_head(dataset)
        self.meanwhile()
        return head


def test_guarantee_3_a_ledger_that_is_written_in_meanwhile_has_no_grave_finding() -> None:
    busy = Busy()
    busy.create("people", LINES[0])
    ledger = Ledger(busy, "people")
    busy.meanwhile = lambda: ledger.reserve(Gaussian(2000.0))
    for _ in range(3):
        assert not [finding for finding in ledger.check() if finding.grave]
    assert len(list(ledger.history())) == 7


class Kept(MemoryStore):
    """Its head stands still."""

    head: tuple[int, str] | None = None

    def kept_head(self, dataset: str) -> tuple[int, str]:
        return self.head or super().kept_head(dataset)


def test_guarantee_1_lines_and_a_head_that_disagree_are_found_by_the_ledger() -> None:
    store = Kept()
    store.create("people", LINES[0])
    with store.writing("people") as page:
        for line in LINES[1:]:
            page.append(line)
    ledger = Ledger(store, "people")
    assert not [finding for finding in ledger.check(RECEIPTS) if finding.grave]
    for place in (0, 5, len(LINES) - 2):
        store.head = (place, LINES[place].hash)
        assert any(
            "the head beside says" in finding.sentence and finding.grave
            for finding in ledger.check()
        )
    for head in ((len(LINES), HEAD[1]), (HEAD[0], "0" * 64), (-1, HEAD[1])):
        store.head = head
        assert any(finding.grave for finding in ledger.check())
