"""All that a fit was required to keep, as figures of its page: each with its bound, its training
value and the held-out one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ..estimators import GroupObjectiveClassifier, TailoredClassifier
from ..fairness import Notion
from ..fairness.notions import BoundedGroupLoss, FalseNegativeRate, GapNotion
from ..fairness.objectives import Bound
from ..fairness.rates import RateConstraint
from ..fairness.sentences import sentence
from ..show.charts import Axis
from ..show.report import GAP, Requirement
from ..tables.given import Values
from ..tables.keys import shown
from .deciding import Fitted, by_chance
from .measured import (
    CONFIDENCE,
    Measured,
    held_out_losses,
    measure,
    objective_values,
    population_verdict,
    training_value,
    training_verdict,
    words_of,
)
from .method_options import FitRequest
from .methods import Method
from .samples import Sample, Truth

EXPECTED = (
    "The held-out value is the expected one: this classifier is randomized, and one draw varies "
    "around it."
)
UNDEFINED = "Undefined on the held-out rows: a group has no row of a kind that should be compared."


def figures_of(
    clf: Fitted,
    method: Method,
    asked: FitRequest,
    truth: Truth | None,
    prediction: Values | None,
    held: Sample | None,
) -> list[Requirement]:
    """One for each notion and each other bound, in the order in which they were asked for."""
    found: list[Requirement] = []
    classes: Any = clf.classes_.tolist()
    for notion in asked.notions:
        if not method.bounds and clf.cells_ is None:  # nothing was distinguished; the notes say so
            continue
        measured = None
        if truth is not None and prediction is not None:
            measured = measure(
                notion, truth, prediction, groups=clf.cells_ or "product", classes=classes
            )
        found += notion_figure(clf, notion, measured, bounded=method.bounds)
    if isinstance(clf, GroupObjectiveClassifier):
        found += [_bound_figure(clf, bound, truth, prediction) for bound in asked.bounds]
    if (
        isinstance(clf, TailoredClassifier)
        and clf.group_loss_bound is not None
        and clf.cells_ is not None
    ):
        found += _loss_figures(clf, held)
    return found


def notion_figure(
    clf: Fitted, notion: Notion, held: Measured | None, *, bounded: bool = True
) -> list[Requirement]:
    """Required (nothing, where no gap is bounded), measured in training with noise, and on held-out
    rows. May be none."""
    training, noise = training_value(clf, notion)
    notes = [EXPECTED] if held is not None and by_chance(clf) else []
    if held is not None and math.isnan(held.value):
        notes, held = [UNDEFINED], None
    value, low, high = (None, None, None) if held is None else (held.value, held.low, held.high)
    target = bound_of(notion) if bounded else None
    if target is None and training is None and value is None:
        return []
    told = None if target is None or training is None else training_verdict(clf, notion)
    numbers = (target, training, value, low, high, CONFIDENCE, tuple(notes))
    name, measure_of = named(notion)
    words = "" if target is None else _line(sentence(notion, clf.cells_, clf.classes_.tolist()))
    others = None if target is None or training is None else population_verdict(clf, notion)
    return [Requirement(name, *numbers, measure_of, noise, told, words, others)]


def bound_of(notion: Notion) -> float | None:
    """What a notion requires; None where it requires nothing.

    >>> bound_of(FalseNegativeRate(0.2))
    0.2
    """
    fields = [name for name in vars(notion) if name.startswith("max_") or name == "bound"]
    bound = vars(notion)[fields[0]] if fields else None
    return None if bound is None or notion.is_vacuous else float(bound)


def named(notion: Notion) -> tuple[str, Axis]:
    """What a page calls the notion's value, and in which unit: name and measure make one phrase.

    >>> named(FalseNegativeRate(0.2))
    ('false negative', Axis(name='rate', unit='percent', log=False))
    """
    name = _line(words_of(notion))
    match notion:
        case GapNotion():
            return name, GAP
        case FalseNegativeRate():
            return "false negative", Axis("rate", "percent")
        case BoundedGroupLoss(loss="zero_one"):
            return "largest group's", Axis("error", "percent")
        case RateConstraint():
            return name, Axis("value", "points")
    return name, Axis("value")


def _bound_figure(
    clf: GroupObjectiveClassifier, bound: Bound, truth: Truth | None, prediction: Values | None
) -> Requirement:
    """Of a bound on an objective that is no notion: on held-out rows it has a value, and no
    interval."""
    words = _line(sentence(bound, clf.cells_, clf.classes_.tolist()))
    unit = "percent" if "%" in words else "points" if "points" in words else "plain"
    line = next((one for one in clf.constraint_report_.lines if one.target == str(bound)), None)
    known = line is not None and not math.isnan(line.value)
    return Requirement(
        _line(str(bound.objective).replace("_", " ")),
        bound.bound,
        line.value if known and line is not None else None,
        objective_values(bound.objective, clf, truth, prediction),
        measure=Axis("value", unit),
        training_noise=line.noise if known and line is not None else None,
        training_verdict=None if line is None else line.verdict,
        sentence=words,
        population_verdict=None if line is None else line.population_verdict,
    )


def _loss_figures(clf: TailoredClassifier, held: Sample | None) -> list[Requirement]:
    """Of bounds on groups' mean log losses: one figure for a bound on all, else one for each group
    that has one."""
    assert clf.cells_ is not None
    keys: Sequence[Hashable] = clf.cells_.keys
    exact = None if held is None else held_out_losses(clf, held)
    lost = [
        None if exact is None or math.isnan(exact[at]) else float(exact[at])
        for at in range(len(keys))
    ]
    lines, bounds = clf.constraint_report_.lines, clf.group_loss_bound
    loss = Axis("mean log loss")
    if not isinstance(bounds, Mapping):
        assert bounds is not None
        worst = max(lines, key=lambda line: line.value, default=None)
        known = [one for one in lost if one is not None]
        return [
            Requirement(
                "largest group's",
                float(bounds),
                None if worst is None else worst.value,
                max(known, default=None),
                measure=loss,
                training_noise=None if worst is None else worst.noise,
                training_verdict=None if worst is None else _together(clf),
                sentence=_line(sentence(BoundedGroupLoss(float(bounds), "log"), clf.cells_)),
                population_verdict=None if worst is None else clf.constraint_report_.verdict,
            )
        ]
    found = []
    for key, bound in bounds.items():
        line = next(
            (one for one in lines if one.target.startswith(f"mean loss of group {shown(key)} <=")),
            None,
        )
        at = next((place for place, other in enumerate(keys) if other == key), None)
        found.append(
            Requirement(
                _line(f"{shown(key)}'s"),
                float(bound),
                None if line is None else line.value,
                None if at is None else lost[at],
                measure=loss,
                training_noise=None if line is None else line.noise,
                training_verdict=None if line is None else line.verdict,
                sentence=_line(f"the mean log loss of group {shown(key)} is at most {bound:g}"),
                population_verdict=None if line is None else line.population_verdict,
            )
        )
    return found


def _together(clf: TailoredClassifier) -> Any:
    return clf.constraint_report_.training_verdict


def _line(text: str) -> str:
    """On one line that can be printed."""
    return "".join(letter if letter.isprintable() else "�" for letter in text).strip() or "?"
