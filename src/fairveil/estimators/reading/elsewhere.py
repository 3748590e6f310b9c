"""Rows of another holder as a fit sees them: a schema, and nothing to read. Planned by the code
that plans without rows.

Guarantees (tests/serving/test_serving_fits.py):
1. Labels, groups and weights are the holder's: others beside them are refused before a run is
   opened. The holder's weights are used where `sample_weight` names their column, and persons are
   protected where `unit` names theirs.
"""

from __future__ import annotations

from dataclasses import replace

from ..._types import ColumnsLike, TableLike
from ...data.elsewhere import Elsewhere
from ...errors import InputError
from . import units
from .coded_files import CODINGS
from .columns import names_in
from .training import ReadOptions, Training
from .unread import Unread


def training_of(
    data: Elsewhere,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    ways: ReadOptions,
) -> Training:
    """What `inputs.read` makes of rows that are here."""
    names = names_in(sensitive_features)
    weighted = isinstance(sample_weight, str)
    beside = {
        "y": y,
        "sample_weight": None if weighted else sample_weight,
        "sensitive_features": None if names else sensitive_features,
    }
    for of, got in beside.items():
        if got is not None:
            remedy = (
                "Leave it out: labels and groups are the holder's. sensitive_features= may name "
                "columns of the schema."
            )
            if of == "sample_weight" and data.weights is not None:
                remedy = f"Name the holder's column of weights: sample_weight={data.weights!r}."
            raise InputError.expected(
                "None beside remote data", of=of, got=type(got).__name__, remedy=remedy
            )
    if weighted and sample_weight != data.weights:
        expected = (
            "None: the holder serves no weights"
            if data.weights is None
            else f"the holder's {data.weights!r}"
        )
        remedy = "Leave it out, or ask the holder."
        raise InputError.expected(expected, of="sample_weight", got=sample_weight, remedy=remedy)
    if ways.schema is not None and ways.schema.fingerprint != data.schema.fingerprint:
        remedy = "Leave schema=None: the holder's is used."
        raise InputError.expected("the holder's schema", of="schema", got="another", remedy=remedy)
    if ways.standardise:
        got, remedy = "a scale read from the data", "Leave it out of the schema."
        raise InputError.expected(
            "what a door can do", of="remote data", got=got, remedy=remedy, quote=False
        )
    _require_unit(data, ways)
    if ways.target is not None:
        ways.target.refuse_both()
    unread = Unread.of(data.schema, None, data.exact_rows or data.schema.rows or 1, names)
    found = unread.read(replace(ways, max_sample_weight=1.0))
    steps = None if found.coding.shapes is None else CODINGS.write(found.coding.shapes)
    assert found.schema is not None
    rows = data.rows(
        found.rows.layout,
        found.schema,
        ways.sensitive_as_feature,
        steps,
        weight_cap=ways.max_sample_weight if weighted else None,
        target_as_number=ways.target is not None and ways.target.as_number,
    )
    stated = data.schema.rows if ways.public_rows is None else ways.public_rows
    return replace(found, rows=rows, rows_stated=stated, supposed=None)


def refuse_functions(X: TableLike, method: str) -> None:
    """A choice by a function of sums, which would run beside the holder's rows: refused before a
    run is opened."""
    if isinstance(X, Elsewhere) and method == "exponential":
        remedy = "Choose another method: method='linear-oracle' asks sums alone."
        got = "a choice by a function of the rows' losses, which would run beside them"
        raise InputError.expected(
            "what a door can do", of="remote data", got=got, remedy=remedy, quote=False
        )


def _require_unit(data: Elsewhere, ways: ReadOptions) -> None:
    """Whose each row is, is the holder's to say."""
    own, told = data.schema.unit, ways.whose
    units.require_heeded(data.schema, told)
    if told is not None and (told.column is None or told.column != own):
        expected = (
            "None: this data set has one row a person"
            if own is None
            else f"the holder's column {own!r}"
        )
        remedy = "Leave unit=None." if own is None else f"Pass schema=Schema(unit={own!r}, ...)."
        got = "one value a row" if told.column is None else told.column
        raise InputError.expected(expected, of="unit", got=got, remedy=remedy)
