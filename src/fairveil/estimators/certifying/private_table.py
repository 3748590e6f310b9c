"""Private tables: rates, counts and gaps by group of any decisions, from one private count.

Guarantees (tests/estimators/test_estimators_private_audit.py):
1. An interval misses the population's rate or gap (a count: that of these rows) with probability at
   most 1 - confidence; of `intervals="all"` any of the table's does.
2. Bad input is refused before anything is spent.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._codec import Kind
from ..._json import Node
from ..._types import ColumnsLike, TableLike
from ...core.attached import MOST_CODES
from ...core.errors import need
from ...data.elsewhere import Elsewhere, RowsElsewhere
from ...errors import InputError
from ...facts import Cells, Schema
from ...methods import tables as table_gaps
from ...methods.counts import CountNoise, plan_counts
from ...methods.tables import EVERYONE, Gap, TableEvidence, TableLayout, TableLine, TableRate
from ...show.charts import Axis, Row, Rows
from ...show.numbers import percent, printable
from ...show.parts import Column, Note, Part, Shown, Table
from ...statement.document import PrivacyStatement
from ...tables import keys
from ...tables.frames import pandas_for
from ..counted import CODEC, OWN_DECISIONS, Asked, CountedFile, CountsFile
from ..words import COUNTED, told
from ..wrapped import DecidedPeople
from .certificate import require_counts

EACH, ALL = "each", "all"
OUTCOMES = "the outcomes themselves"


@dataclass(frozen=True, eq=False)
class PrivateTable(CountedFile, Shown):
    """Rates, counts and gaps by group from one private count, with a hierarchy of groups.

    `private_audit` makes it. `by_group`, `overall`, `difference`, `ratio` and `to_frame` are as in
    fairlearn's `MetricFrame`, and each number has an interval. Counts are about these rows. Rates
    and gaps are about the population that the rows are a sample of.

    Attributes
    ----------
    layout : TableLayout
        Groups, classes and kinds of rows that are counted.
    counts : ndarray of shape (cells, kinds)
        Counts as released; all else is computed from them.
    noise : CountNoise
        Noise of each count.
    known : ndarray or None
        Exact counts that are public; None: there are none.
    confidence : float
        Confidence of the intervals.
    intervals : {"each", "all"}
        Whether each interval holds with this confidence by itself, or all of the table hold
        together.
    small_below : int
        Groups that may have fewer people are flagged.
    privacy_ : PrivacyStatement
        Statement of the release.
    model : str
        The model in words.
    by_group : dict
        Rates of the finest groups, by key and name.
    overall : dict
        Rates of everyone, by name.

    See Also
    --------
    private_audit : Makes one.
    group_table : The same for rows that need no privacy, exactly.
    """

    FILE: ClassVar = CountsFile(
        "private table",
        2,
        (
            *("counts that fit", "rates", "gaps", "intervals", "noise"),
            *("the statement's epsilon", "checksum"),
        ),
        (
            *("counts as released", "known totals", "model", "groups", "classes"),
            "what the statement takes on trust",
        ),
    )
    ABOUT_ROWS: ClassVar[str] = "counts are about these rows"
    ABOUT_PEOPLE: ClassVar[str] = (
        "rates and gaps are about the population that these rows are a sample of"
    )
    layout: TableLayout
    counts: npt.NDArray[np.float64]
    noise: CountNoise
    known: npt.NDArray[np.float64] | None
    confidence: float
    intervals: str
    small_below: int
    privacy_: PrivacyStatement
    model: str = "a model"

    @cached_property
    def evidence(self) -> TableEvidence:
        """The released counts and their bounds."""
        options = {"known": self.known, "together": self.intervals == ALL}
        return TableEvidence(self.layout, self.counts, self.noise, self.confidence, **options)  # type: ignore[arg-type]

    @cached_property
    def lines(self) -> dict[tuple[tuple[int, ...], Hashable], TableLine]:
        """Every group of every level, by the columns that make it and its key."""
        found = enumerate(self.layout.groups)
        return {
            (one.columns, one.key): self.evidence.line(at, self.small_below) for at, one in found
        }

    @property
    def rates(self) -> tuple[str, ...]:
        """Names of the rates."""
        return tuple(self.layout.shares)

    @property
    def overall(self) -> dict[str, TableRate]:
        """The rates of everyone, by name."""
        return self.lines[EVERYONE, None].rates

    @property
    def by_group(self) -> dict[Hashable, dict[str, TableRate]]:
        """The rates of the finest groups, by key and name."""
        return {key: line.rates for key, line in self.level().items()}

    def level(self, *columns: str) -> dict[Hashable, TableLine]:
        """Lines of the groups that these sensitive columns make.

        Parameters
        ----------
        *columns : str
            Sensitive columns that make the groups; without one, those of the finest level.

        Returns
        -------
        dict
            Lines by key of the group.
        """
        level = self._level(columns)
        return {key: line for (made_by, key), line in self.lines.items() if made_by == level}

    def difference(self, rate: str | None = None, *columns: str) -> Gap:
        """Widest difference of a rate among groups.

        Parameters
        ----------
        rate : str, default=None
            Name of the rate. None: the first.
        *columns : str
            Sensitive columns that make the groups; without one, those of the finest level.

        Returns
        -------
        Gap
            The difference, its interval and its pair of groups.
        """
        return table_gaps.difference(self.evidence, self._groups(columns), self._rate(rate))

    def ratio(self, rate: str | None = None, *columns: str) -> Gap:
        """Smallest ratio of a rate among groups: the smaller over the larger.

        Parameters
        ----------
        rate : str, default=None
            Name of the rate. None: the first.
        *columns : str
            Sensitive columns that make the groups; without one, those of the finest level.

        Returns
        -------
        Gap
            The ratio, its interval and its pair of groups.
        """
        return table_gaps.ratio(self.evidence, self._groups(columns), self._rate(rate))

    @cached_property
    def gaps(self) -> dict[tuple[int, ...], tuple[Gap, ...]]:
        """The widest differences of the main rates, for each level of the hierarchy."""
        names = self.layout.cells.names
        return {
            level: tuple(
                self.difference(rate, *(names[j] for j in level)) for rate in self.layout.main
            )
            for level in self.levels
        }

    @property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """Which columns make the groups of each level; that of everyone is not listed."""
        return self.layout.levels

    @property
    def held(self) -> str:
        """Whether intervals hold by themselves or together, in words."""
        return "all of them together" if self.intervals == ALL else "each by itself"

    def to_frame(self) -> Any:
        """A pandas frame with a line a group.

        Returns
        -------
        pandas.DataFrame
            Columns `rate`, `rate.low` and `rate.high` for every rate; undefined is NaN.
        """
        pd = pandas_for("to_frame")
        out = []
        for (columns, key), line in self.lines.items():
            values: dict[str, Any] = {"columns": self._columns(columns), "group": self._shown(key)}
            values["small"] = line.small
            shown: dict[str, Any] = {"people": line.people, **line.rates}
            for name, one in shown.items():
                values |= {name: one.value, f"{name}.low": one.low, f"{name}.high": one.high}
            out.append(values)
        frame = pd.DataFrame(out)
        undefined = [name for name in frame if frame[name].isna().any()]
        return frame.astype(dict.fromkeys(undefined, float))

    def _chart(self, rate: str, lines: Sequence[tuple[Hashable, TableLine]]) -> Rows:
        rows = [
            Row(self._shown(key), *_ends(line.rates[rate]), hollow=line.small)
            for key, line in lines
        ]
        name = rate.replace("_", " ").capitalize()
        axis = Axis(name, "percent")
        return Rows(f"{name} by group", axis, tuple(rows), confidence=self.confidence, half=True)

    def parts(self) -> Iterator[Part]:
        """Counts and rates with their intervals, a line a group; the widest gaps; a picture a
        rate."""
        found = [(self._shown(key), line) for (_, key), line in self.lines.items()]
        people = [line.people for _, line in found]
        ends = [tuple(getattr(one, end) for one in people) for end in ("value", "low", "high")]
        columns = [
            Column("group", tuple(name + " *" * line.small for name, line in found)),
            Column("people", ends[0], "count", ends[1], ends[2]),
        ]
        for name in self.layout.main:
            cells = zip(*(_ends(line.rates[name]) for _, line in found), strict=True)
            values, low, high = map(tuple, cells)
            columns.append(Column(name, values, "percent", low, high, "-"))
        yield Table(tuple(columns))
        few = any(line.small for _, line in found)
        mark = f" *: perhaps fewer than {self.small_below} people." if few else ""
        yield Note(
            f"{percent(self.confidence)} intervals, {self.held}, noise and sampling together: "
            f"{self.ABOUT_PEOPLE}; {self.ABOUT_ROWS}. -: undefined.{mark}"
        )
        for level, gaps in self.gaps.items():
            head = f"Groups of {self._columns(level)}, widest difference:"
            yield from (Note(f"{head} {printable(gap)}.") for gap in gaps)
        for name in self.layout.main:
            yield self._chart(name, [(key, line) for (_, key), line in self.lines.items()])

    def _groups(self, columns: tuple[str, ...]) -> list[int]:
        level = self._level(columns)
        return [at for at, one in enumerate(self.layout.groups) if one.columns == level]

    def _level(self, columns: tuple[str, ...]) -> tuple[int, ...]:
        names = self.layout.cells.names
        if not self.levels:
            return EVERYONE
        finest = [level for level in self.levels if len(level) == len(self.levels[-1])]
        if not columns and len(finest) == 1:
            return finest[0]
        found = tuple(sorted(names.index(name) for name in columns if name in names))
        known = [" and ".join(names[j] for j in level) for level in self.levels]
        got, fix = list(columns) or None, f"Name the columns of one level: {', '.join(known)}."
        there = found in self.levels and len(found) == len(columns)
        need(there, "a level of this table", of="columns", got=got, fix=fix)
        return found

    def _rate(self, name: str | None) -> str:
        if name is None:
            return self.layout.main[0]
        if name not in self.layout.shares:
            remedy = f"Rates: {', '.join(self.rates)}."
            raise InputError.expected(
                "a rate of this table", of="rate", got=name, remedy=remedy, among=list(self.rates)
            )
        return name

    def _columns(self, level: tuple[int, ...]) -> str:
        return ", ".join(self.layout.cells.names[j] for j in level)

    def _shown(self, key: Hashable) -> str:
        return "everyone" if key is None else printable(keys.shown(key))

    @property
    def cells(self) -> Cells:
        """Groups as cells of the sensitive columns."""
        return self.layout.cells

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """Classes of decisions and labels."""
        return self.layout.classes

    def _results(self) -> dict[str, Any]:
        names = self.layout.cells.names
        lines = [
            {
                "columns": [names[j] for j in columns],
                "group": keys.to_json(key, of="group"),
                "people": asdict(line.people),
                "labels": [asdict(one) for one in line.labels],
                "small": line.small,
                "rates": {name: asdict(rate) for name, rate in line.rates.items()},
            }
            for (columns, key), line in self.lines.items()
        ]
        gaps = [
            {"columns": [names[j] for j in level], "differences": [asdict(gap) for gap in found]}
            for level, found in self.gaps.items()
        ]
        return {"lines": lines, "gaps": gaps}


def _ends(rate: TableRate) -> tuple[float | None, float | None, float | None]:
    if rate.value is None or rate.low is None or rate.high is None:
        return None, None, None
    return rate.value, rate.low, rate.high


def _check(found: dict[str, Any], node: Node) -> None:
    layout, known = found["layout"], found["known"]
    node["intervals"].one_of((EACH, ALL))
    if not 0.5 <= found["confidence"] < 1.0 or not found["model"].isprintable():
        node.refuse("a confidence, and a model in words", "others")
    require_counts(found["counts"], node["counts"])
    if found["counts"].shape != (layout.parts,):
        node["counts"].refuse("counts of its groups and classes", list(found["counts"].shape))
    if known is not None:
        if known.shape not in ((), (layout.kinds,)) or not ((known >= 0) & (known < 2.0**53)).all():
            node["known"].refuse("totals", "others")
        promise = found["privacy_"].promise
        if found["privacy_"].is_private and not promise.rows_are_public:
            node["known"].refuse("null, where the number of rows is private", "totals")


PrivateTable.CODEC = CODEC.with_kinds(Kind(PrivateTable, check=_check), Kind(TableLayout))


@told(COUNTED)
def private_audit(
    model: object,
    X: TableLike = None,
    y: ColumnsLike = None,
    *,
    sensitive_features: ColumnsLike = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    intervals: str = EACH,
    depth: int | None = None,
    small_below: int = 30,
    protects: str = "records",
    schema: Schema | None = None,
    random_state: object = None,
    ledger: object = None,
    unit: object = None,
    max_rows_per_unit: int | None = None,
) -> PrivateTable:
    """Rates, counts and gaps by group of any decisions, with noise and with honest intervals.

    The rows are counted once by group, outcome and decision. Everything in the table follows from
    that count. See docs/private_tables.md. `sensitive_features` may be `SoftGroups`: then one group
    is drawn for each row.

    Parameters
    ----------
    model : fitted model, callable, array or None
        An estimator of this library or another, a function of the features, or one decision for
        each person. None: `y` itself is counted, by group.
    X : table or array, default=None
        Features of the people. None: `model` is an array of decisions.
    y : array, default=None
        Their known outcomes. None: the table has selection rates alone.
    confidence : float, default=0.95
        Confidence of the intervals.
    intervals : {"each", "all"}, default="each"
        Whether each interval holds with this confidence by itself, or all of the table hold
        together.
    depth : int, default=None
        Groups of up to so many columns at once are listed. None: all of them.
    small_below : int, default=30
        Groups that may have fewer people are flagged.
    Returns
    -------
    PrivateTable
        With `by_group`, `overall`, `difference()`, `ratio()`, `to_frame()`, `plot()`, `privacy_`
        and `to_json()`.

    Raises
    ------
    InputError
        If an argument or the table cannot be used.
    Overspent
        If the ledger's budget does not suffice for the cost.

    See Also
    --------
    group_table : Exact rates, for rows that need no privacy.
    certify : Certifies bounds on gaps.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=4000)
    >>> hired = rng.random(4000) < 0.3 + 0.1 * A
    >>> found = private_audit(hired, sensitive_features=A, epsilon=1.0, random_state=0)
    >>> gap = found.difference("selection_rate[True]")
    >>> gap.low < 0.1 < gap.high, gap.pair
    (True, (1, 0))
    """
    who = confidence, schema, random_state, ledger, unit, max_rows_per_unit
    asked = Asked.of(epsilon, delta, protects, *who)
    promise = asked.promise
    _checks.one_of((EACH, ALL), intervals=intervals)
    small = _checks.whole(at_least=1, small_below=small_below)
    sensitive, stated, facts = asked.drawn(sensitive_features)
    away = isinstance(X, Elsewhere)
    fix = "Pass a model or decisions, or y, whose rates by group are then counted."
    some = away or model is not None or y is not None
    need(some, "something to count", of="model", got=None, fix=fix)
    decides = y if model is None and not away else model
    people = asked.people(decides, X, y, sensitive, stated, schema=schema)
    layout = _layout(people, people.labelled and model is not None, depth)
    asked.warn(people)
    groups = bool(people.rows.layout.sensitive)
    plan = plan_counts(promise, reads_groups=groups or people.by_group)
    counts, statement = asked.count(
        people,
        plan,
        people.codes_by(layout.part_of),
        layout.parts,
        labels=layout.labelled,
        groups=groups,
        purpose="private audit",
        what="rows by group, label and decision",
        facts=facts,
        not_covered=[*asked.beside, *([] if model is None else [OWN_DECISIONS])],
    )
    known, of_groups = None, promise.is_private and promise.protects == "sensitive_features"
    if of_groups and not people.by_group and not isinstance(people.rows, RowsElsewhere):
        # how many there are of each label and decision is public
        parts = layout.part_of(np.zeros_like(people.ids), people.labels, people.decisions)
        known = np.bincount(parts, minlength=layout.kinds).astype(np.float64)
    elif promise.rows_are_public or not promise.is_private:
        known = np.array(float(people.rows.exact_count))
    words = OUTCOMES if model is None else people.model
    found = layout, counts, plan.noise, known, asked.confidence, intervals, small
    return PrivateTable(*found, statement, words)


def _layout(people: DecidedPeople, labelled: bool, depth: int | None) -> TableLayout:
    most = len(people.cells.columns)
    deep = most if depth is None else _checks.whole(at_least=1, depth=depth)
    layout = TableLayout(people.cells, people.classes, labelled, min(deep, most))
    expected, fix = f"at most {MOST_CODES} counts", "Take fewer sensitive columns at once, or merge"
    got = f"{people.cells.count} groups x {layout.kinds} kinds of rows"
    fix = f"{fix} groups or classes."
    need(layout.parts <= MOST_CODES, expected, of="the table", got=got, fix=fix)
    differ = len({*map(keys.shown, people.classes)}) == len(people.classes)
    listed, fix = list(people.classes), "Give classes names that differ when they are printed."
    need(differ, "different names", of="classes", got=listed, fix=fix)
    return layout
