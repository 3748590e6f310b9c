"""Audits of a pair of neighbours: run a mechanism on both many times, choose a test on some runs,
count mistakes on the rest.

The mechanism is a callable from a seed to a score, or to released numbers, so anything that can be
run twice can be audited. A bound holds for whatever score, canary and threshold: a poor choice
makes it small, never wrong.

An audit of real people is a release about them like any other: its result is made of all runs, and
each costs what a release costs. With `ledger=` all of them, those on the neighbour too, whose
people are the same but one, are made in that ledger's block: every fit of ours reserves what it
costs and is recorded, `trials` times on either side, and one that finds no room ends the audit.
What a run draws by other means is not seen, and a production ledger refuses seeds. So a mechanism
is best audited on data that were made up for it, without a ledger.

Guarantees (tests/audit/test_audit_pairs.py):
1. The runs that choose a threshold, a direction or a projection are not counted.
2. A bound of confidence c exceeds the truth in at most 1 - c of audits, for continuous and for
   discrete scores.
3. Each run has a seed of its own.
4. With a ledger no run is made outside of its block.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..errors import InputError
from ..ledger import Ledger, given_ledger
from ..statement.document import PrivacyStatement
from . import bounds
from .claims import Claim, claim_of
from .result import AuditResult, Errors

Data = TypeVar("Data")
MOST_THRESHOLDS = 400  # tried for the tail; more would only fit the runs that choose


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
    share = _checks.fraction(choosing=choosing, low_open=True, high_open=True)
    if len(here) != len(there) or len(here) < 8:
        got = f"{len(here)} and {len(there)}"
        raise InputError.expected(
            "as many of each, 8 at least", of="scores", got=got, remedy="Run more trials."
        )
    first = min(max(2, math.floor(share * len(here))), len(here) - 2)
    chosen, rest = (here[:first], there[:first]), (here[first:], there[first:])
    cut, above, from_average = _tail(*chosen, delta, confidence)
    tail = _counted(*rest, cut, above)
    middle = (
        _counted(*rest, *_middle(*chosen))
        if threshold is None
        else _counted(here, there, float(threshold), above=True)
    )
    claim = None if claimed is None else claim_of(claimed, delta)
    return AuditResult(delta, confidence, tail, middle, from_average, first, claim)


def audit_pair(
    run: Callable[[int], Any],
    run_neighbour: Callable[[int], Any],
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
    """Run a mechanism `trials` times on a data set and as often on its neighbour, and bound its
    epsilon from below.

    `run(seed)` and `run_neighbour(seed)` return one number, larger where the neighbour is likelier,
    or an array of released numbers, which are then projected on the line that parts the choosing
    runs best. Seeds are `seed`, `seed` + 1, ...; what draws secure noise ignores them. Score a run
    with released values alone: a score that saw anything else audits that too. `ledger`: where
    every run is recorded, if the data are of real people; see above.
    """
    trials, seed = _checks.whole(at_least=8, trials=trials), _checks.whole(seed=seed)
    share = _checks.fraction(choosing=choosing, low_open=True, high_open=True)
    kept = given_ledger(ledger)
    with nullcontext() if kept is None else kept.recording():
        here = _released([run(seed + 2 * i) for i in range(trials)])
        there = _released([run_neighbour(seed + 2 * i + 1) for i in range(trials)])
    if here.shape != there.shape:
        remedy = "Return the same released numbers from both."
        raise InputError.expected(
            f"releases of shape {here.shape}", of="runs", got=there.shape, remedy=remedy
        )
    if here.shape[1] > 1:
        if threshold is not None:
            remedy = "Return one score a run, or leave the threshold out."
            raise InputError.expected(
                "None for releases of many numbers", of="threshold", got=threshold, remedy=remedy
            )
        first = min(max(2, math.floor(share * trials)), trials - 2)
        line = best_line(here[:first], there[:first])
        here, there = here @ line, there @ line
    settings: dict[str, Any] = {
        "delta": delta,
        "confidence": confidence,
        "choosing": choosing,
        "threshold": threshold,
    }
    return audit_scores(here.ravel(), there.ravel(), claimed=claimed, **settings)


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
    """`audit_pair` of one procedure `fit(data, seed)` on two neighbouring data sets: a whole
    estimator's fit, for example.

    `fit` returns what `run` returns: a score, or released numbers (a model's coefficients); never
    fitted values that the release keeps back. `ledger`: where every fit is recorded, on both data
    sets, if they are of real people.
    """
    return audit_pair(
        partial(fit, data),
        partial(fit, neighbour),
        trials=trials,
        delta=delta,
        confidence=confidence,
        choosing=choosing,
        threshold=threshold,
        claimed=claimed,
        seed=seed,
        ledger=ledger,
    )


# -- inside ----------------------------------------------------------------------------------------


def checked_confidence(confidence: float) -> float:
    """How sure an audit is to be."""
    value = _checks.fraction(confidence=confidence, high_open=True)
    if value < 0.75:
        remedy = "Pass confidence=0.95, for example."
        raise InputError.expected(
            "a number in [0.75, 1)", of="confidence", got=confidence, remedy=remedy
        )
    return value


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
        raise InputError.expected(
            "finite numbers", of="run", got="NaN or inf", remedy="Return what was released."
        )
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
        fpr, fnr = bounds.most_probable(alarms, n, each), bounds.most_probable(misses, n, each)
        average = bounds.most_average(alarms + misses, n, confidence)
        found += [bounds.epsilon_of(fpr, fnr, delta), bounds.epsilon_of_average(average, delta)]
    kind, at = np.unravel_index(int(np.argmax(found)), (len(found), len(points)))
    return float(points[at]), bool(kind < 2), bool(kind % 2)


def _below(runs: Floats, points: Floats) -> Floats:
    """The share of runs at or below each point."""
    return np.searchsorted(np.sort(runs), points, side="right") / len(runs)
