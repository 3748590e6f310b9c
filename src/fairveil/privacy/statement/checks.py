"""Does a privacy statement agree with itself? Recomputes its epsilon and lists what does not
fit."""

from __future__ import annotations

import math
import platform
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from ...core.events import compose
from .contents import StatementContents
from .parts import READ_FROM_DATA, GroupGuarantee, Noise, Stamp, StatedBound, UserCode
from .prefixes import is_prefix
from .pricing import UNPRICED, group_epsilons, reprice
from .releases import same_releases

SLACK = 1e-9
"""A recomputed epsilon may exceed the stated one by this fraction and no more: the last bits of
another processor."""


NAMED_VERSIONS = ("fairveil", "python", "numpy", "scipy")


RECOMPUTED = ("epsilon", "delta", "accounting", "groups", "stamps", "checksum")
"""Fields that `check` and `verify` recompute from the others; of groups their epsilons."""


ON_TRUST = (
    *(
        "promise",
        "events",
        "plan",
        "cap",
        "facts",
        "bounds",
        "not_covered",
        "notes",
        "tuning",
        "earlier_releases",
        "audit",
    ),
    *("noise", "arithmetic", "user_code", "versions", "created", "ledger", "releases"),
)
"""Fields that are taken as they are: nobody can tell from a statement alone whether they are true.
A signature says who stands by them."""


BASE_FACT = "base classifier"
"""The fact by which a post-processor's statement says whether its base was there before."""


@dataclass(frozen=True)
class Finding:
    """One thing that was noticed. A `grave` one makes the statement inconsistent; another is only
    worth knowing."""

    grave: bool
    sentence: str


def required_stamps(
    epsilon: float,
    noise: Noise,
    user_code: UserCode,
    bounds: Iterable[StatedBound],
) -> tuple[Stamp, ...]:
    """The `stamps` that a statement with these contents must carry. Facts read from the data are
    listed, not flagged."""
    stamps: list[Stamp] = []
    if math.isinf(epsilon):
        stamps.append("not-private")
    if noise == "seeded":
        stamps.append("seeded-noise")
    if any(bound.origin == READ_FROM_DATA for bound in bounds):
        stamps.append("data-dependent-bounds")
    if user_code == "trusted":
        stamps.append("user-code-trusted")
    return tuple(stamps)


def versions_now(*, with_torch: bool = False) -> tuple[tuple[str, str], ...]:
    """The versions that a statement names; nothing about the machine. `with_torch`: where it
    computed what rows contribute."""
    names = (*NAMED_VERSIONS, "torch") if with_torch else NAMED_VERSIONS
    return tuple(
        (name, platform.python_version() if name == "python" else _version(name)) for name in names
    )


def findings(statement: StatementContents) -> list[Finding]:
    """All contradictions, the grave ones first."""
    found = [
        *_relation(statement),
        *_cost(statement),
        *_groups(statement),
        *_stamps(statement),
        *_log_and_plan(statement),
        *_releases(statement),
        *_arithmetic(statement),
        *_audit(statement),
        *_versions(statement),
    ]
    return sorted(found, key=lambda finding: not finding.grave)


def _relation(statement: StatementContents) -> Iterator[Finding]:
    promise = statement.promise
    if statement.neighbours != promise.neighbours:
        yield Finding(
            True,
            f"epsilon was priced under {statement.neighbours!r} neighbours, the guarantee is about "
            f"{promise.neighbours!r}",
        )
    if (
        promise.unit is not None
        and promise.is_private
        and promise.unit.max_rows is None
        and statement.events
    ):
        yield Finding(
            True,
            "the guarantee is about persons, and states no largest number of rows of one that were "
            "read",
        )
    if statement.delta != promise.delta:
        yield Finding(
            True,
            f"epsilon is stated at delta {statement.delta:g}, the guarantee is about delta "
            f"{promise.delta:g}",
        )


def _cost(statement: StatementContents) -> Iterator[Finding]:
    stated, promise = statement.epsilon, statement.promise
    try:
        with warnings.catch_warnings():
            # An overflow on the way to an infinite epsilon is no news here.
            warnings.simplefilter("ignore", RuntimeWarning)
            # By this version's accountant: what an earlier one found too cheap is found out here.
            price = reprice(statement.events, statement.plan, statement.cap, promise)
    except UNPRICED as error:
        yield Finding(True, f"the events cannot be priced: {error}")
        return
    # Grave only if the events cost more than is stated; to state too much is safe.
    if price.epsilon > stated * (1 + SLACK):
        yield Finding(
            True,
            f"epsilon is stated as {_number(stated)}, the events cost {_number(price.epsilon)}",
        )
    elif math.isinf(stated) and not math.isinf(price.epsilon):
        yield Finding(
            True,
            f"epsilon is stated as inf, the events cost {_number(price.epsilon)}: nothing in them "
            f"is unprotected",
        )
    elif stated > price.epsilon * (1 + SLACK):
        yield Finding(
            False,
            f"epsilon is stated as {_number(stated)}, above the {_number(price.epsilon)} that the "
            f"events cost",
        )
    if stated > promise.epsilon * (1 + SLACK):
        yield Finding(
            True, f"epsilon {_number(stated)} is above the guarantee's {_number(promise.epsilon)}"
        )
    if price.route != statement.route:
        yield Finding(
            False, f"priced by {price.route!r} now, by {statement.route!r} when it was written"
        )


def _groups(statement: StatementContents) -> Iterator[Finding]:
    columns: dict[int, list[GroupGuarantee]] = {}
    for group in statement.groups:
        columns.setdefault(group.column, []).append(group)
    for column, groups in columns.items():
        if (
            sorted(group.cell for group in groups) != list(range(len(groups)))
            or len({group.fixed for group in groups}) != 1
        ):
            yield Finding(
                True,
                f"the groups of column {column} are not one a cell, or were not all told alike",
            )
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                found = group_epsilons(
                    len(groups),
                    column,
                    groups[0].fixed,
                    statement.events,
                    statement.plan,
                    statement.promise,
                    statement.epsilon,
                )
        except UNPRICED as error:
            yield Finding(True, f"the groups of column {column} cannot be priced: {error}")
            continue
        for group in groups:
            pays = found[group.cell]
            words = f"epsilon of group {group.name!r} is stated as {_number(group.epsilon)}"
            if pays > group.epsilon * (1 + SLACK):
                yield Finding(True, f"{words}, the events cost {_number(pays)}")
            elif group.epsilon > pays * (1 + SLACK):
                yield Finding(False, f"{words}, above the {_number(pays)} that the events cost")
            if group.limit is not None and not _keeps(statement, group, len(groups)):
                yield Finding(
                    True,
                    f"group {group.name!r} has a limit of {_number(group.limit)}, which its events "
                    f"exceed",
                )


def _keeps(statement: StatementContents, group: GroupGuarantee, cells: int) -> bool:
    """Whether what this group's people see are Gaussians whose squared distances add up to no more
    than its limit allows: a filter, so that it is kept whatever the multipliers were made of
    (theory.md#t10)."""
    from ...core.cost import gaussian_mu
    from ...core.inventory import inventory
    from ..accounting.by_group import seen_from

    promise = statement.promise
    seen = seen_from(compose(statement.events), group.cell, group.column, promise.neighbours, cells)
    total = inventory(seen, promise.neighbours)
    # A squared distance that was fixed in advance is a filter: it holds for multipliers that were
    # made of answers.
    most = gaussian_mu(group.limit or 0.0, promise.delta) ** 2
    return (
        total.private
        and not total.others
        and total.total_variation == 0
        and total.gaussian <= most * (1 + SLACK)
    )


def _stamps(statement: StatementContents) -> Iterator[Finding]:
    required = required_stamps(
        statement.epsilon, statement.noise, statement.user_code, statement.bounds
    )
    for stamp in required:
        if stamp not in statement.stamps:
            yield Finding(True, f"the flag {stamp!r} is missing")
    for stamp in statement.stamps:
        if stamp not in required:
            yield Finding(True, f"the flag {stamp!r} contradicts the rest")


def _log_and_plan(statement: StatementContents) -> Iterator[Finding]:
    capped = statement.plan is None and bool(statement.events) and statement.promise.is_private
    if capped and statement.cap is None:
        yield Finding(True, "there is neither a plan nor a filter: nothing was fixed in advance")
    elif statement.cap is not None and not capped:
        yield Finding(True, "a filter is named, but there is a plan or nothing to cap")
    if statement.plan is not None and not is_prefix(
        statement.events, statement.plan, statement.promise.neighbours
    ):
        yield Finding(
            True, "the log is not a beginning of the plan: something else was done than was planned"
        )


def _releases(statement: StatementContents) -> Iterator[Finding]:
    """Names are taken on trust, mechanisms and counts are not."""
    if not statement.releases:
        return
    try:
        agrees = same_releases(statement.releases, statement.events)
    except UNPRICED:
        agrees = False
    if not agrees:
        yield Finding(True, "the table of releases is not that of the events")


def _arithmetic(statement: StatementContents) -> Iterator[Finding]:
    """Only torch computes in float32 beside rows, and a module is the caller's own code; what is
    written says all three."""
    named, singles = (
        any(name == "torch" for name, _ in statement.versions),
        statement.arithmetic != "exact",
    )
    if singles and not named:
        yield Finding(
            True,
            f"arithmetic is stated as {statement.arithmetic!r}, and the version of torch is not "
            f"named",
        )
    if named and not singles:
        yield Finding(True, "a version of torch is named, and arithmetic is stated as 'exact'")
    if singles and statement.user_code != "trusted":
        yield Finding(
            True,
            f"arithmetic is stated as {statement.arithmetic!r}, that of a module, and user code as "
            f"'none'",
        )


def _audit(statement: StatementContents) -> Iterator[Finding]:
    audit = statement.audit
    if audit is not None and audit.epsilon > statement.epsilon:
        yield Finding(
            True,
            f"an audit shows epsilon >= {_number(audit.epsilon)} at confidence "
            f"{audit.confidence:g}, "
            f"above the stated {_number(statement.epsilon)}",
        )


def _versions(statement: StatementContents) -> Iterator[Finding]:
    named = dict(statement.versions)
    for name in NAMED_VERSIONS:
        if name not in named:
            yield Finding(True, f"the version of {name} is not named")
    if len(named) != len(statement.versions):
        yield Finding(True, "a version is named twice")
    now = dict(versions_now())
    for name in ("fairveil", "scipy"):
        if name in named and named[name] != now[name]:
            yield Finding(False, f"written with {name} {named[name]}, checked with {now[name]}")


@lru_cache(maxsize=16)
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"


def _number(value: float) -> str:
    return "inf" if math.isinf(value) else f"{value:.10g}"
