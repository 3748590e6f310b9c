"""Blocks whose numbers were mapped to other units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._types import Floats
from .block import Block


def mapped(block: Block, scale: Floats, shift: Floats) -> Block:
    """The block with its numbers mapped and kept finite. Never an error or a warning, whatever a
    row holds."""
    kind = block.numbers.dtype
    ends = np.finfo(kind)
    with np.errstate(all="ignore"):
        # finite factors and a finite shift: infinite perhaps, but always a number
        numbers = block.numbers * scale
        numbers += shift
        np.clip(numbers, float(ends.min), float(ends.max), out=numbers)
        return replace(block, numbers=numbers.astype(kind, copy=False))
