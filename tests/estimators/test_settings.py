"""Settings of estimators: frozen values that check themselves, and parameters inside of them.

1. A value refuses knobs that it does not have and numbers that cannot be meant, and prints as it is
   typed.
2. Searches reach parameters inside: scikit-learn's own, and the private one. Clones are equal.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fairveil as fv
from fairveil.errors import InputError, KindError
from fairveil.estimators.settings import SETTINGS, built, changed, knobs, placed, values

ROOT = Path(__file__).parents[2]
ESTIMATORS: list[Any] = [
    one
    for name in fv.__all__
    if isinstance(one := getattr(fv, name), type) and issubclass(one, BaseEstimator)
]
FACED = [one for one in ESTIMATORS if getattr(one, "SETTINGS", {})]


def rows() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=400)
    X = rng.uniform(-1, 1, size=(400, 2))
    return X, (X[:, 0] + 0.3 * group > 0).astype(int), group


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SETTINGS.values(), ids=SETTINGS)
def test_a_value_is_frozen_prints_as_it_is_typed_and_is_copied(kind: Any) -> None:
    made = kind()
    assert repr(made) == f"{kind.__name__}()"
    name = next(iter(knobs(kind)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, name, 1)
    for again in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert values(again) == values(made)
    assert getattr(fv, kind.__name__) is kind
    assert not changed(made)


@pytest.mark.parametrize("kind", SETTINGS.values(), ids=SETTINGS)
def test_a_knob_that_is_not_there_is_an_error_that_names_those_that_are(kind: Any) -> None:
    first = next(iter(knobs(kind)))
    with pytest.raises(KindError, match=f"Did you mean '{first}'"):
        kind(**{f"{first}x": 1})
    with pytest.raises(TypeError):
        kind(1)


WRONG = [
    (fv.Descent, {"rounds": 0}),
    (fv.Descent, {"rounds": 2.5}),
    (fv.Descent, {"clip": -1.0}),
    (fv.Descent, {"temperature": 0.0}),
    (fv.Descent, {"sampling_rate": 2.0}),
    (fv.Descent, {"learning_rate": float("nan")}),
    (fv.PenaltyDescent, {"iterate": "best"}),
    (fv.PenaltyDescent, {"radius": 0.0}),
    (fv.PenaltyDescent, {"least_share": 0.0}),
    (fv.GroupDescent, {"region": "disc"}),
    (fv.GroupDescent, {"iterate": "uniform"}),
    (fv.GroupDescent, {"step_size": "long"}),
    (fv.GroupDescent, {"penalty": -1.0}),
    (fv.GroupLimits, {"spend": "nobody"}),
    (fv.GroupLimits, {"objective": "rows"}),
    (fv.GroupLimits, {"groups": "both"}),
    (fv.Moments, {"rounds": 0}),
    (fv.CoefficientGrid, {"radius": -1.0}),
    (fv.LinearOracle, {"oracle": "delphi"}),
    (fv.Exponential, {"confidence": 1.0}),
    (fv.OracleGame, {"clip": 0.0}),
    (fv.Thresholds, {"slack": "some"}),
    (fv.Thresholds, {"base_share": 1.0}),
    (fv.Offsets, {"rounds": 1}),
    (fv.SetAside, {"share": 1.0}),
    (fv.SetAside, {"if_refused": "drop"}),
]


@pytest.mark.parametrize(
    ("kind", "given"), WRONG, ids=[f"{kind.__name__}-{given}" for kind, given in WRONG]
)
def test_what_cannot_be_meant_is_refused_at_once(kind: Any, given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(given))):
        kind(**given)


@pytest.mark.parametrize("kind", FACED)
def test_settings_of_another_kind_are_refused_by_name(kind: Any) -> None:
    for slot in kind.SETTINGS:
        strange = fv.SetAside() if slot != "certify_share" else fv.Descent()
        one = kind(**{slot: strange})
        with pytest.raises(InputError, match=f"^{slot}: expected "):
            one._setting(slot, one._kinds(slot)[0])


# -- parameters inside -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FACED)
def test_parameters_inside_are_shown_set_and_cloned(kind: Any) -> None:
    one = kind()
    for slot in kind.SETTINGS:
        if slot in kind.PLAIN:
            continue
        usual = one._kinds(slot)[0]
        assert {f"{slot}__{name}" for name in knobs(usual)} <= set(one.get_params())
        assert not [name for name in one.get_params(deep=False) if "__" in name]
        name, value = next(
            (name, given[name]) for name in knobs(usual) for given in (EXAMPLES,) if name in given
        )
        one.set_params(**{f"{slot}__{name}": value})
        assert getattr(one, slot) == usual(**{name: value})
        assert clone(one).get_params()[f"{slot}__{name}"] == value
        with pytest.raises(InputError, match="Did you mean"):
            one.set_params(**{f"{slot}__{name}s": value})
    with pytest.raises(ValueError, match="no_such"):
        kind().set_params(no_such=1)


EXAMPLES: dict[str, Any] = {"rounds": 7, "clip": 0.5, "spend": "total", "bins": 8}


@pytest.mark.parametrize("kind", FACED)
def test_all_parameters_make_the_same_estimator_again(kind: Any) -> None:
    one = kind(random_state=3)
    again = kind(**one.get_params(deep=False))
    usual = dict.fromkeys(kind.SETTINGS)
    assert again.get_params() | usual == one.get_params() | usual


def test_searches_of_scikit_learn_reach_inside() -> None:
    X, y, group = rows()
    clf = fv.RateConstrainedClassifier(
        "demographic_parity:0.3", epsilon=8.0, random_state=0, public_rows=400
    )
    search = GridSearchCV(clf, {"solver__rounds": [2, 5], "solver__clip": [1.0]}, cv=2)
    search.fit(X, y, sensitive_features=group)
    assert [one["solver__rounds"] for one in search.cv_results_["params"]] == [2, 5]
    assert search.best_estimator_.n_iter_ == search.best_params_["solver__rounds"]
    line = make_pipeline(FunctionTransformer(), clf).set_params(
        rateconstrainedclassifier__solver__rounds=3
    )
    assert line.steps[-1][1].solver == fv.Descent(rounds=3)


def test_the_private_search_reaches_inside() -> None:
    X, y, _ = rows()
    clf = fv.RateConstrainedClassifier(public_rows=400)
    options = {"epsilon": 4.0, "random_state": 0, "way": "all"}
    search = fv.PrivateSearchCV(clf, {"solver__rounds": [2, 4]}, **options).fit(X, y)
    assert search.best_estimator_.solver.rounds == search.best_params_["solver__rounds"]
    with pytest.raises(InputError, match="solver__rounds"):
        fv.PrivateSearchCV(clf, {"rounds": [2, 4]}, **options).fit(X, y)


def test_settings_are_saved_and_read(tmp_path: Path) -> None:
    X, y, group = rows()
    solver = fv.PenaltyDescent(rounds=3, iterate="last", radius=4.0)
    clf = fv.FermiClassifier(solver=solver, certify_share=None, random_state=0).fit(
        X, y, sensitive_features=group
    )
    fv.save(clf, tmp_path / "clf")
    again = fv.load(tmp_path / "clf")
    assert again.solver == solver
    assert np.array_equal(again.predict(X), clf.predict(X))


def test_a_way_is_chosen_by_its_settings_and_those_of_another_are_refused() -> None:
    X, y, group = rows()
    with pytest.raises(InputError, match="rounds is not used with method='exponential'"):
        fv.GroupObjectiveClassifier(method="exponential", solver=fv.LinearOracle(rounds=3)).fit(
            X, y
        )
    with pytest.raises(InputError, match="temperature is not used with GroupDescent"):
        fv.TailoredClassifier(solver=fv.Descent(temperature=0.5)).fit(
            X, y, sensitive_features=group
        )
    plain = fv.TailoredClassifier(solver=fv.Descent(rounds=3), random_state=0).fit(
        X, y, sensitive_features=group
    )
    assert plain.n_iter_ == 3


def test_a_way_and_its_settings_may_be_set_in_any_order() -> None:
    """A value of another way is taken where its knobs that were changed are there."""
    X, y, group = rows()
    made = fv.GroupObjectiveClassifier(
        "gmean", "demographic_parity:0.3", protects="sensitive_features", random_state=0
    )
    orders = [
        lambda: clone(made).set_params(method="exponential").set_params(solver__penalty=2.0),
        lambda: clone(made).set_params(solver__penalty=2.0).set_params(method="exponential"),
        lambda: clone(made).set_params(solver=fv.LinearOracle(penalty=2.0), method="exponential"),
        lambda: clone(made).set_params(solver__penalty=2.0, method="exponential"),
    ]
    fits = [order().fit(X, y, sensitive_features=group) for order in orders]
    assert len({one.objective_ for one in fits}) == 1
    late = fv.GroupObjectiveClassifier(solver=fv.LinearOracle()).set_params(solver__alpha=0.1)
    assert late.solver == fv.Exponential(alpha=0.1)
    assert late.set_params(method="exponential").get_params()["solver__alpha"] == 0.1
    with pytest.raises(InputError, match=r"expected a knob of LinearOracle, got .alpha."):
        made.set_params(solver=fv.LinearOracle(rounds=3)).set_params(solver__alpha=0.1)
    of_numbers = fv.GroupObjectiveRegressor(solver=fv.Moments()).set_params(method="exponential")
    assert isinstance(of_numbers._setting("solver", fv.CoefficientGrid), fv.CoefficientGrid)


def test_knobs_have_deep_names() -> None:
    assert placed(fv.RateConstrainedClassifier(), "rounds") == "solver__rounds"
    assert placed(fv.RateConstrainedClassifier(), "epsilon") == "epsilon"
    assert built(fv.TailoredClassifier, epsilon=2.0, spend="total").limits.spend == "total"
