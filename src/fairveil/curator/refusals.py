"""What a curator refuses before it reads a row: arguments that are none, and promises and rows that
say different things.

Guarantee (tests/curator/test_curator_persons.py):
1. Where a promise is about persons the rows say whose they are, and of each a bounded number is
   read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import _checks
from .._types import Floats
from ..core.layout import lines_of
from ..core.noise import NoiseSource
from ..core.promise import Promise, Protects
from ..core.rows import Rows
from ..errors import InputError, PrivacyError
from ..facts import RowLayout
from .measurements import Measurement
from .questions.by_cell import CellwiseQuestion
from .totals.passes import check_labels


def sources_of(noise: NoiseSource | Sequence[NoiseSource] | None) -> tuple[NoiseSource, ...]:
    """One source for all models, or one a model; a secure one where none is given."""
    if noise is None:
        return (NoiseSource.secure(),)
    sources = (
        (noise,)
        if isinstance(noise, NoiseSource)
        else tuple(noise)
        if isinstance(noise, list | tuple)
        else ()
    )
    if not sources or not all(isinstance(source, NoiseSource) for source in sources):
        remedy = "Leave noise=None for a secure source, or pass one noise source a model."
        got = type(noise).__name__
        raise InputError.expected(
            "a NoiseSource, or a list of them", of="noise", got=got, remedy=remedy
        )
    return sources


def require_weights(rows: Rows, promise: Promise) -> None:
    """Weights of rows have a cap, where anything is promised."""
    if rows.weighted and math.isinf(rows.max_sample_weight) and promise.is_private:
        remedy = "The largest weight multiplies every sensitivity: cap it at 1.0, for example."
        raise PrivacyError.expected(
            "a finite max_sample_weight", of="rows", got=math.inf, remedy=remedy
        )


def require_features_apart(layout: RowLayout, protects: Protects) -> None:
    """Features are public where sensitive ones alone are protected: none may be one of those."""
    if protects == "sensitive_features" and layout.sensitive_as_features:
        remedy = "Code the rows without sensitive_as_feature=True, or pass protects='records'."
        raise PrivacyError.expected(
            "features without the sensitive columns that are protected",
            of="rows",
            got=list(layout.sensitive_as_features),
            remedy=remedy,
        )


def require_unit(rows: Rows, promise: Promise) -> None:
    """The promise and the rows agree on who is protected; before anything is reserved."""
    unit = promise.unit
    if unit is None and not rows.knows_persons:
        return
    if unit is None:
        remedy = "Pass Promise(..., unit=Unit('patient', max_rows=12)), or rows without units."
        raise PrivacyError.expected(
            "a guarantee for persons", of="promise", got=str(promise), remedy=remedy
        )
    if not rows.knows_persons:
        remedy = "Say whose each row is: Rows(source, units=...)."
        raise PrivacyError.expected(
            "rows of known persons", of="rows", got="rows alone", remedy=remedy
        )
    if promise.is_private and unit.max_rows is None:
        remedy = (
            "Pass max_rows_per_unit=12, for example: what one person adds to a sum must be bounded."
        )
        raise PrivacyError.expected(
            "the most rows of one person", of="unit", got=None, remedy=remedy
        )


def require_all_kept(rows: Rows, promise: Promise) -> None:
    """Where rows are public none may be dropped, as all else counts them; how many a person has
    shows nothing."""
    given = rows.given
    if not promise.features_are_public or rows.exact_count == given.exact_count:
        return
    remedy = (
        "Features and labels are public here, and so is whose they are: pass as many as the person "
        "who has most."
    )
    expected = f"at least {given.most_per_person}, the most rows of one person"
    got = promise.rows_per_unit
    raise InputError.expected(expected, of="max_rows_per_unit", got=got, remedy=remedy)


def require_shape(measurement: Measurement, rows: Rows, sources: int) -> None:
    """The question is about these rows, with a multiplier a cell and a noise source a model, where
    it has many."""
    shape = measurement.question.shape(rows.layout)
    check_labels(measurement.question, rows)
    attached = measurement.question.attached
    if attached is not None and not attached.is_of(rows):
        remedy = "Attach the model to this curator: its predictions are of other rows."
        raise InputError.expected(
            "a handle of this curator", of="attached", got="another's", remedy=remedy
        )
    cells = measurement.question.cells
    if cells is not None:
        lines_of(cells, rows.layout)
    vector = measurement.by_cell
    if not rows.groups_are_own and (
        vector is not None or isinstance(measurement.question, CellwiseQuestion)
    ):
        remedy = (
            "Make the curator with one_group=True: all rows of a person then count in one group."
        )
        raise PrivacyError.expected(
            "persons in one group each",
            of=f"the question {measurement.question.name!r}",
            got="any groups",
            remedy=remedy,
        )
    if vector is not None and len(vector) != shape[0]:
        raise InputError.expected(
            f"{shape[0]} multipliers, one a cell",
            of="multiplier",
            got=len(vector),
            remedy="Count the cells.",
        )
    if sources > 1 and measurement.question.models not in (1, sources):
        raise InputError.expected(
            f"questions about {sources} models, as many as there are noise sources",
            of="answer",
            got=measurement.question.models,
            remedy="Give one noise source a model, or one for all.",
        )


def require_kinds(rows: object, promise: object) -> None:
    """Rows of this process, and a guarantee."""
    _checks.instance(
        Rows,
        "rows",
        rows,
        "Wrap arrays with Rows.from_arrays(X, y, [groups]), a coded table with Rows(table).",
    )
    _checks.instance(Promise, "promise", promise, "Pass Promise(epsilon=1.0, delta=1e-6).")
    if isinstance(rows, Rows) and rows.is_elsewhere:
        remedy = "Make it with curator_of(rows, promise): their holder's curator is asked."
        raise InputError.expected(
            "rows that are here", of="rows", got="another holder's", remedy=remedy
        )


def no_public_rows() -> PrivacyError:
    """Averages divide by a number that nobody stated and that is private."""
    return PrivacyError.expected(
        "a public number of rows",
        of="public_rows",
        got=None,
        remedy=(
            "Under add-remove it is private: pass public_rows=, or release_rows(multiplier) first."
        ),
    )


def require_ended(is_open: bool) -> None:
    """What went wrong inside user code is told once a run has ended."""
    if is_open:
        remedy = "An error may depend on one private row: call finish(), or close(), first."
        raise PrivacyError.expected(
            "a run that has ended", of="trouble", got="one that goes on", remedy=remedy
        )


def require_scales(scale: Floats, shift: Floats, numbers: int) -> None:
    """A scale above 0, and a shift, for each number."""
    wanted = (numbers,)
    if (
        scale.shape != wanted
        or shift.shape != wanted
        or not np.isfinite([scale, shift]).all()
        or not (scale > 0).all()
    ):
        expected = f"{wanted[0]} finite numbers each, scales above 0"
        remedy = "Make them from an answer to NumberMoments."
        raise InputError.expected(
            expected, of="rescale", got=(scale.shape, shift.shape), remedy=remedy
        )
