"""Small tables with groups."""

from __future__ import annotations

import numpy as np
import pytest
from estimator_samples import Columns

import fairveil as fv


@pytest.fixture(scope="session")
def people() -> Columns:
    """800 rows of numbers and words, with two sensitive columns."""
    rng = np.random.default_rng(1)
    rows = 800
    sex = np.array(["f", "m"])[rng.integers(2, size=rows)]
    region = np.array(["east", "north", "west"])[rng.integers(3, size=rows)]
    age = rng.integers(18, 80, size=rows)
    hours = rng.uniform(0, 60, size=rows)
    job = np.array(["clerk", "none", "smith"])[rng.integers(3, size=rows)]
    score = (
        hours / 30
        - 1
        + (job == "smith")
        - (job == "none")
        + 0.3 * (sex == "m")
        + rng.normal(size=rows)
    )
    return {
        "age": age,
        "hours": hours,
        "job": job,
        "union": rng.integers(2, size=rows).astype(bool),
        "sex": sex,
        "region": region,
        "hired": np.where(score > 0, "yes", "no"),
    }


@pytest.fixture(scope="session")
def schema() -> fv.facts.Schema:
    """The public facts of `people`."""
    from fairveil.facts import Boolean, Category, Number, Schema

    columns = {
        "age": Number(0, 100),
        "hours": Number(0, 80),
        "job": Category(("none", "clerk", "smith", "other"), unknown="other"),
        "union": Boolean(),
        "sex": Category(("f", "m")),
        "hired": Category(("no", "yes")),
    }
    return Schema(columns, target="hired", sensitive=["sex"], rows=1000)
