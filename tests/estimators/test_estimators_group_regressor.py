"""`GroupObjectiveRegressor`: numeric targets and their bounds, fits of every kind, reports, files,
errors."""

from __future__ import annotations

import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairveil as fv
import ways
from covering import pairs
from fairveil.core import cost as accounting
from fairveil.data import encode
from fairveil.errors import ConstraintNotMet, InputError, PrivacyError, UnstatedBounds
from fairveil.facts import Category, Number, RowBlock, RowLayout, Schema
from fairveil.fairness import objectives
from knobs import made

INF = math.inf
ROWS = 3000
RELATIONS = [{}, {"neighbours": "replace-one"}, {"protects": "sensitive_features"}]
BOUNDS = {"target_bounds": (-10.0, 30.0)}
LARGEST = "largest_group_loss"


def people(rows: int = ROWS, seed: int = 0) -> dict[str, Any]:
    """Numbers in [0, 100] and [-1, 1], a word, a group, and a target of about 10 +- 4; the smaller
    group's line is steeper."""
    rng = np.random.default_rng(seed)
    sex = np.array(["f", "m"])[(rng.random(rows) < 0.75).astype(int)]
    age, skill = rng.uniform(0, 100, rows), rng.uniform(-1, 1, rows)
    job = np.array(["clerk", "smith"])[rng.integers(2, size=rows)]
    pay = (
        10
        + 0.03 * (age - 50)
        + np.where(sex == "f", 6.0, 2.0) * skill
        + 2.0 * (job == "smith")
        + rng.normal(size=rows)
    )
    return {"age": age, "skill": skill, "job": job, "sex": sex, "pay": pay}


TABLE = people()
SCHEMA = Schema(
    {
        "age": Number(0, 100),
        "skill": Number(-1, 1),
        "job": Category(("clerk", "smith")),
        "sex": Category(("f", "m")),
        "pay": Number(-10, 30),
    },
    target="pay",
    sensitive=["sex"],
)
X = np.column_stack([TABLE["age"] / 50 - 1, TABLE["skill"]])
Y, SEX = TABLE["pay"], TABLE["sex"]


def regressor(
    objective: Any = "error", constraint: Any = None, **options: Any
) -> ways.objective_regression:
    return made(
        ways.objective_regression,
        objective,
        constraint,
        **{"epsilon": 2.0, "random_state": 0, **options},
    )


def losses(reg: Any, X: Any = X) -> dict[str, float]:
    errors = (reg.predict(X) - Y) ** 2
    return {key: float(errors[key == SEX].mean()) for key in ("f", "m")}


def quietly(reg: Any, *given: Any, **named: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        return reg.fit(*given, **named)


# -- fits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "objective", "by_schema"),
    pairs(
        RELATIONS, ["error", LARGEST, objectives.WeightedError(groups={"f": 3.0})], [False, True]
    ),
)
def test_guarantee_2_every_fit_keeps_its_promise(
    objective: Any, relation: Any, by_schema: bool
) -> None:
    options = {"schema": SCHEMA} if by_schema else BOUNDS
    reg = regressor(objective, **options, **relation)
    reg = reg.fit(TABLE) if by_schema else reg.fit(X, Y, sensitive_features=SEX)
    statement = reg.privacy_
    assert statement.check() == []
    assert (
        statement.epsilon == accounting.epsilon(statement.events, 1e-6, statement.neighbours) <= 2.0
    )
    free = relation.get("protects") == "sensitive_features" and objective == "error"
    assert statement.epsilon == 0.0 if free else statement.epsilon > 1.99
    assert statement.from_json(statement.to_json()) == statement
    assert reg.groups_ == ("f", "m")
    given = TABLE if by_schema else X
    assert reg.score(given, Y) > 0.45
    names = {"age", "skill", "job=clerk", "job=smith"} if by_schema else {"x0", "x1"}
    assert set(reg.coef_names_) == names


def test_without_privacy_the_error_is_least_squares() -> None:
    reg = regressor(epsilon=INF).fit(X, Y)
    exact = LinearRegression().fit(X, Y)
    assert np.allclose(reg.coef_, exact.coef_)
    assert reg.intercept_ == pytest.approx(exact.intercept_)
    assert reg.score(X, Y) == pytest.approx(exact.score(X, Y))
    assert reg.objective_ == pytest.approx(np.mean((exact.predict(X) - Y) ** 2))
    assert "not-private" in reg.privacy_.stamps


@pytest.mark.parametrize("relation", [{"epsilon": INF}, *RELATIONS], ids=str)
def test_the_largest_group_loss_is_below_that_of_least_squares(relation: Any) -> None:
    plain = losses(regressor(epsilon=INF).fit(X, Y))
    reg = regressor(LARGEST, **BOUNDS, **relation).fit(X, Y, sensitive_features=SEX)
    found = losses(reg)
    assert max(found.values()) < 0.85 * max(plain.values())
    if relation.get("epsilon") == INF:
        assert max(found.values()) == pytest.approx(reg.objective_)
        assert reg.outcome_.losses == pytest.approx([found["f"], found["m"]])


@pytest.mark.parametrize(
    "relation",
    [{"epsilon": INF}, {"epsilon": 8.0}, {"epsilon": 8.0, "protects": "sensitive_features"}],
    ids=str,
)
def test_a_bounded_group_loss_is_kept_and_reported_in_the_units_of_y(relation: Any) -> None:
    reg = quietly(
        regressor("error", fv.BoundedGroupLoss(4.0, "squared"), **BOUNDS, **relation),
        X,
        Y,
        sensitive_features=SEX,
    )
    lines = reg.constraint_report_.lines
    assert [line.target for line in lines] == [
        "mean loss of group f <= 4",
        "mean loss of group m <= 4",
    ]
    assert [line.bound for line in lines] == [4.0, 4.0]
    found = losses(reg)
    exact = relation["epsilon"] == INF
    for line, true in zip(lines, found.values(), strict=True):
        assert line.value == pytest.approx(true, abs=1e-6 if exact else 1.0)
    assert max(found.values()) <= 4.0 * (1.001 if exact else 1.2)
    plain = losses(regressor(epsilon=INF).fit(X, Y))
    assert max(plain.values()) > 4.5
    assert reg.outcome_.gap < 0.01


@pytest.mark.parametrize(
    "constraint",
    [fv.BoundedGroupLoss(0.5, "squared"), f"{LARGEST}:0.5", ["gini:0.001", f"{LARGEST}:0.5"]],
    ids=str,
)
def test_a_constraint_out_of_reach_is_said_to_be(constraint: Any) -> None:
    with pytest.warns(ConstraintNotMet, match="not met"):
        reg = regressor("error", constraint, epsilon=INF).fit(X, Y, sensitive_features=SEX)
    assert not reg.constraint_report_.met
    assert "not met" in str(reg.constraint_report_)
    assert "Values of the model's predictions in training" in str(reg.constraint_report_)
    assert "decisions" not in str(reg.constraint_report_)


def test_numbers_in_dollars_without_bounds_are_said_to_be_too_large() -> None:
    given = {"X": X * 5e4, "y": Y, "sensitive_features": SEX}
    reg = regressor(LARGEST, **BOUNDS).fit(**given)
    assert reg.coef_.tolist() == [0.0, 0.0]
    said = str(reg.constraint_report_)
    assert "schema=" in said
    assert "clipped" in said
    assert "number of rows" not in said
    public = regressor(LARGEST, **BOUNDS, protects="sensitive_features").fit(**given)
    assert abs(public.coef_).min() > 0.0


def test_a_penalty_that_is_too_small_is_seen_in_the_report() -> None:
    with pytest.warns(ConstraintNotMet):
        regressor("error", f"{LARGEST}:3.6", epsilon=INF, penalty=1e-3).fit(
            X, Y, sensitive_features=SEX
        )
    reg = regressor("error", f"{LARGEST}:3.6", epsilon=INF).fit(X, Y, sensitive_features=SEX)
    assert reg.constraint_report_.met_in_training


def test_a_gini_constraint_makes_mean_losses_alike() -> None:
    reg = regressor("error", "gini:0.05", epsilon=INF).fit(X, Y, sensitive_features=SEX)
    f, m = losses(reg).values()
    assert abs(f - m) / (2 * (f + m)) <= 0.051
    plain = losses(regressor(epsilon=INF).fit(X, Y))
    assert abs(plain["f"] - plain["m"]) / (2 * (plain["f"] + plain["m"])) > 0.1
    (line,) = reg.constraint_report_.lines
    assert line.value == pytest.approx(abs(f - m) / (2 * (f + m)))


def test_groups_are_left_alone_where_nobody_asks_for_them() -> None:
    with_groups = regressor(**BOUNDS).fit(X, Y, sensitive_features=SEX)
    without = regressor(**BOUNDS).fit(X, Y)
    assert with_groups.coef_.tolist() == without.coef_.tolist()
    assert (with_groups.groups_, without.groups_) == (("f", "m"), ())


@pytest.mark.parametrize("columns", [{"sex": SEX, "old": X[:, 0] > 0}], ids=["two"])
@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_several_sensitive_columns(columns: Any, mode: str) -> None:
    asked = fv.BoundedGroupLoss(4.0, "squared", groups=mode)
    reg = quietly(regressor("error", asked, epsilon=INF), X, Y, sensitive_features=columns)
    assert len(reg.constraint_report_.lines) == 4
    assert reg.groups_ == (("f", False), ("f", True), ("m", False), ("m", True))


# -- targets and their bounds ----------------------------------------------------------------------


def test_protected_targets_need_public_bounds() -> None:
    with pytest.warns(UnstatedBounds, match="target_bounds"):
        reg = regressor().fit(X, Y)
    assert (reg.target_.low, reg.target_.high) == (-1.0, 1.0)  # whatever the rows are
    assert reg.predict(X).std() < Y.std()


def test_unsafe_bounds_are_flagged_and_not_covered() -> None:
    reg = regressor(unsafe_data_dependent_bounds=True).fit(X, Y)
    assert "data-dependent-bounds" in reg.privacy_.stamps
    assert any("bounds of the target" in words for words in reg.privacy_.not_covered)
    assert any(
        fact.name == "bounds of the target" and "not covered" in fact.origin
        for fact in reg.privacy_.facts
    )
    assert (reg.target_.low, reg.target_.high) == (Y.min(), Y.max())
    stated = regressor(unsafe_data_dependent_bounds=True, **BOUNDS).fit(X, Y)
    assert not any("bounds of the target" in words for words in stated.privacy_.not_covered)


def test_public_targets_say_their_own_range() -> None:
    reg = regressor(protects="sensitive_features").fit(X, Y, sensitive_features=SEX)
    assert (reg.target_.low, reg.target_.high) == (Y.min(), Y.max())
    assert (
        reg.privacy_.not_covered
        == regressor(protects="sensitive_features", **BOUNDS).fit(X, Y).privacy_.not_covered
    )


@pytest.mark.parametrize(
    "bounds", [(1.0, 1.0), (2.0, 1.0), (0.0, INF), (math.nan, 1.0), (1.0,), "ab", 3.0], ids=str
)
def test_bad_bounds_are_refused(bounds: Any) -> None:
    with pytest.raises(InputError, match="target_bounds"):
        regressor(target_bounds=bounds).fit(X, Y)


def test_bounds_are_not_given_twice_and_a_schema_has_a_number() -> None:
    with pytest.raises(InputError, match="None beside columns"):
        regressor(schema=SCHEMA, **BOUNDS)
    with pytest.raises(InputError, match="number"):
        regressor(schema=SCHEMA.with_roles(target="job")).fit(TABLE)
    with pytest.raises(InputError, match="classes"):
        fv.FairClassifier(schema=SCHEMA).fit(TABLE)


def test_targets_beyond_the_bounds_are_cut() -> None:
    far = np.where(np.arange(ROWS) == 0, 1e12, Y)
    near = np.where(np.arange(ROWS) == 0, 30.0, Y)
    fits = [regressor(**BOUNDS).fit(X, y).coef_.tolist() for y in (far, near)]
    assert fits[0] == fits[1]


@pytest.mark.parametrize(
    "y",
    [["a", "b", "c"], [1.0, None, 2.0], [1.0, math.inf, 2.0], [[1, 2], [3, 4], [5, 6]], None],
    ids=str,
)
def test_targets_that_are_no_numbers_are_refused(y: Any) -> None:
    with pytest.raises(InputError, match="y"):
        regressor(epsilon=INF).fit(X[:3], y)


@pytest.mark.parametrize(
    "make", [list, pd.Series, lambda y: y.astype(object), lambda y: pd.DataFrame({"pay": y})]
)
def test_targets_come_in_any_container(make: Any) -> None:
    wanted = regressor(**BOUNDS).fit(X, Y)
    assert regressor(**BOUNDS).fit(X, make(Y)).coef_.tolist() == wanted.coef_.tolist()


def test_a_target_that_never_changes() -> None:
    reg = regressor(epsilon=INF).fit(X, np.full(ROWS, 7.0))
    assert np.allclose(reg.predict(X), 7.0)


# -- ways to give rows -----------------------------------------------------------------------------


def test_coded_rows_are_read_like_tables() -> None:
    by_table = regressor(LARGEST, schema=SCHEMA).fit(TABLE)
    coded = encode(TABLE, SCHEMA)
    by_rows = regressor(LARGEST).fit(coded)
    assert by_rows.coef_.tolist() == by_table.coef_.tolist()
    assert (by_rows.predict(coded) == by_table.predict(TABLE)).all()
    assert by_rows.score(coded) == pytest.approx(by_table.score(TABLE, Y))


def test_coded_rows_without_a_schema_bring_targets_in_their_own_units() -> None:
    class Plain:
        layout = RowLayout(2, sensitive=(("f", "m"),), sensitive_names=("sex",))

        def blocks(self) -> Any:
            codes = (SEX == "m").astype(np.uint16)[np.newaxis]
            yield RowBlock(np.ascontiguousarray(X.T), np.empty((0, ROWS), np.uint8), Y, codes)

    reg = regressor(LARGEST, **BOUNDS).fit(Plain())
    same = regressor(LARGEST, **BOUNDS).fit(X, Y, sensitive_features={"sex": SEX})
    assert reg.coef_.tolist() == same.coef_.tolist()
    assert reg.score(Plain()) == pytest.approx(same.score(X, Y))
    with pytest.warns(UnstatedBounds):
        regressor(LARGEST).fit(Plain())


@pytest.mark.parametrize("relation", [{"epsilon": INF}, *RELATIONS], ids=str)
def test_sparse_numbers(relation: Any) -> None:
    reg = regressor(LARGEST, **BOUNDS, **relation)
    assert (
        reg.fit(sparse.csr_array(X), Y, sensitive_features=SEX).score(sparse.csr_array(X), Y) > 0.4
    )


def test_how_empty_private_rows_are_decides_nothing_that_is_asked() -> None:
    """One row has a number more, or less, that is not zero: on either side of where a dense matrix
    counts as mostly empty."""
    X = np.zeros((400, 2))
    X.reshape(-1)[:200] = 0.5
    other = X.copy()
    other[0, 0] = 0.0
    y = np.linspace(-1.0, 1.0, 400)
    options: dict[str, Any] = {
        "target_bounds": (-1, 1),
        "neighbours": "replace-one",
        "random_state": 0,
    }
    one, two = (
        made(ways.objective_regression, **options).fit(rows, y).privacy_ for rows in (X, other)
    )
    assert one.events == two.events
    assert one.bounds == two.bounds
    assert len(one.events) == 2


def test_columns_in_any_units_and_words() -> None:
    frame = pd.DataFrame(
        {"age": TABLE["age"] * 1e4, "skill": TABLE["skill"] * 1e-4, "job": TABLE["job"]}
    )
    reg = regressor(epsilon=INF).fit(frame, Y)
    one_hot = np.column_stack([TABLE["age"], TABLE["skill"], TABLE["job"] == "smith"])
    assert np.allclose(reg.predict(frame), LinearRegression().fit(one_hot, Y).predict(one_hot))
    flat = frame[["age", "skill"]]
    public = regressor(LARGEST, protects="sensitive_features").fit(flat, Y, sensitive_features=SEX)
    scaled = regressor(LARGEST, protects="sensitive_features").fit(X, Y, sensitive_features=SEX)
    assert np.allclose(public.predict(flat), scaled.predict(X))


def test_weights_count_rows_several_times() -> None:
    weights = np.random.default_rng(0).integers(3, size=ROWS)
    reg = regressor(LARGEST, epsilon=INF).fit(X, Y, sensitive_features=SEX, sample_weight=weights)
    again = regressor(LARGEST, epsilon=INF, target_bounds=(reg.target_.low, reg.target_.high)).fit(
        X.repeat(weights, axis=0), Y.repeat(weights), sensitive_features=SEX.repeat(weights)
    )
    assert np.allclose(reg.coef_, again.coef_, atol=1e-3)
    capped = regressor(**BOUNDS, max_sample_weight=2.0).fit(X, Y, sample_weight=weights)
    assert capped.score(X, Y) > 0.5
    with pytest.raises(InputError, match="max_sample_weight"):
        regressor(**BOUNDS, max_sample_weight=INF)


def test_a_public_feature_that_is_the_group_is_refused() -> None:
    with pytest.raises(PrivacyError, match="copy"):
        regressor(protects="sensitive_features").fit(
            np.column_stack([X, SEX == "f"]), Y, sensitive_features=SEX
        )


def test_a_group_that_is_listed_but_empty() -> None:
    three = Schema(
        {**SCHEMA.columns, "sex": Category(("f", "m", "x"))}, target="pay", sensitive=["sex"]
    )
    for options in ({"epsilon": INF}, {"epsilon": 2.0}, {"protects": "sensitive_features"}):
        reg = regressor(LARGEST, schema=three, **options).fit(TABLE)
        assert reg.groups_ == ("f", "m", "x")
        assert reg.score(TABLE, Y) > 0.3


# -- errors, copies, files -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "gmean"}, "egression"),
        ({"objective": LARGEST}, "sensitive_features"),
        ({"constraint": fv.DemographicParity(0.1)}, "squared|sensitive"),
        ({"ledger": "a handle"}, "ledger"),
        ({"method": "exponential"}, "method"),
        ({"decisions": np.zeros((2, 3))}, "decisions"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(options: Any, words: str) -> None:
    reg = regressor(**{**BOUNDS, **options})
    before = dict(vars(reg))
    with pytest.raises((InputError, PrivacyError), match=words):
        reg.fit(X, Y)
    assert vars(reg) == before


@pytest.mark.parametrize(("name", "value"), [("penalty", -1.0), ("rounds", 0)])
def test_a_number_that_no_solver_can_have_is_refused_where_it_is_made(
    name: str, value: float
) -> None:
    with pytest.raises(InputError, match=name):
        regressor(**BOUNDS, **{name: value})


def test_the_constructor_only_stores() -> None:
    reg = regressor(LARGEST, **BOUNDS)
    before = dict(vars(reg))
    reg.fit(X, Y, sensitive_features=SEX)
    assert {name: value for name, value in vars(reg).items() if not name.endswith("_")} == before
    assert vars(clone(reg)) == before
    assert (pickle.loads(pickle.dumps(reg)).predict(X) == reg.predict(X)).all()


def test_in_pipelines_and_cross_validation() -> None:
    pipeline = make_pipeline(StandardScaler(), regressor(LARGEST, **BOUNDS))
    pipeline.fit(X, Y, fairregressor__sensitive_features=SEX)
    assert pipeline.score(X, Y) > 0.5
    frame = pd.DataFrame({"a": X[:, 0], "sex": SEX, "b": X[:, 1]})
    scores = cross_val_score(
        regressor(LARGEST, **BOUNDS), frame, Y, cv=3, params={"sensitive_features": "sex"}
    )
    assert scores.min() > 0.4


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"objective": LARGEST, "constraint": fv.BoundedGroupLoss(3.0, "squared")},
        {
            "objective": LARGEST,
            "constraint": ["gini:0.2", f"{LARGEST}:4"],
            "protects": "sensitive_features",
        },
        {"epsilon": INF},
        {"unsafe_data_dependent_bounds": True, "target_bounds": None},
    ],
)
def test_on_disk_to_the_bit(options: Any, tmp_path: Path) -> None:
    reg = quietly(regressor(**{**BOUNDS, **options}), X, Y, sensitive_features=SEX)
    again = fv.load(fv.save(reg, tmp_path / "reg"))
    assert (again.predict(X) == reg.predict(X)).all()
    assert (again.coef_ == reg.coef_).all()
    assert again.intercept_ == reg.intercept_
    assert again.privacy_ == reg.privacy_
    assert again.constraint_report_.table() == reg.constraint_report_.table()
    assert (again.target_, again.groups_, again.cells_) == (reg.target_, reg.groups_, reg.cells_)
    for name, value in vars(reg.outcome_).items():
        assert np.array_equal(
            getattr(again.outcome_, name), value, equal_nan=isinstance(value, (float, np.ndarray))
        ), name
    assert {name for name in vars(again) if name.endswith("_")} == {
        name for name in vars(reg) if name.endswith("_")
    }
    wanted = {
        name: value
        for name, value in reg.get_params().items()
        if name != "target_bounds" and not name.endswith("decisions")
    }
    assert {name: again.get_params()[name] for name in wanted} == wanted


def test_by_schema_on_disk(tmp_path: Path) -> None:
    reg = regressor(LARGEST, schema=SCHEMA).fit(TABLE)
    again = fv.load(fv.save(reg, tmp_path / "reg"))
    assert (again.predict(TABLE) == reg.predict(TABLE)).all()
