"""The face that randomised classifiers share: mixtures of linear rules, or of classifiers made
elsewhere. Abstract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .._types import ColumnsLike, Floats, TableLike
from ..core.promise import Promise
from ..errors import InputError
from ..facts import RowBlock
from ..methods.oracles import AttachedRule, Begun, Descent, GroupedRule, LinearRule, Listed, Rule
from ..models import DerandomisedModel, GroupedLinearModel, LinearModel, MixtureModel
from ..models.model import RandomState, draw_codes
from ..tables.columns import same_length
from . import fitting, wrapped
from .faces import CodedClassifier, expected_accuracy
from .reading.coding import Coding, SchemaCoding
from .reading.training import Training
from .words import worded
from .wrapped import codes_of, in_blocks, names_of, unheard, without

MADE_ELSEWHERE = (
    "the candidates: it is assumed that they were made without these rows, or without what is "
    "protected of them; what they "
    "hold of them is not covered"
)

BOTH_ADD = (
    "where it was made from these rows, its epsilon adds to this epsilon, and its delta to this "
    "delta"
)
"""Valid also where this fit was chosen by looking at the candidate, which the tight price of both
as one plan is not."""

CANDIDATES = "a candidate's decisions"


class MixingClassifier(CodedClassifier):
    """A mixture: `model_`, or shares `plays_` of given `candidates_`. Abstract."""

    __metadata_request__predict: ClassVar = {"random_state": True}

    model_: MixtureModel | DerandomisedModel | None
    candidates_: tuple[Any, ...]
    plays_: Floats
    sensitive_as_feature: bool

    @property
    def _is_randomized(self) -> bool:
        """Whether `predict_proba` is the distribution of `predict`; where it is not, `predict`
        decides without chance."""
        return True

    def predict_proba(self, X: TableLike) -> Floats:
        """The distribution of `predict`, exactly: the share of the mixture's rules that decide for
        each class, (rows, classes)."""
        return self._law(X)

    @worded
    def predict(self, X: TableLike, random_state: RandomState = None) -> npt.NDArray[Any]:
        """Predict the class of each row, drawn from the mixture: a rule anew for every row.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes, as the labels were written.
        """
        codes = draw_codes(self._law(X), random_state)
        return np.asarray(self.classes_[codes])

    @worded
    def score(
        self, X: TableLike, y: ColumnsLike = None, sample_weight: ColumnsLike = None
    ) -> float:
        """Expected share of rows, by weight, whose class is predicted right.

        Returns
        -------
        float
            Expected accuracy, between 0 and 1.
        """
        return expected_accuracy(self._law(X), self.classes_, X, y, sample_weight)

    def _law(self, X: TableLike) -> Floats:
        check_is_fitted(self, "outcome_")
        return (
            self._distribution_of_candidates(X)
            if self.model_ is None
            else self._distribution_of_model(self._blocks(X))
        )

    def _distribution_of_model(self, blocks: Iterable[RowBlock]) -> Floats:
        assert self.model_ is not None
        return np.concatenate([self.model_.decision_proba(block) for block in blocks])

    def _distribution_of_candidates(self, X: TableLike) -> Floats:
        law: Floats = np.zeros((0, 0))
        X = self._features_of_candidates(
            X, self.coding_, () if self.cells_ is None else self.cells_.names
        )
        for candidate, share in zip(self.candidates_, self.plays_, strict=True):
            if share == 0.0:
                continue
            codes = codes_of(candidate.predict(X), self.classes_.tolist(), CANDIDATES)
            law = np.zeros((len(codes), len(self.classes_))) if not law.size else law
            law[np.arange(len(codes)), codes] += share
        return law

    def _features_of_candidates(
        self, X: TableLike, coding: Coding, sensitive: Sequence[str]
    ) -> Any:
        """X as candidates may read it: a schema's features, else what is not sensitive, or is a
        feature all the same."""
        if isinstance(coding, SchemaCoding) and (names := names_of(X)):
            return without(X, [name for name in names if name not in coding.encoding.features])
        return X if self.sensitive_as_feature else without(X, sensitive)

    def _derandomised(self, threshold: float | None) -> DerandomisedModel | None:
        """The mixture's likeliest decisions; None where it decides so already."""
        check_is_fitted(self, "outcome_")
        if self.model_ is None:
            remedy = "Take predict_proba(X).argmax(axis=1), or choose among linear rules."
            got = "candidates made elsewhere"
            raise InputError.expected(
                "a mixture of linear models", of="derandomise", got=got, remedy=remedy
            )
        return self.model_.derandomise(threshold) if isinstance(self.model_, MixtureModel) else None

    def _decided_by(self, listed: Sequence[Any], training: Training, X: TableLike) -> Listed:
        """How the candidates decide for the rows of the fit; of a plan, which has none, only how
        many there are."""
        if training.supposed is not None:
            return Listed([_undecided] * len(listed))
        features = self._features_of_candidates(
            X, training.coding, training.rows.layout.sensitive_names
        )
        rows, seen = training.rows.exact_count, training.classes
        # of no rows nobody is asked: see `decided.decisions_of`
        decided = [
            codes_of(unheard(candidate, features) if rows else (), seen, CANDIDATES)
            for candidate in listed
        ]
        for codes in decided:
            same_length({"X": rows, CANDIDATES: len(codes)})
        return Listed([in_blocks(codes, training.rows) for codes in decided])


def _undecided(block: Any) -> Any:
    """A candidate's decisions about rows that are not there."""
    raise AssertionError("a plan asks nothing")


def descent_of(promise: Promise, training: Training, clip: float | None) -> Descent:
    """The gradient oracle: where records are protected, from where a descent without constraints
    has ended."""
    if promise.features_are_public:
        return Descent(clip=clip)
    return Begun(clip=clip, scales=fitting.numbers_are_scalable(training, promise))


def candidates_of(given: Any, *, of: str, words: Sequence[str]) -> tuple[Any, ...]:
    """Fitted classifiers in a list."""
    listed = tuple(given) if isinstance(given, Sequence) else ()
    if not listed or not all(callable(getattr(candidate, "predict", None)) for candidate in listed):
        remedy = f"Pass a list of fitted classifiers, or {' or '.join(words)}."
        raise InputError.expected(
            "objects with predict(X)", of=of, got=type(given).__name__, remedy=remedy
        )
    return listed


def told_of(listed: Sequence[Any]) -> list[str]:
    """What the statement must say of candidates made elsewhere: what is assumed, and what their own
    fits cost."""
    if not listed:
        return []
    told = [MADE_ELSEWHERE]
    for candidate in listed:
        if wrapped.carries_a_promise(candidate):
            promise = wrapped.thawed(candidate).privacy_.promise
            price = (
                f"epsilon {promise.epsilon:g} and delta {promise.delta:g} for {promise.protects}"
            )
            told.append(f"a candidate's own fit, at {price}: {BOTH_ADD}")
    return list(dict.fromkeys(told))


def shares_of(rules: Sequence[Rule], weights: Sequence[float], listed: int) -> Floats:
    """How much of the mixture each given candidate is."""
    shares, total = np.zeros(listed), float(sum(weights))
    for rule, weight in zip(rules, weights, strict=True):
        if isinstance(rule, AttachedRule):
            shares[rule.place] += weight / total
    return shares


def model_of(rule: Rule, training: Training) -> LinearModel | GroupedLinearModel:
    """A rule as a model."""
    assert isinstance(rule, LinearRule | GroupedRule)
    weights = rule.weights
    linear = LinearModel(
        weights[:, 1:], weights[:, 0], classes=training.classes, layout=training.coding.layout
    )
    return (
        linear
        if isinstance(rule, LinearRule)
        else GroupedLinearModel(linear, rule.offsets, rule.of)
    )


def rule_of(model: object) -> Rule:
    """A model as a rule."""
    linear = model.linear if isinstance(model, GroupedLinearModel) else model
    assert isinstance(linear, LinearModel)
    weights = np.column_stack([linear.intercept, linear.weights])
    return (
        GroupedRule(weights, model.offsets, model.cells)
        if isinstance(model, GroupedLinearModel)
        else LinearRule(weights)
    )
