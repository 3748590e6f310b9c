"""Splits of the benchmark sets, models on them, and what is measured on held-out rows. A split is
its seed.

Randomised classifiers are measured by expectations over their own draws, never by a draw: the
error, every rate and every gap of rates is that of each row's probability of being decided for the
second class (`methods.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairveil import data
from fairveil.facts import RowBlock, RowLayout

from . import communities, methods

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coded:
    """Rows coded by a schema, all in one block: a `RowSource`. `encoding` says that the schema
    bounds them."""

    encoding: data.Encoding
    block: RowBlock

    @property
    def layout(self) -> RowLayout:
        """The public shape."""
        return self.encoding.layout

    def blocks(self) -> Iterator[RowBlock]:
        """All rows."""
        yield self.block

    def __getitem__(self, chosen: npt.NDArray[np.intp]) -> Coded:
        block = self.block
        assert block.labels is not None
        assert block.sensitive is not None
        numbers, codes = (
            np.ascontiguousarray(block.numbers[:, chosen]),
            np.ascontiguousarray(block.codes[:, chosen]),
        )
        return Coded(
            self.encoding,
            RowBlock(
                numbers,
                codes,
                block.labels[chosen],
                np.ascontiguousarray(block.sensitive[:, chosen]),
            ),
        )


def load(name: str, folder: str | None) -> Coded:
    """A benchmark set, coded by its schema: numbers in [-1, 1] by declared bounds, categories by
    declared lists."""
    source = (
        communities.rows(name, folder) if name in communities.CUTS else data.get(name, folder).rows
    )
    blocks = list(source.blocks())
    labels = [block.labels for block in blocks if block.labels is not None]
    sensitive = [block.sensitive for block in blocks if block.sensitive is not None]
    whole = RowBlock(
        np.concatenate([block.numbers for block in blocks], axis=1),
        np.concatenate([block.codes for block in blocks], axis=1),
        np.concatenate(labels),
        np.concatenate(sensitive, axis=1),
    )
    # a part of the set is trained on: its size is released
    schema = replace(source.encoding.schema, rows=None)
    return Coded(replace(source.encoding, schema=schema), whole)


def split(rows: Coded, seed: int) -> tuple[Coded, Coded]:
    """Three quarters to train on, one to measure on."""
    order = np.random.default_rng(seed).permutation(rows.block.rows)
    held_out = rows.block.rows // 4
    return rows[order[held_out:]], rows[order[:held_out]]


def parts(rows: Coded, seed: int, evaluation: str, copies: int) -> tuple[Coded, Coded]:
    """What is trained on and what is measured on: a split, or all rows twice ("in-sample": then a
    seed is the noise's alone).

    `copies`: what is trained on is written down so many times, as in Jagielski et al.'s section 5;
    a promise is then one to each copy, and so none to a row of the original. What is measured on is
    not: that would narrow its floor for nothing.
    """
    train, test = split(rows, seed) if evaluation == "held-out" else (rows, rows)
    return (train if copies == 1 else train[np.tile(np.arange(train.block.rows), copies)]), test


@dataclass(frozen=True)
class Measured:
    """What decisions do on some rows. `parity`, `odds`: gaps; `floor_*`: the mean gap that
    decisions with the same rates, but exactly fair ones, are measured at on as many rows."""

    error: float
    positive_rate: float
    parity: float
    odds: float
    misses: float  # the false negative rate
    floor_parity: float
    floor_odds: float


def measure(share: Floats, rows: Coded) -> Measured:
    """Of two classes and two groups. `share`: each row's probability of being decided for the
    second class.

    With n_a and n_b rows a fair rate shows a gap |N(0, s^2)|, s^2 = v (1 / n_a + 1 / n_b), v the
    variance of `share` among them (p (1 - p) where decisions are certain), of mean s sqrt(2 / pi).
    The larger of two such gaps has the mean sqrt(2 / pi) sqrt(s^2 + t^2), since max(|x|, |y|) = (|x
    + y| + |x - y|) / 2.
    """
    block = rows.block
    assert block.labels is not None
    assert block.sensitive is not None
    true, group = block.labels == 1, block.sensitive[0] == 0

    def gap(among: npt.NDArray[np.bool_]) -> tuple[float, float]:
        one, other = among & group, among & ~group
        n, m = int(one.sum()), int(other.sum())
        return abs(float(share[one].mean() - share[other].mean())), float(share[among].var()) * (
            1 / n + 1 / m
        )

    parity, variance = gap(np.ones(len(true), bool))
    hits, variance_hits = gap(true)
    alarms, variance_alarms = gap(~true)
    return Measured(
        error=float(np.where(true, 1.0 - share, share).mean()),
        positive_rate=float(share.mean()),
        parity=parity,
        odds=max(hits, alarms),
        misses=1.0 - float(share[true].mean()),
        floor_parity=math.sqrt(2 / math.pi * variance),
        floor_odds=math.sqrt(2 / math.pi * (variance_hits + variance_alarms)),
    )


@dataclass(frozen=True)
class Job:
    """One model: what is asked, promised and seeded. `delta`: None, 1 / n^2 of the training rows.
    `knobs`: none in a benchmark, for whoever tries other constants."""

    constraint: str | None
    bound: float | None
    epsilon: float
    protects: str
    unsafe: bool
    seed: int
    method: str = "rate-constrained"
    delta: float | None = None
    knobs: tuple[tuple[str, Any], ...] = ()

    def shared(self, rows: int) -> dict[str, Any]:
        """What all estimators take, and what is asked of this one."""
        if self.method in methods.BY_STRENGTH:
            wanted: dict[str, Any] = {"notion": self.constraint, "strength": self.bound or 0.0}
        else:
            plain = self.constraint is None or self.bound is None
            wanted = {"constraints": None if plain else f"{self.constraint}:{self.bound}"}
        return {
            **wanted,
            "epsilon": self.epsilon,
            "delta": 1.0 / rows**2 if self.delta is None else self.delta,
            "protects": self.protects,
            "unsafe_data_dependent_bounds": self.unsafe,
            "random_state": self.seed,
            **dict(self.knobs),
        }


def fit(job: Job, train: Coded, test: Coded, *, in_sample: bool = False) -> dict[str, Any]:
    """Fit at the defaults, measure on both parts. `reported`: the largest noisy training value that
    the fit itself released.

    `in_sample`: the training rows are those of `test`, or copies of them: one measure serves both.
    """
    start = time.perf_counter()
    model = methods.METHODS[job.method](train, job.shared(train.block.rows))
    seconds = time.perf_counter() - start
    measured = measure(model.share(test), test)
    return {
        "seed": job.seed,
        "epsilon": job.epsilon,
        "asked": job.bound,
        "sweep": "strength" if job.method in methods.BY_STRENGTH else "gap",
        "seconds": seconds,
        "spent": model.spent,
        "reported": model.reported,
        "certainly_broken": model.broken,
        "test": asdict(measured),
        "train": asdict(measured if in_sample else measure(model.share(train), train)),
    }


def constant_error(rows: Coded) -> float:
    """The error of the better constant answer."""
    assert rows.block.labels is not None
    share = float((rows.block.labels == 1).mean())
    return min(share, 1 - share)


def run_split(
    name: str,
    folder: str | None,
    seed: int,
    jobs: Sequence[Job],
    evaluation: str = "held-out",
    copies: int = 1,
) -> list[dict[str, Any]]:
    """All models of one split, one after another; the noise is seeded like the split."""
    train, test = parts(load(name, folder), seed, evaluation, copies)
    done = [fit(job, train, test, in_sample=evaluation == "in-sample") for job in jobs]
    constant = constant_error(test)
    return [
        {
            **one,
            "constant_error": constant,
            "test_rows": test.block.rows,
            "train_rows": train.block.rows,
        }
        for one in done
    ]
