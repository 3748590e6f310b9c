"""Settings of estimators: frozen values that check themselves, parameters inside of them, and names
of earlier versions.

1. A value refuses knobs that it does not have and numbers that cannot be meant, and prints as it is
   typed.
2. Searches reach parameters inside: scikit-learn's own, and the private one. Clones are equal.
3. Every name of an earlier version is taken with one warning that says the new one, and gives the
   same fit to the bit.
4. The library's own sources, examples and benchmarks use no such name.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import pickle
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fairveil as fv
from fairveil.errors import InputError, KindError, RenamedParameter
from fairveil.estimators.settings.face import placed
from fairveil.estimators.settings.kinds import SETTINGS
from fairveil.estimators.settings.setting import changed, knobs, values

ROOT = Path(__file__).parents[2]
ESTIMATORS: list[Any] = [
    one
    for name in fv.__all__
    if isinstance(one := getattr(fv, name), type) and issubclass(one, BaseEstimator)
]
FACED = [one for one in ESTIMATORS if getattr(one, "RENAMED", {})]
OLD = [(one, name) for one in FACED for name in one.RENAMED]


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
    (fv.Checkpoints, {"every": 0}),
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
        strange = fv.Checkpoints() if slot != "checkpoint" else fv.SetAside()
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
    again = kind(**one.get_params())
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


def test_the_private_search_reaches_inside_and_takes_the_old_name() -> None:
    X, y, _ = rows()
    clf = fv.RateConstrainedClassifier(public_rows=400)
    for name in ("solver__rounds", "rounds"):
        search = fv.PrivateSearchCV(
            clf, {name: [2, 4]}, epsilon=4.0, random_state=0, way="all"
        ).fit(X, y)
        assert search.best_estimator_.solver.rounds == search.best_params_[name]


# -- names of earlier versions ---------------------------------------------------------------------

VALUES: dict[str, Any] = {
    "rounds": 5, "clip": 0.5, "temperature": 0.7, "sampling_rate": 0.2, "learning_rate": 0.3, "device": "cpu",
    "checkpoint_every": 3, "if_refused": "keep", "iterate": "last", "radius": 3.0, "least_share": 0.1,
    "positive": 1, "groups": "marginal", "objective": "people", "spend": "total", "min_epsilon": 0.1, "max_epsilon": 2.0,
    "penalty": 3.0, "alpha": 0.1, "confidence": 0.8, "oracle": "descent", "candidates": None, "region": "box",
    "step_size": "decaying", "bins": 8, "slack": "theorem", "base_share": 0.5, "method": "moments", "scores": "predict",
}  # fmt: skip
BESIDE: dict[str, dict[str, Any]] = {
    "checkpoint_every": {"checkpoint": "folder"},
    "positive": {"notion": "equal_opportunity"},
}


@pytest.mark.parametrize(
    ("kind", "name"), OLD, ids=[f"{kind.__name__}-{name}" for kind, name in OLD]
)
def test_an_old_name_is_taken_and_the_new_one_is_said(kind: Any, name: str) -> None:
    beside = BESIDE.get(name, {})
    # each the one that is not usual
    value = kind is fv.OracleGameClassifier if name == "group_aware" else VALUES[name]
    with pytest.warns(
        RenamedParameter, match=rf"{kind.__name__}: {name} moved; pass \w+="
    ) as heard:
        by_name = kind(**beside, **{name: value})
    assert len(heard) == 1
    assert heard[0].filename == __file__
    assert issubclass(RenamedParameter, FutureWarning)
    with pytest.warns(RenamedParameter):
        assert getattr(by_name, name) == (fv.Moments() if name == "method" else value)
    with pytest.warns(RenamedParameter):
        later = kind().set_params(**beside, **{name: value})
    assert repr(later) == repr(by_name) == repr(clone(by_name))
    as_attribute = kind(**beside)
    with pytest.warns(RenamedParameter):
        setattr(as_attribute, name, value)
    assert repr(as_attribute) == repr(by_name)
    typed = str(heard[0].message).partition("pass ")[2].partition(". The old")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = eval(
            f"kind({', '.join([*(f'{k}={v!r}' for k, v in beside.items() if k not in typed), typed])})"
        )
    assert repr(new) == repr(by_name)


@pytest.mark.parametrize("kind", FACED)
def test_an_unknown_keyword_is_an_error_with_a_suggestion(kind: Any) -> None:
    with pytest.raises(KindError, match="Did you mean 'epsilon'"):
        kind(epsilo=1.0)
    with pytest.raises(TypeError):
        kind(epsilo=1.0)


@pytest.mark.parametrize("kind", FACED)
def test_an_old_name_with_its_usual_value_changes_nothing(kind: Any) -> None:
    old = kind()
    for name, place in kind.RENAMED.items():
        slot, _, knob = place.partition(".")
        if knob and slot in kind.SETTINGS:
            usual = next(knobs(one)[knob] for one in kind.SETTINGS[slot] if knob in knobs(one))
            with pytest.warns(RenamedParameter):
                old.set_params(**{name: usual})
    assert repr(old) == repr(kind())


def test_old_and_new_names_fit_the_same_bits() -> None:
    X, y, group = rows()
    with pytest.warns(RenamedParameter):
        old = fv.RateConstrainedClassifier(
            "demographic_parity:0.3", rounds=6, clip=0.7, temperature=0.5, random_state=0
        )
    new = fv.RateConstrainedClassifier(
        "demographic_parity:0.3",
        solver=fv.Descent(rounds=6, clip=0.7, temperature=0.5),
        random_state=0,
    )
    found = [one.fit(X, y, sensitive_features=group).outcome_.weights for one in (old, new)]
    assert np.array_equal(*found)


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


# -- sources ---------------------------------------------------------------------------------------


def sources() -> Iterator[tuple[str, str]]:
    for folder in ("src", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text("utf-8")
    for path in [
        *sorted((ROOT / "docs").rglob("*.md")),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
    ]:
        text = path.read_text("utf-8")
        for number, block in enumerate(
            re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        ):
            plain = (
                re.sub(r"^(?:>>> |\.\.\. )", "", block, flags=re.MULTILINE)
                if block.startswith(">>>")
                else block
            )
            yield f"{path.name}, block {number + 1}", plain


def old_names_in(text: str) -> list[str]:
    """Keywords of constructors which are names of earlier versions."""
    found = []
    renamed = {one.__name__: one.RENAMED for one in FACED}
    try:
        tree = ast.parse(text)
    except SyntaxError:  # printed results between the lines of a session
        tree = ast.Module([], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            found += [
                f"{name}({one.arg}=)" for one in node.keywords if one.arg in renamed.get(name, ())
            ]
    return found


def test_no_source_page_or_benchmark_uses_an_old_name() -> None:
    found = [f"{place}: {name}" for place, text in sources() for name in old_names_in(text)]
    assert found == []
    assert old_names_in("fv.RateConstrainedClassifier(rounds=3)") == [
        "RateConstrainedClassifier(rounds=)"
    ]


def test_the_page_has_every_old_name_beside_the_new_one() -> None:
    page = (ROOT / "docs" / "renamed.md").read_text("utf-8")
    lines = [f"| `{kind.__name__}` | `{name}=` | `{kind.RENAMED[name]}` |" for kind, name in OLD]
    assert [line for line in page.splitlines() if line.startswith("| `")] == lines, (
        "run python docs/make_renamed.py"
    )


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
    options: dict[str, Any] = {"target_bounds": (-1, 1), "random_state": 0}
    with pytest.warns(RenamedParameter):
        old = fv.TailoredRegressor(method="moments", clip=2.0, **options)
    assert old.solver == fv.Moments(clip=2.0)
    with pytest.warns(RenamedParameter):
        assert fv.TailoredRegressor(clip=2.0).set_params(method="moments").solver == fv.Moments(
            clip=2.0
        )
    new = fv.TailoredRegressor(solver=fv.Moments(clip=2.0), **options)
    both = [one.fit(X, X[:, 0], sensitive_features=group).coef_ for one in (old, new)]
    assert np.array_equal(*both)


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


def test_deep_names_of_old_ones() -> None:
    assert placed(fv.RateConstrainedClassifier(), "rounds") == "solver__rounds"
    assert placed(fv.RateConstrainedClassifier(), "epsilon") == "epsilon"
