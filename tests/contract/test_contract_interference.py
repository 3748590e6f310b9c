"""Non-interference: what anybody sees of a fit is made of its noisy releases and of nothing else.

Releases are recorded on one table, and handed out again on a neighbouring one. Attributes, files,
statement, reports, predictions, warnings, errors and prints are then equal to the bit.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from configurations import CONFIGURATIONS, ROWS, Configuration, Table, neighbour, people
from observing import differences, observed
from seam import Released, making_up, recording, replaying

VARIANTS = 2


def asked(tape: Any) -> list[Any]:
    return [
        (one.names, [np.asarray(m).tolist() for m in one.multipliers], repr(one.event), one.batch)
        for one in tape.entries
    ]


@cache
def seen_of(name: str, rows: int, seed: int) -> tuple[Any, dict[str, str]]:
    """The releases of a row's fit of so many people, and all that is seen of it."""
    row = CONFIGURATIONS[name]
    X, groups = row.features(people(40, 9)), row.groups(people(40, 9))
    with recording() as tape:
        return tape, observed(lambda: row.run(people(rows, seed)), X, groups)


def told_apart(row: Configuration, rows: int, seed: int, other: Table) -> list[str]:
    """What tells the other table from that of so many people, once they answer alike."""
    X, groups = row.features(people(40, 9)), row.groups(people(40, 9))
    first, seen = seen_of(row.name, rows, seed)
    with replaying(first.entries) as second:
        seen_again = observed(lambda: row.run(other), X, groups)
    if asked(first) != asked(second):
        return ["other questions", *differences(seen, seen_again)]
    return differences(seen, seen_again)


@pytest.mark.parametrize("variant", range(VARIANTS))
def test_nothing_but_the_releases_is_seen(row: Configuration, variant: int, table: Table) -> None:
    other = neighbour(row, table, variant, place=17 if variant else None)
    assert not told_apart(row, ROWS, 0, other)


@pytest.mark.parametrize("rows", [0, 1])
def test_an_empty_table_is_told_from_no_neighbour(row: Configuration, rows: int) -> None:
    """Where the number of rows is private, a table of none or of one behaves as its neighbour
    does. Where it is public they may be refused, by an error of the library, before a release."""
    table = people(rows, 1)
    if row.schema and row.protects == "records" and row.neighbours == "add-remove":
        other = neighbour(row, table, 0)
        assert not told_apart(row, rows, 1, other)
        return
    with recording() as tape:
        seen = observed(lambda: row.run(table))
    if "error" in seen:
        assert seen["error"].split(":")[0] in {"InputError", "SchemaError"}, seen["error"]
        assert not tape.entries, "refused after something was released"


def made_up(release: Released) -> tuple[Any, ...]:
    draw = np.random.default_rng(len(release.names))
    return tuple(draw.uniform(-1.0, 3.0, value.shape) for value in release.values)


def test_what_is_answered_changes_no_question(
    row: Configuration, released: Any, table: Table
) -> None:
    """Answers of other noise, and answers that have nothing to do with the rows, give the same
    events: a plan is the trace of a run, and hangs on nothing that was released."""
    made = [released(row)]
    for seed, tapes in ((1, recording()), (0, making_up(made_up))):
        with tapes as tape:
            row.run(table, random_state=seed)
        made.append(tuple(tape.entries))
    events = [[repr(one.event) for one in fit if one.event is not None] for fit in made]
    if row.name not in CHOSEN_BY_ANSWERS:
        assert events[0] == events[1] == events[2]


# Shares of the budget are made of the first counts: the plan holds their bound.
CHOSEN_BY_ANSWERS = {"tailored-alone", "tailored-persons", "tailored-regressor"}
