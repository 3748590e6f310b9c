"""`fairveil sign`, and `fairveil verify --key`: 0 signed and consistent, 1 not, 2 asked wrongly or
unreadable."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from fairveil import cli
from fairveil.core.events import Gaussian
from fairveil.privacy import PrivacyStatement, Promise
from fairveil.statement.check import checksum

Run = Callable[..., tuple[int, str, str]]
PASSPHRASE = "FAIRVEIL_KEY_PASSPHRASE"
PLAN = [Gaussian(30.0)] * 5


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(PASSPHRASE, raising=False)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fairveil", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        code = end.value.code
        assert code is None or isinstance(code, int)
        return (code or 0, *capsys.readouterr())

    return call


@pytest.fixture
def statement(tmp_path: Path, run: Run) -> Path:
    assert run("sign", "--new-key", "holder.key")[0] == 0
    statement = PrivacyStatement.of(Promise(1.0, 1e-6), PLAN, plan=PLAN, noise="seeded")
    return statement.write(tmp_path / "statement.json")


def lie(path: Path) -> None:
    """Noise and `stamps` changed together, and a checksum that fits."""
    values = json.loads(path.read_text("utf-8"))
    values.update(noise="secure", stamps=[])
    values["checksum"] = checksum(values)
    path.write_text(json.dumps(values), "utf-8")


def test_sign_and_verify(run: Run, statement: Path) -> None:
    code, out, err = run("sign", statement, "--key", "holder.key", "--note", "spring")
    assert (code, err) == (0, "")
    assert "Signed: " in out
    assert "Signer: sha256:" in out
    code, out, _ = run("verify", statement, "--key", "holder.pub")
    assert code == 0
    assert ": valid" in out
    assert "with the note 'spring'" in out
    assert "its holder stands by it" in out
    found = json.loads(run("verify", statement, "--key", "holder.pub", "--json")[1])
    assert found["signature"]["valid"] is True
    assert found["signature"]["note"] == "spring"
    lie(statement)
    assert run("verify", statement)[0] == 0  # nobody can recompute what the noise was made of
    code, out, _ = run("verify", statement, "--key", "holder.pub")
    assert code == 1
    assert "NOT SIGNED: " in out
    assert "changed since" in out
    code, out, _ = run("verify", statement, "--key", "holder.pub", "--json")
    assert code == 1
    assert json.loads(out)["signature"]["valid"] is False
    assert json.loads(out)["consistent"] is True


def test_what_is_recomputed_and_what_is_not_is_said(run: Run, statement: Path) -> None:
    code, out, _ = run("verify", statement)
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("Recomputed: ")]
    recomputed, trusted = line.split("; taken on trust: ")
    assert "epsilon" in recomputed
    assert all(
        name in trusted
        for name in ("promise", "noise", "bounds", "user_code", "facts", "not_covered")
    )
    found = json.loads(run("verify", statement, "--json")[1])
    assert "noise" in found["taken_on_trust"]
    assert "stamps" in found["recomputed"]
    assert found["signature"] is None


def test_an_unsigned_statement_is_refused_where_a_key_is_given(run: Run, statement: Path) -> None:
    code, out, err = run("verify", statement, "--key", "holder.pub")
    assert (code, err) == (1, "")
    assert "NOT SIGNED" in out


def test_a_signature_that_was_not_checked_is_said(run: Run, statement: Path) -> None:
    run("sign", statement, "--key", "holder.key")
    code, out, _ = run("verify", statement)
    assert code == 0
    assert "which was not checked" in out
    assert json.loads(run("verify", statement, "--json")[1])["signature"] == {"valid": None}


def test_another_key_or_a_truncated_signature_is_a_no(run: Run, statement: Path) -> None:
    run("sign", statement, "--key", "holder.key")
    run("sign", "--new-key", "other.key")
    assert run("verify", statement, "--key", "other.pub")[0] == 1
    file = statement.with_name("statement.json.sig")
    file.write_bytes(file.read_bytes()[:-20])
    assert run("verify", statement, "--key", "holder.pub")[0] == 1


def test_a_malformed_key_is_a_wrong_question(run: Run, statement: Path) -> None:
    run("sign", statement, "--key", "holder.key")
    Path("wrong.pub").write_text("no key")
    for key in ("wrong.pub", "missing.pub", "holder.key"):
        code, out, err = run("verify", statement, "--key", key)
        assert (code, out, err.count("\n")) == (2, "", 2)
        assert err.startswith("error: ")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["statement.json"],
        ["--key", "holder.key"],
        ["statement.json", "--new-key", "new.key"],
        ["--new-key", "new.key", "--force"],
        ["--new-key", "holder.key"],
        ["statement.json", "--key", "holder.key", "--passphrase"],
        ["missing.json", "--key", "holder.key"],
        ["--new-key", "new.key", "--passphrase"],
    ],
)
def test_what_is_asked_wrongly(
    run: Run, statement: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    code, out, err = run("sign", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 2)
    assert not Path("new.key").exists()
    assert run("verify", statement, "--signature", "statement.json.sig")[0] == 2


def test_an_encrypted_key(run: Run, statement: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSPHRASE, "a word")
    assert "encrypted;" in run("sign", "--new-key", "locked.key")[1]
    assert run("sign", statement, "--key", "locked.key")[0] == 0
    assert run("verify", statement, "--key", "locked.pub")[0] == 0
    monkeypatch.setenv(PASSPHRASE, "another")
    code, _, err = run("sign", statement, "--key", "locked.key", "--force")
    assert code == 2
    assert "a word" not in err
    assert "another" not in err


def test_what_is_there_is_replaced_only_when_asked_for(run: Run, statement: Path) -> None:
    assert run("sign", statement, "--key", "holder.key")[0] == 0
    assert run("sign", statement, "--key", "holder.key")[0] == 2
    assert run("sign", statement, "--key", "holder.key", "--force")[0] == 0
    assert run("sign", statement, "--key", "holder.key", "--out", "second.sig")[0] == 0
    assert run("verify", statement, "--key", "holder.pub", "--signature", "second.sig")[0] == 0


def test_a_contradiction_is_signed_only_when_asked_for(run: Run, statement: Path) -> None:
    values = json.loads(statement.read_text("utf-8")) | {"stamps": []}
    statement.write_text(json.dumps(values | {"checksum": checksum(values)}), "utf-8")
    assert run("sign", statement, "--key", "holder.key")[0] == 2
    assert run("sign", statement, "--key", "holder.key", "--inconsistent")[0] == 0
    assert run("verify", statement, "--key", "holder.pub")[0] == 1


def test_a_folder(run: Run, statement: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    statement.rename(folder / "statement.json")
    (folder / "model.json").write_text("{}")
    assert "with 1 other files of" in run("sign", folder, "--key", "holder.key")[1]
    code, out, _ = run("verify", folder, "--key", "holder.pub")
    assert code == 0
    assert "together with 1 other files" in out
    (folder / "model.json").write_text("[]")
    for target in (folder, folder / "statement.json"):
        code, out, _ = run("verify", target, "--key", "holder.pub")
        assert code == 1
        assert "model.json" in out
