"""Calibration: within the promise for certain, and hardly more noise than that needs."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covering import pairs
from fairveil.core.cost import epsilon
from fairveil.core.events import (
    Approximate,
    Composed,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    VisiblySampled,
    ZeroConcentrated,
)
from fairveil.core.promise import Promise
from fairveil.errors import BudgetError, InputError
from fairveil.privacy.accounting import cache as calibration_cache
from fairveil.privacy.accounting import calibration
from fairveil.privacy.accounting.calibration import (
    calibrate,
    full_batch,
    most_rounds,
    scaled,
    split,
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


PLANS: dict[str, Event] = {
    "full batch": Composed((Gaussian(3.0), Repeated(Gaussian(1.0), 100))),
    "poisson": Repeated(PoissonSampled(0.02, Gaussian(1.0)), 500),
    "joint": Composed(
        (
            Gaussian(5.0),
            Repeated(PoissonSampled(0.02, Composed((Gaussian(1.0), Laplace(1.0)))), 100),
        )
    ),
    "choices": Composed((Repeated(Exponential(0.1), 20), Repeated(Gaussian(10.0), 20))),
    "visible": Repeated(VisiblySampled(0.1, Gaussian(1.0)), 30),
    "selection": PrivateSelection(PerCell(((4.0, 3.0),), (2.0,)), 5.0, 1.0),
    "moments": Composed((ZeroConcentrated(0.1), Pure(0.1))),
}


@pytest.mark.parametrize(
    ("neighbours", "target", "name"),
    pairs(["add-remove", "replace-one"], [0.01, 1.0, 20.0], PLANS),
)
def test_guarantee_1_the_least_noise_within_the_promise(
    name: str, target: float, neighbours: str
) -> None:
    if name == "visible":
        neighbours = "replace-one"
    promise, plan = Promise(target, 1e-6, neighbours=neighbours), scaled(PLANS[name])
    found = calibrate(promise, plan)
    assert found.events == plan(found.multiplier)
    assert found.epsilon == epsilon(found.events, 1e-6, neighbours)
    assert target * (1 - 1e-4) <= found.epsilon <= target
    assert epsilon(plan(found.multiplier * 0.99), 1e-6, neighbours) > target


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.floats(1e-3, 1e3), st.sampled_from([1e-12, 1e-6, 1e-2]), st.integers(1, 10**6))
def test_full_batch_is_exact_and_one_sided(target: float, delta: float, rounds: int) -> None:
    z = full_batch(Promise(target, delta), rounds)
    cost = epsilon(Repeated(Gaussian(z), rounds), delta)
    assert target * (1 - 1e-8) <= cost <= target


def test_full_batch_beside_other_releases() -> None:
    promise = Promise(1.0, 1e-6)
    z = full_batch(promise, 50, [Gaussian(10.0)])
    assert 1 - 1e-8 <= epsilon([Gaussian(10.0), Repeated(Gaussian(z), 50)], 1e-6) <= 1
    z = full_batch(promise, 50, [Laplace(5.0), Exponential(0.1)])
    assert (
        1 - 1e-4 <= epsilon([Laplace(5.0), Exponential(0.1), Repeated(Gaussian(z), 50)], 1e-6) <= 1
    )
    with pytest.raises(BudgetError, match="already beyond the guarantee"):
        full_batch(promise, 50, [Gaussian(1.0)])


def test_full_batch_loads_no_accounting_library() -> None:
    code = (
        "import sys; from fairveil.privacy.accounting.calibration import full_batch; "
        "from fairveil.core.promise import Promise; "
        "full_batch(Promise(1.0, 1e-6), 10); print(sorted(m for m in sys.modules if "
        "m.startswith('dp_accounting')))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_no_privacy_needs_no_noise() -> None:
    promise = Promise(math.inf, 1e-6)
    assert calibrate(promise, Gaussian).multiplier == 0
    assert calibrate(promise, Gaussian).events == NonPrivate()
    assert full_batch(promise, 10) == 0


def test_a_promise_that_cannot_be_met_says_why_and_the_way_out() -> None:
    with pytest.raises(BudgetError, match=r"never private at delta=0.*Laplace"):
        calibrate(Promise(1.0, 0.0), Gaussian)
    with pytest.raises(BudgetError, match="already beyond"):
        calibrate(Promise(1.0, 1e-6), lambda z: Composed((Gaussian(z), Pure(2.0))))
    with pytest.raises(BudgetError, match=r"delta=0"):
        full_batch(Promise(1.0, 0.0), 3)
    with pytest.raises(BudgetError, match="already beyond"):
        most_rounds(Promise(1.0, 1e-6), Gaussian(10.0), [Pure(2.0)])
    assert calibrate(Promise(1.0, 0.0), Laplace).epsilon <= 1.0


def test_a_plan_must_give_events() -> None:
    with pytest.raises(InputError, match=r"^plan: expected a function"):
        calibrate(Promise(1.0, 1e-6), lambda z: z)  # type: ignore[arg-type, return-value]
    with pytest.raises(InputError, match="start"):
        calibrate(Promise(1.0, 1e-6), Gaussian, start=0)


def test_a_plan_that_is_free_takes_the_least_scale() -> None:
    assert calibrate(Promise(1.0, 1e-6), lambda z: NoOp()).multiplier <= calibration.SMALLEST_SCALE


@pytest.mark.parametrize(
    "event", [Gaussian(20.0), PoissonSampled(0.02, Gaussian(1.5)), Exponential(0.05), Laplace(50.0)]
)
def test_most_rounds(event: Event) -> None:
    promise = Promise(1.0, 1e-6)
    rounds = most_rounds(promise, event)
    assert rounds > 1
    assert (
        epsilon(Repeated(event, rounds), 1e-6) <= 1.0 < epsilon(Repeated(event, rounds + 1), 1e-6)
    )
    assert most_rounds(promise, event, [Gaussian(10.0)]) < rounds


def test_most_rounds_of_nothing_is_an_error() -> None:
    for promise, event in ((Promise(1.0, 1e-6), NoOp()), (Promise(math.inf, 1e-6), Gaussian(1.0))):
        with pytest.raises(InputError, match="most_rounds"):
            most_rounds(promise, event)
    assert most_rounds(Promise(1.0, 1e-6), Gaussian(0.5)) == 0


@given(st.floats(1e-3, 1e3), st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_the_split_costs_the_same_and_is_the_best(z: float, first: float, second: float) -> None:
    one, two = split(z, first, second)
    assert math.fsum((one**-2, two**-2)) <= z**-2
    assert math.fsum((one**-2, two**-2)) == pytest.approx(z**-2)
    best = first * one**2 + second * two**2
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        assert first * z**2 / share + second * z**2 / (1 - share) >= best * (1 - 1e-9)


def test_scaled_reaches_every_noise_and_keeps_what_has_none() -> None:
    fixed = Composed((Approximate(0.1, 1e-9), NoOp(), NonPrivate()))
    assert scaled(fixed)(3.0) == fixed
    assert scaled(PLANS["moments"])(2.0) == Composed((ZeroConcentrated(0.025), Pure(0.05)))
    assert scaled(PLANS["selection"])(2.0) == PrivateSelection(
        PerCell(((8.0, 6.0),), (2.0,)), 5.0, 1.0
    )


def _files(folder: Path) -> list[Path]:
    return sorted((folder / "fairveil" / "calibration").glob("*"))


def test_guarantee_3_a_remembered_answer_is_priced_again(own_cache: Path) -> None:
    promise, plan = Promise(1.0, 1e-6), scaled(PLANS["poisson"])
    found = calibrate(promise, plan)
    (kept,) = _files(own_cache)
    assert json.loads(kept.read_text()) == {"scale": found.multiplier}
    assert calibrate(promise, plan) == found
    # A file that lies in either direction is found out; the honest answer takes its place.
    for lie in (found.multiplier / 2, found.multiplier * 2):
        kept.write_text(json.dumps({"scale": lie}))
        assert calibrate(promise, plan) == found
        assert json.loads(kept.read_text()) == {"scale": found.multiplier}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[1]",
        '{"scale": "x"}',
        '{"scale": -1.0}',
        '{"scale": NaN}',
        '{"scale": true}',
        "\x00",
        '{"scale": 1e-300}',
        '{"scale": 1e200}',
        "[" * 100_000,
    ],
    ids=lambda content: repr(content[:20]),
)
def test_a_corrupt_cache_is_no_cache(own_cache: Path, content: str) -> None:
    promise, plan = Promise(1.0, 1e-6, neighbours="replace-one"), scaled(PLANS["visible"])
    found = calibrate(promise, plan)
    (kept,) = _files(own_cache)
    kept.write_text(content)
    assert calibrate(promise, plan) == found


def test_a_cache_that_cannot_be_written_is_no_error(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_cache / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache / "file"))
    assert (
        calibrate(Promise(1.0, 1e-6, neighbours="replace-one"), scaled(PLANS["visible"])).epsilon
        <= 1.0
    )
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(own_cache / "home"))
    where = calibration_cache.folder()
    assert where is not None
    assert where == own_cache / "home" / ".cache" / "fairveil" / "calibration"


def test_the_cache_is_off_when_asked_and_unneeded_for_closed_forms(own_cache: Path) -> None:
    calibrate(Promise(1.0, 1e-6, neighbours="replace-one"), scaled(PLANS["visible"]), cache=False)
    calibrate(Promise(1.0, 1e-6), scaled(PLANS["full batch"]))
    assert _files(own_cache) == []
