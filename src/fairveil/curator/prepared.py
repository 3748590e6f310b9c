"""What is worked out once for a joint answer that is asked for again and again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import Floats
from ..core.events import Event
from ..core.rows import Batch, Part, Poisson
from . import noising
from .question import Question, Scale
from .totals.passes import Passes

# of noise, one for all models or one a model; None: to be found, or none needed
Sizes = list[float | Floats] | None
Known = tuple[list[Scale], Sizes]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the keys of a joint answer decide: its event, its asks' grids and noise (None: found at
    each step), its words.

    `noise`: where all of it is Gaussian and known, laid out; then `passes` and `units` are known
    too.
    """

    event: Event
    known: tuple[Known | None, ...]
    passes: Passes | None
    noise: noising.NoisePlan | None
    units: tuple[float | Floats, ...]
    many: tuple[bool, ...]
    names: tuple[str, ...]
    words: str


def units_of(scales: list[Scale], axes: int) -> float | Floats:
    """What totals are multiplied by, models first: powers of two, so that nothing is rounded that
    the grid held."""
    if len(scales) == 1:
        return scales[0].unit
    return np.array([scale.unit for scale in scales]).reshape(-1, *(1,) * (axes - 1))


def words_of(batch: Batch) -> str:
    """Which rows were asked, in words for the log."""
    if isinstance(batch, Part):
        return f"part {batch.number + 1} of {batch.parts}"
    return f"a Poisson batch of rate {batch.rate:g}" if isinstance(batch, Poisson) else "all rows"


def is_many(question: Question) -> bool:
    """Whether its answer has a leading model axis."""
    return question.copies is not None or (question.model is not None and question.model.many)
