"""What noise a planned search will put into what it releases: from public facts alone, before any
row is read.

A search is planned and priced as for a fit (`plans`, `game_plan`, `group_plan`, `postprocess`), and
the noise of its values is worked out by the functions that a fit reports it by, at the sizes of
groups that are `Supposed`. So both cannot drift apart.

Two deviations are distinguished, both of one constraint's value:

    noise     of the value as it is released, of the final model
    sampling  of the exact training value around the population's: other rows would have given
    another

and three bounds follow from the noise (`Line`): below 2 deviations a gap as large as the bound
cannot be told from none.

Guarantees (tests/learning/test_learning_forecast.py):
1. No row is read: what is foretold depends on the planned search and on supposed public numbers.
2. The noise agrees with what fits report, and with what is seen over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
from scipy import sparse

from ..._types import Floats
from ...core.promise import Promise
from ...curator.trace import Asked
from ...facts import Cells
from ...fairness import ConstraintSystem
from .. import postprocess, score_bins
from ..comparison import LOOKS
from ..counts import CountPlan
from ..game import Game
from ..least_squares import GroupRegression
from ..objective_descent import LossDescent
from ..objective_loop import Loop, PublicSearch
from ..objectives import Problem, ReleasedProblem, Sampling
from ..oracles import GameInstance
from ..parity import ParityPlan, noise_of_values
from ..postprocess import Released, value_noise
from ..primal_dual import Search
from ..systems import NO_GROUPS
from ..tailoring import TailoredDescent
from .added_error import added_error
from .foretold import Forecast, Line
from .releases import Release, of_event, of_measurements, shared_out
from .supposed import Supposed

NOT_OF_LOSSES = (
    "the noise of a loss depends on the model that is found, which public facts do not tell"
)


@singledispatch
def of(search: Any, supposed: Supposed) -> Forecast:
    """What is foretold of a planned search. Of one that is not listed below, its releases alone.

    Cheap: `forecast.of(search, Supposed.of(layout, rows))` at the beginning of a fit costs less
    than a round of it."""
    return Forecast(
        shared_out(of_event(search.plan, "sums by group")), (), None, None, None, NOT_OF_LOSSES
    )


@of.register
def _of_descent(search: Search, supposed: Supposed) -> Forecast:
    plan, bounds = search.planned, search.limits
    bounded = np.isfinite(bounds)
    system, rows = plan.system, supposed.rows
    error = None if plan.skeleton is not None or plan.is_exact else added_error(plan, rows)
    releases = () if plan.is_exact else shared_out(_of_rounds(search, rows))
    if system is None:
        return Forecast(releases, (), None, plan.settings.rounds, error)
    counts = supposed.counts(plan.cells, by_label=plan.by_label)
    histogram = supposed.decisions(counts)
    noise_of = plan.noise_of(counts, histogram[..., 1:] if plan.outputs == 1 else histogram)
    # at zero, of all thresholds that may be taken
    looks = 2 if plan.has_thresholds and not plan.settles else 1
    # the values say the final model
    looks = LOOKS if plan.companion and bounded.any() else looks
    told = [float(bound) if known else None for bound, known in zip(bounds, bounded, strict=True)]
    drawn = _sampling(system, counts, histogram, plan.promise)
    lines = _lines(system, told, noise_of(0), drawn, looks)
    return Forecast(releases, lines, plan.cells, plan.settings.rounds, error)


def _of_rounds(search: Search, rows: float) -> list[Release]:
    plan = search.planned
    facts: dict[str, Any] = {
        "layout": plan.layout,
        "promise": plan.promise,
        "cap": plan.max_sample_weight,
    }
    model, batch = plan.model(), plan.batch_of(0)
    times = max(1, plan.settings.rounds // (plan.parts or 1))
    asked = search.round_measurements(plan.clip_at(rows))
    beside = ", of a model without constraints"
    free = plan.free_measurements() if plan.free_rounds else []
    return [
        *of_measurements(plan.first(), **facts),
        *of_measurements(asked, times=times, batch=batch, remark=", each round", **facts),
        *of_measurements(plan.last(model), remark=", of the model that was found", **facts),
        *of_measurements(free, times=plan.free_rounds, remark=beside, **facts),
        *of_measurements(
            plan.settled_measurements(model), remark=", of the model handed out", **facts
        ),
        *of_measurements(plan.free_last(model), remark=beside, **facts),
    ]


@of.register
def _of_game(search: Game, supposed: Supposed) -> Forecast:
    ground, system = search.ground, search.system
    releases = () if ground.is_exact else shared_out(_of_plays(search))
    if system is None:
        return Forecast(releases, (), None, search.rounds)
    counts = supposed.counts(ground.cells, by_label=ground.by_label)
    histogram = supposed.decisions(counts)
    heard = search.rounds - int(search.oracle.burn_in * search.rounds)
    noise = search.noise_of(counts, histogram, heard)
    bounds = system.bounds.tolist()
    looks = LOOKS if search.compares else 1
    lines = _lines(
        system, bounds, noise, _sampling(system, counts, histogram, ground.promise), looks
    )
    return Forecast(releases, lines, ground.cells, search.rounds)


def _of_plays(search: Game) -> list[Release]:
    first, one, last = search.asked()
    return [
        *_of_asked(search.ground, first),
        *_of_asked(search.ground, one, search.rounds, ", each round"),
        *_of_asked(search.ground, last, 1, FREE if search.compares else ", of the mixture"),
    ]


FREE = ", of a model without constraints"
REMARKS = {
    "a step of the learner": " of the learner, each round",
    "a step of the model without constraints": FREE,
}
"""By what was asked, for."""


def _of_asked(
    ground: GameInstance, asked: Iterable[Asked], times: int = 1, remark: str = ""
) -> list[Release]:
    """Of a trace, all of which is asked so often."""
    found: list[Release] = []
    for one in asked:
        if not one.measurements:
            found += of_event(one.event, "choices", times=times)
            continue
        found += of_measurements(
            one.measurements,
            ground.layout,
            ground.promise,
            times=times,
            batch=one.batch,
            cap=ground.max_sample_weight,
            remark=REMARKS.get(one.purpose, remark),
        )
    return found


def _of_loop_over(search: Loop | PublicSearch) -> list[Release]:
    ground = search.ground
    facts: dict[str, Any] = {
        "layout": ground.layout,
        "promise": ground.promise,
        "cap": ground.max_sample_weight,
    }
    once, one = search.oracle.asked(ground, search.counts_multiplier)
    last = search.free_measurements() if isinstance(search, Loop) else search.last_measurements()
    of_last = ", of the mixture" if isinstance(search, PublicSearch) else FREE
    audits = search.audit_measurements()
    return [
        *_of_asked(ground, once),
        *_of_asked(ground, one, search.rounds),
        *of_measurements(audits, times=search.rounds, remark=", each round", **facts),
        *of_measurements(last, remark=of_last, **facts),
    ]


@of.register(Loop)
@of.register(PublicSearch)
def _of_loop(search: Loop | PublicSearch, supposed: Supposed) -> Forecast:
    ground = search.ground
    releases = () if ground.is_exact else shared_out(_of_loop_over(search))
    posed = _posed(search.problem, search.counts_multiplier, search.penalty, supposed)
    losses = supposed.decisions(posed.counts) / posed.rows
    noise, of_counts = (
        search.noise_of_mixture(posed, losses) / posed.rows,
        search.noise_of_counts / posed.rows,
    )
    return Forecast(
        releases, _posed_lines(posed, losses, noise, of_counts), ground.cells, search.rounds
    )


@of.register
def _of_sampling(search: Sampling, supposed: Supposed) -> Forecast:
    posed = _posed(search.problem, search.counts_multiplier, 1.0, supposed)
    losses = supposed.decisions(posed.counts) / posed.rows
    noise, of_counts = (size / posed.rows for size in search.deviations)
    lines = _posed_lines(posed, losses, noise, of_counts)
    releases = (
        ()
        if search.ground.is_exact
        else shared_out(of_event(search.plan, "rows and decisions by group"))
    )
    return Forecast(releases, lines, search.ground.cells, 1)


@of.register
def _of_tailored(search: TailoredDescent, supposed: Supposed) -> Forecast:
    task, found = search.task, []
    facts: dict[str, Any] = {
        "layout": task.layout,
        "promise": task.promise,
        "cap": task.max_sample_weight,
    }
    for measurements, batch, times in search.asked_in_turn(bound=not search.is_fixed):
        found += of_measurements(
            measurements,
            times=times,
            batch=batch,
            remark=", each round" if times > 1 else "",
            **facts,
        )
    releases = () if search.is_exact else shared_out(found)
    return Forecast(releases, (), None, search.rounds, None, NOT_OF_LOSSES)


@of.register
def _of_regression(search: GroupRegression, supposed: Supposed) -> Forecast:
    task, found = search.task, []
    for measurements in search.asked_in_turn():
        found += of_measurements(
            measurements, task.layout, task.promise, cap=task.max_sample_weight
        )
    releases = () if task.is_exact else shared_out(found)
    return Forecast(releases, (), None, None, None, NOT_OF_LOSSES)


@of.register
def _of_losses(search: LossDescent, supposed: Supposed) -> Forecast:
    releases = shared_out(of_event(search.plan, "gradients and losses by group"))
    return Forecast(releases, (), None, search.rounds, None, NOT_OF_LOSSES)


def of_counts(
    plan: CountPlan,
    system: ConstraintSystem,
    supposed: Supposed,
    before: Sequence[Release] = (),
    edges: Floats | None = None,
) -> Forecast:
    """Of a post-processor; `before`: what its base releases, when it is fitted with it. `edges`: of
    the bins of its score."""
    counts = supposed.counts(plan.cells, by_label=True)
    decided = supposed.decisions(counts)
    raw = decided if edges is None else _in_bins(decided, edges)
    totals = raw.sum(axis=0) if plan.totals_are_public else None
    released = Released(raw, totals, plan.law(1.0), None, edges)
    noise = value_noise(released, system, postprocess.tables_of(released, system.shape[2]).base)
    lines = _lines(
        system, system.bounds.tolist(), noise, _sampling(system, counts, decided, plan.promise)
    )
    what = "base decision" if edges is None else "score"
    own = of_event(
        plan.event if plan.promise.is_private else None, f"rows by group, label and {what}"
    )
    size = float(plan.moved) if plan.kind == "discrete-laplace" else plan.length
    own = [replace(line, sensitivity=size) for line in own]
    return Forecast(shared_out([*_weighed(before), *own]), lines, plan.cells)


def of_parity(
    plan: ParityPlan,
    system: ConstraintSystem,
    cells: Cells,
    supposed: Supposed,
    before: Sequence[Release] = (),
) -> Forecast:
    """Of a post-processor by offsets; `before`: what its base releases, when it is fitted with
    it."""
    counts = supposed.counts(cells, by_label=False)
    decided = supposed.decisions(counts)
    noise = noise_of_values(system, decided[:, 0], plan.deviation)
    lines = _lines(
        system, system.bounds.tolist(), noise, _sampling(system, counts, decided, plan.promise)
    )
    own = of_event(plan.event if plan.promise.is_private else None, "decisions by group")
    own = [replace(line, sensitivity=plan.spread) for line in own]
    return Forecast(shared_out([*_weighed(before), *own]), lines, cells, plan.rounds)


def _in_bins(decided: Floats, edges: Floats) -> Floats:
    """Rows as they would be decided, evenly over the bins on either side of 0."""
    bins, usual = 1 + len(edges), score_bins.usual(edges)
    out = np.repeat(decided[..., :1] / usual, bins, axis=-1)
    out[..., usual:] = decided[..., 1:] / (bins - usual)
    return np.asarray(out)


def _weighed(lines: Iterable[Release]) -> list[Release]:
    """Lines of another plan, to be shared out anew."""
    return [replace(line, name=f"base: {line.name}", share=line.weight) for line in lines]


def _posed(
    problem: Problem, multiplier: float, penalty: float, supposed: Supposed
) -> ReleasedProblem:
    ground = problem.ground
    return problem.pose(
        supposed.counts(ground.cells, by_label=ground.by_label), multiplier, penalty
    )


def _posed_lines(
    posed: ReleasedProblem, losses: Floats, noise: float, of_counts: float
) -> tuple[Line, ...]:
    names, bounds, values = posed.values(losses)
    _, spread = posed.spread(losses, noise, of_counts)
    # too few rows to be told from none: it takes no part
    spread = np.where(np.isnan(values), math.inf, spread)
    cells = posed.cells_of_values()
    columns = zip(names, bounds.tolist(), spread.tolist(), cells, strict=True)
    return tuple(
        Line(name, bound, size, None, about, len(names)) for name, bound, size, about in columns
    )


def _lines(
    system: ConstraintSystem,
    bounds: Sequence[float | None],
    noise: Floats,
    sampling: Floats,
    looks: int = 1,
) -> tuple[Line, ...]:
    among, labels = len(system), system.shape[1]
    members = sparse.csr_array(abs(system.coefficients) @ system.members[system.event_of])
    lines = []
    for j, name in enumerate(system.names):
        places = members.indices[members.indptr[j] : members.indptr[j + 1]]
        about = tuple(sorted({int(place) // labels for place in places}))
        name = name if bounds[j] is not None else name.partition(" <= ")[0]
        lines.append(
            Line(name, bounds[j], float(noise[j]), float(sampling[j]), about, among, looks)
        )
    return tuple(lines)


def _sampling(
    system: ConstraintSystem, counts: Floats, histogram: Floats, promise: Promise
) -> Floats:
    """The deviation of each value over samples of rows, to first order: every row moves it by its
    own slope. A person's rows come together, and may all be alike."""
    sizes = system.event_sizes(counts, 1e-9)[system.event_of]
    rates = system.rates(histogram, counts, 1e-9)
    whole = sparse.csr_array(
        sparse.kron(system.members[system.event_of], np.ones((1, system.shape[2])))
    )
    slopes = sparse.diags_array(1.0 / sizes) @ (
        system.numerators - sparse.diags_array(rates) @ whole
    )
    moves = sparse.csr_array(system.coefficients @ slopes)
    return np.sqrt(
        promise.rows_per_unit * np.asarray(moves.power(2) @ histogram.ravel(), np.float64).ravel()
    )


def groups_of(forecast: Forecast) -> tuple[Any, ...]:
    """The keys of the cells, in their order."""
    return (forecast.cells or NO_GROUPS).keys
