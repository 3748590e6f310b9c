"""What is heard of released losses: prices and mixtures follow them as far as they are more than
noise (theory.md#objectives).

A rate of a small cell is released with noise that may be larger than any bound. Who obeys it finds
models that serve the noise: pressed by the cell of 40 rows, rules end by deciding alike for
everybody. So

- *an excess inside its noise presses nothing*: the auditor hears a sum of t excesses as far as it
  is above `BEYOND` deviations of that sum's noise, and an excess whose mean over all rounds has
  noise above `TOLERATED` is scaled down (`Heard`);
- *what a mixture is made of is known well*: rounds that followed each other are put together until
  their noise is about `KNOWN`, in `BLOCKS` parts at most where it is not far below, since the best
  of many is the luckiest (`blocks_of`);
- *a bound is aimed at from inside*, by `INSIDE` deviations of that noise and at most `ROOM` of the
  bound, as far as that costs little (`aimed`): the best mixture of released values lies at a bound,
  or as often above it as below.

All of it vanishes where noise does, and all of it is arithmetic on released values and public
multipliers.

Guarantees (tests/learning/test_learning_group_hearing.py):
1. Without noise nothing is changed: duals are the auditor's, bounds those that were asked for.
2. An excess that is noise alone raises no dual, but for one chance in six a round; one that is
   clear does.
3. What is aimed at is never above the bound, and never below `1 - ROOM` of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._types import Floats
from ...fairness.functions import GroupFunction, Joint, Largest, Worst
from ..lagrangian.duals import ExponentiatedGradient, ExponentiatedGradientState
from .problem import ReleasedProblem

BEYOND = 1.0  # deviations of a sum of excesses' noise, below which it presses nothing
TOLERATED = 0.005  # noise of an excess's mean over all rounds that slows no dual
KNOWN, BLOCKS = 0.005, 8
CLEAR = 0.001  # noise of a block, at which there may be more of them
ROUGH, FEW = 0.05, 4
"""Where the noise of a `FEW`-th of all rounds is below this, there are as many blocks at least;
else all rounds are one."""
INSIDE, ROOM = 1.0, 0.25
# what one unit of g' is worth in units of f: a mixture that is inside is kept at any price of the objective
PULL = 2.0
LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Heard:
    """How the excesses of one round are heard: `noise`, the deviation of each, of so many
    rounds."""

    noise: Floats
    rounds: int

    @property
    def calm(self) -> Floats:
        """What each excess is multiplied by: 1, and less where the noise of its mean over all
        rounds is large."""
        return np.asarray(1.0 / np.maximum(1.0, self.noise / math.sqrt(self.rounds) / TOLERATED))

    def step(
        self, auditor: ExponentiatedGradient, leaning: ExponentiatedGradientState, sums: Floats
    ) -> ExponentiatedGradientState:
        """The auditor's state where the sums of excesses have come to these."""
        return auditor.step(leaning, self.calm * sums - leaning.sums)

    def duals(
        self, auditor: ExponentiatedGradient, leaning: ExponentiatedGradientState, t: int
    ) -> Floats:
        """The auditor's play after t rounds, of what is no noise in the sums."""
        clear = np.maximum(leaning.sums - BEYOND * math.sqrt(t) * self.calm * self.noise, 0.0)
        return auditor.duals(
            replace(leaning, sums=np.where(leaning.sums > 0.0, clear, leaning.sums))
        )


def noise_of_excesses(posed: ReleasedProblem, losses: Floats, noise: float) -> Floats:
    """The deviation of each excess, where each released number has noise of that size."""
    if noise == 0.0:
        return np.zeros(len(posed.excesses(losses)))
    return np.asarray(posed.spread(losses, noise / posed.rows, 0.0)[1][posed.defined])


def blocks_of(size: float, rounds: int) -> int:
    """Into how many blocks the rounds are cut, where one round's steering has noise of this
    size."""
    few = FEW if size * math.sqrt(FEW / rounds) <= ROUGH else 1
    some, many = (
        rounds // min(rounds, math.ceil((size / known) ** 2) or 1) for known in (KNOWN, CLEAR)
    )
    return min(rounds, max(few, many, min(some, BLOCKS)))


def aimed(posed: ReleasedProblem, losses: Floats, noise: Floats) -> Joint:
    """h + `PULL` max(0, g'), g' with bounds that are tighter by what candidates' noise in each
    excess may hide."""
    bounds = np.abs(posed.values(losses)[1][posed.defined])
    by = np.minimum(INSIDE * noise, ROOM * bounds)
    return Joint(posed.h, tightened(posed, by), PULL) if by.any() else posed.h


def tightened(posed: ReleasedProblem, by: Floats) -> Worst:
    """g with each bound smaller by so much."""
    functions: list[GroupFunction] = []
    at = 0
    for function in posed.constraints:
        if isinstance(function.outer, Largest):
            count = function.lines.shape[0]
            functions.append(replace(function, offsets=function.offsets - by[at : at + count]))
        else:
            count = 1
            functions.append(function.less(-float(by[at])))
        at += count
    return Worst(tuple(functions))
