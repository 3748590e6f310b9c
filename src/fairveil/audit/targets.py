"""What is attacked: an estimator, fitted anew for each run, or a function of the user's, each on
either table of a pair; and bugs that are planted in it, to see whether an attack that found nothing
would have found them.

| bug | what is broken |
|---|---|
| a 1.5-fold, a 3-fold epsilon | the mechanism is run with so much more |
| `HALF_NOISE` | noise of half the deviation that is priced |
| `NO_CLIP` | gradients are let in at four times the clip that noise was made for |
| `CLIP_BY_ROW` | a person's gradients are clipped row by row, not together |
| `SAME_SEED` | one seed for every run (the caller's doing: nothing is changed here) |

Noise and clip are changed by functions that stand in for the curator's own, for as long as a block
lasts, and look at which context asks: in any other thread or task, and after the block, fits are as
they always are.

Guarantees (tests/audit/test_audit_targets.py):
1. The estimator that was handed in is not changed, nor is its ledger charged: each run fits a copy
   with made-up rows.
2. A run is a function of the table, the seed and the planted bug alone.
3. Outside of the context of a block nothing is broken, also while one is open elsewhere; afterwards
   all is as it was. Inside, what the name says is broken, and nothing else.
"""

from __future__ import annotations

import inspect
import math
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._types import Floats
from ..core import passes, pricing
from ..core.books import heard_by
from ..core.extra.networks import NetworkGradient
from ..core.promise import Promise
from ..core.questions import Question
from ..core.rows import Poisson
from ..core.sums import GradientSum
from ..data import encode
from ..errors import InputError
from ..facts import Schema
from ..ledger import already_charged
from .betting import Residual
from .claims import Claim, claim_of
from .corners import Pair
from .witness import Overheard, Reader

HERE, THERE = 0, 1
MOST_NUMBERS = 2_000
HALF_NOISE, NO_CLIP, CLIP_BY_ROW, SAME_SEED = (
    "half the noise",
    "no clip",
    "a clip by row",
    "one seed for every run",
)
TIMES = 4.0
"""How much more than the clip a gradient may be where there is none."""

_BUG: ContextVar[str] = ContextVar("fairveil planted bug", default="")
_lock = threading.Lock()
_open = 0


@contextmanager
def planted(bug: str) -> Iterator[None]:
    """Fits of this context have the bug. The first block puts the stand-ins in place, the last
    takes them away."""
    token = _BUG.set(bug)
    _install(1)
    try:
        yield
    finally:
        _install(-1)
        _BUG.reset(token)


def _install(step: int) -> None:
    global _open
    with _lock:
        if not _open:
            _own.update({stand_in: getattr(owner, name) for owner, name, stand_in in _PLACES})
        _open += step
        for owner, name, stand_in in _PLACES:
            setattr(owner, name, stand_in if _open else _own[stand_in])


def _noise_scale(*given: object) -> Any:
    size = _own[_noise_scale](*given)
    return size / 2.0 if _BUG.get() == HALF_NOISE else size


def _scale(question: Question, *given: object) -> Any:
    """Noise and grid of a shorter clip: contributions are longer than they are said to be."""
    return _own[_scale](_shorter(question) if _BUG.get() == NO_CLIP else question, *given)


def _shorter(question: Question) -> Question:
    if question.inner is not None:
        return question.but(inner=_shorter(question.inner))
    gradient = question.kind in (GradientSum, NetworkGradient)
    if gradient and question.clip is not None and math.isfinite(question.clip):
        return question.but(clip=question.clip / TIMES)
    return question


def _is_by_person(*given: object) -> bool:
    return _BUG.get() != CLIP_BY_ROW and bool(_own[_is_by_person](*given))


_PLACES: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    (pricing, "noise_scale", _noise_scale),
    (Question, "scale", _scale),
    (passes, "is_by_person", _is_by_person),
)
"""Where each stand-in stands: of whom, by which name."""
_own: dict[Callable[..., Any], Callable[..., Any]] = {}
"""What is there else, by stand-in."""


@dataclass(frozen=True)
class Bug:
    """What is planted: an epsilon that is so many times as large, or what the name says."""

    name: str
    fold: float = 1.0


FOLDS = (Bug("1.5-fold epsilon", 1.5), Bug("3-fold epsilon", 3.0))


class Target(ABC):
    """What is attacked, on one pair of tables. Abstract.

    `exact`: whether a run's release is its log likelihood ratio, so that 0 is the best threshold.
    `distance`: of the pair, in deviations of noise, where that is known; else 0. `sees_noise`:
    whether all noise of a run is known: of curators' Gaussian releases about all rows. `plan`: of
    the statement that a run gives. `bugs`: what can be planted in it.
    """

    name: str
    promise: Promise
    claim: Claim
    exact: bool = False
    distance: float = 0.0
    sees_noise: bool = False
    plan: Any = None
    bugs: tuple[Bug, ...] = ()

    @abstractmethod
    def run(self, side: int, seed: int, bug: Bug | None = None) -> tuple[Floats, Residual | None]:
        """What one run released, as numbers; and its noise, where that is known."""


class FitTarget(Target):
    """An estimator of ours with a schema: each run is a whole fit, whose curators are heard."""

    def __init__(self, estimator: BaseEstimator, schema: Schema, pair: Pair, seed: int) -> None:
        self.name = type(estimator).__name__
        self._estimator, self._schema = estimator, schema
        as_feature = schema.sensitive_as_feature
        self._rows = [
            encode(table, schema, sensitive_as_feature=as_feature)
            for table in (pair.here, pair.there, pair.common)
        ]
        fitted, here = self._fit(HERE, seed, 1.0)
        _, there = self._fit(THERE, seed, 1.0)
        statement = fitted.privacy_
        self.promise, self.plan = statement.promise, statement.plan
        self.claim = claim_of(statement, statement.delta)
        of_records = self.promise.protects == "records"
        batched = Poisson in here.batches and self.promise.neighbours == "replace-one"
        common = self._fit(2, seed, 1.0)[1] if batched and of_records else None
        self._reader = Reader(here, there, common, self.promise)
        self.exact = self._reader.is_exact and bool(here.heard)
        self.sees_noise = bool(self._reader.residual(here, there=False).noise.size)
        self.distance = self._reader.distance(here)
        numbers = self._reader.released(here).size
        if numbers > MOST_NUMBERS:
            expected = f"{MOST_NUMBERS} released numbers at most"
            remedy = "Audit a smaller model: fewer features or groups."
            raise InputError.expected(
                expected, of="TARGET", got=f"{numbers} of them", remedy=remedy
            )
        names = [HALF_NOISE]
        if here.questions & {GradientSum.name, NetworkGradient.name}:
            names.append(NO_CLIP)
            names += [CLIP_BY_ROW] if self.promise.rows_per_unit > 1 and of_records else []
        self.bugs = (*FOLDS, *map(Bug, names), Bug(SAME_SEED))

    def run(self, side: int, seed: int, bug: Bug | None = None) -> tuple[Floats, Residual | None]:
        fold = 1.0 if bug is None else bug.fold
        with nullcontext() if bug is None or fold != 1.0 else planted(bug.name):
            fitted, heard = self._fit(side, seed, fold)
        if not heard.heard:
            return np.asarray(_numbers_of(fitted), np.float64), None
        found = self._reader.released(heard)
        seen = self._reader.residual(heard, there=side == THERE) if self.sees_noise else None
        return found, seen

    def _fit(self, side: int, seed: int, fold: float) -> tuple[Any, Overheard]:
        parameters = self._estimator.get_params(deep=False)
        parameters |= {"schema": self._schema, "random_state": seed, "ledger": None}
        parameters["epsilon"] *= fold
        if "checkpoint" in parameters:
            parameters["checkpoint"] = None
        one, heard = type(self._estimator)(**parameters), Overheard()
        with heard_by(heard), already_charged(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rows that were made up
            one.fit(self._rows[side])
        return one, heard


class FunctionTarget(Target):
    """A function of the user's, from a table (a dictionary of columns) and a seed to released
    numbers, or to a fitted model."""

    def __init__(self, fit: Callable[..., Any], pair: Pair, promise: Promise, claim: Claim) -> None:
        self.name = str(getattr(fit, "__name__", type(fit).__name__))
        self.promise, self.claim = promise, claim
        self._fit, self._tables = fit, (pair.here, pair.there)
        try:
            self._takes_epsilon = "epsilon" in inspect.signature(fit).parameters
        except (TypeError, ValueError):
            self._takes_epsilon = False
        self.bugs = (*(FOLDS if self._takes_epsilon else ()), Bug(SAME_SEED))

    def run(self, side: int, seed: int, bug: Bug | None = None) -> tuple[Floats, Residual | None]:
        table = {name: values.copy() for name, values in self._tables[side].items()}
        fold = 1.0 if bug is None else bug.fold
        more = {"epsilon": self.promise.epsilon * fold} if self._takes_epsilon else {}
        with already_charged(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rows that were made up
            found = np.asarray(_numbers_of(self._fit(table, seed, **more)), np.float64).ravel()
        if not found.size or found.size > MOST_NUMBERS or not np.isfinite(found).all():
            remedy = "Return what is released: a model's coefficients, or a score."
            expected = f"from 1 to {MOST_NUMBERS} finite numbers"
            got = f"{found.size} numbers" if np.isfinite(found).all() else "NaN or inf"
            raise InputError.expected(expected, of="what fit returns", got=got, remedy=remedy)
        return found, None


def _numbers_of(released: object) -> Any:
    """The coefficients of a fitted model; anything else as it is."""
    if not hasattr(released, "coef_"):
        return released
    parts = (released.coef_, getattr(released, "intercept_", ()))
    return np.concatenate([np.ravel(part) for part in parts])
