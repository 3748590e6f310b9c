"""The service: HTTP in front of a door. Every request is bounded in size, rate and time; every
failure is typed.

| request | who | |
|---|---|---|
| `GET /v1` | anybody | whose door it is, and its public key |
| `GET /v1/datasets`, `/v1/datasets/NAME` | analysts, auditors | public facts, what is left |
| `POST /v1/datasets/NAME/price` | analysts | what a plan would cost; reserves nothing |
| `POST /v1/datasets/NAME/divide` | analysts | set rows aside by coins of the holder's; releases nothing |
| `POST /v1/runs` | analysts | open a run: its whole plan is reserved |
| `POST /v1/runs/ID/ACT` | its analyst | ask, choose, attach, rescale, table, finish, statement, close |
| `GET /v1/ledgers/NAME`, `/v1/statements/NAME` | auditors, holder | all lines, all statements |
| `GET /healthz` | anybody | no data |

Guarantees (tests/serving/test_serving_service.py, tests/serving/test_serving_hostile.py):
1. A body larger than the limit is refused before it is read whole, whatever its header says; all
   together are bounded, too.
2. No request is answered by a trace, and none by a status of 500 unless something is wrong with the
   door itself.
3. The log names no value of a body.
4. A token has a few requests answered at once (tests/serving/test_serving_slow.py).
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ...errors import FairveilError
from .acts import ACTS
from .door import Door
from .limits import AtOnce, Rates
from .refusals import BUSY, NOBODY, TOO_LARGE, TOO_SLOW, UNKNOWN, Refusal, refusal_of
from .request_log import RequestLog
from .tokens import Token

MESSAGE_TYPE = "application/vnd.fairveil"
SWEEP_SECONDS = 5.0
ANYBODY, GUESSES = 12_000, 600
"""Requests a minute without a token, and tokens that open nothing, from one address: many analysts
may share one."""
AT_ONCE, BODIES = 8, 8
"""Requests of one token that are answered at once, and how many of the largest bodies may lie in
memory together."""
SMALL = 4096
"""The largest body of whoever shows no token."""
_KEY = re.compile(r"[A-Za-z0-9_-]{8,64}")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
Answer = tuple[bytes, str]


class Service:
    """The application of one door."""

    def __init__(self, door: Door, log: RequestLog | None = None) -> None:
        self.door = door
        self.log = log or RequestLog()
        self._rates = Rates(door.holder.limits.requests_a_minute)
        self._guests, self._guesses = Rates(ANYBODY), Rates(GUESSES)
        self._at_once, self._bytes = AtOnce(AT_ONCE), 0  # of the bodies that are in memory

    def app(self, pages: list[Route] | None = None) -> Starlette:
        """For uvicorn, or any other server of ASGI."""
        routes = [
            # most requests are these
            Route("/v1/runs/{id}/{act}", self._endpoint("act", self._act), methods=["POST"]),
            Route("/v1", self._endpoint("about", self._about, open=True)),
            Route("/v1/datasets", self._endpoint("datasets", self._datasets)),
            Route("/v1/datasets/{name}", self._endpoint("dataset", self._dataset)),
            Route(
                "/v1/datasets/{name}/price", self._endpoint("price", self._price), methods=["POST"]
            ),
            Route(
                "/v1/datasets/{name}/divide",
                self._endpoint("divide", self._divide),
                methods=["POST"],
            ),
            Route("/v1/runs", self._endpoint("open", self._open), methods=["POST"]),
            Route("/v1/ledgers/{name}", self._endpoint("ledger", self._ledger)),
            Route("/v1/statements/{name}", self._endpoint("statements", self._statements)),
            Route("/healthz", self._endpoint("health", self._health, open=True)),
            *(pages or []),
            Route(
                "/{rest:path}",
                self._endpoint("unknown", self._nothing, open=True),
                methods=list(METHODS),
            ),
        ]
        return Starlette(routes=routes, lifespan=self._living)

    @asynccontextmanager
    async def _living(self, app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(self._sweeping())
        try:
            yield
        finally:
            task.cancel()

    async def _sweeping(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await run_in_threadpool(self.door.runs.sweep)
            except (
                FairveilError,
                OSError,
                sqlite3.Error,
            ):  # a ledger that is away is told the next time
                continue

    def _endpoint(
        self,
        act: str,
        answer: Callable[[Request, Token | None, bytes], Answer],
        *,
        open: bool = False,
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            began, token, size, detail = time.perf_counter(), None, 0, ""
            is_whole = False
            name = str(request.path_params.get("act", act)) if act == "act" else act
            name = name if act != "act" or name in (*ACTS, "close") else "other"
            try:
                self._guests.require(_address(request)) if open else None
                # a look that waits for nobody: cheaper than a thread
                token = None if open else self._token(request)
                with self._at_once.one(None if token is None else token.id):
                    body = await self._body(
                        request, SMALL if open else self.door.holder.limits.request_bytes
                    )
                    size, is_whole = len(body), True
                    content, kind = await run_in_threadpool(answer, request, token, body)
                response = Response(content, media_type=kind)
            except ClientDisconnect:
                response = Response(status_code=400)
            except Exception as error:  # told by its class alone, and never by its trace
                refusal = refusal_of(error)
                response = Response(
                    refusal.body, status_code=refusal.status, media_type="application/json"
                )
                detail = refusal.detail
                if refusal.status == 500:
                    name = f"{name} {type(error).__name__}"
            finally:
                self._bytes -= size
            if token is None and not is_whole:
                # a stranger's body, which nobody waits for
                response.headers["Connection"] = "close"
            run = str(request.path_params.get("id", ""))[:32]
            known = "" if token is None else token.id
            self.log.request(
                _plain(name),
                response.status_code,
                time.perf_counter() - began,
                known,
                _plain(run),
                size,
                detail,
            )
            return response

        return endpoint

    def _token(self, request: Request) -> Token:
        word, _, given = request.headers.get("authorization", "").partition(" ")
        try:
            token = self.door.tokens.of(given if word.lower() == "bearer" else None)
        except Refusal:
            self._guesses.require(_address(request))
            raise
        self._rates.require(token.id)
        return token

    async def _body(self, request: Request, most: int) -> bytes:
        """The body, in bounded time and memory. What all bodies take together is bounded, too."""
        parts: list[bytes] = []
        size = 0
        declared = request.headers.get("content-length", "0")
        if declared.isdigit() and int(declared[:20]) > most:
            raise Refusal(*TOO_LARGE)
        try:
            async with asyncio.timeout(self.door.holder.limits.request_seconds):
                async for part in request.stream():
                    size += len(part)
                    self._bytes += len(part)
                    if size > most:
                        raise Refusal(*TOO_LARGE)
                    if self._bytes > BODIES * self.door.holder.limits.request_bytes:
                        raise Refusal(*BUSY)
                    parts.append(part)
        except BaseException as error:
            self._bytes -= size
            if isinstance(error, TimeoutError):
                raise Refusal(*TOO_SLOW) from None
            raise
        return b"".join(parts)

    # -- what is answered --------------------------------------------------------------------------

    def _about(self, request: Request, token: Token | None, body: bytes) -> Answer:
        return _json(self.door.about())

    def _datasets(self, request: Request, token: Token | None, body: bytes) -> Answer:
        return _json(self.door.list(_known(token)))

    def _dataset(self, request: Request, token: Token | None, body: bytes) -> Answer:
        return _json(self.door.facts(_known(token), request.path_params["name"]))

    def _price(self, request: Request, token: Token | None, body: bytes) -> Answer:
        return _json(self.door.price(_known(token), request.path_params["name"], body))

    def _divide(self, request: Request, token: Token | None, body: bytes) -> Answer:
        return self.door.runs.divide(
            _known(token), request.path_params["name"], _key(request), body
        ), MESSAGE_TYPE

    def _open(self, request: Request, token: Token | None, body: bytes) -> Answer:
        return self.door.runs.open(_known(token), _key(request), body), MESSAGE_TYPE

    def _act(self, request: Request, token: Token | None, body: bytes) -> Answer:
        act, run = request.path_params["act"], request.path_params["id"]
        return self.door.runs.act(_known(token), run, act, _key(request), body), MESSAGE_TYPE

    def _ledger(self, request: Request, token: Token | None, body: bytes) -> Answer:
        return self.door.ledger(
            _known(token), request.path_params["name"]
        ).encode(), "application/json"

    def _statements(self, request: Request, token: Token | None, body: bytes) -> Answer:
        return _json(self.door.statements(_known(token), request.path_params["name"]))

    def _health(self, request: Request, token: Token | None, body: bytes) -> Answer:
        if not self.door.healthy():
            raise Refusal(503, "unhealthy", "The records or a ledger cannot be read, or written.")
        return b"ok\n", "text/plain"

    def _nothing(self, request: Request, token: Token | None, body: bytes) -> Answer:
        raise Refusal(*UNKNOWN)


def _known(token: Token | None) -> Token:
    if token is None:
        raise Refusal(*NOBODY)
    return token


def _key(request: Request) -> str:
    found = request.headers.get("idempotency-key", "")
    if not _KEY.fullmatch(found):
        raise Refusal(
            422,
            "no-key",
            "Send an Idempotency-Key of 8 to 64 letters, digits, - and _.",
            kind="InputError",
        )
    return found


def _json(values: dict[str, Any]) -> Answer:
    return json.dumps(values, allow_nan=False).encode(), "application/json"


def _address(request: Request) -> str:
    return "" if request.client is None else request.client.host


def _plain(name: str) -> str:
    """For the log and the counts: words that somebody else chose are not repeated there."""
    return name if re.fullmatch(r"[a-zA-Z0-9 _-]{0,64}", name) else "other"
