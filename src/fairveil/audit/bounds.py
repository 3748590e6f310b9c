"""From counted mistakes of a test between two data sets to what no private mechanism would allow.

A test looks at one release and says "neighbour" or not. Its false alarms have probability FPR (the
data set was run), its misses FNR (the neighbour was run). An (epsilon, delta)-private mechanism
allows no test with

    e^epsilon FPR + FNR < 1 - delta    or    FPR + e^epsilon FNR < 1 - delta    (Kairouz, Oh and Viswanath 2015, Theorem 2.1).

Guarantees (tests/audit/test_audit_bounds.py):
1. `most_probable` is below the true probability in at most 1 - confidence of all experiments,
   whatever that probability is.
2. `most_average` is the same for the average of two probabilities, up to 1/2, from as many trials
   of each.
3. `epsilon_of` and `epsilon_of_average` are never above the epsilon of a mechanism whose rates are
   at most those given.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from .._types import Floats


def most_probable(errors: npt.ArrayLike, trials: int, confidence: float) -> Floats:
    """The upper end of Clopper and Pearson's interval (1934): the largest p with P(Bin(trials, p)
    <= errors) >= 1 - confidence.

    >>> float(most_probable(0, 100, 0.95).round(4)), float(most_probable(100, 100, 0.95))
    (0.0295, 1.0)
    """
    counted = np.asarray(errors, np.float64)
    inside = np.minimum(counted, trials - 1.0)  # all errors: nothing is ruled out
    return np.asarray(
        np.where(
            counted >= trials, 1.0, special.betaincinv(inside + 1.0, trials - inside, confidence)
        )
    )


def most_average(mistakes: npt.ArrayLike, trials: int, confidence: float) -> Floats:
    """The largest (FPR + FNR) / 2, from the false alarms and misses together, in `trials` runs of
    each; at most 1/2, beyond which a test says nothing.

    The sum of 2 trials independent mistakes of unequal probabilities has a lower tail no heavier
    than that of Binomial(2 trials, their average), from one below its mean on (Hoeffding 1956,
    Theorem 4). What is claimed of an average up to 1/2 fails only there, for any confidence of at
    least 3/4: P(X <= E X) > 1/4 (Greenberg and Mohri 2014).
    """
    return np.minimum(0.5, most_probable(mistakes, 2 * trials, confidence))


def epsilon_of(fpr: npt.ArrayLike, fnr: npt.ArrayLike, delta: float) -> Floats:
    """The least epsilon that a mechanism can have at `delta` if some test errs at most this often;
    at least 0.

    max(log((1 - delta - FNR) / FPR), log((1 - delta - FPR) / FNR)): Jagielski, Ullman and Oprea
    2020, section 3.

    >>> float(epsilon_of(0.25, 0.25, 0.0).round(4))
    1.0986
    """
    alarm, miss = np.asarray(fpr, np.float64), np.asarray(fnr, np.float64)
    with np.errstate(divide="ignore"):  # a test that errs too often says nothing: -inf
        one = np.log(np.maximum(1.0 - delta - miss, 0.0)) - np.log(alarm)
        other = np.log(np.maximum(1.0 - delta - alarm, 0.0)) - np.log(miss)
    return np.asarray(np.maximum(np.maximum(one, other), 0.0))


def epsilon_of_average(average: npt.ArrayLike, delta: float) -> Floats:
    """The same from (FPR + FNR) / 2 alone: log((1 - delta) / average - 1), as the two inequalities
    add up to (1 + e^epsilon) (FPR + FNR) >= 2 (1 - delta).

    >>> float(epsilon_of_average(0.25, 0.0).round(4))
    1.0986
    """
    odds = (1.0 - delta) / np.maximum(
        np.asarray(average, np.float64), np.finfo(np.float64).tiny
    ) - 1.0
    return np.log(np.maximum(odds, 1.0))


def mu_of(total_variation: float) -> float:
    """The mu of the Gaussian pair N(0, 1), N(mu, 1) at this total variation distance: 2 Phi^-1((1 +
    TV) / 2).

    At the middle threshold mu = Phi^-1(1 - FPR) - Phi^-1(FNR) (Nasr et al. 2023, section 4.2) is
    the same number.

    >>> round(mu_of(0.3829249), 5)
    1.0
    """
    return (
        math.inf
        if total_variation >= 1
        else 2.0 * float(special.ndtri((1.0 + total_variation) / 2.0))
    )
