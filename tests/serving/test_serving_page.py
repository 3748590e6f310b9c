"""The holder's page in a real browser: at two widths, under axe-core, by keyboard. Skipped where
there is no Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from doors import place_in
from test_serving_runs import Analyst
from test_serving_service import entered, sent

import fairveil as fv
from browsing import Audit, Look, needs_axe, needs_browser
from fairveil.serving.door.page import HolderPage
from fairveil.serving.door.request_log import RequestLog
from fairveil.serving.door.running import running
from fairveil.serving.door.service import Service
from fairveil.statement.document import PrivacyStatement


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the door serves: to enter, an overview with an open and an ended run, and each of
    these."""
    place = place_in(tmp_path_factory.mktemp("holder"), epsilon=10.0)
    door = place.door()
    with running(
        door, Service(door, RequestLog(None)), HolderPage(door, secure=False).routes()
    ) as url:
        port = int(url.rpartition(":")[2])
        token = door.tokens.issue(
            "R. Weber, a university with a long name, department of statistics"
        )
        data = fv.remote(url, "applicants", token=token, key=place.public_key)
        fv.FermiClassifier(solver=fv.Descent(rounds=4)).fit(data)
        data.close()
        one = Analyst(door)
        going = one.open()
        one.ask(going)
        ended = next(record.id for record in door.records.runs() if record.id != going)
        cookie, _ = entered(door, port)

        def page(path: str) -> str:
            return sent(port, "GET", path, cookie=cookie)[1].decode()

        yield {
            "enter": sent(port, "GET", "/holder")[1].decode(),
            "overview": page("/holder"),
            "open": page(f"/holder/runs/{going}"),
            "ended": page(f"/holder/runs/{ended}"),
            "statement": page(f"/holder/runs/{ended}/statement"),
        }
    door.close()


KINDS = ("enter", "overview", "open", "ended")


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
    [("overview", 400, False), ("ended", 1200, True), ("enter", 400, True)],
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


def test_a_statement_is_one_view_and_a_file(pages: dict[str, str]) -> None:
    view, statement = pages["ended"], PrivacyStatement.from_json(pages["statement"])
    assert "computed again" in view
    for heading in (
        "Definition and parameters",
        "What is protected",
        "Noise source",
        "Not covered",
        "Signed by",
    ):
        assert f"<dt>{heading}</dt>" in view
    assert str(statement.ledger.spend if statement.ledger else "none") in view
    assert "The analyst asked for no statement yet." in pages["open"]
    assert "Stop this run" in pages["open"]
    assert "Stop this run" not in view
    assert all(f'<th scope="row">{one.name}</th>' in view for one in statement.told_releases)


def test_the_style_is_applied_as_it_is_written(pages: dict[str, str]) -> None:
    """Its quotes are no entities: an escaped style is no style."""
    style: Any = re.search(r"<style>(.*?)</style>", pages["overview"], re.DOTALL)
    assert '"Liberation Sans"' in style[1]
    assert "&#" not in style[1]
