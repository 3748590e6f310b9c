"""Frontiers of `FairPostProcessor`: their price, and what is measured."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairveil as fv
from fairveil.errors import InputError, Overspent
from fairveil.privacy import epsilon as price
from fairveil.study import Frontier
from knobs import made


@functools.cache
def tables() -> tuple[Any, tuple[Any, Any, Any], tuple[Any, Any, Any]]:
    """A base that was fitted to other people, rows, and held-out rows: three classes, two
    groups."""
    rng = np.random.default_rng(0)
    A = rng.choice(["f", "m"], 9000)
    X = rng.normal(size=(9000, 3)) + (A == "m")[:, None] * [1.0, 0.3, 0.0]
    y = (X @ rng.normal(size=(3, 3)) + rng.gumbel(size=(9000, 3))).argmax(axis=1)
    parts = [(X[a:b], y[a:b], A[a:b]) for a, b in ((0, 3000), (3000, 6000), (6000, 9000))]
    return LogisticRegression().fit(*parts[0][:2]), parts[1], parts[2]


def template(**options: Any) -> fv.FairPostProcessor:
    return made(
        fv.FairPostProcessor,
        tables()[0],
        public_base=True,
        solver=fv.Offsets(rounds=10),
        **options,
    )


@functools.cache
def found() -> Frontier:
    _, rows, test = tables()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fv.frontier(
            *rows, gaps=(0.2, 0.05), epsilons=(0.5, 2.0), seeds=2, test=test, estimator=template()
        )


def test_guarantee_1_each_model_is_its_own_fit_and_names_the_price_of_all() -> None:
    _, rows, _ = tables()
    assert len(found().models) == 8
    for (epsilon, gap, seed), clf in found().models.items():
        own = template(epsilon=epsilon, constraints=fv.DemographicParity(gap), random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own.fit(rows[0], sensitive_features=rows[2])
        assert np.array_equal(own.offsets_, clf.offsets_)
        assert own.privacy_.events == clf.privacy_.events
        assert "one of 8 models of a frontier" in clf.privacy_.tuning


def test_the_price_of_all_is_that_of_their_events_together() -> None:
    events = [event for clf in found().models.values() for event in clf.privacy_.events]
    together = price(events, 1e-6, "add-remove")
    assert found().privacy.epsilon == pytest.approx(together, rel=1e-6)
    assert together > 2.0
    assert "3000 held-out rows" in " ".join(found().privacy.not_covered)


def test_gaps_and_errors_are_those_of_held_out_rows() -> None:
    _, _, (X, y, A) = tables()
    for run in found().runs:
        law = (
            found().models[run.epsilon, run.target, run.seed].predict_proba(X, sensitive_features=A)
        )
        rates = [law[group == A].mean(axis=0) for group in ("f", "m")]
        assert run.gap == pytest.approx(np.abs(rates[0] - rates[1]).max(), abs=1e-9)
        assert run.error == pytest.approx(1.0 - law[np.arange(len(y)), y].mean(), abs=1e-9)
    lines = {(line["epsilon"], line["target"]): line for line in found().table()}
    assert lines[2.0, 0.05]["held_out_gap"] < 0.1 < lines[2.0, 0.2]["held_out_gap"]


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_thresholds_are_swept_for_any_notion_and_a_gap_of_none_is_the_base() -> None:
    base, rows, test = tables()
    swept = fv.frontier(
        *rows,
        constraint=fv.EqualizedOdds,
        gaps=(None, 0.1),
        epsilons=(1.0,),
        seeds=1,
        test=test,
        estimator=fv.FairPostProcessor(base, public_base=True),
    )
    free, kept = swept.table()
    assert free["target"] is None
    assert kept["held_out_gap"] < free["held_out_gap"]
    assert 0.99 < swept.privacy.epsilon <= 1.0


def test_it_is_written_and_drawn() -> None:
    again = Frontier.from_json(found().to_json())
    assert again.table() == found().table()
    assert found().shown()


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_guarantee_2_a_ledger_without_room_for_all_is_asked_nothing() -> None:
    _, rows, _ = tables()
    ledger = fv.Ledger.create(None, "people", 1.2, 1e-5)
    with pytest.raises(Overspent):
        fv.frontier(
            rows[0],
            None,
            rows[2],
            gaps=(0.1, 0.05),
            epsilons=(1.0,),
            seeds=1,
            estimator=template(ledger=ledger),
        )
    assert ledger.is_untouched
    fv.frontier(
        rows[0],
        None,
        rows[2],
        gaps=(0.1,),
        epsilons=(1.0,),
        seeds=1,
        estimator=template(ledger=ledger),
    )
    assert not ledger.is_untouched


@pytest.mark.parametrize(
    ("options", "estimator", "words"),
    [
        ({"constraint": fv.EqualizedOdds}, {}, "demographic parity"),
        ({"gaps": (None, 0.1)}, {}, "demographic parity"),
        ({}, {"constraints": "demographic_parity:0.1"}, "constraints"),
        ({}, {"public_base": False}, "public"),
        ({}, {"estimator": None}, "public"),
    ],
)
def test_what_a_frontier_cannot_sweep_is_refused(
    options: dict[str, Any], estimator: dict[str, Any], words: str
) -> None:
    _, rows, _ = tables()
    with pytest.raises(InputError, match=words):
        fv.frontier(
            rows[0],
            None,
            rows[2],
            epsilons=(1.0,),
            seeds=1,
            **options,
            estimator=template().set_params(**estimator),
        )
