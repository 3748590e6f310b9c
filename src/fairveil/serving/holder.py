"""`holder.toml`, read strictly before anything is opened, and the data sets that it serves: their
rows, read once and coded, and what is public of them. The holder decides what a data set is.

    [door]
    name = "Census office"
    folder = "door"                 # tokens and runs
    signing_key = "holder.key"

    [datasets.applicants]
    rows = "applicants.csv"         # or a Parquet file, a coded store, a database with query =
    schema = "applicants.toml"
    ledger = "budget.db"            # or postgresql://...
    terms = "For the study of 2026 alone."

Guarantees (tests/serving/test_serving_data.py):
1. Unknown names and values of another type are refused with their place, before a file is written
   or a port opened.
2. Plain HTTP is served to this machine alone, or behind a proxy that was named.
3. What analysts are told of a data set is its schema, its terms, its ledger's promise and balance;
   the number of rows only where the ledger's own promise makes it public.
4. Rows are read once, by the schema alone, and every row is checked before the server opens:
   nothing that an analyst asks for reads a file or a database again.
5. The two parts of a division have no row in common, in all runs and after the server was killed:
   coins are thrown by place, so a division is bound to its rows and their order, and is its token's.
6. A ledger that lacks what runs of this server spent is refused: another one, or an older copy.
7. A sensitive column that is protected apart, or that is stored, is never a feature.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .._json import Document, Node
from .._reading import MIB, read_text
from ..core.errors import need
from ..core.noise import NoiseSource
from ..curator import Rows
from ..data import EncodedRows
from ..data import open as open_rows
from ..errors import FairveilError, LedgerError
from ..estimators.coding import steps_of
from ..estimators.fitting import COINS, aside_of
from ..estimators.reading import Coded, beside, need_number, refuse_copies, scale_of
from ..facts import RowLayout, Schema
from ..ledger import Ledger
from ..statement.document import PublicFact
from .records import Records
from .refusals import Refusal
from .wire import MESSAGE, View

LARGEST = 4 * MIB
CONFIG = Document("holder.toml", "See the page about serving: docs/serving.md.", largest=LARGEST)
LACKS = ("one of its own spends", "an older copy")
"""What a ledger says that has forgotten what was spent."""
MOST_VIEWS = 16
"""Views of one data set that are kept: each may be its rows over again."""
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
    sensitive_as_feature: bool = False
    features_served: bool = False
    seeded: bool = False


@dataclass(frozen=True)
class Holder:
    """A configured server."""

    name: str
    folder: Path
    signing_key: Path | None = None
    address: str = "127.0.0.1"
    port: int = 8422
    behind_proxy: bool = False
    datasets: tuple[Served, ...] = ()
    limits: Limits = field(default_factory=Limits)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Holder:
        """Read a file; places in it are relative to its folder."""
        file, fix = Path(path), "Pass --config holder.toml."
        text = read_text(file, what="a holder's configuration", most=LARGEST, remedy=fix)
        node, base = CONFIG.of(CONFIG.toml(text)), file.parent
        node.only(("door", "datasets"), ("limits",))
        datasets, door = node["datasets"], node["door"]
        served = [_served(name, datasets[name], base) for name in datasets.mapping()]
        if not served:
            datasets.refuse("at least one data set", "none")
        limits = _values(Limits, node["limits"], base) if "limits" in node.mapping() else {}
        values = _values(Holder, door, base, without=("datasets", "limits"))
        holder = Holder(**values, datasets=tuple(served), limits=Limits(**limits))
        got, fix = (
            f"plain HTTP on {holder.address}",
            "Say behind_proxy = true where a proxy encrypts.",
        )
        here = holder.behind_proxy or _is_loopback(holder.address)
        need(here, "a proxy that encrypts, or this machine alone", of="door", got=got, fix=fix)
        return holder


def _served(name: str, node: Node, base: Path) -> Served:
    if not _NAME.fullmatch(name):
        node.refuse("a name of small letters, digits, - and _", name)
    values = _values(Served, node, base, without=("name",))
    values["schema"] = Schema.load(values["schema"])
    return Served(**{"name": name, "ledger_name": name, **values})


NEEDED, PLACES = {"rows", "schema", "ledger", "name", "folder"}, ("rows", "schema", "ledger")


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


# -- data sets -------------------------------------------------------------------------------------


class DataSet:
    """One data set, ready to be asked, and the views of it that were made so far."""

    def __init__(self, served: Served, records: Records) -> None:
        self.served, self.name, self.schema = served, served.name, served.schema
        self._records = records
        self.lacks: str | None = None  # what its ledger lacks
        self.ledger = Ledger.open(served.ledger, served.ledger_name, who="the server")
        self.promise = promise = self.ledger.promise
        self._require(promise)
        how: dict[str, Any] = {"sensitive_as_feature": served.sensitive_as_feature}
        found = open_rows(served.rows, served.schema, query=served.query, **how)
        assert isinstance(found, EncodedRows)
        self._source, self._blocks = found, tuple(found.blocks())
        self._count = sum(block.rows for block in self._blocks)
        self._view = lru_cache(MOST_VIEWS)(self._made)
        if promise.features_are_public:
            coding = found.encoding
            names = (*(scale.name for scale in coding.numbers), *coding.coded)
            refuse_copies(list(self._blocks), found.layout, names)
        self.features_served = served.features_served and promise.features_are_public
        self.digest = self._digest()
        self.exact_rows = self._count if promise.rows_are_public else None
        self.require_spends()

    def _require(self, promise: Any) -> None:
        """An error unless the schema and the ledger's promise agree; before a row is read."""
        target, apart = self.schema.target is not None, promise.protects == "records"
        fix = "Say which column is to be predicted: target = ... in the schema."
        need(target, "a schema with a target", of=self.name, got="none", fix=fix)
        apart, fix = (
            apart or not self.served.sensitive_as_feature,
            "Leave sensitive_as_feature out.",
        )
        got = f"a ledger of {promise.protects}"
        need(
            apart,
            "a ledger of records, or groups that are no features",
            of=self.name,
            got=got,
            fix=fix,
        )
        own, told = self.schema.unit, None if promise.unit is None else promise.unit.name
        words = ["rows" if one is None else f"persons by {one!r}" for one in (own, told)]
        fix = "Create the ledger with --schema of this data set; or serve one row a person."
        expected, got = f"a ledger of {words[0]}", f"one of {words[1]}"
        need(own == told, expected, of=self.name, got=got, fix=fix, quote=False)

    def _digest(self) -> bytes:
        """Of all rows in their order, under the server's secret."""
        digest = hashlib.blake2b(key=self._records.mark("rows"), digest_size=32)
        digest.update(json.dumps([self._source.encoding.features, self.schema.sensitive]).encode())
        for block in self._blocks:
            for part in (block.numbers, block.codes, block.sensitive, block.labels, block.persons):
                if part is not None:
                    dense = part.toarray() if hasattr(part, "toarray") else part
                    digest.update(np.ascontiguousarray(dense).tobytes())
        return digest.digest()

    def require_spends(self) -> None:
        """Guarantee 6, of the latest spends: those before them stand before them in a ledger."""
        for spend in self._records.spends(self.name):
            try:
                self.ledger.standing(spend)
            except LedgerError as error:
                if not any(words in str(error) for words in LACKS):
                    raise  # it does not answer: nothing is known to be wrong
                self.lacks = spend
                fix = (
                    "Restore the newer one, or record there what is missing and take a new folder."
                )
                told: dict[str, Any] = {"of": self.name, "remedy": fix, "quote": False}
                expected, got = "a ledger that has what this server's runs spent", "one that lacks"
                raise LedgerError.expected(expected, got=f"{got} spend {spend}", **told) from None
        self.lacks = None

    # -- what is public ----------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """What is told to an analyst: guarantee 3."""
        balance = self.ledger.balance().to_dict().items()
        told = {one: getattr(self.served, one) for one in ("name", "title", "terms", "seeded")}
        told |= {"schema": self.schema.to_toml(), "promise": self.promise.to_dict()}
        told |= {"exact_rows": self.exact_rows, "features_served": self.features_served}
        told["sensitive_as_feature"] = self.served.sensitive_as_feature
        plain = {name: one for name, one in balance if isinstance(one, int | float | str | bool)}
        return {**told, "balance": plain}

    def stated(self, view: View) -> list[PublicFact]:
        """What statements say of the rows of a view, beside the schema."""
        found, encoding = list(self._source.facts), self._source.encoding
        if encoding.target is not None:
            found.append(scale_of(encoding).fact())
        if view.division is not None:
            share = float(view.division.split(":")[0])
            share = share if view.part else 1.0 - share
            coin = "a seeded coin" if ":seeded:" in view.division else "a secret coin"
            words = f"each row with probability {share:g}, by {coin} of its own"
            found.append(PublicFact("rows read", words, "argument"))
        return found

    def layout_of(self, view: View) -> RowLayout:
        """The layout of a view's rows; what is wrong with the view is an error."""
        layout = self._source.layout
        if view.steps is not None:
            layout = self._steps(view).layout(layout)
        if view.target_as_number:
            need_number(self._source.encoding.target is not None, "the schema's target")
            layout = replace(layout, numbers=layout.numbers + 1)
        return layout

    def _steps(self, view: View) -> Any:
        return steps_of(replace(MESSAGE, name="steps").node(view.steps), self._source.layout)

    # -- divisions ---------------------------------------------------------------------------------

    def divide(self, token: str, share: float, seed: str | None, coins: str) -> dict[str, Any]:
        """Set rows aside by coins; its name says how, and holds marks that nobody else can make. It
        releases nothing, and nothing of it is kept."""
        fix = "Take a share such as 0.3, and coins of a certificate or a search."
        right = 0.0 < share < 1.0 and coins in COINS
        need(right, "a share between 0 and 1", of="divide", got=share, fix=fix)
        if seed is not None and not self.served.seeded:
            raise Refusal("forbidden", got="random_state: a seed, where coins are secret")
        secret = os.urandom(32).hex() if seed is None else root_of(seed).hex()
        text = f"{share!r}:{coins}:{'secret' if seed is None else 'seeded'}:{secret}"
        division = ":".join((text, *self._marks(token, text)))
        told = self.exact_rows is not None
        counts = [len(self._places(division, part)) for part in (0, 1)] if told else None
        return {"division": division, "rows": counts}

    def require_part(self, token: str, view: View) -> None:
        """A refusal unless a division is this token's, of these rows: guarantee 5."""
        if view.division is None:
            return
        may, fix = self.schema.unit is None, "Certify with another data set."
        need(may, "all rows, where persons are protected", of="part", got="some", fix=fix)
        text, own, rows = [*view.division.rsplit(":", 2), "", ""][:3]
        marks = self._marks(token, text)
        if not hmac.compare_digest(own.encode(), marks[0].encode()) or view.part > 1:
            raise Refusal("not-found")
        if not hmac.compare_digest(rows.encode(), marks[1].encode()):
            raise Refusal("rows-changed")

    def _marks(self, token: str, text: str) -> tuple[str, str]:
        whose = self._records.mark("division", token, self.name, text).hex()
        return whose, self._records.mark("rows of", self.digest, text).hex()

    def _places(self, division: str, part: int) -> np.ndarray[Any, Any]:
        """The places of the rows of a part."""
        share, coins, kind, seed = division.split(":")[:4]
        root = bytes.fromhex(seed)
        root = root if kind == "seeded" else self._records.mark("coins", self.digest, root)
        source = NoiseSource(root, secure=kind != "seeded")
        aside = aside_of(source, self._count, float(share), coins)
        return np.flatnonzero(aside == bool(part))

    # -- rows --------------------------------------------------------------------------------------

    def rows_of(self, view: View) -> Rows:
        """The rows as a curator takes them."""
        self.layout_of(view)
        try:
            return self._view(replace(view, one_group=False))  # which is the curator's doing
        except (FairveilError, OSError) as error:  # whose words may be of rows, or of a place
            raise Refusal("rows-away", detail=f"{self.name}: {error}") from None

    def _made(self, view: View) -> Rows:
        if view.division is None and not view.steps and not view.target_as_number:
            return Rows(self._source)
        blocks = list(self._blocks)
        if view.steps is not None:
            blocks = list(map(self._steps(view).apply, blocks))
        if view.target_as_number:
            blocks = list(map(beside, blocks))
        if view.division is not None:
            encoded = EncodedRows(self._source.encoding, tuple(blocks))
            blocks = list(encoded.chosen(self._places(view.division, view.part)).blocks())
        return Rows(Coded(self.layout_of(view), tuple(blocks)))


def root_of(text: str) -> bytes:
    """The root of a seeded source, as a test brings it."""
    right = re.fullmatch("[0-9a-f]{64}", text)
    need(right, "64 hexadecimal digits", of="seed", got="others", fix="Send a source's root.")
    return bytes.fromhex(text)
