"""Fits whose answers are kept: killed anywhere they go on at the plan's price, and are told the
same again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import fairveil as fv
import ways
from fairveil.curator import Curator, Journal
from fairveil.errors import FairveilError, InputError, PrivacyError
from fairveil.methods.descent import Reason

TESTS = str(Path(__file__).parents[1])  # where `ways` lies
BESIDE = {**os.environ, "PYTHONPATH": os.pathsep.join((TESTS, os.environ.get("PYTHONPATH", "")))}
FITS: dict[str, Any] = {
    "rates": fv.FairClassifier(fv.DemographicParity(0.1), solver=fv.PrimalDual(rounds=6)),
    "fermi": ways.fermi(solver=fv.Fermi(rounds=6)),
    "game": ways.game(fv.DemographicParity(0.1), rounds=3),
    "linear-oracle": ways.objective("largest_group_loss").set_params(solver__rounds=3),
    "exponential": ways.objective("error", fv.DemographicParity(0.2), method="exponential"),
    "log": ways.objective("largest_group_loss").set_params(solver__rounds=3, solver__loss="log"),
    "tailored": ways.tailored().set_params(solver__rounds=3),
    "regression": ways.told(
        ways.objective_regression("largest_group_loss"), target_bounds=(0.0, 1.0)
    ),
    "tailored regression": ways.told(ways.tailored_regression(), target_bounds=(0.0, 1.0)),
}
ODDS = fv.EqualizedOdds(0.1)
SEARCHES: dict[str, Any] = {
    "a game": ways.game(ODDS, rounds=3, oracle="descent"),
    "a loop": ways.objective("error", ODDS, solver=fv.GroupObjective(oracle="descent", rounds=3)),
}
"""What goes on without constraints where noise hides these."""
PROTECTIONS: list[dict[str, Any]] = [
    {},
    {"neighbours": "replace-one"},
    {"protects": "sensitive_features"},
]


class Killed(BaseException):
    """What ends a fit in the middle."""


def sample(seed: int = 0, n: int = 200) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, n)
    X = np.clip(rng.normal(scale=0.4, size=(n, 2)) + 0.3 * A[:, None], -1, 1)
    return X, (X.sum(axis=1) + rng.normal(scale=0.4, size=n) > 0.3).astype(int), A


def fit(name: str, folder: Path | str | None, data: Any = None, **options: Any) -> Any:
    X, y, A = data or sample()
    options = {"checkpoint": folder, "random_state": 0, **options}
    clf = ways.told(clone((FITS | SEARCHES)[name]), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rows
        return clf.fit(X, y, sensitive_features=A)


def decided(clf: Any) -> Any:
    X, _, A = sample(1)
    proba = getattr(clf, "predict_proba", clf.predict)
    return proba(X, sensitive_features=A) if ways.solver_of(clf) is fv.OracleGame else proba(X)


def broken_off(
    monkeypatch: pytest.MonkeyPatch, at: int, name: str, folder: Path, **options: Any
) -> bool:
    """A fit that dies when its release number `at` is written down and not returned; False where
    it has fewer."""
    done = [0]

    def dying(ask: Any) -> Any:
        def call(self: Curator, *args: Any, **named: Any) -> Any:
            before = len(self.log)
            out = ask(self, *args, **named)
            done[0] += len(self.log) - before
            if done[0] == at:
                raise Killed
            return out

        return call

    with monkeypatch.context() as context:
        context.setattr(Curator, "answer", dying(Curator.answer))
        context.setattr(Curator, "choose", dying(Curator.choose))
        try:
            fit(name, folder, **options)
        except Killed:
            return True
    return False


@pytest.mark.parametrize(
    ("name", "options"), [(name, PROTECTIONS[at % 3]) for at, name in enumerate(FITS)]
)
def test_guarantee_1_a_killed_fit_goes_on_at_the_price_of_the_plan(
    name: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fit(name, tmp_path / "whole", **options)
    releases = len(Journal(tmp_path / "whole" / "answers.jsonl").entries)
    for at in sorted({1, releases}):
        folder = tmp_path / str(at)
        assert broken_off(monkeypatch, at, name, folder, **options)
        told = Journal(folder / "answers.jsonl").entries
        clf = fit(name, folder, **options)
        entries = Journal(folder / "answers.jsonl").entries
        assert entries[: len(told)] == told
        assert len(entries) == releases
        assert (clf.privacy_.plan, clf.privacy_.epsilon) == (
            whole.privacy_.plan,
            whole.privacy_.epsilon,
        )
        assert [bound.question for bound in clf.privacy_.bounds] == [
            bound.question for bound in whole.privacy_.bounds
        ]
        assert not clf.privacy_.check()
        if at == releases:  # all was told before: nothing was drawn anew
            assert np.array_equal(decided(clf), decided(whole))


@pytest.mark.parametrize("epsilon", [0.5, 80.0])
@pytest.mark.parametrize("name", list(SEARCHES))
def test_guarantee_1_a_killed_fit_takes_the_way_that_released_counts_led_to(
    name: str, epsilon: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the same bits, where all was told before."""
    whole = fit(name, tmp_path / "whole", epsilon=epsilon)
    assert whole.outcome_.reason is (Reason.HIDDEN if epsilon < 1 else Reason.ROUNDS)
    releases = len(Journal(tmp_path / "whole" / "answers.jsonl").entries)
    for at in (2, releases):
        folder = tmp_path / str(at)
        assert broken_off(monkeypatch, at, name, folder, epsilon=epsilon)
        clf = fit(name, folder, epsilon=epsilon)
        assert clf.outcome_.reason is whole.outcome_.reason
        assert len(Journal(folder / "answers.jsonl").entries) == releases
        assert not clf.privacy_.check()
    assert np.array_equal(decided(clf), decided(whole))


@pytest.mark.parametrize("name", list(FITS))
def test_guarantee_1_a_fit_that_ended_gives_the_same_model_again(name: str, tmp_path: Path) -> None:
    """With another seed, on other rows: all that it says comes from what was released."""
    plain, first = fit(name, None), fit(name, tmp_path)
    assert np.array_equal(decided(plain), decided(first))
    assert plain.privacy_ == first.privacy_
    written = (tmp_path / "answers.jsonl").read_bytes()
    again = fit(name, tmp_path, data=sample(7), random_state=3)
    assert np.array_equal(decided(again), decided(first))
    added = (tmp_path / "answers.jsonl").read_bytes().removeprefix(written)
    assert added.count(b"\n") == 1
    assert b'"sitting":1' in added


def test_guarantee_1_a_ledger_spends_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = fv.Ledger.create(tmp_path / "ledger.db", "people", 1.0, 1e-6)
    options = {"ledger": ledger, "random_state": None}
    assert broken_off(monkeypatch, 3, "game", tmp_path / "fit", **options)
    fit("game", tmp_path / "fit", **options)
    kinds = [line.kind for line in ledger.history()]
    assert kinds == ["created", "reserved", "resumed", "committed"]
    again = fit("game", tmp_path / "fit", **options)
    assert [line.kind for line in ledger.history() if line.kind == "reserved"] == ["reserved"]
    assert not [finding for finding in ledger.check([again.privacy_.ledger]) if finding.grave]


def test_a_process_that_is_killed(tmp_path: Path) -> None:
    """SIGKILL in the middle of a round, twice over: the third process ends the fit."""
    for at in (1, 3):
        program = [sys.executable, __file__, str(at), str(tmp_path)]
        assert subprocess.run(program, check=False, env=BESIDE).returncode == -signal.SIGKILL
    clf = fit("game", tmp_path)
    assert clf.privacy_.events == fit("game", None).privacy_.events
    assert Journal(tmp_path / "answers.jsonl").entries[-1].number >= 2 << 40


@pytest.mark.parametrize(
    "change",
    [
        {"solver__rounds": 5},
        {"epsilon": 2.0},
        {"solver": fv.OracleGame(clip=0.5)},
        {"constraints": fv.EqualizedOdds(0.1)},
    ],
)
def test_a_folder_of_another_fit_is_refused(
    change: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_off(monkeypatch, 3, "game", tmp_path)
    with pytest.raises(PrivacyError):
        fit("game", tmp_path, **change)


@pytest.mark.parametrize("folder", ["", 3])
def test_what_is_no_folder_is_refused(folder: Any) -> None:
    with pytest.raises(InputError, match="checkpoint"):
        fit("game", folder)


def test_exact_answers_are_kept_nowhere(tmp_path: Path) -> None:
    with pytest.raises(FairveilError, match="exact answers are not kept"):
        fit("game", tmp_path, epsilon=float("inf"))
    assert not list(tmp_path.iterdir())


def _die(at: int, folder: str) -> None:
    """Fit, and be killed once so many answers are on the disk."""
    import os

    write = Journal.__call__

    def written(self: Journal, entry: Any) -> None:
        write(self, entry)
        if len(self.entries) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    Journal.__call__ = written  # type: ignore[method-assign]
    fit("game", folder)


if __name__ == "__main__":
    _die(int(sys.argv[1]), sys.argv[2])
