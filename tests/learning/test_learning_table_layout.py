"""What a private table counts: one part a row, disjoint groups a level, and the rates of an exact
group table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fairveil import group_table
from fairveil.facts import Cells
from fairveil.learning.private_tables.layout import TableLayout, counted

CELLS = Cells((("f", "m"), ("x", "y", "z"), (0, 1)), names=("sex", "town", "old"))


@pytest.mark.parametrize("labelled", [True, False])
def test_one_person_is_in_one_part_and_every_kind_of_person_in_her_own(labelled: bool) -> None:
    """All kinds of people, enumerated: no two that differ share a part, so a row moves one count
    and a replaced row two."""
    layout = TableLayout(CELLS, ("a", "b"), labelled, 3)
    kinds = list(itertools.product(range(CELLS.count), range(2 if labelled else 1), range(2)))
    columns = [np.array(column) for column in zip(*kinds, strict=True)]
    parts = layout.part_of(columns[0], columns[1], columns[2])
    assert sorted(parts) == list(range(layout.parts))


def test_the_groups_of_each_level_are_disjoint_and_everyone() -> None:
    layout = TableLayout(CELLS, (0, 1), True, 2)
    assert layout.levels == ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    for level in layout.levels:
        cells = [cell for one in layout.groups if one.columns == level for cell in one.cells]
        assert sorted(cells) == list(range(CELLS.count))
    keys = {one.key for one in layout.groups}
    assert {None, ("sex", "f"), (("sex", "f"), ("town", "x"))} <= keys
    whole = TableLayout(CELLS, (0, 1), True, 3)
    assert ("f", "x", 0) in {one.key for one in whole.groups}
    assert not TableLayout(Cells((("everyone",),)), (0, 1), True, 1).levels


def test_rates_are_those_of_the_exact_group_table() -> None:
    rng = np.random.default_rng(0)
    y, decided = rng.integers(3, size=(2, 900))
    sex, town, old = rng.integers(2, size=900), rng.integers(3, size=900), rng.integers(2, size=900)
    exact = group_table(y, decided, {"sex": sex, "town": town, "old": old})
    cells = Cells(((0, 1), (0, 1, 2), (0, 1)), names=("sex", "town", "old"))
    layout = TableLayout(cells, (0, 1, 2), True, 3)
    ids = cells.ids(np.stack([sex, town, old]).astype(np.uint16))[0]
    counts = np.bincount(layout.part_of(ids, y, decided), minlength=layout.parts).reshape(
        cells.count, layout.kinds
    )
    assert list(exact.overall.rates) == list(layout.shares) or set(exact.overall.rates) == set(
        layout.shares
    )
    for group in layout.groups:
        if group.key is None or len(group.columns) == 3:
            row = exact.overall if group.key is None else exact[group.key]
            for name, share in layout.shares.items():
                one = counted(share, counts[list(group.cells)].sum(axis=0), len(group.cells))
                assert one.selected / (one.selected + one.others) == pytest.approx(
                    row.rates[name].value
                )
