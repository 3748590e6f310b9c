"""`GroupObjectiveClassifier`: fits of every kind, what they cost and say."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest
from group_objective_samples import (
    GROUPS,
    METHODS,
    ODDS,
    ROWS,
    SEX,
    X,
    Y,
    candidates,
    fair,
    largest,
    quietly,
    sample,
    verified,
)

import fairveil as fv
from fairveil.curator import Curator
from fairveil.errors import ConstraintNotMet, FairveilError, InputError
from fairveil.estimators import fitting
from fairveil.methods.objective_loop import Loop, PublicSearch
from fairveil.methods.objectives import Sampling

INF = math.inf
RELATIONS: Any = pytest.mark.parametrize(
    "relation", [GROUPS, {}, {"neighbours": "replace-one"}], ids=["groups", "add", "replace"]
)
RULES = np.random.default_rng(0).normal(size=(20, 4))

# ---- fits
# --------------------------------------------------------------------------------------------------


@RELATIONS
@pytest.mark.parametrize(
    ("method", "decisions"),
    [
        ("linear-oracle", None),
        ("linear-oracle", "thresholds"),
        ("linear-oracle", RULES),
        ("linear-oracle", "labellings"),
        ("frank-wolfe", None),
        ("frank-wolfe", RULES),
        ("exponential", None),
        ("exponential", "directions"),
        ("exponential", "labellings"),
        ("exponential", RULES),
    ],
    ids=lambda value: "weights" if isinstance(value, np.ndarray) else str(value),
)
def test_guarantee_2_every_method_under_every_relation_keeps_its_promise(
    method: str, decisions: Any, relation: Any
) -> None:
    clf = fair("error", ODDS, method, decisions, **relation)
    if isinstance(decisions, str) and decisions == "labellings" and not relation.get("protects"):
        with pytest.raises(InputError, match="public features"):
            clf.fit(X, Y, sensitive_features=SEX)
        assert not hasattr(clf, "outcome_")
        return
    quietly(clf, X, Y, sensitive_features=SEX)
    statement = verified(clf)
    assert statement.epsilon >= 0.98 * 3.0
    assert (
        statement.stamps == ("seeded-noise",)
        if relation == GROUPS
        else "seeded-noise" in statement.stamps
    )
    law = clf.predict_proba(X)
    assert law.shape == (ROWS, 2)
    assert np.allclose(law.sum(axis=1), 1.0)
    assert clf.groups_ == (0, 1)
    assert len(clf.constraint_report_.lines) == 4
    assert (clf.certain_ is not None) == (method == "exponential")
    assert len(clf.model_.models) == 1 if method == "exponential" else len(clf.model_.models) >= 1
    assert clf.plays_.size == 0


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("classes", "groups", "columns"), [(2, 12, 1), (2, 12, 2), (5, 2, 2), (5, 12, 1)]
)
def test_classes_groups_and_columns(
    classes: int, groups: int, columns: int, method: str, protects: str
) -> None:
    x, y, a = sample(classes, groups, columns, rows=600)
    for mode in ("product", "marginal") if columns > 1 else ("product",):
        options = {} if method == "exponential" else {"rounds": 4}
        clf = fair(
            "gmean", fv.DemographicParity(0.2, groups=mode), method, protects=protects, **options
        )
        quietly(clf, x, y, sensitive_features=a)
        verified(clf)
        assert clf.classes_.tolist() == list(range(classes))
        assert (
            len(clf.groups_) == (groups * 2 if mode == "product" else groups + 2)
            if columns > 1
            else groups
        )
        assert clf.predict_proba(x).shape == (600, classes)
        assert set(clf.predict(x, random_state=0).tolist()) <= set(range(classes))


@pytest.mark.parametrize("decisions", ["directions", "labellings"])
def test_cuts_of_scores_need_two_classes_and_say_so(decisions: str) -> None:
    x, y, a = sample(5)
    with pytest.raises(InputError, match="two classes"):
        fair("error", ODDS, "exponential", decisions, **GROUPS).fit(x, y, sensitive_features=a)


# ---- what is published
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "decisions",
    [None, "labellings", RULES, candidates()],
    ids=["None", "labellings", "weights", "listed"],
)
@pytest.mark.parametrize("method", METHODS)
def test_guarantee_1_everything_follows_from_answers(
    method: str, decisions: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told the same answers again, on other groups, the same is fitted: nothing else was read. Only
    groups are protected."""
    told: list[Any] = []
    for name in ("answer", "choose"):
        asked = getattr(Curator, name)

        def tell(self: Any, *given: Any, asked: Any = asked, **named: Any) -> Any:
            told.append(asked(self, *given, **named))
            return told[-1]

        monkeypatch.setattr(Curator, name, tell)
    first = quietly(fair("gmean", ODDS, method, decisions, **GROUPS), X, Y, sensitive_features=SEX)
    again = iter(list(told))

    def repeat(self: Any, *given: Any, **named: Any) -> Any:
        return next(again)

    monkeypatch.setattr(Curator, "answer", repeat)
    monkeypatch.setattr(Curator, "choose", repeat)
    monkeypatch.setattr(Curator, "finish", lambda self: None)
    monkeypatch.setattr(
        "fairveil.estimators.group_objective.statement_of", lambda *given, **named: None
    )
    other = quietly(
        fair("gmean", ODDS, method, decisions, **GROUPS), X, Y, sensitive_features=np.roll(SEX, 7)
    )
    assert (other.predict_proba(X) == first.predict_proba(X)).all()
    assert (other.objective_, other.certain_) == (first.objective_, first.certain_)
    assert other.constraint_report_ == first.constraint_report_


def test_no_fitted_attribute_holds_an_exact_private_statistic() -> None:
    known = {
        "model_",
        "privacy_",
        "certain_",
        "objective_",
        "constraint_report_",
        "outcome_",
        "classes_",
        "groups_",
    }
    known |= {
        "n_iter_",
        "coding_",
        "cells_",
        "candidates_",
        "plays_",
        "n_features_in_",
        "baselines_",
    }
    exact = np.zeros((2, 2))
    np.add.at(exact, (SEX, Y), 1.0)
    for method in METHODS:
        clf = quietly(fair("gmean", ODDS, method), X, Y, sensitive_features=SEX)
        # noise of two deviations: one of four may be right by chance
        assert (clf.outcome_.counts != exact).sum() >= 3
        assert {name for name in vars(clf) if name.endswith("_")} == known


def test_what_is_read_from_the_data_is_listed() -> None:
    clf = quietly(
        fair("gmean", ODDS, unsafe_data_dependent_bounds=False),
        X,
        Y,
        sensitive_features={"sex": SEX},
    )
    read = {fact.name for fact in clf.privacy_.facts if "read from the data" in fact.origin}
    assert read == {"classes", "groups of sex", "number of features"}
    assert clf.privacy_.not_covered == ()
    unsafe = quietly(fair("gmean", ODDS), X, Y, sensitive_features={"sex": SEX})
    assert any("unsafe_data_dependent_bounds" in words for words in unsafe.privacy_.not_covered)
    assert set(unsafe.privacy_.stamps) > set(clf.privacy_.stamps)


@pytest.mark.parametrize("relation", [GROUPS, {}])
@pytest.mark.parametrize("method", METHODS)
def test_a_list_of_classifiers_is_trusted_and_said(method: str, relation: Any) -> None:
    listed = candidates()
    clf = quietly(fair("error", ODDS, method, listed, **relation), X, Y, sensitive_features=SEX)
    assert clf.model_ is None
    assert clf.plays_.sum() == pytest.approx(1.0)
    law = sum(
        share * np.eye(2)[one.predict(X)]
        for one, share in zip(clf.candidates_, clf.plays_, strict=True)
    )
    assert np.allclose(clf.predict_proba(X), law)
    assert clf.score(X, Y) == pytest.approx(law[np.arange(ROWS), Y].mean())
    statement = verified(clf)
    assert statement.user_code == "trusted"
    assert "user-code-trusted" in statement.stamps
    assert any("candidates" in words for words in statement.not_covered)
    with pytest.raises(InputError, match="linear models"):
        clf.derandomise()


def test_a_users_objective_is_trusted_where_a_choice_rests_on_it_and_said() -> None:
    """Its slopes scale the exponential mechanism. In a mixture they price nothing: weights are made
    of released losses."""
    chosen = quietly(fair(largest(), None, "exponential"), X, Y, sensitive_features=SEX)
    assert chosen.privacy_.user_code == "trusted"
    assert "user-code-trusted" in chosen.privacy_.stamps
    mixed = quietly(fair(largest(), None), X, Y, sensitive_features=SEX)
    assert mixed.privacy_.user_code == "none"
    verified(mixed)


@pytest.mark.parametrize("method", METHODS)
def test_secure_noise_is_the_default_and_differs(method: str) -> None:
    one, other = (
        quietly(fair(method=method, random_state=None, **GROUPS), X, Y, sensitive_features=SEX)
        for _ in range(2)
    )
    assert "seeded-noise" not in one.privacy_.stamps
    assert (one.outcome_.counts != other.outcome_.counts).any()
    seeded = [
        quietly(fair(method=method, **GROUPS), X, Y, sensitive_features=SEX) for _ in range(2)
    ]
    assert (seeded[0].predict_proba(X) == seeded[1].predict_proba(X)).all()
    assert seeded[0].objective_ == seeded[1].objective_


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_at_delta_zero_a_choice_is_pure(protects: str) -> None:
    for decisions in (None, "directions", RULES):
        clf = quietly(
            fair("gmean", ODDS, "exponential", decisions, delta=0.0, protects=protects),
            X,
            Y,
            sensitive_features=SEX,
        )
        statement = verified(clf, delta=0.0)
        assert (statement.promise.delta, statement.epsilon) == (0.0, pytest.approx(3.0, rel=0.01))
        assert "Gaussian" not in statement.to_json()
    for method in METHODS[:2]:
        with pytest.raises(InputError, match=r"pass delta=1e-6, or method='exponential'"):
            fair("gmean", ODDS, method, delta=0.0).fit(X, Y, sensitive_features=SEX)


@pytest.mark.parametrize("method", METHODS)
def test_the_report_is_text_and_json(method: str) -> None:
    clf = quietly(
        fair("error", ["equalized_odds:0.1", "gmean:0.4"], method), X, Y, sensitive_features=SEX
    )
    report = clf.constraint_report_
    text = str(report)
    assert text.count("required") == 2
    assert "\n1 - gmean " in text or "\ngmean " in text
    assert "\nP(prediction = 1 | group 0, label 1) - P(prediction = 1 | group 1, label 1) " in text
    assert all(line.noise > 0 for line in report.lines)
    assert report.to_dict()["rounds"] == clf.n_iter_
    assert all(line["verdict"] for line in report.table())


@pytest.mark.parametrize("method", METHODS[:2])
def test_rows_that_cannot_be_told_from_none_teach_nothing(method: str) -> None:
    """A descent would follow its noise: no rule reads a feature, constants at most."""
    clf = quietly(
        fair("error", ODDS, method, epsilon=1.0), X[:40], Y[:40], sensitive_features=SEX[:40]
    )
    assert not any(model.weights.any() for model in clf.model_.models)
    verified(clf, 1.0)


def test_rows_whose_number_is_public_teach() -> None:
    clf = fair("error", ODDS, "frank-wolfe", epsilon=1.0, public_rows=40)
    quietly(clf, X[:40], Y[:40], sensitive_features=SEX[:40])
    assert any(model.weights.any() for model in clf.model_.models)


def test_infeasible_targets_warn() -> None:
    """One decision for everybody: half of them are wrong, whatever it is."""
    with pytest.warns(ConstraintNotMet, match="not met"):
        clf = fair(
            "error", "error:0.1", "linear-oracle", RULES * [1.0, 0.0, 0.0, 0.0], epsilon=8.0
        ).fit(X, Y)
    assert not clf.constraint_report_.met
    assert "not met" in str(clf.constraint_report_)


def test_a_long_fit_shows_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    quiet = quietly(fair(**GROUPS), X, Y, sensitive_features=SEX)
    for method in METHODS:
        screen = Terminal()
        monkeypatch.setattr("sys.stderr", screen)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setattr(fitting, "EVERY", 0.0)
        monkeypatch.setattr(fitting, "PATIENCE", 0.0)
        shown = quietly(fair(method=method, **GROUPS), X, Y, sensitive_features=SEX)
        assert "Choosing" in screen.getvalue()
        assert method != "linear-oracle" or (shown.predict_proba(X) == quiet.predict_proba(X)).all()


@pytest.mark.parametrize("where", ["first", "later", "publish"])
@pytest.mark.parametrize("method", METHODS)
def test_guarantee_3_a_fit_that_fails_or_is_interrupted_changes_nothing(
    method: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clf = quietly(fair(method=method, **GROUPS), X, Y, sensitive_features=SEX)
    before = dict(vars(clf))
    with pytest.raises(FairveilError):
        clf.fit(X, np.ones(ROWS), sensitive_features=SEX)
    assert same(vars(clf), before)

    def broken(*given: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    search = PublicSearch if method == "linear-oracle" else Loop
    if where == "publish":
        monkeypatch.setattr("fairveil.estimators.group_objective.statement_of", broken)
    elif where == "first":
        monkeypatch.setattr(Sampling if method == "exponential" else search, "run", broken)
    else:
        monkeypatch.setattr(
            *((Curator, "choose") if method == "exponential" else (Curator, "finish")), broken
        )
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X[:1000], Y[:1000], sensitive_features=SEX[:1000])
    assert same(vars(clf), before)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """The very same objects under the same names."""
    return one.keys() == other.keys() and all(one[name] is other[name] for name in one)
