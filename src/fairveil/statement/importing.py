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
from json import dumps
from pathlib import Path
from typing import Any

from .. import _checks
from .._json import Document, Node
from .._reading import read_text
from ..core import cost as accounting
from ..core.cost import Price
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
    compose,
    from_dict,
)
from ..core.inventory import as_event, inventory
from ..core.promise import Neighbours, Promise
from ..core.promise import relation as checked_relation
from ..errors import BudgetError, Complaint, InputError, Overspent
from .document import write

__all__ = ["Imported", "from_dp_event", "from_opacus", "read_import"]
FORMAT, FORMAT_VERSION = "fairveil-import", 1
MOST_ROWS = 1 << 20
ABSENT = (
    "The release has happened: nothing was recorded, and these rows have lost more than this "
    "ledger allows. " + ("Begin a ledger with a larger budget, and import every release into it.")
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
        relation = checked_relation(neighbours)
        event = as_event(events)  # type: ignore[arg-type]  # it checks
        rows = _checks.whole(at_least=1, rows_per_person=rows_per_person)
        if rows > MOST_ROWS:
            remedy = "Count the rows of the person who has most."
            raise InputError.expected(
                f"at most {MOST_ROWS} rows", of="rows_per_person", got=rows, remedy=remedy
            )
        whole = _of_all_rows(event, relation, rows)
        if whole is None:
            remedy = (
                "Let the other library protect all rows of a person, one contribution each; then "
                "rows_per_person is 1."
            )
            expected = "Gaussian or pure releases where a person has several rows"
            raise InputError.expected(expected, of="rows_per_person", got=rows, remedy=remedy)
        if not 0 < len(library) <= 100 or not library.isprintable():
            remedy = "Pass library='opacus 1.6.0', for example."
            raise InputError.expected(
                "a name on one line", of="library", got=library, remedy=remedy
            )
        return Imported(
            whole, relation, library, tuple(notes), _checks.truth(secure_noise=secure_noise)
        )

    def price(self, delta: float) -> Price:
        """What all of it costs alone, at this delta: a bound if all was fixed in advance."""
        return accounting.price(self.events, delta, self.neighbours)

    def promise(self, ledger: Any) -> Promise:
        """Whose neighbours it is priced for, with the ledger's epsilon and delta."""
        own = getattr(ledger, "promise", None)
        if not isinstance(own, Promise):
            remedy = "Pass Ledger.open(address), for example."
            raise refusal("a Ledger", "ledger", type(ledger).__name__, remedy)
        return Promise(own.epsilon, own.delta, "records", self.neighbours, own.unit)

    def record(self, ledger: Any, purpose: str = "", *, fixed_in_advance: bool = False) -> Any:
        """Charge a `Ledger`, for good, and return its `Spend`; an error, and nothing is written,
        where the ledger cannot take it or has no room.

        `fixed_in_advance`: all parameters and the number of steps were fixed before the data were
        touched. Only then may the first spend of a ledger take all of it at the tight price.
        """
        words, told = f"imported from {self.library}", _purpose(purpose)
        told = f"{told} ({words})" if told else words
        fixed = _checks.truth(fixed_in_advance=fixed_in_advance)
        asked = self.promise(ledger)
        try:
            spend = ledger.reserve(
                self.events, asked, purpose=told, secure=self.secure_noise, fixed=fixed
            )
        except Overspent as error:
            raise _too_late(error) from None
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
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "library": self.library,
            "neighbours": self.neighbours,
            "rows_per_person": 1,
            "secure_noise": self.secure_noise,
            "notes": list(self.notes),
            "event": self.events.to_dict(),
        }

    def write(self, path: str | os.PathLike[str]) -> Path:
        """A new file, whole or not at all."""
        target = Path(path)
        if target.exists():
            remedy = "Name another file: this one may not have been imported yet."
            raise InputError.expected(
                "a file that is not there yet", of="path", got=str(target), remedy=remedy
            )
        return write(target, dumps(self.to_dict(), indent=1) + "\n")


def _purpose(given: object) -> str:
    if not isinstance(given, str):
        raise refusal("words", "purpose", given, "Pass purpose='monthly model', for example.")
    return given


def _of_all_rows(event: Event, neighbours: Neighbours, rows: int) -> Event | None:
    """What bounds these between tables that are so many neighbours apart; None where there is no
    closed form. G_mu between neighbours is G_(k mu) there (Dong, Roth and Su 2022, Theorem 2.14),
    and what is epsilon-private is k epsilon-private."""
    if rows == 1:
        return event
    total = inventory(event, neighbours)
    if not total.private or accounting.whole_error(total, neighbours) > 0:
        return None
    if not total.others:
        mu = math.sqrt(total.gaussian)
        return Gaussian(1.0 / rows / mu * (1 - 1e-15)) if mu > 0 else NoOp()
    epsilon, leak = accounting.addition(total, neighbours)
    if leak > 0 or math.isinf(epsilon):
        return None
    exact = 1.0 if rows == 2 else 1 + 1e-15
    return compose([Pure(rows * epsilon * exact)]) if epsilon > 0 else NoOp()


def _too_late(error: Overspent) -> BudgetError:
    """The same of a release that has happened: what would have fitted is no way out."""
    said = error.args[0]
    assert isinstance(said, Complaint)
    return BudgetError.expected(
        said.expected, of=said.of, got=said.got, remedy=ABSENT, quote=said.quote
    )


def refusal(expected: str, of: str, got: object, remedy: str) -> InputError:
    """The error of what cannot be mapped."""
    shown = got if isinstance(got, str | int | float) else type(got).__name__
    return InputError.expected(expected, of=of, got=shown, remedy=remedy)


def plain_number(value: object) -> object:
    """A number of any library as Python's own; what is no number is handed on, for the checks to
    refuse."""
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():  # NumPy, JAX and torch scalars
        return item()
    return value


def version_of(package: str) -> str:
    """`opacus 1.6.0`; the name alone where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{package} {version(package.replace('_', '-'))}"
    except PackageNotFoundError:
        return package


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
    relation = checked_relation(neighbours)
    chosen = _checks.one_of(SAMPLING, sampling=sampling)
    history = _history(spent)
    if chosen == "poisson":
        if passes is not None:
            raise refusal(
                "none where sampling is 'poisson'",
                "passes",
                passes,
                "Steps are counted by the accountant.",
            )
        event = compose(Repeated(_step(z, rate), steps) for z, rate, steps in history)
        notes: tuple[str, ...] = (RATE_NOTE,)
    else:
        if relation != "replace-one":
            remedy = (
                "A row that comes moves others from batch to batch: name replace-one, or sample by "
                "Poisson."
            )
            raise refusal(
                "'replace-one' where batches are shuffled", "neighbours", neighbours, remedy
            )
        event, notes = _by_passes(history, passes), (PASSES_NOTE,)
    library = version_of("opacus")
    return Imported.of(
        event,
        relation,
        library,
        rows_per_person=rows_per_person,
        notes=notes,
        secure_noise=secure_noise,
    )


def _step(multiplier: float, rate: float) -> Event:
    if multiplier == 0 and rate > 0:
        return NonPrivate()
    return PoissonSampled(rate, Gaussian(multiplier)) if rate > 0 else NoOp()


def _by_passes(history: Sequence[tuple[float, float, int]], passes: int | None) -> Event:
    """A row is in one batch a pass, so it moves one noisy sum of the pass, by at most twice the
    clipping norm."""
    if passes is None:
        remedy = "Say how many passes over the rows were begun; one that broke off counts."
        raise refusal("a whole number where sampling is 'shuffled'", "passes", "none", remedy)
    count = _checks.whole(at_least=1 if history else 0, passes=passes)
    taken = sum(rate * steps for _, rate, steps in history)
    if taken / (1 + SLACK) > count:
        remedy = "A pass has one step a batch: count the passes again."
        raise refusal(f"at least the {taken:.4g} passes of the history", "passes", count, remedy)
    least = min((multiplier for multiplier, _, _ in history), default=0.0)
    if not history:
        return NoOp()
    return Repeated(Gaussian(least / 2.0), count) if least > 0 else NonPrivate()


def _history(spent: object) -> list[tuple[float, float, int]]:
    accountant = getattr(spent, "accountant", spent)  # of an engine
    found = (
        accountant.get("history")
        if isinstance(accountant, Mapping)
        else getattr(accountant, "history", accountant)
    )
    remedy = (
        "Pass the PrivacyEngine, its accountant, accountant.state_dict() or accountant.history."
    )
    if isinstance(found, str | bytes) or not isinstance(found, Sequence):
        raise refusal("a history of opacus", "spent", spent, remedy)
    out = []
    for entry in found:
        if isinstance(entry, str | bytes) or not isinstance(entry, Sequence) or len(entry) != 3:
            raise refusal(
                "(noise multiplier, sample rate, steps)", "history", repr(entry)[:80], remedy
            )
        multiplier, rate, steps = map(plain_number, entry)
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
        remedy = "Pass the relation that the guarantee is for."
        raise refusal(expected, "neighbours", str(named), remedy)
    reader = _Reader(RELATIONS[named], _checks.one_of(MULTIPLIERS, multipliers=multipliers))
    return Imported.of(
        compose([reader.read(spent, 0)]),
        reader.own,
        version_of("dp_accounting"),
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
            return self._event(name, fields, depth)
        except KeyError as missing:
            remedy = "Pass the event as dp_accounting made it."
            raise refusal(f"a field {missing}", name, ", ".join(fields), remedy) from None

    def _event(self, name: str, fields: Mapping[str, Any], depth: int) -> Event:
        match name:
            case "NonPrivateDpEvent":
                return NonPrivate()
            case "ComposedDpEvent":
                inner = _listed(fields["events"], name)
                return Composed(tuple(self.read(one, depth + 1) for one in inner))
            case "SelfComposedDpEvent":
                count = _checks.whole(count=plain_number(fields["count"]))
                return Repeated(self.read(fields["event"], depth + 1), count)
            case "PoissonSampledDpEvent":
                return self._poisson(fields, depth)
            case "SampledWithoutReplacementDpEvent":
                return self._without_replacement(fields, depth)
            case "RepeatAndSelectDpEvent":
                mean, shape = (plain_number(fields[one]) for one in ("mean", "shape"))
                return PrivateSelection(self.read(fields["event"], depth + 1), mean, shape)  # type: ignore[arg-type]  # it checks
            case "ZCDpEvent":
                return _zero_concentrated(fields, emptied=self.relation == "replace-special")
        found = _leaf(name, fields, self.share)
        if found is None:
            why = REASONS.get(name, "it is not known here")
            raise refusal("an event that can be mapped", "event", name, f"Refused: {why}.")
        return found

    def _poisson(self, fields: Mapping[str, Any], depth: int) -> Event:
        """One joint release on one batch. A batch of a batch has the product of both rates."""
        rate = _rate(fields)
        name, inner = _described(fields["event"], depth)
        if name == "PoissonSampledDpEvent":
            product = {"sampling_probability": rate * _rate(inner), "event": inner["event"]}
            return self._poisson(product, depth + 1)
        if rate in (0, 1):
            whole = self.read(fields["event"], depth + 1)  # for its errors, too
            return whole if rate else NoOp()
        parts = self._joint(fields["event"], 1.0, depth + 1)
        if NonPrivate() in parts:
            return NonPrivate()
        if self.own == "replace-one" and self.multipliers == "sensitivity":
            remedy = (
                "Divide by the norm of one record's contribution, as dp_accounting documents, and "
                "say 'norm'."
            )
            raise refusal(
                "multipliers over the norm inside a sample", "multipliers", "sensitivity", remedy
            )
        return PoissonSampled(rate, compose(parts)) if parts else NoOp()

    def _without_replacement(self, fields: Mapping[str, Any], depth: int) -> Event:
        """A batch of m among n records, a record replaced: q times the profile at 1 + (e^eps -
        1)/q, q = m/n, of the release on the batch (Balle, Barthe and Gaboardi 2018, Theorem 9).
        That is the profile of theory.md#t3 with c = d, the sensitivity."""
        name = "SampledWithoutReplacementDpEvent"
        if self.own != "replace-one":
            remedy = (
                f"{name} under add-remove: a batch of fixed size shows nothing only where the "
                "number of records is public."
            )
            raise refusal("'replace-one' for this event", "neighbours", self.relation, remedy)
        size = plain_number(fields["source_dataset_size"])
        size = _checks.whole(at_least=1, source_dataset_size=size)
        taken = _checks.whole(sample_size=plain_number(fields["sample_size"]))
        if taken > size:
            remedy = "Without replacement there are no more records."
            raise refusal(f"a sample of at most {size}", name, taken, remedy)
        parts = self._joint(fields["event"], self.share, depth + 1)
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
            inner = _listed(fields["events"], name)
            return tuple(part for one in inner for part in self._joint(one, share, depth + 1))
        if name == "SelfComposedDpEvent":
            count = _checks.whole(count=plain_number(fields["count"]))
            parts = self._joint(fields["event"], share, depth + 1) if count else ()
            if len(parts) * count > MOST_PARTS:
                remedy = (
                    "Sample each time anew, if that is what was done: SelfComposed of the sampled "
                    "event."
                )
                raise refusal(f"at most {MOST_PARTS} releases on one batch", name, count, remedy)
            return parts * count
        found = NonPrivate() if name == "NonPrivateDpEvent" else _leaf(name, fields, share)
        if found is None:
            remedy = (
                "Inside a sample only Gaussian, Laplace and discrete Laplace noise has a price."
            )
            raise refusal("noise inside a sampled event", "event", name, remedy)
        return () if isinstance(found, NoOp) else (found,)


def _rate(fields: Mapping[str, Any]) -> float:
    return _checks.fraction(sampling_probability=plain_number(fields["sampling_probability"]))


def _leaf(name: str, fields: Mapping[str, Any], share: float) -> Event | None:
    """A noise event; None of other names. Multiplier 0 is no noise, and an infinite one is nothing
    else. `share`: see `_Reader`; a replaced record moves integers by up to twice as much."""
    if name == "NoOpDpEvent":
        return NoOp()
    if name == "DiscreteLaplaceDpEvent":  # P(x) ~ exp(-a |x|): the scale is 1/a
        decay = plain_number(fields["noise_parameter"])
        decay = _checks.non_negative(allow_inf=True, noise_parameter=decay)
        moved = plain_number(fields["sensitivity"])
        moved = _checks.whole(at_least=1, sensitivity=moved) * round(1.0 / share)
        if math.isinf(decay):
            return NonPrivate()
        return DiscreteLaplace(1.0 / decay / moved, moved) if decay > 0 else NoOp()
    kind = {"GaussianDpEvent": Gaussian, "LaplaceDpEvent": Laplace}.get(name)
    if kind is None:
        return None
    multiplier = plain_number(fields["noise_multiplier"])
    multiplier = _checks.non_negative(allow_inf=True, noise_multiplier=multiplier)
    if multiplier == 0:
        return NonPrivate()
    return NoOp() if math.isinf(multiplier) else kind(multiplier * share)


def _zero_concentrated(fields: Mapping[str, Any], *, emptied: bool) -> Event:
    """rho; where records are emptied, a replaced one is two steps away, and rho becomes 4 rho (Bun
    and Steinke 2016)."""
    rho = _checks.non_negative(allow_inf=True, rho=plain_number(fields["rho"]))
    if _checks.non_negative(allow_inf=True, xi=plain_number(fields.get("xi", 0.0))) > 0:
        remedy = "A constant added to every Renyi divergence has no event here."
        raise refusal("xi=0", "ZCDpEvent", "xi above 0", remedy)
    if math.isinf(rho):
        return NonPrivate()
    return ZeroConcentrated(rho * (4.0 if emptied else 1.0)) if rho > 0 else NoOp()


def _described(given: object, depth: int) -> tuple[str, Mapping[str, Any]]:
    """The class and the fields of a DpEvent, of its named tuple, or of that as a JSON object, if it
    does not lie too deep."""
    if depth > DEEPEST:
        remedy = "Put them beside each other, in one ComposedDpEvent."
        raise refusal(f"at most {DEEPEST} levels", "event", "more", remedy)
    kind = type(given)
    if isinstance(given, Mapping) and isinstance(given.get("class_name"), str):
        named = given.items()
        fields = {name: one for name, one in named if name not in ("class_name", "module_name")}
        return given["class_name"], fields
    if isinstance(getattr(given, "class_name", None), str) and hasattr(given, "_fields"):
        return given.class_name, {name: getattr(given, name) for name in given._fields[2:]}  # type: ignore[attr-defined]
    own = getattr(kind, "__attrs_attrs__", None)
    if own is None or not kind.__module__.startswith("dp_accounting."):
        remedy = (
            "Pass an event of dp_accounting: accountant.ledger's, or what jax_privacy's dp_event "
            "says."
        )
        raise refusal("a DpEvent", "event", given, remedy)
    return kind.__name__, {field.name: getattr(given, field.name) for field in own}


def _listed(values: object, name: str) -> Sequence[object]:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise refusal("a list of events", name, values, "Pass ComposedDpEvent([...]).")
    return values


# ---- documents

MOST_BYTES = 1 << 26
KINDS = ("event", "opacus", "dp_accounting")
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
    node = DOCUMENT.node(text)
    node.only(
        ("format", "version", "neighbours", "rows_per_person"),
        (*KINDS, "library", "notes", "secure_noise"),
    )
    node["format"].one_of((FORMAT,))
    node["version"].whole(at_least=FORMAT_VERSION, at_most=FORMAT_VERSION)
    given = [kind for kind in KINDS if kind in node.mapping()]
    if len(given) != 1:
        DOCUMENT.refuse(f"one of {', '.join(KINDS)}", ", ".join(given) or "none")
    found = _spent(given[0], node)
    if "notes" in node.mapping():
        found = replace(found, notes=(*node["notes"].texts(), *found.notes))
    return found


def _spent(kind: str, node: Node) -> Imported:
    inner, known = node[kind], node.mapping()
    asked: dict[str, Any] = {
        "neighbours": node["neighbours"].text(),
        "rows_per_person": node["rows_per_person"].whole(at_least=1),
        "secure_noise": node["secure_noise"].truth() if "secure_noise" in known else False,
    }
    named = node["library"].text() if "library" in known else None
    if kind == "event":
        library = "another library" if named is None else named
        return Imported.of(from_dict(inner.value), library=library, **asked)
    read = {"opacus": _of_opacus, "dp_accounting": _of_dp_event}
    found = read[kind](inner, asked)
    if named is None:
        return found
    return Imported.of(
        found.events,
        found.neighbours,
        named,
        rows_per_person=1,
        notes=found.notes,
        secure_noise=found.secure_noise,
    )


def _of_opacus(inner: Node, asked: dict[str, Any]) -> Imported:
    inner.only(("history", "sampling"), ("passes",))
    passes = inner["passes"].whole() if "passes" in inner.mapping() else None
    history, sampling = (
        [one.numbers(length=3) for one in inner["history"].list()],
        inner["sampling"].text(),
    )
    steps = [
        (z, rate, one.list()[2].whole())
        for (z, rate, _), one in zip(history, inner["history"].list(), strict=True)
    ]
    return from_opacus(steps, sampling=sampling, passes=passes, **asked)


def _of_dp_event(inner: Node, asked: dict[str, Any]) -> Imported:
    inner.only(("event",), ("multipliers",))
    over = inner["multipliers"].text() if "multipliers" in inner.mapping() else "norm"
    return from_dp_event(inner["event"].mapping(), multipliers=over, **asked)
