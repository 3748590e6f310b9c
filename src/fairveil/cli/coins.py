"""Coins that say which rows of a table are set aside.

Where presence is private (add-remove), a row that is taken away must change no other row's lot. So
each row has a coin of its own, independent of all others: no fixed number of rows, no shuffle,
nothing that hangs on a place in the table, for one row less would shift all places after it. Then
neighbouring tables give training parts that differ in the same one row at most, and the promise of
a fit to the one part is one about the whole table.

Guarantees (tests/cli/test_cli_coins.py):
1. Without a seed the coins are secret: ChaCha20 under a fresh key of the operating system, used for
   nothing else. Each row is set aside with probability exactly `share`, independently of the
   others, of what any row says and of how many there are.
2. With a seed they hang on the seed and the place alone: the same ones again, for tests. What is
   fitted then is flagged.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..core.noise import NoiseSource

SECRET = "by a secret coin of its own that reads no data and hangs on no other row"
SEEDED = (
    "by a coin that the seed and its place in the table decide, which reads no data; whoever knows "
    "the seed knows the coins"
)


def set_aside(rows: int, share: float, seed: int | None) -> npt.NDArray[np.bool_]:
    """Which of so many rows are set aside."""
    if seed is not None:
        return np.asarray(np.random.default_rng([seed, 0x5EED]).random(rows) < share)
    out = np.zeros(rows, dtype=bool)
    if share > 0.0:
        out[NoiseSource.secure().stream("sampling", 0).poisson_batch(rows, float(share))] = True
    return out


def in_words(
    share: float, *, seeded: bool, presence_is_private: bool, by_person: bool = False
) -> str:
    """How rows were set aside, for a statement. `by_person`: each person with all of their rows."""
    who = "each person, with all of their rows," if by_person else "each row of the table"
    how = f"{who} was set aside with probability {share:g} {SEEDED if seeded else SECRET}"
    if by_person:
        how = how.replace("no other row", "no other person")
    if seeded and presence_is_private:
        how += (
            f", and a {'person' if by_person else 'row'} more or less moves the coins of those "
            f"after it"
        )
    return how
