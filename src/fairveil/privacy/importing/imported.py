"""What another library spent: events, the adjacency relation that they are priced for, and what is
known of where they came from.

The release has happened. Importing it checks that its description can be added to a ledger; nobody
can check that the description is true. Relation, rows a person and sampling are therefore named by
the caller, and none of them has a default.

Guarantees (tests/privacy/importing/):
1. An imported event costs no less than the mechanism that it was read from, under the relation that
   was named.
2. What cannot be mapped is refused with its reason: nothing is dropped, and nothing is guessed.
3. A person with several rows is charged for all of them, or the import is refused.
4. Recording is one line pair in the ledger or nothing, and never takes an untouched ledger at the
   tight price unless the caller says that all was fixed in advance.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any, Protocol

from ... import _checks
from ...core import cost as accounting
from ...core.cost import Price
from ...core.events import Event
from ...core.inventory import as_event
from ...core.promise import Neighbours, Promise
from ...core.promise import relation as checked_relation
from ...errors import BudgetError, Complaint, InputError, Overspent
from ..accounting.in_a_row import in_a_row

FORMAT, FORMAT_VERSION = "fairveil-import", 1
MOST_ROWS = 1 << 20
ABSENT = (
    "The release has happened: nothing was recorded, and these rows have lost more than this "
    "ledger allows. " + ("Begin a ledger with a larger budget, and import every release into it.")
)


class Ledger(Protocol):
    """What a `fairveil.Ledger` does for an import: its guarantee, and room that is reserved."""

    @property
    def promise(self) -> Promise:
        """Guarantee of everything that is recorded, together."""
        ...

    @property
    def reserve(self) -> Any:
        """Charge events, or raise `Overspent`."""
        ...


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
        whole = in_a_row(event, relation, rows)
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

    def promise(self, ledger: Ledger) -> Promise:
        """Whose neighbours it is priced for, with the ledger's epsilon and delta."""
        if not hasattr(type(ledger), "reserve"):
            raise refusal(
                "a Ledger",
                "ledger",
                type(ledger).__name__,
                "Pass Ledger.open(address), for example.",
            )
        return Promise(
            ledger.promise.epsilon,
            ledger.promise.delta,
            "records",
            self.neighbours,
            ledger.promise.unit,
        )

    def record(self, ledger: Ledger, purpose: str = "", *, fixed_in_advance: bool = False) -> Any:
        """Charge a ledger, for good; an error, and nothing is written, where the ledger cannot take
        it or has no room.

        `fixed_in_advance`: all parameters and the number of steps were fixed before the data were
        touched. Only then may the first spend of a ledger take all of it at the tight price.
        """
        told = _checks.instance(str, "purpose", purpose, "Pass purpose='spring model'.", "words")
        words = f"imported from {self.library}"
        words = f"{told} ({words})" if told else words
        try:
            spend = self._reserved(ledger, words, fixed_in_advance)
        except Overspent as error:
            raise _too_late(error) from None
        spend.commit()
        return spend

    @contextmanager
    def spend(
        self, ledger: Ledger, purpose: str, *, fixed_in_advance: bool = False
    ) -> Iterator[Any]:
        """Charge what a block of the other library's code is about to release: see `Ledger.spend`.
        The block does not run where there is no room."""
        remedy = "Say what the block releases: purpose='counts by region'."
        if not _checks.instance(str, "purpose", purpose, remedy, "words").strip():
            raise InputError.expected("words", of="purpose", got=purpose, remedy=remedy)
        words = f"{purpose} (with {self.library})"
        with self._reserved(ledger, words, fixed_in_advance) as spend:
            yield spend

    def _reserved(self, ledger: Ledger, words: str, fixed_in_advance: bool) -> Any:
        asked, fixed = self.promise(ledger), _checks.truth(fixed_in_advance=fixed_in_advance)
        how = {"purpose": words, "secure": self.secure_noise, "fixed": fixed}
        return ledger.reserve(self.events, asked, **how)

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
        part = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
        try:
            part.write_text(dumps(self.to_dict(), indent=1) + "\n", "utf-8")
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
        return target


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
