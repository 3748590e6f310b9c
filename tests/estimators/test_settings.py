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
import ways
from fairveil.errors import InputError, KindError
from fairveil.estimators.settings import SETTINGS, Setting, changed, knobs, placed, values
from fairveil.facts import Schema
from fairveil.fairness import objectives
from ways import built

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
    (fv.PrimalDual, {"rounds": 0}),
    (fv.PrimalDual, {"rounds": 2.5}),
    (fv.PrimalDual, {"clip": -1.0}),
    (fv.PrimalDual, {"temperature": 0.0}),
    (fv.PrimalDual, {"sampling_rate": 2.0}),
    (fv.PrimalDual, {"learning_rate": float("nan")}),
    (fv.Fermi, {"iterate": "best"}),
    (fv.Fermi, {"radius": 0.0}),
    (fv.Fermi, {"least_share": 0.0}),
    (fv.Tailored, {"region": "disc"}),
    (fv.GroupObjective, {"method": "magic"}),
    (fv.Tailored, {"iterate": "uniform"}),
    (fv.Tailored, {"step_size": "long"}),
    (fv.Tailored, {"penalty": -1.0}),
    (fv.Tailored, {"spend": "nobody"}),
    (fv.Tailored, {"groups": "both"}),
    (fv.GroupObjective, {"rounds": 0}),
    (fv.GroupObjective, {"radius": -1.0}),
    (fv.GroupObjective, {"oracle": "delphi"}),
    (fv.GroupObjective, {"confidence": 1.0}),
    (fv.OracleGame, {"clip": 0.0}),
    (fv.Thresholds, {"slack": "some"}),
    (fv.Thresholds, {"base_share": 1.0}),
    (fv.Offsets, {"rounds": 1}),
    (fv.SetAside, {"share": 1.0}),
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
        strange = fv.SetAside() if slot != "certify" else fv.PrimalDual()
        one = kind(**{slot: strange})
        with pytest.raises(InputError, match=f"^{slot}: expected "):
            one._setting(slot, kind.SETTINGS[slot][0])


# -- parameters inside -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FACED)
def test_parameters_inside_are_shown_set_and_cloned(kind: Any) -> None:
    one = kind()
    for slot in kind.SETTINGS:
        if slot in kind.PLAIN:
            continue
        usual = kind.SETTINGS[slot][0]
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
    clf = fv.FairClassifier(
        "demographic_parity:0.3", epsilon=8.0, random_state=0, schema=Schema(rows=400)
    )
    search = GridSearchCV(clf, {"solver__rounds": [2, 5], "solver__clip": [1.0]}, cv=2)
    search.fit(X, y, sensitive_features=group)
    assert [one["solver__rounds"] for one in search.cv_results_["params"]] == [2, 5]
    assert search.best_estimator_.n_iter_ == search.best_params_["solver__rounds"]
    line = make_pipeline(FunctionTransformer(), clf).set_params(fairclassifier__solver__rounds=3)
    assert line.steps[-1][1].solver == fv.PrimalDual(rounds=3)


def test_the_private_search_reaches_inside() -> None:
    X, y, _ = rows()
    clf = fv.FairClassifier(schema=Schema(rows=400))
    options = {"epsilon": 4.0, "random_state": 0, "way": "all"}
    search = fv.PrivateSearchCV(clf, {"solver__rounds": [2, 4]}, **options).fit(X, y)
    assert search.best_estimator_.solver.rounds == search.best_params_["solver__rounds"]
    with pytest.raises(InputError, match="solver__rounds"):
        fv.PrivateSearchCV(clf, {"rounds": [2, 4]}, **options).fit(X, y)


def test_settings_are_saved_and_read(tmp_path: Path) -> None:
    X, y, group = rows()
    solver = fv.Fermi(rounds=3, iterate="last", radius=4.0)
    clf = ways.fermi(solver=solver, certify=None, random_state=0).fit(
        X, y, sensitive_features=group
    )
    fv.save(clf, tmp_path / "clf")
    again = fv.load(tmp_path / "clf")
    assert again.solver == solver
    assert np.array_equal(again.predict(X), clf.predict(X))


def test_settings_that_nothing_reads_are_refused() -> None:
    X, y, group = rows()
    with pytest.raises(InputError, match="rounds is not used with method='exponential'"):
        fv.FairClassifier(solver=fv.GroupObjective(method="exponential", rounds=3)).fit(X, y)
    with pytest.raises(InputError, match="radius is not used with a classifier"):
        fv.FairClassifier(solver=fv.GroupObjective(radius=2.0)).fit(X, y)
    with pytest.raises(InputError, match="oracle is not used with a regression"):
        fv.FairRegressor(solver=fv.GroupObjective(oracle="descent")).fit(X, X[:, 0])
    with pytest.raises(InputError, match="by is not used with a classifier"):
        fv.FairClassifier(solver=fv.Tailored(by="moments")).fit(X, y, sensitive_features=group)
    with pytest.raises(InputError, match="region is not used with by='moments'"):
        fv.FairRegressor(solver=fv.Tailored(by="moments", radius=1.0, region="box")).fit(
            X, X[:, 0], sensitive_features=group
        )
    with pytest.raises(InputError, match="objective: expected None with solver=Fermi"):
        fv.FairClassifier(objective="gmean", solver=fv.Fermi()).fit(X, y)


def test_a_solver_is_chosen_by_what_is_asked() -> None:
    def chosen(*given: object, **more: object) -> type:
        return type(fv.FairClassifier(*given, **more)._setting("solver", Setting))

    assert chosen() is chosen("equalized_odds:0.1", objective="error") is fv.PrimalDual
    assert chosen(objective="gmean") is fv.GroupObjective
    assert chosen([objectives.GMean().at_least(0.7)]) is chosen("gmean:0.3") is fv.GroupObjective
    assert type(fv.FairRegressor()._setting("solver", Setting)) is fv.GroupObjective
    with pytest.raises(InputError, match=r"^solver: expected .*GroupObjective.* or .*Tailored"):
        fv.FairRegressor(solver=fv.Fermi()).fit(*rows()[:2])


def test_a_knob_makes_the_settings_that_have_it() -> None:
    late = fv.FairClassifier().set_params(solver__strength=2.0)
    assert late.solver == fv.Fermi(strength=2.0)
    assert fv.FairClassifier().set_params(solver__rounds=2).solver == fv.PrimalDual(rounds=2)
    with pytest.raises(InputError, match=r"expected a knob of PrimalDual, got .alpha."):
        late.set_params(solver=fv.PrimalDual(rounds=3)).set_params(solver__alpha=0.1)


def test_knobs_have_deep_names() -> None:
    assert placed(fv.FairClassifier(), "rounds") == "solver__rounds"
    assert placed(fv.FairClassifier(), "epsilon") == "epsilon"
    assert built(fv.FairClassifier, epsilon=2.0, spend="total").solver.spend == "total"
