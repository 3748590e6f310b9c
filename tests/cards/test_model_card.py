"""Model cards: numbers that stand elsewhere, verdicts that are the report's own, and no more than
was stated."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cards_samples import certificate, model, twin

from fairveil.cards import model_card
from fairveil.cards.hugging_face import metadata
from fairveil.cards.told import told_of
from fairveil.cards.yaml_text import yaml_text
from fairveil.errors import FairveilError, InputError


def head_and_body(card: str) -> tuple[str, str]:
    _, head, body = card.split("---\n", 2)
    return head, body


def test_guarantee_1_every_number_stands_in_what_was_released() -> None:
    card = model_card(
        model(), certificate=certificate(), report=twin(), name="Hiring", dataset="applicants"
    )
    _, body = head_and_body(card)
    numbers = set(re.findall(r"\d+\.\d+", body))
    clf, page = model(), twin()
    known = {f"{line.value:.4f}".lstrip("-") for line in clf.constraint_report_.lines}
    known |= {f"{line.noise:.4f}" for line in clf.constraint_report_.lines}
    known |= set(
        re.findall(
            r"\d+\.\d+",
            " ".join(told_of(clf).items.values())
            + str(clf.constraint_report_)
            + certificate().verdict,
        )
    )
    known |= set(
        re.findall(
            r"\d+\.\d+", " ".join((*certificate().assumptions, *clf.constraint_report_.required))
        )
    )
    held = page["tables"][0]
    for group in (held["overall"], *held["groups"]):
        known |= {f"{100 * group['rates']['error'][part]:.1f}" for part in ("value", "low", "high")}
    known |= {
        f"{100 * page['gaps'][0][part]:.1f}"
        for part in ("held_out", "held_out_low", "held_out_high")
    }
    assert numbers - known == set()
    assert len(numbers) > 10


def test_guarantee_2_a_model_that_is_not_private_says_so_first() -> None:
    assert (
        head_and_body(model_card(model(float("inf"), None, None)))[1].split("\n\n")[1]
        == "**NOT PRIVATE.**"
    )
    assert (
        head_and_body(model_card(model()))[1]
        .split("\n\n")[1]
        .startswith("**INSECURE (seeded noise).**")
    )
    assert "Nothing is guaranteed to the people" in model_card(model(float("inf"), None, None))
    assert "epsilon" not in metadata(told_of(model(float("inf"), None, None)), "x", None, None).get(
        "metrics", []
    )


def test_guarantee_3_verdicts_are_the_reports_own() -> None:
    clf = model()
    body = model_card(clf, certificate=certificate())
    assert f"at 95% confidence: {clf.constraint_report_.verdict}." in body
    assert certificate().sentences[0] in body.replace("\\", "")
    assert "No constraint was required" in model_card(model(constraint=None))
    assert "met" not in model_card(model(constraint=None)).split("## Fairness")[1].split("##")[0]


def test_metadata_are_those_of_the_hubs_specification() -> None:
    told = told_of(model(), report=twin())
    bare = metadata(told, "Hiring", None, None)
    assert set(bare) == {"library_name", "tags", "metrics"}
    whole = metadata(told, "Hiring", "apache-2.0", "applicants")
    (index,) = whole["model-index"]
    (result,) = index["results"]
    assert set(index) == {"name", "results"}
    assert set(result) == {"task", "dataset", "metrics"}
    assert set(result["dataset"]) == {"type", "name"}
    assert all({"type", "value"} <= set(one) for one in result["metrics"])
    assert (
        [one["type"] for one in result["metrics"]]
        == whole["metrics"]
        == ["accuracy", "fairness-gap", "epsilon"]
    )
    assert metadata(told_of(model()), "x", None, "d")["metrics"] == ["epsilon"]


def test_the_head_is_yaml() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    told = told_of(model(), report=twin())
    head, _ = head_and_body(
        model_card(model(), report=twin(), name="Hiring", license="mit", dataset="applicants")
    )
    assert yaml.safe_load(head) == metadata(told, "Hiring", "mit", "applicants")


@pytest.mark.parametrize(
    "value",
    [
        {
            "a": [{"b": [1, {"c": []}], "d": {}}, "x"],
            "no": "no",
            "1": 1.5,
            "e f": None,
            "t": True,
            "u": "ü\n: #",
        }
    ],
)
def test_texts_are_quoted_so_that_no_value_becomes_another(value: Any) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert yaml.safe_load(yaml_text(value)) == value


@pytest.mark.parametrize(
    "options",
    [
        {"name": "a\nb"},
        {"name": ""},
        {"name": 3},
        {"license": "Apache 2.0"},
        {"dataset": "---"},
        {"report": 3},
        {"report": {}},
        {"certificate": 3},
        {"certificate": "none.json"},
    ],
)
def test_bad_arguments_are_refused(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FairveilError):
        model_card(model(), **options)


def test_a_report_of_another_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(twin()), "utf-8")
    assert "held-out people" in model_card(model(), report=path)
    with pytest.raises(InputError, match="another statement"):
        model_card(model(constraint=None), report=path)
    for bad in (object(), None, "model"):
        with pytest.raises(InputError, match="fitted estimator"):
            model_card(bad)


def test_a_value_cannot_begin_markup() -> None:
    assert "<script>" not in model_card(model()) + str(told_of(model()).items)
    from fairveil.cards.hugging_face import _line

    assert _line("<b>\n*x* [a](b)") == r"\<b\> \*x\* \[a\](b)"
