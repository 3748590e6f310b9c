"""The rows of a command: coded by a schema, or raw columns; whose they are; and coins that say which
are set aside.

Where presence is private (add-remove), a row that is taken away must change no other row's lot. So
each row, or person, has an independent coin: no fixed number of rows, no shuffle, nothing that depends
on a place in the table. Then neighbouring tables give training parts that differ in the same one row
at most, and the promise of a fit to the one part is one about the whole table.

Guarantees (tests/cli/test_cli_rows.py):
1. Without a seed the coins are secret: ChaCha20 under a fresh key of the operating system, used for
   nothing else. Each row is set aside with probability exactly `share`, independently of the others,
   of what any row says and of how many there are. With a seed they depend on the seed and the place
   alone, and what is fitted then is flagged.
2. No person has rows both among those to fit and among those to measure on: a split keeps persons
   whole, a test table with some of the same persons is refused, and the error names nobody.
3. What is measured on held-out persons is measured on one row of each, drawn by coins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.noise import NoiseSource
from ..core.persons import kept, persons_of
from ..errors import InputError
from ..estimators.faces import as_array
from ..estimators.reading import inputs
from ..estimators.reading.coding import TableCoding
from ..estimators.reading.training import ReadOptions
from ..estimators.reading.units import whose
from ..facts import Schema
from ..facts.rows import PERSON_BY_PERSON
from ..statement.document import PublicFact
from ..study.held_out import HeldOut
from ..tables.raw import is_missing
from .frame import Ask, wrong
from .roles import Roles
from .tables import Columns, Place, picked

Values = npt.NDArray[Any]
SECRET = "by a secret coin of its own that reads no data and hangs on no other row"
SEEDED = (
    "by a coin that the seed and its place in the table decide, which reads no data; whoever knows "
    "the seed knows the coins"
)


def set_aside(rows: int, share: float, seed: int | None) -> npt.NDArray[np.bool_]:
    """Which of so many rows are set aside."""
    if seed is not None:
        return np.asarray(np.random.default_rng([seed, 0x5EED]).random(rows) < share)
    out = np.zeros(rows, dtype=bool)
    if share > 0.0:
        out[NoiseSource.secure().stream("sampling", 0).poisson_batch(rows, float(share))] = True
    return out


def coins_in_words(
    share: float, *, seeded: bool, presence_is_private: bool, by_person: bool = False
) -> str:
    """How rows were set aside, for a statement."""
    whose = "each person, with all of their rows," if by_person else "each row of the table"
    how = f"{whose} was set aside with probability {share:g} {SEEDED if seeded else SECRET}"
    how = how.replace("no other row", "no other person") if by_person else how
    if seeded and presence_is_private:
        one = "person" if by_person else "row"
        how += f", and a {one} more or less moves the coins of those after it"
    return how


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Truth:
    """Labels and groups of rows, as they are written."""

    labels: Values
    groups: Columns


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """Rows with labels and groups: coded by a schema. `elsewhere`: on a cluster, where none can be
    set aside."""

    rows: Any
    elsewhere: bool = False

    @property
    def size(self) -> int:
        """How many rows: private under add-remove."""
        return sum(block.rows for block in self.rows.blocks())

    @property
    def fit_arguments(self) -> tuple[Any, Any, Any]:
        """(X, y, sensitive_features) for an estimator."""
        return self.rows, None, None

    @property
    def features(self) -> Any:
        """What an estimator predicts from."""
        return self.rows

    @property
    def options(self) -> ReadOptions:
        """How the rows are read."""
        return ReadOptions()

    @property
    def knows_persons(self) -> bool:
        """Whether rows were coded with whose they are."""
        if self.elsewhere:
            return self.rows.encoding.schema.unit is not None
        return any(block.persons is not None for block in self.rows.blocks())

    @property
    def persons(self) -> Values | None:
        """Whose each row is, where that can be read here."""
        if self.elsewhere:
            return None
        found = [block.persons for block in self.rows.blocks() if block.persons is not None]
        whole = np.concatenate(found) if found else None
        if whole is None or whole.dtype != PERSON_BY_PERSON:
            return whole
        return np.cumsum(whole["begins"], dtype=np.int64)

    def truth(self) -> Truth:
        """Labels and groups."""
        layout, blocks = self.rows.layout, list(self.rows.blocks())
        labels = np.concatenate([np.asarray(block.labels) for block in blocks])
        groups = {}
        for at, (name, values) in enumerate(
            zip(layout.sensitive_names, layout.sensitive, strict=True)
        ):
            codes = np.concatenate([np.asarray(block.sensitive)[at] for block in blocks])
            groups[name] = as_array(values)[codes]
        return Truth(as_array(layout.classes or ())[labels], groups)

    def part(self, chosen: npt.NDArray[np.bool_]) -> Sample:
        """Some of the rows."""
        if self.elsewhere:
            remedy = "Measure on other rows with --test; rows of a cluster are not set aside."
            raise wrong("holdout", "0 beside --scheduler", "a share", remedy)
        return Sample(self.rows.chosen(np.flatnonzero(chosen)))

    def require_like(self, held: Sample, of: str) -> None:
        """An error where a model of these rows could not be measured on `held`: found before the fit
        is charged. One schema coded both."""
        assert self.elsewhere or held.rows.layout == self.rows.layout

    def split(self, share: float, seed: int | None) -> tuple[Sample, Sample]:
        """(rows to fit, rows held out): each row, or person, by an independent coin."""
        people = self.persons
        if people is None:
            size = 0 if self.elsewhere else self.size
            out = set_aside(size, share, seed)
        else:
            numbers = persons_of(people, self.size)
            out = set_aside(int(numbers.max(initial=-1)) + 1, share, seed)[numbers]
        if not self.elsewhere and (out.all() or not out.any()):
            remedy = "Take another share, or other rows with --test."
            what = "rows" if people is None else "persons"
            raise wrong("holdout", f"{what} in both parts", share, remedy)
        return self.part(~out), self.part(out)

    def one_of_each(self, seed: int | None) -> Sample:
        """One row of each person, drawn by coins: intervals on held-out rows take these for
        independent draws. The same where no persons are known."""
        people = self.persons
        if people is None:
            return self
        chosen = np.zeros(self.size, bool)
        stream = NoiseSource.of(seed).stream("units", 1)
        chosen[kept(persons_of(people, self.size), 1, stream)] = True
        return self.part(chosen)


@dataclass(frozen=True, eq=False, repr=False)
class RawSample(Sample):
    """Raw columns: without a schema. `rows` are the columns by name; `unit`: the one that tells
    persons apart."""

    target: str = ""
    sensitive: tuple[str, ...] = ()
    unit: str | None = None

    @property
    def size(self) -> int:
        return len(self.rows[self.target])

    @property
    def fit_arguments(self) -> tuple[Any, Any, Any]:
        return self.features, self.rows[self.target], list(self.sensitive) or None

    @property
    def features(self) -> Columns:
        return {name: column for name, column in self.rows.items() if name != self.target}

    @property
    def knows_persons(self) -> bool:
        return self.unit is not None

    @property
    def persons(self) -> Values | None:
        return None if self.unit is None else self.rows[self.unit]

    @property
    def options(self) -> ReadOptions:
        return ReadOptions(whose=whose(self.unit, None if self.unit is None else 1, None))

    def truth(self) -> Truth:
        return Truth(self.rows[self.target], {name: self.rows[name] for name in self.sensitive})

    def part(self, chosen: npt.NDArray[np.bool_]) -> RawSample:
        columns = {name: column[chosen] for name, column in self.rows.items()}
        return replace(self, rows=columns)

    def require_like(self, held: Sample, of: str) -> None:
        """Words, classes and groups are those of the rows to fit: others cannot be measured on."""
        training = inputs.read(*self.fit_arguments, None, self.options)
        assert isinstance(training.coding, TableCoding)
        features, layout = training.coding.features, training.rows.layout
        picked(held.rows, [feature.name for feature in features], "the rows to measure on", of)
        known: dict[str, Any] = {}
        known |= {one.name: one.values for one in features if one.values is not None}
        known |= dict(zip(layout.sensitive_names, layout.sensitive, strict=True))
        for name, values in {**known, self.target: training.classes}.items():
            strange = {one for one in held.rows[name].tolist() if not is_missing(one)} - {*values}
            if strange:
                got = f"{len(strange)} others in rows to measure on"
                remedy = (
                    "List all values in a schema (--schema), leave those rows out, or a feature with "
                    "--ignore."
                )
                expected, place = "words of the rows to fit alone", f"column {name!r}"
                raise wrong(place, expected, got, remedy)
        HeldOut.read(held.fit_arguments, training, self.options)


def sample_of(
    roles: Roles, place: Place, like: Sample | None = None, scheduler: str | None = None
) -> Sample:
    """The rows of a place; everything that does not fit is an error now, before any release.
    `like`: rows whose columns of words are columns of words here too, whatever their cells look
    like. `scheduler`: a cluster that reads them."""
    if roles.schema is not None:
        sample = (
            Sample(place.coded(roles.schema))
            if scheduler is None
            else Sample(_scheduled(roles.schema, place, scheduler), elsewhere=True)
        )
        if scheduler is None and not sample.size:
            raise _no_rows(place)
        return _with_persons(roles, sample, place)
    if scheduler is not None:
        remedy = "Write one with `fairveil schema init`, and pass --schema."
        raise wrong("schema", "a schema", None, remedy)
    before = like.rows if isinstance(like, RawSample) else {}
    words = [name for name, column in before.items() if column.dtype == object]
    columns = place.columns(words)
    picked(columns, (roles.target,), place.shown, "target")
    picked(columns, roles.sensitive, place.shown, "sensitive")
    picked(columns, roles.ignore, place.shown, "ignore")
    columns = {name: column for name, column in columns.items() if name not in roles.ignore}
    if not len(columns[roles.target]):
        raise _no_rows(place)
    for name in (roles.target, *roles.sensitive):
        _require_all(columns[name], name)
    raw = RawSample(columns, target=roles.target, sensitive=roles.sensitive)
    return _with_persons(roles, raw, place)


def _with_persons(roles: Roles, sample: Sample, place: Place) -> Sample:
    """The rows, which know whose each is."""
    if roles.unit is None or sample.knows_persons:
        return sample
    if not isinstance(sample, RawSample):
        remedy = "Name a column of the table; encode a store anew by a schema with the unit."
        expected = f"a column {roles.unit!r}"
        raise wrong("unit", expected, "a table without it", remedy)
    picked(sample.rows, (roles.unit,), place.shown, "unit")
    if roles.unit in (roles.target, *roles.sensitive):
        remedy = "Name another: who somebody is is neither to be predicted nor a group."
        raise wrong("unit", "a column with no other role", roles.unit, remedy)
    return replace(sample, unit=roles.unit)


def facts_of(roles: Roles, rows: int | None) -> Schema:
    """What an estimator is told of the table."""
    schema = Schema() if roles.schema is None else roles.schema
    return replace(schema, rows=rows, unit=roles.unit, max_rows_per_unit=roles.most)


def _scheduled(schema: Schema, place: Place, scheduler: str) -> Any:
    """The rows of a file, a folder or a store that all workers of a cluster see."""
    from ..distributed import DaskRows

    if place.query is not None:
        remedy = "Write a coded store with `fairveil encode`, where all workers see it."
        raise wrong("query", "files beside --scheduler", "a database", remedy)
    store = (
        place.kind() == "store"
    )  # a place that is not there is an error before a cluster is asked
    rows = DaskRows(scheduler, place.address, None if store else schema)
    if rows.encoding.schema.fingerprint != schema.fingerprint:
        remedy = "Write the store again by the schema and the roles that are asked for now."
        raise wrong("schema", "the store's own schema and roles", "others", remedy)
    return rows


def require_others(fitted: Sample, held: Sample) -> None:
    """Nobody is measured on who was fitted to. A coded store and a cluster know no names, so there
    this cannot be told."""
    people, others = fitted.persons, held.persons
    numbers = np.dtype(np.int64)
    if (
        people is None
        or others is None
        or (not isinstance(fitted, RawSample) and numbers in (people.dtype, others.dtype))
    ):
        got, expected = "a store, which does not", "tables that name persons"
        remedy = "Use --holdout, which keeps persons whole; or read the table itself."
    elif set(people.tolist()) & set(others.tolist()):
        got, expected = "some of the same", "other persons than TABLE's"
        remedy = "Leave these out of one table, or use --holdout, which keeps persons whole."
    else:
        return
    raise wrong("test", expected, got, remedy)


def read(ask: Ask, roles: Roles, place: Place, share: float) -> tuple[Sample, Sample | None]:
    """The rows to fit, and those to measure on, if any: of `--test`, or a share of TABLE."""
    sample = sample_of(roles, place, scheduler=getattr(ask, "scheduler", None))
    other = None if ask.test is None and ask.test_query is None else ask.test or place.address
    held = None
    if other is not None:
        held = sample_of(roles, Place(other, ask.test_query), like=sample)
        if roles.unit is not None:
            require_others(sample, held)
    elif share:
        sample, held = sample.split(share, ask.seed)
    if held is not None:
        sample.require_like(held, "holdout" if other is None else "test")
        held = held.one_of_each(ask.seed)
    return sample, held


def with_rows_from(
    facts: Sequence[PublicFact], rows_are: str | None, share: float
) -> tuple[PublicFact, ...]:
    """The facts, their number of rows with where the command has it from: "schema" or "argument",
    less what is held out."""
    if rows_are is None:
        return tuple(facts)
    origin: Any = f"{rows_are} x (1 - holdout)" if share else rows_are
    return tuple(
        replace(one, origin=origin) if one.name == "number of rows" else one for one in facts
    )


def _no_rows(place: Place) -> InputError:
    return wrong(place.shown, "some rows", "none", "Pass a table with rows.")


def _require_all(column: Values, name: str) -> None:
    empty = sum(map(is_missing, column.tolist()))
    if empty:
        remedy = 'Leave those rows out, or give the cells a word of their own, such as "unknown".'
        got = f"{empty} of {len(column)} empty"
        raise wrong(f"column {name!r}", "a value in every row", got, remedy)
