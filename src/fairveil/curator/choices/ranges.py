"""How far one neighbour's change of the scores ranges over the candidates of a private choice: the
R of `choice`.

A score is F(S), S the sums of a candidate's losses or decisions. Candidates share F and the rows;
they differ in S, and in what one row adds to it. Here F is known by bounds on its partial
derivatives, `lowest` <= dF/dS <= `highest`, each an array of the shape of S: along the straight
line from S to S + d the change of F is sum_j g_j d_j with every g_j within its bounds (mean value
theorem; for a locally Lipschitz F that of Clarke and Lebourg). A linear score has lowest ==
highest, and then R is exact. R is the largest, over neighbours, of (largest change - smallest
change), each candidate free in its g and in its decisions or losses. The line must stay where the
bounds hold: they hold between any two vectors of sums that data of so many rows give.

**Losses**, S[c] the sum of losses in [0, B] over cell c; with marginal groups a row adds its loss b
to one cell of each column.

- add-remove: the change is b sum_j g[c_j], b in [0, B]: R = B max(0, H, -L, H - L) with H = sum_j
  max highest, L = sum_j min lowest, and H - L taken cell by cell. One way only where the slopes
  have one sign;
- replace-one: two rows, both free: twice that;
- sensitive features alone: a row keeps its b, whatever that is for each candidate, and moves from c
  to c' != c: the change is b sum_j (g[c'_j] - g[c_j]), so R is as for add-remove with H = sum_j max
  (highest[c'] - lowest[c]) and -L = H. A column in which the row stays adds nothing.

**Decisions**, S[c, y, k] the number of decisions k in cell c with label y. A row adds 1 to one k of
its cells and label.

- add-remove: R = max over y, k, k' of sum_j max_c (highest[c, y, k] - lowest[c, y, k']), k = k'
  included;
- replace-one: twice that;
- sensitive features alone, candidates that do not read them: k stays: the change is sum_j (g[c'_j,
  y, k] - g[c_j, y, k]), R the largest, over y, k, k', of sum_j max_{c != c'} (highest[c', y, k] -
  lowest[c, y, k] - lowest[c', y, k'] + highest[c, y, k']);
- sensitive features alone, some candidates that read them: any k in c and k' in c': R = max over y,
  c != c' of r(c) + r(c'), r the range of add-remove in one cell; twice add-remove's R where a row
  may change other sensitive columns and stay in c. This holds for the candidates that do not read
  them as well.

All cells are *listed* ones. Weights multiply R by the largest weight. Whole numbers give a whole R.

**Persons** with at most k rows: d is the sum of what k rows add, or of what is added and taken
away, and each candidate's change is the sum of its changes by row at one g: k times R
(theory.md#units).

Guarantees (tests/curator/test_curator_choice_by_function.py, test_curator_decisions.py):
1. No neighbour's change of the scores ranges further over the candidates, under every relation;
   some do range as far.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.promise import Promise
from ...facts import Cells, RowLayout
from ..totals.public_scale import columns_of

Slopes = npt.NDArray[Any]  # whole numbers or floats


def of_losses(lowest: Slopes, highest: Slopes, cells: Cells | None, promise: Promise) -> Any:
    """R of sums of losses in [0, 1]: slopes of shape (cells,)."""
    columns = [slice(column.start, column.stop) for column in columns_of(cells)]
    if promise.protects == "sensitive_features":
        up = sum(_stays_or(_apart(highest[c], -lowest[c])) for c in columns)
        both = sum(
            _stays_or(_apart(highest[c] - lowest[c], highest[c] - lowest[c])) for c in columns
        )
        return max(up, both)
    # A loss of one candidate may be 0 where that of another is 1: the range reaches from the least
    # slope, or 0, to the largest.
    up, down = sum(highest[c].max() for c in columns), sum(-lowest[c].min() for c in columns)
    both = sum((highest[c] - lowest[c]).max() for c in columns)
    return max(0, up, down, both) * (1 if promise.neighbours == "add-remove" else 2)


def rows_of_one(promise: Promise) -> int:
    """How many rows of one who is protected move the scores."""
    return promise.rows_per_unit


def of_decisions(
    lowest: Slopes,
    highest: Slopes,
    cells: Cells | None,
    promise: Promise,
    layout: RowLayout,
    *,
    reads_groups: bool,
) -> Any:
    """R of counts of decisions: slopes of shape (cells, labels, classes). `reads_groups`: whether a
    candidate does."""
    if promise.protects == "sensitive_features":
        if reads_groups:
            return _of_any_change(lowest, highest, cells, layout)
        return _over_classes(lowest, highest, cells, _moved)
    return _over_classes(lowest, highest, cells, _added) * (
        1 if promise.neighbours == "add-remove" else 2
    )


def _over_classes(
    lowest: Slopes, highest: Slopes, cells: Cells | None, part: Callable[[Slopes, Slopes], Slopes]
) -> Any:
    """The largest, over labels and pairs of classes, of the columns' sums of `part`."""
    columns = [slice(column.start, column.stop) for column in columns_of(cells)]
    found = []
    for k, other in itertools.product(range(lowest.shape[2]), repeat=2):
        one, another = (
            highest[:, :, k] - lowest[:, :, other],
            highest[:, :, other] - lowest[:, :, k],
        )
        found.append(np.max(sum(part(one[c], another[c]) for c in columns)))
    return max(found)


def _added(one: Slopes, another: Slopes) -> Slopes:
    """A row comes to a cell of the column: one candidate rises by as much as it can, another by as
    little."""
    return np.asarray(one.max(axis=0))


def _moved(one: Slopes, another: Slopes) -> Slopes:
    """A row leaves a cell of the column for another cell."""
    return _stays_or(_apart(one, another))


def _of_any_change(lowest: Slopes, highest: Slopes, cells: Cells | None, layout: RowLayout) -> Any:
    """Where decisions may follow the group: what a row can do in the one cell, and in the other."""
    if cells is None or cells.mode != "product" or set(cells.names) != set(layout.sensitive_names):
        # also within one cell, or in any cells of each column
        return 2 * _over_classes(lowest, highest, cells, _added)
    ranges = highest.max(axis=2) - lowest.min(axis=2)
    return np.max(_stays_or(_apart(ranges, ranges)))


def _stays_or(moved: Slopes) -> Slopes:
    return np.asarray(np.maximum(moved, 0))


def _apart(p: Slopes, q: Slopes) -> Slopes:
    """max of p[c'] + q[c] over cells c != c', the first axis; nothing where there is one cell
    alone."""
    if len(p) < 2:
        return np.zeros_like(p[0])
    # The two largest of each are enough: where both peaks are in one cell, one side takes its
    # second.
    best, second = np.partition(p, -2, axis=0)[-1:-3:-1], np.partition(q, -2, axis=0)[-1:-3:-1]
    crossed = np.maximum(best[0] + second[1], best[1] + second[0])
    return np.asarray(np.where(p.argmax(axis=0) != q.argmax(axis=0), best[0] + second[0], crossed))
