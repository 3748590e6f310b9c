"""Counts of rows, released once: how they are asked and at what price, the law of their noise, what
is possible beside them, and exact intervals. One release serves post-processing, certificates,
private tables, monitors and released groups; all else is arithmetic.

Plan. Each row is counted in one place, so a histogram moves by 1 (L1 and L2) where a row comes or
goes, by 2 and sqrt 2 where it changes. Where sensitive features alone are protected, totals over
groups are exact and free; of two groups the first alone is asked, which moves by 1 and 1, and the
second is the totals less those. Of persons with k rows all is k times that.

Rates. Of n independent people S are selected with probability p each and N = n - S are not;
released are s = S + Z and m = N + Z', with independent whole-number noises of known law. At the
true p

    T(p) = (1 - p) (S + Z) - p (N + Z')

has mean 0 whatever n is. A rate p is refused as too large where T(p) is as small as it was seen
with probability at most `level`, for every n in a confidence set, whose own miss is added:

    u(p) = max over n near s + m of P(T(p) <= t(p))  +  P(n is not near s + m)  +  what the laws miss.

T(p) <= t(p) is S <= s - Z + p (n + Z + Z' - s - m), so given the noises it is a tail of the
binomial distribution. The upper bound is the end of the set of rates that are not refused. Nothing
is assumed of how u(p) runs: u is bounded over whole intervals of p (and of n) at a time, because S
grows with p and n (a coupling) and the right side is linear in p (docs/certificates.md).

Guarantees (tests/methods/test_methods_counts.py):
1. A plan is one event, made of the promise, the shape of the table and what was spent before; it
   keeps the promise together with that, also where that had been looked at (`two_steps`). One
   neighbour moves what is asked by what the plan says. `noise` is the law the curator draws from.
2. What a tail says is exceeded is exceeded with at most that probability. The weights of a law are
   those of the sampler, and no probability is lost: `weights` and `missed` add up to at least 1.
3. For every n, p, kind and size of noise `upper_bounds` lies below p with probability at most its
   level (exact, by enumeration).
4. Consistent counts are not negative and have the known sums; nothing nearer has them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from .._types import Floats, Ints
from ..core import cost as accounting
from ..core.events import (
    Composed,
    DiscreteLaplace,
    Event,
    Gaussian,
    NonPrivate,
    NoOp,
    Repeated,
    compose,
)
from ..core.promise import Promise
from ..curator import (
    Attached,
    AttachedHistogram,
    CodeHistogram,
    Curator,
    Measurement,
    Question,
)
from ..errors import BudgetError
from ..facts import Cells
from ..privacy import calibration as two_steps
from ..privacy.calibration import calibrate

LAPLACE, GAUSSIAN, NONE = "discrete-laplace", "gaussian", "none"
LAST_BITS = 1e-9  # a price that is computed again may differ by so much
WIDEST = 1.25
"""How much more noise than the promise asks is worth a price of nothing."""
GRID = 0.5
"""Rounding moves a Gaussian by half a unit of the grid of the sums at most: of whole numbers,
without weights."""
FARTHEST = 1e-14  # probability of one noise that is left out on each side
ROUNDING = 1e-13  # added for the rounding of a convolution
FOR_SIZE, FOR_TABLES = 0.02, 0.002
"""The parts of the smallest level that are charged for not knowing how many people there are, and
that the laws of the noises may miss."""
FINE = 0.008  # of a standard deviation: how near a bound is found
MOST_AT_ONCE = 1 << 21  # numbers of a table
TIMES = 30  # rounds between two sets of sums

# -- the law of the noise --------------------------------------------------------------------------


@dataclass(frozen=True)
class CountNoise:
    """The law of the noise of one count: `kind` "none", "gaussian" (standard deviation `scale`) or
    "discrete-laplace" (P(x) proportional to exp(-|x| / scale))."""

    kind: str
    scale: float

    @property
    def sd(self) -> float:
        """The standard deviation."""
        if self.kind == LAPLACE:
            r = math.exp(-1.0 / self.scale)
            return math.sqrt(2.0 * r) / (1.0 - r)
        return self.scale if self.kind == GAUSSIAN else 0.0

    def tail(self, probability: float) -> float:
        """The least w with P(|noise| > w) <= probability: exact tails.

        Discrete Laplace, r = exp(-1 / scale): P(|x| > w) = 2 r^(w + 1) / (1 + r) for whole w.
        """
        if self.kind == NONE:
            return 0.0
        if self.kind == GAUSSIAN:
            return float(-special.ndtri(probability / 2.0)) * self.scale + GRID
        r = math.exp(-1.0 / self.scale)
        least = self.scale * math.log(2.0 / ((1.0 + r) * probability)) - 1.0
        return max(0.0, math.ceil(least - 1e-12))

    def sum_tail(self, count: int, probability: float) -> float:
        """A number that the sum of `count` independent |noise| exceeds with at most this
        probability: Chernoff's bound,

            min over t of (count log E exp(t |x|) + log 1/probability) / t,

        or count x `tail`, whichever is less.
        """
        if self.kind == NONE or not count:
            return 0.0
        if self.kind == GAUSSIAN:
            t = np.geomspace(1e-3, 1e2, 400) / self.scale
            # E exp(t |G|) = 2 exp(t^2 s^2 / 2) Phi(t s) for G of deviation s.
            logs = np.log(2.0) + (t * self.scale) ** 2 / 2.0 + special.log_ndtr(t * self.scale)
        else:
            r = math.exp(-1.0 / self.scale)
            t = np.linspace(0.0, 1.0, 402)[1:-1] / self.scale
            rising = np.exp(t - 1.0 / self.scale)
            logs = np.log((1.0 - r) / (1.0 + r) * (1.0 + 2.0 * rising / (1.0 - rising)))
        chernoff = float(((count * logs - math.log(probability)) / t).min())
        more = count * GRID if self.kind == GAUSSIAN else 0.0
        return min(chernoff + more, count * self.tail(probability / count))

    def walk_tail(self, length: int, walks: int, probability: float) -> float:
        """A number that a sum of `walks` independent M exceeds with at most this probability, where
        M is the largest size that a sum of the first or of the last s of `length` independent
        noises has, over all s.

        The noise is symmetric, so by Levy's inequality P(M > x) <= 4 P(|S| > x) for the whole sum
        S, and E exp(t M) <= 8 E exp(t S) - 3; Chernoff's bound follows. Or the sum of all sizes
        (`sum_tail`), whichever is less.
        """
        if self.kind == NONE or not walks or not length:
            return 0.0
        t, logs = self._cumulants()
        each = length * logs + np.log(8.0 - 3.0 * np.exp(-length * logs))
        chernoff = float(((walks * each - math.log(probability)) / t).min())
        # Both hold, and which of them is less depends on public numbers alone.
        return min(chernoff, self.sum_tail(length * walks, probability))

    def _cumulants(self) -> tuple[Floats, Floats]:
        """Numbers t, and at least log E exp(t x) for each."""
        if self.kind == GAUSSIAN:
            t = np.geomspace(1e-4, 1e2, 600) / max(self.scale, 1e-3)
            t = t[t < 300.0]
            ts = t * self.scale
            # rounded: |x| is at most |g| + 1/2 and x is symmetric, so E exp(t x) = E cosh(t x) <= E
            # cosh(t (|g| + 1/2))
            rounded = np.cosh(t * GRID) + np.sinh(t * GRID) * special.erf(ts / math.sqrt(2.0))
            return t, np.asarray(ts**2 / 2.0 + np.log(rounded))
        r = math.exp(-1.0 / self.scale)
        parts = [np.geomspace(1e-3, 0.1, 200), np.linspace(0.1, 1.0, 402)[1:-1]]
        t = np.concatenate(parts) / self.scale
        rising, falling = np.log1p(-np.exp(t - 1.0 / self.scale)), np.log1p(-r * np.exp(-t))
        return t, np.asarray(2.0 * math.log1p(-r) - rising - falling)


EXACT = CountNoise(NONE, 0.0)


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """P(noise = low + i) = `weights[i]`, and `missed` for everything else: whoever adds up a tail
    adds it, and never rescales the rest. Symmetric around 0."""

    low: int
    weights: Floats
    missed: float

    @cached_property
    def values(self) -> npt.NDArray[np.int64]:
        """The values that have weights."""
        return self.low + np.arange(len(self.weights))

    @property
    def reach(self) -> int:
        """The largest of them."""
        return -self.low

    @property
    def variance(self) -> float:
        """Of the values that have weights."""
        return float((self.weights * self.values.astype(np.float64) ** 2).sum())

    @cached_property
    def _sums(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.weights)])

    def below(self, edges: Ints) -> Floats:
        """P(noise < edge), of the values that have weights."""
        return np.asarray(self._sums[np.clip(edges - self.low, 0, len(self.weights))])

    def radius(self, probability: float) -> int:
        """The least w with P(|noise| > w) <= probability, as far as the weights say; what is missed
        counts as beyond."""
        half = len(self.weights) // 2
        # From the smallest weights up, so that the tail keeps its digits.
        beyond = self.missed + 2.0 * np.append(np.cumsum(self.weights[:half])[::-1], 0.0)
        return int(np.argmax(beyond <= probability)) if (beyond <= probability).any() else half

    def cut(self, probability: float) -> NoiseLaw:
        """The same without its tails, whose probability, at most about this much, is missed from
        now on."""
        half, w = len(self.weights) // 2, self.radius(self.missed + probability)
        cut_off = self.weights[: half - w].sum() + self.weights[half + w + 1 :].sum()
        return NoiseLaw(-w, self.weights[half - w : half + w + 1], self.missed + float(cut_off))


@cache
def distribution_of_sum(noise: CountNoise, count: int) -> NoiseLaw:
    """The law of the sum of `count` independent noises. The curator draws whole numbers: a discrete
    Laplace, or a Gaussian rounded to the nearest whole number. Sums are convolved."""
    if noise.kind == NONE or count == 0:
        return NoiseLaw(0, np.ones(1), 0.0)
    if count == 1:
        return _one(noise.kind, noise.scale)
    half = distribution_of_sum(noise, count // 2)
    whole = _added(half, half)
    return whole if count % 2 == 0 else _added(whole, distribution_of_sum(noise, 1))


def _one(kind: str, scale: float) -> NoiseLaw:
    if kind == GAUSSIAN:
        far = math.ceil(-float(special.ndtri(FARTHEST)) * scale) + 1
        away = np.arange(far + 1, dtype=np.float64)
        # P(round(scale G) = k) by upper tails, which keep their digits far out.
        half = special.ndtr(-(away - 0.5) / scale) - special.ndtr(-(away + 0.5) / scale)
        missed = 2.0 * float(special.ndtr(-(far + 0.5) / scale))
    else:
        r = math.exp(-1.0 / scale)
        far = max(1, math.ceil(-scale * math.log(FARTHEST)))
        # P(k) = (1 - r)/(1 + r) r^|k|; the two tails beyond `far` have 2 r^(far+1)/(1 + r).
        half = (1.0 - r) / (1.0 + r) * np.exp(-np.arange(far + 1) / scale)
        missed = 2.0 * r ** (far + 1) / (1.0 + r)
    return NoiseLaw(-far, np.concatenate([half[:0:-1], half]), missed + ROUNDING)


def _added(one: NoiseLaw, other: NoiseLaw) -> NoiseLaw:
    weights = np.convolve(one.weights, other.weights)
    # A sum of symmetric noises is symmetric; what rounding made of it is not.
    weights = (weights + weights[::-1]) / 2.0
    whole = NoiseLaw(one.low + other.low, weights, one.missed + other.missed + ROUNDING)
    return whole.cut(2.0 * FARTHEST)


# -- the plan of the release -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountPlan:
    """How rows are counted, once, and at what price. `kind`, `multiplier`: of the noise; "none" and
    0: exactly, where nobody's privacy depends on it. `cells`: by which the curator counts beside
    what is attached to the rows. `rows`: how many rows of one who is protected are counted at most;
    `times`: in how many such releases they may be."""

    promise: Promise
    kind: str
    multiplier: float
    cells: Cells | None = None
    rows: int = 1
    times: int = 1

    @property
    def totals_are_public(self) -> bool:
        """Only how rows divide among groups is not public."""
        return self.promise.is_private and self.promise.protects == "sensitive_features"

    @property
    def one_group(self) -> bool:
        """Two groups and public totals: the counts of the first tell those of the second."""
        return self.totals_are_public and self.cells is not None and self.cells.count == 2

    @property
    def moved(self) -> int:
        """The L1 sensitivity."""
        return self._of_a_row * self.rows

    @property
    def length(self) -> float:
        """The L2 sensitivity: all rows of a person may lie in one place (theory.md#units)."""
        return math.sqrt(self._of_a_row) * self.rows

    @property
    def _of_a_row(self) -> int:
        return 1 if self.one_group or self.promise.neighbours == "add-remove" else 2

    @property
    def event(self) -> Event:
        """The release, as the curator will log it."""
        if not self.promise.is_private:
            return NonPrivate()
        if not self.multiplier:
            return NoOp()
        if self.kind == LAPLACE:
            return DiscreteLaplace(self.multiplier, self.moved)
        return Gaussian(self.multiplier)

    @property
    def together(self) -> Event:
        """All releases in which one who is protected may be counted."""
        return self.event if self.times == 1 else Repeated(self.event, self.times)

    @property
    def noise(self) -> CountNoise:
        """The law of the noise of each count."""
        return self.law(1.0)

    def law(self, largest_weight: float) -> CountNoise:
        """The same of rows that weigh at most so much."""
        if not self.multiplier:
            return EXACT
        if self.kind == LAPLACE:
            return CountNoise(LAPLACE, self.multiplier * self.moved)
        return CountNoise(GAUSSIAN, self.multiplier * self.length * largest_weight)

    def measurement(self, attached: Attached, *, by_label: bool = False) -> Measurement:
        """The question, with its noise."""
        question = histogram_of(attached, self.cells, by_label, 0 if self.one_group else None)
        return Measurement(question, self.multiplier, self.kind if self.multiplier else GAUSSIAN)

    def release(
        self,
        curator: Curator,
        attached: Attached,
        purpose: str,
        *,
        by_label: bool = False,
        totals: Floats | None = None,
        largest_weight: float = 1.0,
    ) -> Counted:
        """Ask once, and put the answer together: (cells, codes), or (cells, labels, codes). `totals`
        over cells: where they are public and not given, they are asked exactly."""
        asked = [self.measurement(attached, by_label=by_label)]
        public = self.totals_are_public and (self.cells is not None or not self.multiplier)
        if public and totals is None and self.cells is not None:
            asked.append(Measurement(histogram_of(attached, None, by_label), 0.0))
        answers = curator.answer(asked, purpose=purpose)
        raw, last = (np.asarray(answers[at], np.float64) for at in (0, -1))
        axes = raw.shape[-2 if by_label else -1 :]
        raw = raw.reshape(-1, *axes)
        if public and totals is None:
            totals = last.reshape(-1, *axes)[0]
        noise = self.law(largest_weight)
        return Counted(raw if totals is None else self.whole(raw, totals), totals, noise)

    def whole(self, raw: Floats, totals: Floats) -> Floats:
        """Answers (cells, ...) of all groups, from what was asked and public totals."""
        return np.concatenate([raw, totals - raw]) if self.one_group else raw


@dataclass(frozen=True, eq=False)
class Counted:
    """One release of counts, as it came out: `raw` (cells, ...), noisy; `totals`: their sums over
    cells, where these are public, else None; `noise`: the law of each one's noise. Counts of the
    second of two groups with public totals are these less those of the first."""

    raw: Floats
    totals: Floats | None
    noise: CountNoise

    @property
    def one_group(self) -> bool:
        """Whether only the first cell's counts have noise of their own."""
        return self.totals is not None and len(self.raw) == 2

    @property
    def independent(self) -> int:
        """How many counts have noise of their own."""
        return int(self.raw[0].size) if self.one_group else int(self.raw.size)

    def box(self, probability: float) -> tuple[Floats, Floats]:
        """Bounds between which all true counts lie, together, but for this probability."""
        w = self.noise.tail(probability / self.independent)
        most = np.broadcast_to(np.inf if self.totals is None else self.totals, self.raw.shape)
        low = np.minimum(np.maximum(self.raw - w, 0.0), most)
        return low, np.maximum(np.minimum(self.raw + w, most), low)


def histogram_of(
    attached: Attached,
    cells: Cells | None,
    by_label: bool,
    group: int | None = None,
) -> Question:
    """How many rows of each cell (and label) have each code, or each decision of a model."""
    kind = CodeHistogram if attached.is_code else AttachedHistogram
    return kind(attached, cells, by_label, "hard", group)


def plan_counts(
    promise: Promise,
    cells: Cells | None = None,
    *,
    reads_groups: bool = True,
    rows: int = 1,
    times: int = 1,
    spent: Iterable[Event] = (),
    looked_at: bool = False,
    weighted: bool = False,
    pure: bool = False,
) -> CountPlan:
    """The plan of the least variance that keeps the promise beside `spent`, what was released
    before: discrete Laplace, or Gaussian where there is a delta.

    `reads_groups`: whether what is counted depends on sensitive columns; where they alone are
    protected, other counts are free. `times`: so many such releases together keep the promise.
    `looked_at`: what was spent had been seen before this was asked
    for; else both are one plan, fixed in advance. `weighted`: sums of weights are not whole
    numbers, so their noise is Gaussian. `pure`: no delta is spent.
    """
    before = compose(tuple(spent))
    looked_at = looked_at and not isinstance(before, NoOp)
    free = not promise.is_private or (promise.protects == "sensitive_features" and not reads_groups)
    require_room(promise, before, more=not free, looked_at=looked_at)
    exact = CountPlan(promise, NONE, 0.0, cells, rows, times)
    if free:
        return exact
    target = replace(promise, delta=0.0) if pure else promise
    target = two_steps.within(promise, before) if looked_at else target

    def at(kind: str, z: float) -> CountPlan:
        return replace(exact, kind=kind, multiplier=z)

    def priced(kind: str, z: float) -> Event:
        own = at(kind, z).together
        own = two_steps.reference(own, promise.neighbours) if looked_at else own
        return compose((before, own))

    kinds = [] if weighted else [LAPLACE]
    if weighted or (promise.delta > 0 and not pure):
        kinds.append(GAUSSIAN)
    found, refused = list[CountPlan](), list[BudgetError]()
    for kind in kinds:
        try:
            found.append(at(kind, calibrate(target, lambda z, k=kind: priced(k, z)).multiplier))  # type: ignore[misc]
        except BudgetError as error:
            # Gaussian noise needs some delta, which `spent` may have used up
            refused.append(error)
    if not found:
        raise refused[-1]
    return min(found, key=lambda one: one.noise.sd)


def require_room(promise: Promise, spent: Event, *, more: bool, looked_at: bool = False) -> None:
    """The promise must hold what was spent before, and leave something where `more` is to be
    released."""
    if not promise.is_private or isinstance(spent, NoOp):
        return
    kept = two_steps.within(promise, spent) if more and looked_at else promise
    taken = accounting.epsilon(spent, kept.delta, promise.neighbours)
    if taken > promise.epsilon * (1.0 + LAST_BITS) or (more and taken >= promise.epsilon):
        left = "something left of" if more else "at most"
        counts = " for the counts of groups, labels and decisions" if more else ""
        chosen = (
            f" of delta = {promise.delta:g}, for counts that are chosen after the base was there "
            "to be looked at"
        )
        unfitted = ", or pass it unfitted: then both are one plan" if looked_at else ""
        raise BudgetError.expected(
            f"{left} epsilon={promise.epsilon:g}{counts}",
            of="the base classifier's price",
            got=f"epsilon {_up(taken)} at delta {kept.delta:g}"
            + (chosen if kept.delta < promise.delta else ""),
            remedy=f"Pass epsilon above {_up(taken)}, or fit the base classifier with "
            f"less{unfitted}.",
        )


def _up(epsilon: float) -> str:
    """Six digits, rounded up: who promises more than that has room.

    >>> _up(1.0000001), _up(0.5), _up(math.inf)
    ('1.00001', '0.5', 'inf')
    """
    if not math.isfinite(epsilon) or epsilon == 0.0 or float(f"{epsilon:.6g}") >= epsilon:
        return f"{epsilon:.6g}"
    step = 10.0 ** (math.floor(math.log10(epsilon)) - 5)
    return f"{epsilon + step:.6g}"


def beside(promise: Promise, before: Event) -> CountPlan | None:
    """Counts of other people that cost nothing beside a release that is charged, whose Gaussian
    part covers them: they lose no more at any epsilon, and a person is in one of both
    (theory.md#one-price). None: it has none, or too little for useful counts."""
    precision = _gaussian(before)
    if precision <= 0.0 or promise.delta <= 0.0:
        return None
    own = calibrate(promise, Gaussian).multiplier
    found = CountPlan(promise, GAUSSIAN, max(1.0 / math.sqrt(precision), own))
    return found if found.multiplier <= WIDEST * own else None


def _gaussian(event: Event) -> float:
    """The sum of 1 / multiplier^2 of all its Gaussian releases that every row is in."""
    match event:
        case Gaussian():
            return 1.0 / event.noise_multiplier**2
        case Repeated():
            return event.count * _gaussian(event.event)
        case Composed():
            return math.fsum(map(_gaussian, event.events))
    return 0.0


def noise_of(event: Event, neighbours: str) -> CountNoise | None:
    """The law of each count's noise, from the event of the release that was logged; None where no
    release of counts has it."""
    if isinstance(event, DiscreteLaplace):
        return CountNoise(LAPLACE, event.noise_multiplier * event.sensitivity)
    if isinstance(event, Gaussian):
        length = math.sqrt(1.0 if neighbours == "add-remove" else 2.0)
        return CountNoise(GAUSSIAN, event.noise_multiplier * length)
    return EXACT if isinstance(event, NoOp | NonPrivate) else None


# -- possible counts near released ones ------------------------------------------------------------


def onto_totals(raw: Floats, totals: Floats) -> Floats:
    """The nearest point with x >= 0 and sum over the first axis = totals: x = max(raw - t, 0).

    t is found from sorted values (Held, Wolfe and Crowder 1974). It is no further from the truth
    than `raw` is, and sum |x - truth| <= 2 sum |raw - truth| (docs/post_processing.md).
    """
    flat, wanted = raw.reshape(len(raw), -1), totals.ravel()
    ordered = -np.sort(-flat, axis=0)
    # The level at which what is left above it has the wanted sum.
    sizes = np.arange(1, len(raw) + 1)[:, np.newaxis]
    levels = (np.cumsum(ordered, axis=0) - wanted) / sizes
    kept = np.maximum((ordered > levels).sum(axis=0) - 1, 0)
    t = levels[kept, np.arange(flat.shape[1])]
    out = np.where(wanted > 0, np.maximum(flat - t, 0.0), 0.0)
    return np.asarray(out.reshape(raw.shape))


def possible_counts(raw: Floats, totals: Floats | None) -> Floats:
    """Counts (cells, labels, bins) near `raw`, not negative, that keep each cell's and label's
    number: zeros for negative bins would add rows to a small group, bin by bin. `totals` (labels,
    bins): over cells, where they are public."""

    def onto_numbers(counts: Floats) -> Floats:
        return np.moveaxis(onto_totals(np.moveaxis(counts, 2, 0), numbers), 0, 2)

    numbers = np.maximum(raw.sum(axis=2), 0.0)
    if totals is None:
        return onto_numbers(raw)
    numbers = onto_totals(raw.sum(axis=2), totals.sum(axis=1))
    out = raw
    # in turn: the limit has both, and the last has the public totals to the bit
    for _ in range(TIMES):
        out = onto_totals(onto_numbers(out), totals)
    return out


def consistent_counts(released: Floats, known: Floats | None) -> Floats:
    """Whole counts (cells, kinds) near the released ones, rounded by largest remainders. `known`:
    the public sum of all (a number), or of each kind (kinds,). For reading alone: intervals are
    made from the released counts, for a projection has no known law.

    >>> consistent_counts(np.array([[-2.0, 5.0], [4.0, 1.0]]), None)
    array([[0., 5.],
           [3., 0.]])
    """
    if known is not None and np.ndim(known):
        columns = zip(released.T, np.ravel(known), strict=True)
        return np.stack([_projected(column, float(total)) for column, total in columns], axis=1)
    total = max(0.0, float(released.sum())) if known is None else float(known)
    return _projected(released.ravel(), total).reshape(released.shape)


def _projected(values: Floats, total: float) -> Floats:
    exact = onto_totals(values[:, np.newaxis], np.array([total]))[:, 0]
    whole = np.floor(exact + 1e-9)
    lacking = round(total - whole.sum())
    left = np.round(exact - whole, 9)  # ties in order, whatever the last digits are
    whole[np.argsort(-left, kind="stable")[:lacking]] += 1.0
    return np.asarray(whole)


# -- exact bounds of a rate ------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two released counts of one event, and of how many noises each is the sum."""

    selected: float
    others: float
    selected_noises: int = 1
    others_noises: int = 1

    @property
    def turned(self) -> Pair:
        """The others as the selected ones."""
        return Pair(self.others, self.selected, self.others_noises, self.selected_noises)


@dataclass(frozen=True)
class CountedRate:
    """P(outcome | event), as counts: those where the outcome is so (`hits`), and the others of the
    event."""

    name: str
    hits: tuple[int, ...]
    rest: tuple[int, ...]

    def counted(self, counts: Floats, noises: int = 1) -> Pair:
        """Its two released counts; each of `counts` is the sum of so many noises."""
        hits, rest = list(self.hits), list(self.rest)
        found = float(counts[hits].sum()), float(counts[rest].sum())
        return Pair(*found, noises * len(hits), noises * len(rest))


def upper_bounds(counted: Pair, noise: CountNoise, levels: Sequence[float]) -> Floats:
    """For each level a number that the population rate exceeds with at most that probability.

    >>> upper_bounds(Pair(30, 270), CountNoise("none", 0.0), [0.025]).round(4)
    array([0.1398])
    """
    found = _upper_bounds(counted, noise, tuple(sorted(set(levels))))
    return np.array([found[level] for level in levels])


@lru_cache(maxsize=4096)  # results and their pages ask for the same ones again
def _upper_bounds(
    counted: Pair, noise: CountNoise, levels: tuple[float, ...]
) -> dict[float, float]:
    """By level, which ascend."""
    search, found, top = _Search(counted, noise, levels[0]), dict[float, float](), 1.0
    for level in levels:
        found[level] = top = search.down(top, level)
    return found


def lower_bounds(counted: Pair, noise: CountNoise, levels: Sequence[float]) -> Floats:
    """For each level a number that the population rate falls below with at most that
    probability."""
    return 1.0 - upper_bounds(counted.turned, noise, levels)


def fewest_people(counted: Pair, noise: CountNoise, level: float) -> int:
    """A number that the people counted fall below with at most this probability; 0 where there may
    be none."""
    law = distribution_of_sum(noise, counted.selected_noises + counted.others_noises)
    return max(0, math.ceil(counted.selected + counted.others) - law.radius(2.0 * level))


class _Search:
    """The descent from 1, with all that does not depend on p."""

    def __init__(self, counted: Pair, noise: CountNoise, smallest: float) -> None:
        self.seen, self.rest = float(counted.selected), float(counted.others)
        self.total = self.seen + self.rest
        noises = counted.selected_noises, counted.others_noises
        laws = [distribution_of_sum(noise, k) for k in noises]
        self.first, self.second = (law.cut(FOR_TABLES * smallest / 2.0) for law in laws)
        share = 0.0 if noise.kind == NONE else FOR_SIZE * smallest
        radius = distribution_of_sum(noise, sum(noises)).radius(share) if share else 0
        # What the tables and the set of sizes n leave out counts against every level, and is never
        # scaled away.
        self.added = self.first.missed + self.second.missed + share
        self.fewest = max(0, math.ceil(self.total - radius - 1e-9))
        self.most = max(self.fewest, math.floor(self.total + radius + 1e-9))
        n = max(self.total, 1.0)
        self.guess = min(max(self.seen / n, 0.0), 1.0)
        # Only a scale for the search: one more of each keeps it above 0 where nobody was selected.
        p = (self.guess * n + 1.0) / (n + 2.0)
        parts = (1 - p) ** 2 * laws[0].variance + p**2 * laws[1].variance
        self.deviation = math.sqrt(n * p * (1 - p) + parts)
        self.step = self.deviation / n

    def down(self, top: float, level: float) -> float:
        """The least rate such that all above it, from `top` on, are refused at `level`."""
        # The level is used up by what is not known: no rate can be refused.
        if self.added >= level:
            return top
        margin = FINE * self.step
        low = self._crossing(top, level) + margin
        while low < top:
            if self._clear(low, top, level):
                return low
            # The guess was too low. Ever larger steps, so that the search ends.
            low, margin = low + margin, 2.0 * margin
        return top

    def _crossing(self, top: float, level: float) -> float:
        """About where u(p) is `level`: with the most people alone, which proves nothing and saves
        time."""
        people, wanted = np.array([self.most]), float(special.ndtri(level))

        def over(p: float) -> float:
            tail = self._tails(people, people, p, p)[0] + self.added
            return float(special.ndtri(min(max(tail, 1e-300), 1.0 - 1e-16))) - wanted

        low, high, near = self.guess, top, 0.3 * FINE * self.step
        p = self.guess - wanted * self.step
        for _ in range(40):
            if not low < p < high:
                p = (low + high) / 2.0
            far = over(p) * self.step  # the normal score falls by about 1 a standard deviation
            low, high = (p, high) if far > 0.0 else (low, p)
            if abs(far) <= near or high - low <= near:
                break
            p += far
        return high if high - low <= near else p

    def _clear(self, low: float, top: float, level: float) -> bool:
        """Whether every rate from `low` to `top` is refused, interval by interval."""
        width = 0.1 * self.step
        while low < top:
            high = min(low + width, top)
            if self._refuses(low, high, level):
                low, width = high, 16.0 * width
            elif width < 0.002 * self.step:
                return False
            else:
                width /= 5.0
        return True

    def _refuses(self, low: float, high: float, level: float) -> bool:
        """Whether every rate from `low` to `high` is refused, for every n. A bound over a block of
        n takes the worst n and the worst p of it by themselves: cutting blocks makes it closer."""
        starts, ends = np.array([self.fewest]), np.array([self.most])
        while len(starts):
            failed = self._tails(starts, ends, low, high) + self.added > level
            starts, ends = starts[failed], ends[failed]
            if ((ends - starts) * min(low, 1.0 - low) <= 0.01 * self.deviation).any():
                return False  # so narrow that cutting it would win nothing
            cuts = np.stack([starts + (ends + 1 - starts) * k // 4 for k in range(5)])
            left, right = cuts[:-1].ravel(), cuts[1:].ravel() - 1
            starts, ends = left[left <= right], right[left <= right]
        return True

    def _tails(self, starts: Ints, ends: Ints, low: float, high: float) -> Floats:
        """At least P(T <= t) for each block of n and every p from `low` to `high`.

        With y = Z + Z' and t = n + y the event is S <= a(t) - Z, a(t) = floor(s + p (t - s - m)),
        which has the same value for a run of y; given the run and Z, Z' lies in an interval. Above
        one half it is written for N = n - S instead.
        """
        below = low < 0.5
        one, other = (self.first, self.second) if below else (self.second, self.first)
        reach = one.reach + other.reach
        y = np.arange(-reach, reach + 1)
        # S grows with n and p (a coupling), so a block's smallest n bounds its tail, and its
        # largest n the threshold.
        away = (ends if below else starts)[:, np.newaxis] + y - self.total
        if below:
            places = np.floor(self.seen + np.maximum(low * away, high * away) + 1e-9)
        else:
            places = np.ceil(self.rest + np.minimum((1.0 - low) * away, (1.0 - high) * away) - 1e-9)
        places = places.astype(np.int64)
        people, p = (starts, low) if below else (ends, 1.0 - low)
        out = np.empty(len(starts))
        width = int((places[:, -1] - places[:, 0]).max()) + 1
        chunk = max(1, MOST_AT_ONCE // (width * len(one.values)))
        for a in range(0, len(starts), chunk):
            part = slice(a, a + chunk)
            out[part] = _expected(places[part], people[part], p, y, one, other, below=below)
        return out


def _expected(
    places: Ints, people: Ints, p: float, y: Ints, one: NoiseLaw, other: NoiseLaw, *, below: bool
) -> Floats:
    """The sum over Z and runs of y of P(S <= a - Z), or P(N >= a - Z), for each block."""
    first = places[:, :1]
    runs = np.arange(int((places[:, -1] - first[:, 0]).max()) + 2)
    starts = zip(places, first[:, 0], strict=True)
    edges = np.stack([np.searchsorted(line, start + runs) for line, start in starts]) + y[0]
    # For each run of y and each Z: how likely Z' puts y into the run.
    upto = other.below(edges[:, :, np.newaxis] - one.values)
    weights = upto[:, 1:] - upto[:, :-1]
    span = np.arange(-one.reach, len(runs) - 1 + one.reach + 1)
    table = _binomial(first + span, people[:, np.newaxis], p, below=below)
    picked = runs[:-1, np.newaxis] - one.values + one.reach
    return np.asarray(np.einsum("bak,bak,k->b", weights, table[:, picked], one.weights))


def _binomial(k: Ints, n: Ints, p: float, *, below: bool) -> Floats:
    """P(X <= k), or P(X >= k), of a binomial X."""
    if below:
        # The incomplete beta function is P(X <= k) = I(n - k, k + 1; 1 - p), for 0 <= k < n.
        inside = np.clip(k, 0, np.maximum(n - 1, 0))
        found = special.betainc(np.maximum(n - inside, 1.0), inside + 1.0, 1.0 - p)
        return np.asarray(np.where(k < 0, 0.0, np.where(k >= n, 1.0, found)))
    inside = np.clip(k, 1, np.maximum(n, 1))
    found = special.betainc(inside, np.maximum(n - inside, 0) + 1.0, p)
    return np.asarray(np.where(k <= 0, 1.0, np.where(k > n, 0.0, found)))
