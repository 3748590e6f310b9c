"""What a fit reports of itself: baselines, constraints, gaps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from .. import _verdicts as verdicts
from .._verdicts import Verdict, deviations
from ..errors import (
    ConstraintNotMet,
    NoBetterThanConstant,
    NotEnforced,
    WorseThanBaseline,
)
from ..methods import Outcome
from ..methods.comparison import Comparison, Constant, Rival
from ..methods.descent import Reason
from ..methods.game import Equilibrium
from ..methods.least_squares import RegressionOutcome
from ..methods.objectives import Found
from ..show.charts import Axis, Row, Rows
from ..show.numbers import percent
from ..show.parts import Column, Fact, Facts, Note, Part, Shown, Table
from .cautions import outside

# ------------------------------ baselines
# A fitted model beside what costs nothing: is it better than a constant answer, and than no
# constraint and some constants?
#
# Every number is released, with the noise of its release, and about training rows. A verdict says
# "worse" where the model's error is larger by more than noise explains, at a confidence of 95 %.

CONSTANT, MIXING, FREE = "the best constant", "mixing", "no constraint"
OF_SAME_BUDGET = "the same budget's model without constraints"
MODEL, MIXTURE, ONE_CLASS = "model", "mixture", "constant"
ERROR, SQUARES, OBJECTIVE = "error", "mean squared error", "objective"
MATERIAL = 0.001
"""Of an error, or as a part of what an objective comes to: less is nothing to warn of."""
DEAF = 0.5
"""Errors are shares: through more noise than this none can be told from another."""
Standing = Literal["better", "worse", "inconclusive"]
REMEDY = "Use fewer groups, a larger epsilon, a larger bound or another method"
REMEDY_OF_FEW = "Use more rows or a larger epsilon."


@dataclass(frozen=True)
class Compared:
    """A baseline: its `name`, what it is in words (`remark`), its `error`, and the model's error
    minus it, with the standard deviation of that `difference`. `fair`: whether it keeps the
    constraints as well as the model does; one that does not is shown, and is no reason against the
    model."""

    name: str
    remark: str
    error: float
    difference: float
    noise: float
    fair: bool = True

    @property
    def verdict(self) -> Standing:
        """Whether the model is "better" or "worse" than this baseline, or that "inconclusive"
        from the noise."""
        if math.isnan(self.difference) or math.isnan(self.noise):
            return "inconclusive"
        away = deviations(0.95) * self.noise
        return (
            "worse"
            if self.difference > away
            else "better"
            if self.difference < -away
            else "inconclusive"
        )


@dataclass(frozen=True)
class BaselineReport(Shown):
    """The `error` in training of the final model, through `noise`, and its baselines.

    `unit`: of all errors here: the share of wrong decisions, the mean squared error, or the
    objective that was minimized. `handed_out`: "model", the one that was found; a "mixture" with it
    in it; or a baseline, by its name. `remark`: what that is in words, where it is not the model.
    """

    error: float
    noise: float
    lines: tuple[Compared, ...]
    unit: str = ERROR
    handed_out: str = MODEL
    remark: str = ""

    @property
    def worse(self) -> tuple[Compared, ...]:
        """The baselines that are better than the model beyond noise, by a tenth of a point or more,
        and keep the constraints as well."""
        least = MATERIAL * (1.0 if self.unit == ERROR else abs(self.error))
        rivals = [
            line
            for line in self.lines
            if line.fair and line.name != FREE and line.difference > least
        ]
        return tuple(
            line
            for line in rivals
            if line.verdict == "worse" and (self.unit != ERROR or line.noise < DEAF)
        )

    def line(self, name: str) -> Compared | None:
        """The baseline of that name, if there is one."""
        return next((line for line in self.lines if line.name == name), None)

    def table(self) -> list[dict[str, Any]]:
        """One mapping a baseline, of plain values; undefined is None."""
        return [
            {name: _plain(value) for name, value in asdict(line).items()}
            | {"verdict": line.verdict}
            for line in self.lines
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "unit": self.unit,
            "error": _plain(self.error),
            "noise": _plain(self.noise),
            "handed_out": self.handed_out,
            "remark": self.remark,
            "baselines": self.table(),
        }

    def parts(self) -> Iterator[Part]:
        """The error of the model, and what each baseline costs or saves."""
        told = (
            f"{_shown(self.error, self.unit)} (noise {_shown(self.noise, self.unit)}) in training"
        )
        facts = [Fact(self.unit, told)]
        if self.handed_out != MODEL:
            facts.append(Fact("returned", f"not the model that was found, but {self.remark}"))
        yield Facts(tuple(facts))
        unit = "percent" if self.unit == ERROR else "plain"
        columns: dict[str, tuple[str, list[Any]]] = {
            "baseline": ("", [line.name for line in self.lines]),
            "what_it_is": ("", [line.remark for line in self.lines]),
            self.unit.replace(" ", "_"): (unit, [self._inside(line.error) for line in self.lines]),
            "against_it": ("", [self.cost(line) for line in self.lines]),
        }
        yield Table(
            tuple(Column(name, tuple(values), of) for name, (of, values) in columns.items()),
            "What the model is compared with, in training, through noise",
        )

    def cost(self, line: Compared) -> str:
        """What the model costs, or saves, against a baseline, and whether noise explains it."""
        beside = "" if line.fair else "; it satisfies the constraints less well"
        if math.isnan(line.difference):
            return f"{line.verdict}{beside}"
        size = (
            f"{100 * line.difference:+.1f} points"
            if self.unit == ERROR
            else f"{line.difference:+.3g}"
        )
        if line.name == FREE:
            sure = "" if line.verdict == "worse" else f", {line.verdict}"
            return f"cost of the constraint: {size}{sure}{beside}"
        return f"{size}, {line.verdict}{beside}"

    def _inside(self, error: float) -> float:
        """Noise may carry a share below 0 or above 1, where no share is."""
        return min(max(error, 0.0), 1.0) if self.unit == ERROR else error


def of_comparison(
    comparison: Comparison | None,
    classes: Sequence[Hashable],
    *,
    free: str = OF_SAME_BUDGET,
    handed_out: str = MODEL,
    remark: str = "",
) -> BaselineReport | None:
    """The report of what a search released to compare its model; None where it released nothing.
    `free`: what the model without constraints is, in words."""
    if comparison is None:
        return None
    constant, alone, mixed = comparison.constant(), comparison.unconstrained(), comparison.mixing()
    lines = [_line(CONSTANT, f"always {classes[constant.constant]!r}", constant)]
    if alone is not None:
        lines.append(_line(FREE, free, alone))
    if mixed is not None:
        replaced = (
            f"{100 * mixed.share:.0f} % of its answers replaced by {classes[mixed.constant]!r}"
        )
        told = (
            f"no constraint, with {replaced}"
            if mixed.share >= 0.005
            else "no constraint: as fair as it is"
        )
        lines.append(_line(MIXING, told, mixed))
    return BaselineReport(
        comparison.error, comparison.noise, tuple(lines), ERROR, handed_out, remark
    )


def of_objective(
    value: float,
    noise: float,
    constant: Constant | None,
    free: Rival | None,
    classes: Sequence[Hashable],
    *,
    is_error: bool,
) -> BaselineReport | None:
    """The report of decisions that make a group objective small: what they are compared by is that
    objective."""
    if constant is None or math.isnan(value):
        return None
    lines = [_line(CONSTANT, f"always {classes[constant.constant]!r}", constant)]
    if free is not None:
        lines.append(_line(FREE, OF_SAME_BUDGET, free))
    return BaselineReport(value, noise, tuple(lines), ERROR if is_error else OBJECTIVE)


def of_regression(outcome: RegressionOutcome) -> BaselineReport | None:
    """The report of coefficients that make squared errors, or a function of the groups', small."""
    constant, free = outcome.constant, outcome.free
    if constant is None or math.isnan(constant.difference):
        return None
    of_mean = free is not None  # else a descent, whose zero is the middle of the bounds
    remark = "the mean of all targets" if of_mean else "the middle of the target's bounds"
    lines = [_line(CONSTANT, remark, constant)]
    if free is not None:
        lines.append(_line(FREE, "least squares of the same release", free))
    return BaselineReport(
        constant.error + constant.difference, outcome.value_noise, tuple(lines), SQUARES
    )


def of_tailored(outcome: RegressionOutcome) -> BaselineReport | None:
    """The report of a classifier that makes groups' log losses small: the objective is what it is
    compared by."""
    constant = outcome.constant
    if constant is None or math.isnan(constant.difference):
        return None
    line = _line(CONSTANT, "the classes' shares for everybody", constant)
    return BaselineReport(outcome.value, outcome.value_noise, (line,), OBJECTIVE)


def warn_if_worse(report: BaselineReport | None, *, learnt: bool = True) -> None:
    """The warning of a model that is worse than what costs nothing, and of the final model in
    its place; or of one that is not shown to be better than one answer for everybody. `learnt`:
    whether there is anything in the model."""
    if not learnt:
        text = (
            f"nothing was learnt: the released number of rows cannot be told from none. "
            f"{REMEDY_OF_FEW}"
        )
        warnings.warn(text, NoBetterThanConstant, stacklevel=outside())
        return
    if report is None:
        return
    constant = report.line(CONSTANT)
    if report.worse:
        line = max(report.worse, key=lambda one: one.difference)
        said, kind = f"the model is worse than {line.name}", WorseThanBaseline
    elif constant is not None and constant.fair and constant.verdict != "better":
        line, said, kind = (
            constant,
            f"the model is not shown to be better than {constant.name}",
            NoBetterThanConstant,
        )
    else:
        return
    unit = report.unit
    by = (
        f"{_shown(report.error, unit)} against {_shown(line.error, unit)} in training (noise "
        f"{_shown(line.noise, unit)})"
    )
    instead = "" if report.handed_out == MODEL else f" (Handed out: {report.remark}.)"
    text = f"{said}, {line.remark}: {unit} {by}.{instead} {REMEDY}; see baselines_."
    warnings.warn(text, kind, stacklevel=outside())


def _line(name: str, remark: str, rival: Rival) -> Compared:
    return Compared(name, remark, rival.error, rival.difference, rival.noise, rival.admitted)


def _shown(value: float, unit: str) -> str:
    return f"{100 * min(max(value, 0.0), 1.0):.1f} %" if unit == ERROR else f"{value:.4g}"


def _plain(value: object) -> Any:
    """As JSON has it, without infinities: "inf", and null for what is undefined."""
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else str(value) if math.isinf(value) else value


# ------------------------------ constraint_report
# What was required of a model, what its decisions were measured to be in training, and whether
# that lets one tell.
#
# Two verdicts stand apart, both at a confidence of 95 %. `population_verdict` is about the people
# that the training rows were drawn from: noise of the release and sampling error together. It stands
# first, and decides `met`. `verdict` is about the training rows themselves, over the noise alone.
#
# The sampling error is that of rates of a model that was fixed in advance, to first order. This model
# was fitted to the same rows: benchmarks/results/verdicts.md has how often a verdict was wrong
# all the same.

MATERIAL_GAP = 0.01
GIVEN_UP = 0.5
"""The share of what a search found in the final model, below which it was given up."""
NOTHING_LEARNT = (
    "the released number of rows cannot be told from none: the model was left at zero, which "
    "favours no class"
)
PEOPLE = "the people that the training rows were drawn from"
CONFIDENT = percent(verdicts.CONFIDENCE)


@dataclass(frozen=True)
class ConstraintLine:
    """One constraint: `target` in words, its `bound`, its noisy training `value` and the standard
    deviation of that `noise`.

    `pressure`: how hard the search pressed it at the end. `among`: of how many constraints it is
    one. `looks`: from how many models this one may have been picked by its value. `sampling`: the
    standard deviation of the value over draws of the rows; NaN: not known. `aim`: what the search
    aimed at, inside the bound, so that noise and sampling error leave room for a verdict; None: the
    bound itself.
    """

    target: str
    bound: float
    value: float
    noise: float
    pressure: float
    among: int = 1
    looks: int = 1
    sampling: float = math.nan
    aim: float | None = None

    @property
    def verdict(self) -> Verdict:
        """Of the training rows: "met", "not met", or "inconclusive" from the noise (or because
        the value is undefined)."""
        return verdicts.of_noisy(
            self._possible, self.bound, self.noise, among=self.among, looks=self.looks
        )

    @property
    def population_verdict(self) -> Verdict:
        """Of the people that the training rows were drawn from: noise and sampling error
        together."""
        return verdicts.of_sampled(
            self._possible,
            self.bound,
            self.noise,
            self.sampling,
            among=self.among,
            looks=self.looks,
        )

    @property
    def _possible(self) -> float:
        """The value, moved up to what it can be: no loss is below 0, no difference below -1. To
        first order the noise of a group that hardly anybody is in is too small, and a value far
        below must not be taken for a bound that is met."""
        return max(self.value, 0.0 if self.target.startswith("mean loss") else -1.0)


@dataclass(frozen=True)
class ConstraintReport(Shown):
    """Released values only: rates of the model's decisions on the training rows, measured once with
    noise of the plan.

    `of_what`: "decisions", or "predictions" where the model says numbers. `required`: every
    requirement as a sentence.
    """

    lines: tuple[ConstraintLine, ...]
    rounds: int
    reason: str
    of_what: str = "decisions"
    required: tuple[str, ...] = ()

    @staticmethod
    def of(
        outcome: Outcome | Equilibrium | Found, required: Iterable[str] = ()
    ) -> ConstraintReport:
        """The report of a search's outcome."""
        columns = (outcome.names, outcome.bounds, outcome.values, outcome.spread, outcome.duals)
        lines = _lines(
            columns, outcome.sampling, 1 if isinstance(outcome, Found) else outcome.looks
        )
        inside = getattr(outcome, "inside", None)
        if inside is not None:
            lines = tuple(
                replace(line, aim=float(aim)) if aim < line.bound else line
                for line, aim in zip(lines, inside, strict=True)
            )
        reason = outcome.reason.value if outcome.learnt else NOTHING_LEARNT
        return ConstraintReport(lines, outcome.rounds, reason, required=tuple(required))

    @staticmethod
    def of_losses(
        outcome: RegressionOutcome, of_what: str = "predictions", required: Iterable[str] = ()
    ) -> ConstraintReport:
        """The report of bounds on groups' losses."""
        columns = (outcome.names, outcome.bounds, outcome.values, outcome.spread, outcome.pressed)
        lines = _lines(columns, outcome.sampling)
        return ConstraintReport(lines, outcome.calls, outcome.reason, of_what, tuple(required))

    @property
    def verdict(self) -> Verdict | None:
        """Of all constraints together, for the people that the training rows were drawn from; None:
        none was required."""
        return all_of(line.population_verdict for line in self.lines)

    @property
    def training_verdict(self) -> Verdict | None:
        """Of all constraints together, about the training rows themselves."""
        return all_of(line.verdict for line in self.lines)

    @property
    def met(self) -> bool | None:
        """True where every constraint is met by the people that the training rows were drawn from,
        False where one is not, None where noise and sampling error do not let one tell."""
        return verdicts.together(line.population_verdict for line in self.lines)

    @property
    def met_in_training(self) -> bool | None:
        """The same of the training rows themselves, where only noise is between."""
        return verdicts.together(line.verdict for line in self.lines)

    @property
    def missed_by_far(self) -> bool:
        """Whether a constraint is not met on the training rows by more than a point, or a bound on
        losses by more than a hundredth of it: what a fit warns of. Many people's values have little
        noise, and a search may end a few tenths of a point above its bound."""
        worst = self.worst
        if worst is None or worst.verdict != verdicts.NOT_MET:
            return False
        return worst.value - worst.bound > MATERIAL_GAP * (
            1.0 if self.of_what == "decisions" else abs(worst.bound)
        )

    @property
    def worst(self) -> ConstraintLine | None:
        """The constraint that is furthest above its bound, among those that are not met if there is
        one; None where nothing was required."""
        defined = [line for line in self.lines if not math.isnan(line.value)]
        return max(
            defined,
            key=lambda line: (line.verdict == verdicts.NOT_MET, line.value - line.bound),
            default=None,
        )

    @property
    def hidden(self) -> ConstraintLine | None:
        """Of the constraints that noise hides, the noisiest: even a value of 0 would not be told
        from one above the bound. None where there is none."""
        unclear = [
            line
            for line in self.lines
            if line.verdict == verdicts.UNCLEAR and not math.isnan(line.noise)
        ]
        unclear = [line for line in unclear if math.isfinite(line.bound)]
        of_none = [replace(line, value=0.0) for line in unclear]
        drowned = [
            line
            for line, none in zip(unclear, of_none, strict=True)
            if none.verdict != verdicts.MET
        ]
        return max(drowned, key=lambda line: line.noise, default=None)

    def saying(self, required: Iterable[str]) -> ConstraintReport:
        """The same with what was required in sentences."""
        return replace(self, required=tuple(required))

    def table(self) -> list[dict[str, Any]]:
        """One mapping a constraint, of plain values; undefined is None."""
        return [
            {
                "target": line.target,
                "bound": line.bound,
                "aim": line.aim,
                "value": _defined(line.value),
                "noise": line.noise,
                "sampling": _defined(line.sampling),
                "pressure": line.pressure,
                "verdict": line.verdict,
                "population_verdict": line.population_verdict,
            }
            for line in self.lines
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values. `verdict` and `met` are about the people that the training rows were
        drawn from."""
        return {
            "rounds": self.rounds,
            "reason": self.reason,
            "required": list(self.required),
            "verdict": self.verdict,
            "training_verdict": self.training_verdict,
            "confidence": verdicts.CONFIDENCE,
            "met": self.met,
            "constraints": [{n: _plain(v) for n, v in line.items()} for line in self.table()],
        }

    def parts(self) -> Iterator[Part]:
        """Both verdicts, a line a constraint, and the picture of their intervals."""
        rounds = f"{self.rounds}: {self.reason}" if self.rounds else self.reason
        if not self.lines:
            yield Facts((Fact("rounds", rounds),))
            yield Note("No constraint was required.")
            return
        told = [Fact("required", one) for one in self.required]
        told += [
            Fact("people", f"{PEOPLE}, at {CONFIDENT} confidence", self.verdict or ""),
            Fact("training", "the training rows, over the noise", self.training_verdict or ""),
            Fact("rounds", rounds),
        ]
        if self.training_verdict == verdicts.NOT_MET and self.worst is not None:
            told.append(Fact("missed", self._excess(self.worst)))
        yield Facts(tuple(told))
        unit = "points" if self.of_what == "decisions" else "plain"
        columns: dict[str, tuple[str, Iterable[Any]]] = {
            "constraint": ("", (line.target.partition(" <= ")[0] for line in self.lines)),
            "value": (unit, (line.value for line in self.lines)),
            "at_most": (unit, (line.bound for line in self.lines)),
            "aimed_at": (
                unit,
                (line.bound if line.aim is None else line.aim for line in self.lines),
            ),
            "noise": (unit, (line.noise for line in self.lines)),
            "sampling_error": (unit, (line.sampling for line in self.lines)),
            "training_rows": ("", (line.verdict for line in self.lines)),
            "people": ("", (line.population_verdict for line in self.lines)),
        }
        yield Table(
            tuple(Column(name, tuple(values), of) for name, (of, values) in columns.items()),
            f"Values of the model's {self.of_what} in training, and the standard deviations of their "
            f"noise and sampling error",
        )
        yield self._chart(unit)

    def _chart(self, unit: str) -> Rows:
        """A row a constraint; of two gaps that are each other's opposite, the larger one."""
        mirrored = {(line.bound, line.noise, -line.value) for line in self.lines if line.value > 0}
        rows = []
        for line in self.lines:
            if line.value < 0 and (line.bound, line.noise, line.value) in mirrored:
                continue
            noise, both = (
                verdicts.deviations(0.5 + verdicts.CONFIDENCE / 2) * spread
                for spread in (line.noise, math.hypot(line.noise, line.sampling))
            )
            known = math.isfinite(line.value) and math.isfinite(noise)
            rows.append(
                Row(
                    f"{line.verdict}: {line.target.partition(' <= ')[0]}",
                    _defined(line.value),
                    line.value - noise if known else None,
                    line.value + noise if known else None,
                    hollow=line.verdict == verdicts.UNCLEAR,
                    bound=line.bound if math.isfinite(line.bound) else None,
                    wider=(line.value - both, line.value + both)
                    if known and math.isfinite(both)
                    else None,
                )
            )
        title = "Constraints in training, through the noise of privacy; bars: what was required"
        return Rows(title, Axis("value", unit), tuple(rows), confidence=verdicts.CONFIDENCE)

    def _excess(self, line: ConstraintLine) -> str:
        """By how much a constraint is missed on the training rows, and what helps."""
        over = line.value - line.bound
        by = f"{100 * over:.2g} points" if self.of_what == "decisions" else f"{over:.2g}"
        more = "" if self.reason != Reason.LIMIT.value else ": more rounds may bring it inside"
        return f"On the training rows {line.target.partition(' <= ')[0]} is above by {by}{more}."


def all_of(found: Iterable[Verdict]) -> Verdict | None:
    """The verdict on constraints together; None of none."""
    told = list(found)
    return (
        None
        if not told
        else {True: verdicts.MET, False: verdicts.NOT_MET, None: verdicts.UNCLEAR}[
            verdicts.together(told)
        ]
    )


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value


def _lines(
    columns: tuple[Any, ...], sampling: object, looks: int = 1
) -> tuple[ConstraintLine, ...]:
    lines = list(zip(*columns, strict=True))
    drawn = (
        [math.nan] * len(lines) if sampling is None else np.asarray(sampling, np.float64).tolist()
    )
    return tuple(
        ConstraintLine(
            name, float(bound), float(value), float(noise), float(pressure), len(lines), looks, one
        )
        for (name, bound, value, noise, pressure), one in zip(lines, drawn, strict=True)
    )


def warn_of_missed(
    report: ConstraintReport, reached: str, ask: str, *, number: str = ".4f"
) -> None:
    """The warning of a constraint that is not met. `reached`: what came so far; `ask`: for what."""
    worst = report.worst
    assert worst is not None
    text = (
        f"a constraint is not met: {worst.target}; {reached} {worst.value:{number}} (noise "
        f"{worst.noise:{number}}). {ask}; see constraint_report_."
    )
    warnings.warn(text, ConstraintNotMet, stacklevel=outside())


def warn_if_not_enforced(
    report: ConstraintReport, kept: float = 1.0, *, vain: bool = False
) -> None:
    """The warning of a constraint that did not steer the fit. `kept`: of the final model, the
    share of what was found; `vain`: it gave way to the model without constraints."""
    remedy = (
        "Ask for a larger bound or epsilon, put small groups together or bring more rows; see "
        "constraint_report_."
    )
    if vain:
        text = (
            "noise hides a constraint from all rounds together, by the released counts. The model "
            "without constraints was kept, part of whose answers may be one class now. "
            f"{remedy}"
        )
    elif (line := report.hidden) is not None:
        text = (
            f"noise hides a constraint: {line.target} has noise of {line.noise:.4f}, so that even "
            f"a value of 0 would not be "
            f"told from one above its bound. Such a constraint steers the fit little or not at "
            f"all. {remedy}"
        )
    elif kept < GIVEN_UP:
        text = (
            f"what the search found is {100 * kept:.0f} % of what is handed out: the rest costs "
            f"nothing further, and errs less "
            f"at the same gap by what was released. The search did not follow its constraints. "
            f"{remedy} See baselines_, too."
        )
    else:
        return
    warnings.warn(text, NotEnforced, stacklevel=outside())


# ------------------------------ gap_report
# How far apart groups' decisions are, as a fit measured it once with noise of its plan.

NOT_REQUIRED = (
    "no bound was required: a penalty makes gaps smaller, so none of them is met or not met"
)
SHOWN = 10  # of the widest gaps; every gap is there in both directions, and one of them is enough


@dataclass(frozen=True)
class GapLine:
    """One comparison of groups: `what` in words, its noisy training `value` and the standard
    deviation of that `noise`."""

    what: str
    value: float
    noise: float


@dataclass(frozen=True)
class GapReport(Shown):
    """Released values only: differences of rates of the model's decisions on the training rows."""

    lines: tuple[GapLine, ...]
    rounds: int
    reason: str

    @staticmethod
    def of(outcome: Outcome) -> GapReport:
        """The report of a search's outcome."""
        columns = zip(outcome.names, outcome.values.tolist(), outcome.spread.tolist(), strict=True)
        lines = tuple(GapLine(_without_bound(name), value, noise) for name, value, noise in columns)
        return GapReport(lines, outcome.rounds, outcome.reason.value)

    @property
    def largest(self) -> GapLine | None:
        """The widest gap; None where groups were not distinguished."""
        defined = [line for line in self.lines if not math.isnan(line.value)]
        return max(defined, key=lambda line: line.value, default=None)

    def table(self) -> list[dict[str, Any]]:
        """One mapping a comparison, of plain values; undefined is None."""
        return [
            {
                "what": line.what,
                "value": None if math.isnan(line.value) else line.value,
                "noise": line.noise,
            }
            for line in self.lines
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "rounds": self.rounds,
            "reason": self.reason,
            "verdict": None,
            "why": NOT_REQUIRED,
            "gaps": self.table(),
        }

    def parts(self) -> Iterator[Part]:
        """What is said of it, and a line a gap, the widest first."""
        yield Facts(
            (
                Fact("verdict", NOT_REQUIRED),
                Fact("rounds", f"{self.rounds}: {self.reason}"),
            )
        )
        widest = sorted(
            (line for line in self.lines if line.value >= 0), key=lambda line: -line.value
        )
        if not self.lines:
            yield Note("The fit had no groups.")
            return
        yield Table(
            (
                Column("comparison", tuple(line.what for line in widest)),
                Column("gap", tuple(line.value for line in widest), "points"),
                Column("noise", tuple(line.noise for line in widest), "points"),
            ),
            "Gaps of the model's decisions in training, with the standard deviation of their noise",
            shown=SHOWN,
        )
        undefined = sum(math.isnan(line.value) for line in self.lines)
        if undefined:
            yield Note(f"Undefined, for want of rows: {undefined}.")


def _without_bound(name: str) -> str:
    """A constraint's name without the bound at its end, which says 0 and means nothing here."""
    return name.partition(" <= ")[0]
