"""What was required of a model, what its decisions were measured to be in training, and whether
that lets one tell.

Two verdicts stand apart, both at a confidence of 95 %. `population_verdict` is about the people
that the training rows were drawn from: noise of the release and sampling error together. It stands
first, and decides `met`. `verdict` is about the training rows themselves, over the noise alone.

The sampling error is that of rates of a model that was fixed in advance, to first order. This model
was fitted to the same rows: benchmarks/results/verdicts.md has how often a verdict was wrong
all the same.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import _verdicts as verdicts
from ..._verdicts import Verdict
from ...errors import ConstraintNotMet, NotEnforced
from ...learning import Outcome
from ...learning.descent import Reason
from ...learning.game import Equilibrium
from ...learning.least_squares import RegressionOutcome
from ...learning.objectives import Found
from ...show.charts import Axis, Row, Rows
from ...show.numbers import percent
from ...show.parts import Column, Fact, Facts, Note, Part, Shown, Table

MATERIAL = 0.01
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
    standard deviation of the value over draws of the rows; NaN: not known.
    """

    target: str
    bound: float
    value: float
    noise: float
    pressure: float
    among: int = 1
    looks: int = 1
    sampling: float = math.nan

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
        return _all_of(line.population_verdict for line in self.lines)

    @property
    def training_verdict(self) -> Verdict | None:
        """Of all constraints together, about the training rows themselves."""
        return _all_of(line.verdict for line in self.lines)

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
        return worst.value - worst.bound > MATERIAL * (
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
            "constraints": list(map(_written, self.table())),
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


def _all_of(found: Iterable[Verdict]) -> Verdict | None:
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


def _written(line: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinities: "inf", as everywhere in the library, and null for what is
    undefined."""
    return {
        name: _plain(value) if isinstance(value, float) else value for name, value in line.items()
    }


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return str(value) if math.isinf(value) else value


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
    report: ConstraintReport, reached: str, ask: str, *, number: str = ".4f", stacklevel: int = 3
) -> None:
    """The warning of a constraint that is not met. `reached`: what came so far; `ask`: for what."""
    worst = report.worst
    assert worst is not None
    text = (
        f"a constraint is not met: {worst.target}; {reached} {worst.value:{number}} (noise "
        f"{worst.noise:{number}}). {ask}; see constraint_report_."
    )
    warnings.warn(text, ConstraintNotMet, stacklevel=stacklevel)


def warn_if_not_enforced(
    report: ConstraintReport, kept: float = 1.0, *, went_on: bool = False, stacklevel: int = 3
) -> None:
    """The warning of a constraint that did not steer the fit. `kept`: of the final model, the
    share of what was found; `went_on`: its rounds went on without constraints."""
    remedy = (
        "Ask for a larger bound or epsilon, put small groups together or bring more rows; see "
        "constraint_report_."
    )
    if went_on:
        text = (
            "noise hides a constraint from all rounds together, by the released counts. Their "
            "budget trained the model without constraints, part of whose answers may be one class "
            f"now. {remedy}"
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
    warnings.warn(text, NotEnforced, stacklevel=stacklevel)
