"""The decision statement: what stands first, and that no verdict flatters; page and twin hold the same,
and are written together or not at all."""

from __future__ import annotations

import itertools
import json
import os
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fairveil._verdicts import MET, NOT_MET, UNCLEAR
from fairveil.core.events import Gaussian, NonPrivate
from fairveil.errors import InputError
from fairveil.estimators.reports import BaselineReport, Compared
from fairveil.facts import Cells
from fairveil.metrics import GroupTable, group_table
from fairveil.privacy import PrivacyStatement, Promise
from fairveil.show import Axis, Fact, Note, People, Report, Requirement
from fairveil.show.parts import listed
from fairveil.show.report import NOT_RATED, NOTHING_REQUIRED, overall
from fairveil.show.scale import right_guess, strength, word

HOSTILE = "<script>alert('x')</script> & \"<b>\""
SENTENCE = "the selection rates of any two groups of sex differ by at most 5.0 points"
RATE = Requirement(
    "false negative",
    0.2,
    0.25,
    0.26,
    0.22,
    0.3,
    measure=Axis("rate", "percent"),
    training_noise=0.01,
    sentence="at most 20.0% of each sex's positives are missed",
)
GAP = Requirement("demographic parity", 0.05, 0.03, 0.049, 0.03, 0.07, training_noise=0.005)


def table_of(wrong: float, share: float, *, constant: bool = False) -> GroupTable:
    """Decisions of 2,000 people, wrong in a share of rows; `share`: of positives."""
    rng = np.random.default_rng(1)
    y = rng.random(2000) < share
    decided = np.zeros(2000, bool) if constant else np.where(rng.random(2000) < wrong, ~y, y)
    sex = np.where(np.arange(2000) % 2 == 0, "f", "m")
    words = [np.where(which, "yes", "no") for which in (y, decided)]
    return group_table(*words, sex, classes=("no", "yes"))


def statement(epsilon: float = 1.0, noise: Any = "secure", **promise: Any) -> PrivacyStatement:
    plan = [Gaussian(5.0 / epsilon)]
    return PrivacyStatement.of(Promise(epsilon, 1e-6, **promise), plan, plan=plan, noise=noise)


def baselines(verdict: str, handed_out: str = "model") -> BaselineReport:
    """The best constant beside a model of error 31 %."""
    by = {"better": -0.1, "worse": 0.1, "inconclusive": 0.0}[verdict]
    line = Compared("the best constant", "always 'no'", 0.31 - by, by, 0.012)
    return BaselineReport(0.31, 0.012, (line,), handed_out=handed_out, remark="always 'no'")


def certificate(certified: bool) -> Any:
    """What a report reads of one."""
    words = f"{SENTENCE}: at most {4.6 if certified else 6.0} points in the population"
    return SimpleNamespace(
        people=17924.0,
        confidence=0.95,
        sentences=(words,),
        bounds=(SimpleNamespace(certified=certified),),
        parts=lambda: (Note(words),),
        to_dict=lambda: {"certified": certified},
    )


def under(report: Report, label: str) -> list[Fact]:
    """The facts of a label and those that go on."""
    found, here = [], ""
    for fact in report.decision():
        here = fact.label or here
        found += [fact] if here == label else []
    return found


def words(report: Report, label: str) -> str:
    return " ".join(fact.words for fact in under(report, label))


FULL = Report(
    f"Income {HOSTILE}",
    "A made-up census.",
    "descent",
    statement=statement(),
    statement_file="statement of mine.json",
    required=(replace(GAP, sentence=SENTENCE), RATE),
    people=(People(table_of(0.2, 0.5)),),
    baselines=baselines("better"),
    certificate=certificate(True),
    sections=((f"More {HOSTILE}", listed(Note(HOSTILE))),),
    notes=("A note.",),
    not_covered=("The choice of columns.",),
    verify=("fairveil verify other.json",),
)


def test_the_block_stands_first_and_says_everything_in_order() -> None:
    report = replace(FULL, statement=statement(noise="seeded"))
    labels = [fact.label for fact in report.decision() if fact.label]
    assert labels.count("Fairness") == 2, "one a constraint"
    labels = list(dict.fromkeys(labels))
    assert labels == ["Warning", "Fairness", "Privacy", "Error", "Other gaps", "Not assessed"]
    page = report.to_html()
    heads = [page.index(f">{label}</dt>") for label in labels]
    assert heads == sorted(heads)
    assert heads[-1] < page.index("Signature:") < page.index("<nav") < page.index("<figure")
    assert "(17,924, as released)" in words(report, "Fairness"), "n of the people set aside"
    assert "Held-out people (2,000; 1,000 in the smallest group)" in words(report, "Fairness")


@pytest.mark.parametrize("told", list(itertools.product((MET, NOT_MET, UNCLEAR, None), repeat=3)))
@pytest.mark.parametrize("certified", [None, "certified", "not certified"])
def test_guarantee_1_no_verdict_flatters(told: tuple[Any, ...], certified: str | None) -> None:
    places = (
        "on the training rows",
        "for the people that they were drawn from",
        "on held-out people",
    )
    said = overall(dict(zip(places, told, strict=True)), certified)
    if certified is not None:
        assert said.startswith(certified)
        assert ("not met" in said) == (NOT_MET in told)
    elif NOT_MET in told:
        assert said == "not met"
    elif UNCLEAR in told:
        assert said == "inconclusive"
    else:
        assert (said == "met") == (MET in told[1:])
        assert said in ("", "met", "met on the training rows")


@pytest.mark.parametrize(
    ("found", "head", "said"),
    [
        ({"baselines": baselines("better")}, "met", "Demographic parity gap"),
        (
            {"baselines": baselines("inconclusive")},
            "no verdict",
            "The model is not shown to be better than a constant, always 'no'. Demographic",
        ),
        (
            {"baselines": baselines("worse", "constant")},
            "no verdict",
            "The model is a constant, always 'no'. Demographic",
        ),
        (
            {"people": (People(table_of(0.0, 0.3, constant=True)),)},
            "no verdict",
            "The model is a constant, always no. Demographic",
        ),
    ],
)
def test_a_constant_is_never_fair(found: dict[str, Any], head: str, said: str) -> None:
    kept = Requirement(
        "demographic parity", 0.05, 0.002, training_noise=0.004, population_verdict="met"
    )
    first, *_ = under(Report("t", method="x", required=(kept,), **found), "Fairness")
    assert first.verdict == head
    assert first.words.startswith(said)


@pytest.mark.parametrize("certified", [True, False])
def test_a_certificate_is_the_first_verdict_of_its_constraint(certified: bool) -> None:
    required = Requirement(
        "demographic parity", 0.05, 0.049, training_noise=0.006, sentence=SENTENCE
    )
    report = Report("t", required=(required,), certificate=certificate(certified), method="x")
    first, second, *_ = under(report, "Fairness")
    assert (first.words, first.verdict == "certified") == (f"Required: {SENTENCE}.", certified)
    assert first.verdict == second.verdict
    assert second.words.startswith("The people set aside (17,924, as released): at most ")
    assert second.words.endswith("in the population, with 95% confidence.")
    assert "leave room to aim" not in words(report, "Fairness")
    assert "No bound is certified" not in words(report, "Not assessed")
    alone = under(Report("t", certificate=certificate(certified)), "Fairness")
    assert [fact.verdict for fact in alone] == [first.verdict] * 2


def test_each_constraint_has_its_sentence_and_its_verdicts_apart() -> None:
    found = under(Report("t", required=(GAP, RATE)), "Fairness")
    assert [(fact.verdict, fact.words) for fact in found] == [
        ("inconclusive", "Demographic parity gap, required: at most 5.0 points."),
        ("met", "Training rows: 3.0 points (95% interval over the noise 2.0 to 4.0 points)."),
        ("inconclusive", "Held-out people: 4.9 points (95% interval 3.0 to 7.0 points)."),
        ("not met", "Required: at most 20.0% of each sex's positives are missed."),
        ("not met", "Training rows: 25.0% (95% interval over the noise 23.0 to 27.0%)."),
        ("not met", "Held-out people: 26.0% (95% interval 22.0 to 30.0%)."),
    ]
    bare = under(Report("t", required=(Requirement("parity", 0.05, held_out=0.049),)), "Fairness")
    assert bare[-1].verdict == "inconclusive", "a value without an interval proves nothing"
    near = Requirement("parity", 0.05, 0.0502, training_noise=0.0, training_verdict="not met")
    assert "Above its bound by 0.02." in words(Report("t", required=(near,)), "Fairness")


def test_what_is_inconclusive_says_by_how_much_why_and_what_helps() -> None:
    near = replace(GAP, training_noisy=0.049, training_noise=0.00612, training_verdict=UNCLEAR)
    told = words(Report("t", required=(near,)), "Fairness")
    assert "Inconclusive: 4.9 ± 1.2 points over the noise, required 5.0 points. More rows" in told
    wide = words(Report("t", required=(replace(near, training_noise=0.4),)), "Fairness")
    assert "The noise is wider than the bound: more rows" in wide
    assert "leave room to aim" not in wide
    sampled = replace(GAP, population_verdict=UNCLEAR)
    told = words(Report("t", required=(sampled,)), "Fairness")
    assert "±" not in told
    assert "3.0 points on the training rows, required 5.0 points, and who is in the table" in told


def test_where_nothing_is_known_that_is_said() -> None:
    report = Report("t", method="descent", statement=statement())
    assert words(report, "Fairness") == NOTHING_REQUIRED
    assert "Not known: no rows were held out" in words(report, "Error")
    assert "No held-out people were measured" in words(report, "Not assessed")
    assert "Rates by group are not known: no rows were held out" in unescape(report.to_html())
    assert "no privacy statement was passed" in Report("t", method="x").to_html()


def test_warnings_come_first_and_a_cost_is_told_as_such() -> None:
    worse = Report("t", statement=statement(noise="seeded"), people=(People(table_of(0.3, 0.1)),))
    first, second = under(worse, "Warning")
    assert first.words.startswith("WORSE THAN THE BEST CONSTANT: ")
    assert second.words == "INSECURE (seeded noise)."
    alike = Report("t", people=(People(table_of(0.0, 0.3, constant=True)),))
    assert "A CONSTANT: the model decides all 2,000" in words(alike, "Warning")
    assert "WORSE THAN THE BEST CONSTANT (always 'no')" in words(
        Report("t", baselines=baselines("worse")), "Warning"
    )
    broken = PrivacyStatement.of(Promise(0.1, 1e-6), [Gaussian(12.0)], plan=[Gaussian(12.0)])
    assert "MORE WAS SPENT THAN THE BUDGET" in words(Report("t", statement=broken), "Warning")
    open_ = PrivacyStatement.of(Promise(np.inf, 0.0), [NonPrivate()])
    assert "nobody has a guarantee" in words(Report("t", statement=open_), "Privacy")
    free = Compared("no constraint", "the same budget's model", 0.25, 0.066, 0.01)
    told = words(Report("t", baselines=BaselineReport(0.316, 0.01, (free,))), "Error")
    assert "25.0%: cost of the constraint: +6.6 points." in told
    assert "worse" not in told


@pytest.mark.parametrize(("error", "shown"), [(-0.05, "0.0%"), (1.31, "100.0%")])
def test_a_share_that_noise_carries_out_of_0_to_1_is_shown_inside(error: float, shown: str) -> None:
    line = Compared("the best constant", "always 'no'", error + 0.05, -0.05, 0.5)
    said = words(Report("t", baselines=BaselineReport(error, 0.5, (line,))), "Error")
    assert f"Of the training rows, {shown} are decided wrongly (95% interval over the noise" in said
    assert not re.search(r"-\d|1[0-9][1-9]\.\d%", said)


def test_gaps_that_nobody_required_are_told_the_largest_first() -> None:
    y = ["yes"] * 200 + ["no"] * 200
    f = ["yes"] * 180 + ["no"] * 20 + ["yes"] * 20 + ["no"] * 180
    m = ["yes"] * 120 + ["no"] * 80 + ["yes"] * 20 + ["no"] * 180
    table = group_table(y * 2, f + m, ["f"] * 400 + ["m"] * 400, classes=("no", "yes"))
    told = words(Report("t", required=(GAP,), people=(People(table),)), "Other gaps")
    assert told.startswith(
        "Largest other gaps on held-out people, with 95% intervals: true positive rate 30.0 points ("
    )
    assert "; f 90.0%, m 60.0%), error 15.0 points (" in told
    assert "selection rate" not in told, "it was required"
    assert "selection rate 15.0" in words(Report("t", people=(People(table),)), "Other gaps")


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (0.5, 1e-6, "strong"),
        (1.0, 1e-6, "strong"),
        (1.01, 1e-6, "reasonable"),
        (4.0, 1e-6, "reasonable"),
        (11.0, 1e-6, "weak"),
        (0.5, 0.1, "weak"),
        (9.0, 1e-6, "weak"),
    ],
)
def test_an_epsilon_has_a_word_with_its_delta_judged_beside_it(
    epsilon: float, delta: float, said: str
) -> None:
    assert word(epsilon, delta) == said
    told = strength(epsilon, delta, Promise(epsilon, delta))
    assert told.startswith(f"This is {said} privacy")
    assert ("though epsilon alone is" in told) == (word(epsilon) != said)


def test_the_best_guess_is_that_of_randomised_response_and_rounds_up() -> None:
    for epsilon in (0.1, 1.0, 5.0):
        exact = np.exp(epsilon) / (1 + np.exp(epsilon))
        assert right_guess(epsilon, 0.0) == pytest.approx(exact)
        assert right_guess(epsilon, 0.1) == pytest.approx(0.1 + 0.9 * exact)
    assert "at most 73.2%" in strength(1.0, 1e-6, Promise(1.0, 1e-6))
    assert "at most 100.0%" not in strength(9.0, 1e-6, Promise(9.0, 1e-6))
    attribute = words(Report("t", statement=statement(protects="sensitive_features")), "Privacy")
    assert "which of two values one person's sensitive attribute has" in attribute
    assert words(Report("t", statement=statement(noise="seeded")), "Privacy").endswith(NOT_RATED)


# Page and twin


def leaves(value: Any) -> list[Any]:
    """Every number and text of a JSON value."""
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return [value] if inner is None else [leaf for one in inner for leaf in leaves(one)]


def test_guarantee_2_page_and_twin_hold_the_same() -> None:
    twin, page = json.loads(FULL.to_json()), FULL.to_html()
    texts = [re.sub(r"\s+", " ", unescape(one)).strip() for one in re.split(r"<[^>]*>", page)]
    for fact in twin["decision"]:
        assert fact["words"] in texts
        assert not fact["verdict"] or fact["verdict"] in texts
    for section in twin["sections"]:
        assert section["heading"] in texts
    for row in twin["tables"][0]["groups"]:
        rate = row["rates"]["selection_rate[yes]"]
        shown = f"{100 * rate['value']:.1f}% ({100 * rate['low']:.1f} to {100 * rate['high']:.1f}%)"
        assert shown in texts
    numbers = {leaf for leaf in leaves(twin) if isinstance(leaf, float)}
    table = FULL.people[0].table
    assert {rate.value for row in table.rows for rate in row.rates.values()} <= numbers
    assert PrivacyStatement.from_json(json.dumps(twin["statement"])) == FULL.statement
    other = replace(FULL, required=(replace(FULL.required[0], held_out=0.0501), RATE))
    assert other.to_html() != page
    assert other.to_dict() != FULL.to_dict()


def test_words_are_escaped_and_the_outline_is_sound() -> None:
    page = FULL.to_html()
    assert "<script" not in page
    assert "<b>" not in page
    levels = [int(level) for level in re.findall(r"<h([1-6])", page)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    named = re.findall(r'href="#([^"]+)"', page)
    named += [
        one for text in re.findall(r'aria-labelledby="([^"]+)"', page) for one in text.split()
    ]
    assert set(named) <= set(ids)
    assert "fairveil verify &#x27;statement of mine.json&#x27;" in page
    assert FULL._repr_html_().startswith("<iframe title=")


def test_page_and_twin_are_written_beside_each_other_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, twin = FULL.write(tmp_path / "new" / "page.html")
    assert sorted(os.listdir(tmp_path / "new")) == ["page.html", "page.json"]
    assert page.read_text("utf-8") == FULL.to_html(), "the same report gives the same bytes"
    assert json.loads(twin.read_text("utf-8")) == json.loads(FULL.to_json())
    before = {file.name: file.read_bytes() for file in page.parent.iterdir()}

    def broken(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        replace(FULL, title="Another").write(page)
    assert {file.name: file.read_bytes() for file in page.parent.iterdir()} == before


def test_what_cannot_be_written_writes_nothing(tmp_path: Path) -> None:
    for name in ("report.txt", "report", "report.json"):
        with pytest.raises(InputError, match=r"\.html"):
            FULL.write(tmp_path / name)
    (tmp_path / "taken.json").mkdir()
    with pytest.raises(InputError, match="taken"):
        FULL.write(tmp_path / "taken.html")
    half = group_table(["no", "yes"], ["yes", "yes"], ["a\ud800", "b"])
    with pytest.raises(InputError, match="UTF-8"):
        Report("t", people=(People(half),)).write(tmp_path / "report.html")
    assert os.listdir(tmp_path) == ["taken.json"]
    hidden = group_table(["\x00no", "yes"], ["yes", "yes"], ["a\nb", "\x1b[31m"], positive="\x00no")
    page, _ = Report("t", people=(People(hidden),)).write(tmp_path / "report.html")
    assert not set(page.read_text("utf-8")) & {"\x00", "\x1b"}


def test_small_and_empty_groups_are_said() -> None:
    y = np.array(["no", "yes"] * 50 + ["no"] * 3)
    table = group_table(y, y, ["f"] * 100 + ["m"] * 3, groups=Cells((("f", "m", "none"),)))
    report = Report("t", people=(People(table, expected=True),))
    assert "2 groups have fewer than 30 rows" in words(report, "Error")
    page = report.to_html()
    assert "m *" in page
    assert "Rates are expected ones" in page
    rows = report.to_dict()["sections"][0]["parts"]["table"]
    assert [row["true positive rate of yes"] for row in rows] == [1.0, None, None, 1.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Report(""),
        lambda: Report("two\nlines"),
        lambda: Report("t", not_covered="one sentence"),  # type: ignore[arg-type]
        lambda: Requirement("parity", 0.05, float("inf")),
    ],
)
def test_what_cannot_be_said_is_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()
