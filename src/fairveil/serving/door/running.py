"""A service that is run: by the command until it is stopped, or beside other code in a thread.

Connections are bounded in time: who sends the head of a request too slowly, or takes a reply too
slowly, is let go. Bodies have a clock of their own in the service; a handshake of TLS ends after
asyncio's own 60 seconds.

Guarantees (tests/serving/test_serving_slow.py):
1. A connection whose head of a request is not whole after `head_seconds` is closed, also between
   two requests; so is one that was answered without a token before its body was whole. A request
   with a token that is refused by its length may hold its connection.
2. A reply of which nothing is taken for `stuck_seconds` ends its connection; a slow line that takes
   some does not.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...errors import DoorError
from .door import Door
from .service import Service

STARTING = 30.0
HEAD_SECONDS = 20.0
STUCK_SECONDS = 60.0


class OnePiece:
    """A transport that sends the head of a reply together with its body: the client wakes once. All
    else is the transport's."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._head = transport, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send, or wait for what follows a head; an interim one (100) is waited for by the
        client."""
        if not self._head and data.startswith(b"HTTP/1.") and data[9:10] != b"1":
            self._head = data
        elif self._head or data:
            whole, self._head = self._head + data, b""
            self._transport.write(whole)

    def close(self) -> None:
        """Send what waits, and close."""
        if self._head:
            self.write(b"")
        self._transport.close()


class PatientProtocol(H11Protocol):
    """uvicorn's own, with clocks. `head_seconds`, `stuck_seconds`: of the class, for all
    connections of one server."""

    head_seconds, stuck_seconds = HEAD_SECONDS, STUCK_SECONDS
    _clock: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    @classmethod
    def with_clocks(cls, head_seconds: float, stuck_seconds: float) -> type[PatientProtocol]:
        """The same with other times."""
        return type(
            cls.__name__, (cls,), {"head_seconds": head_seconds, "stuck_seconds": stuck_seconds}
        )

    def connection_made(self, transport: Any) -> None:
        """Begin the clock of the first head."""
        super().connection_made(OnePiece(transport))  # type: ignore[arg-type]  # it has all that a transport has
        self._clock = self.loop.call_later(self.head_seconds, self._late)

    def data_received(self, data: bytes) -> None:
        """A head that is whole stops the clock; one that has begun starts it."""
        super().data_received(data)
        reads_head = self.conn.their_state is h11.IDLE
        if not reads_head:
            self._stop()
        elif self._clock is None:
            self._clock = self.loop.call_later(self.head_seconds, self._late)

    def pause_writing(self) -> None:
        """More of a reply waits than the system takes: see whether it goes on."""
        super().pause_writing()
        self._look(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It went on."""
        self._stop_looking()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all clocks."""
        self._stop()
        self._stop_looking()
        super().connection_lost(exc)

    def _look(self, size: int) -> None:
        self._stuck = self.loop.call_later(self.stuck_seconds, self._looked, size)

    def _looked(self, before: int) -> None:
        size = self.transport.get_write_buffer_size()
        if size < before:
            self._look(size)
        else:
            self.transport.abort()

    def _stop_looking(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _late(self) -> None:
        self._clock = None
        if self.conn.their_state is h11.IDLE:
            self.transport.abort()


def server_of(door: Door, service: Service, pages: list[Any] | None = None) -> uvicorn.Server:
    """Bounded in connections, and silent but for the door's own log."""
    holder, seconds = door.holder, door.holder.limits.request_seconds
    config = uvicorn.Config(
        service.app(pages),
        host=holder.address,
        port=holder.port,
        http=PatientProtocol.with_clocks(min(HEAD_SECONDS, seconds), min(STUCK_SECONDS, seconds)),
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
