"""fairlearn's names: the same numbers, constraints at least as strict, estimators of ours, and
nothing ignored."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import fairveil as fv
from fairveil.compat import fairlearn as shim
from fairveil.errors import InputError

metrics = pytest.importorskip("fairlearn.metrics", reason="fairlearn is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::fairveil.errors.FairveilWarning")


def decisions(seed: int, rows: int = 400) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    groups = rng.choice(list("abc"), rows, p=[0.6, 0.3, 0.1])
    return rng.integers(2, size=rows), rng.integers(2, size=rows), groups


@pytest.mark.parametrize("seed", range(5))
def test_guarantee_2_measures_are_fairlearns_numbers(seed: int) -> None:
    y, decided, groups = decisions(seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2, len(y))
    for ours, theirs in (
        (shim.demographic_parity_difference, metrics.demographic_parity_difference),
        (shim.equalized_odds_difference, metrics.equalized_odds_difference),
    ):
        for options in ({}, {"sample_weight": weights}):
            found = ours(y, decided, sensitive_features=groups, **options)  # type: ignore[operator]
            assert found == pytest.approx(
                theirs(y, decided, sensitive_features=groups, **options), abs=1e-12
            )


@pytest.mark.parametrize("seed", range(20))
def test_guarantee_1_a_gap_to_the_rest_bounds_fairlearns_gap_to_everybody(seed: int) -> None:
    y, decided, groups = decisions(seed, 200)
    # fairlearn takes a rate of nobody for 0
    assert len(set(zip(y.tolist(), groups.tolist(), strict=True))) == 6
    overall = metrics.demographic_parity_difference(
        y, decided, sensitive_features=groups, method="to_overall"
    )
    assert overall <= fv.demographic_parity_gap(y, decided, groups, compare="rest") + 1e-12
    odds = metrics.equalized_odds_difference(
        y, decided, sensitive_features=groups, method="to_overall"
    )
    assert odds <= fv.equalized_odds_gap(y, decided, groups, compare="rest") + 1e-12


@pytest.mark.parametrize(
    ("name", "notion"),
    [
        ("DemographicParity", fv.DemographicParity),
        ("EqualizedOdds", fv.EqualizedOdds),
        ("TruePositiveRateParity", fv.EqualOpportunity),
        ("FalsePositiveRateParity", fv.FalsePositiveRateParity),
        ("ErrorRateParity", fv.ErrorRateParity),
    ],
)
def test_constraints_are_notions_against_the_rest(name: str, notion: Any) -> None:
    make = getattr(shim, name)
    assert make(difference_bound=0.07) == notion(0.07, compare="rest")
    assert make() == notion(shim.BOUND, compare="rest")
    for bad in (
        {"ratio_bound": 0.8},
        {"ratio_bound_slack": 0.1},
        {"difference_bound": -0.1},
        {"difference_bound": "x"},
    ):
        with pytest.raises(InputError):
            make(**bad)


def people(rows: int = 600) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, 2))
    return X, (X[:, 0] + rng.normal(0, 0.3, rows) > 0).astype(int), rng.choice(["f", "m"], rows)


def test_estimators_are_ours_and_fit() -> None:
    X, y, sex = people()
    constraint = shim.EqualizedOdds(difference_bound=0.1)
    game = shim.ExponentiatedGradient(
        LogisticRegression(),
        constraint,
        max_iter=10,
        epsilon=5.0,
        protects="sensitive_features",
        random_state=0,
    )
    assert isinstance(game, fv.OracleGameClassifier)
    assert (game.constraints, game.rounds) == (constraint, 10)
    game.fit(X, y, sensitive_features=sex)
    assert set(game.predict(X, random_state=0)) <= {0, 1}
    assert game.privacy_.epsilon <= 5.0
    fitted = LogisticRegression().fit(X, y)
    post = shim.ThresholdOptimizer(
        estimator=fitted,
        constraints="equalized_odds",
        prefit=True,
        tol=0.05,
        epsilon=5.0,
        protects="sensitive_features",
    )
    assert isinstance(post, fv.OddsPostProcessor)
    assert post.constraints == fv.EqualizedOdds(0.05)
    assert len(post.fit(X, y, sensitive_features=sex).predict(X, sensitive_features=sex)) == len(y)
    assert shim.ThresholdOptimizer().constraints == fv.DemographicParity(0.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: shim.ExponentiatedGradient(SVC(), shim.DemographicParity()),
        lambda: shim.ExponentiatedGradient(LogisticRegression(C=2.0), shim.DemographicParity()),
        lambda: shim.ExponentiatedGradient(None, None, eps=0.01),
        lambda: shim.ExponentiatedGradient(None, None, nu=0.1),
        lambda: shim.ThresholdOptimizer(constraints="karma"),
        lambda: shim.ThresholdOptimizer(objective="balanced_accuracy_score"),
        lambda: shim.ThresholdOptimizer(flip=True),
        lambda: shim.ThresholdOptimizer(grid_size=100),
        lambda: shim.ThresholdOptimizer(tol=2.0),
        lambda: shim.ThresholdOptimizer(estimator=LogisticRegression(), prefit=True),
        lambda: shim.demographic_parity_difference(
            [0], [1], sensitive_features=["a"], method="to_overall"
        ),
        lambda: shim.equalized_odds_difference([0], [1], sensitive_features=["a"], agg="mean"),
    ],
)
def test_what_has_no_place_is_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def test_a_metric_frame_has_the_rates_of_the_group_table() -> None:
    y, decided, groups = decisions(1)
    names = np.array(["no", "yes"])
    frame = shim.metric_frame(names[y], names[decided], {"group": groups})
    table = fv.group_table(names[y], names[decided], {"group": groups})
    for group in "abc":
        row = table[group].rates
        for rate in ("selection_rate", "true_positive_rate", "false_positive_rate"):
            assert frame.by_group.loc[group, rate] == pytest.approx(
                row[f"{rate}[yes]"].value, abs=1e-12
            )
    assert frame.by_group["count"].sum() == len(y)
    assert frame.difference()["selection_rate"] == pytest.approx(
        fv.demographic_parity_gap(y, decided, groups)
    )
    two = shim.metric_frame(
        y, decided, {"group": groups, "half": np.arange(len(y)) % 2}, positive=0
    )
    assert len(two.by_group) == 6
    with pytest.raises(InputError, match="two classes"):
        shim.metric_frame([0, 1, 2], [0, 1, 2], ["a", "b", "a"])
    with pytest.raises(InputError, match="two classes"):
        shim.metric_frame([0, 1], [[0.5, 0.5], [0.1, 0.9]], ["a", "b"])


@pytest.mark.parametrize(
    ("module", "name"),
    [
        *(
            ("reductions", name)
            for name in ("ExponentiatedGradient", "DemographicParity", "EqualizedOdds")
        ),
        *(
            ("reductions", name)
            for name in ("TruePositiveRateParity", "FalsePositiveRateParity", "ErrorRateParity")
        ),
        ("postprocessing", "ThresholdOptimizer"),
        *(
            ("metrics", name)
            for name in ("demographic_parity_difference", "equalized_odds_difference")
        ),
    ],
)
def test_every_parameter_of_theirs_is_ours_or_is_refused_by_name(module: str, name: str) -> None:
    """Of the fairlearn that is installed, so that a new parameter there is seen here."""
    theirs, ours = (
        getattr(importlib.import_module(f"fairlearn.{module}"), name),
        getattr(shim, name),
    )
    own = inspect.signature(ours).parameters
    for parameter, one in inspect.signature(theirs).parameters.items():
        if parameter in own:
            assert own[parameter].kind is one.kind
            assert own[parameter].default == one.default or parameter in (
                "estimator",
                "constraints",
                "max_iter",
            )
        else:
            with pytest.raises(InputError, match=parameter):
                ours(**{parameter: object()})
