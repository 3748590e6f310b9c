"""`fairveil demo`: what it shows is what its statement says, and the statement verifies."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from fairveil import cli, data
from fairveil.errors import DataNotFoundError
from fairveil.privacy import PrivacyStatement, Promise
from fairveil.privacy.events import DiscreteLaplace


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["fairveil", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


@pytest.fixture
def without_adult(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise DataNotFoundError("not here")

    monkeypatch.setattr(data, "get", missing)


@pytest.mark.usefixtures("without_adult")
def test_without_any_data_set_people_are_made_up_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert call(monkeypatch, "demo", "--output", str(tmp_path)) == 0
    shown = capsys.readouterr().out
    assert "synthetic" in shown
    assert "pip install" in shown
    assert call(monkeypatch, "verify", str(tmp_path / "statement.json")) == 0


def test_the_statement_says_what_was_done_and_verifies(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert call(monkeypatch, "demo", "--output", str(tmp_path), "--epsilon", "0.25") == 0
    shown = capsys.readouterr().out
    statement = PrivacyStatement.from_json((tmp_path / "statement.json").read_text("utf-8"))
    assert statement.promise == Promise(0.25, 0.0)
    assert statement.epsilon == pytest.approx(0.25)
    assert statement.events == statement.plan == (DiscreteLaplace(4.0, 1),)
    assert statement.noise == "secure"
    assert any("exact counts" in sentence for sentence in statement.not_covered)
    assert statement.summary() in shown
    assert call(monkeypatch, "verify", str(tmp_path / "statement.json")) == 0


@pytest.mark.usefixtures("without_adult")
def test_noise_is_new_each_time_unless_a_seed_is_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def table(*arguments: str) -> list[str]:
        # 0.01: the chance that noise of scale 100 repeats on four counts is below 1e-8.
        assert call(monkeypatch, "demo", "--output", str(tmp_path), "--epsilon", "0.01", *arguments) == 0
        found = [line for line in capsys.readouterr().out.splitlines() if "%" in line and "±" in line]
        assert len(found) >= 2
        return found

    assert table() != table()
    assert table("--seed", "1") == table("--seed", "1") != table("--seed", "2")
    stamped = PrivacyStatement.from_json((tmp_path / "statement.json").read_text("utf-8"))
    assert stamped.stamps == ("seeded-noise",)


@pytest.mark.usefixtures("without_adult")
def test_no_privacy_is_shown_as_such(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert call(monkeypatch, "demo", "--output", str(tmp_path), "--epsilon", "inf") == 0
    assert "NOT PRIVATE" in capsys.readouterr().out
    assert math.isinf(PrivacyStatement.from_json((tmp_path / "statement.json").read_text("utf-8")).epsilon)
    assert call(monkeypatch, "verify", str(tmp_path / "statement.json")) == 0


@pytest.mark.usefixtures("without_adult")
@pytest.mark.parametrize("epsilon", ["0", "-1", "nan"])
def test_a_wrong_epsilon_is_refused_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, epsilon: str
) -> None:
    folder = tmp_path / "out"
    assert call(monkeypatch, "demo", "--output", str(folder), "--epsilon", epsilon) == 2
    assert "epsilon: expected" in capsys.readouterr().err
    assert not folder.exists()


@pytest.mark.usefixtures("without_adult")
def test_a_folder_that_cannot_be_made_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file", "utf-8")
    assert call(monkeypatch, "demo", "--output", str(taken)) == 2
    assert capsys.readouterr().err.startswith("fairveil: ")
