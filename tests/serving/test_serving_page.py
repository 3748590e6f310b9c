"""The holder's page in a real browser: at two widths, under axe-core, by keyboard. Skipped where
there is no Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from doors import Analyst, place_in, served
from test_serving_requests import holder, sent

import fairveil as fv
import ways
from browsing import Audit, Look, needs_axe, needs_browser
from driving import ENTER, TAB, Driver, driving, needs_driver


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What is served: an overview with an open and an ended run."""
    place = place_in(tmp_path_factory.mktemp("holder"), epsilon=10.0)
    with served(place) as up:
        token = up[0].records.issue(WHO)
        data = fv.remote(up[1], "applicants", token=token, key=place.public_key)
        ways.fermi(solver=fv.PrimalDual(rounds=4)).fit(data)
        data.close()
        one = Analyst(*up)
        one.ask(one.open())
        yield {"overview": sent(up, "GET", "/holder", **holder(up))[1].decode()}


WHO = "R. Weber, a university with a long name, department of statistics"
KINDS = ("overview",)


@needs_browser
@pytest.mark.parametrize("width", [400, 1200])
def test_nothing_is_cut_off(pages: dict[str, str], look: Look, width: int) -> None:
    for kind in KINDS:
        seen = look(pages[kind], width)
        assert seen["client"] == width, kind
        assert seen["scroll"] <= width, f"{kind} scrolls sideways"
        assert not [one for one in seen["beyond"] if "hidden" not in one], kind


@needs_axe
@pytest.mark.parametrize(
    ("kind", "width", "dark"),
    [("overview", 400, False), ("overview", 1200, True)],
)
def test_axe_finds_nothing_wrong(
    pages: dict[str, str],
    audit: Audit,
    kind: str,
    width: int,
    dark: bool,
) -> None:
    seen = audit(pages[kind], width, dark=dark)
    assert not seen["wrong"]
    assert seen["rules"] > 10
    assert seen["painted"] == ("rgb(21, 25, 31)" if dark else "rgb(255, 255, 255)")


def test_a_keyboard_reaches_all_that_can_be_done(pages: dict[str, str]) -> None:
    """Links, buttons and what scrolls, in the order of the page; no order of its own, and no
    script."""
    for kind in KINDS:
        page = pages[kind]
        assert "<script" not in page
        assert " on" not in "".join(re.findall(r"<[a-z]+ ([^>]*)>", page)).replace(
            " one", ""
        ).replace("role", "")
        assert set(re.findall(r'tabindex="([^"]*)"', page)) <= {"0"}
        assert page.index('class="skip"') < page.index("<header")
    overview = pages["overview"]
    assert overview.count('role="region"') == overview.count('tabindex="0"') == 2
    buttons = re.findall(r"<button([^>]*)>", overview)
    named = [one for one in buttons if "aria-label" in one]
    assert len(named) == len(set(named)) == 1 + 3  # one open run, three tokens
    assert overview.index("Stop run") < overview.index("R. Weber"), (
        "the button stands where a narrow window shows it"
    )


def test_the_style_is_applied_as_it_is_written(pages: dict[str, str]) -> None:
    """Its quotes are no entities: an escaped style is no style."""
    style: Any = re.search(r"<style>(.*?)</style>", pages["overview"], re.DOTALL)
    assert '"Liberation Sans"' in style[1]
    assert "&#" not in style[1]


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
    with served(place) as (door, url):
        token = door.records.issue(WHO)
        data = fv.remote(url, "applicants", token=token, key=place.public_key)
        ways.fermi(solver=fv.PrimalDual(rounds=3)).fit(data)
        data.close()
        one = Analyst(door, url)
        going = one.open()
        one.ask(going)
        secret = door.records.issue("the holder", "holder")
        with driving(tmp_path, width) as driver:
            driver.open(f"http://me:{secret}@{url.removeprefix('http://')}/holder")
            driver.shows("Analysts and tokens")

            met = until(driver, "Stop run")
            assert met[0]["name"] == "Skip to the content"
            assert [stop["name"] for stop in met[1:4]] == ["Budgets", "Runs", "Tokens"]
            for stop in met:
                assert stop["outline"] >= 3 or stop["href"] == "#main", stop
                assert stop["seen"], stop
            # the links and the button of the head stand in one line
            places = [stop["top"] for stop in met[4:]]
            assert all(after > before - 10 for before, after in pairwise(places)), "it goes up"
            driver.press(ENTER)
            driver.shows("The run was stopped.", "[role=status]")
            assert door.records.run(going).how == "stopped by the holder"  # type: ignore[union-attr]
            assert place.ledger().balance().open == 0
            until(driver, "of R. Weber")
            driver.press(ENTER)
            driver.shows("The token was revoked.", "[role=status]")
            with pytest.raises(fv.errors.DoorError, match="opens nothing"):
                fv.remote(url, "applicants", token=token)
            driver.press(TAB)
            driver.press(ENTER)  # past the head, to the content
            assert driver.asked("return location.hash") == "#main"
