"""The documents are executed. Each file's examples run from top to bottom, in one namespace and one
empty folder.

A ```python block is run; one with `>>>` prompts must also print what it shows. In a
```console block every line `$ fairveil ...` is run, must succeed, and must print what stands below
it, if anything does (`...` stands for anything). A block that begins with `# needs NAME` runs where
that library imports; elsewhere a test of its own is skipped and says so.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import io
import re
import shlex
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from fairveil import cli

ROOT = Path(__file__).parent.parent
BESIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
PAGES = sorted((*(ROOT / name for name in BESIDE), *(ROOT / "docs").rglob("*.md")))
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
BLOCK = re.compile(r"^```(python|console)[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)


NEEDS = re.compile(r"# needs (\w+)\n")
NEEDY = [
    (page, name) for page in PAGES for name in dict.fromkeys(NEEDS.findall(page.read_text("utf-8")))
]


@pytest.mark.parametrize(("page", "name"), NEEDY, ids=lambda one: getattr(one, "name", one))
def test_examples_that_need_a_library_run(
    page: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(name, reason=f"{name} does not import here", exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    run_examples(page.read_text("utf-8"), page.name)


# Their noise is secure: now and then a model misses its bound, and says so.
@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(page.read_text("utf-8"), page.name)


@pytest.mark.parametrize("page", [*PAGES, *RESULTS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = [
        link
        for link in LINK.findall(FENCED.sub("", page.read_text("utf-8")))
        if not _leads_somewhere(page, link)
    ]
    assert not broken


PROGRAM = re.compile(r"benchmarks/[\w/]+\.py")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_programs_of_benchmarks_that_pages_name_exist(page: Path) -> None:
    """What one printed that is gone is cited from `benchmarks/results`."""
    text = page.read_text("utf-8")
    if page.name == "CHANGELOG.md":
        text = text.partition("\n## ")[2].partition("\n## ")[0]  # what is not released yet
    gone = [name for name in PROGRAM.findall(text) if not (ROOT / name).exists()]
    assert not gone


PROGRAMS = sorted(
    p for room in ("benchmarks", "examples", "papers") for p in (ROOT / room).rglob("*.py")
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_programs_import_what_is_there(program: Path) -> None:
    """Those that need data files too, which no test runs without them."""
    for node in ast.walk(ast.parse(program.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fairveil":
            module = importlib.import_module(str(node.module))
            for name in node.names:
                assert hasattr(module, name.name) or importlib.import_module(
                    f"{node.module}.{name.name}"
                )


@pytest.mark.parametrize(
    "text",
    [
        "```python\n1 / 0\n```\n",
        "```python\n>>> 1 + 1\n3\n```\n",
        "```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n",
        "```console\n$ fairveil no-such-command\n```\n",
        "```console\n$ fairveil --version\nfairveil 99\n```\n",
    ],
)
def test_a_wrong_example_is_found(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, ZeroDivisionError)):
        run_examples(text, "page.md")


def test_a_right_example_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(
        "```python\n>>> x = 1\n>>> x\n1\n```\n```console\n$ fairveil --version\nfairveil "
        "...\n```\n",
        "page.md",
    )


def run_examples(text: str, name: str) -> None:
    """Run every block of one document in the current folder; raise at the first that fails."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for match in BLOCK.finditer(text):
        kind, body = match.groups()
        needed = NEEDS.match(body)
        if needed is not None and not _imports(needed[1]):
            continue
        line = text.count("\n", 0, match.start()) + 1
        if kind == "console":
            _run_console(body, f"{name}:{line}")
        elif ">>>" in body:
            _run_prompts(body, names, f"{name}:{line}")
        else:
            exec(compile("\n" * line + body, name, "exec"), names)


def _imports(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def _run_prompts(body: str, names: dict[str, Any], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(body, names, where, where, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, "".join(report)


def _run_console(body: str, where: str) -> None:
    commands = re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]
    for command, _, shown in (text.partition("\n") for text in commands):
        words = shlex.split(command, comments=True)
        if words[0] != "fairveil":
            continue
        status, printed, told = _command(words)
        assert status == 0, f"{where}: {command}: {told}"
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        matches = not shown.strip() or doctest.OutputChecker().check_output(shown, printed, flags)
        assert matches, f"{where}: {command} printed:\n{printed}"


def _command(words: list[str]) -> tuple[object, str, str]:
    """Status, standard output and standard error of a command, in this process: a new one would
    import everything again."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("default")
        patch.setenv("COLUMNS", "120")
        patch.setattr(sys, "argv", words)
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        with pytest.raises(SystemExit) as end:
            cli.main()
    out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]  # bytes in memory
    return end.value.code or 0, out, err


def _leads_somewhere(page: Path, link: str) -> bool:
    if re.match(r"[a-z]+:", link):
        return True
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return False
    return not anchor or anchor in _anchors(target.read_text("utf-8"))


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE)
    stated = re.findall(r'<a id="([\w-]+)"></a>', FENCED.sub("", text))
    return {
        *stated,
        *(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings),
    }


def test_an_example_is_left_out_only_where_its_library_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples("```python\n# needs no_such_library\n1 / 0\n```\n", "page.md")
    with pytest.raises(ZeroDivisionError):
        run_examples("```python\n# needs numpy\n1 / 0\n```\n", "page.md")
