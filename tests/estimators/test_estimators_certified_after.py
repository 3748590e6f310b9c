"""What estimators without bounds on rates, and group objectives, certify: decisions, files, prices
of groups, mistakes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.errors import FairveilError
from fairveil.estimators.certifying import certified_fits
from knobs import made


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _people(n: int, seed: int, share: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = (rng.random(n) < share).astype(int)
    X = np.clip(rng.normal(size=(n, 2)) + 0.8 * A[:, np.newaxis], -4, 4) / 2
    return X, (X.sum(axis=1) + 0.3 * rng.normal(size=n) > 0.4).astype(int), A


X, Y, A = _people(2000, 0)
PARITY, ODDS = fv.DemographicParity(0.2, confidence=0.95), fv.EqualizedOdds(0.1, confidence=0.95)
SEEDED: dict[str, Any] = {"public_rows": 2000, "rounds": 20, "random_state": 0}


def aside(share: float | None, notions: Any = None) -> Any:
    """What is certified, and on how much; the usual where `share` is None."""
    return notions if share is None else fv.SetAside(share=share, notions=notions)


MAKERS: dict[str, Any] = {
    "fermi": lambda way, **more: made(
        ways.fermi, "demographic_parity", 1.0, certify=aside(way, PARITY), **SEEDED | more
    ),
    "tailored": lambda way, **more: made(
        ways.tailored, certify=aside(way, PARITY), **SEEDED | more
    ),
    "group objective": lambda way, **more: made(
        ways.objective, "error", [ODDS, "gmean:0.5"], certify=aside(way), **SEEDED | more
    ),
}


def _law(clf: Any) -> np.ndarray:
    return clf.predict_proba(X) if not hasattr(clf, "coef_") else np.eye(2)[clf.predict(X)]


@pytest.fixture(params=sorted(MAKERS), scope="module")
def fit(request: pytest.FixtureRequest) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MAKERS[request.param](0.4).fit(X, Y, sensitive_features=A)


def test_certificate_file_and_aim(fit: Any, tmp_path: Path) -> None:
    """Nothing is changed by a refusal; only what keeps bounds aims inside them."""
    found = fit.certificate_
    assert not fv.estimators.Certificate.examine(found.to_json())[1]
    assert certified_fits.SET_ASIDE in fit.privacy_.notes
    assert certified_fits.SET_ASIDE not in fit.privacy_.not_covered
    assert max(fit.privacy_.epsilon, found.privacy_.epsilon) <= 1.0
    assert hasattr(fit, "certified_aim_") is (ways.solver_of(fit) is fv.GroupObjective)
    loaded = fv.load(fv.save(fit, tmp_path / "0"))
    assert (_law(loaded) == _law(fit)).all()
    assert loaded.certificate_.to_json() == found.to_json()
    assert loaded.certify == fit.certify
    # a folder with a certificate is one of ours
    assert fv.save(fit, tmp_path / "0", overwrite=True)


def test_a_fit_that_certifies_nothing_is_what_it_was() -> None:
    for name, make in MAKERS.items():
        off = {"constraints": None} if name == "group objective" else {"certify": None}
        clf = make(None).set_params(**off).fit(X, Y, sensitive_features=A)
        assert not hasattr(clf, "certificate_")
        again = type(clf)(
            **{k: v for k, v in clf.get_params(deep=False).items() if "certif" not in k}
        )
        assert (_law(again.fit(X, Y, sensitive_features=A)) == _law(clf)).all()


@pytest.mark.parametrize("allocation", [{0: 1, 1: 4}, "size"])
def test_no_group_of_a_shared_budget_spends_more_for_its_certificate(allocation: Any) -> None:
    """The counts keep the strongest guarantee of all groups, whether shares are fixed or follow
    from releases."""
    x, y, a = _people(3000, 1, 0.15)
    clf = made(
        ways.tailored,
        allocation,
        certify="equalized_odds:0.3",
        **SEEDED | {"public_rows": 3000},
    )
    clf.fit(x, y, sensitive_features=a)
    assert clf.certificate_.confidence == certified_fits.CONFIDENCE
    assert max(clf.tailoring_.epsilons) > 1.2 * min(clf.tailoring_.epsilons)
    assert clf.certificate_.privacy_.epsilon <= min(clf.tailoring_.epsilons)
    assert certified_fits.BY_GROUP in clf.certificate_.assumptions


def test_few_fits_against_a_penalty_are_certified_wrongly() -> None:
    """12 fits at 90 %, on people of known truth: one that is above the bound is certified with
    probability at most 10 %, so 6 or more of 12 have probability below 1e-3."""
    big, _, of_big = _people(60_000, 99)
    wrongly = 0
    for seed in range(12):
        x, y, a = _people(1000, seed)
        notion = fv.DemographicParity(0.15, confidence=0.9)
        clf = ways.fermi(
            strength=2.0,
            certify=notion,
            public_rows=1000,
            solver=fv.PrimalDual(rounds=10),
            random_state=seed,
        )
        law = clf.fit(x, y, sensitive_features=a).predict(big)
        above = abs(law[of_big == 1].mean() - law[of_big == 0].mean()) > 0.15
        wrongly += above and clf.certificate_.certified
    assert wrongly < 6


def test_a_ledger_charges_penalty_and_certificate_once() -> None:
    ledger = fv.Ledger.create(None, "people", epsilon=1.0, delta=1e-6)
    clf = MAKERS["fermi"](None, ledger=ledger, random_state=None).fit(X, Y, sensitive_features=A)
    assert ledger.balance().committed == 1
    assert certified_fits.PAID in clf.certificate_.assumptions


LOSS = fv.BoundedGroupLoss(0.5, loss="squared", confidence=0.9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ways.fermi(certify=0.3), "a notion to certify"),
        (lambda: ways.fermi(certify="demographic_parity"), "a bound"),
        (lambda: ways.fermi(certify=fv.DemographicParity(None)), "notions with a bound"),
        (
            lambda: ways.fermi(certify=[PARITY, fv.EqualizedOdds(0.1, confidence=0.9)]),
            "one confidence",
        ),
        (lambda: ways.fermi(certify=PARITY, checkpoint="folder"), "checkpoint"),
        (lambda: ways.objective(constraint=ODDS, loss="log"), "zero_one"),
        (lambda: ways.objective_regression(constraint=LOSS), "no confidence here"),
    ],
)
def test_mistakes_change_nothing(make: Any, words: str) -> None:
    clf = make()
    with pytest.raises(FairveilError, match=words):
        clf.fit(X, Y, sensitive_features=A)
    assert not [name for name in vars(clf) if name.endswith("_")]


@pytest.mark.parametrize("certify", ["demographic_parity:0.2", "selection_rate_ratio:0.8"])
def test_groups_are_needed_to_compare_them(certify: str) -> None:
    clf = ways.tailored(certify=certify)
    with pytest.raises(FairveilError, match="groups"):
        clf.fit(X, Y)


def test_a_plan_sets_nothing_aside() -> None:
    schema = fv.facts.Schema({"x": fv.facts.Number(0, 1), "y": fv.facts.Boolean()}, target="y")
    for clf in (ways.fermi(certify=PARITY), ways.objective(constraint=ODDS)):
        with pytest.raises(FairveilError, match=r"None here|no confidence"):
            clf.plan(schema, rows=1000)
