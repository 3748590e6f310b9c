"""`fairveil monitor`: does it still hold? One more period of decisions, counted once with noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .completing import NOTIONS, bounded
from .helping import DATA, FAIRNESS, OUTPUT, PRIVACY

if TYPE_CHECKING:
    from ..estimators import Monitor

GROUP = "COLUMN:VALUE,VALUE"


def monitor(
    state: Annotated[
        Path,
        typer.Argument(
            metavar="STATE",
            help="the file that keeps the monitor",
            show_default=False,
            rich_help_panel=DATA,
        ),
    ],
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE",
            help="the period's rows: CSV, Parquet, or a database with --query; none shows what is "
            "known",
            show_default=False,
            rich_help_panel=DATA,
        ),
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="count TABLE as this period, which is new", rich_help_panel=DATA
        ),
    ] = None,
    prediction: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="take the decisions in this column", rich_help_panel=DATA
        ),
    ] = None,
    target: options.Target = None,
    query: options.Query = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            "--constraint",
            metavar="NAME:BOUND",
            help="begin a monitor of this bound, as in demographic_parity:10%; repeat for more",
            rich_help_panel=FAIRNESS,
            autocompletion=bounded(*NOTIONS),
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar=GROUP,
            help="begin with these groups; repeat for more columns",
            rich_help_panel=FAIRNESS,
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="VALUE,VALUE",
            help="begin with these classes",
            rich_help_panel=FAIRNESS,
        ),
    ] = None,
    false_alarm: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="begin with this probability of a false alarm over the whole run",
            show_default="0.05",
            rich_help_panel=FAIRNESS,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="begin with this privacy budget of the whole stream, whose people are in one "
            "period each, unless there is --unit",
            show_default=False,
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="begin with this delta: well below 1/rows",
            show_default="0",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="begin with this column, which tells persons apart who may come back",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    max_periods_per_unit: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="begin with this number of periods in which a person may be at most",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    seed: options.Seed = None,
    ledger: options.LedgerUrl = None,
    dataset: options.LedgerDataset = None,
    purpose: options.Purpose = None,
    json: Annotated[
        bool, typer.Option("--json", help="print JSON", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Watch decisions after release: count each period once with noise, and raise an alarm when a
    constraint broke.

    Exit status: 0 no alarm; 1 alarm; 2 refused, nothing counted.
    """
    from ..errors import InputError
    from ..estimators import Monitor
    from .ledger_option import opened

    begins = constraint is not None
    if not begins:
        given = {
            "--group": group,
            "--classes": classes,
            "--false-alarm": false_alarm,
            "--epsilon": epsilon,
            "--delta": delta,
            "--unit": unit,
            "--max-periods-per-unit": max_periods_per_unit,
            "--ledger": ledger or None,
            "--dataset": dataset,
            "--purpose": purpose,
        }
        for option, value in given.items():
            if value is not None:
                remedy = (
                    "It is fixed when a monitor begins; add --constraint demographic_parity:10% to "
                    "begin one."
                )
                raise InputError.expected(
                    "--constraint beside it", of=option, got="none", remedy=remedy, quote=False
                )
    if table is not None and (period is None or prediction is None):
        of = "--period" if period is None else "--prediction"
        remedy = "Say --period 2026-05 --prediction decided, for example."
        raise InputError.expected(
            "a value beside TABLE", of=of, got="none", remedy=remedy, quote=False
        )
    if begins:
        book = opened(ledger, dataset, purpose)
        wanted = {
            "false_alarm": 0.05 if false_alarm is None else false_alarm,
            "delta": 0.0 if delta is None else delta,
        }
        found = Monitor.create(
            state,
            constraint,
            groups=_groups(group or []),
            classes=_values(classes or ""),
            epsilon=epsilon,
            ledger=book,
            unit=unit,
            max_periods_per_unit=max_periods_per_unit,
            **wanted,
        )
    else:
        found = Monitor.open(state)
    if table is not None and period is not None and prediction is not None:
        _add(found, table, query, period, prediction, target, seed)
    typer.echo(found.to_json() if json else str(found), nl=not json)
    if found.alarm is not None:
        raise typer.Exit(1)


def _add(
    found: Monitor,
    table: str,
    query: str | None,
    period: str,
    prediction: str,
    target: str | None,
    seed: int | None,
) -> None:
    from .._waiting import waiting
    from .tables import picked

    place = options.place_of(table, query)
    with waiting("Counting"):
        labels = [] if target is None else [target]
        unit = found.promise.unit
        whose = [] if unit is None else [unit.name]
        names = (*found.cells.names, prediction, *labels)
        columns = place.columns(
            [name for name in names if _are_words(found, name, prediction, target)],
            only={*names, *whose},
        )
        picked(columns, [prediction], place.shown, "--prediction")
        picked(columns, labels, place.shown, "--target")
        groups = picked(columns, found.cells.names, place.shown, "--group")
        y = None if target is None else columns[target]
        persons = picked(columns, whose, place.shown, "--unit")
        found.add(
            period,
            columns[prediction],
            None,
            y,
            sensitive_features=groups,
            random_state=seed,
            unit=persons or None,
        )


def _are_words(found: Monitor, name: str, prediction: str, target: str | None) -> bool:
    """Whether the monitor has texts there: a table's numbers are then read as texts, too."""
    values = (
        found.classes
        if name in (prediction, target)
        else found.cells.columns[found.cells.names.index(name)]
    )
    return all(isinstance(value, str) for value in values)


def _groups(texts: list[str]) -> dict[str, list[object]]:
    from ..errors import InputError

    out = {}
    for text in texts:
        name, colon, values = text.partition(":")
        if not colon or not name.strip() or not values.strip():
            remedy = "Say --group sex:f,m: a column and its values, which are public."
            raise InputError.expected("COLUMN:VALUE,VALUE", of="--group", got=text, remedy=remedy)
        out[name.strip()] = _values(values, "--group")
    if not out:
        remedy = "Say --group sex:f,m: a column and its values, which are public."
        raise InputError.expected("groups", of="--group", got="none", remedy=remedy, quote=False)
    return out


def _values(text: str, of: str = "--classes") -> list[object]:
    """Whole numbers where all of them are, else texts."""
    from ..errors import InputError

    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        remedy = "Say --classes 0,1 --group sex:f,m, for example."
        raise InputError.expected("values", of=of, got="none", remedy=remedy, quote=False)
    numbers = [word.removeprefix("-").isdecimal() for word in words]
    return [int(word) for word in words] if all(numbers) else list(words)
