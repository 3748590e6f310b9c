"""One line: read strictly, and sealed so that any change shows."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairveil.errors import LedgerError
from fairveil.privacy.ledger.stores.entries import (
    FIRST_PREVIOUS,
    KINDS,
    RESERVED,
    Entry,
    encoded,
    parsed,
)

LINE = Entry(
    3,
    RESERVED,
    "5f",
    "2026-01-02T03:04:05.000006Z",
    "me@here",
    "1.0",
    "",
    "records",
    '{"a":1}',
    5,
    2,
    9,
    2,
    FIRST_PREVIOUS,
).sealed()
WHOLE = [field.name for field in fields(Entry) if field.type == "int"]
TEXT = [field.name for field in fields(Entry) if field.type == "str"]


def trees(
    numbers: st.SearchStrategy[int], letters: st.SearchStrategy[str]
) -> st.SearchStrategy[Any]:
    """What JSON may hold, of such whole numbers and letters."""
    text = st.text(letters, max_size=8)
    leaves = st.none() | st.booleans() | numbers | st.floats() | text
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=6,
    )


ANY_JSON = trees(st.integers(), st.characters(exclude_categories=[]))  # half letters, too


def test_guarantee_1_a_line_reads_back_as_it_was_written() -> None:
    for kind in KINDS:
        line = replace(LINE, kind=kind, purpose="the prices, “quoted”, by Ωmega", units=-5).sealed()
        assert Entry.from_dict(json.loads(json.dumps(line.to_dict()))) == line
    assert LINE.values == {"a": 1}


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from([*WHOLE, *TEXT]), value=ANY_JSON)
@example("number", True)
@example("number", 1.0)
@example("units", 1 << 63)
@example("who", "a\nb")
@example("who", "a\x00")
@example("content", '{"\ud800":1}')
@example("content", '{"a":\n1}')
@example("purpose", "right\u202eleft")
@example("kind", "stolen")
@example("hash", None)
def test_guarantee_1_a_field_of_another_kind_is_refused(name: str, value: object) -> None:
    values = {**LINE.to_dict(), name: value}
    fits = (
        (type(value) is int and abs(value) <= 1 << 62)
        if name in WHOLE
        else isinstance(value, str) and value.isprintable() and (name != "kind" or value in KINDS)
    )
    if fits:
        assert Entry.from_dict(values).to_dict() == values
    else:
        with pytest.raises(LedgerError, match="Only a ledger writes its entries"):
            Entry.from_dict(values)


@settings(max_examples=200, deadline=None)
@given(values=ANY_JSON)
def test_guarantee_1_anything_else_is_refused(values: object) -> None:
    with pytest.raises(LedgerError):
        Entry.from_dict(values)
    whole = LINE.to_dict()
    with pytest.raises(LedgerError):
        Entry.from_dict({**whole, "more": values})
    for name in whole:
        with pytest.raises(LedgerError):
            Entry.from_dict({key: value for key, value in whole.items() if key != name})


def test_guarantee_2_any_change_of_any_field_changes_the_hash() -> None:
    seen = {LINE.hash}
    others: dict[str, list[Any]] = {
        name: [getattr(LINE, name) + 1, -getattr(LINE, name)] for name in WHOLE
    }
    others |= {
        name: [getattr(LINE, name) + "0", getattr(LINE, name)[1:] + "x"]
        for name in TEXT
        if name != "hash"
    }
    for name, values in others.items():
        for value in values:
            changed = replace(LINE, **{name: value})
            assert changed.digest() != changed.hash
            assert changed.sealed().hash not in seen
            seen.add(changed.sealed().hash)
    # A letter that moves from one field to the next, and a number that becomes text.
    assert replace(LINE, who="me@here1", code=".0").digest() != LINE.hash
    assert replace(LINE, spend="", at=LINE.spend + LINE.at).digest() != LINE.hash
    assert (
        replace(LINE, purpose='","').digest()
        != replace(LINE, purpose='"', under='","records').digest()
    )
    assert replace(LINE, hash="").digest() == LINE.hash == LINE.sealed().hash


def test_the_hash_is_what_the_page_says() -> None:
    """SHA-256 of the other fields, in order, as one JSON list without spaces: another program can
    make it."""
    others = [getattr(LINE, field.name) for field in fields(Entry) if field.name != "hash"]
    text = json.dumps(others, separators=(",", ":"))
    assert text.startswith('[3,"reserved","5f","2026')
    assert hashlib.sha256(text.encode("ascii")).hexdigest() == LINE.hash


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            "nul",
            "[1,]",
            '{"a":1,"a":2}',
            '{"a":{"b":1,"b":1}}',
            "NaN",
            "[Infinity]",
            "-Infinity",
            "1e999",
            "[-1e400]",
        ),
        *("9" * 30, "[" * 100_000, '{"a":' * 100_000, "\ufeff{}", "1 2", "'a'", "\x00"),
    ],
)
def test_json_is_read_strictly(text: str) -> None:
    with pytest.raises(LedgerError) as told:
        parsed(text)
    assert len(str(told.value)) < 500


@settings(max_examples=300, deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=[]), max_size=40)
    | st.binary(max_size=40).map(lambda raw: raw.decode("latin-1"))
)
def test_any_text_is_json_or_a_typed_error(text: str) -> None:
    with suppress(LedgerError):
        parsed(text)


@settings(max_examples=200, deadline=None)
@given(values=trees(st.integers(-(1 << 62), 1 << 62), st.characters()))
def test_what_is_encoded_is_one_printable_line_that_reads_back(values: object) -> None:
    try:
        text = encoded(values)
    except (ValueError, LedgerError):
        # NaN and infinity are no JSON, half of a pair of surrogates is no text
        return
    assert text.isascii()
    assert text.isprintable()
    assert parsed(text) == values


@pytest.mark.parametrize("content", ["[]", "1", "null", '"a"', "", "no json"])
def test_a_content_that_is_no_object_is_refused(content: str) -> None:
    with pytest.raises(LedgerError):
        _ = replace(LINE, content=content).values
