"""Group losses of least squares from one release: a quadratic form a group, and linear oracles for
free (theory.md#gram).

With r = (1, x, y) and M_k = the sum of r r' over the rows of group k, released once, the loss of
coefficients c in group k is

    l_k(c) = (u / n0) sum_{i in k} (y_i - c.(1, x_i))^2 = v' M_k v u / n0,      v = (c, -1),

u the unit that puts squared errors into squared ranges of the target. A row that is longer than the
clip is clipped, and then counts as the square of what is left of it: sum r r' is still a sum of
squares, of rows with weights, and n0 the sum of these weights. `Differs:` the paper asks a private
gradient descent for every weighted sum of losses; here the least value of w.l(c) is post-processing
for any w, and is solved exactly (`ball`).

What is released is made usable, by public and released numbers alone:
- where only sensitive features are protected the total over groups is public, else one with noise
  of variance w is released: what is missing to it is shared in proportion to the variances of the
  groups' noise, which leaves of each v the v - v^2 / (w + sum v) that least squares can not take
  away (w = 0: public);
- each matrix is put onto the nearest positive semi-definite one: losses are then convex in c, and
  not negative. Losses that are reported are those of the matrix as it was released;
- a group counts at least two deviations of its noise;
- directions in which a group's rows are spread less than the noise teach nothing of it: its form is
  raised there. With s a part of the noise's spectral norm and e the spread along an eigenvector, by
  s^2 / max(e, s): little where e is large.

So a group of n rows tells about n e / s in a direction, e the spread of one row: below 1 its
coefficients there stay near 0, or near what other groups ask for. Halving the clip quarters s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ...facts import Cells
from ..oracles.ground import LEAST_ROWS
from ..systems import NO_GROUPS, columns_of
from .ball import least_in_ball

CUT = 1e-10  # of the largest spread: below it a direction is one that no row has, but for rounding
LEAST_SHARE = 1e-12
RIDGE = 0.4  # of the noise's spectral norm: s
CERTAIN = 3.0  # deviations of the noise


@dataclass(frozen=True, eq=False)
class Released:
    """What quadratics were made of: the matrices as they were answered, with the noise of their
    diagonals, and public facts."""

    answer: Floats
    noise: Floats
    cells: Cells | None
    total: Floats | None
    total_noise: float
    lost: Floats | None
    ridge: float | None


@dataclass(frozen=True, eq=False)
class GroupQuadratics:
    """Group losses as functions of coefficients (1 + width,): released values alone. Make one with
    `of`.

    `released`: M_k u / n0, (cells, d, d); `forms`: those that are minimised; `noise` (cells,): the
    standard deviation of a diagonal entry of M_k; `shares`: the groups' of all rows; `least`: the
    least share of one; `has_rows`: whether the released number of rows can be told from none;
    `raw`: what all of these were made of.
    """

    released: Floats
    forms: Floats
    shares: Floats
    rows: float
    noise: Floats
    unit: float
    least: float
    radius: float = math.inf
    has_rows: bool = True
    raw: Released | None = None

    @staticmethod
    def of(
        answer: Floats,
        *,
        noise: float | Floats,
        cells: Cells | None,
        total: Floats | None = None,
        total_noise: float = 0.0,
        lost: Floats | None = None,
        unit: float = 0.25,
        radius: float = math.inf,
        ridge: float | None = None,
    ) -> GroupQuadratics:
        """From released matrices (cells, d, d). `noise`: the deviation of a diagonal entry, one for
        all or one a cell; `total`: of all rows, where it is public or was released with
        `total_noise`; `lost`: what clipping rows took from a public one; `unit`: u; `ridge`: s,
        None: by the noise."""
        answer = np.array(answer, np.float64)
        noise = np.array(np.broadcast_to(noise, len(answer)), np.float64)
        raw = Released(answer.copy(), noise.copy(), cells, total, total_noise, lost, ridge)
        for column in columns_of(cells or NO_GROUPS) if total is not None else ():
            known = np.asarray(total), total_noise
            answer[column], noise[column] = _onto_total(answer[column], noise[column], *known)
        # A released size may be below 0 by its noise; what divides is two deviations at least.
        least = np.where(noise > 0.0, np.maximum(LEAST_ROWS, 2.0 * noise), LEAST_SHARE)
        counts = np.maximum(answer[:, 0, 0], least)
        for column in columns_of(cells or NO_GROUPS) if lost is not None else ():
            answer[column] += (counts[column] / counts[column].sum())[
                :, np.newaxis, np.newaxis
            ] * lost
        # The first entry of a matrix is its number of rows, as the intercept's coordinate is 1.
        counted = float(answer[:, 0, 0].sum()) > CERTAIN * float(np.linalg.norm(noise))
        has_rows = counted or (total is not None and not total_noise)
        counts = np.maximum(answer[:, 0, 0], least)
        n0 = float(max(counts.sum() / (1 if cells is None else cells.per_row), LEAST_SHARE))
        raises = (
            # The spectral norm of a symmetric matrix of noise is about deviation x sqrt(2 d), with
            # s on the diagonal and s / sqrt(2) beside it.
            RIDGE * noise * math.sqrt(2.0 * answer.shape[-1])
            if ridge is None
            else np.full(len(answer), ridge)
        )
        sized = zip(answer, noise, raises, strict=True)
        forms = np.stack(
            [
                _raised(_sum_of_squares(one, exact=bool(s == 0)), float(size))
                for one, s, size in sized
            ]
        )
        of = unit / n0
        least_share = float(least.min()) / n0
        return GroupQuadratics(
            answer * of,
            forms * of,
            counts / n0,
            n0,
            noise,
            unit,
            least_share,
            radius,
            has_rows,
            raw,
        )

    # -- the same release, taken otherwise ---------------------------------------------------------

    @property
    def can_be_halved(self) -> bool:
        """Whether there is noise to be distinguished, and more than one group to follow."""
        return self.raw is not None and len(self.forms) > 1 and bool(self.raw.noise.any())

    def halves(
        self, rng: np.random.Generator, part: float
    ) -> tuple[GroupQuadratics, GroupQuadratics]:
        """Two releases out of one: M + part Z and M - Z / part, Z of the noise's distribution, have
        independent noise."""
        raw = self._known
        z = _symmetric(rng, raw.answer.shape) * raw.noise[:, np.newaxis, np.newaxis]
        # cov(Z0 + part Z, Z0 - Z / part) = var Z0 - var Z = 0: uncorrelated, and Gaussian, so
        # independent.
        ways = ((part, math.hypot(1.0, part)), (-1.0 / part, math.hypot(1.0, 1.0 / part)))
        totals = [raw.total] * 2
        if raw.total_noise and raw.total is not None:
            of_total = _symmetric(rng, raw.total.shape) * raw.total_noise
            totals = [raw.total + by * of_total for by, _ in ways]
        first, second = (
            self._again(
                raw.answer + by * z,
                raw.noise * more,
                raw.cells,
                raw.ridge,
                total=total,
                total_noise=raw.total_noise * more,
            )
            for (by, more), total in zip(ways, totals, strict=True)
        )
        return first, second

    def of_everybody(self, *, raised: bool) -> GroupQuadratics:
        """All rows as one group, where totals are public, and exact, or released. `raised`: in
        directions in which all rows together are spread less than one group's noise, as a group's
        are: losses of coefficients that are long there are not known in any group. Released ones are
        always raised, by as much as all groups together are."""
        raw = self._known
        assert raw.total is not None
        whole = np.asarray(raw.total).reshape(1, *raw.answer.shape[1:])
        usual = RIDGE * math.sqrt(2.0 * raw.answer.shape[-1])
        if not raw.total_noise:
            size = usual * float(raw.noise.max()) if raw.ridge is None else raw.ridge
            return self._again(whole, np.zeros(1), None, size if raised else 0.0, total=raw.total)
        columns = columns_of(raw.cells or NO_GROUPS)
        size = usual * float(raw.noise.sum()) / len(columns) if raw.ridge is None else raw.ridge
        sums = np.array([whole[0], *(raw.answer[column].sum(axis=0) for column in columns)])
        of_sums = [float((raw.noise[column] ** 2).sum()) for column in columns]
        # The total and the groups' sums are releases of one matrix: each counts by its precision
        # (docs/theory/mechanisms.md, release once).
        precision = 1.0 / np.array([raw.total_noise**2, *of_sums])
        whole = np.average(sums, axis=0, weights=precision)[np.newaxis]
        return self._again(whole, np.full(1, float(precision.sum()) ** -0.5), None, size)

    def _again(
        self,
        answer: Floats,
        noise: Floats,
        cells: Cells | None,
        ridge: float | None,
        *,
        total: Floats | None = None,
        total_noise: float = 0.0,
    ) -> GroupQuadratics:
        facts = {
            "unit": self.unit,
            "radius": self.radius,
            "ridge": ridge,
            "total": total,
            "total_noise": total_noise,
            "lost": self._known.lost,
        }
        return GroupQuadratics.of(answer, noise=noise, cells=cells, **facts)  # type: ignore[arg-type]  # by their names

    @property
    def _known(self) -> Released:
        assert self.raw is not None
        return self.raw

    def hides(self, rows: float, per_row: int = 1) -> bool:
        """Whether none of so many rows is told, though all would be if they counted in full: they
        were clipped."""
        return not self.has_rows and rows * per_row > CERTAIN * float(np.linalg.norm(self.noise))

    def losses(self, c: Floats) -> Floats:
        """l(c), (..., cells), of coefficients (..., 1 + width)."""
        return _values(self.forms, c)

    def measured(self, c: Floats) -> Floats:
        """The same by the matrices as they were released: unbiased at coefficients that do not
        depend on them."""
        return _values(self.released, c)

    def deviation(self, c: Floats) -> Floats:
        """The standard deviation of each of `measured`, where c does not depend on the noise: that
        has one size in every direction, so it is that times |v|^2."""
        return np.asarray(self.noise * (self.unit / self.rows * (1.0 + float(c @ c))))

    def deviation_of_difference(self, c: Floats, other: Floats) -> Floats:
        """The standard deviation of `measured(c)` - `measured(other)`, where neither depends on the
        noise."""
        v, w = (np.append(one, -1.0) for one in (c, other))
        squares = float(v @ v) ** 2 + float(w @ w) ** 2 - 2.0 * float(v @ w) ** 2
        return np.asarray(self.noise * (self.unit / self.rows * math.sqrt(max(squares, 0.0))))

    def spread(self, c: Floats) -> Floats:
        """The same where c was found in the same matrices, and follows their noise: half of the
        most that it can be in any direction, the spectral norm (sqrt(2 d) deviations). Losses at
        such c are rather too low than too high."""
        return self.deviation(c) * max(1.0, math.sqrt(self.forms.shape[-1] / 2.0))

    def best(self, weights: Floats) -> Floats:
        """The linear oracle: the c in the ball that makes w.l(c) least, for weights of any sign."""
        form = np.einsum("k,kij->ij", weights, self.forms)
        matrix, vector = form[:-1, :-1], form[:-1, -1]
        if math.isfinite(self.radius) or weights.min(initial=0.0) < 0:
            return least_in_ball(matrix, vector, self.radius)
        # without a ball no unit is special: columns of one length lose few digits
        sizes = _sizes(np.diag(matrix))
        values, basis = np.linalg.eigh(matrix / np.outer(sizes, sizes))
        told = values > CUT * max(float(values[-1]), 1e-300)
        return np.asarray(
            basis[:, told] @ (basis[:, told].T @ (vector / sizes) / values[told]) / sizes
        )


def _symmetric(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Symmetric matrices of the release's distribution: variance 1 on the diagonal, half of it
    beside."""
    drawn = rng.standard_normal(shape)
    return np.asarray((drawn + np.swapaxes(drawn, -1, -2)) / 2.0)


def _onto_total(
    answer: Floats, noise: Floats, total: Floats, total_noise: float
) -> tuple[Floats, Floats]:
    """The likeliest matrices beside their total, by the noise's distribution, and what noise is left
    in each."""
    variance = noise**2
    sizes = np.full(len(noise), 1.0 / len(noise))
    share = variance / (variance.sum() + total_noise**2) if variance.any() else sizes
    missing = total.reshape(answer.shape[1:]) - answer.sum(axis=0)
    return answer + share[:, np.newaxis, np.newaxis] * missing, noise * np.sqrt(
        np.maximum(1.0 - share, 0.0)
    )


def _values(forms: Floats, c: Floats) -> Floats:
    c = np.asarray(c, np.float64)
    v = np.concatenate([c, np.full((*c.shape[:-1], 1), -1.0)], axis=-1)
    return np.asarray(np.einsum("...i,kij,...j->...k", v, forms, v))


def _sum_of_squares(matrix: Floats, *, exact: bool) -> Floats:
    """The nearest positive semi-definite matrix (Frobenius). Of an exact one, in units in which all
    columns have one length, and without what rounding alone has left in directions that no row has,
    and in columns that never change."""
    squares = np.diag(matrix)
    there = squares > CUT**2 * squares.max(initial=0.0) if exact else np.ones(len(matrix), bool)
    sizes = np.where(there & exact, np.sqrt(np.maximum(squares, 0.0)), 1.0)
    values, basis = np.linalg.eigh(
        (matrix + matrix.T) / 2.0 * np.outer(there / sizes, there / sizes)
    )
    kept = np.where(values > CUT * max(float(values[-1]), 1e-300), values, 0.0)
    return np.asarray((basis * kept) @ basis.T * np.outer(there * sizes, there * sizes))


def _raised(matrix: Floats, size: float) -> Floats:
    """With more where rows are spread less than `size`; the target's own line and column are left
    as they are."""
    if size == 0.0:
        return matrix
    values, basis = np.linalg.eigh(matrix[:-1, :-1])
    out = matrix.copy()
    out[:-1, :-1] += (basis * (size**2 / np.maximum(values, size))) @ basis.T
    return out


def _sizes(squares: Floats) -> Floats:
    return np.where(squares > 0.0, np.sqrt(np.maximum(squares, 0.0)), 1.0)
