"""What a ledger promises, fixed when it is begun, and what events cost under it.

Costs are whole numbers of units, 2^60 to the whole budget of the filter (and 2^60 to the part of
delta that leaks may use), each rounded up: sums are exact, in any order, and giving back what was
reserved leaves no trace. A filter is exceeded at 1e-12 above its budget: else 0.001, whose binary
value is a little more, would fit 999 times into 1.

The sum is of one relation. A release under another is charged only where its events bound what the
ledger's neighbours can see (docs/ledger.md has the table and the proofs): a row replaced is two
neighbours in a row, all rows of a person are as many as the terms say that she has at most. In a row
Gaussians of mu become k mu, pure events of epsilon k epsilon (Dong, Roth and Su 2022, Theorem 2.14);
anything else has no such price here, and is refused.

Guarantees (tests/ledger/test_ledger_terms.py):
1. A cost is never below the filter's, and the sum of costs that fit is within the promise, however
   adaptively they were chosen.
2. A release under another relation is charged at no less than it costs under the ledger's, or
   refused.
3. A ledger in production takes no seeded noise, nothing that was read from the data, and no columns
   without names; one with a fingerprint takes rows read by that schema alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from .. import _checks
from ..core import cost as accounting
from ..core.cost import in_a_row
from ..core.events import Event, PoissonSampled, PrivateSelection, VisiblySampled
from ..core.filters import KINDS, RESERVE, Filter
from ..core.inventory import as_event, counted, inventory
from ..core.promise import Neighbours, Promise
from ..errors import FairveilError, InputError, LedgerError
from ..facts import Schema
from ..privacy.accounting.calibration import scaled
from ..statement.document import UNPRICED
from .entries import (
    CREATED,
    WHOLE,
    Cost,
    Entry,
    checked_columns,
    checked_name,
    encoded,
    malformed,
    need,
)

FORMAT_VERSION = 1
LAST_BITS = 1e-12
PLANNED_ANEW = 0.002
"""A fit that samples batches shares its noise among their sums and other releases otherwise at
another epsilon: by no more."""
MADE_UP = re.compile(r"sensitive_[0-9]+")
"""Names of columns that came without."""
FINITE = "a finite epsilon"
NO_LIMIT = "A spend without a finite epsilon has no limit: pass one, or keep it out of the ledger."


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
        if schema is not None:
            _checks.instance(Schema, "schema", schema, "Read it with Schema.load(path).")
            if columns is None and promise.protects == "sensitive_features":
                columns = schema.sensitive or None
        usual = "renyi" if promise.delta > 0 else "pure"
        chosen = usual if kind is None else _checks.one_of(KINDS, kind=kind)
        made_by = None if schema is None else schema.fingerprint
        return Terms(dataset, promise, chosen, order, RESERVE, production, made_by, columns)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        """Only terms that a ledger can have."""
        promise, alone = self.promise, self.promise.protects == "sensitive_features"
        production = _checks.truth(production=self.production)
        right, fix = self.order is None or self.kind == "renyi", "Only kind='renyi' has an order."
        need(right, "order", "None", self.order, fix, InputError)
        need(promise.is_private, "ledger", FINITE, "inf", NO_LIMIT)
        fresh = Filter.create(promise, self.kind, order=self.order, reserve=self.reserve)
        columns = None if self.columns is None else checked_columns(self.columns)
        fix = "Pass protects='sensitive_features', or leave it None: records have all columns."
        need(alone or columns is None, "columns", "None", columns, fix, InputError)
        limits = {"kind": fresh.kind, "order": fresh.order, "reserve": fresh.reserve}
        name = checked_name(self.dataset)
        _checks.normalise(self, dataset=name, production=production, columns=columns, **limits)

    @property
    def filter(self) -> Filter:
        """The filter, with nothing in it."""
        return _filter_of(self)

    # -- what it takes -----------------------------------------------------------------------------

    def require(
        self,
        promise: Promise,
        *,
        secure: bool,
        read: Iterable[str],
        schema: Schema | bool | None,
    ) -> None:
        """Refuse what the terms forbid. `schema`: False where it is not known yet."""
        self._require_relation(promise)
        of = f"ledger {self.dataset!r}, in production,"
        fix = "Leave random_state=None."
        need(secure or not self.production, of, "secure noise", "seeded noise", fix)
        named = ", ".join(read)
        fix = "State it: in a Schema, or as an argument, without unsafe_data_dependent_bounds."
        allowed = not (self.production and named)
        need(allowed, of, "nothing read from the data", named, fix)
        if self.fingerprint is not None and schema is not False:
            found = schema.fingerprint if isinstance(schema, Schema) else ""
            expected = f"a schema of fingerprint {self.fingerprint[:16]}"
            fix = "Read the rows by the schema that the ledger was begun with."
            same = found == self.fingerprint
            need(same, f"ledger {self.dataset!r}", expected, found[:16] or None, fix)

    def named(self, columns: Iterable[str] | None, asked: Promise) -> list[str] | None:
        """The columns that a release under this promise protects, where it says so and protects no
        more."""
        if columns is None or asked.protects != "sensitive_features":
            return None
        given, of = list(columns), f"ledger {self.dataset!r}"
        fix = "Pass sensitive_features=...: where none are named, all columns are published."
        need(given, of, "a release that protects some columns", "none", fix)
        named = not any(MADE_UP.fullmatch(str(name)) for name in given)
        fix = "Pass a Series, a mapping, names of columns of X, or a schema: columns are known by name."
        of = f"{of}, in production,"
        need(named or not self.production, of, "sensitive columns with names", given, fix)
        return list(checked_columns(given))

    def _require_relation(self, promise: Promise) -> None:
        """Refuse a promise that says nothing about the ledger's neighbours, or about others."""
        ours, of = self.promise, f"ledger {self.dataset!r}"
        remedy = "Pass promise=Promise(1.0, 1e-6), or None for the ledger's."
        _checks.instance(Promise, "promise", promise, remedy, "a Promise, or None")
        need(promise.is_private, "ledger", FINITE, "epsilon=inf", NO_LIMIT)
        fix = self._wrong_unit(promise)
        whose = (_persons(ours), _persons(promise))
        need(not fix, of, f"a guarantee for {whose[0]}", f"one for {whose[1]}", fix)
        why = "What is private between data sets of one size may publish the number of rows"
        if promise.protects != ours.protects:
            why = "What protects sensitive features alone publishes the rest of every row"
        # A replaced row is one removed and one added, so add-remove is the stronger relation; not
        # the other way round.
        covers = promise.protects in (ours.protects, "records")
        bounds = promise.neighbours == ours.neighbours or ours.neighbours == "replace-one"
        expected = f"a promise for {ours.protects}, {ours.neighbours}"
        fix = f"{why}: pass protects='{ours.protects}:{ours.neighbours}', or keep a "
        got = f"{promise.protects}, {promise.neighbours}"
        need(covers and bounds, of, expected, got, f"{fix}ledger for each.")

    def _wrong_unit(self, promise: Promise) -> str:
        """What to do about a release about others than the ledger's; nothing where it is not."""
        ours, theirs = self.promise.unit, promise.unit
        if ours is None:
            why = "A row may move from one person to another, so that two differ"
            return "" if theirs is None else f"{why}: begin a ledger with unit=..."
        if theirs is not None:
            fix = f"Pass unit={ours.name!r}, or keep a ledger for each."
            return "" if ours.name == theirs.name else fix
        alone = self.promise.protects == "sensitive_features"
        if ours.max_rows is not None and (alone or promise.neighbours == "add-remove"):
            return ""
        why = "Who is replaced may have other rows"
        why = "Nobody said how many rows a person has" if ours.max_rows is None else why
        fix = (
            f"{why}: pass unit={ours.name!r} and max_rows_per_unit=..., or keep a ledger for rows."
        )
        return fix

    # -- what it charges ---------------------------------------------------------------------------

    def cost(self, events: Event | Iterable[Event], promise: Promise) -> Cost:
        """What these events add, released under `promise`; a `LedgerError` where the ledger cannot
        take them at all."""
        self._require_relation(promise)
        event, relation = as_event(events), promise.neighbours
        times = 1 if relation == self.promise.neighbours else 2
        if self.promise.unit is not None and promise.unit is None:
            # A person is so many rows' neighbours away, each of them `times` steps.
            times *= self.promise.unit.max_rows or 0
        of, got = f"ledger {self.dataset!r}", "others"
        try:
            return _cost_of(self, event, relation, times)
        except InputError as error:
            if self.kind != "gaussian":
                raise
            expected = str(error).partition(", got")[0]
            expected = f"events for a ledger of kind 'gaussian': {expected}"
            fix = (
                "Ask all rows (sampling_rate=None), or begin one of kind 'renyi', for every event."
            )
        except FairveilError:
            raise
        except UNPRICED as error:
            of, expected, got = "events", "events that have a price", str(error)
            fix = "Their numbers are too large, or too small, or they nest too deeply."
        raise LedgerError.expected(expected, of=of, got=got, remedy=fix)

    def fits_alone(self, events: Event | Iterable[Event], promise: Promise) -> bool:
        """Whether these events keep the whole promise by themselves: a ledger that nothing was
        spent of may give all to them.

        Nothing was answered before, so nothing was chosen after seeing answers: the tight total is
        valid (theory.md#t10).
        """
        ours = self.promise
        same = (promise.protects, promise.neighbours) == (ours.protects, ours.neighbours)
        if not same or (promise.unit is None) != (ours.unit is None):
            return False
        tight = tight_epsilon(events, ours.delta, ours.neighbours)
        return tight <= ours.epsilon * (1 + LAST_BITS)

    def largest_epsilon(self, events: Event, promise: Promise, spent: int, leaked: int) -> float:
        """The epsilon, at `promise.delta`, of these events with just enough more noise to fit; 0
        where none is enough."""
        plan, untouched = scaled(events), spent == leaked == 0

        def fits(z: float) -> bool:
            try:
                room = self.cost(plan(z), promise).within(spent, leaked)
                return room or (untouched and self.fits_alone(plan(z), promise))
            except FairveilError:  # so much noise that there are no such events
                return False

        low, high = 1.0, 2.0
        while not fits(high):
            low, high = high, high * 4.0
            if high > 1e9:
                return 0.0
        while high > low * (1 + 1e-9):
            middle = math.sqrt(low * high)
            # `high` always fits: what is told as the largest epsilon can be reserved.
            low, high = (low, middle) if fits(middle) else (middle, high)
        found = tight_epsilon(plan(high), promise.delta, promise.neighbours)
        batches = PoissonSampled | VisiblySampled | PrivateSelection
        found *= 1.0 - PLANNED_ANEW * any(isinstance(one, batches) for one in counted(events))
        if found <= 0 or math.isinf(found):
            return 0.0
        place = 10.0 ** (5 - math.floor(math.log10(found)))
        return math.floor(found * place) / place  # typed in again it still fits

    def as_release(self, units: int) -> float:
        """The epsilon, at the ledger's delta, of one Gaussian (or pure) release that costs so
        much."""
        if units >= WHOLE:
            return self.promise.epsilon
        return self.filter.as_release(float(Fraction(units, WHOLE) * Fraction(self.filter.budget)))

    # -- as JSON -----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        columns = None if self.columns is None else list(self.columns)
        told = {"version": FORMAT_VERSION, "promise": self.promise.to_dict(), "columns": columns}
        return _checks.fields_of(self) | told

    @staticmethod
    def from_dict(values: object) -> Terms:
        """The inverse of `to_dict`: terms that are checked anew, and are those that were written."""
        if not isinstance(values, dict) or not isinstance(values.get("fingerprint"), str | None):
            raise malformed("terms", values)
        try:
            promise = Promise.from_dict(values["promise"])
            given = {key: value for key, value in values.items() if key != "version"}
            found = Terms(**given | {"promise": promise})
            same = encoded(found.to_dict()) == encoded(values)
        except UNPRICED as error:
            raise malformed("terms", str(error)) from None
        if not same:
            raise malformed(f"terms of version {FORMAT_VERSION} that a ledger can have", values)
        return found

    @staticmethod
    def of(first: Entry) -> Terms:
        """What the first line of a ledger says."""
        if first.kind != CREATED or first.number != 0 or set(first.values) != {"terms"}:
            raise malformed("a first line that begins the ledger", first.kind)
        return Terms.from_dict(first.values["terms"])


def under(promise: Promise) -> str:
    """What is protected, between which neighbours."""
    unit = "" if promise.unit is None else f", by {promise.unit.name}"
    return f"{promise.protects}, {promise.neighbours}{unit}"


def tight_epsilon(events: Event | Iterable[Event], delta: float, neighbours: str) -> float:
    """What a plan that was fixed in advance costs by itself; inf, too, where its numbers are too
    large to tell."""
    try:
        with np.errstate(all="ignore"):
            found = accounting.epsilon(events, delta, neighbours)
    except FairveilError:
        raise
    except UNPRICED:
        return math.inf
    return math.inf if math.isnan(found) else found


def units_of(amount: float, budget: float) -> int:
    """Rounded up. What is beyond the whole is distinguished from it, and no more."""
    if amount <= 0:
        return 0
    if budget <= 0:
        return 2 * WHOLE
    return min(2 * WHOLE, math.ceil(Fraction(amount) * WHOLE / Fraction(budget)))


def _persons(promise: Promise) -> str:
    return "rows" if promise.unit is None else f"persons, by {promise.unit.name!r}"


@lru_cache(maxsize=256)
def _filter_of(terms: Terms) -> Filter:
    return Filter.create(terms.promise, terms.kind, order=terms.order, reserve=terms.reserve)


@lru_cache(maxsize=4096)
def _cost_of(terms: Terms, event: Event, relation: Neighbours, times: int) -> Cost:
    """What an event costs, if so many of its neighbours are one of the ledger's: a row replaced is
    one removed and one added; all rows of a person are as many neighbours."""
    cap, of = terms.filter, f"ledger {terms.dataset!r}"
    with np.errstate(all="ignore"):  # what is too large for a number is inf, and refused
        bound = in_a_row(event, relation, times)
        who = f"a person's rows are charged as {times} neighbours"
        fix = "Let the release protect persons."
        if times <= 2:
            who = "a row replaced is charged as one removed and one added"
            fix = "Pass protects='records:replace-one' to what releases them."
        expected = f"Gaussian or pure releases, where {who}"
        if bound is None:
            raise LedgerError.expected(expected, of="events", got="others", remedy=fix)
        amount, leak = cap.cost(bound)
    private = math.isinf(amount) and inventory(event, relation).private
    fix = "Releases that need a delta need a ledger of kind 'renyi', with a delta above 0."
    need(not private, of, "pure releases", "others", fix)
    finite = math.isfinite(amount) and not math.isnan(leak)
    need(finite, "ledger", FINITE, "a release without noise", NO_LIMIT)
    return Cost(units_of(amount, cap.budget), units_of(leak, cap.allowance))
