"""Hard cases: many groups, small cells, few rows, rare labels, odds, small epsilon. Every method
beside what costs nothing.

    python benchmarks/hard_cases.py --case four-groups adult-race --method descent --epsilon 1 inf --table
    python benchmarks/hard_cases.py --case all --method descent game --json runs.jsonl --short --winners
    python benchmarks/hard_cases.py --case adult-odds --method fairlearn --json runs.jsonl   # what is missing

Error and gap are those of held-out rows: a quarter of a real set, 40,000 fresh rows of a synthetic
one. A model that is randomized is measured by its probabilities, not by a draw. A seed is a
split (or a draw of rows) and the seed of the noise. delta is 1 / n^2 of the n training rows, whose
number is released; numbers are scaled by declared bounds.

Beside each method, at its own held-out gap, seed by seed:

    mixing         the least error of the unconstrained model of the same protection, epsilon and
                   seed, some of whose answers are replaced by one class, with no larger gap
    best constant  the least error of one class for everybody, among those with no larger gap
    no noise       the same method asked for the same bound, at epsilon = inf: error @ gap
    over fairlearn its error less that of fairlearn's ExponentiatedGradient, not private, at the
                   same gap (on the lower hull of its points); "-" where it is not reached

The last column compares with mixing or the constant, whichever is better, in points, with the
standard error over seeds of the difference. "Even": within two standard errors, or a tenth of a
point.

With `--json` runs are appended to a file as they are done, and those that the file holds are not
repeated: a long run may be interrupted. The tables are of all runs that the other arguments name.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from hard import lines, runs, tables
from hard.cases import CASES
from hard.methods import METHODS


def main() -> None:
    """Fit what is missing, print."""
    asked = _options()
    axes = runs.Asked(
        list(CASES) if asked.case == ["all"] else asked.case,
        asked.method,
        asked.epsilon,
        asked.protects,
        range(asked.first_seed, asked.first_seed + asked.seeds),
        asked.notion,
        asked.gap,
        asked.data,
        asked.most,
    )
    found = list(lines.lines(runs.run(axes, asked.json)))
    if asked.short:
        print("\n".join(tables.short(found)))
    if asked.winners:
        print("\n".join(tables.winners(found)))
    if asked.table or not (asked.winners or asked.short):
        print("\n".join(tables.whole(found)))


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--case", nargs="+", choices=["all", *CASES], default=["four-groups"], metavar="CASE"
    )
    options.add_argument("--method", nargs="+", choices=METHODS, default=["descent"])
    options.add_argument(
        "--epsilon", nargs="+", type=float, default=[1.0, math.inf], help="inf: without privacy"
    )
    options.add_argument("--notion", nargs="+", help="of the case's; default: all of them")
    options.add_argument(
        "--gap", nargs="+", type=float, help="bounds to ask for; default: the case's"
    )
    options.add_argument(
        "--protects", nargs="+", choices=("records", "sensitive_features"), default=["records"]
    )
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--first-seed", type=int, default=0)
    options.add_argument("--json", type=Path, help="a file of runs: read, and appended to")
    options.add_argument("--table", action="store_true")
    options.add_argument(
        "--short", action="store_true", help="a row a bound, methods or epsilons side by side"
    )
    options.add_argument(
        "--winners", action="store_true", help="methods side by side at one gap a case"
    )
    options.add_argument("--data", help="a folder; without it FAIRVEIL_DATA")
    options.add_argument("--most", type=int, help="so many rows at most, for a quick look")
    return options.parse_args()


if __name__ == "__main__":
    main()
