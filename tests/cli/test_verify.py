"""`fairveil verify`: 0 consistent, 1 inconsistent, 2 unreadable, and never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairveil import cli
from fairveil.core.events import Gaussian
from fairveil.privacy import PrivacyStatement, Promise
from fairveil.statement.check import checksum

Run = Callable[..., tuple[int, str, str]]
PLAN = [Gaussian(30.0)] * 5


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fairveil", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        code = end.value.code
        assert code is None or isinstance(code, int)
        return (code or 0, *capsys.readouterr())

    return call


@pytest.fixture
def statement(tmp_path: Path) -> Path:
    return PrivacyStatement.of(Promise(1.0, 1e-6), PLAN, plan=PLAN).write(
        tmp_path / "statement.json"
    )


def forge(path: Path, epsilon: float) -> None:
    values = json.loads(path.read_text("utf-8"))
    values["epsilon"] = epsilon
    values["checksum"] = checksum(values)
    path.write_text(json.dumps(values), "utf-8")


def test_a_consistent_statement_is_accepted(run: Run, statement: Path) -> None:
    code, out, err = run("verify", statement)
    assert code == 0
    assert "Consistent" in out
    assert "not who wrote it" in out
    assert not err


def test_an_epsilon_below_the_events_cost_is_rejected(run: Run, statement: Path) -> None:
    forge(statement, 0.1)
    code, out, _ = run("verify", statement)
    assert code == 1
    assert "CONTRADICTION: epsilon is stated as 0.1" in out
    assert "Consistent" not in out


def test_a_changed_word_is_rejected(run: Run, statement: Path) -> None:
    statement.write_text(
        statement.read_text("utf-8").replace('"tuning": null', '"tuning": "none"'), "utf-8"
    )
    code, out, _ = run("verify", statement)
    assert code == 1
    assert "checksum" in out


def test_findings_as_json(run: Run, statement: Path) -> None:
    code, out, _ = run("verify", statement, "--json")
    assert code == 0
    assert json.loads(out)["consistent"] is True
    assert json.loads(out)["ledger"] is None
    forge(statement, 0.1)
    code, out, _ = run("verify", "--json", statement)
    assert code == 1
    found = json.loads(out)
    assert found["consistent"] is False
    assert found["findings"][0]["grave"] is True
    assert found["epsilon"] == 0.1


@pytest.mark.parametrize(
    "content", [None, b"", b"\xff\xfe\x00", b"{}", b"[" * 20_000, b'{"format": NaN}', b"\x00" * 100]
)
def test_what_cannot_be_read_is_said_in_one_line(
    run: Run, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "statement.json"
    if content is not None:
        path.write_bytes(content)
    code, out, err = run("verify", path)
    assert code == 2
    assert not out
    assert err.startswith("error: ")
    assert err.count("\n") == 2


def test_a_folder_is_no_statement(run: Run, tmp_path: Path) -> None:
    code, _, err = run("verify", tmp_path)
    assert code == 2
    assert str(tmp_path) in err


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.binary(max_size=300))
def test_any_bytes_get_an_answer(run: Run, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "noise.json"
    path.write_bytes(content)
    assert run("verify", path)[0] == 2


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_file_is_never_accepted(run: Run, statement: Path, data: st.DataObject) -> None:
    whole = PrivacyStatement.of(Promise(1.0, 1e-6), PLAN, plan=PLAN).to_json()
    start = data.draw(st.integers(0, len(whole) - 1))
    length = data.draw(st.integers(1, 30))
    damaged = (
        whole[:start]
        + data.draw(st.text('0123456789.eE-[]{}",:ai n', max_size=5))
        + whole[start + length :]
    )
    statement.write_text(damaged, "utf-8")
    code, _, _ = run("verify", statement)
    try:
        same = json.loads(damaged) == json.loads(whole)
    except ValueError:
        same = False
    assert code == 0 if same else code in (1, 2)


def test_as_a_process(statement: Path) -> None:
    command = [sys.executable, "-m", "fairveil", "verify"]
    assert subprocess.run([*command, statement], capture_output=True, check=False).returncode == 0
    forge(statement, 0.1)
    assert subprocess.run([*command, statement], capture_output=True, check=False).returncode == 1
    assert (
        subprocess.run([*command, "missing.json"], capture_output=True, check=False).returncode == 2
    )
