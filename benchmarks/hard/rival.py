"""AIM's synthetic rows in place of real ones: a table is cut into bins, handed to another Python,
and comes back coded."""

from __future__ import annotations

import json
import math
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairveil.facts import RowBlock
from frontier.splits import Coded

BINS = 16
"""Equal parts of a number's declared range."""


Table = dict[str, npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Rival:
    """`python`: one that has AIM (`rival_aim.py` names what it needs). `folder`: where synthetic
    tables are kept.

    A table is that of a data set, an epsilon and a seed: which of its columns is sensitive does not
    matter to AIM, so all cases of one set share it.
    """

    python: str
    folder: Path
    source: str
    options: tuple[str, ...] = ()

    def rows(self, train: Coded, epsilon: float, seed: int) -> tuple[Coded, dict[str, Any]]:
        """As many synthetic rows as there are, and what their making took. Without noise: the rows
        themselves, in bins."""
        if math.isinf(epsilon):
            return binned(train), {}
        self.folder.mkdir(parents=True, exist_ok=True)
        made = self.folder / f"{self.source}-{epsilon:g}-{seed}.npz"
        if not made.exists():
            self._make(made, train, epsilon, seed)
        with np.load(made) as found:
            table = dict(zip(found["names"].tolist(), found["table"].T, strict=True))
            return pasted(train, table), json.loads(str(found["said"]))

    def _make(self, made: Path, train: Coded, epsilon: float, seed: int) -> None:
        table, sizes = cut(train)
        given = made.with_suffix(".in.npz")
        names = np.array(list(table))
        np.savez_compressed(
            given,
            table=np.column_stack(list(table.values())),
            sizes=list(sizes.values()),
            names=names,
        )
        script = str(Path(__file__).with_name("rival_aim.py"))
        delta = 1.0 / train.block.rows**2
        command = [
            self.python,
            script,
            str(given),
            str(made),
            f"{epsilon:g}",
            f"{delta:g}",
            str(seed),
            *self.options,
        ]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": ""})
        given.unlink()


def cut(rows: Coded) -> tuple[Table, dict[str, int]]:
    """Columns as codes, and how many values each may have: numbers in bins, categories, groups, the
    label."""
    block, encoding = rows.block, rows.encoding
    assert block.labels is not None
    assert block.sensitive is not None
    bins = np.clip(((block.numbers + 1.0) / 2.0 * BINS).astype(np.int64), 0, BINS - 1)
    groups = [len(values) for values in rows.layout.sensitive]
    sizes = (
        [BINS] * len(bins)
        + list(rows.layout.code_sizes)
        + groups
        + [len(rows.layout.classes or ())]
    )
    lines = np.vstack([bins, block.codes, block.sensitive, block.labels[np.newaxis]]).astype(
        np.int64
    )
    names = _names(rows)
    assert encoding.schema.target == names[-1]
    return dict(zip(names, lines, strict=True)), dict(zip(names, sizes, strict=True))


def binned(rows: Coded) -> Coded:
    """The rows themselves, each number in the middle of its bin."""
    return pasted(rows, cut(rows)[0])


def pasted(rows: Coded, table: Table) -> Coded:
    """A table of codes as rows: the middle of each bin. `rows`: whose shape it has."""
    block = rows.block
    assert block.sensitive is not None
    assert block.labels is not None
    ends = np.cumsum([len(block.numbers), len(block.codes), len(block.sensitive)])
    numbers, codes, groups, labels = np.split(
        np.stack([table[name] for name in _names(rows)]), ends
    )
    middles = (numbers + 0.5) / BINS * 2.0 - 1.0
    kinds = (block.codes.dtype, block.sensitive.dtype, block.labels.dtype)
    return Coded(
        rows.encoding,
        RowBlock(
            middles, codes.astype(kinds[0]), labels[0].astype(kinds[2]), groups.astype(kinds[1])
        ),
    )


def _names(rows: Coded) -> list[str]:
    encoding = rows.encoding
    numbers = [number.name for number in encoding.numbers]
    return [*numbers, *encoding.coded, *encoding.schema.sensitive, str(encoding.schema.target)]
