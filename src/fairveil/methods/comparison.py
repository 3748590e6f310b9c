"""A model beside what costs nothing: a constant answer, and a model without constraints into which
constants are mixed.

    error of a constant k     the share of rows of other classes; a constant that is further above a
    bound than the model is
                              no rival of it: "no" to everybody errs little where positives are
                              rare, and misses all of them
    mixing (share s, k)       (1 - s) x the free model + s x the constant k: error and rates are
    mixtures too, so the least s at
                              which it exceeds its bounds by no more than the model does follows
                              from released values

All of it is post-processing of tables (label, decision) and of constraint values, with the noise of
their release. Errors are linear in the tables, so the noise of a difference is known; that of s is
taken to first order. Rows that divide are public, or released with noise that is small beside their
number.

The final model: the model that was found, or what a linear program makes of it, of a model
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
(`methods.likely`), by their noise and the luck of the rows: the largest of many rates of small
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

Guarantees (tests/methods/test_methods_comparison.py, tests/methods/test_methods_program.py):
1. Without noise, errors, differences and the mixing share are those of the rows.
2. With noise, a difference of exact errors lies within its deviations as often as those say.
3. A mixture that is returned has the values and the error that are stated of it.
4. Post-processing of released values: nothing is asked.
5. Without noise no mixture of these has a smaller error plus WORTH x the largest excess, but for
   `ENOUGH`.
6. A model that is as good as all else, up to noise, and no worse than mixing, is returned itself.
7. By the released errors and the likely values, nothing that is returned is above mixing at its
   own largest excess by more than `CLEARLY` deviations of their noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import _verdicts as verdicts
from .._types import Floats
from .likely import likely, unheard
from .mixture import best_mixture

CLOSE = 1e-12
WORTH = 2.0
"""How many points of error a point of excess is worth."""
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
NEARLY = 1e-6  # of a value: what leaving such shares out and the solver may add


@dataclass(frozen=True, eq=False)
class DecisionTable:
    """Rows by (label, decision), noisy; `noise`: the standard deviation of each number."""

    counts: Floats
    noise: Floats

    @property
    def classes(self) -> int:
        """How many."""
        return len(self.counts)

    @property
    def errors(self) -> Floats:
        """What counts an error: 1 off the diagonal."""
        return 1.0 - np.eye(self.classes)

    def constant(self, k: int) -> Floats:
        """What counts an error of deciding for k, whatever the row."""
        return np.repeat(
            (np.arange(self.classes) != k).astype(np.float64)[:, np.newaxis], self.classes, axis=1
        )

    def total(self, weights: Floats) -> float:
        """A weighted sum of the numbers."""
        return float((weights * self.counts).sum())

    def deviation(self, weights: Floats) -> float:
        """The standard deviation of that sum."""
        return float(np.sqrt(((weights * self.noise) ** 2).sum()))


@dataclass(frozen=True, eq=False)
class Free:
    """A model without constraints, of the same rows: its weights in the units of coded rows (None
    of a base), its table, and the values of the constraints that it does not know of, with the
    noise of their release and their sampling error."""

    weights: Floats | None
    table: DecisionTable
    values: Floats
    spread: Floats
    sampling: Floats | None = None


@dataclass(frozen=True, eq=False)
class Limits:
    """What is required, and what of it is known: the model's own `values`, with noise of that
    `spread`, the `bounds`, and the values of deciding for one class, whatever the row: `constants`
    (classes, constraints). Where these are no plain numbers but shares of labels, they have noise
    and sampling error too: `doubts` and `drawn`, of the same shape; None: none."""

    values: Floats
    bounds: Floats
    spread: Floats
    constants: Floats
    doubts: Floats | None = None
    drawn: Floats | None = None

    @property
    def goals(self) -> Floats:
        """The bounds; 0 of gaps that are measured and not bounded."""
        return np.where(np.isfinite(self.bounds), self.bounds, 0.0)

    @property
    def worst(self) -> int | None:
        """The constraint that the model is furthest above, or least below; None where there is
        none."""
        excess = np.where(np.isfinite(self.values), self.values - self.goals, -np.inf)
        return int(np.argmax(excess)) if np.isfinite(excess).any() else None

    @property
    def most(self) -> Floats:
        """What each value may be without being further above its bound than the model is
        anywhere."""
        return (
            self.goals
            if self.worst is None
            else self.goals + (self.values - self.goals)[self.worst]
        )

    def admit(self, k: int) -> bool:
        """Whether the constant k is no further above its bounds than the model."""
        values = np.nan_to_num(self.constants[k], nan=0.0)
        return bool((values <= self.most + CLOSE).all())


@dataclass(frozen=True)
class Rival:
    """What a model is compared with: its error, and by how much the model's is larger, with the
    deviation of that. `admitted`: whether it keeps what is required as well as the model does; if
    it does not, its error says nothing against the model."""

    error: float
    difference: float
    noise: float
    admitted: bool = True


@dataclass(frozen=True)
class Constant(Rival):
    """One class for every row."""

    constant: int = 0


@dataclass(frozen=True)
class Mixing(Rival):
    """The free model with a `share` of its answers replaced by the class `constant`."""

    share: float = 0.0
    constant: int = 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was released to compare one model: its own table, the rows that errors are divided by,
    what is required, and a free model's table."""

    table: DecisionTable
    rows: float
    limits: Limits | None = None
    free: Free | None = None

    @property
    def error(self) -> float:
        """The model's own error."""
        return self.table.total(self.table.errors) / self.rows

    @property
    def noise(self) -> float:
        """The deviation of its noise."""
        return self.table.deviation(self.table.errors) / self.rows

    def constant(self) -> Constant:
        """The best constant answer, of those that keep what is required as well as the model if
        there are any."""
        table = self.table
        ranked = [
            (self.limits is None or self.limits.admit(k), table.counts[k].sum(), k)
            for k in range(table.classes)
        ]
        admitted, _, k = max(ranked)
        weights = table.constant(k)
        against = table.errors - weights
        parts = (table.total(weights), table.total(against), table.deviation(against))
        error, difference, noise = (part / self.rows for part in parts)
        return Constant(error, difference, noise, admitted, k)

    def unconstrained(self) -> Rival | None:
        """The free model as it is; admitted where it keeps what is required as well as the model
        does."""
        if self.free is None:
            return None
        own, other = self.table, self.free.table
        error = other.total(other.errors) / self.rows
        noise = math.hypot(own.deviation(own.errors), other.deviation(other.errors)) / self.rows
        mixed = self.mixing()
        return Rival(error, self.error - error, noise, mixed is not None and mixed.share == 0.0)

    def mixing(self) -> Mixing | None:
        """The free model with as few constant answers as bring it no further above its bounds than
        the model is. None where no constant does."""
        if self.limits is None or (worst := self.limits.worst) is None:
            return None
        return self._mixed_to(
            self.limits.most, np.isfinite(self.limits.values), float(self.limits.spread[worst])
        )

    def within(self) -> Mixing | None:
        """The same, down to the bounds themselves."""
        return (
            None
            if self.limits is None
            else self._mixed_to(self.limits.bounds, np.isfinite(self.limits.bounds), 0.0)
        )

    def _mixed_to(self, most: Floats, known: npt.NDArray[np.bool_], doubt: float) -> Mixing | None:
        if self.free is None:
            return None
        known = known & np.isfinite(self.free.values)
        ways = [self._mixed(k, most, known, doubt) for k in range(self.table.classes)]
        return min(
            (way for way in ways if way is not None), key=lambda way: way.error, default=None
        )

    def _mixed(
        self, k: int, most: Floats, known: npt.NDArray[np.bool_], doubt: float
    ) -> Mixing | None:
        assert self.free is not None
        assert self.limits is not None
        free, own, other = self.free, self.table, self.free.table
        share, tight, j = _least_share(free.values, self.limits.constants[k], most, known)
        if math.isnan(share):
            return None
        constant, errors = own.constant(k), own.errors
        of_constant, of_free = own.total(constant) / self.rows, other.total(errors) / self.rows
        error = (1.0 - share) * of_free + share * of_constant
        # The share follows noisy values: it moves by the noise of the value that decides it over
        # that value's way to k's.
        of_constants = (
            0.0 if self.limits.doubts is None else share * float(self.limits.doubts[k, j])
        )
        moved = math.hypot(doubt, (1.0 - share) * float(free.spread[j]), of_constants)
        of_share = moved / tight if tight > CLOSE else 0.0
        parts = (
            own.deviation(errors - share * constant) / self.rows,
            (1.0 - share) * other.deviation(errors) / self.rows,
            (of_constant - of_free) * of_share,
        )
        return Mixing(error, self.error - error, math.hypot(*parts), True, share, k)


def _least_share(
    values: Floats, constant: Floats, most: Floats, known: npt.NDArray[np.bool_]
) -> tuple[float, float, int]:
    """The least share of a constant with which no known value is above `most`; how far that value
    is from the constant's, and its place. NaN where none does."""
    least, highest, tight, at = 0.0, 1.0, 0.0, 0
    for j in np.flatnonzero(known):
        start, end, bound = float(values[j]), float(constant[j]), float(most[j])
        end = start if math.isnan(end) else end
        if start > bound + CLOSE:
            if end > bound + CLOSE:
                return math.nan, 0.0, 0
            needed = (start - bound) / (start - end)
            if needed > least:
                least, tight, at = needed, start - end, int(j)
        elif end > bound + CLOSE:
            highest = min(highest, (bound - start) / (end - start))
    return (least, tight, at) if least <= highest + CLOSE else (math.nan, 0.0, 0)


# -- the final model -------------------------------------------------------------------------------


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
    keeps = bool((floor[others] @ values[others] <= most + NEARLY).all())
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
    shares, _ = best_mixture(errors[usable], values[usable], limits, worth=worth)
    shares = np.where(shares < NEGLIGIBLE, 0.0, shares)
    out = np.zeros(len(errors))
    out[usable] = shares / shares.sum()
    return out
