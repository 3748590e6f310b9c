"""Commands that hand models and data on: `export`, and `serve` with its tokens and runs."""

from __future__ import annotations

import importlib.util
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._reading import write_files
from .files import warnings_as_notes
from .frame import Ask, alone, command, wrong

if TYPE_CHECKING:
    from ..serving.records import Records

DEMO = Path("fairveil-door")


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
    from ..estimators import load

    clf = load(ask.dir)
    if is_card:
        content = _card(clf, ask)
    else:
        from ..export import sql_query

        how: Any = {"table": ask.table or "rows", "keep": tuple(ask.keep)}
        content = sql_query(clf, **how, materialized=ask.materialized or None)
    write_files({ask.out: content})
    click.echo(f"Written: {ask.out} ({len(content.encode()):,} bytes)")


def _card(clf: Any, ask: Ask) -> str:
    """A model card for Hugging Face."""
    from ..estimators import Certificate
    from ..show.card import model_card

    report = ask.dir / "report.json"
    given = None if ask.certificate is None else Certificate.load(ask.certificate)
    return str(model_card(clf, certificate=given, report=report if report.is_file() else None))


@command(
    "Sharing",
    "--config --demo --folder@demo --port --check --quiet",
    "fairveil serve --config holder.toml",
    "fairveil serve --config holder.toml --check",
    "fairveil serve --demo",
    whole=True,
)
def serve(ask: Ask) -> None:
    """Serve data sets to analysts, who fit models on them and see no row.

    Exit status: 0 stopped, 2 refused.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    if (ask.config is None) == (not ask.demo):
        got, remedy = "both" if ask.demo else "neither", "Pass --config holder.toml, or --demo."
        raise wrong("config", "--config or --demo", got, remedy)
    if ask.port is not None and not 0 <= ask.port < 1 << 16:
        remedy = "Pass --port 8422, for example; 0 takes one that is free."
        raise wrong("port", "a port from 0 to 65535", ask.port, remedy)
    for name in ("starlette", "uvicorn", "cryptography"):
        if importlib.util.find_spec(name) is None:
            raise wrong("serve", name, f"no {name}", "pip install 'fairveil[serve]'")
    from ..serving.app import running
    from ..serving.holder import Holder, prepare_demo
    from ..serving.runs import Server

    config = ask.config
    if ask.demo:
        config = prepare_demo(ask.folder or DEMO, 8422 if ask.port is None else ask.port)
    holder = Holder.load(config)
    with warnings_as_notes():
        server = Server(holder if ask.port is None else replace(holder, port=ask.port))
    try:
        if ask.check:
            click.echo(f"Would serve: {', '.join(server.datasets)}")
            return
        with running(server, None if ask.quiet else sys.stderr) as url:
            try:
                _say_serving(server, url, demo=ask.demo)
                _wait()
            except KeyboardInterrupt:
                click.echo("Stopped.")
    finally:
        server.close()


def _say_serving(server: Any, url: str, *, demo: bool) -> None:
    names = ", ".join(server.datasets)
    click.echo(f"Serving {names} at {url} (Ctrl-C ends it; runs go on when it is up again)")
    if server.fingerprint is not None:
        click.echo(f"Statements are signed by {server.fingerprint}")
    if demo:
        analyst = server.tokens.issue("analyst of the demo", days=1.0)
        own = server.tokens.issue("holder of the demo", "holder", days=1.0)
        click.echo(f"Analyst's token: {analyst}")
        click.echo(f"Holder's page: {url}/holder, token: {own}")
        click.echo(f'Try: clf.fit(fairveil.remote("{url}", "applicants", token="{analyst}"))')


def _wait() -> None:
    """Until the terminal, or whoever started it, says so."""
    over = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: over.set())
    try:
        sys.stdout.flush()
        over.wait()
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _records(ask: Ask) -> Iterator[Records]:
    from ..serving.holder import Holder
    from ..serving.records import Records

    records = Records(Holder.load(ask.config).folder, serves=False)
    try:
        yield records
    finally:
        records.close()


@command(
    "",
    """--config! --name! --role=analyst --days=90 --dataset --protects --method --epsilon-a-day""",
    "fairveil serve token --config holder.toml --name 'R. Weber'",
    "fairveil serve token --config holder.toml --name auditor --role auditor",
    "fairveil serve token --config holder.toml --name W --epsilon-a-day 1",
    name="serve token",
)
def token(ask: Ask) -> None:
    """Issue a token, and show it this once.

    Exit status: 0 issued, 2 refused.
    """
    if not ask.name.strip() or not ask.name.isprintable() or len(ask.name) > 100:
        remedy = "Pass --name 'R. Weber, university'."
        raise wrong("name", "a line of at most 100 letters", ask.name, remedy)
    for name, number in ask.named("days epsilon_a_day").items():
        if not 0 < number < 1e6:
            raise wrong(name, "a number above 0", number, f"Pass {name}=1, for example.")
    from ..serving.records import Scope, Tokens

    protected = tuple(one.replace("-", "_") for one in ask.protects) or None
    opens, methods = tuple(ask.dataset) or None, tuple(ask.method) or None
    scope = Scope(opens, protected, methods, ask.epsilon_a_day)
    with _records(ask) as records:
        click.echo(Tokens(records).issue(ask.name, ask.role, days=ask.days, scope=scope))


@command("", "--config!", "fairveil serve tokens --config holder.toml", name="serve tokens")
def tokens(ask: Ask) -> None:
    """List tokens: whose each is, what it opens, when it ends. Secrets are not kept."""
    from ..serving.records import Tokens

    with _records(ask) as records:
        for one in Tokens(records).all():
            state = "holds" if one.holds_at(time.time()) else "ended"
            click.echo(f"{one.id}  {state}  {one.role}  {one.name}  ({one.scope.words})")


@command(
    "",
    "TOKEN --config!",
    "fairveil serve revoke 3f2a9c1b7d04 --config holder.toml",
    name="serve revoke",
)
def revoke(ask: Ask) -> None:
    """End a token now.

    Exit status: 0 revoked, 2 refused.
    """
    from ..serving.records import Tokens

    with _records(ask) as records:
        if not Tokens(records).revoke(ask.token):
            remedy = "List them: fairveil serve tokens --config holder.toml."
            raise wrong("token", "a token that holds", ask.token, remedy)
        click.echo(f"Revoked: {ask.token}")


@command("", "--config!", "fairveil serve runs --config holder.toml", name="serve runs")
def runs(ask: Ask) -> None:
    """List the latest runs: whose, of which data set, and how each ended."""
    from ..serving.records import Tokens

    with _records(ask) as records:
        names = Tokens(records).names()
        for run in records.runs(most=200):
            state = f"{run.state}, {run.how}" if run.how else run.state
            whose = names.get(run.token, run.token)
            click.echo(f"{run.id}  {state}  {whose}  {run.dataset}  epsilon {run.epsilon:g}")


@command(
    "",
    "RUN --config!",
    "fairveil serve stop 9284df23a3282cd2 --config holder.toml",
    name="serve stop",
)
def stop(ask: Ask) -> None:
    """Stop a run: it is charged what it released. The server does it within seconds, or when it is
    next up.

    Exit status: 0 noted, 2 refused.
    """
    from ..serving.records import STOP

    with _records(ask) as records:
        found = records.run(ask.run)
        if found is None or found.state != "open":
            remedy = "List them: fairveil serve runs --config holder.toml."
            raise wrong("run", "a run that is open", ask.run, remedy)
        records.put(ask.run, how=STOP)
        click.echo(f"To be stopped: {ask.run}")
