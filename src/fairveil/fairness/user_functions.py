"""A function of group losses that a user made, tried at some points in advance of any data."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .._types import Floats
from ..errors import InputError
from .group_function import GroupFunction
from .outer import Outer

USER_MADE = "a user-made objective"


def checked(
    function: GroupFunction, *, points: int = 200, tolerance: float = 1e-6
) -> GroupFunction:
    """A user's function, if no sampled vector breaks what is stated of it; else an error that says
    what did.

    Sampling refutes, it proves nothing: `trusted` stays, and the statement says so. Vectors are in
    [0, 1], all 0 and all 1 among them, many sum to 1; pairs are far apart and close. Where the
    gradient has no Lipschitz constant it may be another than that of finite differences at less
    than half of the vectors.
    """
    outer, m = function.outer, function.lines.shape[0]
    rng = np.random.default_rng(0)
    v, w = rng.dirichlet(np.ones(m), points), rng.random((points, m))
    v[:2] = np.array([[0.0], [1.0]])
    near = np.clip(w + 1e-3 * rng.standard_normal(w.shape), 0.0, 1.0)
    starts, ends = np.concatenate([v, w, near]), np.concatenate([w, v, w])
    values, others, middle = (
        _finite(outer.value, place) for place in (starts, ends, (starts + ends) / 2.0)
    )
    slopes, at_ends = _finite(outer.gradient, starts), _finite(outer.gradient, ends)
    scale = 1.0 + float(np.abs(values).max())
    slack = tolerance * scale
    away = ends - starts
    apart = np.linalg.norm(away, axis=-1)
    if outer.convex and (middle > (values + others) / 2.0 + slack).any():
        _refuse(
            "a convex function",
            "one whose middle lies above",
            "State convex=False, and choose by method='exponential'.",
        )
    if outer.convex and (others < values + (slopes * away).sum(axis=-1) - slack).any():
        _refuse(
            "a subgradient of the function",
            "a line that is above it",
            "Check `gradient` by finite differences.",
        )
    steepest = max(
        float(np.linalg.norm(slopes, axis=-1).max()), float((np.abs(others - values) / apart).max())
    )
    if steepest > outer.steepness(m) * (1.0 + tolerance) + slack:
        _refuse(
            f"slopes of at most {outer.steepness(m):g}, as stated",
            f"one of {steepest:g}",
            "State a larger lipschitz.",
        )
    bend, turned = outer.bend(m), float((np.linalg.norm(at_ends - slopes, axis=-1) / apart).max())
    if turned > bend * (1.0 + tolerance) + slack:
        _refuse(
            f"gradients that turn by at most {bend:g}, as stated",
            f"{turned:g}",
            "State a larger smoothness, or inf.",
        )
    _check_differences(outer, starts[::3], slopes[::3], 1e-3 * scale, bend)
    if outer.monotone and (slopes < -slack).any():
        _refuse("a non-decreasing function", "a negative slope", "State monotone=False.")
    return function


def _check_differences(
    outer: Outer, at: Floats, slopes: Floats, allowed: float, bend: float
) -> None:
    """The gradient beside finite differences; `bend`: its Lipschitz constant, inf if there is
    none."""
    step, smooth = 1e-6, math.isfinite(bend)
    allowed += bend * step if smooth else 0.0
    m = at.shape[-1]
    for axis in range(m):
        shift = step * np.eye(m)[axis]
        low, high = np.maximum(at - shift, 0.0), np.minimum(at + shift, 1.0)
        rise = (_finite(outer.value, high) - _finite(outer.value, low)) / (high - low)[:, axis]
        off = np.abs(rise - slopes[:, axis]) > allowed
        if off.mean() > (0.05 if smooth else 0.5):
            _refuse(
                "the gradient of the function",
                f"another along rate {axis}",
                "Check `gradient` by finite differences.",
            )


def _finite(function: Callable[[Floats], Floats], v: Floats) -> Floats:
    """At sampled vectors, which are public: what a user's function says of them may be shown."""
    remedy = (
        "Return a number, and a gradient with a number for each rate, at every vector of rates in "
        "[0, 1]."
    )
    try:
        found = function(v)
    except Exception as problem:
        got = f"{type(problem).__name__}: {problem}"
        raise InputError.expected("a number", of=USER_MADE, got=got, remedy=remedy) from problem
    if not np.isfinite(found).all():
        _refuse("finite values and gradients", "NaN or infinite ones", remedy)
    return found


def _refuse(expected: str, got: str, remedy: str) -> None:
    raise InputError.expected(expected, of=USER_MADE, got=got, remedy=remedy)
