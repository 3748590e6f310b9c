"""`PrivateSearchCV`: parameters chosen privately, at a cost that the statement has.

A search draws candidates by public rules, sets rows aside by coins, fits candidates on the others
and scores them on the rest, with noise. Two ways are priced before any row is read, and the one
whose fits may spend more is taken: `search_price`.

Guarantees (tests/study/test_study_search.py):
1. `privacy_` is the price of all that the search did: every fit, every score and the choice, at
   most the promise.
2. Of a selection nothing is kept but the winner: neither how many runs there were, nor another
   model, score, warning or error.
3. A ledger reserves the worst case before a row is read, keeps no other record of the fits, and
   gets back nothing once one ran.
4. A pipeline whose steps learn from rows is refused with their names, before any fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .. import _checks
from .._types import ColumnsLike, Floats, TableLike
from .._waiting import waiting
from ..core.events import Repeated
from ..core.promise import Promise
from ..data.elsewhere import Elsewhere
from ..errors import InputError
from ..estimators import fitting, reading
from ..ledger import Ledger, already_charged, current, given_ledger
from ..models.model import RandomState
from ..show.numbers import at_most
from ..statement.document import PrivacyStatement, PublicFact, StatedBound
from . import search_price, search_scores
from .search_fits import (
    COUNTED,
    FLOOR,
    Fits,
    Rows,
    Run,
    candidates_of,
    parts_of,
    refuse_elsewhere,
    split,
)
from .search_price import ALL, DEFAULTS, WAYS, SearchPrice
from .search_scores import ERROR, Scoring

NOT_COVERED = "how long the search took, which grows with the number of its runs"


class PrivateSearchCV(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Search for parameters of a private classifier, with privacy for the search as a whole.

    Candidates are fitted on some rows and scored on the others, with noise. Unless a candidate is
    clearly better than the estimator as it was given, that one stays. `privacy_` has the cost of
    the whole search, at most (epsilon, delta).

    Parameters
    ----------
    estimator : classifier of this library, or Pipeline that ends in one
        The classifier whose parameters are searched. The search sets its `epsilon`, `delta`,
        `ledger` and `random_state`.
    param_distributions : dict or list of dicts
        Names of parameters, with lists of values or distributions that have a method `rvs`. They
        must not depend on the rows.
    epsilon : float, default=1.0
        Privacy budget of the whole search.
    delta : float, default=1e-6
        Slack that is added to the epsilon bound: one row changes the probability of any results by
        a factor of at most e^epsilon, plus delta. Choose it well below ``1 / n_rows``.
    scoring : {"error", "gap", "lagrangian"} or callable, default="error"
        Minimized score: the error, the largest gap of `constraint`, or the error plus `weight`
        times the gap's excess. A function of the released counts (groups, labels, decisions)
        returns a number, larger is better.
    constraint : notion or str, default=None
        Constraint of ``"gap"`` and ``"lagrangian"``. None: the estimator's own.
    weight : float, default=1.0
        Weight of the excess in ``"lagrangian"``.
    n_iter : int, default=10
        Number of candidates that are drawn if there is a distribution. Of lists all combinations
        are taken.
    way : {"auto", "selection", "all"}, default="auto"
        ``"selection"``: a secret random (geometric) number of runs, and only the best is released. ``"all"``:
        every candidate once, and every score is released. ``"auto"``: the cheaper by public facts,
        with the estimator's own parameters as a floor. They stay unless a candidate is clearly
        better, and no search is made where noise would hide its gain.
    runs : float, default=None
        Mean number of runs of a selection. None: the number of candidates.
    holdout : float, default=0.25
        Share of the rows on which scores are computed. Each row is held out by a coin of its own.
    refit : float, default=None
        Part of the budget with which the winner is fitted again, to all rows. None: 0.85 for
        ``"auto"``; else the winner is returned as it was fitted in the search.
    protects : {"records", "records:replace-one", "sensitive_features"}, default="records"
        What is protected. ``"records"``: all of a row, which is added or removed.
        ``"records:replace-one"``: one row is replaced, and their number is public.
        ``"sensitive_features"``: the sensitive attributes alone; features and labels are then
        public.
    random_state : int, default=None
        None draws secure noise. An integer repeats the search and flags the statement INSECURE.
    ledger : Ledger, default=None
        Where the search is recorded, as one spend. None: the ledger of the ``with
        ledger.recording():`` block, if there is one.

    Attributes
    ----------
    best_estimator_ : classifier
        The winner, fitted on the rows that were not held out; with `refit`, on all rows.
    best_params_ : dict
        Parameters of the winner.
    best_score_ : float
        Released score of the winner, from before it was fitted again.
    best_index_ : int
        Index of the winner in `cv_results_`.
    cv_results_ : dict
        Released scores alone: of every candidate for ``"all"``, of the winner for ``"selection"``.
        A floor's own run is there too, with no parameters. NaN where nothing was searched.
    privacy_ : PrivacyStatement
        Statement of the search. `best_estimator_.privacy_` is the same.
    price_ : SearchPrice
        The way that was taken, and the cost that each fit may have. The way ``"defaults"`` is one
        fit of the estimator as it was given, with the whole budget.
    classes_ : ndarray of shape (n_classes,)
        Classes, in the order of the columns of `predict_proba`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    frontier : Fits models over many bounds and budgets, for a look at all of them.

    References
    ----------
    .. [1] Papernot and Steinke 2022. "Hyperparameter Tuning with Renyi Differential Privacy."
           arXiv:2110.03620.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> y = (X.sum(axis=1) + rng.normal(size=4000) > 0).astype(int)
    >>> from fairveil import FairClassifier, PrimalDual, Schema
    >>> short = FairClassifier(solver=PrimalDual(rounds=20), schema=Schema(rows=3000))
    >>> search = PrivateSearchCV(
    ...     short, {"solver__clip": [0.5, 2.0]}, epsilon=3.0, random_state=0
    ... ).fit(X, y)
    >>> search.price_.way, search.privacy_.epsilon <= 3.0, len(search.cv_results_["params"])
    ('all', True, 3)
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        param_distributions: object,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        scoring: str | Callable[[Floats], float] = ERROR,
        constraint: object = None,
        weight: float = 1.0,
        n_iter: int = 10,
        way: str = "auto",
        runs: float | None = None,
        holdout: float = 0.25,
        refit: float | None = None,
        protects: str = "records",
        random_state: RandomState = None,
        ledger: object = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.epsilon = epsilon
        self.delta = delta
        self.scoring = scoring
        self.constraint = constraint
        self.weight = weight
        self.n_iter = n_iter
        self.way = way
        self.runs = runs
        self.holdout = holdout
        self.refit = refit
        self.protects = protects
        self.random_state = random_state
        self.ledger = ledger

    def fit(
        self, X: TableLike, y: ColumnsLike = None, *, sensitive_features: ColumnsLike = None
    ) -> Self:
        """Search, and keep the winner.

        Parameters
        ----------
        X : table or array
            Features: an array, a table or a source of coded rows; see docs/data.md.
        y : array, default=None
            Labels, or numbers for regression. None: the schema names the target among the columns
            of X.
        sensitive_features : array, table or names of columns of X, default=None
            Groups: one column or several. None: the schema's, or no groups.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            If an argument or the table cannot be used.
        Overspent
            If the ledger's budget does not suffice for the cost.
        """
        front, last, name = parts_of(self.estimator)
        whose = reading.persons_asked(last)
        promise = fitting.promise_of(self.epsilon, self.delta, self.protects, whose)
        if not promise.is_private or promise.delta <= 0:
            remedy = "Pass epsilon=1.0, delta=1e-6; without privacy use scikit-learn's own search."
            raise InputError.expected(
                "a finite epsilon and a delta above 0", of="epsilon", got=promise, remedy=remedy
            )
        way = _checks.one_of(WAYS, way=self.way)
        holdout = _checks.fraction(holdout=self.holdout, low_open=True, high_open=True)
        again = (
            None
            if self.refit is None
            else _checks.fraction(refit=self.refit, low_open=True, high_open=True)
        )
        seed = fitting.seed_of(self.random_state)
        candidates = candidates_of(self.param_distributions, self.n_iter, seed, name, last)
        mean = float(len(candidates)) if self.runs is None else _checks.positive(runs=self.runs)
        if mean < 1:
            remedy, expected = "Pass runs=10, for example.", "a mean of at least 1"
            raise InputError.expected(expected, of="runs", got=self.runs, remedy=remedy)
        constraint = (
            self.constraint
            if self.constraint is not None
            else last.get_params(deep=False).get("constraints")
        )
        scoring = Scoring(self.scoring, constraint, _checks.non_negative(weight=self.weight))
        book = given_ledger(self.ledger) or current()
        if isinstance(X, Elsewhere):
            refuse_elsewhere(way, front, whose)
        if front is not None:
            X = front.fit_transform(X)
        rows = Rows(X, y, sensitive_features, whose)
        fitted, scored = split(rows, holdout, seed)
        asked = Fits(last, candidates, promise, fitted, scored, scoring, seed, holdout)
        price = self._priced(asked, promise, way, mean, again, away=isinstance(X, Elsewhere))
        # the holder's ledger has a fit and a score of each
        if isinstance(X, Elsewhere) and price.way != DEFAULTS:
            X.require_room([*price.events, price.events[0]], promise)
        if price.way == DEFAULTS:
            self._unsearched(asked, price, book, rows, seed, front, name)
            return self
        found = self._search(asked, price, book, promise, seed, rows)
        self._publish(found, asked, price, front, name, promise)
        return self

    def _priced(
        self,
        asked: Fits,
        promise: Promise,
        way: str,
        mean: float,
        again: float | None,
        *,
        away: bool,
    ) -> SearchPrice:
        """The way, by public facts alone. `away`: every answer comes here, so that no run can stay
        secret."""
        floor = way == "auto"
        self._at = asked.defaults() if floor else -1
        others = len(asked.candidates) - floor
        mean = max(1.0, float(others)) if floor and self.runs is None else mean
        kept = search_scores.KEPT if floor and again is None else again
        if floor and not others:
            return search_price.unsearched(promise, None)
        ways = ALL if away else way
        price = search_price.priced(
            promise, asked.plans, max(1, others), ways, mean, kept, floor=floor
        )
        if not floor:
            return price
        price = search_scores.with_gain(price, asked.shape, asked.rows, self.holdout, asked.moves)
        hidden = price.least_gain is not None and price.least_gain > search_scores.WORTH
        return search_price.unsearched(promise, price.least_gain) if hidden else price

    def _unsearched(
        self,
        asked: Fits,
        price: SearchPrice,
        book: Ledger | None,
        rows: Rows,
        seed: int | None,
        front: object,
        name: str,
    ) -> None:
        """One fit of the estimator as it was given, with the whole budget; it records itself."""
        one = asked.made(self._at, price.epsilon, price.delta, whole=rows).set_params(
            ledger=book, random_state=seed
        )
        one.fit(rows.X, rows.y, sensitive_features=rows.groups)
        gain = price.least_gain
        why = (
            "no candidate differs"
            if gain is None
            else f"noise would hide gains below {100 * gain:.1f} points of error"
        )
        words = f"parameters were not searched, by public facts: {why}"
        one.privacy_ = replace(one.privacy_, tuning=words)
        self._keep(one, price, [(self._at, math.nan)], 0, asked, front, name)

    def _search(
        self,
        asked: Fits,
        price: SearchPrice,
        book: Ledger | None,
        promise: Promise,
        seed: int | None,
        rows: Rows,
    ) -> list[Run]:
        """All runs, of a selection the best alone, a floor's own after it; the winner fitted again.
        One spend."""
        self._receipt, spend, found = None, None, list[Run]()
        if book is not None:
            secure = seed is None
            spend = book.reserve(
                price.events,
                promise,
                purpose="PrivateSearchCV.fit",
                secure=secure,
                read_from_data=asked.read,
            )
            self._receipt = spend.receipt
        with already_charged(), waiting("Searching"):
            try:
                if price.way == ALL:
                    for at in range(len(asked.candidates)):
                        one = partial(asked.run, at, price, at)
                        found.append(asked.later(one) if found else one())
                else:
                    found = asked.best(
                        price, among=[at for at in range(len(asked.candidates)) if at != self._at]
                    )
                    if price.floor:
                        found.append(asked.later(partial(asked.run, self._at, price, FLOOR)))
                self._again = None
                if price.refit_epsilon is not None:
                    winner = self._winner(found, asked, price, promise)
                    self._again = asked.later(partial(asked.again, winner, price, rows))
            except BaseException:
                if spend is not None:
                    some = price.way == ALL and len(found) < len(asked.candidates)
                    begun = [Repeated(price.each, len(found) + 1)] if some else price.events
                    spend.commit(begun, complete=False)
                raise
        if spend is not None:
            spend.commit()
        return found

    def _winner(self, found: list[Run], asked: Fits, price: SearchPrice, promise: Promise) -> Run:
        """The best run; with a floor the defaults', unless the best is clearly better."""
        best = max(found, key=lambda one: one.score)
        if not price.floor:
            return best
        own = next(one for one in found if one.at == self._at)
        sigma = search_scores.noise_of(price, asked.moves)
        better = search_scores.is_clearly_better(
            best.counted, own.counted, asked.scoring, sigma, price.mean
        )
        return best if better else own

    def _publish(
        self,
        found: list[Run],
        asked: Fits,
        price: SearchPrice,
        front: object,
        name: str,
        promise: Promise,
    ) -> None:
        best = self._winner(found, asked, price, promise)
        model = best.model if self._again is None else self._again
        model.privacy_ = self._statement(model, asked, price, promise)
        self._keep(
            model,
            price,
            [(one.at, one.score) for one in found],
            found.index(best),
            asked,
            front,
            name,
        )

    def _keep(
        self,
        model: BaseEstimator,
        price: SearchPrice,
        scored: list[tuple[int, float]],
        best: int,
        asked: Fits,
        front: BaseEstimator,
        name: str,
    ) -> None:
        """The fitted attributes: `scored` has places of candidates with their released scores,
        `best` is one of them."""
        prefix = f"{name}__" if name else ""
        shown = [
            {f"{prefix}{key}": value for key, value in asked.candidates[at].items()}
            for at, _ in scored
        ]
        scores = np.array([score for _, score in scored])
        self.price_, self.privacy_ = price, model.privacy_
        self.best_params_, self.best_score_, self.best_index_ = shown[best], scored[best][1], best
        self.cv_results_: dict[str, Any] = {
            "params": shown,
            "mean_test_score": scores,
            "rank_test_score": np.array([1 + int((scores > score).sum()) for score in scores]),
        }
        self.best_estimator_ = model if front is None else Pipeline([*front.steps, (name, model)])
        self.classes_ = model.classes_
        if hasattr(model, "n_features_in_") and front is None:
            self.n_features_in_ = model.n_features_in_

    def _statement(
        self, model: BaseEstimator, asked: Fits, price: SearchPrice, promise: Promise
    ) -> PrivacyStatement:
        own: PrivacyStatement = model.privacy_
        count = len(asked.candidates)
        per_fit = f"epsilon {at_most(price.epsilon)} at delta {price.delta:g} for each fit"
        how = (
            f"each of {count} candidates once, all models and scores released"
            if price.way == ALL
            else f"the best of a secret number of runs, mean {price.mean:g}, each of "
            f"one of {count} candidates"
        )
        if price.floor:
            how += "; the estimator's own parameters stay unless a candidate is clearly better"
        if price.refit_epsilon is not None:
            how += (
                f"; the winner fitted again to all rows, with epsilon "
                f"{at_most(price.refit_epsilon)} at delta {price.delta:g}"
            )
        each = "each row" if promise.unit is None else "each person, with all of their rows,"
        of_one = promise.unit is None or asked.counting.rows_per_unit == 1
        counted = (
            f"a {'row' if promise.unit is None else 'person'} counts "
            f"{'once' if of_one else 'with each row'}"
        )
        facts = [
            *(fact for fact in own.facts if fact.name not in ("epsilon", "delta")),
            PublicFact("search", f"{how}; {per_fit}", "argument"),
            PublicFact(
                "rows set aside for scores",
                f"{each} with probability {self.holdout:g}, by a coin of its own",
                "argument",
            ),
        ]
        return PrivacyStatement.of(
            promise,
            price.events,
            plan=price.events,
            facts=facts,
            bounds=[*own.bounds, StatedBound(COUNTED, "L2", asked.moves, counted, "by definition")],
            not_covered=[*own.not_covered, *(() if price.way == ALL else (NOT_COVERED,))],
            tuning=f"parameters chosen by a private search, which is counted: {how}",
            noise=own.noise,
            arithmetic=own.arithmetic,
            user_code=own.user_code,
            ledger=self._receipt,
        )

    # -- what the winner does ----------------------------------------------------------------------

    def predict(self, X: TableLike, **options: object) -> Any:
        """Decisions of the winner.

        Parameters
        ----------
        X : table or array
            Rows to predict for, with the columns of the fit.
        **options
            Further arguments of the winner's method.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes, as the labels were written.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X, **options)

    def predict_proba(self, X: TableLike, **options: object) -> Any:
        """Probabilities of the winner.

        Parameters
        ----------
        X : table or array
            Rows to predict for, with the columns of the fit.
        **options
            Further arguments of the winner's method.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X, **options)

    def score(self, X: TableLike, y: ColumnsLike, sample_weight: ColumnsLike = None) -> float:
        """Accuracy of the winner on other rows, exactly: for rows that nobody has to protect.

        Parameters
        ----------
        X : table or array
            Rows to predict for, with the columns of the fit.
        y : array
            True labels.
        sample_weight : array, default=None
            Weight of each row. None: 1.

        Returns
        -------
        float
            Accuracy, between 0 and 1.
        """
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y, sample_weight=sample_weight))
