"""What is attacked: runs are functions of table, seed and bug, and nothing of the caller's is
touched."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.audit import PointClaim
from fairveil.audit.corners import pairs_of
from fairveil.audit.targets import (
    HALF_NOISE,
    HERE,
    NO_CLIP,
    SAME_SEED,
    THERE,
    TIMES,
    Bug,
    FitTarget,
    FunctionTarget,
    planted,
)
from fairveil.audit.witness import Overheard, Reader
from fairveil.core import pricing
from fairveil.core.books import heard_by
from fairveil.core.questions import Question
from fairveil.curator import CellCounts, Curator, GradientSum, Linear, RowCount, Rows
from fairveil.facts import Category, Number, Schema
from fairveil.privacy import NoiseSource, Promise
from knobs import made

COLUMNS = {"age": Number(17, 90), "sex": Category(("f", "m")), "wage": Number(0, 9)}
WAGES = Schema(COLUMNS, target="wage", sensitive=("sex",), rows=20)
PAIR = pairs_of(WAGES, "records", "add-remove", others=20)[0]


def estimator(**more):
    return made(ways.objective_regression, schema=WAGES, epsilon=2.0, delta=1e-5, **more)


def test_guarantee_1_the_estimator_and_its_ledger_are_left_alone() -> None:
    ledger = fv.Ledger.create(None, "people", epsilon=3.0, delta=1e-4)
    clf = estimator(ledger=ledger)
    before = clf.get_params(deep=False)
    target = FitTarget(clf, WAGES, PAIR, 0)
    target.run(HERE, 1)
    assert clf.get_params(deep=False) == before
    assert not hasattr(clf, "privacy_")
    assert ledger.is_untouched
    with ledger.recording():
        target.run(THERE, 2)
    assert ledger.is_untouched


def test_guarantee_2_a_seed_repeats_a_run_and_a_bug_changes_it() -> None:
    target = FitTarget(estimator(), WAGES, PAIR, 0)
    assert target.exact

    def released(*run):
        return target.run(*run)[0]

    assert np.array_equal(released(HERE, 5), released(HERE, 5))
    different = [
        released(HERE, 6),
        released(THERE, 5),
        released(HERE, 5, Bug(HALF_NOISE)),
        released(HERE, 5, Bug("", 3.0)),
    ]
    assert all(not np.array_equal(released(HERE, 5), one) for one in different)
    assert [bug.name for bug in target.bugs][-1] == SAME_SEED


def test_a_function_is_handed_copies_and_its_epsilon() -> None:
    seen = []

    def fit(table, seed, epsilon):
        seen.append(epsilon)
        table["age"][:] = 0.0
        return [float(len(table["age"])), seed]

    target = FunctionTarget(fit, PAIR, Promise(2.0, 0.0), PointClaim(2.0, 0.0))
    assert target.run(HERE, 7)[0].tolist() == [20.0, 7.0]
    assert target.run(THERE, 8, Bug("1.5-fold epsilon", 1.5))[0].tolist() == [21.0, 8.0]
    assert seen == [2.0, 3.0]
    assert PAIR.here["age"].min() >= 17


def test_scores_of_overheard_curators_are_the_likelihood_ratio() -> None:
    """One Gaussian count of 20 and of 21 people, multiplier 3: the ratio in closed form."""
    tables = [
        Rows.from_arrays(np.zeros((n, 1)), None, [["f"] * n], groups=[["f", "m"]]) for n in (20, 21)
    ]
    promise = Promise(3.0, 1e-5)

    def heard(rows: Rows, seed: int) -> tuple[Overheard, float]:
        book = Overheard()
        with heard_by(book):
            curator = Curator(rows, promise, noise=NoiseSource.seeded(seed))
            counts = curator.answer([(CellCounts(curator.cells()), 3.0)])[0]
        return book, float(counts[0])

    runs = [heard(rows, seed) for seed, rows in enumerate(tables)]
    reader = Reader(runs[0][0], runs[1][0], None, promise)
    assert reader.is_exact
    assert reader.distance(runs[0][0]) == pytest.approx(1 / 3, rel=1e-6)
    for book, count in runs:
        assert reader.released(book)[0] == pytest.approx((count - 20.5) / 9, abs=1e-9)


# Planted bugs

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


def test_guarantee_3_another_thread_has_its_noise_while_a_block_is_open() -> None:
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


def test_guarantee_3_all_is_as_it_was_after_nested_blocks_and_an_error() -> None:
    before = pricing.noise_scale, Question.scale
    with pytest.raises(RuntimeError), planted(HALF_NOISE), planted(NO_CLIP):
        raise RuntimeError
    assert (pricing.noise_scale, Question.scale) == before
