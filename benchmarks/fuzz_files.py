"""Changed files for every reader of the library: what is read is used, what is refused is an error
of the library's family.

    python benchmarks/fuzz_files.py                                # 100,000 inputs, some ten minutes
    python benchmarks/fuzz_files.py --inputs 5000 --seed 7 --only "estimator folder" --show

The readers and the changes are those of the test suite (tests/fuzz), which runs a few hundred
inputs of each. Memory is limited to 4 GiB and one input to 20 seconds; what goes beyond counts as
untyped. Memory growth is the largest of one input.
"""

from __future__ import annotations

import argparse
import collections
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "fuzz"))

from fuzz_readers import Reader, readers

from fairveil.errors import FairveilError

MEMORY, SECONDS = 4 << 30, 20


class TooSlow(BaseException):
    """An input took too long."""


def main() -> None:
    """Read, count, print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=100_000, help="of all readers together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one reader, by its name")
    parser.add_argument("--show", action="store_true", help="print the place of each untyped error")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _stop)
    with tempfile.TemporaryDirectory() as folder:
        chosen = [
            reader
            for reader in readers(Path(folder), all_kinds=True)
            if given.only in (None, reader.name)
        ]
        print("| reader | inputs | accepted and used | refused | untyped | slowest | most memory |")
        print("|---|---|---|---|---|---|---|")
        total: collections.Counter[str] = collections.Counter()
        for reader in chosen:
            total += _run(reader, -(-given.inputs // len(chosen)), given.seed, given.show)
        print(
            f"| all | {total['inputs']:,} | {total['accepted']:,} | {total['refused']:,} | "
            f"{total['untyped']:,} | | |"
        )


def _run(reader: Reader, inputs: int, seed: int, show: bool) -> collections.Counter[str]:
    draw = random.Random(f"{reader.name} {seed}")
    refused: collections.Counter[str] = collections.Counter()
    untyped: collections.Counter[str] = collections.Counter()
    accepted, slowest, most = 0, 0.0, 0
    for _ in range(inputs):
        case = reader.make(draw)
        before, began = _peak(), time.perf_counter()
        try:
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            reader.read(case)
            accepted += 1
        except FairveilError as error:
            refused[type(error).__name__] += 1
        except (Exception, TooSlow) as error:
            untyped[_told(error)] += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        slowest, most = max(slowest, time.perf_counter() - began), max(most, _peak() - before)
    kinds = ", ".join(f"{name} {count:,}" for name, count in refused.most_common())
    wrong = untyped.total()
    cells = (
        f"{inputs:,}",
        f"{accepted:,}",
        kinds,
        f"{wrong:,}",
        f"{slowest:.2f} s",
        f"{most >> 10} MiB",
    )
    print(f"| {reader.name} | {' | '.join(cells)} |", flush=True)
    if show:
        for words, count in untyped.most_common():
            print(f"    {count} {words}", file=sys.stderr)
    counts: dict[str, Any] = {
        "inputs": inputs,
        "accepted": accepted,
        "refused": refused.total(),
        "untyped": wrong,
    }
    return collections.Counter(counts)


def _told(error: BaseException) -> str:
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "fairveil" in frame.filename
    ]
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "elsewhere"
    return f"{type(error).__name__}: {str(error)[:100]} @ {place}"


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _stop(*_: object) -> None:
    raise TooSlow


if __name__ == "__main__":
    main()
