"""Runs: what is reserved, answered, charged; repeated requests; who may ask; where the records
lie."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors import SCHEMA, Place, place_in

from fairveil.core.cost import price
from fairveil.core.events import Event, Gaussian, Repeated, compose, to_json_dict
from fairveil.core.promise import Promise
from fairveil.curator import CellCounts, Measurement, NumberMoments, RowCount, Rows, describe
from fairveil.data import Encoding
from fairveil.errors import (
    BudgetError,
    FairveilError,
    InputError,
    LedgerError,
    Overspent,
    PrivacyError,
)
from fairveil.facts import Cells
from fairveil.serving.door.acts import ACTS
from fairveil.serving.door.data_sets import View
from fairveil.serving.door.door import Door
from fairveil.serving.door.refusals import Refusal
from fairveil.serving.door.tokens import Scope, Token
from fairveil.serving.wire.catalogue import measurement_described
from fairveil.serving.wire.messages import MESSAGE, Message, Packing, packed, unpacked
from fairveil.statement.document import PrivacyStatement

CELLS = Cells((("f", "m"),), names=("sex",))
PROMISE = Promise(1.0, 1e-6)
PLAN = Repeated(Gaussian(20.0), 4)


class Analyst:
    """Asks a door without HTTP."""

    def __init__(self, door: Door, scope: Scope | None = None, role: str = "analyst") -> None:
        self.door = door
        self.token: Token = door.tokens.of(door.tokens.issue("somebody", role, scope=scope))

    def open(
        self, plan: Event = PLAN, promise: Promise = PROMISE, key: str = "open-key", **more: Any
    ) -> str:
        content = {
            "dataset": "applicants",
            "promise": promise.to_dict(),
            "plan": to_json_dict(plan),
            "view": {"sensitive": None, "sensitive_as_feature": False, "steps": None},
            "sources": 1,
            "seeds": None,
            "public_rows": None,
            "stated_clips": None,
            "purpose": "a test",
            **more,
        }
        return unpacked(self.door.runs.open(self.token, key, packed(content))).content["run"].text()

    def act(
        self,
        run: str,
        act: str,
        content: dict[str, Any],
        key: str = "",
        packing: Packing | None = None,
    ) -> Message:
        body = (packing or Packing()).packed(content)
        return unpacked(
            self.door.runs.act(self.token, run, act, key or f"key-{time.monotonic_ns()}", body)
        )

    def ask(self, run: str, *asks: Measurement, key: str = "") -> list[Any]:
        packing = Packing()
        told = [
            measurement_described(ask, packing)
            for ask in asks or (Measurement(CellCounts(CELLS), 20.0),)
        ]
        content = {"asks": told, "batch": {"kind": "full"}, "purpose": "counts"}
        message = self.act(run, "ask", content, key, packing)
        return [message.array(one) for one in message.content["answers"].list()]

    def statement(self, run: str, **more: Any) -> PrivacyStatement:
        content = {
            "not_covered": [],
            "tuning": None,
            "earlier_releases": None,
            "groups": [],
            **more,
        }
        found = self.act(run, "statement", content).content["statement"].mapping()
        return PrivacyStatement.from_json(json.dumps(found))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(tmp_path_factory.mktemp("holder"), epsilon=50.0, seeded=False)


@pytest.fixture
def door(place: Place) -> Iterator[Door]:
    found = place.door()
    yield found
    found.close()


def spent(place: Place) -> float:
    return place.ledger().balance().spent_share


def test_a_run_reserves_its_whole_plan_first_and_spends_what_it_asked(
    place: Place, door: Door
) -> None:
    one, before = Analyst(door), spent(place)
    run = one.open()
    reserved = spent(place) - before
    one.ask(run)
    assert spent(place) - before == pytest.approx(reserved)
    one.act(run, "close", {})
    assert spent(place) - before == pytest.approx(reserved / 4, rel=0.02)
    with pytest.raises(Refusal, match="ended"):
        one.ask(run)


def test_a_run_that_asked_nothing_spends_nothing(place: Place, door: Door) -> None:
    one, before = Analyst(door), spent(place)
    one.act(one.open(), "close", {})
    assert spent(place) == pytest.approx(before)


def test_a_repeated_request_has_the_same_answer_and_costs_once(place: Place, door: Door) -> None:
    one = Analyst(door)
    run = one.open()
    first, second = one.ask(run, key="same-key"), one.ask(run, key="same-key")
    assert first[0].tobytes() == second[0].tobytes()
    assert len(door.records.entries(run)) == 1
    other = one.ask(run, key="other-key")
    assert other[0].tobytes() != first[0].tobytes()
    with pytest.raises(Refusal, match="another request"):
        one.ask(run, Measurement(RowCount(), 20.0), key="same-key")
    assert one.open() == run
    with pytest.raises(Refusal, match="another request"):
        one.open(Repeated(Gaussian(30.0), 2))
    one.act(run, "close", {})
    assert one.ask(run, key="same-key")[0].tobytes() == first[0].tobytes()


def test_what_the_plan_has_no_room_for_is_refused(door: Door) -> None:
    one = Analyst(door)
    run = one.open()
    with pytest.raises(PrivacyError):
        one.ask(run, Measurement(CellCounts(CELLS), 5.0))
    with pytest.raises(PrivacyError):
        one.ask(run, Measurement(CellCounts(CELLS), 0.0))
    for _ in range(4):
        one.ask(run)
    with pytest.raises(PrivacyError, match="the plan is done"):
        one.ask(run)
    assert len(door.records.entries(run)) == 4
    one.act(run, "finish", {})


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"promise": Promise(float("inf"), 0.0)}, LedgerError),
        ({"promise": Promise(1.0, 1e-6, "records", "replace-one")}, LedgerError),
        ({"promise": Promise(1.0, 1e-6, "sensitive_features")}, LedgerError),
        ({"plan": Repeated(Gaussian(0.5), 4)}, BudgetError),
        ({"promise": Promise(400.0, 1e-6), "plan": Repeated(Gaussian(0.3), 20)}, Overspent),
        ({"dataset": "others"}, Refusal),
        ({"seeds": ["00" * 32]}, Refusal),
        ({"sources": 10_000}, InputError),
        ({"view": {"sensitive": ["a"], "sensitive_as_feature": False, "steps": None}}, InputError),
        ({"view": {"sensitive": None, "sensitive_as_feature": False, "steps": "{}"}}, InputError),
        ({"purpose": "x" * 1000}, InputError),
        ({"purpose": "a\nb"}, InputError),
        ({"plan": compose(Gaussian(20.0 + i / 100) for i in range(5000))}, InputError),
    ],
)
def test_a_run_that_may_not_be_is_refused_and_reserves_nothing(
    how: Any, error: Any, place: Place, door: Door
) -> None:
    before = place.ledger().balance().to_dict()["entries"]
    with pytest.raises(error):
        Analyst(door).open(**how)
    assert place.ledger().balance().to_dict()["entries"] == before
    assert not door.records.runs(("opening", "open")) or all(
        run.key != "open-key-bad" for run in door.records.runs(("open",))
    )


def test_another_run_and_no_run_look_alike(door: Door) -> None:
    one, two = Analyst(door), Analyst(door)
    run = one.open()
    bodies = set()
    for name in (run, "0" * 32, "../door", "' OR 1=1 --"):
        with pytest.raises(Refusal) as refused:
            two.ask(name)
        bodies.add((refused.value.status, refused.value.body))
    assert len(bodies) == 1
    with pytest.raises(Refusal) as unknown:
        Analyst(door, Scope(datasets=("others",))).open()
    assert (unknown.value.status, unknown.value.body) in bodies
    one.act(run, "close", {})


def test_the_clock_ends_a_run_that_nobody_asks(place: Place, door: Door) -> None:
    one, before = Analyst(door), spent(place)
    run = one.open()
    one.ask(run)
    assert door.runs.sweep(time.time() + 60.0 * 29) == 0
    assert door.runs.sweep(time.time() + 60.0 * 31) >= 1
    record = door.records.run(run)
    assert record is not None
    assert (record.state, record.how) == ("ended", "ended by the clock")
    assert 0 < spent(place) - before < 0.01
    with pytest.raises(Refusal, match="ended"):
        one.ask(run)


def test_a_run_is_taken_up_again_by_the_next_server(place: Place) -> None:
    """The server stops in the middle: the analyst continues with the next one, and the statement is
    of the whole run."""
    first = place.door()
    one = Analyst(first)
    before = spent(place)
    run = one.open(
        compose([compose([Gaussian(20.0), Gaussian(20.0)]), Repeated(Gaussian(20.0), 3)])
    )
    moments = Measurement(NumberMoments(clip=2.0), 20.0)
    told = one.ask(run, Measurement(RowCount(), 20.0), moments, key="first-key")
    one.act(
        run,
        "rescale",
        {"scale": {"array": 0}, "shift": {"array": 1}},
        packing=_arrays([2.0, 3.0], [0.5, 0.0]),
    )
    first.close()
    second = place.door()
    two = Analyst(second)
    two.token = one.token
    assert (
        two.ask(run, Measurement(RowCount(), 20.0), moments, key="first-key")[0].tobytes()
        == told[0].tobytes()
    )
    assert second.runs._run(run, two.token, "ask").curator.scalings[0][0].tolist() == [2.0, 3.0]
    for _ in range(3):
        two.ask(run)
    two.act(run, "finish", {})
    statement = two.statement(run)
    assert statement.noise == "secure"
    assert [bound.question for bound in statement.bounds] == [
        "row count",
        "number moments",
        "cell counts",
    ]
    assert sum(release.times for release in statement.releases) == 5
    assert not [finding for finding in statement.check() if finding.grave]
    assert spent(place) - before == pytest.approx(5 / 5 * (spent(place) - before))
    assert place.ledger().check([statement.ledger]) == []  # type: ignore[list-item]
    second.close()


def _arrays(*arrays: list[float]) -> Packing:
    packing = Packing()
    for array in arrays:
        packing.put(np.array(array))
    return packing


@pytest.mark.parametrize(("rows", "told"), [(1500, "1500"), (7, "said by the analyst: 7")])
def test_a_number_of_rows_is_signed_as_a_fact_where_the_schema_has_it(
    rows: int, told: str, door: Door
) -> None:
    one = Analyst(door)
    run = one.open(Gaussian(20.0), public_rows=rows)
    one.ask(run)
    one.act(run, "finish", {})
    facts = {fact.name: fact.value for fact in one.statement(run).facts}
    assert facts["number of rows"] == told


def test_words_of_the_analyst_are_marked(door: Door) -> None:
    one = Analyst(door)
    run = one.open(Gaussian(20.0))
    one.ask(run)
    one.act(run, "finish", {})
    statement = one.statement(
        run, not_covered=["the ministry approves of this model"], tuning="none was done"
    )
    assert "said by the analyst: the ministry approves of this model" in statement.not_covered
    assert statement.tuning == "said by the analyst: none was done"
    for bad in ("x" * 2000, "two\nlines", ""):
        with pytest.raises(InputError):
            one.statement(run, not_covered=[bad])


def test_a_scope_is_kept(door: Door) -> None:
    counting = Analyst(door, Scope(methods=("counts",)))
    run = counting.open()
    counting.ask(run)
    with pytest.raises(Refusal, match="scope"):
        counting.ask(run, Measurement(NumberMoments(clip=2.0), 20.0))
    counting.act(run, "close", {})
    with pytest.raises(Refusal, match="protects"):
        Analyst(door, Scope(protects=("sensitive_features",))).open()
    with pytest.raises(Refusal):
        Analyst(door, role="auditor").open()


TOWNS = Cells((("x", "y", "z"),), names=("town",))
BY_TOWN = [10.0, 100.0, 1000.0]


def _by_town(view: Any, place: Path, plan: Event | None) -> tuple[Door, Analyst, str]:
    door = place_in(place, seeded=False).door()
    one = Analyst(door)
    layout = door.datasets["applicants"].layout_of(View.of(MESSAGE.node(json.dumps(view))))
    asked = Measurement(CellCounts(TOWNS), BY_TOWN)
    run = one.open(plan or describe([asked], layout, PROMISE), view=view)
    one.ask(run, asked)
    one.act(run, "finish", {})
    return door, one, run


def test_groups_of_a_statement_are_named_by_the_schema_and_priced_by_the_plan(
    tmp_path: Path,
) -> None:
    """What an analyst says of them is refused, or marked."""
    view = {"sensitive": ["town"], "sensitive_as_feature": False, "steps": None}
    door, one, run = _by_town(view, tmp_path / "planned", None)
    told = one.statement(run, groups=[{"column": 0, "limits": [None] * 3}])
    assert [group.name for group in told.groups] == ["x", "y", "z"]
    assert all(group.fixed and group.limit is None for group in told.groups)
    found = [group.epsilon for group in told.groups]
    assert found == sorted(found, reverse=True)
    assert found[0] > 2 * found[1]
    assert not told.not_covered
    limited = one.statement(run, groups=[{"column": 0, "limits": [0.01, None, None]}])
    assert [group.limit for group in limited.groups] == [None] * 3
    assert limited.not_covered == ("said by the analyst: x was to have at most epsilon 0.01",)
    for forged in (
        {"column": 1, "limits": [None] * 3},
        {"column": 0, "limits": [None] * 2},
        {"names": ["z", "y", "x"], "column": 0, "fixed": True, "limits": [None] * 3},
    ):
        with pytest.raises(InputError):
            one.statement(run, groups=[forged])
    door.close()


def test_shares_that_no_plan_fixed_are_the_analysts_word(tmp_path: Path) -> None:
    view = {"sensitive": ["town"], "sensitive_as_feature": False, "steps": None}
    door, one, run = _by_town(view, tmp_path, Gaussian(10.0))
    told = one.statement(run, groups=[{"column": 0, "limits": [None] * 3}])
    assert not any(group.fixed for group in told.groups)
    assert told.not_covered == (
        "said by the analyst: shares were made once, before any answer by these groups: x, y, z",
    )
    door.close()


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-4])
def test_epsilon_a_day_is_what_plans_cost_at_the_ledgers_delta(
    delta: float, place: Place, door: Door
) -> None:
    """The epsilon and the delta that a promise names are the analyst's to choose."""
    cost = price(PLAN, 1e-4, "add-remove").epsilon
    promise = Promise(price(PLAN, delta, "add-remove").epsilon * 1.001, delta)
    daily = Analyst(door, Scope(epsilon_a_day=2.5 * cost))
    for number in range(2):
        daily.act(daily.open(promise=promise, key=f"run-{number}-key"), "close", {})
    with pytest.raises(Refusal, match="epsilon a day"):
        daily.open(promise=promise, key="run-2-key")


@pytest.mark.parametrize("delta", [1.1e-4, 0.5, 0.999])
def test_a_delta_above_the_ledgers_is_refused(delta: float, place: Place, door: Door) -> None:
    """With a large delta a small epsilon says nothing: 7.34 was spent under a limit of 0.1."""
    before = spent(place)
    for scope in (None, Scope(epsilon_a_day=0.1)):
        with pytest.raises(LedgerError, match="delta"):
            Analyst(door, scope).open(Gaussian(0.7), Promise(0.1, delta))
    assert spent(place) == before


def test_every_act_asks_for_its_method_before_it_is_done(tmp_path: Path) -> None:
    """A token for counts gets counts alone, also where the holder serves the features."""
    place = place_in(tmp_path, protects="sensitive_features")
    door = place.door()
    arrays = _arrays([1.0, 1.0], [0.0, 0.0])
    codes = {"model": None, "edges": None, "cells": None, "table": None}
    count, sums = ({"kind": kind, "copies": None} for kind in ("row count", "number moments"))
    told = {"multiplier": 2000.0, "noise": "gaussian", "column": 0}
    asked = {"batch": {"kind": "full"}, "purpose": ""}
    said = {"not_covered": [], "tuning": None, "earlier_releases": None, "groups": []}
    choice = {"questions": [count], "epsilon": 1e-9, "cell_weights": None, "costs": None}
    walk: list[tuple[str, bool, Any]] = [
        ("ask", True, {"asks": [{"question": count, **told}], **asked}),
        (
            "ask",
            False,
            {"asks": [{"question": count, **told}, {"question": sums, **told}], **asked},
        ),
        ("choose", False, {**choice, "purpose": ""}),
        ("attach", True, {**codes, "count": 2, "title": "", "handle": "codes"}),
        ("rescale", False, {"scale": {"array": 0}, "shift": {"array": 1}}),
        ("table", False, {"most": 10_000}),
        ("finish", True, {}),
        ("statement", True, said),
    ]
    assert {act for act, _, _ in walk} == set(ACTS)
    promise = Promise(1.0, 1e-6, protects="sensitive_features")
    for scope in (Scope(methods=("counts",)), Scope(methods=("models",)), None):
        one = Analyst(door, scope)
        run = one.open(Gaussian(2000.0), promise)
        forbidden = []
        for act, _, content in walk:
            try:
                one.act(run, act, content, packing=arrays)
            except Refusal as refused:
                if refused.status == 403:
                    forbidden.append((act, content))
            except FairveilError:  # not in this run's plan
                pass
        narrow = scope is not None and scope.methods == ("counts",)
        assert forbidden == (
            [(act, told) for act, free, told in walk if not free] if narrow else []
        )
        one.act(run, "close", {})
    door.close()


def test_the_length_of_a_reply_is_public(place: Place, door: Door) -> None:
    """Two runs of secure noise: every reply is as long as its counterpart."""
    lengths = []
    for number in range(2):
        one = Analyst(door)
        run = one.open(key=f"open-{number}-key")
        packing = Packing()
        content = {
            "asks": [measurement_described(Measurement(CellCounts(CELLS), 20.0), packing)],
            "batch": {"kind": "full"},
            "purpose": "",
        }
        lengths.append(
            len(door.runs.act(one.token, run, "ask", "ask-key-1", packing.packed(content)))
        )
        one.act(run, "close", {})
    assert lengths[0] == lengths[1]


def test_the_number_of_rows_is_not_told_where_it_is_private(
    place: Place, door: Door, tmp_path: Path
) -> None:
    assert door.datasets["applicants"].facts()["exact_rows"] is None
    public = place_in(tmp_path / "public", epsilon=5.0, neighbours="replace-one")
    other = public.door()
    assert other.datasets["applicants"].facts()["exact_rows"] == 1500
    other.close()


def test_the_door_describes_rows_as_their_encoding_does(door: Door) -> None:
    assert door.datasets["applicants"].layout_of(View(None, False)) == Encoding(SCHEMA).layout


def test_a_failed_answer_ends_the_run_and_is_charged_whole(
    place: Place, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, before = Analyst(door), spent(place)
    run = one.open()
    reserved = spent(place) - before
    monkeypatch.setattr(Rows, "blocks", _broken)
    with pytest.raises(MemoryError):
        one.ask(run)
    monkeypatch.undo()
    record = door.records.run(run)
    assert record is not None
    assert record.how == "an answer failed inside, charged whole"
    assert spent(place) - before == pytest.approx(reserved)
    with pytest.raises(Refusal):
        one.ask(run)


def _broken(*_: Any) -> None:
    raise MemoryError


def test_a_ledger_that_is_away_at_the_end_is_told_later(
    place: Place, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, before = Analyst(door), spent(place)
    run = one.open()
    one.ask(run)
    monkeypatch.setattr("fairveil.serving.door.runs.settle", _away)
    one.act(run, "close", {})
    record = door.records.run(run)
    assert record is not None
    assert record.state == "settling"
    whole = spent(place) - before
    monkeypatch.undo()
    door.runs.sweep()
    assert spent(place) - before < 0.5 * whole
    assert [record.state for record in door.records.runs() if record.id == run] == ["ended"]


def _away(*_: Any, **__: Any) -> None:
    raise FairveilError("away")
