"""How large the library may be: `budget.toml` holds a ceiling for each room, for the tests, the
benchmarks and the pages, and for what one fit loads. A ceiling may only fall.

    python tests/test_budget.py             the counts beside the ceilings
    python tests/test_budget.py --lower     ceilings go down to the counts, names that are gone go

A ceiling is raised by hand, with a new text under `[why]` that gives the reason.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "fairveil"
FILE = Path(__file__).parent / "budget.toml"
NAME = "tests/budget.toml"
WIDTH = 100
SLACK = 0.02
"""How far a count may lie below its ceiling before the ceiling has to follow."""
BACK = 50
"""Commits that changed the file whose changes are looked at."""
LISTED = "only_subclass_elsewhere"
FIT = """
import sys, warnings
import numpy as np
import fairveil as fv
rng = np.random.default_rng(0)
rows, groups = rng.uniform(-1, 1, (200, 2)), rng.choice(["a", "b"], 200)
model = fv.FairClassifier(
    "demographic_parity:0.1", epsilon=1.0, solver=fv.PrimalDual(rounds=3), random_state=0
)
warnings.simplefilter("ignore")
model.fit(rows, (rows[:, 0] > 0).astype(int), sensitive_features=groups)
print(*(one.__file__ for name, one in sys.modules.items() if name.split(".")[0] == "fairveil"))
"""


def lines(path: Path) -> int:
    """Lines of a file, as wide as the formatter makes them: a wider one counts as several."""
    return sum(max(1, -(-len(line) // WIDTH)) for line in path.read_text("utf-8").splitlines())


def total(paths: Iterator[Path]) -> int:
    return sum(map(lines, paths))


@cache
def counts() -> dict[str, dict[str, int]]:
    """What there is, in the tables of the file."""
    rooms = {
        path.name: total(path.rglob("*.py"))
        for path in sorted(SOURCES.iterdir())
        if (path / "__init__.py").exists()
    }
    pages = [
        path
        for path in (ROOT / "docs").rglob("*.md")
        if not path.relative_to(ROOT / "docs").parts[0].startswith("theory")
    ]
    return {
        "lines": {
            **rooms,
            "beside the rooms": total(SOURCES.glob("*.py")),
            "tests": total((ROOT / "tests").rglob("*.py")) + lines(ROOT / "conftest.py"),
            "benchmarks": total((ROOT / "benchmarks").rglob("*.py")),
            "papers": total((ROOT / "papers").rglob("*.py")),
        },
        "words": {"pages": sum(len(path.read_text("utf-8").split()) for path in pages)},
    }


@cache
def loaded() -> dict[str, int]:
    """Modules of the library, and their lines, that one linear fit loads."""
    done = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    paths = [Path(name) for name in done.stdout.split()]
    return {"modules": len(paths), "lines": sum(map(lines, paths))}


def only_subclass_elsewhere(modules: Mapping[str, ast.Module]) -> list[str]:
    """Names of classes with one subclass, which lives in another module: one class in two files.
    Errors and protocols of the trusted room may have kin outside: it imports nothing of theirs.
    A name that several modules define is followed through the imports."""
    places: dict[str, set[str]] = defaultdict(set)
    for module, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(module)
    subclasses: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module, tree in modules.items():
        imported = {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        outside = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level)
            for alias in node.names
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            for base in node.bases:
                said = base.value if isinstance(base, ast.Subscript) else base
                owner, _, name = ast.unparse(said).rpartition(".")
                if owner in outside:
                    continue
                start, name = imported.get(name, ("", name))
                found = places.get(name, set())
                if len(found) > 1 and start:
                    found = {one for one in found if f".{one}".endswith(f".{start}")} or found
                elif module in found:
                    found = {module}
                for one in found:
                    subclasses[one, name].append(module)
    return sorted(
        {
            name
            for (module, name), where in subclasses.items()
            if len(where) == 1 and where[0] != module and not module.startswith("core.")
        }
    )


def offenders() -> list[str]:
    return only_subclass_elsewhere(
        {
            ".".join(path.relative_to(SOURCES).with_suffix("").parts): ast.parse(
                path.read_text("utf-8")
            )
            for path in SOURCES.rglob("*.py")
        }
    )


def ceilings() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text("utf-8"))


def unlike(ceiling: Mapping[str, int], count: Mapping[str, int]) -> list[str]:
    """What stands above its ceiling, or so far below it that the ceiling has to follow."""
    wrong = [f"{name}: no ceiling" for name in count.keys() - ceiling.keys()]
    wrong += [f"{name} is gone: --lower" for name in ceiling.keys() - count.keys()]
    for name in count.keys() & ceiling.keys():
        if count[name] > ceiling[name]:
            wrong.append(f"{name} has {count[name]}, {count[name] - ceiling[name]} too many")
        elif count[name] < (1 - SLACK) * ceiling[name]:
            wrong.append(f"{name} has {count[name]} of {ceiling[name]}: --lower")
    return sorted(wrong)


def raised(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What went up, or came to the list, without a new reason. A new room needs one too."""
    old, new = before.get("why", {}), after.get("why", {})
    said = {name for name, text in new.items() if text.strip() and text != old.get(name)}
    higher = [
        name
        for table in ("lines", "words", "fit")
        for name, number in after.get(table, {}).items()
        if number > before.get(table, {}).get(name, 0) and before.get(table)
    ]
    listed = sorted({*after.get(LISTED, ())} - {*before.get(LISTED, ())})
    return [name for name in [*higher, *listed] if name not in said]


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no history here: {done.stderr.strip()}")
    return done.stdout


@pytest.mark.parametrize("table", ["lines", "words"])
def test_nothing_is_above_its_ceiling(table: str) -> None:
    assert unlike(ceilings()[table], counts()[table]) == []


def test_one_fit_loads_no_more_than_its_ceiling() -> None:
    assert unlike(ceilings()["fit"], loaded()) == []


def test_no_class_has_its_only_subclass_in_another_module() -> None:
    """But for those of the list, which loses names and gains none."""
    assert offenders() == ceilings()[LISTED], "put both into one class; --lower drops what is gone"


def test_no_ceiling_was_raised_without_a_reason() -> None:
    """Neither in the files at hand nor in the latest commits that changed them."""
    commits = git("log", "--first-parent", f"-n{BACK}", "--format=%H", "--", NAME).split()
    versions = [tomllib.loads(git("show", f"{one}:{NAME}")) for one in commits if _holds(one)]
    later = [ceilings(), *versions]
    assert [raised(old, new) for new, old in zip(later, versions, strict=False)] == [[]] * len(
        versions
    )


def _holds(commit: str) -> bool:
    return bool(git("ls-tree", "--name-only", commit, NAME))


def test_lines_are_as_wide_as_they_are_counted() -> None:
    """`ruff format --check` holds the width; no file opts out of it."""
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]
    assert ruff["line-length"] == WIDTH
    assert "line-length" not in ruff["format"]
    assert ruff["format"]["exclude"] == ["*.md"]


def test_what_is_too_large_would_be_found() -> None:
    assert unlike({"a": 100, "b": 100}, {"a": 100, "b": 98}) == []
    assert unlike({"a": 100}, {"a": 101}) == ["a has 101, 1 too many"]
    assert unlike({"a": 100}, {"a": 97}) == ["a has 97 of 100: --lower"]
    assert unlike({"a": 1}, {"b": 1}) == ["a is gone: --lower", "b: no ceiling"]


def test_a_raised_ceiling_would_be_found() -> None:
    before = {"lines": {"a": 10}, "why": {"a": "an old reason"}, LISTED: ["B"]}
    assert raised(before, {**before, "lines": {"a": 9}, LISTED: []}) == []
    assert raised(before, {**before, "lines": {"a": 11, "c": 1}}) == ["a", "c"]
    assert raised(before, {**before, "lines": {"a": 11}, "why": {"a": "a new one"}}) == []
    assert raised(before, {**before, LISTED: ["B", "D"]}) == ["D"]
    assert raised({}, before) == ["B"]


def test_a_wide_line_counts_as_several(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n\n" + "y" * 201 + "\n")
    assert lines(tmp_path / "a.py") == 5


def test_a_class_in_two_files_would_be_found() -> None:
    told = {
        "a": "class A: ...\nclass B: ...\nclass C(A): ...\nclass D: ...",
        "b": "from .a import A, B\nclass E(B[int]): ...",
        "c": "import a\nclass F(a.D): ...\nclass G(a.D): ...",
        "d.a": "class B: ...\nclass H(B): ...",
    }
    assert only_subclass_elsewhere({name: ast.parse(text) for name, text in told.items()}) == ["B"]


def written(found: Mapping[str, Any]) -> str:
    """The file, a line a number."""
    text = ["# Read and written by tests/test_budget.py."]
    for table in ("lines", "words", "fit"):
        text += ["", f"[{table}]"]
        text += [f"{_key(name)} = {number}" for name, number in found[table].items()]
    if found.get("why"):
        text += ["", "[why]", *(f"{_key(a)} = {json.dumps(b)}" for a, b in found["why"].items())]
    listed = "".join(f'\n  "{name}",' for name in found[LISTED])
    return "\n".join([text[0], f"{LISTED} = [{listed}\n]", *text[1:], ""])


def _key(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else f'"{name}"'


def _lower() -> None:
    """What is too large is left as it is, and fails the tests."""
    before = ceilings()
    now = {**counts(), "fit": loaded()}
    found: dict[str, Any] = {
        table: {
            name: min(number, before[table].get(name, 0)) for name, number in now[table].items()
        }
        for table in now
    }
    found[LISTED] = [name for name in offenders() if name in before[LISTED]]
    FILE.write_text(written({**found, "why": before.get("why", {})}), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--lower"]:
        _lower()
    for table, count in {**counts(), "fit": loaded()}.items():
        for name, number in count.items():
            print(f"{number:>8} of {ceilings()[table].get(name, 0):>7}  {table}  {name}")
    print(f"{len(offenders()):>8} of {len(ceilings()[LISTED]):>7}  {LISTED}")
