"""Rows of another holder as a fit sees them: a schema, and nothing to read. Planned by the code that plans without rows.

Guarantees (tests/serving/test_serving_fits.py):
1. Labels, groups and weights are the holder's: others beside them are refused before a run is opened.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...curator.elsewhere import Elsewhere
from ...errors import InputError, complaint
from . import shapes_json
from .columns import names_in
from .inputs import Training, Ways
from .unread import Unread


def training_of(data: Elsewhere, y: Any, sensitive_features: Any, sample_weight: Any, ways: Ways) -> Training:
    """What `inputs.read` makes of rows that are here."""
    names = names_in(sensitive_features)
    beside = {"y": y, "sample_weight": sample_weight, "sensitive_features": None if names else sensitive_features}
    for of, got in beside.items():
        if got is not None:
            remedy = "Leave it out: labels and groups are the holder's. sensitive_features= may name columns of the schema."
            raise InputError(complaint(expected="None beside remote data", of=of, got=type(got).__name__, remedy=remedy))
    if ways.schema is not None and ways.schema != data.schema:
        remedy = "Leave schema=None: the holder's is used."
        raise InputError(complaint(expected="the holder's schema", of="schema", got="another", remedy=remedy))
    if ways.standardise or ways.whose is not None or ways.target is not None:
        got = (
            "a scale read from the data" if ways.standardise else "persons" if ways.whose is not None else "a number as target"
        )
        remedy = "Fit a classifier of rows, with unsafe_data_dependent_bounds=False."
        raise InputError(complaint(expected="what a door can do", of="remote data", got=got, remedy=remedy, quote=False))
    unread = Unread.of(data.schema, None, data.exact_rows or data.schema.rows or 1, names, None)
    found = unread.read(replace(ways, max_sample_weight=1.0))
    steps = None if found.coding.shapes is None else shapes_json.to_dict(found.coding.shapes)
    assert found.schema is not None
    rows = data.rows(found.rows.layout, found.schema, ways.sensitive_as_feature, steps)
    return replace(found, rows=rows, rows_stated=data.schema.rows, supposed=None)
