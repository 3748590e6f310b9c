"""Private tables of decisions: what they say and cost, hierarchy, access, metrics as coins, and
what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairveil as fv
from fairveil.core.events import DiscreteLaplace
from fairveil.errors import FairveilError, InputError, LedgerError, PrivacyError

RNG = np.random.default_rng(0)
N = 2000
SEX = np.array(["f", "m"])[RNG.integers(2, size=N)]
TOWN = np.array(["x", "y", "z"])[RNG.integers(3, size=N)]
GROUPS = {"sex": SEX, "town": TOWN}
Y = RNG.random(N) < 0.4
DECIDED = RNG.random(N) < np.where(SEX == "m", 0.5, 0.3)


def test_it_is_the_group_table_with_noise() -> None:
    exact = fv.group_table(Y, DECIDED, SEX)
    found = fv.private_audit(DECIDED, None, Y, sensitive_features=SEX, epsilon=1.0)
    for group in ("f", "m"):
        for name, rate in found.by_group[group].items():
            assert rate.low <= exact[group].rates[name].value <= rate.high
            assert abs(rate.value - exact[group].rates[name].value) < 0.1
    assert set(found.rates) == set(exact.overall.rates)
    assert found.privacy_.epsilon <= 1.0
    (event,) = found.privacy_.events
    assert isinstance(event, DiscreteLaplace)
    assert not found.privacy_.check()
    assert not found.check()
    public = fv.private_audit(DECIDED, None, Y, sensitive_features=SEX, epsilon=math.inf)
    assert public.by_group["m"]["error"].value == pytest.approx(exact["m"].rates["error"].value)
    assert public.level()["m"].people.value == exact["m"].rows


def test_models_decisions_and_outcomes_alone() -> None:
    X = RNG.normal(size=(400, 2))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    options = {"sensitive_features": SEX[:400], "epsilon": 1.0, "random_state": 5}
    ways = [model, model.predict, model.predict(X)]
    tables = [str(fv.private_audit(one, X, X[:, 0] > 0, **options)) for one in ways]
    assert tables[0] == tables[1] == tables[2]
    outcomes = fv.private_audit(None, None, Y[:400], **options)
    assert outcomes.rates == ("selection_rate[False]", "selection_rate[True]")
    assert outcomes.model == "the outcomes themselves"


def test_the_hierarchy_its_access_and_its_worst_pair() -> None:
    found = fv.private_audit(
        DECIDED, None, Y, sensitive_features=GROUPS, epsilon=3.0, random_state=1
    )
    assert list(found.by_group) == [(a, b) for a in "fm" for b in "xyz"]
    assert list(found.level("sex")) == [("sex", "f"), ("sex", "m")]
    gap = found.difference(None, "sex")
    assert (gap.rate, gap.pair) == ("selection_rate[True]", (("sex", "m"), ("sex", "f")))
    assert gap.low < 0.2 < gap.high
    assert gap.named_with == 0.999
    assert found.ratio("selection_rate[True]", "sex").value == pytest.approx(0.6, abs=0.1)
    frame = found.to_frame()
    assert len(frame) == 1 + 2 + 3 + 6
    assert (
        frame["selection_rate[True]"]
        .between(frame["selection_rate[True].low"], frame["selection_rate[True].high"])
        .all()
    )
    assert "everyone" in str(found)
    flat = fv.private_audit(
        DECIDED, None, Y, sensitive_features=GROUPS, epsilon=3.0, depth=1, random_state=1
    )
    assert flat.levels == ((0,), (1,))
    with pytest.raises(InputError, match="Name the columns of one level: sex, town"):
        flat.difference()
    with pytest.raises(InputError, match="a rate of this table"):
        flat.difference("selection", "sex")


@pytest.mark.parametrize("protects", ["records:replace-one", "sensitive_features"])
def test_public_sums_are_exact_and_everything_fits(protects: str) -> None:
    options = {"epsilon": 1.0, "protects": protects, "random_state": 0}
    found = fv.private_audit(DECIDED, None, Y, sensitive_features=SEX, **options)
    people = found.lines[(), None].people
    assert (people.value, people.low, people.high) == (N, N, N)
    assert sum(line.people.value for line in found.level().values()) == N
    if protects == "sensitive_features":
        assert found.overall["error"].value == pytest.approx((Y != DECIDED).mean())
    assert fv.estimators.PrivateTable.from_json(found.to_json()).overall == found.overall


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": None}, "privacy budget"),
        ({"confidence": 1.0}, "confidence"),
        ({"intervals": "some"}, "intervals"),
        ({"depth": 0}, "depth"),
        ({"small_below": 0}, "small_below"),
        ({"model": None, "y": None}, "something to count"),
        ({"model": np.zeros(7, int)}, "rows"),
        ({"sensitive_features": np.arange(N)}, "counts|groups|values"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(change: dict, words: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    ledger = fv.Ledger.create(tmp_path / "budget.db", "people", epsilon=1.0, delta=1e-6)
    given = {
        "model": DECIDED,
        "X": None,
        "y": Y,
        "sensitive_features": SEX,
        "epsilon": 1.0,
        "ledger": ledger,
    } | change
    with pytest.raises(FairveilError, match=words):
        fv.private_audit(given.pop("model"), given.pop("X"), given.pop("y"), **given)
    assert ledger.balance().committed == 0


def test_the_ledger_holds_one_spend(tmp_path) -> None:  # type: ignore[no-untyped-def]
    ledger = fv.Ledger.create(tmp_path / "budget.db", "people", epsilon=1.0, delta=1e-6)
    found = fv.private_audit(DECIDED, None, Y, sensitive_features=SEX, epsilon=0.6, ledger=ledger)
    assert found.privacy_.ledger is not None
    with pytest.raises((LedgerError, PrivacyError)):
        fv.private_audit(DECIDED, None, Y, sensitive_features=SEX, epsilon=0.6, ledger=ledger)


def test_without_groups_there_is_everyone_alone() -> None:
    found = fv.private_audit(DECIDED, None, Y, epsilon=1.0, random_state=0)
    assert len(found.lines) == 1
    assert found.difference().value is None


def test_distributions_are_drawn_and_the_statement_says_so() -> None:
    rng = np.random.default_rng(3)
    north = rng.random(20_000) < 0.5
    share = np.where(north, 0.8, 0.2)
    decided = rng.random(20_000) < np.where(north, 0.4, 0.6)
    soft = fv.estimators.SoftGroups(np.stack([share, 1 - share], axis=1), ("a", "b"))
    table = fv.private_audit(decided, sensitive_features=soft, epsilon=1.0, random_state=1)
    told = {fact.name: fact.value for fact in table.privacy_.facts}
    assert told["recorded groups"] == "each drawn from that person's distribution over groups"
