"""`fairveil ledger import`: charge a budget what another library spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from ..statement.importing import Imported


def bring_in(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="what was spent, as JSON (docs/other_libraries.md)"),
    ],
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="URL", help="a file, or postgresql://...", show_default=options.LEDGER_VARIABLE
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", metavar="NAME", help="charge this budget, where there are several"
        ),
    ] = None,
    purpose: Annotated[
        str | None, typer.Option("--purpose", metavar="WORDS", help="record what it was for")
    ] = None,
    fixed: Annotated[
        bool,
        typer.Option(
            "--fixed-in-advance",
            help="all its parameters, and when to stop, were fixed before it saw the data",
        ),
    ] = False,
    look: Annotated[
        bool, typer.Option("--look", help="show what it costs, and charge nothing")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Charge a budget what another library has spent: opacus, dp_accounting or jax_privacy,
    or any library whose event the file names.

    Exit status: 0 charged, 2 refused: then nothing was written.
    """
    from ..errors import InputError, within
    from ..ledger import Ledger
    from ..statement.importing import read_import
    from .ledger_words import place_of_ledger
    from .printing import print_json

    try:
        found = read_import(file)
    except InputError as error:
        raise type(error)(within(str(file), error)) from None
    ledger = Ledger.open(place_of_ledger(url), dataset, read_only=look)
    options.require_words(purpose=purpose)
    fits = ledger.fits(found.events, found.promise(ledger), fixed=fixed)
    line = None if look else found.record(ledger, purpose or "", fixed_in_advance=fixed).entry
    price = found.price(ledger.promise.delta)
    if json:
        told = {
            "library": found.library,
            "neighbours": found.neighbours,
            "notes": list(found.notes),
        }
        print_json(
            {
                **told,
                "epsilon": price.epsilon,
                "delta": price.delta,
                "dataset": ledger.dataset,
                "line": line,
                "fits": fits,
            }
        )
        return
    typer.echo(
        "\n".join(_words(found, ledger.dataset, ledger.shown, price.epsilon, price.delta, line))
    )
    if look:
        typer.echo("The budget suffices for it." if fits else "The budget does not suffice for it.")
    typer.echo(str(ledger.balance()))


def _words(
    found: Imported, dataset: str, shown: str, epsilon: float, delta: float, line: int | None
) -> list[str]:
    from ..privacy.shown import at_most
    from ..show.numbers import delta_words

    head = (
        f"Charged: line {line} of {dataset} in {shown}"
        if line is not None
        else f"Not charged: {dataset} in {shown}"
    )
    alone = (
        f"alone, epsilon = {at_most(epsilon)} at delta = {delta_words(delta)} ({found.neighbours})"
    )
    return [head, f"{found.library}: {alone}", *(f"note: {note}" for note in found.notes)]
