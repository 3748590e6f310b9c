"""Bounded sums over rows: what one row adds, how large that is at most, and its exact total in whole
steps of a dyadic grid.

Each question is one function that returns a `Sum`: its bound stands beside the arithmetic that it
bounds, so a reader checks both at once. Compiled loops touch features (`kernels`); all else is
NumPy on the few numbers of a row, in one fixed order, so totals repeat to the bit.

Guarantees (tests/core/test_sums.py; enumerated neighbours under every relation)
    1. No neighbour moves a total further than `bound.sensitivity(relation)`, and no row adds more
       than `bound.norm`; of a person with at most k rows: all of them together.
    2. With sensitive features alone protected the same holds of each part of `parts(runs)`, whose
       maxima run over the public rows and over all pairs of *listed* groups, observed or not.
    3. A sum whose `reads` has no "sensitive" is moved by no change of groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from . import checks
from .bound import OUTWARDS, Bound, of_gram, of_histogram, of_person, of_signed, on_grid
from .errors import PrivacyError, need
from .kernels import (
    TINY,
    Array,
    Floats,
    add_by_person,
    add_gradient,
    grams,
    scores_into,
    sigmoid_into,
    softmax_into,
)
from .layout import Cells, RowLayout
from .promise import Promise

GRID_BITS, EXACT_BITS = 30, 44
SLACK = 2.0**-52
ROUNDING = 2.0**-40  # of a probability: far above what a few operations lose
RUN = 1 << 14


@dataclass(frozen=True)
class Facts:
    """What bounds are made of: public constants alone. `layout`: numbers, sizes of coded features,
    classes and sensitive columns of the rows; `cap`: the largest weight of a row, None where each
    counts once."""

    layout: RowLayout
    promise: Promise
    cap: float | None = None

    def __post_init__(self) -> None:
        apart = self.promise.protects == "records" or not self.layout.sensitive_as_features
        expected = "features without the sensitive columns that are protected"
        fix = "Code the rows without them, or pass protects='records'."
        got = list(self.layout.sensitive_as_features)
        need(apart, expected, of="rows", got=got, fix=fix, error=PrivacyError)
        if self.cap is not None:
            fix = "The largest weight multiplies every sensitivity: cap it at 1.0, for example."
            checks.positive(max_sample_weight=self.cap, remedy=fix)

    @property
    def alone(self) -> bool:
        """Whether sensitive features alone are protected."""
        return self.promise.protects == "sensitive_features"

    @property
    def coordinates(self) -> int:
        """How many coordinates of a row, its intercept included, can differ from zero."""
        return 1 + self.layout.numbers + len(self.layout.code_sizes)


class Run:
    """Rows a to b of a block, with scores found once for all sums that ask about one model."""

    def __init__(self, block: Any, offsets: Array, a: int, b: int) -> None:
        self.block, self.a, self.n, self.width = block, a, b - a, 1 + block.layout.width
        self.features = block.arrays(offsets)
        self.labels = block.labels[a:b].astype(np.int64) if len(block.labels) else None
        self.weights: Any = block.weights[a:b] if len(block.weights) else np.ones(b - a)
        self._known: dict[Any, Any] = {}

    def cells(self, cells: Cells | None) -> Array:
        """The cells of each row, (cells a row, rows)."""
        lines: Array = self.block.cells(cells)[:, self.a : self.a + self.n].astype(np.int64)
        return lines

    def where(self, mask: Array) -> Run:
        """The same rows, of which only some count."""
        other = object.__new__(Run)
        other.__dict__.update(self.__dict__, weights=self.weights * mask)
        return other

    def scores(self, w: Floats) -> tuple[Floats, Floats]:
        """Scores (outputs, rows) and |row|^2."""
        if ("z", id(w)) not in self._known:
            z, s2 = np.empty((len(w), self.n)), np.empty(self.n)
            scores_into(*self.features, w, self.a, self.n, z, s2)
            self._known["z", id(w)] = z, s2, w  # kept, so that no other array has its id
        z, s2, _ = self._known["z", id(w)]
        return z, s2

    def soft(self, w: Floats, sharpness: float) -> Floats:
        """Probabilities (outputs, rows): of two classes the second's alone."""
        key = ("p", id(w), sharpness)
        if key not in self._known:
            z, _ = self.scores(w)
            p, (a, b, c, d) = np.empty_like(z), np.empty((4, self.n))
            if len(z) == 1:
                sigmoid_into(z[0], sharpness, p[0], a, b, self.n)
            else:
                softmax_into(z, sharpness, p, a, b, c, d, self.n)
            self._known[key] = p
        found: Floats = self._known[key]
        return found


@dataclass(frozen=True, eq=False)
class Sum:
    """`total(run, unit)` adds the rows of a run in steps of 1/unit; `bound`: how far one who is
    protected moves it, on the grid of 2^-exponent.

    `within`: how far a row moves its own cell, in units of the norm; `cells`: the disjoint cells of
    the first axis, if it is these; `slack`: how much of a norm may be rounding; `parts`: where rows
    are public, the sums that add up to this one, with the bounds that these rows have.
    """

    name: str
    shape: tuple[int, ...]
    reads: frozenset[str]
    bound: Bound
    exponent: int
    total: Callable[[Run, float], Array]
    within: float = 2.0
    slack: float = 0.0
    cells: Cells | None = None
    is_symmetric: bool = False
    parts: Callable[[Iterable[Run], int], Sequence[Sum]] | None = None

    @property
    def unit(self) -> float:
        """Steps of the grid in 1."""
        return math.ldexp(1.0, self.exponent)


def _gridded(one: Sum, most: int, coordinates: int, bits: int = GRID_BITS) -> Sum:
    """The sum on the grid on which one row's norm is below 2^bits steps; its bound is enlarged by
    the rounding, and is of a person with at most so many rows."""
    bound, exponent = one.bound, one.exponent
    if coordinates:
        exponent = bits - math.frexp(max(bound.norm, math.ldexp(1.0, -900)))[1]
        bound = on_grid(bound, math.ldexp(1.0, -exponent), coordinates)
    slack = (bound.diameter - one.bound.diameter) / bound.norm
    return replace(one, bound=of_person(bound, most), exponent=exponent, slack=slack)


def _weights(
    facts: Facts, w: object, clip: float | None = None, *, of_number: bool = False
) -> Floats:
    """A copy of a linear model's weights, which fits the rows: one line for two classes or a
    number, else one a class."""
    array: Floats = np.atleast_2d(np.array(w, np.float64, order="C"))
    classes = 1 if of_number else _classes(facts)
    shape = (1 if classes <= 2 else classes, 1 + facts.layout.width)
    good, fix = array.shape == shape and np.isfinite(array).all(), "The intercept comes first."
    need(good, f"finite weights of shape {shape}", of="weights", got=array.shape, fix=fix)
    if clip is not None:
        checks.positive(clip=clip)
    return array


def _classes(facts: Facts) -> int:
    classes, fix = facts.layout.classes or (), "Give classes to the rows."
    need(classes, "rows with class labels", of="rows", got="numbers, or none", fix=fix)
    return len(classes)


Values = Callable[[Run], Any]


def _histogram(
    facts: Facts,
    name: str,
    cells: Cells | None,
    by_label: bool,
    width: int,
    values: Values,
    reads: Iterable[str],
    *,
    whole: bool,
    limit: float = 1.0,
    lone: bool = False,
    coordinates: int = 1,
) -> Sum:
    """A row adds `values(run)` (width, rows), a point of a simplex of size `limit`, to its cells.
    `lone`: one number that only comes or goes."""
    per_row, count = (cells.per_row, cells.count) if cells is not None else (1, 1)
    labels = _classes(facts) if by_label else 1
    bound = of_histogram((facts.cap or 1.0) * limit, per_row)
    if lone and cells is None and not by_label:
        bound = Bound(bound.norm, bound.norm)
    shape = (count, *((labels,) if by_label else ()), width)

    def total(run: Run, unit: float) -> Array:
        out, v = np.zeros((count * labels, width), np.int64), values(run) * run.weights * unit
        v = np.where(np.isfinite(v), np.rint(v), 0.0).astype(np.int64)
        for line in run.cells(cells):
            np.add.at(out, line * labels + (run.labels if by_label else 0), v.T)
        return out.reshape(shape)

    read = set(reads) | ({"sensitive"} if cells is not None else set())
    read |= {"label"} if by_label else set()
    within = 1.0 if width == 1 and not by_label else math.sqrt(2)
    apart = cells if per_row == 1 else None
    one = Sum(name, shape, frozenset(read), bound, 0, total, within, cells=apart)
    exact = whole and facts.cap is None
    return _gridded(one, facts.promise.rows_per_unit, 0 if exact else per_row * coordinates)


def counts(facts: Facts, cells: Cells | None = None, by_label: bool = False) -> Sum:
    """How many rows each cell (and label) holds; of nothing told apart, how many there are."""

    def ones(run: Run) -> Floats:
        return np.ones((1, run.n))

    one = _histogram(facts, "cell counts", cells, by_label, 1, ones, (), whole=True, lone=True)
    one = replace(one, shape=one.shape[:-1], total=partial(_squeezed, one.total))
    if cells is None and not by_label and facts.cap is None and facts.promise.rows_per_unit == 1:
        return replace(one, bound=Bound(1.0, 0.0))  # a replaced row counts as another does
    return one


def _squeezed(total: Callable[[Run, float], Array], run: Run, unit: float) -> Array:
    return total(run, unit)[..., 0]


def decisions(
    facts: Facts,
    w: object,
    cells: Cells | None = None,
    by_label: bool = False,
    kind: str = "hard",
    sharpness: float = 1.0,
) -> Sum:
    """How a model's predictions fall in each cell (and label): the predicted class, or ("soft")
    softmax(sharpness x score). Two classes have one output, the second's."""
    weights = _weights(facts, w)
    outputs = len(weights)
    hard = checks.one_of(("hard", "soft"), decisions=kind) == "hard"
    checks.positive(sharpness=sharpness)

    def values(run: Run) -> Any:
        if not hard:
            return run.soft(weights, sharpness)
        z, _ = run.scores(weights)
        # Of equal scores the first is the largest; 0 decides for the first class.
        return (z > 0) * 1.0 if outputs == 1 else (z.argmax(0) == np.arange(outputs)[:, None]) * 1.0

    head = (facts, "prediction histogram", cells, by_label, outputs, values, ("features",))
    return _histogram(*head, whole=hard, lone=outputs == 1, coordinates=outputs)


def score_bins(
    facts: Facts,
    w: object,
    edges: Sequence[float],
    cells: Cells | None = None,
    by_label: bool = False,
) -> Sum:
    """How many scores of each cell (and label) fall between rising edges."""
    weights, places = _weights(facts, w), np.arange(1 + len(edges))[:, None]
    edges = tuple(edges)
    rising = len(weights) == 1 and len(edges) > 0 and np.all(np.diff(edges) > 0)
    need(rising, "one score, and rising edges", of="edges", got=edges, fix="Pass (-1.0, 0.0).")

    def values(run: Run) -> Any:
        z = run.scores(weights)[0][0]
        above = np.where(np.isnan(z), 0, np.searchsorted(edges, z))
        return (above == places) * 1.0

    head = (facts, "score histogram", cells, by_label, len(places), values, ("features",))
    return _histogram(*head, whole=True)


def losses(
    facts: Facts, w: object, cells: Cells | None = None, loss: str = "zero-one", clip: float = 1.0
) -> Sum:
    """The sum of losses of one score, each cut at `clip`, in each cell."""
    wrong = checks.one_of(("zero-one", "squared"), loss=loss) == "zero-one"
    weights = _weights(facts, w, clip, of_number=not wrong)
    need(len(weights) == 1, "one score", of="weights", got=weights.shape, fix="Ask a score each.")

    def values(run: Run) -> Any:
        z = run.scores(weights)[0][0]
        raw = ((z > 0) != (run.labels == 1)) * 1.0 if wrong else (z - run.labels) ** 2
        return np.where(raw < clip, raw, clip)[None]

    limit, reads = (min(1.0, clip) if wrong else clip), ("features", "label")
    head = (facts, "group losses", cells, False, 1, values, reads)
    one = _histogram(*head, whole=wrong and clip >= 1.0, limit=limit, lone=True)
    return replace(one, shape=one.shape[:1], total=partial(_squeezed, one.total))


def gradient(
    facts: Facts,
    w: object,
    clip: float | None,
    cells: Cells | None = None,
    costs: Any = None,
    loss: str = "log",
    pull: float = 1.0,
    sharpness: float = 1.0,
    loss_clip: float | None = None,
) -> Sum:
    """Gradients of pull x loss + sum_k costs[cell, label, k] softmax(sharpness x score)_k, each row's
    clipped to norm `clip`: a linear model's gradient in one row is residual x row, so its norm is
    |residual| |row|, and no gradient of a row is ever built.

    Where rows are public (`parts`) the clip is of the part that reads groups alone: the loss is
    exact there, and clipped to `loss_clip`, if at all.
    """
    weights, alone = _weights(facts, w, clip, of_number=loss == "squared"), facts.alone
    checks.positive(sharpness=sharpness)  # where rows are public the bound is a product with it
    checks.non_negative(pull=pull)
    outputs, labels = len(weights), 1 if costs is None else costs.shape[1]
    checks.one_of(("log", "squared", "none"), loss=loss)
    something = loss != "none" or costs is not None
    need(something, "a loss, or costs", of="gradient", got="neither", fix="Pass loss='log'.")
    apart = loss != "squared" or costs is None
    need(apart, "costs of classes, or a number's loss", of="gradient", got="both", fix="Ask twice.")
    by_person, fix = facts.promise.rows_per_unit > 1, "Protect records, or rows."
    good = not (by_person and alone)
    need(good, "rows", of="promise", got=facts.promise, fix=fix, error=PrivacyError)
    table: Any = None
    if costs is not None:
        fits = (cells.count if cells is not None else 1, labels, max(2, outputs))
        good = costs.shape == fits and labels in (1, fits[2]) and np.isfinite(costs).all()
        need(good, f"finite costs {fits}", of="costs", got=costs.shape, fix="One a cell.")
        table = costs[..., 1:] - costs[..., :1] if outputs == 1 else np.array(costs, np.float64)

    def total(run: Run, unit: float) -> Array:
        z, s2 = run.scores(weights)
        u = np.zeros_like(z)
        if loss == "log":
            wanted = np.ones((1, 1)) if outputs == 1 else np.arange(outputs)[:, None]
            u = pull * (run.soft(weights, 1.0) - (run.labels == wanted))
        elif loss == "squared":
            u = pull * (z - np.asarray(run.labels))
        if table is not None:
            p = run.soft(weights, sharpness)
            for line in run.cells(cells):
                at = line * labels + (run.labels if labels > 1 else 0)
                c = table.reshape(-1, outputs).take(at, 0).T
                if outputs == 1:
                    u = u + p * (1.0 - p) * sharpness * c
                else:  # a cost that all classes share moves nothing
                    mean = np.zeros(run.n)
                    for k in range(outputs):
                        mean = mean + p[k] * c[k]
                    u = u + p * (c - mean) * sharpness
        # After all that depends on the row: weights of rows alone are outside of the clip.
        r = _clipped(u, s2, math.inf if clip is None else clip, run.weights) * unit
        out = np.zeros((outputs, run.width), np.int64)
        if by_person:
            limit = (clip or 0.0) * (facts.cap or 1.0) * unit
            add_by_person(*run.features, r, run.block.persons, run.a, run.n, limit, out)
        else:
            add_gradient(*run.features, r, run.a, run.n, np.empty(run.n), out)
        return out

    reads = {"features"} | ({"label"} if loss != "none" or labels > 1 else set())
    reads |= {"sensitive"} if costs is not None and cells is not None else set()
    coordinates, parts = outputs * facts.coordinates, None
    if alone:
        fine, fix = outputs == 1 and loss != "squared", "Protect records, or ask of two classes."
        need(fine, "log loss of one score", of="public rows", got=(loss, outputs), fix=fix)
        made = partial(gradient, facts, weights)
        rest = partial(made, clip, cells, costs, "none", sharpness=sharpness)
        exact = None if loss == "none" else partial(made, loss_clip, loss=loss, pull=pull)
        read = (facts, weights, clip, cells, table, sharpness)
        parts = partial(_public, *read, rest, exact, pull, loss_clip)
    else:
        checks.positive(clip=clip, remedy="Pass clip=1.0: a public choice, never read from rows.")
    bound = of_signed(_limit(facts, clip or 1.0), facts.cap or 1.0)
    shape = (outputs, 1 + facts.layout.width)
    if by_person:  # her rows are added, and once more clipped to the norm of one (theory.md#units)
        coordinates = math.prod(shape)
        limit = (clip or 0.0) * (facts.cap or 1.0) * (1.0 + (coordinates + 64) * SLACK)
        bound = of_signed(limit)
    one = Sum("gradient sum", shape, frozenset(reads), bound, 0, total, parts=parts)
    return _gridded(one, 1, coordinates)


def _limit(facts: Facts, clip: float) -> float:
    """The clip, and what rounding of |row| and of the products may add to it, far above."""
    return clip * (1.0 + (facts.layout.width + 32) * SLACK)


def _clipped(u: Floats, s2: Floats, clip: float, weights: Floats) -> Floats:
    """Weights times residuals u (outputs, rows) such that no |u| |row| is above the clip; zero where
    not finite."""
    if clip == math.inf:
        return np.where(np.isfinite(u * weights), u * weights, 0.0)
    limit = clip / np.sqrt(s2)
    if len(u) == 1:
        r = np.where(u > limit, limit, u)
        r = np.where(r < -limit, -limit, r) * weights
    else:
        total = np.zeros(u.shape[1])
        for k in range(len(u)):
            total = total + u[k] * u[k]
        size = np.sqrt(total)
        cut = np.where(size < TINY, 0.0, np.where(size <= limit, 1.0, limit / size))
        r = u * (cut * weights)
    return np.where(np.isfinite(r), r, 0.0)


def _public(
    facts: Facts,
    w: Floats,
    clip: float | None,
    cells: Cells | None,
    table: Any,
    sharpness: float,
    rest: Callable[[], Sum],
    exact: Callable[[], Sum] | None,
    pull: float,
    loss_clip: float | None,
    runs: Iterable[Run],
    rows: int,
) -> Sequence[Sum]:
    """A gradient where rows are public: the part by groups, bounded by the largest change over these
    rows and all pairs of listed cells (theory.md#public), and the exact part, which no group moves.

    Never over the row's own cell: even the grid must not depend on a sensitive value.
    """
    norm = move = longest = 0.0
    labels = 1 if table is None else table.shape[1]
    if table is not None:
        count = 1 if cells is None else cells.count
        sizes = (count,) if cells is None or cells.mode == "product" else cells.sizes
        columns = [table[a:b, :, 0] for a, b in pairwise((0, *accumulate(sizes)))]
        reach = sum(np.abs(c).max(0) for c in columns)
        span = sum(np.ptp(c, axis=0) for c in columns)
        largest = sharpness * float(np.abs(table).max()) * len(columns)
    for run in runs:
        s2, row = run.scores(w)[1], run.weights
        row = np.sqrt(s2) * row
        longest = max(longest, float(row.max(initial=0.0)))
        if table is not None:
            p, label = run.soft(w, sharpness)[0], run.labels if labels > 1 else 0
            gain, slack = sharpness * p * (1.0 - p), ROUNDING * (pull + largest)
            norm = max(norm, float(((gain * reach[label] + slack) * row).max(initial=0.0)))
            move = max(move, float(((gain * span[label] + slack) * row).max(initial=0.0)))
    out: list[Sum] = []
    if table is not None:
        out.append(_bounded(facts, rest(), norm, move, clip, GRID_BITS))
    if exact is not None:
        bits = min(EXACT_BITS, 62 - rows.bit_length())
        out.append(_bounded(facts, exact(), pull * longest, 0.0, loss_clip, bits))
    return out


def _bounded(
    facts: Facts, one: Sum, norm: float, move: float, clip: float | None, bits: int
) -> Sum:
    """The sum with the bound that was found, which no clip exceeds: a projection expands nothing."""
    if clip is not None:
        limit = _limit(facts, clip) * (facts.cap or 1.0)
        norm, move = min(norm, limit), min(move, 2.0 * limit)
    finite, fix = math.isfinite(norm + move), "Scale the features, or pass a clip."
    need(finite, "rows whose contributions are finite", of=one.name, got="others", fix=fix)
    bound = Bound(norm * OUTWARDS, move * OUTWARDS)
    return _gridded(replace(one, bound=bound, parts=None), 1, facts.coordinates, bits)


def gram_matrices(
    facts: Facts, clip: float, cells: Cells | None = None, with_target: bool = False
) -> Sum:
    """The sum of r r' in each cell, r = (1, features[, target]) clipped to norm `clip`
    (theory.md#gram). Noise is symmetric too: variance s^2 on the diagonal and s^2/2 beside it."""
    width, longest = 1 + facts.layout.width + with_target, facts.coordinates
    radius = checks.positive(clip=clip) * (1.0 + (facts.layout.width + longest + 32) * SLACK)
    per_row, count = (cells.per_row, cells.count) if cells is not None else (1, 1)

    def total(run: Run, unit: float) -> Array:
        out = np.zeros((count, width, width), np.int64)
        lines = run.block.cells(cells)[:, run.a : run.a + run.n]
        end = (longest, with_target, clip, unit, out)
        grams(*run.features, run.labels, lines, run.weights, run.a, run.n, *end)
        out += np.triu(out, 1).swapaxes(-1, -2)
        return out

    reads = {"features"} | ({"sensitive"} if cells is not None else set())
    reads |= {"label"} if with_target else set()
    bound = of_gram(radius, facts.cap or 1.0, per_row)
    head = ("gram matrices", (count, width, width), frozenset(reads), bound, 0, total)
    one = Sum(*head, math.sqrt(2), cells=cells if per_row == 1 else None, is_symmetric=True)
    return _gridded(one, facts.promise.rows_per_unit, per_row * (longest + with_target) ** 2)


def told_apart(facts: Facts, inner: Sum, cells: Cells) -> Sum:
    """The inner total of each cell's rows, for noise that differs by cell: a row that changes cell
    moves two of them (theory.md#cells)."""
    good = cells.per_row == 1 and "sensitive" not in inner.reads and inner.parts is None
    fix = "Ask once a sensitive column, of a sum that reads none and has a bound of its own."
    need(good, "cells that do not overlap, and a sum without", of="cells", got=cells, fix=fix)
    one, fix = facts.promise.rows_per_unit == 1, "A person may be in several cells: protect rows."
    need(one, "rows", of="promise", got=facts.promise, fix=fix, error=PrivacyError)

    def total(run: Run, unit: float) -> Array:
        line = run.cells(cells)[0]
        return np.stack([inner.total(run.where(line == k), unit) for k in range(cells.count)])

    norm, moved = inner.bound.norm, 0.0
    if cells.count > 1:
        moved = math.sqrt(2) * norm * OUTWARDS
    bound = Bound(norm, moved if facts.alone else max(inner.bound.diameter, moved))
    reads = inner.reads | ({"sensitive"} if cells.count > 1 else set())
    again = replace(inner, reads=reads, bound=bound, total=total, cells=cells)
    return replace(again, name="sums told apart by cell", shape=(cells.count, *inner.shape))
