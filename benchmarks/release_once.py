"""Groups released once: one release beside searches that ask round by round, and beside exact
groups.

    python benchmarks/release_once.py --case communities --epsilon 0.3 1 3 --seeds 5
    python benchmarks/release_once.py --case communities-odds adult-odds --rows 500 1500 5000 20000
    --epsilon 0.1 1 --seeds 5 python benchmarks/release_once.py --case communities --frontier
    --seeds 5

The sensitive column alone is protected. `communities` measures on the rows of the fit, as the
papers do; other cases are those of benchmarks/hard, measured on held-out rows. Error and gap are
those of the distribution of decisions, in per cent and points: means over seeds, the standard
deviation of each in brackets. A seed is the split and the noise.

    once      release_groups, then its linear models for each gap: one price for all gaps
    clusters  the same without noise: what the bias inside clusters does; not private
    exact     the same learner with exact groups; not private
    descent   RateConstrainedClassifier, a fit and a price for each gap
    game      OracleGameClassifier, likewise
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import fairveil as fv
from fairveil.estimators.fitting.promises import notions_of
from fairveil.estimators.released import classifier as released_classifier
from fairveil.fairness import resolve
from fairveil.learning.released import search as soft_search
from fairveil.models import MixtureModel
from frontier import communities
from frontier.splits import Coded
from hard.cases import CASES, _whole
from hard.measured import error_of, table_of

GAPS = (0.1, 0.05, 0.02)
FIFTY = tuple(np.linspace(0.0, 0.245, 50).round(3).tolist())
DELTA = 1e-6
METHODS = ("once", "clusters", "exact", "descent", "game")


def main() -> None:
    """Fit, measure, print."""
    asked = _options()
    warnings.simplefilter("ignore")
    if asked.frontier:
        _frontier(asked)
        return
    print("| case | rows | method | epsilon | asked | error | gap | seconds |\n|" + " --- |" * 8)
    for case in asked.case:
        for rows in asked.rows or [None]:
            for method in asked.method:
                for epsilon in [math.inf] if method in ("exact", "clusters") else asked.epsilon:
                    for line in _lines(case, rows, method, epsilon, asked.seeds):
                        print(line, flush=True)


def _lines(case: str, rows: int | None, method: str, epsilon: float, seeds: int) -> Iterator[str]:
    found, spent, size = defaultdict(list), 0.0, 0
    for seed in range(seeds):
        train, test = _parts(case, seed, rows)
        size = train.block.rows
        start = time.perf_counter()
        for gap, law in _fits(method, train, epsilon, seed):
            found[gap].append(_measured(law(test), test))
        spent += time.perf_counter() - start
    for gap, pairs in found.items():
        (error, hole), (s, t) = (
            np.mean(pairs, axis=0) * 100,
            np.std(pairs, axis=0, ddof=min(1, seeds - 1)) * 100,
        )
        words = "not private" if math.isinf(epsilon) else f"{epsilon:g}"
        asked = "-" if gap is None else f"{100 * gap:g}"
        yield (
            f"| {case} | {size:,} | {method} | {words} | {asked} | {error:.1f} ({s:.1f}) | "
            f"{hole:.1f} ({t:.1f}) | "
            f"{spent / seeds:.0f} |"
        )


def _fits(
    method: str, train: Coded, epsilon: float, seed: int
) -> Iterator[tuple[float | None, Callable[[Coded], Any]]]:
    """A distribution of decisions for each gap; None: without a bound."""
    if method == "exact":
        yield from _exact(train)
        return
    if method in ("once", "clusters"):
        released = fv.release_groups(train, epsilon=epsilon, random_state=seed)
        yield None, released.fit(train, None).predict_proba
        for gap, model in zip(GAPS, released.frontier(train, None, gaps=GAPS), strict=True):
            yield gap, model.predict_proba
        return
    kind = fv.RateConstrainedClassifier if method == "descent" else fv.OracleGameClassifier
    for gap in GAPS:
        options: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": DELTA,
            "protects": "sensitive_features",
            "random_state": seed,
        }
        model = kind(f"equalized_odds:{gap}", **options).fit(train)
        yield gap, lambda rows, model=model: _law(model, rows)


def _exact(train: Coded) -> Iterator[tuple[float | None, Callable[[Coded], Any]]]:
    """The linear models of a release, found with the groups themselves in the place of
    memberships."""
    released = fv.release_groups(train, epsilon=math.inf, random_state=0)
    for gap in (None, *GAPS):
        system = resolve(
            notions_of(None if gap is None else f"equalized_odds:{gap}"),
            released.cells,
            released.classes,
        )
        rows = released_classifier.soft_of(released, train, None, system).rows
        groups = train.block.sensitive
        soft = soft_search.Soft.of(
            replace(rows, members=np.eye(released.cells.count)[released.cells.ids(groups)[0]]),
            system,
        )
        lines, fixed = soft_search.path(soft), soft_search.constants(soft)
        laws = [np.eye(2)[soft.rows.decided(v)] for v in lines] + [law for _, law in fixed]
        shares, _ = soft_search.Candidates.of(soft, laws).mixture(system.bounds)
        models = [released_classifier.linear_of(released, rows, v) for v in lines]
        models += [released_classifier.constant_of(released, k) for k, _ in fixed]
        mixture = MixtureModel(models, shares)
        yield gap, lambda rows, mixture=mixture: mixture.decision_proba(rows.block)


def _law(model: Any, rows: Coded) -> Any:
    certain = isinstance(model, fv.RateConstrainedClassifier) and not isinstance(
        model.model_, fv.models.MixtureModel
    )
    return (
        model.predict(rows)[:, np.newaxis] == model.classes_
        if certain
        else model.predict_proba(rows)
    )


def _measured(law: Any, rows: Coded) -> tuple[float, float]:
    cells = fv.facts.Cells(rows.layout.sensitive)
    table = table_of(np.asarray(law, np.float64), rows, cells)
    rates = table[:, :, 1] / table.sum(axis=2)
    return error_of(table), float((rates.max(axis=0) - rates.min(axis=0)).max())


def _parts(case: str, seed: int, rows: int | None) -> tuple[Coded, Coded]:
    if case == "communities":
        whole = _whole(communities.rows("communities", None))
        return whole, whole
    train, test = CASES[case.removesuffix("-odds") if case == "communities-odds" else case].parts(
        seed
    )
    if rows is not None:
        train = train[np.random.default_rng(seed).permutation(train.block.rows)[:rows]]
    return train, test


def _frontier(asked: argparse.Namespace) -> None:
    """Fifty models from one release: error at the largest gap within each limit."""
    print(
        "| epsilon | models | error at gap 15 | 10 | 7.5 | 5 | 2.5 | price of fifty fits by "
        "descent | seconds |\n|" + " --- |" * 9
    )
    for epsilon in asked.epsilon:
        lines, start = [], time.perf_counter()
        for seed in range(asked.seeds):
            train, test = _parts("communities", seed, None)
            models = fv.release_groups(train, epsilon=epsilon, random_state=seed).frontier(
                train, None, gaps=FIFTY
            )
            points = [_measured(model.predict_proba(test), test) for model in models]
            lines.append(
                [
                    min((e for e, gap in points if gap <= limit), default=math.nan)
                    for limit in (0.15, 0.1, 0.075, 0.05, 0.025)
                ]
            )
        errors = " | ".join(f"{100 * x:.1f}" for x in np.nanmean(lines, axis=0))
        print(
            f"| {epsilon:g} | 50 | {errors} | {50 * epsilon:g} | "
            f"{(time.perf_counter() - start) / asked.seeds:.0f} |",
            flush=True,
        )


def _options() -> argparse.Namespace:
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("--case", nargs="+", default=["communities"])
    words.add_argument("--rows", nargs="+", type=int)
    words.add_argument("--method", nargs="+", choices=METHODS, default=list(METHODS))
    words.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    words.add_argument("--seeds", type=int, default=5)
    words.add_argument("--frontier", action="store_true")
    return words.parse_args()


if __name__ == "__main__":
    main()
