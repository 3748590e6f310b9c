"""The methods of `fairveil fit --method`: an estimator each, and what a page says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import _checks
from ..errors import InputError, complaint
from ..estimators import FermiClassifier, OddsPostProcessor, OracleGameClassifier, RateConstrainedClassifier
from ..estimators.descending import DescentClassifier
from ..estimators.promises import notions_of
from ..fairness import Notion
from ..fairness.notions import parse
from ..learning.fermi import NOTIONS
from ..models import MixtureModel
from .deciding import Fitted, by_chance

NO_GUARANTEE = "Nothing was asked for that a guarantee could be about."


@dataclass(frozen=True)
class Method:
    """`name`: on a page; `subject`: what it makes, with the table's name in it."""

    name: str
    subject: str
    made: Callable[..., Fitted]
    penalises: bool = False

    def asked(
        self, constraint: list[str] | None, notion: str | None, strength: float | None
    ) -> tuple[list[Notion], dict[str, Any]]:
        """What --constraint, or --notion and --strength ask for: notions for the page, and arguments of the estimator."""
        if self.penalises:
            return _penalised(constraint, notion, strength)
        for option, got in (("--notion", notion), ("--strength", strength)):
            if got is not None:
                remedy = "Say --constraint demographic_parity:0.05, say, or --method fermi."
                raise InputError(
                    complaint(expected="nothing, of a method that keeps bounds", of=option, got=got, remedy=remedy)
                )
        notions = notions_of(constraint)
        return notions, {"constraints": notions or None}


METHODS = {
    "rate-constrained": Method(
        "rate-constrained private descent (RateConstrainedClassifier)",
        "A linear classifier, fitted to {source} by rate-constrained private descent.",
        RateConstrainedClassifier,
    ),
    "post-processing": Method(
        "private post-processing (OddsPostProcessor)",
        "A linear classifier, fitted to {source}, whose decisions are changed by chance afterwards: a table of chances that "
        "solves a linear program over private counts.",
        OddsPostProcessor,
    ),
    "game": Method(
        "private game of learner against auditor (OracleGameClassifier)",
        "A mixture of classifiers, the learner's plays in a private game against an auditor on {source}.",
        OracleGameClassifier,
    ),
    "fermi": Method(
        "private descent against a penalty on dependence (FermiClassifier)",
        "A linear classifier, fitted to {source} by private descent on its loss and a penalty: the mutual information of "
        "prediction and group.",
        FermiClassifier,
        penalises=True,
    ),
}


def _penalised(constraint: list[str] | None, notion: str | None, strength: float | None) -> tuple[list[Notion], dict[str, Any]]:
    """Of a method that makes gaps dear and bounds none."""
    if constraint:
        remedy = "Say --notion demographic_parity --strength 5, say, or --method rate-constrained, which keeps bounds."
        raise InputError(complaint(expected="no bound: it makes gaps dear", of="--constraint", got=constraint, remedy=remedy))
    name, comma, options = (NOTIONS[0] if notion is None else notion).partition(",")
    name = name.strip().replace("-", "_")
    if name not in NOTIONS:
        remedy = f"Say --notion {NOTIONS[0]}, say, without a bound."
        raise InputError(complaint(expected=f"one of {', '.join(NOTIONS)}", of="--notion", got=notion, remedy=remedy))
    if "max_gap" in options:
        raise InputError(complaint(expected="no bound", of="--notion", got=notion, remedy="Say --strength 5, say."))
    found: Any = parse(f"{name}:0{comma}{options}")
    if found.compare != "pairs":
        remedy = "Leave it out: the penalty looks at all groups together."
        raise InputError(complaint(expected="no compare=", of="--notion", got=notion, remedy=remedy))
    wanted = _checks.non_negative(strength=1.0 if strength is None else strength)
    given = {"notion": name, "strength": wanted, "groups": found.groups, "positive": getattr(found, "positive", None)}
    return [found], given


def remarks(clf: Fitted, *, measured: bool) -> tuple[str, ...]:
    """Sentences about a fitted model for the notes of its page; `measured`: whether held-out rows were measured."""
    said = []
    if isinstance(clf.model_, MixtureModel):
        said.append(f"The mixture has {len(clf.model_.models):,} rules; each decision is that of one of them, drawn by chance.")
    if isinstance(clf, FermiClassifier):
        said.append(
            f"No gap was bounded: {clf.strength:g} times the mutual information of prediction and group was added to the loss. "
            "What came of it is what was measured; a larger --strength makes gaps smaller and errors more."
        )
    if not isinstance(clf, DescentClassifier) and clf.guarantee_ is None:
        said.append(NO_GUARANTEE)
    if by_chance(clf):
        rates = "what was measured on held-out rows are expected rates, by the law of its decisions, not those of one draw"
        said.append(f"This model decides by chance: {rates if measured else 'fairveil predict draws from its law'}.")
    return tuple(said)
