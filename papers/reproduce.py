"""Figures and tables of five papers, each by one command: published beside ours, and a verdict.

    fairveil reproduce                   what there is
    fairveil reproduce 002:fig2          one
    fairveil reproduce 001 004:fig3      a paper's, and one more
    fairveil reproduce all --quick       what runs in a few minutes: fewer seeds and settings

A target prints what the paper states, what is measured here, the difference with its 95 % band over
seeds, and whether the verdict that its page states still holds; it writes a picture and JSON beside
each other under `--out`. Exit status: 0 all verdicts hold; 1 one no longer holds; 2 something was
asked that there is not, or a file of rows is missing, which is said (with `--skip-missing` it is said
and passed over).

Published numbers are facts with their source, in each paper's `published.json`; rows are in files
that you hold (docs/data.md): FAIRVEIL_DATA or `--data` names their folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy import stats

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "benchmarks")]  # the papers', and the data sets'

BAND = 0.95
LESS, MORE, EQUAL, SHOWN = "at most", "at least", "equal to", "beside"


@dataclass(frozen=True)
class Line:
    """One number. `how`: ours must be `LESS` (at most the published one), `MORE`, `EQUAL`, each
    within `slack`, or is only `SHOWN`. `half`: of our 95 % band over seeds; 0 for one run."""

    what: str
    published: float | None
    ours: float
    half: float = 0.0
    how: str = SHOWN
    slack: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether it is as the target says; what is only shown is never wrong."""
        if self.how == SHOWN or self.published is None:
            return True
        off = self.ours - self.published
        if self.how == EQUAL:
            return abs(off) <= self.slack
        return off <= self.slack if self.how == LESS else off >= -self.slack


@dataclass(frozen=True)
class Asked:
    """How a target is run. `seeds`: so many; `folder`: of the files of rows."""

    quick: bool
    seeds: int
    folder: str | None


@dataclass(frozen=True)
class Target:
    """One figure, table or theorem. `state`: the verdict that its page states; it holds where at
    least `share` of the lines do. `quick`: whether it is among the quick ones; `sets`: of rows that
    it reads."""

    name: str
    title: str
    state: str
    run: Callable[[Asked], Iterator[Line]]
    sets: tuple[str, ...] = ()
    quick: bool = True
    share: float = 1.0
    unit: str = ""


@dataclass
class Paper:
    """A paper's targets, filled by `@paper.target(...)` in its script."""

    number: str
    title: str
    folder: Path
    targets: dict[str, Target] = field(default_factory=dict)

    def target(self, name: str, title: str, state: str, **options: Any) -> Callable[[Any], Any]:
        """Register a function of `Asked` that yields lines."""

        def keep(run: Callable[[Asked], Iterator[Line]]) -> Callable[[Asked], Iterator[Line]]:
            self.targets[name] = Target(name, title, state, run, **options)
            return run

        return keep

    @property
    def published(self) -> dict[str, Any]:
        """Its numbers as data; an error that says so where they are not there."""
        file = self.folder / "published.json"
        if not file.is_file():
            raise SystemExit(f"NO PUBLISHED NUMBERS: {file} is not there; nothing is compared.")
        found: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return found


def over_seeds(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and half of its 95 % interval."""
    n = len(values)
    if n < 2:
        return float(values[0]), 0.0
    deviation = float(np.std(values, ddof=1)) / math.sqrt(n)
    return float(np.mean(values)), float(stats.t.ppf((1 + BAND) / 2, n - 1)) * deviation


def papers() -> dict[str, Paper]:
    """All five, by number."""
    found = {}
    for folder in sorted(HERE.glob("[0-9][0-9][0-9]")):
        found[folder.name] = _script(folder).PAPER
    return found


def _script(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"paper_{folder.name}", folder / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def chosen(asked: Sequence[str], quick: bool) -> list[tuple[Paper, Target]]:
    """The targets of names such as "004:fig2", "004" and "all"."""
    known, out = papers(), []
    for name in asked:
        number, _, one = name.partition(":")
        some = list(known.values()) if name == "all" else [known[number]] if number in known else []
        listed = [
            (paper, target)
            for paper in some
            for target in paper.targets.values()
            if (one in ("", target.name)) and (one or target.quick or not quick)
        ]
        if not listed:
            every = ", ".join(f"{p.number}:{t}" for p in known.values() for t in p.targets)
            print(
                f"Expected a paper or a figure, got {name!r}. Known: all, {every}.", file=sys.stderr
            )
            raise SystemExit(2)
        out += [pair for pair in listed if pair not in out]
    return out


def told(paper: Paper, target: Target, lines: Sequence[Line], seconds: float) -> str:
    """The table of one target, and its verdict."""
    width = max([len(line.what) for line in lines] + [4])
    unit = f"   ({target.unit})" if target.unit else ""
    out = [
        f"{paper.number}:{target.name}  {target.title}{unit}",
        f"  {'what':{width}}  {'published':>10}  {'ours':>10}  {'difference':>20}",
    ]
    for line in lines:
        band = f" +- {line.half:.3g}" if line.half else ""
        there = "-" if line.published is None else f"{line.published:10.4g}"
        off = "" if line.published is None else f"{line.ours - line.published:+.3g}{band}"
        mark = "" if line.holds else "   NOT " + line.how
        out.append(f"  {line.what:{width}}  {there:>10}  {line.ours:10.4g}  {off:>20}{mark}")
    good = sum(line.holds for line in lines)
    verdict = "holds" if good >= target.share * len(lines) else "NO LONGER HOLDS"
    out.append(
        f"  stated: {target.state}. {verdict}: {good} of {len(lines)} lines. {seconds:.0f} s"
    )
    return "\n".join(out)


def draw(paper: Paper, target: Target, lines: Sequence[Line], file: Path) -> None:
    """Published numbers as rings, ours as dots with their band: one row a line."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "papers"  # the same file for the same numbers
    figure, axes = plt.subplots(figsize=(8, 1.4 + 0.28 * len(lines)), layout="constrained")
    rows = np.arange(len(lines))[::-1]
    ours, halves = [line.ours for line in lines], [line.half for line in lines]
    axes.errorbar(ours, rows, xerr=halves, fmt="o", color="#1f5fa8", label="here, 95 % over seeds")
    known = [(line.published, y) for line, y in zip(lines, rows, strict=True)]
    at = [(x, y) for x, y in known if x is not None]
    if at:
        axes.plot(*zip(*at, strict=True), "o", mfc="none", mec="#b03a2e", ms=9, label="published")
    axes.set_yticks(rows, [line.what for line in lines], fontsize=8)
    axes.set_xlabel(target.unit)
    axes.set_title(f"{paper.title}: {target.title}", fontsize=9, loc="left")
    axes.legend(fontsize=8)
    figure.savefig(file, metadata={"Date": None, "Title": f"{paper.number}:{target.name}"})
    plt.close(figure)


def run(pair: tuple[Paper, Target], asked: Asked, out: Path | None) -> bool:
    """Run a target, print, write; whether its stated verdict holds."""
    paper, target = pair
    began = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = list(target.run(asked))
    print(told(paper, target, lines, time.monotonic() - began), flush=True)
    holds = sum(line.holds for line in lines) >= target.share * len(lines)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        name = f"{paper.number}_{target.name}"
        found = {
            "paper": paper.title,
            "target": f"{paper.number}:{target.name}",
            "state": target.state,
            "quick": asked.quick,
            "seeds": asked.seeds,
            "holds": holds,
            "lines": [asdict(line) | {"holds": line.holds} for line in lines],
        }
        (out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        draw(paper, target, lines, out / f"{name}.svg")
    return holds


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    from fairveil.errors import DataNotFoundError

    options = argparse.ArgumentParser(
        "fairveil reproduce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("targets", nargs="*", help="004:fig2, 004, all; none: what there is")
    options.add_argument("--quick", action="store_true", help="fewer seeds and settings")
    options.add_argument("--seeds", type=int, help="default: 5, quick 2")
    options.add_argument("--data", help="the folder of the files; else FAIRVEIL_DATA")
    options.add_argument("--out", type=Path, help="a folder for pictures and JSON")
    options.add_argument("--skip-missing", action="store_true", help="say and pass over")
    asked = options.parse_args(arguments)
    if not asked.targets:
        for paper in papers().values():
            print(f"{paper.number}  {paper.title}")
            for target in paper.targets.values():
                slow = "" if target.quick else "  (slow)"
                print(f"  {paper.number}:{target.name:16} {target.title}: {target.state}{slow}")
        return 0
    seeds = asked.seeds or (2 if asked.quick else 5)
    how = Asked(asked.quick, seeds, asked.data)
    status = 0
    for pair in chosen(asked.targets, asked.quick):
        try:
            status = max(status, 0 if run(pair, how, asked.out) else 1)
        except DataNotFoundError as error:
            print(f"{pair[0].number}:{pair[1].name}  NOT RUN: {error}", file=sys.stderr, flush=True)
            status = status if asked.skip_missing else 2
    return status


if __name__ == "__main__":
    import reproduce  # one copy of what figures import, too

    sys.exit(reproduce.main())
