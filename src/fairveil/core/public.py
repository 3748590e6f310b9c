"""What of rows is public: facts for a statement, and features and labels as an array where a
promise leaves them so, for searches that are arithmetic on public numbers.

Guarantees (tests/curator/test_curator_attached.py):
1. A table only where features and labels are public; the sensitive columns are no part of it.
2. `memberships` are given away by a promise of no privacy alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import PrivacyError
from .layout import Cells, Floats, row_major
from .promise import Promise
from .rows import Block, Rows

READ_FROM_DATA = "read from the data, not covered"


class Fact(NamedTuple):
    """Something that was taken as public, for the statement: its name, its value in words, where it
    came from."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, eq=False, repr=False)  # a printed table would show rows
class PublicTable:
    """Every `step`-th row. `features` (rows, 1 + width), the intercept first, categories as
    indicators; `labels` (rows,) class codes; `weights` (rows,). `memberships` (rows, cells): exact,
    and None where anything is promised."""

    features: Floats
    labels: npt.NDArray[np.intp]
    weights: Floats
    step: int
    memberships: Floats | None


def public_table(rows: Rows, promise: Promise, cells: Cells | None, most: int) -> PublicTable:
    """At most `most` numbers, if it takes leaving out rows; which ones depends on their positions
    alone."""
    if not promise.features_are_public:
        remedy = "Ask bounded questions of the rows."
        raise PrivacyError.expected(
            "public features and labels", of="public_table", got=promise.protects, remedy=remedy
        )
    numbers = rows.exact_count * (1 + rows.layout.width)
    step = max(1, -(-numbers // max(1, most)))
    first, parts = 0, list[Block]()
    for block in rows.blocks():
        parts.append(block.take(np.arange(-first % step, block.rows, step)))
        first += block.rows
    weights = [part.weights if len(part.weights) else np.ones(part.rows) for part in parts]
    told = None
    if not promise.is_private and cells is not None:
        told = np.concatenate([_memberships(part, cells) for part in parts])
    return PublicTable(
        np.concatenate([_features(part) for part in parts]),
        np.concatenate([np.asarray(part.labels, np.intp) for part in parts]),
        np.concatenate(weights),
        step,
        told,
    )


def _features(block: Block) -> Floats:
    written = row_major(block.raw, block.layout.code_sizes, kind=np.float64)
    return np.hstack([np.ones((block.rows, 1)), written])


def _memberships(block: Block, cells: Cells) -> Floats:
    out = np.zeros((block.rows, cells.count))
    for line in np.asarray(block.cells(cells), np.intp):
        out[np.arange(block.rows), line] = 1.0
    return out


def public_facts(rows: Rows, public_rows: int | None, given: Iterable[Any]) -> tuple[Any, ...]:
    """The caller's own facts, then the rows' classes, groups, weight cap and public number, unless
    the caller named them."""
    stated = "schema" if rows.has_schema else "argument"

    def origin(what: str) -> str:
        return READ_FROM_DATA if what in rows.read_from_data else stated

    layout, out = rows.layout, list[Any]()
    if layout.classes is not None:
        out.append(Fact("classes", _listed(layout.classes), origin("classes")))
    for name, values in zip(layout.sensitive_names, layout.sensitive, strict=True):
        out.append(Fact(f"groups of {name}", _listed(values), origin("groups")))
    if public_rows is not None:
        out.append(Fact("number of rows", str(public_rows), "argument"))
    if rows.weighted:
        cap = f"{rows.max_sample_weight:g}"
        out.append(Fact("largest sample weight", cap, "argument"))
    own = tuple(given)
    named = {fact.name for fact in own}
    return (*own, *(fact for fact in out if fact.name not in named))


def _listed(values: Iterable[object]) -> str:
    text = ", ".join("".join(c if c.isprintable() else "?" for c in str(value)) for value in values)
    return text.strip() or "one without a name"
