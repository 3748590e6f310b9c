"""What a layout says of coded rows: where coefficients begin, and cells of sensitive columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...facts import Cells, RowLayout


def offsets_of(layout: RowLayout) -> npt.NDArray[np.int64]:
    """Where each coded feature's coefficients begin."""
    starts = np.cumsum((0, *layout.code_sizes), dtype=np.int64)[:-1]
    return 1 + layout.numbers + starts


def cells_of(layout: RowLayout, mode: str, names: Sequence[str] | None) -> Cells:
    """The cells of all sensitive columns, or of those named."""
    names = tuple(
        layout.sensitive_names if names is None else (names,) if isinstance(names, str) else names
    )
    try:
        columns = tuple(layout.sensitive[layout.sensitive_names.index(name)] for name in names)
    except ValueError:
        raise InputError.expected(
            f"names among {layout.sensitive_names}",
            of="sensitive columns",
            got=names,
            remedy="Give the sensitive columns to the rows first.",
        ) from None
    return Cells(columns, mode, names)  # type: ignore[arg-type]  # Cells checks the mode
