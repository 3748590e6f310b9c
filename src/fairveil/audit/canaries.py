"""An audit in one run: canaries that are there by coins, and guesses of the coins from a release.

For fits that take long, such as networks. Of our own fits the curators are heard. Each gradient sum
is a linear function of the coins, with known noise, so guesses come from the linear estimate of
least squared error. The noise itself is tested. A function of the user's returns a score of
membership.

Guarantees (tests/audit/test_audit_canaries.py):
1. A true claim is refuted with probability 1 - confidence at most: guesses are functions of
   releases and of public numbers, and how many there are is fixed in advance. Where noise is heard,
   guesses and noise have half of the risk each.
2. Everything is made up from the schema and the seed: nobody's rows are read, and no ledger is
   charged.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .. import _checks
from .._types import Floats, Mask
from ..core.promise import Promise
from ..curator.journal.listening import heard_by
from ..curator.rows.rows import Rows
from ..data import encode
from ..errors import InputError
from ..estimators import load
from ..facts import Schema
from ..facts.columns import Number
from ..ledger import already_charged
from . import canary_bounds as bounds
from .bounds import mu_of
from .canary_estimate import HeardRun, heard_run
from .claims import Claim, PointClaim, claim_of, of_function
from .corners import OTHERS, Table, ordinary
from .one_run_result import DISTANCE, GUESSES, NOISE, OneRunAudit
from .overheard import Overheard
from .planted import HALF_NOISE, planted
from .targets import Bug, called, own_parameters, schema_of_coding

FEWEST = 20
GUESSED = 0.25
"""Of the canaries: whose coins are guessed, half of them as heads."""
ENDS = 0.5
"""Of a canary's numbers: how many lie at an end of their bounds."""
BUGS = (
    Bug(HALF_NOISE),
    Bug("1.5-fold epsilon", 1.5),
    Bug("3-fold epsilon", 3.0),
    Bug("10-fold epsilon", 10.0),
    Bug("100-fold epsilon", 100.0),
)
"""What is planted, each in a run of its own."""


def one_run(
    target: Any,
    *,
    schema: Schema | None = None,
    canaries: int = 200,
    guesses: int | None = None,
    confidence: float = 0.95,
    epsilon: float | None = None,
    delta: float | None = None,
    power: bool = True,
    rows: int = OTHERS,
    seed: int = 0,
) -> OneRunAudit:
    """Audit a mechanism in one run with many canaries, such as the fit of a network.

    Each canary is a row that is put into the table by a coin. After the run, coins are guessed from
    what was released. Too many right guesses refute the claim (docs/audit.md). Of an estimator's
    full batches all noise is heard, and tested too. Bugs are planted in further runs, one each.

    Parameters
    ----------
    target : str, path, estimator or function
        A classifier of this library that finds its model by gradients, with records protected under
        add-remove; linear or a torch module. Or a folder that `fairveil.save` wrote of one. Or a
        function ``fit(table, seed)`` of any library: `table` is a dictionary of columns. It returns
        a function of a table, which gives a number for each row: the larger, the more likely the
        row was there.
    schema : Schema, default=None
        Public facts that rows are made of. None: the estimator's own.
    canaries : int, default=200
        How many. More show more.
    guesses : int, default=None
        How many coins are guessed, a public number. None: a quarter.
    confidence : float, default=0.95
        A true claim is refuted with probability at most one minus this.
    epsilon : float, default=None
        Claim of a function. Estimators say it themselves.
    delta : float, default=None
        Claim of a function.
    power : bool, default=True
        Whether bugs are planted in further runs of an estimator.
    rows : int, default=1000
        Ordinary rows beside the canaries.
    seed : int, default=0
        Seed of rows, coins and runs.

    Returns
    -------
    OneRunAudit
        Print it, or take `to_dict()`. It is never a proof.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski 2023. "Privacy Auditing with One (1) Training Run."
           arXiv:2305.08846.
    .. [2] Mahloujifar, Melis and Chaudhuri 2025. "Auditing f-Differential Privacy in One Run."
           arXiv:2410.22235.

    Examples
    --------
    >>> from fairveil.facts import Boolean
    >>> numbers = {"age": Number(0, 1), "score": Number(0, 1), "hours": Number(0, 1)}
    >>> schema = Schema({**numbers, "hired": Boolean()}, target="hired")
    >>> def kept(table, seed):  # it hands out every row
    ...     there = set(zip(*(table[name] for name in numbers)))
    ...     return lambda others: [row in there for row in zip(*(others[name] for name in numbers))]
    >>> one_run(kept, schema=schema, epsilon=1.0, delta=1e-6, rows=50).verdict
    'not met'
    """
    if isinstance(target, str | os.PathLike):
        target = load(Path(target))
    canaries = _checks.whole(at_least=FEWEST, canaries=canaries)
    guessed = (
        max(2, int(GUESSED * canaries))
        if guesses is None
        else _checks.whole(at_least=2, guesses=guesses)
    )
    if guessed > canaries:
        remedy = "Pass guesses=50, for example."
        raise InputError.expected(
            f"at most {canaries}, the canaries", of="guesses", got=guessed, remedy=remedy
        )
    confidence = _checks.fraction(confidence=confidence, low_open=True, high_open=True)
    seed, rows = _checks.whole(seed=seed), _checks.whole(at_least=1, rows=rows)
    made = _Made.of(target, schema, canaries, rows, seed)
    run = _of_estimator if made.is_estimator else _of_function
    first = run(target, made, (epsilon, delta), None)
    asked = _Asked(made, first.claim, guessed, 1.0 - confidence)
    found = []
    for bug in BUGS if power and made.is_estimator else ():
        other = run(target, made, (epsilon, delta), bug)
        found.append((bug.name, asked.refuted_by(other.told) != ""))
    name = type(target).__name__ if made.is_estimator else called(target)
    return OneRunAudit(
        target=name,
        promise=first.promise,
        claim=first.claim,
        canaries=canaries,
        guesses=guessed,
        right=made.right(first.told.coins, guessed),
        confidence=confidence,
        refuted_by=asked.refuted_by(first.told),
        planted=tuple(found),
        seed=seed,
        numbers=first.told.noise.size,
        furthest=asked.share(first.told),
    )


@dataclass(frozen=True, eq=False)
class _Made:
    """Made-up rows: `others`, the `canaries`, and the `coins` that say which of these are there."""

    schema: Schema
    others: Table
    canaries: Table
    coins: Mask
    seed: int
    is_estimator: bool

    @staticmethod
    def of(target: object, schema: object, canaries: int, rows: int, seed: int) -> _Made:
        is_estimator = hasattr(target, "get_params") and hasattr(target, "fit")
        facts = schema
        if facts is None and isinstance(target, BaseEstimator):
            facts = target.get_params(deep=False).get("schema") or schema_of_coding(target)
        if not isinstance(facts, Schema):
            remedy = "Pass schema=Schema.load('schema.toml'): tables are made up from it."
            got = None if facts is None else type(facts).__name__
            raise InputError.expected("a Schema", of="schema", got=got, remedy=remedy)
        if not is_estimator and not callable(target):
            remedy = "Pass an estimator, or a function fit(table, seed)."
            got = type(target).__name__
            raise InputError.expected(
                "something that can be run", of="TARGET", got=got, remedy=remedy
            )
        rng = np.random.default_rng([seed, 7])
        table = ordinary(facts, canaries, seed + 1)
        for name, column in facts.columns.items():
            if isinstance(column, Number) and name in table:
                ends = np.where(rng.random(canaries) < 0.5, column.low, column.high)
                table[name] = np.where(rng.random(canaries) < ENDS, ends, table[name])
        return _Made(
            facts,
            ordinary(facts, rows, seed),
            table,
            rng.random(canaries) < 0.5,
            seed,
            is_estimator,
        )

    @property
    def table(self) -> Table:
        """The rows of the run."""
        return {
            name: np.concatenate([values, self.canaries[name][self.coins]])
            for name, values in self.others.items()
        }

    def right(self, scores: Floats, guesses: int) -> int:
        """How many guesses are right: of the largest scores that they are there, of the smallest
        not."""
        order = np.argsort(scores, kind="stable")
        heads = guesses // 2
        return int(
            self.coins[order[len(order) - heads :]].sum()
            + (~self.coins[order[: guesses - heads]]).sum()
        )


@dataclass(frozen=True, eq=False)
class _Answer:
    """What a run told, and what was claimed of it."""

    told: HeardRun
    promise: Promise
    claim: Claim


@dataclass(frozen=True, eq=False)
class _Asked:
    """What refutes a claim: guesses, noise or a distance."""

    made: _Made
    claim: Claim
    guesses: int
    risk: float

    def refuted_by(self, told: HeardRun) -> str:
        """Which of the three refuted it; "" where none did."""
        risk = self.risk / 2.0 if told.noise.size else self.risk
        if told.is_too_far(self.claim.gaussian):
            return DISTANCE
        if told.has_less_noise(risk):
            return NOISE
        right, canaries = self.made.right(told.coins, self.guesses), len(self.made.coins)
        return GUESSES if bounds.refutes(self.claim, canaries, self.guesses, right, risk) else ""

    def share(self, told: HeardRun) -> float | None:
        """Of the claimed mu, by how much the furthest canary moved the run."""
        mu = mu_of(self.claim.total_variation)
        return None if told.furthest is None or mu <= 0.0 else math.sqrt(told.furthest) / mu


def _of_function(
    target: Callable[..., Any], made: _Made, said: tuple[Any, Any], bug: Bug | None
) -> _Answer:
    epsilon, delta = of_function(*said)
    promise = Promise(epsilon, delta)
    with already_charged(), warnings.catch_warnings():  # of rows that were made up
        warnings.simplefilter("ignore")
        scored = target({name: values.copy() for name, values in made.table.items()}, made.seed)
        if not callable(scored):
            remedy = "Return a function of a table that gives a number a row, as minus the loss."
            got = type(scored).__name__
            raise InputError.expected("a function", of="what fit returns", got=got, remedy=remedy)
        scores = np.asarray(
            scored({name: values.copy() for name, values in made.canaries.items()}), np.float64
        )
    if scores.shape != made.coins.shape or not np.isfinite(scores).all():
        remedy = "Return one finite number for each row."
        raise InputError.expected(
            f"{len(made.coins)} numbers", of="scores", got=scores.shape, remedy=remedy
        )
    nothing = np.zeros(0)
    return _Answer(
        HeardRun(scores, None, nothing), promise, PointClaim(promise.epsilon, promise.delta)
    )


def _of_estimator(target: Any, made: _Made, said: tuple[Any, Any], bug: Bug | None) -> _Answer:
    parameters = own_parameters(target)
    promise = Promise(
        *(parameters[name] for name in ("epsilon", "delta", "protects", "neighbours"))
    )
    if (
        not promise.is_private
        or promise.protects != "records"
        or promise.neighbours != "add-remove"
    ):
        remedy = "Use fv.audit.run, which has pairs of tables for every relation."
        expected = "a finite epsilon for records, added or removed"
        raise InputError.expected(expected, of="TARGET", got=str(promise), remedy=remedy)
    fold = 1.0 if bug is None else bug.fold
    changed = {
        "schema": made.schema,
        "random_state": made.seed,
        "ledger": None,
        "epsilon": promise.epsilon * fold,
    }
    if "checkpoint" in parameters:
        changed["checkpoint"] = None
    fitted, heard = type(target)(**{**parameters, **changed}), Overheard()
    with ExitStack() as stack:
        if bug is not None and bug.fold == 1.0:
            stack.enter_context(planted(bug.name))
        stack.enter_context(heard_by(heard))
        stack.enter_context(already_charged())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        fitted.fit(encode(made.table, made.schema))
    if fitted.privacy_.promise.unit is not None:
        remedy = "Audit it without a unit: canaries are rows."
        raise InputError.expected(
            "a mechanism that protects rows", of="unit", got="persons", remedy=remedy
        )
    others, canaries = (Rows(encode(table, made.schema)) for table in (made.others, made.canaries))
    told = heard_run(heard, others, canaries, promise)
    return _Answer(told, promise, claim_of(fitted.privacy_, promise.delta))
