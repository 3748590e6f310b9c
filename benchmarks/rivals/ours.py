"""One fit by a method of `hard/methods.py`, in a process of its own: `python ours.py job.json`.

AIM's synthetic rows are made by a small model: 2 MB, 4 rounds a column, 100 iterations of mirror
descent. Its authors' defaults are 80 MB, 16 and 1,000, which end on no set within the limit of one
fit.
"""

import json
import sys
from pathlib import Path

import numpy as np

from hard.cases import CASES
from hard.methods import METHODS, Wanted
from hard.rival import Rival, cut
from rivals.systems import NOTHING, SYSTEMS


def main() -> None:
    """Read, fit, write."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    system, case = SYSTEMS[job["system"]], CASES[job["case"]]
    train, test = case.parts(job["seed"], job["folder"], job["most"])
    constraint = (
        None if system.name == "unconstrained" else case.constraint(job["notion"], job["bound"])
    )
    bound = job["bound"] if system.strength is None else system.strength
    protects = "records" if system.protects == NOTHING else system.protects
    wanted = Wanted(
        system.fit, job["notion"], constraint, bound, job["epsilon"], protects, job["seed"]
    )
    folder = Path(__file__).resolve().parent.parent / "results" / "aim"
    small = ("--size", "2", "--rounds", str(4 * len(cut(train)[1])), "--iterations", "100")
    aim = job["aim"] and Rival(job["aim"], folder, case.source or case.name, small)
    fitted = METHODS[system.fit](train, case.cells(train), wanted, aim)
    claimed = fitted.said.get("spent", job["epsilon"]) if system.claims else None
    said = {**fitted.said, "claimed": claimed, "proved": claimed}
    np.savez(job["out"], law=fitted.law(test), said=json.dumps(said))


if __name__ == "__main__":
    main()
