"""The methods: each fits coded rows and gives the distribution of decisions for other rows, (rows,
classes).

Nothing is drawn: a randomised classifier gives its probabilities, one without chance gives zeros
and ones.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import fairveil as fv
from fairveil.errors import FairveilWarning
from fairveil.facts import Cells
from sets import Coded, dense, law

Floats = npt.NDArray[np.float64]
FAIRLEARN = {
    "demographic_parity": ("DemographicParity", "demographic_parity"),
    "equalized_odds": ("EqualizedOdds", "equalized_odds"),
    "equal_opportunity": ("TruePositiveRateParity", "true_positive_rate_parity"),
    "false_positive_rate_parity": ("FalsePositiveRateParity", "false_positive_rate_parity"),
}
"""By our notions: fairlearn's reduction, and its threshold optimiser's constraint."""


@dataclass(frozen=True)
class Wanted:
    """One fit. `notion` and `asked`: None where nothing is asked for; of `fermi`, `asked` is a
    strength."""

    method: str
    notion: str | None
    constraint: str | None
    asked: float | None
    epsilon: float
    protects: str
    seed: int


class ImpossibleError(Exception):
    """The method refuses these rows."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model. `said`: what the fit itself released and warned of."""

    law: Callable[[Coded], Floats]
    said: dict[str, Any]


def descent(train: Coded, cells: Cells, wanted: Wanted) -> Fitted:
    """`FairClassifier`."""
    return _ours(fv.FairClassifier(wanted.constraint, **_shared(wanted, train)), train)


def unconstrained(train: Coded, cells: Cells, wanted: Wanted) -> Fitted:
    """The same without a constraint."""
    return _ours(fv.FairClassifier(None, **_shared(wanted, train)), train)


def additive(train: Coded, cells: Cells, wanted: Wanted) -> Fitted:
    """The descent, of an additive model."""
    return _ours(
        fv.FairClassifier(wanted.constraint, model="additive", **_shared(wanted, train)),
        train,
    )


def network(train: Coded, cells: Cells, wanted: Wanted) -> Fitted:
    """The descent, of a network with 16 hidden units, on one thread."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(wanted.seed)
    classes = len(train.layout.classes or ())
    layers = (
        torch.nn.Linear(train.layout.width, 16),
        torch.nn.Linear(16, max(1, classes - (classes == 2))),
    )
    module = torch.nn.Sequential(layers[0], torch.nn.Tanh(), layers[1])
    shared = _shared(wanted, train)
    return _ours(fv.FairClassifier(wanted.constraint, model=module, **shared), train)


def game(train: Coded, cells: Cells, wanted: Wanted) -> Fitted:
    """`OracleGame`."""
    return _ours(
        fv.FairClassifier(wanted.constraint, solver=fv.OracleGame(), **_shared(wanted, train)),
        train,
    )


def group(train: Coded, cells: Cells, wanted: Wanted) -> Fitted:
    """`GroupObjective`, of the error."""
    return _ours(
        fv.FairClassifier(wanted.constraint, solver=fv.GroupObjective(), **_shared(wanted, train)),
        train,
    )


def fermi(train: Coded, cells: Cells, wanted: Wanted) -> Fitted:
    """`Fermi`: asked for a strength of its penalty."""
    assert wanted.notion is not None
    kinds = {"demographic_parity": fv.DemographicParity, "equalized_odds": fv.EqualizedOdds}
    notion = kinds[wanted.notion](None, groups=cells.mode)
    return _ours(
        fv.FairClassifier(
            notion, solver=fv.Fermi(strength=wanted.asked or 0.0), **_shared(wanted, train)
        ),
        train,
    )


def post(train: Coded, cells: Cells, wanted: Wanted) -> Fitted:
    """`FairPostProcessor`, which reads the group at prediction, with its own private base."""
    return _ours(fv.FairPostProcessor(None, wanted.constraint, **_shared(wanted, train)), train)


def reduction(train: Coded, cells: Cells, wanted: Wanted) -> Fitted:
    """fairlearn's ExponentiatedGradient over logistic regressions, not private; the distribution is
    the mixture's own."""
    from fairlearn import reductions

    assert wanted.notion is not None
    asked = getattr(reductions, FAIRLEARN[wanted.notion][0])(difference_bound=wanted.asked)
    model = reductions.ExponentiatedGradient(_logistic(), asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(dense(train, train), train.labels, sensitive_features=_ids(train, cells))
    return Fitted(lambda rows: np.asarray(model._pmf_predict(dense(rows, train))), {})


def threshold(train: Coded, cells: Cells, wanted: Wanted) -> Fitted:
    """fairlearn's ThresholdOptimizer after logistic regression, not private, which reads the group
    at prediction and takes no bound; the distribution is that of its draws."""
    from fairlearn.postprocessing import ThresholdOptimizer

    assert wanted.notion is not None
    model = ThresholdOptimizer(
        estimator=_logistic(),
        constraints=FAIRLEARN[wanted.notion][1],
        objective="accuracy_score",
        predict_method="predict_proba",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(dense(train, train), train.labels, sensitive_features=_ids(train, cells))
        except ValueError as refused:  # a group whose labels are all alike
            raise ImpossibleError(str(refused)) from refused
    return Fitted(
        lambda rows: np.asarray(
            model._pmf_predict(dense(rows, train), sensitive_features=_ids(rows, cells))
        ),
        {},
    )


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(solver="newton-cholesky", C=10.0)


def _ids(rows: Coded, cells: Cells) -> npt.NDArray[Any]:
    """The product of the sensitive columns."""
    (groups,) = Cells(cells.columns).ids(rows.sensitive)
    return np.asarray(groups)


METHODS: dict[str, Callable[[Coded, Cells, Wanted], Fitted]] = {
    "unconstrained": unconstrained,
    "descent": descent,
    "additive": additive,
    "network": network,
    "game": game,
    "group": group,
    "post": post,
    "fermi": fermi,
    "fairlearn": reduction,
    "fairlearn-threshold": threshold,
}
READ_GROUP = ("post", "fairlearn-threshold")
NOT_PRIVATE = ("fairlearn", "fairlearn-threshold")
STRENGTHS = (1.0, 3.0, 10.0, 30.0)
"""What `fermi` is asked for."""


def _shared(wanted: Wanted, train: Coded) -> dict[str, Any]:
    return {
        "epsilon": wanted.epsilon,
        "delta": 1.0 / train.block.rows**2,
        "protects": wanted.protects,
        "random_state": wanted.seed,
    }


def _ours(model: Any, train: Coded) -> Fitted:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model.fit(train)
    report = getattr(model, "constraint_report_", None)
    said: dict[str, Any] = {
        "spent": _plain(model.privacy_.epsilon),
        "warned": sorted(
            {
                type(one.message).__name__
                for one in heard
                if isinstance(one.message, FairveilWarning)
            }
        ),
    }
    if report is not None and report.lines:
        said |= {"reported": max(line.value for line in report.lines), "verdict": report.verdict}
    return Fitted(lambda rows: law(model, rows), said)


def _plain(value: float) -> Any:
    return value if math.isfinite(value) else str(value)
