"""The leaves of a tree of DpEvents: one mechanism each, with a note where its event is looser than
it.

`share` turns a multiplier over the norm of one record's contribution into one over the sensitivity:
1/2 where a record is replaced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ... import _checks
from ...core.events import MOST_PARTS as MOST_PARTS
from ...core.events import (
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    PoissonSampled,
    Pure,
    Repeated,
    VisiblySampled,
    ZeroConcentrated,
)
from .imported import plain_number, refusal

Noted = tuple[Event, str]
ROUNDING = 1e-9
"""Relative rounding of probabilities that add up to 1."""
MOST_BUCKETS = 1 << 53


def leaf(name: str, fields: Mapping[str, Any], share: float) -> Event | None:
    """A noise event; None of other names."""
    match name:
        case "GaussianDpEvent":
            return noise(Gaussian, fields, share)
        case "LaplaceDpEvent":
            return noise(Laplace, fields, share)
        case "DiscreteLaplaceDpEvent":
            return _discrete_laplace(fields, share)
    return None


def noise(kind: type[Gaussian] | type[Laplace], fields: Mapping[str, Any], share: float) -> Event:
    """Multiplier 0 is no noise, and an infinite one is nothing else."""
    multiplier = _checks.non_negative(
        allow_inf=True, noise_multiplier=plain_number(fields["noise_multiplier"])
    )
    if multiplier == 0:
        return NonPrivate()
    return NoOp() if math.isinf(multiplier) else kind(multiplier * share)


def _discrete_laplace(fields: Mapping[str, Any], share: float) -> Event:
    """P(x) ~ exp(-a |x|): the scale is 1/a. A replaced record moves integers by up to twice as
    much."""
    decay = _checks.non_negative(
        allow_inf=True, noise_parameter=plain_number(fields["noise_parameter"])
    )
    sensitivity = _checks.whole(
        at_least=1, sensitivity=plain_number(fields["sensitivity"])
    ) * round(1.0 / share)
    if math.isinf(decay):
        return NonPrivate()
    return DiscreteLaplace(1.0 / decay / sensitivity, sensitivity) if decay > 0 else NoOp()


def randomized_response(fields: Mapping[str, Any]) -> Noted:
    """The bucket itself with probability 1 - p, else any of k: epsilon = log(1 + k (1 - p)/p)."""
    p = _checks.fraction(noise_parameter=plain_number(fields["noise_parameter"]))
    k = _checks.whole(at_least=1, num_buckets=plain_number(fields["num_buckets"]))
    if k > MOST_BUCKETS:
        raise refusal(
            "at most 2^53 buckets", "num_buckets", "more", "Say how many values an answer can have."
        )
    if p == 0:
        return (NonPrivate(), "") if k > 1 else (NoOp(), "")
    if p == 1 or k == 1:
        return NoOp(), ""
    note = (
        "Randomised response over more than two buckets was charged as over two." if k > 2 else ""
    )
    return Pure(math.nextafter(math.log1p(k * (1.0 - p) / p), math.inf)), note


def zero_concentrated(fields: Mapping[str, Any], *, emptied: bool) -> Noted:
    """rho; where records are emptied, a replaced one is two steps away, and rho becomes 4 rho (Bun
    and Steinke 2016)."""
    rho = _checks.non_negative(allow_inf=True, rho=plain_number(fields["rho"]))
    if _checks.non_negative(allow_inf=True, xi=plain_number(fields.get("xi", 0.0))) > 0:
        raise refusal(
            "xi=0",
            "ZCDpEvent",
            "xi above 0",
            "A constant added to every Renyi divergence has no event here.",
        )
    if math.isinf(rho):
        return NonPrivate(), ""
    return (ZeroConcentrated(rho * (4.0 if emptied else 1.0)) if rho > 0 else NoOp()), ""


def mixture(fields: Mapping[str, Any]) -> Noted:
    """One record moves a sum by c_i with probability p_i. A Poisson sample where it is 0 or c; else
    the largest c_i always."""
    deviation = _checks.non_negative(standard_deviation=plain_number(fields["standard_deviation"]))
    moves = [
        _checks.non_negative(sensitivity=plain_number(one))
        for one in _numbers(fields["sensitivities"])
    ]
    chances = [
        _checks.fraction(sampling_prob=plain_number(one))
        for one in _numbers(fields["sampling_probs"])
    ]
    if len(moves) != len(chances) or not moves or abs(math.fsum(chances) - 1.0) > ROUNDING:
        remedy = "Pass one probability a sensitivity; all together are 1."
        raise refusal(
            "probabilities that add up to 1",
            "MixtureOfGaussiansDpEvent",
            math.fsum(chances),
            remedy,
        )
    moving = {
        move: 0.0 for move, chance in zip(moves, chances, strict=True) if move > 0 and chance > 0
    }
    if not moving:
        return NoOp(), ""
    if deviation == 0:
        return NonPrivate(), ""
    largest = max(moving)
    if len(moving) == 1:
        rate = math.fsum(chance for move, chance in zip(moves, chances, strict=True) if move > 0)
        return PoissonSampled(min(1.0, rate), Gaussian(deviation / largest)), ""
    return Gaussian(
        deviation / largest
    ), "A mixture of Gaussians was charged as one Gaussian, at its largest sensitivity."


def truncated(fields: Mapping[str, Any], share: float) -> Noted:
    """A record is in the batch with probability at most q, whatever its value; the batch is charged
    as if it were seen (theory.md#t4)."""
    rate = _checks.fraction(sampling_probability=plain_number(fields["sampling_probability"]))
    inner = noise(Gaussian, fields, share)
    if rate == 0 or isinstance(inner, NoOp):
        return NoOp(), ""
    note = "Truncated Poisson batches were charged as if anybody saw who is in them."
    return (
        inner if rate == 1 or isinstance(inner, NonPrivate) else VisiblySampled(rate, inner)
    ), note


def tree(fields: Mapping[str, Any], share: float) -> Noted:
    """A record is in one leaf of one tree, and in all nodes above it: as many as the largest number
    of steps has binary digits."""
    given = plain_number(fields["step_counts"])
    counts = [given] if not isinstance(given, Sequence) else list(given)
    steps = [_checks.whole(step_count=plain_number(one)) for one in counts]
    inner, height = noise(Gaussian, fields, share), max(steps, default=0).bit_length()
    if height == 0:
        return NoOp(), ""
    return (inner if isinstance(inner, NoOp | NonPrivate) else Repeated(inner, height)), ""


def _numbers(values: object) -> Sequence[object]:
    listed = getattr(values, "tolist", lambda: values)()
    if isinstance(listed, str | bytes) or not isinstance(listed, Sequence):
        raise refusal("a list of numbers", "MixtureOfGaussiansDpEvent", values, "Pass [0.0, 1.0].")
    return listed
