"""Commands that hand models and data on: `export`, and `serve` with its tokens and runs."""

from __future__ import annotations

import importlib.util
import signal
import sys
import threading
import time
from dataclasses import replace
from typing import Any

import click

from .._reading import write_files
from .files import working
from .frame import Ask, alone, command, need

LISTED = "List them: fairveil serve --config holder.toml --list."


@command(
    "Sharing",
    "DIR --out! --table --keep | --materialized --certificate --force",
    "fairveil export model --out model.sql",
    "fairveil export model --table applicants --keep id --out m.sql",
    "fairveil export model --certificate certificate.json --out README.md",
)
def export(ask: Ask) -> None:
    """Write a saved model as one SQL query over a table; or, with --out README.md, a model card.

    The encoding is inside the query: columns go in as they are. A randomized model takes a uniform
    number for each row as an input. Numbers of a card come from the statement, report and certificate.

    Exit status: 0 written, 2 refused.
    """
    is_card = ".md" in ask.files
    for name in ("table", "keep", "materialized") if is_card else ("certificate",):
        if getattr(ask, name):
            other = f"--out with {'.sql' if is_card else '.md'}"
            raise alone(name, other, "Leave it out, or name another file.")
    from ..estimators import Certificate, load
    from ..export import sql_query
    from ..show.card import model_card

    clf, report = load(ask.dir), ask.dir / "report.json"
    if is_card:
        given = None if ask.certificate is None else Certificate.load(ask.certificate)
        content = model_card(clf, certificate=given, report=report if report.is_file() else None)
    else:
        how: Any = {"table": ask.table or "rows", "keep": tuple(ask.keep)}
        content = sql_query(clf, **how, materialized=ask.materialized or None)
    write_files({ask.out: content})
    click.echo(f"Written: {ask.out} ({len(content.encode()):,} bytes)")


@command(
    "Sharing",
    """--config! --issue --list | --port --check --quiet --role@issue --days@issue --dataset@issue
    --revoke --stop""",
    "fairveil serve --config holder.toml",
    "fairveil serve --config holder.toml --issue 'R. Weber'",
    "fairveil serve --config holder.toml --check",
)
def serve(ask: Ask) -> None:
    """Serve data sets to analysts, who fit models on them and see no row.

    With --issue, --revoke, --stop or --list it serves nothing, but looks after tokens and runs. A
    token is shown once. A run that is stopped is charged what it released.

    Exit status: 0 stopped, or done; 2 refused.
    """
    fix = "Pass --port 8422, for example; 0 takes one that is free."
    need(0 <= (ask.port or 0) < 1 << 16, "port", "a port from 0 to 65535", ask.port, fix)
    for name in ("starlette", "uvicorn", "cryptography"):
        there = importlib.util.find_spec(name) is not None
        need(there, "serve", name, f"no {name}", "pip install 'fairveil[serve]'")
    if ask.named("issue revoke stop") or ask.list:
        _look_after(ask)
        return
    from ..serving.app import running
    from ..serving.holder import Holder
    from ..serving.runs import Server

    holder = Holder.load(ask.config)
    with working():
        server = Server(holder if ask.port is None else replace(holder, port=ask.port))
    try:
        if ask.check:
            click.echo(f"Would serve: {', '.join(server.datasets)}")
            return
        with running(server, None if ask.quiet else sys.stderr) as url:
            try:
                _say_serving(server, url)
                _wait()
            except KeyboardInterrupt:
                click.echo("Stopped.")
    finally:
        server.close()


def _say_serving(server: Any, url: str) -> None:
    names = ", ".join(server.datasets)
    click.echo(f"Serving {names} at {url} (Ctrl-C ends it; runs go on when it is up again)")
    if server.fingerprint is not None:
        click.echo(f"Statements are signed by {server.fingerprint}")


def _wait() -> None:
    """Until the terminal, or whoever started it, says so."""
    over = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: over.set())
    try:
        sys.stdout.flush()
        over.wait()
    finally:
        signal.signal(signal.SIGTERM, before)


def _look_after(ask: Ask) -> None:
    """Issue or revoke a token, stop a run, or list both; secrets are not kept."""
    if ask.issue is not None:
        right = ask.issue.strip() and ask.issue.isprintable() and len(ask.issue) <= 100
        fix = "Pass --issue 'R. Weber, university'."
        need(right, "issue", "a line of at most 100 letters", ask.issue, fix)
    days = 90.0 if ask.days is None else ask.days
    need(0 < days < 1e6, "days", "a number above 0", days, "Pass --days 30, for example.")
    from ..serving.holder import Holder
    from ..serving.records import STOP, Records

    records = Records(Holder.load(ask.config).folder, serves=False)
    try:
        if ask.issue is not None:
            opens = tuple(ask.dataset) or None
            role = ask.role or "analyst"
            click.echo(records.issue(ask.issue, role, days=days, datasets=opens))
        if ask.revoke is not None:
            done = records.revoke(ask.revoke)
            need(done, "revoke", "a token that holds", ask.revoke, LISTED)
            click.echo(f"Revoked: {ask.revoke}")
        if ask.stop is not None:
            found = records.run(ask.stop)
            is_open = found is not None and found.state == "open"
            need(is_open, "stop", "a run that is open", ask.stop, LISTED)
            records.put(ask.stop, how=STOP)
            click.echo(f"To be stopped: {ask.stop}")
        names = {one.id: one.name for one in records.tokens()}
        for one in records.tokens() if ask.list else ():
            state = "holds" if one.holds_at(time.time()) else "ended"
            click.echo(f"token {one.id}  {state}  {one.role}  {one.name}  ({one.opens})")
        for run in records.runs(most=200) if ask.list else ():
            state, whose = ", ".join(filter(None, (run.state, run.how))), names.get(run.token)
            whose = f"{whose or run.token}  {run.dataset}"
            click.echo(f"run {run.id}  {state}  {whose}  epsilon {run.epsilon:g}")
    finally:
        records.close()
