"""The door's file: transactions, one reply a key, one server."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fairveil.core.events import Gaussian
from fairveil.curator import LogEntry
from fairveil.errors import PrivacyError
from fairveil.serving.door.record_rows import ENDED, OPEN, Reply, RunRecord
from fairveil.serving.door.records import Records

RUN = RunRecord(
    "r1", "t1", "k1", b"d", "applicants", b"body", OPEN, "", 1.0, 0.0, 0.0, None, True, 0, None
)
ENTRY = LogEntry(0, Gaussian(20.0), ("row count",), "all rows", "why")


def test_a_release_and_its_reply_are_written_together(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.begin(RUN, b"rows")
    records.keep("r1", Reply("key", b"x", "ask", None, b"body"), [ENTRY], (), ("user code",), 1.0)
    assert records.entries("r1") == [ENTRY]
    assert records.reply("r1", "key") == Reply("key", b"x", "ask", None, b"body")
    with pytest.raises(sqlite3.IntegrityError):
        records.keep("r1", Reply("key", b"y", "ask", None, b"other"), [ENTRY], (), (), 2.0)
    assert len(records.entries("r1")) == 1  # the second one's entry went with its reply
    assert records.notes("r1", "mark") == ["user code"]
    records.close()


def test_a_second_server_is_refused_and_a_look_is_not(tmp_path: Path) -> None:
    records = Records(tmp_path)
    with pytest.raises(PrivacyError, match="no other server"):
        Records(tmp_path)
    Records(tmp_path, serves=False).close()
    records.close()
    Records(tmp_path).close()


def test_what_was_kept_is_there_after_the_process_was_killed(tmp_path: Path) -> None:
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_serving_records import ENTRY, RUN
from fairveil.serving.door.records import Records, Reply
records = Records(Path({str(tmp_path)!r}))
records.begin(RUN, b"rows")
records.keep("r1", Reply("key", b"x", "ask", None, b"body"), [ENTRY], (), (), 1.0)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=120).returncode == -9
    records = Records(tmp_path)
    assert records.entries("r1") == [ENTRY]
    assert records.reply("r1", "key") is not None
    records.close()


def test_the_folder_and_the_file_are_their_owners(tmp_path: Path) -> None:
    records = Records(tmp_path / "door")
    assert (tmp_path / "door").stat().st_mode & 0o077 == 0
    assert (tmp_path / "door" / "door.db").stat().st_mode & 0o077 == 0
    records.put("none", touched=time.time())
    records.close()


def test_replies_of_ended_runs_are_forgotten_and_what_was_released_is_not(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for run, state, touched in (("old", ENDED, 10.0), ("late", ENDED, 90.0), ("open", OPEN, 10.0)):
        records.begin(replace(RUN, id=run, key=run), b"rows")
        records.keep(run, Reply("key", b"x", "ask", None, b"body"), [ENTRY], (), (), touched)
        records.put(run, state=state)
    assert records.forget(50.0) == 1
    assert [records.reply(run, "key") is None for run in ("old", "late", "open")] == [
        True,
        False,
        False,
    ]
    assert records.entries("old") == [ENTRY]
    records.close()


def test_replies_wait_for_the_disk_where_boots_have_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, normal = 2, 1
    for named, wanted in ((tmp_path / "boot", normal), (tmp_path / "nothing", full)):
        (tmp_path / "boot").write_text("this one\n")
        monkeypatch.setattr("fairveil.serving.door.records.BOOT", named)
        records = Records(tmp_path / f"door of {named.name}")
        assert not records.was_rebooted
        records.begin(RUN, b"rows")
        assert records.rows("PRAGMA synchronous")[0][0] == full
        records.note_boot()
        records.keep("r1", Reply("key", b"x", "ask", None, b"body"), [ENTRY], (), (), 1.0)
        assert records.rows("PRAGMA synchronous")[0][0] == wanted
        records.keep(
            "r1", Reply("last", b"x", "finish", None, b"body"), [], (), (), 1.0, state=ENDED
        )
        assert records.rows("PRAGMA synchronous")[0][0] == full
        records.close()
        again = Records(tmp_path / f"door of {named.name}")
        assert not again.was_rebooted  # it was closed, so that nothing may be missing
        again.close()
