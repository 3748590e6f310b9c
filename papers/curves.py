"""Our curve of error against gap on a named set, at published gaps: what the figures of 002, 003 and
004 are compared by.

Splits, delta and metric are the papers': a quarter of the rows held out, delta = 1/n^2, the mean over
splits of the error and of the gap of held-out rows, numbers scaled by training moments (which no
guarantee covers; the papers do, and the statements of these fits say so). A randomised classifier is
measured by its probabilities. Between our mean points the curve is straight; a published point is
compared at its own gap, where an exactly fair model shows a smaller one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from reproduce import LESS, SHOWN, Asked, Line, over_seeds

from frontiers import Measured, error_at, measure
from sets import Coded, law, load, split

Maker = Callable[..., Any]
"""From epsilon, delta, a strength and a seed to an estimator."""
BOUNDS: Mapping[tuple[str, str], tuple[float, ...]] = {
    ("adult", "demographic_parity"): (0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.001),
    ("retired-adult", "demographic_parity"): (0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.001),
    ("credit", "demographic_parity"): (0.02, 0.015, 0.01, 0.006, 0.003, 0.001),
    ("parkinsons", "demographic_parity"): (0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.003),
    ("adult", "equalized_odds"): (0.08, 0.06, 0.04, 0.03, 0.02, 0.01, 0.001),
    ("credit", "equalized_odds"): (0.03, 0.02, 0.015, 0.01, 0.006, 0.003),
}
QUICK = 3
"""Bounds of a quick run."""
SPLITS = 0.2
"""Per cent that a quick run may err more: two splits are apart by that."""


@lru_cache(maxsize=4)
def splits_of(name: str, seeds: int, folder: str | None) -> list[tuple[Coded, Coded]]:
    """(train, held out) of each seed."""
    rows = load(name, folder)
    return [split(rows, seed) for seed in range(seeds)]


def held_out(model: Any, test: Coded) -> Measured:
    """What its decisions do to held-out rows, in per cent."""
    return measure(law(model, test)[:, 1], test)


def swept(
    name: str, gap: str, make: Maker, strengths: Sequence[Any], epsilon: float, asked: Asked
) -> tuple[Any, Any, Any]:
    """Errors, gaps and floors (seeds, strengths), in per cent, from the weakest strength on."""
    out = []
    for seed, (train, test) in enumerate(splits_of(name, asked.seeds, asked.folder)):
        line = []
        for strength in strengths:
            model = make(epsilon, 1.0 / train.block.rows**2, strength, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = held_out(model.fit(train), test)
            line.append((found.error, getattr(found, gap), getattr(found, f"floor_{gap}")))
        out.append(line)
    table = 100.0 * np.array(out)
    return table[..., 0], table[..., 1], table[..., 2]


def against(
    published: Sequence[Mapping[str, Any]],
    name: str,
    notion: str,
    methods: Sequence[str],
    make: Maker,
    strengths: Sequence[Any],
    epsilons: Sequence[float],
    asked: Asked,
    slack: float = 0.0,
) -> Iterator[Line]:
    """Every published point of these methods beside our error at its gap: at most theirs."""
    gap = {"demographic_parity": "parity", "equalized_odds": "odds"}[notion]
    slack += SPLITS * asked.quick
    for epsilon in epsilons:
        errors, gaps, floors = swept(name, gap, make, strengths, epsilon, asked)
        mean = errors.mean(axis=0)[np.newaxis], gaps.mean(axis=0)[np.newaxis]
        for curve in published:
            if (curve["set"], curve["notion"], curve["epsilon"]) != (name, notion, epsilon):
                continue
            if curve["method"] not in methods:
                continue
            for error, at in curve["points"]:
                where = np.array([at])
                (ours,) = error_at(*mean, where)
                each = [
                    error_at(errors[s][np.newaxis], gaps[s][np.newaxis], where)[0]
                    for s in range(len(errors))
                ]
                half = over_seeds(each)[1]
                # narrower than an exactly fair model shows, or than we went: not comparable
                fair = float(floors.mean(axis=0).min())
                how = LESS if at >= max(fair, float(mean[1].min())) else SHOWN
                what = f"{curve['method'].partition(' (')[0]}, eps {epsilon:g}, gap {at:.2f}"
                yield Line(what, error, float(ours), half, how, slack)


def strengths_of(name: str, notion: str, asked: Asked) -> tuple[Any, ...]:
    """No constraint, and bounds."""
    bounds = BOUNDS[name, notion]
    if asked.quick:
        bounds = tuple(bounds[round(at)] for at in np.linspace(0, len(bounds) - 1, QUICK))
    return (None, *bounds)


def epsilons_of(asked: Asked, every: Sequence[float]) -> tuple[float, ...]:
    """Epsilon 1 alone in a quick run."""
    return (1.0,) if asked.quick else tuple(every)


def training(model: Any, train: Coded, gap: str) -> float:
    """The gap of the training rows, in points."""
    return 100.0 * float(getattr(measure(law(model, train)[:, 1], train), gap))


def steps(value: float) -> str:
    """A number of points for a name.

    >>> steps(0.05)
    '5'
    """
    return f"{100 * value:g}"
