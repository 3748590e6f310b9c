"""Private tables as JSON files, and how one is computed again: from counts, noise, confidence, groups, and nothing else.

Guarantees (tests/estimators/test_estimators_private_table_json.py):
1. `read(to_json)` gives the same table.
2. A file in which a count, rate, gap, interval, confidence, group or noise was changed is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from .._json import Document
from ..errors import FairveilError, InputError, complaint
from ..facts import Cells
from ..fairness import keys
from ..learning.certificate_plan import noise_of
from ..learning.count_noise import CountNoise
from ..learning.table_layout import Metric, TableLayout
from ..privacy import statement_json
from ..privacy.events import NonPrivate, NoOp
from ..privacy.statement_checks import Finding
from .certificate_json import checksum
from .private_table import ALL, EACH, Gap, PrivateTable

FORMAT = "fairveil private table"
FORMAT_VERSION = 1
DOCUMENT = Document("private table", "Write private tables with write() or to_json().", largest=1 << 26)
FIELDS = frozenset(
    (
        *("format", "version", "checksum", "confidence", "intervals", "small_below", "model", "groups", "depth", "classes"),
        *("labelled", "metrics", "counts", "known", "noise", "lines", "gaps", "statement"),
    )
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
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "confidence": table.confidence,
        "intervals": table.intervals,
        "small_below": table.small_below,
        "model": table.model,
        "groups": {
            "names": list(layout.cells.names),
            "columns": [[keys.to_json(value, of="group") for value in column] for column in layout.cells.columns],
        },
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
    try:
        values = DOCUMENT.json(text)
    except FairveilError:
        return False
    return isinstance(values, dict) and values.get("format") == FORMAT


def examine(text: str) -> tuple[PrivateTable, list[Finding]]:
    """A table, and all that contradicts it; malformed documents are an error."""
    values = DOCUMENT.json(text)
    try:
        table = _read(values)
        found = findings(table)
        if values["checksum"] != checksum(values):
            found.append(Finding(True, "the content is not what the checksum was made of"))
        return table, found
    except InputError:
        raise
    # A stranger's file may be wrong in any way; each is a malformed table and never a traceback.
    except (
        FairveilError,
        TypeError,
        ValueError,
        KeyError,
        AttributeError,
        ArithmeticError,
        IndexError,
        RecursionError,
        MemoryError,
    ) as error:
        raise _malformed(str(error) if isinstance(error, FairveilError) else type(error).__name__) from None


def read(text: str) -> PrivateTable:
    """A table that agrees with itself; an error that names the first contradiction, if there is one."""
    table, found = examine(text)
    grave = [finding.sentence for finding in found if finding.grave]
    if grave:
        remedy = "Ask its author for the file again; `fairveil verify FILE` lists all that does not fit."
        raise InputError(
            complaint(expected="one that follows from its counts", of="private table", got=grave[0], remedy=remedy)
        )
    return table


def findings(table: PrivateTable) -> list[Finding]:
    """Compare what is stated with what follows from the counts."""
    statement = table.privacy_
    out = [Finding(one.grave, f"statement: {one.sentence}") for one in statement.check()]
    if len(statement.events) > 1:
        out.append(Finding(True, "the statement lists more than the one release of these counts"))
    event = statement.events[0] if len(statement.events) == 1 else NoOp()
    law, noise = noise_of(event, statement.promise.neighbours), table.noise
    private = statement.is_private and not isinstance(event, NonPrivate)
    same = law.kind == noise.kind and math.isclose(law.scale, noise.scale, rel_tol=1e-9)
    if not same or (not private and noise.kind != "none"):
        out.append(
            Finding(True, f"the noise is said to be {noise.kind} {noise.scale:g}, the statement says {law.kind} {law.scale:g}")
        )
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
    if not isinstance(values, dict) or values.get("format") != FORMAT or values.get("version") != FORMAT_VERSION:
        raise _malformed(f"no {FORMAT!r} of version {FORMAT_VERSION}")
    if set(values) != FIELDS:
        raise _malformed(f"fields {sorted(set(values) ^ FIELDS)} too many or too few")
    statement, untouched = statement_json.read(json.dumps(values["statement"]))
    if not untouched:
        raise _malformed("a statement that was changed")
    confidence, noise, groups = values["confidence"], values["noise"], values["groups"]
    if not isinstance(confidence, float) or not 0.5 <= confidence < 1.0 or values["intervals"] not in (EACH, ALL):
        raise _malformed("a confidence that is none")
    kinds = ("none", "gaussian", "discrete-laplace")
    if set(noise) != {"kind", "scale"} or noise["kind"] not in kinds or not 0.0 <= float(noise["scale"]) < 1e12:
        raise _malformed("noise of no known distribution")
    layout = TableLayout(
        Cells(
            tuple(tuple(keys.plain(value, of="group") for value in column) for column in groups["columns"]),
            names=tuple(_line(name) for name in groups["names"]),
        ),
        tuple(keys.plain(value, of="class") for value in values["classes"]),
        values["labelled"] is True,
        tuple(Metric(_line(one["name"]), float(one["low"]), float(one["high"])) for one in values["metrics"]),
        int(values["depth"]),
    )
    counts = np.array([float(count) for count in values["counts"]])
    known = None if values["known"] is None else np.array(values["known"], np.float64)
    if counts.shape != (layout.parts,) or (np.abs(counts) > 2.0**53).any() or (counts != np.rint(counts)).any():
        raise _malformed("counts that are not those of its groups and classes")
    if known is not None and (known.shape not in ((), (layout.kinds,)) or not ((known >= 0) & (known < 2.0**53)).all()):
        raise _malformed("known totals that are none")
    if (known is not None) and statement.is_private and not statement.promise.rows_are_public:
        raise _malformed("known totals, where the number of rows is private")
    return PrivateTable(
        layout,
        counts,
        CountNoise(str(noise["kind"]), float(noise["scale"])),
        known,
        confidence,
        str(values["intervals"]),
        int(values["small_below"]),
        statement,
        _line(values["model"]),
        {"lines": values["lines"], "gaps": values["gaps"]},
    )


def _line(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise _malformed("words that cannot be printed")
    return value


def _malformed(got: str) -> InputError:
    return DOCUMENT.refusal("a well-formed private table", got)  # type: ignore[return-value]
