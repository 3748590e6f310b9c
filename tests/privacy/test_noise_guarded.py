"""NumPy's generator over a secure stream: never copied, never repeated by a forked child."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from randomgen import ChaCha

from fairveil.core.noise import NoiseSource
from fairveil.errors import PrivacyError


def generator() -> np.random.Generator:
    return NoiseSource.secure().stream("prediction", 1).generator()


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("whole", [True, False])
def test_guarantee_1_it_is_never_copied(way: Callable[[Any], Any], whole: bool) -> None:
    made = generator()
    made.random()
    with pytest.raises(PrivacyError, match="copy or pickle of the generator"):
        way(made if whole else made.bit_generator)
    if way is not copy.copy:  # which shares what is inside
        for around in ({"inside": [made]}, np.random.Generator(made.bit_generator)):
            with pytest.raises(PrivacyError, match="copy or pickle of the generator"):
                way(around)


def test_guarantee_1_its_state_is_neither_shown_nor_set() -> None:
    made = generator()
    bits = made.bit_generator
    for name in ("state", "seed", "seed_seq", "_seed_seq", "spawn", "ctypes", "cffi", "use_simd"):
        with pytest.raises(PrivacyError, match="random numbers"):
            getattr(bits, name)
    with pytest.raises(PrivacyError, match="random numbers"):
        made.spawn(2)
    for name in ("state", "_pid"):
        with pytest.raises(PrivacyError, match="random numbers"):
            setattr(bits, name, None)
    assert made.random() != made.random()


def test_it_draws_what_numpy_draws() -> None:
    stream = NoiseSource.secure().stream("initialisation")
    theirs = np.random.Generator(
        ChaCha(key=int.from_bytes(stream._key, "little"), counter=2 << 68, rounds=20)
    )
    mine = stream.generator()
    assert isinstance(mine, np.random.Generator)
    assert stream.generator() is mine
    np.testing.assert_array_equal(stream.uniforms(5), theirs.random(5))
    np.testing.assert_array_equal(stream.normals((2, 3)), theirs.standard_normal((2, 3)))
    np.testing.assert_array_equal(mine.permutation(9), theirs.permutation(9))
    np.testing.assert_array_equal(
        mine.choice(5, 4, p=[0.1, 0.2, 0.3, 0.2, 0.2]),
        theirs.choice(5, 4, p=[0.1, 0.2, 0.3, 0.2, 0.2]),
    )
    np.testing.assert_array_equal(
        mine.bit_generator.random_raw(3), theirs.bit_generator.random_raw(3)
    )
    np.testing.assert_array_equal(mine.integers(9, size=4), theirs.integers(9, size=4))
    assert "Generator" in repr(mine)


def test_a_seeded_one_is_numpys_own() -> None:
    made = NoiseSource.seeded(3).stream("prediction").generator()
    assert type(made) is np.random.Generator
    assert copy.deepcopy(made).random() == made.random()


def test_generators_that_nobody_holds_are_let_go() -> None:
    from fairveil.core import noise

    # a collection of what other tests left behind would take seconds, and might change the count
    gc.disable()
    try:
        before = len(noise._HANDED_OUT)
        made = generator()
        assert len(noise._HANDED_OUT) == before + 1
        del made
        gc.collect(0)
        assert len(noise._HANDED_OUT) == before
    finally:
        gc.enable()


FORK = """
import os, sys
import numpy as np
from fairveil.errors import PrivacyError
from fairveil.core.noise import NoiseSource
made = NoiseSource.secure().stream("prediction", 1).generator()
made.random()
bound, around = made.random, np.random.Generator(made.bit_generator)
get, put = os.pipe()
child = os.fork()
if child == 0:
    refused = 0
    for draw in (lambda: made.random(), lambda: made.bit_generator, lambda: made.integers(5), lambda: made.spawn(1)):
        try:
            draw()
        except PrivacyError as error:
            refused += "forked child" in str(error)
    os.write(put, repr([bound(), around.random(), bound()]).encode())
    os._exit(refused)
status = os.waitpid(child, 0)[1]
theirs, ours = set(eval(os.read(get, 1000))), {made.random() for _ in range(9)}
print(os.waitstatus_to_exitcode(status), len(theirs), len(theirs & ours))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork on this platform")
def test_guarantee_2_a_forked_child_gets_no_floats_of_its_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORK],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.split() == ["4", "3", "0"]
