"""`RateConstrainedClassifier`: a linear classifier or a network under fairness constraints, private by descent (RaCO-DP)."""

from __future__ import annotations

import os
import warnings
from typing import Any, Self

import numpy as np

from .._types import Floats
from ..errors import ConstraintNotMet
from ..facts import Cells
from ..fairness import Notion
from ..learning import LinearDescent, NetworkDescent, Outcome, Settings
from ..learning.lagrangian import plan as plans
from ..learning.lagrangian.players import constraints_of
from ..models import MixtureModel
from ..models.model import generator
from ..privacy.promise import Promise
from .certifying.certified_fits import certified
from .descending import DescentClassifier
from .fitting import promises
from .fitting.intents import Descent
from .fitting.requirements import said
from .reading.inputs import Training
from .reports.constraint_report import ConstraintReport


class RateConstrainedClassifier(DescentClassifier):
    """A classifier, linear or a torch module, that keeps fairness constraints and a promise of privacy. The default answer.

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
        number, or one noisy count that is part of the plan. With a `unit`: about how many are read; None buys the count.
    max_sample_weight : weights are cut here; it multiplies every sensitivity. Not without privacy.
    unsafe_data_dependent_bounds : scale numbers by the training rows' means and deviations, as the papers do. Stamped.
    random_state : None: secure noise. A whole number (or a NumPy generator): reproducible, and stamped insecure.
    ledger : None, or a `Ledger`, where the fit reserves what it may come to before rows are read, or is refused; None is the
        ledger of the `with fairveil.ledger(...)` block, if there is one. Never saved with the estimator.
    unit : None protects rows. Else persons, with all of their rows (docs/persons.md): the name of the column of X that tells
        them apart, which is no feature; or one value a row (a mapping of one name, or a named series, says the name, too).
    max_rows_per_unit : how many rows of a person are read at most; needed beside `unit`. A public number: who has more rows has
        so many of them drawn. Noise of counts grows with it; a `clip` is then of the sum of a person's gradients.
    rounds, clip, temperature, sampling_rate : knobs of the algorithm; None: the library's defaults (`learning.Settings`).
    sensitive_as_feature : whether columns of X that are named as sensitive are features too (records only).
    model : None, a linear model; "additive", or an `Additive`: steps of each number beside it (docs/additive_models.md); or a
        `torch.nn.Module`, which is copied, and descended from where it stands: docs/networks.md.
    learning_rate, device : of a module's descent; None: the library's default, a GPU where there is one.
    checkpoint, checkpoint_every : a folder in which a long fit is kept every so many rounds, and gone on with after a crash:
        fit again, with the same arguments and rows. What was released stays charged.
    certify_share : float, default=None
        Of constraints with a `confidence`, such as ``DemographicParity(0.05, confidence=0.95)``: the part of the rows that is
        set aside, by a coin of its own each, to certify the bound for people whom the model has not seen: `certificate_`. None:
        0.3. See docs/certificates.md.
    if_refused : {"replace", "keep"}, default="replace"
        If the bound cannot be certified of the model as it was found. "replace": as many of its decisions are replaced by
        blind ones as it takes, and the mixture is certified. "keep": the model is handed out, and is not certified.
    randomised : a linear fit hands out the model that it found unless released numbers say that something else keeps the
        constraints better, or errs less: a model without constraints, one class for everybody, or a mixture of these, which
        decides by chance. False forbids mixtures. It costs no further privacy; `baselines_` says what was handed out.

    Fitted: `model_`, `privacy_`, `constraint_report_`, `baselines_` (the model beside what costs nothing), `outcome_` (released
    values alone), `classes_`, `groups_`, `coef_`, `intercept_` in the units of X, `coef_names_`, `n_features_in_`,
    `feature_names_in_`, `n_iter_`, `coding_`, `cells_`.

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
        unit: Any = None,
        max_rows_per_unit: int | None = None,
        rounds: int | None = None,
        clip: float | None = None,
        temperature: float | None = None,
        sampling_rate: float | None = None,
        sensitive_as_feature: bool = False,
        model: Any = None,
        learning_rate: float | None = None,
        device: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 10,
        randomised: bool = True,
        certify_share: float | None = None,
        if_refused: str = "replace",
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
        self.unit = unit
        self.max_rows_per_unit = max_rows_per_unit
        self.rounds = rounds
        self.clip = clip
        self.temperature = temperature
        self.sampling_rate = sampling_rate
        self.sensitive_as_feature = sensitive_as_feature
        self.model = model
        self.learning_rate = learning_rate
        self.device = device
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.randomised = randomised
        self.certify_share = certify_share
        self.if_refused = if_refused

    @certified
    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table X and labels y, matched by position; see `DescentClassifier.fit` for what they may be. Constraints
        with a `confidence` are certified on rows that are set aside: `certificate_`."""
        return super().fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)

    def predict(self, X: Any, random_state: Any = None) -> Any:
        """The class of each row, as the labels were written. `random_state`: of a mixture (`randomised`), which draws for
        every row; other models decide without chance."""
        generator(random_state)  # a seed that is none is refused, whether it is needed or not
        codes = self._codes(X, random_state)
        return np.asarray(self.classes_[codes])

    @property
    def _decides_by_chance(self) -> bool:
        return isinstance(getattr(self, "model_", None), MixtureModel)

    def _asked(self) -> list[Notion]:
        return promises.notions_of(self.constraints)

    def _usual(self, promise: Promise) -> Settings:
        return Settings()

    def _plan(
        self, promise: Promise, training: Training, cells: Cells | None, notions: list[Notion], facts: dict[str, Any]
    ) -> Descent:
        plan = plans.make(promise, training.rows.layout, cells, notions, **facts)
        bounds: Floats = np.zeros((1, 0)) if plan.system is None else plan.system.bounds[np.newaxis]
        if plan.skeleton is None:
            return LinearDescent(plan, bounds)
        return NetworkDescent(plan, bounds, None if plan.system is None else constraints_of(plan, bounds))

    def _report(self, outcome: Outcome) -> None:
        self.constraint_report_ = ConstraintReport.of(outcome, said(self))

    def _after_fit(self) -> None:
        if not self.constraint_report_.missed_by_far:
            return
        worst = self.constraint_report_.worst
        assert worst is not None
        text = (
            f"a constraint is not met: {worst.target}; the best that was reached on the training rows is {worst.value:.4f} "
            f"(noise {worst.noise:.4f}). Ask for a larger bound, a larger epsilon or more rounds, or drop a constraint that "
            "contradicts it; see constraint_report_."
        )
        warnings.warn(text, ConstraintNotMet, stacklevel=3)
