"""Models that others finished: what they decide about a user's rows, and what their making cost.

One walk reads the rows of everything that counts people: certificates, private tables, monitors,
searches, and the post-processor. Labels and groups become codes; features are the model's own
affair, so that it may take anything as features: tables with missing values, texts, images. Without
a schema `_by_values` reads them, under one `_by_schema`, and of rows elsewhere `_elsewhere` says by
which rule their holder decides.

Guarantees (tests/estimators/test_estimators_certify.py, test_estimators_odds_privacy.py,
test_estimators_base_answers.py, test_estimators_parity_rows.py, tests/serving/test_serving_fits.py):
1. A row's part depends on that row alone, given the model's decisions. What a model says while it
   decides (prints, warnings) reaches nobody.
2. A fitted base is never fitted again or changed; one that is not is cloned first. `Base.spent` is
   what the base's own statement charges, under the post-processor's relation, or nothing where the
   base does not depend on what is protected; every assumption for that is a sentence in
   `Base.not_covered`.
3. A base that was fitted before counts as looked at: what is asked beside it is priced as chosen
   afterwards (theory.md#t10). One that is fitted here was planned together with the rest.
4. Edges of bins are made of public facts and of what was released; of the scores themselves only
   where these are public, or nothing is promised. A score that is NaN is an error; the bin of a row
   is the same at the fit and at prediction.
5. No decision about a row elsewhere is made here: only the counts that were released come back. The
   holder codes rows as the model's fit did, or the model is refused.
6. Of rows that need no label none is read.
7. What a statement charges is in the ledger, once. Where there is no room for base and counts
   together, that is said before the base is fitted, as far as it can be foreseen.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .. import _checks
from .._types import ColumnsLike, Floats, TableLike
from ..core.cost import gaussian_mu
from ..core.errors import need
from ..core.events import Approximate, Event, Gaussian, NonPrivate, Pure
from ..core.promise import Promise
from ..core.quiet import Troubles, quietly
from ..curator import Attached, Curator, Rows
from ..data import encode
from ..data.coding import Place, category_codes, codes_among
from ..data.elsewhere import DescribedRule, Elsewhere
from ..errors import FairveilError, InputError, KindError, Overspent, PrivacyError, complaint
from ..facts import Cells, RowBlock, RowLayout, RowSource, Schema
from ..facts.columns import Category
from ..ledger import Ledger, statement_findings
from ..ledger.ledger import settle
from ..methods import score_bins
from ..methods.counts import CountPlan
from ..methods.systems import NO_GROUPS
from ..metrics.inputs import read_groups
from ..models import LinearModel, MixtureModel, PostProcessedModel
from ..models.model import Model, known_classes
from ..models.postprocessed import logits
from ..privacy.calibration import TwoSteps
from ..show.numbers import at_most
from ..statement.document import (
    BASE_FACT,
    Origin,
    PrivacyStatement,
    PublicFact,
    Receipt,
    names_read,
    same_releases,
)
from ..statement.form import READ_FROM_DATA
from ..tables.columns import (
    Plain,
    as_array,
    distinct,
    in_words,
    is_masked,
    is_missing,
    read_columns,
    same_length,
)
from ..tables.frames import (
    column_names_of,
    column_of,
    grid_of,
    refuse_duplicates,
    shape_of,
    table_of,
)
from . import fitting
from .coding import CODINGS, RowsCoding, SchemaCoding, classes_of, parts_of
from .faces import CodedEstimator
from .faces import as_array as values_array
from .fitting import READS_GROUPS
from .reading import (
    Coded,
    Read,
    ReadOptions,
    Training,
    Whose,
    coded_groups,
    named_as_declared,
    names_in,
    no_such_columns,
    read,
    read_labels,
    refuse_copies,
    refuse_weights,
    require_apart,
    require_few_classes,
    require_few_values,
    training_of,
    weights_of,
)
from .settings import ANSWERS, stated

Codes = npt.NDArray[np.intp]
PartOf = Callable[[Codes, Codes, Codes], npt.NDArray[Any]]
BASES = "the base classifier's decisions"
GIVEN = "decisions made elsewhere"
WITH_GROUPS = "Pass sensitive_features=...: columns, or names of columns of X."


def derived_seed(seed: int | None, what: int) -> int | None:
    """A seed of its own for each part of a fit: the same stream must never make the noise of two
    releases."""
    if seed is None:
        return None
    return int(np.random.SeedSequence([seed, what]).generate_state(1, np.uint32)[0])


# ------------------------------ tables
# Columns that a model takes as features: their names, and X without some.


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
    if is_mapping(X):
        return {name: column for name, column in X.items() if name not in drop}
    import narwhals as nw

    return nw.from_native(X, eager_only=True).drop(drop).to_native()


def columns_of(X: Any, given: object) -> tuple[dict[str, npt.NDArray[Any]], bool]:
    """Sensitive columns by name, and whether they are columns of X."""
    if given is None:
        return {}, False
    names, shown = names_in(given), names_of(X)
    strange = [name for name in names or () if name not in shown]
    if names is None or (strange and not isinstance(given, str) and len(names) == length_of(X)):
        return dict(read_columns(given)), False
    if strange or len(set(names)) != len(names):
        raise no_such_columns(strange, names, shown)
    return {name: column_of(X[name], name) for name in names}, True


def names_of(X: Any) -> tuple[str, ...]:
    """The names of a table's columns, none for arrays and what is no table."""
    if is_mapping(X):
        return tuple(map(str, X))
    if isinstance(X, np.ndarray):
        return ()
    # pyarrow's columns are arrays; it has their names beside
    columns = tuple(getattr(X, "column_names", ())) or column_names_of(X)
    names = tuple(name for name in columns if isinstance(name, str))
    return names if len(names) == len(columns) else ()


def is_mapping(X: TableLike) -> bool:
    """One kind of sparse array is a mapping too."""
    return isinstance(X, Mapping) and not sparse.issparse(X)


def length_of(X: TableLike) -> int | None:
    """How many rows, where that can be seen; else the base's decisions say it."""
    if is_mapping(X):
        return table_of(X).rows
    if (shape := shape_of(X)) is not None:
        return int(shape[0]) if shape else None
    return len(X) if hasattr(X, "__len__") and not isinstance(X, type) else None


def width_of(X: Any) -> int:
    """How many columns."""
    names, shape = names_of(X), shape_of(X) or ()
    if names or len(shape) > 1:
        return len(names) or int(shape[1])
    listed = isinstance(X, list | tuple) and bool(X) and isinstance(X[0], list | tuple | np.ndarray)
    return len(X[0]) if listed else 1


def refuse_unseen(X: TableLike) -> None:
    """What a base would not see for what it is: most of them read the numbers under a mask."""
    fix = "Fill them in first."
    need(not is_masked(X), "a value in every place", of="X", got="masked ones", fix=fix)
    fix = "Pass what the base classifier takes."
    need(X is not None and not isinstance(X, type), "a table", of="X", got=X, fix=fix)


def refuse_copied(
    features: TableLike, layout: RowLayout, group_codes: npt.NDArray[np.uint16]
) -> None:
    """Where features are public none may be the sensitive column over again, among the rows where
    it is known; nor may the table's index. What is no table is not looked into."""

    def refuse(numbers: Any, codes: npt.NDArray[np.uint16], names: Sequence[str]) -> None:
        block = RowBlock(numbers, np.empty((0, codes.shape[1]), np.uint8), sensitive=codes)
        width = len(names) if names else numbers.shape[0]
        groups = layout.classes, layout.sensitive, layout.sensitive_names
        refuse_copies([block], RowLayout(width, (), *groups), tuple(names))

    try:
        grid = None if names_of(features) else grid_of(features)
    except (InputError, TypeError, ValueError):
        grid = None
    if grid is not None and grid.matrix is not None:
        numbers: Any = grid.matrix if grid.is_sparse else np.ascontiguousarray(grid.matrix.T)
        refuse(numbers, group_codes, grid.names)
        return
    for name, values in _each_column(features, group_codes.shape[1]):
        line, known = _numbers(values)
        refuse(line[known][np.newaxis], group_codes[:, known], (name,))


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
    columns = ((n, features[n] if whole is None else whole[:, j]) for j, n in enumerate(names))
    index = getattr(features, "index", None)
    for name, column in [*columns, *([("the index", index)] if hasattr(index, "to_numpy") else [])]:
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
        known = [not is_missing(value) for value in values]
        return np.array(line, np.float64), np.array(known, bool)


# ------------------------------ decisions
# What a finished model decides about rows.


def carries_a_promise(estimator: object) -> bool:
    """Whether an estimator is one of ours, frozen or not, by its parameters."""
    inside = thawed(estimator)
    return isinstance(inside, BaseEstimator) and set(inside.get_params(deep=False)) >= PROMISED


def thawed(estimator: object) -> Any:
    """What `FrozenEstimator` holds, which answers for it in everything; any other estimator
    itself."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


def is_randomised(estimator: object) -> bool:
    """Whether a fitted base of ours is randomized, with draws that can be seeded; its
    `predict_proba` is then the distribution."""
    inside = thawed(estimator)
    draws = (
        carries_a_promise(inside) and "random_state" in inspect.signature(inside.predict).parameters
    )
    return draws and (not isinstance(inside, CodedEstimator) or inside._is_randomized)


def is_fitted(estimator: object) -> bool:
    """scikit-learn's own answer; what cannot be fitted is."""
    if isinstance(estimator, type):  # where one of its objects is wanted: `check_base` says so
        return False
    if not hasattr(estimator, "fit"):
        return True
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def decisions_of(
    base: object, features: TableLike, classes: Sequence[Hashable], rows: int, seed: int | None
) -> Codes:
    """The base's decisions about the training rows as class codes. Of no rows it is not asked: most
    refuse, and a refusal would tell an empty table from one of a single row."""
    if not rows:
        return np.empty(0, np.intp)
    draws = {"random_state": seed} if is_randomised(base) else {}
    codes = codes_of(unheard(base, features, **draws), classes)
    same_length({"y": rows, BASES: len(codes)})
    return codes


def unheard(classifier: Any, features: TableLike, **options: object) -> Any:
    """What a classifier made elsewhere decides about the training rows. Its warnings and prints
    would tell of them: nobody hears them, as is the rule for user code in an estimator."""
    return asked_of_base(lambda: quietly(Troubles(), classifier.predict, features, **options))


def asked_of_base(measurement: Callable[[], Any]) -> Any:
    """What a base says of features, which are its own affair: what it refuses is refused in our
    family, with its words."""
    try:
        return measurement()
    except (FairveilError, NotFittedError):
        raise
    except Exception as error:
        family = KindError if isinstance(error, TypeError) else InputError
        remedy, got = f"It says: {error}", f"what it refuses ({type(error).__name__})"
        expected = "features that the base classifier takes"
        text = complaint(expected=expected, of="X", got=got, remedy=remedy, quote=False)
        raise family(text) from error


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
    fix = "Its predict_proba must give a share to each of classes_."
    expected, fits = f"probabilities of {len(at)} classes", law.ndim == 2 and len(law.T) == len(at)
    need(fits, expected, of="estimator", got=f"shape {law.shape}", fix=fix)
    out = np.zeros((len(law), len(classes)))
    out[:, at] = law
    return out


def codes_of(decided: object, classes: Sequence[Hashable], of: str = BASES) -> Codes:
    """Class codes of decisions as a classifier hands them out, numerals by value."""
    found, at = distinct(Plain(np.asarray(decided).reshape(-1)), of)
    codes = codes_among(found, classes)
    strange = [value for value, code in zip(found, codes, strict=True) if code < 0]
    fix = "Leave it out, or declare its classes in a schema."
    if of == BASES:
        fix = "Post-process with labels that have all classes of the base, or declare them in a schema."
    need(not strange, f"classes among {list(classes)}", of=of, got=strange, fix=fix)
    return codes.astype(np.intp)[at]


def in_blocks(codes: Any, rows: Rows) -> Callable[[Any], Any]:
    """The decisions block by block, as `Curator.attach` takes them."""
    ends = np.cumsum([block.rows for block in rows.blocks()])
    parts = np.split(codes, ends[:-1])
    return lambda block: parts[block.number]


# ------------------------------ rows
# Labels, groups and whose each row is, for the curator.


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


def _held(
    layout: RowLayout,
    labels: npt.NDArray[Any],
    groups: npt.NDArray[np.uint16] | None,
    X: TableLike,
    ways: ReadOptions,
    weights: Floats | None = None,
) -> Rows:
    """Rows of labels, groups and weights alone, for the curator."""
    none, whose, units = np.empty((0, len(labels))), ways.whose, None
    block = RowBlock(none, none.astype(np.uint8), labels, groups, weights)
    if ways.features_are_public and weights is not None:
        refuse_weights((block,), layout)
    if whose is not None:
        require_apart(whose.column, layout.sensitive_names)
        units = whose.of_table(X, None, len(labels))
    coded = Coded(layout, (block,))
    return Rows(coded, max_sample_weight=ways.max_sample_weight, units=units)


def _facts(layout: RowLayout, classes: Origin, groups: Origin) -> list[PublicFact]:
    """What is public of classes and groups."""
    named = zip(layout.sensitive_names, layout.sensitive, strict=True)
    found = [PublicFact(f"groups of {in_words([n])}", in_words(v), groups) for n, v in named]
    return [PublicFact("classes", in_words(layout.classes or ()), classes), *found]


def _of_weights(weights: Floats | None, ways: ReadOptions) -> list[PublicFact]:
    if weights is None or not ways.features_are_public:
        return []
    words = "public: must not depend on the sensitive columns"
    return [PublicFact("sample weights", words, "argument")]


def labelled_rows(
    X: Any,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    ways: ReadOptions,
    known: Sequence[Hashable],
) -> DecidedRows:
    """The rows of a fit. `known`: the classes of a base that is fitted, none where it is not."""
    if isinstance(X, RowSource | Elsewhere):
        return DecidedRows(read(X, y, sensitive_features, sample_weight, ways), X, y, False)
    if ways.schema is not None:
        training = read(X, y, sensitive_features, sample_weight, ways)
        encoding: Any = training.coding
        schema, names = encoding.encoding.schema, names_of(X)
        labels = column_of(X[schema.target], schema.target) if y is None else y
        dropped = [name for name in names if name not in encoding.encoding.features]
        named = set(schema.sensitive) <= set(names)
        return DecidedRows(training, without(X, dropped), labels, named)
    for of, table in (("X", X), ("sensitive_features", sensitive_features)):
        refuse_duplicates(table, of)
    refuse_unseen(X)
    labels = read_labels(y)
    columns, named = columns_of(X, sensitive_features)
    raw = {name: Plain(column) for name, column in columns.items()}
    groups, group_codes = coded_groups(raw, len(labels))
    same_length({"X": length_of(X), "y": len(labels)})
    classes, codes = _classes(labels, known)
    layout = RowLayout(0, (), classes, groups, tuple(columns))
    unit = () if ways.whose is None else ways.whose.columns
    features = without(X, (*columns, *unit))
    if ways.features_are_public and columns:
        refuse_copied(features, layout, group_codes)
    weights = weights_of(sample_weight, len(labels))
    held = _held(layout, codes, group_codes, X, ways, weights)
    facts = _facts(layout, "argument" if known else READ_FROM_DATA, READ_FROM_DATA)
    facts += _of_weights(weights, ways)
    if ways.public_rows is not None:
        facts.append(PublicFact("number of rows", str(ways.public_rows), "schema"))
    of_table = tuple(facts), (), names_of(X), width_of(X), ways.public_rows
    training = Training(held, RowsCoding(0), *of_table)
    return DecidedRows(training, features, labels, named)


def _classes(
    labels: npt.NDArray[Any], known: Sequence[Hashable]
) -> tuple[tuple[Hashable, ...], npt.NDArray[np.int32]]:
    found, codes = distinct(Plain(labels), "y")
    classes = known_classes(known) if known else found
    if not known:
        require_few_classes(classes, len(labels))
    strange = [value for value in found if value not in classes]
    expected, fix = f"the base's classes {list(classes)}", "Fit the base on all classes."
    need(not strange, expected, of="y", got=strange, fix=fix)
    fix = "Pass labels of at least two classes; a schema may list classes that do not occur."
    got = f"one class: {in_words(classes)}"
    need(len(classes) > 1, "labels of at least two classes", of="y", got=got, fix=fix)
    known_classes(classes)
    places = np.array([classes.index(value) for value in found], np.int32)
    return classes, places[codes]


def unlabelled_rows(
    X: TableLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    ways: ReadOptions,
    known: Sequence[Hashable],
) -> DecidedRows:
    """The rows of a fit that needs no labels: each stands as the first of the `known` classes, those
    of the base. Rows that were coded before have labels, which nobody counts."""
    if isinstance(X, RowSource | Elsewhere):
        return labelled_rows(X, None, sensitive_features, sample_weight, ways, known)
    schema = ways.schema
    refuse_unseen(X)
    for of, table in (("X", X), ("sensitive_features", sensitive_features)):
        refuse_duplicates(table, of)
    if schema is None:
        columns, _ = columns_of(X, sensitive_features)
        require_groups(bool(columns))
        count = len(next(iter(columns.values())))
        same_length({"X": length_of(X), "sensitive_features": count})
        first = values_array(tuple(known))[np.zeros(count, np.intp)]
        return labelled_rows(X, first, sensitive_features, sample_weight, ways, known)
    names, beside = names_in(sensitive_features), None
    if names is not None:
        unused = [name for name in schema.sensitive if name not in names]
        schema = schema.with_roles(sensitive=names).without(*unused)
    elif sensitive_features is not None:
        beside = named_as_declared(sensitive_features, schema)
    require_groups(bool(schema.sensitive))
    bare = schema if schema.target is None else schema.without(schema.target)
    rows = encode(X, bare, names=bare.features, sensitive=beside)
    codes = _sensitive(rows)
    there, count = names_of(X), codes.shape[1]
    features = without(X, [name for name in there if name not in bare.features])
    shown = bare.features if there else ()
    same_length({"X": length_of(X), "sensitive_features": count})
    groups = rows.layout.sensitive, rows.layout.sensitive_names
    layout = RowLayout(0, (), known_classes(known), *groups)
    if ways.features_are_public:
        refuse_copied(features, layout, codes)
    weights = weights_of(sample_weight, count, are_private=not ways.features_are_public)
    held = _held(layout, np.zeros(count, np.int32), codes, X, ways, weights)
    facts = [*_facts(layout, "argument", "schema"), *_of_weights(weights, ways)]
    of_rows = held, RowsCoding(0), tuple(facts), (), shown, len(shown), ways.public_rows
    return DecidedRows(Training(*of_rows, schema=ways.schema), features, None, beside is None)


def _sensitive(rows: Any) -> npt.NDArray[np.uint16]:
    """The group codes of all rows, (columns, rows)."""
    blocks = [np.asarray(block.sensitive, np.uint16) for block in rows.blocks()]
    return np.concatenate(blocks, axis=1)


def require_groups(there: bool) -> None:
    """An error for rows without groups."""
    of = "sensitive_features"
    need(there, "the group of every row", of=of, got=None, fix=WITH_GROUPS)


# ------------------------------ people
# People with what a finished model decides about them, for one private count. The model is anything
# that decides: an estimator of this library or another, a function of the features, or a column of
# decisions. It was made without these people, so that what it decides about a person is a public
# function of that person's row.


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class DecidedPeople:
    """The rows for a curator, with labels, cells and decisions; `model`: in words; `labelled`:
    whether labels were given; `rule`: of people elsewhere, of whom nothing is here, how their
    holder decides about them."""

    rows: Rows
    cells: Cells
    classes: tuple[Hashable, ...]
    labels: Codes
    ids: Codes
    decisions: Codes
    facts: tuple[PublicFact, ...]
    not_covered: tuple[str, ...]
    model: str
    labelled: bool
    by_group: bool
    rule: DescribedRule | None = None

    def codes_by(self, part_of: PartOf) -> Any:
        """Each row's code, by its group, label and decision, as `Curator.attach_codes` takes it: of
        people elsewhere the rule, with a code for each group, label and decision."""
        if self.rule is None:
            found = part_of(self.ids, self.labels, self.decisions)
            return in_blocks(np.asarray(found, np.intp), self.rows)
        shape = (self.cells.count, len(self.classes), self.rule.decisions)
        grid = np.indices(shape).reshape(3, -1).astype(np.intp)
        table = np.asarray(part_of(grid[0], grid[1], grid[2]), np.int64).reshape(shape)
        return self.rule.through(table, self.cells)

    def parts(self, part_of: npt.NDArray[np.int64]) -> Any:
        """The same from a table."""
        return self.codes_by(lambda ids, labels, decisions: part_of[ids, labels, decisions])


@dataclass(frozen=True, eq=False, repr=False)  # it holds what was decided about rows
class Made:
    """Decisions that a model made before, with what is public of that model: its name, classes and
    groups."""

    decisions: npt.NDArray[Any]
    name: str
    classes_: tuple[Hashable, ...]
    cells_: Cells | None = None


def people_of(
    model: object,
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    schema: Schema | None,
    promise: Promise,
    seed: int | None,
    whose: Whose | None = None,
    stated: Cells | None = None,
    classes: tuple[Hashable, ...] = (),
) -> DecidedPeople:
    """The people, and what the model decides about them; `model` None: their outcomes. `whose`:
    whose each row is, where persons have several. `stated`, `classes`: groups and classes that were
    stated without a schema; of these none is looked for among the rows."""
    ways = fitting.ways_of(schema, promise, whose=whose)
    if isinstance(X, Elsewhere):
        return _elsewhere(model, X, y, sensitive_features, ways)
    given, by_group = _given(model), _cells_read(model) is not None
    of, name = (BASES, type(thawed(model)).__name__) if given is None else (GIVEN, GIVEN)
    name = model.name if isinstance(model, Made) else name
    if ways.schema is not None or isinstance(X, RowSource):
        asked = labelled_rows(X, y, sensitive_features, None, ways, ())
        training, rows, grouped = asked.training, asked.training.rows, True
        labels = np.concatenate([np.asarray(one.labels, np.intp) for one in rows.blocks()])
        line, layout = _sensitive(rows), rows.layout
        grouped = bool(layout.sensitive)
        cells = rows.cells() if grouped else NO_GROUPS
        ids = np.asarray(cells.ids(line)[0], np.intp) if grouped else np.zeros(len(labels), np.intp)
        each = zip(layout.sensitive_names, layout.sensitive, line, strict=True)
        columns = {name: values_array(values)[codes] for name, values, codes in each}
        raw = given if given is not None else _asked(model, asked.features, columns, seed)
        same_length({"y": len(labels), of: len(raw)})
        found, facts = codes_of(raw, training.classes, of), training.facts
        said = facts, training.not_covered, name, True, by_group
        return DecidedPeople(rows, cells, training.classes, labels, ids, found, *said)
    columns, _ = columns_of(X, sensitive_features)
    features, unit = None, () if whose is None else whose.columns
    if X is not None:
        refuse_unseen(X)
        features = without(X, (*columns, *unit))
    fix = "Pass their features, or the decisions themselves in place of the model."
    there = X is not None or given is not None
    need(there, "what the model decides by", of="X", got=None, fix=fix)
    known = classes or tuple(values_array(classes_of(model)).tolist())
    raw = given if given is not None else _asked(model, features, columns, seed)
    values = read_labels(raw if y is None else y)
    same_length({of: len(raw), "y": len(values)})
    classes = known_classes(known) if known else _classes_among(values, raw)
    cells, line, origin = _groups(model, columns, len(raw), stated)
    y_codes, grouped = codes_of(values, classes, "y").astype(np.int32), bool(columns)
    groups = (cells.columns, cells.names) if grouped else ((), ())
    layout = RowLayout(0, (), classes, *groups)
    rows = _held(layout, y_codes, line if grouped else None, X, ways)
    facts = tuple(_facts(layout, "argument" if known else READ_FROM_DATA, origin))
    ids, labels = np.asarray(cells.ids(line)[0], np.intp), y_codes.astype(np.intp)
    decided = labels, ids, codes_of(raw, classes, of), facts, (), name, y is not None, by_group
    return DecidedPeople(rows, cells, classes, *decided)


def _given(model: object) -> npt.NDArray[Any] | None:
    """The decisions themselves, where these were handed in."""
    if isinstance(model, Made):
        return np.asarray(model.decisions)
    if hasattr(model, "predict") or callable(model):
        fix, got = "Pass an object that was fitted.", getattr(model, "__name__", None)
        need(not isinstance(model, type), "a fitted model", of="model", got=got, fix=fix)
        return None
    found = as_array(model, "model")
    found = found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found
    fix = (
        "Pass a fitted model, a function of the features, or one decision a person (not "
        "probabilities)."
    )
    got = type(model).__name__
    need(found.ndim == 1, "something that decides", of="model", got=got, fix=fix)
    return found


@dataclass(frozen=True, eq=False)
class _Function:
    """A function of the features as a model."""

    predict: Callable[[Any], Any]


def _asked(
    model: Any, features: TableLike, columns: dict[str, Any], seed: int | None
) -> npt.NDArray[Any]:
    """What the model decides; its prints and warnings, which may tell of rows, are not heard."""
    model = model if hasattr(model, "predict") else _Function(model)
    options: dict[str, Any] = {}
    if (cells := _cells_read(model)) is not None:
        names, of = cells.names, "sensitive_features"
        fix, got = f"Pass the columns of the fit: {', '.join(names)}.", list(columns) or None
        fits = len(columns) == len(names)
        need(fits, "the groups that this model reads", of=of, got=got, fix=fix)
        alike = set(columns) == set(names)
        options[of] = columns if alike else dict(zip(names, columns.values(), strict=True))
    if is_randomised(model):
        options["random_state"] = seed
    if length_of(features) == 0:  # see `decisions_of`
        return np.empty(0, object)
    found = np.asarray(unheard(model, features, **options))
    fix, of = "A certificate is about decisions: one class a person.", "the model's predictions"
    one = found.ndim != 2 or found.shape[1] == 1
    need(one, "one decision a person", of=of, got=f"shape {found.shape}", fix=fix)
    return found.reshape(-1)


def _cells_read(model: object) -> Cells | None:
    """The groups by which a model of ours decides; None where it reads none."""
    parts = parts_of(thawed(model))
    made = parts.model
    if isinstance(made, PostProcessedModel):
        return made.cells
    return parts.cells if isinstance(made, Model) and made.reads_groups else None


def _groups(
    model: object, columns: dict[str, Any], rows: int, stated: Cells | None
) -> tuple[Cells, npt.NDArray[np.uint16], Origin]:
    """Product cells: the stated ones, or those of a model of ours that names these columns and has
    all their values; else as the rows have them."""
    if not columns:
        return NO_GROUPS, np.zeros((1, rows), np.uint16), "argument"
    names, own = tuple(columns), parts_of(thawed(model)).cells
    if stated is not None:
        fix, of = f"Pass the columns {', '.join(stated.names)}.", "sensitive_features"
        fits = len(names) == len(stated.names)
        need(fits, "the groups that were stated", of=of, got=list(names), fix=fix)
        by_name = dict(zip(stated.names, stated.columns, strict=True))
        alike = set(by_name) == set(names)
        values = tuple(by_name[name] for name in names) if alike else stated.columns
        return *read_groups(columns, rows, groups=Cells(values, names=names)), "argument"
    if isinstance(own, Cells) and own.names == names:
        try:
            asked = Cells(own.columns, names=names)
            return *read_groups(columns, rows, groups=asked), "argument"
        except InputError:  # others than the model's
            pass
    found, codes = read_groups(columns, rows, missing=None)
    require_few_values(dict(zip(found.names, found.sizes, strict=True)), rows)
    return found, codes, READ_FROM_DATA


def _classes_among(labels: npt.NDArray[Any], raw: npt.NDArray[Any]) -> tuple[Hashable, ...]:
    """All that occur, among labels or decisions."""
    found: list[Any] = []
    for values, of in ((labels, "y"), (raw, GIVEN)):
        seen = distinct(Plain(np.asarray(values)), of)[0]
        found += [value for value in seen if value not in found]
    try:
        found = sorted(found)
    except TypeError:
        found = sorted(found, key=repr)
    fix, of = "Pass schema=, which lists classes that do not occur.", "y and the decisions"
    need(len(found) > 1, "at least two classes", of=of, got=found, fix=fix)
    return known_classes(found)


def require_labels(labelled: bool, needed: bool, of: Sequence[str]) -> None:
    """Some notions look at labels."""
    fix = "Pass y, the outcome that is known of each person set aside."
    expected = f"labels, which {', '.join(of)} looks at"
    need(labelled or not needed, expected, of="y", got=None, fix=fix)


# ------------------------------ elsewhere
# What a finished model decides about rows elsewhere: described, so that their holder decides by it,
# and counts. The library's own linear and additive models, and mixtures of these, have a
# description, where they were fitted by the holder's schema. Others run code of their own.


def _elsewhere(
    model: object,
    X: Elsewhere,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    ways: ReadOptions,
) -> DecidedPeople:
    """The people of a holder, and the rule by which a model decides about them."""
    training = training_of(X, y, sensitive_features, None, ways)
    rows, classes, nobody = training.rows, training.classes, np.zeros(0, np.intp)
    cells = rows.cells() if rows.layout.sensitive else NO_GROUPS
    rule, name = DescribedRule(None, len(classes)), "outcomes"
    if model is not None:
        inside = thawed(model)
        rule, name = DescribedRule(described_model(inside, X), len(classes)), type(inside).__name__
        coding: SchemaCoding = inside.coding_
        if coding.shapes is not None:
            assert training.schema is not None
            layout, as_feature = coding.shapes.layout(rows.layout), coding.encoding
            written = CODINGS.write(coding.shapes)
            rows = X.rows(layout, training.schema, as_feature.sensitive_as_feature, written)
    said = training.facts, training.not_covered, name, True, False, rule
    return DecidedPeople(rows, cells, classes, nobody, nobody, nobody, *said)


def described_model(estimator: object, data: Elsewhere) -> Any:
    """The model of a fitted estimator of ours, in coded units of the holder's schema; others are
    refused with the reason."""
    fitted = parts_of(estimator)
    model, coding, kind = fitted.model, fitted.coding, type(estimator).__name__
    parts = model.models if isinstance(model, MixtureModel) else (model,)
    fix = (
        "Fit it on this data set, or by its schema: fit(X, schema=remote.schema). Others need the "
        "rows."
    )
    got = kind if model is None else f"{kind} with a {type(model).__name__}"
    expected = "a fitted linear or additive model of Fairveil, or a mixture of these"
    linear = all(isinstance(part, LinearModel | MixtureModel) for part in parts)
    need(linear, expected, of="model", got=got, fix=fix)
    alike = (
        isinstance(coding, SchemaCoding)
        and coding.standard is None
        and _codes_alike(coding, data.schema)
    )
    got = "one that was fitted by another coding of its features"
    need(alike, "a model of the holder's schema", of="model", got=got, fix=fix)
    return model


def scores_rule(
    base: BaseEstimator, training: Training, data: Elsewhere, edges: npt.NDArray[np.float64] | None
) -> DescribedRule:
    """The decisions of a base classifier, or the bins of its score."""
    model, fix = described_model(base, data), "Pass a linear base: model=None."
    expected, linear = "a linear base classifier, through a door", base.coding_.shapes is None
    need(linear, expected, of="estimator", got="an additive one", fix=fix)
    return DescribedRule(model, len(training.classes) if edges is None else len(edges) + 1, edges)


def probabilities_rule(base: BaseEstimator, training: Training, data: Elsewhere) -> DescribedRule:
    """The probabilities of a base classifier."""
    rule, classes = (
        scores_rule(base, training, data, None),
        tuple(np.asarray(base.classes_).tolist()),
    )
    expected, fix = (
        f"the schema's classes {list(training.classes)}",
        "Fit it by the holder's schema.",
    )
    alike = classes == training.classes
    need(alike, expected, of="estimator", got=list(classes), fix=fix)
    return replace(rule, soft=True)


def _codes_alike(coding: SchemaCoding, schema: Schema) -> bool:
    """Whether the features of a coding are the holder's: the same columns, in the same order, of
    the same values and bounds."""
    own, target = coding.encoding, str(schema.target)
    if own.schema.target != schema.target or own.schema.columns[target] != schema.columns[target]:
        return False
    extra = own.schema.sensitive if own.sensitive_as_feature else ()
    names = [name for name in schema.columns if name in (*schema.features, *extra)]
    return (
        own.precision == "float64"
        and list(own.features) == names
        and all(own.schema.columns[name] == schema.columns[name] for name in names)
    )


# ------------------------------ answers
# What a base classifier answers for a row: its decision, or a score whose bin is asked about.
#
# | base | answers |
# |---|---|
# | two classes, with `decision_function` | that score, above 0 for the second class |
# | two classes, with `predict_proba` alone | the logit of the second class |
# | several classes, a base that is randomized, or without scores | its decisions |

AUTO, DECIDED = "auto", "predict"
SCORES = ("decision_function", "predict_proba")
FURTHEST = 1e300


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Answers:
    """A code for each training row, or the rule by which a holder finds it: a class, or a bin of
    the score between `edges`. `method`: how the base was asked."""

    method: str
    codes: Codes | DescribedRule
    edges: Floats | None

    def attached(self, curator: Curator, rows: Rows) -> Attached:
        """Handed to the curator."""
        described = isinstance(self.codes, DescribedRule)
        blocks: Any = self.codes if described else in_blocks(self.codes, rows)
        if self.edges is None:
            return curator.attach(blocks, title="base classifier")
        bins, title = 1 + len(self.edges), "bins of the base classifier's score"
        return curator.attach_codes(blocks, bins, title=title)


def method_of(base: object, wanted: object, classes: Sequence[Any]) -> str:
    """Which of the base's methods is asked; "auto": its score, where it has one of two classes."""
    _checks.one_of(ANSWERS, predict_method=wanted)
    if wanted == DECIDED:
        return DECIDED
    known = _listed(base)
    two = len(classes) == 2 and not is_randomised(base)
    two = two and (set(known) == set(classes) or not (known or is_fitted(base)))
    has = [name for name in SCORES if two and hasattr(base, name)]
    if wanted == AUTO:
        return has[0] if has else DECIDED
    fix = "Leave predict_method='auto', or pass 'predict' for the base's decisions."
    got = f"{type(base).__name__}, which has none of two classes"
    need(wanted in has, f"a base with {wanted}", of="estimator", got=got, fix=fix)
    return str(wanted)


def scores_of(
    base: object,
    method: str,
    features: TableLike,
    classes: Sequence[Any],
    *,
    rows: int | None = None,
) -> Floats:
    """The score of each row: above 0 where the base decides for the second of `classes`. `rows`: of
    the training, which the base is asked about unheard, and not at all where there are none."""
    if rows == 0:
        return np.empty(0)
    measurement = getattr(base, method)
    heard = rows is None
    found = asked_of_base(
        lambda: measurement(features) if heard else quietly(Troubles(), measurement, features)
    )
    scores = np.asarray(found, np.float64)
    if scores.ndim == 2 and scores.shape[1] == 2 and method == "predict_proba":
        scores = logits(scores[:, 1])
    else:
        scores = scores.reshape(len(scores), -1)[:, 0]
    if rows is not None:
        same_length({"y": rows, "the base classifier's scores": len(scores)})
    fix = "Fill in missing features, or pass predict_method='predict'."
    sound, of = not np.isnan(scores).any(), "the base classifier"
    need(sound, "a score for every row", of=of, got="NaN", fix=fix)
    scores = np.clip(scores, -FURTHEST, FURTHEST)
    if list(_listed(base)) == list(classes):
        return scores
    # the other way round: 0 is for the base's first class
    return np.where(scores == 0.0, np.finfo(np.float64).tiny, -scores)


def edges_of(bins: object, scores: Floats | None, plan: CountPlan, rows: float | None) -> Floats:
    """The edges of the bins: a caller's, quantiles of scores that are public, else fixed ones.
    `scores`: None before there are any. `rows`: their number, where it is public or was
    released."""
    wanted = edges_given(bins)
    if wanted is not None and wanted.ndim:
        return np.asarray(wanted)
    cells = 1 if plan.cells is None else plan.cells.count
    count = score_bins.number(cells, plan.law(1.0).sd, rows) if wanted is None else int(wanted)
    if scores is not None and (plan.totals_are_public or not plan.promise.is_private):
        return score_bins.quantiles(scores, count)
    return score_bins.fixed(count)


def edges_given(bins: Any) -> Any:
    """Edges, or a number of bins, as an array; None where nothing was said."""
    if bins is None:
        return None
    if np.ndim(bins) > 0:
        return score_bins.given(bins)
    count = _checks.whole(at_least=2, bins=bins, remedy="Pass bins=32, for example, or None.")
    return np.asarray(count) if count <= score_bins.MOST_GIVEN else score_bins.given(np.zeros(0))


def _listed(base: object) -> tuple[Any, ...]:
    return tuple(np.asarray(classes_of(base)).tolist())


# ------------------------------ groups at prediction


def group_ids(
    given: object, X: TableLike, cells: Cells, rows: int, named: bool
) -> npt.NDArray[np.intp]:
    """The cell of each row at prediction. Groups: columns, names of columns of X, the rows' own, or
    X's columns of those names where the fit was given names. Missing or unknown ones are errors."""
    of, names = "sensitive_features", cells.names
    if given is None and isinstance(X, (RowBlock, RowSource)):
        return _ids_of_rows(X, cells)
    expected = f"the groups of every row ({', '.join(names)})"
    fix = "This model is group-aware: pass predict(X, sensitive_features=...)."
    there = given is not None or (named and set(names) <= set(names_of(X)))
    need(there, expected, of=of, got=None, fix=fix)
    columns, _ = columns_of(X, list(names) if given is None else given)
    if set(columns) == set(names):
        columns = {name: columns[name] for name in names}
    else:  # by position only where no name says another
        fits = len(columns) == len(names) and not set(columns) & set(names)
        expected = f"{len(names)} columns ({', '.join(names)})"
        fix = "Pass the sensitive columns of the fit."
        need(fits, expected, of=of, got=list(columns), fix=fix)
    lengths = {f"sensitive column {name!r}": len(column) for name, column in columns.items()}
    same_length({"X": rows} | lengths)
    lines = [
        category_codes(Plain(column), Category(values), Place(name, missing_values=()))  # type: ignore[arg-type]
        for name, values, column in zip(names, cells.columns, columns.values(), strict=True)
    ]
    return np.asarray(cells.ids(np.stack(lines))[0], np.intp)


def _ids_of_rows(X: RowBlock | RowSource, cells: Cells) -> npt.NDArray[np.intp]:
    blocks: Iterator[RowBlock] = iter((X,)) if isinstance(X, RowBlock) else X.blocks()
    codes = [block.sensitive for block in blocks]
    layout = None if isinstance(X, RowBlock) else X.layout
    there = all(part is not None for part in codes)
    there = there and (layout is None or set(cells.names) <= set(layout.sensitive_names))
    expected, fix = (
        f"rows with groups {list(cells.names)}",
        "Code the rows with their sensitive columns.",
    )
    need(there, expected, of="X", got="rows without", fix=fix)
    whole = np.concatenate([part for part in codes if part is not None], axis=1)
    if layout is not None:
        at = [layout.sensitive_names.index(name) for name in cells.names]
        whole, alike = whole[at], tuple(layout.sensitive[j] for j in at) == cells.columns
        fix = "Code the rows by the schema of the fit."
        need(alike, f"the groups {cells.columns}", of="X", got="others", fix=fix)
    return np.asarray(cells.ids(whole)[0], np.intp)


# ------------------------------ bases
# The classifier inside a post-processor: used as it is or fitted, and what its making cost of the
# promise.
#
# | base | sensitive features protected | records protected |
# |---|---|---|
# | None | our linear classifier, exact on public rows, free | the same at a share of the promise |
# | ours, not fitted | a clone, its promise set here | the same |
# | ours, fitted | its statement's events; free if it never read the groups | its statement's events, under the same relation |
# | another's, not fitted | a clone, fitted on public features and labels | refused |
# | another's, fitted | as it is; the statement says what is assumed | only with `public_base=True`; the statement says so |

PROMISED = {"epsilon", "delta", "protects"}
FITTED_ELSEWHERE = (
    "the base classifier was fitted before: it is assumed that its training, its choice and its "
    "features did not read the "
    "sensitive columns"
)
SAID_TO_BE_PUBLIC = (
    "public_base=True: it is assumed, as declared, that the base classifier was made without these "
    "rows; what it holds of them "
    "is not covered"
)


@dataclass(frozen=True, eq=False)
class Base:
    """A fitted classifier; `statement`: of its making, where that is charged; `spent`: the events
    that are; `looked_at`: it was fitted before, so that everything that is asked for now may have
    been chosen by what was seen of it (theory.md#t10)."""

    estimator: Any
    statement: PrivacyStatement | None
    spent: tuple[Event, ...]
    not_covered: tuple[str, ...] = ()
    looked_at: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether the library made it, so that no other code is trusted."""
        kind, library = type(thawed(self.estimator)), __name__.split(".")[0]
        return carries_a_promise(self.estimator) and kind.__module__.split(".")[0] == library


@dataclass(frozen=True)
class BaseOptions:
    """What an estimator was told about its base. `share`: of the promise, for a base that reads
    what is protected."""

    promise: Promise
    share: float
    public_base: bool
    schema: Schema | None
    """What an unfitted base of ours is told, where it has no schema of its own."""
    seed: int | None
    default: Callable[[], Any]
    """Makes the base where none is given: a classifier without constraints, which promises like all
    of ours."""
    ledger: Ledger | None = None
    whose: Whose | None = None


def check_base(estimator: object, wishes: BaseOptions) -> None:
    """Refuse what can be refused before any row is read."""
    inside, fitted = thawed(estimator), estimator is not None and is_fitted(estimator)
    ours, name, of = carries_a_promise(estimator), type(inside).__name__, "estimator"
    searches = ours and isinstance(getattr(inside, "way", None), str)
    fix = "Fit the search, and pass its best_estimator_: it carries what the search cost."
    need(not searches, "a classifier", of=of, got=name, fix=fix)
    aware = ours and bool(stated(inside, "group_aware"))
    reads = "a post-processor" if ours and hasattr(inside, "public_base") else ""
    reads = reads or ("one with group_aware=True" if aware else "")
    fix = "Give the post-processor all constraints, and a base that does not read the group at prediction."
    need(not reads, "a base that decides without groups", of=of, got=reads, fix=fix)
    frozen = isinstance(estimator, FrozenEstimator) and not fitted
    fix = "Fit it first, or pass it without FrozenEstimator."
    need(not frozen, "a fitted classifier", of=of, got="one frozen before", fix=fix)
    unit = Schema.of(getattr(inside, "schema", None)).unit if ours and not fitted else None
    fix = "Give the post-processor alone a schema with a unit: it hands it to its base."
    expected = "a base without a unit of its own"
    need(unit is None, expected, of=of, got=unit, fix=fix, error=PrivacyError)
    if not ours and estimator is not None:
        sound = not isinstance(estimator, type) and hasattr(estimator, "predict")
        fix = "Pass a classifier, such as LogisticRegression(), or None."
        need(sound, "a classifier", of=of, got=type(estimator).__name__, fix=fix)
    public, name = wishes.public_base, type(estimator).__name__
    fix = "Fit it on the public data first, or leave public_base=False."
    got = "None" if estimator is None else f"{name}, not fitted"
    as_said, of_public = fitted or not public, "public_base=True"
    expected = "a fitted base classifier"
    need(as_said, expected, of=of_public, got=got, fix=fix, error=PrivacyError)
    if ours or estimator is None:
        return
    private = wishes.promise.is_private and wishes.promise.protects == "records"
    expected = "a base classifier that is private itself"
    got = f"{name}, which would be fitted on the private rows"
    fix = "Leave estimator=None, pass a classifier of Fairveil, or protects='sensitive_features'."
    need(fitted or not private, expected, of=of, got=got, fix=fix, error=PrivacyError)
    told = isinstance(parts_of(estimator).privacy, PrivacyStatement)
    expected = "a fitted base classifier with a privacy statement"
    fix = "Pass public_base=True if it was made without these rows, or a classifier of Fairveil."
    got, sound = f"{name}, which has none", public or told or not private
    need(sound, expected, of=of, got=got, fix=fix, error=PrivacyError)


def prepare(
    estimator: object,
    wishes: BaseOptions,
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    spare: bool,
) -> Base:
    """The base, fitted where it was not. `spare`: whether anything must be left of the promise for
    counts.

    `X` is without sensitive columns for classifiers of others; ours leave them out by themselves.
    """
    if estimator is not None and is_fitted(estimator):
        return as_it_is(estimator, wishes)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    if estimator is None or carries_a_promise(estimator):
        chosen = _promised(estimator, wishes, spare)
        groups = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
        chosen.fit(X, y, **groups, **weights)
        # no statement: an error, and nothing is published
        return Base(chosen, chosen.privacy_, _events(chosen.privacy_))
    chosen = clone(estimator)
    chosen.fit(X, y, **weights)
    # features and labels are public, or nothing is promised: `check_base` refuses the rest
    return Base(chosen, None, ())


def planned(estimator: object, wishes: BaseOptions, read: Read, *, spare: bool) -> tuple[Base, Any]:
    """What the base will have cost, before there are rows; and its search, where it is fitted under
    a promise of its own."""
    if estimator is not None and is_fitted(estimator):
        return as_it_is(estimator, wishes), None
    if estimator is None or carries_a_promise(estimator):
        chosen = copy.copy(_promised(estimator, wishes, spare))
        search = chosen._search(read)
        plan = search.plan if wishes.promise.is_private else None
        return Base(chosen, None, () if plan is None else (plan,)), search
    return Base(estimator, None, ()), None


def _promised(estimator: object, wishes: BaseOptions, spare: bool) -> Any:
    """A clone (or our default) under its share of the promise."""
    promise = wishes.promise
    chosen: Any = wishes.default() if estimator is None else clone(estimator)
    params = chosen.get_params(deep=False)
    share = wishes.share if promise.is_private and spare else 1.0
    chosen.set_params(
        epsilon=promise.epsilon * share,
        delta=promise.delta * share,
        protects=f"{promise.protects}:{promise.neighbours}",
        schema=_facts_for(chosen, wishes),
    )
    # its score is wanted: not one class for all, nor a mixture, that errs less
    if spare and chosen.get_params().get("solver__randomised") is False:
        chosen.set_params(solver__randomised=None)
    if "ledger" in params:
        chosen.set_params(ledger=wishes.ledger)
    if "random_state" in params and params["random_state"] is None:
        chosen.set_params(random_state=derived_seed(wishes.seed, 1))
    return chosen


def _facts_for(estimator: Any, wishes: BaseOptions) -> Schema | None:
    """What a base is told of the rows: its own schema, else the one given around it; of the
    persons who are protected."""
    own: Schema | None = estimator.schema
    if own is None and wishes.schema is not None and wishes.schema.sensitive_as_feature:
        own = replace(wishes.schema, sensitive_as_feature=False)
    own = wishes.schema if own is None else own
    if wishes.whose is None:
        return own
    told = wishes.whose.unit
    return Schema.of(own).with_unit(told.name, told.max_rows)


def as_it_is(estimator: object, wishes: BaseOptions) -> Base:
    """A base that is fitted, and what of its making is charged."""
    promise, statement, of = wishes.promise, parts_of(estimator).privacy, "estimator"
    if not promise.is_private:
        return Base(estimator, None, ())
    if wishes.public_base:
        return Base(estimator, None, (), (SAID_TO_BE_PUBLIC,))
    if not isinstance(statement, PrivacyStatement):
        # sensitive features: `check_base` refuses the rest
        return Base(estimator, None, (), (FITTED_ELSEWHERE,))
    # What a statement charges is taken from it, so it must agree with itself.
    grave = [finding.sentence for finding in statement.check() if finding.grave]
    expected = "a base classifier whose privacy statement agrees with itself"
    fix = "Fit it again, or load it from where it was saved."
    need(not grave, expected, of=of, got=(grave or [""])[0], fix=fix, error=PrivacyError)
    made = statement.promise

    def who(one: Promise) -> str | None:
        """How many rows of a person are read does not matter: both guarantees are of all rows of a
        person."""
        return None if one.unit is None else one.unit.name

    def told(one: Promise) -> str:
        return f"{one.protects}, {one.neighbours}{f', by {who(one)}' if who(one) else ''}"

    if (made.protects, made.neighbours, who(made)) == (
        promise.protects,
        promise.neighbours,
        who(promise),
    ):
        return Base(estimator, statement, _events(statement), looked_at=True)
    free = promise.protects == "sensitive_features" and parts_of(estimator).groups == ()
    expected, got = (
        f"a base classifier under the same guarantee: {told(promise)}",
        f"one under {told(made)}",
    )
    fix = "Fit it under the same relation, pass it unfitted, or fit it without sensitive_features."
    need(free, expected, of=of, got=got, fix=fix, error=PrivacyError)
    return Base(estimator, None, (), (FITTED_ELSEWHERE,))


def _events(statement: PrivacyStatement) -> tuple[Event, ...]:
    """What a statement charges: its plan; where a filter capped what was chosen as it went, the cap
    (theory.md#t10)."""
    if statement.plan is not None:
        return statement.plan
    if statement.cap is not None and math.isfinite(statement.epsilon):
        return (Approximate(statement.epsilon, statement.delta),)
    return statement.events


# ------------------------------ spends
# What the ledger of a post-processor is told of its base: one ledger for both, and no base that is
# charged twice, or never.
#
# | base | its spend |
# |---|---|
# | fitted here | its own fit's, in the post-processor's ledger |
# | fitted before, with a receipt of this ledger that holds its releases | there already |
# | fitted before, without one | what its statement charges, reserved beside the counts |
# | free, or declared public | none |


def ledger_inside(estimator: object) -> object:
    """The ledger of a base that is to be fitted here."""
    fitted_here = carries_a_promise(estimator) and not is_fitted(estimator)
    return thawed(estimator).get_params(deep=False).get("ledger") if fitted_here else None


def about_to_spend(estimator: object, wishes: BaseOptions) -> tuple[Event, ...]:
    """What a base that is fitted here is about to cost, near enough to refuse early: one release of
    its share of the promise, Gaussian or pure. Nothing where it may be free."""
    promise, fitted = wishes.promise, estimator is not None and is_fitted(estimator)
    if fitted or not promise.is_private or promise.protects != "records":
        return ()
    epsilon, delta = promise.epsilon * wishes.share, promise.delta * wishes.share
    return (Gaussian(1.0 / gaussian_mu(epsilon, delta)) if delta > 0 else Pure(epsilon),)


@contextmanager
def recorded(base: Base, wishes: BaseOptions, purpose: str) -> Iterator[Receipt | None]:
    """Charge a base that the ledger does not hold, while the block opens a curator for the rest:
    given back where that fails, so that a refused fit can be tried again at no cost. The receipt of
    the base's spend, if there is one."""
    ledger, statement = wishes.ledger, base.statement
    if ledger is not None and base.not_covered:
        unread = "a base classifier that was fitted without a guarantee"
        ledger.require(wishes.promise, read_from_data=[unread])
    if ledger is None or statement is None or not base.spent or _holds(ledger, statement):
        yield None if statement is None else statement.ledger
        return
    spend = ledger.reserve(
        base.spent,
        wishes.promise,
        purpose=f"{purpose}: its base",
        secure=statement.noise == "secure",
        read_from_data=names_read(statement.facts, statement.bounds),
    )
    try:
        yield spend.receipt
    except BaseException:
        settle(spend.refund)
        raise
    settle(spend.commit)


def _holds(ledger: Ledger, statement: PrivacyStatement) -> bool:
    """Whether this very ledger has the line of its receipt, reserved for what the statement lists,
    and never gave its charge back. A receipt of another release says nothing of this one."""
    receipt = statement.ledger
    if receipt is None or receipt.dataset != ledger.dataset:
        return False
    found = statement_findings(statement, list(ledger.history()))
    return not any(one.grave for one in found)


def also_spent(error: Overspent) -> Overspent:
    """The ledger has no room for the counts, and the base was fitted before that was known."""
    words = (
        f"{error} This is about the counts of the post-processor: its base classifier was fitted, "
        f"and stays charged. Leave "
        "budget for both: pass a smaller epsilon, or fit the base by itself and pass it fitted."
    )
    return Overspent(words, **error.figures)


# ------------------------------ statement
# Of base and counts together. They are one plan only where both were fitted together; beside a base
# that was there before they are two steps: what is stated holds however the second was chosen by
# looking at the first (`privacy.two_steps`). What the base's statement says against it is said.

FITTED_BEFORE = (
    "fitted before: its cost is counted, and what was released after it may have been chosen by "
    "looking at it"
)
FITTED_HERE = "fitted here: it and what was released after it are one plan, fixed in advance"


def statement_of_both(
    training: Training,
    base: Base,
    promise: Promise,
    counts: PrivacyStatement | None,
    receipt: Receipt | None,
    *,
    reads_groups: bool,
    base_origin: Origin = "argument",
) -> PrivacyStatement:
    """Base and counts together, under the whole promise. `counts`: what the curator says of them;
    None: nothing was asked."""
    first, released = base.statement, () if counts is None else counts.events
    events = [*base.spent, *released] if promise.is_private else [NonPrivate()]
    both = bool(promise.is_private and base.spent and released)
    in_two_steps, steps = (
        both and base.looked_at,
        [one for one in (first, counts) if one is not None],
    )
    # each reading of its own
    facts = dict.fromkeys((*training.facts, *(() if first is None else first.facts)))
    if both:
        words = FITTED_BEFORE if base.looked_at else FITTED_HERE
        facts[PublicFact(BASE_FACT, words, base_origin)] = None
    said = [*training.not_covered, *base.not_covered]
    said += [
        *(() if first is None else first.not_covered),
        *((READS_GROUPS,) if reads_groups else ()),
    ]
    named = [release for one in steps for release in one.releases]
    trusted = not base.is_ours or (first is not None and first.user_code != "none")
    earlier = None if first is None else first.earlier_releases
    if in_two_steps and first is not None:
        epsilon = at_most(first.epsilon, first.promise.epsilon)
        cost = f"epsilon {epsilon} at delta {first.delta:g} by itself"
        rest = "what else was released before adds to this cost and is not counted"
        before = f"the base classifier was fitted before ({cost}), and is counted here"
        earlier = f"{before}; {earlier or rest}"
    made = PrivacyStatement.of(
        promise,
        events,
        plan=events if promise.is_private and not in_two_steps else None,
        cap=TwoSteps(promise) if in_two_steps else None,
        facts=facts,
        bounds=[bound for one in steps for bound in one.bounds],
        not_covered=dict.fromkeys(said),
        tuning=None if first is None else first.tuning,
        earlier_releases=earlier,
        noise="seeded" if any(one.noise == "seeded" for one in steps) else "secure",
        arithmetic="exact" if first is None else first.arithmetic,
        user_code="trusted" if trusted else "none",
        ledger=receipt,
        releases=named if same_releases(named, events) else (),
    )
    return made if first is None else replace(made, notes=first.notes)
