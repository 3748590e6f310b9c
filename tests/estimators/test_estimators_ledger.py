"""Fits and their ledger: every estimator records, in whichever process; refusals leave nothing
behind."""

from __future__ import annotations

import pickle
import shutil
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

import fairveil as fv
import ways
from fairveil.core.books import Books
from fairveil.core.events import Gaussian
from fairveil.curator import Curator
from fairveil.errors import ConstraintNotMet, LedgerError, Overspent, PrivacyError
from fairveil.estimators import wrapped
from fairveil.facts import Boolean, Category, Number, Schema
from fairveil.ledger.lines import COMMITTED, REFUNDED, RESERVED, RESUMED
from knobs import made

ROWS = 240
RNG = np.random.default_rng(0)
A = RNG.integers(2, size=ROWS)
X = RNG.uniform(-1, 1, size=(ROWS, 2)) + 0.2 * A[:, None]
LABELS = (X.sum(axis=1) + 0.5 * RNG.normal(size=ROWS) > 0).astype(int)
NUMBERS = np.clip(X.sum(axis=1), -2, 2)
SHORT: dict[str, Any] = {"epsilon": 1.0, "public_rows": ROWS}
SCHEMA = Schema(
    {"x": Number(-2, 2), "z": Number(-2, 2), "a": Boolean(), "y": Category((0, 1))},
    target="y",
    sensitive=["a"],
)


def rated(**options: Any) -> fv.FairClassifier:
    return made(
        fv.FairClassifier,
        **{"constraints": "demographic_parity:0.2", "rounds": 3, **SHORT, **options},
    )


def post(base: Any = None, **options: Any) -> fv.FairPostProcessor:
    return made(fv.FairPostProcessor, base, "demographic_parity:0.2", **{"epsilon": 1.0, **options})


ALL: dict[str, Any] = {
    "FairClassifier": rated(),
    "FermiClassifier": made(ways.fermi, solver=fv.PrimalDual(rounds=3), **SHORT),
    "GroupObjectiveClassifier": made(ways.objective, method="exponential", **SHORT),
    "GroupObjectiveRegressor": made(
        ways.objective_regression,
        target_bounds=(-2, 2),
        solver=fv.GroupObjective(rounds=3),
        **SHORT,
    ),
    "FairPostProcessor": post(rated(epsilon=9.0)),
    "OracleGameClassifier": made(ways.game, "demographic_parity:0.2", rounds=3, **SHORT),
    "TailoredClassifier": made(ways.tailored, solver=fv.Tailored(rounds=3), **SHORT),
    "TailoredRegressor": made(
        ways.tailored_regression, target_bounds=(-2, 2), solver=fv.Tailored(rounds=3), **SHORT
    ),
}
SOLVERS = {
    "FermiClassifier": " (Fermi)",
    "GroupObjectiveClassifier": " (GroupObjective)",
    "GroupObjectiveRegressor": " (GroupObjective)",
    "FairPostProcessor": "",
    "OracleGameClassifier": " (OracleGame)",
    "TailoredClassifier": " (Tailored)",
    "TailoredRegressor": " (Tailored)",
}


@pytest.fixture
def book() -> fv.Ledger:
    return budget()


def budget(epsilon: float = 40.0, url: Any = None, name: str = "people", **terms: Any) -> fv.Ledger:
    return fv.Ledger.create(url, name, epsilon, 1e-6, **terms)


def fitted(estimator: Any, **options: Any) -> Any:
    """Whether or not a constraint could be met with so much noise."""
    y = NUMBERS if "Regressor" in type(estimator).__name__ else LABELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        return estimator.set_params(**options).fit(X, y, sensitive_features=A)


def lines(book: fv.Ledger) -> list[tuple[str, str]]:
    return [(line.kind, line.purpose) for line in book.history()][1:]


def kinds(book: fv.Ledger) -> list[str]:
    return [kind for kind, _ in lines(book)]


def charged(book: fv.Ledger) -> int:
    return list(book.history())[-1].spent


def sound(book: fv.Ledger, *fits: Any) -> bool:
    return not [
        finding for finding in book.check([fit.privacy_.ledger for fit in fits]) if finding.grave
    ]


class Killed(BaseException):
    """What ends a fit in the middle."""


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Fits that end at their second answer, between two or inside of it."""

    def at_the_second(fit: Any, *, inside: bool = False) -> None:
        answered: list[int] = []
        answer, release = Curator.answer, Books.release

        def breaks(number: int, go_on: Any, *given: Any, **options: Any) -> Any:
            answered.append(1)
            if len(answered) == number:
                raise Killed
            return go_on(*given, **options)

        with monkeypatch.context() as patch:
            if inside:
                patch.setattr(Books, "release", lambda *given: breaks(2, release, *given))
            else:
                patch.setattr(
                    Curator,
                    "answer",
                    lambda *given, **options: breaks(2, answer, *given, **options),
                )
            with pytest.raises(Killed):
                fit()

    return at_the_second


# Every estimator
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_every_estimator_records_what_it_costs_and_its_statement_has_the_receipt(
    name: str, book: fv.Ledger
) -> None:
    one = fitted(clone(ALL[name]), ledger=book)
    base = [
        (RESERVED, "FairClassifier.fit (PrimalDual)"),
        (COMMITTED, "FairClassifier.fit (PrimalDual)"),
    ]
    purpose = f"{type(one).__name__}.fit{SOLVERS.get(name, ' (PrimalDual)')}"
    assert lines(book) == [
        *(base if name == "FairPostProcessor" else []),
        (RESERVED, purpose),
        (COMMITTED, purpose),
    ]
    parts = (
        [one.privacy_.plan]
        if name != "FairPostProcessor"
        else [one.estimator_.privacy_.plan, one.privacy_.plan[-1:]]
    )
    assert charged(book) == sum(book.terms.cost(part, book.promise).units for part in parts) > 0
    assert one.privacy_.ledger.entry == len(kinds(book)) - 1
    assert one.privacy_.check() == []
    assert sound(book, one)


@pytest.mark.parametrize("name", ALL)
def test_every_estimator_refuses_early_and_leaves_nothing_behind(name: str) -> None:
    """Before its rows are looked at: these are none."""
    book, tight = budget(production=True), budget(0.1)
    wrong: tuple[dict[str, Any], ...] = (
        {"epsilon": float("inf")},
        {"protects": "sensitive_features"},
        {"random_state": 0},
    )
    for options in (*wrong, {"ledger": "budget.db"}):
        one = clone(ALL[name]).set_params(**{"ledger": book, **options})
        with pytest.raises(LedgerError, match="ledger"):
            one.fit(None, None)
    one = clone(ALL[name])
    with pytest.raises(Overspent, match="largest epsilon that fits") as refused:
        fitted(one, ledger=tight)
    assert 0 < refused.value.largest_epsilon < 0.101
    assert not hasattr(one, "privacy_")
    assert kinds(book) == kinds(tight) == []


def test_a_production_ledger_takes_what_a_schema_states_alone() -> None:
    table = {"x": X[:, 0], "z": X[:, 1], "a": A.astype(bool), "y": LABELS}
    book = budget(production=True, schema=SCHEMA)
    for options, words in (
        ({}, "a schema of fingerprint"),
        ({"schema": SCHEMA.without("z")}, "a schema of fingerprint"),
        ({"schema": SCHEMA, "unsafe_data_dependent_bounds": True}, "unsafe_data_dependent_bounds"),
    ):
        # refused before rows are looked at, where it can be
        given = (None, None) if "schema" in options else (X, LABELS)
        with pytest.raises(LedgerError, match=words):
            rated(ledger=book, constraints=None, **options).fit(*given)
    with pytest.raises(LedgerError, match="classes"):
        rated(ledger=budget(production=True)).fit(X, LABELS, sensitive_features=A)
    assert kinds(book) == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        rated(ledger=book, schema=SCHEMA).fit(table)
    assert kinds(book) == [RESERVED, COMMITTED]
    frame = pd.DataFrame(table)
    elsewhere = LogisticRegression().fit(frame[["x", "z"]], LABELS)
    with pytest.raises(LedgerError, match="a base classifier that was fitted without a guarantee"):
        post(elsewhere, public_base=True, ledger=book, schema=SCHEMA).fit(frame)
    assert kinds(book) == [RESERVED, COMMITTED]


def test_a_fit_that_is_interrupted_spends_what_it_asked_and_all_where_an_answer_failed(
    book: fv.Ledger, killed: Any
) -> None:
    whole = charged_by(rated())
    killed(lambda: fitted(rated(ledger=book)))
    assert kinds(book) == [RESERVED, COMMITTED]
    assert 0 < charged(book) < whole
    before = charged(book)
    killed(lambda: fitted(rated(ledger=book)), inside=True)
    assert charged(book) == before + whole
    assert sound(book)


def charged_by(estimator: Any) -> int:
    book = budget()
    fitted(estimator, ledger=book)
    return charged(book)


# Copies
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [True, False])
def test_a_search_in_two_processes_spends_exactly_the_sum_of_its_fits(
    tmp_path: Path, block: bool
) -> None:
    book = budget(url=tmp_path / "budget.db")
    pipe = Pipeline(
        [
            ("scale", MinMaxScaler((-1, 1))),
            ("fair", rated(constraints=None, ledger=None if block else book)),
        ]
    )
    search = GridSearchCV(pipe, {"fair__epsilon": [0.5, 2.0]}, cv=2, n_jobs=2)
    if block:
        with fv.Ledger.open(tmp_path / "budget.db").recording():
            search.fit(X, LABELS)
    else:
        search.fit(X, LABELS)
    cost = {epsilon: charged_by(rated(constraints=None, epsilon=epsilon)) for epsilon in (0.5, 2.0)}
    best = search.best_params_["fair__epsilon"]
    assert charged(book) == 2 * cost[0.5] + 2 * cost[2.0] + cost[best]
    assert Counter(lines(book)) == {
        (kind, "FairClassifier.fit (PrimalDual)"): 5 for kind in (RESERVED, COMMITTED)
    }
    assert len({line.who for line in book.history()}) == 1
    assert sound(book, search.best_estimator_["fair"])


def test_a_clone_and_a_pickle_that_was_not_fitted_have_the_block_s_ledger(
    tmp_path: Path, book: fv.Ledger
) -> None:
    kept, one = budget(url=tmp_path / "budget.db"), post(rated())
    with kept.recording():
        for copy in (clone(one), pickle.loads(pickle.dumps(one))):
            assert copy.ledger.address == copy.estimator.ledger.address == kept.address
        assert clone(post(rated(), ledger=book)).ledger is book
        assert clone(Pipeline([("fair", one)])).named_steps["fair"].ledger is kept
        alone = fitted(rated())
        assert alone.ledger is None
        arrived = pickle.loads(pickle.dumps(alone))
        assert arrived.ledger is None
    # where it arrives, clones and fits are recorded, too
    assert clone(arrived).ledger.address == kept.address
    fitted(arrived)
    assert one.ledger is None is one.estimator.ledger
    assert clone(one).ledger is None
    assert pickle.loads(pickle.dumps(one)).ledger is None
    assert kinds(kept) == [RESERVED, COMMITTED] * 2
    with book.recording(), pytest.raises(LedgerError, match="in memory"):
        pickle.dumps(one)


def test_a_ledger_is_never_saved(tmp_path: Path) -> None:
    book = budget(url=tmp_path / "budget.db")
    one = fitted(post(rated()), ledger=book)
    fv.save(one, tmp_path / "model")
    loaded = fv.load(tmp_path / "model")
    assert loaded.ledger is None is loaded.estimator_.ledger
    assert loaded.privacy_ == one.privacy_
    assert loaded.privacy_.ledger.spend
    assert not any(b"budget.db" in path.read_bytes() for path in (tmp_path / "model").iterdir())


# Long fits
# --------------------------------------------------------------------------------------------------


def test_a_fit_in_a_folder_is_charged_once_and_a_copy_of_the_folder_is_refused(
    tmp_path: Path, book: fv.Ledger, killed: Any
) -> None:
    folder, copy = tmp_path / "fit", tmp_path / "copy"
    with pytest.raises(Overspent):
        fitted(rated(checkpoint=folder, ledger=budget(0.1)))
    assert not folder.exists()
    killed(lambda: fitted(rated(checkpoint=folder, ledger=book)))
    shutil.copytree(folder, copy)
    with pytest.raises(LedgerError, match="the run began with"):
        fitted(rated(checkpoint=folder))
    done = fitted(rated(checkpoint=folder, ledger=book))
    assert kinds(book) == [RESERVED, RESUMED, COMMITTED]
    assert charged(book) == pytest.approx(charged_by(rated()), rel=1e-9)
    again = fitted(rated(checkpoint=folder, ledger=book))  # told all again, and charged nothing
    assert np.array_equal(again.outcome_.weights, done.outcome_.weights)
    with pytest.raises(PrivacyError):
        fitted(rated(checkpoint=copy, ledger=book))
    assert kinds(book) == [RESERVED, RESUMED, COMMITTED]
    assert sound(book, done)


# Post-processing
# --------------------------------------------------------------------------------------------------


def test_a_fitted_base_is_charged_once_wherever_it_was_fitted(book: fv.Ledger) -> None:
    half = rated(epsilon=0.5)
    elsewhere, known = fitted(clone(half)), fitted(clone(half), ledger=book)
    base = charged(book)
    fitted(post(known), ledger=book)
    assert kinds(book)[2:] == [RESERVED, COMMITTED]  # the counts alone
    before = charged(book)
    fitted(post(elsewhere), ledger=book)
    assert Counter(lines(book)[4:]) == {
        (kind, purpose): 1
        for kind in (RESERVED, COMMITTED)
        for purpose in ("FairPostProcessor.fit", "FairPostProcessor.fit: its base")
    }
    assert charged(book) == before + base + (before - base)
    other = budget()
    asks_nothing = fitted(fv.FairPostProcessor(known, ledger=other))
    assert kinds(other) == [RESERVED, COMMITTED]
    assert charged(other) == base
    assert sound(other, asks_nothing)


def test_a_base_with_the_receipt_of_another_release_is_charged(book: fv.Ledger) -> None:
    """A receipt is a word of the base's file: it is believed for the releases of its line alone."""
    cheap = fitted(rated(epsilon=0.01, rounds=2), ledger=book)
    dear = fitted(rated(epsilon=0.5))
    dear.privacy_ = replace(dear.privacy_, ledger=cheap.privacy_.ledger)
    before = len(lines(book))
    fitted(post(dear), ledger=book)
    assert (RESERVED, "FairPostProcessor.fit: its base") in lines(book)[before:]


def test_where_base_and_counts_do_not_both_fit_nothing_is_charged_if_that_can_be_foreseen(
    monkeypatch: Any,
) -> None:
    elsewhere = fitted(rated(epsilon=0.5))
    tight = budget(1.0)
    with pytest.raises(Overspent):
        fitted(post(rated()), ledger=tight)  # its base alone would fit
    assert kinds(tight) == []
    with pytest.raises(Overspent):
        fitted(post(elsewhere), ledger=tight)
    assert kinds(tight) == [RESERVED, REFUNDED]
    assert charged(tight) == 0
    monkeypatch.setattr(wrapped, "about_to_spend", lambda *_: ())
    with pytest.raises(Overspent, match="its base classifier was fitted, and stays charged"):
        fitted(post(rated()), ledger=tight)
    assert kinds(tight) == [RESERVED, REFUNDED, RESERVED, COMMITTED]


def test_base_and_counts_have_one_ledger(book: fv.Ledger) -> None:
    other = budget(name="others")
    with pytest.raises(LedgerError, match="as around it"):
        fitted(post(rated(ledger=other)), ledger=book)
    fitted(post(rated(ledger=book)))
    with other.recording():
        fitted(clone(post(rated(), ledger=book)))
    assert kinds(book) == [RESERVED, COMMITTED] * 4
    assert kinds(other) == []


# Many models
# --------------------------------------------------------------------------------------------------


def test_a_frontier_is_one_spend_a_panel_and_is_refused_whole(book: fv.Ledger) -> None:
    options: dict[str, Any] = {
        "gaps": (0.3, 0.1),
        "seeds": 2,
        "estimator": rated(constraints=None, ledger=book),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        found = fv.frontier(X, LABELS, A, epsilons=(3.0, 4.0), **options)
    purpose = "FairClassifier.fit (PrimalDual), 4 models together"
    assert lines(book) == [(RESERVED, purpose), (COMMITTED, purpose)] * 2
    models = found.models.values()
    assert {model.privacy_.ledger.entry for model in models} == {1, 3}
    assert found.privacy.ledger.entry == 3
    alone = sum(book.terms.cost(model.privacy_.plan, book.promise).units for model in models)
    assert abs(charged(book) - alone) <= len(models)  # each is rounded up
    assert sound(book, *models)
    tight = budget(3.0)
    options["estimator"] = rated(constraints=None, ledger=tight)
    with pytest.raises(Overspent):
        fv.frontier(X, LABELS, A, epsilons=(1.0, 1.5), **options)
    assert kinds(tight) == []


def test_a_ledger_that_all_was_given_back_of_is_as_one_that_was_just_begun() -> None:
    """A base alone would fit there, as the first spend; base and counts together do not, and that
    is said before it is charged."""
    book = budget(1.0)
    book.reserve(Gaussian(50.0)).refund()
    with pytest.raises(Overspent, match="several spends"):
        fitted(post(epsilon=1.0), ledger=book)
    assert kinds(book) == [RESERVED, REFUNDED]
