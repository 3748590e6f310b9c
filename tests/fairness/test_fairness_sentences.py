"""sentences: every notion and bound in words, with its bound in points or per cent."""

from __future__ import annotations

import pytest

from fairveil.facts import Cells
from fairveil.fairness import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRate,
    ErrorRateParity,
    Event,
    FalseNegativeRate,
    FalsePositiveRateParity,
    PredictionRate,
    RateConstraint,
)
from fairveil.fairness.notions import NOTIONS
from fairveil.fairness.objectives import (
    OBJECTIVES,
    Custom,
    Gap,
    GroupLoss,
    SmoothedOddsOfPairs,
    parse_constraint,
)
from fairveil.fairness.sentences import per_cent, points, sentence

SEX = Cells((("f", "m"),), names=("sex",))
BOTH = Cells((("f", "m"), ("x", "y")), names=("sex", "race"))
YES_F, YES_M = (PredictionRate("yes", Event((key,))) for key in "fm")

SAID = {
    "the selection rates of any two groups of sex differ by at most 5.0 points": DemographicParity(
        0.05
    ),
    "the true and false positive rates of each group of sex and of all others differ by at most "
    "2.5 points": EqualizedOdds(0.025, compare="rest"),
    "the true positive rates of any two groups of sex differ by at most 10.0 points (positive: "
    "yes)": EqualOpportunity(0.1, positive="yes"),
    "the false positive rates of any two groups of sex differ by at most 1.25 "
    "points": FalsePositiveRateParity(0.0125),
    "the error rates of any two groups of sex differ by at most 10.0 points": ErrorRateParity(0.1),
    "at most 20.0% of all positives are missed": FalseNegativeRate(0.2),
    "at most 20.0% of each sex's positives are missed": FalseNegativeRate(0.2, "each"),
    "at most 20.0% of the positives of group f are missed": FalseNegativeRate(0.2, "f"),
    "at most 20.0% of the decisions about each group of sex are wrong": BoundedGroupLoss(0.2),
    "the mean log loss of each group of sex is at most 0.5": BoundedGroupLoss(0.5, "log"),
    "the mean squared error of each group of sex is at most 3": BoundedGroupLoss(3, "squared"),
    "the share decided yes in group f exceeds the share decided yes in group m by at most 5.0 "
    "points": RateConstraint(((1.0, YES_F), (-1.0, YES_M)), 0.05),
    "the share decided yes in group f is below the share decided yes in group m by at least 5.0 "
    "points": RateConstraint(((1.0, YES_F), (-1.0, YES_M)), -0.05),
    "the share decided yes in group f is at least 10.0%": RateConstraint(((-1.0, YES_F),), -0.1),
    "the error rate outside group f is at most 10.0%": RateConstraint(
        ((1.0, ErrorRate(Event(("f",), outside=True))),), 0.1
    ),
    "the four-fifths rule (at most 0)": RateConstraint(
        ((0.8, YES_F), (-1.0, YES_M)), 0.0, name="the four-fifths rule"
    ),
    "0.8 P(prediction = yes | group f) - P(prediction = yes | group m) is at most "
    "0": RateConstraint(((0.8, YES_F), (-1.0, YES_M)), 0.0),
}
OF_OBJECTIVES = {
    "the geometric mean of the classes' recalls is at least 70.0%": "gmean:0.3",
    "the harmonic mean of the classes' recalls is at least 70.0%": "hmean:0.3",
    "at most 10.0% of all decisions are wrong": "error:0.1",
    "at most 10.0% of all negatives are taken for positives": "false_positive_rate:0.1",
    "at most 10.0% of the decisions about each group of sex are wrong": "largest_group_loss:0.1",
    "the mean of the groups' error rates is at most 10.0%": "mean_group_loss:0.1",
    "the Gini index of the groups' selection rates is at most 0.1": "gini:0.1",
}


@pytest.mark.parametrize("said", SAID)
def test_a_notion_in_words(said: str) -> None:
    assert sentence(SAID[said], SEX, ("no", "yes")) == said


@pytest.mark.parametrize("said", OF_OBJECTIVES)
def test_a_bound_on_an_objective_in_words(said: str) -> None:
    (bound,) = parse_constraint(OF_OBJECTIVES[said]).bounds
    assert sentence(bound, SEX, ("no", "yes")) == said


def test_a_gap_that_is_an_objective_reads_as_the_notion_does() -> None:
    assert sentence(Gap("equalized_odds").at_most(0.1), SEX) == sentence(EqualizedOdds(0.1), SEX)
    assert (
        sentence(GroupLoss("f").at_most(0.1), SEX, (0, 1))
        == "at most 10.0% of the decisions about group f are wrong"
    )
    assert sentence(GroupLoss("f").at_most(2.5), SEX) == "the mean loss of group f is at most 2.5"


def test_several_columns_make_combinations_and_marginal_groups_do_not() -> None:
    assert "any two combinations of sex and race" in sentence(DemographicParity(0.1), BOTH)
    assert "any two groups of sex or of race" in sentence(
        DemographicParity(0.1, groups="marginal"), BOTH
    )
    assert "each combination of sex and race" in sentence(FalseNegativeRate(0.1, "each"), BOTH)


def test_more_than_two_classes_have_no_positive_rates() -> None:
    assert "the rates of each decision of any two groups" in sentence(
        DemographicParity(0.1), SEX, (0, 1, 2)
    )
    assert "positive" not in sentence(EqualizedOdds(0.1), SEX, (0, 1, 2))


def test_columns_without_names_are_not_named() -> None:
    assert sentence(DemographicParity(0.1), Cells((("f", "m"),))) == sentence(
        DemographicParity(0.1)
    )
    assert "sensitive_0" not in sentence(FalseNegativeRate(0.1, "each"), Cells((("f", "m"),)))


def test_every_kind_has_a_sentence_without_identifiers() -> None:
    given = {"group": "f", "rate": YES_F, "max_rate": 0.1, "max_loss": 0.1, "max_gap": 0.1}
    given |= {"terms": ((1.0, YES_F),), "bound": 0.1}
    for cls in (*NOTIONS.values(), *OBJECTIVES):
        needed = set(cls.__dataclass_fields__) & set(given) - (
            {"group"} if cls is FalseNegativeRate else set()
        )
        one = cls(**{name: given[name] for name in needed})
        said = sentence(one if hasattr(one, "constraints") else one.at_most(0.1), SEX, (0, 1))
        assert "_" not in said
        assert said[0].islower() or said[0].isdigit()
    custom = Custom(lambda v: v.sum(), lambda v: 0 * v + 1, 2.0)
    assert sentence(custom.at_most(0.1)) == "the function that was handed in is at most 0.1"
    assert "smoothed" in sentence(SmoothedOddsOfPairs(50).at_most(0.1), SEX)


def test_bounds_are_exact_and_have_one_decimal_at_least() -> None:
    assert [points(share) for share in (0.05, 0.0125, 0.0)] == [
        "5.0 points",
        "1.25 points",
        "0.0 points",
    ]
    assert [per_cent(share) for share in (0.2, 0.125, 0.00001)] == ["20.0%", "12.5%", "0.001%"]
