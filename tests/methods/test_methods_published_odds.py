"""The published odds objectives in searches: what takes part, what is refused, and Example 8.10
from end to end."""

from __future__ import annotations

import game_samples as g
import group_samples as s
import numpy as np
import pytest

from fairveil.curator import Curator
from fairveil.errors import InputError
from fairveil.fairness import objectives as ob
from fairveil.methods.objectives import plan_sampling
from fairveil.methods.oracles import thresholds
from fairveil.privacy import NoiseSource


def test_a_cell_that_noise_cannot_tell_from_none_takes_part_as_a_gap_of_0() -> None:
    """Lines of a comparison stay in their places: one that was left out would pair others
    wrongly."""
    rows = g.rows_from(*g.sample(1, 400, groups=(3,)), groups=(3,))
    problem = s.problem_of(rows, g.RECORDS, ob.SmoothedOddsOfPairs())
    counts = np.array([[100.0, 100.0], [100.0, 0.5], [50.0, 50.0]])
    posed = problem.pose(counts, 2.0, 5.0)
    assert posed.f.lines.shape[0] == 6
    losses = posed.shares[:, :, np.newaxis] * np.array([0.5, 0.5])
    losses[0, 1] = posed.shares[0, 1] * np.array([0.1, 0.9])
    told = posed.f.rates(losses)
    assert told[[1, 5]] == pytest.approx(0.0)  # true positives of the second group
    assert told[3] == pytest.approx(0.4)
    with_others = s.problem_of(rows, g.RECORDS, ob.SumOfErrorRates()).pose(counts, 2.0, 5.0)
    assert with_others.f.lines.shape[0] == 5  # a sum leaves out that rate alone


@pytest.mark.parametrize("one", [ob.SmoothedOddsOfPairs(), ob.SmoothedOddsOfRates()], ids=str)
def test_no_search_that_needs_a_convex_function_takes_them(one: ob.Objective) -> None:
    rows = g.rows_from(*g.sample(1, 80))
    with pytest.raises(InputError, match="convex"):
        s.problem_of(rows, g.RECORDS, "error", one.at_most(0.1)).require_convex()


@pytest.mark.parametrize("relation", ["add", "replace", "groups"])
def test_exponential_sampling_under_example_8_10_finds_a_feasible_threshold(relation: str) -> None:
    """f and g of the example, one threshold: of 2,000 rows, whose score shifts by group."""
    rng = np.random.default_rng(5)
    group = rng.integers(2, size=2000)
    score = np.clip(0.4 * rng.normal(size=2000) + 0.1 * group, -1, 1)
    label = (score + 0.3 * rng.normal(size=2000) > 0).astype(int)
    rows = g.rows_from(score[:, np.newaxis], label, [group])
    problem = s.problem_of(
        rows, g.PROMISES[relation], ob.SumOfErrorRates(), ob.SmoothedOddsOfRates().at_most(0.3)
    )
    sampling = plan_sampling(problem, thresholds(rows.layout))
    stated = None if problem.ground.promise.rows_are_public else problem.ground.public_rows
    curator = Curator(
        rows,
        problem.ground.promise,
        plan=sampling.plan,
        noise=NoiseSource.seeded(0),
        public_rows=stated,
    )
    found, _ = sampling.run(curator)
    assert found.objective < 1.4  # 2 by chance; 1.1 at best
