"""Private tables, as JSON files too, and how one is computed again: from counts, noise, confidence,
groups, and nothing else.

Guarantees (tests/estimators/test_estimators_private_table_json.py):
1. `read(to_json)` gives the same table.
2. A file in which a count, rate, gap, interval, confidence, group or noise was changed is refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...methods import tables as table_gaps
from ...methods.counts import CountNoise
from ...methods.tables import EVERYONE, TableEvidence, TableLayout, TableLine, TableRate
from ...show.charts import Axis, Row, Rows
from ...show.numbers import percent, printable
from ...show.parts import Column, Note, Part, Shown, Table, draw_on
from ...statement.document import PrivacyStatement
from ...tables import keys
from ...tables.frames import pandas_for

if TYPE_CHECKING:
    from ...methods.tables import TableGap
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...facts import Cells
from ...statement.check import Finding
from ...statement.document import write
from .counts_json import CountsFile, checksum, columns_of, groups_to_dict, of_release

if TYPE_CHECKING:
    pass

FILE = CountsFile(
    "private table",
    frozenset(
        (
            *(
                "format",
                "version",
                "checksum",
                "confidence",
                "intervals",
                "small_below",
                "model",
                "groups",
                "depth",
                "classes",
            ),
            *("labelled", "counts", "known", "noise", "lines", "gaps", "statement"),
        )
    ),
)
TOLERANCE = 1e-6
RECOMPUTED = (
    "counts that fit",
    "rates",
    "gaps",
    "intervals",
    "noise",
    "the statement's epsilon",
    "checksum",
)
ON_TRUST = (
    "counts as released",
    "known totals",
    "model",
    "groups",
    "classes",
    "what the statement takes on trust",
)


def to_dict(table: PrivateTable) -> dict[str, Any]:
    """Plain JSON values, with a checksum."""
    layout = table.layout
    out: dict[str, Any] = {
        "format": FILE.format,
        "version": FILE.version,
        "confidence": table.confidence,
        "intervals": table.intervals,
        "small_below": table.small_below,
        "model": table.model,
        "groups": groups_to_dict(layout.cells),
        "depth": layout.depth,
        "classes": [keys.to_json(value, of="class") for value in layout.classes],
        "labelled": layout.labelled,
        "counts": [float(count) for count in table.counts],
        "known": None if table.known is None else np.asarray(table.known).tolist(),
        "noise": {"kind": table.noise.kind, "scale": table.noise.scale},
        **(table.results if table.stated is None else table.stated),
        "statement": table.privacy_.to_dict(),
    }
    return out | {"checksum": checksum(out)}


def is_private_table(text: str) -> bool:
    """Whether a document says that it is one."""
    return FILE.is_one(text)


def examine(text: str) -> tuple[PrivateTable, list[Finding]]:
    """A table, and all that contradicts it; malformed documents are an error."""
    return FILE.examine(text, _read, lambda table, _: findings(table))


def read(text: str) -> PrivateTable:
    """A table that agrees with itself; an error that names the first contradiction, if there is
    one."""
    return FILE.agreeing(examine(text))


def findings(table: PrivateTable) -> list[Finding]:
    """Compare what is stated with what follows from the counts."""
    out = of_release(table.privacy_, table.noise)
    if table.stated is not None:
        places = list(_differing(table.stated, table.results, ""))
        out += [Finding(True, f"{place} does not follow from the counts") for place in places[:10]]
    return out


def _differing(one: Any, other: Any, place: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict) and set(one) == set(other):
        for name in one:
            yield from _differing(
                one[name], other[name], f"{place}, {name}" if place else str(name)
            )
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (a, b) in enumerate(zip(one, other, strict=True), 1):
            yield from _differing(a, b, f"{place} {at}")
    elif type(one) in (int, float) and type(other) in (int, float):
        if not math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield place
    elif type(one) is not type(other) or one != other:
        yield place


def _read(values: Mapping[str, Any]) -> PrivateTable:
    statement, noise = FILE.statement(values), FILE.noise(values)
    confidence, groups = values["confidence"], values["groups"]
    if (
        not isinstance(confidence, float)
        or not 0.5 <= confidence < 1.0
        or values["intervals"] not in (EACH, ALL)
    ):
        raise FILE.malformed("a confidence that is none")
    layout = TableLayout(
        Cells(columns_of(groups), names=tuple(FILE.line(name) for name in groups["names"])),
        tuple(keys.plain(value, of="class") for value in values["classes"]),
        values["labelled"] is True,
        int(values["depth"]),
    )
    counts = np.array([float(count) for count in values["counts"]])
    known = None if values["known"] is None else np.array(values["known"], np.float64)
    if (
        counts.shape != (layout.parts,)
        or (np.abs(counts) > 2.0**53).any()
        or (counts != np.rint(counts)).any()
    ):
        raise FILE.malformed("counts that are not those of its groups and classes")
    if known is not None and (
        known.shape not in ((), (layout.kinds,)) or not ((known >= 0) & (known < 2.0**53)).all()
    ):
        raise FILE.malformed("known totals that are none")
    if (known is not None) and statement.is_private and not statement.promise.rows_are_public:
        raise FILE.malformed("known totals, where the number of rows is private")
    return PrivateTable(
        layout,
        counts,
        noise,
        known,
        confidence,
        str(values["intervals"]),
        int(values["small_below"]),
        statement,
        FILE.line(values["model"]),
        {"lines": values["lines"], "gaps": values["gaps"]},
    )


EACH, ALL = "each", "all"
Keys = tuple[Hashable, ...]


@dataclass(frozen=True)
class Gap:
    """The widest difference, or the smallest ratio, of one rate among groups.

    `value`: as released; `low` and `high`: between them lies the population's. `pair`: the group
    with the larger rate and that with the smaller one. `named_with`: the confidence with which this
    pair is the widest in the population; None: less than one half. `others`: pairs that may be it
    instead. `undefined`: groups without a rate; then there is no value, and no upper end.
    """

    rate: str
    value: float | None
    low: float | None
    high: float | None
    pair: Keys | None
    named_with: float | None
    others: tuple[Keys, ...]
    undefined: Keys

    def __str__(self) -> str:
        if self.value is None:
            absent = ", ".join(keys.shown(key) for key in self.undefined)
            return f"{self.rate}: undefined{f' (perhaps nobody: {absent})' if absent else ''}"
        ends = f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"
        if self.pair is None:
            return f"{self.rate}: {ends}"
        sure = (
            f"the widest pair with {self.named_with:.4g} confidence"
            if self.named_with
            else "which pair is the widest is unclear"
        )
        return (
            f"{self.rate}: {ends}, {keys.shown(self.pair[0])} above {keys.shown(self.pair[1])}: "
            f"{sure}"
        )


@dataclass(frozen=True, eq=False)
class PrivateTable(Shown):
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
    stated : dict or None
        Results as a file states them; None: recomputed.
    by_group : dict
        Rates of the finest groups, by key and name.
    overall : dict
        Rates of everyone, by name.

    See Also
    --------
    private_audit : Makes one.
    group_table : The same for rows that need no privacy, exactly.
    """

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
    stated: dict[str, Any] | None = field(default=None, repr=False)

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
        return self._gap(
            table_gaps.difference(self.evidence, self._groups(columns), self._rate(rate))
        )

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
        name = self._rate(rate)
        return self._gap(table_gaps.ratio(self.evidence, self._groups(columns), name))

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

    @cached_property
    def results(self) -> dict[str, Any]:
        """All that follows from the counts, as plain JSON values."""
        return results(self)

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
            values: dict[str, Any] = {
                "columns": self._columns(columns),
                "group": self._shown(key),
                "small": line.small,
            }
            values |= {
                "people": line.people.value,
                "people.low": line.people.low,
                "people.high": line.people.high,
            }
            for name, rate in line.rates.items():
                values |= {name: rate.value, f"{name}.low": rate.low, f"{name}.high": rate.high}
            out.append(values)
        frame = pd.DataFrame(out)
        return frame.astype(
            dict.fromkeys((name for name in frame if frame[name].isna().any()), float)
        )

    def plot(self, ax: object = None, rate: str | None = None, *columns: str) -> Any:
        """Draw points with their intervals by group. Marks of small groups are hollow.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.
        rate : str, default=None
            Name of the rate. None: the first.
        *columns : str
            Sensitive columns that make the groups; without one, those of the finest level.

        Returns
        -------
        matplotlib axes
            The axes.
        """
        groups = self.level(*columns)
        return draw_on(
            self._chart(self._rate(rate), [*groups.items(), (None, self.lines[EVERYONE, None])]), ax
        )

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
            for gap in gaps:
                yield Note(
                    f"Groups of {self._columns(level)}, widest difference: {printable(gap)}."
                )
        for name in self.layout.main:
            yield self._chart(name, [(key, line) for (_, key), line in self.lines.items()])

    def _gap(self, found: TableGap) -> Gap:
        def named(groups: Sequence[int]) -> Keys:
            return tuple(self.layout.groups[at].key for at in groups)

        pair = None if found.pair is None else named(found.pair)
        others = tuple(named(one) for one in found.others)
        return Gap(
            found.name,
            found.value,
            found.low,
            found.high,
            pair,
            found.named_with,
            others,
            named(found.undefined),
        )

    def _groups(self, columns: tuple[str, ...]) -> list[int]:
        level = self._level(columns)
        return [at for at, one in enumerate(self.layout.groups) if one.columns == level]

    def _level(self, columns: tuple[str, ...]) -> tuple[int, ...]:
        names = self.layout.cells.names
        if not self.levels:
            return EVERYONE
        if (
            not columns
            and len([level for level in self.levels if len(level) == len(self.levels[-1])]) == 1
        ):
            return self.levels[-1]
        found = tuple(sorted(names.index(name) for name in columns if name in names))
        if found not in self.levels or len(found) != len(columns):
            known = [" and ".join(names[j] for j in level) for level in self.levels]
            remedy = f"Name the columns of one level: {', '.join(known)}."
            raise InputError.expected(
                "a level of this table", of="columns", got=list(columns) or None, remedy=remedy
            )
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

    def check(self) -> list[Finding]:
        """Find every contradiction between stated values and what follows from the counts.

        Returns
        -------
        list of Finding
            Empty if there is none.
        """
        return findings(self)

    def to_dict(self) -> dict[str, Any]:
        """Describe it as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, as `to_json` writes them.
        """
        return to_dict(self)

    def to_json(self) -> str:
        """Write the table as a JSON document, which `fairveil verify` recomputes.

        Returns
        -------
        str
            The document.
        """
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> PrivateTable:
        """Read what `to_json` writes.

        A document that is malformed, was changed, or does not follow from its counts is an error.

        Parameters
        ----------
        text : str
            The document.

        Returns
        -------
        PrivateTable
            The same, checked.
        """
        return read(text)

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


def _ends(rate: TableRate) -> tuple[float | None, float | None, float | None]:
    if rate.value is None or rate.low is None or rate.high is None:
        return None, None, None
    return rate.value, rate.low, rate.high


def results(table: PrivateTable) -> dict[str, Any]:
    """All that follows from the counts."""
    names = table.layout.cells.names
    lines = [
        {
            "columns": [names[j] for j in columns],
            "group": keys.to_json(key, of="group"),
            "people": asdict(line.people),
            "labels": [asdict(one) for one in line.labels],
            "small": line.small,
            "rates": {name: asdict(rate) for name, rate in line.rates.items()},
        }
        for (columns, key), line in table.lines.items()
    ]
    gaps = [
        {"columns": [names[j] for j in level], "differences": [_gap(gap) for gap in found]}
        for level, found in table.gaps.items()
    ]
    return {"lines": lines, "gaps": gaps}


def _gap(gap: Gap) -> dict[str, Any]:
    def key(value: object) -> Any:
        return keys.to_json(value, of="group")

    return {
        "rate": gap.rate,
        "value": gap.value,
        "low": gap.low,
        "high": gap.high,
        "pair": None if gap.pair is None else [key(one) for one in gap.pair],
        "named_with": gap.named_with,
        "others": [[key(one) for one in pair] for pair in gap.others],
        "undefined": [key(one) for one in gap.undefined],
    }
