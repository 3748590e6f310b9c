"""What a base is asked for, its scores as bins, and fits by scores: what is asked is got, and what
goes wrong is said."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimator_samples import short
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fairveil as fv
import ways
from fairveil.errors import FairveilError, InputError
from fairveil.estimators import post_processing, wrapped
from fairveil.facts import Schema
from fairveil.methods import score_bins
from knobs import made

ROWS = 3000
RNG = np.random.default_rng(0)
A = RNG.integers(2, size=ROWS)
X = RNG.normal(size=(ROWS, 3))
X[:, 0] += A
Y = (X.sum(axis=1) + RNG.normal(size=ROWS) > 0.8).astype(int)
PARITY = "demographic_parity:0.02"
GROUPS: dict[str, Any] = {"protects": "sensitive_features", "random_state": 0}


def gap(clf: fv.FairPostProcessor, X: Any = X, y: Any = Y, A: Any = A, **groups: Any) -> float:
    law = clf.predict_proba(X, **(groups or {"sensitive_features": A}))
    return float(fv.demographic_parity_gap(y, law, A, classes=clf.classes_.tolist()))


# -- which answers


@pytest.mark.parametrize(
    ("base", "method"),
    [
        (None, "decision_function"),
        (LogisticRegression(), "decision_function"),
        (LinearSVC(), "decision_function"),
        (GaussianNB(), "predict_proba"),
        (RandomForestClassifier(20, max_depth=4, random_state=0), "predict_proba"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "decision_function"),
        (ways.objective("error", method="exponential"), "predict"),
    ],
)
def test_a_score_is_asked_for_where_there_is_one(base: Any, method: str) -> None:
    clf = made(fv.FairPostProcessor, base, PARITY, **GROUPS).fit(X, Y, sensitive_features=A)
    assert clf.predict_method_ == method
    assert (clf.edges_ is None) == (method == "predict")
    assert clf.mixing_.shape == (2, 2 if method == "predict" else 1 + len(clf.edges_), 2)
    assert clf.released_ is not None
    assert gap(clf) <= max(clf.guarantee_.value_bounds) + 1e-9
    said = post_processing.OF_DECISIONS if method == "predict" else post_processing.OF_SCORES
    assert clf.constraint_report_.reason.endswith(said)
    hard = made(fv.FairPostProcessor, base, PARITY, predict_method="predict", **GROUPS).fit(
        X, Y, sensitive_features=A
    )
    assert hard.edges_ is None
    if method != "predict":
        # and no worse than its decisions beyond noise
        assert clf.guarantee_.error <= hard.guarantee_.error + 0.005


def test_what_is_asked_for_by_name_is_asked_and_must_be_there() -> None:
    base = LogisticRegression().fit(X, Y)
    both = [
        made(fv.FairPostProcessor, base, PARITY, predict_method=method, **GROUPS).fit(
            X, Y, sensitive_features=A
        )
        for method in ("decision_function", "predict_proba")
    ]
    # a logistic regression's logit is its score
    assert np.allclose(both[0].edges_, both[1].edges_, atol=1e-6)
    assert np.allclose(
        both[0].predict_proba(X, sensitive_features=A),
        both[1].predict_proba(X, sensitive_features=A),
    )
    for wrong, match in (
        ({"estimator": GaussianNB(), "predict_method": "decision_function"}, "decision_function"),
        ({"estimator": base, "predict_method": "proba"}, "predict_method"),
        ({"estimator": base, "bins": 1}, "bins"),
        ({"estimator": base, "bins": [1.0, 0.0]}, "bins"),
        ({"estimator": base, "bins": 4096}, "bins"),
        ({"estimator": base, "bins": 8, "predict_method": "predict"}, "bins is not used"),
    ):
        with pytest.raises(FairveilError, match=match):
            made(fv.FairPostProcessor, constraints=PARITY, **{**GROUPS, **wrong}).fit(
                X, Y, sensitive_features=A
            )
    three = made(
        fv.FairPostProcessor, LogisticRegression(), PARITY, predict_method="predict_proba", **GROUPS
    )
    with pytest.raises(InputError, match="two classes"):
        three.fit(X, Y + (X[:, 0] > 2), sensitive_features=A)


def test_classes_in_another_order_turn_the_score_round() -> None:
    words = np.where(Y == 1, "yes", "no")
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    facts: dict[str, Any] = {name: fv.facts.Number(-10, 10) for name in table}
    facts |= {"hired": fv.facts.Category(("yes", "no")), "group": fv.facts.Category((0, 1))}
    schema = fv.facts.Schema(facts, target="hired", sensitive=["group"])
    base = LogisticRegression().fit(table, words)
    turned = made(
        fv.FairPostProcessor, base, fv.DemographicParity(0.02), schema=schema, **GROUPS
    ).fit(table, words, sensitive_features=A)
    plain = made(fv.FairPostProcessor, base, fv.DemographicParity(0.02), **GROUPS).fit(
        table, words, sensitive_features=A
    )
    assert turned.classes_.tolist() == ["yes", "no"]
    assert plain.classes_.tolist() == ["no", "yes"]
    assert turned.guarantee_.error == pytest.approx(plain.guarantee_.error, abs=0.01)
    assert (
        wrapped.scores_of(base, "decision_function", table, ("yes", "no")).tolist()
        == (-base.decision_function(table)).tolist()
    )
    constant = DummyClassifier(strategy="prior").fit(table, words[::-1])
    scores = wrapped.scores_of(constant, "predict_proba", table, ("yes", "no"))
    assert ((scores > 0) == (constant.predict(table) == "no")).all()


# -- guarantee 1: edges


def test_guarantee_1_edges_do_not_depend_on_private_rows() -> None:
    """Records: whatever the rows are. Groups alone protected: on public scores, and not on the
    groups."""
    base = LogisticRegression().fit(X, Y)
    found = [
        fv.FairPostProcessor(base, PARITY, public_base=True, random_state=0)
        .fit(x, Y, sensitive_features=a)
        .edges_
        for x, a in ((X, A), (X * 100.0, A), (X - 3.0, 1 - A))
    ]
    assert all((edges == found[0]).all() for edges in found)
    assert found[0].tolist() == score_bins.fixed(len(found[0]) + 1).tolist()
    shuffled = RNG.permutation(A)
    public = [
        made(fv.FairPostProcessor, base, PARITY, **GROUPS).fit(X, Y, sensitive_features=a).edges_
        for a in (A, shuffled)
    ]
    assert (public[0] == public[1]).all()
    assert public[0].tolist() != found[0].tolist()
    given = fv.FairPostProcessor(
        base, PARITY, solver=fv.Thresholds(bins=[-1.0, 0.5]), public_base=True
    ).fit(X, Y, sensitive_features=A)
    assert given.edges_.tolist() == [-1.0, 0.0, 0.5]


def test_guarantee_1_the_number_of_bins_follows_public_numbers() -> None:
    base = LogisticRegression().fit(X, Y)

    def bins(**options: Any) -> int:
        clf = made(fv.FairPostProcessor, base, PARITY, public_base=True, random_state=0, **options)
        return 1 + len(clf.fit(X, Y, sensitive_features=A).edges_)

    assert bins(epsilon=0.1) == 24
    assert bins(epsilon=0.02) == 4
    assert bins(epsilon=30.0) == 32
    assert bins(epsilon=1.0, public_rows=ROWS) == bins(
        epsilon=1.0, neighbours="replace-one", public_rows=None
    )
    assert bins(bins=12) == 12
    assert bins(epsilon=math.inf) > 200


def test_guarantee_1_the_number_of_rows_is_what_the_base_released_and_never_the_exact_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float | None] = []
    edges_of, kind = wrapped.edges_of, fv.FairPostProcessor

    def told(bins: Any, scores: Any, plan: Any, rows: float | None) -> Any:
        if scores is not None:
            asked.append(rows)
        return edges_of(bins, scores, plan, rows)

    monkeypatch.setattr(wrapped, "edges_of", told)
    clf = kind(short(random_state=None), PARITY, epsilon=3.0, random_state=0).fit(
        X, Y, sensitive_features=A
    )
    assert asked == [clf.estimator_.outcome_.rows]
    assert asked != [ROWS]
    fixed = LogisticRegression().fit(X, Y)
    kind(fixed, PARITY, public_base=True, random_state=0).fit(X, Y, sensitive_features=A)
    # of other people: what it released is none of these rows' number
    ours = short().fit(X[:500], Y[:500])
    kind(ours, PARITY, public_base=True, random_state=0).fit(X, Y, sensitive_features=A)
    assert asked[1:] == [None, None]


# -- guarantee 2: scores that are none, and bins at prediction


def test_guarantee_2_nan_is_an_error_at_the_fit_and_at_prediction_and_infinity_is_not() -> None:
    class Scored:
        classes_ = np.array([0, 1])

        def predict(self, X: Any) -> Any:
            return (np.asarray(X)[:, 0] > 0).astype(int)

        def decision_function(self, X: Any) -> Any:
            score = np.array(X)[:, 0]
            return np.where(np.abs(score) > 50, score * math.inf, score)

    holey = X.copy()
    holey[7, 0] = math.nan
    with pytest.raises(InputError, match="NaN"):
        made(fv.FairPostProcessor, Scored(), PARITY, **GROUPS).fit(holey, Y, sensitive_features=A)
    far = X.copy()
    far[:50, 0], far[50:90, 0] = 99.0, -99.0
    for options in (GROUPS, {"epsilon": math.inf}, {"public_base": True, "random_state": 0}):
        clf = made(fv.FairPostProcessor, Scored(), PARITY, **options).fit(
            far, Y, sensitive_features=A
        )
        assert np.isfinite(clf.predict_proba(far, sensitive_features=A)).all()
        with pytest.raises(InputError, match="NaN"):
            clf.predict_proba(holey, sensitive_features=A)


def test_guarantee_2_a_row_has_one_bin_alone_and_among_others() -> None:
    for base in (LogisticRegression(), KNeighborsClassifier(5)):
        clf = fv.FairPostProcessor(base, PARITY, epsilon=math.inf).fit(X, Y, sensitive_features=A)
        whole = clf.predict_proba(X[:60], sensitive_features=A[:60])
        alone = np.concatenate(
            [clf.predict_proba(X[i : i + 1], sensitive_features=A[i : i + 1]) for i in range(60)]
        )
        assert (whole == alone).all()


def test_constant_scores_are_one_bin_and_only_constants_are_left() -> None:
    base = DummyClassifier(strategy="prior")
    for options in (GROUPS, {"epsilon": math.inf}):
        clf = made(fv.FairPostProcessor, base, PARITY, **options).fit(X, Y, sensitive_features=A)
        law = clf.predict_proba(X, sensitive_features=A)
        assert gap(clf) <= 0.02 + 1e-7
        assert np.ptp(law[A == 0], axis=0).max() == 0.0
        assert (law[:, 1] > 0.5).all() == (Y.mean() > 0.5)


# -- what comes out


def test_without_privacy_the_gap_is_what_was_asked_and_the_error_that_of_fairlearn() -> None:
    fairlearn = pytest.importorskip("fairlearn.postprocessing")
    base = LogisticRegression().fit(X, Y)
    clf = fv.FairPostProcessor(base, fv.DemographicParity(0.0), epsilon=math.inf).fit(
        X, Y, sensitive_features=A
    )
    peer = fairlearn.ThresholdOptimizer(
        estimator=base,
        constraints="demographic_parity",
        prefit=True,
        predict_method="predict_proba",
        grid_size=4000,
    ).fit(X, Y, sensitive_features=A)
    chance = peer._pmf_predict(X, sensitive_features=A)
    assert gap(clf) <= 1e-6
    assert 1.0 - clf.score(X, Y, sensitive_features=A) == pytest.approx(
        1.0 - chance[np.arange(ROWS), Y].mean(), abs=1e-3
    )


def test_one_threshold_for_everybody_needs_no_group_at_prediction(tmp_path: Path) -> None:
    for method in ("auto", "predict"):
        clf = made(
            fv.FairPostProcessor,
            LogisticRegression(),
            fv.DemographicParity(0.05),
            solver=fv.Thresholds(group_aware=False),
            predict_method=method,
            **GROUPS,
        ).fit(X, Y, sensitive_features=A)
        law = clf.predict_proba(X)
        assert clf.model_.cells is None
        assert not clf.model_.reads_groups
        assert clf.cells_ is not None
        assert not any(
            "reads a person's group" in sentence for sentence in clf.privacy_.not_covered
        )
        assert fv.demographic_parity_gap(Y, law, A, classes=(0, 1)) <= clf.guarantee_.gap_bound
        assert clf.guarantee_.gap <= 0.05 + 1e-6
        loaded = fv.load(fv.save(clf, tmp_path / method), estimator=clf.estimator_)
        assert loaded.predict_proba(X).tobytes() == law.tobytes()
    hard = made(
        fv.FairPostProcessor, LogisticRegression(), fv.DemographicParity(0.05), **GROUPS
    ).fit(X, Y, sensitive_features=A)
    assert any("reads a person's group" in sentence for sentence in hard.privacy_.not_covered)


def test_a_base_that_is_fitted_here_keeps_its_score_where_one_class_for_all_errs_less() -> None:
    """A fit without constraints returns "no" for everybody there; bounds on false negatives need
    the score."""
    rng = np.random.default_rng(1)
    y = (rng.random(8000) < 0.04).astype(int)
    x = np.clip(0.35 * y + 0.3 * rng.normal(size=8000), -1, 1)[:, np.newaxis]
    base = fv.FairClassifier(random_state=4, schema=Schema(rows=8000))
    alone = clone(base).set_params(epsilon=0.8, delta=0.8e-6).fit(x, y)
    assert np.ptp(alone.decision_function(x)) == 0
    clf = fv.FairPostProcessor(
        base, fv.FalseNegativeRate(0.2), random_state=0, schema=Schema(rows=8000)
    ).fit(x, y)
    assert np.ptp(clf.estimator_.decision_function(x)) > 0.5  # the same search, by the same seed
    assert 1 - clf.score(x, y) < 0.6
    assert (
        fv.FairPostProcessor(None, fv.FalseNegativeRate(0.2), random_state=0)
        .fit(x, y)
        .estimator_.solver.randomised
        is None
    )
    asked = fv.FairClassifier(solver=fv.PrimalDual(randomised=True))
    kept = (
        fv.FairPostProcessor(asked, fv.FalseNegativeRate(0.2), random_state=0).fit(x, y).estimator_
    )
    assert kept.solver.randomised is True  # as it was asked for
    free = fv.FairPostProcessor(None, None, random_state=0).fit(x, y).estimator_
    assert free.solver is None or free.solver.randomised is False


def test_without_chance_each_group_has_one_threshold_and_what_cannot_be_kept_is_said() -> None:
    for method in ("auto", "predict"):
        options: dict[str, Any] = {**GROUPS, "predict_method": method, "randomised": False}
        clf = made(
            fv.FairPostProcessor, LogisticRegression(), fv.DemographicParity(0.1), **options
        ).fit(X, Y, sensitive_features=A)
        assert set(np.unique(clf.mixing_)) <= {0.0, 1.0}
        assert not clf.model_.is_randomised
        assert clf.constraint_report_.reason.startswith(post_processing.CHOSEN)
        first, again = (clf.predict(X, sensitive_features=A) for _ in range(2))
        assert (first == again).all()
    notions = [fv.FalseNegativeRate(0.05), fv.FalseNegativeRate(0.05, positive=0)]
    never = made(fv.FairPostProcessor, LogisticRegression(), notions, randomised=False, **GROUPS)
    with pytest.warns(fv.errors.ConstraintNotMet, match="no table without chance"):
        never.fit(X, Y, sensitive_features=A)


def test_a_false_negative_bound_needs_no_coin_beyond_one_bin() -> None:
    rng = np.random.default_rng(1)
    y = (rng.random(20_000) < 0.09).astype(int)
    x = (1.9 * y + rng.normal(size=20_000))[:, np.newaxis]
    base = LogisticRegression().fit(x, y)
    clf = fv.FairPostProcessor(
        base, fv.FalseNegativeRate(0.2), public_base=True, random_state=0
    ).fit(x, y)
    law = clf.predict_proba(x)
    assert ((law > 0) & (law < 1)).any(axis=1).mean() < 0.1
    assert law[y == 1, 0].mean() == pytest.approx(0.2, abs=0.03)
    cut = np.quantile(x[y == 1], 0.2)
    assert 1 - clf.score(x, y) <= ((x[:, 0] > cut) != y).mean() + 0.02
    hard = fv.FairPostProcessor(
        base,
        fv.FalseNegativeRate(0.2),
        public_base=True,
        random_state=0,
        solver=fv.Thresholds(predict_method="predict"),
    ).fit(x, y)
    assert 1 - hard.score(x, y) > 0.5


@pytest.mark.parametrize("base", [None, LogisticRegression(), GaussianNB()])
def test_on_disk_to_the_bit_and_what_contradicts_is_refused(base: Any, tmp_path: Path) -> None:
    import json

    clf = made(
        fv.FairPostProcessor, base, PARITY, solver=fv.Thresholds(bins=[-2.0, 0.5]), **GROUPS
    ).fit(X, Y, sensitive_features=A)
    path = fv.save(clf, tmp_path / "model")
    given = None if base is None else clf.estimator_
    loaded = fv.load(path, estimator=given)
    law = clf.predict_proba(X, sensitive_features=A)
    assert loaded.predict_proba(X, sensitive_features=A).tobytes() == law.tobytes()
    assert loaded.predict_method_ == clf.predict_method_
    assert (loaded.edges_ == clf.edges_).all()
    assert loaded.guarantee_ == clf.guarantee_
    assert loaded.solver.bins == [-2.0, 0.5]
    content = json.loads((path / "estimator.json").read_text())
    content["predict_method"] = "predict"
    (path / "estimator.json").write_text(json.dumps(content))
    with pytest.raises(FairveilError):
        fv.load(path, estimator=given)


@pytest.mark.parametrize("post", ["odds", "parity"])
def test_a_search_is_no_base_and_its_best_estimator_is_told(post: str) -> None:
    """Before anything is read: of a base classifier's constraints and costs a search has none of
    its own."""
    base = fv.FairClassifier(None, solver=fv.PrimalDual(rounds=2))
    search = fv.PrivateSearchCV(base, {"solver__clip": [0.5, 2.0]}, epsilon=1.0)
    made: Any = (
        fv.FairPostProcessor(search, "equalized_odds:0.2", epsilon=2.0)
        if post == "odds"
        else fv.FairPostProcessor(
            search, "demographic_parity:0.05", solver=fv.Offsets(), epsilon=2.0
        )
    )
    with pytest.raises(InputError, match="best_estimator_"):
        made.fit([[0.0], [1.0]], [0, 1], sensitive_features=["f", "m"])


def test_classes_of_a_base_are_those_of_a_schema_by_value() -> None:
    """A base that was fitted to numbers, and a codebook that lists them as texts."""
    rng = np.random.default_rng(0)
    x, sex = rng.uniform(-1, 1, 400), rng.integers(1, 3, 400)
    y = np.where(x + 0.3 * rng.normal(size=400) > 0, 2, 1)
    columns = {"x": fv.data.Number(-1, 1)} | dict.fromkeys("ay", fv.data.Category(("1", "2")))
    schema = fv.Schema(columns, target="y", sensitive="a")
    table = pd.DataFrame({"x": x, "a": sex, "y": y})
    asked: dict[str, Any] = {"constraints": "demographic_parity:0.9", "epsilon": np.inf}
    counts = []
    for labels in (y, y.astype(float), y.astype(str)):
        base = LogisticRegression().fit(table[["x"]], labels)
        found = fv.certify(base, table, schema=schema, **asked)
        assert found.classes == ("1", "2")
        counts.append(found.counts.tolist())
    assert counts[0] == counts[1] == counts[2]
