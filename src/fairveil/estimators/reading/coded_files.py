"""Groups, codings and the steps of additive models in documents: what is read agrees with itself."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from ..._codec import Codec, Kind
from ..._json import Node
from ...data import Encoding
from ...facts import Cells, RowLayout
from ...facts.columns import Category
from .additive import MOST_CELLS
from .coding import Coding, Feature, RowsCoding, SchemaCoding, TableCoding
from .shapes import Shapes, Side
from .standard import Standard

MOST_CODES, MOST_EDGES = 1 << 31, 4_096
MOST_GROUPS = 1 << 20
"""A key is made for each."""


def _check_cells(found: dict[str, Any], node: Node) -> None:
    sizes = [len(column) for column in found["columns"]]
    if (math.prod(sizes) if found["mode"] == "product" else sum(sizes)) > MOST_GROUPS:
        node.refuse(f"at most {MOST_GROUPS} groups", "more")


def _check_standard(found: dict[str, Any], node: Node) -> None:
    if len(found["means"]) != len(found["deviations"]):
        node["deviations"].refuse(f"{len(found['means'])} numbers", len(found["deviations"]))
    if not all(0.0 < one < float("inf") for one in found["deviations"]):
        node["deviations"].refuse("deviations above 0", min(found["deviations"]))


def _check_feature(found: dict[str, Any], node: Node) -> None:
    if found["values"] is not None:
        found["values"] = Category(found["values"]).values


def _check_side(found: dict[str, Any], node: Node) -> None:
    edges, marks = found["edges"], found["marks"]
    ascending = all(low < high for line in (edges, marks) for low, high in pairwise(line))
    if (
        not ascending
        or len(edges) != len(marks)
        or len(edges) > MOST_EDGES
        or (found["values"] and edges)
    ):
        node["edges"].refuse(
            f"at most {MOST_EDGES} ascending numbers, as many as marks", len(edges)
        )
    if found["along"] and len(edges) < 2:
        node["along"].refuse("false, where there are no two edges", True)


def _check_coding(cls: type[Coding]) -> Any:
    """Columns, steps and scales of one coding fit together."""

    def check(found: dict[str, Any], node: Node) -> None:
        if cls is TableCoding and not {one.name for one in found["features"]} <= set(
            found["columns"]
        ):
            node["columns"].refuse("the names of all features", found["columns"])
        if cls is RowsCoding:
            node["numbers"].whole(at_most=MOST_CODES)
            for size in node["code_sizes"].list():
                size.whole(at_least=1, at_most=MOST_CODES)
        plain: Any = cls(**found | {"standard": None, "shapes": None})
        shapes, layout = found["shapes"], plain.own_layout
        if shapes is not None:
            require_steps(shapes, layout, node["shapes"])
            layout = shapes.layout(layout)
        if (standard := found["standard"]) is not None and len(standard.means) != layout.numbers:
            node["standard"].refuse(f"means of {layout.numbers} numbers", len(standard.means))

    return check


def require_steps(shapes: Shapes, layout: RowLayout, node: Node) -> None:
    """Steps of columns of this shape; else the error of the document."""
    if any(side.values for side in shapes.steps):
        node["steps"].refuse("numbers alone", "a category")
    for side in (*shapes.steps, *(side for pair in shapes.pairs for side in pair)):
        sizes = layout.code_sizes if side.values else (0,) * layout.numbers
        there = 0 <= side.place < len(sizes)
        if not there or (side.values and sizes[side.place] != len(side.values)):
            node.refuse("columns that the coding has", f"place {side.place}")
    if any(one.size * other.size > MOST_CELLS for one, other in shapes.pairs):
        node["pairs"].refuse(f"two columns of at most {MOST_CELLS} cells", "more")


CODINGS = Codec(
    Kind(Cells, check=_check_cells),
    Kind(Encoding, write=Encoding.to_dict, read=lambda node: Encoding.from_dict(node.mapping())),
    Kind(Standard, check=_check_standard),
    Kind(Feature, check=_check_feature),
    Kind(Side, check=_check_side),
    Kind(Shapes),
    *(Kind(cls, check=_check_coding(cls)) for cls in (SchemaCoding, TableCoding, RowsCoding)),
)


def steps_of(node: Node, layout: RowLayout) -> Shapes:
    """The steps in a document, for rows of this shape."""
    found: Shapes = CODINGS.read(node, Shapes)
    require_steps(found, layout, node)
    return found
