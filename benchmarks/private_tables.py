"""Private tables on real sets, in figures: how often intervals are narrow enough to be of use, how
wide, and how often wrong.

    python benchmarks/private_tables.py [--draws N] [--data NAME ...]

A logistic regression is fitted to a random half. The other half is the population, whose rates and
gaps are known; people are drawn from it with replacement. Each draw is one `private_audit` by the
first two sensitive columns (one, where a set has one), at epsilon 0.5, 1, 3 and without noise, with
intervals that hold each by itself at 95 %. It prints Markdown.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

import fairveil as fv

GROUPS = {
    "adult": ("sex", "race"),
    "law_school": ("race", "male"),
    "credit": ("SEX", "MARRIAGE"),
    "communities": ("racepctblack_high", "racePctHisp_high"),
}
NARROW = 0.1
"""An interval no wider than ten points is of use."""
Array = npt.NDArray[Any]


def people(names: list[str]) -> Iterator[tuple[str, Array, Array, dict[str, Array]]]:
    """Name of the set, decisions about its held-out half, labels and groups."""
    for name in names:
        columns = GROUPS[name]
        source = fv.data.get(name, sensitive=list(columns)).rows
        blocks = list(source.blocks())
        numbers = np.concatenate(
            [np.asarray(block.numbers, np.float64) for block in blocks], axis=1
        )
        codes = np.concatenate([np.asarray(block.codes) for block in blocks], axis=1)
        hot = [codes[j] == k for j in range(len(codes)) for k in range(source.layout.code_sizes[j])]
        features = np.concatenate([numbers, np.array(hot, np.float64)]).T
        labels = np.concatenate([np.asarray(block.labels) for block in blocks])
        groups = np.concatenate([np.asarray(block.sensitive) for block in blocks], axis=1)
        train, held = np.split(
            np.random.default_rng(0).permutation(len(labels)), [len(labels) // 2]
        )
        decided = (
            LogisticRegression(max_iter=300)
            .fit(features[train], labels[train])
            .predict(features[held])
        )
        yield (
            name,
            decided,
            labels[held],
            {column: groups[j][held] for j, column in enumerate(columns)},
        )


def measured(
    decided: Array, y: Array, groups: dict[str, Array], epsilon: float, draws: int
) -> list[str]:
    """Rates of groups: undefined, narrow, mean width, misses; the gap of selection rates: width,
    misses; the pair named."""
    keys = np.stack(list(groups.values()))
    cells = sorted(set(map(tuple, keys.T.tolist())))
    undefined = narrow = missed = rates = named = gap_missed = 0
    widths, gaps = [], []
    truth = {cell: float(decided[(cell == keys.T).all(axis=1)].mean()) for cell in cells}
    fewest = 0
    for seed in range(draws):
        at = np.random.default_rng(seed).integers(len(y), size=len(y))
        found = fv.private_audit(
            decided[at],
            None,
            y[at],
            sensitive_features={k: v[at] for k, v in groups.items()},
            epsilon=epsilon,
            random_state=seed,
        )
        for cell in cells:
            rate = found.by_group[cell]["selection_rate[1]"] if cell in found.by_group else None
            rates += 1
            if rate is None or rate.value is None:
                undefined += 1
                continue
            widths.append(rate.high - rate.low)
            narrow += rate.high - rate.low <= NARROW
            missed += not rate.low <= truth[cell] <= rate.high
        gap = found.difference("selection_rate[1]", *groups)
        if gap.value is not None and gap.high is not None and gap.low is not None:
            own = max(truth.values()) - min(truth.values())
            gaps.append(gap.high - gap.low)
            gap_missed += not gap.low <= own <= gap.high
            named += gap.named_with is not None and gap.named_with >= 0.95
        fewest = len(cells)
    known = rates - undefined
    return [
        f"{fewest}",
        f"{100 * undefined / rates:.1f} %",
        f"{100 * narrow / rates:.1f} %",
        f"{100 * np.mean(widths):.1f}, {100 * np.quantile(widths, 0.9):.1f}",
        f"{100 * missed / known:.1f} %",
        f"{100 * len(gaps) / draws:.0f} %",
        f"{100 * np.mean(gaps):.1f}" if gaps else "none",
        f"{100 * gap_missed / max(len(gaps), 1):.1f} %",
        f"{100 * named / draws:.0f} %",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--data", nargs="*", choices=sorted(GROUPS), default=list(GROUPS))
    given = parser.parse_args()
    print(
        "| data, people | epsilon | groups | undefined | at most 10 points wide | width: mean, "
        "widest tenth | misses "
        "| gap: defined | its width | its misses | pair named with 95 % |\n" + "|---" * 11 + "|"
    )
    for name, decided, y, groups in people(given.data):
        for epsilon in (0.5, 1.0, 3.0, math.inf):
            cells = measured(decided, y, groups, epsilon, given.draws)
            print(f"| {name}, {len(y):,} | {epsilon:g} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
