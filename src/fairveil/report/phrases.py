"""Phrases and numbers in words that several parts of a page use."""

from __future__ import annotations

from ..figures import Series
from ..privacy.shown import at_most, promised
from ..privacy.statement.statement import PrivacyStatement
from ..privacy.statement.words import STAMP_WORDS
from .contents import LedgerSection, ReportContents
from .ledger import CONTRADICTS

GUARDED = {"records": "records", "sensitive_features": "the sensitive columns only"}
MORE_THAN_PROMISED = "MORE WAS SPENT THAN THE BUDGET"


def stamps(*statements: PrivacyStatement | None, of: LedgerSection | None = None) -> list[str]:
    """What must not be overlooked, in capitals as the statements have it; `of`: a ledger that may
    contradict itself."""
    found = [CONTRADICTS] if of is not None and any(one.grave for one in of.findings) else []
    for statement in statements:
        if statement is not None:
            broken = statement.promise.is_private and statement.epsilon > statement.promise.epsilon
            found += [
                *(STAMP_WORDS[stamp] for stamp in statement.stamps),
                *([MORE_THAN_PROMISED] if broken else []),
            ]
    return list(dict.fromkeys(found))


def delta_words(delta: float) -> str:
    """
    >>> delta_words(1e-9)
    '1e-9'
    """
    return f"{delta:g}".replace("e-0", "e-")


def own_curves(report: ReportContents) -> list[Series]:
    """The curves that are not published ones."""
    return [one for figure in report.frontiers for one in figure.series if not one.published]


def names_in_full(report: ReportContents) -> bool:
    """Whether one of several models stands on the page in full."""
    return report.statement is not None and report.statement != report.all_models


def alone(report: ReportContents) -> str:
    """The epsilon of one model by itself: of the one shown in full, else of each curve's."""
    if names_in_full(report):
        assert report.statement is not None
        return spent(report.statement)
    epsilons = dict.fromkeys(f"{promised(series.epsilon)}" for series in own_curves(report))
    return f"ε = {' or '.join(epsilons)}" if epsilons else "not known"


def spent(statement: PrivacyStatement) -> str:
    """The epsilon that was spent; "none" where nothing is promised."""
    return (
        f"ε = {at_most(statement.epsilon, statement.promise.epsilon)}"
        if statement.is_private
        else "none"
    )


def count(number: int, noun: str) -> str:
    """
    >>> count(1, "curve"), count(2, "curve")
    ('1 curve', '2 curves')
    """
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def capital(text: str) -> str:
    """With a capital letter."""
    return text[:1].upper() + text[1:]
