"""`fairveil demo`: the page shows what its files say, both statements verify, and nothing is
fetched to read it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from people_who_do_not_exist import Command

from fairveil.privacy import PrivacyStatement, Promise
from fairveil.show.numbers import at_most

FILES = {
    "report.html",
    "report.json",
    "statement.json",
    "all_models.json",
    "frontier.json",
    "model.json",
    "arrays.npz",
}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer models: what is tested is the page."""
    module = sys.modules["fairveil.cli.demo"]
    monkeypatch.setattr(module, "GAPS", (0.1, 0.05))
    monkeypatch.setattr(module, "EPSILONS", (0.5, 1.0))


@pytest.mark.usefixtures("few")
def test_people_are_made_up_and_both_statements_verify(fairveil: Command, tmp_path: Path) -> None:
    done = fairveil("demo", "--output", "out", "--seed", 1)
    assert done.code == 0, done.err
    assert "synthetic" in done.out
    twin = json.loads((tmp_path / "out/report.json").read_text("utf-8"))
    assert "synthetic" in twin["subject"]
    decided = {fact["label"]: fact for fact in twin["decision"] if fact["label"]}
    assert "INSECURE" in decided["Warning"]["words"]
    assert "differ by at most 5.0 points" in decided["Fairness"]["words"]
    assert decided["Fairness"]["verdict"] in ("certified", "not certified")
    (chart,) = (part for name, part in sweep(twin).items() if name.startswith("Error against"))
    kinds = [curve["label"] for curve in chart["curves"] if curve["kind"] == "own"]
    assert kinds[-1] == "Fairveil: fair, not private"
    assert len(kinds) == 3
    says_what_all_models_cost(tmp_path / "out")
    assert {file.name for file in (tmp_path / "out").iterdir()} >= FILES
    assert chart["curves"][-1]["kind"] == "floor"
    page = (tmp_path / "out/report.html").read_text("utf-8")
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    for name, promise in (("statement", Promise(1.0, 5e-10)), ("all_models", None)):
        statement = PrivacyStatement.from_json((tmp_path / f"out/{name}.json").read_text("utf-8"))
        assert promise is None or statement.promise == promise
        assert fairveil("verify", f"out/{name}.json").code == 0
    again = fairveil("demo", "--output", "out", "--seed", 1)
    assert again.code == 0
    assert json.loads((tmp_path / "out/report.json").read_text("utf-8")) == twin


def sweep(twin: dict[str, Any]) -> dict[str, Any]:
    """The parts of the sweep's section."""
    (found,) = (one["parts"] for one in twin["sections"] if one["heading"].startswith("The sweep"))
    return dict(found)


def says_what_all_models_cost(folder: Path) -> None:
    """The price of the one model is in the decision, that of the sweep beside the sweep."""
    twin = json.loads((folder / "report.json").read_text("utf-8"))
    one, whole = (
        PrivacyStatement.from_json((folder / f"{name}.json").read_text("utf-8"))
        for name in ("statement", "all_models")
    )
    assert whole.epsilon > one.epsilon
    (spent,) = (fact["words"] for fact in twin["decision"] if fact["label"] == "Privacy")
    assert f"Epsilon = {at_most(one.epsilon, one.promise.epsilon)} of a budget of 1" in spent
    cost = f"costs epsilon {at_most(whole.epsilon, whole.promise.epsilon)} at delta 5e-10"
    assert any(cost in words for words in sweep(twin)["notes"])
    assert any(cost in words for words in twin["not_covered"])


def test_a_folder_of_somebody_else_is_left_alone(fairveil: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("all of it", "utf-8")
    done = fairveil("demo", "--output", "mine")
    assert done.code == 2
    assert done.err.count("\n") == 2
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    assert fairveil("demo", "--output", tmp_path / "mine/thesis.tex").code == 2
