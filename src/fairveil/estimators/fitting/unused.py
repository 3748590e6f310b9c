"""Arguments that a fit would not read are refused, in one wording: a value that does nothing would
seem to matter.

What only some promises make idle is *not* refused: `clip`, `delta` and their like at `epsilon=inf`,
or `max_sample_weight` where no rows have weights. Searches and frontiers go over epsilons with all
other arguments the same, and nobody is told more than is true by it. Refused is what other
arguments of the same call make idle, where somebody may believe that it counts.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import InputError
from ..settings.setting import Setting, changed, knobs


def refuse(estimator: object, idle: Mapping[str, str | None]) -> None:
    """An error for the first argument that is not its default and would not be used.

    `idle`: by argument where it is not used, in words that begin with "with" or "without"; None: it
    is used.
    """
    parameters = inspect.signature(type(estimator)).parameters
    for name, where in idle.items():
        given, default = getattr(estimator, name), parameters[name].default
        if where is None or _same(given, default):
            continue
        remedy = f"{name} is not used {where}; leave it out."
        raise InputError.expected(f"{default!r} {where}", of=name, got=_shown(given), remedy=remedy)


def refuse_others(given: object, kind: type[Setting], where: str) -> None:
    """An error for the first knob, of settings of another kind or beside those of this one, that
    this kind has not."""
    if not isinstance(given, Setting):
        return
    for name, value in changed(given).items():
        if name not in knobs(kind):
            remedy = f"{name} is not used {where}; leave it out."
            raise InputError.expected(f"None {where}", of=name, got=_shown(value), remedy=remedy)


def _same(given: object, default: object) -> bool:
    plain = isinstance(given, int | float | str | np.generic) and isinstance(
        default, int | float | str
    )
    return given is default or (plain and bool(given == default))


def _shown(given: object) -> Any:
    return given if given is None or isinstance(given, int | float | str) else type(given).__name__
