"""Notions as values: validated, hashable, printable, JSON both ways, read from the command line."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from fairveil.errors import InputError
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
    SelectionRateRatio,
    notions,
    resolve,
)

ODD = Event((("f", 1), ("m", 2)), ("yes", None), True, (Event(), Event(None, (True,))))
EXAMPLES = [
    DemographicParity(0.05),
    DemographicParity(0.1, groups="marginal", compare="rest"),
    EqualizedOdds(0.02, compare="rest"),
    EqualOpportunity(0.1, "yes"),
    EqualOpportunity(0.1, 3, groups="marginal"),
    FalsePositiveRateParity(0.1, positive=False),
    ErrorRateParity(0.3),
    FalseNegativeRate(0.1),
    FalseNegativeRate(0.1, "each", "yes", groups="marginal"),
    FalseNegativeRate(0.1, ("f", 1), 2.5),
    BoundedGroupLoss(0.2),
    BoundedGroupLoss(1.5, "log", groups="marginal"),
    BoundedGroupLoss(7, "squared"),
    RateConstraint(
        ((1.0, PredictionRate("yes", ODD)), (-2.5, ErrorRate(ODD))),
        0.1,
        groups="marginal",
        name="mine",
    ),
]


@pytest.mark.parametrize("notion", EXAMPLES, ids=repr)
def test_json_both_ways_hash_copy_and_pickle(notion):
    text = json.dumps(notion.to_dict(), allow_nan=False)
    back = notions.from_dict(json.loads(text))
    assert back == notion
    assert hash(back) == hash(notion)
    assert type(back) is type(notion)
    assert json.dumps(back.to_dict()) == text
    assert copy.deepcopy(notion) == pickle.loads(pickle.dumps(notion)) == notion
    assert len({*EXAMPLES, back}) == len(EXAMPLES)
    assert type(notion).__name__ in repr(notion)


def test_every_notion_is_among_the_examples():
    assert {type(notion) for notion in EXAMPLES} == set(notions.NOTIONS.values())


def test_the_same_notion_serves_again_and_again():
    notion, cells = DemographicParity(0.1), Cells((("f", "m"),))
    first, other = (
        resolve(notion, cells, (0, 1)),
        resolve(notion, Cells((("a", "b", "c"),)), (0, 1, 2)),
    )
    assert (len(first), len(other), len(resolve(notion, cells, (0, 1)))) == (2, 18, 2)
    assert notion == DemographicParity(0.1)


def test_the_number_of_constraints():
    twelve, five = Cells((tuple(range(12)),)), tuple(range(5))
    for notion, classes, expected in (
        (DemographicParity(0.05), (0, 1), 12 * 11),
        (DemographicParity(0.05), five, 12 * 11 * 5),
        (DemographicParity(0.05, compare="rest"), five, 12 * 2 * 5),
        (EqualizedOdds(0.05), five, 12 * 11 * 25),
        (FalseNegativeRate(0.1, "each"), (0, 1), 12),
        (BoundedGroupLoss(0.1), five, 12),
    ):
        assert len(resolve(notion, twelve, classes)) == expected
    assert len(resolve(DemographicParity(0.05, compare="rest"), Cells((("f", "m"),)), (0, 1))) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("demographic_parity:0.05", DemographicParity(0.05)),
        ("demographic_parity:5%", DemographicParity(0.05)),
        ("demographic_parity:.1", DemographicParity(0.1)),
        ("demographic_parity,max_gap=.5e-1", DemographicParity(0.05)),
        ("bounded_group_loss:1.,loss=log", BoundedGroupLoss(1.0, "log")),
        ("demographic_parity, max_gap = 2.5 %", DemographicParity(0.025)),
        ("false_negative_rate:20%,group=each", FalseNegativeRate(0.2, "each")),
        ("bounded_group_loss:1.5,loss=log", BoundedGroupLoss(1.5, "log")),
        ("demographic-parity:0.2", DemographicParity(0.2)),
        (
            " equalized_odds : 1e-2 , groups = marginal , compare=rest",
            EqualizedOdds(0.01, groups="marginal", compare="rest"),
        ),
        ("equal_opportunity:0.1,positive=>50K", EqualOpportunity(0.1, ">50K")),
        ("false_positive_rate_parity:0.1,positive=1", FalsePositiveRateParity(0.1, 1)),
        ('false_positive_rate_parity:0.1,positive="1"', FalsePositiveRateParity(0.1, "1")),
        ("error_rate_parity:0.3", ErrorRateParity(0.3)),
        ("false_negative_rate:0.1,group=each,positive=true", FalseNegativeRate(0.1, "each", True)),
        ("false_negative_rate:0.1", FalseNegativeRate(0.1)),
        ("bounded_group_loss:0.4,loss=log", BoundedGroupLoss(0.4, "log")),
    ],
)
def test_parse(text, expected):
    assert notions.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "parity:0.1",
            "demographic_parity:lots",
            "demographic_parity:-1",
            "demographic_parity:nan",
            5,
            None,
        ),
        *(
            "demographic_parity:0.1,x=1",
            "demographic_parity:0.1,max_gap=0.2",
            "demographic_parity:0.1,marginal",
        ),
        *(
            "demographic_parity",
            "demographic_parity:",
            "demographic_parity:inf",
            "demographic_parity:100%",
            "equalized_odds:none",
        ),
        *(
            "false_negative_rate:1",
            "bounded_group_loss:1.0",
            "bounded_group_loss:50%,loss=log",
            "demographic_parity:1e999%",
        ),
        *(
            "demographic_parity:0.1,compare=all",
            "demographic_parity:true",
            "false_negative_rate",
            "rate_constraint:0.1",
        ),
    ],
)
def test_parse_refuses(text):
    with pytest.raises(InputError):
        notions.parse(text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DemographicParity(-0.1),
        lambda: DemographicParity(float("nan")),
        lambda: DemographicParity("0.1"),
        lambda: DemographicParity(True),
        lambda: DemographicParity(0.1, groups="both"),
        lambda: EqualizedOdds(0.1, compare="all"),
        lambda: FalseNegativeRate(-1),
        lambda: FalseNegativeRate(0.1, float("nan")),
        lambda: EqualOpportunity(0.1, ["a", {}]),
        lambda: BoundedGroupLoss(0.1, "hinge"),
        lambda: RateConstraint((), 0.1),
        lambda: RateConstraint(((1.0, "rate"),), 0.1),
        lambda: RateConstraint(((float("inf"), ErrorRate()),), 0.1),
        lambda: RateConstraint(((1.0, ErrorRate()),), float("nan")),
        lambda: Event("f"),
        lambda: Event(()),
        lambda: Event(("f", "f")),
        lambda: Event(outside=True),
        lambda: notions.from_dict({"type": "DemographicParity", "max_gap": 0.1}),
        lambda: notions.from_dict({"type": "x"}),
        lambda: notions.from_dict([]),
        lambda: notions.from_dict(DemographicParity(0.05).to_dict() | {"more": 1}),
        lambda: notions.from_dict(EXAMPLES[-1].to_dict() | {"terms": [[1.0]]}),
        lambda: notions.from_dict(EXAMPLES[-1].to_dict() | {"terms": [[1.0, {"type": "Event"}]]}),
        lambda: EqualOpportunity(0.1, frozenset("a")).to_dict(),
        lambda: EqualOpportunity(0.1, float("inf")).to_dict(),
    ],
)
def test_bad_notions_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_options_are_keyword_only():
    with pytest.raises(TypeError):
        DemographicParity(0.1, "product")
    with pytest.raises(TypeError):
        EqualizedOdds(0.1, "rest")


def test_numpy_values_are_kept_as_plain_ones():
    notion = EqualOpportunity(np.float64(0.1), np.int64(1))
    assert type(notion.positive) is int
    assert json.loads(json.dumps(notion.to_dict()))["positive"] == 1


def test_vacuous_notions():
    for gap, vacuous in ((0.99, False), (None, True)):
        assert DemographicParity(gap).is_vacuous is vacuous
        assert FalseNegativeRate(gap).is_vacuous is vacuous
        assert BoundedGroupLoss(gap).is_vacuous is vacuous
        assert BoundedGroupLoss(gap, "log").is_vacuous is vacuous
    assert not BoundedGroupLoss(3.0, "log").is_vacuous


GAPS = (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    FalsePositiveRateParity,
    ErrorRateParity,
)


@pytest.mark.parametrize("cls", [*GAPS, FalseNegativeRate, BoundedGroupLoss])
def test_nothing_is_required_by_none_alone(cls: type) -> None:
    """A bound that was left out, or that no decision rule breaks, is an error that names the way
    out."""
    with pytest.raises(
        InputError,
        match=rf"expected a bound, got none.*{cls.__name__}\(max_\w+=0\.05\).*=None\) to require "
        rf"nothing",
    ):
        cls()
    for bound in (1, 1.0, 5, np.float64(2.0), 250, float("inf")):
        with pytest.raises(InputError, match=r"from 0 to below 1.*=None requires nothing"):
            cls(bound)
    with pytest.raises(
        InputError, match=r"5 means 500 (percentage points|per cent): did you mean max_\w+=0\.05\?"
    ):
        cls(5)
    asked = cls(None)
    assert asked.is_vacuous
    assert notions.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked
    cells = Cells((("f", "m"),))
    limits = resolve(
        replace(asked, positive=1) if hasattr(asked, "positive") else asked, cells, (0, 1)
    ).bounds
    assert set(limits.tolist()) == {1.0}  # what no rate and no gap is above


def test_a_ratio_is_held_at_every_rate():
    """At rates 0.4 and 0.32 a ratio of 0.8 just holds, at 0.3 it does not."""
    system = resolve(SelectionRateRatio(0.8), Cells((("f", "m"),)), (0, 1))
    for rate, broken in ((0.32, 0.0), (0.3, 0.02)):
        selected = np.array([0.4, rate])[:, np.newaxis, np.newaxis]
        histogram = np.concatenate([1.0 - selected, selected], axis=-1).repeat(2, axis=1)
        excess = system.excess(system.exact_values(histogram, np.ones((2, 2))))
        assert max(excess) == pytest.approx(broken)


def test_a_text_asks_back_in_its_own_words() -> None:
    for text, words in (
        (
            "demographic_parity:5",
            r"500 percentage points: did you mean demographic_parity:0\.05 or",
        ),
        ("false-negative-rate:20,group=each", r"false_negative_rate:0\.2 or .*:20%\?"),
        (
            "equalized_odds",
            r"a name, ':' and a bound, got .*equalized_odds:0\.05 or equalized_odds:5%",
        ),
        ("bounded_group_loss:50%,loss=log", "this loss is no rate"),
    ):
        with pytest.raises(InputError, match=words):
            notions.parse(text)


def test_a_vacuous_rate_constraint_is_one_that_no_decisions_break():
    """The bound is compared with the true maximum, found by trying every decision rule on one row a
    (group, label)."""
    cells, classes = Cells((("f", "m"),)), (0, 1)
    rng = np.random.default_rng(2)
    events = [Event(("f",)), Event(("m",)), Event(("f",), (1,)), Event()]
    for _ in range(60):
        chosen = rng.choice(4, size=2, replace=False)
        rates = [PredictionRate(k, events[e]) for e in chosen for k in classes] + [
            ErrorRate(events[chosen[0]])
        ]
        terms = tuple((float(c), rate) for c, rate in zip(rng.normal(size=5), rates, strict=True))
        probe = RateConstraint(terms, 0.0)
        reached = -math.inf
        system = resolve(probe, cells, classes)
        for code in range(16):
            histogram = np.zeros(system.shape)
            for row, (cell, label) in enumerate(np.ndindex(2, 2)):
                histogram[cell, label, code >> row & 1] += 1
            reached = max(reached, system.exact_values(histogram, np.ones((2, 2)))[0])
        vacuous_from = next(
            b for b in np.arange(0, 20, 0.01) if RateConstraint(terms, float(b)).is_vacuous
        )
        assert vacuous_from >= reached - 1e-9
    assert RateConstraint(((1.0, PredictionRate(1)), (1.0, PredictionRate(0))), 1.0).is_vacuous
    assert not RateConstraint(((1.0, PredictionRate(1)), (0.5, ErrorRate())), 1.4).is_vacuous
    assert RateConstraint(((1.0, PredictionRate(1)), (-1.0, PredictionRate(1))), 0.0).is_vacuous
    assert not RateConstraint(((0.6, PredictionRate(1)), (0.6, PredictionRate(1))), 1.0).is_vacuous
