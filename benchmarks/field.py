"""Every method of this library beside other libraries, on every set at hand: error, gap, epsilon,
seconds and memory.

    python benchmarks/field.py --table --picture docs/field.svg --json field.jsonl
    python benchmarks/field.py --case law-race --system descent fairlearn --seeds 1
    python benchmarks/field.py --python diffprivlib=/envs/dpl/bin/python ebm=/envs/ebm/bin/python
    --json field.jsonl

Each fit is a process of its own, with a time limit, so that seconds and memory are its own. Memory
is the peak of the process, with its libraries and the rows. A fit that is refused, fails or runs
out of time is a line of the table, too.

Systems of other libraries need Pythons of their own, because their requirements contradict ours;
what `--python` does not name is left out, and the table says so. `rivals/systems.py` lists them,
`rivals/theirs/` has a program each, its recipe on top.

Error and gap are those of held-out rows, as in `hard_cases.py`: decisions by chance count by their
probabilities. A seed is a split, or a draw of rows, and the seed of the noise. delta is 1 / n^2 of
the training rows. One bound a case: the table is a field, not a frontier. Nothing is tuned to a
case: this library's systems and the others' run at defaults or fixed constants.

The epsilon of the table is one that was proved for what ran, not the one that was asked for:
`rivals/truth.py` says why where they differ. "not private": no finite one is known.

With `--json` runs are appended to a file as they are done, and those that the file holds are not
repeated.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from hard.cases import CASES
from rivals import chart, running, table
from rivals.systems import SYSTEMS

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Fit what is missing, print."""
    asked = _options()
    pythons = dict(pair.split("=", 1) for pair in asked.python)
    wanted = running.Wanted(
        tuple(running.FIELD if asked.case == ["all"] else asked.case),
        tuple(SYSTEMS if asked.system == ["all"] else asked.system),
        asked.epsilon,
        range(asked.first_seed, asked.first_seed + asked.seeds),
        pythons,
        asked.data,
        asked.most,
        asked.limit,
    )
    found = table.lines(running.run(wanted, asked.json))
    if asked.table or not asked.picture:
        print("\n".join([*table.whole(found), "", *table.costs(found), "", *table.refusals(found)]))
    if asked.picture:
        asked.picture.write_text(chart.draw(found), "utf-8")


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--case", nargs="+", choices=["all", *CASES], default=["all"], metavar="CASE"
    )
    options.add_argument(
        "--system", nargs="+", choices=["all", *SYSTEMS], default=["all"], metavar="SYSTEM"
    )
    options.add_argument("--epsilon", type=float, default=1.0)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--first-seed", type=int, default=0)
    options.add_argument(
        "--python",
        nargs="+",
        default=[],
        metavar="NAME=PYTHON",
        help="Pythons of the other libraries",
    )
    options.add_argument("--limit", type=float, default=600.0, help="seconds that one fit may take")
    options.add_argument("--json", type=Path, help="a file of runs: read, and appended to")
    options.add_argument("--table", action="store_true")
    options.add_argument("--picture", type=Path, help="an SVG, a panel a case")
    options.add_argument("--data", default=os.environ.get("FAIRVEIL_DATA") or _beside("data"))
    options.add_argument("--most", type=int, help="so many rows at most, for a quick look")
    return options.parse_args()


def _beside(name: str) -> str | None:
    folder = ROOT.parent / "shared" / name
    return str(folder) if folder.is_dir() else None


if __name__ == "__main__":
    main()
