"""The journal: on the disk before the answer, read back, resumed, and never another's."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from fairveil.core.choices import Score
from fairveil.core.cost import Filter
from fairveil.core.events import Composed, Exponential, Gaussian, OnPart, Repeated, spelled_out
from fairveil.core.journal import SITTING, LogEntry, digest_of
from fairveil.curator import (
    CellCounts,
    Curator,
    FeatureSums,
    GradientSum,
    GroupLosses,
    Journal,
    Linear,
    Part,
    Poisson,
    RowCount,
    RowFunction,
    Rows,
)
from fairveil.errors import BudgetError, InputError, PrivacyError
from fairveil.privacy import NoiseSource, Promise
from fairveil.statement.document import PrivacyStatement

PROMISE = Promise(3.0, 1e-6, neighbours="replace-one")
PLAN = Repeated(
    Composed((Gaussian(30.0), OnPart(Gaussian(20.0), 0, 2), OnPart(Gaussian(20.0), 1, 2))), 4
)


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(0)
    X, a = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    return Rows.from_arrays(X, rng.integers(0, 2, 40), [a], classes=(0, 1), groups=[(0, 1)])


def curator_of(rows, earlier, plan=PLAN, promise=PROMISE, seed=0, **options) -> Curator:
    return Curator(
        rows, promise, plan=plan, noise=NoiseSource.seeded(seed), earlier=earlier, **options
    )


def follow(curator, rows, count, start=0):
    """The next `count` answers of PLAN, from number `start`."""
    ask = CellCounts(rows.cells())
    out = []
    for i in range(start, start + count):
        if i % 3 == 0:
            out += curator.answer([(ask, 30.0)], purpose=f"answer {i}")
        else:
            out += curator.answer([(ask, 20.0)], Part(i % 3 - 1, 2), purpose=f"answer {i}")
    return out


def test_guarantee_1_the_line_is_on_the_disk_before_the_answer(rows, tmp_path, monkeypatch) -> None:
    """Seen from the calls that the system gets: every answer's line is written, then synced, before
    `answer` returns."""
    calls = []
    write, sync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda file, data: calls.append("write") or write(file, data))
    monkeypatch.setattr(os, "fsync", lambda file: calls.append("sync") or sync(file))
    curator = curator_of(rows, Journal(tmp_path / "j"))
    assert calls[0] == "write"
    assert "sync" in calls
    for i in range(4):
        before = len((tmp_path / "j").read_text().splitlines())
        calls.clear()
        follow(curator, rows, 1, i)
        assert calls[-2:] == ["write", "sync"]
        # the first bound, beside
        assert len((tmp_path / "j").read_text().splitlines()) - before == 1 + (i == 0)


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_guarantee_1_where_it_cannot_be_written_there_is_no_answer(
    rows, tmp_path, monkeypatch, failing
) -> None:
    curator = curator_of(rows, Journal(tmp_path / "j"))
    follow(curator, rows, 1)

    def full(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, full)
        with pytest.raises(OSError, match="no space left"):
            follow(curator, rows, 1, 1)
    assert len(curator.log) == 1
    with pytest.raises(PrivacyError):
        follow(curator, rows, 1, 1)
    curator.close()
    again = curator_of(rows, Journal(tmp_path / "j"))
    assert len(again.log) == 1 + (failing == "fsync")  # a line that may be there is charged
    follow(again, rows, 12)
    again.finish()


@pytest.mark.parametrize(
    "counted", [{"kind": "gaussian", "noise_multiplier": 1.0}, {"kind": "no-op"}]
)
def test_counts_in_a_changed_file_do_not_keep_the_reader_busy(counted, rows, tmp_path) -> None:
    follow(curator_of(rows, Journal(tmp_path / "j")), rows, 3)
    header, bound, first = (
        json.loads(line) for line in (tmp_path / "j").read_text().splitlines()[:3]
    )
    many = {"kind": "repeated", "event": counted, "count": 2**53}
    for _ in range(40):
        many = {"kind": "repeated", "event": many, "count": 1}
    (tmp_path / "j").write_text(
        "\n".join(map(json.dumps, (header, {**first, "event": many}, bound))) + "\n"
    )
    with pytest.raises(PrivacyError, match="journal"):
        Journal(tmp_path / "j")


def test_a_run_goes_on_where_its_journal_ends(rows, tmp_path) -> None:
    one = curator_of(rows, Journal(tmp_path / "j"))
    follow(one, rows, 5)
    one.close()
    assert Journal(tmp_path / "j").entries == one.log.entries
    two = curator_of(rows, Journal(tmp_path / "j"))
    follow(two, rows, 12)
    assert list(spelled_out(two.finish())) == list(spelled_out(PLAN))
    statement = PrivacyStatement.of_run(two)
    assert statement.check() == []
    alone = curator_of(rows, None)
    follow(alone, rows, 12)
    assert statement.epsilon == PrivacyStatement.of_run(alone).epsilon
    assert statement.events == PrivacyStatement.of_run(alone).events


def test_guarantee_4_a_sitting_never_numbers_as_one_before(rows, tmp_path) -> None:
    """Free answers are not in the log, and a Poisson batch of one draws its rows: their numbers are
    not given again either."""
    drawn = []
    for sitting in range(3):
        journal = Journal(tmp_path / "j")
        source = NoiseSource.seeded(0)
        source = _Listening(source, drawn)
        curator = Curator(
            rows, Promise(9.0, 1e-6, "sensitive_features"), noise=source, earlier=journal
        )
        curator.answer([(FeatureSums(None, 1.0), 0.0)], Poisson(0.5))
        for _ in range(1 + sitting):  # all but the last are given again
            curator.answer([(CellCounts(rows.cells()), 90.0)])
        curator.answer([(FeatureSums(None, 1.0), 0.0)], Poisson(0.5))
        curator.close()
    assert len(drawn) == len(set(drawn)) == 9
    assert [entry.number for entry in Journal(tmp_path / "j").entries] == [
        1,
        SITTING + 1,
        2 * SITTING + 1,
    ]


class _Listening(NoiseSource):
    """A seeded source that says which streams it gave."""

    __slots__ = ("_taped",)

    def __init__(self, source: NoiseSource, heard: list) -> None:
        super().__init__(source._root, secure=False)
        self._taped = heard

    def stream(self, name, *path):
        self._taped.append((name, *path))
        return super().stream(name, *path)


def test_a_header_that_never_became_whole_is_begun_again(rows, tmp_path) -> None:
    path = tmp_path / "j"
    for start in (b"", b'{"form', b'{"format":"fairveil journal","version":3,"prom'):
        path.write_bytes(start)
        assert Journal(path).is_new
        curator = curator_of(rows, Journal(path))
        follow(curator, rows, 2)
        curator.close()
        assert len(Journal(path).entries) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"{}\n",
        b"hello",
        b"hello\n",
        b'{"format":"fairveil journal","version":2}\n',
        b"\xff\xfe\n",
        b"[1]\n",
        b'{"format":"fairveil '
        b'journal","version":3,"promise":{},"plan":null,"cap":null,"secure":true}\n',
    ],
)
def test_guarantee_3_what_is_no_journal_is_refused_and_left_alone(tmp_path, content) -> None:
    (tmp_path / "j").write_bytes(content)
    with pytest.raises(PrivacyError, match=r"^journal: expected"):
        Journal(tmp_path / "j")
    assert (tmp_path / "j").read_bytes() == content


@pytest.mark.parametrize("what", ["gone", "twice", "broken"])
def test_guarantee_3_a_journal_that_was_changed_is_refused(rows, tmp_path, what) -> None:
    path = tmp_path / "j"
    curator = curator_of(rows, Journal(path))
    follow(curator, rows, 5)
    curator.close()
    lines = path.read_bytes().splitlines(keepends=True)
    if what == "twice":
        lines.insert(4, lines[4])
    elif what == "broken":
        lines[4] = lines[4][:12] + b"\n"
    else:
        lines[-1] = lines[-1].replace(b'"number":4,', b"")
    path.write_bytes(b"".join(lines))
    with pytest.raises(PrivacyError, match="changed"):
        Journal(path)


def test_guarantee_3_another_promise_plan_or_filter_is_refused_and_nothing_is_changed(
    rows, tmp_path
) -> None:
    path = tmp_path / "j"
    follow(curator_of(rows, Journal(path)), rows, 5)
    before = path.read_bytes()
    other = Promise(4.0, 1e-6, neighbours="replace-one")
    for options, words in (
        ({"promise": other}, "another promise"),
        ({"plan": Repeated(PLAN, 2)}, "another plan|costs at most"),
        ({"plan": PLAN.event}, "another plan"),
        ({"plan": None}, "another plan"),
    ):
        with pytest.raises(PrivacyError, match=words):
            curator_of(rows, Journal(path), **options)
    assert path.read_bytes() == before


def test_a_filter_is_charged_for_what_came_before(rows, tmp_path) -> None:
    path = tmp_path / "j"
    cap = Filter.create(PROMISE, "gaussian")
    ask = [(CellCounts(rows.cells()), 3.0)]
    one = Curator(rows, PROMISE, cap=cap, earlier=Journal(path))
    one.answer(ask)
    one.answer(ask)
    one.close()
    spent = cap.add(Gaussian(3.0)).add(Gaussian(3.0))
    two = Curator(rows, PROMISE, cap=cap, earlier=Journal(path))
    left = int(spent.room() * 9)
    assert left >= 1
    for _ in range(2 + left):  # two are given again
        two.answer(ask)
    with pytest.raises(BudgetError):
        two.answer(ask)
    assert PrivacyStatement.of_run(two).check() == []
    two.close()
    with pytest.raises(PrivacyError, match="another filter"):
        Curator(
            rows, PROMISE, cap=Filter.create(PROMISE, "renyi", order=30.0), earlier=Journal(path)
        )


def test_earlier_is_a_journal_and_heard_is_told_beside_it(rows, tmp_path) -> None:
    for wrong in ("a", [Gaussian(1.0)], 3, ()):
        with pytest.raises(InputError, match=r"^earlier"):
            curator_of(rows, wrong)
    heard, path = [], tmp_path / "deep" / "j"
    for start in (0, 1):
        curator = curator_of(rows, Journal(path), heard=heard.append)
        follow(curator, rows, 1 + start)
        assert (len(heard), len(Journal(path).entries)) == (1 + start, 1 + start)
        curator.close()


def test_a_statement_tells_the_bounds_user_code_and_noise_of_every_sitting(rows, tmp_path) -> None:
    plan = [Gaussian(30.0), Gaussian(30.0), Gaussian(30.0)]
    one = curator_of(rows, Journal(tmp_path / "j"), plan=plan)
    one.answer([(CellCounts(rows.cells()), 30.0)])
    one.answer([(RowFunction(lambda block: np.ones((block.rows, 1)), 1, 2.0), 30.0)])
    one.close()
    two = Curator(rows, PROMISE, plan=plan, earlier=Journal(tmp_path / "j"))
    two.answer([(CellCounts(rows.cells()), 30.0)])
    two.answer([(RowFunction(lambda block: np.ones((block.rows, 1)), 1, 2.0), 30.0)])
    two.answer([(GroupLosses(Linear(np.zeros(3)), rows.cells()), 30.0)])
    two.finish()
    statement = PrivacyStatement.of_run(two)
    assert statement.check() == []
    assert len(statement.bounds) == 3
    assert {bound.question for bound in PrivacyStatement.of_run(one).bounds} < {
        bound.question for bound in statement.bounds
    }
    assert set(statement.stamps) == {"seeded-noise", "user-code-trusted"}


def test_another_number_of_rows_is_refused_where_it_is_public(tmp_path) -> None:
    """With fixed parts a row's part is decided by its place and the number of rows: another table
    is another partition."""
    promise = Promise(1.0, 1e-6, "sensitive_features")
    event = Gaussian(10.0)
    Journal(tmp_path / "j").begin(promise, event, None, 100, secure=False)
    for rows, refused in ((99, True), (100, False)):
        journal = Journal(tmp_path / "j")
        if refused:
            with pytest.raises(PrivacyError, match="number of rows"):
                journal.begin(promise, event, None, rows, secure=False)
        else:
            journal.begin(promise, event, None, rows, secure=False)
            journal.close()


@pytest.mark.parametrize("plan", [PLAN, None], ids=["planned", "as it goes"])
def test_guarantee_2_an_answer_whose_line_was_cut_ends_the_run(rows, tmp_path, plan) -> None:
    """Wherever it was cut; nothing of the file is changed."""
    path = tmp_path / "j"
    curator = curator_of(rows, Journal(path), plan)
    follow(curator, rows, 5)
    curator.close()
    *whole, last = path.read_bytes().splitlines(keepends=True)
    for cut in [1, 2, 3, *range(7, len(last) - 1, 31), len(last) - 1]:
        content = b"".join(whole) + last[:cut]
        path.write_bytes(content)
        assert len(Journal(path).entries) == 4
        with pytest.raises(PrivacyError, match="stays charged whole"):
            curator_of(rows, Journal(path), plan)
        assert path.read_bytes() == content


def test_guarantee_3_one_writer_at_a_time(rows, tmp_path) -> None:
    pytest.importorskip("fcntl")
    first = curator_of(rows, Journal(tmp_path / "j"))
    for journal in (Journal(tmp_path / "j"), first.journal):
        with pytest.raises(PrivacyError, match="in use"):
            curator_of(rows, journal)
    first.close()
    follow(curator_of(rows, Journal(tmp_path / "j")), rows, 12)


# -- answers beside their entries ------------------------------------------------------------------

GIVEN = Promise(4.0, 1e-6, neighbours="replace-one")
PAIRS = Repeated(Composed((Gaussian(30.0), Exponential(0.05))), 4)
CANDIDATES = Linear(np.random.default_rng(3).normal(size=(5, 1, 3)))


def rows_of(seed: int) -> Rows:
    """Rows of one layout: other seeds are other people."""
    rng = np.random.default_rng(seed)
    X, a = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    return Rows.from_arrays(X, rng.integers(0, 2, 60), [a], classes=(0, 1), groups=[(0, 1)])


def kept(path, *, seed=0, people=0, plan=PAIRS) -> Curator:
    return curator_of(rows_of(people), Journal(path), plan, GIVEN, seed)


def search(curator: Curator, pairs: int, weights=(0.0, 0.0, 0.0)) -> list[object]:
    """A search that hangs on its answers: each question is made of the answer before, and every
    second is a choice."""
    out: list[object] = []
    weights = np.array(weights)
    for _ in range(pairs):
        ((step,),) = (
            curator.answer([(GradientSum(Linear(weights), clip=1.0), 30.0)], purpose="step"),
        )
        chosen = curator.choose(GroupLosses(CANDIDATES, curator.cells()), 0.05, purpose="which")
        weights = weights - 0.01 * step.ravel() + 0.001 * chosen
        out += [step, chosen]
    return out


def test_guarantee_5_a_run_that_broke_off_is_given_the_same_and_goes_on(tmp_path) -> None:
    """Other rows and another seed in the second sitting: what is given again can come from the
    journal alone."""
    with kept(tmp_path / "j") as first:
        before = search(first, 2)
        charged = first.log.events
    with kept(tmp_path / "j", seed=1, people=1) as second:
        assert second.log.events == charged
        after = search(second, 2)
        assert second.log.events == charged
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)
    with kept(tmp_path / "j", seed=2) as third:
        whole = search(third, 4)
        assert len(third.log) == 8
        third.finish()
    assert all(np.array_equal(a, b) for a, b in zip(before, whole[:4], strict=True))
    assert not np.array_equal(whole[4], whole[0])


def test_guarantee_5_arrays_that_are_given_again_are_the_callers_own(tmp_path) -> None:
    plan, ask = [Gaussian(30.0)] * 2, [(CellCounts(rows_of(0).cells()), 30.0)]
    with kept(tmp_path / "j", plan=plan) as first:
        (before,) = first.answer(ask)
    with kept(tmp_path / "j", plan=plan) as second:
        (again,) = second.answer(ask)
        again += 1.0
        (entry,) = second.log.entries
    np.testing.assert_array_equal(entry.given[0], before)


@pytest.mark.parametrize(
    "ask",
    [
        lambda curator: search(curator, 1, (0.0, 0.0, 1e-12)),
        lambda curator: curator.answer(
            [(GradientSum(Linear(np.zeros(3)), clip=1.0), 30.0)], purpose="another"
        ),
        lambda curator: curator.answer(
            [(GradientSum(Linear(np.zeros(3)), clip=0.5), 30.0)], purpose="step"
        ),
        lambda curator: curator.answer([(CellCounts(curator.cells()), 30.0)], purpose="step"),
        lambda curator: curator.choose(
            GroupLosses(CANDIDATES, curator.cells()), 0.05, purpose="which"
        ),
    ],
)
def test_guarantee_5_another_question_ends_the_run(tmp_path, ask) -> None:
    with kept(tmp_path / "j") as first:
        search(first, 2)
    written = (tmp_path / "j").read_bytes()
    with kept(tmp_path / "j") as second:
        with pytest.raises(PrivacyError, match="the question that answer 1 was given to"):
            ask(second)
        with pytest.raises(PrivacyError, match="a run that goes on"):
            second.answer([(RowCount(), 30.0)])
    assert (tmp_path / "j").read_bytes().startswith(written)
    assert b'"given"' not in (tmp_path / "j").read_bytes()[len(written) :]


def test_guarantee_5_another_score_of_a_choice_ends_the_run(tmp_path) -> None:
    question = GroupLosses(CANDIDATES, rows_of(0).cells())
    with kept(tmp_path / "j", plan=[Exponential(0.05)] * 2) as first:
        first.choose(question, 0.05, cell_weights=[1.0, 2.0])
    second = kept(tmp_path / "j", plan=[Exponential(0.05)] * 2)
    with second, pytest.raises(PrivacyError, match="another question"):
        second.choose(question, 0.05, cell_weights=[1.0, 2.5])


def test_a_digest_tells_values_apart() -> None:
    """Every field counts, of questions inside questions, too; equal values made twice are equal."""
    base = Linear(np.arange(3.0))
    same = digest_of([GradientSum(base, clip=1.0)], "words")
    assert same == digest_of([GradientSum(Linear(np.arange(3.0)), clip=1.0)], "words")
    others = [
        ([GradientSum(Linear(np.arange(3.0) + 1e-15), clip=1.0)], "words"),
        ([GradientSum(Linear(np.arange(3.0), sharpness=2.0), clip=1.0)], "words"),
        ([GradientSum(base, clip=2.0)], "words"),
        ([GradientSum(base, clip=1.0)], "other words"),
        ([RowCount()], "words"),
        ([GradientSum(base, clip=1.0), RowCount()], "words"),
    ]
    assert len({digest_of(*other) for other in others} | {same}) == len(others) + 1
    assert digest_of(Score(sum, (0.0,), (1.0,))) != digest_of(Score(sum, (0.0,), (2.0,)))


@pytest.mark.parametrize(
    "values", [np.array([0.1, -np.inf, np.nan, -0.0]), np.zeros((0, 3)), np.array(1e-320)]
)
def test_arrays_come_back_to_the_bit(values) -> None:
    entry = LogEntry(0, Gaussian(1.0), ("q",), "all rows", "", "x", (values,))
    read = LogEntry.from_line(json.loads(json.dumps(entry.to_line())))
    assert (read, read.asked) == (entry, "x")
    (back,) = read.given
    assert back.shape == values.shape
    assert back.tobytes() == values.tobytes()
