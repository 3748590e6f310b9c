"""`Monitor`: does it still hold? Private counts of each period, and an alarm that is rarely false
over the whole run.

Each period counts its own people once, with the whole budget. A person is in one period, so all
periods together cost what one costs (theory.md#monitor-cost). What the counts say is gathered by
bets (`learning/certificates/evidence.py`): one may look after each period, for as long as one
likes, and stop or go on.

With a unit people may come back, in a stated number of periods at most: noise and alarm are then
made for that (theory.md#monitor-persons).

Guarantees (tests/estimators/test_estimators_monitor.py, test_estimators_monitor_persons.py):
1. The stream of all periods keeps the promise under add-remove, for people who are in one period,
   or in as many as was said.
2. If the constraints hold in every period, an alarm is raised with probability at most
   `false_alarm` over the whole run.
3. The bounds on all constraints of all periods hold together with confidence 1 - `false_alarm`,
   however many constraints there are.
4. A process that is killed loses nothing that was shown; two writers refuse each other.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._json import Document
from ..._types import ColumnsLike, TableLike
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...curator.elsewhere import curator_of
from ...errors import InputError, PrivacyError
from ...facts import Cells
from ...fairness import Notion
from ...learning.certificate import (
    Bet,
    Clearest,
    Layout,
    NotionBound,
    certified,
    e_value,
    layout_of,
    p_value,
)
from ...learning.counts import CountPlan, plan_counts
from ...ledger import current, given_ledger
from ...models.model import known_classes
from ...show.parts import Column, Facts, Part, Shown, Table
from ...statement.document import PrivacyStatement
from ...tables import keys
from .. import fitting, wrapped
from . import monitor_state
from .certifying import notions_of, required_promise
from .counts_json import notion_from
from .monitored import about_others, codes_in, coming_back, places_of, whose_of

DOCUMENT = Document(
    "monitor", "It is written by fv.Monitor; restore it from a backup.", largest=1 << 28
)


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
        delta : float, default=0.0
            Slack that is added to the epsilon bound: one row changes the probability of any results
            by a factor of at most e^epsilon, plus delta.
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
        promise = required_promise(epsilon, delta, "records", None, whose)
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
            "groups": {
                "names": list(cells.names),
                "columns": [
                    [keys.to_json(value, of="group") for value in column]
                    for column in cells.columns
                ],
            },
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
        with monitor_state.only_writer(place):
            monitor_state.save(place, values, new=True)
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
        found = Monitor(Path(path), monitor_state.load(Path(path)))
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
        with monitor_state.only_writer(self.path):
            # another process may have written meanwhile
            self._values = monitor_state.load(self.path)
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
            monitor_state.save(self.path, {**self._content, "periods": written})
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
        columns = tuple(
            tuple(keys.plain(value, of="group") for value in column) for column in groups["columns"]
        )
        return Cells(columns, names=tuple(groups["names"]))

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
        return required_promise(
            self._values["epsilon"], self._values["delta"], "records", None, whose
        )

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
        asked = self._asked
        source = NoiseSource.of(wrapped.derived_seed(seed, 1000 + at))
        options: dict[str, Any] = {"facts": people.facts, "purpose": "monitor"}
        with curator_of(
            people.rows, self.promise, plan=asked.event, noise=source, **options
        ) as curator:
            read = {"features", "label", "sensitive"}
            codes = people.codes_by(
                lambda ids, y, found: self.layout.part_of[places[ids], kinds[y], kinds[found]]
            )
            attached = curator.attach_codes(
                codes, self.layout.parts, columns_read=read, title="group, label and decision"
            )
            counts = asked.release(
                curator, attached, "people of a period by group, label and decision"
            )
            curator.finish()
        said = about_others(self.max_periods_per_unit if whose is not None else None, at + 1)
        self.privacy_ = curator.statement(not_covered=[*people.not_covered, said])
        return counts
