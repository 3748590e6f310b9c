"""`holder.toml`: what a holder serves, read strictly before anything is opened.

    [door]
    name = "Census office"
    folder = "door"                 # tokens, runs and divisions
    signing_key = "holder.key"

    [datasets.applicants]
    rows = "applicants.csv"         # or a Parquet file, a coded store, a database with query =
    schema = "applicants.toml"
    ledger = "budget.db"            # or postgresql://...
    attribute = "register.csv"      # where the sensitive columns lie in another table:
    id = "person"                   # joined by this column
    weights = "design_weight"       # a column that is no feature
    terms = "For the study of 2026 alone."

Guarantees (tests/serving/test_serving_data.py):
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
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._json import Document, Node
from .._reading import MIB, read_text
from ..core.errors import need
from ..core.promise import Promise
from ..data import EncodedRows, load_joined
from ..data import open as open_rows
from ..data.coding import Place, plain_numbers
from ..data.joined import UNMATCHED, require_rule
from ..data.reading import chunks_of, kind_of
from ..errors import InputError, SchemaError
from ..facts import Category, Number, Schema
from ..facts.columns import Ignored
from ..ledger import Ledger
from ..statement import signing

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
    kept_bytes: int = 64 * MIB
    codes: int = 128
    sources: int = 256
    keep_days: float = 30.0


@dataclass(frozen=True)
class Served:
    """One data set, as it is configured: the holder decides what it is. `attribute`: the table that
    the sensitive columns lie in, joined by the column `id` (docs/theory/attribute_holder.md).
    `seeded`: runs may bring seeds, for tests alone; its statements are flagged."""

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
    attribute: str | None = None
    id: str | None = None
    unmatched: str | None = None
    ids: str | None = None
    attribute_query: str | None = None

    @property
    def is_joined(self) -> bool:
        """Whether the attribute lies in a table of its own."""
        return self.attribute is not None

    @property
    def rule(self) -> str:
        """What a row without an entry counts as."""
        return self.unmatched or UNMATCHED[0]

    def read(self, *, sensitive_as_feature: bool) -> EncodedRows:
        """The rows of the place, coded and checked by the schema."""
        if self.attribute is not None:
            how: dict[str, Any] = {"id": self.id, "unmatched": self.rule, "ids": self.ids}
            how |= {"query": self.query, "attribute_query": self.attribute_query}
            return load_joined(self.rows, self.attribute, self.schema, **how)
        how = {"query": self.query, "sensitive_as_feature": sensitive_as_feature}
        found = open_rows(self.rows, self.schema, **how)
        assert isinstance(found, EncodedRows)
        return found

    def row_weights(self) -> npt.NDArray[np.float64] | None:
        """One weight a row, in the order of the table: guarantee 5."""
        if self.weights is None:
            return None
        parts, first = [np.zeros(0)], 0
        for chunk in chunks_of(self.rows, (self.weights,), schema=self.schema):
            at = Place(self.weights, first, self.schema.missing_values, shows_values=False)
            found = plain_numbers(chunk.columns[self.weights], at)
            wrong = np.flatnonzero(~np.isfinite(found) | (found < 0.0))
            if len(wrong):
                fix = "Give each row one finite number of at least 0."
                got = f"another in row {first + int(wrong[0]) + 1}"
                told: dict[str, Any] = {"of": self.weights, "got": got, "remedy": fix}
                raise SchemaError.expected("a weight", **told, quote=False)
            parts.append(found)
            first += chunk.rows
        return np.concatenate(parts)

    def require(self, promise: Promise) -> None:
        """An error unless the schema and the ledger's promise agree; before a row is read."""
        target, protects = self.schema.target is not None, promise.protects
        fix = "Say which column is to be predicted: target = ... in the schema."
        need(target, "a schema with a target", of=self.name, got="none", fix=fix)
        expected = "a ledger of sensitive features alone, for a joined attribute"
        fix = "Create it with --protects sensitive-features."
        apart = not self.is_joined or protects == "sensitive_features"
        need(apart, expected, of=self.name, got=protects, fix=fix)
        own, told = self.schema.unit, None if promise.unit is None else promise.unit.name
        words = ["rows" if one is None else f"persons by {one!r}" for one in (own, told)]
        fix = "Create the ledger with --schema of this data set; or serve one row a person."
        expected, got = f"a ledger of {words[0]}", f"one of {words[1]}"
        need(own == told, expected, of=self.name, got=got, fix=fix, quote=False)

    def require_columns(self) -> None:
        """An error where the data set cannot be joined so, or have this column of weights; before a
        row is read."""
        if self.is_joined:
            require_rule(self.schema, str(self.id), self.rule)
        if self.weights is None:
            return
        kind = "a joined table" if self.is_joined else kind_of(self.rows, self.query)
        expected, fix = "a table of its own with the weights", "Serve a CSV or Parquet file."
        need(kind in ("csv", "parquet"), expected, of="weights", got=kind, fix=fix)
        column = self.schema.columns.get(self.weights, Ignored())
        apart = self.weights != self.schema.unit and isinstance(column, Ignored)
        fix = "Declare the column ignored, or not at all: a weight is no feature."
        expected, of = "a column that is no feature and no role", "weights"
        need(apart, expected, of=of, got=self.weights, fix=fix, error=SchemaError)


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
        file, fix = Path(path), "Pass --config holder.toml."
        text = read_text(file, what="a holder's configuration", most=LARGEST, remedy=fix)
        return _holder(CONFIG.of(CONFIG.toml(text)), file.parent)

    @property
    def is_encrypted(self) -> bool:
        """Whether analysts reach it by TLS."""
        return self.certificate is not None or self.behind_proxy

    def require_certificate(self) -> None:
        """An error, with its cause, where the certificate and its key cannot be served with."""
        if self.certificate is None or self.private_key is None:
            return
        context, files = (
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
            (self.certificate, self.private_key),
        )
        try:  # a passphrase is not asked for: the server starts alone
            context.load_cert_chain(*files, password="")
        except (OSError, ValueError) as error:
            missing = [f"no file {one.name}" for one in files if not one.is_file()]
            got = (missing or [getattr(error, "reason", None) or str(error)])[0]
            fix = "Give the chain and its private key as PEM files, the key without a passphrase."
            told: dict[str, Any] = {"of": "door", "got": got, "remedy": fix}
            raise InputError.expected("a certificate and its own key", **told) from None


def _holder(node: Node, base: Path) -> Holder:
    """The configuration in a document's values."""
    node.only(("door", "datasets"), ("limits",))
    datasets, door = node["datasets"], node["door"]
    served = tuple(_served(name, datasets[name], base) for name in datasets.mapping())
    if not served:
        datasets.refuse("at least one data set", "none")
    limits = _values(Limits, node["limits"], base) if "limits" in node.mapping() else {}
    values = _values(Holder, door, base, without=("datasets", "limits"))
    holder = Holder(**values, datasets=served, limits=Limits(**limits))
    if (holder.certificate is None) != (holder.private_key is None):
        door.refuse("certificate and private_key together", "one of them")
    if not holder.is_encrypted and not _is_loopback(holder.address):
        got, fix = f"plain HTTP on {holder.address}", "Give certificate= and private_key=, or "
        fix += "behind_proxy = true where a proxy encrypts."
        need(False, "HTTPS, or this machine alone", of="door", got=got, fix=fix)
    return holder


def _served(name: str, node: Node, base: Path) -> Served:
    if not _NAME.fullmatch(name):
        node.refuse("a name of small letters, digits, - and _", name)
    values = _values(Served, node, base, without=("name",))
    told = sorted({"attribute", "id", "unmatched", "ids", "attribute_query"} & values.keys())
    if told and not {"attribute", "id"} <= set(told):
        node.refuse("attribute and id together", told)
    if "unmatched" in values:
        node["unmatched"].one_of(UNMATCHED)
    values["schema"] = Schema.load(values["schema"])
    served = Served(**{"name": name, "ledger_name": name, **values})
    served.require_columns()
    return served


NEEDED = {"rows", "schema", "ledger", "name", "folder"}
PLACES = ("rows", "schema", "ledger", "attribute", "ids")


def _values(kind: Any, node: Node, base: Path, without: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a class as an object of the file says them; places are relative to its folder."""
    known = {one.name: str(one.type) for one in fields(kind) if one.name not in without}
    node.only(NEEDED & set(known), known)
    return {name: _value(known[name], name, node[name], base) for name in node.mapping()}


def _value(is_of: str, name: str, of: Node, base: Path) -> Any:
    if is_of == "bool":
        return of.truth()
    if name == "port":
        return of.whole(at_most=65_535)
    if is_of in ("int", "float"):
        if not of.number() > 0:
            of.refuse("a number above 0", of.value)
        return int(of.number()) if is_of == "int" else of.number()
    if is_of.startswith("Path"):
        return base / of.text()
    return str(base / of.text()) if name in PLACES and "://" not in of.text() else of.text()


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
rows = "applicants.csv"
schema = "applicants.toml"
ledger = "budget.db"
title = "20,000 made-up applicants"
terms = "For trying out alone."
"""


def prepare_demo(folder: Path, port: int) -> Path:
    """Made-up applicants, a ledger and a key in one folder: write what is not there yet. The path of
    the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "applicants.csv").exists():
        rng = np.random.default_rng(0)
        sex, degree = rng.integers(2, size=DEMO_ROWS), rng.integers(3, size=DEMO_ROWS)
        age, tests = rng.integers(18, 81, size=DEMO_ROWS), rng.integers(0, 21, size=DEMO_ROWS)
        score = (tests - 10) / 5 + 0.4 * degree + 0.5 * sex - (age - 45) ** 2 / 1500
        hired = (score + rng.normal(size=DEMO_ROWS) > 0.5).astype(int)
        told: list[Any] = [DEMO.columns[name] for name in ("degree", "sex", "hired")]
        codes = zip(told, (degree, sex, hired), strict=True)
        words = [np.array(column.values)[code] for column, code in codes]
        lines = map(",".join, zip(age.astype(str), tests.astype(str), *words, strict=True))
        (folder / "applicants.toml").write_text(DEMO.to_toml())
        (folder / "applicants.csv").write_text("\n".join([",".join(DEMO.columns), *lines]) + "\n")
    if not (folder / "budget.db").exists():
        Ledger.create(folder / "budget.db", "applicants", 10.0, 1e-6, schema=DEMO).close()
    if not (folder / "holder.key").exists():
        signing.new_key(folder / "holder.key")
    (folder / "holder.toml").write_text(DEMO_CONFIG.format(port=port))
    return folder / "holder.toml"
