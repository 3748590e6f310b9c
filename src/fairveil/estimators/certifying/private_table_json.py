"""Private tables as JSON files, and how one is computed again: from counts, noise, confidence, groups, and nothing else.

Guarantees (tests/estimators/test_estimators_private_table_json.py):
1. `read(to_json)` gives the same table.
2. A file in which a count, rate, gap, interval, confidence, group or noise was changed is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from ...facts import Cells
from ...learning.private_tables.layout import Metric, TableLayout
from ...privacy.statement.checks import Finding
from ...tables import keys
from .counts_json import CountsFile, checksum, columns_of, groups_to_dict, of_release
from .private_table import ALL, EACH, Gap, PrivateTable

FILE = CountsFile(
    "private table",
    frozenset(
        (
            *("format", "version", "checksum", "confidence", "intervals", "small_below", "model", "groups", "depth", "classes"),
            *("labelled", "metrics", "counts", "known", "noise", "lines", "gaps", "statement"),
        )
    ),
)
TOLERANCE = 1e-6
RECOMPUTED = ("counts that fit", "rates", "gaps", "intervals", "noise", "the statement's epsilon", "checksum")
ON_TRUST = ("counts as released", "known totals", "model", "groups", "classes", "what the statement takes on trust")


def results(table: PrivateTable) -> dict[str, Any]:
    """All that follows from the counts."""
    names = table.layout.cells.names
    lines = [
        {
            "columns": [names[j] for j in columns],
            "group": keys.to_json(key, of="group"),
            "people": asdict(line.people),
            "labels": [asdict(one) for one in line.labels],
            "small": line.small,
            "rates": {name: asdict(rate) for name, rate in line.rates.items()},
        }
        for (columns, key), line in table.lines.items()
    ]
    gaps = [
        {"columns": [names[j] for j in level], "differences": [_gap(gap) for gap in found]}
        for level, found in table.gaps.items()
    ]
    return {"lines": lines, "gaps": gaps}


def to_dict(table: PrivateTable) -> dict[str, Any]:
    """Plain JSON values, with a checksum."""
    layout = table.layout
    out: dict[str, Any] = {
        "format": FILE.format,
        "version": FILE.version,
        "confidence": table.confidence,
        "intervals": table.intervals,
        "small_below": table.small_below,
        "model": table.model,
        "groups": groups_to_dict(layout.cells),
        "depth": layout.depth,
        "classes": [keys.to_json(value, of="class") for value in layout.classes],
        "labelled": layout.labelled,
        "metrics": [asdict(metric) for metric in layout.metrics],
        "counts": [float(count) for count in table.counts],
        "known": None if table.known is None else np.asarray(table.known).tolist(),
        "noise": {"kind": table.noise.kind, "scale": table.noise.scale},
        **(table.results if table.stated is None else table.stated),
        "statement": table.privacy_.to_dict(),
    }
    return out | {"checksum": checksum(out)}


def is_private_table(text: str) -> bool:
    """Whether a document says that it is one."""
    return FILE.is_one(text)


def examine(text: str) -> tuple[PrivateTable, list[Finding]]:
    """A table, and all that contradicts it; malformed documents are an error."""
    return FILE.examine(text, _read, lambda table, _: findings(table))


def read(text: str) -> PrivateTable:
    """A table that agrees with itself; an error that names the first contradiction, if there is one."""
    return FILE.agreeing(examine(text))


def findings(table: PrivateTable) -> list[Finding]:
    """Compare what is stated with what follows from the counts."""
    out = of_release(table.privacy_, table.noise)
    if table.stated is not None:
        places = list(_differing(table.stated, table.results, ""))
        out += [Finding(True, f"{place} does not follow from the counts") for place in places[:10]]
    return out


def _differing(one: Any, other: Any, place: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict) and set(one) == set(other):
        for name in one:
            yield from _differing(one[name], other[name], f"{place}, {name}" if place else str(name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (a, b) in enumerate(zip(one, other, strict=True), 1):
            yield from _differing(a, b, f"{place} {at}")
    elif type(one) in (int, float) and type(other) in (int, float):
        if not math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield place
    elif type(one) is not type(other) or one != other:
        yield place


def _gap(gap: Gap) -> dict[str, Any]:
    def key(value: Any) -> Any:
        return keys.to_json(value, of="group")

    return {
        "rate": gap.rate,
        "value": gap.value,
        "low": gap.low,
        "high": gap.high,
        "pair": None if gap.pair is None else [key(one) for one in gap.pair],
        "named_with": gap.named_with,
        "others": [[key(one) for one in pair] for pair in gap.others],
        "undefined": [key(one) for one in gap.undefined],
    }


def _read(values: Any) -> PrivateTable:
    statement, noise = FILE.statement(values), FILE.noise(values)
    confidence, groups = values["confidence"], values["groups"]
    if not isinstance(confidence, float) or not 0.5 <= confidence < 1.0 or values["intervals"] not in (EACH, ALL):
        raise FILE.malformed("a confidence that is none")
    layout = TableLayout(
        Cells(columns_of(groups), names=tuple(FILE.line(name) for name in groups["names"])),
        tuple(keys.plain(value, of="class") for value in values["classes"]),
        values["labelled"] is True,
        tuple(Metric(FILE.line(one["name"]), float(one["low"]), float(one["high"])) for one in values["metrics"]),
        int(values["depth"]),
    )
    counts = np.array([float(count) for count in values["counts"]])
    known = None if values["known"] is None else np.array(values["known"], np.float64)
    if counts.shape != (layout.parts,) or (np.abs(counts) > 2.0**53).any() or (counts != np.rint(counts)).any():
        raise FILE.malformed("counts that are not those of its groups and classes")
    if known is not None and (known.shape not in ((), (layout.kinds,)) or not ((known >= 0) & (known < 2.0**53)).all()):
        raise FILE.malformed("known totals that are none")
    if (known is not None) and statement.is_private and not statement.promise.rows_are_public:
        raise FILE.malformed("known totals, where the number of rows is private")
    return PrivateTable(
        layout,
        counts,
        noise,
        known,
        confidence,
        str(values["intervals"]),
        int(values["small_below"]),
        statement,
        FILE.line(values["model"]),
        {"lines": values["lines"], "gaps": values["gaps"]},
    )
