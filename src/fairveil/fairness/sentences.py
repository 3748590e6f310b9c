"""A required notion or bound as one sentence, with the attribute's name and the bound in points or
per cent.

>>> from fairveil.facts import Cells
>>> from fairveil.fairness import DemographicParity, FalseNegativeRate
>>> people = Cells((("f", "m"),), names=("sex",))
>>> sentence(DemographicParity(0.05), people)
'the selection rates of any two groups of sex differ by at most 5.0 points'
>>> sentence(FalseNegativeRate(0.2, "each"), people)
"at most 20.0% of each sex's positives are missed"

A sentence is a public description: it reads no row. Bounds are shown exactly, with one decimal or
as many as they have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence

from ..facts import Cells
from ..tables.keys import shown
from . import objectives as of_losses
from .notions import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    Event,
    FalseNegativeRate,
    GapNotion,
    Notion,
    PredictionRate,
    Rate,
    RateConstraint,
)
from .objectives import Bound, Objective

LOSSES = {"log": "mean log loss", "squared": "mean squared error"}
UNNAMED = re.compile(r"sensitive_\d+")  # what `Cells` calls a column without a name


def sentence(
    required: Notion | Bound, cells: Cells | None = None, classes: Sequence[Hashable] = ()
) -> str:
    """What is required, in words. `cells`: the groups, whose columns it names; `classes`: more than
    two are distinguished."""
    if isinstance(required, Bound):
        return _of_bound(required, cells, classes)
    if isinstance(required, RateConstraint):
        return _of_rates(required)
    name = (required.kind or type(required).__name__).replace("_", " ")
    bound = next(
        (value for field, value in vars(required).items() if field.startswith("max_")), math.nan
    )
    if bound is None or required.is_vacuous:
        return f"nothing is required of the {name}"
    if isinstance(required, GapNotion):
        whose = required.compared or name
        if required.kind in (DemographicParity.kind, EqualizedOdds.kind) and len(classes) > 2:
            given = ", given each label," if required.kind == EqualizedOdds.kind else ""
            whose = f"rates of each decision{given}"
        positive = _chosen(vars(required).get("positive"))
        return (
            f"the {whose} of {_compared(required, cells)} differ by at most "
            f"{points(bound)}{positive}"
        )
    if isinstance(required, FalseNegativeRate):
        whose = _positives(required.group, required.groups, cells)
        return f"at most {per_cent(bound)} of {whose} are missed{_chosen(required.positive)}"
    if isinstance(required, BoundedGroupLoss):
        each = f"each {_groups(required.groups, cells)}"
        if required.loss == "zero_one":
            return f"at most {per_cent(bound)} of the decisions about {each} are wrong"
        return f"the {LOSSES[required.loss]} of {each} is at most {bound:g}"
    return f"the {name} is at most {bound:g}"  # a user's own notion


def points(share: float) -> str:
    """A gap in percentage points: one decimal, or as many as it has.

    >>> points(0.05), points(0.0125)
    ('5.0 points', '1.25 points')
    """
    return f"{_hundredfold(share)} points"


def per_cent(share: float) -> str:
    """A rate in per cent: one decimal, or as many as it has.

    >>> per_cent(0.2), per_cent(1 / 3)
    ('20.0%', '33.3333%')
    """
    return f"{_hundredfold(share)}%"


def _hundredfold(share: float) -> str:
    text = f"{100 * share:.6g}"
    return text if not text.lstrip("-").isdigit() else f"{text}.0"


def _of_bound(required: Bound, cells: Cells | None, classes: Sequence[Hashable]) -> str:
    of, bound = required.objective, required.bound
    if isinstance(of, of_losses.GMean | of_losses.HMean):
        mean = "geometric" if isinstance(of, of_losses.GMean) else "harmonic"
        return f"the {mean} mean of the classes' recalls is at least {per_cent(1.0 - bound)}"
    if isinstance(of, of_losses.Gap) and of.sharpness is None:
        return (
            sentence(of_losses.GAPS[of.notion](bound, groups=of.groups), cells, classes)
            if bound < 1
            else _plain(of, bound)
        )
    if isinstance(of, of_losses.FalseNegatives):
        return f"at most {per_cent(bound)} of all positives are missed{_chosen(of.positive)}"
    if isinstance(of, of_losses.FalsePositives):
        return f"at most {per_cent(bound)} of all negatives are taken for positives{_chosen(of.positive)}"
    if isinstance(of, of_losses.RateOf):
        return _of_rates(RateConstraint(((1.0, of.rate),), bound))
    decisions = bool(classes) and of.costs is None
    if isinstance(of, of_losses.Error):
        return (
            f"at most {per_cent(bound)} of all decisions are wrong"
            if decisions
            else f"the mean loss is at most {bound:g}"
        )
    if isinstance(of, of_losses.LargestGroupLoss) and of.sharpness is None:
        each = f"each {_groups('product' if cells is None else cells.mode, cells)}"
        if decisions:
            return f"at most {per_cent(bound)} of the decisions about {each} are wrong"
        return f"the mean loss of {each} is at most {bound:g}"
    if isinstance(of, of_losses.GroupLoss):
        whose = f"group {shown(of.group)}"
        if decisions:
            return f"at most {per_cent(bound)} of the decisions about {whose} are wrong"
        return f"the mean loss of {whose} is at most {bound:g}"
    if isinstance(of, of_losses.MeanGroupLoss) and decisions:
        return f"the mean of the groups' error rates is at most {per_cent(bound)}"
    if isinstance(of, of_losses.Gini) and decisions and of.payoff is None:
        return f"the Gini index of the groups' selection rates is at most {bound:g}"
    return _plain(of, bound)


def _plain(of: Objective, bound: float) -> str:
    return f"the {of.words or str(of).replace('_', ' ')} is at most {bound:g}"


def _of_rates(required: RateConstraint) -> str:
    """Of one rate, or of the difference of two; all else as a formula."""
    bound = required.bound
    if required.name:
        return f"{required.name} (at most {bound:g})"
    terms = required.terms
    if len(terms) == 1 and terms[0][0] == 1.0:
        return f"the {_rate(terms[0][1])} is at most {per_cent(bound)}"
    if len(terms) == 1 and terms[0][0] == -1.0:
        return f"the {_rate(terms[0][1])} is at least {per_cent(-bound)}"
    if len(terms) == 2 and (terms[0][0], terms[1][0]) == (1.0, -1.0):
        one, other = terms[0][1], terms[1][1]
        if bound < 0:
            return f"the {_rate(one)} is below the {_rate(other)} by at least {points(-bound)}"
        return f"the {_rate(one)} exceeds the {_rate(other)} by at most {points(bound)}"
    formula = str(required).removesuffix(f" <= {bound:g}")
    return f"{formula} is at most {bound:g}"


def _rate(rate: Rate) -> str:
    of = f"decided {shown(rate.prediction)} " if isinstance(rate, PredictionRate) else ""
    return f"{'share' if of else 'error rate'} {of}{_where(rate.event)}"


def _where(event: Event) -> str:
    """
    >>> _where(Event(("f",), (1,))), _where(Event(("f",), outside=True)), _where(Event(labels=(1,)))
    ('in group f, label 1', 'outside group f', 'in label 1')
    """
    words = str(event)
    return "of everyone" if words == "everyone" else words if event.outside else f"in {words}"


def _groups(mode: str, cells: Cells | None) -> str:
    """The kind of groups, with the columns that make them: "group", "group of sex", "combination of
    sex and race"."""
    names = _named(cells)
    if len(names) < 2:
        return " of ".join(("group", *names))
    return (
        f"group of {' or of '.join(names)}"
        if mode == "marginal"
        else f"combination of {' and '.join(names)}"
    )


def _compared(required: GapNotion, cells: Cells | None) -> str:
    kind, of, names = _groups(required.groups, cells).partition(" of ")
    if required.compare == "rest":
        return f"each {kind}{of}{names} and of all others"
    return f"any two {kind}s{of}{names}"


def _positives(group: Hashable, mode: str, cells: Cells | None) -> str:
    if group is None:
        return "all positives"
    if group != "each":
        return f"the positives of group {shown(group)}"
    names = _named(cells)
    return (
        f"each {names[0]}'s positives"
        if len(names) == 1
        else f"the positives of each {_groups(mode, cells)}"
    )


def _named(cells: Cells | None) -> tuple[str, ...]:
    """Names of the sensitive columns; none where they have none, or where everyone is in one
    group."""
    if cells is None or cells.count < 2:
        return ()
    return () if any(UNNAMED.fullmatch(name) for name in cells.names) else cells.names


def _chosen(positive: Hashable) -> str:
    """Which class is the positive one, where that was said."""
    return "" if positive is None else f" (positive: {shown(positive)})"
