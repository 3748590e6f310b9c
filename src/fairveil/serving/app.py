"""The service: HTTP in front of a server's runs, and the holder's page.

| request | who | |
|---|---|---|
| `GET /v1` | anybody | whose server it is, and its public key |
| `GET /v1/datasets/NAME` | analysts | public facts, what is left |
| `POST /v1/datasets/NAME/divide` | analysts | set rows aside by coins of the holder's |
| `POST /v1/runs` | analysts | open a run: its whole plan is reserved |
| `POST /v1/runs/ID/ACT` | its analyst | ask, choose, attach, rescale, table, finish, statement, close |
| `GET /healthz` | anybody | no data |
| `/holder` | the holder | budgets, runs, tokens |

Guarantees (tests/serving/test_serving_requests.py, tests/serving/test_serving_limits.py):
1. A connection has one clock, which no byte begins again: without a whole request it ends, and so it
   does where a reply is not taken in ten times as long. What is answered before its body was read
   ends its connection.
2. Bodies are bounded one by one and together, whatever their headers say. A token has a few requests
   answered at once, and one plan priced.
3. Health waits for no thread, and the holder's page has threads of its own: whatever analysts ask,
   the holder can see and revoke.
4. No request is answered by a trace. The log names no value of a body, no token's secret and no
   answer.
5. Only a holder's token, as a browser's password, enters the page; what is changed needs a word in
   the form that another site cannot know. Every value is escaped; the page may load nothing and be
   framed by nobody, and shows no answer.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import secrets
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, TextIO
from urllib.parse import parse_qs
from weakref import WeakValueDictionary

import h11
import uvicorn
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import DoorError, FairveilError
from .records import OPEN, STOP, Token
from .refusals import Refusal, refusal_of
from .runs import ACTS, CLOSE, Server

try:
    import resource
except ImportError:  # a system without limits of descriptors
    resource = None  # type: ignore[assignment]

MESSAGE_TYPE, JSON, PAGE = "application/vnd.fairveil", "application/json", "text/html"
STARTING, SWEEP_SECONDS, SHOWN = 60.0, 5.0, 200
THREADS, PAGE_THREADS = 16, 2
AT_ONCE, BODIES, SMALL = 8, 8, 4096
"""Requests of one token that are answered at once, how many of the largest bodies may lie in memory
together, and the largest body of whoever shows no token."""
MOST_CONNECTIONS = 2000
_KEY = re.compile(r"[A-Za-z0-9_-]{8,64}")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
Answer = bytes | dict[str, Any] | str


class Rates:
    """So many requests a minute for each name, in bursts of at most as many as ten seconds allow."""

    def __init__(self, a_minute: int) -> None:
        self._rate, self._most = a_minute / 60.0, max(1.0, a_minute / 6.0)
        self._left: dict[str, tuple[float, float]] = {}

    def require(self, name: str) -> None:
        """Count one request, or refuse it."""
        now = time.monotonic()
        left, at = self._left.get(name, (self._most, now))
        left = min(self._most, left + (now - at) * self._rate)
        if left < 1.0:
            raise Refusal("too-many")
        if len(self._left) >= 4096:
            self._left.clear()
        self._left[name] = (left - 1.0, now)


def has_body(request: Request) -> bool:
    """Whether a body comes behind the head of a request."""
    length = request.headers.get("content-length", "0")
    return length != "0" or "transfer-encoding" in request.headers


class Service:
    """The application of one server. `log`: a line of JSON for each request; None: no lines."""

    def __init__(self, server: Server, log: TextIO | None = sys.stderr) -> None:
        self.server, self._log, self._limits = server, log, server.limits
        self._rates = Rates(self._limits.requests_a_minute)
        self._inside, self._bytes = Counter[str](), 0
        self._prices: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        loader = PackageLoader("fairveil.serving", "pages")
        strict: dict[str, Any] = {"autoescape": True, "undefined": StrictUndefined}
        self._page = Environment(loader=loader, trim_blocks=True, **strict)
        self._page.filters["date"] = date

    def app(self) -> Starlette:
        """For uvicorn, or any other server of ASGI."""
        told: list[tuple[str, str, Callable[..., Awaitable[Answer]], str]] = [
            ("/v1/runs/{id}/{act}", "POST", self._act, "analyst"),  # most requests are these
            ("/v1/runs", "POST", self._open, "analyst"),
            ("/v1/datasets/{name}", "GET", self._facts, "analyst"),
            ("/v1/datasets/{name}/divide", "POST", self._divide, "analyst"),
            ("/holder", "GET", self._overview, "holder"),
            ("/holder/{what}/{id}", "POST", self._end, "holder"),
            ("/v1", "GET", self._about, ""),
            ("/healthz", "GET", self._health, ""),
        ]
        routes = [
            Route(path, self._endpoint(path, do, who), methods=[how]) for path, how, do, who in told
        ]
        rest, methods = (
            self._endpoint("unknown", self._nothing, ""),
            ["GET", "POST", "PUT", "DELETE"],
        )
        routes += [Route("/", lambda request: RedirectResponse("/holder", 303))]
        routes += [Route("/{rest:path}", rest, methods=methods)]
        return Starlette(routes=routes, lifespan=self._living)

    @asynccontextmanager
    async def _living(self, app: Starlette) -> AsyncIterator[None]:
        self._threads, self._pricing = CapacityLimiter(THREADS), CapacityLimiter(2)
        self._own, sweeper = CapacityLimiter(PAGE_THREADS), CapacityLimiter(1)

        async def sweeping() -> None:
            while True:
                await asyncio.sleep(SWEEP_SECONDS)
                await run_sync(self.server.sweep, limiter=sweeper)

        task = asyncio.create_task(sweeping())
        try:
            yield
        finally:
            task.cancel()

    async def _work(self, work: Callable[..., Any], *given: Any) -> Any:
        return await run_sync(partial(work, *given), limiter=self._threads)

    # -- every request -----------------------------------------------------------------------------

    def _endpoint(
        self, act: str, answer: Callable[..., Awaitable[Answer]], role: str
    ) -> Callable[[Request], Awaitable[Response]]:
        is_page, kind = role == "holder", PAGE if role == "holder" else JSON
        most = self._limits.request_bytes if role == "analyst" else SMALL

        async def endpoint(request: Request) -> Response:
            began, token, detail, body, is_whole = time.monotonic(), None, "", b"", False
            until, name, headers = began + self._limits.request_seconds, "", dict[str, str]()
            try:
                if role:
                    token = self._token(request, role)
                if role == "analyst" and token is not None:
                    if self._inside[token.id] >= AT_ONCE:
                        raise Refusal("too-many")
                    name = token.id
                    self._inside[name] += 1
                body = await self.body(request, most, until)
                said = await answer(request, token, body, until)
                content = json.dumps(said, allow_nan=False) if isinstance(said, dict) else said
                told = MESSAGE_TYPE if isinstance(said, bytes) else kind
                response, is_whole = Response(content, media_type=told), True
            except ClientDisconnect:
                response = Response(status_code=400)
            except Exception as error:  # told by a word of a closed list, and never by its trace
                refused = refusal_of(error)
                status, detail = refused.status, refused.detail
                response = Response(refused.body, status_code=status, media_type=JSON)
                if is_page and status == 401:
                    headers["WWW-Authenticate"] = (
                        'Basic realm="token of the holder", charset="UTF-8"'
                    )
                is_whole = len(body) > 0 or not has_body(request)
            finally:
                self._bytes -= len(body)
                if name:
                    self._inside[name] -= 1
                    self._inside += Counter()  # drops who has none
            if not is_whole:  # nobody waits for the rest of a request that was answered
                headers["Connection"] = "close"
            response.headers.update(headers | (HEADERS if is_page else {}))
            self._line(request, act, response.status_code, began, token, len(body), detail)
            return response

        return endpoint

    def _token(self, request: Request, role: str) -> Token:
        word, _, given = request.headers.get("authorization", "").partition(" ")
        wanted = "bearer"
        if role == "holder":  # as a browser sends a password, of any name
            with suppress(ValueError):
                given = base64.b64decode(given).decode("utf-8", "replace").partition(":")[2]
            wanted = "basic"
        # a look that waits for nobody: cheaper than a thread
        token = self.server.records.token(given if word.lower() == wanted else None)
        if role == "holder" and token.role != role:
            raise Refusal("no-token")
        self._rates.require(token.id)
        return token

    async def body(self, request: Request, most: int, until: float) -> bytes:
        """The body, in bounded time and memory. What all bodies take together is bounded, too."""
        parts: list[bytes] = []
        size, declared = 0, request.headers.get("content-length", "0")
        if declared.isdigit() and int(declared[:20]) > most:
            raise Refusal("too-large")
        try:
            async with asyncio.timeout(until - time.monotonic()):
                async for part in request.stream():
                    size += len(part)
                    self._bytes += len(part)
                    if size > most:
                        raise Refusal("too-large")
                    if self._bytes > BODIES * self._limits.request_bytes:
                        raise Refusal("busy")
                    parts.append(part)
        except BaseException as error:
            self._bytes -= size
            raise Refusal("too-slow") if isinstance(error, TimeoutError) else error from None
        return b"".join(parts)

    def _line(
        self,
        request: Request,
        act: str,
        status: int,
        began: float,
        token: Token | None,
        size: int,
        detail: str,
    ) -> None:
        if self._log is None:
            return
        run, named = str(request.path_params.get("id", "")), request.path_params.get("act")
        # words that somebody else chose are not repeated
        act = act if named is None else named if named in (*ACTS, CLOSE) else "other"
        told = {"at": round(time.time(), 3), "act": act, "status": status}
        told |= {"ms": round(1e3 * (time.monotonic() - began), 2), "bytes": size}
        more = {"token": "" if token is None else token.id, "detail": detail}
        more["run"] = run if re.fullmatch("[0-9a-f]{32}", run) else ""
        told |= {name: words for name, words in more.items() if words}
        self._log.write(json.dumps(told) + "\n")

    # -- what is answered --------------------------------------------------------------------------

    async def _about(self, *_: object) -> Answer:
        return self.server.about()

    async def _health(self, *_: object) -> Answer:
        if not self.server.is_healthy:
            raise Refusal("unhealthy", detail=self.server.trouble)
        return "ok\n"

    async def _nothing(self, *_: object) -> Answer:
        raise Refusal("not-found")

    async def _facts(self, request: Request, token: Token, *_: object) -> Answer:
        return dict(await self._work(self.server.facts, token, request.path_params["name"]))

    async def _divide(self, request: Request, token: Token, body: bytes, until: float) -> Answer:
        name = request.path_params["name"]
        return bytes(await self._work(self.server.divide, token, name, body))

    async def _act(self, request: Request, token: Token, body: bytes, until: float) -> Answer:
        run, act = request.path_params["id"], request.path_params["act"]
        given = (token, run, act, key_of(request), body, until)
        return bytes(await self._work(self.server.act, *given))

    async def _open(self, request: Request, token: Token, body: bytes, until: float) -> Answer:
        """Priced in a process of its own: few plans at once, and one of a token."""
        server, key = self.server, key_of(request)
        known = await self._work(server.known, token, key, body)
        if known is not None:
            return bytes(known)
        asked = await self._work(server.opening, token, body)
        lock = self._prices.setdefault(token.id, asyncio.Lock())
        assert server.pricer is not None
        try:
            async with asyncio.timeout(until - time.monotonic()), lock:
                given = (asked.plan, asked.deltas, asked.promise.neighbours, until)
                await run_sync(partial(server.pricer.require, *given), limiter=self._pricing)
        except TimeoutError:
            raise Refusal("busy") from None
        return bytes(await self._work(server.open, token, key, body, asked))

    # -- the holder's page: no script, and nothing from elsewhere -----------------------------------

    async def _overview(self, request: Request, token: Token, *_: object) -> Answer:
        return str(await run_sync(partial(self._shown, token), limiter=self._own))

    async def _end(self, request: Request, token: Token, body: bytes, until: float) -> Answer:
        form = parse_qs(body.decode("utf-8", "replace"), max_num_fields=8).get("form", [""])[0]
        if not secrets.compare_digest(form.encode(), self._word(token).encode()):
            raise Refusal("entered")
        what, id = request.path_params["what"], request.path_params["id"]
        if what not in ("runs", "tokens"):
            raise Refusal("not-found")
        end = self._stopped if what == "runs" else self._revoked
        return str(await run_sync(lambda: self._shown(token, end(id)), limiter=self._own))

    def _word(self, token: Token) -> str:
        """What the forms of the page hold."""
        return self.server.records.mark("form", token.id).hex()

    def _shown(self, token: Token, said: str = "") -> str:
        records, word = self.server.records, self._word(token)
        names = {one.id: one.name for one in records.tokens()}
        budgets = [(one, balance_of(one)) for one in self.server.datasets.values()]
        told = {"runs": records.runs(most=SHOWN), "tokens": records.tokens(), "names": names}
        told |= {"holder": self.server.holder.name, "said": said, "now": time.time(), "word": word}
        return self._page.get_template("page.html").render(budgets=budgets, **told)

    def _stopped(self, id: str) -> str:
        record = self.server.records.run(id)
        if record is None or record.state != OPEN:
            return "The run had ended before."
        if self.server.end(id, "stopped by the holder", wait=5.0):
            return "The run was stopped."
        self.server.records.put(id, how=STOP)  # by the clock, when its answer is made
        return "The run is stopped when its answer is made."

    def _revoked(self, id: str) -> str:
        done = self.server.records.revoke(id)
        return "The token was revoked." if done else "There is no such token, or it had ended."


def key_of(request: Request) -> str:
    """The key of a request, under which it is answered once."""
    found = request.headers.get("idempotency-key", "")
    if not _KEY.fullmatch(found):
        raise Refusal("no-key", kind="InputError")
    return found


def balance_of(dataset: Any) -> Any:
    """What is spent of a data set's budget; None where its ledger is away."""
    try:
        return dataset.ledger.balance()
    except (FairveilError, OSError):
        return None


def date(seconds: float) -> str:
    """A time, for the page."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


# -- connections -----------------------------------------------------------------------------------


class Clocked(H11Protocol):
    """uvicorn's own, with one clock: `seconds` for a whole request, since the connection was free
    for it, and ten times as many for its reply. Where more than `most` connections are there, the
    one that has waited longest without a whole request is closed for the newest."""

    seconds, most = 60.0, MOST_CONNECTIONS
    waiting: dict[Clocked, None]
    _clock: asyncio.TimerHandle | None = None

    @classmethod
    def of(cls, seconds: float, most: int) -> type[Clocked]:
        """The same with these limits, for the connections of one server."""
        return type(cls.__name__, (cls,), {"seconds": seconds, "most": most, "waiting": {}})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The clock begins."""
        super().connection_made(transport)
        self._waits()
        if len(self.connections) > self.most:
            oldest = next(iter(self.waiting))
            if oldest is not self:
                oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """The last byte of a request ends the clock."""
        super().data_received(data)
        self._has_whole()

    def on_response_complete(self) -> None:
        """The clock of the next request begins."""
        self._waits()
        super().on_response_complete()
        self._has_whole()  # one that had come already

    def connection_lost(self, exc: Exception | None) -> None:
        """No clock is left."""
        self._begin(None)
        super().connection_lost(exc)

    def _waits(self) -> None:
        self._begin(self.seconds)
        self.waiting[self] = None

    def _has_whole(self) -> None:
        if self in self.waiting and self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._begin(10.0 * self.seconds)

    def _begin(self, seconds: float | None) -> None:
        self.waiting.pop(self, None)
        if self._clock is not None:
            self._clock.cancel()
        self._clock = None
        if seconds is not None:
            self._clock = self.loop.call_later(seconds, self.transport.abort)


def uvicorn_of(server: Server, service: Service) -> uvicorn.Server:
    """Bounded in connections, and silent but for the service's own log."""
    holder, most = server.holder, MOST_CONNECTIONS
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 2 * most if hard == resource.RLIM_INFINITY else min(hard, 2 * most)
        if soft != resource.RLIM_INFINITY:
            soft = max(soft, wanted)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            most = min(most, max(64, soft - 640))  # others are of the disk, runs and the ledgers
    config = uvicorn.Config(
        service.app(),
        host=holder.address,
        port=holder.port,
        http=Clocked.of(holder.limits.request_seconds + 1.0, most),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=3600,  # the clock of a request is shorter
        h11_max_incomplete_event_size=64 << 10,
        timeout_graceful_shutdown=10,
        proxy_headers=False,  # nobody is told apart by an address
    )
    return uvicorn.Server(config)


@contextmanager
def running(server: Server, log: TextIO | None = None) -> Iterator[str]:
    """The address of the service, which is up until the block ends."""
    holder, found = server.holder, uvicorn_of(server, Service(server, log))
    thread = threading.Thread(target=found.run, daemon=True, name="fairveil server")
    thread.start()
    until = time.monotonic() + STARTING
    while not found.started and thread.is_alive() and time.monotonic() < until:
        time.sleep(0.01)
    if not found.started:
        found.should_exit = True
        raise DoorError(f"The server did not open on {holder.address}:{holder.port}.")
    port = next(iter(found.servers)).sockets[0].getsockname()[1]
    host = f"[{holder.address}]" if ":" in holder.address else holder.address
    try:
        yield f"http://{host}:{port}"
    finally:
        found.should_exit = True
        thread.join(STARTING)
