"""What a game asks, and at what price: made of public values alone, before any data are read.

The squared budget is shared by the counts, the oracle and the auditor; rounds and dual bound follow
from the noise that this foretells.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _checks
from ..gaussian import quietest
from ..oracles.ground import GameInstance
from ..oracles.oracle import Oracle
from .description import compared
from .game import Game

FEWEST, MOST = 50, 500  # rounds
LEAST_BOUND, MOST_BOUND = 2.0, 5.0
SETTLED = 0.6
"""Of the audits' share, where the oracle makes the mixture: for the mixture's own count."""
COMPARED = 0.15
"""Of the audits' share, for how the oracle's rule without constraints decides."""
PRESSURE = 0.05  # of the noise of all audits, times the dual bound


def plan(
    ground: GameInstance,
    oracle: Oracle[Any],
    *,
    dual_bound: float | None = None,
    rounds: int | None = None,
    confidence: float = 0.95,
    only_false_positives: bool = False,
    counts_share: float = 0.05,
) -> Game:
    """The game whose noise is the least that keeps the promise.

    Shares of the squared budget: the counts', the oracle's, the auditor's the rest. Without
    constraints there is one round, or none that asks, where what the oracle releases once is a rule
    already.
    """
    oracle.require(ground)
    constraints = 0 if ground.system is None else len(ground.system)
    audit_share = (
        1.0 - counts_share - oracle.once_share - oracle.rounds_share if constraints else 0.0
    )
    compares = compared(ground, oracle)
    prepares = oracle.knows_free and not constraints
    noise = _audit_noise(ground, audit_share) if constraints else 0.0
    usual = float(ground.groups) if ground.group_aware else _dual_bound(noise)  # Corollary 4.6.1
    bound = usual if dual_bound is None else _checks.positive(dual_bound=dual_bound)
    chosen = (
        _checks.whole(at_least=1, rounds=rounds)
        if rounds is not None
        else _rounds(ground, oracle, constraints, noise)
    )

    def at(z: float) -> Game:
        once_share = 1.0 - counts_share if prepares else oracle.once_share
        once = z / math.sqrt(once_share) if once_share else 0.0
        share = oracle.rounds_share
        in_a_round = z * math.sqrt(chosen / share) if share and not prepares else 0.0
        heard = audit_share * (
            1.0 - SETTLED if oracle.settles else 1.0 - COMPARED if compares else 1.0
        )
        audit = z * math.sqrt(chosen / heard) if constraints else 0.0
        settled = z / math.sqrt(audit_share * SETTLED) if constraints and oracle.settles else 0.0
        free = z / math.sqrt(audit_share * COMPARED) if compares else 0.0
        counts = z / math.sqrt(counts_share)
        parts = (
            oracle.at(once, in_a_round),
            chosen,
            bound,
            counts,
            audit,
            confidence,
            only_false_positives,
            settled,
            free,
        )
        return Game(ground, *parts)

    return quietest(ground.promise, at, Game.events, exact=ground.is_exact)


def _audit_noise(ground: GameInstance, share: float) -> float:
    """The noise of all audits together, in units of a rate of a cell of usual size: of one of T
    audits it is sqrt(T) of that.

    Public facts alone; as much as a whole rate where the number of rows is not among them.
    """
    from ...core.cost import gaussian_mu

    if ground.is_exact:
        return 0.0
    mu, rows = gaussian_mu(ground.promise.epsilon, ground.promise.delta), ground.public_rows
    if rows is None or mu <= 0:
        return 1.0
    return (
        math.sqrt(2.0)
        * ground.promise.rows_per_unit
        / (mu * math.sqrt(share))
        / _usual_cell(ground, rows)
    )


def _usual_cell(ground: GameInstance, rows: float) -> float:
    return rows / (ground.groups * (ground.classes if ground.by_label else 1))


def _dual_bound(noise: float) -> float:
    """As large as leaves dual_bound x noise, which the auditor's regret is made of, below
    `PRESSURE`: the larger, the closer to the bounds the game ends (Theorem 4.4)."""
    return min(max(PRESSURE / noise if noise > 0 else math.inf, LEAST_BOUND), MOST_BOUND)


def _rounds(ground: GameInstance, oracle: Oracle[Any], constraints: int, noise: float) -> int:
    """How many rounds: the paper's balance of the two players' regrets, with the constants of this
    game's noise.

    With noise c sqrt(T) in one of T audits the auditor's regret is about dual_bound sqrt(ln(1 + K))
    sqrt(1 / T + c^2): T = 1 / c^2 rounds come within sqrt(2) of the best. A learner that spends in
    every round has a regret of r sqrt(T) dual_bound: T = sqrt(ln(1 + K)) / r (the paper's formula).
    """
    from ...core.cost import gaussian_mu

    if not constraints:
        return 1 if oracle.burn_in == 0 or oracle.knows_free else FEWEST
    most = oracle.most_rounds or MOST
    if noise == 0.0:
        return most
    rows = ground.public_rows
    if rows is None:
        return min(2 * FEWEST, most)
    wanted = 1.0 / noise**2
    if oracle.rounds_share:
        mu = gaussian_mu(ground.promise.epsilon, ground.promise.delta)
        costs = np.zeros((ground.groups, ground.classes, ground.classes))
        costs[0, :, 0] = 1.0 / _usual_cell(ground, rows)
        unit, known = oracle.at(1.0, 1.0 / (mu * math.sqrt(oracle.rounds_share))).regret(
            ground, costs
        )
        if 0 < unit < math.inf:
            wanted = min(wanted, math.sqrt(math.log(1 + constraints)) / (unit * (known + 1.0)))
    return int(min(max(wanted, FEWEST), most))
