"""Fits of rows in shards: the guarantees of `estimators/reading/sharded.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil import data
from fairveil.errors import InputError, PrivacyError
from fairveil.facts import Schema
from knobs import made
from shards_here import Here

SCHEMA = data.Schema(
    {
        "age": data.Number(17, 90),
        "hours": data.Number(0, 100),
        "job": data.Category(("private", "state", "none")),
        "sex": data.Category(("f", "m")),
        "hired": data.Category(("no", "yes")),
    },
    target="hired",
    sensitive="sex",
    rows=1000,
)


def table(rows: int = 1000) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sex, age, hours = (
        rng.integers(2, size=rows),
        rng.integers(17, 90, rows),
        rng.integers(0, 100, rows),
    )
    hired = age + hours / 2 + 15 * sex + rng.normal(0, 20, rows) > 80
    return {
        "age": age,
        "hours": hours,
        "job": rng.choice(["private", "state", "none"], rows),
        "sex": np.array(["f", "m"])[sex],
        "hired": np.where(hired, "yes", "no"),
    }


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[Here]:
    store = data.write_store(
        data.encode(table(), SCHEMA, block_rows=100), tmp_path / "s", block_rows=100
    )
    with Here(store, shards=3) as found:
        yield found


@pytest.mark.parametrize(
    "made",
    [
        lambda **k: made(fv.FairClassifier, "demographic_parity:0.1", epsilon=3.0, **k),
        lambda **k: made(
            fv.FairClassifier,
            "equalized_odds:0.1",
            epsilon=3.0,
            protects="sensitive_features",
            **k,
        ),
        lambda **k: made(fv.FairClassifier, None, epsilon=3.0, model=fv.Additive(), **k),
        lambda **k: made(ways.fermi, "demographic_parity", strength=1.0, epsilon=3.0, **k),
        lambda **k: made(ways.tailored, epsilon=3.0, **k),
    ],
    ids=["rates", "rates-sensitive", "additive", "fermi", "tailored"],
)
def test_guarantee_1_a_fit_of_shards_is_that_of_memory(shards: Here, made: Any) -> None:
    here = made(random_state=0).fit(data.encode(table(), SCHEMA))
    there = made(random_state=0).fit(shards)
    assert np.array_equal(there.coef_, here.coef_)
    assert there.privacy_ == here.privacy_


def test_guarantee_2_what_shards_cannot_answer_is_refused_before_anything_is_reserved(
    shards: Here, tmp_path: Path
) -> None:
    book = fv.Ledger.create(
        f"sqlite:///{tmp_path}/book.db", dataset="people", epsilon=10.0, delta=1e-5
    )
    for fit in (
        lambda: fv.FairClassifier(None, ledger=book).fit(shards, sample_weight=np.ones(1000)),
        lambda: fv.FairClassifier(
            None, ledger=book, schema=Schema(unsafe_data_dependent_bounds=True)
        ).fit(shards),
    ):
        with pytest.raises(InputError, match="coded store"):
            fit()
    assert book.is_untouched


def test_guarantee_3_a_public_copy_of_a_sensitive_column_is_refused(tmp_path: Path) -> None:
    rows = table()
    rows["job"] = np.where(rows["sex"] == "f", "private", "state")
    store = data.write_store(
        data.encode(rows, SCHEMA, block_rows=100), tmp_path / "s", block_rows=100
    )
    fair = fv.FairClassifier("demographic_parity:0.1", protects="sensitive_features")
    with (
        Here(store, shards=3) as shards,
        pytest.raises(PrivacyError, match="'job'"),
    ):
        fair.fit(shards)
