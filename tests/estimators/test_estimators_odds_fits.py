"""Fits of the post-processor: what is asked is got, for classes, groups, columns, protections and
containers; errors; disk."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimator_samples import Columns, short
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

import fairveil as fv
import ways
from fairveil.data import encode
from fairveil.errors import ConstraintNotMet, InputError, NotEnforced
from knobs import made

ROWS = 3000


def sample(
    classes: int, groups: int, columns: int, seed: int = 0
) -> tuple[Any, Any, dict[str, Any]]:
    """Features that tell a group, labels, and sensitive columns."""
    rng = np.random.default_rng(seed)
    A = {f"a{j}": rng.integers(groups if j == 0 else 2, size=ROWS) for j in range(columns)}
    X = rng.normal(size=(ROWS, 3))
    X[:, 0] += 0.8 * (A["a0"] % 2)
    scores = X @ rng.normal(size=(3, classes)) * 1.5 + rng.gumbel(size=(ROWS, classes))
    return X, scores.argmax(axis=1), A


def exact_gap(clf: fv.FairPostProcessor, X: Any, y: Any, A: Any, **options: Any) -> float:
    law = clf.predict_proba(X, sensitive_features=A)
    return fv.equalized_odds_gap(
        y, law, A, classes=clf.classes_.tolist(), undefined="skip", **options
    )


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
@pytest.mark.parametrize(
    ("classes", "groups", "columns"), [(2, 2, 1), (5, 2, 1), (2, 12, 1), (5, 12, 2), (2, 3, 2)]
)
def test_classes_groups_columns_and_protections(
    protects: str, classes: int, groups: int, columns: int
) -> None:
    X, y, A = sample(classes, groups, columns)
    notion = fv.DemographicParity(0.1)
    clf = fv.FairPostProcessor(
        None,
        notion,
        solver=fv.Thresholds(),
        epsilon=5.0,
        protects=protects,
        random_state=0,
    ).fit(X, y, sensitive_features=A)
    cells = groups * 2 ** (columns - 1)
    answers = classes if classes > 2 else 1 + len(clf.edges_)
    assert (clf.edges_ is None) == (classes > 2)
    assert clf.mixing_.shape == (cells, answers, classes)
    assert clf.privacy_.epsilon <= 5.0
    assert clf.guarantee_ is not None
    law = clf.predict_proba(X, sensitive_features=A)
    gap = fv.demographic_parity_gap(y, law, A, classes=clf.classes_.tolist())
    # with probability 0.95 over the noise; the seed is fixed
    assert gap <= clf.guarantee_.gap_bound + 1e-9
    assert np.allclose(law.sum(axis=1), 1.0)
    drawn = clf.predict(X, sensitive_features=A, random_state=1)
    assert (drawn == clf.predict(X, sensitive_features=A, random_state=1)).all()
    assert set(drawn) <= set(range(classes))


def test_marginal_groups_of_two_columns() -> None:
    X, y, A = sample(2, 3, 2)
    clf = fv.FairPostProcessor(
        LogisticRegression(),
        fv.EqualizedOdds(0.02, groups="marginal"),
        protects="sensitive_features",
        random_state=0,
    ).fit(X, y, sensitive_features=A)
    assert clf.mixing_.shape == (6, 1 + len(clf.edges_), 2)
    assert exact_gap(clf, X, y, A, groups="marginal") < 0.06
    assert exact_gap(LogisticRegression_gap(X, y), X, y, A, groups="marginal") > 0.1


def LogisticRegression_gap(X: Any, y: Any) -> fv.FairPostProcessor:  # noqa: N802
    """The base alone, behind the same face."""
    return fv.FairPostProcessor(LogisticRegression(), protects="sensitive_features").fit(X, y)


def test_without_privacy_the_gap_is_what_was_asked() -> None:
    X, y, A = sample(2, 3, 1)
    for bound in (0.0, 0.03):
        clf = fv.FairPostProcessor(LogisticRegression(), fv.EqualizedOdds(bound), epsilon=math.inf)
        clf.fit(X, y, sensitive_features=A)
        lines = clf.constraint_report_.lines
        aims = [line.bound if line.aim is None else line.aim for line in lines]
        assert max(aims) < bound or bound == max(aims) == 0.0
        assert min(aims) - 1e-7 <= exact_gap(clf, X, y, A) <= max(aims) + 1e-7
        assert clf.constraint_report_.met_in_training
        assert "not-private" in clf.privacy_.stamps


def test_the_theorems_slack_loosens_and_never_costs_error() -> None:
    X, y, A = sample(2, 2, 1)
    both = [
        fv.FairPostProcessor(
            LogisticRegression(),
            fv.EqualizedOdds(0.01),
            protects="sensitive_features",
            solver=fv.Thresholds(slack=slack),
            random_state=0,
        ).fit(X, y, sensitive_features=A)
        for slack in ("none", "theorem")
    ]
    plain, loose = (clf.guarantee_ for clf in both)
    assert plain is not None
    assert loose is not None
    assert plain.gap == pytest.approx(0.01, abs=1e-6)
    assert loose.gap > 0.011
    assert loose.error < plain.error
    assert loose.excess_bound < plain.excess_bound


def test_decisions_without_chance_are_measured_on_their_own() -> None:
    X, y, A = sample(2, 2, 1)
    clf = fv.FairPostProcessor(
        LogisticRegression(), fv.EqualizedOdds(0.15), epsilon=math.inf, random_state=0
    )
    clf.fit(X, y, sensitive_features=A)
    one = clone(clf).set_params(randomised=False).fit(X, y, sensitive_features=A)
    assert not one.model_.is_randomised
    decided = one.predict(X, sensitive_features=A)
    assert (decided == one.predict(X, sensitive_features=A)).all()
    assert one.guarantee_ is not None
    assert clf.guarantee_ is not None
    assert fv.equalized_odds_gap(y, decided, A) == pytest.approx(
        max(0.0, one.guarantee_.gap), abs=1e-9
    )
    assert (decided != y).mean() == pytest.approx(one.guarantee_.error)
    assert one.guarantee_.gap <= 0.15 + 1e-9
    assert one.guarantee_.error >= clf.guarantee_.error - 1e-9
    assert one.score(X, y, sensitive_features=A) == pytest.approx((decided == y).mean())


def test_score_is_expected_accuracy_with_weights() -> None:
    X, y, A = sample(2, 2, 1)
    clf = fv.FairPostProcessor(
        LogisticRegression(), fv.EqualizedOdds(0.0), protects="sensitive_features", random_state=0
    ).fit(X, y, sensitive_features=A)
    law, w = clf.predict_proba(X, sensitive_features=A), np.random.default_rng(0).uniform(size=ROWS)
    assert clf.score(X, y, w, sensitive_features=A) == pytest.approx(
        np.average(law[np.arange(ROWS), y], weights=w)
    )
    draws = np.mean(
        [(clf.predict(X, sensitive_features=A, random_state=k) == y).mean() for k in range(30)]
    )
    assert clf.score(X, y, sensitive_features=A) == pytest.approx(draws, abs=0.01)


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_sample_weights_count_rows(protects: str) -> None:
    X, y, A = sample(2, 2, 1)
    w = np.random.default_rng(0).uniform(0.2, 1.0, size=ROWS)
    clf = fv.FairPostProcessor(
        None, fv.EqualizedOdds(0.05), epsilon=5.0, protects=protects, random_state=0
    )
    clf.fit(X, y, sensitive_features=A, sample_weight=w)
    assert clf.released_ is not None
    assert clf.released_.noise.kind == "gaussian"
    assert clf.released_.raw.sum() == pytest.approx(w.sum(), abs=60)
    assert clf.privacy_.epsilon <= 5.0
    assert exact_gap(clf, X, y, A, sample_weight=w) < 0.1


def test_any_container_gives_the_same_model(people: Columns) -> None:
    frame = pd.DataFrame(people)
    X, y, sex = frame[["age", "hours"]], frame["hired"], frame["sex"]
    ways = [
        (X, y, sex),
        (
            pl.DataFrame(people)[["age", "hours"]],
            pl.Series(people["hired"]),
            pl.Series(people["sex"]),
        ),
        ({"age": people["age"], "hours": people["hours"]}, people["hired"], {"sex": people["sex"]}),
        (frame[["age", "hours", "sex"]], people["hired"], "sex"),
        (pl.DataFrame(people)[["age", "sex", "hours"]], people["hired"], ["sex"]),
    ]
    laws = []
    for X_, y_, sex_ in ways:
        clf = fv.FairPostProcessor(
            None, fv.EqualizedOdds(0.05), protects="sensitive_features", random_state=0
        )
        clf.fit(X_, y_, sensitive_features=sex_)
        laws.append(clf.predict_proba(X_, sensitive_features=sex_))
    assert all((law == laws[0]).all() for law in laws)


def test_a_base_may_take_what_no_table_holds() -> None:
    """Features are the base's own affair: texts, in a list, with missing ones."""

    class Words:
        def predict(self, X: Any) -> Any:
            return np.array(["yes" if text and "good" in text else "no" for text in X])

    rng = np.random.default_rng(0)
    X = [["good", "bad", None][k] for k in rng.integers(3, size=800)]
    y = np.where(rng.random(800) < 0.2, "no", Words().predict(X))
    A = rng.integers(2, size=800).astype(bool)
    clf = fv.FairPostProcessor(
        Words(), fv.EqualizedOdds(0.05), protects="sensitive_features", random_state=0
    )
    clf.fit(X, y, sensitive_features=A)
    assert clf.predict(X, sensitive_features=A).shape == (800,)
    assert clf.groups_ == (False, True)


def test_with_a_schema_rows_and_groups_are_coded_by_it(
    people: Columns, schema: fv.facts.Schema
) -> None:
    table = pd.DataFrame(
        {name: people[name] for name in ("age", "hours", "job", "union", "sex", "hired")}
    )
    clf = fv.FairPostProcessor(
        None, fv.EqualizedOdds(0.1), epsilon=5.0, schema=schema, random_state=0
    ).fit(table)
    assert clf.groups_ == ("f", "m")
    assert clf.classes_.tolist() == ["no", "yes"]
    assert not any("read from the data" in fact.origin for fact in clf.privacy_.facts)
    assert clf.predict(table).shape == (800,)  # groups by the names of the schema
    coded = encode(people, schema)
    from_rows = fv.FairPostProcessor(None, fv.EqualizedOdds(0.1), epsilon=5.0, random_state=0).fit(
        coded
    )
    assert (from_rows.predict_proba(coded) == clf.predict_proba(table)).all()
    assert 0.4 < from_rows.score(coded) <= 1
    theirs = fv.FairPostProcessor(
        LogisticRegression(),
        fv.EqualizedOdds(0.1),
        protects="sensitive_features",
        schema=schema.without("job", "union"),
    ).fit(table)
    assert theirs.estimator_.feature_names_in_.tolist() == ["age", "hours"]
    assert theirs.predict(table).shape == (800,)
    with pytest.raises(InputError, match="features for the base"):
        fv.FairPostProcessor(LogisticRegression(), protects="sensitive_features").fit(coded)


def test_the_population_alone_needs_no_groups_at_prediction() -> None:
    X, y, A = sample(2, 2, 1)
    for groups in ({}, {"sensitive_features": A}):
        clf = fv.FairPostProcessor(
            LogisticRegression(),
            fv.FalseNegativeRate(0.05),
            protects="sensitive_features",
            random_state=0,
        ).fit(X, y, **groups)
        law = clf.predict_proba(X)
        (line,) = clf.constraint_report_.lines
        assert line.aim < 0.05
        assert line.population_verdict == "met"
        # public, so exact and free
        assert law[y == 1, 0].mean() == pytest.approx(line.aim, abs=1e-6)
        assert clf.privacy_.epsilon == 0


# -- what goes wrong, and what is said


def test_an_unseen_group_is_named_and_missing_groups_are_asked_for() -> None:
    X, y, A = sample(2, 2, 1)
    words = np.array(["f", "m"])[A["a0"]]
    clf = fv.FairPostProcessor(
        LogisticRegression(), fv.EqualizedOdds(0.05), protects="sensitive_features", random_state=0
    ).fit(X, y, sensitive_features=words)
    with pytest.raises(InputError, match=r"'x'") as error:
        clf.predict(X[:2], sensitive_features=["f", "x"])
    assert "f" in str(error.value)
    assert "m" in str(error.value)
    with pytest.raises(InputError, match="model is group-aware"):
        clf.predict(X)
    with pytest.raises(InputError, match="length"):
        clf.predict(X, sensitive_features=words[:5])
    with pytest.raises(InputError, match="array has no names"):
        clf.predict(X, sensitive_features="sex")
    with pytest.raises(InputError, match="1 columns"):
        clf.predict(X, sensitive_features={"a": words, "b": words})
    with pytest.raises(InputError, match="groups, which EqualizedOdds compares"):
        fv.FairPostProcessor(
            LogisticRegression(), fv.EqualizedOdds(0.1), protects="sensitive_features"
        ).fit(X, y)


def test_one_class_one_group_and_strange_decisions() -> None:
    X, y, A = sample(2, 2, 1)
    with pytest.raises(InputError, match="two classes"):
        fv.FairPostProcessor(None, fv.EqualizedOdds(0.1)).fit(
            X, np.ones(ROWS, int), sensitive_features=A
        )
    with pytest.raises(InputError, match="two groups"):
        fv.FairPostProcessor(None, fv.EqualizedOdds(0.1)).fit(
            X, y, sensitive_features=np.zeros(ROWS, int)
        )

    class Strange:
        def predict(self, X: Any) -> Any:
            return np.full(len(X), 7)

    with pytest.raises(InputError, match="7"):
        fv.FairPostProcessor(Strange(), fv.EqualizedOdds(0.1), protects="sensitive_features").fit(
            X, y, sensitive_features=A
        )
    base = LogisticRegression().fit(X, y)
    with pytest.raises(InputError, match="base's classes"):
        fv.FairPostProcessor(base, protects="sensitive_features").fit(
            X, y + 1, sensitive_features=A
        )

    class One:
        def predict(self, X: Any) -> Any:
            return np.zeros(len(X), int)

    clf = fv.FairPostProcessor(
        One(), fv.EqualizedOdds(0.1), protects="sensitive_features", random_state=0
    )
    assert exact_gap(clf.fit(X, y, sensitive_features=A), X, y, A) <= 0.1 + 1e-9


def test_contradictions_warn_with_the_best_that_was_reached() -> None:
    X, y, A = sample(2, 2, 1)
    notions = [fv.FalseNegativeRate(0.01), fv.FalseNegativeRate(0.01, positive=0)]
    clf = fv.FairPostProcessor(
        LogisticRegression(), notions, protects="sensitive_features", random_state=0
    )
    with pytest.warns(ConstraintNotMet, match="contradict each other"):
        clf.fit(X, y, sensitive_features=A)
    assert not clf.constraint_report_.met
    values = [line.value - line.bound for line in clf.constraint_report_.lines]
    assert values[0] == pytest.approx(values[1], abs=1e-5)  # the least uniform excess
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NotEnforced)  # no noise is below a bound of 0
        fv.FairPostProcessor(
            LogisticRegression(), fv.ErrorRateParity(0.0), protects="sensitive_features"
        ).fit(X, y, sensitive_features=A)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"confidence": 1.0}, "confidence"),
        ({"slack": "paper"}, "slack"),
        ({"base_share": 0.0}, "base_share"),
        ({"ledger": object()}, "ledger"),
        ({"estimator": "forest"}, "classifier"),
        ({"estimator": LogisticRegression}, "classifier"),
        ({"estimator": fv.FairPostProcessor()}, "without groups"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], match: str) -> None:
    X, y, A = sample(2, 2, 1)
    with pytest.raises(fv.errors.FairveilError, match=match):
        made(fv.FairPostProcessor, **{"constraints": fv.EqualizedOdds(0.1), **options}).fit(
            X, y, sensitive_features=A
        )


# -- on disk


@pytest.mark.parametrize("base", [None, LogisticRegression(), "fitted"])
@pytest.mark.parametrize("notion", [fv.EqualizedOdds(0.05), None])
def test_on_disk_to_the_bit(base: Any, notion: Any, tmp_path: Path) -> None:
    X, y, A = sample(2, 2, 1)
    if base == "fitted":
        base = short(protects="sensitive_features", random_state=None).fit(X, y)
    clf = fv.FairPostProcessor(
        base, notion, protects="sensitive_features", random_state=0, epsilon=2.0
    )
    clf.fit(X, y, sensitive_features=A)
    path = fv.save(clf, tmp_path / "model")
    own = not isinstance(base, LogisticRegression)
    assert (path / "base.estimator.json").is_file() == own
    if not own:
        with pytest.raises(InputError, match="estimator=base"):
            fv.load(path)
        with pytest.raises(InputError, match="a LogisticRegression"):
            fv.load(path, estimator=short())
    loaded = fv.load(path, estimator=None if own else clf.estimator_)
    assert set(vars(loaded)) == set(vars(clf))
    law = clf.predict_proba(X, sensitive_features=A)
    assert loaded.predict_proba(X, sensitive_features=A).tobytes() == law.tobytes()
    for name in ("privacy_", "guarantee_", "constraint_report_", "groups_", "cells_"):
        assert getattr(loaded, name) == getattr(clf, name)
    with pytest.raises(InputError, match="estimator"):
        fv.load(
            fv.save(short().fit(X, y), tmp_path / "other"), estimator=LogisticRegression().fit(X, y)
        )
    content = json.loads((path / "estimator.json").read_text())
    del content["sha256"]["statement.json"]
    (path / "estimator.json").write_text(json.dumps(content))
    with pytest.raises(fv.errors.FairveilError):
        fv.load(path, estimator=None if own else clf.estimator_)


def test_a_base_that_is_randomized_is_followed_in_distribution_whatever_the_order_of_its_classes() -> (
    None
):
    X, y, columns = sample(2, 2, 1)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    words, A = np.where(np.asarray(y) == 1, "yes", "no"), next(iter(columns.values()))
    base = ways.game(fv.EqualizedOdds(0.2), epsilon=math.inf, rounds=60, random_state=1)
    base.fit(table, words, sensitive_features=A)
    assert base.model_ is not None
    assert base.model_.is_randomised
    facts = {name: fv.facts.Number(-10, 10) for name in table} | {
        "hired": fv.facts.Category(("yes", "no")),
        "group": fv.facts.Category(tuple(np.unique(A).tolist())),
    }
    schema = fv.facts.Schema(facts, target="hired", sensitive=["group"])
    # a bound that everything keeps: decisions are the base's own, in distribution
    clf = fv.FairPostProcessor(
        base, fv.EqualizedOdds(0.99), epsilon=math.inf, schema=schema, random_state=0
    )
    clf.fit(table, words, sensitive_features=A)
    assert clf.classes_.tolist() == ["yes", "no"]
    assert base.classes_.tolist() == ["no", "yes"]
    assert np.allclose(
        clf.predict_proba(table, sensitive_features=A)[:, ::-1], base.predict_proba(table)
    )


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_a_mixture_of_candidates_is_followed_in_distribution() -> None:
    X, y, columns = sample(2, 2, 1)
    A = next(iter(columns.values()))
    listed = [
        LogisticRegression().fit(X, y),
        DummyClassifier(strategy="constant", constant=1).fit(X, y),
    ]
    base = ways.game(
        fv.DemographicParity(0.1),
        dual_bound=20.0,
        epsilon=math.inf,
        rounds=60,
        random_state=1,
        oracle="exponential",
        solver=fv.OracleGame(candidates=listed),
    ).fit(X, y, sensitive_features=A)
    assert 0 < base.plays_[0] < 1
    clf = fv.FairPostProcessor(base, fv.EqualizedOdds(0.99), epsilon=math.inf, random_state=0).fit(
        X, y, sensitive_features=A
    )
    assert np.allclose(clf.predict_proba(X, sensitive_features=A), base.predict_proba(X))
    one, other = (clf.predict(X, sensitive_features=A, random_state=0) for _ in range(2))
    assert (one == other).all()


def test_groups_under_half_the_names_of_the_fit_are_refused() -> None:
    """By name or by position: a column that is named as another one of the fit must not be taken
    for the first."""
    X, y, A = sample(2, 2, 2)
    clf = fv.FairPostProcessor(
        LogisticRegression(),
        "demographic_parity:0.1",
        protects="sensitive_features",
        random_state=0,
    )
    law = clf.fit(X, y, sensitive_features=A).predict_proba(X, sensitive_features=A)
    turned = {"a1": A["a1"], "a0": A["a0"]}
    assert (clf.predict_proba(X, sensitive_features=turned) == law).all()
    assert (
        clf.predict_proba(X, sensitive_features=np.column_stack([A["a0"], A["a1"]])) == law
    ).all()
    with pytest.raises(InputError, match=r"2 columns \(a0, a1\)"):
        clf.predict_proba(X, sensitive_features={"a1": A["a1"], "other": A["a0"]})
