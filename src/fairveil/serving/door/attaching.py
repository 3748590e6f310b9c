"""A finished model that the analyst sends, described: the holder decides about the rows by it, and
counts what it decides.

The model is one of the library's own kinds, as its files say it (numbers and names, read strictly);
no code comes with it. A row gets a code: its decision, the bin of its score, or what a table of
whole numbers says of group, label and decision.

Guarantees (tests/serving/test_serving_counts.py):
1. Which columns a code depends on is found here, from the table itself; what the analyst claims is
   not asked.
2. A model that is randomized draws from a generator of the holder's.
3. Codes stay beside the rows: the analyst has a number for them, which opens nothing elsewhere.
4. A rule that cannot be applied is refused before it meets a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._json import Node
from ...curator import Attached, AttachedCodes, Block, Curator
from ...curator.elsewhere import columns_of
from ...curator.questions.attached_codes import MOST_CODES
from ...curator.questions.row_function import RowFunction
from ...errors import InputError
from ...facts import Cells, RowBlock, RowLayout
from ...learning.postprocessing import score_bins
from ...models import LinearModel, MixtureModel
from ...models.files import ARRAYS_FILE, MODEL_FILE, from_files
from ..wire.catalogue import cells_of
from ..wire.described import DESCRIBED
from ..wire.messages import Message

MOST_TABLE = 1 << 20


@dataclass(frozen=True, eq=False)
class Rule:
    """How rows get their codes: the model's decision or bin, then what `table` (cells, labels,
    decisions) makes of it."""

    model: Any
    edges: npt.NDArray[np.float64] | None
    cells: Cells | None
    table: npt.NDArray[np.int64] | None
    count: int
    title: str
    chance: Callable[[], np.random.Generator]

    @property
    def columns_read(self) -> frozenset[str]:
        """What codes depend on: guarantee 1."""
        return columns_of(self.model, self.table)

    def codes(self, block: Block) -> npt.NDArray[np.intp]:
        """One a row."""
        decided = self._decided(block)
        if self.table is None:
            return decided
        # a block shows no other column
        nobody, read = np.zeros(block.rows, np.intp), self.columns_read
        ids = (
            nobody
            if self.cells is None or "sensitive" not in read
            else np.asarray(block.cells(self.cells)[0], np.intp)
        )
        labels = (
            np.asarray(block.labels, np.intp)
            if "label" in read and self.table.shape[1] > 1
            else nobody
        )
        return np.asarray(self.table[ids, labels, decided], np.intp)

    def column(self, block: Block) -> npt.NDArray[np.float64]:
        """The same as numbers, one line a row."""
        return np.asarray(self.codes(block), np.float64).reshape(block.rows, 1)

    def probabilities(self, block: Block) -> npt.NDArray[np.float64]:
        """A point of the simplex a row."""
        return np.asarray(
            self.model.predict_proba(RowBlock(block.numbers, block.codes)), np.float64
        )

    def _decided(self, block: Block) -> npt.NDArray[np.intp]:
        if self.model is None:  # the labels themselves are counted
            return np.asarray(block.labels, np.intp)
        rows = RowBlock(block.numbers, block.codes)
        if self.edges is not None:
            return np.asarray(
                score_bins.codes(self.model.decision_scores(rows)[:, 0], self.edges), np.intp
            )
        return np.asarray(self.model.predict_codes(rows, self.chance()), np.intp)


def rule_of(
    node: Node, message: Message, layout: RowLayout, chance: Callable[[], np.random.Generator]
) -> Rule:
    """The rule that was described, checked against the shape of the rows."""
    node.only((*DESCRIBED, "count", "title", "handle"))
    model = None if node["model"].is_null else _model(node["model"], message, layout)
    classes = len(layout.classes or ())
    if model is not None and (
        len(model.classes) != classes or tuple(model.classes) != tuple(layout.classes or ())
    ):
        node["model"].refuse(
            f"a model of the classes {list(layout.classes or ())}", list(model.classes)
        )
    edges = None if node["edges"].is_null else score_bins.given(message.array(node["edges"]))
    if edges is not None and (classes != 2 or not isinstance(model, LinearModel)):
        node["edges"].refuse(
            "bins of the score of a linear model of two classes", type(model).__name__
        )
    decisions = classes if edges is None else len(edges) + 1
    cells = cells_of(node["cells"])
    if cells is not None and cells.mode != "product":
        node["cells"].refuse("product groups", cells.mode)
    count = node["count"].whole(at_least=1, at_most=MOST_CODES)
    table = (
        None
        if node["table"].is_null
        else _table(node["table"], message, cells, classes, decisions, count)
    )
    if table is None and count < decisions:
        node["count"].refuse(f"at least {decisions} codes", count)
    return Rule(model, edges, cells, table, count, node["title"].text()[:200], chance)


def attached(curator: Curator, rule: Rule, handle: str) -> Attached | AttachedCodes:
    """Kept beside the rows, once it was tried on made-up ones: beside true rows its errors are
    masked, and count as code 0."""
    tried = RowFunction(
        rule.column, 1, float(MOST_CODES), columns_read=rule.columns_read, title=rule.title
    )
    tried.rehearse(curator.layout)
    if handle in ("decisions", "probabilities"):
        if rule.table is not None or rule.edges is not None:
            remedy = f"Attach a model's {handle} alone."
            raise InputError.expected("no table and no edges", of=handle, got="some", remedy=remedy)
        if handle == "decisions":
            return curator.attach(rule.codes, title=rule.title)
        if rule.model is None:
            raise InputError.expected(
                "a model", of=handle, got=None, remedy="Describe the model that has them."
            )
        return curator.attach(rule.probabilities, title=rule.title)
    return curator.attach_codes(
        rule.codes, rule.count, columns_read=rule.columns_read, title=rule.title
    )


def _model(node: Node, message: Message, layout: RowLayout) -> Any:
    node.only(("files", "arrays"))
    text = node["files"].text().encode()
    packed = message.array(node["arrays"])
    if packed.dtype != np.uint8 or packed.ndim != 1:
        node["arrays"].refuse(
            "the bytes of a model's arrays", f"{packed.dtype} of shape {packed.shape}"
        )
    model = from_files({MODEL_FILE: text, ARRAYS_FILE: packed.tobytes()})
    parts = model.models if isinstance(model, MixtureModel) else (model,)
    for part in parts:
        if not isinstance(part, LinearModel):
            node.refuse("a linear or additive model, or a mixture of these", type(part).__name__)
        if (part.numbers, part.code_sizes) != (layout.numbers, tuple(layout.code_sizes)):
            got = f"{part.numbers} numbers and codes of {list(part.code_sizes)}"
            node.refuse(
                f"a model of {layout.numbers} numbers and codes of {list(layout.code_sizes)}", got
            )
    return model


def _table(
    node: Node, message: Message, cells: Cells | None, classes: int, decisions: int, count: int
) -> Any:
    table = message.array(node)
    groups = 1 if cells is None else cells.count
    shapes = [(groups, labels, decisions) for labels in (1, classes)]
    if table.dtype.kind not in "iu" or table.shape not in shapes or table.size > MOST_TABLE:
        node.refuse(
            f"whole numbers of shape {shapes[0]} or {shapes[1]}",
            f"{table.dtype} of shape {table.shape}",
        )
    if int(table.min()) < 0 or int(table.max()) >= count:
        node.refuse(f"codes from 0 to {count - 1}", "others")
    return np.asarray(table, np.int64)


def digest_of(*parts: bytes) -> bytes:
    """Of a request: what tells a repeated one from another under the same key."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()
