"""The data sets of a server: their rows, read once and coded, and what is public of them.

Guarantees (tests/serving/test_serving_data.py):
1. What analysts are told of a data set is its schema, its terms, its ledger's promise and balance;
   the number of rows only where the ledger's own promise makes it public.
2. Rows are read once, by the schema alone, and every row is checked before the server opens. All
   views are made of these: nothing that an analyst asks for reads a file or a database again.
3. The two parts of a division have no row in common, in all runs and after the server was killed:
   coins are thrown by place, so a division is bound to its rows and their order.
4. A ledger that lacks what runs of this server spent is refused: another one, or an older copy.
5. A joined or stored attribute is never a feature.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _checks
from .._json import Node
from ..core.noise import NoiseSource
from ..curator import Rows
from ..data import EncodedRows, Encoding
from ..data.reading import kind_of
from ..errors import FairveilError, InputError, LedgerError
from ..estimators.fitting import aside_of
from ..estimators.reading.coded_files import steps_of
from ..estimators.reading.copies import refuse_copies, refuse_weights
from ..estimators.reading.targets import beside, need_number, scale_of
from ..estimators.reading.training import Coded
from ..facts import RowBlock, RowLayout, RowSource, Schema
from ..ledger import Ledger
from ..statement.document import PublicFact
from .holder import Served
from .records import Records
from .refusals import Refusal
from .wire import MESSAGE

MOST_VIEWS = 16
"""Views of one data set that are kept: each may be its rows over again."""


@dataclass(frozen=True)
class View:
    """Which of the schema's columns make the groups, whether they are features, too, and the steps
    of an additive model.

    `weight_cap`: where the holder's weights are cut; None: rows count once. `target_as_number`: the
    target is the last number, too. `part`: of a division; None: all rows. `one_group`: all rows of
    a person count in one group.
    """

    sensitive: tuple[str, ...] | None = None
    sensitive_as_feature: bool = False
    steps: str | None = None
    weight_cap: float | None = None
    target_as_number: bool = False
    part: tuple[str, int] | None = None
    one_group: bool = False

    @staticmethod
    def of(node: Node) -> View:
        """As a run describes it."""
        needed = ("sensitive", "sensitive_as_feature", "steps")
        told = node.only(needed, ("weight_cap", "target_as_number", "part", "one_group")).mapping()
        given = {name: node[name] for name, value in told.items() if value is not None}
        values: dict[str, Any] = {}
        for name, one in given.items():
            if name == "part":
                one.only(("division", "number"))
                values[name] = one["division"].text(), one["number"].whole(at_most=1)
            elif name == "weight_cap":
                values[name] = _checks.positive(weight_cap=one.number())
            else:
                texts = {"sensitive": one.texts, "steps": one.text}
                values[name] = texts.get(name, one.truth)()
        return View(**values)


class DataSet:
    """One data set, ready to be asked, and the views of it that were made so far."""

    def __init__(self, served: Served, records: Records) -> None:
        self.served, self.name, self.schema = served, served.name, served.schema
        self._records, self._lock = records, threading.Lock()
        self._views: OrderedDict[View, Rows] = OrderedDict()
        self.lacks: str | None = None  # what its ledger lacks
        self.ledger = Ledger.open(served.ledger, served.ledger_name, who="the server")
        self.promise = self.ledger.promise
        served.require(self.promise)
        # columns that keep the roles that they were coded or joined in
        self._keeps = served.join is not None or kind_of(served.rows, served.query) == "store"
        self._source = served.read(sensitive_as_feature=not self._keeps)
        self._blocks = tuple(self._source.blocks())
        self._weights = served.row_weights()
        self._starts = np.cumsum([0, *(block.rows for block in self._blocks)])
        count = int(self._starts[-1])
        if self._weights is not None and len(self._weights) != count:
            remedy = "Serve a table that nobody changes while it is read."
            got = "another number"
            raise InputError.expected("one weight a row", of=self.name, got=got, remedy=remedy)
        self._count = count
        whole = self._derived(View())
        self._views[View()] = Rows(whole)
        if self.promise.features_are_public:
            encoding = Encoding(self.schema, False)
            names = (*(scale.name for scale in encoding.numbers), *encoding.coded)
            refuse_copies(list(whole.blocks()), encoding.layout, names)
            refuse_weights(self._weighed(list(whole.blocks())), whole.layout)
        self.digest = self._digest(records.secret)
        self.exact_rows = count if self.promise.rows_are_public else None
        self.require_spends()

    def _digest(self, secret: bytes) -> bytes:
        """Of all rows in their order, under the server's secret."""
        digest = hashlib.blake2b(key=secret, digest_size=32)
        encoding = self._source.encoding
        digest.update(json.dumps([encoding.features, self.schema.sensitive]).encode())
        for block in self._blocks:
            for part in (block.numbers, block.codes, block.sensitive, block.labels, block.persons):
                if part is not None:
                    dense = part.toarray() if hasattr(part, "toarray") else part
                    digest.update(np.ascontiguousarray(dense).tobytes())
        if self._weights is not None:
            digest.update(self._weights.tobytes())
        return digest.digest()

    def require_spends(self) -> None:
        """Guarantee 4, of the latest spends: those before them stand before them in a ledger."""
        query = (
            "SELECT spend FROM runs WHERE dataset = ? AND spend IS NOT NULL ORDER BY opened DESC"
        )
        for row in self._records.rows(f"{query} LIMIT 64", (self.name,)):
            try:
                self.ledger.standing(row["spend"])
            except LedgerError as error:
                if "one of its own spends" not in str(error):
                    raise  # it does not answer: nothing is known to be wrong
                self.lacks = row["spend"]
                remedy = (
                    "Restore the newer one, or record there what is missing and take a new folder."
                )
                raise LedgerError.expected(
                    "a ledger that has what this server's runs spent",
                    of=self.name,
                    got=f"one that lacks spend {row['spend']}",
                    remedy=remedy,
                    quote=False,
                ) from None
        self.lacks = None

    # -- what is public ----------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """What is told to an analyst: guarantee 1."""
        return {
            "name": self.name,
            "title": self.served.title,
            "terms": self.served.terms,
            "schema": self.schema.to_toml(),
            "promise": self.promise.to_dict(),
            "exact_rows": self.exact_rows,
            "seeded": self.served.seeded,
            "features_served": self.features_served,
            "weights": self.served.weights,
        }

    @property
    def features_served(self) -> bool:
        """Whether analysts may have the table of features and labels."""
        return self.served.features_served and self.promise.features_are_public

    def balance(self) -> dict[str, Any]:
        """What is spent and what is left."""
        told = self.ledger.balance().to_dict().items()
        return {name: value for name, value in told if isinstance(value, int | float | str | bool)}

    def schema_of(self, view: View) -> Schema:
        """The schema with the groups of a view."""
        schema = self.schema
        if view.sensitive is not None:
            unused = [name for name in schema.sensitive if name not in view.sensitive]
            schema = schema.with_roles(sensitive=view.sensitive).without(*unused)
        return schema

    def facts_of(self, view: View) -> list[PublicFact]:
        """What statements say of the rows of a view, beside the schema."""
        schema, join = self.schema_of(view), self.served.join
        found = [] if join is None else list(join.facts(schema))
        encoding = Encoding(schema, view.sensitive_as_feature)
        if encoding.target is not None:
            found.append(scale_of(encoding).fact())
        if view.weight_cap is not None:
            found.append(PublicFact("largest sample weight", f"{view.weight_cap:g}", "argument"))
            if self.promise.features_are_public:
                words = "public: must not depend on the sensitive columns"
                found.append(PublicFact("sample weights", words, "argument"))
        if view.part is not None:
            division = self._records.division(view.part[0])
            share = division["share"] if view.part[1] else 1.0 - division["share"]
            coin = "a secret coin" if division["secure"] else "a seeded coin"
            words = f"each row with probability {share:g}, by {coin} of its own"
            found.append(PublicFact("rows read", words, "argument"))
        return found

    def layout_of(self, view: View) -> RowLayout:
        """The public shape of the rows of a view; an error where they cannot have it."""
        schema = self.schema_of(view)
        strange = sorted(set(view.sensitive or ()) - set(self.schema.sensitive))
        if self._keeps and (view.sensitive_as_feature or strange):
            remedy = "Leave both out: these columns are kept apart from the features."
            raise InputError.expected(
                f"some of {list(self.schema.sensitive)}, as groups alone",
                of="sensitive, sensitive_as_feature",
                got=strange or "features",
                remedy=remedy,
            )
        if self.served.join is not None:
            self.served.join.require_rule(schema)
        if view.weight_cap is not None and self._weights is None:
            remedy = "Leave sample_weight=None: the holder serves no weights."
            raise InputError.expected("None", of="weight_cap", got=view.weight_cap, remedy=remedy)
        if view.part is not None and self.schema.unit is not None:
            remedy = "Certify with another data set: coins of rows would part a person's."
            expected = "all rows, where persons are protected"
            raise InputError.expected(expected, of="part", got="some", remedy=remedy)
        encoding = Encoding(schema, view.sensitive_as_feature)
        layout = encoding.layout
        if view.steps is not None:
            layout = _steps(view.steps, layout).layout(layout)
        if view.target_as_number:
            need_number(encoding.target is not None, "the schema's target")
            layout = replace(layout, numbers=layout.numbers + 1)
        return layout

    # -- rows --------------------------------------------------------------------------------------

    def rows_of(self, view: View) -> Rows:
        """The rows as a curator takes them."""
        layout = self.layout_of(view)
        view = replace(view, one_group=False)  # which is the curator's doing
        with self._lock:
            found = self._views.get(view)
            if found is not None:
                self._views.move_to_end(view)
                return found
        try:
            made = self._made(view, layout)
        except (FairveilError, OSError) as error:  # whose words may be of rows, or of a place
            raise Refusal("rows-away", detail=f"{self.name}: {error}") from None
        with self._lock:
            self._views[view] = made
            while len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)
        return made

    def part(self, part: tuple[str, int]) -> np.ndarray[Any, Any]:
        """The places of the rows of a part: guarantee 3."""
        found = self._records.division(part[0])
        source = NoiseSource(bytes(found["root"]), secure=bool(found["secure"]))
        aside = aside_of(source, self._count, found["share"], found["coins"])
        return np.flatnonzero(aside == bool(part[1]))

    def _made(self, view: View, layout: RowLayout) -> Rows:
        source = self._derived(view)
        if view.part is not None or view.steps or view.weight_cap or view.target_as_number:
            blocks = list(source.blocks())
            if view.steps is not None:
                blocks = list(map(_steps(view.steps, source.layout).apply, blocks))
            if view.weight_cap is not None:
                blocks = self._weighed(blocks)
            if view.target_as_number:
                blocks = list(map(beside, blocks))
            if view.part is not None:
                encoded = EncodedRows(self._source.encoding, tuple(blocks))
                blocks = list(encoded.chosen(self.part(view.part)).blocks())
            source = Coded(layout, tuple(blocks))
        return Rows(source, max_sample_weight=view.weight_cap or 1.0)

    def _derived(self, view: View) -> RowSource:
        """The rows with their columns in the roles of a view: a column has the same codes in all."""
        base, encoding = (
            self._source.encoding,
            Encoding(self.schema_of(view), view.sensitive_as_feature),
        )
        if encoding.layout == base.layout and encoding.features == base.features:
            return self._source
        numbers = [scale.name for scale in base.numbers]
        wanted = [scale.name for scale in encoding.numbers]
        at = None if wanted == numbers else [numbers.index(name) for name in wanted]
        blocks = []
        for block in self._blocks:
            own = (
                ()
                if block.sensitive is None
                else zip(self.schema.sensitive, block.sensitive, strict=True)
            )
            codes = dict([*own, *zip(base.coded, block.codes, strict=True)])
            features = [codes[name] for name in encoding.coded]
            groups = [codes[name] for name in encoding.schema.sensitive]
            kind = np.result_type(np.uint8, *features)
            none = np.zeros((0, block.rows), np.uint8)
            parts: dict[str, Any] = {
                "codes": np.array(features, kind) if features else none,
                "sensitive": np.array(groups, np.uint16) if groups else None,
            }
            if at is not None:
                sparse = hasattr(block.numbers, "toarray")
                parts["numbers"] = block.numbers[:, at] if sparse else block.numbers[at]
            blocks.append(replace(block, **parts))
        return Coded(encoding.layout, tuple(blocks), self._source.traits)

    def _weighed(self, blocks: list[RowBlock]) -> list[RowBlock]:
        if self._weights is None:
            return blocks
        return [
            replace(one, weights=self._weights[a : a + one.rows])
            for a, one in zip(self._starts, blocks, strict=False)
        ]


def _steps(text: str, layout: RowLayout) -> Any:
    return steps_of(replace(MESSAGE, name="steps").node(text), layout)
