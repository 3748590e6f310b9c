"""The rule by which anybody recomputes what a statement's events cost: without NumPy, without the
accountant that stated the price. docs/statement_spec.md says it in words and formulas, and
docs/site/static/check.js is the same rule in another language.

Guarantees (tests/statement/test_rule.py).
1. `price` is never below the cost of the events.
2. It is at most a thousandth above what the accountant states.
3. It ends, whatever the events are: what is too large for it is `Unpriced`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from .counts import Event, Inventory, Joint, batch, gaussian_epsilon, inside, inventory

SLACK, ON_A_GRID = 1e-9, 1e-3
"""A stated epsilon may fall short of the recomputed one by this fraction: of closed forms, and where
losses were put on a grid."""


def is_within(found: tuple[float, bool], stated: float) -> bool:
    """Whether a stated epsilon covers what was found, but for the tolerance."""
    return found[0] <= stated * (1 + (ON_A_GRID if found[1] else SLACK))


def addition(total: Inventory, neighbours: str) -> tuple[float, float]:
    """Epsilons and deltas of mechanisms with a pure part, add up."""
    if total.square > 0:
        return math.inf, 0.0
    pairs = [(_pure(event, neighbours), times) for event, times in total.others]
    if any(math.isinf(epsilon) for (epsilon, _), _ in pairs):
        return math.inf, 0.0
    return tuple(math.fsum(pair[at] * times for pair, times in pairs) for at in (0, 1))  # type: ignore[return-value]


def _pure(event: Event, neighbours: str) -> tuple[float, float]:
    kind = event[0]
    if kind in ("pure", "exponential"):
        return event[1], 0.0
    if kind == "approximate":
        return event[1], event[2]
    if kind in ("laplace", "discrete-laplace"):
        return math.nextafter(1 / event[1], math.inf), 0.0
    if kind == "poisson-sampled":
        most = max(_pure_joint(one) for one in batch(event, neighbours) if one is not None)
        if most < 700:
            most = math.log1p(event[1] * math.expm1(most))
        return most * (1 + 2.0**-48), 0.0
    if kind in ("visibly-sampled", "private-selection"):
        within, leak = addition(inventory(inside(event)[0], neighbours), neighbours)
        if kind == "visibly-sampled":
            return within, event[1] * leak
        bounded = not math.isinf(event[3]) and leak == 0
        return ((2 + event[3]) * within * (1 + 2.0**-48) if bounded else math.inf), 0.0
    return math.inf, 0.0


def _pure_joint(one: Joint) -> float:
    mu, s, atoms, rho = one
    return math.inf if mu > 0 or rho > 0 else s + max(loss for loss, _ in atoms)


def whole_error(total: Inventory, neighbours: str) -> float:
    """The samplers' total variation, with that inside visible batches and selections."""
    errors = [total.error]
    for event, times in total.others:
        if event[0] in ("visibly-sampled", "private-selection"):
            runs = event[2] if event[0] == "private-selection" else 1.0
            within = whole_error(inventory(inside(event)[0], neighbours), neighbours)
            errors.append(times * runs * within)
    return min(1.0, math.fsum(errors))


def _with_error(route: Callable[[float], float], delta: float, error: float) -> float:
    """The least e with route(delta - (1 + e^e) error) <= e, from above (theory T7)."""
    if error == 0:
        return route(delta)
    guess = 0.0
    for _ in range(60):
        ahead = guess * (1 + 1e-7) + 1e-12
        left = delta - (1 + math.exp(min(ahead, 700.0))) * error
        if left <= 0:
            return math.inf
        found = route(left)
        if found <= ahead:
            return ahead
        guess = found
    return math.inf


BY_MOMENTS = ("zero-concentrated", "discrete-gaussian", "private-selection")


@cache
def price(event: Event, delta: float, neighbours: str) -> tuple[float, bool]:
    """The epsilon of these events at this delta, and whether a grid was used for it."""
    total = inventory(event, neighbours)
    if not total.private:
        return math.inf, False
    error = whole_error(total, neighbours)
    if not total.others:
        mu = math.sqrt(total.square)
        return _with_error(lambda room: gaussian_epsilon(mu, room), delta, error), False
    plain, leak = addition(total, neighbours)
    best = _with_error(lambda room: plain if room * (1 + 1e-12) >= leak else math.inf, delta, error)
    on_a_grid = False
    if delta > 0:
        from . import losses

        kinds = {event[0] for event, _ in total.others}
        found = []
        if kinds & {*BY_MOMENTS, "exponential", "visibly-sampled"} or any(
            event[0] == "poisson-sampled" and batch(event, neighbours)[0][3]
            for event, _ in total.others
        ):
            values, lost, off = losses.total_moments(total, neighbours)

            def by_moments(room: float) -> float:
                return (
                    losses.moments_epsilon(values, losses.ORDERS, room - lost)
                    if room > lost
                    else math.inf
                )

            found.append(_with_error(by_moments, delta, off))
        if kinds - set(BY_MOMENTS):
            found.append(
                _with_error(lambda room: losses.by_losses(total, room, neighbours), delta, error)
            )
        if min(found) < best:
            best, on_a_grid = min(found), True
    return best, on_a_grid
