"""What a search for a group objective asks, and at what price: made of public values alone, before
any data are touched."""

from __future__ import annotations

import math
from typing import Any

from ... import _checks
from ..gaussian import OR_EXPONENTIAL, quietest
from ..oracles import GameInstance, Oracle, Responses
from .loop import Loop
from .played import MEASURING, compared
from .problem import Problem
from .public_features import SETTLED, PublicSearch

COUNTS_SHARE = 0.05
"""Of the squared budget, for the counts; the oracle's shares are its own, and the rest is for what
rules turn out to do."""
COMPARED = 0.15
"""Of the rest, for how the oracle's rule without constraints decides, where it has one."""
ROUNDS, LEADING = 100, 20
# rounds of an oracle that comes nearer from round to round, where one decision is the answer
SETTLING = 50
CLEAR = 0.006
"""Noise of one round's rates, in a cell of usual size, below which the leader's prices are
followed: they move at once, and few rounds do. More, and the auditor's are, which noise moves
less."""
ON_PUBLIC_ROWS = 60
MOST = 500  # rounds without noise
PENALTY, SMOOTH_PENALTY = 20.0, 5.0  # the second of Frank-Wolfe, whose steps it makes smaller
WIDTH = 0.01


def plan_loop(
    problem: Problem,
    oracle: Oracle[Any],
    *,
    step_by: str | None = None,
    rounds: int | None = None,
    penalty: float | None = None,
    width: float | None = None,
) -> Loop:
    """The loop whose noise is the least that keeps the promise. `step_by`: None for the auditor,
    without noise the leader."""
    ground = problem.ground
    oracle.require(ground)
    audit_share = 1.0 - COUNTS_SHARE - oracle.once_share - oracle.rounds_share
    compares = compared(ground, oracle)
    stated = None if rounds is None else _checks.whole(at_least=1, rounds=rounds)
    clear = _noise(ground, audit_share, stated or LEADING) <= CLEAR
    usual = "leader" if clear and oracle.looks_for_the_least else "auditor"
    how = "last" if problem.is_linear and not oracle.in_turn else step_by or usual
    fewest = {"last": SETTLING if oracle.burn_in else 1, "leader": LEADING}.get(how, ROUNDS)
    chosen = stated or (MOST if ground.is_exact and how == "leader" else fewest)
    strong = SMOOTH_PENALTY if how == "frank-wolfe" else PENALTY
    pressed = strong if penalty is None else _checks.positive(penalty=penalty)
    blurred = WIDTH if width is None else _checks.positive(width=width)

    def at(z: float) -> Loop:
        once = z / math.sqrt(oracle.once_share) if oracle.once_share else 0.0
        in_a_round = z * math.sqrt(chosen / oracle.rounds_share) if oracle.rounds_share else 0.0
        heard = audit_share * (1.0 - COMPARED if compares else 1.0)
        counts, audit = z / math.sqrt(COUNTS_SHARE), z * math.sqrt(chosen / heard)
        free = z / math.sqrt(audit_share * COMPARED) if compares else 0.0
        return Loop(
            problem, oracle.at(once, in_a_round), chosen, how, pressed, blurred, counts, audit, free
        )

    return quietest(ground.promise, at, Loop.events, exact=ground.is_exact, way_out=OR_EXPONENTIAL)


def plan_public(
    problem: Problem, oracle: Responses, *, rounds: int | None = None, penalty: float | None = None
) -> PublicSearch:
    """The search on public rows whose noise is the least that keeps the promise."""
    ground = problem.ground
    oracle.require(ground)
    audit_share = 1.0 - COUNTS_SHARE - oracle.once_share
    chosen = ON_PUBLIC_ROWS if rounds is None else _checks.whole(at_least=1, rounds=rounds)
    pressed = PENALTY if penalty is None else _checks.positive(penalty=penalty)

    def at(z: float) -> PublicSearch:
        once, counts = z / math.sqrt(oracle.once_share), z / math.sqrt(COUNTS_SHARE)
        audit = z * math.sqrt(chosen / (audit_share * (1.0 - SETTLED)))
        settled = z / math.sqrt(audit_share * SETTLED)
        return PublicSearch(problem, oracle.at(once, 0.0), chosen, pressed, counts, audit, settled)

    return quietest(
        ground.promise, at, PublicSearch.events, exact=ground.is_exact, way_out=OR_EXPONENTIAL
    )


def _noise(ground: GameInstance, share: float, rounds: int) -> float:
    """The noise that steers in one of so many rounds, in units of a rate of a cell of usual size.
    Public facts alone: infinite where the number of rows is not among them."""
    from ...core.cost import gaussian_mu

    if ground.is_exact:
        return 0.0
    mu = gaussian_mu(ground.promise.epsilon, ground.promise.delta)
    if ground.public_rows is None or mu <= 0:
        return math.inf
    usual = ground.public_rows / (ground.groups * ground.classes)
    return (
        math.sqrt(2.0 * rounds / (share * (1.0 - MEASURING)))
        * ground.promise.rows_per_unit
        / mu
        / usual
    )
