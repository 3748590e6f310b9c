"""Where a statement says that its public facts and bounds come from: an argument only where the
caller passed one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.curator import Curator, FeatureSums, Measurement, Rows
from fairveil.data import Category, Number, Schema
from fairveil.statement.document import PrivacyStatement
from knobs import made

pytestmark = pytest.mark.filterwarnings(
    "ignore::fairveil.errors.ConstraintNotMet",
    "ignore::fairveil.errors.UnstatedBounds",
    "ignore::fairveil.errors.WeakDelta",
)
RNG = np.random.default_rng(0)
ROWS = 300
A = RNG.integers(2, size=ROWS)
X = RNG.uniform(-1, 1, size=(ROWS, 2))
Y = (X.sum(axis=1) > 0).astype(int)
SCHEMA = Schema(
    {"a": Number(-1, 1), "b": Number(-1, 1), "y": Category((0, 1)), "s": Category((0, 1))},
    target="y",
    sensitive="s",
    rows=ROWS,
)


def rated(**options: Any) -> Any:
    return made(
        fv.FairClassifier,
        "demographic_parity:0.3",
        solver=fv.PrimalDual(rounds=2),
        random_state=0,
        **options,
    )


def bounds(statement: PrivacyStatement) -> dict[str, str]:
    return {bound.question: bound.origin for bound in statement.bounds}


def facts(statement: PrivacyStatement) -> dict[str, str]:
    return {fact.name: fact.origin for fact in statement.facts}


def fitted(clf: Any, **more: Any) -> PrivacyStatement:
    return clf.fit(X, Y, sensitive_features=A, **more).privacy_  # type: ignore[no-any-return]


def test_a_clip_is_an_argument_where_the_caller_passed_it_alone() -> None:
    assert bounds(fitted(rated()))["gradient sum"] == "library default"
    assert bounds(fitted(rated(clip=0.5)))["gradient sum"] == "argument"
    shared = ways.tailored(
        allocation="standard-error", solver=fv.Tailored(clip=0.5, rounds=2), random_state=0
    )
    found = bounds(fitted(shared))
    assert found["sums told apart by cell"] == "argument"
    assert found["group losses"] == "library default"  # cut at a number of the library's


def test_what_a_question_is_bounds_it_by_definition() -> None:
    found = bounds(fitted(rated()))
    assert found["cell counts"] == found["prediction histogram"] == "by definition"


def test_maxima_over_public_rows_are_of_public_features() -> None:
    statement = fitted(rated(protects="sensitive_features"))
    assert "public features" in bounds(statement).values()
    assert "argument" not in bounds(statement).values()


def test_a_curators_own_caller_states_every_clip() -> None:
    curator = Curator(Rows.from_arrays(X, Y, [A]), fv.Promise(1.0, 1e-6))
    curator.answer([Measurement(FeatureSums(clip=1.0), 20.0)])
    assert bounds(PrivacyStatement.of_run(curator))["feature sums"] == "argument"


def test_delta_and_the_cap_of_weights_are_defaults_unless_others_were_passed() -> None:
    weights = np.ones(ROWS)
    found = facts(fitted(rated(), sample_weight=weights))
    assert (found["delta"], found["largest sample weight"]) == (
        "library default",
        "library default",
    )
    found = facts(fitted(rated(delta=1e-7, max_sample_weight=2.0), sample_weight=weights))
    assert (found["delta"], found["largest sample weight"]) == ("argument", "schema")


def test_the_number_of_rows_is_the_schemas() -> None:
    table, groups = {"a": X[:, 0], "b": X[:, 1]}, {"s": A}
    of_schema = rated(schema=SCHEMA).fit(table, Y, sensitive_features=groups).privacy_
    assert facts(of_schema)["number of rows"] == "schema"
    assert facts(fitted(rated(public_rows=250)))["number of rows"] == "schema"
    assert "number of rows" not in facts(fitted(rated()))


def test_bounds_of_a_target() -> None:
    def origin(**options: Any) -> str:
        model = made(
            ways.tailored_regression, solver=fv.Tailored(rounds=2), random_state=0, **options
        )
        return facts(model.fit(X, X[:, 0], sensitive_features=A).privacy_)["bounds of the target"]

    assert origin() == "library default"
    assert origin(target_bounds=(-1, 1)) == "schema"
    assert origin(protects="sensitive_features") == "public features"
    assert origin(unsafe_data_dependent_bounds=True) == "read from the data, not covered"


def test_the_base_of_a_post_processor() -> None:
    post = fv.FairPostProcessor(constraints="demographic_parity:0.3", random_state=0)
    assert facts(fitted(post))["base classifier"] == "library default"
    post = fv.FairPostProcessor(
        fv.FairClassifier(solver=fv.PrimalDual(rounds=2)),
        "demographic_parity:0.3",
        random_state=0,
    )
    assert facts(fitted(post))["base classifier"] == "argument"


def test_statements_with_every_origin_are_read_back_and_agree() -> None:
    for options in ({}, {"clip": 0.5, "delta": 1e-7}, {"protects": "sensitive_features"}):
        statement = fitted(rated(**options))
        assert statement.check() == []
        assert PrivacyStatement.from_json(statement.to_json()) == statement
