"""The face of a fitted post-processor: what it predicts, and what it would be without chance.
Abstract."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from ..._types import ColumnsLike, Floats, TableLike
from ...errors import InputError
from ...fairness import ConstraintSystem, resolve
from ...learning import postprocess
from ...learning.postprocess import MixingGuarantee, Program, Released
from ...learning.systems import NO_GROUPS, heaviest
from ...models import PostProcessedModel
from ...statement.document import PrivacyStatement
from .. import fitting
from ..certifying.certified_fits import forget_certificate
from ..reports.baselines import BaselineReport
from ..reports.constraint_report import ConstraintReport
from ..words import worded
from ..wrapped import answers as base_answers
from ..wrapped import bases, decided
from . import report as post_report
from .after_a_base import AfterABase


class PostProcessed(AfterABase):
    """A base classifier, and thresholds or a table of chances after it. Abstract; `fit` is the
    estimator's own."""

    constraints: Any
    max_sample_weight: Any
    model_: PostProcessedModel
    predict_method_: str
    guarantee_: MixingGuarantee | None
    constraint_report_: ConstraintReport
    baselines_: BaselineReport | None
    released_: Released | None
    privacy_: PrivacyStatement

    @property
    def mixing_(self) -> Floats:
        """P(decision = k | cell, base decision or bin j), (cells, decisions or bins, classes)."""
        check_is_fitted(self, "model_")
        return self.model_.mixing

    @property
    def edges_(self) -> Floats | None:
        """Edges of the bins of the base's score; None where its decisions are changed instead."""
        check_is_fitted(self, "model_")
        return self.model_.edges

    @worded
    def predict_proba(self, X: TableLike, *, sensitive_features: ColumnsLike = None) -> Floats:
        """Exact distribution of `predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self, "model_")
        base, model = self.estimator_, self.model_
        features = self._features_of(X)
        if model.edges is not None:
            scores = base_answers.scores_of(base, self.predict_method_, features, model.classes)
            return model.law(model.bins(scores), self._ids(X, sensitive_features, len(scores)))
        if bases.is_randomised(base):
            law = decided.law_of(base, features, model.classes)
            return model.mixed(law, self._ids(X, sensitive_features, len(law)))
        codes = decided.codes_of(
            decided.asked_of_base(lambda: base.predict(features)), model.classes
        )
        return model.law(codes, self._ids(X, sensitive_features, len(codes)))

    def derandomise(self) -> Self:
        """Classifier that decides without chance, with one threshold for each group.

        A base without scores gets one class for each of its decisions.

        Returns
        -------
        OddsPostProcessor
            A copy with the best such rule at the released counts: least excess over the bounds,
            then least error. It has its own `constraint_report_` and `guarantee_`.
        """
        check_is_fitted(self, "model_")
        out = copy.copy(self)
        forget_certificate(out)
        if self.released_ is None or self.guarantee_ is None:
            return out
        system = self._resolved()
        if system.names != self.guarantee_.names:
            remedy = "Fit again after a change of constraints."
            raise InputError.expected(
                "the constraints of the fit", of="constraints", got="others", remedy=remedy
            )
        model = self.model_
        shared = model.cells is None and len(self.released_.raw) > 1
        solved = postprocess.deterministic(Program.of(self.released_, system, shared=shared))
        confidence = self.guarantee_.confidence
        out.guarantee_ = postprocess.guarantee(
            self.released_, system, solved.table, confidence, shared=shared
        )
        report = post_report.report_of(
            out.guarantee_, solved, post_report.CHOSEN, self.released_, system, self._heaviest
        )
        out.constraint_report_ = report.saying(self.constraint_report_.required)
        out.baselines_ = None
        table = solved.table[: len(model.mixing)]
        out.model_ = PostProcessedModel(table, model.classes, model.cells, model.base, model.edges)
        return out

    # -- inside ------------------------------------------------------------------------------------

    @property
    def _heaviest(self) -> float | None:
        """How much one who is drawn may count."""
        return heaviest(self.privacy_.promise, self.max_sample_weight)

    def _resolved(self) -> ConstraintSystem:
        """The constraints again, over the cells of the counts."""
        notions = [
            notion for notion in fitting.notions_of(self.constraints) if not notion.is_vacuous
        ]
        system = resolve(notions, self.cells_ or NO_GROUPS, self.model_.classes)
        return system if system.needs_groups else system.without_groups()
