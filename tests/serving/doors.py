"""A small data set behind a door, for tests: made-up applicants, a ledger, a key, and a service on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairveil.data import load_csv
from fairveil.facts import Category, Ignored, Number, Schema
from fairveil.privacy.ledger import Ledger
from fairveil.privacy.statement import signing_keys
from fairveil.serving.analyst.remote import RemoteData, remote
from fairveil.serving.door.door import Door
from fairveil.serving.door.holder import Holder
from fairveil.serving.door.measures import Measures
from fairveil.serving.door.running import running
from fairveil.serving.door.service import Service

SCHEMA = Schema(
    {
        "a": Number(-1, 1),
        "b": Number(-1, 1),
        "town": Category(("x", "y", "z")),
        "sex": Category(("f", "m")),
        "hired": Category(("no", "yes")),
    },
    target="hired",
    sensitive="sex",
    rows=1500,
)


WIDE = Schema(
    {
        "a": Number(-1, 1),
        "b": Number(-1, 1),
        "town": Category(("x", "y", "z")),
        "sex": Category(("f", "m")),
        "pay": Number(0, 10),
        "weight": Ignored(),
        "person": Ignored(),
    },
    target="pay",
    sensitive="sex",
    rows=1500,
)
"""The same people with a number to be predicted; a weight each; and persons with several rows."""
PERSONS = Schema(SCHEMA.columns, target="hired", sensitive="sex", rows=1500, unit="person", max_rows_per_unit=4)


def write_table(path: Path, rows: int = 1500, seed: int = 0) -> None:
    """Applicants, of whom one group is hired more often."""
    rng = np.random.default_rng(seed)
    sex, numbers, town = rng.integers(2, size=rows), rng.uniform(-1, 1, size=(rows, 2)).round(6), rng.integers(3, size=rows)
    hired = numbers.sum(axis=1) + 0.6 * sex + 0.2 * town + 0.5 * rng.normal(size=rows) > 0.5
    pay = np.clip(5 + 2 * numbers.sum(axis=1) + sex + rng.normal(size=rows), 0, 10).round(4)
    weight, person = rng.uniform(0, 5, size=rows).round(3), rng.integers(rows // 3, size=rows)
    lines = [
        f"{one[0]:.6f},{one[1]:.6f},{'xyz'[t]},{'fm'[s]},{'yes' if h else 'no'},{p:.4f},{w:.3f},p{i}"
        for one, t, s, h, p, w, i in zip(numbers, town, sex, hired, pay, weight, person, strict=True)
    ]
    path.write_text("\n".join(["a,b,town,sex,hired,pay,weight,person", *lines]) + "\n")


@dataclass
class Place:
    """A folder with everything that a holder needs."""

    folder: Path
    rows: Any

    @property
    def config(self) -> Path:
        return self.folder / "holder.toml"

    @property
    def public_key(self) -> Path:
        return self.folder / "holder.pub"

    def ledger(self) -> Ledger:
        return Ledger.open(str(self.folder / "budget.db"), "applicants")

    def door(self) -> Door:
        return Door.opened(Holder.load(self.config))


def place_in(
    folder: Path,
    *,
    epsilon: float = 20.0,
    delta: float = 1e-4,
    seeded: bool = True,
    limits: str = "",
    schema: Schema = SCHEMA,
    weights: str | None = None,
    **terms: Any,
) -> Place:
    """Write it all down."""
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / "applicants.csv")
    (folder / "applicants.toml").write_text(schema.to_toml())
    Ledger.create(str(folder / "budget.db"), "applicants", epsilon, delta, **terms).close()  # no files of SQLite's beside it
    if not (folder / "holder.key").exists():
        signing_keys.new_key(folder / "holder.key")
    limited = f"[limits]\n{limits}\n" if limits else ""
    flags = "seeded = true\n" if seeded else ""
    flags += "features_served = true\n" if terms.get("protects") == "sensitive_features" else ""
    flags += "" if weights is None else f'weights = "{weights}"\n'
    (folder / "holder.toml").write_text(
        f'[door]\nname = "Office"\nfolder = "door"\nsigning_key = "holder.key"\nport = 0\n{limited}'
        f'[datasets.applicants]\nrows = "applicants.csv"\nschema = "applicants.toml"\nledger = "budget.db"\n{flags}'
    )
    return Place(folder, load_csv(folder / "applicants.csv", schema, in_memory=True))


@contextmanager
def served(place: Place, log: Any = None) -> Iterator[tuple[Door, str]]:
    """The door, open, and its address."""
    door = place.door()
    try:
        with running(door, Service(door, Measures(log))) as url:
            yield door, url
    finally:
        door.close()


@contextmanager
def remote_data(place: Place, **scope: Any) -> Iterator[tuple[RemoteData, Door, str]]:
    """The data set, as an analyst has it."""
    with served(place) as (door, url):
        token = door.tokens.issue("analyst", **scope)
        data = remote(url, "applicants", token=token, key=place.public_key)
        try:
            yield data, door, token
        finally:
            data.close()
