"""The statement of a fit: the curator's, with what was read from the data outside of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..curator import Curator, Journal
from ..privacy.events import Event
from ..privacy.ledger import Ledger
from ..privacy.noise import NoiseSource
from ..privacy.promise import Promise
from ..privacy.statement import READ_FROM_DATA, NamedGroups, PrivacyStatement, StatedBound
from .inputs import Training

READS_GROUPS = (
    "the classifier reads a person's group when it decides: what it decides about a person may tell their group, which no "
    "promise about the training rows covers"
)


def curator_of(
    promise: Promise,
    training: Training,
    plan: Event | None,
    noise: NoiseSource | Sequence[NoiseSource],
    public_rows: int | None,
    *,
    rows_given: bool,
    earlier: Journal | None = None,
    ledger: Ledger | None = None,
    purpose: str = "",
) -> Curator:
    """The curator of a fit. `rows_given`: the number of rows was an argument, and its fact is the curator's to tell. `ledger`:
    where the fit is recorded; its plan is reserved there now."""
    private = promise.is_private and not promise.rows_are_public
    if ledger is not None:
        ledger.require(promise, schema=training.schema)
    return Curator(
        training.rows,
        promise,
        plan=plan,
        noise=noise,
        public_rows=public_rows if private else None,
        earlier=() if earlier is None else earlier,
        facts=[fact for fact in training.facts if not rows_given or fact.name != "number of rows"],
        bounds=_read_from_data(training, promise),
        ledger=ledger,
        purpose=purpose,
    )


def _read_from_data(training: Training, promise: Promise) -> Iterator[StatedBound]:
    """The scales that were read from private rows: for the statement, and for a ledger that forbids it."""
    if training.coding.standard is not None and promise.protects != "sensitive_features":
        words = "in units of the training rows' own standard deviations, around their means"
        yield StatedBound("scale of the numbers", "L2", 1.0, words, READ_FROM_DATA)
    if training.target is not None and training.target.origin == READ_FROM_DATA:
        words = "in units of half the training targets' own range, around its middle"
        yield StatedBound("scale of the target", "L2", 1.0, words, READ_FROM_DATA)


def statement_of(
    curator: Curator, training: Training, also_not_covered: Iterable[str] = (), groups: Iterable[NamedGroups] = ()
) -> PrivacyStatement:
    """What the run cost, under which promise, and every step that is outside of it."""
    return curator.statement(not_covered=[*training.not_covered, *also_not_covered], groups=groups)
