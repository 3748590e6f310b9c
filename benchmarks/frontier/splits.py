"""Splits of the benchmark sets, models on them, and what is measured on held-out rows. A split is its seed."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import fairveil as fv
from fairveil import data
from fairveil.errors import ConstraintNotMet
from fairveil.facts import RowBlock, RowLayout

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coded:
    """Rows coded by a schema, all in one block: a `RowSource`. `encoding` says that the schema bounds them."""

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
        numbers, codes = np.ascontiguousarray(block.numbers[:, chosen]), np.ascontiguousarray(block.codes[:, chosen])
        return Coded(
            self.encoding, RowBlock(numbers, codes, block.labels[chosen], np.ascontiguousarray(block.sensitive[:, chosen]))
        )


def load(name: str, folder: str | None) -> Coded:
    """A benchmark set, coded by its schema: numbers in [-1, 1] by declared bounds, categories by declared lists."""
    source = data.get(name, folder).rows
    blocks = list(source.blocks())
    labels = [block.labels for block in blocks if block.labels is not None]
    sensitive = [block.sensitive for block in blocks if block.sensitive is not None]
    whole = RowBlock(
        np.concatenate([block.numbers for block in blocks], axis=1),
        np.concatenate([block.codes for block in blocks], axis=1),
        np.concatenate(labels),
        np.concatenate(sensitive, axis=1),
    )
    schema = replace(source.encoding.schema, rows=None)  # a part of the set is trained on: its size is bought
    return Coded(replace(source.encoding, schema=schema), whole)


def split(rows: Coded, seed: int) -> tuple[Coded, Coded]:
    """Three quarters to train on, one to measure on."""
    order = np.random.default_rng(seed).permutation(rows.block.rows)
    held_out = rows.block.rows // 4
    return rows[order[held_out:]], rows[order[:held_out]]


@dataclass(frozen=True)
class Measured:
    """What decisions do on some rows. `parity`, `odds`: gaps; `floor_*`: the mean gap that decisions with the same rates, but
    exactly fair ones, are measured at on as many rows."""

    error: float
    positive_rate: float
    parity: float
    odds: float
    misses: float  # the false negative rate
    floor_parity: float
    floor_odds: float


def measure(positive: npt.NDArray[np.bool_], rows: Coded) -> Measured:
    """Of two classes and two groups.

    With n_a and n_b rows a fair rate p shows a gap |N(0, s^2)|, s^2 = p (1 - p) (1 / n_a + 1 / n_b), of mean s sqrt(2 / pi).
    The larger of two such gaps has the mean sqrt(2 / pi) sqrt(s^2 + t^2), since max(|x|, |y|) = (|x + y| + |x - y|) / 2.
    """
    block = rows.block
    assert block.labels is not None
    assert block.sensitive is not None
    true, group = block.labels == 1, block.sensitive[0] == 0

    def gap(among: npt.NDArray[np.bool_]) -> tuple[float, float]:
        one, other = among & group, among & ~group
        p, n, m = float(positive[among].mean()), int(one.sum()), int(other.sum())
        return abs(float(positive[one].mean() - positive[other].mean())), p * (1 - p) * (1 / n + 1 / m)

    parity, variance = gap(np.ones(len(true), bool))
    hits, variance_hits = gap(true)
    alarms, variance_alarms = gap(~true)
    return Measured(
        error=float((positive != true).mean()),
        positive_rate=float(positive.mean()),
        parity=parity,
        odds=max(hits, alarms),
        misses=1.0 - float(positive[true].mean()),
        floor_parity=math.sqrt(2 / math.pi * variance),
        floor_odds=math.sqrt(2 / math.pi * (variance_hits + variance_alarms)),
    )


@dataclass(frozen=True)
class Job:
    """One model: what is asked, promised and seeded. `knobs`: none in a benchmark; for whoever tries other constants."""

    constraint: str | None
    bound: float | None
    epsilon: float
    protects: str
    unsafe: bool
    seed: int
    knobs: tuple[tuple[str, Any], ...] = ()

    def constraints(self) -> Any:
        """As the estimator takes them."""
        return None if self.constraint is None or self.bound is None else f"{self.constraint}:{self.bound}"


def fit(job: Job, train: Coded, test: Coded) -> dict[str, Any]:
    """Fit at the defaults, measure on both parts. `reported`: the largest noisy training value that the fit itself released."""
    classifier = fv.RateConstrainedClassifier(
        job.constraints(),
        epsilon=job.epsilon,
        delta=1.0 / train.block.rows**2,
        protects=job.protects,
        unsafe_data_dependent_bounds=job.unsafe,
        random_state=job.seed,
        **dict(job.knobs),
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)  # it is counted below
        classifier.fit(train)
    seconds = time.perf_counter() - start
    second = classifier.classes_[1]
    report = classifier.constraint_report_
    return {
        "seed": job.seed,
        "epsilon": job.epsilon,
        "asked": job.bound,
        "seconds": seconds,
        "spent": classifier.privacy_.epsilon,
        "reported": max((line.value for line in report.lines), default=None),
        "certainly_broken": not report.met,
        "test": asdict(measure(classifier.predict(test) == second, test)),
        "train": asdict(measure(classifier.predict(train) == second, train)),
    }


def constant_error(rows: Coded) -> float:
    """The error of the better constant answer."""
    assert rows.block.labels is not None
    share = float((rows.block.labels == 1).mean())
    return min(share, 1 - share)


def run_split(name: str, folder: str | None, seed: int, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """All models of one split, one after another; the noise is seeded like the split."""
    train, test = split(load(name, folder), seed)
    done = [fit(job, train, test) for job in jobs]
    constant = constant_error(test)
    return [{**one, "constant_error": constant, "test_rows": test.block.rows, "train_rows": train.block.rows} for one in done]
