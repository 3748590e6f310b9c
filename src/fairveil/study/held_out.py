"""Rows that were held out of training, as histograms of a model's decisions, and what they show of a
model. Exact, and covered by no promise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._types import ColumnsLike, Floats, TableLike
from ..errors import InputError
from ..estimators import reading
from ..estimators.reading import ReadOptions, Training, groups_of, read_labels
from ..facts import Cells, RowBlock, RowSource
from ..metrics.histograms import soft_histogram
from ..metrics.inputs import read_groups
from ..metrics.tables import largest, wilson
from ..models import Model
from ..tables.columns import read_columns, same_length
from ..tables.frames import column_of
from .families import Judge
from .result import CONFIDENCE, Run

REMEDY = "Pass test=(X, y, sensitive_features), in the form of the training rows."


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class HeldOut:
    """Coded rows with their labels and cells. `cells` is None where nothing tells groups apart."""

    cells: Cells | None
    classes: tuple[Any, ...]
    _blocks: tuple[RowBlock, ...]
    _labels: npt.NDArray[np.intp]
    _cell_ids: npt.NDArray[np.intp]

    @staticmethod
    def read(test: TableLike, training: Training, ways: ReadOptions) -> HeldOut:
        """Rows in the form of the training rows, coded as those were; unknown labels and groups are
        errors that name them."""
        X, y, groups = _parts(test)
        layout = training.rows.layout
        cells = groups_of(training, either=False)
        blocks = tuple(training.coding.blocks(X))
        if isinstance(X, RowSource) or ways.schema is not None:
            found = reading.read(
                X, y, groups, None, replace(ways, standardise=False, features_are_public=False)
            ).rows
            if (found.layout.classes, found.layout.sensitive) != (layout.classes, layout.sensitive):
                got = (found.layout.classes, found.layout.sensitive)
                expected = (
                    f"the training rows' classes and groups {(layout.classes, layout.sensitive)}"
                )
                raise InputError.expected(expected, of="test", got=got, remedy=REMEDY)
            labels = np.concatenate([block.labels for block in found.blocks()]).astype(np.intp)
            codes = np.concatenate([block.sensitive for block in found.blocks()], axis=1)
        else:
            labels = _codes(read_labels(y), training.classes)
            codes = _group_codes(groups, X, cells, len(labels))
        rows = sum(block.rows for block in blocks)
        same_length(
            {
                "X": rows,
                "y": len(labels),
                "sensitive_features": codes.shape[1] if len(codes) else rows,
            }
        )
        if not rows:
            raise InputError.expected("at least one row", of="test", got="none", remedy=REMEDY)
        ids = np.zeros(rows, np.intp) if cells is None else cells.ids(codes)[0].astype(np.intp)
        return HeldOut(cells, training.classes, blocks, labels, ids)

    @property
    def rows(self) -> int:
        """How many rows were held out."""
        return len(self._labels)

    def histogram(self, model: Model) -> Floats:
        """Rows by (cell, label, decision); of a model that is randomized, how many are
        expected."""
        law = np.concatenate([model.decision_proba(block) for block in self._blocks])
        cells = 1 if self.cells is None else self.cells.count
        shape = (cells, len(self.classes), len(self.classes))
        return soft_histogram(law, self._labels, self._cell_ids[np.newaxis], shape)


def measured(run: Run, judge: Judge, histogram: Floats) -> Run:
    """The same with error and gap of held-out rows by (cell, label, decision)."""
    values = judge.system.exact_values(histogram, histogram.sum(axis=-1))
    rows = float(histogram.sum())
    error = 1.0 - float(np.trace(histogram.sum(axis=0)) / rows)
    below, above = wilson(error, rows, CONFIDENCE)
    _, low, high = largest(
        judge.system, histogram.sum(axis=-1), histogram, CONFIDENCE, chosen=judge.swept
    )
    return replace(
        run,
        error=error,
        gap=defined(judge.gap(values)),
        excess=defined(judge.excess(values)),
        error_low=below,
        error_high=above,
        gap_low=defined(low),
        gap_high=defined(high),
    )


def defined(value: float) -> float | None:
    """None of a value that is undefined."""
    return None if math.isnan(value) else value


def _parts(test: TableLike) -> tuple[Any, Any, Any]:
    if isinstance(test, RowSource):
        return test, None, None
    if isinstance(test, (tuple, list)) and len(test) == 3:
        return test[0], test[1], test[2]
    raise InputError.expected("three things", of="test", got=type(test).__name__, remedy=REMEDY)


def _codes(labels: npt.NDArray[Any], classes: Sequence[Any]) -> npt.NDArray[np.intp]:
    code_of = {value: code for code, value in enumerate(classes)}
    listed = labels.tolist()
    unknown = sorted({repr(value) for value in listed if value not in code_of})[:5]
    if unknown:
        got = ", ".join(unknown)
        remedy = "Leave rows of other classes out."
        raise InputError.expected(
            f"one of {list(classes)}", of="test labels", got=got, remedy=remedy
        )
    return np.fromiter((code_of[value] for value in listed), np.intp, len(listed))


def _group_codes(
    groups: ColumnsLike, X: Any, cells: Cells | None, rows: int
) -> npt.NDArray[np.uint16]:
    if cells is None:
        return np.zeros((0, rows), np.uint16)
    names = (groups,) if isinstance(groups, str) else groups
    if isinstance(names, (list, tuple)) and names and set(map(str, names)) == set(cells.names):
        groups = {name: column_of(X[name], name) for name in cells.names}
    columns = read_columns(groups)
    if set(columns) == set(cells.names):
        columns = {name: columns[name] for name in cells.names}
    return read_groups(columns, rows, groups=cells)[1]
