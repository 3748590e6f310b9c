"""A fitted model beside what costs nothing: what is said, warned of, returned instead, and
written."""

from __future__ import annotations

import dataclasses
import json
import warnings
from typing import ClassVar

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.errors import InputError, WorseThanBaseline
from fairveil.estimators.descending import PrimalDualWay
from fairveil.estimators.reports import (
    CONSTANT,
    FREE,
    MIXING,
    BaselineReport,
    Compared,
    warn_if_worse,
)
from fairveil.facts import Schema
from fairveil.models import LinearModel, MixtureModel
from knobs import made

INF = float("inf")


def people(n: int = 3000, groups: int = 3, seed: int = 0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, groups, n)
    X = np.clip(rng.normal(scale=0.4, size=(n, 4)) + 0.2 * a[:, None] / max(1, groups - 1), -1, 1)
    y = (X.sum(axis=1) + rng.normal(scale=0.3, size=n) > 0.6).astype(int)
    return X, y, a


def estimators(**given):
    of = {"epsilon": INF} | given
    rounds = {"rounds": 20} if of["epsilon"] != INF else {}
    yield made(fv.FairClassifier, "demographic_parity:0.2", **rounds, **of)
    yield made(fv.FairClassifier, None, **rounds, **of)
    yield made(ways.fermi, **rounds, **of)
    yield made(fv.FairPostProcessor, None, "equalized_odds:0.05", **of)
    yield made(ways.game, "equalized_odds:0.05", rounds=20, **of)
    yield made(ways.objective, "error", "demographic_parity:0.05", **of)
    yield made(ways.objective, "gmean", **of)
    yield made(ways.tailored, solver=fv.Tailored(rounds=30), **of)
    yield made(ways.objective_regression, "largest_group_loss", target_bounds=(-4, 4), **of)
    yield made(ways.tailored_regression, target_bounds=(-4, 4), **of)


@pytest.mark.parametrize("place", range(10))
@pytest.mark.parametrize("epsilon", [INF, 5.0])
def test_every_estimator_says_it_and_writes_it(place, epsilon, tmp_path) -> None:
    X, y, a = people()
    options = {"epsilon": epsilon} | (
        {} if epsilon == INF else {"public_rows": len(y), "random_state": 0}
    )
    estimator = list(estimators(**options))[place]
    if "Regressor" in type(estimator).__name__:
        y = X.sum(axis=1) + 0.1 * a
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fv.errors.ConstraintNotMet)
        # one deterministic rule may be worse than a mixture, and is here
        warnings.simplefilter("ignore", WorseThanBaseline)
        estimator.fit(X, y, sensitive_features=a)
    report = estimator.baselines_
    constant = report.line(CONSTANT)
    assert constant is not None
    assert constant.difference == pytest.approx(report.error - constant.error)
    assert constant.verdict == "better"
    assert json.loads(report.to_json())["baselines"][0]["verdict"] == "better"
    assert constant.remark in str(report)
    fv.save(estimator, tmp_path / "model")
    assert fv.load(tmp_path / "model").baselines_ == report


@pytest.mark.parametrize("estimator", list(estimators())[:4], ids=lambda one: type(one).__name__)
def test_without_privacy_errors_are_those_of_the_rows(estimator) -> None:
    X, y, a = people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fv.errors.ConstraintNotMet)
        # one deterministic rule may be worse than a mixture, and is here
        warnings.simplefilter("ignore", WorseThanBaseline)
        estimator.fit(X, y, sensitive_features=a)
    if isinstance(estimator, fv.FairPostProcessor):
        law = estimator.predict_proba(X, sensitive_features=a)
        error = 1 - law[np.arange(len(y)), y].mean()
    else:
        mixed = isinstance(estimator.model_, MixtureModel)
        law = estimator.predict_proba(X) if mixed else np.eye(2)[estimator.predict(X)]
        error = 1 - law[np.arange(len(y)), y].mean()
    assert estimator.baselines_.error == pytest.approx(error, abs=1e-9)
    assert estimator.baselines_.noise == 0.0
    assert estimator.baselines_.line(CONSTANT).error == pytest.approx(min(y.mean(), 1 - y.mean()))


def worse(seed=0, randomised=True):
    """Labels that no feature tells of: the model is the constant, or a little worse."""
    rng = np.random.default_rng(seed)
    n = 6000
    a = rng.integers(0, 2, n)
    X = rng.uniform(-1, 1, size=(n, 2))
    y = (rng.random(n) < 0.12).astype(int)
    clf = fv.FairClassifier(
        "false_positive_rate_parity:0.9",
        epsilon=30.0,
        schema=Schema(rows=n),
        random_state=seed,
        solver=fv.PrimalDual(rounds=1, randomised=randomised),
    )
    return clf, X, y, a


class Thrown(PrimalDualWay):
    """Whose model starts far off and has no time to come back: what a poor choice of knobs does."""

    def conclude(self, intent, outcome, statement) -> None:
        compared = outcome.comparison
        table = compared.table.counts[:, ::-1].copy()  # it decides the other way round
        shown = dataclasses.replace(
            compared, table=dataclasses.replace(compared.table, counts=table)
        )
        outcome = dataclasses.replace(outcome, weights=-outcome.weights, comparison=shown)
        super().conclude(intent, outcome, statement)


class ThrownClassifier(fv.FairClassifier):
    WAYS: ClassVar = fv.FairClassifier.WAYS | {fv.PrimalDual: Thrown}


def thrown(randomised=True, **given):
    X, y, a = people()
    options = {"epsilon": 5.0, "public_rows": len(y), "random_state": 0, "rounds": 30}
    clf = made(
        ThrownClassifier,
        **{"constraints": "demographic_parity:0.6"} | options | given,
        randomised=randomised,
    )
    return clf, X, y, a


def test_a_model_that_is_worse_is_not_returned() -> None:
    clf, X, y, a = thrown()
    clf.fit(X, y, sensitive_features=a)
    report = clf.baselines_
    assert report.handed_out in ("no constraint", "mixing")
    assert report.remark in str(report)
    assert report.worse == ()
    law = (
        clf.predict_proba(X) if isinstance(clf.model_, MixtureModel) else np.eye(2)[clf.predict(X)]
    )
    error = 1 - law[np.arange(len(y)), y].mean()
    assert error < min(y.mean(), 1 - y.mean())
    assert report.error == pytest.approx(error, abs=4 * report.noise)


def test_one_that_breaks_its_bound_is_mixed_down_to_it_if_it_may_be_randomized() -> None:
    """Reported is the mixture: its values and its error, which are those of the rows within their
    noise."""
    clf, X, y, a = thrown(constraints="demographic_parity:0.1")
    clf.fit(X, y, sensitive_features=a)
    assert isinstance(clf.model_, MixtureModel)
    assert clf.baselines_.handed_out in ("mixing", "mixture")
    law = clf.predict_proba(X)
    rates = [law[a == g, 1].mean() for g in range(3)]
    noise = max(line.noise for line in clf.constraint_report_.lines)
    assert max(rates) - min(rates) <= 0.1 + 4 * noise
    assert max(line.value for line in clf.constraint_report_.lines) == pytest.approx(
        max(rates) - min(rates), abs=4 * noise
    )
    assert clf.baselines_.error == pytest.approx(
        1 - law[np.arange(len(y)), y].mean(), abs=4 * clf.baselines_.noise
    )
    assert (clf.predict(X, random_state=1) == clf.predict(X, random_state=1)).all()
    assert not hasattr(clf, "coef_")
    assert not hasattr(clf, "decision_function")


def test_a_mixture_says_why_it_has_no_coefficients() -> None:
    clf, X, y, a = thrown(constraints="demographic_parity:0.1")
    clf.fit(X, y, sensitive_features=a)
    assert any((clf.predict(X) != clf.predict(X)).any() for _ in range(3))
    for name in ("coef_", "intercept_", "coef_names_"):
        with pytest.raises(AttributeError, match=f"'{name}': .*mixture.*PrimalDual"):
            getattr(clf, name)
        with pytest.raises(AttributeError, match="no attribute"):
            getattr(fv.FairClassifier(), name)
    with pytest.raises(AttributeError, match=r"no attribute 'coefs_'$"):
        getattr(clf, "coefs" + "_")


def test_without_chance_a_single_rule_is_returned() -> None:
    """Nor is one asked for by default."""
    assert fv.PrimalDual().randomised is False
    clf, X, y, a = thrown(randomised=False, constraints="demographic_parity:0.02")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(X, y, sensitive_features=a)
    assert isinstance(clf.model_, LinearModel)
    assert clf.baselines_.handed_out in ("constant", "no constraint")


def test_a_model_that_is_worse_and_returned_all_the_same_is_warned_of() -> None:
    """One rule may be worse than a mixture, where none is wanted: a gap half as large as the free
    model's, and no bound that would say so."""
    table = Compared(MIXING, "half no", 0.2, 0.1, 0.001)
    constant = Compared(CONSTANT, "always 0", 0.4, -0.1, 0.001)
    with pytest.warns(WorseThanBaseline, match="the model is worse than mixing.*larger epsilon"):
        warn_if_worse(BaselineReport(0.3, 0.0, (constant, table)))


def test_a_mixture_survives_a_file(tmp_path) -> None:
    clf, X, y, a = thrown(constraints="demographic_parity:0.1")
    clf.fit(X, y, sensitive_features=a)
    assert isinstance(clf.model_, MixtureModel)
    plain = made(fv.FairClassifier, **clf.get_params(deep=False))
    plain.__dict__.update(clf.__dict__)
    fv.save(plain, tmp_path / "model")
    again = fv.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.baselines_ == clf.baselines_
    assert again.constraint_report_ == clf.constraint_report_
    base = fv.FairPostProcessor(
        again, "demographic_parity:0.2", epsilon=9.0, schema=Schema(rows=len(y)), random_state=0
    )
    base.fit(X, y, sensitive_features=a)  # a base that is randomized is drawn from, once


@pytest.mark.parametrize("randomised", [True, False])
def test_guarantee_1_a_model_that_is_not_worse_is_returned_itself(randomised) -> None:
    X, y, a = people()
    options = {"epsilon": 5.0, "public_rows": len(y), "random_state": 0, "randomised": randomised}
    clf = made(fv.FairClassifier, "demographic_parity:0.6", **options).fit(
        X, y, sensitive_features=a
    )
    assert isinstance(clf.model_, LinearModel)
    # both keep so large a bound, and err alike up to noise
    assert clf.baselines_.handed_out in ("model", FREE)
    assert clf.baselines_.worse == ()


def test_guarantee_2_the_final_model_costs_nothing_more() -> None:
    prices = []
    for kind in (fv.FairClassifier, ThrownClassifier):
        for randomised in (True, False):
            clf, X, y, a = thrown(randomised)
            clf.__class__ = kind
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf.fit(X, y, sensitive_features=a)
            prices.append(clf.privacy_.epsilon)
    assert len(set(prices)) == 1


def test_guarantee_3_a_verdict_knows_that_it_chose() -> None:
    """The values say the final model, so they are the luckiest."""
    clf, X, y, a = thrown()
    clf.fit(X, y, sensitive_features=a)
    assert clf.outcome_.looks >= 2


@pytest.mark.parametrize("randomised", ["yes", 1, 0.0, "mixing", [True]])
def test_what_is_neither_yes_nor_no_is_refused(randomised) -> None:
    X, y, a = people(200)
    with pytest.raises(InputError, match="randomised"):
        fv.FairClassifier(None, solver=fv.PrimalDual(randomised=randomised)).fit(
            X, y, sensitive_features=a
        )


def test_verdicts_need_more_than_noise() -> None:
    def line(difference, noise, fair=True, name=MIXING):
        return Compared(name, "", 0.3, difference, noise, fair)

    assert [line(d, 0.01).verdict for d in (-0.02, -0.01, 0.01, 0.02)] == [
        "better",
        *["inconclusive"] * 2,
        "worse",
    ]
    assert line(float("nan"), 0.01).verdict == "inconclusive"
    report = BaselineReport(
        0.3, 0.0, (line(0.1, 0.0), line(0.1, 0.0, fair=False), line(0.1, 0.0, name=FREE))
    )
    assert report.worse == (line(0.1, 0.0),)


def test_a_chance_model_alone_is_called_worse_at_most_as_often_as_its_confidence_says() -> None:
    """Where the model is the constant, by the truth, "worse" is noise: 60 fits, 5 % each at most;
    more than 9 has less than 1 chance in 1,000."""
    wrong = 0
    for seed in range(60):
        clf, X, y, a = worse(seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf.fit(X, y, sensitive_features=a)
        errs = (clf.predict(X) != y).mean()
        beaten = [line for line in clf.baselines_.worse if line.name == CONSTANT]
        wrong += bool(beaten) and errs <= min(y.mean(), 1 - y.mean()) + 1e-12
    assert wrong <= 9
