"""Commands about tables before a model: `schema`, `encode`, `release-groups`."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._waiting import waiting
from ..errors import nearest, together
from .files import (
    already_charged,
    named,
    opened,
    passphrase,
    print_facts,
    require_files,
    require_words,
    warnings_as_notes,
    write_file,
    written,
)
from .frame import Ask, SchemaFileError, command, lines, no, parts, wrong
from .roles import Roles, schema_of, wrong_file

if TYPE_CHECKING:
    from ..facts import Schema

MOST_LISTED = 50
READ = "read from the rows: public only if you know that it is"
REMARKS = {
    "kind": "number (add low and high), category (add values), boolean or ignored",
    "low": "smallest value that may occur, from public knowledge",
    "high": "largest value that may occur, from public knowledge",
    "values": 'every value that may occur, as in ["no", "yes"]',
}

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
    require_files(ask.out, force=ask.force, endings=(".toml",))
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
    write_file(ask.out, "\n".join(_draft(name, columns, ask, rows)) + "\n")
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
    from ..tables.raw import is_missing

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
    """The file, a line at a time."""
    from ..facts.toml_text import value_text
    from .files import on_one_line

    yield f'# The public facts of {on_one_line(name)}. Fill in every "?" from public knowledge (a'
    yield "# scale, a law, a code book), never from the rows: privacy does not cover what is read"
    yield "# from them."
    yield f"fairveil_schema = 1\nname = {value_text(name)}"
    if ask.public:
        yield f'source = "read from the rows, which are public"\nrows = {rows}  # {READ}'
    else:
        yield '# source = "where these facts come from"'
        yield "# rows = 10000  # about how many rows there are, if that is public"
    yield f"target = {value_text(ask.target or '?')}  # the column to predict"
    groups = value_text(list(ask.sensitive) or ["?"])
    yield f"sensitive = {groups}  # the columns that make the groups; [] for none"
    for column, (options, remark) in columns.items():
        yield "\n[[columns]]" + (f"  # {remark}" if remark else "")
        yield f"name = {value_text(column)}"
        for option, value in options.items():
            yield f"{option} = {value_text(value)}" + f"  # {REMARKS.get(option)}" * (value == "?")


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
    try:
        found = schema_of(ask.schema)
        there = None
        if ask.table is not None:
            from .tables import Place

            there = Place(ask.table, ask.query).kinds()
            _require_columns(found, there, ask)
    except SchemaFileError as wrong:
        print(*lines(wrong, ["schema", "check"]), sep="\n", file=sys.stderr)
        no()
    roles = f"target {found.target or 'none'}; groups of {', '.join(found.sensitive) or 'none'}"
    print_facts(("schema", f"whole: {len(found.columns)} columns, {roles}"))
    if there is not None:
        unread = ", ".join(name for name in there if name not in found.columns)
        others = f"not read: {unread}" if unread else "no other column"
        print_facts(("table", f"{ask.table} has them all; {others}"))


def _require_columns(schema: Schema, there: Mapping[str, Any], ask: Ask) -> None:
    missing = [
        name
        for name, column in schema.columns.items()
        if column.kind != "ignored" and name not in there
    ]
    found = []
    for name in missing:
        fix = "Rename it in the schema, or take it out."
        error = wrong(str(ask.table), f"a column {name}", "none of that name", fix)
        error.args[0].nearest = nearest(name, there)
        found.append(error)
    if found:
        raise wrong_file(ask.schema, together(found))


@command(
    "Data",
    "TABLE --out! --schema! | --query --float32 --force",
    "fairveil encode t.parquet --schema t.toml --out people.store",
    "fairveil encode t.csv --schema t.toml --float32 --out people.store",
    "fairveil encode people.db --query people --schema t.toml --out people.store",
)
def encode(ask: Ask) -> None:
    """Code a large table by its schema, once, into a file that `fit`, `predict` and the library read
    in place of the table.

    The file is a copy of the rows, readable by its owner alone; delete it when it is no longer needed.

    Exit status: 0 written; 2 refused, nothing written.
    """
    known = schema_of(ask.schema)
    from ..data import encode as encode_rows
    from .tables import Place

    place = Place(ask.table, ask.query)
    place.kind()
    with waiting("Coding the table"):
        store = encode_rows(
            place.address,
            known,
            ask.out,
            query=ask.query,
            precision="float32" if ask.float32 else "float64",
            overwrite=ask.force,
        )
    print_facts(
        ("written", f"{ask.out} ({store.nbytes / 2**20:,.1f} MiB, readable by its owner alone)"),
        ("use", f"fairveil fit {ask.out} --schema {ask.schema} ...; delete the file afterwards"),
    )


@command(
    "Data",
    """TABLE --out --schema --target --sensitive --epsilon=1.0 --attribute --id | --delta=0
    --protects=sensitive-features --clusters --query --ignore --ids --unmatched --attribute-query
    --count --key --note --seed --ledger --dataset --purpose --force""",
    "fairveil release-groups t.csv --schema t.toml --out groups.json",
    "fairveil release-groups t.csv --schema t.toml --epsilon 0.5 --key holder.key --out groups.json",
    "fairveil release-groups t.csv --attribute a.csv --id id --schema t.toml --out groups.json",
)
def release_groups(ask: Ask) -> None:
    """Release how many people of each group are in each public cluster, once, for any number of models
    at no further cost: fit(X, y, sensitive_features=ReleasedGroups.load(OUT)).

    Features and the target are public, and only the sensitive columns are protected. The release is
    one file, which may be signed. With --attribute the columns are joined by --id from a table of
    yours.

    Exit status: 0 written (with --count: some rows have an entry); 1 none has; 2 refused, nothing
    written or spent; 3 spent, but written elsewhere, which is named on standard error.
    """
    joins = ask.attribute is not None
    missing = next(
        (name for name in ("id", "schema") if joins and getattr(ask, name) is None), None
    )
    missing = missing or ("out" if ask.out is None and not ask.count else None)
    if missing is not None:
        remedy = f"Pass --{missing}."
        raise wrong(missing, "a value", None, remedy)
    beside = [] if joins else list(named(ask, "id ids attribute_query unmatched"))
    if (beside or ask.count) and not joins:
        remedy = "Pass --attribute FILE, or leave it out."
        of = beside[0] if beside else "count"
        raise wrong(of, "--attribute beside it", "none", remedy)
    if ask.note is not None and ask.key is None:
        remedy = "Name the key that signs."
        raise wrong("note", "--key beside it", "none", remedy)
    require_words(note=ask.note)
    how: dict[str, Any] = {"unmatched": "group"}
    how |= {"ids": None, "query": None, "attribute_query": None}
    how |= named(ask, "id ids query attribute_query unmatched")
    if ask.count:
        _count_entries(ask, how)
        return
    require_files(ask.out, force=ask.force)
    from ..estimators import release_groups as release
    from ..statement import signing

    private = None if ask.key is None else signing.private_key(ask.key, passphrase)
    book, done = opened(ask), list[Any]()
    rows, groups = _to_release(ask, how)

    def paid() -> Any:
        return done[0].privacy if done else None

    def save(to: Path) -> None:
        done[0]._written(to, private, ask.note)

    promise: Any = {**groups, **named(ask, "epsilon delta protects clusters")}
    with already_charged(ask.out, paid, save, book):
        with warnings_as_notes(), waiting("Releasing"):
            done.append(release(*rows, ledger=book, random_state=ask.seed, **promise))
        save(ask.out)
    signed, check = ("not signed", "") if private is None else ("signed", " --key PUBLIC_KEY")
    print_facts(
        ("groups", ", ".join(map(str, done[0].groups))),
        ("clusters", f"{done[0].clusters.count} of public rows"),
        *written(ask.out, signed, done[0].privacy, book, check),
    )


def _count_entries(ask: Ask, how: Mapping[str, Any]) -> None:
    from ..data.joined import matched

    with waiting("Joining the tables"):
        found = matched(ask.table, ask.attribute, schema_of(ask.schema), **how)
    print_facts(
        ("matched", f"{found.matched:,} of {found.rows:,} rows have an entry"),
        ("unused", f"{found.unused:,} entries belong to no row"),
        ("private", "these counts are exact, and for you alone: they are part of no release"),
    )
    if not found.matched:
        no()


def _to_release(ask: Ask, how: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Rows and groups of one table, or of two that are joined, for whoever holds the sensitive
    attribute of another's table."""
    if ask.attribute is not None:
        from ..data import load_joined

        with waiting("Joining the tables"):
            return (load_joined(ask.table, ask.attribute, schema_of(ask.schema), **how),), {}
    from .rows import sample_of
    from .tables import Place

    roles = Roles.of(schema_of(ask.schema), ask.target, ask.sensitive, ask.ignore)
    with waiting("Reading the table"):
        X, y, groups = sample_of(roles, Place(ask.table, ask.query)).fit_arguments
    return (X, y), {"sensitive_features": groups}
