"""The theory pages can be checked: every citation has a row in the table of claims, every row a
proof, a module and a test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from scipy import optimize, stats

from fairveil.core.curves import gaussian_delta

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "theory.md"
PROOFS = sorted((ROOT / "docs" / "theory").glob("*.md"))
ROW = re.compile(
    r"^\| <a id=\"(?P<id>[\w-]+)\"></a>(?P<name>[\w-]+) \| (?P<claim>.+?) \| "
    r"\[[^\]]+\]\((?P<proof>[^)]+)\) "
    r"\| `(?P<module>[^`]+)` \| `(?P<file>[^`:]+)::(?P<test>\w+)` \|$",
    re.MULTILINE,
)
CITED = re.compile(r"theory\.md#([\w-]+(?:, #[\w-]+)*)")
BY_CODE = re.compile(r"PRIVACY(?:[, ]+sec\.)? (?:T?\d|TRAP)|theory notes")
"""A place in notes that readers do not have."""
FOLDERS = ("src", "docs", "tests", "benchmarks", "examples")


def rows() -> list[re.Match[str]]:
    return list(ROW.finditer(PAGE.read_text("utf-8")))


def texts() -> Iterator[tuple[Path, str]]:
    """Everything that may cite a theorem; this file has the patterns themselves."""
    for folder in FOLDERS:
        for kind in ("*.py", "*.md"):
            for path in sorted((ROOT / folder).rglob(kind)):
                if path != Path(__file__):
                    yield path, path.read_text("utf-8")
    yield from (
        (ROOT / name, (ROOT / name).read_text("utf-8")) for name in ("README.md", "CHANGELOG.md")
    )


def cited(text: str) -> list[str]:
    """The rows that a text cites, one by one.

    >>> cited("(theory.md#t1, #t9)")
    ['t1', 't9']
    """
    return [name for found in CITED.findall(text) for name in found.split(", #")]


def functions_of(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    }


def test_every_line_of_the_table_is_read() -> None:
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| <a id=")]
    found = rows()
    assert len(found) == len(lines) > 40
    assert len({row["id"] for row in found}) == len(found)
    assert [row["name"].lower() for row in found] == [row["id"] for row in found]


def test_every_theorem_has_a_row_and_a_heading() -> None:
    ids = {row["id"] for row in rows()}
    headings = re.findall(
        r"^## (T\d+): ", "\n".join(page.read_text("utf-8") for page in PROOFS), re.MULTILINE
    )
    assert sorted(headings, key=lambda name: int(name[1:])) == [f"T{n}" for n in range(1, 11)]
    assert {name.lower() for name in headings} <= ids


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_a_row_names_a_proof_a_module_and_a_test_that_exist(row: re.Match[str]) -> None:
    page, _, anchor = row["proof"].partition("#")
    headings = re.findall(r"^#+ (.*)$", (PAGE.parent / page).read_text("utf-8"), re.MULTILINE)
    assert anchor in {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    }
    assert (ROOT / "src" / "fairveil" / row["module"]).is_file()
    assert row["test"].startswith("test_")
    assert row["test"] in functions_of(ROOT / row["file"])


def test_every_citation_has_a_row() -> None:
    ids = {row["id"] for row in rows()} | {"table-of-claims"}
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, text in texts()
        for name in cited(text)
        if name not in ids
    ]
    assert not missing


def test_what_code_relies_on_is_cited_there() -> None:
    """A theorem that no module cites is of no use to whoever changes the module."""
    found = {
        name for path, text in texts() if path.is_relative_to(ROOT / "src") for name in cited(text)
    }
    assert {f"t{n}" for n in range(1, 11)} <= found


def test_nothing_cites_notes_that_readers_do_not_have() -> None:
    left = [
        f"{path.relative_to(ROOT)}: {found}"
        for path, text in texts()
        for found in BY_CODE.findall(text)
    ]
    assert not left


@pytest.mark.parametrize(
    "text",
    ["(PRIVACY T4)", "PRIVACY 8.7", "(PRIVACY, sec. 0)", "PRIVACY 2, TRAP 1", "the theory notes"],
)
def test_such_citations_would_be_found(text: str) -> None:
    assert BY_CODE.search(text)


def written(page: str) -> Iterator[str]:
    """The names of code in a page's paragraphs "In the code", without keywords and arguments.

    >>> list(written("**In the code.** `a.b` and `C(x=1)`, `n=` in `d/e.py`.\\n\\n`other`"))
    ['a.b', 'C', 'd/e.py']
    """
    for found in re.findall(r"\*\*In the code\.\*\*.*?(?=\n\n|\Z)", page, re.DOTALL):
        yield from re.findall(r"`([\w./]+)(?:\([^`]*\))?`", found)


def defined(path: Path) -> set[str]:
    """All that a module defines: functions, classes, methods, fields and values."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    return found


def test_what_proofs_say_of_the_code_is_there() -> None:
    """`module.name`, `Class.member`, `room.module`, `room/module.py` or a name alone."""
    modules = sorted((ROOT / "src" / "fairveil").rglob("*.py"))
    places = {path: [*path.parent.parts, path.stem] for path in modules}
    names = {path: defined(path) for path in modules}

    def is_there(name: str) -> bool:
        if name.endswith(".py"):
            return any(path.as_posix().endswith(f"/{name}") for path in modules)
        *rooms, last = name.split(".")
        for path in modules:
            place = places[path]
            if place[-len(rooms) - 1 :] == [*rooms, last]:
                return True
            inner = rooms[-1:] if rooms and rooms[-1] in names[path] else []
            outer = rooms[: len(rooms) - len(inner)]
            ends = len(place), len(place) - 1  # the module, or the room that hands its names out
            if last in names[path] and any(
                place[:end][end - len(outer) :] == outer for end in ends
            ):
                return True
        return False

    pages = [(page.name, name) for page in PROOFS for name in written(page.read_text("utf-8"))]
    assert len(pages) > 50
    assert [(page, name) for page, name in pages if not is_there(name)] == []
    assert not is_there("inventory.no_such_name")


def test_delta_is_nowhere_called_the_probability_that_the_bound_fails() -> None:
    """It is the slack of docs/theory/model.md. Tight Gaussian noise at (1, 1e-6) exceeds a loss of 1
    with twenty times that probability."""
    wrong = re.compile(
        r"probability\s+(?:with\s+which|that)\s+(?:the\s+)?(?:bound\s+)?(?:epsilon|ε)(?:\s+bound)?"
        r"\s+(?:may\s+)?fails?|except\s+with\s+probability\s+(?:delta|δ)\b",
        re.IGNORECASE,
    )
    read = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    found = [str(path.relative_to(ROOT)) for path in read if wrong.search(path.read_text())]
    assert not found
    mu = optimize.brentq(lambda at: gaussian_delta(1.0, at) - 1e-6, 0.05, 2)
    assert stats.norm.cdf(mu / 2 - 1 / mu) > 19 * 1e-6
