"""`fairveil demo`: the page shows what its files say, both statements verify, and nothing is
fetched to read it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from people_who_do_not_exist import Command

from fairveil.privacy import PrivacyStatement, Promise
from fairveil.privacy.shown import at_most

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
    assert "do not exist" in twin["subject"]
    assert not any(one["published"] for one in twin["frontiers"][0]["series"])
    assert twin["stamps"]
    says_what_all_models_cost(tmp_path / "out")
    assert {file.name for file in (tmp_path / "out").iterdir()} >= FILES
    assert twin["frontiers"][0]["floor"]
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


def says_what_all_models_cost(folder: Path) -> None:
    """The page and frontier.json show every model's noisy values: the price of that comes first,
    the one model's beside it."""
    twin = json.loads((folder / "report.json").read_text("utf-8"))
    one, whole = (
        PrivacyStatement.from_json((folder / f"{name}.json").read_text("utf-8"))
        for name in ("statement", "all_models")
    )
    assert whole.epsilon > one.epsilon
    cost = (
        f"Looking at all models of this page costs epsilon = "
        f"{at_most(whole.epsilon, whole.promise.epsilon)} at delta = 5e-10"
    )
    assert (
        f"{cost}; the one shown in full alone: epsilon = "
        f"{at_most(one.epsilon, one.promise.epsilon)};" in twin["verdict"]
    )
    facts = {fact["name"]: fact["value"] for fact in twin["key_facts"]}
    assert (facts["Privacy spent"], facts["One model alone"]) == (
        f"ε = {at_most(whole.epsilon, whole.promise.epsilon)}",
        f"ε = {at_most(one.epsilon, one.promise.epsilon)}",
    )
    (sentence,) = (words for words in twin["not_covered"] if "models of this page costs" in words)
    assert sentence.endswith(
        f"costs epsilon {at_most(whole.epsilon, whole.promise.epsilon)} at delta 5e-10 "
        f"(all_models.json)."
    )


def test_a_folder_of_somebody_else_is_left_alone(fairveil: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("all of it", "utf-8")
    done = fairveil("demo", "--output", "mine")
    assert done.code == 2
    assert done.err.count("\n") == 2
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    assert fairveil("demo", "--output", tmp_path / "mine/thesis.tex").code == 2
