"""What games and group objectives choose among: rules, candidates, labellings, and how numbers are scaled for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _checks
from .._types import Array, Floats, TableLike
from ..core.promise import Promise
from ..curator import Curator
from ..errors import InputError
from ..facts import RowLayout, RowSource
from ..fairness.objectives import Error
from ..methods.descent import Progress
from ..methods.objective_descent import LossDescent
from ..methods.objective_loop import ROUNDS, Loop, PublicSearch
from ..methods.objectives import Certain, Found, Problem, Sampling
from ..methods.oracles import (
    Choice,
    Class,
    Each,
    GameInstance,
    Labellings,
    LinearClass,
    Oracle,
    Regression,
    Responses,
    directions,
    thresholds,
)
from ..models import DerandomisedModel, MixtureModel, Model
from .mixing import candidates_of, descent_of
from .reading import cautions
from .reading.cautions import Numbers
from .reading.training import Training
from .settings import LinearOracle, OracleGame

# ------------------------------ scaling
# When cuts and steps of fixed size meet numbers in units that nobody stated.


def needs_scale(promise: Promise, schema: object, X: TableLike) -> bool:
    """Whether public numbers come in any units: no schema states them, and rows are not coded."""
    return (
        promise.protects == "sensitive_features" and schema is None and not isinstance(X, RowSource)
    )


# ------------------------------ game_choices
# What a game's learner plays, and by which oracle, from parameters and public facts.

ORACLES = ("responses", "regression", "exponential", "labellings", "descent")


@dataclass(frozen=True, eq=False, repr=False)
class GameChoices:
    """The parameters of `OracleGameClassifier` that say which rules are played."""

    name: str | None
    schema: object
    solver: OracleGame

    def idle(self) -> dict[str, str | None]:
        """Settings that this oracle does not read: where not, in words; None: it reads them."""
        if self.name is not None:
            _checks.one_of(ORACLES, oracle=self.name)
        where = "unless oracle='exponential'" if self.name is None else f"with oracle={self.name!r}"
        chooses = self.name == "exponential"
        released = self.name in (None, "responses", "regression", "descent")
        return {"candidates": None if chooses else where, "clip": None if released else where}

    @property
    def _lists(self) -> bool:
        """Whether classifiers made elsewhere are played."""
        return self.name == "exponential" and not isinstance(self.solver.candidates, str)

    def needs_scale(self, promise: Promise, X: TableLike) -> bool:
        """Whether cuts and steps of fixed size meet public numbers in any units: these are then
        scaled by themselves."""
        meets = self.name == "descent" or (self.name == "exponential" and not self._lists)
        return meets and needs_scale(promise, self.schema, X)

    def numbers(self) -> Numbers:
        """How the oracle takes numbers; labellings are cuts of scores, and other people's
        classifiers scale for themselves."""
        if self.name == "labellings" or self._lists:
            return "unread"
        return "scaled" if self.name in (None, "regression", "responses") else "as given"

    def listed(self) -> tuple[Any, ...]:
        """The classifiers given as candidates; none for a class by name."""
        given = self.solver.candidates
        if not self._lists:
            _checks.one_of(
                ("thresholds",), candidates=given if isinstance(given, str) else "thresholds"
            )
            return ()
        listed = candidates_of(given, of="candidates", words=("'thresholds'",))
        if self.solver.group_aware:
            remedy = (
                "A list of classifiers is played as it is, without rules that read the group: "
                "leave group_aware=False."
            )
            raise InputError.expected(
                "'thresholds', with group_aware=True", of="candidates", got="a list", remedy=remedy
            )
        return listed

    def oracle(self, ground: GameInstance, training: Training, of: Class | None) -> Oracle:
        """What the learner asks; `of`: classifiers made elsewhere, where these are played."""
        oracle, clip = self._named(ground.promise, training), self.solver.clip
        if oracle in ("responses", "regression"):
            return Responses(Regression(clip)) if oracle == "responses" else Regression(clip)
        if oracle == "descent":
            return descent_of(ground.promise, training, clip)
        if oracle == "labellings":
            return Choice(Labellings(ground.layout))
        return Choice(of or thresholds(ground.layout))

    def _named(self, promise: Promise, training: Training) -> str:
        """The oracle by its name; None: what errs least under the protection at hand."""
        if self.name is not None:
            return self.name
        if self.solver.group_aware or (
            not promise.features_are_public and cautions.are_few_and_unbounded(training)
        ):
            return "regression"
        return "responses" if promise.features_are_public else "descent"


# ------------------------------ mixtures
# What classifiers that publish a mixture of rules share: probabilities of its decisions, and
# rules that were given.

Search = Sampling | Loop | PublicSearch | LossDescent


def found_by(
    search: Search, curator: Curator, tick: Progress | None
) -> tuple[Found, Certain | None]:
    if isinstance(search, Sampling):
        return search.run(curator, tick)
    return search.run(curator, tick), None


def probabilities(model: Model | None, block: object) -> Floats:
    """Of the models themselves, where the distribution of their decisions is another."""
    if isinstance(model, DerandomisedModel):
        return probabilities(model.model, block)
    assert isinstance(model, MixtureModel)
    each = [
        weight * one.predict_proba(block)
        for weight, one in zip(model.weights, model.models, strict=True)
    ]
    return np.asarray(np.sum(each, axis=0))


def weights_given(given: Array, training: Training) -> LinearClass:
    """Linear rules from an array, checked."""
    layout, outputs = (
        training.rows.layout,
        1 if len(training.classes) == 2 else len(training.classes),
    )
    array = np.asarray(given, np.float64) if given.dtype.kind in "fiu" else np.empty(0)
    if array.ndim == 2 and outputs == 1:
        array = array[:, np.newaxis, :]
    if (
        array.ndim != 3
        or not len(array)
        or array.shape[1:] != (outputs, 1 + layout.width)
        or not np.isfinite(array).all()
    ):
        expected = (
            f"finite weights (m, {'' if outputs == 1 else f'{outputs}, '}{1 + layout.width}), the "
            f"intercept first"
        )
        remedy = "Numbers come after it, then the categories of each coded column, as in coef_."
        raise InputError.expected(expected, of="decisions", got=np.shape(given), remedy=remedy)
    return LinearClass(array)


# ------------------------------ group_choices
# What a fit of a group objective looks for, and by which oracle, from its parameters.

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

    def oracle(self, of: Class | None, problem: Problem, training: Training) -> Oracle:
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
