"""What no door does is refused with a typed error that says why, reserves nothing for long, and
stands on the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors import SCHEMA, Place, place_in, remote_data
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fairveil as fv
from fairveil.errors import InputError, PrivacyError
from fairveil.serving import RemoteData

PAGE = Path(__file__).parent.parent.parent / "docs" / "remote.md"
BY = fv.RateConstrainedClassifier


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(tmp_path_factory.mktemp("holder"), epsilon=60.0)


@pytest.fixture(scope="module")
def data(place: Place) -> Iterator[RemoteData]:
    with remote_data(place) as found:
        yield found[0]


def linear() -> Any:
    """A finished model of another library."""
    numbers = np.random.default_rng(0).normal(size=(20, 5))
    return LogisticRegression().fit(numbers, numbers[:, 0] > 0)


def network(data: Any) -> Any:
    torch = pytest.importorskip("torch")
    return BY(model=torch.nn.Linear(5, 1), solver=fv.Descent(rounds=3), public_rows=1500).fit(data)


REFUSED: dict[str, tuple[str, Any, str]] = {
    "network": ("torch modules", network, "runs code that is not the holder's"),
    "choice": (
        'method="exponential"',
        lambda data: fv.GroupObjectiveClassifier(method="exponential").fit(data),
        "by a function",
    ),
    "foreign": (
        "models of other libraries",
        lambda data: fv.certify(linear(), data, constraints="demographic_parity:0.3", epsilon=1.0),
        "a fitted linear or additive model of Fairveil",
    ),
    "selection": (
        'PrivateSearchCV(way="selection")',
        lambda data: fv.PrivateSearchCV(
            BY(solver=fv.Descent(rounds=3)),
            {"solver__clip": [0.5, 2.0]},
            epsilon=3.0,
            way="selection",
        ).fit(data),
        "a search of all",
    ),
    "pipeline": (
        "of a pipeline",
        lambda data: fv.PrivateSearchCV(
            make_pipeline(FunctionTransformer(), BY(solver=fv.Descent(rounds=3))),
            {"rateconstrainedclassifier__solver__clip": [0.5, 2.0]},
            epsilon=3.0,
        ).fit(data),
        "no steps before remote data",
    ),
    "groups": (
        "release_groups",
        lambda data: fv.release_groups(data, epsilon=1.0),
        "features and labels",
    ),
    "released": (
        "ReleasedClassifier",
        lambda data: fv.ReleasedClassifier().fit(data),
        "a ReleasedGroups",
    ),
    "persons": (
        "`unit=`",
        lambda data: BY(unit="town", max_rows_per_unit=3, solver=fv.Descent(rounds=3)).fit(data),
        "one row a person",
    ),
    "weights": (
        "weights as arrays",
        lambda data: BY(solver=fv.Descent(rounds=3)).fit(data, sample_weight=np.ones(3)),
        "None beside remote data",
    ),
    "another column": (
        "weights as arrays",
        lambda data: BY(solver=fv.Descent(rounds=3)).fit(data, sample_weight="a"),
        "serves no weights",
    ),
    "labels": (
        "y, groups and weights as arrays",
        lambda data: BY(solver=fv.Descent(rounds=3)).fit(data, np.ones(3)),
        "None beside remote data",
    ),
    "group regressor": (
        "a target of classes",
        lambda data: fv.GroupObjectiveRegressor().fit(data),
        "a target that is a number",
    ),
    "tailored regressor": (
        "a target of classes",
        lambda data: fv.TailoredRegressor().fit(data),
        "a target that is a number",
    ),
    "choice of a number": (
        'method="exponential"',
        lambda data: fv.GroupObjectiveRegressor(method="exponential").fit(data),
        "by a function",
    ),
    "bounds": (
        "unsafe_data_dependent_bounds",
        lambda data: BY(unsafe_data_dependent_bounds=True).fit(data),
        "a door can do",
    ),
    "no privacy": (
        "epsilon=inf",
        lambda data: BY(epsilon=float("inf"), solver=fv.Descent(rounds=3)).fit(data),
        "expected",
    ),
    "ledger": (
        "ledger=",
        lambda data: BY(
            solver=fv.Descent(rounds=3), ledger=fv.Ledger.create(None, "m", 9.0, 1e-6)
        ).fit(data),
        "the holder's",
    ),
    "checkpoint": (
        "checkpoint=",
        lambda data: BY(solver=fv.Descent(rounds=3), checkpoint="folder").fit(data),
        "a checkpoint of the analyst's",
    ),
    "schema": (
        "the holder's schema",
        lambda data: BY(solver=fv.Descent(rounds=3), schema=SCHEMA.without("town")).fit(data),
        "the holder's schema",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_door_does_is_refused_with_its_reason(
    name: str, place: Place, data: RemoteData
) -> None:
    written, call, words = REFUSED[name]
    before = place.ledger().balance().spent_share
    with pytest.raises((InputError, PrivacyError), match=words):
        call(data)
    after = place.ledger().balance()
    assert after.open == 0
    assert after.spent_share == before
    assert written in PAGE.read_text("utf-8") or written == "the holder's schema"
