"""Bounds are at least the real numbers that they stand for: compared as fractions, by their
squares."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairveil.core import bound as sensitivity
from fairveil.core.bound import Bound
from fairveil.core.pricing import noise_scale, unit_size
from fairveil.core.promise import Promise
from fairveil.core.questions import Scale
from fairveil.curator import CellCounts, Full, Measurement, Poisson
from fairveil.errors import PrivacyError
from fairveil.facts import Cells

SIZES = st.floats(1e-3, 1e3)
COUNTS = range(1, 1500)


def above(found: float, square: Fraction | int) -> bool:
    """At least the square root, and within two steps of it."""
    return (
        Fraction(found) ** 2
        >= square
        > Fraction(math.nextafter(math.nextafter(found, 0.0), 0.0)) ** 2
    )


def test_guarantee_1_histograms_of_many_cells_a_person() -> None:
    """`math.sqrt` alone rounds about half of them down, that of 3 among them."""
    inwards = [count for count in COUNTS if Fraction(math.sqrt(count)) ** 2 < count]
    assert 3 in inwards
    assert len(inwards) > 500
    for count in COUNTS:
        bound = sensitivity.of_histogram(per_row=count)
        assert above(bound.norm, count)
        assert above(bound.diameter, 2 * count)
        assert sensitivity.of_histogram(per_row=count, order=1) == Bound(count, 2 * count, 1)


@given(SIZES, SIZES, st.integers(1, 500))
def test_guarantee_1_bounds_of_any_size(clip: float, weight: float, count: int) -> None:
    signed, gram = (
        sensitivity.of_signed(clip, weight, count),
        sensitivity.of_gram(clip, weight, count),
    )
    counts, whole = (sensitivity.of_histogram(weight, count, order) for order in (2, 1))
    w, c = Fraction(weight) ** 2, Fraction(clip) ** 2
    assert above(signed.norm, c * w * count)
    assert signed.diameter == 2 * signed.norm
    assert above(gram.norm, c * c * w * count)
    assert above(gram.diameter, 2 * c * c * w * count)
    assert above(counts.norm, w * count)
    assert above(counts.diameter, 2 * w * count)
    assert above(whole.norm, w * count**2)
    assert above(whole.diameter, 4 * w * count**2)


def test_what_is_exact_stays_exact() -> None:
    assert sensitivity.of_histogram() == Bound(1.0, math.sqrt(2))
    assert sensitivity.of_histogram(0.5, 9) == Bound(1.5, sensitivity.of_histogram(0.5, 9).diameter)
    assert sensitivity.of_signed(3.0, 0.25, 4) == Bound(1.5, 3.0)
    assert sensitivity.of_histogram(0.0) == Bound(0.0, 0.0)


@pytest.mark.parametrize(
    ("clip", "weight"),
    [(1e-200, 1.0), (1e-200, 1e200), (5e-324, 1.0), (1e200, 1e-200), (1e150, 3.0)],
)
def test_guarantee_1_bounds_beyond_what_products_of_floats_can_hold(
    clip: float, weight: float
) -> None:
    bound = sensitivity.of_gram(clip, weight, 3)
    assert Fraction(bound.norm) ** 2 >= Fraction(clip) ** 4 * Fraction(weight) ** 2 * 3 > 0
    with pytest.raises(PrivacyError, match="give it a clip"):
        sensitivity.of_gram(1e200)
    for missing in (math.inf, math.nan):
        with pytest.raises(PrivacyError, match="give it a clip"):
            sensitivity.of_signed(missing)


@given(SIZES, st.floats(1e-2, 1e4), st.integers(1, 300))
def test_guarantee_2_noise_is_at_least_its_multiple_of_the_real_bound(
    weight: float, multiplier: float, count: int
) -> None:
    """On all rows, on a secret batch, and by cell."""
    scale = Scale(sensitivity.of_histogram(weight, count), 7)
    measurement = Measurement(CellCounts(Cells((("f", "m"),), names=("sex",))), multiplier)
    real = Fraction(multiplier) ** 2 * Fraction(weight) ** 2 * count * 4**7
    for promise in (Promise(1.0, 1e-6), Promise(1.0, 1e-6, "records", "replace-one")):
        moved = 1 if promise.neighbours == "add-remove" else 2
        alike = noise_scale(measurement, scale, promise, Full(), (2,))
        hidden = noise_scale(measurement, scale, promise, Poisson(0.1), (2,))
        assert isinstance(alike, float)
        assert isinstance(hidden, float)
        assert real * moved <= Fraction(alike) ** 2 <= real * moved * (1 + Fraction(1, 2**36))
        assert real <= Fraction(hidden) ** 2 <= real * (1 + Fraction(1, 2**36))
        by_cell: Any = noise_scale(
            Measurement(measurement.question, np.array([multiplier, 3.0])),
            scale,
            promise,
            Full(),
            (2,),
        )
        assert Fraction(float(by_cell[0])) ** 2 >= real


@given(st.floats(1e-2, 1e4), st.integers(1, 300))
def test_guarantee_2_laplace_noise_of_whole_counts_is_rounded_outwards(
    multiplier: float, count: int
) -> None:
    """The scale times the sensitivity, which is three or more where a person is in as many
    cells."""
    counts = CellCounts(Cells((("f", "m"),), names=("sex",)))
    measurement = Measurement(counts, multiplier, "discrete-laplace")
    found = noise_scale(
        measurement,
        Scale(sensitivity.of_histogram(per_row=count, order=1), 0),
        Promise(1.0, 0.0),
        Full(),
        (2,),
    )
    assert isinstance(found, float)
    assert (
        Fraction(multiplier) * count
        <= Fraction(found)
        <= Fraction(multiplier) * count * (1 + Fraction(1, 2**52))
    )


@pytest.mark.parametrize("count", [2, 3, 6, 7, 11])
def test_guarantee_2_a_secret_batch_is_charged_in_the_unit_of_its_noise(count: int) -> None:
    scale = Scale(sensitivity.of_histogram(per_row=count), 0)
    assert Fraction(unit_size(scale, Promise(1.0, 1e-6), Poisson(0.5))) ** 2 > count
