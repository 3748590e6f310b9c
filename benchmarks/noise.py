"""What exact noise costs: `python benchmarks/noise.py` prints JSON: medians on one thread,
microseconds a call.

Beside each sampler stands what NumPy's inexact one takes in the same run, as a ratio: absolute
figures move with the load.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

import numpy as np
from randomgen import ChaCha

from fairveil.privacy.noise.sources import NoiseSource


def microseconds(call: Callable[[], object], seconds: float = 0.4) -> float:
    """The median time of one call, each sample long enough for the clock."""
    call()
    start = time.perf_counter()
    call()
    batch = max(1, int(0.002 / max(time.perf_counter() - start, 1e-7)))
    samples = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(batch):
            call()
        samples.append((time.perf_counter() - start) / batch * 1e6)
    return statistics.median(samples)


def main() -> None:
    source = NoiseSource.secure()
    stream = source.stream("noise")
    floats = np.random.Generator(ChaCha(rounds=20))
    rows, rate, scores, scales = 36_632, 0.014, floats.standard_normal(10_000), np.full(106, 1e6)
    releases = iter(range(10**9))
    normals = floats.standard_normal
    timed: dict[str, tuple[Callable[[], object], Callable[[], object] | None]] = {
        "new stream": (
            lambda: source.stream("noise", next(releases)),
            lambda: ChaCha(key=1, rounds=20),
        ),
        "new stream and 106 rounded Gaussians": (
            lambda: source.stream("noise", next(releases)).rounded_gaussian(scales),
            None,
        ),
        "1,000 raw words": (
            lambda: stream.words(1000),
            lambda: floats.bit_generator.random_raw(1000),
        ),
        "1 rounded Gaussian": (
            lambda: stream.rounded_gaussian(1e6, 1),
            lambda: np.rint(1e6 * normals(1)),
        ),
        "106 rounded Gaussians": (
            lambda: stream.rounded_gaussian(scales),
            lambda: np.rint(scales * normals(106)),
        ),
        "500 rounded Gaussians": (
            lambda: stream.rounded_gaussian(1e6, 500),
            lambda: np.rint(1e6 * normals(500)),
        ),
        "100 discrete Gaussians": (lambda: stream.discrete_gaussian(10.0, 100), None),
        "100 discrete Laplaces": (
            lambda: stream.discrete_laplace(10.0, 100),
            lambda: floats.laplace(0.0, 10.0, 100),
        ),
        "Poisson batch, 36,632 rows at 0.014": (
            lambda: stream.poisson_batch(rows, rate),
            lambda: np.flatnonzero(floats.random(rows) < rate),
        ),
        "choice among 10,000": (
            lambda: stream.choose(scores, 1.0),
            lambda: np.argmax(floats.gumbel(size=10_000) - scores),
        ),
    }
    out = {}
    for name, (ours, theirs) in timed.items():
        mine = microseconds(ours)
        out[name] = {"microseconds": round(mine, 2)}
        if theirs is not None:
            out[name]["times numpy over the same cipher"] = round(mine / microseconds(theirs), 2)
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
