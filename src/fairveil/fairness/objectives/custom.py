"""A user's function of rates as an objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from scipy import sparse

from ... import _checks
from ..._types import Floats
from ...errors import InputError
from .. import outer
from ..group_function import GroupFunction, stacked
from ..user_functions import checked
from .objective import Frame, Objective


@dataclass(frozen=True, eq=False)
class Custom(Objective):
    """A user's function of rates: `value(v)`, `gradient(v)` of a vector v, and its constants (L2),
    which are checked by sampling and otherwise trusted, as the statement says.

    `rates`: "losses", the mean loss of each group; "frequencies", l itself, one number a cell,
    label and prediction.
    """

    kind: ClassVar[str] = "custom"
    value: Callable[[Floats], Any]
    gradient: Callable[[Floats], Any]
    lipschitz: float
    smoothness: float = math.inf
    convex: bool = True
    monotone: bool = False
    rates: str = "losses"

    def __post_init__(self) -> None:
        _checks.one_of(("losses", "frequencies"), rates=self.rates)
        _checks.normalise(self, lipschitz=_checks.positive(lipschitz=self.lipschitz))
        _checks.normalise(
            self, smoothness=_checks.non_negative(smoothness=self.smoothness, allow_inf=True)
        )
        for name, given in _checks.named(self, ("value", "gradient")).items():
            if not callable(given):
                remedy = "Pass a function of a vector of rates."
                raise InputError.expected("a function", of=name, got=given, remedy=remedy)

    def at(self, frame: Frame) -> GroupFunction:
        size = math.prod(frame.shape)
        lines = (
            stacked(frame.losses(), frame.shape)
            if self.rates == "losses"
            else sparse.csr_array(sparse.eye_array(size))
        )
        stated = outer.Stated(
            self.value, self.gradient, self.lipschitz, self.smoothness, self.convex, self.monotone
        )
        return checked(GroupFunction(frame.shape, lines, stated, trusted=True))
