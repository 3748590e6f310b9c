"""The rows that a post-processor asks about: labels, groups and a base's decisions. Features are
the base's own affair.

So a base may take anything as features: tables with missing values, texts, images.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ..._types import ColumnsLike, TableLike
from ...curator import Rows
from ...curator.elsewhere import Elsewhere
from ...curator.quiet.calls import Troubles, quietly
from ...data.coding import Place, category_codes
from ...errors import FairveilError, InputError, KindError, complaint
from ...facts import Cells, RowBlock, RowLayout, RowSource
from ...facts.columns import Category
from ...models.model import known_classes
from ...privacy.statement.parts import READ_FROM_DATA, PublicFact
from ...tables.columns import read_columns, same_length
from ...tables.distinct import distinct, in_words
from ...tables.frames import column_of, table_of
from ...tables.given import is_masked
from ...tables.grids import grid_of, refuse_duplicates
from ...tables.raw import Plain, is_missing
from ..reading.carried import require_few_classes
from ..reading.coding import RowsCoding
from ..reading.columns import coded_groups, names_in, read_labels
from ..reading.copies import refuse_copies
from ..reading.inputs import read, weights_of
from ..reading.training import Coded, Training, Ways
from ..reading.units import Whose, require_apart
from . import bases

Codes = npt.NDArray[np.intp]
BASES = "the base classifier's decisions"


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class DecidedRows:
    """What was given to `fit`: the rows for the curator, and what is handed to a base.

    `features`: X without the sensitive columns that it has; `named`: whether the groups were given
    by names of X's columns.
    """

    training: Training
    features: Any
    labels: Any
    named: bool


def read_rows(
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    ways: Ways,
    known: Sequence[Hashable],
) -> DecidedRows:
    """The rows of a fit. `known`: the classes of a base that is fitted, none where it is not."""
    if ways.schema is not None or isinstance(X, RowSource | Elsewhere):
        training = read(X, y, sensitive_features, sample_weight, ways)
        return _by_schema(X, y, training)
    for of, table in (("X", X), ("sensitive_features", sensitive_features)):
        refuse_duplicates(table, of)
    refuse_unseen(X)
    labels = read_labels(y)
    columns, named = columns_of(X, sensitive_features)
    groups, group_codes = coded_groups(
        {name: Plain(column) for name, column in columns.items()}, len(labels)
    )
    same_length({"X": length_of(X), "y": len(labels)})
    classes, codes = _classes(labels, known)
    layout = RowLayout(0, (), classes, groups, tuple(columns))
    whose = ways.whose
    features = without(X, (*columns, *(() if whose is None else whose.columns)))
    if ways.features_are_public and columns:
        refuse_copied(features, layout, group_codes)
    weights = weights_of(sample_weight, len(labels))
    block = RowBlock(
        np.empty((0, len(labels))),
        np.empty((0, len(labels)), np.uint8),
        codes,
        group_codes,
        weights,
    )
    units = units_of(whose, X, len(labels), layout)
    held = Rows(Coded(layout, (block,)), max_sample_weight=ways.max_sample_weight, units=units)
    facts = [PublicFact("classes", in_words(classes), "argument" if known else READ_FROM_DATA)]
    facts += [
        PublicFact(f"groups of {in_words([n])}", in_words(v), READ_FROM_DATA)
        for n, v in zip(columns, groups, strict=True)
    ]
    if weights is not None and ways.features_are_public:
        facts.append(
            PublicFact(
                "sample weights", "public: must not depend on the sensitive columns", "argument"
            )
        )
    training = Training(held, RowsCoding(0), tuple(facts), (), names_of(X), width_of(X))
    return DecidedRows(training, features, labels, named)


def units_of(whose: Whose | None, X: TableLike, rows: int, layout: RowLayout) -> Any:
    """One value a row: whose it is; None where rows are protected."""
    if whose is None:
        return None
    require_apart(whose.column, layout.sensitive_names)
    return whose.of_table(X, None, rows)


def decisions_of(
    base: object, features: TableLike, classes: Sequence[Hashable], rows: int, seed: int | None
) -> Codes:
    """The base's decisions about the training rows as class codes."""
    codes = codes_of(
        unheard(base, features, random_state=seed)
        if bases.is_randomised(base)
        else unheard(base, features),
        classes,
    )
    same_length({"y": rows, BASES: len(codes)})
    return codes


def unheard(classifier: BaseEstimator, features: TableLike, **options: object) -> Any:
    """What a classifier made elsewhere decides about the training rows. Its warnings and prints
    would tell of them: nobody hears them, as is the rule for user code in an estimator."""
    return asked_of_base(lambda: quietly(Troubles(), classifier.predict, features, **options))


def refuse_unseen(X: TableLike) -> None:
    """What a base would not see for what it is: most of them read the numbers under a mask."""
    if is_masked(X):
        remedy = "Fill them in first."
        raise InputError(
            complaint(expected="a value in every place", of="X", got="masked ones", remedy=remedy)
        )
    if X is None or isinstance(X, type):
        raise InputError(
            complaint(
                expected="a table", of="X", got=X, remedy="Pass what the base classifier takes."
            )
        )


def asked_of_base(ask: Callable[[], Any]) -> Any:
    """What a base says of features, which are its own affair: what it refuses is refused in our
    family, with its words."""
    try:
        return ask()
    except FairveilError:
        raise
    except NotFittedError:
        raise
    except Exception as error:
        family = KindError if isinstance(error, TypeError) else InputError
        remedy = f"It says: {error}"
        got = f"what it refuses ({type(error).__name__})"
        raise family(
            complaint(
                expected="features that the base classifier takes",
                of="X",
                got=got,
                remedy=remedy,
                quote=False,
            )
        ) from error


def law_of(
    base: BaseEstimator, features: TableLike, classes: Sequence[Hashable]
) -> npt.NDArray[np.float64]:
    """The distribution of a base that is randomized, a column for each of `classes`, in whichever
    order the base has its own."""
    return in_order(base, asked_of_base(lambda: base.predict_proba(features)), classes)


def in_order(
    base: BaseEstimator, probabilities: object, classes: Sequence[Hashable]
) -> npt.NDArray[np.float64]:
    """Probabilities of the base's classes, a column for each of `classes`."""
    law, at = np.asarray(probabilities, np.float64), codes_of(base.classes_, classes)
    if law.ndim != 2 or law.shape[1] != len(at):
        remedy = "Its predict_proba must give a share to each of classes_."
        expected = f"probabilities of {len(at)} classes"
        raise InputError(
            complaint(expected=expected, of="estimator", got=f"shape {law.shape}", remedy=remedy)
        )
    out = np.zeros((len(law), len(classes)))
    out[:, at] = law
    return out


def codes_of(decided: object, classes: Sequence[Hashable], of: str = BASES) -> Codes:
    """Class codes of decisions as a classifier hands them out."""
    found, at = distinct(Plain(np.asarray(decided).reshape(-1)), of)
    code_of = {value: code for code, value in enumerate(classes)}
    strange = [value for value in found if value not in code_of]
    if strange:
        remedy = "Leave it out, or declare its classes in a schema."
        if of == BASES:
            remedy = (
                "Post-process with labels that have all classes of the base, or declare them in a "
                "schema."
            )
        raise InputError(
            complaint(expected=f"classes among {list(classes)}", of=of, got=strange, remedy=remedy)
        )
    return np.array([code_of[value] for value in found], np.intp)[at]


def in_blocks(codes: Codes, rows: Rows) -> Callable[[Any], Codes]:
    """The decisions block by block, as `Curator.attach` takes them."""
    ends = np.cumsum([block.rows for block in rows.blocks()])
    parts = np.split(codes, ends[:-1])
    return lambda block: parts[block.number]


def group_ids(
    given: object, X: TableLike, cells: Cells, rows: int, named: bool
) -> npt.NDArray[np.intp]:
    """The cell of each row at prediction. Groups: columns, names of columns of X, the rows' own, or
    X's columns of those names where the fit was given names. Missing or unknown ones are errors."""
    if given is None and isinstance(X, (RowBlock, RowSource)):
        return _ids_of_rows(X, cells)
    if given is None and not (named and set(cells.names) <= set(names_of(X))):
        raise InputError(
            complaint(
                expected=f"the groups of every row ({', '.join(cells.names)})",
                of="sensitive_features",
                got=None,
                remedy="This model is group-aware: pass predict(X, sensitive_features=...).",
            )
        )
    columns, _ = columns_of(X, list(cells.names) if given is None else given)
    if set(columns) == set(cells.names):
        columns = {name: columns[name] for name in cells.names}
    elif len(columns) != len(cells.columns) or set(columns) & set(cells.names):
        # by position only where no name says another
        remedy = "Pass the sensitive columns of the fit."
        expected = f"{len(cells.columns)} columns ({', '.join(cells.names)})"
        raise InputError(
            complaint(expected=expected, of="sensitive_features", got=list(columns), remedy=remedy)
        )
    same_length(
        {"X": rows}
        | {f"sensitive column {name!r}": len(column) for name, column in columns.items()}
    )
    lines = [
        category_codes(Plain(column), Category(values), Place(name, missing_values=()))  # type: ignore[arg-type]
        for name, values, column in zip(cells.names, cells.columns, columns.values(), strict=True)
    ]
    return np.asarray(cells.ids(np.stack(lines))[0], np.intp)


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Groupless:
    """Coded rows without their sensitive codes, as a `RowSource`."""

    _source: RowSource

    @property
    def layout(self) -> RowLayout:
        """The shape of features and labels."""
        return replace(self._source.layout, sensitive=(), sensitive_names=())

    def blocks(self) -> Iterator[RowBlock]:
        """All rows."""
        return (replace(block, sensitive=None) for block in self._source.blocks())


def without(X: Any, names: Sequence[str]) -> Any:
    """X without the columns of these names, in the form that it has; arrays have no names. Coded
    rows lose all their groups."""
    if isinstance(X, RowBlock):
        return replace(X, sensitive=None)
    if isinstance(X, RowSource):
        return Groupless(X)
    drop = [name for name in names if name in names_of(X)]
    if not drop:
        return X
    if _is_mapping(X):
        return {name: column for name, column in X.items() if name not in drop}
    import narwhals as nw

    return nw.from_native(X, eager_only=True).drop(drop).to_native()


def _by_schema(X: Any, y: ColumnsLike, training: Training) -> DecidedRows:
    if isinstance(X, RowSource | Elsewhere):
        return DecidedRows(training, X, y, False)
    encoding: Any = training.coding
    keep = set(encoding.encoding.features)
    schema = encoding.encoding.schema
    labels = y
    if labels is None:
        labels = column_of(X[schema.target], schema.target)
    named = set(schema.sensitive) <= set(names_of(X))
    return DecidedRows(
        training, without(X, [name for name in names_of(X) if name not in keep]), labels, named
    )


def _classes(
    labels: npt.NDArray[Any], known: Sequence[Hashable]
) -> tuple[tuple[Hashable, ...], npt.NDArray[np.int32]]:
    found, codes = distinct(Plain(labels), "y")
    classes = known_classes(known) if known else found
    if not known:
        require_few_classes(len(classes), len(labels))
    strange = [value for value in found if value not in classes]
    if strange:
        remedy = "Fit the base on all classes."
        raise InputError(
            complaint(
                expected=f"the base's classes {list(classes)}", of="y", got=strange, remedy=remedy
            )
        )
    if len(classes) < 2:
        remedy = "Pass labels of at least two classes; a schema may list classes that do not occur."
        got = f"one class: {in_words(classes)}"
        raise InputError(
            complaint(expected="labels of at least two classes", of="y", got=got, remedy=remedy)
        )
    known_classes(classes)
    places = np.array([classes.index(value) for value in found], np.int32)
    return classes, places[codes]


def columns_of(X: Any, given: object) -> tuple[dict[str, npt.NDArray[Any]], bool]:
    """Sensitive columns by name, and whether they are columns of X."""
    if given is None:
        return {}, False
    names = names_in(given)
    shown = names_of(X)
    if names is None or (
        set(names) - set(shown) and not isinstance(given, str) and len(names) == length_of(X)
    ):
        return dict(read_columns(given, 0)), False
    strange = [name for name in names if name not in shown]
    if strange or len(set(names)) != len(names):
        known = (
            f"distinct names among the columns {list(shown)}"
            if shown
            else "columns: an array has no names"
        )
        remedy = "Pass the sensitive columns themselves, or X as a data frame that has them."
        raise InputError(
            complaint(
                expected=known, of="sensitive_features", got=strange or list(names), remedy=remedy
            )
        )
    return {name: column_of(X[name], name) for name in names}, True


def refuse_copied(
    features: TableLike, layout: RowLayout, group_codes: npt.NDArray[np.uint16]
) -> None:
    """Where features are public none may be the sensitive column over again, among the rows where
    it is known; nor may the table's index. What is no table is not looked into."""
    try:
        grid = None if names_of(features) else grid_of(features)
    except (InputError, TypeError, ValueError):
        grid = None
    if grid is not None and grid.matrix is not None:
        numbers: Any = grid.matrix if grid.is_sparse else np.ascontiguousarray(grid.matrix.T)
        block = RowBlock(numbers, np.empty((0, grid.rows), np.uint8), sensitive=group_codes)
        refuse_copies([block], layout_of(layout, grid.matrix.shape[1], 0), grid.names)
        return
    for name, values in _each_column(features, group_codes.shape[1]):
        line, known = _numbers(values)
        block = RowBlock(
            line[known][np.newaxis],
            np.empty((0, int(known.sum())), np.uint8),
            sensitive=group_codes[:, known],
        )
        refuse_copies([block], layout_of(layout, 1, 0), (name,))


def _each_column(features: Any, rows: int) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """The columns of what may be a table, and its index, which a base could read too."""
    names = names_of(features)
    try:
        whole = None if names else np.asarray(features, dtype=object)
    except ValueError:
        return
    if whole is not None and whole.ndim in (1, 2):
        whole = whole.reshape(len(whole), -1)
        names = tuple(f"x{j}" for j in range(whole.shape[1]))
    index = getattr(features, "index", None)
    listed = [
        (name, features[name] if whole is None else whole[:, j]) for j, name in enumerate(names)
    ]
    if hasattr(index, "to_numpy"):
        listed.append(("the index", index))
    for name, column in listed:
        values = np.asarray(column)
        if values.shape == (rows,):
            yield name, values


def _numbers(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """A column as numbers, anything else by codes of its values, and where it is not missing."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64), np.isfinite(values.astype(np.float64))
    if values.dtype.kind in "mM":
        return values.astype(np.int64).astype(np.float64), ~np.isnat(values)
    try:
        return distinct(Plain(values), "a column")[1].astype(np.float64), np.ones(len(values), bool)
    except (InputError, TypeError, ValueError):
        # missing values, or values of no kind that a table of ours has
        places: dict[str, int] = {}
        line = [places.setdefault(repr(value), len(places)) for value in values]
        return np.array(line, np.float64), np.array(
            [not is_missing(value) for value in values], bool
        )


def layout_of(layout: RowLayout, numbers: int, codes: int) -> RowLayout:
    """The layout with so many numbers."""
    return RowLayout(
        numbers, (2,) * codes, layout.classes, layout.sensitive, layout.sensitive_names
    )


def _ids_of_rows(X: RowBlock | RowSource, cells: Cells) -> npt.NDArray[np.intp]:
    blocks: Iterator[RowBlock] = iter((X,)) if isinstance(X, RowBlock) else X.blocks()
    codes = [block.sensitive for block in blocks]
    layout = getattr(X, "layout", None)
    if any(part is None for part in codes) or (
        layout is not None and not set(cells.names) <= set(layout.sensitive_names)
    ):
        remedy = "Code the rows with their sensitive columns."
        raise InputError(
            complaint(
                expected=f"rows with groups {list(cells.names)}",
                of="X",
                got="rows without",
                remedy=remedy,
            )
        )
    whole = np.concatenate([part for part in codes if part is not None], axis=1)
    if layout is not None:
        at = [layout.sensitive_names.index(name) for name in cells.names]
        whole = whole[at]
        if tuple(layout.sensitive[j] for j in at) != cells.columns:
            remedy = "Code the rows by the schema of the fit."
            raise InputError(
                complaint(
                    expected=f"the groups {cells.columns}", of="X", got="others", remedy=remedy
                )
            )
    return np.asarray(cells.ids(whole)[0], np.intp)


def names_of(X: Any) -> tuple[str, ...]:
    """The names of a table's columns, none for arrays and what is no table."""
    if _is_mapping(X):
        return tuple(map(str, X))
    columns = getattr(X, "column_names", None) or getattr(X, "columns", None)
    if columns is None or isinstance(X, np.ndarray):
        return ()
    return tuple(columns) if all(isinstance(name, str) for name in columns) else ()


def _is_mapping(X: TableLike) -> bool:
    # one kind of sparse array is a mapping too
    return isinstance(X, Mapping) and not sparse.issparse(X)


def length_of(X: TableLike) -> int | None:
    """How many rows, where that can be seen; else the base's decisions say it."""
    if _is_mapping(X):
        return table_of(X).rows
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple):
        return int(shape[0]) if shape else None
    return len(X) if hasattr(X, "__len__") and not isinstance(X, type) else None


def width_of(X: Any) -> int:
    names = names_of(X)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return (
        len(names)
        if names
        else int(shape[1])
        if len(shape) > 1
        else len(X[0])
        if _is_listed(X)
        else 1
    )


def _is_listed(X: TableLike) -> bool:
    return isinstance(X, (list, tuple)) and bool(X) and isinstance(X[0], (list, tuple, np.ndarray))
