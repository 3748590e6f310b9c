"""The least value of a quadratic function on a ball: against brute force, and against the
conditions that a solution meets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairveil.errors import InputError
from fairveil.learning.least_squares.ball import least_in_ball


def problems(count: int, seed: int):
    """Definite, indefinite, singular and diagonal matrices, vectors of any size, some orthogonal to
    the lowest eigenvector."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        size = int(rng.integers(1, 6))
        A = rng.normal(size=(size, size))
        A = A + A.T
        kind = rng.integers(4)
        if kind == 0:
            A = A @ A
        elif kind == 1:
            A = A @ A
            A -= np.linalg.eigvalsh(A)[0] * np.eye(size)
        elif kind == 2:
            A = np.diag(rng.integers(-2, 3, size)).astype(float)
        b = rng.normal(size=size) * 10 ** rng.uniform(-3, 3)
        if rng.random() < 0.3:  # the hard case
            lowest = np.linalg.eigh(A)[1][:, 0]
            b -= lowest * (lowest @ b)
        yield A, b * (rng.random() > 0.05), 10 ** rng.uniform(-2, 2)


def test_guarantee_1_the_conditions_of_a_solution_hold() -> None:
    for A, b, radius in problems(3000, 0):
        c = least_in_ball(A, b, radius)
        length = float(np.linalg.norm(c))
        assert length <= radius * (1 + 1e-12)
        slope = A @ c - b
        m = -float(slope @ c) / max(float(c @ c), 1e-300)
        unit = float(np.abs(A).max() + np.abs(b).max() / radius) + 1e-300
        assert np.linalg.norm(slope + m * c) <= 1e-9 * unit * radius
        assert np.linalg.eigvalsh(A)[0] + m >= -1e-7 * unit
        assert m >= -1e-9 * unit
        assert m * (radius - length) <= 1e-7 * unit * radius


def test_guarantee_1_no_point_of_a_grid_is_lower() -> None:
    line = np.linspace(-1, 1, 201)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    grid = grid[np.linalg.norm(grid, axis=1) <= 1]
    for A, b, radius in problems(400, 1):
        if len(b) != 2:
            continue
        value = lambda c, A=A, b=b: np.einsum("...i,ij,...j", c, A, c) - 2 * c @ b  # noqa: E731
        best = float(value(least_in_ball(A, b, radius)))
        assert best <= value(radius * grid).min() + 1e-9 * (1 + abs(best))


def test_without_a_radius_what_falls_for_ever_is_refused() -> None:
    assert least_in_ball(np.diag([2.0, 1.0]), np.array([1.0, 1.0])).tolist() == [0.5, 1.0]
    assert np.allclose(least_in_ball(np.diag([2.0, 0.0]), np.array([1.0, 0.0])), [0.5, 0.0])
    for matrix, vector in ((np.diag([1.0, -1.0]), [1.0, 0.0]), (np.diag([1.0, 0.0]), [1.0, 1.0])):
        with pytest.raises(InputError, match="radius"):
            least_in_ball(matrix, np.array(vector))
        assert np.linalg.norm(least_in_ball(matrix, np.array(vector), 3.0)) == pytest.approx(3.0)


def test_the_hard_case_ends_on_the_sphere() -> None:
    c = least_in_ball(np.diag([-1.0, 3.0]), np.array([0.0, 2.0]), 2.0)
    assert c[1] == pytest.approx(0.5)
    assert math.hypot(*c) == pytest.approx(2.0)
