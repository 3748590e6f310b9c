"""Commands that hand models and data on: `export`, and `serve` with its tokens and runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .files import named, require_files, warnings_as_notes, write_file
from .frame import Ask, command, wrong

if TYPE_CHECKING:
    from ..serving.records import Records

DEMO = Path("fairveil-door")


@command(
    "Sharing",
    "DIR --out! --table --keep | --materialized --facts --certificate --force",
    "fairveil export model --out model.sql",
    "fairveil export model --table applicants --keep id --out m.sql",
    "fairveil export model --facts facts.json --out README.md",
)
def export(ask: Ask) -> None:
    """Write a saved model as one SQL query over a table; or, with --out README.md, a model card.

    The encoding is inside the query: columns go in as they are. A randomized model takes a uniform
    number for each row as an input. Numbers of a card come from the statement, report and certificate.

    Exit status: 0 written, 2 refused.
    """
    (ending,) = require_files([ask.out], force=ask.force, endings=(".sql", ".md"))
    of = "table keep materialized" if ending == ".md" else "facts certificate"
    for name, value in named(ask, of).items():
        if value:
            other = ".sql" if ending == ".md" else ".md"
            remedy = "Leave it out, or name another file."
            raise wrong(name, f"--out with {other} beside it", str(ask.out), remedy)
    from ..estimators import load

    clf = load(ask.dir)
    if ending == ".md":
        content = _card(clf, ask)
    else:
        from ..export import sql_query

        table, keep = ask.table or "rows", tuple(ask.keep)
        content = sql_query(clf, table=table, keep=keep, materialized=ask.materialized or None)
    write_file(ask.out, content)
    click.echo(f"Written: {ask.out} ({len(content.encode()):,} bytes)")


def _card(clf: Any, ask: Ask) -> str:
    """A model card for Hugging Face."""
    from .._json import Document
    from .._reading import read_bytes
    from ..estimators import Certificate
    from ..show.card import model_card

    words = ("name", "license", "dataset")

    given: dict[str, Any] = {}
    if ask.facts is not None:
        remedy = "Write a JSON object: the name of each fact, and its value."
        raw = read_bytes(ask.facts, what="a file of facts", most=1 << 20, remedy=remedy)
        given = dict(Document("facts", remedy).node(raw).mapping())
    for strange in sorted(set(given) - set(words)):
        raise wrong(
            "facts", f"only {', '.join(words)}", strange, "Leave it out of the file.", words
        )
    report, certificate = ask.dir / "report.json", None
    if ask.certificate is not None:
        fix = "Pass a certificate's file."
        raw = read_bytes(ask.certificate, what="a certificate", most=64 << 20, remedy=fix)
        certificate = Certificate.from_json(raw.decode("utf-8", "replace"))
    known = report if report.is_file() else None
    return str(model_card(clf, certificate=certificate, report=known, **given))


@command(
    "Sharing",
    "--config --demo --folder --port --check --quiet",
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
    if ask.folder is not None and not ask.demo:
        remedy = "Leave it out: the configuration names the folder."
        raise wrong("folder", "--demo beside it", None, remedy)
    if ask.port is not None and not 0 <= ask.port < 1 << 16:
        remedy = "Pass --port 8422, for example; 0 takes one that is free."
        raise wrong("port", "a port from 0 to 65535", ask.port, remedy)
    import importlib.util
    from dataclasses import replace

    for name in ("starlette", "uvicorn", "cryptography"):
        if importlib.util.find_spec(name) is None:
            remedy = "pip install 'fairveil[serve]'"
            raise wrong("serve", name, f"no {name}", remedy)
    from ..serving.holder import Holder

    config = ask.config
    if ask.demo:
        from ..serving.holder import prepare_demo

        config = prepare_demo(ask.folder or DEMO, 8422 if ask.port is None else ask.port)
    holder = Holder.load(config)
    _run(holder if ask.port is None else replace(holder, port=ask.port), ask)


def _run(holder: Any, ask: Ask) -> None:
    from ..serving.app import running
    from ..serving.runs import Server

    with warnings_as_notes():
        server = Server(holder)
    try:
        names = ", ".join(server.datasets)
        if ask.check:
            click.echo(f"Would serve: {names}")
            return
        with running(server, None if ask.quiet else sys.stderr) as url:
            try:
                click.echo(
                    f"Serving {names} at {url} (Ctrl-C ends it; runs go on when it is up again)"
                )
                if server.fingerprint is not None:
                    click.echo(f"Statements are signed by {server.fingerprint}")
                if ask.demo:
                    analyst = server.tokens.issue("analyst of the demo", days=1.0)
                    own = server.tokens.issue("holder of the demo", "holder", days=1.0)
                    click.echo(f"Analyst's token: {analyst}")
                    click.echo(f"Holder's page: {url}/holder, token: {own}")
                    remote = f'fairveil.remote("{url}", "applicants", token="{analyst}")'
                    click.echo(f"Try: clf.fit({remote})")
                _wait()
            except KeyboardInterrupt:
                click.echo("Stopped.")
    finally:
        server.close()


def _wait() -> None:
    """Until the terminal, or whoever started it, says so."""
    import signal
    import threading

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
    for name, number in named(ask, "days epsilon_a_day").items():
        if not 0 < number < 1e6:
            remedy = f"Pass {name}=1, for example."
            raise wrong(name, "a number above 0", number, remedy)
    from ..serving.records import Scope, Tokens

    protected = tuple(one.replace("-", "_") for one in ask.protects) or None
    opens, methods = tuple(ask.dataset) or None, tuple(ask.method) or None
    scope = Scope(opens, protected, methods, ask.epsilon_a_day)
    with _records(ask) as records:
        click.echo(Tokens(records).issue(ask.name, ask.role, days=ask.days, scope=scope))


@command("", "--config!", "fairveil serve tokens --config holder.toml", name="serve tokens")
def tokens(ask: Ask) -> None:
    """List tokens: whose each is, what it opens, when it ends. Secrets are not kept."""
    import time

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
