"""The statement of a fit: the curator's, with what was read from the data outside of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...core.promise import Promise
from ...curator import Curator
from ...statement.check import READ_FROM_DATA
from ...statement.document import NamedGroups, PrivacyStatement, StatedBound
from ..reading.training import Training

READS_GROUPS = (
    "the classifier reads a person's group when it decides: what it decides about a person may "
    "tell their group, which no "
    "guarantee for the training rows covers"
)


def read_from_data(training: Training, promise: Promise) -> Iterator[StatedBound]:
    """The scales that were read from private rows: for the statement, and for a ledger that forbids
    it."""
    if training.coding.standard is not None and promise.protects != "sensitive_features":
        words = "in units of the training rows' own standard deviations, around their means"
        yield StatedBound("scale of the numbers", "L2", 1.0, words, READ_FROM_DATA)
    if training.target is not None and training.target.origin == READ_FROM_DATA:
        words = "in units of half the training targets' own range, around its middle"
        yield StatedBound("scale of the target", "L2", 1.0, words, READ_FROM_DATA)


def statement_of(
    curator: Curator,
    training: Training,
    also_not_covered: Iterable[str] = (),
    groups: Iterable[NamedGroups] = (),
) -> PrivacyStatement:
    """What the run cost, under which promise, and every step that is outside of it."""
    return curator.statement(not_covered=[*training.not_covered, *also_not_covered], groups=groups)
