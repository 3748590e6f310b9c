"""What was done to the data, as an immutable tree that can be priced before and after it is done.

Multipliers, not scales. Everywhere but inside `PoissonSampled`, a noise multiplier is the noise's
scale (standard deviation of a Gaussian, scale of a Laplace) divided by the *sensitivity under the
relation of the promise*: the most that one neighbour moves the total, in L2 for Gaussians and L1
for Laplace. The relation has then done its work, and unsampled events cost the same under every
relation. Inside `PoissonSampled`, where a person may be present, absent or replaced by another, it
is the scale divided by the largest norm c of *one row's contribution*, and `spreads` says how far a
replaced row moves the total in units of c (2 for signed vectors, sqrt 2 for histograms):
theory.md#t2, #t3.

An event holds only public numbers, and may be printed.
"""

from __future__ import annotations

from .composition import MOST_TIMES as MOST_TIMES
from .composition import Composed, Repeated, compose, joint_parts, spelled_out
from .event import LARGEST as LARGEST
from .event import SMALLEST as SMALLEST
from .event import Event
from .files import FORMAT_VERSION as FORMAT_VERSION
from .files import KINDS as KINDS
from .files import from_dict, from_json_dict, to_json_dict
from .mechanisms import MOST_SENSITIVITY as MOST_SENSITIVITY
from .mechanisms import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    Pure,
    SamplerError,
    ZeroConcentrated,
)
from .per_cell import LATER as LATER
from .per_cell import PerCell
from .sampled import MOST_CUTS as MOST_CUTS
from .sampled import MOST_PARTS as MOST_PARTS
from .sampled import OnPart, PoissonSampled, PrivateSelection, VisiblySampled

__all__ = [  # noqa: RUF022 -- from one mechanism to several
    "Event",
    "NoOp",
    "NonPrivate",
    "Gaussian",
    "DiscreteGaussian",
    "Laplace",
    "DiscreteLaplace",
    "Exponential",
    "Pure",
    "Approximate",
    "ZeroConcentrated",
    "SamplerError",
    "PerCell",
    "Composed",
    "Repeated",
    "PoissonSampled",
    "VisiblySampled",
    "OnPart",
    "PrivateSelection",
    "compose",
    "spelled_out",
    "joint_parts",
    "to_json_dict",
    "from_json_dict",
    "from_dict",
]
