"""The mixture that an oracle settles on, counted once: noise of its own, which no choice of rules
has seen.

Guarantees (tests/learning/test_learning_responses.py):
1. It costs one release of a histogram, at its own multiplier, whatever the mixture is made of.
2. Its values have the noise of that release alone, and were not chosen by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ...curator import Curator, Measurement
from ...curator.questions.attached import MixtureHistogram
from .ground import GameInstance
from .oracle import LinearRule, Rule


@dataclass(frozen=True, eq=False)
class Settled:
    """Rules and how many parts each is of the mixture; its released histogram (cells, labels,
    classes), and the duals."""

    rules: tuple[Rule, ...]
    plays: tuple[int, ...]
    histogram: Floats
    duals: Floats


def settled_measurement(
    ground: GameInstance, rules: list[tuple[Rule, int]], multiplier: float
) -> Measurement:
    """How the mixture decides, by cell (and label)."""
    weights = np.array([rule.weights for rule, _ in rules if isinstance(rule, LinearRule)])
    parts = np.array([share for _, share in rules], np.float64)
    return Measurement(
        MixtureHistogram(weights, parts / parts.sum(), ground.cells, ground.by_label), multiplier
    )


def any_measurement(ground: GameInstance, multiplier: float) -> Measurement:
    """The same of one rule at zero: for plans, which depend on shapes alone."""
    return settled_measurement(
        ground, [(LinearRule(np.zeros((ground.outputs, 1 + ground.layout.width))), 1)], multiplier
    )


def counted(
    curator: Curator,
    ground: GameInstance,
    rules: list[tuple[Rule, int]],
    duals: Floats,
    multiplier: float,
    counts: Floats,
) -> Settled:
    """The mixture, with what was released of it."""
    measurement = settled_measurement(ground, rules, multiplier)
    question = measurement.question
    assert isinstance(question, MixtureHistogram)
    free = MixtureHistogram(question.weights, question.shares, None, ground.by_label)
    (answer,) = ground.joint(curator, [measurement], [free], "how the mixture decides")
    return Settled(
        tuple(rule for rule, _ in rules),
        tuple(parts for _, parts in rules),
        answer.reshape(*counts.shape, ground.classes),
        duals,
    )
