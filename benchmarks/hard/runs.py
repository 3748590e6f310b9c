"""One fit after another, each measured on held-out rows, and kept as a line of a file."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairveil.errors import FairveilError
from fairveil.facts import Cells
from sets import Coded

from . import methods
from .cases import CASES, MISSES, Case
from .measured import table_of
from .methods import Wanted

Run = dict[str, Any]
Key = tuple[Any, ...]
NAMES = ("case", "method", "notion", "asked", "epsilon", "protects", "seed", "most")
PENALTIES = ("demographic_parity", "equalized_odds")
"""The notions that `fermi` has a penalty for."""


@dataclass(frozen=True)
class Asked:
    """The axes of a run."""

    cases: Sequence[str]
    methods: Sequence[str]
    epsilons: Sequence[float]
    protects: Sequence[str]
    seeds: Sequence[int]
    notions: Sequence[str] | None = None
    gaps: Sequence[float] | None = None
    folder: str | None = None
    most: int | None = None


def run(asked: Asked, file: Path | None = None) -> list[Run]:
    """All runs that are asked for; those that the file lacks are fitted, and appended to it."""
    before = {key_of(one): one for one in read(file)}
    found = []
    for name in asked.cases:
        for seed in asked.seeds:
            wanted = list(_wanted(asked, CASES[name], seed))
            missing = [one for one in wanted if _key(asked, name, one) not in before]
            if missing:
                before |= _fitted(asked, CASES[name], seed, missing, file)
            found += [
                before[_key(asked, name, one)] for one in wanted if _key(asked, name, one) in before
            ]
    return found


def _wanted(asked: Asked, case: Case, seed: int) -> Iterator[Wanted]:
    """Each fit, the unconstrained models first: everything is judged against them."""
    classes = case.law.classes if case.law is not None else 2
    pairs = [
        (notion, bound)
        for notion, bounds in case.asked
        if asked.notions is None or notion in asked.notions
        for bound in asked.gaps or bounds
    ]
    for protects in asked.protects:
        for epsilon in asked.epsilons:
            yield Wanted("unconstrained", None, None, None, epsilon, protects, seed)
    for method in asked.methods:
        if method == "unconstrained" or (method in methods.NOT_PRIVATE and classes > 2):
            continue
        for notion, bound in _measurements(method, pairs):
            constraint = case.constraint(notion, bound)
            if method in methods.NOT_PRIVATE:
                yield Wanted(method, notion, constraint, bound, math.inf, "nothing", seed)
                continue
            for protects in asked.protects:
                for epsilon in asked.epsilons:
                    yield Wanted(method, notion, constraint, bound, epsilon, protects, seed)


def _measurements(method: str, pairs: list[tuple[str, float]]) -> list[tuple[str, float]]:
    notions = list(dict.fromkeys(notion for notion, _ in pairs))
    if method == "fermi":
        return [(n, strength) for n in notions if n in PENALTIES for strength in methods.STRENGTHS]
    if method == "fairlearn-threshold":
        return [(notion, 0.0) for notion in notions if notion != MISSES]
    if method == "fairlearn":
        return [
            (notion, bound)
            for notion in notions
            if notion != MISSES
            for bound in sorted({b for n, b in pairs if n == notion} | {0.01, 0.15}, reverse=True)
        ]
    return pairs


def _key(asked: Asked, case: str, wanted: Wanted) -> Key:
    return key_of(_told(asked, case, wanted))


def _told(asked: Asked, case: str, wanted: Wanted) -> Run:
    return {
        "case": case,
        "method": wanted.method,
        "notion": wanted.notion,
        "asked": wanted.asked,
        "epsilon": wanted.epsilon,
        "protects": wanted.protects,
        "seed": wanted.seed,
        "most": asked.most,
    }


def _fitted(
    asked: Asked, case: Case, seed: int, missing: list[Wanted], file: Path | None
) -> dict[Key, Run]:
    train, test = case.parts(seed, asked.folder, asked.most)
    cells, done = case.cells(train), {}
    for one in missing:
        start = time.perf_counter()
        found = _measured(one, train, test, cells)
        seconds = time.perf_counter() - start
        told = {
            **_told(asked, case.name, one),
            "rows": train.block.rows,
            "groups": [list(values) for values in train.layout.sensitive],
            "seconds": round(seconds, 3),
            **found,
        }
        append(file, [told])
        done[key_of(told)] = told
        said = (
            f"{case.name} {one.method} {one.constraint or ''} epsilon {one.epsilon:g} "
            f"{one.protects} seed {seed}"
        )
        print(f"{said}: {seconds:.1f} s", file=sys.stderr, flush=True)
    return done


def _measured(one: Wanted, train: Coded, test: Coded, cells: Cells) -> dict[str, Any]:
    """What the fit says, and the table of its decisions; or why there is none."""
    try:
        fitted = methods.METHODS[one.method](train, cells, one)
    except (FairveilError, methods.ImpossibleError) as refused:
        return {"failed": f"{type(refused).__name__}: {refused}"}
    return {**fitted.said, "table": np.round(table_of(fitted.law(test), test, cells), 4).tolist()}


def key_of(run: Run) -> Key:
    """What makes two runs the same one."""
    return tuple(run[name] for name in NAMES)


def read(file: Path | None) -> list[Run]:
    """Every run of the file; a last line that was cut off is passed over."""
    if file is None or not file.exists():
        return []
    found = []
    for line in file.read_text("utf-8").splitlines():
        try:
            run = json.loads(line)
        except json.JSONDecodeError:
            continue
        run["epsilon"] = float(run["epsilon"])
        found.append(run)
    return list({key_of(run): run for run in found}.values())


def append(file: Path | None, runs: Iterable[Run]) -> None:
    """Written at once, so that a run that is interrupted loses one fit."""
    if file is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    cut_off = file.exists() and not file.read_bytes().endswith(b"\n")
    with file.open("a", encoding="utf-8") as out:
        out.write("\n" if cut_off else "")
        for run in runs:
            plain = {**run, "epsilon": run["epsilon"] if math.isfinite(run["epsilon"]) else "inf"}
            out.write(json.dumps(plain) + "\n")
