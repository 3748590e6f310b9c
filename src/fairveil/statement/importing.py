"""What another library spent: the history of an opacus accountant, a DpEvent (dp_accounting,
jax_privacy), or events that the caller names; to be priced here and recorded in a ledger.

The release has happened. Importing it checks that its description can be added to a ledger; nobody
can check that the description is true. Relation, rows a person and sampling are therefore named by
the caller, and none of them has a default. No other library is imported: objects are read by class
and fields.

Guarantees (tests/statement/test_importing.py).
1. An imported event costs no less than the mechanism that it was read from, under the relation that
   was named; every step of a history and every event of a tree is in it.
2. What cannot be mapped is refused with its reason: nothing is dropped, and nothing is guessed.
3. A person with several rows is charged for all of them, or the import is refused.
4. Recording is one line pair in the ledger or nothing, and never takes an untouched ledger at the
   tight price unless the caller says that all was fixed in advance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .. import _checks
from ..core import cost as accounting
from ..core import events as ev
from ..core.errors import need
from ..core.events import as_event
from ..core.mechanisms import counted
from ..core.promise import Neighbours, Promise, relation
from ..errors import BudgetError, InputError, Overspent

__all__ = ["Imported", "from_dp_event", "from_opacus"]
MOST_ROWS, DEEPEST = 1 << 20, 50


@dataclass(frozen=True)
class Imported:
    """What another library spent. Make one by `from_opacus`, `from_dp_event` or `Imported.of`.

    `events`: what was done, for neighbours in all rows of one person. `library`: its name and
    version. `secure_noise`: whether the noise came from a cryptographic generator.

    >>> from fairveil.core.events import Gaussian
    >>> spent = Imported.of(Gaussian(4.0), "add-remove", "a script of ours", rows_per_person=1)
    >>> print(f"{spent.price(1e-6).epsilon:.2f}")
    1.06
    """

    events: ev.Event
    neighbours: Neighbours
    library: str
    secure_noise: bool = False

    @staticmethod
    def of(
        events: object,
        neighbours: str,
        library: str,
        *,
        rows_per_person: int,
        secure_noise: bool = False,
    ) -> Imported:
        """Checked. `rows_per_person`: the most rows that one person has, where `events` are for
        neighbours in one row."""
        related, event = relation(neighbours), as_event(events)  # type: ignore[arg-type]  # it checks
        rows, of = _checks.whole(at_least=1, rows_per_person=rows_per_person), "rows_per_person"
        fix = "Count the rows of the person who has most."
        need(rows <= MOST_ROWS, f"at most {MOST_ROWS} rows", of=of, got=rows, fix=fix)
        whole = accounting.in_a_row(event, related, rows)
        fix = "Let the other library protect all rows of a person, one contribution each: 1."
        words = "Gaussian or pure releases where a person has several rows"
        need(whole is not None, words, of=of, got=rows, fix=fix)
        line = 0 < len(library) <= 100 and library.isprintable()
        fix = "Pass library='opacus 1.6.0', for example."
        need(line, "a name on one line", of="library", got=library, fix=fix)
        return Imported(whole, related, library, _checks.truth(secure_noise=secure_noise))  # type: ignore[arg-type]

    def price(self, delta: float) -> accounting.Price:
        """What all of it costs alone, at this delta: a bound if all was fixed in advance."""
        return accounting.price(self.events, delta, self.neighbours)

    def promise(self, ledger: Any) -> Promise:
        """Whose neighbours it is priced for, with the ledger's epsilon and delta."""
        own: Any = getattr(ledger, "promise", None)
        fix, is_ledger = "Pass Ledger.open(address), for example.", isinstance(own, Promise)
        need(is_ledger, "a Ledger", of="ledger", got=ev.brief(ledger), fix=fix)
        return Promise(own.epsilon, own.delta, "records", self.neighbours, own.unit)

    def record(self, ledger: Any, purpose: str = "", *, fixed_in_advance: bool = False) -> Any:
        """Charge a `Ledger`, for good, and return its `Spend`; an error, and nothing is written,
        where the ledger cannot take it or has no room.

        `fixed_in_advance`: all parameters and the number of steps were fixed before the data were
        touched. Only then may the first spend of a ledger take all of it at the tight price.
        """
        fix, words = "Pass purpose='monthly model', for example.", isinstance(purpose, str)
        need(words, "words", of="purpose", got=ev.brief(purpose), fix=fix)
        told = f"{purpose} (imported from {self.library})".strip()
        how: dict[str, Any] = {"promise": self.promise(ledger), "secure": self.secure_noise}
        how["purpose"] = told
        how["fixed"] = _checks.truth(fixed_in_advance=fixed_in_advance)
        try:
            spend = ledger.reserve(self.events, **how)
        except Overspent as error:  # what would have fitted is no way out: it has happened
            fix = (
                "The release has happened: nothing was recorded, and these rows have lost more than "
                "this ledger allows. Begin a ledger with a larger budget, and import every release "
                "into it."
            )
            said: Any = error.args[0]
            more: dict[str, Any] = {"of": said.of, "got": said.got, "quote": said.quote}
            raise BudgetError.expected(said.expected, remedy=fix, **more) from None
        spend.commit()
        return spend


def _plain(value: object) -> Any:
    """A number of any library as Python's own; what is no number is handed on, to be refused."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "shape", None) == () else value


def _listed(values: object, of: str, expected: str, fix: str) -> Sequence[Any]:
    several = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    need(several, expected, of=of, got=ev.brief(values), fix=fix)
    return values  # type: ignore[return-value]


def _library(package: str) -> str:
    """`opacus 1.6.0`; the name alone where it is not installed."""
    with suppress(PackageNotFoundError):
        return f"{package} {version(package)}"
    return package


def from_opacus(
    spent: object,
    *,
    sampling: object,
    neighbours: str,
    rows_per_person: int,
    secure_noise: bool = False,
) -> Imported:
    """What an opacus accountant has counted: every step, as one secret Poisson batch.

    `spent`: a `PrivacyEngine`, an accountant, its `state_dict()`, or the history itself.
    `sampling`: "poisson", if the loader was made with `poisson_sampling=True` (opacus's own choice).
    opacus prices shuffled batches as if they were Poisson batches, too; they are refused here. The
    sample rate, one over the number of batches, is taken to be public.
    `secure_noise`: whether `secure_mode=True`.

    >>> spent = from_opacus(
    ...     [(1.0, 0.01, 500)], sampling="poisson", neighbours="add-remove", rows_per_person=1
    ... )
    >>> spent.events
    Repeated(event=PoissonSampled(rate=0.01, event=Gaussian(noise_multiplier=1.0), spreads=None), count=500)
    """
    fix = "Name passes over shuffled rows: Imported.of([Gaussian(z / 2)] * passes, 'replace-one', ...)."
    named = isinstance(sampling, str) and sampling == "poisson"
    need(named, "'poisson'", of="sampling", got=ev.brief(sampling), fix=fix)
    found = getattr(spent, "accountant", spent)  # of an engine
    found = found.get("history") if isinstance(found, Mapping) else getattr(found, "history", found)
    fix = "Pass the PrivacyEngine, its accountant, accountant.state_dict() or accountant.history."
    steps: list[ev.Event] = []
    for entry in _listed(found, "spent", "a history of opacus", fix):
        words = "(noise multiplier, sample rate, steps)"
        row = _listed(entry, "history", words, fix)
        need(len(row) == 3, words, of="history", got=f"{len(row)} values", fix=fix)
        noise = _checks.non_negative(noise_multiplier=_plain(row[0]))
        rate = _checks.fraction(sample_rate=_plain(row[1]))
        if rate > 0:
            batch = ev.PoissonSampled(rate, ev.Gaussian(noise)) if noise else ev.NonPrivate()
            steps.append(ev.Repeated(batch, _checks.whole(steps=_plain(row[2]))))
    told: dict[str, Any] = {"rows_per_person": rows_per_person, "secure_noise": secure_noise}
    return Imported.of(ev.compose(steps), neighbours, _library("opacus"), **told)


RELATIONS = {"ADD_OR_REMOVE_ONE": "add-remove", "REPLACE_ONE": "replace-one"}


def from_dp_event(
    spent: object, *, neighbours: object, rows_per_person: int, secure_noise: bool = False
) -> Imported:
    """What a DpEvent describes.

    `neighbours`: "add-remove", "replace-one", or a `NeighboringRelation`. `noise_multiplier` is
    documented as noise over the norm of one record's contribution; a replaced record moves a sum by
    up to twice that, so under replace-one unsampled events are mapped at half their multiplier.

    >>> from dp_accounting import dp_event
    >>> event = dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(2.0), 3)
    >>> from_dp_event(event, neighbours="replace-one", rows_per_person=1).events
    Repeated(event=Laplace(noise_multiplier=1.0), count=3)
    """
    named = getattr(neighbours, "name", neighbours)
    related = relation(RELATIONS.get(named, named) if isinstance(named, str) else str(named))
    events = ev.compose([_mapped(spent, 0.5 if related == "replace-one" else 1.0)])
    told: dict[str, Any] = {"rows_per_person": rows_per_person, "secure_noise": secure_noise}
    return Imported.of(events, related, _library("dp-accounting").replace("-", "_"), **told)


def _mapped(given: Any, share: float, depth: int = 0) -> ev.Event:
    """The event of a DpEvent. `share`: what a multiplier over the norm is times, to be one over the
    sensitivity; inside a sample 1, since there it stays over the norm."""
    fix = "Put them beside each other, in one ComposedDpEvent."
    need(depth <= DEEPEST, f"at most {DEEPEST} levels", of="event", got="more", fix=fix)
    theirs = type(given).__module__.startswith("dp_accounting.")
    name = type(given).__name__ if theirs else ""
    fix = "Pass an event of dp_accounting: accountant.ledger's, or jax_privacy's dp_event."
    need(name.endswith("DpEvent"), "a DpEvent", of="event", got=ev.brief(given), fix=fix)

    def number(field: str) -> float:
        return _checks.non_negative(allow_inf=True, **{field: _plain(getattr(given, field))})

    def whole(field: str, least: int = 0) -> int:
        return _checks.whole(at_least=least, **{field: _plain(getattr(given, field))})

    def inner(share: float = share) -> ev.Event:
        return _mapped(given.event, share, depth + 1)

    match name:
        case "NoOpDpEvent":
            return ev.NoOp()
        case "NonPrivateDpEvent":
            return ev.NonPrivate()
        case "GaussianDpEvent" | "LaplaceDpEvent":
            kind = ev.Gaussian if name == "GaussianDpEvent" else ev.Laplace
            noise = number("noise_multiplier")
            return _extreme(1 / noise if noise else math.inf) or kind(noise * share)
        case "DiscreteLaplaceDpEvent":  # P(x) ~ exp(-a |x|): the scale is 1/a
            decay, moved = number("noise_parameter"), whole("sensitivity", 1) * round(1 / share)
            few = min(moved, ev.MOST_SENSITIVITY)  # more is refused
            return _extreme(decay) or ev.DiscreteLaplace(1 / decay / few, moved)
        case "ZCDpEvent":
            rho, fix = number("rho"), "A constant added to Renyi divergences has no event here."
            need(number("xi") == 0, "xi=0", of="ZCDpEvent", got="xi above 0", fix=fix)
            return _extreme(rho) or ev.ZeroConcentrated(rho)
        case "ComposedDpEvent":
            listed = _listed(given.events, name, "a list of events", "Pass ComposedDpEvent([...]).")
            return ev.compose(_mapped(one, share, depth + 1) for one in listed)
        case "SelfComposedDpEvent":
            return ev.compose([ev.Repeated(inner(), whole("count"))])
        case "RepeatAndSelectDpEvent":
            return ev.PrivateSelection(inner(), _plain(given.mean), _plain(given.shape))
        case "PoissonSampledDpEvent":
            rate = _checks.fraction(sampling_probability=_plain(given.sampling_probability))
            if rate == 1:
                return inner()
            joint = ev.compose([inner(1.0)])
            if rate == 0 or isinstance(joint, ev.NoOp):
                return ev.NoOp()
            exact = ev.NonPrivate() in counted(joint)
            return ev.NonPrivate() if exact else ev.PoissonSampled(rate, joint)
    fix = "Refused: it has no event here. Name what it costs by Imported.of."
    raise InputError.expected("an event that can be mapped", of="event", got=name, remedy=fix)


def _extreme(loss: float) -> ev.Event | None:
    """Of a mechanism that loses nothing or everything."""
    if math.isinf(loss):
        return ev.NonPrivate()
    return None if loss else ev.NoOp()
