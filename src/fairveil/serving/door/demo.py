"""A door that is ready in a moment: made-up applicants, a ledger, a key and a token, in one folder
on this machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...data import load_csv, write_store
from ...facts import Category, Number, Schema
from ...ledger import Ledger
from ...statement import signing

ROWS = 20_000
EPSILON, DELTA = 10.0, 1e-6
SCHEMA = Schema(
    {
        "age": Number(18, 80),
        "tests_passed": Number(0, 20),
        "degree": Category(("none", "school", "university")),
        "sex": Category(("f", "m"), shares=(0.5, 0.5)),
        "hired": Category(("no", "yes")),
    },
    target="hired",
    sensitive=("sex",),
    rows=ROWS,
    name="applicants",
    source="made up: nobody's records",
)
CONFIG = """[door]
name = "A made-up employer"
folder = "door"
signing_key = "holder.key"
port = {port}

[datasets.applicants]
rows = "applicants.store"
schema = "applicants.toml"
ledger = "budget.db"
title = "20,000 made-up applicants"
terms = "For trying out alone."
"""


def prepare(folder: Path, port: int) -> Path:
    """Write what is not there yet; the configuration's path."""
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / "applicants.store"
    if not store.exists():
        table = folder / "applicants.csv"
        _write_table(table)
        (folder / "applicants.toml").write_text(SCHEMA.to_toml())
        write_store(load_csv(table, SCHEMA), store)
        table.unlink()
    if not (folder / "budget.db").exists():
        Ledger.create(folder / "budget.db", "applicants", EPSILON, DELTA, schema=SCHEMA)
    if not (folder / "holder.key").exists():
        signing.new_key(folder / "holder.key")
    config = folder / "holder.toml"
    config.write_text(CONFIG.format(port=port))
    return config


def _write_table(path: Path) -> None:
    rng = np.random.default_rng(0)
    sex, degree = rng.integers(2, size=ROWS), rng.integers(3, size=ROWS)
    age, tests = rng.integers(18, 81, size=ROWS), rng.integers(0, 21, size=ROWS)
    score = (
        (tests - 10) / 5 + 0.4 * degree + 0.5 * sex - (age - 45) ** 2 / 1500 + rng.normal(size=ROWS)
    )
    degrees = ("none", "school", "university")
    lines = [
        f"{a},{t},{degrees[d]},{'fm'[s]},{'yes' if h else 'no'}"
        for a, t, d, s, h in zip(age, tests, degree, sex, score > 0.5, strict=True)
    ]
    path.write_text("\n".join(["age,tests_passed,degree,sex,hired", *lines]) + "\n")
