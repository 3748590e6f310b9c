"""What is handed out in the place of a linear model that is worse than what costs nothing, where the caller wants that.

Guarantees (tests/estimators/test_estimators_baselines.py):
1. A model that is not worse, beyond noise, than a baseline that keeps its constraints as well is always handed out itself.
2. What is handed out instead costs nothing more: it is made of what was released to compare the model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .. import _checks
from ..errors import InputError, complaint
from ..learning import Outcome
from ..learning.comparison import Comparison, Floats, Mixing
from .baselines import CONSTANT, BaselineReport

FALLBACKS = ("mixing", "constant")


@dataclass(frozen=True, eq=False)
class Instead:
    """Linear models and how often each decides; `outcome`: with what was released of their mixture; `name`: what it is."""

    outcome: Outcome
    lines: tuple[Floats, ...]
    shares: tuple[float, ...]
    name: str


def check(fallback: object) -> None:
    """None, or the name of one."""
    if fallback is not None:
        if not isinstance(fallback, str):
            remedy = "Pass fallback='mixing', fallback='constant', or None to keep the model that was found."
            raise InputError(complaint(expected="a name or None", of="fallback", got=fallback, remedy=remedy))
        _checks.one_of(FALLBACKS, fallback=fallback)


def instead_of(outcome: Outcome, report: BaselineReport | None, fallback: str | None) -> Instead | None:
    """What to hand out in a model's place; None for the model itself."""
    comparison = outcome.comparison
    if fallback is None or report is None or comparison is None or not report.worse:
        return None
    constant = comparison.constant()
    mixed = comparison.within() or comparison.mixing() if fallback == "mixing" else None
    beaten = any(line.name == CONSTANT for line in report.worse)
    if mixed is not None and not (beaten and constant.error <= mixed.error):
        return _mixed(outcome, comparison, mixed)
    return _constant(outcome, comparison, constant.constant) if beaten else None


def _mixed(outcome: Outcome, comparison: Comparison, mixed: Mixing) -> Instead:
    free, limits = comparison.free, comparison.limits
    assert free is not None
    assert free.weights is not None
    assert limits is not None
    share = mixed.share
    values = (1.0 - share) * free.values + share * np.nan_to_num(limits.constants[mixed.constant], nan=0.0)
    drawn = None if free.sampling is None else (1.0 - share) * free.sampling
    found = replace(outcome, weights=free.weights, values=values, spread=(1.0 - share) * free.spread, sampling=drawn, looks=1)
    lines = (free.weights, constant_weights(comparison, mixed.constant, free.weights.shape))
    return Instead(found, lines, (1.0 - share, share), "mixing")


def _constant(outcome: Outcome, comparison: Comparison, k: int) -> Instead:
    weights = constant_weights(comparison, k, outcome.weights.shape)
    values = outcome.values if comparison.limits is None else comparison.limits.constants[k]
    found = replace(outcome, weights=weights, values=values, spread=np.zeros_like(outcome.spread), looks=1)
    found = replace(found, sampling=np.zeros_like(outcome.spread))  # whoever the people are, the same is decided
    return Instead(found, (weights,), (1.0,), "constant")


def constant_weights(comparison: Comparison, k: int, shape: tuple[int, ...]) -> Floats:
    """A linear model that decides for k, whatever the row; its probabilities are the classes' released shares where these
    decide so."""
    sizes = np.maximum(comparison.table.counts.sum(axis=1), 1.0)
    weights = np.zeros(shape)
    if shape[0] > 1:
        logs = np.log(sizes / sizes.sum())
        logs[k] = max(logs[k], float(logs.max()) + 1.0) if logs.argmax() != k else logs[k]
        weights[:, 0] = logs
        return weights
    logit = float(np.log(sizes[1] / sizes[0]))
    weights[0, 0] = logit if (logit > 0) == (k == 1) and logit != 0 else 1.0 if k == 1 else -1.0
    return weights
