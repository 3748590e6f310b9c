"""How many rows to collect before a private constrained group objective can be promised to within
alpha: what the theorems of Alabi's paper on reductions ask for, with our constants.

>>> plan = plan_sample_size(0.1, groups=4, candidates=100)
>>> [line["rows"] for line in plan.table() if line["theorem"] == "Theorem 5.2"]
[3154]

The theorems say what *suffices* whatever the data are; with data as they come far fewer rows mostly
do (benchmarks/results/group_objectives.md). Between upper and lower bounds nothing is known.

Losses l = S / n are K numbers, averages of contributions in [0, 1] of which a row makes r not 0. f and
g are L_f- and L_g-Lipschitz (L2), h = f + G max(0, g), and alpha for h is alpha for f and for g with
(Corollary 4.2)

    a = sqrt(min(2 r, K))      n |l(D) - l(D')|, a row replaced; sqrt(r), a row added or removed
    d = sqrt(min(2 r, K))      the diameter of where l lies
    G = 1 + L_f d / alpha,     B = L_f + G L_g, h's Lipschitz constant

theta is the chance of failure. All bounds hold for any data in which a feasible decision exists.

**Exponential mechanism** (Theorem 5.2). Scores h have a range of at most R = 2 B a / n between
neighbours, so exp(-epsilon h / R) is epsilon-private, and its excess is R / epsilon times a number that
exceeds Q with chance theta at most:

- finite list C: Q = ln(|C| / theta): each of at most |C| bad decisions has at most e^(-Q) of the best
  one's weight.
- VC dimension v: the same with Sauer's ln|C| <= v ln(e n / v). The labellings of the features are the
  range, so this holds where the sensitive features alone are protected.
- convex set in R^P, h convex in the decision, uniform base measure: Q is the upper theta-quantile of
  Gamma(P). Proof: V(y), the volume of decisions whose excess is below y R / epsilon, shrinks towards the
  best decision no faster than y^P, so V(y) / y^P does not rise. With W = V / (V(y) y^-P), the odds of an
  excess above y are int_y^inf e^-s (W(s) - W(y)) ds / (int_0^y e^-s W(s) ds + e^-y W(y)); W <= s^P above
  y and W >= s^P below make them at most those of W = s^P, which is Gamma(P).

**One linear oracle** (Theorem 5.10): the same with w l in place of h, to within tau |w|: R = 2 a / n |w|.

**Oracle calls** (Theorem 5.5). Frank-Wolfe on h's Moreau envelope, of smoothness 1/mu, below h by at most
mu B^2 / 2: within 2 d^2 / (mu (T + 1)) of the least after T exact calls; the best mu gives 2 B d /
sqrt(T + 1) <= alpha. `Differs:` the paper says K^4 / alpha^2; its proof asks for K^4 / alpha^4, and
Corollary 5.11 inherits alpha^-3 for what is alpha^-4.

**The loop** (Corollary 5.11 for the mechanism as corrected): T rounds, each a private oracle call for a
released w and a release of the decision's losses with Gaussian noise. Frank-Wolfe's proof, with w_t off
by at most |e_t| / mu, gives an excess of at most

    mu B^2 / 2 + 2 d^2 / (mu (T + 1)) + sum_t p_t (tau_t + d |e_t| / mu),     p_t = 2 (t + 1) / (T (T + 1)), which sum to 1.

- e_t has variance s^2 2 (2 t + 1) / (3 t (t + 1)) <= 4 s^2 / (3 t) a coordinate; so sum p_t |e_t|, a
  Lipschitz function of all noise, is at most s c (sqrt(K) + sqrt(2 ln(2 / theta))) but for theta / 2,
  c = 8 (T + 3) / (3 sqrt(3 T) (T + 1)).
- tau_t is R_t / epsilon_0 times (q + Gamma(m)) given the past (list and VC: q = ln|C|, m = 1; convex: q =
  0, m = P). As -ln(1 - x) <= x + x^2 for x <= 1/2, the mean is at most q + m (1 + 4 y / (3 T)) + ln(2 /
  theta) / y but for theta / 2, y <= (T + 1) / 4.
- T rounds cost T (epsilon_0^2 / 8 + a^2 / (2 s^2 n^2)) of zero-concentrated privacy, priced for (epsilon,
  delta) by the library's own accountant. mu, T and the share of the oracle ask for the fewest rows.

Guarantees (tests/study/test_study_sample_size.py):
1. On small problems the mechanisms' exact probabilities of an excess above alpha are at most theta with
   as many rows.
2. Fewer rows for a larger alpha, epsilon and theta; more for more groups, decisions, slopes. Orders in
   1/alpha and K are those said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import gammainccinv

from .. import _checks
from .._types import Floats
from ..core.events import ZeroConcentrated
from ..core.promise import NEIGHBOURS
from ..errors import InputError
from ..facts import Cells
from ..privacy import Promise, calibrate
from ..show.parts import Column, Note, Part, Shown, Table

UPPER = "upper bound, constants ours"
LOWER = "lower bound, order only: constant 1"
PARTS = np.linspace(0.05, 0.95, 61)
WORDS = {
    "candidates": "a list of {:,} decisions",
    "dimension": "a convex set in {} dimensions",
    "vc": "VC dimension {}",
}


@dataclass(frozen=True)
class Decisions:
    """What is chosen from, `size` of a `kind` of `WORDS`: its excess is R / epsilon times at most
    `level` + Gamma(`shape`)."""

    kind: str
    size: int

    @property
    def shape(self) -> int:
        """The m of Gamma(m)."""
        return self.size if self.kind == "dimension" else 1

    def level(self, rows: float) -> float:
        """The q before it; of a VC dimension Sauer's lemma."""
        if self.kind == "dimension":
            return 0.0
        if self.kind == "candidates":
            return math.log(self.size)
        sauer = self.size * (1.0 + math.log(rows / self.size)) if rows > self.size else math.inf
        return min(rows * math.log(2.0), sauer)

    def quantile(self, rows: float, chance: float) -> float:
        """Q: what is exceeded with that chance at most."""
        return self.level(rows) + float(gammainccinv(self.shape, chance))

    def mean(self, rows: float, calls: Floats, chance: float) -> Floats:
        """What the mean over calls, weighted as above, exceeds with that chance at most."""
        away, m = math.log(1.0 / chance), self.shape
        y = np.minimum(np.sqrt(3.0 * calls * away / (4.0 * m)), (calls + 1.0) / 4.0)
        return np.asarray(self.level(rows) + m * (1.0 + 4.0 * y / (3.0 * calls)) + away / y)


@dataclass(frozen=True)
class SampleSizePlan(Shown):
    """What `plan_sample_size` found, with what it was asked. `lines`: theorem, what it is about, which
    bound, rows and oracle calls (None where it is not about them)."""

    alpha: float
    epsilon: float
    delta: float
    failure: float
    groups: int
    rows_in: int
    neighbours: str
    lipschitz: tuple[float, float]
    lines: tuple[tuple[str, str, str, int | None, int | None], ...] = ()

    @property
    def diameter(self) -> float:
        """d: of where l lies."""
        return math.sqrt(min(2 * self.rows_in, self.groups))

    @property
    def moved(self) -> float:
        """a: how far n l moves between neighbours."""
        return math.sqrt(self.rows_in) if self.neighbours == "add-remove" else self.diameter

    @property
    def penalty(self) -> float:
        """G of Corollary 4.2."""
        return 1.0 + self.lipschitz[0] * self.diameter / self.alpha

    @property
    def steepness(self) -> float:
        """B: h's Lipschitz constant."""
        return self.lipschitz[0] + self.penalty * self.lipschitz[1]

    def table(self) -> list[dict[str, Any]]:
        """One mapping of plain values for each theorem."""
        names = ("theorem", "about", "bound", "rows", "calls")
        return [dict(zip(names, line, strict=True)) for line in self.lines]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "penalty": self.penalty, "lines": self.table()}

    def parts(self) -> Iterator[Part]:
        """What was asked, and a line a theorem."""
        yield Note(
            f"Within alpha {self.alpha:g} of the best f, g at most alpha, but for a chance of "
            f"{self.failure:g}: epsilon {self.epsilon:g}, delta {self.delta:g}, {self.neighbours}; "
            f"K = {self.groups}, each row in {self.rows_in}; Lipschitz constants "
            f"{self.lipschitz[0]:g} and {self.lipschitz[1]:g}, G = {self.penalty:.4g}."
        )
        theorem, about, bound, rows, calls = zip(*self.lines, strict=True)
        counts = [
            Column(name, values, "count", missing="-")
            for name, values in (("rows", rows), ("oracle calls", calls))
        ]
        yield Table(
            (Column("theorem", theorem), Column("about", about), *counts, Column("bound", bound))
        )


def plan_sample_size(
    alpha: float,
    *,
    groups: int | Cells,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    candidates: int | None = None,
    dimension: int | None = None,
    vc: int | None = None,
    failure: float = 0.1,
    rows_in: int | None = None,
    neighbours: str = "replace-one",
    lipschitz: Sequence[float] = (1.0, 1.0),
) -> SampleSizePlan:
    """How many rows the theorems on min f subject to g <= 0 need, and the lower bounds.

    Parameters
    ----------
    alpha : float
        How far f may be above the best feasible decision's, and g above 0.
    groups : int or Cells
        K, how many group losses there are; for frequencies of decisions cells x labels x classes.
    epsilon : float, default=1.0
        Privacy budget.
    delta : float, default=1e-6
        Slack that is added to the epsilon bound: one row changes the probability of any results by
        a factor of at most e^epsilon, plus delta. The exponential mechanism spends no delta.
    candidates : int, default=None
        Number of decisions in a finite list. None: no finite list.
    dimension : int, default=None
        Dimension P of a convex set of decisions, with losses that are convex and f and g
        non-decreasing. None: no such set.
    vc : int, default=None
        VC dimension of a class of decisions, where sensitive features alone are protected. None: no
        such class.
    failure : float, default=0.1
        Probability with which the result may be further off.
    rows_in : int, default=None
        Number of groups that each row is in. None: 1, or one a sensitive column of `Cells`. The
        paper counts K.
    neighbours : {"replace-one", "add-remove"}, default="replace-one"
        Adjacency relation. For ``"add-remove"`` n is a public scale.
    lipschitz : pair of float, default=(1.0, 1.0)
        Lipschitz constants (L2) of f and g as functions of the K losses. Rates are divided by
        shares: the gap between groups with shares p and q has sqrt(1/p^2 + 1/q^2).

    Returns
    -------
    SampleSizePlan
        Print it, or take `table()`.

    References
    ----------
    .. [1] Alabi 2019. "The Cost of a Reductions Approach to Private Fair Optimization."
    """
    if isinstance(groups, Cells):
        rows_in = groups.per_row if rows_in is None else rows_in
        groups = groups.count
    groups = _checks.whole(at_least=1, groups=groups)
    rows_in = _checks.whole(at_least=1, rows_in=1 if rows_in is None else rows_in)
    if rows_in > groups:
        remedy, most = (
            "Pass rows_in=groups if every row counts in every group.",
            f"at most {groups}",
        )
        raise InputError.expected(f"{most} groups", of="rows_in", got=rows_in, remedy=remedy)
    if isinstance(lipschitz, int | float) or len(lipschitz) != 2:
        remedy, of = "Pass lipschitz=(1.0, 1.0), for example.", "lipschitz"
        raise InputError.expected("two numbers, f's and g's", of=of, got=lipschitz, remedy=remedy)
    first, second = (_checks.non_negative(lipschitz=one) for one in lipschitz)
    one = SampleSizePlan(
        _checks.positive(alpha=alpha),
        _checks.positive(epsilon=epsilon),
        _checks.fraction(delta=delta, low_open=True, high_open=True),
        _checks.fraction(failure=failure, low_open=True, high_open=True),
        groups,
        rows_in,
        _checks.one_of(NEIGHBOURS, neighbours=neighbours),
        (first, second),
    )
    given: Any = {"candidates": candidates, "dimension": dimension, "vc": vc}
    sets = [
        Decisions(kind, _checks.whole(at_least=1, **{kind: size}))
        for kind, size in given.items()
        if size is not None
    ]
    if vc is not None and neighbours != "replace-one":
        remedy = "No row comes or goes where sensitive features alone are protected."
        expected = "neighbours='replace-one'"
        raise InputError.expected(expected, of="vc", got=neighbours, remedy=remedy)
    if not sets:
        remedy = "Pass candidates=100 for a list, dimension=5 for a convex set, or vc=3."
        raise InputError.expected("what is chosen from", of="candidates", got=None, remedy=remedy)
    return SampleSizePlan(**(vars(one) | {"lines": tuple(_lines(one, sets))}))


def _lines(one: SampleSizePlan, sets: Sequence[Decisions]) -> Iterator[Any]:
    """One a theorem, and a set of decisions that it is about."""
    steep, epsilon = one.steepness, one.epsilon
    named = [(WORDS[chosen.kind].format(chosen.size), chosen) for chosen in sets]
    for words, chosen in named:
        rows = choice_rows(one, chosen, steep)
        yield "Theorem 5.2", f"exponential mechanism, {words}", UPPER, rows, None
    calls = max(1, math.ceil((2.0 * steep * one.diameter / one.alpha) ** 2 - 1.0))
    yield "Theorem 5.5", "exact linear oracle, no privacy", UPPER, None, calls
    for words, chosen in named:
        rows = choice_rows(one, chosen, 1.0)
        yield "Theorem 5.10", f"one private oracle call, {words}", UPPER, rows, 1
    for words, chosen in named:
        yield "Corollary 5.11", f"loop as corrected, {words}", UPPER, *loop_rows(one, chosen)
    scale = max(one.lipschitz) / (epsilon * one.alpha)
    pure, other = math.ceil(one.groups * scale), math.ceil(math.sqrt(one.groups) * scale)
    yield "Theorem 6.1", "any pure mechanism", LOWER, pure, None
    yield "Theorem 6.2", "any mechanism, delta = o(1/n)", LOWER, other, None


def choice_rows(one: SampleSizePlan, decisions: Decisions, steep: float) -> int:
    """Theorem 5.2 (`steep` = B) and 5.10 (1, tau = alpha): n with 2 steep a Q(n) <= epsilon alpha n."""
    scale = 2.0 * steep * one.moved / one.epsilon
    return least(lambda n: scale * decisions.quantile(n, one.failure) / n <= one.alpha)


def loop_rows(one: SampleSizePlan, decisions: Decisions) -> tuple[int, int]:
    """(rows, rounds) of the corrected loop: the fewest rows over mu, T and the best share of the budget
    for the oracle, the least of x / sqrt(q) + y / sqrt(1 - q) over q."""
    promise = Promise(one.epsilon, one.delta, neighbours=one.neighbours)
    found = calibrate(promise, lambda z: ZeroConcentrated(1.0 / (2.0 * z * z)))
    rho, steep, moved, across = (
        1.0 / (2.0 * found.multiplier**2),
        one.steepness,
        one.moved,
        one.diameter,
    )
    # the parts of alpha, and of what is left of it, for the envelope and for Frank-Wolfe's steps
    smoothing, steps = (grid.ravel() for grid in np.meshgrid(PARTS, PARTS))
    share = smoothing * (1.0 - smoothing) * steps
    rounds = np.maximum(np.ceil((steep * across / one.alpha) ** 2 / share - 1.0), 1.0)
    turn = steep**2 * across / (2.0 * one.alpha * smoothing)  # d / mu
    damped = 8.0 * (rounds + 3.0) / (3.0 * np.sqrt(3.0 * rounds) * (rounds + 1.0))
    tail = math.sqrt(one.groups) + math.sqrt(2.0 * math.log(2.0 / one.failure))
    oracle = 2.0 * steep * moved * np.sqrt(rounds / (8.0 * rho))
    noise = turn * moved * np.sqrt(rounds / (2.0 * rho)) * damped * tail
    left = one.alpha * (1.0 - smoothing) * (1.0 - steps)

    def asked(n: float) -> Floats:
        level = decisions.mean(n, rounds, one.failure / 2.0)
        joined = (oracle * level) ** (2.0 / 3.0) + noise ** (2.0 / 3.0)
        return np.asarray(joined**1.5 / left)

    rows = least(lambda n: float(asked(n).min()) <= n)
    return rows, int(rounds[asked(float(rows)).argmin()])


def least(enough: Callable[[float], bool]) -> int:
    """The least n that is enough, by bisection: what is enough stays so for more rows."""
    high = 1
    while not enough(float(high)):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(float(middle)) else (middle, high)
    return high
