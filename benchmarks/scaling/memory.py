"""Peak private memory of whole jobs, by where the rows lie: a process each.

Rounds are few, since memory does not grow with them. What a process holds before it sees rows (the
library, compiled loops, a job on 1,000 rows) is told apart.
"""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import fairveil as fv


def _frontier(source: Any) -> None:
    few = fv.RateConstrainedClassifier(solver=fv.Descent(rounds=5))
    asked = {"gaps": (0.2, 0.05), "epsilons": (1.0,), "seeds": 1, "progress": False}
    fv.frontier(source, estimator=few, test=source, **asked)


def _certificate(source: Any, others: Any) -> None:
    model = fv.RateConstrainedClassifier(
        "demographic_parity:0.05", solver=fv.Descent(rounds=5), random_state=0
    )
    model.fit(others)
    fv.certify(model, source, constraints=fv.DemographicParity(0.2), epsilon=1.0, random_state=0)


JOBS: dict[str, Callable[[Any], Any]] = {
    "fit": fv.RateConstrainedClassifier(
        "demographic_parity:0.05", solver=fv.Descent(rounds=5), random_state=0
    ).fit,
    "frontier": _frontier,
    "game": fv.OracleGameClassifier("equalized_odds:0.1", rounds=3, random_state=0).fit,
    "group objective": fv.GroupObjectiveClassifier("error", random_state=0).fit,
    "tailored": fv.TailoredClassifier(solver=fv.GroupDescent(rounds=5), random_state=0).fit,
}
ALL = (*JOBS, "certificate")


def done(name: str, source: Any, others: Any) -> None:
    """One job. `others`: rows for a model that has not seen those of the source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "certificate":
            _certificate(source, others)
        else:
            JOBS[name](source)


def database(blocks: Iterable[Any], names: tuple[str, ...], path: Path) -> Path:
    """The rows as a table of SQLite, written once."""
    if not path.exists():
        made = sqlite3.connect(path)
        made.execute(f"CREATE TABLE people ({', '.join(names)})")
        filled = f"INSERT INTO people VALUES ({', '.join('?' * len(names))})"
        for block in blocks:
            columns = [line.tolist() for line in (*block.numbers, *block.codes)]
            columns.append([("f", "m")[code] for code in block.sensitive[0].tolist()])
            columns.append([("no", "yes")[code] for code in block.labels.tolist()])
            made.executemany(filled, zip(*columns, strict=True))
        made.commit()
        made.close()
    return path
