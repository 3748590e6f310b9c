"""Private stochastic gradient descent-ascent for any saddle problem: Lowy et al.'s Algorithm 2,
corrected.

    min over theta  max over w of  F(theta, w) = mean over rows of f(theta, w; row),
    Phi(theta) = max over w of F

    theta <- proj( theta - step_theta / b (sum of clipped gradients in theta + noise) )
    w     <- proj( w     + step_w     / b (sum of clipped gradients in w     + noise) ),    b the
    expected size of the batch

Both sums of a round are one joint answer about one batch: all rows, a secret Poisson batch, or,
where presence is public, one of fixed parts that take turns (theory.md#t8). The two noises are one
Gaussian event of 1/z^2 = 1/z_theta^2 + 1/z_w^2.

Theorem E.3: f has Lipschitz gradients and is strongly concave in w, with maxima inside w's ball.
With the step sizes of `Smoothness` and T of the order of epsilon n / max(clip_theta sqrt(d_theta),
clip_w sqrt(d_w)) rounds on all rows, an iterate that is drawn uniformly from all T has

    E |grad Phi|^2 = O( sqrt(d ln(1/delta)) / (epsilon n) ),        d = max(d_theta, d_w).

Guarantees (tests/methods/test_methods_saddle.py):
1. The plan costs at most the promise, under its relation, is made of public values alone, and the
   log equals it.
2. No row moves the pair of sums further, in units of their noise, than the event says, whatever the
   user's functions return.
3. What is asked, and the final model, depends on the rows through answers alone; which iterate
   is known before the run.
4. A function that fails on a row is not heard of before the run has ended; one that fails on rows
   of zeros, or gives them NaN or gradients that are transposed, is refused first.
5. theta and w are in their balls throughout.

`Differs:` from Algorithm 2 and Theorem E.1:
- Gradients of rows are clipped, so that no Lipschitz constant is taken on trust (theory.md#fermi,
  H9). The theorem's rate needs clips that no row's gradient reaches; privacy does not.
- Both noises are priced as one release. The paper spends the whole budget on each (H1).
- Batches are Poisson, parts or all rows, and divided by their expected size; the accountant is
  exact, so there is no condition on T and none on epsilon (the paper's sigma^2 = 8 T L^2
  ln(1/delta) / (epsilon n)^2 holds for some pairs alone, H6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import _checks
from .._types import Floats
from ..core.attached import COLUMNS, code_of
from ..core.attached import rehearse as try_out
from ..core.events import Event, Gaussian
from ..core.promise import Promise
from ..curator import (
    FULL,
    Block,
    Curator,
    Measurement,
    Part,
    Poisson,
    Question,
    RowCount,
    RowFunction,
)
from ..errors import InputError
from ..facts import RowLayout
from ..privacy.calibration import calibrate, full_batch, split
from .descent import BEFORE, Ask, Batch, Method, Progress, Reason, descend, plan_of, traced
from .gaussian import budget_of

ITERATES = ("last", "average", "uniform")
COUNT_SHARE = 0.02
"""Of the squared Gaussian budget, for the number of rows where it is neither public nor given."""

RowGradients = Callable[[Block, Floats, Floats], Any]
"""From a block of rows, theta and w to one gradient a row: an array (rows, len(theta)) or (rows,
len(w))."""


@dataclass(frozen=True, eq=False)
class SaddleProblem:
    """f by its gradients. `descent(block, theta, w)`: in theta, (rows, len(theta)); `ascent`: in w,
    (rows, len(w)).

    `theta`, `w`: where they start. `clip_theta`, `clip_w`: norms to which each row's gradients are
    clipped. `radius_theta`, `radius_w`: of the balls around zero that they are kept in; None:
    everywhere. `columns_read`: what the gradients read, among "features", "label" and "sensitive";
    they are not given the rest. `ascent_reads`: the same of `ascent`, where it differs. What does
    not read what is protected is exact.

    The two functions are user code beside private rows: a row's gradient must depend on that row
    alone.
    """

    descent: RowGradients
    ascent: RowGradients
    theta: Floats
    w: Floats
    clip_theta: float
    clip_w: float
    radius_theta: float | None = None
    radius_w: float | None = None
    columns_read: Iterable[str] = COLUMNS
    ascent_reads: Iterable[str] | None = None

    def __post_init__(self) -> None:
        for name, function in _checks.named(self, ("descent", "ascent")).items():
            if not callable(function):
                remedy = "Pass a function of (block, theta, w) that returns one gradient a row."
                got = type(function).__name__
                raise InputError.expected("a function", of=name, got=got, remedy=remedy)
        for name, given, radius in (
            ("theta", self.theta, self.radius_theta),
            ("w", self.w, self.radius_w),
        ):
            start = _start(name, given)
            if radius is not None:
                remedy = "Leave it None where nothing is to be kept in a ball."
                named: dict[str, Any] = {f"radius_{name}": radius}
                radius = _checks.positive(remedy=remedy, **named)
                _checks.normalise(self, **{f"radius_{name}": radius})
                if float(np.linalg.norm(start)) > radius:
                    remedy = "Start inside the ball, or enlarge it."
                    got = f"norm {np.linalg.norm(start):.6g}"
                    raise InputError.expected(
                        f"a norm of at most {radius:g}", of=name, got=got, remedy=remedy
                    )
            _checks.normalise(self, **{name: start})
        _checks.normalise(self, clip_theta=_checks.positive(clip_theta=self.clip_theta))
        _checks.normalise(self, clip_w=_checks.positive(clip_w=self.clip_w))
        reads = frozenset(self.columns_read)
        _checks.normalise(self, columns_read=reads)
        _checks.normalise(
            self, ascent_reads=reads if self.ascent_reads is None else frozenset(self.ascent_reads)
        )
        for question in self.questions():  # whose own checks are of what is left
            code_of(question)

    def questions(self) -> tuple[Question, Question]:
        """The two sums, at the start."""
        assert self.ascent_reads is not None
        theta, w = self.theta, self.w
        kinds = (
            (self.descent, theta, self.clip_theta, self.columns_read, "the gradients in theta"),
            (self.ascent, w, self.clip_w, self.ascent_reads, "the gradients in w"),
        )
        first, second = (
            RowFunction(
                bound_to(function, theta, w), len(start), clip, frozenset(reads), title=title
            )
            for function, start, clip, reads, title in kinds
        )
        return first, second

    def onto(self, theta: Floats, w: Floats) -> tuple[Floats, Floats]:
        """The nearest points of the balls."""
        return in_ball(theta, self.radius_theta), in_ball(w, self.radius_w)


@dataclass(frozen=True)
class Smoothness:
    """The constants of Theorem E.3: every f(., .; row) has gradients in theta that are Lipschitz in
    theta (`theta`, beta_theta) and in w (`cross`, beta_theta_w, and the other way round), gradients
    in w that are Lipschitz in w (`w`, beta_w), and is `concavity`-strongly concave in w (mu). They
    are taken on trust, and privacy does not depend on them.

    >>> Smoothness(theta=1.0, w=2.0, cross=1.0, concavity=2.0).step_theta
    0.041666666666666664
    """

    theta: float
    w: float
    cross: float
    concavity: float

    def __post_init__(self) -> None:
        _checks.normalise(
            self, theta=_checks.non_negative(theta=self.theta), w=_checks.positive(w=self.w)
        )
        _checks.normalise(self, cross=_checks.non_negative(cross=self.cross))
        _checks.normalise(self, concavity=_checks.positive(concavity=self.concavity))
        if self.concavity > self.w:
            remedy = "A function is never more concave than it is smooth."
            raise InputError.expected(
                f"at most w={self.w:g}", of="concavity", got=self.concavity, remedy=remedy
            )
        if self.theta + self.cross == 0:
            remedy = (
                "Then f does not bend along theta, and no step size follows from it: pass "
                "step_theta."
            )
            raise InputError.expected(
                "theta or cross above 0", of="smoothness", got=0, remedy=remedy
            )

    @property
    def condition(self) -> float:
        """kappa_w = beta_w / mu."""
        return self.w / self.concavity

    @property
    def step_theta(self) -> float:
        """eta_theta = 1 / (16 kappa_w (beta_theta + beta_theta_w kappa_theta_w)), with
        kappa_theta_w = beta_theta_w / mu."""
        return 1.0 / (16.0 * self.condition * (self.theta + self.cross**2 / self.concavity))

    @property
    def step_w(self) -> float:
        """eta_w = 1 / beta_w."""
        return 1.0 / self.w

    @property
    def weight_of_ascent(self) -> float:
        """kappa_w beta_theta_w^2 / beta_w^2: what the square of w's noise weighs in the theorem's
        bound, beside theta's."""
        return self.condition * (self.cross / self.w) ** 2


def bound_to(function: RowGradients, theta: Floats, w: Floats) -> Callable[[Block], Any]:
    """A row's gradients at one point."""
    return lambda block: function(block, theta, w)


def in_ball(x: Floats, radius: float | None) -> Floats:
    """The nearest point of the ball around zero."""
    size = float(np.linalg.norm(x))
    return x if radius is None or size <= radius else np.asarray(x * (radius / size))


def read_only(x: Floats) -> Floats:
    """The array, which user code then cannot change."""
    x.setflags(write=False)
    return x


def _start(name: str, value: object) -> Floats:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim != 1 or not array.size or not np.isfinite(array).all():
        remedy = f"Pass {name}=np.zeros(3), for example; flatten a matrix."
        got = (
            f"shape {array.shape}"
            if array.ndim != 1 or not array.size
            else "NaN or infinite values"
        )
        raise InputError.expected("a vector of finite numbers", of=name, got=got, remedy=remedy)
    return read_only(array)


@dataclass(frozen=True, eq=False)
class SaddleOutcome:
    """What was found: `theta` and `w` (released values), why the search stopped, after how many
    rounds."""

    theta: Floats
    w: Floats
    reason: Reason
    rounds: int


@dataclass(frozen=True, eq=False)
class SaddleDescent:
    """The run: make it with `SaddleDescent.of`. Fields are public.

    `multipliers`: of a round's two sums. `counts`: whether the number of rows is asked for. `parts`:
    how many take turns. `handed`: which iterate is returned, by number from 1; 0: the average of
    those after `averaged_from`.
    """

    problem: SaddleProblem
    promise: Promise
    layout: RowLayout
    rounds: int
    step_theta: float
    step_w: float
    batch: Batch
    parts: int
    public_rows: int | None
    handed: int
    averaged_from: float
    max_sample_weight: float | None
    multipliers: tuple[float, float] = (0.0, 0.0)

    @staticmethod
    def of(
        promise: Promise,
        layout: RowLayout,
        problem: SaddleProblem,
        *,
        rounds: int,
        step_theta: float | None = None,
        step_w: float | None = None,
        smoothness: Smoothness | None = None,
        sampling_rate: float | None = None,
        parts: int | None = None,
        public_rows: int | None = None,
        iterate: str | int = "last",
        averaged: float = 0.35,
        ascent_share: float | None = None,
        max_sample_weight: float | None = None,
        generator: np.random.Generator | None = None,
        rehearse: bool = True,
    ) -> SaddleDescent:
        """The search with the least noise that keeps the promise; no data are touched.

        Step sizes: `step_theta` and `step_w`, or the theorem's, from `smoothness`. `sampling_rate`:
        of Poisson batches; `parts`: how many fixed parts take turns; neither: all rows.
        `public_rows`: their number; None has it released where it is private. `iterate`: "last";
        "average", of the last share `averaged` of them; "uniform", one drawn now by `generator`
        (None: a fresh one); or its number, from 1. `ascent_share`: of a round's squared budget, for
        w's sum; None: what is best for the theorem's bound where `smoothness` is given, else half.
        `max_sample_weight`: the cap, where rows have weights. `rehearse`: try the user's functions
        on rows of zeros first, where they must be finite; False where they cannot be.
        """
        rounds = _checks.whole(at_least=1, rounds=rounds)
        steps = steps_of(step_theta, step_w, smoothness)
        if ascent_share is not None:
            ascent_share = _checks.fraction(
                ascent_share=ascent_share, low_open=True, high_open=True
            )
        averaged = _checks.fraction(averaged=averaged, low_open=True)
        handed = handed_of(iterate, rounds, generator)
        batch, turns = batch_of(promise, sampling_rate, parts, public_rows)
        questions = problem.questions()
        for question in questions if rehearse else ():
            try_out(question, layout, unlike=(problem.theta.size, problem.w.size))
        weight = problem.theta.size * problem.clip_theta**2, problem.w.size * problem.clip_w**2
        if smoothness is not None:
            weight = weight[0], weight[1] * smoothness.weight_of_ascent
        best = None if smoothness is None or weight[1] <= 0 else weight
        noisy = [
            promise.is_private
            and not (promise.features_are_public and "sensitive" not in question.reads)
            for question in questions
        ]

        def at(z: float) -> SaddleDescent:
            if not all(noisy):
                prices = tuple(z if needs else 0.0 for needs in noisy)
            elif ascent_share is None and best is not None:
                prices = split(z, *best)
            else:
                given = 0.5 if ascent_share is None else ascent_share
                shares = (1.0 - given, given)
                prices = tuple(z / math.sqrt(share) * (1.0 + 1e-12) for share in shares)
            pair = (prices[0], prices[1])
            return SaddleDescent(
                problem,
                promise,
                layout,
                rounds,
                *steps,
                batch,
                turns,
                public_rows,
                handed,
                (1.0 - averaged) * rounds,
                max_sample_weight,
                pair,
            )

        if not any(noisy):
            return at(0.0)
        one = at(1.0)
        if not isinstance(batch, Poisson) and rounds % (turns or 1) == 0:
            counted = one.count is not None and one.count.multiplier > 0
            beside = [Gaussian(one.count.multiplier)] if counted and one.count is not None else []
            found = at(full_batch(promise, rounds // (turns or 1), beside))
            assert found.plan is not None  # what cannot be asked is refused now
            return found
        trace = traced(one.search(), layout, promise, max_sample_weight)
        keys = [measurement.key for measurement in one.asked]

        def events(z: float) -> Event:
            told = at(z).multipliers
            return trace.repriced(
                lambda part: told[keys.index(part.key)] if part.key in keys else part.multiplier
            )

        return at(calibrate(promise, events).multiplier)

    @cached_property
    def plan(self) -> Event | None:
        """The events of the whole run; None without privacy."""
        if not self.promise.is_private:
            return None
        return plan_of(traced(self.search(), self.layout, self.promise, self.max_sample_weight))

    @property
    def count(self) -> Measurement | None:
        """The number of rows, released or, where it is public, read; None where it was given."""
        if self.public_rows is not None:
            return None
        if not self.promise.is_private or self.promise.rows_are_public:
            return Measurement(RowCount(), 0.0)
        return Measurement(RowCount(), 1.0 / (budget_of(self.promise) * math.sqrt(COUNT_SHARE)))

    def run(self, curator: Curator, progress: Progress | None = None) -> SaddleOutcome:
        """Ask a curator that was made for the plan; it is closed afterwards, in every case."""
        return descend(curator, self.search(), progress, self.rounds)

    def search(self) -> Method[SaddleOutcome]:
        """The run: Algorithm 2."""
        problem, count, asked = self.problem, self.count, self.asked
        # Of all rows, how many a batch is expected to have: its true size is secret.
        fraction = self.batch.rate if isinstance(self.batch, Poisson) else 1.0 / (self.parts or 1)
        # One count, released before the first round; every step divides by it, and by no exact
        # number.
        answers = [] if count is None else (yield Ask([count], FULL, BEFORE))
        rows = float(answers[0][0]) if self.public_rows is None else float(self.public_rows)
        size = fraction * max(rows, 1.0 / fraction)
        theta, w, counted = problem.theta, problem.w, 0
        sums = np.zeros_like(theta), np.zeros_like(w)
        for t in range(self.rounds):
            functions = (bound_to(one, theta, w) for one in (problem.descent, problem.ascent))
            pairs = zip(asked, functions, strict=True)
            now = [one.about(one.question.at(function=function)) for one, function in pairs]
            batch = Part(t % self.parts, self.parts) if self.parts else self.batch
            of_theta, of_w = yield Ask(now, batch)
            moved = theta - self.step_theta / size * of_theta, w + self.step_w / size * of_w
            theta, w = (read_only(x) for x in problem.onto(*moved))
            if t + 1 == self.handed if self.handed else t + 1 > self.averaged_from:
                sums, counted = (sums[0] + theta, sums[1] + w), counted + 1
        theta, w = (read_only(total / counted) for total in sums)
        return SaddleOutcome(theta, w, Reason.ROUNDS, self.rounds)

    @cached_property
    def asked(self) -> list[Measurement]:
        """A round's two measurements, at the start."""
        pairs = zip(self.problem.questions(), self.multipliers, strict=True)
        return [Measurement(question, multiplier) for question, multiplier in pairs]


def steps_of(
    step_theta: float | None, step_w: float | None, smoothness: Smoothness | None
) -> tuple[float, float]:
    if smoothness is None and (step_theta is None or step_w is None):
        remedy = (
            "Pass step_theta=0.1 and step_w=0.1, for example; or smoothness=Smoothness(...), from "
            "which the theorem's follow."
        )
        got = {"step_theta": step_theta, "step_w": step_w}
        raise InputError.expected(
            "both step sizes, or smoothness", of="SaddleDescent", got=got, remedy=remedy
        )
    if smoothness is not None:
        step_theta = smoothness.step_theta if step_theta is None else step_theta
        step_w = smoothness.step_w if step_w is None else step_w
    return _checks.positive(step_theta=step_theta), _checks.positive(step_w=step_w)


def handed_of(iterate: object, rounds: int, generator: np.random.Generator | None) -> int:
    """The number of the iterate that is returned, 0 for an average: known before anything is
    asked."""
    if isinstance(iterate, str):
        if _checks.one_of(ITERATES, iterate=iterate) == "uniform":
            return int(
                (np.random.default_rng() if generator is None else generator).integers(
                    1, rounds + 1
                )
            )
        return rounds if iterate == "last" else 0
    number = _checks.whole(
        at_least=1,
        iterate=iterate,
        remedy="Pass 'last', 'average', 'uniform', or a number from 1 on.",
    )
    if number > rounds:
        remedy = "The last iterate has the number of rounds."
        raise InputError.expected(
            f"a number of at most {rounds}", of="iterate", got=number, remedy=remedy
        )
    return number


def batch_of(
    promise: Promise, rate: float | None, parts: int | None, rows: int | None
) -> tuple[Batch, int]:
    """The batch of a round, or the first part and how many parts there are."""
    if rate is not None and parts is not None:
        remedy = "Poisson batches are drawn, parts are fixed: choose one."
        raise InputError.expected(
            "one of both", of="sampling_rate and parts", got="both", remedy=remedy
        )
    rows = None if rows is None else _checks.whole(at_least=1, public_rows=rows)
    batch: Batch = FULL if rate is None else Poisson(rate)
    parts = 0 if parts is None else _checks.whole(at_least=1, parts=parts)
    fraction = batch.rate if isinstance(batch, Poisson) else 1.0 / (parts or 1)
    if fraction * (math.inf if rows is None else rows) < 1.0:
        remedy = (
            "Such batches are empty as a rule, and teach nothing: draw more rows, or ask them all."
        )
        of = "sampling_rate" if parts == 0 else "parts"
        raise InputError.expected(
            "a batch of at least one row", of=of, got=rate or parts, remedy=remedy
        )
    if not promise.is_private:
        return FULL, 0
    if isinstance(batch, Poisson) and promise.features_are_public:
        remedy = (
            f"Who is there is public, so nothing is gained by drawing: pass "
            f"parts={max(1, round(1 / batch.rate))} instead."
        )
        raise InputError.expected("no sampling_rate", of="sampling_rate", got=rate, remedy=remedy)
    return (Part(0, parts), parts) if parts else (batch, 0)
