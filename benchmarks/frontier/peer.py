"""fairlearn on our own splits, in a Python of its own: it is no dependency, and must not share our
versions."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .splits import Coded, load, split


def fairlearn(
    python: str,
    name: str,
    folder: str | None,
    gap: str,
    seeds: Sequence[int],
    bounds: Sequence[float],
) -> dict[str, Any]:
    """Errors and gaps (splits, bounds) of ExponentiatedGradient on the same splits, numbers scaled
    by the training rows."""
    rows = load(name, folder)
    found = [_one(python, *split(rows, seed), gap, bounds) for seed in seeds]
    return {
        "splits": list(seeds),
        "bounds": list(bounds),
        "errors": [[point["error"] for point in one] for one in found],
        "gaps": [[point["gap"] for point in one] for one in found],
        "seconds_a_bound": float(np.median([point["seconds"] for one in found for point in one])),
    }


def _one(
    python: str, train: Coded, test: Coded, gap: str, bounds: Sequence[float]
) -> list[dict[str, float]]:
    mean, deviation = train.block.numbers.mean(axis=1), train.block.numbers.std(axis=1)
    deviation[deviation == 0] = 1.0
    arrays: dict[str, Any] = {}
    for part, rows in (("train", train), ("test", test)):
        assert rows.block.sensitive is not None
        numbers = (rows.block.numbers - mean[:, np.newaxis]) / deviation[:, np.newaxis]
        flags = [
            np.eye(size)[codes]
            for codes, size in zip(rows.block.codes, rows.layout.code_sizes, strict=True)
        ]
        arrays |= {
            part: np.hstack([numbers.T, *flags]),
            f"{part}_labels": np.asarray(rows.block.labels),
        }
        arrays[f"{part}_groups"] = rows.block.sensitive[0]
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "split.npz"
        np.savez(file, **arrays)
        script = Path(__file__).with_name("fairlearn_peer.py")
        command = [python, str(script), str(file), gap, *map(str, bounds)]
        # more wait for each other here
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=one_thread)
    return json.loads(done.stdout)  # type: ignore[no-any-return]
