"""Least squares for group objectives: moments, then one release of the groups' Gram matrices, are
the plan (theory.md#gram).

Every oracle call is post-processing of these. The target is the rows' last number. Dense numbers
are scaled to mean 0 and deviation 1 by their released moments, inside the curator, and rows (1, x,
y) are clipped to `LENGTH` of what is then their usual length: the noise of a Gram matrix is as
large in every direction, and would drown columns that are spread little within their bounds. Rows
far out then count less, in losses too, which are means of what counts. Sparse numbers are as they
come, and rows clipped to what a schema's coding would bound them by.

Where only sensitive features are protected, moments and the matrix of all rows are exact and free,
and what clipping takes away, which is public in total, is given back to the groups by their
shares. A regression that tells no groups apart then costs nothing and is exact.

Where records are protected, the sum of K groups' matrices has K times the noise of one of everybody.
That is released, too: the answer falls back on it where noise hides the groups (`steadied`).

Guarantees (tests/learning/test_learning_group_regression.py):
1. The log is the plan: the same releases, whatever the number of oracle calls.
2. The coefficients depend on the rows through the curator's answers alone.
3. Losses at coefficients that were fixed before have the noise that is stated of them; those at
   coefficients that were found in the same release are off by less than twice what is stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats
from ...core.bound import OUTWARDS
from ...core.events import Event, compose
from ...curator import Curator, GramMatrices, Measurement, NumberMoments, RowCount, largest_of_one
from ..allocation import by_column
from ..descent import Progress
from ..gaussian import OR_EXPONENTIAL, quietest
from .grams import GroupQuadratics
from .hull import METHODS, ROUNDS, Ended, Least
from .steadied import Finder, steadied
from .task import RegressionOutcome, RegressionTask

LENGTH = 1.5  # of the usual length of a row: the longest that counts in full, unless noise is small
LONGEST, HEARD = 4.0, 0.04
"""Where the noise of a group of usual size would still be below `HEARD` of its rows in any
direction, longer rows count in full, up to `LONGEST` usual lengths. Noise grows with the square of
the clip, and losses of clipped rows are not the rows'."""
RADIUS = 10.0  # of coefficients whose losses may get negative weights
MOMENTS_SHARE = 0.05  # of the squared budget
WHOLE_SHARE = 0.3  # of the rest, where records are protected, for one matrix of everybody


@dataclass(frozen=True, eq=False)
class Scaling:
    """Numbers, the target last, as (x - centre) / scale: public or released values. `rows`: how
    many were counted with them."""

    centre: Floats
    scale: Floats
    rows: float = 0.0

    @staticmethod
    def of(rows: float, sums: Floats, squares: Floats, noise: float) -> Scaling:
        """From released sums over rows. A noisy variance is no less than the noise of a mean
        square."""
        n = max(rows, 2.0 * noise, 1e-12)
        mean, square = sums / n, squares / n
        if noise == 0.0:
            variance = square - mean**2
            scale = np.sqrt(np.where(variance > 1e-12 * square, variance, 1.0))
        else:
            mean = np.clip(mean, -1.0, 1.0)
            scale = np.sqrt(np.clip(square - mean**2, min(noise / n, 1.0), 1.0))
        return Scaling(mean, scale, rows)

    @staticmethod
    def of_moments(
        task: RegressionTask, measurements: Sequence[Measurement], answers: Sequence[Floats]
    ) -> Scaling:
        """From the answers to `moments_of`, the first two."""
        noise = (
            0.0
            if task.sees_features
            else float(measurements[1].multiplier) * task.move(measurements[1].question)
        )
        sums, squares = np.asarray(answers[1])
        return Scaling.of(float(answers[0][0]), sums, squares, noise)

    def apply(self, curator: Curator) -> Scaling:
        """Have the curator scale the rows' numbers."""
        curator.rescale(1.0 / self.scale, -self.centre / self.scale)
        return self

    def then(self, other: Scaling) -> Scaling:
        """Both, one after the other."""
        return Scaling(
            self.centre + self.scale * other.centre, self.scale * other.scale, other.rows
        )

    def undone(self, c: Floats) -> Floats:
        """Coefficients (1 + width,) that predict scaled targets from scaled numbers, as those of
        the numbers before."""
        numbers = len(self.scale) - 1
        out = c * self.scale[-1]
        out[1 : 1 + numbers] /= self.scale[:-1]
        out[0] += self.centre[-1] - float(out[1 : 1 + numbers] @ self.centre[:-1])
        return np.asarray(out)


def moments_of(task: RegressionTask, multiplier: float) -> list[Measurement]:
    """How many rows there are, and their numbers' moments: nothing within [-1, 1] is clipped."""
    question = NumberMoments(None if task.sees_features else math.sqrt(2.0 * task.layout.numbers))
    return [Measurement(RowCount(), multiplier), Measurement(question, multiplier)]


@dataclass(frozen=True, eq=False)
class GroupRegression:
    """A regression that is planned and priced: public values alone. Made by `plan_regression`.

    The task's layout has the target as its last number. `scales`: whether numbers are scaled by
    their moments. `clip`: the longest row that counts in full; `radius`: of the ball of
    coefficients, in the units of the search; None: none, or `RADIUS` where weights of losses may be
    negative. `ridge`: s of `grams`.
    """

    task: RegressionTask
    scales: bool = False
    clip: float | None = None
    radius: float | None = None
    ridge: float | None = None
    method: str = "linear-oracle"
    rounds: int = ROUNDS
    moments_multiplier: float = 0.0
    multiplier: float = 0.0
    whole_multiplier: float = 0.0
    plan: Event | None = field(init=False)

    def __post_init__(self) -> None:
        _checks.normalise(self, plan=self.event() if self.task.promise.is_private else None)

    def event(self) -> Event:
        """What the run costs."""
        return compose([self.task.event(one) for one in self.asked_in_turn()])

    def asked_in_turn(self) -> list[list[Measurement]]:
        """The joint releases in their order."""
        measurements = [self._moments()] if self.scales else []
        return [*measurements, self._measurements(self._clip, None)]

    def run(self, curator: Curator, progress: Progress | None = None) -> RegressionOutcome:
        """Release and minimise; the curator is closed afterwards, in every case."""
        with curator:
            quadratics, scaling = self.release(curator)
            curator.finish()
        return self.found(quadratics, scaling, progress)

    # -- what is asked -----------------------------------------------------------------------------

    def release(self, curator: Curator) -> tuple[GroupQuadratics, Scaling | None]:
        """Ask, and make losses of the answers."""
        scaling = self.scaled(curator)
        return self.matrices(curator, scaling), scaling

    def scaled(self, curator: Curator) -> Scaling | None:
        """Have numbers scaled by their released moments, where they are to be."""
        scaling = self._scaled(curator) if self.scales else None
        # columns far smaller than others are seen once those are scaled
        if scaling is not None and self.task.sees_features:
            scaling = scaling.then(self._scaled(curator))
        return scaling

    def matrices(
        self, curator: Curator, scaling: Scaling | None, tailored: Floats | None = None
    ) -> GroupQuadratics:
        """Ask about rows as they are scaled by now. `tailored`: a multiplier of the noise for each
        cell, over what one row contributes to it, in the place of the one for all over the
        sensitivity."""
        task = self.task
        unit = 0.25 if scaling is None else 0.25 * float(scaling.scale[-1]) ** 2
        radius = math.inf if self.radius is None else self.radius
        facts: dict[str, Any] = {
            "cells": task.cells,
            "unit": unit,
            "radius": radius,
            "ridge": self.ridge,
        }
        purpose = "Gram matrices of the groups"
        if task.is_exact or not task.sees_features:
            rows = task.stated_rows or (0.0 if scaling is None else scaling.rows)
            clip = (
                None if task.is_exact else self._clip_of(rows) if tailored is None else self._clip
            )
            measurements = self._measurements(clip, tailored)
            answers = list(curator.answer(measurements, purpose=purpose))
            if self.whole_multiplier and tailored is None:
                noise = self.whole_multiplier * task.move(measurements[-1].question) * OUTWARDS
                facts |= {"total": self._target_last(answers.pop()[0]), "total_noise": noise}
            of_groups = self._noise(clip or self._clip, tailored)
            return GroupQuadratics.of(self._joined(answers), noise=of_groups, **facts)
        ((total,),) = curator.answer([Measurement(self._question(None, apart=False), 0.0)])
        mean_square = float(np.trace(total)) / max(float(total[0, 0]), 1e-9)
        clip = self.clip or self._longest(float(total[0, 0]), math.sqrt(mean_square)) * math.sqrt(
            mean_square
        )
        exact = Measurement(self._question(clip, apart=False), 0.0)
        measurements = [*self._measurements(clip, tailored), exact]
        *answers, shortened = curator.answer(measurements, purpose=purpose)
        whole, counted = (self._target_last(one) for one in (total, shortened[0]))
        facts |= {"total": counted, "lost": whole - counted}
        return GroupQuadratics.of(self._joined(answers), noise=self._noise(clip, tailored), **facts)

    def _measurements(self, clip: float | None, tailored: Floats | None) -> list[Measurement]:
        """The groups' matrices, and everybody's where it is released; with a multiplier for each of
        them one question a sensitive column, whose groups are apart."""
        cells = self.task.cells
        if tailored is None or cells is None:
            apart = Measurement(self._question(clip), self.multiplier)
            whole = Measurement(self._question(clip, apart=False), self.whole_multiplier)
            return [apart, whole] if self.whole_multiplier else [apart]
        return by_column(cells, lambda one: GramMatrices(one, clip), tailored)

    def _joined(self, answers: Sequence[Floats]) -> Floats:
        return self._target_last(np.concatenate(answers))

    def _scaled(self, curator: Curator) -> Scaling:
        """Have numbers scaled by their means and deviations."""
        answers = curator.answer(self._moments(), purpose="moments of the numbers")
        return self.scaling_of(answers).apply(curator)

    def scaling_of(self, answers: Sequence[Floats]) -> Scaling:
        """Of answers to `_moments`, the first two."""
        return Scaling.of_moments(self.task, self._moments(), answers)

    def _moments(self) -> list[Measurement]:
        return moments_of(self.task, self.moments_multiplier)

    @property
    def _clip(self) -> float:
        """The longest row, unless one was given: of numbers of deviation 1, or within [-1, 1]."""
        layout = self.task.layout
        usual = math.sqrt(1.0 + layout.numbers + len(layout.code_sizes))
        return self.clip or (LENGTH * usual if self.scales else usual)

    def _clip_of(self, rows: float) -> float:
        """The same once rows are counted."""
        usual = self._clip / LENGTH
        fixed = self.clip is not None or not self.scales
        return self._clip if fixed else usual * self._longest(rows, usual)

    def _longest(self, rows: float, usual: float) -> float:
        """In usual lengths, by how much noise a group of usual size would have."""
        groups = (
            self.task.cells.count / self.task.cells.per_row if self.task.cells is not None else 1.0
        )
        noise = self._noise(usual)
        spectral = float(np.max(noise)) * math.sqrt(2.0 * (2 + self.task.layout.width))
        if spectral <= 0.0:
            return LENGTH
        return min(LONGEST, max(LENGTH, math.sqrt(HEARD * max(rows, 0.0) / groups / spectral)))

    def _question(self, clip: float | None, *, apart: bool = True) -> GramMatrices:
        return GramMatrices(self.task.cells if apart else None, clip)

    def _target_last(self, matrices: Floats) -> Floats:
        """With the target's line and column, the last number's, at the end."""
        at = self.task.layout.numbers
        order = [*range(at), *range(at + 1, matrices.shape[-1]), at]
        return np.asarray(matrices[..., order, :][..., order])

    def _noise(self, clip: float, tailored: Floats | None = None) -> float | Floats:
        """The standard deviation of a diagonal entry; where rows are public, a bound on it."""
        if self.task.is_exact:
            return 0.0
        if tailored is None:
            return self.multiplier * self.task.move(self._question(clip)) * OUTWARDS
        question = self._question(clip, apart=False)
        task = self.task
        largest = largest_of_one(question, task.layout, task.promise, task.max_sample_weight)
        return np.asarray(tailored * (largest * OUTWARDS))

    # -- what is made of it ------------------------------------------------------------------------

    def found(
        self,
        quadratics: GroupQuadratics,
        scaling: Scaling | None = None,
        progress: Progress | None = None,
    ) -> RegressionOutcome:
        """The coefficients, for losses that were released: post-processing."""
        task = self.task
        best = Least(
            np.zeros(quadratics.forms.shape[-1] - 1),
            math.nan,
            math.nan,
            0,
            self._unheard(quadratics, scaling),
        )
        if quadratics.has_rows:
            h = task.joint(*task.functions(quadratics.shares, quadratics.least), self._width)
            if not h.monotone and self.radius is None:
                quadratics = replace(quadratics, radius=RADIUS)
            best = METHODS[self.method](quadratics, h, rounds=self.rounds, progress=progress)
            if h.monotone and task.constraint.is_vacuous:
                best = steadied(quadratics, h, best, self._finder(quadratics.radius))
        c = best.coefficients
        told: dict[str, Any] = {
            "least": quadratics.least,
            "count_noise": quadratics.noise / quadratics.rows,
        }
        outcome = task.outcome(
            c if scaling is None or not quadratics.has_rows else scaling.undone(c),
            quadratics.measured(c),
            quadratics.shares,
            **told,
            noise=quadratics.spread(c),
            rows=quadratics.rows,
            gap=best.gap if math.isfinite(best.gap) else None,
            calls=best.calls,
            reason=best.reason.value,
        )
        rivals = {
            name: task.rival(
                outcome,
                quadratics.measured(one),
                quadratics.shares,
                **told,
                noise=quadratics.spread(one),
            )
            for name, one in self._others(quadratics).items()
        }
        return replace(outcome, **rivals)  # type: ignore[arg-type]  # by their names

    def _finder(self, radius: float) -> Finder:
        """How coefficients are found in other matrices of the same groups."""

        def find(one: GroupQuadratics) -> Least:
            h = self.task.joint(*self.task.functions(one.shares, one.least), self._width)
            return METHODS[self.method](replace(one, radius=radius), h, rounds=self.rounds)

        return find

    def _others(self, quadratics: GroupQuadratics) -> dict[str, Floats]:
        """The mean of all targets for everybody, and least squares, from the same release."""
        if not quadratics.has_rows:
            return {}
        whole = quadratics.released.sum(axis=0)
        mean = np.zeros(len(whole) - 1)
        mean[0] = whole[0, -1] / max(float(whole[0, 0]), 1e-300)
        return {"constant": mean, "free": quadratics.best(np.ones(len(quadratics.forms)))}

    def _unheard(self, quadratics: GroupQuadratics, scaling: Scaling | None) -> Ended:
        """Why rows teach nothing: few, or clipped so far that they count for few."""
        counted = 0.0 if scaling is None else scaling.rows
        rows = counted if self.task.stated_rows is None else float(self.task.stated_rows)
        per_row = 1 if self.task.cells is None else self.task.cells.per_row
        return Ended.SHORTENED if quadratics.hides(rows, per_row) else Ended.NOTHING

    @property
    def _width(self) -> float:
        """Frank-Wolfe has no rate at a kink."""
        return self.task.alpha if self.method == "frank-wolfe" else 0.0


def plan_regression(task: RegressionTask, **options: Any) -> GroupRegression:
    """The regression whose noise is the least that keeps the promise. `options`: fields of
    `GroupRegression`."""
    _checks.one_of(METHODS, method=options.get("method", "linear-oracle"))
    _checks.whole(at_least=1, rounds=options.get("rounds", ROUNDS))
    for name in ("clip", "radius"):
        if options.get(name) is not None:
            _checks.positive(**{name: options[name]})
    share = MOMENTS_SHARE if options.get("scales") and not task.sees_features else 0.0
    several = task.cells is not None and task.cells.count > 1 and not task.sees_features
    whole = WHOLE_SHARE if several else 0.0

    def at(z: float) -> GroupRegression:
        of_matrices = z / math.sqrt(1.0 - share)
        return GroupRegression(
            task,
            **options,
            # two of them: the number of rows, and the moments
            moments_multiplier=z * math.sqrt(2.0 / share) if share else 0.0,
            multiplier=of_matrices / math.sqrt(1.0 - whole),
            whole_multiplier=of_matrices / math.sqrt(whole) if whole else 0.0,
        )

    return quietest(
        task.promise, at, GroupRegression.event, exact=task.is_exact, way_out=OR_EXPONENTIAL
    )
