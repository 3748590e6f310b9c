"""The fast paths against the exact ones, and both against multi-precision on the same words.
Guarantee 5 of noise.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.typing import NDArray

from fairveil.core import chacha, exact, fast
from fairveil.core.noise import NoiseSource, Stream
from fairveil.errors import InputError

SCORES = np.random.default_rng(1).normal(size=8)
CASES: dict[str, Callable[[Stream], Any]] = {
    "gaussian": lambda s: s.rounded_gaussian(12.5, 2000),
    "gaussian, largest scale": lambda s: s.rounded_gaussian(0.9 * 2.0**50, 8_000),
    "gaussian, tiny scale": lambda s: s.rounded_gaussian(5e-324, 500),
    "gaussian, many scales": lambda s: s.rounded_gaussian(np.geomspace(1e-3, 2.0**50, 2000)),
    "discrete laplace": lambda s: s.discrete_laplace(12.5, 500),
    "discrete laplace, small": lambda s: s.discrete_laplace(0.1, 500),
    "discrete laplace, large": lambda s: s.discrete_laplace(2.0**45, 200),
    "poisson": lambda s: s.poisson_batch(20_000, 0.014),
    "poisson, dense": lambda s: s.poisson_batch(300, 0.9),
    "poisson, all": lambda s: s.poisson_batch(300, 1.0),
    "poisson, rare": lambda s: s.poisson_batch(10**13, 1e-11),
    "choose": lambda s: [s.choose(SCORES, 0.7) for _ in range(3)],
    "choose, hardly different": lambda s: [s.choose(SCORES * 1e-300, 1.0) for _ in range(3)],
    "choose, huge": lambda s: [s.choose(SCORES * 1e300, 1e-300) for _ in range(3)],
    "choose, integers": lambda s: [
        s.choose(np.array([-(2**63), 2**63 - 1, 0, 5]), 1e-19) for _ in range(6)
    ],
}


def blurred(blur: int) -> Stream:
    stream = NoiseSource.seeded(1).stream("noise")
    stream._blur = blur
    return stream


@pytest.mark.parametrize(
    ("case", "blur"),
    [(case, blur) for at, case in enumerate(CASES) for blur in (64, (20, 36)[at % 2])],
)
def test_fast_and_exact_paths_agree_to_the_bit(case: str, blur: int) -> None:
    """A fast path that pretends to know `blur` bits fewer sends more draws (at 64, nearly all) the
    exact way: same answers."""
    plain, slow = blurred(0), blurred(blur)
    expected, found = CASES[case](plain), CASES[case](slow)
    np.testing.assert_array_equal(found, expected)
    assert plain._state is not None
    assert slow._state is not None
    assert plain._state[chacha.POSITION] == slow._state[chacha.POSITION]
    if blur == 64 and case not in ("gaussian, tiny scale", "poisson, all"):
        assert slow._tape is not None  # the exact path was really taken


def test_the_exact_path_serves_largest_scales_by_itself() -> None:
    """At scales near 2^50 one draw in 2^14 is undecided: of 400,000 about 24, so some but for a
    chance of e^-24."""
    stream = blurred(0)
    stream.rounded_gaussian(0.9 * 2.0**50, 400_000)
    assert stream._tape is not None


def tape(stream: Stream) -> exact.Tape:
    return stream._digits()


def twin(*path: str | int) -> tuple[Stream, NDArray[np.uint64]]:
    """A stream, and the first 4,000 words that it will read."""
    return NoiseSource.seeded(9).stream("noise", *path), NoiseSource.seeded(9).stream(
        "noise", *path
    ).words(4000)


def exponential(word: int) -> Any:
    """-ln(1 - W) at the middle of what a word leaves open, in multi-precision."""
    return -mp.log(1 - (mpf(word) + mpf(0.5)) / mpf(2) ** 64)


def test_poisson_batches_are_the_multi_precision_ones() -> None:
    stream, words = twin("poisson")
    batch = stream.poisson_batch(100_000, 0.014)
    with mp.workprec(200):
        row, expected = -1, []
        for word in words:
            row += 1 + int(mp.floor(exponential(int(word)) / -mp.log(1 - mpf(0.014))))
            if row >= 100_000:
                break
            expected.append(row)
    assert 1000 < len(expected) < 2000
    assert batch.tolist() == expected


def test_discrete_laplace_draws_are_the_multi_precision_ones() -> None:
    stream, words = twin("laplace")
    halves = iter([half for word in words.tolist() for half in (word & 0xFFFFFFFF, word >> 32)])
    expected = []
    with mp.workprec(200):
        while len(expected) < 500:
            word = next(halves) | next(halves) << 32
            size, sign = int(mp.floor(mpf(3.7) * exponential(word))), next(halves) & 1
            if size or not sign:
                expected.append(-size if sign else size)
    assert stream.discrete_laplace(3.7, 500).tolist() == expected


def test_choices_are_the_multi_precision_ones() -> None:
    stream, words = twin("choose")
    for turn in range(100):
        mine = words[8 * turn : 8 * turn + 8].tolist()
        with mp.workprec(200):
            keys = [
                mp.log(exponential(word)) + mpf(0.7) * mpf(score)
                for word, score in zip(mine, SCORES, strict=True)
            ]
        assert stream.choose(SCORES, 0.7) == keys.index(min(keys))


def test_the_table_of_whole_parts() -> None:
    """floor(2^31 P(K <= k)), P(K = k) ~ exp(-k^2/2): recomputed in multi-precision."""
    with mp.workprec(600):
        weights = [mp.exp(-mpf(k * k) / 2) for k in range(60)]
        total = mp.fsum(weights)
        steps = [int(mp.floor(2**31 * mp.fsum(weights[: k + 1]) / total)) for k in range(7)]
        for k in range(7):
            low, high = exact._step_bounds(k, 100)
            truth = mp.fsum(weights[: k + 1]) / total
            assert (
                mpf(low.numerator) / low.denominator
                <= truth
                <= mpf(high.numerator) / high.denominator
            )
            assert high - low < Fraction(1, 2**100)
    assert tuple(steps) == exact.GAUSSIAN_STEPS
    assert steps[-1] == 2**31 - 1  # whatever lies behind the table is undecided


WORDS = st.integers(0, 2**64 - 1) | st.integers(0, 2**12) | st.integers(2**64 - 2**12, 2**64 - 1)


@given(WORDS | st.integers(0, 63).map(lambda power: 1 << power))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_stated_error_bounds_hold(word: int) -> None:
    """Both ends of what a word leaves open lie within the stated error of the float, for E and for
    ln E."""
    value, error = fast._exponential(np.uint64(word))
    log_value, log_error = fast._log_exponential(np.uint64(word))
    with mp.workprec(300):
        for known in (word, word + 1):
            rest = 1 - mpf(known) / mpf(2) ** 64
            truth = -mp.log(rest) if rest else mp.inf
            assert abs(truth - mpf(value)) <= error
            log_truth = mp.log(truth) if truth else -mp.inf
            assert abs(log_truth - mpf(log_value)) <= log_error
    assert error < 1e-10 or word > 2**64 - 2**44
    assert log_error < 1e-4 or min(word, 2**64 - 1 - word) < 2**16


@given(
    st.floats(min_value=5e-324, max_value=2.0**50, allow_nan=False, exclude_min=False),
    st.integers(0, 12),
    st.integers(0, 2**64 - 1),
    st.sampled_from([0, 1, 17, 63, 64]),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_rounding_is_decided_in_exact_integers(
    scale: float, k: int, fraction: int, blur: int
) -> None:
    """`scaled` against rational numbers: the rounded value when the whole interval rounds alike,
    else undecided."""
    bits = np.array([scale]).view(np.uint64)[0]
    found = int(fast.scaled(bits, np.uint64(k), np.uint64(fraction), np.uint64(blur)))
    low = (fraction >> blur) << blur
    start = Fraction(scale) * (k + Fraction(low, 2**64)) + Fraction(1, 2)
    end = Fraction(scale) * (k + Fraction(low + 2**blur, 2**64)) + Fraction(1, 2)
    first, last = math.floor(start), math.ceil(end) - 1  # the end itself is not reached
    assert found == (first if first == last else -1)


def crafted(halves: dict[int, int]) -> Stream:
    """A stream whose next halves are these, at positions 1 to 15 of its first block."""
    stream = NoiseSource.seeded(2).stream("noise")
    state, buffer = stream._ready()
    chacha.half(state, buffer)
    for position, value in halves.items():
        buffer[chacha.LANES * position] = value
    return stream


@pytest.mark.parametrize(
    "halves",
    [
        {1: exact.GAUSSIAN_STEPS[0] << 1},  # the digit that straddles P(K = 0)
        {1: 2 * (2**31 - 1)},  # behind the table
        {1: 0, 2: 12345, 3: 6, 4: 12345},  # x and z agree in all their digits
        {1: 0, 2: 12345, 3: 6, 4: 12000, 5: 2**31, 6: 12345},  # x and r agree
        {1: 0, 2: 12345, 3: 6, 4: 12000, 5: 2**31, 6: 12344, 7: 12000},  # z_1 and z_2 agree
    ],
)
def test_equal_digits_are_undecided_and_then_extended(halves: dict[int, int]) -> None:
    """What happens once in 2^31 draws: the kernel goes back to the draw's first word, and more
    digits decide."""
    stream = crafted(halves)
    state, buffer = stream._ready()
    out, reached = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    scale, ends = np.array([100.0]), np.array([0, 1])
    head = (state[np.newaxis], buffer[np.newaxis], scale.view(np.uint64), ends, out, reached)
    fast.rounded_gaussians(*head, np.uint64(0))
    assert reached[0] == 0
    assert state[chacha.POSITION] == 1
    answer = stream.rounded_gaussian(scale)
    assert stream._tape is not None
    assert answer[0] == exact.rounded_gaussian(tape(crafted(halves)), 100.0)
    extended = stream._tape.more()
    # further digits were really drawn
    assert extended != NoiseSource.seeded(2).stream("noise")._digits().more()


@pytest.mark.parametrize("known", [0, 5, 2**32 - 1])
def test_digits_decide_fairly(known: int) -> None:
    """Of two numbers with equal first digits, each is the smaller one half of the time (binomial,
    false alarm 1e-6)."""
    digits = tape(NoiseSource.seeded(known).stream("noise"))
    wins = sum(
        exact.Uniform(digits, known, 32).below(exact.Uniform(digits, known, 32))
        for _ in range(2000)
    )
    assert abs(wins - 1000) < 4.9 * math.sqrt(500)


def test_a_chain_of_comparisons_stays_consistent() -> None:
    """A number that was extended for one comparison keeps its digits for the next."""
    digits = tape(NoiseSource.seeded(3).stream("noise"))
    numbers = [exact.Uniform(digits, 7, 32) for _ in range(30)]
    order = sorted(
        range(30), key=lambda i: sum(numbers[j].below(numbers[i]) for j in range(30) if j != i)
    )
    values = [Fraction(numbers[i].known, 2 ** numbers[i].bits) for i in order]
    assert values == sorted(values)
    assert len(set(values)) == 30


def test_a_full_batch_buffer_grows() -> None:
    """A first word that is small again and again: more rows than expected are kept, none is
    lost."""
    stream = NoiseSource.seeded(4).stream("noise")
    state, buffer = stream._ready()
    chacha.half(state, buffer)
    state[chacha.POSITION] = 2
    buffer[:] = 0  # 63 words of zero: gaps of zero
    batch = stream.poisson_batch(2_000, 0.001)
    assert batch[:63].tolist() == list(range(63))
    assert (np.diff(batch) > 0).all()


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**51, "1", None, True])
@pytest.mark.parametrize("law", ["rounded_gaussian", "discrete_laplace"])
def test_bad_scales_are_refused(law: str, scale: object) -> None:
    with pytest.raises(InputError):
        getattr(blurred(0), law)(scale, 3)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 2.0**51])
def test_one_bad_scale_in_a_vector_is_refused(bad: float) -> None:
    """No coordinate goes out without noise."""
    with pytest.raises(InputError, match="scale"):
        blurred(0).rounded_gaussian(np.array([1.0, bad, 2.0]))
    with pytest.raises(InputError, match="vector"):
        blurred(0).rounded_gaussian(np.array([1.0, 2.0]), 3)
    with pytest.raises(InputError, match="vector"):
        blurred(0).rounded_gaussian(np.ones((2, 2)))
    with pytest.raises(InputError, match="size"):
        blurred(0).rounded_gaussian(1.0)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, math.nan, "0.5"])
def test_bad_rates_are_refused(rate: object) -> None:
    with pytest.raises(InputError, match="rate"):
        blurred(0).poisson_batch(10, rate)  # type: ignore[arg-type]


def test_bad_scores_are_refused_without_showing_them() -> None:
    for scores in (
        [],
        [[1.0]],
        [1.25, math.nan],
        [math.inf, 1.25],
        ["a"],
        [True],
        np.array([1.25], dtype=np.float32),
    ):
        with pytest.raises(InputError, match="scores") as caught:
            blurred(0).choose(scores, 1.0)
        assert "1.25" not in str(caught.value)
    for rate in (-1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="rate"):
            blurred(0).choose([1.0, 2.0], rate)


def test_nothing_is_asked_for() -> None:
    stream = blurred(0)
    assert stream.rounded_gaussian(1.0, 0).size == 0
    assert stream.rounded_gaussian(np.array([])).size == 0
    assert stream.discrete_laplace(1.0, 0).size == 0
    assert stream.words(0).size == 0
