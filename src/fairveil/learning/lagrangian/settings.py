"""The public choices of a run of private descent: rounds, clips, step sizes, shares of the
budget."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _checks
from ...errors import InputError

LEAST_RATE = 1e-9  # of Poisson batches; below it the accountant's logarithms run out of digits


@dataclass(frozen=True)
class Settings:
    """The public choices of a run. The defaults are the library's, on every data set.

    `clip`: the largest norm of one row's gradient, loss and costs together; None: the plan's own,
    of public facts and of the released number of rows (`Plan.clip_at`), at most `clip_growth` times
    its least. Where only sensitive features are protected the loss is exact and it bounds the costs
    alone. `temperature`: of the soft decisions that costs act on. `rate_most`, `rate_noise`: the
    step size is rate_most, and less where noise is large: the noise that a whole run leaves in the
    score of a row is to be about rate_noise, in logits. `*_share`: of the squared Gaussian budget.
    `averaged`: the share of rounds, at the end, whose iterates are averaged; where `iterate` is
    "last" or a round's number, that one is returned instead, and for the last the step size falls
    to 0 over these rounds. `learning_rate`: of networks, which have a step size of their own.
    `sampling_rate`: of Poisson batches; None asks all rows. `dual_*`: see `ProjectedAscent`; the
    duals begin after dual_start of the rounds, and the Lagrangian is divided by 1 + dual_ease x
    their sum. `compare_share`: for how the model decides by label, to compare it with constants;
    `free_*`: for a model without constraints beside it (`companion`), and its rounds. Without
    privacy: `tolerance` on the gradient, `most_rounds`, `dual_horizon`.
    """

    rounds: int = 240
    clip: float | None = None
    clip_growth: float = 16.0
    temperature: float = 1.0
    sampling_rate: float | None = None
    momentum: float = 0.9
    rate_most: float = 1.0
    rate_noise: float = 1.5
    averaged: float = 0.5
    iterate: str | int = "average"
    learning_rate: float = 0.1
    histogram_share: float = 0.3
    counts_share: float = 0.02
    report_share: float = 0.02
    thresholds_share: float = 0.03
    moments_share: float = 0.03
    compare_share: float = 0.02
    free_share: float = 0.15
    free_rounds: int = 48
    dual_bound: float = 10.0
    dual_ki: float = 9.0
    dual_kp: float = 1.2
    dual_ema_nu: float = 0.8
    dual_fade: float = 0.1
    dual_unit: str = "length"
    dual_start: float = 0.05
    dual_ease: float = 0.5
    tolerance: float = 1e-5
    most_rounds: int = 2000
    dual_horizon: int = 200

    def __post_init__(self) -> None:
        _checks.whole(at_least=1, rounds=self.rounds)
        if self.clip is not None:
            _checks.positive(clip=self.clip)
        if self.clip_growth < 1.0:
            remedy = "1 keeps the clip at its least."
            raise InputError.expected(
                "at least 1", of="clip_growth", got=self.clip_growth, remedy=remedy
            )
        _checks.positive(temperature=self.temperature)
        _checks.positive(learning_rate=self.learning_rate)
        _checks.one_of(("length", "largest"), dual_unit=self.dual_unit)
        if isinstance(self.iterate, str):
            _checks.one_of(("average", "last"), iterate=self.iterate)
        elif _checks.whole(iterate=self.iterate) >= self.rounds:
            remedy = "Rounds are counted from 0."
            raise InputError.expected(
                f"a number below {self.rounds}", of="iterate", got=self.iterate, remedy=remedy
            )
        if self.sampling_rate is not None:
            rate = _checks.fraction(
                sampling_rate=self.sampling_rate,
                low_open=True,
                remedy="Leave it None to ask all rows.",
            )
            if rate < LEAST_RATE:
                remedy = "Batches that are empty teach nothing: leave it None to ask all rows."
                raise InputError.expected(
                    f"at least {LEAST_RATE}", of="sampling_rate", got=rate, remedy=remedy
                )
