"""The rows of a fit before there are any: what a schema says of them, and none to read.

An estimator plans a fit with it by the very code that a fit plans by; there is nothing behind it
that could be read.

Guarantees (tests/estimators/test_estimators_plan.py):
1. It holds no row: a curator of it would have nothing to add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ... import _checks
from ...curator import Rows
from ...data import Encoding
from ...errors import InputError, SchemaError, within
from ...facts import Schema
from ...facts.columns import Boolean, Category
from ...methods.forecast import Supposed
from .coding import Coding, SchemaCoding
from .read_as import facts_of_schema
from .standard import Standard
from .targets import need_number, scale_of
from .training import Coded, ReadOptions, Training, need_classes, with_steps

Read = Callable[[ReadOptions], Training]
HOW = 'Schema.load("schema.toml"), say'


@dataclass(frozen=True)
class Unread:
    """A schema, and about how many rows its table will have. A fit knows them where the schema
    states a number, or they are public for another reason; else it releases a noisy count, and is
    planned so."""

    schema: Schema
    rows: int

    @staticmethod
    def of(
        schema: object,
        own: object,
        rows: object,
        sensitive: Iterable[str] | None,
    ) -> Unread:
        """Checked. `own`: the estimator's schema."""
        found = own if schema is None else schema
        if not isinstance(found, Schema) or found.declared is None:
            other = "one without columns" if isinstance(found, Schema) else type(found).__name__
            got = None if found is None else other
            remedy = f"Pass the schema of the table that is to be fitted: {HOW}."
            raise InputError.expected("a Schema", of="plan(schema)", got=got, remedy=remedy)
        if sensitive is not None:
            names = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
            unused = [name for name in found.sensitive if name not in names]
            found = found.with_roles(sensitive=names).without(*unused)
        known = found.rows if rows is None else rows
        if known is None:
            remedy = (
                "Pass rows=10_000, say: about how many there will be, or let the schema state them "
                "(rows=)."
            )
            raise InputError.expected("a number of rows", of="rows", got=None, remedy=remedy)
        return Unread(found, _checks.whole(at_least=1, rows=known))

    def read(self, ways: ReadOptions) -> Training:
        """What `inputs.read` would make of rows of this schema, without any."""
        encoding = Encoding(self.schema, ways.sensitive_as_feature)
        layout, target = encoding.layout, None
        if self.schema.target is None:
            remedy = (
                'Say which column is to be predicted: Schema(columns, target="hired"), for example.'
            )
            raise InputError.expected(
                "a schema with a target", of="schema", got=None, remedy=remedy
            )
        if ways.target is None:
            need_classes(layout)
        else:
            need_number(encoding.target is not None, "the schema's target")
            target = scale_of(encoding)
            layout = (
                replace(layout, numbers=layout.numbers + 1) if ways.target.as_number else layout
            )
        facts = facts_of_schema(encoding)
        coding: Coding = SchemaCoding(encoding)
        if ways.additive is not None:
            stated = self.rows if ways.rows_are_public else self.schema.rows
            coding, layout = with_steps(ways, facts, coding, layout, stated)
        count = len(encoding.numbers)
        standard = Standard((0.0,) * count, (1.0,) * count) if ways.standardise else None
        return Training(
            Rows(
                Coded(layout, ()),
                max_sample_weight=ways.max_sample_weight,
                units=None if ways.whose is None else (),
            ),
            replace(coding, standard=standard),  # type: ignore[type-var]
            tuple(facts),
            (),
            encoding.features,
            len(encoding.features),
            None if self.schema.rows is None else self.rows,
            target,
            self.schema,
            supposed=self.rows,
        )

    def supposed(self, shares: Mapping[str, Any] | None) -> Supposed:
        """Groups and classes of the size that the schema says, or `shares`, which come first."""
        given = self._checked(shares or {})
        names = (
            *self.schema.sensitive,
            *(() if self.schema.target is None else (self.schema.target,)),
        )
        known = {
            name: found
            for name in names
            if (found := given.get(name) or self._stated(name)) is not None
        }
        columns = {name: share for name, share in known.items() if name in self.schema.sensitive}
        classes = None if self.schema.classes is None else known.get(self.schema.target or "")
        layout = Encoding(self.schema).layout
        return Supposed.of(layout, self.rows, columns, classes)

    def _stated(self, name: str) -> tuple[float, ...] | None:
        column = self.schema.columns[name]
        return column.shares if isinstance(column, Category | Boolean) else None

    def _checked(self, shares: object) -> dict[str, tuple[float, ...]]:
        """Shares by column, in the order of its values."""
        found = {}
        if not isinstance(shares, Mapping):
            remedy = 'Pass shares={"sex": {"f": 0.3, "m": 0.7}}, for example.'
            raise InputError.expected(
                "shares by column", of="shares", got=type(shares).__name__, remedy=remedy
            )
        for name, given in shares.items():
            if name not in (*self.schema.sensitive, self.schema.target):
                listed = [
                    *self.schema.sensitive,
                    *([self.schema.target] if self.schema.target else []),
                ]
                remedy = "State shares of a sensitive column, or of the target."
                raise InputError.expected(f"one of {listed}", of="shares", got=name, remedy=remedy)
            values = self.schema.listed(name)
            if not isinstance(given, Mapping) or set(given) != set(values):
                remedy = (
                    f"Pass shares={{{name!r}: {{{values[0]!r}: 0.3, ...}}}}: one for each of its "
                    f"values."
                )
                got = list(given) if isinstance(given, Mapping) else given
                raise InputError.expected(
                    f"a share for each value of {name!r}: {list(values)}",
                    of="shares",
                    got=got,
                    remedy=remedy,
                )
            try:
                column = Category(values, shares=tuple(given[value] for value in values))
            except SchemaError as error:
                raise InputError(within(f"column {name!r}", error)) from None
            assert column.shares is not None
            found[name] = column.shares
        return found
