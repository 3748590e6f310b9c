"""The schema: what is public about a table, stated by its holder and never read from its rows."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from .. import _checks
from .._json import Document
from .._reading import MIB, read_text
from ..core.layout import MOST_VALUES, Cells, GroupMode
from ..errors import DataNotFoundError, InputError, SchemaError, complaint, together
from .columns import Boolean, Category, Column, Ignored, Number, Value
from .declared import checked_columns, columns_of, in_words, suffix, texts
from .roles import FIELDS, no_column, of_keys, unknown_roles, wrong_unit
from .toml_text import document

FORMAT = 1
Checked = TypeVar("Checked")
LARGEST_FILE = 64 * MIB
JSON = Document("schema in JSON", "Mend the JSON there.", SchemaError, largest=LARGEST_FILE)
HANDLED: Mapping[str, Any] = {
    "max_sample_weight": 1.0,
    "target_bounds": None,
    "sensitive_as_feature": False,
    "unsafe_data_dependent_bounds": False,
}
"""Facts that say how a fit handles rows, with their defaults."""
COUNTED = ("rows", "max_rows_per_unit")
TOML = Document("schema in TOML", "Mend the TOML there.", SchemaError, largest=LARGEST_FILE)


@dataclass(frozen=True, eq=False)
class Schema:
    """Public facts of a table: its columns with kinds and bounds, the target, the groups, about how
    many rows.

    Columns of a table that the schema does not name are not read. A schema without columns states
    the other facts alone, and the columns are read from the table.

    Parameters
    ----------
    columns : mapping, default={}
        Name to `Number`, `Category`, `Boolean` or `Ignored`, in the order that features take.
    target : str, default=None
        The column to predict: a category or boolean (its values are the classes) or a number (its
        bounds are the target's).
    sensitive : str or list of str, default=()
        The columns that make the groups; their values are the group values.
    rows : int, default=None
        About how many rows there are, if that is public. None: a noisy count is released where it
        is needed.
    name : str, default=""
        What the table is called.
    missing_values : list of str, default=("",)
        Texts that mean "missing" unless a column lists them.
    source : str, default=""
        Where these facts come from, in words.
    unit : str, default=None
        The column that tells persons apart, where a person may have several rows: `Ignored()`, or
        not declared. Fits then protect persons, with all of their rows.
    max_rows_per_unit : int, default=None
        Most rows of one person that a fit reads, a public number. A person with more rows has so
        many of them drawn.
    max_sample_weight : float, default=1.0
        Larger sample weights are clipped to it, unless nothing is private. It multiplies every
        sensitivity, and so the noise.
    target_bounds : pair of float, default=None
        Public bounds of y where no column states them; y is clipped to them. None: the range of y
        where y is public. Otherwise (-1, 1), with a warning.
    sensitive_as_feature : bool, default=False
        Whether sensitive columns are features too, for ``protects="records"`` alone.
    unsafe_data_dependent_bounds : bool, default=False
        Scale numbers by means and standard deviations of the training rows, which no guarantee
        covers. The statement is flagged ``data-dependent-bounds``.

    Examples
    --------
    >>> columns = {"age": Number(17, 90), "sex": Category(("f", "m")), "hired": Boolean()}
    >>> schema = Schema(columns, target="hired", sensitive=["sex"])
    >>> schema.features, schema.classes
    (('age',), (False, True))
    >>> Schema.from_toml(schema.to_toml()) == schema
    True
    >>> Schema(rows=10_000, unit="patient", max_rows_per_unit=4).declared is None
    True
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    target: str | None = None
    sensitive: tuple[str, ...] = ()
    rows: int | None = None
    name: str = ""
    missing_values: tuple[str, ...] = ("",)
    source: str = ""
    unit: str | None = None
    max_rows_per_unit: int | None = None
    max_sample_weight: float = 1.0
    target_bounds: tuple[float, float] | None = None
    sensitive_as_feature: bool = False
    unsafe_data_dependent_bounds: bool = False

    def __post_init__(self) -> None:
        _checks.normalise(self, columns=MappingProxyType(checked_columns(self.columns)))
        _checks.normalise(self, sensitive=texts(self.sensitive, "sensitive"))
        _checks.normalise(self, missing_values=texts(self.missing_values, "missing_values"))
        for option, got in _checks.named(self, ("name", "source")).items():
            if not isinstance(got, str):
                raise SchemaError.expected(
                    "a text", of=option, got=got, remedy=f'Pass {option}="...".'
                )
        if self.rows is not None:
            _checks.normalise(
                self, rows=_as_schema_error(lambda: _checks.whole(rows=self.rows, at_least=1))
            )
        if self.max_rows_per_unit is not None:
            most = _as_schema_error(
                lambda: _checks.whole(max_rows_per_unit=self.max_rows_per_unit, at_least=1)
            )
            _checks.normalise(self, max_rows_per_unit=most)
        heaviest = _as_schema_error(
            lambda: _checks.positive(max_sample_weight=self.max_sample_weight)
        )
        _checks.normalise(self, max_sample_weight=heaviest)
        if self.target_bounds is not None:
            _checks.normalise(self, target_bounds=_bounds(self.target_bounds))
        for option in ("sensitive_as_feature", "unsafe_data_dependent_bounds"):
            truth = _as_schema_error(partial(_checks.truth, **{option: getattr(self, option)}))
            _checks.normalise(self, **{option: truth})
        self._check_roles()

    def _check_roles(self) -> None:
        wrong = list(self._wrong_roles())
        if wrong:
            raise together(wrong)

    def _wrong_roles(self) -> Iterator[SchemaError]:
        """All that is wrong with target and sensitive columns."""
        roles = [("target", self.target)] if self.target is not None else []
        roles += [("sensitive", name) for name in self.sensitive]
        for role, name in roles:
            if not _is_column(name, self.columns):
                yield no_column(role, name, list(self.columns))
                continue
            allowed = (Category, Boolean) if role == "sensitive" else (Category, Boolean, Number)
            if not isinstance(self.columns[name], allowed):
                expected, of = " or ".join(kind.kind for kind in allowed), f"{role} column {name!r}"
                remedy = "Declare its values (groups of a number: make a column of ranges first)."
                yield SchemaError.expected(
                    expected, of=of, got=self.columns[name].kind, remedy=remedy
                )
            elif role == "sensitive" and len(self.listed(name)) > MOST_VALUES:
                remedy = (
                    "List the values that are frequent and one for the others, and declare that "
                    "one as unknown."
                )
                expected, got = (
                    f"at most {MOST_VALUES:,} values",
                    f"{len(self.listed(name)):,} of them",
                )
                yield SchemaError.expected(
                    expected, of=f"{role} column {name!r}", got=got, remedy=remedy
                )
            elif role == "target" and self.classes is not None and len(self.classes) < 2:
                remedy, of = "List every class that may occur.", f"target column {name!r}"
                wrong = complaint(
                    expected="at least two classes", of=of, got=list(self.classes), remedy=remedy
                )
                yield SchemaError(wrong)
        yield from wrong_unit(self.unit, self.max_rows_per_unit, self.columns)
        if self.columns and self.target_bounds is not None:
            remedy = "Leave it out: the target is declared with its bounds, as a Number."
            yield SchemaError.expected(
                "None beside columns", of="target_bounds", got=self.target_bounds, remedy=remedy
            )
        if len(set(self.sensitive)) != len(self.sensitive) or self.target in self.sensitive:
            remedy = (
                "Name each sensitive column once; copy the column under another name to use it "
                "twice."
            )
            expected = "distinct columns, none of them the target"
            yield SchemaError.expected(expected, of="sensitive", got=self.sensitive, remedy=remedy)

    # What the facts say

    @staticmethod
    def of(given: object) -> Schema:
        """What was given, checked: a schema without any fact where it was None.

        Parameters
        ----------
        given : Schema or None
            What was given.

        Returns
        -------
        Schema
            The same; one without any fact where it was None.
        """
        if given is None:
            return Schema()
        if not isinstance(given, Schema):
            remedy, got = "Read one with Schema.load(path).", type(given).__name__
            raise InputError.expected("a Schema or None", of="schema", got=got, remedy=remedy)
        return given

    @property
    def declared(self) -> Schema | None:
        """The schema, where it declares columns; None of one that states other facts alone."""
        return self if self.columns else None

    def require_columns(self) -> Schema:
        """The schema, where it declares columns; else an error."""
        if not self.columns:
            remedy = "Declare the columns of the table; Schema.load(path) reads them."
            raise SchemaError.expected("one with columns", of="schema", got=self, remedy=remedy)
        return self

    @property
    def features(self) -> tuple[str, ...]:
        """Columns that are features: neither ignored, nor the target, nor sensitive."""
        taken = {self.target, *self.sensitive}
        return tuple(
            name
            for name, column in self.columns.items()
            if name not in taken and not isinstance(column, Ignored)
        )

    @property
    def classes(self) -> tuple[Value, ...] | None:
        """The labels in the order of their codes; None without a target or when it is a number."""
        column = self.columns[self.target] if self.target is not None else None
        return column.values if isinstance(column, Category | Boolean) else None

    @property
    def groups(self) -> tuple[tuple[Value, ...], ...]:
        """The values of each sensitive column, in the order of their codes."""
        return tuple(self.listed(name) for name in self.sensitive)

    def listed(self, name: str) -> tuple[Value, ...]:
        """The values of a category or boolean column.

        Parameters
        ----------
        name : str
            Of the column.

        Returns
        -------
        tuple
            Values, in the order of their codes.
        """
        column = self.columns[name]
        if not isinstance(column, Category | Boolean):
            raise SchemaError.expected(
                "a category or boolean",
                of=f"column {name!r}",
                got=column.kind,
                remedy="Numbers have bounds instead.",
            )
        return column.values

    def cells(self, mode: GroupMode = "product") -> Cells:
        """The groups as cells of a histogram.

        Parameters
        ----------
        mode : {"product", "marginal"}, default="product"
            Whether several sensitive columns are combined, or taken one by one.

        Returns
        -------
        Cells
            The cells.
        """
        return Cells(self.groups, mode=mode, names=self.sensitive)

    def with_roles(
        self, *, target: str | None = None, sensitive: Iterable[str] | None = None
    ) -> Schema:
        """The same columns with another target or other sensitive columns.

        Parameters
        ----------
        target : str, default=None
            The column to predict. None: as it is.
        sensitive : list of str, default=None
            The columns that make the groups. None: as they are.

        Returns
        -------
        Schema
            Another schema.
        """
        return dataclasses.replace(
            self,
            target=self.target if target is None else target,
            sensitive=self.sensitive if sensitive is None else texts(sensitive, "sensitive"),
        )

    def with_unit(self, unit: str, max_rows_per_unit: int | None = None) -> Schema:
        """The same facts about persons, identified by a column that is no feature and has no other
        role.

        Parameters
        ----------
        unit : str
            The column that tells persons apart.
        max_rows_per_unit : int, default=None
            Most rows of one person that are read. None: as it is.

        Returns
        -------
        Schema
            Another schema.
        """
        most = self.max_rows_per_unit if max_rows_per_unit is None else max_rows_per_unit
        return dataclasses.replace(self, unit=unit, max_rows_per_unit=most)

    def without_unit(self) -> Schema:
        """The same facts about rows: guarantees are then each row's, and no person's with
        several."""
        return dataclasses.replace(self, unit=None, max_rows_per_unit=None)

    def without(self, *names: str) -> Schema:
        """The same facts without some columns, in whatever role: rows to predict have no target.

        Parameters
        ----------
        *names : str
            Of the columns.

        Returns
        -------
        Schema
            Another schema.

        Examples
        --------
        >>> Schema({"age": Number(0, 100), "hired": Boolean()}, target="hired").without(
        ...     "hired"
        ... ).features
        ('age',)
        """
        for name in names:
            if name not in self.columns:
                listed = f"one of the columns {list(self.columns)}"
                raise SchemaError.expected(
                    listed, of="without", got=name, remedy="Name a declared column."
                )
        return dataclasses.replace(
            self,
            columns={name: column for name, column in self.columns.items() if name not in names},
            target=None if self.target in names else self.target,
            sensitive=tuple(name for name in self.sensitive if name not in names),
        )

    def describe(self) -> str:
        """The facts in plain words, one column a line."""
        lines = [
            f"Schema {self.name}".rstrip() + (f": about {self.rows:,} rows" if self.rows else "")
        ]
        width = max(map(len, self.columns), default=0)
        for name, column in self.columns.items():
            role = (
                "target" if name == self.target else "sensitive" if name in self.sensitive else ""
            )
            lines.append(f"  {name:<{width}}  {in_words(column)}" + (f"  [{role}]" if role else ""))
        if self.unit is not None:
            most = (
                ""
                if self.max_rows_per_unit is None
                else f", at most {self.max_rows_per_unit:,} rows each"
            )
            lines.append(f"  unit: persons, identified by {self.unit}{most}")
        lines += [f"  {name}: {value}" for name, value in self._handled().items()]
        if self.source:
            lines.append(f"  source: {self.source}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        if not self.columns:
            told = ((one.name, getattr(self, one.name)) for one in dataclasses.fields(self)[3:])
            usual = Schema().__dict__
            said = [f"{name}={value!r}" for name, value in told if value != usual[name]]
            return f"Schema({', '.join(said)})"
        roles = f"target={self.target!r}, sensitive={self.sensitive!r}"
        return (
            f"Schema({self.name!r}, {len(self.columns)} columns, {roles}, {self.fingerprint[:12]})"
        )

    # Identity: by the canonical JSON, because Python takes 1, 1.0 and True for the same value

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON of what is public about the table: equal exactly when every
        such fact, its type and the order of columns are equal. How many rows there are, how many
        of a person are read, and how weights, targets and bounds are handled, is no part of it: it
        changes no coded row."""
        text = json.dumps(
            {
                key: value
                for key, value in self.to_dict().items()
                if key not in (*HANDLED, *COUNTED)
            },
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=True,
            allow_nan=False,
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        beside = [
            ([getattr(one, name) for name in COUNTED], one._handled()) for one in (self, other)
        ]
        return self.fingerprint == other.fingerprint and beside[0] == beside[1]

    def _handled(self) -> dict[str, Any]:
        """The facts that no fingerprint has, where they are stated."""
        stated = {name: getattr(self, name) for name in HANDLED}
        return {name: value for name, value in stated.items() if value != HANDLED[name]}

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return Schema.from_dict, (self.to_dict(),)

    # To and from files

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without what is not stated."""
        stated = {
            "name": self.name,
            "source": self.source,
            "rows": self.rows,
            "target": self.target,
        }
        stated |= {"unit": self.unit, "max_rows_per_unit": self.max_rows_per_unit}
        columns = [
            {"name": name, "kind": column.kind, **column.facts()}
            for name, column in self.columns.items()
        ]
        return {
            "fairveil_schema": FORMAT,
            **{key: value for key, value in stated.items() if value not in (None, "")},
            **self._handled(),
            "sensitive": list(self.sensitive),
            "missing_values": list(self.missing_values),
            **({"columns": columns} if columns else {}),
        }

    @staticmethod
    def from_dict(values: object) -> Schema:
        """The inverse of `to_dict`, with every check of the constructor.

        Parameters
        ----------
        values : mapping
            Plain values, as `to_dict` gives them.

        Returns
        -------
        Schema
            The schema.
        """
        if not isinstance(values, Mapping):
            raise of_keys(type(values).__name__)
        wrong: list[InputError] = []
        if not set(values) <= set(FIELDS):
            wrong.append(of_keys(sorted(map(str, set(values) - set(FIELDS)))))
        if values.get("fairveil_schema") is not FORMAT:
            got, remedy = (
                values.get("fairveil_schema"),
                f"Write fairveil_schema = {FORMAT}, the version of this format.",
            )
            wrong.append(
                SchemaError.expected(str(FORMAT), of="fairveil_schema", got=got, remedy=remedy)
            )
        try:
            columns = columns_of(values["columns"]) if "columns" in values else {}
        except InputError as error:
            raise together([*wrong, error, *unknown_roles(values)]) from None
        options = {
            key: value
            for key, value in values.items()
            if key in FIELDS and key not in ("fairveil_schema", "columns")
        }
        try:
            made = Schema(columns, **options)
        except InputError as error:
            raise together([*wrong, error]) from None
        if wrong:
            raise together(wrong)
        return made

    def to_json(self) -> str:
        """JSON text that `from_json` reads back."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @staticmethod
    def from_json(text: str) -> Schema:
        """A schema from JSON text.

        Parameters
        ----------
        text : str
            What `to_json` gave.

        Returns
        -------
        Schema
            The schema.
        """
        return Schema.from_dict(JSON.json(text))

    def to_toml(self) -> str:
        """TOML text that `from_toml` reads back."""
        return document(self.to_dict())

    @staticmethod
    def from_toml(text: str) -> Schema:
        """A schema from TOML text.

        Parameters
        ----------
        text : str
            What `to_toml` gave.

        Returns
        -------
        Schema
            The schema.
        """
        return Schema.from_dict(TOML.toml(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a `.toml` or `.json` file, whole or not at all.

        Parameters
        ----------
        path : path
            A file that ends in .toml or .json.
        """
        target = Path(path)
        text = self.to_toml() if suffix(target) == ".toml" else self.to_json()
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(target)
        except OSError as error:
            remedy = "Make the folder first, or name another."
            raise DataNotFoundError.expected(
                "a place to write a schema to", of=str(target), got=error.strerror, remedy=remedy
            ) from None
        finally:
            partial.unlink(missing_ok=True)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Schema:
        """Read a `.toml` or `.json` file.

        Parameters
        ----------
        path : path
            A file that ends in .toml or .json.

        Returns
        -------
        Schema
            The schema.
        """
        source = Path(path)
        read = Schema.from_toml if suffix(source) == ".toml" else Schema.from_json
        text = read_text(
            source,
            what="a schema file",
            most=LARGEST_FILE,
            remedy="Write one with Schema.save().",
            error=SchemaError,
        )
        return read(text)


def _is_column(name: object, columns: Mapping[str, Column]) -> bool:
    return isinstance(name, str) and name in columns


def _bounds(given: Any) -> tuple[float, float]:
    """Checked."""
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        remedy = "Pass target_bounds=(0.0, 100.0), say: public numbers, from what y is."
        expected = "two finite numbers, low < high"
        raise SchemaError.expected(expected, of="target_bounds", got=given, remedy=remedy)
    return low, high


def _as_schema_error(check: Callable[[], Checked]) -> Checked:
    try:
        return check()
    except InputError as error:
        raise SchemaError(*error.args) from None
