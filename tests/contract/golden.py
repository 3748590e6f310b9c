"""Seeded fits of every system, kept as small files: what a change of the code may not change
unnoticed.

Each file has the weights, decisions, report, statement and price of one fit, which uses public
names alone. `test_golden.py` fits again and compares. Where a change means to give other results,
renew the files in a commit of its own, and quote what this prints::

    python tests/contract/golden.py --renew
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

import fairveil as fv
import ways

FILES = Path(__file__).parent / "golden"
SHOWN = 24
"""Of the rows, those whose decisions and laws are kept."""


@dataclass(frozen=True)
class Golden:
    """A seeded fit. `close` is how far numbers may lie from those of the file, relative to the
    largest; 0: weights are equal to the bit."""

    name: str
    make: Callable[[], dict[str, Any]]
    close: float

    @property
    def file(self) -> Path:
        """Where its results are kept."""
        return FILES / f"{self.name}.json"

    def found(self) -> dict[str, Any]:
        """The results of a fit of now."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.make()

    def kept(self) -> dict[str, Any]:
        """The results in the file."""
        kept: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        return kept

    def differences(self, kept: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
        """What two results do not share, in words."""
        return list(_differences(kept, found, self.close))


FITS: dict[str, Golden] = {}


def golden(close: float = 0.0) -> Callable[[Callable[[], dict[str, Any]]], Any]:
    """Adds a function that fits, and returns what is kept, to the list."""

    def added(make: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
        name = make.__name__.replace("_", "-")
        FITS[name] = Golden(name, make, close)
        return make

    return added


LIBRARIES = 1e-7
"""Where a solver of another library (LAPACK, HiGHS, L-BFGS) stands between answers and weights."""
NETWORKS = 1e-3
"""Networks compute in float32 by torch's kernels, which differ between processors."""
CLOSE = 1e-9
"""Laws, reports and statements pass through functions whose last bits differ between processors."""


# ---------------------------------------------------------------------------------------- the rows


@dataclass(frozen=True)
class People:
    """Made-up rows whose numbers are multiples of 1/64: no sum of theirs is rounded. Drawn by the
    generator that NumPy keeps frozen."""

    X: npt.NDArray[np.float64]
    sex: npt.NDArray[np.str_]
    town: npt.NDArray[np.str_]
    job: npt.NDArray[np.str_]
    label: npt.NDArray[np.str_]
    grade: npt.NDArray[np.int64]
    money: npt.NDArray[np.float64]
    person: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]

    @classmethod
    def draw(cls, rows: int = 360, seed: int = 0) -> People:
        """So many rows. Sex moves the first number, and the label hangs on all three."""
        rng = np.random.RandomState(seed)
        sex = np.array(["f", "m"])[rng.randint(2, size=rows)]
        town = np.array(["east", "west", "north"])[rng.randint(3, size=rows)]
        job = np.array(["clerk", "smith", "cook"])[rng.randint(3, size=rows)]
        X = rng.randint(-64, 65, size=(rows, 3)) / 64
        X[:, 0] = np.clip(X[:, 0] + np.where(sex == "m", 0.375, -0.25), -1, 1)
        score = X @ [1.0, 0.75, -0.5] + rng.randint(-32, 33, size=rows) / 64
        return cls(
            X=X,
            sex=sex,
            town=town,
            job=job,
            label=np.where(score > 0, "yes", "no"),
            grade=np.digitize(score, [-0.5, 0.5]),
            money=np.clip(2 * score + 0.5 * (sex == "f"), -4, 4),
            person=rng.randint(rows // 3, size=rows),
            weight=rng.randint(1, 5, size=rows) / 2,
        )

    def table(self) -> dict[str, Any]:
        """Named columns, as `schema()` describes them."""
        numbers = {f"x{j}": self.X[:, j] for j in range(3)}
        return {**numbers, "job": self.job, "sex": self.sex, "town": self.town}


ROWS = People.draw()


def schema(
    target: str | None = "label", sensitive: Any = ("sex",), values: Any = None, **more: Any
) -> Any:
    """What is public of the columns."""
    label = values or fv.data.Category(("no", "yes"))
    columns: dict[str, Any] = {f"x{j}": fv.data.Number(-1, 1) for j in range(3)}
    columns["job"] = fv.data.Category(("clerk", "smith", "cook"))
    columns["sex"] = fv.data.Category(("f", "m"))
    columns["town"] = fv.data.Category(("east", "west", "north"))
    if target:
        columns[target] = label
    return fv.data.Schema(
        {**columns, **more.pop("columns", {})}, target=target, sensitive=sensitive, **more
    )


MONEY = schema("money", values=fv.data.Number(-4, 4), rows=360)
SEEDED: dict[str, Any] = {"epsilon": 2.0, "random_state": 0}
SENSITIVE: dict[str, Any] = {"protects": "sensitive_features"}
REPLACED: dict[str, Any] = {"protects": "records:replace-one"}


# ------------------------------------------------------------------------------- what is kept of it


def hexed(values: Any) -> list[str]:
    """Numbers to the bit."""
    return [float(value).hex() for value in np.asarray(values, float).ravel()]


def decided(model: Any, X: Any, y: Any, groups: Any, **of: Any) -> dict[str, Any]:
    """Of a fitted estimator: weights, decisions, laws, report, statement, error and gap."""
    named = {"sensitive_features": groups} if of.get("aware", False) else {}
    regression = not hasattr(model, "classes_")
    if regression:
        predicted = np.asarray(model.predict(X, **named), float)
        squares = (predicted - np.asarray(y, float)) ** 2
        means = [squares[groups == group].mean() for group in np.unique(groups)]
        error, gap = squares.mean(), max(means) - min(means)
    else:
        drawn = _drawn(model, X, named)
        error = np.mean(drawn != np.asarray(y))
        gap = fv.demographic_parity_gap(None, drawn, groups)
    kept: dict[str, Any] = {"error": round(float(error), 4), "gap": round(float(gap), 4)}
    if hasattr(model, "coef_"):
        kept["weights"] = hexed(model.coef_) + hexed(model.intercept_)
    elif of.get("weights") is not None:
        kept["weights"] = hexed(of["weights"](model))
    if regression:
        kept["predictions"] = [float(value) for value in predicted[:SHOWN]]
    else:
        places = {value: place for place, value in enumerate(model.classes_)}
        kept["decisions"] = "".join(str(places[value]) for value in drawn.tolist())
        kept["law"] = np.asarray(model.predict_proba(X, **named))[:SHOWN, -1].tolist()
    return {**kept, **_reported(model), **stated(model.privacy_)}


def _drawn(model: Any, X: Any, named: dict[str, Any]) -> Any:
    try:
        return np.asarray(model.predict(X, random_state=0, **named))
    except TypeError:  # its decisions are not drawn
        return np.asarray(model.predict(X, **named))


def _reported(model: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name in ("constraint_report_", "guarantee_", "gap_report_", "tailoring_", "certain_"):
        told = getattr(model, name, None)
        if told is not None and hasattr(told, "to_dict"):
            kept[name] = leaves(told.to_dict())
    if getattr(model, "certificate_", None) is not None:
        kept["certificate"] = leaves(model.certificate_.to_dict()["results"]["bounds"])
    return kept


def leaves(tree: Any) -> list[Any]:
    """Numbers, verdicts and truths of nested results, in their order; no prose."""
    if isinstance(tree, Mapping):
        told = [v for k, v in tree.items() if isinstance(v, str) and k.endswith("verdict")]
        within = [v for v in tree.values() if not isinstance(v, str)]
        return told + [leaf for value in within for leaf in leaves(value)]
    if isinstance(tree, list | tuple):
        return [leaf for value in tree if not isinstance(value, str) for leaf in leaves(value)]
    return [tree]


def stated(statement: Any) -> dict[str, Any]:
    """What a statement says of cost, and what its plan costs."""
    content = json.loads(statement.to_json())
    priced = statement.events if statement.plan is None else statement.plan
    return {
        "epsilon": statement.epsilon,
        "delta": statement.delta,
        "neighbours": statement.neighbours,
        "stamps": sorted(content["stamps"]),
        "events": short(content["events"]["event"]),
        "sensitivities": [[bound["norm"], bound["sensitivity"]] for bound in content["bounds"]],
        "price": _price(priced, statement),
    }


def _price(events: Any, statement: Any) -> float | None:
    try:
        return float(fv.privacy.epsilon(events, statement.delta, statement.neighbours))
    except (ValueError, TypeError):  # of stages, or of one curve for several
        return None


def short(event: Any) -> Any:
    """An event as nested lists without names: ["gaussian", multiplier], ["composed", ...]."""
    if isinstance(event, Mapping):
        return [short(value) for value in event.values()]
    if isinstance(event, list):
        return [short(value) for value in event]
    return event


def _differences(kept: Any, found: Any, close: float, of: str = "") -> Iterator[str]:
    if isinstance(kept, Mapping) and isinstance(found, Mapping):
        for name in sorted(set(kept) ^ set(found)):
            yield f"{of}{name}: only in the {'file' if name in kept else 'fit'}"
        for name in sorted(set(kept) & set(found)):
            if name not in ("error", "gap"):  # they follow from the decisions
                yield from _differences(kept[name], found[name], close, f"{of}{name}")
    elif isinstance(kept, list) and isinstance(found, list):
        if len(kept) != len(found):
            yield f"{of}: {len(kept)} entries in the file, {len(found)} in the fit"
        for place, (one, other) in enumerate(zip(kept, found, strict=False)):
            yield from _differences(one, other, close, f"{of}[{place}]")
    elif of.startswith("weights"):
        one, other = float.fromhex(kept), float.fromhex(found)
        if one != other and abs(one - other) > close * max(1.0, abs(one)):
            yield f"{of}: {one!r} in the file, {other!r} in the fit"
    elif isinstance(kept, float) and isinstance(found, float | int):
        if abs(kept - found) > max(CLOSE, close) * max(1.0, abs(kept)):
            yield f"{of}: {kept!r} in the file, {found!r} in the fit"
    elif kept != found:
        yield f"{of}: {kept!r} in the file, {found!r} in the fit"


# ------------------------------------------------------------------------- rate constraints (RaCO-DP)


def rated(constraints: Any = "demographic_parity:0.1", **options: Any) -> Any:
    """A short descent under constraints of rates."""
    settings: dict[str, Any] = {"rounds": 12, **options.pop("settings", {})}
    options = {**SEEDED, "solver": fv.PrimalDual(**settings), **options}
    return ways.classifier(constraints, **options)


def of_arrays(model: Any, y: Any = None, groups: Any = None, **named: Any) -> dict[str, Any]:
    """Fitted to the array of numbers, and what is kept."""
    y, groups = (ROWS.label if y is None else y), (ROWS.sex if groups is None else groups)
    aware = named.pop("aware", False)
    weights = named.pop("weights", None)
    model.fit(ROWS.X, y, sensitive_features=groups, **named)
    return decided(model, ROWS.X, y, ROWS.sex, aware=aware, weights=weights)


def of_table(model: Any, y: Any = None, groups: Any = None, **named: Any) -> dict[str, Any]:
    """Fitted to named columns, and what is kept, with the price that a plan foretells."""
    y, table = (ROWS.label if y is None else y), ROWS.table()
    aware = named.pop("aware", False)
    model.fit(table, y, sensitive_features=groups, **named)
    return decided(model, table, y, ROWS.sex, aware=aware)


@golden()
def rates_records() -> dict[str, Any]:
    return of_arrays(rated(unsafe_data_dependent_bounds=True))


@golden()
def rates_replaced() -> dict[str, Any]:
    return of_table(rated("equalized_odds:0.1", schema=schema(rows=360), **REPLACED))


@golden()
def rates_sensitive() -> dict[str, Any]:
    return of_table(rated(schema=schema(), **SENSITIVE))


@golden()
def rates_weighted() -> dict[str, Any]:
    model = rated(schema=schema(), max_sample_weight=1.5)
    return of_table(model, sample_weight=ROWS.weight)


@golden()
def rates_weighted_replaced() -> dict[str, Any]:
    model = rated("error_rate_parity:0.1", schema=schema(), max_sample_weight=1.5, **REPLACED)
    return of_table(model, sample_weight=ROWS.weight)


@golden()
def rates_visible_batches() -> dict[str, Any]:
    model = rated(schema=schema(rows=360), settings={"sampling_rate": 0.25}, **SENSITIVE)
    return of_table(model)


def of_persons(model: Any) -> dict[str, Any]:
    """Fitted to named columns of which one tells persons apart, and what is kept."""
    table = {**ROWS.table(), "person": ROWS.person}
    return decided(model.fit(table, ROWS.label), table, ROWS.label, ROWS.sex)


def person_schema() -> Any:
    """The same columns, and at most two rows a person."""
    columns = {"person": fv.data.Ignored()}
    return schema(columns=columns, unit="person", max_rows_per_unit=2, rows=360)


@golden()
def rates_persons() -> dict[str, Any]:
    return of_persons(rated(schema=person_schema(), epsilon=3.0))


@golden()
def rates_two_columns() -> dict[str, Any]:
    model = rated("demographic_parity:0.15", schema=schema(sensitive=("sex", "town")))
    return of_table(model)


@golden()
def rates_marginal() -> dict[str, Any]:
    notion = fv.DemographicParity(0.15, groups="marginal")
    return of_table(rated(notion, schema=schema(sensitive=("sex", "town")), **REPLACED))


@golden()
def rates_marginal_sensitive() -> dict[str, Any]:
    notions = [
        fv.EqualizedOdds(0.15, groups="marginal"),
        fv.DemographicParity(0.1, groups="marginal"),
    ]
    return of_table(rated(notions, schema=schema(sensitive=("sex", "town")), **SENSITIVE))


@golden()
def rates_additive() -> dict[str, Any]:
    model = rated(schema=schema(), model=fv.Additive(bins=4, interactions=(("x0", "x1"),)))
    return of_table(model)


@golden()
def rates_three_classes() -> dict[str, Any]:
    grade = fv.data.Category((0, 1, 2))
    return of_table(rated(schema=schema("grade", values=grade), epsilon=4.0), ROWS.grade)


@golden()
def rates_sampled() -> dict[str, Any]:
    return of_table(rated(schema=schema(rows=360), settings={"sampling_rate": 0.25}))


@golden()
def rates_sampled_replaced() -> dict[str, Any]:
    settings = {"sampling_rate": 0.25, "clip": 0.7, "temperature": 0.5}
    return of_table(rated(schema=schema(rows=360), settings=settings, **REPLACED))


@golden()
def rates_several_notions() -> dict[str, Any]:
    notions = [
        fv.SelectionRateRatio(0.8, positive="yes"),
        fv.FalseNegativeRate(0.3, group="f", positive="yes"),
        fv.FalsePositiveRateParity(0.1, positive="yes", compare="rest"),
    ]
    return of_table(rated(notions, schema=schema()))


@golden()
def rates_unconstrained() -> dict[str, Any]:
    model = rated(None, schema=schema(), sensitive_as_feature=True, settings={"rounds": 20})
    return of_table(model)


@golden()
def rates_certified() -> dict[str, Any]:
    notion = fv.DemographicParity(0.6, confidence=0.9)
    model = rated(notion, schema=schema(rows=360), certify=fv.SetAside(share=0.4))
    return of_table(model)


# ----------------------------------------------------------------------- a penalty on ERMI (DP-FERMI)


def penalised(notion: str = "demographic_parity", **options: Any) -> Any:
    """A short descent with a penalty."""
    model, rounds = options.pop("model", None), options.pop("rounds", 12)
    options = {**SEEDED, "solver": fv.PrimalDual(rounds=rounds), **options}
    return ways.fermi(notion, 3.0, model, **options)


@golden()
def fermi_records() -> dict[str, Any]:
    return of_table(penalised(schema=schema()))


@golden()
def fermi_sensitive() -> dict[str, Any]:
    return of_table(penalised("equalized_odds", schema=schema(rows=360), **SENSITIVE))


@golden()
def fermi_replaced() -> dict[str, Any]:
    grade = fv.data.Category((0, 1, 2))
    model = penalised("equalized_odds", schema=schema("grade", values=grade), **REPLACED)
    return of_table(model, ROWS.grade)


def network() -> Any:
    """Two layers, the same at every call."""
    import torch

    torch.set_num_threads(1)  # several would add in any order
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    with torch.no_grad():
        for place, values in enumerate(net.parameters()):
            steps = torch.arange(values.numel(), dtype=values.dtype).reshape(values.shape)
            values.copy_(((steps * 5 + place) % 7 - 3) / 8)
    return net


@golden(NETWORKS)
def fermi_network() -> dict[str, Any]:
    model = penalised(model=network(), rounds=6, unsafe_data_dependent_bounds=True)
    return of_arrays(model)


@golden(NETWORKS)
def rates_network() -> dict[str, Any]:
    model = rated(model=network(), settings={"rounds": 6}, unsafe_data_dependent_bounds=True)
    return of_arrays(model)


# ------------------------------------------------------------------------ games (Jagielski et al.)


def game(constraints: Any = "equalized_odds:0.1", **options: Any) -> Any:
    """A short game of a learner and an auditor."""
    return ways.game(constraints, **{**SEEDED, "rounds": 15, **options})


@golden(LIBRARIES)
def game_records() -> dict[str, Any]:
    return of_table(game(schema=schema(rows=360), oracle="regression"))


@golden(LIBRARIES)
def game_replaced() -> dict[str, Any]:
    model = game("demographic_parity:0.1", schema=schema(rows=360), dual_bound=3.0, **REPLACED)
    return of_table(model)


@golden(LIBRARIES)
def game_weighted_replaced() -> dict[str, Any]:
    options = {"schema": schema(rows=360), "max_sample_weight": 1.5, "oracle": "regression"}
    return of_table(game(**options, **REPLACED), sample_weight=ROWS.weight)


@golden(LIBRARIES)
def game_persons() -> dict[str, Any]:
    return of_persons(game(schema=person_schema(), **REPLACED))


@golden(LIBRARIES)
def game_sensitive_descent() -> dict[str, Any]:
    return of_table(game(schema=schema(), oracle="descent", **SENSITIVE))


@golden(LIBRARIES)
def game_thresholds() -> dict[str, Any]:
    model = game(schema=schema(), oracle="exponential", epsilon=4.0, **SENSITIVE)
    return of_table(model)


@golden(LIBRARIES)
def game_labellings() -> dict[str, Any]:
    solver = fv.OracleGame(group_aware=True)
    model = game(
        "false_positive_rate_parity:0.1",
        schema=schema(),
        oracle="labellings",
        solver=solver,
        **SENSITIVE,
    )
    return of_table(model, aware=True)


# ------------------------------------------------------------------------ group objectives (Alabi)


def objective(*given: Any, **options: Any) -> Any:
    """A search for a mixture, or a choice."""
    return ways.objective(*given, **{**SEEDED, **options})


def candidates() -> list[Any]:
    """Three classifiers that were made from other rows."""
    other = People.draw(seed=1)
    weights = ([1.0, 0.75, -0.5], [0.0, 1.0, -1.0], [1.0, 1.0, 1.0])
    made = [LogisticRegression(max_iter=3).fit(other.X, other.label) for _ in weights]
    for model, coefficients in zip(made, weights, strict=True):
        model.coef_, model.intercept_ = np.array([coefficients]), np.array([0.125])
    return made


@golden(LIBRARIES)
def objective_responses() -> dict[str, Any]:
    solver = fv.GroupObjective(oracle="responses", rounds=10)
    model = objective("gmean", "equalized_odds:0.1", schema=schema(), solver=solver, **SENSITIVE)
    return of_table(model)


@golden(LIBRARIES)
def objective_regression() -> dict[str, Any]:
    solver = fv.GroupObjective(oracle="regression", rounds=10)
    model = objective("error", "demographic_parity:0.1", schema=schema(rows=360), solver=solver)
    return of_table(model)


@golden(LIBRARIES)
def objective_frank_wolfe() -> dict[str, Any]:
    solver = fv.GroupObjective(rounds=10)
    given = ("gmean", "equalized_odds:0.1", "frank-wolfe")
    return of_table(objective(*given, schema=schema(rows=360), solver=solver, **REPLACED))


@golden(LIBRARIES)
def objective_weighted() -> dict[str, Any]:
    options = {"solver": fv.GroupObjective(rounds=6), "max_sample_weight": 1.5}
    model = objective("gmean", "demographic_parity:0.1", schema=schema(rows=360), **options)
    return of_table(model, sample_weight=ROWS.weight)


@golden(LIBRARIES)
def objective_descent() -> dict[str, Any]:
    solver = fv.GroupObjective(oracle="descent", rounds=6)
    model = objective("mean_group_loss", None, schema=schema(rows=360), solver=solver)
    return of_table(model)


@golden()
def objective_exponential() -> dict[str, Any]:
    model = objective(
        "error",
        None,
        "exponential",
        candidates(),
        delta=0.0,
        public_rows=360,
        unsafe_data_dependent_bounds=True,
        **REPLACED,
    )
    return of_arrays(model)


@golden(LIBRARIES)
def objective_moments() -> dict[str, Any]:
    model = ways.objective_regression("largest_group_loss", schema=MONEY, **SEEDED)
    return of_table(model, ROWS.money)


@golden(LIBRARIES)
def objective_moments_replaced() -> dict[str, Any]:
    model = ways.objective_regression("mean_group_loss", schema=MONEY, **SEEDED, **REPLACED)
    return of_table(model, ROWS.money)


# -------------------------------------------------------------- a budget by group (Alabi and Wiggins)


def tailored(allocation: Any = "least-noise", bound: Any = None, **options: Any) -> Any:
    """A short descent by groups."""
    solver = fv.Tailored(rounds=8)
    return ways.tailored(allocation, bound, **{**SEEDED, "solver": solver, **options})


@golden()
def tailored_records() -> dict[str, Any]:
    return of_table(tailored(schema=schema(rows=360)))


@golden()
def tailored_sensitive() -> dict[str, Any]:
    return of_table(tailored("equal", schema=schema(), **SENSITIVE))


@golden()
def tailored_bounded() -> dict[str, Any]:
    model = tailored("equal", 0.5, schema=schema(rows=360), **REPLACED)
    return of_table(model)


@golden()
def tailored_persons() -> dict[str, Any]:
    return of_persons(tailored(schema=person_schema(), **REPLACED))


@golden()
def tailored_persons_bounded() -> dict[str, Any]:
    return of_persons(tailored("equal", 0.6, schema=person_schema()))


@golden(LIBRARIES)
def tailored_moments_sensitive() -> dict[str, Any]:
    model = ways.tailored_regression(
        "equal", schema=MONEY, solver=fv.Tailored(by="moments"), **SEEDED, **SENSITIVE
    )
    return of_table(model, ROWS.money)


@golden(LIBRARIES)
def tailored_moments() -> dict[str, Any]:
    model = ways.tailored_regression(
        "standard-error",
        schema=MONEY,
        solver=fv.Tailored(by="moments"),
        **SEEDED,
    )
    return of_table(model, ROWS.money)


@golden()
def tailored_regressor() -> dict[str, Any]:
    model = ways.tailored_regression(
        {"f": 0.5, "m": 0.5},
        schema=MONEY,
        solver=fv.Tailored(rounds=8, clip=1.5),
        **SEEDED,
        **REPLACED,
    )
    return of_table(model, ROWS.money)


# ------------------------------------------------------------- post-processing, releases, certificates


@golden(LIBRARIES)
def odds_decisions() -> dict[str, Any]:
    model = ways.post_processor(
        candidates()[0],
        "equalized_odds:0.1",
        public_base=True,
        solver=fv.Thresholds(predict_method="predict"),
        **SEEDED,
        **SENSITIVE,
    )
    return of_arrays(model, aware=True, weights=lambda fitted: fitted.mixing_)


@golden(LIBRARIES)
def odds_scores() -> dict[str, Any]:
    model = ways.post_processor(
        candidates()[0],
        "demographic_parity:0.1",
        public_base=True,
        solver=fv.Thresholds(bins=4, predict_method="predict_proba"),
        **SEEDED,
        **REPLACED,
    )
    return of_arrays(model, aware=True, weights=lambda fitted: fitted.mixing_)


@golden(LIBRARIES)
def odds_persons() -> dict[str, Any]:
    import pandas as pd

    table = pd.DataFrame(ROWS.X, columns=[f"x{j}" for j in range(3)])
    base = candidates()[0]
    base.feature_names_in_ = np.array(table.columns, dtype=object)
    model = ways.post_processor(
        base,
        "equalized_odds:0.1",
        public_base=True,
        solver=fv.Thresholds(predict_method="predict"),
        unit="person",
        max_rows_per_unit=2,
        **SEEDED,
        **REPLACED,
    )
    table = table.assign(person=ROWS.person)
    model.fit(table, ROWS.label, sensitive_features=ROWS.sex)
    weights = {"weights": lambda fitted: fitted.mixing_}
    return decided(model, table, ROWS.label, ROWS.sex, aware=True, **weights)


@golden(LIBRARIES)
def odds_two_steps() -> dict[str, Any]:
    base = rated(None, epsilon=1.0, delta=5e-7, schema=schema(rows=360))
    model = ways.post_processor(base, "equalized_odds:0.1", schema=schema(rows=360), **SEEDED)
    return of_table(model, aware=True)


@golden(LIBRARIES)
def parity_grades() -> dict[str, Any]:
    base = LogisticRegression(max_iter=3).fit(ROWS.X, ROWS.grade)
    base.coef_ = np.array([[-1.0, -0.5, 0.5], [0.0, 0.25, 0.0], [1.0, 0.5, -0.5]])
    base.intercept_ = np.array([0.0, 0.125, 0.0])
    model = ways.post_processor(base, "demographic_parity:0.1", public_base=True, **SEEDED)
    model.fit(ROWS.X, sensitive_features=ROWS.sex)
    return decided(model, ROWS.X, ROWS.grade, ROWS.sex, aware=True, weights=lambda m: m.offsets_)


@golden(LIBRARIES)
def groups_released() -> dict[str, Any]:
    released = fv.release_groups(
        ROWS.X, ROWS.label, sensitive_features=ROWS.sex, clusters=4, **SEEDED
    )
    model = fv.FairClassifier("demographic_parity:0.1", protects="sensitive_features")
    model.fit(ROWS.X, ROWS.label, sensitive_features=released)
    kept = decided(model, ROWS.X, ROWS.label, ROWS.sex)
    return {**kept, "memberships": released.memberships(ROWS.X, ROWS.label)[:6].ravel().tolist()}


@golden()
def certificate() -> dict[str, Any]:
    notions = [fv.DemographicParity(0.3), fv.SelectionRateRatio(0.5, positive="yes")]
    found = fv.certify(
        candidates()[0],
        ROWS.X,
        ROWS.label,
        sensitive_features=ROWS.sex,
        constraints=notions,
        confidence=0.9,
        **SEEDED,
    )
    return certified(found)


@golden()
def certificate_of_persons() -> dict[str, Any]:
    found = fv.certify(
        candidates()[0],
        ROWS.X,
        ROWS.label,
        sensitive_features={"sex": ROWS.sex, "town": ROWS.town},
        constraints=fv.EqualizedOdds(0.4, groups="marginal"),
        unit=ROWS.person,
        max_rows_per_unit=1,
        **SEEDED,
        **REPLACED,
    )
    return certified(found)


def noise(law: dict[str, Any]) -> list[Any]:
    """Kind and scale."""
    return leaves({"kind": law["kind"], "scale": law["scale"]})


def certified(found: Any) -> dict[str, Any]:
    """What is kept of a certificate."""
    content = json.loads(found.to_json())
    counted = content["counted"]
    told = {"counts": leaves(counted["counts"]["values"]), "noise": noise(counted["noise"])}
    told["bounds"] = leaves(content["results"]["bounds"])
    return {**told, "certified": found.certified, **stated(found.privacy_)}


@golden()
def table_of_rates() -> dict[str, Any]:
    found = fv.private_audit(
        ROWS.X[:, 0] > 0,
        None,
        ROWS.label == "yes",
        sensitive_features={"sex": ROWS.sex, "town": ROWS.town},
        **SEEDED,
    )
    content = json.loads(found.to_json())
    counted = content["counted"]
    told = {"counts": leaves(counted["counts"]["values"]), "noise": noise(counted["noise"])}
    gaps = leaves(content["results"]["gaps"])
    return {**told, "gaps": gaps, **stated(found.privacy_)}


@golden()
def search_all() -> dict[str, Any]:
    search = fv.PrivateSearchCV(
        rated(None, schema=schema(rows=360)),
        {"solver__clip": [0.5, 2.0]},
        way="all",
        n_iter=2,
        holdout=0.3,
        **SEEDED,
    )
    table = ROWS.table()
    search.fit(table, ROWS.label)
    model = search.best_estimator_
    kept = decided(model, table, ROWS.label, ROWS.sex)
    scores = [float(score) for score in search.cv_results_["mean_test_score"]]
    return {**kept, "best": search.best_params_, "scores": scores}


@golden()
def search_selection() -> dict[str, Any]:
    search = fv.PrivateSearchCV(
        rated(None, schema=schema(rows=360)),
        {"solver__clip": [0.5, 1.0, 2.0]},
        way="selection",
        runs=3.0,
        holdout=0.3,
        **{**SEEDED, "epsilon": 6.0},
    )
    table = ROWS.table()
    search.fit(table, ROWS.label)
    kept = decided(search.best_estimator_, table, ROWS.label, ROWS.sex)
    return {**kept, "best": search.best_params_}


@golden()
def frontier_side_by_side() -> dict[str, Any]:
    """Four models in one pass over the rows."""
    found = fv.frontier(
        ROWS.table(),
        ROWS.label,
        gaps=(0.3, 0.1),
        epsilons=(2.0,),
        seeds=[0, 1],
        estimator=rated(None, schema=schema(rows=360)),
        progress=False,
    )
    weights = [hexed(model.coef_) + hexed(model.intercept_) for model in found.models.values()]
    return {"weights": weights, **stated(found.privacy)}


@golden()
def budget_of_two_fits() -> dict[str, Any]:
    """Two fits under a ledger, whose lines and balance are kept."""
    book = fv.Ledger.create(None, "people", epsilon=5.0, delta=1e-5)
    model = rated(None, schema=schema(), ledger=book, epsilon=1.0)
    kept = of_table(model)
    fv.certify(
        candidates()[0],
        ROWS.X,
        ROWS.label,
        sensitive_features=ROWS.sex,
        constraints=fv.DemographicParity(0.3),
        ledger=book,
        **SEEDED,
    )
    balance = book.balance()
    shares = [balance.spent_share, balance.left_share, balance.leaked_share]
    return {**kept, "balance": [balance.committed, balance.spent, balance.left, *shares]}


def main() -> int:
    """Compares, or renews, and prints error and gap before and after."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--renew", action="store_true", help="write the files anew")
    parser.add_argument("--only", default="", metavar="PART", help="fits whose name has this part")
    asked = parser.parse_args()
    changed = 0
    print(f"{'fit':28}{'error':>8}{'now':>8}{'gap':>8}{'now':>8}  changed")
    for name, fit in FITS.items():
        if asked.only in name:
            found = json.loads(json.dumps(fit.found()))
            kept = fit.kept() if fit.file.exists() else {}
            changes = fit.differences(kept, found)
            changed += bool(changes)
            numbers = [of.get(key) for key in ("error", "gap") for of in (kept, found)]
            shown = "".join(f"{'-' if value is None else value:>8}" for value in numbers)
            print(f"{name:28}{shown}  {len(changes) if changes else ''}", flush=True)
            if changes and asked.renew:
                fit.file.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    if asked.renew:
        for file in set(FILES.glob("*.json")) - {fit.file for fit in FITS.values()}:
            file.unlink()
    return int(changed > 0 and not asked.renew)


if __name__ == "__main__":
    sys.exit(main())
