"""Gaussians of many coordinates, which have a sampler of their own: fast against exact, both against
multi-precision on the same words. Guarantees 2 and 5 of noise.py; the distribution is tested in
test_noise_laws.py, which draws many, too."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from fairveil.core import chacha, exact, fast, noise
from fairveil.core.fast import SLACK
from fairveil.core.noise import Gaussians, NoiseSource, Stream

CASES: dict[str, Callable[[Stream], Any]] = {
    "a gradient's scale": lambda s: s.rounded_gaussian(1.3 * 2.0**36, 700),
    "largest scale": lambda s: s.rounded_gaussian(0.9 * 2.0**50, 700),
    "tiny scale": lambda s: s.rounded_gaussian(5e-324, 300),
    "many scales": lambda s: s.rounded_gaussian(np.geomspace(1e-3, 2.0**50, 500)),
    "after words": lambda s: (s.words(3), s.rounded_gaussian(1e9, 400))[1],
    "after halves": lambda s: (s.discrete_laplace(1e3, 5), s.rounded_gaussian(1e9, 400))[1],
    "twice": lambda s: np.append(s.rounded_gaussian(7.0, 333), s.rounded_gaussian(1e9, 333)),
}


@pytest.fixture
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "LARGE", 100)


def stream(*path: str | int, blur: int = 0) -> Stream:
    out = NoiseSource.seeded(11).stream("noise", *path)
    out._blur = blur
    return out


@pytest.mark.usefixtures("_few_are_many")
@pytest.mark.parametrize("blur", [20, 36, 64])
@pytest.mark.parametrize("case", CASES)
def test_fast_and_exact_paths_agree_to_the_bit(case: str, blur: int) -> None:
    """At 64 bits unknown all draws go the exact way: the same answers, from the same words."""
    plain, slow = stream(), stream(blur=blur)
    np.testing.assert_array_equal(CASES[case](slow), CASES[case](plain))
    assert plain._state is not None
    assert slow._state is not None
    assert plain._state[chacha.POSITION] == slow._state[chacha.POSITION]
    assert slow._tape is not None or blur < 64


def proposals(found: Stream, count: int) -> list[tuple[int, int, int]]:
    """(first, coin, digits of x) of each, as a stream's words have them."""
    words = found.words(2 * count).tolist()
    halves = [half for word in words for half in (word & 0xFFFFFFFF, word >> 32)]
    return [
        (first, coin, (top << 32) | low)
        for first, coin, top, low in zip(*(halves[i::4] for i in range(4)), strict=True)
    ]


def chance(k: int, x: Any) -> Any:
    return mp.exp(-x * (2 * k + x) / 2)


@pytest.mark.usefixtures("_few_are_many")
def test_draws_are_the_multi_precision_ones() -> None:
    scale, wanted = 0.7 * 2.0**36, []
    with mp.workprec(200):
        for first, coin, digits in proposals(stream("words"), 1000):
            k = sum(first >> 1 > step for step in exact.GAUSSIAN_STEPS)
            x = (mpf(digits) + mpf(0.5)) / mpf(2) ** 64
            if (mpf(coin) + mpf(0.5)) / mpf(2) ** 32 < chance(k, x):
                size = int(mp.floor(mpf(scale) * (k + x) + mpf(0.5)))
                wanted.append(-size if first & 1 else size)
    # of 1,000 proposals about 715 are kept: 600 but for a chance below 1e-14
    assert stream("words").rounded_gaussian(scale, 600).tolist() == wanted[:600]


def test_stated_error_of_chances_holds() -> None:
    """For every k, and x anywhere: within a quarter of `SLACK`, which decisions allow for."""
    rng, room = np.random.default_rng(5), fast.room()
    steps, edges = [0, *exact.GAUSSIAN_STEPS], [0, 1, 2**32 - 1]
    for turn in range(60):
        buffer = rng.integers(0, 2**32, 128, dtype=np.uint64).astype(np.uint32)
        places = buffer.reshape(4, 4, 8)  # fours of halves, and in each the same half of 8 blocks
        k = rng.integers(0, 7, (4, 8))
        low, high = np.take(steps, k) + (k > 0), np.take(steps, k + 1)
        places[:, 0] = 2 * rng.integers(low, np.maximum(high, low + 1)) + 1
        if turn < 20:
            places[:, 2:] = rng.choice(edges, (4, 2, 8))
        fast._weigh(buffer, *room)
        tied = np.isin(places[:, 0] >> 1, exact.GAUSSIAN_STEPS)
        assert ((room[3].reshape(4, 8) >= 256) == tied).all()
        assert (room[3].reshape(4, 8)[~tied] == k[~tied]).all()
        with mp.workprec(200):
            for q, b in np.argwhere(~tied):
                digits = (int(places[q, 2, b]) << 32) | int(places[q, 3, b])
                for end in (digits, digits + 1):
                    truth = chance(int(k[q, b]), mpf(end) / mpf(2) ** 64)
                    found = mpf(float(room[0].reshape(4, 8)[q, b])) / mpf(2) ** 32
                    assert abs(found - truth) <= truth * SLACK / 4


def crafted(first: int, coin: int, x: int) -> Stream:
    """A stream whose second proposal is this one; the first is refused for certain."""
    out = stream("crafted")
    state, buffer = out._ready()
    chacha.half(state, buffer)
    halves = (0, 2**32 - 1, 2**32 - 1, 0, first, coin, x >> 32, x & 0xFFFFFFFF)
    for place, half in enumerate(halves):
        buffer[chacha.LANES * place] = half
    state[chacha.POSITION] = 4
    return out


@pytest.mark.usefixtures("_few_are_many")
@pytest.mark.parametrize("case", ["tied step", "behind the table", "coin at its chance"])
def test_equal_digits_are_undecided_and_then_extended(case: str) -> None:
    """What happens once in 2^31 draws: the kernel stays before the proposal, and more digits
    decide."""
    x = 0x9E3779B97F4A7C15
    with mp.workprec(200):
        edge = int(mp.floor(mpf(2) ** 32 * chance(0, mpf(x) / mpf(2) ** 64)))
    given = {
        "tied step": (exact.GAUSSIAN_STEPS[1] << 1, 17, x),
        "behind the table": (2**32 - 1, 17, x),
        "coin at its chance": (6, edge, x),
    }[case]
    found, bits = crafted(*given), np.array([1e6]).view(np.uint64)
    out, (state, buffer) = np.zeros(1, np.int64), found._ready()
    head = (state, buffer, bits, out, 0, np.uint64(0), fast.room())
    assert fast.many_gaussians(*head) == 0
    assert state[chacha.POSITION] == 4
    for near in (-1, 1):  # beside it the coin is decided, and so is the first digit
        other = crafted(given[0] + 2 * near * (case == "tied step"), edge + near, x)
        head = (*other._ready(), bits, out, 0, np.uint64(0), fast.room())
        assert case == "behind the table" or fast.many_gaussians(*head) == 1
    digits = found._digits()
    assert exact.rounded_gaussian(digits, 1e6, exact.normal_by_coin) == int(
        crafted(*given).rounded_gaussian(1e6, 100)[0]
    )
    assert digits.more() != stream("crafted")._digits().more()  # further ones were really drawn


@pytest.mark.parametrize(("k", "digits"), [(0, 2**63), (1, 0x1F9ADD3739635F3F), (6, 2**64 - 5)])
def test_a_coin_that_is_extended_is_fair(k: int, digits: int) -> None:
    """Where first digits cannot tell, the coin falls as what is left says (binomial, false alarm
    1e-6)."""
    tape = stream("fair", k)._digits()
    with mp.workprec(200):
        scaled = mpf(2) ** 32 * chance(k, mpf(digits) / mpf(2) ** 64)
        known = int(mp.floor(scaled))
        share = float(scaled - known)
    wins = sum(
        exact._kept(exact.Uniform(tape, known, 32), k, exact.Uniform(tape, digits, 64))
        for _ in range(1000)
    )
    assert 0.05 < share < 0.95
    assert abs(wins - 1000 * share) <= 4.9 * np.sqrt(1000 * share * (1 - share))


@pytest.mark.usefixtures("_few_are_many")
def test_side_by_side_is_one_by_one() -> None:
    sizes, scales = [500, 20, 100, 0], [1e9, 7.0, 2.0**50, 3.0]
    together, alone = ([stream(i) for i in range(4)] for _ in range(2))
    found = Gaussians(scales, sizes).draw(together)
    wanted = [one.rounded_gaussian(*how) for one, *how in zip(alone, scales, sizes, strict=True)]
    np.testing.assert_array_equal(found, np.concatenate(wanted))


def test_a_seed_gives_the_same_bits_on_every_platform() -> None:
    """Where the number of coordinates is the least that is many, and one below."""
    few, many = (stream().rounded_gaussian(2.0**36, noise.LARGE - n) for n in (1, 0))
    assert few[:3].tolist() != many[:3].tolist()
    digest = hashlib.sha256(many.astype("<i8").tobytes()).hexdigest()
    assert digest[:16] == "b2719afcd9fd898c"
