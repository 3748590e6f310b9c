"""Many models of one table in one pass over its rows, each the model that its own fit would give,
bit for bit.

Fits may share a pass where they differ in the bounds of their constraints and in their noise alone:
then they ask the same questions at the same prices, and every model gets noise of its own from the
streams of its own seed. Fits on Poisson batches, each of which draws rows of its own, networks,
fits that scale numbers by noisy moments of their own, and fits without noise, each of which stops
when it has converged, run one by one.

A panel is one spend of a ledger, reserved whole before its first question.

Guarantees (tests/study/test_study_frontier.py):
1. Weights, released values and events of a model are those of its fit alone.
2. The panel's plan is priced as the composition of all its models, before the first question is
   asked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .. import _checks
from ..core.events import Event
from ..core.promise import Promise
from ..curator import Poisson
from ..fairness import ConstraintSystem
from ..methods import Outcome
from ..methods.descent import Progress, descend, in_step, plan_of, traced
from ..methods.primal_dual import Plan
from ..privacy import epsilon as price
from ..statement.document import PrivacyStatement
from . import fitting
from .fair import FairClassifier
from .fitting import require_room, statement_of
from .reading import ReadOptions, Training
from .ways import PlannedFit

MOST_MODELS = 75  # side by side: more share a pass that is bound by arithmetic already
MOST_WEIGHTS = 1 << 22  # of one panel: its states and sums stay far below the rows in size


@dataclass(frozen=True, eq=False, repr=False)
class Job:
    """One model to fit: an estimator with its `random_state`, and what it is about to do."""

    estimator: FairClassifier
    intent: PlannedFit

    @property
    def rounds(self) -> int:
        """How many rounds it takes at most."""
        return int(self.intent.search.rounds)


def intend(estimator: FairClassifier, read: Callable[[ReadOptions], Training]) -> PlannedFit:
    """What this estimator's fit is about to do with the rows that `read` gives."""
    found: PlannedFit = estimator._way.intend(read, None, None)
    return found


def fit_all(
    jobs: Sequence[Job],
    *,
    tuning: str | None = None,
    not_covered: Sequence[str] = (),
    tick: Progress | None = None,
) -> None:
    """Fit the estimators of all jobs. `tuning` and `not_covered` go into every statement; `tick`
    counts rounds x models.

    No warning is given where a constraint is not met: see each `constraint_report_`.
    """
    total, done = sum(job.rounds for job in jobs), 0

    def words(statement: PrivacyStatement) -> PrivacyStatement:
        return dataclasses.replace(
            statement, tuning=tuning, not_covered=(*statement.not_covered, *not_covered)
        )

    panels = list(_panels(jobs))
    # none is charged without room for all
    if len(panels) > 1 and (ledger := jobs[0].intent.opening.ledger) is not None:
        first, plans = jobs[0].intent.opening, [job.intent.search.plan for job in jobs]
        require_room(
            ledger, [plan for plan in plans if plan is not None], first.promise, first.purpose
        )
    for panel in panels:
        before, weight = done, len(panel)

        def told(rounds: int, _: int, before: int = before, weight: int = weight) -> None:
            assert tick is not None
            tick(before + rounds * weight, total)

        _fit(panel, words, None if tick is None else told)
        done += sum(job.rounds for job in panel)


def _fit(
    panel: Sequence[Job],
    words: Callable[[PrivacyStatement], PrivacyStatement],
    tick: Progress | None,
) -> None:
    outcomes, statement = _alone(panel[0], tick) if len(panel) == 1 else _together(panel, tick)
    statement = words(statement)
    for job, outcome in zip(panel, outcomes, strict=True):
        job.estimator._way.conclude(job.intent, outcome, statement)


def _alone(job: Job, tick: Progress | None) -> tuple[list[Outcome], PrivacyStatement]:
    intent = job.intent
    curator = intent.opening.curator(
        intent.search.plan, [fitting.noise_of(job.estimator.random_state)]
    )
    return [intent.search.run(curator, tick)], statement_of(curator, intent.training)


def _together(
    panel: Sequence[Job], tick: Progress | None
) -> tuple[list[Outcome], PrivacyStatement]:
    """One curator under the promise of all; then the statement that each model's own fit would
    have."""
    first = panel[0].intent
    searches = [job.intent.search for job in panel]
    layout, cap = first.training.rows.layout, first.search.planned.max_sample_weight
    plan = plan_of(traced(in_step([one.search() for one in searches]), layout, first.promise, cap))
    sources = [fitting.noise_of(job.estimator.random_state) for job in panel]
    purpose = f"{first.opening.purpose}, {len(panel)} models together"
    curator = first.opening.curator(
        plan, sources, promise=_whole(first.promise, plan), purpose=purpose
    )
    method = in_step([one.search() for one in searches])
    outcomes = descend(curator, method, tick, searches[0].rounds)
    together = statement_of(curator, first.training)
    assert first.search.plan is not None  # fits without privacy are not put together
    own = [first.search.plan]
    return outcomes, PrivacyStatement.of(
        first.promise,
        own,
        plan=own,
        facts=together.facts,
        bounds=together.bounds,
        not_covered=together.not_covered,
        noise=together.noise,
        arithmetic=together.arithmetic,
        user_code=together.user_code,
        ledger=together.ledger,
    )


def _whole(promise: Promise, plan: Event | None) -> Promise:
    """The promise that all models of a panel keep together."""
    assert plan is not None
    spent = price([plan], promise.delta, promise.neighbours) * (1.0 + 1e-9)
    return dataclasses.replace(promise, epsilon=max(spent, promise.epsilon))


def _panels(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Jobs that may share a pass, in runs of a sensible size."""
    kinds: list[list[Job]] = []
    for job in jobs:
        same = next((kind for kind in kinds if _share(kind[0].intent, job.intent)), None)
        if same is None:
            kinds.append([job])
        else:
            same.append(job)
    for kind in kinds:
        planned = kind[0].intent.search.planned
        most = max(
            1, min(MOST_MODELS, MOST_WEIGHTS // (planned.outputs * (1 + planned.layout.width)))
        )
        parts = -(-len(kind) // most)
        for part in np.array_split(np.arange(len(kind)), parts):  # of nearly one size
            yield [kind[j] for j in part]


def _share(one: PlannedFit, other: PlannedFit) -> bool:
    """Whether two fits may share every pass: the same rows, questions and prices, all rows asked,
    bounds apart."""
    planned = one.search.planned
    alone = (
        isinstance(planned.batch_of(0), Poisson)
        or planned.skeleton is not None
        or not planned.is_shared
    )
    if not one.promise.is_private or alone:
        return False
    if one is other:
        return True
    same = one.training is other.training and one.promise == other.promise
    return (
        same
        and one.opening.ledger is other.opening.ledger
        and _alike(one.search.planned, other.search.planned)
    )


def _alike(one: Plan, other: Plan) -> bool:
    names = {field.name for field in dataclasses.fields(Plan)} - {"system"}
    if _checks.named(one, names) != _checks.named(other, names):
        return False
    if one.system is None or other.system is None:
        return one.system is other.system
    return _same_values(one.system, other.system)


def _same_values(one: ConstraintSystem, other: ConstraintSystem) -> bool:
    """Whether two systems bound the same values."""
    if one.shape != other.shape or not np.array_equal(one.event_of, other.event_of):
        return False
    pairs = [
        (one.members, other.members),
        (one.numerators, other.numerators),
        (one.coefficients, other.coefficients),
    ]
    return all(a.shape == b.shape and not (a != b).nnz for a, b in pairs)
