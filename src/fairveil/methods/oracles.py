"""Private cost-sensitive oracles: given what each decision costs by cell, label and class, a rule
whose total cost is small (Jagielski et al., "Differentially private fair learning").

A row of cell c and label y that is given class k costs  C_k = costs[c, y, k]; an oracle looks for a
rule h with little sum_i C_{h(x_i)}. The paper's learner (its Subroutine 2, BEST_h) is such an
oracle, asked once a round at the auditor's duals.

| oracle       | a round costs               | its rules                                          |
| `Regression` | nothing (post-processing)   | linear: regress costs, take the cheapest           |
| `Responses`  | nothing                     | linear: searched on rows whose features are public |
| `Choice`     | one exponential mechanism   | a finite class                                     |
| `Descent`    | a few private gradients     | linear: descend a softmax of costs                 |

*Regression* (the paper's sec. 5, after Kearns et al.; theory.md#game). With z = L (1, x) of
identity second moment the regression of C_k on the row is

    E[C_k] + z' (1/rows) sum_i z_i C_ik,    sum_i z_i C_ik = rows sum_{c, y} costs[c, y, k] S_cy,

linear in the sums S_cy of z by cell and label: they are released once, with the counts, and every
best response is post-processing. Where records are protected, L is made of a Gram matrix of the
same release; directions in which it is no larger than its noise are left out.

*Choice* (the paper's sec. 4). A candidate's cost is a fixed combination of how its decisions fall
by cell and label, so one histogram a candidate, kept inside the curator, serves all rounds. But for
probability exp(-s) a choice is within range (ln(candidates) + s) / epsilon of the best
(theory.md#t6).

*Responses*. Sums that are released once say who may be in which group, row by row (`memberships`).
What a decision costs is then a number of each public row, and a round is a search on public
numbers. By how much memberships mislead is the difference between what is counted and what they
foretell; its mean over rounds has the noise of *all* audits together, and is shrunk by it (James
and Stein). The mixture is a linear program over all rules that were met.

*Descent* walks a few gradients a round; `Begun` starts where a descent without constraints has
ended.

`Differs:` from the paper.
- Its regression adds noise to X'C in every round, for all coordinates, at the length of the longest
  row. Few whitened coordinates, clipped to the public radius LENGTH sqrt(width) and released once,
  have a tenth of that noise at 2,000 rows; cells' means are shrunk by their noise besides.
- Its exponential mechanism is scaled by (2 |A| B + 1) / (min N - 1), read from the data. Here by
  the range of a neighbour's changes of the costs: with sensitive features alone protected
  max_{y, a, a'} of the spread over classes of costs[a', y] - costs[a, y], about 2 dual_bound / N.

Guarantees (tests/methods/test_methods_oracles.py):
1. What an oracle does depends on the rows through the curator's answers alone, and on costs made of
   released values.
2. What it asks does not depend on what it is answered: a trace of it is its plan (`Search`).
3. Without noise `Responses` errs no more than any mixture of the rules that were met which keeps
   the bounds; it asks what `Regression` asks.
4. Without noise, `Begun`'s free rule is the logistic regression that `PrimalDual` finds. Rules
   are returned in the units of coded rows.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import logsumexp

from .._types import Floats
from ..core.choices import Costs
from ..core.events import Event, Repeated, compose
from ..core.promise import Promise
from ..curator import (
    Asked,
    Attached,
    AttachedHistogram,
    Block,
    CellCounts,
    Curator,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupedHistogram,
    GroupLosses,
    Linear,
    MadeUp,
    Measurement,
    MixtureHistogram,
    PredictionHistogram,
    Question,
    RowCount,
    ScoreHistogram,
    Trace,
)
from ..errors import InputError
from ..facts import Cells, RowLayout
from ..fairness import ConstraintSystem, Notion
from ..fairness.systems import FixedCounts
from .descent import Progress, follow
from .mixture import best_mixture
from .primal_dual import Plan, PrimalDual, Settings, usual_clip
from .public_rows import PublicRows
from .systems import NO_GROUPS, PublicTask, columns_of, onto_totals, system_of
from .units import in_coded_units, in_inner_units

R = TypeVar("R")
Ints = npt.NDArray[np.intp]
Asks = Curator | Trace
"""Who is asked: a curator of rows, or one without rows, for a plan."""
LEAST_ROWS = 1.0
LEAST = 1e-9  # of a number that divides
TINY = 1e-6  # of a number of rows that divides
STEPS = 100  # of L-BFGS at most, for the error's regression
GRID = tuple(round(-0.9 + 0.2 * k, 1) for k in range(10))
"""Where thresholds on numbers are cut, which a schema codes to [-1, 1] or which are standardised:
whatever the data."""
EDGES = tuple(round(-3.0 + 0.1 * k, 1) for k in range(61))
"""Where labellings are cut, in standard deviations of a public score."""
LENGTH = 0.8
"""Of a whitened row: the radius it is clipped to, over the square root of its coordinates."""
CROWD = 0.3
"""Noise of a cell's whole mean vector that is put up with, in standard deviations: decides the
width."""
SMOOTH = 1e-3  # the ridge of the logistic regression, in whitened coordinates
RIDGE = 0.02  # of the error's least squares, relative to each column's variance
THIN = 1e-6  # of the largest eigenvalue, or of all rows: below it a direction is empty
MEMBER_STEPS = 60  # of L-BFGS at most, for who may be in which group
FIRST_STEPS = 60  # of the model without constraints on public rows
PARTS = 10_000  # in how many parts the mixture is shared among rules
HARD = 1e4  # errors that one unit of excess is worth at the end: bounds come first
CERTAIN = 3.0  # deviations of the noise in a number of rows
CURVE, DROWNED = 0.25, 12.0  # of the clip: see `Descent`
FREE_ROUNDS = 120
COUNTED, SCALED = 0.03, 0.05
"""Of what is released once: for the number of rows, and for the moments of numbers, where these are
asked for."""


# -- what is public ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GameInstance(PublicTask):
    """What a game or a loop over decisions is played on, and what answers mean.

    `cells` and `by_label`: what counts distinguish, the least that will do. `priced`: an objective
    of group losses prices decisions, rather than a system of constraints.
    """

    system: ConstraintSystem | None = None
    by_label: bool = True
    group_aware: bool = False
    priced: bool = False

    @staticmethod
    def of(
        promise: Promise,
        layout: RowLayout,
        cells: Cells | None,
        notions: Sequence[Notion],
        *,
        public_rows: int | None = None,
        max_sample_weight: float | None = None,
        group_aware: bool = False,
    ) -> GameInstance:
        """The ground for these constraints. Counts are by label where constraints, or rules that
        read the group, need it, and where records are protected in any case: then labels are."""
        system = system_of(notions, cells, layout)
        if group_aware and (cells is None or cells.mode != "product"):
            remedy = "Pass sensitive_features, and constraints of product groups."
            got = None if cells is None else cells.mode
            raise InputError.expected("product groups", of="group_aware", got=got, remedy=remedy)
        kept = cells if group_aware or (system is not None and system.needs_groups) else None
        by_label = True
        if system is not None:
            system = system if kept is not None else system.without_groups()
            by_label = system.needs_labels or not promise.features_are_public or group_aware
            system = system if by_label else system.without_labels()
        stated: dict[str, Any] = {
            "public_rows": public_rows,
            "max_sample_weight": max_sample_weight,
        }
        return GameInstance(promise, layout, kept, system, by_label, group_aware, **stated)

    @property
    def classes(self) -> int:
        """How many."""
        return len(self.layout.classes or ())

    @property
    def outputs(self) -> int:
        """1 for two classes, else one a class."""
        return 1 if self.classes <= 2 else self.classes

    @property
    def has_costs(self) -> bool:
        """Whether decisions have costs beside the error."""
        return self.priced or self.system is not None

    @property
    def groups(self) -> int:
        """How many cells."""
        return 1 if self.cells is None else self.cells.count

    @property
    def per_row(self) -> int:
        """In how many cells a row is."""
        return 1 if self.cells is None else self.cells.per_row

    @property
    def zeros(self) -> Floats:
        """The weights of a linear rule that decides as no row says."""
        return np.zeros((self.outputs, 1 + self.layout.width))

    @cached_property
    def counts(self) -> Question:
        """The question of how many rows each cell (and label) holds."""
        return CellCounts(self.cells, self.by_label)

    @cached_property
    def decisions(self) -> Question:
        """The question how a linear rule decides, whichever: bounds depend on shapes alone."""
        return LinearRule(self.zeros).decisions(self.cells, self.by_label)

    @cached_property
    def mixed(self) -> Question:
        """The question how a mixture of linear rules decides, whichever."""
        return MixtureHistogram(self.zeros[np.newaxis], np.ones(1), self.cells, self.by_label)

    # -- noise ---------------------------------------------------------------------------------------

    def deviation(self, question: Question, multiplier: float, noise: str = "gaussian") -> float:
        """The standard deviation of each number of an answer."""
        if self.is_exact:
            return 0.0
        if noise == "gaussian":
            return multiplier * self.move(question)
        return math.sqrt(2.0) * multiplier * self.move(question, 1)

    def floor(self, multiplier: float) -> float:
        """The least number of rows that a cell is taken to have: two standard deviations of its
        count's noise, at least 1."""
        return max(LEAST_ROWS, 2.0 * multiplier * self.move(self.counts))

    # -- what is asked -------------------------------------------------------------------------------

    def trace(self, made_up: MadeUp | None = None) -> Trace:
        """A curator without rows: what is asked of it is a plan."""
        cap, rows = self.max_sample_weight, self.public_rows
        return Trace(
            self.layout, self.promise, max_sample_weight=cap, public_rows=rows, made_up=made_up
        )

    def joint(
        self, curator: Asks, measurements: Sequence[Measurement], purpose: str, *, free: bool = True
    ) -> list[Floats]:
        """One joint release. Where features are public, each answer by cell is put onto its exact
        total over cells, which is `free` to ask but of rules that read the group."""
        if self.is_exact or not self.sees_features or not free:
            return curator.answer(measurements, purpose=purpose)
        whole: list[Any] = [(one.question.but(cells=None), 0.0) for one in measurements]
        answers = curator.answer([*measurements, *whole], purpose=purpose)
        pairs = zip(answers[: len(whole)], answers[len(whole) :], strict=True)
        return [self.onto_totals(noisy, total[0]) for noisy, total in pairs]

    def count(self, curator: Asks, multiplier: float, noise: str = "gaussian") -> Floats:
        """Counts by (cell, label), released once; one label where labels are not distinguished."""
        asked = [Measurement(self.counts, multiplier, noise)]
        (answer,) = self.joint(curator, asked, "counts of the cells")
        return self.table(answer)

    def audit(
        self,
        curator: Asks,
        rule: Rule,
        multipliers: Sequence[float],
        counts: Floats,
        noise: str = "gaussian",
    ) -> list[Floats]:
        """How a rule decides, (cells, labels, classes), once for each multiplier: noise of its own
        each time, in one joint release."""
        question = rule.decisions(self.cells, self.by_label)
        asked = [Measurement(question, multiplier, noise) for multiplier in multipliers]
        answers = self.joint(curator, asked, "how a rule decides", free=not rule.reads_groups)
        return [self.by_class(answer, counts) for answer in answers]

    def count_mixture(
        self, curator: Asks, rules: list[tuple[Rule, int]], multiplier: float, counts: Floats
    ) -> Floats:
        """How a mixture of linear rules decides, (cells, labels, classes), released once: with
        noise of its own, which no choice of rules has seen."""
        weights = np.array([rule.weights for rule, _ in rules if isinstance(rule, LinearRule)])
        parts = np.array([share for _, share in rules], np.float64)
        question = MixtureHistogram(weights, parts / parts.sum(), self.cells, self.by_label)
        asked = [Measurement(question, multiplier)]
        (answer,) = self.joint(curator, asked, "how the mixture decides")
        return answer.reshape(*counts.shape, self.classes)

    # -- what answers mean ---------------------------------------------------------------------------

    def table(self, answer: Floats) -> Floats:
        """Counts as (cells, labels), with one label where labels are not distinguished."""
        return np.asarray(answer, np.float64).reshape(self.groups, -1)

    def by_class(self, answer: Floats, counts: Floats) -> Floats:
        """A histogram (cells, labels, classes); of two classes it may have the second alone, which
        leaves the first."""
        histogram = np.asarray(answer, np.float64).reshape(*counts.shape, -1)
        if histogram.shape[-1] == self.classes:
            return histogram
        return np.concatenate([counts[..., np.newaxis] - histogram, histogram], axis=-1)

    def onto_totals(self, noisy: Floats, totals: Floats) -> Floats:
        """Sums by cell (first axis) that add up to totals over groups, which are public: each
        column's do."""
        return onto_totals(noisy, totals, self.cells or NO_GROUPS, axis=0)

    def costs(self, cell_costs: Floats, rows: float) -> Floats:
        """What one decision costs the Lagrangian, (cells, labels, classes): 1[y != k] / rows +
        dL/dH."""
        errors: Any = (1.0 - np.eye(self.classes)) / rows
        whole = np.broadcast_to(errors, (self.groups, self.classes, self.classes))
        return np.asarray(whole / self.per_row + cell_costs)


@dataclass(frozen=True, eq=False)
class Search(ABC, Generic[R]):
    """A search that is planned and priced: public values alone. Its plan is the trace of a run.
    Abstract.

    `asks_last`: whether anything is asked after the last round.
    """

    asks_last: ClassVar[bool] = False
    ground: GameInstance
    rounds: int

    @abstractmethod
    def play(self, curator: Asks) -> Generator[None, None, R]:
        """The search, to its result. It pauses before the first round, in every round once that has
        asked, and after what is asked last."""

    def run(self, curator: Asks, progress: Progress | None = None) -> R:
        """Search, with a curator that was made for the plan; the curator is closed afterwards, in
        every case."""
        with curator:
            play, done = self.play(curator), 0
            try:
                next(play)
                while True:
                    next(play)
                    done += 1
                    if progress is not None and done <= self.rounds:
                        progress(done, self.rounds)
            except StopIteration as end:
                found: R = end.value
            curator.finish()
        return found

    def asked(self, made_up: MadeUp | None = None) -> tuple[list[Asked], list[Asked], list[Asked]]:
        """What is asked before the first round, in every round, and after the last: a trace."""
        trace, ends = self.ground.trace(made_up), list[int]()
        one: Any = replace(self, rounds=1)
        play = one.play(trace)
        for _ in range(2 + self.asks_last):
            next(play)
            ends.append(len(trace.asked))
        return trace.asked[: ends[0]], trace.asked[ends[0] : ends[1]], trace.asked[ends[1] :]

    @cached_property
    def event(self) -> Event:
        """All that is released, as one event."""
        first, one, last = (in_parts(asked) for asked in self.asked())
        return compose([*first, Repeated(compose(one), self.rounds), *last])

    @property
    def plan(self) -> Event | None:
        """The events that are fixed in advance; None where nothing is promised."""
        return self.event if self.ground.promise.is_private else None


def in_parts(asked: list[Asked]) -> list[Event]:
    """What was asked one after another, an event for each purpose."""
    parts = itertools.groupby(asked, key=lambda one: one.purpose)
    return [compose([one.event for one in part]) for _, part in parts]


# -- rules, and how they decide ------------------------------------------------------------------


class Rule(ABC):
    """What an oracle answers with: one way to decide. Abstract.

    `reads_groups`: whether a row's group decides, too.
    """

    reads_groups = False

    @property
    def learnt(self) -> bool:
        """Whether there is anything in it: coefficients of zeros decide as no row says."""
        return bool(getattr(self, "weights", np.ones(1)).any())

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """Equal for rules that decide alike."""

    @abstractmethod
    def decisions(self, cells: Cells | None, by_label: bool) -> Question:
        """The question how its decisions fall."""

    def published(self) -> Rule:
        """The rule in the units of coded rows, without any handle of the curator, which would hold
        its rows."""
        return self


@dataclass(frozen=True, eq=False)
class LinearRule(Rule):
    """A linear model's hard decisions; `weights` (outputs, 1 + width), the intercept first.
    `standard`: centre and scale by which the curator's numbers were scaled, in whose units the
    weights are; None: as they came."""

    weights: Floats
    standard: tuple[Floats, Floats] | None = None

    @property
    def key(self) -> Hashable:
        return self.weights.tobytes()

    def decisions(self, cells: Cells | None, by_label: bool) -> Question:
        return PredictionHistogram(Linear(self.weights), cells, "hard", by_label=by_label)

    def published(self) -> LinearRule:
        return LinearRule(in_coded_units(self.weights, self.standard))


@dataclass(frozen=True, eq=False)
class GroupedRule(Rule):
    """A linear model with an intercept of its own for each product cell; `offsets` (cells,
    outputs)."""

    weights: Floats
    offsets: Floats
    of: Cells
    reads_groups = True

    @property
    def key(self) -> Hashable:
        return self.weights.tobytes(), self.offsets.tobytes()

    def decisions(self, cells: Cells | None, by_label: bool) -> Question:
        return GroupedHistogram(Linear(self.weights), self.offsets, self.of, cells, by_label)


@dataclass(frozen=True, eq=False)
class AttachedRule(Rule):
    """A candidate made elsewhere, by its place in the list that was given."""

    place: int
    handle: Attached | None = None

    @property
    def key(self) -> Hashable:
        return ("candidate", self.place)

    def decisions(self, cells: Cells | None, by_label: bool) -> Question:
        assert self.handle is not None
        return AttachedHistogram(self.handle, cells, by_label, decisions="hard")

    def published(self) -> AttachedRule:
        return AttachedRule(self.place)


def constant_rule(ground: GameInstance, k: int) -> LinearRule:
    """The rule that decides for class k, whatever the row."""
    weights = ground.zeros
    weights[0 if ground.outputs == 1 else k, 0] = -1.0 if ground.outputs == 1 and k == 0 else 1.0
    return LinearRule(weights)


def indicators(cells: Cells, width: int) -> list[GroupedRule]:
    """The maximally discriminatory classifiers, two for each group: the second class for it alone,
    and for all others (Assumption 4.1 of Jagielski et al.). Two classes."""
    zeros, alone = np.zeros((1, 1 + width)), 2.0 * np.eye(cells.count) - 1.0
    lines = [sign * line[:, np.newaxis] for line in alone for sign in (1.0, -1.0)]
    return [GroupedRule(zeros, line, cells) for line in lines]


# -- oracles -------------------------------------------------------------------------------------


class Oracle(ABC):
    """How best responses are found. Abstract. What it prepares it carries from round to round,
    released values alone (`told`).

    `burn_in`: the share of rounds, at the start, whose rules are left out of the answer.
    `once_share`, `rounds_share`: of the squared Gaussian budget, for what is released once and for
    all rounds together. `looks_for_the_least`: whether what it answers costs about as little as any
    of its rules, so that it says how little that is. `in_turn`: whether rules come in their turn,
    whatever prices are. `any_linear`: whether it answers with linear rules of any weights:
    constants are some. `settles`: whether it makes the mixture itself, of linear rules, which is
    then counted once. `most_rounds`: of its own accord. `knows_free`: whether `prepare` finds a
    rule that knows no constraint, to start from and to compare with.
    """

    burn_in: float = 0.0
    looks_for_the_least: bool = True
    in_turn: bool = False
    any_linear: bool = False
    once_share: float = 0.0
    rounds_share: float = 0.0
    settles: bool = False
    most_rounds: int | None = None
    knows_free: bool = False

    def require(self, ground: GameInstance) -> None:
        """An error where the oracle cannot answer on this ground, before anything is asked. Most
        can anywhere."""
        return

    @abstractmethod
    def at(self, once: float, round_: float) -> Oracle:
        """The same oracle at these multipliers: of what is released once, and of what is released
        in a round."""

    @abstractmethod
    def prepare(
        self, curator: Asks, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, Any]:
        """Counts by (cell, label), released with that multiplier, and what else the oracle
        needs."""

    @abstractmethod
    def respond(
        self, curator: Asks, ground: GameInstance, told: Any, cell_costs: Floats, rows: float
    ) -> tuple[Rule, Any]:
        """A rule with little cost, (cells, labels or 1, classes) beside the error's own 1 / rows a
        row."""

    def free_rule(self, told: Any) -> Rule:
        """The rule that knows no constraint; of oracles that find one."""
        raise NotImplementedError

    def regret(self, ground: GameInstance, costs: Floats) -> tuple[float, float]:
        """(unit, known): a response's cost is above the class's best by at most unit (known + E), E
        no larger than an exponential variable of mean 1, whatever came before. Infinite where
        nothing is known."""
        return math.inf, 0.0

    def guarantee(self, ground: GameInstance) -> Event:
        """What one call guarantees, its costs being made of released values: an event, of which an
        accountant reads every divergence (Alabi, Definitions 7.1 to 7.3) and composes it."""
        return self._traced(ground, 1.0)[1]

    def first_guarantee(self, ground: GameInstance, counts_multiplier: float) -> Event:
        """The same of what is released once, the counts among it."""
        return self._traced(ground, counts_multiplier)[0]

    def _traced(self, ground: GameInstance, counts_multiplier: float) -> tuple[Event, Event]:
        trace = ground.trace()
        counts, told = self.prepare(trace, ground, counts_multiplier)
        once, rows = len(trace.asked), max(LEAST_ROWS, float(counts.sum()))
        self.respond(trace, ground, told, np.zeros((*counts.shape, ground.classes)), rows)
        return compose(in_parts(trace.asked[:once])), compose(in_parts(trace.asked[once:]))


# -- a choice from a finite class ----------------------------------------------------------------

Found = tuple[list[Question], list[Rule]]
"""The questions how all candidates decide, by cell and label, and the candidates in order."""


class Class(ABC):
    """A finite class of rules. Abstract. `reads_groups`: whether one may decide by the sensitive
    columns."""

    reads_groups: bool = False

    @property
    @abstractmethod
    def size(self) -> int:
        """How many rules there are, at most: public before anything is asked."""

    def require(self, ground: GameInstance) -> None:
        """An error where the class cannot be on this ground, before anything is asked. Most can be
        anywhere."""
        return

    @abstractmethod
    def gather(self, curator: Asks, ground: GameInstance) -> Found:
        """Its rules, and the questions how they decide. Asks only what is free."""


@dataclass(frozen=True, eq=False)
class LinearClass(Class):
    """Linear models, (candidates, outputs, 1 + width): public, chosen without the data."""

    weights: Floats

    @property
    def size(self) -> int:
        return len(self.weights)

    def gather(self, curator: Asks, ground: GameInstance) -> Found:
        question = PredictionHistogram(Linear(self.weights), ground.cells, "hard", by_label=True)
        return [question], [LinearRule(line) for line in self.weights]


@dataclass(frozen=True, eq=False)
class Cuts(Class):
    """Directions (d, 1 + width) cut at edges, for two classes: the second above an edge. One pass
    counts them all."""

    directions: Floats
    edges: tuple[float, ...]

    @property
    def size(self) -> int:
        return len(self.directions) * len(self.edges)

    def require(self, ground: GameInstance) -> None:
        if ground.classes != 2:
            remedy = "Choose among thresholds, or a list of models: decisions=[...]."
            of, got = "cuts of directions", ground.classes
            raise InputError.expected("two classes", of=of, got=got, remedy=remedy)

    def gather(self, curator: Asks, ground: GameInstance) -> Found:
        model = Linear(self.directions[:, np.newaxis, :])
        question = ScoreHistogram(model, self.edges, ground.cells, by_label=True)
        first = _line(self.directions.shape[1] - 1, 0, 0.0, 1.0)
        lines = [direction - edge * first for direction in self.directions for edge in self.edges]
        return [question], [LinearRule(line[np.newaxis]) for line in lines]


def directions(layout: RowLayout, count: int = 100, cuts: int = 100) -> Cuts:
    """A grid of linear rules in the unit ball, fixed without the data: `count` directions, `cuts`
    cuts of each.

    In up to three coordinates evenly spread (angles, a Fibonacci lattice); beyond that the same
    draws for everybody. A row's numbers are taken to be in [-1, 1], as a schema codes them.
    """
    width = layout.width
    if width == 1:
        lines = np.array([[1.0], [-1.0]])
    elif width == 2:
        angles = 2.0 * np.pi * np.arange(count) / count
        lines = np.column_stack([np.cos(angles), np.sin(angles)])
    elif width == 3:
        heights = 1.0 - (2.0 * np.arange(count) + 1.0) / count
        turns = np.pi * (1.0 + math.sqrt(5.0)) * np.arange(count)
        flat = np.sqrt(1.0 - heights**2)
        lines = np.column_stack([flat * np.cos(turns), flat * np.sin(turns), heights])
    else:
        drawn = np.random.default_rng(0).standard_normal((count, width))
        lines = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    longest = math.sqrt(layout.numbers + len(layout.code_sizes))
    edges = tuple((longest * (2.0 * np.arange(cuts) + 1.0 - cuts) / cuts).tolist())
    return Cuts(np.column_stack([np.zeros(len(lines)), lines]), edges)


def thresholds(layout: RowLayout) -> LinearClass:
    """One column against one number: every cut of `GRID` of every number, every category, both ways
    round, and the constants. With K classes: one class on one side, another on the other, for every
    pair."""
    numbers, categories = range(layout.numbers), range(layout.numbers, layout.width)
    cuts = [_line(layout.width, 1 + j, 1.0, -cut) for j in numbers for cut in GRID]
    cuts += [_line(layout.width, 1 + j, 1.0, -0.5) for j in categories]
    lines = np.array(cuts).reshape(-1, 1 + layout.width)
    return LinearClass(_sided(lines, len(layout.classes or ())))


def _line(width: int, at: int, slope: float, intercept: float) -> Floats:
    line = np.zeros(1 + width)
    line[at], line[0] = slope, intercept
    return line


def _sided(cuts: Floats, classes: int) -> Floats:
    """Both sides of each cut as decisions, and a constant for each class: (candidates, outputs, 1 +
    width)."""
    constant = np.zeros((1, cuts.shape[1]))
    constant[0, 0] = 1.0
    if classes == 2:
        return np.asarray(np.concatenate([cuts, -cuts, constant, -constant])[:, np.newaxis, :])
    out = []
    for low, high in itertools.permutations(range(classes), 2):
        lines = np.zeros((len(cuts), classes, cuts.shape[1]))
        lines[:, :, 0] = -1e6  # below any score of a coded row that matters
        lines[:, low] = 0.0
        lines[:, high] = cuts
        out.append(lines)
    ends = np.zeros((classes, classes, cuts.shape[1]))
    ends[np.arange(classes), np.arange(classes), 0] = 1.0
    return np.asarray(np.concatenate([*out, ends]))


@dataclass(frozen=True, eq=False)
class Labellings(Class):
    """H(S): the labellings of the rows that cuts of public scores induce, each once. Where features
    are public, for two classes.

    The scores are each coded column, and the regression of the error; cuts between which no row
    lies give one labelling.
    """

    layout: RowLayout

    @property
    def size(self) -> int:
        return 2 * (1 + self.layout.width) * len(EDGES) + 2

    def require(self, ground: GameInstance) -> None:
        remedy, of = "Choose among thresholds, or a list of models.", "labellings of the rows"
        if ground.classes != 2:
            raise InputError.expected("two classes", of=of, got=ground.classes, remedy=remedy)
        if not ground.sees_features:
            got = "protected records"
            raise InputError.expected("public features", of=of, got=got, remedy=remedy)

    def gather(self, curator: Asks, ground: GameInstance) -> Found:
        scores, cuts, first = self._scores(curator), [], _line(self.layout.width, 0, 0.0, 1.0)
        if len(scores):  # else features tell no rows apart: the constants
            asked = ScoreHistogram(Linear(scores[:, np.newaxis, :]), EDGES)
            (bins,) = curator.answer([(asked, 0.0)])
            for score, line in zip(scores, bins.reshape(-1, 1 + len(EDGES)), strict=True):
                # an edge for each way to tell rows apart: a row below, a row above, and one between
                # it and the last
                below = np.cumsum(line)[:-1]
                new = (np.append(0.0, below[:-1]) < below) & (below < line.sum())
                cuts += [score - edge * first for edge in np.array(EDGES)[new].tolist()]
        lines = np.array(cuts).reshape(-1, 1 + self.layout.width)
        return LinearClass(_sided(lines, 2)).gather(curator, ground)

    def _scores(self, curator: Asks) -> Floats:
        """Standardised: each coded column, then the second class's regression."""
        whole, sums = exact_moments(curator)
        errors = regressed_errors(whole, sums)
        lines = np.concatenate([np.eye(1 + self.layout.width)[1:], [errors[0] - errors[1]]])
        means = lines @ whole[0] / whole[0, 0]
        variances = ((lines @ whole) * lines).sum(axis=1) / whole[0, 0] - means**2
        varies = variances > 1e-12
        lines, means, deviations = lines[varies], means[varies], np.sqrt(variances[varies])
        lines[:, 0] -= means
        return np.asarray(lines / deviations[:, np.newaxis])


@dataclass(frozen=True, eq=False)
class Listed(Class):
    """Models made elsewhere, by how they decide for a block of rows: they must not have been made
    from protected rows."""

    models: Sequence[Callable[[Block], Any]]

    @property
    def size(self) -> int:
        return len(self.models)

    def gather(self, curator: Asks, ground: GameInstance) -> Found:
        rules = [
            AttachedRule(j, curator.attach(model, title=f"candidate {j}"))
            for j, model in enumerate(self.models)
        ]
        return [rule.decisions(ground.cells, True) for rule in rules], list(rules)


@dataclass(frozen=True, eq=False)
class Choice(Oracle):
    """The exponential mechanism over a finite class; `epsilon` is what one choice costs."""

    of: Class
    epsilon: float = math.inf
    rounds_share = 0.6

    def at(self, once: float, round_: float) -> Choice:
        """A Gaussian of multiplier z is 1/(2 z^2)-zCDP, a choice epsilon^2/8 (theory.md#t6):
        epsilon = 2 / z costs the same."""
        return replace(self, epsilon=2.0 / round_ if round_ > 0 else math.inf)

    def require(self, ground: GameInstance) -> None:
        self.of.require(ground)

    def prepare(
        self, curator: Asks, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, Any]:
        counts = ground.count(curator, counts_multiplier)
        return counts, self.of.gather(curator, ground)

    def respond(
        self, curator: Asks, ground: GameInstance, told: Any, cell_costs: Floats, rows: float
    ) -> tuple[Rule, Any]:
        questions, rules = told
        costs, purpose = ground.costs(cell_costs, rows), "a choice of the learner"
        return rules[curator.choose(questions, self.epsilon, costs=costs, purpose=purpose)], told

    def regret(self, ground: GameInstance, costs: Floats) -> tuple[float, float]:
        if ground.is_exact:
            return 0.0, 0.0
        return reach(ground, costs) / self.epsilon, math.log(self.of.size)


@dataclass(frozen=True, eq=False)
class Each(Choice):
    """Every decision of a short list in its turn: no choice is charged, and what a round costs
    goes into what is released."""

    rounds_share = 0.0
    looks_for_the_least = False
    in_turn = True

    def at(self, once: float, round_: float) -> Each:
        return self

    def respond(
        self, curator: Asks, ground: GameInstance, told: Any, cell_costs: Floats, rows: float
    ) -> tuple[Rule, Any]:
        questions, rules = told
        return rules[0], (questions, [*rules[1:], rules[0]])

    def regret(self, ground: GameInstance, costs: Floats) -> tuple[float, float]:
        return math.inf, 0.0


def reach(ground: GameInstance, costs: Floats) -> float:
    """The range of one neighbour's changes of the candidates' costs, as the curator has it
    (`core.choices.Costs`)."""
    question = PredictionHistogram(Linear(ground.zeros), ground.cells, "hard", by_label=True)
    made = Costs.of(costs, question, ground.layout)
    steps = made.reach(ground.promise, ground.layout, reads_groups=False)
    return math.ldexp(steps, -made.exponent) * (ground.heaviest or 1.0)


# -- regression of costs -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Moments:
    """Released values: predicted costs of errors (classes, 1 + width), L (k, 1 + width), and shrunk
    sums (cells, labels, k).

    `means` (classes,) and `slopes` (classes, k): of the predicted costs of errors, over the rows,
    and on z; None where these are a logistic model's, whose scale is another than that of costs.
    """

    errors: Floats
    lift: Floats
    sums: Floats
    counts: Floats
    means: Floats | None = None
    slopes: Floats | None = None


@dataclass(frozen=True, eq=False)
class Regression(Oracle):
    """Linear regression of costs. `clip`: of rows where records are protected. `width`: of the
    basis, None by the noise."""

    clip: float | None = None
    width: int | None = None
    multiplier: float = 0.0
    once_share = 0.7
    looks_for_the_least = False
    any_linear = True

    def at(self, once: float, round_: float) -> Regression:
        return replace(self, multiplier=once)

    def prepare(
        self, curator: Asks, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, Moments]:
        found = self._public if ground.sees_features else self._private
        moments = found(curator, ground, counts_multiplier)
        return moments.counts, moments

    def respond(
        self, curator: Asks, ground: GameInstance, told: Any, cell_costs: Floats, rows: float
    ) -> tuple[Rule, Any]:
        if ground.group_aware:
            return self._by_group(ground, told, cell_costs), told
        slopes = np.einsum("cyk,cyj->kj", cell_costs, told.sums)
        weights = told.errors + slopes @ told.lift
        weights[:, 0] += np.einsum("cyk,cy->k", cell_costs, told.counts)
        return LinearRule(weights[:1] - weights[1:2] if ground.outputs == 1 else -weights), told

    def _by_group(self, ground: GameInstance, told: Moments, cell_costs: Floats) -> Rule:
        """The regression of costs on (z, 1[A = a]): the Gram matrix of the two is made of the
        released counts and sums.

        Where records are protected, of errors' costs too: groups differ in how they err at the same
        row. Where features are public, of the constraints' alone, beside the logistic model.
        """
        # a ridge, and the fewest rows of a cell
        least = THIN * float(told.counts.sum()) if ground.is_exact else LEAST_ROWS
        counts = np.maximum(told.counts, 0.0 if ground.is_exact else least)
        sums, sizes, k = told.sums.sum(axis=1), counts.sum(axis=1), len(told.lift)
        rows = float(sizes.sum())
        gram = np.block([[rows * np.eye(k), sums.T], [sums, np.diag(sizes)]])
        gram = gram + least * np.eye(k + len(sizes))
        of_rows = rows * np.einsum("cyk,cyj->jk", cell_costs, told.sums)
        of_groups = rows * np.einsum("cy,cyk->ck", counts, cell_costs)
        if told.means is not None and told.slopes is not None:
            of_groups += counts @ (1.0 - np.eye(ground.classes))
            of_groups -= sizes[:, np.newaxis] * told.means + sums @ told.slopes.T
        solved = np.linalg.solve(gram, np.concatenate([of_rows, of_groups]))
        weights, offsets = told.errors + solved[:k].T @ told.lift, solved[k:]
        assert ground.cells is not None
        if ground.outputs > 1:
            return GroupedRule(-weights, -offsets, ground.cells)
        apart = offsets[:, :1] - offsets[:, 1:2]
        return GroupedRule(weights[:1] - weights[1:2], apart, ground.cells)

    def _public(self, curator: Asks, ground: GameInstance, counts_multiplier: float) -> Moments:
        """Features and labels are public and exact: z is clipped to a public radius."""
        gram, sums = exact_moments(curator)
        whole = principal(gram, ground.layout.width)
        if not len(whole):  # features that tell no rows apart: a coordinate that is always 0
            whole = np.zeros((1, 1 + ground.layout.width))
        # Features and labels are public: this model reads no group, and is free.
        errors = logistic_errors(curator, ground, whole)
        lift = whole[: self._width(ground, float(sums[:, 0].min()))]
        clip = None if ground.is_exact else LENGTH * math.sqrt(len(lift))
        # In a basis in which rows are about equally long: the clip then bounds noise without
        # cutting much.
        asked = FeatureSums(ground.cells, clip=clip, by_label=ground.by_label, basis=lift)
        measurements = [
            Measurement(ground.counts, counts_multiplier),
            Measurement(asked, self.multiplier),
        ]
        answer, by_cell = ground.joint(curator, measurements, "counts and sums of the cells")
        counts = ground.table(answer)
        by_cell = by_cell.reshape(*counts.shape, len(lift))
        if not ground.is_exact:
            # A person moves S by sqrt(2) times the longest z, in each cell that a row is in.
            noise = self.multiplier * math.sqrt(2.0 * asked.per_row) * float(clip or 0.0)
            noise *= ground.heaviest or 1.0
            floor = ground.floor(counts_multiplier)
            by_cell = shrunk(by_cell, counts, ground, noise**2 * len(lift), floor)
        return Moments(errors, lift, by_cell, counts)

    def _width(self, ground: GameInstance, least: float) -> int:
        if self.width is not None or ground.is_exact:
            return self.width or ground.layout.width
        noise = LENGTH * max(self.multiplier, 1e-9) * (ground.heaviest or 1.0)
        return max(2, int(CROWD * (least / ground.groups) / noise))

    def _private(self, curator: Asks, ground: GameInstance, counts_multiplier: float) -> Moments:
        """Records are protected: Gram matrix, sums and counts are one joint release on clipped
        rows."""
        layout = ground.layout
        clip = self.clip or math.sqrt(1.0 + layout.numbers + len(layout.code_sizes))
        of_gram = Measurement(GramMatrices(None, clip), self.multiplier)
        of_sums = Measurement(FeatureSums(ground.cells, clip, by_label=True), self.multiplier)
        measurements = [Measurement(ground.counts, counts_multiplier), of_gram, of_sums]
        purpose = "counts, Gram matrix and sums of the cells"
        answer, gram, sums = curator.answer(measurements, purpose=purpose)
        counts = ground.table(answer)
        sums = sums.reshape(*counts.shape, -1)
        entry, coordinate = (
            one.multiplier * ground.move(one.question) for one in (of_gram, of_sums)
        )
        lift = principal(gram[0], layout.width, entry * math.sqrt(2.0 * gram.shape[-1]))
        by_cell = sums @ lift.T
        each = ground.per_row
        errors = _whitened_errors(by_cell.sum(axis=0) / each, counts.sum(axis=0) / each, lift)
        noise = coordinate**2 * float((lift**2).sum())
        by_cell = shrunk(by_cell, counts, ground, noise, ground.floor(counts_multiplier))
        second = gram[0] / max(float(gram[0, 0, 0]), LEAST)
        return Moments(errors, lift, by_cell, counts, errors @ second[0], errors @ second @ lift.T)


def exact_moments(curator: Asks) -> tuple[Floats, Floats]:
    """Where features and labels are public: the rows' Gram matrix, and their sums by label."""
    gram, sums = curator.answer(
        [(GramMatrices(None), 0.0), (FeatureSums(None, by_label=True), 0.0)]
    )
    return gram[0], sums.reshape(-1, sums.shape[-1])


def _centred(gram: Floats) -> tuple[float, Floats, Floats]:
    """The number of rows of a Gram matrix, their mean, and their covariance."""
    rows = max(float(gram[0, 0]), LEAST)
    mean = gram[0, 1:] / rows
    return rows, mean, gram[1:, 1:] / rows - np.outer(mean, mean)


def principal(gram: Floats, most: int, noise: float = 0.0) -> Floats:
    """L, (k, 1 + width): z = L (1, x) has mean 0 and identity second moment over the rows of this
    Gram matrix.

    The first `most` principal components, of columns divided by their deviations where the matrix
    is exact. With `noise` (a bound on the spectral norm of the matrix's noise) of the columns as
    they are, and only where they exceed it.
    """
    rows, mean, spread = _centred(gram)
    units = np.ones(len(mean))
    if noise == 0:
        deviations = np.sqrt(np.maximum(np.diag(spread), 0.0))
        units = np.where(deviations > LEAST, 1.0 / np.maximum(deviations, LEAST), 0.0)
    values, vectors = np.linalg.eigh(spread * np.outer(units, units))
    kept = np.argsort(values)[::-1][:most]
    if len(kept):
        kept = kept[values[kept] > max(THIN * values[kept[0]], noise / rows, LEAST)]
    lines = (vectors[:, kept] / np.sqrt(values[kept])).T * units
    return np.ascontiguousarray(np.column_stack([-lines @ mean, lines]))


def logistic_errors(curator: Asks, ground: GameInstance, lift: Floats) -> Floats:
    """What error is predicted for each class, (classes, 1 + width): the logistic regression's, to
    first order at even odds.

    With scores s of a softmax, P(Y != k) = 1 - 1/K - (s_k - mean s)/K + ...: for two classes the
    cheaper one is the logistic model's, where least squares would be another. Exact and free where
    features and labels are public: L-BFGS on the rows' exact gradients, in whitened coordinates.
    """
    basis = np.concatenate([np.eye(1, lift.shape[1]), lift])
    shape = (ground.outputs, len(basis))

    def loss(flat: Floats) -> tuple[float, Floats]:
        v = flat.reshape(shape)
        model = Linear(v @ basis)
        questions = GradientSum(model, None), GroupLosses(model, None, "log", clip=None), RowCount()
        gradient, losses, count = curator.answer([(question, 0.0) for question in questions])
        rows = max(float(count[0]), LEAST)
        value = float(losses[0]) / rows + 0.5 * SMOOTH * float((v[:, 1:] ** 2).sum())
        slope = gradient @ basis.T / rows
        slope[:, 1:] += SMOOTH * v[:, 1:]
        return value, slope.ravel()

    start = np.zeros(math.prod(shape))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    scores = found.x.reshape(shape) @ basis
    if ground.outputs == 1:
        scores = np.concatenate([np.zeros_like(scores), scores])
    errors = -(scores - scores.mean(axis=0)) / ground.classes
    errors[:, 0] += 1.0 - 1.0 / ground.classes
    return np.asarray(errors)


def regressed_errors(gram: Floats, sums: Floats) -> Floats:
    """The ridge regression of 1[Y != k] on rows, (classes, 1 + width), from exact sums by label."""
    rows, mean, spread = _centred(gram)
    ridge = RIDGE * np.diag(spread) + LEAST
    shares = sums[:, 0] / rows
    together = -(sums[:, 1:] / rows - np.outer(shares, mean)).T
    slopes = np.linalg.solve(spread + np.diag(ridge), together).T
    return np.column_stack([1.0 - shares - slopes @ mean, slopes])


def _whitened_errors(sums: Floats, counts: Floats, lift: Floats) -> Floats:
    """The same from sums of whitened rows by label, (classes, k), with noise; L leaves out what is
    noise alone."""
    rows = max(float(counts.sum()), LEAST)
    shares = np.clip(counts / rows, 0.0, 1.0)
    slopes = -(sums / rows - np.outer(shares, sums.sum(axis=0) / rows)) @ lift
    slopes[:, 0] += 1.0 - shares
    return np.asarray(slopes)


def shrunk(
    sums: Floats, counts: Floats, ground: GameInstance, noise: float, floor: float
) -> Floats:
    """Sums by (cell, label): what a cell's mean differs by from the mean of its label, D, is
    multiplied by the positive part of 1 - trace(noise covariance) / |D|^2 (James and Stein).
    `noise`: that trace, of a sum."""
    # what putting sums onto totals leaves of it
    share = (1.0 - ground.per_row / ground.groups) if ground.sees_features else 1.0
    sizes = np.maximum(counts, floor)[..., np.newaxis]
    centres = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), floor)[:, np.newaxis]
    apart = sums / sizes - centres
    squares = (apart**2).sum(axis=-1, keepdims=True)
    kept = np.maximum(0.0, 1.0 - share * noise / sizes**2 / np.maximum(squares, LEAST**2))
    return np.asarray(sizes * (centres + kept * apart))


# -- search on public rows -----------------------------------------------------------------------


def memberships(
    rows: Floats,
    labels: Ints,
    weights: Floats,
    means: Floats,
    counts: Floats,
    cells: Cells,
    noise: float,
) -> Floats:
    """P(group = a | row), (rows, cells), from released sums: post-processing.

    The multinomial logistic regression of the group on z = (1, z_1 .. z_k) has the score equations
    sum_i P(group = a | z_i) z_i = S_a, and reads the groups through the sums S alone. It maximises

        sum_a theta_a . S_a  -  sum_i ln sum_a exp(theta_a . z_i)  -  ridge / 2 |theta|^2,

    in which noise in S is a linear term; a ridge of its size keeps the answer finite (as in
    objective perturbation). For each label apart, where sums were released so, and for each
    sensitive column apart, where groups are marginal.

    `rows` (rows, k) without the 1; `means` (cells, labels or 1, k) of rows and `counts` (cells,
    labels or 1), released; `noise`: the standard deviation of one number of the cells' sums.
    """
    out = np.zeros((len(rows), cells.count))
    design = np.column_stack([np.ones(len(rows)), rows])
    for label in range(counts.shape[1]):
        at = np.flatnonzero(labels == label) if counts.shape[1] > 1 else np.arange(len(rows))
        if not len(at):
            continue
        whole = float(weights[at].sum())
        for column in columns_of(cells):
            sizes = np.maximum(counts[column, label], 1.0)
            sizes = sizes * whole / sizes.sum()
            wanted = np.column_stack([sizes, means[column, label] * sizes[:, np.newaxis]])
            thinner = whole / max(float(np.maximum(counts[column, label], 0.0).sum()), LEAST)
            ridge = 1.0 + noise * min(1.0, thinner)
            out[at, column] = _fitted(design[at], weights[at], wanted, ridge)
    return out


def _fitted(design: Floats, weights: Floats, wanted: Floats, ridge: float) -> Floats:
    """P(a | row) whose weighted sums of rows are `wanted` (groups, 1 + k), about."""
    groups, width = wanted.shape
    if groups == 1:
        return np.ones((len(design), 1))
    scale = max(float(weights.sum()), LEAST)

    def falls(flat: Floats) -> tuple[float, Floats]:
        theta = flat.reshape(groups, width)
        scores = design @ theta.T
        level = logsumexp(scores, axis=1)
        chances = np.exp(scores - level[:, np.newaxis])
        slopes = theta[:, 1:]
        penalty = 0.5 * ridge * float((slopes**2).sum())
        value = float(weights @ level) - float((theta * wanted).sum()) + penalty
        gradient = (chances * weights[:, np.newaxis]).T @ design - wanted
        gradient[:, 1:] += ridge * slopes
        return value / scale, gradient.ravel() / scale

    options: Any = {"maxiter": MEMBER_STEPS}
    start = np.zeros((groups, width))
    start[:, 0] = np.log(wanted[:, 0] / wanted[:, 0].sum())
    found = minimize(falls, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    scores = design @ found.x.reshape(groups, width).T
    return np.asarray(np.exp(scores - logsumexp(scores, axis=1)[:, np.newaxis]))


def kept_of_bias(found: Floats, variance: Floats) -> Floats:
    """Mean differences between what was counted and what was foretold, times (variance of biases) /
    (that + their noise's).

    Empirical Bayes: the variance is estimated from all of them, each weighed by its precision. So a
    cell of few rows is taken to be like all others, unless it is clear that it is not.
    """
    weights = np.broadcast_to((variance.min() / variance) ** 2, found.shape)
    spread = max(0.0, float((weights * (found**2 - variance)).sum() / weights.sum()))
    return np.asarray(found * spread / (spread + variance))


@dataclass(frozen=True, eq=False)
class Atom:
    """A rule, its expected histogram (cells, labels or 1, classes) and error. `certain`: a
    constant, which is in the counts."""

    rule: Rule
    table: Floats
    error: float
    certain: bool = False


@dataclass(eq=False)
class ResponseState:
    """What is carried from round to round: released values and public rows. `off`: the sum over
    rounds of what was counted less what was foretold; `last`: the key of the rule that was
    counted."""

    rows: PublicRows
    starts: tuple[Floats, Floats]
    off: Floats
    atoms: dict[Hashable, Atom] = field(default_factory=dict)
    rounds: int = 0
    free: Hashable = None
    last: Hashable = None

    def meet(self, rule: LinearRule, decided: Ints, table: Floats | None = None) -> None:
        """Put the rule among the atoms; `table`: of a constant, of which it is known."""
        if rule.key not in self.atoms:
            found = self.rows.histogram(decided) if table is None else table
            self.atoms[rule.key] = Atom(rule, found, self.rows.error(decided), table is not None)

    def hear(self, rule: Rule, histogram: Floats) -> None:
        """What the auditor counted, beside what was foretold."""
        self.off = self.off + (histogram - self.atoms[rule.key].table)
        self.rounds, self.last = self.rounds + 1, rule.key

    def values(self, fixed: FixedCounts, noise: Floats) -> Floats:
        """Each atom's value of each constraint, (atoms, constraints); NaN where undefined. `noise`
        of each in one round."""
        tables = np.maximum([atom.table for atom in self.atoms.values()], 0.0)
        floor = None if fixed.floor is None else TINY
        found = fixed.system.exact_values(tables, tables.sum(axis=-1), floor)
        if not self.rounds:
            return found
        known = np.array([atom.certain for atom in self.atoms.values()])
        off = np.nan_to_num(fixed.values(self.off / self.rounds))
        bias = kept_of_bias(off, noise**2 / self.rounds + TINY**2)
        return np.where(known[:, np.newaxis], found, found + bias)

    def last_values(self, fixed: FixedCounts, noise: Floats) -> Floats:
        """Those of the rule that was counted last, with less noise than its own count has."""
        return np.asarray(self.values(fixed, noise)[list(self.atoms).index(self.last)])

    def program(self, fixed: FixedCounts, noise: Floats) -> tuple[Floats, Floats]:
        """The best mixture of the rules met so far: (shares of the atoms, duals)."""
        errors = np.array([atom.error for atom in self.atoms.values()])
        return best_mixture(errors, self.values(fixed, noise), fixed.system.bounds, worth=HARD)

    def prices(self, fixed: FixedCounts, noise: Floats) -> Floats | None:
        """The duals of that program, two rounds of three: what a rule must save to be worth having.
        None: the auditor's."""
        follows = self.rounds < 2 or self.rounds % 3 == 0
        return None if follows else self.program(fixed, noise)[1]

    def settled(self, fixed: FixedCounts, noise: Floats) -> tuple[list[tuple[Rule, int]], Floats]:
        """The mixture, each rule with how many parts of it, and the duals that make it the best."""
        shares, duals = self.program(fixed, noise)
        parts = np.rint(shares * PARTS).astype(int)
        parts[int(np.argmax(parts))] += PARTS - parts.sum()
        rules = [atom.rule for atom in self.atoms.values()]
        return [(rule, int(n)) for rule, n in zip(rules, parts, strict=True) if n > 0], duals


@dataclass(frozen=True, eq=False)
class Responses(Oracle):
    """Several ways to answer a round, all but free, of which the cheapest is played: a few steps
    down the log loss beside a softmax of costs, a few down the log loss of the cheapest class, the
    regression of costs, each with the intercept that costs least, every rule of earlier rounds, and
    the constants. `regression`: what is released once; `most`: numbers of the public table that are
    searched."""

    regression: Regression = field(default_factory=Regression)
    most: int = 1 << 22
    once_share = Regression.once_share
    looks_for_the_least = False
    any_linear = True
    settles = True
    most_rounds = 80

    def at(self, once: float, round_: float) -> Responses:
        return replace(self, regression=self.regression.at(once, round_))

    def require(self, ground: GameInstance) -> None:
        if not ground.sees_features or ground.group_aware:
            remedy = "Pass oracle='regression', or leave oracle=None."
            got = "rules that read the group" if ground.group_aware else "protected records"
            of = "oracle='responses'"
            raise InputError.expected("public features", of=of, got=got, remedy=remedy)

    def prepare(
        self, curator: Asks, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, ResponseState]:
        counts, moments = self.regression.prepare(curator, ground, counts_multiplier)
        table = curator.public_table(ground.cells, most=self.most)
        gram = (table.features * table.weights[:, np.newaxis]).T @ table.features
        basis = np.concatenate([np.eye(1, len(gram)), principal(gram, ground.layout.width)])
        members = table.memberships
        if members is None and ground.cells is None:
            members = np.ones((len(table.labels), 1))
        elif members is None and ground.cells is not None:
            lifted, radius = table.features @ moments.lift.T, math.inf
            if not ground.is_exact:
                radius = LENGTH * math.sqrt(len(moments.lift))
            lengths = np.maximum(np.linalg.norm(lifted, axis=1, keepdims=True), TINY)
            lifted *= np.minimum(1.0, radius / lengths)
            noise = self.regression.multiplier * math.sqrt(2.0 * ground.per_row) * min(radius, 1e9)
            noise *= ground.heaviest or 1.0
            # as `shrunk` has them
            sizes = np.maximum(moments.counts, ground.floor(counts_multiplier))[..., np.newaxis]
            known = moments.sums / sizes, moments.counts, ground.cells
            members = memberships(lifted, table.labels, table.weights, *known, noise)
        assert members is not None
        members = members * (table.weights * table.step)[:, np.newaxis]
        shares = table.weights / max(float(table.weights.sum()), TINY)
        facts = members, shares, ground.classes, ground.by_label
        rows = PublicRows(table.features @ basis.T, basis, table.labels, *facts)
        zeros = np.zeros((len(rows.design), ground.classes))
        start = rows.descended(np.zeros((ground.outputs, len(basis))), zeros, FIRST_STEPS)
        told = ResponseState(rows, (start, start), np.zeros((*counts.shape, ground.classes)))
        for k in range(ground.classes):
            everybody = np.maximum(counts, 0.0)[..., np.newaxis] * np.eye(ground.classes)[k]
            told.meet(constant_rule(ground, k), np.full(len(rows.design), k), everybody)
        free = LinearRule(start @ basis)
        told.meet(free, rows.decided(start))
        told.free = free.key
        return counts, told

    def respond(
        self, curator: Asks, ground: GameInstance, told: Any, cell_costs: Floats, rows: float
    ) -> tuple[Rule, Any]:
        public = told.rows
        pulls = public.costs(cell_costs)
        costs = public.errors() + pulls
        if not ground.has_costs:
            return told.atoms[told.free].rule, told
        soft, hard = told.starts
        if told.rounds % 2 == 0:  # in turn: either costs far more than all the rest of a round
            soft = public.descended(soft, pulls)
        else:
            hard = public.relabelled(hard, costs)
        told.starts = soft, hard
        candidates = [soft, hard, public.regressed(costs)]
        if ground.outputs == 1:
            candidates += [public.cut(v, costs) for v in candidates]
        at = np.arange(len(costs))
        new = min(candidates, key=lambda v: float(costs[at, public.decided(v)].sum()))
        rule = LinearRule(new @ public.basis)
        told.meet(rule, public.decided(new))
        prices = {
            key: atom.error + float((atom.table * cell_costs).sum())
            for key, atom in told.atoms.items()
        }
        best = min(prices, key=lambda key: prices[key])
        if told.atoms[best].certain:  # known already: the best of the others tells more
            best = rule.key
        return told.atoms[best].rule, told


# -- private descent -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Course:
    """Where the descent is: weights and momentum. `rests`: the released number of rows cannot be
    told from none, so that a model would be noise alone: it stays at zero. `free`: the rule that
    knows no constraint; `standard`: see `LinearRule`."""

    weights: Floats
    velocity: Floats
    rests: bool = False
    free: Floats | None = None
    standard: tuple[Floats, Floats] | None = None


@dataclass(frozen=True, eq=False)
class Descent(Oracle):
    """Best responses by private gradient descent: a few steps a round, from where the round before
    ended; from zero in the first.

        min_w  mean loss(w) + sum_k (rows x dL/dH)[cell, label, k] softmax(score)_k

    The log loss stands for the error, the softmax for the decision, as in rate-constrained descent.
    Heuristic: no bound on its regret. Where only sensitive features are protected the loss's
    gradient is exact, and noise is in the costs' part alone.

    *The clip comes first.* A constraint on a small cell costs its rows dual / share, 100 and more,
    and a gradient that is weighed so and then clipped to the clip has lost that pull: rules that
    decide alike for everybody are what is left. So all that is minimised is divided by 1 + `CURVE`
    x the largest cost of a row, `CURVE` the most that a softmax moves with its score; the gradient
    of the costs is then within a row's length. It divides the loss's gradient too, beside which the
    noise grows. So it is never divided further than to `DROWNED` x the noise of an averaged
    gradient.
    """

    steps: int = 5
    clip: float | None = None
    rate: float = 1.0
    momentum: float = 0.9
    multiplier: float = 0.0
    rounds_share = 0.65
    burn_in = 0.3
    looks_for_the_least = False
    any_linear = True

    def at(self, once: float, round_: float) -> Descent:
        return replace(self, multiplier=round_ * math.sqrt(self.steps))

    def prepare(
        self, curator: Asks, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, Course]:
        counts = ground.count(curator, counts_multiplier)
        noise = ground.deviation(ground.counts, counts_multiplier) * math.sqrt(counts.size)
        # Where rows cannot be told from none, a model would follow noise alone.
        rests = ground.public_rows is None and float(counts.sum()) <= CERTAIN * noise
        return counts, Course(ground.zeros, ground.zeros, rests)

    def respond(
        self, curator: Asks, ground: GameInstance, told: Any, cell_costs: Floats, rows: float
    ) -> tuple[Rule, Any]:
        w, v = told.weights, told.velocity
        noise, costs, ease = self._noise(ground, rows), None, 1.0
        if ground.has_costs:
            ease = self._ease(ground, rows * cell_costs, noise)
            costs = ease * (rows * cell_costs)
        # Less where noise, times the length of a row, would walk more than a logit or so.
        length = math.sqrt(1.0 + ground.layout.numbers + len(ground.layout.code_sizes))
        quiet = 0.3 * (1.0 - self.momentum) / (noise * length) if noise else math.inf
        rate = 0.0 if told.rests else min(self.rate, quiet)
        clip = self.clip_of(ground)
        for _ in range(self.steps):
            question = GradientSum(Linear(w), clip, ground.cells, costs, loss_weight=ease)
            asked = Measurement(question, self.multiplier)
            (gradient,) = curator.answer([asked], purpose="a step of the learner")
            # By the released or stated number of rows, never by the true one.
            v = self.momentum * v - rate * gradient / rows
            w = w + v
        return LinearRule(w, told.standard), replace(told, weights=w, velocity=v)

    def clip_of(self, ground: GameInstance) -> float:
        """The longest gradient of a row that counts in full."""
        return self.clip or usual_clip(ground.promise)

    def _noise(self, ground: GameInstance, rows: float) -> float:
        """About the deviation of each number of an averaged gradient."""
        if not ground.promise.is_private:  # and weights have no cap
            return 0.0
        return self.multiplier * self.clip_of(ground) * (ground.max_sample_weight or 1.0) / rows

    def _ease(self, ground: GameInstance, costs: Floats, noise: float) -> float:
        """What loss and costs are multiplied by."""
        heaviest = costs.max(axis=-1) - costs.min(axis=-1)
        # A row has costs in each column, so that the worst of them add up.
        if ground.cells is not None:  # a row is in one cell of each column
            parts = columns_of(ground.cells)
            heaviest = np.sum([heaviest[part].max(axis=0) for part in parts], axis=0)
        return max(1.0 / (1.0 + CURVE * float(heaviest.max())), min(1.0, DROWNED * noise))


@dataclass(frozen=True, eq=False)
class Begun(Descent):
    """The same from where a descent without constraints has ended, which is asked for once: where
    records are protected, what rows look like is most of what there is to learn, and duals move it
    little. That rule knows no constraint, so it is also what a mixture may be compared with.

    It takes `FREE_ROUNDS` rounds, with numbers scaled by their released moments where `scales`
    (they lie in [-1, 1]). Where decisions have no costs, that rule is the answer, and rounds ask
    nothing.
    """

    scales: bool = False
    once: float = 0.0
    once_share = 0.35
    rounds_share = 0.35
    most_rounds = 120
    knows_free = True

    def at(self, once: float, round_: float) -> Begun:
        return replace(self, once=once, multiplier=round_ * math.sqrt(self.steps))

    def prepare(
        self, curator: Asks, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, Course]:
        counts, begun = super().prepare(curator, ground, counts_multiplier)
        search = PrimalDual(self.plan_of(ground)).search()
        found = follow(cast(Any, curator), search, "a step of the model without constraints")
        weights = ground.zeros if begun.rests else in_inner_units(found.weights, found.standard)
        return counts, replace(begun, weights=weights, free=weights, standard=found.standard)

    def respond(
        self, curator: Asks, ground: GameInstance, told: Any, cell_costs: Floats, rows: float
    ) -> tuple[Rule, Any]:
        if ground.has_costs:
            return super().respond(curator, ground, told, cell_costs, rows)
        return self.free_rule(told), told

    def free_rule(self, told: Any) -> Rule:
        return LinearRule(told.free, told.standard)

    def plan_of(self, ground: GameInstance) -> Plan:
        """The descent without constraints, at the multiplier of what is released once."""
        settings = Settings(rounds=FREE_ROUNDS, clip=self.clip, compare_share=0.0)
        scales = self.scales and ground.layout.numbers > 0
        facts = (ground.public_rows, ground.max_sample_weight, scales)
        plan = Plan(ground.promise, ground.layout, settings, None, None, False, *facts)
        counted = COUNTED if plan.counts_rows else 0.0
        scaled = SCALED if scales else 0.0
        return replace(
            plan,
            counts_multiplier=self.once / math.sqrt(counted) if counted else 0.0,
            moments_multiplier=self.once / math.sqrt(scaled) if scaled else 0.0,
            gradient_multiplier=self.once * math.sqrt(FREE_ROUNDS / (1.0 - counted - scaled)),
        )
