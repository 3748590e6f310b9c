"""A model's decisions watched period by period, and the file that keeps what was released."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._json import Document
from ..._reading import read_text
from ..._types import ColumnsLike, TableLike
from ...core.promise import Promise, Unit
from ...errors import InputError, PrivacyError
from ...facts import Cells
from ...fairness import Notion
from ...ledger import current, given_ledger
from ...methods.certificate import (
    Bet,
    Clearest,
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
from ..reading import units
from ..reading.units import Whose
from ..words import COUNTED, told
from .counted import (
    checksum,
    columns_of,
    count,
    groups_to_dict,
    notion_from,
    notions_of,
    required_promise,
)

# ------------------------------ monitor_state
# The file of a monitor: read whole, written whole, by one writer at a time.
#
# Guarantees (tests/estimators/test_estimators_monitor.py):
# 1. A process that is killed leaves the file as it was, or with the new period, and nothing between.
# 2. While one process writes, another is refused; a lock dies with its process.
# 3. A file in which anything was changed is refused.

FORMAT, FORMAT_VERSION = "fairveil monitor", 1
OF_PERSONS = 2
"""The version where people may come back: what knows version 1 alone would add too little noise."""
LARGEST = 1 << 28
DOCUMENT = Document(
    "monitor", "It is written by fv.Monitor; restore it from a backup.", largest=LARGEST
)


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


def load_file(path: Path) -> dict[str, Any]:
    """The content, with its checksum checked."""
    remedy = "Begin one with fv.Monitor.create(path, ...)."
    values = DOCUMENT.json(
        read_text(path, what="the file of a monitor", most=LARGEST, remedy=remedy, error=InputError)
    )
    if (
        not isinstance(values, dict)
        or values.get("format") != FORMAT
        or values.get("version") != _version(values)
    ):
        raise DOCUMENT.refusal(f"{FORMAT!r} of version 1 or 2", "another document")
    if values.get("checksum") != checksum(values):
        raise DOCUMENT.refusal("a file as it was written", "a changed one")
    return values


def save_file(path: Path, values: dict[str, Any], *, new: bool = False) -> None:
    """Write it whole: to a file beside it, flushed to the disk, then renamed; and the folder,
    too."""
    if new and path.exists():
        remedy = "Open it with fv.Monitor.open(path), or name another."
        raise InputError.expected(
            "a file that is not there yet", of="path", got=str(path), remedy=remedy
        )
    out = {"format": FORMAT, "version": _version(values)} | values
    write(path, json.dumps(out | {"checksum": checksum(out)}, indent=2, allow_nan=False) + "\n")
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _version(values: dict[str, Any]) -> int:
    return OF_PERSONS if "unit" in values else FORMAT_VERSION


# ------------------------------ monitored
# The decisions, groups and persons of a period, in terms of what a monitor was begun with.

IN_PARALLEL = (
    "a monitor's periods: each person was taken to be in one period alone, so that all of them "
    "together cost what one costs"
)
COME_BACK = (
    "a monitor's other periods: a person may be counted in {most}, which together cost at "
    "most the budget{taken}"
)


def places_of(found: Cells, known: Cells) -> npt.NDArray[np.intp]:
    """Where the monitor has each cell of the people."""
    columns = [
        found.names.index(name) if name in found.names else at
        for at, name in enumerate(known.names)
    ]
    codes = []
    grid = np.indices(found.sizes).reshape(len(found.sizes), -1)
    for at, (column, values) in enumerate(zip(columns, known.columns, strict=True)):
        strange = [value for value in found.columns[column] if value not in values]
        if strange:
            remedy = f"Groups of {known.names[at]}: {', '.join(map(keys.shown, values))}."
            raise InputError.expected(
                "a known group", of="sensitive_features", got=strange, remedy=remedy
            )
        codes.append(
            np.array([values.index(value) for value in found.columns[column]])[grid[column]]
        )
    return np.asarray(known.ids(np.stack(codes).astype(np.uint16))[0], np.intp)


def codes_in(found: tuple[Hashable, ...], known: tuple[Hashable, ...]) -> npt.NDArray[np.intp]:
    """Classes as codes of the monitor's."""
    strange = [value for value in found if value not in known]
    if strange:
        remedy = f"Classes of this monitor: {', '.join(map(keys.shown, known))}."
        raise InputError.expected(
            "a known class", of="y and the decisions", got=strange, remedy=remedy
        )
    return np.array([known.index(value) for value in found], np.intp)


def coming_back(unit: object, most: object) -> Whose | None:
    """Who is protected where people may come back, as `create` was told: one row of each person a
    period, in `most` periods at most. None: rows, of people who do not."""
    if unit is None and most is None:
        return None
    if not isinstance(unit, str):
        remedy = 'Pass unit="patient", its name; `add` takes whose each row is.'
        raise InputError.expected(
            "the name of a column", of="unit", got=unit, remedy=remedy, quote=False
        )
    remedy = (
        "Pass max_periods_per_unit=12, for example: in how many periods a person may be at most, "
        "known in advance."
    )
    _checks.whole(at_least=1, max_periods_per_unit=most, remedy=remedy)
    return Whose(Unit(unit, 1), column=unit)


def whose_of(given: ColumnsLike, unit: Unit | None, X: TableLike) -> Whose | None:
    """Whose each row of a period is: the values that were given, or the unit's column of X."""
    if unit is None:
        if given is None:
            return None
        remedy = 'Begin a monitor with unit="patient", max_periods_per_unit=12, for example.'
        raise InputError.expected(
            "None: this monitor has no unit", of="unit", got="values", remedy=remedy, quote=False
        )
    if given is not None and not isinstance(given, str):
        return units.whose(
            {unit.name: next(iter(given.values())) if isinstance(given, Mapping) else given},
            1,
            None,
        )
    if X is None or given not in (None, unit.name):
        remedy = "Pass unit=ids, one value a row, or X with this column."
        raise InputError.expected(
            f"whose each row is, by {unit.name!r}", of="unit", got=given, remedy=remedy, quote=False
        )
    return Whose(unit, column=unit.name)


def about_others(most: int | None, periods: int) -> str:
    """What a statement of one period says of the others. `most`: in how many periods a person may
    be, None without a unit; while there are no more periods, nothing is taken on trust."""
    if most is None:
        return IN_PARALLEL
    taken = "; that nobody is in more was taken as said" if periods > most else ""
    return COME_BACK.format(most="one" if most == 1 else f"at most {most}", taken=taken)


# ------------------------------ monitor
# `Monitor`: does it still hold? Private counts of each period, and an alarm that is rarely false
# over the whole run.
#
# Each period counts its own people once, with the whole budget. A person is in one period, so all
# periods together cost what one costs (theory.md#monitor-cost). What the counts say is gathered by
# bets (`methods/certificate.py`): one may look after each period, for as long as one
# likes, and stop or go on.
#
# With a unit people may come back, in a stated number of periods at most: noise and alarm are then
# made for that (theory.md#monitor-persons).
#
# Guarantees (tests/estimators/test_estimators_monitor.py, test_estimators_monitor_persons.py):
# 1. The stream of all periods keeps the promise under add-remove, for people who are in one period,
#    or in as many as was said.
# 2. If the constraints hold in every period, an alarm is raised with probability at most
#    `false_alarm` over the whole run.
# 3. The bounds on all constraints of all periods hold together with confidence 1 - `false_alarm`,
#    however many constraints there are.
# 4. A process that is killed loses nothing that was shown; two writers refuse each other.


@dataclass(frozen=True)
class Period:
    """One period: its counts as released, how well they fit the constraints (`p`), and the wealth
    of the bets after it, or the evidence in their place where people may come back."""

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

    def __init__(self, path: Path, values: dict[str, Any]) -> None:
        self.path, self._values = path, values
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
        unit: str | None = None,
        max_periods_per_unit: int | None = None,
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
        unit : str, default=None
            Name of the column that tells persons apart, where people may come back. Persons are
            then protected, with their rows of all periods. None: each person is in one period.
        max_periods_per_unit : int, default=None
            Number of periods in which a person may be at most, with `unit`. It is public. Noise
            grows with it. None without a unit.

        Returns
        -------
        Monitor
            The monitor, before its first period.
        """
        whose = coming_back(unit, max_periods_per_unit)
        promise = required_promise(epsilon, delta, "records", whose)
        if not promise.is_private:
            remedy = "Pass epsilon=1.0, for example; for public people fv.certify counts exactly."
            raise PrivacyError.expected("a finite number", of="epsilon", got=epsilon, remedy=remedy)
        notions = notions_of(constraints)
        rate = _checks.fraction(
            false_alarm=false_alarm, low_open=True, high_open=True, remedy="Pass false_alarm=0.05."
        )
        given: Any = groups
        if not isinstance(given, Mapping) or not given:
            remedy = 'Pass groups={"sex": ["f", "m"]}: the values that are public.'
            raise InputError.expected("groups by column", of="groups", got=given, remedy=remedy)
        cells = Cells(
            tuple(tuple(values) for values in groups.values()), names=tuple(map(str, groups))
        )
        listed = known_classes(list(classes))
        # constraints that these groups or classes do not bear are refused now
        layout_of(notions, cells, listed)
        values = {
            "constraints": [notion.to_dict() for notion in notions],
            "groups": groups_to_dict(cells),
            "classes": [keys.to_json(value, of="class") for value in listed],
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            "false_alarm": rate,
            "periods": [],
        }
        if promise.unit is not None:
            values["unit"] = {
                "name": promise.unit.name,
                "max_periods": int(max_periods_per_unit or 1),
            }
        found = Monitor(Path(path), values)
        place, book = Path(path), given_ledger(ledger) or current()
        with only_writer(place):
            save_file(place, values, new=True)
            if book is not None:
                try:
                    with book.reserve(found._asked.together, promise, purpose="monitor"):
                        pass
                except BaseException:
                    place.unlink()
                    raise
        return found

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
        found = Monitor(Path(path), load_file(Path(path)))
        try:
            found.layout, found.periods, found._asked  # noqa: B018
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DOCUMENT.refusal("the file of a monitor", type(error).__name__) from None
        return found

    def add(
        self,
        period: str,
        model: object,
        X: TableLike = None,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        random_state: object = None,
        unit: ColumnsLike = None,
    ) -> Period:
        """Count the people of one more period, whom no other period has, unless there is a unit.

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
        unit : array, default=None
            Whose each row is, one value a row, where `create` was given a unit. One row of each
            person counts, drawn by a coin. None: the column of X that has the unit's name.

        Returns
        -------
        Period
            The released results.
        """
        name: Any = period
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InputError.expected(
                "a name", of="period", got=period, remedy='Pass "2026-05", for example.'
            )
        with only_writer(self.path):
            # another process may have written meanwhile
            self._values = load_file(self.path)
            self.__dict__.pop("periods", None)
            if any(one.name == period for one in self.periods):
                remedy = (
                    "Give it another name, if these are other people; the same people must not be "
                    "counted twice."
                )
                raise InputError.expected(
                    "a period that is new", of="period", got=period, remedy=remedy
                )
            counts = self._counted(
                model, X, y, sensitive_features, fitting.seed_of(random_state), unit
            )
            released = {"name": period, "counts": [float(count) for count in counts]}
            written = [*self._values["periods"], released]
            save_file(self.path, {**self._content, "periods": written})
            self._values["periods"] = written
            self.__dict__.pop("periods", None)
        return self.periods[-1]

    @property
    def alarm(self) -> str | None:
        """The first period after which the wealth reached 1 / false_alarm."""
        return next(
            (one.name for one in self.periods if one.wealth >= 1.0 / self.false_alarm), None
        )

    @cached_property
    def periods(self) -> tuple[Period, ...]:
        """All periods, recomputed from their released counts."""
        out: list[Period] = []
        bet = self._begun
        for one in self._values["periods"]:
            counts = np.array([float(count) for count in one["counts"]])
            if counts.shape != (self.layout.parts,):
                raise DOCUMENT.refusal("counts of these groups", f"{len(counts)} counts")
            p = self._p(counts)
            bet = bet.after(p) if isinstance(bet, Clearest) else bet.after(e_value(p))
            out.append(Period(str(one["name"]), tuple(counts.tolist()), p, bet.wealth))
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
                level = self.false_alarm / (at * (at + 1.0)) / len(self.constraints)
                found = certified(
                    self.layout,
                    len(self.constraints),
                    np.array(one.counts),
                    self.noise,
                    1.0 - level,
                )
                return found.notions
        known = [one.name for one in self.periods]
        raise InputError.expected(
            "a period", of="period", got=period, remedy=f"Known: {', '.join(known)}."
        )

    @cached_property
    def constraints(self) -> tuple[Notion, ...]:
        """What should go on holding."""
        return tuple(notion_from(one) for one in self._values["constraints"])

    @cached_property
    def cells(self) -> Cells:
        """The groups."""
        groups = self._values["groups"]
        return Cells(columns_of(groups), names=tuple(groups["names"]))

    @cached_property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes."""
        return tuple(keys.plain(value, of="class") for value in self._values["classes"])

    @cached_property
    def layout(self) -> Layout:
        """What is counted."""
        return layout_of(self.constraints, self.cells, self.classes)

    @cached_property
    def promise(self) -> Promise:
        """Of the whole stream."""
        unit = self._values.get("unit")
        whose = None if unit is None else coming_back(unit["name"], unit["max_periods"])
        return required_promise(self._values["epsilon"], self._values["delta"], "records", whose)

    @property
    def max_periods_per_unit(self) -> int:
        """In how many periods a person may be: one, unless there is a unit."""
        return int(self._values.get("unit", {"max_periods": 1})["max_periods"])

    @cached_property
    def _asked(self) -> CountPlan:
        """What each period releases, at which noise."""
        return plan_counts(self.promise, times=self.max_periods_per_unit)

    @property
    def false_alarm(self) -> float:
        """The probability of an alarm over the whole run, if the constraints hold."""
        return float(self._values["false_alarm"])

    @property
    def noise(self) -> Any:
        """Of each count."""
        return self._asked.noise

    @property
    def wealth(self) -> float:
        """Of the bets, now; 1 / `false_alarm` raises the alarm."""
        return self.periods[-1].wealth if self.periods else self._begun.wealth

    def to_dict(self) -> dict[str, Any]:
        """Describe the monitor as plain JSON values.

        Returns
        -------
        dict
            Released counts and everything that was fixed in advance, as in the file.
        """
        return self._content

    def to_json(self) -> str:
        """Released counts and everything that was fixed in advance, as in the file.

        Returns
        -------
        str
            The document.
        """
        return json.dumps(self._content, indent=2, allow_nan=False) + "\n"

    def parts(self) -> Iterator[Part]:
        """Whether there was an alarm, and a line a period."""
        raised = "no alarm" if self.alarm is None else f"alarm in {self.alarm}"
        rate = f"false alarm over the whole run at most {self.false_alarm:g}"
        yield Facts.of(
            (
                ("verdict", f"{raised}; {len(self.periods)} periods"),
                ("chance", rate),
                ("privacy", self.promise),
            )
        )
        columns = (
            Column("period", tuple(one.name for one in self.periods)),
            Column("p", tuple(one.p for one in self.periods), "plain"),
            Column("wealth", tuple(one.wealth for one in self.periods), "plain"),
        )
        yield Table(columns, f"Periods; wealth of {1.0 / self.false_alarm:g} raises the alarm")

    def _p(self, counts: npt.NDArray[np.float64]) -> float:
        key = tuple(counts.tolist())
        if key not in self._known:
            self._known[key] = p_value(self.layout, counts, self.noise)
        return self._known[key]

    @property
    def _begun(self) -> Bet | Clearest:
        """What stands before the first period."""
        return Bet() if self.promise.unit is None else Clearest()

    @property
    def _content(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in self._values.items()
            if name not in ("format", "version", "checksum")
        }

    def _counted(
        self,
        model: object,
        X: TableLike,
        y: ColumnsLike,
        sensitive_features: ColumnsLike,
        seed: int | None,
        unit: ColumnsLike,
    ) -> npt.NDArray[np.float64]:
        """The noisy counts of these people: one release."""
        whose, at = whose_of(unit, self.promise.unit, X), len(self.periods)
        rows = X, y, sensitive_features, None, self.promise, seed, whose
        people = wrapped.people_of(model, *rows, stated=self.cells, classes=self.classes)
        if set(people.cells.names) != set(self.cells.names) and len(people.cells.names) != len(
            self.cells.names
        ):
            remedy = f"Pass the columns {', '.join(self.cells.names)}."
            got = list(people.cells.names)
            raise InputError.expected(
                "the groups of this monitor", of="sensitive_features", got=got, remedy=remedy
            )
        wrapped.require_labels(
            people.labelled, self.layout.needs_labels, [one.kind for one in self.constraints]
        )
        places = places_of(people.cells, self.cells)
        kinds = codes_in(people.classes, self.classes)
        codes = people.codes_by(
            lambda ids, y, found: self.layout.part_of[places[ids], kinds[y], kinds[found]]
        )
        returns = self.max_periods_per_unit if whose is not None else None
        counts, self.privacy_ = count(
            people,
            self.promise,
            self._asked,
            codes,
            self.layout.parts,
            read=("features", "label", "sensitive"),
            seed=wrapped.derived_seed(seed, 1000 + at),
            purpose="monitor",
            what="people of a period by group, label and decision",
            title="group, label and decision",
            not_covered=[about_others(returns, at + 1)],
        )
        return counts
