"""What is asked of rows: bounded sums, before it is known of which rows.

A `Sum` says how far one who is protected moves it, and how rows are added: functions of the public
`Facts` give it (`sums`, `by_cell`), bound and arithmetic side by side. A `Question` is such a
function with all of its arguments but the facts: a small value, public or released, that can be
priced for rows that nobody has seen, sent to where rows are, and asked again with other weights. A
`Kind` makes questions of one function: `CellCounts(cells)` asks `sums.counts`.

Guarantees (tests/core/test_questions.py)
    1. `key` is all that shape, price and bound of a question depend on: arrays by shape alone, but
       for those that its kind says to count by value. Arguments named with a line before it, which
       the asking curator fills in, are no part of it.
    2. Arrays of a question are finite, and copies that nobody can change.
    3. `at` gives a question of the same key, or refuses.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec

import numpy as np

from . import checks
from .bound import Bound
from .errors import InputError, MissingBoundError, PrivacyError, need
from .kernels import Array, Floats
from .layout import Cells, RowLayout
from .promise import Promise, Unit

P = ParamSpec("P")
FEATURES, LABEL, SENSITIVE = "features", "label", "sensitive"


@dataclass(frozen=True)
class Facts:
    """What bounds are made of: public constants alone. `layout`: numbers, sizes of coded features,
    classes and sensitive columns of the rows; `cap`: the largest weight of a row, None where each
    counts once; `order`: of the norm that the noise asks for, 1 for Laplace noise; `one_group`:
    whether all rows of a person count in one group."""

    layout: RowLayout
    promise: Promise
    cap: float | None = None
    order: int = 2
    one_group: bool = False

    def __post_init__(self) -> None:
        apart = self.promise.protects == "records" or not self.layout.sensitive_as_features
        expected = "features without the sensitive columns that are protected"
        fix = "Code the rows without them, or pass protects='records'."
        got = list(self.layout.sensitive_as_features)
        need(apart, expected, of="rows", got=got, fix=fix, error=PrivacyError)
        if self.cap is not None:
            fix = "The largest weight multiplies every sensitivity: cap it at 1.0, for example."
            checks.positive(max_sample_weight=self.cap, remedy=fix)

    @property
    def alone(self) -> bool:
        """Whether sensitive features alone are protected."""
        return self.promise.protects == "sensitive_features"

    @property
    def coordinates(self) -> int:
        """How many coordinates of a row, its intercept included, can differ from zero."""
        return 1 + self.layout.numbers + len(self.layout.code_sizes)

    def need_order_two(self, name: str) -> None:
        """Refuse Laplace noise where no L1 bound is known."""
        fix = "Laplace noise suits counts; ask this question with Gaussian noise."
        got = "Laplace noise, whose L1 bound this question does not have"
        need(self.order == 2, "Gaussian noise", of=name, got=got, fix=fix)


RECORDS, NOBODY = Promise(1.0, 0.5), Promise(math.inf, 0.5)
PERSONS = Promise(1.0, 0.5, unit=Unit("person", 2))
ALONE = Promise(1.0, 0.5, protects="sensitive_features")
"""Promises whatever they cost: bounds of rows, of nobody, of persons whose gradients are added, and
of sensitive features."""


@dataclass(frozen=True, eq=False)
class Sum:
    """`total(run, units)` adds the rows of a run, (models, *shape), in steps of 1/units, one of
    each model; `bound`: how far one who is protected moves it, on the grid of 2^-exponent.

    `limits`: the bound, None where the asker named none. `within`: how far a row moves its own
    cell, in units of the norm; `cells`: the disjoint cells of the first axis, if it is these;
    `slack`: how much of a norm may be rounding; `coordinates`: of a row, at most, that the grid
    rounds. `maxima(run)`: where rows are public the largest norms and moves of these, a model each;
    None where the bound is a constant all the same. `fused`: what the fused loop is told of it.
    `sizes`, `crossing`: of sums weighed by cell (`by_cell`). `rounding`: more than what the grid
    adds to a difference of two rows, relative to the largest norm; None: by `coordinates`. `is_own`: code of the caller decides
    what a row adds, so that more than its cell may depend on sensitive features.
    """

    name: str
    shape: tuple[int, ...]
    reads: frozenset[str]
    limits: Bound | None
    exponent: int
    total: Callable[[Any, Any], Array]
    within: float = 2.0
    slack: float = 0.0
    cells: Cells | None = None
    is_symmetric: bool = False
    models: int = 1
    coordinates: int = 0
    clip: float = math.inf  # what a row's contribution is cut at, with its rounding
    maxima: Callable[[Any], tuple[Floats, Floats]] | None = None
    longest: Callable[[float], Floats] | None = None
    fused: Any = None
    sizes: Floats | None = None
    crossing: int = 1
    rounding: float | None = None
    is_own: bool = False

    @property
    def bound(self) -> Bound:
        """How far one who is protected moves it."""
        if self.limits is None:
            raise no_clip(self.name)
        return self.limits

    @property
    def unit(self) -> float:
        """Steps of the grid in 1."""
        return math.ldexp(1.0, self.exponent)

    @property
    def scale(self) -> Scale:
        """Its bound and grid."""
        return Scale(self.bound, self.exponent, self.slack)


@dataclass(frozen=True, slots=True)
class Scale:
    """A bound on the grid, and the grid: totals are integers times 2^-exponent. `slack`: how much
    of a row's norm may be rounding to the grid, relative to the norm."""

    bound: Bound
    exponent: int
    slack: float = 0.0

    @property
    def unit(self) -> float:
        """One step of the grid."""
        return math.ldexp(1.0, -self.exponent)


def no_clip(name: str) -> MissingBoundError:
    """Of a sum that is private and has no bound."""
    fix = "Pass clip=1.0, for example: a public choice, never read from rows."
    return MissingBoundError.expected("a clip", of=name, got=None, remedy=fix)


@dataclass(frozen=True, eq=False)
class Linear:
    """One linear model, or several side by side, as questions ask about them.

    `weights`: (1 + width,) for two classes (the score of the second), (classes, 1 + width) for
    several, with a leading axis for many models. The intercept comes first. `sharpness` multiplies
    scores before the soft decision (1 over the temperature).
    """

    weights: Any
    sharpness: float = 1.0
    array: Floats = field(init=False, repr=False)
    many: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checks.normalise(self, array=_weights_array(self.weights), many=np.ndim(self.weights) == 3)
        checks.normalise(self, sharpness=checks.positive(sharpness=self.sharpness))

    def at(self, weights: Floats) -> Linear:
        """The same model at other weights, of the same shape: a round of a run."""
        array = np.array(weights, np.float64, order="C")
        # whatever is wrong is said there
        if array.shape != np.shape(self.weights) or not np.vdot(array, array) < np.inf:
            return Linear(weights, self.sharpness)
        array.setflags(write=False)
        other = object.__new__(Linear)
        other.__dict__.update(self.__dict__, weights=array, array=array.reshape(self.array.shape))
        return other

    @property
    def models(self) -> int:
        """How many models."""
        return int(self.array.shape[0])

    @property
    def outputs(self) -> int:
        """1 for two classes, else the number of classes."""
        return int(self.array.shape[1])

    @property
    def form(self) -> Hashable:
        """All but the weights."""
        return self.array.shape, self.many, self.sharpness


def _weights_array(weights: object) -> Floats:
    """(models, outputs, 1 + width), from (1 + width,), (outputs, 1 + width) or itself."""
    try:
        array = np.array(weights, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        array = np.empty((0,) * 4)
    array.setflags(write=False)
    shaped = array.ndim in (1, 2, 3) and array.size > 0
    need(
        shaped and np.isfinite(array).all(),
        "finite weights of shape (1 + width,), (classes, 1 + width) or (models, classes, 1 + width)",
        of="weights",
        got="NaN or infinite values" if shaped else array.shape,
        fix="The intercept comes first, then numbers, then the categories of each coded feature.",
    )
    return array.reshape((1,) * (3 - array.ndim) + array.shape)


# -- kinds and questions ---------------------------------------------------------------------------

NOTHING = dict[str, Any](
    model=None, cells=None, group=None, copies=None, clip=None, inner=None, attached=None,
    by_label=False, with_target=False, decisions="", cell_costs=None, cell_weights=None,
)  # fmt: skip
"""What stands for arguments that a kind does not have."""


def read_columns(question: Any, columns: Iterable[str] = (FEATURES,)) -> frozenset[str]:
    """What most questions read: these columns, groups where it has cells, labels where it tells
    them apart."""
    groups = {SENSITIVE} if question.cells is not None else set()
    label = {LABEL} if question.by_label or question.with_target else set()
    return frozenset(columns) | groups | label


class Kind(Generic[P]):
    """A kind of question: called with the arguments of its function it gives a `Question`.

    Parameters
    ----------
    name : str
        In logs and statements.
    function : callable
        From `Facts` and the question's arguments to a `Sum`.
    why : str or callable
        Where the bound comes from, in words for the statement: a format of the arguments, or a
        function of the question.
    reads : callable or iterable of str, default=("features",)
        What questions read, a function of the question; or the columns that `read_columns` adds to.
    by_value : iterable of str, default=()
        Arrays on whose numbers the price depends, not on their shape alone.
    apart : bool, default=True
        Whether the first axis of an answer is the question's cells.
    is_gradient : bool, default=False
        Whether a person's contributions are added before they are clipped.
    is_network : bool, default=False
        Whether torch, which has threads of its own, works out what rows add.
    """

    def __init__(
        self,
        name: str,
        function: Callable[Concatenate[Facts, P], Sum],
        why: str | Callable[[Question], str],
        *,
        reads: Callable[[Any], frozenset[str]] | Iterable[str] = (FEATURES,),
        by_value: Iterable[str] = (),
        apart: bool = True,
        is_gradient: bool = False,
        is_network: bool = False,
    ) -> None:
        self.is_gradient, self.is_network = is_gradient, is_network
        update_wrapper(self, function, updated=())
        self.name, self.function, self.by_value, self.apart = name, function, (*by_value,), apart
        self.signature = inspect.signature(function)
        self._why, self._reads = why, reads

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Question:
        """The question with these arguments."""
        bound = self.signature.bind(None, *args, **kwargs)
        bound.apply_defaults()
        (facts, *_), values = self.signature.parameters, dict(bound.arguments)
        del values[facts]
        return Question(self, values)

    def why(self, question: Question) -> str:
        """Where the bound of a question comes from."""
        return self._why(question) if callable(self._why) else self._why.format(**question.values)

    def reads(self, question: Question) -> frozenset[str]:
        """What a question reads."""
        if callable(self._reads):
            return self._reads(question)
        return read_columns(question, self._reads)

    def __reduce__(self) -> str:
        """By its name in its module."""
        places = vars(sys.modules[self.__module__]).items()
        return next(name for name, value in places if value is self)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, repr=False)
class Question:
    """What is asked of every row: a kind, and the arguments of its function, which are its
    attributes too. A `Kind` makes it."""

    kind: Kind[...]
    values: Mapping[str, Any]
    _known: dict[Any, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        named = self.kind.by_value
        kept = {name: _kept(name, one, name in named) for name, one in self.values.items()}
        checks.normalise(self, values=kept)

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("values", NOTHING)
        if name in values:
            return values[name]
        if name in NOTHING:
            return NOTHING[name]
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent without what is worked out of it, which holds functions."""
        return Question, (self.kind, dict(self.values))

    def __repr__(self) -> str:
        return f"{self.kind.name}({', '.join(self.values)})"

    @property
    def name(self) -> str:
        """In logs and statements."""
        return self.kind.name

    @property
    def reads(self) -> frozenset[str]:
        """Among "features", "label", "sensitive"."""
        return self.kind.reads(self)

    @property
    def why(self) -> str:
        """Where the bound comes from, in words for the statement."""
        return self.kind.why(self)

    @property
    def models(self) -> int:
        """How many models are asked about; each is a release of its own, with its own noise."""
        return int(getattr(self.model, "models", 1) if self.copies is None else self.copies)

    @property
    def many(self) -> bool:
        """Whether its answer has a leading model axis."""
        return self.copies is not None or bool(getattr(self.model, "many", False))

    @property
    def per_row(self) -> int:
        """How many cells one row is in."""
        return 1 if self.cells is None or not self.kind.apart else int(self.cells.per_row)

    @property
    def has_cells(self) -> bool:
        """Whether the first axis of the answer is disjoint cells, each of which only its own rows
        move."""
        whole = self.kind.apart and self.group is None and self.per_row == 1
        return whole and self.cells is not None

    @property
    def innermost(self) -> Question:
        """The question inside, or itself."""
        inside: Question | None = self.inner
        return self if inside is None else inside

    @property
    def clipped_to(self) -> float | None:
        """The number of a caller's that bounds each row's contribution; None where the question
        alone does."""
        found: float | None = self.innermost.clip
        return found

    @cached_property
    def key(self) -> tuple[Hashable, ...]:
        """All that shape, price and bound depend on: every argument, arrays by their shape
        alone."""
        named = self.kind.by_value
        shown = ((name, one) for name, one in self.values.items() if not name.startswith("_"))
        return (self.kind, *(_form(one, name in named) for name, one in shown))

    @property
    def form(self) -> tuple[Hashable, ...]:
        """The key with all arrays by their shapes: what is the same in all rounds of a run."""
        shown = (one for name, one in self.values.items() if not name.startswith("_"))
        return (self.kind, *(_form(one, False) for one in shown))

    def at(self, **values: Any) -> Question:
        """The same question with other values of arguments, of the same forms: a round of a run.

        Where its price hangs on the values that change it is a question of another key.
        """
        named = self.kind.by_value
        changed = {name: _kept(name, one, name in named) for name, one in values.items()}
        for name, one in changed.items():
            old, new = _form(self.values[name], False), _form(one, False)
            fix = "Make a new question."
            need(
                name.startswith("_") or new == old,
                f"the form {old}",
                of=name,
                got=new,
                fix=fix,
                quote=False,
            )
        other = object.__new__(Question)
        other.__dict__.update(kind=self.kind, values={**self.values, **changed}, _known={})
        if all(_form(self.values[name], True) == _form(changed[name], True)
               for name in named if name in changed):  # fmt: skip
            other.__dict__.update(key=self.key)
            other._known.update({at: one for at, one in self._known.items() if at is not None})
        return other

    def but(self, **values: Any) -> Question:
        """A question of this kind with other arguments."""
        return Question(self.kind, {**self.values, **values})

    def sum(self, facts: Facts) -> Sum:
        """What it asks for, of rows of these facts."""
        known = self._known.get(None)
        if known is None or known[0] != facts:
            self._known[None] = known = facts, self.kind.function(facts, **self.values)
        found: Sum = known[1]
        return found

    def of_layout(self, layout: RowLayout) -> Sum:
        """Its sum where nothing is promised: for what depends on its key alone, such as shapes."""
        if layout not in self._known:
            self._known[layout] = self.kind.function(
                Facts(layout, NOBODY, one_group=True), **self.values
            )
        found: Sum = self._known[layout]
        return found

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        """The shape of one model's answer."""
        return self.of_layout(layout).shape

    def scale(
        self, layout: RowLayout, cap: float | None, order: int = 2, promise: Promise = RECORDS
    ) -> Scale:
        """Bound and grid, from the question and public constants alone. `cap`: the largest sample
        weight, or None when every row counts once."""
        facts = Facts(layout, promise, cap, order, one_group=True)
        return self.kind.function(facts, **self.values).scale


def _kept(name: str, value: Any, by_value: bool) -> Any:
    """Arrays as finite copies that nobody can change; those that count by value as tuples."""
    if not isinstance(value, np.ndarray | list | tuple):
        return value
    if name == "columns_read":
        return frozenset(value)
    try:
        array = np.array(value, np.float64, order="C")
    except (TypeError, ValueError):
        array = np.full(1, np.nan)
    # one product finds nearly every array finite; only where it overflows each number is looked at
    finite = np.vdot(array, array) < np.inf or bool(np.isfinite(array).all())
    got, fix = "NaN, inf or no numbers", "Floor what divides them, or leave them out."
    need(finite, "finite numbers", of=name, got=got, fix=fix)
    if by_value and array.ndim == 1:
        return tuple(array.tolist())
    array.setflags(write=False)
    return array


def _form(value: Any, by_value: bool) -> Hashable:
    if isinstance(value, np.ndarray):
        return ("array", *value.shape)
    if isinstance(value, tuple) and not by_value:
        return ("array", len(value))
    if isinstance(value, Question):  # one inside another
        return value.key if by_value or value.kind.by_value else value.form
    if callable(value) and not hasattr(value, "form"):  # code of the caller: no price depends on it
        return "a function"
    found: Hashable = getattr(value, "form", value)
    return found


def heard(question: Question, troubles: Any) -> Question:
    """The same question, with what its code says kept by the asking curator."""
    if question.inner is not None:
        return question.at(inner=heard(question.inner, troubles))
    return question.at(_troubles=troubles)


def floats_of(given: Any) -> Floats:
    """Numbers as an array; of what are none, one without a place."""
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        return np.empty((0,) * 5)


def classes_of(layout: RowLayout, name: str) -> int:
    """How many classes the labels have; an error when they are numbers, or none."""
    classes, fix = layout.classes or (), "Give classes to the rows."
    need(classes, "rows with class labels", of=name, got="numbers, or none", fix=fix)
    return len(classes)


def checked_group(cells: Cells | None, group: object) -> int | None:
    """The number of one cell among cells that do not overlap; None stays None."""
    if group is None:
        return None
    fix = "Use product cells, or ask about all cells."
    apart = cells is not None and cells.mode == "product"
    need(apart, "cells that do not overlap", of="group", got=cells, fix=fix)
    number, count = checks.whole(at_least=0, group=group), cells.count if cells else 0
    fix = "Cells are numbered in the order of their keys."
    need(number < count, f"a number below {count}", of="group", got=group, fix=fix)
    return number


def cell_count(cells: Cells | None) -> int:
    """How many cells; one when the whole population is meant."""
    return 1 if cells is None else cells.count


def require_question(value: object) -> Question:
    """A question, or an error."""
    if not isinstance(value, Question):
        fix, got = "Ask CellCounts(cells), for example.", type(value).__name__
        raise InputError.expected("a question", of="question", got=got, remedy=fix)
    return value
