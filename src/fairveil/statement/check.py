"""Does a privacy statement agree with itself? Recomputes every price and sum by `rule`, and lists what
contradicts. docs/statement_spec.md is the same in words.

`form`, `rule` and this, and where groups are named `groups`, are what `fairveil verify` rests on: plain
values, no numpy, to be read in an evening. The accountant of `core` is loaded only for events without
a closed form.

Guarantees (tests/statement/).
1. A statement without a contradiction states no smaller epsilon than its events cost, but for the
   stated tolerances (`rule.SLACK`, `rule.ON_A_GRID`).
2. A field that follows from others is compared with them: `RECOMPUTED`. The others are `ON_TRUST`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from . import rule
from .form import (
    NAMED_VERSIONS,
    UNPRICED,
    Finding,
    Malformed,
    checksum,
    event,
    leaves,
    schema,
    stamps,
)
from .rule import ON_A_GRID, SLACK, Said, is_within

RECOMPUTED, ON_TRUST = (
    tuple(name for name, one in schema()["properties"].items() if one.get("source") == source)
    for source in ("recomputed", "trusted")
)
"""Fields that follow from others, and fields that are taken as they are: nobody can tell from a
statement alone whether they are true. A signature says who stands by them."""


def said_in(doc: dict[str, Any]) -> Said:
    """What prices follow from in a document."""
    promise, plan = doc["promise"], doc["plan"]
    return Said(
        event(doc["events"]["event"]),
        None if plan is None else event(plan["event"]),
        doc["cap"],
        event(doc["epsilon"]),
        event(promise["epsilon"]),
        promise["delta"],
        promise["neighbours"],
    )


def findings(doc: dict[str, Any]) -> list[Finding]:
    """All contradictions of a document that `read` accepts, and then what is only noted."""
    said = said_in(doc)
    found = [
        *(Finding(True, sentence, code) for code, wrong, sentence in _rules(doc, said) if wrong),
        *_cost(said),
        *_groups(doc, said),
    ]
    return sorted(found, key=lambda one: not one.grave)


def _rules(doc: dict[str, Any], said: Said) -> Iterator[tuple[str, Any, str]]:
    """(code, whether it is broken, what contradicts) of every rule without a price."""
    promise, noise, audit, named = doc["promise"], doc["noise"], doc["audit"], doc["versions"]
    unit, mine, route = promise.get("unit"), said.neighbours, doc["accounting"]["route"]
    priced, stated, singles = doc["accounting"]["neighbours"], said.epsilon, doc["arithmetic"]
    capped = not said.nothing and not math.isinf(said.budget)
    words = "the content is not what the checksum was made of: it was changed"
    yield "checksum", doc["checksum"] != checksum(doc), words
    words = f"epsilon was priced under {priced!r} neighbours, the guarantee is about {mine!r}"
    yield "relation", priced != mine, words
    alone = promise["protects"] == "sensitive_features"
    words = "of the sensitive attributes alone neighbours are replace-one"
    yield "relation", alone and mine != "replace-one", words
    endless = unit is not None and unit["max_rows"] is None and capped
    yield "rows-of-a-person", endless, "no largest number of rows of one person is stated"
    words = f"epsilon is stated at delta {doc['delta']:g}, the guarantee is about delta"
    yield "delta", doc["delta"] != said.delta, f"{words} {said.delta:g}"
    words = f"the events are not priced by {route!r}"
    yield "route", _priced(rule.is_route, route, said) is False, words
    words = f"epsilon {_shown(stated)} is above the guarantee's {_shown(said.budget)}"
    yield "guarantee", stated > said.budget * (1 + SLACK), words
    origins = [bound["origin"] for bound in doc["bounds"]]
    required = stamps(stated, noise, doc["user_code"], origins)
    for stamp in required:
        yield "flag", stamp not in doc["stamps"], f"the flag {stamp!r} is missing"
    for stamp in doc["stamps"]:
        yield "flag", stamp not in required, f"the flag {stamp!r} contradicts the rest"
    capped = capped and said.plan is None
    words = "there is neither a plan nor a filter: nothing was fixed in advance"
    yield "nothing-fixed", capped and said.cap is None, words
    words = "a filter is named, but there is a plan or nothing to cap"
    yield "filter", not capped and said.cap is not None, words
    begun = said.plan is None or _priced(rule.is_prefix, said.events, said.plan, mine)
    words = "the log is not a beginning of the plan: something else was done than was planned"
    yield "plan", not begun, words
    told, done = Counter[Any](), Counter[Any]()
    for one in doc.get("releases", ()):
        told[one["mechanism"], tuple(map(float, one["numbers"])), one["rows"]] += one["times"]
    for *line, times in leaves(said.events) if told else ():
        done[tuple(line)] += times
    yield "releases", told != done, "the table of releases is not that of the events"
    has = "a version of torch is named" if "torch" in named else "the version of torch is not named"
    words = f"arithmetic is stated as {singles!r}, and {has}"
    yield "arithmetic", (singles != "exact") != ("torch" in named), words
    words = f"arithmetic is stated as {singles!r}, that of a module, and user code as 'none'"
    yield "arithmetic", singles != "exact" and doc["user_code"] != "trusted", words
    shows = 0.0 if audit is None else audit["epsilon"]
    words = f"an audit shows epsilon >= {_shown(shows)}, above the stated {_shown(stated)}"
    yield "audit", shows > stated, words
    for name in NAMED_VERSIONS:
        yield "version", name not in named, f"the version of {name} is not named"


def _priced(function: Any, *given: Any) -> Any:
    try:
        return function(*given)
    except Malformed:
        raise
    except UNPRICED:  # a stranger's events may be wrong in any way
        return None


def _compared(code: str, of: str, stated: float, found: tuple[float, bool]) -> Iterator[Finding]:
    """A stated epsilon beside the one that was found."""
    words = f"epsilon{of} is stated as {_shown(stated)}"
    if not is_within(found, stated):
        yield Finding(True, f"{words}, the events cost {_shown(found[0])}", code)
    elif stated > found[0] * (1 + (ON_A_GRID if found[1] else SLACK)):
        yield Finding(False, f"{words}, above the {_shown(found[0])} that the events cost")


def _cost(said: Said) -> Iterator[Finding]:
    found, stated = _priced(rule.charge, said), said.epsilon
    if found is None:
        yield Finding(True, "the events cannot be priced", "unpriced")
    elif math.isinf(stated) and not math.isinf(found[0]):
        words = f"epsilon is stated as inf, the events cost {_shown(found[0])}: nothing in them is"
        yield Finding(True, f"{words} unprotected", "epsilon")
    else:
        yield from _compared("epsilon", "", stated, found)


def _groups(doc: dict[str, Any], said: Said) -> Iterator[Finding]:
    if not doc.get("groups"):
        return
    from .groups import Cells, group_epsilons, keeps

    columns: dict[int, list[dict[str, Any]]] = {}
    for group in doc.get("groups", ()):
        columns.setdefault(group["column"], []).append(group)
    for number, groups in columns.items():
        column, fixed = Cells(number, len(groups)), groups[0]["fixed"]
        each = sorted(group["cell"] for group in groups) == list(range(len(groups)))
        alike = all(group["fixed"] == fixed for group in groups)
        if not (each and alike and len({group["name"] for group in groups}) == len(groups)):
            words = f"the groups of column {number} are not one a cell"
            yield Finding(True, words, "groups")
            continue
        found = _priced(group_epsilons, said, column, fixed)
        if found is None:
            yield Finding(True, f"the groups of column {number} cannot be priced", "groups")
            continue
        for group in groups:
            name, cell, limit = group["name"], group["cell"], group.get("limit")
            yield from _compared(
                "group", f" of group {name!r}", event(group["epsilon"]), found[cell]
            )
            if limit is not None and not _priced(keeps, said, float(limit), cell, column):
                words = f"group {name!r} has a limit of {_shown(limit)}, which its events exceed"
                yield Finding(True, words, "limit")


def _shown(value: float) -> str:
    return "inf" if math.isinf(value) else f"{value:.10g}"
