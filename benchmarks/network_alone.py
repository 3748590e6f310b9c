"""Whether taking one row away moves what other rows add to a network's sums. Prints JSON.

Networks are drawn: dense ones, convolutions along lines and over images, norms, tables, attention
written by hand; widths, activations and sizes of rows by chance. Biases are moved so that at one
row the pre-activations of dense layers and of convolutions are rounding noise around 0: which
neurons are on then hangs on the last bit. That row is repeated, others stand among them. A row is
taken away at the first place, at the last or in between, and

    total(all rows) - total(all but this one) - total(this one)

is measured, in clips, for the clipped gradient; it should be 0 steps of the grid. So is a soft
histogram. `--threads`: torch's. At commits up to 93b604f the same command shows what chunks of any
number of rows did.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np
import torch
from torch import nn

from fairveil.curator import Network, NetworkGradient, NetworkHistogram, Rows
from fairveil.curator.kernels.torch_gradient import engine
from fairveil.curator.totals.passes import totals
from fairveil.models import Skeleton

BETWEEN = (
    nn.ReLU,
    nn.ReLU,
    nn.LeakyReLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.GELU,
    nn.ELU,
    nn.Softplus,
    nn.SiLU,
    nn.Hardtanh,
)
KINDS = ("dense", "dense", "dense", "line", "image", "words", "attention")


class Words(nn.Module):
    """Lines of a table, a dense layer on each, their mean."""

    def __init__(self, width: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.table, self.mix, self.out = (
            nn.Embedding(7, width),
            nn.Linear(width, hidden),
            nn.Linear(hidden, outputs),
        )

    def forward(self, x: Any) -> Any:
        return self.out(self.mix(self.table(x.abs().long().clamp_max(6))).relu().mean(1))


class Attention(nn.Module):
    """One head, with a parameter outside any layer."""

    def __init__(self, places: int, width: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.mix, self.place = (
            nn.Linear(width, 3 * hidden),
            nn.Parameter(torch.randn(places, width)),
        )
        self.last = nn.Linear(hidden, outputs)

    def forward(self, x: Any) -> Any:
        q, k, v = self.mix(x + self.place).chunk(3, dim=2)
        return self.last((torch.softmax(q @ k.transpose(1, 2), dim=2) @ v).relu().mean(1))


def network(rng: np.random.Generator, kind: str) -> tuple[nn.Module, tuple[int, ...], int]:
    """A module, the shape of its rows, and its classes."""
    some = lambda low, high: int(rng.integers(low, high))  # noqa: E731
    classes, between = some(2, 6), BETWEEN[some(0, len(BETWEEN))]
    outputs = 1 if classes == 2 and rng.random() < 0.5 else classes
    if kind == "dense":
        width, hidden = some(1, 130), [some(1, 100) for _ in range(some(1, 4))]
        sizes = [width, *hidden]
        layers = [
            part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), between())
        ]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs)), (width,), classes
    if kind == "words":
        return Words(some(2, 20), some(2, 40), outputs), (some(1, 9),), classes
    if kind == "attention":
        places, width = some(2, 7), some(2, 9)
        return Attention(places, width, some(2, 20), outputs), (places, width), classes
    flat, channels, middle, length = kind == "line", some(1, 4), some(1, 9), some(6, 12)
    conv, norms = (nn.Conv1d, nn.Conv2d)[not flat], (nn.GroupNorm(1, middle), nn.Identity())
    shape = (channels, length) if flat else (channels, length, length)
    first = conv(channels, middle, some(1, 4), padding=some(0, 2), stride=some(1, 3))
    layers = [
        first,
        norms[some(0, 2)],
        between(),
        conv(middle, some(1, 9), some(1, 3)),
        between(),
        nn.Flatten(),
    ]
    with torch.no_grad():
        found = nn.Sequential(*layers)(torch.zeros(1, *shape)).shape[1]
    return nn.Sequential(*layers, nn.Linear(found, outputs)), shape, classes


def on_the_edge(module: nn.Module, x: Any) -> None:
    """Move biases so that at x all layers but the last give rounding noise; of a convolution at one
    position."""
    named = [
        (n, m)
        for n, m in module.named_modules()
        if isinstance(m, nn.Linear | nn.Conv1d | nn.Conv2d)
    ]
    for name, layer in named[:-1]:
        twin, seen = copy.deepcopy(module).double(), []
        dict(twin.named_modules())[name].register_forward_hook(
            lambda m, given, out, seen=seen: seen.append(out)
        )
        twin(x.double())
        flat = (
            seen[0].flatten(2)[0, :, 0]
            if not isinstance(layer, nn.Linear)
            else seen[0].reshape(-1, layer.out_features)[0]
        )
        with torch.no_grad():
            layer.bias -= flat.float()


class Sums:
    """The totals of a gradient and a histogram."""

    def __init__(self, skeleton: Skeleton, X: Any, y: Any) -> None:
        self.X, self.y, self.classes, model = (
            X,
            y,
            tuple(range(skeleton.classes)),
            Network(skeleton, skeleton.start),
        )
        self.asked = [NetworkGradient(model, 1.0), NetworkHistogram(model, None, "soft", True)]
        self.scales = [
            question.scale(self.rows(np.arange(1)).layout, None) for question in self.asked
        ]

    def rows(self, at: Any) -> Rows:
        return Rows.from_arrays(self.X[at], self.y[at], classes=self.classes)

    def of(self, at: Any) -> tuple[Any, Any]:
        measurements, rows = (
            [(q, [s]) for q, s in zip(self.asked, self.scales, strict=True)],
            self.rows(at),
        )
        gradient, histogram = totals(measurements, rows, rows.blocks())
        return gradient[0], histogram[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", type=int, default=300)
    parser.add_argument("--removals", type=int, default=10, help="of each network")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(given.threads)
    rng, ways, tried, moved, histograms, worst, start = (
        np.random.default_rng(given.seed),
        Counter(),
        0,
        0,
        0,
        0.0,
        time.time(),
    )
    broken: Counter[str] = Counter()
    for _ in range(given.networks):
        kind = KINDS[int(rng.integers(len(KINDS)))]
        torch.manual_seed(int(rng.integers(2**31)))
        module, shape, classes = network(rng, kind)
        x = (rng.normal(size=int(np.prod(shape))) * 10.0 ** rng.uniform(-2, 3)).astype(np.float32)
        on_the_edge(module, torch.from_numpy(x).reshape(1, *shape))
        skeleton = Skeleton.of(module, len(x), classes, input_shape=shape)
        n = int(rng.choice([*range(2, 21), 33, 64, 65, 127, 129, 299, 513, 2049]))
        X = np.repeat(x[np.newaxis], n, axis=0)
        others = rng.random(n) < 0.3
        X[others] = rng.normal(size=(int(others.sum()), len(x))) * 10.0 ** rng.uniform(
            -2, 3, (int(others.sum()), 1)
        )
        sums, at = Sums(skeleton, X, rng.integers(0, classes, n)), np.arange(n)
        whole, off = sums.of(at), 0.0
        for i in [0, n - 1, *rng.integers(0, n, given.removals - 2).tolist()]:
            left, one = sums.of(np.delete(at, i)), sums.of(at[[i]])
            steps = (whole[0] - left[0] - one[0]).astype(float)
            off = max(off, float(np.linalg.norm(steps)) * sums.scales[0].unit)
            moved += bool(steps.any())
            histograms += bool((whole[1] != left[1] + one[1]).any())
            tried += 1
        worst = max(worst, off)
        broken[kind] += off > 0
        method = getattr(engine(skeleton), "method", None)
        if method is not None:
            padded = ", padded products" if method.way.aligned else ""
            ways[f"{method.way.name}{padded}, up to {method.shapes[-1]} rows"] += 1
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                "threads": torch.get_num_threads(),
                "networks": given.networks,
                "rows taken away": tried,
                "of these, gradient sums of others that moved": moved,
                "and histograms": histograms,
                "furthest, in clips": worst,
                "networks with such a row": dict(broken),
                "ways": dict(ways),
                "seconds": round(time.time() - start),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
