"""Fixed parts of a partition: parallel within it, adding up between partitions (theory.md#t8)."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairveil.core import cost as accounting
from fairveil.core.events import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Repeated,
    VisiblySampled,
    compose,
    from_json_dict,
    spelled_out,
    to_json_dict,
)
from fairveil.core.filters import Filter
from fairveil.errors import InputError, StatementError
from fairveil.privacy import PrivacyStatement, Promise
from fairveil.privacy.accounting.calibration import calibrate, full_batch, scaled

DELTA = 1e-5
PROMISE = Promise(2.0, 1e-5, neighbours="replace-one")
KINDS: dict[str, Event] = {
    "gaussian": Gaussian(3.0),
    "discrete gaussian": DiscreteGaussian(3.0),
    "laplace": Laplace(4.0),
    "discrete laplace": DiscreteLaplace(4.0, 2),
    "per cell": PerCell(((3.0, 5.0),), (2.0,)),
    "joint": Composed((Gaussian(3.0), Laplace(5.0), NoOp())),
    "repeated": Repeated(Gaussian(6.0), 3),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def epoch(event: Event, parts: int) -> Event:
    return Composed(tuple(OnPart(event, part, parts) for part in range(parts)))


def price(*events: Event) -> float:
    return accounting.epsilon(events, DELTA, "replace-one")


@every_kind
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_epochs_over_all_parts_cost_as_many_releases_on_all_rows_by_every_route(
    kind: str, parts: int
) -> None:
    plan, whole = Repeated(epoch(KINDS[kind], parts), 5), Repeated(KINDS[kind], 5)
    assert price(plan) == price(whole)
    assert accounting.routes_of(plan, DELTA, "replace-one") == accounting.routes_of(
        whole, DELTA, "replace-one"
    )
    assert accounting.delta(plan, 0.7, "replace-one") == accounting.delta(whole, 0.7, "replace-one")


def test_a_long_plan_of_many_parts_costs_its_epochs() -> None:
    plan = Repeated(epoch(Gaussian(30.0), 1000), 100)
    assert price(plan) == price(Repeated(Gaussian(30.0), 100))


@every_kind
def test_n_fold_is_a_list_of_n_in_any_order(kind: str) -> None:
    event = KINDS[kind]
    listed = [OnPart(event, part, 3) for part in (0, 1, 2)] * 4
    routes = accounting.routes_of(Repeated(epoch(event, 3), 4), DELTA, "replace-one")
    for other in (
        listed,
        sorted(listed, key=lambda one: -one.part),
        [Repeated(OnPart(event, part, 3), 4) for part in (2, 0, 1)],
    ):
        assert accounting.routes_of(other, DELTA, "replace-one") == routes


@every_kind
def test_one_part_asked_again_and_again_costs_each_time_and_others_nothing_more(kind: str) -> None:
    event = KINDS[kind]
    assert price(*[OnPart(event, 1, 4)] * 3) == price(*[event] * 3)
    assert price(*[OnPart(event, 1, 4)] * 3, OnPart(event, 0, 4), OnPart(event, 2, 4)) == price(
        *[event] * 3
    )
    assert price(OnPart(event, 0, 4), event) == price(event, event)


def test_partitions_add_up_for_a_person_is_in_a_part_of_each() -> None:
    both = [OnPart(Gaussian(3.0), 0, 4), OnPart(Gaussian(3.0), 0, 5), OnPart(Gaussian(3.0), 1, 5)]
    assert price(*both) == price(Gaussian(3.0), Gaussian(3.0))


small = st.lists(
    st.tuples(
        st.sampled_from([Gaussian(2.0), Gaussian(3.0), Laplace(3.0)]),
        st.integers(0, 2),
        st.integers(1, 3),
    ),
    max_size=6,
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(small)
def test_a_price_is_never_below_that_of_what_any_one_person_was_in(
    chosen: list[tuple[Event, int, int]],
) -> None:
    """Enumerated: everybody's place in the partitions into 2 and into 3."""
    events = [OnPart(event, part % parts, parts) for event, part, parts in chosen]
    worst = 0.0
    for place in itertools.product(range(1), range(2), range(3)):
        hers = [event.event for event in events if event.part == place[event.parts - 1]]
        worst = max(worst, accounting.epsilon(hers, DELTA, "replace-one"))
    # grids differ between lists, which may move a price by their tolerance
    assert price(*events) >= worst * (1 - 1e-3)


@every_kind
def test_more_noise_costs_less_and_scaling_reaches_inside(kind: str) -> None:
    plan = scaled(epoch(KINDS[kind], 3))
    costs = [price(plan(z)) for z in (0.5, 1.0, 2.0)]
    assert costs == sorted(costs, reverse=True)
    assert len(set(costs)) == 3
    assert plan(2.0) == epoch(scaled(KINDS[kind])(2.0), 3)


def test_calibration_finds_the_scale_of_all_rows() -> None:
    found = calibrate(PROMISE, lambda z: Repeated(epoch(Gaussian(z), 50), 20))
    assert found.multiplier == calibrate(PROMISE, lambda z: Repeated(Gaussian(z), 20)).multiplier
    assert (1 - 1e-4) * 2.0 <= found.epsilon <= 2.0
    extra = epoch(Gaussian(20.0), 6)
    assert full_batch(PROMISE, 9, [extra]) == full_batch(PROMISE, 9, [Gaussian(20.0)])


@every_kind
def test_presence_is_not_hidden_by_a_part_and_add_remove_refuses_it(kind: str) -> None:
    for event in (
        OnPart(KINDS[kind], 0, 2),
        Repeated(epoch(KINDS[kind], 2), 3),
        PrivateSelection(OnPart(Gaussian(1.0), 0, 2), 2, 1),
    ):
        with pytest.raises(InputError, match="where presence is protected, got 'OnPart'"):
            accounting.epsilon(event, DELTA, "add-remove")
    assert accounting.epsilon(OnPart(KINDS[kind], 0, 1), DELTA, "add-remove") == accounting.epsilon(
        KINDS[kind], DELTA
    )
    assert accounting.epsilon(Repeated(OnPart(KINDS[kind], 0, 2), 0), DELTA, "add-remove") == 0


@pytest.mark.parametrize("kind", ["gaussian", "renyi", "zcdp"])
def test_a_filter_never_charges_less_than_the_whole_costs(kind: str) -> None:
    cap = Filter.create(Promise(5.0, 1e-5, neighbours="replace-one"), kind)
    one_by_one, at_once = cap, cap.add(epoch(Gaussian(9.0), 3))
    for part in range(3):
        one_by_one = one_by_one.add(OnPart(Gaussian(9.0), part, 3))
    assert at_once.spent == cap.add(Gaussian(9.0)).spent
    assert one_by_one.spent >= at_once.spent


def test_parts_are_written_and_read_back_and_are_answers_of_their_own() -> None:
    plan = Repeated(epoch(KINDS["joint"], 3), 2)
    assert from_json_dict(json.loads(json.dumps(to_json_dict(plan)))) == plan
    assert [event.part for event in spelled_out(plan)] == [0, 1, 2, 0, 1, 2]
    assert compose([OnPart(Gaussian(1.0), 0, 2), OnPart(Gaussian(1.0), 1, 2)]) == epoch(
        Gaussian(1.0), 2
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: OnPart(Gaussian(1.0), 2, 2),
        lambda: OnPart(Gaussian(1.0), -1, 2),
        lambda: OnPart(Gaussian(1.0), 0, 0),
        lambda: OnPart(Gaussian(1.0), 0, 1 << 40),
        lambda: OnPart(PoissonSampled(0.1, Gaussian(1.0)), 0, 2),
        lambda: OnPart(VisiblySampled(0.1, Gaussian(1.0)), 0, 2),
        lambda: OnPart(OnPart(Gaussian(1.0), 0, 2), 0, 2),
        lambda: OnPart(Composed((Gaussian(1.0), Exponential(1.0))), 0, 2),
        lambda: OnPart(NonPrivate(), 0, 2),
        lambda: OnPart(1.0, 0, 2),
        lambda: PoissonSampled(0.1, OnPart(Gaussian(1.0), 0, 2)),
    ],
)
def test_what_is_no_part_is_refused(make) -> None:
    with pytest.raises(InputError):
        make()


def test_a_statement_of_parts_verifies_and_says_so_in_words() -> None:
    plan = [Repeated(epoch(Gaussian(12.0), 40), 10)]
    whole = PrivacyStatement.of(PROMISE, plan, plan=plan)
    assert whole.check() == []
    assert whole.epsilon == accounting.epsilon(Repeated(Gaussian(12.0), 10), 1e-5)
    again = PrivacyStatement.from_json(whole.to_json())
    assert again == whole
    assert again.check() == []
    words = whole.summary()
    assert "one of 40 fixed parts of the rows  400" in words  # a row of the table of releases
    assert "every release read all rows" not in words
    assert len(words) < 6000
    broken_off = PrivacyStatement.of(PROMISE, list(spelled_out(plan[0]))[:57], plan=plan)
    assert broken_off.check() == []
    assert broken_off.epsilon == whole.epsilon
    assert "one of 40 fixed parts of the rows  57" in broken_off.summary()
    with pytest.raises(StatementError):
        PrivacyStatement.from_json(whole.to_json().replace('"part": 3,', '"part": 4,', 1))


def test_a_statement_under_add_remove_cannot_hold_parts() -> None:
    with pytest.raises(InputError, match="OnPart"):
        PrivacyStatement.of(
            Promise(2.0, 1e-5), [OnPart(Gaussian(9.0), 0, 2)], plan=[OnPart(Gaussian(9.0), 0, 2)]
        )


def test_a_free_part_is_free() -> None:
    assert price(OnPart(NoOp(), 0, 3)) == 0
    assert math.isinf(accounting.epsilon([OnPart(Gaussian(1.0), 0, 3)], 0.0, "replace-one"))
