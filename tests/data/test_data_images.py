"""Images: bytes as floats, and tints with known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairveil import data
from fairveil.data.synthetic import Tints
from fairveil.errors import InputError


def test_floats_are_the_bytes_over_255() -> None:
    grey = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    floats = data.as_floats(grey)
    assert (floats.shape, floats.dtype) == ((1, 1, 16, 16), np.float32)
    assert np.array_equal(floats.ravel(), np.arange(256, dtype=np.float32) / np.float32(255))
    colour = np.stack([grey, grey], axis=1)
    assert data.as_floats(colour).shape == (1, 2, 16, 16)
    for wrong in (grey.astype(float), grey[0], np.zeros((1, 1, 1, 1, 1), np.uint8)):
        with pytest.raises(InputError, match=r"images: expected uint8 of shape"):
            data.as_floats(wrong)


@pytest.mark.parametrize(
    "options",
    [{}, {"strength": 0.0}, {"strength": 1.0}, {"classes": 7, "groups": 3, "strength": 0.3}],
)
def test_groups_are_drawn_as_stated(options: dict[str, Any]) -> None:
    tints = Tints(**options)
    rows = 100_000
    shares = np.arange(1, tints.classes + 1) / np.arange(1, tints.classes + 1).sum()
    labels = np.random.default_rng(0).choice(tints.classes, rows, p=shares)
    _, groups = tints.plant(np.zeros((rows, 1, 1), np.uint8), labels, 1)
    assert np.allclose(tints.chances.sum(axis=1), 1)
    for of_class in range(tints.classes):
        mine = groups[labels == of_class]
        chances = tints.chances[of_class]
        found = np.bincount(mine, minlength=tints.groups) / len(mine)
        assert np.all(np.abs(found - chances) <= 5 * np.sqrt(chances * (1 - chances) / len(mine)))
    rates = tints.label_rates(shares)
    for group in range(tints.groups):
        mine = labels[groups == group]
        found = np.bincount(mine, minlength=tints.classes) / len(mine)
        assert np.all(
            np.abs(found - rates[group])
            <= 5 * np.sqrt(rates[group] * (1 - rates[group]) / len(mine))
        )


def test_the_gap_of_a_classifier_without_error_is_the_stated_one() -> None:
    assert Tints(strength=0.4).label_gap() == pytest.approx(0.2)
    assert Tints(strength=0.0).label_gap(np.arange(1, 11)) == pytest.approx(0.0)
    assert Tints(classes=5, strength=1.0).label_gap() == pytest.approx(1.0)
    lacking = Tints(classes=2, groups=3, strength=1.0)  # nobody is in the third group
    assert np.isnan(lacking.label_rates()[2]).all()
    assert lacking.label_gap() == pytest.approx(1.0)


def test_strokes_are_tinted_and_the_background_is_not() -> None:
    grey = np.zeros((50, 4, 4), np.uint8)
    grey[:, 1, 1], grey[:, 2, 2] = 255, 51
    labels = np.arange(50) % 10
    images, groups = Tints().plant(grey, labels, 3)
    assert (images.shape, images.dtype) == ((50, 3, 4, 4), np.float32)
    colours = Tints().colours
    assert np.allclose(images[:, :, 1, 1], colours[groups], atol=1e-6)
    assert np.allclose(images[:, :, 2, 2], 0.2 * colours[groups], atol=1e-6)
    assert images[:, :, 0].max() == 0
    apart = np.linalg.norm(colours[:, np.newaxis] - colours, axis=-1)[~np.eye(5, dtype=bool)]
    assert apart.min() > 0.4
    assert np.allclose(colours.max(axis=1), 1)


def test_noise_keeps_groups_colours_and_range() -> None:
    rng = np.random.default_rng(0)
    grey, labels = rng.integers(256, size=(400, 8, 8)).astype(np.uint8), rng.integers(10, size=400)
    plain, groups = Tints().plant(grey, labels, 5)
    noisy, again = Tints(noise=0.3).plant(grey, labels, 5)
    assert np.array_equal(groups, again)
    assert 0 <= noisy.min() < noisy.max() <= 1
    brightness = noisy.max(axis=1)
    colours = Tints().colours[groups]
    assert np.allclose(
        noisy, brightness[:, np.newaxis] * colours[:, :, np.newaxis, np.newaxis], atol=1e-6
    )
    moved = (brightness - plain.max(axis=1))[np.abs(plain.max(axis=1) - 0.5) < 0.05]
    # 2,500 pixels or so, cut at 1.5 standard deviations: a deviation 1.5 times off is 10 standard
    # errors away.
    cut = np.clip(np.random.default_rng(1).normal(0.0, 0.3, 100_000), -0.5, 0.5).std()
    assert len(moved) > 2_000
    assert abs(moved.std() / cut - 1) < 0.1
    once, _ = Tints(noise=0.3).plant(grey, labels, 5)
    assert np.array_equal(once, noisy)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tints(classes=1),
        lambda: Tints(groups=1),
        lambda: Tints(strength=1.1),
        lambda: Tints(noise=-1.0),
        lambda: Tints().label_rates([1.0, 2.0]),
        lambda: Tints().plant(np.zeros((2, 4, 4)), [0, 1], 0),
        lambda: Tints().plant(np.zeros((2, 4, 4), np.uint8), [0], 0),
        lambda: Tints().plant(np.zeros((2, 4, 4), np.uint8), [0, 10], 0),
        lambda: Tints().plant(np.zeros((2, 4, 4), np.uint8), [0.0, 1.0], 0),
        lambda: Tints().plant(np.zeros((2, 3, 4, 4), np.uint8), [0, 1], 0),
    ],
)
def test_impossible_tints_are_refused(make: Any) -> None:
    with pytest.raises(InputError, match=r"expected .*, got "):
        make()
