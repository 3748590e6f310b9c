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
from ..core.errors import need
from ..core.layout import lines_of
from ..core.noise import NoiseSource
from ..core.promise import Promise, Protects
from ..core.rows import Rows
from ..errors import PrivacyError
from ..facts import RowLayout
from .measurements import Measurement
from .questions.by_cell import CellwiseQuestion
from .totals.passes import check_labels


def _private(holds: object, expected: str, of: str, got: object, fix: str) -> None:
    need(holds, expected, of=of, got=got, fix=fix, error=PrivacyError)


def sources_of(noise: NoiseSource | Sequence[NoiseSource] | None) -> tuple[NoiseSource, ...]:
    """One source for all models, or one a model; a secure one where none is given."""
    given: object = NoiseSource.secure() if noise is None else noise
    sources = tuple(given) if isinstance(given, list | tuple) else (given,)
    right = sources and all(isinstance(source, NoiseSource) for source in sources)
    fix = "Leave noise=None for a secure source, or pass one noise source a model."
    need(right, "a NoiseSource, or a list of them", of="noise", got=type(noise).__name__, fix=fix)
    return tuple(source for source in sources if isinstance(source, NoiseSource))


def require_weights(rows: Rows, promise: Promise) -> None:
    """Weights of rows have a cap, where anything is promised."""
    bounded = not rows.weighted or not math.isinf(rows.max_sample_weight)
    fix = "The largest weight multiplies every sensitivity: cap it at 1.0, for example."
    held = bounded or not promise.is_private
    _private(held, "a finite max_sample_weight", "rows", math.inf, fix)


def require_features_apart(layout: RowLayout, protects: Protects) -> None:
    """Features are public where sensitive ones alone are protected: none may be one of those."""
    apart = protects != "sensitive_features" or not layout.sensitive_as_features
    words = "features without the sensitive columns that are protected"
    fix = "Code the rows without sensitive_as_feature=True, or pass protects='records'."
    _private(apart, words, "rows", list(layout.sensitive_as_features), fix)


def require_unit(rows: Rows, promise: Promise) -> None:
    """The promise and the rows agree on who is protected; before anything is reserved."""
    unit = promise.unit
    if unit is None:
        fix = "Pass Promise(..., unit=Unit('patient', max_rows=12)), or rows without units."
        known = rows.knows_persons
        _private(not known, "a guarantee for persons", "promise", str(promise), fix)
        return
    fix = "Say whose each row is: Rows(source, units=...)."
    _private(rows.knows_persons, "rows of known persons", "rows", "rows alone", fix)
    bounded = not promise.is_private or unit.max_rows is not None
    fix = "Pass max_rows_per_unit=12, for example: what one person adds to a sum must be bounded."
    _private(bounded, "the most rows of one person", "unit", None, fix)


def require_all_kept(rows: Rows, promise: Promise) -> None:
    """Where rows are public none may be dropped, as all else counts them; how many a person has
    shows nothing."""
    given = rows.given
    if promise.features_are_public and rows.exact_count != given.exact_count:
        words = f"at least {given.most_per_person}, the most rows of one person"
        fix = (
            "Features and labels are public here, and so is whose they are: pass as many as the "
            "person who has most."
        )
        need(False, words, of="max_rows_per_unit", got=promise.rows_per_unit, fix=fix)


def require_shape(measurement: Measurement, rows: Rows, sources: int) -> None:
    """The question is about these rows, with a multiplier a cell and a noise source a model, where
    it has many."""
    question, vector = measurement.question, measurement.by_cell
    shape = question.shape(rows.layout)
    check_labels(question, rows)
    own = question.attached is None or question.attached.is_of(rows)
    fix = "Attach the model to this curator: its predictions are of other rows."
    need(own, "a handle of this curator", of="attached", got="another's", fix=fix)
    if question.cells is not None:
        lines_of(question.cells, rows.layout)
    by_cell = vector is not None or isinstance(question, CellwiseQuestion)
    fix = "Make the curator with one_group=True: all rows of a person then count in one group."
    one, of = "persons in one group each", f"the question {question.name!r}"
    _private(rows.groups_are_own or not by_cell, one, of, "any groups", fix)
    if vector is not None:
        words, many = f"{shape[0]} multipliers, one a cell", len(vector)
        need(many == shape[0], words, of="multiplier", got=many, fix="Count the cells.")
    fits = sources == 1 or question.models in (1, sources)
    words = f"questions about {sources} models, as many as there are noise sources"
    fix = "Give one noise source a model, or one for all."
    need(fits, words, of="answer", got=question.models, fix=fix)


def require_kinds(rows: object, promise: object) -> None:
    """Rows of this process, and a guarantee."""
    fix = "Wrap arrays with Rows.from_arrays(X, y, [groups]), a coded table with Rows(table)."
    found = _checks.instance(Rows, "rows", rows, fix)
    _checks.instance(Promise, "promise", promise, "Pass Promise(epsilon=1.0, delta=1e-6).")
    fix = "Make it with curator_of(rows, promise): their holder's curator is asked."
    here = not found.is_elsewhere
    need(here, "rows that are here", of="rows", got="another holder's", fix=fix)


def no_public_rows() -> PrivacyError:
    """Averages divide by a number that nobody stated and that is private."""
    fix = "Under add-remove it is private: pass public_rows=, or release_rows(multiplier) first."
    words = "a public number of rows"
    return PrivacyError.expected(words, of="public_rows", got=None, remedy=fix)


def require_ended(is_open: bool) -> None:
    """What went wrong inside user code is told once a run has ended."""
    fix = "An error may depend on one private row: call finish(), or close(), first."
    _private(not is_open, "a run that has ended", "trouble", "one that goes on", fix)


def require_scales(scale: Floats, shift: Floats, numbers: int) -> None:
    """A scale above 0, and a shift, for each number."""
    got = (scale.shape, shift.shape)
    right = got == ((numbers,), (numbers,)) and np.isfinite([scale, shift]).all()
    words = f"{numbers} finite numbers each, scales above 0"
    fix = "Make them from an answer to NumberMoments."
    need(right and (scale > 0).all(), words, of="rescale", got=got, fix=fix)
