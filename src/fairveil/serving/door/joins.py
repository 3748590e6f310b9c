"""A data set whose sensitive columns lie in another table: joined by id when the door opens
(docs/theory/attribute_holder.md).

    rows = "company.csv"            # features, target and ids
    attribute = "register.csv"      # the sensitive columns, by the same ids
    id = "person"
    unmatched = "group"             # or "drop"

Guarantees (tests/serving/test_serving_joined.py):
1. What is served is the joined table: fits through the door are those on it, to the bit.
2. It is served under ledgers of sensitive features alone, and the attribute is never a feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._json import Node
from ...core.promise import Promise
from ...data import EncodedRows, load_joined
from ...data.joined import UNMATCHED, facts_of, require_rule
from ...errors import InputError
from ...facts import Schema
from ...statement.document import PublicFact

FIELDS = ("attribute", "id", "unmatched", "ids", "attribute_query")


@dataclass(frozen=True)
class Join:
    """Where the attribute lies, and how it is joined."""

    attribute: str
    id: str
    unmatched: str = "group"
    ids: str | None = None
    attribute_query: str | None = None

    @staticmethod
    def of(node: Node, base: Path, schema: Schema) -> Join | None:
        """As a data set of `holder.toml` says it; None where it names no attribute."""
        told = {name: node[name].text() for name in FIELDS if name in node.mapping()}
        if not told:
            return None
        if not {"attribute", "id"} <= set(told):
            node.refuse("attribute and id together", sorted(told))
        if "unmatched" in told:
            node["unmatched"].one_of(UNMATCHED)
        placed: dict[str, Any] = {
            name: text if name not in ("attribute", "ids") or "://" in text else str(base / text)
            for name, text in told.items()
        }
        join = Join(**placed)
        join.require_rule(schema)
        return join

    def require(self, promise: Promise, name: str) -> None:
        """An error unless the ledger protects the attribute alone: features and labels came from
        somebody else."""
        if promise.protects != "sensitive_features":
            remedy = (
                "Create it with --protects sensitive-features: who sent the table has its features "
                "and labels."
            )
            expected = "a ledger of sensitive features alone, for a joined attribute"
            raise InputError.expected(expected, of=name, got=promise.protects, remedy=remedy)

    def require_rule(self, schema: Schema) -> None:
        """An error where this schema does not say what unmatched ids count as."""
        require_rule(schema, self.id, self.unmatched)

    def rows(self, place: str, query: str | None, schema: Schema) -> EncodedRows:
        """The joined table, by a schema that may leave out some of the sensitive columns."""
        how: dict[str, Any] = {"id": self.id, "unmatched": self.unmatched, "ids": self.ids}
        return load_joined(
            place, self.attribute, schema, query=query, attribute_query=self.attribute_query, **how
        )

    def facts(self, schema: Schema) -> tuple[PublicFact, ...]:
        """What statements say of the join."""
        return facts_of(schema, self.unmatched)
