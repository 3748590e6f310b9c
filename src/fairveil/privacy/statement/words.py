"""A privacy statement in plain words: one item for each thing that NIST SP 800-226 asks a reader to
be told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...core.events import (
    Composed,
    Event,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Repeated,
    VisiblySampled,
)
from ...show.numbers import STAMP_WORDS as STAMP_WORDS
from ..accounting.two_steps import KIND as TWO_STEPS
from ..shown import at_least, at_most, promised
from .contents import StatementContents
from .mechanism_words import mechanisms
from .parts import READ_FROM_DATA, GroupGuarantee
from .prefixes import is_whole

if TYPE_CHECKING:
    from ...core.promise import Promise

MOST_GROUPS = 20
"""The same of groups."""

WEAKER = (
    "A larger share of the budget, hence a larger epsilon, is a weaker guarantee for that group."
)

NOT_STATED = "Not stated. If this model was picked from several fits, that choice is not covered."
MECHANISMS = "Mechanisms"


def items(statement: StatementContents) -> tuple[tuple[str, str], ...]:
    """(heading, words) for every item, always the same headings in the same order."""
    return (
        ("Definition and parameters", _definition(statement)),
        ("Groups", _groups(statement)),
        ("Neighbours", _neighbours(statement.promise)),
        ("What is protected", _protected(statement.promise)),
        ("Unit", _unit(statement.promise)),
        ("Trust model", _trust(statement)),
        (MECHANISMS, _join(mechanisms(statement))),
        ("Bounds", _join(_bounds(statement))),
        ("Composition", _composition(statement)),
        ("Sampling", _sampling(statement)),
        ("Tuning", _said(statement.tuning) or NOT_STATED),
        ("Earlier releases", _earlier(statement)),
        ("Noise source", _noise(statement)),
        ("Floating point", _arithmetic(statement)),
        ("Versions", ", ".join(f"{name} {version}" for name, version in statement.versions) + "."),
        ("Taken as public", _join(_facts(statement))),
        ("Not covered", _join(_not_covered(statement))),
        ("Notes", _join(iter(sentence.rstrip(".") for sentence in statement.notes or ("none",)))),
        ("Audit", _audit(statement)),
    )


def _definition(statement: StatementContents) -> str:
    stamps = "".join(f"{STAMP_WORDS[stamp]}. " for stamp in statement.stamps)
    if not statement.is_private:
        return f"{stamps}Epsilon is infinite: nobody has a guarantee."
    spent = at_most(statement.epsilon, statement.promise.epsilon)
    limit = (
        f"the budget was {promised(statement.promise.epsilon)}"
        if statement.promise.is_private
        else "no budget was set"
    )
    at = f"{statement.delta:g}"
    return (
        f"{stamps}({spent}, {at})-differential privacy: epsilon = {spent} at delta = {at} was "
        f"spent, {limit}."
    )


def _groups(statement: StatementContents) -> str:
    if not statement.groups:
        by_cell = any(_has_cells(event) for event in (*statement.events, *(statement.plan or ())))
        return (
            "noise differs by cell, and no group was named: the guarantee above is everybody's."
            if by_cell
            else "everybody has the same guarantee."
        )
    told = [f"{group.name}: {_own(group, statement)}" for group in statement.groups[:MOST_GROUPS]]
    if len(statement.groups) > MOST_GROUPS:
        told.append(f"and {len(statement.groups) - MOST_GROUPS} more, listed in the JSON")
    whose = (
        f"Each is at delta = {statement.delta:g}, of people who are in that group in one of two "
        f"neighbouring tables"
    )
    return f"{'; '.join(told)}. {whose}. {' '.join(_when(statement))} {WEAKER}"


def _own(group: GroupGuarantee, statement: StatementContents) -> str:
    """A limit that was fixed in advance comes first; a larger number beside it would say
    nothing."""
    after = "" if group.fixed else " after the fact"
    if math.isinf(group.epsilon):
        words = "no guarantee of its own"
    elif group.epsilon > statement.epsilon:
        words = "no better than the guarantee above"
    else:
        words = f"epsilon = {at_most(group.epsilon, group.limit, statement.promise.epsilon)}{after}"
    if group.limit is None:
        return words
    limited = f"at most {promised(group.limit)}, a limit fixed in advance"
    return (
        f"{limited} ({words})" if group.epsilon <= min(group.limit, statement.epsilon) else limited
    )


def _when(statement: StatementContents) -> Iterator[str]:
    """How shares were made, once for each way."""
    if any(group.fixed for group in statement.groups):
        yield "Shares of the budget were fixed in advance."
    if not all(group.fixed for group in statement.groups):
        yield (
            "An epsilon after the fact holds for this outcome: shares of the budget depend on "
            "earlier released answers. "
            "The guarantee above was fixed in advance for everybody. It and the group's own hold "
            "at this delta each. "
            "The smaller of the two holds at twice this delta."
        )


def _has_cells(event: Event) -> bool:
    match event:
        case PerCell():
            return True
        case Composed(events):
            return any(_has_cells(inner) for inner in events)
        case Repeated() | PoissonSampled() | VisiblySampled() | OnPart() | PrivateSelection():
            return _has_cells(event.event)
    return False


def _unit(promise: Promise) -> str:
    if promise.unit is None:
        return (
            "one row is one person; a person with several rows is protected for one of them only."
        )
    told = (
        f"persons are identified by {promise.unit.name!r}, and each is protected with all of their "
        f"rows."
    )
    if promise.is_private and promise.protects == "records":
        told += (
            " Rows beyond that number were dropped by coins, which depend on no row and on no "
            "other person."
        )
    return f"{promise.unit}; {told}"


def _neighbours_of_persons(promise: Promise) -> str:
    if promise.protects == "sensitive_features":
        return (
            "two tables are neighbours when they differ in the sensitive columns of the rows of "
            "one person (replace-one)."
        )
    if promise.neighbours == "add-remove":
        return (
            "two tables are neighbours when one is the other with all rows of one person added or "
            "removed (add-remove); "
            "how many persons and rows there are is private."
        )
    return (
        "two tables are neighbours when they differ in one person, whose rows another person's "
        "replace (replace-one); how many "
        "persons there are is public, and how many rows is private."
    )


def _neighbours(promise: Promise) -> str:
    if promise.unit is not None:
        return _neighbours_of_persons(promise)
    if promise.protects == "sensitive_features":
        return (
            "two tables are neighbours when they differ in the sensitive columns of one row "
            "(replace-one)."
        )
    if promise.neighbours == "add-remove":
        return (
            "two tables are neighbours when one is the other with one row added or removed "
            "(add-remove); "
            "how many rows there are is private."
        )
    return (
        "two tables are neighbours when they differ in one row (replace-one); how many rows there "
        "are is public."
    )


def _protected(promise: Promise) -> str:
    if promise.protects == "records":
        return "records: features, label and sensitive columns."
    whose = "" if promise.unit is None else f" and whose each row is ({promise.unit.name!r})"
    return (
        f"the sensitive columns only: features, labels, sample weights and the number of "
        f"rows{whose} are treated as public."
    )


def _trust(statement: StatementContents) -> str:
    words = (
        "a central curator holds the rows, is trusted, and gives out nothing but what is listed "
        "here."
    )
    if statement.user_code == "trusted":
        return (
            words + " The caller's own code ran beside the rows and was trusted too: it could have "
            "leaked."
        )
    return words + " No code of the caller ran beside the rows."


def _bounds(statement: StatementContents) -> Iterator[str]:
    for bound in statement.bounds:
        source = (
            "read from the data, which is NOT covered"
            if bound.origin == READ_FROM_DATA
            else f"from: {bound.origin}"
        )
        yield (
            f"{bound.question}: {bound.norm} sensitivity {bound.sensitivity:g}, {bound.reason} "
            f"({source})"
        )
    if not statement.bounds:
        yield "none are listed; noise is stated as a multiple of each sensitivity"


def _composition(statement: StatementContents) -> str:
    if statement.cap is not None and statement.cap.kind == TWO_STEPS:
        how = (
            "all releases but the last were fixed in advance; the last was chosen afterwards, and "
            "may depend on their values. "
            "The stated epsilon is what this allows under a guarantee that was fixed before them"
        )
    elif statement.cap is not None:
        how = (
            f"releases were chosen one after another, within a {statement.cap.kind} filter that "
            f"was fixed in "
            "advance; the stated epsilon is what it allows"
        )
    elif statement.plan is None:
        how = "nothing had to be capped"
    elif statement.plan == statement.events:
        how = "the releases were fixed in advance, and all of them were made"
    elif is_whole(statement.events, statement.plan, statement.promise.neighbours):
        how = (
            "bounds on all releases were fixed in advance, and all of them were made, some by "
            "cell; nobody had less noise than "
            "planned"
        )
    else:
        how = "the releases were fixed in advance; the run was interrupted and is charged whole"
    return f"{how}; epsilon was computed by: {statement.route}, under {statement.neighbours}."


def _sampling(statement: StatementContents) -> str:
    whose = "row" if statement.promise.unit is None else "person"
    fixed = (
        f"some releases read one of a number of fixed parts of the rows, cut by a {whose}'s place "
        f"alone; a person is in one "
        "part of each partition, and who is present is public."
    )
    if statement.route == "nothing read":
        return "what is protected was not read, so that nothing depends on which rows were."
    if not statement.samples:
        all_rows = "every release read all rows; no random batch, hence no assumption about one."
        return f"{fixed} No random batch was drawn." if statement.in_parts else all_rows
    return (f"{fixed} Elsewhere " if statement.in_parts else "") + (
        f"the library's own sampler put every {whose} in each batch independently with the stated "
        f"probability (Poisson), "
        "as the computation assumes; the sizes of batches are not given out."
    )


def _earlier(statement: StatementContents) -> str:
    said, receipt = _said(statement.earlier_releases), statement.ledger
    if receipt is None:
        return (
            said
            or "nothing was said: what was released before adds to this cost and is not counted."
        )
    recorded = (
        f"the ledger of data set {receipt.dataset!r} holds this release as line {receipt.entry} "
        f"(spend {receipt.spend}, hash "
        f"{receipt.hash}), with all others recorded there; what was released and not recorded "
        f"there is not counted."
    )
    return recorded if said is None else f"{said} {recorded[0].upper()}{recorded[1:]}"


def _noise(statement: StatementContents) -> str:
    if statement.noise == "secure":
        return "a cryptographic generator (ChaCha20) keyed by the operating system."
    return (
        "INSECURE: a generator seeded by the caller; whoever knows or guesses the seed can take "
        "the noise away. For tests only."
    )


def _arithmetic(statement: StatementContents) -> str:
    if statement.arithmetic == "exact":
        return (
            "contributions are put on a grid and added exactly, noise is drawn on the same grid; "
            "no rounding can leak."
        )
    return (
        "contributions are put on a grid, bounded there and added exactly, noise is drawn on the "
        "same grid. "
        "What a network makes of one row is float32 arithmetic of torch. Rows went through it "
        "one by one, or in chunks of "
        "fixed shapes, tried on made-up rows: there no bit of a row hung on its place or on the "
        "rows beside it. If some "
        "bit hung on them all the same, each such row could move a sum by two clips: that is not "
        "covered."
    )


def _facts(statement: StatementContents) -> Iterator[str]:
    for fact in statement.facts:
        # whether it was passed all the same, nobody can see
        origin = "the library's default value" if fact.origin == "library default" else fact.origin
        yield f"{fact.name} = {fact.value} ({origin})"
    if not statement.facts:
        yield "nothing but what this statement itself says"


def _not_covered(statement: StatementContents) -> Iterator[str]:
    yield from (sentence.rstrip(".") for sentence in statement.not_covered)
    for fact in statement.facts:
        if fact.origin == READ_FROM_DATA:
            yield f"{fact.name} was read from the data"
    for bound in statement.bounds:
        if bound.origin == READ_FROM_DATA:
            yield f"the bound of {bound.question} was read from the data"
    yield "whatever was done with the data outside this library"


def _audit(statement: StatementContents) -> str:
    audit = statement.audit
    if audit is None:
        return "none was made."
    return (
        f"{audit.attack} shows that epsilon is at least {at_least(audit.epsilon)}, at confidence "
        f"{audit.confidence:g}."
    )


def _said(sentence: str | None) -> str | None:
    return None if sentence is None else sentence.rstrip(".") + "."


def _join(sentences: Iterator[str]) -> str:
    return "; ".join(sentences) + "."
