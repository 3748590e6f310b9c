"""Faults of one line, planted one at a time in a copy of the tree, and the test that sees each.

The faults are data: the TOML files beside this one, a file a room. Each has the text `before`,
which stands in its file exactly once, the text `after`, and what it breaks. A step that moves code
carries its faults along: this says which texts are not found any more::

    python tests/faults/plant.py --check

and this says which test kills which fault (`--suite near`: the tests of the fault's room; `close`:
contract tests about its room alone, a part of `contract`)::

    python tests/faults/plant.py --suite contract --jobs 2

Results are kept as lines of JSON, and a fault whose texts and file are as they were is not planted
again. Tests that fail without a fault are left out.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import hashlib
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COPIED = ("src", "tests", "docs", "examples", "benchmarks", "conftest.py", "pyproject.toml")
SUITES: dict[str, tuple[str, ...]] = {
    "golden": ("tests/contract/test_golden.py",),
    "contract": ("tests/contract/test_golden.py", "tests/contract"),
    "all": ("tests/contract/test_golden.py", "tests"),
}
MOST_UNCLEAR = 3


@dataclass(frozen=True)
class Fault:
    """One fault. `near`: the tests of its room; `close`: contract tests about it."""

    room: str
    name: str
    file: str
    before: str
    after: str
    breaks: str
    near: tuple[str, ...]
    close: tuple[str, ...]

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
        usual = {name: tuple(content[name]) for name in ("near", "close")}
        for number, fault in enumerate(content["fault"], start=1):
            try:
                tests = {name: tuple(fault.pop(name, usual[name])) for name in usual}
                found.append(Fault(room=file.stem, **tests, **fault))
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


# ----------------------------------------------------------------------------------------- runs of tests


def run_tests(place: Path, tests: Sequence[str], out: Path, first: bool) -> None:
    """The tests of a copy, in this process; which failed, one a line of `out`."""
    import pytest

    class Failed:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:
                self.say(report.nodeid)

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                self.say(f"(collection of {report.nodeid})")

        @staticmethod
        def say(name: str) -> None:
            with out.open("a", encoding="utf-8") as file:
                file.write(name + "\n")

    tempfile.tempdir = os.environ["TMPDIR"] = tempfile.mkdtemp(dir=place)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:terminalreporter"] + ["-x"] * first
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what was imported before
    options += [f"--basetemp={tempfile.tempdir}/pytest"]
    status = pytest.main([*options, *tests], plugins=[Failed()])
    shutil.rmtree(tempfile.tempdir, ignore_errors=True)
    if status not in (0, 1, 2):
        Failed.say(f"(pytest: exit status {int(status)})")


def forget(place: Path, files: Iterable[str]) -> None:
    """Let modules of a copy be imported anew: these, its tests, and all packages, which hold names
    of their modules."""
    gone = {str(place / file) for file in files}
    for name, module in list(sys.modules.items()):
        file = str(getattr(module, "__file__", None) or "")
        ours = file.startswith(f"{place}/")
        if ours and (file in gone or not file.startswith(f"{place}/src/") or "/__init__." in file):
            del sys.modules[name]
    left = {name: module for name, module in sys.modules.items() if "." in name}
    for name, module in left.items():
        package, _, own = name.rpartition(".")
        if str(getattr(module, "__file__", None) or "").startswith(f"{place}/src/"):
            setattr(importlib.import_module(package), own, module)  # as its import did


class Server:
    """A process that has run the tests of a copy once without a fault, and forks for every fault:
    the child imports anew what the fault is in and all that import that, and has the rest from
    its parent, compiled loops included."""

    def __init__(self, place: Path) -> None:
        command = [sys.executable, __file__, "--serve", str(place)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def warm(self, tests: Sequence[str]) -> list[str]:
        """The tests that fail without a fault."""
        return self._told(tests, (), 0.0)

    def run(self, tests: Sequence[str], files: Iterable[str], timeout: float) -> str | None:
        """The first test that failed, where these files may have changed."""
        return next(iter(self._told(tests, files, timeout)), None)

    def _told(self, tests: Sequence[str], files: Iterable[str], timeout: float) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "failed"
            asked = [list(tests), sorted(files), str(out), timeout]
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(asked) + "\n")
            ended = self._process.stdout.readline().strip()
            failed = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
        return failed if ended == "0" or failed else [f"({ended})"]

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve(place: Path) -> None:
    """Answer the lines that come: see `Server`."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.chdir(place)
    os.environ["PYTHONPATH"] = str(place / "src")
    os.environ["XDG_CACHE_HOME"] = str(place / "cache")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    sys.path[:0] = [str(place / "src"), str(place / "tests"), str(place)]
    for line in sys.stdin:
        tests, files, out, timeout = json.loads(line)
        if not timeout:
            forget(place, ())
            run_tests(place, tests, Path(out), first=False)
            gc.freeze()  # no child looks for garbage among what its parent has
            answers.write("0\n")
            continue
        child = os.fork()
        if child == 0:
            os.setsid()
            status = 1
            try:
                forget(place, files)
                run_tests(place, tests, Path(out), first=True)
                status = 0
            finally:
                os._exit(status)
        answers.write(f"{_waited(child, timeout)}\n")


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

    def killed(self, fault: Fault, suite: str) -> bool:
        """Whether some test of the suite saw it. What golden fits see, the contract sees."""
        contract = ("golden", "close", "contract")
        suites = {"contract": contract, "all": (*contract, "near", "all")}
        lines = [self.of(fault, name) for name in suites.get(suite, (suite,))]
        return any(line is not None and line["killed_by"] for line in lines)


def tests_of(fault: Fault, suite: str) -> tuple[str, ...]:
    """What is run against it, likely killers first."""
    own = {"near": fault.near, "close": fault.close}
    tests = own[suite] if suite in own else SUITES[suite]
    return tuple(test for test in tests if (ROOT / test).exists())


class Bench:
    """A copy, and the process that runs its tests."""

    def __init__(self, place: Path, timeout: float) -> None:
        self.copy, self.timeout = Copy(ROOT, place), timeout
        self._server: Server | None = None
        self._warm: tuple[str, ...] = ()
        self._left_out: list[str] = []

    def plant(self, fault: Fault, suite: str) -> dict[str, Any]:
        """Plant one, and say which test failed first."""
        server = self._warmed(tests_of(fault, suite))
        began, tests = time.monotonic(), [*self._warm, *self._left_out]
        files = dependents(ROOT, fault.file)
        killer, unclear = None, list[str]()
        while len(unclear) < MOST_UNCLEAR:
            self.copy.plant(fault)
            try:
                killer = server.run(tests, files, self.timeout)
            finally:
                self.copy.restore(fault)
            if killer is None or "::" not in killer:
                break
            if server.run([killer], files, self.timeout) is None:
                break
            unclear.append(killer)  # which fails without the fault as well
            tests.append(f"--deselect={killer}")
            killer = None
        line: dict[str, Any] = {
            "fault": fault.name,
            "room": fault.room,
            "suite": suite,
            "digest": fault.digest(),
        }
        line |= {"killed_by": killer, "seconds": round(time.monotonic() - began, 1)}
        return line | {"unclear": unclear} if unclear else line

    def _warmed(self, tests: tuple[str, ...]) -> Server:
        if self._server is None or tests != self._warm:
            self.close()
            self._server, self._warm = Server(self.copy.place), tests
            failed = self._server.warm(tests)
            if any(name.startswith("(") for name in failed):
                raise SystemExit(f"{' '.join(tests)} cannot be run without a fault: {failed}")
            for name in failed:
                print(f"fails without a fault, and is left out: {name}", flush=True)
            self._left_out = [f"--deselect={name}" for name in failed]
        return self._server

    def close(self) -> None:
        """End the process."""
        if self._server is not None:
            self._server.close()


def run(chosen: Sequence[Fault], suite: str, results: Results, jobs: int, timeout: float) -> None:
    """Plant them, several at a time."""
    with tempfile.TemporaryDirectory(prefix="fairveil-faults-") as folder:
        free: SimpleQueue[Bench] = SimpleQueue()
        benches = [Bench(Path(folder) / f"copy{number}", timeout) for number in range(jobs)]
        for bench in benches:
            free.put(bench)

        def planted(fault: Fault) -> dict[str, Any]:
            bench = free.get()
            try:
                return bench.plant(fault, suite)
            finally:
                free.put(bench)

        with ThreadPoolExecutor(jobs) as pool:
            for fault, line in zip(chosen, pool.map(planted, chosen), strict=True):
                results.add(line)
                said = line["killed_by"] or f"SURVIVES {line.get('unclear', '')}"
                print(f"{fault.room:12}{fault.name:44}{line['seconds']:6}  {said}", flush=True)
        for bench in benches:
            bench.close()


def table(results: Results) -> Iterator[str]:
    """Of each room: planted, and killed by which suite; and who survived."""
    suites = ("golden", "contract", "near", "all")
    parts = {"contract": ("golden", "close", "contract")}
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
    parser.add_argument("--suite", choices=[*SUITES, "close", "near"], default="golden")
    parser.add_argument("--only", default="", metavar="PART", help="faults with this in room/name")
    parser.add_argument("--share", type=float, default=1.0, help="a fixed random part of them")
    parser.add_argument("--living", action="store_true", help="only those that golden fits miss")
    parser.add_argument("--again", action="store_true", help="survivors that are known, too")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds a fault")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "faults.jsonl")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.serve)
        return 0
    wrong = {f"{fault.room}/{fault.name}": fault.wrong() for fault in faults()}
    wrong = {name: words for name, words in wrong.items() if words}
    for name, words in wrong.items():
        print(f"{name}: {words}")
    if asked.check or wrong:
        return int(bool(wrong))
    asked.results.parent.mkdir(parents=True, exist_ok=True)
    results = Results(asked.results)
    chosen = [fault for fault in faults() if asked.only in f"{fault.room}/{fault.name}"]
    chosen = [fault for fault in chosen if fault.drawn < asked.share]
    if asked.living:
        chosen = [fault for fault in chosen if not results.killed(fault, "contract")]
    known = {fault: results.of(fault, asked.suite) for fault in chosen}
    chosen = [f for f in chosen if known[f] is None or (asked.again and not known[f]["killed_by"])]
    # Tests are run once without a fault for all that they are run against; compiling takes longest.
    chosen.sort(key=lambda fault: (tests_of(fault, asked.suite), has_loops(ROOT, fault.file)))
    if chosen and not asked.table:
        run(chosen, asked.suite, results, asked.jobs, asked.timeout)
    print("\n".join(table(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
