"""Plans of fits: no row is read, the plan is the fit's own, its noise is what fits have, and it
says what would be enough."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairveil as fv
import ways
from fairveil.core.events import Composed, PoissonSampled, Repeated, compose
from fairveil.errors import InputError, WeakDelta
from fairveil.estimators.fitting import Planning
from fairveil.estimators.reading import ReadOptions, Unread
from fairveil.facts import Boolean, Category, Number, Schema
from fairveil.fairness import resolve
from fairveil.fairness.notions import parse
from knobs import made

ROWS = 3000
NUMBERS = {"a": Number(-4, 4), "b": Number(-4, 4)}


def schema_of(
    shares: tuple[float, ...] | None = (0.3, 0.7),
    rows: int | None = ROWS,
    groups: str = "fm",
    **options: Any,
) -> Schema:
    hired = Boolean(shares=(0.6, 0.4))
    columns = {**NUMBERS, "sex": Category(tuple(groups), shares=shares), "hired": hired}
    return Schema(columns, target="hired", sensitive=["sex"], rows=rows, **options)


def numeric() -> Schema:
    columns = {**NUMBERS, "sex": Category(("f", "m"), shares=(0.3, 0.7)), "pay": Number(-10, 10)}
    return Schema(columns, target="pay", sensitive=["sex"], rows=ROWS)


def table(seed: int = 0) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(seed)
    sex = (rng.uniform(size=ROWS) < 0.7).astype(int)
    a, b = rng.normal(size=(2, ROWS))
    score = a + b + 0.4 * sex + rng.normal(size=ROWS)
    return {"a": a, "b": b, "sex": np.array(["f", "m"])[sex]}, score > np.quantile(score, 0.6)


PARITY, ODDS = "demographic_parity:0.05", "equalized_odds:0.1"
GROUPS: dict[str, Any] = {"protects": "sensitive_features"}
FITS = [
    (fv.FairClassifier(PARITY, solver=fv.PrimalDual(rounds=20)), None),
    (made(fv.FairClassifier, ODDS, solver=fv.PrimalDual(rounds=20), **GROUPS), None),
    (
        fv.FairClassifier(PARITY, solver=fv.PrimalDual(rounds=20), protects="records:replace-one"),
        None,
    ),
    (fv.FairClassifier(None, solver=fv.PrimalDual(rounds=20, sampling_rate=0.2)), None),
    (
        fv.FairClassifier(
            PARITY,
            solver=fv.PrimalDual(rounds=20),
            schema=Schema(unsafe_data_dependent_bounds=True),
        ),
        None,
    ),
    (ways.fermi(solver=fv.PrimalDual(rounds=20)), None),
    (ways.game(ODDS), None),
    (ways.game(ODDS, oracle="descent", rounds=20), None),
    (ways.game(PARITY, solver=fv.OracleGame(group_aware=True), rounds=20), None),
    (ways.game(PARITY, oracle="exponential", rounds=20), None),
    (ways.objective("error", ODDS, solver=fv.GroupObjective(rounds=20)), None),
    (
        made(
            ways.objective,
            "largest_group_loss",
            solver=fv.GroupObjective(rounds=20),
            **GROUPS,
        ),
        None,
    ),
    (ways.objective("error", ODDS, "exponential"), None),
    (
        ways.objective("largest_group_loss", loss="log", solver=fv.GroupObjective(rounds=20)),
        None,
    ),
    (ways.tailored(solver=fv.Tailored(rounds=20)), None),
    (
        ways.tailored("standard-error", bound=0.6, solver=fv.Tailored(rounds=20)),
        None,
    ),
    (made(ways.tailored, solver=fv.Tailored(rounds=20), **GROUPS), None),
    (ways.objective_regression("largest_group_loss"), numeric),
    (ways.tailored_regression(), numeric),
]


def draws(event: Any) -> int:
    """How often noise is drawn, or a choice is made."""
    if isinstance(event, Composed):
        return sum(map(draws, event.events))
    if isinstance(event, Repeated):
        return event.count * draws(event.event)
    return draws(event.event) if isinstance(event, PoissonSampled) else 1


@pytest.mark.parametrize(
    ("clf", "schema"), FITS, ids=lambda one: type(one).__name__ if isinstance(one, Planning) else ""
)
def test_the_plan_is_the_one_that_a_fit_makes(clf: Any, schema: Any) -> None:
    """Guarantee 2: the same events, to the last bit, of as many rows."""
    found = schema_of() if schema is None else schema()
    X, y = table()
    fitted = (
        copy.copy(clf)
        .set_params(schema=found, random_state=0)
        .fit(X, y if schema is None else np.where(y, 2.0, -2.0))
    )
    search = clf._foretold(Unread(found, ROWS), None)._search(Unread(found, ROWS).read)
    assert fitted.privacy_.plan is not None
    assert compose([search.plan]) == compose(fitted.privacy_.plan)
    plan = clf.plan(found)
    assert sum(line.times for line in plan.releases) == draws(search.plan)
    assert plan.lines or plan.forecast.why or clf.get_params().get("constraints") is None
    json.loads(plan.to_json())
    assert str(plan)


@pytest.mark.parametrize("base", [None, LogisticRegression()], ids=["ours", "another's"])
def test_a_post_processor_plans_its_base_too(base: Any) -> None:
    protects = "records" if base is None else "sensitive_features"
    clf = fv.FairPostProcessor(base, ODDS, schema=schema_of(), random_state=0, protects=protects)
    X, y = table()
    features = np.column_stack([X["a"], X["b"]])
    fitted = clf.fit(features, y, sensitive_features=X["sex"])
    counts = fitted._search(Unread(schema_of(), ROWS).read)
    assert fitted.privacy_.plan is not None
    assert fitted.privacy_.plan[-1] == counts.event
    assert any(line.name.startswith("base: ") for line in clf.plan().releases) == (base is None)


def test_a_base_that_was_fitted_before_is_counted_as_the_fit_counts_it() -> None:
    X, y = table()
    base = fv.FairClassifier(
        epsilon=0.5, delta=5e-7, schema=schema_of(), random_state=0, solver=fv.PrimalDual(rounds=10)
    ).fit(X, y)
    clf = fv.FairPostProcessor(base, ODDS, schema=schema_of(), random_state=0)
    counts = clf._search(Unread(schema_of(), ROWS).read)
    assert clf.fit(X, y, sensitive_features=["sex"]).privacy_.events[-1] == counts.event


def test_nothing_is_read_spent_or_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guarantees 1 and 3: no rows are behind a plan, and no curator is made."""
    book = fv.Ledger.create(None, "people", 0.1, 1e-7)  # room for a tenth of the fit
    clf = fv.FairClassifier(PARITY, ledger=book)
    before = dict(vars(clf))

    def no(*given: Any, **options: Any) -> None:
        raise AssertionError("a plan made a curator")

    monkeypatch.setattr("fairveil.core.curator.Curator.__init__", no)
    plan = clf.plan(schema_of())
    assert plan.enough is not None
    assert vars(clf) == before
    assert book.is_untouched
    training = Unread(schema_of(), ROWS).read(ReadOptions())
    assert [block.size for block in training.rows.blocks()] == [0]
    assert training.rows.exact_count == 0


SITUATIONS = [
    (
        fv.FairClassifier,
        {
            "constraints": "demographic_parity:0.3",
            "epsilon": 3.0,
            "solver": fv.PrimalDual(rounds=40),
        },
    ),
    (
        fv.FairClassifier,
        {
            "constraints": "false_negative_rate:0.7",
            "epsilon": 2.0,
            "solver": fv.PrimalDual(rounds=40),
        },
    ),
    (fv.FairPostProcessor, {"constraints": "equalized_odds:0.05", "epsilon": 1.0, **GROUPS}),
    (
        ways.game,
        {"constraints": "demographic_parity:0.05", "epsilon": 1.0, "rounds": 30},
    ),
    (
        ways.objective,
        {"objective": "error", "constraint": "demographic_parity:0.1", "method": "exponential"},
    ),
]


@pytest.mark.parametrize(
    ("made", "options"), SITUATIONS, ids=lambda one: one.__name__ if isinstance(one, type) else ""
)
def test_the_planned_noise_is_what_fits_have(made: Any, options: dict[str, Any]) -> None:
    """What reports say, within 20 %; and what is seen, the root mean square over 24 seeds, within a
    factor of 1.35: right numbers miss that once in 40 times. A mixture's noise is the sum of its
    models' deviations, up to a fifth too large."""
    notion = parse(options.get("constraints", options.get("constraint")))
    X, y = table()
    plan = made(schema=schema_of(), **options).plan()
    looks, off, reported = [], [], []
    for seed in range(24):
        clf = made(schema=schema_of(), random_state=seed, **options).fit(
            X, y, sensitive_features=["sex"]
        )
        if made is fv.FairClassifier:
            law = clf.predict(X)[:, np.newaxis] == clf.classes_
            looks.append(clf.outcome_.looks)
        else:
            law = clf.predict_proba(
                X, **({"sensitive_features": ["sex"]} if made is fv.FairPostProcessor else {})
            )
        system = resolve(notion, clf.cells_, (False, True))
        histogram = np.zeros(system.shape)
        np.add.at(
            histogram, ((X["sex"] == "m").astype(int), y.astype(int)), np.asarray(law, np.float64)
        )
        exact = dict(
            zip(
                system.names,
                system.exact_values(histogram, histogram.sum(axis=2)).tolist(),
                strict=True,
            )
        )
        told = {line.target: line for line in clf.constraint_report_.lines}
        off.append([(told[line.name].value - exact[line.name]) / line.noise for line in plan.lines])
        reported.append([told[line.name].noise / line.noise for line in plan.lines])
    assert set(looks) <= {max(line.looks for line in plan.lines)}, (
        "values are those of a release of their own"
    )
    assert np.median(reported) == pytest.approx(1.0, abs=0.2)
    too_large = 1.2 if made is ways.game else 1.0
    assert 0.74 / too_large <= math.sqrt(float(np.mean(np.square(off)))) <= 1.35


def test_what_is_enough_is_and_a_little_less_is_not() -> None:
    clf = fv.FairClassifier(PARITY, epsilon=0.2)
    enough = clf.plan(schema_of()).enough
    assert enough is not None
    assert enough.epsilon_to_enforce is not None
    assert enough.rows_to_verify is not None
    for epsilon, can in (
        (enough.epsilon_to_enforce, True),
        (0.97 * enough.epsilon_to_enforce, False),
    ):
        assert clf.set_params(epsilon=epsilon).plan(schema_of()).can_be_enforced is can
    clf.set_params(epsilon=0.2)
    for rows, can in ((enough.rows_to_verify, True), (round(0.97 * enough.rows_to_verify), False)):
        assert clf.plan(schema_of(), rows=rows).can_be_verified is can
    impossible = fv.FairClassifier("demographic_parity:0").plan(schema_of()).enough
    assert impossible is not None
    assert impossible.rows_to_enforce is None
    assert impossible.epsilon_to_enforce is None


def test_sizes_that_nobody_stated_are_supposed_equal_and_that_is_said() -> None:
    plan = fv.FairClassifier("demographic_parity:0.1", epsilon=2.0).plan(
        schema_of(None, groups="abc")
    )
    assert "points if groups are equal in size, which nobody stated: what" in plan.verdict
    assert "supposed equal: nobody stated them" in str(plan)
    share = plan.least_share
    assert share is not None
    assert share < 1 / 3
    least = f"at least {100 * share:.2g} % of the rows, about {math.ceil(share * 3000):,}, for"
    assert f"The smallest group must have {least}" in plan.verdict
    assert str(plan).count(least) == 2

    def shares(smallest: float) -> dict[str, dict[str, float]]:
        return {"sex": {"a": smallest, "b": (1 - smallest) / 2, "c": (1 - smallest) / 2}}

    clf = fv.FairClassifier("demographic_parity:0.1", epsilon=2.0)
    assert clf.plan(schema_of(None, groups="abc"), shares=shares(share)).can_be_enforced
    less = clf.plan(schema_of(None, groups="abc"), shares=shares(0.95 * share))
    assert less.can_be_enforced is False
    assert less.least_share is None
    assert "equal" not in less.verdict
    assert "smallest group" not in less.verdict
    assert "supposed equal" not in str(less).replace("hired", "")


def test_a_plan_of_many_small_groups_says_that_nothing_can_be_enforced() -> None:
    plan = fv.FairClassifier(PARITY).plan(schema_of((1 / 6,) * 6, rows=600, groups="abcdef"))
    assert plan.verdict.startswith("With 6 groups of 100 rows or more at epsilon 1 the noise is ±")
    assert plan.verdict.endswith(" points: nothing can be enforced.")
    assert plan.can_be_enforced is False
    assert plan.verdict in plan._repr_html_().replace("&#x27;", "'")


def test_no_noise_and_no_bound_are_no_failure() -> None:
    assert fv.FairClassifier(PARITY, epsilon=math.inf).plan(schema_of()).can_be_enforced
    unbounded = ways.fermi().plan(schema_of())
    assert unbounded.can_be_enforced is None
    assert unbounded.verdict.endswith("no bound is required.")
    assert "<=" not in unbounded.lines[0].name
    regressor = ways.tailored_regression().plan(numeric())
    assert regressor.can_be_enforced is None
    assert "depends on the model that is found" in regressor.verdict


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"schema": None}, "plan(schema): expected a Schema"),
        ({"schema": schema_of(rows=None)}, "rows: expected a number of rows"),
        ({"rows": 0}, "at least 1"),
        ({"shares": {"a": {"x": 1.0}}}, "shares: expected one of ['sex', 'hired']"),
        ({"shares": {"sex": {"f": 1.0}}}, "a share for each value of 'sex': ['f', 'm']"),
        ({"shares": {"sex": {"f": 0.5, "m": 0.9}}}, "a sum of 1.4"),
        ({"shares": [0.5, 0.5]}, "shares by column"),
        ({"schema": schema_of().without("hired")}, "a schema with a target"),
        ({"schema": numeric()}, "labels of at least two classes"),
    ],
)
def test_what_is_missing_or_wrong_is_said(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        fv.FairClassifier(PARITY).plan(**{"schema": schema_of(), **given})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "clf",
    [
        fv.FairClassifier(PARITY, delta=0.01),
        fv.FairPostProcessor(None, ODDS, delta=0.01),
    ],
)
def test_warnings_of_public_facts_are_heard_once(clf: Any) -> None:
    with pytest.warns(WeakDelta) as heard:
        clf.plan(schema_of()).to_dict()
    assert len(heard) == 1


def test_groups_may_be_named_and_shares_of_the_schema_are_flagged_as_public() -> None:
    columns = {
        **NUMBERS,
        "sex": Category(("f", "m")),
        "city": Category(("x", "y"), shares=(0.5, 0.5)),
        "hired": Boolean(),
    }
    two = Schema(columns, target="hired", sensitive=["sex", "city"], rows=ROWS)
    clf = fv.FairClassifier(PARITY)
    assert clf.plan(two).forecast.cells.count == 4
    assert clf.plan(two, sensitive=["city"]).forecast.cells.count == 2
    X, y = table()
    fitted = fv.FairClassifier(
        PARITY, schema=schema_of(), random_state=0, solver=fv.PrimalDual(rounds=5)
    ).fit(X, y)
    facts = {fact.name: (fact.value, fact.origin) for fact in fitted.privacy_.facts}
    assert facts["shares of sex"] == ("f 0.3, m 0.7", "schema")
    assert facts["shares of hired"] == ("False 0.6, True 0.4", "schema")


@pytest.mark.parametrize("solver", [None, fv.OracleGame()])
def test_a_plan_promises_a_verdict_only_where_the_search_aims_inside(solver: Any) -> None:
    """A game ends at its bound, where chance decides the verdict."""
    columns = {"x": Number(-1, 1), "g": Category((0, 1)), "y": Category((0, 1))}
    schema = Schema(columns, target="y", sensitive=["g"], rows=60_000)
    plan = fv.FairClassifier("demographic_parity:0.2", solver=solver, schema=schema).plan(schema)
    assert plan.can_be_verified
    assert ("can be enforced and verified" in plan.verdict) is (solver is None)
    assert ("inconclusive" in plan.verdict) is (solver is not None)
