"""The steps of an additive model as plain JSON values, and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..._json import Node
from ...facts import RowLayout
from .additive import MOST_CELLS
from .shapes import Shapes, Side

MOST_EDGES = 4_096


def to_dict(shapes: Shapes) -> dict[str, Any]:
    """Plain JSON values."""
    return {
        "steps": [_side_to_dict(side) for side in shapes.steps],
        "pairs": [[_side_to_dict(one), _side_to_dict(other)] for one, other in shapes.pairs],
    }


def from_dict(node: Node, layout: RowLayout) -> Shapes:
    """The inverse of `to_dict`, for columns of this shape."""
    node.only(("steps", "pairs"))
    steps = tuple(_side_from(side, layout) for side in node["steps"].list())
    if any(side.values for side in steps):
        node["steps"].refuse("numbers alone", "a category")
    pairs = []
    for pair in node["pairs"].list():
        sides = [_side_from(side, layout) for side in pair.list()]
        if len(sides) != 2 or sides[0].size * sides[1].size > MOST_CELLS:
            pair.refuse(f"two columns of at most {MOST_CELLS} cells", len(sides))
        pairs.append((sides[0], sides[1]))
    return Shapes(steps, tuple(pairs))


def _side_to_dict(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "place": side.place,
        "edges": list(side.edges),
        "marks": list(side.marks),
        "values": list(side.values),
        "along": side.along,
    }


def _side_from(node: Node, layout: RowLayout) -> Side:
    node.only(("name", "place", "edges", "marks", "values", "along"))
    values, edges, marks = node["values"].texts(), node["edges"].numbers(), node["marks"].numbers()
    sizes = layout.code_sizes if values else (0,) * layout.numbers
    place = node["place"].whole(at_most=max(0, len(sizes) - 1))
    if not sizes or (values and sizes[place] != len(values)):
        node["place"].refuse("a column that the coding has", place)
    ascending = all(low < high for line in (edges, marks) for low, high in pairwise(line))
    if not ascending or len(edges) != len(marks) or len(edges) > MOST_EDGES or (values and edges):
        node["edges"].refuse(
            f"at most {MOST_EDGES} ascending numbers, as many as marks", len(edges)
        )
    along = node["along"].truth()
    if along and len(edges) < 2:
        node["along"].refuse("false, where there are no two edges", along)
    return Side(node["name"].text(), place, edges, marks, values, along)
