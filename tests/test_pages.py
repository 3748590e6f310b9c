"""How pages are written: a kind for each page, short sentences, a place in the index; every error
and warning explained."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import fairveil
from fairveil import errors

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
HOW_TOS = (
    "auditors.md",
    "attribute_holder.md",
    "choose_budget.md",
    "choose_method.md",
    "codebook.md",
    "deploy.md",
    "install.md",
    "large_tables.md",
    "lda.md",
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
    "serving_proxy.md",
    "small_groups.md",
    "troubleshoot.md",
    "tune.md",
)
TUTORIALS = ("first_model.md", "guide.md", "publish.md", "team_budget.md")
REFERENCES = (
    "benchmarks.md",
    "accounting.md",
    "cli.md",
    "data.md",
    "errors.md",
    "estimators.md",
    "fairness.md",
    "file_formats.md",
    "glossary.md",
    "models.md",
    "report.md",
    "statement.md",
    "study.md",
    "style.md",
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
    "review.md",
    "tailoring.md",
    "theory.md",
    *(f"theory/{page.name}" for page in sorted((DOCS / "theory").glob("*.md"))),
)
SPECIFICATIONS = ("statement_spec.md",)
"""Written for who writes a program: formulas in sentences, which may be long."""
KINDS = {
    **dict.fromkeys(TUTORIALS, "Tutorial"),
    **dict.fromkeys(HOW_TOS, "How-to"),
    **dict.fromkeys((*REFERENCES, *SPECIFICATIONS), "Reference"),
    **dict.fromkeys(EXPLANATIONS, "Explanation"),
}
PAGES = (*(page for page in KINDS if page not in SPECIFICATIONS), "index.md", "../README.md")
MOST_WORDS = 25


def prose(text: str) -> str:
    """What is read as sentences: no blocks, no code, no link targets, no stated anchors."""
    text = re.sub(r"^```.*?^```[ \t]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r'<a id="[\w-]+"></a>', "", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


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
    assert len(listed) > 40
    assert {page: KINDS[page] for page in listed} == listed


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
        and value.__module__.startswith("fairveil.")
        and not name.startswith("_")
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
