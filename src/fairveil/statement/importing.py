"""What another library spent: the history of an opacus accountant, a DpEvent (dp_accounting,
jax_privacy), or an event that a script says; to be priced here and recorded in a ledger.

The release has happened. Importing it checks that its description can be added to a ledger; nobody
can check that the description is true. Relation, rows a person and sampling are therefore named by
the caller, and none of them has a default. No other library is imported: objects are read by class
and fields, as are their named tuples and these as JSON.

Guarantees (tests/statement/test_importing.py).
1. An imported event costs no less than the mechanism that it was read from, under the relation that
   was named; every step of a history and every event of a tree is in it.
2. What cannot be mapped is refused with its reason: nothing is dropped, and nothing is guessed.
3. A person with several rows is charged for all of them, or the import is refused.
4. Recording is one line pair in the ledger or nothing, and never takes an untouched ledger at the
   tight price unless the caller says that all was fixed in advance.
5. What `Imported.write` wrote reads back as the same; a document with anything else is refused.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from json import dumps
from pathlib import Path
from typing import Any

from .. import _checks
from .._json import Document
from .._reading import read_text
from ..core import cost as accounting
from ..core.cost import Price
from ..core.errors import need
from ..core.events import (
    MOST_PARTS,
    Composed,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    ZeroConcentrated,
    brief,
    compose,
    from_dict,
)
from ..core.inventory import as_event, inventory
from ..core.promise import Neighbours, Promise, relation
from ..errors import BudgetError, Complaint, InputError, Overspent
from .document import write

__all__ = ["Imported", "from_dp_event", "from_opacus", "read_import"]
FORMAT, FORMAT_VERSION = "fairveil-import", 1
MOST_ROWS = 1 << 20
ABSENT = (
    "The release has happened: nothing was recorded, and these rows have lost more than this "
    "ledger allows. Begin a ledger with a larger budget, and import every release into it."
)


@dataclass(frozen=True)
class Imported:
    """What another library spent. Make one by `from_opacus`, `from_dp_event`,
    `Imported.of` or `read_import`.

    `events`: what was done, for neighbours in all rows of one person. `library`: its name and
    version. `notes`: sentences about what the mapping left loose or took on trust. `secure_noise`:
    whether the noise came from a cryptographic generator.

    >>> from fairveil.core.events import Gaussian
    >>> spent = Imported.of(Gaussian(4.0), "add-remove", "a script of ours", rows_per_person=1)
    >>> print(f"{spent.price(1e-6).epsilon:.2f}")
    1.06
    """

    events: Event
    neighbours: Neighbours
    library: str
    notes: tuple[str, ...] = ()
    secure_noise: bool = False

    @staticmethod
    def of(
        events: object,
        neighbours: str,
        library: str,
        *,
        rows_per_person: int,
        notes: tuple[str, ...] = (),
        secure_noise: bool = False,
    ) -> Imported:
        """Checked. `rows_per_person`: the most rows that one person has, where `events` are for
        neighbours in one row."""
        related, event = relation(neighbours), as_event(events)  # type: ignore[arg-type]  # it checks
        rows, of = _checks.whole(at_least=1, rows_per_person=rows_per_person), "rows_per_person"
        fix = "Count the rows of the person who has most."
        need(rows <= MOST_ROWS, f"at most {MOST_ROWS} rows", of=of, got=rows, fix=fix)
        whole = in_a_row(event, related, rows)
        if whole is None:
            expected = "Gaussian or pure releases where a person has several rows"
            fix = "Let the other library protect all rows of a person, one contribution each: 1."
            raise _refusal(expected, of, rows, fix)
        line = 0 < len(library) <= 100 and library.isprintable()
        fix = "Pass library='opacus 1.6.0', for example."
        need(line, "a name on one line", of="library", got=library, fix=fix)
        secure = _checks.truth(secure_noise=secure_noise)
        return Imported(whole, related, library, tuple(notes), secure)

    def price(self, delta: float) -> Price:
        """What all of it costs alone, at this delta: a bound if all was fixed in advance."""
        return accounting.price(self.events, delta, self.neighbours)

    def promise(self, ledger: Any) -> Promise:
        """Whose neighbours it is priced for, with the ledger's epsilon and delta."""
        own = getattr(ledger, "promise", None)
        if not isinstance(own, Promise):
            raise _refusal("a Ledger", "ledger", ledger, "Pass Ledger.open(address), for example.")
        return Promise(own.epsilon, own.delta, "records", self.neighbours, own.unit)

    def record(self, ledger: Any, purpose: str = "", *, fixed_in_advance: bool = False) -> Any:
        """Charge a `Ledger`, for good, and return its `Spend`; an error, and nothing is written,
        where the ledger cannot take it or has no room.

        `fixed_in_advance`: all parameters and the number of steps were fixed before the data were
        touched. Only then may the first spend of a ledger take all of it at the tight price.
        """
        told, words = _purpose(purpose), f"imported from {self.library}"
        fixed, asked = _checks.truth(fixed_in_advance=fixed_in_advance), self.promise(ledger)
        options = {"purpose": f"{told} ({words})" if told else words, "fixed": fixed}
        try:
            spend = ledger.reserve(self.events, asked, secure=self.secure_noise, **options)
        except Overspent as error:  # what would have fitted is no way out: it has happened
            said = error.args[0]
            assert isinstance(said, Complaint)
            raise BudgetError.expected(
                said.expected, of=said.of, got=said.got, remedy=ABSENT, quote=said.quote
            ) from None
        spend.commit()
        return spend

    def spend(
        self, ledger: Any, purpose: str, *, fixed_in_advance: bool = False
    ) -> AbstractContextManager[Any]:
        """Charge what a block of the other library's code is about to release: see `Ledger.spend`.
        The block does not run where there is no room."""
        told: AbstractContextManager[Any] = ledger.spend(
            self.events,
            purpose=f"{purpose} (with {self.library})" if _purpose(purpose) else "",
            neighbours=self.neighbours,
            secure=self.secure_noise,
            fixed_in_advance=fixed_in_advance,
        )
        return told

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, which `read_import` and `fairveil ledger import` take."""
        head = {"format": FORMAT, "version": FORMAT_VERSION, "library": self.library}
        said = {"secure_noise": self.secure_noise, "notes": list(self.notes)}
        whose = {"neighbours": self.neighbours, "rows_per_person": 1}
        return {**head, **whose, **said, "event": self.events.to_dict()}

    def write(self, path: str | os.PathLike[str]) -> Path:
        """A new file, whole or not at all."""
        target = Path(path)
        fix = "Name another file: this one may not have been imported yet."
        expected = "a file that is not there yet"
        need(not target.exists(), expected, of="path", got=str(target), fix=fix)
        return write(target, dumps(self.to_dict(), indent=1) + "\n")


def _purpose(given: object) -> str:
    if not isinstance(given, str):
        raise _refusal("words", "purpose", given, "Pass purpose='monthly model', for example.")
    return given


def in_a_row(event: Event, neighbours: Neighbours, times: int) -> Event | None:
    """The event that bounds these, released under `neighbours`, between data sets `times` neighbours
    apart; None where there is no closed form. G_mu between neighbours is G_(k mu) there (Dong, Roth
    and Su 2022, Theorem 2.14), and what is epsilon-private is k epsilon-private.

    >>> in_a_row(Gaussian(4.0), "add-remove", 2).noise_multiplier <= 2.0
    True
    >>> in_a_row(Pure(0.5), "replace-one", 2)
    Pure(epsilon=1.0)
    """
    total = inventory(event, neighbours)
    if times == 1:
        return event
    if not total.private or accounting.whole_error(total, neighbours) > 0:
        return None
    if not total.others:
        mu = math.sqrt(total.gaussian)
        return Gaussian(1.0 / times / mu * (1 - 1e-15)) if mu > 0 else NoOp()
    epsilon, leak = accounting.addition(total, neighbours)
    if leak > 0 or math.isinf(epsilon):
        return None
    exact = 1.0 if times == 2 else 1 + 1e-15
    return compose([Pure(times * epsilon * exact)]) if epsilon > 0 else NoOp()


def _refusal(expected: str, of: str, got: object, fix: str) -> InputError:
    """The error of what cannot be mapped."""
    return InputError.expected(expected, of=of, got=brief(got), remedy=fix)


def _plain(value: object) -> Any:
    """A number of any library as Python's own; what is no number is handed on, for the checks to
    refuse."""
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():  # NumPy, JAX and torch scalars
        return item()
    return value


def _version_of(package: str) -> str:
    """`opacus 1.6.0`; the name alone where it is not installed."""
    try:
        return f"{package} {version(package.replace('_', '-'))}"
    except PackageNotFoundError:
        return package


def _listed(values: object, of: str, expected: str, fix: str) -> Sequence[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise _refusal(expected, of, values, fix)
    return values


# ---- opacus: one (noise multiplier, sample rate, steps) a run of equal steps
#
# opacus counts a step when its optimizer takes one, and prices every step as one secret Poisson
# batch between data sets that differ by one row added or removed. It does so as well where
# `poisson_sampling=False`, and the loader shuffles: the caller says which it was.

SAMPLING = ("poisson", "shuffled")
RATE_NOTE = (
    "The sample rate of opacus is one over the number of batches: it was taken to be public."
)
PASSES_NOTE = "Batches were no Poisson samples: every pass was charged as one release on all rows."
SLACK = 1e-9
"""Relative rounding of steps x rate."""
OPACUS = "Pass the PrivacyEngine, its accountant, accountant.state_dict() or accountant.history."


def from_opacus(
    spent: object,
    *,
    sampling: str,
    neighbours: str,
    rows_per_person: int,
    passes: int | None = None,
    secure_noise: bool = False,
) -> Imported:
    """What an opacus accountant has counted.

    `spent`: a `PrivacyEngine`, an accountant, its `state_dict()`, or the history itself.
    `sampling`: "poisson" where the loader was made with `poisson_sampling=True` (opacus's own
    choice), else "shuffled". `passes`: with "shuffled", how many passes over the rows were begun.
    `secure_noise`: whether `secure_mode=True`.

    >>> spent = from_opacus(
    ...     [(1.0, 0.01, 500)], sampling="poisson", neighbours="add-remove", rows_per_person=1
    ... )
    >>> spent.events
    Repeated(event=PoissonSampled(rate=0.01, event=Gaussian(noise_multiplier=1.0), spreads=None), count=500)
    """
    related, history = relation(neighbours), _history(spent)
    if _checks.one_of(SAMPLING, sampling=sampling) == "poisson":
        expected, fix = "none where sampling is 'poisson'", "Steps are counted by the accountant."
        need(passes is None, expected, of="passes", got=brief(passes), fix=fix)
        event, note = compose(Repeated(_step(z, q), count) for z, q, count in history), RATE_NOTE
    else:
        expected = "'replace-one' where batches are shuffled"
        fix = "A row that comes moves others from batch to batch: name replace-one, or sample by Poisson."
        need(related == "replace-one", expected, of="neighbours", got=neighbours, fix=fix)
        event, note = _by_passes(history, passes), PASSES_NOTE
    return Imported.of(
        event,
        related,
        _version_of("opacus"),
        rows_per_person=rows_per_person,
        notes=(note,),
        secure_noise=secure_noise,
    )


def _step(multiplier: float, rate: float) -> Event:
    if multiplier == 0 and rate > 0:
        return NonPrivate()
    return PoissonSampled(rate, Gaussian(multiplier)) if rate > 0 else NoOp()


def _by_passes(history: list[tuple[float, float, int]], passes: int | None) -> Event:
    """A row is in one batch a pass, so it moves one noisy sum of the pass, by at most twice the
    clipping norm."""
    if passes is None:
        fix = "Say how many passes over the rows were begun; one that broke off counts."
        raise _refusal("a whole number where sampling is 'shuffled'", "passes", "none", fix)
    count = _checks.whole(at_least=1 if history else 0, passes=passes)
    taken = sum(rate * steps for _, rate, steps in history)
    expected = f"at least the {taken:.4g} passes of the history"
    fix = "A pass has one step a batch: count the passes again."
    need(taken / (1 + SLACK) <= count, expected, of="passes", got=count, fix=fix)
    if not history:
        return NoOp()
    least = min(multiplier for multiplier, _, _ in history)
    return Repeated(Gaussian(least / 2.0), count) if least > 0 else NonPrivate()


def _history(spent: object) -> list[tuple[float, float, int]]:
    found = getattr(spent, "accountant", spent)  # of an engine
    if isinstance(found, Mapping):
        found = found.get("history")
    found = getattr(found, "history", found)
    out = []
    for entry in _listed(found, "spent", "a history of opacus", OPACUS):
        words = "(noise multiplier, sample rate, steps)"
        row = _listed(entry, "history", words, OPACUS)
        need(len(row) == 3, words, of="history", got=f"{len(row)} values", fix=OPACUS)
        multiplier, rate, steps = map(_plain, row)
        out.append(
            (
                _checks.non_negative(noise_multiplier=multiplier),
                _checks.fraction(sample_rate=rate),
                _checks.whole(steps=steps),
            )
        )
    return out


# ---- DpEvents: which data sets are neighbours is told to the accountant that prices them, so the
# caller names the relation here, too. `noise_multiplier` is documented as noise over the norm C of
# one record's contribution; a replaced record moves a sum by up to 2 C, so unsampled events are
# mapped at half their multiplier under replace-one. Who divided by the sensitivity under the
# relation instead says `multipliers="sensitivity"`. REPLACE_SPECIAL (a record becomes an empty one)
# is mapped to replace-one: a record replaced is one emptied and one filled.

RELATIONS = {
    "add-remove": "add-remove",
    "replace-one": "replace-one",
    "ADD_OR_REMOVE_ONE": "add-remove",
    "REPLACE_ONE": "replace-one",
    "REPLACE_SPECIAL": "replace-special",
}
MULTIPLIERS = ("norm", "sensitivity")
DEEPEST = 50
REASONS = {
    "UnsupportedDpEvent": "it says that nobody can price it",
    "SampledWithReplacementDpEvent": "a record may be in one batch several times, which no event "
    "describes",
}
Fields = Mapping[str, Any]


def from_dp_event(
    spent: object,
    *,
    neighbours: object,
    rows_per_person: int,
    multipliers: str = "norm",
    secure_noise: bool = False,
) -> Imported:
    """What a DpEvent describes: the object, its named tuple, or that as a JSON object.

    `neighbours`: "add-remove", "replace-one", or a `NeighboringRelation`. `multipliers`: "norm", as
    documented, or "sensitivity".

    >>> inner = {"class_name": "LaplaceDpEvent", "noise_multiplier": 2.0}
    >>> event = {"class_name": "SelfComposedDpEvent", "count": 3, "event": inner}
    >>> from_dp_event(event, neighbours="replace-one", rows_per_person=1).events
    Repeated(event=Laplace(noise_multiplier=1.0), count=3)
    """
    named = getattr(neighbours, "name", neighbours)
    if not isinstance(named, str) or named not in RELATIONS:
        expected = "'add-remove', 'replace-one' or a NeighboringRelation"
        raise _refusal(
            expected, "neighbours", str(named), "Pass the relation that the guarantee is for."
        )
    reader = _Reader(RELATIONS[named], _checks.one_of(MULTIPLIERS, multipliers=multipliers))
    return Imported.of(
        compose([reader.read(spent, 0)]),
        reader.own,
        _version_of("dp_accounting"),
        rows_per_person=rows_per_person,
        secure_noise=secure_noise,
    )


class _Reader:
    """One walk over a tree. `relation` may be "replace-special"."""

    def __init__(self, relation: str, multipliers: str) -> None:
        self.relation, self.multipliers = relation, multipliers
        self.own = "add-remove" if relation == "add-remove" else "replace-one"
        # what a multiplier over the norm is times, to be one over the sensitivity
        self.share = 0.5 if self.own == "replace-one" and multipliers == "norm" else 1.0

    def read(self, given: object, depth: int) -> Event:
        """The event of a DpEvent."""
        name, fields = _described(given, depth)
        try:
            return self._event(name, fields, depth + 1)
        except KeyError as missing:
            fix = "Pass the event as dp_accounting made it."
            raise _refusal(f"a field {missing}", name, ", ".join(fields), fix) from None

    def _event(self, name: str, fields: Fields, depth: int) -> Event:
        match name:
            case "NonPrivateDpEvent":
                return NonPrivate()
            case "ComposedDpEvent":
                return Composed(tuple(self.read(one, depth) for one in _inner(fields)))
            case "SelfComposedDpEvent":
                return Repeated(self.read(fields["event"], depth), _count(fields, "count"))
            case "PoissonSampledDpEvent":
                return self._poisson(fields, depth)
            case "SampledWithoutReplacementDpEvent":
                return self._without_replacement(fields, depth)
            case "RepeatAndSelectDpEvent":
                mean, shape = (_plain(fields[one]) for one in ("mean", "shape"))
                return PrivateSelection(self.read(fields["event"], depth), mean, shape)
            case "ZCDpEvent":
                return _zero_concentrated(fields, emptied=self.relation == "replace-special")
        found = _leaf(name, fields, self.share)
        if found is None:
            why = REASONS.get(name, "it is not known here")
            raise _refusal("an event that can be mapped", "event", name, f"Refused: {why}.")
        return found

    def _poisson(self, fields: Fields, depth: int) -> Event:
        """One joint release on one batch. A batch of a batch has the product of both rates."""
        rate = _rate(fields)
        name, inner = _described(fields["event"], depth)
        if name == "PoissonSampledDpEvent":
            product = {"sampling_probability": rate * _rate(inner), "event": inner["event"]}
            return self._poisson(product, depth + 1)
        if rate in (0, 1):
            whole = self.read(fields["event"], depth)  # for its errors, too
            return whole if rate else NoOp()
        parts = self._joint(fields["event"], 1.0, depth)
        if NonPrivate() in parts:
            return NonPrivate()
        clear = self.own == "add-remove" or self.multipliers == "norm"
        fix = "Divide by the norm of one record's contribution, as dp_accounting documents: 'norm'."
        expected = "multipliers over the norm inside a sample"
        need(clear, expected, of="multipliers", got="sensitivity", fix=fix)
        return PoissonSampled(rate, compose(parts)) if parts else NoOp()

    def _without_replacement(self, fields: Fields, depth: int) -> Event:
        """A batch of m among n records, a record replaced: q times the profile at 1 + (e^eps -
        1)/q, q = m/n, of the release on the batch (Balle, Barthe and Gaboardi 2018, Theorem 9).
        That is the profile of theory.md#t3 with c = d, the sensitivity."""
        fix = "A batch of fixed size shows nothing only where the number of records is public."
        known, expected = self.own == "replace-one", "'replace-one' for batches without replacement"
        need(known, expected, of="neighbours", got=self.relation, fix=fix)
        size, taken = _count(fields, "source_dataset_size", 1), _count(fields, "sample_size")
        fix, expected = "Without replacement there are no more records.", f"at most {size}"
        need(taken <= size, expected, of="sample_size", got=taken, fix=fix)
        parts = self._joint(fields["event"], self.share, depth)
        if not parts or not taken:
            return NoOp()
        if NonPrivate() in parts:
            return NonPrivate()
        joint = Composed(parts) if len(parts) > 1 else parts[0]
        return joint if taken == size else PoissonSampled(taken / size, joint, (1.0,) * len(parts))

    def _joint(self, given: object, share: float, depth: int) -> tuple[Event, ...]:
        """The noise events of one release on one batch."""
        name, fields = _described(given, depth)
        if name == "ComposedDpEvent":
            each = (self._joint(one, share, depth + 1) for one in _inner(fields))
            return tuple(part for parts in each for part in parts)
        if name == "SelfComposedDpEvent":
            count = _count(fields, "count")
            parts = self._joint(fields["event"], share, depth + 1) if count else ()
            expected = f"at most {MOST_PARTS} releases on one batch"
            fix = "Sample each time anew, if that is what was done: SelfComposed of the sampled event."
            need(len(parts) * count <= MOST_PARTS, expected, of=name, got=count, fix=fix)
            return parts * count
        found = NonPrivate() if name == "NonPrivateDpEvent" else _leaf(name, fields, share)
        if found is None:
            fix = "Inside a sample only Gaussian, Laplace and discrete Laplace noise has a price."
            raise _refusal("noise inside a sampled event", "event", name, fix)
        return () if isinstance(found, NoOp) else (found,)


def _rate(fields: Fields) -> float:
    return _checks.fraction(sampling_probability=_plain(fields["sampling_probability"]))


def _count(fields: Fields, name: str, least: int = 0) -> int:
    return _checks.whole(at_least=least, **{name: _plain(fields[name])})


def _some(fields: Fields, name: str) -> float:
    return _checks.non_negative(allow_inf=True, **{name: _plain(fields[name])})


def _inner(fields: Fields) -> Sequence[Any]:
    fix = "Pass ComposedDpEvent([...])."
    return _listed(fields["events"], "ComposedDpEvent", "a list of events", fix)


def _leaf(name: str, fields: Fields, share: float) -> Event | None:
    """A noise event; None of other names. Multiplier 0 is no noise, and an infinite one is nothing
    else. `share`: see `_Reader`; a replaced record moves integers by up to twice as much."""
    if name == "NoOpDpEvent":
        return NoOp()
    if name == "DiscreteLaplaceDpEvent":  # P(x) ~ exp(-a |x|): the scale is 1/a
        decay = _some(fields, "noise_parameter")
        moved = _count(fields, "sensitivity", 1) * round(1.0 / share)
        if math.isinf(decay):
            return NonPrivate()
        return DiscreteLaplace(1.0 / decay / moved, moved) if decay > 0 else NoOp()
    kind = {"GaussianDpEvent": Gaussian, "LaplaceDpEvent": Laplace}.get(name)
    if kind is None:
        return None
    multiplier = _some(fields, "noise_multiplier")
    if multiplier == 0:
        return NonPrivate()
    return NoOp() if math.isinf(multiplier) else kind(multiplier * share)


def _zero_concentrated(fields: Fields, *, emptied: bool) -> Event:
    """rho; where records are emptied, a replaced one is two steps away, and rho becomes 4 rho (Bun
    and Steinke 2016)."""
    rho, xi = _some(fields, "rho"), _some({"xi": 0.0, **fields}, "xi")
    fix = "A constant added to every Renyi divergence has no event here."
    need(xi == 0, "xi=0", of="ZCDpEvent", got="xi above 0", fix=fix)
    if math.isinf(rho):
        return NonPrivate()
    return ZeroConcentrated(rho * (4.0 if emptied else 1.0)) if rho > 0 else NoOp()


def _described(given: object, depth: int) -> tuple[str, Fields]:
    """The class and the fields of a DpEvent, of its named tuple, or of that as a JSON object, if it
    does not lie too deep."""
    fix = "Put them beside each other, in one ComposedDpEvent."
    need(depth <= DEEPEST, f"at most {DEEPEST} levels", of="event", got="more", fix=fix)
    name = given.get("class_name") if isinstance(given, Mapping) else None
    if isinstance(given, Mapping) and isinstance(name, str):
        return name, {one: value for one, value in given.items() if not str(one).endswith("_name")}
    name = getattr(given, "class_name", None)
    if isinstance(name, str) and hasattr(given, "_fields"):
        return name, {one: getattr(given, one) for one in given._fields[2:]}
    own = getattr(type(given), "__attrs_attrs__", None)
    if own is None or not type(given).__module__.startswith("dp_accounting."):
        fix = "Pass an event of dp_accounting: accountant.ledger's, or jax_privacy's dp_event."
        raise _refusal("a DpEvent", "event", given, fix)
    return type(given).__name__, {field.name: getattr(given, field.name) for field in own}


# ---- documents

MOST_BYTES = 1 << 26
SAID = ("neighbours", "rows_per_person", "secure_noise")
READERS: dict[str, tuple[Any, str, tuple[str, ...]]] = {
    "opacus": (from_opacus, "history", ("sampling", "passes")),
    "dp_accounting": (from_dp_event, "event", ("multipliers",)),
}
"""How each kind of content is read: by what, its field, and the options beside it."""
DOCUMENT = Document(
    "the import",
    "Write it with Imported.write, or see the page on other libraries.",
    largest=MOST_BYTES,
)


def read_import(path: str | os.PathLike[str]) -> Imported:
    """A document of what was spent elsewhere."""
    return parse_import(read_text(path, what="an import, as JSON", most=MOST_BYTES))


def parse_import(text: str) -> Imported:
    """The same, of the text."""
    kinds = ("event", *READERS)
    node = DOCUMENT.node(text).only(
        ("format", "version", *SAID[:2]), (*kinds, "library", "notes", SAID[2])
    )
    node["format"].one_of((FORMAT,))
    node["version"].whole(at_least=FORMAT_VERSION, at_most=FORMAT_VERSION)
    known = node.mapping()
    given = [kind for kind in kinds if kind in known]
    if len(given) != 1:
        DOCUMENT.refuse(f"one of {', '.join(kinds)}", ", ".join(given) or "none")
    (kind,), asked = given, {name: known[name] for name in SAID if name in known}
    library = node["library"].text() if "library" in known else None
    notes = node["notes"].texts() if "notes" in known else ()
    if kind == "event":
        found = Imported.of(from_dict(known[kind]), library=library or "another library", **asked)
    else:
        read, content, options = READERS[kind]
        inner = node[kind].only((content,), options).mapping()
        said = {name: one for name, one in inner.items() if name != content}
        if kind == "opacus" and "sampling" not in said:
            node[kind].refuse("a field 'sampling'", "none")
        found = read(inner[content], **asked, **said)
    if library is not None:
        found = Imported.of(
            found.events, found.neighbours, library, rows_per_person=1, notes=found.notes
        )
    secure = _checks.truth(secure_noise=known.get("secure_noise", False))
    return replace(found, notes=(*notes, *found.notes), secure_noise=secure)
