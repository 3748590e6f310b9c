"""The holder's page: budgets, runs as they happen, what was released, tokens; a button to stop a
run or a token.

It is made here, of the records, with no script and nothing from elsewhere; it works with a keyboard
and a screen reader.

Guarantees (tests/serving/test_serving_service.py):
1. Only a holder's token enters; what is changed needs the session's own word in the form, which
   another site cannot know.
2. Every value is escaped; the page may load nothing and be framed by nobody.
3. It shows what was released by name and price, and no answer.
4. A form that does not arrive, and a body where none belongs, hold no connection
   (tests/serving/test_serving_slow.py).
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from ...errors import FairveilError
from ...statement.document import MECHANISMS, PrivacyStatement, Release, items, releases_of
from .door import Door
from .limits import Rates
from .record_rows import OPEN, OPENING, RunRecord
from .refusals import TOO_SLOW, Refusal

COOKIE, HOURS = "fairveil-holder", 8.0
MOST_FORM = 4096
MOST_SESSIONS = 64
SHOWN = 200
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
ENTRIES_A_MINUTE = 30


class HolderPage:
    """The page of one door."""

    def __init__(self, door: Door, *, secure: bool) -> None:
        self.door, self._secure = door, secure
        # cookie: the form's word, the token, until when
        self._sessions: dict[str, tuple[str, str, float]] = {}
        self._lock = threading.Lock()
        self._rates = Rates(ENTRIES_A_MINUTE)
        self._env = Environment(
            loader=PackageLoader("fairveil.serving", "door"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
        )
        source = self._env.loader
        assert source is not None
        # ours: its quotes are its own
        self._css = Markup(source.get_source(self._env, "page.css")[0])

    def routes(self) -> list[Route]:
        """For the service."""
        return [
            Route("/", self._page(self._home)),
            Route("/holder", self._page(self._overview)),
            Route("/holder/enter", self._page(self._enter), methods=["POST"]),
            Route("/holder/leave", self._page(self._leave), methods=["POST"]),
            Route("/holder/runs/{id}", self._page(self._run)),
            Route("/holder/runs/{id}/statement", self._page(self._statement)),
            Route("/holder/runs/{id}/stop", self._page(self._stop), methods=["POST"]),
            Route("/holder/tokens/{id}/revoke", self._page(self._revoke), methods=["POST"]),
        ]

    def _page(
        self, answer: Callable[[Request, dict[str, str]], Response]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            is_whole = not {"content-length", "transfer-encoding"} & set(request.headers)
            try:
                form: dict[str, str] = {}
                if request.method == "POST":
                    form = await _form(request, self.door.holder.limits.request_seconds)
                    is_whole = True
                response = await run_in_threadpool(answer, request, form)
            except Refusal as refusal:
                response = HTMLResponse(
                    self._render("enter.html", said=refusal.sentence, session=""), refusal.status
                )
            except Exception:  # nothing of it is shown
                response = HTMLResponse("Something failed inside the door.", 500)
            response.headers.update(HEADERS)
            if not is_whole:  # nobody waits for the rest of a request that was answered
                response.headers["Connection"] = "close"
            return response

        return endpoint

    # -- what is shown -----------------------------------------------------------------------------

    def _home(self, request: Request, form: dict[str, str]) -> Response:
        return RedirectResponse("/holder", 303)

    def _overview(self, request: Request, form: dict[str, str], said: str = "") -> Response:
        session = self._session(request)
        if session is None:
            return HTMLResponse(self._render("enter.html", session=""))
        names = self.door.tokens.names()
        runs = [self._told(run, names) for run in self.door.records.runs(most=SHOWN)]
        values = {
            "budgets": [self._budget(name) for name in self.door.datasets],
            "runs": runs,
            "tokens": self._tokens(),
        }
        return HTMLResponse(self._render("overview.html", session=session, said=said, **values))

    def _run(self, request: Request, form: dict[str, str]) -> Response:
        session, record = self._session(request), self.door.records.run(request.path_params["id"])
        if session is None or record is None:
            return RedirectResponse("/holder", 303)
        released = releases_of(
            (entry.questions, entry.event) for entry in self.door.records.entries(record.id)
        )
        values: dict[str, Any] = {
            "run": self._told(record, self.door.tokens.names()),
            "releases": [_line(one) for one in released],
        }
        return HTMLResponse(
            self._render("run.html", session=session, **values, **self._certificate(record))
        )

    def _certificate(self, record: RunRecord) -> dict[str, Any]:
        """The statement in one view, what checking it finds, and who signs."""
        if record.statement is None:
            return {"items": [], "findings": [], "signer": None}
        statement = PrivacyStatement.from_json(record.statement)
        found = [finding.sentence for finding in statement.check()]
        # they stand above, in turn
        told = [one for one in items(statement) if one[0] != MECHANISMS]
        return {"items": told, "findings": found, "signer": self.door.fingerprint}

    def _statement(self, request: Request, form: dict[str, str]) -> Response:
        session, record = self._session(request), self.door.records.run(request.path_params["id"])
        if session is None or record is None or record.statement is None:
            return RedirectResponse("/holder", 303)
        name = {"Content-Disposition": f'attachment; filename="statement-{record.id[:8]}.json"'}
        return Response(record.statement, media_type="application/json", headers=name)

    def _budget(self, name: str) -> dict[str, Any]:
        dataset = self.door.datasets[name]
        try:
            found = dataset.ledger.balance()
        except (FairveilError, OSError):
            away = "unknown: the ledger is away"
            return {
                "name": name,
                "title": "",
                "terms": "",
                "spent": away,
                "left": away,
                "width": 0,
                "promise": "",
                "next": "?",
                "open": "How many spends are open is unknown",
            }
        return {
            "name": name,
            "title": dataset.served.title,
            "terms": dataset.served.terms,
            "spent": f"{100 * found.spent_share:.1f} %",
            "left": f"{100 * found.left_share:.1f} %",
            "width": f"{min(100.0, 100 * found.spent_share):.2f}",
            "promise": str(dataset.ledger.promise),
            "next": f"{found.left:.3g}",
            "open": "1 spend is open" if found.open == 1 else f"{found.open} spends are open",
        }

    def _told(self, run: RunRecord, names: dict[str, str]) -> dict[str, Any]:
        count = self.door.records.rows(
            "SELECT COUNT(*) AS n FROM entries WHERE run = ?", (run.id,)
        )[0]["n"]
        return {
            "id": run.id,
            "short": run.id[:8],
            "who": names.get(run.token, run.token),
            "dataset": run.dataset,
            "state": run.state,
            "how": run.how,
            "open": run.state in (OPENING, OPEN),
            "epsilon": f"{run.epsilon:g}",
            "releases": count,
            "opened": _date(run.opened),
        }

    def _tokens(self) -> list[dict[str, Any]]:
        now = time.time()
        out = []
        for token in self.door.tokens.all():
            ends = "never" if token.expires is None else _date(token.expires)
            ends = ends if token.revoked is None else f"revoked {_date(token.revoked)}"
            told = {
                "id": token.id,
                "name": token.name,
                "role": token.role,
                "scope": token.scope.words,
            }
            out.append({**told, "ends": ends, "holds": token.holds_at(now)})
        return out

    # -- what is done ------------------------------------------------------------------------------

    def _enter(self, request: Request, form: dict[str, str]) -> Response:
        try:
            token = self.door.tokens.of(form.get("token"))
            if token.role != "holder":
                raise Refusal(403, "forbidden", "This token is not the holder's.")
        except Refusal:  # wrong ones are counted alone: the right one is let in
            self._rates.require("" if request.client is None else request.client.host)
            raise
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            if len(self._sessions) >= MOST_SESSIONS:
                self._sessions.clear()
            self._sessions[cookie] = (
                secrets.token_urlsafe(32),
                form["token"],
                time.time() + 3600.0 * HOURS,
            )
        response = RedirectResponse("/holder", 303)
        response.set_cookie(
            COOKIE, cookie, httponly=True, samesite="strict", secure=self._secure, path="/holder"
        )
        return response

    def _leave(self, request: Request, form: dict[str, str]) -> Response:
        self._require(request, form)
        with self._lock:
            self._sessions.pop(request.cookies.get(COOKIE, ""), None)
        return RedirectResponse("/holder", 303)

    def _stop(self, request: Request, form: dict[str, str]) -> Response:
        self._require(request, form)
        stopped = self.door.runs.end(request.path_params["id"], "stopped by the holder")
        return self._overview(
            request, {}, "The run was stopped." if stopped else "The run had ended before."
        )

    def _revoke(self, request: Request, form: dict[str, str]) -> Response:
        self._require(request, form)
        done = self.door.tokens.revoke(request.path_params["id"])
        return self._overview(
            request,
            {},
            "The token was revoked."
            if done
            else "There is no such token, or it was revoked before.",
        )

    # -- who ---------------------------------------------------------------------------------------

    def _session(self, request: Request) -> str | None:
        """The form's word of a session that holds; its token must still open."""
        with self._lock:
            found = self._sessions.get(request.cookies.get(COOKIE, ""))
        if found is None or found[2] < time.time():
            return None
        try:
            return found[0] if self.door.tokens.of(found[1]).role == "holder" else None
        except Refusal:
            return None

    def _require(self, request: Request, form: dict[str, str]) -> None:
        session = self._session(request)
        if session is None or not secrets.compare_digest(
            form.get("form", "").encode(), session.encode()
        ):
            raise Refusal(403, "forbidden", "Enter again: this form is of no session.")

    def _render(self, name: str, *, session: str, said: str = "", **values: object) -> str:
        now = _date(time.time())
        told = {
            "title": "Holder",
            "holder": self.door.holder.name,
            "css": self._css,
            "now": now,
            "said": said,
            "session": session,
        }
        return self._env.get_template(name).render(**told, **values)


async def _form(request: Request, seconds: float) -> dict[str, str]:
    raw = b""
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                raw += part
                if len(raw) > MOST_FORM:
                    raise Refusal(413, "too-large", "The form is larger than this page's.")
    except TimeoutError:
        raise Refusal(*TOO_SLOW) from None
    found = parse_qs(raw.decode("utf-8", "replace"), max_num_fields=8)
    return {name: values[0] for name, values in found.items()}


def _line(one: Release) -> dict[str, Any]:
    """One kind of release, as a line of a table."""
    numbers = ", ".join(f"{number:.4g}" for number in one.numbers[:8])
    numbers += ", and more" if len(one.numbers) > 8 else ""
    return {
        "what": one.name,
        "mechanism": one.mechanism,
        "noise": numbers,
        "rows": one.rows,
        "times": one.times,
    }


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
