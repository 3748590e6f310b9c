"""Certificates in figures: how often bounds are wrong, how wide they are, how often fits are
certified, and how fast.

    python benchmarks/certificates.py [coverage] [data] [fits] [monitors] [speed] [--runs N]
    [--seeds N]

Without a part it measures all. It prints Markdown.

`coverage`: one-sided upper bounds of a rate at 97.5 %, at 20 settings of people, rate and noise,
`--runs` draws each. Beside ours: Wilson's bound on noisy counts as if they were exact; Clopper and
Pearson's at the worst counts that noise allows (the union of two bounds); Student's t on the
decisions without noise (the Seldonian toolkit's bound); and Clopper and Pearson's without noise.
`data`: certificates on four real sets. The population is the held-out half itself; people are drawn
from it with replacement, so that its true gaps are known. `fits`: `confidence=0.95` at 20 points,
on synthetic people. `monitors`: how long after a drift an alarm is raised.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

import fairveil as fv
from fairveil.facts import Cells
from fairveil.learning.certificates.evidence import Bet, e_value, p_value
from fairveil.learning.certificates.parts import layout_of
from fairveil.learning.certificates.tails import Counted, _Search, upper_bounds
from fairveil.learning.counts.noise import CountNoise
from fairveil.privacy.noise.sources import NoiseSource

LEVEL = 0.025
LAPLACE = CountNoise("discrete-laplace", 1.0)
GAUSSIAN = CountNoise("gaussian", 4.22)
SETTINGS = [
    *(
        (n, p, LAPLACE)
        for n, p in (
            (30, 0.1),
            (60, 0.05),
            (60, 0.5),
            (300, 0.01),
            (300, 0.1),
            (300, 0.5),
            (1000, 0.1),
        )
    ),
    *((n, p, LAPLACE) for n, p in ((1000, 0.9), (3000, 0.1), (3000, 0.5), (30000, 0.1))),
    *(
        (n, p, GAUSSIAN)
        for n, p in ((60, 0.05), (60, 0.5), (300, 0.01), (300, 0.1), (300, 0.5), (1000, 0.1))
    ),
    *((n, p, GAUSSIAN) for n, p in ((3000, 0.1), (3000, 0.5), (30000, 0.1))),
]
Floats = npt.NDArray[np.float64]


def row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*cells: str) -> None:
    row(*cells)
    row(*("---" for _ in cells))


# Coverage


WIDTHS = 300
"""Of so many draws the mean width of ours is taken; whether it misses is asked of every draw."""


@lru_cache(maxsize=1 << 18)
def misses(s: float, m: float, p: float, noise: CountNoise) -> bool:
    """Whether the rate itself is refused, which it is whenever the bound lies below it."""
    return s < p * (s + m) and _Search(Counted(s, m), noise, LEVEL)._refuses(p, p, LEVEL)


@lru_cache(maxsize=1 << 18)
def ours(s: float, m: float, noise: CountNoise) -> float:
    return float(upper_bounds(Counted(s, m), noise, [LEVEL])[0])


def wilson(s: Floats, m: Floats) -> Floats:
    n = np.maximum(s + m, 1.0)
    p, z = np.clip(s / n, 0, 1), -stats.norm.ppf(LEVEL)
    return (p + z * z / (2 * n) + z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (
        1 + z * z / n
    )


def union(s: Floats, m: Floats, noise: CountNoise) -> Floats:
    """Half of the level for the noise of two counts, half for sampling."""
    away = noise.tail(LEVEL / 2.0)
    k, rest = np.maximum(s + away, 0), np.maximum(m - away, 0)
    return clopper_pearson(k, rest, LEVEL / 2.0)


def clopper_pearson(k: Floats, rest: Floats, level: float) -> Floats:
    return np.where(rest > 0, stats.beta.ppf(1 - level, k + 1, np.maximum(rest, 1e-9)), 1.0)


def student(k: Floats, n: int) -> Floats:
    p = k / n
    return p + stats.t.ppf(1 - LEVEL, n - 1) * np.sqrt(p * (1 - p) / (n - 1))


def drawn(noise: CountNoise, size: int, seed: int) -> Floats:
    stream = NoiseSource.seeded(seed).stream("noise")
    found = (
        stream.discrete_laplace(noise.scale, size)
        if noise.kind == "discrete-laplace"
        else stream.rounded_gaussian(noise.scale, size)
    )
    return np.asarray(found, np.float64)


def coverage(runs: int) -> None:
    print(
        f"\nOne-sided upper bounds at 97.5 %, {runs:,} runs a setting: misses in per cent / mean "
        f"width\n"
    )
    head(
        "n, p, noise",
        "ours",
        "Wilson on noisy counts",
        "union",
        "Student's t, no noise",
        "Clopper-Pearson, no noise",
        "ours / no noise",
    )
    worst = 0.0
    for at, (n, p, noise) in enumerate(SETTINGS):
        rng = np.random.default_rng(at)
        k = rng.binomial(n, p, runs).astype(np.float64)
        away = drawn(noise, 2 * runs, at).reshape(2, runs)
        s, m = k + away[0], n - k + away[1]
        missed = np.mean([misses(a, b, p, noise) for a, b in zip(s, m, strict=True)])
        width = np.mean(
            [ours(a, b, noise) - p for a, b in zip(s[:WIDTHS], m[:WIDTHS], strict=True)]
        )
        exact = clopper_pearson(k, n - k, LEVEL)
        others = {
            "wilson": wilson(s, m),
            "union": union(s, m, noise),
            "t": student(k, n),
            "exact": exact,
        }
        worst = max(worst, missed)
        cells = [
            f"{100 * missed:.1f} / {width:.4f}",
            *(f"{100 * (one < p).mean():.1f} / {one.mean() - p:.4f}" for one in others.values()),
        ]
        title = f"{n:,}, {p:g}, {'Laplace 1' if noise is LAPLACE else 'Gaussian 4.22'}"
        row(title, *cells, f"{width / (exact[:WIDTHS].mean() - p):.2f}")
    error = math.sqrt(LEVEL * (1 - LEVEL) / runs)
    print(
        f"\nOurs misses {100 * worst:.2f} % at the worst setting; one standard error at 2.5 % is "
        f"{100 * error:.2f} %."
    )


# Certificates on data


def tables() -> Iterator[tuple[str, Any, npt.NDArray[Any], npt.NDArray[Any]]]:
    """Name, features, labels and groups."""
    for name in ("adult", "law_school", "credit", "communities"):
        found = fv.data.get(name)
        rows = found.rows
        blocks = list(rows.blocks())
        numbers = np.concatenate(
            [np.asarray(block.numbers, np.float64) for block in blocks], axis=1
        )
        codes = np.concatenate([np.asarray(block.codes) for block in blocks], axis=1)
        hot = [codes[j] == k for j in range(len(codes)) for k in range(rows.layout.code_sizes[j])]
        labels = np.concatenate([np.asarray(block.labels) for block in blocks])
        groups = np.concatenate([np.asarray(block.sensitive) for block in blocks], axis=1)[0]
        yield name, np.concatenate([numbers, np.array(hot, np.float64)]).T, labels, groups


def data(draws: int) -> None:
    from sklearn.linear_model import LogisticRegression

    print(
        f"\nCertificates of a logistic regression, {draws} draws of people from the held-out half, "
        f"95 %\n"
    )
    head(
        "data, people, notion, true gap",
        "epsilon",
        "bound: mean, worst 5 %",
        "bound below the truth",
        "granted at 5 / 10 / 20 points",
    )
    for name, features, labels, groups in tables():
        rng = np.random.default_rng(0)
        order = rng.permutation(len(labels))
        train, held = np.split(order, 2)
        decided = (
            LogisticRegression(max_iter=300)
            .fit(features[train], labels[train])
            .predict(features[held])
        )
        y, a = labels[held], groups[held]
        for notion in (fv.DemographicParity(0.2), fv.EqualizedOdds(0.2)):
            measure = (
                fv.demographic_parity_gap
                if isinstance(notion, fv.DemographicParity)
                else fv.equalized_odds_gap
            )
            truth = measure(y, decided, a)
            for size, epsilon in product((1000, len(held)), (0.5, 1.0, 3.0, math.inf)):
                bounds = []
                for seed in range(draws):
                    at = np.random.default_rng(seed).integers(len(held), size=size)
                    options = {
                        "sensitive_features": a[at],
                        "constraints": notion,
                        "epsilon": epsilon,
                        "random_state": seed,
                    }
                    bounds.append(
                        fv.certify(decided[at], None, y[at], **options).bounds[0].at_most or 1.0
                    )
                found = np.array(bounds)
                granted = " / ".join(
                    f"{100 * (found <= limit).mean():.0f} %" for limit in (0.05, 0.1, 0.2)
                )
                about = f"{100 * found.mean():.1f}, {100 * np.quantile(found, 0.95):.1f}"
                title = f"{name}, {size:,}, {notion.kind.replace('_', ' ')}, {100 * truth:.1f}"
                row(title, f"{epsilon:g}", about, f"{100 * (found < truth).mean():.1f} %", granted)


# Fits


def people(
    n: int, seed: int, groups: int
) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    a = rng.integers(groups, size=n)
    x = np.clip(rng.normal(size=(n, 3)) + 0.8 * (a / max(groups - 1, 1))[:, np.newaxis], -4, 4) / 2
    return x, (x.sum(axis=1) + 0.7 * rng.normal(size=n) > 0.6).astype(np.int64), a


def at(confidence: float | None) -> list[tuple[str, fv.fairness.Notion, int, int]]:
    """Name, notion, groups and rows."""
    sure: dict[str, Any] = {"confidence": confidence}
    return [
        ("demographic parity, 2 groups", fv.DemographicParity(0.2, **sure), 2, 8000),
        ("demographic parity, 4 groups", fv.DemographicParity(0.2, **sure), 4, 16000),
        ("demographic parity, 6 groups", fv.DemographicParity(0.2, **sure), 6, 24000),
        ("ratio of selection rates, 2 groups", fv.SelectionRateRatio(0.8, **sure), 2, 8000),
        ("equalized odds, 2 groups", fv.EqualizedOdds(0.2, **sure), 2, 12000),
        ("equalized odds, 4 groups", fv.EqualizedOdds(0.2, **sure), 4, 24000),
        ("equal opportunity, 3 groups", fv.EqualOpportunity(0.2, **sure), 3, 12000),
        ("equal opportunity, 6 groups", fv.EqualOpportunity(0.2, **sure), 6, 24000),
        ("false positive rates, 2 groups", fv.FalsePositiveRateParity(0.2, **sure), 2, 8000),
        ("error rates, 2 groups", fv.ErrorRateParity(0.1, **sure), 2, 8000),
        ("false negative rate of each of 2", fv.FalseNegativeRate(0.3, "each", **sure), 2, 8000),
        ("error of each of 3", fv.BoundedGroupLoss(0.25, **sure), 3, 12000),
    ]


def fits(seeds: int) -> None:
    warnings.simplefilter("ignore")
    print(
        f"\n`RateConstrainedClassifier`, epsilon 1, confidence 0.95, share 0.3, {seeds} seeds; "
        f"truth on 300,000 others. As\n"
        "found / as handed out. Gaps, bounds and errors in points\n"
    )
    heads = (
        "notion",
        "rows",
        "bound, margin, aim",
        "population above the bound",
        "certified",
        "certified wrongly",
    )
    head(*heads, "mean truth", "error", "decisions replaced: mean, largest tenth")
    for (name, notion, groups, rows), (_, plain, _, _) in zip(at(0.95), at(None), strict=True):
        fresh, y, a = people(300_000, 10_000, groups)
        of_ratio = 1.0 - getattr(notion, "min_ratio", 0.0)
        bound = next(
            (
                getattr(notion, of)
                for of in ("max_gap", "max_rate", "max_loss")
                if hasattr(notion, of)
            ),
            of_ratio,
        )
        found: list[tuple[list[float], list[float]]] = []
        for seed in range(seeds):
            x, labels, members = people(rows, seed, groups)
            both = []
            for way in ("replace", "keep"):
                clf = fv.RateConstrainedClassifier(
                    notion,
                    epsilon=1.0,
                    public_rows=rows,
                    random_state=seed,
                    certify_share=fv.SetAside(if_refused=way),
                )
                clf.fit(x, labels, sensitive_features=members)
                both.append(measured(clf, plain, fresh, y, a))
                if clf.certificate_.replaced is None and way == "replace":
                    both *= 2
                    break
            found.append((both[1], both[0]))
        aim = clf.certified_aim_
        numbers = np.array(found)  # (seeds, ways, what)
        told = [
            " / ".join(f"{100 * one:.1f} %" for one in numbers[:, :, k].mean(axis=0))
            for k in range(3)
        ]
        told += [
            " / ".join(f"{100 * one:.1f}" for one in numbers[:, :, k].mean(axis=0)) for k in (3, 4)
        ]
        shares = numbers[:, 1, 5]
        told.append(f"{100 * shares.mean():.1f} %, {100 * np.quantile(shares, 0.9):.1f} %")
        row(
            name,
            f"{rows:,}",
            f"{100 * bound:.0f}, {100 * aim.margins[0]:.1f}, {100 * aim.aims[0]:.1f}",
            *told,
        )


def measured(clf: Any, plain: Any, fresh: Floats, y: Any, a: Any) -> list[float]:
    """Above the bound, certified, certified wrongly, the largest value (of a ratio: one minus it),
    error, share replaced."""
    decided, granted = clf.predict(fresh, random_state=1), clf.certificate_.certified
    if isinstance(plain, fv.SelectionRateRatio):
        rates = [decided[a == k].mean() for k in range(a.max() + 1)]
        truth, bound = 1.0 - float(min(rates) / max(rates)), 1.0 - plain.min_ratio
    else:
        told = fv.metrics.audit(plain, y, decided, a)
        truth, bound = float(np.max(told.values)), float(told.bounds[int(np.argmax(told.values))])
    replaced = clf.certificate_.replaced
    share = 0.0 if replaced is None else replaced.share
    return [
        truth > bound,
        granted,
        granted and truth > bound,
        truth,
        float((decided != y).mean()),
        share,
    ]


# Monitors


def monitors(seeds: int) -> None:
    """Selection rates 0.3 and 0.3 + gap; the gap is 0.05 for 10 periods, then another; the bound is
    0.1, the alarm at 20."""
    print(
        f"\nMonitors of a gap of 10 points, false alarm 5 %, epsilon 1, {seeds} runs: a drift "
        f"after 10 periods\n"
    )
    head(
        "people a period",
        "gap after the drift",
        "alarm before the drift",
        "alarm within 30 periods",
        "delay in periods: median, worst tenth",
    )
    layout = layout_of([fv.DemographicParity(0.1)], Cells((("f", "m"),)), (0, 1))
    for people, gap in product((1000, 3000), (0.1, 0.15, 0.2, 0.3)):
        rng, early, delays = np.random.default_rng(0), 0, []
        for _ in range(seeds):
            bet = Bet()
            for period in range(40):
                hits = rng.binomial(people // 2, (0.3, 0.3 + (0.05 if period < 10 else gap)))
                table = np.zeros((2, 2, 2))
                table[:, 0, 0], table[:, 0, 1] = people // 2 - hits, hits
                counts = np.bincount(layout.part_of.ravel(), table.ravel(), layout.parts).astype(
                    np.float64
                )
                q = 1.0 - math.exp(-1.0)
                counts += rng.geometric(q, layout.parts) - rng.geometric(q, layout.parts)
                bet = bet.after(e_value(p_value(layout, counts, LAPLACE)))
                if bet.highest >= 20.0:
                    break
            raised = bet.highest >= 20.0
            early += raised and bet.periods <= 10
            if raised and bet.periods > 10:
                delays.append(bet.periods - 10)
        never = seeds - early - len(delays)
        waited = np.array([*delays, *([math.inf] * never)])
        found = [np.quantile(waited, at, method="higher") for at in (0.5, 0.9)]
        shown = ", ".join("none" if math.isinf(one) else f"{one:.0f}" for one in found)
        row(
            f"{people:,}",
            f"{100 * gap:.0f} points",
            f"{early} of {seeds}",
            f"{len(delays)} of {seeds}",
            shown,
        )


# Speed


def speed() -> None:
    rng = np.random.default_rng(0)
    groups, decided, y = (
        rng.integers(20, size=1_000_000),
        rng.random(1_000_000) < 0.3,
        rng.random(1_000_000) < 0.4,
    )
    options: dict[str, Any] = {"sensitive_features": groups, "epsilon": 1.0}
    fv.certify(
        decided[:2000],
        None,
        y[:2000],
        constraints="demographic_parity:0.1",
        sensitive_features=groups[:2000] % 2,
        epsilon=1.0,
    )
    print("\nA million decisions in 20 groups, best of 5, in seconds of the processor\n")
    head("what", "seconds")
    cases = {
        "certify, demographic parity": lambda: fv.certify(
            decided, None, y, constraints="demographic_parity:0.1", **options
        ),
        "certify, equalized odds": lambda: fv.certify(
            decided, None, y, constraints="equalized_odds:0.1", **options
        ),
        "private table with every gap": lambda: (
            fv.private_audit(decided, None, y, **options).results
        ),
    }
    for name, call in cases.items():
        taken = []
        for _ in range(5):
            since = time.process_time()
            call()
            taken.append(time.process_time() - since)
        row(name, f"{min(taken):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", default=["coverage", "data", "fits", "monitors", "speed"]
    )
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=200)
    given = parser.parse_args()
    parts = {
        "coverage": lambda: coverage(given.runs),
        "data": lambda: data(given.seeds),
        "fits": lambda: fits(given.seeds),
        "monitors": lambda: monitors(given.seeds // 4),
        "speed": speed,
    }
    for part in given.parts:
        parts[part]()


if __name__ == "__main__":
    main()
