"""Where randomness comes from: real ChaCha20, keys derived as documented, nothing returned twice
or copied."""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys

import numpy as np
import pytest
from randomgen import ChaCha

from fairveil.core import chacha
from fairveil.core.noise import NoiseSource, encode_path
from fairveil.errors import InputError

# RFC 8439, sec. 2.3.2 (key 00 01 .. 1f, counter 1, nonce 00:00:00:09:00:00:00:4a:00:00:00:00), and
# vectors 1, 2 of A.1
RFC_BLOCK = (
    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
    "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
)
RFC_ZERO = (
    "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
    "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
)


def test_the_cipher_is_chacha20_of_rfc_8439() -> None:
    state, buffer = chacha.new_state(bytes(32), 0)
    out = np.empty(16, dtype=np.uint64)
    chacha.words(state, buffer, out)
    assert out.astype("<u8").tobytes().hex() == RFC_ZERO
    # words 12..15 of the input are counter 1 and the nonce 09000000 4a000000 00000000
    low, lane = 1 | (0x09000000 << 32), 0x4A000000
    chunk_start = low - low % chacha.LANES
    state, buffer = chacha.new_state(bytes(range(32)), lane)
    chacha.refill(state, buffer, np.uint64(chunk_start // chacha.LANES))
    block = buffer.reshape(16, chacha.LANES)[:, low % chacha.LANES]
    assert block.astype("<u4").tobytes().hex() == RFC_BLOCK


def test_randomgen_is_the_same_cipher() -> None:
    assert (
        ChaCha(key=0, counter=0, rounds=20).random_raw(16).astype("<u8").tobytes().hex() == RFC_ZERO
    )
    block = (0x4A000000 << 64) | 1 | (9 << 56)  # its counter is in 32-bit words, 16 a block
    theirs = ChaCha(key=int.from_bytes(bytes(range(32)), "little"), counter=16 * block, rounds=20)
    assert theirs.random_raw(8).astype("<u8").tobytes().hex() == RFC_BLOCK


def derived_key(seed: int, steps: tuple[str | int, ...]) -> int:
    """The documented derivation, written again with hashlib alone."""
    number = seed.to_bytes((seed.bit_length() + 7) // 8, "little")
    root = hashlib.blake2b(number, digest_size=32, person=b"fairveil seed").digest()
    text = b""
    for step in steps:
        raw = step.encode() if isinstance(step, str) else b""
        text += (
            (b"s" if isinstance(step, str) else b"i")
            + (len(raw) if raw else step).to_bytes(8, "little")
            + raw
        )
    return int.from_bytes(
        hashlib.blake2b(text, digest_size=32, key=root, person=b"fairveil stream").digest(),
        "little",
    )


@pytest.mark.parametrize(
    ("seed", "steps"), [(0, ("noise",)), (7, ("noise", 3)), (2**80 + 1, ("sampling", "x", 0))]
)
def test_words_are_derived_as_documented(seed: int, steps: tuple[str, ...]) -> None:
    stream = NoiseSource.seeded(seed).stream(*steps)
    theirs = ChaCha(key=derived_key(seed, steps), counter=0, rounds=20).random_raw(1000)
    np.testing.assert_array_equal(
        np.concatenate([stream.words(1), stream.words(99), stream.words(900)]), theirs
    )


def test_floats_come_from_a_lane_of_their_own() -> None:
    stream = NoiseSource.seeded(7).stream("initialisation")
    theirs = np.random.Generator(
        ChaCha(key=derived_key(7, ("initialisation",)), counter=2 << 68, rounds=20)
    )
    words = stream.words(64)
    np.testing.assert_array_equal(stream.uniforms(5), theirs.random(5))
    assert [stream.below(n) for n in (1, 3, 1, 1000, 2**31 + 1)] == [
        int(theirs.integers(n)) for n in (1, 3, 1, 1000, 2**31 + 1)
    ]
    lane = ChaCha(key=derived_key(7, ("initialisation",)), counter=2 << 68, rounds=20).random_raw(
        64
    )
    assert not set(words.tolist()) & set(lane.tolist())
    state, buffer = chacha.new_state(derived_key(7, ("initialisation",)).to_bytes(32, "little"), 2)
    out = np.empty(64, dtype=np.uint64)
    chacha.words(state, buffer, out)
    np.testing.assert_array_equal(out, lane)


def test_a_constant_on_every_platform() -> None:
    stream = NoiseSource.seeded(7).stream("noise", 1)
    assert stream.rounded_gaussian(10.0, 4).tolist() == [-12, -2, -10, -15]


def test_secure_sources_differ_and_seeded_agree() -> None:
    """Guarantee 1."""
    secure = [NoiseSource.secure().stream("noise").words(4).tobytes() for _ in range(20)]
    assert len(set(secure)) == 20
    source = NoiseSource.seeded(3)
    assert (
        source.stream("noise").words(8).tolist()
        == NoiseSource.of(3).stream("noise").words(8).tolist()
    )
    assert (
        source.stream("sampling").words(4).tolist()
        != NoiseSource.seeded(4).stream("sampling").words(4).tolist()
    )


def test_a_seed_is_flagged_insecure() -> None:
    """Guarantee 1."""
    secure, seeded = NoiseSource.of(None), NoiseSource.of(3)
    assert secure.is_secure
    assert secure.stream("noise").is_secure
    assert "operating system" in secure.description
    assert not seeded.is_secure
    assert not seeded.stream("noise").is_secure
    assert "INSECURE" in seeded.description
    assert "INSECURE" in repr(seeded)
    assert "INSECURE" in repr(seeded.stream("prediction"))


FORK = """
import os
from fairveil.errors import PrivacyError
from fairveil.core.noise import NoiseSource
source = NoiseSource.secure()
warm, cold = source.stream("noise", 1), source.stream("noise", 2)
warm.words(3), warm.uniforms(1)
child = os.fork()
if child == 0:
    refused = 0
    for draw in (lambda: source.stream("noise", 3), lambda: warm.words(1), lambda: cold.words(1), lambda: warm.uniforms(1),
                 lambda: warm.rounded_gaussian(1.0, 1), lambda: warm.poisson_batch(5, 0.5),
                 lambda: warm.choose([1.0, 2.0], 1.0), lambda: warm.discrete_laplace(1.0, 1),
                 lambda: warm.below(9)):
        try:
            draw()
        except PrivacyError as error:
            refused += "forked child" in str(error)
    NoiseSource.secure().stream("noise").words(1)
    os._exit(refused)
status = os.waitpid(child, 0)[1]
warm.words(1)
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork on this platform")
def test_a_forked_child_gets_no_bits_of_its_parent() -> None:
    """Guarantee 3."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORK],
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    assert done.stdout.strip() == "9"


def test_paths_are_encoded_injectively() -> None:
    """Guarantee 4. Pieces that a careless encoding would run together."""
    pieces: list[str | int] = [
        "",
        "a",
        "b",
        "ab",
        "1",
        "s",
        "i",
        0,
        1,
        97,
        115,
        2**64 - 1,
        "\0",
        "a\0",
        "é",
    ]
    paths = [path for n in (1, 2, 3) for path in itertools.product(pieces, repeat=n)]
    assert len({encode_path(path) for path in paths}) == len(paths)


def test_other_streams_do_not_move_this_one() -> None:
    """Guarantee 4: adding a release, a batch or a draw elsewhere changes nothing here."""
    alone = NoiseSource.seeded(5).stream("noise", 2).rounded_gaussian(100.0, 50)
    source = NoiseSource.seeded(5)
    source.stream("noise", 1).rounded_gaussian(3.0, 1000)
    source.stream("sampling").poisson_batch(1000, 0.1)
    stream = source.stream("noise", 2)
    source.stream("noise", 3).words(10)
    np.testing.assert_array_equal(stream.rounded_gaussian(100.0, 50), alone)


def test_streams_share_no_words() -> None:
    """Guarantee 4. False alarm: 1.2e6 pairs of 64-bit words agree somewhere with probability below
    1e-13."""
    source = NoiseSource.seeded(5)
    drawn = [source.stream("noise", n).words(100) for n in range(10)] + [
        source.stream("sampling", n).words(100) for n in range(6)
    ]
    assert np.unique(np.concatenate(drawn)).size == 1600


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True, None])
def test_bad_seeds_are_refused(seed: object) -> None:
    with pytest.raises(InputError, match="seed"):
        NoiseSource.seeded(seed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "path",
    [
        ("nois",),
        (3,),
        ("noise", -1),
        ("noise", 2**64),
        ("noise", 1.0),
        ("noise", None),
        ("noise", True),
    ],
)
def test_bad_paths_are_refused(path: tuple[object, ...]) -> None:
    with pytest.raises(InputError):
        NoiseSource.seeded(1).stream(*path)  # type: ignore[arg-type]


def test_importing_the_module_loads_no_compiler() -> None:
    code = (
        "import sys; from fairveil.core.noise import NoiseSource; "
        "NoiseSource.secure().stream('noise'); "
        "print([m for m in ('numba', 'randomgen', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=900
    )
    assert done.stdout.strip() == "[]"
