"""A model's decisions watched period by period, and the file that keeps what was released: does it
still hold?

Each period counts its own people once, with the whole budget. A person is in one period, so all
periods together cost what one costs (theory.md#monitor-cost). What the counts say is gathered by
bets (`methods/certificate.py`): one may look after each period, for as long as one likes, and stop
or go on. People who come back would spend the budget again, and repeat the luck of earlier periods:
who watches these certifies each period by itself.

Guarantees (tests/estimators/test_estimators_monitor.py):
1. The stream of all periods keeps the promise under add-remove, for people who are in one period.
2. If the constraints hold in every period, an alarm is raised with probability at most
   `false_alarm` over the whole run.
3. The bounds on all constraints of all periods hold together with confidence 1 - `false_alarm`,
   however many constraints there are.
4. A process that is killed leaves the file as it was, or with the new period, and nothing between.
   While one process writes, another is refused; a lock dies with its process. A file in which
   anything was changed is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._codec import Kind
from ..._json import MALFORMED, Node
from ..._reading import read_text
from ..._types import ColumnsLike, TableLike
from ...core.errors import need
from ...core.promise import Promise
from ...errors import FairveilError, InputError, PrivacyError
from ...facts import Cells
from ...fairness import Notion
from ...ledger import current, given_ledger
from ...methods.certificate import (
    Bet,
    Layout,
    NotionBound,
    certified,
    e_value,
    layout_of,
    p_value,
)
from ...methods.counts import CountPlan, plan_counts
from ...models.model import known_classes
from ...show.parts import Column, Facts, Part, Shown, Table
from ...statement.document import PrivacyStatement, write
from ...tables import keys
from .. import fitting, wrapped
from ..counted import CODEC, CountsFile, checksum, count, notions_of, required_promise
from ..words import COUNTED, told

FILE = CountsFile("monitor", 4, (), ())
FIELDS = ("format", "version", "watched", "checksum")
LARGEST = 1 << 28
IN_PARALLEL = (
    "a monitor's periods: each person was taken to be in one period alone, so that all of them "
    "together cost what one costs"
)


@dataclass(frozen=True)
class Watched:
    """What the file keeps: all that was fixed in advance, and the name and released counts of each
    period."""

    constraints: tuple[Notion, ...]
    cells: Cells
    classes: tuple[Hashable, ...]
    epsilon: float
    delta: float
    false_alarm: float
    names: tuple[str, ...]
    counts: tuple[tuple[float, ...], ...]

    @cached_property
    def promise(self) -> Promise:
        """Of the whole stream."""
        return required_promise(self.epsilon, self.delta, "records")

    @cached_property
    def layout(self) -> Layout:
        """What is counted."""
        return layout_of(self.constraints, self.cells, self.classes)

    @cached_property
    def plan(self) -> CountPlan:
        """What each period releases, at which noise."""
        return plan_counts(self.promise)


def _check(found: dict[str, Any], node: Node) -> None:
    made = Watched(**found)
    parts = made.layout.parts
    if len(made.names) != len(made.counts) or any(len(one) != parts for one in made.counts):
        node["counts"].refuse("counts of these groups, for each period", len(made.counts))
    if not 0.0 < made.false_alarm < 1.0:
        node["false_alarm"].refuse("a chance of an alarm", made.false_alarm)


STATES = CODEC.with_kinds(Kind(Watched, check=_check))


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Hold the lock beside the file; an error where somebody else does."""
    import fcntl

    with open(path.with_name(f".{path.name}.lock"), "a+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            remedy = "Wait until it has ended: a monitor has one writer at a time."
            raise InputError.expected(
                "no other writer", of="monitor", got="another process", remedy=remedy
            ) from None
        yield


def load_file(path: Path) -> Watched:
    """The content, with its checksum checked."""
    remedy = "Begin one with fv.Monitor.create(path, ...)."
    what = "the file of a monitor"
    text = read_text(path, what=what, most=LARGEST, remedy=remedy, error=InputError)
    node = FILE.opened(text, FIELDS)
    if node["checksum"].value != checksum(node.mapping()):
        node.refuse("a file as it was written", "a changed one")
    try:
        found: Watched = STATES.read(node["watched"], Watched)
    except InputError:
        raise
    except (FairveilError, *MALFORMED) as error:
        raise FILE.document.refusal("the file of a monitor", type(error).__name__) from None
    return found


def save_file(path: Path, watched: Watched, *, new: bool = False) -> None:
    """Write it whole: to a file beside it, flushed to the disk, then renamed; and the folder,
    too."""
    free, fix = not (new and path.exists()), "Open it with fv.Monitor.open(path), or name another."
    need(free, "a file that is not there yet", of="path", got=str(path), fix=fix)
    write(path, text_of(watched))
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def text_of(watched: Watched) -> str:
    """The document."""
    content = FILE.sealed(watched=STATES.write(watched))
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def places_of(found: Cells, known: Cells) -> npt.NDArray[np.intp]:
    """Where the monitor has each cell of the people."""
    grid = np.indices(found.sizes).reshape(len(found.sizes), -1)
    codes = []
    for at, (name, values) in enumerate(zip(known.names, known.columns, strict=True)):
        column = found.names.index(name) if name in found.names else at
        told = "a known group", "sensitive_features", f"Groups of {name}"
        codes.append(codes_in(found.columns[column], values, *told)[grid[column]])
    return np.asarray(known.ids(np.stack(codes).astype(np.uint16))[0], np.intp)


def codes_in(
    found: Sequence[Hashable], known: Sequence[Hashable], expected: str, of: str, named: str
) -> npt.NDArray[np.intp]:
    """Values as codes of the monitor's."""
    strange = [value for value in found if value not in known]
    fix = f"{named}: {', '.join(map(keys.shown, known))}."
    need(not strange, expected, of=of, got=strange, fix=fix)
    return np.array([known.index(value) for value in found], np.intp)


@dataclass(frozen=True)
class Period:
    """One period: its counts as released, how well they fit the constraints (`p`), and the wealth
    of the bets after it."""

    name: str
    counts: tuple[float, ...]
    p: float
    wealth: float


class Monitor(Shown):
    """Private watch of a model's decisions, period by period.

    Begin with `create`, and continue with `open`.

    Attributes
    ----------
    path : path
        File that keeps the released counts.
    watched : Watched
        All that was fixed in advance, and the released counts.
    periods : tuple of Period
        Released results of each period.
    alarm : str or None
        Period in which the alarm was raised; it stays raised.
    privacy_ : PrivacyStatement or None
        Statement of the last count that this process made.

    See Also
    --------
    certify : Certifies once.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib
    >>> rng, folder = np.random.default_rng(0), pathlib.Path(tempfile.mkdtemp())
    >>> fixed = {"groups": {"sex": ["f", "m"]}, "classes": [0, 1], "epsilon": 1.0}
    >>> watch = Monitor.create(folder / "m.json", "demographic_parity:0.1", **fixed)
    >>> sex = np.array(["f", "m"])[rng.integers(2, size=2000)]
    >>> (
    ...     watch.add("May", (rng.random(2000) < 0.3).astype(int), sensitive_features=sex).name,
    ...     watch.alarm,
    ... )
    ('May', None)
    >>> drifted = (rng.random(2000) < np.where(sex == "m", 0.6, 0.3)).astype(int)
    >>> _ = watch.add("June", drifted, sensitive_features=sex)
    >>> Monitor.open(folder / "m.json").alarm
    'June'
    """

    def __init__(self, path: Path, watched: Watched) -> None:
        self.path, self.watched = path, watched
        self.privacy_: PrivacyStatement | None = None
        self._known: dict[tuple[float, ...], float] = {}  # p-values by released counts

    @staticmethod
    @told(COUNTED)
    def create(
        path: str | Path,
        constraints: object,
        *,
        groups: Mapping[str, Sequence[Hashable]],
        classes: Sequence[Hashable],
        epsilon: float | None = None,
        delta: float = 0.0,
        false_alarm: float = 0.05,
        ledger: object = None,
    ) -> Monitor:
        """Begin a monitor, with everything that is fixed in advance.

        Parameters
        ----------
        path : path
            The file that keeps it. It holds released counts, and no rows.
        constraints : notion, str or list of these
            Constraints that should hold in every period, for example ``DemographicParity(0.1)``.
        groups : mapping of names to lists
            The sensitive columns and their values, which are public.
        classes : list
            The classes of decisions and outcomes.
        epsilon : float, default=None
            Privacy budget of the whole stream. It must be given.
        false_alarm : float, default=0.05
            Probability of an alarm over the whole run if the constraints hold in every period.
        ledger : Ledger, default=None
            Where the stream is recorded, once. None: the ledger of the ``with
            ledger.recording():`` block, if there is one.

        Returns
        -------
        Monitor
            The monitor, before its first period.
        """
        promise = required_promise(epsilon, delta, "records")
        fix = "Pass epsilon=1.0, for example; for public people fv.certify counts exactly."
        of, got, error = "epsilon", epsilon, PrivacyError
        need(promise.is_private, "a finite number", of=of, got=got, fix=fix, error=error)
        notions = notions_of(constraints)
        open_ends: Any = {"low_open": True, "high_open": True, "remedy": "Pass false_alarm=0.05."}
        rate = _checks.fraction(false_alarm=false_alarm, **open_ends)
        given: Any = groups
        by_column = isinstance(given, Mapping) and len(given) > 0
        fix = 'Pass groups={"sex": ["f", "m"]}: the values that are public.'
        need(by_column, "groups by column", of="groups", got=groups, fix=fix)
        cells = Cells(tuple(map(tuple, groups.values())), names=tuple(map(str, groups)))
        budget = promise.epsilon, promise.delta, rate
        fixed = tuple(notions), cells, known_classes(list(classes)), *budget
        watched = Watched(*fixed, (), ())
        # constraints that these groups or classes do not bear are refused now
        place, book, plan = Path(path), given_ledger(ledger) or current(), watched.plan
        _ = watched.layout
        with only_writer(place):
            save_file(place, watched, new=True)
            if book is not None:
                try:
                    with book.reserve(plan.together, promise, purpose="monitor"):
                        pass
                except BaseException:
                    place.unlink()
                    raise
        return Monitor(place, watched)

    @staticmethod
    def open(path: str | Path) -> Monitor:
        """Continue a monitor, after a restart or in another process.

        Parameters
        ----------
        path : path
            The file that `create` made.

        Returns
        -------
        Monitor
            The monitor.
        """
        return Monitor(Path(path), load_file(Path(path)))

    def add(
        self,
        period: str,
        model: object,
        X: TableLike = None,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        random_state: object = None,
    ) -> Period:
        """Count the people of one more period, whom no other period has.

        Parameters
        ----------
        period : str
            Its name; each is counted once.
        model : fitted model, callable or array
            The model that decides, or the decisions themselves.
        X : table or array, default=None
            Features, where a model decides. None: `model` is an array.
        y : array, default=None
            Outcomes, where a constraint reads them. None: no constraint does.
        sensitive_features : array, table or names of columns of X, default=None
            Groups, in the columns that `create` was given. They must be given.
        random_state : int, default=None
            None draws secure noise. An integer is for tests.

        Returns
        -------
        Period
            The released results.
        """
        name: Any = period
        sound = isinstance(name, str) and name.strip() and name.isprintable()
        need(sound, "a name", of="period", got=period, fix='Pass "2026-05", for example.')
        with only_writer(self.path):
            self.watched = load_file(self.path)  # another process may have written meanwhile
            fix = "Give it another name, if these are other people; the same people must not be counted twice."
            new = period not in self.watched.names
            need(new, "a period that is new", of="period", got=period, fix=fix)
            seed = fitting.seed_of(random_state)
            counts = self._counted(model, X, y, sensitive_features, seed)
            before, released = self.watched, tuple(map(float, counts))
            made = replace(before, names=(*before.names, period), counts=(*before.counts, released))
            save_file(self.path, made)
            self.watched = made
        return self.periods[-1]

    @property
    def alarm(self) -> str | None:
        """The first period after which the wealth reached 1 / false_alarm."""
        return next(
            (one.name for one in self.periods if one.wealth >= 1.0 / self.watched.false_alarm), None
        )

    @property
    def periods(self) -> tuple[Period, ...]:
        """All periods, recomputed from their released counts."""
        out: list[Period] = []
        bet = Bet()
        for name, counts in zip(self.watched.names, self.watched.counts, strict=True):
            if counts not in self._known:
                of = self.watched.layout, np.array(counts), self.watched.plan.noise
                self._known[counts] = p_value(*of)
            p = self._known[counts]
            bet = bet.after(e_value(p))
            out.append(Period(name, counts, p, bet.wealth))
        return tuple(out)

    def bounds(self, period: str) -> tuple[NotionBound, ...]:
        """Bounds on each comparison in one period.

        Parameters
        ----------
        period : str
            Name of the period.

        Returns
        -------
        tuple of NotionBound
            Those of all constraints and all periods hold together, with probability 1 minus
            `false_alarm`.
        """
        for at, one in enumerate(self.periods, 1):
            if one.name == period:
                # Each constraint may miss by itself: all of a period share its level.
                made, many = self.watched, len(self.watched.constraints)
                level = made.false_alarm / (at * (at + 1.0)) / many
                of = made.layout, many, np.array(one.counts), made.plan.noise, 1.0 - level
                return certified(*of).notions
        remedy = f"Known: {', '.join(self.watched.names)}."
        raise InputError.expected("a period", of="period", got=period, remedy=remedy)

    @property
    def wealth(self) -> float:
        """Of the bets, now; 1 / `false_alarm` raises the alarm."""
        periods = self.periods
        return periods[-1].wealth if periods else Bet().wealth

    def to_dict(self) -> dict[str, Any]:
        """Describe the monitor as plain JSON values.

        Returns
        -------
        dict
            Released counts and everything that was fixed in advance, as in the file.
        """
        found: dict[str, Any] = json.loads(text_of(self.watched))
        return found

    def to_json(self) -> str:
        """Released counts and everything that was fixed in advance, as in the file.

        Returns
        -------
        str
            The document.
        """
        return text_of(self.watched)

    def parts(self) -> Iterator[Part]:
        """Whether there was an alarm, and a line a period."""
        raised = "no alarm" if self.alarm is None else f"alarm in {self.alarm}"
        rate = f"false alarm over the whole run at most {self.watched.false_alarm:g}"
        verdict = "verdict", f"{raised}; {len(self.periods)} periods"
        yield Facts.of((verdict, ("chance", rate), ("privacy", self.watched.promise)))
        columns = (
            Column("period", tuple(one.name for one in self.periods)),
            Column("p", tuple(one.p for one in self.periods), "plain"),
            Column("wealth", tuple(one.wealth for one in self.periods), "plain"),
        )
        title = f"Periods; wealth of {1.0 / self.watched.false_alarm:g} raises the alarm"
        yield Table(columns, title)

    def _counted(
        self,
        model: object,
        X: TableLike,
        y: ColumnsLike,
        sensitive_features: ColumnsLike,
        seed: int | None,
    ) -> npt.NDArray[np.float64]:
        """The noisy counts of these people: one release."""
        made, layout = self.watched, self.watched.layout
        at = len(made.names)
        rows = X, y, sensitive_features, None, made.promise, seed, None
        people = wrapped.people_of(model, *rows, made.cells, made.classes)
        names, own, of = people.cells.names, made.cells.names, "sensitive_features"
        fits, fix = len(names) == len(own), f"Pass the columns {', '.join(own)}."
        need(fits, "the groups of this monitor", of=of, got=list(names), fix=fix)
        asked = [one.kind for one in made.constraints]
        wrapped.require_labels(people.labelled, layout.needs_labels, asked)
        places = places_of(people.cells, made.cells)
        told = "a known class", "y and the decisions", "Classes of this monitor"
        kinds = codes_in(people.classes, made.classes, *told)
        codes = people.codes_by(
            lambda ids, y, found: layout.part_of[places[ids], kinds[y], kinds[found]]
        )
        counts, self.privacy_ = count(
            people,
            made.promise,
            made.plan,
            codes,
            layout.parts,
            labels=True,
            groups=True,
            seed=wrapped.derived_seed(seed, 1000 + at),
            purpose="monitor",
            what="people of a period by group, label and decision",
            title="group, label and decision",
            not_covered=[IN_PARALLEL],
        )
        return counts
