"""Pairs of functions with like code, as `benchmarks/house.py` counts them.

python tests/like_code.py [PACKAGE]     each pair in a line; none: fairveil

The rule. Code is what stands in the bodies of functions, but for constructors, docstrings and
imports: so signatures, attributes of classes and tables of modules are left out. Two statements are
alike if they are the same when names, strings and numbers are erased. A run is three or more
statements one after another, heads of blocks among them, which take six or more lines in each
place. Two functions that share a run are a pair, however many runs they share.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

STATEMENTS, LINES = 3, 6
"""The shortest run."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
ERASED = frozenset({*BLOCKS, "ctx", "type_comment", "annotation", "returns"})


@dataclass(frozen=True)
class Statement:
    """What a statement looks like without the blocks in it, and where it stands."""

    shape: int
    first: int
    lines: int


@dataclass(frozen=True)
class Place:
    """A run in a function; `at`: the number of its first statement."""

    function: str
    at: int
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.function}, lines {self.first} to {self.last}"


def pairs(modules: Mapping[str, ast.Module]) -> dict[tuple[str, str], list[tuple[Place, Place]]]:
    """Functions that are alike, and the runs that they share, of modules by their names."""
    shapes: dict[str, int] = {}
    places: dict[tuple[int, ...], list[Place]] = defaultdict(list)
    for module, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, Function) and node.name != "__init__":
                found = list(statements(node.body, shapes))
                for key, place in runs(f"{module}:{node.lineno} {node.name}", found):
                    places[key].append(place)
    alike: dict[tuple[str, str], list[tuple[Place, Place]]] = defaultdict(list)
    for key, where in places.items():
        for one, other in combinations(where, 2):
            if one.function != other.function or other.at - one.at >= len(key):
                alike[one.function, other.function].append((one, other))
    return dict(alike)


def runs(name: str, found: list[Statement]) -> Iterator[tuple[tuple[int, ...], Place]]:
    """The shortest run from each statement on."""
    for at in range(len(found)):
        for end in range(at + STATEMENTS, len(found) + 1):
            part = found[at:end]
            if sum(one.lines for one in part) >= LINES:
                last = part[-1].first + part[-1].lines - 1
                yield tuple(one.shape for one in part), Place(name, at, part[0].first, last)
                break


def statements(
    block: Sequence[ast.AST], shapes: dict[str, int], kind: str = "body"
) -> Iterator[Statement]:
    """Those of a block, and of the blocks in it, in their order."""
    for node in block:
        words = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if words or isinstance(node, Function | ast.ClassDef | ast.Import | ast.ImportFrom):
            continue
        inner = {name: part for name in BLOCKS if (part := getattr(node, name, None))}
        starts = [line_of(part[0]) for part in inner.values()]
        first, end = line_of(node), 1 + (getattr(node, "end_lineno", 0) or 0)
        shape = shapes.setdefault(f"{kind} {shape_of(node)}", len(shapes))
        yield Statement(shape, first, max(1, min([*starts, end]) - first))
        for name, part in inner.items():
            yield from statements(part, shapes, name)


def shape_of(node: object) -> str:
    """A tree without names, strings and numbers.

    >>> shape_of(ast.parse("a = 1").body[0]) == shape_of(ast.parse("b = 'c'").body[0])
    True
    """
    if isinstance(node, list):
        return f"[{','.join(map(shape_of, node))}]"
    if isinstance(node, ast.Name | ast.Constant) or not isinstance(node, ast.AST):
        return type(node).__name__ if isinstance(node, ast.AST) else ""
    inner = (shape_of(getattr(node, name)) for name in node._fields if name not in ERASED)
    return f"{type(node).__name__}({' '.join(inner)})"


def line_of(node: ast.AST) -> int:
    """Where it begins; a case, which has no line of its own, with its pattern."""
    return int(getattr(getattr(node, "pattern", node), "lineno", 0))


def modules_of(root: Path) -> dict[str, ast.Module]:
    """The modules below a folder, by their paths."""
    return {
        str(path.relative_to(root)): ast.parse(path.read_text("utf-8"))
        for path in sorted(root.rglob("*.py"))
    }


def main() -> None:
    """Print the pairs."""
    default = Path(__file__).resolve().parent.parent / "src" / "fairveil"
    found = pairs(modules_of(Path(sys.argv[1]) if len(sys.argv) > 1 else default))
    for shared in found.values():
        print(f"{shared[0][0]} ~ {shared[0][1]}")
    print(f"{len(found)} pairs")


if __name__ == "__main__":
    main()
