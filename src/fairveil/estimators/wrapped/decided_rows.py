"""People with what a finished model decides about them: labels, groups and decisions as codes, for
one private count.

The model is anything that decides: an estimator of this library or another, a function of the
features, or a column of decisions. It was made without these people, so that what it decides about
a person is a public function of that person's row.

Guarantees (tests/estimators/test_estimators_certify.py):
1. A row's part depends on that row alone, given the model's decisions.
2. What the model says while it decides (prints, warnings) reaches nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._types import ColumnsLike, TableLike
from ...core.promise import Promise
from ...curator import Rows
from ...curator.elsewhere import Elsewhere
from ...errors import InputError
from ...facts import Cells, RowBlock, RowLayout, RowSource, Schema
from ...learning.systems import NO_GROUPS
from ...metrics.inputs import read_groups
from ...models import PostProcessedModel
from ...models.model import Model, known_classes
from ...statement.check import READ_FROM_DATA
from ...statement.document import Origin, PublicFact
from ...tables.columns import same_length
from ...tables.distinct import distinct, in_words
from ...tables.given import as_array
from ...tables.raw import Plain
from .. import fitting
from ..faces import as_array as values_array
from ..reading.carried import require_few_values
from ..reading.columns import read_labels
from ..reading.fitted_parts import classes_of, parts_of
from ..reading.training import Coded
from ..reading.units import Whose
from . import base_columns, bases, decided, elsewhere
from .people import DecidedRows

GIVEN = "decisions made elsewhere"


@dataclass(frozen=True, eq=False, repr=False)  # it holds what was decided about rows
class Made:
    """Decisions that a model made before, with what is public of that model: its name, classes and
    groups."""

    decisions: npt.NDArray[Any]
    name: str
    classes_: tuple[Hashable, ...]
    cells_: Cells | None = None


def read(
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
) -> DecidedRows:
    """The people, and what the model decides about them. `whose`: whose each row is, where persons
    have several. `stated`, `classes`: groups and classes that were stated without a schema; of
    these none is looked for among the rows."""
    if isinstance(X, Elsewhere):
        return elsewhere.read(model, X, y, sensitive_features, schema, promise, whose)
    if schema is not None or isinstance(X, RowSource):
        return _by_schema(model, X, y, sensitive_features, schema, promise, seed, whose)
    columns, _ = base_columns.columns_of(X, sensitive_features)
    given = _given(model)
    features = _features(X, columns, whose, given=given is not None)
    known = classes or tuple(values_array(classes_of(model)).tolist())
    raw = given if given is not None else _asked(model, features, columns, seed)
    labels = read_labels(raw if y is None else y)
    same_length({decided.BASES if given is None else GIVEN: len(raw), "y": len(labels)})
    origin: Origin = "argument" if known else READ_FROM_DATA
    classes = known_classes(known) if known else _classes_of(labels, raw)
    cells, codes, facts = _groups(model, columns, len(raw), stated)
    facts = (PublicFact("classes", in_words(classes), origin), *facts)
    y_codes = decided.codes_of(labels, classes, "y").astype(np.int32)
    grouped = bool(columns)
    layout = RowLayout(
        0, (), classes, cells.columns if grouped else (), cells.names if grouped else ()
    )
    block = RowBlock(
        np.empty((0, len(raw))),
        np.empty((0, len(raw)), np.uint8),
        y_codes,
        codes if grouped else None,
        None,
    )
    rows = Rows(Coded(layout, (block,)), units=decided.units_of(whose, X, len(raw), layout))
    ids = np.asarray(cells.ids(codes)[0], np.intp)
    found = decided.codes_of(raw, classes, GIVEN if given is not None else decided.BASES)
    words = _name_of(model, given is not None)
    args = (
        rows,
        cells,
        classes,
        y_codes.astype(np.intp),
        ids,
        found,
        facts,
        (),
        words,
        y is not None,
    )
    return DecidedRows(*args, by_group=_cells_read(model) is not None)


def _features(X: TableLike, columns: Iterable[str], whose: Whose | None, *, given: bool) -> Any:
    """What the model decides by; None where its decisions are given in its place."""
    if X is not None:
        decided.refuse_unseen(X)
        return base_columns.without(X, (*columns, *(() if whose is None else whose.columns)))
    if not given:
        remedy = "Pass their features, or the decisions themselves in place of the model."
        raise InputError.expected("what the model decides by", of="X", got=None, remedy=remedy)
    return None


def _by_schema(
    model: object,
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    schema: Schema | None,
    promise: Promise,
    seed: int | None,
    whose: Whose | None,
) -> DecidedRows:
    """Rows coded by a schema, which states classes and groups."""
    ways = fitting.ways_of(schema, False, False, 1.0, promise, whose=whose)
    asked = decided.read_rows(X, y, sensitive_features, None, ways, ())
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
    same_length({"y": len(labels), GIVEN if given is not None else decided.BASES: len(raw)})
    found = decided.codes_of(raw, training.classes, GIVEN if given is not None else decided.BASES)
    words = _name_of(model, given is not None)
    args = (
        rows,
        cells,
        training.classes,
        labels,
        ids,
        found,
        training.facts,
        training.not_covered,
        words,
        True,
    )
    return DecidedRows(*args, by_group=_cells_read(model) is not None)


def _name_of(model: object, given: bool) -> str:
    """Whose decisions they are, in words."""
    if isinstance(model, Made):
        return model.name
    return GIVEN if given else type(bases.thawed(model)).__name__


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
    if bases.is_randomised(model):
        options["random_state"] = seed
    if base_columns.length_of(features) == 0:  # see `decided.decisions_of`
        return np.empty(0, object)
    found = np.asarray(decided.unheard(model, features, **options))
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
    inside = bases.thawed(model)
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
    own = parts_of(bases.thawed(model)).cells
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
