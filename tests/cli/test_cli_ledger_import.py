"""`fairveil ledger import`: a budget is charged what another library spent; what is wrong is one
line and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from people_who_do_not_exist import PYTHONISM, Command

from fairveil.ledger import Ledger
from fairveil.statement.importing import from_opacus

OPACUS = {"history": [[2.0, 0.01, 100]], "sampling": "poisson"}
HEAD = {
    "format": "fairveil-import",
    "version": 1,
    "neighbours": "add-remove",
    "rows_per_person": 1,
    "opacus": OPACUS,
}


@pytest.fixture
def budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.delenv("FAIRVEIL_LEDGER", raising=False)
    return Ledger.create(tmp_path / "budget.db", "people", 1.0, 1e-6)


@pytest.fixture
def spent(tmp_path: Path) -> Path:
    path = tmp_path / "spent.json"
    path.write_text(json.dumps(HEAD), "utf-8")
    return path


def test_it_is_charged_once_and_shown(
    fairveil: Command, budget: Ledger, spent: Path, tmp_path: Path
) -> None:
    looked = fairveil("ledger", "import", spent, tmp_path / "budget.db", "--look")
    assert looked.code == 0
    assert "The budget suffices for it." in looked.out
    assert budget.is_untouched
    done = fairveil("ledger", "import", spent, tmp_path / "budget.db", "--purpose", "a model")
    assert done.code == 0
    assert "Charged: line 1 of people" in done.out
    assert "note: The sample rate" in done.out
    lines = list(budget.history())
    assert [line.kind for line in lines] == ["created", "reserved", "committed"]
    assert lines[1].purpose.startswith("a model (imported from opacus")
    direct = Ledger.create(None, "copy", 1.0, 1e-6)
    from_opacus(
        [(2.0, 0.01, 100)], sampling="poisson", neighbours="add-remove", rows_per_person=1
    ).record(direct)
    assert budget.balance().spent_share == direct.balance().spent_share


def test_json_has_every_number(
    fairveil: Command, budget: Ledger, spent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRVEIL_LEDGER", str(tmp_path / "budget.db"))
    told = json.loads(fairveil("ledger", "import", spent, "--json").out)
    assert (told["line"], told["fits"], told["dataset"], told["neighbours"]) == (
        1,
        True,
        "people",
        "add-remove",
    )
    assert 0.1 < told["epsilon"] < 1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"neighbours": "replace-one"}, "a promise for records, add-remove"),
        ({"neighbours": "all"}, "add-remove or replace-one"),
        ({"rows_per_person": 3}, "several rows"),
        ({"more": 1}, "the fields"),
        ({"opacus": {"history": [[1.1, 0.01]], "sampling": "poisson"}}, "a list of 3"),
        ({"opacus": {"history": [], "sampling": "shuffled"}}, "batches are shuffled"),
        ({"opacus": {"history": [[0.3, 0.5, 1000]], "sampling": "poisson"}}, "of the budget"),
        ({"opacus": {"history": [[0.0, 0.5, 1]], "sampling": "poisson"}}, "a finite epsilon"),
    ],
)
def test_what_is_refused_changes_nothing(
    fairveil: Command,
    budget: Ledger,
    spent: Path,
    tmp_path: Path,
    change: dict[str, Any],
    words: str,
) -> None:
    spent.write_text(json.dumps({**HEAD, **change}), "utf-8")
    done = fairveil("ledger", "import", spent, tmp_path / "budget.db")
    assert done.code == 2
    assert words in done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 2
    assert not PYTHONISM.search(done.err), done.err
    assert not done.out
    assert [line.kind for line in budget.history()] == ["created"]


def test_a_missing_file_is_said(fairveil: Command, budget: Ledger, tmp_path: Path) -> None:
    assert (
        "none.json"
        in fairveil("ledger", "import", tmp_path / "none.json", tmp_path / "budget.db").err
    )
