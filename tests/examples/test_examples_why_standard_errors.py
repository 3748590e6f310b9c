"""examples/why_standard_errors.py: Lemma 3.1 by simulation, what shares do to noise, table 4's
numbers, and the figures."""

from __future__ import annotations

import itertools
import math
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import optimize

from fairveil import Promise
from fairveil.methods.allocation import afforded, least_noise

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "why_standard_errors.py"
DRAWS = 40_000
TABLE_4 = {  # standard errors and shares, as printed
    (4.04838336, 96.67176174): (0.04019438, 0.95980562),
    (3.18102322, 100.06187079): (0.03081106, 0.96918894),
    (3.16276276, 100.01852322): (0.03065248, 0.96934752),
}


@pytest.fixture(scope="module")
def why(example: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    return example("why_standard_errors")


def drawn(c: float, seed: int) -> tuple[Any, dict[str, Any]]:
    """Losses of the lemma's predictor on its mixture, a number a draw; and what is known of both
    groups."""
    rng = np.random.default_rng(seed)
    sizes, deviations = (7, 3), (0.5, 2.0)
    X = [rng.normal(size=(n, 2)) for n in sizes]
    lines = rng.normal(size=(2, 2))
    of_rows, of_line = ((rng.random(DRAWS) >= c).astype(int) for _ in range(2))
    losses = np.empty(DRAWS)
    for k, j in itertools.product(range(2), range(2)):
        here = (of_rows == k) & (of_line == j)
        y = X[k] @ lines[k] + deviations[k] * rng.normal(size=(int(here.sum()), sizes[k]))
        losses[here] = ((y - X[k] @ lines[j]) ** 2).sum(axis=1)
    apart = tuple(float(((one @ (lines[0] - lines[1])) ** 2).sum()) for one in X)
    return losses, {"sizes": sizes, "variances": tuple(s**2 for s in deviations), "apart": apart}


@pytest.mark.parametrize("c", [0.1, 0.5, 0.8])
def test_lemma_3_1_as_corrected_is_the_mean_of_simulated_losses(
    why: dict[str, Any], c: float
) -> None:
    """40,000 draws, within five standard errors of their mean: a right formula fails with a chance
    of 6e-7 each."""
    for seed in range(2):
        losses, known = drawn(c, seed)
        off = losses.mean() - why["expected_loss"](c, **known)
        assert abs(off) < 5.0 * losses.std() / math.sqrt(DRAWS)
        own = sum(
            w**2 * n * v
            for w, n, v in zip((c, 1 - c), known["sizes"], known["variances"], strict=True)
        )
        # were the G of the paper the distances alone
        without = own + c * (1 - c) * sum(known["apart"])
        assert abs(losses.mean() - without) > 5.0 * losses.std() / math.sqrt(DRAWS)


def test_the_corrected_lemma_is_the_printed_one_with_means_in_the_place_of_random_numbers(
    why: dict[str, Any],
) -> None:
    c, sizes, variances, apart = 0.3, (7, 3), (0.25, 4.0), (2.0, 5.0)
    gammas = [sizes[k] * variances[k] + apart[k] for k in range(2)]
    printed = (
        c**2 * sizes[0] * variances[0]
        + (1 - c) ** 2 * sizes[1] * variances[1]
        + c * (1 - c) * sum(gammas)
    )
    assert why["expected_loss"](c, sizes, variances, apart) == pytest.approx(printed)


def test_a_sum_of_squares_has_the_distribution_of_as_many_degrees_not_of_one() -> None:
    """Its variance by 40,000 draws, known within (kurtosis) 2 %: 2 n s^4; the printed n s^2 chi^2_1
    would have n times that."""
    rng = np.random.default_rng(0)
    n, s = 7, 0.5
    found = ((s * rng.normal(size=(DRAWS, n))) ** 2).sum(axis=1)
    assert found.mean() == pytest.approx(n * s**2, rel=0.02)
    assert found.var() == pytest.approx(2 * n * s**4, rel=0.1)  # five deviations
    assert (n * s**2 * rng.chisquare(1, DRAWS)).var() == pytest.approx(2 * n**2 * s**4, rel=0.15)


def test_equal_sizes_say_nothing_of_losses_that_are_a_thousand_times_apart(
    why: dict[str, Any],
) -> None:
    for c in (0.0, 0.5, 1.0):
        first, second = why["group_losses"](c)
        assert first > 9 * second
        both = why["expected_loss"](c, (1, 1), why["VARIANCES"], (why["APART"], why["APART"]))
        assert c * first + (1 - c) * second == pytest.approx(both)


def test_table_4_prints_shares_by_standard_errors_where_algorithm_1_has_their_squares(
    why: dict[str, Any],
) -> None:
    for errors, printed in TABLE_4.items():
        assert why["shares"](errors, 1.0) == pytest.approx(printed, abs=1e-8)
        assert why["shares"](errors, 2.0)[1] > 0.998


@pytest.mark.parametrize("own_clips", [False, True])
def test_noise_by_rule_is_what_the_text_says_and_an_optimiser_finds(
    why: dict[str, Any], own_clips: bool
) -> None:
    equal, by_errors, by_squares, worst = (*why["RULES"], why["WORST"])
    for t in (1.0, 3.0, 31.6):
        arms = why["arms"](t, own_clips=own_clips)
        clips = np.array([t, 1.0]) if own_clips else np.ones(2)

        def total(share: float, clips: Any = clips) -> float:
            return float(np.sqrt(clips[0] ** 2 / share + clips[1] ** 2 / (1.0 - share)))

        found = optimize.minimize_scalar(
            total, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-10}
        )
        best = by_errors if own_clips else equal
        assert arms[best] * total(0.5) == pytest.approx(found.fun, rel=1e-6)
        assert arms[equal] == 1.0
        assert arms[by_squares] == pytest.approx(1.0 if own_clips else (t**2 + 1) / (2 * t))
        wanted = (1 + t) / math.sqrt(2 * (1 + t**2)) if own_clips else (t + 1) / (2 * math.sqrt(t))
        assert arms[by_errors] == pytest.approx(wanted)
        assert arms[worst] <= min(arms.values()) + 1e-12
        both = [
            clip / math.sqrt(share)
            for clip, share in zip(clips, why["shares"]((t, 1.0), 2.0), strict=True)
        ]
        assert not own_clips or both[0] == pytest.approx(both[1])  # the two groups' noise is one


def test_the_librarys_own_shares_of_least_noise_are_neymans(why: dict[str, Any]) -> None:
    """Of weights that are groups' clips."""
    promise = Promise(1.0, 1e-6)
    for t in (1.0, 3.0, 31.6):
        found = afforded(
            least_noise(np.array([t, 1.0]), promise, "total"), 1.0, promise, 2.0, spend="total"
        )
        assert found == pytest.approx(why["shares"]((t, 1.0), 1.0))


def test_it_writes_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [str(EXAMPLE), "--out", str(tmp_path)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    names = ["losses", "one_clip", "own_clips"]
    assert sorted(place.name for place in tmp_path.iterdir()) == [
        f"why_standard_errors_{name}.svg" for name in names
    ]
    words = {name: _words(tmp_path / f"why_standard_errors_{name}.svg") for name in names}
    assert any("variance 10,000" in text for text in words["losses"])
    for name in names[1:]:
        assert "equal shares (as by sizes)" in words[name]
        assert any("ratio of 32" in text for text in words[name])
    said = capsys.readouterr().out
    assert "one clip, ratio 31.6: equal shares (as by sizes): 1, " in said
    assert "by their squares (Algorithm 1): 15.8" in said


def _words(place: Path) -> list[str]:
    return [
        text for text in ElementTree.fromstring(place.read_text("utf-8")).itertext() if text.strip()
    ]
