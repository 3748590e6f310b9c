"""Commands about tables before a model: `schema`, `release-groups`."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .._reading import write_files
from .._waiting import waiting
from ..errors import nearest, together
from .files import on_one_line, opened, passphrase, print_facts, spending, working, written
from .frame import Ask, command, lines, no, parts, wrong

MOST_LISTED = 50
READ = "read from the rows: public only if you know that it is"
REMARKS = {
    "kind": "number (add low and high), category (add values), boolean or ignored",
    "low": "smallest value that may occur, from public knowledge",
    "high": "largest value that may occur, from public knowledge",
    "values": 'every value that may occur, as in ["no", "yes"]',
}
DRAFT = """\
# The public facts of {}. Fill in every "?" from public knowledge (a
# scale, a law, a code book), never from the rows: privacy does not cover what is read
# from them.
fairveil_schema = 1
name = {}
{}
target = {}  # the column to predict
sensitive = {}  # the columns that make the groups; [] for none
"""
BLANK = """\
# source = "where these facts come from"
# rows = 10000  # about how many rows there are, if that is public"""

parts("schema", "Data", "Public facts of a table in a file: begin one, check one.")


@command(
    "Data",
    "TABLE --out=schema.toml --target --sensitive | --public --query --force",
    "fairveil schema init people.csv --out people.toml",
    "fairveil schema init people.parquet --target hired --sensitive sex",
    "fairveil schema init people.db --query people --public --out people.toml",
    name="schema init",
)
def schema_init(ask: Ask) -> None:
    """Write a schema with the columns' names and kinds, and blanks ("?") for bounds, values and roles.

    It reads no row: names come from a header or a catalogue, kinds from the types of Parquet and SQL.
    `fairveil fit` refuses the file, and names every blank, until all are filled in.

    Exit status: 0 written, 2 refused.
    """
    from .tables import Place, picked

    place = Place(ask.table, ask.query)
    known = place.kinds()
    picked(known, [ask.target] if ask.target else [], place.shown, "target")
    picked(known, ask.sensitive, place.shown, "sensitive")
    with waiting("Reading the table"):
        values = place.columns() if ask.public else None
    columns = {
        name: _blank(kind) if values is None else _read(values[name])
        for name, kind in known.items()
    }
    left = sum(list(options.values()).count("?") for options, _ in columns.values())
    left += (ask.target is None) + (not ask.sensitive)
    rows = None if values is None else len(next(iter(values.values())))
    name = Path(place.shown).stem if ask.query is None else "rows"
    write_files({ask.out: "".join(_draft(name, columns, ask, rows))})
    todo = 'fill in every "?"' if left else "look at every bound and value"
    again = f"{shlex.quote(str(ask.out))} {shlex.quote(place.shown)}"
    query = "" if ask.query is None else f" --query {shlex.quote(ask.query)}"
    print_facts(
        ("written", f"{ask.out} ({len(columns)} columns, {left} blanks)"),
        ("next", f"{todo}, then run: fairveil schema check {again}{query}"),
    )


def _blank(kind: str | None) -> tuple[dict[str, Any], str]:
    """The options of a column of which the kind is known, or nothing."""
    more = {"number": ("low", "high"), "category": ("values",)}.get(kind or "", ())
    return {"kind": kind or "?", **dict.fromkeys(more, "?")}, ""


def _read(seen: Any) -> tuple[dict[str, Any], str]:
    """The options of a column whose values are public, and a remark."""
    from ..tables.columns import is_missing

    known = [value for value in seen.tolist() if not is_missing(value)]
    if seen.dtype.kind == "b":
        return {"kind": "boolean"}, READ
    if seen.dtype.kind in "iuf":
        known = [value for value in known if math.isfinite(value)]
        low, high = (min(known), max(known)) if known else (0, 0)
        if low < high:
            return {"kind": "number", "low": float(low), "high": float(high)}, READ
        return {"kind": "?"}, "one value in all rows, or none"
    listed = sorted(set(known), key=str)
    if 0 < len(listed) <= MOST_LISTED:
        return {"kind": "category", "values": listed}, READ
    return {"kind": "?"}, f"{len(listed):,} distinct values: ignored, or a category?"


def _draft(name: str, columns: Mapping[str, Any], ask: Ask, rows: int | None) -> Iterator[str]:
    """The file, a column at a time."""
    from ..facts.toml_text import value_text as text

    read = f'source = "read from the rows, which are public"\nrows = {rows}  # {READ}'
    roles = text(ask.target or "?"), text(list(ask.sensitive) or ["?"])
    yield DRAFT.format(on_one_line(name), text(name), read if ask.public else BLANK, *roles)
    for column, (options, remark) in columns.items():
        yield f"\n[[columns]]{f'  # {remark}' if remark else ''}\nname = {text(column)}\n"
        for option, value in options.items():
            yield f"{option} = {text(value)}{f'  # {REMARKS.get(option)}' * (value == '?')}\n"


@command(
    "Data",
    "SCHEMA TABLE? | --query",
    "fairveil schema check people.toml",
    "fairveil schema check people.toml people.csv",
    "fairveil schema check people.toml people.db --query people",
    name="schema check",
)
def schema_check(ask: Ask) -> None:
    """Check that a schema is whole, and with a table that its columns are there; name all that is wrong
    at once. It reads no row of the table.

    Exit status: 0 whole, 1 something is wrong or left blank, 2 unreadable.
    """
    from .tables import Place, SchemaFileError, facts_of, wrong_file

    there = None
    try:
        found = facts_of(ask)
        if ask.table is not None:
            there, fix = Place(ask.table, ask.query).kinds(), "Rename it in the schema, or drop it."
            missing = []
            for name, column in found.columns.items():
                if column.kind != "ignored" and name not in there:
                    error = wrong(ask.table, f"a column {name}", "none of that name", fix)
                    error.args[0].nearest = nearest(name, there)
                    missing.append(error)
            if missing:
                raise wrong_file(ask.schema, together(missing))
    except SchemaFileError as error:
        print(*lines(error, ["schema", "check"]), sep="\n", file=sys.stderr)
        no()
    roles = f"target {found.target or 'none'}; groups of {', '.join(found.sensitive) or 'none'}"
    print_facts(("schema", f"whole: {len(found.columns)} columns, {roles}"))
    if there is not None:
        unread = ", ".join(name for name in there if name not in found.columns)
        others = f"not read: {unread}" if unread else "no other column"
        print_facts(("table", f"{ask.table} has them all; {others}"))


@command(
    "Data",
    """TABLE --out! --schema --target --sensitive --epsilon=1.0 | --delta=0
    --protects=sensitive-features --query --key --note@key --seed --ledger --dataset
    --purpose --force""",
    "fairveil release-groups t.csv --schema t.toml --out groups.json",
    "fairveil release-groups t.csv --schema t.toml --epsilon 0.5 --key holder.key --out groups.json",
)
def release_groups(ask: Ask) -> None:
    """Release how many people of each group are in each public cluster, once, for any number of models
    at no further cost: fit(X, y, sensitive_features=ReleasedGroups.load(OUT)).

    Features and the target are public, and only the sensitive columns are protected. The release is
    one file, which may be signed.

    Exit status: 0 written; 2 refused, nothing written or spent; 3 spent, but written elsewhere, which
    is named on standard error.
    """
    from ..estimators import release_groups as release
    from ..statement import signing
    from .tables import Place, rows_of, with_roles

    private = None if ask.key is None else signing.private_key(ask.key, passphrase)
    book, done, schema = opened(ask), list[Any](), with_roles(ask)
    with waiting("Reading the table"):
        rows = rows_of(schema, Place(ask.table, ask.query))

    def save(to: Path) -> None:
        done[0]._written(to, private, ask.note)

    promise: Any = ask.named("epsilon delta protects")
    with spending(ask, None, lambda: done[0].privacy if done else None, save, book):
        with working("Releasing"):
            done.append(release(rows, ledger=book, random_state=ask.seed, **promise))
        save(ask.out)
    signed, check = ("not signed", "") if private is None else ("signed", " --key PUBLIC_KEY")
    print_facts(
        ("groups", ", ".join(map(str, done[0].groups))),
        ("clusters", f"{done[0].clusters.count} of public rows"),
        *written(ask.out, signed, done[0].privacy, book, check),
    )
