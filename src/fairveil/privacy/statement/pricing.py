"""What the events of a statement cost: of all people, and of those in each group that it names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...core.events import Event, Repeated
from ...errors import FairveilError, InputError
from .parts import Cap, GroupGuarantee, NamedGroups
from .prefixes import is_whole, side_by_side

if TYPE_CHECKING:
    from ...core.cost import Price
    from ...core.filters import Filter
    from ...core.promise import Promise
    from ..accounting.two_steps import TwoSteps


UNPRICED = (
    FairveilError,
    ArithmeticError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    NotImplementedError,
)
"""What pricing the events of a stranger's file may come to."""


def reprice(
    events: tuple[Event, ...], plan: tuple[Event, ...] | None, cap: Cap | None, promise: Promise
) -> Price:
    """What is charged: the whole plan; else what the cap allows, provided that it admits the log
    (theory.md#t10).

    A log that neither a plan nor a filter bounds costs inf: its tight total is no bound on what was
    chosen as it went.
    """
    from ...core.cost import NO_ROUTE, Price, price
    from ...core.filters import Filter
    from ..accounting import two_steps

    if plan is None and cap is not None and cap.kind == two_steps.KIND:
        two_steps.TwoSteps(promise).require(events)
        return Price(promise.epsilon, promise.delta, promise.neighbours, "two steps")
    if plan is None and cap is not None:
        fresh = Filter.create(promise, cap.kind, order=cap.order, reserve=cap.reserve)
        fresh.add(events)
        return Price(promise.epsilon, promise.delta, promise.neighbours, f"{cap.kind} filter")
    if plan is None and events:
        return Price(math.inf, promise.delta, promise.neighbours, NO_ROUTE)
    return price(events if plan is None else plan, promise.delta, promise.neighbours)


def cap_of(
    events: tuple[Event, ...],
    plan: tuple[Event, ...] | None,
    promise: Promise,
    given: Filter | TwoSteps | None,
) -> Cap | None:
    """The terms of the filter, or of the one that takes every event; none where there is a plan, or
    nothing to cap."""
    from ...core.filters import Filter

    if given is not None and given.promise != promise:
        raise InputError.expected(
            f"a filter for {promise}",
            of="cap",
            got=str(given.promise),
            remedy="Make the filter of the statement's own guarantee: Filter.create(promise).",
        )
    if plan is not None or not events or not promise.is_private:
        return None
    chosen = given or Filter.create(promise, "renyi" if promise.delta > 0 else "pure")
    return Cap(chosen.kind, chosen.order, chosen.reserve)


def guarantees(
    named: Iterable[NamedGroups],
    events: tuple[Event, ...],
    plan: tuple[Event, ...] | None,
    promise: Promise,
    everybody: float,
) -> tuple[GroupGuarantee, ...]:
    """What the people of each named group have."""
    out: list[GroupGuarantee] = []
    for groups in named:
        if any(one.column == groups.column for one in out):
            remedy = "Name each column's groups once."
            raise InputError.expected(
                "one NamedGroups a column", of="groups", got=groups.column, remedy=remedy
            )
        found = group_epsilons(
            len(groups.names), groups.column, groups.fixed, events, plan, promise, everybody
        )
        out += [
            GroupGuarantee(name, cell, groups.column, epsilon, groups.fixed, limit)
            for cell, (name, epsilon, limit) in enumerate(
                zip(groups.names, found, groups.limits, strict=True)
            )
        ]
    return tuple(out)


def group_epsilons(
    cells: int,
    column: int,
    fixed: bool,
    events: tuple[Event, ...],
    plan: tuple[Event, ...] | None,
    promise: Promise,
    everybody: float,
) -> tuple[float, ...]:
    """The epsilon of each cell of a column: of the plan; of the log's releases by these cells,
    where shares were made later.

    Without a plan all have what the filter allows. Where shares were made later and the run was
    interrupted, no group has a guarantee of its own (inf): what was left to do is not known by
    group.
    """
    from ..accounting.by_group import by_group, holds

    if plan is None:
        return (everybody,) * cells
    if fixed:
        return by_group(plan, promise.delta, promise.neighbours, cells, column)
    if not is_whole(events, plan, promise.neighbours):
        return (math.inf,) * cells
    as_done = [
        Repeated(done if holds(done, column, cells) else planned, count)
        for planned, done, count in side_by_side(events, plan)
        if planned is not None and done is not None
    ]
    return by_group(as_done, promise.delta, promise.neighbours, cells, column, fixed=False)
