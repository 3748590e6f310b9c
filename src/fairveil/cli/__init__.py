"""Ring 6: the command line, one file a command. A command imports what it needs when it runs, so that `--help` is instant."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from .._urls import without_password
from .audit import audit
from .data import app as data
from .demo import demo
from .ending import own_endings, status_of
from .fit import fit
from .frontier import frontier
from .ledger import app as ledger
from .predict import predict
from .sign import sign
from .verify import verify

_USAGE: type[Exception] = typer.BadParameter.__mro__[1]  # of click, which newer versions of typer bring along


class Commands(TyperGroup):
    """Refuses words without showing a password: an address in the wrong place would be repeated in the error."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with own_endings():  # `--help` prints here
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        try:
            with own_endings():
                return super().invoke(ctx)
        except _USAGE as error:
            if isinstance(getattr(error, "message", None), str):
                error.message = without_password(error.message)  # type: ignore[attr-defined]
            raise


app = typer.Typer(
    name="fairveil",
    cls=Commands,
    help="Models that are fair to groups and private to people, with proof of both.",
    no_args_is_help=True,
    add_completion=False,
    # Plain help texts: loading rich for them would take longer than all the rest.
    rich_markup_mode=None,
    # A traceback printed with its local variables could show rows of the data.
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"fairveil {__version__}")
        raise typer.Exit


@app.callback()
def _frame(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Models that are fair to groups and private to people, with proof of both."""


app.command()(fit)
app.command()(predict)
app.command()(audit)
app.command()(frontier)
app.command()(verify)
app.command()(sign)
app.command()(demo)
app.add_typer(ledger)
app.add_typer(data)


def main() -> None:
    """The console script: see `ending` for what it says and its exit status when something is wrong."""
    raise SystemExit(status_of(app))
