"""What a planned search will release and what noise it will put into its values, from public facts
alone, before any row is read.

A search is planned and priced as for a fit, and the noise of its values is worked out by the
functions that a fit reports it by, at the sizes of groups that are `Supposed`: so both cannot drift
apart. Releases are those of its trace, where it has one. Two deviations are distinguished, both of
one constraint's value:

    noise     of the value as it is released, of the final model
    sampling  of the exact training value around the population's: other rows would have given
    another

and three bounds follow from the noise (`Line`): below 2 deviations a gap as large as the bound
cannot be told from none.

Error that noise adds to a linear model (an estimate, with the two numbers that it supposes). A
descent with noise is, near its end, a linear filter: a weight of curvature k answers a constant
pull with the part phi of its way to where it is pulled, and noise of deviation s in the averaged
gradient with a deviation of s |h|; both follow from the steps, the momentum and the average alone
(`response`). Then a row has the score phi t + sigma e, where t is the score of the model without
noise, e is normal, and sigma = s |h| times the usual length of a row. It is decided wrongly more
often by

    E_t [ (2 sigmoid(|t|) - 1) Phi(-phi |t| / sigma) ],        t normal with deviation `SPREAD`

Supposed here: scores spread by `SPREAD` logits, the log loss is curved by `CURVATURE` along each
scaled number, and clipping takes nothing away (benchmarks/results/planned_noise.md has it beside
fits).

Guarantees (tests/methods/test_methods_forecast.py):
1. No row is read: what is foretold depends on the planned search and on supposed public numbers.
2. The noise agrees with what fits report, and with what is seen over seeds.
3. The noise multipliers, and how often each is drawn, are those of the plan's event: nothing is
   left out and nothing is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtr

from .. import _verdicts as verdicts
from .._types import Floats
from ..core import events
from ..core.events import Event
from ..core.passes import needs_rows
from ..core.pricing import as_measurements, constant_scale, is_free, unit_size
from ..core.promise import Promise
from ..curator import FULL, Asked, Measurement, Part, Poisson
from ..facts import Cells, RowLayout
from ..fairness import ConstraintSystem
from . import postprocess, score_bins
from .comparison import LOOKS
from .counts import CountPlan
from .descent import Batch
from .duals import ends
from .game import Game
from .least_squares import GroupRegression
from .objective_descent import LossDescent
from .objective_loop import Loop, PublicSearch
from .objectives import Problem, ReleasedProblem, Sampling
from .oracles import GameInstance
from .parity import ParityPlan, noise_of_values
from .postprocess import Released, value_noise, value_slopes
from .primal_dual import LONG_ROW, Plan, Search
from .systems import NO_GROUPS
from .tailoring import TailoredDescent

# -- what is supposed ------------------------------------------------------------------------------

KNOWN = 0.5
"""How far decisions are supposed to follow labels: half of the rows by their label, the rest as the
classes fall."""


@dataclass(frozen=True, eq=False)
class Supposed:
    """`rows` of which each sensitive column's values have these shares (`columns`, by name), and
    the classes theirs.

    Columns and labels are supposed to be independent of each other. Shares that nobody stated are
    equal: `guessed` names them.
    """

    rows: float
    columns: Mapping[str, Floats]
    classes: Floats
    guessed: tuple[str, ...] = ()

    @staticmethod
    def of(
        layout: RowLayout,
        rows: float,
        columns: Mapping[str, Sequence[float]] | None = None,
        classes: Sequence[float] | None = None,
    ) -> Supposed:
        """Of rows of this layout, with the shares that are known."""
        known = {} if columns is None else columns
        names = zip(layout.sensitive_names, layout.sensitive, strict=True)
        found = {name: _shares(known.get(name), len(values)) for name, values in names}
        guessed = [name for name in layout.sensitive_names if name not in known]
        count = max(1, len(layout.classes or ()))
        return Supposed(
            float(rows),
            found,
            _shares(classes, count),
            (*guessed, *(() if classes is not None else ("classes",))),
        )

    def at(self, rows: float) -> Supposed:
        """The same shares of another number of rows."""
        return Supposed(float(rows), self.columns, self.classes, self.guessed)

    def shares(self, cells: Cells | None) -> Floats:
        """Of the cells, in their order; of everyone where none are distinguished."""
        if cells is None:
            return np.ones(1)
        lines = [self.columns[name] for name in cells.names]
        if cells.mode == "marginal":
            return np.concatenate(lines)
        out = np.ones(1)
        for line in lines:
            out = np.multiply.outer(out, line).ravel()
        return out

    def counts(self, cells: Cells | None, *, by_label: bool) -> Floats:
        """(cells, labels), or one label where they are not distinguished."""
        labels = self.classes if by_label else np.ones(1)
        return np.asarray(self.rows * np.multiply.outer(self.shares(cells), labels))

    def decisions(self, counts: Floats) -> Floats:
        """(cells, labels, classes): how a model that has learnt something may decide about so many
        rows (`KNOWN`)."""
        classes = len(self.classes)
        fall = np.broadcast_to(self.classes, (counts.shape[1], classes))
        follow = (
            fall if counts.shape[1] != classes else KNOWN * np.eye(classes) + (1.0 - KNOWN) * fall
        )
        return np.asarray(counts[..., np.newaxis] * follow)


def _shares(given: Sequence[float] | None, count: int) -> Floats:
    return np.full(count, 1.0 / count) if given is None else np.asarray(given, np.float64)


# -- releases --------------------------------------------------------------------------------------

NAMES = {
    "histogram of an attached model": "rows by group, label and base decision",
    "cell counts": "rows by group",
    "histogram of attached codes": "rows by group, label and score",
    "feature sums": "sums of features by group",
    "gradient sum": "gradients",
    "gram matrices": "second moments of the features",
    "group losses": "losses by group",
    "histogram of decisions by group": "decisions by group",
    "gradient sum of a network": "gradients",
    "prediction histogram of a network": "decisions by group",
    "number moments": "means and deviations of the numbers",
    "prediction histogram": "decisions by group",
    "row count": "number of rows",
    "score histogram": "scores by group",
    "histogram of shifted decisions": "decisions by group",
}


@dataclass(frozen=True)
class Release:
    """One kind of release: `multiplier`, the standard deviation of its noise over its
    `sensitivity`, drawn `times` over.

    `sensitivity`: L2, the most that one person moves it; None where that is a maximum over public
    rows, or of a private choice. `share`: about which share of the budget all of them have, in
    zero-concentrated terms (1 / (2 multiplier^2) each). `epsilon`: of a private choice, which has
    no multiplier.
    """

    name: str
    multiplier: float | None
    sensitivity: float | None
    times: int
    share: float
    epsilon: float | None = None

    @property
    def weight(self) -> float:
        """What it costs, all draws together, before it is set beside the others."""
        if self.multiplier is None:
            return 0.0 if self.epsilon is None else self.times * self.epsilon**2 / 8.0
        return self.times / (2.0 * self.multiplier**2)


def of_measurements(
    measurements: Sequence[Measurement],
    layout: RowLayout,
    promise: Promise,
    *,
    times: int = 1,
    batch: Batch = FULL,
    cap: float | None = None,
    remark: str = "",
) -> list[Release]:
    """One line a measurement that has noise. `times`: in how many rounds; of fixed parts, in how many
    of a person's own."""
    found = []
    rate = batch.rate if isinstance(batch, Poisson) else 1.0
    for measurement in as_measurements(measurements) if measurements else []:
        if not promise.is_private or is_free(measurement.question, promise) or measurement.is_exact:
            continue
        known = not (
            promise.protects == "sensitive_features" and needs_rows(measurement.question, layout)
        )
        scale = (
            constant_scale(measurement.question, layout, promise, cap, measurement.order)
            if known
            else None
        )
        size = (
            None
            if scale is None
            else unit_size(scale, promise, FULL if isinstance(batch, Part) else batch)
        )
        if size == 0.0:  # the number of rows, where nobody comes or goes
            continue
        vector = measurement.by_cell
        multiplier = float(measurement.multiplier) if vector is None else float(vector.min())
        name = NAMES.get(measurement.question.innermost.name, measurement.question.name) + remark
        line = Release(name, multiplier, size, times * measurement.question.models, 0.0)
        found.append(replace(line, share=line.weight * rate**2))
    return found


def of_event(event: Event | None, name: str, *, times: int = 1) -> list[Release]:
    """The leaves of an event, where nothing more is known of them."""
    found = []
    for leaf, count, rate in _leaves(event, times, 1.0):
        multiplier, epsilon = _noise_of(leaf), _epsilon_of(leaf)
        what = "private choices" if isinstance(leaf, events.Exponential) else name
        line = Release(
            what, multiplier, None, count, 0.0, None if multiplier is not None else epsilon
        )
        found.append(replace(line, share=line.weight * rate**2))
    return found


def shared_out(lines: Iterable[Release]) -> tuple[Release, ...]:
    """The same, with shares of sum 1; equal lines that follow each other are one."""
    merged: list[Release] = []
    for line in lines:
        last = merged[-1] if merged else None
        if last is not None and replace(line, times=1, share=0.0) == replace(
            last, times=1, share=0.0
        ):
            merged[-1] = replace(last, times=last.times + line.times, share=last.share + line.share)
        else:
            merged.append(line)
    total = math.fsum(line.share for line in merged)
    return tuple(replace(line, share=line.share / total if total else 0.0) for line in merged)


_WITH_NOISE = events.Gaussian | events.Laplace | events.DiscreteLaplace


def _noise_of(leaf: Event) -> float | None:
    if isinstance(leaf, events.PerCell):
        return min(min(line) for line in leaf.multipliers)
    if isinstance(leaf, _WITH_NOISE):
        return float(leaf.noise_multiplier)
    return None


def _epsilon_of(leaf: Event) -> float | None:
    private = events.Pure | events.Exponential | events.Approximate
    return float(leaf.epsilon) if isinstance(leaf, private) else None


def _leaves(event: Event | None, times: int, rate: float) -> Iterator[tuple[Event, int, float]]:
    if event is None or isinstance(event, events.NoOp | events.NonPrivate):
        return
    if isinstance(event, events.Composed):
        for part in event.events:
            yield from _leaves(part, times, rate)
    elif isinstance(event, events.Repeated):
        yield from _leaves(event.event, times * event.count, rate)
    elif isinstance(event, events.PoissonSampled | events.VisiblySampled):
        yield from _leaves(event.event, times, rate * event.rate)
    elif isinstance(event, events.OnPart):
        if event.part == 0:  # a person is in one of the parts
            yield from _leaves(event.event, times, rate)
    else:
        yield event, times, rate


# -- what is foretold ------------------------------------------------------------------------------

DEVIATIONS = 2.0
"""How many deviations of its noise a gap has to be, to be told from none."""


@dataclass(frozen=True)
class Line:
    """One constraint: its name and `bound` (None: measured, not bounded), and the deviations above.
    `cells`: the groups that it is about, by number. `looks`, `among`: as in the report of a fit,
    see `_verdicts`."""

    name: str
    bound: float | None
    noise: float
    sampling: float | None
    cells: tuple[int, ...]
    among: int = 1
    looks: int = 1

    @property
    def enforceable(self) -> float:
        """The smallest bound that can be enforced: a gap above it by chance is not what noise alone
        often shows."""
        return DEVIATIONS * self.noise

    @property
    def verifiable(self) -> float:
        """The smallest bound that a search can aim inside of (`_verdicts.margins`), so that in four
        fits of five it is said to be met by the people that the rows are drawn from."""
        sampling, doubt = self.sampling or 0.0, float(ends(np.asarray(self.noise)))
        if not (self.noise or sampling):
            return 0.0
        margin = verdicts.inside(self.noise, sampling, doubt, looks=self.looks)
        return margin / (1.0 - verdicts.LEAST)

    @property
    def breach(self) -> float:
        """How far above its bound a value has to be, to be said "not met" in 19 fits of 20."""
        told = verdicts.deviations(1.0 - (1.0 - verdicts.CONFIDENCE) / self.among)
        return (told + verdicts.deviations(verdicts.CONFIDENCE)) * self.noise

    @property
    def can_be_enforced(self) -> bool:
        """Whether the required bound is one that can be."""
        return self.bound is None or self.noise == 0.0 or self.enforceable <= self.bound

    @property
    def can_be_verified(self) -> bool:
        """The same of a verdict "met"."""
        return self.bound is None or self.verifiable <= self.bound


@dataclass(frozen=True)
class Forecast:
    """Public facts alone. `why`: why no noise is foretold, where none is. `rounds`: of the search.
    `cells`: the groups that `lines` distinguish. `added_error`: what noise adds to the error of a
    linear model, about; None where that is not known. `aims`: whether the search aims inside its
    bounds, so that what can be verified mostly is."""

    releases: tuple[Release, ...]
    lines: tuple[Line, ...]
    cells: Cells | None
    rounds: int | None = None
    added_error: float | None = None
    why: str = ""
    aims: bool = False

    @property
    def noisiest(self) -> Line | None:
        """The constraint that is furthest from being enforced."""
        return max(
            self.lines, key=lambda line: line.enforceable - (line.bound or 0.0), default=None
        )


# -- of each search --------------------------------------------------------------------------------

NOT_OF_LOSSES = (
    "the noise of a loss depends on the model that is found, which public facts do not tell"
)


FREE = ", of a model without constraints"
REMARKS = {
    "a step of the learner": " of the learner, each round",
    "a step of the model without constraints": FREE,
}
"""By what was asked, for."""


def _listed(
    of: Any,
    measurements: Sequence[Measurement],
    times: int = 1,
    remark: str = "",
    batch: Batch = FULL,
) -> list[Release]:
    """Of what a plan, a game or a task asks, so often."""
    facts = {"cap": of.max_sample_weight, "times": times, "batch": batch, "remark": remark}
    return of_measurements(measurements, of.layout, of.promise, **facts)


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
    return Forecast(releases, lines, plan.cells, plan.settings.rounds, error, aims=True)


def _of_rounds(search: Search, rows: float) -> list[Release]:
    plan, model = search.planned, search.planned.model()
    times = max(1, plan.settings.rounds // (plan.parts or 1))
    asked = search.round_measurements(plan.clip_at(rows))
    free = plan.free_measurements() if plan.free_rounds else []
    return [
        *_listed(plan, plan.first()),
        *_listed(plan, asked, times, ", each round", plan.batch_of(0)),
        *_listed(plan, plan.last(model), 1, ", of the model that was found"),
        *_listed(plan, free, plan.free_rounds, FREE),
        *_listed(plan, plan.settled_measurements(model), 1, ", of the model handed out"),
        *_listed(plan, plan.free_last(model), 1, FREE),
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


def _of_asked(
    ground: GameInstance, asked: Iterable[Asked], times: int = 1, remark: str = ""
) -> list[Release]:
    """Of a trace, all of which is asked so often."""
    found: list[Release] = []
    for one in asked:
        if one.measurements:
            what = REMARKS.get(one.purpose, remark)
            found += _listed(ground, one.measurements, times, what, one.batch)
        else:
            found += of_event(one.event, "choices", times=times)
    return found


def _of_loop_over(search: Loop | PublicSearch) -> list[Release]:
    before, one, last = search.asked()
    free = 1 if isinstance(search, Loop) and search.compares else 0
    once, beside = before[: len(before) - free], before[len(before) - free :]
    return [
        *_of_asked(search.ground, once),
        *_of_asked(search.ground, one[:-1], search.rounds),
        *_of_asked(search.ground, one[-1:], search.rounds, ", each round"),
        *_of_asked(search.ground, beside, 1, FREE),
        *_of_asked(search.ground, last, 1, ", of the mixture"),
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
        ground.deviation(ground.counts, search.counts_multiplier) / posed.rows,
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
    found: list[Release] = []
    for measurements, batch, times in search.asked_in_turn(bound=not search.is_fixed):
        remark = ", each round" if times > 1 else ""
        found += _listed(search.task, measurements, times, remark, batch)
    releases = () if search.is_exact else shared_out(found)
    return Forecast(releases, (), None, search.rounds, None, NOT_OF_LOSSES)


@of.register
def _of_regression(search: GroupRegression, supposed: Supposed) -> Forecast:
    asked = (_listed(search.task, one) for one in search.asked_in_turn())
    releases = () if search.task.is_exact else shared_out(line for found in asked for line in found)
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
    moves = value_slopes(system, system.numerators, sizes, rates, system.shape[2])
    return np.sqrt(
        promise.rows_per_unit * np.asarray(moves.power(2) @ histogram.ravel(), np.float64).ravel()
    )


def groups_of(forecast: Forecast) -> tuple[Any, ...]:
    """The keys of the cells, in their order."""
    return (forecast.cells or NO_GROUPS).keys


# -- the error that noise adds ---------------------------------------------------------------------

SPREAD = 2.0
CURVATURE = 0.15
NODES = np.polynomial.hermite_e.hermegauss(64)


def added_error(plan: Plan, rows: float) -> float:
    """Of the plan of a linear model with noise, for so many rows."""
    s, layout = plan.settings, plan.layout
    rate = plan.rate_of(rows)
    if rate == 0.0:
        return _flipped(0.0, 1.0)
    rate = min(rate, 1.0 / CURVATURE)
    told, kicked = response(rate, s.momentum, s.rounds, s.averaged)
    unit = plan.unit_of(plan.clip_at(rows))
    noise = plan.gradient_multiplier * unit / (plan.sampling_rate * rows)
    length = min(LONG_ROW, math.sqrt(1.0 + layout.numbers + len(layout.code_sizes)))
    return _flipped(told, noise * kicked * length)


def response(rate: float, momentum: float, rounds: int, averaged: float) -> tuple[float, float]:
    """(phi, |h|) of Nesterov's descent on k/2 w^2, of the average of its late iterates
    (`duals.PrimalState`)."""
    late = (1.0 - averaged) * rounds
    weight, velocity, total, counted = 0.0, 0.0, 0.0, 0
    # what each round's noise came to: weight, velocity, and the sum that is averaged
    kicks = np.zeros((rounds, 3))
    for t in range(rounds):
        push = rate * (CURVATURE * weight - CURVATURE)  # pulled to 1
        velocity = momentum * velocity - push
        weight += momentum * velocity - push
        w, v = kicks[:t, 0], kicks[:t, 1]
        v[:] = momentum * v - rate * CURVATURE * w
        w[:] = w + momentum * v - rate * CURVATURE * w
        kicks[t, 0], kicks[t, 1] = -(1.0 + momentum) * rate, -rate
        if t >= late:
            total, counted = total + weight, counted + 1
            kicks[: t + 1, 2] += kicks[: t + 1, 0]
    many = max(1, counted)
    return total / many, float(np.linalg.norm(kicks[:, 2])) / many


def _flipped(told: float, noise: float) -> float:
    """The expectation above."""
    nodes, weights = NODES
    t = SPREAD * np.abs(nodes)
    wrong = ndtr(-told * t / noise) if noise > 0 else np.where(told * t > 0, 0.0, 0.5)
    return float(((weights / weights.sum()) * np.tanh(t / 2.0) * wrong).sum())
