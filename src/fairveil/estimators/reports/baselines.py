"""A fitted model beside what costs nothing: is it better than a constant answer, and than no
constraint and some constants?

Every number is released, with the noise of its release, and about training rows. A verdict says
"worse" where the model's error is larger by more than noise explains, at a confidence of 95 %.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..._verdicts import deviations
from ...errors import NoBetterThanConstant, RandomizedModel, WorseThanBaseline
from ...learning.comparison import Comparison, Constant, Rival
from ...learning.least_squares import RegressionOutcome
from ...show.parts import Column, Fact, Facts, Part, Shown, Table

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


def warn_if_worse(
    report: BaselineReport | None, *, learnt: bool = True, stacklevel: int = 3
) -> None:
    """The warning of a model that is worse than what costs nothing, and of the final model in
    its place; or of one that is not shown to be better than one answer for everybody. `learnt`:
    whether there is anything in the model."""
    if not learnt:
        text = (
            f"nothing was learnt: the released number of rows cannot be told from none. "
            f"{REMEDY_OF_FEW}"
        )
        warnings.warn(text, NoBetterThanConstant, stacklevel=stacklevel)
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
    warnings.warn(text, kind, stacklevel=stacklevel)


def warn_of_chance(remark: str, *, stacklevel: int = 3) -> None:
    """The warning of a mixture that nobody asked for. `remark`: what it is made of."""
    text = (
        f"the model is randomized: a mixture{f' of {remark}' if remark else ''}, one of which is "
        "drawn for each row. Two calls of predict may differ (predict_proba does not, nor does "
        "predict(X, random_state=0)), and there is no coef_. Pass randomised=False for one model."
    )
    warning = RandomizedModel(text)
    warning.in_shell = (
        f"the model is randomized: a mixture{f' of {remark}' if remark else ''}, one of which is "
        "drawn for each row. Two runs of fairveil predict may differ (--seed 0 draws alike). "
        "Say --set randomised=false for one model."
    )
    warnings.warn(warning, stacklevel=stacklevel)


def _line(name: str, remark: str, rival: Rival) -> Compared:
    return Compared(name, remark, rival.error, rival.difference, rival.noise, rival.admitted)


def _shown(value: float, unit: str) -> str:
    return f"{100 * min(max(value, 0.0), 1.0):.1f} %" if unit == ERROR else f"{value:.4g}"


def _plain(value: object) -> Any:
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else str(value) if math.isinf(value) else value
