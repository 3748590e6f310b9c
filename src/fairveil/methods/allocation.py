"""Shares of a privacy budget by group: who spends how much of the last stage (Alabi and Wiggins;
theory.md#tailoring).

A person of group k spends r_k = sum_t (contribution / deviation of the noise)^2, her squared
distance from a table without her. The worst pair of neighbouring tables then costs, for disjoint
groups and contributions that move by at most w within a group,

    add-remove                 max_k r_k
    replace-one                max( w^2 max_k r_k, max_{k != k'} (r_k + r_k') )
    sensitive features only    max_{k != k'} (r_k + r_k')

and over several sensitive columns, whose groups overlap, the columns' worsts add up. `Shares` are
made of public or released numbers, r of the largest t for which r_k = t share_k, held to the limits
of `least` and `most`, costs at most the budget.

`Differs:` the paper lets shares add up to the budget whatever the groups are. That is
`spend="total"`. With `spend="person"`, the default, the *worst person's* guarantee is the budget:
where groups are disjoint every group may have all of it, under add-remove and replace-one alike,
and equal shares have the least noise in every group (docs/tailoring.md).

Guarantees (tests/methods/test_methods_tailoring.py):
1. No neighbour costs more than the budget, whatever the shares: enumerated.
2. No group leaves its limits, and every budget that can be spent within them is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .. import _checks
from .._types import Floats
from ..core.promise import Promise
from ..curator import Measurement, Question
from ..errors import InputError
from ..facts import Cells
from .systems import columns_of

LEAST_NOISE, STANDARD_ERROR, EQUAL, SIZE = "least-noise", "standard-error", "equal", "size"
ALLOCATIONS = (LEAST_NOISE, STANDARD_ERROR, EQUAL, SIZE)
SPENDS = ("person", "total")
SMALLEST = 1e-4  # of the largest share: a hundred times its noise
NO_INFORMATION = "no information: {0}, so that shares are equal"
STEPS = 200
HAIR = 2.0**-20


@dataclass(frozen=True, eq=False)
class Allocation:
    """How a budget is to be shared: public values alone. `rule`: one of `ALLOCATIONS`, or numbers
    by group.

    `least`, `most`: r_k by group over the whole budget, or None.
    """

    rule: str | Floats = LEAST_NOISE
    spend: str = "person"
    least: Floats | None = None
    most: Floats | None = None

    @property
    def name(self) -> str:
        """The rule's, or "given"."""
        return self.rule if isinstance(self.rule, str) else "given"

    @property
    def is_fixed(self) -> bool:
        """Whether shares are known before data are read, whatever else is asked."""
        return not isinstance(self.rule, str) or self.rule == EQUAL

    @property
    def has_limits(self) -> bool:
        """Whether groups have guarantees of their own, asked for in advance."""
        return self.least is not None or self.most is not None


@dataclass(frozen=True, eq=False)
class Shares:
    """What was shared, and why: public or released values. `shares` (groups,) add up to 1 and are
    those that were used, within all limits; `paid`: r_k, over the budget of the stage; `errors`:
    the groups' standard errors, where they were measured; `counts`: their rows, as released."""

    rule: str
    shares: Floats
    paid: Floats
    why: str
    errors: Floats | None = None
    counts: Floats | None = None
    fixed: bool = True


def worst(paid: Floats, promise: Promise, within: float) -> float:
    """What the worst pair of neighbours costs, of groups that are disjoint."""
    # A person of one group against a person of another costs both: the two that spend most are the
    # worst pair.
    alone = np.sort(paid)[::-1]
    both = float(alone[:2].sum()) if len(alone) > 1 else 0.0
    if promise.protects == "sensitive_features":
        return both
    top = float(alone[0])
    return top if promise.neighbours == "add-remove" else max(within**2 * top, both)


def afforded(
    shares: Floats,
    budget: float,
    promise: Promise,
    within: float,
    *,
    spend: str = "person",
    least: Floats | None = None,
    most: Floats | None = None,
) -> Floats:
    """r_k = t share_k within its limits, for the largest t that keeps the budget. No share counts
    as less than `SMALLEST`."""
    low = np.zeros(len(shares)) if least is None else least
    high = np.full(len(shares), np.inf) if most is None else most
    replaced = promise.neighbours == "replace-one" and promise.protects == "records"
    floor = max(within**2, 1.0) if replaced else 1.0

    def spent(paid: Floats) -> float:
        return worst(paid, promise, within) if spend == "person" else floor * float(paid.sum())

    if bool((high <= 0.0).any()):
        raise InputError.expected(
            "more than the releases that everybody is in cost: counts, stage one, the last report",
            of="max_epsilon",
            got="less",
            remedy=(
                "Raise max_epsilon, or lower epsilon, or stage_one_share with shares by "
                "standard errors."
            ),
        )
    if spent(low) > budget * (1.0 + 1e-9) or bool((low > high).any()):
        raise InputError.expected(
            "limits by group that epsilon can keep together",
            of="min_epsilon, max_epsilon",
            got="lower limits that cost more than epsilon, or are above the upper ones",
            remedy="Lower min_epsilon, or raise epsilon.",
        )
    # A share of 0 would be noise without end, of which nobody learns anything.
    shares = np.maximum(np.asarray(shares, np.float64) / float(np.max(shares)), SMALLEST)

    def held(t: float) -> Floats:
        return np.clip(t * shares * budget, low, high)

    top, bottom = 1.0, 0.0
    while spent(held(top)) < budget and top < 1e12:
        top *= 2.0
    for _ in range(STEPS):
        middle = (top + bottom) / 2.0
        # From below: what is returned keeps the budget, not what lies half a step above.
        if spent(held(middle)) <= budget:
            bottom = middle
        else:
            top = middle
    return held(bottom)


def as_spent(
    shares: Floats, paid: Floats, columns: Sequence[slice], why: str
) -> tuple[Floats, str]:
    """The shares that were used, which add up to 1 in each column, and why: limits by group, and
    the least share that counts, may leave others than the rule's. Where nothing is charged, or
    everything, they are the rule's."""
    used = np.array(shares)
    for column in columns:
        total = float(paid[column].sum())
        if math.isfinite(total) and total > 0.0:
            used[column] = paid[column] / total
    if np.allclose(used, shares, rtol=1e-9, atol=0.0):
        return shares, why
    return used, f"{why}; within the limits of epsilons and shares"


def least_noise(weights: Floats, promise: Promise, spend: str) -> Floats:
    """Shares for which sum_k weights_k G_k, every group's sum with noise of its own, has the least
    noise: sum w_k^2 / r_k.

    With a total to spend r_k is in proportion to w_k (Neyman). Under add-remove and replace-one
    every group may have all that one person may cost. With sensitive features alone protected two
    groups share a pair's: the heaviest has 1 - x, the others x each.
    """
    if spend == "total":
        return np.asarray(weights / weights.sum())
    if promise.protects != "sensitive_features" or len(weights) < 2:
        return np.full(len(weights), 1.0)
    top = int(np.argmax(weights))
    # The least of w_top^2 / (1 - x) + sum of the others' w^2 / x, over x.
    rest = float(np.sqrt((np.delete(weights, top) ** 2).sum()))
    x = min(0.5, rest / (float(weights[top]) + rest))
    shares = np.full(len(weights), x)
    shares[top] = 1.0 - x
    return shares


def share_out(
    allocation: Allocation,
    promise: Promise,
    columns: Sequence[slice],
    groups: int,
    *,
    sums: Floats | None = None,
    counts: Floats | None = None,
    weighs: bool = True,
) -> tuple[Floats, Floats | None, str]:
    """Shares that add up to 1 in each column, standard errors where `sums` were measured, and why.

    By standard errors (Algorithm 1): s_k^2 of released sums of squared residuals, s_k = sqrt(S_k /
    n_k). A sum that is not positive tells nothing: shares are equal then, in its column. `weighs`:
    whether what is minimised counts a group's sum by one over its size, or every row alike.
    """
    rule, shares, errors = allocation.rule, np.ones(groups), None
    if not isinstance(rule, str):
        shares, why = np.array(rule), "as given"
    elif rule == STANDARD_ERROR and sums is not None and counts is not None:
        why, told = "squared standard errors of the precursor's predictions", sums > 0.0
        errors = np.full(groups, np.nan)
        # Released sums of squares may be below 0 by their noise.
        errors[told] = np.sqrt(sums[told] / counts[told])
        for column in columns:
            if told[column].all():
                shares[column] = errors[column] ** 2
            else:
                lost = "a group's sum of squared residuals is lost in its noise"
                why = NO_INFORMATION.format(lost)
    elif rule == SIZE and counts is not None:
        shares, why = 1.0 / counts, "in inverse proportion to the groups' released sizes"
    elif rule == LEAST_NOISE:
        why = "the least noise in the minimized objective"
        weights = np.ones(groups) if counts is None or not weighs else 1.0 / counts
        for column in columns:
            shares[column] = least_noise(weights[column], promise, allocation.spend)
    else:
        why = "equal shares"
    for column in columns:
        shares[column] /= shares[column].sum()
    return shares, errors, why


def each_column(cells: Cells) -> list[Cells]:
    """The groups of each sensitive column by themselves, where they overlap; all of them, where
    they do not."""
    if cells.mode == "product":
        return [cells]
    return [
        Cells((column,), "product", (name,))
        for column, name in zip(cells.columns, cells.names, strict=True)
    ]


def by_column(
    cells: Cells, question: Callable[[Cells], Question], multipliers: Floats | float
) -> list[Measurement]:
    """One ask for each column of groups, with one multiplier for all or one for each group: what
    one person spends adds up over columns."""
    each, alike = np.broadcast_to(multipliers, cells.count), np.ndim(multipliers) == 0
    return [
        Measurement(question(one), multipliers if alike else each[column])
        for one, column in zip(each_column(cells), columns_of(cells), strict=True)
    ]


def factors_of(counts: Floats) -> Floats:
    """What a row of each group counts where groups count alike: one over the group's size, the
    smallest group's row 1.

    Groups of one size are distinguished slightly, so that a run asks what was planned, and never
    nothing.
    """
    factors = counts.min() / counts
    if len(factors) > 1 and bool((factors == factors[0]).all()):
        # A question whose answer no change of groups moves would be free, and its event not the
        # planned one.
        factors[-1] *= 1.0 - HAIR
    return np.asarray(factors)


def spent_by_rows(factors: Floats, spend: str) -> tuple[float, Floats]:
    """Of one sum in which a row of group k counts factors[k] times at most 1: the part of the
    budget that its worst pair may cost, and what each group's people spend, over what the worst of
    them does."""
    paid = (factors / float(factors.max())) ** 2
    return (1.0 if spend == "person" else 1.0 / float(paid.sum())), paid


def checked_rule(given: object, keys: Sequence[object]) -> str | Floats:
    """A rule by name, or positive numbers, one for each group: {group: share} or in the order of
    the groups."""
    if isinstance(given, str):
        return str(_checks.one_of(ALLOCATIONS, allocation=given))
    if isinstance(given, dict):
        if set(given) != set(keys):
            remedy = "Name each group once; shares are relative, and need not add up to anything."
            raise InputError.expected(
                f"a share for each of {list(keys)}", of="allocation", got=given, remedy=remedy
            )
        given = [given[key] for key in keys]
    try:
        numbers = np.array(given, np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    fits = numbers.shape == (len(keys),) and bool(np.isfinite(numbers).all())
    if not fits or not (numbers > 0).all():
        raise InputError.expected(
            f"one of {', '.join(ALLOCATIONS)}, or {len(keys)} positive numbers, one a group",
            of="allocation",
            got=given,
            remedy=(
                "Shares are relative: {'f': 3.0, 'm': 1.0}. A share of 0 would be noise and "
                "nothing else."
            ),
        )
    return numbers
