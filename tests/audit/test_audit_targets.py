"""What is attacked: runs are functions of table, seed and bug, and nothing of the caller's is
touched."""

from __future__ import annotations

import numpy as np
import pytest

import fairveil as fv
from fairveil.audit import PointClaim
from fairveil.audit.corners import pairs_of
from fairveil.audit.overheard import Overheard, Reader
from fairveil.audit.planted import HALF_NOISE, SAME_SEED
from fairveil.audit.targets import HERE, THERE, Bug, FitTarget, FunctionTarget
from fairveil.curator import CellCounts, Curator, Rows
from fairveil.curator.journal.listening import heard_by
from fairveil.facts import Category, Number, Schema
from fairveil.privacy import NoiseSource, Promise
from knobs import made

COLUMNS = {"age": Number(17, 90), "sex": Category(("f", "m")), "wage": Number(0, 9)}
WAGES = Schema(COLUMNS, target="wage", sensitive=("sex",), rows=20)
PAIR = pairs_of(WAGES, "records", "add-remove", others=20)[0]


def estimator(**more):
    return made(fv.GroupObjectiveRegressor, schema=WAGES, epsilon=2.0, delta=1e-5, **more)


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
    assert np.array_equal(target.run(HERE, 5), target.run(HERE, 5))
    different = [
        target.run(HERE, 6),
        target.run(THERE, 5),
        target.run(HERE, 5, Bug(HALF_NOISE)),
        target.run(HERE, 5, Bug("", 3.0)),
    ]
    assert all(not np.array_equal(target.run(HERE, 5), one) for one in different)
    assert [bug.name for bug in target.bugs][-1] == SAME_SEED


def test_a_function_is_handed_copies_and_its_epsilon() -> None:
    seen = []

    def fit(table, seed, epsilon):
        seen.append(epsilon)
        table["age"][:] = 0.0
        return [float(len(table["age"])), seed]

    target = FunctionTarget(fit, PAIR, Promise(2.0, 0.0), PointClaim(2.0, 0.0))
    assert target.run(HERE, 7).tolist() == [20.0, 7.0]
    assert target.run(THERE, 8, Bug("1.5-fold epsilon", 1.5)).tolist() == [21.0, 8.0]
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
