"""Small games, their rows, and exact judges of them. A name of its own: conftests are many."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize

from fairveil.core.promise import Promise
from fairveil.curator import CellCounts, Curator, Rows
from fairveil.fairness import Notion, resolve
from fairveil.methods.game import Equilibrium, Game, plan
from fairveil.methods.oracles import GameInstance, Oracle
from fairveil.privacy import NoiseSource

Floats = npt.NDArray[np.float64]
RECORDS = Promise(2.0, 1e-5)
REPLACE = Promise(2.0, 1e-5, neighbours="replace-one")
GROUPS = Promise(2.0, 1e-5, "sensitive_features")
EXACT = Promise(float("inf"), 0.0)
PROMISES = {"add": RECORDS, "replace": REPLACE, "groups": GROUPS}


def sample(
    seed: int = 0, n: int = 300, classes: int = 2, groups: tuple[int, ...] = (2,), width: int = 2
) -> Any:
    """Numbers within [-1, 1], labels, and sensitive columns that go together."""
    rng = np.random.default_rng(seed)
    A = [rng.integers(0, size, n) for size in groups]
    X = np.clip(
        rng.normal(scale=0.4, size=(n, width))
        + 0.4 * (A[0][:, None] / max(groups[0] - 1, 1) - 0.5),
        -1,
        1,
    )
    scores = X @ np.random.default_rng(7).normal(size=(width, classes)) * 4 + rng.gumbel(
        size=(n, classes)
    )
    return X, scores.argmax(axis=1), A


def rows_from(
    X: Any, y: Any, A: Any, classes: int = 2, groups: tuple[int, ...] = (2,), weights: Any = None
) -> Rows:
    return Rows.from_arrays(
        X, y, A, classes=range(classes), groups=[tuple(range(size)) for size in groups], sample_weight=weights,
        max_sample_weight=1.0,
    )  # fmt: skip


def ground_of(
    rows: Rows, promise: Promise, notions: list[Notion], mode: str = "product", **options: Any
) -> GameInstance:
    stated = options.pop("public_rows", None)
    public = rows.exact_count if promise.rows_are_public or not promise.is_private else stated
    cells = rows.cells(mode) if rows.layout.sensitive else None
    cap = rows.max_sample_weight if rows.weighted else None
    return GameInstance.of(
        promise, rows.layout, cells, notions, public_rows=public, max_sample_weight=cap, **options
    )


def curator_for(game: Game, rows: Rows, seed: int = 0, of: type[Curator] = Curator) -> Curator:
    promise = game.ground.promise
    stated = game.ground.public_rows if promise.is_private and not promise.rows_are_public else None
    return of(rows, promise, plan=game.plan, noise=NoiseSource.seeded(seed), public_rows=stated)


class Teller(Curator):
    """Keeps what it answered and chose."""

    def answer(self, *given: Any, **named: Any) -> Any:
        return self._kept(super().answer(*given, **named))

    def choose(self, *given: Any, **named: Any) -> int:
        return int(self._kept(super().choose(*given, **named)))

    def _kept(self, answer: Any) -> Any:
        self.told = [*getattr(self, "told", []), answer]
        return answer


def again(told: list[Any]) -> type[Curator]:
    """A curator that tells the same again, whatever rows it has."""
    left = iter(told)

    class Again(Curator):
        def answer(self, *given: Any, **named: Any) -> Any:
            return next(left)

        def choose(self, *given: Any, **named: Any) -> int:
            return int(next(left))

        def finish(self) -> Any:
            assert next(left, None) is None

    return Again


def played(rows: Rows, game: Game, seed: int = 0) -> Equilibrium:
    return game.run(curator_for(game, rows, seed))


def a_game(
    rows: Rows,
    promise: Promise,
    notions: list[Notion],
    oracle: Oracle,
    mode: str = "product",
    **options: Any,
) -> Game:
    aware = options.pop("group_aware", False)
    of_ground = {"group_aware": aware} | {
        k: options.pop(k) for k in ("public_rows",) if k in options
    }
    return plan(ground_of(rows, promise, notions, mode, **of_ground), oracle, **options)


def exact_table(rows: Rows, rule: Any, cells: Any) -> Floats:
    """How a rule decides the rows, (cells, labels, classes), exactly."""
    classes = len(rows.layout.classes)
    questions = rule.decisions(cells, True), CellCounts(cells, True)
    answer, counts = Curator(rows, EXACT).answer([(question, 0.0) for question in questions])
    counts = np.asarray(counts, float).reshape(-1, classes)
    answer = np.asarray(answer, float).reshape(*counts.shape, -1)
    if answer.shape[-1] == classes:
        return answer
    return np.concatenate([counts[..., None] - answer, answer], axis=-1)


def measured(
    tables: Floats, shares: Floats, notions: list[Notion], cells: Any
) -> tuple[float, float]:
    """Error and largest excess over the bounds of a mixture of rules, exactly. `tables` (rules,
    cells, labels, classes)."""
    table = np.tensordot(shares, tables, axes=1)
    system = resolve(notions, cells, tuple(range(tables.shape[-1])))
    values = system.exact_values(table, table.sum(axis=-1))
    error = (table * (1.0 - np.eye(tables.shape[-1]))).sum() / table.sum()
    return float(error), float(np.nanmax(values - system.bounds))


def program(tables: Floats, notions: list[Notion], cells: Any) -> float:
    """The least error of a mixture of a finite class that keeps every bound: an exact linear
    program. inf: there is none."""
    system = resolve(notions, cells, tuple(range(tables.shape[-1])))
    counts = tables[0].sum(axis=-1)
    values = np.array([system.exact_values(table, counts) for table in tables])
    wrong = 1.0 - np.eye(tables.shape[-1])
    errors = (tables * wrong).sum(axis=(1, 2, 3)) / tables[0].sum()
    keep = np.isfinite(values).all(axis=0)
    ones = np.ones((1, len(tables)))
    found = optimize.linprog(errors, values.T[keep], system.bounds[keep], ones, [1.0])
    assert found.success or found.status == 2, found.message
    return float(found.fun) if found.success else float("inf")


def mixture(
    rows: Rows, outcome: Equilibrium, notions: list[Notion], cells: Any
) -> tuple[float, float]:
    """Error and largest excess of what a game found."""
    tables = np.array([exact_table(rows, rule, cells) for rule in outcome.rules])
    shares = np.array(outcome.plays, float)
    return measured(tables, shares / shares.sum(), notions, cells)


def with_person(
    data: Any, i: int, *, x: Any = None, label: Any = None, group: tuple[int, ...] = ()
) -> Any:
    """The table with one row changed."""
    X, y, A = data
    X, y, A = X.copy(), y.copy(), [a.copy() for a in A]
    X[i] = X[i] if x is None else x
    y[i] = y[i] if label is None else label
    for column, value in zip(A, group, strict=False):
        column[i] = value
    return X, y, A
