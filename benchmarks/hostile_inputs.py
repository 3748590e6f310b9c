"""Hostile inputs at length: `python benchmarks/hostile_inputs.py [attempts] [seed]` prints a table
for docs/benchmarks.md.

Each attempt draws an estimator, and one to three bad arguments from the tables of
tests/estimators/hostile_samples.py, or good ones of odd kinds; then a fit, a prediction, a score or
a measure is called. Counted is how it ended. A fit that was refused must leave its estimator
unfitted, its ledger as it was, and nothing printed.
"""

from __future__ import annotations

import collections
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "estimators"))

import hostile_samples as hostile

import fairveil as fv
from fairveil.errors import FairveilError

SLOW = 10  # seconds after which an attempt counts as one that hangs
GOOD = hostile.sample()


class Hangs(BaseException):
    """Raised by the clock."""


def stop(*_: Any) -> None:
    """The clock's handler."""
    raise Hangs


def drawn(rng: np.random.Generator, table: dict[str, hostile.Change], given: Any) -> Any:
    """One of a table's changes, made."""
    change = list(table.values())[int(rng.integers(len(table)))]
    return hostile.attempt(lambda: change(given)).value


def arguments(rng: np.random.Generator, name: str) -> tuple[dict[str, Any], int]:
    """Arguments of a fit, and how many of them are bad."""
    given = hostile.arguments(name, GOOD)
    ones = np.ones(len(GOOD.y))
    tables = {
        "X": (hostile.BAD_X, given["X"]),
        "y": (
            hostile.BAD_Y
            | (hostile.BAD_TARGETS if name in hostile.REGRESSORS else hostile.BAD_CLASSES),
            given["y"],
        ),
        "sensitive_features": (hostile.BAD_GROUPS, given["sensitive_features"]),
        "sample_weight": (hostile.BAD_WEIGHTS, ones),
    }
    bad = int(rng.choice([0, 1, 1, 1, 2, 3]))
    for place in rng.choice(list(tables), bad, replace=False):
        given[place] = drawn(rng, *tables[place])
    if bad == 0:
        given["X"] = drawn(rng, hostile.GOOD_X, given["X"])
        given["sensitive_features"] = drawn(rng, hostile.GOOD_GROUPS, given["sensitive_features"])
    return given, bad


def attempt(
    rng: np.random.Generator, name: str, fitted: dict[str, Any], ledger: Any
) -> tuple[str, hostile.Attempt, str]:
    """What was called, what came of it, and what was left behind that should not be."""
    kind = str(rng.choice(["fit", "fit", "fit", "option", "predict", "score", "measure"]))
    if kind in ("fit", "option"):
        options = {}
        if kind == "option":
            option, value = hostile.BAD_OPTIONS[int(rng.integers(len(hostile.BAD_OPTIONS)))]
            options = {option: value}
        given, bad = arguments(rng, name) if kind == "fit" else (hostile.arguments(name, GOOD), 1)
        estimator = hostile.makers()[name](**{"ledger": ledger} | options)
        lines = len(list(ledger.history()))
        found = hostile.attempt(lambda: estimator.fit(**given))
        left = ""
        if found.error is not None:
            left = "fitted" if not hostile.is_unfitted(estimator) else ""
            left = left or ("in the ledger" if len(list(ledger.history())) != lines else "")
        return (f"{kind}, {bad} bad" if kind == "fit" else "fit, a bad option"), found, left
    if kind == "measure":
        groups, y = drawn(rng, hostile.BAD_GROUPS, GOOD.groups), drawn(rng, hostile.BAD_Y, GOOD.y)
        measure = fv.group_table if rng.random() < 0.5 else fv.equalized_odds_gap
        if rng.random() < 0.5:
            return "a measure", hostile.attempt(lambda: measure(GOOD.y, GOOD.y, groups)), ""
        return "a measure", hostile.attempt(lambda: measure(GOOD.y, y, GOOD.groups)), ""
    clf = fitted[name]
    beside: dict[str, Any] = (
        {"sensitive_features": GOOD.groups} if name == "FairPostProcessor" else {}
    )
    if kind == "predict":
        X = drawn(rng, hostile.BAD_X, GOOD.X)
        return "a prediction", hostile.attempt(lambda: clf.predict(X, **beside)), ""
    y = drawn(rng, hostile.BAD_Y, hostile.arguments(name, GOOD)["y"])
    return "a score", hostile.attempt(lambda: clf.score(GOOD.X, y, **beside)), ""


def main() -> None:
    """Print the table."""
    attempts, seed = (int(value) for value in (*sys.argv[1:], *("3000", "0")[len(sys.argv) - 1 :]))
    rng, names = np.random.default_rng(seed), list(hostile.makers())
    fitted = {name: hostile.makers()[name]().fit(**hostile.arguments(name, GOOD)) for name in names}
    ended: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    strange: collections.Counter[str] = collections.Counter()
    slowest = 0.0
    signal.signal(signal.SIGALRM, stop)
    for number in range(attempts):
        if number % 100 == 0:  # good fits are charged, and use it up
            ledger = hostile.empty_ledger(f"hostile {number}")
        name, start = names[int(rng.integers(len(names)))], time.perf_counter()
        signal.alarm(SLOW)
        try:
            what, found, left = attempt(rng, name, fitted, ledger)
        except Hangs:
            ended["any"]["hangs"] += 1
            continue
        finally:
            signal.alarm(0)
        slowest = max(slowest, time.perf_counter() - start)
        how = (
            "accepted"
            if found.error is None
            else "refused"
            if isinstance(found.error, FairveilError)
            else "untyped"
        )
        ended[what][how] += 1
        ended[what]["left or printed"] += bool(left or found.printed)
        if how == "untyped" or left or found.printed:
            strange[f"{name}, {what}: {found.error!r:.120} {left} {found.printed:.40}"] += 1
    print(
        "| called | refused in our family | accepted | another error | something left or printed | "
        "hangs |"
    )
    print("|---|---|---|---|---|---|")
    for what in sorted(ended):
        line = ended[what]
        counts = (
            str(line[how]) for how in ("refused", "accepted", "untyped", "left or printed", "hangs")
        )
        print(f"| {' | '.join([what, *counts])} |")
    print(f"\n{attempts} attempts, seed {seed}; the slowest took {slowest:.1f} s.")
    for words, times in strange.most_common(20):
        print(f"- {times} x {words}")


if __name__ == "__main__":
    main()
