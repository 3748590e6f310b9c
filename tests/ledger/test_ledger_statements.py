"""A statement against the lines of its ledger: what was recorded is found, and what was not is
grave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

import pytest

from fairveil.core.events import Event, Gaussian, Laplace, NoOp, PerCell, Repeated, compose
from fairveil.ledger import Entry, Ledger, Spend, statement_findings
from fairveil.privacy import PrivacyStatement, Promise
from fairveil.statement.check import Finding

PROMISE = Promise(1.0, 1e-6)
PLAN = [Gaussian(20.0), Repeated(compose([Gaussian(30.0), Laplace(90.0)]), 3)]


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger.create(None, "receipts", 3.0, 1e-6)
    ledger.reserve(Gaussian(50.0), purpose="something else").commit()
    return ledger


@pytest.fixture
def spend(ledger: Ledger) -> Spend:
    spend = ledger.reserve(PLAN, PROMISE)
    spend.commit()
    return spend


def stated(
    spend: Spend, plan: Sequence[Event] = PLAN, promise: Promise = PROMISE, noise: str = "secure"
) -> PrivacyStatement:
    return PrivacyStatement.of(promise, plan, plan=plan, noise=noise, ledger=spend.receipt)  # type: ignore[arg-type]


def found(ledger: Ledger, statement: PrivacyStatement) -> list[Finding]:
    receipt = statement.ledger
    lines = (
        []
        if receipt is None
        else [line for line in ledger.history() if line.spend == receipt.spend]
    )

    def earlier(number: int) -> Iterable[Entry]:
        return islice(ledger.history(), number)

    return statement_findings(statement, lines, earlier)


def grave(ledger: Ledger, statement: PrivacyStatement) -> list[str]:
    return [one.sentence for one in found(ledger, statement) if one.grave]


def test_a_statement_beside_its_spend_has_nothing_against_it(ledger: Ledger, spend: Spend) -> None:
    """Guarantee 2; the same plan spelled otherwise is the same."""
    assert found(ledger, stated(spend)) == []
    pairs = [event for _ in range(3) for event in (Gaussian(30.0), Laplace(90.0))]
    assert found(ledger, stated(spend, [*pairs, Gaussian(20.0)])) == []


def test_more_than_was_reserved_is_grave(ledger: Ledger, spend: Spend) -> None:
    (words,) = grave(ledger, stated(spend, [*PLAN, Gaussian(90.0)], Promise(2.0, 1e-6)))
    assert "1 of its 8 releases" in words
    (words,) = grave(ledger, stated(spend, [Gaussian(19.9), *PLAN[1:]], Promise(2.0, 1e-6)))
    assert "1 of its 7 releases" in words


def test_a_statement_of_several_spends_is_found_in_all_of_them(ledger: Ledger) -> None:
    """As of a post-processor, whose base and counts are two. Each line counts once, and one that
    was given back not at all."""
    base = ledger.reserve(Gaussian(20.0))
    base.commit()
    counts = ledger.reserve(Gaussian(30.0))
    counts.commit()
    (finding,) = found(ledger, stated(counts, [Gaussian(20.0), Gaussian(30.0)]))
    assert finding == Finding(False, f"it is of several spends: lines {base.entry}, {counts.entry}")
    assert grave(ledger, stated(counts, [Gaussian(20.0), Gaussian(20.0), Gaussian(30.0)]))
    for pair in ((23.0, 90.0), (24.0, 91.0)):
        ledger.reserve([Gaussian(noise) for noise in pair]).commit()
    last = ledger.reserve(Gaussian(31.0))
    assert grave(ledger, stated(last, [Gaussian(23.0), Gaussian(24.0), Gaussian(31.0)])), (
        "halves of two lines are no spends"
    )
    given_back = ledger.reserve(Gaussian(25.0))
    given_back.refund()
    late = ledger.reserve(Gaussian(35.0))
    assert grave(ledger, stated(late, [Gaussian(25.0), Gaussian(35.0)]))


def test_answers_without_a_plan_are_spends_of_their_own(ledger: Ledger) -> None:
    spends = [ledger.reserve(Gaussian(20.0 + k)) for k in range(3)]
    statement = PrivacyStatement.of(
        PROMISE, [Gaussian(20.0 + k) for k in range(3)], ledger=spends[-1].receipt
    )
    assert grave(ledger, statement) == []
    more = PrivacyStatement.of(
        PROMISE, [Gaussian(20.0 + k) for k in range(4)], ledger=spends[-1].receipt
    )
    assert grave(ledger, more)


def test_another_relation_other_noise_and_a_refund_are_grave(ledger: Ledger, spend: Spend) -> None:
    """Guarantee 1."""
    assert (
        "under records, replace-one"
        in grave(ledger, stated(spend, PLAN, Promise(3.0, 1e-6, neighbours="replace-one")))[0]
    )
    assert "stated as seeded" in grave(ledger, stated(spend, noise="seeded"))[0]
    back = ledger.reserve(Gaussian(20.0))
    back.refund()
    assert "given back" in grave(ledger, stated(back, [Gaussian(20.0)]))[0]


def test_a_release_that_was_settled_as_if_it_had_not_been_made_is_grave(ledger: Ledger) -> None:
    """Guarantee 1: whoever writes lines anew may settle a spend by less than its statement says was
    released."""
    honest = ledger.reserve(PLAN, PROMISE)
    honest.commit(PLAN[:1], complete=False)
    broken_off = PrivacyStatement.of(PROMISE, PLAN[:1], plan=PLAN, ledger=honest.receipt)
    assert found(ledger, broken_off) == []
    (words,) = grave(ledger, stated(honest))
    assert (
        words
        == f"6 of its releases are not among those that line {honest.entry + 1} is charged for"
    )
    nothing = ledger.reserve(PLAN, PROMISE)
    nothing.commit(NoOp())
    (words,) = grave(ledger, stated(nothing))
    assert words.startswith("7 of its releases")
    base, counts = ledger.reserve(Gaussian(41.0)), ledger.reserve(Gaussian(42.0))
    base.commit()
    counts.commit(NoOp())
    (words,) = grave(ledger, stated(counts, [Gaussian(41.0), Gaussian(42.0)]))
    assert words.startswith("1 of its releases")


def test_what_was_done_finer_than_planned_is_all_of_it(ledger: Ledger) -> None:
    """Guarantee 2: a post-processor's statement has its base's plan, and the base's line what it
    did."""
    spend = ledger.reserve(Gaussian(30.0))
    spend.commit(PerCell(((40.0, 90.0),), (2.0,)))
    assert found(ledger, stated(spend, [Gaussian(30.0)])) == []


def test_a_receipt_of_another_line_is_grave(ledger: Ledger, spend: Spend) -> None:
    statement = stated(spend)
    assert statement.ledger is not None
    for change in ({"hash": "0" * 64}, {"entry": spend.entry + 1}):
        assert (
            "written anew"
            in grave(ledger, replace(statement, ledger=replace(statement.ledger, **change)))[0]
        )  # type: ignore[arg-type]
    assert (
        "not there"
        in grave(ledger, replace(statement, ledger=replace(statement.ledger, spend="f" * 32)))[0]
    )
    assert grave(ledger, replace(statement, ledger=None)) != []


def test_lines_that_no_ledger_wrote_are_a_finding(ledger: Ledger, spend: Spend) -> None:
    (first, last) = [line for line in ledger.history() if line.spend == spend.id]
    statement = stated(spend)
    for lines in (
        [last],
        [first, last, last],
        [replace(first, content="{}").sealed()],
        [replace(first, content="[").sealed()],
    ):
        findings = statement_findings(statement, lines, lambda number: ())
        assert any(one.grave for one in findings)
    assert (
        "written anew"
        in statement_findings(statement, [replace(first, purpose="x"), last], lambda number: ())[
            0
        ].sentence
    )
