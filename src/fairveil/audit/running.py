"""An audit of a whole mechanism in one call: pairs from the schema's corners, pairs of runs, bets,
and planted bugs beside.

Guarantees (tests/audit/test_audit_run.py):
1. A true claim is refuted with probability 1 - confidence at most, whenever it stops.
2. Everything is made up from the schema and the seed: nobody's rows are read, and no ledger is
   charged.
3. With `trials` the same seed gives the same audit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import _checks
from ..core.promise import Promise
from ..errors import InputError
from ..estimators import load
from ..estimators.fitting.progress import progress as bar
from ..estimators.reading.fitted_parts import parts_of
from ..estimators.reading.units import Whose, whose
from ..facts import Schema
from ..statement.document import PrivacyStatement
from . import drawn
from .attack import Attack, Seeds
from .claims import Claim, PointClaim, claim_of, of_function
from .corners import OTHERS, Pair, pairs_of
from .finding import ENOUGH, Planted, PrivacyAudit
from .pairs import checked_confidence
from .targets import FitTarget, FunctionTarget, Target, own_parameters, schema_of_coding

PILOT = 40
FEWEST = 50
FEW = 20
USUAL, MOST = 1_000, 20_000  # pairs
# of what is left after the pilot: for the audit itself; the rest is for what is planted
OF_TIME = 0.35
FAR = 1e9  # deviations, where nothing is spread
REFUTED, ALL_RUNS, TIME = (
    "stopped early: the claim is refuted",
    "all runs that were planned",
    "stopped by the clock",
)


def run(
    target: object,
    *,
    schema: Schema | None = None,
    minutes: float = 10.0,
    trials: int | None = None,
    confidence: float = 0.95,
    epsilon: float | None = None,
    delta: float | None = None,
    protects: str = "records",
    neighbours: str | None = None,
    claim: Claim | PrivacyStatement | float | None = None,
    power: bool = True,
    rows: int = OTHERS,
    seed: int = 0,
    progress: bool = True,
) -> PrivacyAudit:
    """Attack a mechanism, hold what it leaks against what it claims, and say what the attack would
    have found.

    Neighbouring tables are made up from the schema's corners. The mechanism runs on both many
    times; each run's releases are scored, and a test that a pilot fixed bets against the claim.
    Bugs that are planted beside show what as many runs find.

    Parameters
    ----------
    target : str, path, estimator or function
        A folder that `fairveil.save` wrote: its estimator is fitted again with the same parameters.
        An estimator of this library, fitted or not. Or a function ``fit(table, seed)`` of any
        library: `table` is a dictionary of columns, and what it returns is what it releases:
        numbers, or a model with `coef_`. A parameter `epsilon`, if it has one, is given the claimed
        epsilon.
    schema : Schema, default=None
        The public facts that tables are made of. None: the target's own. If it names a unit, a
        function's claim is about persons, and the attacked person has all rows that may be read of
        one.
    minutes : float, default=10
        About how long. Ignored with `trials`.
    trials : int, default=None
        Pairs of runs, at most. With it, the audit repeats itself from the seed to the bit.
    confidence : float, default=0.95
        A true claim is refuted with probability one minus this at most, whenever it stops.
    epsilon, delta, protects, neighbours
        What a function claims. Estimators say that themselves.
    claim : Claim, PrivacyStatement or float, default=None
        Another claim to hold against, such as `GaussianClaim(0.5)`.
    power : bool, default=True
        Whether bugs are planted beside.
    rows : int, default=1000
        Ordinary rows of the tables that are made up.
    seed : int, default=0
        Of the tables, and of every run. A function may ignore it; its audit then does not repeat
        itself.
    progress : bool, default=True
        A bar, on a terminal, after two seconds.

    Returns
    -------
    PrivacyAudit
        Print it, draw it (`figure()`), or take `to_dict()`. It is never a proof.

    >>> from fairveil.facts import Boolean, Category, Number
    >>> schema = Schema(
    ...     {"hired": Boolean(), "sex": Category(("f", "m"))}, target="hired", sensitive="sex"
    ... )
    >>> def count(table, seed):
    ...     return len(table["sex"]) + 2.0 * np.random.default_rng(seed).normal()
    >>> found = run(
    ...     count,
    ...     schema=schema,
    ...     epsilon=0.1,
    ...     delta=1e-5,
    ...     trials=400,
    ...     power=False,
    ...     neighbours="add-remove",
    ... )
    >>> found.verdict, found.stopped
    ('not met', 'stopped early: the claim is refuted')
    """
    confidence = checked_confidence(confidence)
    seed, rows = _checks.whole(seed=seed), _checks.whole(at_least=1, rows=rows)
    if trials is not None:
        trials = _checks.whole(at_least=FEWEST, trials=trials)
    clock = _Clock(
        60.0 * _checks.positive(minutes=minutes, remedy="Pass minutes=10, for example."), trials
    )
    power = _checks.truth(power=power)
    made, stated = _made(target, schema, rows, seed, (epsilon, delta, protects, neighbours), claim)
    with bar("Audit") if progress else nullcontext() as tick:
        clock.tick = tick
        return _audited(made(), stated, claim, clock, confidence, power, seed)


class _Clock:
    """How much time is left; how many runs were made."""

    def __init__(self, seconds: float, trials: int | None) -> None:
        self.start, self.seconds, self.trials = time.monotonic(), seconds, trials
        self.tick: Callable[[int, int], None] | None = None
        self.runs, self.most = 0, 1

    @property
    def spent(self) -> float:
        return time.monotonic() - self.start

    def is_over(self) -> bool:
        return self.trials is None and self.spent >= self.seconds

    def count(self, runs: int) -> None:
        self.runs += runs
        if self.tick is not None:
            self.tick(min(self.runs, self.most), self.most)


def _made(
    target: object,
    schema: Schema | None,
    rows: int,
    seed: int,
    said: tuple[Any, ...],
    claim: object,
) -> tuple[Callable[[], list[tuple[Pair, Target]]], PrivacyStatement | None]:
    """What makes the targets, one a pair; and the statement that was handed in."""
    if isinstance(target, str | os.PathLike):
        target = load(Path(target))
    if hasattr(target, "get_params") and hasattr(target, "fit"):
        return _fits_of(target, schema, rows, seed), parts_of(target).privacy
    if not callable(target):
        remedy = "Pass a model's folder, an estimator, or a function fit(table, seed)."
        raise InputError.expected(
            "something that can be run", of="TARGET", got=type(target).__name__, remedy=remedy
        )
    *stated, protects, neighbours = said
    epsilon, delta = of_function(*stated)
    facts = _schema(schema)
    told = whose(None, None, facts, epsilon)
    asked = Promise(epsilon, delta, protects, neighbours, None if told is None else told.unit)
    if not asked.is_private:
        remedy = "Pass epsilon=1.0, say: what the function claims."
        raise InputError.expected("a finite epsilon", of="epsilon", got=epsilon, remedy=remedy)
    held = PointClaim(asked.epsilon, asked.delta) if claim is None else claim_of(claim, asked.delta)

    def calls() -> list[tuple[Pair, Target]]:
        pairs = pairs_of(facts, asked.protects, asked.neighbours, others=rows, seed=seed)
        return [(pair, FunctionTarget(target, pair, asked, held)) for pair in pairs]

    return calls, None


def _fits_of(
    target: Any, schema: Schema | None, rows: int, seed: int
) -> Callable[[], list[tuple[Pair, Target]]]:
    """What makes the targets of an estimator."""
    parameters = own_parameters(target)
    facts = _schema(
        schema if schema is not None else parameters["schema"] or schema_of_coding(target)
    )
    told = whose(
        parameters.get("unit"),
        parameters.get("max_rows_per_unit"),
        facts,
        parameters["epsilon"],
    )
    facts = facts.without_unit() if told is None else _of_persons(facts, told)
    own = {name: parameters[name] for name in ("epsilon", "delta", "protects", "neighbours")}
    asked = Promise(**own, unit=None if told is None else told.unit)
    if not asked.is_private:
        remedy = "Audit what is private: a finite epsilon."
        raise InputError.expected("a private fit", of="TARGET", got="epsilon inf", remedy=remedy)

    def fits() -> list[tuple[Pair, Target]]:
        pairs = pairs_of(facts, asked.protects, asked.neighbours, others=rows, seed=seed)
        return [(pair, FitTarget(target, facts, pair, seed)) for pair in pairs]

    return fits


def _audited(
    targets: list[tuple[Pair, Target]],
    stated: PrivacyStatement | None,
    claim: object,
    clock: _Clock,
    confidence: float,
    power: bool,
    seed: int,
) -> PrivacyAudit:
    seeds, risk, delta = Seeds(seed), 1.0 - confidence, targets[0][1].promise.delta
    held = targets[0][1].claim if claim is None else claim_of(claim, delta)
    made = partial(Attack, seeds=seeds, claim=held, delta=delta, risk=risk)
    pair, target, distances = _strongest(targets, made, clock)
    before = clock.spent
    attack = made(target, planned=clock.trials or USUAL).fix(PILOT, clock.count)
    each = (clock.spent - before) / PILOT
    left = max(0.0, clock.seconds - clock.spent) * (OF_TIME if power else 1.0)
    most = clock.trials or min(MOST, max(FEWEST, int(left / max(each, 1e-6))))
    clock.most = clock.runs + round(2 * most * (1.0 if not power else 1.0 / OF_TIME))
    attack.go_on(most, clock.count, lambda: clock.is_over() and attack.trials >= FEWEST)
    stopped = REFUTED if attack.refuted else TIME if attack.trials < most else ALL_RUNS
    found = [] if attack.refuted or not power else _planted(target, made, attack.trials, clock)
    statement = target.statement if isinstance(target, FitTarget) else None
    here, there = (np.array(scores) for scores in attack.scores)
    return PrivacyAudit(
        target=target.name,
        promise=target.promise,
        claim=held,
        refuted=attack.refuted,
        refuted_by=attack.refuted_by,
        total_variation_lower=attack.total_variation_lower,
        gaussian_lower=0.0 if attack.refuted else attack.gaussian_lower,
        mechanism_epsilon_lower=attack.epsilon_lower,
        confidence=confidence,
        trials=attack.trials,
        pilot=attack.pilot,
        pair=pair.name,
        distances=distances,
        planted=tuple(found),
        same_plan=None if stated is None or statement is None else stated.plan == statement.plan,
        seed=seed,
        seconds=clock.spent,
        stopped=stopped,
        band=drawn.measured(here, there, confidence),
        claimed_curve=drawn.claimed(held),
    )


def _strongest(
    targets: list[tuple[Pair, Target]], made: Callable[..., Attack], clock: _Clock
) -> tuple[Pair, Target, tuple[tuple[str, float], ...]]:
    """The pair whose runs are furthest apart: by what was asked where that is known, else by a
    pilot of its own."""
    if all(target.distance for _, target in targets):
        found = [target.distance for _, target in targets]
    else:
        found = []
        for _, target in targets:
            test = made(target, planned=USUAL).fix(FEW, clock.count)
            test.go_on(FEW, clock.count)
            here, there = (np.array(scores) for scores in test.scores)
            spread = float(np.sqrt((here.var() + there.var()) / 2.0))
            apart = abs(float(there.mean() - here.mean()))
            found.append(apart / spread if spread else FAR * float(apart > 0))
    best = int(np.argmax(found))
    names = [pair.name for pair, _ in targets]
    return *targets[best], tuple(zip(names, found, strict=True))


def _planted(
    target: Target, made: Callable[..., Attack], trials: int, clock: _Clock
) -> list[Planted]:
    """Each bug, in as many pairs at most as the audit had: until it is sure to be found, or time is
    over."""
    found = []
    for bug in target.bugs:
        if clock.is_over():
            break
        before, least = clock.spent, 0.0
        attack = made(target, planned=trials, bug=bug).fix(PILOT, clock.count)
        for part in (1 / 8, 1 / 4, 1 / 2, 1.0):
            attack.go_on(max(2, round(part * trials)), clock.count, clock.is_over, through=True)
            least = attack.power(trials)
            if least >= ENOUGH or clock.is_over():
                break
        found.append(Planted(bug.name, attack.trials, attack.refuted, least, clock.spent - before))
    return found


def _of_persons(facts: Schema, told: Whose) -> Schema:
    """The schema of tables in which the attacked person has as many rows as are read of one."""
    if told.column is None:
        remedy = "Name the column that tells persons apart: unit='patient'."
        raise InputError.expected(
            "a name, as the tables are made up", of="unit", got="one value a row", remedy=remedy
        )
    return facts.with_unit(told.column, told.unit.max_rows)


def _schema(schema: object) -> Schema:
    remedy = "Pass schema=Schema.load('schema.toml'): tables are made up from it."
    return _checks.instance(Schema, "schema", schema, remedy)
