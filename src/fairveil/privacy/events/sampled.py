"""Events on some of the rows, and the best of several runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ... import _checks
from ...errors import InputError
from .composition import MOST_TIMES, Composed, Repeated, count_parts, joint_parts
from .event import Event, brief, need_event
from .mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, NoOp
from .per_cell import PerCell

MOST_PARTS = 1 << 16  # of one joint release


MOST_CUTS = 1 << 33  # of a partition: as many as the rows that there may be


@dataclass(frozen=True)
class PoissonSampled(Event):
    """A joint release on one secret Poisson batch: every row is in it with probability `rate`,
    independently.

    `event` is a noise event or a `Composed` of them (one joint release). Multipliers are over the
    largest norm c_j of one row's contribution; `spreads` (replace-one only; default 2 each) are d_j
    / c_j. Two `PoissonSampled` are two batches, drawn independently: never describe two answers
    from one batch that way (theory.md#one-batch).
    """

    kind: ClassVar[str] = "poisson-sampled"
    rate: float
    event: Event
    spreads: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _checks.normalise(self, rate=_checks.fraction(rate=self.rate, low_open=True))
        if count_parts(need_event(self.event)) > MOST_PARTS:
            raise InputError.expected(
                f"at most {MOST_PARTS} parts on one batch",
                of="PoissonSampled.event",
                got="more",
                remedy=(
                    "Repeat the sampled event, not what is inside it: every repetition "
                    "draws a batch of its own."
                ),
            )
        parts = joint_parts(self.event)
        if any(
            not isinstance(part, (Gaussian, DiscreteGaussian, Laplace, DiscreteLaplace, PerCell))
            for part in parts
        ):
            raise InputError.expected(
                "a noise event, or a Composed of noise events",
                of="PoissonSampled.event",
                got=self.event,
                remedy=(
                    "Compose sampled events outside; inside is one joint release on one batch."
                ),
            )
        if self.spreads is not None:
            spreads = tuple(_checks.non_negative(spread=s) for s in self.spreads)
            # Two vectors of norm c are never further apart than 2c.
            if len(spreads) != len(parts) or any(s > 2 for s in spreads):
                raise InputError.expected(
                    f"{len(parts)} spreads in [0, 2], one a part",
                    of="spreads",
                    got=self.spreads,
                    remedy="Two contributions of norm at most c are at most 2c apart.",
                )
            _checks.normalise(self, spreads=spreads)


@dataclass(frozen=True)
class VisiblySampled(Event):
    """An event on a Poisson batch whose membership the observer may see (theory.md#t4). Multipliers
    are over sensitivities.

    Replace-one only, where who is present is public and a batch is drawn whatever their values:
    under add-remove the batch itself would give a new member away, and pricing refuses it.
    """

    kind: ClassVar[str] = "visibly-sampled"
    rate: float
    event: Event

    def __post_init__(self) -> None:
        _checks.normalise(self, rate=_checks.fraction(rate=self.rate, low_open=True))
        need_event(self.event)


@dataclass(frozen=True)
class OnPart(Event):
    """A release on one fixed part of a partition of the rows into `parts`, drawn by place alone
    (theory.md#t8).

    Replace-one only: who is present is public and keeps her place, so of one partition she is in
    one part, always the same one, and parts compose in parallel. An epoch over all parts costs one
    release on all rows. Under add-remove pricing refuses it: a row that comes moves others from
    part to part. Multipliers are over sensitivities, as on all rows.
    """

    kind: ClassVar[str] = "on-part"
    event: Event
    part: int
    parts: int

    def __post_init__(self) -> None:
        _checks.normalise(
            self,
            parts=_checks.whole(at_least=1, parts=self.parts),
            part=_checks.whole(part=self.part),
        )
        if self.part >= self.parts or self.parts > MOST_CUTS:
            raise InputError.expected(
                f"a part below the number of parts, at most {MOST_CUTS} of them",
                of="OnPart",
                got=(self.part, self.parts),
                remedy=(
                    "Parts are numbered from 0: OnPart(Gaussian(2.0), 0, 10) is the first of ten."
                ),
            )
        # Parallel composition is proved for plain noise on a part (docs/theory/sampling.md, T8).
        if not _is_noise(need_event(self.event)):
            raise InputError.expected(
                "a noise event, or a Composed or Repeated of noise events",
                of="OnPart.event",
                got=brief(self.event),
                remedy="Compose parts, batches and choices outside.",
            )


@dataclass(frozen=True)
class PrivateSelection(Event):
    """The best of a random number of runs of `event` (its private score included), the number drawn
    from a truncated negative binomial of this `mean` and `shape` (1: geometric; 0: logarithmic;
    inf: Poisson)."""

    kind: ClassVar[str] = "private-selection"
    event: Event
    mean: float
    shape: float

    def __post_init__(self) -> None:
        need_event(self.event)
        _checks.normalise(self, mean=_checks.positive(mean=self.mean))
        _checks.normalise(self, shape=_checks.non_negative(shape=self.shape, allow_inf=True))
        for name, value in (("mean", self.mean), ("shape", self.shape)):
            if MOST_TIMES < value < math.inf:
                remedy = "Nothing is run that often."
                raise InputError.expected(
                    "at most 2^60", of=f"PrivateSelection.{name}", got=value, remedy=remedy
                )
        # A truncated negative binomial number is 1 at least, and so is its mean.
        if self.mean < 1 and not math.isinf(self.shape):
            raise InputError.expected(
                "a mean of at least 1 (the number of runs is never 0)",
                of="PrivateSelection.mean",
                got=self.mean,
                remedy="Pass shape=inf for a Poisson number of runs, which may be 0.",
            )


def _is_noise(event: Event) -> bool:
    """Whether it is made of unsampled noise events alone."""
    if isinstance(event, Composed):
        return all(_is_noise(inner) for inner in event.events)
    if isinstance(event, Repeated):
        return _is_noise(event.event)
    return isinstance(
        event, Gaussian | DiscreteGaussian | Laplace | DiscreteLaplace | PerCell | NoOp
    )
