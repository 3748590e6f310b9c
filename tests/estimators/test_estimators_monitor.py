"""Monitors: what they say and cost, restarts and kills, two writers, changed files, and what is
refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

import fairveil as fv
from fairveil.errors import FairveilError, InputError, LedgerError, PrivacyError
from fairveil.estimators.certifying import monitor

FIXED = {"groups": {"sex": ["f", "m"]}, "classes": [0, 1], "epsilon": 1.0}


def _people(gap: float, seed: int, n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sex = np.array(["f", "m"])[rng.integers(2, size=n)]
    return (rng.random(n) < np.where(sex == "m", 0.3 + gap, 0.3)).astype(int), sex


def _begun(path: Path, **options: object) -> fv.Monitor:
    return fv.Monitor.create(path, "demographic_parity:0.1", **(FIXED | options))


def test_a_run_with_a_drift(tmp_path: Path) -> None:
    watch = _begun(tmp_path / "m.json")
    for month, gap in enumerate((0.02, 0.04, 0.4)):
        decided, sex = _people(gap, month)
        watch.add(f"month {month}", decided, sensitive_features=sex)
        assert watch.privacy_ is not None
        assert watch.privacy_.epsilon <= 1.0
    assert watch.alarm == "month 2"
    again = fv.Monitor.open(tmp_path / "m.json")
    assert again.periods == watch.periods
    assert (again.alarm, again.wealth) == (watch.alarm, watch.wealth)
    assert watch.wealth > 20
    first, third = watch.bounds("month 0")[0], watch.bounds("month 2")[0]
    assert first.at_most < 0.2
    assert third.at_most > 0.4
    assert str(watch).startswith("verdict  alarm in month 2; 3 periods")
    with pytest.raises(InputError, match="a period"):
        watch.bounds("month 9")


def _decide(rows: np.ndarray) -> np.ndarray:
    return (rows[:, 0] > 0).astype(int)


PERIODS = {
    "men, of whom none is accepted": [(-1.0, "m")] * 30,
    "no row": [],
    "one row": [(1.0, "f")],
    "many": [(-1.0, "m"), (1.0, "f")] * 15,
    "more groups than so few rows carry": [(1.0, f"town {at}") for at in range(20)],
}


@pytest.mark.parametrize("given", ["a function", "another library's model", "decisions"])
def test_stated_groups_and_classes_are_not_looked_for_in_a_period(
    tmp_path: Path, given: str
) -> None:
    """Whoever is in a period, all of it is counted, and the statement says the same."""
    groups = ["f", "m", *(f"town {at}" for at in range(20))]
    told = []
    for name, people in PERIODS.items():
        X = np.array([[x, 0.0] for x, _ in people]).reshape(-1, 2)
        sex = np.array([group for _, group in people], dtype=object)
        watch = _begun(tmp_path / f"{name}.json", groups={"sex": groups})
        model = {
            "a function": _decide,
            "another library's model": LogisticRegression().fit([[-1, 0], [1, 0]], [0, 1]),
            "decisions": _decide(X),
        }[given]
        watch.add("May", model, X, sensitive_features={"sex": sex}, random_state=0)
        assert watch.privacy_ is not None
        told.append((watch.privacy_.facts, watch.privacy_.not_covered, watch.privacy_.events))
    assert all(one == told[0] for one in told)
    assert {fact.origin for fact in told[0][0]} == {"argument"}


def test_bounds_of_several_constraints_hold_together(tmp_path: Path) -> None:
    """Eight rates whose truth is known, in the first period of many simulated monitors: some bound
    of the eight misses it as rarely as the period's share of `false_alarm` says."""
    groups, true, people, runs = [f"g{at}" for at in range(8)], 0.3, 400, 400
    notions = [fv.FalseNegativeRate(0.5, group=group) for group in groups]
    fixed = {"groups": {"town": groups}, "classes": [0, 1], "epsilon": 20.0}
    watch = fv.Monitor.create(tmp_path / "m.json", notions, **fixed)
    rng, share = np.random.default_rng(0), 1.0 - np.exp(-1.0 / watch.watched.plan.noise.scale)
    missed = 0
    for _ in range(runs):
        counts = rng.geometric(share, watch.watched.layout.parts) - rng.geometric(
            share, watch.watched.layout.parts
        )
        for at, negative in enumerate(rng.binomial(people, true, len(groups))):
            counts[watch.watched.layout.part_of[at, 1, 0]] += negative
            counts[watch.watched.layout.part_of[at, 1, 1]] += people - negative
        kept = replace(watch.watched, names=("first",), counts=(tuple(counts.tolist()),))
        bounds = fv.Monitor(watch.path, kept).bounds("first")
        missed += any(one.at_most is not None and one.at_most < true for one in bounds)
    # All periods together have 0.05, the first one half of it. Without a share for each constraint
    # 55 of 400 missed.
    assert missed <= stats.binom.ppf(0.999, runs, watch.watched.false_alarm / 2.0)


def test_people_of_separate_periods_cost_what_one_period_costs(tmp_path: Path) -> None:
    """Each period is one release of the whole promise; the ledger is charged once for the
    stream."""
    ledger = fv.Ledger.create(tmp_path / "budget.db", "people", epsilon=1.0, delta=1e-6)
    watch = _begun(tmp_path / "m.json", ledger=ledger)
    for at in range(3):
        decided, sex = _people(0.0, at, 200)
        watch.add(str(at), decided, sensitive_features=sex)
    assert ledger.balance().committed == 1
    assert ledger.balance().spent <= 1.0
    with pytest.raises((LedgerError, PrivacyError)):
        _begun(tmp_path / "other.json", ledger=ledger)
    assert not (tmp_path / "other.json").exists()


def test_a_process_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    """A process adds period after period and says each; it is killed at an arbitrary moment. All
    that was said is there."""
    path = tmp_path / "m.json"
    _begun(path)
    code = (
        "import sys, numpy as np, fairveil as fv\n"
        f"watch = fv.Monitor.open({str(path)!r})\n"
        "for at in range(10_000):\n"
        "    watch.add(str(at), np.arange(40) % 3 % 2, sensitive_features=np.array(['f', 'm'] * "
        "20))\n"
        "    print(at, flush=True)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert child.stdout is not None
    said = [child.stdout.readline() for _ in range(3)]
    os.kill(child.pid, signal.SIGKILL)
    said += child.communicate()[0].splitlines()
    names = [one.name for one in fv.Monitor.open(path).periods]
    assert names[: len(said)] == [line.strip() for line in said]
    assert len(names) - len(said) in (0, 1)
    fv.Monitor.open(path).add(
        "after", np.arange(40) % 2, sensitive_features=np.array(["f", "m"] * 20)
    )


def test_two_writers_refuse_each_other(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    watch = _begun(path)
    code = (
        "import pathlib, sys\nfrom fairveil.estimators.certifying import monitor\n"
        f"with monitor.only_writer(pathlib.Path({str(path)!r})):\n    print('held', "
        f"flush=True); sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    decided, sex = _people(0.0, 0, 50)
    with pytest.raises(InputError, match="no other writer"):
        watch.add("May", decided, sensitive_features=sex)
    assert not watch.periods
    child.kill()
    child.communicate()
    until = time.monotonic() + 60
    while True:  # the kernel gives a dead process's lock back when it has gone
        try:
            watch.add("May", decided, sensitive_features=sex)
            break
        except InputError:
            assert time.monotonic() < until
    other = fv.Monitor.open(path)
    other.add("June", decided, sensitive_features=sex)
    with pytest.raises(InputError, match="a period that is new"):
        watch.add("June", decided, sensitive_features=sex)  # what another wrote meanwhile is seen
    assert [one.name for one in watch.periods] == ["May", "June"]


@pytest.mark.parametrize("change", ["epsilon", "false_alarm", "counts", "format"])
def test_a_changed_file_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "m.json"
    _begun(path)
    values = json.loads(path.read_text())
    place = values if change == "format" else values["watched"]
    place[change] = {
        "epsilon": 2.0,
        "false_alarm": 0.5,
        "counts": [[1.0]],
        "format": "other",
    }[change]
    path.write_text(json.dumps(values))
    with pytest.raises(InputError, match="monitor"):
        fv.Monitor.open(path)
    if change == "counts":  # also where its checksum was made anew
        values["watched"]["names"] = ["x"]
        values["checksum"] = monitor.checksum(values)
        path.write_text(json.dumps(values))
        with pytest.raises(InputError, match="monitor"):
            fv.Monitor.open(path)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": None},
        {"epsilon": float("inf")},
        {"false_alarm": 0.0},
        {"groups": {}},
        {"classes": [1]},
    ],
)
def test_bad_beginnings_leave_no_file(tmp_path: Path, options: dict) -> None:
    with pytest.raises(FairveilError):
        _begun(tmp_path / "m.json", **options)
    assert not (tmp_path / "m.json").exists()


def test_bad_periods_leave_the_file_as_it_was(tmp_path: Path) -> None:
    watch = _begun(tmp_path / "m.json")
    before = (tmp_path / "m.json").read_bytes()
    decided, sex = _people(0.0, 0, 50)
    for period, chosen, groups, words in (
        ("", decided, sex, "a name"),
        ("May", decided, np.where(sex == "f", "x", "m"), "one of"),
        ("May", decided + 1, sex, "class"),
        ("May", decided, None, "group"),
        ("May", decided[:7], sex, "rows"),
    ):
        with pytest.raises(FairveilError, match=words):
            watch.add(period, chosen, sensitive_features=groups)
    assert (tmp_path / "m.json").read_bytes() == before
    with pytest.raises(InputError, match="not there yet"):
        _begun(tmp_path / "m.json")


def test_notions_of_labels_several_columns_and_models(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 1))
    y, groups = (
        (X[:, 0] > 0).astype(int),
        {"town": rng.integers(2, size=900), "sex": np.array(["f", "m"])[rng.integers(2, size=900)]},
    )
    options = {"groups": {"sex": ["f", "m"], "town": [0, 1, 2]}, "classes": [0, 1], "epsilon": 5.0}
    notion = fv.EqualOpportunity(0.3, groups="marginal")
    watch = fv.Monitor.create(tmp_path / "m.json", notion, **options)
    found = watch.add(
        "May",
        lambda rows: (rows[:, 0] > 0.5).astype(int),
        X,
        y,
        sensitive_features=groups,
        random_state=0,
    )
    assert found.p == 1.0
    with pytest.raises(InputError, match="labels"):
        watch.add("June", y, sensitive_features=groups)
    exact = np.zeros(watch.watched.layout.parts)
    ids = watch.watched.cells.ids(
        np.stack([(groups["sex"] == "m").astype(np.uint16), groups["town"].astype(np.uint16)])
    )[0]
    np.add.at(exact, watch.watched.layout.part_of[ids, y, (X[:, 0] > 0.5).astype(int)], 1.0)
    # scale 0.2: beyond with probability below 1e-15
    assert np.abs(np.array(found.counts) - exact).max() < 8
