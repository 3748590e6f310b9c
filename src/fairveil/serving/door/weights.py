"""The weights of a data set: a column of its table that the holder names, and that is no feature.

    rows = "applicants.csv"
    weights = "design_weight"

Guarantees (tests/serving/test_serving_weights.py):
1. Each row has the weight of its own line; who fits states where weights are cut, and noise follows
   that cap.
2. A missing, negative or infinite weight is refused before the door opens, by the number of its row
   alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...data.coding import Place, plain_numbers
from ...data.reading import chunks_of, kind_of
from ...errors import InputError, SchemaError
from ...facts import Schema
from ...facts.columns import Ignored


def require_weights(
    place: str, query: str | None, schema: Schema, name: str, *, joined: bool
) -> None:
    """An error where a data set cannot have this column of weights: told before a row is read."""
    kind = kind_of(place, query)
    if kind not in ("csv", "parquet") or joined:
        remedy = (
            "Serve a CSV or Parquet file: a store keeps no weights, and a database may give rows "
            "in another order."
        )
        got = "a joined table" if joined else kind
        raise InputError.expected(
            "a table of its own with the weights", of="weights", got=got, remedy=remedy
        )
    if name == schema.unit or not isinstance(schema.columns.get(name, Ignored()), Ignored):
        remedy = "Declare the column ignored, or not at all: a weight is no feature."
        raise SchemaError.expected(
            "a column that is no feature and no role", of="weights", got=name, remedy=remedy
        )


def weights_of(place: str, schema: Schema, name: str) -> npt.NDArray[np.float64]:
    """One weight a row, in the order of the table."""
    parts, first = [np.zeros(0)], 0
    for chunk in chunks_of(place, (name,), schema=schema):
        at = Place(name, first, chunk.text, schema.missing_values, shows_values=False)
        found = plain_numbers(chunk.columns[name], at)
        wrong = np.flatnonzero(~np.isfinite(found) | (found < 0.0))
        if len(wrong):
            remedy = "Give each row one finite number of at least 0."
            got = f"another in row {first + int(wrong[0]) + 1}"
            raise SchemaError.expected("a weight", of=name, got=got, remedy=remedy, quote=False)
        parts.append(found)
        first += chunk.rows
    return np.concatenate(parts)
