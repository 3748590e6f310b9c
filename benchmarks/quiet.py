"""What it costs that user code is not heard: a pass with the masking, and the same function called as it is.

    python benchmarks/quiet.py

The first line is one call around a function that does nothing; the others are questions to a curator, answers included.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from fairveil.curator import Curator, RowFunction, Rows, row_function
from fairveil.curator.quiet import Troubles, quietly
from fairveil.privacy import NoiseSource, Promise


def microseconds(job: Callable[[], object], calls: int, repeats: int = 25) -> float:
    """The quickest of several runs: what else the machine does only adds."""
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(calls):
            job()
        best = min(best, (time.perf_counter() - began) / calls)
    return best * 1e6


def heard(_: Troubles, function: Callable[..., object], *arguments: object) -> object:
    """User code, unmasked."""
    return function(*arguments)


def main() -> None:
    """Print the table."""
    troubles = Troubles()
    print(f"a call that does nothing: {microseconds(lambda: quietly(troubles, int), 200):.1f} us")
    print("| rows | answer, heard (us) | answer, masked (us) | ratio |\n|---|---|---|---|")
    for rows, calls in ((100, 200), (10_000, 40), (200_000, 4)):
        numbers = np.random.default_rng(0).random((rows, 5))
        question = RowFunction(lambda block: np.tanh(block.numbers.T), 5, 1.0, frozenset({"features"}))
        curator = Curator(Rows.from_arrays(numbers), Promise(1e9, 1e-6), noise=NoiseSource.seeded(0))
        ask = partial(curator.answer, [(question, 50.0)])
        times = []
        for way in (heard, quietly):
            row_function.quietly = way  # type: ignore[assignment]
            times.append(microseconds(ask, calls))
        print(f"| {rows:,} | {times[0]:.0f} | {times[1]:.0f} | {times[1] / times[0]:.3f} |")


if __name__ == "__main__":
    main()
