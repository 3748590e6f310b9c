"""One model of a frontier in numbers, and many of them at one point as means with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from .. import _checks

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Run:
    """One model: what was required, what was measured in training with noise, what held-out people show.

    `target`: the bound on the swept gap; None: none. `training`: the noisy training value of that
    gap (None: nothing was required, so nothing was measured), `noise` the largest standard
    deviation of what it is the maximum of. `met`: whether every constraint is met in training;
    None: that cannot be told from the noise. `error`, `gap` and `excess` (of the worst of all
    constraints over its bound) are exact values on held-out rows; None: not measured, or undefined
    there.

    `error_low` to `gap_high`: ends of 95 % intervals of this very model's error and gap, for the
    population that the held-out rows were drawn from.
    """

    epsilon: float
    target: float | None
    seed: int | None
    training: float | None
    noise: float | None
    met: bool | None
    reason: str
    rounds: int
    error: float | None = None
    gap: float | None = None
    excess: float | None = None
    error_low: float | None = None
    error_high: float | None = None
    gap_low: float | None = None
    gap_high: float | None = None


def point(runs: Sequence[Run]) -> dict[str, Any]:
    """All models of one epsilon and one target: means over seeds, standard deviations, 95 %
    intervals of the means.

    mean +- t sd / sqrt(n), t the quantile of Student's distribution with n - 1 degrees of freedom.
    It is about the noise of training on this split alone: other people would give other numbers. Of
    one model the ends are its own, over the held-out rows. None: not measured.
    """
    out: dict[str, Any] = {
        "epsilon": runs[0].epsilon,
        "target": runs[0].target,
        "models": len(runs),
    }
    training = summary([run.training for run in runs])
    noises = [run.noise for run in runs if run.noise is not None]
    out |= {
        "training_gap": training["mean"],
        "training_gap_sd": training["sd"],
        "training_noise": max(noises, default=None),
    }
    for name in ("error", "gap"):
        own = [_checks.named(run, (name, f"{name}_low", f"{name}_high")) for run in runs]
        found = summary([one[name] for one in own])
        head = name if name == "error" else "held_out_gap"
        out |= {
            head if part == "mean" else f"{head}_{part}": value for part, value in found.items()
        }
        if len(runs) == 1:
            out |= {f"{head}_{end}": own[0][f"{name}_{end}"] for end in ("low", "high")}
    excesses = [run.excess for run in runs]
    out["held_out_excess"] = summary(excesses)["mean"]
    out["undefined"] = sum(run.error is not None and run.gap is None for run in runs)
    for name, verdict in (("met", True), ("not_met", False), ("cannot_be_told", None)):
        out[name] = sum(run.met is verdict for run in runs)
    return out


def summary(values: Sequence[float | None]) -> dict[str, float | None]:
    """Mean, standard deviation and the ends of the interval of the mean; None wherever one of the
    values is.

    >>> {name: round(value, 4) for name, value in summary([0.1, 0.2, 0.3]).items()}
    {'mean': 0.2, 'sd': 0.1, 'low': -0.0484, 'high': 0.4484}
    """
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return dict.fromkeys(("mean", "sd", "low", "high"))
    mean = float(np.mean(known))
    if len(known) < 2:
        return {"mean": mean, "sd": None, "low": None, "high": None}
    sd = float(np.std(known, ddof=1))
    reach = float(stdtrit(len(known) - 1, 0.5 + CONFIDENCE / 2)) * sd / math.sqrt(len(known))
    return {"mean": mean, "sd": sd, "low": mean - reach, "high": mean + reach}
