"""How many groups the rows of a fit can carry. More are refused before any release, and before a
ledger is asked.

A group of a few rows has rates that drown in the noise, and work grows with the square of the
groups: an income, or a date of birth, that is named as sensitive would cost hours and gigabytes.

Guarantees (tests/estimators/test_estimators_many_groups.py):
1. Groups that a schema or a source of rows states are compared with a constant alone: the refusal
   tells nothing of the rows.
2. Groups that are read from the data are compared with the number of rows, too. Such a fit lists
   its groups as read from the data, not covered. The refusal reaches the data holder before any
   release, and shows no value.
3. Of classes that are read from the data the refusal does not say how many there are, either.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from ...errors import InputError
from ...facts import Cells
from ...statement.form import READ_FROM_DATA
from .training import Training

MOST_CELLS = 1000
"""Cells at most, whoever states the groups."""

FEWEST_ROWS = 5
"""How many rows there must be for each group, on the average, where groups are read from the
data."""

MOST_NUMBERS = 20
"""Classes at most that are numbers, where they are read from the data: more are a quantity."""

ALWAYS = 16
"""So many groups are never too many."""

OTHERS = 'Category([...], unknown="other")'


def most_groups(rows: int) -> int:
    """How many groups may be read from so many rows.

    >>> most_groups(40), most_groups(1000), most_groups(10**9)
    (16, 200, 1000)
    """
    return min(MOST_CELLS, max(ALWAYS, rows // FEWEST_ROWS))


def require_few_values(sizes: Mapping[str, int], rows: int) -> None:
    """Distinct values of sensitive columns that were read from the data."""
    for name, size in sizes.items():
        if size > most_groups(rows):
            raise InputError.expected(
                (f"at most {most_groups(rows)} groups, which is what {rows:,} rows can carry"),
                of=f"sensitive column {name!r}",
                got=f"{size:,} distinct values",
                remedy=(
                    "Make ranges of a number first (ages by decade, for example). Or "
                    "declare the frequent values in a "
                    f"schema, where one value stands for the others: {OTHERS}."
                ),
                quote=False,
            )


def require_few_classes(classes: Sequence[Hashable], rows: int) -> None:
    """Classes that were read from the data: a number that was meant for a regressor has dozens, and
    work grows with their square. Neither a value nor how many there are is shown."""
    most = most_groups(rows)
    got = "more values, and no schema"
    if all(map(_is_numeral, classes)):
        most, got = min(most, MOST_NUMBERS), "a number with more, and no schema"
    if len(classes) > most:
        raise InputError.expected(
            f"a schema that lists the classes, or at most {most} distinct values",
            of="y",
            got=got,
            remedy=(
                "Without a schema classes are read from the data, not covered. Fit a regressor to "
                "a number (FairRegressor), make ranges of it, or "
                "declare its classes: Schema({'grade': Category([...])}, target='grade')."
            ),
            quote=False,
        )


def _is_numeral(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]  # whatever is no number is refused by it
    except (TypeError, ValueError):
        return False
    return True


def groups_of(training: Training, mode: str = "product", *, either: bool = True) -> Cells | None:
    """The cells of a fit's sensitive columns; None where there are none. `either`: whether the user
    may choose the mode."""
    rows = training.rows
    if not rows.layout.sensitive:
        return None
    cells = rows.cells(mode)
    of_facts = {fact.origin for fact in training.facts if fact.name.startswith("groups of ")}
    read = READ_FROM_DATA in of_facts
    most = most_groups(training.exact_rows) if read else MOST_CELLS
    if cells.count > most:
        each = ", ".join(
            f"{name!r}: {size}" for name, size in zip(cells.names, cells.sizes, strict=True)
        )
        carried = (
            f"which is what {training.exact_rows:,} rows can carry"
            if read
            else "whoever states them"
        )
        apart = (
            " Or look at one column at a time: groups='marginal', in the constraint or the "
            "estimator."
        )
        raise InputError.expected(
            f"at most {most:,} groups, {carried}",
            of="sensitive_features",
            got=f"{cells.count:,} ({each})",
            remedy=(
                f"Merge values that are rare: {OTHERS} in a schema, or ranges of a number."
                + (apart if either and mode == "product" and len(cells.columns) > 1 else "")
            ),
            quote=False,
        )
    return cells
