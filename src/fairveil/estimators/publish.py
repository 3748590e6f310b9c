"""The statement of a fit: the curator's, with what was read from the data outside of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from ..curator import Curator, Journal
from ..privacy.events import Event
from ..privacy.noise import NoiseSource
from ..privacy.promise import Promise
from ..privacy.statement import READ_FROM_DATA, NamedGroups, PrivacyStatement, StatedBound
from ..privacy.statement_checks import required_stamps
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
) -> Curator:
    """The curator of a fit. `rows_given`: the number of rows was an argument, and its fact is the curator's to tell."""
    private = promise.is_private and not promise.rows_are_public
    return Curator(
        training.rows,
        promise,
        plan=plan,
        noise=noise,
        public_rows=public_rows if private else None,
        earlier=() if earlier is None else earlier,
        facts=[fact for fact in training.facts if not rows_given or fact.name != "number of rows"],
    )


def statement_of(
    curator: Curator, training: Training, also_not_covered: Iterable[str] = (), groups: Iterable[NamedGroups] = ()
) -> PrivacyStatement:
    """What the run cost, under which promise, and every step that is outside of it."""
    statement = curator.statement(not_covered=[*training.not_covered, *also_not_covered], groups=groups)
    read: list[StatedBound] = []
    if training.coding.standard is not None and statement.promise.protects != "sensitive_features":
        words = "in units of the training rows' own standard deviations, around their means"
        read.append(StatedBound("scale of the numbers", "L2", 1.0, words, READ_FROM_DATA))
    if training.target is not None and training.target.origin == READ_FROM_DATA:
        words = "in units of half the training targets' own range, around its middle"
        read.append(StatedBound("scale of the target", "L2", 1.0, words, READ_FROM_DATA))
    if not read:
        return statement
    bounds = (*statement.bounds, *read)
    stamps = required_stamps(statement.epsilon, statement.noise, statement.user_code, bounds, statement.facts)
    return dataclasses.replace(statement, bounds=bounds, stamps=stamps)
