"""What noisy numbers of one kind are likely to be: moved towards each other by as much as their
noise hides.

    likely_j = m + t^2 / (t^2 + s_j^2) (value_j - m),    m = sum_j w_j value_j / sum_j w_j,    w_j = 1 / s_j^2

s_j is the deviation of value j, and t how far the true numbers are apart: by DerSimonian and
Laird's moments, and no less than `USUAL`. The largest of many noisy numbers is mostly the noisiest:
the gap of a cell of 40 rows, released with noise of as many, may be above 1. Who takes such numbers
as they are chooses by their noise. A number that is known well stays what it is.

Guarantees (tests/methods/test_methods_likely.py):
1. Without noise numbers are what they are; each stays between its value and the common centre.
2. Over draws of noise the mean squared error is below that of the numbers themselves, if true ones
   are no further apart than the noise, and about the same if they are much further.
3. The largest of them is not above the largest true one by more than a part of what the largest
   noisy one is.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats

USUAL = 0.04
"""How far rates of groups are taken to be apart at least: an excess of as much is what searches
follow by half, too."""
HEARD = 0.05  # of what a number differs by: of less nothing is followed
LEAST = 0.2
"""Of what each number differs by, that noise has to leave for all of them to be followed. A search
follows the noise of the noisiest, and gives up the others for it: measured with games whose noise
is 1 to 3 times `USUAL` (benchmarks/results/hard_cases.md#other-methods-at-epsilon-01-and-05)."""
TINY = 1e-300


def unheard(deviations: Floats) -> bool:
    """Whether noise hides all of these numbers: none moves what is likely by `HEARD`."""
    return bool(len(deviations) and (HEARD * (USUAL**2 + deviations**2) > USUAL**2).all())


def drowned(deviations: Floats, least: float = LEAST) -> bool:
    """Whether noise hides at least one of these numbers so far that a search of all is in vain: it
    leaves less than `least` of what that one differs by."""
    return bool((least * (USUAL**2 + deviations**2) > USUAL**2).any())


def likely(values: Floats, deviations: Floats) -> Floats:
    """Numbers along the first axis, each with its deviation."""
    if len(values) < 2 or not (deviations > 0.0).all():
        return values
    weights = (deviations.min(axis=0) / deviations) ** 2  # in units of the best known one's
    total = weights.sum(axis=0)
    centre = (weights * values).sum(axis=0) / total
    unit = deviations.min(axis=0) ** 2
    # What is left of the spread once the noise's part is taken away (DerSimonian and Laird, 1986).
    apart = (weights * (values - centre) ** 2).sum(axis=0) - (len(values) - 1) * unit
    many = (weights * (1.0 - weights / total)).sum(axis=0)
    squares = np.maximum(USUAL**2, np.where(many > 0.0, apart / np.maximum(many, TINY), 0.0))
    # Each number keeps the share of its distance from the centre that noise does not explain.
    return np.asarray(centre + squares / (squares + deviations**2) * (values - centre))
