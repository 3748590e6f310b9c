"""`PrivateSearchCV`: what is released, what it costs, what a ledger is told, and what is
refused."""

from __future__ import annotations

import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import fairveil as fv
import ways
from fairveil.core.events import PrivateSelection, Repeated
from fairveil.errors import FairveilError, InputError, Overspent, PrivacyError
from fairveil.ledger import current
from fairveil.privacy import epsilon
from fairveil.study import private_search, search_fits, search_price, search_scores
from fairveil.study.search_scores import WORST, Scoring
from knobs import made

CLIPS = {"solver__clip": [0.5, 1.0, 2.0]}
SHORT = {"solver": fv.PrimalDual(rounds=4), "public_rows": 500}


def rows(n=700, seed=0):
    rng = np.random.default_rng(seed)
    X, A = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    return X, (X.sum(axis=1) + A + rng.normal(size=n) > 0).astype(int), A


def search(params=None, **more):
    base = made(fv.FairClassifier, "demographic_parity:0.2", **SHORT)
    options = ways.flat({"epsilon": 2.0, "random_state": 0, **more})
    return fv.PrivateSearchCV(base, CLIPS if params is None else params, **options)


@pytest.mark.parametrize("way", ["all", "selection"])
def test_guarantee_1_the_statement_is_the_price_of_the_whole_search(way) -> None:
    X, y, A = rows()
    found = search(way=way).fit(X, y, sensitive_features=A)
    stated = found.privacy_
    assert stated.epsilon == epsilon(stated.events, stated.delta, stated.neighbours) <= 2.0
    assert not stated.check()
    assert found.best_estimator_.privacy_ is stated
    kind = Repeated if way == "all" else PrivateSelection
    assert isinstance(stated.events[0], kind)
    assert found.price_.epsilon < 2.0
    assert "private search" in stated.summary()
    assert found.score(X, y) > 0.6
    assert found.predict_proba(X[:2]).shape == (2, 2)


@pytest.mark.parametrize("way", ["all", "selection"])
def test_guarantee_1_a_winner_that_is_fitted_again_is_charged(way) -> None:
    """The last fit reads all rows with the budget that was kept for it; the whole is within the
    promise, and one spend."""
    X, y, A = rows()
    ledger = fv.Ledger.create(None, "people", epsilon=2.0, delta=1e-6)
    found = search(way=way, refit=0.5, random_state=None, ledger=ledger).fit(
        X, y, sensitive_features=A
    )
    stated, last = found.privacy_, found.best_estimator_
    assert stated.epsilon == epsilon(stated.events, stated.delta, stated.neighbours) <= 2.0
    assert not stated.check()
    assert found.price_.refit_epsilon == last.epsilon > found.price_.epsilon
    own = (
        made(fv.FairClassifier, **last.get_params(deep=False))
        .fit(X, y, sensitive_features=A)
        .privacy_
    )
    assert epsilon(own.events, last.delta, "add-remove") <= epsilon(
        stated.events[-1], last.delta, "add-remove"
    ) * (1 + 1e-6)
    assert last.schema.rows == 500
    assert "fitted again to all rows" in stated.summary()
    assert ledger.balance().committed == 1


def test_a_last_fit_that_breaks_is_charged_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, A = rows()
    ledger = fv.Ledger.create(None, "people", epsilon=2.0, delta=1e-6)

    def broken(self, *given):
        raise KeyboardInterrupt

    monkeypatch.setattr(search_fits.Fits, "again", broken)
    with pytest.raises(KeyboardInterrupt):
        search(way="all", refit=0.5, random_state=None, ledger=ledger).fit(
            X, y, sensitive_features=A
        )
    assert ledger.balance().spent > 1.9
    with pytest.raises(InputError, match="refit"):
        search(refit=1.0).fit(X, y, sensitive_features=A)


def test_guarantee_2_of_a_selection_only_the_winner_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Runs, losers, scores and warnings: nothing of them is in the object, and nothing is heard."""
    made, real = [], search_fits.Fits.run

    def noted(self, at, price, number):
        made.append(real(self, at, price, number))
        return made[-1]

    monkeypatch.setattr(search_fits.Fits, "run", noted)
    X, y, A = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        found = search(way="selection", runs=6.0).fit(X, y, sensitive_features=A)
    assert len(made) > 1
    assert len(found.cv_results_["params"]) == 1
    assert found.best_score_ == max(one.score for one in made)
    losers = [one for one in made if one.model is not found.best_estimator_]
    held = str(vars(found))
    assert all(repr(one.score) not in held for one in losers if one.score != found.best_score_)


def test_guarantee_2_an_error_of_one_run_says_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(self, at, price, number):
        raise ValueError("row 17 holds 3.14")

    monkeypatch.setattr(search_fits.Fits, "run", failing)
    X, y, A = rows()
    with pytest.raises(PrivacyError) as error:
        search(way="selection").fit(X, y, sensitive_features=A)
    assert "17" not in str(error.value)
    assert error.value.__suppress_context__


@pytest.mark.parametrize("way", ["all", "selection"])
def test_guarantee_3_a_ledger_has_one_spend_of_the_worst_case(way) -> None:
    X, y, A = rows()
    ledger = fv.Ledger.create(None, "people", epsilon=2.5, delta=1e-5)
    with ledger.recording():
        found = search(way=way).fit(X, y, sensitive_features=A)
        assert current() is ledger
    assert ledger.balance().committed == 1
    assert found.privacy_.ledger is not None
    with pytest.raises(Overspent):
        search(way=way, ledger=ledger).fit(X, y, sensitive_features=A)
    assert ledger.balance().committed == 1


def test_guarantee_3_an_interrupt_charges_what_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """All: the runs so far; a selection: everything."""
    real = search_fits.Fits.run

    def interrupted(self, at, price, number):
        if number == 1:
            raise KeyboardInterrupt
        return real(self, at, price, number)

    monkeypatch.setattr(search_fits.Fits, "run", interrupted)
    monkeypatch.setattr(search_price, "runs", lambda *_: 3)
    X, y, A = rows()
    spent = {}
    for way in ("all", "selection"):
        ledger = fv.Ledger.create(None, "people", epsilon=3.0, delta=1e-5)
        asked = search({"solver__clip": [0.5, 1.0, 2.0, 4.0]}, way=way, ledger=ledger)
        with pytest.raises(KeyboardInterrupt):
            asked.fit(X, y, sensitive_features=A)
        assert not hasattr(asked, "best_estimator_")
        spent[way] = ledger.balance().spent
    assert 1.0 < spent["all"] < 1.9
    assert spent["selection"] > 1.9


def test_guarantee_4_a_pipeline_that_learns_is_refused_and_another_is_searched() -> None:
    X, y, _ = rows()
    clf = made(fv.FairClassifier, **SHORT)
    learns = Pipeline([("scale", StandardScaler()), ("clf", clf)])
    with pytest.raises(PrivacyError, match="scale"):
        fv.PrivateSearchCV(learns, {"clf__solver__clip": [1.0]}).fit(X, y)
    plain = Pipeline([("half", FunctionTransformer(lambda values: values / 2)), ("clf", clf)])
    found = fv.PrivateSearchCV(
        plain, {"clf__solver__clip": [0.5, 1.0]}, epsilon=2.0, way="all", random_state=0
    ).fit(X, y)
    assert set(found.best_params_) == {"clf__solver__clip"}
    assert found.predict(X[:3]).shape == (3,)
    with pytest.raises(InputError, match="clip"):
        fv.PrivateSearchCV(plain, {"solver__clip": [1.0]}).fit(X, y)


def test_rows_are_set_aside_by_coins_that_no_other_row_moves() -> None:
    """A row less at the end: the same coins for the rest. And about the share: within 5
    deviations."""
    X, y, A = rows(2000)
    whole, aside = (part.X for part in search_fits.split(search_fits.Rows(X, y, A), 0.25, 3))
    fewer = search_fits.split(search_fits.Rows(X[:-1], y[:-1], A[:-1]), 0.25, 3)[0].X
    assert len(whole) + len(aside) == 2000
    assert abs(len(aside) - 500) < 5 * np.sqrt(2000 * 0.25 * 0.75)
    assert 0 <= len(whole) - len(fewer) <= 1
    assert np.array_equal(whole[: len(fewer)], fewer)
    assert not {tuple(row) for row in whole} & {tuple(row) for row in aside}


def test_coded_rows_frames_and_mappings_are_parted_alike() -> None:
    from fairveil.data import encode
    from fairveil.facts import Boolean, Category, Number, Schema

    rng = np.random.default_rng(4)
    table = {
        "age": rng.uniform(0, 9, 50),
        "sex": rng.choice(["f", "m"], 50),
        "hired": rng.random(50) < 0.5,
    }
    schema = Schema(
        {"age": Number(0, 9), "sex": Category(("f", "m")), "hired": Boolean()},
        target="hired",
        sensitive=("sex",),
    )
    coded = encode(table, schema, block_rows=16)
    parts = [
        search_fits.split(search_fits.Rows(one, None, None), 0.3, 5)
        for one in (table, pd.DataFrame(table), coded)
    ]
    for side in (0, 1):
        mapping, frame, rows_ = (part[side].X for part in parts)
        assert np.array_equal(mapping["age"], frame["age"].to_numpy())
        again = encode(mapping, schema)
        for name in ("numbers", "codes", "labels", "sensitive"):
            found = [
                np.concatenate([getattr(one, name) for one in each.blocks()], axis=-1)
                for each in (rows_, again)
            ]
            assert np.array_equal(*found)
    with pytest.raises(InputError, match="set aside"):
        search_fits.split(search_fits.Rows([[1.0]], None, None), 0.3, 5)


def test_scores_are_functions_of_released_counts() -> None:
    from fairveil.facts import Cells

    counts, cells = (
        np.array([[[40.0, 10], [10, 40]], [[30, 20], [5, 45]]]),
        Cells(((0, 1),), names=("g",)),
    )
    assert Scoring("error").of(counts, cells, (0, 1)) == pytest.approx(-45 / 200)
    gap = Scoring("gap", "demographic_parity:0.05").of(counts, cells, (0, 1))
    assert gap == pytest.approx(-0.15)
    both = Scoring("lagrangian", "demographic_parity:0.05", 2.0).of(counts, cells, (0, 1))
    assert both == pytest.approx(-(45 / 200 + 2.0 * 0.10))
    assert Scoring(lambda table: -table[0, 0, 1]).of(counts, cells, (0, 1)) == -10.0
    assert Scoring("error").of(np.full((2, 2, 2), -1.0), cells, (0, 1)) == WORST
    assert (
        Scoring("gap", "demographic_parity:0.05").of(counts * [[[1.0]], [[0.0]]], cells, (0, 1))
        == WORST
    )


def test_an_error_is_scored_from_two_counts_and_its_least_gain_is_smaller() -> None:
    """Right and wrong decisions: less noise than all pairs of classes have."""
    for classes in (2, 4):
        X = np.random.default_rng(0).normal(size=(4_000, 2))
        y = np.digitize(X.sum(axis=1), np.linspace(-1, 1, classes - 1))
        gains = {}
        for scoring in ("error", lambda table: -float(table.sum() - np.trace(table.sum(axis=0)))):
            clf = made(fv.FairClassifier, **{**SHORT, "public_rows": 4_000})
            found = fv.PrivateSearchCV(
                clf, CLIPS, scoring=scoring, epsilon=4.0, way="auto", random_state=0
            ).fit(X, y)
            gains[scoring == "error"] = found.price_.least_gain
            if scoring == "error":
                assert found.price_.way == "all"
                scores = found.cv_results_["mean_test_score"]
                assert np.all((scores <= 0.0) & (scores >= -1.0))
                truth = float(np.mean(found.predict(X) != y))
                assert abs(-found.best_score_ - truth) < 0.15
        assert gains[False] == pytest.approx(gains[True] * np.sqrt(classes * (classes - 1)))
    scored = Scoring("error").of(np.array([[[30.0, 10.0]]]), None, None)
    assert scored == pytest.approx(-0.25)


def test_tables_schemas_and_distributions() -> None:
    from fairveil.facts import Boolean, Category, Number, Schema

    rng = np.random.default_rng(1)
    table = pd.DataFrame({"age": rng.uniform(17, 90, 600), "sex": rng.choice(["f", "m"], 600)})
    table["hired"] = table["age"] + rng.normal(scale=20, size=600) > 50
    columns = {"age": Number(17, 90), "sex": Category(("f", "m")), "hired": Boolean()}
    schema = Schema(columns, target="hired", sensitive=("sex",), rows=450)
    clf = fv.FairClassifier("demographic_parity:0.2", schema=schema, solver=fv.PrimalDual(rounds=4))
    wanted = {"solver__clip": stats.loguniform(0.5, 4.0)}
    found = fv.PrivateSearchCV(
        clf, wanted, n_iter=3, epsilon=3.0, scoring="lagrangian", way="all", random_state=2
    ).fit(table)
    assert 0.5 <= found.best_params_["solver__clip"] <= 4.0
    assert len(clone(found).fit(table).cv_results_["params"]) == len(found.cv_results_["params"])
    assert found.best_params_ == clone(found).fit(table).best_params_


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"params": {}}, "names of parameters"),
        ({"params": {"solver__clip": []}}, "list of values"),
        ({"params": {"solver__clip": "abc"}}, "list of values"),
        ({"params": []}, "names of parameters"),
        ({"params": {"clop": [1.0]}}, "clop"),
        ({"params": {"epsilon": [1.0]}}, "epsilon"),
        ({"params": {"solver__clip": [1.0] * 2000}}, "candidates"),
        ({"params": {"solver__clip": stats.loguniform(0.5, 4.0)}, "n_iter": 0}, "n_iter"),
        ({"refit": 1.0}, "refit"),
        ({"epsilon": float("inf")}, "finite"),
        ({"delta": 0.0}, "delta"),
        ({"scoring": "accuracy"}, "error"),
        ({"way": "grid"}, "auto"),
        ({"runs": 0.5}, "at least 1"),
        ({"holdout": 0.0}, "holdout"),
        ({"weight": -1.0}, "weight"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(more, words) -> None:
    X, y, A = rows(60)
    ledger = fv.Ledger.create(None, "people", epsilon=3.0, delta=1e-5)
    with pytest.raises(FairveilError, match=words):
        search(**{"params": CLIPS, "ledger": ledger, **more}).fit(X, y, sensitive_features=A)
    assert ledger.is_untouched


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), fv.FairPostProcessor(), ways.objective_regression(), None]
)
def test_what_cannot_be_searched_is_refused(estimator) -> None:
    X, y, _ = rows(60)
    with pytest.raises(InputError, match="private classifier"):
        fv.PrivateSearchCV(estimator, {"C": [1.0]}).fit(X, y)
    with pytest.raises(InputError, match="unit"):
        fv.PrivateSearchCV(
            fv.FairClassifier(schema=fv.Schema(unit="p", max_rows_per_unit=2)), CLIPS
        ).fit(X, y)
    with pytest.raises(InputError, match="param_distributions"):
        fv.PrivateSearchCV(fv.FairClassifier(), {"unit": ["p", None]}).fit(X, y)


def people(count=300, seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat(np.arange(count), rng.integers(1, 6, count)))
    group, x = rng.integers(0, 2, count)[ids], rng.uniform(-1, 1, len(ids))
    y = (x + 0.3 * group + 0.2 * rng.normal(size=len(ids)) > 0).astype(int)
    return pd.DataFrame({"x": x, "who": [f"p{i}" for i in ids], "group": group}), y


def test_candidates_are_fitted_as_to_the_rows_that_are_not_held_out() -> None:
    X, y, A = rows()
    found = search(way="all", holdout=0.4).fit(X, y, sensitive_features=A)
    assert found.best_estimator_.schema.rows == 300  # of 500 that are stated


def of_persons(**more):
    return made(
        fv.FairClassifier,
        "demographic_parity:0.2",
        **{"rounds": 4, "unit": "who", "max_rows_per_unit": 3, **more},
    )


@pytest.mark.parametrize("way", ["all", "selection"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_search_for_persons_keeps_each_on_one_side_and_counts_one_of_their_rows(
    way, neighbours, monkeypatch
) -> None:
    X, y = people()
    sides, counted = [], []
    of_split, of_scores = private_search.split, search_scores.counted

    def parted(*args):
        found = of_split(*args)
        sides[:] = [set(X["who"].to_numpy()[one.X.index]) for one in found]
        return found

    def scored(*args):
        found = of_scores(*args)
        counted.append(float(found.counts.sum()))
        return found

    monkeypatch.setattr(private_search, "split", parted)
    monkeypatch.setattr(search_scores, "counted", scored)
    options = {
        "way": way,
        "epsilon": 40.0,
        "delta": 1e-5,
        "protects": f"records:{neighbours}",
        "random_state": 0,
        "holdout": 0.4,
    }
    search = fv.PrivateSearchCV(of_persons(), CLIPS, **options)
    found = search.fit(X, y, sensitive_features="group")
    fitted, aside = sides
    assert fitted | aside == set(X["who"])
    assert not fitted & aside
    assert all(abs(one - len(aside)) < 15 for one in counted)  # persons, not rows
    assert found.privacy_.promise.unit == found.best_estimator_.privacy_.promise.unit
    assert found.privacy_.promise.unit.max_rows == 3
    assert found.privacy_.check() == []
    assert found.privacy_.epsilon <= 40.0
    assert "each person, with all of their rows" in str(found.privacy_.facts)


def test_a_score_for_persons_moves_by_one_row_of_each_and_by_all_where_rows_are_public() -> None:
    """The noise of scores."""
    X, y = people(100)
    ledger = fv.Ledger.create(None, "people", epsilon=100.0, delta=1e-3, unit="who")
    base = of_persons(max_rows_per_unit=5)
    options = {"epsilon": 20.0, "delta": 1e-5, "random_state": 0, "way": "all"}
    found = fv.PrivateSearchCV(base, CLIPS, ledger=ledger, **options)
    found.fit(X, y, sensitive_features="group")
    bound = next(one for one in found.privacy_.bounds if one.question == search_fits.COUNTED)
    assert (bound.sensitivity, bound.reason) == (pytest.approx(1.0), "a person counts once")
    assert ledger.check() == []
    public = fv.PrivateSearchCV(base, CLIPS, protects="sensitive_features", **options)
    public.fit(X, y, sensitive_features="group")
    bound = next(one for one in public.privacy_.bounds if one.question == search_fits.COUNTED)
    assert bound.sensitivity == pytest.approx(5 * np.sqrt(2))
    assert bound.reason == "a person counts with each row"


def test_a_folder_that_keeps_one_fit_is_refused(tmp_path) -> None:
    game = ways.game("demographic_parity:0.2", checkpoint=tmp_path)
    X, y, A = rows()
    with pytest.raises(InputError, match=r"estimator\.checkpoint"):
        fv.PrivateSearchCV(game, {"oracle": ["regression", "descent"]}, epsilon=2.0).fit(
            X, y, sensitive_features=A
        )


class Telling(fv.FairClassifier):
    """One whose second candidate fails, in the words of somebody's row."""

    def fit(self, X, y, **more):
        if self.solver.clip == self.fails:
            raise ValueError(f"the value {X[3, 0]} is strange")
        return super().fit(X, y, **more)


@pytest.mark.parametrize(("fails", "told"), [(0.5, "is strange"), (1.0, "one that failed")])
def test_a_failure_after_a_release_shows_no_value(fails, told, monkeypatch) -> None:
    """The first candidate's error comes before anything is released, and may say what is wrong."""
    X, y, A = rows()
    monkeypatch.setattr(Telling, "fails", fails, raising=False)
    base = made(Telling, "demographic_parity:0.2", **SHORT)
    ledger = fv.Ledger.create(None, "people", epsilon=2.0, delta=1e-6)
    asked = fv.PrivateSearchCV(base, CLIPS, way="all", epsilon=1.0, ledger=ledger)
    with pytest.raises((ValueError, FairveilError), match=told) as failed:
        asked.fit(X, y, sensitive_features=A)
    if told == "one that failed":
        assert isinstance(failed.value, PrivacyError)
        assert "strange" not in "".join(traceback.format_exception(failed.value))
    assert ledger.balance().spent > 0
