"""Measures of scores by group: exact ones against other libraries, and how often intervals are wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

import fairveil as fv
from fairveil.data import Category, Schema
from fairveil.errors import InputError
from fairveil.facts import Cells
from fairveil.methods.counts import EXACT, CountNoise
from fairveil.metrics.scores import UNITS, band, score_rows

LAPLACE = CountNoise("discrete-laplace", 2.0)
CELLS = Cells((("f", "m"), ("x", "y")), names=("sex", "race"))


def _people(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    groups = {"sex": rng.choice(["f", "m"], n), "race": rng.choice(["x", "y"], n, p=[0.7, 0.3])}
    score = np.clip(rng.beta(2, 2, n) + 0.1 * (groups["sex"] == "m"), 0.0, 0.999)
    return score, (rng.random(n) < score).astype(int), groups


def _by_group(found: Any) -> dict[Any, dict[str, Any]]:
    return {row.group: row.measures for row in found.rows}


def test_exact_measures_are_those_of_the_binned_scores() -> None:
    score, paid, groups = _people(3000)
    asked: dict[str, Any] = {"sensitive_features": groups, "epsilon": math.inf}
    found = _by_group(fv.score_audit(score, paid, cut=0.6, bins=50, reference="m", **asked))
    middle = np.floor(score * 50)
    sex, race = groups["sex"], groups["race"]
    for key, inside in {
        None: sex != "",
        "f": sex == "f",
        ("m", "y"): (sex == "m") & (race == "y"),
    }.items():
        one, s, y = found[key], middle[inside], paid[inside]
        assert one["auc"].value == pytest.approx(roc_auc_score(y, s))
        assert one["ks_distance"].value == pytest.approx(
            stats.ks_2samp(s[y == 0], s[y == 1]).statistic
        )
        assert one["approval_rate"].value == pytest.approx((score[inside] >= 0.6).mean())
    men, women = sex == "m", sex == "f"
    apart = (middle[women].mean() - middle[men].mean()) / middle.std()
    assert found["f"]["standardised_mean_difference"].value == pytest.approx(apart)
    rates = [(score[inside] >= 0.6).mean() for inside in (women, men)]
    assert found["f"]["approval_impact_ratio"].value == pytest.approx(rates[0] / rates[1])
    best = _by_group(fv.score_audit(score, None, cut=0.6, **asked))
    assert "auc" not in best["f"]
    assert best["m"]["approval_impact_ratio"].value == 1.0
    edges = np.linspace(0.0, 1.0, 33)[1:-1]
    middle = edges[
        np.argmin([abs((score >= edge).mean() - 0.5) for edge in np.unique([*edges, 0.6])])
    ]
    above = score >= middle
    assert best["f"]["scoring_rate"].value == pytest.approx(above[women].mean())


@pytest.mark.parametrize("noise", [EXACT, LAPLACE], ids=["exact", "noisy"])
def test_all_intervals_hold_together_with_the_confidence(noise: CountNoise) -> None:
    """At a confidence of one half, of a law whose measures are known by the same arithmetic without
    a sample: counts in the proportions of the population."""
    rng = np.random.default_rng(4)
    law = rng.dirichlet(np.full(4 * 2 * 6, 2.0)).reshape(4, 2, 6)
    q = 1.0 - math.exp(-1.0 / 2.0)
    truth = score_rows(law * 1e12, CELLS, 3, EXACT, 1e-12, reference="m")
    times, wrong = 60, 0
    for _ in range(times):
        counts = rng.multinomial(1500, law.ravel()).astype(float)
        if noise is LAPLACE:
            counts += rng.geometric(q, 48) - rng.geometric(q, 48)
        rows = score_rows(counts.reshape(law.shape), CELLS, 3, noise, 0.5, reference="m")
        fails = False
        for row, true in zip(rows, truth, strict=True):
            for name, one in row.measures.items():
                value = true.measures[name].value
                # without a reference the group, and always the median, are chosen by each sample
                chosen = name.startswith("scoring") or (row.columns != ("sex",) and "mean" in name)
                if not chosen:
                    fails |= not one.low - 1e-9 <= value <= one.high + 1e-9
        wrong += fails
    assert wrong <= 0.5 * times


def test_a_band_fails_as_rarely_as_it_says_and_is_not_idle() -> None:
    """Alone, with all of the miss: of few people, whose distribution has atoms, and of noise."""
    rng, times = np.random.default_rng(0), 3000
    law = np.array([0.1, 0.3, 0.05, 0.25, 0.2, 0.1])
    true = np.cumsum(law)
    for noise, least in ((EXACT, 0.05), (CountNoise("discrete-laplace", 12.0), 0.0)):
        q = 1.0 - math.exp(-1.0 / max(noise.scale, 0.1))
        wrong = 0
        for _ in range(times if noise is EXACT else 400):
            counts = rng.multinomial(400, law).astype(float)
            if noise is not EXACT:
                counts += rng.geometric(q, 6) - rng.geometric(q, 6)
            one = band(counts[np.newaxis], noise, 0.3)
            wrong += bool(((one.low > true + 1e-12) | (one.high < true - 1e-12)).any())
        share = wrong / (times if noise is EXACT else 400)
        assert least <= share <= 0.3


def test_what_it_costs_and_what_is_left_undefined() -> None:
    score, paid, groups = _people(2000)
    found = fv.score_audit(
        score, paid, sensitive_features=groups, epsilon=1.0, smallest=0.3, random_state=0
    )
    (event,) = found.privacy_.events
    assert found.privacy_.epsilon <= 1.0
    assert event.sensitivity == 1
    small = next(row for row in found.rows if row.group == ("f", "y"))
    assert not small.compared
    assert math.isnan(small.measures["scoring_impact_ratio"].value)
    text, page = str(found), found.to_html()
    assert "not compared" in text
    assert "sex x race" in page
    assert "everyone" in text
    # bins come from arguments: another person's score moves nobody else
    same = fv.score_audit(
        np.append(score[:-1], 0.999), paid, sensitive_features=groups, epsilon=math.inf
    )
    before = fv.score_audit(score, paid, sensitive_features=groups, epsilon=math.inf)
    moved = sum(abs(a.size - b.size) for a, b in zip(same.rows, before.rows, strict=True))
    assert moved == 0
    assert set(UNITS) >= set(before.rows[1].measures)
    with pytest.raises(InputError, match="scores"):
        fv.score_audit([0.1, math.nan], [0, 1], sensitive_features=["a", "b"], epsilon=1.0)
    with pytest.raises(InputError, match="known group"):
        fv.score_audit(score, paid, sensitive_features=groups, reference="q", epsilon=1.0)
    with pytest.raises(InputError, match="as many scores"):
        fv.score_audit(score[:9], paid, sensitive_features=groups, epsilon=1.0)
    listed = Schema(
        {"sex": Category(("f", "m", "x")), "paid": Category((0, 1))},
        target="paid",
        sensitive=("sex",),
    )
    stated = fv.score_audit(
        score, paid, sensitive_features={"sex": groups["sex"]}, schema=listed, epsilon=math.inf
    )
    assert [row.group for row in stated.rows] == [None, "f", "m", "x"]
    assert stated.rows[-1].measures["scoring_rate"].low == 0.0  # nobody: nothing is known
    assert stated.rows[-1].measures["scoring_rate"].high == 1.0


@pytest.mark.parametrize("noise", [EXACT, LAPLACE], ids=["exact", "noisy"])
def test_what_is_chosen_by_the_counts_is_covered(noise: CountNoise) -> None:
    """The edge of the scoring rate, and the best group, come from each sample: the truth at that very
    edge is the approval rate there, against the group that is truly the best."""
    rng = np.random.default_rng(6)
    law = rng.dirichlet(np.full(4 * 2 * 6, 2.0)).reshape(4, 2, 6)
    q = 1.0 - math.exp(-1.0 / 2.0)
    truth = [score_rows(law * 1e12, CELLS, at + 1, EXACT, 1e-12) for at in range(5)]
    times, wrong = 60, 0
    for _ in range(times):
        counts = rng.multinomial(1500, law.ravel()).astype(float)
        if noise is LAPLACE:
            counts += rng.geometric(q, 48) - rng.geometric(q, 48)
        counts = counts.reshape(law.shape)
        below = np.cumsum(counts.sum(axis=(0, 1))) / counts.sum()
        at = int(np.argmin(np.abs(np.clip(below[:-1], 0.0, 1.0) - 0.5)))
        fails = False
        for row, true in zip(score_rows(counts, CELLS, None, noise, 0.5), truth[at], strict=True):
            for name in ("rate", "impact_ratio"):
                if f"scoring_{name}" in row.measures:
                    one = row.measures[f"scoring_{name}"]
                    value = true.measures[f"approval_{name}"].value
                    fails |= not one.low - 1e-9 <= value <= one.high + 1e-9
        wrong += fails
    assert wrong <= 0.5 * times
