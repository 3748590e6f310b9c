"""The parts of a privacy statement: facts, bounds, the filter, audits, groups, and a ledger's
receipt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ... import _checks
from ...errors import StatementError

Origin = Literal[
    "schema",
    "argument",
    "read from the data, not covered",
    "library default",
    "by definition",
    "public features",
    "schema x (1 - holdout)",
    "argument x (1 - holdout)",
]


Noise = Literal["secure", "seeded"]


Arithmetic = Literal["exact", "float32-by-row"]


UserCode = Literal["none", "trusted"]


Stamp = Literal["not-private", "seeded-noise", "data-dependent-bounds", "user-code-trusted"]


ORIGINS: tuple[Origin, ...] = (
    "schema",
    "argument",
    "read from the data, not covered",
    "library default",
    "by definition",
    "public features",
    "schema x (1 - holdout)",
    "argument x (1 - holdout)",
)
"""Where something public came from. "argument": the caller said so; "library default": nobody did,
and the library has a value for that; "by definition": a row counts once, for example; "public
features": of these, where sensitive columns alone are protected."""


NOISES: tuple[Noise, ...] = ("secure", "seeded")


ARITHMETICS: tuple[Arithmetic, ...] = ("exact", "float32-by-row")


USER_CODES: tuple[UserCode, ...] = ("none", "trusted")


STAMPS: tuple[Stamp, ...] = (
    "not-private",
    "seeded-noise",
    "data-dependent-bounds",
    "user-code-trusted",
)


READ_FROM_DATA: Origin = "read from the data, not covered"


@dataclass(frozen=True)
class PublicFact:
    """Something that was taken as public: its name, its value in words, and where it came from."""

    name: str
    value: str
    origin: Origin

    def __post_init__(self) -> None:
        require_words(name=self.name, value=self.value)
        _checks.one_of(ORIGINS, origin=self.origin)


@dataclass(frozen=True)
class StatedBound:
    """How far one person moves one released total, and why: `norm` such as "L2", `reason` such as
    "clipped to norm 1"."""

    question: str
    norm: str
    sensitivity: float
    reason: str
    origin: Origin = "argument"

    def __post_init__(self) -> None:
        require_words(question=self.question, norm=self.norm, reason=self.reason)
        _checks.normalise(self, sensitivity=_checks.non_negative(sensitivity=self.sensitivity))
        _checks.one_of(ORIGINS, origin=self.origin)


@dataclass(frozen=True)
class Cap:
    """The filter that capped answers chosen one after another, as it was fixed before the first:
    see `privacy.filters`; or the rule for one release that was chosen after all others:
    `privacy.two_steps`."""

    kind: str
    order: float | None
    reserve: float

    def __post_init__(self) -> None:
        require_words(kind=self.kind)
        if self.order is not None:
            _checks.normalise(self, order=_checks.positive(order=self.order))
        _checks.normalise(self, reserve=_checks.fraction(reserve=self.reserve, high_open=True))


@dataclass(frozen=True)
class Audit:
    """What an attack on the finished release showed: epsilon is at least `epsilon`, with this
    confidence."""

    epsilon: float
    confidence: float
    attack: str

    def __post_init__(self) -> None:
        require_words(attack=self.attack)
        _checks.normalise(self, epsilon=_checks.non_negative(epsilon=self.epsilon))
        _checks.normalise(
            self,
            confidence=_checks.fraction(confidence=self.confidence, low_open=True, high_open=True),
        )


@dataclass(frozen=True)
class NamedGroups:
    """The groups of one sensitive column, in the order of its cells: whose own guarantees a
    statement is to tell.

    `fixed`: whether the shares of the budget were fixed before data were read; if not, they were
    made once, of answers that were released before any release by these cells, and what is told
    holds after the fact (`privacy.by_group`). `limits`: epsilons that these groups were promised
    in advance, whatever the shares would be; None for those that were not.
    """

    names: tuple[str, ...]
    column: int = 0
    fixed: bool = True
    limits: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        given: object = self.names
        names = tuple(given) if isinstance(given, tuple | list) else ()
        for name in names:
            require_words(group=name)
        if not names or len(set(names)) != len(names):
            remedy = "Name every cell once: NamedGroups(('female', 'male'))."
            raise StatementError.expected(
                "different names, one a cell", of="names", got=self.names, remedy=remedy
            )
        if self.limits and len(self.limits) != len(names):
            remedy = "One limit a name, None where there is none."
            raise StatementError.expected(
                f"{len(names)} limits", of="limits", got=len(self.limits), remedy=remedy
            )
        _checks.normalise(self, names=names, limits=tuple(self.limits) or (None,) * len(names))
        _checks.normalise(self, column=_checks.whole(column=self.column), fixed=_flag(self.fixed))


@dataclass(frozen=True)
class GroupGuarantee:
    """What the people of one group, a cell of a sensitive column, have at the promise's delta.
    `fixed`, `limit`: see `NamedGroups`."""

    name: str
    cell: int
    column: int
    epsilon: float
    fixed: bool
    limit: float | None = None

    def __post_init__(self) -> None:
        require_words(group=self.name)
        if self.limit is not None:
            _checks.normalise(self, limit=_checks.positive(limit=self.limit))
        _checks.normalise(
            self, cell=_checks.whole(cell=self.cell), column=_checks.whole(column=self.column)
        )
        _checks.normalise(
            self,
            epsilon=_checks.non_negative(epsilon=self.epsilon, allow_inf=True),
            fixed=_flag(self.fixed),
        )


@dataclass(frozen=True)
class Receipt:
    """What shows that a ledger holds a release: its data set, the spend's id, the number of the
    line that reserved it, and the line's hash, which a ledger that lost or changed a line no longer
    has (`Ledger.check(receipts=...)`)."""

    dataset: str
    spend: str
    entry: int
    hash: str

    def __post_init__(self) -> None:
        require_words(dataset=self.dataset, spend=self.spend)
        _checks.normalise(self, entry=_checks.whole(entry=self.entry))
        given: object = self.hash
        if (
            not isinstance(given, str)
            or len(given) != 64
            or not set(given) <= set("0123456789abcdef")
        ):
            remedy = "Take the receipt of a spend: spend.receipt."
            raise StatementError.expected(
                "64 hexadecimal digits", of="hash", got=given, remedy=remedy
            )


def names_read(facts: Iterable[PublicFact], bounds: Iterable[StatedBound]) -> list[str]:
    """What of these was read from the data, and is not covered."""
    named = [
        *((fact.name, fact.origin) for fact in facts),
        *((bound.question, bound.origin) for bound in bounds),
    ]
    return [name for name, origin in named if origin == READ_FROM_DATA]


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        remedy = "fixed=False where shares were made of released answers."
        raise StatementError.expected("True or False", of="fixed", got=value, remedy=remedy)
    return value


def require_words(**named: object) -> None:
    """Printable lines: a stranger's statement must not be able to write control codes to a
    terminal."""
    for name, value in named.items():
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise StatementError.expected(
                "some words on one line", of=name, got=value, remedy=f"Say in words what {name} is."
            )
