"""A hostile analyst: forged, malformed, huge and nested requests. Typed refusals, nothing released,
nothing lost."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from doors import Place, place_in
from test_serving_runs import CELLS, Analyst

from fairveil.core.events import Gaussian, Repeated
from fairveil.core.promise import Promise
from fairveil.curator import CellCounts, GradientSum, Linear, Measurement, ScoreHistogram
from fairveil.errors import FairveilError, Overspent
from fairveil.serving.door.door import Door
from fairveil.serving.door.refusals import INSIDE, Refusal, refusal_of
from fairveil.serving.wire.catalogue import measurement_described
from fairveil.serving.wire.messages import Packing


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(tmp_path_factory.mktemp("holder"), epsilon=50.0, seeded=False)


@pytest.fixture(scope="module")
def door(place: Place) -> Iterator[Door]:
    found = place.door()
    yield found
    found.close()


@pytest.fixture
def one(door: Door) -> Analyst:
    return Analyst(door)


def refused(one: Analyst, run: str, act: str, body: bytes) -> Refusal:
    """The refusal, which is typed and no fault of the door's."""
    with pytest.raises((FairveilError, Refusal)) as found:
        one.door.runs.act(
            one.token, run, act, f"key-{random.random()}"[:20].replace(".", "-"), body
        )
    refusal = refusal_of(found.value)
    assert 400 <= refusal.status < 500, refusal.sentence
    return refusal


WIDTH = 6
FULL = {"kind": "full"}
NO_WORDS: dict[str, Any] = {
    "not_covered": [],
    "tuning": None,
    "earlier_releases": None,
    "groups": [],
}


def rows(multiplier: float = 20.0, noise: str = "gaussian", **more: Any) -> dict[str, Any]:
    """An ask about the number of rows."""
    ask = {
        "question": {"kind": "row count", "copies": None},
        "multiplier": multiplier,
        "noise": noise,
    }
    return {"asks": [ask], "batch": FULL, "purpose": "", **more}


def model(described: Any, count: int = 2) -> dict[str, Any]:
    """A model to be attached."""
    return {
        "model": described,
        "edges": None,
        "cells": None,
        "table": None,
        "count": count,
        "title": "",
        "handle": "codes",
    }


HUGE = [
    Measurement(GradientSum(Linear(np.full(WIDTH, 1e308)), 1.0), 20.0),
    Measurement(
        ScoreHistogram(Linear(np.zeros(WIDTH)), tuple(np.linspace(-1, 1, 1000).tolist()), CELLS),
        20.0,
    ),
]


@pytest.mark.parametrize(
    ("act", "content"),
    [
        ("ask", {"asks": [], "batch": {"kind": "full"}, "purpose": ""}),
        ("ask", {"asks": [{}] * 1000, "batch": {"kind": "full"}, "purpose": ""}),
        ("ask", {"asks": "all", "batch": {"kind": "full"}, "purpose": ""}),
        ("ask", rows(multiplier=0.0)),
        ("ask", rows(multiplier=-3.0)),
        ("ask", rows(multiplier=1e300)),
        ("ask", rows(noise="none")),
        ("ask", rows(batch={"kind": "poisson", "rate": 7.0})),
        ("ask", rows(batch={"kind": "part", "number": 0, "parts": 1500})),
        ("ask", rows(purpose="x\x1b[2J")),
        (
            "choose",
            {"questions": [], "epsilon": 1.0, "cell_weights": None, "costs": None, "purpose": ""},
        ),
        ("attach", model(None, count=1 << 40)),
        ("attach", model({"files": "{}", "arrays": {"array": 0}})),
        ("attach", model({"files": "import os", "arrays": {"array": 1}})),
        ("rescale", {"scale": {"array": 0}, "shift": {"array": 0}}),
        ("rescale", {"scale": {"array": 9}, "shift": {"array": 0}}),
        ("table", {"most": 100}),
        ("finish", {}),
        ("statement", {**NO_WORDS, "not_covered": ["a\nb"]}),
        (
            "statement",
            {
                **NO_WORDS,
                "groups": [{"names": ["x"], "column": 0, "fixed": True, "limits": [None]}],
            },
        ),
        ("statement", {**NO_WORDS, "groups": [{"column": 0, "limits": []}]}),
        ("statement", {**NO_WORDS, "groups": [{"column": 1, "limits": [None, None]}]}),
        ("statement", {**NO_WORDS, "groups": [{"column": 0, "limits": [None] * 3}]}),
        ("statement", {**NO_WORDS, "groups": [{"column": 0, "limits": ["\n", None]}]}),
        ("nothing", {}),
    ],
)
def test_a_hostile_request_is_refused_and_the_run_goes_on(
    act: str, content: Any, one: Analyst
) -> None:
    run = one.open()
    packing = Packing()
    packing.put(np.array([np.nan, np.inf]))
    packing.put(np.zeros(8, np.uint8))
    refusal = refused(one, run, act, packing.packed(content))
    assert "Traceback" not in refusal.sentence
    assert one.door.records.entries(run) == []
    assert one.ask(run)[0].shape == (2,)
    one.act(run, "close", {})


@pytest.mark.parametrize("ask", HUGE, ids=["weights", "edges"])
def test_extreme_but_well_formed_questions_are_answered_in_their_bounds(
    ask: Measurement, one: Analyst
) -> None:
    run = one.open(Repeated(Gaussian(20.0), 1))
    assert np.isfinite(one.ask(run, ask)[0]).all()
    one.act(run, "close", {})


def test_numbers_that_are_none_are_refused(one: Analyst) -> None:
    run = one.open()
    packing = Packing()
    told = measurement_described(
        Measurement(GradientSum(Linear(np.zeros(WIDTH)), 1.0), 20.0), packing
    )
    packing.arrays[0] = np.full(WIDTH, np.nan)
    refused(
        one, run, "ask", packing.packed({"asks": [told], "batch": {"kind": "full"}, "purpose": ""})
    )
    one.act(run, "close", {})


def test_groups_that_are_not_the_rows_own_are_refused(one: Analyst) -> None:
    run = one.open()
    packing = Packing()
    told = measurement_described(Measurement(CellCounts(CELLS), 20.0), packing)
    for columns, names in (
        ([["m", "f"]], ["sex"]),
        ([["f"]], ["sex"]),
        ([["f", "m"]], ["town"]),
        ([["x" * 10_000] * 2], ["sex"]),
    ):
        told["question"]["cells"] = {"columns": columns, "mode": "product", "names": names}
        refused(
            one,
            run,
            "ask",
            packing.packed({"asks": [told], "batch": {"kind": "full"}, "purpose": ""}),
        )
    one.act(run, "close", {})


def test_changed_bytes_of_good_requests_are_typed_refusals_or_answers(one: Analyst) -> None:
    """1,500 mutations of an ask and an open, in one process: no error but the family's, and no
    release that no reply told."""
    run, rng = one.open(Repeated(Gaussian(20.0), 400), Promise(8.0, 1e-6)), random.Random(0)
    packing = Packing()
    content = {
        "asks": [
            measurement_described(Measurement(CellCounts(CELLS, by_label=True), 20.0), packing)
        ],
        "batch": {"kind": "full"},
        "purpose": "",
    }
    good, answered, statuses = packing.packed(content), 0, set[int]()
    words = [
        b"null",
        b"1e999",
        b"-1",
        b'"x"',
        b"[]",
        b"{}",
        b"true",
        b"99999999999999999999",
        b'"\\ud800"',
    ]
    for number in range(1500):
        raw = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(raw))
            if rng.random() < 0.5:
                raw[at] = rng.randrange(256)
            else:
                raw[at : at + rng.randrange(6)] = rng.choice(words)
        if rng.random() < 0.5 and len(raw) > 8:  # so that more is read than the length
            raw[4:8] = (len(raw) - 8).to_bytes(4, "little")
        try:
            one.door.runs.act(one.token, run, "ask", f"fuzzed-{number}", bytes(raw))
            answered += 1
        except (FairveilError, Refusal) as error:
            statuses.add(refusal_of(error).status)
    assert len(one.door.records.entries(run)) == answered
    assert statuses <= {404, 409, 422}
    one.act(run, "close", {})


def test_an_unforeseen_error_is_one_sentence() -> None:
    body = json.loads(refusal_of(ValueError("row 17: female")).body)
    assert body["message"] == INSIDE[2]


def test_a_budget_is_spent_exactly_and_then_refused(place: Place, door: Door) -> None:
    """Many runs in a row take all there is; the first that does not fit reserves nothing."""
    one, opened = Analyst(door), 0
    plan, promise, refusal = Repeated(Gaussian(2.0), 4), Promise(8.0, 1e-6), None
    while refusal is None and opened < 1000:
        try:
            run = one.open(plan, promise, key=f"greedy-{opened}")
        except Overspent as error:
            refusal = refusal_of(error)
            break
        opened += 1
        for _ in range(4):
            one.ask(run, Measurement(CellCounts(CELLS), 2.0))
        one.act(run, "finish", {})
    assert opened > 5
    assert refusal is not None
    assert refusal.figures is not None
    balance = place.ledger().balance()
    assert balance.spent_share <= 1.0
    assert balance.open == 0
