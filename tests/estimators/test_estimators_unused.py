"""Arguments that a fit does not read are refused, in every estimator alike and in one wording.

Reads are watched: what no fit of a mode reads must be declared as unused there, and is then refused
if it is not the default.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import fairveil as fv
import ways
from fairveil.errors import InputError
from fairveil.estimators import fitting
from fairveil.estimators.settings import Setting, knobs, placed
from ways import built

INF = float("inf")
ROWS = 240
RNG = np.random.default_rng(0)
SEX = RNG.integers(2, size=ROWS)
X = RNG.uniform(-1, 1, size=(ROWS, 2))
NUMBERS = X[:, 0] + 0.3 * SEX + 0.2 * RNG.normal(size=ROWS)
LABELS = (NUMBERS > 0.1).astype(int)
ODDS = "demographic_parity:0.2"
READY = LogisticRegression().fit(X, LABELS)

MODES: list[tuple[Any, dict[str, Any]]] = [
    (fv.FairClassifier, {"solver": fv.PrimalDual(rounds=2)}),
    (fv.FairClassifier, {"solver": fv.PrimalDual(rounds=2), "constraints": ODDS}),
    (ways.fermi, {"solver": fv.Fermi(rounds=2)}),
    *(
        (ways.game, {"constraints": ODDS, "rounds": 2, "oracle": one})
        for one in ("regression", "descent")
    ),
    (ways.game, {"constraints": ODDS, "rounds": 2, "oracle": "exponential"}),
    (
        ways.game,
        {
            "constraints": ODDS,
            "rounds": 2,
            "oracle": "labellings",
            "protects": "sensitive_features",
        },
    ),
    (fv.FairPostProcessor, {"estimator": READY, "constraints": ODDS, "public_base": True}),
    (fv.FairPostProcessor, {"estimator": READY, "public_base": True}),
    (
        fv.FairPostProcessor,
        {"estimator": LogisticRegression(), "constraints": ODDS, "protects": "sensitive_features"},
    ),
    (
        fv.FairPostProcessor,
        {"estimator": READY, "constraints": ODDS, "public_base": True, "predict_method": "predict"},
    ),
    (ways.objective, {"rounds": 2}),
    (ways.objective, {"rounds": 2, "constraint": ODDS, "method": "frank-wolfe"}),
    (ways.objective, {"constraint": ODDS, "method": "exponential"}),
    (ways.objective, {"constraint": ODDS, "method": "exponential", "penalty": 2.0}),
    (ways.objective, {"rounds": 2, "decisions": "thresholds"}),
    (ways.objective, {"rounds": 2, "loss": "log", "objective": "largest_group_loss"}),
    (ways.objective_regression, {"target_bounds": (-2, 2)}),
    *(
        (ways.tailored_regression, {"target_bounds": (-2, 2), "solver": one})
        for one in (fv.Tailored(by="moments"), fv.Tailored())
    ),
    (
        ways.tailored_regression,
        {"target_bounds": (-2, 2), "allocation": "standard-error", "bound": 9.0},
    ),
    (ways.tailored, {"rounds": 2}),
    (
        ways.tailored,
        {"rounds": 2, "bound": 2.0, "step_size": "decaying", "radius": 3.0},
    ),
    (ways.tailored, {"rounds": 2, "allocation": "standard-error"}),
]
OTHERS: dict[str, Any] = {
    "alpha": 0.1, "by": "moments", "loss": "log", "method": "frank-wolfe", "decisions": "thresholds",
    "base_share": 0.5, "bins": 8, "candidates": [READY], "every": 3, "clip": 1.0, "confidence": 0.8,
    "device": "cpu", "iterate": "last", "learning_rate": 0.1, "oracle": "descent", "penalty": 3.0, "radius": 2.0,
    "region": "box", "rounds": 7, "sampling_rate": 0.5, "slack": "theorem", "stage_one_share": 0.4, "step_size": "decaying",
}  # fmt: skip
"""A value that is not the default, for each argument that some mode does not use."""

MOOT = {"dual_bound", "temperature", "group_aware", "radius", "spend"}
"""Read in some way by every mode, or of no effect only where constraints are vacuous, which
frontiers make them."""


def named(mode: tuple[Any, dict[str, Any]]) -> str:
    cls, options = mode
    return f"{cls.__name__}-{'-'.join(str(v) for k, v in options.items() if isinstance(v, str | float))}"


def fitted(estimator: Any) -> Any:
    y = NUMBERS if "Regressor" in type(estimator).__name__ else LABELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y, sensitive_features=SEX)


def watched(
    cls: Any, options: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[set[str], dict[str, str]]:
    """The constructor's arguments that a fit never read, and those that it declared as unused."""
    asked = built(cls, random_state=0, epsilon=3.0, **options)
    cls = type(asked)
    inside = [slot for slot in cls.SETTINGS if slot not in cls.PLAIN]
    parameters = set(inspect.signature(cls).parameters)
    read: set[str] = set()
    declared: dict[str, str] = {}
    refuse, open_ = fitting.refuse_unused, [True]

    def spied(self: Any, name: str) -> Any:
        if open_[0] and name in parameters:
            read.add(name)
        return object.__getattribute__(self, name)

    def spied_inside(self: Any, name: str) -> Any:
        if open_[0] and name in parameters:
            read.add(name)
        return object.__getattribute__(self, name)

    def recorded(estimator: Any, idle: Mapping[str, str | None]) -> None:
        declared.update({name: where for name, where in idle.items() if where is not None})
        open_[0] = False
        refuse(estimator, idle)
        open_[0] = True

    monkeypatch.setattr(fitting, "refuse_unused", recorded)
    spy = type(
        cls.__name__,
        (cls,),
        {"__getattribute__": spied, "__init__": cls.__init__, "__module__": cls.__module__},
    )
    estimator = spy(**asked.get_params(deep=False))
    for slot in inside:
        value = estimator._setting(slot, Setting)
        parameters |= set(knobs(type(value)))
        setattr(estimator, slot, value)
    monkeypatch.setattr(Setting, "__getattribute__", spied_inside)
    read.clear()
    fitted(estimator)
    return parameters - read, declared


@pytest.mark.parametrize("mode", MODES, ids=named)
def test_what_a_fit_never_reads_is_declared_and_what_is_declared_is_refused(
    mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cls, options = mode
    never, declared = watched(cls, options, monkeypatch)
    monkeypatch.undo()
    assert never - MOOT <= set(declared)
    for name, where in declared.items():
        assert where.split()[0] in ("with", "without")
        assert name in OTHERS, name
        made = built(cls, random_state=0, epsilon=3.0, **options)
        shown = made.get_params()
        place = next(deep for deep in shown if deep == name or deep.endswith(f"__{name}"))
        wrong = clone(made).set_params(**{place: OTHERS[name]})
        with pytest.raises(InputError, match=f"{name} is not used with"):
            fitted(wrong)
        fitted(made.set_params(**{place: shown[place]}))


@pytest.mark.parametrize("mode", MODES, ids=named)
def test_arguments_that_only_privacy_reads_may_stay_without_it(mode: Any) -> None:
    """Searches go over epsilons with all others the same."""
    cls, options = mode
    clips = "clip" in inspect.signature(cls).parameters or any(
        name.endswith("__clip") for name in cls().get_params()
    )
    given = {"delta": 1e-5, **({"clip": 1.5} if clips else {})}
    listed = (
        options.get("oracle") in ("exponential", "labellings")
        or options.get("method") == "exponential"
    )
    if listed or "decisions" in options:
        given.pop("clip", None)
    made = built(cls, random_state=0, epsilon=INF, **options)
    made.set_params(**{placed(made, name): value for name, value in given.items()})
    assert fitted(made).privacy_.epsilon in (0.0, INF)


def test_equal_values_are_no_complaint_and_shown_values_are_short() -> None:
    solver = fv.Tailored(stage_one_share=np.float64(0.2))
    fitting.refuse_unused(solver, {"stage_one_share": "without shares", "clip": None})
    fitting.refuse_unused(fv.Tailored(penalty=None), {"penalty": "without a bound", "clip": None})
    with pytest.raises(
        InputError,
        match=r"expected 'thresholds' with oracle='descent', got 'list'\. candidates is not used",
    ):
        fitting.refuse_unused(
            fv.OracleGame(candidates=[READY]), {"candidates": "with oracle='descent'"}
        )
