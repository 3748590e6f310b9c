"""How far coefficients follow the groups' losses, where these are known through noise:
post-processing of one release.

The coefficients that make an objective of released losses small follow the luckiest noise, and a
largest loss follows the noisiest group, which is mostly the smallest. Least squares of everybody
hears little of that. So the answer is (1 - t) c0 + t c1, c0 of everybody and c1 of the objective. t
is the one out of `SHARES` whose objective is least in numbers that did not find it:

- *Two releases out of one.* With noise N(0, s^2) in M, and Z of the same distribution, M + p Z and
  M - Z / p have independent noise of variance s^2 (1 + p^2) and s^2 (1 + 1/p^2) (p is `PART`): data
  fission. Coefficients are found in the first and measured in the second, `TIMES` times over. Z is
  pseudo-random by a fixed seed: nothing is asked of the rows, and nothing is drawn.
- *What is inside its noise is not followed.* A group's loss counts less `WITHIN` of its own
  deviations, since the largest of noisy numbers is the noisiest; and t > 0 has to be better than t
  = 0 by `BEYOND` deviations of the difference.

It applies where h grows with every loss and nothing is constrained: a bound that was asked for is
kept first.

Guarantees (tests/learning/test_learning_steadied.py):
1. t is a function of the released matrices and public facts: equal answers make equal coefficients.
2. The two halves have independent noise of the variance that is said.
3. Without noise t is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..._types import Floats
from ...fairness.functions import LossFunction
from .grams import GroupQuadratics
from .hull import Ended, Least

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
TIMES, PART = 12, 0.5
BEYOND, WITHIN = 2.0, 1.0
SEED = 20210
Finder = Callable[[GroupQuadratics], Least]


def steadied(quadratics: GroupQuadratics, f: LossFunction, found: Least, find: Finder) -> Least:
    """The answer that was found for f of these losses, or what is steadier. `find`: looks for it in
    others of the same kind."""
    if not quadratics.can_be_halved:
        return found
    t = _followed(quadratics, f, find)
    if t == 1.0:
        return found
    mixed = (1.0 - t) * of_everybody(quadratics, raised=t > 0.0) + t * found.coefficients
    value = float(f.value(quadratics.losses(mixed)))
    return Least(mixed, value, min(found.lower, value), found.calls, Ended.NOISE)


def _followed(quadratics: GroupQuadratics, f: LossFunction, find: Finder) -> float:
    """t."""
    rng = np.random.default_rng(SEED)
    # the mean of the second halves has that much of the noise
    damped = math.sqrt(1.0 + 1.0 / (TIMES * PART**2))
    losses, own, apart = np.zeros((3, len(SHARES), len(quadratics.forms)))
    for _ in range(TIMES):
        first, second = quadratics.halves(rng, PART)
        whole, of_groups = of_everybody(first), find(first).coefficients
        for j, t in enumerate(SHARES):
            c = (1.0 - t) * whole + t * of_groups
            losses[j] += second.measured(c) / TIMES
            own[j] += damped * quadratics.deviation(c) / TIMES
            apart[j] += damped * quadratics.deviation_of_difference(c, whole) / TIMES
    sure = np.maximum(losses - WITHIN * own.min(axis=0), 0.0)
    slopes = f.gradient(sure)
    spreads = np.maximum(*(np.linalg.norm(one * apart, axis=-1) for one in (slopes, slopes[0])))
    return SHARES[int((f.value(sure) + BEYOND * spreads).argmin())]


def of_everybody(quadratics: GroupQuadratics, *, raised: bool = True) -> Floats:
    """Least squares of all rows. `raised`: with little along directions that no group's noise lets
    one measure."""
    if quadratics.raw is not None and quadratics.raw.total is not None:
        return quadratics.of_everybody(raised=raised).best(np.ones(1))
    return quadratics.best(np.ones(len(quadratics.forms)))
