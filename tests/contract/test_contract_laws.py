"""Noise is what it says: laws against their probabilities, bits against RFC 8439, and nobody has one
stream twice."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from seam import side_by_side, undecided

from fairveil.errors import FairveilError
from fairveil.privacy import NoiseSource

FALSE_ALARM = 1e-9
DRAWS = 40_000


def stream(*path: str | int, seed: int = 3) -> Any:
    return NoiseSource.seeded(seed).stream("noise", *path)


def compared(draws: Any, law: Callable[[Any], Any]) -> None:
    """A chi-square test of whole numbers against their probabilities."""
    low, high = int(draws.min()), int(draws.max())
    x = np.arange(low, high + 1)
    expected = law(x) * draws.size
    seen = np.bincount(draws - low, minlength=x.size).astype(float)
    often = expected >= 10
    cells = [*zip(seen[often], expected[often], strict=True)]
    rest = draws.size - expected[often].sum()
    if rest > 5:
        cells.append((seen[~often].sum(), rest))
    statistic = sum((s - e) ** 2 / e for s, e in cells)
    assert stats.chi2.sf(statistic, len(cells) - 1) > FALSE_ALARM


def rounded(scale: float) -> Callable[[Any], Any]:
    return lambda x: stats.norm.cdf((x + 0.5) / scale) - stats.norm.cdf((x - 0.5) / scale)


def geometric(scale: float) -> Callable[[Any], Any]:
    q = np.exp(-1 / scale)
    return lambda x: (1 - q) / (1 + q) * q ** np.abs(x)


@pytest.mark.parametrize("size", [4_000, DRAWS])
@pytest.mark.parametrize("scale", [0.4, 3.0, 25.0])
def test_draws_follow_their_laws(scale: float, size: int) -> None:
    """Small and large answers are made by two samplers."""
    compared(stream().rounded_gaussian(scale, size), rounded(scale))
    compared(stream().discrete_laplace(scale, size), geometric(scale))


@pytest.mark.parametrize("size", [4_000, DRAWS])
def test_large_scales_are_normal(size: int) -> None:
    draws = stream().rounded_gaussian(1e9, size) / 1e9
    assert stats.kstest(draws, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(np.abs(draws), stats.halfnorm.cdf).pvalue > FALSE_ALARM


def test_every_coordinate_has_its_own_scale() -> None:
    scales = np.tile([2.0, 50.0, 1e6], 4000)
    draws = stream().rounded_gaussian(scales)
    for scale in (2.0, 50.0, 1e6):
        found = draws[scales == scale]
        assert found.std() == pytest.approx(scale, rel=0.08)


EXACT: dict[str, Callable[[Any], Any]] = {
    "rounded gaussian": lambda s: s.rounded_gaussian(30.0, 300),
    "large gaussian": lambda s: s.rounded_gaussian(30.0, 9_000),
    "scales": lambda s: s.rounded_gaussian(np.geomspace(0.1, 1e9, 200)),
    "laplace": lambda s: s.discrete_laplace(0.7, 400),
    "wide laplace": lambda s: s.discrete_laplace(40.0, 300),
    "batch": lambda s: s.poisson_batch(3_000, 0.1),
    "choice": lambda s: [s.choose(np.arange(8.0) % 5, 0.7) for _ in range(20)],
}


@pytest.mark.parametrize("name", EXACT)
def test_what_is_left_undecided_is_drawn_alike(name: str) -> None:
    """Fast arithmetic hands over what it cannot decide: the same draw, made exactly."""
    fast = np.asarray(EXACT[name](stream()))
    assert np.array_equal(fast, np.asarray(EXACT[name](undecided(stream(), 64))))
    assert np.array_equal(fast, np.asarray(EXACT[name](undecided(stream(), 36))))


@pytest.mark.parametrize("size", [60, 9_000])
@pytest.mark.parametrize("bits", [0, 20, 64])
def test_models_side_by_side_have_their_own_noise(size: int, bits: int) -> None:
    if bits == 64 and size > 1000:
        return  # every draw by exact arithmetic: minutes
    scales, sizes = [2.0, 5e6, 0.3], [size, 30, 40]
    together = side_by_side([undecided(stream(i), bits) for i in range(3)], scales, sizes)
    alone = [stream(i).rounded_gaussian(scales[i], sizes[i]) for i in range(3)]
    assert np.array_equal(together, np.concatenate(alone))


def test_a_choice_has_the_probabilities_of_its_scores() -> None:
    scores, one = np.array([0.0, 1.0, 2.5, 2.5]), stream()
    drawn = np.bincount([one.choose(scores, 0.8) for _ in range(6_000)], minlength=4)
    law = np.exp(-0.8 * scores)
    assert stats.chisquare(drawn, 6_000 * law / law.sum()).pvalue > FALSE_ALARM


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.97, 1.0])
def test_a_batch_holds_every_row_at_its_rate(rate: float) -> None:
    one, seen, rows = stream(), np.zeros(500), 500
    for _ in range(200):
        batch = one.poisson_batch(rows, rate)
        assert np.array_equal(batch, np.unique(batch))
        seen[batch] += 1
    level = FALSE_ALARM / rows
    assert (seen >= stats.binom.ppf(level, 200, rate)).all()
    assert (seen <= stats.binom.ppf(1 - level, 200, rate)).all()
    assert seen.sum() >= stats.binom.ppf(level, 200 * rows, rate)
    assert seen.sum() <= stats.binom.ppf(1 - level, 200 * rows, rate)
    sizes = [stream(i).poisson_batch(3_000_000, 0.001).size for i in range(20)]
    assert 59_000 < sum(sizes) < 61_000


def test_rare_batches_are_cut_nowhere() -> None:
    """A batch that is larger than was made room for has its last rows, too."""
    for i in range(400):
        batch = stream(i).poisson_batch(60, 0.5)
        assert batch.size <= 60
    last = [stream(i).poisson_batch(20_000, 0.02) for i in range(60)]
    assert max(b.max() for b in last) > 19_900
    assert sum((b > 19_000).sum() for b in last) >= stats.binom.ppf(1e-9, 60_000, 0.02)


# ---- bits


def chacha(key: bytes, blocks: int) -> bytes:
    """The key stream of RFC 8439 at twenty rounds, counted from block 0."""
    mask, out = 0xFFFFFFFF, b""

    def turned(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & mask

    def quarter(s: list[int], a: int, b: int, c: int, d: int) -> None:
        for one, other, third, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[one] = (s[one] + s[other]) & mask
            s[third] = turned(s[third] ^ s[one], by)

    words = [int.from_bytes(key[i : i + 4], "little") for i in range(0, 32, 4)]
    for block in range(blocks):
        start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *words, block, 0, 0, 0]
        s = list(start)
        for _ in range(10):
            for i in range(4):
                quarter(s, i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        out += b"".join(
            ((x + y) & mask).to_bytes(4, "little") for x, y in zip(s, start, strict=True)
        )
    return out


def test_words_are_those_of_the_cipher() -> None:
    """The key of a stream is a hash of its path, keyed with the seed's root: docs/noise.md."""
    source = NoiseSource.seeded(7)
    path = b"s" + (5).to_bytes(8, "little") + b"noise" + b"i" + (1).to_bytes(8, "little")
    root = source.seeded_root
    assert root is not None
    key = hashlib.blake2b(path, key=root, digest_size=32, person=b"fairveil stream").digest()
    found = source.stream("noise", 1).words(16 * 8)
    wanted = np.frombuffer(chacha(key, 16), "<u4").reshape(2, 8, 16)
    # Eight blocks lie side by side, a word of each after the other.
    halves = np.ascontiguousarray(found).view("<u4").reshape(2, 128)
    assert sorted(halves.ravel().tolist()) == sorted(wanted.ravel().tolist())
    assert len(set(found.tolist())) == found.size


# ---- whose it is


def test_every_path_is_another_stream_and_is_given_once() -> None:
    source = NoiseSource.seeded(0)
    paths: list[tuple[Any, ...]] = [
        ("noise",),
        ("noise", 0),
        ("noise", 1),
        ("noise", 0, 0),
        ("noise", 0, 1),
        ("noise", 0, 0, 1),
        ("noise", 0, 1, 1),
        ("noise", "a"),
        ("noise", "a", "b"),
        ("noise", "asb"),
        ("noise", "as", "b"),
        ("noise", "ab"),
        ("sampling", 0),
        ("noise", 256),
        ("noise", 1 << 40),
        ("noise", "0"),
    ]
    bits = {path: source.stream(*path).words(2).tobytes() for path in paths}
    assert len(set(bits.values())) == len(paths)
    for path in paths:
        with pytest.raises(FairveilError):
            source.stream(*path)
        again = NoiseSource.seeded(0).stream(*path).words(2).tobytes()
        assert again == bits[path]


def test_a_seed_is_a_seed_and_no_seed_is_secret() -> None:
    seeds = [0, 1, 255, 256, 257, 1 << 40, (1 << 40) + 1]
    roots = {NoiseSource.seeded(seed).seeded_root for seed in seeds}
    assert len(roots) == len(seeds)
    assert NoiseSource.of(7).seeded_root == NoiseSource.seeded(7).seeded_root
    secret = [NoiseSource.secure(), NoiseSource.secure(), NoiseSource.of(None)]
    assert all(one.is_secure and one.seeded_root is None for one in secret)
    assert len({one.stream("noise").words(4).tobytes() for one in secret}) == 3
    seeded = NoiseSource.seeded(7)
    assert not seeded.is_secure
    assert not seeded.stream("noise").is_secure
    assert "secure" not in seeded.description or "in" in seeded.description
    assert secret[0].stream("noise", 1).is_secure


def test_secret_noise_has_one_owner() -> None:
    source = NoiseSource.secure()
    drawn, started = source.stream("noise", 1), source.stream("noise", 2)
    started.words(1)
    for copied in (source, drawn, started):
        for way in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(FairveilError):
                way(copied)
    asks: list[Callable[[], Any]] = [
        lambda: source.stream("noise", 3),
        lambda: drawn.words(1),
        lambda: started.words(1),
        lambda: started.rounded_gaussian(2.0, 3),
        lambda: started.poisson_batch(10, 0.5),
    ]
    for ask in asks:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            said = b"drew"
            try:
                ask()
            except FairveilError:
                said = b"refused"
            finally:
                os.write(write, said)
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(read, 16) == b"refused"
        os.close(read), os.close(write)
    assert (
        NoiseSource.seeded(3).seeded_root
        == pickle.loads(pickle.dumps(NoiseSource.seeded(3))).seeded_root
    )
