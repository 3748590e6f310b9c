"""The statement of a post-processor: its base classifier and what was asked after it, together.

Guarantees (tests/estimators/test_estimators_odds_looked_at.py):
1. Base and counts are one plan only where both were fitted together. Beside a base that was there
   before they are two steps: what is stated holds however the second was chosen by looking at the
   first (`privacy.two_steps`).
2. What the base's statement says against it is said: seeded noise, user code, what it read from the
   data or does not cover.
"""

from __future__ import annotations

from dataclasses import replace

from ...core.events import NonPrivate
from ...core.promise import Promise
from ...privacy.accounting.two_steps import TwoSteps
from ...show.numbers import at_most
from ...statement.document import (
    BASE_FACT,
    Origin,
    PrivacyStatement,
    PublicFact,
    Receipt,
    same_releases,
)
from ..fitting import READS_GROUPS
from ..reading.training import Training
from .bases import Base

FITTED_BEFORE = (
    "fitted before: its cost is counted, and what was released after it may have been chosen by "
    "looking at it"
)
FITTED_HERE = "fitted here: it and what was released after it are one plan, fixed in advance"


def of(
    training: Training,
    base: Base,
    promise: Promise,
    counts: PrivacyStatement | None,
    receipt: Receipt | None,
    *,
    reads_groups: bool,
    base_origin: Origin = "argument",
) -> PrivacyStatement:
    """Base and counts together, under the whole promise. `counts`: what the curator says of them;
    None: nothing was asked."""
    released = () if counts is None else counts.events
    events = [*base.spent, *released] if promise.is_private else [NonPrivate()]
    both = bool(promise.is_private and base.spent and released)
    in_two_steps = both and base.looked_at
    first = base.statement
    # each reading of its own
    facts = dict.fromkeys((*training.facts, *(() if first is None else first.facts)))
    if both:
        facts[
            PublicFact(BASE_FACT, FITTED_BEFORE if base.looked_at else FITTED_HERE, base_origin)
        ] = None
    seeded = any(one is not None and one.noise == "seeded" for one in (first, counts))
    groups = (READS_GROUPS,) if reads_groups else ()
    said = (
        *training.not_covered,
        *base.not_covered,
        *(() if first is None else first.not_covered),
        *groups,
    )
    named = [
        *(() if first is None else first.releases),
        *(() if counts is None else counts.releases),
    ]
    stated = PrivacyStatement.of(
        promise,
        events,
        plan=events if promise.is_private and not in_two_steps else None,
        cap=TwoSteps(promise) if in_two_steps else None,
        facts=facts,
        bounds=[
            *(() if first is None else first.bounds),
            *(() if counts is None else counts.bounds),
        ],
        not_covered=dict.fromkeys(said),
        tuning=None if first is None else first.tuning,
        earlier_releases=None
        if first is None
        else _earlier(first)
        if in_two_steps
        else first.earlier_releases,
        noise="seeded" if seeded else "secure",
        arithmetic="exact" if first is None else first.arithmetic,
        user_code="none"
        if base.is_ours and (first is None or first.user_code == "none")
        else "trusted",
        ledger=receipt,
        releases=named if same_releases(named, events) else (),
    )
    return stated if first is None else replace(stated, notes=first.notes)


def _earlier(base: PrivacyStatement) -> str:
    """What was released before the counts were chosen: the base, which is counted, and what its own
    statement says."""
    cost = (
        f"epsilon {at_most(base.epsilon, base.promise.epsilon)} at delta {base.delta:g} by itself"
    )
    before = (
        base.earlier_releases
        or "what else was released before adds to this cost and is not counted"
    )
    return f"the base classifier was fitted before ({cost}), and is counted here; {before}"
