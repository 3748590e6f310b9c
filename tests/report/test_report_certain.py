"""What is certain, on a page: the bounds of both kinds of guarantee, in words and numbers, with
their conditions."""

from __future__ import annotations

import html
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from fairveil.errors import InputError
from fairveil.learning.game.bounds import Guarantee
from fairveil.learning.group_objective.exponential import Certain
from fairveil.learning.postprocessing.mixing_bounds import MixingGuarantee
from fairveil.metrics import group_table
from fairveil.report import (
    CertainLine,
    Certainty,
    GroupSection,
    Report,
    certain,
    render,
    to_dict,
    write,
)

CHOICE = Certain(0.03387, 0.7, 0.9)
MIXING = MixingGuarantee(
    confidence=0.95,
    names=("f - m", "m - f"),
    bounds=(0.05, 0.05),
    values=(0.04, -0.04),
    noise=(0.01, 0.01),
    value_bounds=(0.070301, 0.01),
    error=0.2,
    error_bound=0.22,
    excess_bound=0.03,
)
GAME = Guarantee(
    confidence=0.9,
    dual_bound=2.0,
    auditor_regret=0.01,
    learner_regret=0.02,
    nu=0.03,
    error_excess=0.06,
    gap_excess=0.0112,
    worst=0.0612,
    measured=(0.0612, 0.02),
)


def lines(found: Certainty) -> dict[str, tuple[float | None, float | None]]:
    return {one.name: (one.at_most, one.released) for one in found.lines}


def test_the_bounds_of_a_post_processor_are_told() -> None:
    found = certain(MIXING)
    # rounded up
    assert found.sentence.endswith("every constraint's training value is at most 7.1 points.")
    assert lines(found) == {
        "Largest value of a constraint": (0.070301, 0.04),
        "Furthest above its bound": (pytest.approx(0.020301), None),
        "Error": (0.22, 0.2),
        "Error above that of the best table without noise": (0.03, None),
    }
    assert found.numbers == MIXING.to_dict()
    assert any("training rows" in sentence for sentence in found.conditions)
    assert any("base classifier is taken as it is" in sentence for sentence in found.conditions)


def test_the_bounds_of_a_game_are_told() -> None:
    found = certain(GAME)
    assert found.sentence.startswith("With probability 90% over the noise")
    assert found.sentence.endswith(
        "no constraint's training value is above its bound by more than 1.2 points."
    )
    assert lines(found) == {
        "Largest value of a constraint": (0.0612, None),
        "Furthest above its bound": (0.0112, None),
        "Error above that of the best mixture": (0.06, None),
    }
    assert any("is assumed to keep every bound" in sentence for sentence in found.conditions)


def test_the_bounds_of_a_choice_are_told() -> None:
    found = certain(CHOICE)
    assert found.sentence == (
        "With probability 90% over the noise of the fit, the objective of the chosen decision is "
        "above that of the best one in "
        "the list by at most 3.4 points."  # rounded up
    )
    assert lines(found) == {
        "Objective above that of the best decision that keeps the bounds": (0.03387, None),
        "Furthest above a bound": (0.7, None),
    }
    assert found.numbers == {"objective": 0.03387, "bound": 0.7, "confidence": 0.9}
    assert any("same list of decisions" in sentence for sentence in found.conditions)
    assert any("over the released numbers" in sentence for sentence in found.conditions)


@pytest.mark.parametrize(
    ("guarantee", "says"),
    [
        (
            replace(GAME, error_excess=math.inf, nu=math.inf, learner_regret=math.inf),
            "this oracle's own regret is not",
        ),
        (
            replace(GAME, gap_excess=math.inf, worst=math.inf, measured=(math.inf,)),
            "no bound could be given",
        ),
        (replace(CHOICE, f=math.inf), "is not bounded: no bound could be given"),
        (replace(CHOICE, g=math.inf), "no bound could be given"),
        (
            replace(MIXING, excess_bound=math.nan),
            "no table of chances is certain to keep the bounds",
        ),
        (
            replace(MIXING, values=(math.nan,) * 2, value_bounds=(math.nan,) * 2, error=math.nan),
            "every constraint",
        ),
    ],
)
def test_what_is_not_known_is_said_and_never_a_number(
    guarantee: object, says: str, tmp_path: Path
) -> None:
    written = write(tmp_path / "report.html", Report("A model", guarantee=certain(guarantee)))
    twin = json.loads(written.twin.read_text("utf-8"))
    assert says in html.unescape(written.page.read_text("utf-8"))
    for text in (written.page.read_text("utf-8"), json.dumps(twin)):
        assert ">nan<" not in text.lower()
        assert ">inf<" not in text.lower()
        assert "Infinity" not in text


def test_page_and_twin_hold_sentence_bounds_and_conditions() -> None:
    report = Report("A model", guarantee=certain(MIXING), method="a <b>method</b>")
    twin, page = to_dict(report), html.unescape(render(report))
    assert twin["method"] == "a <b>method</b>"
    assert "<b>method" not in render(report)
    assert "Method: a <b>method</b>" in page
    assert '<data value="0.070301">7.1</data>' in page, "in points, rounded up"
    assert twin["guarantee"]["numbers"]["excess_bound"] == 0.03
    for sentence in (twin["guarantee"]["sentence"], *twin["guarantee"]["conditions"]):
        assert sentence in page
    bare = render(Report("A model"))
    assert "What is certain" not in bare
    assert "Method:" not in bare


def test_expected_rates_are_told_from_those_of_a_draw() -> None:
    table = group_table(["a", "b"] * 20, [[0.5, 0.5]] * 40, ["f", "m"] * 20, classes=["a", "b"])
    for expected in (True, False):
        report = Report("A model", tables=(GroupSection(table, expected=expected),))
        assert to_dict(report)["tables"][0]["expected"] is expected
        assert ("Rates are expected ones" in render(report)) is expected


def test_what_is_no_guarantee_is_refused() -> None:
    with pytest.raises(InputError, match="guarantee_"):
        certain(None)
    with pytest.raises(InputError, match="guarantee"):
        Report("A model", guarantee=MIXING)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at_most"):
        CertainLine("Error", math.nan)
