"""The exact samplers themselves, in integers and correctly rounded decimals, at any number of
digits.

`fast` decides nearly every draw from the same words; what it cannot decide is made
here, from those words and further digits of the extension lane. Each function below *is* the
distribution: it compares real numbers whose binary digits are drawn as they are needed, so it
returns what an ideal machine with infinitely many random bits would return.

Decimals: `decimal` rounds +, -, x, /, ln and exp correctly, so an expression of a few of them at
precision p is within a relative 10^(5-p) of the truth term by term; every bound here is widened by
that.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import isqrt

# floor(2^31 P(K <= k)) for P(K = k) ~ exp(-k^2/2): the whole parts of a normal proposal.
GAUSSIAN_STEPS = (
    1224813964,
    1967701186,
    2133461731,
    2147068185,
    2147479064,
    2147483629,
    2147483647,
)

_EXTENSION_BITS = 64


class Tape:
    """Where the words come from: `half()` and `word()` read a stream's main lane, `more()` 64 bits
    of its extension lane."""

    __slots__ = ("half", "more", "word")

    def __init__(
        self, half: Callable[[], int], word: Callable[[], int], more: Callable[[], int]
    ) -> None:
        self.half, self.word, self.more = half, word, more


class Uniform:
    """A real number uniform on [0, 1) of which `bits` binary digits are known: it lies in [known,
    known + 1) / 2^bits."""

    __slots__ = ("bits", "known", "tape")

    def __init__(self, tape: Tape, known: int, bits: int) -> None:
        self.tape, self.known, self.bits = tape, known, bits

    def extend(self) -> None:
        """Draw 64 further digits."""
        self.known = (self.known << _EXTENSION_BITS) | self.tape.more()
        self.bits += _EXTENSION_BITS

    def top(self, bits: int) -> int:
        """The first `bits` digits."""
        while self.bits < bits:
            self.extend()
        return self.known >> (self.bits - bits)

    def below(self, other: Uniform) -> bool:
        """Whether this number is the smaller one; equal digits are extended until they differ."""
        bits = min(self.bits, other.bits)
        while True:
            mine, theirs = self.top(bits), other.top(bits)
            if mine != theirs:
                return mine < theirs
            bits += _EXTENSION_BITS

    def survival(self, context: decimal.Context) -> tuple[Decimal, Decimal]:
        """Bounds on E = -ln(1 - this), an exponential variable; the upper one may be infinite."""
        unit = Decimal(1 << self.bits)
        rest = (1 << self.bits) - self.known
        low = context.ln(context.divide(Decimal(rest), unit)).copy_negate()
        high = (
            context.ln(context.divide(Decimal(rest - 1), unit)).copy_negate()
            if rest > 1
            else Decimal("Infinity")
        )
        return widened(low, context, -1), widened(high, context, 1)


def context_of(bits: int, guard: int = 0) -> decimal.Context:
    """A context in which a binary fraction of so many bits is exact, with `guard` digits to
    spare."""
    return decimal.Context(
        prec=bits + 40 + guard,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=decimal.MIN_EMIN,
        Emax=decimal.MAX_EMAX,
        traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
    )


def widened(value: Decimal, context: decimal.Context, direction: int) -> Decimal:
    """`value` moved outwards (-1: down, 1: up) by a relative 10^(8 - precision): the roundings of a
    few operations."""
    if not value.is_finite() or not value:
        return value
    away = Decimal(direction if value > 0 else -direction)
    return context.multiply(value, context.add(Decimal(1), away.scaleb(8 - context.prec, context)))


@lru_cache(maxsize=256)
def _step_bounds(k: int, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds on P(K <= k) = sum_{i<=k} exp(-i^2/2) / sum_i exp(-i^2/2), closer than 2^-bits."""
    digits = bits + 10
    context = context_of(digits)
    # exp(-last^2/2) < 10^-digits, and the tail behind is less than twice its first term
    last = isqrt(8 * digits) + 2
    terms = [context.exp(context.divide(Decimal(-i * i), Decimal(2))) for i in range(last + 1)]
    part = sum((Fraction(term) for term in terms[: k + 1]), Fraction(0))
    whole = sum((Fraction(term) for term in terms), Fraction(0))
    slack = Fraction(1, 10 ** (digits - 2))
    return part / (whole + slack) - slack, part / whole + slack


def _whole_part(u: Uniform) -> int:
    """K with P(K = k) ~ exp(-k^2/2), by inversion of `u`."""
    k = 0
    while True:
        low, high = _step_bounds(k, u.bits + 8)
        # Whatever digits follow, u lies below P(K <= k).
        if Fraction(u.known + 1, 1 << u.bits) <= low:
            return k
        if Fraction(u.known, 1 << u.bits) >= high:
            k += 1
        else:
            u.extend()


def below(half: Callable[[], int], m: int) -> int:
    """Uniform on 0..m-1 by multiplication and rejection (Lemire), from halves."""
    # 2^32 values cannot be shared evenly among m faces; the excess is thrown again.
    least = (1 << 32) % m
    while True:
        product = half() * m
        if product % (1 << 32) >= least:
            return product >> 32


def _shortfall(tape: Tape, k: int, x: Uniform) -> bool:
    """Karney's algorithm B: true with probability exp(-x(2k+x)/(2k+2)).

    A falling run x > z_1 > z_2 > ... continues with probability (2k+x)/(2k+2) a step, so it is
    longer than n with probability (x(2k+x)/(2k+2))^n / n!, and its length is even with probability
    the alternating sum, the exponential.
    """
    y, even = x, True
    while True:
        z = Uniform(tape, tape.half(), 32)
        if not z.below(y):
            return even
        # Stops at 0, and at 1 with probability 1 - x: what is left is (2k + x)/(2k + 2).
        die = below(tape.half, 2 * k + 2)
        if die == 0 or (die == 1 and not Uniform(tape, tape.half(), 32).below(x)):
            return even
        y, even = z, not even


def normal(tape: Tape) -> tuple[int, int, Uniform]:
    """An exact standard normal: (sign bit, k, x), |G| = k + x (Karney 2016, algorithm N).

    k with probability ~ exp(-k^2/2), x uniform, both kept with probability exp(-x(2k+x)/2):
    together exp(-(k+x)^2/2). Differs: Karney's N1 and N2 find k by coins of probability exp(-1/2);
    here it is one inversion, which is the same distribution.
    """
    while True:
        first = tape.half()
        k = _whole_part(Uniform(tape, first >> 1, 31))
        x = Uniform(tape, (tape.half() << 32) | tape.half(), 64)
        # k + 1 coins of exp(-x(2k+x)/(2k+2)) are one of exp(-x(2k+x)/2) (docs/noise.md).
        if all(_shortfall(tape, k, x) for _ in range(k + 1)):
            return first & 1, k, x


def rounded_gaussian(tape: Tape, scale: float) -> int:
    """round(scale G), exactly. Ties have probability 0."""
    sign, k, x = normal(tape)
    m, denominator = scale.as_integer_ratio()
    while True:
        unit = denominator << x.bits
        # 2 unit (scale (k + x) + 1/2), up to less than 2 m
        start = 2 * m * ((k << x.bits) + x.known) + unit
        value = start // (2 * unit)
        if (start + 2 * m - 1) // (2 * unit) == value:
            return -value if sign else value
        x.extend()


def gap(tape: Tape, rate: float) -> int:
    """How many rows are passed over before the next that is kept: P(gap >= g) = (1 - rate)^g, as
    floor(E / -ln(1 - rate))."""
    u = Uniform(tape, tape.word(), 64)
    if rate == 1.0:
        return 0
    # With so many digits to spare 1 - rate is exact, and its logarithm loses nothing at a small
    # rate.
    digits = rate.as_integer_ratio()[1].bit_length()

    def log_survival(context: decimal.Context) -> Decimal:
        return context.ln(context.subtract(Decimal(1), Decimal(rate))).copy_negate()

    return _floor_of(u, log_survival, digits, divide=True)


def _floor_of(
    u: Uniform, factor: Callable[[decimal.Context], Decimal], digits: int, *, divide: bool
) -> int:
    while True:
        context = context_of(u.bits, digits)
        low, high = u.survival(context)
        if high.is_finite():
            scale = factor(context)
            low, high = (
                context.divide(b, scale) if divide else context.multiply(b, scale)
                for b in (low, high)
            )
            floor = int(widened(low, context, -1))
            if floor == int(widened(high, context, 1)):
                return floor
        u.extend()


def discrete_laplace(tape: Tape, scale: float) -> int:
    """P(x) ~ exp(-|x| / scale): floor(scale E) has P(size >= g) = exp(-g/scale); a fair sign; minus
    zero is drawn again, else 0 would have twice its probability."""
    while True:
        u = Uniform(tape, tape.word(), 64)
        size = _floor_of(u, lambda context: Decimal(scale), 0, divide=False)
        sign = tape.half() & 1
        if size or not sign:
            return -size if sign else size


def choose(
    tape: Tape,
    candidates: Sequence[int],
    scores: Sequence[float | int],
    rate: float,
    words: Sequence[int],
) -> int:
    """The candidate that minimises ln E_i + rate scores_i, where words holds the first 64 digits of
    each uniform."""
    drawn = {i: Uniform(tape, word, 64) for i, word in zip(candidates, words, strict=True)}
    exact = dict(zip(candidates, scores, strict=True))
    left = list(candidates)
    while len(left) > 1:
        bounds = {i: _key(drawn[i], exact[i], rate) for i in left}
        # E_i exp(rate score_i) is exponential with mean exp(rate score_i), and the least of them is
        # that of i with probability proportional to exp(-rate score_i) (docs/theory/choices.md,
        # T6).
        least = min(high for _, high in bounds.values())
        left = [i for i in left if bounds[i][0] <= least]
        if len(left) > 1:
            for i in left:
                drawn[i].extend()
    return left[0]


def _key(u: Uniform, score: float | int, rate: float) -> tuple[Decimal, Decimal]:
    """Bounds on ln E + rate x score; absolute error 10^-(bits + 30) whatever the size of the
    score."""
    context = context_of(u.bits, 660)  # |rate x score| < 10^617
    low, high = u.survival(context)
    cost = context.multiply(Decimal(rate), Decimal(score))
    slack = Decimal(1).scaleb(-u.bits - 30, context)
    below = (
        context.subtract(context.add(context.ln(low), cost), slack)
        if low > 0
        else Decimal("-Infinity")
    )
    above = context.add(context.add(context.ln(high), cost), slack) if high.is_finite() else high
    return below, above
