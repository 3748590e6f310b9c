"""Every reader of files, with files that the library wrote and ways to change them; what is read is
used, too.

A `Reader` makes one changed input from a seeded source and reads it. It raises errors of the
library's family, or nothing.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fuzz_mutations as change
import numpy as np
import pyarrow as pa

import fairveil as fv
import ways
from fairveil import data
from fairveil.cli.tables import Place
from fairveil.core.events import Gaussian
from fairveil.curator import Journal
from fairveil.data import (
    Category,
    Number,
    Schema,
    encode,
    open_store,
)
from fairveil.data.encoding import Encoding
from fairveil.estimators import files as estimator_files
from fairveil.ledger import Entry, findings
from fairveil.ledger.lines import DOCUMENT
from fairveil.models import files as model_files
from fairveil.models import npz
from fairveil.statement import form
from knobs import made

ROWS = 240
SCHEMA = Schema(
    {"a": Number(-1, 1), "b": Number(-1, 1), "w": Category(("u", "v")), "y": Category((0, 1))},
    target="y",
    sensitive="w",
    rows=ROWS,
)


@dataclass(frozen=True)
class Reader:
    """`make` changes an input; `read` reads and uses it."""

    name: str
    make: Callable[[random.Random], Any]
    read: Callable[[Any], None]


def fitted(*, all_kinds: bool) -> dict[str, Any]:
    """Small estimators: one of each way of being written, or one of each kind."""
    draw = np.random.default_rng(0)
    X, A = draw.uniform(-1, 1, (ROWS, 3)), draw.integers(0, 2, ROWS)
    y = (X[:, 0] + 0.3 * A > 0).astype(int)
    table = {"a": X[:, 0], "b": X[:, 1], "w": np.array(["u", "v"], object)[A]}
    common: dict[str, Any] = {"random_state": 0, "epsilon": 5.0, "delta": 1e-5, "public_rows": ROWS}
    parity = fv.DemographicParity(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = {
            "table": made(fv.FairClassifier, parity, solver=fv.PrimalDual(rounds=3), **common).fit(
                table, y, sensitive_features="w"
            ),
            "odds": made(fv.FairPostProcessor, constraints=parity, **common).fit(
                X, y, sensitive_features=A
            ),
            "objective": made(
                ways.objective,
                objective="gmean",
                solver=fv.GroupObjective(rounds=3),
                **common,
            ).fit(X, y, sensitive_features=A),
            "tailored": made(ways.tailored_regression, target_bounds=(0, 1), **common).fit(
                X, y.astype(float), sensitive_features=A
            ),
        }
        if not all_kinds:
            return out
        given = fv.EqualizedOdds(0.1)
        return out | {
            "schema": made(
                fv.FairClassifier,
                given,
                solver=fv.PrimalDual(rounds=3),
                schema=SCHEMA,
                **common,
            ).fit(table, y, sensitive_features="w"),
            "fermi": made(ways.fermi, solver=fv.PrimalDual(rounds=3), **common).fit(
                X, y, sensitive_features=A
            ),
            "game": made(ways.game, constraints=parity, rounds=3, **common).fit(
                X, y, sensitive_features=A
            ),
            "chosen": made(ways.objective, method="exponential", **common).fit(
                X, y, sensitive_features=A
            ),
            "regressor": made(ways.objective_regression, target_bounds=(0, 1), **common).fit(
                X, y.astype(float), sensitive_features=A
            ),
            "offsets": made(
                fv.FairPostProcessor,
                None,
                "demographic_parity:0.1",
                solver=fv.Offsets(rounds=3),
                **common,
            ).fit(X, y, sensitive_features=A),
            "descent": made(ways.tailored, solver=fv.Tailored(rounds=3), **common).fit(
                X, y, sensitive_features=A
            ),
        }


def readers(folder: Path, *, all_kinds: bool) -> list[Reader]:
    """All of them; `folder`: where files are put that are read by name."""
    written = {
        name: estimator_files.to_files(one) for name, one in fitted(all_kinds=all_kinds).items()
    }
    statements = [json.loads(files["statement.json"]) for files in written.values()]
    return [
        Reader(
            "statement", lambda draw: _statement(draw.choice(statements), draw), _read_statement
        ),
        _lines(),
        Reader(
            "model folder",
            lambda draw: _model(draw.choice(list(written.values())), draw),
            model_files.from_files,
        ),
        Reader(
            "estimator folder",
            lambda draw: _estimator(draw.choice(list(written.values())), draw),
            _read_estimator,
        ),
        _arrays(written["table"]["arrays.npz"]),
        *_schemas(folder),
        *_tables(folder),
        *_runs(folder),
    ]


# Statements, ledgers


def _statement(document: Any, draw: random.Random) -> str:
    if draw.random() < 0.15:
        return change.of_bytes(json.dumps(document).encode(), draw).decode("utf-8", "replace")
    changed = change.of_values(document, draw)
    if draw.random() < 0.8 and isinstance(changed, dict):
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            changed["checksum"] = form.checksum(changed)
    return change.of_text(json.dumps(changed), draw)


def _read_statement(text: str) -> None:
    statement = fv.PrivacyStatement.from_json(text)
    statement.check()
    statement.summary()
    statement.to_json()
    repr(statement)


def _lines() -> Reader:
    ledger = fv.Ledger.create(None, "people", epsilon=20, delta=1e-3)  # type: ignore[arg-type]
    ledger.reserve(Gaussian(5.0)).commit()
    ledger.reserve(Gaussian(50.0))
    document = {"entries": [line.to_dict() for line in ledger.history()]}

    def make(draw: random.Random) -> str:
        if draw.random() < 0.15:
            return change.of_bytes(json.dumps(document).encode(), draw).decode("utf-8", "replace")
        changed = copy.deepcopy(document)
        if draw.random() < 0.4:
            return change.json_text(changed, draw)
        previous = "0" * 64
        for line in changed["entries"]:
            if draw.random() < 0.3:
                line["content"] = json.dumps(change.of_values(json.loads(line["content"]), draw))
            line["previous"] = previous
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
                line["hash"] = previous = Entry(**line).digest()
        return change.of_text(json.dumps(changed), draw)

    def read(text: str) -> None:
        given = DOCUMENT.json(text)
        entries = given.get("entries") if isinstance(given, dict) else None
        findings(map(Entry.from_dict, entries if isinstance(entries, list) else []))

    return Reader("ledger lines", make, read)


# Models


def _sealed(files: dict[str, bytes]) -> dict[str, bytes]:
    """Checksums that fit, so that a change is reached and not only noticed."""
    for prefix in ("base.", ""):
        name = f"{prefix}estimator.json"
        if name not in files:
            continue
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            content = json.loads(files[name])
            for listed in list(content["sha256"]):
                if prefix + listed in files:
                    content["sha256"][listed] = hashlib.sha256(files[prefix + listed]).hexdigest()
            files[name] = json.dumps(content).encode()
    return files


def _with_arrays(files: dict[str, bytes], prefix: str, raw: bytes, draw: random.Random) -> None:
    files[f"{prefix}arrays.npz"] = raw
    content = json.loads(files[f"{prefix}model.json"])
    content["arrays_sha256"] = hashlib.sha256(raw).hexdigest()
    if draw.random() < 0.6:
        with contextlib.suppress(Exception):  # the archive is broken: what was declared stays
            content["arrays"] = change.described(raw)
    files[f"{prefix}model.json"] = json.dumps(content).encode()


def _model(given: dict[str, bytes], draw: random.Random) -> dict[str, bytes]:
    files = {name: given[name] for name in ("model.json", "arrays.npz")}
    if draw.random() < 0.5:
        _with_arrays(files, "", change.of_archive(files["arrays.npz"], draw), draw)
    else:
        files["model.json"] = _text(files["model.json"], draw)
    return files


def _text(raw: bytes, draw: random.Random) -> bytes:
    if draw.random() < 0.1:
        return change.of_bytes(raw, draw)
    return change.json_text(json.loads(raw), draw).encode("utf-8", "surrogatepass")


def _estimator(given: dict[str, bytes], draw: random.Random) -> dict[str, bytes]:
    files = dict(given)
    name = draw.choice(
        [name for name in files if not name.endswith("statement.json")] + ["estimator.json"]
    )
    if name.endswith("arrays.npz"):
        _with_arrays(
            files, name.removesuffix("arrays.npz"), change.of_archive(files[name], draw), draw
        )
    else:
        files[name] = _text(files[name], draw)
    return _sealed(files) if draw.random() < 0.95 else files


def _read_estimator(files: dict[str, bytes]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = estimator_files.from_files(files, None, None)
        X, groups = _rows_of(loaded)
        given = {} if groups is None else {"sensitive_features": groups}
        loaded.predict(X, **given)
        if hasattr(loaded, "predict_proba"):
            loaded.predict_proba(X, **given)
        repr(loaded)
        loaded.privacy_.summary()
        loaded.privacy_.to_json()
        for name in (
            "constraint_report_",
            "guarantee_",
            "tailoring_",
            "outcome_",
            "cells_",
            "certain_",
        ):
            value = getattr(loaded, name, None)
            str(value)
            if hasattr(value, "to_json"):
                value.to_json()


def _rows_of(loaded: Any) -> tuple[Any, Any]:
    """Two rows that an estimator should take, and groups of theirs where it reads them."""
    coding = getattr(loaded, "coding_", None)
    features = getattr(coding, "features", None)
    groups = None
    if getattr(loaded.model_, "reads_groups", False) and loaded.cells_ is not None:
        columns = {
            name: [values[0], values[-1]]
            for name, values in zip(loaded.cells_.names, loaded.cells_.columns, strict=True)
        }
        groups = (
            columns
            if len(columns) > 1 or not hasattr(loaded, "estimator_")
            else next(iter(columns.values()))
        )
    if hasattr(coding, "encoding"):
        listed = coding.encoding.schema
        cells = {name: listed.columns[name] for name in coding.encoding.features}
        return {
            name: [column.low] * 2 if isinstance(column, Number) else [column.values[0]] * 2
            for name, column in cells.items()
        }, groups
    if features is not None and any(feature.values is not None for feature in features):
        named = {
            feature.name: [0.0, 1.0] if feature.values is None else [feature.values[0]] * 2
            for feature in features
        }
        return named, groups
    return np.zeros((2, min(loaded.n_features_in_, 10_000))), groups


def _arrays(raw: bytes) -> Reader:
    facts = {
        name: (told["type"], tuple(told["shape"])) for name, told in change.described(raw).items()
    }

    def read(changed: bytes) -> None:
        npz.read(changed, facts, model_files.ARRAYS)

    return Reader("npz bytes", lambda draw: change.of_archive(raw, draw), read)


# Results, schemas


def _schemas(folder: Path) -> list[Reader]:
    as_json, as_toml = json.loads(SCHEMA.to_json()), SCHEMA.to_toml()
    coded = json.loads(json.dumps(Encoding(SCHEMA).to_dict()))

    def use(schema: Schema) -> None:
        schema.describe()
        schema.to_toml()
        schema.to_json()
        repr(schema)
        hash(schema.fingerprint)

    def toml(draw: random.Random) -> str:
        if draw.random() < 0.4:
            return change.of_bytes(as_toml.encode(), draw).decode("utf-8", "replace")
        lines = as_toml.splitlines()
        at = draw.randrange(len(lines))
        name, _, _ = lines[at].partition("=")
        values = [
            "9" * 5000,
            "inf",
            "nan",
            "[" * 900,
            "1979-05-27",
            "{a.b.c = 1}",
            "'x'",
            "[[1]]",
            "0x" + "f" * 40,
            "true",
            "-1",
            '"\\uD800"',
        ]
        lines[at] = draw.choice(
            [
                f"{name} = {draw.choice(values)}",
                lines[at] * 2,
                "a." * 2000 + "a = 1",
                "",
                f"[{'a.' * 300}a]",
            ]
        )
        return change.of_text("\n".join(lines), draw)

    def encoding(text: str) -> None:
        """As a coded store has it."""
        path, told = folder / "t.store", text.encode("utf-8", "surrogatepass")
        kept = pa.schema([], metadata={"fairveil_encoding": told})
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, kept):
            pass
        use(open_store(path).encoding.schema)

    def resealed(draw: random.Random) -> str:
        changed = change.of_values(coded, draw)
        with contextlib.suppress(Exception):  # what is no schema has no fingerprint
            changed["fingerprint"] = Schema.from_dict(changed["schema"]).fingerprint
        return change.of_text(json.dumps(changed), draw)

    return [
        Reader(
            "schema, JSON",
            lambda draw: change.json_text(as_json, draw),
            lambda text: use(Schema.from_json(text)),
        ),
        Reader("schema, TOML", toml, lambda text: use(Schema.from_toml(text))),
        Reader("encoding", resealed, encoding),
    ]


# Tables


def _tables(folder: Path) -> list[Reader]:
    import sqlite3

    import pyarrow as pa
    from pyarrow import parquet

    draw = random.Random(0)
    columns = {
        "a": [draw.uniform(-1, 1) for _ in range(60)],
        "b": [draw.uniform(-1, 1) for _ in range(60)],
        "w": [draw.choice("uv") for _ in range(60)],
        "y": [draw.choice((0, 1)) for _ in range(60)],
    }
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    text = "\n".join(lines).encode()
    parquet.write_table(pa.table(columns), folder / "table.parquet", row_group_size=25)
    columnar = (folder / "table.parquet").read_bytes()
    with contextlib.closing(sqlite3.connect(folder / "made.db")) as made, made:
        made.execute("create table people (a real, b real, w text, y integer)")
        made.executemany(
            "insert into people values (?, ?, ?, ?)", list(zip(*columns.values(), strict=True))
        )
    base = (folder / "made.db").read_bytes()
    encode(columns, SCHEMA, folder / "made.store", block_rows=25)
    stored = (folder / "made.store").read_bytes()

    def at(name: str, raw: bytes) -> Path:
        path = folder / name
        path.write_bytes(raw)
        return path

    def csv_bytes(draw: random.Random) -> tuple[str, bytes]:
        raw = change.of_bytes(text, draw)
        if draw.random() < 0.3:
            place = draw.randrange(len(raw) + 1)
            raw = (
                raw[:place]
                + draw.choice(
                    [
                        b'"',
                        b",",
                        b"\n",
                        b"\x00",
                        b"\xff",
                        b"\r",
                        b"1e999",
                        b"9" * 5000,
                        b'""',
                        b"\n\n",
                    ]
                )
                + raw[place:]
            )
        return draw.choice(["pyarrow", "columns"]), raw

    def read_csv(case: tuple[str, bytes]) -> None:
        engine, raw = case
        path = at("table.csv", raw)
        if engine == "columns":
            Place(str(path)).columns()
        else:
            for _ in data.open(path, SCHEMA).blocks():
                pass

    def read_parquet(case: tuple[bool, bytes]) -> None:
        path = at("changed.parquet", case[1])
        if case[0]:
            Place(str(path)).columns()
        else:
            for _ in data.open(path, SCHEMA).blocks():
                pass

    def read_store(raw: bytes) -> None:
        for block in open_store(at("changed.store", raw)).blocks():
            float(block.numbers.sum() + block.codes.sum())

    def read_database(raw: bytes) -> None:
        for _ in data.open(f"sqlite:///{at('changed.db', raw)}", SCHEMA, query="people").blocks():
            pass

    return [
        Reader("CSV", csv_bytes, read_csv),
        Reader(
            "Parquet",
            lambda draw: (draw.random() < 0.3, change.of_bytes(columnar, draw)),
            read_parquet,
        ),
        Reader("coded store", lambda draw: change.of_bytes(stored, draw), read_store),
        Reader("SQLite rows", lambda draw: change.of_bytes(base, draw), read_database),
    ]


# Runs


def _runs(folder: Path) -> list[Reader]:
    place = folder / "run"
    draw = np.random.default_rng(1)
    X, A = draw.uniform(-1, 1, (ROWS, 2)), draw.integers(0, 2, ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fv.FairClassifier(
            fv.DemographicParity(0.1), solver=fv.PrimalDual(rounds=4), random_state=0, epsilon=5.0,
            delta=1e-5, schema=fv.Schema(rows=ROWS), checkpoint=str(place),
        ).fit(X, (X[:, 0] > 0).astype(int), sensitive_features=A)  # fmt: skip
    journal = (place / "answers.jsonl").read_bytes()

    def of_journal(draw: random.Random) -> bytes:
        if draw.random() < 0.3:
            return change.of_bytes(journal, draw)
        lines = journal.splitlines(keepends=True)
        at = draw.randrange(len(lines))
        lines[at] = (
            change.json_text(json.loads(lines[at]), draw)
            .replace("\n", " ")
            .encode("utf-8", "surrogatepass")
            + b"\n"
        )
        return b"".join(lines)

    def read_journal(raw: bytes) -> None:
        path = folder / "journal.jsonl"
        path.write_bytes(raw)
        found = Journal(path)
        repr((found.entries, found.bounds, found.marks, found.ledger, found.is_secure))

    return [Reader("journal", of_journal, read_journal)]
