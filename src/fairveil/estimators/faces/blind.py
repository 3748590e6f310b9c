"""A model some of whose decisions are made without looking at anybody: the mixture, and what is
then said of it.

Guarantees (tests/estimators/test_estimators_replaced.py):
1. Its distribution of decisions is (1 - share) x the model's + share x the blind one, of every row.
2. What is reported of it follows from what was released of the model, and from known numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._types import Floats
from ...facts import RowLayout
from ...learning import Outcome
from ...learning.comparison import Comparison
from ...learning.lagrangian import program
from ...learning.lagrangian.program import Choice
from ...models import GroupedLinearModel, LinearModel, MixtureModel, Model
from ..reports.baselines import MIXTURE, BaselineReport, of_comparison

LINEAR = (LinearModel, GroupedLinearModel)


@dataclass(frozen=True)
class Blindly:
    """A `share` of decisions, the probability of each class in them (`by`), what that is in words,
    and the value of each constraint, by its name, of blind decisions alone."""

    share: float
    by: tuple[float, ...]
    words: str
    sums: Mapping[str, float]

    def mixed(self, names: Sequence[str], values: Floats) -> Floats:
        """Values of constraints; NaN where those of blind decisions are not known."""
        own = np.array([self.sums.get(name, np.nan) for name in names])
        return np.asarray((1.0 - self.share) * values + self.share * own)

    def law(self, table: Floats) -> Floats:
        """Probabilities of decisions, on the last axis."""
        return np.asarray((1.0 - self.share) * table + self.share * np.asarray(self.by))


def mixture_of(model: Model | None, blindly: Blindly) -> MixtureModel | None:
    """The mixture; None of networks and of classifiers made elsewhere, which have none that can be
    written to a file."""
    parts = model.models if isinstance(model, MixtureModel) else (model,)
    weights = model.weights if isinstance(model, MixtureModel) else np.ones(1)
    linear = [one for one in parts if isinstance(one, LINEAR)]
    if len(linear) != len(parts):
        return None
    kept = [
        (one, (1.0 - blindly.share) * float(w))
        for one, w in zip(linear, weights, strict=True)
        if blindly.share < 1.0
    ]
    kept += [(always(linear[0], k), blindly.share * p) for k, p in enumerate(blindly.by) if p > 0.0]
    return MixtureModel([one for one, _ in kept], [share for _, share in kept])


def always(like: LinearModel | GroupedLinearModel, k: int) -> LinearModel:
    """A linear model that decides for class k, whatever the row."""
    linear = like.linear if isinstance(like, GroupedLinearModel) else like
    intercept = np.zeros(len(linear.intercept))
    intercept[0 if len(intercept) == 1 else k] = -1.0 if len(intercept) == 1 and k == 0 else 1.0
    layout = RowLayout(linear.numbers, linear.code_sizes)
    return LinearModel(
        np.zeros_like(linear.weights), intercept, classes=linear.classes, layout=layout
    )


def outcome_of(outcome: Outcome, blindly: Blindly) -> Outcome:
    """What was released of the model, of the mixture."""
    found, left = outcome.comparison, 1.0 - blindly.share
    values, spread = blindly.mixed(outcome.names, outcome.values), left * outcome.spread
    sampling = None if outcome.sampling is None else left * outcome.sampling
    compared = None if found is None else comparison_of(found, blindly)
    return replace(
        outcome,
        values=values,
        spread=spread,
        sampling=sampling,
        comparison=compared,
        weight_noise=None,
    )


def comparison_of(found: Comparison, blindly: Blindly) -> Comparison:
    """The mixture beside the same baselines."""
    choice = Choice(1.0 - blindly.share, 0.0, blindly.share * np.asarray(blindly.by))
    return program.comparison_of(found, choice, None)[0]


def baselines_of(
    before: BaselineReport | None,
    compared: Comparison | None,
    classes: Sequence[Hashable],
    blindly: Blindly,
) -> BaselineReport | None:
    """The report of baselines, of the mixture."""
    if before is None or compared is None:
        return None
    named = f"{before.remark}; of these decisions " if before.remark else ""
    found = of_comparison(compared, classes, handed_out=MIXTURE, remark=f"{named}{blindly.words}")
    assert found is not None
    free = {line.name: line.remark for line in before.lines}
    return replace(
        found,
        lines=tuple(replace(line, remark=free.get(line.name, line.remark)) for line in found.lines),
    )
