"""What a loop for a group objective returns: the mixture that it found, or a mixture of it, a
rule without constraints and constants.

All were released with noise, in parts that steer and parts that measure; the choice is made of the
first, so that what is reported of it has noise of its own. With q over {the mixture, the rule
without constraints, each constant}

    minimise    f(sum_a q_a l_a) + G max(0, g'(sum_a q_a l_a))

where the bounds of g' are those that were asked for, or where the mixture is, if that is above by
no more than its noise: excess that cannot be told from none is left alone. The mixture is kept
unless that is less by more than `CLEARLY` deviations of the noise in f of what differs, and
`ENOUGH` at least.

Rates of groups are what they are likely to be (`learning.likely`), by their noise and the luck of
the rows: the largest of many rates of small cells is mostly noise, and of the rule without
constraints above all, which is released but once.

*A rule that was searched for nothing is not returned.* Where noise hides every excess of the
mixture, or the rule without constraints keeps all bounds with as small an f, both up to noise, that
rule is taken: the mixture has the noise of single steps on top.

*Mixing is the floor.* What has a share of the mixture gives way to the rule without constraints and
constants alone, at the same largest excess, if those make f less by what was released.

Guarantees (tests/learning/test_learning_group_floor.py):
1. Post-processing of released losses: nothing is asked.
2. Without noise no mixture of these has a smaller f + G max(0, g), but for `ENOUGH`.
3. A mixture that is as good as all else, up to noise, and no worse than mixing, is kept, but for
   one that a rule without constraints makes needless.
4. By the likely losses, nothing that is returned is above mixing at its own largest excess.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._types import Floats
from ...fairness.functions import Joint
from ..likely import likely, unheard
from ..systems import columns_of
from .hearing import noise_of_excesses, tightened
from .master import Master
from .problem import ReleasedProblem

CLEARLY = 1.0
HIDDEN = 1.645  # deviations of an excess' noise, within which it is left alone
ENOUGH = 1e-3  # of the objective
NEGLIGIBLE = 1e-3  # a share below it is left out
# what a point of excess is worth in points of f where a limit is kept, and how well it is
WELL_KEPT, CLOSE = 100.0, 1e-3


@dataclass(frozen=True, eq=False)
class Stake:
    """Losses that may be a part of the final model, and the deviation of the noise in each
    number of them, of rows."""

    losses: Floats
    noise: float


def shares_of(
    posed: ReleasedProblem, found: Stake, others: list[Stake], *, of_steps: bool = False
) -> Floats:
    """The share of each: of what was found, then of the others. `of_steps`: what was found is a
    mixture of single noisy steps, which gives way to the first of the others where it is
    `_needless`."""
    stakes = [replace(one, losses=likely_losses(posed, one)) for one in (found, *others)]
    shares = _floored(posed, stakes, _best(posed, stakes))
    needless = of_steps and shares[0] and _needless(posed, stakes)
    return np.asarray(np.eye(len(stakes))[1]) if needless else shares


def _needless(posed: ReleasedProblem, stakes: list[Stake]) -> bool:
    """Whether the rule without constraints does for all that was released: noise hides every
    excess of what was found, or that rule keeps all bounds with as small an f, both up to noise."""
    if not posed.constraints:
        return False
    found, free = stakes[:2]
    if unheard(noise_of_excesses(posed, found.losses, found.noise)):
        return True
    doubt = posed.spread(free.losses, math.hypot(found.noise, free.noise) / posed.rows, 0.0)[0]
    more = float(posed.f.value(free.losses)) - float(posed.f.value(found.losses))
    hidden = CLEARLY * noise_of_excesses(posed, free.losses, free.noise)
    return bool((posed.excesses(free.losses) <= hidden).all() and more < CLEARLY * doubt)


def likely_losses(posed: ReleasedProblem, stake: Stake) -> Floats:
    """Losses whose rates are what they are likely to be, of each sensitive column's groups; exact
    ones are what they are."""
    if not stake.noise or stake.losses.ndim != 3:
        return stake.losses
    sizes = np.maximum(posed.shares, posed.least)[..., np.newaxis]
    rates = np.clip(stake.losses / sizes, 0.0, 1.0)
    rows = sizes * posed.rows
    drawn = (rates * rows + 1.0) / (rows + 2.0)
    deviations = np.sqrt((stake.noise / rows) ** 2 + drawn * (1.0 - drawn) / rows)
    out = np.concatenate(
        [likely(rates[part], deviations[part]) for part in columns_of(posed.problem.cells)]
    )
    return posed.possible(sizes * out)


def _best(posed: ReleasedProblem, stakes: list[Stake]) -> Floats:
    """What was found, or what is better by more than noise explains."""
    found = stakes[0]
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


def _floored(posed: ReleasedProblem, stakes: list[Stake], shares: Floats) -> Floats:
    """These shares, or the rule without constraints and constants alone: no further above the
    bounds, and with a smaller f."""
    if not posed.constraints or not shares[0] or len(stakes) < 2:
        return shares
    atoms = np.array([one.losses for one in stakes])
    mixed = np.tensordot(shares, atoms, axes=1)
    most = float(posed.excesses(mixed).max())
    g = tightened(posed, np.full(len(posed.excesses(mixed)), -most))
    floor = np.append(0.0, Master(Joint(posed.f, g, WELL_KEPT)).solve(atoms[1:])[0])
    floor = np.where(floor < NEGLIGIBLE, 0.0, floor)
    floor = np.asarray(floor / floor.sum())
    other = np.tensordot(floor, atoms, axes=1)
    keeps = float(posed.excesses(other).max()) <= most + CLOSE
    return floor if keeps and float(posed.f.value(other)) < float(posed.f.value(mixed)) else shares


def _limited(posed: ReleasedProblem, found: Stake) -> Joint:
    """h with the bounds that a choice must keep."""
    if not posed.constraints:
        return posed.h
    noise = noise_of_excesses(posed, found.losses, found.noise)
    by = np.clip(-posed.excesses(found.losses), -HIDDEN * noise, 0.0)
    return Joint(posed.f, tightened(posed, by), posed.h.penalty)
