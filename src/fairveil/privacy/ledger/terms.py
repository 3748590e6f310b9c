"""What a ledger promises, fixed when it is begun, and what events cost under it.

Costs are whole numbers of units, 2^60 to the whole budget of the filter (and 2^60 to the part of
delta that leaks may use), each rounded up: sums are exact, in any order, and giving back what was
reserved leaves no trace. A filter is exceeded at 1e-12 above its budget: else 0.001, whose binary
value is a little more, would fit 999 times into 1.

Who is protected, and between which neighbours, differs from release to release. The sum is of one
relation, so a release under another is charged only where its events bound what the ledger's
neighbours can see (docs/ledger.md has the proofs):

| the ledger | takes |
|---|---|
| records, add-remove | the same |
| records, replace-one | the same; add-remove at the price of two neighbours in a row |
| sensitive features | the same; records, whose neighbours differ in more, as above |

A ledger about persons takes releases about the same persons, whatever cap each has: a person's
guarantee holds for all of their rows. A release about rows it takes only where its terms say how
many rows a person has at most, k: all of a person's rows are k neighbours in a row (2 k where a
person is replaced and rows are added or removed). A ledger about rows takes no release about
persons: a row replaced may move from one person to another, and two persons may differ.

Two neighbours in a row: a row replaced is one removed and one added. Gaussians of mu become 2 mu,
pure events of epsilon 2 epsilon; anything else has no such price here, and is refused.

Guarantees (tests/privacy/ledger/test_ledger_terms.py):
1. A cost is never below the filter's, and the sum of costs that fit is within the promise, however
   adaptively they were chosen.
2. A release under another relation is charged at no less than it costs under the ledger's, or
   refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from ... import _checks
from ...core import inventory as leaves
from ...core.events import Event
from ...core.filters import KINDS, Filter
from ...core.promise import Promise
from ...errors import BudgetError, FairveilError, InputError, LedgerError
from ...facts import Schema
from ..accounting.calibration import scaled
from .charging import cost_of, filter_of
from .costs import (
    WHOLE,
    Cost,
    no_promise,
    require_shallow,
    rounded_down,
    samples,
    tight_epsilon,
)
from .names import checked_columns, checked_name
from .stores.entries import malformed

FORMAT_VERSION = 1


LAST_BITS = 1e-12


TRIES = 40


PLANNED_ANEW = 0.002
"""A fit that samples batches shares its noise among their sums and other releases otherwise at
another epsilon: by no more."""


@dataclass(frozen=True)
class Terms:
    """The data set, the promise, the filter that keeps it, and what the ledger insists on. Make
    them by `Terms.create`.

    `kind`, `order`, `reserve`: of the filter (`fairveil.privacy.Filter`). `production`: no seeded
    noise, nothing read from the data. `fingerprint`: of the only schema that rows may be read by.
    `columns`: the sensitive columns that every release must protect, where they alone are
    protected; None: those of the first.
    """

    dataset: str
    promise: Promise
    kind: str
    order: float | None
    reserve: float
    production: bool
    fingerprint: str | None
    columns: tuple[str, ...] | None = None

    @staticmethod
    def create(
        dataset: str,
        promise: Promise,
        *,
        production: bool = False,
        schema: Schema | None = None,
        kind: str | None = None,
        order: float | None = None,
        columns: Iterable[str] | None = None,
    ) -> Terms:
        """Checked terms. `kind`: "renyi" unless told (for delta 0 "pure"), at the best order for
        many Gaussians."""
        if production not in (True, False):
            raise InputError.expected(
                "True or False", of="production", got=production, remedy="Leave it False."
            )
        given: object = schema
        if given is not None and not isinstance(given, Schema):
            remedy = "Read it with Schema.load(path)."
            raise InputError.expected(
                "a Schema, or None", of="schema", got=type(given).__name__, remedy=remedy
            )
        chosen = kind if kind is not None else "renyi" if promise.delta > 0 else "pure"
        if order is not None and chosen != "renyi":
            raise InputError.expected(
                "None", of="order", got=order, remedy="Only kind='renyi' has an order."
            )
        if not promise.is_private:
            raise no_promise()
        fresh = Filter.create(promise, _checks.one_of(KINDS, kind=chosen), order=order)
        fingerprint = None if schema is None else schema.fingerprint
        if columns is None and schema is not None and promise.protects == "sensitive_features":
            columns = schema.sensitive or None
        named = None if columns is None else checked_columns(columns)
        if named is not None and promise.protects != "sensitive_features":
            remedy = (
                "Pass protects='sensitive_features', or leave it None: records have all columns."
            )
            raise InputError.expected("None", of="columns", got=named, remedy=remedy)
        return Terms(
            checked_name(dataset),
            promise,
            fresh.kind,
            fresh.order,
            fresh.reserve,
            bool(production),
            fingerprint,
            named,
        )

    @property
    def filter(self) -> Filter:
        """The filter, with nothing in it."""
        return filter_of(self.promise, self.kind, self.order, self.reserve)

    def cost(self, events: Event | Iterable[Event], promise: Promise) -> Cost:
        """What these events add, released under `promise`; a `LedgerError` where the ledger cannot
        take them at all."""
        self.require_relation(promise)
        event = leaves.as_event(events)
        require_shallow(event)
        return cost_of(
            self.promise,
            self.kind,
            self.order,
            self.reserve,
            self.dataset,
            event,
            promise.neighbours,
            self._in_a_row(promise),
        )

    def fits_alone(self, events: Event | Iterable[Event], promise: Promise) -> bool:
        """Whether these events keep the whole promise by themselves: a ledger that nothing was
        spent of may give all to them.

        Nothing was answered before, so nothing was chosen after seeing answers: the tight total is
        valid (theory.md#t10).
        """
        same = (promise.protects, promise.neighbours) == (
            self.promise.protects,
            self.promise.neighbours,
        )
        if not same or (promise.unit is None) != (self.promise.unit is None):
            return False
        return tight_epsilon(
            events, self.promise.delta, self.promise.neighbours
        ) <= self.promise.epsilon * (1 + LAST_BITS)

    def largest_epsilon(self, events: Event, promise: Promise, spent: int, leaked: int) -> float:
        """The epsilon, at `promise.delta`, of these events with just enough more noise to fit; 0
        where none is enough."""
        plan, untouched = scaled(events), spent == leaked == 0

        def fits(z: float) -> bool:
            try:
                more = plan(z)
                return self.cost(more, promise).within(spent, leaked) or (
                    untouched and self.fits_alone(more, promise)
                )
            except FairveilError:  # so much noise that there are no such events
                return False

        low, high = 1.0, 2.0
        while not fits(high):
            low, high = high, high * 4.0
            if high > 1e9:
                return 0.0
        for _ in range(TRIES):
            middle = math.sqrt(low * high)
            # `high` always fits: what is told as the largest epsilon can be reserved.
            low, high = (low, middle) if fits(middle) else (middle, high)
            if high < low * (1 + 1e-9):
                break
        found = tight_epsilon(plan(high), promise.delta, promise.neighbours)
        return (
            0.0
            if math.isinf(found)
            else rounded_down(found * (1.0 - PLANNED_ANEW if samples(events) else 1.0))
        )

    def as_release(self, units: int) -> float:
        """The epsilon, at the ledger's delta, of one Gaussian (or pure) release that costs so
        much."""
        if units >= WHOLE:
            return self.promise.epsilon
        return self.filter.as_release(float(Fraction(units, WHOLE) * Fraction(self.filter.budget)))

    def _in_a_row(self, promise: Promise) -> int:
        """How many of the release's neighbours one of the ledger's is."""
        added = 1 if promise.neighbours == self.promise.neighbours else 2
        if self.promise.unit is None or promise.unit is not None:
            return added
        rows = self.promise.unit.max_rows
        assert rows is not None  # `require_relation` refused it
        # A person is so many rows' neighbours away, each of them `added` steps (group privacy,
        # `in_a_row`).
        return added * rows

    def _require_unit(self, promise: Promise) -> None:
        """Refuse a release about others than the ledger's."""
        ours, theirs = self.promise.unit, promise.unit
        if (ours is None) == (theirs is None) and (
            ours is None or theirs is None or ours.name == theirs.name
        ):
            return
        expected = (
            "a guarantee for rows" if ours is None else f"a guarantee for persons, by {ours.name!r}"
        )
        got = "one for rows" if theirs is None else f"one for persons, by {theirs.name!r}"
        if ours is not None and theirs is None:
            counted = (
                promise.neighbours == "add-remove" or self.promise.protects == "sensitive_features"
            )
            if ours.max_rows is not None and counted:
                return
            why = (
                "Nobody said how many rows a person has"
                if ours.max_rows is None
                else "Who is replaced may have other rows"
            )
            remedy = (
                f"{why}: pass unit={ours.name!r} and max_rows_per_unit=..., or keep a ledger for "
                f"rows."
            )
        elif ours is None:
            remedy = (
                "A row may move from one person to another, so that two differ: begin a ledger "
                "with unit=..."
            )
        else:
            remedy = f"Pass unit={ours.name!r}, or keep a ledger for each."
        raise LedgerError.expected(expected, of=f"ledger {self.dataset!r}", got=got, remedy=remedy)

    def require_relation(self, promise: Promise) -> None:
        """Refuse a promise that says nothing about the ledger's neighbours."""
        ours, given = self.promise, cast(object, promise)
        if not isinstance(given, Promise):
            remedy = "Pass promise=Promise(1.0, 1e-6), or None for the ledger's."
            raise InputError.expected("a Promise, or None", of="promise", got=given, remedy=remedy)
        if not promise.is_private:
            raise no_promise("epsilon=inf")
        self._require_unit(promise)
        covers = promise.protects == ours.protects or promise.protects == "records"
        # A replaced row is one removed and one added, so add/remove-one is the stronger relation;
        # not the other way round.
        if covers and (promise.neighbours == ours.neighbours or ours.neighbours == "replace-one"):
            return
        if promise.protects != ours.protects:
            why = "What protects sensitive features alone publishes the rest of every row"
        else:
            why = "What is private between data sets of one size may publish the number of rows"
        remedy = (
            f"{why}: pass protects={ours.protects!r}, neighbours={ours.neighbours!r}, or keep a "
            f"ledger for each."
        )
        got = f"{promise.protects}, {promise.neighbours}"
        expected = f"a promise for {ours.protects}, {ours.neighbours}"
        raise LedgerError.expected(expected, of=f"ledger {self.dataset!r}", got=got, remedy=remedy)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "version": FORMAT_VERSION,
            "dataset": self.dataset,
            "promise": self.promise.to_dict(),
            "kind": self.kind,
            "order": self.order,
            "reserve": self.reserve,
            "production": self.production,
            "fingerprint": self.fingerprint,
            "columns": None if self.columns is None else list(self.columns),
        }

    @staticmethod
    def from_dict(values: object) -> Terms:
        """The inverse of `to_dict`."""
        names = {
            "version",
            "dataset",
            "promise",
            "kind",
            "order",
            "reserve",
            "production",
            "fingerprint",
            "columns",
        }
        known = isinstance(values, dict) and set(values) == names and type(values["version"]) is int
        if not isinstance(values, dict) or not known or values["version"] != FORMAT_VERSION:
            raise malformed(f"terms of version {FORMAT_VERSION}", values)
        if not isinstance(values["promise"], dict) or not isinstance(values["production"], bool):
            raise malformed("terms", values)
        if values["order"] is not None and values["kind"] != "renyi":
            raise malformed("an order for kind 'renyi' alone", values["order"])
        fingerprint = values["fingerprint"]
        if fingerprint is not None and not isinstance(fingerprint, str):
            raise malformed("a fingerprint", fingerprint)
        try:
            promise = Promise.from_dict(values["promise"])
            fresh = Filter.create(
                promise, values["kind"], order=values["order"], reserve=values["reserve"]
            )
            name = checked_name(values["dataset"])
            columns = None if values["columns"] is None else checked_columns(values["columns"])
            if columns is not None and (
                list(columns) != values["columns"] or promise.protects != "sensitive_features"
            ):
                raise malformed("columns where they alone are protected", values["columns"])
        except (InputError, BudgetError, TypeError, ArithmeticError) as error:
            raise malformed("terms", str(error)) from None
        return Terms(
            name,
            promise,
            fresh.kind,
            fresh.order,
            fresh.reserve,
            values["production"],
            fingerprint,
            columns,
        )
