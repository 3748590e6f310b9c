"""What `fairveil fit` prints: a line a fact, `label  value`, the verdicts first.

    fairness    met in training, cannot be told on held-out rows: the selection rates of any two groups of sex differ by ...
                training   3.1 points (noise: standard deviation 0.4): met
                held out   4.8 points (95% interval 2.1 to 7.4): cannot be told
    privacy     ...
    error       ...
    other gaps  ...

Every required constraint has its verdicts, those of training rows and of held-out rows apart: the first know the noise of the
release, the second the sampling error. A line without held-out rows says how to get them.

Guarantee (tests/cli/test_cli_summary.py):
1. The first word of a constraint's line is "met" only where every verdict about it is "met".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._verdicts import Verdict, of_interval, of_noisy
from ..estimators import GroupObjectiveClassifier, TailoredClassifier
from ..fairness import (
    DemographicParity,
    EqualizedOdds,
    ErrorRateParity,
    Notion,
)
from ..fairness.keys import shown
from ..fairness.notions import BoundedGroupLoss, GapNotion
from ..fairness.sentences import RATES, sentence
from ..privacy.statement import PrivacyStatement
from ..report.words import GUARDED, NEIGHBOURS, delta_words, stamps, up
from .deciding import Fitted, Shown
from .measured import Measured, measure, objective_values, table_of, training_value, training_verdict
from .methods import Asked, Method
from .samples import Sample, Truth

HELD_OUT = "--holdout 0.25 or --test TABLE measures it on rows that the fit has not seen"
USUAL: tuple[type[GapNotion], ...] = (DemographicParity, EqualizedOdds, ErrorRateParity)
MOST_GAPS = 3


@dataclass(frozen=True)
class Fact:
    """A line: its label ("" goes on with the fact above), its words, and the verdicts among them, to be shown in colour."""

    label: str
    words: str
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True)
class Seen:
    """One required constraint: in words, and what was seen of it."""

    required: str
    training: str | None = None
    training_verdict: Verdict | None = None
    held_out: str | None = None
    held_out_verdict: Verdict | None = None

    def facts(self) -> Iterator[Fact]:
        """Its lines."""
        told = self._together()
        yield Fact("fairness", f"{told[0]}: {self.required}", told[1])
        for where, words, verdict in (
            ("training", self.training, self.training_verdict),
            ("held out", self.held_out, self.held_out_verdict),
        ):
            if words is not None:
                yield Fact("", f"{where}   {words}" + (f": {verdict}" if verdict else ""), (verdict,) if verdict else ())

    def _together(self) -> tuple[str, tuple[Verdict, ...]]:
        train, held = self.training_verdict, self.held_out_verdict
        if train is None and held is None:
            return "not required" if self.training or self.held_out else "cannot be told", ()
        if train is None or held is None or train == held:
            word = train or held
            assert word is not None
            where = "" if train == held else " in training" if held is None else " on held-out rows"
            return f"{word}{where}", (word,)
        return f"{train} in training, {held} on held-out rows", (train, held)


def facts(clf: Fitted, method: Method, asked: Asked, held: Sample | None, statement: PrivacyStatement) -> Iterator[Fact]:
    """What is known of a fit, in the order of weight."""
    truth = None if held is None else held.truth()
    prediction = None if held is None else Shown(clf, held.features, None).judged()
    yield from fairness(clf, method, asked, truth, prediction)
    yield from privacy(statement)
    yield from error(clf, truth, prediction)
    yield from other_gaps(clf, asked, truth, prediction)


def fairness(clf: Fitted, method: Method, asked: Asked, truth: Truth | None, prediction: Any) -> Iterator[Fact]:
    """The verdict on every required constraint."""
    seen = [
        *_notions(clf, method, asked, truth, prediction),
        *_bounds(clf, asked, truth, prediction),
        *_losses(clf),
    ]
    for one in seen:
        yield from one.facts()
    if not seen:
        yield Fact("fairness", "nothing was required; --constraint demographic_parity:0.05 requires something")


def privacy(statement: PrivacyStatement) -> Iterator[Fact]:
    """What was spent, and of what; what must not be overlooked."""
    promise = statement.promise
    if not statement.is_private:
        yield Fact("privacy", "none: epsilon is infinite, and nothing is promised to anybody")
    else:
        of = f" of {promise.epsilon:g}" if promise.is_private else ""
        whose = f"{GUARDED[promise.protects]}, {NEIGHBOURS[promise.neighbours]}"
        yield Fact("privacy", f"epsilon {up(statement.epsilon)}{of} at delta {delta_words(statement.delta)}; {whose}")
    for words in stamps(statement):
        yield Fact("", words)


def error(clf: Fitted, truth: Truth | None, prediction: Any) -> Iterator[Fact]:
    """The model's error beside what is simpler: as released, and on held-out rows."""
    lines = []
    report = getattr(clf, "baselines_", None)
    if report is not None:
        lines.append(f"training   {_error(report.error, report.unit)} (noise: standard deviation {_deviation(report)})")
        for one in report.lines:
            lines.append(f"           {one.name} {_error(one.error, report.unit)}, {one.remark}: the model is {one.verdict}")
        if report.handed_out != "model":
            lines.append(f"           handed out: {report.handed_out}, not the model")
    if truth is not None:
        measured = table_of(truth, prediction, classes=clf.classes_.tolist()).overall.rates["error"].value
        labels, counts = np.unique(truth.labels, return_counts=True)
        best = counts.argmax()
        constant = f"always {shown(labels[best].item() if hasattr(labels[best], 'item') else labels[best])!r}"
        wrong = 1.0 - counts[best] / counts.sum()
        lines.append(f"held out   {_percent(measured)} of {counts.sum():,} rows; {constant} is wrong for {_percent(wrong)}")
    if not lines:
        lines.append(f"not measured; {HELD_OUT}")
    for at, line in enumerate(lines):
        yield Fact("" if at else "error", line)


def other_gaps(clf: Fitted, asked: Asked, truth: Truth | None, prediction: Any) -> Iterator[Fact]:
    """The largest gaps that nobody asked about, on held-out rows."""
    if clf.cells_ is None:
        return
    if truth is None:
        yield Fact("other gaps", f"not measured; {HELD_OUT}")
        return
    kinds = {notion.kind for notion in asked.notions}
    classes: Any = clf.classes_.tolist()
    found: list[tuple[str, Measured]] = []
    for usual in USUAL:
        if usual.kind not in kinds:
            found.append(
                (
                    RATES[usual.kind],
                    measure(usual(None, groups=clf.cells_.mode), truth, prediction, groups=clf.cells_, classes=classes),
                )
            )
    defined = sorted((one for one in found if not math.isnan(one[1].value)), key=lambda one: -one[1].value)[:MOST_GAPS]
    words = "; ".join(f"{name} {_points(one.value)} ({_interval(one, 'points')})" for name, one in defined)
    yield Fact("other gaps", words or "undefined on the held-out rows: a group has no row of a kind that is compared")


def _notions(clf: Fitted, method: Method, asked: Asked, truth: Truth | None, prediction: Any) -> Iterator[Seen]:
    classes: Any = clf.classes_.tolist()
    for notion in asked.notions:
        unit = _unit(notion)
        bound = next(value for name, value in vars(notion).items() if name.startswith("max_")) if method.bounds else None
        required = sentence(notion, clf.cells_, classes)
        if not method.bounds:
            required = f"no bound; a penalty makes the gap of {RATES.get(notion.kind, notion.kind)} smaller"
        training, noise = training_value(clf, notion) if method.bounds or clf.cells_ is not None else (None, None)
        value = None if training is None else f"{_shown(training, unit)} (noise: standard deviation {_plain(noise, unit)})"
        held, verdict = None, None
        if truth is not None and (clf.cells_ is not None or method.bounds):
            found = measure(notion, truth, prediction, groups=clf.cells_ or "product", classes=classes)
            undefined = math.isnan(found.value)
            held = (
                "undefined: a group has no such row" if undefined else f"{_shown(found.value, unit)} ({_interval(found, unit)})"
            )
            verdict = None if bound is None else of_interval(found.low, found.high, bound)
        yield Seen(required, value, training_verdict(clf, notion) if bound is not None else None, held, verdict)


def _bounds(clf: Fitted, asked: Asked, truth: Truth | None, prediction: Any) -> Iterator[Seen]:
    """Bounds that are no notions, of a group objective."""
    if not isinstance(clf, GroupObjectiveClassifier):
        return
    lines = {line.target: line for line in clf.constraint_report_.lines}
    for bound in asked.bounds:
        line = lines.get(str(bound))
        training = None if line is None or math.isnan(line.value) else f"{line.value:.4f} (noise: {line.noise:.4f})"
        exact = objective_values(bound.objective, clf, truth, prediction)
        required = f"{sentence(bound, clf.cells_, clf.classes_.tolist())}; {bound.objective} is at most {bound.bound:g}"
        yield Seen(required, training, None if line is None else line.verdict, None if exact is None else f"{exact:.4f}")


def _losses(clf: Fitted) -> Iterator[Seen]:
    """Bounds on mean log losses, of a classifier whose groups share a budget."""
    if not isinstance(clf, TailoredClassifier) or clf.group_loss_bound is None:
        return
    names: Sequence[Any] = ("everyone",) if clf.cells_ is None else clf.cells_.keys
    bounds = clf.group_loss_bound
    for at, key in enumerate(names):
        bound = bounds.get(key) if isinstance(bounds, dict) else bounds
        if bound is not None:
            value, noise = float(clf.outcome_.losses[at]), float(clf.outcome_.losses_noise[at])
            verdict = of_noisy(value, bound, noise, among=len(names))
            yield Seen(f"the mean log loss of {shown(key)} is at most {bound:g}", f"{value:.4f} (noise: {noise:.4f})", verdict)


def _unit(notion: Notion) -> str:
    if isinstance(notion, GapNotion):
        return "points"
    return "" if isinstance(notion, BoundedGroupLoss) and notion.loss != "zero_one" else "%"


def _shown(value: float, unit: str) -> str:
    return _points(value) if unit == "points" else _percent(value) if unit == "%" else f"{value:.4f}"


def _plain(value: float | None, unit: str) -> str:
    return f"{value or 0.0:.4f}" if not unit else f"{100 * (value or 0.0):.1f}"


def _interval(found: Measured, unit: str) -> str:
    return f"95% interval {_plain(found.low, unit)} to {_plain(found.high, unit)}"


def _points(value: float) -> str:
    return f"{100 * value:.1f} points"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _error(value: float, unit: str) -> str:
    return _percent(value) if unit == "error" else f"{value:.4g} ({unit})"


def _deviation(report: Any) -> str:
    return f"{100 * report.noise:.1f}" if report.unit == "error" else f"{report.noise:.4g}"
