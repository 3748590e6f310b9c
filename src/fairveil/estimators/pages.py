"""The page of a fit: what was promised, what was required and is known of it, what it is compared
with, and what else it says of itself. Of released values alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._verdicts import CONFIDENCE
from ..fairness import Notion
from ..fairness.notions import (
    BoundedGroupLoss,
    FalseNegativeRate,
    GapNotion,
    RateConstraint,
    uses_groups,
)
from ..fairness.sentences import sentence
from ..fairness.systems import resolve
from ..methods.systems import NO_GROUPS
from ..models import MixtureModel
from ..show.charts import Axis
from ..show.numbers import printable
from ..show.parts import Column, Table, listed
from ..show.report import GAP, Report, Requirement
from .coding import parts_of
from .fitting import notions_of
from .reports import all_of

EXPECTED = (
    "The held-out value is the expected one: this classifier is randomized, and one draw varies "
    "around it."
)
UNDEFINED = "Undefined on the held-out rows: a group has no row of a kind that should be compared."
Held = Callable[[Notion], tuple[float, float, float]]
"""The largest value of a notion's constraints on held-out rows, with an interval; NaN where a rate
is undefined."""


def by_chance(clf: Any) -> bool:
    """Whether one row may be decided differently from one time to the next."""
    model = clf.model_
    if isinstance(model, MixtureModel) and len(model.models) == 1:  # a single decision out of many
        model = model.models[0]
    # no model: a mixture of candidates; a regression decides nothing
    return model is None or bool(getattr(model, "is_randomised", False))


def words_of(notion: Notion) -> str:
    """The notion's name in words."""
    return notion.kind.replace("_", " ")


def bound_of(notion: Notion) -> float | None:
    """What a notion requires; None where it requires nothing.

    >>> bound_of(FalseNegativeRate(0.2))
    0.2
    """
    bounds = [v for name, v in vars(notion).items() if name.startswith("max_") or name == "bound"]
    empty = not bounds or bounds[0] is None or notion.is_vacuous
    return None if empty else float(bounds[0])


def _named(notion: Notion) -> tuple[str, Axis]:
    """What a page calls the notion's value, and in which unit: name and measure make one phrase."""
    name = printable(words_of(notion))
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


def required_of(
    clf: Any, notions: Sequence[Notion], held: Held | None = None
) -> Iterator[Requirement]:
    """A figure for each notion (required, measured in training with noise, and on held-out rows),
    then for each other bound that was required. Where a gap is penalized, nothing was required."""
    report, said = getattr(clf, "constraint_report_", None), set[str]()
    classes = np.asarray(getattr(clf, "classes_", ())).tolist()
    for notion in notions:
        if clf.cells_ is None and (report is None or uses_groups(notion)):
            continue  # nothing was distinguished; the notes say so
        names = set(resolve(notion, clf.cells_ or NO_GROUPS, classes).names)
        own = [] if report is None else [one for one in report.lines if one.target in names]
        said |= {line.target for line in own}
        if report is None and clf.gap_report_.largest is not None:
            own = [clf.gap_report_.largest]
        seen = None if held is None else held(notion)
        notes = () if held is None else (EXPECTED,) * by_chance(clf)
        if seen is not None and math.isnan(seen[0]):
            seen, notes = None, (UNDEFINED,)
        target = None if report is None else bound_of(notion)
        known = [one for one in own if not math.isnan(one.value)]
        worst = max(known, key=lambda one: one.value, default=None)
        if target is None and worst is None and seen is None:
            continue
        more: dict[str, Any] = {}
        if seen is not None:
            more = {f"held_out{end}": v for end, v in zip(("", "_low", "_high"), seen, strict=True)}
        if target is not None:
            more["sentence"] = printable(sentence(notion, clf.cells_, classes))
        if target is not None and worst is not None:
            more["training_verdict"] = all_of(one.verdict for one in own)
            more["population_verdict"] = all_of(one.population_verdict for one in own)
        name, unit = _named(notion)
        yield Requirement(
            name,
            target,
            None if worst is None else max(worst.value, 0.0),
            confidence=CONFIDENCE,
            notes=notes,
            measure=unit,
            training_noise=None if worst is None else worst.noise,
            **more,
        )
    # lines of a certified fit that is no descent are of its tighter aims
    certified = parts_of(clf).certificate is not None
    for line in () if report is None or certified else report.lines:
        if line.target not in said and not math.isnan(line.bound):
            yield _other(line)


def _other(line: Any) -> Requirement:
    """Of a bound on an objective, or on a group's loss: as it was released in training."""
    known = not math.isnan(line.value)
    return Requirement(
        printable(line.target.partition(" <=")[0].replace("_", " ")),
        line.bound,
        line.value if known else None,
        measure=Axis("value"),
        training_noise=line.noise if known else None,
        training_verdict=line.verdict,
        sentence=printable(line.target),
        population_verdict=line.population_verdict,
    )


def page_of(clf: Any, notions: Sequence[Notion] | None = None, held: Held | None = None) -> Report:
    """The page of a fit. `notions`: what it is about; None: what was required. `held`: what was
    measured of them on rows that the fit did not see."""
    kind, own = type(clf).__name__, parts_of(clf)
    if (way := getattr(clf, "_way", None)) is None:
        solver, required = clf._solver, notions_of(clf.constraints, certified=True)
    else:
        solver, required = way.solver, way.reported()
    return Report(
        f"A fit of {kind} by {type(solver).__name__}",
        method=f"{kind} by {solver!r}",
        statement=clf.privacy_,
        required=tuple(required_of(clf, required if notions is None else notions, held)),
        baselines=own.baselines,
        certificate=own.certificate,
        sections=tuple(sections_of(clf)),
        notes=tuple(remarks_of(clf, measured=held is not None)),
    )


class Paged:
    """The mixin of estimators whose fit has a page."""

    @property
    def report_(self) -> Report:
        """What a fit came to: a decision statement, and each result that it rests on, of released
        values alone. It prints, shows itself in notebooks, and is written as a page."""
        check_is_fitted(self, "privacy_")
        return page_of(self)


def sections_of(clf: Any) -> Iterator[tuple[str, Any]]:
    """What else a fit says of itself: bounds that are certain, shares of groups, the coefficients of
    one linear score, and the curves of an additive one."""
    guarantee = getattr(clf, "guarantee_", None) or getattr(clf, "certain_", None)
    if guarantee is not None:
        yield "What is certain", guarantee
    if hasattr(clf, "tailoring_"):
        yield "What each group spends", clf.tailoring_
    if not hasattr(clf, "coef_") or clf.model_ is None or len(clf.coef_) != 1:
        return
    if clf.coding_.shapes is not None:
        yield "What each number adds", listed(*(term.chart() for term in clf.terms()))
    names = ("(intercept)", *map(printable, clf.coef_names_))
    weights = (float(clf.intercept_[0]), *clf.coef_[0].tolist())
    about = "A positive weight moves decisions towards the second class"
    table = Table((Column("feature", names), Column("weight", weights, "weight")), about)
    yield "Coefficients of the linear score", listed(table)


def remarks_of(clf: Any, *, measured: bool) -> Iterator[str]:
    """Sentences about a fitted model for the notes of its page."""
    if isinstance(clf.model_, MixtureModel) and by_chance(clf):
        yield f"The mixture has {len(clf.model_.models):,} rules; each decision is that of one of them."
    if by_chance(clf):
        rates, draws = "held-out rates are expected ones", "fairveil predict draws decisions"
        yield f"This is a randomized classifier: {rates if measured else draws}."
