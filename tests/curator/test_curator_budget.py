"""One answer after another, and a run that can be closed whenever it was interrupted."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from fairveil.core.events import Gaussian
from fairveil.curator import Curator, Rows
from fairveil.curator.books import Budget
from fairveil.curator.questions.attached import RowFunction
from fairveil.errors import PrivacyError
from fairveil.privacy import Promise


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


def test_an_answer_is_not_asked_for_inside_of_another() -> None:
    curator = Curator(Rows.from_arrays(np.ones((4, 1))), Promise(10.0, 1e-6))

    def nested(block: object) -> object:
        curator.answer(
            [(RowFunction(lambda inner: inner.numbers.T, 1, 1.0, frozenset({"features"})), 50.0)]
        )
        return np.zeros((4, 1))

    curator.answer(
        [(RowFunction(nested, 1, 1.0, frozenset({"features"})), 50.0)]
    )  # the rows contribute zero, as after any error of user code
    curator.close()
    assert any("one answer after another" in told for told in curator.trouble())


def test_a_run_that_was_closed_gives_no_answer() -> None:
    budget = Budget(Promise(1.0, 1e-6), Gaussian(10.0), None)
    budget.close()
    with pytest.raises(PrivacyError, match="a run that goes on"), budget.release(Gaussian(10.0)):
        pass
