"""What the estimators that share a budget among groups have in common: their options, and what they
say of each group."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .. import _checks
from .._types import Floats
from ..core.cost import gaussian_mu
from ..core.promise import Promise
from ..errors import InputError
from ..facts import Cells
from ..fairness.objectives import Bound, GroupLoss, LargestGroupLoss
from ..methods.allocation import STANDARD_ERROR, Allocation, Shares, checked_rule, each_column
from ..show.numbers import at_most
from ..show.parts import Column, Fact, Facts, Note, Part, Shown, Table
from ..statement.document import NamedGroups, PrivacyStatement
from ..tables import keys
from . import fitting
from .reports import ConstraintLine
from .settings import GroupDescent, GroupLimits, Moments

COLUMNS = ("shares", "errors", "counts", "epsilons")


@dataclass(frozen=True)
class TailoringReport(Shown):
    """What each group was given: released and public values only.

    `shares` of the last stage's budget, which add up to 1 in each sensitive column; `errors`:
    released standard errors, NaN where none were measured; `counts`: released sizes; `epsilons`:
    what a group's people spend over the whole fit, at the promise's delta: a larger number is a
    weaker guarantee; where `fixed` is False the smaller of an outcome's and the promise's own, each
    of which holds at delta, so that whoever goes by the smaller has it at twice that. `fixed`:
    shares were fixed before data were read; else a group's epsilon is an outcome's, of what was
    released (docs/tailoring.md).
    """

    groups: tuple[Hashable, ...]
    rule: str
    why: str
    shares: tuple[float, ...]
    errors: tuple[float, ...]
    counts: tuple[float, ...]
    epsilons: tuple[float, ...]
    fixed: bool

    @staticmethod
    def of(
        shares: Shares,
        cells: Cells | None,
        statement: PrivacyStatement,
        limits: Sequence[float] = (),
        unit: float = 1.0,
    ) -> TailoringReport:
        """Of what was shared and what the statement says of it; `limits`: the groups' max_epsilon;
        `unit`: of the target."""
        names = ("everyone",) if cells is None else cells.keys
        nothing = np.full(len(names), math.nan)
        told = [one.epsilon for one in statement.groups] or [statement.epsilon] * len(names)
        told = [
            min(pair)
            for pair in zip(told, limits or told, [statement.epsilon] * len(names), strict=True)
        ]
        errors = nothing if shares.errors is None else shares.errors * unit
        columns = (shares.shares, errors, nothing if shares.counts is None else shares.counts)
        parts, spread, counts = (tuple(float(value) for value in column) for column in columns)
        return TailoringReport(
            tuple(names), shares.rule, shares.why, parts, spread, counts, tuple(told), shares.fixed
        )

    def table(self) -> list[dict[str, Any]]:
        """One mapping a group, of plain values; what was not measured is None."""
        columns = (self.shares, self.errors, self.counts, self.epsilons)
        names = ("group", "share", "standard_error", "count", "epsilon")
        return [
            dict(
                zip(
                    names,
                    (group, *(None if math.isnan(value) else value for value in line)),
                    strict=True,
                )
            )
            for group, *line in zip(group_names(self.groups), *columns, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; an infinite epsilon is written "inf"."""
        groups = [
            line | {"epsilon": "inf"} if math.isinf(line["epsilon"]) else line
            for line in self.table()
        ]
        return {"rule": self.rule, "why": self.why, "fixed": self.fixed, "groups": groups}

    def parts(self) -> Iterator[Part]:
        """A line a group, and what the numbers mean."""
        yield Facts((Fact("shares of the budget", f"{self.rule} ({self.why})"),))
        table = self.table()
        units = {"group": "", "share": "percent", "epsilon": "", "standard_error": "plain"}
        shown = {
            name: tuple(line[name] if name != "epsilon" else at_most(line[name]) for line in table)
            for name in (*units, "count")
        }
        yield Table(
            tuple(Column(n, v, units.get(n, "count"), missing="-") for n, v in shown.items()),
            "What each group's people spend",
        )
        yield Note(
            "A larger epsilon is a weaker guarantee for that group. Each epsilon is at the delta of "
            "the whole fit, of people who are in that group in one of two neighboring tables."
        )
        if not self.fixed:
            yield Note(
                "Shares were made of released answers, so a group's own epsilon is that of this "
                "outcome. The table shows the smaller of it and the guarantee that was fixed in "
                "advance; the smaller one holds at twice delta."
            )


def check(estimator: BaseEstimator, solver: GroupDescent | Moments) -> None:
    """The options that both estimators have, before rows are read."""
    _checks.fraction(stage_one_share=estimator.stage_one_share, low_open=True, high_open=True)
    measured = isinstance(estimator.allocation, str) and estimator.allocation == STANDARD_ERROR
    fitting.refuse_unused(
        estimator, {"stage_one_share": None if measured else "without allocation='standard-error'"}
    )
    idle = {"penalty": "without a group_loss_bound" if estimator.group_loss_bound is None else None}
    if isinstance(solver, GroupDescent):
        idle["region"] = "without a radius" if solver.radius is None else None
    fitting.refuse_unused(solver, idle)


def allocation_of(estimator: BaseEstimator, cells: Cells | None, promise: Promise) -> Allocation:
    """How the budget is to be shared among these groups."""
    names: Sequence[Hashable] = ("everyone",) if cells is None else cells.keys
    rule = checked_rule(estimator.allocation, names)
    overlapping = cells is not None and cells.per_row > 1
    limits = estimator._setting("limits", GroupLimits)
    for of, given in (("min_epsilon", limits.min_epsilon), ("max_epsilon", limits.max_epsilon)):
        if given is not None and (overlapping or cells is None):
            remedy = (
                "A person spends in each of her groups: pass groups='product', whose groups do not "
                "overlap."
            )
            expected = "None without groups" if cells is None else "None with groups that overlap"
            remedy = (
                "Pass sensitive_features; epsilon= is everybody's." if cells is None else remedy
            )
            raise InputError.expected(expected, of=of, got=given, remedy=remedy)
    least = _limits("min_epsilon", limits.min_epsilon, names, promise, 0.0)
    most = _limits("max_epsilon", limits.max_epsilon, names, promise, math.inf)
    return Allocation(rule, limits.spend, least, most)


def _limits(
    of: str, given: Any, names: Sequence[Hashable], promise: Promise, otherwise: float
) -> Floats | None:
    """Squared distances that groups' epsilons allow."""
    if given is None:
        return None
    if not promise.is_private or promise.neighbours != "add-remove":
        raise InputError.expected(
            "None unless neighbours='add-remove'",
            of=of,
            got=given,
            remedy=(
                "A person who is replaced by one of another group costs what both spend: no "
                "group has a limit alone."
            ),
        )
    stated = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names, given)
    unknown = [key for key in stated if key not in names]
    if unknown:
        remedy = "Name groups as `groups_` does."
        raise InputError.expected(f"groups out of {list(names)}", of=of, got=unknown, remedy=remedy)
    limits = np.full(len(names), otherwise)
    for key, epsilon in stated.items():
        limits[list(names).index(key)] = (
            gaussian_mu(_checks.positive(**{of: epsilon}), promise.delta) ** 2
        )
    return limits


def limits_of(estimator: BaseEstimator, cells: Cells | None) -> list[float]:
    """max_epsilon by group; inf where there is none."""
    names: Sequence[Hashable] = ("everyone",) if cells is None else cells.keys
    given = estimator._setting("limits", GroupLimits).max_epsilon
    stated = (
        dict(given)
        if isinstance(given, Mapping)
        else dict.fromkeys(names, math.inf if given is None else given)
    )
    return [float(stated.get(key, math.inf)) for key in names]


def named_groups(
    estimator: BaseEstimator, cells: Cells | None, shares: Shares, promise: Promise
) -> list[NamedGroups]:
    """Whom a statement tells the guarantee of, and what was promised to them in advance."""
    if cells is None or not promise.is_private:
        return []
    limits = [limit if math.isfinite(limit) else None for limit in limits_of(estimator, cells)]
    told = iter(zip(group_names(cells.keys), limits, strict=True))
    out = []
    for column, one in enumerate(each_column(cells)):
        names, most = zip(*(next(told) for _ in range(one.count)), strict=True)
        out.append(NamedGroups(names, column, shares.fixed, most))
    return out


def group_names(groups: Sequence[Hashable]) -> list[str]:
    """Printable, and each another, whatever groups are called."""
    shown = [keys.shown(key) for key in groups]
    plain = [text if text.strip() and text.isprintable() else ascii(text) for text in shown]
    if len(set(plain)) == len(plain):
        return plain
    return [f"{number}: {text}" for number, text in enumerate(plain, 1)]


def bounds_of(given: object, cells: Cells | None) -> list[Bound]:
    """One on all groups, or one for each that is named."""
    if given is None:
        return []
    if cells is None:
        remedy = "Pass fit(X, y, sensitive_features=...), or group_loss_bound=None."
        raise InputError.expected(
            "groups, whose losses it bounds", of="sensitive_features", got=None, remedy=remedy
        )
    if isinstance(given, Mapping):
        if not given:
            remedy = "Name groups as `groups_` does, or pass None."
            raise InputError.expected(
                "a bound for a group", of="group_loss_bound", got=given, remedy=remedy
            )
        return [GroupLoss(key).at_most(bound) for key, bound in given.items()]
    return [LargestGroupLoss().at_most(_checks.positive(group_loss_bound=given))]


def not_met(worst: ConstraintLine, who: str) -> str:
    """A warning's words."""
    return (
        f"a bound on a group's loss is not met: {worst.target}; {who} reached {worst.value:.4g} "
        f"(noise "
        f"{worst.noise:.4g}). Perhaps nothing in reach does: ask for a larger bound, penalty, "
        f"radius or epsilon; see "
        "constraint_report_."
    )
