"""Audits of a pair of neighbours: run a mechanism on both many times, choose a test on some runs,
count mistakes on the rest.

The mechanism is a callable from a seed to a score, or to released numbers, so anything that can be
run twice can be audited. A bound holds for whatever score, canary and threshold: a poor choice
makes it small, never wrong. A test looks at one release and says "neighbour" or not. Its false
alarms have probability FPR (the data set was run), its misses FNR (the neighbour was run). An
(epsilon, delta)-private mechanism allows no test with

    e^epsilon FPR + FNR < 1 - delta    or    FPR + e^epsilon FNR < 1 - delta    (Kairouz, Oh and Viswanath 2015, Theorem 2.1).

An audit of real people is a release about them like any other: its result is made of all runs, and
each costs what a release costs. With `ledger=` all of them, those on the neighbour too, whose
people are the same but one, are made in that ledger's block: every fit of ours reserves what it
costs and is recorded, `trials` times on either side, and one that finds no room ends the audit.
What a run draws by other means is not seen, and a production ledger refuses seeds. So a mechanism
is best audited on data that were made up for it, without a ledger.

Guarantees (tests/audit/test_audit_bounds.py, test_audit_scores.py):
1. `most_probable` is below the true probability in at most 1 - confidence of all experiments,
   whatever that probability is; `most_average` is the same for the average of two probabilities, up
   to 1/2, from as many trials of each.
2. `epsilon_of` and `epsilon_of_average` are never above the epsilon of a mechanism whose rates are
   at most those given. So a bound of confidence c exceeds the truth in at most 1 - c of audits.
3. The runs that choose a threshold, a direction or a projection are not counted; each run has a
   seed of its own.
4. With a ledger no run is made outside of its block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import special

from .. import _checks
from .._types import Floats
from ..core import cost as accounting
from ..core.events import Gaussian
from ..errors import InputError
from ..ledger import Ledger, given_ledger
from ..show.parts import Note, Part, Shown
from ..statement.document import PrivacyStatement
from .claims import Claim, PointClaim, claim_of

Data = TypeVar("Data")
MOST_THRESHOLDS = 400  # tried for the tail; more would only fit the runs that choose


# Bounds


def most_probable(errors: npt.ArrayLike, trials: int, confidence: float) -> Floats:
    """The upper end of Clopper and Pearson's interval (1934): the largest p with P(Bin(trials, p)
    <= errors) >= 1 - confidence.

    >>> float(most_probable(0, 100, 0.95).round(4)), float(most_probable(100, 100, 0.95))
    (0.0295, 1.0)
    """
    counted = np.asarray(errors, np.float64)
    inside = np.minimum(counted, trials - 1.0)  # all errors: nothing is ruled out
    found = special.betaincinv(inside + 1.0, trials - inside, confidence)
    return np.asarray(np.where(counted >= trials, 1.0, found))


def most_average(mistakes: npt.ArrayLike, trials: int, confidence: float) -> Floats:
    """The largest (FPR + FNR) / 2, from the false alarms and misses together, in `trials` runs of
    each; at most 1/2, beyond which a test says nothing.

    The sum of 2 trials independent mistakes of unequal probabilities has a lower tail no heavier
    than that of Binomial(2 trials, their average), from one below its mean on (Hoeffding 1956,
    Theorem 4). What is claimed of an average up to 1/2 fails only there, for any confidence of at
    least 3/4: P(X <= E X) > 1/4 (Greenberg and Mohri 2014).
    """
    return np.minimum(0.5, most_probable(mistakes, 2 * trials, confidence))


def epsilon_of(fpr: npt.ArrayLike, fnr: npt.ArrayLike, delta: float) -> Floats:
    """The least epsilon that a mechanism can have at `delta` if some test errs at most this often;
    at least 0: max(log((1 - delta - FNR) / FPR), log((1 - delta - FPR) / FNR)) (Jagielski, Ullman
    and Oprea 2020, section 3).

    >>> float(epsilon_of(0.25, 0.25, 0.0).round(4))
    1.0986
    """
    alarm, miss = np.asarray(fpr, np.float64), np.asarray(fnr, np.float64)
    with np.errstate(divide="ignore"):  # a test that errs too often says nothing: -inf
        one = np.log(np.maximum(1.0 - delta - miss, 0.0)) - np.log(alarm)
        other = np.log(np.maximum(1.0 - delta - alarm, 0.0)) - np.log(miss)
    return np.asarray(np.maximum(np.maximum(one, other), 0.0))


def epsilon_of_average(average: npt.ArrayLike, delta: float) -> Floats:
    """The same from (FPR + FNR) / 2 alone: log((1 - delta) / average - 1), as the two inequalities
    add up to (1 + e^epsilon) (FPR + FNR) >= 2 (1 - delta).

    >>> float(epsilon_of_average(0.25, 0.0).round(4))
    1.0986
    """
    least = np.maximum(np.asarray(average, np.float64), np.finfo(np.float64).tiny)
    return np.log(np.maximum((1.0 - delta) / least - 1.0, 1.0))


def mu_of(total_variation: float) -> float:
    """The mu of the Gaussian pair N(0, 1), N(mu, 1) at this total variation distance: 2 Phi^-1((1 +
    TV) / 2), which is Phi^-1(1 - FPR) - Phi^-1(FNR) at the middle threshold (Nasr et al. 2023,
    section 4.2).

    >>> round(mu_of(0.3829249), 5)
    1.0
    """
    if total_variation >= 1:
        return math.inf
    return 2.0 * float(special.ndtri((1.0 + total_variation) / 2.0))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of a Gaussian mechanism of this mu."""
    return accounting.epsilon(Gaussian(1.0 / mu), delta) if mu > 1e-12 else 0.0


# What was found


@dataclass(frozen=True)
class Errors:
    """A test, fixed before these runs were looked at, and how often it erred in `trials` runs of
    each data set.

    It says "neighbour" when the score is above `threshold` (at or below it, when `above` is false).
    """

    threshold: float
    above: bool
    false_alarms: int
    misses: int
    trials: int


@dataclass(frozen=True)
class AuditResult(Shown):
    """Lower bounds on what a mechanism gives away, each right with probability `confidence` (not
    jointly).

    `tail` is the test behind `epsilon_lower`, `middle` the one behind `total_variation_lower` and
    what follows from it; `chosen_from` runs of each data set chose the tests and are in neither
    count, unless a test was fixed in advance. They also chose whether `epsilon_lower` is worked out
    from the two rates or from their average (`from_average`), which is known better: best where a
    mechanism's privacy is lost all at once, or runs are few.
    """

    delta: float
    confidence: float
    tail: Errors
    middle: Errors
    from_average: bool
    chosen_from: int
    claimed: Claim | None = None

    @property
    def trials(self) -> int:
        """All runs of each data set that a bound counts."""
        return max(self.tail.trials, self.middle.trials)

    @property
    def epsilon_lower(self) -> float:
        """The mechanism, whatever it is, has at least this epsilon at `delta`."""
        return self.epsilon_lower_at(self.delta)

    def epsilon_lower_at(self, delta: float) -> float:
        """The same at another delta."""
        alarms, misses, trials = self.tail.false_alarms, self.tail.misses, self.tail.trials
        if self.from_average:
            average = most_average(alarms + misses, trials, self.confidence)
            return float(epsilon_of_average(average, delta))
        each = (1.0 + self.confidence) / 2.0  # two rates, each with half of the risk
        fpr, fnr = (most_probable(count, trials, each) for count in (alarms, misses))
        return float(epsilon_of(fpr, fnr, delta))

    @property
    def total_variation_lower(self) -> float:
        """Releases of the two data sets are at least this far apart in total variation: delta at
        epsilon 0 of any mechanism."""
        mistakes = self.middle.false_alarms + self.middle.misses
        return 1.0 - 2.0 * float(most_average(mistakes, self.middle.trials, self.confidence))

    @property
    def mu_lower(self) -> float:
        """A mechanism that is mu-GDP has at least this mu."""
        return mu_of(self.total_variation_lower)

    @property
    def gaussian_epsilon_lower(self) -> float:
        """The epsilon at `delta` of a Gaussian mechanism of `mu_lower`. Of other mechanisms it says
        nothing."""
        return gaussian_epsilon(self.mu_lower, self.delta)

    def contradicts(self, claim: Claim | PrivacyStatement | float | None = None) -> bool:
        """Whether the claim (by default the one audited) is refuted. A true claim is, with
        probability 1 - confidence at most.

        A point is held against `epsilon_lower`, a curve (Gaussian, or the accountant's of some
        events) against `total_variation_lower`: one bound a claim, so the risk is not added up.
        """
        held = self.claimed if claim is None else claim_of(claim, self.delta)
        if held is None:
            remedy = "Pass an epsilon, or audit with claimed=."
            raise InputError.expected("a claim", of="contradicts", got=None, remedy=remedy)
        if isinstance(held, PointClaim):
            return self.epsilon_lower_at(held.delta) > held.epsilon
        return self.total_variation_lower > held.total_variation

    def parts(self) -> Iterator[Part]:
        """A sentence a bound."""
        yield from map(Note, self.summary().splitlines())

    def summary(self) -> str:
        """In words."""
        lines = [
            f"Audit with {self.trials} runs of each data set; each bound holds at confidence "
            f"{self.confidence:g}.",
            f"Any mechanism: epsilon is at least {self.epsilon_lower:.3g} at delta {self.delta:g}.",
            f"Any mechanism: the total variation distance is at least "
            f"{self.total_variation_lower:.3g}.",
            f"A Gaussian mechanism: mu is at least {self.mu_lower:.3g}, so epsilon at least "
            f"{self.gaussian_epsilon_lower:.3g}.",
        ]
        if self.claimed is not None:
            kept = "not contradicted, which does not prove it"
            found = "contradicted" if self.contradicts() else kept
            lines.append(f"Claimed: {self.claimed.words}: {found}.")
        return "\n".join(lines)

    __str__ = summary


# Audits


def audit_scores(
    scores: npt.ArrayLike,
    neighbour_scores: npt.ArrayLike,
    *,
    delta: float,
    confidence: float = 0.95,
    choosing: float = 0.25,
    threshold: float | None = None,
    claimed: Claim | PrivacyStatement | float | None = None,
) -> AuditResult:
    """Lower bounds from scores of independent runs on a data set and on its neighbour: as many of
    each, in the order of runs.

    The first `choosing` of the runs choose the tests; the rest is counted. `threshold` fixes the
    test of the middle in advance (0 for a log likelihood ratio, which is best there), and then all
    runs count for it. `claimed`: see `AuditResult.contradicts`.

    >>> from fairveil.audit import GaussianClaim
    >>> rng = np.random.default_rng(0)
    >>> found = audit_scores(
    ...     rng.normal(0, 1, 20_000), rng.normal(1, 1, 20_000), delta=1e-5, threshold=0.5
    ... )
    >>> 0.9 < found.mu_lower < 1.0
    True
    >>> found.contradicts(GaussianClaim(1.0)), found.contradicts(GaussianClaim(0.5))
    (False, True)
    """
    here, there = _scores(scores, "scores"), _scores(neighbour_scores, "neighbour_scores")
    delta = _checks.fraction(delta=delta, high_open=True)
    confidence = checked_confidence(confidence)
    if len(here) != len(there) or len(here) < 8:
        got = f"{len(here)} and {len(there)}"
        raise InputError.expected(
            "as many of each, 8 at least", of="scores", got=got, remedy="Run more trials."
        )
    first = _first(choosing, len(here))
    chosen, rest = (here[:first], there[:first]), (here[first:], there[first:])
    cut, above, from_average = _tail(*chosen, delta, confidence)
    claim, tail = None if claimed is None else claim_of(claimed, delta), _counted(*rest, cut, above)
    middle = _counted(*rest, *_middle(*chosen))
    if threshold is not None:
        middle = _counted(here, there, float(threshold), above=True)
    return AuditResult(delta, confidence, tail, middle, from_average, first, claim)


def audit_fit(
    fit: Callable[[Data, int], Any],
    data: Data,
    neighbour: Data,
    *,
    trials: int,
    delta: float,
    confidence: float = 0.95,
    choosing: float = 0.25,
    threshold: float | None = None,
    claimed: Claim | PrivacyStatement | float | None = None,
    seed: int = 0,
    ledger: Ledger | None = None,
) -> AuditResult:
    """Run a mechanism `fit(data, seed)` `trials` times on a data set and as often on its neighbour,
    and bound its epsilon from below.

    `fit` returns one number, larger where the neighbour is likelier, or an array of released
    numbers (a model's coefficients), which are then projected on the line that parts the choosing
    runs best. Seeds are `seed`, `seed` + 1, ...; what draws secure noise ignores them. Score a run
    with released values alone: a score that saw anything else audits that too. `ledger`: where
    every run is recorded, if the data are of real people; see above.
    """
    trials, seed = _checks.whole(at_least=8, trials=trials), _checks.whole(seed=seed)
    first, kept = _first(choosing, trials), given_ledger(ledger)
    with nullcontext() if kept is None else kept.recording():
        here = _released([fit(data, seed + 2 * i) for i in range(trials)])
        there = _released([fit(neighbour, seed + 2 * i + 1) for i in range(trials)])
    if here.shape != there.shape:
        got, remedy = there.shape, "Return the same released numbers from both."
        raise InputError.expected(
            f"releases of shape {here.shape}", of="runs", got=got, remedy=remedy
        )
    if here.shape[1] > 1 and threshold is not None:
        remedy = "Return one score a run, or leave the threshold out."
        raise InputError.expected(
            "None for releases of many numbers", of="threshold", got=threshold, remedy=remedy
        )
    line = np.ones(1) if here.shape[1] == 1 else best_line(here[:first], there[:first])
    settings: dict[str, Any] = {"delta": delta, "confidence": confidence, "choosing": choosing}
    return audit_scores(here @ line, there @ line, threshold=threshold, claimed=claimed, **settings)


def checked_confidence(confidence: float) -> float:
    """How sure an audit is to be."""
    value = _checks.fraction(confidence=confidence, high_open=True)
    if value < 0.75:
        remedy = "Pass confidence=0.95, for example."
        raise InputError.expected(
            "a number in [0.75, 1)", of="confidence", got=confidence, remedy=remedy
        )
    return value


def _first(choosing: float, trials: int) -> int:
    share = _checks.fraction(choosing=choosing, low_open=True, high_open=True)
    return min(max(2, math.floor(share * trials)), trials - 2)


def _scores(values: npt.ArrayLike, name: str) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or np.isnan(array).any():
        got = f"{array.ndim} axes" if array.ndim != 1 else "NaN"
        remedy = "Return one number a run; -inf and inf are numbers here."
        raise InputError.expected("one number a run", of=name, got=got, remedy=remedy)
    return array


def _released(runs: list[Any]) -> Floats:
    """(trials, numbers)."""
    arrays = [np.asarray(run, np.float64).ravel() for run in runs]
    if len({array.size for array in arrays}) != 1 or not arrays[0].size:
        remedy = "Pad what a run leaves out: how much is released is a release too."
        raise InputError.expected(
            "as many numbers from every run", of="run", got="others", remedy=remedy
        )
    stacked = np.stack(arrays)
    if np.isnan(stacked).any() or (stacked.shape[1] > 1 and np.isinf(stacked).any()):
        remedy = "Return what was released."
        raise InputError.expected("finite numbers", of="run", got="NaN or inf", remedy=remedy)
    return stacked


def best_line(here: Floats, there: Floats) -> Floats:
    """Fisher's linear discriminant, with a ridge where there are few runs: (S + r I)^-1 (mean there
    - mean here)."""
    centred = np.vstack((here - here.mean(axis=0), there - there.mean(axis=0)))
    spread = np.sqrt((centred**2).mean(axis=0))
    spread[spread == 0] = 1.0
    scaled = centred / spread
    covariance = scaled.T @ scaled / len(scaled) + (len(spread) / len(scaled)) * np.eye(len(spread))
    gap = (there.mean(axis=0) - here.mean(axis=0)) / spread
    return np.asarray(np.linalg.solve(covariance, gap) / spread)


def _counted(here: Floats, there: Floats, threshold: float, above: bool) -> Errors:
    alarms, hits = int((here > threshold).sum()), int((there > threshold).sum())
    if not above:
        alarms, hits = len(here) - alarms, len(there) - hits
    return Errors(threshold, above, alarms, len(there) - hits, len(here))


def _middle(here: Floats, there: Floats) -> tuple[float, bool]:
    """Where the two distribution functions are furthest apart."""
    points = np.unique(np.concatenate((here, there)))
    gaps = _below(here, points) - _below(there, points)
    at = int(np.abs(gaps).argmax())
    return float(points[at]), bool(gaps[at] >= 0)


def _tail(here: Floats, there: Floats, delta: float, confidence: float) -> tuple[float, bool, bool]:
    """The threshold, the side and the kind of bound that would be largest if the choosing runs were
    all."""
    points = np.unique(np.concatenate((here, there)))
    if len(points) > MOST_THRESHOLDS:
        points = points[np.linspace(0, len(points) - 1, MOST_THRESHOLDS).astype(np.int64)]
    n, each = len(here), (1.0 + confidence) / 2.0
    here_below, there_below = (np.rint(n * _below(runs, points)) for runs in (here, there))
    found = []
    for alarms, misses in ((n - here_below, there_below), (here_below, n - there_below)):
        fpr, fnr = most_probable(alarms, n, each), most_probable(misses, n, each)
        average = most_average(alarms + misses, n, confidence)
        found += [epsilon_of(fpr, fnr, delta), epsilon_of_average(average, delta)]
    kind, at = np.unravel_index(int(np.argmax(found)), (len(found), len(points)))
    return float(points[at]), bool(kind < 2), bool(kind % 2)


def _below(runs: Floats, points: Floats) -> Floats:
    """The share of runs at or below each point."""
    return np.searchsorted(np.sort(runs), points, side="right") / len(runs)
