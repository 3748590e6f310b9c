"""Serves a place on a port, and is killed at a chosen point:
`python crashing_door.py holder.toml PORT [POINT NUMBER WHEN]`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairveil.ledger import Ledger, Spend
from fairveil.serving.app import running
from fairveil.serving.client import Connection
from fairveil.serving.holder import Holder
from fairveil.serving.records import Records
from fairveil.serving.runs import Runs, Server

POINTS: dict[str, tuple[type, str]] = {
    "begin": (Records, "begin"),
    "reserve": (Ledger, "reserve"),
    "note": (Records, "note"),
    "put": (Records, "put"),
    "keep": (Records, "keep"),
    "settle": (Spend, "commit"),
    "told": (Runs, "_settle"),
    "sent": (Connection, "_once"),
}
"""Where a door is killed; the last one is an analyst's."""


def kill_at(point: str, number: int, when: str) -> None:
    """The process ends at the `number`-th call, before or after it was done."""
    owner, name = POINTS[point]
    plain, calls = getattr(owner, name), [0]

    def called(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == number and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = plain(*args, **options)
        if calls[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(owner, name, called)


def main(
    config: str, port: str, *point: str, up: Callable[[], object] = lambda: print("up", flush=True)
) -> None:
    if point:
        kill_at(point[0], int(point[1]), point[2])
    server = Server(replace(Holder.load(Path(config)), port=int(port)))
    with running(server):
        up()
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
