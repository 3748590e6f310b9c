"""Which canaries were there, estimated from every gradient sum that a fit released."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._types import Floats
from ..curator import pricing
from ..curator.question import Scale
from ..curator.questions.gradients import GradientSum
from ..curator.questions.networks import NetworkGradient
from ..curator.rows.rows import Rows
from ..curator.rows.sampling import Full, Poisson
from ..curator.totals.passes import totals
from ..errors import InputError, complaint
from ..privacy.promise import Promise
from .overheard import Overheard

DEVIATIONS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
"""Of the stated noise: what a guess may take the true one for."""


def estimated(heard: Overheard, others: Rows, canaries: Rows, promise: Promise) -> Floats:
    """The linear estimate of all coins, from every gradient sum that was released.

    A sum is q (ordinary rows + G' coins) + noise of deviation s in the mean over batches of rate q.
    Coins have mean 1/2 and variance 1/4, so the estimate solves (sum of q^2 G G' / s^2 + 4 I) x =
    sum of q G (sum - its mean) / s^2.
    """
    sums = _Sums(np.zeros((canaries.exact_count,) * 2), np.zeros(canaries.exact_count), 0.0, 0)
    for release in (one for book in heard.heard for one in book):
        mine, whole = canaries, others
        for by, shift in release.scalings:
            mine, whole = mine.rescaled(by, shift), whole.rescaled(by, shift)
        if not isinstance(release.batch, Full | Poisson):
            continue
        rate = release.batch.rate if isinstance(release.batch, Poisson) else 1.0
        for ask, answer in zip(release.asks, release.answers, strict=True):
            question = ask.question
            if (
                not isinstance(question, GradientSum | NetworkGradient)
                or question.models != 1
                or ask.noise != "gaussian"
            ):
                continue
            scale = pricing.constant_scale(question, mine.layout, promise, None)
            size = float(pricing.noise_scale(ask, scale, promise, release.batch, ())) * scale.unit
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
        raise InputError(
            complaint(
                expected="a fit that releases gradients",
                of="TARGET",
                got="one without",
                remedy=remedy,
            )
        )
    return sums.coins


def _each(question: GradientSum | NetworkGradient, scale: Scale, rows: Rows) -> Floats:
    """What each row adds, in grid steps: (rows, numbers)."""
    (block,) = rows.blocks()
    alone = (block.take(np.array([at])) for at in range(rows.exact_count))
    return np.stack(
        [totals([(question, [scale])], rows, [one])[0].ravel() for one in alone]
    ).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Sums:
    """H H' , H y and y' y of all numbers y = H' (coins - 1/2) + noise that were released, in
    deviations of the stated noise."""

    gram: Floats
    seen: Floats
    squares: float
    numbers: int

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
