"""Releases with noise by cell: every person's price, and every group's."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from fairveil.core import mechanisms as leaves
from fairveil.core.cost import epsilon, gaussian_epsilon
from fairveil.core.curves import gaussian_delta
from fairveil.core.events import (
    Composed,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    VisiblySampled,
    from_dict,
    from_json_dict,
    to_json_dict,
)
from fairveil.core.promise import NEIGHBOURS
from fairveil.errors import InputError
from fairveil.statement.form import event as plain
from fairveil.statement.groups import Cells, seen
from group_prices import by_group

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
    """The largest squared move of one part, over its noise: searched for among contributions, not
    by the formula."""
    if k == other:
        return (spread / part[k]) ** 2
    here, there = 1 / part[k], 1 / part[other]
    if crossing == 0:
        return here**2 + there**2
    return (here + crossing * there) ** 2


def squares(
    releases: tuple[tuple[PerCell, int], ...], neighbours: str
) -> dict[tuple[tuple[int, ...], ...], float]:
    """mu^2 of every pair of neighbours: a person's cells, one a column, and her cells in the other
    table."""
    columns = {event.column: event.cells for event, _ in releases}
    homes = list(itertools.product(*(range(cells) for cells in columns.values())))
    place = {column: at for at, column in enumerate(columns)}

    def cost(home: tuple[int, ...], other: tuple[int, ...] | None) -> float:
        total = 0.0
        for event, times in releases:
            at = place[event.column]
            crossings = event.crossings or (0,) * len(event.spreads)
            for part, spread, crossing in zip(
                event.multipliers, event.spreads, crossings, strict=True
            ):
                gone = part[home[at]] ** -2
                total += times * (
                    gone if other is None else move(part, spread, crossing, home[at], other[at])
                )
        return total

    if neighbours == "add-remove":
        return {(home,): cost(home, None) for home in homes}
    return {(home, other): cost(home, other) for home in homes for other in homes}


def tree(releases: tuple[tuple[PerCell, int], ...]) -> Event:
    return Composed(tuple(Repeated(event, times) for event, times in releases))


# What a person spends
# --------------------------------------------------------------------------------------------------


@both
@every_release
def test_the_price_is_that_of_the_worst_enumerated_pair(name: str, neighbours: str) -> None:
    releases = RELEASES[name]
    worst = max(squares(releases, neighbours).values())
    assert leaves.inventory(tree(releases), neighbours).gaussian == pytest.approx(worst, rel=1e-12)
    found = epsilon(tree(releases), DELTA, neighbours)
    assert found == pytest.approx(gaussian_epsilon(math.sqrt(worst), DELTA), rel=1e-9)


@pytest.mark.parametrize("crossing", [0, 1, -1])
def test_a_crossing_is_the_farthest_that_contributions_of_its_kind_can_move(crossing: int) -> None:
    """Contributions of norm c_k to one sum, or to cells of their own, with one noise: the largest
    distance found."""
    norms, deviation = np.array([1.0, 0.4, 2.5]), 5.0
    event = PerCell((tuple(deviation / norms),), (0.0,), (crossing,))
    angles = np.linspace(0, 2 * np.pi, 73)
    ways = np.stack([np.cos(angles), np.sin(angles)])
    for k, other in itertools.permutations(range(3), 2):
        here, there = (
            norms[k] * ways[:, :1],
            norms[other] * (ways[:, :1] if crossing == -1 else ways),
        )
        if crossing == 0:
            farthest = (here**2).sum() + (there**2).sum(axis=0).max()
        else:
            farthest = ((here - there) ** 2).sum(axis=0).max()
        pair = PerCell(
            ((event.multipliers[0][k], event.multipliers[0][other]),), (0.0,), event.crossings
        )
        assert leaves.inventory(pair, "replace-one").gaussian == pytest.approx(
            farthest / deviation**2, rel=1e-12
        )
    assert leaves.inventory(event, "add-remove").gaussian == pytest.approx((2.5 / 5.0) ** 2)


def test_on_one_batch_parts_are_one_persons_too() -> None:
    first, second = (event for event, _ in RELEASES["opposite"])
    batch = leaves.batch(
        PoissonSampled(0.1, Composed((first, second, Gaussian(10.0)))), "replace-one"
    )
    assert batch.replaced is not None
    assert batch.alone**2 == pytest.approx(4.0**-2 + 90.0**-2 + 0.01)
    assert batch.replaced**2 == pytest.approx(2 * (4.0**-2 + 90.0**-2) + 0.04)


# Files
# --------------------------------------------------------------------------------------------------


def test_what_older_files_lack_is_filled_in_and_the_rest_is_kept() -> None:
    old = {"kind": "per-cell", "multipliers": [[2.0, 1.0]], "spreads": [2.0]}
    plain = PerCell(((2.0, 1.0),), (2.0,))
    assert from_dict(old) == plain
    assert plain.to_dict() == old
    assert PerCell(((2.0, 1.0),), (2.0,), (0,)) == plain
    for event in (GRADIENTS, CHANGED, SMALL, LOSSES):
        assert from_json_dict(to_json_dict(event)) == event
    assert SMALL.to_dict() == {
        "kind": "per-cell",
        "multipliers": [[8.0, 11.0]],
        "spreads": [1.5],
        "column": 1,
    }
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


# What a group's people spend
# --------------------------------------------------------------------------------------------


@both
@every_release
def test_a_groups_epsilon_is_that_of_its_worst_enumerated_pair(name: str, neighbours: str) -> None:
    releases = RELEASES[name]
    columns = list({event.column: None for event, _ in releases})
    pairs = squares(releases, neighbours)
    common = (Gaussian(12.0), Repeated(Gaussian(30.0), 4))
    for at, column in enumerate(columns):
        cells = next(event.cells for event, _ in releases if event.column == column)
        found = by_group([*common, tree(releases)], DELTA, neighbours, cells, column)
        for cell in range(cells):
            worst = max(square for (home, *_), square in pairs.items() if home[at] == cell)
            exact = gaussian_epsilon(math.sqrt(worst + 12.0**-2 + 4 * 30.0**-2), DELTA)
            assert found[cell] == pytest.approx(exact, rel=1e-9)
        everybody = epsilon([*common, tree(releases)], DELTA, neighbours)
        assert max(found) == pytest.approx(everybody, rel=1e-9)


def test_others_columns_and_widths_stay() -> None:
    wide = PerCell(((8.0, 9.0, 7.0, 6.0),), (1.0,))
    plan = Composed((GRADIENTS, SMALL, wide, Gaussian(4.0)))
    first, *rest = seen(plain(plan.to_dict()), 2, Cells(0, 3), "add-remove")[1]
    assert rest == [plain(one.to_dict()) for one in plan.events[1:]]
    assert first == ("gaussian", pytest.approx(7.0))
    whole = plain(plan.to_dict())
    assert seen(whole, 1, Cells(5, 3), "replace-one") == whole
    with pytest.raises(ValueError, match=r"one of \[3, 4\]"):
        by_group(plan, DELTA, "add-remove", 2)


SAMPLED: dict[str, tuple[str, Event]] = {
    "add-remove": ("add-remove", PoissonSampled(0.1, Composed((GRADIENTS, LOSSES, Gaussian(9.0))))),
    "replace-one": (
        "replace-one",
        PoissonSampled(0.1, Composed((GRADIENTS, LOSSES, Gaussian(9.0))), (2.0, 2.0, 1.0)),
    ),
    "visible": ("replace-one", VisiblySampled(0.1, Composed((GRADIENTS, LOSSES, Gaussian(9.0))))),
    "on parts": (
        "replace-one",
        Composed(tuple(OnPart(Composed((GRADIENTS, LOSSES)), part, 3) for part in range(3))),
    ),
    "selection": ("add-remove", PrivateSelection(Composed((GRADIENTS, LOSSES)), 3.0, 1.0)),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_inside_batches_parts_and_selections_a_group_spends_no_more_than_the_worst_and_no_less_than_its_own(
    name: str,
) -> None:
    """Below: a release of one pair of cells alone, which every group with that cell sees. Above:
    everybody's price."""
    neighbours, event = SAMPLED[name]
    found = by_group(Repeated(event, 5), DELTA, neighbours, 3)
    worst = epsilon(Repeated(event, 5), DELTA, neighbours)
    assert max(found) == pytest.approx(worst, rel=1e-3)
    assert all(one <= worst * (1 + 1e-3) for one in found)

    for cell in range(3):
        stays, moves = (
            only(event, (cell,), 1.0),
            [only(event, (cell, other), 0.0) for other in range(3) if other != cell],
        )
        pairs = [stays] if neighbours == "add-remove" else [stays, *moves]
        own = max(epsilon(Repeated(pair, 5), DELTA, neighbours) for pair in pairs)
        assert found[cell] >= own * (1 - 1e-3)
        if neighbours == "add-remove":
            assert found[cell] == pytest.approx(own, rel=1e-3)


def only(event: Event, cells: tuple[int, ...], spread: float) -> Event:
    """The event where there are these cells alone, and spreads are so many times as large."""
    if isinstance(event, PerCell):
        chosen = tuple(tuple(part[k] for k in cells) for part in event.multipliers)
        return PerCell(
            chosen, tuple(spread * s for s in event.spreads), event.crossings, event.column
        )
    if isinstance(event, Composed):
        return Composed(tuple(only(inner, cells, spread) for inner in event.events))
    return (
        dataclasses.replace(event, event=only(event.event, cells, spread))
        if hasattr(event, "event")
        else event
    )


def test_different_releases_on_different_parts_are_never_charged_too_little() -> None:
    """Two releases that look alike to a person for one other cell differ for the next: she is in
    either part."""
    one, two = PerCell(((9.0, 1.0, 9.0),), (0.0,)), PerCell(((9.0, 9.0, 1.0),), (0.0,))
    event = Composed((OnPart(one, 0, 2), OnPart(two, 1, 2)))
    found = by_group(event, DELTA, "replace-one", 3)
    exact = [gaussian_epsilon(math.sqrt(1 + 9.0**-2), DELTA)] * 3
    assert all(a >= b * (1 - 1e-12) for a, b in zip(found, exact, strict=True))


# Shares that were made of earlier answers
# -----------------------------------------------------------------------------

COIN = 0.1
"""Of a randomised response: stage one, of which the shares are made."""


def excess(chosen: Callable[[int], float], stated: Callable[[int], float], swap: bool) -> float:
    """sum over o of max(0, P - e^E Q): a response o1 whose loss is +-COIN, then a Gaussian of mu =
    chosen(o1); exactly."""
    likely = 1 / (1 + math.exp(-COIN))
    total = 0.0
    for o, chance, loss in ((1, likely, COIN), (0, 1 - likely, -COIN)):
        o = 1 - o if swap else o
        mu, left = chosen(o), stated(o) - loss
        total += chance * (gaussian_delta(left, mu) if mu > 0 else max(0.0, -math.expm1(left)))
    return total


def test_after_the_fact_the_stated_epsilon_holds_whatever_the_outcome_chose() -> None:
    """Every pair of budgets, chosen by the response, both ways; and the price of all events at
    delta does not hold."""
    mus = [0.0, 0.01, 0.1, 0.3, 1.0, 3.0]
    delta = 1e-3

    def run(mu: float) -> list[Event]:
        return [Pure(COIN), *([PerCell(((1 / mu, 1e3),), (2.0,))] if mu > 0 else [])]

    sound = {mu: by_group(run(mu), delta, "add-remove", 2, fixed=False)[0] for mu in mus}
    naive = {mu: epsilon(run(mu), delta) for mu in mus}
    worst = {"sound": 0.0, "naive": 0.0}
    for zero, one in itertools.product(mus, repeat=2):
        for swap in (False, True):
            for name, prices in (("sound", sound), ("naive", naive)):
                found = excess(
                    (zero, one).__getitem__, (prices[zero], prices[one]).__getitem__, swap
                )
                worst[name] = max(worst[name], found)
    assert worst["sound"] <= delta
    assert worst["naive"] > 1.3 * delta


def test_after_the_fact_is_common_and_own_at_half_of_delta_each() -> None:
    common = [Gaussian(9.0), Repeated(Laplace(30.0), 3)]
    events = [
        common[0],
        Repeated(Composed((GRADIENTS, Laplace(30.0))), 3),
        PoissonSampled(0.1, Composed((LOSSES, Gaussian(9.0)))),
    ]
    found = by_group(events, DELTA, "add-remove", 3, fixed=False)
    for cell in range(3):
        own = [Repeated(Gaussian(GRADIENTS.multipliers[0][cell]), 3)]
        own += [
            PoissonSampled(0.1, Composed((Gaussian(9.0), Gaussian(LOSSES.multipliers[0][cell]))))
        ]
        exact = epsilon(common, DELTA / 2) + epsilon(own, DELTA / 2)
        assert found[cell] == pytest.approx(exact, rel=1e-3)
        assert found[cell] > by_group(events, DELTA, "add-remove", 3)[cell]
    assert by_group([*events, NonPrivate()], DELTA, "add-remove", 3, fixed=False) == (math.inf,) * 3
