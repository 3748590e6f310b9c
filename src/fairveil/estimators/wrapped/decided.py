"""The rows that a post-processor asks about: labels, groups and a base's decisions. Features are
the base's own affair.

So a base may take anything as features: tables with missing values, texts, images.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ..._types import ColumnsLike, Floats, TableLike
from ...curator import Rows
from ...curator.elsewhere import Elsewhere
from ...curator.quiet import Troubles, quietly
from ...errors import FairveilError, InputError, KindError, complaint
from ...facts import RowBlock, RowLayout, RowSource
from ...models.model import known_classes
from ...statement.check import READ_FROM_DATA
from ...statement.document import Origin, PublicFact
from ...tables.columns import same_length
from ...tables.distinct import distinct, in_words
from ...tables.frames import column_of
from ...tables.given import is_masked
from ...tables.grids import refuse_duplicates
from ...tables.raw import Plain
from ..reading.carried import require_few_classes
from ..reading.coding import RowsCoding
from ..reading.columns import coded_groups, read_labels
from ..reading.copies import refuse_weights
from ..reading.inputs import read, weights_of
from ..reading.training import Coded, ReadOptions, Training
from ..reading.units import Whose, require_apart
from . import bases
from .base_columns import columns_of, length_of, names_of, width_of, without
from .copied import refuse_copied

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
    ways: ReadOptions,
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
    if ways.features_are_public:
        refuse_weights((block,), layout)
    units = units_of(whose, X, len(labels), layout)
    held = Rows(Coded(layout, (block,)), max_sample_weight=ways.max_sample_weight, units=units)
    origin: Origin = "argument" if known else READ_FROM_DATA
    facts = [PublicFact("classes", in_words(classes), origin)]
    facts += facts_of(layout, READ_FROM_DATA, weights, ways)
    training = Training(held, RowsCoding(0), tuple(facts), (), names_of(X), width_of(X))
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
