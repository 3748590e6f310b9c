"""Steps of a scikit-learn pipeline that were fitted to the rows before an estimator of ours saw
them.

A final step is handed what the steps before it made, and not the pipeline. So the pipelines that
are being fitted are looked up in the call stack: whose `fit` is running is a fact about the
program, and says nothing about the rows.

Guarantees (tests/estimators/test_estimators_pipelines.py):
1. No attribute that a step learned is read, and no row: names, types and constructor arguments
   alone.
2. A step is named wherever the pipeline stands: nested, cloned, in a grid search, in a
   `ColumnTransformer` or a `FeatureUnion`.
3. A step that learns nothing (tag `requires_fit=False`, `FrozenEstimator`, an encoder with stated
   categories) is not named.

A scaler that the caller applied by hand before `fit` cannot be seen, by this or by anything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils import get_tags

FITS = ("fit", "fit_predict", "fit_transform")
BEFORE_THE_LAST = "_fit"


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
            if name == BEFORE_THE_LAST:
                upto = _place(frame)
            elif name in FITS:
                found.append([*_of_pipeline(owner, upto)])
                upto = None
        elif isinstance(owner, TransformedTargetRegressor) and name == "fit":
            found.append([*_of_target(owner)])
        frame = frame.f_back
    return tuple(dict.fromkeys(step for steps in reversed(found) for step in steps))


def _place(frame: FrameType) -> int | None:
    at = frame.f_locals.get("step_idx")
    return at if isinstance(at, int) else None


def _of_pipeline(pipeline: Pipeline, upto: int | None) -> Iterator[Step]:
    steps = list(pipeline.steps)
    for name, step in steps[: len(steps) - 1 if upto is None else upto]:
        yield from learning(str(name), step)


def _of_target(regressor: TransformedTargetRegressor) -> Iterator[Step]:
    if regressor.transformer is not None:
        yield from learning("transformer", regressor.transformer)


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
        yield Step(_line(name), _line(type(step).__name__))


def _reads(step: object) -> bool:
    """Whether fitting it learns from rows; what does not say so does."""
    if isinstance(step, OneHotEncoder):
        stated = (
            not isinstance(step.categories, str)
            and step.min_frequency is None
            and step.max_categories is None
        )
        return not stated
    if isinstance(step, OrdinalEncoder):
        return (
            isinstance(step.categories, str)
            or step.min_frequency is not None
            or step.max_categories is not None
        )
    try:
        return bool(get_tags(step).requires_fit)
    except Exception:  # another library's transformer, without tags
        return True


def _line(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text).strip()[:100] or "?"
