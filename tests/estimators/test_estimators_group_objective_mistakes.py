"""What users get wrong around group objectives: a typed error each, which names the way out, before
anything is released."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from group_objective_samples import GROUPS, ODDS, ROWS, SEX, X, Y, candidates, fair, largest, sample

import fairveil as fv
from fairveil.curator import Curator
from fairveil.errors import FairveilError, InputError
from fairveil.fairness import PredictionRate
from fairveil.fairness import objectives as ob


class Strange:
    """A class that no row has."""

    def predict(self, x: Any) -> Any:
        return np.full(len(x), "strange")


class Short:
    """Decides for three rows, whatever comes."""

    def predict(self, x: Any) -> Any:
        return np.zeros(3, int)


def waves(convex: bool) -> ob.Custom:
    return ob.Custom(
        lambda v: float(np.sin(9 * v).sum()), lambda v: 9 * np.cos(9 * v), 20.0, convex=convex
    )


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of a curator: by the time of an error, nothing that costs."""
    seen: list[str] = []
    for name in ("answer", "choose"):
        method = getattr(Curator, name)

        def heard(
            self: Any, *given: Any, method: Any = method, name: str = name, **named: Any
        ) -> Any:
            seen.append(name)
            return method(self, *given, **named)

        monkeypatch.setattr(Curator, name, heard)
    return seen


def refused(make: Any, says: str, asked: list[str], **change: Any) -> None:
    """By the settings, which check themselves, or by the fit; before anything is asked."""
    given = {"X": X, "y": Y, "sensitive_features": SEX} | change
    made: list[Any] = []
    with pytest.raises(FairveilError, match=says):  # noqa: PT012
        made.append(make())
        made[0].fit(**given)
    assert asked == []
    assert not any(hasattr(clf, "outcome_") for clf in made)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("eror",), "objective: expected an objective, or a name out of error, gmean"),
        ((ob.GMean,), "objective: expected an objective"),
        (("equalized_odds:0.1",), "constraint="),
        ((fv.EqualizedOdds(0.1),), "constraint="),
        ((ob.GMean().at_least(0.7),), "constraint="),
        (("gini",), r"Gini\(\)\.at_most"),
        (("error", "equalized_odds"), "Write equalized_odds:0.05"),
        (("error", "gini"), "Write gini:0.1"),
        (("error", "gmean"), "Write gmean:0.1"),
        (("error", "gmean:much"), "Write gmean:0.1"),
        (("error", "gmean:-1"), "bound: expected a number at least 0"),
        (("error", "odds:0.1"), "constraint: expected a name out of"),
        (("error", ob.GMean()), r"GMean\(\)\.at_least"),
        (("error", 0.1), "constraint: expected a bound"),
        (("error", {"equalized_odds": 0.1}), "constraint: expected a bound"),
        (("error", fv.EqualizedOdds), "constraint: expected a bound"),
        (("error", fv.BoundedGroupLoss(0.3, "log")), "zero_one"),
        (
            ("error", None, "exp"),
            "method: expected 'linear-oracle' or 'frank-wolfe' or 'exponential'",
        ),
        (("error", None, "linear_oracle"), "method: expected"),
        (
            ("error", None, "exponential", [1]),
            "a list of fitted classifiers, or 'thresholds'.* or a NumPy array",
        ),
        (("error", None, "exponential", []), "objects with predict"),
        (("error", None, "exponential", [[0.0, 1.0, 0.0, 0.0]]), "a NumPy array of weights"),
        (
            ("error", None, "exponential", pd.DataFrame(np.zeros((2, 4)))),
            "a NumPy array of weights",
        ),
        (
            ("error", None, "exponential", "treshold"),
            "'thresholds' or 'directions' or 'labellings'",
        ),
        (
            ("error", None, "exponential", np.zeros((3, 3))),
            r"finite weights \(m, 4\), the intercept first, got \(3, 3\)",
        ),
        (("error", None, "exponential", np.zeros(4)), r"finite weights \(m, 4\)"),
        (("error", None, "exponential", np.zeros((0, 4))), r"finite weights \(m, 4\)"),
        (("error", None, "exponential", np.full((2, 4), np.nan)), r"finite weights \(m, 4\)"),
        (("error", None, "exponential", np.array([["a"] * 4])), r"finite weights \(m, 4\)"),
        (
            ("error", None, "exponential", [Strange()]),
            r"a candidate's decisions: expected classes among \[0, 1\]",
        ),
        (("error", None, "linear-oracle", [Short()]), "a candidate's decisions: 3"),
        (("error", None, "exponential", "labellings"), "public features"),
        ((waves(True),), "convex=False"),
        ((waves(False),), "method='exponential'"),
        ((ob.SmoothedOddsOfPairs(),), "sharpness"),
        (("error", ob.SmoothedOddsOfPairs().at_most(0.1)), "sharpness"),
        ((largest(0.1),), "State a larger lipschitz"),
        ((ob.Custom(lambda v: 1 / 0, np.zeros_like, 1.0),), "ZeroDivisionError"),
        ((ob.Custom(lambda v: math.nan, np.zeros_like, 1.0),), "finite values"),
        ((ob.Custom(lambda v: 0.0, lambda v: 1.0, 1.0),), "a gradient with a number for each rate"),
        ((ob.RateOf(PredictionRate("yes")),), "a known class"),
        ((ob.WeightedError({("yes", "no"): 5.0}),), r"pairs \(label, prediction\) out of \[0, 1\]"),
        ((ob.WeightedError(np.eye(3)),), r"finite numbers \(2, 2\)"),
        ((ob.WeightedError(groups={7: 2.0}),), r"groups out of \[0, 1\]"),
        (("error", ob.Gini(-np.eye(2)).at_most(0.1)), "at least 0"),
    ],
)
def test_arguments(given: Any, says: str, asked: list[str]) -> None:
    refused(lambda: fair(*given), says, asked)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"oracle": "magic"}, "'regression' or 'descent'"),
        ({"rounds": 0}, "rounds: expected a whole number of at least 1"),
        ({"rounds": 1.5}, "rounds: expected a whole number"),
        ({"clip": "a"}, "clip: expected a number above 0"),
        ({"confidence": 1.0}, "confidence: expected a number in"),
        ({"epsilon": -1.0}, "epsilon: expected"),
        ({"delta": 0.0}, "method='exponential'"),
        ({"random_state": "a"}, "random_state"),
        ({"ledger": 1}, "ledger"),
        ({"sensitive_as_feature": True, **GROUPS}, "sensitive_as_feature"),
        ({"loss": "hinge"}, "loss: expected 'zero_one' or 'log'"),
        ({"method": "exponential", "alpha": 0.0}, "alpha: expected a number above 0"),
        # What nothing would read.
        ({"alpha": 0.1}, "alpha is not used with method='linear-oracle'"),
        ({"confidence": 0.8}, "confidence is not used with method='linear-oracle'"),
        ({"method": "exponential", "rounds": 5}, "rounds: expected None"),
        ({"method": "exponential", "oracle": "regression"}, "oracle: expected None"),
        ({"method": "exponential", "clip": 1.0}, "clip: expected None"),
        ({"decisions": "thresholds", "oracle": "descent"}, "oracle: expected None"),
        ({"loss": "log", "oracle": "descent"}, "oracle: expected None"),
        ({"penalty": 3.0}, "penalty is not used without constraints"),
    ],
)
def test_options(options: dict[str, Any], says: str, asked: list[str]) -> None:
    refused(lambda: fair("error", None, **options), says, asked)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"penalty": -1.0}, "penalty: expected a number above 0"),
        (
            {"method": "exponential", "alpha": 0.1, "penalty": 3.0},
            "alpha is not used with a penalty",
        ),
    ],
)
def test_options_of_a_constraint(options: dict[str, Any], says: str, asked: list[str]) -> None:
    refused(lambda: fair("error", ODDS, **options), says, asked)


def listed_groups(values: list[Any]) -> Any:
    return np.array(values * (ROWS // len(values)), dtype=object)


@pytest.mark.parametrize(
    ("arguments", "change", "says"),
    [
        (
            ("error", ODDS),
            {"sensitive_features": None},
            "groups, which equalized_odds:0.1 compares",
        ),
        (
            ("equalized_odds",),
            {"sensitive_features": None},
            "groups, which equalized_odds compares",
        ),
        (("largest_group_loss",), {"sensitive_features": None}, "sensitive_features=..."),
        (("error", "gini:0.1"), {"sensitive_features": None}, "groups, which gini <= 0.1 compares"),
        ((largest(),), {"sensitive_features": None}, "groups, which custom compares"),
        (
            (ob.WeightedError(groups={0: 2.0}),),
            {"sensitive_features": None},
            "groups, which weighted_error compares",
        ),
        (("error", ODDS), {"sensitive_features": np.zeros(ROWS)}, "at least two groups"),
        (("equalized_odds",), {"sensitive_features": np.zeros(ROWS)}, "at least two groups"),
        (
            ("error", ODDS),
            {"sensitive_features": listed_groups(["f", None])},
            "Give them a value of their own",
        ),
        (("error", ODDS), {"sensitive_features": SEX[:10]}, "columns of one length"),
        (("error", ODDS), {"sensitive_features": "sex"}, "sex"),
        (("error",), {"y": np.ones(ROWS)}, "at least two classes"),
        (("error",), {"y": Y[:4]}, "columns of one length"),
        (("error",), {"y": X[:, 0]}, "Make classes of a number"),
        (("error",), {"X": np.full((ROWS, 3), np.nan)}, "NaN"),
        (("false_negative_rate",), {"y": sample(5)[1]}, r"positive= one of \[0, 1, 2, 3, 4\]"),
        (
            ("error", "equal_opportunity:0.1"),
            {"y": sample(5)[1]},
            r"positive= one of \[0, 1, 2, 3, 4\]",
        ),
    ],
)
def test_data(arguments: Any, change: dict[str, Any], says: str, asked: list[str]) -> None:
    refused(lambda: fair(*arguments), says, asked, **change)


def test_positive_classes_are_named_in_text_and_objects() -> None:
    """The way out of the last two."""
    x, y, a = sample(5)
    for objective, constraint in (
        (ob.FalseNegatives(positive=3), "equal_opportunity:0.5,positive=2"),
        (ob.Gap("demographic_parity"), ob.FalsePositives(positive=0).at_most(0.9)),
    ):
        clf = fair(objective, constraint, rounds=3).fit(x, y, sensitive_features=a)
        assert len(clf.classes_) == 5


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_prediction_needs_the_columns_of_the_fit(protects: str) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(sex=SEX)
    clf = fair("gmean", ODDS, protects=protects, epsilon=8.0).fit(
        frame, Y, sensitive_features="sex"
    )
    assert (clf.predict_proba(frame) == clf.predict_proba(frame[["a", "b", "c"]])).all()
    with pytest.raises(InputError, match="b"):
        clf.predict({"a": X[:, 0], "c": X[:, 2]})
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[["a", "b"]])
    with pytest.raises(InputError, match="random_state"):
        clf.predict(frame, random_state="often")
    with pytest.raises(InputError, match="one length"):
        clf.score(frame, Y[:10])


def test_candidates_see_no_sensitive_columns() -> None:
    """Unless they are features all the same."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(sex=SEX)

    class Nosy:
        def predict(self, x: Any) -> Any:
            return np.asarray(x["sex"])

    with pytest.raises(InputError, match=r"KeyError.*'sex'"):
        fair("error", ODDS, "exponential", [Nosy()], **GROUPS).fit(
            frame, Y, sensitive_features="sex"
        )
    asking = fair("error", None, "exponential", [Nosy()], sensitive_as_feature=True)
    clf = asking.fit(frame, Y, sensitive_features="sex")
    assert (clf.predict_proba(frame)[:, 1] == SEX).all()
    listed = fair("error", None, "exponential", candidates()).fit(
        frame[["a", "b", "c"]].to_numpy(), Y
    )
    assert listed.plays_.sum() == 1.0
