"""The regression oracle: one release of sums, and every best response is post-processing of it
(theory.md#game).

Costs are regressed on the row, and the class of least predicted cost is taken (the paper's sec. 5,
after Kearns et al.). With z = L (1, x) of identity second moment the regression of C_k is

    E[C_k] + z' (1/rows) sum_i z_i C_ik,        sum_i z_i C_ik = rows sum_{c, y} costs[c, y, k]
    S_cy,   S_cy = sum_{(c, y)} z_i,

linear in the sums S by cell and label. They are released once, with the counts N; the error's own
regression needs features and labels alone.

Where only sensitive features are protected, features and labels are public and exact: L whitens the
first `width` principal components of the standardised columns, and z is clipped to the public
radius LENGTH sqrt(width), since a person moves S by sqrt(2) times the longest z. `Differs:` the
paper adds noise to X'C in every round, for all coordinates, at the length of the longest row; few
whitened, clipped coordinates have a tenth of that noise at 2,000 rows.

Where records are protected, the Gram matrix, S and N are one joint release on rows clipped to
`clip`, and L is made of the released matrix: directions in which it is no larger than its noise are
left out.

Noise is shrunk: what a cell's mean differs by from the mean of its label, D, is multiplied by the
positive part of 1 - trace(noise covariance) / |D|^2 (James and Stein).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from ..._types import Floats
from ...core.events import Event
from ...curator import (
    Curator,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Linear,
    Measurement,
    RowCount,
)
from .ground import LEAST_ROWS, GameInstance
from .oracle import GroupedRule, LinearRule, Oracle, Rule

# of a whitened row: the radius it is clipped to, over the square root of its coordinates
LENGTH = 0.8
# noise of a cell's whole mean vector that is put up with, in standard deviations: decides the width
CROWD = 0.3
SMOOTH = 1e-3  # the ridge of the logistic regression, in whitened coordinates
STEPS = 100  # of L-BFGS at most
# of the error's regression where features are public, relative to each column's variance
RIDGE = 0.02
LEAST = 1e-9  # of a number that divides
THIN = 1e-6  # of the largest eigenvalue, or of all rows: below it a direction is empty


@dataclass(frozen=True, eq=False)
class Moments:
    """Released values: predicted costs of errors (classes, 1 + width), L (k, 1 + width), and shrunk
    sums (cells, labels, k).

    `means` (classes,) and `slopes` (classes, k): of the predicted costs of errors, over the rows,
    and on z; None where these are a logistic model's, whose scale is another than that of costs.
    """

    errors: Floats
    lift: Floats
    sums: Floats
    counts: Floats
    means: Floats | None = None
    slopes: Floats | None = None


@dataclass(frozen=True, eq=False)
class Regression(Oracle[Moments]):
    """Linear regression of costs. `clip`: of rows where records are protected. `width`: of the
    basis, None by the noise."""

    clip: float | None = None
    width: int | None = None
    multiplier: float = 0.0
    once_share = 0.7
    looks_for_the_least = False
    any_linear = True

    def at(self, once: float, round_: float) -> Regression:
        return replace(self, multiplier=once)

    def first_measurements(
        self, ground: GameInstance, counts_multiplier: float
    ) -> list[Measurement]:
        measurements = [Measurement(ground.counts, counts_multiplier)]
        if ground.sees_features:
            basis = np.zeros((1, 1 + ground.layout.width))
            measurements += [
                Measurement(
                    FeatureSums(ground.cells, by_label=ground.by_label, clip=1.0, basis=basis),
                    self.multiplier,
                )
            ]
        else:
            measurements += self._measurements_of_records(ground)
        return measurements

    def round_events(self, ground: GameInstance) -> list[Event]:
        return []

    def prepare(
        self, curator: Curator, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, Moments]:
        found = self._public if ground.sees_features else self._private
        moments = found(curator, ground, counts_multiplier)
        return moments.counts, moments

    def respond(
        self,
        curator: Curator,
        ground: GameInstance,
        prepared: Moments,
        cell_costs: Floats,
        rows: float,
    ) -> tuple[Rule, Moments]:
        if ground.group_aware:
            return self._by_group(ground, prepared, cell_costs), prepared
        slopes = np.einsum("cyk,cyj->kj", cell_costs, prepared.sums)
        weights = prepared.errors + slopes @ prepared.lift
        weights[:, 0] += np.einsum("cyk,cy->k", cell_costs, prepared.counts)
        return LinearRule(weights[:1] - weights[1:2] if ground.outputs == 1 else -weights), prepared

    def _by_group(self, ground: GameInstance, found: Moments, cell_costs: Floats) -> Rule:
        """The regression of costs on (z, 1[A = a]): the Gram matrix of the two is made of the
        released counts and sums.

        Where records are protected, of errors' costs too: groups differ in how they err at the same
        row. Where features are public, of the constraints' alone, beside the logistic model.
        """
        # a ridge, and the fewest rows of a cell
        least = THIN * float(found.counts.sum()) if ground.is_exact else LEAST_ROWS
        sums, counts = (
            found.sums.sum(axis=1),
            np.maximum(found.counts, 0.0 if ground.is_exact else least),
        )
        sizes, k = counts.sum(axis=1), len(found.lift)
        rows = float(sizes.sum())
        gram = np.block([[rows * np.eye(k), sums.T], [sums, np.diag(sizes)]]) + least * np.eye(
            k + len(sizes)
        )
        of_rows = rows * np.einsum("cyk,cyj->jk", cell_costs, found.sums)
        of_groups = rows * np.einsum("cy,cyk->ck", counts, cell_costs)
        if found.means is not None and found.slopes is not None:
            of_groups += counts @ (1.0 - np.eye(ground.classes))
            of_groups -= sizes[:, np.newaxis] * found.means + sums @ found.slopes.T
        solved = np.linalg.solve(gram, np.concatenate([of_rows, of_groups]))
        weights, offsets = found.errors + solved[:k].T @ found.lift, solved[k:]
        assert ground.cells is not None
        if ground.outputs == 1:
            return GroupedRule(
                weights[:1] - weights[1:2], offsets[:, :1] - offsets[:, 1:2], ground.cells
            )
        return GroupedRule(-weights, -offsets, ground.cells)

    # -- sensitive features alone are protected, or nothing ----------------------------------------

    def _public(self, curator: Curator, ground: GameInstance, counts_multiplier: float) -> Moments:
        gram, by_label = curator.answer(
            [(GramMatrices(None), 0.0), (FeatureSums(None, by_label=True), 0.0)]
        )
        sums = by_label.reshape(-1, by_label.shape[-1])
        whole = principal(gram[0], ground.layout.width)
        if not len(whole):  # features that tell no rows apart: a coordinate that is always 0
            whole = np.zeros((1, 1 + ground.layout.width))
        # Features and labels are public: this model reads no group, and is free.
        errors = logistic_errors(curator, ground, whole)
        lift = whole[: self._width(ground, float(sums[:, 0].min()))]
        clip = None if ground.is_exact else LENGTH * math.sqrt(len(lift))
        # In a basis in which rows are about equally long: the clip then bounds noise without
        # cutting much.
        asked = FeatureSums(ground.cells, clip=clip, by_label=ground.by_label, basis=lift)
        measurements = [
            Measurement(ground.counts, counts_multiplier),
            Measurement(asked, self.multiplier),
        ]
        free = [replace(ground.counts, cells=None), replace(asked, cells=None)]
        counts, by_cell = ground.joint(curator, measurements, free, "counts and sums of the cells")
        counts = ground.table(counts)
        by_cell = by_cell.reshape(*counts.shape, len(lift))
        if not ground.is_exact:
            noise = (
                self.multiplier
                * math.sqrt(2.0 * asked.per_row)
                * float(clip or 0.0)
                * (ground.heaviest or 1.0)
            )
            by_cell = shrunk(
                by_cell, counts, ground, noise**2 * len(lift), ground.floor(counts_multiplier)
            )
        return Moments(errors, lift, by_cell, counts)

    def _width(self, ground: GameInstance, least: float) -> int:
        if self.width is not None or ground.is_exact:
            return self.width or ground.layout.width
        rows = least / ground.groups
        return max(
            2, int(CROWD * rows / (LENGTH * max(self.multiplier, 1e-9) * (ground.heaviest or 1.0)))
        )

    # -- records are protected ---------------------------------------------------------------------

    def _measurements_of_records(self, ground: GameInstance) -> list[Measurement]:
        clip = self.clip or math.sqrt(1.0 + ground.layout.numbers + len(ground.layout.code_sizes))
        sums = FeatureSums(ground.cells, clip, by_label=True)
        return [
            Measurement(GramMatrices(None, clip), self.multiplier),
            Measurement(sums, self.multiplier),
        ]

    def _private(self, curator: Curator, ground: GameInstance, counts_multiplier: float) -> Moments:
        gram_measurement, sums_measurement = self._measurements_of_records(ground)
        measurements = [
            Measurement(ground.counts, counts_multiplier),
            gram_measurement,
            sums_measurement,
        ]
        counts, gram, sums = curator.answer(
            measurements, purpose="counts, Gram matrix and sums of the cells"
        )
        counts = ground.table(counts)
        sums = sums.reshape(*counts.shape, -1)
        entry, coordinate = (
            measurement.multiplier * ground.move(measurement.question)
            for measurement in (gram_measurement, sums_measurement)
        )
        lift = principal(gram[0], ground.layout.width, entry * math.sqrt(2.0 * gram.shape[-1]))
        by_cell = sums @ lift.T
        per_row = 1 if ground.cells is None else ground.cells.per_row
        errors = _whitened_errors(by_cell.sum(axis=0) / per_row, counts.sum(axis=0) / per_row, lift)
        noise = coordinate**2 * float((lift**2).sum())
        by_cell = shrunk(by_cell, counts, ground, noise, ground.floor(counts_multiplier))
        second = gram[0] / max(float(gram[0, 0, 0]), LEAST)
        return Moments(errors, lift, by_cell, counts, errors @ second[0], errors @ second @ lift.T)


def principal(gram: Floats, most: int, noise: float = 0.0) -> Floats:
    """L, (k, 1 + width): z = L (1, x) has mean 0 and identity second moment over the rows of this
    Gram matrix.

    The first `most` principal components, of columns divided by their deviations where the matrix
    is exact. With `noise` (a bound on the spectral norm of the matrix's noise) of the columns as
    they are, and only where they exceed it.
    """
    rows = max(float(gram[0, 0]), LEAST)
    mean = gram[0, 1:] / rows
    spread = gram[1:, 1:] / rows - np.outer(mean, mean)
    deviations = np.sqrt(np.maximum(np.diag(spread), 0.0))
    units = (
        np.where(deviations > LEAST, 1.0 / np.maximum(deviations, LEAST), 0.0)
        if noise == 0
        else np.ones(len(mean))
    )
    values, vectors = np.linalg.eigh(spread * np.outer(units, units))
    order = np.argsort(values)[::-1][:most]
    kept = (
        order[values[order] > max(THIN * values[order[0]], noise / rows, LEAST)]
        if len(order)
        else order
    )
    lines = (vectors[:, kept] / np.sqrt(values[kept])).T * units
    return np.ascontiguousarray(np.column_stack([-lines @ mean, lines]))


def logistic_errors(curator: Curator, ground: GameInstance, lift: Floats) -> Floats:
    """What error is predicted for each class, (classes, 1 + width): the logistic regression's, to
    first order at even odds.

    With scores s of a softmax, P(Y != k) = 1 - 1/K - (s_k - mean s)/K + ...: for two classes the
    cheaper one is the logistic model's, where least squares would be another. Exact and free where
    features and labels are public: L-BFGS on the rows' exact gradients, in whitened coordinates.
    """
    basis = np.concatenate([np.eye(1, lift.shape[1]), lift])
    shape = (ground.outputs, len(basis))

    def loss(flat: Floats) -> tuple[float, Floats]:
        v = flat.reshape(shape)
        model = Linear(v @ basis)
        gradient, losses, count = curator.answer(
            [
                (GradientSum(model, None), 0.0),
                (GroupLosses(model, None, "log", clip=None), 0.0),
                (RowCount(), 0.0),
            ]
        )
        rows = max(float(count[0]), LEAST)
        value = float(losses[0]) / rows + 0.5 * SMOOTH * float((v[:, 1:] ** 2).sum())
        slope = gradient @ basis.T / rows
        slope[:, 1:] += SMOOTH * v[:, 1:]
        return value, slope.ravel()

    found = minimize(
        loss, np.zeros(math.prod(shape)), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
    )
    scores = found.x.reshape(shape) @ basis
    if ground.outputs == 1:
        scores = np.concatenate([np.zeros_like(scores), scores])
    errors = -(scores - scores.mean(axis=0)) / ground.classes
    errors[:, 0] += 1.0 - 1.0 / ground.classes
    return np.asarray(errors)


def regressed_errors(gram: Floats, sums: Floats) -> Floats:
    """The ridge regression of 1[Y != k] on rows, (classes, 1 + width), from exact sums by label."""
    rows = max(float(gram[0, 0]), LEAST)
    mean = gram[0, 1:] / rows
    spread = gram[1:, 1:] / rows - np.outer(mean, mean)
    ridge = RIDGE * np.diag(spread) + LEAST
    shares = sums[:, 0] / rows
    slopes = np.linalg.solve(
        spread + np.diag(ridge), -(sums[:, 1:] / rows - np.outer(shares, mean)).T
    ).T
    return np.column_stack([1.0 - shares - slopes @ mean, slopes])


def _whitened_errors(sums: Floats, counts: Floats, lift: Floats) -> Floats:
    """The same from sums of whitened rows by label, (classes, k), with noise; L leaves out what is
    noise alone."""
    rows = max(float(counts.sum()), LEAST)
    shares = np.clip(counts / rows, 0.0, 1.0)
    slopes = -(sums / rows - np.outer(shares, sums.sum(axis=0) / rows)) @ lift
    slopes[:, 0] += 1.0 - shares
    return np.asarray(slopes)


def shrunk(
    sums: Floats, counts: Floats, ground: GameInstance, noise: float, floor: float
) -> Floats:
    """Sums by (cell, label) whose mean's difference from its label's is shrunk. `noise`: trace of a
    sum's noise covariance."""
    per_row = 1 if ground.cells is None else ground.cells.per_row
    # what putting sums onto totals leaves of it
    share = (1.0 - per_row / ground.groups) if ground.sees_features else 1.0
    sizes = np.maximum(counts, floor)[..., np.newaxis]
    centres = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), floor)[:, np.newaxis]
    apart = sums / sizes - centres
    squares = (apart**2).sum(axis=-1, keepdims=True)
    kept = np.maximum(0.0, 1.0 - share * noise / sizes**2 / np.maximum(squares, LEAST**2))
    return np.asarray(sizes * (centres + kept * apart))
