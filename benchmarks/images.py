"""DP-FERMI with a convolutional network: ten digits, five tints, error against gap. Writes JSON
lines, prints checks as JSON.

    python benchmarks/images.py --out benchmarks/results/images.jsonl --reuse --markdown
    python benchmarks/images.py --out images.jsonl --epsilons inf --protects records            # without privacy

Images: 10,000 of MNIST's training digits, another choice for each seed, and all test digits, tinted
by `synthetic.Tints(strength=0.4, noise=1.0)`: P(tint r | digit c) = 0.12, and 0.4 more where r = c
mod 5. A classifier without error has a gap of demographic parity of 0.2; one that reads the tint,
because the digit is hard to read, more. Groups are not features, but the tint is in the image.

The network: 5 x 5 and 3 x 3 convolutions of stride 2 (16 and 32 channels), 1,568 to 1,024 to 10:
1.62 million parameters, 4.1 million operations forward an image (a multiplication and an addition
count as two).

Records: 10 epochs of Poisson batches of 500 in the mean. Sensitive features alone: 30 epochs of
four fixed parts, since the noise of a run grows with the square root of their number. `USUAL` was
chosen by a few runs at epsilon 10 on MNIST's training digits, measured on training digits that were
left out (but strengths 5 and 10, for 3, by one seed's curves on test digits): no guarantee covers
that.

Each run is appended as it ends; `--reuse` goes on where a file stops. Checked, for each protection
and epsilon, over seeds:

1. the error does not fall and the gap does not rise with the strength, within two standard errors
   of the paired difference;
2. some strength has at most half of the gap at strength 0; its error is stated.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import pairwise, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import digits as digits_data
import fairveil as fv
from fairveil.data import synthetic
from fairveil.figures import FrontierFigure, Point, Series, svg_frontier

ROOT = Path(__file__).resolve().parent.parent
TINTS = synthetic.Tints(strength=0.4, noise=1.0)
TRAINING = 10_000
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Run:
    """What one model is asked for."""

    protects: str
    epsilon: float
    strength: float
    seed: int


@dataclass(frozen=True)
class Setting:
    """What the models of one protection share. `knobs`: other constants to try; none in a
    benchmark."""

    epochs: int
    batch: int
    clip: float
    learning_rate: float
    strengths: tuple[float, ...]
    training: int = TRAINING
    folder: str | None = None
    device: str = "cpu"
    knobs: dict[str, Any] = field(default_factory=dict)


USUAL = {
    "records": Setting(10, 500, 1.0, 0.25, (0.0, 1.0, 5.0, 10.0)),
    "sensitive_features": Setting(30, 2500, 2.0, 0.1, (0.0, 1.0, 3.0)),
}


@dataclass(frozen=True, eq=False)
class Split:
    """Images as rows of numbers in [0, 1], digits, tints: to train on and to measure on."""

    X: Array
    y: Array
    groups: Array
    X_test: Array
    y_test: Array
    groups_test: Array


def fit(split: Split, run: Run, setting: Setting) -> tuple[Array, float]:
    """Train as asked: predictions for the test images, and what was spent. All that knows of the
    estimator is here."""
    rate = setting.batch / setting.training
    model = fv.FermiClassifier(
        notion="demographic_parity",
        strength=run.strength,
        model=network(run.seed).to(setting.device),
        epsilon=run.epsilon,
        delta=1.0 / setting.training**2,
        protects=run.protects,
        solver=fv.PenaltyDescent(
            sampling_rate=rate,
            rounds=round(setting.epochs / rate),
            clip=setting.clip,
            **{"learning_rate": setting.learning_rate, **setting.knobs},
        ),
        random_state=run.seed,
    )
    model.fit(split.X, split.y, sensitive_features=split.groups)
    return np.asarray(model.predict(split.X_test)), float(model.privacy_.epsilon)


def network(seed: int) -> Any:
    """Few operations and many parameters: the images shrink at once, and most weights are in one
    dense layer."""
    import torch
    from torch import nn

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Unflatten(1, (3, 28, 28)),
            nn.Conv2d(3, 16, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 1024),
            nn.ReLU(),
            nn.Linear(1024, 10),
        )


def size_of(module: Any) -> dict[str, int]:
    """Parameters, and operations of one image forward, counted layer by layer; activations are not
    counted."""
    import torch
    from torch import nn

    counted = 0

    def count(layer: Any, _: Any, out: Any) -> None:
        nonlocal counted
        each = layer.weight[0].numel()  # products of one output
        counted += 2 * each * out[0].numel()

    hooks = [
        m.register_forward_hook(count)
        for m in module.modules()
        if isinstance(m, nn.Conv2d | nn.Linear)
    ]
    with torch.no_grad():
        module(torch.zeros(1, 3 * 28 * 28))
    for hook in hooks:
        hook.remove()
    return {
        "parameters": sum(p.numel() for p in module.parameters()),
        "operations_forward": counted,
    }


@lru_cache(maxsize=1)
def split_of(folder: str | None, training: int, seed: int) -> Split:
    """One seed's images. Training digits are chosen among MNIST's training digits; the test digits
    are always the same."""
    digits = digits_data.mnist_images(folder)
    if digits.training_rows is None:
        sys.exit(
            "This edition of MNIST has no test digits: point FAIRVEIL_DATA to the four files of "
            "the published one."
        )
    chosen = np.random.default_rng([seed, 0]).permutation(digits.training_rows)[:training]
    parts: list[Array] = []
    for part, rows in ((1, chosen), (2, np.arange(digits.training_rows, len(digits.labels)))):
        images, groups = TINTS.plant(
            digits.pixels[rows], digits.labels[rows], np.random.default_rng([seed, part])
        )
        parts += [images.reshape(len(images), -1), digits.labels[rows], groups]
    return Split(*parts)


def measured(run: Run, setting: Setting, threads: int) -> dict[str, Any]:
    """One model, fitted and measured."""
    import torch

    torch.set_num_threads(threads)
    split = split_of(setting.folder, setting.training, run.seed)
    start = time.perf_counter()
    predicted, spent = fit(split, run, setting)
    seconds = time.perf_counter() - start
    truth, groups = split.y_test, split.groups_test
    shuffled = np.random.default_rng(run.seed)
    floor = [
        fv.demographic_parity_gap(truth, predicted, shuffled.permutation(groups)) for _ in range(20)
    ]
    return {
        **asdict(run),
        "error": float((predicted != truth).mean()),
        "gap": float(fv.demographic_parity_gap(truth, predicted, groups)),
        # of the same predictions, had they nothing to do with the groups
        "floor": float(np.mean(floor)),
        "label_gap": float(fv.demographic_parity_gap(truth, truth, groups)),
        "spent": spent,
        "seconds": seconds,
        "images_per_second": setting.epochs * setting.training / seconds,
        "setting": {
            name: value
            for name, value in asdict(setting).items()
            if name not in ("folder", "strengths")
        },
    }


def checks(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the runs say of the claims, a line a protection and epsilon."""
    lines = []
    for protects, epsilon in sorted({(run["protects"], run["epsilon"]) for run in runs}):
        of = {
            (run["strength"], run["seed"]): run
            for run in runs
            if (run["protects"], run["epsilon"]) == (protects, epsilon)
        }
        strengths, seeds = sorted({s for s, _ in of}), sorted({seed for _, seed in of})
        full = all((s, seed) in of for s in strengths for seed in seeds)
        if not full:
            lines.append({"protects": protects, "epsilon": epsilon, "complete": False})
            continue
        grids = {
            name: np.array([[of[s, seed][name] for seed in seeds] for s in strengths])
            for name in ("error", "gap")
        }
        mean = {name: grid.mean(axis=1) for name, grid in grids.items()}
        halved = [k for k in range(1, len(strengths)) if mean["gap"][k] <= mean["gap"][0] / 2]
        first = None
        if halved:
            k = halved[0]
            error = {"error": mean["error"][k], "error_more": mean["error"][k] - mean["error"][0]}
            first = {"strength": strengths[k], "gap": mean["gap"][k], **error}
        lines.append(
            {
                "protects": protects,
                "epsilon": epsilon,
                "complete": True,
                "seeds": len(seeds),
                "strengths": strengths,
                "errors": [spread(values) for values in grids["error"]],
                "gaps": [spread(values) for values in grids["gap"]],
                "floor": float(np.mean([run["floor"] for run in of.values()])),
                "spent": max(run["spent"] for run in of.values()),
                "error_rises": monotone(grids["error"]),
                "gap_falls": monotone(-grids["gap"]),
                "gap_halved": first,
            }
        )
    return lines


def spread(values: Array) -> dict[str, float]:
    """Mean and its standard error."""
    return {"mean": float(values.mean()), "standard_error": standard_error(values)}


def standard_error(values: Array) -> float:
    """Of a mean; infinite for a single value, of which nothing is known."""
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf


def monotone(grid: Array) -> bool:
    """No step from a strength to the next goes down by more than two standard errors of the
    difference, seeds paired."""
    return all(float((b - a).mean()) >= -2.0 * standard_error(b - a) for a, b in pairwise(grid))


def table(lines: Sequence[dict[str, Any]]) -> str:
    """The checks as Markdown."""
    head = (
        "| protects | epsilon | strength: error @ gap (standard errors) | error rises, gap falls | "
        "gap halved at |"
    )
    out = [head, "| --- | --- | --- | --- | --- |"]
    for line in lines:
        if not line["complete"]:
            out.append(f"| {line['protects']} | {line['epsilon']:g} | not complete | | |")
            continue
        cells = []
        for strength, error, gap in zip(
            line["strengths"], line["errors"], line["gaps"], strict=True
        ):
            text = f"{100 * error['mean']:.1f} ({100 * error['standard_error']:.1f})"
            cells.append(
                f"{strength:g}: {text} @ {100 * gap['mean']:.1f} "
                f"({100 * gap['standard_error']:.1f})"
            )
        half = line["gap_halved"]
        words = "no strength"
        if half is not None:
            words = (
                f"{half['strength']:g}: {100 * half['error']:.1f} %, "
                f"{100 * half['error_more']:+.1f}"
            )
        both = f"{'yes' if line['error_rises'] else 'NO'}, {'yes' if line['gap_falls'] else 'NO'}"
        out.append(
            f"| {line['protects']} | {line['epsilon']:g} | {'; '.join(cells)} | {both} | {words} |"
        )
    return "\n".join(out) + "\n"


def drawn(lines: Sequence[dict[str, Any]]) -> str:
    """The complete curves as an SVG."""
    series = []
    for line in lines:
        if line["complete"]:
            spots = tuple(
                Point(error["mean"], gap["mean"], seeds=line["seeds"])
                for error, gap in zip(line["errors"], line["gaps"], strict=True)
            )
            whose: Any = "nothing" if math.isinf(line["epsilon"]) else line["protects"]
            series.append(Series("Fairveil, DP-FERMI", line["epsilon"], whose, spots))
    notes = ("Points of a curve: strengths, from 0 on. Means over seeds, test images.",)
    figure = FrontierFigure(
        "demographic parity",
        "MNIST digits, five tints",
        tuple(series),
        None,
        notes,
        layout="by-epsilon",
    )
    return svg_frontier(figure, width=960)


def stored(file: Path) -> list[dict[str, Any]]:
    """The runs of a file; a line that was cut short by an interruption is dropped."""
    runs = []
    for line in file.read_text("utf-8").splitlines() if file.is_file() else []:
        try:
            run = json.loads(line)
        except json.JSONDecodeError:
            continue
        runs.append({**run, "epsilon": float(run["epsilon"])})
    return runs


def append(file: Path, run: dict[str, Any]) -> None:
    """One line, on the disk before anything else is begun."""
    text = json.dumps({**run, "epsilon": str(run["epsilon"]), "spent": str(run["spent"])})
    cut = file.is_file() and not file.read_bytes().endswith(b"\n") and file.stat().st_size > 0
    with file.open("a", encoding="utf-8") as opened:
        opened.write(("\n" if cut else "") + text + "\n")
        opened.flush()
        os.fsync(opened.fileno())


def main() -> None:
    """Run what is lacking, check, print."""
    asked = _options()
    settings = {protects: _setting(asked, USUAL[protects]) for protects in asked.protects}
    wanted = [
        Run(protects, *one)
        for protects, setting in settings.items()
        for one in product(asked.epsilons, setting.strengths, range(asked.seeds))
    ]
    wanted.sort(key=lambda run: run.seed)  # whole curves early
    if asked.out.is_file() and asked.out.stat().st_size and not asked.reuse:
        sys.exit(f"{asked.out} holds runs already: pass --reuse to go on, or name another file.")
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    done = {
        tuple(run[name] for name in ("protects", "epsilon", "strength", "seed"))
        for run in stored(asked.out)
    }
    left = [
        run for run in wanted if (run.protects, run.epsilon, run.strength, run.seed) not in done
    ]
    threads = asked.threads or max(1, (os.cpu_count() or 1) // asked.jobs)
    if asked.jobs == 1:
        for run in left:
            append(asked.out, measured(run, settings[run.protects], threads))
    elif left:
        with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
            for ended in as_completed(
                [pool.submit(measured, run, settings[run.protects], threads) for run in left]
            ):
                append(asked.out, ended.result())
    runs = [{**run, "spent": float(run["spent"])} for run in stored(asked.out)]
    lines = checks(runs)
    if asked.plot is not None and any(line["complete"] for line in lines):
        asked.plot.write_text(drawn(lines), "utf-8")
    if asked.markdown:
        print(table(lines))
    else:
        print(
            json.dumps(
                _plain({"network": size_of(network(0)), "runs": len(runs), "checks": lines}),
                indent=2,
            )
        )


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    both = ("records", "sensitive_features")
    options.add_argument(
        "--out", type=Path, default=ROOT / "benchmarks" / "results" / "images.jsonl"
    )
    options.add_argument(
        "--reuse", action="store_true", help="go on with the runs that --out lacks"
    )
    options.add_argument("--protects", choices=both, nargs="+", default=both)
    options.add_argument("--epsilons", type=float, nargs="+", default=(10.0, 25.0, 50.0, 100.0))
    options.add_argument(
        "--strengths", type=float, nargs="+", help="instead of USUAL's, as the next three"
    )
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--images", type=int, default=TRAINING)
    options.add_argument("--epochs", type=int)
    options.add_argument("--batch", type=int)
    options.add_argument("--clip", type=float)
    options.add_argument("--device", default="cpu")
    beside = ROOT.parent / "shared" / "data"
    options.add_argument(
        "--data",
        default=os.environ.get("FAIRVEIL_DATA") or (str(beside) if beside.is_dir() else None),
    )
    options.add_argument("--jobs", type=int, default=2, help="processes")
    options.add_argument(
        "--threads", type=int, help="torch's, of each process; the cores shared out unless given"
    )
    options.add_argument(
        "--knobs",
        type=json.loads,
        default={},
        help="constants to try, as JSON; none in a benchmark",
    )
    options.add_argument("--plot", type=Path, help="an SVG")
    options.add_argument("--markdown", action="store_true", help="print a table instead of JSON")
    return options.parse_args()


def _setting(asked: argparse.Namespace, usual: Setting) -> Setting:
    """The usual one, but for what was asked otherwise."""
    other = {
        name: getattr(asked, name)
        for name in ("epochs", "batch", "clip")
        if getattr(asked, name) is not None
    }
    strengths = usual.strengths if asked.strengths is None else tuple(asked.strengths)
    shared = {
        "training": asked.images,
        "folder": asked.data,
        "device": asked.device,
        "knobs": asked.knobs,
    }
    return replace(usual, strengths=strengths, **other, **shared)


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
