"""Serves a place on a port, and is killed at a chosen point:
`python crashing_door.py holder.toml PORT [POINT NUMBER WHEN]`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairveil.curator import Journal
from fairveil.ledger import Ledger, Spend
from fairveil.serving.app import running
from fairveil.serving.holder import Holder
from fairveil.serving.records import Records
from fairveil.serving.runs import Server

POINTS: dict[str, tuple[type, str]] = {
    "begin": (Records, "begin"),
    "reserve": (Ledger, "reserve"),
    "put": (Records, "put"),
    "journal": (Journal, "__call__"),
    "settle": (Spend, "commit"),
    "told": (Server, "_settle"),
}
"""Where a door is killed."""


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


def main(config: str, port: str, *point: str) -> None:
    if point:
        kill_at(point[0], int(point[1]), point[2])
    server = Server(replace(Holder.load(Path(config)), port=int(port)))
    with running(server):
        print("up", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
