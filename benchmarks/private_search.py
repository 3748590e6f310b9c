"""A private search beside the defaults at the same epsilon, and the true price of a plain grid
search.

    python benchmarks/private_search.py [--epsilon 1.0] [--seeds 3] [--rows 8000] [--sets adult,...]
    [--scoring error]

Error and demographic parity gap on rows that nobody trained on, means over seeds. "plain grid":
what `GridSearchCV(cv=5)` over the same candidates spends, if each of its fits has the whole
epsilon. "search" is `way="auto"`, whose floor is the estimator as it was given: "searched" is the
share of seeds in which anything was searched, "changed" in which a candidate took its place. Hard
cases start from bad parameters, or from a linear model where none is good.

"least gain": what the noise of the scores lets a search tell, by public facts. A smaller gain is hidden
by the price. Compare it with the difference of the ways "defaults" and "all".
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

import fairveil as fv
from fairveil.privacy import epsilon
from fairveil.privacy.accounting.routes import gaussian_mu
from fairveil.privacy.events import Gaussian, Repeated

CANDIDATES = {"solver__clip": [0.5, 1.0, 2.0, 4.0], "solver__rounds": [30, 120]}
SHAPES = {"model": [None, "additive"]}
# name: (rows, what the estimator is given, candidates)
HARD: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "curved": ("curved", {}, SHAPES),
    "synthetic-short": ("synthetic", {"solver": fv.Descent(rounds=3)}, CANDIDATES),
    "synthetic-tight": ("synthetic", {"solver": fv.Descent(clip=0.02)}, CANDIDATES),
    "adult-short": ("adult", {"solver": fv.Descent(rounds=3)}, CANDIDATES),
    "adult-tight": ("adult", {"solver": fv.Descent(clip=0.02)}, CANDIDATES),
    "credit-tight": ("credit", {"solver": fv.Descent(clip=0.02)}, CANDIDATES),
    "adult-additive": ("adult", {}, SHAPES),
    "credit-additive": ("credit", {}, SHAPES),
}
DELTA = 1e-6


def made(seed: int, rows: int, *, hard: bool) -> tuple[Any, Any, Any]:
    """Synthetic rows; hard: one number is a thousand times as large as the others, and only the
    others tell."""
    rng = np.random.default_rng(seed)
    A = rng.integers(2, size=rows)
    X = rng.normal(size=(rows, 5)) + 0.5 * A[:, None]
    y = (X[:, 1:].sum(axis=1) + rng.normal(size=rows) > 1).astype(int)
    if hard:
        X[:, 0] *= 5.0
    return X, y, A


def curved(seed: int, rows: int) -> tuple[Any, Any, Any]:
    """Synthetic rows whose first number tells by its size alone, whatever its sign."""
    rng = np.random.default_rng(seed)
    A, X = rng.integers(2, size=rows), rng.uniform(-1, 1, size=(rows, 4))
    y = (np.abs(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * A + 0.3 * rng.normal(size=rows) > 0.6).astype(int)
    return X, y, A


def sets(names: list[str], rows: int, seed: int) -> Any:
    """(name, rows to train, rows to test): arrays or tables with a schema."""
    for name in names:
        if name.startswith("synthetic") or name == "curved":
            X, y, A = (
                curved(seed, 2 * rows)
                if name == "curved"
                else made(seed, 2 * rows, hard=name.endswith("hard"))
            )
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
    parser.add_argument("--scoring", default="error")
    parser.add_argument("--sets", default="synthetic,synthetic-hard")
    parser.add_argument("--ways", default="defaults,search,selection,all")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    mu = gaussian_mu(given.epsilon, DELTA)
    fits = 5 * 8 + 1
    print(
        f"plain grid of 8 candidates, 5 folds: {fits} fits of epsilon {given.epsilon:g} each cost "
        f"{epsilon(Repeated(Gaussian(1 / mu), fits), DELTA, 'add-remove'):.2f}"
    )
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for seed, case in itertools.product(range(given.seeds), given.sets.split(",")):
        named, start_from, candidates = HARD.get(case, (case, {}, CANDIDATES))
        for _, schema, train, test in sets([named], given.rows, seed):
            X, y, A = train
            base = fv.RateConstrainedClassifier(
                "demographic_parity:0.05",
                epsilon=given.epsilon,
                delta=DELTA,
                schema=schema,
                public_rows=len(X),
                random_state=seed,
                **start_from,
            )
            for way in given.ways.split(","):
                start = time.perf_counter()
                clf: Any = base
                if way != "defaults":
                    clf = fv.PrivateSearchCV(
                        base,
                        candidates,
                        epsilon=given.epsilon,
                        delta=DELTA,
                        scoring=given.scoring,
                        way="auto" if way == "search" else way,
                        random_state=seed,
                    )
                clf.fit(X, y, sensitive_features=A)
                seconds, (error, gap) = time.perf_counter() - start, measured(clf, schema, test)
                searched = way != "defaults" and clf.price_.way != "defaults"
                changed = searched and clf.best_params_ not in ({}, start_from, {"model": None})
                price = None if way == "defaults" else clf.price_
                each = np.nan if price is None else price.epsilon
                least = np.nan if price is None or price.least_gain is None else price.least_gain
                found.setdefault((case, way), []).append(
                    (error, gap, float(searched), float(changed), each, least, seconds)
                )
    print("| rows | way | error | gap | searched | changed | ε of a fit | least gain | seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (name, way), values in found.items():
        error, gap, searched, changed, each, least, seconds = np.mean(values, axis=0)
        spread = np.std([one[0] for one in values]) / np.sqrt(max(1, len(values) - 1))
        shown = (
            f"{100 * error:.1f} ± {100 * spread:.1f} % | {100 * gap:.1f} points | {searched:.0%} | "
            f"{changed:.0%} | {each:.2f} | {100 * least:.1f} points"
        )
        print(f"| {name} | {way} | {shown} | {seconds:.0f} |")


if __name__ == "__main__":
    main()
