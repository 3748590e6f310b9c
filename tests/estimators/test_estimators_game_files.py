"""Games on disk and back: to the bit, with candidates handed in again, and never with a row
inside."""

from __future__ import annotations

import json
import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairveil as fv
import ways
from fairveil.errors import ChecksumError, ConstraintNotMet, InputError
from knobs import made

RNG = np.random.default_rng(0)
SEX = RNG.integers(2, size=900)
X = RNG.normal(size=(900, 3)) + SEX[:, None]
Y = (X.sum(axis=1) + RNG.normal(size=900) > 1).astype(int)


def fitted(y: Any = Y, constraints: Any = "equalized_odds:0.05", **options: Any) -> ways.game:
    options = {
        "epsilon": 3.0,
        "rounds": 8,
        "random_state": 0,
        "protects": "sensitive_features",
        **options,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        groups = None if constraints is None else SEX
        return made(ways.game, constraints, **options).fit(X, y, sensitive_features=groups)


def candidates() -> list[Any]:
    return [LogisticRegression(C=c).fit(X[::2] ** 3, Y[::2]) for c in (1e-5, 1e-3, 1.0)]


def equal(one: Any, other: Any, **groups: Any) -> None:
    assert (one.predict_proba(X, **groups) == other.predict_proba(X, **groups)).all()
    assert (
        one.predict(X, random_state=3, **groups) == other.predict(X, random_state=3, **groups)
    ).all()
    assert one.privacy_ == other.privacy_
    assert one.guarantee_ == other.guarantee_
    assert one.constraint_report_ == other.constraint_report_
    assert one.outcome_.plays == other.outcome_.plays
    assert [rule.key for rule in one.outcome_.rules] == [rule.key for rule in other.outcome_.rules]
    for name in ("bounds", "values", "spread", "duals", "counts"):
        assert np.array_equal(getattr(one.outcome_, name), getattr(other.outcome_, name))
    assert (one.outcome_.rows, one.outcome_.reason, one.n_iter_) == (
        other.outcome_.rows,
        other.outcome_.reason,
        other.n_iter_,
    )
    assert one.groups_ == other.groups_
    assert one.cells_ == other.cells_
    assert (one.classes_ == other.classes_).all()
    assert one.plays_.tolist() == other.plays_.tolist()
    assert {name for name in vars(one) if name.endswith("_")} == {
        name for name in vars(other) if name.endswith("_")
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"oracle": "exponential"},
        {"oracle": "labellings"},
        {"oracle": "descent", "protects": "records"},
        {"group_aware": True, "constraints": fv.FalsePositiveRateParity(0.1)},
        {"constraints": None},
        {"epsilon": math.inf},
        {"y": np.array(["no", "yes"])[Y]},
        {"y": Y + (X[:, 1] > 1), "constraints": "demographic_parity:0.2"},
    ],
    ids=str,
)
def test_on_disk_to_the_bit(options: Any, tmp_path: Path) -> None:
    clf = fitted(**options)
    again = fv.load(fv.save(clf, tmp_path / "game"))
    groups = {"sensitive_features": SEX} if options.get("group_aware") else {}
    equal(clf, again, **groups)
    assert str(again.get_params()) == str(clf.get_params())
    assert fv.load(fv.save(again, tmp_path / "again")).guarantee_ == clf.guarantee_
    if groups:
        with pytest.raises(InputError, match="sensitive_features"):
            again.predict(X)


def test_candidates_are_handed_in_again(tmp_path: Path) -> None:
    listed = candidates()
    clf = fitted(oracle="exponential", candidates=listed)
    path = fv.save(clf, tmp_path / "game")
    assert not list(path.glob("*.npz"))
    equal(clf, fv.load(path, estimator=listed))
    for wrong in (None, listed[:2], [*listed[:2], Strange()], listed[0]):
        with pytest.raises(InputError, match="candidates"):
            fv.load(path, estimator=wrong)
    with pytest.raises(InputError, match="estimator"):
        fv.load(fv.save(fitted(), tmp_path / "other"), estimator=listed)


class Strange:
    def predict(self, x: Any) -> Any:
        return np.zeros(len(x))


def test_damage_is_an_error(tmp_path: Path) -> None:
    path = fv.save(fitted(), tmp_path / "game")
    content = json.loads((path / "estimator.json").read_text())
    for change in (
        {"outcome": content["outcome"] | {"plays": [1]}},
        {"outcome": {}},
        {"candidates": ["LogisticRegression"]},
        {"coding": content["coding"] | {"type": "magic"}},
        {"kind": "FairRegressor"},
    ):
        (path / "estimator.json").write_text(json.dumps(content | change))
        with pytest.raises(InputError):
            fv.load(path)
    (path / "estimator.json").write_text(json.dumps(content))
    fv.load(path)
    statement = (path / "statement.json").read_text()
    (path / "statement.json").write_text(statement.replace("3", "4", 1))
    with pytest.raises(ChecksumError):
        fv.load(path)


@pytest.mark.parametrize("oracle", ["thresholds", "listed"])
def test_no_fitted_attribute_holds_a_row(oracle: str) -> None:
    """A pickle of the fitted estimator would hold what it reaches: 900 rows of three numbers are
    21,600 bytes."""
    clf = fitted(
        oracle="exponential", candidates=candidates() if oracle == "listed" else "thresholds"
    )
    assert len(pickle.dumps(clf)) < 20_000
    assert np.ascontiguousarray(X[:, 1]).tobytes()[:80] not in pickle.dumps(clf)
