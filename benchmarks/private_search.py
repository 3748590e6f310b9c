"""A private search beside the defaults at the same epsilon, and the true price of a plain grid search.

    python benchmarks/private_search.py [--epsilon 1.0] [--seeds 3] [--rows 8000] [--sets adult,...]

Error and demographic parity gap on rows that nobody trained on, means over seeds. "plain grid": what `GridSearchCV(cv=5)` over
the same candidates spends, if each of its fits has the whole epsilon. "refit" is a search that fits its winner again with
half of the budget.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

import fairveil as fv
from fairveil.privacy import epsilon
from fairveil.privacy.accounting.routes import gaussian_mu
from fairveil.privacy.events import Gaussian, Repeated

CANDIDATES = {"clip": [0.5, 1.0, 2.0, 4.0], "rounds": [30, 120]}
DELTA = 1e-6


def made(seed: int, rows: int, *, hard: bool) -> tuple[Any, Any, Any]:
    """Synthetic rows; hard: one number is a thousand times as large as the others, and only the others tell."""
    rng = np.random.default_rng(seed)
    A = rng.integers(2, size=rows)
    X = rng.normal(size=(rows, 5)) + 0.5 * A[:, None]
    y = (X[:, 1:].sum(axis=1) + rng.normal(size=rows) > 1).astype(int)
    if hard:
        X[:, 0] *= 5.0
    return X, y, A


def sets(names: list[str], rows: int, seed: int) -> Any:
    """(name, rows to train, rows to test): arrays or tables with a schema."""
    for name in names:
        if name.startswith("synthetic"):
            X, y, A = made(seed, 2 * rows, hard=name.endswith("hard"))
            yield name, None, (X[:rows], y[:rows], A[:rows]), (X[rows:], y[rows:], A[rows:])
            continue
        found = fv.data.get(name)
        table = pd.DataFrame(dict(found.table))
        schema = found.schema.with_roles(sensitive=found.schema.sensitive[:1])
        order = np.random.default_rng(seed).permutation(len(table))
        half = min(rows, len(table) // 2)
        train, test = (table.iloc[order[a:b]] for a, b in ((0, half), (half, 2 * half)))
        yield name, schema, (train, None, None), (test, None, None)


def measured(clf: Any, schema: Any, test: Any) -> tuple[float, float]:
    X, y, A = test
    if schema is not None:
        y, A = X[schema.target].to_numpy(), X[schema.sensitive[0]].to_numpy()
    prediction = clf.predict(X)
    return float(np.mean(prediction != y)), float(fv.demographic_parity_gap(y, prediction, A))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=8_000)
    parser.add_argument("--sets", default="synthetic,synthetic-hard")
    parser.add_argument("--ways", default="defaults,search,refit,selection,all")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    mu = gaussian_mu(given.epsilon, DELTA)
    fits = 5 * 8 + 1
    print(
        f"plain grid of 8 candidates, 5 folds: {fits} fits of epsilon {given.epsilon:g} each cost "
        f"{epsilon(Repeated(Gaussian(1 / mu), fits), DELTA, 'add-remove'):.2f}"
    )
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for seed in range(given.seeds):
        for name, schema, train, test in sets(given.sets.split(","), given.rows, seed):
            X, y, A = train
            base = fv.RateConstrainedClassifier(
                "demographic_parity:0.05",
                epsilon=given.epsilon,
                delta=DELTA,
                schema=schema,
                public_rows=given.rows,
                random_state=seed,
            )
            for way in given.ways.split(","):
                start = time.perf_counter()
                if way == "defaults":
                    clf: Any = base
                else:
                    clf = fv.PrivateSearchCV(
                        base,
                        CANDIDATES,
                        epsilon=given.epsilon,
                        delta=DELTA,
                        scoring="lagrangian",
                        way="auto" if way in ("search", "refit") else way,
                        refit=0.5 if way == "refit" else None,
                        random_state=seed,
                    )
                clf.fit(X, y, sensitive_features=A)
                error, gap = measured(clf, schema, test)
                per_fit = getattr(clf, "price_", None)
                found.setdefault((name, way), []).append(
                    (error, gap, given.epsilon if per_fit is None else per_fit.epsilon, time.perf_counter() - start)
                )
    print("| rows | way | error | gap | epsilon of a fit | seconds |")
    print("|---|---|---|---|---|---|")
    for (name, way), values in found.items():
        error, gap, each, seconds = np.mean(values, axis=0)
        spread = np.std([one[0] for one in values]) / np.sqrt(max(1, len(values) - 1))
        shown = f"{100 * error:.1f} ± {100 * spread:.1f} % | {100 * gap:.1f} points | {each:.2f} | {seconds:.0f}"
        print(f"| {name} | {way} | {shown} |")


if __name__ == "__main__":
    main()
