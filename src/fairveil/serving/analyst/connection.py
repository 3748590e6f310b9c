"""Requests to a door: one connection that is kept, retries under one key, and refusals as the
library's own errors.

Guarantees (tests/serving/test_serving_service.py, tests/serving/test_serving_crashes.py):
1. A request that may have been answered is sent again under the same key, so that it is answered
   and charged once.
2. Nothing but HTTPS is spoken to another machine, and its certificate is checked.
"""

from __future__ import annotations

import http.client
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

from ... import errors
from ..._json import Document
from ...errors import DoorError, FairveilError, InputError, Overspent
from ..wire.messages import Message, unpacked

ANSWER = Document("answer of the door", "Ask the holder which version the door has.", DoorError)
LARGEST_ANSWER = 1 << 30
TRIES, FIRST_TRIES = 9, 4
"""Of a request of a run, for some 25 seconds while a server starts again; of a look, for less than
one."""
WAIT = 0.1
AGAIN = (429, 502, 503, 504)
"""Statuses after which the same request is sent again, later."""
SHOWN_KINDS = (
    "InputError",
    "KindError",
    "SchemaError",
    "MissingBoundError",
    "PrivacyError",
    "BudgetError",
    "LedgerError",
)


class _Whole(http.client.HTTPConnection):
    """A connection that sends head and body of a request in one piece: the server wakes once."""

    _parts: list[bytes] | None = None

    def send(self, data: Any) -> None:
        """Wait for the rest of the request, if one is being put together."""
        if self._parts is None:
            super().send(data)
        else:
            self._parts.append(data)

    def request(self, *args: Any, **options: Any) -> None:
        """The request, in one piece."""
        self._parts = []
        try:
            super().request(*args, **options)
            whole = b"".join(self._parts)
        finally:
            self._parts = None
        super().send(whole)


class _Secure(_Whole, http.client.HTTPSConnection):
    """Over TLS."""


class Connection:
    """To one door, with one token. Requests of several threads follow one another."""

    _open: http.client.HTTPConnection | None = None

    def __init__(
        self, url: str, token: str, *, timeout: float = 120.0, cafile: str | None = None
    ) -> None:
        parts = urlsplit(url)
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.username
            or parts.query
        ):
            remedy = (
                'Pass "https://holder.example", or "http://127.0.0.1:8422" for a door of this '
                "machine."
            )
            raise InputError.expected(
                "the address of a door", of="url", got=parts.hostname or url, remedy=remedy
            )
        if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            remedy = (
                "The token and the answers would be open to everybody on the way: use https://."
            )
            raise InputError.expected(
                "HTTPS to another machine", of="url", got="http", remedy=remedy
            )
        self.shown = f"{parts.scheme}://{parts.netloc}"
        self._host, self._port, self._base = parts.hostname, parts.port, parts.path.rstrip("/")
        self._context = (
            ssl.create_default_context(cafile=cafile) if parts.scheme == "https" else None
        )
        self._token, self._timeout = token, timeout
        self._lock = threading.Lock()

    # -- requests ----------------------------------------------------------------------------------

    def get(self, *path: str) -> dict[str, Any]:
        """A document."""
        return _mapping(self._sent("GET", path, None, "", FIRST_TRIES))

    def post(self, *path: str, body: bytes) -> dict[str, Any]:
        """A document, for a message."""
        return _mapping(self._sent("POST", path, body, secrets.token_hex(16)))

    def act(self, *path: str, body: bytes, key: str | None = None) -> Message:
        """A message for a message, once: guarantee 1."""
        return unpacked(self._sent("POST", path, body, key or secrets.token_hex(16)))

    def close(self) -> None:
        """Let go of the connection; the next request opens another."""
        with self._lock:
            self._drop()

    def __del__(self) -> None:
        if self._open is not None:
            self._drop()

    # -- inside ------------------------------------------------------------------------------------

    def _sent(
        self, method: str, path: tuple[str, ...], body: bytes | None, key: str, tries: int = 0
    ) -> bytes:
        place = "/".join((self._base, "v1", *(quote(part, safe="") for part in path)))
        headers = {"Authorization": f"Bearer {self._token}", "Accept-Encoding": "identity"}
        if key:
            headers |= {"Idempotency-Key": key, "Content-Type": "application/vnd.fairveil"}
        trouble: Callable[[], FairveilError] = lambda: self._away("no answer")  # noqa: E731
        with self._lock:
            for attempt in range(tries or TRIES):
                if attempt:
                    time.sleep(WAIT * 2 ** (attempt - 1))
                try:
                    status, raw = self._once(method, place, body, headers)
                except (OSError, http.client.HTTPException) as error:
                    self._drop()
                    name = type(error).__name__
                    if isinstance(error, ssl.SSLCertVerificationError):
                        raise self._away(
                            f"a certificate that is not to be trusted ({error.verify_message})"
                        ) from None
                    trouble = lambda name=name: self._away(name)  # type: ignore[misc]  # noqa: E731
                    continue
                if status == 200:
                    return raw
                refused = refusal(status, raw)
                if status not in AGAIN:
                    raise refused
                trouble = lambda refused=refused: refused  # type: ignore[misc]  # noqa: E731
        raise trouble()

    def _once(
        self, method: str, place: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        if self._open is None:
            assert self._host is not None
            if self._context is None:
                self._open = _Whole(self._host, self._port, timeout=self._timeout)
            else:
                self._open = _Secure(
                    self._host, self._port, timeout=self._timeout, context=self._context
                )
            self._open.connect()
            self._open.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open.request(method, place, body=body, headers=headers)
        response = self._open.getresponse()
        raw = response.read(LARGEST_ANSWER + 1)
        if len(raw) > LARGEST_ANSWER:
            self._drop()
            raise self._away("an answer that is too large")
        return response.status, raw

    def _drop(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _away(self, got: str) -> DoorError:
        remedy = (
            "See whether it is up, then fit again; what a run reserved is settled by the holder's "
            "clock."
        )
        return DoorError.expected(
            "an answer", of=f"the door at {self.shown}", got=got, remedy=remedy, quote=False
        )


def refusal(status: int, raw: bytes) -> FairveilError:
    """What the door said no with, as an error of the library."""
    try:
        values = _mapping(raw)
        sentence, kind = str(values["message"]), str(values.get("kind"))
    except (FairveilError, KeyError):
        return DoorError(f"The door answered with status {status}.")
    figures = values.get("figures")
    if kind == "Overspent" and isinstance(figures, dict):
        names = ("spent", "asked", "left", "largest_epsilon")
        return Overspent(sentence, **{name: float(figures.get(name, 0.0)) for name in names})
    if status in (422, 409) and kind in SHOWN_KINDS:
        found: FairveilError = getattr(errors, kind)(sentence)
        return found
    return DoorError(sentence)


def _mapping(raw: bytes) -> dict[str, Any]:
    values = ANSWER.json(raw)
    if not isinstance(values, dict):
        ANSWER.refuse("a document", type(values).__name__)
    found: dict[str, Any] = values
    return found
