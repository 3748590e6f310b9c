"""`FermiClassifier`: loss plus the mutual information of prediction and group, by private
descent-ascent (DP-FERMI)."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np

from .. import _checks
from .._types import ColumnsLike, TableLike
from ..core.promise import Promise
from ..data.reading import PathLike
from ..errors import InputError, NoGroups, complaint
from ..facts import Cells
from ..fairness import Notion
from ..methods import Outcome, PenaltySettings, Settings, fermi
from . import fitting
from .certifying.certified_fits import certified, refuse_certify
from .descending import DescentClassifier
from .fitting import Descent as Planned
from .reading.training import Training
from .reports import GapReport
from .settings import Descent, PenaltyDescent, SetAside
from .words import described, worded


@described
class FermiClassifier(DescentClassifier):
    """Classifier whose predictions a penalty makes independent of groups, with privacy.

    Minimizes the mean loss plus `strength` times the exponential Rényi mutual information of
    prediction and group. The information is the maximum over a matrix W; see docs/fermi.md. It is
    for linear models and torch modules, with any number of classes, groups and sensitive columns.

    Parameters
    ----------
    notion : {"demographic_parity", "equalized_odds", "equal_opportunity"} or notion, default="demographic_parity"
        Predictions are to be independent of the group, of the group given the label, or of the
        group given the second label. With ``"equalized_odds"`` every label has a W of its own. A
        notion without a bound says which label and which groups: ``EqualOpportunity(None,
        positive="yes", groups="marginal")``.
    strength : float, default=1.0
        Weight of the penalty; 0 is no penalty. A gap falls about as 1 / strength once it is small.
    solver : Descent or PenaltyDescent, default=None
        Settings of the descent, such as ``PenaltyDescent(rounds=50, radius=10.0)``. None: the
        library's, from public facts.

    Attributes
    ----------
    model_, privacy_
    gap_report_ : GapReport
        Released differences of rates among groups on the training rows.
    baselines_
    outcome_ : Outcome
        Everything that the search released.
    classes_, groups_, coef_, intercept_, coef_names_, n_features_in_, feature_names_in_,
    coding_, cells_, n_iter_, certificate_

    See Also
    --------
    RateConstrainedClassifier : Keeps a bound on a gap.
    TailoredClassifier : Shares the privacy budget among groups.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_fermi.py):

    1. The fit depends on the rows through the curator's releases alone, except for what
       `privacy_.facts` and `privacy_.not_covered` list as read from the data.
    2. `privacy_` is the price of the whole plan, at most (epsilon, delta).
    3. With a schema, nothing is read from the data.
    4. A fit that fails or is interrupted changes no attribute.

    References
    ----------
    .. [1] Lowy, Gupta and Razaviyayn 2023. "Stochastic Differentially Private and Fair Learning."
       arXiv:2210.08781. Corrected as docs/theory/papers.md tells.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 2)) + 0.5 * A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=2000) > 1).astype(int)
    >>> clf = FermiClassifier("demographic_parity", strength=5.0, epsilon=2.0, random_state=0)
    >>> clf.fit(X, y, sensitive_features=A).predict(X[:3]).shape
    (3,)
    >>> clf.privacy_.epsilon <= 2.0, clf.groups_
    (True, (0, 1))
    """

    SETTINGS: ClassVar = {
        "solver": (PenaltyDescent,),
        "certify_share": (SetAside,),
    }

    notion: str | Notion = "demographic_parity"
    strength: float = 1.0
    model: object = None
    _: KW_ONLY
    solver: Descent | None = None
    sensitive_as_feature: bool = False
    checkpoint: PathLike | None = None
    certify: object = None
    certify_share: object = None

    @certified
    @worded
    def fit(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> Self:
        """Fit to a table X and labels y, matched by position.

        With `certify`, notions are certified on rows that are set aside: see `certificate_`.

        Warns
        -----
        WorseThanBaseline, DecisionsReplaced
        """
        return super().fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)

    @property
    def _solver(self) -> PenaltyDescent:
        return self._setting("solver", PenaltyDescent)

    def _asked(self) -> list[Notion]:
        _checks.non_negative(strength=self.strength)
        refuse_certify(self)
        if self._solver.iterate == "uniform" and self.checkpoint is not None:
            remedy = "Take the last one, or leave checkpoint=None: the draw is of one sitting."
            raise InputError.expected(
                "'last' or 'average'", of="iterate", got="uniform", remedy=remedy
            )
        self._penalty()
        return [self._notion()]

    def _notion(self) -> Notion:
        """What the penalty is about, with the bound 0 that is nobody's."""
        if isinstance(self.notion, str):
            return fermi.notion_of(self.notion)
        return fermi.unbounded(self.notion)

    def _penalty(self) -> PenaltySettings:
        return PenaltySettings(radius=self._solver.radius, least_share=self._solver.least_share)

    def _usual(self, promise: Promise) -> Settings:
        return fermi.usual_settings(promise)

    def _require_groups(self, notions: list[Notion], training: Training) -> None:
        """Without groups there is nothing to be independent of: no penalty, and that is said."""
        if not training.rows.layout.sensitive and self.strength > 0:
            text = complaint(
                expected="groups, for the penalty to be about",
                of="sensitive_features",
                got=None,
                remedy="No penalty applies: pass fit(X, y, sensitive_features=...), or strength=0.",
            )
            warnings.warn(text, NoGroups, stacklevel=4)

    def _plan(
        self,
        promise: Promise,
        training: Training,
        cells: Cells | None,
        notions: list[Notion],
        facts: dict[str, Any],
    ) -> Planned:
        settings: Settings = facts.pop("settings")
        if cells is not None and cells.count < 2 and self.strength > 0:
            got = f"groups {list(cells.keys)}"
            remedy = "Pass sensitive_features with several groups, or strength=0."
            raise InputError.expected(
                "at least two groups", of="sensitive_features", got=got, remedy=remedy
            )
        if self._solver.iterate is not None:
            settings = dataclasses.replace(settings, iterate=self._iterate(settings.rounds))
        layout = training.rows.layout
        return fermi.search_for(
            promise,
            layout,
            cells,
            notions[0],
            float(self.strength),
            settings,
            self._penalty(),
            **facts,
        )

    def _iterate(self, rounds: int) -> str | int:
        """Which one: a round is drawn for "uniform", whatever the rows are."""
        if self._solver.iterate != "uniform":
            return str(self._solver.iterate)
        return int(np.random.default_rng(fitting.seed_of(self.random_state)).integers(rounds))

    def _report(self, outcome: Outcome) -> None:
        self.gap_report_ = GapReport.of(outcome)
