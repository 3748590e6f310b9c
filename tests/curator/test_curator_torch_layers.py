"""Gradients by layers against torch.func, row by row, and against opacus; and the grid on which
they are added."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from fairveil.core.threads import in_pieces  # noqa: E402
from fairveil.curator.kernels.torch_gradient import Engine, Wanted, engine  # noqa: E402
from fairveil.curator.kernels.torch_parts import (  # noqa: E402
    Built,
    FusedProduct,
    GradientPiece,
    Looked,
    Product,
    Scratch,
    product_of,
)
from fairveil.curator.quiet import Troubles  # noqa: E402
from fairveil.models import Skeleton  # noqa: E402

ROWS, CLIP = 23, 0.3


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    yield
    torch.set_num_threads(before)


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


class Own(nn.Module):
    """A parameter outside any layer, and a layer's weight that is used behind its back."""

    def __init__(self, *, hidden: bool) -> None:
        super().__init__()
        self.scale = None if hidden else nn.Parameter(torch.ones(6))
        self.dense = nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        if self.scale is not None:
            return self.dense(x * self.scale)[:, :3]
        return self.dense(nn.functional.linear(x, self.dense.weight))[:, :3]


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


def images(*layers: nn.Module, width: int) -> nn.Module:
    return nn.Sequential(
        *layers, nn.Flatten(), nn.LazyLinear(3) if width == 0 else nn.Linear(width, 3)
    )


# name: (module, width, input shape, classes, the way)
MODULES: dict[str, tuple[Callable[[], nn.Module], int, tuple[int, ...] | None, int, str]] = {
    "dense": (
        lambda: nn.Sequential(nn.Linear(6, 9), nn.ReLU(inplace=True), nn.Linear(9, 3)),
        6,
        None,
        3,
        "by layers",
    ),
    "no biases": (
        lambda: nn.Sequential(nn.Linear(6, 9, bias=False), nn.Tanh(), nn.Linear(9, 1, bias=False)),
        6,
        None,
        2,
        "by layers",
    ),
    "two outputs for two classes": (lambda: nn.Linear(6, 2), 6, None, 2, "by layers"),
    "dense over positions": (
        lambda: nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Flatten(), nn.Linear(12, 3)),
        6,
        (3, 2),
        3,
        "by layers",
    ),
    "convolution, stride and padding": (
        lambda: images(nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.Tanh(), width=36),
        50,
        (2, 5, 5),
        3,
        "by layers",
    ),
    "convolution, dilation and groups": (
        lambda: images(
            nn.Conv2d(4, 6, (2, 1), dilation=(2, 1), groups=2, bias=False), nn.Tanh(), width=54
        ),
        60,
        (4, 5, 3),
        3,
        "by layers",
    ),
    "convolution, same and circular": (
        lambda: images(
            nn.Conv2d(2, 3, 3, padding="same", padding_mode="circular"), nn.Tanh(), width=60
        ),
        40,
        (2, 5, 4),
        3,
        "by layers",
    ),
    "convolution to one position": (
        lambda: images(nn.Conv2d(2, 5, 4), nn.Tanh(), width=5),
        32,
        (2, 4, 4),
        3,
        "by layers",
    ),
    "convolution along a line": (
        lambda: images(
            nn.Conv1d(2, 4, 3, stride=2, padding=2, dilation=2, groups=2), nn.Tanh(), width=20
        ),
        20,
        (2, 10),
        3,
        "by layers",
    ),
    "group and layer norm": (
        lambda: images(
            nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.LayerNorm([4, 3, 3]), nn.Tanh(), width=36
        ),
        50,
        (2, 5, 5),
        3,
        "by layers",
    ),
    "reused layers": (Twice, 8, None, 3, "by layers"),
    "a table": (Words, 9, None, 2, "by layers"),
    "a table without padding": (lambda: Words(padding=None), 9, None, 2, "by layers"),
    "frozen layers": (frozen, 6, None, 3, "by layers"),
    "tied layers": (Tied, 6, None, 2, "by torch.func"),
    "a parameter of its own": (lambda: Own(hidden=False), 6, None, 3, "by torch.func"),
    "a weight used twice unseen": (lambda: Own(hidden=True), 6, None, 3, "by torch.func"),
    "channels' norm": (
        lambda: images(nn.Conv2d(2, 4, 3), nn.InstanceNorm2d(4, affine=True), nn.Tanh(), width=36),
        50,
        (2, 5, 5),
        3,
        "by torch.func",
    ),
    "python in it": (Sized, 6, None, 3, "row by row"),
}


def made(name: str) -> tuple[Skeleton, str]:
    make, width, shape, classes, way = MODULES[name]
    return Skeleton.of(make(), width, classes, input_shape=shape), way


def asked(
    skeleton: Skeleton, *, exact: bool, clip: float = CLIP, rows: int = ROWS
) -> tuple[Any, Wanted]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(rows, skeleton.width)).astype(np.float32)
    labels, costs = (
        rng.integers(0, skeleton.classes, rows),
        rng.normal(size=(rows, skeleton.outputs)),
    )
    return X, Wanted(clip, 2.0**-37, exact, 1.7, 0.8, labels, costs, rng.uniform(0.1, 1.0, rows))


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
def test_clipped_sums_are_those_of_rows_one_by_one(name: str) -> None:
    skeleton, way = made(name)
    assert engine(skeleton).way == way
    X, wanted = asked(skeleton, exact=False)
    gradients = every_row(skeleton, X, wanted)
    right = clipped_sum(gradients, wanted)
    norms = np.linalg.norm(gradients, axis=1)
    assert (norms > CLIP).any()
    _, total = engine(skeleton).run(skeleton.start, X, wanted, Troubles())
    assert total is not None
    assert np.linalg.norm(total * wanted.unit - right) <= 1e-5 * np.linalg.norm(right)


@pytest.mark.parametrize("name", MODULES)
def test_on_the_grid_a_row_moves_by_rounding_alone(name: str) -> None:
    """A row's contribution is at most the clip and what `rounding` says, and near the one that is
    not rounded."""
    skeleton, _ = made(name)
    ready = engine(skeleton)
    X, wanted = asked(skeleton, exact=True)
    slack = ready.rounding * wanted.unit
    assert 0 < slack < 1e-3 * CLIP
    gradients = every_row(skeleton, X, wanted)
    for i in range(ROWS):
        one = wanted.of(slice(i, i + 1))
        _, total = ready.run(skeleton.start, X[i : i + 1], one, Troubles())
        assert total is not None
        moved = total * wanted.unit
        assert np.linalg.norm(moved) <= CLIP * one.weights[0] * (1 + 2.0**-28) + slack
        right = clipped_sum(gradients[i : i + 1], one)
        assert np.linalg.norm(moved - right) <= slack + 5e-5 * np.linalg.norm(right)


@pytest.mark.parametrize(
    "name", ["dense", "reused layers", "a table", "convolution, dilation and groups"]
)
def test_splits_and_chunks_agree(name: str) -> None:
    """To the last grid step: a row's bits are its own."""
    skeleton, _ = made(name)
    X, wanted = asked(skeleton, exact=True)
    ready = Engine(skeleton)
    logits, whole = ready.run(skeleton.start, X, wanted, Troubles())
    assert whole is not None
    for step in (1, 4, 7):
        total = np.zeros_like(whole)
        for a in range(0, ROWS, step):
            part = slice(a, a + step)
            some, added = ready.run(skeleton.start, X[part], wanted.of(part), Troubles())
            assert np.array_equal(some, logits[part])
            assert added is not None
            total += added
        assert np.array_equal(total, whole)


def parts(rng: np.random.Generator, rows: int) -> dict[str, Callable[[Any], GradientPiece]]:
    a, d = (
        torch.from_numpy(
            rng.normal(size=(rows, k)).astype(np.float32) * 10.0 ** rng.uniform(-8, 3, (rows, 1))
        ).float()
        for k in (11, 5)
    )
    index = torch.from_numpy(rng.integers(0, 4, (rows, 6)))
    slopes = torch.from_numpy(rng.normal(size=(rows, 6, 3)).astype(np.float32))
    return {
        "products": lambda at: Product(a[at], d[at], 2),
        "fused products": lambda at: FusedProduct(a[at], d[at], 2),
        "built": lambda at: Built(d[at].clone(), 1),
        "looked up": lambda at: Looked(index[at], slopes[at], 4, 3),
    }


def added(part: GradientPiece, clip: float) -> Any:
    total = torch.zeros(80, dtype=torch.float64)
    part.add(torch.clamp(clip / torch.sqrt(part.squares()), max=1.0) * 2.0**36 / clip, total)
    return total


@pytest.mark.parametrize("name", ["products", "fused products", "built", "looked up"])
def test_contributions_that_are_given_add_up_exactly(name: str) -> None:
    """Networks' guarantee 1: in any order, split in any way, the same bits."""
    rng = np.random.default_rng(8)
    make = parts(rng, 400)[name]
    whole = added(make(np.arange(400)), 0.25)
    assert float(whole.abs().max()) > 2.0**36
    assert torch.equal(whole, whole.round())
    for _ in range(5):
        order = rng.permutation(400)
        assert torch.equal(whole, added(make(order), 0.25))
        cuts = np.sort(rng.integers(0, 400, 6))
        pieces = [part for part in np.split(order, cuts) if len(part)]
        assert torch.equal(whole, sum(added(make(part), 0.25) for part in pieces))


@pytest.mark.parametrize("kind", [Product, FusedProduct])
def test_no_product_leaves_the_bits(kind: type[Product]) -> None:
    """The largest contributions that the clip allows, all of them alike, in a full chunk: still
    exact in float64."""
    rows, rng = 1 << 12, np.random.default_rng(3)
    for size in (1e-18, 1e-3, 1.0, 1e6):
        one = kind(torch.full((1, 1), size), torch.full((1, 1), 1e3 / size), 0)
        single = added(one, 0.25)
        assert 2.0**36 - 2.0**15 <= float(single[0]) <= 2.0**36 + 2.0**15
        signs = torch.from_numpy(np.where(rng.random((rows, 1)) < 0.9, 1.0, -1.0)).float()
        many = kind(torch.full((rows, 1), size), signs * (1e3 / size), 0)
        assert int(added(many, 0.25)[0]) == int(signs.sum()) * int(single[0])
        assert rows * int(single[0]) < 2**53


def lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def test_lenet_against_opacus() -> None:
    pytest.importorskip("opacus")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus.grad_sample import GradSampleModule

        module = lenet()
        skeleton = Skeleton.of(module, 784, 10, input_shape=(1, 28, 28))
        X, wanted = asked(skeleton, exact=False)
        wanted.costs[:] = 0.0
        theirs = GradSampleModule(module)
        out = theirs(torch.from_numpy(X).reshape(-1, 1, 28, 28))
        (
            nn.functional.cross_entropy(out, torch.from_numpy(wanted.labels), reduction="sum")
            * wanted.loss_weight
        ).backward()
        rows = np.concatenate(
            [p.grad_sample.reshape(ROWS, -1).numpy() for p in theirs.parameters()], axis=1
        )
    right = clipped_sum(rows.astype(np.float64), wanted)
    _, total = engine(skeleton).run(skeleton.start, X, wanted, Troubles())
    assert total is not None
    assert np.linalg.norm(total * wanted.unit - right) <= 1e-5 * np.linalg.norm(right)


@pytest.mark.parametrize("bias", [None, 7])
def test_a_layers_whole_numbers_are_those_of_torchs_own_operations(bias: int | None) -> None:
    """Guarantee 1 of `kernels_layers`: to the bit, for any float32 numbers, the tiniest and the
    largest."""
    rng, rows, width = np.random.default_rng(3), 400, 37
    X = (rng.normal(size=(rows, width)) * 10.0 ** rng.uniform(-44, 36, (rows, 1))).astype(
        np.float32
    )
    X[:50] = rng.integers(0, 2, (50, width))
    X[50:60] = 0.0
    X[60:70] = 2.0 ** rng.integers(-149, 127, (10, width))
    X[70, 0], X[71, 1], X[72, 2] = np.inf, -np.inf, np.nan
    slopes = torch.from_numpy(rng.normal(size=(rows, 5)).astype(np.float32))
    slopes[80], slopes[81, 2] = 0.0, torch.inf
    given = (torch.from_numpy(X), slopes, 0, bias)
    found, plain = FusedProduct(*given), Product(*given)
    bad = ~torch.isfinite(plain.squares())
    assert bad.sum() == 4
    assert torch.equal(bad, ~torch.isfinite(found.squares()))
    for part in (found, plain):
        part.drop(bad)
    assert torch.equal(found.up[~bad], plain.up[~bad])
    assert torch.equal(found.norms[~bad], plain.norms[~bad])
    # sums of squares in another order: a few roundings
    assert torch.allclose(found.squares()[~bad], plain.squares()[~bad], rtol=1e-14, atol=0.0)
    squares = torch.where(bad, 1.0, plain.squares())
    factors = torch.clamp(1.0 / torch.sqrt(squares), max=1.0) * 2.0**36
    for part in (found, plain):
        part.scale(torch.where(bad, 0.0, factors))
    runs = [(i, i + 1) for i in range(rows)] + [(0, rows), (3, 17), (70, 73), (8, 8)]
    for first, last in runs:
        totals = [torch.zeros(37 * 5 + 12, dtype=torch.float64) for _ in range(2)]
        for part, total in zip((found, plain), totals, strict=True):
            part.add_rows(first, last, total)
        assert torch.equal(*totals)
        assert not (bad[first:last].all() and totals[0].any())
        assert totals[0].any() or last - first < rows


def in_three(
    taken: list[tuple[int, int]], job: Callable[[int, int], None], lines: int, threads: int
) -> None:
    """On three threads; `taken` has what each of them took."""

    def noted(a: int, b: int) -> None:
        taken.append((a, b))
        job(a, b)

    in_pieces(noted, lines, 3)


def test_lines_that_threads_share_add_up_to_the_same() -> None:
    """A product that is large enough is cut between threads: the same sums, whatever the width."""
    rng, rows = np.random.default_rng(6), 300
    for width, height in ((130, 150), (64, 300), (2000, 9)):
        X, slopes = (
            torch.from_numpy(rng.normal(size=(rows, n)).astype(np.float32)) for n in (width, height)
        )
        taken: list[tuple[int, int]] = []
        share = partial(in_three, taken)
        totals = [torch.zeros((width + 1) * height, dtype=torch.float64) for _ in range(2)]
        for scratch, total in zip((Scratch(share), None), totals, strict=True):
            part = product_of(X, slopes, 0, width * height, True, scratch)
            part.add(2.0**36 / torch.sqrt(part.squares()), total)
        assert sorted(taken) == [(height * i // 3, height * (i + 1) // 3) for i in range(3)]
        assert torch.equal(*totals)
        assert totals[0].abs().min() > 0


def test_memory_that_is_used_again_holds_nothing_of_the_chunk_before() -> None:
    """What a step finds does not depend on the steps before it: larger ones, smaller ones, rows of
    NaN."""
    rng, scratch = np.random.default_rng(4), Scratch()
    for rows in (300, 20, 301, 1, 299):
        X = torch.from_numpy(rng.normal(size=(rows, 9)).astype(np.float32))
        X[0, 0] = torch.nan
        slopes = torch.from_numpy(rng.normal(size=(rows, 4)).astype(np.float32))
        totals = [torch.zeros(40, dtype=torch.float64) for _ in range(2)]
        for room, total in zip((scratch, None), totals, strict=True):
            part = FusedProduct(X, slopes, 0, 36, room)
            bad = ~torch.isfinite(part.squares())
            part.drop(bad)
            part.add(torch.where(bad, 0.0, torch.full((rows,), 1e6, dtype=torch.float64)), total)
        assert torch.equal(*totals)
        assert (totals[0].abs().sum() > 0) == (rows > 1)
