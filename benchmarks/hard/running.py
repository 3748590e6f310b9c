"""One fit after another, each measured on held-out rows."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairveil.errors import FairveilError
from fairveil.facts import Cells
from frontier.splits import Coded

from . import methods, stored
from .cases import CASES, MISSES, Case
from .measured import table_of
from .methods import Wanted
from .rival import Rival


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
    knobs: dict[str, Any] | None = None
    folder: str | None = None
    most: int | None = None
    aim: str | None = None
    aim_folder: Path = Path("aim")
    aim_options: tuple[str, ...] = ()


def run(asked: Asked, file: Path | None = None) -> list[stored.Run]:
    """All runs that are asked for; those that the file lacks are fitted, and appended to it."""
    before = {stored.key_of(one): one for one in stored.read(file)}
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
        if method == "unconstrained" or (method in methods.TWO_CLASSES and classes > 2):
            continue
        for notion, bound in _measurements(method, pairs):
            constraint = case.constraint(notion, bound)
            if method in methods.NOT_PRIVATE:
                yield Wanted(method, notion, constraint, bound, math.inf, "nothing", seed)
                continue
            for protects in ("records",) if method == "aim" else asked.protects:
                for epsilon in asked.epsilons:
                    if method == "aim" and 100 < epsilon < math.inf:
                        continue
                    knobs = tuple((asked.knobs or {}).items()) if method == "descent" else ()
                    yield Wanted(method, notion, constraint, bound, epsilon, protects, seed, knobs)


def _measurements(method: str, pairs: list[tuple[str, float]]) -> list[tuple[str, float]]:
    notions = list(dict.fromkeys(notion for notion, _ in pairs))
    if method == "fermi":
        return [
            (notion, strength)
            for notion in notions
            if notion in FERMI
            for strength in methods.STRENGTHS
        ]
    if method == "fairlearn-threshold":
        return [(notion, 0.0) for notion in notions if notion != MISSES]
    if method in ("fairlearn", "aim"):
        curve = {
            notion: sorted({bound for n, bound in pairs if n == notion} | {0.01, 0.15})
            for notion in notions
        }
        return [
            (notion, bound)
            for notion in notions
            if notion != MISSES
            for bound in reversed(curve[notion])
        ]
    return pairs


FERMI = ("demographic_parity", "equalized_odds", "equal_opportunity")


def _key(asked: Asked, case: str, wanted: Wanted) -> stored.Key:
    return stored.key_of(_told(asked, case, wanted))


def _told(asked: Asked, case: str, wanted: Wanted) -> stored.Run:
    return {
        "case": case,
        "method": wanted.method,
        "notion": wanted.notion,
        "asked": wanted.asked,
        "epsilon": wanted.epsilon,
        "protects": wanted.protects,
        "seed": wanted.seed,
        "most": asked.most,
        "knobs": " ".join(f"{name}={value}" for name, value in wanted.knobs),
    }


def _fitted(
    asked: Asked, case: Case, seed: int, missing: list[Wanted], file: Path | None
) -> dict[stored.Key, stored.Run]:
    train, test = case.parts(seed, asked.folder, asked.most)
    cells = case.cells(train)
    rival = (
        None
        if asked.aim is None
        else Rival(asked.aim, asked.aim_folder, case.source or case.name, asked.aim_options)
    )
    done = {}
    for one in missing:
        start = time.perf_counter()
        found = _measured(one, train, test, cells, rival)
        seconds = time.perf_counter() - start
        told = {
            **_told(asked, case.name, one),
            "constraint": one.constraint,
            "rows": train.block.rows,
            "groups": [list(values) for values in train.layout.sensitive],
            "seconds": round(seconds, 3),
            **found,
        }
        stored.append(file, [told])
        done[stored.key_of(told)] = told
        said = (
            f"{case.name} {one.method} {one.constraint or ''} epsilon {one.epsilon:g} "
            f"{one.protects} seed {seed}"
        )
        print(f"{said}: {seconds:.1f} s", file=sys.stderr, flush=True)
    return done


def _measured(
    one: Wanted, train: Coded, test: Coded, cells: Cells, rival: Rival | None
) -> dict[str, Any]:
    """What the fit says, and the table of its decisions; or why there is none."""
    try:
        fitted = methods.METHODS[one.method](train, cells, one, rival)
    except (FairveilError, methods.ImpossibleError) as refused:
        return {"failed": f"{type(refused).__name__}: {refused}"}
    return {**fitted.said, "table": np.round(table_of(fitted.law(test), test, cells), 4).tolist()}
