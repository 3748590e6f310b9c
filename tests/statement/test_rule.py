"""The rule of recomputation: the guarantees of statement/rule.py.

Closed forms are held against the accountant, which has other code for them, and what has none
against the second program, on every vector (`test_vectors.py`).
"""

from __future__ import annotations

import math

import pytest

from fairveil.core.cost import KINDS, price
from fairveil.core.events import (
    Approximate,
    Composed,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    OnPart,
    PerCell,
    PoissonSampled,
    Pure,
    Repeated,
    VisiblySampled,
)
from fairveil.privacy import Filter, Promise, price_after
from fairveil.statement import rule
from fairveil.statement.form import event as plain
from fairveil.statement.rule import Unpriced

CELLS = PerCell(((4.0, 8.0, 9.0),), (2.0,), (1,))
CLOSED: dict[str, tuple[list[Event], float]] = {
    "one far Gaussian": ([Gaussian(1e-3)], 1e-6),
    "one near Gaussian": ([Gaussian(1e4)], 1e-9),
    "Gaussians": ([Gaussian(5.0)] * 10, 1e-6),
    "cells": ([CELLS, PerCell(((9.0, 8.0, 9.0),), (2.0,))], 1e-6),
    "cells of two columns": ([CELLS, Repeated(PerCell(((9.0, 8.0),), (2.0,), (), 1), 3)], 1e-6),
    "pure": (
        [Repeated(DiscreteLaplace(4.0, 3), 3), Exponential(0.5), Laplace(2.0), Pure(0.1)],
        0.0,
    ),
    "a leak": ([Approximate(0.3, 1e-7), Pure(0.1)], 0.0),
    "nothing": ([], 1e-6),
}
REPLACED: dict[str, tuple[list[Event], float]] = {
    "parts": (
        [*(OnPart(Gaussian(3.0), k, 4) for k in (0, 1, 1, 2)), OnPart(Gaussian(4.0), 1, 5)],
        1e-6,
    ),
    "pure parts": ([OnPart(DiscreteLaplace(3.0), part, 4) for part in range(4)], 0.0),
    "a whole batch": ([VisiblySampled(1.0, Gaussian(3.0))], 1e-6),
}
GIVEN = [
    *((name, "add-remove") for name in CLOSED),
    *((name, "replace-one") for name in (*CLOSED, *REPLACED)),
]


@pytest.mark.parametrize(("name", "neighbours"), GIVEN)
def test_guarantee_2_a_closed_form_is_the_accountants_price(name: str, neighbours: str) -> None:
    events, delta = {**CLOSED, **REPLACED}[name]
    whole = Composed(tuple(events))
    found, on_a_grid = rule.price(plain(whole.to_dict()), delta, neighbours)
    stated = price(events, delta, neighbours).epsilon
    assert not on_a_grid
    assert stated * (1 - 1e-12) <= found <= stated * (1 + 1e-9) or found == stated


@pytest.mark.parametrize("after", [[Gaussian(9.0), Gaussian(7.0)], [DiscreteLaplace(2.0)]])
@pytest.mark.parametrize("before", [[Gaussian(8.0)], [Gaussian(8.0), Approximate(0.1, 1e-8)]])
def test_two_steps_cost_what_the_library_says(before: list[Event], after: list[Event]) -> None:
    log = Composed((*before, Composed(tuple(after[-1:]))))
    found, _ = rule.two_steps(plain(log.to_dict()), 1e-6, "add-remove")
    assert found == pytest.approx(price_after(before, after[-1:], 1e-6).epsilon, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_admits_what_the_librarys_admits_and_leaks_no_more_than_was_kept(
    kind: str,
) -> None:
    promise = Promise(1.0, 1e-6)
    cap = Filter.create(promise, kind)
    terms = {"kind": kind, "order": cap.order, "reserve": cap.reserve}
    within = promise.delta if kind == "pure" else promise.delta * cap.reserve
    admitted = []
    for events in (
        [Pure(0.4)] * 2,
        [Pure(0.4)] * 3,
        [Gaussian(6.0)],
        [Gaussian(4.0)],
        [Approximate(0.1, within * 0.9)],
        [Approximate(0.1, within * 0.9)] * 2,
    ):
        log = plain(Composed(tuple(events)).to_dict())
        said = rule.Said(log, None, terms, 1.0, 1.0, promise.delta, promise.neighbours)
        found = rule.charge(said)[0] == promise.epsilon
        assert found == cap.fits(events)
        admitted.append(found)
    assert admitted[4:] == [True, False]


def test_guarantee_3_what_is_too_large_ends() -> None:
    cells = PerCell((tuple(float(k + 1) for k in range(5000)),), (2.0,), (1,))
    for wide in (cells, PoissonSampled(0.5, cells)):
        with pytest.raises(Unpriced):
            rule.price(plain(wide.to_dict()), 1e-6, "replace-one")
    alternating = (PerCell(((9.0,) * 64,), (2.0,)), PerCell(((8.0,) * 64,), (2.0,)))
    in_turn = plain(Composed(alternating * 2000).to_dict())
    assert rule.price(in_turn, 1e-6, "replace-one")[0] < 1e6
    many = Composed(tuple(Pure(0.001 * (k + 1)) for k in range(1001)))
    with pytest.raises(Unpriced):
        rule.price(plain(many.to_dict()), 1e-6, "add-remove")
    often = Repeated(PoissonSampled(0.5, Gaussian(1.0)), 2**50)
    assert rule.price(plain(often.to_dict()), 1e-6, "add-remove")[0] == math.inf
    endless = Repeated(Repeated(Pure(0.1), 2**60), 2**60)
    assert rule.price(plain(endless.to_dict()), 1e-6, "add-remove")[0] == pytest.approx(
        0.1 * 2**120
    )
    both = Composed((endless, Gaussian(1.0)))
    assert rule.price(plain(both.to_dict()), 1e-6, "add-remove") == (math.inf, False)
    assert rule.price(plain(NonPrivate().to_dict()), 1e-6, "add-remove")[0] == math.inf
