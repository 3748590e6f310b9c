"""Held-out rows that are too few to tell whether a bound is met: said with how many would do.

What is measured on held-out rows is exact and outside of the guarantee. So is their number by
group, which the page shows. An interval shrinks with the square root of the rows: of a group of n,
whose interval is w wide, about n (w / bound)^2 rows make it as wide as the bound. The theorems of
`study.plan_sample_size` are about fits, not about measuring.

Guarantee (tests/cli/test_cli_few_rows.py): nothing is said where the verdict is told, or where the
interval is no wider than the bound.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from .._verdicts import UNCLEAR
from ..errors import TooFewRows, complaint
from ..metrics import GroupTable
from ..show.numbers import with_unit
from ..show.report import Requirement


def warn_of_few(figures: Sequence[Requirement], table: GroupTable) -> None:
    """Warn for each figure whose interval on the held-out rows is wider than what is required."""
    groups = [row for row in table.rows if row.rows > 0]
    if not groups:
        return
    least = min(groups, key=lambda row: row.rows)
    for figure in figures:
        low, high, bound = figure.held_out_low, figure.held_out_high, figure.target
        if (
            low is None
            or high is None
            or not bound
            or figure.held_out_verdict != UNCLEAR
            or high - low <= bound
        ):
            continue
        unit, enough = figure.measure.unit, rows_for(least.rows, high - low, bound)
        text = complaint(
            expected=f"enough of every group to tell whether the {figure.name} is at most "
            f"{with_unit(bound, unit)}",
            of="held-out rows",
            got=f"{least.rows:,} of group {least.name}, and an interval "
            f"{with_unit(high - low, unit)} wide",
            remedy=f"About {enough:,} of that group would do: hold out more (--holdout), or "
            f"measure on other rows (--test).",
            quote=False,
        )
        warnings.warn(text, TooFewRows, stacklevel=2)


def rows_for(rows: int, width: float, bound: float) -> int:
    """About how many rows make an interval, `width` wide with so many, as wide as the bound; two
    digits, rounded up.

    >>> rows_for(100, 0.2, 0.05), rows_for(90, 0.1, 0.1)
    (1600, 90)
    """
    exact = rows * (width / bound) ** 2
    step = 10.0 ** max(0, math.floor(math.log10(max(exact, 1.0))) - 1)
    return int(math.ceil(exact / step - 1e-9) * step)
