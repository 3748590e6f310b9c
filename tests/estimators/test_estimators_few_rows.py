"""A table of no rows and a table of one are neighbours under add/remove-one: whatever is fitted to
them ends alike, and says alike what it costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv
import ways
from covering import pairs
from fairveil import data
from fairveil.errors import FairveilError
from fairveil.facts import Category, Ignored, Number, Schema

# of models of no worth, which is no matter here
pytestmark = pytest.mark.filterwarnings("ignore::fairveil.errors.FairveilWarning")

COLUMNS = {
    "a": Number(-1, 1),
    "b": Number(-1, 1),
    "sex": Category(("f", "m")),
    "who": Ignored(),
    "hired": Category(("no", "yes")),
}
SCHEMA = Schema(COLUMNS, target="hired", sensitive="sex", rows=200)
AMOUNT = Schema({**COLUMNS, "hired": Number(0, 10)}, target="hired", sensitive="sex", rows=200)
PERSONS = Schema(COLUMNS, "hired", "sex", rows=200, unit="who", max_rows_per_unit=3)
SHORT = fv.PrimalDual(rounds=2)


def table(rows: int, schema: Schema = SCHEMA) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    a, b = rng.uniform(-1, 1, size=(2, rows))
    labels: Any = 5 + 3 * a if schema is AMOUNT else np.where(a > 0, "yes", "no")
    who = np.array([f"p{i}" for i in range(rows)], dtype=object)
    return {"a": a, "b": b, "sex": rng.choice(["f", "m"], rows), "who": who, "hired": labels}


def base(**options: Any) -> Any:
    return ways.classifier(None, solver=SHORT, **options)


def searched(way: str, **options: Any) -> Any:
    inside = {
        name: options.pop(name)
        for name in ("schema", "neighbours", "unit", "max_rows_per_unit")
        if name in options
    }
    runs = {"runs": 2.0} if way == "selection" else {}
    grid = {"solver__clip": [0.5, 2.0]}
    return fv.PrivateSearchCV(base(**inside), grid, way=way, **runs, **options)


ESTIMATORS: dict[str, Callable[..., Any]] = {
    "FairClassifier": lambda **k: ways.classifier("demographic_parity:0.1", solver=SHORT, **k),
    "FermiClassifier": lambda **k: ways.fermi("demographic_parity", 1.0, solver=SHORT, **k),
    "GroupObjectiveClassifier": lambda **k: ways.objective(
        "error", None, solver=fv.GroupObjective(rounds=2), **k
    ),
    "GroupObjectiveRegressor": lambda **k: ways.objective_regression(**k),
    "OracleGameClassifier": lambda **k: ways.game("demographic_parity:0.1", rounds=2, **k),
    "TailoredClassifier": lambda **k: ways.tailored(solver=fv.Tailored(rounds=2), **k),
    "TailoredRegressor": lambda **k: ways.tailored_regression(**k),
    "FairPostProcessor": lambda **k: ways.post_processor(base(), "equalized_odds:0.1", **k),
    "offsets": lambda **k: ways.post_processor(
        base(), "demographic_parity:0.05", solver=fv.Offsets(rounds=2), **k
    ),
    "PrivateSearchCV": lambda **k: searched("all", **k),
    "a selection": lambda **k: searched("selection", **k),
    "a base's decisions": lambda **k: ways.post_processor(
        base(), "equalized_odds:0.1", solver=fv.Thresholds(predict_method="predict"), **k
    ),
    "a certificate": lambda **k: ways.classifier(
        fv.DemographicParity(0.3, confidence=0.9), solver=SHORT, **k
    ),
}


def ending(estimator: Any, X: Any, **fitted: Any) -> Any:
    """How a fit ends: what its statement says, whatever the rows are, or the error."""
    try:
        told = estimator.fit(X, **fitted).privacy_
    except FairveilError as error:
        return type(error).__name__, str(error)
    bounds = sorted((bound.question, bound.norm, bound.sensitivity) for bound in told.bounds)
    return told.epsilon, told.plan, bounds


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_rows_and_one_row_end_alike(name: str, neighbours: str) -> None:
    schema = AMOUNT if name.endswith("Regressor") else SCHEMA
    none, one = (
        ending(
            ESTIMATORS[name](epsilon=2.0, schema=schema, neighbours=neighbours, random_state=0),
            table(rows, schema),
        )
        for rows in (0, 1)
    )
    assert isinstance(none[0], float), none
    assert isinstance(one[0], float), one
    assert none == one or neighbours == "replace-one"  # where the number of rows is public


def csv_file(folder: Path, rows: int) -> Path:
    file, columns = folder / f"{rows}.csv", table(rows)
    lines = [",".join(map(str, line)) for line in zip(*columns.values(), strict=True)]
    file.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return file


SOURCES: dict[str, Callable[[Path, int, Schema], Any]] = {
    "table": lambda folder, rows, schema: table(rows),
    "coded": lambda folder, rows, schema: data.encode(table(rows), schema),
    "store": lambda folder, rows, schema: data.encode(table(rows), schema, folder / f"{rows}.s"),
    "csv": lambda folder, rows, schema: data.open(csv_file(folder, rows), schema),
}


@pytest.mark.parametrize(
    ("persons", "name", "source"),
    pairs([False, True], ["FairClassifier", "FairPostProcessor"], SOURCES),
)
def test_so_they_do_from_every_source(
    source: str, name: str, persons: bool, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"unit": "who", "max_rows_per_unit": 3} if persons else {}
    schema = PERSONS if persons else SCHEMA
    if source == "table":
        options["schema"] = schema
    none, one = (
        ending(
            ESTIMATORS[name](epsilon=2.0, random_state=0, **options),
            SOURCES[source](tmp_path, rows, schema),
        )
        for rows in (0, 1)
    )
    assert none == one
    if (source, persons) != ("streamed", True):  # rows of persons are held
        assert isinstance(one[0], float)


def test_so_they_do_with_weights_and_in_certificates() -> None:
    found = [
        ending(
            base(epsilon=2.0, random_state=0, schema=SCHEMA, max_sample_weight=2.0),
            table(rows),
            sample_weight=np.full(rows, 1.5),
        )
        for rows in (0, 1)
    ]
    assert found[0] == found[1]
    model = base(epsilon=2.0, random_state=0, schema=SCHEMA).fit(table(300))
    for decided in (model, None):
        certificates = [
            fv.certify(
                np.full(rows, "yes", dtype=object) if decided is None else decided,
                table(rows),
                constraints=fv.DemographicParity(0.3),
                schema=SCHEMA,
                epsilon=1.0,
                random_state=0,
            )
            for rows in (0, 1)
        ]
        none, one = (certificate.privacy_ for certificate in certificates)
        assert none.events == one.events


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", ["FairClassifier", "GroupObjectiveClassifier", "offsets"])
def test_weights_of_zero_alone_end_as_with_one_that_is_not(name: str, neighbours: str) -> None:
    """Which rows weigh something is private, as which rows there are."""
    zeros = np.zeros(20)
    options = {"epsilon": 2.0, "schema": SCHEMA, "neighbours": neighbours, "random_state": 0}
    none, one = (
        ending(ESTIMATORS[name](**options), table(20), sample_weight=weights)
        for weights in (zeros, np.r_[1.0, zeros[1:]])
    )
    assert none == one
    assert isinstance(one[0], float), one


def test_public_weights_of_zero_alone_are_refused() -> None:
    public = base(epsilon=2.0, schema=SCHEMA, protects="sensitive_features", random_state=0)
    with pytest.raises(FairveilError, match="zeros alone"):
        public.fit(table(20), sample_weight=np.zeros(20))


def test_labels_set_aside_tell_nothing_where_a_schema_lists_them() -> None:
    """One row with a label of its own may be set aside: the fit goes on, as without that row."""
    columns = table(2)
    labels, features = columns.pop("hired"), columns
    for seed in range(6):
        for rows in (0, 1, 2):
            X = {name: values[:rows] for name, values in features.items()}
            ESTIMATORS["a certificate"](epsilon=2.0, schema=SCHEMA, random_state=seed).fit(
                X, labels[:rows]
            )
