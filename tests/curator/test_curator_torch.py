"""Gradients of networks' rows: those of torch row by row, on the grid; and a row's contribution is
its own (guarantee 1 of kernels/torch_gradient.py), searched by rows that hang on last bits."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from fairveil.core.extra.torch_gradient import (  # noqa: E402
    WAYS,
    Built,
    Gradients,
    Wanted,
    engine,
    is_smooth,
    rounding_of,
    shapes_up_to,
)
from fairveil.core.passes import totals  # noqa: E402
from fairveil.core.quiet import Troubles  # noqa: E402
from fairveil.curator import Network, NetworkGradient, NetworkHistogram, Rows  # noqa: E402
from fairveil.models import Skeleton  # noqa: E402

ROWS, CLIP = 23, 0.3


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    yield
    torch.set_num_threads(before)


# -- gradients -------------------------------------------------------------------------------------


class Twice(nn.Module):
    """A dense layer, a convolution and a norm that are each used twice, with an in-place step
    between."""

    def __init__(self) -> None:
        super().__init__()
        self.dense, self.conv, self.norm, self.out = (
            nn.Linear(8, 8),
            nn.Conv1d(2, 2, 3, padding=1),
            nn.LayerNorm(8),
            nn.Linear(8, 3),
        )

    def forward(self, x: Any) -> Any:
        x = self.norm(self.dense(x)).relu_()
        x = self.norm(self.dense(x))
        x = self.conv(self.conv(x.reshape(-1, 2, 4)).tanh_())
        return self.out(x.flatten(1))


class Attention(nn.Module):
    """One head over five positions, written by hand, with a parameter outside any layer: by
    torch.func."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.place, self.out = (
            nn.Linear(3, 12),
            nn.Parameter(torch.randn(5, 3)),
            nn.Linear(4, 3),
        )

    def forward(self, x: Any) -> Any:
        q, k, v = self.mix(x + self.place).split(4, dim=2)
        return self.out((torch.softmax(q @ k.transpose(1, 2) / 2.0, dim=2) @ v).relu().mean(1))


class Words(nn.Module):
    """A table whose lines are looked up again and again within a row; the first line is padding."""

    def __init__(self, *, padding: int | None = 0) -> None:
        super().__init__()
        self.table, self.mix, self.out = (
            nn.Embedding(5, 6, padding_idx=padding),
            nn.Linear(6, 7),
            nn.Linear(7, 2),
        )

    def forward(self, x: Any) -> Any:
        return self.out(self.mix(self.table(x.abs().mul(2).long().clamp_max(4))).tanh().mean(1))


class Tied(nn.Module):
    """Two layers that share a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other, self.out = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 1)
        self.other.weight = self.one.weight

    def forward(self, x: Any) -> Any:
        return self.out(self.other(self.one(x).tanh()).tanh())


class Sized(nn.Module):
    """Counts its rows in Python, so that torch.func has no rule for it: the gradient goes row by
    row."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.out = nn.Parameter(torch.ones(6)), nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        return torch.stack(
            [
                self.out(row * self.scale) * (1.0 if float(row.detach().sum()) > 0 else 0.5)
                for row in x
            ]
        )


def frozen() -> nn.Module:
    """A frozen layer in the middle, a frozen bias, and one after the frozen layer."""
    module = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 3))
    for p in (*module[2].parameters(), module[0].bias):
        p.requires_grad_(False)
    return module


def dense(
    width: int, hidden: int, outputs: int, between: Callable[[], nn.Module] = nn.ReLU
) -> nn.Module:
    return nn.Sequential(
        nn.Linear(width, hidden),
        between(),
        nn.Linear(hidden, hidden),
        between(),
        nn.Linear(hidden, outputs),
    )


def image(outputs: int = 3) -> nn.Module:
    layers = (
        nn.Conv2d(2, 5, 3, padding=1),
        nn.GroupNorm(1, 5),
        nn.ReLU(),
        nn.Conv2d(5, 3, 2),
        nn.Sigmoid(),
        nn.Flatten(),
    )
    return nn.Sequential(*layers, nn.Linear(48, outputs))


def pictures() -> nn.Module:
    """Convolutions and dense layers alone, one with stride, padding and dilation."""
    first = nn.Conv2d(2, 4, 3, stride=2, padding=1, dilation=(1, 2))
    layers = (first, nn.ReLU(inplace=True), nn.Conv2d(4, 3, 2, bias=False), nn.Tanh())
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(6, 3))


def line() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(2, 3, 3), nn.LayerNorm([3, 5]), nn.Softplus(), nn.Flatten(), nn.Linear(15, 3)
    )


# name: (module, input shape, classes)
MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "dense": (lambda: dense(64, 64, 1), (64,), 2),
    "odd widths": (lambda: dense(13, 33, 3), (13,), 3),
    "sigmoid": (lambda: dense(7, 9, 5, nn.Sigmoid), (7,), 5),
    "elu, two outputs for two classes": (lambda: dense(5, 31, 2, nn.ELU), (5,), 2),
    "logistic": (lambda: nn.Linear(14, 3), (14,), 3),
    "images": (image, (2, 5, 5), 3),
    "pictures": (pictures, (2, 6, 5), 3),
    "lines": (line, (2, 7), 3),
    "words": (Words, (9,), 2),
    "attention": (Attention, (5, 3), 3),
    "reused layers": (Twice, (8,), 3),
    "frozen layers": (frozen, (6,), 3),
    "tied layers": (Tied, (6,), 2),
    "python in it": (Sized, (6,), 3),
}
LAYERS = (
    "pictures",
    "dense",
    "odd widths",
    "sigmoid",
    "elu, two outputs for two classes",
    "logistic",
    "frozen layers",
)
SLOW = "python in it"
"""That torch has no rule for: its rows go one by one."""


def asked(skeleton: Skeleton, *, exact: bool, rows: int = ROWS) -> tuple[Any, Wanted]:
    rng, classes = np.random.default_rng(5), skeleton.classes
    X = rng.normal(size=(rows, skeleton.width)).astype(np.float32)
    labels, costs = rng.integers(0, classes, rows), rng.normal(size=(rows, skeleton.outputs))
    return X, Wanted(CLIP, 2.0**-37, exact, 1.7, 0.8, labels, costs, rng.uniform(0.1, 1.0, rows))


def every_row(skeleton: Skeleton, X: Any, wanted: Wanted) -> Any:
    """Each row's gradient by torch, from the objective as it is written; float64 (rows,
    parameters)."""
    module, out = skeleton.module, []
    skeleton.load(skeleton.start)
    for i in range(len(X)):
        z = module(skeleton.tensor(X[i : i + 1])).double()
        z = z if z.shape[1] > 1 else torch.cat([torch.zeros_like(z), z], dim=1)
        costs = wanted.costs[i] if len(wanted.costs[i]) > 1 else np.array([0.0, wanted.costs[i, 0]])
        loss = (
            nn.functional.cross_entropy(z, torch.tensor(wanted.labels[i : i + 1]))
            * wanted.loss_weight
        )
        objective = loss + (torch.tensor(costs) * torch.softmax(wanted.sharpness * z, dim=1)).sum()
        own = [p for _, p in module.named_parameters() if p.requires_grad]
        found = torch.autograd.grad(objective, own, allow_unused=True)
        out.append(
            np.concatenate(
                [
                    (torch.zeros_like(p) if g is None else g).numpy().ravel()
                    for p, g in zip(own, found, strict=True)
                ]
            )
        )
    return np.array(out, np.float64)


def clipped_sum(rows: Any, wanted: Wanted) -> Any:
    norms = np.linalg.norm(rows, axis=1)
    return (np.minimum(1.0, wanted.clip / np.maximum(norms, 1e-300)) * wanted.weights) @ rows


@pytest.mark.parametrize("name", MODULES)
def test_sums_are_those_of_rows_one_by_one_and_rounding_is_bounded(name: str) -> None:
    """A row's contribution is at most the clip and what rounding adds, and near the one that is not
    rounded; rows that share a pass, in whatever parts, add what each adds alone."""
    make, shape, classes = MODULES[name]
    skeleton = Skeleton.of(make(), int(np.prod(shape)), classes, input_shape=shape)
    ready = engine(skeleton)
    assert (ready.method.way == "row by row") == (name == SLOW)
    assert ready.method.way.endswith("layers") == (name in LAYERS)
    X, wanted = asked(skeleton, exact=False)
    gradients = every_row(skeleton, X, wanted)
    assert (np.linalg.norm(gradients, axis=1) > CLIP).any()
    right = clipped_sum(gradients, wanted)
    _, total = ready.run(skeleton.start, X, wanted, Troubles())
    assert total is not None
    assert np.linalg.norm(total * wanted.unit - right) <= 1e-5 * np.linalg.norm(right)
    _, wanted = asked(skeleton, exact=True)
    slack = rounding_of(skeleton) * wanted.unit
    logits, whole = ready.run(skeleton.start, X, wanted, Troubles())
    added = np.zeros(skeleton.size, np.int64)
    for i in range(ROWS):
        one = wanted.of(slice(i, i + 1))
        some, steps = ready.run(skeleton.start, X[i : i + 1], one, Troubles())
        assert (some == logits[i]).all()
        assert one.weights is not None
        moved, near = steps * wanted.unit, clipped_sum(gradients[i : i + 1], one)
        assert np.linalg.norm(moved) <= CLIP * one.weights[0] * (1 + 2.0**-28) + slack
        assert np.linalg.norm(moved - near) <= slack + 5e-5 * np.linalg.norm(near)
        added += steps
    assert (added == whole).all()


def test_more_rows_than_floats_hold_add_up_exactly() -> None:
    """Totals of many rows are those of one, so many times: nothing is lost where floats would not
    hold all."""
    skeleton = Skeleton.of(nn.Linear(3, 3), 3, 3)
    X, labels = np.full((70_001, 3), 2.0, np.float32), np.zeros(70_001, np.int64)
    wanted = Wanted(2.0**-1, 2.0**-38, True, 1.0, 1.0, labels, None, None)
    _, one = engine(skeleton).run(skeleton.start, X[:1], wanted.of(slice(0, 1)), Troubles())
    _, all_ = engine(skeleton).run(skeleton.start, X, wanted, Troubles())
    assert one is not None
    assert all_ is not None
    assert np.abs(one).max() > 2**35
    assert (all_ == 70_001 * one).all()


# -- a row alone -----------------------------------------------------------------------------------


def on_the_edge(module: nn.Module, x: Any) -> nn.Module:
    """The module with biases moved so that at x the pre-activations of dense layers, but the last,
    are rounding noise."""
    inner = [m for m in module.modules() if isinstance(m, nn.Linear)][:-1]
    for layer in inner:
        exact, seen = copy.deepcopy(module).double(), []
        at = [n for n, m in module.named_modules() if m is layer]
        twin = dict(exact.named_modules())[at[0]]
        twin.register_forward_hook(lambda m, given, out: seen.append(out))  # noqa: B023
        exact(x.double())
        with torch.no_grad():
            layer.bias -= seen[0].reshape(-1, layer.out_features)[0].float()
    return module


def drawn(name: str, *, seed: int = 0, rows: int = 4097) -> tuple[Skeleton, Any, Any]:
    """A skeleton, rows and labels: many rows at which its neurons hang on last bits, and a few
    others among them."""
    make, shape, classes = MODULES[name]
    rng, width = np.random.default_rng(seed), int(np.prod(shape))
    x = (rng.normal(size=width) * 10.0 ** rng.uniform(-1, 2)).astype(np.float32)
    module = on_the_edge(make(), torch.from_numpy(x).reshape(1, *shape))
    skeleton = Skeleton.of(module, width, classes, input_shape=shape)
    X = np.repeat(x[np.newaxis], rows, axis=0)
    others = rng.random(rows) < 0.2
    X[others] = rng.normal(size=(int(others.sum()), width)) * 10.0 ** rng.uniform(
        -2, 2, (int(others.sum()), 1)
    )
    return skeleton, X, rng.integers(0, classes, rows)


class Sums:
    """Totals of a clipped gradient and a soft histogram, in whole grid steps, of any of the
    rows."""

    def __init__(self, skeleton: Skeleton, X: Any, y: Any, clip: float = 1.0) -> None:
        self.X, self.y, self.classes = X, y, tuple(range(skeleton.classes))
        layout = self.rows(np.arange(1)).layout
        model = Network(skeleton, skeleton.start)
        self.asked = [NetworkGradient(model, clip), NetworkHistogram(model, None, "soft", True)]
        self.scales = [question.scale(layout, None) for question in self.asked]

    def rows(self, at: Any) -> Rows:
        return Rows.from_arrays(self.X[at], self.y[at], classes=self.classes)

    def of(self, at: Any, source: Rows | None = None) -> tuple[Any, Any]:
        measurements = [
            (question, [scale]) for question, scale in zip(self.asked, self.scales, strict=True)
        ]
        rows = self.rows(at) if source is None else source
        gradient, histogram = totals(
            measurements, rows, rows.blocks() if source is None else source.drawn(at)
        )
        return gradient[0], histogram[0]

    def moved(self, at: Any, i: int) -> float:
        """How far rows other than the i-th moved when it was taken away, in clips; infinite where a
        histogram moved."""
        left = np.delete(at, i)
        parts = [self.of(at), self.of(at[[i]]), *([self.of(left)] if len(left) else [])]
        (gradient, histogram), *taken = parts
        if (histogram != sum(h for _, h in taken)).any():
            return np.inf
        steps = gradient - sum(g for g, _ in taken)
        return float(np.linalg.norm(steps.astype(float))) * self.scales[0].unit


def places(n: int) -> set[int]:
    return {0, n // 2, n - 1}


@pytest.mark.parametrize("name", [name for name in MODULES if name != SLOW])
def test_taking_away_a_row_takes_away_its_contribution_alone(name: str) -> None:
    """To the last grid step, and in the histogram; at the first place, in the middle and at the
    last."""
    skeleton, X, y = drawn(name, rows=600)
    sums = Sums(skeleton, X, y)
    assert engine(skeleton).method.way != "row by row"
    rng = np.random.default_rng(1)
    for n in (1, 2, 3, 5, 16, 33, 64, 129, 513):
        at = rng.permutation(len(X))[:n]
        for i in places(n):
            assert sums.moved(at, i) == 0.0, (n, i)


@pytest.mark.parametrize("name", ["sigmoid", "images"])
def test_on_two_threads_too(name: str) -> None:
    torch.set_num_threads(2)
    skeleton, X, y = drawn(name, rows=600)
    sums = Sums(skeleton, X, y)
    two = engine(skeleton).method
    assert two.way != "row by row"
    for n in (2, 17, 600):
        assert sums.moved(np.arange(n), 0) == 0.0, n
    torch.set_num_threads(1)
    one = engine(skeleton).method
    assert one is not two  # each number of threads is tried by itself, and once
    torch.set_num_threads(2)
    assert engine(skeleton).method is two


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("name", [name for name in MODULES if name != SLOW])
def test_on_a_gpu_too(name: str) -> None:
    skeleton, X, y = drawn(name, rows=600)
    _, shape, classes = MODULES[name]
    module = skeleton.module.cpu()
    there = Skeleton.of(module, X.shape[1], classes, input_shape=shape, device="cuda")
    sums = Sums(there, X, y)
    for n in (2, 3, 4, 17, 64, 299, 600):
        assert all(sums.moved(np.arange(n), i) == 0.0 for i in places(n)), n


def test_rows_in_the_null_space_of_a_layer() -> None:
    """The search that found 4.4 clips: hidden neurons are rounding noise around zero, at rows that
    are all alike."""
    d = 64
    module = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, 1))
    with torch.no_grad():
        module[0].bias.zero_()
    W = module[0].weight.detach().double().numpy()[:60]
    for seed in range(2):
        x = np.random.default_rng(seed).normal(size=d)
        for _ in range(3):
            x = x - W.T @ np.linalg.solve(W @ W.T, W @ x)
        X = np.repeat((x / np.linalg.norm(x) * 50).astype(np.float32)[np.newaxis], 400, axis=0)
        sums = Sums(Skeleton.of(module, d, 2), X, np.ones(400, int))
        for n in (2, 3, 4, 5, 16, 17, 100, 299, 400):
            assert sums.moved(np.arange(n), 0) == 0.0
            before, after = sums.of(np.arange(n))[0], sums.of(np.arange(n - 1))[0] if n > 1 else 0
            assert (
                np.linalg.norm((before - after).astype(float)) * sums.scales[0].unit
                <= sums.scales[0].bound.norm
            )


class Picky(nn.Module):
    """Raises where a row's first number is 9, gives NaN where it is -9."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        if bool((x[:, 0] == 9.0).any()):
            raise ValueError("a private row")
        return self.inner(x) / torch.where(x[:, :1] == -9.0, 0.0, 1.0)


@pytest.mark.parametrize("raising", [1, 5])
def test_rows_that_fail_leave_their_companions_bits(raising: int) -> None:
    """Beside rows for which user code raises, or that give NaN or infinite numbers, others add what
    they add alone."""
    x = np.random.default_rng(2).normal(size=64).astype(np.float32)
    module = on_the_edge(dense(64, 64, 1), torch.from_numpy(x)[np.newaxis])
    X = np.repeat(x[np.newaxis], 240, axis=0).astype(np.float64)
    rng = np.random.default_rng(3)
    bad = rng.choice(200, 9, replace=False)
    X[bad[:raising], 0], X[bad[5], 0] = 9.0, -9.0
    X[bad[6], 3], X[bad[7], 3], X[bad[8]] = 1e300, -1e300, 3e38  # infinite in float32
    sums = Sums(Skeleton.of(Picky(module), 64, 2), X, rng.integers(0, 2, 240))
    for n in (40, 100, 240):
        at = np.arange(n)
        mine = np.setdiff1d(at, bad)
        assert (
            sums.of(at)[0]
            == sums.of(mine)[0] + sum(sums.of(np.array([i]))[0] for i in bad if i < n)
        ).all()
        assert (sums.of(at[:1])[0] == sums.of(at)[0] - sums.of(at[1:])[0]).all()


@pytest.mark.parametrize(
    ("on", "largest"), [("place", 32), ("count", 128), ("numbers", 1), ("chance", 1)]
)
def test_sums_whose_bits_hang_on_other_rows_get_small_chunks_or_none(
    on: str, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial sees one last bit at one place of 128; where no shape passes, rows go one by
    one."""
    plain = WAYS["padded vmap"]

    def hanging(skeleton: Any, x: Any, slopes: Any, exact: bool) -> Any:
        logits, gradients = plain(skeleton, x, slopes, exact)
        place = torch.arange(len(x)).unsqueeze(1)
        off = {
            "place": lambda: place == 77,
            "count": lambda: torch.tensor(len(x) > 200),
            "numbers": lambda: (x.abs().amax() > 1e5) & (place < len(x)),
            "chance": lambda: torch.rand(len(x), 1) < 0.5,
        }[on]()
        last = torch.where(off, 1.0 + torch.tensor(2.0**-22), 1.0)
        return logits, None if gradients is None else Gradients(
            gradients._size, [Built(gradients.pieces[0].pieces * last, 0, exact)]
        )

    for way in list(WAYS)[:-1]:
        monkeypatch.setitem(WAYS, way, hanging)
    skeleton = Skeleton.of(dense(6, 8, 3, nn.Tanh), 6, 3)
    method = engine(skeleton).method
    assert method.shapes[-1] == largest
    assert (method.way == "row by row") == (largest == 1)
    X = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
    X[7] = 1e6
    sums = Sums(skeleton, X, np.arange(300) % 3)
    sizes = (9,) if largest == 1 else (78, 202, 300)
    assert all(sums.moved(np.arange(n), i) == 0.0 for n in sizes for i in places(n))


@pytest.mark.parametrize(
    ("most", "threads"), [(10**6, 1), (10**6, 8), (300, 1), (1, 2), (500, 3), (2048, 12)]
)
def test_chunks_are_whole_vectors_of_every_thread(most: int, threads: int) -> None:
    shapes = shapes_up_to(most, threads)
    assert all(shape % 32 == 0 for shape in shapes)
    assert shapes[0] in (32, 96)
    assert is_smooth(2048, (64, 3), 4)
    assert not is_smooth(2048, (64, 3, 50), 3)
    assert is_smooth(96 * 16, (64, 3, 50), 3)
