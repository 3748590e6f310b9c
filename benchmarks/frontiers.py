"""Error against fairness gap, at the defaults, beside every published curve. Prints JSON; writes
it, and a plot, to a folder.

    python benchmarks/frontiers.py --figure adult-dp --protects records --scaling unsafe
    python benchmarks/frontiers.py --figure adult-eo --fairlearn /path/to/python        # with
    fairlearn on the same splits python benchmarks/frontiers.py --figure communities-eo --protects
    sensitive_features --method game --evaluation in-sample python benchmarks/frontiers.py --figure
    adult-dp --protects sensitive_features --method fermi

Every number is a mean over `--seeds` splits (a quarter held out; the noise is seeded like the
split), at delta = 1 / n^2 of the n training rows. `--scaling unsafe`: numbers scaled by the
training rows' own means and deviations, as in the published runs, and flagged so; `honest`: by the
schema's bounds alone. The data are those of `fairveil data`, from `--data` or FAIRVEIL_DATA.

Method `fermi` is not asked for a gap but swept over strengths of its penalty, from 0 on, at the
published epsilons.

A published point is compared at equal gap, on straight lines between our mean points in the order
of what was asked for, where its gap exceeds the floor: the mean gap that an exactly fair model
shows on as many rows. "below": the whole 95 % band of our mean (bootstrap over splits) is below the
published mean, whose own spread is not known.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from frontier import figures, peer, plot, summary, tables
from frontier.methods import BY_STRENGTH, METHODS
from frontier.splits import Job, run_split

ROOT = Path(__file__).resolve().parent.parent
BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1)


def main() -> None:
    """Measure, compare, draw, print."""
    asked = _options()
    wanted = figures.FIGURES[asked.figure]
    name = _name(asked)
    start = time.perf_counter()
    by_strength = asked.method in BY_STRENGTH
    usual = figures.RECORDS if asked.protects == "records" else figures.SENSITIVE
    epsilons = asked.epsilons or wanted.epsilons or (figures.PUBLISHED if by_strength else usual)
    runs, theirs = _earlier(asked.reuse, epsilons)
    runs += _runs(asked, wanted, epsilons, {_key(run) for run in runs})
    if asked.fairlearn:
        splits = sorted({run["seed"] for run in runs})[: asked.fairlearn_splits]
        theirs = peer.fairlearn(
            asked.fairlearn, wanted.dataset, asked.data, wanted.gap, splits, BOUNDS
        )
    result: dict[str, Any] = {
        "figure": asked.figure,
        "method": asked.method,
        "sweep": "strength" if by_strength else "gap",
        "evaluation": asked.evaluation,
        "copies": asked.copies,
        "protects": asked.protects,
        "neighbours": "add-remove" if asked.protects == "records" else "replace-one",
        "scaling": asked.scaling
        if asked.scaling == "honest"
        else "unsafe: by the training rows' means and deviations",
        "delta": f"1 / {runs[0]['train_rows']}^2" if wanted.delta is None else f"{wanted.delta:g}",
        "splits": len({run["seed"] for run in runs}),
        "test_rows": runs[0]["test_rows"],
        "points": summary.points(runs, wanted),
        "published": summary.versus_published(runs, wanted, asked.published),
        "own_curve_without_privacy": summary.versus_ourselves(runs, wanted),
        "fairlearn": summary.versus_fairlearn(runs, wanted, theirs, asked.published),
        "seconds": round(time.perf_counter() - start, 1),
    }
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / f"{name}.svg").write_text(
        plot.draw(runs, wanted, asked, theirs, asked.published), "utf-8"
    )
    everything = {**result, "fairlearn_runs": theirs, "runs": runs}
    (asked.out / f"{name}.json").write_text(
        json.dumps(_plain(everything), indent=1) + "\n", "utf-8"
    )
    if asked.markdown:
        print(tables.section(result))
        if not by_strength:
            print(tables.asked_and_got(result))
    else:
        print(json.dumps(_plain(result), indent=2))


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--figure", choices=sorted(figures.FIGURES), default="adult-dp")
    options.add_argument("--method", choices=sorted(METHODS), default="rate-constrained")
    options.add_argument("--evaluation", choices=("held-out", "in-sample"), default="held-out")
    options.add_argument(
        "--copies",
        type=int,
        default=1,
        help="train on so many copies of each row (Jagielski et al., sec. 5)",
    )
    options.add_argument("--protects", choices=("records", "sensitive_features"), default="records")
    options.add_argument("--scaling", choices=("unsafe", "honest"), default="unsafe")
    options.add_argument("--seeds", type=int, default=15)
    options.add_argument("--epsilons", type=float, nargs="+")
    options.add_argument(
        "--strengths",
        type=float,
        nargs="+",
        help="instead of the figure's, beside 0 (method fermi)",
    )
    options.add_argument("--data", default=os.environ.get("FAIRVEIL_DATA") or _beside("data"))
    options.add_argument("--published", type=Path, default=ROOT.parent / "shared" / "published")
    options.add_argument(
        "--fairlearn",
        metavar="PYTHON",
        help="a Python that has fairlearn: run it on the same splits",
    )
    options.add_argument("--fairlearn-splits", type=int, default=15)
    options.add_argument(
        "--reuse",
        type=Path,
        nargs="+",
        default=[],
        help="files of earlier runs of this figure: fit the rest",
    )
    options.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options.add_argument("--markdown", action="store_true", help="print tables instead of JSON")
    options.add_argument("--jobs", type=int, default=2, help="processes")
    options.add_argument(
        "--knobs",
        type=json.loads,
        default={},
        help="constants to try, as JSON; none in a benchmark",
    )
    return options.parse_args()


def _name(asked: argparse.Namespace) -> str:
    """Of the files that are written."""
    parts = [
        asked.figure,
        asked.method,
        asked.protects,
        asked.scaling,
        asked.evaluation,
        f"{asked.copies}-copies",
    ]
    usual = {"rate-constrained", "held-out", "1-copies"}
    return "-".join(part for part in parts if part not in usual)


def _beside(name: str) -> str | None:
    folder = ROOT.parent / "shared" / name
    return str(folder) if folder.is_dir() else None


def _key(run: dict[str, Any]) -> tuple[int, float, float | None]:
    return run["seed"], run["epsilon"], run["asked"]


def _earlier(
    files: list[Path], epsilons: Sequence[float]
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """What earlier runs of the same figure measured, at these epsilons; a later file wins."""
    found: dict[tuple[int, float, float | None], dict[str, Any]] = {}
    theirs = None
    for file in files:
        stored = json.loads(file.read_text("utf-8"))
        theirs = stored["fairlearn_runs"] or theirs
        runs = [{**run, "epsilon": float(run["epsilon"])} for run in stored["runs"]]
        found |= {_key(run): run for run in runs if run["epsilon"] in epsilons}
    return list(found.values()), theirs


def _runs(
    asked: argparse.Namespace,
    wanted: figures.Wanted,
    epsilons: Sequence[float],
    done: set[tuple[int, float, float | None]],
) -> list[dict[str, Any]]:
    """All models that are not done yet, a process for each of a few splits at a time."""
    of_seed: dict[int, list[Job]] = {}
    by_strength = asked.method in BY_STRENGTH
    bounds = (asked.strengths or wanted.strengths) if by_strength else wanted.bounds
    for seed, epsilon, bound in product(range(asked.seeds), epsilons, (None, *bounds)):
        if (seed, epsilon, bound) not in done:
            constraint = None if bound is None and not by_strength else wanted.constraint
            knobs = tuple(asked.knobs.items())
            unsafe = asked.scaling == "unsafe"
            job = Job(
                constraint,
                bound,
                epsilon,
                asked.protects,
                unsafe,
                seed,
                asked.method,
                wanted.delta,
                knobs,
            )
            of_seed.setdefault(seed, []).append(job)
    work = partial(
        run_split, wanted.dataset, asked.data, evaluation=asked.evaluation, copies=asked.copies
    )
    if asked.jobs == 1 or len(of_seed) < 2:
        found = [work(seed, jobs) for seed, jobs in of_seed.items()]
    else:
        with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
            found = list(pool.map(work, of_seed, of_seed.values()))
    return [run for runs in found for run in runs]


def _plain(value: Any) -> Any:
    """Without infinities, which JSON has not; numbers to six digits."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return str(value) if not math.isfinite(value) else round(value, 6)
    return value


if __name__ == "__main__":
    main()
