"""Attacks on a ledger's file and on the process that uses it: flipped bits, and Ctrl-C between any
two steps.

    python benchmarks/ledger_attacks.py --flips 5000 --stride 1
    python benchmarks/ledger_attacks.py --flips 5000 --stride 1 --opcodes --postgres
    postgresql://...

The same code as in tests/privacy/ledger, at length.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "privacy" / "ledger"))

from test_ledger_damage import begun, flipped, outcome
from test_ledger_interrupts import interrupt_all


def flips(times: int, folder: Path) -> str:
    """What somebody meets who reserves in a file with flipped bits."""
    begun(folder / "whole.db").close()
    raw, rng = (folder / "whole.db").read_bytes(), random.Random(1)
    clean = outcome(folder / "whole.db")
    told: Counter[str] = Counter()
    for number in range(times):
        path = folder / f"{number}.db"
        path.write_bytes(flipped(raw, rng))
        found = outcome(path)
        told[
            "granted, and check agrees"
            if found == clean
            else "refused"
            if found == "refused"
            else "WRONG"
        ] += 1
        path.unlink()
    return ", ".join(f"{count:,} {words}" for words, count in sorted(told.items()))


def main() -> None:
    """Print what was tried, and what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--flips", type=int, default=2000)
    parser.add_argument("--stride", type=int, default=5)
    parser.add_argument("--opcodes", action="store_true")
    parser.add_argument("--postgres")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{given.flips:,} files with 1 to 10 flipped bits: {flips(given.flips, folder)}")
        for kind, url in (("sqlite", str(folder / "interrupts.db")), ("postgres", given.postgres)):
            if url is None:
                continue
            began = time.perf_counter()
            steps = interrupt_all(SimpleNamespace(kind=kind, url=url), given.stride, given.opcodes)
            tried = sum(1 + count // given.stride for count in steps.values())
            words = ", ".join(f"{name} {count:,}" for name, count in steps.items())
            unit = "opcodes" if given.opcodes else "lines"
            print(
                f"{kind}: {tried:,} interrupts, none locked anybody out ({unit}: {words}); "
                f"{time.perf_counter() - began:.0f} s"
            )


if __name__ == "__main__":
    main()
