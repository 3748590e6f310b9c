"""The plot of a figure: ours, published curves, fairlearn, the floor."""

from __future__ import annotations

import math
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from fairveil.figures import GAP, Floor, FrontierFigure, Measure, Point, Series, svg_frontier

from . import published
from .comparing import Path, mean_and_spread
from .figures import NAMES, Wanted
from .methods import BY_STRENGTH
from .summary import Run, epsilons_of

METHODS = {
    "rate-constrained": "Fairveil",
    "post-processing": "Fairveil, post-processing",
    "game": "Fairveil, oracle game",
    "fermi": "Fairveil, DP-FERMI",
    "group-objective": "Fairveil, linear oracles",
    "group-objective-regression": "Fairveil, linear oracles by regression",
    "group-objective-descent": "Fairveil, linear oracles by descent",
    "group-objective-frank-wolfe": "Fairveil, Frank-Wolfe",
}


def draw(
    runs: list[Run], wanted: Wanted, asked: Any, peer: dict[str, Any] | None, folder: FilePath
) -> str:
    """An SVG, one pair of axes for each epsilon. `asked`: the command's options."""
    splits = len({run["seed"] for run in runs})
    label = METHODS[asked.method]
    by_gap = asked.method not in BY_STRENGTH
    paths = [(Path.of(runs, epsilon, wanted.gap), epsilon) for epsilon in epsilons_of(runs)]
    series = [_ours(path, epsilon, asked.protects, label, by_gap) for path, epsilon in paths]
    for curve in published.curves(folder, wanted.dataset, wanted.gap):
        if math.isfinite(curve.epsilon) and curve.epsilon in epsilons_of(runs):
            spots = tuple(Point(error, gap) for error, gap in curve.points)
            source = "numbers published with the code of DP-FERMI"
            series.append(
                Series(
                    curve.method,
                    curve.epsilon,
                    "sensitive_features",
                    spots,
                    published=True,
                    source=source,
                )
            )
    if peer is not None:
        errors, gaps = np.mean(peer["errors"], axis=0), np.mean(peer["gaps"], axis=0)
        spots = tuple(Point(float(e), float(g)) for e, g in zip(errors, gaps, strict=True))
        fairlearn = "fairlearn ExponentiatedGradient"
        series.append(
            Series(
                fairlearn,
                math.inf,
                "nothing",
                spots,
                published=True,
                source="run on the same splits",
            )
        )
    floor = None
    if wanted.gap != "misses":
        path = Path.of(
            runs, math.inf if math.inf in epsilons_of(runs) else epsilons_of(runs)[-1], wanted.gap
        )
        spread = np.linspace(float(path.errors.mean(axis=0).min()), path.constant, 12)
        floor = Floor(tuple((float(error), path.floor_at(float(error))) for error in spread))
    scaling = (
        "Unsafe: numbers are scaled by the training rows' own means and deviations, as in "
        "published runs; that is not covered."
        if asked.scaling == "unsafe"
        else "Numbers are scaled by declared bounds alone."
    )
    delta = "1 / training rows squared" if wanted.delta is None else f"{wanted.delta:g}"
    where = "held-out quarter" if asked.evaluation == "held-out" else "the training rows themselves"
    times = "" if asked.copies == 1 else f", trained on {asked.copies} copies"
    figure = FrontierFigure(
        wanted.words,
        f"{NAMES[wanted.dataset]}, {where}{times}",
        tuple(series),
        floor,
        (scaling, f"Ours: mean over {splits} splits, defaults, delta = {delta}."),
        "95% interval of the mean over splits",
        gap=Measure("false negative rate") if wanted.gap == "misses" else GAP,
        layout="by-epsilon",
    )
    return svg_frontier(figure, width=960)


def _ours(path: Path, epsilon: float, protects: Any, label: str, by_gap: bool) -> Series:
    spots = []
    for k, asked in enumerate(path.asked):
        error, gap = mean_and_spread(path.errors[:, k]), mean_and_spread(path.gaps[:, k])
        spots.append(
            Point(
                error["mean"],
                gap["mean"],
                error["mean"] - error["half_95"],
                error["mean"] + error["half_95"],
                gap["mean"] - gap["half_95"],
                gap["mean"] + gap["half_95"],
                asked if by_gap else None,
                len(path.seeds),
            )
        )
    whose: Any = "nothing" if math.isinf(epsilon) else protects
    return Series(label, epsilon, whose, tuple(spots))
