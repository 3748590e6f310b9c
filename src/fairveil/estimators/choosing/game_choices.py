"""What a game's learner plays, and by which oracle, from parameters and public facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ... import _checks
from ..._types import TableLike
from ...core.promise import Promise
from ...errors import InputError
from ...learning.oracles import (
    Choice,
    Class,
    GameInstance,
    Labellings,
    Oracle,
    Regression,
    Responses,
    thresholds,
)
from ..mixing import candidates_of, descent_of
from ..reading import cautions
from ..reading.cautions import Numbers
from ..reading.training import Training
from ..settings.oracles import OracleGame
from .scaling import needs_scale

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

    def oracle(self, ground: GameInstance, training: Training, of: Class | None) -> Oracle[Any]:
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
