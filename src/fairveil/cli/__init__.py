"""Ring 6: the command line, one file a command. A command imports what it needs when it runs, so
that `--help` is instant."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from .attribute import app as attribute
from .audit import audit
from .audit_privacy import audit_privacy
from .card import card
from .certify import certify
from .complaints import of_usage
from .demo import demo
from .door import app as door
from .encode import encode
from .ending import own_endings, status_of
from .export import export
from .fit import fit
from .frontier import frontier
from .helping import add
from .ledger import app as ledger
from .monitor import monitor
from .plan import plan
from .predict import predict
from .release_groups import release_groups
from .schema import app as schema
from .serve import serve
from .sign import sign
from .tune import tune
from .verify import verify

# of click, which newer versions of typer bring along
_USAGE: type[Exception] = typer.BadParameter.__mro__[1]


class Commands(TyperGroup):
    """The frame: its name is `fairveil` however it was started, and words that it cannot read are
    refused in its own words."""

    def main(self, *args: Any, **options: Any) -> Any:
        return super().main(*args, **{**options, "prog_name": "fairveil"})

    def make_context(self, *args: Any, **options: Any) -> Any:
        with own_endings(), _own_words():  # `--help` prints here
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with own_endings(), _own_words():
            return super().invoke(ctx)


@contextmanager
def _own_words() -> Iterator[None]:
    """Errors of the framework in our words, without a password: an address in the wrong place would
    be repeated there."""
    try:
        yield
    except _USAGE as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        raise of_usage(error, sys.argv[1:]) from None


app = typer.Typer(
    name="fairveil",
    cls=Commands,
    help="Models that are fair to groups and private to people, with proof of both.",
    no_args_is_help=True,
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
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Models that are fair to groups and private to people, with proof of both."""


add(
    app,
    fit,
    "fairveil fit t.csv --schema t.toml --constraint equalized_odds:5% --out m",
    "fairveil fit t.csv --schema t.toml --epsilon 2 --holdout 0.25 --out m",
    "fairveil fit t.csv --schema t.toml --method tailored --max-epsilon f:1 --out m",
    short="fit a fair and private model of a table",
)
add(
    app,
    tune,
    "fairveil tune t.csv --schema t.toml --grid clip=0.5,1,2 --out m",
    "fairveil tune t.csv --schema t.toml --grid clip=1,2 --grid rounds=9,99 --out m",
    "fairveil tune t.csv --schema t.toml --grid clip=1,2 --way selection --out m",
    short="choose parameters of a fit by a private search",
)
add(
    app,
    plan,
    "fairveil plan --schema t.toml --constraint demographic_parity:0.05",
    "fairveil plan --schema t.toml --rows 5000 --shares sex=f:0.3,m:0.7",
    "fairveil plan --schema t.toml --constraint equalized_odds:0.1 --out plan.svg",
    short="say what a fit would release, before its budget is spent",
)
add(
    app,
    predict,
    "fairveil predict model t.csv --out decisions.csv",
    "fairveil predict model t.csv --proba --keep id --out decisions.csv",
    "fairveil predict by-group t.csv --sensitive gender --seed 7",
    short="decide the rows of a table by a saved model",
)
add(
    app,
    audit,
    "fairveil audit t.csv --target hired --prediction decided --sensitive sex",
    "fairveil audit t.csv --model model --constraint demographic_parity:0.1",
    "fairveil audit t.csv --model model --epsilon 1 --html audit.html",
    short="show error and rates of every group, exactly or with noise",
)
add(
    app,
    audit_privacy,
    "fairveil audit-privacy model --minutes 10",
    "fairveil audit-privacy fermi --schema t.toml --epsilon 2 --out audit.svg",
    "fairveil audit-privacy mine:fit --schema t.toml --epsilon 1 --delta 1e-5",
    short="attack a mechanism, and hold what it leaks against its claim",
)
add(
    app,
    certify,
    "fairveil certify m t.csv --constraint demographic_parity:5% --epsilon 1",
    "fairveil certify m t.csv --constraint selection_rate_ratio:0.8 --epsilon 1",
    "fairveil certify m t.csv --constraint equalized_odds:5% --epsilon 1 --out c",
    short="certify what holds for people whom the model has not seen",
)
add(
    app,
    monitor,
    "fairveil monitor m --constraint ... --group sex:f,m --classes 0,1 --epsilon 1",
    "fairveil monitor m may.csv --period 2026-05 --prediction decided",
    "fairveil monitor m",
    short="watch decisions after release, and raise an alarm",
)
add(
    app,
    frontier,
    "fairveil frontier t.csv --schema t.toml --out sweep",
    "fairveil frontier t.csv --schema t.toml --gaps 0.2,0.05 --epsilons 1,3 --out s",
    "fairveil frontier t.csv --schema t.toml --constraint equalized_odds --out s",
    short="fit a model for every epsilon and gap, and plot them",
)
add(
    app,
    encode,
    "fairveil encode t.parquet --schema t.toml --out people.store",
    "fairveil encode t.csv --schema t.toml --float32 --out people.store",
    "fairveil encode people.db --query people --schema t.toml --out people.store",
    short="code a large table onto the disk, once",
)
add(
    app,
    release_groups,
    "fairveil release-groups t.csv --schema t.toml --out groups",
    "fairveil release-groups t.csv --target hired --sensitive sex --out groups",
    "fairveil release-groups t.csv --schema t.toml --epsilon 0.5 --out groups",
    short="release counts of groups once, for any number of models",
)
add(
    app,
    verify,
    "fairveil verify model/statement.json",
    "fairveil verify model --key holder.pub",
    "fairveil verify model --json",
    short="compute the epsilon of a statement again",
)
add(
    app,
    sign,
    "fairveil sign --new-key holder.key",
    'fairveil sign model --key holder.key --note "spring model"',
    "fairveil sign model/statement.json --key holder.key",
    short="sign a statement, or a folder with a model",
)
add(
    app,
    export,
    "fairveil export model --out model.sql",
    "fairveil export model --table applicants --keep id --out m.sql",
    "fairveil export model --materialized --out m.sql",
    short="write a saved model as one SQL query",
)
add(
    app,
    card,
    "fairveil card model --out README.md",
    "fairveil card model --certificate certificate.json --facts facts.json",
    "fairveil card model --facts facts.json --out README.md --force",
    short="write a model card",
)
add(
    app,
    serve,
    "fairveil serve --config holder.toml",
    "fairveil serve --config holder.toml --check",
    "fairveil serve --demo",
    short="serve data sets to analysts, who see no row",
)
add(
    app,
    demo,
    "fairveil demo",
    "fairveil demo --output census --seed 0",
    "fairveil demo --verbose",
    short="show all of it on made-up people",
)
app.add_typer(attribute)
app.add_typer(schema)
app.add_typer(door)
app.add_typer(ledger)


def main() -> None:
    """The console script: see `ending` for what it says and its exit status when something is
    wrong."""
    raise SystemExit(status_of(app))
