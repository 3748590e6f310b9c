"""`fairveil audit-privacy`: how much do the releases of a mechanism give away? From fits of tables
that are made up."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import fit_options as asking
from . import options
from .helping import DATA, MEASURED, OUTPUT, PRIVACY

if TYPE_CHECKING:
    from ..facts import Schema


def audit_privacy(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="a model's folder; a method of `fairveil fit`, as rate-constrained; or "
            "module:function, which fits a table",
            show_default=False,
            rich_help_panel=DATA,
        ),
    ],
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            help="make tables of these public facts",
            show_default="the model's own",
            rich_help_panel=DATA,
        ),
    ] = None,
    minutes: Annotated[
        float, typer.Option(metavar="NUMBER", help="take about so long", rich_help_panel=MEASURED)
    ] = 10.0,
    trials: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="run so many pairs instead, so that a seed repeats the audit",
            show_default=False,
            rich_help_panel=MEASURED,
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="refute a true claim with probability at most one minus this",
            rich_help_panel=MEASURED,
        ),
    ] = 0.95,
    power: Annotated[
        bool,
        typer.Option(
            "--power/--no-power",
            help="plant bugs beside, to say what would have been found",
            rich_help_panel=MEASURED,
        ),
    ] = True,
    constraint: asking.Constraint = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="set what a method or a function claims",
            show_default="1 for a method",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    delta: options.Delta = 1e-6,
    protects: options.Protects = "records",
    neighbours: options.Neighbours = None,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="set the seed of tables and runs", rich_help_panel=PRIVACY),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="write the result (.json), the picture (.svg) or a page (.html)",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    statement: Annotated[
        Path | None,
        typer.Option(
            "--statement",
            metavar="FILE",
            help="write the statement of a model's folder, with this audit in it",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="print the result as JSON", rich_help_panel=OUTPUT)
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="replace a file that is there", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Audit the privacy of a mechanism: run it many times on made-up neighbours, and hold what it
    leaks against its claim.

    It reads no table and spends nothing. An audit is no proof.

    Exit status: 0 the claim was not refuted; 1 it was; 2 refused.
    """
    from ..audit import run
    from ..errors import InputError
    from .folders import require_file

    if out is not None:
        if out.suffix.lower() not in (".json", ".svg", ".html"):
            remedy = "--out audit.json for the result, --out audit.svg or --out audit.html"
            raise InputError.expected(
                "a file ending in .json, .svg, .html", of="--out", got=str(out), remedy=remedy
            )
        require_file(out, force=force)
    if statement is not None:
        require_file(statement, force=force)
    facts = None if schema is None else options.schema_of(schema)
    said: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "protects": options.protection(protects),
        "neighbours": neighbours,
    }
    attacked = _attacked(target, facts, constraint, said)
    from ..estimators.reading.fitted_parts import parts_of

    own = parts_of(attacked).privacy
    if statement is not None and own is None:
        remedy = "Name the folder of a saved model, whose statement then has the audit in it."
        raise InputError.expected(
            "a model with a statement", of="--statement", got=target, remedy=remedy
        )
    with options.warnings_as_notes():
        found = run(
            attacked,
            schema=facts,
            minutes=minutes,
            trials=trials,
            confidence=confidence,
            power=power,
            seed=seed,
            **(said if callable(attacked) else {}),
        )
    told = None if own is None else found.attach(own)
    if out is not None and out.suffix.lower() == ".html":
        from ..show.report import Report

        subject = f"{found.target}, run many times on rows that were made up: nobody's were read."
        sections = (("What an audit found", found),)
        Report("Audit of privacy", subject, statement=told, sections=sections).write(out)
    elif out is not None:
        out.write_text(
            found.chart().to_svg() if out.suffix.lower() == ".svg" else found.to_json(),
            encoding="utf-8",
        )
    if statement is not None and told is not None:
        statement.write_text(told.to_json(), encoding="utf-8")
    if json:
        from .printing import print_json

        print_json(found.to_dict())
    else:
        from .printing import Fact, print_facts

        print_facts([Fact(label, words) for label, words in found.facts()])
    for written in (out, statement):
        if written is not None:
            typer.echo(f"Written: {written}", err=json)
    if found.refuted:
        raise typer.Exit(1)


def _require(schema: Schema | None) -> None:
    from ..errors import InputError

    if schema is None:
        remedy = (
            "--schema FILE: tables are made of its public facts; fairveil schema init writes one"
        )
        raise InputError.expected("a schema", of="--schema", got=None, remedy=remedy)


def _attacked(
    target: str, schema: Schema | None, constraint: list[str] | None, said: dict[str, Any]
) -> Any:
    """An estimator, of a folder or a method, or a function."""
    from ..errors import InputError
    from .method_options import FitOptions
    from .methods import METHODS

    if target in METHODS:
        _require(schema)
        chosen = METHODS[target]
        asked = chosen.with_model(
            chosen.asked(FitOptions(constraint, None, None, None, None)), "linear", None
        )
        return chosen.built(
            **asked.arguments,
            **{**said, "epsilon": 1.0 if said["epsilon"] is None else said["epsilon"]},
            schema=schema,
        )
    if constraint:
        remedy = "Leave it out: a folder and a function say that themselves."
        raise InputError.expected(
            "none beside this target", of="--constraint", got=constraint[0], remedy=remedy
        )
    module, colon, name = target.partition(":")
    if colon and not Path(target).exists():
        _require(schema)
        return _function(module, name, target)
    from .deciding import loaded

    return loaded(Path(target))


def _function(module: str, name: str, target: str) -> Any:
    """`module:function`, from this folder or what is installed."""
    from ..errors import InputError

    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name, None)
    except (ImportError, ValueError, TypeError):
        found = None
    finally:
        sys.path.pop(0)
    if not callable(found):
        remedy = "Name a function that can be imported here, as mine:fit in mine.py."
        raise InputError.expected("a function", of="TARGET", got=target, remedy=remedy)
    return found
