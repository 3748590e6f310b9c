"""Sums distinguished by cell, or weighed by cell after the clip: questions around a question, for
budgets that differ by group.

`ByCell(inner, cells)` answers with the inner total of each cell's rows. A person is in one cell,
and noise may differ by cell: she spends what her cell spends (theory.md#cells).
`Weighed(inner, cells, factors)` answers with one sum, in which a row's contribution counts
factors[cell] times *after* it was clipped: the noise is one, and a person of cell k spends in
proportion to factors[k]^2.

With c the largest norm of a row's contribution to the inner total, and w how far one row moves
that, in units of c (2 for signed vectors, sqrt 2 for Gram matrices: `within`), the totals move by
at most

                            ByCell                  Weighed, f = factors
    add-remove              c                       max f c
    replace-one             w c (across: sqrt 2 c)  w max f c (across: (f_k + f_l) c, Grams
    hypot(f_k, f_l) c) sensitive features only sqrt 2 c                (max f - min f) c, over the
    listed cells; free where all are equal

The grid rounds a contribution by up to half a step in each coordinate however small its factor is.
So `sizes_of`, the factors over the largest, count every positive one as larger by that; with
sensitive features alone protected each different one by as much again, that differences are
counted, too. Sizes are public constants, and both the noise and the event are made of them.

Guarantees (tests/curator/test_curator_tailored.py)
    1. No neighbour moves a total further than its bound, under every relation: enumerated.
    2. No pair of neighbours is further apart, in units of the noise, than the event says of their
       cells; the event of a weighed sum costs at its worst what its multiplier says, 1/z^2.
    3. Totals are whole numbers of grid steps, exact in any order of rows; a cell's is the inner
       total of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .bound import OUTWARDS, Bound
from .errors import PrivacyError, need
from .events import LARGEST
from .kernels import Array, Floats
from .layout import Cells
from .questions import (
    SENSITIVE,
    Facts,
    Kind,
    Question,
    Scale,
    Sum,
    floats_of,
    require_question,
)
from .sums import GRID_BITS, Run, totals_of

LEAST_NORM = math.ldexp(1.0, -900)  # what the grid takes a smaller norm for
MOST_KEPT = 1 << 29  # bytes of a block whose rows are kept in the order of cells: of speed only


def _inside(facts: Facts, inner: Question, cells: Cells) -> Sum:
    """The sum inside, if it is one that these proofs are about."""
    one = require_question(inner).sum(facts)
    good = one.models == 1 and not inner.many and SENSITIVE not in one.reads
    words = "a sum of one model, without cells, costs or weights by cell"
    fix = "The question around it has the cells: leave them out of the inner one."
    need(good and one.cells is None, words, of="inner", got=inner.name, fix=fix)
    apart: object = cells
    disjoint = isinstance(apart, Cells) and apart.per_row == 1
    fix = "Ask once a sensitive column, rows.cells(names=[column]), or use product cells."
    need(disjoint, "cells that do not overlap", of="cells", got=cells, fix=fix)
    whole, fix = facts.promise.rows_per_unit == 1 or facts.one_group, "Count them in one group."
    got = "rows in any groups"
    need(whole, "persons in one group each", of="cells", got=got, fix=fix, error=PrivacyError)
    return one


# -- told apart ------------------------------------------------------------------------------------


def told_apart(facts: Facts, inner: Question, cells: Cells) -> Sum:
    """The inner total of each cell's rows: shape (cells, *shape of the inner answer).

    `inner`: a question of one model, without cells, costs or weights by cell. `cells`: disjoint
    ones; with several sensitive columns ask once a column (`rows.cells(names=[one])`), or about
    product cells. A measurement may have one multiplier a cell: the noise in cell k is then m_k x
    the largest norm of one row's contribution.
    """
    one, count = _inside(facts, inner, cells), cells.count

    def total(run: Run, units: Any) -> Array:
        block, cuts = _in_order(run, cells)
        out = np.zeros((1, count, *one.shape), np.int64)
        for k in range(count):
            if cuts[k] < cuts[k + 1]:
                part = Run(block, run.offsets, int(cuts[k]), int(cuts[k + 1]))
                (out[:, k],) = totals_of([one], [units], part)
        return out

    bound = one.limits
    if bound is not None and facts.promise.is_private:
        bound = across(one.scale, cells, alone=facts.alone).bound
    reads = one.reads | ({SENSITIVE} if count > 1 else set())
    again = replace(one, reads=reads, limits=bound, total=total, cells=cells, fused=None)
    again = replace(again, maxima=None, longest=None)
    return replace(again, name="sums told apart by cell", shape=(count, *one.shape))


def across(scale: Scale, cells: Cells, *, alone: bool) -> Scale:
    """The scale of sums told apart, from the inner one: a row that changes cell moves two of them.
    `alone`: cells alone may change; the contribution is then the same in both."""
    bound = scale.bound
    moved = math.sqrt(2) * bound.norm * OUTWARDS if cells.count > 1 else 0.0
    diameter = moved if alone else max(bound.diameter, moved)
    return Scale(Bound(bound.norm, diameter, bound.order), scale.exponent, scale.slack)


def _in_order(run: Run, cells: Cells) -> tuple[Any, Array]:
    """The rows of a run with those of one cell beside each other, and where each cell begins. Kept
    with their block where that is small enough."""
    key, known = (cells, run.a, run.n), run.block.in_order
    if key not in known:
        line = run.cells(cells)[0]
        # Stable, so that the rows of one person, who is in one cell, stay together.
        taken = run.block.take(run.a + np.argsort(line, kind="stable"))
        ends = np.cumsum(np.bincount(line, minlength=cells.count))
        found = taken, np.concatenate([np.zeros(1, np.int64), ends])
        if run.block.is_mapped or run.block.size > MOST_KEPT:
            return found
        known[key] = found
    ordered: tuple[Any, Array] = known[key]
    return ordered


# -- weighed ---------------------------------------------------------------------------------------


def weighed(facts: Facts, inner: Question, cells: Cells, factors: Any) -> Sum:
    """The sum over rows of factors[cell] x the inner question's clipped contribution: the shape of
    the inner answer.

    `inner` and `cells` as for `told_apart`. `factors`: (cells,) numbers of at least 0, not all 0,
    public or released. They multiply after the clip, as sample weights do; `cell_weights` of a
    gradient weigh the loss before it. A measurement has one multiplier, and its event says what the
    people of each cell spend. Cells with factor 0 spend nothing.
    """
    # the bound is that of a row whose weight has the largest factor in it; arithmetic clips before
    plain = _inside(facts, inner, cells)
    factors = checked_factors(factors, cells)
    one = inner.sum(replace(facts, cap=cap_of(factors, facts.cap)))
    sizes = sizes_of(one, factors, alone=facts.alone)
    bound = one.limits
    if bound is not None and facts.promise.is_private:
        bound = weighing(one, one.scale, sizes, alone=facts.alone).bound
    total = weighed_total(plain, cells, factors)
    reads = one.reads | ({SENSITIVE} if np.ptp(factors) > 0 else set())
    again = replace(one, name="sums weighed by cell", reads=reads, total=total, sizes=sizes)
    again = replace(again, fused=None, maxima=None, longest=None)
    # what becomes of a person who is another in another cell: Grams are positive semi-definite
    again = replace(again, crossing=0 if one.is_symmetric else 1)
    return replace(again, limits=bound)


def weighed_total(one: Sum, cells: Cells, factors: Floats) -> Callable[[Run, Any], Array]:
    """The total of rows, each with its factor times the weight that it has."""
    known: list[tuple[Any, Any]] = []

    def total(run: Run, units: Any) -> Array:
        found = next((other for block, other in known[-1:] if block is run.block), None)
        if found is None:
            by = np.asarray(factors.take(run.block.cells(cells)[0]))
            own = by * run.block.weights if len(run.block.weights) else by
            found = run.block.weighed(own, by)
            known[:] = [(run.block, found)]
        (out,) = totals_of([one], [units], Run(found, run.offsets, run.a, run.a + run.n))
        return out

    return total


def checked_factors(given: Any, cells: Cells) -> Floats:
    """Factors (cells,) of at least 0, not all 0."""
    factors = floats_of(given)
    fits = factors.shape == (cells.count,)
    right = fits and np.isfinite(factors).all() and (factors >= 0).all() and (factors > 0).any()
    words = "finite numbers of at least 0, one a cell, not all of them 0"
    fix = "Factors are public or released numbers; a sum with signs is two questions."
    got = "negative or infinite ones, or zeros" if fits else factors.shape
    need(right, words, of="factors", got=got, fix=fix)
    return factors


def cap_of(factors: Any, cap: float | None) -> float:
    """The largest weight of a row, its factor included."""
    return float((cap or 1.0) * np.max(factors) * OUTWARDS)


def sizes_of(one: Sum, factors: Any, *, alone: bool) -> Floats:
    """Of each cell, the largest contribution over the largest of all cells, counted up for the
    grid.

    `alone`: cells alone may change, so that differences count. They are then from the smallest
    listed factor on.
    """
    factors = np.asarray(factors, np.float64)
    largest, step = float(factors.max()), one.rounding
    if step is None:  # more than what the grid adds to a difference, relative to a row's norm
        step = math.sqrt(one.coordinates) * math.ldexp(1.01, 1 - GRID_BITS)
    if not alone:
        return np.asarray(factors / largest + step * (factors > 0))
    different, rank = np.unique(factors, return_inverse=True)
    return np.asarray((factors - different[0]) / largest + step * rank)


def weighing(one: Sum, scale: Scale, sizes: Floats, *, alone: bool) -> Scale:
    """The scale, from that of a row in the cell whose factor is the largest."""
    norm, largest = max(scale.bound.norm, LEAST_NORM), float(sizes.max())
    moved = Bound(norm, norm * largest)
    if not alone:
        moved = Bound(norm * largest, one.within * norm * largest)
    return Scale(moved, scale.exponent, scale.slack)


def multipliers_of(
    one: Sum, multiplier: float, *, alone: bool, hidden: bool, added: bool
) -> tuple[float, ...]:
    """Of a weighed sum, the noise over the largest contribution of each cell, from the noise over
    the sensitivity.

    `hidden`: over the largest norm of one row, of a secret batch. `added`: under add-remove, where
    these are the same.
    """
    assert one.sizes is not None
    moved = 1.0 if alone or hidden or added else one.within
    with np.errstate(divide="ignore", over="ignore"):
        found = np.minimum(multiplier * moved * (one.sizes.max() / one.sizes), LARGEST)
    return tuple(found.tolist())


def _why(question: Question) -> str:
    return question.innermost.why


def _reads_apart(question: Question) -> frozenset[str]:
    return question.innermost.reads | ({SENSITIVE} if question.cells.count > 1 else frozenset())


def _reads_weighed(question: Question) -> frozenset[str]:
    differ = np.ptp(np.asarray(question.factors)) > 0
    return question.innermost.reads | ({SENSITIVE} if differ else frozenset())


ByCell = Kind("sums told apart by cell", told_apart, _why, reads=_reads_apart)
Weighed = Kind(
    "sums weighed by cell",
    weighed,
    _why,
    reads=_reads_weighed,
    by_value=["factors"],
    apart=False,
)
