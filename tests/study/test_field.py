"""`benchmarks/field.py`: what it calls proved is, a process keeps to its limit, one tiny case goes
through."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
Floats = npt.NDArray[np.float64]


@pytest.fixture
def rivals(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package, from its own folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import rivals
    from rivals import chart, running, systems, table, truth

    assert all(name in sys.modules for name in ("rivals.running", "rivals.truth"))
    rivals.parts = (chart, running, systems, table, truth)
    return rivals


def _log_density(
    w: Floats, X: Floats, y: Floats, claimed: float, norm: float, intercept: bool
) -> float:
    """Of a weight vector that diffprivlib releases, but for a constant; its intercept is the last
    one."""
    wide = math.sqrt(norm**2 + intercept)
    left, more = claimed - 2 * math.log1p(wide / 4), 0.0
    if left <= 0:
        left, more = claimed / 2, wide / 4 / math.expm1(claimed / 4) - 1.0
    penalty = np.full(len(w), 1.0 + more)
    penalty[-1] -= intercept
    p = 1.0 / (1.0 + np.exp(-X @ w))
    noise = -(X.T @ (p - y) + penalty * w)
    return -left * float(np.linalg.norm(noise)) / (2 * wide) + float(
        np.linalg.slogdet((X.T * (p * (1 - p))) @ X + np.diag(penalty))[1]
    )


@pytest.mark.parametrize(
    ("claimed", "norm", "intercept"),
    [(1.0, 1.0, False), (0.3, 1.0, False), (1.0, 6.0, False), (1.0, 6.0, True)],
)
def test_no_neighbours_of_diffprivlib_are_further_apart_than_is_proved(
    rivals: Any, claimed: float, norm: float, intercept: bool
) -> None:
    proved = rivals.parts[4].diffprivlib_logistic(claimed, norm, intercept=intercept)
    rng = np.random.default_rng(0)
    most = 0.0
    for _ in range(3000):
        X = norm * rng.choice([-1.0, 0.0, 1.0], size=(4, 2)) * np.array([1.0, 0.0])
        X[:, 1] = 1.0 if intercept else 0.0
        y = rng.integers(2, size=4).astype(float)
        w = rng.normal(size=2) * [2.0 / norm, 3.0 if intercept else 0.0]
        (one, other) = (
            _log_density(w, X[kept], y[kept], claimed, norm, intercept)
            for kept in ([0, 1, 2], [0, 1, 3])
        )
        most = max(most, abs(one - other))
    assert 0.35 * proved < most <= proved


def test_an_intercept_without_a_penalty_has_no_finite_epsilon(rivals: Any) -> None:
    """All shared rows are certain at w, the replaced one is not: the ratio grows with the
    certainty."""
    truth = rivals.parts[4]
    assert truth.diffprivlib_logistic(1.0, 1.0, intercept=True) == math.inf
    shared, y = np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([1.0, 1.0])
    for certain in (10.0, 20.0):
        w = np.array([certain / 2, certain / 2])
        logs = [
            _log_density(w, np.vstack([shared, [x, 1.0]]), np.append(y, 1.0), 1.0, 1.0, True)
            for x in (-1.0, 1.0)
        ]
        assert logs[0] - logs[1] > certain - 4.0 > 1.0


def test_what_is_claimed_of_diffprivlib_proves_what_is_asked_for(rivals: Any) -> None:
    truth = rivals.parts[4]
    for asked in (0.1, 0.5, 1.0, 3.0):
        claimed = truth.diffprivlib_claim(asked, 1.0)
        assert 0.99 * asked <= truth.diffprivlib_logistic(claimed, 1.0, intercept=False) <= asked


def test_a_process_keeps_to_its_limit_and_says_why_it_failed(rivals: Any) -> None:
    running = rivals.parts[1]
    late = running._process([sys.executable, "-c", "import time; time.sleep(60)"], "", 0.2)
    assert late["failed"] == "over 0.2 s"
    assert late["cpu"] < 30
    broken = running._process([sys.executable, "-c", "raise ValueError('no such column')"], "", 60)
    assert broken["failed"] == "ValueError: no such column"
    held = np.ones(60 * 2**20)
    large = running._process(
        [sys.executable, "-c", "import time; found = bytearray(200 * 2**20); time.sleep(1)"], "", 60
    )
    assert 200 < large["mebibytes"] < 400  # also where this process holds gigabytes
    assert "failed" not in large
    assert held.nbytes > 400 * 2**20


def test_a_tiny_field_goes_through(rivals: Any, tmp_path: Path) -> None:
    chart, running, _, table, _ = rivals.parts
    file = tmp_path / "runs.jsonl"
    names = ("fairlearn-threshold", "aif-reweighing", "diffprivlib")
    wanted = running.Wanted(("two-groups",), names, 1.0, (0,), {}, most=400)
    runs = running.run(wanted, file)
    assert [run["method"] for run in running.run(wanted, file)] == list(names)
    # what no Python was named for may be run later
    assert len(file.read_text("utf-8").splitlines()) == 1
    assert runs[0]["proved"] is None
    lines = table.lines(runs)
    assert [line.system for line in lines] == [*names, table.CONSTANT]
    text = "\n".join([*table.whole(lines), *table.costs(lines), *table.refusals(lines)])
    assert "no Python was named for diffprivlib. two-groups" in text
    assert "| fairlearn `ThresholdOptimizer` | nothing | yes | - | - |" in text
    assert "<svg" in chart.draw(lines)


def test_only_what_is_better_in_both_takes_the_bold_away(rivals: Any) -> None:
    table = rivals.parts[3]
    counts = {
        "post": [[30.0, 10.0], [10.0, 50.0]],
        "game": [[31.0, 9.0], [9.0, 51.0]],
        "fairlearn": [[40.0, 0.0], [0.0, 60.0]],
    }
    runs = [
        {
            "case": "two-groups",
            "method": name,
            "constraint": "demographic_parity:0.05",
            "seed": 0,
            "table": [counted, (np.array(counted) @ [[0.8, 0.2], [0.1, 0.9]]).tolist()],
            "seconds": 1.0,
            "mebibytes": 1,
            "claimed": 1.0,
            "proved": None if name == "fairlearn" else 1.0,
        }
        for name, counted in counts.items()
    ]
    found = {line.system: line for line in table.lines(runs)}
    assert not found["fairlearn"].best  # not private: not compared
    assert found["game"].best
    assert found["post"].best == (not (found["game"].gap.mean < found["post"].gap.mean))
