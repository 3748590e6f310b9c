"""scikit-learn's own checks of `FermiClassifier`, and of both estimators that descend with a torch
module as model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from torch import nn

import fairveil as fv
from knobs import made

torch.set_num_threads(1)


@parametrize_with_checks([fv.FermiClassifier(), fv.FermiClassifier(epsilon=float("inf"))])
@pytest.mark.filterwarnings("ignore::fairveil.errors.NoGroups")  # the checks have no groups
def test_scikit_learns_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


def pooled(outputs: int) -> nn.Module:
    """It takes any number of features."""
    torch.manual_seed(0)
    return nn.Sequential(nn.AdaptiveAvgPool1d(2), nn.Linear(2, outputs))


THREE = {
    "check_fit_score_takes_y",
    "check_dont_overwrite_parameters",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit",
    "check_sample_weights_list",
    "check_estimator_sparse_tag",
    "check_f_contiguous_array_estimator",
    "check_supervised_y_2d",
    "check_dict_unchanged",
    "check_fit2d_predict1d",
}
FOUR = {"check_dtype_object", "check_estimator_sparse_array", "check_estimator_sparse_matrix"}
TWO_AND_THREE = (
    "it fits two and three classes with one module, whose last layer has the outputs of one of them"
)
NOISE = (
    "rows with weights and their copies have noise of their own: test_estimators_networks.py "
    "compares them without noise"
)
SKIPPED = {
    "check_classifiers_train": TWO_AND_THREE,
    "check_classifiers_classes": TWO_AND_THREE,
    "check_estimators_overwrite_params": "it compares pickles, and torch's differ from copy to "
    "copy of one module; "
    "test_estimators_networks.py compares its state",
    "check_sample_weight_equivalence_on_dense_data": NOISE,
    "check_sample_weight_equivalence_on_sparse_data": NOISE,
}


def name_of(check: Any) -> str:
    return str(getattr(check, "func", check).__name__)


CHECKS = [
    pytest.param(check, marks=pytest.mark.skip(reason=SKIPPED[name_of(check)]))
    if name_of(check) in SKIPPED
    else check
    for _, check in estimator_checks_generator(fv.FermiClassifier(model=pooled(1)), legacy=True)
]


@pytest.mark.parametrize("cls", [fv.FermiClassifier, fv.RateConstrainedClassifier])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: name_of(check))
@pytest.mark.filterwarnings("ignore::fairveil.errors.NoGroups")
def test_scikit_learns_own_checks_pass_with_a_network(check: Any, cls: Any) -> None:
    """The last layer must have an output a class: each check gets a module with as many as it
    fits."""
    outputs = 3 if name_of(check) in THREE else 4 if name_of(check) in FOUR else 1
    check(clone(made(cls, model=pooled(outputs), rounds=50, random_state=0)))


def test_what_the_skipped_checks_ask_of_two_and_of_three_classes() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    for classes, outputs in ((2, 1), (3, 3)):
        y = np.digitize(X.sum(axis=1), [-0.5, 1.0][: classes - 1])
        names = np.array(["one", "three", "two"])[y]  # in order
        for cls in (fv.FermiClassifier, fv.RateConstrainedClassifier):
            settings = {} if cls is fv.RateConstrainedClassifier else {"strength": 0.0}
            clf = made(
                cls,
                model=pooled(outputs),
                epsilon=float("inf"),
                rounds=100,
                random_state=0,
                **settings,
            ).fit(X, names)
            assert clf.classes_.tolist() == sorted(set(names))
            law = clf.predict_proba(X)
            assert np.allclose(law.sum(axis=1), 1)
            assert (clf.classes_[law.argmax(axis=1)] == clf.predict(X)).all()
            assert clf.score(X, names) > 0.75
