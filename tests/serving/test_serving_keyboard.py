"""The holder's page by keyboard alone, in a real Chromium: what the focus reaches, in which order,
and that one sees it.

Skipped where there is no chromedriver.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from doors import place_in
from test_serving_runs import Analyst

import fairveil as fv
from driving import ENTER, SHIFT, TAB, Driver, driving, needs_driver
from fairveil.serving.door.page import HolderPage
from fairveil.serving.door.request_log import RequestLog
from fairveil.serving.door.running import running
from fairveil.serving.door.service import Service

MOST_STOPS = 60


def until(driver: Driver, name: str) -> list[dict[str, Any]]:
    """Tab until something of this name has the focus: all that had it on the way."""
    met = []
    for _ in range(MOST_STOPS):
        driver.press(TAB)
        met.append(driver.focused())
        if name in met[-1]["name"]:
            return met
    raise AssertionError([one["name"] for one in met])


@needs_driver
@pytest.mark.parametrize("width", [400, 1200])
def test_a_holder_stops_a_run_and_revokes_a_token_by_keyboard_alone(
    width: int, tmp_path: Path
) -> None:
    place = place_in(tmp_path / "holder", epsilon=10.0)
    door = place.door()
    with running(
        door, Service(door, RequestLog(None)), HolderPage(door, secure=False).routes()
    ) as url:
        token = door.tokens.issue(
            "R. Weber, a university with a long name, department of statistics"
        )
        data = fv.remote(url, "applicants", token=token, key=place.public_key)
        fv.FermiClassifier(solver=fv.Descent(rounds=3)).fit(data)
        data.close()
        one = Analyst(door)
        going = one.open()
        one.ask(going)
        secret = door.tokens.issue("the holder", "holder")
        with driving(tmp_path, width) as driver:
            driver.open(f"{url}/holder")
            until(driver, "token")
            driver.press(*secret, ENTER)
            driver.shows("Analysts and tokens")

            met = until(driver, "Stop run")
            assert met[0]["name"] == "Skip to the content"
            assert [stop["name"] for stop in met[1:5]] == ["Budgets", "Runs", "Tokens", "Leave"]
            for stop in met:
                assert stop["outline"] >= 3 or stop["href"] == "#main", stop
                assert stop["seen"], stop
            # the links and the button of the head stand in one line
            places = [stop["top"] for stop in met[5:]]
            assert all(after > before - 10 for before, after in pairwise(places)), (
                "the focus goes up the page"
            )  # by more than a line's part
            driver.press(SHIFT, TAB)
            assert driver.focused()["name"] != met[-1]["name"]
            driver.press(TAB)
            driver.press(ENTER)
            driver.shows("The run was stopped.", "[role=status]")
            assert door.records.run(going).how == "stopped by the holder"  # type: ignore[union-attr]
            assert place.ledger().balance().open == 0

            until(driver, "of R. Weber")
            assert driver.focused()["outline"] >= 3
            driver.press(ENTER)
            driver.shows("The token was revoked.", "[role=status]")
            with pytest.raises(fv.errors.DoorError, match="opens nothing"):
                fv.remote(url, "applicants", token=token)

            driver.press(TAB)
            driver.press(ENTER)  # past the head, to the content
            assert driver.asked("return location.hash") == "#main"
            driver.press(TAB)
            assert driver.focused()["name"] == "Look again"
            until(driver, going[:8])
            driver.press(ENTER)
            driver.shows("Privacy statement")
            until(driver, "Table of releases")
            until(driver, "Leave")
            driver.press(ENTER)
            driver.shows("Token of the holder")
    door.close()
