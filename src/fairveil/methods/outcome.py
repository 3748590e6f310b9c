"""What a descent found for one model, and which constraints it does not meet, as far as noisy
values can tell."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _verdicts as verdicts
from .._types import Floats
from .comparison import Comparison
from .descent import Reason


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a search found for one model: released values only.

    `weights` (outputs, 1 + width), the intercept first. `values`: each constraint's value of this
    very model, noisy (exact without privacy), with the standard deviation of its noise in `spread`.
    `duals`: how hard each was pressed at the end. `looks`: from how many models this one may have
    been picked by these very values. `sampling`: the standard deviation of each value over draws of
    the rows (`fairness.deviations`); None: not known. `comparison`: what was released to compare it
    with what costs nothing; of a search that has just ended, and None of one that was read from
    disk. `weight_noise`: a bound on the standard deviation of the noise of one coefficient (of an
    indicator, or of a number in the search's units); None: not known. `standard`: centre and scale
    of the numbers in the search's units; None: those of the rows. `inside`: where the search aimed,
    inside the bounds; None: at them.
    """

    weights: Floats
    reason: Reason
    rounds: int
    names: tuple[str, ...]
    bounds: Floats
    values: Floats
    spread: Floats
    duals: Floats
    counts: Floats
    rows: float
    looks: int = 1
    comparison: Comparison | None = None
    sampling: Floats | None = None
    weight_noise: float | None = None
    standard: tuple[Floats, Floats] | None = None
    inside: Floats | None = None

    @property
    def aims(self) -> Floats:
        """Where the search aimed."""
        return self.bounds if self.inside is None else self.inside

    @property
    def learnt(self) -> bool:
        """Whether there is anything in the model: a search that could not tell its rows from none
        leaves it at zero."""
        return bool(self.weights.any())

    @property
    def broken(self) -> tuple[int, ...]:
        """The constraints that are not met."""
        return not_met(self.values, self.bounds, self.spread)


def not_met(values: Floats, bounds: Floats, spread: Floats) -> tuple[int, ...]:
    """Which constraints are above their bounds by more than noise of these deviations explains."""
    told = [
        verdicts.of_noisy(float(value), float(bound), float(noise), among=len(values))
        for value, bound, noise in zip(values, bounds, spread, strict=True)
    ]
    return tuple(j for j, verdict in enumerate(told) if verdict == verdicts.NOT_MET)
