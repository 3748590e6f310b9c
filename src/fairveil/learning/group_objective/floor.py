"""What a loop for a group objective hands out: the mixture that it found, or a mixture of it, a rule without constraints and
constants.

All were released with noise, in parts that steer and parts that measure; the choice is made of the first, so that what is
reported of it has noise of its own. With q over {the mixture, the rule without constraints, each constant}

    minimise    f(sum_a q_a l_a) + G max(0, g'(sum_a q_a l_a))

where the bounds of g' are those that were asked for, or where the mixture is, if that is above by no more than its noise:
excess that cannot be told from none is left alone. The mixture is kept unless that is less by more than `CLEARLY` deviations of
the noise in f of what differs, and `ENOUGH` at least.

Guarantees (tests/learning/test_learning_group_floor.py):
1. Post-processing of released losses: nothing is asked.
2. Without noise no mixture of these has a smaller f + G max(0, g), but for `ENOUGH`.
3. A mixture that is as good as all else, up to noise, is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ...fairness.group_function import Joint
from .hearing import noise_of_excesses, tightened
from .master import Master
from .problem import ReleasedProblem

CLEARLY = 1.0
HIDDEN = 1.645  # deviations of an excess' noise, within which it is left alone
ENOUGH = 1e-3  # of the objective
NEGLIGIBLE = 1e-3  # a share below it is left out


@dataclass(frozen=True, eq=False)
class Stake:
    """Losses that may be a part of what is handed out, and the deviation of the noise in each number of them, of rows."""

    losses: Floats
    noise: float


def shares_of(posed: ReleasedProblem, found: Stake, others: list[Stake]) -> Floats:
    """The share of each: of what was found, then of the others."""
    stakes = [found, *others]
    atoms = np.array([one.losses for one in stakes])
    h = _limited(posed, found)
    best = Master(h).solve(atoms)[0]
    best = np.where(best < NEGLIGIBLE, 0.0, best)
    best = np.asarray(best / best.sum())
    alone = np.eye(len(stakes))[0]
    mixed = np.tensordot(best, atoms, axes=1)
    gain = float(h.value(found.losses)) - float(h.value(mixed))
    differs = math.hypot(*(best - alone) * np.array([one.noise for one in stakes]))
    doubt = posed.spread(mixed, differs / posed.rows, 0.0)[0]
    return best if gain > max(ENOUGH, CLEARLY * doubt) else alone


def _limited(posed: ReleasedProblem, found: Stake) -> Joint:
    """h with the bounds that a choice must keep."""
    if not posed.constraints:
        return posed.h
    noise = noise_of_excesses(posed, found.losses, found.noise)
    by = np.clip(-posed.excesses(found.losses), -HIDDEN * noise, 0.0)
    return Joint(posed.f, tightened(posed, by), posed.h.penalty)
