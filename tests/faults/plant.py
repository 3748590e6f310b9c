"""Faults of one line, planted one at a time in a copy of the tree, and the test that sees each.

The faults are data: the TOML files beside this one, a file a room. Each has the text `before`,
which stands in its file exactly once, the text `after`, and what it breaks. A step that moves code
carries its faults along: this says which texts are not found any more::

    python tests/faults/plant.py --check

and this says which test kills which fault (`--suite near`: the tests of the fault's room)::

    python tests/faults/plant.py --suite contract --jobs 2

A test runs once without a fault and says which functions it enters. A fault is then held against
those tests alone that enter its function, those that saw it before, then one of each kind,
for `--seconds` of them. Results and that trace are kept beside each other; a fault whose texts and
file are as they were is not planted again. Tests that fail without a fault are left out.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import hashlib
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COPIED = ("src", "tests", "docs", "examples", "benchmarks", "conftest.py", "pyproject.toml")
SUITES: dict[str, tuple[str, ...]] = {
    "golden": ("tests/contract/test_golden.py",),
    "contract": ("tests/contract/test_golden.py", "tests/contract"),
    "all": ("tests/contract/test_golden.py", "tests"),
}
MOST_UNCLEAR = 3
UNRUN = (3, 4, 5)  # what pytest ends with where it ran no test


@dataclass(frozen=True)
class Fault:
    """One fault. `near`: the tests of its room."""

    room: str
    name: str
    file: str
    before: str
    after: str
    breaks: str
    near: tuple[str, ...]

    def wrong(self, root: Path = ROOT) -> str:
        """What is wrong with it, in words; empty where it can be planted."""
        path = root / self.file
        if not path.exists():
            return f"{self.file} does not exist"
        times = path.read_text(encoding="utf-8").count(self.before)
        if times != 1:
            return f"its text stands {times} times in {self.file}: {self.before!r}"
        if self.before == self.after:
            return "it changes nothing"
        try:
            planted = ast.dump(ast.parse(self.planted(root)))
        except SyntaxError as error:
            return f"{self.file} cannot be read with it: {error}"
        if planted == _dumped(path):
            return "it changes no code"
        return ""

    def planted(self, root: Path) -> str:
        """The text of its file with the fault."""
        text = (root / self.file).read_text(encoding="utf-8")
        return text.replace(self.before, self.after)

    @property
    def drawn(self) -> float:
        """A number in [0, 1) that hangs on its name alone: a part of all faults is those below."""
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:4]) / 2**32

    def digest(self, root: Path = ROOT) -> str:
        """Of its texts and its file: whether a result is of this fault in this code."""
        said = (self.before, self.after, (root / self.file).read_text(encoding="utf-8"))
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


@functools.cache
def _dumped(path: Path) -> str:
    """The code of a file, which stays as it is while faults are looked at."""
    return ast.dump(ast.parse(path.read_text(encoding="utf-8")))


@functools.cache
def faults() -> tuple[Fault, ...]:
    """All of them, in the order of files."""
    found = []
    for file in sorted(HERE.glob("*.toml")):
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        for number, fault in enumerate(content["fault"], start=1):
            try:
                near = tuple(fault.pop("near", content["near"]))
                found.append(Fault(room=file.stem, near=near, **fault))
            except TypeError as error:
                raise ValueError(f"{file.name}, fault {number}: {error}") from error
    return tuple(found)


# ------------------------------------------------------------------------------------ copies of a tree


class Copy:
    """A copy of the tree, with its compiled caches. What a fault changes is put back from there."""

    def __init__(self, root: Path, place: Path) -> None:
        self.root, self.place = root, place
        place.mkdir(parents=True)
        for name in COPIED:
            if (root / name).exists():
                subprocess.run(["cp", "-a", root / name, place], check=True)

    def plant(self, fault: Fault) -> None:
        """Write the fault, and drop what was compiled from its file or with its functions."""
        (self.place / fault.file).write_text(fault.planted(self.root), encoding="utf-8")
        for file in self._compiled(fault.file):
            file.unlink()

    def restore(self, fault: Fault) -> None:
        """As it was, caches of compiled loops included."""
        shutil.copy2(self.root / fault.file, self.place / fault.file)
        for file in self._compiled(fault.file):
            file.unlink()
        for file in _compiled_of(self.root, _with_its_loops(self.root, fault.file)):
            shutil.copy2(file, self.place / file.relative_to(self.root))

    def _compiled(self, file: str) -> list[Path]:
        return _compiled_of(self.place, _with_its_loops(self.root, file))


def _compiled_of(root: Path, files: Iterable[str]) -> list[Path]:
    """Caches of the compiled loops in these files. Numba knows of a cache whose own file changed,
    but not of one whose functions call a changed function of another file."""
    found: list[Path] = []
    for file in files:
        path = root / file
        found += (path.parent / "__pycache__").glob(f"{path.stem}.*.nb?")
    return found


@functools.cache
def has_loops(root: Path, file: str) -> bool:
    """Whether there are compiled functions in it."""
    text = (root / file).read_text(encoding="utf-8")
    decorated = r"@(\w*jit|kernel|inlined|released|contracted|summed)\b|njit\("
    return re.search(decorated, text) is not None


def _with_its_loops(root: Path, file: str) -> frozenset[str]:
    """The file; and all that import it, where it has compiled loops, which these may call."""
    return dependents(root, file) if has_loops(root, file) else frozenset({file})


@functools.cache
def dependents(root: Path, file: str) -> frozenset[str]:
    """The file, and all that import it, at any remove."""
    importers = _importers(root)
    found, new = {file}, {file}
    while new:
        new = {other for one in new for other in importers.get(one, ())} - found
        found |= new
    return frozenset(found)


@functools.cache
def _importers(root: Path) -> dict[str, set[str]]:
    """By file: the files that import it, also inside of functions, and by a package's lazy names."""
    found: dict[str, set[str]] = {}
    for path in (root / "src").rglob("*.py"):
        for other in _imported(path, root):
            found.setdefault(str(other.relative_to(root)), set()).add(str(path.relative_to(root)))
    return found


def _imported(path: Path, root: Path) -> Iterator[Path]:
    for node in _run(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = _base(path, node, root)
            if base.with_suffix(".py").exists():
                yield base.with_suffix(".py")
            elif base.exists():
                yield from (_held(base, alias.name, root) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            other = path.parent / f"{node.value[1:]}.py"
            if (
                re.fullmatch(r"\.[a-z_]+", node.value)
                and path.stem != "__init__"
                and other.exists()
            ):
                yield other  # importlib.import_module(".kernels", __package__)


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that type checkers alone read."""
    yield node
    for child in ast.iter_child_nodes(node):
        checkers = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not checkers:
            yield from _run(child)


def _base(path: Path, node: ast.ImportFrom, root: Path) -> Path:
    base = path.parents[node.level - 1] if node.level else root / "src"
    return base.joinpath(*(node.module or "").split("."))


@functools.cache
def _held(package: Path, name: str, root: Path) -> Path:
    """The file that holds this name of a package: a module, or what its imports say, those for type
    checkers included, as the package's lazy names are these."""
    for file in (package / f"{name}.py", package / name / "__init__.py"):
        if file.exists():
            return file
    init = package / "__init__.py"
    for node in ast.walk(ast.parse(init.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            base = _base(init, node, root)
            held = base.with_suffix(".py")
            return held if held.exists() else _held(base, name, root) if base.exists() else init
    return init


# ------------------------------------------------------------------------ which tests come near a fault


class Entered:
    """A plugin of pytest: by test that passes its seconds, the tests that share a fit with it, and
    the functions of src that it enters, all as one line of `out`."""

    def __init__(self, place: Path, out: Path) -> None:
        self.place, self.out, self.failed = place, out, set[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes that it failed."""
        self.failed |= {report.nodeid} if report.failed else set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Runs the test, and notes what is called."""
        codes: dict[int, Any] = {}

        def called(frame: Any, event: str, arg: object) -> None:
            codes[id(frame.f_code)] = frame.f_code

        began = time.monotonic()
        threading.settrace(called)
        sys.settrace(called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            mark = item.get_closest_marker("xdist_group")
            entered = {self._said(code) for code in list(codes.values())} - {""}
            line = [time.monotonic() - began, mark.args[0] if mark else "", sorted(entered)]
            if item.nodeid not in self.failed:
                with self.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([item.nodeid, *line]) + "\n")

    def _said(self, code: Any) -> str:
        """A function and the file that it is in; of lambdas and the like the one around them."""
        file = str(code.co_filename).removeprefix(f"{self.place}/")
        name = re.sub(r"(\.<locals>)?\.?<\w+>$", "", code.co_qualname)
        return f"{file}:{name}" if file.startswith("src/") else ""


@dataclass(frozen=True)
class Near:
    """A test: its name, without its parameters too; its seconds, whose fit it shares, and how many
    functions it enters."""

    test: str
    kind: str
    seconds: float
    group: str
    breadth: int


class Trace:
    """What `Entered` wrote."""

    def __init__(self, path: Path) -> None:
        self.by_function: dict[str, set[Near]] = defaultdict(set)
        self.by_file: dict[str, set[Near]] = defaultdict(set)
        self.by_group: dict[str, set[Near]] = defaultdict(set)
        self.tests = set[str]()
        path.touch()
        for line in path.read_text(encoding="utf-8").splitlines():
            test, seconds, group, entered = json.loads(line)
            self.tests.add(test)
            near = Near(test, test.partition("[")[0], seconds, group, len(entered))
            self.by_group[group].add(near)
            for function in entered:
                self.by_function[function].add(near)
                self.by_file[function.partition(":")[0]].add(near)

    def of(self, fault: Fault) -> set[Near]:
        """The tests that enter its function; where none does, as none enters what is compiled,
        functions that name it, or that name those; where it is in none, its file. What runs in
        processes of their own is seen by test files that name its package."""
        name = _function(fault)
        new = {(fault.file, name)} if name else set()
        known = set(new)
        while new:
            found = set[Near]().union(*(self.by_function[f"{file}:{of}"] for file, of in new))
            if found:
                return found
            new = {user for file, of in new for user in _users(file, of.rpartition(".")[2])} - known
            known |= new
        package = re.compile(rf"\b{Path(fault.file).parent.name}\b")
        every = set().union(*self.by_group.values())
        named = {near for near in every if package.search(_text(near.test.partition("::")[0]))}
        return self.by_file[fault.file] or named or every

    def chosen(self, fault: Fault, seconds: float) -> list[str]:
        """Tests against it: of each kind the cheapest, then the next of each, for so many seconds;
        among those, tests of few functions first, as they are about these. Who shares a fit with a
        test that enters its function sees it as well."""
        direct = self.of(fault)
        groups = {near.group: 0.0 for near in direct if near.group}
        for group in groups:
            groups[group] = max(near.seconds for near in self.by_group[group])
        kinds: dict[str, list[Near]] = defaultdict(list)
        for near in direct.union(*(self.by_group[group] for group in groups)):
            kinds[near.kind].append(near)
        rounds: list[tuple[int, bool, int, Near]] = []
        for kind in kinds.values():
            kind.sort(key=lambda near: (groups.get(near.group, 0.0), near.seconds, near.test))
            rounds += [(at, one not in direct, one.breadth, one) for at, one in enumerate(kind)]
        tests = list[str]()
        for *_, one in sorted(rounds, key=lambda line: (*line[:3], line[3].test)):
            if one.seconds <= seconds or not tests:
                seconds -= one.seconds
                tests.append(one.test)
        return tests


@functools.cache
def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def _function(fault: Fault) -> str:
    """The innermost function that a fault's text begins in, as Python names it; empty: none."""
    text = _text(fault.file)
    at = text.index(fault.before) + len(fault.before) - len(fault.before.lstrip("\n"))
    line = text.count("\n", 0, at) + 1
    around = [name for name, node in _functions(fault.file) if node[0] <= line <= node[1]]
    return around[-1] if around else ""


@functools.cache
def _functions(file: str) -> list[tuple[str, tuple[int, int]]]:
    """The functions of a file and their lines, those around others before them."""
    found = []

    def walk(node: ast.AST, within: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = within
            if isinstance(child, ast.ClassDef):
                inner = f"{within}{child.name}."
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append((f"{within}{child.name}", (child.lineno, child.end_lineno or 0)))
                inner = f"{within}{child.name}.<locals>."
            walk(child, inner)

    walk(ast.parse(_text(file)), "")
    return found


def _users(file: str, name: str) -> Iterator[tuple[str, str]]:
    """The functions that name it, of its file and of those that import that."""
    for other in {file, *_importers(ROOT).get(file, ())}:
        lines = _text(other).splitlines()
        for function, (start, end) in _functions(other):
            if re.search(rf"\b{re.escape(name)}\b", "\n".join(lines[start:end])):
                yield other, function


# ------------------------------------------------------------------------------------------- the results


class Results:
    """Lines of JSON in a file, one a run; of a fault and a suite the last counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._of: dict[tuple[str, str], dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._keep(json.loads(line))

    def _keep(self, line: dict[str, Any]) -> None:
        self._of[line["fault"], line["suite"]] = line

    def add(self, line: dict[str, Any]) -> None:
        """Write one down."""
        self._keep(line)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def of(self, fault: Fault, suite: str) -> dict[str, Any] | None:
        """What is known of this fault in this code."""
        line = self._of.get((fault.name, suite))
        return line if line is not None and line["digest"] == fault.digest() else None

    def killers(self, fault: Fault) -> list[str]:
        """The tests that saw it, in whatever code."""
        known = [line["killed_by"] for (name, _), line in self._of.items() if name == fault.name]
        return [killer for killer in known if killer]

    def killed(self, fault: Fault, suite: str) -> bool:
        """Whether some test of the suite saw it. What golden fits see, the contract sees."""
        contract = ("golden", "contract")
        suites = {"contract": contract, "all": (*contract, "near", "all")}
        lines = [self.of(fault, name) for name in suites.get(suite, (suite,))]
        return any(line is not None and line["killed_by"] for line in lines)


# ------------------------------------------------------------------------------- plants among the living


def functions_changed(old: str, new: str, file: str) -> list[tuple[CodeType, CodeType]] | None:
    """The functions of a file that two texts of it do not share, of both; None where they differ in
    what runs when the file is imported."""
    (was, rest), (now, other) = (_parts(compile(text, file, "exec")) for text in (old, new))
    if rest != other or len(was) != len(now):
        return None
    return [pair for pair in zip(was, now, strict=True) if _essence(pair[0]) != _essence(pair[1])]


def _parts(code: CodeType) -> tuple[list[CodeType], list[object]]:
    """The functions that stand in no other one; and all else."""
    functions, rest = list[CodeType](), [_essence(code, inside=False)]
    for const in code.co_consts:
        if isinstance(const, CodeType) and const.co_flags & inspect.CO_OPTIMIZED:
            functions.append(const)
        elif isinstance(const, CodeType):
            more, left = _parts(const)
            functions, rest = functions + more, rest + left
    return functions, rest


def _essence(code: CodeType, inside: bool = True) -> object:
    """What it does, wherever it stands."""
    inner = [_essence(c) for c in code.co_consts if isinstance(c, CodeType) and inside]
    plain = [(type(c), repr(c)) for c in code.co_consts if not isinstance(c, CodeType)]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_code, code.co_flags, names, plain, inner


class Planting:
    """A plugin of pytest: its process collects the tests of a copy once, and runs some of them, so
    that all is loaded. For each fault it forks. The child has the fault in its living functions, or
    where it stands outside of these, or is compiled, begins anew; and runs the tests near it."""

    def __init__(self, copy: Copy, asked: argparse.Namespace, results: Results) -> None:
        self.copy, self.asked, self.results = copy, asked, results
        self.failed = list[str]()
        self._told = os.fdopen(os.dup(1), "w", buffering=1)  # which pytest does not catch

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes what failed."""
        self.failed += [report.nodeid] * report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of one run of all tests."""
        self.items = {item.nodeid: item for item in session.items}
        trace = self.asked.trace
        known = Trace(trace).tests
        if new := [test for test in self.items if test not in known]:
            entered = Entered(self.copy.place, trace)
            session.config.pluginmanager.register(entered)
            self._run(new)
            session.config.pluginmanager.unregister(entered)
        else:
            self._run([test for test in self.items if "test_golden" in test])
        for name in self.failed:
            print(f"fails without a fault, and is left out: {name}", file=self._told)
        self.left_out, self.failed = set(self.failed), []
        self._forget()
        self._living()
        self.trace = Trace(trace)
        for fault in self.asked.chosen:
            line = self.plant(fault)
            self.results.add(line)
            said = line["killed_by"] or f"SURVIVES {line.get('unclear', '')}"
            words = f"{fault.room:12}{fault.name:44}{line['seconds']:6}  {said}"
            print(words, file=self._told)
        return True

    def plant(self, fault: Fault) -> dict[str, Any]:
        """Plant one, and say which test failed first."""
        began, killer, unclear = time.monotonic(), None, list[str]()
        near = self.results.killers(fault) + self.trace.chosen(fault, self.asked.seconds)
        near = list(dict.fromkeys(near))
        tests = [test for test in near if test in self.items and test not in self.left_out]
        swapped = self._swapped(fault)
        while tests and len(unclear) < MOST_UNCLEAR:
            self.copy.plant(fault)
            try:
                killer = self._killer(tests, swapped)
            finally:
                self.copy.restore(fault)
            if killer is None or "::" not in killer or self._killer([killer], []) is None:
                break
            unclear.append(killer)  # which fails without the fault as well
            tests.remove(killer)
            killer = None
        line = {"fault": fault.name, "room": fault.room, "suite": self.asked.suite}
        line |= {"digest": fault.digest(), "killed_by": killer}
        line |= {"seconds": round(time.monotonic() - began, 1), "tests": len(tests)}
        return line | ({"unclear": unclear} if unclear else {})

    def _run(self, tests: Sequence[str], first: bool = False) -> None:
        items = [self.items[test] for test in tests]
        for item, following in zip_longest(items, items[1:]):
            if item is not None and not (first and self.failed):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def _forget(self) -> None:
        """What functions of the copy keep of earlier calls."""
        for kept in gc.get_objects():
            if type(kept) is functools._lru_cache_wrapper and self._ours(kept.__wrapped__):
                kept.cache_clear()

    def _living(self) -> None:
        self.living: dict[object, list[Any]] = defaultdict(list)
        for function in gc.get_objects():
            if type(function) is FunctionType and self._ours(function):
                self.living[_place_of(function.__code__)].append(function)
        gc.freeze()  # no child looks for garbage among what its parent has

    def _ours(self, function: Any) -> bool:
        file = getattr(getattr(function, "__code__", None), "co_filename", "")
        return str(file).startswith(f"{self.copy.place}/")

    def _swapped(self, fault: Fault) -> list[tuple[Any, CodeType]] | None:
        """Living functions, and what they do with the fault. None: a new process is needed."""
        file = self.copy.place / fault.file
        old = file.read_text(encoding="utf-8")
        changed = functions_changed(old, fault.planted(self.copy.place), str(file))
        if changed is None or has_loops(ROOT, fault.file):
            return None
        found = [(one, new) for old, new in changed for one in self.living[_place_of(old)]]
        loaded = str(file) in {getattr(module, "__file__", None) for module in sys.modules.values()}
        return found if len(found) >= len(changed) or not loaded else None

    def _killer(
        self, tests: Sequence[str], swapped: list[tuple[Any, CodeType]] | None
    ) -> str | None:
        """The first test that fails in a child."""
        out = self.copy.place / "failed"
        out.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            os.setsid()
            try:
                if swapped is None:
                    command = [sys.executable, __file__, "--run", str(out), *tests]
                    os.execv(sys.executable, command)
                for function, code in swapped:
                    function.__code__ = code
                self._run(tests, first=True)
                out.write_text("".join(self.failed[:1]), encoding="utf-8")
                os._exit(0)
            finally:
                os._exit(1)
        ended = _waited(child, self.asked.timeout)
        failed = out.read_text(encoding="utf-8") if out.exists() else ""
        if not failed and ended in map(str, UNRUN):
            raise SystemExit(f"tests cannot be run in a new process: {tests[:3]}")
        return failed or (None if ended == "0" else f"({ended})")


def _place_of(code: CodeType) -> object:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _waited(child: int, timeout: float) -> str:
    ends, status = time.monotonic() + timeout, None
    while status is None and time.monotonic() < ends:
        ended, found = os.waitpid(child, os.WNOHANG)
        status = found if ended else None
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # with what it has begun
    if status is None:
        os.waitpid(child, 0)
        return "no end"
    return str(os.waitstatus_to_exitcode(status))


def pytest_of(place: Path, tests: Sequence[str], plugin: object, *options: str) -> int:
    """The tests of a copy, in this process."""
    os.chdir(place)
    os.environ |= {"PYTHONPATH": str(place / "src"), "XDG_CACHE_HOME": str(place / "cache")}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    sys.path[:0] = [str(place / "src"), str(place / "tests"), str(place)]
    tempfile.tempdir = os.environ["TMPDIR"] = tempfile.mkdtemp(dir=place)
    options += ("-p", "no:cacheprovider", "-p", "no:terminalreporter")
    options += (f"--basetemp={tempfile.tempdir}/pytest",)
    return int(pytest.main([*options, *tests], plugins=[plugin]))


class First:
    """A plugin of pytest: the first test that fails, in a file."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Of a test."""
        if report.failed:
            self.out.write_text(report.nodeid, encoding="utf-8")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Of a file of tests, which cannot be imported."""
        if report.failed:
            self.out.write_text(f"(collection of {report.nodeid})", encoding="utf-8")


def table(results: Results) -> Iterator[str]:
    """Of each room: planted, and killed by which suite; and who survived."""
    suites = ("golden", "contract", "near", "all")
    parts = {"contract": ("golden", "contract")}
    rooms = list(dict.fromkeys(fault.room for fault in faults()))
    yield f"{'room':14}{'planted':>8}" + "".join(f"{suite:>10}" for suite in suites)
    sums: Counter[str] = Counter()
    for room in [*rooms, "together"]:
        ours = [fault for fault in faults() if room in (fault.room, "together")]
        cells = ""
        for suite in suites:
            ran = [
                fault
                for fault in ours
                if suite == "all"
                or any(results.of(fault, one) for one in parts.get(suite, (suite,)))
            ]
            killed = sum(results.killed(fault, suite) for fault in ran)
            cells += f"{f'{killed}/{len(ran)}':>10}"
        sums[room] = len(ours)
        yield f"{room:14}{len(ours):>8}{cells}"
    for suite in suites[:3]:
        living = [
            fault
            for fault in faults()
            if not results.killed(fault, suite)
            and any(results.of(fault, one) for one in parts.get(suite, (suite,)))
        ]
        for fault in living:
            yield f"survives {suite}: {fault.room}/{fault.name} ({fault.breaks})"


def main() -> int:
    """See the top of this file."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="only say which cannot be planted")
    parser.add_argument("--table", action="store_true", help="only print what is known")
    parser.add_argument("--suite", choices=[*SUITES, "near"], default="golden")
    parser.add_argument("--only", default="", metavar="PART", help="faults with this in room/name")
    parser.add_argument("--share", type=float, default=1.0, help="a fixed random part of them")
    parser.add_argument("--again", action="store_true", help="survivors that are known, too")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests, a fault")
    parser.add_argument("--timeout", type=float, default=600.0, help="until a fault has no end")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "faults.jsonl")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        out, *tests = asked.run
        status = pytest_of(Path(out).parent, tests, First(Path(out)), "-x")
        return status if status in UNRUN else 0
    chosen = [fault for fault in faults() if asked.only in f"{fault.room}/{fault.name}"]
    chosen = [fault for fault in chosen if fault.drawn < asked.share]
    if asked.part is None:
        wrong = {f"{fault.room}/{fault.name}": fault.wrong() for fault in chosen}
        wrong = {name: words for name, words in wrong.items() if words}
        for name, words in wrong.items():
            print(f"{name}: {words}")
        if asked.check or wrong:
            return int(bool(wrong))
    asked.results.parent.mkdir(parents=True, exist_ok=True)
    results = Results(asked.results)
    tests = SUITES.get(asked.suite, sorted({test for fault in chosen for test in fault.near}))
    tests = [test for test in tests if (ROOT / test).exists()]
    digest = hashlib.sha256(json.dumps(tests).encode()).hexdigest()[:8]
    asked.trace = asked.results.parent / f"trace-{digest}.jsonl"
    # Those that are planted first are a fair sample of all.
    chosen = sorted((f for f in chosen if _is_open(f, results, asked)), key=lambda f: f.drawn)
    if asked.part is not None:
        asked.chosen = chosen[asked.part :: asked.jobs]
        with tempfile.TemporaryDirectory(prefix="fairveil-faults-") as folder:
            copy = Copy(ROOT, Path(folder) / "copy")
            pytest_of(copy.place, tests, Planting(copy, asked, results))
        return 0
    if chosen and not asked.table:
        jobs = asked.jobs if Trace(asked.trace).tests else 1  # the first run traces for all
        command = [sys.executable, *sys.argv, "--jobs", str(jobs), "--part"]
        parts = [subprocess.Popen([*command, str(part)]) for part in range(jobs)]
        for part in parts:
            part.wait()
    print("\n".join(table(Results(asked.results))))
    return 0


def _is_open(fault: Fault, results: Results, asked: argparse.Namespace) -> bool:
    """Whether it is to be planted: not known, or known to survive and asked for again."""
    line = results.of(fault, asked.suite)
    return line is None or (asked.again and not line["killed_by"])


if __name__ == "__main__":
    sys.exit(main())
