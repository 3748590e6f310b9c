"""Fitted estimators of every kind that is exported, and rows: ordinary ones, missing, unknown, and
far out of bounds."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fairveil as fv
import ways
from fairveil.errors import FairveilError
from fairveil.estimators.coding import Additive
from fairveil.export.columns import columns_of_groups
from fairveil.facts import Boolean, Category, Number, Schema
from fairveil.models import LinearModel, MixtureModel
from knobs import made

PARITY = "demographic_parity:0.05"
WORDS = ("north", "so'uth", 'ea"st', "other")


def schema(target: Any = ("no", "yes"), **options: Any) -> Schema:
    """With every kind of column, of which some say what missing and unknown values count as."""
    columns: dict[str, Any] = {
        "age": Number(16, 80, missing=40, edges=(25, 40, 65)),
        "hours a week": Number(0, 60),
        "town": Category(WORDS, missing="other", unknown="other"),
        "grade": Category((1, 2, 5), missing=2),
        "owns": Boolean(missing=False),
        "sex": Category(("f", "m")),
        "old": Category((False, True)),
        "y": target if isinstance(target, Number) else Category(target),
    }
    return Schema(columns, target="y", sensitive=options.pop("sensitive", ("sex",)), **options)


def people(rows: int = 600, seed: int = 0) -> dict[str, Any]:
    """A table that every fit takes."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], rows)
    return {
        "age": rng.uniform(16, 80, rows),
        "hours a week": rng.uniform(0, 60, rows),
        "town": rng.choice(WORDS, rows),
        "grade": rng.choice([1, 2, 5], rows),
        "owns": rng.random(rows) < 0.5,
        "sex": sex,
        "old": rng.random(rows) < 0.3,
    }


def labels(table: dict[str, Any], classes: tuple[Any, ...] = ("no", "yes")) -> Any:
    """Which depend on age, hours and sex."""
    rng = np.random.default_rng(7)
    score = (
        (table["age"] - 48) / 12
        + (table["hours a week"] - 30) / 20
        + np.where(table["sex"] == "m", 0.8, -0.8)
    )
    noisy = score + rng.normal(0, 0.5, len(score))
    ends = np.quantile(noisy, np.linspace(0, 1, len(classes) + 1)[1:-1])
    return np.array(classes)[np.searchsorted(ends, noisy)]


def hard(rows: int = 60, seed: int = 3) -> dict[str, Any]:
    """Rows with everything that a table may hold: which of them an estimator refuses it says
    itself."""
    rng = np.random.default_rng(seed)
    table = {name: np.array(column, dtype=object) for name, column in people(rows, seed).items()}
    far = [np.nan, np.inf, -np.inf, 1e308, -1e-300, 16.0, 80.0, 25.0, 40.0, 65.0]
    table["age"][:10] = far
    table["hours a week"][5:12] = [0.0, 60.0, 1e9, -1e9, np.nan, np.inf, 30.0]
    table["town"][12:16] = ["", "nowhere", "So'uth", "north "]
    table["grade"][16:21] = [np.nan, 3, 5.0, 2, 1e20]
    table["owns"][21:24] = [np.nan, True, False]
    table["sex"][24:26] = ["x", ""]
    order = rng.permutation(rows)
    return {name: column[order] for name, column in table.items()}


def frame(table: dict[str, Any]) -> pd.DataFrame:
    """As objects, so that nothing is made something else on the way."""
    return pd.DataFrame(
        {name: pd.Series(list(column), dtype=object) for name, column in table.items()}
    )


def _fit(
    clf: Any, y: Any = None, sensitive: Any = "sex", *, without: tuple[str, ...] = (), X: Any = None
) -> Any:
    table = people()
    columns = {name: column for name, column in table.items() if name not in without}
    groups = (
        table[sensitive]
        if isinstance(sensitive, str)
        else {name: table[name] for name in sensitive}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(
            columns if X is None else X,
            labels(table) if y is None else y,
            sensitive_features=groups,
        )


def mixture(clf: Any) -> Any:
    """Three rules, one of which is never played: what a fit returns where it keeps its
    constraints better."""
    model = clf.model_
    layout = model.layout
    others = [
        LinearModel(sign * model.weights, [0.3], classes=model.classes, layout=layout)
        for sign in (-1.0, 0.5)
    ]
    clf._set_model(MixtureModel([model, *others], [0.6, 0.0, 0.4]), clf.coding_)
    return clf


def _released() -> Any:
    """A mixture that is fitted to groups that were released once."""
    table = people()
    columns, y = {name: column for name, column in table.items() if name != "sex"}, labels(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        groups = fv.release_groups(
            columns,
            y,
            sensitive_features=table["sex"],
            schema=schema(),
            epsilon=5.0,
            random_state=0,
        )
        clf = fv.FairClassifier("demographic_parity:0.05", protects="sensitive_features")
        clf.set_params(solver__randomised=True)
        return clf.fit(columns, y, sensitive_features=groups)


def _given() -> Any:
    """Numbers alone, as an array without names."""
    table = people()
    return np.column_stack([table["age"], table["hours a week"], table["owns"]])


def _post(base: Any, **options: Any) -> Any:
    given = {
        "schema": schema(),
        "protects": "sensitive_features",
        "epsilon": 3.0,
        "random_state": 0,
        **options,
    }
    return _fit(made(fv.FairPostProcessor, base, "equalized_odds:0.02", **given))


def _parity(base: Any = None, *, y: Any = None, sensitive: Any = "sex", **options: Any) -> Any:
    given = {
        "schema": schema(),
        "epsilon": 5.0,
        "rounds": 20,
        "random_state": 0,
        "temperature": 0.1,
        **options,
    }
    return _fit(
        made(fv.FairPostProcessor, base, "demographic_parity:0.02", solver=fv.Offsets(), **given),
        y,
        sensitive,
    )


def _rate(**options: Any) -> Any:
    return made(
        fv.FairClassifier,
        **{"epsilon": 5.0, "random_state": 0, "schema": schema(), **options},
    )


SEEN: dict[str, Any] = {"protects": "sensitive_features", "random_state": 0, "epsilon": 5.0}
MAKERS: dict[str, Callable[[], Any]] = {
    "linear": lambda: _fit(_rate()),
    "softmax": lambda: _fit(_rate(schema=schema((1, 2, 4))), labels(people(), (1, 2, 4))),
    "additive": lambda: _fit(
        _rate(model=Additive(bins=4, interactions=[("age", "town"), ("age", "hours a week")]))
    ),
    "table": lambda: _fit(_rate(schema=None), without=("sex",)),
    "table additive": lambda: _fit(_rate(schema=None, model="additive"), without=("sex", "town")),
    "array": lambda: _fit(_rate(schema=None), X=_given()),
    "array standardised": lambda: _fit(
        _rate(schema=None, unsafe_data_dependent_bounds=True),
        X=_given(),
        y=labels(people(), (0, 2)),
    ),
    "rate mixture": lambda: mixture(_fit(_rate())),
    "truths": lambda: _fit(
        ways.fermi(epsilon=5.0, random_state=0, schema=schema((False, True))),
        labels(people()) == "yes",
    ),
    "game": lambda: _fit(made(ways.game, PARITY, schema=schema(), rounds=20, **SEEN)),
    "game by group": lambda: _fit(
        made(
            ways.game,
            PARITY,
            schema=schema(),
            rounds=20,
            solver=fv.OracleGame(group_aware=True),
            oracle="regression",
            **SEEN,
        )
    ),
    "game without chance": lambda: _fit(
        made(ways.game, PARITY, schema=schema(), rounds=20, **SEEN)
    ).derandomise(),
    "objective": lambda: _fit(made(ways.objective, "gmean", schema=schema(), **SEEN)),
    "log loss": lambda: _fit(made(ways.objective, "error", loss="log", schema=schema(), **SEEN)),
    "thresholds by group": lambda: _post(_rate(protects="sensitive_features")),
    "thresholds of a game": lambda: _post(made(ways.game, schema=schema(), rounds=10, **SEEN)),
    "thresholds of a log loss": lambda: _post(
        made(ways.objective, "error", loss="log", schema=schema(), **SEEN)
    ),
    "thresholds by two columns": lambda: _fit(
        made(fv.FairPostProcessor, None, PARITY, schema=schema(sensitive=("sex", "old")), **SEEN),
        sensitive=["sex", "old"],
    ),
    "decisions by group": lambda: _post(None, predict_method="predict"),
    "one threshold": lambda: _post(None, group_aware=False),
    "certain thresholds": lambda: _post(None, randomised=False),
    "released groups": lambda: _released(),
    "moved by group": lambda: _parity(),
    "moved, three classes": lambda: _parity(
        y=labels(people(), (1, 2, 4)), schema=schema((1, 2, 4))
    ),
    "moved, the largest": lambda: _parity(
        y=labels(people(), (1, 2, 4)), schema=schema((1, 2, 4)), randomised=False
    ),
    "moved after a log loss": lambda: _parity(ways.objective("error", loss="log", random_state=0)),
    "moved by two columns": lambda: _parity(
        schema=schema(sensitive=("sex", "old")), sensitive=["sex", "old"]
    ),
    "regression": lambda: _fit(
        ways.tailored_regression(epsilon=5.0, random_state=0, schema=schema(Number(0, 100))),
        people()["age"] + 10,
    ),
    "regression of an array": lambda: _fit(
        ways.objective_regression(epsilon=5.0, random_state=0, target_bounds=(0, 100)),
        people()["age"] + 10,
        X=_given(),
    ),
}
ARRAYS = {name for name in MAKERS if "array" in name}
REGRESSIONS = {name for name in MAKERS if name.startswith("regression")}


@functools.cache
def sample(name: str) -> Any:
    """A fitted estimator, made once."""
    return MAKERS[name]()


def foreign(scores: bool) -> Any:
    """Post-processing of a model of scikit-learn."""
    table = people()
    X = np.column_stack([table["age"], table["hours a week"]])
    base = LogisticRegression().fit(X, labels(table))
    method = "auto" if scores else "predict"
    clf = fv.FairPostProcessor(
        base,
        "equalized_odds:0.02",
        epsilon=3.0,
        random_state=0,
        public_base=True,
        solver=fv.Thresholds(predict_method=method),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X, labels(table), sensitive_features=table["sex"])


def foreign_moved(*, randomised: bool) -> Any:
    """Probabilities of a model of scikit-learn, three classes, moved by group."""
    table = people()
    X, y = np.column_stack([table["age"], table["hours a week"]]), labels(table, ("a", "b", "c"))
    base = LogisticRegression(max_iter=1000).fit(X, y)
    options: dict[str, Any] = {
        "epsilon": 5.0,
        "random_state": 0,
        "public_base": True,
        "temperature": 0.1,
    }
    clf = made(
        fv.FairPostProcessor, base, PARITY, solver=fv.Offsets(), randomised=randomised, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X, sensitive_features=table["sex"])


def columns_of(name: str) -> list[str]:
    """The columns of the table that a sample's `predict` reads."""
    if name in ARRAYS:
        return ["x0", "x1", "x2"]
    left_out = {"table": ("sex",), "table additive": ("sex", "town")}.get(name, ())
    return [column for column in people(1) if column not in left_out]


def shown(name: str, table: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """(X, options) for `predict_proba` of a sample."""
    X: Any = frame(table)
    if name in ARRAYS:
        X = np.column_stack(
            [np.asarray(table[one], float) for one in ("age", "hours a week", "owns")]
        )
    elif name.startswith("table"):  # without a schema numbers are numbers
        X = X[columns_of(name)].astype(
            dict.fromkeys(("age", "hours a week", "grade", "owns", "old"), float)
        )
    groups = columns_of_groups(sample(name))
    return X, {"sensitive_features": {one: list(table[one]) for one in groups}} if groups else {}


@functools.cache
def ordinary(name: str) -> tuple[dict[str, Any], Any, list[tuple[Any, Any] | None]]:
    """Rows that every estimator takes, uniform numbers, and what it gives: (probabilities, class),
    or (None, number)."""
    table, uniform = people(60, 11), np.random.default_rng(5).random(60)
    uniform[:2] = 0.0, np.nextafter(1.0, 0.0)
    return table, uniform, list(zip(*_asked(name, table, uniform), strict=True))


@functools.cache
def strange(name: str) -> tuple[dict[str, Any], Any, list[tuple[Any, Any] | None]]:
    """The same of rows that are hard; None where the estimator refuses the row."""
    table = hard(36)
    uniform = np.random.default_rng(6).random(36)
    rows = [{one: column[at : at + 1] for one, column in table.items()} for at in range(36)]
    return table, uniform, [_alone(name, row, uniform[at : at + 1]) for at, row in enumerate(rows)]


def _alone(name: str, row: dict[str, Any], uniform: Any) -> tuple[Any, Any] | None:
    try:
        return next(zip(*_asked(name, row, uniform), strict=True))
    except FairveilError:
        return None


def _asked(name: str, table: dict[str, Any], uniform: Any) -> tuple[list[Any], list[Any]]:
    clf = sample(name)
    X, options = shown(name, table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in REGRESSIONS:
            return [None] * len(uniform), clf.predict(X).tolist()
        by_chance = (
            {"random_state": Given(uniform)} if '"uniform"' in fv.export.sql_query(clf) else {}
        )
        return list(clf.predict_proba(X, **options)), clf.predict(
            X, **options, **by_chance
        ).tolist()


class Given(np.random.Generator):
    """A generator of numbers that are known."""

    def __new__(cls, values: Any) -> Given:
        return super().__new__(cls, np.random.PCG64(0))

    def __init__(self, values: Any) -> None:
        super().__init__(np.random.PCG64(0))
        self.values = values

    def random(self, *_: Any, **__: Any) -> Any:
        return self.values


def agree(found: list[tuple[Any, Any] | None], expected: list[tuple[Any, Any] | None]) -> None:
    """To 1e-6, classes exactly, and None at the same places."""
    assert [one is None for one in found] == [one is None for one in expected]
    for one, other in zip(found, expected, strict=True):
        if one is None or other is None:
            continue
        if other[0] is None:
            assert one[1] == pytest.approx(other[1], abs=1e-6)
        else:
            assert list(one[0]) == pytest.approx(other[0], abs=1e-6)
            assert one[1] == other[1]
            assert type(one[1]) is type(other[1])
