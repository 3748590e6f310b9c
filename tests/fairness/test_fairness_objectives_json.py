"""Objectives and constraints as plain JSON and back; what texts and mistakes of users mean."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fairveil.errors import InputError
from fairveil.facts import Cells
from fairveil.fairness import (
    DemographicParity,
    EqualizedOdds,
    ErrorRate,
    Event,
    PredictionRate,
    RateConstraint,
)
from fairveil.fairness import objectives as ob
from fairveil.fairness.notions import FalseNegativeRate, uses_groups

CELLS = Cells((("f", "m"),), names=("sex",))
FRAME = ob.Frame(CELLS, ("no", "yes"), np.array([[0.3, 0.2], [0.1, 0.4]]))
LOSSES = np.random.default_rng(0).dirichlet(np.ones(8)).reshape(2, 2, 2)

EVERY = [
    ob.Error(),
    ob.WeightedError(),
    ob.WeightedError({("yes", "no"): 5.0, ("no", "yes"): 0.5}, {"f": 2.0}),
    ob.WeightedError(np.array([[0.0, 1.0 / 3.0], [2.0, 0.0]])),
    ob.WeightedError([[0, 1], [2, 0]]),
    ob.RateOf(PredictionRate("yes", Event(groups=("f",), outside=True))),
    ob.RateOf(ErrorRate(Event(labels=("yes",), also=(Event(labels=("no",)),)))),
    ob.FalseNegatives(),
    ob.FalsePositives("no"),
    ob.GMean(0.02),
    ob.HMean(),
    ob.Gap("demographic_parity"),
    ob.Gap("error_rate_parity", 40.0, "marginal"),
    ob.LargestGroupLoss(),
    ob.LargestGroupLoss({("no", "yes"): 1.0}, sharpness=30.0),
    ob.GroupLoss("f"),
    ob.MeanGroupLoss(),
    ob.SumOfErrorRates(),
    ob.SmoothedOddsOfPairs(20.0),
    ob.SmoothedOddsOfRates(),
]


def again(asked: Any) -> Any:
    """As a file would have it."""
    return ob.from_dict(json.loads(json.dumps(asked.to_dict(), allow_nan=False)))


@pytest.mark.parametrize("objective", EVERY, ids=str)
def test_objectives_read_back_to_the_bit(objective: ob.Objective) -> None:
    read = again(objective)
    assert type(read) is type(objective)
    assert read.to_dict() == objective.to_dict()
    assert str(read) == str(objective)
    assert read.needs_groups == objective.needs_groups
    one, other = objective.at(FRAME), read.at(FRAME)
    assert one.value(LOSSES) == other.value(LOSSES)
    assert (one.gradient(LOSSES) == other.gradient(LOSSES)).all()


def test_every_class_with_a_kind_is_among_them() -> None:
    """What is not can be no one's but a user's."""
    made = {*map(type, EVERY), ob.Gini}
    assert made == set(ob.OBJECTIVES)
    assert len({cls.kind for cls in made}) == len(made)


@pytest.mark.parametrize(
    "asked",
    [
        ob.GMean().at_least(0.7),
        ob.Gini().at_most(0.1),
        ob.Gini(np.eye(2)).at_most(1.0 / 3.0),
        ob.LargestGroupLoss().at_most(0.2),
        ob.parse_constraint(None),
        ob.parse_constraint(
            ["equalized_odds:0.1", "gmean:0.3", "false_negative_rate:0.2,positive=yes"]
        ),
        ob.parse_constraint(
            [DemographicParity(0.1), RateConstraint(((1.0, ErrorRate(Event(groups=("f",)))),), 0.3)]
        ),
    ],
    ids=str,
)
def test_bounds_and_constraints_read_back_to_the_bit(asked: Any) -> None:
    read = again(asked)
    assert type(read) is type(asked)
    assert read.to_dict() == asked.to_dict()
    assert str(read) == str(asked)
    functions = [one.at(FRAME) for one in (asked, read)]
    listed = [found if isinstance(found, list) else [found] for found in functions]
    assert [float(one.value(LOSSES)) for one in listed[0]] == [
        float(one.value(LOSSES)) for one in listed[1]
    ]


def test_keys_that_are_pairs_stay_pairs() -> None:
    objective = ob.WeightedError(groups={("f", 1): 2.0, ("m", 0): 3.0})
    assert again(objective).groups == objective.groups
    assert again(ob.FalseNegatives(("a", 1))).positive == ("a", 1)


def test_a_users_functions_are_never_written() -> None:
    class Mine(ob.Error):
        kind = "error"

    custom = ob.Custom(lambda v: float(v.max()), lambda v: np.eye(len(v))[v.argmax()], 1.0)
    for asked in (custom, custom.at_most(0.2), ob.Constraint((custom.at_most(0.2),)), Mine()):
        with pytest.raises(InputError, match="never written"):
            asked.to_dict()
    for given in ("given", ["equalized_odds:0.1", "given"]):
        with pytest.raises(InputError, match="set_params"):
            ob.parse_constraint(given)
    with pytest.raises(InputError, match="set_params"):
        ob.parse_objective("given")


@pytest.mark.parametrize(
    "values",
    [
        None,
        3,
        "gmean",
        [],
        {},
        {"type": "Accuracy"},
        {"type": ["GMean"]},
        {"type": "Custom"},
        {"type": "DemographicParity", "max_gap": 0.1},
        {"type": "GMean"},
        {"type": "GMean", "smoothing": 0.01, "more": 1},
        {"type": "GMean", "smoothing": 0.0},
        {"type": "GMean", "smoothing": "much"},
        {"type": "Gap", "notion": "karma", "sharpness": None, "groups": "product"},
        {"type": "RateOf", "rate": {"type": "Error"}},
        {"type": "Bound", "bound": 0.1},
        {"type": "Bound", "bound": -0.1, "objective": {"type": "Error"}},
        {"type": "Bound", "bound": "much", "objective": {"type": "Error"}},
        {"type": "Constraint", "bounds": [{"type": "Error"}], "notions": []},
        {"type": "Constraint", "bounds": {}, "notions": []},
        {"type": "Constraint", "bounds": [], "notions": [{"type": "Karma"}]},
    ],
    ids=str,
)
def test_what_was_not_written_here_is_refused(values: Any) -> None:
    with pytest.raises(InputError):
        ob.from_dict(values)


@pytest.mark.parametrize(
    "text",
    ["equalized_odds", "equal-opportunity", "equalized_odds,groups=marginal", "gini", "gini:"],
)
def test_a_constraint_without_a_bound_is_refused(text: str) -> None:
    """It is the name of an objective as well: what is meant must be said."""
    with pytest.raises(InputError, match=r"Write \w+:0\.\d+ or \w+:\d+%, for example"):
        ob.parse_constraint(text)
    assert ob.parse_constraint("equalized_odds,max_gap=0.1").notions == (EqualizedOdds(0.1),)


@pytest.mark.parametrize(
    "name", ["gmean", "false_negative_rate", "false_positive_rate", "gini", "equalized_odds"]
)
def test_bounds_on_rates_are_below_1_and_may_be_in_per_cent(name: str) -> None:
    assert str(ob.parse_constraint(f"{name}:30%")) == str(ob.parse_constraint(f"{name}:0.3"))
    with pytest.raises(InputError, match=rf"did you mean {name}:0\.3 or {name}:30%\?"):
        ob.parse_constraint(f"{name}:30")
    with pytest.raises(InputError, match="Leave the option out to require nothing"):
        ob.parse_constraint(f"{name}:inf")


def test_an_objective_of_decisions_is_bounded_below_1() -> None:
    for one in (
        ob.GMean(),
        ob.FalseNegatives(),
        ob.Gap("equalized_odds"),
        ob.Gini(),
        ob.SmoothedOddsOfPairs(),
    ):
        with pytest.raises(
            InputError,
            match=r"1 means 100 per cent: did you mean bound=0\.01\? To require nothing, leave",
        ):
            one.at_most(1)
        old = one.at_most(0.5).to_dict() | {"bound": 1.0}  # earlier versions took it
        assert ob.from_dict(old).to_dict() == old  # type: ignore[union-attr]
    with pytest.raises(InputError, match=r"number in \(0, 1\]"):
        ob.GMean().at_least(0)


def test_losses_that_are_errors_are_bounded_below_1() -> None:
    for name in ("error", "largest_group_loss", "mean_group_loss"):
        asked = ob.parse_constraint(f"{name}:3")  # of a regression's losses
        with pytest.raises(InputError, match=rf"bound of {name}.*3 means 300 per cent"):
            asked.of_decisions()
    costly = ob.Constraint((ob.LargestGroupLoss(costs=[[0, 5], [1, 0]]).at_most(3),))
    assert costly.of_decisions() is costly


def test_a_mapping_is_no_constraint() -> None:
    """Its keys alone would be, with bounds that nobody named."""
    with pytest.raises(InputError, match="constraint: expected a bound"):
        ob.parse_constraint({"equalized_odds": 0.1})


@pytest.mark.parametrize(
    "given",
    ["equalized_odds:0.1", EqualizedOdds(0.1), ob.GMean().at_most(0.1), ob.parse_constraint(None)],
)
def test_a_bound_as_objective_is_told_where_it_belongs(given: Any) -> None:
    with pytest.raises(InputError, match="constraint="):
        ob.parse_objective(given)


@pytest.mark.parametrize(
    "asked",
    [
        ob.Gap(),
        ob.parse_constraint("equalized_odds:0.1"),
        ob.parse_constraint("demographic_parity:0"),
    ][:3],
)
def test_one_group_compares_with_nobody(asked: Any) -> None:
    alone = ob.Frame(Cells((("f",),)), ("no", "yes"), np.full((1, 2), 0.5))
    with pytest.raises(InputError, match="at least two groups"):
        asked.at(alone)
    (one,) = ob.parse_constraint("false_negative_rate:0.2").at(alone)
    assert one.lines.shape[0] == 1


def test_which_notions_tell_groups_apart() -> None:
    by_group = RateConstraint(
        ((1.0, ErrorRate(Event(labels=(1,), also=(Event(groups=("f",)),)))),), 0.3
    )
    of_all = RateConstraint(((1.0, ErrorRate(Event(labels=(1,)))),), 0.3)
    asked = [
        EqualizedOdds(0.1),
        FalseNegativeRate(0.1, "each"),
        FalseNegativeRate(0.1),
        by_group,
        of_all,
    ]
    assert [uses_groups(notion) for notion in asked] == [True, True, False, True, False]


def test_what_is_measured_is_the_value_and_of_gini_the_index() -> None:
    """The index by its definition: mean absolute differences of the groups' rates of yes, over
    twice their mean."""
    assert ob.GMean().measured(FRAME, LOSSES) == float(ob.GMean().at(FRAME).value(LOSSES))
    rates = LOSSES[:, :, 1].sum(axis=1) / FRAME.shares.sum(axis=1)
    by_hand = np.abs(rates[:, None] - rates[None]).mean() / (2 * rates.mean())
    assert ob.Gini().measured(FRAME, LOSSES) == pytest.approx(by_hand)
