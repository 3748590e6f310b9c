"""Models from soft memberships: many candidates, of which a linear program mixes the best for any
bound. No row is asked about.

Candidates of the linear model lie on a path of growing penalty mu, each started at the one before
(L-BFGS):

    mean log loss + mu sum_j max(0, value_j - b_j)^2,    b_j = 0 for a difference of rates, else its bound,

with values of softened decisions, sharpened by `SHARP`. Candidates of any other learner come from
exponentiated gradient (Agarwal et al. 2018) on the same memberships. Each candidate's error and
expected histogram are numbers of public rows, so

    minimise   error(Q)   over mixtures Q of candidates    such that   value_j(Q) <= bound_j

is a small linear program; a frontier is one program a bound. Everything is post-processing of one
release.

Guarantees (tests/learning/test_learning_soft_search.py):
1. The mixture keeps every bound at the released memberships, where any mixture of the candidates
   does, and none errs less.
2. Groups enter through the memberships alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.special import expit, softmax

from ..._types import Floats
from ...fairness import ConstraintSystem
from ...fairness.systems import FixedCounts
from ..public_rows import PublicRows, log_losses

Ints = npt.NDArray[np.intp]
SHARP = 2.0
PENALTIES = tuple(np.geomspace(0.1, 100.0, 9).tolist())
FIRST_STEPS, STEPS = 100, 50
SHIFTS = (-0.6, -0.3, 0.3, 0.6)  # of the intercept: other cuts of the same score, two classes
SPEED, LARGEST_DUAL = 6.0, 10.0
EXCESS = 10.0  # errors that one unit of excess is worth: bounds come first
SMALL = 1e-9


@dataclass(frozen=True, eq=False)
class Soft:
    """Public rows with memberships (`rows.members`), and constraints at their counts."""

    rows: PublicRows
    system: ConstraintSystem
    fixed: FixedCounts

    @staticmethod
    def of(rows: PublicRows, system: ConstraintSystem) -> Soft:
        """Counts of each cell and label are sums of memberships; at least a part of a row."""
        counts = np.stack(
            [rows.members[rows.labels == label].sum(axis=0) for label in range(rows.classes)],
            axis=1,
        )
        return Soft(rows, system, system.at(counts, 0.5))

    def histogram(self, law: Floats) -> Floats:
        """Of decisions with probabilities (rows, classes): (cells, labels, classes)."""
        parts = [
            self.rows.members[at].T @ law[at]
            for at in (self.rows.labels == k for k in range(self.rows.classes))
        ]
        return np.stack(parts, axis=1)

    def error(self, law: Floats) -> float:
        """The share of rows decided wrong."""
        return float(self.rows.weights @ (1.0 - law[np.arange(len(law)), self.rows.labels]))

    def values(self, law: Floats) -> Floats:
        """Each constraint's value."""
        return self.fixed.values(self.histogram(law))

    def costs(self, duals: Floats) -> Floats:
        """What each decision costs, (rows, classes): its error, and what the duals say."""
        return self.rows.errors() + self.rows.costs(self.fixed.cell_costs(duals))

    @property
    def aims(self) -> Floats:
        """What the path drives values to: 0 for differences of rates, whose coefficients sum to
        0."""
        sums = np.asarray(self.system.coefficients.sum(axis=1)).ravel()
        return np.where(np.abs(sums) < SMALL, 0.0, self.system.bounds)


@dataclass(frozen=True, eq=False)
class Candidates:
    """What each candidate does: `errors` (candidates,), `values` (candidates, constraints) at the
    memberships."""

    errors: Floats
    values: Floats

    @staticmethod
    def of(soft: Soft, laws: Sequence[Floats]) -> Candidates:
        """Of their probabilities of decisions about the public rows."""
        return Candidates(
            np.array([soft.error(law) for law in laws]),
            np.array([soft.values(law) for law in laws]),
        )

    def mixture(self, bounds: Floats) -> tuple[Floats, float]:
        """The best shares (candidates,), and by how much the most broken bound had to give."""
        count, limits = self.values.shape
        if not limits:
            return np.eye(count)[int(self.errors.argmin())], 0.0
        lines: Any = np.column_stack([self.values.T, -np.ones(limits)])
        whole = np.append(np.ones(count), 0.0)[np.newaxis]
        found: Any = linprog(
            np.append(self.errors, EXCESS), A_ub=lines, b_ub=bounds, A_eq=whole, b_eq=[1.0]
        )
        shares = np.maximum(found.x[:-1], 0.0)
        shares[shares < 1e-6] = 0.0
        return shares / shares.sum(), max(0.0, float(found.x[-1]))

    def single(self, bounds: Floats) -> tuple[Floats, float]:
        """The same with one candidate alone: that of the least error among those that keep the
        bounds best."""
        excess = np.maximum(self.values - bounds, 0.0).max(axis=1, initial=0.0)
        j = int(np.lexsort((self.errors, np.where(excess <= SMALL, 0.0, excess)))[0])
        return np.eye(len(excess))[j], float(excess[j])


def path(soft: Soft) -> list[Floats]:
    """Linear models (outputs, k) in whitened coordinates, from the one without constraints to the
    most constrained."""
    rows = soft.rows
    zeros = np.zeros((rows.classes, rows.classes))[rows.labels]
    free = rows.descended(np.zeros((rows.outputs, rows.design.shape[1])), zeros, FIRST_STEPS)
    out = [free]
    if len(soft.system):
        for penalty in PENALTIES:
            out.append(rows.down(out[-1], _penalised(soft, penalty), STEPS))
    if rows.outputs == 1:
        intercept = np.eye(1, rows.design.shape[1])
        out += [v + shift * intercept for v in out for shift in SHIFTS]
    return out


def _penalised(soft: Soft, penalty: float) -> Callable[[Floats], tuple[float, Floats]]:
    rows, fixed, aims = soft.rows, soft.fixed, soft.aims

    def loss(scores: Floats) -> tuple[float, Floats]:
        value, slopes = log_losses(scores, rows.labels, rows.weights)
        if rows.outputs == 1:
            second = expit(SHARP * scores[:, 0])
            q = np.column_stack([1.0 - second, second])
        else:
            q = softmax(SHARP * scores, axis=1)
        excess = np.maximum(fixed.values(soft.histogram(q)) - aims, 0.0)
        pulls = rows.costs(fixed.cell_costs(2.0 * penalty * excess))
        pulled = SHARP * q * (pulls - (q * pulls).sum(axis=1, keepdims=True))
        return value + penalty * float(excess @ excess), slopes + (
            pulled[:, 1:] if rows.outputs == 1 else pulled
        )

    return loss


def reduced(
    soft: Soft,
    bounds: Floats,
    fit: Callable[[Ints, Floats], Any],
    decide: Callable[[Any], Ints],
    rounds: int,
) -> list[tuple[Any, Floats]]:
    """Rules and their decisions (rows, classes), by exponentiated gradient on the duals.
    `fit(targets, weights)`: a rule that is taught the cheapest class of each row, which weighs what
    it saves. The first knows no constraint."""
    rows = soft.rows
    count = len(rows.labels)
    eye = np.eye(rows.classes)
    first = fit(rows.labels, np.ones(count))
    out = [(first, eye[decide(first)])]
    logs = np.zeros(len(soft.system))
    for step in range(rounds if len(logs) else 0):
        excess = soft.values(out[-1][1]) - bounds
        logs = logs + SPEED / np.sqrt(1.0 + step) * excess
        peak = max(0.0, float(logs.max()))
        duals = LARGEST_DUAL * np.exp(logs - peak) / (np.exp(-peak) + np.exp(logs - peak).sum())
        costs = soft.costs(duals)
        targets, saved = costs.argmin(axis=1), costs.max(axis=1) - costs.min(axis=1)
        if len(np.unique(targets)) == 1:
            out.append((int(targets[0]), eye[targets]))
            continue
        rule = fit(targets, saved * count)
        out.append((rule, eye[decide(rule)]))
    return out


def constants(soft: Soft) -> list[tuple[int, Floats]]:
    """One class for everybody."""
    eye = np.eye(soft.rows.classes)
    return [
        (k, np.broadcast_to(eye[k], (len(soft.rows.labels), soft.rows.classes)))
        for k in range(soft.rows.classes)
    ]
