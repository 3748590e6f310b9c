"""The oracle of public rows: several ways to answer a round, all but free, and the cheapest is
played.

Features and labels are public (or nothing is promised). Sums of features by cell are released once,
as the regression oracle releases them, and say who may be in which group (`memberships`). What a
decision costs is then a number of each row, and a round is a search on public numbers: a few steps
down the log loss beside a softmax of costs, a few down the log loss of the cheapest class, the
regression of costs, each with the intercept that costs least, every rule of earlier rounds, and the
constants.

Memberships may be wrong. By how much they mislead is the difference between what the auditor counts
and what they foretell, and its mean over the rounds has the noise of *all* audits together:
`Told.bias`. So no rule is taken for a lucky draw of noise, and a bias within its noise is shrunk to
nothing (James and Stein): a cell of few rows is taken to be like all others.

`settle` makes the mixture that is returned: the linear program over all rules that were met, and
the constants,

    minimise error(q)  such that  value_k(q) <= bound_k,

with values foretold. A mixture of the rule without constraints and a constant is among them:
nothing it finds is above that.

Guarantees (tests/learning/test_learning_responses.py):
1. It asks what the regression oracle asks, and nothing in a round; all else is arithmetic on
   answers and public rows.
2. Without noise the mixture errs no more than any mixture of the rules that were met which keeps
   the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog

from ..._types import Floats
from ...core.events import Event
from ...curator import Curator, Measurement
from ...errors import InputError
from ...fairness.systems import FixedCounts
from ..public_rows import PublicRows
from .ground import GameInstance
from .memberships import memberships
from .oracle import LinearRule, Oracle, Rule
from .regression import LENGTH, Regression, principal

TINY = 1e-6  # of a number of rows that divides
FIRST_STEPS = 60  # of the model without constraints
PARTS = 10_000  # in how many parts the mixture is shared among rules
CLOSE = 1e-9
HARD = 1e4  # errors that one unit of excess is worth at the end: bounds come first


@dataclass(frozen=True, eq=False)
class Atom:
    """A rule, its expected histogram (cells, labels or 1, classes) and error. `certain`: a
    constant, which is in the counts."""

    rule: Rule
    table: Floats
    error: float
    certain: bool = False


@dataclass(frozen=True, eq=False)
class ResponseState:
    """What is carried from round to round: released values and public rows. `off`: the sum over
    rounds of what was counted less what was foretold; `noise` of each constraint's value in one
    round."""

    rows: PublicRows
    atoms: dict[Hashable, Atom]
    starts: tuple[Floats, Floats]
    off: Floats
    rounds: int = 0
    free: Hashable = None
    last: list[Hashable] = field(default_factory=list)

    def bias(self, fixed: FixedCounts, noise: Floats) -> Floats:
        """What is added to each foretold value: a mean over rounds, times (variance of biases) /
        (that + its noise's).

        Empirical Bayes: the variance is estimated from all constraints, each weighed by its
        precision.
        """
        if not self.rounds:
            return np.zeros(len(fixed.system))
        found = np.nan_to_num(fixed.values(self.off / self.rounds))
        heard = noise**2 / self.rounds + TINY**2
        weights = (heard.min() / heard) ** 2
        spread = max(0.0, float((weights * (found**2 - heard)).sum() / weights.sum()))
        return np.asarray(found * spread / (spread + heard))

    def values(self, fixed: FixedCounts, noise: Floats) -> Floats:
        """Each atom's value of each constraint, (atoms, constraints); NaN where undefined."""
        tables = np.maximum([atom.table for atom in self.atoms.values()], 0.0)
        found = fixed.system.exact_values(
            tables, tables.sum(axis=-1), None if fixed.floor is None else TINY
        )
        known = np.array([atom.certain for atom in self.atoms.values()])
        return np.where(known[:, np.newaxis], found, found + self.bias(fixed, noise))


@dataclass(frozen=True, eq=False)
class Responses(Oracle[ResponseState]):
    """See the module. `regression`: what is released once; `most`: numbers of the public table that
    are searched."""

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
            raise InputError.expected(
                "public features", of="oracle='responses'", got=got, remedy=remedy
            )

    def first_measurements(
        self, ground: GameInstance, counts_multiplier: float
    ) -> list[Measurement]:
        return self.regression.first_measurements(ground, counts_multiplier)

    def round_events(self, ground: GameInstance) -> list[Event]:
        return []

    def prepare(
        self, curator: Curator, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, ResponseState]:
        counts, moments = self.regression.prepare(curator, ground, counts_multiplier)
        table = curator.public_table(ground.cells, most=self.most)
        total = max(float(table.weights.sum()), TINY)
        gram = (table.features * table.weights[:, np.newaxis]).T @ table.features
        basis = np.concatenate([np.eye(1, len(gram)), principal(gram, ground.layout.width)])
        if table.memberships is not None:
            members = table.memberships
        elif ground.cells is None:
            members = np.ones((len(table.labels), 1))
        else:
            lifted = table.features @ moments.lift.T
            radius = math.inf if ground.is_exact else LENGTH * math.sqrt(len(moments.lift))
            lifted *= np.minimum(
                1.0, radius / np.maximum(np.linalg.norm(lifted, axis=1, keepdims=True), TINY)
            )
            noise = (
                self.regression.multiplier
                * math.sqrt(2.0 * ground.cells.per_row)
                * min(radius, 1e9)
            )
            noise *= ground.heaviest or 1.0
            # as `shrunk` has them
            sizes = np.maximum(moments.counts, ground.floor(counts_multiplier))[..., np.newaxis]
            head = (
                lifted,
                table.labels,
                table.weights,
                moments.sums / sizes,
                moments.counts,
                ground.cells,
            )
            members = memberships(*head, noise)
        members = members * (table.weights * table.step)[:, np.newaxis]
        design = table.features @ basis.T
        rows = PublicRows(
            design,
            basis,
            table.labels,
            members,
            table.weights / total,
            ground.classes,
            ground.by_label,
        )
        start = rows.descended(
            np.zeros((ground.outputs, len(basis))),
            np.zeros((len(design), ground.classes)),
            FIRST_STEPS,
        )
        told = ResponseState(rows, {}, (start, start), np.zeros((*counts.shape, ground.classes)))
        for k in range(ground.classes):
            everybody = np.maximum(counts, 0.0)[..., np.newaxis] * np.eye(ground.classes)[k]
            told = _met(told, _constant(ground, k), np.full(len(design), k), everybody)
        free = _linear(rows, start)
        return counts, replace(_met(told, free, rows.decided(start)), free=free.key)

    def respond(
        self,
        curator: Curator,
        ground: GameInstance,
        prepared: ResponseState,
        cell_costs: Floats,
        rows: float,
    ) -> tuple[Rule, ResponseState]:
        public = prepared.rows
        pulls = public.costs(cell_costs)
        costs = public.errors() + pulls
        if not ground.has_costs:
            return prepared.atoms[prepared.free].rule, prepared
        soft, hard = prepared.starts
        if prepared.rounds % 2 == 0:  # in turn: either costs far more than all the rest of a round
            soft = public.descended(soft, pulls)
        else:
            hard = public.relabelled(hard, costs)
        starts = (soft, hard)
        candidates = [*starts, public.regressed(costs)]
        if ground.outputs == 1:
            candidates += [public.cut(v, costs) for v in candidates]
        at = np.arange(len(costs))
        new = min(candidates, key=lambda v: float(costs[at, public.decided(v)].sum()))
        rule = _linear(public, new)
        told = replace(_met(prepared, rule, public.decided(new)), starts=starts)
        prices = {
            key: atom.error + float((atom.table * cell_costs).sum())
            for key, atom in told.atoms.items()
        }
        best = min(prices, key=lambda key: prices[key])
        if told.atoms[best].certain:  # known already: the best of the others tells more
            best = rule.key
        return told.atoms[best].rule, told

    def heard(self, prepared: ResponseState, rule: Rule, histogram: Floats) -> ResponseState:
        """What the auditor counted, beside what was foretold."""
        off = histogram - prepared.atoms[rule.key].table
        return replace(
            prepared, off=prepared.off + off, rounds=prepared.rounds + 1, last=[rule.key]
        )

    def expected(self, prepared: ResponseState, fixed: FixedCounts, noise: Floats) -> Floats | None:
        at = list(prepared.atoms).index(prepared.last[0])
        return np.asarray(prepared.values(fixed, noise)[at])

    def prices(self, prepared: ResponseState, fixed: FixedCounts, noise: Floats) -> Floats | None:
        """The duals of the program over the rules met so far: what a rule must save to be worth
        having."""
        if prepared.rounds < 2 or prepared.rounds % 3 == 0:
            return None
        return _program(prepared, fixed, noise)[1]

    def settle(
        self, prepared: ResponseState, fixed: FixedCounts, noise: Floats
    ) -> tuple[list[tuple[Rule, int]], Floats]:
        shares, duals = _program(prepared, fixed, noise)
        parts = np.rint(shares * PARTS).astype(int)
        parts[int(np.argmax(parts))] += PARTS - parts.sum()
        return [
            (a.rule, int(p)) for a, p in zip(prepared.atoms.values(), parts, strict=True) if p > 0
        ], duals


def _met(
    told: ResponseState,
    rule: LinearRule,
    decided: npt.NDArray[np.intp],
    table: Floats | None = None,
) -> ResponseState:
    """The rule among the atoms; `table`: of a constant, of which it is known."""
    if rule.key in told.atoms:
        return told
    public = told.rows
    found = public.histogram(decided) if table is None else table
    return replace(
        told,
        atoms=told.atoms | {rule.key: Atom(rule, found, public.error(decided), table is not None)},
    )


def _linear(public: PublicRows, v: Floats) -> LinearRule:
    """v as a rule of coded rows."""
    return LinearRule(v @ public.basis)


def _constant(ground: GameInstance, k: int) -> LinearRule:
    """The class k for everybody."""
    weights = np.zeros((ground.outputs, 1 + ground.layout.width))
    if ground.outputs == 1:
        weights[0, 0] = 1.0 if k else -1.0
    else:
        weights[k, 0] = 1.0
    return LinearRule(weights)


def _program(told: ResponseState, fixed: FixedCounts, noise: Floats) -> tuple[Floats, Floats]:
    """(shares of the atoms, duals of the constraints)."""
    values = told.values(fixed, noise)
    errors = np.array([atom.error for atom in told.atoms.values()])
    bounds = fixed.system.bounds
    kept = np.flatnonzero(np.isfinite(values).all(axis=0) & np.isfinite(bounds))
    m = len(errors)
    lines = np.column_stack([values[:, kept].T - bounds[kept, np.newaxis], -np.ones(len(kept))])
    some: Any = {"A_ub": sparse.csr_array(lines), "b_ub": np.zeros(len(kept))} if len(kept) else {}
    together = np.append(np.ones(m), 0.0)[np.newaxis]
    found: Any = linprog(
        np.append(errors, HARD),
        A_eq=together,
        b_eq=[1.0],
        bounds=(0.0, None),
        method="highs",
        **some,
    )
    duals = np.zeros(len(bounds))
    if not found.success:
        return np.eye(m)[int(np.argmin(errors))], duals
    if len(kept):
        duals[kept] = np.maximum(-found.ineqlin.marginals, 0.0)
    shares = np.clip(found.x[:m], 0.0, 1.0)
    return shares / shares.sum(), duals
