"""The bins into which a base classifier's scores are put: their edges are public, or made of what
is.

A score is above an edge where it is larger; 0 is always an edge, because a base decides for the
second class above 0. Where scores are public, edges are their quantiles, half way between two that
occur. Where they are not, edges are fixed: about even near 0, wider further out (`sinh`), so that
logits and most decision functions are resolved.

How many bins: the noise of a threshold's rates grows with the root of their number, so it follows
the rows that are known (or supposed), the groups and the noise of one count: all public.

Guarantees (tests/methods/test_methods_score_bins.py):
1. Fixed edges and the number of bins depend on public facts alone.
2. Every number has one bin, and a larger score never a lower one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .._types import Floats
from ..errors import InputError

WIDEST, EVEN = 8.0, 1.5
"""Fixed edges lie between -`WIDEST` and `WIDEST`, and are about even up to `EVEN`."""
LEAST, FEW, MOST, MOST_EXACT = 4, 8, 64, 256
SUPPOSED = 10_000
"""Rows where their number is neither public nor released."""
WORTH = 7.0
"""A bin is worth its noise where an average group and label has so many deviations of one count's
noise for each bin: below, thresholds lose more by noise than they gain by being finer (tried on
Adult and synthetic groups at epsilon 0.1 and 1)."""
MOST_GIVEN = 1024


def number(cells: int, noise: float, rows: float | None) -> int:
    """How many bins, an even number: by the noise of one count, and the rows if they are known.

    >>> (
    ...     number(2, 6.0, 30_000),
    ...     number(2, 60.0, 30_000),
    ...     number(5, 1.4, 30_000),
    ...     number(2, 0.0, 30_000),
    ... )
    (32, 16, 12, 256)
    """
    if not noise:
        return MOST_EXACT
    average = (SUPPOSED if rows is None else rows) / (2.0 * cells)
    return 2 * int(max(LEAST, min(max(FEW, MOST // cells), average / (noise * WORTH))) / 2.0)


def fixed(count: int) -> Floats:
    """Edges of `count` bins (an even number: 0 is one of them).

    >>> fixed(4).round(2).tolist()
    [-2.23, 0.0, 2.23]
    """
    places = np.linspace(-1.0, 1.0, count + 1)[1:-1] * math.asinh(WIDEST / EVEN)
    edges = EVEN * np.sinh(places)
    edges[np.abs(edges) < 1e-9] = 0.0
    return np.asarray(edges)


def quantiles(scores: Floats, count: int) -> Floats:
    """Edges of about `count` bins with as many of these scores each, and 0. For scores that are
    public.

    >>> quantiles(np.array([-2.0, -1.0, 1.0, 1.0, 1.0, 3.0]), 3).tolist()
    [0.0, 2.0]
    """
    values = np.unique(scores)
    if len(values) < 2:
        return np.zeros(1)
    ordered = np.sort(scores)
    at = np.unique(
        np.searchsorted(values, ordered[(np.arange(1, count) * len(ordered)) // count - 1])
    )
    at = at[at < len(values) - 1]
    edges = values[at] / 2.0 + values[at + 1] / 2.0
    below, above = values[values <= 0.0], values[values > 0.0]
    if len(below) and len(above):  # 0 stands for all edges that part the same two scores
        edges = edges[(edges < below[-1]) | (edges > above[0])]
    return np.unique(np.append(edges, 0.0))


def given(edges: object) -> Floats:
    """Edges of a caller's, and 0."""
    try:
        found = np.asarray(edges, np.float64)
    except (TypeError, ValueError):
        found = np.empty((0, 0))
    rising = (
        found.ndim == 1
        and 0 < found.size < MOST_GIVEN
        and np.isfinite(found).all()
        and (np.diff(found) > 0).all()
    )
    if not rising:
        remedy = "Pass a number of bins, or edges such as (-1.0, 0.0, 1.0), fixed in advance."
        raise InputError.expected(
            f"rising finite numbers, below {MOST_GIVEN}", of="bins", got=edges, remedy=remedy
        )
    return np.unique(np.append(found, 0.0))


def codes(scores: Floats, edges: Floats | Sequence[float]) -> npt.NDArray[np.intp]:
    """The bin of each score: how many edges it is above."""
    return np.searchsorted(np.asarray(edges, np.float64), scores, side="left").astype(np.intp)


def usual(edges: Floats | Sequence[float]) -> int:
    """The first bin above 0: there and higher the base itself decides for the second class."""
    return int(np.searchsorted(np.asarray(edges, np.float64), 0.0, side="right"))
