"""Linear models in two units: of rows as they were coded, and of rows whose numbers the curator has
scaled inside.

Guarantees (tests/methods/test_methods_oracles.py):
1. The two are inverse, and scores of a row are the same in both.
"""

from __future__ import annotations

from .._types import Floats


def in_coded_units(weights: Floats, standard: tuple[Floats, Floats] | None) -> Floats:
    """The same models for numbers before they were scaled: w (x - c) / s = (w / s) x - w c / s."""
    if standard is None:
        return weights
    centre, scale = standard
    numbers = slice(1, 1 + len(centre))
    out = weights.copy()
    out[..., numbers] = weights[..., numbers] / scale
    out[..., 0] -= (out[..., numbers] * centre).sum(axis=-1)
    return out


def in_inner_units(weights: Floats, standard: tuple[Floats, Floats] | None) -> Floats:
    """The inverse of `in_coded_units`."""
    if standard is None:
        return weights
    centre, scale = standard
    numbers = slice(1, 1 + len(centre))
    out = weights.copy()
    out[..., 0] += (weights[..., numbers] * centre).sum(axis=-1)
    out[..., numbers] = weights[..., numbers] * scale
    return out
