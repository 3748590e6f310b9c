"""`FermiClassifier`: loss plus the mutual information of prediction and group, by private descent-ascent (DP-FERMI)."""

from __future__ import annotations

import dataclasses
import os
import warnings
from typing import Any

import numpy as np

from .. import _checks
from ..errors import InputError, NoGroups, complaint
from ..facts import Cells
from ..fairness import Notion
from ..learning import Outcome, PenaltySettings, Settings
from ..learning.lagrangian import fermi
from ..privacy.promise import Promise
from .descending import DescentClassifier
from .fitting import promises
from .fitting.intents import Descent
from .reading.inputs import Training
from .reports.gap_report import GapReport

ITERATES = ("last", "average", "uniform")


class FermiClassifier(DescentClassifier):
    """A classifier whose predictions are made independent of groups by a penalty, and which keeps a promise of privacy.

    min_w  mean loss(w) + strength x D(w),    D: the exponential Renyi mutual information of prediction and group, as a maximum
    over a matrix W; see docs/fermi.md. For linear models (logistic, softmax) and torch modules, any number of classes, groups
    and sensitive columns. Where a bound on a gap is wanted rather than a trade, see `RateConstrainedClassifier`.

    Parameters
    ----------
    notion : of what predictions are to be independent: "demographic_parity" (the group), "equalized_odds" (the group, given the
        label; every label has a W of its own) or "equal_opportunity" (the group, given the label `positive`).
    strength : of the penalty; 0: none. A gap falls about as 1 / strength once it is small.
    model : None, a linear model; "additive", or an `Additive`: steps of each number beside it (docs/additive_models.md); or a
        `torch.nn.Module`, which is copied, and descended from where it stands: docs/networks.md.
    epsilon, delta, protects, neighbours, schema, public_rows, max_sample_weight, unsafe_data_dependent_bounds, random_state,
    ledger, unit, max_rows_per_unit, sensitive_as_feature : as in `RateConstrainedClassifier`.
    positive : the class of "equal_opportunity"; None: the second of two.
    groups : "product" or "marginal", for several sensitive columns: every combination is a group, or every value of each.
    rounds, clip, temperature, sampling_rate, learning_rate, device, checkpoint, checkpoint_every : as in
        `RateConstrainedClassifier`; None: the library's defaults.
    iterate : which model of the descent is handed out: "last", "average" (of the late ones), or "uniform" (one drawn
        beforehand, of which the paper's theorem speaks); None: the average for linear models, the last for modules. All cost
        the same.
    radius : of the ball in which W is kept; None: 2 sqrt(classes x columns). least_share : the share of rows that a group is
        taken to have at least. Public constants, both.

    Fitted: `model_`, `privacy_`, `gap_report_`, `outcome_` (released values alone), `classes_`, `groups_`, `n_features_in_`,
    `feature_names_in_`, `n_iter_`, `coding_`, `cells_`; linear models also `coef_`, `intercept_` in the units of X and
    `coef_names_`.

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

    Guarantees (tests/estimators/test_estimators_fermi.py):
    1. What is fitted depends on the rows through the curator's answers alone, except for what `privacy_.facts` and
       `privacy_.not_covered` list as read from the data.
    2. `privacy_` is the price of the whole plan, at most the promise.
    3. With a schema, nothing is read from the data.
    4. A fit that fails or is broken off changes no attribute.
    """

    def __init__(
        self,
        notion: str = "demographic_parity",
        strength: float = 1.0,
        model: Any = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        protects: str = "records",
        neighbours: str | None = None,
        schema: Any = None,
        public_rows: int | None = None,
        max_sample_weight: float = 1.0,
        unsafe_data_dependent_bounds: bool = False,
        random_state: Any = None,
        ledger: Any = None,
        unit: Any = None,
        max_rows_per_unit: int | None = None,
        positive: Any = None,
        groups: str = "product",
        rounds: int | None = None,
        clip: float | None = None,
        temperature: float | None = None,
        sampling_rate: float | None = None,
        learning_rate: float | None = None,
        iterate: str | None = None,
        radius: float | None = None,
        least_share: float = 0.01,
        sensitive_as_feature: bool = False,
        device: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 10,
    ) -> None:
        self.notion = notion
        self.strength = strength
        self.model = model
        self.epsilon = epsilon
        self.delta = delta
        self.protects = protects
        self.neighbours = neighbours
        self.schema = schema
        self.public_rows = public_rows
        self.max_sample_weight = max_sample_weight
        self.unsafe_data_dependent_bounds = unsafe_data_dependent_bounds
        self.random_state = random_state
        self.ledger = ledger
        self.unit = unit
        self.max_rows_per_unit = max_rows_per_unit
        self.positive = positive
        self.groups = groups
        self.rounds = rounds
        self.clip = clip
        self.temperature = temperature
        self.sampling_rate = sampling_rate
        self.learning_rate = learning_rate
        self.iterate = iterate
        self.radius = radius
        self.least_share = least_share
        self.sensitive_as_feature = sensitive_as_feature
        self.device = device
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def _asked(self) -> list[Notion]:
        _checks.non_negative(strength=self.strength)
        if self.iterate is not None:
            _checks.one_of(ITERATES, iterate=self.iterate)
        if self.iterate == "uniform" and self.checkpoint is not None:  # its round may be one that a crash has lost
            remedy = "Take the last one, or leave checkpoint=None: the draw is of one sitting."
            raise InputError(complaint(expected="'last' or 'average'", of="iterate", got="uniform", remedy=remedy))
        self._penalty()
        if self.positive is not None and self.notion != "equal_opportunity":
            remedy = 'Leave it None, or pass notion="equal_opportunity".'
            raise InputError(complaint(expected=f"None with {self.notion!r}", of="positive", got=self.positive, remedy=remedy))
        return [fermi.notion_of(self.notion, self.positive, self.groups)]

    def _penalty(self) -> PenaltySettings:
        return PenaltySettings(radius=self.radius, least_share=self.least_share)

    def _usual(self, promise: Promise) -> Settings:
        return fermi.usual_settings(promise)

    def _require_groups(self, notions: list[Notion], training: Training) -> None:
        """Without groups there is nothing to be independent of: no penalty, and that is said."""
        if not training.rows.layout.sensitive and self.strength > 0:
            text = complaint(
                expected="groups, for the penalty to be about",
                of="sensitive_features",
                got=None,
                remedy="Nothing was asked of the model: pass fit(X, y, sensitive_features=...), or strength=0.",
            )
            warnings.warn(text, NoGroups, stacklevel=4)

    def _plan(
        self, promise: Promise, training: Training, cells: Cells | None, notions: list[Notion], facts: dict[str, Any]
    ) -> Descent:
        settings: Settings = facts.pop("settings")
        if cells is not None and cells.count < 2 and self.strength > 0:
            got = f"groups {list(cells.keys)}"
            remedy = "Pass sensitive_features with several groups, or strength=0."
            raise InputError(complaint(expected="at least two groups", of="sensitive_features", got=got, remedy=remedy))
        if self.iterate is not None:
            settings = dataclasses.replace(settings, iterate=self._iterate(settings.rounds))
        layout = training.rows.layout
        return fermi.make(promise, layout, cells, notions[0], [float(self.strength)], settings, self._penalty(), **facts)

    def _iterate(self, rounds: int) -> str | int:
        """Which one: a round is drawn for "uniform", whatever the rows are."""
        if self.iterate != "uniform":
            return str(self.iterate)
        return int(np.random.default_rng(promises.seed_of(self.random_state)).integers(rounds))

    def _report(self, outcome: Outcome) -> None:
        self.gap_report_ = GapReport.of(outcome)
