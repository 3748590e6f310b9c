"""The privacy statement: what is published beside a result, so that a stranger can see and
recompute what it cost. This writes one; `words` puts it into sentences, `check` looks for what
contradicts, and neither is loaded by a fit.

Guarantees (tests/statement/test_document.py).

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
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

from .. import _checks
from .._reading import write_files
from ..core import events as event_tree
from ..core.errors import need
from ..core.events import Composed, Event, NoOp, compose, spelled_out
from ..core.promise import Promise
from ..errors import BudgetError, InputError, StatementError
from ..show.parts import Part, Shown
from . import form
from .form import READ_FROM_DATA, Finding
from .form import UNPRICED as UNPRICED

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
ARITHMETICS: tuple[Arithmetic, ...] = Arithmetic.__args__  # type: ignore[attr-defined]
BASE_FACT = "base classifier"
"""The fact by which a post-processor's statement says whether its base was there before."""
MOST_NAMED = 64
"""Queries of one answer that are distinguished by name."""


PARTS: dict[str, type[_Part]] = {}
"""What each field of parts holds."""


class _Part:
    """A part of a statement: valid as the document's schema says of `place`."""

    place: ClassVar[str]

    def __init_subclass__(cls, place: str) -> None:
        cls.place, PARTS[place] = place, cls

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]  # every part is a dataclass
            value = getattr(self, one.name)
            if not isinstance(value, str | bool | tuple) and hasattr(value, "item"):
                _checks.normalise(self, **{one.name: value.item()})  # a number of NumPy
        try:
            form.require_part(self.to_dict(), self.place)
        except form.Malformed as error:
            _refuse(error, "Say it as docs/statement_spec.md does.")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is None and need not be there is left out."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return {name: _plain(value) for name, value in told.items() if name != "limit" or value}


@dataclass(frozen=True)
class PublicFact(_Part, place="facts"):
    """Something that was taken as public: its name, its value in words, and where it came from."""

    name: str
    value: str
    origin: Origin


@dataclass(frozen=True)
class StatedBound(_Part, place="bounds"):
    """How far one person moves one released total, and why: `norm` such as "L2", `reason` such as
    "clipped to norm 1"."""

    question: str
    norm: str
    sensitivity: float
    reason: str
    origin: Origin = "argument"


@dataclass(frozen=True)
class Cap(_Part, place="cap"):
    """The filter that capped answers chosen one after another, as it was fixed before the first:
    see `privacy.filters`; or the rule for one release that was chosen after all others:
    `privacy.two_steps`."""

    kind: str
    order: float | None
    reserve: float


@dataclass(frozen=True)
class Audit(_Part, place="audit"):
    """What an attack on the finished release showed: epsilon is at least `epsilon`, with this
    confidence."""

    epsilon: float
    confidence: float
    attack: str


@dataclass(frozen=True)
class GroupGuarantee(_Part, place="groups"):
    """What the people of one group, a cell of a sensitive column, have at the promise's delta.
    `fixed`, `limit`: see `NamedGroups`."""

    name: str
    cell: int
    column: int
    epsilon: float
    fixed: bool
    limit: float | None = None


@dataclass(frozen=True)
class Receipt(_Part, place="ledger"):
    """What shows that a ledger holds a release: its data set, the spend's id, the number of the
    line that reserved it, and the line's hash, which a ledger that lost or changed a line no longer
    has (`Ledger.check(receipts=...)`)."""

    dataset: str
    spend: str
    entry: int
    hash: str


@dataclass(frozen=True)
class Release(_Part, place="releases"):
    """One kind of release. `name`: of the query, "" where nobody said; `numbers`: the noise
    multipliers (one, or one a cell), or what else the mechanism is known by; `rows`: which rows it
    read; `times`: how often it was made."""

    name: str
    mechanism: str
    numbers: tuple[float, ...]
    rows: str
    times: int


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
        each, fix = names and len(set(names)) == len(names), "NamedGroups(('female', 'male'))."
        words, error = "different names, one a cell", StatementError
        need(each, words, of="names", got=given, fix=f"Name every cell once: {fix}", error=error)
        fits, got, fix = len(limits) == len(names), len(limits), "None where there is none."
        need(fits, f"{len(names)} limits", of="limits", got=got, fix=fix, error=error)
        told = [
            GroupGuarantee(name, at, self.column, 0.0, self.fixed, limit)
            for at, (name, limit) in enumerate(zip(names, limits, strict=True))
        ]
        _checks.normalise(self, names=names, limits=tuple(one.limit for one in told))


@dataclass(frozen=True)
class PrivacyStatement(Shown):
    """Statement of a release: its cost, its guarantee, and what the guarantee does not cover.

    Make one with `PrivacyStatement.of`. Every fit has one as `privacy_`. Its attributes are the
    fields of the document, in the words of its JSON Schema.

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
    stamps: tuple[Stamp, ...]
    versions: tuple[tuple[str, str], ...]
    facts: tuple[PublicFact, ...] = ()
    bounds: tuple[StatedBound, ...] = ()
    not_covered: tuple[str, ...] = ()
    tuning: str | None = None
    earlier_releases: str | None = None
    audit: Audit | None = None
    noise: Noise = "secure"
    arithmetic: Arithmetic = "exact"
    user_code: UserCode = "none"
    created: str | None = None
    groups: tuple[GroupGuarantee, ...] = ()
    ledger: Receipt | None = None
    releases: tuple[Release, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            form.require_statement(self.to_dict())
        except form.Malformed as error:
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
            facts=[one if isinstance(one, PublicFact) else PublicFact(*one) for one in told.facts],
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
        cap: Any = None,
        groups: Iterable[NamedGroups] = (),
        **said: Any,
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
        groups : iterable of NamedGroups, default=()
            Groups whose own guarantees are stated, one a column.
        **said
            What does not follow from these: `facts`, `bounds`, `not_covered`, `tuning`,
            `earlier_releases`, `audit`, `noise`, `arithmetic`, `user_code`, `created`, `ledger`,
            `releases` and `notes`, as among the attributes.

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
        done, planned = _folded(events), None if plan is None else _folded(plan)
        if planned is not None and list(spelled_out(compose(done))) == list(
            spelled_out(compose(planned))
        ):
            done = planned  # rounds of several releases are told as the plan tells them
        listed = ("facts", "bounds", "not_covered", "releases", "notes")
        said |= {name: tuple(said[name]) for name in listed if name in said}
        capped = _cap_of(done, planned, promise, cap)
        price = _price(done, planned, capped, promise)
        same = not said.get("releases") or same_releases(said["releases"], done)
        words, fix = "the releases of the events", "Make them by releases_of, of the same answers."
        need(same, words, of="releases", got="others", fix=fix, error=StatementError)
        origins = [bound.origin for bound in said.get("bounds", ())]
        flags: Any = form.stamps(
            price.epsilon, said.get("noise", "secure"), said.get("user_code", "none"), origins
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
            stamps=flags,
            versions=versions_now(with_torch=said.get("arithmetic", "exact") != "exact"),
            groups=_guarantees(groups, done, planned, promise, price.epsilon),
            **said,
        )

    @property
    def is_private(self) -> bool:
        """False when epsilon is inf."""
        return not math.isinf(self.epsilon)

    @property
    def ran_to_its_end(self) -> bool:
        """Whether the log is the whole plan."""
        plan, neighbours = self.plan, self.promise.neighbours
        return plan is not None and is_whole(self.events, plan, neighbours)

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
        return _found(self.to_dict())

    def summary(self) -> str:
        """The statement in plain words, item by item after NIST SP 800-226.

        Returns
        -------
        str
            Several lines.
        """
        from . import words

        return "\n".join(words.lines(self))

    def __str__(self) -> str:
        return self.summary()

    def parts(self) -> Iterator[Part]:
        """An item after another; the releases as a table."""
        from . import words

        return words.parts(self)

    def to_dict(self) -> dict[str, Any]:
        """Describe the statement as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, with the format's name, its version and a checksum.
        """
        written = {
            "format": form.FORMAT,
            "version": form.VERSION,
            "promise": self.promise.to_dict(),
            "accounting": {"neighbours": self.neighbours, "route": self.route},
            "events": event_tree.to_json_dict(Composed(self.events)),
            "plan": None if self.plan is None else event_tree.to_json_dict(Composed(self.plan)),
            "versions": dict(self.versions),
        }
        out: dict[str, Any] = {}
        for name in form.schema()["properties"]:
            if name != "checksum":
                value = written[name] if name in written else _plain(getattr(self, name))
                if value or name not in form.MORE:
                    out[name] = value
        return out | {"checksum": form.checksum(out)}

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
        words, got = "the content that its checksum was made of", "other content"
        fix = "Ask its author for the file again; `fairveil verify FILE` shows what no longer fits."
        same, of = doc["checksum"] == form.checksum(doc), "privacy statement"
        need(same, words, of=of, got=got, fix=fix, error=StatementError)
        return statement_of(doc)


def _described(doc: str | None) -> str:
    """The docstring, and what each field holds as the schema says it."""
    told = form.schema()["properties"]
    told = {**dict.fromkeys(("neighbours", "route"), told["accounting"]), **told}
    held = [(one.name, one.type, told[one.name]["description"]) for one in fields(PrivacyStatement)]
    said = [f"{name} : {kind}\n    {words[0].upper()}{words[1:]}." for name, kind, words in held]
    own, see, rest = cleandoc(doc or "").partition("See Also\n")
    return "\n".join([f"{own}Attributes\n----------", *said, f"\n{see}{rest}"])


PrivacyStatement.__doc__ = _described(PrivacyStatement.__doc__)


def read(text: str) -> dict[str, Any]:
    """The document in a text; a `StatementError` where it is none."""
    try:
        return form.read(text)
    except form.Malformed as error:
        _refuse(error)


def statement_of(doc: dict[str, Any]) -> PrivacyStatement:
    """The statement of a document that `read` accepts."""
    known = {one.name for one in fields(PrivacyStatement)}.intersection(doc)
    given = {name: _read_part(name, doc[name]) for name in known}
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
    return statement_of(doc), _found(doc)


def _found(doc: dict[str, Any]) -> list[Finding]:
    """What contradicts in a document, and which versions are others than these."""
    from . import check

    now, named = dict(versions_now()), doc["versions"]
    return check.findings(doc) + [
        Finding(False, f"written with {name} {named[name]}, checked with {now[name]}")
        for name in ("fairveil", "scipy")
        if named.get(name, now[name]) != now[name]
    ]


def write(path: Path, text: str) -> Path:
    """Write the file, whole or not at all."""
    write_files({path: text})
    return path


def versions_now(*, with_torch: bool = False) -> tuple[tuple[str, str], ...]:
    """The versions that a statement names; nothing about the machine. `with_torch`: where it
    computed what rows contribute."""
    names = (*form.NAMED_VERSIONS, "torch") if with_torch else form.NAMED_VERSIONS
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
        for name, (*line, each) in _named([*form.leaves(form.event(event.to_dict()))], names):
            counts[name, *line] += each * times
    return tuple(
        Release(name, mechanism, numbers, rows, times)
        for (name, mechanism, numbers, rows), times in counts.items()
    )


def same_releases(told: Iterable[Release], events: Iterable[Event]) -> bool:
    """Whether a table, its names left out, is that of these events."""
    done = releases_of(((), event) for event in events)
    return _tally(told) == _tally(done)


def _tally(table: Iterable[Release]) -> Counter[Any]:
    out: Counter[Any] = Counter()
    for one in table:
        out[one.mechanism, one.numbers, one.rows] += one.times
    return out


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
    from ..core.cost import NO_ROUTE, Filter, Price, price

    delta, relation = promise.delta, promise.neighbours
    if plan is not None or not events:
        return price(events if plan is None else plan, delta, relation)
    if cap is None:
        return Price(math.inf, delta, relation, NO_ROUTE)
    if cap.kind != "two-step":
        Filter.create(promise, cap.kind, order=cap.order, reserve=cap.reserve).add(events)
        return Price(promise.epsilon, delta, relation, f"{cap.kind} filter")
    from . import rule

    found = rule.two_steps(_tuple(events), delta, relation)
    within, words = rule.is_within(found, promise.epsilon), f"at most epsilon={promise.epsilon:g}"
    of = "the last release, chosen after the others were looked at"
    got = f"epsilon {found[0]:.6g} together with them, at delta {delta:g}"
    fix = "Give it more noise: fairveil.privacy.price_after says what two steps cost."
    need(within, words, of=of, got=got, fix=fix, error=BudgetError)
    return Price(promise.epsilon, delta, relation, "two steps")


def _cap_of(
    events: tuple[Event, ...],
    plan: tuple[Event, ...] | None,
    promise: Promise,
    given: Any,
) -> Cap | None:
    """The terms of the filter, or of the one that takes every event; none where there is a plan, or
    nothing to cap."""
    from ..core.cost import Filter

    own, words = given is None or given.promise == promise, f"a filter for {promise}"
    fix = "Make the filter of the statement's own guarantee: Filter.create(promise)."
    need(own, words, of="cap", got=getattr(given, "promise", None) and str(given.promise), fix=fix)
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
    """What the people of each named group have, as `check` computes it."""
    out: dict[int, list[GroupGuarantee]] = {}
    for groups in named:
        from .groups import Cells, group_epsilons
        from .rule import SLACK, Said, Unpriced

        column, size = groups.column, len(groups.names)
        words, fix = "one NamedGroups a column", "Name each column's groups once."
        need(column not in out, words, of="groups", got=column, fix=fix)
        whole, delta = None if plan is None else _tuple(plan), promise.delta
        said = Said(_tuple(events), whole, None, everybody, everybody, delta, promise.neighbours)
        try:
            found = group_epsilons(said, Cells(column, size), groups.fixed)
        except Unpriced as error:
            remedy = "Name every cell of the releases of this column, in their order."
            raise InputError.expected(str(error), of="groups", got=size, remedy=remedy) from None
        # the last bits of another computation are no weaker guarantee
        pays = [e if abs(e - everybody) > everybody * SLACK else everybody for e, _ in found]
        out[column] = [
            GroupGuarantee(name, cell, column, epsilon, groups.fixed, limit)
            for cell, (name, epsilon, limit) in enumerate(
                zip(groups.names, pays, groups.limits, strict=True)
            )
        ]
    return tuple(one for groups in out.values() for one in groups)


def is_whole(done: Sequence[Event], plan: Sequence[Event], neighbours: str) -> bool:
    """Whether the log, spelled out, is the plan, spelled out, or finer under this relation, to the
    end of both."""
    from .rule import is_prefix

    return is_prefix(_tuple(done), _tuple(plan), neighbours, whole=True)


def _tuple(events: Sequence[Event]) -> form.Event:
    return tuple(form.event(Composed(tuple(events)).to_dict()))


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


def _refuse(
    error: form.Malformed, fix: str = "Write statements with write() or to_json()."
) -> NoReturn:
    told = {"of": error.of, "got": error.got, "remedy": fix}
    raise StatementError.expected(error.expected, **told, quote=False) from None


@lru_cache(maxsize=16)
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
