"""Planted bugs: there inside of their block and context, and nowhere else."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from fairveil.audit.planted import (
    _PLACES,
    BATCH_SIZE,
    HALF_NOISE,
    NO_CLIP,
    TIMES,
    planted,
    size_ratio,
)
from fairveil.curator import Curator, GradientSum, Linear, Poisson, RowCount, Rows, pricing
from fairveil.privacy import NoiseSource, Promise

ROWS = Rows.from_arrays(
    np.full((1000, 1), 5.0),
    np.zeros(1000, int),
    [["f", "m"] * 500],
    classes=(0, 1),
    groups=[["f", "m"]],
)
GRADIENT = GradientSum(Linear(np.zeros((1, 2))), 1.0)


def noise_of_counts(runs: int = 60) -> float:
    """The deviation of noise that is priced at 10."""
    found = [
        Curator(ROWS, Promise(1.0, 1e-6), noise=NoiseSource.seeded(seed)).answer(
            [(RowCount(), 10.0)]
        )[0][0]
        - 1000
        for seed in range(runs)
    ]
    return float(np.std(found))


def noise_of_gradients() -> float:
    scale = pricing.constant_scale(GRADIENT, ROWS.layout, Promise(1.0, 1e-6), None, 2)
    return float(scale.bound.largest)


def test_half_the_noise_is_half_the_noise_and_over_afterwards() -> None:
    """60 draws: a deviation within a quarter of 10, or of 5, in all but 1 % of seeds."""
    with planted(HALF_NOISE):
        assert noise_of_counts() == pytest.approx(5.0, rel=0.25)
    assert noise_of_counts() == pytest.approx(10.0, rel=0.25)


def test_guarantee_1_another_thread_has_its_noise_while_a_block_is_open() -> None:
    found: list[float] = []
    with planted(HALF_NOISE):
        other = threading.Thread(target=lambda: found.append(noise_of_counts()))
        other.start()
        other.join()
    assert found[0] == pytest.approx(10.0, rel=0.25)


def test_no_clip_makes_noise_for_a_shorter_one() -> None:
    right = noise_of_gradients()
    with planted(NO_CLIP):
        assert noise_of_gradients() == pytest.approx(right / TIMES, rel=1e-6)
        assert noise_of_counts() == pytest.approx(10.0, rel=0.25)
    assert noise_of_gradients() == right


def test_sizes_of_batches_are_told_inside_alone() -> None:
    def ask() -> None:
        Curator(ROWS, Promise(1.0, 1e-6), noise=NoiseSource.seeded(1)).answer(
            [(GRADIENT, 5.0)], Poisson(0.5)
        )

    with planted(BATCH_SIZE) as sizes:
        ask()
    assert len(sizes) == 1
    assert 400 < sizes[0][0] < 600
    assert sizes[0][1] == 0.5
    ask()
    assert len(sizes) == 1
    assert size_ratio([(600, 0.5)], 1000, 1001) > 0 > size_ratio([(400, 0.5)], 1000, 1001)


def test_all_is_as_it_was_after_nested_blocks_and_an_error() -> None:

    def there():
        return [getattr(owner, name) for owner, name, _ in _PLACES]

    before = there()
    with pytest.raises(RuntimeError), planted(HALF_NOISE), planted(NO_CLIP):
        raise RuntimeError
    assert there() == before
