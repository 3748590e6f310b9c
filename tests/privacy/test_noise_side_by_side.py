"""Many streams drawn side by side: each gives what it gives by itself, to the bit. Guarantees 2 and
5 of noise.py."""

from __future__ import annotations

import numpy as np
import pytest

from fairveil.core.noise import Gaussians, NoiseSource, Stream, encode_path
from fairveil.errors import InputError

SCALES = [12.5, 0.9 * 2.0**50, 5e-324, 1e6, 0.3]
SIZES = [2000, 3000, 50, 0, 1]


def streams(blur: int = 0) -> list[Stream]:
    source = NoiseSource.seeded(5)
    out = [source.stream("noise", i) for i in range(len(SCALES))]
    for stream in out:
        stream._blur = blur
    return out


@pytest.mark.parametrize("blur", [0, 20, 64])
def test_side_by_side_is_one_by_one(blur: int) -> None:
    """With `blur` bits unknown to the fast path most draws are made by the exact one, in the middle
    of a stream."""
    together, alone = streams(blur), streams()
    found = Gaussians(SCALES, SIZES).draw(together)
    wanted = [
        stream.rounded_gaussian(scale, size)
        for stream, scale, size in zip(alone, SCALES, SIZES, strict=True)
    ]
    np.testing.assert_array_equal(found, np.concatenate(wanted))
    for one, other in zip(together, alone, strict=True):  # and each goes on from where it stopped
        np.testing.assert_array_equal(
            one.rounded_gaussian(1e9, 40), other.rounded_gaussian(1e9, 40)
        )
        np.testing.assert_array_equal(
            one.discrete_laplace(7.0, 40), other.discrete_laplace(7.0, 40)
        )


def test_a_stream_drawn_from_is_refused() -> None:
    first, second = streams()[:2]
    first.words(1)
    with pytest.raises(InputError, match="already drawn from"):
        Gaussians([1.0, 1.0], [3, 3]).draw([second, first])
    with pytest.raises(InputError, match="already drawn from"):
        Gaussians([1.0, 1.0], [3, 3]).draw([second, second])
    with pytest.raises(InputError, match="2 sizes"):
        Gaussians([1.0], [3, 3]).draw([second])
    with pytest.raises(InputError, match=r"at most 2\^50"):
        Gaussians([2.0**51], [3]).draw([second])
    with pytest.raises(InputError, match="size"):
        Gaussians([2.0], [-1]).draw([second])
    assert Gaussians([], []).draw([]).size == 0


def test_keys_do_not_depend_on_what_was_derived_before() -> None:
    """Guarantee 4: the hash that a source keeps ready is never written to, and numbers of any kind
    name the same path."""
    source, other = NoiseSource.seeded(6), NoiseSource.seeded(6)
    keys = [source.stream("noise", i, 2)._key for i in range(20)]
    assert len(set(keys)) == 20
    assert other.stream("noise", np.int64(13), 2)._key == keys[13]  # type: ignore[arg-type]  # any whole number will do
    assert encode_path(("noise", 1, "a")) != encode_path(("noise", 1)) + encode_path(("a", 0))
