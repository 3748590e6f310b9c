"""A privacy statement in words: one item for each thing that NIST SP 800-226 asks a reader to be told.
Loaded where a statement is shown.

Guarantees (tests/statement/test_document.py).
1. Every statement has every item, in one order.
2. A number in words promises no more than the statement's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..core.promise import Promise
from ..show.numbers import STAMP_WORDS, at_least, at_most, promised
from ..show.parts import Column, Facts, Part, Table, aligned
from .form import READ_FROM_DATA, event, inside, schema
from .rule import TWO_STEPS

Statement = Any
"""A `PrivacyStatement`: `document` imports this room, and not the other way."""

MOST_LISTED, MOST_CELLS = 20, 8
"""Groups and kinds of release, and multipliers of one, that the words list; the JSON lists all."""
HEADS = ("release", "noise multiplier", "sensitivity", "rows", "times")
"""Of the table of releases."""
MECHANISMS, NOTHING = "Mechanisms", "-"
TOLD: dict[str, Any] = schema()["properties"]
MADE_BY: dict[str, Any] = TOLD["releases"]["items"]["properties"]["mechanism"]
"""Of each mechanism its words, the norm in which its sensitivity is stated, and the names of what it
is known by, where that is no noise multiplier."""
WHOSE: dict[str, Any] = TOLD["promise"]["properties"]
NEIGHBOURS: dict[str, Any] = {**WHOSE["neighbours"]["words"], **WHOSE["protects"]["words"]}
"""When two tables are neighbours: of rows, and of persons."""
CURATOR = (
    "a central curator holds the rows, is trusted, and gives out nothing but what is listed here."
)
NOT_TUNED = "Not stated. If this model was picked from several fits, that choice is not covered."
NOTHING_SAID = "nothing was said: what was released before adds to this cost and is not counted."


def items(statement: Statement) -> tuple[tuple[str, str], ...]:
    """(heading, words) for every item, always the same headings in the same order."""
    promise, versions = statement.promise, statement.versions
    alike = "sensitive_features" if promise.protects != "records" else promise.neighbours
    are = f"two tables are neighbours when {NEIGHBOURS[alike][promise.unit is not None]}"
    notes = statement.notes or ("none",)
    return (
        ("Definition and parameters", _definition(statement)),
        ("Groups", _groups(statement)),
        ("Neighbours", are),
        ("What is protected", _protected(promise)),
        ("Unit", _unit(promise)),
        ("Trust model", f"{CURATOR} {_said(statement, 'user_code')}"),
        (MECHANISMS, "; ".join(table_lines(statement)) or "nothing that is protected was read."),
        ("Bounds", _join(_bounds(statement))),
        ("Composition", _composition(statement)),
        ("Sampling", _sampling(statement)),
        ("Tuning", _sentence(statement.tuning) or NOT_TUNED),
        ("Earlier releases", _earlier(statement)),
        ("Noise source", _said(statement, "noise")),
        ("Floating point", _said(statement, "arithmetic")),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions) + "."),
        ("Taken as public", _join(_facts(statement))),
        ("Not covered", _join(_not_covered(statement))),
        ("Notes", _join(sentence.rstrip(".") for sentence in notes)),
        ("Audit", _audit(statement)),
    )


def _said(statement: Statement, name: str) -> str:
    """The schema's words for the value of a field."""
    return str(TOLD[name]["words"][getattr(statement, name)])


def lines(statement: Statement) -> Iterator[str]:
    """All items, the releases as a table."""
    for heading, words in items(statement):
        if heading == MECHANISMS and statement.told_releases:
            yield f"{heading}:"
            yield from (f"  {line}" for line in table_lines(statement))
        else:
            yield f"{heading}: {words}"


def parts(statement: Statement) -> Iterator[Part]:
    """An item after another; the releases as a table."""
    rows = table(statement)
    yield Facts.of(pair for pair in items(statement) if pair[0] != MECHANISMS or not rows)
    if rows:
        columns = zip(HEADS, zip(*rows, strict=True), strict=True)
        told = tuple(Column(head, values) for head, values in columns)
        yield Table(told, MECHANISMS, MOST_LISTED)


def table(statement: Statement) -> tuple[tuple[str, ...], ...]:
    """A row of texts for each kind of release, under `HEADS`; none where nothing was read."""
    bounds = {(bound.question, bound.norm): bound.sensitivity for bound in statement.bounds}
    out = []
    for one in statement.told_releases:
        words = MADE_BY["words"][one.mechanism]
        norm = MADE_BY["norms"].get(one.mechanism, NOTHING)
        moves = bounds.get((one.name, norm))
        norm = norm if moves is None else f"{norm} {moves:g}"
        name = f"{one.name} ({words})" if one.name else words
        out.append((name, _numbers(one), norm, one.rows, f"{one.times:,}"))
    return tuple(out)


def table_lines(statement: Statement) -> Iterator[str]:
    """The table as lines of one width a column."""
    told = table(statement)
    yield from aligned([HEADS, *told[:MOST_LISTED]]) if told else ()
    if len(told) > MOST_LISTED:
        yield _more(told)


def _numbers(one: Any) -> str:
    """Noise multipliers as numbers; what another mechanism is known by in words."""
    if one.mechanism in MADE_BY["known_by"]:
        named = zip(MADE_BY["known_by"][one.mechanism], one.numbers, strict=False)
        return ", ".join(f"{name} {at_most(value)}" for name, value in named)
    shown = ", ".join(f"{number:.4g}" for number in one.numbers[:MOST_CELLS])
    return (f"{shown}, ..." if len(one.numbers) > MOST_CELLS else shown) or NOTHING


def _definition(statement: Statement) -> str:
    stamps = "".join(f"{STAMP_WORDS[stamp]}. " for stamp in statement.stamps)
    if not statement.is_private:
        return f"{stamps}Epsilon is infinite: nobody has a guarantee."
    budget, at = statement.promise.epsilon, f"{statement.delta:g}"
    spent = at_most(statement.epsilon, budget)
    limit = "no budget was set" if math.isinf(budget) else f"the budget was {promised(budget)}"
    told = f"{stamps}({spent}, {at})-differential privacy: epsilon = {spent} at delta = {at}"
    return f"{told} was spent, {limit}."


FIXED = " Shares of the budget were fixed in advance."
LATER = (
    " An epsilon after the fact holds for this outcome: shares of the budget depend on earlier "
    "released answers. The guarantee above was fixed in advance for everybody. It and the group's "
    "own hold at this delta each. The smaller of the two holds at twice this delta."
)
WEAKER = (
    "A larger share of the budget, hence a larger epsilon, is a weaker guarantee for that group."
)


def _groups(statement: Statement) -> str:
    groups = statement.groups
    if not groups:
        if _has(statement, "per-cell"):
            words = "noise differs by cell, and no group was named"
            return f"{words}: the guarantee above is everybody's."
        return "everybody has the same guarantee."
    told = [f"{group.name}: {_own(group, statement)}" for group in groups[:MOST_LISTED]]
    told += [_more(groups)] * (len(groups) > MOST_LISTED)
    whose = "of people who are in that group in one of two neighbouring tables."
    how = FIXED * any(group.fixed for group in groups)
    how += LATER * (not all(group.fixed for group in groups))
    return f"{'; '.join(told)}. Each is at delta = {statement.delta:g}, {whose}{how} {WEAKER}"


def _more(listed: Sequence[object]) -> str:
    return f"and {len(listed) - MOST_LISTED} more, listed in the JSON"


def _own(group: Any, statement: Statement) -> str:
    """A limit that was fixed in advance comes first; a larger number beside it would say
    nothing."""
    words = f"epsilon = {at_most(group.epsilon, group.limit, statement.promise.epsilon)}"
    words += "" if group.fixed else " after the fact"
    if math.isinf(group.epsilon):
        words = "no guarantee of its own"
    elif group.epsilon > statement.epsilon:
        words = "no better than the guarantee above"
    if group.limit is None:
        return words
    limited = f"at most {promised(group.limit)}, a limit fixed in advance"
    told = group.epsilon <= min(group.limit, statement.epsilon)
    return f"{limited} ({words})" if told else limited


def _has(statement: Statement, *kinds: str) -> bool:
    """Whether an event of one of these kinds was made or planned."""

    def holds(one: Any) -> bool:
        return one[0] in kinds or any(map(holds, inside(one)))

    told = (*statement.events, *(statement.plan or ()))
    return any(holds(event(one.to_dict())) for one in told)


def _protected(promise: Promise) -> str:
    if promise.protects == "records":
        return "records: features, label and sensitive columns."
    whose = "" if promise.unit is None else f" and whose each row is ({promise.unit.name!r})"
    public = f"features, labels, sample weights and the number of rows{whose}"
    return f"the sensitive columns only: {public} are treated as public."


def _unit(promise: Promise) -> str:
    if promise.unit is None:
        return (
            "one row is one person; a person with several rows is protected for one of them only."
        )
    name = f"{promise.unit}; persons are identified by {promise.unit.name!r}"
    told = f"{name}, and each is protected with all of their rows."
    if promise.is_private and promise.protects == "records":
        told += " Rows beyond that number were dropped by coins, which depend on no row and on no "
        told += "other person."
    return told


def _bounds(statement: Statement) -> Iterator[str]:
    for one in statement.bounds:
        read = one.origin == READ_FROM_DATA
        source = "read from the data, which is NOT covered" if read else f"from: {one.origin}"
        moves = f"{one.norm} sensitivity {one.sensitivity:g}"
        yield f"{one.question}: {moves}, {one.reason} ({source})"
    if not statement.bounds:
        yield "none are listed; noise is stated as a multiple of each sensitivity"


IN_TWO_STEPS = (
    "all releases but the last were fixed in advance; the last was chosen afterwards, and may "
    "depend on their values. The stated epsilon is what this allows under a guarantee that was "
    "fixed before them"
)
FINER = (
    "bounds on all releases were fixed in advance, and all of them were made, some by cell; nobody "
    "had less noise than planned"
)


def _composition(statement: Statement) -> str:
    cap, plan = statement.cap, statement.plan
    if cap is not None:
        how = (
            f"releases were chosen one after another, within a {cap.kind} filter that was fixed in "
        )
        how += "advance; the stated epsilon is what it allows"
        how = IN_TWO_STEPS if cap.kind == TWO_STEPS else how
    elif plan is None:
        how = "nothing had to be capped"
    elif plan == statement.events:
        how = "the releases were fixed in advance, and all of them were made"
    elif statement.ran_to_its_end:
        how = FINER
    else:
        how = "the releases were fixed in advance; the run was interrupted and is charged whole"
    return f"{how}; epsilon was computed by: {statement.route}, under {statement.neighbours}."


def _sampling(statement: Statement) -> str:
    whose = "row" if statement.promise.unit is None else "person"
    if statement.route == "nothing read":
        return "what is protected was not read, so that nothing depends on which rows were."
    parts = ""
    if _has(statement, "on-part"):
        parts = (
            f"some releases read one of a number of fixed parts of the rows, cut by a {whose}'s "
            f"place alone; a person is in one part of each partition, and who is present is public."
        )
    if not _has(statement, "poisson-sampled", "visibly-sampled"):
        all_rows = "every release read all rows; no random batch, hence no assumption about one."
        return f"{parts} No random batch was drawn." if parts else all_rows
    return (f"{parts} Elsewhere " if parts else "") + (
        f"the library's own sampler put every {whose} in each batch independently with the stated "
        f"probability (Poisson), as the computation assumes; the sizes of batches are not given "
        f"out."
    )


def _earlier(statement: Statement) -> str:
    said, receipt = _sentence(statement.earlier_releases), statement.ledger
    if receipt is None:
        return said or NOTHING_SAID
    recorded = (
        f"he ledger of data set {receipt.dataset!r} holds this release as line {receipt.entry} "
        f"(spend {receipt.spend}, hash {receipt.hash}), with all others recorded there; what was "
        f"released and not recorded there is not counted."
    )
    return f"t{recorded}" if said is None else f"{said} T{recorded}"


def _facts(statement: Statement) -> Iterator[str]:
    for fact in statement.facts:
        # whether it was passed all the same, nobody can see
        origin = "the library's default value" if fact.origin == "library default" else fact.origin
        yield f"{fact.name} = {fact.value} ({origin})"
    if not statement.facts:
        yield "nothing but what this statement itself says"


def _not_covered(statement: Statement) -> Iterator[str]:
    yield from (sentence.rstrip(".") for sentence in statement.not_covered)
    read = [fact.name for fact in statement.facts if fact.origin == READ_FROM_DATA]
    read += [f"the bound of {b.question}" for b in statement.bounds if b.origin == READ_FROM_DATA]
    yield from (f"{name} was read from the data" for name in read)
    yield "whatever was done with the data outside this library"


def _audit(statement: Statement) -> str:
    audit = statement.audit
    if audit is None:
        return "none was made."
    least = f"{audit.attack} shows that epsilon is at least {at_least(audit.epsilon)}"
    return f"{least}, at confidence {audit.confidence:g}."


def _sentence(words: str | None) -> str | None:
    return None if words is None else words.rstrip(".") + "."


def _join(sentences: Iterable[str]) -> str:
    return "; ".join(sentences) + "."
