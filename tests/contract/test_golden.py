"""Seeded fits of every system, compared with what they were: golden.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from golden import CLOSE, FILES, FITS, Golden


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_a_seeded_fit_is_what_it_was(fit: Golden) -> None:
    found = json.loads(json.dumps(fit.found()))
    assert fit.differences(fit.kept(), found) == []


def test_every_file_has_a_fit() -> None:
    assert {file.stem for file in FILES.glob("*.json")} == set(FITS)


@pytest.mark.parametrize("fit", [fit for fit in FITS.values() if "price" in fit.kept()])
def test_no_kept_fit_costs_more_than_it_says(fit: Golden) -> None:
    kept = fit.kept()
    assert kept["price"] is None or kept["price"] <= kept["epsilon"] * (1 + CLOSE)


def test_the_last_bit_of_a_weight_and_a_report_are_seen() -> None:
    fit = FITS["rates-records"]
    kept, other = fit.kept(), fit.kept()
    weight = float.fromhex(kept["weights"][0])
    other["weights"][0] = (weight * (1 + 2**-52)).hex()
    other["epsilon"] *= 1 + 1e-6
    other["events"][1][1] = ["gaussian", 1.0]
    seen = fit.differences(kept, other)
    assert {line.split(":")[0].split("[")[0] for line in seen} == {"epsilon", "events", "weights"}


def test_a_network_may_differ_in_its_last_bits_alone() -> None:
    fit = FITS["rates-network"]
    kept: dict[str, Any] = fit.kept()
    near = {**kept, "law": [value * (1 + 1e-5) for value in kept["law"]]}
    far = {**kept, "law": [value + 0.01 for value in kept["law"]]}
    assert fit.differences(kept, near) == []
    assert len(fit.differences(kept, far)) == len(kept["law"])
