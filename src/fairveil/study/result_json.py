"""Frontiers as JSON: every run, the table made of them, the statement of all models, published curves. Undefined is null."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from ..errors import FairveilError, InputError, complaint
from ..figures import Point, Series
from ..privacy.statement import PrivacyStatement
from .result import Frontier
from .runs import Run

FORMAT = "fairveil-frontier"
FORMAT_VERSION = 1
FIELDS = {"format", "version", "measure", "held_out_rows", "runs", "table", "privacy", "published"}


def to_json(frontier: Frontier) -> str:
    """The document."""
    content = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "measure": frontier.measure,
        "held_out_rows": frontier.held_out_rows,
        "runs": [_plain(dataclasses.asdict(run)) for run in frontier.runs],
        "table": [_plain(line) for line in frontier.table()],
        "privacy": frontier.privacy.to_dict(),
        "published": [_plain(dataclasses.asdict(series)) for series in frontier.published],
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(text: str) -> Frontier:
    """The frontier; its table is made again from its runs and must be the one that is written."""
    try:
        content = json.loads(text)
        if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != FORMAT_VERSION:
            raise _broken(f"an object of format {FORMAT!r}, version {FORMAT_VERSION}", type(content).__name__)
        if set(content) != FIELDS:
            raise _broken(f"exactly the fields {sorted(FIELDS)}", sorted(content))
        found = Frontier(
            str(content["measure"]),
            tuple(_run(values) for values in content["runs"]),
            PrivacyStatement.from_json(json.dumps(content["privacy"])),
            None if content["held_out_rows"] is None else int(content["held_out_rows"]),
            tuple(_series(values) for values in content["published"]),
        )
    except FairveilError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _broken("a complete frontier", f"{type(error).__name__}: {error}") from error
    if not found.runs:
        raise _broken("at least one run", "none")
    if [_plain(line) for line in found.table()] != content["table"]:
        raise _broken("the table that its runs make", "another")
    return found


def _run(values: Mapping[str, Any]) -> Run:
    known = {field.name for field in dataclasses.fields(Run)}
    if set(values) != known:
        raise _broken(f"runs with the fields {sorted(known)}", sorted(values))
    return Run(**{**values, "epsilon": float(values["epsilon"]), "target": float(values["target"])})


def _series(values: Mapping[str, Any]) -> Series:
    points = tuple(Point(**each) for each in values["points"])
    return Series(**{**values, "epsilon": float(values["epsilon"]), "points": points})


def _plain(value: Any) -> Any:
    """JSON has no infinities: "inf", as everywhere in the library."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _broken(expected: str, got: object) -> InputError:
    remedy = "Write frontiers with Frontier.to_json()."
    return InputError(complaint(expected=expected, of="frontier", got=got, remedy=remedy))
