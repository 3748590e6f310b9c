"""What a privacy statement says, as plain public values: what is checked, put in words and written.
See `PrivacyStatement`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ... import _checks
from ...core.events import (
    Composed,
    Event,
    OnPart,
    PoissonSampled,
    PrivateSelection,
    Repeated,
    VisiblySampled,
)
from ...core.promise import Promise
from ...errors import StatementError
from .parts import (
    ARITHMETICS,
    NOISES,
    STAMPS,
    USER_CODES,
    Arithmetic,
    Audit,
    Cap,
    GroupGuarantee,
    Noise,
    PublicFact,
    Receipt,
    Stamp,
    StatedBound,
    UserCode,
    require_words,
)
from .releases import Release, releases_of


@dataclass(frozen=True)
class StatementContents:
    """The fields of a `PrivacyStatement`, each checked by itself; whether they agree is for
    `checks.findings`."""

    promise: Promise
    epsilon: float
    delta: float
    neighbours: str
    route: str
    events: tuple[Event, ...]
    plan: tuple[Event, ...] | None
    cap: Cap | None
    facts: tuple[PublicFact, ...]
    bounds: tuple[StatedBound, ...]
    not_covered: tuple[str, ...]
    tuning: str | None
    earlier_releases: str | None
    audit: Audit | None
    noise: Noise
    arithmetic: Arithmetic
    user_code: UserCode
    stamps: tuple[Stamp, ...]
    versions: tuple[tuple[str, str], ...]
    created: str | None = None
    groups: tuple[GroupGuarantee, ...] = ()
    ledger: Receipt | None = None
    releases: tuple[Release, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _checks.normalise(self, epsilon=_checks.non_negative(epsilon=self.epsilon, allow_inf=True))
        _checks.normalise(self, delta=_checks.fraction(delta=self.delta, high_open=True))
        require_words(neighbours=self.neighbours, route=self.route)
        for sentence in self.not_covered:
            require_words(not_covered=sentence)
        for sentence in self.notes:
            require_words(notes=sentence)
        for name, text in (
            ("tuning", self.tuning),
            ("earlier_releases", self.earlier_releases),
            ("created", self.created),
        ):
            if text is not None:
                require_words(**{name: text})
        _checks.one_of(NOISES, noise=self.noise)
        _checks.one_of(ARITHMETICS, arithmetic=self.arithmetic)
        _checks.one_of(USER_CODES, user_code=self.user_code)
        for stamp in self.stamps:
            _checks.one_of(STAMPS, stamp=stamp)
        receipt: object = self.ledger
        if receipt is not None and not isinstance(receipt, Receipt):
            remedy = "Pass the receipt of a spend: spend.receipt."
            got = type(receipt).__name__
            raise StatementError.expected("a Receipt, or None", of="ledger", got=got, remedy=remedy)

    @property
    def is_private(self) -> bool:
        """False when epsilon is inf."""
        return not math.isinf(self.epsilon)

    @property
    def told_releases(self) -> tuple[Release, ...]:
        """`releases`, or the same made of the events alone, without names."""
        return self.releases or releases_of(((), event) for event in self.events)

    @property
    def samples(self) -> bool:
        """Whether any event worked on a random batch."""
        return any(
            _works_on(event, (PoissonSampled, VisiblySampled))
            for event in (*self.events, *(self.plan or ()))
        )

    @property
    def in_parts(self) -> bool:
        """Whether any event worked on a fixed part of the rows."""
        return any(_works_on(event, (OnPart,)) for event in (*self.events, *(self.plan or ())))


def _works_on(event: Event, kinds: tuple[type[Event], ...]) -> bool:
    if isinstance(event, kinds):
        return True
    if isinstance(event, Composed):
        return any(_works_on(part, kinds) for part in event.events)
    return isinstance(event, Repeated | VisiblySampled | PrivateSelection) and _works_on(
        event.event, kinds
    )
