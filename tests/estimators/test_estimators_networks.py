"""Torch modules as models of the estimators that descend: rows they are given, what is refused,
files, copies, bits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from estimator_samples import Columns
from fermi_samples import net, numbers_of, penalised, unfair
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import fairveil as fv
import ways
from fairveil.data import encode
from fairveil.errors import InputError, NoGroups
from knobs import made

FEATURES = ["age", "hours", "job", "union"]


def bounded(model: Any, **options: Any) -> Any:
    """The other estimator that descends; a bound that is never pressed."""
    settings = {"random_state": 0, "rounds": 8, "epsilon": 3.0, **options}
    return made(fv.FairClassifier, fv.DemographicParity(0.99), model=model, **settings)


def either(model: Any, **options: Any) -> list[Any]:
    return [penalised(model=model, **options), bounded(model, **options)]


def conv(outputs: int = 1) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(12, outputs))


@pytest.fixture(name="images")
def small_images() -> Any:
    X, y, A = unfair(600, width=9)
    return X.reshape(600, 1, 3, 3).astype(np.float32), y, A


# Rows


def test_a_network_is_given_numbers_and_one_hot_columns(
    people: Columns, schema: fv.facts.Schema
) -> None:
    """Two numbers; four words and a truth, which are category columns."""
    for clf in either(net(8)):
        clf.set_params(schema=schema)
        table = pd.DataFrame(people)
        clf.fit(table)
        numbers = (np.column_stack([people["age"], people["hours"]]) / [50, 40] - 1).astype(
            np.float32
        )
        words = [people["job"] == word for word in ("none", "clerk", "smith", "other")]
        truths = [people["union"] == truth for truth in (False, True)]
        rows = np.column_stack([numbers, *words, *truths]).astype(np.float32)
        module = net(8)
        module.load_state_dict(
            {
                name: torch.from_numpy(np.array(array))
                for name, array in clf.model_.to_parts().arrays.items()
            }
        )
        with torch.no_grad():
            scores = module(torch.from_numpy(rows))[:, 0].numpy()
        assert np.allclose(clf.decision_function(table), scores, atol=1e-5)
        with pytest.raises(InputError, match=r"\(rows, 8\)"):
            clone(clf).set_params(model=net(4)).fit(table)


def test_any_table_gives_one_network(people: Columns, schema: fv.facts.Schema) -> None:
    fits = [penalised(model=net(6)).fit(kind(people)[FEATURES], people["hired"], sensitive_features=people["sex"])
            for kind in (pd.DataFrame, pl.DataFrame)]  # fmt: skip
    assert fits[0].model_.parameters.tobytes() == fits[1].model_.parameters.tobytes()
    one = penalised(model=net(8)).fit(encode(people, schema))
    other = penalised(model=net(8), schema=schema).fit(pd.DataFrame(people))
    assert one.model_.parameters.tobytes() == other.model_.parameters.tobytes()
    for name in ("coef_", "intercept_", "coef_names_"):
        assert not hasattr(one, name)
    X, y, A = unfair(600)
    dense, thin = (
        penalised(model=net()).fit(kind(X), y, sensitive_features=A)
        for kind in (np.asarray, sparse.csr_array)
    )
    assert np.allclose(dense.decision_function(X), thin.decision_function(X), atol=1e-5)


def test_images_at_fit_and_predict(images: Any) -> None:
    X, y, A = images
    for clf in either(conv()):
        clf.fit(X, y, sensitive_features=A)
        assert clf.n_features_in_ == 9
        flat = clf.predict_proba(X.reshape(600, 9))
        assert (
            flat.tobytes()
            == clf.predict_proba(X).tobytes()
            == clf.predict_proba(torch.from_numpy(X)).tobytes()
        )
        assert clf.score(X, y) == clf.score(X.reshape(600, 9), y) == np.mean(clf.predict(X) == y)
        for wrong in (X[:0], X.reshape(600, 3, 1, 3), X[:, :, :2], X.reshape(600, 3, 3)):
            with pytest.raises(InputError, match="X"):
                clf.predict(wrong)
        with pytest.raises(ValueError, match="expecting 9 features"):
            clf.predict(X.reshape(600, 9)[:, :8])
        again = type(clf)(**clf.get_params(deep=False)).fit(
            torch.from_numpy(X), y, sensitive_features=A
        )
        assert again.model_.parameters.tobytes() == clf.model_.parameters.tobytes()


def test_images_that_no_layer_takes_are_refused(images: Any) -> None:
    X, y, A = images
    for clf, wrong in (
        (penalised(model=conv()), X[:, :, :2]),
        (penalised(model=conv()), X.reshape(600, 9)),
        (penalised(), X),
    ):
        with pytest.raises(InputError):
            clf.fit(wrong, y, sensitive_features=A)
    for clf in (penalised(model=net(9)), penalised()):
        clf.fit(X.reshape(600, 9), y, sensitive_features=A)
        with pytest.raises(
            InputError, match=r"X: expected \(rows, numbers\), got 'shape \(600, 1, 3, 3\)'"
        ):
            clf.predict(X)
    X[0, 0, 0, 0] = np.nan
    with pytest.raises(InputError, match="NaN"):
        penalised(model=conv()).fit(X, y, sensitive_features=A)


def test_labels_groups_and_images_of_other_lengths_are_refused(images: Any) -> None:
    X, y, A = images
    for given in ((X[1:], y, A), (X, y[1:], A), (X, y, A[1:])):
        with pytest.raises(InputError, match="600"):
            penalised(model=conv()).fit(given[0], given[1], sensitive_features=given[2])


# What is refused


class Draws(nn.Module):
    """It has a generator of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 1)

    def forward(self, rows: Any) -> Any:
        return self.inner(rows) + torch.rand(len(rows), 1)


WRONG: list[tuple[Any, str]] = [
    (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)), "mixes rows.*GroupNorm"),
    (nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1)), "no dropout"),
    (nn.Linear(3, 4), "output of the network.*one output a class"),
    (nn.Linear(4, 1), r"\(rows, 3\)"),
    (nn.Softmax(0), "parameters to train"),
    (nn.Linear(3, 1).double(), "float32"),
    (nn.LazyLinear(1), "lazy"),
    (Draws(), "that row alone"),
    (LogisticRegression(), "torch.nn.Module"),
    (nn.Linear, "torch.nn.Module"),
    ("a network", "torch.nn.Module"),
]


@pytest.mark.parametrize(("module", "match"), WRONG, ids=lambda value: str(value)[:20])
def test_modules_that_will_not_do_are_refused_before_anything_is_asked(
    module: Any, match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairveil.curator import Curator

    asked: list[int] = []
    monkeypatch.setattr(Curator, "answer", lambda *_, **__: asked.append(1))
    X, y, A = unfair(200)
    for clf in either(module):
        with pytest.raises(InputError, match=match):
            clf.fit(X, y, sensitive_features=A)
        assert not any(name.endswith("_") for name in vars(clf))
    assert not asked


def test_the_output_must_fit_the_classes() -> None:
    X, y, A = unfair(300, classes=4)
    for outputs in (1, 3, 5):
        with pytest.raises(InputError, match="4 classes"):
            penalised(model=net(3, outputs)).fit(X, y, sensitive_features=A)
    two = unfair(300)
    for outputs in (1, 2):
        assert penalised(model=net(3, outputs)).fit(
            two[0], two[1], sensitive_features=two[2]
        ).predict_proba(X).shape == (
            300,
            2,
        )


def test_a_device_that_is_not_there_is_refused() -> None:
    X, y, A = unfair(200)
    with pytest.raises(InputError, match="device"):
        penalised(model=net(), device="abacus").fit(X, y, sensitive_features=A)
    assert (
        penalised(model=net(), device="cpu")
        .fit(X, y, sensitive_features=A)
        .model_.skeleton.device.type
        == "cpu"
    )


def test_too_small_batches_of_a_public_number_of_rows() -> None:
    X, y, A = unfair(500)
    for protects in ("records", "sensitive_features"):
        with pytest.raises(InputError, match="sampling_rate: expected at least 1/500"):
            penalised(model=net(), sampling_rate=1e-3, public_rows=500, protects=protects).fit(
                X, y, sensitive_features=A
            )
    clf = penalised(model=net(), sampling_rate=1 / 400, rounds=12, public_rows=500).fit(
        X, y, sensitive_features=A
    )
    # 1.25 rows a batch: a quarter of them are empty
    assert np.isfinite(clf.model_.parameters).all()


# What a fit does


def test_the_module_handed_in_is_not_changed_and_is_where_it_starts() -> None:
    X, y, A = unfair(400)
    module = net()
    before = numbers_of(module)
    module.train()
    for clf in either(module, learning_rate=1e-9):
        clf.fit(X, y, sensitive_features=A)
        assert clf.model is module
        with torch.no_grad():
            start = module(torch.from_numpy(X.astype(np.float32)))[:, 0].numpy()
        assert np.allclose(clf.decision_function(X), start, atol=1e-4)
    for clf in either(module, epsilon=math.inf):
        clf.fit(X, y, sensitive_features=A)
        assert not np.allclose(clf.decision_function(X), start, atol=1e-2)
    assert numbers_of(module) == before
    assert module.training
    assert all(p.grad is None for p in module.parameters())


def test_frozen_layers_stay(tmp_path: Path) -> None:
    X, y, A = unfair(400)
    module = net()
    module[0].requires_grad_(False)
    clf = penalised(model=module).fit(X, y, sensitive_features=A)
    assert clf.model_.parameters.size == 9
    fresh = net(seed=5)
    loaded = fv.load(fv.save(clf, tmp_path / "model"), model=fresh)
    assert loaded.decision_function(X).tobytes() == clf.decision_function(X).tobytes()
    assert all(p.requires_grad for p in fresh.parameters())


def test_a_network_learns_and_the_penalty_narrows_its_gap() -> None:
    X, y, A = unfair(4000)
    found = []
    for strength in (0.0, 20.0):
        clf = ways.fermi(
            strength=strength,
            model=net(),
            epsilon=20.0,
            solver=fv.PrimalDual(rounds=150),
            random_state=0,
        )
        clf.fit(X, y, sensitive_features=A)
        found.append((clf.score(X, y), fv.demographic_parity_gap(y, clf.predict(X), A)))
    (plain, wide), (fair, narrow) = found
    assert plain > 0.8
    assert fair > 0.65
    assert narrow < 0.5 * wide


def test_a_module_is_code_of_the_caller_and_that_is_told(tmp_path: Path) -> None:
    X, y, A = unfair(300)
    own, linear = (
        penalised(model=model).fit(X, y, sensitive_features=A) for model in (net(), None)
    )
    assert "user-code-trusted" in own.privacy_.stamps
    assert "user-code-trusted" not in linear.privacy_.stamps
    assert (
        "user-code-trusted"
        in fv.load(fv.save(own, tmp_path / "model"), model=net()).privacy_.stamps
    )


def test_without_groups_and_without_a_penalty() -> None:
    X, y, A = unfair(400)
    with pytest.warns(NoGroups):
        alone = penalised(model=net()).fit(X, y)
    none = penalised(strength=0.0, model=net()).fit(X, y, sensitive_features=A)
    plain = fv.FairClassifier(
        model=net(), solver=fv.PrimalDual(rounds=8), epsilon=3.0, random_state=0
    ).fit(X, y)
    assert (
        alone.model_.parameters.tobytes()
        == none.model_.parameters.tobytes()
        == plain.model_.parameters.tobytes()
    )
    free = penalised(strength=0.0, model=net(), protects="sensitive_features").fit(
        X, y, sensitive_features=A
    )
    assert free.privacy_.epsilon == 0


def test_a_linear_fit_after_a_network_and_back() -> None:
    X, y, A = unfair(300)
    clf = penalised(model=net()).fit(X, y, sensitive_features=A)
    assert clf.set_params(model=None).fit(X, y, sensitive_features=A).coef_.shape == (1, 3)
    clf.set_params(model=net()).fit(X, y, sensitive_features=A)
    assert not hasattr(clf, "coef_")


def test_weights_and_score() -> None:
    X, y, A = unfair(400)
    weights = np.where(np.arange(400) % 2, 1.0, 2.0)
    for clf in either(net(), max_sample_weight=2.0):
        clf.fit(X, y, sensitive_features=A, sample_weight=weights)
        right = clf.predict(X) == y
        assert clf.score(X, y, sample_weight=weights) == pytest.approx(
            np.average(right, weights=weights)
        )
        assert ((clf.decision_function(X) > 0) == (clf.predict(X) == 1)).all()


def test_without_privacy_a_weight_of_k_is_k_copies() -> None:
    X, y, A = unfair(240)
    k = np.arange(240) % 4
    for clf in either(net(), epsilon=math.inf, sampling_rate=1.0, rounds=20):
        weighted = clone(clf).fit(X, y, sensitive_features=A, sample_weight=k)
        copies = clone(clf).fit(
            np.repeat(X, k, axis=0), np.repeat(y, k), sensitive_features=np.repeat(A, k)
        )
        assert np.allclose(weighted.decision_function(X), copies.decision_function(X), atol=1e-3)
        assert np.allclose(weighted.outcome_.values, copies.outcome_.values, atol=0.02)


# scikit-learn


def test_in_a_pipeline_and_a_search() -> None:
    X, y, A = unfair(300)
    pipeline = make_pipeline(StandardScaler(), penalised(model=net(), rounds=3))
    pipeline.fit(X, y, fairclassifier__sensitive_features=A)
    assert pipeline.predict(X).shape == (300,)
    search = GridSearchCV(penalised(model=net(), rounds=3), {"solver__strength": [0.5, 5.0]}, cv=2)
    search.fit(X, y, sensitive_features=A)
    assert search.best_estimator_.groups_ == (0, 1)


# Files


def test_saved_and_loaded_with_the_module_handed_back(tmp_path: Path, images: Any) -> None:
    X, y, A = images
    for k, clf in enumerate(either(conv())):
        path = fv.save(clf.fit(X, y, sensitive_features=A), tmp_path / str(k))
        assert sorted(file.name for file in path.iterdir()) == [
            "arrays.npz", "estimator.json", "model.json", "statement.json"
        ]  # fmt: skip
        # with other weights
        module = nn.Sequential(nn.Conv2d(1, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(12, 1))
        before = numbers_of(module)
        loaded = fv.load(path, model=module)
        assert numbers_of(module) == before
        assert loaded.predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()
        assert (loaded.predict(X) == clf.predict(X)).all()
        assert loaded.model is module
        assert loaded.privacy_ == clf.privacy_
        assert loaded.groups_ == clf.groups_
        assert (
            loaded.outcome_.weights.tobytes()
            == clf.outcome_.weights.astype(np.float32).astype(np.float64).tobytes()
        )
        assert set(vars(loaded)) == set(vars(clf))
        report = "gap_report_" if hasattr(clf, "gap_report_") else "constraint_report_"
        assert str(getattr(loaded, report)) == str(getattr(clf, report))
        again = fv.save(loaded, tmp_path / f"{k} again")
        assert (again / "arrays.npz").read_bytes() == (path / "arrays.npz").read_bytes()
        alone = fv.models.load(path, model=module)
        assert alone.parameters.tobytes() == clf.model_.parameters.tobytes()
        with pytest.raises(InputError, match="shape"):
            loaded.predict(X.transpose(0, 2, 3, 1))


def test_another_module_or_none_is_refused_with_what_it_was(tmp_path: Path) -> None:
    X, y, A = unfair(300)
    path = fv.save(penalised(model=net()).fit(X, y, sensitive_features=A), tmp_path / "model")
    for module, match in (
        (None, r"load\(path, model=module\)(.|\n)*Linear"),
        (nn.Linear(3, 1), "model"),
        (net(hidden=9), "shape"),
        (net(4), "shape"),
        (nn.Sequential(*net(), nn.Linear(1, 1)), "model"),
        (3, "torch.nn.Module"),
        (nn.Linear, "torch.nn.Module"),
    ):
        with pytest.raises(InputError, match=match):
            fv.load(path, model=module)


# Around and beside others


def test_a_network_under_a_post_processor(tmp_path: Path) -> None:
    X, y, A = unfair(1500)
    for model in (None, net()):
        base = ways.fermi(strength=1.0, model=model, solver=fv.PrimalDual(rounds=10))
        clf = fv.FairPostProcessor(base, "equalized_odds:0.2", epsilon=8.0, random_state=0)
        clf.fit(X, y, sensitive_features=A)
        assert ways.solver_of(clf.estimator_) is fv.Fermi
        assert clf.privacy_.epsilon <= 8.0
        assert not clf.privacy_.check()
        assert ("user-code-trusted" in clf.privacy_.stamps) == (model is not None)
        assert clf.privacy_.arithmetic == ("exact" if model is None else "float32-by-row")
        path = fv.save(clf, tmp_path / ("linear" if model is None else "network"))
        loaded = fv.load(path) if model is None else fv.load(path, model=net(seed=9))
        law = clf.predict_proba(X, sensitive_features=A)
        assert loaded.predict_proba(X, sensitive_features=A).tobytes() == law.tobytes()
        assert loaded.privacy_ == clf.privacy_
    with pytest.raises(InputError, match="model=module"):
        fv.load(path)


def test_a_network_that_is_fitted_under_a_post_processor(tmp_path: Path, images: Any) -> None:
    """Images go to the base as they are."""
    X, y, A = images
    base = penalised(model=conv()).fit(X, y, sensitive_features=A)
    clf = fv.FairPostProcessor(base, "demographic_parity:0.3", epsilon=8.0, random_state=0).fit(
        X, y, sensitive_features=A
    )
    assert clf.privacy_.epsilon <= 8.0
    assert "user-code-trusted" in clf.privacy_.stamps
    assert clf.privacy_.arithmetic == "float32-by-row"
    law = clf.predict_proba(X, sensitive_features=A)
    loaded = fv.load(fv.save(clf, tmp_path / "model"), model=conv())
    assert loaded.predict_proba(X, sensitive_features=A).tobytes() == law.tobytes()


def test_networks_are_candidates_of_a_game(tmp_path: Path) -> None:
    X, y, A = unfair(800)
    listed = [
        penalised(strength=s, model=net(), protects="sensitive_features").fit(
            X, y, sensitive_features=A
        )
        for s in (0.5, 5)
    ]
    clf = ways.game(
        fv.DemographicParity(0.5), epsilon=8.0, protects="sensitive_features", rounds=20, random_state=0,
        oracle="exponential", solver=fv.OracleGame(candidates=listed),
    )  # fmt: skip
    clf.fit(X, y, sensitive_features=A)
    path = fv.save(clf, tmp_path / "game")
    loaded = fv.load(path, estimator=listed)
    assert loaded.predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()


def test_an_audit_takes_its_decisions() -> None:
    X, y, A = unfair(600)
    clf = penalised(model=net()).fit(X, y, sensitive_features=A)
    table = fv.group_table(y, clf.predict(X), A)
    assert [row.group for row in table.rows] == [0, 1]
