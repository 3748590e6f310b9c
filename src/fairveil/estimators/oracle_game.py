"""Fits by a private game (Jagielski et al., sec. 4): a fair mixture of the learner's plays against an
auditor who holds the constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .. import _checks
from .._types import TableLike
from ..core.promise import Promise
from ..curator import Curator
from ..errors import InputError
from ..fairness import FalsePositiveRateParity, Notion
from ..fairness.objectives import Constraint
from ..methods.comparison import Choice as Chosen
from ..methods.descent import Reason
from ..methods.game import Equilibrium, plan
from ..methods.oracles import (
    Choice,
    Class,
    GameInstance,
    Labellings,
    Oracle,
    Regression,
    Responses,
    thresholds,
)
from ..models import DerandomisedModel, MixtureModel
from . import cautions, fitting, settings
from .cautions import Numbers
from .certifying.certified_fits import refuse_certify
from .coding import wanted
from .descending import cells_of
from .fitting import READS_GROUPS, OpenedFit, said, statement_of
from .handed import words_of
from .mixing import (
    candidates_of,
    decided_by,
    descent_of,
    mixture_of_rules,
    needs_scale,
    shares_of,
    told_of,
)
from .reading import Read, Training
from .reports import (
    ConstraintReport,
    of_comparison,
    warn_if_not_enforced,
    warn_if_worse,
    warn_of_missed,
)
from .settings import GAME_ORACLES, Setting
from .ways import PlannedFit, Way, notions_alone

WHOLE = 1_000_000  # plays of a mixture whose shares are known


class OracleGameWay(Way):
    """The private game."""

    kind: ClassVar[type[Setting]] = settings.OracleGame
    title: ClassVar[str] = "Playing"

    @property
    def draws(self) -> bool:
        return True

    def required(self) -> Constraint:
        return notions_alone(self.of)

    def intend(self, read: Read, X: TableLike, shape: tuple[int, ...] | None) -> PlannedFit:
        of, solver = self.of, self.solver
        self.refuse_objective()
        refuse_certify(of)
        whose, promise = fitting.asked(of)
        ledger = fitting.ledger_of(of, promise)
        notions = fitting.notions_of(of.constraints)
        fitting.refuse_unused(solver, self._idle())
        scaled = self._needs_scale(promise, X)
        ways = fitting.own_ways(of, promise, whose, wanted(of.model, modules=False), scaled=scaled)
        training = read(ways)
        opening = OpenedFit.of(of, promise, ledger, training, numbers=self._numbers())
        fitting.require_groups(notions, training)
        cells = cells_of(notions, training)
        ground = GameInstance.of(
            promise,
            training.rows.layout,
            cells,
            notions,
            public_rows=opening.public_rows,
            max_sample_weight=opening.max_sample_weight,
            group_aware=bool(solver.group_aware),
        )
        listed = self.listed()
        played = decided_by(of, listed, training, X) if listed else None
        game = plan(
            ground,
            self._oracle(ground, training, played),
            dual_bound=solver.dual_bound,
            rounds=solver.rounds,
            confidence=solver.confidence,
            only_false_positives=_one_parity_of_false_positives(notions),
        )
        return PlannedFit(opening, cells, game)

    def publish(self, intent: PlannedFit, found: Equilibrium, curator: Curator) -> None:
        of, training, listed = self.of, intent.training, self.listed()
        reads = [READS_GROUPS] if self.solver.group_aware else []
        statement = statement_of(curator, training, [*reads, *told_of(listed)])
        shares = np.array(found.plays, np.float64) / sum(found.plays)
        mixture = None if listed else mixture_of_rules(found.rules, shares, training)
        of._publish_shape(training, intent.cells)
        self.set_outcome(found, mixture, listed)
        of.privacy_ = statement
        told = {} if found.choice is None else _told(found.choice, training)
        of.baselines_ = of_comparison(found.comparison, training.classes, **told)
        warn_if_worse(of.baselines_, learnt=found.learnt)
        if of.constraint_report_.missed_by_far:
            ask = "Ask for a larger bound, a larger epsilon, dual_bound or more rounds"
            warn_of_missed(of.constraint_report_, "the mixture reached", ask)
            return
        kept = 1.0 if found.choice is None else found.choice.model
        hidden = found.reason is Reason.HIDDEN
        warn_if_not_enforced(of.constraint_report_, kept, vain=hidden)

    def set_outcome(
        self,
        outcome: Equilibrium,
        model: MixtureModel | DerandomisedModel | None,
        listed: tuple[Any, ...],
    ) -> None:
        """Write what was found: after a fit, and when read from disk."""
        of = self.of
        plays = shares_of(outcome.rules, outcome.plays, len(listed))
        of.model_, of.candidates_, of.plays_ = model, listed, plays
        of.outcome_, of.guarantee_ = outcome, outcome.guarantee
        of.n_iter_ = outcome.rounds
        of.constraint_report_ = ConstraintReport.of(outcome, said(of))

    def derandomised(self, model: DerandomisedModel) -> None:
        """Write decisions without chance, whose gap and error nobody released."""
        found = self.of.outcome_
        unknown = replace(found, values=np.full_like(found.values, np.nan), guarantee=None)
        self.set_outcome(unknown, model, ())

    # What is played, and by which oracle, from parameters and public facts.

    def _idle(self) -> dict[str, str | None]:
        """Settings that this oracle does not read: where not, in words; None: it reads them."""
        name = self.solver.oracle
        if name is not None:
            _checks.one_of(GAME_ORACLES, oracle=name)
        where = "unless oracle='exponential'" if name is None else f"with oracle={name!r}"
        released = name in (None, "responses", "regression", "descent")
        return {
            "candidates": None if name == "exponential" else where,
            "clip": None if released else where,
        }

    @property
    def _lists(self) -> bool:
        """Whether classifiers made elsewhere are played."""
        return self.solver.oracle == "exponential" and not isinstance(self.solver.candidates, str)

    def _needs_scale(self, promise: Promise, X: TableLike) -> bool:
        """Whether cuts and steps of fixed size meet public numbers in any units: these are then
        scaled by themselves."""
        name = self.solver.oracle
        meets = name == "descent" or (name == "exponential" and not self._lists)
        return meets and needs_scale(promise, self.of._facts, X)

    def _numbers(self) -> Numbers:
        """How the oracle takes numbers; labellings are cuts of scores, and other people's
        classifiers scale for themselves."""
        name = self.solver.oracle
        if name == "labellings" or self._lists:
            return "unread"
        return "scaled" if name in (None, "regression", "responses") else "as given"

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

    def _oracle(self, ground: GameInstance, training: Training, of: Class | None) -> Oracle:
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
        if self.solver.oracle is not None:
            return str(self.solver.oracle)
        if self.solver.group_aware or (
            not promise.features_are_public
            and cautions.are_few_and_unbounded(training.coding, training.rows)
        ):
            return "regression"
        return "responses" if promise.features_are_public else "descent"


def _told(choice: Chosen, training: Training) -> dict[str, str]:
    """The final model, in words, where a program chose it."""
    name, remark = words_of(choice, training.classes, "the mixture that was played")
    return {} if choice.is_model else {"handed_out": name, "remark": remark}


def _one_parity_of_false_positives(notions: Sequence[Notion]) -> bool:
    """Theorem 4.6: raising the lowest groups' rates repairs every pair of groups. Not groups
    against the rest, and not two classes' rates at once."""
    asked = [notion for notion in notions if not notion.is_vacuous]
    return (
        len(asked) == 1
        and isinstance(asked[0], FalsePositiveRateParity)
        and asked[0].compare == "pairs"
    )
