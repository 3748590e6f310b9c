"""What one run of our own tells: the likeliest coins, how far canaries moved it, and its noise.

Curators are heard. Each gradient sum that they release is a linear function of the canaries' coins,
with known noise.

Guarantees (tests/audit/test_audit_canaries.py):
1. Coins, distances and noise are functions of released numbers, of made-up rows and of the stated
   guarantee.
2. Where all noise is as stated, `HeardRun.has_less_noise` says so with probability `risk` at most.
3. No plan lets a canary be further than it allows: `HeardRun.furthest` is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._types import Floats
from ..core.promise import Promise
from ..curator import pricing
from ..curator.question import Scale
from ..curator.questions.gradients import GradientSum
from ..curator.questions.networks import NetworkGradient
from ..curator.rows.rows import Rows
from ..curator.rows.sampling import Full, Poisson
from ..curator.totals.passes import totals
from ..errors import InputError
from .noise import NoiseBets, Residual
from .overheard import Overheard, can_be_scored
from .witness import Witness

DEVIATIONS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
"""Of the stated noise: what a guess may take the true one for."""
NOBODY: Floats = np.zeros(0)


@dataclass(frozen=True, eq=False)
class HeardRun:
    """What a run told.

    `coins`: an estimate of each. `furthest`: the largest squared distance by which a canary moved
    the gradient sums, in deviations of their noise; None where batches are secret. `noise`:
    released less noiseless, in stated deviations.
    """

    coins: Floats
    furthest: float | None
    noise: Floats

    def has_less_noise(self, risk: float) -> bool:
        """Whether a bet on smaller noise won: where noise is as stated, with probability `risk`."""
        bets = NoiseBets()
        bets.add(Residual(self.noise, np.zeros_like(self.noise)), Residual(NOBODY, NOBODY))
        return bool(self.noise.size) and bets.refuted(risk)

    def is_too_far(self, allowed: float) -> bool:
        """Whether a canary is further than all Gaussian releases of a plan together allow."""
        return self.furthest is not None and self.furthest > allowed * (1.0 + 1e-6) + 1e-9


def heard_run(heard: Overheard, others: Rows, canaries: Rows, promise: Promise) -> HeardRun:
    """The linear estimate of all coins, from every gradient sum that was released.

    A sum is q (ordinary rows + G' coins) + noise of deviation s in the mean over batches of rate q.
    Coins have mean 1/2 and variance 1/4, so the estimate solves (sum of q^2 G G' / s^2 + 4 I) x =
    sum of q G (sum - its mean) / s^2.
    """
    sums, whole_batches = _Sums.none(canaries.exact_count), True
    for release in (one for book in heard.heard for one in book):
        mine, whole = canaries, others
        for by, shift in release.scalings:
            mine, whole = mine.rescaled(by, shift), whole.rescaled(by, shift)
        if not isinstance(release.batch, Full | Poisson):
            continue
        rate = release.batch.rate if isinstance(release.batch, Poisson) else 1.0
        for measurement, answer in zip(release.measurements, release.answers, strict=True):
            question = measurement.question
            if not isinstance(question, GradientSum | NetworkGradient):
                continue
            if question.models != 1 or measurement.noise != "gaussian":
                continue
            whole_batches &= rate == 1.0
            scale = pricing.constant_scale(question, mine.layout, promise, None)
            size = (
                float(pricing.noise_scale(measurement, scale, promise, release.batch, ()))
                * scale.unit
            )
            own = rate * scale.unit / size * _each(question, scale, mine)
            rest = (
                rate
                * scale.unit
                / size
                * totals([(question, [scale])], whole, whole.blocks())[0].ravel()
            )
            sums = sums.and_of(
                own, np.asarray(answer).ravel() / size - rest - own.sum(axis=0) / 2.0
            )
    if not sums.numbers:
        remedy = "Use fv.audit.run, which attacks every release."
        expected = "a fit that releases gradients"
        raise InputError.expected(expected, of="TARGET", got="one without", remedy=remedy)
    furthest = float(np.max(np.diag(sums.gram))) if whole_batches else None
    return HeardRun(sums.coins, furthest, _noise(heard, promise))


def _noise(heard: Overheard, promise: Promise) -> Floats:
    """Of all Gaussian numbers that were released about all rows."""
    found = [NOBODY]
    for rows, book in zip(heard.rows, heard.heard, strict=True):
        if can_be_scored(book, promise, common=True):
            found.append(Witness(rows, rows, promise).residual(book, there=False).noise)
    return np.concatenate(found)


def _each(question: GradientSum | NetworkGradient, scale: Scale, rows: Rows) -> Floats:
    """What each row adds, in grid steps: (rows, numbers)."""
    (block,) = rows.blocks()
    alone = (block.take(np.array([at])) for at in range(rows.exact_count))
    return np.stack(
        [totals([(question, [scale])], rows, [one])[0].ravel() for one in alone]
    ).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Sums:
    """H H' , H y and y' y of all numbers y = H' (coins - 1/2) + noise that were released.

    All are in deviations of the stated noise.
    """

    gram: Floats
    seen: Floats
    squares: float
    numbers: int

    @staticmethod
    def none(canaries: int) -> _Sums:
        """Before any release."""
        return _Sums(np.zeros((canaries, canaries)), np.zeros(canaries), 0.0, 0)

    def and_of(self, own: Floats, off: Floats) -> _Sums:
        """With one release more."""
        squares = self.squares + float(off @ off)
        return _Sums(
            self.gram + own @ own.T, self.seen + own @ off, squares, self.numbers + off.size
        )

    @property
    def coins(self) -> Floats:
        """The estimate, at the likeliest of some deviations: noise may be less than stated."""
        values, vectors = np.linalg.eigh(self.gram)
        values, along = np.maximum(values, 0.0), vectors.T @ self.seen

        def likelihood(kept: float) -> float:
            whole = kept**2 + values / 4.0
            explained = float(np.sum(along**2 / (4.0 * kept**2 * whole)))
            rest = max(0, self.numbers - len(values)) * math.log(kept**2)
            return -rest - float(np.log(whole).sum()) - self.squares / kept**2 + explained

        kept = max(DEVIATIONS, key=likelihood)
        return np.asarray(vectors @ (along / (values + 4.0 * kept**2)))
