"""Rows cut into recipes, and the questions that all kinds of shards must answer alike."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv
from fairveil import data
from fairveil.core.extra.sharded import ShardedRows, Taking
from fairveil.core.noise import NoiseSource
from fairveil.curator import (
    CellCounts,
    Curator,
    FeatureSums,
    GradientSum,
    GroupLosses,
    Linear,
    Measurement,
    NumberMoments,
    Part,
    Poisson,
    PredictionHistogram,
    RowCount,
)
from fairveil.data.pieces import pieces_of
from fairveil.errors import ChecksumError, PrivacyError
from fairveil.facts.rows import Traits
from fairveil.privacy import Promise

SCHEMA = data.Schema(
    {
        "age": data.Number(17, 90),
        "hours": data.Number(0, 100),
        "job": data.Category(("private", "state", "none")),
        "sex": data.Category(("f", "m")),
        "hired": data.Category(("no", "yes")),
    },
    target="hired",
    sensitive=("sex",),
)
PLANTED = "73.1234567"  # of the one row that must never be seen


def table(rows: int = 600, seed: int = 0) -> dict[str, Any]:
    """Rows, one of which has the planted number."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(2, size=rows)
    age = rng.integers(17, 90, rows).astype(float)
    age[rows // 2] = float(PLANTED)
    hours = rng.integers(0, 100, rows).astype(float)
    return {
        "age": age,
        "hours": hours,
        "job": rng.choice(["private", "state", "none"], rows),
        "sex": np.array(["f", "m"])[sex],
        "hired": np.where(age + hours / 2 + 15 * sex + rng.normal(0, 20, rows) > 80, "yes", "no"),
    }


def written(folder: Path, kind: str, rows: int = 600) -> Any:
    """A coded store of 18 blocks, or a folder of Parquet files with 18 row groups in all."""
    found = table(rows)
    if kind == "store":
        source = data.encode(found, SCHEMA, block_rows=-(-rows // 18))
        return data.write_store(source, folder / "people.store", block_rows=-(-rows // 18))
    import pyarrow as pa
    from pyarrow import parquet

    (folder / "people").mkdir()
    whole, cut = pa.table(found), rows // 2
    for name, part in (("0.parquet", whole[:cut]), ("1.parquet", whole[cut:])):
        parquet.write_table(part, folder / "people" / name, row_group_size=-(-cut // 9))
    (folder / "people" / "_SUCCESS").touch()
    return folder / "people"


def recipes(source: Any, shards: int) -> tuple[Any, ...]:
    """The pieces of a source."""
    return pieces_of(source, SCHEMA, shards=shards)[1]


def rows_of(shards: Any) -> ShardedRows:
    """As an estimator makes them."""
    encoding = data.Encoding(SCHEMA)
    return ShardedRows(shards, Taking(encoding.layout), data.EncodedRows(encoding, ()))


def answers(rows: Any, *, between: Any = None) -> list[np.ndarray]:
    """What a run of every kind of question and batch gets, with noise that repeats. `between`:
    called after each round."""
    found: list[np.ndarray] = []
    told = between or (lambda: None)
    for promise in (
        Promise(1e4, 1e-6, neighbours="replace-one"),
        Promise(1e4, 1e-6, protects="sensitive_features"),
        Promise(float("inf"), 0.0),
    ):
        curator = Curator(rows, promise, noise=NoiseSource.seeded(7))
        cells, weights = rows.cells(), np.linspace(-1, 1, 1 + rows.layout.width)
        model = Linear(weights)
        costs = np.array([[[0.0, 0.3]], [[0.0, -0.2]]])
        step = [
            Measurement(GradientSum(model, 1.0, cells, costs), 9.0),
            Measurement(PredictionHistogram(model, cells, "soft", by_label=True), 9.0),
        ]
        for batch in (Part(1, 7), Poisson(0.3)):
            found += curator.answer(step, batch)
            told()
        curator.rescale(np.full(2, 1.7), np.full(2, 0.01))
        measurements = [
            CellCounts(cells, by_label=True),
            RowCount(),
            FeatureSums(cells, 2.0),
            NumberMoments(2.0),
            GroupLosses(model, cells),
        ]
        found += curator.answer(step)
        found += curator.answer([*step, *(Measurement(one, 9.0) for one in measurements)])
        told()
        candidates = Linear(np.stack([weights, -weights, weights * 0])[:, np.newaxis])
        chosen = curator.choose(GroupLosses(candidates, cells), 0.5)
        by_cost = curator.choose(
            PredictionHistogram(candidates, cells),
            0.5,
            costs=np.array([[[0.0, 1.0]], [[1.0, 0.0]]]),
        )
        found += [np.array([chosen, by_cost])]
        told()
    return found


def same(found: list[np.ndarray], truth: list[np.ndarray]) -> bool:
    """To the bit."""
    return len(found) == len(truth) and all(
        np.array_equal(a, b) for a, b in zip(found, truth, strict=True)
    )


@dataclass(frozen=True)
class Wrong:
    """A recipe whose rows raise what shows them: of a source that breaks when it is asked, not when
    it is opened."""

    folder: str
    kind: str = "raise"

    def open(self) -> Any:
        """Sound the first time."""
        return _Breaking(self)


class _Breaking:
    traits = Traits(is_streamed=True)

    def __init__(self, of: Wrong) -> None:
        self._of, self._seen = of, 0
        self._rows = data.encode(table(60), SCHEMA)

    @property
    def layout(self) -> Any:
        return self._rows.layout

    def blocks(self) -> Any:
        self._seen += 1
        if self._of.kind == "die":
            os._exit(9)
        if self._of.kind == "sleep" and self._seen > 2:
            time.sleep(60)
        if self._seen > 2:
            print(PLANTED)
            raise ValueError(f"the row of {PLANTED} years")
        return self._rows.blocks()


@dataclass(frozen=True)
class Halting:
    """A recipe whose shard stops at the end of a pass, before it answers, where `folder` has a file
    "halt": one shard takes it, says which process it is, and waits to be killed."""

    folder: str
    part: int
    parts: int

    def open(self) -> Any:
        """Part of the table."""
        return _Halting(self)

    @staticmethod
    def recipes(folder: Path, parts: int) -> list[Halting]:
        """The whole table."""
        return [Halting(str(folder), part, parts) for part in range(parts)]


class _Halting:
    def __init__(self, of: Halting) -> None:
        whole = table()
        rows = len(whole["age"])
        cut = slice(rows * of.part // of.parts, rows * (of.part + 1) // of.parts)
        self._of, self._passes = of, 0
        self._rows = data.encode({name: column[cut] for name, column in whole.items()}, SCHEMA)

    @property
    def layout(self) -> Any:
        return self._rows.layout

    def blocks(self) -> Any:
        return self._rows.blocks()

    @property
    def traits(self) -> Traits:
        """It is looked at when a pass begins and ends."""
        return Traits(require_same=self.require_same)

    def require_same(self) -> None:
        """Called when a pass begins and when it ends."""
        self._passes += 1
        folder = Path(self._of.folder)
        if self._passes % 2:
            return
        try:
            (folder / "halt").rename(folder / f"halted-{os.getpid()}")
        except FileNotFoundError:
            return
        while True:
            time.sleep(60)


class Killer:
    """Called after rounds, lets one shard halt in the middle of the next, by chance, and kills its
    process there."""

    def __init__(self, folder: Path, seed: int, most: int) -> None:
        self.killed: list[int] = []
        self._folder, self._chance, self._left = folder, random.Random(seed), most

    def __call__(self) -> None:
        if self._left and self._chance.random() < 0.5:
            self._left -= 1
            (self._folder / "halt").touch()
            threading.Thread(target=self._kill, daemon=True).start()

    def _kill(self) -> None:
        while not (found := list(self._folder.glob("halted-*"))):
            time.sleep(0.01)
        found[0].unlink()
        self.killed.append(int(found[0].name.partition("-")[2]))
        os.kill(self.killed[-1], signal.SIGKILL)


def refuses_and_spends_nothing(
    make: Any, folder: Path, words: str, kind: Any = (ChecksumError, PrivacyError)
) -> None:
    """A fit to `make()` is refused with a typed error that shows no row, before anything is
    reserved in its ledger."""
    ledger = fv.Ledger.create(folder / "ledger.db", "people", epsilon=5.0, delta=1e-5)
    clf = fv.FairClassifier(
        "demographic_parity:0.1",
        epsilon=2.0,
        solver=fv.PrimalDual(rounds=3),
        random_state=0,
        ledger=ledger,
    )
    with pytest.raises(kind, match=words) as error:
        clf.fit(make())
    assert PLANTED not in f"{error.value!r} {error.value.__context__!r} {error.value.__cause__!r}"
    balance = ledger.balance()
    assert (balance.spent, balance.open, balance.committed) == (0, 0, 0)


def spoilt(folder: Path, how: str) -> Any:
    """A source, and what is done to its files once it was made: other rows, fewer bytes, another
    store."""
    source = written(folder, "parquet" if how == "another file" else "store")

    def spoil() -> None:
        if how == "another file":
            import pyarrow as pa
            from pyarrow import parquet

            parquet.write_table(pa.table(table(300, seed=9)), folder / "people" / "0.parquet")
        elif how == "cut short":
            file = folder / "people.store"
            os.truncate(file, file.stat().st_size - 64)
        else:
            data.write_store(
                data.encode(table(600, seed=9), SCHEMA), folder / "people.store", overwrite=True
            )

    return source, spoil


SPOILT = {
    "another file": "the file that was cut",
    "cut short": "bytes",
    "another store": "the store that was cut",
}
