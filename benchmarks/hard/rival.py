"""AIM's synthetic rows in place of real ones: a table is cut into bins, handed to another Python, and comes back coded."""

from __future__ import annotations

import json
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


@dataclass(frozen=True)
class Rival:
    """`python`: one that has AIM (`rival_aim.py` names what it needs). `folder`: where synthetic tables are kept, by name."""

    python: str
    folder: Path
    case: str
    options: tuple[str, ...] = ()

    def rows(self, train: Coded, epsilon: float, seed: int) -> tuple[Coded, dict[str, Any]]:
        """As many synthetic rows as there are, and what their making took. Made once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        made = self.folder / f"{self.case}-{epsilon:g}-{seed}.npz"
        if not made.exists():
            binned, sizes = cut(train)
            given = made.with_suffix(".in.npz")
            np.savez_compressed(given, table=binned, sizes=sizes)
            script = str(Path(__file__).with_name("rival_aim.py"))
            delta = 1.0 / train.block.rows**2
            command = [self.python, script, str(given), str(made), f"{epsilon:g}", f"{delta:g}", str(seed), *self.options]
            subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": ""})
            given.unlink()
        with np.load(made) as found:
            return pasted(train, found["table"]), json.loads(str(found["said"]))


def cut(rows: Coded) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Columns as codes, (rows, columns), and how many values each may have: numbers, categories, groups, the label."""
    block = rows.block
    assert block.labels is not None
    assert block.sensitive is not None
    bins = np.clip(((block.numbers + 1.0) / 2.0 * BINS).astype(np.int64), 0, BINS - 1)
    groups = [len(values) for values in rows.layout.sensitive]
    sizes = [BINS] * len(bins) + list(rows.layout.code_sizes) + groups + [len(rows.layout.classes or ())]
    table = np.vstack([bins, block.codes, block.sensitive, block.labels[np.newaxis]])
    return table.T.astype(np.int64), np.array(sizes)


def pasted(rows: Coded, table: npt.NDArray[np.int64]) -> Coded:
    """A table of codes as rows: the middle of each bin. `rows`: whose shape it has."""
    block = rows.block
    assert block.sensitive is not None
    ends = np.cumsum([len(block.numbers), len(block.codes), len(block.sensitive)])
    numbers, codes, groups, labels = np.split(np.ascontiguousarray(table.T), ends)
    middles = (numbers + 0.5) / BINS * 2.0 - 1.0
    kinds = (block.codes.dtype, block.sensitive.dtype, None if block.labels is None else block.labels.dtype)
    made = RowBlock(middles, codes.astype(kinds[0]), labels[0].astype(kinds[2]), groups.astype(kinds[1]))
    return Coded(rows.encoding, made)
