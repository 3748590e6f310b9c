"""The first lines of a page: warnings, fairness, privacy, error, other gaps; what is known is said,
first, in words."""

from __future__ import annotations

import html
import math
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from fairveil.core.events import Gaussian
from fairveil.errors import InputError
from fairveil.figures import GapFigure, Measure
from fairveil.metrics import GroupTable, group_table
from fairveil.privacy import PrivacyStatement, Promise
from fairveil.report import (
    Baseline,
    Baselines,
    GroupSection,
    Report,
    baselines,
    first_lines,
    render,
    to_dict,
)
from fairveil.report.baselines import against_constant
from fairveil.report.certificates import CertificateLine, CertificateSection
from fairveil.report.first_lines import (
    ERROR_NOT_KNOWN,
    NOT_HELD_OUT,
    NOT_RATED,
    NOTHING_REQUIRED,
    verdict,
)
from fairveil.report.other_gaps import gaps_of
from fairveil.report.strength import right_guess, strength, word

RATE = GapFigure(
    "false negative",
    0.2,
    0.25,
    0.26,
    0.22,
    0.3,
    measure=Measure("rate", "percent"),
    training_noise=0.01,
    sentence="at most 20.0% of each sex's positives are missed",
)
GAP = GapFigure("demographic parity", 0.05, 0.03, 0.049, 0.03, 0.07, training_noise=0.005)


def table_of(
    wrong: float, share: float, *, rows: int = 2000, seed: int = 1, errs: str = "any"
) -> GroupTable:
    """Decisions that are wrong in a share of rows; `share`: of positives. errs="no": all are
    decided "no"."""
    rng = np.random.default_rng(seed)
    y = rng.random(rows) < share
    decided = np.zeros(rows, bool) if errs == "no" else np.where(rng.random(rows) < wrong, ~y, y)
    sex = np.where(np.arange(rows) % 2 == 0, "f", "m")
    return group_table(
        np.where(y, "yes", "no"), np.where(decided, "yes", "no"), sex, classes=("no", "yes")
    )


def labels(report: Report) -> list[str]:
    return [line.label for line in first_lines(report)]


def words(report: Report, label: str) -> str:
    return next(str(line) for line in first_lines(report) if line.label == label)


def statement(epsilon: float = 1.0, noise: str = "secure", **promise: Any) -> PrivacyStatement:
    plan = [Gaussian(5.0 / epsilon)]
    return PrivacyStatement.of(Promise(epsilon, 1e-6, **promise), plan, plan=plan, noise=noise)


def test_the_lines_stand_in_order_above_all_else() -> None:
    report = Report(
        "t",
        statement=statement(noise="seeded"),
        gaps=(GAP, RATE),
        tables=(GroupSection(table_of(0.2, 0.5)),),
    )
    assert labels(report) == ["Warning", "Fairness", "Privacy", "Error", "Other gaps"]
    page = render(report)
    heads = [page.index(f"<dt>{label}</dt>") for label in labels(report)]
    assert heads == sorted(heads)
    assert heads[-1] < page.index("<nav") < page.index("<figure")
    twin = to_dict(report)
    assert [one["label"] for one in twin["first_lines"]] == labels(report)
    assert (
        twin["verdict"] == " ".join(one["words"] for one in twin["first_lines"]) == verdict(report)
    )


def test_each_constraint_has_its_sentence_and_two_verdicts_apart() -> None:
    (line,) = (one for one in first_lines(Report("t", gaps=(GAP, RATE))) if one.label == "Fairness")
    assert [[part.verdict for part in one] for one in line.paragraphs] == [
        [None, "met", "cannot be told"],
        [None, "not met", "not met"],
    ]
    assert line.paragraphs[0][0].words == "Demographic parity gap, required: at most 5.0 points."
    assert (
        line.paragraphs[1][0].words == "Required: at most 20.0% of each sex's positives are missed."
    )
    assert (
        line.paragraphs[1][1].words
        == "Training rows: 25.0% (95% interval over the noise 23.0 to 27.0%)"
    )
    assert line.paragraphs[1][2].words == "Held-out people: 26.0% (95% interval 22.0 to 30.0%)"


def test_a_miss_that_rounding_hides_is_told() -> None:
    figure = GapFigure("parity", 0.05, 0.0502, training_noise=0.0, training_verdict="not met")
    assert "Above its bound by 0.02 points." in words(Report("t", gaps=(figure,)), "Fairness")
    far = replace(figure, training_noisy=0.07)
    assert "Above its bound" not in words(Report("t", gaps=(far,)), "Fairness")


def test_what_cannot_be_told_says_by_how_much_why_and_what_helps() -> None:
    near = GapFigure(
        "demographic parity",
        0.05,
        0.049,
        training_noise=0.00612,
        training_verdict="cannot be told",
        population_verdict="cannot be told",
    )
    told = words(Report("t", gaps=(near,)), "Fairness")
    assert "Inconclusive: 4.9 ± 1.2 points over the noise, required 5.0 points. The fit" in told
    assert "with a confidence of 0.95 for the constraint it targets a tighter bound" in told
    told = words(Report("t", gaps=(replace(near, training_noise=0.4),)), "Fairness")
    assert "The noise is wider than the bound: more rows" in told
    assert "targets the bound" not in told
    clear = replace(near, training_verdict="met", population_verdict="met")
    assert "Inconclusive" not in words(Report("t", gaps=(clear,)), "Fairness")


@pytest.mark.parametrize("verdict", ["met", "not met"])
def test_noise_is_not_named_where_sampling_alone_leaves_a_doubt(verdict: Any) -> None:
    shown = GapFigure(
        "demographic parity",
        0.05,
        0.035,
        training_noise=0.006,
        training_verdict=verdict,
        population_verdict="cannot be told",
    )
    told = words(Report("t", gaps=(shown,)), "Fairness")
    assert "±" not in told
    assert (
        "Inconclusive for the people that they were drawn from: 3.5 points on the training rows, "
        "required 5.0 points, and who is in the table is chance, too. The fit targets" in told
    )


@pytest.mark.parametrize(("at_most", "verdict"), [(0.046, "met"), (0.06, "cannot be told")])
def test_a_certificate_is_the_first_verdict_of_its_constraint(at_most: float, verdict: str) -> None:
    required = "the selection rates of any two groups of sex differ by at most 5.0 points"
    found = f"at most {100 * at_most:.1f} points in the population"
    lines = (CertificateLine(f"{required}: {found}", 0.05, at_most, verdict == "met"),)
    section = CertificateSection(verdict == "met", 0.95, 17924.0, lines, ("Draws.",))
    figure = GapFigure("demographic parity", 0.05, sentence=required)
    (line,) = (
        one
        for one in first_lines(Report("t", gaps=(figure,), certificate=section))
        if one.label == "Fairness"
    )
    assert [part.verdict for part in line.paragraphs[0]] == [None, verdict]
    assert line.paragraphs[0][1].words == (
        f"The people set aside (17,924, as released): {found}, with 95% confidence"
    )
    assert NOT_HELD_OUT not in str(line)


def test_where_nothing_is_known_that_is_said() -> None:
    report = Report("t", method="descent", statement=statement())
    assert words(report, "Fairness") == NOTHING_REQUIRED
    assert words(report, "Error") == ERROR_NOT_KNOWN
    assert "Rates by group are not known: no rows were held out" in html.unescape(render(report))
    assert "Rates by group are not known" not in render(
        replace(report, tables=(GroupSection(table_of(0.2, 0.5)),))
    )


# The best constant on the same rows


def test_a_model_that_is_worse_than_a_constant_is_named_in_the_first_line() -> None:
    report = Report(
        "t", statement=statement(noise="seeded"), tables=(GroupSection(table_of(0.3, 0.1)),)
    )
    first = first_lines(report)[0]
    assert first.label == "Warning"
    assert first.paragraphs[0][0].words.startswith("WORSE THAN THE BEST CONSTANT: ")
    assert "by answering always no." in first.paragraphs[0][0].words
    assert to_dict(report)["warnings"][1] == "INSECURE (seeded noise)."
    assert to_dict(report)["tables"][0]["constant"]["verdict"] == "worse"
    assert "Warning" not in labels(Report("t", tables=(GroupSection(table_of(0.1, 0.5)),)))


def test_a_model_that_answers_as_a_constant_does_is_named_too() -> None:
    report = Report("t", tables=(GroupSection(table_of(0.0, 0.3, errs="no")),))
    assert (
        words(report, "Warning")
        == "A CONSTANT: the model decides all 2,000 held-out people alike, no."
    )
    assert "They are the decisions of the best constant on these rows, always no" in words(
        report, "Error"
    )


def test_the_constant_is_compared_row_by_row() -> None:
    """Against counts made by hand, and a bootstrap of the difference."""
    table = table_of(0.25, 0.3, rows=1500, seed=5)
    rng = np.random.default_rng(5)
    y = rng.random(1500) < 0.3
    wrong = rng.random(1500) < 0.25
    found = against_constant(table)
    assert found is not None
    assert (found.answer, found.error) == ("no", pytest.approx(y.mean()))
    each = wrong.astype(float) - y
    assert found.difference == pytest.approx(each.mean())
    draws = np.random.default_rng(0)
    means = [draws.choice(each, 1500).mean() for _ in range(2000)]
    assert (found.low, found.high) == pytest.approx(
        tuple(np.quantile(means, [0.025, 0.975])), abs=0.006
    )


def test_the_interval_of_the_difference_covers() -> None:
    """Of 400 tables, 95 % or so hold the population's difference."""
    held = 0
    for seed in range(400):
        found = against_constant(table_of(0.2, 0.35, rows=300, seed=seed))
        assert found is not None
        held += found.low <= 0.2 - 0.35 <= found.high
    assert held >= 370


def test_weights_have_no_constant_to_compare_with() -> None:
    weighed = group_table(["a", "b"], ["a", "b"], ["f", "m"], sample_weight=[1.0, 3.0])
    assert against_constant(weighed) is None


# Baselines in training


@dataclass(frozen=True)
class Line:
    name: str
    remark: str
    error: float
    difference: float
    noise: float
    verdict: str
    fair: bool = True


@dataclass(frozen=True)
class Found:
    error: float
    noise: float
    unit: str
    lines: tuple[Line, ...]
    handed_out: str = "model"
    remark: str = ""

    @property
    def worse(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.verdict == "worse")


FOUND = Found(
    0.27,
    0.01,
    "error",
    (
        Line("the best constant", "always 'no'", 0.10, 0.17, 0.01, "worse"),
        Line(
            "mixing",
            "the unconstrained model with 37 % of its answers replaced by 'no'",
            0.265,
            0.005,
            0.01,
            "cannot be told",
        ),
    ),
)


def test_what_an_estimator_says_of_baselines_is_on_the_page() -> None:
    report = Report("t", method="descent", baselines=baselines(FOUND))
    assert words(report, "Warning") == (
        "WORSE THAN THE BEST CONSTANT (always 'no'): error 27.0% against 10.0% on the training "
        "rows, through noise."
    )
    error = words(report, "Error")
    assert error.startswith(
        "Of the training rows, 27.0% are decided wrongly (95% interval over the noise 25.0 to "
        "29.0%)."
    )
    assert "Against the best constant, always 'no', 10.0%: worse." in error
    assert error.endswith("replaced by 'no', 26.5%: cannot be told.")
    assert ERROR_NOT_KNOWN not in error
    twin = to_dict(report)["baselines"]
    assert (twin["handed_out"], [line["worse"] for line in twin["lines"]]) == (
        "model",
        [True, False],
    )
    nan = replace(
        FOUND,
        noise=math.inf,
        lines=(Line("mixing", "x", math.nan, math.nan, math.nan, "cannot be told"),),
    )
    unknown = Report("t", baselines=baselines(nan))
    assert words(unknown, "Error").endswith("(noise unknown). Against mixing, x: cannot be told.")
    handed = replace(
        report,
        baselines=baselines(
            replace(
                FOUND,
                handed_out="mixing",
                remark="70 % the model without constraints, 30 % always 'no'",
            )
        ),
    )
    said = (
        "Handed out is not the model that was found, but 70 % the model without constraints, 30 % "
        "always 'no'."
    )
    assert said in words(handed, "Error")
    assert to_dict(handed)["baselines"]["remark"].startswith("70 %")


@pytest.mark.parametrize(("error", "shown"), [(-0.05, "0.0%"), (1.31, "100.0%")])
def test_a_share_that_noise_carries_out_of_0_to_1_is_shown_inside(error: float, shown: str) -> None:
    rival = Line("the best constant", "always 'no'", error + 0.05, -0.05, 0.5, "cannot be told")
    report = Report("t", baselines=baselines(Found(error, 0.5, "error", (rival,))))
    said = words(report, "Error")
    assert f"Of the training rows, {shown} are decided wrongly (95% interval over the noise" in said
    assert not re.search(r"[-\u2212]\d|1[0-9][1-9]\.\d%", said)


def test_a_regressors_error_is_no_share() -> None:
    squared = Found(
        26946.0, 10.0, "mean squared error", (Line("the mean", "", 134.0, 26812.0, 10.0, "worse"),)
    )
    report = Report("t", baselines=baselines(squared))
    assert (
        "WORSE THAN THE MEAN: mean squared error 2.69e+04 against 134 on the training rows"
        in words(report, "Warning")
    )
    assert "%" not in words(report, "Error").replace("95%", "")


def test_what_are_no_baselines_is_refused() -> None:
    with pytest.raises(InputError, match="baselines_"):
        baselines(None)
    with pytest.raises(InputError, match="baselines"):
        Report("t", baselines=FOUND)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        Baseline("x", "", math.nan, 0.0, 0.0, "worse")
    assert Baselines(0.1, 0.0, "error", ()).lines == ()


# Privacy


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [(0.5, "strong"), (1.0, "strong"), (1.01, "reasonable"), (10.0, "reasonable"), (11, "weak")],
)
def test_an_epsilon_has_a_word(epsilon: float, said: str) -> None:
    assert word(epsilon) == said
    if right_guess(epsilon, 1e-6) <= 0.99 or said == "weak":
        assert f"This is {said} privacy by the scale of Ponomareva" in strength(
            epsilon, 1e-6, Promise(epsilon, 1e-6)
        )


@pytest.mark.parametrize(
    ("epsilon", "delta", "why", "scale"),
    [(0.5, 0.1, "delta is above 0.0001", "strong"), (9.0, 1e-6, "above 99%", "reasonable")],
)
def test_a_large_delta_or_a_sure_guess_is_weak_whatever_the_scale_says(
    epsilon: float, delta: float, why: str, scale: str
) -> None:
    told = strength(epsilon, delta, Promise(epsilon, delta))
    assert told.startswith("This is weak privacy: ")
    assert why in told
    assert f"though epsilon alone is {scale} by the scale of Ponomareva" in told


def test_the_best_guess_is_that_of_randomised_response() -> None:
    """Which reaches the bound: one bit, told rightly with probability e^eps / (1 + e^eps); with
    delta it is given away."""
    for epsilon in (0.1, 1.0, 5.0):
        assert right_guess(epsilon, 0.0) == pytest.approx(
            math.exp(epsilon) / (1 + math.exp(epsilon))
        )
        assert right_guess(epsilon, 0.1) == pytest.approx(0.1 + 0.9 * right_guess(epsilon, 0.0))
    assert "at most 73.2%" in strength(1.0, 1e-6, Promise(1.0, 1e-6)), "rounded up"
    assert "at most 100.0%" not in strength(9.0, 1e-6, Promise(9.0, 1e-6)), (
        "what is below 1 is not shown as 1"
    )


@pytest.mark.parametrize(
    ("promise", "said"),
    [
        ({}, "whether one row was in the table"),
        ({"neighbours": "replace-one"}, "which of two rows was in the table"),
        (
            {"protects": "sensitive_features"},
            "which of two values one person's sensitive attribute has",
        ),
    ],
)
def test_what_is_guessed_is_what_is_protected(promise: dict[str, Any], said: str) -> None:
    assert said in words(Report("t", statement=statement(**promise)), "Privacy")


def test_noise_that_can_be_taken_away_is_not_rated() -> None:
    told = words(Report("t", statement=statement(noise="seeded")), "Privacy")
    assert told.endswith(NOT_RATED)
    assert "strong" not in told.replace(NOT_RATED, "")


# Other gaps


def apart() -> GroupTable:
    """True positive rates 0.9 and 0.6, false positive rates 0.1 and 0.1; half are positive."""
    y = ["yes"] * 200 + ["no"] * 200
    f = ["yes"] * 180 + ["no"] * 20 + ["yes"] * 20 + ["no"] * 180
    m = ["yes"] * 120 + ["no"] * 80 + ["yes"] * 20 + ["no"] * 180
    return group_table(y * 2, f + m, ["f"] * 400 + ["m"] * 400, classes=("no", "yes"))


def test_gaps_that_were_not_asked_for_are_told_the_largest_first() -> None:
    report = Report("t", gaps=(GAP,), tables=(GroupSection(apart()),))
    told = words(report, "Other gaps")
    assert told.startswith(
        "Largest other gaps on held-out people, with 95% intervals: true positive rate 30.0 points "
        "("
    )
    assert "; f 90.0%, m 60.0%), error 15.0 points (" in told
    assert "false positive rate 0.0 points" in told
    assert "selection rate" not in told, "it was asked for"
    twin = to_dict(report)["tables"][0]["gaps"]
    assert {one["rate"]: one["required"] for one in twin}["selection_rate[yes]"] is True
    assert [one["gap"] for one in twin] == sorted((one["gap"] for one in twin), reverse=True)
    free = words(replace(report, gaps=()), "Other gaps")
    assert free.startswith("Largest gaps on")
    assert "selection rate 15.0 points" in free


def test_the_interval_of_a_gap_is_newcombes() -> None:
    """Newcombe (1998), example (a) of his table II: 56/70 against 48/80."""
    y = ["yes"] * 150
    decided = ["yes"] * 56 + ["no"] * 14 + ["yes"] * 48 + ["no"] * 32
    table = group_table(y, decided, ["a"] * 70 + ["b"] * 80, classes=("no", "yes"))
    found = next(one for one in gaps_of(table) if one.rate == "selection_rate[yes]")
    assert (found.gap, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)


def test_intervals_of_gaps_cover() -> None:
    """Five equal groups: the population's gap, nothing, is in the interval of 95 % or more."""
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(150):
        decided = np.where(rng.random(500) < 0.4, "yes", "no")
        table = group_table(["yes"] * 500, decided, np.arange(500) % 5, classes=("no", "yes"))
        missed += next(one for one in gaps_of(table) if one.rate == "selection_rate[yes]").low > 0
    assert missed <= 0.05 * 150 + 4


def test_of_many_classes_every_rate_is_looked_at() -> None:
    y = ["a", "b", "c", "d"] * 100
    table = group_table(y, ["a", "b", "c", "a"] * 50 + y[:200], ["f"] * 200 + ["m"] * 200)
    report = Report("t", tables=(GroupSection(table),))
    assert "true positive rate of d 100.0 points" in words(report, "Other gaps")
    note = to_dict(report)["tables"][0]["panels"]["note"]
    assert (
        "Of 4 classes, the selection rates of those in which groups differ most are drawn." in note
    )
    assert len(to_dict(report)["tables"][0]["panels"]["axes"]) == 4
    three = group_table(["a", "b", "c"] * 10, ["a", "b", "c"] * 10, ["f", "m"] * 15)
    assert (
        "selection rate of each is drawn instead"
        in to_dict(Report("t", tables=(GroupSection(three),)))["tables"][0]["panels"]["note"]
    )


def test_one_group_has_no_gaps() -> None:
    table = group_table(["a", "b"] * 10, ["a", "b"] * 10, ["f"] * 20)
    assert gaps_of(table) == ()
    assert "Other gaps" not in labels(Report("t", tables=(GroupSection(table),)))
