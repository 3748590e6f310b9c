"""Error against fairness gap at the defaults, beside fairlearn. Prints tables.

    python benchmarks/frontiers.py --figure adult-dp --protects records --scaling unsafe
    python benchmarks/frontiers.py --figure adult-eo --epsilons 0.1 1 --seeds 5 --fairlearn
    python benchmarks/frontiers.py --figure communities-eo --protects sensitive_features --method game

Every number is a mean over `--seeds` splits (a quarter held out; the noise is seeded like the
split), at delta = 1 / n^2 of the n training rows. `--scaling unsafe`: numbers scaled by the
training rows' own means and deviations; `honest`: by the schema's bounds alone.

A randomised classifier is measured by expectations over its own draws, never by a draw: `share` is
each row's probability of being decided for the second class.

`--fairlearn`: ExponentiatedGradient on the same splits, not private. The base learner is
scikit-learn's logistic regression at its defaults but for the solver; what is measured is the
mixture's expected error and the gap of its expected rates. It is compared at equal gap, on straight
lines between our mean points in the order of what was asked for, where its gap exceeds the floor:
the mean gap that an exactly fair model shows on as many rows. "below": the whole 95 % band of the
difference (bootstrap over splits, drawn together) is below zero.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

import fairveil as fv
from fairveil.errors import ConstraintNotMet
from sets import Coded, dense, law, load, split

Floats = npt.NDArray[np.float64]
Run = dict[str, Any]
RECORDS = (0.1, 0.5, 1.0, 3.0, 9.0, math.inf)
SENSITIVE = (0.05, *RECORDS)
JAGIELSKI = (0.5, 1.0, 2.0, 5.0, math.inf)
GAMMAS = (0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.02)
BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1)
"""What fairlearn is asked for."""
DRAWS = 2000
PROTECTED = {
    "records": "record-level privacy, add-remove",
    "sensitive_features": "attribute-level privacy, replace-one",
}
GAPS = {"demographic_parity": "parity", "equalized_odds": "odds", "false_negative_rate": "misses"}


@dataclass(frozen=True)
class Figure:
    """`bounds`: what is asked for, beside no constraint at all. `delta`: None, 1 / n^2 of the
    training rows. `epsilons`: None, those of the protection."""

    dataset: str
    constraint: str
    bounds: tuple[float, ...]
    delta: float | None = None
    epsilons: tuple[float, ...] | None = None

    @property
    def gap(self) -> str:
        """The measure that is bounded."""
        return GAPS[self.constraint]


FIGURES = {
    "adult-dp": Figure(
        "adult", "demographic_parity", (0.15, 0.12, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.001)
    ),
    "credit-dp": Figure("credit", "demographic_parity", (0.02, 0.015, 0.01, 0.006, 0.003, 0.001)),
    "parkinsons-dp": Figure(
        "parkinsons", "demographic_parity", (0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.003)
    ),
    "adult-eo": Figure(
        "adult", "equalized_odds", (0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.001)
    ),
    "credit-eo": Figure("credit", "equalized_odds", (0.03, 0.02, 0.015, 0.01, 0.006, 0.003)),
    "communities-eo": Figure("communities", "equalized_odds", GAMMAS, 1e-7, JAGIELSKI),
    "communities-majority-eo": Figure(
        "communities-majority", "equalized_odds", GAMMAS, 1e-7, JAGIELSKI
    ),
    "adult-fnr": Figure("adult", "false_negative_rate", (0.35, 0.3, 0.25, 0.2, 0.15, 0.1)),
}
METHODS: dict[str, Callable[..., Any]] = {
    "primal-dual": fv.FairClassifier,
    "oracle-game": partial(fv.FairClassifier, solver=fv.OracleGame()),
    "group-objective": partial(fv.FairClassifier, solver=fv.GroupObjective()),
}
"""All of them are blind to the group at prediction."""


@dataclass(frozen=True)
class Measured:
    """What decisions do on some rows. `parity`, `odds`: gaps; `floor_*`: the mean gap that
    decisions with the same rates, but exactly fair ones, are measured at on as many rows."""

    error: float
    parity: float
    odds: float
    misses: float  # the false negative rate
    floor_parity: float
    floor_odds: float
    floor_misses: float = 0.0


def measure(share: Floats, rows: Coded) -> Measured:
    """Of two classes and two groups.

    With n_a and n_b rows a fair rate shows a gap |N(0, s^2)|, s^2 = v (1 / n_a + 1 / n_b), v the
    variance of `share` among them (p (1 - p) where decisions are certain), of mean s sqrt(2 / pi).
    The larger of two such gaps has the mean sqrt(2 / pi) sqrt(s^2 + t^2), since max(|x|, |y|) = (|x
    + y| + |x - y|) / 2.
    """
    true, group = rows.labels == 1, rows.sensitive[0] == 0

    def gap(among: npt.NDArray[np.bool_]) -> tuple[float, float]:
        one, other = among & group, among & ~group
        counts = 1 / int(one.sum()) + 1 / int(other.sum())
        found = abs(float(share[one].mean() - share[other].mean()))
        return found, float(share[among].var()) * counts

    parity, variance = gap(np.ones(len(true), bool))
    hits, variance_hits = gap(true)
    alarms, variance_alarms = gap(~true)
    return Measured(
        error=float(np.where(true, 1.0 - share, share).mean()),
        parity=parity,
        odds=max(hits, alarms),
        misses=1.0 - float(share[true].mean()),
        floor_parity=math.sqrt(2 / math.pi * variance),
        floor_odds=math.sqrt(2 / math.pi * (variance_hits + variance_alarms)),
    )


def fitted(
    asked: argparse.Namespace, epsilon: float, bound: float | None, seed: int, train: Coded
) -> Any:
    """One model at the defaults."""
    wanted = FIGURES[asked.figure]
    delta = 1.0 / train.block.rows**2 if wanted.delta is None else wanted.delta
    model = METHODS[asked.method](
        constraints=None if bound is None else f"{wanted.constraint}:{bound}",
        epsilon=epsilon,
        delta=delta,
        protects=asked.protects,
        schema=fv.Schema(unsafe_data_dependent_bounds=asked.scaling == "unsafe"),
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)  # it is counted
        return model.fit(train)


def broken(model: Any) -> bool:
    """Whether the report says "not met", not that it cannot tell."""
    return model.constraint_report_.met is False


def run_split(asked: argparse.Namespace, seed: int) -> tuple[list[Run], list[Run]]:
    """All models of one split, ours and fairlearn's."""
    wanted = FIGURES[asked.figure]
    train, test = split(load(wanted.dataset, asked.data), seed)
    if asked.most is not None:
        train, test = train[np.arange(asked.most)], test[np.arange(asked.most)]
    share = float((test.labels == 1).mean())
    facts = {
        "seed": seed,
        "constant_error": min(share, 1 - share),
        "test_rows": test.block.rows,
        "train_rows": train.block.rows,
    }
    ours = []
    for epsilon, bound in product(asked.epsilons, (None, *(asked.bounds or wanted.bounds))):
        model = fitted(asked, epsilon, bound, seed, train)
        ours.append(
            {
                **facts,
                "epsilon": epsilon,
                "asked": bound,
                "broken": broken(model),
                "test": asdict(measure(law(model, test)[:, 1], test)),
                "train": asdict(measure(law(model, train)[:, 1], train)),
            }
        )
    if not asked.fairlearn or wanted.gap == "misses":
        return ours, []
    return ours, [{**facts, **one} for one in fairlearn(train, test, wanted.gap)]


def fairlearn(train: Coded, test: Coded, gap: str) -> list[Run]:
    """ExponentiatedGradient at each bound, numbers scaled by the training rows."""
    from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    X, held_out = dense(train, train), dense(test, train)
    notion, found = {"parity": DemographicParity, "odds": EqualizedOdds}[gap], []
    for bound in BOUNDS:
        learner = LogisticRegression(solver="newton-cholesky")
        model = ExponentiatedGradient(learner, notion(difference_bound=bound))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, train.labels, sensitive_features=train.sensitive[0])
        share = np.asarray(model._pmf_predict(held_out)[:, 1])
        found.append({"bound": bound, **asdict(measure(share, test))})
    return found


@dataclass(frozen=True, eq=False)
class Sweep:
    """Errors, gaps and floors (seeds, asked) of one curve, from the weakest constraint on."""

    errors: Floats
    gaps: Floats
    floors: Floats
    constant: float

    @staticmethod
    def of(runs: Sequence[Run], epsilon: float, gap: str) -> Sweep:
        """One epsilon's runs."""
        chosen = {(run["seed"], run["asked"]): run for run in runs if run["epsilon"] == epsilon}
        seeds = sorted({seed for seed, _ in chosen})
        asked = in_order(bound for _, bound in chosen)

        def grid(name: str) -> Floats:
            return np.array([[chosen[seed, b]["test"][name] for b in asked] for seed in seeds])

        constant = float(np.mean([run["constant_error"] for run in chosen.values()]))
        return Sweep(grid("error"), grid(gap), grid(f"floor_{gap}"), constant)

    def floor_at(self, error: float) -> float:
        """The gap that an exactly fair model of that error shows: between our models, and a
        constant one, which shows none."""
        spots = sorted(
            [
                *zip(self.errors.mean(axis=0), self.floors.mean(axis=0), strict=True),
                (self.constant, 0.0),
            ]
        )
        return float(np.interp(error, [spot[0] for spot in spots], [spot[1] for spot in spots]))


def in_order(bounds: Any) -> list[float | None]:
    """From no constraint to the tightest."""
    return sorted(set(bounds), key=lambda bound: -math.inf if bound is None else -bound)


def error_at(errors: Floats, gaps: Floats, gap: Floats) -> Floats:
    """The error at a gap, for each line of mean errors and gaps (draws, asked).

    Where the line passes the gap more than once, the pass at the weakest constraint counts: nobody
    asks for more than gives what is wanted. Beyond its widest point that point counts, which has
    less gap than it is compared at; short of its narrowest point that one counts, and the verdict
    says so.
    """
    found = np.full(len(errors), np.nan)
    for k in range(errors.shape[1] - 1):
        x, u, y, v = gaps[:, k], gaps[:, k + 1], errors[:, k], errors[:, k + 1]
        inside = (np.minimum(x, u) <= gap) & (gap <= np.maximum(x, u))
        share = np.divide(gap - x, u - x, out=np.zeros_like(x), where=u != x)
        there = np.where(u != x, y + share * (v - y), np.maximum(y, v))
        found = np.where(inside & np.isnan(found), there, found)
    rows = np.arange(len(errors))
    widest, narrowest = gaps.argmax(axis=1), gaps.argmin(axis=1)
    found = np.where(gap > gaps[rows, widest], errors[rows, widest], found)
    return np.where(gap < gaps[rows, narrowest], errors[rows, narrowest], found)


def against(ours: Sweep, errors: Floats, gaps: Floats) -> dict[str, Any]:
    """Our error at somebody's gap, less theirs, with the 95 % band of the mean over splits, which
    are drawn together."""
    splits = len(ours.errors)
    counts = np.random.default_rng(20_240).multinomial(splits, np.full(splits, 1 / splits), DRAWS)
    weights = np.vstack([np.ones(splits), counts]) / splits
    theirs, at, mean_gaps = weights @ errors, weights @ gaps, weights @ ours.gaps
    found = error_at(weights @ ours.errors, mean_gaps, at)
    difference = found - theirs
    deviation = float(difference[1:].std(ddof=1)) * math.sqrt(splits / max(1, splits - 1))
    half = float(stats.t.ppf(0.975, max(1, splits - 1))) * deviation
    verdict = "not below"
    if at[0] < ours.floor_at(float(theirs[0])):
        verdict = "not compared: under the floor"
    elif at[0] < mean_gaps[0].min():
        verdict = "not below: our curve ends at a larger gap"
    elif difference[0] < 0:
        verdict = "below" if difference[0] + half < 0 else "below, within the band"
    elif at[0] > mean_gaps[0].max():
        verdict = "not below: our widest point has less gap and more error"
    return {
        "gap": float(at[0]),
        "error": float(theirs[0]),
        "ours": float(found[0]),
        "difference": float(difference[0]),
        "half": half,
        "verdict": verdict,
    }


def points(runs: Sequence[Run], gap: str) -> list[dict[str, Any]]:
    """One line an epsilon and bound: asked, got in training, got on held-out rows."""
    lines = []
    for epsilon in sorted({run["epsilon"] for run in runs}):
        for asked in in_order(run["asked"] for run in runs):
            some = [run for run in runs if (run["epsilon"], run["asked"]) == (epsilon, asked)]
            lines.append(
                {
                    "epsilon": epsilon,
                    "asked": asked,
                    "error": mean_and_spread([run["test"]["error"] for run in some]),
                    "gap": mean_and_spread([run["test"][gap] for run in some]),
                    "training": float(np.mean([run["train"][gap] for run in some])),
                    "broken": float(np.mean([run["broken"] for run in some])),
                }
            )
    return lines


def mean_and_spread(values: list[float]) -> tuple[float, float, float]:
    """Mean, standard deviation over splits, and the half width of the mean's 95 % interval."""
    splits = len(values)
    deviation = float(np.std(values, ddof=1)) if splits > 1 else 0.0
    half = float(stats.t.ppf(0.975, max(1, splits - 1))) * deviation / math.sqrt(splits)
    return float(np.mean(values)), deviation, half


def section(asked: argparse.Namespace, runs: list[Run], theirs: list[Run]) -> str:
    """The points, fairlearn beside them, and what was asked and got: Markdown."""
    wanted, first = FIGURES[asked.figure], runs[0]
    scaling = (
        "declared bounds"
        if asked.scaling == "honest"
        else "the training rows' own means and deviations (unsafe)"
    )
    delta = f"1 / {first['train_rows']}^2" if wanted.delta is None else f"{wanted.delta:g}"
    method = "" if asked.method == "primal-dual" else f"{asked.method}, "
    constant = float(np.mean([run["constant_error"] for run in runs]))
    lines = points(runs, wanted.gap)
    parts = [
        f"### {asked.figure}, {method}{PROTECTED[asked.protects]}, scaled by {scaling}",
        f"{asked.seeds} splits, {first['test_rows']:,} test rows, delta = {delta}. Held-out error "
        "in percent (its spread over splits) @ mean held-out gap in points.",
        _points(lines),
        f"A constant answer errs by {100 * constant:.1f}% on these test rows.",
    ]
    if theirs:
        parts += [
            "fairlearn's ExponentiatedGradient, not private, on the same splits:",
            _fairlearn(runs, theirs, wanted.gap),
        ]
    return "\n\n".join([*parts, _asked_and_got(lines)])


def _points(lines: list[dict[str, Any]]) -> str:
    asked = in_order(line["asked"] for line in lines)
    rows = []
    for epsilon in dict.fromkeys(line["epsilon"] for line in lines):
        cells = [_epsilon(epsilon)]
        for line in lines:
            if line["epsilon"] == epsilon:
                error, spread, _ = line["error"]
                cells.append(f"{100 * error:.1f} ({100 * spread:.1f}) @ {100 * line['gap'][0]:.1f}")
        rows.append(cells)
    words = [f"asked {100 * bound:g}" for bound in asked if bound is not None]
    return table(["epsilon", "no constraint", *words], rows)


def _fairlearn(runs: list[Run], theirs: list[Run], gap: str) -> str:
    rows = []
    for epsilon in sorted({run["epsilon"] for run in runs if run["epsilon"] < math.inf}):
        ours = Sweep.of(runs, epsilon, gap)
        for bound in BOUNDS:
            some = sorted(
                (one for one in theirs if one["bound"] == bound), key=lambda one: one["seed"]
            )
            errors, gaps = (np.array([one[name] for one in some]) for name in ("error", gap))
            found = against(ours, errors, gaps)
            middle, half = 100 * found["difference"], 100 * found["half"]
            rows.append(
                [
                    f"{epsilon:g}",
                    f"{bound:g}",
                    f"{100 * found['gap']:.1f}",
                    f"{100 * found['error']:.2f}",
                    f"{100 * found['ours']:.2f}",
                    f"{middle:+.2f} [{middle - half:+.2f}, {middle + half:+.2f}]",
                    found["verdict"],
                ]
            )
    heads = ["our epsilon", "its bound", "gap", "its error", "our error", "difference, 95 %"]
    return table([*heads, "verdict"], rows)


def _asked_and_got(lines: list[dict[str, Any]]) -> str:
    """What was asked for, the mean gap in training, and the mean held-out gap with the 95 % band of
    the mean; in points."""
    rows = []
    for line in lines:
        if line["asked"] is not None and line["epsilon"] < math.inf:
            gap, _, half = line["gap"]
            rows.append(
                [
                    f"{line['epsilon']:g}",
                    f"{100 * line['asked']:g}",
                    f"{100 * line['training']:.2f}",
                    f"{100 * gap:.2f} +- {100 * half:.2f}",
                    f"{100 * (gap - line['asked']):+.2f}",
                    f"{100 * line['broken']:.0f}%",
                ]
            )
    heads = ["epsilon", "asked", "training", "held out", "held out - asked"]
    return table([*heads, "fits that say it is not met"], rows)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _epsilon(epsilon: float) -> str:
    return "not private" if math.isinf(epsilon) else f"{epsilon:g}"


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--figure", choices=sorted(FIGURES), default="adult-dp")
    options.add_argument("--method", choices=sorted(METHODS), default="primal-dual")
    options.add_argument("--protects", choices=sorted(PROTECTED), default="records")
    options.add_argument("--scaling", choices=("unsafe", "honest"), default="unsafe")
    options.add_argument("--seeds", type=int, default=15)
    options.add_argument("--epsilons", type=float, nargs="+", help="inf: without privacy")
    options.add_argument("--bounds", type=float, nargs="+", help="default: the figure's")
    options.add_argument("--data", help="a folder; without it FAIRVEIL_DATA")
    options.add_argument("--fairlearn", action="store_true", help="beside, on the same splits")
    options.add_argument("--json", type=Path, help="a file that gets every run")
    options.add_argument("--jobs", type=int, default=2, help="processes")
    options.add_argument("--most", type=int, help="so many rows at most, for a quick look")
    asked = options.parse_args()
    usual = RECORDS if asked.protects == "records" else SENSITIVE
    asked.epsilons = asked.epsilons or FIGURES[asked.figure].epsilons or usual
    return asked


def main() -> None:
    """Fit every split, print."""
    asked = _options()
    seeds, work = range(asked.seeds), partial(run_split, asked)
    if asked.jobs == 1:
        found = list(map(work, seeds))
    else:
        with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
            found = list(pool.map(work, seeds))
    ours = [run for runs, _ in found for run in runs]
    theirs = [run for _, runs in found for run in runs]
    if asked.json:
        asked.json.write_text(json.dumps({"ours": ours, "fairlearn": theirs}) + "\n", "utf-8")
    print(section(asked, ours, theirs))


if __name__ == "__main__":
    main()
