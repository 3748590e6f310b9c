"""The curator's privacy statements: consistent whatever was done, also when a run is
interrupted."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from fairveil.core.cost import Filter
from fairveil.core.events import Event, Gaussian, PoissonSampled, Repeated
from fairveil.curator import (
    CellCounts,
    Curator,
    GradientSum,
    Linear,
    LogEntry,
    Measurement,
    Poisson,
    RowFunction,
    Rows,
)
from fairveil.privacy import NoiseSource, PrivacyStatement, Promise, price

PROMISE = Promise(1.0, 1e-6)


def rows(**given: object) -> Rows:
    rng = np.random.default_rng(0)
    X, y, a = rng.normal(size=(400, 2)), rng.integers(0, 2, 400), rng.integers(0, 3, 400)
    facts = {"classes": [0, 1], "groups": [[0, 1, 2]], **given}
    return Rows.from_arrays(X, y, [a], **facts)  # type: ignore[arg-type]


def counts(curator: Curator) -> CellCounts:
    return CellCounts(curator.cells())


def consistent(statement: PrivacyStatement) -> PrivacyStatement:
    assert not statement.check()
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    return statement


def test_a_whole_plan() -> None:
    plan: list[Event] = [Repeated(Gaussian(20.0), 3)]
    curator = Curator(rows(), PROMISE, plan=plan)
    for _ in range(3):
        curator.answer([(counts(curator), 20.0)])
    statement = consistent(PrivacyStatement.of_run(curator))
    assert statement.events == statement.plan
    assert statement.epsilon == price(plan, 1e-6).epsilon
    assert [bound.question for bound in statement.bounds] == ["cell counts"]


def test_a_run_interrupted_half_way_states_what_was_released_and_is_charged_whole() -> None:
    plan: list[Event] = [Repeated(Gaussian(20.0), 3)]
    curator = Curator(rows(), PROMISE, plan=plan, heard=_break_off_at(2))
    curator.answer([(counts(curator), 20.0)])
    curator.answer([(counts(curator), 20.0)])
    with pytest.raises(KeyboardInterrupt):
        curator.answer([(counts(curator), 20.0)])
    statement = consistent(PrivacyStatement.of_run(curator))
    assert statement.events == (Repeated(Gaussian(20.0), 2),)
    assert statement.epsilon == price(plan, 1e-6).epsilon
    assert "charged whole" in statement.summary()


def test_batches() -> None:
    plan: list[Event] = [Repeated(PoissonSampled(0.1, Gaussian(6.0)), 2)]
    curator = Curator(rows(), PROMISE, plan=plan)
    for _ in range(2):
        curator.answer([(counts(curator), 6.0)], Poisson(0.1))
    assert "(Poisson)" in consistent(PrivacyStatement.of_run(curator)).summary()


@pytest.mark.parametrize("cap", [None, Filter.create(PROMISE, "gaussian")])
def test_answers_chosen_one_after_another(cap: Filter | None) -> None:
    curator = Curator(rows(), PROMISE, cap=cap)
    curator.answer([(counts(curator), 20.0)])
    curator.answer([(counts(curator), 30.0)])
    statement = consistent(PrivacyStatement.of_run(curator))
    assert statement.epsilon == PROMISE.epsilon
    assert statement.cap is not None
    assert statement.cap.kind == ("renyi" if cap is None else cap.kind)


@pytest.mark.parametrize(
    "promise",
    [Promise(1.0, 1e-6, neighbours="replace-one"), Promise(1.0, 1e-6, "sensitive_features")],
)
def test_other_promises(promise: Promise) -> None:
    curator = Curator(rows(), promise, plan=[Gaussian(20.0)])
    curator.answer([(counts(curator), 20.0)])
    assert consistent(PrivacyStatement.of_run(curator)).bounds[0].sensitivity == pytest.approx(
        math.sqrt(2)
    )


def test_no_promise() -> None:
    curator = Curator(rows(), Promise(math.inf, 0.0))
    curator.answer([(counts(curator), 0.0)])
    assert consistent(PrivacyStatement.of_run(curator)).stamps == ("not-private",)


def test_seeds_user_code_and_facts_read_from_the_data_are_stated() -> None:
    curator = Curator(rows(classes=None, groups=None), PROMISE, noise=NoiseSource.seeded(1))
    ones = RowFunction(
        lambda block: np.ones((block.rows, 1)),
        width=1,
        clip=1.0,
        columns_read=frozenset({"features"}),
    )
    curator.answer([(ones, 20.0)])
    statement = consistent(PrivacyStatement.of_run(curator))
    assert set(statement.stamps) == {"seeded-noise", "user-code-trusted"}
    assert "groups of sensitive_0 was read from the data" in statement.summary()
    assert "classes was read from the data" in statement.summary()


def test_the_stated_bound_of_a_question_is_the_largest_of_the_run() -> None:
    """With public rows the bound is a maximum that each round's costs and weights move: the last is
    not the largest."""
    curator = Curator(rows(), Promise(5.0, 1e-6, "sensitive_features"))
    model, seen = Linear(np.zeros(3)), []
    for size in (1.0, 8.0, 0.5):
        costs = size * np.array([[[0.0, 1.0]], [[0.0, -1.0]], [[0.0, 0.0]]])
        curator.answer([(GradientSum(model, None, curator.cells(), costs), 60.0)])
        (bound,) = consistent(PrivacyStatement.of_run(curator)).bounds
        seen.append(bound.sensitivity)
    assert seen[1] == seen[2] == pytest.approx(8 * seen[0])
    clipped = Curator(rows(), PROMISE)
    for clip in (1.0, 3.0, 0.1):
        clipped.answer([(GradientSum(model, clip), 60.0)])
    (bound,) = consistent(PrivacyStatement.of_run(clipped)).bounds
    assert bound.sensitivity == pytest.approx(3.0)
    assert bound.reason == "gradients are clipped to norm 3"


def test_counts_with_laplace_noise_beside_gaussian_noise_state_both_norms() -> None:
    curator = Curator(rows(), PROMISE)
    curator.answer([Measurement(counts(curator), 20.0)])
    curator.answer([Measurement(counts(curator), 20.0, "discrete-laplace")])
    assert [bound.norm for bound in consistent(PrivacyStatement.of_run(curator)).bounds] == [
        "L2",
        "L1",
    ]


def _break_off_at(number: int) -> Callable[[LogEntry], None]:
    def journal(entry: LogEntry) -> None:
        if entry.number == number:
            raise KeyboardInterrupt

    return journal
