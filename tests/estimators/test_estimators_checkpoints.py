"""Networks' fits that are kept on disk: killed and resumed they have the plan's price; a folder of
another run is refused. Linear models and all other methods: test_estimators_kept_fits.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fermi_samples import fit_kept_at, net, penalised, unfair

import fairveil as fv
import ways
from fairveil.curator import Journal
from fairveil.errors import InputError, PrivacyError
from knobs import made

ROUNDS = 12


class Killed(BaseException):
    """What ends a fit in the middle."""


def broken_off(monkeypatch: pytest.MonkeyPatch, at: int, fit: Any) -> None:
    """A fit that ends once so many answers are on the disk."""
    write = Journal.__call__

    def dying(self: Journal, entry: Any) -> None:
        write(self, entry)
        if len(self.entries) == at:
            raise Killed

    with monkeypatch.context() as context:
        context.setattr(Journal, "__call__", dying)
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
    loaded = fv.load(fv.save(kept, tmp_path / "model"), model=net())
    assert loaded.checkpoint == str(tmp_path / "fit")
    assert loaded.privacy_ == kept.privacy_


@pytest.mark.parametrize(
    ("at", "protects"), [(1, "records"), (7, "sensitive_features"), (14, "records")]
)
def test_a_network_that_was_killed_goes_on_at_the_price_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, protects: str
) -> None:
    options: dict[str, Any] = {"protects": protects, "random_state": None}
    broken_off(monkeypatch, at, lambda: fit_kept_at(str(tmp_path), **options))
    clf = fit_kept_at(str(tmp_path), **options)
    whole = fit_kept_at(str(tmp_path / "other"), **options)
    assert clf.privacy_.events == whole.privacy_.events == clf.privacy_.plan == whole.privacy_.plan
    assert clf.privacy_.epsilon == whole.privacy_.epsilon
    assert clf.privacy_.bounds == whole.privacy_.bounds
    assert clf.privacy_.stamps == whole.privacy_.stamps == ("user-code-trusted",)
    assert not clf.privacy_.check()
    assert clf.n_iter_ == ROUNDS
    again = fit_kept_at(str(tmp_path), **options)  # one that ended gives its model again
    assert np.array_equal(again.outcome_.weights, clf.outcome_.weights)


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 2.0},
        {"delta": 1e-7},
        {"neighbours": "replace-one"},
        {"clip": 0.3, "rounds": 13},
        {"sampling_rate": 0.5},
        {"model": None},
    ],
    ids=str,
)
def test_a_folder_of_another_run_is_refused_and_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:
    broken_off(monkeypatch, 7, lambda: fit_kept_at(str(tmp_path)))
    before = contents(tmp_path)
    X, y, A = unfair(600)
    clf = penalised(**{"model": net(), "rounds": ROUNDS, "checkpoint": tmp_path, **other})
    with pytest.raises(PrivacyError, match="another"):
        clf.fit(X, y, sensitive_features=A)
    assert contents(tmp_path) == before
    assert not hasattr(clf, "model_")
    fit_kept_at(str(tmp_path))  # and its own run goes on


@pytest.mark.parametrize(
    "changed", [{"strength": 3.0}, {"radius": 1.0}, {"clip": 1.0}, {"model": "other"}]
)
def test_other_choices_of_the_same_price_are_told_apart_by_what_they_ask(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changed: dict[str, Any]
) -> None:
    """The plan holds noise multipliers alone. What was released stays, and the own run goes on."""
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
    fit = lambda given: made(ways.fermi, **given).fit(X, y, sensitive_features=A)  # noqa: E731
    broken_off(monkeypatch, 12, lambda: fit(choices))
    told = Journal(tmp_path / "answers.jsonl").entries
    with pytest.raises(PrivacyError, match="another question"):
        fit(choices | changed)
    assert Journal(tmp_path / "answers.jsonl").entries == told
    assert fit(choices).privacy_.epsilon <= 1.0


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    X, y, A = unfair(50)
    (tmp_path / "file").write_text("kept")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="expected a folder"):
            ways.fermi(checkpoint=place).fit(X, y, sensitive_features=A)
    assert (tmp_path / "file").read_text() == "kept"
