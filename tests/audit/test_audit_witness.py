"""The witness: its score is the log likelihood ratio, recomputed here from the formula, and it sees
released values alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fairveil.audit import Tape, Witness
from fairveil.curator import (
    FULL,
    CellCounts,
    Curator,
    FeatureSums,
    GradientSum,
    Linear,
    Measurement,
    Poisson,
    PredictionHistogram,
    Rows,
)
from fairveil.errors import InputError
from fairveil.privacy import NoiseSource, Promise

LOOSE = Promise(1e3, 1e-5)


def rows_of(x, y, a):
    return Rows.from_arrays(
        np.asarray(x, float).reshape(len(y), -1),
        y,
        [a],
        classes=[0, 1],
        groups=[["f", "m"]],
        sensitive_names=["sex"],
    )


def table(n=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.integers(0, 2, n), np.where(rng.random(n) < 0.5, "f", "m")


def with_one_more(x, y, a, row=(30.0, -40.0), label=0, group="m"):
    return np.vstack([x, row]), np.append(y, label), np.append(a, group)


def heard(rows, measurements, promise=LOOSE, batch=FULL, seed=0):
    tape = Tape()
    tape.answer(Curator(rows, promise, noise=NoiseSource.seeded(seed)), measurements, batch)
    return tape


@pytest.mark.parametrize("side", [0, 1])
def test_gaussian_answers_are_scored_by_the_formula(side):
    """Guarantee 2: counts, clipped sums and clipped gradients, with noiseless answers worked out
    here."""
    x, y, a = table()
    both = rows_of(x, y, a), rows_of(*with_one_more(x, y, a))
    cells, clip, weights = both[0].cells(), 2.0, np.array([0.3, 0.01, -0.02])
    measurements = [
        (CellCounts(cells), 3.0),
        (FeatureSums(cells, clip), 4.0),
        (GradientSum(Linear(weights), 0.5), 5.0),
    ]
    tape = heard(both[side], measurements)
    counts, sums, gradient = (answer for answer in tape.heard[0].answers)

    def noiseless(data):
        x, y, a = data
        rows = np.column_stack([np.ones(len(y)), x])
        member = np.array([a == "f", a == "m"])
        short = rows * np.minimum(1, clip / np.linalg.norm(rows, axis=1))[:, None]
        each = (1 / (1 + np.exp(-rows @ weights)) - y)[:, None] * rows
        each *= np.minimum(1, 0.5 / np.linalg.norm(each, axis=1))[:, None]
        return member.sum(axis=1), member @ short, each.sum(axis=0)[None]

    here, there = noiseless((x, y, a)), noiseless(with_one_more(x, y, a))
    expected = 0.0
    for answer, at, other, size in zip(
        (counts, sums, gradient), here, there, (3.0, 4.0 * clip, 5.0 * 0.5), strict=True
    ):
        expected += (
            stats.norm.logpdf(answer, other, size) - stats.norm.logpdf(answer, at, size)
        ).sum()
    assert Witness(*both, LOOSE).score(tape) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert Witness(both[1], both[0], LOOSE).score(tape) == pytest.approx(
        -expected, rel=1e-5, abs=1e-6
    )


def test_laplace_counts_are_scored_by_their_own_distribution():
    x, y, a = table()
    here, there = rows_of(x, y, a), rows_of(*with_one_more(x, y, a))
    tape = heard(here, [Measurement(CellCounts(here.cells()), 2.0, "discrete-laplace")], seed=3)
    answer, men = tape.heard[0].answers[0], int((a == "m").sum())
    assert Witness(here, there, LOOSE).score(tape) == pytest.approx(
        (abs(answer[1] - men) - abs(answer[1] - men - 1)) / 2.0
    )


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_secret_batch_is_scored_by_its_mixture(neighbours):
    """Guarantee 2: exact where the common rows (all women) do not touch the cell that the canary is
    counted in."""
    promise, rate, z = Promise(1e3, 1e-5, neighbours=neighbours), 0.3, 0.8
    x, y, _ = table()
    women = np.full(len(y), "f")
    common, there = rows_of(x, y, women), rows_of(*with_one_more(x, y, women))
    here = common if neighbours == "add-remove" else rows_of(*with_one_more(x, y, women, group="f"))
    cells = here.cells()
    tape = heard(there, [(CellCounts(cells), z)], promise, Poisson(rate), seed=5)
    answer = tape.heard[0].answers[0]

    def density(contribution):
        centre = np.array([rate * len(y), 0.0])
        present = stats.norm.pdf(answer, centre + contribution, z).prod()
        return (1 - rate) * stats.norm.pdf(answer, centre, z).prod() + rate * present

    before = [1.0, 0.0] if neighbours == "replace-one" else [0.0, 0.0]
    expected = math.log(density(np.array([0.0, 1.0])) / density(np.array(before)))
    assert Witness(here, there, promise, common=common).score(tape) == pytest.approx(expected)


def test_with_sensitive_features_alone_protected_only_the_costs_of_predictions_are_scored():
    """The loss is public; the costs' noise is the largest move over the public rows, worked out
    here."""
    promise = Promise(1e3, 1e-5, "sensitive_features")
    x, y, a = table()
    flipped = np.where(np.arange(len(a)) == 4, np.where(a == "f", "m", "f"), a)
    here, there = rows_of(x, y, a), rows_of(x, y, flipped)
    weights, costs = np.array([0.2, 0.5, -0.3]), np.array([[[0.0, 1.5]], [[0.0, -1.0]]])
    tape = heard(
        here, [(GradientSum(Linear(weights), None, here.cells(), costs), 3.0)], promise, seed=8
    )
    rows = np.column_stack([np.ones(len(y)), x])
    p = 1 / (1 + np.exp(-rows @ weights))
    size = 3.0 * (p * (1 - p) * np.linalg.norm(rows, axis=1)).max() * 2.5

    def noiseless(groups):
        cost = np.where(groups == "f", 1.5, -1.0)
        return ((p - y + p * (1 - p) * cost)[:, None] * rows).sum(axis=0)

    answer = tape.heard[0].answers[0][0]
    expected = (
        stats.norm.logpdf(answer, noiseless(flipped), size)
        - stats.norm.logpdf(answer, noiseless(a), size)
    ).sum()
    assert Witness(here, there, promise).score(tape) == pytest.approx(expected, rel=1e-5)
    free = heard(here, [(GradientSum(Linear(weights), None), 3.0)], promise)
    assert Witness(here, there, promise).score(free) == 0.0


def test_a_score_depends_on_what_was_released_and_nothing_else():
    """Guarantee 1: asks and answers on another tape, far from any curator, score the same to the
    bit."""
    x, y, a = table()
    here, there = rows_of(x, y, a), rows_of(*with_one_more(x, y, a))
    tape = heard(there, [(CellCounts(here.cells()), 3.0)])
    copy = [
        type(release)(release.measurements, release.batch, tuple(map(np.copy, release.answers)))
        for release in tape.heard
    ]
    assert Witness(here, there, LOOSE).score(copy) == Witness(here, there, LOOSE).score(tape)
    tape.heard[0].answers[0][:] = 1e6
    assert Witness(here, there, LOOSE).score(tape) > 1e4


def test_models_side_by_side_score_as_they_do_alone():
    x, y, a = table(40)
    here, there = rows_of(x, y, a), rows_of(*with_one_more(x, y, a))
    weights = np.random.default_rng(1).normal(size=(5, 1, 3))
    sources = [NoiseSource.seeded(seed) for seed in range(5)]
    many, witness = Tape(), Witness(here, there, LOOSE)
    measurements = [
        (GradientSum(Linear(weights), 1.0), 4.0),
        (PredictionHistogram(Linear(weights), here.cells()), 4.0),
    ]
    many.answer(Curator(there, LOOSE, noise=sources), measurements)
    together = witness.score(many)
    assert together.shape == (5,)
    for m in range(5):
        model = Linear(weights[m])
        alone = heard(
            there,
            [(GradientSum(model, 1.0), 4.0), (PredictionHistogram(model, here.cells()), 4.0)],
            seed=m,
        )
        assert witness.score(alone) == together[m]


def test_code_that_makes_its_own_curator_can_be_heard(monkeypatch):
    x, y, a = table()
    here, there = rows_of(x, y, a), rows_of(*with_one_more(x, y, a))
    tape = Tape()
    monkeypatch.setattr(Curator, "answer", tape.around(Curator.answer))
    curator = Curator(there, LOOSE, noise=NoiseSource.seeded(0))
    (answer,) = curator.answer([(CellCounts(here.cells()), 3.0)], purpose="counts")
    assert len(curator.log) == 1
    assert len(tape.heard) == 1
    assert (tape.heard[0].answers[0] == answer).all()
    answer[:] = 0.0
    assert (tape.heard[0].answers[0] != answer).any()
    monkeypatch.undo()
    again = heard(there, [(CellCounts(here.cells()), 3.0)])
    assert Witness(here, there, LOOSE).score(tape) == Witness(here, there, LOOSE).score(again)


def test_what_cannot_be_attacked_is_refused():
    x, y, a = table()
    here, there = rows_of(x, y, a), rows_of(*with_one_more(x, y, a))
    replaced = Promise(1e3, 1e-5, neighbours="replace-one")
    tape = heard(here, [(CellCounts(here.cells()), 3.0)], replaced, Poisson(0.5))
    with pytest.raises(InputError, match="common"):
        Witness(here, there, replaced).score(tape)
    other = Rows.from_arrays(
        x, y, [a], classes=[0, 1], groups=[["m", "f"]], sensitive_names=["sex"]
    )
    with pytest.raises(InputError, match="layout"):
        Witness(here, other, LOOSE)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one", "sensitive features", "batch"])
def test_a_run_that_rescales_scores_as_one_on_rows_that_were_rescaled_before(relation):
    """Guarantee 2: noiseless answers are of the units that the release was made in, before and
    after each rescaling."""
    x, y, a = table()
    maps = [
        (np.array([1e3, 0.1]), np.array([-2.0, 5.0])),
        (np.array([0.5, 4.0]), np.array([1.0, 0.0])),
    ]
    larger = with_one_more(x, y, a, row=(0.2, -0.1))
    data = {
        "add-remove": ((x, y, a), larger),
        "replace-one": (with_one_more(x, y, a, row=(0.1, 0.3), label=1), larger),
        "sensitive features": (
            (x, y, a),
            (x, y, np.where(np.arange(len(a)) == 4, np.where(a == "f", "m", "f"), a)),
        ),
        "batch": ((x, y, a), larger),
    }[relation]
    promise = {
        "replace-one": Promise(1e3, 1e-5, neighbours="replace-one"),
        "sensitive features": Promise(1e3, 1e-5, "sensitive_features"),
    }.get(relation, LOOSE)
    batch = Poisson(0.5) if relation == "batch" else FULL
    cells = rows_of(x, y, a).cells()
    costs = np.array([[[0.0, 1.5]], [[0.0, -1.0]]])
    model = Linear(np.array([0.3, 0.01, -0.02]))
    measurements = [
        (GradientSum(model, 0.7, cells, costs), 3.0),
        (PredictionHistogram(model, cells), 2.0),
    ]
    here, there = (rows_of(*side) for side in data)
    tape, curator = Tape(), Curator(there, promise, noise=NoiseSource.seeded(4))
    tape.answer(curator, measurements, batch)
    for scale, shift in maps:
        curator.rescale(scale, shift)
        tape.answer(curator, measurements, batch)
    expected, apart = 0.0, []
    for release in tape.heard:
        plain = type(release)(release.measurements, release.batch, release.answers)
        sides = [rows_of(*side) for side in data]
        for scale, shift in maps[: len(apart)]:
            sides = [side.rescaled(scale, shift) for side in sides]
        apart.append(Witness(*sides, promise).score([plain]))
        expected += apart[-1]
    witness = Witness(here, there, promise)
    assert witness.score(tape) == expected
    assert witness.score(
        [type(r)(r.measurements, r.batch, r.answers) for r in tape.heard]
    ) != pytest.approx(expected, rel=1e-3)


def test_scores_of_runs_that_rescale_tell_the_data_sets_apart_as_noise_allows():
    """A canary at the clip only in the new units. 400 scores: mean +-mu^2/2 within 4.5 standard
    errors (alarm under 1e-5)."""
    z, scale = 0.7, (np.array([1e3]), np.zeros(1))
    x, y = np.full((20, 1), 0.001), np.arange(20) % 2
    plain = np.full(21, "f")
    here, there = (
        rows_of(x, y, plain[:20]),
        rows_of(np.vstack([x, [[0.003]]]), np.append(y, 1), plain),
    )
    found = []
    for which, rows in enumerate((here, there)):
        for seed in range(200):
            tape, curator = Tape(), Curator(rows, LOOSE, noise=NoiseSource.seeded(2 * seed + which))
            curator.rescale(*scale)
            tape.answer(curator, [(GradientSum(Linear(np.zeros(2)), 1.0), z)])
            found.append((2 * which - 1) * Witness(here, there, LOOSE).score(tape))
    mu = 1.0 / z
    assert np.mean(found) == pytest.approx(mu**2 / 2, abs=4.5 * mu / math.sqrt(400))
    assert np.std(found) == pytest.approx(mu, rel=0.2)
