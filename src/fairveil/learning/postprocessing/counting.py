"""What a post-processor asks of the rows: how many there are by group, label and base decision.
Once, and nothing else.

    N[c, y, j] = number of rows (sum of weights) of group cell c and label y on which the base
    decides j

or whose score of the base is in bin j: a row is in one bin, so both cost the same. The rest is
post-processing of this release: the linear program (`mixing`) and its bounds (`mixing_bounds`).

Guarantees (tests/learning/test_learning_postprocess.py):
1. The plan is one event, made of the promise, the shape of the table and what was spent before, and
   it keeps the promise together with what was spent. Nothing of it depends on a row. Where what was
   spent before had been looked at, the promise is kept however the rest (constraints, weights, kind
   of noise) was chosen by what was seen: `privacy.two_steps`.
2. Sensitive features alone protected: the totals over groups are exact and free. With two groups
   the counts of one are asked, L1 and L2 sensitivity 1, and the others are the totals less those;
   with more, L1 2 and L2 sqrt 2.
3. Records: L1 and L2 1 (add-remove), 2 and sqrt 2 (replace-one), and nothing is exact. Of persons
   with k rows k times that.
4. `Released` holds noisy counts and what is public, never an exact count of what is protected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._types import Floats
from ...core import cost as accounting
from ...core.events import DiscreteLaplace, Event, Gaussian, NonPrivate, NoOp, compose
from ...core.promise import Promise
from ...curator import (
    Attached,
    AttachedCodes,
    AttachedHistogram,
    CodeHistogram,
    Curator,
    Measurement,
    Question,
)
from ...errors import BudgetError
from ...facts import Cells
from ...privacy.accounting import two_steps
from ...privacy.accounting.calibration import calibrate
from ..counts import CountNoise, onto_totals, possible_counts

LAST_BITS = 1e-9  # a price that is computed again may differ by so much


@dataclass(frozen=True, eq=False)
class CountPlan:
    """How the counts are asked, and at what price. `multiplier` 0: exactly, for nobody's privacy
    depends on them."""

    promise: Promise
    cells: Cells | None
    noise: str
    multiplier: float

    @property
    def one_group(self) -> bool:
        """Two groups and public totals: the counts of the first tell those of the second."""
        return self.totals_are_public and self.cells is not None and self.cells.count == 2

    @property
    def totals_are_public(self) -> bool:
        """Features, labels and so the base's decisions are public: only how rows divide among
        groups is not."""
        return self.promise.is_private and self.promise.protects == "sensitive_features"

    @property
    def event(self) -> Event:
        """The one release, as the curator will log it."""
        if not self.promise.is_private:
            return NonPrivate()
        if not self.multiplier:
            return NoOp()
        return _event(self.noise, self.multiplier, steps(self.promise, self.cells))

    def measurements(self, attached: Attached | AttachedCodes) -> list[Measurement]:
        """The joint question."""
        counts = _counts_of(attached, self.cells, 0 if self.one_group else None)
        out = [Measurement(counts, self.multiplier, self.noise if self.multiplier else "gaussian")]
        if self.totals_are_public and self.cells is not None:
            out.append(Measurement(_counts_of(attached, None, None), 0.0))
        return out

    def law(self, largest_weight: float) -> CountNoise:
        """The distribution of the noise of each count that is asked."""
        if not self.multiplier:
            return CountNoise("none", 0.0)
        moved = steps(self.promise, self.cells)
        if self.noise == "discrete-laplace":
            return CountNoise(self.noise, self.multiplier * moved)
        return CountNoise(
            self.noise, self.multiplier * length(self.promise, self.cells) * largest_weight
        )


@dataclass(frozen=True, eq=False)
class Released:
    """The counts as they were released: `raw` (cells, labels, answers), noisy; `totals` (labels,
    answers) over all groups, where they are public, else None; `noise`: the distribution of each;
    `rows`: their number (the sum of weights), where public; `edges`: of the bins of the base's
    score that are the answers, None where these are its decisions."""

    raw: Floats
    totals: Floats | None
    noise: CountNoise
    rows: float | None
    edges: Floats | None = None

    @property
    def one_group(self) -> bool:
        """Whether only the first cell's counts have noise of their own."""
        return self.totals is not None and len(self.raw) == 2

    @property
    def independent(self) -> int:
        """How many counts have noise of their own."""
        return int(self.raw[0].size) if self.one_group else int(self.raw.size)

    @cached_property
    def counts(self) -> Floats:
        """The nearest possible counts: not negative, and of the known totals. Of bins, whose zeros
        would add up: those that keep each group's number, too (`possible`)."""
        if self.edges is not None:
            return possible_counts(self.raw, self.totals) if self.noise.sd else self.raw
        if self.totals is None:
            return np.maximum(self.raw, 0.0)
        return onto_totals(self.raw, self.totals)

    def box(self, probability: float) -> tuple[Floats, Floats]:
        """Bounds between which all true counts lie, together, but for this probability."""
        w = self.noise.tail(probability / self.independent)
        most = (
            np.full_like(self.raw, np.inf)
            if self.totals is None
            else np.broadcast_to(self.totals, self.raw.shape)
        )
        low = np.minimum(np.maximum(self.raw - w, 0.0), most)
        return low, np.maximum(np.minimum(self.raw + w, most), low)


def plan(
    promise: Promise,
    cells: Cells | None,
    classes: int,
    spent: Iterable[Event] = (),
    *,
    weighted: bool = False,
    looked_at: bool = False,
) -> CountPlan:
    """The least noise that keeps the promise beside `spent`, what was released before: Gaussian or
    discrete Laplace.

    `looked_at`: what was spent had been seen before this was asked for; else both are one plan,
    fixed in advance. Weighted sums are not whole numbers, so their noise is Gaussian.
    """
    before = compose(tuple(spent))
    looked_at = looked_at and not isinstance(before, NoOp)
    free = not promise.is_private or (promise.protects == "sensitive_features" and cells is None)
    require_room(promise, before, more=not free, looked_at=looked_at)
    if free:
        return CountPlan(promise, cells, "gaussian", 0.0)
    target = two_steps.within(promise, before) if looked_at else promise

    def whole(kind: str, z: float) -> Event:
        event = _event(kind, z, moved)
        return compose(
            (before, two_steps.reference(event, promise.neighbours) if looked_at else event)
        )

    found: list[CountPlan] = []
    refused: BudgetError | None = None
    moved = steps(promise, cells)
    kinds = [] if weighted else ["discrete-laplace"]
    for kind in [*kinds, "gaussian"] if promise.delta > 0 or weighted else kinds:
        try:
            z = calibrate(target, lambda z, kind=kind: whole(kind, z)).multiplier  # type: ignore[misc]
        except BudgetError as error:
            # Gaussian noise needs some delta, which `spent` may have used up
            refused = error
            continue
        found.append(CountPlan(promise, cells, kind, z))
    if not found and refused is not None:
        raise refused
    return min(found, key=lambda one: one.law(1.0).sd)


def require_room(promise: Promise, spent: Event, *, more: bool, looked_at: bool = False) -> None:
    """The promise must hold what was spent before, and leave something where `more` is to be
    released."""
    if not promise.is_private:
        return
    kept = two_steps.within(promise, spent) if more and looked_at else promise
    taken = accounting.epsilon(spent, kept.delta, promise.neighbours)
    if taken > promise.epsilon * (1.0 + LAST_BITS) or (more and taken >= promise.epsilon):
        left = "something left of" if more else "at most"
        unfitted = ", or pass it unfitted: then both are one plan" if looked_at else ""
        chosen = (
            f" of delta = {promise.delta:g}, for counts that are chosen after the base was there "
            f"to be looked at"
        )
        chosen = chosen if kept.delta < promise.delta else ""
        raise BudgetError.expected(
            (
                f"{left} epsilon={promise.epsilon:g}"
                + (" for the counts of groups, labels and decisions" if more else "")
            ),
            of="the base classifier's price",
            got=f"epsilon {_up(taken)} at delta {kept.delta:g}{chosen}",
            remedy=(
                f"Pass epsilon above {_up(taken)}, or fit the base classifier with less{unfitted}."
            ),
        )


def release(
    curator: Curator,
    attached: Attached | AttachedCodes,
    plan: CountPlan,
    max_sample_weight: float | None = None,
    edges: Floats | None = None,
) -> Released:
    """Ask, and put the answer together. `max_sample_weight`: the cap, where rows have weights.
    `edges`: of attached codes."""
    what = "base decision" if edges is None else "score"
    answers = curator.answer(
        plan.measurements(attached), purpose=f"rows by group, label and {what}"
    )
    raw = np.asarray(answers[0], np.float64)
    raw = raw.reshape(-1, *raw.shape[-2:])
    noise = plan.law(max_sample_weight or 1.0)
    if plan.totals_are_public:
        totals = np.asarray(answers[-1] if plan.cells is not None else raw, np.float64).reshape(
            raw.shape[1:]
        )
        if plan.one_group:
            raw = np.concatenate([raw, totals - raw])
        return Released(raw, totals, noise, float(totals.sum()), edges)
    if not plan.promise.is_private:
        return Released(raw, None, noise, float(raw.sum()), edges)
    known = plan.promise.rows_are_public and max_sample_weight is None
    return Released(raw, None, noise, float(curator.public_rows) if known else None, edges)


def steps(promise: Promise, cells: Cells | None) -> int:
    """The L1 sensitivity of the counts that are asked."""
    return _of_a_row(promise, cells) * promise.rows_per_unit


def length(promise: Promise, cells: Cells | None) -> float:
    """Their L2 sensitivity: all rows of a person may lie in one place (theory.md#units)."""
    return math.sqrt(_of_a_row(promise, cells)) * promise.rows_per_unit


def _of_a_row(promise: Promise, cells: Cells | None) -> int:
    """L1; L2 is its square root."""
    if promise.protects == "sensitive_features":
        return 1 if cells is not None and cells.count == 2 else 2
    return 1 if promise.neighbours == "add-remove" else 2


def _up(epsilon: float) -> str:
    """Six digits, rounded up: who promises more than that has room.

    >>> _up(1.0000001), _up(0.5), _up(math.inf)
    ('1.00001', '0.5', 'inf')
    """
    if not math.isfinite(epsilon) or epsilon == 0.0 or float(f"{epsilon:.6g}") >= epsilon:
        return f"{epsilon:.6g}"
    step = 10.0 ** (math.floor(math.log10(epsilon)) - 5)
    return f"{epsilon + step:.6g}"


def _counts_of(
    attached: Attached | AttachedCodes, cells: Cells | None, group: int | None
) -> Question:
    if isinstance(attached, AttachedCodes):
        return CodeHistogram(attached, cells, by_label=True, group=group)
    return AttachedHistogram(attached, cells, by_label=True, decisions="hard", group=group)


def _event(kind: str, z: float, moved: int) -> Event:
    return DiscreteLaplace(z, moved) if kind == "discrete-laplace" else Gaussian(z)
