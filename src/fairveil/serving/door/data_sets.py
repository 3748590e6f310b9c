"""The data sets of a holder: their rows, coded once for each choice of sensitive columns, and what is public of them.

Guarantees (tests/serving/test_serving_runs.py):
1. What analysts are told of a data set is its schema, its terms, its ledger's promise and balance; the number of rows only
   where the ledger's own promise makes it public.
2. Rows are read by the schema alone, and every row is checked before the door opens.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..._json import Node
from ...curator import Rows
from ...data import Encoding
from ...data import open as open_rows
from ...errors import InputError, complaint
from ...estimators.reading import shapes_json
from ...estimators.reading.inputs import Coded
from ...facts import RowLayout, RowSource, Schema
from ...privacy.ledger import Ledger
from ...privacy.statement.parts import PublicFact
from ..wire.messages import MESSAGE
from .holder import Served

MOST_VIEWS = 16
"""Ways of coding one data set that are kept: each is its rows over again."""


@dataclass(frozen=True)
class View:
    """Which columns make the groups, whether they are features, too, and the steps of an additive model."""

    sensitive: tuple[str, ...] | None
    sensitive_as_feature: bool
    steps: str | None = None

    @staticmethod
    def of(node: Node) -> View:
        """As a run describes it."""
        node.only(("sensitive", "sensitive_as_feature", "steps"))
        names = None if node["sensitive"].is_null else node["sensitive"].texts()
        steps = None if node["steps"].is_null else node["steps"].text()
        return View(names, node["sensitive_as_feature"].truth(), steps)


@dataclass(eq=False, repr=False)
class DataSet:
    """One data set, and the ways in which its rows were coded so far."""

    served: Served
    ledger: Ledger
    _views: OrderedDict[View, Rows] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def opened(served: Served) -> DataSet:
        """Ready to be asked: its ledger found, its rows read and checked."""
        if served.schema.unit is not None:
            remedy = "Serve a schema of rows: schema.without_unit(), one row a person."
            raise InputError(complaint(expected="a schema of rows", of=served.name, got="one of persons", remedy=remedy))
        if served.schema.target is None:
            remedy = "Say which column is to be predicted: target = ... in the schema."
            raise InputError(complaint(expected="a schema with a target", of=served.name, got="none", remedy=remedy))
        out = DataSet(served, Ledger.open(served.ledger, served.ledger_name, who="the door"))
        if served.join is not None:
            served.join.require(out.ledger.promise, served.name)
        out.rows_of(View(None, False))
        return out

    @property
    def name(self) -> str:
        """As analysts call it."""
        return self.served.name

    @cached_property
    def schema(self) -> Schema:
        """Its public facts."""
        return self.served.schema

    @property
    def exact_rows(self) -> int | None:
        """The number of rows, where the ledger's promise makes it public."""
        return self.rows_of(View(None, False)).exact_count if self.ledger.promise.rows_are_public else None

    def schema_of(self, view: View) -> Schema:
        """The schema with the groups of a view."""
        schema = self.schema
        if view.sensitive is not None:
            unused = [name for name in schema.sensitive if name not in view.sensitive]
            schema = schema.with_roles(sensitive=view.sensitive).without(*unused)
        return schema

    def facts_of(self, view: View) -> list[PublicFact]:
        """What statements say of the rows of a view, beside the schema."""
        return [] if self.served.join is None else list(self.served.join.facts(self.schema_of(view)))

    def layout_of(self, view: View) -> RowLayout:
        """The public shape of the rows of a view."""
        layout = Encoding(self.schema_of(view), view.sensitive_as_feature).layout
        return layout if view.steps is None else _steps(view.steps, layout).layout(layout)

    def rows_of(self, view: View) -> Rows:
        """The rows as a curator takes them."""
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
        source = read(self.served, self.schema_of(view), view.sensitive_as_feature)
        if view.steps is None:
            return Rows(source)
        shapes = _steps(view.steps, source.layout)
        return Rows(Coded(shapes.layout(source.layout), tuple(map(shapes.apply, source.blocks()))))

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
        }

    def balance(self) -> dict[str, Any]:
        """What is spent and what is left."""
        found = self.ledger.balance()
        return {name: value for name, value in found.to_dict().items() if isinstance(value, int | float | str | bool)}


def read(served: Served, schema: Schema, sensitive_as_feature: bool) -> RowSource:
    """The rows of a place, coded and checked by a schema."""
    if served.join is not None:
        return served.join.rows(served.rows, served.query, schema, sensitive_as_feature)
    return open_rows(served.rows, schema, query=served.query, in_memory=True, sensitive_as_feature=sensitive_as_feature)


def _steps(text: str, layout: RowLayout) -> Any:
    return shapes_json.from_dict(replace(MESSAGE, name="steps").node(text), layout)
