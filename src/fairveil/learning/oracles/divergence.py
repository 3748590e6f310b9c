"""What an oracle guarantees, as bounds on divergences between its distributions on neighbours
(Alabi, section 7).

The paper states a linear optimiser by one divergence: the largest (Definition 7.1, pure), the
largest but for delta (7.2), or Renyi's at one order (7.3). One event says all of them, and the
house accountant reads them off:

| reading                  | Gaussian of multiplier z  | exponential mechanism of epsilon              |
| `pure`                   | infinite                  | epsilon                                       |
| `approximate(delta)`     | Balle and Wang, exact     | at most epsilon                               |
| `zero_concentrated`      | 1 / (2 z^2)               | epsilon^2 / 8                                 |
| `renyi(order)`           | order / (2 z^2)           | at most order epsilon^2 / 8, and epsilon      |

A promise at one order composes badly (theory.md#objectives): keep the whole `curve`, or the
`event`, which any accountant takes and which composes with others' events.

Guarantees (tests/learning/test_learning_divergence.py):
1. No reading is below the divergence between any two neighbours' distributions.
2. The readings agree with one another: each that follows from another is no larger than what
   follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ... import _checks
from ...core import cost as accounting
from ...core import cost as routes
from ...core import inventory as leaves
from ...core import renyi as renyi
from ...core.events import (
    DiscreteGaussian,
    Event,
    Exponential,
    PoissonSampled,
    Repeated,
    VisiblySampled,
    ZeroConcentrated,
    compose,
)
from ...core.promise import Neighbours
from ...errors import InputError


@dataclass(frozen=True)
class Divergence:
    """What an event guarantees between neighbours of that relation: upper bounds, infinite where
    there is none.

    >>> from fairveil.core.events import Gaussian
    >>> found = Divergence(Exponential(0.8))
    >>> (
    ...     found.pure,
    ...     round(found.zero_concentrated, 3),
    ...     round(Divergence(Gaussian(2.0)).renyi(4.0), 3),
    ... )
    (0.8, 0.08, 0.5)
    """

    event: Event
    neighbours: Neighbours = "add-remove"

    @property
    def pure(self) -> float:
        """Epsilon at delta 0 (Definition 7.1): the largest log ratio of probabilities."""
        return accounting.epsilon(self.event, 0.0, self.neighbours)

    def approximate(self, delta: float) -> float:
        """Epsilon at that delta (Definition 7.2)."""
        return accounting.epsilon(self.event, delta, self.neighbours)

    @property
    def zero_concentrated(self) -> float:
        """rho: the Renyi divergence is at most order x rho at every order."""
        return _rho(self.event, self.neighbours)

    def renyi(self, order: float) -> float:
        """The Renyi divergence at an order above 1 (Definition 7.3), both ways, but for an event of
        probability `leak`."""
        if not (order := _checks.positive(order=order, allow_inf=True)) > 1.0:
            remedy = "Order 1 is the Kullback-Leibler divergence, infinity is `pure`."
            raise InputError.expected("an order above 1", of="order", got=order, remedy=remedy)
        total = leaves.inventory(self.event, self.neighbours)
        if math.isinf(order) or not total.private or routes.whole_error(total, self.neighbours) > 0:
            return self.pure
        least = min(order * self.zero_concentrated, self.pure)
        if order > renyi.ORDERS[-1]:
            return least
        # (order - 1) x divergence is convex in the order, and 0 at 1: its chords are above it.
        steps, values = renyi.ORDERS - 1.0, renyi.total(total, self.neighbours).values
        chord = np.interp(order - 1.0, np.append(0.0, steps), np.append(0.0, steps * values)) / (
            order - 1.0
        )
        return min(least, float(chord))

    @property
    def leak(self) -> float:
        """What `renyi` leaves out: the delta of a mechanism known as (epsilon, delta), or a far
        tail of a secret batch."""
        total = leaves.inventory(self.event, self.neighbours)
        return renyi.total(total, self.neighbours).leak if total.private else 1.0

    def curve(self, orders: Sequence[float]) -> tuple[tuple[float, float], ...]:
        """(order, divergence) at each."""
        return tuple((float(order), self.renyi(order)) for order in orders)

    def times(self, calls: int) -> Divergence:
        """Of so many calls, each with weights made of what earlier ones released."""
        return Divergence(
            compose([Repeated(self.event, _checks.whole(calls=calls))]), self.neighbours
        )


def _rho(event: Event, neighbours: Neighbours) -> float:
    """Sums over mechanisms; a pure one is epsilon^2 / 2, a secret or visible batch at most what it
    is on all rows."""
    total = leaves.inventory(event, neighbours)
    if not total.private or routes.whole_error(total, neighbours) > 0:
        return math.inf
    return total.gaussian / 2.0 + math.fsum(
        count * _rho_of(one, neighbours) for one, count in total.others
    )


def _rho_of(event: Event, neighbours: Neighbours) -> float:
    match event:
        case ZeroConcentrated():
            return event.rho
        case DiscreteGaussian():
            return event.noise_multiplier**-2 / 2.0
        case Exponential():
            return event.epsilon**2 / 8.0
        case VisiblySampled():
            return _rho(event.event, neighbours)
        case PoissonSampled():
            batch = leaves.one_batch(event, neighbours)
            joint = batch.replaced or batch.alone
            return (
                joint.mu**2 / 2.0
                + joint.rho
                + (joint.s**2 + max(loss for loss, _ in joint.atoms) ** 2) / 2.0
            )
    pure, delta = routes.addition(leaves.inventory(event, neighbours), neighbours)
    return pure**2 / 2.0 if delta == 0.0 else math.inf
