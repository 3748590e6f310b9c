"""The rows of a command: coded by a schema, or raw columns. Split by coins, handed to an estimator,
and their truth read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._types import Mask
from ..data import EncodedRows
from ..data.rows import ChosenRows
from ..errors import InputError
from ..estimators.faces.coded import as_array
from ..estimators.reading import inputs
from ..estimators.reading.coding import TableCoding
from ..estimators.reading.training import ReadOptions
from ..facts import Schema
from ..facts.rows import PERSON_BY_PERSON
from ..statement.document import PublicFact
from ..study.held_out import HeldOut
from ..tables.raw import is_missing
from .coins import set_aside
from .tables import Columns, Place, picked

ROWS = "number of rows"


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Truth:
    """Labels and groups of rows, as they are written."""

    labels: npt.NDArray[Any]
    groups: Columns


class Sample(ABC):
    """Rows with labels and groups. Abstract."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many rows: private under add-remove."""

    @property
    @abstractmethod
    def fit_arguments(self) -> tuple[Any, Any, Any]:
        """(X, y, sensitive_features) for an estimator."""

    @property
    @abstractmethod
    def features(self) -> Any:
        """What an estimator predicts from."""

    @property
    def knows_persons(self) -> bool:
        """Whether rows were coded with whose they are."""
        return False

    @property
    def persons(self) -> npt.NDArray[Any] | None:
        """Whose each row is, where that can be read here: bytes, or numbers of a store, which knows
        no names."""
        return None

    @abstractmethod
    def truth(self) -> Truth:
        """Labels and groups."""

    @abstractmethod
    def part(self, chosen: Mask) -> Sample:
        """Some of the rows."""

    @abstractmethod
    def require_like(self, held: Sample, of: str) -> None:
        """An error where a model of these rows could not be measured on `held`: found before the
        fit is charged."""

    def split(self, holdout: float, seed: int | None) -> tuple[Sample, Sample]:
        """(rows to fit, rows held out): each row is held out with probability `holdout`, by a coin
        of its own.

        No coin looks at a row, at another coin or at how many there are. Two tables that differ in
        one row (added, removed or replaced) give training parts that differ in that row at most,
        for coins that are equally likely: the promise of the fit is one about the whole table. What
        is measured exactly on the other part is not covered.
        """
        out = set_aside(self.size, holdout, seed)
        if out.all() or not out.any():
            remedy = "Take another share, or other rows with --test."
            raise InputError.expected(
                "rows in both parts", of="--holdout", got=holdout, remedy=remedy
            )
        return self.part(~out), self.part(out)


@dataclass(frozen=True, eq=False, repr=False)
class CodedSample(Sample):
    """Rows coded by a schema."""

    rows: EncodedRows | ChosenRows

    @property
    def size(self) -> int:
        return sum(block.rows for block in self.rows.blocks())

    @property
    def fit_arguments(self) -> tuple[Any, Any, Any]:
        return self.rows, None, None

    @property
    def features(self) -> EncodedRows | ChosenRows:
        return self.rows

    @property
    def knows_persons(self) -> bool:
        return any(block.persons is not None for block in self.rows.blocks())

    @property
    def persons(self) -> npt.NDArray[Any] | None:
        found = [block.persons for block in self.rows.blocks() if block.persons is not None]
        whole = np.concatenate(found) if found else None
        if whole is None or whole.dtype != PERSON_BY_PERSON:
            return whole
        return np.cumsum(whole["begins"], dtype=np.int64)

    def truth(self) -> Truth:
        layout, blocks = self.rows.layout, list(self.rows.blocks())
        labels = np.concatenate([np.asarray(block.labels) for block in blocks])
        groups = {}
        for at, (name, values) in enumerate(
            zip(layout.sensitive_names, layout.sensitive, strict=True)
        ):
            codes = np.concatenate([np.asarray(block.sensitive)[at] for block in blocks])
            groups[name] = as_array(values)[codes]
        return Truth(as_array(layout.classes or ())[labels], groups)

    def require_like(self, held: Sample, of: str) -> None:
        """Nothing is left to check: one schema coded both."""
        assert isinstance(held, CodedSample)
        assert held.rows.layout == self.rows.layout

    def part(self, chosen: Mask) -> CodedSample:
        """Copied where rows are in memory; of a store gathered at each pass."""
        return CodedSample(self.rows.chosen(np.flatnonzero(chosen)))


@dataclass(frozen=True, eq=False, repr=False)
class ColumnSample(Sample):
    """Raw columns: without a schema."""

    columns: Columns
    target: str
    sensitive: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.columns[self.target])

    @property
    def fit_arguments(self) -> tuple[Any, Any, Any]:
        return self.features, self.columns[self.target], list(self.sensitive) or None

    @property
    def features(self) -> Columns:
        return {name: column for name, column in self.columns.items() if name != self.target}

    def truth(self) -> Truth:
        return Truth(
            self.columns[self.target], {name: self.columns[name] for name in self.sensitive}
        )

    def require_like(self, held: Sample, of: str) -> None:
        """Without a schema, words, classes and groups are those of the rows to fit: others cannot
        be measured on."""
        assert isinstance(held, ColumnSample)
        training = inputs.read(*self.fit_arguments, None, ReadOptions())
        assert isinstance(training.coding, TableCoding)
        features, layout = training.coding.features, training.rows.layout
        picked(held.columns, [feature.name for feature in features], "the rows to measure on", of)
        known: dict[str, tuple[Any, ...]] = {
            feature.name: feature.values for feature in features if feature.values is not None
        }
        known |= {
            self.target: training.classes,
            **dict(zip(layout.sensitive_names, layout.sensitive, strict=True)),
        }
        for name, values in known.items():
            strange = sorted(
                {
                    str(value)
                    for value in set(held.columns[name].tolist()) - set(values)
                    if not is_missing(value)
                }
            )
            if strange:
                got = (
                    f"{', '.join(map(repr, strange[:5]))} in rows to measure on, and in no row to "
                    f"fit"
                )
                remedy = (
                    "List all values in a schema (--schema), leave those rows out, or a feature "
                    "with --ignore."
                )
                raise InputError.expected(
                    "words, classes and groups of the rows to fit",
                    of=f"column {name!r}",
                    got=got,
                    remedy=remedy,
                )
        HeldOut.read(held.fit_arguments, training, ReadOptions())

    def without(self, name: str) -> ColumnSample:
        """The same rows without a column."""
        return replace(
            self,
            columns={column: values for column, values in self.columns.items() if column != name},
        )

    def part(self, chosen: Mask) -> ColumnSample:
        return replace(
            self, columns={name: column[chosen] for name, column in self.columns.items()}
        )


@dataclass(frozen=True)
class Roles:
    """What is what in a table: its schema if there is one, and what the command line says beside
    it."""

    schema: Schema | None
    target: str
    sensitive: tuple[str, ...]
    ignore: tuple[str, ...] = ()

    @staticmethod
    def of(
        schema: Schema | None,
        target: str | None,
        sensitive: Sequence[str] | None,
        ignore: Sequence[str] | None,
    ) -> Roles:
        """The command line's words first, then the schema's."""
        chosen = target or (schema.target if schema is not None else None)
        if chosen is None:
            remedy = "Name the column to predict: --target hired, for example."
            raise InputError.expected("a column", of="--target", got=None, remedy=remedy)
        groups = tuple(sensitive or (schema.sensitive if schema is not None else ()))
        ignored = tuple(ignore or ())
        if (
            chosen in (*groups, *ignored)
            or set(groups) & set(ignored)
            or len(set(groups)) != len(groups)
        ):
            got = {"target": chosen, "sensitive": list(groups), "ignore": list(ignored)}
            remedy = "Name each column once."
            raise InputError.expected("distinct columns", of="roles", got=got, remedy=remedy)
        return Roles(
            None if schema is None else _with_roles(schema, chosen, groups, ignored),
            chosen,
            groups,
            ignored,
        )

    @property
    def public_rows(self) -> int | None:
        """About how many rows the schema says there are."""
        return None if self.schema is None else self.schema.rows

    def read(self, place: Place, like: Sample | None = None) -> Sample:
        """The rows of a place; everything that does not fit is an error now, before any release.
        `like`: rows whose columns of words are columns of words here too, whatever their cells look
        like."""
        if self.schema is not None:
            rows = place.coded(self.schema)
            assert isinstance(rows, EncodedRows)
            return CodedSample(_with_rows(rows, place))
        words = (
            [name for name, column in like.columns.items() if column.dtype == object]
            if isinstance(like, ColumnSample)
            else []
        )
        columns = place.columns(words)
        picked(columns, (self.target,), place.shown, "--target")
        picked(columns, self.sensitive, place.shown, "--sensitive")
        picked(columns, self.ignore, place.shown, "--ignore")
        kept = {name: column for name, column in columns.items() if name not in self.ignore}
        if not len(kept[self.target]):
            raise InputError.expected(
                "some rows", of=place.shown, got="none", remedy="Pass a table with rows."
            )
        for name in (self.target, *self.sensitive):
            _require_all(kept[name], name)
        return ColumnSample(kept, self.target, self.sensitive)


def _with_roles(
    schema: Schema, target: str, sensitive: tuple[str, ...], ignore: tuple[str, ...]
) -> Schema:
    """Sensitive columns of the schema that were not named are neither groups nor features."""
    unused = [name for name in schema.sensitive if name not in sensitive and name != target]
    return schema.with_roles(target=target, sensitive=sensitive).without(
        *dict.fromkeys((*unused, *ignore))
    )


def with_rows_from(
    facts: Sequence[PublicFact], rows_are: str | None, holdout: float
) -> tuple[PublicFact, ...]:
    """The facts, their number of rows with where the command has it from: "schema" or "argument",
    less what is held out."""
    if rows_are is None:
        return tuple(facts)
    origin = f"{rows_are} x (1 - holdout)" if holdout else rows_are
    return tuple(replace(one, origin=origin) if one.name == ROWS else one for one in facts)  # type: ignore[arg-type]


def _require_all(column: npt.NDArray[Any], name: str) -> None:
    empty = sum(map(is_missing, column.tolist()))
    if empty:
        remedy = (
            'Leave those rows out, or give the cells a word of their own ("unknown", for example).'
        )
        got = f"{empty} of {len(column)} empty"
        raise InputError.expected(
            "a value in every row", of=f"column {name!r}", got=got, remedy=remedy
        )


def _with_rows(rows: EncodedRows, place: Place) -> EncodedRows:
    if not any(block.rows for block in rows.blocks()):
        raise InputError.expected(
            "some rows", of=place.shown, got="none", remedy="Pass a table with rows."
        )
    return rows
