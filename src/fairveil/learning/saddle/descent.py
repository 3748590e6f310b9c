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

Guarantees (tests/learning/test_learning_saddle.py):
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

from dataclasses import dataclass, replace

import numpy as np

from ... import _checks
from ..._types import Floats
from ...core.events import Event
from ...core.promise import Promise
from ...curator import FULL, Measurement, Part, Poisson
from ...facts import RowLayout
from ..descent import Answers, Batch, Reason, Search
from .plan import RunPricing, batch_of, handed_of, steps_of
from .problem import SaddleProblem, Smoothness, bound_to, read_only


@dataclass(frozen=True, eq=False)
class SaddleOutcome:
    """What was found: `theta` and `w` (released values), why the search stopped, after how many
    rounds."""

    theta: Floats
    w: Floats
    reason: Reason
    rounds: int


@dataclass(frozen=True, eq=False)
class SaddleState:
    """Between two rounds: released or public values only. `sum_*`: of the `counted` iterates that
    will be returned."""

    theta: Floats
    w: Floats
    sum_theta: Floats
    sum_w: Floats
    counted: int
    rows: float
    round: int
    handed: int

    def keep(self) -> SaddleState:
        """This iterate is one of those that are returned."""
        return replace(
            self,
            sum_theta=self.sum_theta + self.theta,
            sum_w=self.sum_w + self.w,
            counted=self.counted + 1,
        )


@dataclass(frozen=True, eq=False)
class SaddleDescent(Search[SaddleState, SaddleOutcome]):
    """The search: make it with `SaddleDescent.of`. Fields are public.

    `asked`: a round's two measurements, at the start. `count`: the measurement of the number of rows, if any.
    `handed`: which iterate is returned, by number from 1; 0: the average of those after
    `averaged_from`.
    """

    problem: SaddleProblem
    promise: Promise
    rounds: int
    step_theta: float
    step_w: float
    plan: Event | None
    parts: int
    asked: tuple[Measurement, Measurement]
    count: Measurement | None
    public_rows: int | None
    handed: int
    averaged_from: float
    batch: Batch = FULL

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
        batch, parts = batch_of(promise, sampling_rate, parts, public_rows)
        questions = problem.questions()
        for question in questions if rehearse else ():
            question.rehearse(layout, unlike=(problem.theta.size, problem.w.size))
        price = RunPricing(
            promise, layout, questions, rounds, batch, parts, public_rows is None, max_sample_weight
        )
        weight = problem.theta.size * problem.clip_theta**2, problem.w.size * problem.clip_w**2
        if smoothness is not None:
            weight = weight[0], weight[1] * smoothness.weight_of_ascent
        plan, asked = price.planned(ascent_share, None if smoothness is None else weight)
        first, start = price.count, (1.0 - averaged) * rounds
        return SaddleDescent(
            problem,
            promise,
            rounds,
            *steps,
            plan,
            parts,
            asked,
            first,
            public_rows,
            handed,
            start,
            batch,
        )

    def first(self) -> list[Measurement]:
        return [] if self.count is None else [self.count]

    def init(self, answers: Answers) -> SaddleState:
        # One count, released before the first round; every step divides by it, and by no exact
        # number.
        rows = float(answers[0][0]) if self.public_rows is None else float(self.public_rows)
        theta, w = self.problem.theta, self.problem.w
        none = np.zeros_like(theta), np.zeros_like(w)
        return SaddleState(theta, w, *none, 0, max(rows, 1.0 / self._fraction), 0, self.handed)

    def batch_for(self, state: SaddleState) -> Batch:
        return Part(state.round % self.parts, self.parts) if self.parts else self.batch

    def measurements(self, state: SaddleState) -> list[Measurement]:
        functions = self.problem.descent, self.problem.ascent
        return [
            measurement.about(
                measurement.question.again(function=bound_to(function, state.theta, state.w))
            )
            for measurement, function in zip(self.asked, functions, strict=True)
        ]

    def step(self, state: SaddleState, answers: Answers) -> SaddleState:
        # The expected size of the batch: its true size is secret.
        size, done = self._fraction * state.rows, state.round + 1
        theta, w = self.problem.onto(
            state.theta - self.step_theta / size * answers[0],
            state.w + self.step_w / size * answers[1],
        )
        after = replace(state, theta=read_only(theta), w=read_only(w), round=done)
        return after.keep() if self._counts(state.handed, done) else after

    def stop(self, state: SaddleState) -> Reason | None:
        return Reason.ROUNDS if state.round >= self.rounds else None

    def last(self, state: SaddleState) -> list[Measurement]:
        return []

    def finish(self, state: SaddleState, reason: Reason, answers: Answers) -> SaddleOutcome:
        theta, w = state.sum_theta / state.counted, state.sum_w / state.counted
        return SaddleOutcome(read_only(theta), read_only(w), reason, state.round)

    # -- inside ------------------------------------------------------------------------------------

    @property
    def _fraction(self) -> float:
        """Of all rows, how many a batch is expected to have."""
        return self.batch.rate if isinstance(self.batch, Poisson) else 1.0 / (self.parts or 1)

    def _counts(self, handed: int, done: int) -> bool:
        return done == handed if handed else done > self.averaged_from
