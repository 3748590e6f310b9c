"""Networks as models: what is refused, what is predicted, what is saved."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from fairveil.errors import InputError  # noqa: E402
from fairveil.facts import RowBlock, RowLayout  # noqa: E402
from fairveil.models import MixtureModel, NetworkModel, Skeleton, load, save  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(2)
    yield
    torch.set_num_threads(before)


LAYOUT = RowLayout(4, (3,))


def dense(width: int = 7, outputs: int = 3) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 5), nn.Tanh(), nn.Linear(5, outputs))


def made(classes: int = 3, outputs: int | None = None) -> tuple[NetworkModel, nn.Module]:
    module = dense(7, outputs or classes)
    skeleton = Skeleton.of(module, 7, classes)
    return NetworkModel(
        skeleton, skeleton.start, classes=("a", "b", "c")[:classes], layout=LAYOUT
    ), module


def block(rows: int = 40) -> tuple[RowBlock, Any]:
    rng = np.random.default_rng(0)
    numbers, codes = rng.normal(size=(4, rows)), rng.integers(0, 3, (1, rows))
    return RowBlock(numbers, codes), np.concatenate(
        [numbers.T, np.eye(3)[codes[0]]], axis=1
    ).astype(np.float32)


@pytest.mark.parametrize(("classes", "outputs"), [(2, 1), (2, 2), (3, 3)])
def test_predictions_are_the_modules(classes: int, outputs: int) -> None:
    model, module = made(classes, outputs)
    rows, X = block()
    with torch.no_grad():
        z = module(torch.from_numpy(X)).double()
    z = torch.cat([torch.zeros_like(z), z], dim=1) if outputs == 1 else z
    p = torch.softmax(z, dim=1).numpy()
    assert np.abs(model.predict_proba(rows) - p).max() < 1e-6
    assert np.array_equal(model.predict_codes(rows), p.argmax(axis=1))
    assert model.predict(rows).tolist() == [("a", "b", "c")[k] for k in p.argmax(axis=1)]
    assert np.array_equal(model.decision_proba(rows).argmax(axis=1), p.argmax(axis=1))
    sharp = torch.softmax(z / 0.5, dim=1).numpy()
    assert np.abs(model.predict_proba(rows, temperature=0.5) - sharp).max() < 1e-6


def test_arrays_and_sparse_arrays_and_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.sparse

    X = np.random.default_rng(1).normal(size=(50, 6)) * (
        np.random.default_rng(2).random((50, 6)) < 0.5
    )
    skeleton = Skeleton.of(dense(6), 6, 3)
    model = NetworkModel(skeleton, skeleton.start, classes=(0, 1, 2), layout=RowLayout(6))
    whole = model.predict_proba(X)
    assert np.array_equal(model.predict_proba(scipy.sparse.csr_array(X)), whole)
    monkeypatch.setattr("fairveil.models.torch_network.BLOCK_NUMBERS", 1)
    assert skeleton.block == 16
    assert np.abs(model.predict_proba(X) - whole).max() < 1e-6


def test_the_users_module_is_left_alone() -> None:
    module = dense()
    before = {name: p.clone() for name, p in module.named_parameters()}
    module.train()
    skeleton = Skeleton.of(module, 7, 3)
    skeleton.load(skeleton.start + 1.0)
    assert module.training
    assert all(
        torch.equal(before[name], p) and p.grad is None for name, p in module.named_parameters()
    )
    with torch.no_grad():
        module[0].weight.zero_()
    assert np.abs(skeleton.start[:35]).max() > 0


def test_flat_parameters_are_in_the_modules_order_and_frozen_ones_are_not_there() -> None:
    module = dense()
    module[0].bias.requires_grad_(False)
    skeleton = Skeleton.of(module, 7, 3)
    assert skeleton.names == ("0.weight", "2.weight", "2.bias")
    assert skeleton.shapes == ((5, 7), (3, 5), (3,))
    assert skeleton.size == len(skeleton.start) == 35 + 15 + 3
    assert np.array_equal(
        skeleton.start[:35].reshape(5, 7), module[0].weight.detach().numpy().astype(float)
    )
    assert skeleton.kinds == ("Linear", "Linear")


def test_an_image_is_given_its_shape() -> None:
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(18, 3))
    skeleton = Skeleton.of(module, 40, 3, input_shape=(2, 4, 5))
    X = np.random.default_rng(0).normal(size=(5, 40))
    model = NetworkModel(skeleton, skeleton.start, classes=(0, 1, 2), layout=RowLayout(40))
    with torch.no_grad():
        right = module(torch.from_numpy(X.astype(np.float32)).reshape(5, 2, 4, 5)).numpy()
    assert np.abs(model.decision_scores(X) - right).max() < 1e-6


class Mixes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(7, 3)

    def forward(self, x: Any) -> Any:
        return self.inner(x - x.mean(dim=0))


class Remembers(Mixes):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.seen += len(x)
        return self.inner(x)


class Draws(Mixes):
    def forward(self, x: Any) -> Any:
        return self.inner(x + torch.randn(x.shape))


class Logarithms(Mixes):
    def forward(self, x: Any) -> Any:
        return self.inner(torch.log(x))


class Fails(Mixes):
    def forward(self, x: Any) -> Any:
        # not in the first pass of rows of zeros, but in the one beside others
        if float(x.abs().max()) > 0.5:
            raise ValueError("too large")
        return self.inner(x)


def all_frozen() -> nn.Module:
    module = dense()
    for p in module.parameters():
        p.requires_grad_(False)
    return module


def broken() -> nn.Module:
    module = dense()
    with torch.no_grad():
        module[0].weight[0, 0] = float("nan")
    return module


def with_norm(norm: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(7, 6), norm, nn.Linear(6, 3))


@pytest.mark.parametrize(
    ("module", "match"),
    [
        (lambda: "a text", "torch.nn.Module"),
        (lambda: nn.Linear, "torch.nn.Module"),
        (all_frozen, "parameters to train"),
        (lambda: nn.Flatten(), "parameters to train"),
        (lambda: dense(7, 2), r"3\) for 3 classes.*last layer"),
        (lambda: dense(7, 1), "for 3 classes"),
        (lambda: dense(8, 3), "input_shape"),
        (lambda: dense().double(), r"float\(\)"),
        (lambda: dense().half(), r"float\(\)"),
        (broken, "finite"),
        (lambda: with_norm(nn.BatchNorm1d(6)), "GroupNorm"),
        (lambda: with_norm(nn.BatchNorm1d(6, track_running_stats=False)), "GroupNorm"),
        (lambda: with_norm(nn.SyncBatchNorm(6)), "GroupNorm"),
        (
            lambda: nn.Sequential(
                nn.Unflatten(1, (7, 1)), nn.InstanceNorm1d(7, track_running_stats=True)
            ),
            "GroupNorm",
        ),
        (lambda: with_norm(nn.Dropout(0.5)), "p=0"),
        (lambda: with_norm(nn.AlphaDropout(0.1)), "p=0"),
        (lambda: nn.TransformerEncoderLayer(7, 1, dropout=0.1), "p=0|dropout=0"),
        (Mixes, "that row alone"),
        (Draws, "that row alone"),
        (Remembers, "running statistics"),
        (Logarithms, "NaN or inf.*clamp"),
        (Fails, "too large"),
        (lambda: nn.Sequential(nn.LazyLinear(3)), "on one row first"),
    ],
)
def test_modules_that_will_not_do_are_refused_with_the_way_out(module: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        Skeleton.of(module(), 7, 3)


def test_dropout_of_zero_and_norms_of_one_row_are_welcome() -> None:
    for norm in (nn.Dropout(0.0), nn.LayerNorm(6), nn.GroupNorm(2, 6)):
        assert Skeleton.of(with_norm(norm), 7, 3).size > 0
    by_channel = nn.Sequential(
        nn.Unflatten(1, (1, 7)), nn.InstanceNorm1d(1), nn.Flatten(), nn.Linear(7, 3)
    )
    assert Skeleton.of(by_channel, 7, 3).size == 24


def test_arguments_are_checked() -> None:
    for more, match in (
        ({"input_shape": (2, 4)}, "input_shape"),
        ({"input_shape": (7, 0)}, "input_shape"),
    ):
        with pytest.raises(InputError, match=match):
            Skeleton.of(dense(), 7, 3, **more)
    with pytest.raises(InputError, match="classes"):
        Skeleton.of(dense(), 7, 1)
    with pytest.raises(InputError, match="device: expected a device that there is"):
        Skeleton.of(dense(), 7, 3, device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="device"):
            Skeleton.of(dense(), 7, 3, device="cuda")
    skeleton = Skeleton.of(dense(), 7, 3)
    for classes, layout, match in (((0, 1), LAYOUT, "classes"), ((0, 1, 2), RowLayout(6), "width")):
        with pytest.raises(InputError, match=match):
            NetworkModel(skeleton, skeleton.start, classes=classes, layout=layout)
    with pytest.raises(InputError, match="parameters"):
        NetworkModel(skeleton, skeleton.start[1:], classes=(0, 1, 2), layout=LAYOUT)
    with pytest.raises(InputError, match="rows"):
        made()[0].predict(np.zeros((3, 4)))


def test_saved_and_loaded_with_the_module_handed_back(tmp_path: Path) -> None:
    model, module = made()
    rng = np.random.default_rng(4)
    trained = NetworkModel(
        model.skeleton,
        model.parameters + rng.normal(size=model.skeleton.size),
        classes=model.classes,
        layout=LAYOUT,
    )
    save(trained, tmp_path / "network")
    assert sorted(p.name for p in (tmp_path / "network").iterdir()) == ["arrays.npz", "model.json"]
    again = load(tmp_path / "network", model=module)
    assert isinstance(again, NetworkModel)
    rows, _ = block()
    assert np.array_equal(again.predict_proba(rows), trained.predict_proba(rows))
    assert np.array_equal(again.parameters, trained.parameters)
    assert again.classes == trained.classes
    mixture = MixtureModel((model, trained), np.array([0.25, 0.75]))
    save(mixture, tmp_path / "mixture")
    assert np.array_equal(
        load(tmp_path / "mixture", model=module).predict_proba(rows), mixture.predict_proba(rows)
    )


def test_frozen_parameters_and_buffers_are_saved(tmp_path: Path) -> None:
    module = nn.Sequential(dense(), nn.Linear(3, 3))
    for p in module[1].parameters():
        p.requires_grad_(False)
    skeleton = Skeleton.of(module, 7, 3)
    save(NetworkModel(skeleton, skeleton.start, classes=(0, 1, 2), layout=LAYOUT), tmp_path / "m")
    other = nn.Sequential(dense(), nn.Linear(3, 3))  # other weights, nothing frozen
    again = load(tmp_path / "m", model=other)
    assert isinstance(again, NetworkModel)
    assert again.skeleton.names == skeleton.names
    rows, X = block()
    with torch.no_grad():
        assert (
            np.abs(again.decision_scores(rows) - module(torch.from_numpy(X)).numpy()).max() < 1e-6
        )


@pytest.mark.parametrize(
    ("module", "match"),
    [
        (None, "model=module"),
        (lambda: dense(7, 4), r"2\.(bias|weight) of shape"),
        (lambda: nn.Sequential(nn.Linear(7, 3)), "0.bias of shape|without it"),
        (lambda: nn.Sequential(*dense(), nn.Linear(3, 3)), "no 3.bias"),
        (lambda: "a text", "torch.nn.Module"),
    ],
)
def test_another_module_is_refused_by_name(tmp_path: Path, module: Any, match: str) -> None:
    save(made()[0], tmp_path / "m")
    with pytest.raises(InputError, match=match):
        load(tmp_path / "m", model=None if module is None else module())


def test_a_network_can_be_pickled_and_copied() -> None:
    model, _ = made()
    twin = pickle.loads(pickle.dumps(model))
    rows, _ = block()
    assert np.array_equal(twin.predict_proba(rows), model.predict_proba(rows))
    twin.skeleton.load(twin.parameters + 1.0)
    assert np.array_equal(
        model.predict_proba(rows),
        NetworkModel.revived(model.to_parts(), made()[1]).predict_proba(rows),
    )


def test_torch_is_not_loaded_before_it_is_asked_for() -> None:
    names = "fairveil.models.Model, fairveil.curator.NetworkGradient, fairveil.curator.Curator"
    code = f"import sys, fairveil.models, fairveil.curator; {names}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
