"""The books of a run and what its rounds share: by the guarantees of core/books.py, bounds.py
and rounds.py."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from fairveil.core.books import Budget
from fairveil.core.cost import Filter
from fairveil.core.curator import MOST_READY
from fairveil.core.events import Gaussian, Repeated
from fairveil.curator import CellCounts, Curator, FeatureSums, Journal, Rows, Weighed
from fairveil.errors import BudgetError, PrivacyError
from fairveil.ledger import Ledger
from fairveil.privacy import NoiseSource, Promise
from fairveil.statement.document import PrivacyStatement

PROMISE = Promise(3.0, 1e-6, neighbours="replace-one")


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(0)
    X, a = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    return Rows.from_arrays(X, rng.integers(0, 2, 40), [a], classes=(0, 1), groups=[(0, 1)])


def test_guarantee_1_of_books_what_is_refused_anywhere_is_charged_nowhere(rows) -> None:
    """The ledger has room for many answers, the filter for a small one: the second is refused, its
    spend given back."""
    book = Ledger.create(None, "people", 9.0, 1e-6, neighbours="replace-one")
    narrow = Promise(1.0, 1e-6, neighbours="replace-one")
    curator = Curator(
        rows, narrow, cap=Filter.create(narrow, "renyi"), ledger=book, noise=NoiseSource.secure()
    )
    curator.answer([(CellCounts(rows.cells()), 8.0)])
    admitted, log, charged = (
        curator._books.budget.admitted,
        curator.log.events,
        list(book.history())[-1].spent,
    )
    with pytest.raises(BudgetError):
        curator.answer([(CellCounts(rows.cells()), 1.0)])
    assert (curator._books.budget.admitted, curator.log.events) == (admitted, log)
    assert list(book.history())[-1].spent == charged


def test_guarantee_2_of_books_a_release_is_written_before_its_answer_is_returned(
    rows, tmp_path
) -> None:
    """A journal that fails keeps the answer back, and the plan goes no further."""
    written = []

    def fails(entry) -> None:
        written.append(entry)
        if len(written) == 2:
            raise OSError("no space left")

    plan = Repeated(Gaussian(30.0), 3)
    curator = Curator(
        rows,
        PROMISE,
        plan=plan,
        heard=fails,
        earlier=Journal(tmp_path / "run"),
        noise=NoiseSource.seeded(0),
    )
    ask = CellCounts(rows.cells())
    curator.answer([(ask, 30.0)])
    assert len(written) == len(curator.log) == 1
    with pytest.raises(OSError, match="no space"):
        curator.answer([(ask, 30.0)])
    with pytest.raises(PrivacyError, match="broke off"):
        curator.answer([(ask, 30.0)])


def test_guarantee_3_of_books_the_statement_has_the_largest_bound_of_all_sittings(
    rows, tmp_path
) -> None:
    wide, narrow = FeatureSums(rows.cells(), 4.0), FeatureSums(rows.cells(), 1.0)
    for clips in ((narrow, wide), (narrow, wide, narrow), (narrow,)):
        curator = Curator(
            rows, PROMISE, earlier=Journal(tmp_path / "run"), noise=NoiseSource.seeded(0)
        )
        for question in clips:
            curator.answer([(question, 30.0)])
        (bound,) = PrivacyStatement.of_run(curator).bounds
        assert bound.sensitivity >= 4.0 * np.sqrt(2.0)
        curator.close()


def test_guarantee_3_of_rounds_weights_of_a_round_before_are_forgotten(rows) -> None:
    cells = rows.cells()
    question = Weighed(FeatureSums(None, 1.0), cells, (1.0, 1.0))
    curator = Curator(rows, Promise(1e3, 1e-6), noise=NoiseSource.seeded(0))
    for factor in range(1, 2 * MOST_READY):
        curator.answer([(question.at(factors=(1.0, factor)), 3.0)])
    assert len(curator._ready) == MOST_READY


def test_a_run_is_closed_while_an_interrupted_answer_still_has_its_turn() -> None:
    """Ctrl-C just before an answer's end: whoever keeps the traceback keeps the answer's turn,
    too."""
    closed: list[bool] = []

    def interrupted() -> None:
        budget = Budget(Promise(1.0, 1e-6), Gaussian(10.0), None)
        turn = budget.release(Gaussian(10.0))
        turn.__enter__()  # and never left
        budget.close()
        closed.append(not budget.is_open)

    thread = threading.Thread(target=interrupted, daemon=True)  # which waited for ever, once
    thread.start()
    thread.join(60)
    assert closed == [True]
