"""How many rows and oracle calls suffice to minimise f subject to g <= 0 privately, within alpha:
theory, with our constants.

Losses l = S / n are K numbers, averages of contributions in [0, 1] of which a row makes r not 0: r
= 1 where every row is in one group, r = K as the paper counts. f and g are L_f- and L_g-Lipschitz
(L2), h = f + G max(0, g). With (Corollary 4.2)

    a = sqrt(min(2 r, K))      n |l(D) - l(D')|, a row replaced; sqrt(r), a row added or removed
    d = sqrt(min(2 r, K))      the diameter of where l lies
    G = 1 + L_f d / alpha,     B = L_f + G L_g, h's Lipschitz constant

alpha for h is alpha for f and for g. theta is the chance of failure. All bounds hold for any data
in which a feasible decision exists; what is learned of new people is another question.

**Exponential mechanism** (Theorem 5.2). Scores h have a range of at most R = 2 B a / n over
candidates between neighbours, so exp(-epsilon h / R) is epsilon-private, and its excess is R /
epsilon times a number that exceeds Q with chance theta at most:

- finite list C: Q = ln(|C| / theta): each of at most |C| bad decisions has at most e^(-Q) of the
  best one's weight.
- VC dimension v: the same with Sauer's ln|C| <= v ln(e n / v). The labellings of the features are
  the range, so this holds where the sensitive features alone are protected. The excess falls in n,
  and n is found by bisection.
- convex set in R^P, h convex in the decision (losses convex, f and g non-decreasing), uniform base
  measure: Q is the upper theta-quantile of Gamma(P). Proof: V(y), the volume of decisions whose
  excess is below y R / epsilon, shrinks towards the best decision no faster than y^P, so V(y) / y^P
  does not rise. With W = V / (V(y) y^-P), the odds of an excess above y are int_y^inf e^-s (W(s) -
  W(y)) ds / (int_0^y e^-s W(s) ds + e^-y W(y)); W <= s^P above y and W >= s^P below make them at
  most those of W = s^P, which is Gamma(P). (The paper takes Bassily et al.'s 8 ((P + 1) ln 3 +
  ln(1/theta)), for R = B sqrt(K) / n; an upper quantile of Gamma(P) is at most P + sqrt(2 P
  ln(1/theta)) + ln(1/theta).)

**One linear oracle** (Theorem 5.10): the same with w l in place of h, to within tau |w|: R = 2 a
|w| / n.

**Oracle calls** (Theorem 5.5). Frank-Wolfe on h's Moreau envelope: of smoothness 1/mu, below h by
at most mu B^2 / 2. With steps 2 / (t + 2) it is within 2 d^2 / (mu (T + 1)) of the least after T
exact calls; the best mu gives 2 B d / sqrt(T + 1) <= alpha. `Differs:` the paper's Theorem 5.5 says
K^4 / alpha^2; its proof asks for 36 (1 + K) K^2 (1 + G)^2 (3 + alpha)^2 / alpha^2 with G of sqrt(K)
/ alpha, which is K^4 / alpha^4, for a mean excess of alpha (Markov's inequality then gives 10 alpha
with chance 9/10), and Kakade et al.'s algorithm may make 36 T calls in each of its T periods.
Corollary 5.11 inherits alpha^-3 for what is alpha^-4.

**Smooth f and g** (Corollary B.5): max(0, .) has a kink (Lemma 5.1 leaves it out); rounded over a
width o it costs G o / 2, and h has smoothness b = b_f + G (b_g + L_g^2 / o): excess G o / 2 + 2 b
d^2 / (T + 1).

**The loop** (Corollary 5.11 for the mechanism as corrected): T rounds, each a private oracle call
for a released w and a release of the decision's losses with Gaussian noise, w the gradient of the
envelope at the running mean of releases, which is the losses of the mixture plus e_t (h extends to
all numbers, convex and Lipschitz). Frank-Wolfe's proof, with w_t off by at most |e_t| / mu, gives
an excess of at most

    mu B^2 / 2 + 2 d^2 / (mu (T + 1)) + sum_t p_t (tau_t + d |e_t| / mu),     p_t = 2 (t + 1) / (T (T + 1)), which sum to 1.

- e_t has variance s^2 2 (2 t + 1) / (3 t (t + 1)) <= 4 s^2 / (3 t) a coordinate; so sum p_t |e_t|,
  a Lipschitz function of all noise, is at most s c (sqrt(K) + sqrt(2 ln(2 / theta))) but for theta
  / 2, c = 8 (T + 3) / (3 sqrt(3 T) (T + 1)).
- tau_t is R_t / epsilon_0 times (q + Gamma(m)) given the past (finite list and VC: q = ln|C|, m =
  1; convex: q = 0, m = P). As -ln(1 - x) <= x + x^2 for x <= 1/2, the mean is at most q + m (1 + 4
  y / (3 T)) + ln(2 / theta) / y but for theta / 2, y <= (T + 1) / 4.
- T rounds cost T (epsilon_0^2 / 8 + a^2 / (2 s^2 n^2)) of zero-concentrated privacy, priced for
  (epsilon, delta) by the library's own accountant. mu, T and the share of the oracle are those that
  ask for the fewest rows.

**Descent on h** (Theorem E.6 of Alabi and Wiggins). Projected descent over a box of P sides of
length 1, whose diameter is S = sqrt(P): by their Theorem E.3 (Shamir and Zhang's for the last
iterate), with steps S / (Q sqrt t), the mean excess is at most 2 S Q (2 + ln T) / sqrt(T), where
Q^2 = B^2 + P s^2 bounds a noisy gradient's square (losses' gradients by the decision have spectral
norm 1 at most). Markov's inequality asks it to be theta alpha. As printed the gradient has noise of
s^2 = T (a b / n)^2 / (2 rho), b = b_f + G b_g: with T = n rounds P s^2 is P a^2 b^2 / (2 rho n),
and n is of order K P / alpha^4, given n > K P / rho.

`Differs:` that noise is of how much h's slopes in the losses move. What is released is J'w, J the
losses' gradients, w those slopes: J depends on the rows too (linear f and g have b = 0: no noise at
all), and the kink of max(0, g) has no b. Corrected: the kink is rounded over a width o, so that w
moves by at most beta a / n, beta = b_f + G (b_g + L_g^2 / o), and J'w by at most

    (m B + beta a) / n,        m = 2 for a row that is replaced, 1 for one added or removed (averages divide by a public n).

Then n = (m B + beta a) sqrt(P / (2 rho)) / sqrt(x^2 - B^2 / T), x = theta (alpha - G o / 2) / (2
sqrt(P) (2 + ln T)), for the best o and T: of order P K^(3/2) / (alpha^4 sqrt(rho)).

Guarantees (tests/study/test_study_sample_size.py, test_study_descent_rows.py):
1. On small problems the mechanisms' exact probabilities of an excess above alpha are at most theta
   with as many rows.
2. Fewer rows for a larger alpha, epsilon and theta; more for more groups, decisions, slopes. Orders
   in 1/alpha and K are those said.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainccinv

from .._types import Floats
from ..core.events import ZeroConcentrated
from ..privacy import Promise, calibrate

PARTS = np.linspace(0.05, 0.95, 61)
NEARLY = 1.05  # of the fewest rows: few rounds are worth that
# (2 + ln n) / sqrt(n) falls from n = 1 on; with noise that falls too, so does the excess
LAST_RISE = 8.0


@dataclass(frozen=True)
class Setting:
    """What is asked for: public numbers, checked by `sample_size`."""

    alpha: float
    epsilon: float
    delta: float
    failure: float
    groups: int
    rows_in: int
    neighbours: str
    lipschitz: tuple[float, float]
    smoothness: tuple[float, float]

    @property
    def moved(self) -> float:
        """a: how far n l moves between neighbours."""
        return math.sqrt(self.rows_in) if self.neighbours == "add-remove" else self.diameter

    @property
    def diameter(self) -> float:
        """d: of where l lies."""
        return math.sqrt(min(2 * self.rows_in, self.groups))

    @property
    def penalty(self) -> float:
        """G of Corollary 4.2."""
        return 1.0 + self.lipschitz[0] * self.diameter / self.alpha

    @property
    def steepness(self) -> float:
        """B: h's Lipschitz constant."""
        return self.lipschitz[0] + self.penalty * self.lipschitz[1]


@dataclass(frozen=True)
class Decisions(ABC):
    """What is chosen from. Abstract: its excess is R / epsilon times at most `level` +
    Gamma(`shape`)."""

    size: int

    @property
    def shape(self) -> int:
        """The m of Gamma(m)."""
        return 1

    @abstractmethod
    def level(self, rows: float) -> float:
        """The q before it."""

    def quantile(self, rows: float, chance: float) -> float:
        """Q: what is exceeded with that chance at most."""
        return self.level(rows) + float(gammainccinv(self.shape, chance))

    def mean(self, rows: float, calls: Floats, chance: float) -> Floats:
        """What the mean over calls, weighted as above, exceeds with that chance at most."""
        away, m = math.log(1.0 / chance), self.shape
        y = np.minimum(np.sqrt(3.0 * calls * away / (4.0 * m)), (calls + 1.0) / 4.0)
        return np.asarray(self.level(rows) + m * (1.0 + 4.0 * y / (3.0 * calls)) + away / y)


class Listed(Decisions):
    """A finite list."""

    def level(self, rows: float) -> float:
        return math.log(self.size)

    def __str__(self) -> str:
        return f"a list of {self.size:,} decisions"


class Shattering(Decisions):
    """All decisions of a class of that VC dimension, as labellings of features that are public."""

    def level(self, rows: float) -> float:
        """Sauer's lemma."""
        return min(
            rows * math.log(2.0),
            self.size * (1.0 + math.log(rows / self.size)) if rows > self.size else math.inf,
        )

    def __str__(self) -> str:
        return f"VC dimension {self.size}"


class Convex(Decisions):
    """A convex set in as many dimensions."""

    @property
    def shape(self) -> int:
        return self.size

    def level(self, rows: float) -> float:
        return 0.0

    def __str__(self) -> str:
        return f"a convex set in {self.size} dimensions"


def sampling_rows(one: Setting, decisions: Decisions) -> int:
    """Theorem 5.2: n with 2 B a Q(n) <= epsilon alpha n."""
    scale = 2.0 * one.steepness * one.moved / one.epsilon
    return least(lambda n: scale * decisions.quantile(n, one.failure) / n <= one.alpha)


def oracle_rows(one: Setting, decisions: Decisions) -> int:
    """Theorem 5.10, tau = alpha: n with 2 a Q(n) <= epsilon tau n."""
    scale = 2.0 * one.moved / one.epsilon
    return least(lambda n: scale * decisions.quantile(n, one.failure) / n <= one.alpha)


def oracle_calls(one: Setting) -> int:
    """Theorem 5.5: T + 1 = 4 B^2 d^2 / alpha^2."""
    return max(1, math.ceil((2.0 * one.steepness * one.diameter / one.alpha) ** 2 - 1.0))


def smooth_calls(one: Setting) -> int:
    """Corollary B.5, over the part of alpha that the rounded kink may cost."""
    (_, of_g), (bend, bend_g) = one.lipschitz, one.smoothness
    parts = np.linspace(0.001, 0.999, 999)
    smooth = bend + one.penalty * bend_g + (one.penalty * of_g) ** 2 / (2.0 * one.alpha * parts)
    least_calls = float((2.0 * one.diameter**2 * smooth / (one.alpha * (1.0 - parts))).min()) - 1.0
    return max(1, math.ceil(least_calls))


def loop_rows(one: Setting, decisions: Decisions) -> tuple[int, int]:
    """(rows, rounds) of the corrected loop: the fewest rows over mu, T and the oracle's share of
    the budget."""
    ways = _Ways.of(one, _price(one))

    def asked(n: float) -> Floats:
        return ways.rows(decisions.mean(n, ways.rounds, one.failure / 2.0))

    rows = least(lambda n: float(asked(n).min()) <= n)
    return rows, int(ways.rounds[asked(float(rows)).argmin()])


def descent_rows(one: Setting, decisions: Convex) -> int:
    """Theorem E.6 as printed, T = n."""
    sides, rho = float(decisions.size), _price(one)
    turned = one.smoothness[0] + one.penalty * one.smoothness[1]

    def excess(n: float) -> float:
        square = one.steepness**2 + sides * (one.moved * turned) ** 2 / (2.0 * rho * n)
        return 2.0 * math.sqrt(sides * square / n) * (2.0 + math.log(n))

    return least(lambda n: n > LAST_RISE and excess(n) <= one.failure * one.alpha)


def corrected_descent_rows(one: Setting, decisions: Convex) -> tuple[int, int]:
    """(rows, rounds) with the kink rounded and noise for all that a row moves: the fewest rows over
    the width and T."""
    sides, rho, steep = float(decisions.size), _price(one), one.steepness
    (bend, bend_g), of_g = one.smoothness, one.lipschitz[1]
    enough = (2.0 * math.sqrt(sides) * steep / (one.failure * one.alpha)) ** 2
    parts, rounds = np.meshgrid(PARTS, np.maximum(enough, 1.0) * np.geomspace(10.0, 1e8, 400))
    rounds = np.ceil(rounds)
    width = 2.0 * one.alpha * parts / one.penalty
    beta = bend + one.penalty * (bend_g + of_g**2 / width)
    whole = (1.0 if one.neighbours == "add-remove" else 2.0) * steep + beta * one.moved
    left = (
        one.failure * one.alpha * (1.0 - parts) / (2.0 * math.sqrt(sides) * (2.0 + np.log(rounds)))
    ) ** 2 - steep**2 / rounds
    rows = np.where(
        left > 0.0,
        whole * math.sqrt(sides / (2.0 * rho)) / np.sqrt(np.maximum(left, 1e-300)),
        np.inf,
    )
    near = rows <= NEARLY * rows.min()
    at = int(np.where(near, rounds, np.inf).argmin())
    return max(1, math.ceil(float(rows.ravel()[at]))), int(rounds.ravel()[at])


def _price(one: Setting) -> float:
    """The zero-concentrated privacy that the promise allows."""
    promise = Promise(one.epsilon, one.delta, neighbours=one.neighbours)
    found = calibrate(promise, lambda z: ZeroConcentrated(1.0 / (2.0 * z * z)))
    return 1.0 / (2.0 * found.multiplier**2)


@dataclass(frozen=True, eq=False)
class _Ways:
    """Choices of mu and T: n = (oracle's error x level, joined with noise) / what is left of
    alpha."""

    rounds: Floats
    oracle: Floats
    noise: Floats
    left: Floats

    @staticmethod
    def of(one: Setting, rho: float) -> _Ways:
        """`smoothing`, `steps`: the parts of alpha, and of what is left of it, for the envelope and
        for Frank-Wolfe's steps."""
        smoothing, steps = (grid.ravel() for grid in np.meshgrid(PARTS, PARTS))
        steep, moved, across = one.steepness, one.moved, one.diameter
        rounds = np.ceil(
            (steep * across / one.alpha) ** 2 / (smoothing * (1.0 - smoothing) * steps) - 1.0
        )
        rounds = np.maximum(rounds, 1.0)
        turn = steep**2 * across / (2.0 * one.alpha * smoothing)  # d / mu
        damped = 8.0 * (rounds + 3.0) / (3.0 * np.sqrt(3.0 * rounds) * (rounds + 1.0))
        tail = math.sqrt(one.groups) + math.sqrt(2.0 * math.log(2.0 / one.failure))
        oracle = 2.0 * steep * moved * np.sqrt(rounds / (8.0 * rho))
        noise = turn * moved * np.sqrt(rounds / (2.0 * rho)) * damped * tail
        return _Ways(rounds, oracle, noise, one.alpha * (1.0 - smoothing) * (1.0 - steps))

    def rows(self, level: Floats) -> Floats:
        """With the best share q of the budget for the oracle: min of x / sqrt(q) + y / sqrt(1 -
        q)."""
        return np.asarray(
            ((self.oracle * level) ** (2.0 / 3.0) + self.noise ** (2.0 / 3.0)) ** 1.5 / self.left
        )


def pure_floor(one: Setting) -> int:
    """Theorem 6.1's order: K / (epsilon alpha), alpha in units of the larger Lipschitz constant."""
    return math.ceil(one.groups * max(one.lipschitz) / (one.epsilon * one.alpha))


def approximate_floor(one: Setting) -> int:
    """Theorem 6.2's order: sqrt(K) / (epsilon alpha), in the same units."""
    return math.ceil(math.sqrt(one.groups) * max(one.lipschitz) / (one.epsilon * one.alpha))


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
