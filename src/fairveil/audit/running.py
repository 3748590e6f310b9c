"""An audit of a whole mechanism in one call: pairs from the schema's corners, pairs of runs, bets,
and planted bugs beside.

A pair is one run on each table, with the same seed: coins that are shared change nothing in how a
test behaves on either table, and leave the difference far less spread. Where the target draws coins
of its own, pairs are merely independent runs. A pilot fixes the test and bets nothing; then each
pair is a bet against the claim (`betting`).

Guarantees (tests/audit/test_audit_run.py):
1. A true claim is refuted with probability 1 - confidence at most, whenever it stops. `verdict` is
   "not met" only where one was, else "inconclusive": no audit proves a claim.
2. Everything is made up from the schema and the seed: nobody's rows are read, no ledger is charged,
   and numbers are of nobody.
3. Each pair of runs has a seed of its own; with `trials` the same seed gives the same audit.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import _checks
from .._types import Floats
from .._verdicts import NOT_MET, UNCLEAR, Verdict
from ..core.promise import Promise
from ..errors import InputError
from ..estimators import load
from ..estimators.coding import SchemaCoding, parts_of
from ..estimators.fitting import progress as bar
from ..estimators.reading import whose
from ..facts import Schema
from ..show.charts import Axis, Curve, Curves
from ..show.parts import Facts, Part, Shown
from ..statement.document import Audit, PrivacyStatement
from . import betting, scores
from .betting import Bets, NoiseBets, Residual, Soft
from .claims import Claim, PointClaim, claim_of
from .corners import OTHERS, Pair, pairs_of
from .targets import HERE, SAME_SEED, THERE, Bug, FitTarget, FunctionTarget, Target

PILOT, FEWEST, FEW, USUAL, MOST = 40, 50, 20, 1_000, 20_000  # pairs
# of what is left after the pilot: for the audit itself; the rest is for what is planted
OF_TIME = 0.35
FAR = 1e9  # deviations, where nothing is spread
ENOUGH = 0.95
PLACES = 41
REFUTED, ALL_RUNS, TIME = (
    "stopped early: the claim is refuted",
    "all runs that were planned",
    "stopped by the clock",
)
NO_PROOF = (
    "An audit is no proof: a larger leak may need more runs, another pair of neighbours or a "
    "better attack."
)
Tick = Callable[[int], None]
Points = tuple[tuple[float, float], ...]
"""Pairs (false alarms, misses)."""


@dataclass(frozen=True)
class Planted:
    """A bug that was planted beside: whether its own runs refuted the claim, and the least
    probability, with 95 % confidence, with which an audit of as many pairs as the real one had
    would refute it. `seconds`: until that was known."""

    name: str
    trials: int
    found: bool
    power: float
    seconds: float


@dataclass(frozen=True, eq=False)
class PrivacyAudit(Shown):
    """The result of `fairveil.audit.run`.

    `total_variation_lower`: releases on both tables are at least this far apart, where a curve was
    claimed; `mechanism_epsilon_lower`: any mechanism has at least this epsilon at the claim's
    delta; each with `confidence`, whenever the audit stopped. `trials`: pairs of runs; `pilot`:
    pairs before them. `distances`: of every pair of tables that was tried, how far apart a run was,
    in deviations of its noise. `gaussian_lower`: how far apart releases are at least if noise is
    Gaussian of some one scale, from the noise that was seen; 0 where none was, or where the audit
    stopped early. `refuted_by`: "noise" where it is less than the plan says, "releases" where they
    tell too much, else "". `same_plan`: whether the audited fits planned what the statement that
    was handed in says; None without one. `band`: points (false alarms, misses) that the mechanism's
    own curve is at or below.
    """

    target: str
    promise: Promise
    claim: Claim
    refuted_by: str
    total_variation_lower: float
    gaussian_lower: float
    mechanism_epsilon_lower: float
    confidence: float
    trials: int
    pilot: int
    pair: str
    distances: tuple[tuple[str, float], ...]
    planted: tuple[Planted, ...]
    same_plan: bool | None
    seed: int
    seconds: float
    stopped: str
    band: Points

    @property
    def refuted(self) -> bool:
        """Whether the claim was refuted."""
        return self.refuted_by != ""

    @property
    def verdict(self) -> Verdict:
        """ "not met", or "inconclusive"."""
        return NOT_MET if self.refuted else UNCLEAR

    @property
    def shown(self) -> float:
        """The total variation distance that was shown: from the noise, if that was seen, else from
        releases alone."""
        return self.gaussian_lower or self.total_variation_lower

    @property
    def mu_lower(self) -> float:
        """A mechanism that is mu-GDP has at least this mu."""
        return scores.mu_of(self.shown)

    @property
    def possible(self) -> float | None:
        """The share of the claimed mu that this pair of tables shows at most; None where that is
        not known."""
        claimed, nearest = scores.mu_of(self.claim.total_variation), dict(self.distances)[self.pair]
        return min(1.0, nearest / claimed) if self.gaussian_lower and claimed > 0 else None

    @property
    def share(self) -> float:
        """The lower bound as a share of the claim: of epsilon where Gaussian noise, or a point, was
        claimed; of the total variation distance where another curve was."""
        if self.claim.is_gaussian or isinstance(self.claim, PointClaim):
            return self.epsilon_lower / self.promise.epsilon
        return self.shown / self.claim.total_variation

    @property
    def epsilon_lower(self) -> float:
        """The mechanism's epsilon is at least this, at the claim's delta."""
        if self.claim.is_gaussian:
            return scores.gaussian_epsilon(self.mu_lower, self.promise.delta)
        return self.mechanism_epsilon_lower

    @property
    def would_have_found(self) -> str:
        """The smallest planted leak that an audit of as many runs finds with 95 % probability; ""
        where none is."""
        sure = (one.name for one in self.planted if one.power >= ENOUGH)
        return next((name for name in sure if name.endswith("-fold epsilon")), "")

    def attach(self, statement: PrivacyStatement) -> PrivacyStatement:
        """The statement with this audit in it; `check()` then reports a bound above what it
        states."""
        if self.promise != statement.promise:
            remedy = "Audit the estimator, or the folder, that the statement is of."
            got = str(self.promise)
            raise InputError.expected(
                f"an audit of {statement.promise}", of="statement", got=got, remedy=remedy
            )
        words = f"{self.trials} pairs of runs on made-up neighbours, {self.pair}"
        kind = ", read as Gaussian noise" if self.claim.is_gaussian else ""
        attack = f"audit of {self.target}: {words}{kind}"
        return replace(statement, audit=Audit(self.epsilon_lower, self.confidence, attack))

    def to_dict(self) -> dict[str, Any]:
        """Every number, as plain JSON values; without the seconds, which no seed repeats."""
        return {
            "target": self.target,
            "promise": self.promise.to_dict(),
            "verdict": self.verdict,
            "refuted": self.refuted,
            "epsilon_lower": self.epsilon_lower,
            "share_of_claim": self.share,
            "confidence": self.confidence,
            "pair": self.pair,
            "pairs": dict(self.distances),
            "trials": self.trials,
            "pilot": self.pilot,
            "stopped": self.stopped,
            "same_plan_as_statement": self.same_plan,
            "seed": self.seed,
            "claim": self.claim.words,
            "refuted_by": self.refuted_by or None,
            "total_variation_lower": self.total_variation_lower,
            "total_variation_lower_by_noise": self.gaussian_lower,
            "possible_share_of_mu": self.possible,
            "total_variation_claimed": self.claim.total_variation,
            "mechanism_epsilon_lower": self.mechanism_epsilon_lower,
            "read_as_gaussian": self.claim.is_gaussian,
            "planted": [
                _checks.named(one, ("name", "trials", "found", "power")) for one in self.planted
            ],
            "would_have_found": self.would_have_found or None,
            "no_proof": NO_PROOF,
        }

    def facts(self) -> list[tuple[str, str]]:
        """(label, words), the verdict first."""
        head = "claim refuted" if self.refuted else "claim not refuted"
        if self.refuted_by == "noise":
            head += ": there is less noise than the plan says, or it comes again"
        of_claim = f"({100 * self.share:.0f} % of the claim)"
        measured = f"epsilon at least {self.epsilon_lower:.3g} {of_claim}"
        if self.claim.is_gaussian:
            measured = (
                f"epsilon at least {self.epsilon_lower:.3g} read as Gaussian noise {of_claim}"
            )
        elif not isinstance(self.claim, PointClaim):
            distance = f"total variation distance at least {self.shown:.3g} {of_claim}"
            measured = f"{distance}; epsilon at least {self.epsilon_lower:.3g}"
        lines = [
            ("verdict", f"{self.verdict}: {head}, at {100 * self.confidence:g} % confidence"),
            ("claimed", f"{self.promise}"),
            ("measured", measured),
            (
                "runs",
                f"{self.trials} pairs, {self.pilot} before them to fix the test; {self.stopped}",
            ),
            ("neighbours", self.pair),
        ]
        if self.possible is not None:
            share = f"{100 * self.possible:.0f} % of the claimed mu"
            lines.append(("at most", f"{share} shows in this pair, in any number of runs"))
        if self.same_plan is not None:
            other = "another than in the statement: these rows are fewer"
            lines.append(("plan", "the same as in the statement" if self.same_plan else other))
        for one in self.planted:
            found = f"{'found' if one.found else 'not found'} in {one.trials} pairs"
            words = f"{one.name}: {found}; power at least {100 * one.power:.0f} %"
            lines.append(("planted", words))
        known = "too few runs to find even a 3-fold epsilon: run longer"
        if not self.planted:
            known = "not known: no bug was planted, or no time was left for it"
        elif self.would_have_found:
            known = f"a {self.would_have_found} would have been found with 95 % probability"
        if self.planted or not self.refuted:
            lines.append(("power", known))
        return [*lines, ("note", NO_PROOF)]

    def summary(self) -> str:
        """In words, one fact a line."""
        return "\n".join(f"{label:<10}  {words}" for label, words in self.facts())

    __str__ = summary

    def parts(self) -> Iterator[Part]:
        """The facts, and the claimed and the measured trade-off curve."""
        yield Facts.of(self.facts())
        yield self.chart()

    def chart(self) -> Curves:
        """The claimed trade-off curve, and what the runs allow at most."""
        alarms = np.linspace(0.0, 1.0, PLACES)
        claimed = zip(alarms.tolist(), self.claim.curve(alarms).tolist(), strict=True)
        within = f"measured: some test is at or below ({100 * self.confidence:g} %)"
        return Curves(
            title=f"Audit of {self.target}: epsilon at least {self.epsilon_lower:.3g} of "
            f"{self.promise.epsilon:.3g} claimed",
            across=Axis("false alarms"),
            up=Axis("misses"),
            curves=(
                Curve("claimed: no test is below", tuple(claimed)),
                Curve(within, self.band),
            ),
            notes=(
                f"{self.trials} pairs of runs. The claim is refuted where the measured curve falls "
                f"below the claimed one.",
                "The verdict comes from bets on one test that was fixed before, which is sharper "
                "than this band of all tests.",
            ),
        )


class Seeds:
    """A seed for every pair of runs, below 2^32, each once; a planted bug that uses one again gets
    the first."""

    def __init__(self, seed: int) -> None:
        self._first = (seed * 2_654_435_761) % (1 << 32)
        self._given = 0

    def next(self, bug: Bug | None = None) -> int:
        """Another one."""
        if bug is not None and bug.name == SAME_SEED:
            return self._first
        self._given += 1
        return (self._first + self._given) % (1 << 32)


class Attack:
    """Runs of one target, with or without a bug, and the wealth of the bets so far, each at
    `risk`. A curve is claimed by its total variation distance, a point by itself, for which the two
    tables may change places."""

    def __init__(
        self,
        target: Target,
        seeds: Seeds,
        claim: Claim,
        *,
        delta: float,
        risk: float,
        planned: int,
        bug: Bug | None = None,
    ) -> None:
        self.target, self.claim, self.bug = target, claim, bug
        self._seeds, self._delta, self._risk, self._planned = seeds, delta, risk, planned
        self.pilot, self._shape = 0, tuple[int, ...]()
        self.scores: tuple[list[float], list[float]] = ([], [])
        self._gains: tuple[list[float], list[float]] = ([], [])
        self._of_plan = target.sees_noise and claim == target.claim
        self.noise = NoiseBets(claim.gaussian) if target.sees_noise else None
        self.factor, self.allowed = 1.0, claim.total_variation
        if isinstance(claim, PointClaim):
            self.factor, self.allowed = math.exp(claim.epsilon), claim.delta

    def fix(self, runs: int, tick: Tick | None = None) -> Attack:
        """The pilot, which chooses a line on which releases are projected, and a test."""
        both = [self._pair(tick)[0] for _ in range(runs)]
        here, there = (np.stack([pair[side] for pair in both]) for side in (HERE, THERE))
        self._line = np.ones(1) if here.shape[1] == 1 else scores.best_line(here, there)
        one, other = here @ self._line, there @ self._line
        factor, allowed, pairs = self.factor, self.allowed, self._planned
        found: list[tuple[float, bool, Soft]] = []
        for swapped in (False, True) if isinstance(self.claim, PointClaim) else (False,):
            a, b = (other, one) if swapped else (one, other)
            test = betting.chosen(a, b, factor, allowed, pairs, exact=self.target.exact)
            gain = betting.promised(test, a, b, factor, allowed, pairs)
            found.append((gain, swapped, test))
        _, self._swapped, self._test = max(found, key=lambda option: option[0])
        first, second = (other, one) if self._swapped else (one, other)
        self._seen = (self._test(second), self._test(first))
        if isinstance(self.claim, PointClaim):
            factors, deltas = np.exp(betting.EPSILONS), np.full(betting.EPSILONS.shape, self._delta)
        else:
            factors, deltas = np.ones_like(betting.DISTANCES), betting.DISTANCES
        held = np.append(factors, self.factor), np.append(deltas, self.allowed)
        self._bets, self.pilot = Bets(*held, self._seen), runs
        return self

    def go_on(
        self,
        until: int,
        tick: Tick | None = None,
        stop: Callable[[], bool] = lambda: False,
        *,
        through: bool = False,
    ) -> None:
        """More pairs, until so many, or until `stop` says so, or the claim is refuted, unless
        `through`."""
        while self.trials < until and (through or not self.refuted_by) and not stop():
            both, residuals = self._pair(tick)
            pair = [float(released @ self._line) for released in both]
            if self.noise is not None and residuals is not None:
                self.noise.add(*residuals)
            for side in (HERE, THERE):
                self.scores[side].append(pair[side])
            here, there = (float(self._test(np.array(score))) for score in pair)
            used = (here, there) if self._swapped else (there, here)
            self._bets.add(*used)
            for kept, value in zip(self._gains, used, strict=True):
                kept.append(value)

    @property
    def trials(self) -> int:
        """Pairs that were bet on."""
        return len(self.scores[HERE])

    @property
    def _each(self) -> float:
        """The risk of one bet: where the noise is known and the claim is the plan's own, bets on
        releases and on noise have half of it each."""
        return self._risk / 2.0 if self._of_plan else self._risk

    @property
    def refuted_by(self) -> str:
        """Which bet's wealth has reached 1 / risk at some time: "noise" or "releases"; "" where
        none has."""
        if self._of_plan and self.noise is not None and self.noise.refuted(self._each):
            return "noise"
        return "releases" if self._bets.refuted(self._each)[-1] else ""

    @property
    def lower(self) -> float:
        """Of a point the epsilon that the mechanism has at least, of a curve the total variation
        distance of the releases, with confidence 1 - risk at all times together."""
        values = betting.EPSILONS if isinstance(self.claim, PointClaim) else betting.DISTANCES
        return betting.lower(self._bets.refuted(self._risk)[:-1], values)

    def power(self, trials: int) -> float:
        """The least share of audits of so many pairs that refute the claim, of a mechanism like
        this one."""
        by_noise = 0.0
        if self._of_plan and self.noise is not None:
            by_noise = self.noise.power(trials, self._each)
        if by_noise >= 1.0:
            return by_noise
        there, here = (np.array(kept) for kept in self._gains)
        given = (self.factor, self.allowed, self._seen, (there, here), trials, self._each)
        return max(by_noise, betting.power(*given))

    def _pair(
        self, tick: Tick | None
    ) -> tuple[tuple[Floats, Floats], tuple[Residual, Residual] | None]:
        seed = self._seeds.next(self.bug)
        (here, own), (there, other) = (
            self.target.run(side, seed, self.bug) for side in (HERE, THERE)
        )
        self._shape = self._shape or here.shape
        if not here.shape == there.shape == self._shape:
            remedy = "Pad what a run leaves out: how much is released is a release too."
            raise InputError.expected(
                "as many numbers from every run", of="TARGET", got="others", remedy=remedy
            )
        if tick is not None:
            tick(2)
        return (here, there), None if own is None or other is None else (own, other)


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
    epsilon, delta, protects
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
    ... )
    >>> found.verdict, found.stopped
    ('not met', 'stopped early: the claim is refuted')
    """
    confidence = scores.checked_confidence(confidence)
    seed, rows = _checks.whole(seed=seed), _checks.whole(at_least=1, rows=rows)
    if trials is not None:
        trials = _checks.whole(at_least=FEWEST, trials=trials)
    minutes = _checks.positive(minutes=minutes, remedy="Pass minutes=10, for example.")
    clock, power = _Clock(60.0 * minutes, trials), _checks.truth(power=power)
    if isinstance(target, str | os.PathLike):
        target = load(Path(target))
    is_fit = hasattr(target, "get_params") and hasattr(target, "fit")
    if not is_fit and not callable(target):
        got, remedy = (
            type(target).__name__,
            "Pass a model's folder, an estimator, or a function fit(table, seed).",
        )
        raise InputError.expected("something that can be run", of="TARGET", got=got, remedy=remedy)
    said = {"epsilon": epsilon, "delta": delta, "protects": protects}
    facts, asked = _of_estimator(target, schema) if is_fit else _of_function(schema, said)
    if not asked.is_private:
        remedy = "Audit what is private: a finite epsilon."
        raise InputError.expected("a finite epsilon", of="TARGET", got="epsilon inf", remedy=remedy)
    held = PointClaim(asked.epsilon, asked.delta) if claim is None else claim_of(claim, asked.delta)
    with bar("Audit") if progress else nullcontext() as tick:
        clock.tick = tick
        targets: list[tuple[Pair, Target]] = []
        for pair in pairs_of(facts, asked.protects, asked.neighbours, others=rows, seed=seed):
            one = (
                FitTarget(target, facts, pair, seed)
                if is_fit
                else FunctionTarget(target, pair, asked, held)  # type: ignore[arg-type]
            )
            targets.append((pair, one))
        held = targets[0][1].claim if claim is None else held
        stated = parts_of(target).privacy if is_fit else None
        return _audited(targets, stated, held, clock, confidence, power, seed)


def _of_function(schema: object, said: dict[str, Any]) -> tuple[Schema, Promise]:
    """The facts that tables are made of, and what a function claims, which says nothing itself."""
    for name in ("epsilon", "delta"):
        if said[name] is None:
            remedy = "Pass epsilon=1.0, delta=1e-5: what the function claims."
            raise InputError.expected("a claim", of=name, got=None, remedy=remedy)
    facts = _schema(schema)
    told = whose(None, None, facts, said["epsilon"])
    return facts, Promise(**said, unit=None if told is None else told.unit)


STATED = (
    *("unit", "max_rows_per_unit", "max_sample_weight"),
    *("sensitive_as_feature", "unsafe_data_dependent_bounds"),
)
"""What an estimator's schema says beside columns."""


def _of_estimator(target: Any, schema: object) -> tuple[Schema, Promise]:
    """The same of an estimator: of persons, the attacked one has as many rows as are read of
    one."""
    own: dict[str, Any] = target.get_params(deep=False)
    said = ("epsilon", "delta", "protects")
    if not {*said, "schema", "random_state"} <= set(own):
        remedy = "Pass a function fit(table, seed) that fits it, with schema=, epsilon= and delta=."
        raise InputError.expected(
            "an estimator of this library", of="TARGET", got=type(target).__name__, remedy=remedy
        )
    coding = parts_of(target).coding
    coded = coding.encoding.schema if isinstance(coding, SchemaCoding) else None
    given: Schema = target._facts
    facts = _schema(given.declared or coded if schema is None else schema)
    # what the estimator states beside columns holds of the tables that are made up
    usual = vars(Schema())
    stated = {name: one for name in STATED if (one := getattr(given, name)) != usual[name]}
    facts = replace(facts, **stated)
    told = whose(None, None, facts, own["epsilon"])
    asked = {name: own[name] for name in said}
    return facts, Promise(**asked, unit=None if told is None else told.unit)


def _schema(schema: object) -> Schema:
    remedy = "Pass schema=Schema.load('schema.toml'): tables are made up from it."
    return _checks.instance(Schema, "schema", schema, remedy).require_columns()


def _audited(
    targets: list[tuple[Pair, Target]],
    stated: PrivacyStatement | None,
    claim: Claim,
    clock: _Clock,
    confidence: float,
    power: bool,
    seed: int,
) -> PrivacyAudit:
    risk, delta = 1.0 - confidence, targets[0][1].promise.delta
    made = partial(Attack, seeds=Seeds(seed), claim=claim, delta=delta, risk=risk)
    distances = _apart(targets, made, clock)
    pair, target = targets[int(np.argmax(distances))]
    before = clock.spent
    attack = made(target, planned=clock.trials or USUAL).fix(PILOT, clock.count)
    each = (clock.spent - before) / PILOT
    left = max(0.0, clock.seconds - clock.spent) * (OF_TIME if power else 1.0)
    most = clock.trials or min(MOST, max(FEWEST, int(left / max(each, 1e-6))))
    clock.most = clock.runs + round(2 * most * (1.0 / OF_TIME if power else 1.0))
    attack.go_on(most, clock.count, lambda: clock.is_over() and attack.trials >= FEWEST)
    refuted, lower = attack.refuted_by, attack.lower
    is_point, by_noise = isinstance(claim, PointClaim), 0.0
    if attack.noise is not None and not refuted:
        by_noise = attack.noise.total_variation(risk)
    of_any = float(scores.epsilon_of_average((1.0 - lower) / 2.0, delta))
    here, there = (np.array(runs) for runs in attack.scores)
    return PrivacyAudit(
        target=target.name,
        promise=target.promise,
        claim=claim,
        refuted_by=refuted,
        total_variation_lower=0.0 if is_point else lower,
        gaussian_lower=by_noise,
        mechanism_epsilon_lower=lower if is_point else of_any,
        confidence=confidence,
        trials=attack.trials,
        pilot=attack.pilot,
        pair=pair.name,
        distances=tuple(zip((pair.name for pair, _ in targets), distances, strict=True)),
        planted=() if refuted or not power else _planted(target, made, attack.trials, clock),
        same_plan=None if stated is None else stated.plan == target.plan,
        seed=seed,
        seconds=clock.spent,
        stopped=REFUTED if refuted else TIME if attack.trials < most else ALL_RUNS,
        band=tuple(betting.band(here, there, confidence, PLACES)),
    )


def _apart(
    targets: list[tuple[Pair, Target]], made: Callable[..., Attack], clock: _Clock
) -> list[float]:
    """How far apart the runs of each pair are: by what was asked where that is known, else by a
    pilot of its own."""
    if all(target.distance for _, target in targets):
        return [target.distance for _, target in targets]
    found = []
    for _, target in targets:
        test = made(target, planned=USUAL).fix(FEW, clock.count)
        test.go_on(FEW, clock.count)
        here, there = (np.array(runs) for runs in test.scores)
        spread = float(np.sqrt((here.var() + there.var()) / 2.0))
        apart = abs(float(there.mean() - here.mean()))
        found.append(apart / spread if spread else FAR * float(apart > 0))
    return found


def _planted(
    target: Target, made: Callable[..., Attack], trials: int, clock: _Clock
) -> tuple[Planted, ...]:
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
        refuted = attack.refuted_by != ""
        found.append(Planted(bug.name, attack.trials, refuted, least, clock.spent - before))
    return tuple(found)
