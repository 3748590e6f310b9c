"""An exported ledger: the same lines again, or a typed error, whatever is in the document; a store
is then as it was."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairveil.core.events import (
    KINDS,
    Approximate,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    SamplerError,
    VisiblySampled,
    ZeroConcentrated,
    from_dict,
)
from fairveil.core.promise import Promise
from fairveil.errors import LedgerError
from fairveil.privacy.ledger import Ledger
from fairveil.privacy.ledger.costs import MOST
from fairveil.privacy.ledger.documents import parse, read
from fairveil.privacy.ledger.stores.entries import Entry

EVENTS: list[Event] = [
    NoOp(),
    Gaussian(60.0),
    DiscreteGaussian(60.0),
    Laplace(60.0),
    DiscreteLaplace(60.0, 2),
    Exponential(0.01),
    Pure(0.01),
    Approximate(0.01, 1e-9),
    ZeroConcentrated(1e-4),
    SamplerError(1e-12),
    PerCell(((60.0, 80.0), (90.0, 90.0)), (1.0, 2.0), (1, 0)),
    Composed((Gaussian(80.0), Pure(0.01))),
    Repeated(Gaussian(90.0), 2),
    PoissonSampled(0.01, Composed((Gaussian(3.0), Laplace(9.0))), (1.0, 2.0)),
    VisiblySampled(0.1, Gaussian(60.0)),
    OnPart(Gaussian(60.0), 0, 3),
    PrivateSelection(Pure(0.01), 2.0, 1.0),
]


def begun() -> Ledger:
    """A ledger with every kind of event in it."""
    ledger = Ledger.create(
        None, "people", 2.0, 1e-5, "records", "replace-one", production=True, who="me@here"
    )
    for number, event in enumerate(EVENTS):
        spend = ledger.reserve([event, Gaussian(400.0)], purpose=f"fit {number}, “quoted”")
        if number % 4 == 1:
            spend.commit(event)
        elif number % 4 == 2:
            ledger.resume(spend.id, 1).commit(complete=False)
        elif number % 4 == 3:
            spend.refund()
    ledger.reserve(Gaussian(50.0), Promise(1.0, 1e-6)).commit()
    return ledger


LEDGER = begun()
DOCUMENT = LEDGER.export()
LINES = list(LEDGER.history())
ODD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2,
        10**18,
        1 << 62,
        1 << 63,
        -(1 << 63),
        0.5,
        -0.0,
        1e-300,
        5e-324,
        1e300,
        1.7e308,
    ),
    *(
        "",
        "inf",
        "nan",
        "x",
        "0",
        "\ud800",
        "\x00",
        "a\nb",
        "9" * 400,
        [],
        [[]],
        [1.0],
        {},
        {"kind": "gaussian"},
    ),
    *(NonPrivate().to_dict(), *(event.to_dict() for event in EVENTS[1:])),
]
ODD_VALUES = (
    st.sampled_from(ODD)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)


def restored(tmp_path: Path, document: str) -> Ledger:
    return Ledger.restore(tmp_path / "copy.db", document)


def refused(document: str) -> None:
    with pytest.raises(LedgerError) as told:
        Ledger.restore(None, document)
    assert len(str(told.value)) < 2000


def chained(entries: list[Any]) -> list[Any]:
    """Hashes made anew, where the lines can be read at all."""
    out: list[Any] = []
    for values in entries:
        try:
            line = Entry.from_dict({**values, "previous": out[-1]["hash"]} if out else values)
        except (LedgerError, TypeError):
            return entries
        out.append(line.sealed().to_dict())
    return out


def document(entries: list[Any]) -> str:
    return json.dumps({"format": "fairveil ledger", "version": 1, "entries": entries})


def places(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a tree."""
    yield path
    inside = (
        values.items()
        if isinstance(values, dict)
        else enumerate(values)
        if isinstance(values, list)
        else ()
    )
    for name, inner in inside:
        yield from places(inner, (*path, name))


def changed(values: Any, path: tuple[Any, ...], new: Any, how: str = "replace") -> Any:
    """A copy with another value at this place."""
    if not path:
        return new
    out = copy.deepcopy(values)
    parent = out
    for name in path[:-1]:
        parent = parent[name]
    if how == "remove":
        del parent[path[-1]]
    elif how == "add" and isinstance(parent, dict):
        parent[f"{path[-1]}."] = new
    elif how == "add":
        parent.insert(path[-1], new)
    else:
        parent[path[-1]] = new
    return out


# -- guarantee 1 -----------------------------------------------------------------------------------


def test_guarantee_1_what_was_written_reads_back_as_the_same_lines(tmp_path: Path) -> None:
    assert set(KINDS) - {event.kind for event in EVENTS} == {"non-private"}  # which no ledger takes
    assert read(DOCUMENT) == parse(DOCUMENT) == LINES
    copied = restored(tmp_path, DOCUMENT)
    assert list(copied.history()) == LINES
    assert copied.export() == DOCUMENT == Ledger.restore(None, DOCUMENT).export()
    assert copied.terms == LEDGER.terms
    assert copied.balance() == LEDGER.balance()
    # It goes on: what was open may be settled, and the next line is chained to the last.
    spend = next(
        line.spend
        for line in LINES
        if LEDGER.standing(line.spend or LINES[1].spend).is_open and line.spend
    )
    copied.resume(spend, 7).commit()
    copied.reserve(Gaussian(90.0)).commit()
    assert not [finding for finding in copied.check() if finding.grave]
    copied.close()


def test_a_ledger_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    other = Ledger.create(tmp_path / "copy.db", "others", 1.0, 1e-6)
    restored(tmp_path, DOCUMENT).close()
    with pytest.raises(LedgerError, match="has no ledger of"):
        restored(tmp_path, DOCUMENT)
    assert Ledger.datasets(tmp_path / "copy.db") == ["others", "people"]
    assert list(Ledger.open(tmp_path / "copy.db", "people").history()) == LINES
    other.close()


# -- guarantee 2 -----------------------------------------------------------------------------------


def test_guarantee_2_a_refused_document_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    bad = document([*json.loads(DOCUMENT)["entries"], json.loads(DOCUMENT)["entries"][-1]])
    for wrong in (bad, "", "{}", document([])):
        with pytest.raises(LedgerError):
            restored(tmp_path, wrong)
        assert not list(tmp_path.iterdir())
    Ledger.create(tmp_path / "copy.db", "others", 1.0, 1e-6).close()
    before = (tmp_path / "copy.db").read_bytes()
    for wrong in (bad, "[]", DOCUMENT[:-3]):
        with pytest.raises(LedgerError):
            restored(tmp_path, wrong)
    assert (tmp_path / "copy.db").read_bytes() == before
    assert Ledger.datasets(tmp_path / "copy.db") == ["others"]


@pytest.mark.parametrize("name", [field.name for field in fields(Entry)])
def test_guarantee_2_a_value_of_another_kind_in_any_field_of_any_line(name: str) -> None:
    values = json.loads(DOCUMENT)
    for place in (0, 1, 3, len(LINES) - 1):
        for odd in ODD:
            if odd == values["entries"][place][name] and type(odd) is type(
                values["entries"][place][name]
            ):
                continue
            wrong = changed(values, ("entries", place, name), odd)
            refused(json.dumps(wrong))
        refused(json.dumps(changed(values, ("entries", place, name), None, "remove")))
        refused(json.dumps(changed(values, ("entries", place, name), 1, "add")))


@pytest.mark.parametrize("name", ["format", "version", "entries"])
def test_guarantee_2_a_frame_that_no_ledger_wrote(name: str) -> None:
    values = json.loads(DOCUMENT)
    for odd in [*ODD, "fairveil statement", 1.0, True, values]:
        if odd is not values and (odd, type(odd)) == (values[name], type(values[name])):
            continue
        refused(json.dumps({**values, name: odd}))
    refused(json.dumps({key: value for key, value in values.items() if key != name}))
    refused(json.dumps({**values, f"{name}.": 1}))


def test_guarantee_2_text_that_is_hardly_json() -> None:
    line = json.dumps(json.loads(DOCUMENT)["entries"][0])
    frame = '{"format":"fairveil ledger","version":1,"entries":[%s]}'
    for wrong in (
        *(
            "",
            " ",
            "null",
            "NaN",
            "\x00",
            "\ufeff" + DOCUMENT,
            DOCUMENT + "}",
            DOCUMENT + DOCUMENT,
            DOCUMENT[:-2],
        ),
        *(
            "[" * 200_000,
            '{"a":' * 200_000,
            frame % ("[" * 100_000 + "]" * 100_000),
            frame % line.replace('"units": 0', '"units": NaN'),
        ),
        *(
            frame % line.replace('"units": 0', f'"units": {odd}')
            for odd in ("1e999", "9" * 5000, "-Infinity", "0x1", "00", "1e1")
        ),
        *(
            frame % line.replace('"units": 0', '"units": 0, "units": 0'),
            frame % f"{line},{line}",
            frame % line[:-1],
        ),
        frame.replace('"version":1', '"version":1,"version":1') % line,
        frame % line.replace("me@here", "\\ud800"),
        frame % line.replace("me@here", "\ud800"),
    ):
        refused(wrong)
    assert read(frame % line)
    for nothing in (None, b"{}", 3, [], json.loads(DOCUMENT)):
        with pytest.raises(LedgerError, match="text of an exported ledger"):
            Ledger.restore(None, nothing)  # type: ignore[arg-type]


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=[]), max_size=60)
    | st.binary(max_size=60).map(lambda raw: raw.decode("latin-1"))
)
def test_guarantee_2_any_text(text: str) -> None:
    refused(text)


@settings(max_examples=200, deadline=None)
@given(
    start=st.integers(0, len(DOCUMENT)),
    length=st.integers(0, 30),
    text=st.text('0123456789.eE-+[]{}",:ai n\\u', max_size=6),
)
def test_guarantee_2_a_damaged_document_is_never_taken_for_another(
    start: int, length: int, text: str
) -> None:
    damaged = DOCUMENT[:start] + text + DOCUMENT[start + length :]
    try:
        lines = read(damaged)
    except LedgerError:
        return
    assert lines == LINES  # but for what stands between words


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_guarantee_2_a_tree_with_another_branch_is_read_as_lines_that_agree_or_refused(
    data: st.DataObject,
) -> None:
    """Anything anywhere, in lines or in their contents, with the hashes made anew so that it is
    read to the end."""
    entries = json.loads(DOCUMENT)["entries"]
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(entries) - 1))
        new, how = (
            data.draw(ODD_VALUES),
            data.draw(st.sampled_from(["replace", "replace", "remove", "add"])),
        )
        if data.draw(st.booleans()):
            path = data.draw(st.sampled_from(list(places(entries[at]))))
            entries[at] = changed(entries[at], path, new, how)
        else:
            try:
                content = json.loads(entries[at]["content"])
                path = data.draw(st.sampled_from(list(places(content))))
            except (LookupError, TypeError, ValueError):
                continue
            entries[at] = {**entries[at], "content": json.dumps(changed(content, path, new, how))}
    text = document(chained(entries))
    try:
        copied = Ledger.restore(None, text)
    except LedgerError:
        return
    assert not [finding for finding in copied.check() if finding.grave]
    assert json.loads(copied.export())["entries"] == json.loads(text)["entries"]
    assert not math.isinf(copied.promise.epsilon)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_guarantee_2_every_kind_of_event_with_any_value_in_any_place(event: Event) -> None:
    """As the plan of a line whose hash is right, and which is charged all that there is: it is
    priced, or it is no event."""
    entries = json.loads(DOCUMENT)["entries"][:2]
    content = json.loads(entries[1]["content"])
    charged = {**entries[1], "units": MOST, "leak": MOST, "spent": MOST, "leaked": MOST}
    taken = 0
    for path in places(event.to_dict()):
        for odd in [*ODD, event.to_dict()]:
            plan = changed(event.to_dict(), path, odd)
            line = {**charged, "content": json.dumps({**content, "plan": plan})}
            try:
                read(document(chained([entries[0], line])))
            except LedgerError:
                continue
            assert LEDGER.terms.cost(from_dict(plan), LEDGER.promise).within(0, 0)
            taken += 1
    assert 0 < taken < len(ODD) * len(list(places(event.to_dict())))
