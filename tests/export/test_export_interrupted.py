"""A disk that takes no more: what an export had begun is gone, and what was there before is as it
was."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil._reading import write_files
from fairveil.show import model_card

resource = pytest.importorskip("resource", reason="only POSIX limits the size of files")
LARGEST = 64
"""Bytes that a file may have meanwhile: what is written comes to an error half way."""


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """No file grows beyond a few bytes, as on a disk without room. The limit is the kernel's
    own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def model() -> Any:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    clf = ways.fermi(solver=fv.PrimalDual(rounds=3), epsilon=5.0, public_rows=300, random_state=0)
    return clf.fit(X, X[:, 0] > 0, sensitive_features=rng.integers(2, size=300))


WRITERS: dict[str, Callable[..., Any]] = {
    "estimator": fv.save,
    "command": lambda model, path: write_files({path: model_card(model)}),
}


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_half_written_is_left(name: str, model: Any, tmp_path: Path) -> None:
    with (
        full_disk(),
        pytest.raises(OSError, match=r"too large|space|wrote|written|requested|limit"),
    ):
        WRITERS[name](model, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    WRITERS[name](model, tmp_path / "out")
    assert (tmp_path / "out").exists()


def test_what_is_to_be_replaced_stays(model: Any, tmp_path: Path) -> None:
    fv.save(model, tmp_path / "out")
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    with (
        full_disk(),
        pytest.raises(OSError, match=r"too large|space|wrote|written|requested|limit"),
    ):
        fv.save(model, tmp_path / "out", overwrite=True)
    assert {
        path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()
    } == before
