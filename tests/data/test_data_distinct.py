"""Distinct values of a column, found some rows at a time."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from fairveil.errors import InputError
from fairveil.tables import columns as module
from fairveil.tables.columns import Plain, distinct

COLUMNS = {
    "words": np.array(["b", "a", "c", "a", "b", "d", "a"]),
    "objects": np.array(["b", 2, True, "a", 1, "b", 2.5, 3], object),
    "kinds that are equal": np.array([1, 1.0, True, 2, 0.0, False, 2.0], object),
    "nothing": np.empty(0, object),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_values_and_codes_are_those_of_the_whole(
    name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = Plain(COLUMNS[name])
    values, codes = distinct(column, "y")
    monkeypatch.setattr(module, "ROWS_AT_ONCE", rows)
    found, others = distinct(column, "y")
    assert list(map(repr, found)) == list(map(repr, values))
    assert others.dtype == codes.dtype
    assert np.array_equal(others, codes)


@pytest.mark.parametrize("wrong", [None, float("nan"), float("inf"), b"x"])
def test_a_wrong_value_is_found_in_any_run(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    column = Plain(np.array(["a", "b", wrong, "a"], object))
    with pytest.raises(InputError) as whole:
        distinct(column, "y")
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 1)
    with pytest.raises(InputError) as cut:
        distinct(column, "y")
    assert str(cut.value) == str(whole.value)


def test_words_take_their_codes_and_little_else() -> None:
    """As Python's values they would take 60 bytes a row."""
    column = np.array(["no", "yes"])[np.arange(1 << 19) % 2]
    tracemalloc.start()
    try:
        distinct(Plain(column), "y")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24 * len(column)
