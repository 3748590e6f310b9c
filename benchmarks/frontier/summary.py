"""From runs to the figures' numbers: points, comparisons with published curves, fairlearn, and our
own non-private curve."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from . import published
from .comparing import Path, against, mean_and_spread, mixed_at
from .figures import Wanted

Run = dict[str, Any]


def epsilons_of(runs: Sequence[Run]) -> list[float]:
    """In order."""
    return sorted({run["epsilon"] for run in runs})


def points(runs: Sequence[Run], wanted: Wanted) -> list[dict[str, Any]]:
    """One line an epsilon and bound: asked, got in training, got on held-out rows."""
    lines = []
    for epsilon in epsilons_of(runs):
        path = Path.of(runs, epsilon, wanted.gap)
        for asked in path.asked:
            some = [run for run in runs if run["epsilon"] == epsilon and run["asked"] == asked]
            of = {
                part: np.array([run[part][wanted.gap] for run in some])
                for part in ("test", "train")
            }
            reported = [run["reported"] for run in some if run["reported"] is not None]
            lines.append(
                {
                    "epsilon": epsilon,
                    "asked": asked,
                    "error": mean_and_spread(np.array([run["test"]["error"] for run in some])),
                    "gap": mean_and_spread(of["test"]),
                    "training_gap": mean_and_spread(of["train"]),
                    "training_gap_reported": float(np.mean(reported)) if reported else None,
                    "floor": float(
                        np.mean([run["test"].get(f"floor_{wanted.gap}", 0.0) for run in some])
                    ),
                    "positive_rate": float(np.mean([run["test"]["positive_rate"] for run in some])),
                    "certainly_broken": float(np.mean([run["certainly_broken"] for run in some])),
                    "spent": max(run["spent"] for run in some),
                }
            )
    return lines


def versus_published(runs: Sequence[Run], wanted: Wanted, folder: FilePath) -> dict[str, Any]:
    """Every published point: at its own epsilon, and records at epsilon 0.1 against those at
    0.5."""
    curves = published.curves(folder, wanted.dataset, wanted.gap)
    there = epsilons_of(runs)
    their_constant = published.constant_of(folder, wanted.dataset)
    lines = []
    for curve in curves:
        for epsilon in [curve.epsilon, *([0.1] if curve.epsilon == 0.5 else [])]:
            if epsilon not in there:
                continue
            ours = Path.of(runs, epsilon, wanted.gap)
            for error, gap in curve.points:
                line = against(ours, error, gap)
                plain = curve.unconstrained
                lines.append(
                    {
                        "method": curve.method,
                        "published_epsilon": curve.epsilon,
                        "our_epsilon": epsilon,
                        **line,
                        "cost_of_constraint": None if plain is None else error - plain,
                        "our_cost_of_constraint": line["ours"] - float(ours.errors[:, 0].mean()),
                        "gain_over_constant": None
                        if their_constant is None
                        else their_constant - error,
                        "our_gain_over_constant": ours.constant - line["ours"],
                        "ours_mixed_with_constant": mixed_at(ours, gap),
                    }
                )
    tally, by_method = _tally(lines), {}
    for method in dict.fromkeys(curve.method for curve in curves):
        by_method[method] = _tally([line for line in lines if line["method"] == method])
    ours_constant = float(np.mean([run["constant_error"] for run in runs]))
    constants = {"ours": ours_constant, "theirs, about": their_constant}
    return {
        "constant_error": constants,
        "tally": tally,
        "tally_by_method": by_method,
        "points": lines,
    }


def _tally(lines: Sequence[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """How many points got which verdict, a line for each pair of epsilons."""
    return {
        f"ours {epsilon:g} against theirs {other:g}": dict(
            Counter(
                line["verdict"]
                for line in lines
                if (line["our_epsilon"], line["published_epsilon"]) == (epsilon, other)
            )
        )
        for epsilon, other in sorted(
            {(line["our_epsilon"], line["published_epsilon"]) for line in lines}
        )
    }


def versus_ourselves(runs: Sequence[Run], wanted: Wanted) -> list[dict[str, Any]]:
    """Each epsilon against our own curve without privacy, at each of that one's mean gaps, on the
    same splits."""
    if math.inf not in epsilons_of(runs):
        return []
    free = Path.of(runs, math.inf, wanted.gap)
    lines = []
    for epsilon in epsilons_of(runs)[:-1]:
        ours = Path.of(runs, epsilon, wanted.gap)
        for k, asked in enumerate(free.asked):
            lines.append(
                {
                    "epsilon": epsilon,
                    "asked": asked,
                    **against(ours, free.errors[:, k], free.gaps[:, k]),
                }
            )
    return lines


def versus_fairlearn(
    runs: Sequence[Run], wanted: Wanted, peer: dict[str, Any] | None, folder: FilePath
) -> dict[str, Any]:
    """Every epsilon against fairlearn on the same splits (drawn together), and against the stored
    points of another split."""
    found: dict[str, Any] = {"same_splits": [], "stored": []}
    stored = published.fairlearn_of(folder, wanted.gap) if wanted.dataset == "adult" else []
    for epsilon in epsilons_of(runs):
        ours = Path.of(runs, epsilon, wanted.gap)
        for point in stored:
            found["stored"].append(
                {"epsilon": epsilon, **point, **against(ours, point["error"], point["gap"])}
            )
        if peer is None:
            continue
        some = ours.among(peer["splits"])
        for k, bound in enumerate(peer["bounds"]):
            errors, gaps = np.array(peer["errors"])[:, k], np.array(peer["gaps"])[:, k]
            found["same_splits"].append(
                {"epsilon": epsilon, "bound": bound, **against(some, errors, gaps)}
            )
    return found
