"""Measures against definitions written with loops, published definitions worked by hand, and every
kind of input."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairveil.fairness as ff
from covering import pairs
from fairveil.errors import InputError
from fairveil.facts import Cells
from fairveil.metrics import (
    audit,
    demographic_parity_gap,
    equal_opportunity_gap,
    equalized_odds_gap,
    error_rate_gap,
    false_positive_rate_gap,
    group_table,
)
from fairveil.metrics.tables import wilson

GAPS = {
    "parity": demographic_parity_gap,
    "odds": equalized_odds_gap,
    "opportunity": lambda *a, **o: equal_opportunity_gap(*a, positive=1, **o),
    "false-positive": lambda *a, **o: false_positive_rate_gap(*a, positive=1, **o),
    "error": error_rate_gap,
}


def rate(weights, hit):
    """Weighted share of the rows where `hit`; weights select the event."""
    total = sum(weights)
    return sum(w * h for w, h in zip(weights, hit, strict=True)) / total if total else math.nan


def rates_by_hand(name, y, chance, weight, classes):
    """All rates that the notion compares, for one group's rows: chance[i][k] is the probability of
    class k."""
    rows = range(len(y))
    if name == "parity":
        return [rate(weight, [chance[i][k] for i in rows]) for k in classes]
    if name == "odds":
        return [
            rate([weight[i] * (y[i] == v) for i in rows], [chance[i][k] for i in rows])
            for v in classes
            for k in classes
        ]
    if name == "opportunity":
        return [rate([weight[i] * (y[i] == 1) for i in rows], [chance[i][1] for i in rows])]
    if name == "false-positive":
        return [rate([weight[i] * (y[i] != 1) for i in rows], [chance[i][1] for i in rows])]
    return [rate(weight, [1 - chance[i][y[i]] for i in rows])]


def gap_by_hand(name, y, chance, columns, weight, classes, mode, compare):
    everyone = range(len(y))
    if mode == "product":
        keys = list(zip(*columns, strict=True))
        blocks = [[[i for i in everyone if keys[i] == key] for key in set(keys)]]
    else:
        blocks = [
            [[i for i in everyone if column[i] == v] for v in set(column)] for column in columns
        ]

    def of(rows):
        return rates_by_hand(
            name,
            [y[i] for i in rows],
            [chance[i] for i in rows],
            [weight[i] for i in rows],
            classes,
        )

    found = []
    for block in blocks:
        if compare == "pairs":
            for one, other in itertools.combinations(block, 2):
                found += [abs(a - b) for a, b in zip(of(one), of(other), strict=True)]
        elif len(block) > 1:
            for inside in block:
                outside = [i for i in everyone if i not in set(inside)]
                found += [abs(a - b) for a, b in zip(of(inside), of(outside), strict=True)]
    return max(found)


@pytest.mark.parametrize(
    ("compare", "mode", "groups", "classes", "name"),
    pairs(["pairs", "rest"], ["product", "marginal"], [2, 12], [2, 5], sorted(GAPS)),
)
def test_gaps_equal_their_definitions(name, classes, groups, mode, compare):
    """Decisions and probabilities, with and without weights."""
    rng = np.random.default_rng(classes * 31 + groups)
    rows = 300 if classes == 2 else 1200
    first = rng.integers(groups // 2, size=rows)
    columns = [first, rng.integers(2, size=rows)]
    y = np.concatenate([np.arange(classes), rng.integers(classes, size=rows - classes)])
    for soft, weighted in itertools.product((False, True), (False, True)):
        chance = (
            rng.dirichlet(np.ones(classes), size=rows)
            if soft
            else np.eye(classes)[rng.integers(classes, size=rows)]
        )
        prediction = chance if soft else chance.argmax(axis=1)
        weight = rng.uniform(0.1, 2, size=rows) if weighted else np.ones(rows)
        expected = gap_by_hand(
            name,
            y.tolist(),
            chance.tolist(),
            [c.tolist() for c in columns],
            weight.tolist(),
            range(classes),
            mode,
            compare,
        )
        found = GAPS[name](
            y,
            prediction,
            columns,
            groups=mode,
            compare=compare,
            sample_weight=weight if weighted else None,
        )
        assert found == pytest.approx(expected, abs=1e-12)


def test_published_definitions_worked_by_hand():
    """fairlearn: difference of selection rates, and the larger of the differences of true and false
    positive rates."""
    y = [1, 1, 1, 0, 0, 1, 1, 0, 0, 0]
    p = [1, 1, 0, 1, 0, 1, 0, 0, 0, 0]
    a = ["f"] * 5 + ["m"] * 5
    assert demographic_parity_gap(y, p, a) == pytest.approx(3 / 5 - 1 / 5)
    assert equal_opportunity_gap(y, p, a) == pytest.approx(2 / 3 - 1 / 2)
    assert false_positive_rate_gap(y, p, a) == pytest.approx(1 / 2 - 0)
    assert equalized_odds_gap(y, p, a) == pytest.approx(1 / 2)
    assert error_rate_gap(y, p, a) == pytest.approx(2 / 5 - 1 / 5)


def test_undefined_is_nan_never_zero():
    y, p, a = [0, 1, 0, 0], [0, 1, 1, 0], ["f", "f", "m", "m"]
    assert math.isnan(equal_opportunity_gap(y, p, a))
    assert math.isnan(equalized_odds_gap(y, p, a))
    assert equalized_odds_gap(y, p, a, undefined="skip") == 0.5
    assert math.isnan(equal_opportunity_gap(y, p, a, undefined="skip"))
    assert math.isnan(demographic_parity_gap(y, p, ["f"] * 4))
    assert math.isnan(demographic_parity_gap(y, p, a, groups=Cells((("f", "m", "x"),))))
    assert (
        demographic_parity_gap(y, p, a, groups=Cells((("f", "m", "x"),)), undefined="skip") == 0.0
    )
    assert demographic_parity_gap(None, p, a) == 0.0
    # nobody is (m, y): no such group, so nothing is unknown
    corner = [["f", "f", "m", "m"], ["x", "y", "x", "x"]]
    assert demographic_parity_gap(y, p, corner) == 1.0
    assert (
        equalized_odds_gap([0, 0, 0, 0], [0, 0, 1, 0], a, classes=(0, 1)) == 0.5
    )  # nobody has label 1: nothing to compare there
    empty = group_table(y, p, a, groups=Cells((("f", "m", "x"),)))["x"]
    assert (empty.rows, empty.labels, empty.small) == (0, (0, 0), True)
    assert all(math.isnan(v) for e in empty.rates.values() for v in (e.value, e.low, e.high))


def test_group_table_counts_rates_and_intervals():
    y = [1] * 40 + [0] * 60 + [1] * 5 + [0] * 15
    p = [1] * 30 + [0] * 10 + [1] * 6 + [0] * 54 + [1] * 1 + [0] * 19
    a = ["f"] * 100 + ["m"] * 20
    table = group_table(y, p, a)
    f, m = table["f"], table["m"]
    assert (f.rows, f.labels, f.small, m.rows, m.labels, m.small) == (
        100,
        (60, 40),
        False,
        20,
        (15, 5),
        True,
    )
    values = {name: estimate.value for name, estimate in f.rates.items()}
    assert values["selection_rate[1]"] == pytest.approx(0.36)
    assert values["true_positive_rate[1]"] == pytest.approx(0.75)
    assert values["false_negative_rate[1]"] == pytest.approx(0.25)
    assert values["false_positive_rate[1]"] == pytest.approx(0.1)
    assert values["true_positive_rate[0]"] == pytest.approx(0.9)
    assert values["accuracy"] == pytest.approx(0.84)
    assert values["error"] == pytest.approx(0.16)
    tpr = f.rates["true_positive_rate[1]"]
    assert tpr.size == 40
    # Wilson, 30 of 40, 95 %
    assert (tpr.low, tpr.high) == pytest.approx((0.5981, 0.8581), abs=1e-4)
    fnr = f.rates["false_negative_rate[1]"]
    assert (fnr.low, fnr.high) == pytest.approx((0.1419, 0.4019), abs=1e-4)
    assert table.overall.rows == 120
    assert table.overall.rates["accuracy"].value == pytest.approx((84 + 16) / 120)
    assert group_table(y, p, a, confidence=0.8)["f"].rates["error"].low > f.rates["error"].low
    with pytest.raises(InputError, match="Known groups"):
        table["x"]


def test_wilson_covers_as_often_as_it_says():
    """20,000 binomials of 40 at p 0.3: coverage of a 90 % interval lies in [0.87, 0.93] (exactly
    0.900 by summation)."""
    hits = np.random.default_rng(0).binomial(40, 0.3, size=20_000)
    bounds = {h: wilson(h / 40, 40, 0.9) for h in set(hits.tolist())}
    covered = np.mean([bounds[h][0] <= 0.3 <= bounds[h][1] for h in hits.tolist()])
    assert 0.87 < covered < 0.93


def test_group_table_prints_exports_and_knows_marginal_groups():
    rng = np.random.default_rng(1)
    y, p = rng.integers(3, size=200), rng.integers(3, size=200)
    columns = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], 200), "race": rng.choice(["a", "b", "c"], 200)}
    )
    product, marginal = (
        group_table(y, p, columns, groups=mode) for mode in ("product", "marginal")
    )
    assert [row.group for row in product.rows] == list(itertools.product("fm", "abc"))
    assert [row.group for row in marginal.rows] == [
        ("sex", "f"),
        ("sex", "m"),
        ("race", "a"),
        ("race", "b"),
        ("race", "c"),
    ]
    for table in (product, marginal):
        assert table.overall.rows == 200
        text = str(table)
        assert len({len(line) for line in text.splitlines()[:-2]}) == 1
        assert "everyone" in text
        back = json.loads(table.to_json())
        assert back["groups"][0]["rows"] == table.rows[0].rows
        frame = table.to_frame()
        assert frame["rows"].tolist() == [row.rows for row in table.rows]
        assert frame["accuracy"].tolist() == [row.rates["accuracy"].value for row in table.rows]
    assert (
        json.loads(group_table([0, 1], [0, 1], ["f", "m"]).to_json())["groups"][0]["rates"][
            "true_positive_rate[1]"
        ]["value"]
        is None
    )
    assert " -" in str(group_table([0, 1], [0, 1], ["f", "m"]))


@pytest.mark.parametrize("soft", [False, True])
def test_metrics_of_the_user_are_columns_of_group_tables(soft):
    """Of the group's own rows, marginal groups too; a group of nobody has none."""
    rng = np.random.default_rng(2)
    y, p = rng.choice(["no", "yes"], 90), rng.choice(["no", "yes"], 90)
    chances = rng.dirichlet([1, 1], 90)
    columns = {"sex": rng.choice(["f", "m"], 90), "old": rng.choice(["a", "b"], 90)}
    asked = {
        "brier": lambda y, p: float(np.mean((p[:, 1] - (y == "yes")) ** 2)),
        "agreed": lambda y, p: float(np.mean(y == p)),
    }
    name = "brier" if soft else "agreed"
    given = chances if soft else p
    table = group_table(y, given, columns, groups="marginal", metrics={name: asked[name]})
    for row in table.rows:
        inside = columns[row.group[0]] == row.group[1]
        assert row.rates[name].value == pytest.approx(asked[name](y[inside], given[inside]))
        assert (row.rates[name].size, math.isnan(row.rates[name].low)) == (inside.sum(), True)
    assert table.overall.rates[name].value == pytest.approx(asked[name](y, given))
    assert table.to_frame()[name].tolist() == [row.rates[name].value for row in table.rows]
    assert f"{table.overall.rates[name].value:.4g}" in str(table)
    cells = Cells((("f", "m", "x"),))
    empty = group_table(y, given, columns["sex"], groups=cells, metrics={name: asked[name]})["x"]
    assert math.isnan(empty.rates[name].value)
    assert empty.rates[name].to_dict() == {"value": None, "low": None, "high": None, "size": 0}


def test_weights_count_in_rates_and_widen_intervals():
    y, p, a = [1, 1, 0, 0] * 25, [1, 0, 1, 0] * 25, ["f"] * 50 + ["m"] * 50
    weights = np.tile([3.0, 1.0, 1.0, 1.0], 25)
    plain, weighted = group_table(y, p, a)["f"], group_table(y, p, a, sample_weight=weights)["f"]
    assert weighted.rows == plain.rows == 50
    assert weighted.weight == pytest.approx(weights[:50].sum())
    assert weighted.rates["selection_rate[1]"].value == pytest.approx(
        (3 * 13 + 12) / weights[:50].sum()
    )
    assert weighted.labels == plain.labels
    same = group_table(y, p, a, sample_weight=np.full(100, 7.0))["f"].rates["accuracy"]
    assert (same.value, same.low, same.high) == pytest.approx(
        (plain.rates["accuracy"].value, plain.rates["accuracy"].low, plain.rates["accuracy"].high)
    )
    width = (
        weighted.rates["true_positive_rate[1]"].high - weighted.rates["true_positive_rate[1]"].low
    )
    assert width > 0.2


def frames():
    sex, race = ["f", "m", "f", "m", "m", "f"], [1, 1, 2, 2, 1, 2]
    yield "list of columns", [sex, race]
    yield "mapping", {"sex": sex, "race": race}
    yield "arrays", [np.array(sex), np.array(race)]
    yield "2-d objects", np.array([sex, race], dtype=object).T
    yield "pandas", pd.DataFrame({"sex": sex, "race": race})
    yield (
        "pandas categories",
        pd.DataFrame({"sex": pd.Categorical(sex), "race": race}, index=[5, 3, 1, 0, 2, 4]),
    )
    yield "polars", pl.DataFrame({"sex": sex, "race": race})
    yield "pyarrow", pa.table({"sex": sex, "race": race})


@pytest.mark.parametrize(
    ("kind", "given"), list(frames()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_any_frame_gives_the_same_groups(kind, given):
    y, p = [0, 1, 1, 0, 1, 0], [1, 1, 0, 0, 1, 0]
    table = group_table(y, p, given)
    assert [row.group for row in table.rows] == [("f", 1), ("f", 2), ("m", 1), ("m", 2)]
    assert [row.rows for row in table.rows] == [1, 2, 2, 1]
    assert [type(part) for part in table.rows[0].group] == [str, int]


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        np.array,
        pd.Series,
        pl.Series,
        pa.chunked_array,
        lambda v: pd.Series(v, index=[3, 2, 1, 0]),
    ],
)
def test_any_column_gives_the_same_measures(wrap):
    def column(values):
        return wrap([values]) if wrap is pa.chunked_array else wrap(values)

    for y, p in (
        ([0, 1, 0, 1], [1, 1, 0, 1]),
        (["a", "b", "a", "b"], ["b", "b", "a", "b"]),
        ([False, True] * 2, [True, True, False, True]),
    ):
        table = group_table(column(y), column(p), column(["f", "f", "m", "m"]))
        assert [row.group for row in table.rows] == ["f", "m"]
        assert table["m"].rates["accuracy"].value == 1.0
        assert table["f"].rates["accuracy"].value == 0.5
        assert demographic_parity_gap(column(y), column(p), column(["f", "f", "m", "m"])) == 0.5


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None, "m", "f"], list),
        (np.array([np.nan, 1.0, 2.0]), None),
        (pd.Series(["f", None, "m"]), None),
        (pd.Series([1, None, 2], dtype="Int64"), None),
        (pl.Series(["f", None, "m"]), None),
        (pa.table({"s": ["f", None, "m"]}), None),
    ],
)
def test_a_missing_group_is_an_error_or_a_declared_group(values, kind):
    y, p = [0, 1, 0], [0, 1, 1]
    with pytest.raises(InputError, match="missing"):
        group_table(y, p, values)
    table = group_table(y, p, values, missing="unknown")
    assert table["unknown"].rows == 1


def test_bad_input_says_what_is_wrong():
    y, p, a = [0, 1, 0, 1], [0, 1, 1, 1], ["f", "f", "m", "m"]
    bad = [
        (lambda: demographic_parity_gap(y, p[:3], a), "y: 4, prediction: 3"),
        (lambda: demographic_parity_gap(y, p, a[:3]), "sensitive_0.: 3"),
        (lambda: demographic_parity_gap(y, p, a, sample_weight=[1, 2]), "sample_weight: 2"),
        (lambda: demographic_parity_gap(y, p, a, sample_weight=[1, 2, -1, 1]), "weights"),
        (lambda: demographic_parity_gap(y, p, None), "at least one column"),
        (lambda: demographic_parity_gap(y, p, {}), "at least one column"),
        (lambda: demographic_parity_gap(y, p, [a, a[:2]]), "columns of one length"),
        (
            lambda: demographic_parity_gap(y, [0.2, 0.7, 0.1, 0.9], a),
            "Pass decisions, or probabilities",
        ),
        (lambda: demographic_parity_gap(y, np.full((4, 2), 0.6), a), "sum to 1"),
        (lambda: demographic_parity_gap(y, np.full((4, 3), 1 / 3), a), "3 columns"),
        (lambda: demographic_parity_gap(y, ["0", "1", "1", "0"], a), "one kind"),
        (lambda: demographic_parity_gap(y, p, a, classes=(0, 2)), "List every class"),
        (lambda: demographic_parity_gap([0, None, 1, 0], p, a), "y: expected no missing"),
        (
            lambda: demographic_parity_gap(y, p, a, groups=Cells((("f", "x"),))),
            "one of .'f', 'x'., got .*m",
        ),
        (lambda: demographic_parity_gap(y, p, a, groups="both"), "'product' or 'marginal'"),
        (lambda: demographic_parity_gap(y, p, a, compare="all"), "compare"),
        (lambda: demographic_parity_gap(y, p, a, colour="red"), "colour"),
        (lambda: equalized_odds_gap(None, p, a), "labels"),
        (lambda: group_table(None, p, a), "labels"),
        (lambda: group_table(y, p, a, confidence=1.0), "confidence"),
        (lambda: group_table([], [], []), "at least one row"),
        (lambda: equal_opportunity_gap([0, 1, 2, 1], p, a), "positive"),
        (lambda: demographic_parity_gap(y, p, np.zeros((4, 2, 2))), "column"),
    ]
    for call, message in bad:
        with pytest.raises(InputError, match=message):
            call()


def test_an_audit_names_values_and_verdicts():
    y, p = [1, 1, 1, 0, 0, 1, 1, 0, 0, 0], [1, 1, 0, 1, 0, 1, 0, 0, 0, 0]
    a = ["f"] * 5 + ["m"] * 5
    found = audit(ff.DemographicParity(0.3), y, p, a)
    assert found.values == pytest.approx((0.4, -0.4))
    assert found.satisfied == (False, True)
    assert found.holds is False
    assert found.names[found.worst].startswith("P(prediction = 1 | group f)")
    assert json.loads(json.dumps(found.to_dict()))["holds"] is False
    assert audit(ff.DemographicParity(0.4), y, p, a).holds is True
    assert audit(ff.DemographicParity(0.4), None, p, a).values == pytest.approx(found.values)
    both = audit([ff.DemographicParity(0.4), ff.FalseNegativeRate(0.3)], y, p, a)
    assert both.values == pytest.approx((0.4, -0.4, 0.4))
    assert both.holds is False
    unknown = audit(ff.EqualOpportunity(0.5), [1, 0], [1, 0], ["f", "m"])
    assert all(math.isnan(v) for v in unknown.values)
    assert unknown.satisfied == (None, None)
    assert unknown.holds is None
    assert unknown.worst is None
    assert unknown.to_dict()["constraints"][0]["value"] is None
    randomised = np.array([[0.5, 0.5]] * 5 + [[0.9, 0.1]] * 5)
    assert audit(ff.DemographicParity(0.3), y, randomised, a).values == pytest.approx((0.4, -0.4))


@pytest.mark.parametrize(
    "notion", [ff.DemographicParity(0.1), ff.EqualizedOdds(0.1), ff.ErrorRateParity(0.1)]
)
@pytest.mark.parametrize("compare", ["pairs", "rest"])
def test_the_largest_audited_difference_is_the_gap(notion, compare):
    rng = np.random.default_rng(5)
    y, p, a = rng.integers(3, size=400), rng.integers(3, size=400), rng.integers(4, size=400)
    notion = type(notion)(0.1, compare=compare)
    gap = {
        "DemographicParity": demographic_parity_gap,
        "EqualizedOdds": equalized_odds_gap,
        "ErrorRateParity": error_rate_gap,
    }
    expected = gap[type(notion).__name__](y, p, a, compare=compare)
    assert max(audit(notion, y, p, a).values) == pytest.approx(expected)


def test_audits_of_group_losses():
    y, a = ["no", "yes", "no", "yes"], ["f", "f", "m", "m"]
    p = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.6, 0.4]])
    log = audit(ff.BoundedGroupLoss(0.4, "log"), y, p, a)
    assert log.values == pytest.approx(
        (-(math.log(0.9) + math.log(0.8)) / 2, -(math.log(0.5) + math.log(0.4)) / 2)
    )
    assert log.satisfied == (True, False)
    squared = audit(ff.BoundedGroupLoss(0.1, "squared"), y, p, a)
    assert squared.values == pytest.approx(((0.01 + 0.04) / 2, (0.25 + 0.36) / 2))
    weighted = audit(ff.BoundedGroupLoss(0.1, "squared"), y, p, a, sample_weight=[1, 3, 1, 1])
    assert weighted.values[0] == pytest.approx((0.01 + 3 * 0.04) / 4)
    regression = audit(
        ff.BoundedGroupLoss(2.0, "squared"), [1.0, 2.0, 3.0, 4.0], [1.5, 2.0, 1.0, 4.0], a
    )
    assert regression.values == pytest.approx((0.125, 2.0))
    assert regression.holds is True
    zero_one = audit(ff.BoundedGroupLoss(0.2), y, ["no", "yes", "yes", "yes"], a)
    assert zero_one.values == pytest.approx((0.0, 0.5))
    with pytest.raises(InputError, match="probabilities"):
        audit(ff.BoundedGroupLoss(0.4, "log"), y, y, a)
    with pytest.raises(InputError, match="finite numbers"):
        audit(
            ff.BoundedGroupLoss(0.4, "squared"), [1.0, math.nan, 3.0, 4.0], [1.5, 2.0, 1.0, 4.0], a
        )


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_groups_of_whole_numbers_have_the_codes_that_any_values_have(kind: type) -> None:
    """The table that looks them up wraps nowhere: from -100 to 99 is more than eight bits hold."""
    low = -100 if np.issubdtype(kind, np.signedinteger) else 0
    column = np.random.default_rng(0).integers(low, 100, size=2000).astype(kind)
    from fairveil.metrics.inputs import read_groups

    fast, slow = read_groups(column, 2000), read_groups(column.astype(object), 2000)
    assert fast[0] == slow[0]
    assert (fast[1] == slow[1]).all()
    declared = Cells((tuple(range(low, 99)),))
    with pytest.raises(InputError, match="99"):
        read_groups(column, 2000, groups=declared)
