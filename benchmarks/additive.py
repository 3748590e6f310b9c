"""Additive models without a constraint, beside linear ones and models without privacy: held-out
error, a line a model.

    python benchmarks/additive.py --seeds 15                      # Adult, Credit, Law School,
    Communities python benchmarks/additive.py --sets adult --epsilon 1 inf --edges 8 16 32 quantiles

A seed is a split (three quarters to train on) and the seed of the noise; delta is 1 / n^2; whole
records are protected, and the number of rows is released. Error in per cent, mean and standard
error over seeds; seconds of a fit. "boosted" and "logistic" are scikit-learn's
HistGradientBoostingClassifier and LogisticRegression at their defaults, without privacy, on the
same rows. `--edges`: equal parts of a range; "quantiles": sixteen edges at exact quantiles of the
training rows, which no promise covers and which would have to be bought: what is the most that
buying them could win.

`--rivals dp-ebm ebm lightgbm` needs `pip install interpret-core lightgbm`: DP-EBM (private boosted
steps, with the same declared bounds, epsilon and delta; it protects whole records, whose number it
takes as public), EBM and LightGBM without privacy, all at their defaults. "DP-EBM, best cut": its
scores, cut where they err least on the measured rows, which nobody could know.
"""

from __future__ import annotations

import argparse
import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import fairveil as fv
from fairveil.facts import Number
from frontier.methods import dense
from frontier.splits import Coded, load, split

SETS = ("adult", "credit", "law_school", "communities")


def main() -> None:
    """Fit, measure, print."""
    asked = _options()
    print("| set | epsilon | model | error | seconds |\n| --- | --- | --- | --- | --- |")
    for name in asked.sets:
        whole = load(name, asked.data)
        splits = [split(whole, seed) for seed in range(asked.seeds)]
        free: list[tuple[str, Callable[..., Any]]] = [
            ("boosted", _boosted),
            ("logistic", _logistic),
        ]
        if "ebm" in asked.rivals:
            free.append(("EBM", _ebm))
        if "lightgbm" in asked.rivals:
            free.append(("LightGBM", _lightgbm))
        for label, fit in free:
            _line(name, "no privacy", label, [_timed(fit, *one) for one in splits])
        for epsilon in asked.epsilon:
            _line(
                name,
                _shown(epsilon),
                "linear",
                [_timed(_ours, *one, None, epsilon, k) for k, one in enumerate(splits)],
            )
            if "dp-ebm" in asked.rivals and not math.isinf(epsilon):
                for label, best in (("DP-EBM", False), ("DP-EBM, best cut", True)):
                    found = [
                        _timed(_dp_ebm, *one, epsilon, k, best) for k, one in enumerate(splits)
                    ]
                    _line(name, _shown(epsilon), label, found)
            for edges in asked.edges:
                found = [_timed(_steps, *one, edges, epsilon, k) for k, one in enumerate(splits)]
                _line(name, _shown(epsilon), f"additive, {edges}", found)


def _line(name: str, epsilon: str, label: str, found: list[tuple[float, float]]) -> None:
    errors, seconds = np.array(found).T
    spread = errors.std(ddof=1) / math.sqrt(len(errors)) if len(errors) > 1 else math.nan
    print(
        f"| {name} | {epsilon} | {label} | {100 * errors.mean():.2f} ± {100 * spread:.2f} | "
        f"{seconds.mean():.2f} |",
        flush=True,
    )


def _timed(fit: Callable[..., Any], train: Coded, test: Coded, *given: Any) -> tuple[float, float]:
    start = time.perf_counter()
    decide = fit(train, *given)
    seconds = time.perf_counter() - start
    return float((decide(test) != test.block.labels).mean()), seconds


def _ours(
    train: Coded, model: Any, epsilon: float, seed: int
) -> Callable[[Coded], npt.NDArray[Any]]:
    delta = 1.0 / train.block.rows**2
    clf = fv.RateConstrainedClassifier(
        None, model=model, epsilon=epsilon, delta=delta, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(train)
    return lambda rows: np.searchsorted(clf.classes_, clf.predict(rows))


def _steps(
    train: Coded, edges: str, epsilon: float, seed: int
) -> Callable[[Coded], npt.NDArray[Any]]:
    if edges != "quantiles":
        return _ours(train, fv.Additive(bins=int(edges)), epsilon, seed)
    stated = _with_quantiles(train)
    decide = _ours(stated, "additive", epsilon, seed)
    return lambda rows: decide(Coded(stated.encoding, rows.block))


def _with_quantiles(train: Coded) -> Coded:
    """The same rows under a schema whose edges are the quantiles of its columns."""
    encoding = train.encoding
    columns = dict(encoding.schema.columns)
    for line, scale in zip(train.block.numbers, encoding.numbers, strict=True):
        column = columns[scale.name]
        assert isinstance(column, Number)
        cuts = np.unique(scale.undo(np.quantile(line, np.linspace(0, 1, 17)[1:-1])))
        inside = tuple(float(cut) for cut in cuts if column.low < cut < column.high)
        columns[scale.name] = replace(column, edges=inside)
    return Coded(replace(encoding, schema=replace(encoding.schema, columns=columns)), train.block)


def _boosted(train: Coded) -> Callable[[Coded], npt.NDArray[Any]]:
    clf = HistGradientBoostingClassifier(random_state=0).fit(dense(train), train.block.labels)
    return lambda rows: np.asarray(clf.predict(dense(rows)))


def _logistic(train: Coded) -> Callable[[Coded], npt.NDArray[Any]]:
    clf = LogisticRegression(max_iter=1_000).fit(dense(train), train.block.labels)
    return lambda rows: np.asarray(clf.predict(dense(rows)))


def _table(rows: Coded) -> tuple[npt.NDArray[Any], list[str]]:
    """Columns as those libraries take them: numbers, and categories by their codes."""
    kinds = ["continuous"] * len(rows.block.numbers) + ["nominal"] * len(rows.block.codes)
    return np.vstack([rows.block.numbers, rows.block.codes]).T, kinds


def _ebm(train: Coded) -> Callable[[Coded], npt.NDArray[Any]]:
    from interpret.glassbox import ExplainableBoostingClassifier

    X, kinds = _table(train)
    clf = ExplainableBoostingClassifier(feature_types=kinds, n_jobs=1, random_state=0).fit(
        X, train.block.labels
    )
    return lambda rows: np.asarray(clf.predict(_table(rows)[0]))


def _dp_ebm(
    train: Coded, epsilon: float, seed: int, best: bool
) -> Callable[[Coded], npt.NDArray[Any]]:
    from interpret.privacy import DPExplainableBoostingClassifier

    X, kinds = _table(train)
    bounds = dict.fromkeys(range(len(train.block.numbers)), (-1.0, 1.0))
    clf = DPExplainableBoostingClassifier(
        feature_types=kinds,
        n_jobs=1,
        random_state=seed,
        epsilon=epsilon,
        delta=1.0 / train.block.rows**2,
        privacy_bounds=bounds,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(X, train.block.labels)
    if not best:
        return lambda rows: np.asarray(clf.predict(_table(rows)[0]))

    def cut(rows: Coded) -> npt.NDArray[Any]:
        scores = clf.predict_proba(_table(rows)[0])[:, 1]
        cuts = np.quantile(scores, np.linspace(0.01, 0.99, 99))
        errors = [float(((scores > one) != rows.block.labels).mean()) for one in cuts]
        return np.asarray(scores > cuts[int(np.argmin(errors))], np.int64)

    return cut


def _lightgbm(train: Coded) -> Callable[[Coded], npt.NDArray[Any]]:
    from lightgbm import LGBMClassifier

    X, kinds = _table(train)
    chosen = [k for k, kind in enumerate(kinds) if kind == "nominal"]
    clf = LGBMClassifier(n_jobs=1, random_state=0, verbose=-1).fit(
        X, train.block.labels, categorical_feature=chosen
    )
    return lambda rows: np.asarray(clf.predict(_table(rows)[0]))


def _shown(epsilon: float) -> str:
    return "no noise" if math.isinf(epsilon) else f"{epsilon:g}"


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options.add_argument(
        "--epsilon",
        nargs="+",
        type=float,
        default=[0.1, 1.0, 10.0, math.inf],
        help="inf: without privacy",
    )
    options.add_argument("--edges", nargs="+", default=["16"])
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--rivals", nargs="+", choices=("dp-ebm", "ebm", "lightgbm"), default=[])
    options.add_argument("--data", default=os.environ.get("FAIRVEIL_DATA"))
    return options.parse_args()


if __name__ == "__main__":
    main()
