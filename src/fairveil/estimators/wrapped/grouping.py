"""Each row's group at prediction: from columns, from names of X's columns, or from codes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..._types import TableLike
from ...data.coding import Place, category_codes
from ...errors import InputError
from ...facts import Cells, RowBlock, RowSource
from ...facts.columns import Category
from ...tables.columns import same_length
from ...tables.raw import Plain
from .base_columns import columns_of, names_of


def group_ids(
    given: object, X: TableLike, cells: Cells, rows: int, named: bool
) -> npt.NDArray[np.intp]:
    """The cell of each row at prediction. Groups: columns, names of columns of X, the rows' own, or
    X's columns of those names where the fit was given names. Missing or unknown ones are errors."""
    if given is None and isinstance(X, (RowBlock, RowSource)):
        return _ids_of_rows(X, cells)
    if given is None and not (named and set(cells.names) <= set(names_of(X))):
        raise InputError.expected(
            f"the groups of every row ({', '.join(cells.names)})",
            of="sensitive_features",
            got=None,
            remedy="This model is group-aware: pass predict(X, sensitive_features=...).",
        )
    columns, _ = columns_of(X, list(cells.names) if given is None else given)
    if set(columns) == set(cells.names):
        columns = {name: columns[name] for name in cells.names}
    elif len(columns) != len(cells.columns) or set(columns) & set(cells.names):
        # by position only where no name says another
        remedy = "Pass the sensitive columns of the fit."
        expected = f"{len(cells.columns)} columns ({', '.join(cells.names)})"
        raise InputError.expected(
            expected, of="sensitive_features", got=list(columns), remedy=remedy
        )
    same_length(
        {"X": rows}
        | {f"sensitive column {name!r}": len(column) for name, column in columns.items()}
    )
    lines = [
        category_codes(Plain(column), Category(values), Place(name, missing_values=()))  # type: ignore[arg-type]
        for name, values, column in zip(cells.names, cells.columns, columns.values(), strict=True)
    ]
    return np.asarray(cells.ids(np.stack(lines))[0], np.intp)


def _ids_of_rows(X: RowBlock | RowSource, cells: Cells) -> npt.NDArray[np.intp]:
    blocks: Iterator[RowBlock] = iter((X,)) if isinstance(X, RowBlock) else X.blocks()
    codes = [block.sensitive for block in blocks]
    layout = None if isinstance(X, RowBlock) else X.layout
    if any(part is None for part in codes) or (
        layout is not None and not set(cells.names) <= set(layout.sensitive_names)
    ):
        remedy = "Code the rows with their sensitive columns."
        raise InputError.expected(
            f"rows with groups {list(cells.names)}", of="X", got="rows without", remedy=remedy
        )
    whole = np.concatenate([part for part in codes if part is not None], axis=1)
    if layout is not None:
        at = [layout.sensitive_names.index(name) for name in cells.names]
        whole = whole[at]
        if tuple(layout.sensitive[j] for j in at) != cells.columns:
            remedy = "Code the rows by the schema of the fit."
            raise InputError.expected(
                f"the groups {cells.columns}", of="X", got="others", remedy=remedy
            )
    return np.asarray(cells.ids(whole)[0], np.intp)
