"""What version 0.1.0 wrote (commit 93b604f) is read for ever: models decide alike, statements
verify, ledgers go on.

`tests/files_0_1_0` was written by that version, from made-up rows: eight estimators, a ledger of
two fits as a file and as a document, a frontier. A change of a format reads these files as they
are; nobody writes them anew.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv
from fairveil.errors import Overspent
from fairveil.privacy.statement.statement import examine

OLD = Path(__file__).parent / "files_0_1_0"
EXPECTED: dict[str, Any] = json.loads((OLD / "expected.json").read_text("utf-8"))
STATEMENTS = [*sorted(OLD.glob("*/statement.json")), OLD / "receipt.statement.json"]
MODELS = sorted(path.name for path in OLD.iterdir() if path.is_dir())


def test_all_eight_estimators_are_here() -> None:
    assert len(MODELS) == 8
    assert len({type(fv.load(OLD / name)) for name in MODELS}) == 8


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_decides_as_it_did(name: str) -> None:
    loaded, expected = fv.load(OLD / name), EXPECTED["models"][name]
    given: dict[str, Any] = (
        {} if expected["groups"] is None else {"sensitive_features": expected["groups"]}
    )
    if name in ("rate_constrained", "oracle_game", "odds", "group_objective"):
        given["random_state"] = 0
    found = loaded.predict(np.asarray(EXPECTED["probe"]), **given)
    if isinstance(expected["predictions"][0], str):
        assert found.tolist() == expected["predictions"]
    else:
        np.testing.assert_allclose(found, expected["predictions"], rtol=1e-12)
    assert loaded.privacy_.promise.epsilon == expected["epsilon"]


@pytest.mark.parametrize(
    "path",
    [*sorted(OLD.glob("*/statement.json")), OLD / "receipt.statement.json"],
    ids=lambda path: path.parent.name,
)
def test_an_old_statement_verifies_and_a_changed_one_does_not(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not [finding for finding in examine(text)[1] if finding.grave]
    raw = json.loads(text)
    raw["promise"]["epsilon"] /= 4
    assert [finding for finding in examine(json.dumps(raw))[1] if finding.grave]


@pytest.mark.parametrize("of", ["file", "document"])
def test_an_old_ledger_goes_on_where_it_was(of: str, tmp_path: Path) -> None:
    if of == "file":
        shutil.copy(OLD / "ledger.db", tmp_path / "ledger.db")
        book = fv.Ledger.open(tmp_path / "ledger.db")
    else:
        book = fv.Ledger.restore(tmp_path / "ledger.db", (OLD / "ledger.json").read_text("utf-8"))
    expected = EXPECTED["models"]["ledger"]
    assert len(list(book.history())) == expected["entries"]
    assert not [finding for finding in book.check() if finding.grave]
    balance = book.balance()
    assert balance.spent == pytest.approx(expected["spent"], rel=1e-9)
    rng = np.random.default_rng(0)
    x, group = rng.uniform(-1, 1, (80, 2)), rng.choice(["a", "b"], 80)
    small = fv.RateConstrainedClassifier(
        epsilon=0.5, delta=1e-6, solver=fv.Descent(rounds=4), random_state=0, ledger=book
    )
    small.fit(x, x[:, 0] > 0, sensitive_features=group)
    assert book.balance().spent > balance.spent
    with pytest.raises(Overspent):
        small.set_params(epsilon=20.0).fit(x, x[:, 0] > 0, sensitive_features=group)
    book.close()


def test_an_old_frontier_is_read() -> None:
    assert (
        len(fv.Frontier.from_json((OLD / "frontier.json").read_text("utf-8")).runs)
        == EXPECTED["models"]["frontier"]["rows"]
    )
