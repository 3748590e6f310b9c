"""What a model is measured to do on rows that it has not seen, as figures of a report. Exact: none
of it is private."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import ColumnsLike
from .._verdicts import MET, NOT_MET, UNCLEAR, Verdict, together
from ..estimators import (
    ConstraintLine,
    FermiClassifier,
    GroupObjectiveClassifier,
    TailoredClassifier,
)
from ..estimators.settings.grouped import GroupLimits
from ..facts import Cells
from ..fairness import Notion
from ..fairness.notions import uses_groups
from ..fairness.objectives import Frame, Objective
from ..fairness.resolution import resolve
from ..learning.systems import NO_GROUPS
from ..learning.tailoring.description import MOST
from ..metrics import GroupTable, group_table
from ..metrics.inputs import read_decisions
from ..metrics.measures import tally
from ..metrics.tables import largest
from ..tables.given import Values
from ..tables.keys import shown
from .deciding import Fitted, Shown
from .method_options import FitRequest
from .samples import Sample, Truth

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Measured:
    """The largest value of a notion's constraints, with an interval; NaN where a rate is
    undefined."""

    value: float
    low: float
    high: float


def measure(
    notion: Notion,
    truth: Truth,
    prediction: Values,
    *,
    groups: Cells | str = "product",
    classes: Sequence[Hashable] | None = None,
) -> Measured:
    """The exact value of a notion on decisions, and an interval that holds the population's with
    confidence 95 % or more.

    How: see `fairness.intervals`.
    """
    read = read_decisions(
        truth.labels,
        prediction,
        truth.groups or np.zeros(len(prediction)),
        groups=groups,
        classes=classes,
    )
    system = resolve(notion, read.cells, read.classes)
    return Measured(*largest(system, *tally(read), CONFIDENCE))


def training_value(clf: Fitted, notion: Notion) -> tuple[float | None, float | None]:
    """The largest released training value of a notion's constraints and its noise; None where it
    was not measured."""
    if isinstance(clf, FermiClassifier):  # its report is about one notion
        if clf.cells_ is None:
            return None, None
        widest = clf.gap_report_.largest
        return (None, None) if widest is None else (max(widest.value, 0.0), widest.noise)
    lines = [line for line in _lines_of(clf, notion) if not math.isnan(line.value)]
    worst = max(lines, key=lambda line: line.value, default=None)
    return (None, None) if worst is None else (max(worst.value, 0.0), worst.noise)


def training_verdict(clf: Fitted, notion: Notion) -> Verdict | None:
    """Whether the notion is met in training, as far as noise lets one tell: of all its constraints;
    None where it has none."""
    if isinstance(clf, FermiClassifier):
        return None
    found = [line.verdict for line in _lines_of(clf, notion)]
    return None if not found else {True: MET, False: NOT_MET, None: UNCLEAR}[together(found)]


def population_verdict(clf: Fitted, notion: Notion) -> Verdict | None:
    """Whether the people that the training rows were drawn from meet it, as far as noise and
    sampling error let one tell."""
    if isinstance(clf, FermiClassifier):
        return None
    found = [line.population_verdict for line in _lines_of(clf, notion)]
    return None if not found else {True: MET, False: NOT_MET, None: UNCLEAR}[together(found)]


def _lines_of(clf: Fitted, notion: Notion) -> list[ConstraintLine]:
    """None where groups are not distinguished, and the notion does."""
    if clf.cells_ is None and uses_groups(notion):
        return []
    names = set(resolve(notion, clf.cells_ or NO_GROUPS, clf.classes_.tolist()).names)
    return [line for line in clf.constraint_report_.lines if line.target in names]


def objectives_said(
    clf: Fitted, asked: FitRequest, truth: Truth | None, prediction: Values | None
) -> Iterator[str]:
    """A sentence for what is minimized: its noisy training value, and the exact one on held-out
    rows."""
    if asked.objective is None or not isinstance(clf, GroupObjectiveClassifier):
        return
    noise = clf.outcome_.objective_noise
    yield _said(
        f"Minimized: {asked.objective}",
        clf.objective_,
        noise,
        objective_values(asked.objective, clf, truth, prediction),
    )


def losses_said(clf: Fitted, held: Sample | None) -> Iterator[str]:
    """Of a `TailoredClassifier`: a sentence for what is minimized, and one for each group: its mean
    log loss as it was released, exactly on held-out rows, and the bound, if any."""
    if not isinstance(clf, TailoredClassifier):
        return
    exact = None if held is None else held_out_losses(clf, held)
    names: Sequence[Hashable] = ("everyone",) if clf.cells_ is None else clf.cells_.keys
    bounds, outcome = clf.group_loss_bound, clf.outcome_
    of_people = clf.cells_ is None or (clf.limits or GroupLimits()).objective == "people"
    small = "mean log loss" if of_people else "mean of the groups' mean log losses"
    yield _said(f"Minimized: the {small}", outcome.value, outcome.value_noise, None)
    for at, key in enumerate(names):
        bound = bounds.get(key) if isinstance(bounds, dict) else bounds
        asked = "" if bound is None else f", required at most {bound:g}"
        head = (
            f"Mean log loss of {shown(key) if clf.cells_ is None else f'group {shown(key)}'}{asked}"
        )
        lost = None if exact is None or math.isnan(exact[at]) else float(exact[at])
        yield _said(head, float(outcome.losses[at]), float(outcome.losses_noise[at]), lost)


def held_out_losses(clf: TailoredClassifier, held: Sample) -> Any:
    """By group, cut where losses with noise are; NaN where a group has no row."""
    truth, law = held.truth(), Shown(clf, held.features, None).law()
    columns: Any = (
        truth.groups
        if clf.cells_ is not None
        else {"everyone": np.full(len(law), "everyone", dtype=object)}
    )
    read = read_decisions(
        truth.labels, law, columns, groups=clf.cells_ or "product", classes=clf.classes_.tolist()
    )
    most = MOST["log"] if clf.outcome_.losses_noise.any() else math.inf
    losses = np.minimum(-np.log(np.maximum(law[np.arange(len(law)), read.labels], 1e-300)), most)
    count = read.cells.count
    with np.errstate(invalid="ignore"):
        sums, sizes = (
            sum(np.bincount(ids, w, count) for ids in read.cell_ids)
            for w in (losses, np.ones(len(law)))
        )
        return np.asarray(sums) / np.asarray(sizes)


def _said(head: str, value: float, noise: float, held: float | None) -> str:
    parts = [head]
    parts += (
        [] if math.isnan(value) else [f"noisy training value {value:.4f} (deviation {noise:.4f})"]
    )
    parts += [] if held is None else [f"on held-out rows {held:.4f}"]
    return "; ".join(parts) + "."


def objective_values(
    objective: Objective, clf: Fitted, truth: Truth | None, prediction: Values | None
) -> float | None:
    """Its exact value for the distribution of decisions; None where nothing was held out, or its
    groups are not there."""
    if truth is None or prediction is None or (objective.needs_groups and clf.cells_ is None):
        return None
    everyone: Any = np.zeros(len(prediction))
    read = read_decisions(
        truth.labels,
        prediction,
        truth.groups if clf.cells_ is not None else everyone,
        groups=clf.cells_ or "product",
        classes=clf.classes_.tolist(),
    )
    counts, histogram = tally(read)
    rows = counts.sum() / read.cells.per_row
    return objective.measured(Frame(read.cells, read.classes, counts / rows), histogram / rows)


def table_of(
    truth: Truth,
    prediction: ColumnsLike,
    *,
    groups: Cells | str = "product",
    classes: Sequence[Hashable] | None = None,
) -> GroupTable:
    """The group table; without groups everyone is in one."""
    columns: Any = truth.groups or {
        "everyone": np.full(len(truth.labels), "everyone", dtype=object)
    }
    return group_table(
        truth.labels,
        prediction,
        columns,
        groups=groups if truth.groups else "product",
        classes=classes,
    )


def words_of(notion: Notion) -> str:
    """
    >>> from fairveil import DemographicParity
    >>> words_of(DemographicParity(0.1))
    'demographic parity'
    """
    return notion.kind.replace("_", " ")
