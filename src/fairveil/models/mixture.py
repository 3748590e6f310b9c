"""A mixture of models: one is drawn anew for each row, and decides. What games, oracles and
post-processors return."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..errors import InputError
from .model import Codes, Model, Parts, RandomState, draw_codes, fixed_array, one_hot


@dataclass(frozen=True, eq=False, init=False)
class MixtureModel(Model):
    """P(decision = k | row) = sum_t weights_t P(model t decides k | row): exact, and the
    distribution of `predict`.

    Rows are drawn independently of each other, so a rate over many rows is close to its
    expectation. Weights are divided by their sum; models of weight 0 are kept but not asked.
    """

    kind: ClassVar[str] = "mixture"
    models: tuple[Model, ...]
    weights: Floats

    def __init__(self, models: Sequence[Model], weights: npt.ArrayLike | None = None) -> None:
        listed = tuple(models)
        if not listed or any(model.classes != listed[0].classes for model in listed):
            got = [model.classes for model in listed][:5]
            remedy = "Mix models that were made for the same classes."
            raise InputError.expected(
                "at least one model, all of the same classes", of="models", got=got, remedy=remedy
            )
        given = fixed_array(
            np.ones(len(listed)) if weights is None else weights, (len(listed),), "weights"
        )
        total = float(given.sum())
        if given.min() < 0 or total <= 0:
            remedy = "Pass probabilities."
            raise InputError.expected(
                "weights of at least 0, not all 0", of="weights", got=given.tolist(), remedy=remedy
            )
        _checks.normalise(self, models=listed)
        # A sum within rounding of 1 is left alone, so that weights survive a file to the last bit.
        near = abs(total - 1.0) <= 4 * len(listed) * np.finfo(np.float64).eps
        _checks.normalise(
            self, weights=given if near else fixed_array(given / total, given.shape, "weights")
        )

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""
        return self.models[0].classes

    @property
    def is_randomised(self) -> bool:
        """True, though some mixtures decide every row in one way."""
        return True

    @property
    def reads_groups(self) -> bool:
        """Whether one of the models does."""
        return any(model.reads_groups for model in self.models)

    def predict_proba(self, rows: object) -> Floats:
        """The distribution of the decision: the mixture's, not an average of the models' own
        probabilities."""
        return self.decision_proba(rows)

    def decision_proba(self, rows: object) -> Floats:
        """sum_t weights_t x the distribution of model t's decision, (rows, classes)."""
        laws = (
            weight * model.decision_proba(rows)
            for weight, model in zip(self.weights, self.models, strict=True)
            if weight
        )
        return np.asarray(sum(laws))

    def predict_codes(self, rows: object, random_state: RandomState = None) -> Codes:
        """One draw a row. The same seed and rows give the same draws."""
        return draw_codes(self.decision_proba(rows), random_state)

    def derandomise(self) -> DerandomisedModel:
        """One deterministic model: for every row the class that the mixture decides on most often.

        Its gap and error are its own and must be measured: a mixture that meets a constraint says
        nothing about them.
        """
        return DerandomisedModel(self)

    def to_parts(self) -> Parts:
        """The weights, and the parts of each model."""
        return Parts(
            self.kind,
            {},
            {"weights": self.weights},
            tuple(model.to_parts() for model in self.models),
        )


@dataclass(frozen=True, eq=False)
class DerandomisedModel(Model):
    """The class of largest probability under a model's own distribution of decisions; ties go to
    the first class."""

    kind: ClassVar[str] = "derandomised"
    model: Model

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""
        return self.model.classes

    @property
    def is_randomised(self) -> bool:
        """Never."""
        return False

    @property
    def reads_groups(self) -> bool:
        """Whether the model inside does."""
        return self.model.reads_groups

    def predict_proba(self, rows: object) -> Floats:
        """The probabilities of the model inside."""
        return self.model.predict_proba(rows)

    def decision_proba(self, rows: object) -> Floats:
        """One for the class decided on, zero for the others."""
        return one_hot(self.predict_codes(rows), len(self.classes))

    def predict_codes(self, rows: object, random_state: RandomState = None) -> Codes:
        """The likeliest class."""
        law = self.model.decision_proba(rows)
        return np.asarray(law.argmax(axis=1))

    def to_parts(self) -> Parts:
        """The parts of the model inside."""
        return Parts(self.kind, {}, {}, (self.model.to_parts(),))
