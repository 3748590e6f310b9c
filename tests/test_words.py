"""How pages are written: terms of the field, short sentences, a kind for each page; every error and
warning explained.

`PAGES` holds the pages that follow docs/style.md. It grows, page by page, until it holds all of
them.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import fairveil
from fairveil import errors
from messages import messages, remarks

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
HOW_TOS = (
    "auditors.md",
    "attribute_holder.md",
    "cards.md",
    "choose_budget.md",
    "choose_method.md",
    "codebook.md",
    "deploy.md",
    "displays.md",
    "install.md",
    "large_tables.md",
    "many_machines.md",
    "missing_values.md",
    "monitor.md",
    "moving.md",
    "networks.md",
    "other_libraries.md",
    "persons.md",
    "pipelines.md",
    "plan.md",
    "private_tables.md",
    "remote.md",
    "release_once.md",
    "saddle.md",
    "serving.md",
    "small_groups.md",
    "troubleshoot.md",
    "tune.md",
)
TUTORIALS = ("first_model.md", "guide.md", "publish.md", "team_budget.md")
REFERENCES = (
    "benchmarks.md",
    "field.md",
    "accounting.md",
    "cli.md",
    "commands.md",
    "data.md",
    "errors.md",
    "estimators.md",
    "fairness.md",
    "file_formats.md",
    "glossary.md",
    "models.md",
    "renamed.md",
    "report.md",
    "serving_measured.md",
    "statement.md",
    "study.md",
    "style.md",
    *(f"upstream/{page.name}" for page in sorted((DOCS / "upstream").glob("*.md"))),
)
EXPLANATIONS = (
    "additive_models.md",
    "architecture.md",
    "audit.md",
    "certificates.md",
    "curator.md",
    "fermi.md",
    "group_objective.md",
    "ledger.md",
    "noise.md",
    "notions.md",
    "serving_threats.md",
    "threats.md",
    "oracle_game.md",
    "post_processing.md",
    "rate_constrained.md",
    "tailoring.md",
    "theory.md",
    *(f"theory/{page.name}" for page in sorted((DOCS / "theory").glob("*.md"))),
)
KINDS = {
    **dict.fromkeys(TUTORIALS, "Tutorial"),
    **dict.fromkeys(HOW_TOS, "How-to"),
    **dict.fromkeys(REFERENCES, "Reference"),
    **dict.fromkeys(EXPLANATIONS, "Explanation"),
}
PAGES = (*KINDS, "index.md", "../README.md")
MOST_WORDS = 25

PRIVATE = {
    "promise, promised (the guarantee)": r"\bpromis(?:e|es|ed)\b",
    "stamp": r"\bstamp(?:s|ed)?\b",
    "dear (expensive)": r"\bdear(?:er|ly)?\b",
    "beforehand (in advance)": r"\bbeforehand\b",
    "before data were touched (in advance)": r"before (?:any )?data (?:is|are|were|was) touched",
    "shorten (clip)": r"\bshorten(?:s|ed|ing)?\b",
    "pay (spend, cost)": r"\b(?:pays?|paid|paying)\b(?!-as-you-go)",
    "buy (release, spend)": r"\b(?:buys?|bought)\b",
    "law (distribution)": r"\blaws?\b",
    "room (space, budget, module)": r"\brooms?\b",
    "told apart (identified, distinguished)": r"\btold apart (?:by|as)\b",
    "whole records (record-level)": r"\bwhole records\b",
    "the sensitive column alone (attribute-level)": r"sensitive columns? alone",
    "law of decisions (distribution)": r"\blaws? of (?:its |their )?decisions\b",
    "decides by chance (randomized)": r"\bdecid(?:e|es|ed) by chance\b",
    "decides by group (group-aware)": r"\bdecid(?:e|es|ed) by group\b",
    "broken off (interrupted)": r"\bbroken off\b|\bbreaks off\b",
    "gone on with (resumed)": r"\bgo(?:es|ne|ing)? on with\b",
    "made small (minimized)": r"\bmade small\b|\bmakes? small\b",
    "asked for (required)": r"\bwas asked for\b|\bwere asked for\b|\bwhat was asked\b",
    "training saw (measured)": r"\btraining saw\b",
    "work out again (recompute)": r"\bwork(?:s|ed)? out again\b",
    "come to (cost)": r"\bmay come to\b",
    "say (for example)": r", say[,.;)]",
}
"""What docs/style.md tells to write otherwise. Names of the code, in backticks or blocks, are what
they are."""

ALLOWED = re.compile(
    r"\blaw[- ]school\b|\blaw-race\b|\bon law by race\b|\bthe law forbids\b|\ba law(?=,| or a| is "
    r"kept)|\blaw of total\b"
    r"|sums told apart by cell"  # a name that files keep
    r"|rows and (?:your )?law\b|\| law \||\(law\)",
    re.IGNORECASE,
)
"""Laws that parliaments make, a school, a theorem's name."""
ABOUT_THE_SOURCES = {"architecture.md"}
"""Rooms are the name of this library's packages: pages for its developers use it, and define it."""


def prose(text: str) -> str:
    """What is read as sentences: no blocks, no code, no link targets, no stated anchors."""
    text = re.sub(r"^```.*?^```[ \t]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r'<a id="[\w-]+"></a>', "", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def found_in(text: str, *, rooms: bool = False) -> list[str]:
    """The private words of a text, by the names that `PRIVATE` gives them."""
    text = ALLOWED.sub("", text)
    named = {
        name: pattern
        for name, pattern in PRIVATE.items()
        if not (rooms and name.startswith("room"))
    }
    return [name for name, pattern in named.items() if re.search(pattern, text, re.IGNORECASE)]


def sentences(text: str) -> list[str]:
    """Sentences of paragraphs and of list items; tables and formulas, which are indented, have
    none."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n|\n(?=[ ]*(?:[-*]|\d+\.) )", prose(text)):
        lines = [line for line in block.splitlines() if not line.startswith(("|", "#", "    "))]
        whole = " ".join(line.strip() for line in lines)
        found += [
            one.strip()
            for one in re.split(r"(?<=[.!?:;])[\"*)]*\s+(?=[\"*\[(A-Z0-9ÉΣ])|: |; ", whole)
            if one.strip()
        ]
    return found


def words(sentence: str) -> int:
    """Words: runs that hold a letter of more than a symbol's length, or a name of code."""
    return len(re.findall(r"[A-Za-z][A-Za-z'’-]+|\ba\b|\bI\b", sentence))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_uses_the_terms_of_the_field(page: str) -> None:
    assert found_in(prose((DOCS / page).read_text("utf-8")), rooms=page in ABOUT_THE_SOURCES) == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_short_sentences(page: str) -> None:
    long = [one for one in sentences((DOCS / page).read_text("utf-8")) if words(one) > MOST_WORDS]
    assert long == []


@pytest.mark.parametrize("page", KINDS)
def test_a_page_says_its_kind_and_what_the_reader_can_do_after_it(page: str) -> None:
    lines = [line for line in (DOCS / page).read_text("utf-8").splitlines() if line]
    kind = f"*{KINDS[page]}.* "
    assert lines[0].startswith("# ")
    assert lines[1].startswith(kind)
    assert re.match(
        r"After (?:this|these) pages?\b|Look up here\b|Use this page when\b",
        lines[1].removeprefix(kind),
    )


def test_the_index_lists_a_page_under_its_kind() -> None:
    sections = re.split(r"^## ", (DOCS / "index.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    listed = {
        page: part.partition(":")[0].removesuffix("s")
        for part in sections
        for page in re.findall(r"^- \[[^\]]+\]\(([\w/]+\.md)\)", part, re.MULTILINE)
    }
    assert len(listed) > 60
    assert {page: KINDS[page] for page in listed} == listed


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The promise holds.", "promise, promised (the guarantee)"),
        ("Results are stamped insecure.", "stamp"),
        ("Noise is dear.", "dear (expensive)"),
        ("Gradients are shortened.", "shorten (clip)"),
        ("What each group pays.", "pay (spend, cost)"),
        ("Drawn from its law.", "law (distribution)"),
        ("The ledger has no room.", "room (space, budget, module)"),
        ("A model that decides by chance.", "decides by chance (randomized)"),
        ("Pass epsilon=1.0, say.", "say (for example)"),
    ],
)
def test_private_words_would_be_found(text: str, name: str) -> None:
    assert re.search(PRIVATE[name], prose(text), re.IGNORECASE)
    assert not re.search(
        PRIVATE[name],
        prose("`the promise, stamped, dear, shortened, decides by chance, say.`"),
        re.IGNORECASE,
    )


def test_a_long_sentence_would_be_found() -> None:
    assert [words(one) for one in sentences("One two.\n\n" + "word " * 26 + "end.")] == [2, 27]
    assert sentences("| " + "word " * 40 + "|\n") == []
    assert sentences("```python\n" + "word " * 40 + "\n```\n") == []


def test_every_error_and_warning_is_explained() -> None:
    classes = [
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value)
        and issubclass(value, Exception)
        and value.__module__ == errors.__name__
    ]
    assert len(classes) > 25
    rows = dict(
        re.findall(
            r"^\| `(\w+)` \| (.*) \|$", (DOCS / "errors.md").read_text("utf-8"), re.MULTILINE
        )
    )
    assert sorted(rows) == sorted(classes)
    assert all(
        len(row.split(" | ")) >= 2 and all(part.strip() for part in row.split(" | "))
        for row in rows.values()
    )
    tips = (DOCS / "troubleshoot.md").read_text("utf-8")
    roots = {"FairveilError", "FairveilWarning"}
    assert [name for name in classes if name not in roots and f"`{name}`" not in tips] == []


def test_the_glossary_has_its_terms_once_each() -> None:
    terms = re.findall(
        r'^\| <a id="([\w-]+)"></a>([^|]+) \| (.+) \|$',
        (DOCS / "glossary.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(terms) >= 40
    assert (
        len({anchor for anchor, _, _ in terms}) == len(terms) == len({term for _, term, _ in terms})
    )


def test_every_page_is_in_the_index_once() -> None:
    linked = re.findall(r"\]\((\w+\.md)\)", (DOCS / "index.md").read_text("utf-8"))
    pages = {page.name for page in DOCS.glob("*.md")} - {"index.md"}
    assert pages <= set(linked)


def test_the_versions_agree() -> None:
    version = fairveil.__version__
    assert f'\nversion = "{version}"\n' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\n## {version} (" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"| Fairveil {version.rpartition('.')[0]} |" in (ROOT / "README.md").read_text("utf-8")


CODE = re.compile(
    r"\ba Promise\b|\bWrite promises "
    r"with\b|\w+(?:\.\w+)*\((?:[^()]|\([^()]*\))*\)|\b\w+=(?:'[^']*'|\S+)|\bto_dict\b|--[a-z-]+"
)
"""Calls, arguments and options in a message: names of the code."""
OF_DATABASES = ("privacy/ledger/stores", "serving/door/record", "data/databases")
"""Texts in SQL, and words that databases say."""


OF_THE_SOURCES = ("promise", "room", "asked for")
"""Words of the code, which its comments may use: `Promise`, rooms, and what a question asks for."""


def test_comments_docstrings_and_names_of_tests_use_the_terms_of_the_field() -> None:
    """Of the sources and of all tests; docstrings of private functions, too."""
    said = list(remarks())
    assert len(said) > 14_000
    wrong = [
        (place, names, text)
        for place, text in said
        if (
            names := [
                one
                for one in found_in(CODE.sub("", prose(text)))
                if not one.startswith(OF_THE_SOURCES)
            ]
        )
    ]
    assert wrong == []


def test_messages_use_the_terms_of_the_field() -> None:
    """Errors, warnings, help, sentences of statements and reports."""
    said = list(messages())
    assert len(said) > 4_000
    wrong = [
        (place, found, text)
        for place, text in said
        if (found := found_in(CODE.sub("", prose(text))))
    ]
    assert wrong == []


def test_messages_have_short_sentences() -> None:
    plain = [
        (place, CODE.sub("", text))
        for place, text in messages()
        if not place.startswith(OF_DATABASES)
    ]
    long = [
        (place, one) for place, text in plain for one in sentences(text) if words(one) > MOST_WORDS
    ]
    # a page's headings and cells run together
    assert [place for place, _ in long if not place.endswith(".html")] == []
