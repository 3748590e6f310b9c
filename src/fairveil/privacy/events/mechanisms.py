"""Events of one mechanism on all rows: noise, choices, and what is known by its guarantee alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ... import _checks
from ...errors import InputError
from .event import Event, checked_multiplier

MOST_SENSITIVITY = 1 << 20  # of integers: their privacy loss is priced value by value


@dataclass(frozen=True)
class NoOp(Event):
    """Nothing that is protected was read. Free."""

    kind: ClassVar[str] = "no-op"


@dataclass(frozen=True)
class NonPrivate(Event):
    """Something protected was released without noise: epsilon is inf."""

    kind: ClassVar[str] = "non-private"


@dataclass(frozen=True)
class _Noise(Event):
    noise_multiplier: float

    def __post_init__(self) -> None:
        way_out = (
            "Multiplier 0 is no noise: that is NonPrivate(), or NoOp() when nothing protected is "
            "read."
        )
        _checks.normalise(self, noise_multiplier=checked_multiplier(self.noise_multiplier, way_out))


@dataclass(frozen=True)
class Gaussian(_Noise):
    """A vector with Gaussian noise, standard deviation = multiplier x L2 sensitivity
    (theory.md#t1).

    Also of the Gaussian rounded to the grid of exact sums, which is its post-processing
    (theory.md#noise).
    """

    kind: ClassVar[str] = "gaussian"


@dataclass(frozen=True)
class DiscreteGaussian(_Noise):
    """Integers with discrete Gaussian noise, sigma = multiplier x L2 sensitivity: 1/(2
    multiplier^2)-zCDP exactly."""

    kind: ClassVar[str] = "discrete-gaussian"


@dataclass(frozen=True)
class Laplace(_Noise):
    """A vector with Laplace noise, scale = multiplier x L1 sensitivity (dominated by one
    coordinate: theory.md#t5)."""

    kind: ClassVar[str] = "laplace"


@dataclass(frozen=True)
class DiscreteLaplace(Event):
    """Integers with discrete Laplace noise P(x) ~ exp(-|x| / scale), scale = multiplier x
    sensitivity, an integer L1."""

    kind: ClassVar[str] = "discrete-laplace"
    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        _checks.normalise(self, noise_multiplier=checked_multiplier(self.noise_multiplier))
        _checks.normalise(self, sensitivity=_checks.whole(at_least=1, sensitivity=self.sensitivity))
        if self.sensitivity > MOST_SENSITIVITY:
            raise InputError.expected(
                f"a sensitivity of at most {MOST_SENSITIVITY}",
                of="DiscreteLaplace.sensitivity",
                got=self.sensitivity,
                remedy=(
                    "Round to coarser integers, or describe it as Pure(1 / "
                    "noise_multiplier), which it is."
                ),
            )


@dataclass(frozen=True)
class Exponential(Event):
    """One choice by the exponential mechanism: epsilon-bounded range (theory.md#t6)."""

    kind: ClassVar[str] = "exponential"
    epsilon: float

    def __post_init__(self) -> None:
        _checks.normalise(self, epsilon=_checks.positive(epsilon=self.epsilon))


@dataclass(frozen=True)
class Pure(Event):
    """Any mechanism known only to be epsilon-differentially private."""

    kind: ClassVar[str] = "pure"
    epsilon: float

    def __post_init__(self) -> None:
        _checks.normalise(self, epsilon=_checks.positive(epsilon=self.epsilon))


@dataclass(frozen=True)
class Approximate(Event):
    """Any mechanism known only to be (epsilon, delta)-differentially private."""

    kind: ClassVar[str] = "approximate"
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _checks.normalise(self, epsilon=_checks.non_negative(epsilon=self.epsilon))
        _checks.normalise(self, delta=_checks.fraction(delta=self.delta, high_open=True))


@dataclass(frozen=True)
class ZeroConcentrated(Event):
    """Any mechanism known only to be rho-zero-concentrated differentially private."""

    kind: ClassVar[str] = "zero-concentrated"
    rho: float

    def __post_init__(self) -> None:
        _checks.normalise(self, rho=_checks.positive(rho=self.rho))


@dataclass(frozen=True)
class SamplerError(Event):
    """The samplers used elsewhere in the tree were within this total variation of their
    distributions (theory.md#t7).

    Costs (1 + e^epsilon) x total_variation of delta; several add up.
    """

    kind: ClassVar[str] = "sampler-error"
    total_variation: float

    def __post_init__(self) -> None:
        value = _checks.fraction(
            total_variation=self.total_variation, low_open=True, high_open=True
        )
        _checks.normalise(self, total_variation=value)
