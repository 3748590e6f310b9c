"""A service that is run: by the command until it is stopped, or beside other code in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from ...errors import DoorError
from .door import Door
from .service import Service

STARTING = 30.0


def server_of(door: Door, service: Service, pages: list[Any] | None = None) -> uvicorn.Server:
    """Bounded in connections, and silent but for the door's own log."""
    holder = door.holder
    config = uvicorn.Config(
        service.app(pages),
        host=holder.address,
        port=holder.port,
        http="h11",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=64 << 10,
        limit_concurrency=1000,
        timeout_graceful_shutdown=10,
        ssl_certfile=None if holder.certificate is None else str(holder.certificate),
        ssl_keyfile=None if holder.private_key is None else str(holder.private_key),
        proxy_headers=holder.behind_proxy,
    )
    return uvicorn.Server(config)


@contextmanager
def running(door: Door, service: Service, pages: list[Any] | None = None) -> Iterator[str]:
    """The address of the service, which is up until the block ends."""
    server = server_of(door, service, pages)
    thread = threading.Thread(target=server.run, daemon=True, name="fairveil door")
    thread.start()
    until = time.monotonic() + STARTING
    while not server.started and thread.is_alive() and time.monotonic() < until:
        time.sleep(0.01)
    if not server.started:
        server.should_exit = True
        raise DoorError(f"The door did not open on {door.holder.address}:{door.holder.port}.")
    try:
        yield address_of(door, server)
    finally:
        server.should_exit = True
        thread.join(STARTING)


def address_of(door: Door, server: uvicorn.Server) -> str:
    """Where a started server listens."""
    port = next(iter(server.servers)).sockets[0].getsockname()[1]
    scheme = "http" if door.holder.certificate is None else "https"
    host = f"[{door.holder.address}]" if ":" in door.holder.address else door.holder.address
    return f"{scheme}://{host}:{port}"
