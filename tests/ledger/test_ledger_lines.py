"""A ledger that was tampered with is found out: every field of every line, every line taken out,
doubled or moved, every charge that was lowered; and a statement that its lines do not hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from fairveil.core import events as ev
from fairveil.core.promise import Promise
from fairveil.ledger import Entry, Ledger, Spend, findings, statement_findings
from fairveil.ledger.lines import COMMITTED, CREATED, KINDS, MOST, RESERVED, encoded
from fairveil.privacy import PrivacyStatement
from fairveil.privacy.calibration import calibrate
from fairveil.statement.document import Receipt
from fairveil.statement.form import Finding

PROMISE = Promise(1.0, 1e-5, neighbours="replace-one")
ADD_REMOVE = Promise(1.0, 1e-6)
EXACTLY: ev.Event = calibrate(PROMISE, ev.Gaussian, precision=1e-9).events
STEP = ev.PoissonSampled(0.01, ev.Gaussian(2.0))
UNSAID = ("at", "who", "code", "purpose")
"""What no other line says again: a ledger that was written anew from there on agrees with
itself."""
Lines = list[Entry]


def written() -> tuple[Ledger, list[Receipt]]:
    """Lines of every kind, and the receipts of the spends."""
    ledger = Ledger.create(None, "people", 1.0, 1e-5, neighbours="replace-one", who="me@here")
    spends = [ledger.reserve(EXACTLY, purpose="all of it")]
    spends[-1].refund()
    spends.append(ledger.reserve(ev.Repeated(STEP, 40), purpose="broke off"))
    spends[-1].commit(ev.Repeated(STEP, 11), complete=False)
    spends.append(ledger.reserve(ev.Gaussian(40.0), purpose="in two sittings"))
    ledger.resume(spends[-1].id, 1).commit()
    plan = [ev.Gaussian(60.0)] * 3
    spends.append(ledger.reserve(plan, ADD_REMOVE, read_from_data=["groups"]))
    spends[-1].commit([ev.Gaussian(60.0), ev.Gaussian(60.0), ev.Gaussian(200.0)])
    spends.append(ledger.reserve([ev.Approximate(0.01, 2e-9), ev.Laplace(300.0)], secure=False))
    spends[-1].commit([ev.Laplace(300.0), ev.Approximate(0.01, 1e-9)])
    spends.append(ledger.reserve(ev.Gaussian(50.0), purpose="died"))
    return ledger, [spend.receipt for spend in spends]


LEDGER, RECEIPTS = written()
LINES: Lines = list(LEDGER.history())
PLACES = pytest.mark.parametrize("place", range(len(LINES)))


def grave(lines: Lines, *receipts: Receipt) -> list[str]:
    return [finding.sentence for finding in findings(lines, receipts) if finding.grave]


def receipt_of(line: Entry) -> Receipt:
    return Receipt("people", line.spend, line.number, line.hash)


LAST = receipt_of(LINES[-1])


def chained(lines: Lines, at: int = 0, *, sums: bool = False, numbers: bool = False) -> Lines:
    """Hashes made anew, of the lines after `at` by the one before; sums and numbers, too, if told."""
    out: Lines = []
    spent = leaked = 0
    for place, line in enumerate(lines):
        spent, leaked = spent + line.units, leaked + line.leak
        line = replace(line, previous=out[-1].hash if place > at else line.previous)
        line = replace(line, spent=spent, leaked=leaked) if sums else line
        out.append((replace(line, number=place) if numbers else line).sealed())
    return out


def edited(place: int, **changes: Any) -> Lines:
    return [*LINES[:place], replace(LINES[place], **changes), *LINES[place + 1 :]]


def edits(line: Entry) -> Iterator[tuple[str, Any]]:
    """Every field otherwise, in several ways."""
    for field in fields(Entry):
        old = getattr(line, field.name)
        if field.type == "int":
            values: list[Any] = [old + 1, old - 1, -old - 1, old // 2 - 1]
        elif field.name == "kind":
            values = list(KINDS)
        elif field.name == "content":
            values = list(contents(old))
        else:
            other = LINES[1].spend if field.name == "spend" else "other"
            values = [old + "0", old[:-1] + "g", "", other]
        yield from ((field.name, value) for value in values if value != old)


def contents(text: str) -> Iterator[str]:
    """Every part of a content left out, or otherwise."""
    values = json.loads(text)
    yield from (encoded({**values, "more": 1}), "[]", text + " ", "no json", "[" * 2000)
    for name, value in values.items():
        yield encoded({key: other for key, other in values.items() if key != name})
        for other in (None, not value, 7, "x", {}, ev.NonPrivate().to_dict()):
            yield encoded({**values, name: other})


# -- every edit ------------------------------------------------------------------------------------


def test_what_a_ledger_wrote_has_no_grave_finding() -> None:
    assert {line.kind for line in LINES} == set(KINDS)
    (finding,) = LEDGER.check([*RECEIPTS, LAST])
    assert not finding.grave
    assert finding.sentence.startswith("spends that are not settled")
    assert finding.sentence.endswith(": 1")


@PLACES
def test_every_edit_of_every_field_is_found(place: int) -> None:
    """As it stands; where hashes were made anew, by a receipt of a later line; and without one by
    what the other lines say."""
    for name, value in edits(LINES[place]):
        forged = edited(place, **{name: value})
        assert grave(forged, LAST), name
        if name == "hash":
            continue
        anew = chained(forged, place)
        assert grave([*forged[:place], forged[place].sealed(), *forged[place + 1 :]], LAST), name
        assert grave(anew, LAST), name
        if name not in ("content", "spend"):
            assert bool(grave(anew)) is (name not in UNSAID), (name, value)


@PLACES
def test_a_charge_that_was_lowered_everywhere_is_found_by_pricing_again(place: int) -> None:
    """Sums and hashes made anew: nothing contradicts it but what the events cost."""
    line = LINES[place]
    if line.kind == CREATED:
        changes: list[dict[str, int]] = [{"units": 5}, {"leak": 5}]
    elif line.kind in (RESERVED, COMMITTED):
        kept = LEDGER.standing(line.spend) if line.kind == COMMITTED else line
        changes = [{"units": line.units - max(2, kept.units // 10**8)}]
        changes += [{"leak": line.leak - max(2, kept.leak // 10**8)}] if kept.leak else []
    else:
        changes = [{"units": line.units - 1}, {"units": line.units + 1}, {"leak": line.leak + 1}]
    for change in changes:
        assert grave(chained(edited(place, **change), sums=True)), change


@PLACES
def test_every_line_taken_out_doubled_or_moved_is_found_however_it_is_chained(place: int) -> None:
    rest = [*LINES[:place], *LINES[place + 1 :]]
    anew = chained(rest, sums=True, numbers=True)
    assert grave(rest, LAST)
    assert grave(anew, LAST)
    if place == len(LINES) - 1:  # off the end: only what was kept elsewhere tells
        assert not grave(anew)
    else:
        assert grave(rest)
    doubled = [*LINES[: place + 1], *LINES[place:]]
    for forged in (doubled, [*LINES, LINES[place]]):
        for again in (forged, chained(forged, numbers=True)):
            assert grave(again)
        assert grave(chained(forged, sums=True, numbers=True))
    if place:
        before, line = LINES[place - 1 : place + 1]
        moved = [*LINES[: place - 1], line, before, *LINES[place + 1 :]]
        assert grave(moved)
        assert grave(chained(moved, sums=True, numbers=True), LAST)
        if before.spend == line.spend or not before.spend:
            assert grave(chained(moved, sums=True, numbers=True))


# -- what a line may not say -----------------------------------------------------------------------


def test_a_charge_beyond_the_cap_is_found() -> None:
    forged = chained(edited(3, units=MOST + 1), sums=True)
    assert any("passes the cap" in sentence for sentence in grave(forged))


@pytest.mark.parametrize(
    ("how", "first", "changes"),
    [
        ({"production": True}, {}, {"noise": ["seeded", None], "read_from_data": [["age"], None]}),
        *(
            (
                {"protects": "sensitive_features", "columns": terms},
                {"columns": ["race", "sex"]},
                {"columns": [["age", "sex"], ["sex"], ["sex", "race"], "sex", []]},
            )
            for terms in (["race", "sex"], None)  # of the terms, or of the first release
        ),
    ],
)
def test_seeded_noise_in_production_and_columns_that_were_published_are_found(
    how: dict[str, Any], first: dict[str, Any], changes: dict[str, list[object]]
) -> None:
    ledger = Ledger.create(None, "people", 1.0, 1e-5, **how)
    for _ in range(2):
        ledger.reserve(ev.Gaussian(50.0), **first)
    lines = list(ledger.history())
    assert not grave(lines)
    for name, values in changes.items():
        for value in values:
            content = encoded({**json.loads(lines[2].content), name: value})
            assert grave(chained([*lines[:2], replace(lines[2], content=content)])), (name, value)


# -- statements ------------------------------------------------------------------------------------

PLAN = [ev.Gaussian(20.0), ev.Repeated(ev.compose([ev.Gaussian(30.0), ev.Laplace(90.0)]), 3)]


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger.create(None, "receipts", 3.0, 1e-6)
    ledger.reserve(ev.Gaussian(50.0), purpose="something else").commit()
    return ledger


def settled(ledger: Ledger, plan: ev.Event | Sequence[ev.Event], *done: Any) -> Spend:
    spend = ledger.reserve(plan, ADD_REMOVE)
    spend.commit(*done)
    return spend


def stated(spend: Spend, events: Sequence[ev.Event] = PLAN, **told: Any) -> PrivacyStatement:
    how = {"plan": events, "ledger": spend.receipt} | told
    return PrivacyStatement.of(how.pop("promise", Promise(3.0, 1e-6)), events, **how)


def found(ledger: Ledger, statement: PrivacyStatement) -> list[Finding]:
    return statement_findings(statement, list(ledger.history()))


def wrong(ledger: Ledger, statement: PrivacyStatement) -> str:
    """The one grave finding, or nothing."""
    sentences = [one.sentence for one in found(ledger, statement) if one.grave]
    return sentences[0] if sentences else ""


def test_a_statement_beside_its_spend_has_nothing_against_it_spelled_otherwise_too(
    ledger: Ledger,
) -> None:
    spend, pairs = settled(ledger, PLAN), [ev.Gaussian(30.0), ev.Laplace(90.0)] * 3
    assert found(ledger, stated(spend)) == found(ledger, stated(spend, [*pairs, *PLAN[:1]])) == []
    finer = settled(ledger, ev.Gaussian(30.0), ev.PerCell(((40.0, 90.0),), (2.0,)))
    assert found(ledger, stated(finer, [ev.Gaussian(30.0)])) == []


def test_what_was_not_reserved_so_is_grave(ledger: Ledger) -> None:
    spend = settled(ledger, PLAN)
    receipt = spend.receipt
    replaced = Promise(3.0, 1e-6, neighbours="replace-one")
    for statement, words in (
        (stated(spend, [*PLAN, ev.Gaussian(90.0)]), "1 of its 8 releases"),
        (stated(spend, [ev.Gaussian(19.9), *PLAN[1:]]), "1 of its 7 releases"),
        (stated(spend, promise=replaced), "under records, replace-one"),
        (stated(spend, noise="seeded"), "stated as seeded"),
        (
            replace(stated(spend), ledger=replace(receipt, hash="0" * 64)),
            "is not the one of its receipt",
        ),
        (replace(stated(spend), ledger=replace(receipt, entry=9)), "is not the one of its receipt"),
        (replace(stated(spend), ledger=replace(receipt, spend="f" * 32)), "not there"),
        (replace(stated(spend), ledger=None), "no receipt"),
    ):
        assert words in wrong(ledger, statement)
    back = ledger.reserve(ev.Gaussian(20.0))
    back.refund()
    assert "given back" in wrong(ledger, stated(back, [ev.Gaussian(20.0)]))


def test_a_statement_of_several_spends_is_found_in_all_of_them(ledger: Ledger) -> None:
    """As of a post-processor, whose base and counts are two, or of a run without a plan. Each line
    counts once, and one that was given back not at all."""
    base, counts = (settled(ledger, ev.Gaussian(noise)) for noise in (20.0, 30.0))
    two = [ev.Gaussian(20.0), ev.Gaussian(30.0)]
    finding = Finding(False, f"it is of several spends: lines {base.entry}, {counts.entry}")
    assert found(ledger, stated(counts, two)) == [finding]
    assert found(ledger, stated(counts, two, plan=None)) == [finding]
    assert wrong(ledger, stated(counts, [ev.Gaussian(20.0), *two]))
    for pair in ((23.0, 90.0), (24.0, 91.0)):
        settled(ledger, [ev.Gaussian(noise) for noise in pair])
    back = ledger.reserve(ev.Gaussian(25.0))
    last = settled(ledger, ev.Gaussian(31.0))
    back.refund()
    for others in ((23.0, 24.0), (25.0,)):  # halves of two lines are no spends
        plan = [ev.Gaussian(noise) for noise in (*others, 31.0)]
        assert "its plan is not in the ledger" in wrong(ledger, stated(last, plan))


def test_a_release_that_was_settled_as_if_it_had_not_been_made_is_grave(ledger: Ledger) -> None:
    """Whoever writes lines anew may settle a spend by less than its statement says was released."""
    honest = ledger.reserve(PLAN, ADD_REMOVE)
    honest.commit(PLAN[:1], complete=False)
    assert found(ledger, stated(honest, PLAN[:1], plan=PLAN)) == []
    words = f"6 of its releases are not among those that line {honest.entry + 1} is charged for"
    assert wrong(ledger, stated(honest)) == words
    nothing = settled(ledger, PLAN, ev.NoOp())
    assert wrong(ledger, stated(nothing)).startswith("7 of its releases")
    settled(ledger, ev.Gaussian(41.0))
    counts = settled(ledger, ev.Gaussian(42.0), ev.NoOp())
    two = [ev.Gaussian(41.0), ev.Gaussian(42.0)]
    assert wrong(ledger, stated(counts, two)).startswith("1 of its releases")


def test_lines_that_no_ledger_wrote_are_a_finding(ledger: Ledger) -> None:
    spend = settled(ledger, PLAN)
    (first, last) = [line for line in ledger.history() if line.spend == spend.id]
    for lines in (
        *([last], [first, last, last], [replace(first, purpose="x"), last]),
        *([replace(first, content=text).sealed()] for text in ("{}", "[")),
    ):
        assert any(one.grave for one in statement_findings(stated(spend), lines))
