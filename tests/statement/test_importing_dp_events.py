"""Trees of DpEvents against dp_accounting: every event counted, none cheaper than its mechanism,
refusals with reasons."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from fairveil.core import cost as accounting
from fairveil.core.events import (
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    PoissonSampled,
    Repeated,
    ZeroConcentrated,
)
from fairveil.core.inventory import counted
from fairveil.errors import FairveilError, InputError
from fairveil.statement.importing import Imported, from_dp_event

dpa = pytest.importorskip("dp_accounting")
dpe = pytest.importorskip("dp_accounting.dp_event")
pld = pytest.importorskip("dp_accounting.pld")
rdp = pytest.importorskip("dp_accounting.rdp")

ADD, REPLACE = dpa.NeighboringRelation.ADD_OR_REMOVE_ONE, dpa.NeighboringRelation.REPLACE_ONE
SPECIAL = dpa.NeighboringRelation.REPLACE_SPECIAL
G, L = dpe.GaussianDpEvent, dpe.LaplaceDpEvent
DELTA = 1e-6


def read(event: Any, relation: Any = ADD, **more: Any) -> Imported:
    return from_dp_event(event, neighbours=relation, rows_per_person=1, **more)


def epsilon(event: Any, relation: Any = ADD) -> float:
    return read(event, relation).price(DELTA).epsilon


def theirs(event: Any, relation: Any, accountant: Any = None) -> float:
    made = (accountant or pld.PLDAccountant)(neighboring_relation=relation)
    return float(made.compose(event).get_epsilon(DELTA))


def sampled(rate: float, event: Any) -> Any:
    return dpe.PoissonSampledDpEvent(rate, event)


def many(event: Any, count: Any) -> Any:
    return dpe.SelfComposedDpEvent(event, count)


@pytest.mark.parametrize(
    ("event", "relations"),
    [
        (G(4.0), (ADD, REPLACE)),
        (many(G(20.0), 30), (ADD, REPLACE)),
        (sampled(0.01, G(1.0)), (ADD, REPLACE)),
        (many(sampled(0.01, G(1.0)), 100), (ADD, REPLACE)),
        (sampled(1.0, G(3.0)), (ADD, REPLACE)),
        (sampled(0.1, sampled(0.1, G(1.0))), ()),
        (L(3.0), (ADD,)),
        (many(sampled(0.05, L(2.0)), 20), (ADD,)),
        (dpe.DiscreteLaplaceDpEvent(0.2, 2), (ADD,)),
        (dpe.ComposedDpEvent([G(9.0), many(L(8.0), 2), sampled(0.02, G(1.0))]), (ADD,)),
    ],
)
def test_it_costs_what_their_tightest_accountant_says(
    event: Any, relations: tuple[Any, ...]
) -> None:
    """Guarantee 2. Equality finds a multiplier that is halved once too often, or not at all."""
    for relation in relations:
        assert epsilon(event, relation) == pytest.approx(theirs(event, relation), rel=2e-3), (
            relation
        )


@pytest.mark.parametrize(
    ("event", "relations"),
    [
        (sampled(0.01, G(1.0)), (SPECIAL,)),
        (G(4.0), (SPECIAL,)),
        (dpe.DiscreteLaplaceDpEvent(0.2, 2), (SPECIAL,)),
    ],
)
def test_a_looser_event_costs_more(event: Any, relations: tuple[Any, ...]) -> None:
    for relation in relations:
        assert epsilon(event, relation) >= theirs(event, relation) * (1 - 1e-4)


@pytest.mark.parametrize(
    "event", [dpe.ZCDpEvent(0.05), dpe.RepeatAndSelectDpEvent(G(10.0), 5, 1), many(G(5.0), 3)]
)
def test_it_costs_no_more_than_their_moments_say(event: Any) -> None:
    assert epsilon(event) <= theirs(event, ADD, rdp.RdpAccountant) * (1 + 1e-4)


@pytest.mark.parametrize(("size", "taken"), [(1000, 20), (100, 50), (7, 6)])
def test_a_batch_without_replacement_is_the_profile_of_its_theorem(size: int, taken: int) -> None:
    """delta(e) = q H(log(1 + (exp(e) - 1)/q)), H of Gaussians that are 2/z apart (Balle, Barthe and
    Gaboardi 2018)."""
    event, q = (
        read(dpe.SampledWithoutReplacementDpEvent(size, taken, G(2.0)), REPLACE).events,
        taken / size,
    )
    for e in (0.0, 0.3, 2.0):
        a = math.log1p(math.expm1(e) / q)
        normal = norm.cdf
        expected = q * (normal(0.5 - a) - math.exp(a) * normal(-0.5 - a))
        assert accounting.delta(event, e, "replace-one") == pytest.approx(
            expected, rel=5e-3, abs=1e-12
        )


def test_batches_without_replacement_cost_less_than_moments_that_are_valid() -> None:
    """Their Renyi accountant takes noise over the sensitivity, which is twice the norm."""
    ours = many(dpe.SampledWithoutReplacementDpEvent(1000, 20, G(4.0)), 100)
    valid = many(dpe.SampledWithoutReplacementDpEvent(1000, 20, G(2.0)), 100)
    found = epsilon(ours, REPLACE)
    assert (
        theirs(ours, REPLACE, rdp.RdpAccountant) < found < theirs(valid, REPLACE, rdp.RdpAccountant)
    )
    whole = dpe.SampledWithoutReplacementDpEvent(20, 20, G(4.0))
    assert epsilon(whole, REPLACE) == pytest.approx(epsilon(G(4.0), REPLACE))


def test_every_event_is_counted() -> None:
    """Guarantee 1, through nesting, zero counts and an accountant's own ledger."""
    inner = dpe.ComposedDpEvent([G(2.0), many(L(3.0), 4), dpe.NoOpDpEvent(), many(G(7.0), 0)])
    tree = dpe.ComposedDpEvent([many(inner, 3), many(many(G(2.0), 5), np.int64(2))])
    assert counted(read(tree).events) == {Gaussian(2.0): 13, Laplace(3.0): 12}
    accountant = rdp.RdpAccountant().compose(G(2.0), 3).compose(sampled(0.1, G(1.0)), 2)
    found = counted(read(accountant.ledger).events)
    assert found == {Gaussian(2.0): 3, PoissonSampled(0.1, Gaussian(1.0)): 2}


def test_releases_on_one_batch_stay_on_one_batch() -> None:
    together = sampled(0.1, dpe.ComposedDpEvent([G(1.0), many(G(2.0), 2), dpe.NoOpDpEvent()]))
    merged = sampled(0.1, G((1 / (1.0 + 0.25 + 0.25)) ** 0.5))
    apart = dpe.ComposedDpEvent([sampled(0.1, G(1.0)), many(sampled(0.1, G(2.0)), 2)])
    assert epsilon(together) == pytest.approx(theirs(merged, ADD), rel=2e-3)
    assert epsilon(together) > 1.05 * epsilon(apart)
    assert counted(read(sampled(0.1, sampled(0.5, G(1.0)))).events) == {
        PoissonSampled(0.05, Gaussian(1.0)): 1
    }


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.int64(2), np.array(2.0), 2])
def test_numbers_of_any_library_count(number: Any) -> None:
    assert read(G(number)).events == Gaussian(2.0)
    assert read(many(G(number), np.array(3))).events == Repeated(Gaussian(2.0), 3)


def test_no_noise_is_not_private_and_endless_noise_is_free() -> None:
    for event in (
        G(0.0),
        dpe.NonPrivateDpEvent(),
        sampled(0.1, G(0)),
        dpe.ZCDpEvent(math.inf),
    ):
        assert isinstance(read(event, REPLACE).events, NonPrivate)
    for event in (
        G(math.inf),
        dpe.NoOpDpEvent(),
        sampled(0.0, G(1.0)),
        sampled(0.1, dpe.NoOpDpEvent()),
        dpe.ZCDpEvent(0.0),
    ):
        assert isinstance(read(event, REPLACE).events, NoOp)


def test_multipliers_over_the_sensitivity_are_taken_as_they_are() -> None:
    assert read(G(4.0), REPLACE, multipliers="sensitivity").events == Gaussian(4.0)
    assert read(G(4.0), REPLACE).events == Gaussian(2.0)
    assert read(dpe.ZCDpEvent(0.1), SPECIAL).events == ZeroConcentrated(0.4)


def test_named_tuples_and_json_are_the_same_event() -> None:
    event = dpe.ComposedDpEvent([many(sampled(0.01, G(1.5)), 10), L(2.0)])
    written = {
        "class_name": "ComposedDpEvent",
        "events": [
            {
                "class_name": "SelfComposedDpEvent",
                "count": 10,
                "event": {
                    "class_name": "PoissonSampledDpEvent",
                    "sampling_probability": 0.01,
                    "event": {"class_name": "GaussianDpEvent", "noise_multiplier": 1.5},
                },
            },
            {
                "class_name": "LaplaceDpEvent",
                "module_name": "dp_accounting.dp_event",
                "noise_multiplier": 2.0,
            },
        ],
    }
    assert (
        read(event).events
        == read(event.to_named_tuple()).events
        == read(json.loads(json.dumps(written))).events
    )


class Marked(G):  # type: ignore[misc,valid-type]
    """Somebody's own event, which may mean something else."""


@pytest.mark.parametrize(
    ("event", "relation", "words"),
    [
        (dpe.UnsupportedDpEvent(), ADD, "nobody can price"),
        (dpe.SampledWithReplacementDpEvent(10, 2, G(1.0)), REPLACE, "several times"),
        (dpe.SampledWithoutReplacementDpEvent(10, 2, G(1.0)), ADD, "number of records"),
        (dpe.SampledWithoutReplacementDpEvent(10, 12, G(1.0)), REPLACE, "at most 10"),
        (dpe.ZCDpEvent(0.1, 0.1), ADD, "constant"),
        (sampled(0.1, dpe.ZCDpEvent(0.1)), ADD, "noise inside"),
        (sampled(0.1, many(G(1.0), 1 << 40)), ADD, "at most"),
        (G(-1.0), ADD, "at least 0"),
        (G(float("nan")), ADD, "at least 0"),
        (G("1.0"), ADD, "at least 0"),
        (many(G(1.0), 2.5), ADD, "whole number"),
        (many(G(1.0), -1), ADD, "whole number"),
        (dpe.ComposedDpEvent("ab"), ADD, "list of events"),
        (Marked(1.0), ADD, "DpEvent"),
        (object(), ADD, "DpEvent"),
        (None, ADD, "DpEvent"),
        ({"class_name": "GaussianDpEvent"}, ADD, "noise_multiplier"),
        ({"class_name": "NoSuch"}, ADD, "not known"),
        (dpe.RandomizedResponseDpEvent(0.5, 2), REPLACE, "not known"),
        (G(1.0), "zero-out", "NeighboringRelation"),
    ],
)
def test_what_cannot_be_mapped_is_refused_with_its_reason(
    event: Any, relation: Any, words: str
) -> None:
    """Guarantee 3."""
    with pytest.raises(InputError, match=words):
        read(event, relation)


def test_deep_nesting_is_refused_and_not_followed() -> None:
    event = G(1.0)
    for _ in range(2000):
        event = dpe.ComposedDpEvent([event])
    with pytest.raises(InputError, match="levels"):
        read(event)
    batch = sampled(0.5, event)
    with pytest.raises(InputError, match="levels"):
        read(batch)


def test_a_sample_under_another_meaning_is_refused() -> None:
    with pytest.raises(FairveilError, match="over the norm"):
        read(sampled(0.1, G(1.0)), REPLACE, multipliers="sensitivity")
    assert read(sampled(0.1, G(1.0)), ADD, multipliers="sensitivity").events == PoissonSampled(
        0.1, Gaussian(1.0)
    )
