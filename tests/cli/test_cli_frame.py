"""The frame of the command line: help, version, errors as one line."""

from __future__ import annotations

import sys

import pytest

import fairveil
from fairveil import cli
from fairveil.errors import InputError


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["fairveil", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"fairveil {fairveil.__version__}\n"


def test_help_lists_the_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "--help") == 0
    shown = capsys.readouterr().out
    assert all(
        command in shown
        for command in ("fit", "predict", "audit", "frontier", "verify", "demo", "data", "ledger")
    )


def test_an_unknown_command_is_a_wrong_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "abracadabra") == 2
    assert "abracadabra" in capsys.readouterr().err


def test_a_refusal_of_the_library_is_two_lines_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise InputError("rows: expected some, got none. Bring some.")

    monkeypatch.setattr(cli, "app", refuse)
    assert call(monkeypatch) == 2
    shown = capsys.readouterr()
    assert shown.err == "error: rows: expected some, got none. Bring some.\nhint: fairveil --help\n"
    assert not shown.out
