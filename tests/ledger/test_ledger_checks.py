"""A ledger that was tampered with is found out: every field of every line, every line taken out,
added, doubled or moved."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
)
from fairveil.core.promise import Promise
from fairveil.ledger import Entry, Ledger, findings
from fairveil.ledger.entries import (
    COMMITTED,
    CREATED,
    KINDS,
    MOST,
    REFUNDED,
    RESERVED,
    RESUMED,
    encoded,
)
from fairveil.privacy.accounting.calibration import calibrate
from fairveil.statement.document import Receipt

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
LAST = Receipt("people", LINES[-1].spend, LINES[-1].number, LINES[-1].hash)


def grave(
    lines: Lines, head: Receipt | None = None, receipts: list[Receipt] | None = None
) -> list[str]:
    """What is grave. `head`: of the last line, as it was kept elsewhere."""
    kept = [*(receipts or []), *([head] if head else [])]
    return [finding.sentence for finding in findings(lines, kept) if finding.grave]


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
    assert grave(LINES, LAST, RECEIPTS) == []


@pytest.mark.parametrize("place", range(len(LINES)))
def test_guarantee_1_every_edit_of_every_field_is_found(place: int) -> None:
    for name, line in edits(LINES[place]):
        edited = with_line(place, line)
        assert grave(edited, LAST), name
        if name != "hash":
            # the next line, or the head, has the old hash
            assert grave(with_line(place, line.sealed()), LAST), name
            assert grave([*LINES[:place], *chained_from(place, line)], LAST), name  # the head has


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


# -- every line taken out, added, doubled, moved ---------------------------------------------------


@pytest.mark.parametrize("place", range(len(LINES)))
def test_guarantee_1_every_line_taken_out_is_found(place: int) -> None:
    rest = [*LINES[:place], *LINES[place + 1 :]]
    assert grave(rest, LAST)
    anew = chained(rest, sums=True, numbers=True)
    assert grave(anew, LAST)
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
    assert grave(doubled, LAST)
    assert grave(doubled)
    assert grave(chained(doubled, numbers=True))
    assert grave(chained(doubled, sums=True, numbers=True))
    at_the_end = chained([*LINES, LINES[place]], sums=True, numbers=True)
    assert grave(at_the_end, LAST)
    assert grave(at_the_end)


@pytest.mark.parametrize("place", range(len(LINES) - 1))
def test_guarantee_1_lines_that_changed_places_are_found(place: int) -> None:
    first, second = LINES[place : place + 2]
    moved = [*LINES[:place], second, first, *LINES[place + 2 :]]
    assert grave(moved, LAST)
    assert grave(moved)
    anew = chained(moved, sums=True, numbers=True)
    assert grave(anew, LAST)
    assert grave(anew, receipts=RECEIPTS) or place > RECEIPTS[-1].entry
    if first.spend == second.spend:
        assert grave(anew)


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
