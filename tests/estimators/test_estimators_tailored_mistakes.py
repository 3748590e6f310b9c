"""What users get wrong around tailored budgets: a typed error each, which names the way out, before
anything is released."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tailored_estimator_samples import AGE, INF, LABELS, ROWS, SEX, X, Y, classifier, regressor

from fairveil import Tailored
from fairveil.curator import Curator
from fairveil.errors import FairveilError, InputError


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of a curator: by the time of an error, nothing."""
    seen: list[str] = []
    answer = Curator.answer

    def heard(self: Any, *given: Any, **named: Any) -> Any:
        seen.append("answer")
        return answer(self, *given, **named)

    monkeypatch.setattr(Curator, "answer", heard)
    return seen


def refused(make: Any, says: str, asked: list[str], **change: Any) -> None:
    """By the settings, which check themselves, or by the fit; before anything is asked."""
    made: list[Any] = []
    with pytest.raises(FairveilError, match=says):  # noqa: PT012
        made.append(make())
        target = LABELS if hasattr(made[0], "predict_proba") else Y
        made[0].fit(**{"X": X, "y": target, "sensitive_features": SEX, **change})
    assert asked == []
    assert not any(hasattr(one, "tailoring_") for one in made)


BOTH = [
    (("least_noise",), {}, "allocation: expected 'least-noise' or 'standard-error'"),
    ((None,), {}, "allocation: expected one of"),
    (({"f": 1.0},), {}, r"allocation: expected a share for each of \['f', 'm'\]"),
    (({"f": 1.0, "m": 1.0, "x": 1.0},), {}, "allocation: expected a share for each"),
    (({"f": 1.0, "m": 0.0},), {}, "allocation: expected .* positive numbers"),
    (([1.0, 2.0, 3.0],), {}, "allocation: expected .* 2 positive numbers"),
    (({"f": 1.0, "m": "more"},), {}, "allocation: expected"),
    (("equal", -1.0), {}, "bound: expected a number"),
    (("equal", "low"), {}, "constraints?: expected"),
    (("equal", {"f": -1.0}), {}, "bound: expected a number"),
    (("equal", {"x": 1.0}), {}, "group: expected one of"),
    ((), {"objective": "gmean"}, "objective: expected the mean of the groups' losses"),
    ((), {"spend": "all"}, "spend: expected 'person' or 'total'"),
    ((), {"groups": "both"}, "groups: expected 'product' or 'marginal'"),
    ((), {"stage_one_share": 0.0}, "stage_one_share: expected"),
    ((), {"stage_one_share": 1.0}, "stage_one_share: expected"),
    ((), {"stage_one_share": "a"}, "stage_one_share: expected"),
    ((), {"max_epsilon": 0.0}, "max_epsilon: expected a number above 0"),
    ((), {"max_epsilon": "2"}, "max_epsilon: expected a number above 0"),
    ((), {"max_epsilon": math.nan}, "max_epsilon: expected a number above 0"),
    ((), {"max_epsilon": {"x": 1.0}}, "max_epsilon: expected groups out of"),
    ((), {"min_epsilon": -1.0}, "min_epsilon: expected a number above 0"),
    ((), {"min_epsilon": {"f": "a"}}, "min_epsilon: expected a number above 0"),
    ((), {"max_epsilon": 1e-6}, "max_epsilon"),
    ((), {"min_epsilon": 5.0}, "min_epsilon"),
    ((), {"min_epsilon": {"f": 2.5}, "max_epsilon": {"f": 2.0}}, "min_epsilon"),
    (
        (),
        {"max_epsilon": 2.0, "neighbours": "replace-one"},
        "max_epsilon: expected None unless protects='records', add-remove",
    ),
    (
        (),
        {"min_epsilon": 2.0, "protects": "sensitive_features"},
        "min_epsilon: expected None unless",
    ),
    ((), {"max_epsilon": 2.0, "epsilon": INF}, "max_epsilon: expected None unless"),
    ((), {"epsilon": -1.0}, "epsilon: expected"),
    ((), {"delta": 0.0}, "delta: expected a delta above 0"),
    ((), {"random_state": "a"}, "random_state"),
    ((), {"ledger": 1}, "ledger"),
    ((), {"rounds": 0}, "rounds: expected a whole number"),
    ((), {"rounds": 2.5}, "rounds: expected a whole number"),
    ((), {"clip": 0.0}, "clip: expected a number above 0"),
    ((), {"radius": -1.0}, "radius: expected a number above 0"),
    ((), {"region": "sphere"}, "region: expected 'ball' or 'box'"),
    ((), {"step_size": "small"}, "step_size: expected 'steady' or 'decaying'"),
    ((), {"step_size": "decaying"}, "step_size: expected a radius"),
    ((), {"iterate": "best"}, "iterate: expected 'average' or 'last'"),
    ((), {"penalty": 0.0, "bound": 9.0}, "penalty: expected a number above 0"),
    ((), {"penalty": 2.0}, "penalty is not used without constraints"),
    (
        (),
        {"stage_one_share": 0.3},
        "stage_one_share is not used without allocation='standard-error'",
    ),
    ((), {"region": "box"}, "region is not used without a radius"),
    ((), {"public_rows": 0}, "rows"),
    ((), {"max_sample_weight": -1.0}, "max_sample_weight"),
    ((), {"protects": "groups"}, "protects"),
]


@pytest.mark.parametrize("make", [regressor, classifier], ids=["regressor", "classifier"])
@pytest.mark.parametrize(
    ("given", "options", "says"), BOTH, ids=[str(number) for number in range(len(BOTH))]
)
def test_arguments_of_both(
    make: Any, given: Any, options: Any, says: str, asked: list[str]
) -> None:
    refused(lambda: make(*given, **options), says, asked)


@pytest.mark.parametrize(
    ("given", "options", "says"),
    [
        ((), {"solver": "gram"}, "solver: expected"),
        ((), {"region": "sphere"}, "region: expected 'ball' or 'box'"),
        ((), {"target_bounds": (1.0, 0.0)}, "target_bounds"),
        ((), {"target_bounds": 3.0}, "target_bounds"),
    ],
    ids=str,
)
def test_arguments_of_the_regressor(given: Any, options: Any, says: str, asked: list[str]) -> None:
    refused(lambda: regressor(*given, **options), says, asked)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"clip": 0.0}, "clip: expected a number above 0"),
        ({"radius": -1.0}, "radius: expected a number above 0"),
        ({"delta": 0.0}, "delta: expected a delta above 0"),
        ({"rounds": 0}, "rounds: expected"),
    ],
    ids=str,
)
def test_arguments_of_moments(options: Any, says: str, asked: list[str]) -> None:
    refused(
        lambda: (
            regressor(**options)
            if "delta" in options
            else regressor(solver=Tailored(by="moments", **options))
        ),
        says,
        asked,
    )


def linear() -> Any:
    torch = pytest.importorskip("torch")
    return torch.nn.Linear(2, 1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"model": "a network"}, "model"),
        ({"device": "cuda"}, "device: expected None without a module"),
        ({"sampling_rate": 0.5}, "sampling_rate: expected None without a module"),
        ({"learning_rate": 0.0}, "learning_rate: expected a number above 0"),
    ],
    ids=str,
)
def test_arguments_of_the_classifier(options: Any, says: str, asked: list[str]) -> None:
    refused(lambda: classifier(**options), says, asked)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"bound": 0.5}, "constraints: expected None with this module"),
        ({"radius": 1.0}, "radius: expected None with this module"),
        ({"sampling_rate": 0.0}, "sampling_rate: expected"),
        ({"sampling_rate": 1.5}, "sampling_rate: expected"),
        (
            {"sampling_rate": 0.5, "protects": "sensitive_features"},
            "sampling_rate: expected None with this module",
        ),
        ({"sampling_rate": 0.5, "max_epsilon": 2.0}, "all rows in every round"),
    ],
    ids=str,
)
def test_arguments_of_modules(options: Any, says: str, asked: list[str]) -> None:
    refused(lambda: classifier(model=linear(), **options), says, asked)


@pytest.mark.parametrize("make", [regressor, classifier], ids=["regressor", "classifier"])
def test_rows(make: Any, asked: list[str]) -> None:
    refused(lambda: make("equal", 50.0), "sensitive_features", asked, sensitive_features=None)
    refused(
        lambda: make(max_epsilon=2.0),
        "max_epsilon: expected None without groups",
        asked,
        sensitive_features=None,
    )
    refused(lambda: make({"f": 1.0, "m": 2.0}), "allocation", asked, sensitive_features=None)
    both = {"sex": SEX, "age": AGE}
    refused(lambda: make(groups="marginal", max_epsilon=2.0), "max_epsilon: expected None with groups that "
                                                      "overlap", asked,
            sensitive_features=both)  # fmt: skip
    refused(
        lambda: make({"f": 1.0, "m": 2.0}),
        "allocation: expected a share for each",
        asked,
        sensitive_features=both,
    )
    refused(lambda: make(), "one length", asked, sensitive_features=SEX[:10])
    refused(lambda: make(), "NaN", asked, X=np.full((ROWS, 2), np.nan))
    missing = SEX.astype(object)
    missing[0] = None
    refused(lambda: make(), "Give them a value of their own", asked, sensitive_features=missing)
    refused(
        lambda: make(sensitive_as_feature=True, protects="sensitive_features"),
        "sensitive_as_feature",
        asked,
    )
    refused(lambda: make(), "y", asked, y=None)


def test_predictions_need_the_columns_of_the_fit() -> None:
    for make, target in ((regressor, Y), (classifier, LABELS)):
        one = make(rounds=2).fit(X, target, sensitive_features=SEX)
        with pytest.raises(ValueError, match="features"):
            one.predict(X[:, :1])
        with pytest.raises(InputError, match="one length"):
            one.score(X, target[:10])
