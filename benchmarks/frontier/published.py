"""Published curves, read from a folder beside the repository: means over the authors' own 15
splits, and nobody's rows."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

NAMES = {"adult": "adult", "credit": "credit-card", "parkinsons": "parkinsons"}
NOTIONS = {"parity": "demographic_parity", "odds": "equalized_odds"}


@dataclass(frozen=True)
class Curve:
    """One published curve: (error, gap) points; all protect the sensitive column alone."""

    method: str
    epsilon: float
    points: tuple[tuple[float, float], ...]

    @property
    def unconstrained(self) -> float | None:
        """The error of its point of the largest gap, where it has several points."""
        return max(self.points, key=lambda point: point[1])[0] if len(self.points) > 1 else None


def curves(folder: Path, dataset: str, gap: str) -> list[Curve]:
    """All of a data set and a notion; none where the file is not there or says nothing about it."""
    if gap not in NOTIONS:
        return []
    found = []
    for curve in _listed(folder / "published_frontiers.json", "curves"):
        if curve["dataset"] == NAMES.get(dataset) and curve["notion"] == NOTIONS[gap]:
            epsilon = math.inf if curve["epsilon"] is None else float(curve["epsilon"])
            points = tuple(
                (float(point["error"]), float(point["gap"])) for point in curve["points"]
            )
            found.append(Curve(curve["method"], epsilon, points))
    return found


@lru_cache(maxsize=8)  # read, and missed aloud, once
def _listed(file: Path, what: str) -> tuple[dict[str, Any], ...]:
    """Nothing where the file is not there, which is said: a comparison that is missing must not
    look like one that was made."""
    if file.is_file():
        return tuple(json.loads(file.read_text("utf-8"))[what])
    print(
        f"NO PUBLISHED NUMBERS: {file} is not there, so that nothing is compared with it. A clone "
        f"does not bring the authors' figures: pass --published FOLDER, where that file is.",
        file=sys.stderr,
    )
    return ()


def constant_of(folder: Path, dataset: str) -> float | None:
    """The largest error among published points of next to no gap (below 0.003): what their constant
    answer errs by, about."""
    points = [p for gap in NOTIONS for curve in curves(folder, dataset, gap) for p in curve.points]
    nearly = [error for error, gap in points if gap < 0.003]
    return max(nearly, default=None)


def fairlearn_of(folder: Path, gap: str) -> list[dict[str, Any]]:
    """fairlearn's ExponentiatedGradient on the 45,222 rows of Adult, one split: bound, error,
    gap."""
    if gap not in NOTIONS:
        return []
    name = {"parity": "DemographicParity", "odds": "EqualizedOdds"}[gap]
    field = {"parity": "dp_gap", "odds": "eo_gap"}[gap]
    return [
        {
            "method": point["method"],
            "bound": point["bound"],
            "error": point["error"],
            "gap": point[field],
        }
        for point in _listed(folder / "nonprivate_fairlearn_adult.json", "points")
        if point["rows"] == "pur" and f"ExponentiatedGradient {name}," in point["method"]
    ]
