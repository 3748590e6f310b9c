"""Settings of least squares: `Moments`, `CoefficientGrid`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _checks
from ...learning.quadratics import ROUNDS
from .setting import Setting, setting


@setting
class Moments(Setting):
    """Settings of least squares from Gram matrices that are released once.

    Pass it as ``solver=`` to `GroupObjectiveRegressor` or `TailoredRegressor`.

    Parameters
    ----------
    clip : float, default=None
        Largest norm of a row (1, x, y), in the units of `radius`. Longer rows are clipped, in
        reported losses too. A smaller one has less noise and more bias. None: 1.5 sqrt(2 +
        columns), and up to 4 sqrt(2 + columns) where noise is small.
    radius : float, default=None
        Largest norm of the coefficients, intercept included, where y and dense numbers are in their
        released standard deviations. None: no limit, but 10 where losses may get negative weights.
    rounds : int, default=200
        Largest number of calls of the linear oracle; they cost no privacy.
    penalty : float, default=None
        G in f + G max(0, g). None: that of Corollary 4.2.

    See Also
    --------
    CoefficientGrid : A private choice among coefficients.

    Examples
    --------
    >>> Moments(clip=3.0)
    Moments(clip=3.0)
    """

    clip: float | None = None
    radius: float | None = None
    rounds: int = ROUNDS
    penalty: float | None = None

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {
            "clip": lambda value: _checks.positive(clip=value),
            "radius": lambda value: _checks.positive(radius=value),
            "rounds": lambda value: _checks.whole(at_least=1, rounds=value),
            "penalty": lambda value: _checks.positive(penalty=value),
        }


@setting
class CoefficientGrid(Setting):
    """Settings of a private choice among coefficients.

    Pass it as ``solver=`` to `GroupObjectiveRegressor` with ``method="exponential"``.

    Parameters
    ----------
    radius : float, default=None
        Radius of the ball that the grid fills, where y and a schema's numbers are in [-1, 1]; not
        beside ``decisions``. None: 1.5.
    penalty : float, default=None
        G in f + G max(0, g). None: 5; budget is spent on it.

    See Also
    --------
    Moments : Finds coefficients from released sums.

    Examples
    --------
    >>> CoefficientGrid(radius=2.0)
    CoefficientGrid(radius=2.0)
    """

    radius: float | None = None
    penalty: float | None = None

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        return {
            "radius": lambda value: _checks.positive(radius=value),
            "penalty": lambda value: _checks.positive(penalty=value),
        }
