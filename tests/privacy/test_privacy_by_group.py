"""Releases with noise by cell: every person's price, and every group's."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fairveil.errors import InputError
from fairveil.privacy import leaves
from fairveil.privacy.accounting import epsilon
from fairveil.privacy.events import (
    Composed,
    Event,
    Gaussian,
    PerCell,
    PoissonSampled,
    Repeated,
    from_dict,
    from_json_dict,
    to_json_dict,
)
from fairveil.privacy.promise import NEIGHBOURS
from fairveil.privacy.routes import gaussian_epsilon

DELTA = 1e-6
GRADIENTS = PerCell(((9.0, 5.0, 7.0),), (2.0,), (1,))
LOSSES = PerCell(((30.0, 40.0, 20.0),), (1.0,))
CHANGED = PerCell(((6.0, 4.0, 5.0), (9.0, 8.0, 7.0)), (0.0, 0.0), (-1, 0))
SMALL = PerCell(((8.0, 11.0),), (1.5,), (), 1)
RELEASES: dict[str, tuple[tuple[PerCell, int], ...]] = {
    "one": ((GRADIENTS, 1),),
    "two": ((GRADIENTS, 3), (LOSSES, 2)),
    "opposite": ((PerCell(((4.0, 90.0),), (0.0,)), 1), (PerCell(((90.0, 4.0),), (0.0,)), 1)),
    "changed": ((CHANGED, 4),),
    "two columns": ((GRADIENTS, 2), (SMALL, 5), (LOSSES, 1)),
}
every_release = pytest.mark.parametrize("name", RELEASES)
both = pytest.mark.parametrize("neighbours", NEIGHBOURS)


def move(part: tuple[float, ...], spread: float, crossing: int, k: int, other: int) -> float:
    """The largest squared move of one part, over its noise: searched for among contributions, not by the formula."""
    if k == other:
        return (spread / part[k]) ** 2
    here, there = 1 / part[k], 1 / part[other]
    if crossing == 0:
        return here**2 + there**2
    return (here + crossing * there) ** 2


def squares(releases: tuple[tuple[PerCell, int], ...], neighbours: str) -> dict[tuple[tuple[int, ...], ...], float]:
    """mu^2 of every pair of neighbours: a person's cells, one a column, and her cells in the other table."""
    columns = {event.column: event.cells for event, _ in releases}
    homes = list(itertools.product(*(range(cells) for cells in columns.values())))
    place = {column: at for at, column in enumerate(columns)}

    def cost(home: tuple[int, ...], other: tuple[int, ...] | None) -> float:
        total = 0.0
        for event, times in releases:
            at = place[event.column]
            crossings = event.crossings or (0,) * len(event.spreads)
            for part, spread, crossing in zip(event.multipliers, event.spreads, crossings, strict=True):
                gone = part[home[at]] ** -2
                total += times * (gone if other is None else move(part, spread, crossing, home[at], other[at]))
        return total

    if neighbours == "add-remove":
        return {(home,): cost(home, None) for home in homes}
    return {(home, other): cost(home, other) for home in homes for other in homes}


def tree(releases: tuple[tuple[PerCell, int], ...]) -> Event:
    return Composed(tuple(Repeated(event, times) for event, times in releases))


# What a person pays ---------------------------------------------------------------------------------------------------


@both
@every_release
def test_the_price_is_that_of_the_worst_enumerated_pair(name: str, neighbours: str) -> None:
    releases = RELEASES[name]
    worst = max(squares(releases, neighbours).values())
    assert leaves.inventory(tree(releases), neighbours).gaussian == pytest.approx(worst, rel=1e-12)
    found = epsilon(tree(releases), DELTA, neighbours)
    assert found == pytest.approx(gaussian_epsilon(math.sqrt(worst), DELTA), rel=1e-9)


def test_releases_over_the_same_cells_are_one_persons_and_over_other_columns_anybodys() -> None:
    first, second = (event for event, _ in RELEASES["opposite"])
    together = leaves.inventory(Composed((first, second)), "add-remove").gaussian
    assert together == pytest.approx(4.0**-2 + 90.0**-2)
    apart = leaves.inventory(Composed((first, PerCell(second.multipliers, (0.0,), (), 1))), "add-remove").gaussian
    assert apart == pytest.approx(2 * 4.0**-2)


@pytest.mark.parametrize("crossing", [0, 1, -1])
def test_a_crossing_is_the_farthest_that_contributions_of_its_kind_can_move(crossing: int) -> None:
    """Contributions of norm c_k to one sum, or to cells of their own, with one noise: the largest distance found."""
    norms, deviation = np.array([1.0, 0.4, 2.5]), 5.0
    event = PerCell((tuple(deviation / norms),), (0.0,), (crossing,))
    angles = np.linspace(0, 2 * np.pi, 73)
    ways = np.stack([np.cos(angles), np.sin(angles)])
    for k, other in itertools.permutations(range(3), 2):
        here, there = norms[k] * ways[:, :1], norms[other] * (ways[:, :1] if crossing == -1 else ways)
        if crossing == 0:
            farthest = (here**2).sum() + (there**2).sum(axis=0).max()
        else:
            farthest = ((here - there) ** 2).sum(axis=0).max()
        pair = PerCell(((event.multipliers[0][k], event.multipliers[0][other]),), (0.0,), event.crossings)
        assert leaves.per_cell_squares(pair, "replace-one")[1] == pytest.approx(farthest / deviation**2, rel=1e-12)
    assert leaves.per_cell_squares(event, "add-remove")[1] == pytest.approx((2.5 / 5.0) ** 2)


def test_on_one_batch_parts_are_one_persons_too() -> None:
    first, second = (event for event, _ in RELEASES["opposite"])
    batch = leaves.one_batch(PoissonSampled(0.1, Composed((first, second, Gaussian(10.0)))), "replace-one")
    assert batch.replaced is not None
    assert batch.alone.mu**2 == pytest.approx(4.0**-2 + 90.0**-2 + 0.01)
    assert batch.replaced.mu**2 == pytest.approx(2 * (4.0**-2 + 90.0**-2) + 0.04)


@both
def test_order_folding_and_many_cells(neighbours: str) -> None:
    rng = np.random.default_rng(0)
    events = [PerCell((tuple(rng.uniform(2, 9, 250)),), (2.0,), (int(c),)) for c in (0, 1, -1, 1)]
    found = epsilon(events, DELTA, neighbours)
    assert epsilon(events[::-1], DELTA, neighbours) == found
    assert epsilon([Repeated(Composed(tuple(events)), 3)], DELTA, neighbours) == epsilon(events * 3, DELTA, neighbours)


# Files ----------------------------------------------------------------------------------------------------------------


def test_what_older_files_lack_is_filled_in_and_the_rest_is_kept() -> None:
    old = {"kind": "per-cell", "multipliers": [[2.0, 1.0]], "spreads": [2.0]}
    plain = PerCell(((2.0, 1.0),), (2.0,))
    assert from_dict(old) == plain
    assert plain.to_dict() == old
    assert PerCell(((2.0, 1.0),), (2.0,), (0,)) == plain
    for event in (GRADIENTS, CHANGED, SMALL, LOSSES):
        assert from_json_dict(to_json_dict(event)) == event
    assert SMALL.to_dict() == {"kind": "per-cell", "multipliers": [[8.0, 11.0]], "spreads": [1.5], "column": 1}
    with pytest.raises(InputError, match="fields"):
        from_dict({"kind": "per-cell", "multipliers": [[2.0, 1.0]]})
    with pytest.raises(InputError, match="fields"):
        from_dict({**old, "rows": 3})


@pytest.mark.parametrize("wrong", [(2,), (1, 0), (1.0,), (True,), "1", 1])
def test_crossings_are_one_of_three_a_part(wrong: object) -> None:
    with pytest.raises(InputError, match="crossings"):
        PerCell(((2.0, 1.0),), (2.0,), wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="column"):
        PerCell(((2.0, 1.0),), (2.0,), (), -1)
