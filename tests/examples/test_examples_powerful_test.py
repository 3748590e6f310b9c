"""examples/powerful_test.py chooses a test near the Neyman-Pearson power at its level, and knows
powers exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="module")
def script(example: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    return example("powerful_test")


def candidates(script: dict[str, Any]) -> list[tuple[str, float]]:
    cuts = script["CUTS"].items()
    return [
        (name, low + (cut + 1) / 2 * (high - low))
        for name, (low, high) in cuts
        for cut in np.linspace(-1, 1, 40)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_power_is_within_two_points_of_the_best_and_the_level_is_kept(
    script: dict[str, Any], seed: int
) -> None:
    """At 100,000 samples and epsilon 1."""
    test = script["chosen"](100_000, seed)
    assert script["rejection"](*test, script["SHIFT"]) >= script["BEST"] - 0.02
    assert script["rejection"](*test, 0.0) <= script["LEVEL"]


def test_no_candidate_of_the_level_has_more_power_than_neyman_and_pearson_allow(
    script: dict[str, Any],
) -> None:
    rejection, tests = script["rejection"], candidates(script)
    powers = [
        rejection(*test, script["SHIFT"])
        for test in tests
        if rejection(*test, 0.0) <= script["LEVEL"]
    ]
    assert len(tests) == len(script["CANDIDATES"])
    assert 100 < len(powers) < len(tests) - 50
    assert max(powers) <= script["BEST"]


@pytest.mark.parametrize("mean", [0.0, 0.75])
def test_rejections_are_those_of_samples(script: dict[str, Any], mean: float) -> None:
    """40,000 samples, 240 tests: five standard deviations and five samples; one seed."""
    rng = np.random.default_rng(1)
    found = script["statistics"](rng.normal(mean, size=(40_000, script["SIZE"])))
    for name, cut in candidates(script):
        chance = script["rejection"](name, cut, mean)
        assert (
            abs((found[name] > cut).mean() - chance)
            <= 5 * np.sqrt(chance * (1 - chance) / 40_000) + 5 / 40_000
        ), (name, cut)


def test_it_runs(curves_of: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    words = curves_of("powerful_test", "--rows", "1000")
    assert any("power of the chosen test" in text for text in words)
    assert capsys.readouterr().out.count("largest level") == 6
