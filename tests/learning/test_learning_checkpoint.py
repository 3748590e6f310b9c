"""Killed and gone on: the log is the plan, lost rounds stay charged, and nothing is released
twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import checkpoint_search
import numpy as np
import pytest
from checkpoint_search import PARTS, PROMISE, ROUNDS, Small, curator_for, make_rows

from fairveil.core.events import spelled_out
from fairveil.curator import Curator
from fairveil.errors import ChecksumError, InputError, PrivacyError
from fairveil.learning import descend
from fairveil.learning.checkpoint import Checkpoint, check_values
from fairveil.learning.descent import Search
from fairveil.privacy import NoiseSource, Promise


class Killed(BaseException):
    """What ends a run in the middle."""


def stop_at(round: int):
    def progress(done: int, rounds: int) -> None:
        assert rounds == ROUNDS
        if done == round:
            raise Killed

    return progress


def killed_at(round: int, folder: Path, every: int = 5) -> Curator:
    search, checkpoint = Small(make_rows()), Checkpoint(folder, every)
    curator = curator_for(search, checkpoint)
    with pytest.raises(Killed):
        descend(curator, search, stop_at(round), checkpoint)
    return curator


def gone_on(folder: Path, every: int = 5, seed: int = 0):
    search, checkpoint = Small(make_rows()), Checkpoint(folder, every)
    curator = curator_for(search, checkpoint, seed=seed)
    seen: list[int] = []
    return (
        descend(curator, search, lambda done, rounds: seen.append(done), checkpoint),
        curator,
        seen,
    )


def whole():
    search = Small(make_rows())
    curator = Curator(search.rows, PROMISE, plan=search.plan, noise=NoiseSource.seeded(0))
    return descend(curator, search), curator


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_run_that_nobody_kills_is_the_run_without_a_checkpoint(tmp_path) -> None:
    found, curator, _ = gone_on(tmp_path / "new" / "fit")
    other, beside = whole()
    assert np.array_equal(found.weights, other.weights)
    assert curator.log.events == beside.log.events
    assert curator.statement() == beside.statement()


@pytest.mark.parametrize("round", [1, 4, 5, 7, 11, 12])
def test_guarantee_1_lost_rounds_are_charged_and_not_done_again(tmp_path, round) -> None:
    before = killed_at(round, tmp_path)
    kept = round - round % 5
    found, curator, seen = gone_on(tmp_path)
    other, beside = whole()
    assert seen == list(range(round + 1, ROUNDS + 1))
    assert (
        list(curator.log.events)
        == list(spelled_out(Small(make_rows()).plan))
        == list(beside.log.events)
    )
    assert len(before.log) == 1 + round  # before the first round, and `round` rounds
    assert curator.log.entries[: 1 + round] == before.log.entries
    assert [entry.batch for entry in curator.log.entries[1:-1]] == [
        f"part {1 + t % PARTS} of {PARTS}" for t in range(ROUNDS)
    ]
    assert len(found.heard) == ROUNDS - (round - kept)  # as many fewer rounds as were lost
    assert found.heard[:kept] == other.heard[:kept]
    for statement in (before.statement(), curator.statement()):
        assert statement.check() == []
        assert statement.epsilon == beside.statement().epsilon
        assert (
            statement.bounds == beside.statement().bounds
            or statement.bounds == beside.statement().bounds[:-1]
        )
    assert curator.statement().bounds == beside.statement().bounds


def test_guarantee_1_no_noise_is_drawn_twice_by_a_seeded_run(tmp_path) -> None:
    """Exact answers repeat where weights do: then equal noise would show as an equal answer.
    Numbers tell it for all."""
    killed_at(7, tmp_path)
    _, curator, _ = gone_on(tmp_path)
    numbers = [entry.number for entry in curator.log.entries]
    assert len(set(numbers)) == len(numbers) == ROUNDS + 2
    assert min(numbers[8:]) > max(numbers[:8])
    source = NoiseSource.seeded(0)
    first = [
        source.stream("noise", number, 0).rounded_gaussian(1000.0, 3).tolist() for number in numbers
    ]
    assert len({tuple(values) for values in first}) == len(numbers)


def test_guarantee_1_killed_again_and_again_it_still_ends_at_the_plan(tmp_path) -> None:
    for round in (2, 6, 8, 9):
        killed_at(round, tmp_path)
    found, curator, _ = gone_on(tmp_path)
    assert list(curator.log.events) == list(spelled_out(Small(make_rows()).plan))
    assert len({entry.number for entry in curator.log.entries}) == ROUNDS + 2
    # Kept: the start, then rounds 3 4 5 of the second sitting, none of 6; 7 and 8 are lost, 9 too;
    # then 10 to 12.
    assert len(found.heard) == 3 + 3
    assert curator.statement().check() == []


def test_guarantee_1_a_process_that_dies_without_a_word(tmp_path) -> None:
    program = [sys.executable, checkpoint_search.__file__, "7", str(tmp_path)]
    assert subprocess.run(program, check=False).returncode == 17
    found, curator, seen = gone_on(tmp_path)
    assert seen == [8, 9, 10, 11, 12]
    assert len(found.heard) == 10
    assert list(curator.log.events) == list(spelled_out(Small(make_rows()).plan))


def test_killed_before_its_last_answer_it_has_lost_nothing(tmp_path) -> None:
    killed_at(ROUNDS, tmp_path, every=1)
    found, curator, seen = gone_on(tmp_path)
    assert seen == []
    assert np.array_equal(found.weights, whole()[0].weights)
    assert len(curator.log) == ROUNDS + 2


def test_killed_after_its_last_answer_it_cannot_go_on(tmp_path) -> None:
    search, checkpoint = Small(make_rows()), Checkpoint(tmp_path)
    curator = curator_for(search, checkpoint)

    def lose(*_: object) -> None:
        raise Killed

    search.finish = lose  # type: ignore[assignment,method-assign]
    with pytest.raises(Killed):
        descend(curator, search, None, checkpoint)
    with pytest.raises(PrivacyError, match="last answer was released and lost"):
        gone_on(tmp_path)


def test_killed_before_its_first_state_it_cannot_go_on(tmp_path) -> None:
    search, checkpoint = Small(make_rows()), Checkpoint(tmp_path)
    curator = curator_for(search, checkpoint)

    def lose(*_: object) -> None:
        raise Killed

    search.init = lose  # type: ignore[assignment,method-assign]
    with pytest.raises(Killed):
        descend(curator, search, None, checkpoint)
    assert len(Checkpoint(tmp_path).journal.entries) == 1  # it stays charged
    with pytest.raises(PrivacyError, match="stays charged whole"):
        gone_on(tmp_path)


@pytest.mark.parametrize(
    "what", ["bit of the arrays", "round", "no arrays", "not JSON", "other name"]
)
def test_guarantee_2_a_state_that_was_changed_is_refused_and_nothing_is_touched(
    tmp_path, what
) -> None:
    killed_at(7, tmp_path)
    (arrays,) = tmp_path.glob("state-*.npz")
    state = tmp_path / "state.json"
    if what == "bit of the arrays":
        data = bytearray(arrays.read_bytes())
        data[len(data) // 2] ^= 1
        arrays.write_bytes(data)
    elif what == "no arrays":
        arrays.unlink()
    elif what == "not JSON":
        state.write_bytes(state.read_bytes()[:-9])
    else:
        old, new = (
            ('"round": 5', '"round": 4')
            if what == "round"
            else ('"file": "state-', '"file": "../state-')
        )
        assert old in state.read_text()
        state.write_text(state.read_text().replace(old, new))
    before = contents(tmp_path)
    with pytest.raises(ChecksumError, match="stays charged"):
        gone_on(tmp_path)
    assert contents(tmp_path) == before


def test_guarantee_2_a_state_of_another_search_is_refused(tmp_path) -> None:
    killed_at(7, tmp_path)

    class Other(Small):
        """Another search of the same plan."""

    search, checkpoint = Other(make_rows()), Checkpoint(tmp_path)
    with pytest.raises(InputError, match="the search Small"):
        descend(curator_for(search, checkpoint), search, None, checkpoint)


def test_guarantee_2_another_plan_is_refused_and_nothing_is_touched(tmp_path) -> None:
    killed_at(7, tmp_path)
    before = contents(tmp_path)
    search = Small(make_rows(), multiplier=31.0)
    with pytest.raises(PrivacyError, match="another plan"):
        curator_for(search, Checkpoint(tmp_path))
    other = Promise(3.5, 1e-6, neighbours="replace-one")
    with pytest.raises(PrivacyError, match="another promise"):
        curator_for(Small(make_rows(), other), Checkpoint(tmp_path), other)
    assert contents(tmp_path) == before


def test_a_journal_shorter_than_its_state_is_refused(tmp_path) -> None:
    killed_at(7, tmp_path)
    journal = tmp_path / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:5]))
    with pytest.raises(PrivacyError, match="at least 6 entries"):
        gone_on(tmp_path)


def test_a_torn_line_is_a_lost_round(tmp_path) -> None:
    killed_at(7, tmp_path)
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-40])
    found, curator, seen = gone_on(tmp_path)
    assert seen[0] == 8
    assert len(found.heard) == 10
    assert list(curator.log.events) == list(spelled_out(Small(make_rows()).plan))


def test_guarantee_3_a_finished_folder_takes_no_other_run(tmp_path) -> None:
    gone_on(tmp_path)
    with pytest.raises(InputError, match="another folder"):
        Checkpoint(tmp_path)


def test_only_the_last_state_is_kept_and_it_is_plain(tmp_path) -> None:
    killed_at(11, tmp_path, every=1)
    assert sorted(path.name.split("-")[0] for path in tmp_path.iterdir()) == [
        "journal.jsonl",
        "state",
        "state.json",
    ]
    state = json.loads((tmp_path / "state.json").read_text())
    assert (state["round"], state["entries"], state["finished"]) == (11, 12, False)
    with np.load(next(tmp_path.glob("state-*.npz")), allow_pickle=False) as arrays:
        assert set(arrays) == {"v_weights", "v_counts", "v_heard"}


def test_what_is_saved_comes_back_as_it_was(tmp_path) -> None:
    values = {
        "array": np.array([[1.5, np.nan]]),
        "whole": np.arange(3),
        "empty": np.zeros((0, 2)),
        "number": 0.1,
        "endless": float("inf"),
        "count": 7,
        "yes": True,
        "word": "späť",
    }
    checkpoint = Checkpoint(tmp_path)
    checkpoint.save("A search", check_values(values), 3, 4)
    saved = Checkpoint(tmp_path).saved
    assert saved is not None
    assert (saved.search, saved.round, saved.entries) == ("A search", 3, 4)
    assert set(saved.values) == set(values)
    for name, value in values.items():
        assert (
            np.array_equal(saved.values[name], value, equal_nan=True)
            if isinstance(value, np.ndarray)
            else saved.values[name] == value
        )
        assert type(saved.values[name]) is type(value)


@pytest.mark.parametrize(
    "values",
    [
        {"a": np.array([object()])},
        {"a": [1.0]},
        {"a": None},
        [1.0],
        {"a b": 1.0},
        {1: 1.0},
        {"frozen_at": 1},
    ],
)
def test_what_is_not_plain_is_refused(values) -> None:
    with pytest.raises(InputError):
        check_values(values)


def test_a_search_without_a_way_back_is_refused_before_anything_is_asked(tmp_path) -> None:
    class OneWay(Small):
        """It cannot be kept."""

        freeze = Search.freeze

    search, checkpoint = OneWay(make_rows()), Checkpoint(tmp_path)
    curator = curator_for(search, checkpoint)
    with pytest.raises(InputError, match="can be kept on disk"):
        descend(curator, search, None, checkpoint)
    assert len(curator.log) == 0


def test_a_curator_without_the_journal_is_refused_before_anything_is_asked(tmp_path) -> None:
    search = Small(make_rows())
    curator = Curator(search.rows, PROMISE, plan=search.plan)
    with pytest.raises(PrivacyError, match=r"earlier=checkpoint\.journal"):
        descend(curator, search, None, Checkpoint(tmp_path))
    assert len(curator.log) == 0


def test_without_a_last_question_the_end_can_be_reached_again(tmp_path) -> None:
    search, checkpoint = Small(make_rows(), ends=False), Checkpoint(tmp_path)
    search.finish = lambda *_: (_ for _ in ()).throw(Killed())  # type: ignore[assignment,method-assign]
    with pytest.raises(Killed):
        descend(curator_for(search, checkpoint), search, None, checkpoint)
    again, checkpoint = Small(make_rows(), ends=False), Checkpoint(tmp_path)
    found = descend(curator_for(again, checkpoint), again, None, checkpoint)
    assert len(found.heard) == ROUNDS


@pytest.mark.parametrize("every", [0, -1, 1.5, "a"])
def test_how_often_is_a_whole_number(tmp_path, every) -> None:
    with pytest.raises(InputError, match="every"):
        Checkpoint(tmp_path, every)


@pytest.mark.parametrize("folder", [7, "", b"fit", None])
def test_what_is_no_path_is_refused(folder) -> None:
    with pytest.raises(InputError, match="the path of a folder"):
        Checkpoint(folder)
