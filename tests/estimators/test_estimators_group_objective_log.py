"""`GroupObjectiveClassifier(loss="log")`: the model's probabilities are returned, and its
likeliest class is predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import group_objective_samples as s
import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.estimators import wrapped
from fairveil.fairness import BoundedGroupLoss
from fairveil.models import LinearModel


def fitted(classes: int = 2, **options: Any) -> tuple[ways.objective, Any, Any]:
    X, y, A = s.sample(classes)
    bound = BoundedGroupLoss(1.0, loss="log")
    clf = s.quietly(
        s.fair(constraint=bound, loss="log", **options), X, y, sensitive_features=A["a0"]
    )
    return clf, X, y


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_probabilities_are_the_models_and_the_likeliest_class_is_predicted(
    protects: str, classes: int
) -> None:
    clf, X, y = fitted(classes, protects=protects, rounds=60)
    law = clf.predict_proba(X)
    model = clf.model_
    assert isinstance(model, LinearModel)
    assert np.array_equal(
        law, np.concatenate([model.predict_proba(block) for block in clf._blocks(X)])
    )
    assert law.sum(axis=1) == pytest.approx(1.0)
    assert 0.0 < law.min() < law.max() < 1.0  # they were 0 and 1
    assert (law.max(axis=1) < 0.9).mean() > 0.1
    expected = clf.classes_[law.argmax(axis=1)]
    for seed in (None, 0, 1):
        assert np.array_equal(clf.predict(X, random_state=seed), expected)
    assert clf.score(X, y) == pytest.approx((expected == y).mean())


def test_the_released_losses_are_those_of_the_probabilities() -> None:
    clf, X, y = fitted(epsilon=float("inf"), rounds=60)
    law = clf.predict_proba(X)
    each = -np.log(law[np.arange(len(y)), y])  # without privacy they are not cut
    assert clf.objective_ == pytest.approx(each.mean(), abs=1e-9)
    told = clf.constraint_report_.lines
    assert [line.value for line in told] == pytest.approx(
        [each[k == s.SEX].mean() for k in (0, 1)], abs=1e-9
    )


def test_a_copy_from_disk_returns_the_same(tmp_path: Path) -> None:
    clf, X, _ = fitted()
    again = fv.load(fv.save(clf, tmp_path / "model"))
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert np.array_equal(again.predict(X), clf.predict(X))


def test_a_post_processor_takes_its_decisions_and_not_its_probabilities_for_a_distribution() -> (
    None
):
    clf, X, y = fitted()
    assert not wrapped.is_randomised(clf)
    assert wrapped.is_randomised(s.quietly(s.fair(), X, y, sensitive_features=s.SEX))
    assert np.array_equal(wrapped.decisions_of(clf, X, (0, 1), len(y), 0), clf.predict(X))


def test_without_chance_it_is_what_it_was() -> None:
    clf, X, _ = fitted()
    plain = clf.derandomise()
    assert np.array_equal(plain.predict(X), clf.predict(X))
    assert np.array_equal(plain.predict_proba(X), clf.predict_proba(X))
