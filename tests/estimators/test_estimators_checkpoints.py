"""Fits that are kept on disk: killed and resumed they have the plan's price; a folder of
another run is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import fermi_samples
import numpy as np
import pytest
import torch
from fermi_samples import fit_kept_at, net, penalised, unfair

import fairveil as fv
from fairveil.curator import Curator
from fairveil.errors import ChecksumError, InputError, PrivacyError
from knobs import made

ROUNDS = 12


class Killed(BaseException):
    """What ends a fit in the middle."""


def broken_off(monkeypatch: pytest.MonkeyPatch, round: int, fit: Any) -> None:
    """A fit that ends in this round: one answer is given before the first."""
    answered: list[int] = []
    answer = Curator.answer

    def breaks(self: Curator, *args: Any, **options: Any) -> Any:
        answered.append(1)
        if len(answered) == round + 2:
            raise Killed
        return answer(self, *args, **options)

    with monkeypatch.context() as context:
        context.setattr(Curator, "answer", breaks)
        with pytest.raises(Killed):
            fit()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_fit_that_nobody_kills_is_the_fit_without_a_folder(tmp_path: Path) -> None:
    X, y, A = unfair(600)
    kept, plain = (
        fit_kept_at(str(tmp_path / "fit")),
        penalised(model=net(), rounds=ROUNDS).fit(X, y, sensitive_features=A),
    )
    assert kept.model_.parameters.tobytes() == plain.model_.parameters.tobytes()
    assert kept.privacy_ == plain.privacy_


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
@pytest.mark.parametrize("round", [0, 3, 7, 12])
def test_a_network_that_was_killed_goes_on_at_the_price_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, round: int, protects: str
) -> None:
    options: dict[str, Any] = {"protects": protects, "random_state": None}
    broken_off(monkeypatch, round, lambda: fit_kept_at(str(tmp_path), **options))
    clf = fit_kept_at(str(tmp_path), **options)
    whole = fit_kept_at(str(tmp_path / "other"), **options)
    assert clf.privacy_.events == whole.privacy_.events == clf.privacy_.plan == whole.privacy_.plan
    assert clf.privacy_.epsilon == whole.privacy_.epsilon
    assert clf.privacy_.bounds == whole.privacy_.bounds
    assert clf.privacy_.stamps == whole.privacy_.stamps == ("user-code-trusted",)
    assert not clf.privacy_.check()
    assert clf.n_iter_ == ROUNDS
    assert clf.predict(unfair(600)[0]).shape == (600,)


def test_a_process_that_dies_without_a_word(tmp_path: Path) -> None:
    program = [sys.executable, fermi_samples.__file__, "8", str(tmp_path)]
    assert subprocess.run(program, check=False).returncode == 17
    clf = fit_kept_at(str(tmp_path))
    whole = fit_kept_at(str(tmp_path / "other"))
    assert clf.privacy_ == whole.privacy_
    # rounds 6 to 8 are lost
    assert clf.model_.parameters.tobytes() != whole.model_.parameters.tobytes()


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("bounded", [True, False])
def test_both_estimators_and_both_models_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linear: bool, bounded: bool
) -> None:
    X, y, A = unfair(600)
    model = None if linear else net()

    def fit(folder: Path) -> Any:
        shared: dict[str, Any] = {
            "solver": fv.Descent(rounds=ROUNDS),
            "epsilon": 3.0,
            "random_state": 0,
            "model": model,
            "checkpoint": folder,
        }
        if folder is not None:
            shared["checkpoint"] = fv.Checkpoints(folder=folder, every=1)
        clf = (
            made(fv.RateConstrainedClassifier, fv.DemographicParity(0.9), **shared)
            if bounded
            else made(fv.FermiClassifier, **shared)
        )
        return clf.fit(X, y, sensitive_features=A)

    broken_off(monkeypatch, 5, lambda: fit(tmp_path / "fit"))
    gone_on, whole = fit(tmp_path / "fit"), fit(tmp_path / "whole")
    assert gone_on.privacy_ == whole.privacy_
    assert gone_on.n_iter_ == ROUNDS
    # Nothing was lost; the noise after the crash is other noise, by design.
    assert not np.array_equal(gone_on.outcome_.weights, whole.outcome_.weights)


@pytest.mark.parametrize(
    ("other", "error", "match"),
    [
        ({"epsilon": 2.0}, (InputError, PrivacyError), "another"),
        ({"delta": 1e-7}, (InputError, PrivacyError), "another"),
        ({"neighbours": "replace-one"}, (InputError, PrivacyError), "another"),
        ({"clip": 0.3, "rounds": 13}, (InputError, PrivacyError), "another"),
        ({"sampling_rate": 0.5}, (InputError, PrivacyError), "another"),
        ({"model": None}, (InputError, PrivacyError), "another"),
    ],
    ids=str,
)
def test_a_folder_of_another_run_is_refused_and_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any], error: Any, match: str
) -> None:
    broken_off(monkeypatch, 7, lambda: fit_kept_at(str(tmp_path)))
    before = contents(tmp_path)
    X, y, A = unfair(600)
    clf = penalised(
        **{
            "model": net(),
            "rounds": ROUNDS,
            "checkpoint": fv.Checkpoints(folder=tmp_path, every=5),
            **other,
        }
    )
    with pytest.raises(error, match=match):
        clf.fit(X, y, sensitive_features=A)
    assert contents(tmp_path) == before
    assert not hasattr(clf, "model_")
    fit_kept_at(str(tmp_path))  # and its own run goes on


def test_a_finished_or_damaged_folder_is_refused_and_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit_kept_at(str(tmp_path / "done"))
    before = contents(tmp_path / "done")
    with pytest.raises(InputError, match="finished"):
        fit_kept_at(str(tmp_path / "done"))
    assert contents(tmp_path / "done") == before
    broken_off(monkeypatch, 7, lambda: fit_kept_at(str(tmp_path / "half")))
    state = tmp_path / "half" / "state.json"
    state.write_text(state.read_text().replace('"round": 5', '"round": 4'))
    with pytest.raises(ChecksumError, match="stays charged"):
        fit_kept_at(str(tmp_path / "half"))


def test_another_network_of_the_same_price_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan holds noise multipliers alone: eight hidden units cost what nine do. Its own run
    goes on, at the same price."""
    broken_off(monkeypatch, 7, lambda: fit_kept_at(str(tmp_path)))
    X, y, A = unfair(600)
    clf = penalised(
        model=net(hidden=9), rounds=ROUNDS, checkpoint=fv.Checkpoints(folder=tmp_path, every=5)
    )
    with pytest.raises(InputError, match="checkpoint"):
        clf.fit(X, y, sensitive_features=A)
    assert not hasattr(clf, "model_")
    own = fit_kept_at(str(tmp_path)).privacy_
    assert own.events == own.plan
    assert not own.check()


def test_what_was_kept_is_loaded_with_the_estimator(tmp_path: Path) -> None:
    clf = fit_kept_at(str(tmp_path / "fit"))
    loaded = fv.load(fv.save(clf, tmp_path / "model"), model=net())
    assert loaded.checkpoint == fv.Checkpoints(folder=str(tmp_path / "fit"), every=5)
    assert loaded.privacy_ == clf.privacy_


@pytest.mark.parametrize(
    "changed", [{"strength": 3.0}, {"radius": 1.0}, {"clip": 1.0}, {"model": "other"}]
)
def test_a_folder_of_other_choices_is_refused_and_stays_as_it_is(
    monkeypatch, tmp_path, changed
) -> None:
    """Other choices may have the same price, and the same plan: the folder knows them all the
    same."""
    X, y, A = unfair(200)
    small, other = (
        torch.nn.Linear(X.shape[1], 2),
        torch.nn.Sequential(torch.nn.Linear(X.shape[1], 2)),
    )
    choices: dict[str, Any] = {
        "strength": 2.0,
        "random_state": 0,
        "rounds": ROUNDS,
        "checkpoint": tmp_path,
        "model": small,
    }
    changed = changed | ({"model": other} if "model" in changed else {})
    broken_off(
        monkeypatch, 3, lambda: made(fv.FermiClassifier, **choices).fit(X, y, sensitive_features=A)
    )
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="checkpoint"):
        made(fv.FermiClassifier, **(choices | changed)).fit(X, y, sensitive_features=A)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert (
        made(fv.FermiClassifier, **choices).fit(X, y, sensitive_features=A).privacy_.epsilon <= 1.0
    )


def test_a_file_is_no_folder(tmp_path) -> None:
    X, y, A = unfair(50)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InputError, match="expected a folder"):
        fv.FermiClassifier(checkpoint=tmp_path / "file").fit(X, y, sensitive_features=A)
    assert (tmp_path / "file").read_text() == "kept"


def test_a_place_that_cannot_be_written_to_is_refused_before_the_first_question(tmp_path) -> None:
    X, y, A = unfair(50)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InputError, match="expected a folder"):
        fv.FermiClassifier(checkpoint=tmp_path / "file" / "below").fit(X, y, sensitive_features=A)
    assert (tmp_path / "file").read_text() == "kept"
