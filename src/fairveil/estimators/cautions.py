"""Warnings before a fit, from public facts alone: the promise, the arguments, the kind of coding,
the program around it.

A final step of a scikit-learn pipeline is handed what the steps before it made, and not the
pipeline. So the pipelines that are being fitted are looked up in the call stack: whose `fit` is
running is a fact about the program, and says nothing about the rows. A scaler that the caller
applied by hand before `fit` cannot be seen, by this or by anything.

Guarantees (tests/estimators/test_estimators_cautions.py, test_estimators_pipelines.py):
1. Where records are protected, no warning depends on a value of a row or on how many rows there
   are: two tables of the same kinds of columns give the same warnings.
2. Where features are public (sensitive features alone protected, or nothing), the sizes of their
   numbers are looked at, and no group is.
3. Each warning is given once a fit, and names the argument to change, on the command line the
   option.
4. No attribute that a step of a pipeline learned is read, and no row: names, types and constructor
   arguments alone. A step is named wherever it stands: nested, cloned, in a grid search, in a
   `ColumnTransformer` or a `FeatureUnion`; not where it learns nothing (tag `requires_fit=False`,
   `FrozenEstimator`, an encoder with stated categories).
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils import get_tags

from ..core.extra.sharded import ShardedRows
from ..core.promise import Promise
from ..curator import Rows
from ..errors import (
    FairveilWarning,
    RawUnits,
    UnprotectedStep,
    UnstatedBounds,
    WeakDelta,
    WeakEpsilon,
    complaint,
)
from .coding import Coding, SchemaCoding, TableCoding

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
PACKAGE = str(Path(__file__).parents[1])

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


def outside() -> int:
    """The line outside of this library that asked for the fit."""
    level = 2
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


def printable(text: str) -> str:
    """A name on one line, of a hundred letters at most."""
    return "".join(letter if letter.isprintable() else "?" for letter in text).strip()[:100] or "?"


def of_promise(promise: Promise, rows: int | None) -> None:
    """Warn of a weak epsilon and a weak delta. `rows`: their number where it is public; a private
    one must decide nothing."""
    if not promise.is_private or _inside.get():
        return
    epsilon, delta = promise.epsilon, promise.delta
    full = "a mechanism that publishes one row in full would keep this guarantee"
    if epsilon > WEAK_EPSILON:
        text = (
            f"This guarantee is weak: what is released may change the odds about a person by a "
            f"factor of e^{epsilon:g}. Pass"
        )
        expected = f"at most {WEAK_EPSILON:g} for a guarantee that says much about one person"
        ways = "epsilon=1.0, for example.", "--epsilon 1, for example."
        _say(WeakEpsilon, "epsilon", expected, epsilon, text, *ways)
    if rows is not None and delta * rows >= 1.0:
        text, least = f"{full[0].upper()}{full[1:]}: pass", f"{0.1 / rows:.0e}, for example."
        expected = f"a number well below 1/{rows}, one over the rows"
        _say(WeakDelta, "delta", expected, delta, text, f"delta={least}", f"--delta {least}")
    elif rows is None and delta > WEAK_DELTA:
        text = (
            f"The number of rows is private and was not compared. This delta assumes fewer than "
            f"{1 / delta:,.0f} rows: with more, {full}. Pass"
        )
        ways = (
            "delta=1e-6 or schema=Schema(rows=...), about how many rows there are.",
            "--delta 1e-6 or --rows, about how many rows there are.",
        )
        _say(WeakDelta, "delta", "a number well below one over the rows", delta, text, *ways)


def are_unbounded(coding: Coding) -> bool:
    """Whether there are numbers whose bounds nothing public states."""
    bounded = 0 if coding.shapes is None else len(coding.shapes.along)
    own = isinstance(coding, SchemaCoding) or coding.standard is not None
    return not own and coding.layout.numbers > bounded


def are_few_and_unbounded(coding: Coding, rows: Rows) -> bool:
    """Whether there are such numbers, so few that sums of them know more than gradients that are
    clipped to a fixed norm."""
    return rows.layout.numbers <= MOST_UNBOUNDED and are_unbounded(coding)


def of_units(coding: Coding, rows: Rows, promise: Promise, numbers: Numbers) -> None:
    """Warn where nothing public bounds the numbers that a search takes, or where public ones are
    seen to be in raw units."""
    width = coding.layout.numbers
    if numbers == "unread" or not are_unbounded(coding):
        return
    if not promise.features_are_public:
        # Rows are protected: whether their numbers are large must not be seen, so that this is said
        # of small ones, too.
        if not isinstance(coding, TableCoding):
            return
        text = (
            "No bounds were stated, and protected numbers are not looked at. Gradients are "
            "clipped: in raw units such as dollars or years the model may learn nothing, and the "
            "budget buys one answer for everybody. Pass"
        )
        ways = (
            "schema=, with Number(low, high) for each; or scale them by public numbers to about "
            "[-1, 1] and ignore errors.UnstatedBounds.",
            "--schema with a low and a high for each number.",
        )
        got = f"{width} without a schema"
        _say(UnstatedBounds, "X", "numbers whose bounds are public", got, text, *ways)
        return
    # shards were coded by a schema, to [-1, 1]
    if (numbers == "scaled" and not rows.sparse) or isinstance(rows, ShardedRows):
        return
    sizes = _sizes(rows, width)
    largest = int(np.argmax(sizes))
    if not (sizes[largest] > FAR or 0 < sizes[largest] < FAR**-2):
        return
    of = f"column {printable(coding.feature_names[largest])!r} of X"
    expected = "numbers of a size about 1, for this fit does not scale them"
    ways = (
        "schema=, with Number(low, high) for each number, or scale X.",
        "--schema with a low and a high for each number.",
    )
    text, got = "In raw units the model may learn nothing. Pass", sizes[largest]
    _say(RawUnits, of, expected, f"a root mean square of {got:.2g}", text, *ways)


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
    of: str,
    expected: str,
    got: object,
    text: str,
    way: str,
    in_shell: str,
) -> None:
    """`way`, `in_shell`: the way out that ends the text, in Python and on the command line."""
    quote = not isinstance(got, str)
    words: Any = {"expected": expected, "got": got, "quote": quote}
    warning = category(complaint(of=of, remedy=f"{text} {way}", **words))
    named = f"--{of}" if of in ("epsilon", "delta") else of.replace(" of X", "")
    named = named.replace("X", "TABLE") if named == "X" else named
    warning.in_shell = complaint(of=named, remedy=f"{text} {in_shell}", **words)
    warnings.warn(warning, stacklevel=outside())


# ------------------------------ steps of a pipeline


@dataclass(frozen=True)
class Step:
    """One step that learns from rows: its name in the pipeline, with those around it, and its
    class."""

    name: str
    kind: str

    def __str__(self) -> str:
        return f"{self.name!r} ({self.kind})"

    @property
    def sentence(self) -> str:
        """For a statement: outside of the guarantee."""
        return (
            f"the pipeline step {self} was fitted to the training rows before this fit, without "
            f"privacy"
        )


def of_pipeline(
    sensitive: Sequence[str], columns: Sequence[str], promise: Promise
) -> tuple[Step, ...]:
    """Warn of the steps of a pipeline that learned what is protected, and name them for the
    statement. `columns`: of X, where they have names."""
    if not promise.is_private:
        return ()
    if promise.protects == "sensitive_features" and not set(sensitive) & set(columns):
        return ()  # what the steps read is public: they were not handed the sensitive columns
    steps = steps_before()
    if steps and not _inside.get():
        text = complaint(
            of="pipeline",
            expected="steps that learn nothing from the rows before a private fit",
            got=f"{', '.join(map(str, steps))}, which read the training rows without privacy",
            remedy="The guarantee does not cover what they read, as privacy_.not_covered says. "
            "Scale and encode by a schema: pass schema= and leave these steps out.",
            quote=False,
        )
        warnings.warn(UnprotectedStep(text), stacklevel=outside())
    return steps


def steps_before() -> tuple[Step, ...]:
    """The steps that learned from rows in every pipeline whose `fit` is running now, the outermost
    pipeline first."""
    found: list[list[Step]] = []
    upto: int | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name, owner = frame.f_code.co_name, frame.f_locals.get("self")
        if isinstance(owner, Pipeline):
            # an estimator of ours inside of a step that selects features
            if name == "_fit":
                at = frame.f_locals.get("step_idx")
                upto = at if isinstance(at, int) else None
            elif name in ("fit", "fit_predict", "fit_transform"):
                steps = list(owner.steps)[: len(owner.steps) - 1 if upto is None else upto]
                found.append([step for at, one in steps for step in learning(str(at), one)])
                upto = None
        elif isinstance(owner, TransformedTargetRegressor) and name == "fit":
            found.append([*learning("transformer", owner.transformer)])
        frame = frame.f_back
    return tuple(dict.fromkeys(step for steps in reversed(found) for step in steps))


def learning(name: str, step: object) -> Iterator[Step]:
    """The step, or those inside it, that learn from rows."""
    if step is None or isinstance(step, (str, FrozenEstimator)):  # "passthrough", "drop"
        return
    inside: list[tuple[str, Any]] | None = None
    if isinstance(step, Pipeline):
        inside = list(step.steps)
    elif isinstance(step, ColumnTransformer):
        inside = [(one[0], one[1]) for one in step.transformers] + [("remainder", step.remainder)]
    elif isinstance(step, FeatureUnion):
        inside = list(step.transformer_list)
    if inside is not None:
        for inner, one in inside:
            yield from learning(f"{name}.{inner}", one)
    elif _reads(step):
        yield Step(printable(name), printable(type(step).__name__))


def _reads(step: object) -> bool:
    """Whether fitting it learns from rows; what does not say so does."""
    if isinstance(step, OneHotEncoder | OrdinalEncoder):
        bounded = step.min_frequency is None and step.max_categories is None
        return isinstance(step.categories, str) or not bounded
    try:
        return bool(get_tags(step).requires_fit)
    except Exception:  # another library's transformer, without tags
        return True
