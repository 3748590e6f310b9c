"""The table that every check runs over: one row a configuration, with public names alone.

A row says how to make the estimator (or the release), which synthetic table it reads, and how the
table is handed to it. `CONFIGURATIONS[name].run()` is the whole walk. Rows are chosen so that every
feature stands in several: protection, schema, several sensitive columns, persons, weights,
confidence, and linear, additive and network models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import fairveil as fv
import ways
from fairveil.data import Category, Ignored, Number, Schema

Table = dict[str, npt.NDArray[Any]]

ROWS = 240
FEATURES = ("age", "hours", "job")
VALUES = {"sex": ("f", "m"), "race": ("x", "y", "z"), "grade": ("hi", "lo", "mid")}
EPSILON, DELTA = 2.0, 1e-6


def people(rows: int = ROWS, seed: int = 0) -> Table:
    """Synthetic people; every one has two rows on average, told apart by `person`."""
    draw = np.random.default_rng(seed)
    sex = draw.choice(["f", "m"], rows, p=[0.45, 0.55])
    race = draw.choice(["x", "y", "z"], rows, p=[0.6, 0.3, 0.1])
    age, hours = draw.uniform(17, 90, rows).round(2), draw.uniform(0, 100, rows).round(2)
    job = draw.choice(["a", "b", "c"], rows)
    merit = (age - 50) / 30 + (hours - 50) / 40 + 0.6 * (sex == "m") + 0.5 * (job == "b")
    merit += draw.normal(0, 0.7, rows)
    names = np.array([f"p{i:04}" for i in draw.permutation(max(rows, 1))])
    return {
        "age": age,
        "hours": hours,
        "job": job,
        "sex": sex,
        "race": race,
        "hired": np.where(merit > 0.4, "yes", "no"),
        "grade": np.where(merit < -0.3, "lo", np.where(merit < 0.7, "mid", "hi")),
        "pay": np.clip(5 + 2 * merit, 0, 10).round(3),
        "person": names[np.sort(draw.integers(0, max(rows // 2, 1), rows))],
        "weight": draw.uniform(0.25, 1.0, rows).round(3),
    }


def schema_of(
    target: str,
    sensitive: tuple[str, ...],
    *,
    unit: str | None = None,
    most: int = 2,
    rows: int | None = None,
) -> Schema:
    """Public facts of that table, for this target and these groups."""
    columns: dict[str, Any] = {
        "age": Number(17, 90),
        "hours": Number(0, 100),
        "job": Category(("a", "b", "c")),
    }
    columns |= {name: Category(VALUES[name]) for name in sensitive}
    targets = {
        "hired": Category(("no", "yes")),
        "grade": Category(VALUES["grade"]),
        "pay": Number(0, 10),
    }
    columns[target] = targets[target]
    persons: dict[str, Any] = {}
    if unit is not None:
        columns[unit] = Ignored()
        persons = {"unit": unit, "max_rows_per_unit": most}
    return Schema(columns, target=target, sensitive=sensitive, rows=rows, **persons)


@dataclass(frozen=True)
class Configuration:
    """One row. `make(**options)` gives what is fitted; `options` replace those of the row."""

    name: str
    make: Callable[..., Any]
    target: str = "hired"
    sensitive: tuple[str, ...] = ("sex",)
    protects: str = "records"
    neighbours: str = "add-remove"
    schema: bool = True
    unit: str | None = None
    most: int = 2  # rows of a person
    weights: bool = False
    rows: int | None = None  # stated in the schema, of columns or of facts alone
    tags: frozenset[str] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def data(self) -> Callable[..., Table]:
        """Makes the table: `data(rows, seed)`."""
        return people

    @property
    def facts(self) -> Schema:
        """The schema of the table, whether or not the row hands it in."""
        return schema_of(
            self.target, self.sensitive, unit=self.unit, most=self.most, rows=self.rows
        )

    @property
    def given(self) -> dict[str, Any]:
        """The row's own parameters."""
        out: dict[str, Any] = {
            "epsilon": EPSILON,
            "delta": DELTA,
            "protects": self.protects,
            "neighbours": self.neighbours,
            "random_state": 0,
        }
        if self.schema:
            out["schema"] = self.facts
        else:
            out |= {} if self.rows is None else {"public_rows": self.rows}
            out |= {} if self.unit is None else {"unit": self.unit, "max_rows_per_unit": self.most}
        return ways.flat(out | dict(self.options))

    def estimator(self, **options: Any) -> Any:
        """What is fitted, with these parameters in place of the row's."""
        return self.make(**ways.flat(self.given | options))

    def arguments(
        self, table: Table | None = None, frame: Callable[[Table], Any] = pd.DataFrame
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """How `fit` is called: with a schema the whole table, without one X, y and groups."""
        table = people() if table is None else table
        extra = {"sample_weight": table["weight"]} if self.weights else {}
        if self.schema:
            return (frame({name: table[name] for name in self.facts.columns}),), extra
        read = [*FEATURES, *([] if self.unit is None else [self.unit])]
        groups = {name: table[name] for name in self.sensitive}
        X = frame({name: table[name] for name in read})
        return (X, table[self.target]), {"sensitive_features": groups, **extra}

    def run(
        self,
        table: Table | None = None,
        frame: Callable[[Table], Any] = pd.DataFrame,
        **options: Any,
    ) -> Any:
        """The whole walk: what was fitted or released."""
        args, kwargs = self.arguments(table, frame)
        return self.estimator(**options).fit(*args, **kwargs)

    @staticmethod
    def statement(result: Any) -> fv.PrivacyStatement:
        """The privacy statement of what `run` gives."""
        return (
            result.privacy if isinstance(result, fv.estimators.ReleasedGroups) else result.privacy_
        )

    def features(self, table: Table, frame: Callable[[Table], Any] = pd.DataFrame) -> Any:
        """X for `predict`."""
        return frame({name: table[name] for name in FEATURES})

    def groups(self, table: Table) -> dict[str, npt.NDArray[Any]]:
        """Sensitive columns, for `predict` of group-aware models and for measures."""
        return {name: table[name] for name in self.sensitive}


@dataclass(frozen=True)
class Release:
    """What is fitted where a function, not an estimator, releases: `fit` calls it."""

    function: Callable[..., Any]
    options: Mapping[str, Any]

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs, **self.options)


def releasing(function: Callable[..., Any], *drop: str, **fixed: Any) -> Callable[..., Release]:
    """Makes a `Release` of the row's parameters, less those that the function has no use for."""

    def make(**options: Any) -> Release:
        return Release(
            function, {name: v for name, v in options.items() if name not in drop} | fixed
        )

    return make


SHORT = fv.PrimalDual(rounds=6)
FEW = fv.GroupObjective(rounds=4)


def rule(X: Any) -> npt.NDArray[Any]:
    """A classifier that was made elsewhere and is public."""
    return np.where(np.asarray(X["age"], float) + np.asarray(X["hours"], float) > 100, "yes", "no")


def other_rule(X: Any) -> npt.NDArray[Any]:
    """Another."""
    return np.where(np.asarray(X["age"], float) > 50, "yes", "no")


def network() -> Any:
    """A small module with fixed weights."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(7)
        return torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))


def with_network(estimator: Callable[..., Any], *args: Any, **fixed: Any) -> Callable[..., Any]:
    """The estimator with that module; torch is imported where a row is made, not here."""
    return lambda **options: estimator(*args, **({"model": network(), **fixed} | options))


def of(estimator: Callable[..., Any], *args: Any, **fixed: Any) -> Callable[..., Any]:
    """The estimator with these arguments."""
    return lambda **options: estimator(*args, **ways.flat(fixed | options))


def searched(**options: Any) -> Any:
    """A search: what is private belongs to it, public facts to the estimator inside."""
    inner = {name: options.pop(name) for name in ("schema",) if name in options}
    base = ways.classifier("demographic_parity:0.1", solver=SHORT, **inner)
    return fv.PrivateSearchCV(
        base, {"solver__clip": [0.5, 2.0]}, **({"way": "all", "scoring": "lagrangian"} | options)
    )


def base() -> Any:
    """What post-processing fits first, with a share of its budget."""
    return fv.FairClassifier(None, solver=fv.PrimalDual(rounds=4))


ALONE: dict[str, Any] = {"protects": "sensitive_features", "neighbours": "replace-one"}
REPLACED: dict[str, Any] = {"neighbours": "replace-one"}
BOTH: dict[str, Any] = {"sensitive": ("sex", "race")}
GRADES: dict[str, Any] = {"target": "grade"}
PAY: dict[str, Any] = {"target": "pay"}
ARRAYS: dict[str, Any] = {"schema": False}

_Classifier = fv.FairClassifier
_Objective = ways.objective


def _rows() -> list[Configuration]:
    R = Configuration
    return [
        # private descent under rate constraints
        R("descent", of(_Classifier, "demographic_parity:0.05", solver=SHORT), rows=ROWS),
        R(
            "descent-weights",
            of(_Classifier, "equalized_odds:0.1", solver=SHORT, max_sample_weight=1.0),
            **REPLACED,
            **ARRAYS,
            weights=True,
        ),
        R(
            "descent-alone-additive",
            of(_Classifier, "equalized_odds:0.1", solver=SHORT, model="additive"),
            **ALONE,
            **BOTH,
        ),
        R(
            "descent-certified",
            of(_Classifier, fv.DemographicParity(0.3, confidence=0.9), solver=SHORT),
        ),
        R(
            "descent-persons",
            of(_Classifier, "demographic_parity:0.05", solver=replace(SHORT, randomised=False)),
            unit="person",
        ),
        R(
            "descent-batches",
            of(
                _Classifier,
                ["demographic_parity:0.1", fv.FalseNegativeRate(0.4)],
                solver=fv.PrimalDual(rounds=6, sampling_rate=0.3),
            ),
            **ARRAYS,
            rows=ROWS,
        ),
        R(
            "descent-grades",
            of(_Classifier, "demographic_parity:0.1", solver=SHORT),
            **GRADES,
            **REPLACED,
            **BOTH,
        ),
        R(
            "descent-network",
            with_network(_Classifier, "demographic_parity:0.1", solver=fv.PrimalDual(rounds=3)),
            **REPLACED,
            tags=frozenset({"network"}),
        ),
        # descent with a penalty
        R("fermi", of(ways.fermi, "equalized_odds", 2.0, solver=SHORT)),
        R(
            "fermi-alone-marginal",
            of(
                ways.fermi,
                fv.EqualOpportunity(None, positive="yes", groups="marginal"),
                2.0,
                solver=SHORT,
            ),
            **ALONE,
            **BOTH,
            **ARRAYS,
        ),
        R(
            "fermi-network-persons",
            with_network(ways.fermi, strength=1.0, solver=fv.PrimalDual(rounds=3)),
            unit="person",
            tags=frozenset({"network"}),
        ),
        # a game of learner and auditor
        R("game", of(ways.game, "equalized_odds:0.1", rounds=3), **REPLACED),
        R(
            "game-weights",
            of(ways.game, "demographic_parity:0.1", rounds=3, oracle="regression"),
            **ARRAYS,
            weights=True,
        ),
        R(
            "game-alone",
            of(ways.game, "demographic_parity:0.1", rounds=3, model="additive"),
            **ALONE,
            **BOTH,
        ),
        # objectives of group losses
        R(
            "objective-oracle-persons",
            of(_Objective, "error", "equalized_odds:0.1", solver=FEW),
            unit="person",
        ),
        R(
            "objective-exponential",
            of(_Objective, "error", "equalized_odds:0.1", "exponential"),
            **REPLACED,
            options={"delta": 0.0},
        ),
        R(
            "objective-frank-wolfe-alone",
            of(_Objective, "hmean", "equalized_odds:0.1", "frank-wolfe", solver=FEW),
            **ALONE,
        ),
        R(
            "objective-weights",
            of(_Objective, "gmean", "demographic_parity:0.1", solver=FEW, model="additive"),
            **BOTH,
            weights=True,
        ),
        R("regressor", of(ways.objective_regression, "error", "largest_group_loss:0.1"), **PAY),
        # budgets by group
        R(
            "tailored-alone",
            of(ways.tailored, solver=fv.Tailored(rounds=4)),
            **ALONE,
            **BOTH,
        ),
        R(
            "tailored-persons",
            of(ways.tailored, "equal", 0.6, solver=fv.Tailored(rounds=4)),
            unit="person",
        ),
        R(
            "tailored-regressor",
            of(ways.tailored_regression, solver=fv.Tailored(rounds=4), target_bounds=(0.0, 10.0)),
            **PAY,
            **REPLACED,
            **ARRAYS,
            rows=ROWS,
        ),
        # decisions changed after the fact
        R(
            "odds-certified",
            lambda **options: ways.post_processor(
                base(), fv.EqualizedOdds(0.3, confidence=0.9), **options
            ),
        ),
        R(
            "odds-decisions",
            lambda **options: ways.post_processor(
                base(),
                "demographic_parity:0.1",
                solver=fv.Thresholds(predict_method="predict"),
                **options,
            ),
            **REPLACED,
            **BOTH,
            tags=frozenset({"aware"}),
        ),
        R(
            "odds-alone",
            lambda **options: ways.post_processor(base(), "equalized_odds:0.1", **options),
            **ALONE,
            tags=frozenset({"aware"}),
        ),
        R(
            "parity-grades",
            lambda **options: ways.post_processor(
                base(), "demographic_parity:0.05", solver=fv.Offsets(rounds=4), **options
            ),
            **GRADES,
            tags=frozenset({"aware"}),
        ),
        # searches
        R("search", searched, rows=ROWS, tags=frozenset({"search"})),
        R("search-replaced", searched, **REPLACED, **ARRAYS, tags=frozenset({"search"})),
    ]


def _releases() -> list[Configuration]:
    R = Configuration
    counts = {"delta": 0.0}
    judged = releasing(
        lambda *args, **options: fv.certify(rule, *args, **options),
        constraints=fv.DemographicParity(0.5),
        confidence=0.9,
    )
    tabled = releasing(lambda *args, **options: fv.private_audit(rule, *args, **options))
    compared = releasing(
        lambda *args, **options: fv.lda(rule, *args, **options),
        candidates={"older": other_rule, "same": rule},
        tolerance=0.1,
    )
    groups = releasing(fv.release_groups, "neighbours")  # the sensitive column alone
    return [
        R("certify", judged, options=counts),
        R("certify-replaced", judged, **REPLACED, **BOTH),
        R("lda", compared, options=counts),
        R("lda-alone", compared, **ALONE, **BOTH, options={"delta": DELTA}),
        R("release-groups", groups, **ALONE, options=counts),
        R("release-groups-persons", groups, **ALONE, unit="person", most=8),
        R("private-table", tabled, options=counts),
        R("private-table-alone", tabled, **ALONE, **BOTH, options={"delta": DELTA}),
    ]


ESTIMATORS: Mapping[str, Configuration] = MappingProxyType({row.name: row for row in _rows()})
RELEASES: Mapping[str, Configuration] = MappingProxyType({row.name: row for row in _releases()})
CONFIGURATIONS: Mapping[str, Configuration] = MappingProxyType({**ESTIMATORS, **RELEASES})
"""All rows by name: `.estimator(**options)` is the maker, `.data(rows, seed)` makes the table,
`.arguments(table)` says how fit is called, and `.run(table, **options)` does all three."""


EXTREMES: tuple[dict[str, Any], ...] = (
    {"age": 90.0, "hours": 100.0, "job": "c", "sex": "f", "race": "z", "hired": "yes"},
    {"age": 17.0, "hours": 0.0, "job": "a", "sex": "m", "race": "x", "hired": "yes"},
    {"age": 90.0, "hours": 0.0, "job": "b", "sex": "m", "race": "z", "hired": "no"},
    {"age": 17.0, "hours": 100.0, "job": "c", "sex": "f", "race": "y", "hired": "no"},
)
_REST: tuple[dict[str, Any], ...] = (
    {"grade": "hi", "pay": 10.0, "weight": 1.0},
    {"grade": "lo", "pay": 0.0, "weight": 1.0},
    {"grade": "mid", "pay": 10.0, "weight": 0.0},
    {"grade": "hi", "pay": 0.0, "weight": 1.0},
)


def neighbour(row: Configuration, table: Table, variant: int, place: int | None = None) -> Table:
    """A table that the row's relation calls a neighbour, with extreme values of one person.

    Under add-remove they come at the end, or at `place`; else they replace whoever is there. With
    a unit a whole person comes, is replaced by another with more rows, or changes groups.
    """
    person = EXTREMES[variant % 4] | _REST[variant % 4]
    rows = len(table["age"])
    if row.protects == "sensitive_features":
        at = np.zeros(rows, bool)
        at[variant % rows if place is None else place] = True
        if row.unit is not None:
            at = table[row.unit] == table[row.unit][at][0]
        out = {name: column.copy() for name, column in table.items()}
        for name in ("sex", "race"):
            others = [value for value in VALUES[name] if value != table[name][at][0]]
            out[name][at] = others[variant % len(others)]
        return out
    if row.unit is not None:
        block = {name: np.array([value] * 5) for name, value in person.items()}
        block["person"] = np.array(["someone"] * 5)
        kept, where = np.ones(rows, bool), rows if place is None else place
        if row.neighbours == "replace-one":
            where = 0 if place is None else place
            kept = table["person"] != table["person"][where]
            where = int(kept[:where].sum())
        table = {name: column[kept] for name, column in table.items()}
    else:
        block = {
            name: np.array([value]) for name, value in (person | {"person": "someone"}).items()
        }
        if row.neighbours == "replace-one":
            where = variant % rows if place is None else place
            table = {name: np.delete(column, where) for name, column in table.items()}
        else:
            where = rows if place is None else place
    return {
        name: np.concatenate([column[:where], block[name].astype(column.dtype), column[where:]])
        if column.dtype.kind != "U"
        else np.concatenate([column[:where], block[name], column[where:]])
        for name, column in table.items()
    }
