"""Tokens: hashed, shown once, scoped, ending."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairveil.errors import InputError
from fairveil.serving.door import tokens as module
from fairveil.serving.door.records import Records
from fairveil.serving.door.refusals import Refusal
from fairveil.serving.door.tokens import Scope, Tokens


@pytest.fixture
def tokens(tmp_path: Path) -> Iterator[Tokens]:
    records = Records(tmp_path)
    yield Tokens(records)
    records.close()


def test_the_records_hold_no_secret(tokens: Tokens, tmp_path: Path) -> None:
    shown = tokens.issue("R. Weber")
    secret = shown.rpartition("_")[2]
    tokens._records.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()
        assert bytes.fromhex(secret) not in file.read_bytes()
    assert tokens.of(shown).name == "R. Weber"


def test_tokens_that_open_nothing_are_refused_alike(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, ended = tokens.issue("one"), tokens.issue("two", days=1.0)
    other = tokens.issue("three")
    tokens.revoke(tokens.of(other).id)
    real = time.time
    monkeypatch.setattr(module.time, "time", lambda: real() + 2 * 86_400.0)
    bodies = set()
    for wrong in (
        None,
        "",
        "x",
        ended,
        other,
        shown[:-1] + ("0" if shown[-1] != "0" else "1"),
        "fv_" + "0" * 12 + "_" + "0" * 64,
    ):
        with pytest.raises(Refusal) as refused:
            tokens.of(wrong)
        bodies.add((refused.value.status, refused.value.body))
    assert len(bodies) == 1
    assert tokens.of(shown).name == "one"
    assert not tokens.revoke("0" * 12)


def test_what_is_wrong_with_a_token_is_said(tokens: Tokens) -> None:
    for name, role, scope in (
        ("", "analyst", Scope()),
        ("a\nb", "analyst", Scope()),
        ("x", "king", Scope()),
    ):
        with pytest.raises(InputError):
            tokens.issue(name, role, scope=scope)
    with pytest.raises(InputError):
        Scope(protects=("everything",))
    with pytest.raises(InputError):
        Scope(epsilon_a_day=-1.0)
    assert Scope.of(Scope(("a",), None, ("counts",), 2.0).to_json()) == Scope(
        ("a",), None, ("counts",), 2.0
    )
