"""`holder.toml`: what a holder serves, read strictly before anything is opened.

    [door]
    name = "Census office"
    folder = "door"                 # tokens, runs and their replies
    signing_key = "holder.key"

    [datasets.applicants]
    rows = "applicants.csv"         # or a Parquet file, a coded store, a database with query =
    schema = "applicants.toml"
    ledger = "budget.db"            # or postgresql://...
    attribute = "register.csv"      # where the sensitive columns lie in another table:
    id = "person"                   # joined by this column
    weights = "design_weight"       # a column that is no feature
    terms = "For the study of 2026 alone."

Guarantees (tests/serving/test_serving_holder.py):
1. Unknown names and values of another type are refused with their place, before a file is written
   or a port opened.
2. Plain HTTP is served to this machine alone, or behind a proxy that was named.
3. A certificate that cannot be served with is told with its cause before a row is read.
4. A joined attribute is served under ledgers of sensitive features alone: features and labels came
   from somebody else.
5. Each row has the weight of its own line. A missing, negative or infinite weight is refused before
   anything is served, by the number of its row alone.
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._json import Document, Node
from .._reading import MIB, read_text
from ..core.promise import Promise
from ..data import EncodedRows, load_joined, write_store
from ..data import open as open_rows
from ..data.coding import Place, plain_numbers
from ..data.joined import UNMATCHED, facts_of, require_rule
from ..data.reading import chunks_of, kind_of
from ..errors import InputError, SchemaError
from ..facts import Category, Number, Schema
from ..facts.columns import Ignored
from ..ledger import Ledger
from ..statement import signing
from ..statement.document import PublicFact

LARGEST = 4 * MIB
CONFIG = Document("holder.toml", "See the page about serving: docs/serving.md.", largest=LARGEST)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True)
class Limits:
    """What one request, token or run may take. All are public."""

    request_bytes: int = 32 * MIB
    request_seconds: float = 60.0
    requests_a_minute: int = 12_000
    open_runs: int = 16
    open_runs_in_all: int = 256
    run_minutes: float = 30.0
    plan_events: int = 4096
    pricing_seconds: float = 5.0
    kept_bytes: int = 256 * MIB
    codes: int = 128
    sources: int = 256
    keep_days: float = 30.0


@dataclass(frozen=True)
class Join:
    """Where the attribute lies, and how it is joined by id (docs/theory/attribute_holder.md)."""

    attribute: str
    id: str
    unmatched: str = "group"
    ids: str | None = None
    attribute_query: str | None = None

    def require_rule(self, schema: Schema) -> None:
        """An error where this schema does not say what unmatched ids count as."""
        require_rule(schema, self.id, self.unmatched)

    def facts(self, schema: Schema) -> tuple[PublicFact, ...]:
        """What statements say of the join."""
        return facts_of(schema, self.unmatched)


@dataclass(frozen=True)
class Served:
    """One data set, as it is configured: the holder decides what it is. `seeded`: runs may bring
    seeds, for tests alone; its statements are flagged."""

    name: str
    rows: str
    schema: Schema
    ledger: str
    ledger_name: str
    query: str | None = None
    title: str = ""
    terms: str = ""
    seeded: bool = False
    features_served: bool = False
    weights: str | None = None
    join: Join | None = None

    def read(self, *, sensitive_as_feature: bool) -> EncodedRows:
        """The rows of the place, coded and checked by the schema."""
        if self.join is not None:
            told: dict[str, Any] = vars(self.join).copy()
            return load_joined(
                self.rows, told.pop("attribute"), self.schema, query=self.query, **told
            )
        how: dict[str, Any] = {"query": self.query, "sensitive_as_feature": sensitive_as_feature}
        found = open_rows(self.rows, self.schema, **how)
        assert isinstance(found, EncodedRows)
        return found

    def row_weights(self) -> npt.NDArray[np.float64] | None:
        """One weight a row, in the order of the table: guarantee 5."""
        if self.weights is None:
            return None
        parts, first = [np.zeros(0)], 0
        for chunk in chunks_of(self.rows, (self.weights,), schema=self.schema):
            texts = (chunk.text, self.schema.missing_values)
            at = Place(self.weights, first, *texts, shows_values=False)
            found = plain_numbers(chunk.columns[self.weights], at)
            wrong = np.flatnonzero(~np.isfinite(found) | (found < 0.0))
            if len(wrong):
                remedy = "Give each row one finite number of at least 0."
                got = f"another in row {first + int(wrong[0]) + 1}"
                raise SchemaError.expected(
                    "a weight", of=self.weights, got=got, remedy=remedy, quote=False
                )
            parts.append(found)
            first += chunk.rows
        return np.concatenate(parts)

    def require(self, promise: Promise) -> None:
        """An error unless the schema and the ledger's promise agree; before a row is read."""
        if self.schema.target is None:
            remedy = "Say which column is to be predicted: target = ... in the schema."
            raise InputError.expected(
                "a schema with a target", of=self.name, got="none", remedy=remedy
            )
        if self.join is not None and promise.protects != "sensitive_features":
            remedy = "Create it with --protects sensitive-features."
            expected = "a ledger of sensitive features alone, for a joined attribute"
            raise InputError.expected(expected, of=self.name, got=promise.protects, remedy=remedy)
        own, told = self.schema.unit, None if promise.unit is None else promise.unit.name
        if own != told:
            remedy = "Create the ledger with --schema of this data set; or serve one row a person."
            named = ["rows" if one is None else f"persons by {one!r}" for one in (own, told)]
            raise InputError.expected(
                f"a ledger of {named[0]}",
                of=self.name,
                got=f"one of {named[1]}",
                remedy=remedy,
                quote=False,
            )

    def require_weights(self) -> None:
        """An error where the data set cannot have this column of weights; before a row is read."""
        kind = "a joined table" if self.join is not None else kind_of(self.rows, self.query)
        if kind not in ("csv", "parquet"):
            remedy = "Serve a CSV or Parquet file."
            raise InputError.expected(
                "a table of its own with the weights", of="weights", got=kind, remedy=remedy
            )
        column = self.schema.columns.get(str(self.weights), Ignored())
        if self.weights == self.schema.unit or not isinstance(column, Ignored):
            remedy = "Declare the column ignored, or not at all: a weight is no feature."
            raise SchemaError.expected(
                "a column that is no feature and no role",
                of="weights",
                got=self.weights,
                remedy=remedy,
            )


@dataclass(frozen=True)
class Holder:
    """A configured server."""

    name: str
    folder: Path
    signing_key: Path | None = None
    address: str = "127.0.0.1"
    port: int = 8422
    certificate: Path | None = None
    private_key: Path | None = None
    behind_proxy: bool = False
    datasets: tuple[Served, ...] = ()
    limits: Limits = field(default_factory=Limits)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Holder:
        """Read a file; places in it are relative to its folder."""
        file = Path(path)
        remedy = "Pass --config holder.toml."
        text = read_text(file, what="a holder's configuration", most=LARGEST, remedy=remedy)
        return read(CONFIG.of(CONFIG.toml(text)), file.parent)

    @property
    def is_encrypted(self) -> bool:
        """Whether analysts reach it by TLS."""
        return self.certificate is not None or self.behind_proxy

    def require_certificate(self) -> None:
        """An error, with its cause, where the certificate and its key cannot be served with."""
        if self.certificate is None or self.private_key is None:
            return
        try:
            # a passphrase is not asked for: the server starts alone
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                self.certificate, self.private_key, password=""
            )
        except (OSError, ValueError) as error:
            missing = [
                one.name for one in (self.certificate, self.private_key) if not one.is_file()
            ]
            got = (
                f"no file {missing[0]}" if missing else getattr(error, "reason", None) or str(error)
            )
            remedy = (
                "Give the chain and its private key as PEM files, the key without a passphrase."
            )
            raise InputError.expected(
                "a certificate and its own key", of="door", got=got, remedy=remedy
            ) from None


def read(node: Node, base: Path) -> Holder:
    """The configuration in a document's values."""
    node.only(("door", "datasets"), ("limits",))
    datasets = node["datasets"]
    served = tuple(_served(name, datasets[name], base) for name in datasets.mapping())
    if not served:
        datasets.refuse("at least one data set", "none")
    limits = _values(Limits, node["limits"], base) if "limits" in node.mapping() else {}
    values = _values(Holder, node["door"], base, without=("datasets", "limits"))
    holder = Holder(**values, datasets=served, limits=Limits(**limits))
    if (holder.certificate is None) != (holder.private_key is None):
        node["door"].refuse("certificate and private_key together", "one of them")
    if not holder.is_encrypted and not _is_loopback(holder.address):
        remedy = (
            "Give certificate= and private_key=, or behind_proxy = true where a proxy encrypts."
        )
        got = f"plain HTTP on {holder.address}"
        raise InputError.expected("HTTPS, or this machine alone", of="door", got=got, remedy=remedy)
    return holder


def _served(name: str, node: Node, base: Path) -> Served:
    if not _NAME.fullmatch(name):
        node.refuse("a name of small letters, digits, - and _", name)
    joined = {one.name for one in fields(Join)}
    told = node.mapping()
    own = {one: value for one, value in told.items() if one not in joined}
    values = _values(Served, replace(node, value=own), base, without=("name", "join"))
    values["schema"] = Schema.load(values["schema"])
    join = None
    if joined & set(told):
        if not {"attribute", "id"} <= set(told):
            node.refuse("attribute and id together", sorted(joined & set(told)))
        rest = {one: value for one, value in told.items() if one in joined}
        join = Join(**_values(Join, replace(node, value=rest), base))
        if "unmatched" in told:
            node["unmatched"].one_of(UNMATCHED)
        join.require_rule(values["schema"])
    served = Served(**{"name": name, "ledger_name": name, **values}, join=join)
    if served.weights is not None:
        served.require_weights()
    return served


PLACES = ("rows", "schema", "ledger", "attribute", "ids")


def _values(kind: Any, node: Node, base: Path, without: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a class as an object of the file says them; places are relative to its folder."""
    known = {one.name: one for one in fields(kind) if one.name not in without}
    needed = {"rows", "schema", "ledger", "name", "folder"} & set(known)
    node.only(() if kind is Join else needed, known)
    values: dict[str, Any] = {}
    for name in node.mapping():
        is_of, of = str(known[name].type), node[name]
        if is_of == "bool":
            values[name] = of.truth()
        elif name == "port":
            values[name] = of.whole(at_most=65_535)
        elif is_of in ("int", "float"):
            if not of.number() > 0:
                of.refuse("a number above 0", of.value)
            values[name] = int(of.number()) if is_of == "int" else of.number()
        elif is_of.startswith("Path"):
            values[name] = base / of.text()
        else:
            is_place = name in PLACES and "://" not in of.text()
            values[name] = str(base / of.text()) if is_place else of.text()
    return values


def _is_loopback(address: str) -> bool:
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


# -- a demonstration -------------------------------------------------------------------------------

DEMO_ROWS = 20_000
DEMO = Schema(
    {
        "age": Number(18, 80),
        "tests_passed": Number(0, 20),
        "degree": Category(("none", "school", "university")),
        "sex": Category(("f", "m"), shares=(0.5, 0.5)),
        "hired": Category(("no", "yes")),
    },
    target="hired",
    sensitive=("sex",),
    rows=DEMO_ROWS,
    name="applicants",
    source="made up: nobody's records",
)
DEMO_CONFIG = """[door]
name = "A made-up employer"
folder = "door"
signing_key = "holder.key"
port = {port}

[datasets.applicants]
rows = "applicants.store"
schema = "applicants.toml"
ledger = "budget.db"
title = "20,000 made-up applicants"
terms = "For trying out alone."
"""


def prepare_demo(folder: Path, port: int) -> Path:
    """Made-up applicants, a ledger and a key in one folder: write what is not there yet. The path of
    the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "applicants.store").exists():
        rng, table = np.random.default_rng(0), folder / "applicants.csv"
        sex, degree = rng.integers(2, size=DEMO_ROWS), rng.integers(3, size=DEMO_ROWS)
        age, tests = rng.integers(18, 81, size=DEMO_ROWS), rng.integers(0, 21, size=DEMO_ROWS)
        score = (tests - 10) / 5 + 0.4 * degree + 0.5 * sex - (age - 45) ** 2 / 1500
        hired = score + rng.normal(size=DEMO_ROWS) > 0.5
        degrees = ("none", "school", "university")
        lines = [
            f"{a},{t},{degrees[d]},{'fm'[s]},{'yes' if h else 'no'}"
            for a, t, d, s, h in zip(age, tests, degree, sex, hired, strict=True)
        ]
        table.write_text("\n".join(["age,tests_passed,degree,sex,hired", *lines]) + "\n")
        (folder / "applicants.toml").write_text(DEMO.to_toml())
        write_store(open_rows(table, DEMO), folder / "applicants.store")
        table.unlink()
    if not (folder / "budget.db").exists():
        Ledger.create(folder / "budget.db", "applicants", 10.0, 1e-6, schema=DEMO)
    if not (folder / "holder.key").exists():
        signing.new_key(folder / "holder.key")
    (folder / "holder.toml").write_text(DEMO_CONFIG.format(port=port))
    return folder / "holder.toml"
