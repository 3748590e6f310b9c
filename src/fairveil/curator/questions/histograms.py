"""Questions about how the predictions and scores of linear models fall in each cell."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ... import _checks
from ...core import sums
from ...core.sums import Facts, Sum
from ...errors import InputError
from ...facts import Cells, RowLayout
from ..question import Linear, Question, cell_count, need_classes
from .of_models import same_form

DECISIONS = ("hard", "soft")


@dataclass(frozen=True, eq=False)
class DecisionHistogram(Question):
    """How the predictions of a model of ours fall in each cell (and label): shape (cells[, labels],
    outputs). Abstract.

    `decisions="hard"`: one for the predicted class; `"soft"`: softmax(sharpness x score). Two
    classes have one output, the second's. theory.md#counts: the row of one person has L2 norm at
    most 1; it moves by at most sqrt 2.
    """

    model: Any = field()
    cells: Cells | None = None
    decisions: str = "hard"
    by_label: bool = False

    def __post_init__(self) -> None:
        if self.decisions not in DECISIONS:
            _checks.one_of(DECISIONS, decisions=self.decisions)

    @property
    def why(self) -> str:
        return "a row's prediction is a point of the simplex"

    @property
    def reads(self) -> frozenset[str]:
        return (super().reads | {"label"}) if self.by_label else super().reads

    @property
    def within(self) -> float:
        return math.sqrt(2) if self.by_label or self.model.outputs > 1 else 1.0

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        self.model.check(layout)
        labels = (need_classes(layout, self.name),) if self.by_label else ()
        return (cell_count(self.cells), *labels, self.model.outputs)


@dataclass(frozen=True, eq=False)
class PredictionHistogram(DecisionHistogram):
    """How a linear model's predictions fall in each cell (and label): see `DecisionHistogram`."""

    name: ClassVar[str] = "prediction histogram"
    model: Linear = field()

    def at(self, model: Linear) -> PredictionHistogram:
        """The same question about other weights."""
        return self.again(model=same_form(self.model, model))

    @property
    def models(self) -> int:
        return self.model.models

    def sum(self, facts: Facts, order: int = 2) -> Sum:
        how = (self.cells, self.by_label, self.decisions, self.model.sharpness)
        return sums.decisions(facts, self.model.array, *how, order)


@dataclass(frozen=True, eq=False)
class ScoreHistogram(Question):
    """How many scores of each cell (and label) fall between given edges: shape (cells[, labels], 1
    + edges). Two classes.

    The sums of bins from the right are the numbers of decisions for the second class at every edge
    as a threshold, from one release: a row is in one bin, so the bound is that of a histogram. A
    score that is no number counts as below all edges.
    """

    name: ClassVar[str] = "score histogram"
    model: Linear = field()
    edges: tuple[float, ...]
    cells: Cells | None = None
    by_label: bool = False

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges, np.float64)
        if (
            edges.ndim != 1
            or not edges.size
            or not np.isfinite(edges).all()
            or not (np.diff(edges) > 0).all()
        ):
            remedy = "Pass (-1.0, 0.0, 1.0), for example."
            raise InputError.expected(
                "rising finite numbers", of="edges", got=self.edges, remedy=remedy
            )
        _checks.normalise(self, edges=tuple(edges.tolist()))

    @property
    def why(self) -> str:
        return "a row's score is in one bin"

    @property
    def reads(self) -> frozenset[str]:
        return (super().reads | {"label"}) if self.by_label else super().reads

    @property
    def models(self) -> int:
        return self.model.models

    @property
    def within(self) -> float:
        return math.sqrt(2)

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        self.model.check(layout)
        if self.model.outputs != 1:
            remedy = "Several classes have no threshold: ask for a PredictionHistogram."
            raise InputError.expected(
                "two classes", of=self.name, got=len(layout.classes or ()), remedy=remedy
            )
        labels = (need_classes(layout, self.name),) if self.by_label else ()
        return (cell_count(self.cells), *labels, 1 + len(self.edges))

    def sum(self, facts: Facts, order: int = 2) -> Sum:
        where = (self.edges, self.cells, self.by_label)
        return sums.score_bins(facts, self.model.array, *where, order)
