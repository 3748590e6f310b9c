"""One more release, chosen after what was released before it was looked at: the price of both
together (theory.md#t10).

`before` is a plan that was fixed before data were read. Its answers are seen, and only then it
is decided what is released next. The tight total of both is no bound: two releases may each
complete `before` to exactly (epsilon, delta), and choosing between them by its answers goes beyond
that. A filter is one way out. This is another, with less noise: two references, one pure and one
Gaussian (delta 0: the pure one alone), that the promise and `before` fix by themselves.

Theorem. Let `before` lose a probability `lost` for certain, whatever follows (what `Approximate`
events lose), and let each of k references together with `before` cost at most epsilon at delta
`lost + (delta - lost) / k`. Then `before`, and after it any release that is no easier to
distinguish than one of the references, are (epsilon, delta)-differentially private together,
however that release is chosen by what was seen. (The proof is in docs/cost.md.)

The promise must have been fixed before anything was seen; everything else may be chosen afterwards.

Guarantees (tests/privacy/test_two_steps.py):
1. No way to choose the second release needs more than the promised delta, among all that `TwoSteps`
   admits.
2. A price is never below that of both releases as a plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ... import _checks
from ...core import cost
from ...core import inventory as leaves
from ...core.cost import Events, Price, price
from ...core.events import Approximate, Event, Gaussian, NoOp, Pure
from ...core.promise import Neighbours, Promise
from ...core.promise import relation as checked_relation
from ...errors import InputError

KIND = "two-step"
REFERENCES = 2
"""Pure and Gaussian: the kinds of noise that are distinguished."""
ROUNDED = 1e-15


@dataclass(frozen=True)
class TwoSteps:
    """The rule by which a promise is kept where the last release was chosen after all others were
    looked at: the terms that a `Filter` has for a statement, which asks whether it admits the
    log (`statement.rule.two_steps`)."""

    promise: Promise
    kind: str = KIND
    order: float | None = None
    reserve: float = 0.0


def price_after(
    before: Events, after: Events, delta: float, neighbours: str = "add-remove"
) -> Price:
    """What `before`, fixed in advance, and `after`, chosen when the answers of `before` had been
    seen, cost together.

    `after`: pure releases alone, or unsampled Gaussians alone.

    >>> from fairveil.core.events import DiscreteLaplace
    >>> one, other = [Gaussian(8.0)], [DiscreteLaplace(2.0)]
    >>> (
    ...     round(price([*one, *other], 1e-6).epsilon, 3),
    ...     round(price_after(one, other, 1e-6).epsilon, 3),
    ... )
    (0.99, 1.01)
    """
    relation = checked_relation(neighbours)
    target = _checks.fraction(delta=delta, high_open=True, remedy="Pass delta=1e-6, for example.")
    first, second = leaves.as_event(before), leaves.as_event(after)
    if _nothing(first, relation) or _nothing(second, relation):
        return price((first, second), target, relation)
    found = price((first, reference(second, relation)), share_of(first, target, relation), relation)
    return Price(found.epsilon, target, relation, f"{found.route}, in two steps")


def share_of(before: Event, delta: float, neighbours: Neighbours) -> float:
    """The delta at which `before` and one reference must keep epsilon: what is lost for certain,
    and half of the rest."""
    if delta <= 0.0:
        return delta
    lost = min(delta, _lost(before, neighbours))
    return lost + (delta - lost) / REFERENCES


def within(promise: Promise, before: Event) -> Promise:
    """The promise that `before` and one reference must keep."""
    return replace(promise, delta=share_of(before, promise.delta, promise.neighbours))


def reference(after: Event, neighbours: Neighbours) -> Event:
    """The reference that `after` is measured by: everything that is no easier to distinguish is
    admitted alike."""
    total = leaves.inventory(after, neighbours)
    if total.private and not total.total_variation:
        if not total.others:
            return (
                Gaussian((1.0 - ROUNDED) / math.sqrt(total.gaussian))
                if total.gaussian > 0
                else NoOp()
            )
        epsilon, leak = cost.addition(total, neighbours)
        if math.isfinite(epsilon) and leak == 0.0:
            return Pure(epsilon)
    raise InputError.expected(
        "pure releases alone, or unsampled Gaussians alone",
        of="what was released after the rest was looked at",
        got=after.kind,
        remedy="Cap such releases by a filter: fairveil.privacy.Filter.",
    )


def _nothing(event: Event, neighbours: Neighbours) -> bool:
    total = leaves.inventory(event, neighbours)
    return total.private and not total.others and total.gaussian == 0 and total.total_variation == 0


def _lost(before: Event, neighbours: Neighbours) -> float:
    """The probability that `Approximate` events lose everything, from below: whatever follows loses
    no more there."""
    lost = [
        (event, count)
        for event, count in leaves.inventory(before, neighbours).others
        if isinstance(event, Approximate)
    ]
    if len(lost) == 1 and lost[0][1] == 1:
        return lost[0][0].delta
    kept = math.fsum(count * math.log1p(-event.delta) for event, count in lost)
    return max(0.0, -math.expm1(kept) * (1.0 - 1e-12))
