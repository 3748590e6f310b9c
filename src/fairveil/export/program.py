"""What a finished model computes for one row, as plain data: columns in, probabilities and a class
(or a number) out.

    scores = intercept + sum_j w_j z_j + sum_c w[offset_c + code_c]          (theory of each node in its docstring)

A `Program` holds no rows, no code of the user and nothing of scikit-learn. `reading` makes it of an
estimator; `lines` writes it in SQL, and `to_sklearn` as steps of scikit-learn. A node that appears twice is computed
once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from .._types import Floats
from ..facts.columns import Value

LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class NumberColumn:
    """A number. With bounds it is clipped and scaled to [-1, 1], and NaN counts as `missing` (None:
    the row is refused). Without bounds it must be finite, else the row is refused.

    `along`: the edges between which it is replaced by where it lies, in [-1, 1]; then (z - mean) /
    deviation.
    """

    name: str
    bounds: tuple[float, float] | None = None
    missing: float | None = None
    along: tuple[float, ...] = ()
    mean: float = 0.0
    deviation: float = 1.0

    @property
    def center(self) -> float:
        """Half way between the bounds."""
        assert self.bounds is not None
        return self.bounds[0] / 2 + self.bounds[1] / 2

    @property
    def half(self) -> float:
        """Half their distance."""
        assert self.bounds is not None
        return self.bounds[1] / 2 - self.bounds[0] / 2


@dataclass(frozen=True)
class WordColumn:
    """One of the listed values, whose code is its place. `missing`, `unknown`: the codes of what is
    missing and of what is not listed; None: the row is refused. `markers`: texts that mean missing
    where they are not listed."""

    name: str
    values: tuple[Value, ...]
    missing: int | None = None
    unknown: int | None = None
    markers: tuple[str, ...] = ()

    @property
    def is_text(self) -> bool:
        """Whether its values are texts; otherwise they are numbers or truth values."""
        return isinstance(self.values[0], str)


@dataclass(frozen=True)
class Step:
    """A code that is added: how many of `edges` the coded number at `place` has reached."""

    place: int
    edges: tuple[float, ...]

    @property
    def size(self) -> int:
        """How many codes."""
        return len(self.edges) + 1


@dataclass(frozen=True)
class WordStep:
    """The code of the word column at `place`, as one side of a pair."""

    place: int
    size: int


Side = Step | WordStep


@dataclass(frozen=True)
class Inputs:
    """Columns, and the codes that are made of them: words first, then `steps`, then `pairs`, as
    weights have them.

    `groups`: the sensitive columns of a model that reads the group; the row's cell counts through
    them, the last one fastest. `matrix`: how many columns one array without names has, of which
    `numbers` are all; None: every column comes by itself.
    """

    numbers: tuple[NumberColumn, ...] = ()
    words: tuple[WordColumn, ...] = ()
    steps: tuple[Step, ...] = ()
    pairs: tuple[tuple[Side, Side], ...] = ()
    groups: tuple[WordColumn, ...] = ()
    matrix: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns, each once."""
        columns: list[NumberColumn | WordColumn] = [*self.numbers, *self.words, *self.groups]
        return tuple(dict.fromkeys(column.name for column in columns))

    @property
    def code_sizes(self) -> tuple[int, ...]:
        """Of all codes, in the order of the weights."""
        pairs = (one.size * other.size for one, other in self.pairs)
        return (
            *(len(word.values) for word in self.words),
            *(step.size for step in self.steps),
            *pairs,
        )


# Scores: (rows, outputs)


@dataclass(frozen=True, eq=False)
class Linear:
    """intercept + weights . (numbers, one-hot codes); `weights` (outputs, width), `intercept`
    (outputs,)."""

    weights: Floats
    intercept: Floats

    @property
    def outputs(self) -> int:
        """How many."""
        return len(self.intercept)


@dataclass(frozen=True, eq=False)
class ByGroup:
    """scores + offsets[cell], (cells, outputs)."""

    scores: Linear
    offsets: Floats

    @property
    def outputs(self) -> int:
        """How many."""
        return self.scores.outputs


@dataclass(frozen=True, eq=False)
class Logit:
    """log(p / (1 - p)) of the second of two classes, at most `sure` in size."""

    law: Law
    sure: float
    outputs: int = 1


@dataclass(frozen=True)
class GivenScore:
    """A score that another library's model makes, as an input."""

    name: str
    outputs: int = 1


@dataclass(frozen=True, eq=False)
class Moved:
    """(distribution - offsets[cell]) / temperature; `offsets` (cells, classes)."""

    law: Law
    offsets: Floats
    temperature: float = 1.0

    @property
    def outputs(self) -> int:
        """How many."""
        return int(self.offsets.shape[1])


Scores = Linear | ByGroup | Logit | GivenScore | Moved


# Distributions of decisions: (rows, classes)


@dataclass(frozen=True, eq=False)
class Softmax:
    """exp(s_k) / sum_j exp(s_j); one score is the second class's against 0."""

    scores: Scores

    @property
    def classes(self) -> int:
        """How many."""
        return 2 if self.scores.outputs == 1 else self.scores.outputs


@dataclass(frozen=True, eq=False)
class Hard:
    """1 for the class with the largest score, the first of several; one score decides for the
    second class above 0."""

    scores: Scores

    @property
    def classes(self) -> int:
        """How many."""
        return 2 if self.scores.outputs == 1 else self.scores.outputs


@dataclass(frozen=True, eq=False)
class Likeliest:
    """1 for the likeliest class, the first of several; with a threshold for the second where it is
    more likely than that."""

    law: Law
    threshold: float | None = None

    @property
    def classes(self) -> int:
        """How many."""
        return self.law.classes


@dataclass(frozen=True, eq=False)
class Mixed:
    """sum_t weights_t law_t."""

    weights: tuple[float, ...]
    laws: tuple[Law, ...]

    @property
    def classes(self) -> int:
        """How many."""
        return self.laws[0].classes


@dataclass(frozen=True, eq=False)
class Bins:
    """1 for the bin of a score: how many edges it is above."""

    scores: Scores
    edges: Floats

    @property
    def classes(self) -> int:
        """How many bins."""
        return len(self.edges) + 1


@dataclass(frozen=True)
class GivenDecision:
    """1 for the class that another library's model decides for, as an input."""

    column: WordColumn

    @property
    def classes(self) -> int:
        """How many."""
        return len(self.column.values)


@dataclass(frozen=True)
class GivenLaw:
    """Probabilities that another library's model makes, an input for each class. A row is refused
    if one is less than 0, or their sum is not 1, by more than `close`."""

    names: tuple[str, ...]
    close: float

    @property
    def classes(self) -> int:
        """How many."""
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Tabled:
    """sum_j p_j table[cell, j, k]; `table` (1 or cells, classes of the distribution, classes)."""

    law: Law
    table: Floats

    @property
    def classes(self) -> int:
        """How many."""
        return int(self.table.shape[2])


Law = Softmax | Hard | Likeliest | Mixed | Bins | GivenDecision | GivenLaw | Tabled


@dataclass(frozen=True, eq=False)
class Classified:
    """`probabilities`: what `predict_proba` gives. `decision`: the distribution of `predict`.

    A `drawn` model draws one class from it by a uniform number in [0, 1); others take the class
    that has all of it.
    """

    probabilities: Law
    decision: Law
    classes: tuple[Hashable, ...]
    drawn: bool


@dataclass(frozen=True, eq=False)
class Regressed:
    """The score times `half`, plus `center`."""

    scores: Linear
    half: float
    center: float


@dataclass(frozen=True, eq=False)
class Program:
    """All of it. `about`: what made it, in words; `statement`: its privacy statement as JSON."""

    inputs: Inputs
    result: Classified | Regressed
    about: str
    statement: str

    @property
    def uniform(self) -> bool:
        """Whether a uniform number is an input."""
        return isinstance(self.result, Classified) and self.result.drawn

    @property
    def others(self) -> tuple[str, ...]:
        """Names of inputs that are no columns of the fit."""
        law = self.result.decision if isinstance(self.result, Classified) else None
        inside = law.law if isinstance(law, Tabled) else None
        given: tuple[str, ...] = ()
        if isinstance(law, Softmax | Hard) and isinstance(law.scores, Moved):
            inside = law.scores.law
        if isinstance(inside, GivenDecision):
            given = (inside.column.name,)
        elif isinstance(inside, GivenLaw):
            given = inside.names
        elif isinstance(inside, Bins) and isinstance(inside.scores, GivenScore):
            given = (inside.scores.name,)
        return (*given, *((UNIFORM,) if self.uniform else ()))


UNIFORM, BASE_SCORE, BASE_DECISION, BASE_PROBABILITY = (
    "uniform",
    "base_score",
    "base_decision",
    "base_probability",
)
"""Names of inputs that are no columns of the table; of probabilities each has its class after it,
in brackets."""
