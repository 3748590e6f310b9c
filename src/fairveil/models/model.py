"""What a model is: of classes, probabilities and decisions, or of numbers; the coded rows that it
reads; and its parts, from which a file is made.

A model is a frozen dataclass: its fields are all that there is to it, and all that is saved.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _checks
from .._types import Floats
from ..core.errors import need
from ..facts import Cells, RowBlock, RowLayout

Codes = npt.NDArray[np.intp]
RandomState = np.random.Generator | int | None
INNER = ("model", "base", "linear")
"""Fields that hold one model; `models` holds several."""


@dataclass(frozen=True)
class Parts:
    """A model taken apart: its `kind`, JSON `values`, named `arrays`, and the parts of the models
    that it is made of."""

    kind: str
    values: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]
    models: tuple[Parts, ...] = ()


class Predictor:
    """What predicts something of coded rows, and can be taken apart and saved. Abstract. Fields are
    public: it may be printed.

    `rows` is a `RowBlock`, or a dense or scipy-sparse array (rows, numbers) where there are no
    category codes.
    """

    kind: ClassVar[str] = ""

    def to_parts(self) -> Parts:
        """Everything there is to save: the fields, as arrays, models and plain values."""
        values: dict[str, Any] = {}
        arrays: dict[str, npt.NDArray[Any]] = {}
        models: list[Parts] = []
        for name, value in _given(self):
            match value:
                case np.ndarray():
                    arrays[name] = value
                case None if name in INNER:
                    pass
                case Predictor():
                    models.append(value.to_parts())
                case RowLayout():
                    sizes = list(value.code_sizes)
                    values |= {"numbers": value.numbers, "code_sizes": sizes}
                case Cells():
                    columns = [list(column) for column in value.columns]
                    values[name] = {"columns": columns, "names": list(value.names)}
                case tuple() if name == "models":
                    models += [one.to_parts() for one in value]
                case _:
                    values[name] = list(value) if isinstance(value, tuple) else value
        return Parts(self.kind, values, arrays, tuple(models))

    @classmethod
    def from_parts(cls, parts: Parts, models: Sequence[Predictor] = ()) -> Self:
        """The inverse of `to_parts`, of the models that it is made of."""
        found, inner, given = {**parts.values, **parts.arrays}, list(models), dict[str, Any]()
        for name in (one.name for one in dataclasses.fields(cls) if one.init):  # type: ignore[arg-type]
            if name == "layout":
                given[name] = RowLayout(found.pop("numbers"), tuple(found.pop("code_sizes")))
            elif name == "models":
                given[name], inner = tuple(inner), []
            elif name in INNER:
                given[name] = inner.pop(0) if inner else None
            else:
                given[name] = _cells(found.pop(name)) if name == "cells" else found.pop(name)
        if found or inner:
            raise ValueError("more than the model is made of")
        return cls(**given)


def _given(model: Any) -> list[tuple[str, Any]]:
    return [(one.name, getattr(model, one.name)) for one in dataclasses.fields(model) if one.init]


def _cells(values: Any) -> Cells | None:
    if values is None:
        return None
    columns = tuple(tuple(map(_hashable, column)) for column in values["columns"])
    return Cells(columns, "product", tuple(values["names"]))


def _hashable(value: object) -> Hashable:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


class Model(Predictor):
    """A rule that gives coded rows a class, perhaps by chance. A kind of model says
    `predict_codes`, or, where it is randomised, `decision_proba`.

    `classes`: in the order of their codes.
    """

    classes: tuple[Hashable, ...]

    @property
    def is_randomised(self) -> bool:
        """Whether one row may be given different classes."""
        return False

    @property
    def reads_groups(self) -> bool:
        """Whether a row's group decides, too: rows must then carry their sensitive codes."""
        return False

    def predict_proba(self, rows: object) -> Floats:
        """The probability that the model gives each class, (rows, classes): of its decision where it
        knows no other."""
        return self.decision_proba(rows)

    def decision_proba(self, rows: object) -> Floats:
        """The distribution of `predict_codes`, (rows, classes): zeros and ones when the model is
        deterministic."""
        return one_hot(self.predict_codes(rows), len(self.classes))

    def predict_codes(self, rows: object, random_state: RandomState = None) -> Codes:
        """Each row's class code, one draw a row. `random_state` (a generator, a seed, or None:
        fresh) matters to randomised models only: the same seed and rows give the same draws."""
        return draw_codes(self.decision_proba(rows), random_state)

    def predict(self, rows: object, random_state: RandomState = None) -> npt.NDArray[Any]:
        """The class of each row, as given in `classes`."""
        values = np.empty(len(self.classes), dtype=object)
        values[:] = self.classes
        alike = len({type(value) for value in self.classes}) == 1
        codes = self.predict_codes(rows, random_state)
        return (np.array(self.classes) if alike else values)[codes]


class ScoredModel(Model, ABC):
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

    def predict_codes(self, rows: object, random_state: RandomState = None) -> Codes:
        """The class with the largest score; ties go to the first. With two classes: the second
        where its score is above 0."""
        return decided(self.decision_scores(rows))


def decided(scores: Floats) -> Codes:
    """The codes that scores (rows, outputs) decide for."""
    found = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
    return np.asarray(found, np.intp)


# ---- the rows that it reads


def plain_layout(layout: RowLayout) -> RowLayout:
    """The layout's numbers and category columns alone, checked."""
    sizes = tuple(_checks.whole(at_least=1, code_size=size) for size in layout.code_sizes)
    return RowLayout(_checks.whole(numbers=layout.numbers), sizes)


def fitting(rows: Any, layout: RowLayout) -> RowBlock:
    """Rows as a block that fits the layout."""
    block = rows if isinstance(rows, RowBlock) else _as_block(rows)
    found = block.numbers.shape[1 if is_sparse(block.numbers) else 0], len(block.codes)
    sizes = layout.code_sizes
    expected, got = f"{layout.numbers} numbers and {len(sizes)} category columns", "{} and {}"
    fix = "Encode rows as those of the fit were."
    fits = found == (layout.numbers, len(sizes))
    need(fits, expected, of="rows", got=got.format(*found), fix=fix)
    for j, (line, size) in enumerate(zip(block.codes, sizes, strict=True)):
        inside = not line.size or (int(line.max()) < size and int(line.min()) >= 0)
        of, fix = f"category column {j}", "Encode rows by the schema of the fit."
        need(inside, f"codes from 0 to {size - 1}", of=of, got="a code outside", fix=fix)
    return block


def _as_block(rows: Any) -> RowBlock:
    if is_sparse(rows):
        numbers = rows.tocsr().astype(np.float64)
        numbers = numbers if numbers.has_sorted_indices else numbers.sorted_indices()
        return RowBlock(numbers, np.zeros((0, numbers.shape[0]), np.uint8))
    array = np.asarray(rows)
    right, got = array.ndim == 2, f"{array.dtype} of shape {array.shape}"
    right = right and array.dtype.kind in "fiub"
    words, fix = "numbers of shape (rows, numbers)", "Encode the rows first."
    need(right, words, of="rows", got=got, fix=fix)
    return RowBlock(array.T, np.zeros((0, array.shape[0]), np.uint8))


def is_sparse(array: object) -> bool:
    """Whether it is one of scipy's sparse arrays."""
    return bool(sparse.issparse(array))


def cell_ids(rows: object, cells: Cells) -> npt.NDArray[np.integer]:
    """The product cell of each row, from the sensitive codes that the rows carry."""
    carried = rows.sensitive if isinstance(rows, RowBlock) else None
    words, got = "rows with sensitive codes", type(rows).__name__
    fix = "Pass a RowBlock with sensitive codes: this model is group-aware."
    need(carried is not None, words, of="rows", got=got, fix=fix)
    assert carried is not None
    return np.asarray(cells.ids(carried)[0])


def need_product(cells: Cells | None) -> None:
    """Refuse groups that overlap."""
    fix = "A person is in one product cell: build marginal groups from those."
    mode = "product" if cells is None else cells.mode
    need(mode == "product", "product cells", of="cells", got=mode, fix=fix)


# ---- what fields are made of


def known_classes(classes: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """At least two distinct classes that JSON can hold (texts, numbers, booleans), NumPy scalars as
    plain values."""
    listed = tuple(value.item() if isinstance(value, np.generic) else value for value in classes)
    plain = all(
        isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value))
        for value in listed
    )
    right = plain and 2 <= len(listed) == len(set(listed))
    words, fix = "at least two distinct texts, numbers or booleans", "Pass classes=(0, 1), say."
    need(right, words, of="classes", got=classes, fix=fix)
    return listed


def fixed_array(values: object, shape: tuple[int, ...], of: str) -> Floats:
    """A read-only float64 copy of finite numbers of this shape."""
    array = np.array(values, dtype=np.float64, order="C")
    fits, fix = array.shape == shape, "Pass weights that fit the rows' layout."
    got = "a number that is not finite" if fits else f"an array of shape {array.shape}"
    right = fits and np.isfinite(array).all()
    need(right, f"finite numbers of shape {shape}", of=of, got=got, fix=fix)
    array.setflags(write=False)
    return array


def generator(random_state: RandomState) -> np.random.Generator:
    """A generator as it is, a seeded one from a whole number, a fresh one from None. For
    predictions only, never for noise."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    number = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    right = random_state is None or (number and random_state >= 0)
    words = "a numpy Generator, a whole number of at least 0, or None"
    fix = "Pass random_state=0, for example."
    need(right, words, of="random_state", got=random_state, fix=fix)
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
