"""How many people of each group are in each public cluster: asked once, with pure epsilon. All that
follows is arithmetic.

    M[c, a] = number of rows of cluster c and group cell a,    released with discrete Laplace noise,
       sum over a public

One person's sensitive value changes, and nothing else: a row leaves one cell of its cluster for
another. With more than two cells two counts move by one: L1 sensitivity 2. With two cells the
counts of the first are asked, and the others are the clusters' sizes less those: L1 sensitivity 1.
Clusters are disjoint, so their number costs nothing (docs/release_once.md).

Guarantees (tests/learning/test_learning_group_counts.py):
1. The plan is one event, made of the promise and the groups, and keeps the promise.
2. Over all neighbours the exact counts that are asked move by at most the stated L1 sensitivity.
3. Noisy counts are the exact ones plus independent noise of the stated distribution: unbiased.
   `GroupCounts` holds nothing exact but the clusters' sizes, which are public.
4. Memberships are not negative and sum to 1.
5. Where recorded groups are flipped ones (`reports`), `estimates` are unbiased for the true ones,
   over noise and flips.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ..._types import Floats
from ...core.events import DiscreteLaplace, Event, NonPrivate
from ...core.promise import Promise
from ...curator import AttachedCodes, CodeHistogram, Curator, Measurement
from ...errors import PrivacyError
from ...facts import Cells, Reports
from ...privacy.accounting.calibration import calibrate
from ..counts import CountNoise, CountPlan, onto_totals

PURPOSE = "rows by cluster and group"


@dataclass(frozen=True, eq=False)
class CountsPlan:
    """How the counts are asked, and at what price. `multiplier` 0: exactly, where nothing is
    promised."""

    promise: Promise
    cells: Cells
    multiplier: float

    @property
    def moved(self) -> int:
        """The L1 sensitivity of what is asked."""
        return _moved(self.promise, self.cells)

    @property
    def one_group(self) -> bool:
        """Two groups: the counts of the first tell those of the second."""
        return self.cells.count == 2

    @property
    def event(self) -> Event:
        """The one release, as the curator will log it."""
        return (
            DiscreteLaplace(self.multiplier, self.moved)
            if self.promise.is_private
            else NonPrivate()
        )

    @property
    def noise(self) -> CountNoise:
        """The distribution of the noise of each count."""
        if not self.multiplier:
            return CountNoise("none", 0.0)
        return CountNoise("discrete-laplace", self.multiplier * self.moved)

    def question(self, attached: AttachedCodes) -> CodeHistogram:
        """The one question."""
        return CodeHistogram(attached, self.cells, group=0 if self.one_group else None)


@dataclass(frozen=True, eq=False)
class Parts:
    """An estimated number of `members` of each cluster: `noises` (noises, clusters), by how much it
    moves with each noise, and `spread` (clusters,), by how much with one row's recorded group,
    where that is by chance."""

    members: Floats
    noises: Floats
    spread: Floats


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """Released counts. `raw` (cells, clusters), noisy and unbiased, columns of two cells sum to
    `sizes` (clusters,), which are public; `noise`: the distribution of each count's noise;
    `reports`: how the counted groups come from the true ones, None where they are the same."""

    raw: Floats
    sizes: Floats
    noise: CountNoise
    reports: Reports | None = None

    @property
    def one_group(self) -> bool:
        """Whether only the first cell's counts have noise of their own."""
        return len(self.raw) == 2

    @cached_property
    def estimates(self) -> Floats:
        """Unbiased counts of the true groups, (cells, clusters)."""
        return self.raw if self.reports is None else np.asarray(self.reports.undone @ self.raw)

    def parts(self, cells: npt.NDArray[np.bool_]) -> Parts:
        """How many members there are of `cells` (cells, clusters), and what that estimate is made
        of."""
        undone = np.eye(len(self.raw)) if self.reports is None else self.reports.undone
        adds = undone.T @ cells  # of a recorded group, in each cluster
        everybody = cells.all(axis=0)
        # All groups of a cluster together are its public size, which has no noise.
        members = np.where(everybody, self.sizes, (adds * self.raw).sum(axis=0))
        # Of two groups one is counted, and the other is the public rest: one noise, with opposite
        # signs.
        noises = (adds[:1] - adds[1:]) if self.one_group else adds
        spread = (
            np.zeros(len(self.sizes))
            if self.reports is None
            else adds.max(axis=0) - adds.min(axis=0)
        )
        return Parts(members, np.where(everybody, 0.0, noises), np.where(everybody, 0.0, spread))

    @cached_property
    def memberships(self) -> Floats:
        """P(group | cluster), (clusters, cells), of the nearest possible counts: not negative, with
        the public sizes. A cluster without rows has the shares of all rows."""
        counts = onto_totals(self.estimates[:, np.newaxis, :], self.sizes[np.newaxis])[:, 0, :]
        whole = counts.sum(axis=1)
        filled = np.where(
            self.sizes > 0, counts, (whole / max(float(whole.sum()), 1e-300))[:, np.newaxis]
        )
        return np.asarray((filled / np.where(self.sizes > 0, self.sizes, 1.0)).T)


def plan(promise: Promise, cells: Cells) -> CountsPlan:
    """The least noise that keeps the promise, which must be about sensitive features alone."""
    if promise.protects != "sensitive_features":
        refuse(promise)
    if not promise.is_private:
        return CountsPlan(promise, cells, 0.0)
    moved = _moved(promise, cells)
    # Discrete Laplace noise needs no delta, so none is spent.
    pure = replace(promise, delta=0.0)
    return CountsPlan(
        promise, cells, calibrate(pure, lambda z: DiscreteLaplace(z, moved)).multiplier
    )


def _moved(promise: Promise, cells: Cells) -> int:
    return CountPlan(promise, "none", 0.0, cells, promise.rows_per_unit).moved


def noise_of(event: Event) -> CountNoise | None:
    """The distribution of each count of a plan with this event; None where no plan has it."""
    if isinstance(event, NonPrivate):
        return CountNoise("none", 0.0)
    if isinstance(event, DiscreteLaplace):
        return CountNoise("discrete-laplace", event.noise_multiplier * event.sensitivity)
    return None


def refuse(promise: Promise) -> NoReturn:
    """Where rows are protected, clusters would be made of what is private."""
    remedy = (
        "Clusters are made of features and labels, which must be public: pass "
        "protects='sensitive_features'."
    )
    raise PrivacyError.expected(
        "'sensitive_features'", of="protects", got=promise.protects, remedy=remedy
    )


def release(
    curator: Curator,
    attached: AttachedCodes,
    planned: CountsPlan,
    sizes: Floats,
    reports: Reports | None = None,
) -> GroupCounts:
    """Ask once. `sizes`: the public number of rows of each cluster; `reports`: what the groups of
    the rows are."""
    kind = planned.noise.kind if planned.multiplier else "gaussian"
    (answer,) = curator.answer(
        [Measurement(planned.question(attached), planned.multiplier, kind)], purpose=PURPOSE
    )
    raw = np.asarray(answer, np.float64).reshape(-1, len(sizes))
    if planned.one_group:
        # Post-processing: sizes are public.
        raw = np.concatenate([raw, sizes - raw])
    return GroupCounts(raw, sizes, planned.noise, reports)
