"""The final model: the model that was found, or what a linear program makes of it, of a model
without constraints and of constants.

All of them were measured, by cell and by label, and errors and constraint values of a mixture are
mixtures of theirs:

    minimise    sum_a q_a error_a + WORTH t
    such that   sum_a q_a value_aj <= limit_j + t  for every constraint j,   q, t >= 0,   sum_a q_a
    = 1

`limit_j` is the bound, and what of the model's own excess over it is within the noise of that
value: excess that cannot be told from none is left alone. A point of excess beyond is worth `WORTH`
points of error, as where the threshold is put. The floor of every fit is in it: a model without
constraints, some of whose answers are replaced by a constant.

The numbers are noisy and a program takes the luckiest. So values are what they are likely to be
(`learning.likely`), by their noise and the luck of the rows: the largest of many rates of small
cells is mostly noise, of the free model's above all. The model is given up only for what is better
by more than noise explains: `BEYOND` deviations of the errors, and `ENOUGH` at least. What is
returned instead may not break a bound beyond its own noise, which is often less than the model's;
where it does, the bounds themselves are the limits.

*A mixture of steps needs a reason.* The rules of a game are single noisy steps. Where noise hides
every value of their mixture, or the free model keeps all bounds and errs as little up to noise,
the free model is returned. It has to keep a bound beyond noise where the mixture may be told to.
Where noise hides how much less the free model errs than the best constant that keeps the bounds as
well, no error can speak for the mixture: the free model and constants take its place.

*Mixing is the floor.* Whatever has a share of the model gives way to the free model and constants
alone, at the same largest excess, if those err less by more than noise explains. Of 1,500 rows two
errors differ by 2 points of noise: the lesser one of the two would often be that of the worse.

Guarantees (tests/learning/test_learning_program.py):
1. Post-processing of released values: nothing is asked.
2. Without noise no mixture of these has a smaller error plus WORTH x the largest excess, but for
   `ENOUGH`.
3. A model that is as good as all else, up to noise, and no worse than mixing, is returned itself.
4. By the released errors and the likely values, nothing that is returned is above mixing at its
   own largest excess by more than `CLEARLY` deviations of their noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from ... import _verdicts as verdicts
from ..._types import Floats
from ..comparison import Comparison, DecisionTable, Limits
from ..likely import likely, unheard
from .threshold import WORTH

Flags = npt.NDArray[np.bool_]
ENOUGH = 0.003
"""Of an error, or of a constraint's value: less is not worth another rule."""
BEYOND, CLEARLY, TOLD = 1.645, 1.0, 2.0
LOOKS = 2
"""How many looks cover what the values chose. Let e_1, e_2 be the noise of the model's and the free
one's value in their deviations s_1, s_2; both have the noise of the released counts in them, so
they are not independent. A mixture of shares q is stated with the deviation q_1 s_1 + q_2 s_2,
which is no less than its own, and is off by q_1 s_1 e_1 + q_2 s_2 e_2: by more than z of it only
where e_1 or e_2 is above z. So two looks cover every share, whatever the dependence. A constant
whose value is noisy (shares of labels, where errors are compared) is one more: `looks_at`."""
NEGLIGIBLE = 1e-3  # a share below it is left out
WELL_KEPT = 1e3  # points of error that a point of excess is worth, where a limit is to be kept
CLOSE = 1e-6  # of a value: what leaving such shares out and the solver may add


@dataclass(frozen=True, eq=False)
class Choice:
    """How often each decides: the `model`, the `free` model, and the `constants`, one a class."""

    model: float
    free: float
    constants: Floats

    @property
    def is_model(self) -> bool:
        """Whether it is the model alone."""
        return self.model == 1.0

    @staticmethod
    def of(shares: Floats) -> Choice:
        """Of shares in that order."""
        return Choice(float(shares[0]), float(shares[1]), shares[2:])

    def mixed(self, model: Floats, free: Floats | None, constants: Floats) -> Floats:
        """Of what each of them has, the mixture's."""
        parts = [
            (self.model, model),
            (self.free, free),
            *zip(self.constants.tolist(), constants, strict=True),
        ]
        return np.asarray(
            sum(share * values for share, values in parts if share and values is not None)
        )


def chosen(
    found: Comparison,
    *,
    sampling: Floats | None = None,
    randomised: bool = True,
    of_steps: bool = False,
) -> Choice:
    """The final model. `sampling`: the sampling error of the model's values; `randomised`: whether
    it may be randomized; `of_steps`: the model is a mixture of single noisy steps, which gives
    way to the free model where it is `_needless`."""
    errors = _errors(found)
    values, bounds, limits = _values(found, sampling)
    # A candidate with a rate that nobody could measure takes no part.
    usable = np.isfinite(errors) & np.isfinite(values).all(axis=1)
    shares = _best(found, sampling, errors, (values, bounds, limits), usable, randomised)
    known = errors, values, bounds
    shares = _floored(found, shares, known, usable, randomised)
    if of_steps and shares[0] and usable[1]:
        if _needless(found, errors, values, bounds):
            shares = np.eye(len(errors))[1]
        elif _close(found, known, usable):
            shares = _floored(found, shares, known, usable, randomised, close=True)
    return Choice.of(shares)


def _needless(found: Comparison, errors: Floats, values: Floats, bounds: Floats) -> bool:
    """Whether the free model does for all that was released: noise hides every value of the model,
    or the free one keeps all bounds, and errs as little up to noise. A bound is kept beyond noise
    where the model's own noise is less than the bound, so that the model may be told to keep it;
    else up to noise."""
    if found.limits is None or found.free is None or not len(bounds):
        return False
    known = np.isfinite(found.limits.bounds) & np.isfinite(found.limits.values)
    doubt = CLEARLY * _noise_of_gain(found, np.eye(len(errors))[1])
    room = CLEARLY * found.free.spread[known]
    # Where noise is below the bound, the model may yet be told to keep it: the free one has to do
    # so beyond noise.
    room = np.where(found.limits.spread[known] < bounds, -room, room)
    keeps = bool((values[1] <= bounds + room).all())
    return unheard(found.limits.spread) or (keeps and bool(errors[1] < errors[0] + doubt))


def _best(
    found: Comparison,
    sampling: Floats | None,
    errors: Floats,
    known: tuple[Floats, Floats, Floats],
    usable: Flags,
    randomised: bool,
) -> Floats:
    """The model, or what is better by more than noise explains."""
    values, bounds, limits = known
    own = float(np.maximum(values[0] - limits, 0.0).max(initial=0.0))
    # First with what noise forgives the model; where a mixture would break a bound beyond its own
    # noise, with the bounds.
    for most in (limits, bounds):
        best = (
            _least(errors, values, most, usable)
            if randomised
            else _single(errors, values, most, usable)
        )
        left = float(np.maximum(best[usable] @ values[usable] - limits, 0.0).max(initial=0.0))
        gain = errors[0] - float(best[usable] @ errors[usable]) + WORTH * (own - left)
        kept = own > 0.0 or not _breaks(found, Choice.of(best), sampling)
        if kept and gain > max(ENOUGH, BEYOND * _noise_of_gain(found, best)):
            return best
    return np.asarray(np.eye(len(errors))[0])


def _floored(
    found: Comparison,
    shares: Floats,
    known: tuple[Floats, Floats, Floats],
    usable: Flags,
    randomised: bool,
    *,
    close: bool = False,
) -> Floats:
    """These shares, or the free model and constants alone: no further above the bounds, and with
    clearly less error. `close`: in any case, as no error could speak for the model."""
    errors, values, bounds = known
    if not shares[0] or not usable[1] or not len(bounds):
        return shares
    others = usable.copy()
    # Everything but the model: the floor of every fit is mixing free decisions with constants.
    others[0] = False
    # At the largest excess that these shares have already: the floor may not be further above the
    # bounds.
    most = bounds + float((shares[usable] @ values[usable] - bounds).max(initial=-math.inf))
    search = _least if randomised else _single
    floor = search(errors, values, most, others, WELL_KEPT)
    keeps = bool((floor[others] @ values[others] <= most + CLOSE).all())
    gain = float(shares[usable] @ errors[usable]) - float(floor[others] @ errors[others])
    doubt = _noise_of_gain(found, floor - shares + np.eye(len(shares))[0])
    return floor if keeps and (close or gain > CLEARLY * doubt) else shares


def _close(found: Comparison, known: tuple[Floats, Floats, Floats], usable: Flags) -> bool:
    """Whether noise hides how much less the free model errs than the best constant that is no
    further above the bounds than the model. No model that keeps a bound wins more than that over
    mixing, so that no release can show what one wins."""
    errors, values, bounds = known
    excess = (values - bounds).max(axis=1, initial=-math.inf)
    rivals = usable[2:] & (excess[2:] <= max(0.0, float(excess[0])))
    way = float(errors[2:][rivals].min(initial=math.inf)) - float(errors[1])
    return way < TOLD * _noise_of_gain(found, np.eye(len(errors))[1])


def looks_at(found: Comparison) -> int:
    """How many noisy values a mixture may have been chosen by, of one constraint."""
    doubts = None if found.limits is None else found.limits.doubts
    return LOOKS if doubts is None else LOOKS + int((doubts > 0.0).any(axis=1).sum())


def comparison_of(
    found: Comparison, choice: Choice, sampling: Floats | None
) -> tuple[Comparison, Floats | None]:
    """The mixture beside the same baselines, and its sampling error, from the same numbers."""
    own, free = found.table, found.free
    classes = own.classes
    sums, noises = own.counts.sum(axis=1), np.sqrt((own.noise**2).sum(axis=1))
    # (constants, labels, decisions)
    of_constants = sums[:, np.newaxis] * np.eye(classes)[:, np.newaxis]
    counts = choice.mixed(own.counts, None if free is None else free.table.counts, of_constants)
    of_models = choice.model * own.noise + (
        0.0 if free is None else choice.free * free.table.noise
    )  # they share noise: `LOOKS`
    squares = of_models**2 + (noises[:, np.newaxis] * choice.constants) ** 2
    limits = found.limits
    if limits is not None:
        constants = np.nan_to_num(limits.constants, nan=0.0)
        values = choice.mixed(limits.values, None if free is None else free.values, constants)
        spread = choice.model * limits.spread + (0.0 if free is None else choice.free * free.spread)
        spread = spread if limits.doubts is None else spread + choice.constants @ limits.doubts
        limits = Limits(
            values, limits.bounds, spread, limits.constants, limits.doubts, limits.drawn
        )
    of_free = None if free is None else free.sampling
    drawn = (
        None if sampling is None or (choice.free and of_free is None) else choice.model * sampling
    )
    if drawn is not None and of_free is not None and choice.free:
        drawn = drawn + choice.free * of_free
    if drawn is not None and found.limits is not None and found.limits.drawn is not None:
        drawn = drawn + choice.constants @ found.limits.drawn
    return Comparison(DecisionTable(counts, np.sqrt(squares)), found.rows, limits, free), drawn


def _breaks(found: Comparison, choice: Choice, sampling: Floats | None) -> bool:
    """Whether the mixture breaks a bound by more than its own noise hides: it is often known better
    than the model."""
    limits = comparison_of(found, choice, sampling)[0].limits
    if limits is None:
        return False
    known = np.isfinite(limits.bounds) & np.isfinite(limits.values)
    return bool((limits.values > limits.bounds + _hidden(limits, known, sampling))[known].any())


def _hidden(limits: Limits, known: Flags, sampling: Floats | None) -> Floats:
    """How far a value may be above its bound without that being told, or being more than the luck
    of the rows."""
    hidden = (
        verdicts.deviations(1.0 - (1.0 - verdicts.CONFIDENCE) / max(1, int(known.sum())))
        * limits.spread
    )
    if sampling is None or not limits.spread.any():
        return np.asarray(hidden)
    return np.hypot(hidden, np.where(np.isfinite(sampling), sampling, 1.0))


def _errors(found: Comparison) -> Floats:
    """Of the model, the free one (infinite without one), and constants."""
    own, free = found.table, found.free
    other = (
        math.inf
        if free is None or free.weights is None
        else free.table.total(own.errors) / found.rows
    )
    constants = [own.total(own.constant(k)) / found.rows for k in range(own.classes)]
    return np.array([found.error, other, *constants])


def _values(found: Comparison, sampling: Floats | None) -> tuple[Floats, Floats, Floats]:
    """Of the same, by constraint (those that are bounded and known), the bounds, and the limits."""
    limits, free, classes = found.limits, found.free, found.table.classes
    if limits is None:
        return np.zeros((2 + classes, 0)), np.zeros(0), np.zeros(0)
    known = np.isfinite(limits.bounds) & np.isfinite(limits.values)
    other = np.full(len(known), np.nan) if free is None else free.values
    own_values = _likely(
        limits.values[known], limits.spread[known], None if sampling is None else sampling[known]
    )
    if free is not None and np.isfinite(other[known]).all():
        other = _likely(
            other[known],
            free.spread[known],
            None if free.sampling is None else free.sampling[known],
        )
    else:
        other = np.full(int(known.sum()), np.inf)
    values = np.stack([own_values, other, *np.nan_to_num(limits.constants[:, known], nan=0.0)])
    bounds = limits.bounds[known]
    own = np.clip(own_values - bounds, 0.0, _hidden(limits, known, sampling)[known])
    return values, bounds, bounds + own


def _likely(values: Floats, spread: Floats, sampling: Floats | None) -> Floats:
    """Of released values; exact ones are what they are."""
    if not spread.any():
        return values
    drawn = np.zeros(len(values)) if sampling is None else np.nan_to_num(sampling, nan=0.0)
    return likely(values, np.hypot(spread, drawn))


def _noise_of_gain(found: Comparison, shares: Floats) -> float:
    """The deviation of the difference between the model's error and that of a mixture."""
    own, free = found.table, found.free
    constants = np.stack([own.constant(k) for k in range(own.classes)])
    weights = (1.0 - shares[0]) * own.errors - np.tensordot(shares[2:], constants, axes=1)
    other = 0.0 if free is None else float(shares[1]) * free.table.deviation(own.errors)
    return math.hypot(own.deviation(weights), other) / found.rows


def _single(
    errors: Floats, values: Floats, limits: Floats, usable: Flags, worth: float = WORTH
) -> Floats:
    """The best of them without chance."""
    excess = np.maximum(values - limits, 0.0).max(axis=1, initial=0.0)
    out = np.zeros(len(errors))
    out[int(np.argmin(np.where(usable, errors + worth * excess, np.inf)))] = 1.0
    return out


def _least(
    errors: Floats, values: Floats, limits: Floats, usable: Flags, worth: float = WORTH
) -> Floats:
    """The program, its largest excess as one more variable."""
    lines, width = values[usable].T, int(usable.sum())
    found = linprog(
        np.append(errors[usable], worth),
        A_ub=np.hstack([lines, -np.ones((len(limits), 1))]) if len(limits) else None,
        b_ub=limits if len(limits) else None,
        A_eq=np.append(np.ones(width), 0.0)[np.newaxis],
        b_eq=[1.0],
        method="highs",
    )
    assert found.x is not None
    shares = np.where(found.x[:-1] < NEGLIGIBLE, 0.0, found.x[:-1])
    out = np.zeros(len(errors))
    out[usable] = shares / shares.sum()
    return out
