"""`fairveil door`: tokens and runs of a door."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .helping import add, group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..serving.records import Records


Config = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="read the holder's configuration here", show_default=False
    ),
]
app = group("door", "Tokens and runs of a door, whether it is being served or not.")


@contextmanager
def _records(config: Path | None) -> Iterator[Records]:
    from ..errors import InputError
    from ..serving.holder import Holder
    from ..serving.records import Records

    if config is None:
        raise InputError.expected(
            "--config",
            of="door",
            got="none",
            remedy="Name the holder's configuration: --config holder.toml.",
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
    from ..errors import InputError
    from ..serving.records import METHODS, ROLES, Scope, Tokens

    for option, given, known in (
        ("--role", [role], ROLES),
        ("--method", method or [], METHODS),
        ("--protects", protects or [], ("records", "sensitive-features")),
    ):
        strange = [one for one in given if one not in known]
        if strange:
            remedy = f"Pass {option} {known[0]}, for example."
            raise InputError.expected(
                f"one of {', '.join(known)}", of=option, got=strange[0], remedy=remedy
            )
    if not name or not name.strip() or not name.isprintable() or len(name) > 100:
        remedy = "Pass --name 'R. Weber, university'."
        raise InputError.expected(
            "a line of at most 100 letters", of="--name", got=name, remedy=remedy
        )
    for option, number in (("--days", days), ("--epsilon-a-day", epsilon_a_day)):
        if number is not None and not 0 < number < 1e6:
            remedy = f"Pass {option} 1, for example."
            raise InputError.expected("a number above 0", of=option, got=number, remedy=remedy)
    protected = None if not protects else tuple(one.replace("-", "_") for one in protects)
    scope = Scope(_some(dataset), protected, _some(method), epsilon_a_day)
    with _records(config) as records:
        typer.echo(Tokens(records).issue(name, role, days=days, scope=scope))


def tokens(config: Config = None) -> None:
    """List tokens: whose each is, what it opens, when it ends. Secrets are not kept.

    Exit status: 0 listed, 2 refused.
    """
    import time

    from ..serving.records import Tokens

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
    from ..errors import InputError
    from ..serving.records import Tokens

    with _records(config) as records:
        if not Tokens(records).revoke(token_id):
            remedy = "List them: fairveil door tokens --config holder.toml."
            raise InputError.expected("a token that holds", of="TOKEN", got=token_id, remedy=remedy)
        typer.echo(f"Revoked: {token_id}")


def runs(config: Config = None) -> None:
    """List the latest runs: whose, of which data set, and how each ended.

    Exit status: 0 listed, 2 refused.
    """
    from ..serving.records import Tokens

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
    from ..errors import InputError
    from ..serving.records import STOP

    with _records(config) as records:
        found = records.run(run)
        if found is None or found.state != "open":
            remedy = "List them: fairveil door runs --config holder.toml."
            raise InputError.expected("a run that is open", of="RUN", got=run, remedy=remedy)
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
