"""What a fit returns: the model that it found, linear or a network, or what `methods.comparison`
makes of it and of what costs nothing.

Guarantees (tests/estimators/test_estimators_baselines.py, test_estimators_network_mixtures.py):
1. A model that is as good as its baselines, up to noise, and no worse than mixing, is returned
   itself.
2. Another costs nothing more: it is made of what was released to compare the model.
3. What is reported is about the final model.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._types import Floats
from ..methods import Outcome
from ..methods import comparison as program
from ..methods.comparison import Choice, Comparison
from .reports import FREE, MIXING, MIXTURE, MODEL, ONE_CLASS, BaselineReport, of_comparison


@dataclass(frozen=True, eq=False)
class Handed:
    """Weights of models and how often each decides: a linear one's (outputs, 1 + width), a
    network's parameters in a row. `outcome`: what was released of them together, `report`: beside
    what else."""

    outcome: Outcome
    lines: tuple[Floats, ...]
    shares: tuple[float, ...]
    report: BaselineReport | None


def handed(
    outcome: Outcome,
    classes: Sequence[Hashable],
    *,
    randomised: bool | None,
    shape: tuple[int, ...] | None = None,
) -> Handed:
    """The final model. `randomised`: whether it may be randomized; None: the model, whatever it
    is. `shape`: of a linear model's weights, where the model that was found is none."""
    found = outcome.comparison
    alone = Handed(outcome, (outcome.weights,), (1.0,), of_comparison(found, classes))
    if randomised is None or found is None:
        return alone
    looks = max(program.looks_at(found), outcome.looks) if outcome.spread.any() else outcome.looks
    choice = program.chosen(found, sampling=outcome.sampling, randomised=randomised)
    if choice.is_model:
        return replace(alone, outcome=replace(outcome, looks=looks))
    mixture, sampling = program.comparison_of(found, choice, outcome.sampling)
    limits = mixture.limits
    values, spread = (
        (outcome.values, outcome.spread) if limits is None else (limits.values, limits.spread)
    )
    lines, shares = _parts(outcome, found, choice, shape or outcome.weights.shape)
    noise = outcome.weight_noise if lines[0] is outcome.weights else None
    told = replace(
        outcome,
        weights=lines[0],
        weight_noise=noise,
        values=values,
        spread=spread,
        sampling=sampling,
        looks=looks,
        comparison=mixture,
    )
    name, remark = words_of(choice, classes)
    return Handed(
        told, lines, shares, of_comparison(mixture, classes, handed_out=name, remark=remark)
    )


def _parts(
    outcome: Outcome, found: Comparison, choice: Choice, shape: tuple[int, ...]
) -> tuple[tuple[Floats, ...], tuple[float, ...]]:
    """Weights of what has a share, and the shares."""
    parts = [(outcome.weights, choice.model)]
    if found.free is not None and found.free.weights is not None:
        parts.append((found.free.weights, choice.free))
    parts += [
        (constant_weights(found, k, shape), share)
        for k, share in enumerate(choice.constants.tolist())
    ]
    kept = [(weights, share) for weights, share in parts if share > 0]
    return tuple(weights for weights, _ in kept), tuple(share for _, share in kept)


def words_of(
    choice: Choice, classes: Sequence[Hashable], model: str = "the model"
) -> tuple[str, str]:
    """The name of a choice, and what it is in words; `model`: what was found."""
    parts = [(model, choice.model), ("the model without constraints", choice.free)]
    parts += [
        (f"always {classes[k]!r}", share) for k, share in enumerate(choice.constants.tolist())
    ]
    kept = [(words, share) for words, share in parts if share > 0]
    if len(kept) == 1:
        return (FREE if choice.free else ONE_CLASS if not choice.model else MODEL), kept[0][0]
    name = MIXING if not choice.model else MIXTURE
    return name, ", ".join(f"{100 * share:.0f} % {words}" for words, share in kept)


def constant_weights(comparison: Comparison, k: int, shape: tuple[int, ...]) -> Floats:
    """A linear model that decides for k, whatever the row; its probabilities are the classes'
    released shares where these decide so."""
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
