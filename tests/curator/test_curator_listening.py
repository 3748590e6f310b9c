"""Who hears a curator: the context that asked for it alone, and nothing changes for it."""

from __future__ import annotations

import threading

import numpy as np

from fairveil.core.books import heard_by
from fairveil.curator import CellCounts, Curator, Rows
from fairveil.privacy import NoiseSource, Promise


class Ear:
    def __init__(self):
        self.rows, self.answers = [], []

    def opened(self, rows):
        self.rows.append(rows)

    def answered(self, measurements, batch, answers, scalings):
        self.answers.append(answers)


ROWS = Rows.from_arrays(np.zeros((30, 1)), None, [["f", "m"] * 15], groups=[["f", "m"]])


def released():
    curator = Curator(ROWS, Promise(1.0, 1e-6), noise=NoiseSource.seeded(1))
    return curator.answer([(CellCounts(curator.cells()), 20.0)])[0], curator.log.entries[0].event


def test_guarantee_1_no_other_thread_is_heard_and_nobody_listens_afterwards() -> None:
    ear = Ear()
    with heard_by(ear):
        other = threading.Thread(target=released)
        other.start()
        other.join()
        assert not ear.rows
        released()
    released()
    assert ear.rows == [ROWS]
    assert len(ear.answers) == 1


def test_guarantee_2_nothing_changes_for_being_heard() -> None:
    alone, ear = released(), Ear()
    with heard_by(ear):
        heard = released()
    assert np.array_equal(alone[0], heard[0])
    assert alone[1] == heard[1]
    assert np.array_equal(ear.answers[0][0], alone[0])
