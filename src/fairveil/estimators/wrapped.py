"""Models that others finished: whether they may be used, what their making cost, and what they decide."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
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
from ..core.events import Approximate, Event, Gaussian, NonPrivate, Pure
from ..core.promise import Promise
from ..core.quiet import Troubles, quietly
from ..curator import Attached, AttachedCodes, Curator, Rows
from ..data import encode
from ..data.coding import Place, category_codes
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
from ..privacy.accounting.two_steps import TwoSteps
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
from ..tables.columns import read_columns, same_length
from ..tables.distinct import distinct, in_words
from ..tables.frames import column_of, table_of
from ..tables.given import as_array, column_names_of, is_masked, shape_of
from ..tables.grids import grid_of, refuse_duplicates
from ..tables.raw import Plain, is_missing
from . import fitting
from .faces import CodedEstimator
from .faces import as_array as values_array
from .fitting import READS_GROUPS
from .reading.carried import require_few_classes, require_few_values
from .reading.coded_files import CODINGS
from .reading.coding import RowsCoding, SchemaCoding
from .reading.columns import coded_groups, named_as_declared, names_in, no_such_columns, read_labels
from .reading.copies import refuse_copies, refuse_weights
from .reading.elsewhere import training_of
from .reading.fitted_parts import classes_of, parts_of
from .reading.inputs import read, weights_of
from .reading.training import Coded, ReadOptions, Training
from .reading.units import Whose, require_apart
from .reading.unread import Read
from .settings import ANSWERS, stated

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
#
# Guarantees (tests/estimators/test_estimators_odds_privacy.py):
# 1. A fitted base is never fitted again or changed; one that is not is cloned first.
# 2. `Base.spent` is what the base's own statement charges, under the post-processor's relation, or
#    nothing where the base does not depend on what is protected; every assumption for that is a
#    sentence in `Base.not_covered`.
# 3. A base that was fitted before counts as looked at: what is asked beside it is priced as chosen
#    afterwards. One that is fitted here was planned together with the rest.

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
        inside = thawed(self.estimator)
        return (
            carries_a_promise(inside)
            and type(inside).__module__.split(".")[0] == __name__.split(".")[0]
        )


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
    if isinstance(
        estimator, type
    ):  # a class where one of its objects is wanted: `check_base` says so
        return False
    if not hasattr(estimator, "fit"):
        return True
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def check_base(estimator: object, wishes: BaseOptions) -> None:
    """Refuse what can be refused before any row is read."""
    inside = thawed(estimator)
    if carries_a_promise(inside) and isinstance(getattr(inside, "way", None), str):
        remedy = "Fit the search, and pass its best_estimator_: it carries what the search cost."
        raise InputError.expected(
            "a classifier", of="estimator", got=type(inside).__name__, remedy=remedy
        )
    reads = _reads_groups(estimator)
    if reads is not None:
        remedy = (
            "Give the post-processor all constraints, and a base that does not read the group at "
            "prediction."
        )
        raise InputError.expected(
            "a base that decides without groups", of="estimator", got=reads, remedy=remedy
        )
    if isinstance(estimator, FrozenEstimator) and not is_fitted(estimator):
        remedy = "Fit it first, or pass it without FrozenEstimator."
        raise InputError.expected(
            "a fitted classifier", of="estimator", got="one frozen before", remedy=remedy
        )
    _refuse_unit(estimator)
    if estimator is None or carries_a_promise(estimator):
        if wishes.public_base and (estimator is None or not is_fitted(estimator)):
            raise _not_fitted_in_public(type(estimator).__name__)
        return
    _check_foreign(estimator, wishes)


def _refuse_unit(estimator: object) -> None:
    """A base that is to be fitted is told of persons by the post-processor."""
    if not carries_a_promise(estimator) or is_fitted(estimator):
        return
    told = Schema.of(getattr(thawed(estimator), "schema", None)).unit
    if told is not None:
        remedy = "Give the post-processor alone a schema with a unit: it hands it to its base."
        raise PrivacyError.expected(
            "a base without a unit of its own", of="estimator", got=told, remedy=remedy
        )


def _check_foreign(estimator: object, wishes: BaseOptions) -> None:
    """A base of another library."""
    if isinstance(estimator, type) or not hasattr(estimator, "predict"):
        remedy = "Pass a classifier, such as LogisticRegression(), or None."
        raise InputError.expected(
            "a classifier", of="estimator", got=type(estimator).__name__, remedy=remedy
        )
    private = wishes.promise.is_private and wishes.promise.protects == "records"
    fitted = is_fitted(estimator)
    if wishes.public_base and not fitted:
        raise _not_fitted_in_public(type(estimator).__name__)
    if private and not fitted:
        raise PrivacyError.expected(
            "a base classifier that is private itself",
            of="estimator",
            got=f"{type(estimator).__name__}, which would be fitted on the private rows",
            remedy=(
                "Leave estimator=None, pass a classifier of Fairveil, or "
                "protects='sensitive_features'."
            ),
        )
    if (
        private
        and not wishes.public_base
        and not isinstance(parts_of(estimator).privacy, PrivacyStatement)
    ):
        raise PrivacyError.expected(
            "a fitted base classifier with a privacy statement",
            of="estimator",
            got=f"{type(estimator).__name__}, which has none",
            remedy=(
                "Pass public_base=True if it was made without these rows, or a classifier "
                "of Fairveil."
            ),
        )


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
    if estimator is None or carries_a_promise(estimator):
        chosen = _promised(estimator, wishes, spare)
        groups = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
        chosen.fit(X, y, **groups, **_weights(sample_weight))
        # no statement: an error, and nothing is published
        return Base(chosen, chosen.privacy_, _events(chosen.privacy_))
    chosen = clone(estimator)
    chosen.fit(X, y, **_weights(sample_weight))
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


def derived_seed(seed: int | None, what: int) -> int | None:
    """A seed of its own for each part of a fit: the same stream must never make the noise of two
    releases."""
    return (
        None
        if seed is None
        else int(np.random.SeedSequence([seed, what]).generate_state(1, np.uint32)[0])
    )


def _reads_groups(estimator: object) -> str | None:
    """In words, why a base of ours is group-aware: its decisions are then no public function of
    public features."""
    inside = thawed(estimator)
    if not carries_a_promise(inside):
        return None
    if hasattr(inside, "public_base"):
        return "a post-processor"
    return "one with group_aware=True" if stated(inside, "group_aware") else None


def _weights(sample_weight: ColumnsLike) -> dict[str, Any]:
    return {} if sample_weight is None else {"sample_weight": sample_weight}


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
    )
    chosen.set_params(schema=_facts_for(chosen, wishes))
    # its score is wanted: not one class for all, nor a mixture, that errs less
    if spare and chosen.get_params().get("solver__randomised") is True:
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
    promise = wishes.promise
    statement = parts_of(estimator).privacy
    if not promise.is_private:
        return Base(estimator, None, ())
    if wishes.public_base:
        return Base(estimator, None, (), (SAID_TO_BE_PUBLIC,))
    if not isinstance(statement, PrivacyStatement):
        # sensitive features: `check_base` refuses the rest
        return Base(estimator, None, (), (FITTED_ELSEWHERE,))
    _refuse_contradictions(statement)
    made = statement.promise
    if (made.protects, made.neighbours, _who(made)) == (
        promise.protects,
        promise.neighbours,
        _who(promise),
    ):
        return Base(estimator, statement, _events(statement), looked_at=True)
    if promise.protects == "sensitive_features" and parts_of(estimator).groups == ():
        return Base(estimator, None, (), (FITTED_ELSEWHERE,))
    raise PrivacyError.expected(
        (
            f"a base classifier under the same guarantee: {promise.protects}, "
            f"{promise.neighbours}{_by(promise)}"
        ),
        of="estimator",
        got=f"one under {made.protects}, {made.neighbours}{_by(made)}",
        remedy=(
            "Fit it under the same relation, pass it unfitted, or fit it without "
            "sensitive_features."
        ),
    )


def _who(promise: Promise) -> str | None:
    """Who is protected. How many rows of a person are read does not matter: both guarantees are of
    all rows of a person."""
    return None if promise.unit is None else promise.unit.name


def _by(promise: Promise) -> str:
    return "" if promise.unit is None else f", by {promise.unit.name}"


def _refuse_contradictions(statement: PrivacyStatement) -> None:
    """What a statement charges is taken from it, so it must agree with itself; who made it up is
    another matter."""
    grave = [finding.sentence for finding in statement.check() if finding.grave]
    if grave:
        raise PrivacyError.expected(
            "a base classifier whose privacy statement agrees with itself",
            of="estimator",
            got=grave[0],
            remedy="Fit it again, or load it from where it was saved.",
        )


def _events(statement: PrivacyStatement) -> tuple[Event, ...]:
    """What a statement charges: its plan; where a filter capped what was chosen as it went, the cap
    (theory.md#t10)."""
    if statement.plan is not None:
        return statement.plan
    if statement.cap is not None and math.isfinite(statement.epsilon):
        return (Approximate(statement.epsilon, statement.delta),)
    return statement.events


def _not_fitted_in_public(name: str) -> PrivacyError:
    remedy = "Fit it on the public data first, or leave public_base=False."
    got = "None" if name == "NoneType" else f"{name}, not fitted"
    return PrivacyError.expected(
        "a fitted base classifier", of="public_base=True", got=got, remedy=remedy
    )


# ------------------------------ base_columns
# Columns that a base takes as features: their names, which are sensitive, and X without some.


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
    names = names_in(given)
    shown = names_of(X)
    if names is None or (
        set(names) - set(shown) and not isinstance(given, str) and len(names) == length_of(X)
    ):
        return dict(read_columns(given)), False
    strange = [name for name in names if name not in shown]
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
    # one kind of sparse array is a mapping too
    return isinstance(X, Mapping) and not sparse.issparse(X)


def length_of(X: TableLike) -> int | None:
    """How many rows, where that can be seen; else the base's decisions say it."""
    if is_mapping(X):
        return table_of(X).rows
    if (shape := shape_of(X)) is not None:
        return int(shape[0]) if shape else None
    return len(X) if hasattr(X, "__len__") and not isinstance(X, type) else None


def width_of(X: Any) -> int:
    names = names_of(X)
    shape = shape_of(X) or ()
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


# ------------------------------ copied
# Public features that are a sensitive column over again, refused before anything is released.


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


# ------------------------------ people
# People with what a model decides about them, as one private count takes them: see `decided_rows`
# and `elsewhere`.

Codes = npt.NDArray[np.intp]
PartOf = Callable[[Codes, Codes, Codes], npt.NDArray[Any]]


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class DecidedPeople:
    """The rows for a curator, with labels, cells and decisions; `model`: in words; `labelled`:
    whether labels were given."""

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

    def codes_by(self, part_of: PartOf) -> Any:
        """Each row's code, by its group, label and decision, as `Curator.attach_codes` takes it."""
        return in_blocks(
            np.asarray(part_of(self.ids, self.labels, self.decisions), np.intp), self.rows
        )

    def parts(self, part_of: npt.NDArray[np.int64]) -> Any:
        """The same from a table."""
        return self.codes_by(lambda ids, labels, decisions: part_of[ids, labels, decisions])


# ------------------------------ decided
# The rows that a post-processor asks about: labels, groups and a base's decisions. Features are
# the base's own affair.
#
# So a base may take anything as features: tables with missing values, texts, images.

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


def labelled_rows(
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    ways: ReadOptions,
    known: Sequence[Hashable],
) -> DecidedRows:
    """The rows of a fit. `known`: the classes of a base that is fitted, none where it is not."""
    if ways.schema is not None or isinstance(X, RowSource | Elsewhere):
        training = read(X, y, sensitive_features, sample_weight, ways)
        return _labelled_by_schema(X, y, training)
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
    held = held_rows(
        layout,
        codes,
        group_codes,
        weights,
        weights_are_public=ways.features_are_public,
        max_sample_weight=ways.max_sample_weight,
        units=units_of(whose, X, len(labels), layout),
    )
    origin: Origin = "argument" if known else READ_FROM_DATA
    facts = [PublicFact("classes", in_words(classes), origin)]
    facts += facts_of(layout, READ_FROM_DATA, weights, ways)
    if ways.public_rows is not None:
        facts.append(PublicFact("number of rows", str(ways.public_rows), "schema"))
    names, width = names_of(X), width_of(X)
    coding = RowsCoding(0)
    training = Training(held, coding, tuple(facts), (), names, width, ways.public_rows)
    return DecidedRows(training, features, labels, named)


def facts_of(
    layout: RowLayout, origin: Origin, weights: Floats | None, ways: ReadOptions
) -> list[PublicFact]:
    """What is public of the groups and of weights."""
    named = zip(layout.sensitive_names, layout.sensitive, strict=True)
    found = [PublicFact(f"groups of {in_words([n])}", in_words(v), origin) for n, v in named]
    if weights is not None and ways.features_are_public:
        words = "public: must not depend on the sensitive columns"
        found.append(PublicFact("sample weights", words, "argument"))
    return found


def held_rows(
    layout: RowLayout,
    labels: npt.NDArray[np.int32],
    groups: npt.NDArray[np.uint16] | None,
    weights: Floats | None = None,
    *,
    weights_are_public: bool = False,
    **options: Any,
) -> Rows:
    """Rows of labels, groups and weights alone, for the curator."""
    none = np.empty((0, len(labels)))
    block = RowBlock(none, none.astype(np.uint8), labels, groups, weights)
    if weights_are_public:
        refuse_weights((block,), layout)
    return Rows(Coded(layout, (block,)), **options)


def units_of(whose: Whose | None, X: TableLike, rows: int, layout: RowLayout) -> Any:
    """One value a row: whose it is; None where rows are protected."""
    if whose is None:
        return None
    require_apart(whose.column, layout.sensitive_names)
    return whose.of_table(X, None, rows)


def decisions_of(
    base: object, features: TableLike, classes: Sequence[Hashable], rows: int, seed: int | None
) -> Codes:
    """The base's decisions about the training rows as class codes. Of no rows it is not asked: most
    refuse, and a refusal would tell an empty table from one of a single row."""
    if not rows:
        return np.empty(0, np.intp)
    codes = codes_of(
        unheard(base, features, random_state=seed)
        if is_randomised(base)
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
        raise InputError.expected(
            "a value in every place", of="X", got="masked ones", remedy=remedy
        )
    if X is None or isinstance(X, type):
        raise InputError.expected(
            "a table", of="X", got=X, remedy="Pass what the base classifier takes."
        )


def asked_of_base(measurement: Callable[[], Any]) -> Any:
    """What a base says of features, which are its own affair: what it refuses is refused in our
    family, with its words."""
    try:
        return measurement()
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
        raise InputError.expected(expected, of="estimator", got=f"shape {law.shape}", remedy=remedy)
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
        raise InputError.expected(
            f"classes among {list(classes)}", of=of, got=strange, remedy=remedy
        )
    return np.array([code_of[value] for value in found], np.intp)[at]


def in_blocks(codes: Codes, rows: Rows) -> Callable[[Any], Codes]:
    """The decisions block by block, as `Curator.attach` takes them."""
    ends = np.cumsum([block.rows for block in rows.blocks()])
    parts = np.split(codes, ends[:-1])
    return lambda block: parts[block.number]


def _labelled_by_schema(X: Any, y: ColumnsLike, training: Training) -> DecidedRows:
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
        require_few_classes(classes, len(labels))
    strange = [value for value in found if value not in classes]
    if strange:
        remedy = "Fit the base on all classes."
        raise InputError.expected(
            f"the base's classes {list(classes)}", of="y", got=strange, remedy=remedy
        )
    if len(classes) < 2:
        remedy = "Pass labels of at least two classes; a schema may list classes that do not occur."
        got = f"one class: {in_words(classes)}"
        raise InputError.expected("labels of at least two classes", of="y", got=got, remedy=remedy)
    known_classes(classes)
    places = np.array([classes.index(value) for value in found], np.int32)
    return classes, places[codes]


# ------------------------------ answers
# What a base classifier answers for a row: its decision, or a score whose bin is asked about.
#
# | base | answers |
# |---|---|
# | two classes, with `decision_function` | that score, above 0 for the second class |
# | two classes, with `predict_proba` alone | the logit of the second class |
# | several classes, a base that is randomized, or without scores | its decisions |
#
# Guarantees (tests/estimators/test_estimators_base_answers.py):
# 1. Edges are made of public facts and of what was released; of the scores themselves only where
#    these are public, or nothing is promised.
# 2. A score that is NaN is an error, at the fit and at prediction; the bin of a row is the same at
#    both.

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

    def attached(self, curator: Curator, rows: Rows) -> Attached | AttachedCodes:
        """Handed to the curator."""
        blocks: Any = (
            self.codes if isinstance(self.codes, DescribedRule) else in_blocks(self.codes, rows)
        )
        if self.edges is None:
            return curator.attach(blocks, title="base classifier")
        return curator.attach_codes(
            blocks, 1 + len(self.edges), title="bins of the base classifier's score"
        )


def answers_of(
    base: object,
    wanted: str,
    bins: object,
    features: TableLike,
    training: Training,
    plan: CountPlan,
    known: float | None,
    seed: int | None,
) -> Answers:
    """What a fitted base answers about the training rows. `known`: their number, where it is public
    or was released."""
    classes, method = training.classes, method_of(base, wanted, training.classes)
    if isinstance(features, Elsewhere):
        edges = None if method == DECIDED else edges_of(bins, None, plan, known)
        return Answers(method, scores_rule(base, training, features, edges), edges)
    rows = training.rows.exact_count
    if method == DECIDED:
        return Answers(method, decisions_of(base, features, classes, rows, seed), None)
    scores = scores_of(base, method, features, classes, rows=rows)
    edges = edges_of(bins, scores, plan, known)
    return Answers(method, score_bins.codes(scores, edges), edges)


def check_answers(wanted: object, bins: object) -> None:
    """Refuse what can be refused before any row is read."""
    _checks.one_of(ANSWERS, predict_method=wanted)
    if bins is not None:
        _edges_given(bins)


def method_of(base: object, wanted: object, classes: Sequence[Any]) -> str:
    """Which of the base's methods is asked; "auto": its score, where it has one of two classes."""
    _checks.one_of(ANSWERS, predict_method=wanted)
    if wanted == DECIDED:
        return DECIDED
    has = [name for name in SCORES if _scores_two(base, classes) and hasattr(base, name)]
    if wanted == AUTO:
        return has[0] if has else DECIDED
    if wanted not in has:
        remedy = "Leave predict_method='auto', or pass 'predict' for the base's decisions."
        got = f"{type(base).__name__}, which has none of two classes"
        raise InputError.expected(f"a base with {wanted}", of="estimator", got=got, remedy=remedy)
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
    found = asked_of_base(
        lambda: (
            measurement(features) if rows is None else quietly(Troubles(), measurement, features)
        )
    )
    scores = np.asarray(found, np.float64)
    second = scores.ndim == 2 and scores.shape[1] == 2
    scores = (
        logits(scores[:, 1])
        if second and method == "predict_proba"
        else scores.reshape(len(scores), -1)[:, 0]
    )
    if rows is not None:
        same_length({"y": rows, "the base classifier's scores": len(scores)})
    if np.isnan(scores).any():
        remedy = "Fill in missing features, or pass predict_method='predict'."
        raise InputError.expected(
            "a score for every row", of="the base classifier", got="NaN", remedy=remedy
        )
    scores = np.clip(scores, -FURTHEST, FURTHEST)
    if list(_listed(base)) == list(classes):
        return scores
    # the other way round: 0 is for the base's first class
    return np.where(scores == 0.0, np.finfo(np.float64).tiny, -scores)


def edges_of(bins: object, scores: Floats | None, plan: CountPlan, rows: float | None) -> Floats:
    """The edges of the bins: a caller's, quantiles of scores that are public, else fixed ones.
    `scores`: None before there are any. `rows`: their number, where it is public or was
    released."""
    wanted = _edges_given(bins)
    if wanted is not None and wanted.ndim:
        return np.asarray(wanted)
    cells = 1 if plan.cells is None else plan.cells.count
    count = score_bins.number(cells, plan.law(1.0).sd, rows) if wanted is None else int(wanted)
    if scores is not None and (plan.totals_are_public or not plan.promise.is_private):
        return score_bins.quantiles(scores, count)
    return score_bins.fixed(count)


def _edges_given(bins: Any) -> Any:
    """Edges, or a number of bins, as an array; None where nothing was said."""
    if bins is None:
        return None
    if np.ndim(bins) > 0:
        return score_bins.given(bins)
    count = _checks.whole(at_least=2, bins=bins, remedy="Pass bins=32, for example, or None.")
    return np.asarray(count) if count <= score_bins.MOST_GIVEN else score_bins.given(np.zeros(0))


def _scores_two(base: object, classes: Sequence[Any]) -> bool:
    """Whether it tells two classes apart, by a score that its decisions follow."""
    if len(classes) != 2 or is_randomised(base):
        return False
    known = _listed(base)
    return set(known) == set(classes) or not (known or is_fitted(base))


def _listed(base: object) -> tuple[Any, ...]:
    return tuple(np.asarray(classes_of(base)).tolist())


# ------------------------------ elsewhere
# What a finished model decides about rows elsewhere: described, so that their holder decides by
# it, and counts.
#
# The library's own linear and additive models, and mixtures of these, have a description, where they
# were fitted by the holder's schema. Others run code of their own: their decisions need the rows.
#
# Guarantees (tests/serving/test_serving_fits.py):
# 1. No decision about a row is made here, and none comes here: only the counts that were released.
# 2. The holder codes rows as the model's fit did, or the model is refused.

KNOWN = (LinearModel, MixtureModel)
NOBODY: Codes = np.zeros(0, np.intp)


@dataclass(frozen=True, eq=False, repr=False)
class DecidedElsewhere(DecidedPeople):
    """People of whom nothing is here: `rule` says how their holder decides about them."""

    rule: DescribedRule

    def codes_by(self, part_of: PartOf) -> Any:
        """The rule, with a code for each group, label and decision."""
        return self.rule.through(
            rule_table(part_of, self.cells.count, len(self.classes), self.rule.decisions),
            self.cells,
        )


def rule_table(part_of: PartOf, groups: int, classes: int, decisions: int) -> npt.NDArray[np.int64]:
    """What a function of group, label and decision says of each."""
    shape = (groups, classes, decisions)
    grid = np.indices(shape).reshape(3, -1).astype(np.intp)
    return np.asarray(part_of(grid[0], grid[1], grid[2]), np.int64).reshape(shape)


def people_elsewhere(
    model: object,
    X: Elsewhere,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    schema: Schema | None,
    promise: Promise,
    whose: Whose | None = None,
) -> DecidedElsewhere:
    """The people of a holder, and the rule by which a model decides about them; `model` None: their
    outcomes. `whose`: who is protected, where the holder's people have several rows."""
    ways = fitting.ways_of(schema, promise, whose=whose)
    training = training_of(X, y, sensitive_features, None, ways)
    cells = training.rows.cells() if training.rows.layout.sensitive else NO_GROUPS
    classes, rows, rule, name = (
        training.classes,
        training.rows,
        DescribedRule(None, len(training.classes)),
        "outcomes",
    )
    if model is not None:
        inside = thawed(model)
        rule, name = DescribedRule(described_model(inside, X), len(classes)), type(inside).__name__
        coding: SchemaCoding = inside.coding_
        if coding.shapes is not None:
            assert training.schema is not None
            layout = coding.shapes.layout(rows.layout)
            rows = X.rows(
                layout,
                training.schema,
                coding.encoding.sensitive_as_feature,
                CODINGS.write(coding.shapes),
            )
    said = training.facts, training.not_covered, name, True, False
    return DecidedElsewhere(rows, cells, classes, NOBODY, NOBODY, NOBODY, *said, rule=rule)


def described_model(estimator: object, data: Elsewhere) -> Any:
    """The model of a fitted estimator of ours, in coded units of the holder's schema; others are
    refused with the reason."""
    fitted = parts_of(estimator)
    model, coding = fitted.model, fitted.coding
    parts = model.models if isinstance(model, MixtureModel) else (model,)
    remedy = (
        "Fit it on this data set, or by its schema: fit(X, schema=remote.schema). Others need the "
        "rows."
    )
    if not all(isinstance(part, KNOWN) for part in parts):
        got = (
            type(estimator).__name__
            if model is None
            else f"{type(estimator).__name__} with a {type(model).__name__}"
        )
        expected = "a fitted linear or additive model of Fairveil, or a mixture of these"
        raise InputError.expected(expected, of="model", got=got, remedy=remedy)
    if (
        not isinstance(coding, SchemaCoding)
        or coding.standard is not None
        or not _codes_alike(coding, data.schema)
    ):
        got = "one that was fitted by another coding of its features"
        raise InputError.expected(
            "a model of the holder's schema", of="model", got=got, remedy=remedy
        )
    return model


def scores_rule(
    base: BaseEstimator, training: Training, data: Elsewhere, edges: npt.NDArray[np.float64] | None
) -> DescribedRule:
    """The decisions of a base classifier, or the bins of its score."""
    model = described_model(base, data)
    if base.coding_.shapes is not None:
        remedy = "Pass a linear base: model=None."
        got = "an additive one"
        raise InputError.expected(
            "a linear base classifier, through a door", of="estimator", got=got, remedy=remedy
        )
    return DescribedRule(model, len(training.classes) if edges is None else len(edges) + 1, edges)


def probabilities_rule(base: BaseEstimator, training: Training, data: Elsewhere) -> DescribedRule:
    """The probabilities of a base classifier."""
    rule = scores_rule(base, training, data, None)
    classes = tuple(np.asarray(base.classes_).tolist())
    if classes != training.classes:
        remedy = "Fit it by the holder's schema."
        expected = f"the schema's classes {list(training.classes)}"
        raise InputError.expected(expected, of="estimator", got=list(classes), remedy=remedy)
    return replace(rule, soft=True)


def _codes_alike(coding: SchemaCoding, schema: Schema) -> bool:
    """Whether the features of a coding are the holder's: the same columns, in the same order, of
    the same values and bounds."""
    own = coding.encoding
    if (
        own.schema.target != schema.target
        or own.schema.columns[str(schema.target)] != schema.columns[str(schema.target)]
    ):
        return False
    names = [name for name in schema.columns if name in schema.features]
    if own.sensitive_as_feature:
        names = [
            name for name in schema.columns if name in (*schema.features, *own.schema.sensitive)
        ]
    return (
        own.precision == "float64"
        and list(own.features) == names
        and all(own.schema.columns[n] == schema.columns[n] for n in names)
    )


# ------------------------------ decided_rows
# People with what a finished model decides about them: labels, groups and decisions as codes, for
# one private count.
#
# The model is anything that decides: an estimator of this library or another, a function of the
# features, or a column of decisions. It was made without these people, so that what it decides about
# a person is a public function of that person's row.
#
# Guarantees (tests/estimators/test_estimators_certify.py):
# 1. A row's part depends on that row alone, given the model's decisions.
# 2. What the model says while it decides (prints, warnings) reaches nobody.

GIVEN = "decisions made elsewhere"


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
    """The people, and what the model decides about them. `whose`: whose each row is, where persons
    have several. `stated`, `classes`: groups and classes that were stated without a schema; of
    these none is looked for among the rows."""
    if isinstance(X, Elsewhere):
        return people_elsewhere(model, X, y, sensitive_features, schema, promise, whose)
    if schema is not None or isinstance(X, RowSource):
        return _people_by_schema(model, X, y, sensitive_features, schema, promise, seed, whose)
    columns, _ = columns_of(X, sensitive_features)
    given = _given(model)
    features = _features(X, columns, whose, given=given is not None)
    known = classes or tuple(values_array(classes_of(model)).tolist())
    raw = given if given is not None else _asked(model, features, columns, seed)
    labels = read_labels(raw if y is None else y)
    same_length({BASES if given is None else GIVEN: len(raw), "y": len(labels)})
    origin: Origin = "argument" if known else READ_FROM_DATA
    classes = known_classes(known) if known else _classes_of(labels, raw)
    cells, codes, facts = _groups(model, columns, len(raw), stated)
    facts = (PublicFact("classes", in_words(classes), origin), *facts)
    y_codes = codes_of(labels, classes, "y").astype(np.int32)
    grouped = bool(columns)
    layout = RowLayout(
        0, (), classes, cells.columns if grouped else (), cells.names if grouped else ()
    )
    units = units_of(whose, X, len(raw), layout)
    rows = held_rows(layout, y_codes, codes if grouped else None, units=units)
    ids = np.asarray(cells.ids(codes)[0], np.intp)
    found = codes_of(raw, classes, GIVEN if given is not None else BASES)
    words, by_group = _name_of(model, given is not None), _cells_read(model) is not None
    decided = y_codes.astype(np.intp), ids, found, facts, (), words, y is not None, by_group
    return DecidedPeople(rows, cells, classes, *decided)


def _features(X: TableLike, columns: Iterable[str], whose: Whose | None, *, given: bool) -> Any:
    """What the model decides by; None where its decisions are given in its place."""
    if X is not None:
        refuse_unseen(X)
        return without(X, (*columns, *(() if whose is None else whose.columns)))
    if not given:
        remedy = "Pass their features, or the decisions themselves in place of the model."
        raise InputError.expected("what the model decides by", of="X", got=None, remedy=remedy)
    return None


def _people_by_schema(
    model: object,
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    schema: Schema | None,
    promise: Promise,
    seed: int | None,
    whose: Whose | None,
) -> DecidedPeople:
    """Rows coded by a schema, which states classes and groups."""
    ways = fitting.ways_of(schema, promise, whose=whose)
    asked = labelled_rows(X, y, sensitive_features, None, ways, ())
    training = asked.training
    rows = training.rows
    blocks = list(rows.blocks())
    labels = np.concatenate([np.asarray(block.labels, np.intp) for block in blocks])
    cells = rows.cells() if rows.layout.sensitive else NO_GROUPS
    codes = np.concatenate([np.asarray(block.sensitive, np.uint16) for block in blocks], axis=1)
    ids = (
        np.asarray(cells.ids(codes)[0], np.intp)
        if rows.layout.sensitive
        else np.zeros(len(labels), np.intp)
    )
    columns = {
        name: values_array(values)[line]
        for name, values, line in zip(
            rows.layout.sensitive_names, rows.layout.sensitive, codes, strict=True
        )
    }
    given = _given(model)
    raw = given if given is not None else _asked(model, asked.features, columns, seed)
    same_length({"y": len(labels), GIVEN if given is not None else BASES: len(raw)})
    found = codes_of(raw, training.classes, GIVEN if given is not None else BASES)
    words, by_group = _name_of(model, given is not None), _cells_read(model) is not None
    said = training.facts, training.not_covered, words, True, by_group
    return DecidedPeople(rows, cells, training.classes, labels, ids, found, *said)


def _name_of(model: object, given: bool) -> str:
    """Whose decisions they are, in words."""
    if isinstance(model, Made):
        return model.name
    return GIVEN if given else type(thawed(model)).__name__


def _given(model: object) -> npt.NDArray[Any] | None:
    """The decisions themselves, where these were handed in."""
    if isinstance(model, Made):
        return np.asarray(model.decisions)
    if hasattr(model, "predict") or callable(model):
        if isinstance(model, type):
            remedy = "Pass an object that was fitted."
            raise InputError.expected(
                "a fitted model", of="model", got=model.__name__, remedy=remedy
            )
        return None
    found = as_array(model, "model")
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        remedy = (
            "Pass a fitted model, a function of the features, or one decision a person (not "
            "probabilities)."
        )
        raise InputError.expected(
            "something that decides", of="model", got=type(model).__name__, remedy=remedy
        )
    return found


def _asked(
    model: Any, features: TableLike, columns: dict[str, Any], seed: int | None
) -> npt.NDArray[Any]:
    """What the model decides; its prints and warnings, which may tell of rows, are not heard."""
    if not hasattr(model, "predict"):
        model = _Function(model)
    options: dict[str, Any] = {}
    read = _cells_read(model)
    if read is not None:
        names = set(read.names)
        if len(columns) != len(read.names):
            remedy = f"Pass the columns of the fit: {', '.join(read.names)}."
            got = list(columns) or None
            raise InputError.expected(
                "the groups that this model reads", of="sensitive_features", got=got, remedy=remedy
            )
        options["sensitive_features"] = (
            columns
            if set(columns) == names
            else dict(zip(read.names, columns.values(), strict=True))
        )
    if is_randomised(model):
        options["random_state"] = seed
    if length_of(features) == 0:  # see `decided.decisions_of`
        return np.empty(0, object)
    found = np.asarray(unheard(model, features, **options))
    return (
        found.reshape(-1) if found.ndim != 2 or found.shape[1] == 1 else _refuse_shape(found.shape)
    )


def _refuse_shape(shape: tuple[int, ...]) -> npt.NDArray[Any]:
    remedy = "A certificate is about decisions: one class a person."
    raise InputError.expected(
        "one decision a person", of="the model's predictions", got=f"shape {shape}", remedy=remedy
    )


@dataclass(frozen=True, eq=False)
class _Function:
    """A function of the features as a model."""

    predict: Callable[[Any], Any]


def _cells_read(model: object) -> Cells | None:
    """The groups by which a model of ours decides; None where it reads none."""
    inside = thawed(model)
    parts = parts_of(inside)
    made = parts.model
    if isinstance(made, PostProcessedModel):
        return made.cells
    return parts.cells if isinstance(made, Model) and made.reads_groups else None


def _groups(
    model: object, columns: dict[str, Any], rows: int, stated: Cells | None
) -> tuple[Cells, npt.NDArray[np.uint16], tuple[PublicFact, ...]]:
    """Product cells: the stated ones, or those of a model of ours that names these columns and has
    all their values; else as the rows have them."""
    if not columns:
        return NO_GROUPS, np.zeros((1, rows), np.uint16), ()
    names = tuple(columns)
    origin: Origin = "argument"
    own = parts_of(thawed(model)).cells
    if stated is not None:
        found, codes = read_groups(columns, rows, groups=_in_order(stated, names))
    elif not isinstance(own, Cells) or own.names != names:
        found, codes, origin = _among(columns, rows)
    else:
        try:
            found, codes = read_groups(columns, rows, groups=Cells(own.columns, names=names))
        except InputError:  # others than the model's
            found, codes, origin = _among(columns, rows)
    facts = (
        PublicFact(f"groups of {in_words([name])}", in_words(values), origin)
        for name, values in zip(found.names, found.columns, strict=True)
    )
    return found, codes, tuple(facts)


def _in_order(stated: Cells, names: tuple[str, ...]) -> Cells:
    """Groups that were stated, by the names of their columns, else in the order given."""
    if len(names) != len(stated.names):
        remedy = f"Pass the columns {', '.join(stated.names)}."
        raise InputError.expected(
            "the groups that were stated", of="sensitive_features", got=list(names), remedy=remedy
        )
    by_name = dict(zip(stated.names, stated.columns, strict=True))
    if set(by_name) == set(names):
        return Cells(tuple(by_name[name] for name in names), names=names)
    return Cells(stated.columns, names=names)


def _among(columns: dict[str, Any], rows: int) -> tuple[Cells, npt.NDArray[np.uint16], Origin]:
    """The groups of the rows."""
    found, codes = read_groups(columns, rows, missing=None)
    require_few_values(dict(zip(found.names, found.sizes, strict=True)), rows)
    return found, codes, READ_FROM_DATA


def _classes_of(labels: npt.NDArray[Any], raw: npt.NDArray[Any]) -> tuple[Hashable, ...]:
    """All that occur, among labels or decisions."""
    found: list[Hashable] = []
    for values, of in ((labels, "y"), (raw, GIVEN)):
        found += [
            value for value in distinct(Plain(np.asarray(values)), of)[0] if value not in found
        ]
    try:
        found = sorted(found)  # type: ignore[type-var]
    except TypeError:
        found = sorted(found, key=repr)
    if len(found) < 2:
        remedy = "Pass schema=, which lists classes that do not occur."
        raise InputError.expected(
            "at least two classes", of="y and the decisions", got=found, remedy=remedy
        )
    return known_classes(found)


def require_labels(labelled: bool, needed: bool, of: Sequence[str]) -> None:
    """Some notions look at labels."""
    if needed and not labelled:
        remedy = "Pass y, the outcome that is known of each person set aside."
        raise InputError.expected(
            f"labels, which {', '.join(of)} looks at", of="y", got=None, remedy=remedy
        )


# ------------------------------ grouping
# Each row's group at prediction: from columns, from names of X's columns, or from codes.


def group_ids(
    given: object, X: TableLike, cells: Cells, rows: int, named: bool
) -> npt.NDArray[np.intp]:
    """The cell of each row at prediction. Groups: columns, names of columns of X, the rows' own, or
    X's columns of those names where the fit was given names. Missing or unknown ones are errors."""
    if given is None and isinstance(X, (RowBlock, RowSource)):
        return _ids_of_rows(X, cells)
    if given is None and not (named and set(cells.names) <= set(names_of(X))):
        raise InputError.expected(
            f"the groups of every row ({', '.join(cells.names)})",
            of="sensitive_features",
            got=None,
            remedy="This model is group-aware: pass predict(X, sensitive_features=...).",
        )
    columns, _ = columns_of(X, list(cells.names) if given is None else given)
    if set(columns) == set(cells.names):
        columns = {name: columns[name] for name in cells.names}
    elif len(columns) != len(cells.columns) or set(columns) & set(cells.names):
        # by position only where no name says another
        remedy = "Pass the sensitive columns of the fit."
        expected = f"{len(cells.columns)} columns ({', '.join(cells.names)})"
        raise InputError.expected(
            expected, of="sensitive_features", got=list(columns), remedy=remedy
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


def _ids_of_rows(X: RowBlock | RowSource, cells: Cells) -> npt.NDArray[np.intp]:
    blocks: Iterator[RowBlock] = iter((X,)) if isinstance(X, RowBlock) else X.blocks()
    codes = [block.sensitive for block in blocks]
    layout = None if isinstance(X, RowBlock) else X.layout
    if any(part is None for part in codes) or (
        layout is not None and not set(cells.names) <= set(layout.sensitive_names)
    ):
        remedy = "Code the rows with their sensitive columns."
        raise InputError.expected(
            f"rows with groups {list(cells.names)}", of="X", got="rows without", remedy=remedy
        )
    whole = np.concatenate([part for part in codes if part is not None], axis=1)
    if layout is not None:
        at = [layout.sensitive_names.index(name) for name in cells.names]
        whole = whole[at]
        if tuple(layout.sensitive[j] for j in at) != cells.columns:
            remedy = "Code the rows by the schema of the fit."
            raise InputError.expected(
                f"the groups {cells.columns}", of="X", got="others", remedy=remedy
            )
    return np.asarray(cells.ids(whole)[0], np.intp)


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
#
# Guarantees (tests/estimators/test_estimators_ledger.py):
# 1. What the statement charges is in the ledger, once.
# 2. Where there is no room for base and counts together, that is said before the base is fitted, as
#    far as it can be foreseen.


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
        ledger.require(
            wishes.promise, read_from_data=["a base classifier that was fitted without a guarantee"]
        )
    if ledger is None or statement is None or not base.spent or _holds(ledger, statement):
        yield None if statement is None else statement.ledger
        return
    read = names_read(statement.facts, statement.bounds)
    secure = statement.noise == "secure"
    spend = ledger.reserve(
        base.spent,
        wishes.promise,
        purpose=f"{purpose}: its base",
        secure=secure,
        read_from_data=read,
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
# The statement of a post-processor: its base classifier and what was asked after it, together.
#
# Guarantees (tests/estimators/test_estimators_odds_looked_at.py):
# 1. Base and counts are one plan only where both were fitted together. Beside a base that was there
#    before they are two steps: what is stated holds however the second was chosen by looking at the
#    first (`privacy.two_steps`).
# 2. What the base's statement says against it is said: seeded noise, user code, what it read from the
#    data or does not cover.

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
    released = () if counts is None else counts.events
    events = [*base.spent, *released] if promise.is_private else [NonPrivate()]
    both = bool(promise.is_private and base.spent and released)
    in_two_steps = both and base.looked_at
    first = base.statement
    # each reading of its own
    facts = dict.fromkeys((*training.facts, *(() if first is None else first.facts)))
    if both:
        facts[
            PublicFact(BASE_FACT, FITTED_BEFORE if base.looked_at else FITTED_HERE, base_origin)
        ] = None
    seeded = any(one is not None and one.noise == "seeded" for one in (first, counts))
    groups = (READS_GROUPS,) if reads_groups else ()
    said = (
        *training.not_covered,
        *base.not_covered,
        *(() if first is None else first.not_covered),
        *groups,
    )
    named = [
        *(() if first is None else first.releases),
        *(() if counts is None else counts.releases),
    ]
    stated = PrivacyStatement.of(
        promise,
        events,
        plan=events if promise.is_private and not in_two_steps else None,
        cap=TwoSteps(promise) if in_two_steps else None,
        facts=facts,
        bounds=[
            *(() if first is None else first.bounds),
            *(() if counts is None else counts.bounds),
        ],
        not_covered=dict.fromkeys(said),
        tuning=None if first is None else first.tuning,
        earlier_releases=None
        if first is None
        else _earlier(first)
        if in_two_steps
        else first.earlier_releases,
        noise="seeded" if seeded else "secure",
        arithmetic="exact" if first is None else first.arithmetic,
        user_code="none"
        if base.is_ours and (first is None or first.user_code == "none")
        else "trusted",
        ledger=receipt,
        releases=named if same_releases(named, events) else (),
    )
    return stated if first is None else replace(stated, notes=first.notes)


def _earlier(base: PrivacyStatement) -> str:
    """What was released before the counts were chosen: the base, which is counted, and what its own
    statement says."""
    cost = (
        f"epsilon {at_most(base.epsilon, base.promise.epsilon)} at delta {base.delta:g} by itself"
    )
    before = (
        base.earlier_releases
        or "what else was released before adds to this cost and is not counted"
    )
    return f"the base classifier was fitted before ({cost}), and is counted here; {before}"


# ------------------------------ unlabelled
# Rows of a post-processor that needs no labels: groups, and what a fitted base is shown. Each
# stands as the first class.
#
# Guarantees (tests/estimators/test_estimators_parity_rows.py):
# 1. No label is read: rows with other labels, or none, are the same rows.
# 2. With a schema, or with declared groups, nothing but the number of rows depends on the data.

WITHOUT = "Pass sensitive_features=...: columns, or names of columns of X."


def unlabelled_rows(
    X: TableLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    ways: ReadOptions,
    known: Sequence[Hashable],
) -> DecidedRows:
    """The rows of a fit. `known`: the classes of the base. Rows that were coded before have labels,
    which nobody counts."""
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
    names = names_in(sensitive_features)
    beside = None
    if names is not None:
        unused = [name for name in schema.sensitive if name not in names]
        schema = schema.with_roles(sensitive=names).without(*unused)
    elif sensitive_features is not None:
        beside = named_as_declared(sensitive_features, schema)
    require_groups(bool(schema.sensitive))
    bare = schema if schema.target is None else schema.without(schema.target)
    rows = encode(X, bare, names=bare.features, sensitive=beside)
    codes = np.concatenate(
        [np.asarray(block.sensitive, np.uint16) for block in rows.blocks()], axis=1
    )
    there, count = names_of(X), codes.shape[1]
    features = without(X, [name for name in there if name not in bare.features])
    shown = bare.features if there else ()
    same_length({"X": length_of(X), "sensitive_features": count})
    classes = known_classes(known)
    layout = RowLayout(0, (), classes, rows.layout.sensitive, rows.layout.sensitive_names)
    if ways.features_are_public:
        refuse_copied(features, layout, codes)
    are_private = not ways.features_are_public
    weights = weights_of(sample_weight, count, are_private=are_private)
    held = held_rows(
        layout,
        np.zeros(count, np.int32),
        codes,
        weights,
        weights_are_public=ways.features_are_public,
        max_sample_weight=ways.max_sample_weight,
        units=units_of(ways.whose, X, count, layout),
    )
    facts = [PublicFact("classes", in_words(classes), "argument")]
    facts += facts_of(layout, "schema", weights, ways)
    training = Training(
        held,
        RowsCoding(0),
        tuple(facts),
        (),
        shown,
        len(shown),
        ways.public_rows,
        schema=ways.schema,
    )
    return DecidedRows(training, features, None, beside is None)


def require_groups(there: bool) -> None:
    """An error for rows without groups."""
    if not there:
        raise InputError.expected(
            "the group of every row", of="sensitive_features", got=None, remedy=WITHOUT
        )
