"""Names of arrays in signatures, one for all rooms."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
"""Of any kind of number: a loop or a check that takes several."""
Integers = npt.NDArray[np.integer[Any]]
"""Of any width: codes are as narrow as their number allows."""
Numbers = npt.NDArray[np.floating[Any]]
"""Of either precision."""
TableLike: TypeAlias = object
"""What a user has as a table: an array, a frame of any library, a mapping of columns, coded rows.
`tables` looks at it."""
ColumnsLike: TypeAlias = object
"""The same of labels, weights or groups: an array, a series, a frame, a mapping, names of
columns."""
