"""What `fit` was given, as the rows of a curator: by a schema, as coded rows, or as tables come. Shared by all estimators.

Everything is matched by position, never by an index. Columns of X that are named as sensitive are no features, unless asked.
What is read from the data rather than stated is listed as a public fact with that origin, for the privacy statement.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import assert_all_finite, column_or_1d

from ..curator import Rows
from ..data import Encoding, encode
from ..data.coding import Plain, Raw
from ..errors import InputError, complaint
from ..facts import RowBlock, RowLayout, RowSource, Schema
from ..fairness.inputs import read_columns, read_weights, same_length
from ..models.model import known_classes
from ..privacy.statement import READ_FROM_DATA, Origin, PublicFact
from .coding import BLOCK_ROWS, Coding, Feature, RowsCoding, SchemaCoding, Standard, TableCoding
from .distinct import distinct, in_words
from .grids import Grid, grid_of, numbers_of


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Training:
    """The rows of a fit, and what is public about them.

    `columns`: the names of X's columns (with a schema, of those that are features), none where X had no names. `n_features`:
    how many such columns there are. `rows_stated`: the schema's number of rows, if any.
    """

    rows: Rows
    coding: Coding
    facts: tuple[PublicFact, ...]
    not_covered: tuple[str, ...]
    columns: tuple[str, ...]
    n_features: int
    rows_stated: int | None = None

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""
        return self.rows.layout.classes or ()


@dataclass(frozen=True)
class Ways:
    """How rows are to be read: the arguments of an estimator that say so."""

    schema: Schema | None = None
    sensitive_as_feature: bool = False
    standardise: bool = False
    max_sample_weight: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """Coded rows with their weights, as a `RowSource`."""

    layout: RowLayout
    _blocks: tuple[RowBlock, ...]

    def blocks(self) -> Iterator[RowBlock]:
        """All rows."""
        return iter(self._blocks)


@dataclass(frozen=True, eq=False, repr=False)
class _Read:
    """Blocks without weights, how features were coded, and what is public."""

    coding: Coding
    layout: RowLayout
    blocks: list[RowBlock]
    facts: list[PublicFact]
    columns: tuple[str, ...]
    n_features: int


def read(X: Any, y: Any, sensitive_features: Any, sample_weight: Any, ways: Ways) -> Training:
    """The rows of a fit, checked before any release."""
    schema: Any = ways.schema
    if schema is not None and not isinstance(schema, Schema):
        remedy = "Read one with Schema.load(path)."
        raise InputError(complaint(expected="a Schema or None", of="schema", got=type(schema).__name__, remedy=remedy))
    if isinstance(X, RowSource):
        found = _from_rows(X, y, sensitive_features, schema)
    elif schema is not None:
        found = _by_schema(X, y, sensitive_features, schema, ways.sensitive_as_feature)
    else:
        found = _as_it_comes(X, y, sensitive_features, ways.sensitive_as_feature)
    if len(found.layout.classes or ()) < 2:
        got = f"one class: {in_words(found.layout.classes or ())}" if found.layout.classes else "numbers"
        remedy = "Pass labels of at least two classes; a schema may list classes that do not occur."
        raise InputError(complaint(expected="labels of at least two classes", of="y", got=got, remedy=remedy))
    known_classes(found.layout.classes or ())
    coding, blocks = found.coding, found.blocks
    not_covered: tuple[str, ...] = ()
    if ways.standardise:
        coding = replace(coding, standard=Standard.of(blocks, found.layout.numbers))  # type: ignore[type-var]
        assert coding.standard is not None
        blocks = [coding.standard.apply(block) for block in blocks]
        not_covered = (
            "unsafe: numbers were scaled by the training rows' own means and standard deviations, as asked by "
            "unsafe_data_dependent_bounds=True",
        )
    if sample_weight is not None:
        blocks = list(_with_weights(blocks, sample_weight))
    rows = Rows(Coded(found.layout, tuple(blocks)), max_sample_weight=ways.max_sample_weight)
    stated = schema.rows if schema is not None else None
    if stated is None and isinstance(found.coding, SchemaCoding):
        stated = found.coding.encoding.schema.rows
    return Training(rows, coding, tuple(found.facts), not_covered, found.columns, found.n_features, stated)


def read_labels(y: Any) -> npt.NDArray[Any]:
    """Labels as one array, from any container; a column of shape (rows, 1) warns, as in scikit-learn."""
    if y is None:
        raise InputError(
            complaint(
                expected="one label a row",
                of="y",
                got=None,
                remedy="This estimator requires y to be passed, but the target y is None.",
            )
        )
    if isinstance(y, (list, tuple)):
        mixed = len({type(value) for value in y}) > 1
        y = np.asarray(y, dtype=object) if mixed else np.asarray(y)
    elif not isinstance(y, np.ndarray):
        columns = list(read_columns(y, 0).values())
        if len(columns) != 1:
            remedy = "Pass one column of labels."
            raise InputError(complaint(expected="one label a row", of="y", got=f"{len(columns)} columns", remedy=remedy))
        y = columns[0]
    labels: npt.NDArray[Any] = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
        if (labels != np.floor(labels)).any():
            raise InputError(
                complaint(
                    expected="classes",
                    of="y",
                    got="fractions",
                    remedy="Unknown label type: continuous. Make classes of a number first.",
                )
            )
    return labels


# The three ways


def _as_it_comes(X: Any, y: Any, sensitive: Any, sensitive_as_feature: bool) -> _Read:
    grid = grid_of(X)
    labels = read_labels(y)
    same_length({"X": grid.rows, "y": len(labels)})
    classes, label_codes = distinct(Plain(labels), "y")
    named = _names_of_columns(sensitive, grid)
    columns = {name: grid.column(name) for name in named} if named is not None else _given_columns(sensitive, grid.rows)
    groups, group_codes = _groups(columns, grid.rows)
    taken = () if sensitive_as_feature else named or ()
    features = tuple(_feature(grid, name) for name in grid.names if name not in taken)
    if not features:
        remedy = "Pass features beside the sensitive columns, or sensitive_as_feature=True."
        raise InputError(complaint(expected="at least one feature", of="X", got="sensitive columns alone", remedy=remedy))
    coding = TableCoding(features, grid.names)
    layout = replace(coding.layout, classes=classes, sensitive=groups, sensitive_names=tuple(columns))
    blocks, a = [], 0
    for block in coding.grid_blocks(grid):
        b = a + block.rows
        part = np.ascontiguousarray(group_codes[:, a:b])
        blocks.append(replace(block, labels=label_codes[a:b], sensitive=part))
        a = b
    facts = [PublicFact("number of features", str(len(features)), READ_FROM_DATA), *_roles(layout, READ_FROM_DATA)]
    facts += [
        PublicFact(f"categories of {in_words([one.name])}", in_words(one.values), READ_FROM_DATA)
        for one in features
        if one.values is not None
    ]
    return _Read(coding, layout, blocks, facts, grid.names if grid.named else (), len(grid.names))


def _by_schema(X: Any, y: Any, sensitive: Any, schema: Schema, sensitive_as_feature: bool) -> _Read:
    names = _texts(sensitive)
    beside: Mapping[str, Any] | None = None
    if names is not None:
        unused = [name for name in schema.sensitive if name not in names]
        schema = schema.with_roles(sensitive=names).without(*unused)
    elif sensitive is not None:
        beside = _named_as_declared(sensitive, schema)
    with_sensitive = bool(schema.sensitive) and (sensitive is not None or _has_columns(X, schema.sensitive))
    if not with_sensitive and schema.sensitive:
        schema = schema.without(*schema.sensitive)
    labels = None if y is None else read_labels(y)
    if y is not None and schema.target is None:
        remedy = 'Say which column y is, and its classes: Schema(columns, target="hired"), say.'
        raise InputError(complaint(expected="a schema with a target", of="schema", got=schema, remedy=remedy))
    encoding = Encoding(schema, sensitive_as_feature)
    coded = encode(
        X,
        schema,
        names=encoding.features,
        target=labels,
        sensitive=beside,
        sensitive_as_feature=sensitive_as_feature,
        block_rows=BLOCK_ROWS,
    )
    facts, blocks = _facts_of_schema(encoding), list(coded.blocks())
    names = encoding.features if _has_columns(X, encoding.features) else ()
    return _Read(SchemaCoding(encoding), coded.layout, blocks, facts, names, len(encoding.features))


def _from_rows(source: RowSource, y: Any, sensitive: Any, schema: Schema | None) -> _Read:
    layout = source.layout
    names = _texts(sensitive)
    other = schema is not None and schema != getattr(getattr(source, "encoding", None), "schema", schema)
    if y is not None or other or (sensitive is not None and names is None):
        remedy = "Leave y, sensitive_features and schema out: pass only the names of sensitive columns among the source's."
        raise InputError(complaint(expected="labels and groups from the rows", of="X", got="others beside", remedy=remedy))
    blocks = list(source.blocks())
    if names is not None:
        strange = [name for name in names if name not in layout.sensitive_names]
        if strange:
            known = list(layout.sensitive_names)
            remedy = "Code the rows with these columns declared sensitive."
            raise InputError(complaint(expected=f"names among {known}", of="sensitive_features", got=strange, remedy=remedy))
        at = [layout.sensitive_names.index(name) for name in names]
        layout = replace(layout, sensitive=tuple(layout.sensitive[j] for j in at), sensitive_names=tuple(names))
        blocks = [
            block if block.sensitive is None else replace(block, sensitive=np.ascontiguousarray(block.sensitive[at]))
            for block in blocks
        ]
    encoding = getattr(source, "encoding", None)
    if isinstance(encoding, Encoding):
        features = encoding.features
        return _Read(SchemaCoding(encoding), layout, blocks, _facts_of_schema(encoding), features, len(features))
    read_from_data = getattr(source, "read_from_data", ())
    of_classes: Origin = READ_FROM_DATA if "classes" in read_from_data else "argument"
    of_groups: Origin = READ_FROM_DATA if "groups" in read_from_data else "argument"
    facts = _roles(layout, of_classes, of_groups)
    return _Read(RowsCoding(layout.numbers, tuple(layout.code_sizes)), layout, blocks, facts, (), layout.width)


# Sensitive columns


def _texts(sensitive: Any) -> tuple[str, ...] | None:
    """The names that were given, or None where columns were."""
    if isinstance(sensitive, str):
        return (sensitive,)
    listed = isinstance(sensitive, (list, tuple)) and len(sensitive) > 0
    return tuple(sensitive) if listed and all(isinstance(item, str) for item in sensitive) else None


def _names_of_columns(sensitive: Any, grid: Grid) -> tuple[str, ...] | None:
    """Names of columns of X, or None. A list of texts as long as X that are not its columns is a column of groups."""
    names = _texts(sensitive)
    if names is None or (set(names) - set(grid.names) and not isinstance(sensitive, str) and len(names) == grid.rows):
        return None
    strange = [name for name in names if not grid.named or name not in grid.names]
    if strange or len(set(names)) != len(names):
        known = f"distinct names among the columns {list(grid.names)}" if grid.named else "columns: an array has no names"
        remedy = "Pass the sensitive columns themselves, or X as a data frame that has them."
        raise InputError(complaint(expected=known, of="sensitive_features", got=strange or list(names), remedy=remedy))
    return names


def _given_columns(sensitive: Any, rows: int) -> dict[str, Raw]:
    if sensitive is None:
        return {}
    return {name: Plain(np.asarray(column)) for name, column in read_columns(sensitive, rows).items()}


def _groups(columns: Mapping[str, Raw], rows: int) -> tuple[tuple[tuple[Hashable, ...], ...], npt.NDArray[np.uint16]]:
    """The groups of each sensitive column, sorted, and each row's codes."""
    same_length({"X": rows} | {f"sensitive column {name!r}": column.rows for name, column in columns.items()})
    codes = np.empty((len(columns), rows), np.uint16)
    groups = []
    for line, (name, column) in zip(codes, columns.items(), strict=True):
        values, line[:] = distinct(column, f"sensitive column {name!r}")
        groups.append(values)
    return tuple(groups), codes


def _named_as_declared(sensitive: Any, schema: Schema) -> dict[str, Any]:
    """Given columns under the schema's names: by name where all names fit, else in the schema's order."""
    columns = read_columns(sensitive, 0)
    if set(columns) == set(schema.sensitive):
        return dict(columns)
    if len(columns) != len(schema.sensitive):
        raise InputError(
            complaint(
                expected=f"the schema's {len(schema.sensitive)} sensitive columns {list(schema.sensitive)}",
                of="sensitive_features",
                got=list(columns),
                remedy="Declare each sensitive column, and its groups, in the schema.",
            )
        )
    return dict(zip(schema.sensitive, columns.values(), strict=True))


def _has_columns(X: Any, names: Sequence[str]) -> bool:
    """Whether a table has all these columns; an array has features alone."""
    if isinstance(X, (np.ndarray, list, tuple)) and getattr(getattr(X, "dtype", None), "names", None) is None:
        return False
    from ..data.tables import table_of

    return set(names) <= set(table_of(X).names)


# Facts and weights


def _feature(grid: Grid, name: str) -> Feature:
    if grid.matrix is not None:
        return Feature(name)
    raw = grid.column(name)
    of = f"column {name!r}"
    if numbers_of(raw, of) is not None:
        return Feature(name)
    return Feature(name, distinct(raw, of)[0])  # type: ignore[arg-type]  # Category checks the values


def _roles(layout: RowLayout, of_classes: Origin, of_groups: Origin | None = None) -> list[PublicFact]:
    facts = [PublicFact("classes", in_words(layout.classes or ("a number",)), of_classes)]
    for name, values in zip(layout.sensitive_names, layout.sensitive, strict=True):
        facts.append(PublicFact(f"groups of {in_words([name])}", in_words(values), of_groups or of_classes))
    return facts


def _facts_of_schema(encoding: Encoding) -> list[PublicFact]:
    schema = encoding.schema
    facts = [PublicFact("features", in_words(encoding.features), "schema"), *_roles(encoding.layout, "schema")]
    if schema.rows is not None:
        facts.append(PublicFact("number of rows", str(schema.rows), "schema"))
    return facts


def _with_weights(blocks: list[RowBlock], sample_weight: Any) -> Iterator[RowBlock]:
    weights = read_weights(sample_weight, sum(block.rows for block in blocks))
    assert weights is not None
    if not weights.any():
        remedy = "Sample weights must contain at least one number that is not zero."
        raise InputError(complaint(expected="some weight", of="sample_weight", got="zeros alone", remedy=remedy))
    a = 0
    for block in blocks:
        yield replace(block, weights=np.ascontiguousarray(weights[a : a + block.rows]))
        a += block.rows
