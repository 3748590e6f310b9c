"""`fairveil serve`: a curator behind a door, until it is stopped; and `fairveil door`: tokens and
runs of a door."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .door import Config

if TYPE_CHECKING:
    pass

DEMO = Path("fairveil-door")


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

    from ..errors import InputError

    if (config is None) == (not demo):
        remedy = "fairveil serve --config holder.toml, or fairveil serve --demo."
        got = "both" if demo else "neither"
        raise InputError.expected("--config or --demo", of="serve", got=got, remedy=remedy)
    if folder is not None and not demo:
        remedy = "Leave it out: the configuration names the folder."
        raise InputError.expected("--demo beside it", of="--folder", got=str(folder), remedy=remedy)
    if port is not None and not 0 <= port < 1 << 16:
        remedy = "Pass --port 8422, for example; 0 takes one that is free."
        raise InputError.expected("a port from 0 to 65535", of="--port", got=port, remedy=remedy)
    _require_server()
    from ..serving.holder import Holder

    if demo:
        from ..serving.holder import prepare_demo

        config = prepare_demo(folder or DEMO, 8422 if port is None else port)
    assert config is not None
    holder = Holder.load(config)
    _run(
        holder if port is None else replace(holder, port=port), demo=demo, check=check, quiet=quiet
    )


def _run(holder: object, *, demo: bool, check: bool, quiet: bool) -> None:
    import sys

    from ..serving.app import running
    from ..serving.holder import Holder
    from ..serving.runs import Server

    assert isinstance(holder, Holder)
    with options.warnings_as_notes():
        server = Server(holder)
    try:
        names = ", ".join(server.datasets)
        if check:
            typer.echo(f"Would serve: {names}")
            return
        with running(server, None if quiet else sys.stderr) as url:
            try:
                typer.echo(
                    f"Serving {names} at {url} (Ctrl-C ends it; runs go on when it is up again)"
                )
                if server.fingerprint is not None:
                    typer.echo(f"Statements are signed by {server.fingerprint}")
                if demo:
                    analyst = server.tokens.issue("analyst of the demo", days=1.0)
                    own = server.tokens.issue("holder of the demo", "holder", days=1.0)
                    typer.echo(f"Analyst's token: {analyst}")
                    typer.echo(f"Holder's page: {url}/holder, token: {own}")
                    remote = f'fairveil.remote("{url}", "applicants", token="{analyst}")'
                    typer.echo(f"Try: clf.fit({remote})")
                _wait()
            except KeyboardInterrupt:
                typer.echo("Stopped.")
    finally:
        server.close()


def _wait() -> None:
    """Until the terminal, or whoever started it, says so."""
    import signal
    import threading

    over = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: over.set())
    try:
        over.wait()
    finally:
        signal.signal(signal.SIGTERM, before)


def _require_server() -> None:
    import importlib.util

    from ..errors import InputError

    for name in ("starlette", "uvicorn", "cryptography"):
        if importlib.util.find_spec(name) is None:
            remedy = "pip install 'fairveil[serve]'"
            raise InputError.expected(name, of="serve", got=f"no {name}", remedy=remedy)


# -- tokens and runs -------------------------------------------------------------------------------
