"""The privacy statement: what is published beside a result, so that a stranger can see and
recompute what it cost.

Guarantees.

1. A statement holds public values only: the promise, events (noise multipliers, never noise or
   totals), public facts, words.
2. Its epsilon is what is charged, under the promise's own relation: with a plan the accountant's
   price of the whole plan, also for a run that was interrupted half way; without one, where answers
   were chosen after seeing others, the cap of the filter (or of the rule of two steps) that
   admitted them, which is the promise's epsilon (theory.md#t10: the tight total of such a log is no
   bound).
3. `check()` recomputes that price by `rule`, and those of named groups, and reports every
   contradiction (`check`).
4. Writing and reading back gives an equal statement; a file with an unknown field, an unknown
   version, a number that is not finite or a changed byte in its content is refused.

A statement proves consistency, not authorship: who writes false events gets a consistent false
statement. Which fields are recomputed and which are taken on trust `check.RECOMPUTED` and
`check.ON_TRUST` say; a signature (`signing`) says who stands by the latter.
"""

from __future__ import annotations

import json
import math
import os
import platform
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Protocol

from .. import _checks
from ..core import events as event_tree
from ..core.events import Composed, Event, NoOp, compose, spelled_out
from ..core.promise import Promise
from ..errors import BudgetError, FairveilError, InputError, StatementError
from ..show.numbers import STAMP_WORDS as STAMP_WORDS
from ..show.numbers import at_least, at_most, promised
from ..show.parts import Column, Facts, Part, Shown, Table, aligned
from . import check, rule
from .check import READ_FROM_DATA, Finding
from .groups import Cells, group_epsilons

if TYPE_CHECKING:
    from ..core.cost import Price

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
"""Where something public came from. "argument": the caller said so; "library default": nobody did,
and the library has a value for that; "by definition": a row counts once, for example; "public
features": of these, where sensitive columns alone are protected."""
Noise = Literal["secure", "seeded"]
Arithmetic = Literal["exact", "float32-by-row"]
UserCode = Literal["none", "trusted"]
Stamp = Literal["not-private", "seeded-noise", "data-dependent-bounds", "user-code-trusted"]
ORIGINS: tuple[Origin, ...] = Origin.__args__  # type: ignore[attr-defined]
ARITHMETICS: tuple[Arithmetic, ...] = Arithmetic.__args__  # type: ignore[attr-defined]
BASE_FACT = "base classifier"
"""The fact by which a post-processor's statement says whether its base was there before."""
MOST_NAMED = 64
"""Queries of one answer that are distinguished by name."""
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
REMEDY = "Write statements with write() or to_json()."


class Capping(Protocol):
    """What a `Filter` and `TwoSteps` have in common: the terms that a statement tells."""

    @property
    def promise(self) -> Promise: ...
    @property
    def kind(self) -> str: ...
    @property
    def order(self) -> float | None: ...
    @property
    def reserve(self) -> float: ...


class _Part:
    """A part of a statement: valid as the document's schema says of `place`."""

    place: ClassVar[str]

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]  # every part is a dataclass
            value = getattr(self, one.name)
            if not isinstance(value, str | bool | tuple) and hasattr(value, "item"):
                _checks.normalise(self, **{one.name: value.item()})  # a number of NumPy
        try:
            check.require_part(self.to_dict(), self.place)
        except check.Malformed as error:
            remedy = "Say it as docs/statement_spec.md does."
            raise StatementError.expected(
                error.expected, of=error.of, got=error.got, remedy=remedy
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is None and need not be there is left out."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return {name: _plain(value) for name, value in told.items() if name != "limit" or value}


@dataclass(frozen=True)
class PublicFact(_Part):
    """Something that was taken as public: its name, its value in words, and where it came from."""

    place: ClassVar[str] = "facts"
    name: str
    value: str
    origin: Origin


@dataclass(frozen=True)
class StatedBound(_Part):
    """How far one person moves one released total, and why: `norm` such as "L2", `reason` such as
    "clipped to norm 1"."""

    place: ClassVar[str] = "bounds"
    question: str
    norm: str
    sensitivity: float
    reason: str
    origin: Origin = "argument"


@dataclass(frozen=True)
class Cap(_Part):
    """The filter that capped answers chosen one after another, as it was fixed before the first:
    see `privacy.filters`; or the rule for one release that was chosen after all others:
    `privacy.two_steps`."""

    place: ClassVar[str] = "cap"
    kind: str
    order: float | None
    reserve: float


@dataclass(frozen=True)
class Audit(_Part):
    """What an attack on the finished release showed: epsilon is at least `epsilon`, with this
    confidence."""

    place: ClassVar[str] = "audit"
    epsilon: float
    confidence: float
    attack: str


@dataclass(frozen=True)
class GroupGuarantee(_Part):
    """What the people of one group, a cell of a sensitive column, have at the promise's delta.
    `fixed`, `limit`: see `NamedGroups`."""

    place: ClassVar[str] = "groups"
    name: str
    cell: int
    column: int
    epsilon: float
    fixed: bool
    limit: float | None = None


@dataclass(frozen=True)
class Receipt(_Part):
    """What shows that a ledger holds a release: its data set, the spend's id, the number of the
    line that reserved it, and the line's hash, which a ledger that lost or changed a line no longer
    has (`Ledger.check(receipts=...)`)."""

    place: ClassVar[str] = "ledger"
    dataset: str
    spend: str
    entry: int
    hash: str


@dataclass(frozen=True)
class Release(_Part):
    """One kind of release. `name`: of the query, "" where nobody said; `numbers`: the noise
    multipliers (one, or one a cell), or what else the mechanism is known by; `rows`: which rows it
    read; `times`: how often it was made."""

    place: ClassVar[str] = "releases"
    name: str
    mechanism: str
    numbers: tuple[float, ...]
    rows: str
    times: int

    @property
    def line(self) -> tuple[Any, ...]:
        """Mechanism, numbers, rows and times, as `rule.leaves` has them."""
        return self.mechanism, self.numbers, self.rows, self.times


PARTS: dict[str, type[_Part]] = {
    kind.place: kind
    for kind in (PublicFact, StatedBound, Cap, Audit, GroupGuarantee, Receipt, Release)
}


@dataclass(frozen=True)
class NamedGroups:
    """The groups of one sensitive column, in the order of its cells: whose own guarantees a
    statement is to tell.

    `fixed`: whether the shares of the budget were fixed before data were read; if not, they were
    made once, of answers that were released before any release by these cells, and what is told
    holds after the fact (theory.md#by-group). `limits`: epsilons that these groups were promised
    in advance, whatever the shares would be; None for those that were not.
    """

    names: tuple[str, ...]
    column: int = 0
    fixed: bool = True
    limits: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        given: object = self.names
        names = tuple(given) if isinstance(given, tuple | list) else ()
        limits = tuple(self.limits) or (None,) * len(names)
        if not names or len(set(names)) != len(names):
            remedy = "Name every cell once: NamedGroups(('female', 'male'))."
            raise StatementError.expected(
                "different names, one a cell", of="names", got=self.names, remedy=remedy
            )
        if len(limits) != len(names):
            remedy = "One limit a name, None where there is none."
            raise StatementError.expected(
                f"{len(names)} limits", of="limits", got=len(limits), remedy=remedy
            )
        told = [
            GroupGuarantee(name, at, self.column, 0.0, self.fixed, limit)
            for at, (name, limit) in enumerate(zip(names, limits, strict=True))
        ]
        _checks.normalise(self, names=names, limits=tuple(one.limit for one in told))


@dataclass(frozen=True)
class PrivacyStatement(Shown):
    """Statement of a release: its cost, its guarantee, and what the guarantee does not cover.

    Make one with `PrivacyStatement.of`. Every fit has one as `privacy_`.

    Attributes
    ----------
    promise : Promise
        The (epsilon, delta)-guarantee that was set.
    epsilon : float
        Epsilon that the events cost, at `delta`.
    delta : float
        Delta of that price.
    neighbours : str
        Adjacency relation that `epsilon` was priced for.
    route : str
        How the events were priced.
    events : tuple of Event
        Releases that were made, from the log.
    plan : tuple of Event or None
        Releases that were fixed in advance; None: see `cap`.
    cap : Cap or None
        Filter that admitted the events; None beside a plan, or where nothing is private.
    facts : tuple of PublicFact
        Public facts that the release used, and where they come from.
    bounds : tuple of StatedBound
        Bounds on contributions of a row.
    not_covered : tuple of str
        Sentences about what the guarantee does not cover.
    tuning : str or None
        How parameters were chosen; None: not said.
    earlier_releases : str or None
        Earlier releases from the same rows; None: not said.
    audit : Audit or None
        Result of an audit of the mechanism; None: no audit.
    noise : str
        Source of the noise.
    arithmetic : str
        Arithmetic of sums and noise.
    user_code : str
        Whether code of the caller ran beside rows.
    stamps : tuple of str
        Flags, such as ``not-private``.
    versions : tuple of pairs of str
        Versions of the library and of what it builds on.
    created : str or None
        Date; None: not said.
    groups : tuple of GroupGuarantee
        Guarantees of named groups, where noise differs by group; `epsilon` is everybody's.
    ledger : Receipt or None
        Receipt of the ledger that holds this release.
    releases : tuple of Release
        The events by the names of the queries; empty where there are no names.
    notes : tuple of str
        How the guarantee comes about: nothing here is outside it.

    See Also
    --------
    Ledger : Adds up the releases of many fits.
    """

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
        try:
            check.require_statement(self.to_dict())
        except check.Malformed as error:
            _refuse(error)

    @classmethod
    def of_run(
        cls,
        run: Any,
        *,
        not_covered: Iterable[str] = (),
        tuning: str | None = None,
        earlier_releases: str | None = None,
        groups: Iterable[NamedGroups] = (),
    ) -> PrivacyStatement:
        """State what a curator's run released so far, priced now.

        Parameters
        ----------
        run : Curator
            The run. One at another holder's is stated by that holder.
        not_covered : iterable of str, default=()
            Sentences about what the guarantee does not cover.
        tuning : str, default=None
            How parameters were chosen. None: not said.
        earlier_releases : str, default=None
            Earlier releases from the same rows. None: not said.
        groups : iterable of NamedGroups, default=()
            Groups whose own guarantees are stated, one a column.

        Returns
        -------
        PrivacyStatement
            The statement.
        """
        said: dict[str, Any] = {"not_covered": not_covered, "tuning": tuning, "groups": groups}
        said["earlier_releases"] = earlier_releases
        if hasattr(run, "statement"):
            away: PrivacyStatement = run.statement(**said)
            return away
        told = run.record
        return cls.of(
            told.promise,
            [entry.event for entry in told.entries],
            plan=None if told.plan is None else [told.plan],
            cap=told.room,
            facts=[PublicFact(one.name, one.value, one.origin) for one in told.facts],
            bounds=[
                StatedBound(one.question, one.norm, one.sensitivity, one.reason, one.origin)
                for one in told.bounds
            ],
            noise="secure" if told.is_secure else "seeded",
            user_code="trusted" if told.user_code else "none",
            arithmetic="float32-by-row" if told.by_row else "exact",
            ledger=told.receipt,
            releases=releases_of((entry.questions, entry.event) for entry in told.entries),
            **said,
        )

    @classmethod
    def of(
        cls,
        promise: Promise,
        events: Iterable[Event],
        *,
        plan: Iterable[Event] | None = None,
        cap: Capping | None = None,
        facts: Iterable[PublicFact] = (),
        bounds: Iterable[StatedBound] = (),
        not_covered: Iterable[str] = (),
        tuning: str | None = None,
        earlier_releases: str | None = None,
        audit: Audit | None = None,
        noise: Noise = "secure",
        arithmetic: Arithmetic = "exact",
        user_code: UserCode = "none",
        created: str | None = None,
        groups: Iterable[NamedGroups] = (),
        ledger: Receipt | None = None,
        releases: Iterable[Release] = (),
    ) -> PrivacyStatement:
        """State the cost of these events under this guarantee, priced now.

        Parameters
        ----------
        promise : Promise
            The guarantee.
        events : iterable of Event
            Releases that were made. Runs of equal events are folded, and free ones are dropped.
        plan : iterable of Event, default=None
            Releases that were fixed in advance. None: see `cap`.
        cap : Filter or TwoSteps, default=None
            Filter that admitted the events, where there is no plan. ``TwoSteps(promise)``: only the
            last was chosen after the others were seen. None: the filter that takes every event.
        facts : iterable of PublicFact, default=()
            Public facts that the release used.
        bounds : iterable of StatedBound, default=()
            Bounds on contributions of a row.
        not_covered : iterable of str, default=()
            Sentences about what the guarantee does not cover.
        tuning : str, default=None
            How parameters were chosen. None: not said.
        earlier_releases : str, default=None
            Earlier releases from the same rows. None: not said.
        audit : Audit, default=None
            Result of an audit. None: no audit.
        noise : str, default="secure"
            Source of the noise.
        arithmetic : str, default="exact"
            Arithmetic of sums and noise.
        user_code : str, default="none"
            Whether code of the caller ran beside rows.
        created : str, default=None
            Date. None: not said.
        groups : iterable of NamedGroups, default=()
            Groups whose own guarantees are stated, one a column.
        ledger : Receipt, default=None
            Receipt of the ledger that holds the events. None: there is none.
        releases : iterable of Release, default=()
            The events by the names of the queries.

        Returns
        -------
        PrivacyStatement
            The statement; a `BudgetError` where the filter would not have admitted the events.

        Examples
        --------
        >>> from fairveil.core.events import Gaussian
        >>> statement = PrivacyStatement.of(
        ...     Promise(1.0, 1e-6), [Gaussian(12.0)] * 4, plan=[Gaussian(12.0)] * 4
        ... )
        >>> print(f"{statement.epsilon:.3f} of {statement.promise.epsilon:g}")
        0.686 of 1
        """
        done = _folded(events)
        planned = None if plan is None else _folded(plan)
        if planned is not None and list(spelled_out(compose(done))) == list(
            spelled_out(compose(planned))
        ):
            done = planned  # rounds of several releases are told as the plan tells them
        known_bounds, named = tuple(bounds), tuple(releases)
        capped = _cap_of(done, planned, promise, cap)
        price = _price(done, planned, capped, promise)
        if named and not same_releases(named, done):
            remedy = "Make them of the same answers: releases_of((names, event) for each answer)."
            raise StatementError.expected(
                "the releases of the events", of="releases", got="others", remedy=remedy
            )
        return cls(
            promise=promise,
            epsilon=price.epsilon,
            delta=promise.delta,
            neighbours=promise.neighbours,
            route=price.route,
            events=done,
            plan=planned,
            cap=capped,
            facts=tuple(facts),
            bounds=known_bounds,
            not_covered=tuple(not_covered),
            tuning=tuning,
            earlier_releases=earlier_releases,
            audit=audit,
            noise=noise,
            arithmetic=arithmetic,
            user_code=user_code,
            stamps=required_stamps(price.epsilon, noise, user_code, known_bounds),
            versions=versions_now(with_torch=arithmetic != "exact"),
            created=created,
            groups=_guarantees(groups, done, planned, promise, price.epsilon),
            ledger=ledger,
            releases=named,
        )

    @property
    def is_private(self) -> bool:
        """False when epsilon is inf."""
        return not math.isinf(self.epsilon)

    @property
    def told_releases(self) -> tuple[Release, ...]:
        """`releases`, or the same made of the events alone, without names."""
        return self.releases or releases_of(((), event) for event in self.events)

    def check(self) -> list[Finding]:
        """Find every contradiction in this statement. Epsilon is recomputed from the events.

        Returns
        -------
        list of Finding
            Empty if there is none.
        """
        return [*check.findings(self.to_dict()), *_other_versions(self.versions)]

    def summary(self) -> str:
        """The statement in plain words, item by item after NIST SP 800-226.

        Returns
        -------
        str
            Several lines.
        """
        return "\n".join(_lines(self))

    def __str__(self) -> str:
        return self.summary()

    def parts(self) -> Iterator[Part]:
        """An item after another; the releases as a table."""
        rows = table(self)
        yield Facts.of(pair for pair in items(self) if pair[0] != MECHANISMS or not rows)
        if rows:
            columns = zip(HEADS, zip(*rows, strict=True), strict=True)
            yield Table(
                tuple(Column(head, values) for head, values in columns), MECHANISMS, MOST_RELEASES
            )

    def to_dict(self) -> dict[str, Any]:
        """Describe the statement as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, with the format's name, its version and a checksum.
        """
        written = {
            "format": check.FORMAT,
            "version": check.VERSION,
            "promise": self.promise.to_dict(),
            "accounting": {"neighbours": self.neighbours, "route": self.route},
            "events": event_tree.to_json_dict(Composed(self.events)),
            "plan": None if self.plan is None else event_tree.to_json_dict(Composed(self.plan)),
            "versions": dict(self.versions),
        }
        out: dict[str, Any] = {}
        for name in check.schema()["properties"]:
            if name != "checksum":
                value = written[name] if name in written else _plain(getattr(self, name))
                if value or name not in check.MORE:
                    out[name] = value
        return out | {"checksum": check.checksum(out)}

    def to_json(self) -> str:
        """Write the statement as a JSON document.

        Returns
        -------
        str
            The document; an infinite epsilon is written "inf".
        """
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def write(self, path: str | Path) -> Path:
        """Write `to_json()` to a file: the whole file or nothing.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Path
            The file.
        """
        return write(Path(path), self.to_json())

    @classmethod
    def from_json(cls, text: str) -> PrivacyStatement:
        """Read what `to_json` writes.

        A document that is malformed or was changed is an error. Prices are not recomputed: see
        `check`.

        Parameters
        ----------
        text : str
            The document.

        Returns
        -------
        PrivacyStatement
            The statement.
        """
        doc = read(text)
        if doc["checksum"] != check.checksum(doc):
            raise StatementError.expected(
                "the content that its checksum was made of",
                of="privacy statement",
                got="other content",
                remedy=(
                    "Ask its author for the file again; `fairveil verify FILE` shows what "
                    "no longer fits."
                ),
            )
        return statement_of(doc)


def read(text: str) -> dict[str, Any]:
    """The document in a text; a `StatementError` where it is none."""
    try:
        return check.read(text)
    except check.Malformed as error:
        _refuse(error)


def statement_of(doc: dict[str, Any]) -> PrivacyStatement:
    """The statement of a document that `read` accepts."""
    known = {one.name for one in fields(PrivacyStatement)}
    given = {name: _read_part(name, value) for name, value in doc.items() if name in known}
    versions, accounting = tuple(doc["versions"].items()), doc["accounting"]
    try:
        events, plan = _events(doc["events"]), doc["plan"] and _events(doc["plan"])
        promise = Promise.from_dict(doc["promise"])
        read = {"promise": promise, "events": events, "plan": plan, "versions": versions}
        return PrivacyStatement(**given | accounting | read | {"epsilon": float(doc["epsilon"])})
    except InputError as error:
        if isinstance(error, StatementError):
            raise
        raise StatementError(str(error)) from None


def _read_part(name: str, value: Any) -> Any:
    """A field of a document as a statement has it."""
    if isinstance(value, list):
        return tuple(_read_part(name, one) for one in value)
    if not isinstance(value, dict) or name not in PARTS:
        return value
    inner: dict[str, Any] = {
        n: tuple(one) if isinstance(one, list) else one for n, one in value.items()
    }
    if "epsilon" in inner:
        inner["epsilon"] = float(inner["epsilon"])  # "inf", too
    return PARTS[name](**inner)


def examine(text: str) -> tuple[PrivacyStatement, list[Finding]]:
    """Read a statement's JSON and check it."""
    doc = read(text)
    statement = statement_of(doc)
    return statement, [*check.findings(doc), *_other_versions(statement.versions)]


def write(path: Path, text: str) -> Path:
    """Write beside the target, flush to disk, then rename: readers see the old file or the new
    one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def required_stamps(
    epsilon: float, noise: Noise, user_code: UserCode, bounds: Iterable[StatedBound]
) -> tuple[Stamp, ...]:
    """The `stamps` that a statement with these contents must carry. Facts read from the data are
    listed, not flagged."""
    found = check.stamps(epsilon, noise, user_code, [bound.origin for bound in bounds])
    return found  # type: ignore[return-value]  # of the same words


def versions_now(*, with_torch: bool = False) -> tuple[tuple[str, str], ...]:
    """The versions that a statement names; nothing about the machine. `with_torch`: where it
    computed what rows contribute."""
    names = (*check.NAMED_VERSIONS, "torch") if with_torch else check.NAMED_VERSIONS
    return tuple(
        (name, platform.python_version() if name == "python" else _version(name)) for name in names
    )


def names_read(facts: Iterable[PublicFact], bounds: Iterable[StatedBound]) -> list[str]:
    """What of these was read from the data, and is not covered."""
    named = [
        *((fact.name, fact.origin) for fact in facts),
        *((bound.question, bound.origin) for bound in bounds),
    ]
    return [name for name, origin in named if origin == READ_FROM_DATA]


def releases_of(answers: Iterable[tuple[Sequence[str], Event]]) -> tuple[Release, ...]:
    """The table of these answers, each the queries that it answered and its event; equal lines are
    added up.

    >>> from ..core.events import Composed, Gaussian, Repeated
    >>> joint = Composed((Gaussian(57.0), Gaussian(87.5)))
    >>> for line in releases_of([(("gradient sum", "prediction histogram"), joint)] * 120):
    ...     print(line.name, line.numbers, line.times)
    gradient sum (57.0,) 120
    prediction histogram (87.5,) 120
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    for (names, event), times in Counter((tuple(names), event) for names, event in answers).items():
        for name, (*line, each) in _named([*rule.leaves(check.event(event.to_dict()))], names):
            counts[name, *line] += each * times
    return tuple(
        Release(name, mechanism, numbers, rows, times)
        for (name, mechanism, numbers, rows), times in counts.items()
    )


def same_releases(told: Iterable[Release], events: Iterable[Event]) -> bool:
    """Whether a table, its names left out, is that of these events."""
    done = releases_of(((), event) for event in events)
    return rule.same_releases((one.line for one in told), (one.line for one in done))


def _named(
    lines: list[tuple[Any, ...]], names: Sequence[str]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Names in the order of an answer's events; where they do not fit one to one, all of them stand
    at each line."""
    if len(set(names)) != 1 and sum(line[-1] for line in lines) == len(names) <= MOST_NAMED:
        left = iter(names)
        for *line, times in lines:
            yield from ((next(left), (*line, 1)) for _ in range(times))
    else:
        yield from ((" and ".join(dict.fromkeys(names)), line) for line in lines)


def _price(
    events: tuple[Event, ...], plan: tuple[Event, ...] | None, cap: Cap | None, promise: Promise
) -> Price:
    """What is charged: the whole plan; else what the cap allows, provided that it admits the log
    (theory.md#t10).

    A log that neither a plan nor a filter bounds costs inf: its tight total is no bound on what was
    chosen as it went.
    """
    from ..core.cost import NO_ROUTE, Price, price
    from ..core.filters import Filter

    delta, relation = promise.delta, promise.neighbours
    if plan is not None or not events:
        return price(events if plan is None else plan, delta, relation)
    if cap is None:
        return Price(math.inf, delta, relation, NO_ROUTE)
    if cap.kind != rule.TWO_STEPS:
        Filter.create(promise, cap.kind, order=cap.order, reserve=cap.reserve).add(events)
        return Price(promise.epsilon, delta, relation, f"{cap.kind} filter")
    found = rule.two_steps(_tuple(events), delta, relation)
    if not rule.is_within(found, promise.epsilon):
        raise BudgetError.expected(
            f"at most epsilon={promise.epsilon:g} at delta {delta:g}",
            of="the last release, chosen after the others were looked at",
            got=f"epsilon {found[0]:.6g} together with them",
            remedy="Give it more noise: fairveil.privacy.price_after says what two steps cost.",
        )
    return Price(promise.epsilon, delta, relation, "two steps")


def _cap_of(
    events: tuple[Event, ...],
    plan: tuple[Event, ...] | None,
    promise: Promise,
    given: Capping | None,
) -> Cap | None:
    """The terms of the filter, or of the one that takes every event; none where there is a plan, or
    nothing to cap."""
    from ..core.filters import Filter

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


def _guarantees(
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
        found = _epsilons(groups, events, plan, promise, everybody)
        out += [
            GroupGuarantee(name, cell, groups.column, epsilon, groups.fixed, limit)
            for cell, (name, epsilon, limit) in enumerate(
                zip(groups.names, found, groups.limits, strict=True)
            )
        ]
    return tuple(out)


def _epsilons(
    groups: NamedGroups,
    events: tuple[Event, ...],
    plan: tuple[Event, ...] | None,
    promise: Promise,
    everybody: float,
) -> list[float]:
    """The epsilon of each cell of a column, as `check` computes it."""
    whole = None if plan is None else _tuple(plan)
    said = rule.Said(
        _tuple(events), whole, None, everybody, everybody, promise.delta, promise.neighbours
    )
    found = _of_cells(said, groups.column, len(groups.names), groups.fixed)
    # the last bits of another computation are no weaker guarantee
    near = [abs(own - everybody) <= everybody * rule.SLACK for own in found]
    return [everybody if same else own for same, own in zip(near, found, strict=True)]


def _of_cells(said: rule.Said, column: int, cells: int, fixed: bool) -> tuple[float, ...]:
    try:
        return tuple(one for one, _ in group_epsilons(said, Cells(column, cells), fixed))
    except rule.Unpriced as error:
        remedy = "Name every cell of the releases of this column, in their order."
        raise InputError.expected(str(error), of="groups", got=cells, remedy=remedy) from None


def by_group(
    events: Event | Iterable[Event],
    delta: float,
    neighbours: str,
    cells: int,
    column: int = 0,
    fixed: bool = True,
) -> tuple[float, ...]:
    """The epsilon, at this delta, of the people of each of the `cells` groups of a sensitive column.

    `fixed`: whether the shares were fixed before data were read. If not, `events` must tell this
    column's releases as they were made and all others as they were planned, and the epsilons hold
    after the fact (theory.md#by-group).

    >>> from fairveil.core.events import PerCell
    >>> few = by_group(PerCell(((5.0, 20.0),), (2.0,)), 1e-6, "add-remove", 2)
    >>> [round(epsilon, 3) for epsilon in few]
    [0.834, 0.189]
    """
    whole = _tuple((events,) if isinstance(events, Event) else tuple(events))
    said = rule.Said(whole, whole, None, math.inf, math.inf, delta, neighbours)
    return _of_cells(said, column, cells, fixed)


def is_whole(done: Sequence[Event], plan: Sequence[Event], neighbours: str) -> bool:
    """Whether the log, spelled out, is the plan, spelled out, or finer under this relation, to the
    end of both."""
    return rule.is_prefix(_tuple(done), _tuple(plan), neighbours, whole=True)


def _tuple(events: Sequence[Event]) -> rule.Event:
    return tuple(check.event(Composed(tuple(events)).to_dict()))


def _other_versions(named: Iterable[tuple[str, str]]) -> list[Finding]:
    now = dict(versions_now())
    return [
        Finding(False, f"written with {name} {was}, checked with {now[name]}")
        for name, was in named
        if name in ("fairveil", "scipy") and was != now[name]
    ]


def _events(values: dict[str, Any]) -> tuple[Event, ...]:
    whole = event_tree.from_json_dict(values)
    assert isinstance(whole, Composed)  # the schema says so
    return whole.events


def _folded(events: Iterable[Event]) -> tuple[Event, ...]:
    whole = compose(events)
    if isinstance(whole, NoOp):
        return ()
    return whole.events if isinstance(whole, Composed) else (whole,)


def _plain(value: Any) -> Any:
    if isinstance(value, _Part):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _refuse(error: check.Malformed) -> NoReturn:
    raise StatementError.expected(
        error.expected, of=error.of, got=error.got, remedy=REMEDY, quote=False
    ) from None


@lru_cache(maxsize=16)
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"


# ---- in words: one item for each thing that NIST SP 800-226 asks a reader to be told


MOST_GROUPS = MOST_RELEASES = 20
"""How many groups and kinds of release the words list; the JSON lists all."""
MOST_CELLS = 8
"""Multipliers that a line of the table lists; the JSON lists all."""
HEADS = ("release", "noise multiplier", "sensitivity", "rows", "times")
"""Of the table of releases."""
NOTHING = "-"
NORMS = {
    **dict.fromkeys(("Gaussian", "discrete Gaussian", "Gaussian by cell"), "L2"),
    **dict.fromkeys(("Laplace", "discrete Laplace"), "L1"),
    "exponential": "range",
}
"""The norm in which each mechanism's sensitivity is stated."""
MADE_BY = {
    **{name: f"{name} noise" for name in ("Gaussian", "discrete Gaussian")},
    **{name: f"{name} noise" for name in ("Laplace", "discrete Laplace")},
    "Gaussian by cell": "Gaussian noise by cell",
    "exponential": "a choice by the exponential mechanism",
    "pure": "a mechanism known by its epsilon",
    "approximate": "a mechanism known by its epsilon and delta",
    "zero-concentrated": "a mechanism known by its rho",
    "sampler error": "samplers that are not exact",
    "exact": "something protected, exactly",
}
"""Every mechanism, in words."""
PARAMETERS = {
    "exponential": ("epsilon",),
    "pure": ("epsilon",),
    "approximate": ("epsilon", "delta"),
    "zero-concentrated": ("rho",),
    "sampler error": ("total variation at most",),
}
WEAKER = (
    "A larger share of the budget, hence a larger epsilon, is a weaker guarantee for that group."
)
NOT_STATED = "Not stated. If this model was picked from several fits, that choice is not covered."
NOTHING_SAID = "nothing was said: what was released before adds to this cost and is not counted."
MECHANISMS = "Mechanisms"
NEIGHBOURS = {
    ("sensitive", False): "they differ in the sensitive columns of one row (replace-one).",
    ("sensitive", True): "they differ in the sensitive columns of the rows of one person "
    "(replace-one).",
    ("add-remove", False): "one is the other with one row added or removed (add-remove); how many "
    "rows there are is private.",
    ("add-remove", True): "one is the other with all rows of one person added or removed "
    "(add-remove); how many persons and rows there are is private.",
    ("replace-one", False): "they differ in one row (replace-one); how many rows there are is "
    "public.",
    ("replace-one", True): "they differ in one person, whose rows another person's replace "
    "(replace-one); how many persons there are is public, and how many rows is private.",
}
"""When two tables are neighbours, by relation and whether persons are protected."""
DROPPED = (
    "Rows beyond that number were dropped by coins, which depend on no row and on no other person."
)
NOISE_WORDS = {
    "secure": "a cryptographic generator (ChaCha20) keyed by the operating system.",
    "seeded": "INSECURE: a generator seeded by the caller; whoever knows or guesses the seed can take "
    "the noise away. For tests only.",
}
ARITHMETIC_WORDS = {
    "exact": "contributions are put on a grid and added exactly, noise is drawn on the same grid; no "
    "rounding can leak.",
    "float32-by-row": "contributions are put on a grid, bounded there and added exactly, noise is "
    "drawn on the same grid. What a network makes of one row is float32 arithmetic of torch. Rows "
    "went through it one by one, or in chunks of fixed shapes, tried on made-up rows: there no bit of "
    "a row hung on its place or on the rows beside it. If some bit hung on them all the same, each "
    "such row could move a sum by two clips: that is not covered.",
}
CURATOR = (
    "a central curator holds the rows, is trusted, and gives out nothing but what is listed here."
)
USER_CODE_WORDS = {
    "none": "No code of the caller ran beside the rows.",
    "trusted": "The caller's own code ran beside the rows and was trusted too: it could have leaked.",
}


def items(statement: PrivacyStatement) -> tuple[tuple[str, str], ...]:
    """(heading, words) for every item, always the same headings in the same order."""
    return (
        ("Definition and parameters", _definition(statement)),
        ("Groups", _groups_told(statement)),
        ("Neighbours", _neighbours(statement.promise)),
        ("What is protected", _protected(statement.promise)),
        ("Unit", _unit(statement.promise)),
        ("Trust model", f"{CURATOR} {USER_CODE_WORDS[statement.user_code]}"),
        (MECHANISMS, "; ".join(table_lines(statement)) or "nothing that is protected was read."),
        ("Bounds", _join(_bounds(statement))),
        ("Composition", _composition(statement)),
        ("Sampling", _sampling(statement)),
        ("Tuning", _said(statement.tuning) or NOT_STATED),
        ("Earlier releases", _earlier(statement)),
        ("Noise source", NOISE_WORDS[statement.noise]),
        ("Floating point", ARITHMETIC_WORDS[statement.arithmetic]),
        ("Versions", ", ".join(f"{name} {version}" for name, version in statement.versions) + "."),
        ("Taken as public", _join(_facts(statement))),
        ("Not covered", _join(_not_covered(statement))),
        ("Notes", _join(sentence.rstrip(".") for sentence in statement.notes or ("none",))),
        ("Audit", _audit(statement)),
    )


def _lines(statement: PrivacyStatement) -> Iterator[str]:
    """All items, the releases as a table."""
    for heading, words in items(statement):
        if heading == MECHANISMS and statement.told_releases:
            yield f"{heading}:"
            yield from (f"  {line}" for line in table_lines(statement))
        else:
            yield f"{heading}: {words}"


def table(statement: PrivacyStatement) -> tuple[tuple[str, ...], ...]:
    """A row of texts for each kind of release, under `HEADS`; none where nothing was read."""
    bounds = {(bound.question, bound.norm): bound.sensitivity for bound in statement.bounds}
    return tuple(
        (_release(one), _numbers(one), _sensitivity(one, bounds), one.rows, f"{one.times:,}")
        for one in statement.told_releases
    )


def table_lines(statement: PrivacyStatement) -> Iterator[str]:
    """The table as lines of one width a column."""
    told = table(statement)
    yield from aligned([HEADS, *told[:MOST_RELEASES]]) if told else ()
    if len(told) > MOST_RELEASES:
        yield f"and {len(told) - MOST_RELEASES} more, listed in the JSON"


def _release(one: Release) -> str:
    return f"{one.name} ({MADE_BY[one.mechanism]})" if one.name else MADE_BY[one.mechanism]


def _numbers(one: Release) -> str:
    """Noise multipliers as numbers; what another mechanism is known by in words."""
    if not one.numbers:
        return NOTHING
    if one.mechanism in PARAMETERS:
        named = zip(PARAMETERS[one.mechanism], one.numbers, strict=False)
        return ", ".join(f"{name} {at_most(value)}" for name, value in named)
    shown = ", ".join(f"{number:.4g}" for number in one.numbers[:MOST_CELLS])
    return shown if len(one.numbers) <= MOST_CELLS else f"{shown}, ..."


def _sensitivity(one: Release, bounds: dict[tuple[str, str], float]) -> str:
    norm = NORMS.get(one.mechanism)
    if norm is None:
        return NOTHING
    known = bounds.get((one.name, norm))
    return norm if known is None else f"{norm} {known:g}"


def _definition(statement: PrivacyStatement) -> str:
    stamps = "".join(f"{STAMP_WORDS[stamp]}. " for stamp in statement.stamps)
    if not statement.is_private:
        return f"{stamps}Epsilon is infinite: nobody has a guarantee."
    budget, at = statement.promise.epsilon, f"{statement.delta:g}"
    spent = at_most(statement.epsilon, budget)
    limit = "no budget was set" if math.isinf(budget) else f"the budget was {promised(budget)}"
    return (
        f"{stamps}({spent}, {at})-differential privacy: epsilon = {spent} at delta = {at} was "
        f"spent, {limit}."
    )


def _groups_told(statement: PrivacyStatement) -> str:
    groups = statement.groups
    if not groups:
        return (
            "noise differs by cell, and no group was named: the guarantee above is everybody's."
            if _has(statement, "per-cell")
            else "everybody has the same guarantee."
        )
    told = [f"{group.name}: {_own(group, statement)}" for group in groups[:MOST_GROUPS]]
    if len(groups) > MOST_GROUPS:
        told.append(f"and {len(groups) - MOST_GROUPS} more, listed in the JSON")
    when = []
    if any(group.fixed for group in groups):
        when.append("Shares of the budget were fixed in advance.")
    if not all(group.fixed for group in groups):
        when.append(
            "An epsilon after the fact holds for this outcome: shares of the budget depend on "
            "earlier released answers. The guarantee above was fixed in advance for everybody. It "
            "and the group's own hold at this delta each. The smaller of the two holds at twice "
            "this delta."
        )
    whose = (
        f"Each is at delta = {statement.delta:g}, of people who are in that group in one of two "
        f"neighbouring tables"
    )
    return f"{'; '.join(told)}. {whose}. {' '.join(when)} {WEAKER}"


def _own(group: GroupGuarantee, statement: PrivacyStatement) -> str:
    """A limit that was fixed in advance comes first; a larger number beside it would say
    nothing."""
    if math.isinf(group.epsilon):
        words = "no guarantee of its own"
    elif group.epsilon > statement.epsilon:
        words = "no better than the guarantee above"
    else:
        words = f"epsilon = {at_most(group.epsilon, group.limit, statement.promise.epsilon)}"
        words += "" if group.fixed else " after the fact"
    if group.limit is None:
        return words
    limited = f"at most {promised(group.limit)}, a limit fixed in advance"
    told = group.epsilon <= min(group.limit, statement.epsilon)
    return f"{limited} ({words})" if told else limited


def _has(statement: PrivacyStatement, *kinds: str) -> bool:
    """Whether an event of one of these kinds was made or planned."""

    def holds(value: object) -> bool:
        if isinstance(value, dict):
            return value.get("kind") in kinds or any(map(holds, value.values()))
        return isinstance(value, list) and any(map(holds, value))

    told: Iterable[Event] = (*statement.events, *(statement.plan or ()))
    return any(holds(event_tree.to_json_dict(event)) for event in told)


def _neighbours(promise: Promise) -> str:
    alone = promise.protects == "sensitive_features"
    kind = "sensitive" if alone else promise.neighbours
    return f"two tables are neighbours when {NEIGHBOURS[kind, promise.unit is not None]}"


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
        told += f" {DROPPED}"
    return told


def _bounds(statement: PrivacyStatement) -> Iterator[str]:
    for bound in statement.bounds:
        read = "read from the data, which is NOT covered"
        source = read if bound.origin == READ_FROM_DATA else f"from: {bound.origin}"
        yield (
            f"{bound.question}: {bound.norm} sensitivity {bound.sensitivity:g}, {bound.reason} "
            f"({source})"
        )
    if not statement.bounds:
        yield "none are listed; noise is stated as a multiple of each sensitivity"


def _composition(statement: PrivacyStatement) -> str:
    cap, plan = statement.cap, statement.plan
    if cap is not None and cap.kind == rule.TWO_STEPS:
        how = (
            "all releases but the last were fixed in advance; the last was chosen afterwards, and "
            "may depend on their values. The stated epsilon is what this allows under a guarantee "
            "that was fixed before them"
        )
    elif cap is not None:
        how = (
            f"releases were chosen one after another, within a {cap.kind} filter that was fixed in "
            "advance; the stated epsilon is what it allows"
        )
    elif plan is None:
        how = "nothing had to be capped"
    elif plan == statement.events:
        how = "the releases were fixed in advance, and all of them were made"
    elif is_whole(statement.events, plan, statement.promise.neighbours):
        how = (
            "bounds on all releases were fixed in advance, and all of them were made, some by "
            "cell; nobody had less noise than planned"
        )
    else:
        how = "the releases were fixed in advance; the run was interrupted and is charged whole"
    return f"{how}; epsilon was computed by: {statement.route}, under {statement.neighbours}."


def _sampling(statement: PrivacyStatement) -> str:
    whose = "row" if statement.promise.unit is None else "person"
    fixed = (
        f"some releases read one of a number of fixed parts of the rows, cut by a {whose}'s place "
        f"alone; a person is in one part of each partition, and who is present is public."
    )
    in_parts = _has(statement, "on-part")
    if statement.route == "nothing read":
        return "what is protected was not read, so that nothing depends on which rows were."
    if not _has(statement, "poisson-sampled", "visibly-sampled"):
        all_rows = "every release read all rows; no random batch, hence no assumption about one."
        return f"{fixed} No random batch was drawn." if in_parts else all_rows
    return (f"{fixed} Elsewhere " if in_parts else "") + (
        f"the library's own sampler put every {whose} in each batch independently with the stated "
        f"probability (Poisson), as the computation assumes; the sizes of batches are not given "
        f"out."
    )


def _earlier(statement: PrivacyStatement) -> str:
    said, receipt = _said(statement.earlier_releases), statement.ledger
    if receipt is None:
        return said or NOTHING_SAID
    recorded = (
        f"he ledger of data set {receipt.dataset!r} holds this release as line {receipt.entry} "
        f"(spend {receipt.spend}, hash {receipt.hash}), with all others recorded there; what was "
        f"released and not recorded there is not counted."
    )
    return f"t{recorded}" if said is None else f"{said} T{recorded}"


def _facts(statement: PrivacyStatement) -> Iterator[str]:
    for fact in statement.facts:
        # whether it was passed all the same, nobody can see
        origin = "the library's default value" if fact.origin == "library default" else fact.origin
        yield f"{fact.name} = {fact.value} ({origin})"
    if not statement.facts:
        yield "nothing but what this statement itself says"


def _not_covered(statement: PrivacyStatement) -> Iterator[str]:
    yield from (sentence.rstrip(".") for sentence in statement.not_covered)
    for fact in statement.facts:
        if fact.origin == READ_FROM_DATA:
            yield f"{fact.name} was read from the data"
    for bound in statement.bounds:
        if bound.origin == READ_FROM_DATA:
            yield f"the bound of {bound.question} was read from the data"
    yield "whatever was done with the data outside this library"


def _audit(statement: PrivacyStatement) -> str:
    audit = statement.audit
    if audit is None:
        return "none was made."
    return (
        f"{audit.attack} shows that epsilon is at least {at_least(audit.epsilon)}, at confidence "
        f"{audit.confidence:g}."
    )


def _said(sentence: str | None) -> str | None:
    return None if sentence is None else sentence.rstrip(".") + "."


def _join(sentences: Iterable[str]) -> str:
    return "; ".join(sentences) + "."
