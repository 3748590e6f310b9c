"""`RateConstrainedClassifier`: a linear classifier under fairness constraints, private by descent (RaCO-DP, corrected)."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ConstraintNotMet
from ..facts import Cells
from ..fairness import Notion
from ..learning import Outcome, RateConstrained, Settings, descend, plans
from ..privacy.statement import PrivacyStatement
from . import inputs, promises
from .coded import Floats
from .constraint_report import ConstraintReport
from .inputs import Training, Ways
from .intents import Intent
from .linear import LinearClassifier
from .progress import progress
from .publish import statement_of


class RateConstrainedClassifier(LinearClassifier):
    """A linear classifier that keeps fairness constraints and a promise of privacy. The library's default answer.

    min_w  mean loss(w)   such that   rate constraints of the model's *decisions*; see docs/rate_constrained.md. Two classes:
    logistic; more: softmax. Works without groups and without a constraint, with any number of classes, groups and sensitive
    columns.

    Parameters
    ----------
    constraints : None, a notion such as `DemographicParity(max_gap=0.05)`, its name and bound ("demographic_parity:0.05"), or
        a list of those, which are combined. All but a `FalseNegativeRate` or `RateConstraint` of the whole population need
        `sensitive_features`.
    epsilon, delta : the promise. `epsilon=inf` is not private: no noise, no clipping, run until it converges. Never derived
        from data.
    protects : "records" (whole rows) or "sensitive_features" (the sensitive columns alone; features and labels are public).
    neighbours : None ("add-remove" for records, "replace-one" for sensitive features), "add-remove" or "replace-one".
    schema : a `facts.Schema`: tables are coded by it alone, nothing is read from the data. Classes are in its order.
    public_rows : about how many rows there are, where that is private (add-remove) but known to the public; None: the schema's
        number, or one noisy count that is part of the plan.
    max_sample_weight : weights are cut here; it multiplies every sensitivity. Not without privacy.
    unsafe_data_dependent_bounds : scale numbers by the training rows' means and deviations, as the papers do. Stamped.
    random_state : None: secure noise. A whole number (or a NumPy generator): reproducible, and stamped insecure.
    ledger : None; this version has no shared budgets.
    rounds, clip, temperature, sampling_rate : knobs of the algorithm; None: the library's defaults (`learning.Settings`).
    sensitive_as_feature : whether columns of X that are named as sensitive are features too (records only).

    Fitted: `model_`, `privacy_`, `constraint_report_`, `outcome_` (released values alone), `classes_`, `groups_`, `coef_`,
    `intercept_` in the units of X, `coef_names_`, `n_features_in_`, `feature_names_in_`, `n_iter_`, `coding_`, `cells_`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 2)) + 0.5 * A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=2000) > 1).astype(int)
    >>> clf = RateConstrainedClassifier("demographic_parity:0.1", epsilon=2.0, random_state=0)
    >>> clf.fit(X, y, sensitive_features=A).predict(X[:3]).shape
    (3,)
    >>> clf.privacy_.epsilon <= 2.0, clf.groups_
    (True, (0, 1))

    Guarantees (tests/estimators/test_estimators_privacy.py):
    1. What is fitted depends on the rows through the curator's answers alone, except for what `privacy_.facts` and
       `privacy_.not_covered` list as read from the data.
    2. `privacy_` is the price of the whole plan, at most the promise.
    3. With a schema, nothing is read from the data.
    4. A fit that fails or is broken off changes no attribute.
    """

    def __init__(
        self,
        constraints: Any = None,
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
        rounds: int | None = None,
        clip: float | None = None,
        temperature: float | None = None,
        sampling_rate: float | None = None,
        sensitive_as_feature: bool = False,
    ) -> None:
        self.constraints = constraints
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
        self.rounds = rounds
        self.clip = clip
        self.temperature = temperature
        self.sampling_rate = sampling_rate
        self.sensitive_as_feature = sensitive_as_feature

    def fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> RateConstrainedClassifier:
        """Fit to a table X and labels y, matched by position.

        `X`: an array, a sparse array, a pandas, polars or pyarrow table, a mapping of columns, or a source of coded rows (which
        has labels and groups of its own). `sensitive_features`: one column, several (a list, a mapping, a frame, a 2-d array),
        or names of columns of X. `y` may be left out where a schema names the target among X's columns.
        """
        intent = self._intend(lambda ways: inputs.read(X, y, sensitive_features, sample_weight, ways))
        curator = intent.curator(promises.noise_of(self.random_state))
        with progress("Fitting") as tick:
            (outcome,) = descend(curator, intent.search, tick)
        self._conclude(intent, outcome, statement_of(curator, intent.training))
        if not self.constraint_report_.met:
            self._warn()
        return self

    def _intend(self, read: Callable[[Ways], Training]) -> Intent:
        """Check, read the rows and plan: all that comes before the first question."""
        promise = promises.promise_of(self.epsilon, self.delta, self.protects, self.neighbours)
        promises.refuse_ledger(self.ledger)
        notions = promises.notions_of(self.constraints)
        settings = self._settings()
        ways = promises.ways_of(
            self.schema, self.sensitive_as_feature, self.unsafe_data_dependent_bounds, self.max_sample_weight, promise
        )
        training = read(ways)
        promises.require_cap(training, promise)
        promises.require_groups(notions, training)
        cells = cells_of(notions, training)
        rows = training.rows
        public_rows = promises.public_rows_of(self.public_rows, training, promise)
        promises.warn_of_delta(promise, rows.exact_count if promise.rows_are_public else public_rows)
        plan = plans.make(
            promise,
            rows.layout,
            cells,
            notions,
            settings,
            public_rows=public_rows,
            max_sample_weight=rows.max_sample_weight if rows.weighted else None,
            scalable=promises.numbers_are_scalable(training, promise),
        )
        bounds: Floats = np.zeros((1, 0)) if plan.system is None else plan.system.bounds[np.newaxis]
        return Intent(promise, training, cells, RateConstrained(plan, bounds), public_rows, self.public_rows is not None)

    def _conclude(self, intent: Intent, outcome: Outcome, statement: PrivacyStatement) -> None:
        """Publish what a search found."""
        self._publish(intent.training, intent.cells, outcome.weights)
        self.privacy_ = statement
        self._set_outcome(outcome)

    def _settings(self) -> Settings:
        knobs: dict[str, Any] = {
            "rounds": self.rounds,
            "clip": self.clip,
            "temperature": self.temperature,
            "sampling_rate": self.sampling_rate,
        }
        return dataclasses.replace(Settings(), **{name: value for name, value in knobs.items() if value is not None})

    def _set_outcome(self, outcome: Outcome) -> None:
        self.outcome_ = outcome
        self.n_iter_ = outcome.rounds
        self.constraint_report_ = ConstraintReport.of(outcome)

    def _warn(self) -> None:
        worst = self.constraint_report_.worst
        assert worst is not None
        text = (
            f"a constraint is certainly not met: {worst.target}; the best that was reached is {worst.value:.4f} (noise "
            f"{worst.noise:.4f}). Ask for a larger bound, a larger epsilon or more rounds, or drop a constraint that "
            "contradicts it; see constraint_report_."
        )
        warnings.warn(text, ConstraintNotMet, stacklevel=3)


def cells_of(notions: list[Notion], training: Training) -> Cells | None:
    """Product groups, unless every notion is content with marginal ones, whose histograms are smaller."""
    if not training.rows.layout.sensitive:
        return None
    asked = [notion for notion in notions if not notion.is_vacuous]
    marginal = bool(asked) and all(getattr(notion, "groups", "product") == "marginal" for notion in asked)
    return training.rows.cells("marginal" if marginal else "product")
