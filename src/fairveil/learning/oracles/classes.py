"""Lists of decisions for oracles: thresholds, directions, labellings, rules made elsewhere."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._types import Floats
from ...curator import (
    Attached,
    AttachedHistogram,
    Block,
    Curator,
    FeatureSums,
    GramMatrices,
    Linear,
    PredictionHistogram,
    ScoreHistogram,
)
from ...errors import InputError
from ...facts import Cells, RowLayout
from .ground import GameInstance
from .oracle import LinearRule, Rule
from .regression import regressed_errors

RuleQuestion = PredictionHistogram | AttachedHistogram | ScoreHistogram
GRID = tuple(round(-0.9 + 0.2 * k, 1) for k in range(10))
"""Where thresholds on numbers are cut, which a schema codes to [-1, 1] or which are standardised:
whatever the data."""
EDGES = tuple(round(-3.0 + 0.1 * k, 1) for k in range(61))
"""Where labellings are cut, in standard deviations of a public score."""


@dataclass(frozen=True, eq=False)
class AttachedRule(Rule):
    """A candidate made elsewhere, by its place in the list that was given."""

    place: int
    handle: Attached | None = None

    @property
    def key(self) -> Hashable:
        return ("candidate", self.place)

    def decisions(self, cells: Cells | None, by_label: bool) -> AttachedHistogram:
        assert self.handle is not None
        return AttachedHistogram(self.handle, cells, by_label, decisions="hard")

    def published(self) -> AttachedRule:
        return AttachedRule(self.place)


class Class(ABC):
    """A finite class of rules. Abstract."""

    reads_groups: bool = False
    """Whether a rule may decide by the sensitive columns."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many rules there are, at most: public before anything is asked."""

    def require(self, ground: GameInstance) -> None:
        """An error where the class cannot be on this ground, before anything is asked. Most can be
        anywhere."""
        return

    @abstractmethod
    def gather(
        self, curator: Curator, ground: GameInstance
    ) -> tuple[list[RuleQuestion], list[Rule]]:
        """The questions how all candidates decide, by cell and label, and the candidates in order.
        Asks only what is free."""


@dataclass(frozen=True, eq=False)
class LinearClass(Class):
    """Linear models, (candidates, outputs, 1 + width): public, chosen without the data."""

    weights: Floats

    @property
    def size(self) -> int:
        return len(self.weights)

    def gather(
        self, curator: Curator, ground: GameInstance
    ) -> tuple[list[RuleQuestion], list[Rule]]:
        question = PredictionHistogram(Linear(self.weights), ground.cells, "hard", by_label=True)
        return [question], [LinearRule(line) for line in self.weights]


@dataclass(frozen=True, eq=False)
class Cuts(Class):
    """Directions (d, 1 + width) cut at edges, for two classes: the second above an edge. One pass
    counts them all."""

    directions: Floats
    edges: tuple[float, ...]

    @property
    def size(self) -> int:
        return len(self.directions) * len(self.edges)

    def require(self, ground: GameInstance) -> None:
        if ground.classes != 2:
            remedy = "Choose among thresholds, or a list of models: decisions=[...]."
            raise InputError.expected(
                "two classes", of="cuts of directions", got=ground.classes, remedy=remedy
            )

    def gather(
        self, curator: Curator, ground: GameInstance
    ) -> tuple[list[RuleQuestion], list[Rule]]:
        question = ScoreHistogram(
            Linear(self.directions[:, np.newaxis, :]), self.edges, ground.cells, by_label=True
        )
        first = _line(self.directions.shape[1] - 1, 0, 0.0, 1.0)
        lines = [direction - edge * first for direction in self.directions for edge in self.edges]
        return [question], [LinearRule(line[np.newaxis]) for line in lines]


def directions(layout: RowLayout, count: int = 100, cuts: int = 100) -> Cuts:
    """A grid of linear rules in the unit ball, fixed without the data: `count` directions, `cuts`
    cuts of each.

    In up to three coordinates evenly spread (angles, a Fibonacci lattice); beyond that the same
    draws for everybody. A row's numbers are taken to be in [-1, 1], as a schema codes them.
    """
    width = layout.width
    if width == 1:
        lines = np.array([[1.0], [-1.0]])
    elif width == 2:
        angles = 2.0 * np.pi * np.arange(count) / count
        lines = np.column_stack([np.cos(angles), np.sin(angles)])
    elif width == 3:
        heights = 1.0 - (2.0 * np.arange(count) + 1.0) / count
        turns = np.pi * (1.0 + math.sqrt(5.0)) * np.arange(count)
        flat = np.sqrt(1.0 - heights**2)
        lines = np.column_stack([flat * np.cos(turns), flat * np.sin(turns), heights])
    else:
        drawn = np.random.default_rng(0).standard_normal((count, width))
        lines = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    longest = math.sqrt(layout.numbers + len(layout.code_sizes))
    edges = tuple((longest * (2.0 * np.arange(cuts) + 1.0 - cuts) / cuts).tolist())
    return Cuts(np.column_stack([np.zeros(len(lines)), lines]), edges)


def thresholds(layout: RowLayout) -> LinearClass:
    """One column against one number: every cut of `GRID` of every number, every category, both ways
    round, and the constants.

    With K classes: one class on one side, another on the other, for every pair.
    """
    cuts = []
    for j in range(layout.numbers):
        for cut in GRID:
            cuts.append(_line(layout.width, 1 + j, 1.0, -cut))
    for j in range(sum(layout.code_sizes)):
        cuts.append(_line(layout.width, 1 + layout.numbers + j, 1.0, -0.5))
    return LinearClass(
        _sided(np.array(cuts).reshape(-1, 1 + layout.width), len(layout.classes or ()))
    )


def _line(width: int, at: int, slope: float, intercept: float) -> Floats:
    line = np.zeros(1 + width)
    line[at], line[0] = slope, intercept
    return line


def _sided(cuts: Floats, classes: int) -> Floats:
    """Both sides of each cut as decisions, and a constant for each class: (candidates, outputs, 1 +
    width)."""
    constant = np.zeros((1, cuts.shape[1]))
    constant[0, 0] = 1.0
    if classes == 2:
        return np.asarray(np.concatenate([cuts, -cuts, constant, -constant])[:, np.newaxis, :])
    out = []
    for low, high in itertools.permutations(range(classes), 2):
        lines = np.zeros((len(cuts), classes, cuts.shape[1]))
        lines[:, :, 0] = -1e6  # below any score of a coded row that matters
        lines[:, low] = 0.0
        lines[:, high] = cuts
        out.append(lines)
    ends = np.zeros((classes, classes, cuts.shape[1]))
    ends[np.arange(classes), np.arange(classes), 0] = 1.0
    return np.asarray(np.concatenate([*out, ends]))


@dataclass(frozen=True, eq=False)
class Labellings(Class):
    """H(S): the labellings of the rows that cuts of public scores induce, each once. Where features
    are public.

    The scores are each coded column, and the regression of the error; cuts between which no row
    lies give one labelling.
    """

    layout: RowLayout

    @property
    def size(self) -> int:
        return len(
            _sided(
                np.zeros(((1 + self.layout.width) * len(EDGES), 1)), len(self.layout.classes or ())
            )
        )

    def require(self, ground: GameInstance) -> None:
        if ground.classes != 2:
            remedy = "Choose among thresholds, or a list of models: candidates=..."
            raise InputError.expected(
                "two classes", of="labellings of the rows", got=ground.classes, remedy=remedy
            )
        if not ground.sees_features:
            remedy = (
                "Choose among thresholds, or a list of models made without these rows: "
                "candidates=..."
            )
            got = "protected records"
            raise InputError.expected(
                "public features", of="labellings of the rows", got=got, remedy=remedy
            )

    def gather(
        self, curator: Curator, ground: GameInstance
    ) -> tuple[list[RuleQuestion], list[Rule]]:
        scores = self._scores(curator)
        (bins,) = curator.answer([(ScoreHistogram(Linear(scores[:, np.newaxis, :]), EDGES), 0.0)])
        cuts = [
            score - edge * _line(self.layout.width, 0, 0.0, 1.0)
            for score, line in zip(scores, bins.reshape(-1, 1 + len(EDGES)), strict=True)
            for edge in _distinct(line)
        ]
        whole = LinearClass(
            _sided(np.array(cuts).reshape(-1, 1 + self.layout.width), ground.classes)
        )
        return whole.gather(curator, ground)

    def _scores(self, curator: Curator) -> Floats:
        """Standardised: each coded column, then the second class's regression."""
        gram, sums = curator.answer(
            [(GramMatrices(None), 0.0), (FeatureSums(None, by_label=True), 0.0)]
        )
        whole = gram[0]
        errors = regressed_errors(whole, sums.reshape(-1, sums.shape[-1]))
        lines = np.concatenate([np.eye(1 + self.layout.width)[1:], [errors[0] - errors[1]]])
        means = lines @ whole[0] / whole[0, 0]
        variances = np.einsum("id,de,ie->i", lines, whole, lines) / whole[0, 0] - means**2
        varies = variances > 1e-12
        lines, means, deviations = lines[varies], means[varies], np.sqrt(variances[varies])
        lines[:, 0] -= means
        return np.asarray(lines / deviations[:, np.newaxis])


def _distinct(bins: Floats) -> list[float]:
    """Edges that tell rows apart, one for each way to do so: with a row below, a row above, and one
    between it and the last."""
    below = np.cumsum(bins)[:-1]
    edges, last = [], 0.0
    for edge, count in zip(EDGES, below.tolist(), strict=True):
        if last < count < bins.sum():
            edges.append(edge)
        last = count
    return edges


@dataclass(frozen=True, eq=False)
class Listed(Class):
    """Models made elsewhere, by how they decide for a block of rows: they must not have been made
    from protected rows."""

    models: Sequence[Callable[[Block], Any]]

    @property
    def size(self) -> int:
        return len(self.models)

    def gather(
        self, curator: Curator, ground: GameInstance
    ) -> tuple[list[RuleQuestion], list[Rule]]:
        handles = [
            curator.attach(model, title=f"candidate {j}") for j, model in enumerate(self.models)
        ]
        rules = [AttachedRule(j, handle) for j, handle in enumerate(handles)]
        return [rule.decisions(ground.cells, True) for rule in rules], list(rules)
