"""How far one person moves a bounded sum, under each relation.

For a sum over rows of v(row), with |v| <= norm and |v - v'| <= diameter for any two rows (the
bound is made where the clipping is made, once, rounded outwards):

- add-remove: norm;
- replace-one: diameter (at most 2 norm);
- sensitive features only: diameter, where v and v' are the same public row under two lists of
  sensitive values.

Guarantees (tests/privacy/test_sensitivity.py):
1. `of_histogram`, `of_signed` and `of_gram` are at least the real number that their formula names,
   and the next float or so.
2. `sensitivity` and `largest` are above what they are made of by more than all roundings of whoever
   multiplies them: noise that is a multiple of them is at least that multiple of the real number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from . import checks
from .errors import PrivacyError
from .promise import Neighbours

# Every bound below is computed with a handful of rounded operations; this factor is far above their
# joint error.
OUTWARDS = 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True)
class Bound:
    """What one row contributes at most, in the norm of the given order (1 for Laplace noise, 2 for
    Gaussian)."""

    norm: float
    diameter: float
    order: int = 2

    def __post_init__(self) -> None:
        if not (
            0 <= self.norm < math.inf and 0 <= self.diameter < math.inf and self.order in (1, 2)
        ):
            raise PrivacyError.expected(
                "finite non-negative norm and diameter, order 1 or 2",
                of="Bound",
                got=(self.norm, self.diameter, self.order),
                remedy=(
                    "A question without a finite bound cannot be answered privately: give "
                    "it a clip."
                ),
            )

    def sensitivity(self, neighbours: Neighbours) -> float:
        """The most that one neighbour moves the sum, rounded outwards."""
        return (self.norm if neighbours == "add-remove" else self.diameter) * OUTWARDS

    @property
    def largest(self) -> float:
        """The largest norm of one row's contribution, rounded outwards: what noise on a secret
        batch is a multiple of."""
        return self.norm * OUTWARDS


def on_grid(bound: Bound, unit: float, coordinates: int) -> Bound:
    """The bound after every coordinate was rounded to the nearest multiple of `unit`
    (theory.md#grid).

    One row's contribution grows by at most half a unit in each of its nonzero coordinates, a
    difference of two by twice that.
    """
    checks.positive(unit=unit)
    slack = (math.sqrt(coordinates) if bound.order == 2 else coordinates) * unit / 2
    return Bound(
        (bound.norm + slack) * OUTWARDS, (bound.diameter + 2 * slack) * OUTWARDS, bound.order
    )


def of_histogram(weight: float = 1.0, per_row: int = 1, order: int = 2) -> Bound:
    """Counts, or rows of a probability vector, in disjoint cells, `per_row` cells a person
    (theory.md#counts, #columns).

    L2: weight sqrt(L) and weight sqrt(2 L). L1: weight L and 2 weight L.
    """
    # In L1 a replaced row counts twice: one cell loses it, another gains it.
    if order == 1:
        return Bound(product_up(weight, per_row), product_up(weight, 2 * per_row), 1)
    return Bound(product_up(weight, root=per_row), product_up(weight, root=2 * per_row))


def of_signed(clip: float, weight: float = 1.0, per_row: int = 1) -> Bound:
    """Vectors of norm at most `clip` and any sign: C and 2 C (sqrt(L) times that when a row is in L
    cells)."""
    # Two contributions may point in opposite directions, so they are up to twice the clip apart.
    norm = product_up(clip, weight, root=per_row)
    return Bound(norm, 2 * norm)


def of_gram(clip: float, weight: float = 1.0, per_row: int = 1) -> Bound:
    """Outer products r r' with |r| <= R, in the Frobenius norm: R^2 and sqrt(2) R^2
    (theory.md#gram)."""
    return Bound(
        product_up(clip, clip, weight, root=per_row),
        product_up(clip, clip, weight, root=2 * per_row),
    )


def of_person(bound: Bound, rows: int) -> Bound:
    """The bound of a person with at most so many rows, from one row's (theory.md#units): as of one
    row that counts so often.

    A person's rows add up to `rows` times a point of the convex hull of nothing and what one row
    may add. Norms are convex, so the worst person has the same row `rows` times over; a person who
    is replaced may have fewer rows before, or none.
    """
    if rows == 1:
        return bound
    far = product_up(max(bound.norm, bound.diameter), rows)
    return Bound(product_up(bound.norm, rows), far, bound.order)


@lru_cache(maxsize=1024)
def product_up(*factors: float, root: int = 1) -> float:
    """The product of these and the square root of `root`: the float itself where it is exact, else
    one above the real number.

    >>> product_up(0.5, root=4), product_up(1.0, root=3) > 3**0.5
    (1.0, True)
    """
    if not all(map(math.isfinite, factors)):
        return math.prod(factors)  # which `Bound` refuses
    # As a fraction: the comparison at the end is exact.
    square = math.prod(Fraction(factor) ** 2 for factor in factors) * root
    shift = 64 + (square.denominator.bit_length() - square.numerator.bit_length()) // 2
    near = math.isqrt(
        (square.numerator << max(0, 2 * shift)) // (square.denominator << max(0, -2 * shift))
    )
    try:
        out = float(Fraction(near) / Fraction(2) ** shift)
    except OverflowError:
        return math.inf
    while Fraction(out) ** 2 < square:
        out = math.nextafter(out, math.inf)
    return out
