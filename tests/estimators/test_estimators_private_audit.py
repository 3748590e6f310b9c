"""Private tables of decisions: what they say and cost, hierarchy, access, metrics as coins, and
what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

import fairveil as fv
from fairveil.errors import FairveilError, InputError, LedgerError, PrivacyError
from fairveil.privacy.events import DiscreteLaplace

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


def test_a_plot_has_every_group(tmp_path) -> None:  # type: ignore[no-untyped-def]
    import matplotlib as mpl

    mpl.use("Agg")
    found = fv.private_audit(DECIDED, None, Y, sensitive_features=SEX, epsilon=1.0, random_state=0)
    axes = found.plot("error")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["f", "m", "everyone"]
    assert found.plot(ax=axes) is axes


@pytest.mark.parametrize(
    ("protects", "neighbours"), [("records", "replace-one"), ("sensitive_features", None)]
)
def test_public_sums_are_exact_and_everything_fits(protects: str, neighbours: str | None) -> None:
    options = {"epsilon": 1.0, "protects": protects, "neighbours": neighbours, "random_state": 0}
    found = fv.private_audit(DECIDED, None, Y, sensitive_features=SEX, **options)
    people = found.lines[(), None].people
    assert (people.value, people.low, people.high) == (N, N, N)
    assert sum(line.people.value for line in found.level().values()) == N
    if protects == "sensitive_features":
        assert found.overall["error"].value == pytest.approx((Y != DECIDED).mean())
    assert fv.PrivateTable.from_json(found.to_json()).overall == found.overall


def test_a_metric_is_the_mean_of_the_users_function() -> None:
    """A cost between 0 and 5 of real numbers; the coin's mean is within five of its standard
    deviations (below 1e-6)."""
    amount = RNG.random(N) * 5.0
    cost = fv.RowMetric(lambda X, y, prediction: X * (y != prediction), high=5.0)
    options = {"sensitive_features": SEX, "epsilon": math.inf}
    found = fv.private_audit(
        DECIDED, amount, Y, metrics={"cost": cost, "chosen": lambda X, y, p: p}, **options
    )
    truth = (amount * (Y != DECIDED)).mean()
    share = truth / 5.0
    assert abs(found.overall["cost"].value - truth) < 5.0 * 5.0 * math.sqrt(share * (1 - share) / N)
    # coins of 0 and 1 are no gamble
    assert found.overall["chosen"].value == pytest.approx(DECIDED.mean())
    assert found.overall["cost"].low < truth < found.overall["cost"].high
    assert found.difference("cost").low >= 0.0
    stamped = found.privacy_.to_json()
    assert "metrics are functions of the caller's" in stamped


def test_values_of_a_metric_stay_between_its_bounds_whatever_the_function_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """1 where the value is above, 0 where it is below, not finite, or raises on a row."""

    def wild(X: np.ndarray, y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        print("secret", X)
        if (X == 3).any():
            raise ValueError("secret")
        return np.select([X == 0, X == 1, X == 2], [1e300, -7.0, math.nan], 1.0)

    kinds = np.arange(400) % 5
    options = {"sensitive_features": kinds, "epsilon": math.inf, "metrics": {"wild": wild}}
    found = fv.private_audit(kinds > 1, kinds, None, **options)
    assert [found.by_group[k]["wild"].value for k in range(5)] == [1.0, 0.0, 0.0, 0.0, 1.0]
    heard = capsys.readouterr()
    assert "secret" not in heard.out + heard.err
    with pytest.raises(InputError, match="a number for each row"):
        fv.private_audit(
            kinds > 1, kinds, None, epsilon=math.inf, metrics={"none": lambda X, y, p: None.lost}
        )  # type: ignore[attr-defined]


def test_the_coins_of_a_metric_are_new_each_time_and_belong_to_no_position() -> None:
    """Two secure tables of one metric of 0.5 agree in all 300 coins with probability 2^-300."""
    from fairveil.estimators.certifying.row_metric import RowMetric
    from fairveil.privacy.noise.sources import NoiseSource

    half = RowMetric(lambda X, y, prediction: np.full(len(prediction), 0.5))
    thrown = [
        half.coins(None, None, np.zeros(300), NoiseSource.secure().stream("sampling").uniforms(300))
        for _ in range(2)
    ]
    assert (thrown[0] != thrown[1]).any()
    assert stats.binomtest(int(thrown[0].sum()), 300, 0.5).pvalue > 1e-7


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": None}, "privacy budget"),
        ({"confidence": 1.0}, "confidence"),
        ({"intervals": "some"}, "intervals"),
        ({"depth": 0}, "depth"),
        ({"small_below": 0}, "small_below"),
        ({"metrics": [1]}, "metrics by name"),
        ({"metrics": {"error": lambda X, y, p: p}}, "names of their own"),
        ({"metrics": {"a": 3}}, "a function"),
        ({"metrics": dict.fromkeys("abcde", lambda X, y, p: p)}, "at most 4"),
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


def test_a_metric_needs_bounds() -> None:
    for low, high in ((1.0, 1.0), (0.0, math.inf), (math.nan, 1.0)):
        with pytest.raises(InputError, match="low below high"):
            fv.RowMetric(lambda X, y, p: p, low, high)
    with pytest.raises(FairveilError, match="a number"):
        fv.RowMetric(lambda X, y, p: p, "0", 1)  # type: ignore[arg-type]
    found = fv.private_audit(
        DECIDED,
        None,
        Y,
        epsilon=1.0,
        metrics={"gain": fv.RowMetric(lambda X, y, p: 2.0 * p - 1, -1.0)},
    )
    with pytest.raises(InputError, match="never negative"):
        found.ratio("gain")


# -- recorded groups that are not the true ones ----------------------------------------------------


def flipped(seed: int, rows: int = 20_000) -> tuple[Any, Any, Any, fv.Reports]:
    """Decisions, true and recorded groups, and how the latter came about."""
    rng = np.random.default_rng(seed)
    true = rng.integers(2, size=rows)
    decided = rng.random(rows) < 0.3 + 0.2 * true
    asked = fv.Reports.randomized_response(("f", "m"), epsilon=1.1)
    recorded = np.where(rng.random(rows) < asked.rates[0][1], 1 - true, true)
    return decided, true, np.array(["f", "m"])[recorded], asked


@pytest.mark.parametrize("kind", ["records", "attribute", "no privacy"])
def test_rates_of_true_groups_are_estimated_from_flipped_ones(kind: str) -> None:
    """A gap of 20 points, of which recorded groups show 10."""
    decided, _, recorded, asked = flipped(0)
    how: dict[str, Any] = {
        "epsilon": float("inf") if kind == "no privacy" else 1.0,
        "random_state": 1,
    }
    if kind == "attribute":
        how["protects"] = "sensitive_features"
    table = fv.private_audit(decided, sensitive_features=recorded, **how)
    name = "selection_rate[True]"
    shown, found = table.difference(name), table.true_groups(asked)
    assert shown.high is not None
    assert shown.high < 0.14
    gap = found.difference(name)
    assert gap.low is not None
    assert gap.high is not None
    assert gap.low < 0.2 < gap.high
    assert shown.high < gap.low
    assert gap.pair == ("m", "f")
    assert found.rates[name]["m"].low < 0.5 < found.rates[name]["m"].high
    assert "widest difference" in str(found)
    assert "not shown" not in str(found)


def test_a_table_that_was_written_has_true_groups_too() -> None:
    decided, _, recorded, asked = flipped(1, 3000)
    table = fv.private_audit(decided, sensitive_features=recorded, epsilon=1.0, random_state=1)
    again = fv.PrivateTable.from_json(table.to_json())
    assert str(again.true_groups(asked)) == str(table.true_groups(asked))


def test_other_groups_and_several_columns_are_refused() -> None:
    decided, _, recorded, asked = flipped(2, 1000)
    table = fv.private_audit(decided, sensitive_features=recorded, epsilon=1.0, random_state=1)
    with pytest.raises(InputError, match="reports"):
        table.true_groups(fv.Reports.randomized_response(("f", "x"), epsilon=1.0))
    two = fv.private_audit(
        decided, sensitive_features=[recorded, recorded], epsilon=1.0, random_state=1
    )
    with pytest.raises(InputError, match="reports"):
        two.true_groups(asked)


def test_distributions_are_drawn_and_what_they_cannot_show_is_said() -> None:
    """Two districts with the same decisions for both groups: the proxy is right there, and says
    that it need not be."""
    rng = np.random.default_rng(3)
    north = rng.random(20_000) < 0.5
    share = np.where(north, 0.8, 0.2)
    decided = rng.random(20_000) < np.where(north, 0.4, 0.6)
    soft = fv.SoftGroups(np.stack([share, 1 - share], axis=1), ("a", "b"))
    table = fv.private_audit(decided, sensitive_features=soft, epsilon=1.0, random_state=1)
    told = {fact.name: fact.value for fact in table.privacy_.facts}
    assert told["recorded groups"] == "each drawn from that person's distribution over groups"
    found = table.true_groups(soft.reports)
    gap = found.difference("selection_rate[True]")
    assert gap.low is not None
    assert gap.high is not None
    assert gap.low < 0.12 < gap.high
    assert "need not be those of true groups" in str(found)
