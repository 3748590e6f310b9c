"""What a model is: of classes, probabilities and decisions, or of numbers; and its parts, from
which a file is made."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..errors import InputError

Codes = npt.NDArray[np.intp]
RandomState = np.random.Generator | int | None


@dataclass(frozen=True)
class Parts:
    """A model taken apart: its `kind`, JSON `values`, named `arrays`, and the parts of the models
    that it is made of."""

    kind: str
    values: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]
    models: tuple[Parts, ...] = ()


class Predictor(ABC):
    """What predicts something of coded rows, and can be taken apart and saved. Abstract. Fields are
    public: it may be printed.

    `rows` is a `RowBlock`, or a dense or scipy-sparse array (rows, numbers) where there are no
    category codes.
    """

    kind: ClassVar[str] = ""

    @abstractmethod
    def to_parts(self) -> Parts:
        """Everything there is to save."""


class Model(Predictor):
    """A rule that gives coded rows a class, perhaps by chance."""

    @property
    @abstractmethod
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""

    @property
    @abstractmethod
    def is_randomised(self) -> bool:
        """Whether one row may be given different classes."""

    @property
    def reads_groups(self) -> bool:
        """Whether a row's group decides, too: rows must then carry their sensitive codes."""
        return False

    @abstractmethod
    def predict_proba(self, rows: object) -> Floats:
        """The probability that the model gives each class, (rows, classes)."""

    @abstractmethod
    def decision_proba(self, rows: object) -> Floats:
        """The distribution of `predict_codes`, (rows, classes): zeros and ones when the model is
        deterministic."""

    @abstractmethod
    def predict_codes(self, rows: object, random_state: RandomState = None) -> Codes:
        """Each row's class code. `random_state` (a generator, a seed, or None: fresh) matters to
        randomised models only."""

    def predict(self, rows: object, random_state: RandomState = None) -> npt.NDArray[Any]:
        """The class of each row, as given in `classes`."""
        values = np.empty(len(self.classes), dtype=object)
        values[:] = self.classes
        kinds = {type(value) for value in self.classes}
        return (np.array(self.classes) if len(kinds) == 1 else values)[
            self.predict_codes(rows, random_state)
        ]


class ScoredModel(Model):
    """A model that decides by scores: of two classes the second's against the first's 0, else one a
    class. Abstract."""

    @abstractmethod
    def decision_scores(self, rows: object) -> Floats:
        """(rows, outputs)."""

    def predict_proba(self, rows: object, temperature: float = 1.0) -> Floats:
        """softmax(scores / temperature), with two classes the logistic function; near temperature 0
        the decision."""
        scores = self.decision_scores(rows) / _checks.positive(temperature=temperature)
        if len(self.classes) == 2:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def decision_proba(self, rows: object) -> Floats:
        """One for the class decided on, zero for the others."""
        return one_hot(self.predict_codes(rows), len(self.classes))

    def predict_codes(self, rows: object, random_state: RandomState = None) -> Codes:
        """The class with the largest score; ties go to the first. With two classes: the second
        where its score is above 0."""
        scores = self.decision_scores(rows)
        return (
            (scores[:, 0] > 0).astype(np.intp) if len(self.classes) == 2 else scores.argmax(axis=1)
        )


def known_classes(classes: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """At least two distinct classes that JSON can hold (texts, numbers, booleans), NumPy scalars as
    plain values."""
    listed = tuple(value.item() if isinstance(value, np.generic) else value for value in classes)
    plain = all(
        isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value))
        for value in listed
    )
    if not plain or len(listed) < 2 or len(set(listed)) != len(listed):
        expected = "at least two distinct texts, numbers or booleans"
        raise InputError.expected(
            expected, of="classes", got=classes, remedy="Pass classes=(0, 1), for example."
        )
    return listed


def fixed_array(values: object, shape: tuple[int, ...], of: str) -> Floats:
    """A read-only float64 copy of finite numbers of this shape."""
    array = np.array(values, dtype=np.float64, order="C")
    if array.shape != shape or not np.isfinite(array).all():
        got = (
            f"an array of shape {array.shape}"
            if array.shape != shape
            else "a number that is not finite"
        )
        remedy = "Pass weights that fit the rows' layout."
        raise InputError.expected(f"finite numbers of shape {shape}", of=of, got=got, remedy=remedy)
    array.setflags(write=False)
    return array


def generator(random_state: RandomState) -> np.random.Generator:
    """A generator as it is, a seeded one from a whole number, a fresh one from None. For
    predictions only, never for noise."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    whole = (
        isinstance(random_state, (int, np.integer))
        and not isinstance(random_state, bool)
        and random_state >= 0
    )
    if random_state is not None and not whole:
        expected = "a numpy Generator, a whole number of at least 0, or None"
        remedy = "Pass random_state=0, for example."
        raise InputError.expected(expected, of="random_state", got=random_state, remedy=remedy)
    return np.random.default_rng(random_state)


def draw_codes(law: Floats, random_state: RandomState) -> Codes:
    """One class code a row from its distribution, independently; a class of probability 0 is never
    drawn."""
    ends = np.cumsum(law, axis=1)
    drawn = (generator(random_state).random(len(law))[:, np.newaxis] >= ends[:, :-1]).sum(axis=1)
    # The last end may round to less than 1: what lies above it belongs to the last class that has
    # any probability.
    last = law.shape[1] - 1 - np.argmax(law[:, ::-1] > 0, axis=1)
    return np.asarray(np.minimum(drawn, last), dtype=np.intp)


def one_hot(codes: Codes, classes: int) -> Floats:
    """A distribution that puts everything on one class."""
    return np.asarray((codes[:, np.newaxis] == np.arange(classes)).astype(np.float64))
