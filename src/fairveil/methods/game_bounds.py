"""What theory says of a game that was played: Jagielski et al., Theorem 4.4, with the noise of this
game (docs/oracle_game.md).

With regrets R_auditor and R_learner (a round) the mean plays are a nu-approximate equilibrium, nu =
R_auditor + R_learner (Theorem 4.3), and for the best mixture Q* of the oracle's class that keeps
every bound (Lemmas C.3 and C.4):

    error(Q) <= error(Q*) + 2 nu,        value_k(Q) <= bound_k + (1 + 2 nu) / dual_bound,

and, where the class holds the maximally discriminatory classifiers and only false positive rates
are constrained (Theorem 4.6), value_k(Q) <= bound_k + 2 nu / (dual_bound - (|A| - 1)).

`Differs:` the paper bounds the auditor's regret in advance, by the largest noise of any round. It
can be *measured*: the best fixed duals against those played, on the released excesses, is off by
sums of Gaussians only (each round's noise is drawn after that round's duals are fixed). The
mixture's own values are measured by the same mean, which gives a second bound on the gap, mostly
the smaller one. Six things may go wrong, each with a sixth of 1 - confidence: the noise of counts
that rates are divided by, the audits' in the mean of each excess, the audits' against the duals
played, the learner's lag, its comparison with the indicators (`game`), and a number of rows that is
not public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._types import Floats
from ..fairness import ConstraintSystem
from ..show.bounds import NO_BOUND, Bound, bounds, points
from ..show.parts import Part, Shown

PARTS = 6.0
"""In how many parts 1 - confidence is shared."""
ROUNDING = 0.5
"""Of a count's noise, to the grid of sums: whole numbers, without weights."""
RATES = 2.0 ** np.arange(-10, 3)


@dataclass(frozen=True, eq=False, slots=True)
class Lag:
    """How far responses may be behind the best: sum of certain + unit E, E at most exponential of
    mean 1, given the past.

    Units follow the duals, which follow the noise, so a rate s has to be fixed before the first
    round: exp(sum of s unit E + ln(1 - s unit)) is a supermartingale, hence sum of unit E <= (L +
    sum of -ln(1 - s unit)) / s but for exp(-L). All of `RATES`, over a `scale` that is known before
    the first round, are tried at once.
    """

    scale: float
    certain: float
    moments: Floats  # sum of -ln(1 - s unit), for each rate s

    @staticmethod
    def nothing(scale: float) -> Lag:
        """Before the first round."""
        return Lag(scale if scale > 0 else 1.0, 0.0, np.zeros(len(RATES)))

    def after(self, unit: float, known: float, doubt: float) -> Lag:
        """One round more: unit (known + E), and a doubt beside it."""
        pace = np.ones(len(RATES))
        if math.isfinite(unit):
            pace = np.minimum(RATES / self.scale * unit, 1.0)
        with np.errstate(divide="ignore"):
            # A rate that is too large for this round has an infinite moment, and is never the best
            # again.
            moments = self.moments - np.log1p(-pace)
        return Lag(self.scale, self.certain + (unit * known if known else 0.0) + doubt, moments)

    def total(self, chance: float) -> float:
        """What the sum exceeds with that chance at most."""
        if not self.moments.any():
            return self.certain
        # The union bound over all rates, so that the best may be taken afterwards.
        away = math.log(len(RATES) / chance)
        return self.certain + float(((self.moments + away) * (self.scale / RATES)).min())


@dataclass(frozen=True, eq=False)
class Seen:
    """Sums over rounds of released values: duals, excesses, their products, decisions (of the
    `counted` rounds whose rules are in the mixture), and the learner's stated lag. `variance`: of
    the noise in duals x excess."""

    duals: Floats
    excess: Floats
    product: float
    histogram: Floats
    lag: Lag
    variance: float = 0.0
    rounds: int = 0
    counted: int = 0

    @staticmethod
    def nothing(theta: Floats, counts: Floats, classes: int, scale: float) -> Seen:
        """Before the first round; `scale`: of the lag's units, roughly."""
        zeros = np.zeros_like(theta)
        return Seen(zeros, zeros, 0.0, np.zeros((*counts.shape, classes)), Lag.nothing(scale))

    def after(
        self,
        duals: Floats,
        excess: Floats,
        histogram: Floats,
        lag: Lag,
        variance: float,
        counted: bool,
    ) -> Seen:
        """One round more, the lag with it."""
        return Seen(
            self.duals + duals,
            self.excess + np.nan_to_num(excess),
            self.product + float(np.nansum(duals * excess)),
            self.histogram + histogram if counted else self.histogram,
            lag,
            self.variance + variance,
            self.rounds + 1,
            self.counted + counted,
        )

    @property
    def mean_duals(self) -> Floats:
        """The auditor's mean play."""
        return np.asarray(self.duals / max(1, self.rounds))

    @property
    def mean_histogram(self) -> Floats:
        """How the mixture decides."""
        return np.asarray(self.histogram / max(1, self.counted))


@dataclass(frozen=True)
class Guarantee(Shown):
    """What holds with probability `confidence` over the noise, as numbers for this fit, of the
    training rows.

    `gap_excess`: no constraint is above its bound by more: the smaller of the theorem's and of what
    was measured. `worst`: the largest value that any constraint may have. `error_excess`: the
    mixture's error against the best mixture of the oracle's class that keeps every bound; infinite
    where the oracle's own regret is not known (regression, descent), as the paper's is for its
    regression.
    """

    confidence: float
    dual_bound: float
    auditor_regret: float
    learner_regret: float
    nu: float
    error_excess: float
    gap_excess: float
    worst: float
    measured: tuple[float, ...]

    @staticmethod
    def of(
        seen: Seen,
        system: ConstraintSystem,
        counts: Floats,
        floor: float | None,
        values: Floats,
        *,
        dual_bound: float,
        audit_noise: Floats,
        count_noise: float,
        mixture_noise: Floats | None = None,
        rows_off: tuple[float, float] = (1.0, 1.0),
        indicated: int | None = None,
        confidence: float,
        looks: int = 1,
    ) -> Guarantee:
        """`audit_noise`: the standard deviation of each value in one round; `count_noise`: of one
        count; `mixture_noise`: of each value of a mixture that was counted by itself, of which the
        theorems about mean plays say nothing. `rows_off`: between what the true number of rows
        lies, over the number that errors were divided by: the game was played on errors times this.
        `indicated`: how many groups there are where Theorem 4.6 holds. `looks`: how many values, of
        one constraint each, the mixture may have been chosen by."""
        # Each bound below fails with one part of the miss; together they fail with all of it.
        part, rounds, k = (1.0 - confidence) / PARTS, max(1, seen.rounds), max(1, len(values))
        of_counts = count_errors(system, counts, floor, count_noise, part)
        # A round of an indicator has no noise: a sum that may be stopped is beyond a line twice as
        # often (reflection).
        deviations = float(ndtri(1.0 - part / (2 * k)))
        of_mean = mixture_noise
        if of_mean is None:
            of_mean = audit_noise / math.sqrt(max(1, seen.counted))
        upper = values + float(ndtri(1.0 - part / (2 * k * looks))) * of_mean + of_counts
        noisiest = deviations * audit_noise / math.sqrt(rounds)
        best = dual_bound * _top(seen.excess / rounds + noisiest + of_counts)
        # Where no dual presses, an undefined value has no part.
        pressed = (seen.mean_duals * np.where(seen.mean_duals > 0, of_counts, 0.0)).sum()
        away = drift(seen.variance, part) / rounds + float(pressed)
        auditor = max(0.0, best - seen.product / rounds + away) if seen.rounds else math.inf
        learner = math.inf
        if mixture_noise is None:
            learner = seen.lag.total(part) / rounds + 2.0 * float(pressed)
        # Both regrets: the mean plays are a nu-approximate equilibrium (docs/theory/papers.md,
        # oracle game).
        nu = auditor + learner
        least, most = rows_off
        theorem = (most + 2.0 * nu) / dual_bound
        if indicated is not None and dual_bound > most * (indicated - 1):
            theorem = min(theorem, 2.0 * nu / (dual_bound - most * (indicated - 1)))
        measured = _top(upper - system.bounds)
        told = np.nan_to_num(upper, nan=math.inf, posinf=math.inf)
        return Guarantee(
            confidence,
            dual_bound,
            auditor,
            learner,
            nu,
            2.0 * nu / least if least > 0 else math.inf,
            min(theorem, measured),
            float(np.nanmax(np.minimum(upper, system.bounds + theorem), initial=0.0)),
            tuple(told.tolist()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is not known is None."""
        plain = asdict(self) | {"measured": [_plain(value) for value in self.measured]}
        return {name: _plain(value) for name, value in plain.items()}

    def parts(self) -> Iterator[Part]:
        """The bounds, and what they are conditional on."""
        what = f"the training values of constraints are not bounded: {NO_BOUND}"
        if math.isfinite(self.gap_excess):
            most = points(self.gap_excess)
            what = f"no constraint's training value is above its bound by more than {most}"
        regret = "this oracle's own regret is not known"
        yield from bounds(
            self.confidence,
            what,
            (
                Bound("largest value of a constraint", self.worst),
                Bound("furthest above its bound", self.gap_excess),
                Bound("error above that of the best mixture", self.error_excess, missing=regret),
            ),
            "It is about expected rates, of the distribution of decisions: a single draw of all "
            "decisions varies around them.",
            "The best mixture is that of the oracle's own class of rules. Some mixture of them is "
            "assumed to keep every bound, as a constant rule does where only gaps are bounded.",
        )


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def drift(variance: float, chance: float) -> float:
    """What a sum of Gaussians exceeds with that chance at most, each drawn after its variance was
    fixed, which the past may decide; `variance`: of all, as it turned out.

    For a bound v fixed in advance, P(sum > sqrt(2 v L) and variance <= v) <= exp(-L). Powers of 2,
    from 2^-60 to 2^59, are all tried: chance / 120 for each.
    """
    if variance == 0.0:
        return 0.0
    # The variance follows the noise, so no bound v may be chosen by it: all powers of 2 are tried
    # at once.
    v = 2.0 ** math.ceil(min(max(math.log2(variance), -60.0), 59.0))
    return math.sqrt(2.0 * v * math.log(120.0 / chance)) if variance <= v else math.inf


def count_errors(
    system: ConstraintSystem, counts: Floats, floor: float | None, noise: float, chance: float
) -> Floats:
    """How far each value may be off because rates were divided by noisy counts: sum of
    |coefficient| q / size over its rates.

    top / N and top / N~ differ by at most |N - N~| / N~, as top <= N. Infinite where an event's
    count is at its floor.
    """
    if noise == 0 or floor is None:
        return np.zeros(len(system))
    cells = np.asarray(system.members.sum(axis=1), np.float64).ravel()
    sizes = np.nan_to_num(system.event_sizes(counts))
    # The union bound over events; an event's size is a sum of so many noisy counts.
    deviations = float(ndtri(1.0 - chance / (2.0 * max(1, len(cells)))))
    quantile = deviations * noise * np.sqrt(cells) + ROUNDING * cells
    off = np.where(sizes > floor, quantile / np.maximum(sizes, floor), np.inf)[system.event_of]
    coefficients = abs(system.coefficients).tocsr()
    return np.array(
        [
            float((coefficients.data[a:b] * off[coefficients.indices[a:b]]).sum())
            for a, b in zip(coefficients.indptr[:-1], coefficients.indptr[1:], strict=True)
        ]
    )


def _top(values: Floats) -> float:
    """The largest, at least 0; undefined constraints hold."""
    return float(np.nanmax(values, initial=0.0))
