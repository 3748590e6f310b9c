"""What the ledger of a post-processor is told of its base: one ledger for both, and no base that is
charged twice, or never.

| base | its spend |
|---|---|
| fitted here | its own fit's, in the post-processor's ledger |
| fitted before, with a receipt of this ledger that holds its releases | there already |
| fitted before, without one | what its statement charges, reserved beside the counts |
| free, or declared public | none |

Guarantees (tests/estimators/test_estimators_ledger.py):
1. What the statement charges is in the ledger, once.
2. Where there is no room for base and counts together, that is said before the base is fitted, as
   far as it can be foreseen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...core.cost import gaussian_mu
from ...core.events import Event, Gaussian, Pure
from ...errors import Overspent
from ...ledger import Ledger, statement_findings
from ...ledger.recording import settle
from ...statement.document import PrivacyStatement, Receipt, names_read
from .bases import Base, BaseOptions, carries_a_promise, is_fitted, thawed


def ledger_inside(estimator: object) -> object:
    """The ledger of a base that is to be fitted here."""
    fitted_here = carries_a_promise(estimator) and not is_fitted(estimator)
    return thawed(estimator).get_params(deep=False).get("ledger") if fitted_here else None


def about_to_spend(estimator: object, wishes: BaseOptions) -> tuple[Event, ...]:
    """What a base that is fitted here is about to cost, near enough to refuse early: one release of
    its share of the promise, Gaussian or pure. Nothing where it may be free."""
    promise, fitted = wishes.promise, estimator is not None and is_fitted(estimator)
    if fitted or not promise.is_private or promise.protects != "records":
        return ()
    epsilon, delta = promise.epsilon * wishes.share, promise.delta * wishes.share
    return (Gaussian(1.0 / gaussian_mu(epsilon, delta)) if delta > 0 else Pure(epsilon),)


@contextmanager
def recorded(base: Base, wishes: BaseOptions, purpose: str) -> Iterator[Receipt | None]:
    """Charge a base that the ledger does not hold, while the block opens a curator for the rest:
    given back where that fails, so that a refused fit can be tried again at no cost. The receipt of
    the base's spend, if there is one."""
    ledger, statement = wishes.ledger, base.statement
    if ledger is not None and base.not_covered:
        ledger.require(
            wishes.promise, read_from_data=["a base classifier that was fitted without a guarantee"]
        )
    if ledger is None or statement is None or not base.spent or _holds(ledger, statement):
        yield None if statement is None else statement.ledger
        return
    read = names_read(statement.facts, statement.bounds)
    secure = statement.noise == "secure"
    spend = ledger.reserve(
        base.spent,
        wishes.promise,
        purpose=f"{purpose}: its base",
        secure=secure,
        read_from_data=read,
    )
    try:
        yield spend.receipt
    except BaseException:
        settle(spend.refund)
        raise
    settle(spend.commit)


def _holds(ledger: Ledger, statement: PrivacyStatement) -> bool:
    """Whether this very ledger has the line of its receipt, reserved for what the statement lists,
    and never gave its charge back. A receipt of another release says nothing of this one."""
    receipt = statement.ledger
    if receipt is None or receipt.dataset != ledger.dataset:
        return False
    own = [line for line in ledger.history(receipt.entry) if line.spend == receipt.spend]
    found = statement_findings(statement, own, lambda number: ledger.history(0, number))
    return not any(one.grave for one in found)


def also_spent(error: Overspent) -> Overspent:
    """The ledger has no room for the counts, and the base was fitted before that was known."""
    words = (
        f"{error} This is about the counts of the post-processor: its base classifier was fitted, "
        f"and stays charged. Leave "
        "budget for both: pass a smaller epsilon, or fit the base by itself and pass it fitted."
    )
    return Overspent(words, **error.figures)
