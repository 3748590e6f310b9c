"""Hostile inputs: about 240 of them for each of the eight estimators, at fit, at prediction and for
measures.

Each is refused by the library's own family of errors, which names the argument. Nothing is printed,
the estimator stays unfitted, and the ledger has no line more. Or it is good after all, and gives
what the same numbers in a plain array give.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import hostile_samples as hostile
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import fairveil as fv
from fairveil.errors import FairveilError, InputError
from fairveil.metrics.measures import audit, error_rate_gap

MAKERS = hostile.makers()
GOOD = hostile.sample()
PLACES: dict[str, dict[str, hostile.Change]] = {
    "X": hostile.BAD_X,
    "y": hostile.BAD_Y,
    "sensitive_features": hostile.BAD_GROUPS,
    "sample_weight": hostile.BAD_WEIGHTS,
}
OF_THE_BASE = {
    "polars Datetime",
    "polars Duration",
    "polars List",
    "polars Struct",
    "arrow list",
    "a long double beyond a float",
}
"""What scikit-learn's own classifiers make of features is their affair: a post-processor hands them
on."""

SAME_NUMBERS = {
    "a list of lists", "a list of arrays", "big-endian", "read-only", "strided", "objects that are numbers", "a frame",
    "whole numbers as names", "a control character in a name",
    "a mask without a masked cell", "a pandas sparse column", "arrow doubles", "polars", "arrow", "a dict of lists",
    "a dict of series", "structured", "sparse", "sparse COO", "a sparse matrix", "long double",
}  # fmt: skip


def built(change: hostile.Change, given: Any) -> Any:
    """The input itself, whose making may warn."""
    made = hostile.attempt(lambda: change(given))
    assert made.error is None, made.error
    return made.value


def trouble(found: hostile.Attempt, of: str) -> str | None:
    """What is wrong with the way an input was met; None where it was refused as it should be."""
    if found.error is None:
        return f"accepted: {found.value!r:.60}"
    if not isinstance(found.error, FairveilError) or not isinstance(
        found.error, (ValueError, TypeError, RuntimeError)
    ):
        return f"{type(found.error).__name__}: {found.error}"
    if found.printed:
        return f"printed {found.printed!r:.60}"
    text = str(found.error)
    return None if ": expected " in text and ", got " in text else f"no complaint: {text}"


def refuses(
    name: str, cases: Iterator[tuple[str, dict[str, Any], dict[str, Any]]], ledger: Any
) -> dict[str, str]:
    """All that goes wrong when `fit` is given each case: its name, options, and arguments that
    replace good ones."""
    lines = len(list(ledger.history()))
    out = {}
    for case, options, changed in cases:
        told = {key: v for key, v in options.items() if key != "constraints"}
        made = hostile.attempt(lambda: MAKERS[name](**{"ledger": ledger} | told))  # noqa: B023
        if made.error is not None:  # by the schema, which checks itself
            wrong = trouble(made, case)
            out |= {} if wrong is None else {case: wrong}
            continue
        estimator = made.value
        if "constraints" in options:
            estimator.set_params(constraints=options["constraints"])
        given = hostile.arguments(name, GOOD) | changed
        found = hostile.attempt(lambda: estimator.fit(**given))  # noqa: B023
        wrong = trouble(found, case)
        if wrong is None and not hostile.is_unfitted(estimator):
            wrong = "fitted after it was refused"
        if wrong is None and len(list(ledger.history())) != lines:
            wrong = "in the ledger"
        if wrong is not None:
            out[case] = wrong
    return out


# One reader for all: what a classifier, a regressor and a post-processor hand on tells all there is.
FEW = ["FairClassifier", "TailoredRegressor", "FairPostProcessor"]


@pytest.mark.parametrize(
    ("name", "place"),
    [(name, place) for name in MAKERS for place in PLACES if place == "y" or name in FEW],
)
def test_bad_arguments_of_fit_are_refused(name: str, place: str) -> None:
    table = dict(PLACES[place])
    good = {"X": GOOD.X, "y": hostile.arguments(name, GOOD)["y"], "sensitive_features": GOOD.groups}
    if place == "y":
        table |= hostile.BAD_TARGETS if name in hostile.REGRESSORS else hostile.BAD_CLASSES
    if name == "FairPostProcessor":
        leave = OF_THE_BASE if place == "X" else {"one class", "None"}
        # the base knows both classes, and offsets for parity need no labels
        table = {case: change for case, change in table.items() if case not in leave}
    base = good.get(place, np.ones(len(GOOD.y)))
    cases = ((case, {}, {place: built(change, base)}) for case, change in table.items())
    assert refuses(name, cases, hostile.empty_ledger(f"{place} of {name}")) == {}


@pytest.mark.parametrize("name", MAKERS)
def test_bad_options_are_refused(name: str) -> None:
    cases = [
        (f"{option}={value!r:.40}", {option: value}, {}) for option, value in hostile.BAD_OPTIONS
    ]
    if name in hostile.CONSTRAINED:
        listed = [*hostile.BAD_CONSTRAINTS, (notion for notion in ("demographic_parity:0.1",))]
        cases += [(f"constraints={value!r:.40}", {"constraints": value}, {}) for value in listed]
    assert refuses(name, iter(cases), hostile.empty_ledger(f"options of {name}")) == {}


@pytest.mark.parametrize("name", ["TailoredClassifier", "GroupObjectiveRegressor"])
def test_good_inputs_of_all_kinds_are_taken(name: str) -> None:
    """And what holds the same numbers gives the same model; regressors do not scale sparse
    numbers."""
    good = hostile.arguments(name, GOOD)
    plain = MAKERS[name]().fit(**good).predict(GOOD.X)
    same = SAME_NUMBERS - (
        {"sparse", "sparse COO", "a sparse matrix"} if name in hostile.REGRESSORS else set()
    )
    wrong = {}
    for case, change in hostile.GOOD_X.items():
        X = built(change, GOOD.X)
        found = hostile.attempt(lambda: MAKERS[name]().fit(**good | {"X": X}).predict(X))  # noqa: B023
        if found.error is not None or found.printed:
            wrong[case] = repr(found.error or found.printed)
        elif case in same and not np.allclose(found.value, plain, rtol=1e-12, atol=1e-12):
            wrong[case] = "another model"
    assert wrong == {}


@pytest.mark.parametrize("name", FEW)
def test_good_groups_of_all_kinds_are_taken(name: str) -> None:
    wrong = {}
    for case, change in hostile.GOOD_GROUPS.items():
        given = hostile.arguments(name, GOOD) | {"sensitive_features": built(change, GOOD.groups)}
        found = hostile.attempt(lambda: MAKERS[name]().fit(**given).groups_)  # noqa: B023
        if found.error is not None or found.printed:
            wrong[case] = repr(found.error or found.printed)
    assert wrong == {}


def test_levels_that_do_not_occur_are_no_groups_and_numpy_scalars_are_numbers() -> None:
    groups = hostile.GOOD_GROUPS["a category with levels that do not occur"](GOOD.groups)
    options = {
        "epsilon": np.float32(1.0),
        "delta": np.float64(1e-6),
        "random_state": np.int64(0),
        "public_rows": np.int32(120),
    }
    clf = MAKERS["TailoredClassifier"](**options).fit(GOOD.X, GOOD.y, sensitive_features=groups)
    assert clf.groups_ == ("a", "b")


@pytest.mark.parametrize("name", MAKERS)
def test_bad_arguments_at_prediction_are_refused(name: str) -> None:
    fitted = MAKERS[name]().fit(**hostile.arguments(name, GOOD))
    y = hostile.arguments(name, GOOD)["y"]
    beside: dict[str, Any] = (
        {"sensitive_features": GOOD.groups} if name == "FairPostProcessor" else {}
    )
    calls: list[tuple[str, Callable[[], Any]]] = []
    for case, change in hostile.BAD_X.items():
        if case in {"one row", "a row too few"} or (
            name == "FairPostProcessor" and case in OF_THE_BASE
        ):
            continue
        X = built(change, GOOD.X)
        for method in ("predict", "predict_proba", "decision_function"):
            if hasattr(fitted, method) and (method != "decision_function" or not beside):
                calls.append(
                    (
                        f"{method}: {case}",
                        lambda X=X, method=method: getattr(fitted, method)(X, **beside),
                    )
                )  # type: ignore[misc]
    labels = hostile.BAD_Y | (hostile.BAD_TARGETS if name in hostile.REGRESSORS else {})
    for case, change in labels.items():
        given = built(change, y)
        calls.append(
            (f"score: y {case}", lambda given=given: fitted.score(GOOD.X, given, **beside))
        )  # type: ignore[misc]
    for case, change in hostile.BAD_WEIGHTS.items():
        w = built(change, np.ones(len(y)))
        calls.append(
            (f"score: {case}", lambda w=w: fitted.score(GOOD.X, y, sample_weight=w, **beside))
        )  # type: ignore[misc]
    for case, change in hostile.BAD_GROUPS.items() if beside else ():
        g = built(change, GOOD.groups)
        calls.append((f"groups: {case}", lambda g=g: fitted.predict(GOOD.X, sensitive_features=g)))  # type: ignore[misc]
    odd: list[Any] = ["0", 1.5, True, -1, float("nan"), [0], hostile.Odd()]
    if "random_state" in inspect.signature(fitted.predict).parameters:
        calls += [
            (f"seed {s!r:.20}", lambda s=s: fitted.predict(GOOD.X, random_state=s, **beside))
            for s in odd
        ]  # type: ignore[misc]
    wrong = {
        case: said
        for case, call in calls
        if (said := trouble(hostile.attempt(call), case)) is not None
    }
    assert wrong == {}


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_not_fitted_says_so_in_scikit_learns_words(name: str) -> None:
    with pytest.raises(NotFittedError):
        MAKERS[name]().predict(GOOD.X)


RIGHT_ALL_THE_SAME = {
    "y": {"inf", "NaT"},
    "sensitive_features": {
        "inf", "a list in an entry", "an object in an entry", "bytes", "datetime64", "timedelta64", "continuous",
        "as many words as rows", "two columns of many values", "periods",
    },
    "sample_weight": {"zeros"},
}  # fmt: skip
"""Exact measures tell any values apart that equal themselves; without weight all rates are
undefined."""


@pytest.mark.parametrize(
    "measure",
    [fv.group_table, fv.demographic_parity_gap, fv.equalized_odds_gap, error_rate_gap, audit],
    ids=lambda f: f.__name__,
)
def test_bad_arguments_of_measures_are_refused(measure: Any) -> None:
    y, groups = GOOD.y, GOOD.groups
    call = (
        (lambda *given, **options: audit(fv.DemographicParity(0.05), *given, **options))
        if measure is audit
        else measure
    )
    calls: list[tuple[str, Callable[[], Any]]] = []
    for case, change in hostile.BAD_Y.items():
        bad = built(change, y)
        if case not in RIGHT_ALL_THE_SAME["y"]:
            # which need no labels
            if not (case == "None" and measure in (fv.demographic_parity_gap, audit)):
                calls.append((f"y: {case}", lambda bad=bad: call(bad, y, groups)))  # type: ignore[misc]
            calls.append((f"prediction: {case}", lambda bad=bad: call(y, bad, groups)))  # type: ignore[misc]
    for case, change in hostile.BAD_GROUPS.items():
        if case not in RIGHT_ALL_THE_SAME["sensitive_features"]:
            bad = built(change, groups)
            calls.append((f"groups: {case}", lambda bad=bad: call(y, y, bad)))  # type: ignore[misc]
    for case, change in hostile.BAD_WEIGHTS.items():
        if case not in RIGHT_ALL_THE_SAME["sample_weight"]:
            bad = built(change, np.ones(len(y)))
            calls.append(
                (f"weights: {case}", lambda bad=bad: call(y, y, groups, sample_weight=bad))
            )  # type: ignore[misc]
    options: list[dict[str, Any]] = (
        [{"groups": "x"}, {"groups": 1}, {"groups": [1]}] if measure is not audit else []
    )
    options += [{"classes": value} for value in ([0], "01", 3, [0, 0, 1], [[0], [1]], {0: 1, 1: 2})]
    calls += [(f"{given}", lambda given=given: call(y, y, groups, **given)) for given in options]  # type: ignore[misc]
    wrong = {
        case: said
        for case, one in calls
        if (said := trouble(hostile.attempt(one), case)) is not None
    }
    assert wrong == {}


def test_what_is_under_a_mask_is_missing_and_never_read() -> None:
    y = np.ma.array(GOOD.y, mask=np.arange(len(GOOD.y)) == 3)
    with pytest.raises(InputError, match=r"^y: .*None"):
        MAKERS["FairClassifier"]().fit(GOOD.X, y)
    groups = np.ma.array(GOOD.groups, mask=np.arange(len(GOOD.y)) == 3)
    table = fv.group_table(GOOD.y, GOOD.y, groups, missing="unknown")
    assert table["unknown"].rows == 1
    assert (
        fv.group_table(GOOD.y, GOOD.y, np.ma.array(GOOD.groups)).to_dict()
        == fv.group_table(GOOD.y, GOOD.y, GOOD.groups).to_dict()
    )


def test_a_column_of_numbers_beside_words_is_not_taken_for_words() -> None:
    """Each number would be a category of its own."""
    X = np.array([[23, 1.0], [41, 0.5], ["unknown", 0.0], [23, 0.1]] * 30, dtype=object)
    with pytest.raises(
        InputError,
        match=r"'x0': expected numbers or words in one column, got 'numbers beside words'",
    ):
        MAKERS["FairClassifier"]().fit(X, GOOD.y)
