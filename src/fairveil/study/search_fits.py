"""The fits of a private search: its candidates and the parts of a pipeline that they are set in, the
rows that they are fitted to and scored on, and one run of each."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import Pipeline

from .. import _checks
from .._types import Mask, TableLike
from ..core.bound import of_histogram
from ..core.events import Event, NoOp
from ..core.noise import NoiseSource
from ..core.promise import Promise
from ..data.elsewhere import Elsewhere
from ..errors import BudgetError, DoorError, InputError, LedgerError, PrivacyError
from ..estimators import cautions, reading, wrapped
from ..estimators.fitting import SEARCH, aside_of, length_of, parts_elsewhere, rows_at
from ..estimators.reading import ReadOptions, Whose, person_numbers
from ..estimators.wrapped import derived_seed
from ..ledger import already_charged
from ..statement.document import names_read
from ..tables.frames import column_names_of
from . import search_price, search_scores
from .search_price import SearchPrice
from .search_scores import Counted, Scoring

Made = TypeVar("Made")
Candidate = dict[str, Any]
SPENT_HERE = ("epsilon", "delta", "protects", "schema", "ledger", "random_state")
MOST_CANDIDATES = 1_000
COUNTED = "decisions about the rows set aside, by group and label, or right and wrong ones"


REFIT = 1 << 21
"""The number of the last fit, whose seeds no run has."""
FLOOR = REFIT + 1
"""The number of a floor's own run beside a selection."""


def parts_of(estimator: object) -> tuple[Any, Any, str]:
    """(steps that learn nothing or None, classifier of ours, its name in the pipeline)."""
    front, last, name = None, estimator, ""
    if isinstance(estimator, Pipeline):
        learning = [step for at, one in estimator.steps[:-1] for step in cautions.learning(at, one)]
        if learning:
            named = ", ".join(map(str, learning))
            remedy = (
                "Scale by a schema, or give the step public numbers; FunctionTransformer learns "
                "nothing."
            )
            raise PrivacyError.expected(
                "steps that learn nothing from rows",
                of="estimator",
                got=named,
                remedy=remedy,
                quote=False,
            )
        name, last = estimator.steps[-1]
        front = Pipeline(estimator.steps[:-1]) if len(estimator.steps) > 1 else None
    plain = (
        wrapped.carries_a_promise(last)
        and hasattr(last, "_search")
        and not hasattr(last, "estimator")
    )
    if not plain or not isinstance(last, ClassifierMixin) or isinstance(last, type):
        remedy = (
            "Pass FairClassifier(), for example; post-processors and regressors are not searched."
        )
        got = type(last).__name__
        raise InputError.expected(
            "a private classifier of this library", of="estimator", got=got, remedy=remedy
        )
    if last.checkpoint is not None:
        remedy = "A folder keeps one fit, and a search has many: leave checkpoint=None."
        raise InputError.expected(
            "None", of="estimator.checkpoint", got=str(last.checkpoint), remedy=remedy
        )
    return front, last, name


def candidates_of(
    given: object, n_iter: object, seed: int | None, name: str, last: BaseEstimator
) -> list[Candidate]:
    """Public: drawn without a look at any row."""
    listed = (
        [given]
        if isinstance(given, Mapping)
        else list(given)
        if isinstance(given, list | tuple)
        else None
    )
    remedy = 'Pass {"solver__clip": [0.5, 1.0, 2.0]}, for example.'
    if not listed or any(not isinstance(one, Mapping) or not one for one in listed):
        raise InputError.expected(
            "names of parameters with values", of="param_distributions", got=given, remedy=remedy
        )
    for one in listed:
        for key, values in one.items():
            if not hasattr(values, "rvs") and (
                isinstance(values, str) or not hasattr(values, "__len__") or not len(values)
            ):
                of = f"param_distributions[{key!r}]"
                raise InputError.expected(
                    "a list of values, or a distribution", of=of, got=values, remedy=remedy
                )
    drawn = any(hasattr(values, "rvs") for one in listed for values in one.values())
    if drawn:
        count = _checks.whole(at_least=1, n_iter=n_iter)
        found = list(
            ParameterSampler(
                listed,
                min(count, MOST_CANDIDATES),
                random_state=0 if seed is None else seed % (1 << 32),
            )
        )
    else:
        found = list(ParameterGrid(listed))
    if len(found) > MOST_CANDIDATES:
        raise InputError.expected(
            f"at most {MOST_CANDIDATES} candidates",
            of="param_distributions",
            got=len(found),
            remedy=remedy,
        )
    prefix = f"{name}__" if name else ""
    known = set(last.get_params()) - set(SPENT_HERE)
    for one in found:
        for key in one:
            if not key.startswith(prefix) or key.removeprefix(prefix) not in known:
                listed_names = [f"{prefix}{each}" for each in sorted(known)]
                remedy = "Name a parameter of the classifier; the search itself sets what is spent."
                raise InputError.expected(
                    f"one of {listed_names}",
                    of="param_distributions",
                    got=key,
                    remedy=remedy,
                    among=listed_names,
                )
    return [{key.removeprefix(prefix): value for key, value in one.items()} for one in found]


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Rows:
    """Some of the rows, as fits take them. `whose`: each is, where persons are protected."""

    X: Any
    y: Any
    groups: Any
    whose: Whose | None = None


class Run:
    """One run: which candidate, the model, its score, and the counts that it was found from."""

    def __init__(self, at: int, model: BaseEstimator, score: float, counted: Counted) -> None:
        self.at, self.model, self.score, self.counted = at, model, score, counted


class Fits:
    """Candidates, and what they are fitted to and scored on."""

    def __init__(
        self,
        last: BaseEstimator,
        candidates: list[Candidate],
        promise: Promise,
        fitted: Rows,
        scored: Rows,
        scoring: Scoring,
        seed: int | None,
        holdout: float,
    ) -> None:
        self.candidates, self._last, self._promise, self._seed = candidates, last, promise, seed
        self._fitted, self._scored, self.scoring, self._holdout = fitted, scored, scoring, holdout
        self.counting = promise
        """The guarantee that scores are counted under: of persons it counts one row each, unless
        all rows are public."""
        if promise.unit is not None and promise.protects == "records":
            self.counting = replace(promise, unit=replace(promise.unit, max_rows=1))
        self.read: list[str] = []
        self.shape: tuple[int, ...] = (1, 2, 2)
        """Of the counts that a score is found from: groups, labels, decisions. Public."""
        self._stated = last._facts.rows

    @property
    def moves(self) -> float:
        """How far one who is protected moves the counts of a score."""
        return (
            of_histogram(1.0, 1).sensitivity(self.counting.neighbours) * self.counting.rows_per_unit
        )

    @property
    def rows(self) -> float | None:
        """About how many are counted in scores and fitted to, where that is public: of persons at
        least as many as their rows make, at so many rows each."""
        if self._stated is None and self._promise.neighbours == "replace-one":
            return float(sum(_count(one) for one in (self._fitted, self._scored)))
        return self._stated if self._stated is None else self._stated / self._promise.rows_per_unit

    def made(
        self, at: int, epsilon: float, delta: float, number: int = 0, *, whole: Rows | None = None
    ) -> Any:
        """A candidate, not fitted, in a run of this number; of all rows (`whole`), or of those that
        are not set aside."""
        own = self._last.get_params(deep=False)
        promised = {"protects": f"{self._promise.protects}:{self._promise.neighbours}"}
        spent = {
            "epsilon": epsilon,
            "delta": delta,
            "ledger": None,
            "random_state": derived_seed(self._seed, 2 * number),
        }
        if self._stated is not None and whole is None:
            fewer = max(1, round(self._stated * (1.0 - self._holdout)))
            spent["schema"] = replace(self._last._facts, rows=fewer)
        made = type(self._last)(**{**own, **promised, **spent})
        changed = {name: value for name, value in self.candidates[at].items() if name not in spent}
        return made.set_params(**changed)

    def plans(self, epsilon: float, delta: float) -> Sequence[Event]:
        """What a fit of each candidate would release: planned by public facts, nothing is asked."""
        with already_charged(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [
                self._plan(self.made(at, epsilon, delta)) for at in range(len(self.candidates))
            ]
        return [event for event in found if not isinstance(event, NoOp)] or [NoOp()]

    def _plan(self, one: BaseEstimator) -> Event:
        X, y, groups = self._fitted.X, self._fitted.y, self._fitted.groups

        def read(ways: ReadOptions) -> Any:
            training = reading.read(X, y, groups, None, ways)
            self.read = names_read(training.facts, ())
            cells = math.prod(map(len, training.rows.layout.sensitive))
            self.shape = self.scoring.shape(cells, len(training.classes))
            return training

        plan = one._search(read).plan
        assert isinstance(plan, Event)
        return plan

    def run(self, at: int, price: SearchPrice, number: int) -> Run:
        """Fit a candidate and score it. What the fit warns of would tell of a run that is not
        released: nobody hears it."""
        X, y, groups = self._fitted.X, self._fitted.y, self._fitted.groups
        one = self.made(at, price.epsilon, price.delta, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one.fit(X, y, sensitive_features=groups)
        search_price.require_covered(one.privacy_, price)
        noise = NoiseSource.of(derived_seed(self._seed, 2 * number + 1))
        aside, seed = self._scored, derived_seed(self._seed, 2 * number)
        unit = self.counting.unit
        whose = None if aside.whose is None or unit is None else replace(aside.whose, unit=unit)
        rows = (aside.X, aside.y, aside.groups)
        found = search_scores.counted(
            one, rows, self.scoring, one.schema, self.counting, price, noise, seed, whose
        )
        return Run(at, one, self.scoring.of(found.counts, found.cells, found.classes), found)

    def again(self, found: Run, price: SearchPrice, rows: Rows) -> Any:
        """The winner, fitted once more, to all rows and with the budget that was kept for it."""
        assert price.refit_epsilon is not None
        one = self.made(found.at, price.refit_epsilon, price.delta, REFIT, whole=rows)
        one.fit(rows.X, rows.y, sensitive_features=rows.groups)
        search_price.require_refit_covered(one.privacy_, price)
        return one

    def defaults(self) -> int:
        """The place of the candidate that changes nothing: the first that says what the estimator
        says, else one more."""
        own = self._last.get_params()
        for at, one in enumerate(self.candidates):
            held = [(own[name], value) for name, value in one.items()]
            if all(mine is value or repr(mine) == repr(value) for mine, value in held):
                return at
        self.candidates = [*self.candidates, {}]
        return len(self.candidates) - 1

    def later(self, made: Callable[[], Made]) -> Made:
        """A fit after others were released: what it says of its failure may show values of
        rows."""
        try:
            return made()
        except (BudgetError, DoorError, LedgerError):  # of public facts
            raise
        except Exception:
            raise _failed() from None

    def best(self, price: SearchPrice, among: Sequence[int]) -> list[Run]:
        """The best of a secret number of runs of these candidates; the first of equal ones. Others
        are forgotten as they come."""
        source = NoiseSource.of(derived_seed(self._seed, 1 << 20))
        kept: Run | None = None
        draws = source.stream("sampling", "candidates")
        for number in range(search_price.runs(price.mean, source)):
            try:
                found = self.run(among[draws.below(len(among))], price, number)
            except Exception:
                raise _failed() from None
            kept = found if kept is None or found.score > kept.score else kept
        return [] if kept is None else [kept]


def _failed() -> PrivacyError:
    """One constant sentence."""
    remedy = "Fit the candidates one by one to rows that were made up, to see which fails."
    return PrivacyError.expected(
        "runs that end", of="PrivateSearchCV", got="one that failed", remedy=remedy
    )


def split(rows: Rows, share: float, seed: int | None) -> tuple[Rows, Rows]:
    """(rows to fit, rows to score): each row, or each person, by a coin of its own, which no other
    row moves."""
    X, groups = rows.X, rows.groups
    if isinstance(X, Elsewhere):
        fitted, scored = parts_elsewhere(
            X, rows.y, groups, share, derived_seed(seed, 3 << 20), SEARCH
        )
        return Rows(*fitted), Rows(*scored)
    count = None if isinstance(X, list | tuple) else length_of(X)
    if count is None:
        remedy = (
            "Pass an array, a table of pandas or polars, a mapping of columns, or rows that a "
            "schema coded."
        )
        raise InputError.expected(
            "a table whose rows can be set aside", of="X", got=type(X).__name__, remedy=remedy
        )
    persons = None if rows.whose is None else person_numbers(rows.whose, X, count)
    aside = aside_of(NoiseSource.of(derived_seed(seed, 3 << 20)), count, share, SEARCH, persons)
    named = isinstance(groups, str) or (
        isinstance(groups, list | tuple) and all(isinstance(one, str) for one in groups)
    )

    def part(mask: Mask) -> Rows:
        at = np.flatnonzero(mask)
        kept = groups if named and names_columns(X, groups) else rows_at(groups, at)
        return Rows(rows_at(X, at), rows_at(rows.y, at), kept, rows.whose)

    return part(~aside), part(aside)


def _count(rows: Rows) -> int:
    """How many rows, or persons."""
    count = length_of(rows.X) or 0
    return (
        count
        if rows.whose is None
        else int(person_numbers(rows.whose, rows.X, count).max(initial=-1)) + 1
    )


def names_columns(X: TableLike, groups: str | Iterable[str]) -> bool:
    """Whether texts are names of columns of X, and not groups of rows."""
    listed = [groups] if isinstance(groups, str) else list(groups)
    return set(listed) <= set(map(str, X if isinstance(X, Mapping) else column_names_of(X)))


def refuse_elsewhere(way: str, front: BaseEstimator, whose: Whose | None) -> None:
    """Of another holder's rows: answers of every run come to the analyst, so a selection would hide
    none of them."""
    if way == search_price.SELECTION:
        remedy = "Pass way='all': the answers to each candidate are then charged."
        got = "a selection, whose price is that of the best run alone"
        raise InputError.expected("a search of all", of="way", got=got, remedy=remedy, quote=False)
    if front is not None:
        remedy = "Pass the classifier alone: the holder codes the rows."
        raise InputError.expected(
            "no steps before remote data", of="estimator", got="a pipeline", remedy=remedy
        )
    if whose is not None:
        remedy = "Search where the rows are; or on a data set of rows, with unit=None."
        expected = "None beside remote data, whose holder throws coins for rows"
        raise InputError.expected(expected, of="unit", got="persons", remedy=remedy)
