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
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.errors import need
from ..core.noise import NoiseSource
from ..curator import Rows
from ..data import EncodedRows, Encoding
from ..data.joined import facts_of, require_rule
from ..data.reading import kind_of
from ..errors import FairveilError, LedgerError
from ..estimators.coding import steps_of
from ..estimators.fitting import aside_of
from ..estimators.reading import Coded, beside, need_number, refuse_copies, refuse_weights, scale_of
from ..facts import RowBlock, RowLayout, RowSource, Schema
from ..ledger import Ledger
from ..statement.document import PublicFact
from .holder import Served
from .records import Records
from .refusals import Refusal
from .wire import MESSAGE, View

LACKS = ("one of its own spends", "an older copy")
"""What a ledger says that has forgotten what was spent."""
MOST_VIEWS = 16
"""Views of one data set that are kept: each may be its rows over again."""


class DataSet:
    """One data set, ready to be asked, and the views of it that were made so far."""

    def __init__(self, served: Served, records: Records) -> None:
        self.served, self.name, self.schema = served, served.name, served.schema
        self._records = records
        self.lacks: str | None = None  # what its ledger lacks
        self.ledger = Ledger.open(served.ledger, served.ledger_name, who="the server")
        self.promise = self.ledger.promise
        served.require(self.promise)
        # columns that keep the roles that they were coded or joined in
        self._keeps = served.is_joined or kind_of(served.rows, served.query) == "store"
        self._source = served.read(sensitive_as_feature=not self._keeps)
        self._blocks, self._weights = tuple(self._source.blocks()), served.row_weights()
        self._starts = np.cumsum([0, *(block.rows for block in self._blocks)])
        self._count = count = int(self._starts[-1])
        same = self._weights is None or len(self._weights) == count
        fix = "Serve a table that nobody changes while it is read."
        need(same, "one weight a row", of=self.name, got="another number", fix=fix)
        self._view = lru_cache(MOST_VIEWS)(self._made)
        if self.promise.features_are_public:
            encoding, whole = Encoding(self.schema, False), self._derived(View())
            names = (*(scale.name for scale in encoding.numbers), *encoding.coded)
            refuse_copies(list(whole.blocks()), encoding.layout, names)
            refuse_weights(self._weighed(list(whole.blocks())), whole.layout)
        self.digest = self._digest(records.secret)
        self.exact_rows = count if self.promise.rows_are_public else None
        self.require_spends()

    def _digest(self, secret: bytes) -> bytes:
        """Of all rows in their order, under the server's secret."""
        digest = hashlib.blake2b(key=secret, digest_size=32)
        digest.update(json.dumps([self._source.encoding.features, self.schema.sensitive]).encode())
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
        if view.sensitive is None:
            return self.schema
        unused = [name for name in self.schema.sensitive if name not in view.sensitive]
        return self.schema.with_roles(sensitive=view.sensitive).without(*unused)

    def facts_of(self, view: View) -> list[PublicFact]:
        """What statements say of the rows of a view, beside the schema."""
        schema, found = self.schema_of(view), list[PublicFact]()
        if self.served.is_joined:
            found += facts_of(schema, self.served.rule)
        encoding = Encoding(schema, view.sensitive_as_feature)
        if encoding.target is not None:
            found.append(scale_of(encoding).fact())
        told = {}
        if view.weight_cap is not None:
            told["largest sample weight"] = f"{view.weight_cap:g}"
            if self.promise.features_are_public:
                told["sample weights"] = "public: must not depend on the sensitive columns"
        if view.part is not None:
            division = self._records.division(view.part[0])
            share = division["share"] if view.part[1] else 1.0 - division["share"]
            coin = "a secret coin" if division["secure"] else "a seeded coin"
            told["rows read"] = f"each row with probability {share:g}, by {coin} of its own"
        return [*found, *(PublicFact(name, words, "argument") for name, words in told.items())]

    def layout_of(self, view: View) -> RowLayout:
        """The public shape of the rows of a view; an error where they cannot have it."""
        schema = self.schema_of(view)
        strange = sorted(set(view.sensitive or ()) - set(self.schema.sensitive))
        may = not self._keeps or not (view.sensitive_as_feature or strange)
        expected, of = f"some of {list(self.schema.sensitive)}", "sensitive, sensitive_as_feature"
        fix, got = (
            "Leave both out: these columns are apart from the features.",
            strange or "features",
        )
        need(may, f"{expected}, as groups alone", of=of, got=got, fix=fix)
        if self.served.is_joined:
            require_rule(schema, str(self.served.id), self.served.rule)
        may = view.weight_cap is None or self._weights is not None
        fix = "Leave sample_weight=None: the holder serves no weights."
        need(may, "None", of="weight_cap", got=view.weight_cap, fix=fix)
        may = view.part is None or self.schema.unit is None
        fix = "Certify with another data set: coins of rows would part a person's."
        need(may, "all rows, where persons are protected", of="part", got="some", fix=fix)
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
        self.layout_of(view)
        try:
            return self._view(replace(view, one_group=False))  # which is the curator's doing
        except (FairveilError, OSError) as error:  # whose words may be of rows, or of a place
            raise Refusal("rows-away", detail=f"{self.name}: {error}") from None

    def part(self, part: tuple[str, int]) -> np.ndarray[Any, Any]:
        """The places of the rows of a part: guarantee 3."""
        found = self._records.division(part[0])
        source = NoiseSource(bytes(found["root"]), secure=bool(found["secure"]))
        aside = aside_of(source, self._count, found["share"], found["coins"])
        return np.flatnonzero(aside == bool(part[1]))

    def _made(self, view: View) -> Rows:
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
            source = Coded(self.layout_of(view), tuple(blocks))
        return Rows(source, max_sample_weight=view.weight_cap or 1.0)

    def _derived(self, view: View) -> RowSource:
        """The rows with their columns in the roles of a view: a column has the same codes in all."""
        base = self._source.encoding
        encoding = Encoding(self.schema_of(view), view.sensitive_as_feature)
        if encoding.layout == base.layout and encoding.features == base.features:
            return self._source
        numbers = [scale.name for scale in base.numbers]
        wanted = [scale.name for scale in encoding.numbers]
        at = None if wanted == numbers else [numbers.index(name) for name in wanted]
        blocks = []
        for block in self._blocks:
            own = () if block.sensitive is None else block.sensitive
            codes = dict(zip(self.schema.sensitive, own, strict=False))
            codes |= dict(zip(base.coded, block.codes, strict=True))
            features = [codes[name] for name in encoding.coded]
            groups = [codes[name] for name in encoding.schema.sensitive]
            kind = np.result_type(np.uint8, *features)
            none = np.zeros((0, block.rows), np.uint8)
            parts: dict[str, Any] = {"codes": np.array(features, kind) if features else none}
            parts["sensitive"] = np.array(groups, np.uint16) if groups else None
            if at is not None:
                sparse = hasattr(block.numbers, "toarray")
                parts["numbers"] = block.numbers[:, at] if sparse else block.numbers[at]
            blocks.append(replace(block, **parts))
        return Coded(encoding.layout, tuple(blocks), self._source.traits)

    def _weighed(self, blocks: list[RowBlock]) -> list[RowBlock]:
        weights = self._weights
        if weights is None:
            return blocks
        parts = np.split(weights, self._starts[1:-1])
        return [replace(one, weights=part) for one, part in zip(blocks, parts, strict=True)]


def _steps(text: str, layout: RowLayout) -> Any:
    return steps_of(replace(MESSAGE, name="steps").node(text), layout)
