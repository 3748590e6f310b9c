"""Monitors of persons who come back: enumerated neighbours over periods, false alarms, planted
bugs, and what is refused."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import fairveil as fv
from fairveil.core.cost import price
from fairveil.core.promise import Promise
from fairveil.errors import FairveilError, InputError
from fairveil.facts import Cells
from fairveil.methods.certificate import Bet, Clearest, e_value, layout_of, p_value
from fairveil.methods.counts import EXACT, CountNoise, plan_counts

FIXED = {"groups": {"sex": ["f", "m"]}, "classes": [0, 1], "epsilon": 1.0}
OTHERS = [("b", "f", 0), ("c", "m", 1)]
# what a person may have in one period: no row, a row, or two that differ
ROWS = ([], [("a", "f", 1)], [("a", "f", 1), ("a", "m", 0)])


def _begun(path: Path, most: int = 2, **options: object) -> fv.Monitor:
    told = {"unit": "patient", "max_periods_per_unit": most}
    return fv.Monitor.create(path, "demographic_parity:0.1", **(FIXED | told | options))


def _counts(watch: fv.Monitor, periods: list[list[tuple[str, str, int]]]) -> np.ndarray:
    """Released counts of each period, (periods, parts), with the same noise in every call."""
    for at, rows in enumerate(periods):
        ids, sex, decided = (np.array(column) for column in zip(*rows, strict=True))
        watch.add(str(at), decided, sensitive_features=sex, unit=ids, random_state=at)
    return np.array([one.counts for one in watch.periods])


def test_no_person_moves_the_periods_further_than_the_plan_says(tmp_path: Path) -> None:
    """Every person with rows in at most 2 of 3 periods, beside the table without them: each period
    moves by 1 at most, all by 2, and the noise keeps epsilon for that; a person attains it. A
    monitor that counts all rows of a person is caught."""
    without = _counts(_begun(tmp_path / "without.json"), [OTHERS] * 3)
    moved, planted = [], []
    for at, mine in enumerate(itertools.product(ROWS, repeat=3)):
        if sum(map(bool, mine)) > 2:
            continue
        watch = _begun(tmp_path / f"{at}.json")
        found = np.abs(_counts(watch, [OTHERS + rows for rows in mine]) - without).sum(axis=1)
        assert (found <= 1.0).all()
        moved.append(found.sum())
        planted.append(sum(map(len, mine)))
    assert max(moved) / watch.watched.plan.noise.scale <= 1.0
    assert max(moved) / watch.watched.plan.noise.scale > 0.999
    assert max(planted) / watch.watched.plan.noise.scale > 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_all_periods_of_a_person_together_keep_the_promise(delta: float) -> None:
    """The noise of one period does not, which is planted."""
    promise = Promise(1.0, delta)
    for times in (1, 3):
        asked = plan_counts(promise, times=times)
        assert price(asked.together, promise.delta, "add-remove").epsilon <= 1.0
    alone = plan_counts(promise)
    assert price(replace(alone, times=3).together, promise.delta, "add-remove").epsilon > 1.0


def _alarms(rate: float, people: int, periods: int) -> dict[str, float]:
    """Exactly: the probability that an alarm at 1 / rate is raised where the same people are in
    all periods, at a bound of 0.3 that just holds, without noise. By counts, and by bets."""
    notion = fv.BoundedGroupLoss(0.3, loss="zero_one")
    layout = layout_of([notion], Cells((("f", "m"),)), (0, 1))
    out = {"clearest": 0.0, "bets": 0.0}
    for wrong in range(people + 1):
        table = np.zeros((2, 2, 2))
        table[0, 0] = people - wrong, wrong
        table[1, 0, 0] = people
        counts = np.bincount(layout.part_of.ravel(), table.ravel(), layout.parts).astype(float)
        p = p_value(layout, counts, EXACT)
        clearest, bet = Clearest(), Bet()
        for _ in range(periods):
            clearest, bet = clearest.after(p), bet.after(e_value(p))
        chance = float(stats.binom.pmf(wrong, people, 0.3))
        out["clearest"] += chance * (clearest.wealth >= 1.0 / rate)
        out["bets"] += chance * (bet.highest >= 1.0 / rate)
    return out


def test_the_same_people_in_every_period_raise_no_more_false_alarms() -> None:
    """Exact, so nothing can fail by chance. Bets, as if each period had new people, are caught."""
    found = _alarms(0.005, 60, 30)
    assert found["clearest"] <= 0.005
    assert found["bets"] > 0.005


def test_any_dependence_keeps_the_rate() -> None:
    """The worst case for a sum of probabilities: p-values that are small in different runs. Of
    1,000 equal runs and 6 periods, each period has p <= u in a share u of them at most."""
    runs, rate = 1000, 0.25
    small = np.ones((6, runs))
    used = 0
    for t in range(1, 7):
        many = math.floor(runs * rate / (t * (t + 1)))
        small[t - 1, used : used + many] = rate / (t * (t + 1))
        used += many
    alarms = 0
    for run in small.T:
        found = Clearest()
        for p in run:
            found = found.after(p)
        alarms += found.wealth >= 1.0 / rate
    assert 0.8 * rate * runs < alarms <= rate * runs


def test_people_who_return_in_every_period_raise_few_false_alarms() -> None:
    """60 runs of 5 periods of the same 16 people, new noise each period, a gap at the bound, alarm
    at 4: more than the bound below has probability below 1e-4."""
    rng, false, noise = np.random.default_rng(2), 0, CountNoise("discrete-laplace", 0.4)
    layout = layout_of([fv.DemographicParity(0.3)], Cells((("f", "m"),)), (0, 1))
    known: dict[tuple[float, ...], float] = {}
    for _ in range(60):
        hits = rng.binomial(8, (0.3, 0.6))
        table = np.zeros((2, 2, 2))
        table[:, 0, 0], table[:, 0, 1] = 8 - hits, hits
        exact = np.bincount(layout.part_of.ravel(), table.ravel(), layout.parts)
        found = Clearest()
        for _ in range(5):
            q = 1.0 - np.exp(-2.5)
            added = rng.geometric(q, layout.parts) - rng.geometric(q, layout.parts)
            key = tuple((exact + added).tolist())
            if key not in known:
                known[key] = p_value(layout, np.array(key), noise)
            found = found.after(known[key])
        false += found.wealth >= 4.0
    assert false <= stats.binom.isf(1e-4, 60, 0.25)


def test_a_drift_is_found_and_the_file_says_who_is_protected(tmp_path: Path) -> None:
    path, rng = tmp_path / "m.json", np.random.default_rng(0)
    ledger = fv.Ledger.create(None, "clinic", epsilon=4.0, delta=1e-6, unit="patient")
    watch = _begun(path, 2, epsilon=4.0, ledger=ledger)
    assert ledger.balance().spent == pytest.approx(4.0, abs=1e-3)
    sex = np.array(["f", "m"])[np.arange(120) % 2]
    for month, rates in (("May", (0.3, 0.3)), ("June", (0.0, 1.0)), ("July", (0.0, 1.0))):
        decided = (rng.random(120) < np.where(sex == "f", *rates)).astype(int)
        table = {"patient": np.arange(120), "sex": sex, "score": decided}
        watch.add(month, decided, table, sensitive_features="sex")
        assert watch.privacy_ is not None
        said = [line for line in watch.privacy_.not_covered if "other periods" in line]
        assert len(said) == 1
        # while there are no more periods than a person may be in, nothing is taken on trust
        assert ("taken as said" in said[0]) == (month == "July")
    assert watch.alarm == "June"
    assert watch.watched.promise.unit is not None
    again = fv.Monitor.open(path)
    assert (again.periods, again.watched.plan.noise, again.watched.promise) == (
        watch.periods,
        watch.watched.plan.noise,
        watch.watched.promise,
    )
    assert '"max_periods": ' in path.read_text()
    assert "patient" in str(again)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_periods_per_unit": 0}, "max_periods_per_unit"),
        ({"max_periods_per_unit": None}, "max_periods_per_unit"),
        ({"max_periods_per_unit": 1.5}, "max_periods_per_unit"),
        ({"unit": None}, "unit"),
        ({"unit": np.arange(3)}, "unit"),
        ({"unit": ""}, "unit"),
    ],
)
def test_bad_beginnings_leave_no_file(tmp_path: Path, options: dict, words: str) -> None:
    with pytest.raises(FairveilError, match=words):
        _begun(tmp_path / "m.json", **options)
    assert not (tmp_path / "m.json").exists()


def test_a_period_without_persons_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    watch = _begun(tmp_path / "m.json")
    before = (tmp_path / "m.json").read_bytes()
    decided, sex = np.arange(8) % 2, np.array(["f", "m"] * 4)
    for X, unit in (
        (None, None),
        ({"sex": sex, "score": decided}, None),
        (None, "patient"),
        (None, "town"),
        (None, np.arange(7)),
        (None, np.array([None, *range(7)], object)),
    ):
        with pytest.raises(FairveilError):
            watch.add("May", decided, X, sensitive_features=sex, unit=unit)
    assert (tmp_path / "m.json").read_bytes() == before
    rows = fv.Monitor.create(tmp_path / "rows.json", "demographic_parity:0.1", **FIXED)
    with pytest.raises(InputError, match="no unit"):
        rows.add("May", decided, sensitive_features=sex, unit=np.arange(8))
