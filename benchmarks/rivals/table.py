"""Runs as lines, and lines as Markdown: error @ gap of every system and case, what is proved, what
it took."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from fairveil.facts import Cells
from hard import stored
from hard.cases import CASES
from hard.measured import Judge, constant_table, error_of
from hard.tables import WORDS

from .running import FIELD
from .systems import NOTHING, SYSTEMS

ABREAST = 3
CONSTANT = "one class for everybody"


@dataclass(frozen=True)
class Number:
    """A mean over seeds and its standard error, NaN of one seed."""

    mean: float
    error: float

    @staticmethod
    def of(values: list[float]) -> Number:
        """All of them alike."""
        many = np.array(values, float)
        return Number(
            float(many.mean()),
            float(many.std(ddof=1)) / math.sqrt(len(many)) if len(many) > 1 else math.nan,
        )

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f}" + (
            "" if math.isnan(self.error) else f" ± {100 * self.error:.1f}"
        )


@dataclass(frozen=True)
class Line:
    """One system on one case. `proved`: None where no finite epsilon is. `best`: no private system
    is better in both."""

    case: str
    system: str
    error: Number
    gap: Number
    claimed: float | None
    proved: float | None
    seconds: float
    mebibytes: float
    seeds: int
    failed: str = ""
    failures: int = 0
    best: bool = False

    @property
    def is_private(self) -> bool:
        """Whole records, with a finite epsilon that is proved: the systems that are compared with
        each other."""
        return (
            self.proved is not None
            and self.system in SYSTEMS
            and SYSTEMS[self.system].protects == "records"
        )


def lines(runs: list[stored.Run]) -> list[Line]:
    """In the order of cases and systems, a line of constants last in each case."""
    parts: dict[tuple[str, str], list[stored.Run]] = defaultdict(list)
    for run in runs:
        parts[run["case"], run["method"]].append(run)
    order = [*FIELD, *(name for name in CASES if name not in FIELD)]
    found = []
    for case in order:
        some = [_line(case, name, parts[case, name]) for name in SYSTEMS if (case, name) in parts]
        constants = [
            _constant(run)
            for (name, _), made in parts.items()
            if name == case
            for run in made
            if "table" in run
        ]
        if constants:
            error = Number.of(list(dict(constants).values()))
            some.append(
                Line(
                    case,
                    CONSTANT,
                    error,
                    Number(0.0, math.nan),
                    None,
                    None,
                    0.0,
                    0.0,
                    len(dict(constants)),
                )
            )
        private = [one for one in some if one.is_private and not one.failed]
        found += [
            replace(one, best=one in private and not any(_under(other, one) for other in private))
            for one in some
        ]
    return found


def _under(one: Line, other: Line) -> bool:
    return one.error.mean < other.error.mean and one.gap.mean < other.gap.mean


def _constant(run: stored.Run) -> tuple[int, float]:
    table = np.array(run["table"])
    return run["seed"], min(error_of(constant_table(table, k)) for k in range(table.shape[2]))


def _line(case: str, system: str, runs: list[stored.Run]) -> Line:
    done = [run for run in runs if "table" in run]
    failed = [run for run in runs if "failed" in run]
    if not done:
        nothing = Number(math.nan, math.nan)
        took = (max(run.get(name, 0.0) for run in failed) for name in ("cpu", "mebibytes"))
        return Line(
            case, system, nothing, nothing, None, None, *took, 0, failed[0]["failed"], len(failed)
        )
    tables = [np.array(run["table"]) for run in done]
    cells = [Cells((tuple(range(len(table))),)) for table in tables]
    judges = [
        Judge.of(run["constraint"], cell, table.shape[2])
        for run, cell, table in zip(done, cells, tables, strict=True)
    ]
    return Line(
        case,
        system,
        Number.of([error_of(table) for table in tables]),
        Number.of([judge.gap(table) for judge, table in zip(judges, tables, strict=True)]),
        _largest([run.get("claimed") for run in done]),
        _largest([run.get("proved") for run in done]),
        float(done[-1].get("cpu", done[-1]["seconds"])),
        max(run["mebibytes"] for run in done),
        len(done),
        failures=len(failed),
    )


def _largest(values: list[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return max(known) if len(known) == len(values) else None


def whole(found: list[Line]) -> list[str]:
    """Error @ gap in per cent and points; a few cases abreast."""
    cases = list(dict.fromkeys(line.case for line in found))
    names = [*SYSTEMS, CONSTANT]
    told = {(line.case, line.system): line for line in found}
    text = []
    for start in range(0, len(cases), ABREAST):
        some = cases[start : start + ABREAST]
        text += [
            "| system | " + " | ".join(_heading(told, case) for case in some) + " |",
            "|---" * (1 + len(some)) + "|",
        ]
        for name in names:
            here = [told.get((case, name)) for case in some]
            if any(here):
                words = SYSTEMS[name].words if name in SYSTEMS else CONSTANT
                text.append(f"| {words} | " + " | ".join(map(_cell, here)) + " |")
        text.append("")
    return text


def _heading(told: dict[tuple[str, str], Line], case: str) -> str:
    from .running import asked_of

    notion, bound = asked_of(CASES[case])
    return f"`{case}`: {WORDS.get(notion, notion)}, {100 * bound:g} points"


def _cell(line: Line | None) -> str:
    if line is None:
        return ""
    if line.failed:
        return "-"
    text = f"{line.error} @ {line.gap}"
    return f"**{text}**" if line.best else text


def costs(found: list[Line]) -> list[str]:
    """What each system protects, what is proved, and what it took: the largest of all cases."""
    text = [
        "| system | protects | reads groups to predict | epsilon claimed | epsilon proved | CPU s "
        "| MiB |",
        "|---" * 7 + "|",
    ]
    for name, system in SYSTEMS.items():
        some = [line for line in found if line.system == name and not line.failed]
        if not some:
            continue
        what = (
            NOTHING
            if system.protects == NOTHING
            else f"{system.protects.replace('_', ' ')}, {system.relation}"
        )
        claimed, proved = (
            _range([getattr(line, part) for line in some]) for part in ("claimed", "proved")
        )
        proved = proved if system.checked else f"{proved}, its claim"
        took = (
            f"{min(line.seconds for line in some):.0f} to {max(line.seconds for line in some):.0f}"
        )
        reads = "yes" if system.reads_group else "no"
        text.append(
            f"| {system.words} | {what} | {reads} | {claimed} | {proved} | {took} | "
            f"{max(x.mebibytes for x in some):,.0f} |"
        )
    return text


def _range(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    low, high = f"{min(known):.3g}", f"{max(known):.3g}"
    text = low if low == high else f"{low} to {high}"
    return text if len(known) == len(values) else f"{text}, or none"


def refusals(found: list[Line]) -> list[str]:
    """What did not end in a model, and why."""
    why: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in found:
        if line.failed:
            why[line.system, line.failed].append(line.case)
    return [
        f"- {SYSTEMS[system].words}: {reason}. {', '.join(cases)}"
        for (system, reason), cases in why.items()
    ]
