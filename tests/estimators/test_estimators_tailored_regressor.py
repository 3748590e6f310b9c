"""`TailoredRegressor`: its guarantees, fits of every kind, bounds and limits by group, what the
report says."""

from __future__ import annotations

import dataclasses
import json
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from tailored_estimator_samples import (
    AGE,
    BOUNDS,
    INF,
    RELATIONS,
    ROWS,
    SEX,
    X,
    Y,
    quietly,
    regressor,
    verified,
)

import fairveil as fv
import ways
from covering import pairs
from fairveil.core.cost import gaussian_mu
from fairveil.errors import ConstraintNotMet, UnstatedBounds, WorseThanBaseline
from fairveil.facts import Category, Number, Schema
from fairveil.methods.allocation import ALLOCATIONS
from group_prices import by_group
from knobs import made

METHODS = ["moments", "descent"]
GIVEN = {"m": 1.0, "f": 3.0}
BOTH = {"sex": SEX, "age": AGE}
SIZES = np.array([(SEX == "f").sum(), (SEX == "m").sum()])


def fitted(*given: Any, groups: Any = SEX, **options: Any) -> ways.tailored_regression:
    return quietly(regressor(*given, **options), X, Y, sensitive_features=groups)


def errors(reg: Any) -> dict[str, float]:
    """Mean squared errors by group."""
    squares = (reg.predict(X) - Y) ** 2
    return {key: float(squares[key == SEX].mean()) for key in ("f", "m")}


# ---- guarantees
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "rule", "relation"),
    pairs(METHODS, [*ALLOCATIONS, GIVEN], RELATIONS),
)
def test_guarantee_2_every_fit_keeps_its_promise_and_tells_each_group_its_own(
    relation: Any, rule: Any, method: str
) -> None:
    reg = fitted(rule, method=method, **relation)
    statement = verified(reg)
    assert statement.epsilon > 2.99
    assert [group.name for group in statement.groups] == ["f", "m"] == list(reg.groups_)
    report = reg.tailoring_
    fixed = report.fixed
    assert all(group.fixed == fixed for group in statement.groups)
    assert rule not in ("equal", GIVEN) or fixed
    told = by_group(
        statement.plan if fixed else statement.events, 1e-6, statement.neighbours, 2, fixed=fixed
    )
    assert [group.epsilon for group in statement.groups] == pytest.approx(told)
    assert report.epsilons == pytest.approx([min(one, statement.epsilon) for one in told])
    assert sum(report.shares) == pytest.approx(1.0)
    assert report.counts == pytest.approx(SIZES, abs=80)
    measured = rule == "standard-error" and "no information" not in report.why
    assert np.isnan(report.errors).any() != measured
    if not relation:
        assert report.epsilons[0] >= report.epsilons[1]
    assert reg.n_features_in_ == 2
    assert len(reg.coef_) == 2
    assert reg.score(X, Y) > 0.2


@pytest.mark.parametrize("method", METHODS)
def test_guarantee_1_the_same_answers_make_the_same_model_whatever_the_rows_order(
    method: str,
) -> None:
    order = np.random.default_rng(0).permutation(ROWS)
    for rule in ("least-noise", "standard-error"):
        one = regressor(rule, method=method).fit(X, Y, sensitive_features=SEX)
        other = regressor(rule, method=method).fit(
            X[order], Y[order], sensitive_features=SEX[order]
        )
        assert one.coef_.tolist() == other.coef_.tolist()
        assert one.tailoring_.table() == other.tailoring_.table()
        assert fitted(rule, method=method, random_state=1).coef_.tolist() != one.coef_.tolist()


def test_guarantee_1_what_was_read_from_the_data_is_said() -> None:
    unsafe = fitted(unsafe_data_dependent_bounds=True, target_bounds=None).privacy_
    assert "data-dependent-bounds" in unsafe.stamps
    assert any("bounds of the target" in words for words in unsafe.not_covered)
    safe = fitted().privacy_
    assert safe.stamps == ("seeded-noise",)
    assert not any("bounds of the target" in words for words in safe.not_covered)


def test_noise_is_secret_unless_a_seed_is_given() -> None:
    one, other = (fitted(random_state=None, rounds=2) for _ in range(2))
    assert one.coef_.tolist() != other.coef_.tolist()
    assert one.privacy_.stamps == ()


# ---- what is found
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_without_privacy_every_group_counts_alike_or_every_person(method: str) -> None:
    rounds = {} if method == "moments" else {"rounds": 200}
    by_groups = fitted(method=method, epsilon=INF, **rounds)
    weights = np.where(SEX == "f", 1.0 / SIZES[0], 1.0 / SIZES[1])
    wanted = LinearRegression().fit(X, Y, sample_weight=weights)
    assert by_groups.predict(X) == pytest.approx(wanted.predict(X), abs=1e-3)
    assert by_groups.objective_ == pytest.approx(
        np.mean(list(errors(by_groups).values())), rel=1e-6
    )
    assert by_groups.outcome_.losses == pytest.approx(list(errors(by_groups).values()), rel=1e-6)
    for options in ({"objective": "people"}, {"groups_given": None}):
        groups = options.pop("groups_given", SEX)
        plain = fitted(method=method, epsilon=INF, groups=groups, **options, **rounds)
        assert plain.predict(X) == pytest.approx(LinearRegression().fit(X, Y).predict(X), abs=1e-3)
    assert errors(by_groups)["f"] < errors(plain)["f"]
    assert "not-private" in by_groups.privacy_.stamps
    assert by_groups.tailoring_.epsilons == (INF, INF)
    assert by_groups.privacy_.groups == ()
    assert plain.tailoring_.groups == ("everyone",)


@pytest.mark.parametrize(
    "relation", [{}, {"neighbours": "replace-one"}, {"protects": "sensitive_features"}], ids=str
)
def test_by_default_it_is_near_what_is_best_without_privacy(relation: Any) -> None:
    """At its default number of rounds and epsilon 3, three seeds: the mean of the groups'
    errors."""
    best = np.mean(list(errors(fitted(epsilon=INF, method="moments")).values()))
    plain = np.mean(((Y - Y.mean()) ** 2).reshape(-1))
    found = [
        np.mean(list(errors(fitted(rounds=None, random_state=seed, **relation)).values()))
        for seed in range(3)
    ]
    assert best <= min(found)
    assert np.mean(found) < best + 0.3 * (plain - best)


@pytest.mark.parametrize("method", METHODS)
def test_weights_count_rows_several_times(method: str) -> None:
    weights = np.random.default_rng(0).integers(3, size=ROWS)
    options = {"method": method, "epsilon": INF, "rounds": 60}
    one = quietly(regressor(**options), X, Y, sensitive_features=SEX, sample_weight=weights)
    again = quietly(
        regressor(**options),
        X.repeat(weights, axis=0),
        Y.repeat(weights),
        sensitive_features=SEX.repeat(weights),
    )
    assert one.predict(X) == pytest.approx(again.predict(X), abs=1e-6)
    private = quietly(
        regressor(method=method, max_sample_weight=2.0),
        X,
        Y,
        sensitive_features=SEX,
        sample_weight=weights.astype(float),
    )
    verified(private)


# ---- bounds on losses
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by_name", [False, True])
def test_a_bound_on_a_groups_loss_is_kept_in_squared_units_of_y(by_name: bool, method: str) -> None:
    free = errors(fitted(epsilon=INF, method="moments", objective="people"))
    bound = 0.7 * free["f"] + 0.3 * errors(fitted(epsilon=INF, method="moments"))["f"]
    asked = {"f": bound} if by_name else bound
    options = {"rounds": 400} if method == "descent" else {}
    with warnings.catch_warnings():
        # a descent comes to rest within 2 % above
        warnings.simplefilter("ignore", ConstraintNotMet)
        reg = fitted("equal", asked, epsilon=INF, method=method, objective="people", **options)
    assert errors(reg)["f"] <= bound * (1.001 if method == "moments" else 1.02)
    assert errors(reg)["m"] <= errors(fitted(epsilon=INF, method="moments"))["m"]
    lines = reg.constraint_report_.lines
    assert [line.target for line in lines] == [
        f"mean loss of group {key} <= {bound:g}" for key in ("f" if by_name else "fm")
    ]
    assert [line.bound for line in lines] == pytest.approx([bound] * len(lines))
    assert lines[0].value == pytest.approx(errors(reg)["f"], rel=1e-6)
    assert reg.constraint_report_.met_in_training is all(
        line.value <= line.bound * (1 + 1e-9) for line in lines
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("relation", [{"epsilon": INF}, *RELATIONS], ids=str)
def test_a_bound_out_of_reach_is_said_to_be(relation: Any, method: str) -> None:
    options = {"epsilon": 50.0, **relation}
    with pytest.warns(ConstraintNotMet, match="not met: mean loss of group [fm] <= 0.2"):
        reg = regressor("least-noise", 0.2, method=method, rounds=20, **options).fit(
            X, Y, sensitive_features=SEX
        )
    assert not reg.constraint_report_.met
    if "epsilon" not in relation:
        verified(reg, 50.0)


def test_bounded_losses_are_found_by_moments_and_all_else_by_descent() -> None:
    """Where no method is named."""
    assert len(fitted("equal").privacy_.events) > 2
    bounded = fitted("equal", 20.0)
    assert bounded.coef_.tolist() == fitted("equal", 20.0, method="moments").coef_.tolist()


# ---- limits by group
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", [*ALLOCATIONS, GIVEN], ids=[*ALLOCATIONS, "given"])
def test_limits_by_group_are_kept_and_the_statement_says_and_checks_them(
    rule: Any, method: str
) -> None:
    reg = fitted(rule, method=method, max_epsilon={"f": 2.2}, min_epsilon=1.0)
    statement = verified(reg)
    assert statement.check() == []
    f, m = reg.tailoring_.epsilons
    assert 1.0 <= f <= 2.2
    assert 1.0 <= m <= 3.0
    told = [one.epsilon for one in statement.groups]
    assert reg.tailoring_.fixed is False or max(told[0] - 2.2, told[1] - 3.0) <= 1e-9
    assert [one.limit for one in statement.groups] == [2.2, None]
    assert "f: at most 2.2, a limit fixed in advance" in statement.summary()
    both = fitted(rule, method=method, max_epsilon=2.0)
    assert max(both.tailoring_.epsilons) <= 2.0
    assert [one.limit for one in both.privacy_.groups] == [2.0, 2.0]
    lower = tuple(dataclasses.replace(one, limit=0.5) for one in both.privacy_.groups)
    false = [
        finding.sentence
        for finding in dataclasses.replace(both.privacy_, groups=lower).check()
        if finding.grave
    ]
    assert [sentence[:25] for sentence in false] == [
        "group 'f' has a limit of ",
        "group 'm' has a limit of ",
    ]


@pytest.mark.parametrize("method", METHODS)
def test_how_empty_private_rows_are_decides_nothing_that_is_asked(method: str) -> None:
    """One row has a number more, or less, that is not zero: on either side of where a dense matrix
    counts as mostly empty."""
    X = np.zeros((400, 2))
    X.reshape(-1)[:200] = 0.5
    other = X.copy()
    other[0, 0] = 0.0
    y, groups = np.linspace(-1.0, 1.0, 400), np.arange(400) % 2
    options: dict[str, Any] = {
        "solver": fv.Tailored(by="moments") if method == "moments" else fv.Tailored(),
        "target_bounds": (-1, 1),
        "neighbours": "replace-one",
        "rounds": 3,
    }
    one, two = (
        made(ways.tailored_regression, "equal", **options).fit(rows, y, sensitive_features=groups)
        for rows in (X, other)
    )
    assert one.privacy_.events == two.privacy_.events
    assert one.privacy_.bounds == two.privacy_.bounds


def test_a_limit_is_what_her_noise_comes_to_whatever_the_shares_were_made_of() -> None:
    """What a person of the limited group adds up to, by hand from the log: what the limit's epsilon
    allows."""
    for method in METHODS:
        reg = fitted("standard-error", method=method, max_epsilon={"f": 1.8})
        common, own = 0.0, 0.0
        for event in _spelled(reg.privacy_.events):
            if hasattr(event, "multipliers"):
                own += sum(1.0 / part[0] ** 2 for part in event.multipliers)
            else:
                common += event.noise_multiplier**-2
        assert common + own <= gaussian_mu(1.8, 1e-6) ** 2 * (1 + 1e-9)


def _spelled(events: Any) -> list[Any]:
    """Gaussians and releases by cell, one by one."""
    from fairveil.core.events import Composed, Repeated

    out: list[Any] = []
    for event in events:
        if isinstance(event, Composed):
            out += _spelled(event.events)
        elif isinstance(event, Repeated):
            out += _spelled([event.event] * event.count)
        else:
            out.append(event)
    return out


# ---- groups
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "mode", "relation"),
    pairs(METHODS, ["product", "marginal"], RELATIONS),
)
def test_several_sensitive_columns_have_names(relation: Any, mode: str, method: str) -> None:
    reg = regressor("standard-error", groups=mode, method=method, **relation)
    reg.fit(X, Y, sensitive_features=pd.DataFrame(BOTH))
    statement = verified(reg)
    names = [group.name for group in statement.groups]
    if mode == "product":
        assert names == ["f / old", "f / young", "m / old", "m / young"]
        assert {group.column for group in statement.groups} == {0}
    else:
        assert names == ["sex / f", "sex / m", "age / old", "age / young"]
        assert [group.column for group in statement.groups] == [0, 0, 1, 1]
    assert sum(reg.tailoring_.shares) == pytest.approx(1.0 if mode == "product" else 2.0)
    assert max(reg.tailoring_.epsilons) <= 3.0


def test_a_column_of_x_may_say_the_group() -> None:
    frame = pd.DataFrame({"a": X[:, 0], "sex": SEX, "b": X[:, 1]})
    by_name = regressor().fit(frame, pd.Series(Y), sensitive_features="sex")
    assert by_name.coef_.tolist() == fitted().coef_.tolist()
    assert (by_name.predict(frame) == by_name.predict(frame[["a", "b"]])).all()
    assert list(by_name.coef_names_) == ["a", "b"]


def test_a_schema_says_bounds_and_groups_that_no_row_has() -> None:
    columns = {
        "a": Number(-1, 1),
        "b": Number(-1, 1),
        "sex": Category(("f", "m", "x")),
        "pay": Number(*BOUNDS),
    }
    schema = Schema(columns, target="pay", sensitive=["sex"])
    table = {"a": X[:, 0], "b": X[:, 1], "sex": SEX, "pay": Y}
    for method in METHODS:
        reg = quietly(
            regressor("standard-error", schema=schema, target_bounds=None, method=method), table
        )
        verified(reg)
        assert reg.groups_ == ("f", "m", "x")
        assert reg.score(table, Y) > -1.0
        assert all(one > 0 for one in reg.tailoring_.counts)


@pytest.mark.parametrize(
    "names", [(1, "1"), ("a\nb", "c"), ("", " "), (True, False), (2.5, "x")], ids=str
)
def test_groups_may_be_called_anything(names: Any) -> None:
    """The fit's budget is spent by the time that they are named."""
    called = np.empty(ROWS, object)
    called[:] = [names[one == "m"] for one in SEX]
    reg = fitted("equal", groups=called, max_epsilon=2.5)
    assert len({group.name for group in reg.privacy_.groups}) == 2
    assert len({line["group"] for line in reg.tailoring_.table()}) == 2
    assert reg.privacy_.check() == []
    assert str(reg.tailoring_).count("\n") == 7


# ---- what is said
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_report_is_a_table_words_and_json(method: str) -> None:
    reg = fitted("standard-error", method=method, epsilon=60.0)
    report = reg.tailoring_
    table = report.table()
    assert [line["group"] for line in table] == ["f", "m"]
    assert set(table[0]) == {"group", "share", "standard_error", "count", "epsilon"}
    f, m = (line["standard_error"] for line in table)
    pooled = LinearRegression().fit(X, Y).predict(X)
    spread = [np.sqrt(((Y - pooled) ** 2)[key == SEX].mean()) for key in "fm"]
    assert [f, m] == pytest.approx(spread, rel=0.15)  # in units of y, and hardly any noise
    assert [line["share"] for line in table] == pytest.approx(
        [f**2 / (f**2 + m**2), m**2 / (f**2 + m**2)]
    )
    assert json.loads(report.to_json()) == report.to_dict()
    assert report.to_dict()["groups"] == table
    said = str(report)
    assert said.startswith(
        "shares of the budget  standard-error (squared standard errors of the precursor's "
        "predictions)"
    )
    assert "\nf " in said
    assert "Shares were made of released answers" in said
    equal = fitted("equal", method=method).tailoring_
    assert re.search(r"\nf +50\.0% +3 +- +\d+\n", str(equal))  # no standard error was released
    assert equal.table()[0]["standard_error"] is None


def test_without_privacy_the_report_is_json_all_the_same() -> None:
    report = fitted(epsilon=INF, rounds=2).tailoring_

    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    told = json.loads(report.to_json(), parse_constant=refuse)
    assert [line["epsilon"] for line in told["groups"]] == ["inf", "inf"]


def test_a_precursor_that_is_lost_in_noise_is_said_to_tell_nothing() -> None:
    said = {
        fitted("standard-error", epsilon=0.01, random_state=seed).tailoring_.why
        for seed in range(6)
    }
    # each group's sum is negative in half of the runs
    assert any("no information" in why for why in said)


def test_by_default_nothing_is_warned_of_but_unstated_bounds() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", WorseThanBaseline)  # after two rounds
        regressor(rounds=2, epsilon=INF).fit(X, Y, sensitive_features=SEX)
    with pytest.warns(UnstatedBounds, match="X: expected") as caught:
        regressor(rounds=2).fit(X, Y, sensitive_features=SEX)
    assert [one.category for one in caught if not issubclass(one.category, WorseThanBaseline)] == [
        UnstatedBounds
    ]
    with pytest.warns(UnstatedBounds, match="target_bounds: expected"):
        regressor(rounds=2, target_bounds=None).fit(X, Y, sensitive_features=SEX)
