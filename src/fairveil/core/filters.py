"""A cap on fits that are chosen one after another, each after seeing what came before
(theory.md#t10).

A tight total of a fixed list is *not* such a cap: two mechanisms may each complete a list to
exactly (epsilon, delta), and choosing between them by an earlier answer goes beyond it. A filter
fixes, before anything is asked, one number that only adds up, and admits a fit while the sum stays
within:

- `gaussian`: the sum of mu^2 of releases that are each no easier to distinguish than a Gaussian of
  mu (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023): unsampled Gaussians exactly, pure
  ones by the Gaussian just below their trade-off curve.
- `zcdp`: the sum of rho (Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers and Wu 2023).
- `renyi`: the sum of the divergences at ONE order, fixed at creation (Feldman and Zrnic 2021).
  "Some order still has room" would be a choice made after seeing the answers; so the order never
  changes.
- `pure`: the sum of epsilons (Rogers, Roth, Ullman and Vadhan 2016).

What is lost to delta beside (an `Approximate` event's delta, sampler errors by T7) adds up too,
within a part of delta that is reserved at creation.

1. Whatever fits are chosen, however adaptively, all that were admitted together are within the
   promise.
2. A fit is charged whole before it runs; one that is interrupted stays charged.
3. A filter is a value: `add` returns the next one, and a refused event changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import special

from . import checks, renyi
from .cost import addition, gaussian_epsilon, gaussian_mu, sampler_charge, whole_error
from .errors import BudgetError, need
from .events import Event
from .inventory import Inventory, as_event, inventory
from .promise import Promise

Kind = Literal["gaussian", "zcdp", "renyi", "pure"]
KINDS: tuple[Kind, ...] = ("gaussian", "zcdp", "renyi", "pure")
FORMAT_VERSION = 1
RESERVE = 0.01
ROUNDED = 1e-12


@dataclass(frozen=True)
class Filter:
    """A cap on answers that are chosen one after another: what fits is added up, what does not is
    refused.

    `spent` of `budget`, in the kind's own unit, and `leaked` of the reserved part of delta.

    Make one by `Filter.create`, or read one by `Filter.from_dict`.

    >>> from fairveil.core.events import Gaussian
    >>> cap = Filter.create(Promise(1.0, 1e-6))
    >>> cap = cap.add(Gaussian(6.0))
    >>> cap.fits(Gaussian(6.0)), cap.fits(Gaussian(5.0))
    (True, False)
    """

    promise: Promise
    kind: Kind
    order: float | None
    reserve: float
    budget: float
    spent: float = 0.0
    leaked: float = 0.0
    admitted: int = 0

    @staticmethod
    def create(
        promise: Promise,
        kind: str = "gaussian",
        *,
        typical: Event | None = None,
        order: float | None = None,
        reserve: float = RESERVE,
    ) -> Filter:
        """A fresh filter. For `renyi` the order is the one given (rounded to the grid), else the
        best for many fits like `typical`, else for many Gaussians; `reserve` is the share of delta
        kept for leaks."""
        name = checks.one_of(KINDS, kind=kind)
        chosen = next(known for known in KINDS if known == name)
        reserve = checks.fraction(reserve=reserve, high_open=True)
        fix = "Without a finite epsilon no filter is needed."
        need(promise.is_private, "a finite epsilon", of="promise", got="inf", fix=fix)
        delta, index = promise.delta * (1 - reserve), None
        # Fixed before any answer. An order that is chosen by the answers would cap nothing
        # (docs/theory/composition.md, filters).
        if chosen == "renyi" and delta > 0 and order is not None:
            index = int(np.argmin(np.abs(renyi.ORDERS - checks.positive(order=order))))
        elif chosen == "renyi" and delta > 0:
            cost = renyi.ORDERS
            if typical is not None:
                one = inventory(typical, promise.neighbours)
                cost = np.maximum(renyi.total(one, promise.neighbours).values, 1e-300)
            index = int(np.argmax(renyi.largest(promise.epsilon, delta) / cost))
        budget = _budget(chosen, promise.epsilon, delta, index)
        words, of = "a guarantee that a filter of this kind can keep", f"filter of kind {chosen!r}"
        fix = "Pass delta above 0, a smaller reserve, or kind='pure' for pure mechanisms."
        need(budget > 0, words, of=of, got=str(promise), fix=fix, error=BudgetError)
        at = None if index is None else float(renyi.ORDERS[index])
        return Filter(promise, chosen, at, reserve, budget)

    def room(self) -> float:
        """What is left, in the kind's own unit."""
        return max(0.0, self.budget - self.spent)

    def largest_epsilon(self) -> float:
        """The epsilon, at the promise's delta, of the largest single release that still fits: a
        Gaussian, or a pure one."""
        return self.as_release(self.room())

    def as_release(self, amount: float) -> float:
        """The epsilon, at the promise's delta, of one release that adds this much: a Gaussian, or a
        pure one."""
        if self.kind == "pure":
            return amount
        factors = {"gaussian": 1.0, "zcdp": 2.0, "renyi": 2.0 / (self.order or 1.0)}
        mu = math.sqrt(factors[self.kind] * amount)
        return min(self.promise.epsilon, gaussian_epsilon(mu, self.promise.delta))

    @property
    def allowance(self) -> float:
        """The part of delta that leaks may use."""
        return self.promise.delta if self.kind == "pure" else self.promise.delta * self.reserve

    def fits(self, events: Event | Iterable[Event]) -> bool:
        """Whether `add` would admit these."""
        cost, leak = self.cost(events)
        return self._within(cost, leak)

    def add(self, events: Event | Iterable[Event]) -> Filter:
        """The filter after these; a `BudgetError` with spent, asked, left, and the largest epsilon
        that fits."""
        cost, leak = self.cost(events)
        used = f"{self.kind}; spent {self.spent:.6g} of {self.budget:.6g}"
        words, largest = f"a fit of at most {self.room():.6g} ({used})", self.largest_epsilon
        got = f"{cost:.6g}, leaking {leak:.3g} of {self.allowance - self.leaked:.3g} left"
        if not self._within(cost, leak):
            fix = f"The largest epsilon that fits is {largest():.6g} at "
            fix += f"delta {self.promise.delta:g}."
            raise BudgetError.expected(words, of="filter", got=got, remedy=fix)
        # Rounded up each time: many fits could else round their way past the cap.
        spent, leaked = _up(self.spent + cost, cost), _up(self.leaked + leak, leak)
        return replace(self, spent=spent, leaked=leaked, admitted=self.admitted + 1)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: all but the budget, which follows from the rest."""
        values = checks.fields_of(self) | {"promise": self.promise.to_dict()}
        del values["budget"]
        return {"version": FORMAT_VERSION, **values}

    @staticmethod
    def from_dict(values: Any) -> Filter:
        """The inverse of `to_dict`. The budget is worked out afresh from the promise."""
        names = {"version", "promise", "kind", "order", "reserve", "spent", "leaked", "admitted"}
        table = isinstance(values, dict)
        right = table and set(values) == names and values["version"] == FORMAT_VERSION
        words = f"an object of version {FORMAT_VERSION} with {sorted(names)}"
        got = sorted(values) if table else type(values).__name__
        need(right, words, of="filter", got=got, fix="Write filters with to_dict().")
        how = {name: values[name] for name in ("order", "reserve")}
        fresh = Filter.create(Promise.from_dict(values["promise"]), values["kind"], **how)
        return replace(
            fresh,
            spent=checks.non_negative(spent=values["spent"]),
            leaked=checks.non_negative(leaked=values["leaked"]),
            admitted=checks.whole(admitted=values["admitted"]),
        )

    def _within(self, cost: float, leak: float) -> bool:
        return _up(self.spent + cost, cost) <= self.budget and (
            leak == 0 or _up(self.leaked + leak, leak) <= self.allowance
        )

    def cost(self, events: Event | Iterable[Event]) -> tuple[float, float]:
        """What these add to the sum, and to what is lost to delta; inf where they are not
        private."""
        under, epsilon = self.promise.neighbours, self.promise.epsilon
        total = inventory(as_event(events), under)
        if not total.private:
            return math.inf, 0.0
        if self.kind in ("gaussian", "pure"):
            sums = self._gaussian(total) if self.kind == "gaussian" else addition(total, under)
            return sums[0], sums[1] + sampler_charge(epsilon, whole_error(total, under))
        curve = renyi.total(total, under)
        if self.kind == "renyi":
            cost = float(curve.values[int(np.argmin(np.abs(renyi.ORDERS - (self.order or 0.0))))])
        else:
            # The budget was read off at orders of the grid, so the least rho that covers the curve
            # there is enough.
            cost = float(np.max(curve.values / renyi.ORDERS))
        return cost, curve.leak + sampler_charge(epsilon, curve.total_variation)

    def _gaussian(self, total: Inventory) -> tuple[float, float]:
        """The sum of mu^2, and the deltas of those that hold but for a delta (Kairouz, Oh and
        Viswanath 2015: each is the pure one, but for a part of probability delta)."""
        squares, leaks = [total.gaussian], [0.0]
        for event, count in total.others:
            alone = Inventory(0.0, ((event, 1),), 0.0, True)
            epsilon, leak = addition(alone, self.promise.neighbours)
            words, of = "unsampled Gaussian releases, and pure ones", "events"
            fix = "Make the filter of kind 'renyi', which takes every event."
            need(not math.isinf(epsilon), words, of=of, got=event.kind, fix=fix)
            # What is epsilon-private is post-processing of this Gaussian pair
            # (docs/theory/composition.md, filters).
            squares.append(count * gaussian_below(epsilon) ** 2)
            leaks.append(count * leak)
        return math.fsum(squares), math.fsum(leaks)


def gaussian_below(epsilon: float) -> float:
    """The mu of the Gaussian whose trade-off curve lies just below that of every pure mechanism of
    this epsilon.

    That curve is two lines, which meet where both errors are 1/(1 + e^epsilon); a Gaussian's is
    convex between the same ends, so it lies below as soon as it does there: Phi(-mu/2) = 1/(1 +
    e^epsilon), or erf(mu/sqrt 8) = tanh(epsilon/2), which keeps the digits of small ones (after
    Dong, Roth and Su 2022).

    >>> round(gaussian_below(1.0), 4)
    1.232
    """
    if epsilon < 1.0:
        mu = math.sqrt(8.0) * float(special.erfinv(math.tanh(epsilon / 2.0)))
    else:
        mu = -2.0 * float(special.ndtri_exp(-np.logaddexp(0.0, epsilon)))
    return mu * (1.0 + ROUNDED)


def _up(total: float, added: float) -> float:
    """A sum rounded up."""
    return math.nextafter(total, math.inf) if added else total


def _budget(kind: Kind, epsilon: float, delta: float, index: int | None) -> float:
    """The largest sum from which (epsilon, delta) follows, from below."""
    if kind == "pure":
        return epsilon
    if delta <= 0:
        return 0.0
    if kind == "gaussian":
        return math.nextafter(gaussian_mu(epsilon, delta) ** 2, 0.0)
    largest = renyi.largest(epsilon, delta)
    return float(largest[index]) if index is not None else float(np.max(largest / renyi.ORDERS))
