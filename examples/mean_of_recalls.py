"""The G-mean and the H-mean of recalls against the number of classes: the true curves of Alabi's
figure 2.

    python examples/mean_of_recalls.py [--out FOLDER]      writes mean_of_recalls_equal.svg and mean_of_recalls_falling.svg

Of a confusion matrix C (L classes, C_pq the share of rows with label p and prediction q) with
recalls r_p = C_pp / sum_q C_pq,

    G-mean = (r_1 ... r_L)^(1/L),            H-mean = L / (1/r_1 + ... + 1/r_L).

(a) All entries 1/L^2: every recall is 1/L, and both means are 1/L.
(b) Entries fall by 1/3 from one to the next, row by row: r_p = r 3^-(p - 1) with r = (2/3) / (1 -
    3^-L), so the G-mean is r 3^-((L - 1)/2) and the H-mean 2 L r / (3^L - 1).

What the paper says of its figure cannot be. "In both figures, the H-mean performance measure is
larger than the G-mean": a harmonic mean of the same recalls is never above their geometric mean.
"The G-mean decreases faster than the H-mean when the confusion matrix is balanced": there both are
1/L. "The H-mean increases" where entries fall: it falls, and faster than the G-mean. Reading
Example 8.3 as it is printed, with sums over columns (precisions, not recalls), changes none of
this: (a) stays 1/L, and in (b) the precisions are 3^(-L (p - 1)) (1 - 3^-L) / (1 - 3^(-L^2)), which
makes the H-mean smaller still.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from fairveil.show import Axis, Curve, Curves

CLASSES = range(2, 11)


def equal(size: int) -> Any:
    """A confusion matrix whose entries are the same."""
    return np.full((size, size), 1.0 / size**2)


def falling(size: int) -> Any:
    """A confusion matrix whose entries fall by 1/3 from one to the next, row by row."""
    entries = 3.0 ** -np.arange(size * size, dtype=np.float64)
    return (entries / entries.sum()).reshape(size, size)


def g_mean(confusion: Any) -> float:
    """The geometric mean of recalls (Example 8.2)."""
    return float(np.exp(np.log(_recalls(confusion)).mean()))


def h_mean(confusion: Any) -> float:
    """The harmonic mean of recalls."""
    return float(1.0 / (1.0 / _recalls(confusion)).mean())


def h_mean_of_columns(confusion: Any) -> float:
    """Example 8.3 as it is printed: the harmonic mean of precisions."""
    return h_mean(confusion.T)


def _recalls(confusion: Any) -> Any:
    return np.diag(confusion) / confusion.sum(axis=1)


MEANS = {
    "G-mean of recalls": g_mean,
    "H-mean of recalls": h_mean,
    "H-mean of precisions (Example 8.3 as printed)": h_mean_of_columns,
}


def figure(title: str, matrix: Any) -> Curves:
    """Both means of such matrices, for 2 to 10 classes."""
    curves = tuple(
        Curve(label, tuple((size, mean(matrix(size))) for size in CLASSES))
        for label, mean in MEANS.items()
    )
    return Curves(title, Axis("number of classes"), Axis("mean"), curves)


def main() -> None:
    """Write both figures, and say where."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--out", type=Path, default=Path("."))
    folder = options.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    titles = {
        "equal": "Means of recalls, equal entries",
        "falling": "Means of recalls, entries falling by 1/3",
    }
    for name, matrix in (("equal", equal), ("falling", falling)):
        place = folder / f"mean_of_recalls_{name}.svg"
        place.write_text(figure(titles[name], matrix).to_svg() + "\n", encoding="utf-8")
        ends = ", ".join(f"{mean(matrix(CLASSES[-1])):.3g}" for mean in (g_mean, h_mean))
        print(f"{place}: G-mean and H-mean of {CLASSES[-1]} classes {ends}")


if __name__ == "__main__":
    main()
