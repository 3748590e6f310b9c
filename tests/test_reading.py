"""Files that are opened by name: plain ones, of a known size. Nothing here waits, and nothing large
is written."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from fairveil._reading import MIB, read_bytes, read_text
from fairveil.errors import DataNotFoundError, FairveilError, InputError, LedgerError, complaint


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert read_bytes(tmp_path / "a", what="a file", most=3) == b"abc"
    assert read_text(str(tmp_path / "a"), what="a file", most=3) == "abc"
    (tmp_path / "empty").write_bytes(b"")
    assert read_bytes(tmp_path / "empty", what="a file", most=0) == b""


def test_guarantee_1_what_is_no_plain_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in (
        (tmp_path, "a folder"),
        (tmp_path / "pipe", "a pipe"),
        ("/dev/zero", "a device"),
        ("/dev/null", "a device"),
    ):
        with pytest.raises(DataNotFoundError, match=f"expected a file, got {kind}"):
            read_bytes(path, what="a file", most=10)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
        with pytest.raises(DataNotFoundError):
            read_bytes(tmp_path / "socket", what="a file", most=10)


@pytest.mark.parametrize("name", ["not there", "a\0b", "x" * 5000, "file/in a file"])
def test_what_cannot_be_opened(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataNotFoundError, match="expected a file"):
        read_bytes(f"{tmp_path}/{name}", what="a file", most=10)


def test_guarantee_2_size_is_looked_at_before_a_byte_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse file takes no room on the disk and would take minutes to read."""
    with (tmp_path / "sparse").open("wb") as made:
        made.truncate(6 << 30)
    monkeypatch.setattr("builtins.open", None)  # reading would fail otherwise
    with pytest.raises(LedgerError, match=rf"of at most {MIB} bytes, got {6 << 30} bytes"):
        read_bytes(tmp_path / "sparse", what="a file", most=MIB, error=LedgerError)


def test_a_large_limit_takes_no_memory(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert read_bytes(tmp_path / "a", what="a file", most=1 << 60) == b"abc"


def test_a_file_that_grows_is_read_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"abcdefgh")
    real = os.fstat

    def small(descriptor: int) -> os.stat_result:
        found = list(real(descriptor))
        found[6] = 2  # its size, when it was looked at
        return os.stat_result(found)

    monkeypatch.setattr(os, "fstat", small)
    assert read_bytes(tmp_path / "a", what="a file", most=8) == b"abcdefgh"
    with pytest.raises(InputError, match="got more"):
        read_bytes(tmp_path / "a", what="a file", most=7)


def test_text_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("é".encode("latin-1"))
    with pytest.raises(InputError, match="text in UTF-8") as caught:
        read_text(tmp_path / "a", what="a file", most=10)
    assert caught.value.__context__ is None


def test_no_message_is_a_copy_of_what_came() -> None:
    assert len(complaint(expected="x", of="y", got="z" * 10**6, remedy="")) < 1100
    assert issubclass(DataNotFoundError, FairveilError)
