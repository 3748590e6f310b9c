"""Runs of many seeds as lines: error and gap beside the baselines, and who wins by how much."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairveil.facts import Cells

from .cases import CASES
from .measured import Judge, error_of, selected
from .methods import NOT_PRIVATE
from .runs import Key, Run, key_of

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Mean:
    """Over seeds. `spread`: the standard error; NaN of one seed."""

    value: float
    spread: float

    @staticmethod
    def of(values: Sequence[float]) -> Mean:
        """NaN where one of them is."""
        many = np.array(values, float)
        spread = float(many.std(ddof=1)) / math.sqrt(len(many)) if len(many) > 1 else math.nan
        return Mean(float(many.mean()), spread)


@dataclass(frozen=True)
class Line:
    """One method at one bound and epsilon. `over_mixing`: its error less that of mixing at its own
    gap, seed by seed; `over_constant` likewise; `over_fairlearn`: its error less fairlearn's at its
    mean gap, NaN where that is not reached."""

    case: str
    notion: str
    protects: str
    method: str
    epsilon: float
    asked: float
    error: Mean
    gap: Mean
    mixing: Mean
    constant: Mean
    over_mixing: Mean
    over_constant: Mean
    over_fairlearn: float
    free: tuple[float, float]
    without_privacy: tuple[float, float] | None
    selected: float
    seeds: int
    seconds: float

    @property
    def harm(self) -> bool:
        """Whether it lies above mixing by more than two standard errors and a tenth of a point."""
        spread = 0.0 if math.isnan(self.over_mixing.spread) else self.over_mixing.spread
        return self.over_mixing.value > max(2.0 * spread, 0.001)

    @property
    def winner(self) -> str:
        """Of the method and the two baselines of the same protection, at its gap, and by how
        much."""
        others = {"mixing": self.mixing.value, "the best constant": self.constant.value}
        known = {name: value for name, value in others.items() if not math.isnan(value)}
        if not known:
            return f"{self.method}: nothing else keeps to this gap"
        best = min(known, key=lambda name: known[name])
        over = self.over_mixing if best == "mixing" else self.over_constant
        noise = 0.0 if math.isnan(over.spread) else 2.0 * over.spread
        by = f"{100 * abs(over.value):.1f}" + (
            "" if math.isnan(over.spread) else f" ± {100 * over.spread:.1f}"
        )
        if abs(over.value) <= max(noise, 0.001):
            return f"even with {best} ({by})"
        return f"{self.method} by {by}" if over.value < 0 else f"**{best} by {by}**"


def lines(runs: list[Run]) -> Iterator[Line]:
    """In the order of the cases, notions, methods, epsilons and bounds. Fits that were refused have
    none."""
    runs = [run for run in runs if "failed" not in run]
    free = {
        (run["case"], run["protects"], run["epsilon"], run["seed"]): run
        for run in runs
        if run["method"] == "unconstrained"
    }
    parts: dict[Key, list[Run]] = defaultdict(list)
    for run in runs:
        if run["method"] != "unconstrained":
            parts[key_of({**run, "seed": None})].append(run)
    curves = _curves(runs)
    endless = {
        (case, method, notion, asked, protects): _mean_point(some)
        for (case, method, notion, asked, epsilon, protects, *_), some in parts.items()
        if math.isinf(epsilon)
    }
    order = {name: place for place, name in enumerate(CASES)}
    for key in sorted(
        parts, key=lambda key: (order[key[0]], key[2], key[5], key[1], key[4], -key[3])
    ):
        case, method, notion, asked, epsilon, protects, *_ = key
        some = parts[key]
        judges = [_judge(run) for run in some]
        tables = [np.array(run["table"]) for run in some]
        errors = [error_of(table) for table in tables]
        gaps = [judge.gap(table) for judge, table in zip(judges, tables, strict=True)]
        bases = [_base(free, run) for run in some]
        known = all(base is not None for base in bases)
        mixing = [
            j.mixing(b, g) if b is not None else math.nan
            for j, b, g in zip(judges, bases, gaps, strict=True)
        ]
        constant = [j.constant(t, g) for j, t, g in zip(judges, tables, gaps, strict=True)]
        curve = curves.get((case, notion))
        middle = float(np.mean(gaps))
        yield Line(
            case,
            notion,
            protects,
            method,
            epsilon,
            asked,
            Mean.of(errors),
            Mean.of(gaps),
            Mean.of(mixing),
            Mean.of(constant),
            Mean.of(np.subtract(errors, mixing).tolist()),
            Mean.of(np.subtract(errors, constant).tolist()),
            math.nan
            if curve is None or method in NOT_PRIVATE
            else float(np.mean(errors)) - at(curve, middle),
            _free_point(bases, judges) if known else (math.nan, math.nan),
            endless.get((case, method, notion, asked, protects))
            if not math.isinf(epsilon)
            else None,
            float(np.mean([selected(table)[-1] for table in tables])),
            len(some),
            float(np.mean([run["seconds"] for run in some])),
        )


def _judge(run: Run) -> Judge:
    case = CASES[run["case"]]
    table = np.array(run["table"])
    return Judge.of(case.constraint(run["notion"], 0.1), _cells(run), table.shape[2])


def _cells(run: Run) -> Cells:
    return Cells(
        tuple(map(tuple, run["groups"])), "marginal" if CASES[run["case"]].marginal else "product"
    )


def _base(free: dict[Key, Run], run: Run) -> Floats | None:
    """The unconstrained model of the same protection, epsilon and seed; of what is not private, the
    one without noise."""
    protects = (
        [run["protects"]] if run["protects"] != "nothing" else ["records", "sensitive_features"]
    )
    for one in protects:
        found = free.get((run["case"], one, run["epsilon"], run["seed"]))
        if found is not None:
            return np.array(found["table"])
    return None


def _mean_point(some: list[Run]) -> tuple[float, float]:
    tables = [np.array(run["table"]) for run in some]
    gaps = [_judge(run).gap(table) for run, table in zip(some, tables, strict=True)]
    return float(np.mean([error_of(table) for table in tables])), float(np.mean(gaps))


def _free_point(bases: list[Floats | None], judges: list[Judge]) -> tuple[float, float]:
    known = [base for base in bases if base is not None]
    return float(np.mean([error_of(b) for b in known])), float(
        np.mean([j.gap(b) for j, b in zip(judges, known, strict=True)])
    )


def _curves(runs: list[Run]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """fairlearn's reduction: mean (gap, error) at each bound, and the lower hull of them."""
    parts: dict[tuple[str, str], dict[float, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run["method"] == "fairlearn":
            parts[run["case"], run["notion"]][run["asked"]].append(run)
    found = {}
    for key, some in parts.items():
        points = [_mean_point(of_bound) for of_bound in some.values()]
        found[key] = hull([(gap, error) for error, gap in points])
    return found


def hull(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The lower convex hull, from the least gap to the least error: what mixtures of the points
    reach."""
    kept: list[tuple[float, float]] = []
    for x, y in sorted(points):
        if kept and y >= kept[-1][1]:
            continue
        while len(kept) > 1 and (kept[-1][1] - kept[-2][1]) * (x - kept[-2][0]) >= (
            y - kept[-2][1]
        ) * (kept[-1][0] - kept[-2][0]):
            kept.pop()
        kept.append((x, y))
    return kept


def at(curve: list[tuple[float, float]], gap: float) -> float:
    """Its error at this gap; NaN below its least gap."""
    gaps, errors = zip(*curve, strict=True)
    return math.nan if gap < gaps[0] - 1e-9 else float(np.interp(gap, gaps, errors))
