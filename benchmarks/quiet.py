"""What it costs that user code is not heard: answers with the masking, and with the same function
called as it is.

    python benchmarks/quiet.py

Processor time, so that what else the machine does matters little; both ways in turn, the quickest
of each.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from fairveil.curator import Curator, RowFunction, Rows
from fairveil.curator.questions import row_function
from fairveil.curator.quiet.calls import Troubles, quietly
from fairveil.privacy import NoiseSource, Promise


def microseconds(jobs: list[Callable[[], object]], calls: int, repeats: int = 25) -> list[float]:
    """Of each job, called so often: the quickest of several runs, in turn."""
    best = [float("inf")] * len(jobs)
    for _ in range(repeats):
        for place, job in enumerate(jobs):
            began = time.process_time()
            for _ in range(calls):
                job()
            best[place] = min(best[place], (time.process_time() - began) / calls * 1e6)
    return best


def heard(_: Troubles, function: Callable[..., object], *arguments: object) -> object:
    """User code, unmasked."""
    return function(*arguments)


def asked(way: object, ask: Callable[[], object]) -> Callable[[], object]:
    """The question, with user code called this way."""

    def call() -> object:
        row_function.quietly = way  # type: ignore[assignment]
        return ask()

    return call


def main() -> None:
    """Print the table."""
    print(
        f"a call that does nothing: "
        f"{microseconds([partial(quietly, Troubles(), int)], 500)[0]:.0f} us"
    )
    print("| rows | answer, heard (us) | answer, masked (us) | ratio |\n|---|---|---|---|")
    for rows, calls in ((100, 200), (10_000, 40), (200_000, 4)):
        numbers = np.random.default_rng(0).random((rows, 5))
        question = RowFunction(
            lambda block: np.tanh(block.numbers.T), 5, 1.0, frozenset({"features"})
        )
        curator = Curator(
            Rows.from_arrays(numbers), Promise(1e9, 1e-6), noise=NoiseSource.seeded(0)
        )
        ask = partial(curator.answer, [(question, 50.0)])
        plain, masked = microseconds([asked(heard, ask), asked(quietly, ask)], calls)
        print(f"| {rows:,} | {plain:.0f} | {masked:.0f} | {masked / plain:.2f} |")


if __name__ == "__main__":
    main()
