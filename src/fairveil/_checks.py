"""Keyword validators; they are defined in the trusted room."""

from __future__ import annotations

from .core.checks import fields_of as fields_of
from .core.checks import fraction as fraction
from .core.checks import instance as instance
from .core.checks import named as named
from .core.checks import non_negative as non_negative
from .core.checks import normalise as normalise
from .core.checks import one_of as one_of
from .core.checks import positive as positive
from .core.checks import truth as truth
from .core.checks import whole as whole
