"""The fits of a private search: its candidates, the rows that they are fitted to and scored on, and one run of each."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import Pipeline

from .. import _checks
from ..curator.elsewhere import Elsewhere
from ..errors import InputError, PrivacyError, complaint
from ..estimators.fitting.row_parts import SEARCH, aside_of, length_of, parts_elsewhere, rows_at
from ..estimators.reading import inputs, pipelines
from ..estimators.wrapped import bases
from ..estimators.wrapped.bases import derived_seed
from ..privacy.events import Event, NoOp
from ..privacy.ledger.ambient import paid_for
from ..privacy.noise.sources import NoiseSource
from ..privacy.promise import Promise
from ..privacy.sensitivity import of_histogram
from ..privacy.statement.parts import names_read
from . import search_price, search_scores
from .search_price import SearchPrice
from .search_scores import Counted, Scoring

Candidate = dict[str, Any]


SPENT_HERE = ("epsilon", "delta", "protects", "neighbours", "ledger", "random_state")


COUNTED = "decisions about the rows set aside, by group and label"


MOST_CANDIDATES = 1_000
REFIT = 1 << 21
"""The number of the last fit, whose seeds no run has."""
FLOOR = REFIT + 1
"""The number of a floor's own run beside a selection."""


def moves(promise: Promise) -> float:
    return of_histogram(1.0, 1).sensitivity(promise.neighbours)


class Run:
    """One run: which candidate, the model, its score, and the counts that it was found from."""

    def __init__(self, at: int, model: Any, score: float, counted: Counted) -> None:
        self.at, self.model, self.score, self.counted = at, model, score, counted


class Fits:
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
        holdout: float,
    ) -> None:
        self.candidates, self._last, self._promise, self._seed = candidates, last, promise, seed
        self._fitted, self._scored, self.scoring, self._holdout = fitted, scored, scoring, holdout
        self.read: list[str] = []
        self.shape: tuple[int, ...] = (1, 2, 2)
        """Of the counts that a score is found from: groups, labels, decisions. Public."""
        stated = getattr(last, "public_rows", None)
        self._stated = stated if stated is not None else getattr(getattr(last, "schema", None), "rows", None)

    @property
    def rows(self) -> float | None:
        """About how many rows there are, where that is public."""
        if self._stated is None and self._promise.neighbours == "replace-one":
            return float((length_of(self._fitted[0]) or 0) + (length_of(self._scored[0]) or 0))
        return self._stated

    def made(self, at: int, epsilon: float, delta: float, number: int = 0, *, whole: bool = False) -> Any:
        """A candidate, not fitted, in a run of this number; of all rows, or of those that are not set aside."""
        own = self._last.get_params(deep=False)
        promised = {"protects": self._promise.protects, "neighbours": self._promise.neighbours}
        spent = {"epsilon": epsilon, "delta": delta, "ledger": None, "random_state": derived_seed(self._seed, 2 * number)}
        if self._stated is not None and not whole:
            spent["public_rows"] = max(1, round(self._stated * (1.0 - self._holdout)))
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
            cells = math.prod(map(len, training.rows.layout.sensitive)) if self.scoring.by_group else 1
            self.shape = (cells, len(training.classes), len(training.classes))
            return training

        plan = one._search(read).plan
        assert isinstance(plan, Event)
        return plan

    def run(self, at: int, price: SearchPrice, number: int) -> Run:
        """Fit a candidate and score it. What the fit warns of would tell of a run that is not released: nobody hears it."""
        X, y, groups = self._fitted
        one = self.made(at, price.epsilon, price.delta, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one.fit(X, y, sensitive_features=groups)
        search_price.require_covered(one.privacy_, price)
        noise = NoiseSource.of(derived_seed(self._seed, 2 * number + 1))
        schema, seed = getattr(one, "schema", None), derived_seed(self._seed, 2 * number)
        found = search_scores.counted(one, self._scored, self.scoring, schema, self._promise, price, noise, seed)
        return Run(at, one, self.scoring.of(found.counts, found.cells, found.classes), found)

    def again(self, found: Run, price: SearchPrice, rows: tuple[Any, Any, Any]) -> Any:
        """The winner, fitted once more, to all rows and with the budget that was kept for it."""
        assert price.refit_epsilon is not None
        one = self.made(found.at, price.refit_epsilon, price.delta, REFIT, whole=True)
        X, y, groups = rows
        one.fit(X, y, sensitive_features=groups)
        search_price.require_refit_covered(one.privacy_, price)
        return one

    def defaults(self) -> int:
        """The place of the candidate that changes nothing: the first that says what the estimator says, else one more."""
        own = self._last.get_params(deep=False)
        for at, one in enumerate(self.candidates):
            if all(own[name] is value or repr(own[name]) == repr(value) for name, value in one.items()):
                return at
        self.candidates = [*self.candidates, {}]
        return len(self.candidates) - 1

    def best(self, price: SearchPrice, among: Sequence[int]) -> list[Run]:
        """The best of a secret number of runs of these candidates; the first of equal ones. Others are forgotten as they
        come."""
        source = NoiseSource.of(derived_seed(self._seed, 1 << 20))
        kept: Run | None = None
        draws = source.stream("sampling", "candidates").generator()
        for number in range(search_price.runs(price.mean, price.shape, source)):
            try:
                found = self.run(among[int(draws.integers(len(among)))], price, number)
            except Exception:
                remedy = "Fit the candidates one by one to rows that were made up, to see which fails."
                raise PrivacyError(
                    complaint(expected="runs that end", of="PrivateSearchCV", got="one that failed", remedy=remedy)
                ) from None
            kept = found if kept is None or found.score > kept.score else kept
        return [] if kept is None else [kept]


def parts_of(estimator: Any) -> tuple[Any, Any, str]:
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


def candidates_of(given: Any, n_iter: Any, seed: int | None, name: str, last: Any) -> list[Candidate]:
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


def split(X: Any, y: Any, groups: Any, share: float, seed: int | None) -> tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]:
    """(rows to fit, rows to score): each row by a coin of its own, which no other row moves."""
    if isinstance(X, Elsewhere):
        parts = parts_elsewhere(X, y, groups, share, derived_seed(seed, 3 << 20), SEARCH)
        return parts[0], parts[1]
    count = None if isinstance(X, list | tuple) else length_of(X)
    if count is None:
        remedy = "Pass an array, a table of pandas or polars, a mapping of columns, or rows that a schema coded."
        got = type(X).__name__
        raise InputError(complaint(expected="a table whose rows can be set aside", of="X", got=got, remedy=remedy))
    aside = aside_of(NoiseSource.of(derived_seed(seed, 3 << 20)), count, share, SEARCH)
    if aside.all() or not aside.any():
        raise InputError(
            complaint(expected="rows in both parts", of="holdout", got=share, remedy="Take another share, or more rows.")
        )
    named = isinstance(groups, str) or (isinstance(groups, list | tuple) and all(isinstance(one, str) for one in groups))

    def part(mask: Any) -> tuple[Any, Any, Any]:
        at = np.flatnonzero(mask)
        kept = groups if named and names_columns(X, groups) else rows_at(groups, at)
        return rows_at(X, at), rows_at(y, at), kept

    return part(~aside), part(aside)


def names_columns(X: Any, groups: Any) -> bool:
    """Whether texts are names of columns of X, and not groups of rows."""
    listed = [groups] if isinstance(groups, str) else list(groups)
    return set(listed) <= set(map(str, X if isinstance(X, Mapping) else getattr(X, "columns", ())))


def refuse_elsewhere(way: str, front: Any) -> None:
    """Of another holder's rows: answers of every run come to the analyst, so a selection would hide none of them."""
    if way == search_price.SELECTION:
        remedy = "Pass way='all': the answers to each candidate are then charged."
        got = "a selection, whose price is that of the best run alone"
        raise InputError(complaint(expected="a search of all", of="way", got=got, remedy=remedy, quote=False))
    if front is not None:
        remedy = "Pass the classifier alone: the holder codes the rows."
        raise InputError(complaint(expected="no steps before remote data", of="estimator", got="a pipeline", remedy=remedy))
