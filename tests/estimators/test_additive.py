"""Additive models in every estimator: what steps win, what they may never see, what is written, and
what is refused."""

from __future__ import annotations

import copy
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import fairveil as fv
import ways
from fairveil.core.events import compose
from fairveil.errors import FairveilError, InputError, NoSteps, UnstatedBounds
from fairveil.estimators.coding import MANY, ROWS_A_NUMBER, directed, rising
from fairveil.estimators.reading import Unread
from fairveil.facts import Category, Number, Schema
from knobs import made

ROWS = 3000
COLUMNS = {
    "a": Number(-4, 4),
    "b": Number(0, 1000, edges=(5, 50)),
    "job": Category(("x", "y", "z")),
}


def schema(**others: Any) -> Schema:
    columns = {**COLUMNS, **others, "sex": Category(("f", "m")), "hired": Category(("no", "yes"))}
    return Schema(columns, target="hired", sensitive=("sex",))


def table(seed: int = 0, rows: int = ROWS) -> tuple[dict[str, Any], Any, Any]:
    """People who are hired where |a| is large: no line says so."""
    rng = np.random.default_rng(seed)
    jobs = np.array(list("xyz"))[rng.integers(3, size=rows)]
    columns = {"a": rng.uniform(-2, 2, rows), "b": rng.uniform(0, 1000, rows), "job": jobs}
    return (
        columns,
        np.where(np.abs(columns["a"]) > 1.0, "yes", "no"),
        np.array(["f", "m"])[rng.integers(2, size=rows)],
    )


def fitted(model: Any = "additive", **options: Any) -> fv.FairClassifier:
    X, y, sex = table()
    clf = made(
        fv.FairClassifier,
        model=model,
        schema=schema(),
        **{"epsilon": 3.0, "random_state": 0, **options},
    )
    return clf.fit(X, y, sensitive_features=sex)


PARITY = "demographic_parity:0.1"
SEEN = {"protects": "sensitive_features"}
CLASSIFIERS = [
    fv.FairClassifier(PARITY),
    made(fv.FairClassifier, PARITY, **SEEN),
    fv.FairClassifier(PARITY, protects="records:replace-one"),
    fv.FairClassifier(PARITY, epsilon=float("inf")),
    ways.fermi(),
    ways.tailored(),
    made(ways.game, PARITY, **SEEN),
    made(ways.objective, "error", PARITY, **SEEN),
]


@pytest.mark.parametrize("clf", CLASSIFIERS, ids=lambda clf: type(clf).__name__)
def test_a_curve_is_learned_that_no_line_fits_and_saved_to_the_bit(
    clf: Any, tmp_path: Path
) -> None:
    X, y, sex = table()
    given = {"epsilon": 3.0, "random_state": 0, "schema": schema()}
    if clf.epsilon == float("inf"):
        given.pop("epsilon")
    scores = {}
    for model in (None, "additive"):
        made = clone(clf).set_params(model=model, **given).fit(X, y, sensitive_features=sex)
        scores[model] = made.score(X, y)
    assert scores[None] < 0.6
    assert scores["additive"] > 0.93
    again = fv.load(fv.save(made, tmp_path / "model"))
    law = "predict_proba" if hasattr(made, "predict_proba") else "predict"
    assert np.array_equal(getattr(again, law)(X), getattr(made, law)(X))
    assert again.coding_ == made.coding_
    assert again.model == "additive"


@pytest.mark.parametrize(
    "clf",
    [ways.objective_regression(), ways.tailored_regression()],
    ids=lambda clf: type(clf).__name__,
)
def test_a_number_is_predicted_by_steps(clf: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (ROWS, 1))
    y, sex = np.abs(X[:, 0]), rng.integers(2, size=ROWS)
    given = {"epsilon": 5.0, "random_state": 0, "schema": fv.Schema(target_bounds=(0, 2))}
    scores = []
    for model in (None, "additive"):
        scores.append(
            clone(clf)
            .set_params(model=model, **given)
            .fit(X, y, sensitive_features=sex)
            .score(X, y)
        )
    assert scores[0] < 0.05
    assert scores[1] > 0.15


def test_raw_units_need_no_schema() -> None:
    """Incomes beside ages: the linear model's gradients are all income; steps are bounded, and
    nothing warns of units."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(18, 70, ROWS), rng.lognormal(9, 1, ROWS)])
    y = (X[:, 0] > 40).astype(int)
    scores = {}
    for model in (None, "additive"):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            clf = fv.FairClassifier(model=model, epsilon=3.0, random_state=0).fit(X, y)
        assert any(issubclass(one.category, UnstatedBounds) for one in heard) == (model is None)
        scores[model] = clf.score(X, y)
    assert scores[None] < 0.7
    assert scores["additive"] > 0.85
    assert clf.coef_names_[:2] == ("x0, along its edges", "x1, along its edges")


def test_pairs_of_columns_are_distinguished() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (ROWS, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    scores = [
        fv.FairClassifier(model=model, epsilon=3.0, random_state=0).fit(X, y).score(X, y)
        for model in ("additive", fv.Additive(interactions=(("x0", "x1"),)))
    ]
    assert scores[0] < 0.6
    assert scores[1] > 0.85


def test_a_pair_may_be_of_a_category_and_a_number() -> None:
    X, _, sex = table()
    y = np.where((X["a"] > 0) == (X["job"] == "x"), "yes", "no")
    model = fv.Additive(interactions=(("job", "a"),))
    clf = fv.FairClassifier(model=model, schema=schema(), epsilon=3.0, random_state=0)
    assert clf.fit(X, y, sensitive_features=sex).score(X, y) > 0.9
    assert "job: x, a: 0 to 0.25" in clf.coef_names_ or any(
        name.startswith("job: x, a: 0 to") for name in clf.coef_names_
    )


# Terms that never turn back

DIRECTED = fv.Additive(increasing=("a",), decreasing=["b"])


def turns(clf: fv.FairClassifier) -> list[float]:
    """How far the terms of a and b turn back at most."""
    ends = [np.column_stack([term.left, term.right]).ravel() for term in clf.terms()]
    return [-float(np.diff(sign * one).min()) for sign, one in zip((1, -1), ends, strict=True)]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("epsilon", [0.3, np.inf])
def test_a_term_that_is_to_rise_or_fall_never_turns_back(known: bool, epsilon: float) -> None:
    """`a` acts by its square, and noise bends `b`: without directions both turn back."""
    X, y, _ = table()
    options: dict[str, Any] = {"epsilon": epsilon, "random_state": 0}
    if known:
        options["schema"] = schema()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstatedBounds)
        free, kept = (
            made(fv.FairClassifier, model=model, **options).fit(
                {"a": X["a"], "b": X["b"], "job": X["job"]}, y, sensitive_features=table()[2]
            )
            for model in (fv.Additive(), DIRECTED)
        )
    assert max(turns(free)) > 0.01
    assert max(turns(kept)) < 1e-9
    assert kept.privacy_.plan == free.privacy_.plan  # post-processing: it costs nothing


def test_what_is_measured_is_of_the_model_that_is_returned() -> None:
    X, y, sex = table()
    asked = "demographic_parity:0.2"
    clf = fitted(DIRECTED, constraints=asked, epsilon=float("inf"))
    decided = clf.predict(X) == "yes"
    rates = [float(decided[sex == one].mean()) for one in ("f", "m")]
    measured = max(line.value for line in clf.constraint_report_.lines)
    assert measured == pytest.approx(abs(rates[0] - rates[1]), abs=1e-12)
    assert clf.baselines_.error == pytest.approx(float((clf.predict(X) != y).mean()))


@pytest.mark.parametrize(("rows", "epsilon"), [(400, 0.5), (3000, 3.0)])
def test_the_model_without_constraints_keeps_directions_too(rows: int, epsilon: float) -> None:
    """A mixture may return it; where noise hides the bound it is the model itself."""
    X, y, sex = table(rows=rows)
    clf = made(
        fv.FairClassifier,
        constraints="demographic_parity:0.3",
        model=DIRECTED,
        schema=schema(),
        epsilon=epsilon,
        random_state=0,
    ).fit(X, y, sensitive_features=sex)
    kept = directed(DIRECTED, clf.coding_, 2)
    assert kept is not None
    free = clf.outcome_.comparison.free.weights
    assert kept(free) == pytest.approx(free, abs=1e-9)
    assert max(turns(clf)) < 1e-9


def test_a_number_without_steps_keeps_its_direction_and_files_keep_the_model(
    tmp_path: Path,
) -> None:
    X, _, _ = table()
    clf = fitted(fv.Additive(columns=("b",), increasing=("a",)), solver=fv.Fermi(strength=0.1))
    assert clf.coef_[0][0] >= 0.0
    fv.save(clf, tmp_path / "model")
    back = fv.load(tmp_path / "model")
    assert back.model == clf.model == clone(clf).model
    assert (back.predict_proba(X) == clf.predict_proba(X)).all()


@given(
    steps=st.lists(st.floats(-3, 3), min_size=2, max_size=12),
    slope=st.floats(-3, 3),
    seed=st.integers(0, 99),
)
def test_a_risen_term_is_the_nearest_one(steps: list[float], slope: float, seed: int) -> None:
    """Its values are no farther from those of the term than other rising ones are, and a term
    that rises is left as it is."""
    rng = np.random.default_rng(seed)
    middles = np.sort(rng.uniform(-1, 1, len(steps)))
    middles += 0.01 * np.arange(len(steps))
    line, risen = rising(slope, np.array(steps), middles)
    assert line >= 0.0
    assert np.diff(risen).min() >= -1e-9
    values, before = line * middles + risen, slope * middles + np.array(steps)
    away = float(np.square(values - before).sum())
    for _ in range(20):
        other = np.sort(values + 0.1 * rng.normal(size=len(steps)))
        assert away <= float(np.square(other - before).sum()) + 1e-9
    again = rising(line, risen, middles)
    assert again[0] == pytest.approx(line, abs=1e-9)
    assert again[1] == pytest.approx(risen, abs=1e-9)


# What they may see


def test_nothing_is_read_from_the_rows() -> None:
    """Edges are those of the schema, whatever the rows are; and the plan is the linear model's, to
    the last event."""
    X, y, sex = table()
    other = {**X, "a": X["a"] * 0.01, "b": X["b"] * 0.001}
    one = fitted()
    two = fv.FairClassifier(model="additive", schema=schema(), epsilon=3.0, random_state=0)
    assert two.fit(other, y, sensitive_features=sex).coding_ == one.coding_
    assert one.privacy_.plan == two.privacy_.plan == fitted(None).privacy_.plan
    assert not [fact for fact in one.privacy_.facts if fact.origin == "read from the data"]
    (told,) = [fact for fact in one.privacy_.facts if fact.name == "model"]
    assert told.value.startswith("additive: steps of a at")


@pytest.mark.parametrize(
    "clf", CLASSIFIERS[:3] + CLASSIFIERS[4:], ids=lambda clf: type(clf).__name__
)
def test_a_plan_without_rows_is_the_one_of_the_fit(clf: Any) -> None:
    X, y, sex = table()
    stated = replace(schema(), rows=ROWS)
    made = copy.copy(clf).set_params(model="additive", schema=stated, random_state=0)
    search = made._foretold(Unread(stated, ROWS), None)._search(Unread(stated, ROWS).read)
    spent = made.fit(X, y, sensitive_features=sex).privacy_
    assert spent.plan is not None
    assert compose([search.plan]) == compose(spent.plan)


def test_declared_edges_are_the_steps() -> None:
    names = fitted().coef_names_
    assert [name for name in names if name.startswith("b:")] == [
        "b: below 5",
        "b: 5 to 50",
        "b: from 50",
    ]
    assert fitted(fv.Additive(columns=("b",))).coef_names_[-3:] == (
        "b: below 5",
        "b: 5 to 50",
        "b: from 50",
    )
    assert not [
        name for name in fitted(fv.Additive(columns=("b",))).coef_names_ if name.startswith("a:")
    ]


def test_coefficients_are_the_score() -> None:
    """In the units of the table: a line for each number, and the term of the step that it lies
    on."""
    clf = fitted()
    X, _, _ = table(seed=5, rows=50)
    weights = dict(zip(clf.coef_names_, clf.coef_[0], strict=True))
    edges = {side.name: side for side in clf.coding_.shapes.steps}
    for i, score in enumerate(clf.decision_function(X)):
        told = clf.intercept_[0] + weights[f"job={X['job'][i]}"]
        for name in ("a", "b"):
            step = int(np.searchsorted(edges[name].marks, X[name][i], side="right"))
            told += weights[name] * X[name][i] + weights[f"{name}: {edges[name].words[step]}"]
        assert told == pytest.approx(score, abs=1e-9)


# Wide tables


def test_a_wide_table_of_few_rows_stays_linear_and_says_so() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, MANY + 1)), rng.integers(2, size=500)
    with pytest.warns(NoSteps, match="the model is linear"):
        steps = fv.FairClassifier(model="additive", random_state=0).fit(X, y)
    line = fv.FairClassifier(random_state=0).fit(X, y)
    assert np.array_equal(steps.coef_, line.coef_)


def test_a_wide_table_has_steps_where_enough_rows_are_known_or_columns_named() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, MANY + 1)), rng.integers(2, size=500)
    known = ROWS_A_NUMBER * (MANY + 1)
    many = fv.FairClassifier(
        model="additive", random_state=0, solver=fv.PrimalDual(rounds=3), schema=Schema(rows=known)
    ).fit(X, y)
    assert len(many.coding_.shapes.steps) == MANY + 1
    named = fv.FairClassifier(
        model=fv.Additive(columns=("x3",)), random_state=0, solver=fv.PrimalDual(rounds=3)
    ).fit(X, y)
    assert [side.name for side in named.coding_.shapes.steps] == ["x3"]


# What is refused


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fitted("cubic"), "'linear', 'additive'"),
        (lambda: fv.Additive(bins=1), "bins"),
        (lambda: fv.Additive(bins=1000), "bins"),
        (lambda: fv.Additive(columns="a"), "columns"),
        (lambda: fv.Additive(columns=["a", "a"]), "columns"),
        (lambda: fv.Additive(interactions=[("a", "a")]), "interactions"),
        (lambda: fv.Additive(interactions="ab"), "interactions"),
        (lambda: fv.Additive(interactions=["ab"]), "interactions"),
        (lambda: fitted(fv.Additive(columns=["job"])), "names among"),
        (lambda: fitted(fv.Additive(interactions=[("a", "hired")])), "names among"),
        (lambda: fv.Additive(increasing="a"), "increasing"),
        (lambda: fv.Additive(increasing=["a"], decreasing=["a"]), "decreasing"),
        (lambda: fv.Additive(decreasing=["a"], interactions=[("a", "b")]), "interactions"),
        (lambda: fitted(fv.Additive(increasing=["job"])), "names among"),
        (lambda: fitted(DIRECTED, solver=fv.OracleGame()), "PrimalDual"),
        (lambda: fitted(DIRECTED, solver=fv.Tailored()), "PrimalDual"),
        (lambda: Number(0, 10, edges=[5, 5]), "edges"),
        (lambda: Number(0, 10, edges=[0, 5]), "edges"),
        (lambda: Number(0, 10, edges=[float("nan")]), "edges"),
        (lambda: Number(0, 10, edges=5), "edges"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, words: str) -> None:
    with pytest.raises(FairveilError, match=words):
        make()


def test_too_many_cells_of_a_pair_are_refused() -> None:
    wide = schema(postcode=Category(tuple(map(str, range(500)))))
    X, y, sex = table()
    X["postcode"] = np.array(list(map(str, range(500))))[np.arange(ROWS) % 500]
    clf = fv.FairClassifier(model=fv.Additive(interactions=(("postcode", "a"),)), schema=wide)
    with pytest.raises(InputError, match="4096 cells"):
        clf.fit(X, y, sensitive_features=sex)


def test_sparse_tables_and_modules_where_none_are_taken_are_refused() -> None:
    X, y = (
        sparse.random_array((50, 4), density=0.2, rng=np.random.default_rng(0), format="csr"),
        np.arange(50) % 2,
    )
    with pytest.raises(InputError, match="dense"):
        fv.FairClassifier(model="additive").fit(X, y)
    with pytest.raises(InputError, match="'linear', 'additive'"):
        ways.game(model=object()).fit(np.ones((50, 4)), y)


@pytest.mark.parametrize(
    "change",
    [
        lambda shapes: shapes["steps"][0].update(place=7),
        lambda shapes: shapes["steps"][0]["edges"].reverse(),
        lambda shapes: shapes["steps"][0]["edges"].pop(),
        lambda shapes: shapes["steps"].pop(),
        lambda shapes: shapes.update(extra=1),
    ],
)
def test_a_damaged_file_is_refused(change: Any, tmp_path: Path) -> None:
    folder = fv.save(fitted(fv.Additive(interactions=(("a", "job"),))), tmp_path / "model")
    assert fv.load(folder).model == fv.Additive(interactions=(("a", "job"),))
    path = folder / "estimator.json"
    content = json.loads(path.read_text("utf-8"))
    change(content["coding"]["shapes"])
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(FairveilError):
        fv.load(folder)


def test_a_schema_with_edges_is_written_and_read(tmp_path: Path) -> None:
    stated = schema()
    assert Schema.from_dict(stated.to_dict()) == stated
    stated.save(tmp_path / "schema.toml")
    assert Schema.load(tmp_path / "schema.toml") == stated
    plain = Schema(
        {**dict(stated.columns), "b": Number(0, 1000)}, target="hired", sensitive=("sex",)
    )
    assert plain.fingerprint != stated.fingerprint


@pytest.mark.parametrize(
    ("rows", "known", "epsilon", "bends"),
    [
        (2_100, 2_100, 1.0, True),
        (2_100, 2_100, 0.1, True),
        (2_100, 2_100, 0.05, False),  # 2 numbers x 100 / .05 rows would do
        (2_100, None, 1.0, False),
        (1_900, 1_900, 1.0, False),
    ],
)
def test_the_usual_model_bends_where_public_facts_say_that_it_pays(
    rows: int, known: int | None, epsilon: float, bends: bool
) -> None:
    rng = np.random.default_rng(0)
    table = {"a": rng.uniform(-1, 1, rows), "b": rng.uniform(-1, 1, rows)}
    table["y"] = (table["a"] ** 2 > rng.uniform(0, 1, rows)).astype(int)
    columns = {"a": Number(-1, 1), "b": Number(-1, 1), "y": Category((0, 1))}
    facts = {"schema": Schema(columns, target="y", rows=known), "epsilon": epsilon}
    usual = fv.FairClassifier(random_state=0, **facts).fit(table)
    named = "additive" if bends else "linear"
    asked = fv.FairClassifier(random_state=0, model=named, **facts).fit(table)
    assert (usual.coding_.shapes is not None) is bends
    assert usual.coef_.tobytes() == asked.coef_.tobytes()
    assert ("model" in {fact.name for fact in usual.privacy_.facts}) is bends
    game = fv.FairClassifier(solver=fv.OracleGame(rounds=2), random_state=0, **facts).fit(table)
    assert game.coding_.shapes is None
