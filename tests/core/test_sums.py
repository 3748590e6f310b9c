"""Every bounded sum against enumerated rows: nobody moves it further than its bound, under every
relation, and it is the sum of what rows add."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from covering import pairs
from fairveil.core import by_cell, sums
from fairveil.core.by_cell import ByCell, Weighed
from fairveil.core.errors import FairveilError, InputError, PrivacyError
from fairveil.core.promise import Promise, Unit
from fairveil.core.questions import Facts, Kind, Linear, Question, Sum
from fairveil.core.rows import Block
from fairveil.core.sums import Run
from fairveil.facts import Cells, RowLayout

LAYOUT_GROUPS = (((0, 1, 2), (0, 1)), ("g", "h"))
LAYOUT = RowLayout(2, (2,), (0, 1), *LAYOUT_GROUPS)
PRODUCT, MARGINAL = (
    Cells(LAYOUT.sensitive, names=("g", "h")),
    Cells(LAYOUT.sensitive, "marginal", ("g", "h")),
)
ONE = Cells(LAYOUT.sensitive[:1], names=("g",))
CAP = 1.5
W = np.array([[0.3, -1.2, 0.8, 0.5, -0.4]])
OFFSETS = np.array([3])


EMPTY = np.empty(0, np.int32)


def few(rows: list[tuple[Any, ...]], weighted: bool) -> Block:
    """A block of some of the rows that there can be: numbers, a code, a label, two groups, a
    weight; all of one person, where persons count."""
    table = np.array(rows, np.float64).reshape(-1, 7).T
    numbers, codes = np.ascontiguousarray(table[:2]), table[2:3].astype(np.uint8)
    labels, groups = table[3].astype(np.int32), table[4:6].astype(np.uint16)
    weights = table[6].copy() if weighted else np.empty(0)
    block = Block(LAYOUT, len(rows), numbers, EMPTY, EMPTY, codes, labels, groups, weights)
    return replace(block, persons=np.zeros(len(rows), np.int64))


NUMBERS = [(0.0, 0.0), (1.0, -1.0), (-1.0, 1.0), (0.2, 0.1), (30.0, -40.0)]
ALL = [
    (*x, code, y, g, h, weight)
    for x in NUMBERS
    for code in (0, 1)
    for y in (0, 1)
    for g in (0, 1, 2)
    for h in (0, 1)
    for weight in (0.4, CAP)
]
COSTS = np.random.default_rng(5)


def gradients(facts: Facts, cells: Cells | None) -> Iterator[Question]:
    for clip, loss in itertools.product((0.5, 3.0), ("log", "squared", "none")):
        count = 1 if cells is None else cells.count
        costs = None if loss == "squared" else COSTS.normal(size=(count, 2, 2))
        if not (facts.alone and loss == "squared"):
            yield sums.GradientSum(Linear(W, 2.0), clip, cells, costs, loss, 0.8)


def public(asked: Question, facts: Facts) -> list[Sum]:
    """The parts of a gradient with the bounds of public rows: of all rows as they are, but in one
    group; what is listed counts, not what is there."""
    rows = ALL if facts.cap else [row for row in ALL if row[6] == CAP]
    table = few([(*row[:4], 0, 0, row[6]) for row in rows], facts.cap is not None)
    out: list[Sum] = []
    for part in sums.parted_question(asked) if "sensitive" in asked.reads else [asked]:
        one = part.sum(facts)
        assert one.maxima is not None
        far = one.maxima(Run(table, OFFSETS, 0, len(rows)))
        out += sums.public_scales(one, *far, len(rows), exact=False)
    return out


BUILDERS: dict[str, Callable[[Facts, Cells | None], list[Sum]]] = {
    "counts": lambda facts, cells: [
        sums.counts(facts, cells),
        sums.counts(facts, cells, True),
        sums.counts(facts),
    ],
    "decisions": lambda facts, cells: [
        sums.decisions(facts, W, cells, kind, label)
        for label in (False, True)
        for kind in ("hard", "soft")
    ],
    "score_bins": lambda facts, cells: [sums.score_bins(facts, W, (-1.0, 0.5), cells, True)],
    "losses": lambda facts, cells: [
        sums.losses(facts, W, cells),
        sums.losses(facts, W, cells, "squared", 0.7),
    ],
    "gradient": lambda facts, cells: [
        one
        for asked in gradients(facts, cells)
        for one in (public(asked, facts) if facts.alone else [asked.sum(facts)])
    ],
    "gram_matrices": lambda facts, cells: [
        sums.gram_matrices(facts, cells, 1.3, target) for target in (False, True)
    ],
    "feature_sums": lambda facts, cells: [
        sums.feature_sums(facts, cells, 1.3, label, basis)
        for label in (False, True)
        for basis in (None, np.array([[0.5, 1.0, -1.0, 0.2, 0.1], [0.0, 0.3, 1.0, 1.0, 0.0]]))
    ],
    "number_moments": lambda facts, cells: [sums.number_moments(facts, 1.1)],
    "told_apart": lambda facts, cells: (
        [ByCell(sums.GramMatrices(clip=1.3), cells).sum(facts)]
        if cells is not None and cells.per_row == 1
        else []
    ),
    "weighed": lambda facts, cells: (
        [
            Weighed(inner, cells, np.linspace(0.0, 2.0, cells.count) ** 2).sum(facts)
            for inner in (sums.GramMatrices(clip=1.3), sums.FeatureSums(clip=0.9))
        ]
        if cells is not None and cells.per_row == 1
        else []
    ),
    "row_count": lambda facts, cells: [sums.row_count(facts)],
}


def added(one: Sum, rows: list[tuple[Any, ...]], weighted: bool) -> Any:
    """What each of these rows adds, a line each."""
    lines = []
    for row in rows:
        run = Run(few([row], weighted), OFFSETS, 0, 1)
        lines.append(one.total(run, one.unit).astype(np.float64).ravel())
    return np.array(lines)


def farthest(lines: Any) -> float:
    return float(np.sqrt(max(((lines - line) ** 2).sum(1).max() for line in lines)))


def test_every_sum_has_a_builder() -> None:
    kinds = [*vars(sums).values(), *vars(by_cell).values()]
    made = {kind.function.__name__ for kind in kinds if isinstance(kind, Kind)}
    assert made == set(BUILDERS)


@pytest.mark.parametrize(
    ("weighted", "cells", "name"),
    pairs([False, True], [None, ONE, PRODUCT, MARGINAL], BUILDERS),
)
def test_nobody_moves_a_sum_further_than_its_bound(
    name: str, cells: Cells | None, weighted: bool
) -> None:
    cap = CAP if weighted else None
    rows = ALL if weighted else [row for row in ALL if row[6] == CAP]
    for neighbours in ("add-remove", "replace-one"):
        facts = Facts(LAYOUT, Promise(1.0, 1e-6, neighbours=neighbours), cap)
        for one in BUILDERS[name](facts, cells):
            lines = added(one, rows, weighted)
            norm = float(np.sqrt((lines**2).sum(1)).max())
            moved = norm if neighbours == "add-remove" else farthest(lines)
            assert norm <= one.bound.norm * one.unit
            assert moved <= one.bound.sensitivity(neighbours) * one.unit, one.name
            if name in ("counts", "decisions"):  # the bound is no larger than it must be
                assert moved >= one.bound.sensitivity(neighbours) * one.unit * 0.4, one.name
            if "sensitive" not in one.reads:
                apart = lines.reshape(-1, 6, 2 if weighted else 1, lines.shape[1])
                assert (apart == apart[:, :1]).all()  # no group moves what reads none


@pytest.mark.parametrize(
    ("weighted", "cells", "name"),
    pairs([False, True], [ONE, PRODUCT, MARGINAL], BUILDERS),
)
def test_no_other_group_moves_a_sum_of_public_rows_further(
    name: str, cells: Cells, weighted: bool
) -> None:
    cap = CAP if weighted else None
    rows = ALL if weighted else [row for row in ALL if row[6] == CAP]
    facts = Facts(LAYOUT, Promise(1.0, 1e-6, protects="sensitive_features"), cap)
    for one in BUILDERS[name](facts, cells):
        lines = added(one, rows, weighted)
        shape = (len(NUMBERS) * 4, 6, 2 if weighted else 1, lines.shape[1])
        by_row = lines.reshape(shape).transpose(0, 2, 1, 3).reshape(-1, 6, lines.shape[1])
        moved = max(farthest(of_one) for of_one in by_row)
        bound = one.bound.sensitivity("replace-one") * one.unit
        assert moved <= (bound if "sensitive" in one.reads else 0.0), one.name


@pytest.mark.parametrize("name", ["counts", "decisions", "score_bins", "losses", "gram_matrices"])
def test_a_person_moves_a_sum_by_all_of_her_rows(name: str) -> None:
    rows = [row for row in ALL if row[6] == CAP][::5]
    pairs = [list(pair) for pair in itertools.product(range(len(rows)), repeat=2)]
    for neighbours in ("add-remove", "replace-one"):
        promise = Promise(1.0, 1e-6, neighbours=neighbours, unit=Unit("person", 2))
        for one in BUILDERS[name](Facts(LAYOUT, promise), PRODUCT):
            lines = added(one, rows, False)
            two = np.array([lines[pair].sum(0) for pair in pairs] + [np.zeros(lines.shape[1])])
            norm = float(np.sqrt((two**2).sum(1)).max())
            moved = norm if neighbours == "add-remove" else farthest(np.concatenate([two, lines]))
            assert moved <= one.bound.sensitivity(neighbours) * one.unit, one.name


@pytest.mark.parametrize("weighted", [False, True])
def test_a_persons_gradients_are_added_and_then_clipped(weighted: bool) -> None:
    rows = [row for row in ALL if row[6] == CAP][3::7]
    reached: list[float] = []
    sets = [[], *([row] for row in rows), *(list(pair) for pair in itertools.product(rows, rows))]
    for neighbours in ("add-remove", "replace-one"):
        promise = Promise(1.0, 1e-6, neighbours=neighbours, unit=Unit("person", 2))
        facts = Facts(LAYOUT, promise, CAP if weighted else None)
        for one in BUILDERS["gradient"](facts, PRODUCT):
            lines = np.array(
                [
                    one.total(Run(few(some, weighted), OFFSETS, 0, len(some)), one.unit).ravel()
                    if some
                    else np.zeros(one.shape).ravel()
                    for some in sets
                ],
                np.float64,
            )
            norm = float(np.sqrt((lines**2).sum(1)).max())
            moved = norm if neighbours == "add-remove" else farthest(lines)
            assert moved <= one.bound.sensitivity(neighbours) * one.unit
            reached.append(norm / (one.bound.norm * one.unit))
    assert max(reached) > 0.99  # two rows reach what one may add, and no more


@pytest.mark.parametrize("name", BUILDERS)
def test_a_total_is_the_sum_of_what_rows_add(name: str) -> None:
    facts = Facts(LAYOUT, Promise(1.0, 1e-6), CAP)
    order = np.random.default_rng(1).permutation(len(ALL))[:60]
    rows = [ALL[i] for i in order]
    for one in BUILDERS[name](facts, PRODUCT):
        together = one.total(Run(few(rows, True), OFFSETS, 0, len(rows)), one.unit)
        np.testing.assert_array_equal(together.ravel(), added(one, rows, True).sum(0))


RECORDS = Facts(LAYOUT, Promise(1.0, 1e-6))
PERSONS = Facts(LAYOUT, Promise(1.0, 1e-6, unit=Unit("person", 3)))
NUMBERS_ONLY = Facts(RowLayout(2, (2,), None, *LAYOUT_GROUPS), Promise(1.0, 1e-6))
ALONE = Facts(LAYOUT, Promise(1.0, 1e-6, protects="sensitive_features"))


@pytest.mark.parametrize(
    ("ask", "kind", "said"),
    [
        (lambda: sums.gradient(RECORDS, W, None), InputError, "clip"),
        (lambda: sums.gradient(RECORDS, W, -1.0), InputError, "clip"),
        (lambda: sums.gradient(RECORDS, W[:, 1:], 1.0), InputError, "weights"),
        (lambda: sums.decisions(RECORDS, np.concatenate([W, W])), InputError, "weights"),
        (lambda: sums.counts(NUMBERS_ONLY, ONE, True), InputError, "class labels"),
        (lambda: sums.gradient(NUMBERS_ONLY, W, 1.0), InputError, "class labels"),
        (
            lambda: sums.gradient(RECORDS, W, 1.0, ONE, np.zeros((3, 1, 2)), "squared"),
            InputError,
            "beside costs",
        ),
        (lambda: sums.gradient(RECORDS, W * np.nan, 1.0), InputError, "finite weights"),
        (lambda: sums.gradient(RECORDS, W[None][:0], 1.0), InputError, "finite weights"),
        (
            lambda: sums.gradient(RECORDS, W, 1.0, ONE, np.full((3, 1, 2), np.inf)),
            InputError,
            "costs",
        ),
        (lambda: sums.gradient(RECORDS, W, 1.0, ONE, np.zeros((2, 1, 2))), InputError, "costs"),
        (lambda: sums.gradient(ALONE, Linear(W, -1.0), 1.0), InputError, "sharpness"),
        (lambda: sums.gradient(ALONE, W, 1.0, loss_weight=-1.0), InputError, "loss_weight"),
        (lambda: sums.decisions(ALONE, Linear(W, 0.0), ONE), InputError, "sharpness"),
        (lambda: sums.gram_matrices(RECORDS, None, np.inf), InputError, "clip"),
        (lambda: sums.losses(RECORDS, W, None, "squared", np.inf), InputError, "clip"),
        (lambda: sums.score_bins(RECORDS, W, (1.0, 0.0)), InputError, "rising"),
        (
            lambda: ByCell(sums.RowCount(), MARGINAL).sum(RECORDS),
            InputError,
            "without cells|overlap",
        ),
        (
            lambda: ByCell(sums.CellCounts(ONE), ONE).sum(RECORDS),
            InputError,
            "without cells|overlap",
        ),
        (
            lambda: ByCell(sums.GradientSum(Linear(W), 1.0), ONE).sum(PERSONS),
            PrivacyError,
            "one group",
        ),
        (lambda: ByCell(sums.GradientSum(Linear(W)), ONE).sum(ALONE).bound, InputError, "clip"),
        (lambda: Facts(LAYOUT, Promise(1.0, 1e-6), np.inf), InputError, "max_sample_weight"),
        (
            lambda: Facts(
                RowLayout(2, (2,), (0, 1), LAYOUT.sensitive, ("g", "h"), ("g",)), ALONE.promise
            ),
            PrivacyError,
            "without the sensitive columns",
        ),
    ],
)
def test_what_no_proof_covers_is_refused(
    ask: Callable[[], object], kind: type[FairveilError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        ask()
