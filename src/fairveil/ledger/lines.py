"""What a ledger promises, what events cost under it, its lines, the state that they add up to, and
what contradicts them.

Costs are whole numbers of units, 2^60 to the whole budget of the filter (and 2^60 to the part of
delta that leaks may use), each rounded up: sums are exact, in any order, and giving back what was
reserved leaves no trace. A filter is exceeded at 1e-12 above its budget: else 0.001, whose binary
value is a little more, would fit 999 times into 1. The sum is of one relation. A release under
another is charged only where its events bound what the ledger's neighbours can see (docs/ledger.md):
a row replaced is two neighbours in a row, a person's rows are as many as the terms allow; in a row
Gaussians of mu become k mu, pure events of epsilon k epsilon (Dong, Roth and Su 2022, Theorem 2.14).

A line says what happened to a spend, what that adds to what is charged, and the hash of the line
before; the first one holds the terms. The state is a fold over them.

    hash = SHA-256 of the line's other fields, in order, as one JSON list with no spaces

    reserved --> resumed* --> committed
        \\-------------------> refunded     (nothing was released)

A spend that is not settled stays charged as it was reserved: its process may have died. A line that
was edited, or taken out from between others, no longer fits; who rewrites lines and hashes, or takes
the last ones off, is found by a receipt (each statement holds one), and what is charged too little by
pricing it again.

Guarantees (tests/ledger/test_ledger_terms.py, test_ledger_lines.py):
1. A cost is never below the filter's, and the sum of costs that fit is within the promise, however
   adaptively they were chosen. A release under another relation is charged at no less than it costs
   under the ledger's, or refused.
2. A ledger in production takes no seeded noise, nothing that was read from the data, and no columns
   without names; one with a fingerprint takes rows read by that schema alone.
3. What is read is what was written; all else is a typed error, and nothing is run or unpickled. Any
   change of any field changes the hash.
4. A spend is settled once, and its charge never rises after it was reserved.
5. Every edit of one field of one line, and every line deleted from between others, added, doubled or
   moved is a grave finding; so is a charge below what its events cost, chained or not. What a
   ledger wrote has none.
6. A statement whose receipt, relation or source of noise is not that of the line, whose spend was
   given back, whose plan holds a release that neither this line nor an earlier one reserved, or
   whose releases were settled as if they had not been made, has a grave finding. One that was
   written beside its spends has none.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from .. import _checks
from .._json import Document
from .._urls import without_password
from ..core import cost as accounting
from ..core import events as ev
from ..core.cost import Filter
from ..core.events import Composed, Event, NoOp, Repeated, as_event, from_dict, with_noise
from ..core.mechanisms import counted, inventory
from ..core.promise import Neighbours, Promise
from ..errors import FairveilError, InputError, LedgerError
from ..facts import Schema
from ..statement.document import UNPRICED, PrivacyStatement, Receipt, is_whole, versions_now
from ..statement.form import Finding

KINDS = ("created", "reserved", "resumed", "committed", "refunded")
CREATED, RESERVED, RESUMED, COMMITTED, REFUNDED = KINDS
WHOLE = 1 << 60
"""All of a budget, in units."""
MOST = WHOLE + (1 << 20)
"""What may be charged: 1e-12 more, for decimals that binary numbers miss."""
LAST_BITS = 1 << 31
"""A log may cost this part more than its plan: the order of sums, which is no overspending."""
SLACK = 1e-9
"""A cost that is recomputed may differ by so much: another processor's last bits."""
PLANNED_ANEW = 0.002
"""A fit that samples batches shares its noise among their sums and other releases otherwise at
another epsilon: by no more."""
MADE_UP = re.compile(r"sensitive_[0-9]+")
"""Names of columns that came without."""
MOST_WORDS, LONGEST_NAME, MOST_TEXT = 500, 200, 1 << 26
NO_LIMIT = "A spend without a finite epsilon has no limit: pass one, or keep it out of the ledger."
DOCUMENT = Document(
    "ledger entry", "Only a ledger writes its entries.", LedgerError, largest=1 << 30
)
malformed = DOCUMENT.refusal
"""The error of what no ledger wrote."""


def need(
    holds: object,
    of: str,
    expected: str,
    got: object,
    fix: str,
    kind: type[FairveilError] = LedgerError,
) -> None:
    """Refuse what does not hold, as "of: expected ..., got .... fix"."""
    if not holds:
        raise kind.expected(expected, of=of, got=got, remedy=fix)


# -- what it promises, and what events cost --------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Units of the budget, and of what may leak."""

    units: int
    leak: int

    def within(self, spent: int, leaked: int) -> bool:
        """Whether there is room beside what is charged."""
        return spent + self.units <= MOST and leaked + self.leak <= MOST


NOTHING, ALL = Cost(0, 0), Cost(MOST, MOST)


@dataclass(frozen=True)
class Terms:
    """The data set, the promise, the filter that keeps it, and what the ledger insists on.

    `kind`, `order`: of the filter (`fairveil.privacy.Filter`), "renyi" unless told (for delta 0
    "pure"), at the best order for many Gaussians. `production`: no seeded noise, nothing read from
    the data. `fingerprint`: of the only schema that rows may be read by. `columns`: the sensitive
    columns that every release must protect, where they alone are protected; None: those of the
    first.
    """

    dataset: str
    promise: Promise
    kind: str | None = None
    order: float | None = None
    production: bool = False
    fingerprint: str | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Only terms that a ledger can have."""
        promise, columns, name = self.promise, self.columns, self.dataset
        need(promise.is_private, "ledger", "a finite epsilon", "inf", NO_LIMIT)
        usual = "renyi" if promise.delta > 0 else "pure"
        fresh = Filter.create(promise, self.kind or usual, order=self.order)
        if columns is not None:
            fix, alone = "Pass protects='sensitive_features'.", promise.protects != "records"
            need(alone, "columns", "None, where records are protected", columns, fix, InputError)
            columns = checked_columns(columns)
        # An address, which may hold a password, came in the wrong place.
        text = str(name)
        named = name == text.strip() and is_line(name, LONGEST_NAME) and "://" not in text
        fix, expected = "Pass dataset='credit-2026'.", f"at most {LONGEST_NAME} printable letters"
        need(named, "dataset", expected, without_password(text), fix, InputError)
        production = _checks.truth(production=self.production)
        limits = {"kind": fresh.kind, "order": fresh.order}
        _checks.normalise(self, production=production, columns=columns, **limits)

    @property
    def filter(self) -> Filter:
        """The filter, with nothing in it."""
        return _filter_of(self)

    def need(self, holds: object, expected: str, got: object, fix: str, of: str = "") -> None:
        """Refuse what does not hold of a release."""
        need(holds, f"ledger {self.dataset!r}{of}", expected, got, fix)

    def require(
        self, promise: Promise, *, secure: bool, read: Iterable[str], schema: Schema | bool | None
    ) -> None:
        """Refuse what the terms forbid. `schema`: False where it is not known yet."""
        self._require_relation(promise)
        free, named, of = not self.production, ", ".join(read), ", in production,"
        self.need(secure or free, "secure noise", "seeded noise", "Leave random_state=None.", of)
        fix = "State it: in a Schema, or as an argument, without unsafe_data_dependent_bounds."
        self.need(free or not named, "nothing read from the data", named, fix, of)
        if self.fingerprint is not None and schema is not False:
            found = schema.fingerprint if isinstance(schema, Schema) else ""
            expected = f"a schema of fingerprint {self.fingerprint[:16]}"
            fix = "Read the rows by the schema that the ledger was begun with."
            self.need(found == self.fingerprint, expected, found[:16] or None, fix)

    def named(self, columns: Iterable[str] | None, asked: Promise) -> list[str] | None:
        """The columns that a release under this promise protects, where it says so and protects no
        more."""
        if columns is None or asked.protects == "records":
            return None
        given = list(columns)
        fix = "Pass sensitive_features=...: where none are named, all columns are published."
        self.need(given, "a release that protects some columns", "none", fix)
        named = not any(MADE_UP.fullmatch(str(name)) for name in given)
        fix = "Pass a Series, a mapping, names of columns of X, or a schema: columns are known by name."
        right, of = named or not self.production, ", in production,"
        self.need(right, "sensitive columns with names", given, fix, of)
        return list(checked_columns(given))

    def _require_relation(self, promise: Promise) -> None:
        """Refuse a promise that says nothing about the ledger's neighbours, or about others."""
        ours = self.promise
        fix = "Pass promise=Promise(1.0, 1e-6), or None for the ledger's."
        _checks.instance(Promise, "promise", promise, fix, "a Promise, or None")
        self.need(promise.is_private, "a finite epsilon", "epsilon=inf", NO_LIMIT)
        mine, theirs = ours.unit, promise.unit
        same = theirs is None or (mine is not None and mine.name == theirs.name)
        if mine is not None and theirs is None:  # who is replaced may have other rows
            relation = ours.protects == "sensitive_features" or promise.neighbours == "add-remove"
            same = mine.max_rows is not None and relation
        # A replaced row is one removed and one added, so add-remove is the stronger relation; not
        # the other way round: what is private between tables of one size may publish the size, and
        # what protects sensitive features alone publishes the rest.
        covers = promise.protects in (ours.protects, "records")
        bounds = ours.neighbours in (promise.neighbours, "replace-one")
        fix = (
            "Promise the same, or keep a ledger for each. One of persons takes add-remove releases "
        )
        fix += "about rows where it was begun with max_rows_per_unit=."
        right = same and covers and bounds
        self.need(right, f"a promise for {under(ours)}", under(promise), fix)

    def cost(self, events: Event | Iterable[Event], promise: Promise) -> Cost:
        """What these events add, released under `promise`; an error where the ledger cannot take
        them at all."""
        self._require_relation(promise)
        times = 1 if promise.neighbours == self.promise.neighbours else 2
        if self.promise.unit is not None and promise.unit is None:
            # A person is so many rows' neighbours away, each of them `times` steps.
            times *= self.promise.unit.max_rows or 0
        try:
            return _cost_of(self, as_event(events), promise.neighbours, times)
        except FairveilError:
            raise
        except UNPRICED as error:
            got, fix = str(error), "Their numbers are too large or small, or they nest too deeply."
        raise LedgerError.expected("events with a price", of="events", got=got, remedy=fix)

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
        return tight_epsilon(events, ours.delta, ours.neighbours) <= ours.epsilon * (1 + 1e-12)

    def largest_epsilon(self, events: Event, promise: Promise, spent: int, leaked: int) -> float:
        """The epsilon, at `promise.delta`, of these events with just enough more noise to fit; 0
        where none is enough."""
        untouched = spent == leaked == 0

        def plan(z: float) -> Event:
            return with_noise(events, z)

        def fits(z: float) -> bool:
            with suppress(FairveilError):  # so much noise that there are no such events
                room = self.cost(plan(z), promise).within(spent, leaked)
                return room or (untouched and self.fits_alone(plan(z), promise))
            return False

        high = next((z for z in (2.0 * 4.0**k for k in range(15)) if fits(z)), math.inf)
        low = max(1.0, high / 4.0)
        while math.isfinite(high) and high > low * (1 + 1e-9):
            middle = math.sqrt(low * high)
            # `high` always fits: what is told as the largest epsilon can be reserved.
            low, high = (low, middle) if fits(middle) else (middle, high)
        if math.isinf(high):
            return 0.0
        found = tight_epsilon(plan(high), promise.delta, promise.neighbours)
        batches = ev.PoissonSampled | ev.VisiblySampled | ev.PrivateSelection
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

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        columns = None if self.columns is None else list(self.columns)
        return _checks.fields_of(self) | {"promise": self.promise.to_dict(), "columns": columns}

    @staticmethod
    def from_dict(values: object) -> Terms:
        """The inverse of `to_dict`: terms that are checked anew, and are those that were written."""
        try:
            found = Terms(**values | {"promise": Promise.from_dict(values["promise"])})  # type: ignore[index, operator]
            right = isinstance(found.fingerprint, str | None)
            right = right and encoded(found.to_dict()) == encoded(values)
        except UNPRICED as error:
            raise malformed("terms", str(error)) from None
        if not right:
            raise malformed("terms that a ledger can have", values)
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
    if amount <= 0 or budget <= 0:
        return 0 if amount <= 0 else 2 * WHOLE
    return min(2 * WHOLE, math.ceil(Fraction(amount) * WHOLE / Fraction(budget)))


@lru_cache(maxsize=256)
def _filter_of(terms: Terms) -> Filter:
    return Filter.create(terms.promise, str(terms.kind), order=terms.order)


@lru_cache(maxsize=4096)
def _cost_of(terms: Terms, event: Event, relation: Neighbours, times: int) -> Cost:
    """What an event costs, if so many of its neighbours are one of the ledger's: a row replaced is
    one removed and one added; all rows of a person are as many neighbours."""
    cap, expected = terms.filter, f"Gaussian or pure releases, charged for {times} in a row"
    with np.errstate(all="ignore"):  # what is too large for a number is inf, and refused
        bound = accounting.in_a_row(event, relation, times)
        fix = "Pass protects='records:replace-one' where they are released, or let it protect persons."
        if bound is None:
            raise LedgerError.expected(expected, of="events", got="others", remedy=fix)
        amount, leak = cap.cost(bound)
    private = math.isinf(amount) and inventory(event, relation).private
    fix = "Releases that need a delta need a ledger of kind 'renyi', with a delta above 0."
    terms.need(not private, "pure releases", "others", fix)
    finite = math.isfinite(amount) and not math.isnan(leak)
    terms.need(finite, "a finite epsilon", "a release without noise", NO_LIMIT)
    return Cost(units_of(amount, cap.budget), units_of(leak, cap.allowance))


def is_line(text: object, most: int) -> bool:
    """Whether it is text of one line, not empty."""
    return isinstance(text, str) and 0 < len(text) <= most and text.isprintable()


def checked_words(name: str, value: object) -> str:
    """Words that fit a line, or none."""
    expected, fits = f"at most {MOST_WORDS} printable letters", is_line(value, MOST_WORDS)
    fix = f"Pass {name}='monthly model', for example."
    need(fits or value == "", name, expected, value, fix, InputError)
    return str(value)


def checked_columns(columns: object) -> tuple[str, ...]:
    """Names of sensitive columns, at least one, sorted."""
    listed = [columns] if isinstance(columns, str) else columns
    named = list(listed) if isinstance(listed, Iterable) else []
    fits = named and all(is_line(name, LONGEST_NAME) for name in named)
    fix = "Name the columns that are protected: ['sex'], for example."
    need(fits, "columns", "names of sensitive columns", columns, fix, InputError)
    return tuple(sorted(set(named)))


# -- a line ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One line. `units`, `leak`: what it adds to what is charged (below 0: gives back), of the
    budget and of what delta may leak; `spent`, `leaked`: what is charged after it. `content`: JSON
    of what this kind of line holds (terms, plan, sitting, log)."""

    number: int
    kind: str
    spend: str
    at: str
    who: str
    code: str
    purpose: str
    content: str
    units: int
    leak: int
    spent: int
    leaked: int
    previous: str
    hash: str = ""

    @staticmethod
    def following(
        head: Entry | None,
        kind: str,
        content: dict[str, Any],
        *,
        who: str,
        spend: str = "",
        purpose: str = "",
        change: Cost = NOTHING,
    ) -> Entry:
        """The line after `head` (None: the first one). `change`: of units and leak."""
        at = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        words = (kind, spend, at, who, _code(), purpose, encoded(content))
        number, spent, leaked, previous = _after(head)
        sums = (change.units, change.leak, spent + change.units, leaked + change.leak)
        return Entry(number, *words, *sums, previous).sealed()

    def sealed(self) -> Entry:
        """The same line with its hash."""
        return replace(self, hash=self.digest())

    def digest(self) -> str:
        """What the hash should be."""
        text = json.dumps([getattr(self, name) for name in NAMES[:-1]], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def is_untouched(self) -> bool:
        """Whether nothing is charged after it."""
        return self.spent == self.leaked == 0

    @property
    def values(self) -> dict[str, Any]:
        """The content, read strictly."""
        found = DOCUMENT.json(self.content)
        if not isinstance(found, dict):
            raise malformed("an object as content", found)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return _checks.fields_of(self)

    @staticmethod
    def from_dict(values: object) -> Entry:
        """The inverse of `to_dict`: the right fields of the right types. Whether it fits the chain
        is the state's to say."""
        if not isinstance(values, dict) or set(values) != set(NAMES):
            raise malformed(f"the fields {sorted(NAMES)}", values)
        for name, value in values.items():
            right = name not in NUMBERS and (value == "" or is_line(value, MOST_TEXT))
            if not right and (type(value) is not int or name not in NUMBERS or abs(value) >> 62):
                raise malformed(f"a whole number, or printable text, for {name}", value)
        if values["kind"] not in KINDS:
            raise malformed(f"a kind among {KINDS}", values["kind"])
        return Entry(**values)


NAMES = tuple(field.name for field in fields(Entry))
NUMBERS = frozenset(field.name for field in fields(Entry) if field.type == "int")


def _after(head: Entry | None) -> tuple[int, int, int, str]:
    """(number, units, leak, hash) that the line after `head` goes on from."""
    return (head.number + 1, head.spent, head.leaked, head.hash) if head else (0, 0, 0, "0" * 64)


def encoded(values: object) -> str:
    """JSON with no spaces and sorted names; half of a pair of surrogates is refused."""
    text = json.dumps(values, separators=(",", ":"), sort_keys=True, allow_nan=False)
    if "\\ud" in text:
        DOCUMENT.require_writable(values)
    return text


@lru_cache(maxsize=1)
def _code() -> str:
    return ", ".join(f"{name} {version}" for name, version in versions_now())


# -- what they add up to ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Spent:
    """Where a spend stands. `units`, `leak`: what it is charged now; `last`: what happened to it
    last; `complete`: whether it did all of its plan."""

    reserved: Entry
    units: int
    leak: int
    last: str = RESERVED
    sitting: int = 0
    complete: bool = False

    @staticmethod
    def of(line: Entry, *later: Entry) -> Spent:
        """Where it stands after its lines; an error where no ledger could have written them."""
        if line.kind != RESERVED or line.units < 0 or line.leak < 0:
            raise malformed("a spend that begins by being reserved", line.kind)
        now = Spent(line, line.units, line.leak)
        for one in later:
            now = now.after(one)
        return now

    @property
    def is_open(self) -> bool:
        """Whether it may still be settled."""
        return self.last not in (COMMITTED, REFUNDED)

    @property
    def whole(self) -> bool:
        """Whether it was given all of an untouched ledger."""
        return Cost(self.reserved.units, self.reserved.leak) == ALL

    def charge(self, cost: Cost | None) -> Cost:
        """What it is charged once events of this cost were admitted (None: as reserved): that, and
        never more than was reserved.

        Units and leak go together: of two bounds on what was released one holds, and not the
        smaller half of each. A log that costs more than was reserved is an error, and leaves the
        spend open, charged as reserved; the last bits of a sum are none.
        """
        # A spend that got the whole ledger was priced as one plan: no smaller part is known of it.
        if cost is None or self.whole:
            return Cost(self.units, self.leak)
        if cost.units <= self.units and cost.leak <= self.leak:
            return cost
        fix = "Reserve all that a release may cost, before it is asked. What was reserved stays "
        for charged, least in ((self.units, cost.units), (self.leak, cost.leak)):
            expected = f"a log that costs at most the {charged / WHOLE:.3%} reserved"
            enough, got = least <= charged + charged // LAST_BITS + 1, f"{least / WHOLE:.3%}"
            need(enough, "spend", expected, f"{got} of the budget", f"{fix}charged.")
        return Cost(self.units, self.leak)

    def after(self, line: Entry) -> Spent:
        """Where it stands one line later; an error where no ledger could have written it."""
        if line.kind not in (RESUMED, COMMITTED, REFUNDED) or not self.is_open:
            raise malformed(f"nothing after a spend was {self.last}, or a step of it", line.kind)
        units, leak = self.units + line.units, self.leak + line.leak
        if line.kind == RESUMED:
            sitting = line.values.get("sitting")
            # Sittings rise: an old copy of a run cannot be resumed after a newer one
            # (docs/theory/composition.md, old copies).
            if type(sitting) is not int or sitting <= self.sitting or line.units or line.leak:
                raise malformed("a later sitting, for no more", sitting)
            return replace(self, last=RESUMED, sitting=sitting)
        within = line.units <= 0 and line.leak <= 0 and units >= 0 and leak >= 0
        if not within or (line.kind == REFUNDED and (units or leak)):
            raise malformed("a settlement within what was reserved", line.units)
        complete = line.kind == COMMITTED and line.values.get("complete") is True
        return Spent(self.reserved, units, leak, line.kind, self.sitting, complete)


class State:
    """What lines add up to, one after another: the terms, the last line, where each spend stands (of
    the line that reserved it all but its content), and the columns that every release protects."""

    def __init__(self) -> None:
        self.terms: Terms | None = None
        self.head: Entry | None = None
        self.columns: tuple[str, ...] | None = None
        self.spends: dict[str, Spent] = {}

    def copy(self) -> State:
        """One that goes on by itself."""
        other = copy(self)
        other.spends = dict(self.spends)
        return other

    def misfits(self, line: Entry) -> list[str]:
        """How a line does not follow those before it, or none: in number, chain, hash and sums."""
        number, spent, leaked, previous = _after(self.head)
        sums, here = (spent + line.units, leaked + line.leak), f"line {line.number}"
        gap = "does not follow the line before it: one was changed, or one between was taken out"
        bare = number > 0 or (line.units, line.leak, line.spend) == (0, 0, "")
        summed = f"says that {line.spent} units are spent; its lines add up to {sums[0]}"
        rules = (
            (line.number == number, f"is not number {number}, which is missing"),
            (line.previous == previous, gap),
            (line.hash == line.digest(), "is not what its hash was made of: it was changed"),
            ((line.spent, line.leaked) == sums, summed),
            (max(line.spent, line.leaked) <= MOST, "passes the cap"),
            (bare, "begins the ledger, and says more than its terms"),
        )
        return [f"{here} {sentence}" for holds, sentence in rules if not holds]

    def add(self, line: Entry) -> None:
        """One more line; an error where no ledger could have written it after those before."""
        if self.terms is None:
            self.terms = Terms.of(line)
            self.columns = self.terms.columns
        else:
            known = self.spends.get(line.spend)
            if (known is None) != (line.kind == RESERVED):
                fix = "begins the ledger, or a spend, a second time, or settles one never reserved"
                raise LedgerError(f"line {line.number} {fix}: {line.kind} {line.spend}")
            now = Spent.of(replace(line, content="")) if known is None else known.after(line)
            if known is None and self.columns is None and self.terms.promise.protects != "records":
                named = line.values.get("columns")
                self.columns = None if named is None else checked_columns(named)
            self.spends[line.spend] = now
        self.head = line


# -- what contradicts them -------------------------------------------------------------------------

Told = Iterator[tuple[bool, str]]


def findings(lines: Iterable[Entry], receipts: Sequence[Receipt] = ()) -> list[Finding]:
    """All contradictions among the lines, and with receipts that were kept elsewhere, the grave ones
    first: everything is worked out again."""
    return sorted(_told(_contradictions(lines, receipts)), key=lambda one: not one.grave)


def _told(found: Told) -> Iterator[Finding]:
    """All of it; where lines of a stranger cannot even be read, that."""
    try:
        for grave, sentence in found:
            yield Finding(grave, sentence)
    except UNPRICED as error:
        name = "" if isinstance(error, FairveilError) else f"{type(error).__name__}: "
        yield Finding(True, f"its lines cannot be read: {name}{error}")


def _contradictions(lines: Iterable[Entry], receipts: Sequence[Receipt]) -> Told:
    state, latest, promises = State(), "", dict[str, object]()
    costs: dict[tuple[str, str], tuple[Event, Promise, Cost]] = {}
    kept: dict[int, list[Receipt]] = {}
    for receipt in receipts:
        kept.setdefault(receipt.entry, []).append(receipt)

    def priced(terms: Terms, plan: object, promise: Any) -> tuple[Event, Promise, Cost]:
        key = (repr(plan), repr(promise))
        if key not in costs:
            event, asked = from_dict(plan), Promise.from_dict(promise)
            costs[key] = (event, asked, terms.cost(event, asked))
        return costs[key]

    for line in lines:
        here, values = f"line {line.number}", line.values
        yield from ((True, sentence) for sentence in state.misfits(line))
        state.add(line)
        if line.at < latest:
            yield False, f"{here} is dated before the line above it"
        latest = max(line.at, latest)
        now, terms = state.spends.get(line.spend), state.terms
        if now and terms and line.kind == RESERVED:
            promises[line.spend] = values.get("promise")
            event, promise, cost = priced(terms, values.get("plan"), values.get("promise"))
            strict = (values.get("noise"), values.get("read_from_data")) == ("secure", [])
            if terms.production and not strict:
                yield True, f"{here} has seeded noise, or something read from the data"
            if (named := values.get("columns")) is not None:
                if promise.protects == "records" or list(checked_columns(named)) != named:
                    yield True, f"{here} names protected columns that its guarantee does not have"
                if missed := ", ".join(sorted(set(state.columns or ()) - set(named))):
                    yield True, f"{here} does not protect {missed}: its release published them"
            if now.whole and not terms.fits_alone(event, promise):
                yield True, f"{here} was given the whole ledger, and could not be"
            if not now.whole:
                yield from _too_little(here, now, cost)
        elif now and terms and line.kind == COMMITTED:
            events = values.get("events")
            if (events is None or now.whole) and (line.units or line.leak):
                yield True, f"{here} gives back a part of what was released"
            elif events is not None and not now.whole:
                yield from _too_little(here, now, priced(terms, events, promises[line.spend])[2])
        for receipt in kept.pop(line.number, ()):
            if terms and receipt.dataset != terms.dataset:
                words = f"and this is the ledger of {terms.dataset!r}"
                yield True, f"a receipt is of data set {receipt.dataset!r}, {words}"
            if (receipt.hash, receipt.spend) != (line.hash, line.spend):
                words = "is not the one of which a receipt was given: the ledger was written anew"
                yield True, f"{here} {words}"
    for number in sorted(kept):
        yield True, f"a receipt names line {number}, which is not there: lines were taken off"
    if waiting := sum(now.is_open for now in state.spends.values()):
        words = "running, or their process died, and charged as reserved"
        yield False, f"spends that are not settled ({words}): {waiting}"


def _too_little(here: str, now: Spent, cost: Cost) -> Told:
    pairs = ((now.units, cost.units), (now.leak, cost.leak))
    if not all(charged >= least * (1 - SLACK) - 1 for charged, least in pairs):
        yield True, f"{here} is charged {now.units} units; its events cost {cost.units}"


def statement_findings(statement: PrivacyStatement, lines: Sequence[Entry]) -> list[Finding]:
    """What does not fit between a statement and all lines of its ledger.

    A statement may be of several spends: a post-processor's of its base and its counts, one without
    a plan of each of its answers. And a line may be of several statements: of models that were
    fitted side by side. So what a statement's plan holds must be in the plan of its receipt's line
    and, where that is less, in those of earlier ones.
    """
    return list(_told(_of_statement(statement, lines)))


def _of_statement(statement: PrivacyStatement, lines: Sequence[Entry]) -> Told:
    receipt = statement.ledger
    own = [line for line in lines if receipt and line.spend == receipt.spend]
    if receipt is None or not own:
        words = "it has no receipt: nothing shows that a ledger holds this release"
        gone = receipt and f"line {receipt.entry} of its receipt is not there: lines were taken off"
        yield True, gone or words
        return
    now, spend = Spent.of(*own), f"spend {receipt.spend}"
    first, n = now.reserved, now.reserved.number
    plan, noise = from_dict(first.values["plan"]), first.values["noise"]
    ours, theirs = under(statement.promise), under(Promise.from_dict(first.values["promise"]))
    told = (n, first.hash, first.digest()) == (receipt.entry, receipt.hash, first.hash)
    written = f"line {receipt.entry} is not the one of its receipt: it was written anew"
    stated = f"its noise is stated as {statement.noise}, line {n} was reserved for {noise}"
    returned = f"{spend} was given back: nothing of this release is charged"
    rules = (
        (True, told, written),
        (True, ours == theirs, f"it is under {ours}, line {n} was reserved under {theirs}"),
        (True, noise == statement.noise, stated),
        (True, now.last != REFUNDED, returned),
        (False, not now.is_open, f"{spend} is not settled: it is charged as it was reserved"),
    )
    yield from ((grave, words) for grave, holds, words in rules if not holds)
    wanted = releases(statement.events if statement.plan is None else statement.plan)
    here = releases([plan])
    # What was given back had not been released: all of the plan was done, finer than planned, or what
    # the statement lists is among what is charged.
    charged = own[-1].values.get("events") if now.last == COMMITTED else None
    if charged is not None and (now.units, now.leak) != (first.units, first.leak):
        events = from_dict(charged)
        lacking = releases(statement.events) - (wanted - here) - releases([events])
        if lacking and not is_whole((events,), (plan,), statement.promise.neighbours):
            words = f"of its releases are not among those that line {own[-1].number} is"
            yield True, f"{lacking.total()} {words} charged for"
    missing, numbers = wanted - here, [n]
    if not missing and here != wanted:
        yield False, f"line {n} holds other releases beside it: they were reserved together"
    refunded = {entry.spend for entry in lines if entry.kind == REFUNDED}
    for entry in reversed([line for line in lines if line.number < n]):
        if missing and entry.kind == RESERVED and entry.spend not in refunded:
            there = releases([from_dict(entry.values["plan"])])
            if there and (there <= missing or missing <= there):
                missing = missing - there
                numbers.insert(0, entry.number)
    if missing:
        words = f"its plan is not in the ledger: neither line {n} nor earlier ones reserved"
        yield True, f"{words} {missing.total()} of its {wanted.total()} releases"
    elif len(numbers) > 1:
        yield False, f"it is of several spends: lines {', '.join(map(str, numbers))}"


def releases(events: Iterable[Event], times: int = 1) -> Counter[Event]:
    """Every release that composition and repetition stand for, with how often it was made.

    >>> from fairveil.core.events import Gaussian, compose
    >>> releases([Gaussian(2.0), Repeated(compose([Gaussian(2.0), NoOp()]), 3)])
    Counter({Gaussian(noise_multiplier=2.0): 4})
    """
    found: Counter[Event] = Counter()
    for event in events:
        if isinstance(event, Composed):
            found.update(releases(event.events, times))
        elif isinstance(event, Repeated):
            found.update(releases([event.event], times * event.count))
        elif not isinstance(event, NoOp):
            found[event] += times
    return found
