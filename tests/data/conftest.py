"""What several tests of the data room compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from fairveil.facts import Boolean, Category, Number, RowBlock, Schema


@pytest.fixture
def people() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    rows = 1_000
    return {
        "age": rng.uniform(0, 120, rows),
        "visits": rng.integers(-3, 4, rows),
        "job": rng.choice(["none", 'ä, "b"', "c"], rows).astype(object),
        "member": rng.random(rows) < 0.3,
        "sex": rng.choice(["f", "m"], rows).astype(object),
        "hired": rng.integers(0, 2, rows),
    }


@pytest.fixture
def schema() -> Schema:
    return Schema(
        {
            "age": Number(10, 100),
            "visits": Category((-3, -2, -1, 0, 1, 2, 3)),
            "job": Category(("none", 'ä, "b"', "c")),
            "member": Boolean(),
            "sex": Category(("f", "m")),
            "hired": Category((0, 1)),
        },
        target="hired",
        sensitive="sex",
    )


@pytest.fixture(scope="session")
def same_bits() -> Callable[[Any, Any], bool]:
    def arrays(block: RowBlock) -> Iterator[Any]:
        yield from (block.numbers, block.codes, block.labels, block.sensitive)

    def compare(one: Any, other: Any) -> bool:
        blocks, others = list(one.blocks()), list(other.blocks())
        return len(blocks) == len(others) and all(
            (a is None and b is None)
            or (a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
            for block, another in zip(blocks, others, strict=True)
            for a, b in zip(arrays(block), arrays(another), strict=True)
        )

    return compare
