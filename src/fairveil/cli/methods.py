"""The methods of `fairveil fit --method`: an estimator each, and what a page says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..estimators import OddsPostProcessor, OracleGameClassifier, RateConstrainedClassifier
from ..fairness import Notion
from ..models import MixtureModel
from .deciding import Fitted, by_chance

NO_GUARANTEE = "Nothing was asked for that a guarantee could be about."


@dataclass(frozen=True)
class Method:
    """`name`: on a page; `subject`: what it makes, with the table's name in it."""

    name: str
    subject: str
    made: Callable[..., Fitted]

    def unfitted(self, notions: list[Notion], **shared: Any) -> Fitted:
        """The estimator, with what all methods share."""
        return self.made(constraints=notions or None, **shared)


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
}


def remarks(clf: Fitted, *, measured: bool) -> tuple[str, ...]:
    """Sentences about a fitted model for the notes of its page; `measured`: whether held-out rows were measured."""
    said = []
    if isinstance(clf.model_, MixtureModel):
        said.append(f"The mixture has {len(clf.model_.models):,} rules; each decision is that of one of them, drawn by chance.")
    if not isinstance(clf, RateConstrainedClassifier) and clf.guarantee_ is None:
        said.append(NO_GUARANTEE)
    if by_chance(clf):
        rates = "what was measured on held-out rows are expected rates, by the law of its decisions, not those of one draw"
        said.append(f"This model decides by chance: {rates if measured else 'fairveil predict draws from its law'}.")
    return tuple(said)
