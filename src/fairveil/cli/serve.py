"""`fairveil serve`: a curator behind a door, until it is stopped; and `fairveil door`: tokens and
runs of a door."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .helping import add

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..serving.door.records import Records

DEMO = Path("fairveil-door")
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="read the holder's configuration here", show_default=False
    ),
]


def serve(
    config: Config = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="serve made-up applicants from --folder, on this machine alone"
        ),
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="with --demo: keep its files here",
            show_default=str(DEMO),
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            help="listen on this port",
            show_default="the configuration's, or 8422",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="open everything, say what would be served, and end")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="write no log of requests to standard error")
    ] = False,
) -> None:
    """Serve data sets to analysts, who fit models on them and see no row.

    Exit status: 0 stopped, 2 refused.
    """
    from dataclasses import replace

    from ..errors import InputError, complaint

    if (config is None) == (not demo):
        remedy = "fairveil serve --config holder.toml, or fairveil serve --demo."
        got = "both" if demo else "neither"
        raise InputError(
            complaint(expected="--config or --demo", of="serve", got=got, remedy=remedy)
        )
    if folder is not None and not demo:
        remedy = "Leave it out: the configuration names the folder."
        raise InputError(
            complaint(expected="--demo beside it", of="--folder", got=str(folder), remedy=remedy)
        )
    if port is not None and not 0 <= port < 1 << 16:
        remedy = "Pass --port 8422, for example; 0 takes one that is free."
        raise InputError(
            complaint(expected="a port from 0 to 65535", of="--port", got=port, remedy=remedy)
        )
    _require_server()
    from ..serving.door.holder import Holder

    if demo:
        from ..serving.door.demo import prepare

        config = prepare(folder or DEMO, 8422 if port is None else port)
    assert config is not None
    holder = Holder.load(config)
    _run(
        holder if port is None else replace(holder, port=port), demo=demo, check=check, quiet=quiet
    )


def _run(holder: object, *, demo: bool, check: bool, quiet: bool) -> None:
    import sys

    from ..serving.door.door import Door
    from ..serving.door.holder import Holder
    from ..serving.door.measures import Measures
    from ..serving.door.page import HolderPage
    from ..serving.door.running import running
    from ..serving.door.service import Service

    assert isinstance(holder, Holder)
    with options.warnings_as_notes():
        door = Door.opened(holder)
    try:
        names = ", ".join(door.datasets)
        if check:
            typer.echo(f"Would serve: {names}")
            return
        pages = HolderPage(
            door, secure=holder.certificate is not None or holder.behind_proxy
        ).routes()
        with running(door, Service(door, Measures(None if quiet else sys.stderr)), pages) as url:
            typer.echo(f"Serving {names} at {url} (Ctrl-C ends it; runs go on when it is up again)")
            if door.fingerprint is not None:
                typer.echo(f"Statements are signed by {door.fingerprint}")
            if demo:
                _say_demo(door, url)
            _wait()
    finally:
        door.close()


def _say_demo(door: object, url: str) -> None:
    from ..serving.door.door import Door

    assert isinstance(door, Door)
    analyst = door.tokens.issue("analyst of the demo", days=1.0)
    holder = door.tokens.issue("holder of the demo", "holder", days=1.0)
    typer.echo(f"Analyst's token: {analyst}")
    typer.echo(f"Holder's page: {url}/holder, token: {holder}")
    typer.echo(f'Try: clf.fit(fairveil.remote("{url}", "applicants", token="{analyst}"))')


def _wait() -> None:
    """Until the terminal, or whoever started it, says so."""
    import signal
    import threading

    over = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: over.set())
    try:
        over.wait()
    except KeyboardInterrupt:
        typer.echo("Stopped.")
    finally:
        signal.signal(signal.SIGTERM, before)


def _require_server() -> None:
    import importlib.util

    from ..errors import InputError, complaint

    for name in ("starlette", "uvicorn", "cryptography"):
        if importlib.util.find_spec(name) is None:
            remedy = "pip install 'fairveil[serve]'"
            raise InputError(complaint(expected=name, of="serve", got=f"no {name}", remedy=remedy))


# -- tokens and runs -------------------------------------------------------------------------------

app = typer.Typer(
    name="door",
    help="Tokens and runs of a door, whether it is being served or not.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@contextmanager
def _records(config: Path | None) -> Iterator[Records]:
    from ..errors import InputError, complaint
    from ..serving.door.holder import Holder
    from ..serving.door.records import Records

    if config is None:
        raise InputError(
            complaint(
                expected="--config",
                of="door",
                got="none",
                remedy="Name the holder's configuration: --config holder.toml.",
            )
        )
    records = Records(Holder.load(config).folder, serves=False)
    try:
        yield records
    finally:
        records.close()


def token(
    config: Config = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="WORDS", help="say whose it is", show_default=False),
    ] = None,
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="analyst, auditor or holder")
    ] = "analyst",
    days: Annotated[
        float, typer.Option("--days", metavar="N", help="let it end after so many days")
    ] = 90.0,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            metavar="NAME",
            help="open this data set; repeat",
            show_default="all of them",
        ),
    ] = None,
    protects: Annotated[
        list[str] | None,
        typer.Option(
            "--protects",
            metavar="WHAT",
            help="allow records, or sensitive-features",
            show_default="both",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", metavar="KIND", help="allow models, or counts alone", show_default="both"
        ),
    ] = None,
    epsilon_a_day: Annotated[
        float | None,
        typer.Option(
            "--epsilon-a-day",
            metavar="NUMBER",
            help="reserve at most so much a day",
            show_default="no limit of its own",
        ),
    ] = None,
) -> None:
    """Issue a token, and show it this once.

    Exit status: 0 issued, 2 refused.
    """
    from ..errors import InputError, complaint
    from ..serving.door.tokens import METHODS, ROLES, Scope, Tokens

    for option, given, known in (
        ("--role", [role], ROLES),
        ("--method", method or [], METHODS),
        ("--protects", protects or [], ("records", "sensitive-features")),
    ):
        strange = [one for one in given if one not in known]
        if strange:
            remedy = f"Pass {option} {known[0]}, for example."
            raise InputError(
                complaint(
                    expected=f"one of {', '.join(known)}", of=option, got=strange[0], remedy=remedy
                )
            )
    if not name or not name.strip() or not name.isprintable() or len(name) > 100:
        remedy = "Pass --name 'R. Weber, university'."
        raise InputError(
            complaint(
                expected="a line of at most 100 letters", of="--name", got=name, remedy=remedy
            )
        )
    for option, number in (("--days", days), ("--epsilon-a-day", epsilon_a_day)):
        if number is not None and not 0 < number < 1e6:
            remedy = f"Pass {option} 1, for example."
            raise InputError(
                complaint(expected="a number above 0", of=option, got=number, remedy=remedy)
            )
    protected = None if not protects else tuple(one.replace("-", "_") for one in protects)
    scope = Scope(_some(dataset), protected, _some(method), epsilon_a_day)
    with _records(config) as records:
        typer.echo(Tokens(records).issue(name, role, days=days, scope=scope))


def tokens(config: Config = None) -> None:
    """List tokens: whose each is, what it opens, when it ends. Secrets are not kept.

    Exit status: 0 listed, 2 refused.
    """
    import time

    from ..serving.door.tokens import Tokens

    with _records(config) as records:
        for one in Tokens(records).all():
            state = "holds" if one.holds_at(time.time()) else "ended"
            typer.echo(f"{one.id}  {state}  {one.role}  {one.name}  ({one.scope.words})")


def revoke(
    token_id: Annotated[
        str, typer.Argument(metavar="TOKEN", help="the token's first part, as `tokens` lists it")
    ],
    config: Config = None,
) -> None:
    """End a token now.

    Exit status: 0 revoked, 2 refused.
    """
    from ..errors import InputError, complaint
    from ..serving.door.tokens import Tokens

    with _records(config) as records:
        if not Tokens(records).revoke(token_id):
            remedy = "List them: fairveil door tokens --config holder.toml."
            raise InputError(
                complaint(expected="a token that holds", of="TOKEN", got=token_id, remedy=remedy)
            )
        typer.echo(f"Revoked: {token_id}")


def runs(config: Config = None) -> None:
    """List the latest runs: whose, of which data set, and how each ended.

    Exit status: 0 listed, 2 refused.
    """
    from ..serving.door.tokens import Tokens

    with _records(config) as records:
        names = Tokens(records).names()
        for run in records.runs(most=200):
            how = f", {run.how}" if run.how else ""
            typer.echo(
                f"{run.id}  {run.state}{how}  {names.get(run.token, run.token)}  {run.dataset}  "
                f"epsilon {run.epsilon:g}"
            )


def stop(
    run: Annotated[str, typer.Argument(metavar="RUN", help="the run, as `runs` lists it")],
    config: Config = None,
) -> None:
    """Stop a run: it is charged what it released. The server does it within seconds, or when it is
    next up.

    Exit status: 0 noted, 2 refused.
    """
    from ..errors import InputError, complaint
    from ..serving.door.runs import STOP

    with _records(config) as records:
        found = records.run(run)
        if found is None or found.state != "open":
            remedy = "List them: fairveil door runs --config holder.toml."
            raise InputError(
                complaint(expected="a run that is open", of="RUN", got=run, remedy=remedy)
            )
        records.put(run, how=STOP)
        typer.echo(f"To be stopped: {run}")


def _some(given: list[str] | None) -> tuple[str, ...] | None:
    return tuple(given) if given else None


add(
    app,
    token,
    "fairveil door token --config holder.toml --name 'R. Weber'",
    "fairveil door token --config holder.toml --name auditor --role auditor",
    "fairveil door token --config holder.toml --name W --epsilon-a-day 1",
    short="issue a token",
)
add(
    app,
    tokens,
    "fairveil door tokens --config holder.toml",
    "fairveil door tokens --config /etc/fairveil/holder.toml",
    "fairveil door tokens --config /srv/holder.toml",
    short="list tokens",
)
add(
    app,
    revoke,
    "fairveil door revoke 3f2a9c1b7d04 --config holder.toml",
    "fairveil door revoke --config holder.toml 3f2a9c1b7d04",
    "fairveil door revoke 3f2a9c1b7d04 --config /etc/fairveil/holder.toml",
    short="end a token",
)
add(
    app,
    runs,
    "fairveil door runs --config holder.toml",
    "fairveil door runs --config /etc/fairveil/holder.toml",
    "fairveil door runs --config /srv/holder.toml",
    short="list runs",
)
add(
    app,
    stop,
    "fairveil door stop 9284df23a3282cd2 --config holder.toml",
    "fairveil door stop --config holder.toml 9284df23a3282cd2",
    "fairveil door stop 9284df23a3282cd2 --config /etc/fairveil/holder.toml",
    short="stop a run",
)
