"""`PrivateSearchCV`: parameters chosen privately, at a cost that the statement has.

A search draws candidates by public rules, sets rows aside by coins, fits candidates on the others and scores them on the rest,
with noise. Two ways are priced before any row is read, and the one whose fits may spend more is taken: `search_price`.

Guarantees (tests/study/test_study_search.py):
1. `privacy_` is the price of all that the search did: every fit, every score and the choice, at most the promise.
2. Of a selection nothing is kept but the winner: neither how many runs there were, nor another model, score, warning or error.
3. A ledger reserves the worst case before a row is read, keeps no other record of the fits, and gets back nothing once one ran.
4. A pipeline whose steps learn from rows is refused with their names, before any fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .. import _checks
from .._waiting import waiting
from ..errors import InputError, PrivacyError, complaint
from ..estimators.fitting import promises
from ..estimators.fitting.row_parts import length_of, rows_at
from ..estimators.reading import inputs, pipelines
from ..estimators.wrapped import bases
from ..estimators.wrapped.bases import derived_seed
from ..privacy.events import Event, NoOp, Repeated
from ..privacy.ledger import Ledger
from ..privacy.ledger.ambient import checked, current, paid_for
from ..privacy.noise.sources import NoiseSource
from ..privacy.promise import Promise
from ..privacy.sensitivity import of_histogram
from ..privacy.shown import at_most
from ..privacy.statement.statement import PrivacyStatement, PublicFact, StatedBound, names_read
from . import search_price, search_scores
from .search_price import ALL, GEOMETRIC, SHAPES, WAYS, SearchPrice
from .search_scores import ERROR, Scoring

Candidate = dict[str, Any]
SPENT_HERE = ("epsilon", "delta", "protects", "neighbours", "ledger", "random_state")
NOT_COVERED = "how long the search took, which grows with the number of its runs"
COUNTED = "decisions about the rows set aside, by group and label"
MOST_CANDIDATES = 1_000


class PrivateSearchCV(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Search for parameters of a private classifier, with privacy for the search as a whole.

    Candidates are fitted on some rows and scored on the others, with noise. The one with the best score is handed out as it
    was fitted: there is no second fit to pay for. The cost of all of it is `privacy_`, at most (epsilon, delta).

    Parameters
    ----------
    estimator : classifier of this library, or a Pipeline that ends in one
        What is searched. Its `epsilon`, `delta`, `ledger` and `random_state` are set by the search.
    param_distributions : dict or list of dicts
        Names of parameters, with lists of values or distributions that have a method `rvs`. They must not depend on the rows.
    epsilon, delta : float
        Privacy budget of the whole search.
    scoring : {"error", "gap", "lagrangian"} or callable, default="error"
        What is made small: the error, the largest gap of `constraint`, or the error plus `weight` times what the gap is beyond
        its bound. A function of the released counts (groups, labels, decisions) returns a number, larger is better.
    constraint : notion or str, default=None
        For "gap" and "lagrangian". None: the estimator's own.
    weight : float, default=1.0
        Of the excess in "lagrangian".
    n_iter : int, default=10
        How many candidates to draw, where a distribution is no list; of lists all combinations are taken.
    way : {"auto", "selection", "all"}, default="auto"
        "selection": a secret random number of runs, of which the best is released. "all": every candidate once, and every score
        is released. "auto": the one whose fits may spend more, by public facts.
    runs : float, default=None
        Mean number of runs of a selection. None: the number of candidates.
    law : {"geometric", "poisson"}, default="geometric"
        Of the number of runs. A Poisson one may be 0: nothing is found then.
    holdout : float, default=0.25
        Share of the rows that scores are made of: each by a coin of its own.
    protects, neighbours : str
        As for every estimator.
    random_state : int, default=None
        None: secure. An integer repeats the search, and flags the statement INSECURE.
    ledger : Ledger, default=None
        Where the search is recorded, as one spend.

    Attributes
    ----------
    best_estimator_, best_params_, best_score_ : the winner, fitted on the rows that were not set aside.
    cv_results_ : dict
        Released scores alone: every candidate's for "all", the winner's for "selection".
    privacy_ : PrivacyStatement
        Of the search. `best_estimator_.privacy_` is the same.
    price_ : SearchPrice
        The way that was taken, and what each fit might spend.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> y = (X.sum(axis=1) + rng.normal(size=4000) > 0).astype(int)
    >>> from fairveil import RateConstrainedClassifier
    >>> search = PrivateSearchCV(RateConstrainedClassifier(rounds=20, public_rows=3000), {"clip": [0.5, 2.0]}, epsilon=3.0,
    ...     random_state=0).fit(X, y)
    >>> search.price_.way, search.privacy_.epsilon <= 3.0, len(search.cv_results_["params"])
    ('all', True, 2)
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        scoring: Any = ERROR,
        constraint: Any = None,
        weight: float = 1.0,
        n_iter: int = 10,
        way: str = "auto",
        runs: float | None = None,
        law: str = GEOMETRIC,
        holdout: float = 0.25,
        protects: str = "records",
        neighbours: str | None = None,
        random_state: Any = None,
        ledger: Any = None,
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
        self.law = law
        self.holdout = holdout
        self.protects = protects
        self.neighbours = neighbours
        self.random_state = random_state
        self.ledger = ledger

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> Self:
        """Search, and keep the winner. `X`, `y`, `sensitive_features`: as for the estimator's `fit`."""
        promise = Promise(self.epsilon, self.delta, self.protects, self.neighbours)
        if not promise.is_private or promise.delta <= 0:
            remedy = "Pass epsilon=1.0, delta=1e-6; without privacy use scikit-learn's own search."
            raise InputError(
                complaint(expected="a finite epsilon and a delta above 0", of="epsilon", got=promise, remedy=remedy)
            )
        way, law = _checks.one_of(WAYS, way=self.way), _checks.one_of(tuple(SHAPES), law=self.law)
        holdout = _checks.fraction(holdout=self.holdout, low_open=True, high_open=True)
        seed = promises.seed_of(self.random_state)
        front, last, name = _parts(self.estimator)
        candidates = _candidates(self.param_distributions, self.n_iter, seed, name, last)
        mean = float(len(candidates)) if self.runs is None else _checks.positive(runs=self.runs)
        if law == GEOMETRIC and mean < 1:
            remedy = "Pass runs=10, for example, or law='poisson'."
            raise InputError(complaint(expected="a mean of at least 1", of="runs", got=self.runs, remedy=remedy))
        constraint = self.constraint if self.constraint is not None else getattr(last, "constraints", None)
        scoring = Scoring(self.scoring, constraint, _checks.non_negative(weight=self.weight))
        book = checked(self.ledger) or current()
        if front is not None:
            X = front.fit_transform(X)
        fitted, scored = _split(X, y, sensitive_features, holdout, seed)
        asked = _Fits(last, candidates, promise, fitted, scored, scoring, seed)
        price = search_price.priced(promise, asked.plans, len(candidates), way, mean, law)
        found = self._search(asked, price, book, promise, seed)
        self._publish(found, asked, price, front, name, promise)
        return self

    def _search(self, asked: _Fits, price: SearchPrice, book: Ledger | None, promise: Promise, seed: int | None) -> list[_Run]:
        """All runs, of a selection the best alone; recorded as one spend."""
        self._receipt, spend, found = None, None, list[_Run]()
        if book is not None:
            secure = seed is None
            spend = book.reserve(price.events, promise, purpose="PrivateSearchCV.fit", secure=secure, read_from_data=asked.read)
            self._receipt = spend.receipt
        with paid_for(), waiting("Searching"):
            try:
                if price.way == ALL:
                    for at in range(len(asked.candidates)):
                        found.append(asked.run(at, price, at))
                else:
                    found = asked.best(price)
            except BaseException:
                if spend is not None:
                    begun = [Repeated(price.each, len(found) + 1)] if price.way == ALL else price.events
                    spend.commit(begun, complete=False)
                raise
        if spend is not None:
            spend.commit()
        return found

    def _publish(
        self,
        found: list[_Run],
        asked: _Fits,
        price: SearchPrice,
        front: Any,
        name: str,
        promise: Promise,
    ) -> None:
        if not found:
            remedy = "What it cost is spent. Search again with law='geometric', whose number of runs is at least 1."
            raise PrivacyError(
                complaint(expected="a run", of="PrivateSearchCV", got="none: the number drawn was 0", remedy=remedy)
            )
        best = max(found, key=lambda one: one.score)
        prefix = f"{name}__" if name else ""
        shown = [{f"{prefix}{key}": value for key, value in asked.candidates[one.at].items()} for one in found]
        scores = np.array([one.score for one in found])
        statement = self._statement(best, asked, price, promise)
        best.model.privacy_ = statement
        self.price_, self.privacy_ = price, statement
        self.best_params_ = shown[found.index(best)]
        self.best_score_ = best.score
        self.best_index_ = found.index(best)
        self.cv_results_: dict[str, Any] = {
            "params": shown,
            "mean_test_score": scores,
            "rank_test_score": np.array([1 + int((scores > score).sum()) for score in scores]),
        }
        self.best_estimator_ = best.model if front is None else Pipeline([*front.steps, (name, best.model)])
        self.classes_ = best.model.classes_
        if hasattr(best.model, "n_features_in_") and front is None:
            self.n_features_in_ = best.model.n_features_in_

    def _statement(self, best: _Run, asked: _Fits, price: SearchPrice, promise: Promise) -> PrivacyStatement:
        own: PrivacyStatement = best.model.privacy_
        count = len(asked.candidates)
        per_fit = f"epsilon {at_most(price.epsilon)} at delta {price.delta:g} for each fit"
        how = (
            f"each of {count} candidates once, all models and scores released"
            if price.way == ALL
            else f"the best of a secret number of runs, mean {price.mean:g} ({self.law}), each of one of {count} candidates"
        )
        facts = [
            *(fact for fact in own.facts if fact.name not in ("epsilon", "delta")),
            PublicFact("search", f"{how}; {per_fit}", "argument"),
            PublicFact(
                "rows set aside for scores", f"each row with probability {self.holdout:g}, by a coin of its own", "argument"
            ),
        ]
        return PrivacyStatement.of(
            promise,
            price.events,
            plan=price.events,
            facts=facts,
            bounds=[*own.bounds, StatedBound(COUNTED, "L2", _moves(promise), "a row counts once", "by definition")],
            not_covered=[*own.not_covered, *(() if price.way == ALL else (NOT_COVERED,))],
            tuning=f"parameters chosen by a private search, which is counted: {how}",
            noise=own.noise,
            arithmetic=own.arithmetic,
            user_code=own.user_code,
            ledger=self._receipt,
        )

    # -- what the winner does ------------------------------------------------------------------------------------------------

    def predict(self, X: Any, **options: Any) -> Any:
        """The winner's decisions."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X, **options)

    def predict_proba(self, X: Any, **options: Any) -> Any:
        """The winner's probabilities."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X, **options)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The winner's accuracy on other rows, exactly: for rows that nobody has to protect."""
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y, sample_weight=sample_weight))


def _moves(promise: Promise) -> float:
    return of_histogram(1.0, 1).sensitivity(promise.neighbours)


class _Run:
    """One run: which candidate, the model, its score."""

    def __init__(self, at: int, model: Any, score: float) -> None:
        self.at, self.model, self.score = at, model, score


class _Fits:
    """Candidates, and what they are fitted to and scored on."""

    def __init__(
        self,
        last: Any,
        candidates: list[Candidate],
        promise: Promise,
        fitted: tuple[Any, Any, Any],
        scored: tuple[Any, Any, Any],
        scoring: Scoring,
        seed: int | None,
    ) -> None:
        self.candidates, self._last, self._promise, self._seed = candidates, last, promise, seed
        self._fitted, self._scored, self._scoring = fitted, scored, scoring
        self.read: list[str] = []

    def made(self, at: int, epsilon: float, delta: float, number: int = 0) -> Any:
        """A candidate, not fitted, in a run of this number."""
        own = self._last.get_params(deep=False)
        promised = {"protects": self._promise.protects, "neighbours": self._promise.neighbours}
        spent = {"epsilon": epsilon, "delta": delta, "ledger": None, "random_state": derived_seed(self._seed, 2 * number)}
        return type(self._last)(**{**own, **self.candidates[at], **promised, **spent})

    def plans(self, epsilon: float, delta: float) -> Sequence[Event]:
        """What a fit of each candidate would release: planned by public facts, nothing is asked."""
        with paid_for(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [self._plan(self.made(at, epsilon, delta)) for at in range(len(self.candidates))]
        return [event for event in found if not isinstance(event, NoOp)] or [NoOp()]

    def _plan(self, one: Any) -> Event:
        X, y, groups = self._fitted

        def read(ways: Any) -> Any:
            training = inputs.read(X, y, groups, None, ways)
            self.read = names_read(training.facts, ())
            return training

        plan = one._search(read).plan
        assert isinstance(plan, Event)
        return plan

    def run(self, at: int, price: SearchPrice, number: int) -> _Run:
        """Fit a candidate and score it. What the fit warns of would tell of a run that is not released: nobody hears it."""
        X, y, groups = self._fitted
        one = self.made(at, price.epsilon, price.delta, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one.fit(X, y, sensitive_features=groups)
        search_price.require_covered(one.privacy_, price)
        noise = NoiseSource.of(derived_seed(self._seed, 2 * number + 1))
        schema, seed = getattr(one, "schema", None), derived_seed(self._seed, 2 * number)
        counts, people = search_scores.counted(one, self._scored, schema, self._promise, price, noise, seed)
        return _Run(at, one, self._scoring.of(counts, people.cells, people.classes))

    def best(self, price: SearchPrice) -> list[_Run]:
        """The best of a secret number of runs; the first of equal ones. Others are forgotten as they come."""
        source = NoiseSource.of(derived_seed(self._seed, 1 << 20))
        kept: _Run | None = None
        draws = source.stream("sampling", "candidates").generator()
        for number in range(search_price.runs(price.mean, price.shape, source)):
            try:
                found = self.run(int(draws.integers(len(self.candidates))), price, number)
            except Exception:
                remedy = "Fit the candidates one by one to rows that were made up, to see which fails."
                raise PrivacyError(
                    complaint(expected="runs that end", of="PrivateSearchCV", got="one that failed", remedy=remedy)
                ) from None
            kept = found if kept is None or found.score > kept.score else kept
        return [] if kept is None else [kept]


def _parts(estimator: Any) -> tuple[Any, Any, str]:
    """(steps that learn nothing or None, classifier of ours, its name in the pipeline)."""
    front, last, name = None, estimator, ""
    if isinstance(estimator, Pipeline):
        learning = [step for at, one in estimator.steps[:-1] for step in pipelines.learning(at, one)]
        if learning:
            named = ", ".join(map(str, learning))
            remedy = "Scale by a schema, or give the step public numbers; FunctionTransformer learns nothing."
            raise PrivacyError(
                complaint(expected="steps that learn nothing from rows", of="estimator", got=named, remedy=remedy, quote=False)
            )
        name, last = estimator.steps[-1]
        front = Pipeline(estimator.steps[:-1]) if len(estimator.steps) > 1 else None
    plain = bases.carries_a_promise(last) and hasattr(last, "_search") and not hasattr(last, "estimator")
    if not plain or not isinstance(last, ClassifierMixin) or isinstance(last, type):
        remedy = "Pass RateConstrainedClassifier(), for example; post-processors and regressors are not searched."
        got = type(last).__name__
        raise InputError(complaint(expected="a private classifier of this library", of="estimator", got=got, remedy=remedy))
    if getattr(last, "unit", None) is not None or getattr(getattr(last, "schema", None), "unit", None) is not None:
        remedy = "Search with unit=None: rows are set aside one by one, and a person's would be parted."
        raise InputError(
            complaint(expected="an estimator that protects rows", of="estimator", got="one with a unit", remedy=remedy)
        )
    return front, last, name


def _candidates(given: Any, n_iter: Any, seed: int | None, name: str, last: Any) -> list[Candidate]:
    """Public: drawn without a look at any row."""
    listed = [given] if isinstance(given, Mapping) else list(given) if isinstance(given, list | tuple) else None
    remedy = 'Pass {"clip": [0.5, 1.0, 2.0]}, for example.'
    if not listed or any(not isinstance(one, Mapping) or not one for one in listed):
        raise InputError(
            complaint(expected="names of parameters with values", of="param_distributions", got=given, remedy=remedy)
        )
    for one in listed:
        for key, values in one.items():
            if not hasattr(values, "rvs") and (isinstance(values, str) or not hasattr(values, "__len__") or not len(values)):
                of = f"param_distributions[{key!r}]"
                raise InputError(complaint(expected="a list of values, or a distribution", of=of, got=values, remedy=remedy))
    drawn = any(hasattr(values, "rvs") for one in listed for values in one.values())
    if drawn:
        count = _checks.whole(at_least=1, n_iter=n_iter)
        found = list(
            ParameterSampler(listed, min(count, MOST_CANDIDATES), random_state=0 if seed is None else seed % (1 << 32))
        )
    else:
        found = list(ParameterGrid(listed))
    if len(found) > MOST_CANDIDATES:
        raise InputError(
            complaint(expected=f"at most {MOST_CANDIDATES} candidates", of="param_distributions", got=len(found), remedy=remedy)
        )
    prefix = f"{name}__" if name else ""
    known = set(last.get_params(deep=False)) - set(SPENT_HERE)
    for one in found:
        for key in one:
            if not key.startswith(prefix) or key.removeprefix(prefix) not in known:
                listed_names = [f"{prefix}{each}" for each in sorted(known)]
                remedy = "Name a parameter of the classifier; the search itself sets what is spent."
                raise InputError(
                    complaint(
                        expected=f"one of {listed_names}", of="param_distributions", got=key, remedy=remedy, among=listed_names
                    )
                )
    return [{key.removeprefix(prefix): value for key, value in one.items()} for one in found]


def _split(X: Any, y: Any, groups: Any, share: float, seed: int | None) -> tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]:
    """(rows to fit, rows to score): each row by a coin of its own, which no other row moves."""
    count = None if isinstance(X, list | tuple) else length_of(X)
    if count is None:
        remedy = "Pass an array, a table of pandas or polars, a mapping of columns, or rows that a schema coded."
        got = type(X).__name__
        raise InputError(complaint(expected="a table whose rows can be set aside", of="X", got=got, remedy=remedy))
    source = NoiseSource.of(derived_seed(seed, 3 << 20))
    aside = np.zeros(count, bool)
    aside[source.stream("sampling", "rows set aside").poisson_batch(count, share)] = True
    if aside.all() or not aside.any():
        raise InputError(
            complaint(expected="rows in both parts", of="holdout", got=share, remedy="Take another share, or more rows.")
        )
    named = isinstance(groups, str) or (isinstance(groups, list | tuple) and all(isinstance(one, str) for one in groups))

    def part(mask: Any) -> tuple[Any, Any, Any]:
        at = np.flatnonzero(mask)
        kept = groups if named and _names(X, groups) else rows_at(groups, at)
        return rows_at(X, at), rows_at(y, at), kept

    return part(~aside), part(aside)


def _names(X: Any, groups: Any) -> bool:
    """Whether texts are names of columns of X, and not groups of rows."""
    listed = [groups] if isinstance(groups, str) else list(groups)
    return set(listed) <= set(map(str, X if isinstance(X, Mapping) else getattr(X, "columns", ())))
