"""Rows that lie with another holder: their shape is known here, and a curator of theirs is asked
through a door.

Estimators build a curator from rows by `curator_of`. Of rows in this process it makes a `Curator`;
of rows elsewhere it asks their holder for a run, and what comes back has the same methods.

Guarantees (tests/serving/test_serving_fits.py):
1. No row is here: there is nothing to add up, and the number of rows is known only where the holder
   publishes it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.curator import Curator
from ..core.events import Event
from ..core.layout import Cells, RowBlock, RowLayout
from ..core.promise import Promise
from ..core.rows import Rows
from ..errors import PrivacyError
from ..facts.schema import Schema


class Elsewhere:
    """A data set of another holder, as it stands in the place of a table. Abstract;
    `fairveil.remote` makes one.

    `schema`: its public facts. `exact_rows`: how many rows it has, where the holder publishes it;
    else None.
    """

    schema: Schema
    exact_rows: int | None
    seeded = False  # whether runs may bring seeds, as at doors for tests alone

    @abstractmethod
    def rows(
        self,
        layout: RowLayout,
        schema: Schema,
        sensitive_as_feature: bool,
        steps: object = None,
        *,
        target_as_number: bool = False,
    ) -> RowsElsewhere:
        """The rows as a curator takes them, coded by this schema, whose sensitive columns are the
        groups. `steps`: of an additive model. `target_as_number`: the target is the last number,
        too."""

    @abstractmethod
    def parted(
        self, share: float, seed: int | None = None, coins: str = "certificate"
    ) -> tuple[Elsewhere, Elsewhere]:
        """(those that stay, those set aside): each row by a coin of the holder's, in `share` of
        cases aside. `coins`: of which kind (`aside_of`)."""

    @abstractmethod
    def require_room(self, events: Sequence[Event], promise: Promise) -> None:
        """An error unless the budget has room for all of these now. Nothing is reserved."""

    @property
    @abstractmethod
    def identity(self) -> tuple[str, str, str | None, int]:
        """Which rows these are: holder, data set, and the part of a division of it."""


class Nothing:
    """A `RowSource` of a layout that holds no row."""

    def __init__(self, layout: RowLayout) -> None:
        self.layout = layout

    def blocks(self) -> Iterator[RowBlock]:
        """None."""
        return iter(())


class RowsElsewhere(Rows):
    """What estimators hold of rows that are elsewhere: their layout. A `Curator` refuses them.
    Abstract."""

    is_elsewhere = True

    def __init__(
        self, layout: RowLayout, exact_rows: int | None, *, by_person: bool = False
    ) -> None:
        super().__init__(Nothing(layout), units=() if by_person else None)
        self._exact_rows = exact_rows

    @property
    def exact_count(self) -> int:
        """The number of rows, where their holder publishes it."""
        if self._exact_rows is None:
            remedy = (
                "Pass neighbours='add-remove', under which it is not needed; public_rows= may say "
                "about how many there are."
            )
            raise PrivacyError.expected(
                "a public number of rows",
                of="the holder's data set",
                got="a private one",
                remedy=remedy,
            )
        return self._exact_rows

    @abstractmethod
    def open_run(self, promise: Promise, **options: object) -> Curator:
        """A run of the holder's curator: the options of `Curator`."""


def curator_of(rows: Rows, promise: Promise, **options: Any) -> Curator:
    """The curator of these rows, wherever they are."""
    return (
        rows.open_run(promise, **options)
        if isinstance(rows, RowsElsewhere)
        else Curator(rows, promise, **options)
    )


@dataclass(frozen=True, eq=False)
class DescribedRule:
    """How rows elsewhere get a code each: by a finished model, described, that their holder
    applies.

    `model`: one of the library's, in coded units; None: the rows' labels. A row's code is the
    model's decision, or, with `edges`, the bin of its score; with a `table` (groups, labels or 1,
    decisions), what it holds for the row's group, label and decision. `soft`: its probabilities are
    attached in place of codes.
    """

    model: Any
    decisions: int
    edges: npt.NDArray[np.float64] | None = None
    cells: Cells | None = None
    table: npt.NDArray[np.int64] | None = None
    soft: bool = False

    @property
    def columns_read(self) -> frozenset[str]:
        """What a code depends on."""
        return columns_of(self.model, self.table)

    def through(self, table: npt.NDArray[np.int64], cells: Cells | None) -> DescribedRule:
        """The same decisions, with codes by group and label."""
        return replace(self, table=table, cells=cells)


def columns_of(model: object, table: npt.NDArray[np.int64] | None) -> frozenset[str]:
    """What codes by a model, or by the labels where there is none, and then by a table depend
    on."""
    found = {"features"} if model is not None else {"features", "label"}
    if table is not None and (table != table[:1]).any():
        found.add("sensitive")
    if table is not None and (table != table[:, :1]).any():
        found.add("label")
    return frozenset(found)
