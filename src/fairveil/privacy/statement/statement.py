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
3. `check()` recomputes that price, and those of named groups, and reports every contradiction; a
   stated epsilon below the recomputed one is one. Its `stamps` must be those that epsilon, noise, bounds
   and user code make; a field changed together with its flag is no contradiction.
4. Writing and reading back gives an equal statement; a file with an unknown field, an unknown
   version, a number that is not finite or a changed byte in its content is refused.

A statement proves consistency, not authorship: who writes false events gets a consistent false
statement. Which fields are recomputed and which are taken on trust `checks.RECOMPUTED` and
`ON_TRUST` say; a signature (`signatures`) says who stands by the latter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.events import Composed, Event, NoOp, compose, spelled_out
from ...core.promise import Promise
from ...errors import StatementError
from ...show.parts import Column, Facts, Part, Shown, Table
from .contents import StatementContents
from .parts import Arithmetic, Audit, NamedGroups, Noise, PublicFact, Receipt, StatedBound, UserCode
from .releases import Release, same_releases

if TYPE_CHECKING:
    from ...core.filters import Filter
    from ..accounting.two_steps import TwoSteps
    from .checks import Finding


class PrivacyStatement(StatementContents, Shown):
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

    @classmethod
    def of(
        cls,
        promise: Promise,
        events: Iterable[Event],
        *,
        plan: Iterable[Event] | None = None,
        cap: Filter | TwoSteps | None = None,
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
        from .checks import required_stamps, versions_now
        from .pricing import cap_of, guarantees, reprice

        done = _folded(events)
        planned = None if plan is None else _folded(plan)
        if planned is not None and list(spelled_out(compose(done))) == list(
            spelled_out(compose(planned))
        ):
            done = planned  # rounds of several releases are told as the plan tells them
        known_facts, known_bounds = tuple(facts), tuple(bounds)
        capped = cap_of(done, planned, promise, cap)
        price = reprice(done, planned, capped, promise)
        named = tuple(releases)
        if named and not same_releases(named, done):
            remedy = "Make them of the same answers: releases_of((names, event) for each answer)."
            raise StatementError.expected(
                "the releases of the events", of="releases", got="others", remedy=remedy
            )
        stamps = required_stamps(price.epsilon, noise, user_code, known_bounds)
        return cls(
            promise=promise,
            epsilon=price.epsilon,
            delta=promise.delta,
            neighbours=promise.neighbours,
            route=price.route,
            events=done,
            plan=planned,
            cap=capped,
            facts=known_facts,
            bounds=known_bounds,
            not_covered=tuple(not_covered),
            tuning=tuning,
            earlier_releases=earlier_releases,
            audit=audit,
            noise=noise,
            arithmetic=arithmetic,
            user_code=user_code,
            stamps=stamps,
            versions=versions_now(with_torch=arithmetic != "exact"),
            created=created,
            groups=guarantees(groups, done, planned, promise, price.epsilon),
            ledger=ledger,
            releases=named,
        )

    def check(self) -> list[Finding]:
        """Find every contradiction in this statement. Epsilon is recomputed from the events.

        Returns
        -------
        list of Finding
            Empty if there is none.
        """
        from .checks import findings

        return findings(self)

    def summary(self) -> str:
        """The statement in plain words, item by item after NIST SP 800-226.

        Returns
        -------
        str
            Several lines.
        """
        from .mechanism_words import table_lines
        from .words import MECHANISMS, items

        lines = []
        for heading, words in items(self):
            if heading == MECHANISMS and self.told_releases:
                lines += [f"{heading}:", *(f"  {line}" for line in table_lines(self))]
            else:
                lines.append(f"{heading}: {words}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def parts(self) -> Iterator[Part]:
        """An item after another; the releases as a table."""
        from .mechanism_words import HEADS, MOST_RELEASES, table
        from .words import MECHANISMS, items

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
        from .documents import to_dict

        return to_dict(self)

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
        from .documents import write

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
        from .documents import read

        statement, untouched = read(text, cls)
        if not untouched:
            raise StatementError.expected(
                "the content that its checksum was made of",
                of="privacy statement",
                got="other content",
                remedy=(
                    "Ask its author for the file again; `fairveil verify FILE` shows what "
                    "no longer fits."
                ),
            )
        return statement


def _folded(events: Iterable[Event]) -> tuple[Event, ...]:
    whole = compose(events)
    if isinstance(whole, NoOp):
        return ()
    return whole.events if isinstance(whole, Composed) else (whole,)


def examine(text: str) -> tuple[PrivacyStatement, list[Finding]]:
    """Read a statement's JSON and check it; content that its checksum was not made of is one more
    grave finding."""
    from .checks import Finding, findings
    from .documents import read

    statement, untouched = read(text, PrivacyStatement)
    changed = (
        []
        if untouched
        else [Finding(True, "the content is not what the checksum was made of: it was changed")]
    )
    return statement, changed + findings(statement)
