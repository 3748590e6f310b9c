"""Comparisons at equal gap: our measured points, joined by straight lines in the order of what was
asked for; no envelope."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]
DRAWS = 2000


@dataclass(frozen=True, eq=False)
class Path:
    """Errors and gaps (seeds, asked) of one curve, from the weakest constraint to the strongest;
    and the floor at each."""

    asked: tuple[float | None, ...]
    seeds: tuple[int, ...]
    errors: Floats
    gaps: Floats
    floors: Floats
    constant: float

    @staticmethod
    def of(runs: Sequence[dict[str, Any]], epsilon: float, gap: str) -> Path:
        """One epsilon's runs. `gap`: which measure is the x axis ("misses" has no floor)."""
        chosen = {(run["seed"], run["asked"]): run for run in runs if run["epsilon"] == epsilon}
        seeds = tuple(sorted({seed for seed, _ in chosen}))
        # a small gap, a large strength is tight
        sign = 1.0 if any(run.get("sweep") == "strength" for run in runs) else -1.0
        asked = tuple(
            sorted(
                {bound for _, bound in chosen},
                key=lambda bound: -math.inf if bound is None else sign * bound,
            )
        )

        def grid(name: str) -> Floats:
            return np.array(
                [[chosen[seed, bound]["test"].get(name, 0.0) for bound in asked] for seed in seeds]
            )

        constant = float(np.mean([chosen[seed, asked[0]]["constant_error"] for seed in seeds]))
        return Path(asked, seeds, grid("error"), grid(gap), grid(f"floor_{gap}"), constant)

    def among(self, seeds: Sequence[int]) -> Path:
        """The same curve on some of the splits."""
        rows = [self.seeds.index(seed) for seed in seeds]
        return Path(
            self.asked,
            tuple(seeds),
            self.errors[rows],
            self.gaps[rows],
            self.floors[rows],
            self.constant,
        )

    def floor_at(self, error: float) -> float:
        """The gap that an exactly fair model of that error shows: between our models, and a
        constant one, which shows none."""
        spots = sorted(
            [
                *zip(self.errors.mean(axis=0), self.floors.mean(axis=0), strict=True),
                (self.constant, 0.0),
            ]
        )
        return float(np.interp(error, [spot[0] for spot in spots], [spot[1] for spot in spots]))


def mixed_at(ours: Path, gap: float) -> float:
    """Our least mean error at a gap where a model answers at random as often as needed: a constant,
    else what one point says.

    Rates then are mixtures, and so is their gap in expectation: shares a of a point (error e, gap
    g), the rest the constant of error c and gap 0, have the gap a g and the error a e + (1 - a) c.
    """
    errors, gaps = ours.errors.mean(axis=0), ours.gaps.mean(axis=0)
    share = np.minimum(1.0, gap / np.maximum(gaps, 1e-12))
    return float((share * errors + (1.0 - share) * ours.constant).min())


def draws(seeds: int) -> Floats:
    """Weights of the splits: all alike, then bootstrap draws."""
    counts = np.random.default_rng(20_240).multinomial(seeds, np.full(seeds, 1 / seeds), size=DRAWS)
    return np.vstack([np.ones(seeds), counts]) / seeds


def error_at(errors: Floats, gaps: Floats, gap: Floats | float) -> Floats:
    """The error at a gap, for each line of mean errors and gaps (draws, asked).

    Where the line passes the gap more than once, the pass at the weakest constraint counts: nobody
    asks for more than gives what is wanted. Beyond its widest point that point counts, which has
    less gap than it is compared at; short of its narrowest point that one counts, and the verdict
    says so.
    """
    at = np.broadcast_to(np.asarray(gap, np.float64), len(errors))
    found = np.full(len(errors), np.nan)
    for k in range(errors.shape[1] - 1):
        x, u, y, v = gaps[:, k], gaps[:, k + 1], errors[:, k], errors[:, k + 1]
        inside = (np.minimum(x, u) <= at) & (at <= np.maximum(x, u))
        share = np.divide(at - x, u - x, out=np.zeros_like(x), where=u != x)
        there = np.where(u != x, y + share * (v - y), np.maximum(y, v))
        found = np.where(inside & np.isnan(found), there, found)
    rows = np.arange(len(errors))
    widest, narrowest = gaps.argmax(axis=1), gaps.argmin(axis=1)
    found = np.where(at > gaps[rows, widest], errors[rows, widest], found)
    return np.where(at < gaps[rows, narrowest], errors[rows, narrowest], found)


def against(ours: Path, error: Floats | float, gap: Floats | float) -> dict[str, Any]:
    """Our error at somebody's gap, less theirs, with the 95 % band of the mean over splits.

    `error`, `gap`: one number each, or one a split (measured on the same splits), which are drawn
    together with ours.
    """
    weights = draws(len(ours.seeds))
    theirs = weights @ np.asarray(error) if np.ndim(error) else np.full(len(weights), float(error))
    at = weights @ np.asarray(gap) if np.ndim(gap) else np.full(len(weights), float(gap))
    mean_gaps = weights @ ours.gaps
    found = error_at(weights @ ours.errors, mean_gaps, at)
    difference = found - theirs
    splits = len(ours.seeds)
    deviation = float(difference[1:].std(ddof=1)) * math.sqrt(splits / max(1, splits - 1))
    half = float(stats.t.ppf(0.975, max(1, splits - 1))) * deviation
    reached = bool(at[0] >= mean_gaps[0].min())
    floor = ours.floor_at(float(theirs[0]))
    beyond = bool(at[0] > mean_gaps[0].max())
    verdict = (
        "below"
        if difference[0] + half < 0
        else "below, within the band"
        if difference[0] < 0
        else "not below"
    )
    if at[0] < floor:
        verdict = "not compared: under the floor"
    elif not reached:
        verdict = "not below: our curve ends at a larger gap"
    elif beyond and difference[0] >= 0:
        verdict = "not below: our widest point has less gap and more error"
    return {
        "gap": float(at[0]),
        "error": float(theirs[0]),
        "ours": float(found[0]),
        "difference": float(difference[0]),
        "standard_error": deviation,
        "low": float(difference[0] - half),
        "high": float(difference[0] + half),
        "floor": floor,
        "beyond_our_widest": beyond,
        "verdict": verdict,
    }


def mean_and_spread(values: Floats) -> dict[str, float]:
    """Mean, standard deviation over splits, and the half width of the mean's 95 % interval."""
    splits = len(values)
    deviation = float(values.std(ddof=1)) if splits > 1 else 0.0
    half = float(stats.t.ppf(0.975, max(1, splits - 1))) * deviation / math.sqrt(splits)
    return {"mean": float(values.mean()), "spread": deviation, "half_95": half}
