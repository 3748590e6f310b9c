"""What a loop holds between rounds: rules with their losses as they were released, and how much one
rule may weigh."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._types import Floats
from ..lagrangian.duals import ExponentiatedGradientState
from ..oracles import GameInstance, Oracle, Rule, Walk, constant_rule
from .hearing import Heard
from .master import Master
from .problem import ReleasedProblem

FREE = "without constraints"
"""The key of that rule among those that were played."""


MEASURING = 0.3
"""Of an audit's price, for what is reported; the rest steers."""


CROWD = 2.0
"""How many times a fair share one rule may weigh in a mixture of noisy ones: best weights would
pick the luckiest noise."""


TOLERATED = 0.015
"""Noise of a rate, or of the objective, that is put up with in a list that a mixture is chosen
from."""


@dataclass(frozen=True, eq=False)
class Played:
    """A rule with its losses as they were released: to steer by, and to measure; the mean of
    `times` releases each.

    `always`: the class that it decides for, whatever the row."""

    rule: Rule
    steering: Floats
    measuring: Floats
    times: float = 1
    always: int | None = None

    def again(self, steering: Floats, measuring: Floats) -> Played:
        """Released once more; which tells nothing of what is in the counts."""
        n = self.times
        if math.isinf(n):
            return self
        return Played(
            self.rule,
            (n * self.steering + steering) / (n + 1),
            (n * self.measuring + measuring) / (n + 1),
            n + 1,
        )


@dataclass(frozen=True, eq=False)
class PlayedState:
    """Between rounds: released values only.

    `played`: rules with their losses; `weights` of theirs, in that order; `mean`: the losses of
    that mixture. `price`: what the next decision is asked to be cheap at, and `base`: no mixture is
    below base + the cheapest decision's price, of which `least` is the largest so far, or, with
    noise, the mean. `leaning`: the auditor's; `duals`: the sum of its plays; `ear`: how it hears
    excesses. `heard`: what each round released of its rule, to steer by, and `places` the rules'
    places in `played`. `repeated`: the last answer was a rule that was there already. `walk`: where
    the rule without constraints goes on in place of the loop, with what was `shown` of it at the
    end; None: the loop is played.
    """

    posed: ReleasedProblem
    prepared: Any
    master: Master
    played: dict[Hashable, Played]
    weights: Floats
    mean: Floats
    price: Floats
    base: float
    leaning: ExponentiatedGradientState
    duals: Floats
    ear: Heard
    heard: tuple[Floats, ...] = ()
    places: tuple[int, ...] = ()
    least: float = -math.inf
    round: int = 0
    repeated: bool = False
    walk: Walk | None = None
    shown: tuple[tuple[Floats, Floats], ...] = ()


def crowd_of(size: float, rounds: int) -> float:
    """The most that one rule of a list may weigh, where one round's steering has noise of this
    size."""
    return max(CROWD / rounds, (TOLERATED / size) ** 2 if size > 0 else 1.0)


def constants(posed: ReleasedProblem) -> list[Played]:
    """The rules that decide alike for everybody, a class each: their losses are in the counts,
    without noise of their own."""
    ground = posed.problem.ground
    out = []
    for k in range(ground.classes):
        steering, measuring = np.zeros((2, *posed.shares.shape, ground.classes))
        steering[..., k], measuring[..., k] = posed.shares, posed.counts / posed.rows
        out.append(Played(constant_rule(ground, k), steering, measuring, math.inf, k))
    return out


def compared(ground: GameInstance, oracle: Oracle[Any]) -> bool:
    """Whether a loop on this ground audits the oracle's rule without constraints: where records are
    protected."""
    return oracle.knows_free and not ground.sees_features


def halves(multiplier: float) -> tuple[float, float]:
    """Of a release at that price: what steers, what is reported."""
    return multiplier / math.sqrt(1.0 - MEASURING), multiplier / math.sqrt(MEASURING)
