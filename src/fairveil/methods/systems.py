"""What a search is about: public facts, constraints that are resolved and within reach, and how noise
in what is released moves their values."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from .._types import Floats
from ..core.promise import Promise
from ..core.questions import Question
from ..curator import moved_by_one
from ..errors import InputError
from ..facts import Cells, RowLayout
from ..fairness import ConstraintSystem, Notion, resolve

NO_GROUPS = Cells((("everyone",),))
"""What constraints are resolved against where rows have no sensitive column: the population."""


@dataclass(frozen=True, eq=False)
class PublicTask:
    """Public facts that a search, its plan and the meaning of its answers share.

    `cells`: None where no groups are told apart. `public_rows`: the number of rows where it is public
    or was stated, else None: released counts say it.
    """

    promise: Promise
    layout: RowLayout
    cells: Cells | None
    public_rows: int | None = field(default=None, kw_only=True)
    max_sample_weight: float | None = field(default=None, kw_only=True)

    @property
    def stated_rows(self) -> int | None:
        """The number that averages divide by, where it is public. Rows with weights are counted by
        them."""
        return None if self.max_sample_weight is not None else self.public_rows

    @property
    def sees_features(self) -> bool:
        """Whether features and labels may be asked about exactly, for free."""
        return self.promise.features_are_public

    @property
    def is_exact(self) -> bool:
        """Whether nothing that is asked gets noise."""
        return self.sees_features and (not self.promise.is_private or self.cells is None)

    @property
    def heaviest(self) -> float | None:
        """How much one who is drawn may count: a row by its weight, a person by all rows that are
        read; None: one."""
        return heaviest(self.promise, self.max_sample_weight)

    def move(self, question: Question, order: int = 2) -> float:
        """How far one person moves the answer to a question whose bound is a constant."""
        return moved_by_one(question, self.layout, self.promise, self.max_sample_weight, order)


def system_of(
    notions: Sequence[Notion], cells: Cells | None, layout: RowLayout
) -> ConstraintSystem | None:
    """The constraints that ask for something; an error where one cannot be influenced by any
    model."""
    asked = [notion for notion in notions if not notion.is_vacuous]
    if not asked:
        return None
    system = resolve(asked, cells or NO_GROUPS, layout.classes or ())
    if not len(system):
        raise InputError.expected(
            "at least two groups to compare",
            of="constraints",
            got=f"groups {list((cells or NO_GROUPS).keys)}",
            remedy="Pass sensitive_features with several groups, or constraints=None.",
        )
    pulls, classes = system.jacobian(np.ones(system.shape[:2])), system.shape[2]
    apart = sum(lengths(pulls[:, k::classes] - pulls[:, ::classes]) for k in range(1, classes))
    for j in np.flatnonzero(apart < 1e-12):
        raise InputError.expected(
            "a constraint that decisions can change",
            of="constraints",
            got=f"{system.names[j]!r}, whose rates add up to a constant: its gradient is zero",
            remedy="Leave out one class's rate, or compare different groups.",
        )
    return system


def columns_of(cells: Cells) -> list[slice]:
    """The cells of each sensitive column: all of them for product groups."""
    sizes = (cells.count,) if cells.mode == "product" else tuple(cells.sizes)
    return [slice(a, b) for a, b in itertools.pairwise(itertools.accumulate(sizes, initial=0))]


def onto_totals(noisy: Floats, totals: Floats, cells: Cells, axis: int) -> Floats:
    """The nearest sums by cell (on that axis) whose sums over each sensitive column's groups are
    public totals.

    Least squares: what is missing is shared equally. With two groups this is as good as releasing
    one of them alone.
    """
    out = np.moveaxis(np.array(noisy, np.float64), axis, 0)
    wanted = np.moveaxis(totals, axis, 0)[0] if np.ndim(totals) == out.ndim else totals
    for column in columns_of(cells):
        part = out[column]
        part += (wanted - part.sum(axis=0)) / len(part)
    return np.moveaxis(out, 0, axis)


def slopes_of_counts(
    system: ConstraintSystem, counts: Floats, histogram: Floats, floor: float, outputs: int
) -> Floats:
    """|d values / d counts|. A rate is top / size, and a count moves the size, unless the floor
    holds it; with two classes (one output) it moves the first class's decisions too."""
    sizes = system.event_sizes(counts, floor)[system.event_of]
    moves_size = np.where(sizes > floor, system.rates(histogram, counts, floor), 0.0)
    slopes = -sparse.diags_array(moves_size) @ system.members[system.event_of]
    if outputs == 1:
        slopes = slopes + system.numerators[:, :: system.shape[2]]
    return lengths(system.coefficients @ sparse.diags_array(1.0 / sizes) @ slopes)


def slopes_of_constant(system: ConstraintSystem, counts: Floats, floor: float, k: int) -> Floats:
    """|d values / d counts| of deciding for class k, whatever the row: a count moves the size of a
    rate, and k's decisions."""
    sizes = system.event_sizes(counts, floor)[system.event_of]
    histogram = counts[..., np.newaxis] * np.eye(system.shape[2])[k]
    moves_size = np.where(sizes > floor, system.rates(histogram, counts, floor), 0.0)
    slopes = (
        system.numerators[:, k :: system.shape[2]]
        - sparse.diags_array(moves_size) @ system.members[system.event_of]
    )
    return lengths(system.coefficients @ sparse.diags_array(1.0 / sizes) @ slopes)


def slopes_of_decisions(
    system: ConstraintSystem, counts: Floats, floor: float, outputs: int
) -> Floats:
    """|d values / d decisions|. With two classes (one output) the first class's decisions are what
    the second's leave."""
    pulls = system.jacobian(counts, floor)
    return lengths(pulls[:, 1::2] - pulls[:, ::2] if outputs == 1 else pulls)


def lengths(lines: sparse.csr_array) -> Floats:
    """The length of each row of a sparse array."""
    return np.sqrt(
        np.asarray(sparse.csr_array(lines).power(2).sum(axis=1), dtype=np.float64).ravel()
    )


def heaviest(promise: Promise, max_sample_weight: float | None) -> float | None:
    """How much one who is drawn may count: a person's rows come together, and may all be alike."""
    rows = promise.rows_per_unit
    return max_sample_weight if rows == 1 else rows * (max_sample_weight or 1.0)
