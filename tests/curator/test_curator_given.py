"""Answers that a journal keeps: given again to the bit, to the same questions alone, and never
drawn anew."""

from __future__ import annotations

import stat

import numpy as np
import pytest

from fairveil.core.events import Composed, Exponential, Gaussian, Repeated
from fairveil.curator import (
    CellCounts,
    Curator,
    GradientSum,
    GroupLosses,
    Journal,
    Linear,
    RowCount,
    Rows,
)
from fairveil.curator.choices import Score
from fairveil.curator.journal import Given, digest_of
from fairveil.errors import PrivacyError
from fairveil.privacy import NoiseSource, Promise

PROMISE = Promise(4.0, 1e-6, neighbours="replace-one")
PLAN = Repeated(Composed((Gaussian(30.0), Exponential(0.05))), 4)
CANDIDATES = Linear(np.random.default_rng(3).normal(size=(5, 1, 3)))


def rows_of(seed: int) -> Rows:
    """Rows of one layout: other seeds are other people."""
    rng = np.random.default_rng(seed)
    return Rows.from_arrays(
        rng.normal(size=(60, 2)),
        rng.integers(0, 2, 60),
        [rng.integers(0, 2, 60)],
        classes=(0, 1),
        groups=[(0, 1)],
    )


def curator_of(path, *, seed=0, rows=0, promise=PROMISE, **options) -> Curator:
    source = NoiseSource.seeded(seed)
    return Curator(
        rows_of(rows),
        promise,
        noise=source,
        earlier=Journal(path, answers=True),
        **{"plan": PLAN, **options},
    )


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


def test_guarantee_1_a_run_that_broke_off_is_given_the_same_and_goes_on(tmp_path) -> None:
    """Other rows and another seed in the second sitting: what is given again can come from the
    journal alone."""
    with curator_of(tmp_path / "j") as first:
        before = search(first, 2)
        charged = first.log.events
    with curator_of(tmp_path / "j", seed=1, rows=1) as second:
        assert second.log.events == charged
        after = search(second, 2)
        assert second.log.events == charged
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)
    with curator_of(tmp_path / "j", seed=2) as third:
        whole = search(third, 4)
        assert len(third.log) == 8
        third.finish()
    assert all(np.array_equal(a, b) for a, b in zip(before, whole[:4], strict=True))
    assert not np.array_equal(whole[4], whole[0])


def test_guarantee_1_arrays_that_are_given_again_are_the_callers_own(tmp_path) -> None:
    with curator_of(tmp_path / "j", plan=[Gaussian(30.0)] * 2) as first:
        first.answer([(RowCount(), 30.0)])
    with curator_of(tmp_path / "j", plan=[Gaussian(30.0)] * 2) as second:
        ((count,),) = (second.answer([(RowCount(), 30.0)]),)
        count += 1.0


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
def test_guarantee_2_another_question_ends_the_run(tmp_path, ask) -> None:
    with curator_of(tmp_path / "j") as first:
        search(first, 2)
    written = (tmp_path / "j").read_bytes()
    with curator_of(tmp_path / "j") as second:
        with pytest.raises(PrivacyError, match="the question that answer 1 was given to"):
            ask(second)
        with pytest.raises(PrivacyError, match="a run that goes on"):
            second.answer([(RowCount(), 30.0)])
    assert (tmp_path / "j").read_bytes().startswith(written)
    assert b'"given"' not in (tmp_path / "j").read_bytes()[len(written) :]


def test_guarantee_2_another_score_of_a_choice_ends_the_run(tmp_path) -> None:
    question = GroupLosses(CANDIDATES, rows_of(0).cells())
    with curator_of(tmp_path / "j", plan=[Exponential(0.05)] * 2) as first:
        first.choose(question, 0.05, cell_weights=[1.0, 2.0])
    second = curator_of(tmp_path / "j", plan=[Exponential(0.05)] * 2)
    with second, pytest.raises(PrivacyError, match="another question"):
        second.choose(question, 0.05, cell_weights=[1.0, 2.5])


@pytest.mark.parametrize("kept", [0.5, 0.9, 0.999])
def test_guarantee_3_an_answer_that_was_cut_short_is_not_drawn_anew(tmp_path, kept) -> None:
    """The last line is cut behind what it cost, in the middle of its answer: charged, and never
    released once more."""
    path = tmp_path / "j"
    with curator_of(path) as first:
        search(first, 1)
        charged = first.log.events
    data = path.read_bytes()
    start = data.rindex(b"\n", 0, -1) + 1
    cut = max(
        data.index(b'"number"', start), min(start + int((len(data) - start) * kept), len(data) - 3)
    )
    path.write_bytes(data[:cut])
    with curator_of(path, seed=1) as second:
        assert second.log.events == charged
        with pytest.raises(PrivacyError, match="not drawn anew"):
            search(second, 1)
        with pytest.raises(PrivacyError, match="a run that goes on"):
            second.answer([(RowCount(), 30.0)])


def test_answers_are_for_the_owner_of_the_file_and_noisy(tmp_path) -> None:
    with curator_of(tmp_path / "j") as curator:
        search(curator, 1)
    assert stat.S_IMODE((tmp_path / "j").stat().st_mode) == 0o600
    with pytest.raises(PrivacyError, match="answers are noisy"):
        curator_of(tmp_path / "exact", promise=Promise(float("inf"), 1e-6), plan=None)
    assert not (tmp_path / "exact").exists()


def test_a_journal_goes_on_as_it_began(tmp_path) -> None:
    with curator_of(tmp_path / "j") as curator:
        search(curator, 1)
    with pytest.raises(PrivacyError, match="one that keeps no answers"):
        Curator(rows_of(0), PROMISE, plan=PLAN, earlier=Journal(tmp_path / "j"))


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
    (back,) = Given.from_line(Given.of("x", [values]).to_line()).answers
    assert back.shape == values.shape
    assert back.tobytes() == values.tobytes()
