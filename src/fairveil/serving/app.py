"""The service: HTTP in front of a server's runs, and the holder's page.

| request | who | |
|---|---|---|
| `GET /v1` | anybody | whose server it is, and its public key |
| `GET /v1/datasets`, `/v1/datasets/NAME` | analysts, auditors | public facts, what is left |
| `POST /v1/datasets/NAME/price` | analysts | what a plan would cost; reserves nothing |
| `POST /v1/datasets/NAME/divide` | analysts | set rows aside by coins of the holder's |
| `POST /v1/runs` | analysts | open a run: its whole plan is reserved |
| `POST /v1/runs/ID/ACT` | its analyst | ask, choose, attach, rescale, table, finish, statement, close |
| `GET /v1/ledgers/NAME`, `/v1/statements/NAME` | auditors, holder | all lines, all statements |
| `GET /healthz` | anybody | no data |
| `/holder` | the holder | budgets, runs, tokens |

Guarantees (tests/serving/test_serving_requests.py, tests/serving/test_serving_limits.py):
1. A connection that waits has one clock, which no byte begins again: without a whole request it
   ends. What is answered before its body was read ends its connection.
2. Bodies are bounded one by one and together, whatever their headers say. A token has a few requests
   answered at once, and one plan priced.
3. Health waits for no thread, and the holder's page has threads of its own: whatever analysts ask,
   the holder can see and revoke.
4. No request is answered by a trace. The log names no value of a body, no token's secret and no
   answer.
5. Only a holder's token enters the page; what is changed needs the session's own word in the form,
   which another site cannot know. Every value is escaped; the page may load nothing and be framed by
   nobody, and shows no answer.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import sys
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
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
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import DoorError, FairveilError
from .records import OPEN, STOP, Token
from .refusals import Refusal, refusal_of
from .runs import ACTS, CLOSE, Opening, Server

try:
    import resource
except ImportError:  # a system without limits of descriptors
    resource = None  # type: ignore[assignment]

MESSAGE_TYPE, JSON = "application/vnd.fairveil", "application/json"
STARTING, SWEEP_SECONDS = 60.0, 5.0
THREADS, PAGE_THREADS = 16, 2
AT_ONCE, BODIES, SMALL = 8, 8, 4096
"""Requests of one token that are answered at once, how many of the largest bodies may lie in memory
together, and the largest body of whoever shows no token."""
MOST_CONNECTIONS = 2000
_KEY = re.compile(r"[A-Za-z0-9_-]{8,64}")
Answer = bytes | dict[str, Any] | str


class Rates:
    """So many requests a minute for each name, in bursts of at most as many as ten seconds allow."""

    def __init__(self, a_minute: int) -> None:
        self._rate, self._most = a_minute / 60.0, max(1.0, a_minute / 6.0)
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def require(self, name: str) -> None:
        """Count one request, or refuse it."""
        now = time.monotonic()
        with self._lock:
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


def key_of(request: Request) -> str:
    """The key of a request, under which it is answered once."""
    found = request.headers.get("idempotency-key", "")
    if not _KEY.fullmatch(found):
        raise Refusal("no-key", kind="InputError")
    return found


class Service:
    """The application of one server. `log`: a line of JSON for each request; None: no lines."""

    def __init__(self, server: Server, log: TextIO | None = sys.stderr) -> None:
        self.server, self._log, self._limits = server, log, server.limits
        self._rates = Rates(self._limits.requests_a_minute)
        self._inside, self._bytes = Counter[str](), 0
        self._prices: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def app(self) -> Starlette:
        """For uvicorn, or any other server of ASGI."""
        server = self.server

        def look(answer: Callable[[Token, str], Answer]) -> Callable[..., Awaitable[Answer]]:
            async def looked(request: Request, token: Token, *_: object) -> Answer:
                found: Answer = await self._work(answer, token, request.path_params.get("name", ""))
                return found

            return looked

        told = [
            ("/v1/runs/{id}/{act}", "POST", self._act),  # most requests are these
            ("/v1/runs", "POST", self._open),
            ("/v1/datasets", "GET", look(lambda token, name: server.listed(token))),
            ("/v1/datasets/{name}", "GET", look(server.facts)),
            ("/v1/datasets/{name}/price", "POST", self._price),
            ("/v1/datasets/{name}/divide", "POST", self._divide),
            ("/v1/ledgers/{name}", "GET", look(server.ledger)),
            ("/v1/statements/{name}", "GET", look(server.statements)),
        ]
        routes = [Route(path, self._endpoint(path, do), methods=[how]) for path, how, do in told]
        for path, anybody in (("/v1", self._about), ("/healthz", self._health)):
            routes.append(Route(path, self._endpoint(path, anybody, open=True)))
        rest = self._endpoint("unknown", self._nothing, open=True)
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        last = Route("/{rest:path}", rest, methods=methods)
        return Starlette(routes=[*routes, *HolderPage(self).routes(), last], lifespan=self._living)

    @asynccontextmanager
    async def _living(self, app: Starlette) -> AsyncIterator[None]:
        self._threads, self._pricing = CapacityLimiter(THREADS), CapacityLimiter(2)
        own = CapacityLimiter(1)

        async def sweeping() -> None:
            while True:
                await asyncio.sleep(SWEEP_SECONDS)
                await run_sync(self.server.sweep, limiter=own)

        task = asyncio.create_task(sweeping())
        try:
            yield
        finally:
            task.cancel()

    async def _work(self, work: Callable[..., Any], *given: Any) -> Any:
        return await run_sync(partial(work, *given), limiter=self._threads)

    # -- every request -----------------------------------------------------------------------------

    def _endpoint(
        self, act: str, answer: Callable[..., Awaitable[Answer]], *, open: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            began, token, detail, body, is_whole = time.monotonic(), None, "", b"", False
            until, name = began + self._limits.request_seconds, ""
            try:
                if not open:
                    token = self._token(request)
                    if self._inside[token.id] >= AT_ONCE:
                        raise Refusal("too-many")
                    name = token.id
                    self._inside[name] += 1
                body = await self.body(
                    request, SMALL if open else self._limits.request_bytes, until
                )
                said = await answer(request, token, body, until)
                kind = MESSAGE_TYPE if isinstance(said, bytes) else JSON
                content = json.dumps(said, allow_nan=False) if isinstance(said, dict) else said
                response, is_whole = Response(content, media_type=kind), True
            except ClientDisconnect:
                response = Response(status_code=400)
            except Exception as error:  # told by a word of a closed list, and never by its trace
                refused = refusal_of(error)
                status, detail = refused.status, refused.detail
                response = Response(refused.body, status_code=status, media_type=JSON)
                is_whole = len(body) > 0 or not has_body(request)
            finally:
                self._bytes -= len(body)
                if name:
                    self._inside[name] -= 1
                    self._inside += Counter()  # drops who has none
            if not is_whole:  # nobody waits for the rest of a request that was answered
                response.headers["Connection"] = "close"
            self._line(request, act, response.status_code, began, token, len(body), detail)
            return response

        return endpoint

    def _token(self, request: Request) -> Token:
        word, _, given = request.headers.get("authorization", "").partition(" ")
        # a look that waits for nobody: cheaper than a thread
        token = self.server.tokens.of(given if word.lower() == "bearer" else None)
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

    async def _open(self, request: Request, token: Token, body: bytes, until: float) -> Answer:
        server, key = self.server, key_of(request)
        known = await self._work(server.known, token, key, body)
        if known is not None:
            return bytes(known)
        asked = await self._work(server.opening, token, body)
        prices = await self._priced(token, asked, until)
        return bytes(await self._work(server.open, token, key, body, asked, prices))

    async def _price(self, request: Request, token: Token, body: bytes, until: float) -> Answer:
        asked = await self._work(self.server.opening, token, body, request.path_params["name"])
        prices = await self._priced(token, asked, until)
        return dict(await self._work(self.server.price, asked, prices))

    async def _priced(self, token: Token, asked: Opening, until: float) -> list[float]:
        """The prices of a plan, made in a process of its own: few at once, and one of a token."""
        lock, pricer = self._prices.setdefault(token.id, asyncio.Lock()), self.server.pricer
        assert pricer is not None
        try:
            async with asyncio.timeout(until - time.monotonic()), lock:
                given = (asked.values["plan"], asked.deltas, asked.promise.neighbours, until)
                return await run_sync(partial(pricer.prices, *given), limiter=self._pricing)
        except TimeoutError:
            raise Refusal("busy") from None

    async def _divide(self, request: Request, token: Token, body: bytes, until: float) -> Answer:
        given = (token, request.path_params["name"], key_of(request), body)
        return bytes(await self._work(self.server.divide, *given))

    async def _act(self, request: Request, token: Token, body: bytes, until: float) -> Answer:
        run, act = request.path_params["id"], request.path_params["act"]
        given = (token, run, act, key_of(request), body, until)
        return bytes(await self._work(self.server.act, *given))


# -- the holder's page -----------------------------------------------------------------------------

COOKIE, HOURS, MOST_SESSIONS, SHOWN = "fairveil-holder", 8.0, 64, 200
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class HolderPage:
    """Budgets, runs as they happen, tokens; a button to stop a run or a token. No script, and nothing
    from elsewhere; it works with a keyboard and a screen reader."""

    def __init__(self, service: Service) -> None:
        self._service, self.server = service, service.server
        # cookie: the form's word, the token, until when
        self._sessions: OrderedDict[str, tuple[str, str, float]] = OrderedDict()
        self._lock = threading.Lock()
        loader = PackageLoader("fairveil.serving", "pages")
        strict: dict[str, Any] = {"autoescape": True, "undefined": StrictUndefined}
        self._env = Environment(loader=loader, trim_blocks=True, **strict)
        self._env.filters["date"] = date
        # ours: its quotes are its own
        self._env.globals["css"] = Markup(loader.get_source(self._env, "page.css")[0])
        self._env.globals["holder"] = self.server.holder.name

    def routes(self) -> list[Route]:
        """For the service."""
        told: list[tuple[str, str, Callable[[Request, dict[str, str]], Response]]] = [
            ("/", "GET", lambda request, form: RedirectResponse("/holder", 303)),
            ("/holder", "GET", self._overview),
            ("/holder/runs/{id}/statement", "GET", self._statement),
            ("/holder/enter", "POST", self._enter),
            ("/holder/leave", "POST", self._leave),
            ("/holder/runs/{id}/stop", "POST", self._stop),
            ("/holder/tokens/{id}/revoke", "POST", self._revoke),
        ]
        limiter: list[CapacityLimiter] = []

        def page(answer: Callable[[Request, dict[str, str]], Response]) -> Any:
            async def endpoint(request: Request) -> Response:
                limiter[:] = limiter or [CapacityLimiter(PAGE_THREADS)]
                is_whole, form = not has_body(request), dict[str, str]()
                until = time.monotonic() + self.server.limits.request_seconds
                try:
                    if request.method == "POST":
                        raw = await self._service.body(request, SMALL, until)
                        self._service._bytes -= len(raw)
                        found = parse_qs(raw.decode("utf-8", "replace"), max_num_fields=8)
                        form, is_whole = {name: texts[0] for name, texts in found.items()}, True
                    response = await run_sync(partial(answer, request, form), limiter=limiter[0])
                except ClientDisconnect:
                    response = Response(status_code=400)
                except Exception as error:  # nothing of it is shown
                    refused = refusal_of(error)
                    text = self._render("enter.html", said=refused.sentence)
                    response = HTMLResponse(text, refused.status)
                response.headers.update(HEADERS)
                if not is_whole:
                    response.headers["Connection"] = "close"
                return response

            return endpoint

        return [Route(path, page(answer), methods=[method]) for path, method, answer in told]

    # -- what is shown -----------------------------------------------------------------------------

    def _overview(self, request: Request, form: dict[str, str], said: str = "") -> Response:
        session, server = self._session(request), self.server
        if session is None:
            return HTMLResponse(self._render("enter.html"))
        stated = server.records.rows("SELECT id FROM runs WHERE statement IS NOT NULL")
        values: dict[str, Any] = {"runs": server.records.runs(most=SHOWN), "at": time.time()}
        values |= {"tokens": server.tokens.all(), "names": server.tokens.names()}
        values |= {"stated": {row["id"] for row in stated}, "session": session, "said": said}
        budgets = [(one, balance_of(one)) for one in server.datasets.values()]
        return HTMLResponse(self._render("overview.html", budgets=budgets, **values))

    def _statement(self, request: Request, form: dict[str, str]) -> Response:
        session, id = self._session(request), request.path_params["id"]
        text = None if session is None else self.server.records.text(id, "statement")
        if text is None:
            return RedirectResponse("/holder", 303)
        name = {"Content-Disposition": f'attachment; filename="statement-{id[:8]}.json"'}
        return Response(text, media_type=JSON, headers=name)

    # -- what is done ------------------------------------------------------------------------------

    def _enter(self, request: Request, form: dict[str, str]) -> Response:
        # of 256 bits: nobody guesses one, and nobody is shut out by another's guesses
        if self.server.tokens.of(form.get("token")).role != "holder":
            raise Refusal("entered")
        cookie, word = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        with self._lock:
            while len(self._sessions) >= MOST_SESSIONS:
                self._sessions.popitem(last=False)
            self._sessions[cookie] = (word, form["token"], time.time() + 3600.0 * HOURS)
        response = RedirectResponse("/holder", 303)
        how: dict[str, Any] = {"httponly": True, "samesite": "strict", "path": "/holder"}
        response.set_cookie(COOKIE, cookie, secure=self.server.holder.is_encrypted, **how)
        return response

    def _leave(self, request: Request, form: dict[str, str]) -> Response:
        self._require(request, form)
        with self._lock:
            self._sessions.pop(request.cookies.get(COOKIE, ""), None)
        return RedirectResponse("/holder", 303)

    def _stop(self, request: Request, form: dict[str, str]) -> Response:
        self._require(request, form)
        id = request.path_params["id"]
        record = self.server.records.run(id)
        said = "The run had ended before."
        if record is not None and record.state == OPEN:
            said = "The run was stopped."
            if not self.server.end(id, "stopped by the holder", wait=5.0):
                self.server.records.put(id, how=STOP)  # by the clock, when its answer is made
                said = "The run is stopped when its answer is made."
        return self._overview(request, {}, said)

    def _revoke(self, request: Request, form: dict[str, str]) -> Response:
        self._require(request, form)
        done = self.server.tokens.revoke(request.path_params["id"])
        said = "The token was revoked." if done else "There is no such token, or it had ended."
        return self._overview(request, {}, said)

    # -- who ---------------------------------------------------------------------------------------

    def _session(self, request: Request) -> str | None:
        """The form's word of a session that holds; its token must still open."""
        with self._lock:
            found = self._sessions.get(request.cookies.get(COOKIE, ""))
        try:
            if found is None or found[2] < time.time():
                return None
            return found[0] if self.server.tokens.of(found[1]).role == "holder" else None
        except Refusal:
            return None

    def _require(self, request: Request, form: dict[str, str]) -> None:
        session, given = self._session(request), form.get("form", "").encode()
        if session is None or not secrets.compare_digest(given, session.encode()):
            raise Refusal("entered")

    def _render(self, name: str, **values: object) -> str:
        told = {"session": "", "said": "", "now": time.time()}
        return self._env.get_template(name).render(told | values)


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
    for it, and for a part of a reply to be taken. Where more than `most` connections are there, the
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

    def pause_writing(self) -> None:
        """More of a reply waits than the system takes: see whether it goes on."""
        super().pause_writing()
        self._look(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It went on."""
        self._end()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """No clock is left."""
        self._end()
        super().connection_lost(exc)

    def _waits(self) -> None:
        self._end()
        self.waiting[self] = None
        self._clock = self.loop.call_later(self.seconds, self.transport.abort)

    def _has_whole(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._end()

    def _end(self) -> None:
        self.waiting.pop(self, None)
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _look(self, before: int) -> None:
        def looked() -> None:
            size = self.transport.get_write_buffer_size()
            if size < before:
                self._look(size)
            else:
                self.transport.abort()

        self._end()
        self._clock = self.loop.call_later(self.seconds, looked)


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
    files = {"ssl_certfile": holder.certificate, "ssl_keyfile": holder.private_key}
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
        **{name: file and str(file) for name, file in files.items()},  # type: ignore[arg-type]
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
        yield f"{'http' if holder.certificate is None else 'https'}://{host}:{port}"
    finally:
        found.should_exit = True
        thread.join(STARTING)
