"""A frontier, and its JSON: all runs, the table made of them, one statement of all models, known
curves. Undefined is null."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from .._json import MALFORMED, Document, Node
from ..errors import FairveilError
from ..show.frontier import Point, Series
from ..statement.document import PrivacyStatement
from .result_contents import FrontierContents
from .runs import Run

FORMAT = "fairveil-frontier"
FORMAT_VERSION = 1
DOCUMENT = Document("frontier", "Write frontiers with Frontier.to_json().")
FIELDS = {"format", "version", "measure", "held_out_rows", "runs", "table", "privacy", "published"}


class Frontier(FrontierContents):
    """Models over bounds, budgets and seeds, measured on held-out rows: what `frontier` returns.

    It holds released values, and exact tables of held-out rows, which no guarantee covers.

    Attributes
    ----------
    measure : str
        The swept gap, in words.
    runs : tuple of Run
        One a model.
    privacy : PrivacyStatement
        Statement of all models together: its epsilon is the price of looking at all, and of
        choosing one.
    held_out_rows : int or None
        Number of held-out rows; None where nothing was held out.
    published : tuple of Series
        Published curves to compare with.
    models : mapping
        Fitted estimators by (epsilon, target, seed); empty in a frontier that was read from a file.

    See Also
    --------
    frontier : Makes one.
    fairveil.show.page : Writes one as a page.
    """

    def to_json(self) -> str:
        """Every number of the frontier as a JSON document, with the statement.

        Returns
        -------
        str
            The document. Models are saved with `fairveil.save`.
        """
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Describe the frontier as plain JSON values.

        Returns
        -------
        dict
            Every number, with the statement.
        """
        return content_of(self)

    @staticmethod
    def from_json(text: str) -> Frontier:
        """Read what `to_json` writes, without models.

        Unexpected content is an error that names it.

        Parameters
        ----------
        text : str
            The document.

        Returns
        -------
        Frontier
            The frontier.
        """
        return from_json(text)


def content_of(frontier: FrontierContents) -> dict[str, Any]:
    """The document."""
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "measure": frontier.measure,
        "held_out_rows": frontier.held_out_rows,
        "runs": [_plain(dataclasses.asdict(run)) for run in frontier.runs],
        "table": [_plain(line) for line in frontier.table()],
        "privacy": frontier.privacy.to_dict(),
        "published": [_plain(dataclasses.asdict(series)) for series in frontier.published],
    }


def from_json(text: str) -> Frontier:
    """The frontier; its table is made again from its runs and must be the one that is written."""
    content = DOCUMENT.node(text)
    if content.mapping().get("format") != FORMAT or type(content.value.get("version")) is not int:
        content.refuse(f"an object of format {FORMAT!r}, version {FORMAT_VERSION}", content.value)
    if content.value["version"] != FORMAT_VERSION:
        content["version"].refuse(f"version {FORMAT_VERSION}", content.value["version"])
    content.only(FIELDS)
    rows = content["held_out_rows"]
    runs = tuple(_run(run) for run in content["runs"].list())
    if not runs:
        content["runs"].refuse("at least one run", "none")
    try:
        found = Frontier(
            content["measure"].text(),
            runs,
            PrivacyStatement.from_json(json.dumps(content["privacy"].mapping())),
            None if rows.is_null else rows.whole(),
            tuple(_series(series) for series in content["published"].list()),
        )
        table = [_plain(line) for line in found.table()]
    except FairveilError:
        raise
    except MALFORMED as error:
        table, wrong = None, type(error).__name__
    if table is None:
        content.refuse("a complete frontier", f"one whose parts do not fit ({wrong})")
    if [line.mapping() for line in content["table"].list()] != table:
        content["table"].refuse("the table that its runs make", "another")
    return found


def _run(node: Node) -> Run:
    known = (
        "training",
        "noise",
        "error",
        "gap",
        "excess",
        "error_low",
        "error_high",
        "gap_low",
        "gap_high",
    )
    node.only([field.name for field in dataclasses.fields(Run)])
    return Run(
        epsilon=_number(node["epsilon"]),
        target=_known(node["target"]),
        seed=None if node["seed"].is_null else node["seed"].whole(),
        met=None if node["met"].is_null else node["met"].truth(),
        reason=node["reason"].text(),
        rounds=node["rounds"].whole(),
        **{name: _known(node[name]) for name in known},
    )


def _only(node: Node, of: type) -> Node:
    """An object with the fields of a class; those with a default may be missing."""
    fields = dataclasses.fields(of)
    optional = {field.name for field in fields if field.default is not dataclasses.MISSING}
    return node.only({field.name for field in fields} - optional, optional)


def _series(node: Node) -> Series:
    values = _only(node, Series).mapping()
    points = tuple(_point(point) for point in node["points"].list())
    for name in {"label", "protects", "source"} & set(values):
        node[name].text()
    if "published" in values:
        node["published"].truth()
    return Series(**{**values, "epsilon": _number(node["epsilon"]), "points": points})


def _point(node: Node) -> Point:
    _only(node, Point)
    seeds = {"seeds": node["seeds"].whole()} if node.value.get("seeds") is not None else {}
    known: dict[str, Any] = {name: _known(node[name]) for name in node.mapping() if name != "seeds"}
    return Point(**known, **seeds)


def _known(node: Node) -> float | None:
    return None if node.is_null else _number(node)


def _number(node: Node) -> float:
    """What is undefined is null in a frontier, and never NaN."""
    value = node.number(words=True)
    if math.isnan(value):
        node.refuse("a number, or null where it is undefined", node.value)
    return value


def _plain(value: object) -> Any:
    """JSON has no infinities: "inf", as everywhere in the library."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value
