"""What a game is played on: the public facts that its oracle, its auditor and its plan share, and
what answers mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._types import Floats
from ...core.events import Event
from ...core.promise import Promise
from ...curator import CellCounts, Curator, Measurement, Question, describe, moved_by_one
from ...errors import InputError
from ...facts import Cells, RowLayout
from ...fairness import ConstraintSystem, Notion
from ..systems import NO_GROUPS, heaviest, onto_totals, system_of

LEAST_ROWS = 1.0


@dataclass(frozen=True, eq=False)
class GameInstance:
    """Public facts alone. `cells` and `by_label`: what counts distinguish, the least that will do.

    `public_rows`: the number of rows where it is public or was stated, else None: the released
    counts say it. `priced`: an objective of group losses prices decisions, rather than a system of
    constraints.
    """

    promise: Promise
    layout: RowLayout
    system: ConstraintSystem | None
    cells: Cells | None
    by_label: bool
    public_rows: int | None
    max_sample_weight: float | None
    group_aware: bool = False
    priced: bool = False

    @staticmethod
    def of(
        promise: Promise,
        layout: RowLayout,
        cells: Cells | None,
        notions: Sequence[Notion],
        *,
        public_rows: int | None = None,
        max_sample_weight: float | None = None,
        group_aware: bool = False,
    ) -> GameInstance:
        """The ground for these constraints. Counts are by label where constraints, or rules that
        read the group, need it, and where records are protected in any case: then labels are."""
        system = system_of(notions, cells, layout)
        if group_aware and (cells is None or cells.mode != "product"):
            remedy = "Pass sensitive_features, and constraints of product groups."
            got = None if cells is None else cells.mode
            raise InputError.expected("product groups", of="group_aware", got=got, remedy=remedy)
        kept = cells if group_aware or (system is not None and system.needs_groups) else None
        by_label = True
        if system is not None:
            system = system if kept is not None else system.without_groups()
            by_label = system.needs_labels or not promise.features_are_public or group_aware
            system = system if by_label else system.without_labels()
        return GameInstance(
            promise, layout, system, kept, by_label, public_rows, max_sample_weight, group_aware
        )

    @property
    def classes(self) -> int:
        """How many."""
        return len(self.layout.classes or ())

    @property
    def outputs(self) -> int:
        """1 for two classes, else one a class."""
        return 1 if self.classes <= 2 else self.classes

    @property
    def sees_features(self) -> bool:
        """Whether features and labels may be asked about exactly, for free."""
        return self.promise.features_are_public

    @property
    def is_exact(self) -> bool:
        """Whether nothing that is asked gets noise."""
        return self.sees_features and (not self.promise.is_private or self.cells is None)

    @cached_property
    def counts(self) -> CellCounts:
        """The question of how many rows each cell (and label) holds."""
        return CellCounts(self.cells, self.by_label)

    @property
    def has_costs(self) -> bool:
        """Whether decisions have costs beside the error."""
        return self.priced or self.system is not None

    @property
    def groups(self) -> int:
        """How many cells."""
        return 1 if self.cells is None else self.cells.count

    @property
    def heaviest(self) -> float | None:
        """How much one who is drawn may count: a row by its weight, a person by all rows that are
        read; None: one."""
        return heaviest(self.promise, self.max_sample_weight)

    def move(self, question: Question) -> float:
        """How far one person moves the answer to a question whose bound is a constant (L2)."""
        return moved_by_one(question, self.layout, self.promise, self.max_sample_weight)

    def event(self, measurements: Sequence[Measurement]) -> Event:
        """What one joint release of these questions, of all rows, logs."""
        return describe(
            measurements, self.layout, self.promise, max_sample_weight=self.max_sample_weight
        )

    def floor(self, multiplier: float) -> float:
        """The least number of rows that a cell is taken to have: two standard deviations of its
        count's noise, at least 1."""
        return max(LEAST_ROWS, 2.0 * multiplier * self.move(self.counts))

    def table(self, answer: Floats) -> Floats:
        """Counts as (cells, labels), with one label where labels are not distinguished."""
        return np.asarray(answer, np.float64).reshape(self.groups, -1)

    def by_class(self, answer: Floats, counts: Floats) -> Floats:
        """A histogram (cells, labels, classes); with two classes the first's is what the second's
        leaves."""
        histogram = np.asarray(answer, np.float64).reshape(*counts.shape, self.outputs)
        if self.outputs > 1:
            return histogram
        return np.concatenate([counts[..., np.newaxis] - histogram, histogram], axis=-1)

    def onto_totals(self, noisy: Floats, totals: Floats) -> Floats:
        """Sums by cell (first axis) that add up to totals over groups, which are public: each
        column's do."""
        return onto_totals(noisy, totals, self.cells or NO_GROUPS, axis=0)

    def joint(
        self,
        curator: Curator,
        measurements: Sequence[Measurement],
        free: Sequence[Question],
        purpose: str,
    ) -> list[Floats]:
        """One joint release; where features are public, each answer by cell is put onto its exact
        totals in `free`."""
        if self.is_exact or not self.sees_features or not free:
            return curator.answer(measurements, purpose=purpose)
        answers = curator.answer(
            [*measurements, *(Measurement(question, 0.0) for question in free)], purpose=purpose
        )
        noisy, totals = answers[: len(measurements)], answers[len(measurements) :]
        return [
            self.onto_totals(answer, total[0]) for answer, total in zip(noisy, totals, strict=True)
        ]

    def costs(self, cell_costs: Floats, rows: float) -> Floats:
        """What one decision costs the Lagrangian, (cells, labels, classes): 1[y != k] / rows +
        dL/dH."""
        errors: Any = (1.0 - np.eye(self.classes)) / rows
        whole = np.broadcast_to(errors, (self.groups, self.classes, self.classes))
        return np.asarray(whole / (1 if self.cells is None else self.cells.per_row) + cell_costs)
