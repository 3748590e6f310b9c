"""Every importer beside every hostile value in every place: one of our errors, or an event with a
price, and nothing else."""

from __future__ import annotations

import copy
import functools
import json
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairveil.errors import FairveilError
from fairveil.ledger import Ledger
from fairveil.statement.importing import (
    Imported,
    from_dp_event,
    from_opacus,
    parse_import,
)

HUGE = 10**400
HOSTILE: list[Any] = [
    *(None, "", "x", b"x", True, -1, -1.0, 1 + 0j, 2**63, HUGE, -HUGE, 1e-320, 1e308),
    *(
        float("nan"),
        float("inf"),
        -float("inf"),
        np.float64("nan"),
        np.datetime64("NaT"),
        np.bool_(True),
    ),
    *(
        Decimal("NaN"),
        Decimal(1),
        Fraction(1, 3),
        [],
        {},
        set(),
        ["a"] * 3,
        np.array([1.0, 2.0]),
        np.array(["a"]),
    ),
    *(object(), len, type),
]
SLOW = ("e-320", "e+18", "e-19")
"""In events whose price takes seconds."""
STATED: dict[str, Any] = {"neighbours": "replace-one", "rows_per_person": 1, "secure_noise": False}
HISTORY: list[Any] = [(1.0, 0.01, 5)]
NOISE = {"class_name": "GaussianDpEvent", "noise_multiplier": 1.0}
TREES: list[dict[str, Any]] = [
    NOISE,
    {"class_name": "LaplaceDpEvent", "noise_multiplier": 1.0},
    {"class_name": "SelfComposedDpEvent", "count": 3, "event": NOISE},
    {"class_name": "ComposedDpEvent", "events": [NOISE, NOISE]},
    {"class_name": "PoissonSampledDpEvent", "sampling_probability": 0.1, "event": NOISE},
    {
        "class_name": "SampledWithoutReplacementDpEvent",
        "source_dataset_size": 10,
        "sample_size": 2,
        "event": NOISE,
    },
    {"class_name": "RandomizedResponseDpEvent", "noise_parameter": 0.5, "num_buckets": 2},
    {"class_name": "ZCDpEvent", "rho": 0.1, "xi": 0.0},
    {"class_name": "RepeatAndSelectDpEvent", "event": NOISE, "mean": 5.0, "shape": 1.0},
    {"class_name": "SingleEpochTreeAggregationDpEvent", "noise_multiplier": 1.0, "step_counts": 4},
    {
        "class_name": "MixtureOfGaussiansDpEvent",
        "standard_deviation": 1.0,
        "sensitivities": [0.0, 1.0],
        "sampling_probs": [0.5, 0.5],
    },
    {
        "class_name": "TruncatedSubsampledGaussianDpEvent",
        "dataset_size": 10,
        "sampling_probability": 0.1,
        "truncated_batch_size": 2,
        "noise_multiplier": 1.0,
    },
]


def tried(call: Callable[[], Any], refused: list[bool]) -> None:
    """Refused as ours, or priced; whatever else is raised goes on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            found = call()
        except FairveilError:
            refused.append(True)
            return
        refused.append(False)
        if isinstance(found, Imported) and not any(slow in repr(found.events) for slow in SLOW):
            assert epsilon_of(found) >= 0.0


@functools.cache
def epsilon_of(found: Imported) -> float:
    """Each event is priced once."""
    return found.price(1e-6).epsilon


def changed(whole: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at a place."""
    out = copy.deepcopy(whole)
    inside = out
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    return out


def places(of: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key and index inside."""
    entries = of.items() if isinstance(of, dict) else enumerate(of) if isinstance(of, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from places(value, (*path, key))


def test_opacus() -> None:
    refused: list[bool] = []
    for value in HOSTILE:
        tried(lambda value=value: from_opacus(value, sampling="poisson", **STATED), refused)
        for at in range(3):
            row = [list(HISTORY[0])]
            tried(
                lambda row=row, at=at, value=value: from_opacus(
                    changed(row, (0, at), value), sampling="poisson", **STATED
                ),
                refused,
            )
        for name in ("sampling", *STATED):
            options = {"sampling": "poisson", **STATED, name: value}
            tried(lambda options=options: from_opacus(HISTORY, **options), refused)
        tried(
            lambda value=value: from_opacus(HISTORY, sampling="shuffled", passes=value, **STATED),
            refused,
        )
    assert np.mean(refused) > 0.8
    assert not all(refused)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_dp_accounting(neighbours: str) -> None:
    refused: list[bool] = []
    stated = {**STATED, "neighbours": neighbours}
    for value in HOSTILE:
        tried(lambda value=value: from_dp_event(value, **stated), refused)
        for name in ("multipliers", *STATED):
            tried(
                lambda name=name, value=value: from_dp_event(NOISE, **{**stated, name: value}),
                refused,
            )
        for tree in TREES:
            for name in tree:
                tried(
                    lambda tree=tree, name=name, value=value: from_dp_event(
                        {**tree, name: value}, **stated
                    ),
                    refused,
                )
    assert np.mean(refused) > 0.7
    assert not all(refused)


def test_documents() -> None:
    refused: list[bool] = []
    document = from_opacus(HISTORY, sampling="poisson", **STATED).to_dict()
    for path in places(document):
        for value in HOSTILE:
            try:
                text = json.dumps(changed(document, path, value))
            except (TypeError, ValueError):  # no JSON at all
                continue
            tried(lambda text=text: parse_import(text), refused)
    for text in (
        "",
        "[]",
        "null",
        "{",
        "1" * 5000,
        "[" * 5000,
        "\ud800",
        '{"format": "fairveil-import"}',
        "NaN",
    ):
        tried(lambda text=text: parse_import(text), refused)
        assert refused[-1]
    assert np.mean(refused) > 0.7


def test_a_ledger_takes_nothing_that_was_refused(tmp_path: Path) -> None:
    found = from_opacus(HISTORY, sampling="poisson", **STATED)
    ledger = Ledger.create(tmp_path / "ledger.jsonl", "people", 3.0, 1e-6, neighbours="replace-one")
    for value in HOSTILE:
        before, refused = (tmp_path / "ledger.jsonl").read_bytes(), []
        tried(lambda value=value: found.record(value), refused)
        assert refused[-1]
        if not isinstance(value, str):
            tried(lambda value=value: found.record(ledger, value), refused)
            assert refused[-1]
        if not isinstance(value, bool | np.bool_):
            tried(
                lambda value=value: found.record(ledger, "counts", fixed_in_advance=value), refused
            )
            assert refused[-1]
        if not hasattr(value, "__len__") or len(value):  # no events at all cost nothing
            with (
                pytest.raises(FairveilError),
                ledger.spend(value, purpose="counts", neighbours="replace-one"),
            ):
                raise AssertionError("the block ran")
        assert (tmp_path / "ledger.jsonl").read_bytes() == before
