"""Methods beside each other at equal gap, from files that `frontiers.py` wrote on the same splits.
Prints Markdown.

    python benchmarks/method_comparison.py benchmarks/results/communities-eo-*-in-sample.json

1. Half of the gap: each method's classifier without a constraint, and its error where its own gap
   is half of that.
2. Equal gaps: errors at given gaps, and the difference to the method named by `--against`. Splits
   are drawn together.

Errors lie on straight lines between a method's mean points in the order of what was asked for, as
in `frontiers.py`. Where a method's curve ends at a larger gap, the table says where, and nothing is
compared.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from frontier import comparing, figures

Floats = npt.NDArray[np.float64]


def main() -> None:
    """Read, compare, print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("files", type=Path, nargs="+")
    options.add_argument("--against", default="rate-constrained")
    options.add_argument("--gaps", type=float, nargs="+", default=[0.15, 0.125, 0.1, 0.075, 0.05])
    asked = options.parse_args()
    stored = [json.loads(file.read_text("utf-8")) for file in asked.files]
    paths = {result["method"]: _paths(result) for result in stored}
    print(_half(paths))
    if asked.against in paths:
        print(_equal(paths, asked.against, asked.gaps))


def _paths(result: dict[str, Any]) -> dict[float, comparing.Path]:
    runs = [{**run, "epsilon": float(run["epsilon"])} for run in result["runs"]]
    gap = figures.FIGURES[result["figure"]].gap
    return {
        epsilon: comparing.Path.of(runs, epsilon, gap)
        for epsilon in sorted({run["epsilon"] for run in runs})
    }


def _lines(path: comparing.Path, seeds: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Mean errors and gaps, (draws, asked): the first draw weighs all splits alike."""
    some = path.among(list(seeds))
    weights = comparing.draws(len(seeds))
    return weights @ some.errors, weights @ some.gaps


def _band(values: Floats, splits: int) -> float:
    """Half of the 95 % interval of a mean over splits, by its bootstrap draws."""
    deviation = float(values[1:].std(ddof=1)) * math.sqrt(splits / max(1, splits - 1))
    return float(stats.t.ppf(0.975, max(1, splits - 1))) * deviation


def _half(paths: dict[str, dict[float, comparing.Path]]) -> str:
    rows = []
    for method, curves in paths.items():
        for epsilon, path in curves.items():
            errors, gaps = _lines(path, path.seeds)
            half = gaps[:, 0] / 2
            found = comparing.error_at(errors, gaps, half)
            at = (
                f"{100 * found[0]:.2f} +- {100 * _band(found, len(path.seeds)):.2f} @ "
                f"{100 * half[0]:.1f}"
            )
            more = found - errors[:, 0]
            cost = f"{100 * more[0]:+.2f} +- {100 * _band(more, len(path.seeds)):.2f}"
            k = int(gaps[0].argmin())
            if half[0] < gaps[0, k]:
                at, cost = f"ends at {100 * errors[0, k]:.2f} @ {100 * gaps[0, k]:.1f}", "-"
            plain = f"{100 * errors[0, 0]:.2f} @ {100 * gaps[0, 0]:.1f}"
            rows.append([method, _words(epsilon), plain, at, cost])
    return _table(["method", "epsilon", "no constraint", "half of its gap", "error more"], rows)


def _equal(paths: dict[str, dict[float, comparing.Path]], other: str, at: list[float]) -> str:
    rows = []
    for method, curves in paths.items():
        for epsilon, path in curves.items():
            if epsilon not in paths[other]:
                continue
            seeds = tuple(sorted(set(path.seeds) & set(paths[other][epsilon].seeds)))
            errors, gaps = _lines(path, seeds)
            their_errors, their_gaps = _lines(paths[other][epsilon], seeds)
            cells = []
            for gap in at:
                ours, theirs = (
                    comparing.error_at(errors, gaps, gap),
                    comparing.error_at(their_errors, their_gaps, gap),
                )
                if gap < gaps[0].min():
                    cells.append("not reached")
                    continue
                text = f"{100 * ours[0]:.2f}"
                if method != other and gap >= their_gaps[0].min():
                    text += (
                        f" ({100 * (ours - theirs)[0]:+.2f} +- "
                        f"{100 * _band(ours - theirs, len(seeds)):.2f})"
                    )
                cells.append(text)
            rows.append([method, _words(epsilon), *cells])
    return _table(["method", "epsilon", *(f"gap {100 * gap:g}" for gap in at)], rows)


def _words(epsilon: float) -> str:
    return "not private" if math.isinf(epsilon) else f"{epsilon:g}"


def _table(names: list[str], rows: list[list[str]]) -> str:
    return (
        "\n".join("| " + " | ".join(line) + " |" for line in [names, ["---"] * len(names), *rows])
        + "\n"
    )


if __name__ == "__main__":
    main()
