"""A mixture of models: one is drawn anew for each row, and decides. What games, oracles and
post-processors return."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np

from .. import _checks
from .._types import Floats
from ..core.errors import need
from .model import Codes, Model, RandomState, fixed_array


@dataclass(frozen=True, eq=False)
class MixtureModel(Model):
    """P(decision = k | row) = sum_t weights_t P(model t decides k | row): exact, and the
    distribution of `predict`.

    Rows are drawn independently of each other, so a rate over many rows is close to its
    expectation. Weights (None: equal ones) are divided by their sum; models of weight 0 are kept
    but not asked.
    """

    kind: ClassVar[str] = "mixture"
    models: Sequence[Model]
    weights: Floats = None  # type: ignore[assignment]
    classes: tuple[Hashable, ...] = field(init=False)

    def __post_init__(self) -> None:
        listed, asked = tuple(self.models), cast(Any, self.weights)
        alike = listed and all(model.classes == listed[0].classes for model in listed)
        words, got = "at least one model, all of the same classes", [m.classes for m in listed][:5]
        fix = "Mix models that were made for the same classes."
        need(alike, words, of="models", got=got, fix=fix)
        asked = np.ones(len(listed)) if asked is None else asked
        weights = fixed_array(asked, (len(listed),), "weights")
        total, words = float(weights.sum()), "weights of at least 0, not all 0"
        right, got = weights.min() >= 0 and total > 0, weights.tolist()
        need(right, words, of="weights", got=got, fix="Pass probabilities.")
        # A sum within rounding of 1 is left alone, so that weights survive a file to the last bit.
        if abs(total - 1.0) > 4 * len(listed) * np.finfo(np.float64).eps:
            weights = fixed_array(weights / total, weights.shape, "weights")
        _checks.normalise(self, models=listed, weights=weights, classes=listed[0].classes)

    @property
    def is_randomised(self) -> bool:
        """True, though some mixtures decide every row in one way."""
        return True

    @property
    def reads_groups(self) -> bool:
        """Whether one of the models does."""
        return any(model.reads_groups for model in self.models)

    def decision_proba(self, rows: object) -> Floats:
        """sum_t weights_t x the distribution of model t's decision, (rows, classes)."""
        laws = (
            weight * model.decision_proba(rows)
            for weight, model in zip(self.weights, self.models, strict=True)
            if weight
        )
        return np.asarray(sum(laws))

    def derandomise(self) -> DerandomisedModel:
        """One deterministic model: for every row the class that the mixture decides on most often.

        Its gap and error are its own and must be measured: a mixture that meets a constraint says
        nothing about them.
        """
        return DerandomisedModel(self)


@dataclass(frozen=True, eq=False)
class DerandomisedModel(Model):
    """The class of largest probability under a model's own distribution of decisions; ties go to
    the first class."""

    kind: ClassVar[str] = "derandomised"
    model: Model
    classes: tuple[Hashable, ...] = field(init=False)

    def __post_init__(self) -> None:
        _checks.normalise(self, classes=self.model.classes)

    @property
    def reads_groups(self) -> bool:
        """Whether the model inside does."""
        return self.model.reads_groups

    def predict_proba(self, rows: object) -> Floats:
        """The probabilities of the model inside."""
        return self.model.predict_proba(rows)

    def predict_codes(self, rows: object, random_state: RandomState = None) -> Codes:
        """The likeliest class."""
        law = self.model.decision_proba(rows)
        return np.asarray(law.argmax(axis=1))
