"""How a package reads, in figures of its sources: lengths, docstrings, comments, types, parameters, circles, likeness.

python benchmarks/house.py [PACKAGE ...]     a column each: a folder, or the name of an installed package; none: fairveil

Nothing is imported; sources are parsed. Tests inside of a package are left out. A circle is a set of modules that import
each other, inside functions and for type checkers too; the `__init__` of packages, which hand names out, are left out.
`tests/like_code.py` says what a pair of like functions is, and lists them.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import statistics
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import like_code
import test_modules

HERE = Path(__file__).resolve().parent.parent
SECTIONS = re.compile(
    r"^ *(?:-{3,}$|(?:Args|Arguments|Parameters|Returns|Raises|Attributes|Example)s?: *$)",
    re.MULTILINE,
)
"""Heads of numpydoc, and of what Google writes."""
WIDE = 100
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class House:
    """What was counted, module by module."""

    root: Path
    modules: list[int] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    docstrings: list[str] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    """Annotations of parameters."""
    fits: dict[str, list[str]] = field(default_factory=dict)
    """Constructor parameters of public classes that fit."""
    comments: int = 0
    wide: int = 0
    pairs: int = 0
    """Of functions with like code."""

    @staticmethod
    def of(root: Path) -> House:
        """Read all modules below a folder."""
        house = House(root)
        trees = {}
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).parts
            if any(part in ("tests", "test") for part in parts) or re.search(
                r"(^test_|_test\.py$|^conftest)", path.name
            ):
                continue
            text = path.read_text("utf-8")
            tree = ast.parse(text)
            trees[str(path.relative_to(root))] = tree
            house._read(text, tree)
        house._read_classes(
            [
                node
                for tree in trees.values()
                for node in ast.walk(tree)
                if isinstance(node, ast.ClassDef)
            ]
        )
        house.pairs = len(like_code.pairs(trees))
        return house

    def _read(self, text: str, tree: ast.Module) -> None:
        lines = text.splitlines()
        self.modules.append(len(lines))
        self.wide += sum(len(line) > WIDE for line in lines)
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        self.comments += sum(token.type == tokenize.COMMENT for token in tokens)
        for node in ast.walk(tree):
            if isinstance(node, Function):
                self.functions.append((node.end_lineno or 0) - node.lineno + 1)
                self.parameters += [ast.unparse(one) for one in annotations(node)]
            if isinstance(node, Function | ast.ClassDef) and (doc := ast.get_docstring(node)):
                self.docstrings.append(doc)

    def _read_classes(self, classes: list[ast.ClassDef]) -> None:
        named = {one.name: one for one in classes}
        for name, one in named.items():
            made = method(one, "__init__")
            if not name.startswith("_") and made is not None and fits(one, named):
                given = made.args
                self.fits[name] = [
                    arg.arg for arg in (*given.posonlyargs, *given.args[1:], *given.kwonlyargs)
                ]

    def figures(self) -> Iterator[tuple[str, str]]:
        """(what, how much) of each line of the table."""
        lines = sum(self.modules)
        structured = [doc for doc in self.docstrings if SECTIONS.search(doc)]
        words = [len(doc.split()) for doc in self.docstrings]
        yield "median module, lines", f"{statistics.median(self.modules):.0f}"
        yield "longest module", f"{max(self.modules):,}"
        yield (
            "function, median / 95th percentile",
            f"{statistics.median(self.functions):.0f} / {at(self.functions, 0.95)}",
        )
        yield "functions above 60 lines", f"{sum(size > 60 for size in self.functions)}"
        yield (
            "bare Any among annotated parameters",
            percent(self.parameters.count("Any"), len(self.parameters)),
        )
        yield "median docstring, words", f"{statistics.median(words or [0]):.0f}"
        yield "docstrings with sections", percent(len(structured), len(self.docstrings))
        yield "comments per 100 lines", f"{100 * self.comments / lines:.1f}"
        yield f"lines over {WIDE} characters", percent(self.wide, lines)
        counts = [len(names) for names in self.fits.values()]
        yield "estimators", f"{len(counts)}"
        yield "their parameters together", f"{sum(counts)}"
        yield (
            "parameters an estimator, median / most",
            f"{statistics.median(counts):.0f} / {max(counts)}" if counts else "-",
        )
        yield (
            "distinct names of parameters",
            f"{len({name for names in self.fits.values() for name in names})}",
        )
        yield "import circles", f"{len(test_modules.circles(imports(self.root)))}"
        yield (
            "pairs of like functions / in 10,000 lines",
            f"{self.pairs} / {10_000 * self.pairs / lines:.0f}",
        )
        yield "lines", f"{lines:,}"


def annotations(node: Function) -> Iterator[ast.expr]:
    """Those of a function's parameters."""
    given = node.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    yield from (one.annotation for one in every if one is not None and one.annotation is not None)


def method(owner: ast.ClassDef, name: str) -> Function | None:
    """A class's own method."""
    return next(
        (node for node in owner.body if isinstance(node, Function) and node.name == name), None
    )


def fits(
    one: ast.ClassDef, named: dict[str, ast.ClassDef], seen: frozenset[str] = frozenset()
) -> bool:
    """Whether the class or a base of it, in the same package, has a method `fit`."""
    if method(one, "fit") is not None:
        return True
    bases = {base.id for base in one.bases if isinstance(base, ast.Name)} - seen
    return any(fits(named[base], named, seen | {base}) for base in bases if base in named)


def imports(root: Path) -> dict[str, set[str]]:
    """What each module imports of its own package, by relative or by full names."""
    found = {
        ".".join((root.name, *path.relative_to(root).with_suffix("").parts)): path
        for path in root.rglob("*.py")
    }
    graph: dict[str, set[str]] = {name: set() for name in found if not name.endswith("__init__")}
    for name in graph:
        package = name.split(".")[:-1]
        for node in ast.walk(ast.parse(found[name].read_text("utf-8"))):
            targets: set[str] = set()
            if isinstance(node, ast.Import):
                targets = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                start = package[: len(package) - node.level + 1] if node.level else []
                start = [*start, *(node.module.split(".") if node.module else [])]
                targets = {
                    ".".join(start),
                    *(".".join([*start, alias.name]) for alias in node.names),
                }
            graph[name] |= {target for target in targets if target in graph and target != name}
    return graph


def at(values: list[int], share: float) -> int:
    """A quantile of whole numbers, one of them."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def percent(part: int, whole: int) -> str:
    """A share in per cent."""
    return f"{100 * part / max(whole, 1):.1f} %"


def folder_of(name: str) -> Path:
    """The folder that was named, or that of an installed package."""
    if Path(name).is_dir():
        return Path(name).resolve()
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(
            f"error: a folder of sources or an installed package expected, not {name!r}"
        )
    return Path(next(iter(found.submodule_search_locations)))


def main() -> None:
    """Print the table."""
    roots = [folder_of(name) for name in sys.argv[1:]] or [HERE / "src" / "fairveil"]
    columns = [dict(House.of(root).figures()) for root in roots]
    print("| | " + " | ".join(root.name for root in roots) + " |")
    print("|---" * (1 + len(roots)) + "|")
    for what in columns[0]:
        print(f"| {what} | " + " | ".join(column[what] for column in columns) + " |")


if __name__ == "__main__":
    main()
