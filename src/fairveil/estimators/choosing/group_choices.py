"""What a fit of a group objective looks for, and by which oracle, from its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _checks
from ..._types import TableLike
from ...core.promise import Promise
from ...facts import RowLayout
from ...fairness.objectives import Error
from ...learning.group_objective.plan import ROUNDS
from ...learning.group_objective.problem import Problem
from ...learning.oracles import (
    Choice,
    Class,
    Each,
    Labellings,
    Oracle,
    Regression,
    Responses,
    directions,
    thresholds,
)
from ..faces.mixtures import weights_given
from ..mixing import candidates_of, descent_of
from ..reading import cautions
from ..reading.cautions import Numbers
from ..reading.training import Training
from ..settings.oracles import LinearOracle
from .scaling import needs_scale

NAMED = ("thresholds", "directions", "labellings")


@dataclass(frozen=True, eq=False, repr=False)
class GroupChoices:
    """The parameters of `GroupObjectiveClassifier` that say which decisions are tried."""

    method: str
    loss: str
    decisions: Any
    schema: object
    solver: LinearOracle

    def listed(self) -> tuple[Any, ...]:
        """The classifiers given as decisions; none for rules by name or by weights."""
        if self.decisions is None or isinstance(self.decisions, np.ndarray):
            return ()
        if isinstance(self.decisions, str):
            _checks.one_of(NAMED, decisions=self.decisions)
            return ()
        return candidates_of(
            self.decisions, of="decisions", words=(*map(repr, NAMED), "a NumPy array of weights")
        )

    def needs_scale(self, promise: Promise, X: TableLike) -> bool:
        """Whether cuts and steps of fixed size meet public numbers in any units: these are then
        scaled by themselves."""
        named = (
            self.decisions in ("thresholds", "directions")
            if isinstance(self.decisions, str)
            else self.decisions is None
        )
        meets = named and (
            self.method == "exponential"
            or self.decisions is not None
            or not self.regresses(promise)
        )
        return meets and needs_scale(promise, self.schema, X)

    def numbers(self, promise: Promise) -> Numbers:
        """How the search takes numbers; weights that were handed in are in the caller's units."""
        if self.decisions is not None and not (
            isinstance(self.decisions, str) and self.decisions != "labellings"
        ):
            return "unread"
        cut = self.method == "exponential" or self.decisions is not None
        return (
            "as given"
            if cut or self.loss != "zero_one" or not self.regresses(promise)
            else "scaled"
        )

    def of(self, training: Training) -> Class | None:
        """The finite list of decisions that has a name, or weights, if there is one."""
        if isinstance(self.decisions, np.ndarray):
            return weights_given(self.decisions, training)
        if self.decisions is None:
            return None
        named: dict[str, Callable[[RowLayout], Class]] = {
            "thresholds": thresholds,
            "directions": directions,
            "labellings": Labellings,
        }
        return named[self.decisions](training.rows.layout)

    def oracle(self, of: Class | None, problem: Problem, training: Training) -> Oracle[Any]:
        """Among a list that is short enough, every decision is looked at, unless Frank-Wolfe was
        asked for."""
        clip, ground = self.solver.clip, problem.ground
        if of is not None:
            short = self.method == "linear-oracle" and of.size <= (self.solver.rounds or ROUNDS)
            return Each(of) if short and not ground.is_exact else Choice(of)
        if self._responds(problem):
            return Responses(Regression(clip))
        classes = 2 if isinstance(problem.objective, Error) else ground.classes
        if self.regresses(ground.promise, classes, cautions.are_few_and_unbounded(training)):
            return Regression(clip)
        return descent_of(ground.promise, training, clip)

    def _responds(self, problem: Problem) -> bool:
        """Whether rules are searched on public rows. One sum of losses and nothing else is what one
        regression answers."""
        if self.solver.oracle is not None:
            return self.solver.oracle == "responses"
        return (
            self.method == "linear-oracle"
            and problem.ground.sees_features
            and not problem.is_linear
        )

    def regresses(self, promise: Promise, classes: int = 2, unbounded: bool = False) -> bool:
        """Whether the oracle regresses costs.

        A private descent aims at the error first, which with many `classes` is far from
        other objectives; of rows that are longer than its clip it hears little but signs. The sums of the
        regression have the noise of the longest row, which grows with their width.
        """
        usual = promise.features_are_public or classes > 2 or unbounded
        return self.solver.oracle in ("regression", "responses") or (
            self.solver.oracle is None and usual
        )
