"""Frontiers: guarantees of `study/sweep.py` and `estimators/batched.py`, their numbers, files and
refusals."""

from __future__ import annotations

import itertools
import json
import math
import warnings
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairveil as fv
from fairveil.core.events import Composed, Event, Gaussian, Repeated
from fairveil.errors import ConstraintNotMet, InputError, WeakDelta
from fairveil.estimators import batched as batched
from fairveil.estimators import reading
from fairveil.estimators.reading import ReadOptions
from fairveil.facts import Category, Number, RowBlock, RowLayout, Schema
from fairveil.models import MixtureModel
from fairveil.show import Point, Series
from fairveil.show.numbers import at_most
from fairveil.study import Family
from knobs import made

INF = math.inf
ARRAYS = ("weights", "bounds", "values", "spread", "duals", "counts")


def people(seed: int = 0, n: int = 700, classes: int = 2, groups: int = 2) -> tuple[Any, Any, Any]:
    """Numbers, labels and groups that go together."""
    rng = np.random.default_rng(seed)
    A = rng.integers(groups, size=n)
    X = rng.normal(scale=0.5, size=(n, 3)) + 0.3 * A[:, None] / max(groups - 1, 1)
    scores = X @ np.linspace(-2, 3, 3 * classes).reshape(3, classes) + rng.gumbel(size=(n, classes))
    return X, scores.argmax(axis=1), A


def quick(**options: Any) -> fv.FairClassifier:
    return made(fv.FairClassifier, **{"rounds": 12, "randomised": False, **options})


def alone(template: fv.FairClassifier, constraints: Any, key: Any, *rows: Any) -> fv.FairClassifier:
    """The solo fit of one point of a grid."""
    parameters = template.get_params(deep=False) | {
        "constraints": constraints,
        "epsilon": key[0],
        "random_state": key[2],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        return made(fv.FairClassifier, **parameters).fit(
            rows[0], rows[1], sensitive_features=rows[2]
        )


def parts(clf: fv.FairClassifier) -> list[Any]:
    """Weights and intercepts of a model, or of all in a mixture, and its shares."""
    model: Any = clf.model_
    if isinstance(model, MixtureModel):
        return [
            model.weights,
            *(array for one in model.models for array in (one.weights, one.intercept)),
        ]
    return [clf.coef_, clf.intercept_]


def same(one: fv.FairClassifier, other: fv.FairClassifier) -> None:
    """Equal to the bit: coefficients, released values, events and their price."""
    for mine, theirs in zip(parts(one), parts(other), strict=True):
        assert np.array_equal(mine, theirs)
    for name in ARRAYS:
        assert np.array_equal(
            getattr(one.outcome_, name), getattr(other.outcome_, name), equal_nan=True
        ), name
    for name in ("reason", "rounds", "names", "rows"):
        assert getattr(one.outcome_, name) == getattr(other.outcome_, name)
    for name in ("events", "plan", "epsilon", "promise", "facts", "noise", "stamps"):
        assert getattr(one.privacy_, name) == getattr(other.privacy_, name), name
    assert one.get_params() == other.get_params()
    assert str(one.constraint_report_) == str(other.constraint_report_)


def both(gap: float) -> list[Any]:
    return [fv.DemographicParity(gap), fv.FalseNegativeRate(0.9)]


CASES: dict[str, tuple[dict[str, Any], Any, dict[str, int]]] = {
    "records": ({}, fv.DemographicParity, {}),
    "given rows": ({"public_rows": 700}, fv.DemographicParity, {}),
    "replace-one": ({"neighbours": "replace-one"}, fv.EqualizedOdds, {}),
    "sensitive features": ({"protects": "sensitive_features"}, fv.EqualizedOdds, {}),
    "several notions": ({}, both, {}),
    "three classes, four groups": (
        {},
        lambda gap: fv.DemographicParity(gap, compare="rest"),
        {"classes": 3, "groups": 4},
    ),
    "batches": ({"sampling_rate": 0.3}, fv.DemographicParity, {}),
    "standardised": ({"unsafe_data_dependent_bounds": True}, fv.DemographicParity, {}),
}


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
@pytest.mark.parametrize("case", CASES)
def test_guarantee_1_every_model_is_that_of_its_own_fit(case: str) -> None:
    """Over epsilons, gaps (one asks for nothing and has a plan of its own) and seeds."""
    options, constraint, shape = CASES[case]
    rows = people(**shape)
    template = quick(**options)
    grid = {
        "gaps": (0.1, None, 0.02),
        "epsilons": (1.0, 4.0) if case == "records" else (2.0,),
        "seeds": (3, 8),
    }
    found = fv.frontier(*rows, constraint=constraint, estimator=template, progress=False, **grid)
    assert list(found.models) == list(
        itertools.product(grid["epsilons"], grid["gaps"], grid["seeds"])
    )
    for key, model in found.models.items():
        asked = constraint(key[1])
        same(model, alone(template, asked if isinstance(asked, list) else [asked], key, *rows))
    for epsilon in grid["epsilons"]:  # seeds do matter
        one, other = (found.models[epsilon, 0.1, seed].outcome_.counts for seed in grid["seeds"])
        assert not np.array_equal(one, other)


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_guarantee_1_without_privacy_one_model_a_gap() -> None:
    rows = people(n=400)
    found = fv.frontier(*rows, gaps=(0.3, 0.1), epsilons=(INF,), seeds=3)
    assert list(found.models) == [(INF, 0.3, 0), (INF, 0.1, 0)]
    for key, model in found.models.items():
        same(model, alone(fv.FairClassifier(), [fv.DemographicParity(key[1])], key, *rows))
    assert found.epsilon == INF
    assert not found.privacy.is_private
    assert "no guarantee" in str(found)


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_guarantee_1_secure_noise_is_each_models_own() -> None:
    found = fv.frontier(*people(), gaps=(0.3, 0.2), epsilons=(3.0,), estimator=quick())
    one, two = found.models.values()
    assert one.privacy_.noise == two.privacy_.noise == found.privacy.noise == "secure"
    assert not np.array_equal(one.outcome_.counts, two.outcome_.counts)


def leaves(event: Event, times: int = 1) -> list[tuple[float, int]]:
    if isinstance(event, Composed):
        return [leaf for part in event.events for leaf in leaves(part, times)]
    if isinstance(event, Repeated):
        return leaves(event.event, times * event.count)
    assert isinstance(event, Gaussian)
    return [(event.noise_multiplier, times)]


@pytest.mark.parametrize(
    "options", [{}, {"protects": "sensitive_features"}], ids=["records", "sensitive_features"]
)
@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_guarantee_2_the_frontier_states_the_price_of_all_models(options: dict[str, Any]) -> None:
    """Judged by the closed form: all releases are Gaussian, so mu^2 = sum 1/z^2 and delta(epsilon;
    mu) is known."""
    found = fv.frontier(
        *people(),
        gaps=(0.2, 0.05),
        epsilons=(0.5, 2.0),
        seeds=3,
        estimator=quick(**options),
        progress=False,
    )
    events = [event for model in found.models.values() for event in model.privacy_.events]
    mu = math.sqrt(sum(times / z**2 for event in events for z, times in leaves(event)))
    e = found.epsilon
    delta = stats.norm.cdf(-e / mu + mu / 2) - math.exp(e) * stats.norm.cdf(-e / mu - mu / 2)
    assert delta == pytest.approx(found.privacy.delta, rel=1e-3)
    assert e > max(model.privacy_.epsilon for model in found.models.values())
    assert found.privacy.check() == []
    for model in found.models.values():
        assert model.privacy_.check() == []
        assert model.privacy_.tuning is not None
        assert model.privacy_.tuning.startswith("one of 12 models")
        assert f"epsilon {at_most(e)}" in model.privacy_.tuning
    assert any("share their noise" in sentence for sentence in found.privacy.not_covered)


@pytest.mark.parametrize(
    ("constraint", "measure"),
    [
        ("demographic_parity", fv.demographic_parity_gap),
        (fv.EqualizedOdds, fv.equalized_odds_gap),
        (lambda rate: fv.FalseNegativeRate(rate), lambda y, d, A: float(np.mean(d[y == 1] == 0))),
        (
            "false_negative_rate,group=each",
            lambda y, d, A: max(float(np.mean(d[(y == 1) & (a == A)] == 0)) for a in (0, 1)),
        ),
    ],
    ids=["parity", "odds", "false negatives", "false negatives by group"],
)
@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_guarantee_3_held_out_rows_are_measured_exactly_and_never_reach_training(
    constraint: Any, measure: Any
) -> None:
    train, (X, y, A) = people(), people(seed=1, n=300)
    grid: dict[str, Any] = {
        "constraint": constraint,
        "gaps": (0.4, 0.05),
        "epsilons": (3.0,),
        "seeds": 2,
        "progress": False,
    }
    with_test = fv.frontier(*train, estimator=quick(), test=(X, y, A), **grid)
    without = fv.frontier(*train, estimator=quick(), **grid)
    for run, (key, model) in zip(with_test.runs, with_test.models.items(), strict=True):
        same(model, without.models[key])
        assert run.error == pytest.approx(1 - model.score(X, y), abs=1e-12)
        assert run.gap == pytest.approx(measure(y, model.predict(X), A), abs=1e-12)
        assert run.excess == pytest.approx(run.gap - run.target, abs=1e-12)
        (sentence,) = [text for text in model.privacy_.not_covered if "300 held-out rows" in text]
        assert sentence in with_test.privacy.not_covered
    assert all(run.error is None and run.gap is None for run in without.runs)
    assert not any(
        "held-out" in text
        for model in without.models.values()
        for text in model.privacy_.not_covered
    )


class Counted:
    """Coded rows that count how often they are read."""

    def __init__(self, seed: int, n: int) -> None:
        X, y, A = people(seed, n)
        self.layout = RowLayout(3, (), (0, 1), ((0, 1),), ("group",))
        block = RowBlock(
            np.ascontiguousarray(X.T),
            np.zeros((0, n), np.uint8),
            y.astype(np.int32),
            A.astype(np.uint16)[None],
        )
        self._block, self.reads = block, 0

    def blocks(self) -> Any:
        self.reads += 1
        yield self._block


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_rows_are_read_once_for_all_models() -> None:
    rows, test = Counted(0, 700), Counted(1, 300)
    found = fv.frontier(
        rows, gaps=(0.5, None), epsilons=(2.0, 4.0, INF), seeds=2, estimator=quick(), test=test
    )
    assert rows.reads == 1
    arrays = fv.frontier(
        *people(),
        gaps=(0.5, None),
        epsilons=(2.0, 4.0, INF),
        seeds=2,
        estimator=quick(),
        test=people(1, 300),
    )
    assert found.table() == arrays.table()


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_tables_with_names_and_a_schema() -> None:
    """Words, names of columns, a schema: measured as the estimator's own predictions are."""
    X, y, A = people(n=900)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        sex=np.array(["f", "m"])[A], out=np.array(["no", "yes"])[y]
    )
    train, test = frame[:600], frame[600:].reset_index(drop=True)
    schema = Schema(
        {name: Number(-2, 2) for name in "abc"}
        | {"sex": Category(("m", "f")), "out": Category(("no", "yes"))},
        target="out",
        sensitive=["sex"],
        rows=600,
    )
    features = ["a", "b", "c", "sex"]
    for estimator in (quick(), quick(schema=schema)):
        grid: dict[str, Any] = {"gaps": (0.5,), "epsilons": (4.0,), "seeds": 2}
        held_out = (test[features], test["out"], "sex")
        found = fv.frontier(
            train[features], train["out"], "sex", estimator=estimator, test=held_out, **grid
        )
        (run, _), (model, _) = found.runs, found.models.values()
        solo = alone(
            estimator,
            [fv.DemographicParity(0.5)],
            (4.0, 0.5, 0),
            train[features],
            train["out"],
            "sex",
        )
        same(model, solo)
        prediction = model.predict(test[features])
        assert run.error == pytest.approx(np.mean(prediction != test["out"]))
        assert run.gap == pytest.approx(
            fv.demographic_parity_gap(test["out"], prediction, test["sex"])
        )
    strange, others = (
        test["out"].where(test.index > 0, "maybe"),
        test["sex"].where(test.index > 0, "x"),
    )
    with pytest.raises(InputError, match="maybe"):
        fv.frontier(
            train[features], train["out"], "sex", test=(test[features], strange, "sex"), **grid
        )
    with pytest.raises(InputError, match="'x'"):
        fv.frontier(
            train[features], train["out"], "sex", test=(test[features], test["out"], others), **grid
        )


@pytest.fixture(scope="module")
def found() -> fv.study.Frontier:
    """A small frontier with held-out rows and a published curve."""
    theirs = Series(
        "Others (2020)",
        1.0,
        "records",
        (Point(0.3, 0.2), Point(0.4, 0.1)),
        published=True,
    )
    grid: dict[str, Any] = {
        "gaps": (0.3, 0.1),
        "epsilons": (2.0, 8.0),
        "seeds": 4,
        "progress": False,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        return fv.frontier(
            *people(), estimator=quick(), test=people(1, 400), published=[theirs], **grid
        )


def test_the_table_is_means_deviations_and_intervals_over_seeds(found: fv.study.Frontier) -> None:
    lines = found.table()
    assert [(line["epsilon"], line["target"]) for line in lines] == list(
        itertools.product((2.0, 8.0), (0.3, 0.1))
    )
    for line in lines:
        runs = [
            run
            for run in found.runs
            if (run.epsilon, run.target) == (line["epsilon"], line["target"])
        ]
        assert line["models"] == len(runs) == 4
        for name, head in (("error", "error"), ("gap", "held_out_gap")):
            values = np.array([getattr(run, name) for run in runs])
            low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
            assert line[head] == pytest.approx(values.mean())
            assert line[f"{head}_sd"] == pytest.approx(values.std(ddof=1))
            assert (line[f"{head}_low"], line[f"{head}_high"]) == pytest.approx((low, high))
        assert line["training_gap"] == pytest.approx(np.mean([run.training for run in runs]))
        models = [
            model
            for key, model in found.models.items()
            if key[:2] == (line["epsilon"], line["target"])
        ]
        noises = [model.outcome_.spread.max() for model in models]
        assert line["training_noise"] == pytest.approx(max(noises))


def test_training_values_are_the_released_ones(found: fv.study.Frontier) -> None:
    for run, model in zip(found.runs, found.models.values(), strict=True):
        assert run.training == max(line.value for line in model.constraint_report_.lines)
        assert (run.met, run.rounds) == (model.constraint_report_.met, 12)


def test_the_json_of_a_frontier_has_every_run_and_the_table_that_they_make(
    found: fv.study.Frontier,
) -> None:
    told = json.loads(found.to_json())
    assert told["table"] == found.table()
    assert [run["error"] for run in told["runs"]] == [run.error for run in found.runs]
    assert told["privacy"] == json.loads(found.privacy.to_json())
    assert (told["measure"], told["held_out_rows"]) == (found.measure, found.held_out_rows)


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_infinite_epsilons_and_undefined_values_survive_json() -> None:
    X, y, A = people(1, 100)
    some = y == 0  # no held-out row has the positive label: rates given it are undefined
    grid: dict[str, Any] = {
        "constraint": fv.EqualizedOdds,
        "gaps": (0.5, None),
        "epsilons": (INF,),
        "seeds": 1,
    }
    found = fv.frontier(*people(n=300), test=(X[some], y[some], A[some]), **grid)
    told = json.loads(found.to_json())
    assert [line["epsilon"] for line in told["table"]] == ["inf", "inf"]
    assert [line["held_out_gap"] for line in told["table"]] == [None, None]
    assert [line["held_out_gap"] for line in found.table()] == [None, None]
    assert [line["undefined"] for line in found.table()] == [1, 1]
    assert found.table()[1]["training_gap"] is None  # nothing was asked, nothing was measured
    with pytest.raises(InputError, match="a gap that is defined"):
        found.plot()


def test_the_charts_have_a_curve_an_epsilon_and_the_published_ones(
    found: fv.study.Frontier,
) -> None:
    drawing, points, *_ = found.shown(dataset="people", notes=("a note",))
    words = " ".join(ET.fromstring(drawing.to_svg()).itertext())
    for text in (
        "Fairveil, ε = 2",
        "Fairveil, ε = 8",
        "people",
        "a note",
        "demographic parity gap",
    ):
        assert text in words
    assert [len(curve["points"]) for curve in drawing.to_dict()["curves"]] == [2, 2, 2]
    assert "Others (2020), ε = 1: " in drawing.description
    assert [row["required"] for row in points.rows()].count(0.1) == 2
    assert len(points.rows()) == 4 + 2
    own = drawing.to_dict()["curves"][:2]
    drawn = {tuple(point) for curve in own for point in curve["points"]}
    lines = {(line["held_out_gap"], line["error"]) for line in found.table()}
    assert drawn == lines, "the chart, the table and JSON hold the same numbers"
    assert json.loads(found.to_json()) == found.to_dict()


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_without_held_out_rows_there_is_no_plot() -> None:
    found = fv.frontier(*people(), gaps=(0.5,), epsilons=(2.0,), seeds=1, estimator=quick())
    with pytest.raises(InputError, match="test="):
        found.plot()
    assert found.table()[0]["error"] is None


def test_models_are_estimators_that_can_be_saved(found: fv.study.Frontier, tmp_path: Any) -> None:
    X, _, _ = people(1, 50)
    model = found.models[2.0, 0.1, 3]
    again = fv.load(fv.save(model, tmp_path / "model"))
    assert np.array_equal(again.predict(X, random_state=0), model.predict(X, random_state=0))
    assert again.privacy_ == model.privacy_


def test_panels_hold_at_most_so_many_models_and_miss_none() -> None:
    """No speed knob moves a bit: 80 models are two panels of one size, and the last is still that
    of its own fit."""
    rows = people(n=200)
    template = quick(rounds=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        found = fv.frontier(
            *rows, gaps=(0.9,), epsilons=(2.0,), seeds=batched.MOST_MODELS + 5, estimator=template
        )
    same(
        found.models[2.0, 0.9, 79],
        alone(template, [fv.DemographicParity(0.9)], (2.0, 0.9, 79), *rows),
    )
    training = reading.read(*rows, None, ReadOptions())
    intent = batched.intend(template, lambda ways: training)
    sizes = [len(panel) for panel in batched._panels([batched.Job(template, intent)] * 80)]
    assert sizes == [40, 40]


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_progress_counts_rounds_of_models_up_to_the_end() -> None:
    rows = people(n=200)
    training = reading.read(*rows, None, ReadOptions())
    jobs = []
    for rounds, seeds in ((4, 3), (5, 2)):
        one = quick(rounds=rounds)
        intent = batched.intend(one, lambda ways: training)
        jobs += [
            batched.Job(quick(rounds=rounds, random_state=seed), intent) for seed in range(seeds)
        ]
    told: list[tuple[int, int]] = []
    batched.fit_all(jobs, tick=lambda done, most: told.append((done, most)))
    assert told[-1] == (22, 22)
    assert [done for done, _ in told] == [3, 6, 9, 12, 14, 16, 18, 20, 22]


def test_one_warning_for_all_models_that_fail_and_one_for_delta() -> None:
    X, y, A = people(n=3000)

    def never(rate: float) -> list[Any]:
        return [fv.FalseNegativeRate(rate, positive=1), fv.FalseNegativeRate(rate, positive=0)]

    with pytest.warns(ConstraintNotMet, match="4 of 4 models do not meet") as caught:
        found = fv.frontier(X, y, A, constraint=never, gaps=(0.01, 0.02), epsilons=(50.0,), seeds=2)
    assert [one.category for one in caught].count(ConstraintNotMet) == 1
    assert [line["not_met"] for line in found.table()] == [2, 2]
    template = quick(delta=0.01, public_rows=700)
    with pytest.warns(WeakDelta) as caught:
        fv.frontier(
            *people(), gaps=(0.9, 0.8), epsilons=(INF, 2.0, 3.0), seeds=1, estimator=template
        )
    assert [one.category for one in caught].count(WeakDelta) == 1


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_without_groups_a_rate_of_the_population_is_swept() -> None:
    (X, y, _), (X2, y2, _) = people(), people(1, 300)
    grid: dict[str, Any] = {
        "constraint": fv.FalseNegativeRate,
        "gaps": (0.5,),
        "epsilons": (4.0,),
        "seeds": 2,
    }
    found = fv.frontier(X, y, estimator=quick(), test=(X2, y2, None), **grid)
    for run, model in zip(found.runs, found.models.values(), strict=True):
        assert run.gap == pytest.approx(np.mean(model.predict(X2)[y2 == 1] == 0))
    across = found.shown()[0].to_dict()["across"]
    assert (across["name"], across["unit"]) == ("false negative rate", "percent")


def test_where_nothing_protected_is_read_looking_is_free() -> None:
    """Only the sensitive column is protected, and nothing is asked of it."""
    template = quick(protects="sensitive_features")
    found = fv.frontier(
        *people(), gaps=(None,), epsilons=(1.0,), seeds=2, estimator=template, test=people(1, 100)
    )
    assert found.epsilon == 0.0
    assert found.privacy.check() == []
    (run, _) = found.runs
    assert (run.training, run.noise, run.met) == (None, None, True)


def test_families_know_what_is_swept() -> None:
    family = Family.of([fv.DemographicParity, fv.FalseNegativeRate(0.3)], (0.2, 0.1))
    assert family.swept == (True, False)
    assert family.asked_of(0.1) == [fv.DemographicParity(0.1), fv.FalseNegativeRate(0.3)]
    assert family.name == "demographic parity gap"
    assert Family.of(both, (0.2, 0.1)).swept == (True, False)  # distinguished by what changes
    judge = family.judge(0.1, fv.facts.Cells((("f", "m"),)), ("no", "yes"))
    assert judge.swept.tolist() == [True, True, False]
    assert judge.gap(np.array([0.15, -0.15, 0.9])) == 0.15
    assert judge.excess(np.array([0.15, -0.15, 0.9])) == pytest.approx(0.6)
    text = Family.of("equal_opportunity,compare=rest", (0.2, 0.1))
    assert text.asked_of(0.2) == [fv.EqualOpportunity(0.2, compare="rest")]


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraint": fv.DemographicParity(0.1)}, "notions that change with the bound"),
        ({"constraint": 0.1}, "constraint"),
        ({"constraint": "no_such"}, "constraint"),
        (
            {"constraint": lambda gap: fv.DemographicParity(0.1)},
            "notions that change with the bound",
        ),
        ({"constraint": lambda gap: 3}, "a notion of fairness"),
        (
            {"constraint": lambda gap: both(gap)[: 1 if gap > 0.1 else 2]},
            "the same notions at every bound",
        ),
        ({"gaps": (0.1, 0.1)}, "gaps: expected distinct"),
        ({"gaps": ()}, "gaps"),
        ({"gaps": (-0.1,)}, "gaps"),
        ({"epsilons": (0.0,)}, "epsilons"),
        ({"epsilons": ()}, "epsilons"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": (1, 1)}, "seeds"),
        ({"seeds": (0.5,)}, "seeds"),
        ({"estimator": object()}, "a FairClassifier"),
        ({"estimator": quick(constraints=fv.DemographicParity(0.05))}, "estimator.constraints"),
        ({"test": 3}, "test: expected three things"),
        ({"test": (np.zeros((0, 3)), np.zeros(0, int), np.zeros(0, int))}, "0 sample"),
        ({"sensitive_features": None}, "groups"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    X, y, A = people(n=100)
    given = {
        "sensitive_features": A,
        "gaps": (0.5, 0.1),
        "epsilons": (1.0,),
        "seeds": 1,
        "estimator": quick(),
        **options,
    }
    # an InputError, or scikit-learn's own for arrays without rows
    with pytest.raises(ValueError, match=message):
        fv.frontier(X, y, **given)


def test_one_model_a_point_has_the_intervals_of_its_held_out_rows() -> None:
    """Of people like them: without seeds there is no spread over models, and a figure without bars
    would claim to be exact."""
    X, y, A = people(n=1400)
    rows, test = (X[:900], y[:900], A[:900]), (X[900:], y[900:], A[900:])
    found = frontier_of(rows, test, seeds=None)
    (line,) = found.table()
    (clf,) = found.models.values()
    wrong = clf.predict(test[0]) != test[1]
    low, high = stats.binomtest(int(wrong.sum()), 500).proportion_ci(method="wilson")
    assert (line["error_low"], line["error_high"]) == pytest.approx((low, high))
    rates = [
        stats.binomtest(int((clf.predict(test[0])[test[2] == g]).sum()), int((test[2] == g).sum()))
        for g in (0, 1)
    ]
    (p, q), ends = (
        [one.statistic for one in rates],
        [one.proportion_ci(method="wilson") for one in rates],
    )
    values = (p, q)

    def newcombe(over: int, under: int) -> tuple[float, float]:
        difference = values[over] - values[under]
        down = math.hypot(values[over] - ends[over].low, ends[under].high - values[under])
        return difference - down, difference + math.hypot(
            ends[over].high - values[over], values[under] - ends[under].low
        )

    both_ways = (newcombe(0, 1), newcombe(1, 0))
    assert line["held_out_gap_low"] == pytest.approx(max(0.0, *(low for low, _ in both_ways)))
    assert line["held_out_gap_high"] == pytest.approx(max(high for _, high in both_ways))
    (point,) = found.series[0].points
    assert (point.gap_low, point.gap_high) == (line["held_out_gap_low"], line["held_out_gap_high"])
    assert "this very model" in str(found)
    seeded = frontier_of(rows, test, seeds=3)
    assert "\n\n95% intervals of the mean over seeds" in str(seeded)
    assert seeded.table()[0]["error_low"] != seeded.runs[0].error_low


def frontier_of(rows: Any, test: Any, seeds: int | None) -> fv.study.Frontier:
    """One epsilon, one bound."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        return fv.frontier(
            *rows,
            gaps=(0.1,),
            epsilons=(2.0,),
            seeds=seeds,
            test=test,
            estimator=quick(),
            progress=False,
        )


def test_models_that_are_randomized_are_measured_by_their_distribution() -> None:
    """The same number again and again, which no draw gives."""
    rows, (X, y, A) = people(), people(seed=1, n=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fv.frontier(
            *rows,
            gaps=(0.02,),
            epsilons=(20.0,),
            seeds=6,
            test=(X, y, A),
            estimator=fv.FairClassifier(solver=fv.PrimalDual(rounds=12, randomised=True)),
            progress=False,
        )
    mixed = 0
    for run, model in zip(found.runs, found.models.values(), strict=True):
        chance = isinstance(model.model_, MixtureModel)
        law = model.predict_proba(X) if chance else np.eye(2)[model.predict(X)]
        assert run.error == pytest.approx(1 - law[np.arange(len(y)), y].mean(), abs=1e-12)
        assert run.gap == pytest.approx(
            abs(law[A == 0, 1].mean() - law[A == 1, 1].mean()), abs=1e-12
        )
        mixed += chance
    assert mixed
