"""Fits that were refused a certificate: what is returned instead, in its distribution, its reports,
its files, and its certificate."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.errors import ChecksumError, DecisionsReplaced, InputError
from fairveil.estimators.faces import Blindly, mixture_of
from fairveil.facts import Schema
from fairveil.models import MixtureModel
from knobs import made


def _people(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.integers(2, size=n)
    X = np.clip(rng.normal(size=(n, 2)) + 0.8 * A[:, np.newaxis], -4, 4) / 2
    return X, (X.sum(axis=1) + 0.3 * rng.normal(size=n) > 0.4).astype(int), A


X, Y, A = _people(2000, 0)
NOTION = fv.EqualizedOdds(0.1, confidence=0.95)
MAKERS: dict[str, Any] = {
    "descent": lambda **more: made(
        fv.FairClassifier,
        NOTION,
        public_rows=2000,
        solver=fv.PrimalDual(rounds=60),
        random_state=0,
        **more,
    ),
    "post-processing": lambda **more: made(
        fv.FairPostProcessor, None, NOTION, public_rows=2000, random_state=0, **more
    ),
    "game": lambda **more: made(
        ways.game,
        NOTION,
        protects="sensitive_features",
        oracle="regression",
        rounds=5,
        random_state=0,
        **more,
    ),
}


def _law(clf: Any) -> np.ndarray:
    given = {"sensitive_features": A} if isinstance(clf, fv.FairPostProcessor) else {}
    return (
        clf.predict_proba(X, **given)
        if not hasattr(clf.model_, "intercept")
        else np.eye(2)[clf.predict(X)]
    )


@pytest.fixture(params=sorted(MAKERS), scope="module")
def fits(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """One fit that was kept as it was found, and one with replaced decisions, of one seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asides = [fv.SetAside(if_refused=way) for way in ("keep", "replace")]
        kept, handed = (
            MAKERS[request.param](certify=one).fit(X, Y, sensitive_features=A) for one in asides
        )
        return kept, handed


def test_distribution_and_certificate_are_those_of_the_mixture(fits: tuple[Any, Any]) -> None:
    """Guarantees 1 and 2, and the certificate's own file."""
    kept, handed = fits
    assert not kept.certificate_.certified
    assert kept.certificate_.replaced is None
    found = handed.certificate_
    assert found.certified
    share, by = found.replaced.share, np.array(found.replaced.by)
    assert 0 < share <= 1
    np.testing.assert_allclose(_law(handed), (1 - share) * _law(kept) + share * by, atol=1e-9)
    assert (found.counts == kept.certificate_.counts).all()
    for one, other in zip(
        handed.constraint_report_.lines, kept.constraint_report_.lines, strict=True
    ):
        # of a gap, which blind decisions have not
        assert one.value == pytest.approx((1 - share) * other.value, abs=1e-9)
        assert one.noise == pytest.approx((1 - share) * other.noise, abs=1e-9)
    assert handed.baselines_.handed_out == "mixture"
    assert found.handed_out in handed.baselines_.remark
    again, contradictions = fv.Certificate.examine(found.to_json())
    assert not contradictions
    assert again.certified
    assert again.replaced == found.replaced


def test_files_keep_the_mixture(fits: tuple[Any, Any], tmp_path: Path) -> None:
    loaded = fv.load(fv.save(fits[1], tmp_path / "m"))
    assert (_law(loaded) == _law(fits[1])).all()
    assert loaded.certificate_.to_json() == fits[1].certificate_.to_json()
    assert loaded.certified_aim_ == fits[1].certified_aim_
    changed = tmp_path / "m" / "certificate.json"
    changed.write_text(changed.read_text().replace('"certified": true', '"certified": false'))
    with pytest.raises(ChecksumError):
        fv.load(tmp_path / "m")


def test_what_decides_otherwise_is_not_certified(fits: tuple[Any, Any]) -> None:
    """A certificate is of a distribution of decisions: the same classifier without chance has
    none."""
    if ways.solver_of(fits[1]) is fv.OracleGame:
        assert not hasattr(fits[1].derandomise(), "certificate_")
    assert hasattr(fits[1], "certificate_")


def test_a_file_that_says_too_little_or_too_much_is_refused(fits: tuple[Any, Any]) -> None:
    from dataclasses import replace

    found = fits[1].certificate_
    less = replace(
        found, replaced=replace(found.replaced, share=found.replaced.share / 2), found=found.result
    )
    assert any(
        "does not follow" in one.sentence for one in fv.Certificate.examine(less.to_json())[1]
    )
    with pytest.raises(InputError):
        fv.Certificate.from_json(found.to_json().replace('"version": 2', '"version": 1'))


def test_it_is_said_and_forbidden() -> None:
    with pytest.warns(DecisionsReplaced, match="replaced, whoever it is"):
        MAKERS["descent"]().fit(X, Y, sensitive_features=A)
    with pytest.raises(InputError, match="if_refused"):
        MAKERS["descent"](certify=fv.SetAside(if_refused="shrug")).fit(X, Y, sensitive_features=A)


def test_what_has_no_mixture_is_left_alone() -> None:
    assert mixture_of(None, Blindly(0.5, (1.0, 0.0), "", {})) is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = fv.FairClassifier(
            fv.BoundedGroupLoss(0.01, confidence=0.95),
            schema=Schema(rows=2000),
            solver=fv.PrimalDual(rounds=20),
            random_state=0,
        )
        clf.fit(X, Y, sensitive_features=A)
    assert not clf.certificate_.certified
    assert clf.certificate_.replaced is None


def test_all_decisions_may_be_blind() -> None:
    model = mixture_of(
        MAKERS["descent"]().set_params(constraints=None).fit(X, Y).model_,
        Blindly(1.0, (0.5, 0.5), "", {}),
    )
    assert isinstance(model, MixtureModel)
    assert model.weights.tolist() == [0.5, 0.5]
