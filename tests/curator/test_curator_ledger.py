"""A run and its ledger: reserved before anything is asked, settled once, resumed by its journal and
by nobody else."""

from __future__ import annotations

import math
import os
import shutil

import numpy as np
import pytest

import fairveil as fv
from fairveil.audit import Witness
from fairveil.audit.witness import Heard
from fairveil.core.cost import Filter
from fairveil.core.events import Composed, Gaussian, OnPart, PerCell, Repeated
from fairveil.core.passes import Passes
from fairveil.core.pricing import Measurement
from fairveil.curator import (
    FULL,
    CellCounts,
    Curator,
    GradientSum,
    Journal,
    Linear,
    Part,
    RowCount,
    Rows,
)
from fairveil.errors import (
    InputError,
    LedgerError,
    NotSettled,
    Overspent,
    PrivacyError,
    WentOnElsewhere,
)
from fairveil.ledger import Ledger
from fairveil.ledger.lines import COMMITTED, CREATED, REFUNDED, RESERVED, RESUMED
from fairveil.ledger.store import Store
from fairveil.privacy import NoiseSource, Promise
from fairveil.statement.document import PrivacyStatement, PublicFact, StatedBound
from fairveil.statement.form import READ_FROM_DATA

PROMISE = Promise(3.0, 1e-6, neighbours="replace-one")
PLAN = Repeated(
    Composed((Gaussian(30.0), OnPart(Gaussian(20.0), 0, 2), OnPart(Gaussian(20.0), 1, 2))), 4
)


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(0)
    X, a = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    return Rows.from_arrays(X, rng.integers(0, 2, 40), [a], classes=(0, 1), groups=[(0, 1)])


@pytest.fixture
def book() -> Ledger:
    return budget()


def budget(epsilon: float = 9.0, name: str = "people", **options) -> Ledger:
    return Ledger.create(None, name, epsilon, 1e-6, neighbours="replace-one", **options)


def curator_of(rows, book, plan=PLAN, promise=PROMISE, **options) -> Curator:
    return Curator(rows, promise, plan=plan, ledger=book, purpose="a test", **options)


def follow(curator, rows, count, start=0) -> None:
    """The next `count` answers of PLAN, from number `start`."""
    measurement = CellCounts(rows.cells())
    for i in range(start, start + count):
        curator.answer(
            [(measurement, 20.0 if i % 3 else 30.0)], Part(i % 3 - 1, 2) if i % 3 else FULL
        )


def kinds(book) -> list[str]:
    return [line.kind for line in book.history()][1:]


def charged(book) -> int:
    return list(book.history())[-1].spent


def cost(book, events) -> int:
    return book.terms.cost(events, PROMISE).units


class Killed(BaseException):
    """What ends a run in the middle."""


def killed_after(count, curator, rows) -> None:
    follow(curator, rows, count)
    raise Killed


# Guarantee 1
# --------------------------------------------------------------------------------------------------


def test_guarantee_1_the_plan_is_reserved_whole_and_committed_by_its_end(rows, book) -> None:
    curator = curator_of(rows, book)
    assert kinds(book) == [RESERVED]
    assert charged(book) == cost(book, PLAN) > 0
    follow(curator, rows, 12)
    curator.finish()
    curator.close()
    assert kinds(book) == [RESERVED, COMMITTED]
    assert charged(book) == cost(book, PLAN)
    *_, last = book.history()
    assert (last.purpose, last.values) == ("a test", {"events": None, "complete": True})
    receipt = PrivacyStatement.of_run(curator).ledger
    assert receipt is not None
    assert (receipt.dataset, receipt.entry) == ("people", 1)
    assert PrivacyStatement.of_run(curator).check() == []
    assert book.check([receipt]) == []


def test_guarantee_1_what_is_finer_than_the_plan_is_committed_as_it_was(rows, book) -> None:
    curator = curator_of(rows, book, [Gaussian(30.0)])
    curator.answer([Measurement(CellCounts(rows.cells()), np.array([40.0, 90.0]))])
    curator.finish()
    *_, last = book.history()
    assert isinstance(curator.log.events[0], PerCell)
    assert last.values["events"] == curator.log.events[0].to_dict()
    assert charged(book) == cost(book, list(curator.log.events)) < cost(book, Gaussian(30.0))


@pytest.mark.parametrize(
    ("terms", "promise", "options", "words"),
    [
        ({"epsilon": 0.1}, PROMISE, {}, "The largest epsilon that fits"),
        ({}, Promise(math.inf, 0.0), {"plan": None}, "finite epsilon"),
        ({}, Promise(3.0, 1e-6, "sensitive_features"), {}, "a promise for records"),
        ({"production": True}, PROMISE, {"noise": NoiseSource.seeded(0)}, "secure noise"),
        (
            {"production": True},
            PROMISE,
            {"facts": [PublicFact("words", "many", READ_FROM_DATA)]},
            "words",
        ),
        (
            {"production": True},
            PROMISE,
            {"bounds": [StatedBound("scale", "L2", 1.0, "seen", READ_FROM_DATA)]},
            "scale",
        ),
    ],
)
def test_guarantee_1_a_refusal_leaves_nothing_behind(
    rows, tmp_path, terms, promise, options, words
) -> None:
    book = budget(**terms)
    for earlier in (None, Journal(tmp_path / "deep" / "j")):
        with pytest.raises(PrivacyError, match=words):
            curator_of(rows, book, **{"promise": promise, "earlier": earlier, **options})
    assert kinds(book) == []
    assert not (tmp_path / "deep").exists()


def test_guarantee_1_without_a_plan_each_answer_is_reserved_before_a_row_is_read(
    rows, monkeypatch
) -> None:
    book = budget(1.0)
    curator = curator_of(rows, book, None, earlier=None)
    assert kinds(book) == []
    curator.answer([(CellCounts(rows.cells()), 12.0)], purpose="counts")
    curator.answer([(RowCount(), 12.0)])  # public, and free
    assert kinds(book) == [RESERVED, COMMITTED]
    assert charged(book) == cost(book, Gaussian(12.0))
    assert [line.purpose for line in book.history()][1:] == ["a test: counts"] * 2
    monkeypatch.setattr(Passes, "run", lambda *_: pytest.fail("rows were read"))
    with pytest.raises(Overspent) as refused:
        curator.answer([(CellCounts(rows.cells()), 3.0)])
    assert refused.value.spent > 0
    assert kinds(book) == [RESERVED, COMMITTED]
    assert len(curator.log) == 1
    assert PrivacyStatement.of_run(curator).ledger.entry == 1


def test_guarantee_1_what_the_runs_own_filter_refuses_is_given_back(rows, book) -> None:
    curator = curator_of(rows, book, None, promise=Promise(0.5, 1e-6, neighbours="replace-one"))
    with pytest.raises(PrivacyError, match="filter"):
        curator.answer([(CellCounts(rows.cells()), 3.0)])
    assert kinds(book) == [RESERVED, REFUNDED]
    assert charged(book) == 0


def test_guarantee_1_the_block_s_ledger_is_used_and_only_a_ledger_is_taken(rows, book) -> None:
    other = budget(name="others")
    with book.recording():
        curator_of(rows, None).close()
        curator_of(rows, other).close()
    curator_of(rows, None).close()
    assert kinds(book) == kinds(other) == [RESERVED, REFUNDED]
    for wrong in ("people", False, PROMISE):
        with pytest.raises(InputError, match=r"^ledger: expected a Ledger"):
            curator_of(rows, wrong)


def test_an_attack_on_released_answers_needs_no_ledger(rows, book) -> None:
    """It adds up the attacker's own data sets; the block is of those who release."""
    promise = Promise(3.0, 1e-6, "sensitive_features")
    question = GradientSum(Linear(np.zeros(3)), 1.0, rows.cells(), np.ones((2, 1, 2)))
    with book.recording():
        score = Witness(rows, rows, promise).score(
            [Heard((Measurement(question, 9.0),), FULL, (np.zeros(3),))]
        )
    assert score == 0.0
    assert kinds(book) == []


# Guarantee 2
# --------------------------------------------------------------------------------------------------


def test_guarantee_2_a_run_that_asked_nothing_is_given_back_and_one_interrupted_spends_what_it_asked(
    rows, book
) -> None:
    with curator_of(rows, book):
        pass
    assert kinds(book) == [RESERVED, REFUNDED]
    assert charged(book) == 0
    with pytest.raises(Killed), curator_of(rows, book) as curator:
        killed_after(2, curator, rows)
    assert kinds(book)[2:] == [RESERVED, COMMITTED]
    *_, last = book.history()
    assert last.values["complete"] is False
    assert (
        charged(book)
        == cost(book, [Gaussian(30.0), OnPart(Gaussian(20.0), 0, 2)])
        < cost(book, PLAN)
    )
    with pytest.raises(PrivacyError, match="was ended"):
        follow(curator, rows, 1, 2)
    curator.close()
    assert len(kinds(book)) == 4
    assert not [finding for finding in book.check() if finding.grave]


@pytest.mark.parametrize("planned", [True, False])
def test_guarantee_2_an_answer_that_failed_is_charged_and_what_was_planned_with_it(
    rows, book, planned
) -> None:
    def fails(entry) -> None:
        if entry.number == 1:
            raise Killed

    curator = curator_of(rows, book, PLAN if planned else None, heard=fails)
    with pytest.raises(Killed), curator:
        follow(curator, rows, 2)
    asked = [Gaussian(30.0), OnPart(Gaussian(20.0), 0, 2)]
    assert len(curator.log) == 1
    assert curator._books.budget.admitted == tuple(asked)
    assert charged(book) == (
        cost(book, PLAN) if planned else sum(cost(book, event) for event in asked)
    )
    *_, last = book.history()
    assert last.kind == COMMITTED
    assert last.values == {"events": None, "complete": not planned}


def test_guarantee_2_who_stops_a_run_by_hand_is_charged_for_what_had_begun(rows, book) -> None:
    def stopped(entry) -> None:
        if entry.number == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), curator_of(rows, book, heard=stopped) as curator:
        follow(curator, rows, 2)
    assert (
        charged(book)
        == cost(book, [Gaussian(30.0), OnPart(Gaussian(20.0), 0, 2)])
        < cost(book, PLAN)
    )


def test_guarantee_2_what_cannot_be_settled_stays_charged_and_hides_no_error(
    rows, book, monkeypatch
) -> None:
    def away(*_):
        raise LedgerError("the store is away")

    done, broken = curator_of(rows, book), curator_of(rows, book)
    follow(done, rows, 12)
    follow(broken, rows, 1)
    free = curator_of(rows, book, None)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", away)
        with pytest.warns(NotSettled, match="the store is away"):
            done.finish()
        with pytest.raises(Killed) as killed, broken:
            raise Killed
        assert "stays charged" in killed.value.__notes__[0]
        with pytest.raises(LedgerError, match="away"):
            free.answer([(CellCounts(rows.cells()), 12.0)])
    assert PrivacyStatement.of_run(done).ledger.entry == 1
    done.close()
    assert kinds(book) == [RESERVED, RESERVED]
    assert charged(book) == 2 * cost(book, PLAN)
    assert len(free.log) == 0


def test_guarantee_2_a_run_that_may_go_on_hides_no_error_where_the_store_is_away(
    rows, book, tmp_path, monkeypatch
) -> None:
    def away(*_):
        raise LedgerError("the store is away")

    curator = curator_of(rows, book, earlier=Journal(tmp_path / "j"))
    follow(curator, rows, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "lines", away)
        with pytest.raises(Killed) as killed, curator:
            raise Killed
    assert "the store is away" in killed.value.__notes__[0]
    assert kinds(book) == [RESERVED]


# Guarantee 3
# --------------------------------------------------------------------------------------------------


def test_guarantee_3_a_run_is_charged_once_in_however_many_sittings(rows, book, tmp_path) -> None:
    path = tmp_path / "j"
    with pytest.raises(Killed), curator_of(rows, book, earlier=Journal(path)):
        raise Killed  # before its first answer: it may go on, and stays reserved
    for sitting in range(3):
        curator = curator_of(rows, book, earlier=Journal(path))
        follow(curator, rows, 4 + 4 * sitting)
        if sitting < 2:
            curator.close()
            assert kinds(book)[-1] == RESUMED
            assert charged(book) == cost(book, PLAN)
    curator.finish()
    assert kinds(book) == [RESERVED, RESUMED, RESUMED, RESUMED, COMMITTED]
    assert charged(book) == cost(book, PLAN)
    again = curator_of(rows, book, earlier=Journal(path))  # to look at it once more
    again.finish()
    assert len(kinds(book)) == 5
    assert PrivacyStatement.of_run(again).ledger == PrivacyStatement.of_run(curator).ledger
    assert PrivacyStatement.of_run(again).ledger.spend in path.read_text()
    assert not [
        finding
        for finding in book.check([PrivacyStatement.of_run(curator).ledger])
        if finding.grave
    ]


def test_guarantee_3_a_process_that_died_before_it_settled_spends_no_second_time(
    rows, book, tmp_path
) -> None:
    curator = curator_of(rows, book, earlier=Journal(tmp_path / "j"))
    follow(curator, rows, 12)
    curator.journal.close()
    del curator
    curator_of(rows, book, earlier=Journal(tmp_path / "j")).finish()
    assert kinds(book) == [RESERVED, RESUMED, COMMITTED]
    assert charged(book) == cost(book, PLAN)


@pytest.mark.parametrize("finished", [True, False])
def test_guarantee_3_a_run_whose_journal_was_copied_meanwhile_covers_both(
    rows, book, tmp_path, finished
) -> None:
    path, copy = tmp_path / "j", tmp_path / "copy"
    one = curator_of(rows, book, earlier=Journal(path))
    follow(one, rows, 5)
    shutil.copy(path, copy)
    two = curator_of(rows, book, earlier=Journal(copy))
    follow(one, rows, 7, 5)
    follow(two, rows, 12)
    two.finish()
    if finished:
        with pytest.raises(WentOnElsewhere):
            one.finish()
    else:
        one.close()
    assert charged(book) == 2 * cost(book, PLAN)
    assert not [finding for finding in book.check() if finding.grave]


@pytest.mark.parametrize("finished", [True, False])
def test_guarantee_3_a_copy_of_a_journal_is_refused_and_left_alone(
    rows, book, tmp_path, finished
) -> None:
    path, copy = tmp_path / "j", tmp_path / "copy"
    one = curator_of(rows, book, earlier=Journal(path))
    follow(one, rows, 5)
    one.close()
    shutil.copy(path, copy)
    two = curator_of(rows, book, earlier=Journal(path))
    follow(two, rows, 12 if finished else 6)
    two.finish() if finished else two.close()
    before, lines = copy.read_bytes(), len(kinds(book))
    for _ in range(2):
        with pytest.raises(PrivacyError, match="went on"):
            curator_of(rows, book, earlier=Journal(copy))
        assert copy.read_bytes() == before
    assert len(kinds(book)) == lines


def test_guarantee_3_a_run_that_began_without_a_ledger_is_charged_for_all_of_it(
    rows, book, tmp_path
) -> None:
    path = tmp_path / "j"
    one = curator_of(rows, None, earlier=Journal(path))
    follow(one, rows, 5)
    one.close()
    two = curator_of(rows, book, earlier=Journal(path))
    assert charged(book) == cost(book, PLAN)
    follow(two, rows, 12)
    two.finish()
    assert kinds(book) == [RESERVED, COMMITTED]


def test_guarantee_3_without_a_plan_what_came_before_is_charged_once(rows, book, tmp_path) -> None:
    path, measurement = tmp_path / "j", [(CellCounts(rows.cells()), 20.0)]
    cap = Filter.create(PROMISE, "gaussian")
    with curator_of(rows, None, None, cap=cap, earlier=Journal(path)) as one:
        one.answer(measurement)
    for sitting in range(2):
        with curator_of(rows, book, None, cap=cap, earlier=Journal(path)) as curator:
            assert charged(book) == (1 + sitting) * cost(book, Gaussian(20.0))
            for _ in range(2 + sitting):
                curator.answer(measurement)
    assert kinds(book) == [RESERVED, COMMITTED] * 3
    others = budget(name="others")
    for wrong in (None, others):
        with pytest.raises(LedgerError, match="the run began with"):
            curator_of(rows, wrong, None, cap=cap, earlier=Journal(path))
    assert kinds(others) == []


def test_guarantee_3_a_journal_that_cannot_be_begun_gives_back_what_was_reserved(
    rows, book, tmp_path
) -> None:
    first = curator_of(rows, None, earlier=Journal(tmp_path / "j"))
    with pytest.raises(PrivacyError, match="in use"):
        curator_of(rows, book, earlier=Journal(tmp_path / "j"))
    first.close()
    assert kinds(book) == [RESERVED, REFUNDED]
    assert charged(book) == 0


def test_guarantee_3_a_journal_that_another_run_begins_meanwhile_is_refused(
    rows, book, tmp_path, monkeypatch
) -> None:
    path, reserve = tmp_path / "j", Ledger.reserve
    other = budget(name="others")

    def late(self, *given, **options):
        spend = reserve(self, *given, **options)
        if self is book:
            curator_of(rows, other, earlier=Journal(path)).close()
        return spend

    monkeypatch.setattr(Ledger, "reserve", late)
    with pytest.raises(PrivacyError, match="grew meanwhile"):
        curator_of(rows, book, earlier=Journal(path))
    assert kinds(book) == [RESERVED, REFUNDED]
    assert kinds(other) == [RESERVED]


def test_guarantee_3_a_sitting_that_cannot_be_written_gives_back_nothing(
    rows, book, tmp_path, monkeypatch
) -> None:
    def full(*_):
        raise OSError("no space left")

    with curator_of(rows, book, earlier=Journal(tmp_path / "j")) as curator:
        follow(curator, rows, 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="no space left"):
            curator_of(rows, book, earlier=Journal(tmp_path / "j"))
    assert kinds(book) == [RESERVED, RESUMED]
    assert charged(book) == cost(book, PLAN)


def test_the_front_door_has_the_names() -> None:
    assert fv.Ledger is Ledger
    assert fv.ledger.Ledger is Ledger
    assert next(budget().history()).kind == CREATED
