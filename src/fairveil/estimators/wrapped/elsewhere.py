"""What a finished model decides about rows elsewhere: described, so that their holder decides by
it, and counts.

The library's own linear and additive models, and mixtures of these, have a description, where they
were fitted by the holder's schema. Others run code of their own: their decisions need the rows.

Guarantees (tests/serving/test_serving_fits.py):
1. No decision about a row is made here, and none comes here: only the counts that were released.
2. The holder codes rows as the model's fit did, or the model is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from ..._types import ColumnsLike
from ...core.promise import Promise
from ...curator.elsewhere import DescribedRule, Elsewhere
from ...errors import InputError
from ...facts import Schema
from ...learning.systems import NO_GROUPS
from ...models import LinearModel, MixtureModel
from .. import fitting
from ..reading.coded_files import CODINGS
from ..reading.coding import SchemaCoding
from ..reading.elsewhere import training_of
from ..reading.fitted_parts import parts_of
from ..reading.training import Training
from ..reading.units import Whose
from . import bases
from .people import Codes, DecidedRows, PartOf

KNOWN = (LinearModel, MixtureModel)
NOBODY: Codes = np.zeros(0, np.intp)


@dataclass(frozen=True, eq=False, repr=False)
class DecidedElsewhere(DecidedRows):
    """People of whom nothing is here: `rule` says how their holder decides about them."""

    rule: DescribedRule

    def codes_by(self, part_of: PartOf) -> Any:
        """The rule, with a code for each group, label and decision."""
        return self.rule.through(
            table_of(part_of, self.cells.count, len(self.classes), self.rule.decisions), self.cells
        )


def table_of(part_of: PartOf, groups: int, classes: int, decisions: int) -> npt.NDArray[np.int64]:
    """What a function of group, label and decision says of each."""
    shape = (groups, classes, decisions)
    grid = np.indices(shape).reshape(3, -1).astype(np.intp)
    return np.asarray(part_of(grid[0], grid[1], grid[2]), np.int64).reshape(shape)


def read(
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
    ways = fitting.ways_of(schema, False, False, 1.0, promise, whose=whose)
    training = training_of(X, y, sensitive_features, None, ways)
    cells = training.rows.cells() if training.rows.layout.sensitive else NO_GROUPS
    classes, rows, rule, name = (
        training.classes,
        training.rows,
        DescribedRule(None, len(training.classes)),
        "outcomes",
    )
    if model is not None:
        inside = bases.thawed(model)
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
    args = (
        rows,
        cells,
        classes,
        NOBODY,
        NOBODY,
        NOBODY,
        training.facts,
        training.not_covered,
        name,
        True,
        False,
    )
    return DecidedElsewhere(*args, rule=rule)


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
