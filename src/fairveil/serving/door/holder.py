"""`holder.toml`: what a holder serves, read strictly before anything is opened.

    [door]
    name = "Census office"
    folder = "door"                 # tokens, runs and their replies
    signing_key = "holder.key"

    [datasets.applicants]
    rows = "applicants.csv"         # or a Parquet file, a coded store, a database with query =
    schema = "applicants.toml"
    ledger = "budget.db"            # or postgresql://...
    attribute = "register.csv"      # where the sensitive columns lie in another table: see `joins`
    id = "person"
    terms = "For the study of 2026 alone."

Guarantees (tests/serving/test_serving_holder.py):
1. Unknown names and values of another type are refused with their place, before a file is written
   or a port opened.
2. Plain HTTP is served to this machine alone, or behind a proxy that was named.
3. A certificate that cannot be served with is told with its cause before a row is read.
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._json import Document, Node
from ..._reading import MIB, read_text
from ...errors import InputError
from ...facts import Schema
from .joins import FIELDS, Join
from .weights import require_weights

LARGEST = 4 * MIB
CONFIG = Document("holder.toml", "See the page about serving: docs/serving.md.", largest=LARGEST)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True)
class Limits:
    """What one request, token or run may take. All are public."""

    request_bytes: int = 32 * MIB
    requests_a_minute: int = 12_000
    open_runs: int = 16
    open_runs_in_all: int = 256
    run_minutes: float = 30.0
    request_seconds: float = 60.0
    plan_events: int = 4096
    sources: int = 256
    keep_days: float = 30.0


@dataclass(frozen=True)
class Served:
    """One data set, as it is configured. `seeded`: runs may bring seeds, for tests alone; its
    statements are flagged."""

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
    join: Join | None = None
    weights: str | None = None


@dataclass(frozen=True)
class Holder:
    """A configured door."""

    name: str
    folder: Path
    signing_key: Path | None
    datasets: tuple[Served, ...]
    limits: Limits
    address: str = "127.0.0.1"
    port: int = 8422
    certificate: Path | None = None
    private_key: Path | None = None
    behind_proxy: bool = False

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Holder:
        """Read a file; places in it are relative to its folder."""
        file = Path(path)
        remedy = "Pass --config holder.toml."
        text = read_text(file, what="a holder's configuration", most=LARGEST, remedy=remedy)
        return read(CONFIG.of(CONFIG.toml(text)), file.parent)

    def require_lock(self) -> None:
        """Plain HTTP leaves this machine only through a proxy that encrypts: guarantee 2."""
        if self.certificate is not None or self.behind_proxy or _is_loopback(self.address):
            return
        remedy = (
            "Give certificate= and private_key=, or behind_proxy = true where a proxy encrypts; or "
            "serve on 127.0.0.1."
        )
        got = f"plain HTTP on {self.address}"
        raise InputError.expected("HTTPS, or this machine alone", of="door", got=got, remedy=remedy)

    def require_certificate(self) -> None:
        """An error, with its cause, where the certificate and its key cannot be served with."""
        if self.certificate is None or self.private_key is None:
            return
        try:
            # a passphrase is not asked for: the door starts alone
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                self.certificate, self.private_key, password=""
            )
        except (OSError, ValueError) as error:
            missing = [
                path.name for path in (self.certificate, self.private_key) if not path.is_file()
            ]
            cause = getattr(error, "reason", None) or str(error)
            got = f"no file {missing[0]}" if missing else cause
            remedy = (
                "Give the chain and its private key as PEM files, the key without a passphrase."
            )
            raise InputError.expected(
                "a certificate and its own key", of="door", got=got, remedy=remedy
            ) from None


def read(node: Node, base: Path) -> Holder:
    """The configuration in a document's values."""
    node.only(("door", "datasets"), ("limits",))
    door = node["door"]
    names = ("signing_key", "address", "port", "certificate", "private_key", "behind_proxy")
    door.only(("name", "folder"), names)
    told = door.mapping()
    port = door["port"].whole(at_least=0, at_most=65_535) if "port" in told else 8422
    certificate, private = (_path(door, name, base) for name in ("certificate", "private_key"))
    if (certificate is None) != (private is None):
        door.refuse("certificate and private_key together", "one of them")
    datasets = node["datasets"]
    served = tuple(_served(name, datasets[name], base) for name in datasets.mapping())
    if not served:
        datasets.refuse("at least one data set", "none")
    folder = _path(door, "folder", base)
    assert folder is not None
    holder = Holder(
        door["name"].text(),
        folder,
        _path(door, "signing_key", base),
        served,
        _limits(node["limits"]) if "limits" in node.mapping() else Limits(),
        door["address"].text() if "address" in told else "127.0.0.1",
        port,
        certificate,
        private,
        door["behind_proxy"].truth() if "behind_proxy" in told else False,
    )
    holder.require_lock()
    return holder


def _served(name: str, node: Node, base: Path) -> Served:
    if not _NAME.fullmatch(name):
        node.refuse("a name of small letters, digits, - and _", name)
    optional = ("ledger_name", "query", "title", "terms", "seeded", "features_served", "weights")
    node.only(("rows", "schema", "ledger"), (*optional, *FIELDS))
    told = node.mapping()
    words: dict[str, Any] = {
        one: node[one].text() for one in ("title", "terms", "query", "weights") if one in told
    }
    flags: dict[str, Any] = {
        one: node[one].truth() for one in ("seeded", "features_served") if one in told
    }
    schema = Schema.load(_place(node["schema"].text(), base))
    ledger_name = node["ledger_name"].text() if "ledger_name" in told else name
    rows, ledger = (_place(node[one].text(), base) for one in ("rows", "ledger"))
    served = Served(
        name, rows, schema, ledger, ledger_name, **words, **flags, join=Join.of(node, base, schema)
    )
    if served.weights is not None:
        require_weights(
            served.rows, served.query, schema, served.weights, joined=served.join is not None
        )
    return served


def _limits(node: Node) -> Limits:
    plain = Limits()
    names = tuple(vars(plain))
    node.only((), names)
    values: dict[str, Any] = {}
    for name in node.mapping():
        number = node[name].number()
        if not number > 0:
            node[name].refuse("a number above 0", number)
        values[name] = int(number) if isinstance(getattr(plain, name), int) else float(number)
    return Limits(**values)


def _place(text: str, base: Path) -> str:
    """An address as it is; a path relative to the configuration's folder."""
    return text if "://" in text else str(base / text)


def _path(node: Node, name: str, base: Path) -> Path | None:
    return base / node[name].text() if name in node.mapping() else None


def _is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
