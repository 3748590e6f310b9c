"""What a release costs where groups are recorded otherwise than as true ones: unmatched, flipped,
or distributions.

    python benchmarks/attribute_holder.py --rows 2000 8000 --seeds 10

Made-up applicants with two groups. One release of epsilon 1, then linear models with a parity gap
of 5 percentage points asked. Error and true gap are those of the distribution of decisions on
20,000 other applicants: means over seeds, the standard deviation of each in brackets. `bars`: the
half-width of the interval of the gap of a fixed rule, in percentage points, and `off`: how far its
estimate is from the truth on average.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import fairveil as fv

ASKED = "demographic_parity:0.05"
NAMES = np.array(["f", "m", "unknown"])
HELD_OUT = 20_000


def applicants(rows: int, rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """Features, labels, groups, and P(group | features)."""
    group = rng.integers(2, size=rows)
    x = rng.normal(size=(rows, 4))
    x[:, 0] += 0.8 * group
    hired = (x[:, 0] + x[:, 1] + rng.normal(size=rows) > 0.4).astype(int)
    return x, hired, group, 1.0 / (1.0 + np.exp(-0.8 * (x[:, 0] - 0.4)))


def flipped(epsilon: float) -> Callable[..., dict[str, Any]]:
    """Answers by randomized response."""

    def made(group: Any, share: Any, rng: np.random.Generator) -> dict[str, Any]:
        reports = fv.Reports.randomized_response(("f", "m"), epsilon)
        said = np.where(rng.uniform(size=len(group)) < reports.rates[0][1], 1 - group, group)
        return {"sensitive_features": NAMES[said], "reports": reports}

    return made


def unmatched(group: Any, share: Any, rng: np.random.Generator) -> dict[str, Any]:
    """One in ten has no entry, and is a group of its own."""
    return {"sensitive_features": NAMES[np.where(rng.uniform(size=len(group)) < 0.1, 2, group)]}


def coarse(group: Any, share: Any, rng: np.random.Generator) -> dict[str, Any]:
    """A proxy by halves of the features: right on average in each half."""
    half = (share > 0.5).astype(int)
    means = np.array([group[half == one].mean() for one in (0, 1)])
    return {
        "sensitive_features": fv.SoftGroups(
            np.stack([1 - means[half], means[half]], axis=1), ("f", "m")
        )
    }


WAYS: dict[str, Callable[..., dict[str, Any]]] = {
    "true groups": lambda group, share, rng: {"sensitive_features": NAMES[group]},
    "one in ten unmatched": unmatched,
    "flipped, local epsilon 3": flipped(3.0),
    "flipped, local epsilon 1.1": flipped(1.1),
    "flipped, local epsilon 0.5": flipped(0.5),
    "proxy by all features": lambda group, share, rng: {
        "sensitive_features": fv.SoftGroups(np.stack([1 - share, share], axis=1), ("f", "m"))
    },
    "proxy by halves": coarse,
}


def measured(way: str, rows: int, seed: int, epsilon: float) -> tuple[float, float, float, float]:
    """Error and true gap of the model elsewhere; half-width and error of an estimated gap."""
    rng = np.random.default_rng(seed)
    x, hired, group, share = applicants(rows, rng)
    released = fv.release_groups(
        x, hired, epsilon=epsilon, random_state=seed, **WAYS[way](group, share, rng)
    )
    model = released.fit(x, hired, ASKED)
    other, label, truth, _ = applicants(HELD_OUT, rng)
    law = model.predict_proba(other)[:, 1]
    error = float(np.where(label == 1, 1 - law, law).mean())
    rule = (x[:, 0] + x[:, 1] > 0.4).astype(int)
    line = next(
        one
        for one in released.rates(x, hired, rule, ASKED)
        if "group f" in one.name and "group m" in one.name and one.value >= 0
    )
    true = abs(rule[group == 1].mean() - rule[group == 0].mean())
    gap = abs(law[truth == 1].mean() - law[truth == 0].mean())
    return error, float(gap), (line.high - line.low) / 2.0, abs(line.value - float(true))


def main() -> None:
    """Fit, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 8000])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| recorded | rows | error | true gap | bars | off |\n|" + " --- |" * 6)
    for rows in asked.rows:
        for way in WAYS:
            found = 100 * np.array(
                [measured(way, rows, seed, asked.epsilon) for seed in range(asked.seeds)]
            )
            mean, deviation = found.mean(axis=0), found.std(axis=0, ddof=min(1, asked.seeds - 1))
            cells = " | ".join(
                f"{m:.1f} ({s:.1f})" for m, s in zip(mean[:2], deviation[:2], strict=True)
            )
            print(f"| {way} | {rows:,} | {cells} | {mean[2]:.1f} | {mean[3]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
