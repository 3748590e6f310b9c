"""The page: numbers equal to the twin's, words escaped, nothing loaded, figures with text
alternatives, a sound outline."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from fairveil.core.events import Gaussian, NonPrivate
from fairveil.errors import InputError
from fairveil.figures import FrontierFigure, GapFigure
from fairveil.metrics import GroupTable
from fairveil.privacy import PrivacyStatement, Promise
from fairveil.privacy.shown import at_most
from fairveil.privacy.statement.mechanism_words import HEADS
from fairveil.privacy.statement.mechanism_words import table as releases
from fairveil.privacy.statement.words import STAMP_WORDS, items
from fairveil.report import Coefficient, GroupSection, Report, render, to_dict
from fairveil.report.page import counted, shown

MARKS = "“”().,:;"
VOID = {
    "meta",
    "br",
    "link",
    "img",
    "input",
    "hr",
    "line",
    "rect",
    "circle",
    "polygon",
    "polyline",
    "path",
}
HOSTILE = "<script>alert('x')</script> & \"<b>\""


class Page(HTMLParser):
    """Elements with their attributes, and texts with the elements that they stand in."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict[str, str]]] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, list[tuple[str, dict[str, str]]]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.elements.append((tag, values))
        if tag not in VOID:
            self.open.append((tag, values))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop()[0] == tag, f"</{tag}> crosses another element"

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((re.sub(r"\s+", " ", data).strip(), list(self.open)))


@pytest.fixture(scope="module")
def html(full: Report) -> str:
    return render(full)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


@pytest.fixture(scope="module")
def twin(full: Report) -> dict[str, Any]:
    twin: dict[str, Any] = json.loads(json.dumps(to_dict(full), allow_nan=False))
    return twin


def leaves(value: Any) -> Iterator[Any]:
    """Every number and text of a JSON value."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def strays(page: Page, twin: dict[str, Any]) -> tuple[list[str], int]:
    """Numbers of the page that are not the twin's, or not rounded from it; and how many were looked
    at."""
    numbers = {
        leaf
        for leaf in leaves(twin)
        if isinstance(leaf, (int, float)) and not isinstance(leaf, bool)
    }
    found = [
        (text, float(inside[-1][1]["value"]))
        for text, inside in page.texts
        if inside[-1][0] == "data"
    ]
    wrong = []
    for text, value in found:
        plain, decimals = (
            float(text.replace("−", "-").replace(",", "")),
            len(text.partition(".")[2]),
        )
        # To the nearest; up where it is a bound or what was spent of a budget, down what is left of
        # it.
        slack = 1.001 if decimals else 0.501
        rounded = any(abs(plain - factor * value) <= slack * 10.0**-decimals for factor in (1, 100))
        if value not in numbers or not rounded:
            wrong.append(text)
    return wrong, len(found)


def test_every_number_in_the_page_is_the_twins(page: Page, twin: dict[str, Any]) -> None:
    """Guarantee 3: unrounded in `value`, and what is shown is that number rounded."""
    wrong, looked_at = strays(page, twin)
    assert not wrong
    assert looked_at > 150


@pytest.mark.parametrize(
    ("right", "wrong"),
    [(">400</data>", ">401</data>"), ('<data value="0.0493">', '<data value="0.0494">')],
)
def test_a_number_that_is_not_the_twins_is_found(
    html: str, twin: dict[str, Any], right: str, wrong: str
) -> None:
    assert right in html
    assert strays(Page(html.replace(right, wrong, 1)), twin)[0]


def test_digits_outside_of_data_elements_are_sentences_of_the_twin(
    page: Page, twin: dict[str, Any]
) -> None:
    """Guarantee 3, for words: each text with a digit stands letter for letter in the twin, or is
    made of its words."""
    words = [leaf for leaf in leaves(twin) if isinstance(leaf, str)] + list(
        twin["versions"].values()
    )
    whole = {re.sub(r"\s+", " ", one).strip() for one in words}
    tokens = {token.strip(MARKS) for one in words for token in one.split()}
    unknown = []
    for text, inside in page.texts:
        tags = [tag for tag, _ in inside]
        if "style" in tags or "svg" in tags or tags[-1] == "data":
            continue
        digits = {token.strip(MARKS) for token in text.split() if re.search(r"\d", token)}
        if text not in whole and not digits <= tokens:
            unknown.append(text)
    assert not unknown
    assert any(re.search(r"\d", text) for text, inside in page.texts if inside[-1][0] == "p")


def test_numbers_in_figures_are_the_twins(page: Page, twin: dict[str, Any]) -> None:
    numbers = {
        leaf
        for leaf in leaves(twin)
        if isinstance(leaf, (int, float)) and not isinstance(leaf, bool)
    }
    drawn = [
        attributes[name]
        for _, attributes in page.elements
        for name in attributes
        if name.startswith("data-")
    ]
    assert len(drawn) > 100
    assert all(float(value) in numbers for value in drawn)
    drawn_of = [figure for section in ("frontiers", "gaps", "tables") for figure in twin[section]]
    sentences = {one for figure in (*drawn_of, twin["ledger"]) for one in leaves(figure)}
    found = {text for text, inside in page.texts if inside[-1][0] == "desc"}
    assert found
    assert found <= sentences


def test_a_changed_number_is_noticed(full: Report, html: str) -> None:
    other = replace(full, gaps=(replace(full.gaps[0], held_out=0.0494), full.gaps[1]))
    assert Page(render(other)).texts != Page(html).texts
    assert to_dict(other) != to_dict(full)


def test_nothing_is_loaded_and_nothing_runs(page: Page, html: str) -> None:
    """Guarantee 1."""
    for tag, attributes in page.elements:
        assert tag not in {
            "script",
            "iframe",
            "object",
            "embed",
            "link",
            "img",
            "image",
            "base",
            "form",
            "foreignobject",
            "use",
        }
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in {"href", "src", "xlink:href", "fill", "action", "srcset"}:
                assert value == "none" or value.startswith(("#", "url(#")), (tag, value)
    style = "".join(text for text, inside in page.texts if inside[-1][0] == "style")
    assert "url(" not in style
    assert "@import" not in style
    outside = [
        one
        for one in re.findall(r"https?://[^\s\"'<]+", html)
        if one != "http://www.w3.org/2000/svg"
    ]
    assert not outside


def test_hostile_words_are_escaped(html: str, page: Page) -> None:
    """Guarantee 2."""
    assert "<script" not in html
    assert "<b>" not in html
    assert any(HOSTILE in text and inside[-1][0] == "th" for text, inside in page.texts), (
        "the group is named as it is"
    )
    assert any(text == f"Income {HOSTILE}" and inside[-1][0] == "h1" for text, inside in page.texts)


def test_the_outline_is_sound(page: Page) -> None:
    assert page.elements[0] == ("html", {"lang": "en"})
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [attributes["href"][1:] for tag, attributes in page.elements if tag == "a"]
    named = [
        one
        for _, attributes in page.elements
        for one in attributes.get("aria-labelledby", "").split()
    ]
    assert set(targets) | set(named) <= set(ids)
    assert [tag for tag, _ in page.elements if tag in {"header", "main", "footer", "nav"}] == [
        "header",
        "main",
        "nav",
        "footer",
    ]


def test_every_figure_has_a_text_alternative_and_a_table(page: Page, full: Report) -> None:
    drawings = [attributes for tag, attributes in page.elements if tag == "svg"]
    figures = len(full.frontiers) + len(full.gaps) + len(full.tables) + 2  # and two of the ledger
    assert len(drawings) == 2 * figures, "one for wide pages and one for narrow ones"
    assert all(
        one["role"] == "img" and len(one["aria-labelledby"].split()) == 2 for one in drawings
    )
    assert sum(tag == "caption" for tag, _ in page.elements) >= figures
    heads = [attributes for tag, attributes in page.elements if tag == "th"]
    assert all(one.get("scope") in {"row", "col"} for one in heads)


def test_counts_stand_beside_rates_and_undefined_is_said(page: Page, table: GroupTable) -> None:
    rows: dict[str, list[str]] = {}
    texts = [(text, [tag for tag, _ in inside]) for text, inside in page.texts]
    current = ""
    for text, tags in texts:
        if "tbody" in tags and tags[-1] == "th":
            current = text
            rows[current] = []
        elif "tbody" in tags and current:
            rows[current].append(text)
    assert rows["f"][0] == "400"
    assert rows["Everyone"][0] == "1,003"
    assert "small group" in rows[HOSTILE]
    assert "small group" not in rows["f"]
    assert "undefined" in rows[HOSTILE], "no positive label: the true positive rate is undefined"
    assert rows["none"].count("undefined") == 4
    selected = table["f"].rates["selection_rate[>50K]"]
    assert f"{100 * selected.value:.1f}" in rows["f"]
    assert f"{100 * selected.low:.1f}" in rows["f"]


def test_the_statement_is_told_and_what_is_not_covered(
    page: Page, statement: PrivacyStatement
) -> None:
    texts = {text for text, _ in page.texts}
    for heading, words in items(statement):
        assert heading in texts or heading == "Not covered"
        assert words in texts or heading in ("Not covered", "Mechanisms")
    assert {text for row in releases(statement) for text in row} | {*HEADS} <= texts
    whole = " ".join(texts)
    assert "the split into two parts; sex was read from the data" in whole
    assert "The choice of columns." in texts
    assert (
        "The group table (held-out people): exact counts and rates of these rows, without noise."
        in texts
    )
    assert any(text.startswith("The held-out gaps: measured exactly") for text in texts)
    assert "fairveil verify 'statement of mine.json'" in texts
    assert "BOUNDS READ FROM THE DATA" not in texts or "data-dependent-bounds" in statement.stamps


def test_flags_head_the_page(table: GroupTable) -> None:
    seeded = PrivacyStatement.of(
        Promise(1.0, 1e-6), [Gaussian(12.0)], plan=[Gaussian(12.0)], noise="seeded"
    )
    assert "INSECURE (seeded noise)." in {
        text for text, _ in Page(render(Report("t", statement=seeded))).texts
    }
    none = PrivacyStatement.of(Promise(math.inf, 0.0), [NonPrivate()])
    made = render(Report("t", statement=none))
    assert "NOT PRIVATE" in made
    assert "nobody has a guarantee" in made
    broken = PrivacyStatement.of(Promise(0.1, 1e-6), [Gaussian(12.0)], plan=[Gaussian(12.0)])
    assert "MORE WAS SPENT THAN THE BUDGET" in render(Report("t", statement=broken))
    assert "no privacy statement was handed to this page" in render(
        Report("t", tables=(GroupSection(table),))
    )


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (GapFigure("parity", 0.05, held_out=0.049), "Held-out people: 4.9 points: cannot be told."),
        (
            GapFigure("parity", 0.05, held_out=0.052, held_out_low=0.045, held_out_high=0.06),
            "(95% interval 4.5 to 6.0 points): cannot be told.",
        ),
        (
            GapFigure("parity", 0.05, held_out=0.03, held_out_low=0.02, held_out_high=0.04),
            "2.0 to 4.0 points): met.",
        ),
        (
            GapFigure("parity", 0.05, 0.048, training_noise=0.004),
            "over the noise 4.0 to 5.6 points): cannot be told.",
        ),
        (
            GapFigure("parity", 0.05, 0.03, training_noise=0.004),
            "over the noise 2.2 to 3.8 points): met.",
        ),
        (
            GapFigure("parity", 0.05, 0.07, training_noise=0.004),
            "over the noise 6.2 to 7.8 points): not met.",
        ),
        (
            GapFigure("parity", 0.05, held_out=0.09, held_out_low=0.08, held_out_high=0.1),
            "8.0 to 10.0 points): not met.",
        ),
        (GapFigure("parity", 0.05, 0.047), "No held-out people were measured"),
        (GapFigure("parity", None, held_out=0.03), "Parity gap. Held-out people: 3.0 points."),
    ],
)
def test_the_verdict_says_whether_what_was_asked_was_got(figure: GapFigure, words: str) -> None:
    assert words in to_dict(Report("t", gaps=(figure,)))["verdict"]


def test_a_verdict_of_ones_own_is_taken(full: Report) -> None:
    assert to_dict(replace(full, verdict="It is good."))["verdict"] == "It is good."


def test_spent_epsilon_is_rounded_up(full: Report, statement: PrivacyStatement) -> None:
    (spent,) = (
        fact["value"] for fact in to_dict(full)["key_facts"] if fact["name"] == "Privacy spent"
    )
    assert 0 <= float(spent.removeprefix("ε = ")) - statement.epsilon < 0.01 * statement.epsilon


@pytest.fixture(scope="module")
def together(statement: PrivacyStatement) -> PrivacyStatement:
    """Of three such models."""
    plan = [event for _ in range(3) for event in statement.events]
    return PrivacyStatement.of(Promise(5.0, 1e-9), plan, plan=plan)


def test_where_many_models_are_shown_their_price_comes_first(
    full: Report, statement: PrivacyStatement, together: PrivacyStatement
) -> None:
    twin = to_dict(replace(full, all_models=together))
    all_cost, one_costs = (
        at_most(together.epsilon, together.promise.epsilon),
        at_most(statement.epsilon, statement.promise.epsilon),
    )
    assert all_cost != one_costs
    said = f"Looking at all models of this page costs epsilon = {all_cost} at delta = 1e-9"
    assert (
        f"{said}; the one shown in full alone: epsilon = {one_costs}; protected: records."
        in twin["verdict"]
    )
    assert "of a budget of" not in twin["verdict"]
    assert [fact["value"] for fact in twin["key_facts"][:2]] == [
        f"ε = {all_cost}",
        f"ε = {one_costs}",
    ]
    assert twin["all_models"] == together.to_dict()
    assert not any("was not handed to this page" in sentence for sentence in twin["not_covered"])
    insecure = PrivacyStatement.of(
        together.promise, together.events, plan=together.events, noise="seeded"
    )
    seeded = to_dict(replace(full, all_models=insecure))
    assert STAMP_WORDS["seeded-noise"] in seeded["stamps"]
    assert STAMP_WORDS["seeded-noise"] in seeded["verdict"]


def test_a_price_of_many_models_that_is_not_known_is_said(full: Report) -> None:
    (sentence,) = (
        words for words in to_dict(full)["not_covered"] if "was not handed to this page" in words
    )
    assert "looking at all of them" in sentence
    assert not any(
        "handed" in words for words in to_dict(replace(full, frontiers=()))["not_covered"]
    )


def test_models_of_which_some_are_not_private_promise_nothing(full: Report) -> None:
    whole = PrivacyStatement.of(Promise(math.inf, 1e-9), [NonPrivate()])
    twin = to_dict(replace(full, all_models=whole))
    assert "Some models of this page are not private: nobody has a guarantee" in twin["verdict"]
    assert twin["key_facts"][0]["value"] == "none"


def test_an_article_fits_its_notion() -> None:
    verdicts = [
        to_dict(Report("t", gaps=(GapFigure(n, 0.05, None, 0.04),)))["verdict"]
        for n in ("equalized odds", "error rate")
    ]
    assert verdicts[0].startswith("Equalized odds gap, required: at most")
    assert verdicts[1].startswith("Error rate gap, required: at most")


def test_a_page_with_nothing_but_a_title_stands() -> None:
    made = Page(render(Report("Only a title")))
    assert "This page holds no results." in {text for text, _ in made.texts}
    assert not [tag for tag, _ in made.elements if tag == "svg"]


def test_infinity_is_written_as_in_statements(full: Report, frontier: FrontierFigure) -> None:
    written = [series["epsilon"] for series in to_dict(full)["frontiers"][0]["series"]]
    assert written == ["inf" if math.isinf(one.epsilon) else one.epsilon for one in frontier.series]


def test_numbers_for_the_eye() -> None:
    assert shown(None) == "undefined"
    assert str(shown(0.0491, "points")) == '<data value="0.0491">4.9</data>'
    assert str(shown(-1.5, "weight")) == '<data value="-1.5">−1.5</data>'
    assert str(counted(45222)) == '<data value="45222">45,222</data>'


@pytest.mark.parametrize(
    "make",
    [
        lambda: Report(""),
        lambda: Report("two\nlines"),
        lambda: Report("t", statement="private"),  # type: ignore[arg-type]
        lambda: Report("t", gaps=("0.05",)),  # type: ignore[arg-type]
        lambda: Report("t", not_covered="one sentence"),  # type: ignore[arg-type]
        lambda: GroupSection([[1, 2]]),  # type: ignore[arg-type]
        lambda: Coefficient("age", math.nan),
    ],
)
def test_what_cannot_be_shown_is_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()
