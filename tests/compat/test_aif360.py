"""AIF360's data sets, in and out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairveil.compat import aif360 as tables
from fairveil.errors import InputError

pytest.importorskip("aif360", reason="aif360 is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def people(rows: int = 50) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(16, 80, rows), "hours": rng.integers(0, 60, rows)})
    return (
        X,
        rng.choice(["hired", "not"], rows),
        pd.DataFrame({"sex": rng.choice(["f", "m"], rows)}),
    )


OPTIONS: dict[str, Any] = {"favourable": "hired", "privileged": {"sex": ["m"]}}


@pytest.mark.parametrize("weighted", [True, False])
def test_guarantee_1_what_went_in_comes_back(weighted: bool) -> None:
    X, y, sex = people()
    weights = np.linspace(0.5, 1.5, len(y)) if weighted else None
    dataset = tables.to_dataset(X, y, sex, sample_weight=weights, **OPTIONS)
    assert dataset.favorable_label == 1.0
    back = tables.from_dataset(dataset)
    assert np.array_equal(back.X.to_numpy(), X.to_numpy())
    assert list(back.X) == list(X)
    assert back.y.tolist() == y.tolist()
    expected = np.where(sex["sex"] == "m", "privileged", "unprivileged")
    assert back.sensitive_features["sex"].tolist() == expected.tolist()
    assert (back.sample_weight is None) == (weights is None)
    if weights is not None:
        assert np.array_equal(back.sample_weight, weights)
    assert "sex" in repr(back)
    assert str(X["age"].iloc[0]) not in repr(back)


def test_codes_without_names_stay_codes() -> None:
    X, y, sex = people()
    dataset = tables.to_dataset(X, y, sex, **OPTIONS)
    dataset.metadata = {}
    back = tables.from_dataset(dataset)
    assert set(back.y) == {0.0, 1.0}
    assert set(back.sensitive_features["sex"]) == {0.0, 1.0}


def test_bad_tables_are_refused() -> None:
    X, y, sex = people()
    bad: list[tuple[Any, Any, Any, dict[str, Any]]] = [
        (X[:10], y, sex, OPTIONS),
        (X, y, sex, {**OPTIONS, "favourable": "maybe"}),
        (X, y, sex, {**OPTIONS, "privileged": {"gender": ["m"]}}),
        (X.assign(town="a"), y, sex, OPTIONS),
        (X.assign(age=np.nan), y, sex, OPTIONS),
        (X.assign(sex=1), y, sex, OPTIONS),
    ]
    for features, labels, groups, options in bad:
        with pytest.raises(InputError):
            tables.to_dataset(features, labels, groups, **options)
    with pytest.raises(InputError, match="AIF360"):
        tables.from_dataset(X)
