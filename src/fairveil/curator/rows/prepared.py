"""Blocks as a source gives them, checked and made ready for the kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ...errors import InputError
from ...facts import RowBlock, RowLayout, RowSource
from .block import EMPTY_FLOAT, EMPTY_INT, Block
from .refusals import refuse_change


def prepare(raw: RowBlock, layout: RowLayout, number: int, cap: float) -> Block:
    """A block for the kernels, checked. Without copying, but for weights above the cap and unsorted
    sparse rows."""
    _check_types(raw, layout)
    numbers, indptr, indices = raw.numbers, EMPTY_INT, EMPTY_INT
    if hasattr(numbers, "indptr"):
        numbers = _canonical(numbers)
        numbers, indptr, indices = numbers.data[np.newaxis, :], numbers.indptr, numbers.indices
    n = raw.rows
    block = Block(
        layout,
        n,
        numbers,
        indptr,
        indices,
        _signed(raw.codes),
        EMPTY_INT if raw.labels is None else _signed(raw.labels),
        np.empty((0, n), np.uint16) if raw.sensitive is None else _signed(raw.sensitive),
        EMPTY_FLOAT if raw.weights is None else np.minimum(raw.weights, cap),
        number,
    )
    _check_shapes(block, raw)
    _check_values(block)
    return block


def prepared_again(
    source: RowSource,
    cap: float,
    starts: Sequence[int],
    sparse: bool,
    weighted: bool,
    labelled: bool,
) -> Iterator[Block]:
    """The blocks of a streamed source, checked as the first time. They begin at `starts`, and have
    sparse numbers, weights and labels as they had then."""
    stream: Iterator[RowBlock] = iter(())
    for number in range(len(starts)):
        try:
            stream = iter(source.blocks()) if number == 0 else stream
            raw = next(stream, None)
            block = None if raw is None else prepare(raw, source.layout, number, cap)
        except Exception:
            # whatever the source, or a check of its rows, has to say: it may show a value
            refuse_change()
        if block is None or raw is None:
            if number == len(starts) - 1:
                return
            refuse_change()
        # What is public of the first pass must hold in all: plans were made by it.
        same = number < len(starts) - 1 and block.rows == starts[number + 1] - starts[number]
        alike = ((raw.weights is not None), (raw.labels is not None)) == (weighted, labelled)
        if not same or not alike or (block.is_sparse and not sparse):
            refuse_change()
        yield block


def _check_types(raw: RowBlock, layout: RowLayout) -> None:
    """Kinds of numbers that the kernels are compiled for; a code is a whole number, never a rounded
    one."""
    numbers = raw.numbers.data if hasattr(raw.numbers, "indptr") else raw.numbers
    whole = "iub" if layout.classes is not None else "iubf"
    for name, values, kinds in (
        ("numbers", numbers, "f"),
        ("codes", raw.codes, "iu"),
        ("labels", raw.labels, whole),
        ("sensitive codes", raw.sensitive, "iu"),
        ("weights", raw.weights, "f"),
    ):
        if values is None:
            continue
        dtype: Any = values.dtype if isinstance(values, np.ndarray) else None
        good = isinstance(dtype, np.dtype) and dtype.kind in kinds and dtype.isnative
        if not good or (dtype.kind == "f" and dtype.itemsize not in (4, 8)):
            raise InputError.expected(
                ("native " + ("whole numbers" if "f" not in kinds else "float32 or float64")),
                of=name,
                got=str(dtype) if dtype is not None else type(values).__name__,
                remedy="Convert it first: values.astype(np.int32), for example, or np.float64.",
            )


def _signed(codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Codes of 64 bits without a sign as signed ones: the sum of one and a signed offset would be a
    float. Checked later."""
    return codes.astype(np.int64) if codes.dtype == np.uint64 else codes


def _canonical(numbers: sparse.csr_array) -> Any:
    """A CSR array whose columns rise within each row. Nothing that scipy says of it is believed.

    A column twice in one row would count with twice its clip, and an index outside is another row's
    memory.
    """
    if getattr(numbers, "format", "") != "csr" or not _in_range(numbers):
        raise InputError.expected(
            "a CSR array whose row bounds and column indices lie inside its shape",
            of="numbers",
            got="another",
            remedy="Build it with scipy.sparse.csr_array(...), and call check_format().",
        )
    at, ptr = numbers.indices, numbers.indptr
    rises = np.diff(at.astype(np.int64)) > 0
    starts = ptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(at))] - 1] = True
    if rises.all():
        return numbers
    import scipy.sparse

    copied = scipy.sparse.csr_array(
        (numbers.data.copy(), at.copy(), ptr.copy()), shape=numbers.shape
    )
    copied.sum_duplicates()
    return copied


def _in_range(numbers: sparse.csr_array) -> bool:
    rows, columns = numbers.shape
    ptr, at = numbers.indptr, numbers.indices
    if (
        len(ptr) != rows + 1
        or ptr[0] != 0
        or not ptr[-1] == len(at) == len(numbers.data)
        or (np.diff(ptr) < 0).any()
    ):
        return False
    return len(at) == 0 or (int(at.min()) >= 0 and int(at.max()) < columns)


def _check_shapes(block: Block, raw: RowBlock) -> None:
    layout, n = block.layout, block.rows
    found, length = (
        (raw.numbers.shape[::-1] if block.is_sparse else raw.numbers.shape)
        if raw.numbers.ndim == 2
        else (-1, -1)
    )
    for name, got, wanted in (
        ("numbers", found, layout.numbers),
        ("coded features", len(block.codes), len(layout.code_sizes)),
        (
            "sensitive columns",
            0 if raw.sensitive is None else len(block.sensitive),
            len(layout.sensitive),
        ),
        ("rows of numbers", length, n),
        ("rows of sensitive codes", block.sensitive.shape[-1], n),
        ("labels", n if raw.labels is None else block.labels.size, n),
        ("weights", n if raw.weights is None else block.weights.size, n),
        ("axes of labels", block.labels.ndim, 1),
        ("axes of weights", block.weights.ndim, 1),
        ("axes of sensitive codes", block.sensitive.ndim, 2),
    ):
        if got != wanted:
            remedy = "Make blocks of the shape that the layout states."
            raise InputError.expected(f"{wanted} {name}", of="block", got=got, remedy=remedy)


def _check_values(block: Block) -> None:
    layout = block.layout
    for name, bad, remedy in (
        (
            "numbers",
            not np.isfinite(block.numbers).all(),
            "Declare a code for missing values in the schema, or fill them in.",
        ),
        (
            "weights",
            not (np.isfinite(block.weights).all() and (block.weights >= 0).all()),
            "Weights are at least 0.",
        ),
        (
            "labels",
            layout.classes is None and not np.isfinite(block.labels).all(),
            "Targets are finite numbers.",
        ),
    ):
        if bad:
            raise InputError.expected(
                "finite values", of=name, got="NaN, infinite or negative", remedy=remedy
            )
    for name, values, size in (
        (
            "labels",
            block.labels if layout.classes is not None else EMPTY_INT,
            len(layout.classes or ()),
        ),
        *((f"codes[{j}]", block.codes[j], size) for j, size in enumerate(layout.code_sizes)),
        *((f"sensitive[{j}]", block.sensitive[j], len(v)) for j, v in enumerate(layout.sensitive)),
    ):
        if len(values) and not (int(values.min()) >= 0 and int(values.max()) < size):
            raise InputError.expected(
                f"codes from 0 to {size - 1}",
                of=name,
                got=f"{values.min()} to {values.max()}",
                remedy="Encode with the schema that the layout was made from.",
            )
