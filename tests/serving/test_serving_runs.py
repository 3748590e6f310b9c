"""Runs over HTTP: what is reserved, answered, charged; repeated requests; who may ask what."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors import (
    CELLS,
    NO_WORDS,
    WHOLE,
    Analyst,
    Place,
    Refused,
    faults,
    place_in,
    released,
    served,
)

from fairveil.core.events import Gaussian, Repeated, compose
from fairveil.core.promise import Promise
from fairveil.curator import (
    CellCounts,
    GradientSum,
    Linear,
    Measurement,
    NumberMoments,
    RowCount,
    Rows,
)
from fairveil.errors import InputError
from fairveil.serving.refusals import SAYINGS
from fairveil.serving.runs import Server
from fairveil.serving.wire import packed, written

Up = tuple[Server, str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(tmp_path_factory.mktemp("holder"), epsilon=50.0, seeded=False)


@pytest.fixture(scope="module")
def up(place: Place) -> Iterator[Up]:
    with served(place) as found:
        yield found


@pytest.fixture
def one(up: Up) -> Analyst:
    return Analyst(*up)


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ({"promise": Promise(1.0, 1e-6, "sensitive_features")}, 409),
        ({"promise": Promise(400.0, 1e-6), "plan": Repeated(Gaussian(0.3), 20)}, 402),
        ({"promise": Promise(50.0, 1.1e-4), "plan": Gaussian(0.7)}, 409),
        ({"dataset": "others"}, 404),
        ({"sources": 10_000}, 422),
        ({"view": {**WHOLE, "sensitive": ["sex"]}}, 422),
        ({"view": {**WHOLE, "target_as_number": True}}, 422),
        ({"seeds": ["00" * 32]}, 403),
        ({"plan": Repeated(Gaussian(20.0), 4), "promise": Promise(float("inf"), 1e-6)}, 409),
        ({"view": {**WHOLE, "steps": "{}"}}, 422),
        ({"view": {**WHOLE, "rows": [1, 2]}}, 422),
        ({"purpose": "x" * 1000}, 422),
        ({"purpose": "a\nb"}, 422),
    ],
)
def test_a_run_that_may_not_be_reserves_nothing(how: Any, status: int, one: Analyst) -> None:
    ledger = one.server.datasets["applicants"].ledger
    before = len(list(ledger.history()))
    with pytest.raises(Refused) as refused:
        one.open(**how)
    assert refused.value.status == status
    assert refused.value.word in SAYINGS
    assert len(list(ledger.history())) == before
    assert not [run for run in one.server.records.runs() if run.token == one.id]


def test_another_run_and_no_run_look_alike(one: Analyst, up: Up) -> None:
    two, run, bodies = Analyst(*up), one.open(), set()
    for name in (run, "0" * 32, "..%2Fdoor", "%27%20OR%201=1"):
        with pytest.raises(Refused) as refused:
            two.ask(name)
        bodies.add((refused.value.status, refused.value.raw))
    with pytest.raises(Refused) as unknown:
        Analyst(*up, datasets=("others",)).open()
    assert bodies == {(unknown.value.status, unknown.value.raw)}
    one.act(run, "close", {})


def test_the_clock_ends_a_run_that_nobody_asks(one: Analyst) -> None:
    before, run, server = one.spent(), one.open(), one.server
    one.ask(run)
    server.sweep(time.time() + 60.0 * 29)
    assert one.ask(run)
    server.sweep(time.time() + 60.0 * 31)
    record = one.server.records.run(run)
    assert record is not None
    assert (record.state, record.how) == ("ended", "ended by the clock")
    assert 0 < one.spent() - before < 0.01
    with pytest.raises(Refused, match="ended"):
        one.ask(run)


def test_a_run_is_taken_up_again_by_the_next_server(tmp_path: Path) -> None:
    """The analyst asks all of it again and continues; the statement is of the whole run."""
    place, moments = place_in(tmp_path), Measurement(NumberMoments(clip=2.0), 20.0)
    both = (Measurement(RowCount(), 20.0), moments)
    plan = compose([compose([Gaussian(20.0)] * 2), Repeated(Gaussian(20.0), 3)])
    codes: dict[str, Any] = {"model": None, "edges": None, "cells": None, "table": None}
    codes = {**codes, "count": 2, "title": "", "handle": "codes"}
    with served(place) as up:
        one = Analyst(*up)
        run = one.open(plan)
        first = one.ask(run, *both)
        one.act(run, "rescale", {"scale": np.array([2.0, 3.0]), "shift": np.array([0.5, 0.0])})
        one.act(run, "attach", codes)
        told = one.ask(run)
        assert one.ask(run, number=4)[0].tobytes() == told[0].tobytes()
        with pytest.raises(Refused, match="another request"):
            one.ask(run, *both, number=4)
        with pytest.raises(Refused, match="later ones followed"):
            one.ask(run, *both, number=1)
        with pytest.raises(Refused, match="not in memory"):
            one.ask(run, number=6)
    with served(place) as up:
        one.url, one.server = up[1], up[0]
        with pytest.raises(Refused, match="not in memory") as refused:
            one.ask(run)
        assert refused.value.word == "resume"
        one.resume(run)
        assert one.ask(run, number=4)[0].tobytes() == told[0].tobytes()
        assert one.act(run, "attach", codes)["handle"].whole() == 1  # the first is there
        for _ in range(2):
            one.ask(run)
        one.act(run, "finish", {})
        statement = one.statement(run, not_covered=["a word"])
        assert statement.not_covered == ("said by the analyst: a word",)
        bounds = [bound.question for bound in statement.bounds]
        assert bounds == ["row count", "number moments", "cell counts"]
        assert sum(release.times for release in statement.releases) == 5
        assert not [finding for finding in statement.check() if finding.grave]
        assert place.ledger().check([statement.ledger]) == []  # type: ignore[list-item]
    with served(place) as up:  # a finished one is stated by the next server, too
        one.url, one.server = up[1], up[0]
        one.resume(run)
        assert one.statement(run).epsilon == statement.epsilon
        other = one.open()
        one.ask(other)
    assert len(first) == 2
    with served(place) as up:  # another question than before ends the run
        one.url, one.server = up[1], up[0]
        one.done[other][1] = ("ask", packed({**rows(), "asks": [written(moments)]}))
        with pytest.raises(Refused, match="another question"):
            one.resume(other)
        one.act(other, "close", {})
        assert len(released(up[0].records, other)) == 1
    assert faults(place) == []


def test_the_length_of_a_reply_is_public(one: Analyst) -> None:
    lengths = set()
    asks = [written(Measurement(CellCounts(CELLS), 20.0))]
    content = {"asks": asks, "batch": {"kind": "full"}, "purpose": ""}
    for _ in range(2):
        run = one.open()
        lengths.add(len(one.sent("POST", "runs", run, "ask", body=packed(content), key="00000001")))
        one.act(run, "close", {})
    assert len(lengths) == 1


def test_a_failed_answer_ends_the_run_and_is_charged_whole(
    one: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, run = one.spent(), one.open()
    reserved = one.spent() - before

    def broken(*_: Any) -> None:
        raise InputError("row 17: female")

    monkeypatch.setattr(Rows, "blocks", broken)
    with pytest.raises(Refused, match="Something failed inside") as refused:
        one.ask(run)
    monkeypatch.undo()
    assert (refused.value.status, b"female" in refused.value.raw) == (500, False)
    record = one.server.records.run(run)
    assert record is not None
    assert record.how == "an answer failed inside, charged whole"
    assert one.spent() - before == pytest.approx(reserved)
    with pytest.raises(Refused, match="ended"):
        one.ask(run)


# -- requests of a hostile analyst -----------------------------------------------------------------

FULL = {"kind": "full"}


def rows(multiplier: float = 20.0, noise: str = "gaussian", **more: Any) -> dict[str, Any]:
    """An ask about the number of rows."""
    ask = {"question": {"kind": "row count", "copies": None}, "multiplier": multiplier}
    return {"asks": [{**ask, "noise": noise}], "batch": FULL, "purpose": "", **more}


def model(described: Any, count: int = 2) -> dict[str, Any]:
    """A model to be attached."""
    none = {"edges": None, "cells": None, "table": None}
    return {"model": described, **none, "count": count, "title": "", "handle": "codes"}


ODD = np.array([np.nan, np.inf])
HOSTILE: list[tuple[str, Any]] = [
    ("ask", {"asks": [], "batch": FULL, "purpose": ""}),
    ("ask", {"asks": [{}] * 1000, "batch": FULL, "purpose": ""}),
    ("ask", {"asks": "all", "batch": FULL, "purpose": ""}),
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
    ("attach", model({"files": "{}", "arrays": ODD})),
    ("attach", model({"files": "import os", "arrays": np.zeros(8, np.uint8)})),
    ("rescale", {"scale": ODD, "shift": ODD}),
    ("rescale", {"scale": {"array": 9}, "shift": ODD}),
    ("table", {"most": 100}),
    ("finish", {}),
    ("statement", {**NO_WORDS, "not_covered": ["a\nb"]}),
    ("statement", {**NO_WORDS, "not_covered": [" "]}),
    ("nothing", {}),
]


def test_a_hostile_request_is_refused_and_the_run_goes_on(one: Analyst) -> None:
    run = one.open()
    for act, content in HOSTILE:
        with pytest.raises(Refused) as refused:
            one.act(run, act, content)
        assert 400 <= refused.value.status < 500, (act, content)
        assert refused.value.word in SAYINGS
        assert "Traceback" not in str(refused.value)
    told = written(Measurement(GradientSum(Linear(np.zeros(6)), 1.0), 20.0))
    told["question"]["model"]["weights"] = np.full(6, np.nan)
    with pytest.raises(Refused):
        one.act(run, "ask", {"asks": [told], "batch": FULL, "purpose": ""})
    for columns, names in (
        ([["m", "f"]], ["sex"]),
        ([["f"]], ["sex"]),
        ([["f", "m"]], ["town"]),
        ([["x" * 10_000] * 2], ["sex"]),
    ):
        told = written(Measurement(CellCounts(CELLS), 20.0))
        told["question"]["cells"] = {"columns": columns, "mode": "product", "names": names}
        with pytest.raises(Refused):
            one.act(run, "ask", {"asks": [told], "batch": FULL, "purpose": ""})
    assert released(one.server.records, run) == []
    assert one.ask(run)[0].shape == (2,)
    huge = Measurement(GradientSum(Linear(np.full(6, 1e308)), 1.0), 20.0)
    assert np.isfinite(one.ask(run, huge)[0]).all()
    one.act(run, "close", {})


def test_changed_bytes_of_good_requests_are_refused_or_answered(one: Analyst) -> None:
    """No error but a word of the list, and no release that no reply told."""
    rng = np.random.default_rng(0)
    run = one.open(Repeated(Gaussian(20.0), 400), Promise(8.0, 1e-6))
    asks = [written(Measurement(CellCounts(CELLS, by_label=True), 20.0))]
    good = packed({"asks": asks, "batch": FULL, "purpose": ""})
    opening = packed(one.content())
    words = [b"null", b"1e999", b"-1", b'"x"', b"[]", b"{}", b"true", b"9" * 20, b'"\\ud800"']
    answered, statuses = 0, set[int]()
    for number in range(300):
        raw = bytearray(good if number % 3 else opening)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(raw)))
            if rng.random() < 0.5:
                raw[at] = int(rng.integers(256))
            else:
                raw[at : at + int(rng.integers(6))] = words[rng.integers(len(words))]
        if rng.random() < 0.5 and len(raw) > 8:  # so that more is read than the length
            raw[4:8] = (len(raw) - 8).to_bytes(4, "little")
        try:
            path = ("runs", run, "ask") if number % 3 else ("runs",)
            key = f"{answered + 1:08d}" if number % 3 else ""
            one.sent("POST", *path, body=bytes(raw), key=key)
            answered += bool(number % 3)
        except Refused as refused:
            statuses.add(refused.status)
    assert len(released(one.server.records, run)) == answered
    assert statuses <= {402, 404, 409, 422, 429}
    for record in one.server.records.runs("open"):
        if record.token == one.id:
            one.act(record.id, "close", {})


def test_tokens_that_are_none_are_refused(up: Up) -> None:
    for name, role in (("", "analyst"), ("a\nb", "analyst"), ("x", "king")):
        with pytest.raises(InputError):
            up[0].records.issue(name, role)
