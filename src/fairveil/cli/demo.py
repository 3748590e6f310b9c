"""`fairveil demo`: what privacy costs, and a private fairness table of a census beside the exact one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from ..privacy.events import Event

DELTA = 1e-6


def demo(
    output: Annotated[Path, typer.Option(help="The folder for statement.json.")] = Path("demo"),
    epsilon: Annotated[float, typer.Option(help="What the fairness table may cost.")] = 1.0,
    seed: Annotated[int | None, typer.Option(help="Repeatable noise, stamped insecure. Without it: secure noise.")] = None,
) -> None:
    """Show the accountant, and a private fairness table of the census data set Adult with its privacy statement."""
    from rich.console import Console

    console = Console(highlight=False, width=max(100, Console().width))
    _show_prices(console)


def _plans() -> list[tuple[str, str, Event]]:
    from ..privacy.events import Gaussian, PoissonSampled, Repeated

    full: list[tuple[str, str, Event]] = [
        (f"{steps} passes over all rows", f"{multiplier:g}", Repeated(Gaussian(multiplier), steps))
        for steps, multiplier in ((1, 5.0), (100, 50.0), (200, 70.0), (200, 140.0))
    ]
    batches: list[tuple[str, str, Event]] = [
        (
            f"{steps} random batches of {rate:.0%}",
            f"{multiplier:g}",
            Repeated(PoissonSampled(rate, Gaussian(multiplier)), steps),
        )
        for steps, rate, multiplier in ((500, 0.02, 1.0), (500, 0.02, 2.0), (2000, 0.01, 1.0))
    ]
    return full + batches


def _show_prices(console: Console) -> None:
    from rich.table import Table

    from ..privacy import NEIGHBOURS, price

    table = Table(title=f"What answers cost: epsilon at delta = {DELTA:g}, whole records", title_justify="left")
    for heading in ("plan", "noise multiplier", *NEIGHBOURS, "computed by"):
        table.add_column(heading, justify="left" if heading in ("plan", "computed by") else "right")
    for plan, multiplier, event in _plans():
        prices = [price(event, DELTA, neighbours) for neighbours in NEIGHBOURS]
        routes = dict.fromkeys(one.route for one in prices)
        table.add_row(plan, multiplier, *(f"{one.epsilon:.3f}" for one in prices), " / ".join(routes))
    console.print(table)
    console.print(
        "A multiplier is the noise's standard deviation over how far one person moves the sum; for random batches it is over\n"
        "one row's largest contribution, and to replace a row moves the sum twice as far: that relation costs more.\n"
    )
