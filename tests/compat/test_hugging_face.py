"""Data sets of Hugging Face, in and out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairveil.compat import hugging_face as tables
from fairveil.errors import InputError

datasets = pytest.importorskip("datasets", reason="datasets is not installed")


def people(rows: int = 40) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(16, 80, rows), "town": rng.choice(["a", "b"], rows)})
    return X, rng.choice(["no", "yes"], rows), pd.DataFrame({"sex": rng.choice(["f", "m"], rows)})


def test_guarantee_1_columns_come_back_as_they_went_in() -> None:
    X, y, sex = people()
    dataset = tables.to_dataset(X, y, sex, target="hired")
    assert dataset.column_names == ["age", "town", "sex", "hired"]
    back = tables.from_dataset(dataset, target="hired", sensitive=["sex"])
    pd.testing.assert_frame_equal(back.X.astype(object), X.astype(object))
    assert back.y.tolist() == y.tolist()
    assert back.sensitive_features["sex"].tolist() == sex["sex"].tolist()
    assert back.sample_weight is None
    some = tables.from_dataset(
        dataset, target="hired", sensitive=["sex"], features=["town"], weight="age"
    )
    assert list(some.X) == ["town"]
    assert np.array_equal(some.sample_weight, X["age"])


def test_guarantee_1_codes_of_a_class_label_have_their_names() -> None:
    X, y, sex = people()
    labels = datasets.ClassLabel(names=["no", "yes"])
    dataset = tables.to_dataset(X, (y == "yes").astype(int), sex, target="hired").cast_column(
        "hired", labels
    )
    assert tables.from_dataset(dataset, target="hired", sensitive=["sex"]).y.tolist() == y.tolist()


def test_bad_arguments_are_refused() -> None:
    X, y, sex = people()
    dataset = tables.to_dataset(X, y, sex, target="hired")
    bad: list[dict[str, Any]] = [
        {"target": "hird", "sensitive": ["sex"]},
        {"target": "hired", "sensitive": "sex"},
        {"target": "hired", "sensitive": []},
        {"target": "hired", "sensitive": ["hired"]},
        {"target": "hired", "sensitive": ["sex"], "features": ["income"]},
        {"target": "hired", "sensitive": ["sex"], "features": []},
        {"target": "hired", "sensitive": ["sex"], "weight": "w"},
    ]
    for options in bad:
        with pytest.raises(InputError):
            tables.from_dataset(dataset, **options)
    with pytest.raises(InputError, match=r"dataset\['train'\]"):
        tables.from_dataset(
            datasets.DatasetDict({"train": dataset}), target="hired", sensitive=["sex"]
        )
    with pytest.raises(InputError):
        tables.from_dataset(X, target="hired", sensitive=["sex"])
    for wrong in (
        (X, y[:3], sex, "hired"),
        (X, y, sex, "age"),
        (X.assign(sex="f"), y, sex, "hired"),
    ):
        with pytest.raises(InputError):
            tables.to_dataset(*wrong[:3], target=wrong[3])
