"""Small problems of group objectives, their curators, and exact judges of them. Rows are those of
`game_samples`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import game_samples as g
import numpy as np
import numpy.typing as npt
from scipy import optimize

from fairveil.audit import Tape, Witness
from fairveil.core import pricing
from fairveil.core.promise import Promise
from fairveil.curator import Curator
from fairveil.fairness.objectives import parse_constraint, parse_objective
from fairveil.methods.objective_loop import Loop, plan_loop
from fairveil.methods.objectives import Found, Problem, ReleasedProblem
from fairveil.methods.oracles import (
    Begun,
    Choice,
    Descent,
    Each,
    Regression,
    thresholds,
)
from fairveil.privacy import NoiseSource

Floats = npt.NDArray[np.float64]
ORACLES: dict[str, Callable[[Any], Any]] = {
    "regression": lambda layout: Regression(),
    "descent": lambda layout: Descent(steps=2),
    "begun": lambda layout: Begun(steps=2, scales=True),
    "choice": lambda layout: Choice(thresholds(layout)),
    "each": lambda layout: Each(thresholds(layout)),
}


WAYS = [
    (relation, kind)
    for relation in g.PROMISES
    for kind in ORACLES
    if (relation, kind) != ("groups", "begun")
]
"""Every oracle under every relation; one is of records that are protected."""


def problem_of(
    rows: Any,
    promise: Promise,
    objective: Any,
    constraint: Any = None,
    mode: str = "product",
    stated: int | None = None,
    loss: str = "zero_one",
) -> Problem:
    public = rows.exact_count if promise.rows_are_public or not promise.is_private else stated
    return Problem.of(
        promise,
        rows.layout,
        rows.cells(mode) if rows.layout.sensitive else None,
        parse_objective(objective),
        parse_constraint(constraint),
        public_rows=public,
        max_sample_weight=rows.max_sample_weight if rows.weighted else None,
        loss=loss,
    )


def curator_for(search: Any, rows: Any, seed: int = 0, of: type[Curator] = Curator) -> Any:
    promise = search.ground.promise
    stated = (
        search.ground.public_rows if promise.is_private and not promise.rows_are_public else None
    )
    return of(rows, promise, plan=search.plan, noise=NoiseSource.seeded(seed), public_rows=stated)


def searched(
    rows: Any, problem: Problem, oracle: Any, seed: int = 0, **options: Any
) -> tuple[Loop, Found]:
    loop = plan_loop(problem, oracle, **options)
    return loop, loop.run(curator_for(loop, rows, seed))


class Recorded(Curator):
    """Keeps what it was asked and what it said: no answer is changed."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.tape, self.choices, self.told = Tape(), [], []
        self._taped = self.tape.around(Curator.answer)

    def answer(self, *given: Any, **named: Any) -> Any:
        self.told.append(self._taped(self, *given, **named))
        return self.told[-1]

    def choose(
        self, questions: Any, epsilon: float, *, costs: Any = None, score: Any = None, **named: Any
    ) -> int:
        self.choices.append((list(questions), epsilon, costs, score))
        self.told.append(super().choose(questions, epsilon, costs=costs, score=score, **named))
        return self.told[-1]


class Teller:
    """Says again what a curator said, and holds no rows."""

    def __init__(self, promise: Promise, told: list[Any]) -> None:
        self.promise, self.told, self.closed = promise, list(told), False

    def answer(self, *given: Any, **named: Any) -> Any:
        return self.told.pop(0)

    def choose(self, *given: Any, **named: Any) -> Any:
        return self.told.pop(0)

    def attach(self, *given: Any, **named: Any) -> None:
        return None

    def rescale(self, *given: Any) -> None:
        return None

    def finish(self) -> None:
        return None

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Teller:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def same(one: Found, other: Found) -> bool:
    """To the bit."""
    arrays = ("weights", "bounds", "values", "spread", "duals", "counts", "losses")
    return (
        [rule.key for rule in one.rules] == [rule.key for rule in other.rules]
        and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
        and (one.names, one.reason, one.rounds, one.objective)
        == (other.names, other.reason, other.rounds, other.objective)
        and (one.objective_noise, one.excess) == (other.objective_noise, other.excess)
    )


def moved(tape: Tape, here: Any, there: Any, promise: Promise) -> float:
    """Sum over releases of the squared distance of the noiseless answers in deviations of the
    noise: the run's mu squared.

    An exact answer that differed would make it infinite.
    """
    witness, total = Witness(here, there, promise), 0.0
    for release in tape.heard:
        for measurement in release.measurements:
            one, two = (witness._noiseless(measurement.question, side) for side in (here, there))
            if pricing.is_free(measurement.question, promise):
                total += 0.0 if (one == two).all() else math.inf
                continue
            size = witness._noise(measurement, here, release.batch, one.shape[1:])
            total += float((((one - two) / size) ** 2).sum())
    return total


# ---- exact judges
# --------------------------------------------------------------------------------------------------


def tables_of(rows: Any, of: Any, problem: Problem) -> Floats:
    """How every rule of a class decides, exactly: (rules, cells, labels, classes), as shares of all
    rows."""
    exact = Curator(rows, g.EXACT)
    _, rules = of.gather(exact, problem.ground)
    total = rows.exact_count
    return np.array([g.exact_table(rows, rule, problem.ground.cells) for rule in rules]) / total


def posed_exactly(rows: Any, problem: Problem, penalty: float) -> ReleasedProblem:
    """The problem at its true counts."""
    public = Problem.of(
        g.EXACT,
        rows.layout,
        problem.ground.cells,
        problem.objective,
        problem.constraint,
        public_rows=rows.exact_count,
    )
    return public.pose(public.ground.count(Curator(rows, g.EXACT), 0.0), 0.0, penalty)


def least_linear(tables: Floats, cost: Floats, lines: Floats, bounds: Floats) -> float:
    """min over mixtures of cost . l subject to lines . l <= bounds: a linear program; inf where
    there is none."""
    flat = tables.reshape(len(tables), -1)
    found = optimize.linprog(
        flat @ cost.ravel(), lines.reshape(len(lines), -1) @ flat.T if len(lines) else None,
        bounds if len(lines) else None, np.ones((1, len(flat))), [1.0], method="highs",
    )  # fmt: skip
    return math.inf if found.status == 2 else float(found.fun)


def pinched(tables: Floats, first: Floats, second: Floats, of: Any) -> float:
    """min over mixtures of `of`(first . l, second . l), convex and falling in both: along the
    border of what can be had."""
    flat = tables.reshape(len(tables), -1)
    one, two = flat @ first.ravel(), flat @ second.ravel()

    def value(level: float) -> float:
        found = optimize.linprog(
            -two, -one[np.newaxis], [-level], np.ones((1, len(flat))), [1.0], method="highs"
        )
        return float(of(level, -found.fun))

    found = optimize.minimize_scalar(
        value, bounds=(float(one.min()), float(one.max())), method="bounded"
    )
    return min(float(found.fun), value(float(one.max())))
