"""`ParityPostProcessor`: demographic parity of many classes after a finished model, on rows without labels (private)."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ... import _checks
from ..._types import Floats
from ...curator import Curator, Rows
from ...curator.elsewhere import refuse_elsewhere
from ...curator.questions.shifted import softened
from ...curator.quiet.calls import Troubles, quietly
from ...errors import ConstraintNotMet, InputError, complaint
from ...facts import Cells, RowBlock, RowLayout, RowSource
from ...learning import parity
from ...learning.descent import descend
from ...metrics.inputs import read_groups
from ...models import RandomState
from ...models.model import draw_codes, known_classes
from ...privacy.ledger.ambient import checked, current
from ...privacy.noise.sources import NoiseSource
from ...privacy.statement.parts import READ_FROM_DATA, Origin, PublicFact
from ...privacy.statement.statement import PrivacyStatement
from ...tables.columns import same_length
from ...tables.distinct import in_words
from ..certifying.certifying import OWN_DECISIONS
from ..faces.coded import as_array
from ..fitting import promises
from ..fitting.recorded import Recorded
from ..reading import cautions
from ..reading.carried import require_few_values
from ..reading.inputs import Coded
from ..wrapped import bases, decided

CLOSE = 1e-6


class ParityPostProcessor(ClassifierMixin, Recorded, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Post-processor of probabilities: offsets by group give groups nearly equal rates of each class.

    For any number of classes and groups. The rows need no labels, since only the model's decisions about each group are
    counted; see docs/post_processing.md. **It reads the group at prediction.**

    Parameters
    ----------
    estimator : fitted classifier with `predict_proba`
        The model. It must have been made without these rows; its own statement tells what it reveals of its training rows.
    max_gap : float, default=0.05
        Largest difference between two groups' rates of one class, a share of 1.
    epsilon : float, default=1.0
        Privacy budget of this fit. Smaller is more private. ``float('inf')`` adds no noise and gives no privacy; the statement
        is flagged ``not-private``. Choose it without looking at the data.
    delta : float, default=1e-6
        Probability with which the epsilon bound may fail. Choose it well below ``1 / n_rows``.
    protects : {"records", "sensitive_features"}, default="records"
        What is protected. ``"records"``: all of a row. ``"sensitive_features"``: the sensitive attributes alone; features and
        labels are then public.
    neighbours : {"add-remove", "replace-one"}, default=None
        Adjacency relation: one record is added or removed, or one is replaced. None: ``"add-remove"`` for records,
        ``"replace-one"`` for sensitive features.
    groups : Cells, default=None
        The groups, where they are public. None: those that occur, which the statement lists as read from the data.
    rounds : int, default=40
        Number of noisy steps.
    temperature : float, default=0.02
        Distance between two probabilities within which the decision is drawn at random. Smaller is nearer to the largest one.
    randomised : bool, default=True
        Whether decisions are drawn. False: the largest probability decides at prediction, though offsets were found for soft
        decisions.
    random_state : int or Generator, default=None
        None draws secure noise. An integer, or a NumPy generator, repeats the fit and flags the statement INSECURE.
    ledger : Ledger, default=None
        Where the fit reserves its whole cost before rows are read, or is refused. None: the ledger of the ``with
        fairveil.ledger(...)`` block, if there is one. It is never saved with the estimator.

    Attributes
    ----------
    estimator_ : classifier
        The model in use.
    offsets_ : ndarray of shape (n_groups, n_classes)
        Subtracted from the model's probabilities.
    rates_ : ndarray of shape (n_groups, n_classes)
        Rates of the decisions on these rows, by the last noisy histogram.
    gap_ : float
        Largest difference of two groups in `rates_`, noise included; a share of 1.
    noise_ : float
        Standard deviation of the noise of one count of that histogram, in rows.
    moved_ : ndarray of bool of shape (n_groups,)
        Groups with offsets. A group too small for the noise keeps the model's decisions, and a warning names it.
    privacy_ : PrivacyStatement
        Statement of what the fit cost and of what it covers.
    classes_ : ndarray of shape (n_classes,)
        Classes, in the order of the columns of `predict_proba`.
    groups_ : tuple
        Keys of the groups; empty for a fit without sensitive features.
    cells_ : Cells or None
        Groups as cells of the sensitive columns; None for a fit without them.

    See Also
    --------
    OddsPostProcessor : Keeps other constraints, on rows with labels.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_parity.py):

    1. `privacy_` is the price of the offsets and rates, at most (epsilon, delta). The log of the releases is the plan.
    2. What is published depends on the rows through the released histograms alone, except for what `privacy_.facts` lists.
    3. A fit that fails changes no attribute, and the given model stays as it was.

    References
    ----------
    .. [1] Say, Denis and Pinot 2025. "DP2DP." arXiv:2511.18876.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=6000)
    >>> X = rng.normal(size=(6000, 3)) + A[:, None]
    >>> y = (X @ rng.normal(size=(3, 4)) + rng.gumbel(size=(6000, 4))).argmax(axis=1)
    >>> model = LogisticRegression().fit(X[:3000], y[:3000])
    >>> fair = ParityPostProcessor(model, max_gap=0.05, epsilon=1.0, random_state=0)
    >>> fair = fair.fit(X[3000:], sensitive_features=A[3000:])
    >>> fair.gap_ < 0.1
    True
    >>> fair.predict(X[:5], sensitive_features=A[:5], random_state=0).shape
    (5,)
    """

    __metadata_request__fit: ClassVar = {"sensitive_features": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}

    estimator_: Any
    offsets_: Floats
    rates_: Floats
    gap_: float
    noise_: float
    moved_: npt.NDArray[np.bool_]
    privacy_: PrivacyStatement
    cells_: Cells
    classes_: npt.NDArray[Any]
    groups_: tuple[Any, ...]

    def __init__(
        self,
        estimator: Any,
        max_gap: float = 0.05,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        protects: str = "records",
        neighbours: str | None = None,
        groups: Any = None,
        rounds: int = 40,
        temperature: float = 0.02,
        randomised: bool = True,
        random_state: Any = None,
        ledger: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_gap = max_gap
        self.epsilon = epsilon
        self.delta = delta
        self.protects = protects
        self.neighbours = neighbours
        self.groups = groups
        self.rounds = rounds
        self.temperature = temperature
        self.randomised = randomised
        self.random_state = random_state
        self.ledger = ledger

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> ParityPostProcessor:
        """Find the offsets from rows that the model has not seen.

        Parameters
        ----------
        X : table or array
            Features, as the model takes them.
        y : array, default=None
            Ignored: labels are not needed.
        sensitive_features : array, table or names of columns of X, default=None
            Groups of the rows. They must be given.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            If an argument or the table cannot be used.
        Overspent
            If the ledger has no room for the cost.

        Warns
        -----
        ConstraintNotMet
            If released values say that a constraint is missed by far.
        """
        remedy = "Post-process with OddsPostProcessor, whose counts a holder makes."
        refuse_elsewhere(X, "offsets, which the probabilities of every row are needed for", remedy)
        promise = promises.promise_of(self.epsilon, self.delta, self.protects, self.neighbours)
        remedy = "Pass max_gap=0.05, for example."
        max_gap = _checks.fraction(max_gap=self.max_gap, high_open=True, remedy=remedy)
        rounds = _checks.whole(at_least=2, rounds=self.rounds, remedy="Pass rounds=40, for example.")
        temperature = _checks.positive(temperature=self.temperature)
        base = _finished(self.estimator)
        classes = known_classes(as_array(base.classes_).tolist())
        seed = promises.seed_of(self.random_state)
        book = checked(self.ledger) or current()
        if book is not None:
            book.require(promise, secure=seed is None)
        columns, features = _apart(X, sensitive_features)
        law = _law(base, features, len(classes))
        cells, codes = read_groups(columns, len(law), groups=_declared(self.groups))
        same_length({"X": len(law), "sensitive_features": codes.shape[1]})
        require_few_values(dict(zip(cells.names, cells.sizes, strict=True)), len(law))
        plan = parity.plan(promise, rounds)
        rows = _rows(codes, classes, cells)
        cautions.of_promise(promise, rows.exact_count if promise.rows_are_public else None)
        facts = [PublicFact("classes", in_words(classes), "argument")]
        origin: Origin = READ_FROM_DATA if self.groups is None else "argument"
        named = zip(cells.names, cells.columns, strict=True)
        facts += [PublicFact(f"groups of {in_words([name])}", in_words(values), origin) for name, values in named]
        event = plan.event if promise.is_private else None
        noise = NoiseSource.of(bases.derived_seed(seed, 2))
        options: dict[str, Any] = {"facts": tuple(facts), "ledger": self.ledger, "purpose": "ParityPostProcessor.fit"}
        with Curator(rows, promise, plan=event, noise=noise, **options) as curator:
            attached = curator.attach(decided.in_blocks(law, rows), title="probabilities of a finished model")  # type: ignore[arg-type]
            search = parity.ParitySearch(plan, attached, cells, max_gap, temperature, hard=not self.randomised)
            found = descend(curator, search)
            statement = curator.statement(not_covered=[OWN_DECISIONS])
        self.estimator_, self.offsets_, self.rates_, self.gap_ = base, found.offsets, found.rates, found.gap
        self.noise_, self.privacy_, self.cells_ = plan.deviation, statement, cells
        self.classes_, self.groups_, self.moved_ = as_array(classes), cells.keys, found.moved
        if not found.moved.all():
            _warn([key for key, moved in zip(cells.keys, found.moved.tolist(), strict=True) if not moved])
        return self

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
        check_is_fitted(self, "offsets_")
        columns, features = _apart(X, sensitive_features)
        law = _law(self.estimator_, features, len(self.classes_), heard=True)
        ids = decided.group_ids(columns, features, self.cells_, len(law), named=False)
        moved = law - self.offsets_[ids]
        if self.randomised:
            return softened(moved, float(self.temperature))
        return np.asarray(np.eye(len(self.classes_))[moved.argmax(axis=1)])

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
        law = self.predict_proba(X, sensitive_features=sensitive_features)
        return np.asarray(self.classes_[draw_codes(law, random_state)])


def _warn(groups: list[Any]) -> None:
    text = (
        f"the noise of one round is too large for {len(groups)} of the groups, which keep the model's decisions: "
        f"{in_words(groups)}. Join small groups, allow a larger epsilon, or use more rows."
    )
    warnings.warn(text, ConstraintNotMet, stacklevel=3)


def _finished(estimator: Any) -> Any:
    """A fitted classifier with probabilities, and nothing else."""
    if not hasattr(estimator, "predict_proba") or isinstance(estimator, type):
        got = type(estimator).__name__ if not isinstance(estimator, type) else estimator.__name__
        remedy = "Pass a fitted classifier, such as LogisticRegression().fit(...) on other rows."
        raise InputError(complaint(expected="a classifier with predict_proba", of="estimator", got=got, remedy=remedy))
    if not bases.is_fitted(estimator) or not hasattr(estimator, "classes_"):
        remedy = "Fit it on other rows first: this post-processor sees no labels."
        raise NotFittedError(
            complaint(expected="a fitted classifier", of="estimator", got=type(estimator).__name__, remedy=remedy)
        )
    return estimator


def _apart(X: Any, sensitive_features: Any) -> tuple[dict[str, npt.NDArray[Any]], Any]:
    """The sensitive columns, and what is left of X for the model."""
    if isinstance(X, RowSource | RowBlock):
        remedy = "Pass an array or a table of features."
        raise InputError(complaint(expected="features for the classifier", of="X", got=type(X).__name__, remedy=remedy))
    decided.refuse_unseen(X)
    columns, _ = decided._columns(X, sensitive_features)
    if not columns:
        remedy = "Pass sensitive_features=...: columns, or names of columns of X."
        raise InputError(complaint(expected="the group of every row", of="sensitive_features", got=None, remedy=remedy))
    return columns, decided.without(X, tuple(columns))


def _law(base: Any, features: Any, classes: int, *, heard: bool = False) -> Floats:
    """Its probabilities, points of the simplex. While rows are private, nobody hears what it says of them."""
    found = decided.asked_of_base(
        lambda: base.predict_proba(features) if heard else quietly(Troubles(), base.predict_proba, features)
    )
    law = np.asarray(found, np.float64)
    if law.ndim != 2 or law.shape[1] != classes or not np.isfinite(law).all():
        got = f"shape {law.shape}" if law.ndim != 2 or law.shape[1] != classes else "NaN or infinite values"
        remedy = "Its predict_proba must give a share to each of classes_."
        raise InputError(complaint(expected=f"probabilities of {classes} classes", of="estimator", got=got, remedy=remedy))
    if law.min(initial=0.0) < -CLOSE or np.abs(law.sum(axis=1) - 1.0).max(initial=0.0) > CLOSE:
        remedy = "Calibrate it, or divide by the sum."
        raise InputError(complaint(expected="probabilities that sum to one", of="estimator", got="others", remedy=remedy))
    return law


def _declared(groups: Any) -> Cells | str:
    if groups is None:
        return "product"
    if not isinstance(groups, Cells) or groups.mode != "product":
        remedy = "Pass groups=Cells([('f', 'm')], names=('sex',)), for example."
        raise InputError(complaint(expected="product cells", of="groups", got=groups, remedy=remedy))
    return groups


def _rows(codes: npt.NDArray[np.uint16], classes: tuple[Any, ...], cells: Cells) -> Rows:
    """Groups alone: labels are not read, and each stands as the first class."""
    count = codes.shape[1]
    layout = RowLayout(0, (), classes, cells.columns, cells.names)
    block = RowBlock(np.empty((0, count)), np.empty((0, count), np.uint8), np.zeros(count, np.int32), codes, None)
    return Rows(Coded(layout, (block,)))
