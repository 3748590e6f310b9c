"""Tailored estimators on disk and back: to the bit, whatever their parameters are, and never with a
row inside."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tailored_estimator_samples import AGE, INF, LABELS, SEX, X, Y, classifier, quietly, regressor

import fairveil as fv
from fairveil.errors import ChecksumError, InputError

BOTH = {"sex": SEX, "age": AGE}
NUMBERED = (SEX == "m").astype(int)


def equal(one: Any, other: Any, target: Any) -> None:
    assert (one.predict(X) == other.predict(X)).all()
    assert one.score(X, target) == other.score(X, target)
    assert one.privacy_ == other.privacy_
    assert one.tailoring_.table() == other.tailoring_.table()
    assert one.tailoring_.to_json() == other.tailoring_.to_json()
    assert str(one.tailoring_) == str(other.tailoring_)
    for name in ("groups", "rule", "why", "shares", "counts", "epsilons", "fixed"):
        assert getattr(one.tailoring_, name) == getattr(other.tailoring_, name)
    assert np.array_equal(one.tailoring_.errors, other.tailoring_.errors, equal_nan=True)
    assert str(one.constraint_report_) == str(other.constraint_report_)
    for name, value in vars(one.outcome_).items():
        assert np.array_equal(
            getattr(other.outcome_, name), value, equal_nan=isinstance(value, (float, np.ndarray))
        ), name
    assert (one.groups_, one.cells_, one.n_iter_) == (other.groups_, other.cells_, other.n_iter_)
    assert one.objective_ == other.objective_
    assert {name for name in vars(one) if name.endswith("_")} == {
        name for name in vars(other) if name.endswith("_")
    }


CASES: list[Any] = [
    ((), {}, SEX),
    (("standard-error",), {"neighbours": "replace-one"}, SEX),
    (({"f": 3.0, "m": 1},), {"max_epsilon": {"f": 2.5}, "min_epsilon": {"m": 0.5}}, SEX),
    (({0: 3.0, 1: 1.0}, {1: 50.0}), {"max_epsilon": 2.5}, NUMBERED),
    (({("f", "old"): 1.0, ("f", "young"): 2.0, ("m", "old"): 3.0, ("m", "young"): 4.0},), {}, BOTH),
    (("size", 50.0), {"groups": "marginal", "protects": "sensitive_features"}, BOTH),
    (("equal",), {"epsilon": INF, "objective": "people"}, SEX),
    (
        (),
        {
            "spend": "total",
            "radius": 4.0,
            "region": "box",
            "step_size": "decaying",
            "iterate": "last",
        },
        SEX,
    ),
    (("standard-error",), {"stage_one_share": 0.4}, SEX),
]


@pytest.mark.parametrize("make", [regressor, classifier], ids=["regressor", "classifier"])
@pytest.mark.parametrize(
    ("given", "options", "groups"), CASES, ids=[str(number) for number in range(len(CASES))]
)
def test_on_disk_to_the_bit(
    make: Any, given: Any, options: Any, groups: Any, tmp_path: Path
) -> None:
    target = Y if make is regressor else LABELS
    one = quietly(make(*given, **options), X, target, sensitive_features=groups)
    again = fv.load(fv.save(one, tmp_path / "one"))
    equal(one, again, target)
    told, heard = one.get_params(), again.get_params()
    assert told.keys() == heard.keys()
    for name in told:
        if name == "constraints":
            assert str(heard[name]) == str(told[name])
        elif name != "target_bounds":
            assert heard[name] == told[name], name
    refitted = quietly(again, X, target, sensitive_features=groups)
    assert (refitted.predict(X) == one.predict(X)).all()
    assert refitted.privacy_.events == one.privacy_.events


def test_moments_on_disk(tmp_path: Path) -> None:
    for rule in ("least-noise", "standard-error"):
        one = regressor(rule, method="moments").fit(X, Y, sensitive_features=SEX)
        equal(one, fv.load(fv.save(one, tmp_path / rule)), Y)


def test_a_modules_class_is_never_written(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Linear(2, 1)
    one = quietly(
        classifier("equal", model=module, rounds=2, sampling_rate=1.0),
        X,
        LABELS,
        sensitive_features=SEX,
    )
    path = fv.save(one, tmp_path / "one")
    with pytest.raises(InputError, match="model"):
        fv.load(path)
    again = fv.load(path, model=torch.nn.Linear(2, 1))
    equal(one, again, LABELS)
    with pytest.raises(InputError, match="model"):
        fv.load(path, model=torch.nn.Linear(3, 1))


def test_damage_is_an_error(tmp_path: Path) -> None:
    path = fv.save(regressor("standard-error").fit(X, Y, sensitive_features=SEX), tmp_path / "one")
    content = json.loads((path / "estimator.json").read_text())
    (field,) = (
        name for name, value in content.items() if isinstance(value, dict) and "why" in value
    )
    told = content[field]
    for change in (
        {field: {}},
        {field: told | {"shares": [0.5]}},
        {field: told | {"shares": ["much", "little"]}},
        {field: {name: value for name, value in told.items() if name != "why"}},
        {"kind": "FairClassifier"},
        {"more": 1},
        {"outcome": {}},
        {"parameters": content["parameters"] | {"more": 1}},
        {"sha256": {}},
    ):
        (path / "estimator.json").write_text(json.dumps(content | change))
        with pytest.raises((InputError, ChecksumError)):
            fv.load(path)
    (path / "estimator.json").write_text(json.dumps(content))
    fv.load(path)
    statement = (path / "statement.json").read_text()
    (path / "statement.json").write_text(statement.replace("3", "4", 1))
    with pytest.raises(ChecksumError):
        fv.load(path)


@pytest.mark.parametrize("make", [regressor, classifier], ids=["regressor", "classifier"])
def test_no_fitted_attribute_holds_a_row(make: Any) -> None:
    """1,200 rows of two numbers are 19,000 bytes."""
    one = make("standard-error").fit(X, Y if make is regressor else LABELS, sensitive_features=SEX)
    raw = pickle.dumps(one)
    assert len(raw) < 15_000
    assert np.ascontiguousarray(X[:, 1]).tobytes()[:80] not in raw
