"""The search for less discriminatory alternatives: what it costs, what is written first, and that its
record says nothing that its counts do not."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairveil as fv
from fairveil.core.events import Repeated
from fairveil.data import Category, Schema
from fairveil.errors import InputError, Overspent
from fairveil.estimators.counted import checksum
from fairveil.statement import signing


def _people(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 3))
    X[:, 2] += 1.2 * (A == "m")  # tells the group, and little else
    y = (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0.2).astype(int)
    return X, y, A


X, Y, A = _people(6000, 0)
PAST = _people(800, 1)
BASE = LogisticRegression().fit(PAST[0], (PAST[0].sum(axis=1) > 0.6).astype(int))
BLIND = LogisticRegression().fit(PAST[0] * [1, 1, 0], PAST[1])


def _search(**options: Any) -> fv.estimators.Alternatives:
    asked: dict[str, Any] = {
        "sensitive_features": A,
        "tolerance": 0.01,
        "candidates": {"blind": BLIND, "all": np.ones(len(Y), int)},
        "epsilon": 2.0,
        "random_state": 0,
    }
    return fv.lda(BASE, X, Y, **asked | options)


@pytest.fixture(scope="module")
def found() -> fv.estimators.Alternatives:
    return _search()


def test_what_is_found_and_what_it_costs(found: fv.estimators.Alternatives) -> None:
    assert found.taken == "blind"
    assert found.verdict.startswith("blind is a less discriminatory alternative of equal use")
    assert found.reasons("all") == "its loss exceeds the base's by more than the tolerance"
    statement = found.privacy_
    assert 1.99 < statement.epsilon <= 2.0
    (event,) = statement.events
    assert isinstance(event, Repeated)
    assert event.count == 2  # one release a candidate, together at most the promise
    assert not found.check()
    error = float((BLIND.predict(X) != Y).mean() - (BASE.predict(X) != Y).mean())
    low, high = found.result.candidates[0].loss.low, found.result.candidates[0].loss.high
    assert low < error < high < 0.01


def test_models_functions_decisions_scores_and_cuts_are_counted_alike() -> None:
    scores = BLIND.predict_proba(X)[:, 1]
    ways = [BLIND, BLIND.predict, BLIND.predict(X), (scores, 0.5)]
    made = [_search(candidates={"one": way}, epsilon=math.inf).counts for way in ways]
    assert all((one == made[0]).all() for one in made)
    first = fv.lda(
        None,
        X,
        Y,
        sensitive_features=A,
        tolerance=0.01,
        candidates={"base model": BASE, "blind": BLIND},
        epsilon=math.inf,
    )
    assert first.names == ("blind",)
    assert (first.counts == made[0]).all()


def test_losses_are_exact_where_labels_are_public() -> None:
    one = _search(protects="sensitive_features", candidates={"blind": BLIND})
    exact = _search(epsilon=math.inf, candidates={"blind": BLIND})
    assert one.result.candidates[0].loss == exact.result.candidates[0].loss
    assert one.result.candidates[0].rates != exact.result.candidates[0].rates
    assert type(one).from_json(one.to_json()).result == one.result


def test_the_plan_is_written_and_signed_before_anybody_is_counted(tmp_path: Path) -> None:
    key, plan = tmp_path / "holder.key", tmp_path / "plan.json"
    signing.new_key(key)
    ledger = fv.Ledger.create(
        tmp_path / "ledger.sqlite", "applicants", epsilon=1.0, delta=0.0, neighbours="add-remove"
    )
    with pytest.raises(Overspent):  # refused: the plan is there, and nobody was counted
        _search(plan=plan, key=key, ledger=ledger, epsilon=2.0, random_state=None)
    written = json.loads(plan.read_text())
    assert signing.signature_path(plan).exists()
    signing.verify_signature(plan, tmp_path / "holder.pub")
    with pytest.raises(InputError, match="another tolerance, epsilon"):
        _search(plan=plan, key=key, ledger=ledger, epsilon=0.5, tolerance=0.3, random_state=None)
    plan.unlink()
    signing.signature_path(plan).unlink()
    found = _search(plan=plan, key=key, ledger=ledger, epsilon=0.5, random_state=None)
    assert found.plan == json.loads(plan.read_text()) != written
    assert found.digest in "".join(line.purpose for line in ledger.history())
    record = found.write(tmp_path / "record.json")
    assert type(found).from_json(record.read_text()).verdict == found.verdict


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["results"].__setitem__("taken", 1),
        lambda record: record["results"]["candidates"][1].__setitem__("equal_use", "met"),
        lambda record: record["results"]["candidates"][0]["loss"].__setitem__("high", 0.0),
        lambda record: record["results"]["further"].__setitem__("any_model", 0.5),
        lambda record: record["plan"].__setitem__("tolerance", 0.5),
        lambda record: record["plan"].__setitem__("epsilon", 1.0),
        lambda record: record["counted"]["counts"]["values"].__setitem__(3, 4000.0),
        lambda record: record["counted"]["noise"].__setitem__("scale", 0.5),
        lambda record: record["results"].__setitem__("plan_digest", "sha256:" + "0" * 64),
        lambda record: record["counted"].__setitem__(
            "totals", {"shape": [16], "values": [1.0] * 16}
        ),
        lambda record: record["plan"]["candidates"].pop(),
    ],
)
def test_a_record_that_was_changed_is_refused(
    found: fv.estimators.Alternatives, change: Any
) -> None:
    record = copy.deepcopy(found.to_dict())
    change(record)
    record["checksum"] = checksum(record)
    with pytest.raises(InputError, match="search record"):
        type(found).from_json(json.dumps(record))


def test_a_page_says_all_of_it(found: fv.estimators.Alternatives) -> None:
    page, text = found.to_html(), str(found)
    for words in ("blind", "less discriminatory", "What further search could find", "Assumed"):
        assert words in page
        assert words in text


def test_groups_and_classes_of_decisions_made_elsewhere_may_be_stated() -> None:
    listed = Schema(
        {"sex": Category(("f", "m", "x")), "paid": Category((0, 1))},
        target="paid",
        sensitive=("sex",),
    )
    found = fv.lda(
        BASE.predict(X),
        None,
        Y,
        sensitive_features={"sex": A},
        schema=listed,
        tolerance=0.01,
        candidates={"blind": BLIND.predict(X)},
        epsilon=math.inf,
        smallest=0.02,
    )
    assert found.cells.columns == (("f", "m", "x"),)
    assert found.result.compared == (0, 1)
    assert found.taken == "blind"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"candidates": {}}, "candidates"),
        ({"candidates": {"base": BLIND}}, "none called 'base'"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"measure": "luck"}, "measure"),
        ({"costs": (1.0,)}, "costs"),
        ({"draws": ["nobody"]}, "draws"),
        ({"reference": "x"}, "known group"),
        ({"epsilon": None}, "privacy budget"),
        ({"sensitive_features": None}, "groups"),
        ({"candidates": {"one": BASE.predict_proba(X)}}, "decision"),
    ],
)
def test_refusals_are_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        _search(**options)
    assert "\n" not in str(refused.value)
