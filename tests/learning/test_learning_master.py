"""The master program against scipy on random convex problems: the least mixture, its prices, its
bound from below, its caps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse

from fairveil.fairness.functions import (
    GeometricShortfall,
    GroupFunction,
    HarmonicShortfall,
    Joint,
    Largest,
    SoftLargest,
    Total,
)
from fairveil.learning.group_objective.master import Master

SHAPE = (2, 2, 2)
OUTERS = {
    "total": Total(),
    "largest": Largest(),
    "soft": SoftLargest(20.0),
    "geometric": GeometricShortfall(0.05),
    "harmonic": HarmonicShortfall(0.05),
}


def function_of(kind: str, rng: Any, rates: int = 4) -> GroupFunction:
    lines = (
        rng.normal(size=(rates, 8))
        if kind in ("total", "largest", "soft")
        else 2.0 * rng.random((rates, 8))
    )
    return GroupFunction(SHAPE, sparse.csr_array(lines), OUTERS[kind])


def problem_of(kind: str, seed: int, constrained: bool, atoms: int = 12) -> tuple[Joint, Any]:
    rng = np.random.default_rng(seed)
    f, losses = function_of(kind, rng), rng.dirichlet(np.ones(8), atoms).reshape(atoms, *SHAPE)
    if not constrained:
        return Joint(f, None, 1.0), losses
    g = function_of("largest", rng)
    return Joint(f, g.less(float(np.median(g.value(losses)))), 3.0), losses


def least(h: Joint, losses: Any, caps: Any = None) -> float:
    """By scipy: h's maxima as epigraphs, the rest smooth; from several starts."""
    m, flat = len(losses), losses.reshape(len(losses), -1)
    f: Any = h.f
    split = isinstance(f.outer, Largest)
    lines = f.lines.toarray() @ flat.T
    constraints: list[Any] = [{"type": "eq", "fun": lambda z: z[:m].sum() - 1.0}]
    if split:
        constraints.append({"type": "ineq", "fun": lambda z: z[m] - lines @ z[:m]})
    if h.g is not None:
        g: Any = h.g
        others = g.lines.toarray() @ flat.T
        constraints.append({"type": "ineq", "fun": lambda z: z[m + 1] + g.bound - others @ z[:m]})

    def value(z: Any) -> float:
        first = z[m] if split else float(f.outer.value(lines @ z[:m]))
        return float(first + (h.penalty * z[m + 1] if h.g is not None else 0.0))

    bounds = [(0.0, 1.0 if caps is None else float(caps[j])) for j in range(m)] + [
        (None, None),
        (0.0, None),
    ]
    rng, found = np.random.default_rng(0), np.inf
    for _ in range(4):
        start = rng.dirichlet(np.ones(m))
        z = np.concatenate([start, [10.0, 10.0]])
        out = optimize.minimize(
            value,
            z,
            bounds=bounds,
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 500},
        )
        if abs(out.x[:m].sum() - 1.0) < 1e-6:
            found = min(found, float(h.value((np.clip(out.x[:m], 0, None) @ flat).reshape(SHAPE))))
    return found


@pytest.mark.parametrize("kind", list(OUTERS))
@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_mixture_is_scipys_and_its_bound_is_below_every_mixture(
    kind: str, constrained: bool, seed: int
) -> None:
    h, losses = problem_of(kind, seed, constrained)
    weights, price, base = Master(h).solve(losses)
    value = float(h.value(np.tensordot(weights, losses, axes=1)))
    best = least(h, losses)
    assert weights.min() >= 0.0
    assert weights.sum() == pytest.approx(1.0)
    assert value <= best + 1e-5
    assert value >= best - 2e-4  # of scipy's own tolerance
    bound = base + float((price * losses).sum(axis=(1, 2, 3)).min())
    assert value - 1e-4 <= bound <= value + 1e-9
    for mixture in np.random.default_rng(1).dirichlet(np.ones(len(losses)), 200):
        assert float(h.value(np.tensordot(mixture, losses, axes=1))) >= bound - 1e-9


@pytest.mark.parametrize("kind", list(OUTERS))
def test_the_price_bounds_mixtures_with_decisions_that_are_not_there_yet(kind: str) -> None:
    """Columns are generated: with the few atoms of a round the bound holds for all, where the least
    price is over all."""
    h, losses = problem_of(kind, 7, True, atoms=40)
    best = float(h.value(np.tensordot(Master(h).solve(losses)[0], losses, axes=1)))
    for few in (1, 2, 5, 20):
        _, price, base = Master(h).solve(losses[:few])
        assert base + float((price * losses).sum(axis=(1, 2, 3)).min()) <= best + 1e-9


@pytest.mark.parametrize("kind", list(OUTERS))
def test_column_generation_ends_at_the_best_of_all(kind: str) -> None:
    h, losses = problem_of(kind, 3, True, atoms=60)
    best = float(h.value(np.tensordot(Master(h).solve(losses)[0], losses, axes=1)))
    master, kept = Master(h), [0]
    for _ in range(60):
        weights, price, _ = master.solve(losses[kept])
        column = int((price * losses).sum(axis=(1, 2, 3)).argmin())
        if column in kept:
            break
        kept.append(column)
    assert len(kept) < 40
    assert float(h.value(np.tensordot(weights, losses[kept], axes=1))) == pytest.approx(
        best, abs=1e-5
    )


@pytest.mark.parametrize("kind", list(OUTERS))
@pytest.mark.parametrize("cap", [0.15, 0.4])
def test_no_decision_weighs_more_than_its_cap(kind: str, cap: float) -> None:
    h, losses = problem_of(kind, 5, True)
    caps = np.full(len(losses), cap)
    caps[0] = 1.0
    weights, _, _ = Master(h).solve(losses, caps)
    assert (weights <= caps + 1e-9).all()
    value = float(h.value(np.tensordot(weights, losses, axes=1)))
    best = least(h, losses, caps)
    assert best - 2e-4 <= value <= best + 1e-5
    assert value >= float(h.value(np.tensordot(Master(h).solve(losses)[0], losses, axes=1))) - 1e-9
