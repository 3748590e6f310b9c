"""A verdict about the people that rows were drawn from stands apart from that about the rows, and
before it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.errors import ConstraintNotMet
from fairveil.estimators import ConstraintLine, ConstraintReport
from fairveil.metrics.inputs import read_decisions
from fairveil.metrics.measures import tally

INF = float("inf")
RNG = np.random.default_rng(5)
A = RNG.integers(2, size=3000)
X = RNG.normal(size=(3000, 2)) + 0.6 * A[:, None]
Y = (X.sum(axis=1) + RNG.normal(size=3000) > 0.8).astype(int)
ODDS = "equalized_odds:0.4"

pytestmark = pytest.mark.filterwarnings("ignore::fairveil.errors.FairveilWarning")

MADE: dict[str, Any] = {
    "descent": lambda: fv.FairClassifier(ODDS, epsilon=INF),
    "many classes": lambda: fv.FairClassifier(ODDS, epsilon=INF),
    "post": lambda: fv.FairPostProcessor(None, ODDS, epsilon=INF),
    "game": lambda: ways.game(ODDS, epsilon=INF, rounds=20),
    "objective": lambda: ways.objective("error", [ODDS, "gmean:0.5", "gini:0.4"], epsilon=INF),
}


def drawn(model: Any, y: Any, rounds: int = 400) -> np.ndarray:
    """The deviations of constraints' values of this very model over draws of its rows with
    replacement."""
    grouped = {"sensitive_features": A} if isinstance(model, fv.FairPostProcessor) else {}
    law = model.predict_proba(X, **grouped)
    if isinstance(model, fv.FairClassifier):
        law = np.eye(law.shape[1])[law.argmax(axis=1)]
    draw, ends = RNG.random(len(law))[:, None], np.cumsum(law, axis=1)
    law = ((draw < ends) & (draw >= ends - law)).astype(float)  # one decision each
    values = []
    system = fv.fairness.resolve(fv.EqualizedOdds(0.4), model.cells_, model.classes_.tolist())
    for _ in range(rounds):
        rows = RNG.integers(len(law), size=len(law))
        counts, histogram = tally(
            read_decisions(y[rows], law[rows], A[rows], classes=model.classes_.tolist())
        )
        found = system.exact_values(histogram, counts).tolist()
        recalls = np.array(
            [histogram[:, k, k].sum() / counts[:, k].sum() for k in range(counts.shape[1])]
        )
        means = histogram[:, :, 1].sum(axis=1) / counts.sum(axis=1)
        gini = abs(means[0] - means[1]) / means.sum() / 2
        values.append([*found, 1 - (np.sqrt(np.prod(recalls + 0.01)) - 0.01), gini])
    return np.std(values, axis=0)


@pytest.mark.parametrize("name", MADE)
def test_the_sampling_error_is_that_of_the_models_own_decisions(name: str) -> None:
    """400 draws with replacement: their deviation is known to 4 %, and 25 % are allowed. Rates of
    few rows may have more."""
    y = Y + (X[:, 0] > 1.5) if name == "many classes" else Y
    model = MADE[name]().fit(X, y, sensitive_features=A)
    told = np.array([line.sampling for line in model.constraint_report_.lines])
    expected = drawn(model, y)
    if name == "objective":
        names = [line.target for line in model.constraint_report_.lines]
        places = [names.index("1 - gmean <= 0.5"), names.index("gini <= 0.4")]
        assert told[places] == pytest.approx(expected[-2:], rel=0.25)
        told = np.delete(told, places)
    assert (told > 0.75 * expected[:-2]).all()
    assert (told < 1.25 * expected[:-2] + (0.01 if name == "many classes" else 0.0)).all()


def test_met_is_said_of_the_people_and_not_of_the_rows() -> None:
    line = ConstraintLine("a gap", 0.05, 0.04, 0.001, 0.0, sampling=0.01)
    assert (line.verdict, line.population_verdict) == ("met", "inconclusive")
    report = ConstraintReport((line,), 3, "done", required=("the gap is small",))
    assert (report.met, report.met_in_training) == (None, True)
    assert (report.verdict, report.training_verdict) == ("inconclusive", "met")
    first, second, third, *_ = str(report).splitlines()
    assert first == "required  the gap is small"
    assert second.startswith("people    inconclusive: the people that the training rows were drawn")
    assert third.startswith("training  met: the training rows")
    told = json.loads(report.to_json())
    assert (told["verdict"], told["training_verdict"], told["met"]) == (
        "inconclusive",
        "met",
        None,
    )
    assert told["constraints"][0]["population_verdict"] == "inconclusive"
    assert told["required"] == ["the gap is small"]
    assert ConstraintReport((), 3, "done").verdict is None
    assert "No constraint was required" in str(ConstraintReport((), 3, "done"))


@pytest.mark.parametrize("name", ["descent", "post", "game", "objective"])
def test_files_keep_both_verdicts(name: str, tmp_path: Path) -> None:
    model = MADE[name]().fit(X, Y, sensitive_features=A)
    again = fv.load(fv.save(model, tmp_path / "model"))
    assert again.constraint_report_ == model.constraint_report_
    assert model.constraint_report_.required[-1 if name != "objective" else 2].startswith(
        "the true and false positive rates"
    )


def test_a_regressions_losses_have_a_bound_on_their_sampling_error() -> None:
    """The variance of a loss is not released: that of the widest loss with its mean is taken, which
    is no less."""
    y = X @ [1.0, -0.5] + 0.3 * RNG.normal(size=3000)
    reg = ways.objective_regression(
        "error", "largest_group_loss:2.0", epsilon=INF, target_bounds=(-4, 4)
    ).fit(X, y, sensitive_features=A)
    losses = (reg.predict(X) - y) ** 2
    for line, group in zip(reg.constraint_report_.lines, (0, 1), strict=True):
        own = losses[group == A]
        assert own.std() / len(own) ** 0.5 < line.sampling < 0.5
    assert reg.constraint_report_.required == ("the mean loss of each group is at most 2",)


def test_a_fit_still_warns_of_what_its_own_rows_show() -> None:
    asked = [
        fv.FalseNegativeRate(0.1),
        fv.FalsePositiveRateParity(0.02),
        "demographic_parity:0.01",
        "error_rate_parity:0.01",
    ]
    with pytest.warns(ConstraintNotMet, match="on the training rows"):
        fv.FairClassifier(
            [*asked, "false_negative_rate:0.0"], epsilon=INF, solver=fv.PrimalDual(rounds=30)
        ).fit(X, Y, sensitive_features=A)
