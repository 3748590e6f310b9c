"""The face of a fitted post-processor: what it predicts, and what it would be without chance. Abstract."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ..._types import Floats
from ...errors import InputError, complaint
from ...facts import Cells, RowSource
from ...fairness import ConstraintSystem, resolve
from ...learning.postprocessing import mixing, mixing_bounds
from ...learning.postprocessing.counting import Released
from ...learning.postprocessing.mixing import Program
from ...learning.postprocessing.mixing_bounds import MixingGuarantee
from ...learning.systems import NO_GROUPS
from ...models import PostProcessedModel, RandomState
from ...models.model import draw_codes
from ...tables.columns import same_length
from ..certifying.certified_fits import forget_certificate
from ..fitting import promises
from ..reading.columns import read_labels
from ..reading.inputs import weights_of
from ..reports.baselines import BaselineReport
from ..reports.constraint_report import ConstraintReport
from ..wrapped import answers as base_answers
from ..wrapped import bases, decided
from . import report as post_report
from . import rows as post_rows
from .rows import as_tuple


class PostProcessed:
    """A base classifier, and thresholds or a table of chances after it. Abstract; `fit` is the estimator's own."""

    constraints: Any
    schema: Any
    max_sample_weight: Any
    estimator_: Any
    model_: PostProcessedModel
    predict_method_: str
    guarantee_: MixingGuarantee | None
    constraint_report_: ConstraintReport
    baselines_: BaselineReport | None
    released_: Released | None
    sensitive_names_: tuple[str, ...]
    groups_named_: bool
    cells_: Cells | None
    classes_: npt.NDArray[Any]

    @property
    def mixing_(self) -> Floats:
        """P(decision = k | cell, base decision or bin j), (cells, decisions or bins, classes)."""
        check_is_fitted(self, "model_")
        return self.model_.mixing

    @property
    def edges_(self) -> Floats | None:
        """The edges of the bins of the base's score; None where its decisions are changed instead."""
        check_is_fitted(self, "model_")
        return self.model_.edges

    def predict(self, X: Any, *, sensitive_features: Any = None, random_state: RandomState = None) -> npt.NDArray[Any]:
        """Predict the class of each row, drawn anew for every row where decisions are drawn.

        Parameters
        ----------
        X : table or array
            Rows to predict for, with the columns of the fit.
        sensitive_features : array, table or names of columns of X, default=None
            Groups of the rows, where the rule reads them. None: it does not.
        random_state : int or Generator, default=None
            Seed of draws, where decisions are drawn: the same seed and rows draw the same. None: fresh draws.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes, as the labels were written.
        """
        check_is_fitted(self, "model_")
        law = self.predict_proba(X, sensitive_features=sensitive_features)
        return np.asarray(self.classes_[draw_codes(law, random_state)])

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Exact distribution of `predict`.

        Parameters
        ----------
        X : table or array
            Rows to predict for, with the columns of the fit.
        sensitive_features : array, table or names of columns of X, default=None
            Groups of the rows, where the rule reads them. None: it does not.

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
        codes = decided.codes_of(decided.asked_of_base(lambda: base.predict(features)), model.classes)
        return model.law(codes, self._ids(X, sensitive_features, len(codes)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Expected share of rows, by weight, whose class is predicted right.

        Parameters
        ----------
        X : table or array
            Rows to predict for, with the columns of the fit.
        y : array, default=None
            True labels or numbers. None: X is a source of coded rows, which has its own.
        sample_weight : array, default=None
            Weight of each row. None: 1.
        sensitive_features : array, table or names of columns of X, default=None
            Groups of the rows, where the rule reads them. None: it does not.

        Returns
        -------
        float
            Expected accuracy, between 0 and 1.
        """
        law = self.predict_proba(X, sensitive_features=sensitive_features)
        if y is None and isinstance(X, RowSource):
            codes: npt.NDArray[Any] = np.concatenate([np.asarray(block.labels) for block in X.blocks()])
            labels = self.classes_[codes]
        else:
            labels = read_labels(y)
        same_length({"X": len(law), "y": len(labels)})
        place = {value: code for code, value in enumerate(self.model_.classes)}
        at = np.array([place.get(value, -1) for value in labels.tolist()], np.intp)
        right = np.where(at >= 0, law[np.arange(len(law)), at], 0.0)
        return float(np.average(right, weights=weights_of(sample_weight, len(labels))))

    def derandomise(self) -> Self:
        """Classifier that decides without chance, with one threshold for each group.

        A base without scores gets one class for each of its decisions.

        Returns
        -------
        OddsPostProcessor
            A copy with the best such rule at the released counts: least excess over the bounds, then least error. It has its
            own `constraint_report_` and `guarantee_`.
        """
        check_is_fitted(self, "model_")
        out = copy.copy(self)
        forget_certificate(out)
        if self.released_ is None or self.guarantee_ is None:
            return out
        system = self._resolved()
        if system.names != self.guarantee_.names:
            remedy = "Fit again after a change of constraints."
            raise InputError(complaint(expected="the constraints of the fit", of="constraints", got="others", remedy=remedy))
        model = self.model_
        shared = model.cells is None and len(self.released_.raw) > 1
        solved = mixing.deterministic(Program.of(self.released_, system, shared=shared))
        confidence = self.guarantee_.confidence
        out.guarantee_ = mixing_bounds.guarantee(self.released_, system, solved.table, confidence, shared=shared)
        heaviest = self.max_sample_weight
        report = post_report.report_of(out.guarantee_, solved, post_report.CHOSEN, self.released_, system, heaviest)
        out.constraint_report_ = report.saying(self.constraint_report_.required)
        out.baselines_ = None
        table = solved.table[: len(model.mixing)]
        out.model_ = PostProcessedModel(table, model.classes, model.cells, model.base, model.edges)
        return out

    # -- inside ------------------------------------------------------------------------------------------------------------

    def _features_of(self, X: Any) -> Any:
        names = as_tuple(getattr(self, "feature_names_in_", ()))
        return post_rows.features_of(self.estimator_, X, self.schema, names, self.sensitive_names_)

    def _ids(self, X: Any, sensitive_features: Any, rows: int) -> npt.NDArray[np.intp] | None:
        cells = self.model_.cells
        return None if cells is None else decided.group_ids(sensitive_features, X, cells, rows, self.groups_named_)

    def _resolved(self) -> ConstraintSystem:
        """The constraints again, over the cells of the counts."""
        notions = [notion for notion in promises.notions_of(self.constraints) if not notion.is_vacuous]
        system = resolve(notions, self.cells_ or NO_GROUPS, self.model_.classes)
        return system if system.needs_groups else system.without_groups()
