"""A row's contribution is its own: guarantee 1 of kernels/torch_gradient.py, searched by rows that
hang on last bits."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from fairveil.curator import Network, NetworkGradient, NetworkHistogram, Rows  # noqa: E402
from fairveil.curator.kernels.torch_alone import Method, Trial, ladder, smooth  # noqa: E402
from fairveil.curator.kernels.torch_gradient import Wanted, engine  # noqa: E402
from fairveil.curator.kernels.torch_ways import ROW_BY_ROW, Way  # noqa: E402
from fairveil.curator.passes import totals  # noqa: E402
from fairveil.curator.quiet import Troubles  # noqa: E402
from fairveil.models import Skeleton  # noqa: E402

FEW = (*range(1, 21), 31, 32, 33, 63, 64, 65, 66, 127, 129, 299)
MANY = (511, 512, 513, 2047, 2048, 2049, 4097)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(11)
    yield
    torch.set_num_threads(before)


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
    def __init__(self) -> None:
        super().__init__()
        self.table, self.mix, self.out = nn.Embedding(5, 6), nn.Linear(6, 7), nn.Linear(7, 2)

    def forward(self, x: Any) -> Any:
        return self.out(self.mix(self.table(x.abs().mul(2).long().clamp_max(4))).relu().mean(1))


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


def line() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(2, 3, 3), nn.LayerNorm([3, 5]), nn.Softplus(), nn.Flatten(), nn.Linear(15, 3)
    )


# name: (module, input shape, classes)
MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "dense": (lambda: dense(64, 64, 1), (64,), 2),
    "odd widths": (lambda: dense(13, 33, 3), (13,), 3),
    "sigmoid": (lambda: dense(7, 9, 5, nn.Sigmoid), (7,), 5),
    "tanh": (lambda: dense(6, 5, 2, nn.Tanh), (6,), 2),
    "gelu": (lambda: dense(9, 17, 3, nn.GELU), (9,), 3),
    "elu": (lambda: dense(5, 31, 2, nn.ELU), (5,), 2),
    "logistic": (lambda: nn.Linear(14, 3), (14,), 3),
    "images": (image, (2, 5, 5), 3),
    "lines": (line, (2, 7), 3),
    "words": (Words, (9,), 2),
    "attention": (Attention, (5, 3), 3),
}


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


@pytest.mark.parametrize("name", MODULES)
def test_taking_away_a_row_takes_away_its_contribution_alone(name: str) -> None:
    """To the last grid step, and in the histogram; at the first place, in the middle and at the
    last."""
    skeleton, X, y = drawn(name)
    sums = Sums(skeleton, X, y)
    assert engine(skeleton).method.way.name != ROW_BY_ROW
    rng = np.random.default_rng(1)
    for n in (*FEW, *MANY) if name == "logistic" else (*FEW[::2], 513, 4097):
        at = rng.permutation(len(X))[:n]
        for i in places(n):
            assert sums.moved(at, i) == 0.0, (n, i)


@pytest.mark.parametrize("name", ["dense", "images"])
def test_on_two_threads_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairveil.curator.kernels.torch_alone.MOST", 512)
    torch.set_num_threads(2)
    skeleton, X, y = drawn(name, rows=600)
    sums = Sums(skeleton, X, y)
    assert engine(skeleton).method.way.name != ROW_BY_ROW
    for n in (2, 17, 600):
        assert sums.moved(np.arange(n), 0) == 0.0, n


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("name", MODULES)
def test_on_a_gpu_too(name: str) -> None:
    skeleton, X, y = drawn(name, rows=600)
    _, shape, classes = MODULES[name]
    there = Skeleton.of(
        skeleton.module.cpu(), X.shape[1], classes, input_shape=shape, device="cuda"
    )
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
    for seed in range(4):
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


def test_convolutions_of_flat_images_whose_kernels_add_up_to_nothing() -> None:
    """Every position's pre-activation is rounding noise."""
    module = nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.Conv2d(6, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)
    )
    with torch.no_grad():
        module[0].weight -= module[0].weight.mean(dim=(1, 2, 3), keepdim=True)
        module[0].bias.zero_()
        module[2].bias.zero_()
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(300, 1)), 100, axis=1).astype(np.float32) * 30
    X[::3] = X[0]
    sums = Sums(Skeleton.of(module, 100, 2, input_shape=(1, 10, 10)), X, rng.integers(0, 2, 300))
    for n in (2, 3, 15, 16, 17, 33, 64, 129, 300):
        assert all(sums.moved(np.arange(n), i) == 0.0 for i in places(n))


def test_a_climb_towards_the_largest_move_finds_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Widths, sizes of rows, their number and place are changed for as long as that moves the
    others further."""
    monkeypatch.setattr("fairveil.curator.kernels.torch_alone.MOST", 64)
    rng, worst = np.random.default_rng(7), 0.0
    for width, hidden in ((64, 64), (14, 6), (33, 30)):
        best: tuple[float, Any] = (-1.0, None)
        for turn in range(10):
            if turn < 4 or best[1] is None:
                x, scale, n = (
                    rng.normal(size=width),
                    10.0 ** rng.uniform(-3, 4),
                    int(rng.integers(2, 70)),
                )
            else:
                x, scale, n = best[1]
                x, scale = (
                    x + 0.1 * rng.normal(size=width) * (rng.random(width) < 0.3),
                    scale * 2.0 ** rng.normal(),
                )
                n = max(2, n + int(rng.integers(-3, 4)))
            row = (x * scale).astype(np.float32)
            torch.manual_seed(turn // 4)
            module = on_the_edge(dense(width, hidden, 2), torch.from_numpy(row)[np.newaxis])
            sums = Sums(
                Skeleton.of(module, width, 2),
                np.repeat(row[np.newaxis], n, axis=0),
                rng.integers(0, 2, n),
            )
            moved = max(sums.moved(np.arange(n), i) for i in places(n))
            best = max(best, (moved, (x, scale, n)), key=lambda found: found[0])
        worst = max(worst, best[0])
    assert worst == 0.0


def test_batches_blocks_and_splits_are_sums_of_rows() -> None:
    """A Poisson batch is the sum of its rows, one by one; so are a table in blocks, and one in
    another order."""
    skeleton, X, y = drawn("odd widths", rows=200)
    sums = Sums(skeleton, X, y)
    one_by_one = [sums.of(np.array([i])) for i in range(200)]
    whole = sums.rows(np.arange(200))
    rng = np.random.default_rng(5)
    for rate in (0.05, 0.3, 1.0):
        index = np.flatnonzero(rng.random(200) < rate)
        found = sums.of(index, whole)
        for k in range(2):
            assert (found[k] == sum(one_by_one[i][k] for i in index)).all()
    order, cuts = rng.permutation(200), np.sort(rng.integers(0, 200, 6))
    parts = [sums.of(part) for part in np.split(order, cuts) if len(part)]
    assert all(
        (sums.of(np.arange(200))[k] == sum(part[k] for part in parts)).all() for k in range(2)
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


class Neighbourly(nn.Module):
    """A row's last bits hang on others: on its place, on how many there are, on their numbers, or
    on chance."""

    def __init__(self, on: str) -> None:
        super().__init__()
        self.inner, self.on = dense(6, 8, 3, nn.Tanh), on

    def forward(self, x: Any) -> Any:
        ulp, place = torch.tensor(2.0**-22), torch.arange(len(x)).unsqueeze(1)
        off = {
            "place": lambda: place == 77,
            "count": lambda: torch.tensor(len(x) > 200),
            "numbers": lambda: (x.abs().amax() > 1e5) & (place < len(x)),
            "chance": lambda: torch.rand(len(x), 1) < 0.5,
        }[self.on]()
        return self.inner(x) * torch.where(off, 1.0 + ulp, 1.0)


@pytest.mark.parametrize(
    ("on", "largest"), [("place", 32), ("count", 128), ("numbers", 1), ("chance", 1)]
)
def test_a_module_whose_bits_hang_on_others_gets_small_chunks_or_none(
    on: str, largest: int
) -> None:
    """The trial sees one last bit at one place of 128; where no shape passes, rows go one by
    one."""
    skeleton = Skeleton.of(Neighbourly(on), 6, 3)
    method = engine(skeleton).method
    assert method.shapes[-1] == largest
    assert (method.way.name == ROW_BY_ROW) == (largest == 1)
    if on != "chance":
        X = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
        X[7] = 1e6
        sums = Sums(skeleton, X, np.arange(300) % 3)
        sizes = (9,) if largest == 1 else (78, 79, 202, 300)
        assert all(sums.moved(np.arange(n), i) == 0.0 for n in sizes for i in places(n))


def test_plain_products_that_hang_on_a_rows_place_are_padded() -> None:
    """Where a library's sums hang on where a row begins, products go by whole lines; where not, as
    they are."""
    skeleton = Skeleton.of(dense(33, 33, 5), 33, 5)
    trial = Trial.of(skeleton, 512)
    assert trial is not None
    plain, aligned = engine(skeleton)._ways[:2]
    assert (plain.aligned, aligned.aligned) == (False, True)
    assert trial.passed(aligned) == trial.shapes
    assert engine(skeleton).method.way is (
        plain if trial.passed(plain) == trial.shapes else aligned
    )


def test_each_number_of_threads_is_tried_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairveil.curator.kernels.torch_alone.MOST", 32)
    skeleton = Skeleton.of(dense(6, 8, 3), 6, 3)
    ready = engine(skeleton)
    one = ready.method
    assert ready.method is one
    torch.set_num_threads(2)
    assert ready.method is not one
    torch.set_num_threads(1)
    assert ready.method is one


@pytest.mark.parametrize(
    ("most", "threads"), [(10**6, 1), (10**6, 8), (300, 1), (1, 2), (500, 3), (2048, 12)]
)
def test_chunks_hold_all_rows(most: int, threads: int) -> None:
    shapes = ladder(most, threads)
    assert all(shape % 32 == 0 for shape in shapes)
    assert shapes[0] == 32
    skeleton = Skeleton.of(nn.Linear(5, 2), 5, 2)
    for numbers in (7, 1_000, 10**6):
        skeleton.numbers_per_row = numbers
        method = Method(Way(skeleton, ROW_BY_ROW), shapes, np.zeros(5, np.float32))
        for n in (*FEW, *MANY):
            chunks = method.chunks(n)
            assert set(chunks) <= set(shapes)
            assert n <= sum(chunks) < n + shapes[-1]
            assert sum(chunks[:-1]) < n


def test_shares_of_threads_end_at_whole_vectors() -> None:
    assert smooth(2048, (64, 3), 4)
    assert not smooth(2048, (64, 3, 50), 3)
    assert smooth(96 * 16, (64, 3, 50), 3)
    assert smooth(2048, (64, 3, 50), 1)


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
