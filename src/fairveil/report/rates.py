"""A group table's rates as figures, and their names."""

from __future__ import annotations

import math
from collections.abc import Hashable

from ..figures import Rate, RatePanels, RatesFigure
from ..figures.words import percent
from ..metrics import GroupRow, GroupTable
from ..tables.keys import shown
from .contents import GroupSection

MOST_CLASSES = 6
"""Up to so many classes have a column of their own; the twin has all."""
MOST_PANELS = 3
MOST_ROWS = 40
"""Of more groups the figure shows those with the most rows; the table has all."""


def rates_figure(table: GroupTable, rate: str) -> RatesFigure:
    """One rate of a group table, group by group and for everyone."""
    return _figure(table, rate, table.rows)


def _figure(
    table: GroupTable, rate: str, rows: tuple[GroupRow, ...], *, short: bool = False
) -> RatesFigure:
    def one(row: GroupRow) -> Rate:
        estimate, label = row.rates[rate], name_of(row)
        if math.isnan(estimate.value):
            return Rate(label, None, None, None, estimate.size, row.small)
        return Rate(label, estimate.value, estimate.low, estimate.high, estimate.size, row.small)

    name = rate_words(rate.partition("[")[0] if short else rate)
    return RatesFigure(name, tuple(one(row) for row in (*rows, table.overall)), table.confidence)


def columns(table: GroupTable) -> tuple[str, ...]:
    """The rates that the page shows: of the positive class where there is one, else selection
    rates; then the error."""
    if table.positive is not None:
        of = shown(table.positive)
        return (
            f"selection_rate[{of}]",
            f"true_positive_rate[{of}]",
            f"false_positive_rate[{of}]",
            "error",
        )
    return (*(f"selection_rate[{shown(k)}]" for k in table.classes[:MOST_CLASSES]), "error")


def rate_words(rate: str) -> str:
    """
    >>> rate_words("selection_rate[>50K]"), rate_words("error")
    ('Selection rate of >50K', 'Error')
    """
    name, bracket, rest = rate.partition("[")
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:] + (f" of {printable(rest[:-1])}" if bracket else "")


def name_of(row: GroupRow) -> str:
    """The group as a reader wants it, without characters that cannot be printed."""
    return "Everyone" if row.group is None else printable(row.group)


def printable(key: Hashable) -> str:
    """The key as it is shown, without characters that cannot be printed."""
    return "".join(letter if letter.isprintable() else "�" for letter in shown(key)) or "(empty)"


def panels_of(table: GroupTable, title: str) -> RatePanels:
    """Selection, true positive, false positive rate and error by group; of more than two classes
    the selection rates of those in which groups differ most, and the error. Of many groups the
    largest."""
    largest = {id(row) for row in sorted(table.rows, key=lambda row: -row.rows)[:MOST_ROWS]}
    rows = tuple(row for row in table.rows if id(row) in largest)
    figures = tuple(
        _figure(table, rate, rows, short=table.positive is not None) for rate in drawn(table)
    )
    return RatePanels(title, figures)


def panels_title(section: GroupSection) -> str:
    """What the figure is."""
    positive = section.table.positive
    of = "" if positive is None else f" of “{printable(positive)}”"
    return f"Rates{of} by group, {section.of}"


def panels_note(section: GroupSection) -> str:
    """What is drawn, and how to read it."""
    table = section.table
    said = [
        f"Lines: {percent(table.confidence)} intervals (Wilson), each on its own. Each axis begins "
        f"at zero and has its own end."
    ]
    if table.positive is None and len(table.classes) > MOST_PANELS:
        said.append(
            f"Of {len(table.classes)} classes, the selection rates of those in which groups differ "
            f"most are drawn."
        )
    elif table.positive is None:
        said.append(
            "With more than two classes, the selection rate of each is drawn instead of true and "
            "false positive rates."
        )
    if len(table.rows) > MOST_ROWS:
        said.append(f"Of {len(table.rows)} groups, the {MOST_ROWS} with the most rows are drawn.")
    if any(row.small for row in table.rows):
        said.append(f"Hollow marks: fewer than {table.small_below} rows, whose rates mean little.")
    if section.expected:
        said.append(
            "Rates are expected ones: this classifier is randomized, and one draw varies around "
            "them."
        )
    return " ".join(said)


def drawn(table: GroupTable) -> tuple[str, ...]:
    """The rates that have a panel.

    Four of two classes; of more, up to three selection rates and the error.
    """
    every = columns(table)
    if table.positive is not None:
        return every
    names = [f"selection_rate[{shown(k)}]" for k in table.classes]
    widest = sorted(names, key=lambda name: -_spread(table, name))[:MOST_PANELS]
    return (*(name for name in names if name in widest), "error")


def _spread(table: GroupTable, name: str) -> float:
    values = [value for row in table.rows if not math.isnan(value := row.rates[name].value)]
    return max(values) - min(values) if values else 0.0
