"""Warnings from public facts: numbers without bounds, weak epsilons and deltas; and that they
depend on nothing else."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

import fairveil as fv
import ways
from fairveil.data import Category, Number, Schema
from fairveil.errors import (
    FairveilWarning,
    RawUnits,
    UnprotectedStep,
    UnstatedBounds,
    WeakDelta,
    WeakEpsilon,
)
from knobs import made

BEFORE = (RawUnits, UnprotectedStep, UnstatedBounds, WeakDelta, WeakEpsilon)
RNG = np.random.default_rng(0)
ROWS = 400
A = RNG.integers(2, size=ROWS)
SCALED = RNG.normal(size=(ROWS, 3))
RAW = SCALED * [15_000, 12, 0.05] + [50_000, 40, 0.5]
Y = (SCALED.sum(axis=1) > 0).astype(int)
TARGET = SCALED @ [3.0, 2.0, 1.0] + 100
SCHEMA = Schema(
    {
        "income": Number(0, 100_000),
        "age": Number(0, 90),
        "share": Number(0, 1),
        "hired": Category((0, 1)),
        "sex": Category((0, 1)),
    },
    target="hired",
    sensitive="sex",
)
PARITY = "demographic_parity:0.3"
Make = Callable[..., Any]


def net() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 2))


def quick(make: Any, *given: Any, **options: Any) -> Make:
    return lambda **more: made(make, *given, random_state=0, **options, **more)


CLASSIFIERS: dict[str, Make] = {
    "rate-constrained": quick(fv.FairClassifier, PARITY, rounds=2),
    "rate-constrained network": lambda **more: quick(
        fv.FairClassifier, PARITY, model=net(), rounds=2
    )(**more),
    "fermi": quick(ways.fermi, rounds=2),
    "game": quick(ways.game, PARITY, rounds=2),
    "game by descent": quick(ways.game, PARITY, rounds=2, oracle="descent"),
    "game by thresholds": quick(ways.game, PARITY, rounds=2, oracle="exponential"),
    "group objective": quick(ways.objective, "error", PARITY, rounds=2),
    "tailored": quick(ways.tailored, rounds=2),
    "tailored network": lambda **more: made(
        ways.tailored, model=net(), solver=fv.Tailored(rounds=2), random_state=0, **more
    ),
    "post-processor": quick(fv.FairPostProcessor, constraints=PARITY),
}
REGRESSORS: dict[str, Make] = {
    "group objective": quick(ways.objective_regression, target_bounds=(0, 200), rounds=2),
    "tailored by descent": quick(ways.tailored_regression, target_bounds=(0, 200), rounds=2),
    "tailored by moments": quick(
        ways.tailored_regression, target_bounds=(0, 200), solver=fv.Tailored(by="moments")
    ),
}
TAKE_THEM_AS_THEY_ARE = ("rate-constrained network", "tailored network")


def told(fit: Callable[[], Any]) -> list[str]:
    """The names of the library's warnings before a fit: not of what the model came to."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [one.category.__name__ for one in caught if issubclass(one.category, BEFORE)]


# -- numbers without bounds ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("rate-constrained", SCALED), *((name, RAW) for name in CLASSIFIERS)],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_protected_numbers_without_bounds_are_warned_of_once_whatever_they_are(
    name: str, numbers: Any
) -> None:
    assert told(lambda: CLASSIFIERS[name]().fit(numbers, Y, sensitive_features=A)) == [
        "UnstatedBounds"
    ]


@pytest.mark.parametrize("numbers", [SCALED, RAW], ids=["scaled", "raw"])
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_warn_of_them_too(name: str, numbers: Any) -> None:
    assert told(lambda: REGRESSORS[name]().fit(numbers, TARGET, sensitive_features=A)) == [
        "UnstatedBounds"
    ]


@pytest.mark.parametrize("name", ["rate-constrained", "game", "post-processor"])
def test_a_schema_or_its_unsafe_stand_in_leaves_nothing_to_say(name: str) -> None:
    table = {
        "income": RAW[:, 0].clip(0, 100_000),
        "age": RAW[:, 1].clip(0, 90),
        "share": RAW[:, 2].clip(0, 1),
    }
    assert (
        told(lambda: CLASSIFIERS[name](schema=SCHEMA).fit(table, Y, sensitive_features={"sex": A}))
        == []
    )
    unsafe = CLASSIFIERS[name](unsafe_data_dependent_bounds=True)
    assert told(lambda: unsafe.fit(RAW, Y, sensitive_features=A)) == []


def test_words_alone_need_no_bounds() -> None:
    words = {"degree": np.where(SCALED[:, 0] > 0, "some", "none")}
    assert told(lambda: CLASSIFIERS["fermi"]().fit(words, Y, sensitive_features=A)) == []


def test_the_words_say_what_to_do_in_the_language_of_the_caller() -> None:
    with pytest.warns(
        UnstatedBounds, match=re.escape("Pass schema=, with Number(low, high)")
    ) as caught:
        CLASSIFIERS["fermi"]().fit(RAW, Y, sensitive_features=A)
    (warning,) = (one.message for one in caught if one.category is UnstatedBounds)
    assert isinstance(warning, FairveilWarning)
    shell = warning.in_shell or ""
    assert ("--schema" in shell, "schema=" in shell, "Number(" in shell) == (True, False, False)
    # the line that asked for the fit
    assert next(one for one in caught if one.message is warning).filename == __file__


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_public_numbers_are_looked_at_where_a_fit_does_not_scale_them(name: str) -> None:
    options: dict[str, Any] = {"protects": "sensitive_features", "epsilon": 1.0}
    assert told(lambda: CLASSIFIERS[name](**options).fit(SCALED, Y, sensitive_features=A)) == []
    expected = ["RawUnits"] if name in TAKE_THEM_AS_THEY_ARE else []
    assert told(lambda: CLASSIFIERS[name](**options).fit(RAW, Y, sensitive_features=A)) == expected


@pytest.mark.parametrize("name", ["game by descent", "game by thresholds"])
def test_without_privacy_they_are_looked_at_too(name: str) -> None:
    fit = lambda X: CLASSIFIERS[name](epsilon=float("inf")).fit(X, Y, sensitive_features=A)  # noqa: E731
    assert told(lambda: fit(SCALED)) == []
    with pytest.warns(
        RawUnits, match=r"column 'x0' of X: expected .* got a root mean square of 5.2e\+04"
    ):
        fit(RAW)


def test_sparse_numbers_are_not_scaled_and_are_looked_at() -> None:
    thin = sparse.csr_array(SCALED * (RNG.random(SCALED.shape) < 0.2))
    make = CLASSIFIERS["rate-constrained"]
    assert (
        told(lambda: make(protects="sensitive_features").fit(thin, Y, sensitive_features=A)) == []
    )
    assert told(
        lambda: make(protects="sensitive_features").fit(thin * 1e4, Y, sensitive_features=A)
    ) == ["RawUnits"]
    assert told(
        lambda: make(protects="sensitive_features").fit(thin * 1e-5, Y, sensitive_features=A)
    ) == ["RawUnits"]


# -- weak promises ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["rate-constrained network", "game", "group objective", "post-processor"]
)
def test_an_epsilon_above_ten_is_weak(name: str) -> None:
    options: dict[str, Any] = {"protects": "sensitive_features"}
    assert (
        told(
            lambda: CLASSIFIERS[name](epsilon=10.0, **options).fit(SCALED, Y, sensitive_features=A)
        )
        == []
    )
    found = told(
        lambda: CLASSIFIERS[name](epsilon=20.0, **options).fit(SCALED, Y, sensitive_features=A)
    )
    assert found == ["WeakEpsilon"]
    infinite = CLASSIFIERS[name](epsilon=float("inf"), **options)
    # that says itself what it is
    assert told(lambda: infinite.fit(SCALED, Y, sensitive_features=A)) == []


def test_its_words_in_both_languages() -> None:
    with pytest.warns(
        WeakEpsilon, match=r"epsilon: expected at most 10 .* got 20.0. .* is weak: .* e\^20"
    ) as caught:
        CLASSIFIERS["fermi"](epsilon=20.0, protects="sensitive_features").fit(
            SCALED, Y, sensitive_features=A
        )
    (message,) = (one.message for one in caught if one.category is WeakEpsilon)
    assert isinstance(message, FairveilWarning)
    assert (message.in_shell or "").startswith("--epsilon: expected at most 10")


def test_a_post_processor_warns_of_the_whole_promise_once() -> None:
    with pytest.warns(WeakEpsilon, match="got 20.0") as caught:  # its base has 16 of it
        CLASSIFIERS["post-processor"](epsilon=20.0).fit(SCALED, Y, sensitive_features=A)
    assert sum(one.category is WeakEpsilon for one in caught) == 1


def test_a_delta_is_held_against_public_rows_and_says_what_it_assumes_without() -> None:
    make = CLASSIFIERS["fermi"]
    with pytest.warns(WeakDelta, match=rf"well below 1/{ROWS}, .* pass delta=3e-04"):
        make(delta=0.005, public_rows=ROWS).fit(SCALED, Y, sensitive_features=A)
    with pytest.warns(WeakDelta, match="number of rows is private .* assumes fewer than 200 rows"):
        make(delta=0.005).fit(SCALED, Y, sensitive_features=A)
    # word for word: how many there are is not told
    with pytest.warns(WeakDelta, match="assumes fewer than 200 rows"):
        make(delta=0.005).fit(SCALED[:50], Y[:50], sensitive_features=A[:50])


def test_a_frontier_says_each_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        template = fv.FairClassifier(solver=fv.PrimalDual(rounds=2), delta=0.005)
        grid: dict[str, Any] = {
            "epsilons": (1.0, 20.0),
            "gaps": (0.1, 0.2),
            "seeds": (0,),
            "progress": False,
        }
        fv.frontier(SCALED, Y, A, estimator=template, test=(SCALED, Y, A), **grid)
    named = [one.category.__name__ for one in caught]
    assert [named.count(name) for name in ("UnstatedBounds", "WeakDelta", "WeakEpsilon")] == [
        1,
        1,
        1,
    ]
