"""What all fits share: guarantee, opening, plan, progress, and what is recorded and published."""

from __future__ import annotations

import copy
import inspect
import math
import os
import sys
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from .. import _checks
from .._types import ColumnsLike, Ints, TableLike
from .._waiting import replaced, waiting
from ..core.events import Event, compose
from ..core.noise import NoiseSource
from ..core.promise import Promise
from ..curator import Curator, Journal
from ..data.elsewhere import Elsewhere, curator_of
from ..errors import (
    FairveilError,
    FairveilWarning,
    InputError,
    LedgerError,
    NotEnforced,
    Overspent,
    PrivacyError,
    complaint,
)
from ..facts import Cells, RowSource, Schema
from ..facts.columns import Boolean, Category
from ..fairness import Notion
from ..fairness.notions import parse, uses_groups
from ..fairness.sentences import sentence
from ..fairness.systems import as_list
from ..ledger import Ledger, current, given_ledger
from ..ledger.ledger import same_budget
from ..methods import forecast
from ..methods.descent import Progress
from ..methods.forecast import Forecast, Line, Release, Supposed, groups_of
from ..models.model import RandomState
from ..privacy import epsilon as price
from ..show.parts import Column, Facts, Part, Shown, Table
from ..statement.document import NamedGroups, PrivacyStatement, PublicFact, StatedBound
from ..statement.form import READ_FROM_DATA
from ..tables import keys
from ..tables.frames import shape_of
from . import cautions, reading
from .cautions import Numbers, outside
from .coding import Additive, SchemaCoding, classes_of, parts_of
from .reading import Read, ReadOptions, Training, Unread, Whose
from .settings import Setting, Settled, same

# ------------------------------ recorded
# An estimator whose fits a ledger records: not fitted yet, it takes the block's ledger along
# wherever it is copied to.
#
# A search clones its estimator and sends the clones to other processes, which have no block. So
# inside a block, `with ledger.recording():`, a clone or a pickle of an estimator that has no ledger
# of its own, and was not fitted, has the block's: what is fitted there is recorded, too. One that was
# fitted keeps its parameters, and its pickle remembers the block's ledger beside them, for clones and
# fits where it arrives.
#
# Guarantees (tests/estimators/test_estimators_ledger.py):
# 1. Every fit of a search in a block is recorded once, in however many processes, and so is every fit
#    with `ledger=`.
# 2. Outside of a block clones and pickles are scikit-learn's own.

REMEMBERED = "_ledger_of_block"


class Recorded(Settled):
    """The mixin of all estimators, before `BaseEstimator`."""

    ledger: Any

    def __sklearn_clone__(self) -> Self:
        clone: Self = super().__sklearn_clone__()  # type: ignore[misc]
        if clone.ledger is None:
            clone.ledger = current() or remembered(self)
        return clone

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        block = current()
        if block is None or not isinstance(state, dict) or state.get("ledger") is not None:
            return state
        return {**state, REMEMBERED if hasattr(self, "privacy_") else "ledger": block}


def remembered(estimator: object) -> Ledger | None:
    """The ledger of the block in which a fitted estimator was pickled."""
    found: Ledger | None = vars(estimator).get(REMEMBERED)
    return found


def require_room(ledger: Ledger, events: Sequence[Event], promise: Promise, purpose: str) -> None:
    """Refuse now what would be refused half way: `events` are about to be reserved in several
    spends.

    One spend that comes first may have all of a ledger at its tight price. Several may not: they
    are added up by the filter.
    """
    whole = compose(events)
    if not ledger.is_untouched:
        if not ledger.fits(whole, promise):
            # an `Overspent`, unless room was made meanwhile
            ledger.reserve(whole, promise, purpose=purpose).refund()
        return
    terms = ledger.terms
    if terms.cost(whole, promise).within(0, 0):
        return
    asked, largest = (
        price(whole, promise.delta, promise.neighbours),
        terms.largest_epsilon(whole, promise, 1, 1),
    )
    text = complaint(
        expected=f"releases that the ledger's {terms.kind} filter adds up to no more than "
        f"epsilon={terms.promise.epsilon:g}",
        of=f"ledger {ledger.dataset!r}",
        got=f"several spends of {purpose}, of epsilon={asked:.6g} together",
        remedy=f"The largest epsilon that fits is epsilon={largest:g} at delta={promise.delta:g}.",
    )
    raise Overspent(
        text, spent=0.0, asked=asked, left=terms.promise.epsilon, largest_epsilon=largest
    )


# ------------------------------ promises
# The shared arguments of estimators as values: promise, noise, notions, the public number of
# rows.


def promise_of(epsilon: float, delta: float, protects: str, whose: Whose | None = None) -> Promise:
    """The promise, checked. `whose`: what was said of persons."""
    unit = None if whose is None else whose.unit
    return Promise(epsilon, delta, protects, unit=unit)


def asked(estimator: BaseEstimator) -> tuple[Whose | None, Promise]:
    """What an estimator was told of persons, and its promise, checked."""
    whose, of = reading.persons_asked(estimator), estimator
    return whose, promise_of(of.epsilon, of.delta, of.protects, whose)


def noise_of(random_state: object) -> NoiseSource:
    """None: secure. A whole number: a seed. A `RandomState` or `Generator` of NumPy gives a seed:
    insecure too."""
    return NoiseSource.of(seed_of(random_state))


def seed_of(random_state: object) -> int | None:
    """The seed that an estimator was given, or draws from the generator that it was given; None:
    secure."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if random_state is None:
        return None
    return _checks.whole(random_state=random_state, remedy="Pass None for secure noise, or a seed.")


def ways_of(
    schema: Schema | None,
    promise: Promise,
    *,
    trains: bool = False,
    standardise: bool = False,
    additive: Additive | None = None,
    whose: Whose | None = None,
) -> ReadOptions:
    """How rows are read, and what of it the promise forbids. Without privacy no weight is cut.
    `trains`: whether a model of our own is fitted, which may have sensitive features."""
    facts = Schema.of(schema)
    sensitive_as_feature = trains and facts.sensitive_as_feature
    if sensitive_as_feature and promise.protects == "sensitive_features":
        raise PrivacyError.expected(
            "protects='records'",
            of="sensitive_as_feature",
            got=promise.protects,
            remedy=(
                "Features are public where only sensitive features are protected: leave it False."
            ),
        )
    return ReadOptions(
        facts.declared,
        sensitive_as_feature,
        standardise,
        facts.max_sample_weight if promise.is_private else math.inf,
        promise.protects == "sensitive_features",
        promise.is_private and promise.protects == "records",
        additive=additive,
        public_rows=facts.rows,
        rows_are_public=promise.rows_are_public or not promise.is_private,
        whose=whose,
    )


def own_ways(
    estimator: BaseEstimator,
    promise: Promise,
    whose: Whose | None,
    steps: Additive | None,
    *,
    scaled: bool = False,
) -> ReadOptions:
    """`ways_of` what an estimator that fits a model of its own was told. `scaled`: its search needs
    numbers in their own deviations."""
    how: Any = {"standardise": scaled or estimator._facts.unsafe_data_dependent_bounds}
    return ways_of(estimator.schema, promise, trains=True, additive=steps, whose=whose, **how)


def ledger_of(estimator: BaseEstimator, promise: Promise, inside: object = None) -> Ledger | None:
    """Where a fit is recorded: the estimator's own ledger, else the block's; None where there is
    neither. What it would refuse is refused now, before rows are read. `inside`: the ledger of an
    estimator that this one fits: there is one for both."""
    own, inner, block = given_ledger(estimator.ledger), given_ledger(inside), current()
    ledger = own or inner or block or remembered(estimator)
    if (
        own is not None
        and inner is not None
        and not same_budget(own, inner)
        and not (block is not None and same_budget(block, inner))
    ):
        remedy = "Both read the same rows: give the outer one a ledger, and the inner one None."
        raise LedgerError.expected(
            f"{own!r}, as around it", of="estimator.ledger", got=inner, remedy=remedy
        )
    if ledger is not None:
        facts = estimator._facts
        unsafe = facts.unsafe_data_dependent_bounds and not promise.features_are_public
        ledger.require(
            promise,
            secure=estimator.random_state is None,
            read_from_data=["bounds, by unsafe_data_dependent_bounds"] if unsafe else (),
            schema=facts.declared or False,
        )
    return ledger


def notions_of(constraints: object, *, certified: bool = False) -> list[Notion]:
    """None, one, or several; each a notion or its name and bound, such as
    "demographic_parity:0.05". `certified`: whether they may have a confidence."""
    listed: Any = [constraints] if isinstance(constraints, (str, Notion)) else constraints
    # bounds would be lost, and a second fit would find nothing left
    if isinstance(listed, Mapping | Iterator):
        remedy = (
            "Pass DemographicParity(max_gap=0.05), 'demographic_parity:0.05', or a list of such."
        )
        got = "a mapping" if isinstance(listed, Mapping) else "an iterator"
        raise InputError.expected("notions of fairness", of="constraints", got=got, remedy=remedy)
    if isinstance(listed, Iterable):
        listed = [parse(item) if isinstance(item, str) else item for item in listed]
    found = as_list(listed)
    if not certified:
        refuse_confidence(found, "constraints")
    return found


def refuse_confidence(notions: Iterable[Notion], of: str) -> None:
    """Nothing is certified here."""
    if any(notion.confidence is not None for notion in notions):
        remedy = (
            "Pass the notion without confidence=; fv.certify certifies a finished model on other "
            "rows."
        )
        raise InputError.expected("no confidence here", of=of, got="a confidence", remedy=remedy)


def require_groups(notions: Iterable[Notion], training: Training) -> None:
    """A constraint that tells groups apart needs groups."""
    if training.rows.layout.sensitive:
        return
    for notion in notions:
        if uses_groups(notion):
            raise InputError.expected(
                f"groups, which {type(notion).__name__} compares",
                of="sensitive_features",
                got=None,
                remedy=(
                    "Pass fit(X, y, sensitive_features=...): columns, or names of columns "
                    "of X; or constraints=None."
                ),
            )


def public_rows_of(training: Training, promise: Promise) -> int | None:
    """What averages divide by, where it is public: as the schema states, or the true number where
    that is public.

    Rows with weights are counted by their weights, which only features that are public make public.
    None: it is released.
    """
    rows, stated = training.rows, training.rows_stated
    if promise.is_private and not promise.rows_are_public:
        # A schema's number is of all rows; of persons only so many of each are read, and how many
        # these are is released.
        return None if promise.unit is not None else stated
    if not rows.weighted:
        return training.exact_rows or None
    if promise.is_private and promise.protects == "sensitive_features":
        total = math.fsum(float(block.weights.sum()) for block in rows.blocks())
        return max(1, round(total))
    return stated if promise.is_private else None


def numbers_are_scalable(training: Training, promise: Promise) -> bool:
    """Whether numbers may be scaled by their released moments: they are dense, and bounded by a
    schema or public.

    Rows that were coded elsewhere are held to the bounds that they claim, here, before any release.
    That they keep them decides no plan: what is asked, and at what price, must not hang on one row.
    """
    if training.rows.sparse:
        return False
    if promise.features_are_public:
        return True
    if not isinstance(training.coding, SchemaCoding) or training.coding.standard is not None:
        return False
    if training.rows.largest_number > 1.0:
        remedy = (
            "Code them by that encoding, with data.encode, for example, which clips numbers to "
            "their bounds."
        )
        expected = "numbers in [-1, 1], as by their encoding"
        raise InputError.expected(expected, of="coded rows", got="others", remedy=remedy)
    return True


# ------------------------------ publish
# The statement of a fit: the curator's, with what was read from the data outside of it.

READS_GROUPS = (
    "the classifier reads a person's group when it decides: what it decides about a person may "
    "tell their group, which no "
    "guarantee for the training rows covers"
)


def read_from_data(training: Training, promise: Promise) -> Iterator[StatedBound]:
    """The scales that were read from private rows: for the statement, and for a ledger that forbids
    it."""
    if training.coding.standard is not None and promise.protects != "sensitive_features":
        words = "in units of the training rows' own standard deviations, around their means"
        yield StatedBound("scale of the numbers", "L2", 1.0, words, READ_FROM_DATA)
    if training.target is not None and training.target.origin == READ_FROM_DATA:
        words = "in units of half the training targets' own range, around its middle"
        yield StatedBound("scale of the target", "L2", 1.0, words, READ_FROM_DATA)


def statement_of(
    curator: Curator,
    training: Training,
    also_not_covered: Iterable[str] = (),
    groups: Iterable[NamedGroups] = (),
) -> PrivacyStatement:
    """What the run cost, under which promise, and every step that is outside of it."""
    told = [*training.not_covered, *also_not_covered]
    return PrivacyStatement.of_run(curator, not_covered=told, groups=groups)


# ------------------------------ opened_fit
# How every fit opens: its promise checked, its rows read, where it is recorded; and from there the
# curator, given a plan.


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class OpenedFit:
    """A fit that asked nothing yet. `public_rows`: what averages divide by, if public;
    `ledger`: where it is recorded, for `purpose`; `facts`:
    facts that are public, with their origins; `stated_clips`: those that the caller passed;
    `one_group`: whether all rows of a person count in one group."""

    promise: Promise
    training: Training
    public_rows: int | None
    random_state: Any
    ledger: Ledger | None
    purpose: str
    facts: tuple[PublicFact, ...] = ()
    stated_clips: tuple[float, ...] = ()
    one_group: bool = False

    @staticmethod
    def of(
        estimator: BaseEstimator,
        promise: Promise,
        ledger: Ledger | None,
        training: Training,
        *,
        numbers: Numbers = "scaled",
    ) -> OpenedFit:
        """Refuse or warn of what rows and promise show together. The estimator has the arguments
        that all share; `numbers`: how its search takes them."""
        steps = cautions.of_pipeline(
            training.rows.layout.sensitive_names, training.columns, promise
        )
        if steps:
            training = replace(
                training, not_covered=(*training.not_covered, *(step.sentence for step in steps))
            )
        public_rows = public_rows_of(training, promise)
        solver = type(estimator._setting("solver", Setting)).__name__
        purpose = f"{type(estimator).__name__}.fit ({solver})"
        known, clips = reading.facts_of(estimator, training), reading.stated_clips(estimator)
        opened = OpenedFit(
            promise,
            training,
            public_rows,
            estimator.random_state,
            ledger,
            purpose,
            known,
            clips,
        )
        cautions.of_promise(promise, opened.known_rows)
        cautions.of_units(training.coding, training.rows, promise, numbers)
        if ledger is not None:
            ledger.require(
                promise,
                schema=training.schema,
                read_from_data=[f"by pipeline step {step}" for step in steps],
            )
        return opened

    @property
    def known_rows(self) -> int | None:
        """The number of rows, where it is public."""
        return self.training.exact_rows if self.promise.rows_are_public else self.public_rows

    @property
    def max_sample_weight(self) -> float | None:
        """Where weights are cut; None without weights."""
        rows = self.training.rows
        return rows.max_sample_weight if rows.weighted else None

    def curator(
        self,
        plan: Event | None,
        noise: Sequence[NoiseSource] = (),
        *,
        promise: Promise | None = None,
        earlier: Journal | None = None,
        purpose: str | None = None,
    ) -> Curator:
        """The curator of this plan, reserved now. `noise`: one a model, for models side by side;
        `promise`: of all of them."""
        promise = promise or self.promise
        private = promise.is_private and not promise.rows_are_public
        persons = {"one_group": True} if self.one_group and promise.unit is not None else {}
        return curator_of(
            self.training.rows,
            promise,
            plan=plan,
            noise=noise or noise_of(self.random_state),
            public_rows=self.public_rows if private else None,
            earlier=earlier,
            facts=[*self.training.facts, *self.facts],
            bounds=read_from_data(self.training, promise),
            ledger=self.ledger,
            purpose=self.purpose if purpose is None else purpose,
            stated_clips=self.stated_clips,
            **persons,
        )


# ------------------------------ plan_words
# Numbers of a plan in words: percentage points, noise, and figures that are rounded up.


def points(value: float) -> str:
    """A fraction in percentage points.

    >>> points(0.0531), points(0.00021), points(float("inf"))
    ('5.3', '0.02', 'inf')
    """
    if math.isinf(value):
        return "inf"
    return f"{100 * value:.2f}" if 0 < value < 0.001 else f"{100 * value:.1f}"


def from_points(bound: float) -> str:
    return (
        f"bounds of {points(bound)} points or more" if bound < 1.0 else "no bound below 100 points"
    )


def noise_in_words(line: Line) -> str:
    if math.isinf(line.noise):
        return f"{line.name}: too few rows to be told from none"
    return f"±{points(line.noise)} points (one standard deviation): {line.name}"


def up(value: float) -> str:
    """Two digits, rounded up: what is shown is enough."""
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / step - 1e-9) * step:.4g}"


def rows_up(rows: int) -> int:
    step = int(max(1, 10 ** (len(str(rows)) - 2)))
    return -(-rows // step) * step


def plain(value: float) -> float | str:
    return str(value) if math.isinf(value) else value


# ------------------------------ plan_search
# What would be enough: the least epsilon, the fewest rows, the smallest group. Searches over
# plans, each priced anew. And the warning, before a spend, of what will not be enough.
#
# Guarantee (tests/estimators/test_estimators_not_enforced.py):
# 1. The warning depends on public facts alone: a number of rows that is public, stated shares, else
#    equal ones.

STEPS = 40
NEAR = 0.005  # of the logarithm of the answer
SHARE = 1e-6


def least(short: Callable[[float], float], start: float, low: float, high: float) -> float | None:
    """About the least value from `low` to `high` at which `short`, which falls, is at most 1; None
    where there is none.

    Noise is nearly a power of epsilon and of the rows, so steps along the logarithms find it in a
    few plans; a bracket holds them. The answer is one at which it was looked: it is enough, and
    half a per cent less may not be.

    >>> 100.0 <= least(lambda x: 100.0 / x, 1.0, 1e-3, 1e3) < 101.0
    True
    """
    a, b = math.log(low), math.log(high)  # too little, and enough, as far as is known
    x = min(max(math.log(start), a), b)
    best: float | None = None
    slope = -1.0
    before: tuple[float, float] | None = None
    for _ in range(STEPS):
        y = _log(short(math.exp(x)))
        if before is not None and math.isfinite(y) and math.isfinite(before[1]) and x != before[0]:
            slope = min((y - before[1]) / (x - before[0]), -0.05)
        if y <= 0.0:
            best, b = math.exp(x), x
            if y >= 2.0 * NEAR * slope or x <= math.log(low):
                return best
        elif x >= math.log(high):
            return None
        else:
            a = x
        before = (x, y)
        aim = x - y / slope + NEAR if math.isfinite(y) else (a + b) / 2.0
        if aim >= b and best is None:
            aim = b
        x = aim if a < aim < b or (aim == b and best is None) else (a + b) / 2.0
        if b - a <= NEAR and best is not None:
            return best
    return best


def smallest_share(
    supposed: Supposed, cells: Cells, short: Callable[[Supposed], float]
) -> float | None:
    """Of the first sensitive column whose shares nobody stated: what its smallest value may have,
    the others alike."""
    name = next(name for name in cells.names if name in supposed.guessed)
    count = len(supposed.columns[name])
    if count < 2:
        return None

    def at(share: float) -> float:
        line = np.full(count, (1.0 - share) / (count - 1))
        line[0] = share
        return short(replace(supposed, columns={**supposed.columns, name: line}))

    equal = 1.0 / count
    if at(equal) > 1.0:
        return None
    return equal if count == 1 else least(at, equal, SHARE, equal)


def short(forecast: Forecast, what: str = "enforceable") -> float:
    """By what factor the worst constraint misses its bound."""
    bounded = [line for line in forecast.lines if line.bound is not None]
    return max(
        (getattr(line, what) / line.bound if line.bound else math.inf for line in bounded),
        default=0.0,
    )


def warn_if_hidden(
    training: Training,
    promise: Promise,
    rows: int | None,
    foretold: Callable[[Supposed, float], Forecast],
) -> bool:
    """Warn, before anything is spent, that noise will hide a constraint, with what would do; False
    where it will not, or where how many rows there are is private. `foretold`: of so many rows at
    an epsilon."""
    if rows is None or not promise.is_private:
        return False
    supposed, epsilon = _supposed(training, rows), promise.epsilon
    found = foretold(supposed, epsilon)
    bounded = [line for line in found.lines if line.bound is not None]
    hidden = [line for line in bounded if not line.can_be_enforced]
    if not hidden:
        return False
    worst = max(hidden, key=lambda line: line.enforceable - (line.bound or 0.0))
    equal = " if groups are equal in size" if supposed.guessed else ""
    # of the figures as they are shown, rounded up: finer bins of more rows may have more noise
    enough = least(
        lambda n: short(foretold(supposed.at(rows_up(math.ceil(n))), epsilon)), rows, 10.0, 1e10
    )
    larger = least(lambda at: short(foretold(supposed, float(up(at)))), epsilon, 1e-3, 1e3)
    ways = [f"about {rows_up(math.ceil(enough)):,} rows"] if enough is not None else []
    ways += [f"epsilon {up(larger)}"] if larger is not None else []
    do = f"{' or '.join(ways)} would do{equal}" if ways else "no number of rows would do"
    text = (
        f"before anything is spent: noise will hide {len(hidden)} of {len(bounded)} constraints. "
        f"With {rows:,} rows at epsilon {epsilon:.3g} the noise is ±{points(worst.noise)} points "
        f"(one standard deviation) for a bound of {points(worst.bound or 0.0)}{equal}; {do}. Or ask "
        "for a larger bound, or put small groups together."
    )
    warnings.warn(text, NotEnforced, stacklevel=outside())
    return True


def _supposed(training: Training, rows: int) -> Supposed:
    """Shares that a schema states, else equal ones."""
    schema, layout = training.schema, training.rows.layout
    columns = {} if schema is None else schema.columns
    stated = {
        name: column.shares
        for name, column in columns.items()
        if isinstance(column, Category | Boolean) and column.shares is not None
    }
    classes = None if schema is None else stated.get(schema.target or "")
    groups = {name: stated[name] for name in layout.sensitive_names if name in stated}
    return Supposed.of(layout, rows, groups, classes)


def _log(value: float) -> float:
    return math.log(value) if 0.0 < value < math.inf else math.copysign(math.inf, value - 1.0)


# ------------------------------ plan
# `Plan`: what a fit would release, with how much noise, and what that lets one enforce and verify.
# Public facts alone.

EQUAL = "supposed equal: nobody stated them"
MOST_LINES = 12  # of constraints in print; `table()` has them all


@dataclass(frozen=True)
class Enough:
    """What would do for every required bound: the least epsilon with as many rows, and the fewest
    rows at the same epsilon.

    None: nothing up to 1,000, or 10^10 rows, would. `enforce`: two deviations of the noise are
    within the bound; `verify`: a model without any gap is said to have met it in 19 fits of 20.
    """

    epsilon_to_enforce: float | None
    rows_to_enforce: int | None
    epsilon_to_verify: float | None
    rows_to_verify: int | None


@dataclass(frozen=True, eq=False)
class Plan(Shown):
    """What a fit would do, from public facts alone: nothing was read, and nothing is spent.

    `forecast`: its releases and the noise of each constraint's value. `supposed`: the rows and
    shares that it is worked out for. Print it, or take `verdict`, `table()`, `to_dict()`.
    """

    estimator: str
    promise: Promise
    forecast: Forecast
    supposed: Supposed
    _again: Callable[..., Forecast] = field(repr=False)

    @property
    def releases(self) -> tuple[Release, ...]:
        """What would be released: noise multipliers, sensitivities, how often, and about which
        share of the budget."""
        return self.forecast.releases

    @property
    def lines(self) -> tuple[Line, ...]:
        """One a constraint: its bound, its noise, and the smallest bounds that could be enforced
        and verified."""
        return self.forecast.lines

    @property
    def can_be_enforced(self) -> bool | None:
        """Whether every required bound can be enforced; None where nothing is required, or no noise
        is foretold."""
        bounded = [line for line in self.lines if line.bound is not None]
        return all(line.can_be_enforced for line in bounded) if bounded else None

    @property
    def can_be_verified(self) -> bool | None:
        """Whether every required bound can be verified from what the fit releases."""
        bounded = [line for line in self.lines if line.bound is not None]
        return all(line.can_be_verified for line in bounded) if bounded else None

    @property
    def verdict(self) -> str:
        """The plan in one sentence."""
        if not self.promise.is_private:
            return "Nothing is private at epsilon inf: no noise is added."
        worst = self.forecast.noisiest
        if worst is None:
            return (
                f"No noise of a constraint is foretold: "
                f"{self.forecast.why or 'nothing is required'}."
            )
        if not any(line.noise for line in self.lines):
            return "No constraint's value gets noise: nothing that it is made of is protected."
        head = (
            f"With {self._sizes()} at epsilon {self.promise.epsilon:.3g} the noise is "
            f"±{points(worst.noise)} points{self._condition}"
        )
        bounded = [line for line in self.lines if line.bound is not None]
        if not bounded:
            return f"{head}; no bound is required."
        broken = [line for line in bounded if not line.can_be_enforced]
        if len(broken) == len(bounded):
            return f"{head}: nothing can be enforced."
        if broken:
            return f"{head}: {len(broken)} of {len(bounded)} constraints cannot be enforced."
        smallest = (
            ""
            if self.least_share is None
            else f" The smallest group must have {self._share_in_words()}."
        )
        unsure = [line for line in bounded if not line.can_be_verified]
        if unsure:
            return (
                f"{head}: what is required can be enforced, but the release can hardly verify "
                f"it.{smallest}"
            )
        told = "can be enforced and verified"
        if not self.forecast.aims:
            told = (
                "can be enforced, but this solver does not aim inside it: a verdict is "
                "inconclusive where a fit ends near its bound"
            )
        return f"{head}: what is required {told}.{smallest}"

    @property
    def _condition(self) -> str:
        """What a reader must know of the groups, where nobody stated how large they are."""
        return "" if self._stated else " if groups are equal in size, which nobody stated"

    def _sizes(self) -> str:
        if self.forecast.cells is None:
            return f"{self.supposed.rows:,.0f} rows"
        shares = self.supposed.shares(self.forecast.cells)
        each = (
            f"{len(shares)} groups of {self.supposed.rows * float(shares.min()):,.0f} rows or more"
        )
        return each if self._stated else f"{self.supposed.rows:,.0f} rows in {len(shares)} groups"

    @property
    def _stated(self) -> bool:
        """Whether somebody stated how large all groups are."""
        cells = self.forecast.cells
        return cells is None or not set(cells.names) & set(self.supposed.guessed)

    @cached_property
    def enough(self) -> Enough | None:
        """What epsilon, or how many rows, would do; None where no bound is required."""
        if self.can_be_enforced is None or not self.promise.is_private:
            return None
        enforce, verify = "enforceable", "verifiable"
        return Enough(
            self._epsilon(enforce), self._rows(enforce), self._epsilon(verify), self._rows(verify)
        )

    def _epsilon(self, what: str) -> float | None:
        return least(
            lambda epsilon: short(self._at(self.supposed, epsilon), what),
            self.promise.epsilon,
            1e-3,
            1e3,
        )

    def _rows(self, what: str) -> int | None:
        found = least(
            lambda n: short(self._at(self.supposed.at(round(n))), what),
            self.supposed.rows,
            10.0,
            1e10,
        )
        return None if found is None else math.ceil(found)

    def _at(self, supposed: Supposed, epsilon: float | None = None) -> Forecast:
        """Foretold once for each place where a search looks."""
        key = (
            supposed.rows,
            epsilon,
            *(tuple(line.tolist()) for line in supposed.columns.values()),
        )
        if key not in self._looked:
            self._looked[key] = self._again(supposed, epsilon)
        return self._looked[key]

    @cached_property
    def _looked(self) -> dict[Any, Forecast]:
        return {}

    @cached_property
    def least_share(self) -> float | None:
        """The share that the smallest group may have, the others being alike, so that every bound
        could still be enforced.

        None where sizes were stated, or no share would do."""
        cells = self.forecast.cells
        if (
            self.can_be_enforced is None
            or cells is None
            or self._stated
            or not self.promise.is_private
        ):
            return None
        return smallest_share(self.supposed, cells, lambda one: short(self._at(one)))

    # -- shown -------------------------------------------------------------------------------------

    def table(self) -> list[dict[str, Any]]:
        """One mapping a constraint, of plain values: rates as fractions; too few rows to be told
        from none: "inf"."""
        return [
            {
                "target": line.name,
                "bound": line.bound,
                "noise": plain(line.noise),
                "sampling_error": None if line.sampling is None else plain(line.sampling),
                "smallest_enforceable": plain(line.enforceable),
                "smallest_verifiable": plain(line.verifiable),
                "smallest_breach": plain(line.breach),
                "can_be_enforced": line.can_be_enforced,
                "can_be_verified": line.can_be_verified,
            }
            for line in self.lines
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        enough = self.enough
        return {
            "estimator": self.estimator,
            "verdict": self.verdict,
            "can_be_enforced": self.can_be_enforced,
            "can_be_verified": self.can_be_verified,
            "promise": self.promise.to_dict(),
            "rows": round(self.supposed.rows),
            "shares": {
                name: [float(share) for share in line]
                for name, line in self.supposed.columns.items()
            },
            "shares_of_classes": [float(share) for share in self.supposed.classes],
            "shares_supposed": list(self.supposed.guessed),
            "rounds": self.forecast.rounds,
            "releases": [
                {
                    "release": one.name,
                    "noise_multiplier": one.multiplier,
                    "epsilon": one.epsilon,
                    "sensitivity": one.sensitivity,
                    "times": one.times,
                    "share": one.share,
                }
                for one in self.releases
            ],
            "constraints": self.table(),
            "added_error": self.forecast.added_error,
            "enough": None if enough is None else vars(enough).copy(),
            "least_share": self.least_share,
            "not_foretold": self.forecast.why or None,
        }

    def facts(self) -> list[tuple[str, str]]:
        """One fact a line: (label, words)."""
        s, found = self.supposed, self.forecast
        lines = [
            ("plan", self.verdict),
            ("privacy", str(self.promise)),
            ("rows", f"about {s.rows:,.0f}"),
        ]
        if found.cells is not None:
            lines.append(("groups", self._groups()))
            if not self._stated and self.enough is not None:
                lines.append(("smallest group", self._share_in_words()))
        worst = found.noisiest
        if worst is not None and self.promise.is_private:
            bounded = worst.bound is not None
            lines.append(("noise", noise_in_words(worst)))
            if bounded:
                lines.append(("enforceable", from_points(worst.enforceable)))
                lines.append(
                    ("verifiable", f"{from_points(worst.verifiable)}, at a confidence of 95 %")
                )
            if worst.sampling is not None:
                lines.append(
                    ("sampling error", f"±{points(worst.sampling)} points, on top of the noise")
                )
            lines += self._enough_in_words() if bounded else []
        elif found.why:
            lines.append(("not foretold", found.why))
        if found.added_error is not None and self.promise.is_private:
            added = (
                f"about {points(found.added_error)}"
                if found.added_error >= 0.0005
                else "less than 0.1"
            )
            lines.append(("added error", f"{added} points, from the noise in the model"))
        return lines

    def _groups(self) -> str:
        cells, shares = self.forecast.cells, self.supposed.shares(self.forecast.cells)
        named = [
            f"{keys.shown(key)} {share:.1%}"
            for key, share in zip(groups_of(self.forecast), shares, strict=True)
        ]
        shown = ", ".join(named[:8]) + (f", and {len(named) - 8} more" if len(named) > 8 else "")
        assert cells is not None
        guessed = [name for name in cells.names if name in self.supposed.guessed]
        return shown if not guessed else f"{shown} (shares of {', '.join(guessed)} {EQUAL})"

    def _share_in_words(self) -> str:
        share = self.least_share
        if share is None:
            return "no share of the rows would be enough to enforce what is required"
        people = math.ceil(share * self.supposed.rows)
        return (
            f"at least {100 * share:.2g} % of the rows, about {people:,}, for what is required to "
            f"be enforced"
        )

    def _enough_in_words(self) -> list[tuple[str, str]]:
        enough = self.enough
        if enough is None:
            return []
        pairs = (
            ("to enforce", enough.epsilon_to_enforce, enough.rows_to_enforce),
            ("to verify", enough.epsilon_to_verify, enough.rows_to_verify),
        )
        out = []
        for label, epsilon, rows in pairs:
            by_epsilon = "no epsilon up to 1,000" if epsilon is None else f"epsilon {up(epsilon)}"
            by_rows = "no number of rows" if rows is None else f"{rows_up(rows):,} rows"
            out.append((label, f"{by_epsilon}, or {by_rows}, would do"))
        return out

    def _releases(self) -> Table:
        rows = self.releases
        sizes = tuple(
            f"epsilon {one.epsilon:.3g}" if one.multiplier is None else f"{one.multiplier:.4g}"
            for one in rows
        )
        columns = (
            Column("release", tuple(one.name for one in rows)),
            Column("noise multiplier", sizes),
            Column("sensitivity", tuple(one.sensitivity for one in rows), "plain", missing="-"),
            Column("times", tuple(one.times for one in rows), "count"),
            Column("share of the budget", tuple(one.share for one in rows), "percent"),
        )
        return Table(columns, "What would be released")

    def _constraints(self) -> Table:
        """The noisiest first; of two that are each other's opposite one."""
        rows = self._apart
        numbers: dict[str, list[float | None]] = {
            "noise": [line.noise for line in rows],
            "enforceable from": [line.enforceable for line in rows],
            "verifiable from": [line.verifiable for line in rows],
            "sampling error": [line.sampling for line in rows],
        }
        columns = [
            Column(name, tuple(values), "points", missing="-") for name, values in numbers.items()
        ]
        names = Column("constraint", tuple(line.name for line in rows))
        title = "Standard deviations, and the smallest bounds that could be kept"
        return Table((names, *columns), title, shown=MOST_LINES)

    @property
    def _apart(self) -> list[Line]:
        """The noisiest first; a gap from one group to another has the noise of the gap back."""
        found: dict[Any, Line] = {}
        for line in sorted(self.lines, key=lambda line: -line.noise):
            found.setdefault((line.cells, line.bound, f"{line.noise:.9g}"), line)
        return list(found.values())

    def parts(self) -> Iterator[Part]:
        """What a fit would do: in facts, its releases, and a line a constraint."""
        yield Facts.of(self.facts())
        if self.releases:
            yield self._releases()
        if self.lines:
            yield self._constraints()


# ------------------------------ planning
# The plan of a fit before there are rows: the face that all estimators share. Abstract.
#
# Guarantees (tests/estimators/test_estimators_plan.py):
# 1. A plan reads no row: it is handed a schema and numbers, and has no way to any.
# 2. What is foretold is of the very search that a fit of as many rows plans: the same events, to the
#    last bit.
# 3. Nothing is spent, and no attribute of the estimator changes.


@dataclass(eq=False, repr=False, kw_only=True)
class Planning:
    """The mixin of all estimators that plan a fit by public facts, with the parameters that all of
    them have. Abstract."""

    epsilon: float = 1.0
    delta: float = 1e-6
    protects: str = "records"
    schema: Schema | None = None
    ledger: Any = None
    random_state: RandomState = None

    @property
    def _facts(self) -> Schema:
        """What the schema states; one without any fact where there is none."""
        return Schema.of(self.schema)

    def plan(
        self,
        schema: object = None,
        *,
        rows: int | None = None,
        shares: Mapping[str, Mapping[Any, float]] | None = None,
        sensitive: Iterable[str] | None = None,
    ) -> Plan:
        """Plan a fit from public facts: its releases and their noise. It spends nothing.

        Parameters
        ----------
        schema : Schema, default=None
            Public facts of the table: its columns, target and groups. None: the estimator's own.
        rows : int, default=None
            About how many rows there will be. None: the schema's number.
        shares : mapping, default=None
            About how large groups and classes are, ``{"sex": {"f": 0.3, "m": 0.7}}``. None: the
            schema's (``Category(..., shares=...)``), else equal shares, and the plan says so.
        sensitive : list of str, default=None
            Columns that make the groups. None: the schema's.

        Returns
        -------
        Plan
            Print it, draw it (`figure()`) or take `to_dict()`.
        """
        unread = Unread.of(schema, self.schema, rows, sensitive)
        whose = reading.whose(None, None, unread.schema, self.epsilon)
        promise = promise_of(self.epsilon, self.delta, self.protects, whose)
        supposed = unread.supposed(shares)
        found = forecast_at(self, unread, supposed)
        return Plan(
            type(self).__name__, promise, found, supposed, partial(quietly, copy.copy(self), unread)
        )

    def _foretold(self, unread: Unread, epsilon: float | None) -> Self:
        """This estimator, as it would be fitted to rows of that schema."""
        one = copy.copy(self)
        one.schema, one.ledger, one.random_state = unread.schema, None, None
        if epsilon is not None:
            one.epsilon = epsilon
        return one

    @abstractmethod
    def _search(self, read: Read) -> Any:
        """The search that a fit would run, planned and priced."""

    def _forecast(self, read: Read, supposed: Supposed) -> Forecast:
        return forecast.of(self._search(read), supposed)


def forecast_at(
    estimator: Planning, unread: Unread, supposed: Supposed, epsilon: float | None = None
) -> Forecast:
    """What is foretold of so many rows as are supposed, and at another epsilon."""
    rows = round(supposed.rows)
    unread = Unread(unread.schema, rows)
    return estimator._foretold(unread, epsilon)._forecast(unread.read, supposed)


def quietly(
    estimator: Planning, unread: Unread, supposed: Supposed, epsilon: float | None = None
) -> Forecast:
    """The same, where its warnings were heard before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairveilWarning)
        return forecast_at(estimator, unread, supposed, epsilon)


# ------------------------------ progress
# A progress bar for fits that take long: after two seconds, on a terminal only, never on a
# pipe. Before its first round a fit may compile its loops, once for all fits on a machine, and says
# so.

PATIENCE = 2.0  # seconds before a bar is shown
EVERY = 0.1  # seconds between two pictures of it
COMPILING = "Compiling loops, once: later fits load them from the disk"


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """What a search reports its rounds to; None where nobody would see it. The bar is gone
    afterwards, in every case.

    >>> with progress("Fitting") as tick:
    ...     tick is None or tick(1, 120)
    True
    """
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(title)
    with waiting(title) as say, _compiling(title, say):
        try:
            yield bar.tick
        finally:
            bar.stop()


@contextmanager
def _compiling(title: str, say: Callable[[str], None]) -> Iterator[None]:
    """Inside, the waiting line says when loops are compiled, and not only loaded."""
    from numba.core import event

    class Heard(event.Listener):
        def on_start(self, event: Any) -> None:
            say(COMPILING)

        def on_end(self, event: Any) -> None:
            say(title)

    with event.install_listener("numba:compile", Heard()):
        yield


class _Bar:
    """Made by rich, loaded only when there is something to show."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._next = time.monotonic() + PATIENCE
        self._shown: Any = None
        self._task: Any = None
        self._aside = ExitStack()

    def tick(self, done: int, most: int) -> None:
        """A round was done."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        if self._shown is None:
            from rich.console import Console
            from rich.progress import Progress

            self._aside.enter_context(replaced())
            self._shown = Progress(console=Console(stderr=True), transient=True)
            self._task = self._shown.add_task(self._title, total=most)
            self._shown.start()
        self._shown.update(self._task, completed=done, total=most)

    def stop(self) -> None:
        """Take it away."""
        if self._shown is not None:
            self._shown.stop()
        self._aside.close()


# ------------------------------ requirements
# What an estimator was asked to keep, as sentences: every bound that requires something, fitted or
# read from a file.


def said(estimator: Any) -> tuple[str, ...]:
    """The requirements of an estimator whose groups are known; none where its parameters no longer
    say them."""
    cells = parts_of(estimator).cells
    classes = tuple(np.asarray(classes_of(estimator)).tolist())
    try:
        if (way := getattr(estimator, "_way", None)) is not None:
            return tuple(way.said(cells, classes))
        asked = notions_of(estimator.constraints, certified=True)
        return tuple(sentence(one, cells, classes) for one in asked if not one.is_vacuous)
    except FairveilError:
        # functions of the user's are not written
        return ()


# ------------------------------ row_parts
# Some of the rows of a table as it was given: arrays, tables, mappings of columns, coded rows. For
# parts that are set aside.
#
# Guarantees (tests/estimators/test_estimators_certified_fits.py, tests/study/test_study_search.py):
# 1. Rows stay whole and in their order; what is chosen depends on their places alone.

CERTIFICATE, SEARCH = "certificate", "search"
COINS = (CERTIFICATE, SEARCH)
"""What rows are set aside for: each has a stream of its own, so that no coin is thrown twice."""


def length_of(X: TableLike) -> int | None:
    """How many rows; None where that cannot be seen."""
    if isinstance(X, Elsewhere):
        return X.exact_rows
    if isinstance(X, RowSource):
        return sum(block.rows for block in X.blocks())
    if isinstance(X, Mapping):
        return len(next(iter(X.values()))) if X else None
    if (shape := shape_of(X)) is not None:
        return int(shape[0]) if shape and shape[0] is not None else None
    return len(X) if hasattr(X, "__len__") else None


def rows_at(given: object, at: npt.NDArray[np.intp]) -> Any:
    """The rows at these places, which ascend; None stays None."""
    if given is None:
        return None
    if isinstance(given, RowSource) and hasattr(given, "chosen"):
        return given.chosen(at)
    if isinstance(given, Mapping):
        return {name: _safe_indexing(column, at) for name, column in given.items()}
    return _safe_indexing(given, at)


def aside_of(
    source: NoiseSource, rows: int, share: float, coins: str, persons: Ints | None = None
) -> npt.NDArray[np.bool_]:
    """Which rows are set aside: each by a coin of its own, which no other row moves. `persons`: a
    number for each row, whose it is; each person then has one coin."""
    if persons is not None:
        return aside_of(source, int(persons.max(initial=-1)) + 1, share, coins)[persons]
    if coins == CERTIFICATE:
        return np.asarray(source.stream("sampling").uniforms(rows) < share)
    aside = np.zeros(rows, bool)
    aside[source.stream("sampling", "rows set aside").poisson_batch(rows, share)] = True
    return aside


def parts_elsewhere(
    X: Elsewhere, y: ColumnsLike, groups: ColumnsLike, share: float, seed: int | None, coins: str
) -> list[tuple[Any, Any, Any]]:
    """The two parts of another holder's rows, who throws the coins; each as (X, y, groups) of a
    fit."""
    if y is not None:
        remedy = "Leave it out: labels are the holder's."
        raise InputError.expected(
            "None beside remote data", of="y", got=type(y).__name__, remedy=remedy
        )
    return [(part, None, groups) for part in X.parted(share, seed, coins)]


# ------------------------------ running
# The run of every fit: a curator for its plan, the search that asks it, and a folder from which a
# killed one goes on.
#
# Guarantee (tests/estimators/test_estimators_kept_fits.py):
# 1. A fit that was killed, wherever, and went on has the plan as its log and the plan's price, in a
#    ledger, too; what it was told before, it is told again to the bit. One that ended gives the same
#    model again.

Found = TypeVar("Found")
FILE = "answers.jsonl"


def run(
    opened: OpenedFit,
    plan: Event | None,
    title: str,
    search: Callable[[Curator, Progress | None], Found],
    journal: Journal | None = None,
) -> tuple[Found, Curator]:
    """What the search found, and the curator that it asked, whose run has ended. `title`: of the
    bar that shows progress."""
    with progress(title) as tick, opened.curator(plan, earlier=journal) as curator:
        return search(curator, tick), curator


def journal_in(folder: str | os.PathLike[str] | None) -> Journal | None:
    """The journal of a search that keeps its answers there; None: nothing is kept."""
    return None if folder is None else Journal(folder_of(folder) / FILE)


def folder_of(given: object) -> Path:
    """The folder of a run, which need not be there yet."""
    if given == "" or not isinstance(given, str | os.PathLike):
        remedy = "Name a folder of its own: 'fit/', for example."
        raise InputError.expected(
            "the path of a folder", of="checkpoint", got=repr(given), remedy=remedy
        )
    folder = Path(given)
    if next((place for place in (folder, *folder.parents) if place.exists()), Path()).is_file():
        remedy = "Name a folder, which is made where it is not there."
        raise InputError.expected("a folder", of="checkpoint", got=str(folder), remedy=remedy)
    return folder


# ------------------------------ unused
# Arguments that a fit would not read are refused, in one wording: a value that does nothing would
# seem to matter.
#
# What only some promises make idle is *not* refused: `clip`, `delta` and their like at `epsilon=inf`,
# or `max_sample_weight` where no rows have weights. Searches and frontiers go over epsilons with all
# other arguments the same, and nobody is told more than is true by it. Refused is what other
# arguments of the same call make idle, where somebody may believe that it counts.


def refuse_unused(estimator: object, idle: Mapping[str, str | None]) -> None:
    """An error for the first argument that is not its default and would not be used.

    `idle`: by argument where it is not used, in words that begin with "with" or "without"; None: it
    is used.
    """
    parameters = inspect.signature(type(estimator)).parameters
    for name, where in idle.items():
        given, default = getattr(estimator, name), parameters[name].default
        if where is None or same(given, default):
            continue
        remedy = f"{name} is not used {where}; leave it out."
        raise InputError.expected(f"{default!r} {where}", of=name, got=_shown(given), remedy=remedy)


def _shown(given: object) -> Any:
    return given if given is None or isinstance(given, int | float | str) else type(given).__name__
