"""What a fit of a torch module hands out: the network, or a mixture with what costs nothing.

Guarantees of `estimators.handed`, of networks. Nothing here hangs on luck: fits are seeded, and the
choice is checked against the program that makes it.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import fairveil as fv  # noqa: E402
import ways  # noqa: E402
from fairveil.methods import comparison as program  # noqa: E402
from fairveil.models import LinearModel, MixtureModel, NetworkModel  # noqa: E402
from knobs import made  # noqa: E402


@pytest.fixture(autouse=True)
def _alone():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(before)


def people(n=800, classes=2, seed=0):
    """Groups whose labels differ by more than any network that errs little can leave out."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    X = (rng.normal(scale=0.3, size=(n, 4)) + 0.8 * a[:, np.newaxis]).astype(np.float32)
    score = X.sum(axis=1) + 0.3 * rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes)), a


def net(classes=2, *, image=False):
    """A network that errs little and tells the groups apart, as it is handed in."""
    X, y, _ = people(classes=classes)
    cuts = [
        X.sum(axis=1)[y == k].max() / 2 + X.sum(axis=1)[y == k + 1].min() / 2
        for k in range(classes - 1)
    ]
    layer = nn.Linear(4, 1 if classes == 2 else classes)
    steps = np.arange(1, classes) if classes == 2 else np.arange(classes)
    offsets = np.cumsum([0.0, *cuts])[-len(steps) :]
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(np.repeat(steps[:, np.newaxis], 4, axis=1)))
        layer.bias.copy_(torch.tensor(-offsets))
    return nn.Sequential(nn.Flatten(), layer) if image else layer


def fit(X, y, a, module, **options):
    """The network hardly moves: what is handed out follows from what was released of it."""
    shared = {"epsilon": 50.0, "random_state": 0, "rounds": 4, "learning_rate": 1e-9}
    shared |= {"randomised": True, **options}
    clf = made(fv.FairClassifier, "demographic_parity:0.01", model=module, **shared)
    return clf.fit(X, y, sensitive_features=a)


@pytest.mark.parametrize("classes", [2, 3])
def test_what_is_handed_out_is_what_the_program_chose_and_what_is_said_is_of_it(classes, tmp_path):
    X, y, a = people(classes=classes)
    clf = fit(X, y, a, net(classes))
    assert clf.baselines_.handed_out == "mixture"
    assert isinstance(clf.model_, MixtureModel)
    parts = clf.model_.models
    assert isinstance(parts[0], NetworkModel)
    assert all(isinstance(one, LinearModel) for one in parts[1:])
    law = sum(w * m.decision_proba(X) for w, m in zip(clf.model_.weights, parts, strict=True))
    assert clf.predict_proba(X) == pytest.approx(law)
    line = clf.constraint_report_.worst
    rates = [clf.predict_proba(X)[a == g].mean(axis=0) for g in (0, 1)]
    gap = np.abs(rates[0] - rates[1]).max() if classes > 2 else abs(rates[0] - rates[1])[1]
    assert abs(max(one.value for one in clf.constraint_report_.lines) - gap) < 0.02 + 4 * line.noise
    assert clf.privacy_.check() == []
    fv.save(clf, tmp_path / "mixed")
    again = fv.load(tmp_path / "mixed", model=net(classes))
    assert (again.predict_proba(X) == clf.predict_proba(X)).all()
    assert (again.outcome_.values == clf.outcome_.values).all()
    assert not hasattr(clf, "decision_function")


def test_without_chance_one_of_them_is_handed_out(tmp_path):
    X, y, a = people()
    clf = fit(X, y, a, net(), randomised=False)
    assert not isinstance(clf.model_, MixtureModel)
    assert (clf.predict(X) == clf.predict(X)).all()
    found = clf.outcome_.comparison
    assert clf.baselines_.handed_out in ("model", "constant")
    assert found is not None
    fv.save(clf, tmp_path / "one")
    again = fv.load(tmp_path / "one", model=net())
    assert (again.predict(X) == clf.predict(X)).all()


def test_images_go_through_a_mixture():
    X, y, a = people()
    clf = fit(X.reshape(-1, 1, 2, 2), y, a, net(image=True))
    assert isinstance(clf.model_, MixtureModel)
    flat = clf.predict_proba(X)
    assert (flat == clf.predict_proba(X.reshape(-1, 1, 2, 2))).all()


def test_a_penalty_hands_out_its_network():
    X, y, a = people(200)
    options = {"epsilon": 3.0, "random_state": 0, "rounds": 4}
    clf = made(ways.fermi, "demographic_parity", 5.0, net(), **options)
    clf.fit(X, y, sensitive_features=a)
    assert isinstance(clf.model_, NetworkModel)


def test_planted_a_network_that_is_handed_out_come_what_may_is_above_mixing(monkeypatch):
    """With the program left out, the released numbers themselves say that mixing is better."""
    X, y, a = people()
    right = fit(X, y, a, net()).outcome_.comparison
    alone = program.Choice(1.0, 0.0, np.zeros(2))
    monkeypatch.setattr(program, "chosen", lambda *_, **__: alone)
    left = fit(X, y, a, net()).outcome_.comparison

    def cost(found):
        excess = float(np.maximum(found.limits.values - found.limits.bounds, 0.0).max())
        return found.error + program.WORTH * excess

    assert cost(right) < cost(left) - program.ENOUGH
