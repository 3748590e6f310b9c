"""The import rules of docs/architecture.md, read from the sources: at module level, in functions
and for types alike."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "fairveil"

# From the ground up. A room may import rooms of earlier lines; rooms of one line are strangers.
LINES = (
    ("core",),  # ring 0: the trusted room
    ("errors", "_types", "_lazy"),
    ("_checks", "_urls", "_verdicts", "_json", "_reading", "_waiting"),
    ("_codec",),
    ("_codec",),
    ("show",),  # results as parts
    ("facts",),
    ("tables",),
    ("statement",),  # ring 1
    ("privacy", "fairness", "models"),
    ("metrics",),
    # ring 2: the public names of the trusted room, and what listens to it
    ("curator", "ledger"),
    ("methods",),  # ring 3
    ("data",),  # ring 4: estimators code tables with it
    ("distributed",),
    ("estimators",),
    # ring 5: an audit reads saved models, and fits them again
    ("audit", "study", "export", "serving"),
    ("cli",),  # ring 7
)

# The same inside the large rooms, from the ground up: sub-rooms, and modules that stand beside
# them.
INSIDE = {
    "core": (
        ("chacha", "curves", "errors", "exact", "kernels", "runs", "threads"),
        ("checks", "compose", "fast"),
        ("events", "layout", "noise", "promise"),
        ("bound", "mechanisms", "persons"),
        ("questions", "quiet", "rows"),
        ("cost", "public", "sums"),
        ("attached", "by_cell"),
        ("journal", "passes"),
        ("books", "pricing"),
        ("choices",),
        ("curator",),
        ("extra",),
    ),
    "methods": (
        (
            "counts",
            "descent",
            "game_bounds",
            "gaussian",
            "kernels",
            "likely",
            "mixture",
            "public_rows",
            "score_bins",
            "systems",
            "units",
        ),
        (
            "allocation",
            "alternatives",
            "certificate",
            "comparison",
            "constants",
            "duals",
            "released",
            "saddle",
        ),
        ("outcome", "postprocess", "tables"),
        ("parity", "primal_dual"),
        ("networks", "oracles"),
        ("fermi", "game", "objectives"),
        ("least_squares", "objective_loop"),
        ("objective_descent", "tailoring"),
        ("forecast",),
    ),
    "estimators": (
        ("reasons", "words"),
        ("settings",),
        ("coding",),
        ("cautions",),
        ("reading",),
        ("fitting", "reports"),
        ("pages",),
        ("faces", "handed"),
        ("ways", "wrapped"),
        ("counted",),
        ("certifying", "mixing", "released"),
        ("descending", "group_objective"),
        ("oracle_game", "tailored"),
        ("fair",),
        ("batched", "post_processing"),
        ("files",),
    ),
}
LEVEL = {room: level for level, rooms in enumerate(LINES) for room in rooms}

# The front door offers names of every room and is imported by the command line alone.
FRONT = ("__init__", "__main__")

CONFINED = {
    "torch": ("core/extra/torch_*.py", "models/torch_*.py"),
    "safetensors": ("models/*.py",),
    "dp_accounting": (),
    "cryptography": ("statement/signing.py",),
    "sqlalchemy": ("ledger/store.py", "data/*.py", "data/*/*.py"),
    "psycopg": ("ledger/store.py", "data/*.py", "data/*/*.py"),
    "dask": ("distributed/dask_*.py",),
    "distributed": ("distributed/dask_*.py",),
    "starlette": ("serving/app.py",),
    "uvicorn": ("serving/app.py",),
    "matplotlib": ("show/*.py",),
    "numba": (
        "*/kernels*.py",
        "core/*.py",
        "estimators/fitting.py",  # hears when loops are compiled, and says so
    ),
}
VAGUE = ("utils", "util", "helpers", "helper", "common", "misc", "tools")


def test_every_import_goes_downwards() -> None:
    found = [
        wrong
        for path in _sources()
        for wrong in violations(path.relative_to(ROOT), path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


def test_every_import_inside_a_room_goes_downwards() -> None:
    """Of sub-rooms one line apart none imports the other, in functions neither: so there is no
    circle between them."""
    found = [
        wrong
        for path in _sources()
        for wrong in inner_violations(path.relative_to(ROOT), path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


def test_every_module_inside_a_large_room_has_its_line() -> None:
    for room, lines in INSIDE.items():
        there = {
            path.stem
            for path in (ROOT / room).iterdir()
            if path.suffix == ".py" or (path / "__init__.py").exists()
        }
        assert there - {"__init__", "__pycache__"} == {name for line in lines for name in line}, (
            room
        )


def test_every_sub_room_says_in_one_sentence_what_it_holds() -> None:
    for room in INSIDE:
        for door in (ROOT / room).glob("*/__init__.py"):
            said = ast.get_docstring(ast.parse(door.read_text("utf-8")))
            assert said, door
            assert said.split("\n\n")[0].endswith((".", ":")), door


def test_no_modules_import_each_other() -> None:
    """Types and imports inside functions are counted."""
    assert not circles(graph()), (
        "the lower of them should not know the other: hand in what it needs, or move what both "
        "share"
    )


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [("a", "b", "c")]


def test_frozen_values_are_set_in_one_place() -> None:
    """`normalise` is for frozen values; a guarded generator refuses its own `__setattr__`."""
    found = {
        str(path.relative_to(ROOT))
        for path in _sources()
        if "object.__setattr__(" in path.read_text("utf-8")
    }
    assert found <= {"core/checks.py", "core/noise.py"}, "call checks.normalise"


def test_every_module_belongs_to_a_room() -> None:
    strays = [
        str(path.relative_to(ROOT))
        for path in _sources()
        if _room(path.relative_to(ROOT)) not in (*LEVEL, *FRONT)
    ]
    assert not strays, f"not in docs/architecture.md: {strays}"


def test_no_module_has_a_vague_name() -> None:
    assert not [path for path in _sources() if path.stem in VAGUE]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/promise.py", "from ..fairness import notions"),
        ("core/promise.py", "import fairveil.models"),
        ("fairness/notions.py", "def f():\n    from ..curator import Curator"),
        (
            "fairness/notions.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..curator import "
            "Curator",
        ),
        ("facts/schema.py", "from ..privacy import PrivacyStatement"),
        ("errors.py", "from . import _checks"),
        ("core/pricing.py", "from ..cli import main"),
        ("core/pricing.py", "from .. import Promise"),
        ("core/pricing.py", "import fairveil"),
        ("core/pricing.py", "import torch.nn"),
        ("models/linear.py", "def f():\n    import torch"),
        ("core/cost.py", "def f():\n    import dp_accounting"),
        ("methods/game.py", "import numba"),
        ("data/csv.py", "import importlib\nimportlib.import_module('torch')"),
        ("data/csv.py", "__import__('torch')"),
        ("data/csv.py", "from importlib import import_module\nimport_module(name)"),
        (
            "core/noise.py",
            "import importlib\nimportlib.import_module('..curator', __package__)",
        ),
        ("audit/attack.py", "from ..study import frontier"),
        ("data/encoded.py", "from ..estimators import FairClassifier"),
        ("show/charts.py", "from ..fairness import GroupTable"),
    ],
)
def test_a_wrong_import_is_found(path: str, source: str) -> None:
    assert violations(Path(path), source)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "privacy/prices.py",
            "from .. import _checks\nfrom ..errors import InputError\nfrom ..core.events import Event",
        ),
        ("facts/schema.py", "from .. import _checks"),
        (
            "methods/game.py",
            "from ..privacy import events\nfrom ..facts import RowBlock\nimport numpy",
        ),
        ("core/extra/torch_gradient.py", "import torch"),
        ("models/torch_module.py", "from torch import nn"),
        (
            "core/noise.py",
            "import importlib\nimportlib.import_module('.fast', __package__)",
        ),
        ("core/kernels.py", "import numba"),
        (
            "estimators/reading/inputs.py",
            "from ..data import encode\nfrom ..methods import descend",
        ),
        ("cli/demo.py", "from .. import __version__\nfrom ..curator import Curator"),
        ("__init__.py", "from .privacy import Promise"),
    ],
)
def test_a_right_import_is_let_through(path: str, source: str) -> None:
    assert not violations(Path(path), source)


@pytest.mark.parametrize(
    ("path", "source", "found"),
    [
        ("core/passes.py", "from .pricing import Bounds", True),
        ("core/passes.py", "def f():\n    from . import curator", True),
        ("core/quiet.py", "from .pricing import Measurement", True),
        (
            "core/pricing.py",
            "from ..core.questions import Scale\nfrom .reference import total",
            False,
        ),
        ("methods/oracles.py", "from .game import Game", True),
        ("methods/game.py", "from .oracles import Rule\nfrom ..curator import Curator", False),
    ],
)
def test_a_wrong_import_inside_a_room_is_found(path: str, source: str, found: bool) -> None:
    assert bool(inner_violations(Path(path), source)) is found


def violations(path: Path, source: str) -> list[str]:
    """What this module, at this path inside the package, imports against the rules."""
    return [
        f"{path}: {wrong}" for target in _imports(path, source) if (wrong := _verdict(path, target))
    ]


def _verdict(path: Path, target: str) -> str | None:
    own = _room(path)
    top, *rest = target.split(".")
    if top != "fairveil":
        allowed = CONFINED.get(top)
        if allowed is None or any(path.match(pattern) for pattern in allowed):
            return None
        return f"imports {top}, which belongs to {' and '.join(allowed)} alone"
    if own in FRONT:
        return None
    if not rest or rest[0] not in LEVEL:
        return None if own == "cli" else f"imports {target} through the front door"
    room = rest[0]
    if room == own or LEVEL[room] < LEVEL[own]:
        return None
    return f"{own} imports {target}"


def inner_violations(path: Path, source: str) -> list[str]:
    """What a module of a large room imports of the same room, though it stands beside it or
    above."""
    room = path.parts[0]
    if room not in INSIDE or len(path.parts) < 2 or path.parts[1] == "__init__.py":
        return []
    level = {name: number for number, line in enumerate(INSIDE[room]) for name in line}
    own = Path(path.parts[1]).stem
    targets = {
        target.split(".")[2]
        for target in _imports(path, source, inside=room)
        if target.startswith(f"fairveil.{room}.")
    }
    wrong = sorted(
        other for other in targets - {own} if other in level and level[other] >= level[own]
    )
    return [f"{path}: {room}/{own} imports {room}/{other}" for other in wrong]


def graph() -> dict[str, set[str]]:
    """What each module imports; the doors of packages, which only hand names out, are left out."""
    found = {
        ".".join(("fairveil", *path.relative_to(ROOT).with_suffix("").parts)): path
        for path in _sources()
        if path.name != "__init__.py"
    }
    return {
        name: {
            target
            for target in _imports(path.relative_to(ROOT), path.read_text("utf-8"), names=True)
            if target in found and target != name
        }
        for name, path in found.items()
    }


def circles(graph: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """The sets of modules that reach each other."""
    reached = {name: _reached(graph, name) for name in graph}
    together = {
        name: tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in graph
    }
    return sorted({circle for circle in together.values() if len(circle) > 1})


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [*graph[start]]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += graph[name]
    return seen


def _imports(
    path: Path, source: str, inside: str | None = None, *, names: bool = False
) -> Iterator[str]:
    """Absolute names of all that is imported, wherever it stands; a name that is computed counts as
    the front door. With `names`, what is imported from a module may be a module, too."""
    package = ("fairveil", *path.parent.parts)
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=taken):
                yield from (alias.name for alias in taken)
            case ast.ImportFrom(module=module, names=taken, level=level):
                start = _absolute("." * level + (module or ""), package)
                packages = ("fairveil", f"fairveil.{inside}")
                every = [f"{start}.{alias.name}" for alias in taken]
                yield from every if start in packages else [start, *(every if names else ())]
            case ast.Call(
                func=ast.Attribute(attr="import_module")
                | ast.Name(id="import_module" | "__import__")
            ):
                if path.name != "_lazy.py":
                    named = node.args[0] if node.args else None
                    literal = isinstance(named, ast.Constant) and isinstance(named.value, str)
                    yield _absolute(named.value, package) if literal else "fairveil"
            case _:
                pass


def _absolute(name: str, package: tuple[str, ...]) -> str:
    level = len(name) - len(name.lstrip("."))
    if not level:
        return name
    return ".".join(
        (*package[: len(package) - level + 1], *([name[level:]] if name[level:] else []))
    )


def _room(path: Path) -> str:
    return path.parts[0] if len(path.parts) > 1 else path.stem


def _sources() -> list[Path]:
    found = sorted(ROOT.rglob("*.py"))
    assert len(found) > 10, f"no sources under {ROOT} ({sys.version})"
    return found
