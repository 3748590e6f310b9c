"""Shards in this process: the guarantees of `core/extra/sharded.py`, and of `distributed/dask_rows.py`
where no cluster is needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shard_samples import (
    PLANTED,
    SCHEMA,
    Wrong,
    answers,
    recipes,
    refuses_and_spends_nothing,
    rows_of,
    same,
    table,
    written,
)

from fairveil import data
from fairveil.core.extra.sharded import ShardFacts
from fairveil.curator import (
    CellCounts,
    Curator,
    GradientSum,
    Linear,
    PredictionHistogram,
    RowCount,
    RowFunction,
    Rows,
)
from fairveil.distributed import dask_rows
from fairveil.errors import ChecksumError, FairveilError, InputError, PrivacyError
from fairveil.privacy import NoiseSource, Promise
from fairveil.statement.document import PrivacyStatement
from shards_here import Here, ShardsHere, WorkersHere


@pytest.fixture(scope="module")
def truth() -> list[np.ndarray]:
    """What rows in memory answer."""
    return answers(Rows(data.encode(table(), SCHEMA)))


# ---- the contract: sharded 1, asking 1 and 2
# ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["store", "parquet"])
@pytest.mark.parametrize("shards", [1, 4, 17])
def test_the_same_bits_whatever_the_source_and_the_cut(
    tmp_path: Path, truth: Any, kind: str, shards: int
) -> None:
    found = recipes(written(tmp_path, kind), shards)
    assert len(found) == min(shards, 18) or kind == "parquet"
    assert same(answers(rows_of(ShardsHere(found))), truth)


def test_a_round_over_public_features_is_two_messages_a_shard(tmp_path: Path) -> None:
    """The largest contribution of a row, which the grid hangs on, and sums."""
    rows = rows_of(ShardsHere(recipes(written(tmp_path, "store"), 3)))
    workers: Any = rows.shards.workers  # type: ignore[attr-defined]
    asked, messages = workers.exchanged, list[Any]()

    def heard(lines: Any, patience: float) -> Any:
        messages.append(lines)
        return asked(lines, patience)

    workers.exchanged = heard
    cells, model = rows.cells(), Linear(np.full(1 + rows.layout.width, 0.01))
    promise = Promise(1e4, 1e-6, protects="sensitive_features")
    with Curator(rows, promise, noise=NoiseSource.seeded(0)) as curator:
        for k in range(12):
            costs = np.array([[[0.0, 0.3]], [[0.0, -0.2]]]) * (1.0 + 0.01 * k)
            gradient = GradientSum(model, 1.0, cells, costs)
            curator.answer([(gradient, 9.0), (PredictionHistogram(model, cells), 9.0)])
    assert len(messages) == 1 + 2 * 12  # the longest row, once


def test_an_answer_that_comes_twice_counts_once(tmp_path: Path) -> None:
    class Twice(WorkersHere):
        late: Any = None

        def exchanged(self, lines: Any, patience: float) -> Any:
            """The last shard is lost when it is first asked, and what it said comes beside its
            successor's answer, with that of the first once more."""
            found = super().exchanged(lines, patience)
            if next(iter(lines.values()))[-1][0] != "answer":
                return found
            if self.late is None:
                self.late = found
                return {number: found[number] for number in list(found)[:-1]}
            return {**self.late, **found}

    rows = rows_of(ShardsHere(recipes(written(tmp_path, "store"), 4), Twice()))
    assert Curator(rows, Promise(float("inf"), 0.0)).answer([(RowCount(), 0.0)])[0] == 600


def test_a_worker_that_never_answers_ends_the_fit_and_what_was_spent_stays(tmp_path: Path) -> None:
    class Lost(WorkersHere):
        lost = False

        def exchanged(self, lines: Any, patience: float) -> Any:
            return {} if self.lost else super().exchanged(lines, patience)

    workers = Lost()
    shards = ShardsHere(recipes(written(tmp_path, "store"), 2), workers)
    curator = Curator(rows_of(shards), Promise(5.0, 1e-6))
    curator.answer([(RowCount(), 9.0)])
    workers.lost = True
    with pytest.raises(PrivacyError, match=f"none after {dask_rows.TRIES} workers"):
        curator.answer([(RowCount(), 9.0)])
    assert len(curator.log) == 1
    assert PrivacyStatement.of_run(curator).epsilon > 0


# ---- asking 3, shard 2
# --------------------------------------------------------------------------------------------------


def test_a_shard_whose_file_changed_is_refused(tmp_path: Path) -> None:
    found = recipes(written(tmp_path, "store"), 3)
    rows = rows_of(ShardsHere(found))
    file = tmp_path / "people.store"
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    with pytest.raises(PrivacyError, match="shard 0"):
        Curator(rows, Promise(1.0, 1e-6)).answer([(RowCount(), 9.0)])
    with pytest.raises(ChecksumError, match="shard 0"):
        ShardsHere(found)


def test_a_shard_that_is_made_anew_must_have_the_first_ones_rows(tmp_path: Path) -> None:
    folder = written(tmp_path, "parquet")
    shards = ShardsHere(recipes(folder, 2))
    opened = shards._opened[0]
    shards.require_same(0, opened)
    with pytest.raises(PrivacyError, match="the rows of the first time"):
        shards.require_same(0, replace(opened, fingerprint="another"))
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(table(300, seed=9)), folder / "0.parquet")
    with pytest.raises(ChecksumError, match="the file that was cut"):
        ShardsHere(shards.recipes)


# ---- shard 1, serving 1
# --------------------------------------------------------------------------------------------------


def test_no_error_shows_a_row(tmp_path: Path) -> None:
    shards = ShardsHere([Wrong(str(tmp_path))])
    try:
        with pytest.raises(FairveilError) as error:
            rows_of(shards)
        seen = [error.value, error.value.__cause__, error.value.__context__]
        assert not any(PLANTED in f"{one!r} {one}" for one in seen)
    finally:
        shards.close()


def test_errors_of_opening_name_the_column_and_show_no_value(tmp_path: Path) -> None:
    bad = table(60)
    bad["job"] = np.where(np.arange(60) == 30, f"secret {PLANTED}", bad["job"])
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(bad), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="'job'") as error:
        ShardsHere(recipes(tmp_path / "t.parquet", 1))
    assert PLANTED not in str(error.value)
    assert "shard 0" in str(error.value)


# ---- sharded 2
# --------------------------------------------------------------------------------------------------


def test_what_needs_rows_here_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    rows = rows_of(ShardsHere(recipes(written(tmp_path, "store"), 2)))
    curator = Curator(rows, Promise(1.0, 1e-6, neighbours="replace-one"))
    for wanted in (
        lambda: curator.answer([(RowFunction(lambda block: block.numbers.T, 2, 1.0), 9.0)]),
        lambda: curator.attach(lambda block: np.zeros(block.rows)),
        lambda: next(iter(rows.blocks())),
    ):
        with pytest.raises(InputError, match="coded store"):
            wanted()
    assert len(curator.log) == 0
    assert Linear(np.zeros(1 + rows.layout.width)).models == 1


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ([ShardFacts(1 << 32, True, False, False, 1.0)] * 3, "at most 8589934592 rows"),
        (
            [ShardFacts(5, True, False, False, 1.0), ShardFacts(5, False, False, False, 1.0)],
            "shards of one kind",
        ),
    ],
)
def test_shards_that_cannot_be_added_are_refused(facts: list[ShardFacts], word: str) -> None:
    class Told:
        counts = tuple(fact.rows for fact in facts)

        def tell(self, what: str, values: Any) -> list[ShardFacts]:
            return facts

    with pytest.raises(InputError, match=word):
        rows_of(Told())


def test_a_schema_that_is_not_the_stores_is_refused_wherever_it_is_said(tmp_path: Path) -> None:
    store = written(tmp_path, "store")
    wider = data.Schema(
        dict(SCHEMA.columns) | {"age": data.Number(17, 91)}, target="hired", sensitive=("sex",)
    )
    for make in (
        lambda: Here(store, wider, shards=1),
        lambda: data.open(tmp_path / "people.store", wider),
    ):
        refuses_and_spends_nothing(make, tmp_path, "schema|features|encoding", FairveilError)
        (tmp_path / "ledger.db").unlink()


def test_too_many_rows_are_told_as_soon_as_they_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^33 by a smaller number: of a source without an end no more is read than shows it."""
    from fairveil.core import rows as core_rows

    encoded = data.encode(table(60), SCHEMA)
    read: list[int] = []

    class Endless:
        layout = encoded.layout

        def blocks(self) -> Any:
            while True:
                read.append(1)
                yield from encoded.blocks()

    monkeypatch.setattr(core_rows, "MOST_ROWS", 200)
    with pytest.raises(InputError, match="at most 200 rows"):
        Rows(Endless(), in_memory=False)
    assert len(read) == 4
    assert Rows(encoded).exact_count == 60


def test_one_shard_at_least() -> None:
    with pytest.raises(InputError, match="at least one shard"):
        ShardsHere([])


# ---- rows/sharded 3
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        lambda found: None,
        lambda found: [],
        lambda found: [np.int64(7)] * len(found),
        lambda found: [one[..., :1] for one in found],
        lambda found: [one + 0.5 for one in found],
        lambda found: [*found, found[0]],
    ],
)
def test_an_answer_that_is_not_what_was_asked_ends_the_run(tmp_path: Path, wrong: Any) -> None:
    """Added as it is, a number would count in every cell, and nothing would be no rows."""

    class Lying(WorkersHere):
        def _said(self, number: int, lines: list[Any]) -> list[Any]:
            *before, found = super()._said(number, lines)
            lies = lines[-1][0] == "answer" and number == 1
            return [*before, wrong(found) if lies else found]

    rows = rows_of(ShardsHere(recipes(written(tmp_path, "store"), 2), Lying()))
    curator = Curator(rows, Promise(5.0, 1e-5), noise=NoiseSource.seeded(0))
    with pytest.raises(PrivacyError, match="shard 1"):
        curator.answer([(CellCounts(rows.cells()), 4.0)])


def test_a_shard_that_takes_other_rows_than_it_opened_is_refused(tmp_path: Path) -> None:
    class Fewer(ShardsHere):
        def tell(self, what: str, values: Any) -> Any:
            return [replace(fact, rows=fact.rows - 1) for fact in super().tell(what, values)]

    with pytest.raises(PrivacyError, match="shard 0"):
        rows_of(Fewer(recipes(written(tmp_path, "store"), 2)))
