"""A question and its price: a noise multiplier, and the kind of noise."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import _checks
from .._types import Floats
from ..core.errors import need
from .question import Question

NOISES = ("gaussian", "discrete-gaussian", "discrete-laplace")
# beyond, an answer is noise and nothing else; the exact sampler ends at 2^50 grid units
LARGEST_MULTIPLIER = 2.0**18


@dataclass(frozen=True, eq=False)
class Measurement:
    """A question and its price: a noise multiplier, one for all or one a cell (tailored
    budgets)."""

    question: Question
    multiplier: Any
    noise: str = "gaussian"

    def __post_init__(self) -> None:
        if self.noise not in NOISES:
            _checks.one_of(NOISES, noise=self.noise)
        given = self.multiplier
        if type(given) is float and 0.0 <= given <= LARGEST_MULTIPLIER:  # the common case
            return
        try:
            values = np.empty(0) if isinstance(given, str) else np.asarray(given, np.float64)
        except (TypeError, ValueError, OverflowError):
            values = np.empty(0)
        right = values.ndim < 2 and values.size and (values <= LARGEST_MULTIPLIER).all()
        right = right and ((values == 0).all() or (values > 0).all())
        words = "0, or numbers above 0 and at most 2^18, one for all or one a cell"
        fix = "A multiplier is the noise over the sensitivity; calibrate it to a guarantee."
        need(right, words, of="multiplier", got=given, fix=fix)
        if values.ndim == 0:
            _checks.normalise(self, multiplier=float(values))

    def about(self, question: Question) -> Measurement:
        """The same price for a question of the same key (`GradientSum.at`,
        `PredictionHistogram.at`): a round of a run."""
        same, fix = question.key is self.question.key, "Make a new Measurement."
        need(same, "a question made by `at`", of="question", got=question.name, fix=fix)
        other = object.__new__(Measurement)
        other.__dict__.update(self.__dict__, question=question, key=self.key)
        return other

    @property
    def is_exact(self) -> bool:
        """Multiplier 0: no noise is asked for."""
        return bool((np.asarray(self.multiplier) == 0).all())

    @cached_property
    def key(self) -> tuple[Hashable, ...]:
        """All that the measurement's event and bound depend on."""
        vector = self.by_cell
        multiplier = self.multiplier if vector is None else tuple(vector.tolist())
        return (*self.question.key, self.noise, multiplier)

    @property
    def by_cell(self) -> Floats | None:
        """The vector of multipliers, when there is one."""
        if isinstance(self.multiplier, float):
            return None
        values = np.asarray(self.multiplier, np.float64)
        return values if values.ndim == 1 else None

    @property
    def order(self) -> int:
        """The norm that the noise asks for."""
        return 1 if self.noise == "discrete-laplace" else 2


Measurements = Iterable[
    Measurement | tuple[Question, Any]
]  # a pair: a question, and its multiplier


def as_measurements(measurements: Measurements) -> list[Measurement]:
    """Measurements, from themselves or from pairs (question, multiplier)."""
    out: list[Measurement] = []
    given: Iterable[object] = measurements
    for one in given:
        if isinstance(one, Measurement):
            out.append(one)
        elif isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], Question):
            out.append(Measurement(*one))
        else:
            expected = "pairs (question, multiplier), or Measurements"
            fix = "Write answer([(CellCounts(cells), 20.0)]), for example."
            need(False, expected, of="measurements", got=type(one).__name__, fix=fix)
    need(out, "at least one question", of="measurements", got=[], fix="Ask something.")
    return out
