"""The data sets of a holder: their rows, coded once for each choice of sensitive columns, and what
is public of them.

Guarantees (tests/serving/test_serving_runs.py):
1. What analysts are told of a data set is its schema, its terms, its ledger's promise and balance;
   the number of rows only where the ledger's own promise makes it public.
2. Rows are read by the schema alone, and every row is checked before the door opens. What goes
   wrong when they are read again is told to the holder alone (tests/serving/test_serving_rows.py).
3. All views are of the rows that the door was opened with, in the same order.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._json import Node
from ...core.promise import Promise
from ...curator import Rows
from ...data import EncodedRows, Encoding
from ...data import open as open_rows
from ...data.reading import kind_of
from ...errors import InputError
from ...estimators.fitting.row_parts import rows_at
from ...estimators.reading import shapes_json
from ...estimators.reading.copies import refuse_copies, refuse_weights
from ...estimators.reading.targets import beside, need_number, scale_of
from ...estimators.reading.training import Coded
from ...facts import RowBlock, RowLayout, RowSource, Schema
from ...ledger import Ledger
from ...statement.document import PublicFact
from ..wire.messages import MESSAGE
from .divisions import DivisionPart, Divisions
from .holder import Served
from .refusals import ROWS_AWAY, Refusal
from .weights import weights_of

MOST_VIEWS, MOST_CODED = 16, 4
"""Ways of coding one data set that are kept: each is its rows over again."""


@dataclass(frozen=True)
class View:
    """Which columns make the groups, whether they are features, too, and the steps of an additive
    model.

    `weight_cap`: where the holder's weights are cut; None: rows count once. `target_as_number`: the
    target is the last number, too. `part`: of a division; None: all rows. `one_group`: all rows of
    a person count in one group.
    """

    sensitive: tuple[str, ...] | None
    sensitive_as_feature: bool
    steps: str | None = None
    weight_cap: float | None = None
    target_as_number: bool = False
    part: DivisionPart | None = None
    one_group: bool = False

    @staticmethod
    def of(node: Node) -> View:
        """As a run describes it."""
        node.only(
            ("sensitive", "sensitive_as_feature", "steps"),
            ("weight_cap", "target_as_number", "part", "one_group"),
        )
        told = node.mapping()
        names = None if node["sensitive"].is_null else node["sensitive"].texts()
        steps = None if node["steps"].is_null else node["steps"].text()
        cap = (
            None
            if told.get("weight_cap") is None
            else _checks.positive(weight_cap=node["weight_cap"].number())
        )
        number = node["target_as_number"].truth() if "target_as_number" in told else False
        part = None if told.get("part") is None else DivisionPart.of(node["part"])
        one_group = node["one_group"].truth() if "one_group" in told else False
        return View(
            names, node["sensitive_as_feature"].truth(), steps, cap, number, part, one_group
        )


@dataclass(eq=False, repr=False)
class DataSet:
    """One data set, and the ways in which its rows were coded so far."""

    served: Served
    ledger: Ledger
    secret: bytes
    divisions: Divisions | None = None
    _columns: dict[str, bytes] | None = None
    _views: OrderedDict[View, Rows] = field(default_factory=OrderedDict)
    _coded: OrderedDict[tuple[tuple[str, ...] | None, bool], RowSource] = field(
        default_factory=OrderedDict
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def opened(served: Served, secret: bytes) -> DataSet:
        """Ready to be asked: its ledger found, its rows read and checked. `secret`: of digests."""
        if served.schema.target is None:
            remedy = "Say which column is to be predicted: target = ... in the schema."
            raise InputError.expected(
                "a schema with a target", of=served.name, got="none", remedy=remedy
            )
        ledger = Ledger.open(served.ledger, served.ledger_name, who="the door")
        out = DataSet(served, ledger, secret)
        if served.join is not None:
            served.join.require(out.ledger.promise, served.name)
        _require_unit(served, out.ledger.promise)
        whole = View(None, False)
        rows = out.rows_of(whole)
        if served.weights is not None and len(out._weights) != rows.exact_count:
            remedy = "Serve a table that nobody changes while it is read."
            raise InputError.expected(
                "one weight a row", of=served.name, got="another number", remedy=remedy
            )
        if out.ledger.promise.features_are_public:
            encoding, blocks = Encoding(out.schema, False), list(out._source(whole).blocks())
            names = (*(scale.name for scale in encoding.numbers), *encoding.coded)
            refuse_copies(blocks, encoding.layout, names)
            if served.weights is not None:
                refuse_weights(_with_weights(blocks, out._weights), rows.layout)
        _ = out.exact_rows, out._keeps_roles
        return out

    @property
    def name(self) -> str:
        """As analysts call it."""
        return self.served.name

    @cached_property
    def schema(self) -> Schema:
        """Its public facts."""
        return self.served.schema

    @cached_property
    def rows_digest(self) -> bytes:
        """Of all rows in their order, under the door's secret."""
        digest = hashlib.blake2b(key=self.secret, digest_size=32)
        for name, column in sorted((self._columns or {}).items()):
            digest.update(json.dumps(name).encode() + column)
        if self.served.weights is not None:
            digest.update(self._weights.tobytes())
        return digest.digest()

    @cached_property
    def _keeps_roles(self) -> bool:
        """Whether columns keep the roles that they were coded or joined in."""
        served = self.served
        return served.join is not None or kind_of(served.rows, served.query) == "store"

    @cached_property
    def exact_rows(self) -> int | None:
        """The number of rows, where the ledger's promise makes it public."""
        return (
            self.rows_of(View(None, False)).exact_count
            if self.ledger.promise.rows_are_public
            else None
        )

    def schema_of(self, view: View) -> Schema:
        """The schema with the groups of a view."""
        schema = self.schema
        if view.sensitive is not None:
            unused = [name for name in schema.sensitive if name not in view.sensitive]
            schema = schema.with_roles(sensitive=view.sensitive).without(*unused)
        return schema

    def facts_of(self, view: View) -> list[PublicFact]:
        """What statements say of the rows of a view, beside the schema."""
        found = (
            [] if self.served.join is None else list(self.served.join.facts(self.schema_of(view)))
        )
        encoding = Encoding(self.schema_of(view), view.sensitive_as_feature)
        if encoding.target is not None:
            found.append(scale_of(encoding).fact())
        if view.weight_cap is not None:
            found.append(PublicFact("largest sample weight", f"{view.weight_cap:g}", "argument"))
            if self.ledger.promise.features_are_public:
                words = "public: must not depend on the sensitive columns"
                found.append(PublicFact("sample weights", words, "argument"))
        if view.part is not None and self.divisions is not None:
            words = self.divisions.words_of(view.part)
            found.append(PublicFact("rows read", words, "argument"))
        return found

    def layout_of(self, view: View) -> RowLayout:
        """The public shape of the rows of a view; an error where they cannot have it."""
        schema = self.schema_of(view)
        if self._keeps_roles:
            _require_roles(view, self.schema)
        if self.served.join is not None:
            self.served.join.require_rule(schema)
        encoding = Encoding(schema, view.sensitive_as_feature)
        layout = encoding.layout
        if view.weight_cap is not None and self.served.weights is None:
            remedy = "Leave sample_weight=None: the holder serves no weights."
            raise InputError.expected("None", of="weight_cap", got=view.weight_cap, remedy=remedy)
        if view.part is not None and self.schema.unit is not None:
            remedy = (
                "Certify with another data set: coins are thrown for rows, and would part a "
                "person's."
            )
            raise InputError.expected(
                "all rows, where persons are protected", of="part", got="some", remedy=remedy
            )
        if view.steps is not None:
            layout = _steps(view.steps, layout).layout(layout)
        if view.target_as_number:
            need_number(encoding.target is not None, "the schema's target")
            layout = replace(layout, numbers=layout.numbers + 1)
        return layout

    def rows_of(self, view: View) -> Rows:
        """The rows as a curator takes them."""
        view = replace(view, one_group=False)  # which is the curator's doing
        with self._lock:
            if view in self._views:
                self._views.move_to_end(view)
                return self._views[view]
        made = self._made(view)
        with self._lock:
            self._views[view] = made
            while len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)
        return made

    def _made(self, view: View) -> Rows:
        source = self._source(view)
        weights = None if view.weight_cap is None else self._weights
        if view.part is not None:
            assert self.divisions is not None
            at = self.divisions.rows_of(view.part, sum(block.rows for block in source.blocks()))
            source, weights = rows_at(source, at), None if weights is None else weights[at]
        if view.steps is None and weights is None and not view.target_as_number:
            return Rows(source)
        blocks = list(source.blocks())
        if view.steps is not None:
            blocks = list(map(_steps(view.steps, source.layout).apply, blocks))
        if weights is not None:
            blocks = _with_weights(blocks, weights)
        if view.target_as_number:
            blocks = list(map(beside, blocks))
        return Rows(
            Coded(self.layout_of(view), tuple(blocks)), max_sample_weight=view.weight_cap or 1.0
        )

    def _source(self, view: View) -> RowSource:
        """The coded rows that views of the same columns share; read once."""
        key = (view.sensitive, view.sensitive_as_feature)
        with self._lock:
            found = self._coded.get(key)
        if found is None:
            found = self._read(view)
            with self._lock:
                self._coded[key] = found
                while len(self._coded) > MOST_CODED:
                    self._coded.popitem(last=False)
        return found

    def _read(self, view: View) -> RowSource:
        """Guarantees 2 and 3: the first rows say what all later ones must be."""
        try:
            found = read(self.served, self.schema_of(view), view.sensitive_as_feature)
            columns = digests_of(found, self.secret)
        except Exception as error:
            if self._columns is None:
                raise
            # its words may tell a place, and how many rows there are
            detail = f"{self.name}: {type(error).__name__}: {error}"
            raise Refusal(*ROWS_AWAY, detail=detail) from None
        if self._columns is None:
            self._columns = columns
        if any(self._columns.get(name) != digest for name, digest in columns.items()):
            detail = f"{self.name}: the rows have changed since the door was opened"
            raise Refusal(*ROWS_AWAY, detail=detail)
        return found

    @cached_property
    def _weights(self) -> npt.NDArray[np.float64]:
        assert self.served.weights is not None
        return weights_of(self.served.rows, self.schema, self.served.weights)

    def facts(self) -> dict[str, Any]:
        """What is told to an analyst: guarantee 1."""
        promise = self.ledger.promise
        return {
            "name": self.name,
            "title": self.served.title,
            "terms": self.served.terms,
            "schema": self.schema.to_toml(),
            "promise": promise.to_dict(),
            "exact_rows": self.exact_rows,
            "seeded": self.served.seeded,
            "features_served": self.served.features_served and promise.features_are_public,
            "weights": self.served.weights,
        }

    def balance(self) -> dict[str, Any]:
        """What is spent and what is left."""
        found = self.ledger.balance()
        return {
            name: value
            for name, value in found.to_dict().items()
            if isinstance(value, int | float | str | bool)
        }


def _with_weights(blocks: list[RowBlock], weights: npt.NDArray[np.float64]) -> list[RowBlock]:
    starts = np.cumsum([0, *(block.rows for block in blocks)])
    return [
        replace(one, weights=weights[a : a + one.rows])
        for a, one in zip(starts, blocks, strict=False)
    ]


def _require_roles(view: View, schema: Schema) -> None:
    """Groups are some of the sensitive columns, and these no features."""
    if view.sensitive_as_feature:
        remedy = "Leave it out: these columns are kept apart from the features."
        raise InputError.expected("False", of="sensitive_as_feature", got=True, remedy=remedy)
    strange = sorted(set(view.sensitive or ()) - set(schema.sensitive))
    if strange:
        remedy = "Leave sensitive_features=None, or name some of these."
        expected = f"some of {list(schema.sensitive)}"
        raise InputError.expected(expected, of="sensitive", got=strange, remedy=remedy)


def _require_unit(served: Served, promise: Promise) -> None:
    """Rows and ledger agree on who is protected; before a row is read."""
    own, told = served.schema.unit, None if promise.unit is None else promise.unit.name
    if own != told:
        named = "rows" if own is None else f"persons by {own!r}"
        remedy = (
            "Create the ledger with --schema of this data set; or serve schema.without_unit(), one "
            "row a person."
        )
        got = "one of rows" if told is None else f"one of persons by {told!r}"
        raise InputError.expected(
            f"a ledger of {named}", of=served.name, got=got, remedy=remedy, quote=False
        )


def digests_of(source: EncodedRows, secret: bytes) -> dict[str, bytes]:
    """A keyed digest of each column, by its name, as its values are coded in any role."""
    encoding = source.encoding
    schema = encoding.schema
    digests: dict[str, Any] = {}
    for block in source.blocks():
        lines = [
            *zip((scale.name for scale in encoding.numbers), block.numbers, strict=True),
            *zip(encoding.coded, block.codes, strict=True),
            *zip(schema.sensitive, () if block.sensitive is None else block.sensitive, strict=True),
            *([] if block.labels is None else [(str(schema.target), block.labels)]),
        ]
        for name, line in dict(lines).items():
            kind = np.float64 if line.dtype.kind == "f" else np.int64
            digest = digests.setdefault(name, hashlib.blake2b(key=secret, digest_size=32))
            digest.update(np.ascontiguousarray(line, kind))
        if block.persons is not None:
            digest = digests.setdefault("", hashlib.blake2b(key=secret, digest_size=32))
            digest.update(np.ascontiguousarray(block.persons).tobytes())
    return {name: digest.digest() for name, digest in digests.items()}


def read(served: Served, schema: Schema, sensitive_as_feature: bool) -> EncodedRows:
    """The rows of a place, coded and checked by a schema."""
    if served.join is not None:
        return served.join.rows(served.rows, served.query, schema)
    return open_rows(
        served.rows, schema, query=served.query, sensitive_as_feature=sensitive_as_feature
    )


def _steps(text: str, layout: RowLayout) -> Any:
    return shapes_json.from_dict(replace(MESSAGE, name="steps").node(text), layout)
