"""Chromium driven by its own keyboard, through chromedriver: for pages that somebody uses, not only
looks at.

The protocol is W3C WebDriver, spoken with the standard library. Keys are pressed as a person
presses them; nothing is clicked, and scripts only ask what is there.
"""

from __future__ import annotations

import base64
import http.client
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chromium import browser

TAB, ENTER, SHIFT = "\ue004", "\ue007", "\ue008"
SECONDS = 120
FOCUSED = """const one = document.activeElement, box = one.getBoundingClientRect(), style = getComputedStyle(one);
const name = one == document.body ? "" : one.getAttribute("aria-label") || one.innerText || one.id;
return {tag: one.tagName, name: name, href: one.getAttribute("href"),
  outline: style.outlineStyle == "none" ? 0 : parseFloat(style.outlineWidth), seen: box.bottom > 0 && box.top < innerHeight &&
  box.right > 0 && box.left < innerWidth && box.width > 0 && box.height > 0, top: box.top + scrollY}"""

needs_driver = pytest.mark.skipif(
    browser() is None or shutil.which("chromedriver") is None,
    reason="no Chromium with its chromedriver on the path",
)


class Driver:
    """One window."""

    def __init__(self, port: int, profile: Path, width: int, height: int) -> None:
        self._port, self._session = port, ""
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-extensions",
        ]
        options += [
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ]
        options += [f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        chrome = {"binary": str(browser()), "args": options}
        self._session = self._sent(
            "POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": chrome}}}
        )["sessionId"]
        # windows have a smallest width
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._cdp("Emulation.setDeviceMetricsOverride", metrics)

    def open(self, url: str) -> None:
        """As by the address bar."""
        self._in("POST", "/url", {"url": url})

    def press(self, *keys: str) -> None:
        """Keys one after another; shift is held over the one behind it."""
        actions: list[dict[str, str]] = []
        held = False
        for key in keys:
            actions.append({"type": "keyDown", "value": key})
            if key == SHIFT:
                held = True
                continue
            actions.append({"type": "keyUp", "value": key})
            if held:
                actions.append({"type": "keyUp", "value": SHIFT})
                held = False
        self._in(
            "POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}
        )

    def asked(self, script: str) -> Any:
        """What a script finds."""
        return self._in("POST", "/execute/sync", {"script": script, "args": []})

    def shows(self, words: str, of: str = "body") -> None:
        """Wait until the page shows these words: one that was asked for by a key comes a moment
        later."""
        until, found = time.monotonic() + SECONDS, ""
        while time.monotonic() < until:
            found = self.asked(
                f"const one = document.querySelector({json.dumps(of)}); return one ? one.innerText "
                f": ''"
            )
            if words in found:
                return
            time.sleep(0.05)
        raise AssertionError(f"{words!r} is not in {found!r}")

    def focused(self) -> dict[str, Any]:
        """What has the focus, and whether one sees that."""
        found: dict[str, Any] = self.asked(FOCUSED)
        return found

    def picture(self) -> bytes:
        """The window, as PNG."""
        return base64.b64decode(self._in("GET", "/screenshot", None))

    def close(self) -> None:
        """The window is gone."""
        self._in("DELETE", "", None)

    def _cdp(self, command: str, values: dict[str, Any]) -> None:
        self._in("POST", "/goog/cdp/execute", {"cmd": command, "params": values})

    def _in(self, method: str, path: str, body: Any) -> Any:
        return self._sent(method, f"/session/{self._session}{path}", body)

    def _sent(self, method: str, path: str, body: Any) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Content-Type": "application/json"},
            )
            found = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        assert not (isinstance(found, dict) and "error" in found), found
        return found


@contextmanager
def driving(folder: Path, width: int, height: int = 900) -> Iterator[Driver]:
    """A window of some width, with a profile of its own."""
    command = [str(shutil.which("chromedriver")), "--port=0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        # also of the head: "Starting ... on port 0"
        line = next(one for one in process.stdout if "on port" in one)
        while "successfully" not in line:
            line = next(process.stdout)
        driver = Driver(
            int(line.rpartition("port ")[2].strip(". \n")),
            folder / f"profile{width}",
            width,
            height,
        )
        try:
            yield driver
        finally:
            driver.close()
    finally:
        process.terminate()
        process.wait(SECONDS)
        if process.stdout is not None:
            process.stdout.close()
