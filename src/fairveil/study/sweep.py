"""Frontiers: models for every epsilon, gap and seed of a grid, trained side by side in few passes
over the rows.

    price of looking at them all = epsilon(composition of every model's events; delta)

The grid and its price are known before the first question is asked. Whoever sees all models, or
picks one by what was seen, has been shown all of their answers: the epsilon of one model is that of
a model whose place in the grid was fixed in advance.

Guarantees (tests/study/test_study_frontier.py):
1. Each model is the one that the estimator's own fit with `random_state=seed` gives: weights,
   released values and events, bit for bit.
2. `privacy` prices the events of all models together, at the delta of each; every model's statement
   says so under tuning.
3. Held-out rows never reach training, and what is measured on them is listed as not covered.
4. Nothing is asked where the ledger has no room for all.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from .. import _checks
from .._types import ColumnsLike, TableLike
from ..core.events import Event, NonPrivate, NoOp
from ..core.promise import Promise
from ..data.elsewhere import Elsewhere
from ..errors import (
    ConstraintNotMet,
    FairveilWarning,
    InputError,
    RawUnits,
    UnprotectedStep,
    UnstatedBounds,
    WeakDelta,
    WeakEpsilon,
)
from ..estimators import FairClassifier, reading
from ..estimators import batched as batched
from ..estimators.batched import Job
from ..estimators.descending import PrimalDualWay
from ..estimators.fitting import progress as bar
from ..estimators.reading import ReadOptions, Training, groups_of
from ..estimators.ways import PlannedFit
from ..fairness import DemographicParity
from ..show.frontier import Series
from .families import Family, Judge
from .held_out import HeldOut, defined, measured
from .result import (
    Frontier,
    Key,
    Run,
    held_out_words,
    promise_of_all,
    statement_of_all,
    tuning_of,
)

GAPS = (0.2, 0.15, 0.1, 0.05, 0.02)
EPSILONS = (0.5, 1.0, 3.0)


def frontier(
    X: TableLike,
    y: ColumnsLike = None,
    sensitive_features: ColumnsLike = None,
    *,
    constraint: object = DemographicParity,
    gaps: Iterable[float | None] = GAPS,
    epsilons: Iterable[float] = EPSILONS,
    seeds: int | Iterable[int] | None = None,
    test: TableLike = None,
    estimator: FairClassifier | None = None,
    published: Iterable[Series] = (),
    progress: bool = True,
) -> Frontier:
    """Fit a model for each of `epsilons` x `gaps` x `seeds`, and measure them on held-out rows.

    Rows are read and coded once.

    Parameters
    ----------
    X : table or array
        Features: an array, a table or a source of coded rows; see docs/data.md.
    y : array, default=None
        Labels, or numbers for regression. None: the schema names the target among the columns of X.
    sensitive_features : array, table or names of columns of X, default=None
        Groups: one column or several. None: the schema's, or no groups.
    constraint : notion, str, callable or list of these, default=DemographicParity
        The swept constraint: a notion's class or name, or a function from a bound to notions.
        Notions in a list are required of every model.
    gaps : iterable of float or None, default=(0.2, 0.15, 0.1, 0.05, 0.02)
        Bounds, as shares of 1; None is a model without one.
    epsilons : iterable of float, default=(0.5, 1.0, 3.0)
        Privacy budgets of one model each.
    seeds : int or iterable of int, default=None
        How many seeds, or which, for studies: statements are flagged INSECURE, and models of one
        seed share their noise. With infinite epsilon only the first is used. Through a door whose
        noise is secret a number means None. None: one model a point, with secure noise.
    test : tuple (X, y, sensitive_features), default=None
        Rows that are held out of training. None: errors are not known.
    estimator : FairClassifier, default=None
        Carries the parameters that all models share, such as `protects`, `delta`, `schema`, `model`
        and `ledger`. None: one with the defaults.
    published : iterable of Series, default=()
        Curves of others for the plot.
    progress : bool, default=True
        Whether a bar is shown, on a terminal, after two seconds.

    Returns
    -------
    Frontier
        Tables, figures and models; its statement has the price of all of them.

    See Also
    --------
    PrivateSearchCV : Chooses one model, within one budget.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=3000)
    >>> X = rng.normal(size=(3000, 2)) + 0.5 * A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=3000) > 1).astype(int)
    >>> found = frontier(
    ...     X[:2000],
    ...     y[:2000],
    ...     A[:2000],
    ...     gaps=(0.6, 0.4),
    ...     epsilons=(2.0,),
    ...     seeds=2,
    ...     test=(X[2000:], y[2000:], A[2000:]),
    ... )
    >>> print(str(found).splitlines()[0])
    4 models, 1 epsilons, 2 targets of the demographic parity gap; looking at all of them costs epsilon 4.32 at delta 1e-06.
    >>> [line["target"] for line in found.table()], len(found.models)
    ([0.6, 0.4], 4)
    """
    if isinstance(X, Elsewhere) and not X.seeded and isinstance(seeds, int):
        seeds = None  # their holder's noise is secret
    sweep, chosen, family = (
        _numbers("epsilons", epsilons),
        _seeds(seeds),
        Family.of(constraint, _numbers("gaps", gaps)),
    )
    curves = tuple(published)
    template = _template(estimator)
    reader = _Reader(X, y, sensitive_features)
    planned = _planned(template, sweep, family, reader)
    assert reader.training is not None
    assert reader.ways is not None
    held_out = None if test is None else HeldOut.read(test, reader.training, reader.ways)
    jobs: dict[Key, Job] = {}
    for (epsilon, gap), (one, plan) in planned.items():
        for seed in chosen if math.isfinite(epsilon) else chosen[:1]:
            jobs[epsilon, gap, seed] = Job(_with(one, random_state=seed), plan)
    whole = _promise_of_all(list(jobs.values()))
    not_covered = () if held_out is None else (held_out_words(held_out.rows),)
    with bar("Frontier") if progress else nullcontext() as tick:
        batched.fit_all(
            list(jobs.values()), tuning=tuning_of(jobs, whole), not_covered=not_covered, tick=tick
        )
    judges = {
        gap: family.judge(gap, reader.cells, reader.training.classes) for gap in family.bounds
    }
    runs = tuple(_run(key, job, family, judges[key[1]], held_out) for key, job in jobs.items())
    _warn(runs)
    return Frontier(
        family.name,
        runs,
        statement_of_all(
            [job.estimator.privacy_ for job in jobs.values()], _events(list(jobs.values())), whole
        ),
        None if held_out is None else held_out.rows,
        curves,
        {key: job.estimator for key, job in jobs.items()},
    )


class _Reader:
    """Codes the rows once. Ways differ in the cap on weights alone, which only rows with weights
    notice."""

    def __init__(self, X: TableLike, y: ColumnsLike, sensitive_features: ColumnsLike) -> None:
        self._given = X, y, sensitive_features
        self.training: Training | None = None
        self.ways: ReadOptions | None = None

    def __call__(self, ways: ReadOptions) -> Training:
        if self.training is None or (ways != self.ways and self.training.rows.weighted):
            self.training, self.ways = reading.read(*self._given, None, ways), ways
        return self.training

    @property
    def cells(self) -> Any:
        """Product cells, which all notions can be resolved against; None without sensitive
        columns."""
        assert self.training is not None
        return groups_of(self.training, either=False)


# Before data are read


def _template(estimator: object) -> FairClassifier:
    if estimator is None:
        return FairClassifier()
    by = estimator._way if type(estimator) is FairClassifier else None
    if type(estimator) is not FairClassifier or not isinstance(by, PrimalDualWay):
        remedy = (
            "Pass FairClassifier(protects='sensitive_features'), or leave it out: what "
            "is swept is a bound. "
            "Fit others one by one; each statement is charged by itself."
        )
        solver = "" if by is None else f" by {type(by.solver).__name__}"
        got = f"{type(estimator).__name__}{solver}"
        expected = "a FairClassifier by PrimalDual"
        raise InputError.expected(expected, of="estimator", got=got, remedy=remedy)
    if estimator.constraints is not None:
        remedy = (
            "Pass frontier(..., constraint=[DemographicParity, FalseNegativeRate(0.3)]), for "
            "example."
        )
        raise InputError.expected(
            "None", of="estimator.constraints", got=estimator.constraints, remedy=remedy
        )
    if estimator.checkpoint is not None:
        remedy = "A folder keeps one fit: leave checkpoint=None."
        raise InputError.expected(
            "None", of="estimator.checkpoint", got=str(estimator.checkpoint), remedy=remedy
        )
    return estimator


def _with(estimator: FairClassifier, **parameters: object) -> FairClassifier:
    """The same estimator, not fitted, with other parameters; what they share is not copied."""
    return FairClassifier(**{**estimator.get_params(deep=False), **parameters})


def _numbers(name: str, values: object) -> tuple[Any, ...]:
    listed = tuple(values) if isinstance(values, Iterable) else (values,)
    out: tuple[float | None, ...]
    if name == "epsilons":
        out = tuple(_checks.positive(allow_inf=True, epsilons=value) for value in listed)
    else:
        out = tuple(None if value is None else _checks.non_negative(gaps=value) for value in listed)
    if not out or len(set(out)) != len(out):
        remedy = f"Pass {name}=(0.5, 1.0), for example."
        raise InputError.expected(
            "distinct numbers, at least one", of=name, got=list(listed), remedy=remedy
        )
    return out


def _seeds(seeds: object) -> tuple[int | None, ...]:
    if seeds is None:
        return (None,)
    if not isinstance(seeds, Iterable):
        return tuple(range(_checks.whole(at_least=1, seeds=seeds)))
    listed = tuple(_checks.whole(seeds=seed) for seed in seeds)
    if not listed or len(set(listed)) != len(listed):
        remedy = "Pass seeds=5, or seeds=(1, 2, 3)."
        raise InputError.expected(
            "distinct seeds, at least one", of="seeds", got=list(listed), remedy=remedy
        )
    return listed


def _planned(
    template: FairClassifier, epsilons: Sequence[float], family: Family, reader: _Reader
) -> dict[tuple[float, float | None], tuple[FairClassifier, PlannedFit]]:
    """An estimator and its plan for every point of the grid; seeds share it."""
    out: dict[tuple[float, float | None], tuple[FairClassifier, PlannedFit]] = {}
    for epsilon in epsilons:
        for gap in family.bounds:
            one = _with(
                template, epsilon=epsilon, constraints=family.asked_of(gap), random_state=None
            )
            with warnings.catch_warnings():
                for category in _said([intent.promise for _, intent in out.values()], epsilon):
                    warnings.simplefilter("ignore", category)
                out[epsilon, gap] = one, batched.intend(one, reader)
    return out


def _said(before: Sequence[Promise], epsilon: float) -> Iterator[type[FairveilWarning]]:
    """Warnings that an earlier point of the grid gave: once is enough."""
    if before:
        yield RawUnits
    if any(promise.is_private for promise in before):
        yield from (WeakDelta, UnstatedBounds, UnprotectedStep)
    if any(promise.epsilon == epsilon for promise in before):
        yield WeakEpsilon


def _promise_of_all(jobs: Sequence[Job]) -> Promise:
    """What all models together keep; not private where one of them is not."""
    return promise_of_all([job.intent.promise for job in jobs], _events(jobs))


def _events(jobs: Sequence[Job]) -> list[Event]:
    plans = [job.intent.search.plan for job in jobs]
    return [NonPrivate() if plan is None else plan for plan in plans if not isinstance(plan, NoOp)]


# After the fits


def _run(key: Key, job: Job, family: Family, judge: Judge, held_out: HeldOut | None) -> Run:
    estimator, (epsilon, gap, seed) = job.estimator, key
    outcome, report = estimator.outcome_, estimator.constraint_report_
    swept = family.places(gap, job.intent.cells, job.intent.training.classes, vacuous=False)
    values, noise = outcome.values[swept], outcome.spread[swept]
    run = Run(
        epsilon,
        gap,
        seed,
        defined(float(np.max(values))) if len(values) else None,
        float(noise.max()) if len(noise) else None,
        report.met,
        report.reason,
        report.rounds,
    )
    model: Any = estimator.model_
    return run if held_out is None else measured(run, judge, held_out.histogram(model))


def _warn(runs: Sequence[Run]) -> None:
    broken = sum(run.met is False for run in runs)
    if broken:
        text = (
            f"{broken} of {len(runs)} models do not meet a constraint: see not_met in table(), and "
            f"the "
            "constraint_report_ of each. Ask for larger gaps, larger epsilons or more rounds there."
        )
        warnings.warn(text, ConstraintNotMet, stacklevel=3)
