"""One file by two names is refused: a hard link, a file that is mounted alone, another name that is
in use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairveil.core.events import Pure
from fairveil.errors import LedgerError
from fairveil.privacy.ledger import Ledger
from fairveil.privacy.ledger.stores import one_name

Child = Callable[[Callable[[], object]], Callable[[], str]]
HALF = Pure(0.45)
SPEND = """
import sys, fairveil as fv
from fairveil.core.events import Pure
fv.Ledger.open(sys.argv[1], "d").reserve(Pure(0.45)).commit()
"""


def begun(path: Path) -> Ledger:
    path.parent.mkdir(exist_ok=True)
    ledger = Ledger.create(path, "d", 1.0, 0.0)
    ledger.reserve(HALF).commit()
    return ledger


def elsewhere(path: Path, *before: str) -> str:
    """What another process is told that spends by this name."""
    done = subprocess.run(
        [*before, sys.executable, "-c", SPEND, path], capture_output=True, text=True
    )
    return done.stderr.strip().splitlines()[-1] if done.returncode else "granted"


@pytest.mark.parametrize("is_open", [True, False])
def test_guarantee_1_a_hard_link_is_refused_by_both_names(tmp_path: Path, is_open: bool) -> None:
    one, two = tmp_path / "one.db", tmp_path / "b" / "two.db"
    ledger = begun(one)
    if not is_open:
        ledger.close()
    two.parent.mkdir()
    os.link(one, two)
    assert "2 hard links" in elsewhere(two)
    assert "2 hard links" in elsewhere(one)
    for action in (lambda: ledger.reserve(HALF), lambda: Ledger.open(two, read_only=True)):
        with pytest.raises(
            LedgerError,
            match=r"a file with one name, got 'a file with 2 hard links'.*Remove the other one",
        ):
            action()
    two.unlink()
    assert elsewhere(one) == "granted"
    assert ledger.balance().entries == 5
    assert f"{ledger.balance().spent_share:.1f}" == "0.9"


def test_guarantee_1_a_link_that_is_made_inside_of_a_block(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "one.db")
    with pytest.raises(LedgerError, match="2 hard links"), ledger._store.writing("d"):
        os.link(tmp_path / "one.db", tmp_path / "two.db")
    (tmp_path / "two.db").unlink()
    ledger.reserve(HALF)


def mounts() -> bool:
    """Whether files may be mounted here."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    return (
        subprocess.run(
            ["unshare", "-m", "mount", "--bind", __file__, __file__], capture_output=True
        ).returncode
        == 0
    )


def test_guarantee_1_a_file_that_is_mounted_alone_is_refused_and_a_folder_is_not(
    tmp_path: Path,
) -> None:
    if not mounts():
        pytest.skip("only the superuser may mount a file, in a mount namespace of its own")
    path = tmp_path / "a" / "x.db"
    ledger = begun(path)
    alone, folder = tmp_path / "alone.db", tmp_path / "folder"
    alone.touch()
    folder.mkdir()
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    told = elsewhere(alone, "unshare", "-m", "sh", "-c", script, "sh", str(path), str(alone))
    assert "a mount point: the file alone is mounted there" in told
    # Through a folder that is mounted elsewhere the log is seen: the same name.
    assert (
        elsewhere(
            folder / "x.db",
            "unshare",
            "-m",
            "sh",
            "-c",
            script,
            "sh",
            str(path.parent),
            str(folder),
        )
        == "granted"
    )
    assert f"{ledger.balance().spent_share:.1f}" == "0.9"
    assert not ledger.check()


@pytest.mark.skipif(
    not hasattr(one_name.fcntl, "F_OFD_SETLK"),
    reason="locks that belong to an open file are Linux's",
)
def test_guarantee_2_another_name_is_refused_while_one_is_in_use(
    tmp_path: Path, in_child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where links and mounts cannot be seen: in another container say, with a mount of its
    own."""
    monkeypatch.setattr(one_name, "require_one_link", lambda status, shown: None)
    monkeypatch.setattr(one_name, "is_mounted", lambda real, descriptor: False)
    one, two = tmp_path / "one.db", tmp_path / "two.db"
    ledger = begun(one)
    os.link(one, two)

    def spend(path: Path) -> object:
        theirs = Ledger.open(path, "d", read_only=True)
        return theirs.balance().entries

    ledger.balance()  # it is open
    held = one_name.Name(one, "one")
    assert "in use by another name" in in_child(lambda: spend(two))()
    with pytest.raises(LedgerError, match="in use by another name"):  # in one process, too
        spend(two)
    assert in_child(lambda: spend(one))() == "3"  # by one name as many as like
    assert spend(one) == 3
    held.release()
    ledger.close()
    two.unlink()
    assert ledger.balance().entries == 3


def test_guarantee_2_many_processes_by_one_name_and_through_links_to_it(
    tmp_path: Path, in_child: Child
) -> None:
    path, link = tmp_path / "one.db", tmp_path / "link.db"
    ledger = begun(path)
    os.symlink(path, link)

    def spend(place: Path) -> object:
        Ledger.open(place, "d").reserve(Pure(0.01)).commit()
        return "granted"

    answers = [in_child(lambda place=place: spend(place)) for place in (path, link) * 4]
    assert [answer() for answer in answers] == ["granted"] * 8
    ledger.reserve(Pure(0.01))
    assert ledger.balance().entries == 3 + 16 + 1


def test_guarantee_3_no_descriptor_is_closed_while_a_connection_is_open(
    tmp_path: Path, in_child: Child
) -> None:
    path, before = tmp_path / "one.db", set(one_name._files)
    ledger, other = begun(path), Ledger.open(path, "d")

    def write() -> str:
        try:
            Ledger.open(path, "d").reserve(Pure(0.01))
        except LedgerError as error:
            return str(error)
        return "granted"

    with ledger._store.writing("d"):
        pass
    other.balance()
    other.close()  # its descriptor is that of the other connection
    assert len(set(one_name._files) - before) == 1
    assert in_child(write)() == "granted"
    ledger.close()
    assert not [file for key, file in one_name._files.items() if file.users and key not in before]
