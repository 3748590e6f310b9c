"""Warnings before a fit, from public facts alone: the promise, the arguments, the kind of coding,
the program around it.

Guarantees (tests/estimators/test_estimators_cautions.py):
1. Where records are protected, no warning depends on a value of a row or on how many rows there
   are: two tables of the same kinds of columns give the same warnings.
2. Where features are public (sensitive features alone protected, or nothing), the sizes of their
   numbers are looked at, and no group is.
3. Each warning is given once a fit, and names the argument to change, on the command line the
   option.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...core.extra.sharded import ShardedRows
from ...core.promise import Promise
from ...curator import Rows
from ...errors import (
    FairveilWarning,
    RawUnits,
    UnprotectedStep,
    UnstatedBounds,
    WeakDelta,
    WeakEpsilon,
    complaint,
)
from .coding import SchemaCoding, TableCoding
from .pipelines import Step, steps_before
from .training import Training

Numbers = Literal["scaled", "as given", "unread"]
"""How a search takes numbers: it scales dense public ones itself, it takes them as they are, or it
reads none."""

WEAK_EPSILON = 10.0
"""Above it the odds about one person may change by more than e^10, about 22,000."""
WEAK_DELTA = 1e-4
"""Above it, and where the number of rows is private, delta is called weak: few tables are so short
that it is not."""
MOST_UNBOUNDED = 40
"""Numbers without public bounds, up to which sums of them are regressed where records are
protected: their noise grows with the width of a row."""
FAR = 10.0
"""A root mean square of a column above this is far from 1, as is one below its inverse squared
where all columns are."""
PACKAGE = str(Path(__file__).parents[2])

_inside: ContextVar[bool] = ContextVar("fairveil_fit_inside_a_fit", default=False)


@contextmanager
def said_around() -> Iterator[None]:
    """Inside, another fit is a part of one that has already warned of its promise and its
    pipeline."""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


def is_inside() -> bool:
    """Whether this fit is a part of another one."""
    return _inside.get()


def of_promise(promise: Promise, rows: int | None) -> None:
    """Warn of a weak epsilon and a weak delta. `rows`: their number where it is public; a private
    one must decide nothing."""
    if not promise.is_private or _inside.get():
        return
    if promise.epsilon > WEAK_EPSILON:
        _say(
            WeakEpsilon,
            of="epsilon",
            expected=f"at most {WEAK_EPSILON:g} for a guarantee that says much about one person",
            got=promise.epsilon,
            remedy=f"This guarantee is weak: what is released may change the odds about a person "
            f"by a factor of "
            f"e^{promise.epsilon:g}. Pass epsilon=1.0, for example.",
            shell_remedy=f"This guarantee is weak: what is released may change the odds about a "
            f"person by a factor of "
            f"e^{promise.epsilon:g}. Pass --epsilon 1, for example.",
        )
    if rows is not None and promise.delta * rows >= 1.0:
        text = "A mechanism that publishes one row in full would keep this guarantee: pass"
        _say(
            WeakDelta,
            of="delta",
            expected=f"a number well below 1/{rows}, one over the rows",
            got=promise.delta,
            remedy=f"{text} delta={0.1 / rows:.0e}, for example.",
            shell_remedy=f"{text} --delta {0.1 / rows:.0e}, for example.",
        )
    elif rows is None and promise.delta > WEAK_DELTA:
        text = (
            f"The number of rows is private and was not compared. This delta assumes fewer than "
            f"{1 / promise.delta:,.0f} rows: "
            "with more, a mechanism that publishes one row in full would keep this guarantee. Pass"
        )
        _say(
            WeakDelta,
            of="delta",
            expected="a number well below one over the rows",
            got=promise.delta,
            remedy=f"{text} delta=1e-6 or schema=Schema(rows=...), about how many rows there are.",
            shell_remedy=f"{text} --delta 1e-6 or --rows, about how many rows there are.",
        )


def are_unbounded(training: Training) -> bool:
    """Whether there are numbers whose bounds nothing public states."""
    coding = training.coding
    bounded = 0 if coding.shapes is None else len(coding.shapes.along)
    return (
        coding.layout.numbers > bounded
        and coding.standard is None
        and not isinstance(coding, SchemaCoding)
    )


def are_few_and_unbounded(training: Training) -> bool:
    """Whether there are such numbers, so few that sums of them know more than gradients that are
    clipped to a fixed norm."""
    return training.rows.layout.numbers <= MOST_UNBOUNDED and are_unbounded(training)


def of_units(training: Training, promise: Promise, numbers: Numbers) -> None:
    """Warn where nothing public bounds the numbers that a search takes, or where public ones are
    seen to be in raw units."""
    coding = training.coding
    width = coding.layout.numbers
    if numbers == "unread" or not are_unbounded(training):
        return
    if not promise.features_are_public:
        # Rows are protected: whether their numbers are large must not be seen, so that this is said
        # of small ones, too.
        if isinstance(coding, TableCoding):
            head = (
                "No bounds were stated, and protected numbers are not looked at. Gradients are "
                "clipped"
            )
            tail = (
                "in raw units such as dollars or years the model may learn nothing, and the budget "
                "buys one answer for everybody"
            )
            _say(
                UnstatedBounds,
                of="X",
                expected="numbers whose bounds are public",
                got=f"{width} without a schema",
                remedy=f"{head}: {tail}. Pass schema=, with Number(low, high) for each; or scale "
                f"them by public numbers to "
                "about [-1, 1] and ignore errors.UnstatedBounds.",
                shell_remedy=f"{head}: {tail}. Pass --schema with a low and a high for each "
                f"number.",
            )
        return
    if numbers == "scaled" and not training.rows.sparse:
        return
    if isinstance(training.rows, ShardedRows):  # a schema coded them, to [-1, 1]
        return
    sizes = _sizes(training.rows, width)
    largest = int(np.argmax(sizes))
    if not (sizes[largest] > FAR or 0 < sizes[largest] < FAR**-2):
        return
    name = "".join(
        letter if letter.isprintable() else "?" for letter in coding.feature_names[largest]
    )[:100]
    _say(
        RawUnits,
        of=f"column {name!r} of X",
        expected="numbers of a size about 1, for this fit does not scale them",
        got=f"a root mean square of {sizes[largest]:.2g}",
        remedy="In raw units the model may learn nothing. Pass schema=, with Number(low, high) for "
        "each number, or scale X.",
        shell_remedy="In raw units the model may learn nothing. Pass --schema with a low and a "
        "high for each number.",
    )


def of_pipeline(training: Training, promise: Promise) -> tuple[Step, ...]:
    """Warn of the steps of a pipeline that learned what is protected, and name them for the
    statement."""
    if not promise.is_private:
        return ()
    if promise.protects == "sensitive_features" and not set(
        training.rows.layout.sensitive_names
    ) & set(training.columns):
        return ()  # what the steps read is public: they were not handed the sensitive columns
    steps = steps_before()
    if steps and not _inside.get():
        _say(
            UnprotectedStep,
            of="pipeline",
            expected="steps that learn nothing from the rows before a private fit",
            got=f"{', '.join(map(str, steps))}, which read the training rows without privacy",
            remedy="The guarantee does not cover what they read, as privacy_.not_covered says. "
            "Scale and encode by a schema: "
            "pass schema= and leave these steps out.",
        )
    return steps


def _sizes(rows: Rows, width: int) -> npt.NDArray[np.float64]:
    """The root mean square of each feature that is a number; a target may stand behind them."""
    total, count = np.zeros(width), 0
    with np.errstate(over="ignore", invalid="ignore"):
        for block in rows.blocks():
            squares = np.asarray(block.numbers, np.float64) ** 2
            if block.is_sparse:
                total += np.bincount(block.indices, squares[0], minlength=width)[:width]
            else:
                total += squares[:width].sum(axis=1)
            count += block.rows
    return np.asarray(np.sqrt(np.nan_to_num(total, nan=0.0, posinf=math.inf) / max(1, count)))


def _say(
    category: type[FairveilWarning],
    *,
    of: str,
    expected: str,
    got: object,
    remedy: str,
    shell_remedy: str | None = None,
) -> None:
    quote = not isinstance(got, str)
    warning = category(complaint(expected=expected, of=of, got=got, remedy=remedy, quote=quote))
    if shell_remedy is not None:
        named = (
            f"--{of}"
            if of in ("epsilon", "delta")
            else of.replace(" of X", "").replace("X", "TABLE")
        )
        warning.in_shell = complaint(
            expected=expected, of=named, got=got, remedy=shell_remedy, quote=quote
        )
    warnings.warn(warning, stacklevel=outside())


def outside() -> int:
    """The line outside of this library that asked for the fit."""
    level = 2
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
