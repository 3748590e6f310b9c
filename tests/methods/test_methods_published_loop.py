"""The lesson of theory.md#objectives: weights computed from the data make the published loop
non-private; ours are released.

`published_*` is Algorithm 2 of the paper as printed, with the exponential mechanism of its Theorem
5.10 for an oracle. It is NOT PRIVATE, whatever it claims, and lives here alone. All probabilities
are exact: one call, two candidates or a grid.

The table: 1,000 rows in two groups. Decision 0 errs on 767 rows of group 0, decision 1 on 183 rows
of group 1, and f = errors of group 0 / n, g = errors of group 1 / n - 0.183. In the neighbour one
row of group 1 is another, and decision 1 errs on 182: g(l(decision 1)) is below 0, and the
indicator 1[g >= 0] of the weights flips.
"""

from __future__ import annotations

import math
from typing import Any

import game_samples as g
import group_samples as s
import numpy as np
import pytest
from scipy.special import logsumexp

from fairveil.core.choices import rate
from fairveil.core.promise import Promise
from fairveil.curator import Curator
from fairveil.fairness.objectives import WeightedError
from fairveil.methods.objective_loop import plan_loop
from fairveil.methods.oracles import Choice, LinearClass
from fairveil.privacy import epsilon as price

ROWS, FIRST, SECOND = 1000, 767, 183
CLAIMED = 0.1  # what one call of the published oracle says that it costs
LIMIT = SECOND / ROWS


# ---- the published loop: NOT PRIVATE
# -------------------------------------------------------------------------------------


def published_oracle(losses: Any, weights: Any, rows: int, epsilon: float) -> Any:
    """Theorem 5.10: P(c) ~ exp(-epsilon w l(c) / (2 D)), D = |w| sqrt(K) / n. epsilon-private, for
    one w whatever the rows."""
    scores = (
        -epsilon
        * rows
        * (losses @ weights)
        / (2.0 * np.linalg.norm(weights) * math.sqrt(losses.shape[1]))
    )
    return scores - logsumexp(scores)


def published_weights(losses: Any, penalty: float) -> Any:
    """Algorithm 2, line 10: grad f + 1[g >= 0] grad g at the *exact* losses of the last decision (G
    is missing there)."""
    return np.array([1.0, penalty * float(losses[1] - LIMIT >= 0.0)])


def published_call(losses: Any, last: int, penalty: float) -> Any:
    """The distribution of the next decision, in logarithms."""
    return published_oracle(losses, published_weights(losses[last], penalty), ROWS, CLAIMED)


# ---- the same table for both
# ---------------------------------------------------------------------------------------------


def table(second: int = SECOND, *, moved: bool = False) -> Any:
    """Rows: x = (1, 0), label 1, of group 0; `second` of x = (0, 1), label 1, of group 1; the
    others of group 1 x = (0, 0), label 0. `moved`: one of x = (0, 1) is of group 0."""
    sizes = [FIRST, second, ROWS - FIRST - second]
    X = np.repeat([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], sizes, axis=0)
    group = np.repeat([0, 1, 1], sizes)
    group[FIRST] -= moved
    return g.rows_from(X, np.repeat([1, 1, 0], sizes), [group])


# 0: yes to x = (0, 1); 1: to (1, 0)
DECISIONS = LinearClass(np.array([[[-0.5, 0.0, 1.0]], [[-0.5, 1.0, 0.0]]]))


def problem_of(rows: Any, promise: Promise) -> Any:
    objective = WeightedError(groups={0: 1.0, 1: 0.0})
    return s.problem_of(
        rows, promise, objective, WeightedError(groups={0: 0.0, 1: 1.0}).at_most(LIMIT)
    )


def losses_of(rows: Any) -> Any:
    """Exactly: (decisions, groups), errors in a group over n."""
    tables = s.tables_of(rows, DECISIONS, problem_of(rows, g.EXACT))
    return (tables * (1.0 - np.eye(2))).sum(axis=(2, 3))


def neighbours() -> tuple[Any, Any]:
    return table(), table(SECOND - 1)


def test_the_table_is_the_example() -> None:
    here, there = map(losses_of, neighbours())
    assert here.tolist() == [[0.767, 0.0], [0.0, 0.183]]
    assert there.tolist() == [[0.767, 0.0], [0.0, 0.182]]


@pytest.mark.parametrize(("penalty", "lost"), [(10.0, 27.1), (1.0, 12.5)])
def test_one_call_of_the_published_loop_costs_a_hundred_times_its_claim(
    penalty: float, lost: float
) -> None:
    """The figures of theory.md#objectives, with G = 10 and as printed; at one w for both tables the
    oracle keeps its word."""
    here, there = map(losses_of, neighbours())
    laws = [published_call(losses, 1, penalty) for losses in (here, there)]
    assert np.abs(laws[0] - laws[1]).max() == pytest.approx(lost, abs=0.1)
    for weights in ([1.0, 0.0], [1.0, penalty]):
        fixed = [
            published_oracle(losses, np.array(weights), ROWS, CLAIMED) for losses in (here, there)
        ]
        assert np.abs(fixed[0] - fixed[1]).max() <= CLAIMED


def test_no_indicator_is_needed_smooth_weights_of_the_data_are_not_private_either() -> None:
    """f(l) = |l|^2 / 2, smooth and without a constraint: w is l(c, D) itself. More than 0.12 at a
    claim of 0.1."""
    rows, largest = 100, 0.0
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    for last in np.arange(10, 60, 2) / rows:
        here = np.vstack([corners, [[last, last]]])
        there = here.copy()
        # one row, on which the last decision errs and others do not differ
        there[-1, 0] += 1.0 / rows
        laws = [published_oracle(losses, losses[-1], rows, CLAIMED) for losses in (here, there)]
        fixed = [published_oracle(losses, here[-1], rows, CLAIMED) for losses in (here, there)]
        assert np.abs(fixed[0] - fixed[1]).max() <= CLAIMED
        largest = max(largest, float(np.abs(laws[0] - laws[1]).max()))
    assert largest > 1.2 * CLAIMED


# ---- ours, on the same table
# ---------------------------------------------------------------------------------------------


def law(rows: Any, loop: Any, questions: Any, costs: Any) -> Any:
    """The exact distribution of one of our choices, in logarithms."""
    contest = Curator(rows, loop.ground.promise)._chooser.contest(
        tuple(questions), None, costs, None
    )
    logits = -rate(loop.oracle.epsilon, contest.steps) * contest.rounded(contest.found())
    return logits - logsumexp(logits)


@pytest.mark.parametrize("relation", ["replace", "groups"])
@pytest.mark.parametrize("step_by", ["auditor", "frank-wolfe", "leader"])
def test_ours_stays_within_its_price_on_the_same_table(relation: str, step_by: str) -> None:
    """Given what was released, every choice of a run has distributions on both tables that are
    within epsilon of one choice; and what was released is Gaussian, within the plan's distance.
    Together: the plan, whose price is the promise."""
    here, there = neighbours() if relation == "replace" else (table(), table(moved=True))
    promise = g.PROMISES[relation]
    loop = plan_loop(
        problem_of(here, promise), Choice(DECISIONS), rounds=12, step_by=step_by, penalty=10.0
    )
    for seed in range(3):
        curator = s.curator_for(loop, here, seed, s.Recorded)
        loop.run(curator)
        assert len(curator.choices) == 12
        ratios = [
            float(
                np.abs(law(here, loop, questions, costs) - law(there, loop, questions, costs)).max()
            )
            for questions, _, costs, _ in curator.choices
        ]
        assert max(ratios) <= loop.oracle.epsilon * (1 + 1e-9)
        gaussians = 1 / loop.counts_multiplier**2 + 12 / loop.audit_multiplier**2
        assert s.moved(curator.tape, here, there, promise) <= gaussians * (1 + 1e-9)
    assert price(loop.plan, promise.delta, promise.neighbours) <= promise.epsilon


def test_our_weights_do_not_see_what_the_published_ones_flip_on() -> None:
    """With the same answers our prices are the same on both tables, whichever side of the limit the
    true losses are."""
    here, there = neighbours()
    loop = plan_loop(problem_of(here, g.REPLACE), Choice(DECISIONS), rounds=6, penalty=10.0)
    first = s.curator_for(loop, here, 1, s.Recorded)
    found = loop.run(first)
    costs = [given for _, _, given, _ in first.choices]

    class Asked(s.Teller):
        heard: list[Any]

        def choose(self, *given: Any, **named: Any) -> Any:
            self.heard.append(named["costs"])
            return super().choose(*given, **named)

    teller: Any = Asked(g.REPLACE, first.told)
    teller.heard = []
    assert s.same(found, loop.run(teller))
    assert all(np.array_equal(one, other) for one, other in zip(costs, teller.heard, strict=True))
    flips = {published_weights(losses[1], 10.0)[1] for losses in map(losses_of, (here, there))}
    assert flips == {0.0, 10.0}
