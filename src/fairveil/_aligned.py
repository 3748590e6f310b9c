"""Rows of words as lines of text, with columns of one width each."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], right_from: int | None = None) -> list[str]:
    """A line a row. `right_from`: the first column that ends, rather than begins, in one line.

    >>> aligned([("group", "rows"), ("f", "12")], right_from=1)
    ['group  rows', 'f        12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = len(widths) if right_from is None else right_from
    return [
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
