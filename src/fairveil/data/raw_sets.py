"""From the bytes of the benchmark files to tables with typed columns. Every step looks at one row
at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..facts.columns import Boolean, Category, Column, Ignored, Number
from ..facts.schema import Schema

Columns = Mapping[str, npt.NDArray[Any]]

ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race", "sex",
    "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
MEDIAN_UPDRS = 27.576
"""The published threshold: the median of total_UPDRS over the 5,875 published recordings."""
HIGH_SHARE = 0.5
PIXELS = 28 * 28


def adult(contents: Sequence[bytes], schema: Schema) -> Columns:
    """Adult's training file, then its test file where there is one; rows with a "?" are left out,
    as in the papers."""
    rows = [
        row
        for content in contents
        for row in _cells(content)
        if len(row) == len(ADULT) and row[0] != ADULT[0]
    ]
    rows = [row for row in rows if "?" not in row]
    return typed(
        {name: [row[at].rstrip(".") for row in rows] for at, name in enumerate(ADULT)}, schema
    )


def with_header(contents: Sequence[bytes], schema: Schema) -> Columns:
    """A CSV file whose first line names its columns."""
    header, *rows = _cells(contents[0])
    return typed({name: [row[at] for row in rows] for at, name in enumerate(header)}, schema)


def parkinsons(contents: Sequence[bytes], schema: Schema) -> Columns:
    """Parkinson's telemonitoring, with the papers' label: total_UPDRS above its published
    median."""
    columns = with_header(contents, schema)
    return {**columns, "high_UPDRS": columns["total_UPDRS"].astype(np.float64) > MEDIAN_UPDRS}


def communities(contents: Sequence[bytes], schema: Schema) -> Columns:
    """Communities and Crime, with racial shares cut at a public threshold into groups."""
    columns = with_header(contents[:1], schema)
    cut = {
        f"{share}_high": columns[share] > HIGH_SHARE
        for share in ("racepctblack", "racePctWhite", "racePctHisp")
    }
    return {**columns, **cut}


def mnist(contents: Sequence[bytes], schema: Schema) -> Columns:
    """The four IDX files: training images and labels, then test images and labels."""
    images = np.concatenate(
        [_idx(contents[0], 16).reshape(-1, PIXELS), _idx(contents[2], 16).reshape(-1, PIXELS)]
    )
    labels = np.concatenate([_idx(contents[1], 8), _idx(contents[3], 8)])
    return {**_pixels(images), "digit": labels.astype(np.int64)}


def mnist_text(contents: Sequence[bytes], schema: Schema) -> Columns:
    """A digit a line, 784 pixels and the label."""
    cells = np.loadtxt(io.BytesIO(contents[0]), delimiter=",", dtype=np.float64)
    return {
        **_pixels(cells[:, :PIXELS].astype(np.uint8)),
        "digit": cells[:, PIXELS].astype(np.int64),
    }


def typed(cells: Mapping[str, list[str]], schema: Schema) -> Columns:
    """Columns of text as columns of what the schema declares; columns that it does not name are
    left out."""
    return {
        name: _column(cells[name], column)
        for name, column in schema.columns.items()
        if name in cells
    }


def _column(cells: Iterable[str], column: Column) -> npt.NDArray[Any]:
    listed = list(cells)
    if isinstance(column, Number):
        return np.array(listed, dtype=np.float64)
    if isinstance(column, Ignored | Boolean) or any(
        isinstance(value, str) for value in column.values
    ):
        return np.array(listed, dtype=object)
    return _numeric(listed, column)


def _numeric(cells: list[str], column: Category) -> npt.NDArray[Any]:
    values = np.array(cells, dtype=np.float64)
    whole = all(isinstance(value, int) for value in column.values) and bool(
        np.all(values == np.round(values))
    )
    return values.astype(np.int64) if whole else values


def _cells(content: bytes) -> list[list[str]]:
    lines = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    return [[cell.strip() for cell in row] for row in lines if row]


def _idx(content: bytes, header: int) -> npt.NDArray[np.uint8]:
    return np.frombuffer(content, dtype=np.uint8, offset=header)


def _pixels(images: npt.NDArray[np.uint8]) -> dict[str, npt.NDArray[Any]]:
    lines = np.ascontiguousarray(images.T)
    return {f"pixel{at}": lines[at] for at in range(PIXELS)}
