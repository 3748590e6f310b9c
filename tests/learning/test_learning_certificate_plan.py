"""One count of parts: its price, its noise, and how far neighbours move it, by enumeration of
neighbours."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fairveil import DemographicParity, FalseNegativeRate
from fairveil.core.events import NonPrivate, NoOp
from fairveil.core.noise import NoiseSource
from fairveil.core.promise import Promise
from fairveil.curator import Curator, Rows
from fairveil.facts import Cells
from fairveil.learning.certificates.parts import layout_of
from fairveil.learning.certificates.plan import beside, noise_of, plan
from fairveil.privacy import epsilon

PROMISES = [
    Promise(1.0, 0.0),
    Promise(0.1, 1e-6),
    Promise(1.0, 0.0, neighbours="replace-one"),
    Promise(3.0, 1e-6, "sensitive_features"),
]
CELLS = Cells((("f", "m"),), names=("sex",))
LAYOUT = layout_of([DemographicParity(0.1), FalseNegativeRate(0.2)], CELLS, (0, 1))


def _counts(people: list[tuple[int, int, int]], promise: Promise) -> np.ndarray:
    """Exact counts of (cell, label, decision), by the path of a release, without noise."""
    parts = np.array([LAYOUT.part_of[person] for person in people], dtype=np.int64)
    return np.bincount(parts, minlength=LAYOUT.parts)


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_no_neighbour_moves_the_counts_further_than_the_noise_covers(promise: Promise) -> None:
    """All data sets of three people, and all their neighbours: every person is one of (group,
    label, decision)."""
    kinds = list(itertools.product(range(2), repeat=3))
    asked = plan(promise, reads_groups=True)
    furthest = 0
    for people in itertools.product(kinds, repeat=3):
        here = _counts(list(people), promise)
        if promise.neighbours == "add-remove":
            others = [list(people[:i] + people[i + 1 :]) for i in range(3)]
        elif promise.protects == "records":
            others = [[*people[:2], kind] for kind in kinds]
        else:
            others = [[*people[:2], (group, *people[2][1:])] for group in range(2)]
        furthest = max(
            furthest, *(int(np.abs(here - _counts(other, promise)).sum()) for other in others)
        )
    assert furthest == asked.moved


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_the_plan_costs_at_most_the_promise_and_nearly_all_of_it(promise: Promise) -> None:
    asked = plan(promise, reads_groups=True)
    price = epsilon(asked.event, promise.delta, promise.neighbours)
    assert 0.99 * promise.epsilon <= price <= promise.epsilon
    assert noise_of(asked.event, promise.neighbours) == asked.noise


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_the_noise_is_what_the_curator_draws(promise: Promise) -> None:
    """3,000 codes of nobody: the counts are noise alone. A scale that is wrong by 1.3 would be
    seen; false alarm below 1e-6."""
    asked = plan(promise, reads_groups=True)
    rows = Rows.from_arrays(np.zeros((2, 1)), np.array([0, 1]), [np.array(["f", "m"])])
    with Curator(rows, promise, plan=asked.event, noise=NoiseSource.seeded(3)) as curator:
        codes = curator.attach_codes(
            lambda block: np.zeros(block.rows), 3000, columns_read={"features", "sensitive"}
        )
        counts = asked.release(curator, codes, "a test")
        curator.finish()
    assert (counts == np.rint(counts)).all()
    seen, sd = counts[1:].std(), asked.noise.sd
    kurtosis = 6.0 if asked.noise.kind == "discrete-laplace" else 3.0
    assert abs(seen**2 / sd**2 - 1.0) < 5.5 * math.sqrt((kurtosis + 1.0) / 3000)
    assert curator.statement().events == (asked.event,)


def test_counts_that_nobody_protects_are_exact() -> None:
    assert plan(Promise(math.inf, 0.0), reads_groups=True).event == NonPrivate()
    free = plan(Promise(1.0, 0.0, "sensitive_features"), reads_groups=False)
    assert (free.event, free.noise.sd) == (NoOp(), 0.0)
    assert plan(Promise(1.0, 0.0), reads_groups=False).noise.sd > 0


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_counts_beside_a_release_lose_no_more_than_its_gaussian_part(neighbours: str) -> None:
    """Guarantee 4, and none where the release has little of it."""
    from fairveil.core.events import Event, Gaussian, PoissonSampled, Pure, Repeated, compose
    from fairveil.privacy import delta

    promise = Promise(1.0, 1e-6, neighbours=neighbours)
    steps: Event = compose([Repeated(Gaussian(40.0), 60), Gaussian(6.5)])
    found = beside(promise, compose([steps, Pure(0.01)]))
    assert found is not None
    assert found.multiplier >= 1.0 / np.sqrt(60 / 40.0**2 + 1 / 6.5**2) * (1 - 1e-12)
    assert all(
        delta(found.event, at, neighbours) <= delta(steps, at, neighbours) * (1 + 1e-9)
        for at in (0.0, 0.3, 1.0)
    )
    assert beside(promise, Pure(1.0)) is None
    assert beside(promise, compose([Gaussian(30.0), PoissonSampled(0.1, Gaussian(1.0))])) is None
    assert beside(Promise(1.0, 0.0, neighbours=neighbours), steps) is None
