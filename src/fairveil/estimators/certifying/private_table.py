"""Private tables, as JSON files too, and how one is computed again: from counts, noise, confidence,
groups, and nothing else.

Guarantees (tests/estimators/test_estimators_private_table_json.py):
1. `read(to_json)` gives the same table.
2. A file in which a count, rate, gap, interval, confidence, group or noise was changed is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...facts import Cells
from ...methods.tables import TableLayout
from ...statement.check import Finding
from ...statement.document import write
from ...tables import keys
from .counts_json import CountsFile, checksum, columns_of, groups_to_dict, of_release
from .private_table_contents import ALL, EACH, PrivateTableContents

if TYPE_CHECKING:
    pass

FILE = CountsFile(
    "private table",
    frozenset(
        (
            *(
                "format",
                "version",
                "checksum",
                "confidence",
                "intervals",
                "small_below",
                "model",
                "groups",
                "depth",
                "classes",
            ),
            *("labelled", "counts", "known", "noise", "lines", "gaps", "statement"),
        )
    ),
)
TOLERANCE = 1e-6
RECOMPUTED = (
    "counts that fit",
    "rates",
    "gaps",
    "intervals",
    "noise",
    "the statement's epsilon",
    "checksum",
)
ON_TRUST = (
    "counts as released",
    "known totals",
    "model",
    "groups",
    "classes",
    "what the statement takes on trust",
)


class PrivateTable(PrivateTableContents):
    """Rates, counts and gaps by group from one private count, with a hierarchy of groups.

    `private_audit` makes it. `by_group`, `overall`, `difference`, `ratio` and `to_frame` are as in
    fairlearn's `MetricFrame`, and each number has an interval. Counts are about these rows. Rates
    and gaps are about the population that the rows are a sample of.

    Attributes
    ----------
    layout : TableLayout
        Groups, classes and kinds of rows that are counted.
    counts : ndarray of shape (cells, kinds)
        Counts as released; all else is computed from them.
    noise : CountNoise
        Noise of each count.
    known : ndarray or None
        Exact counts that are public; None: there are none.
    confidence : float
        Confidence of the intervals.
    intervals : {"each", "all"}
        Whether each interval holds with this confidence by itself, or all of the table hold
        together.
    small_below : int
        Groups that may have fewer people are flagged.
    privacy_ : PrivacyStatement
        Statement of the release.
    model : str
        The model in words.
    stated : dict or None
        Results as a file states them; None: recomputed.
    by_group : dict
        Rates of the finest groups, by key and name.
    overall : dict
        Rates of everyone, by name.

    See Also
    --------
    private_audit : Makes one.
    group_table : The same for rows that need no privacy, exactly.
    """

    def check(self) -> list[Finding]:
        """Find every contradiction between stated values and what follows from the counts.

        Returns
        -------
        list of Finding
            Empty if there is none.
        """
        return findings(self)

    def to_dict(self) -> dict[str, Any]:
        """Describe it as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, as `to_json` writes them.
        """
        return to_dict(self)

    def to_json(self) -> str:
        """Write the table as a JSON document, which `fairveil verify` recomputes.

        Returns
        -------
        str
            The document.
        """
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> PrivateTable:
        """Read what `to_json` writes.

        A document that is malformed, was changed, or does not follow from its counts is an error.

        Parameters
        ----------
        text : str
            The document.

        Returns
        -------
        PrivateTable
            The same, checked.
        """
        return read(text)

    def write(self, path: str | Path) -> Path:
        """Write `to_json()` to a file: the whole file or nothing.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Path
            The file.
        """
        return write(Path(path), self.to_json())


def to_dict(table: PrivateTableContents) -> dict[str, Any]:
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
    """A table that agrees with itself; an error that names the first contradiction, if there is
    one."""
    return FILE.agreeing(examine(text))


def findings(table: PrivateTableContents) -> list[Finding]:
    """Compare what is stated with what follows from the counts."""
    out = of_release(table.privacy_, table.noise)
    if table.stated is not None:
        places = list(_differing(table.stated, table.results, ""))
        out += [Finding(True, f"{place} does not follow from the counts") for place in places[:10]]
    return out


def _differing(one: Any, other: Any, place: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict) and set(one) == set(other):
        for name in one:
            yield from _differing(
                one[name], other[name], f"{place}, {name}" if place else str(name)
            )
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (a, b) in enumerate(zip(one, other, strict=True), 1):
            yield from _differing(a, b, f"{place} {at}")
    elif type(one) in (int, float) and type(other) in (int, float):
        if not math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield place
    elif type(one) is not type(other) or one != other:
        yield place


def _read(values: Mapping[str, Any]) -> PrivateTable:
    statement, noise = FILE.statement(values), FILE.noise(values)
    confidence, groups = values["confidence"], values["groups"]
    if (
        not isinstance(confidence, float)
        or not 0.5 <= confidence < 1.0
        or values["intervals"] not in (EACH, ALL)
    ):
        raise FILE.malformed("a confidence that is none")
    layout = TableLayout(
        Cells(columns_of(groups), names=tuple(FILE.line(name) for name in groups["names"])),
        tuple(keys.plain(value, of="class") for value in values["classes"]),
        values["labelled"] is True,
        int(values["depth"]),
    )
    counts = np.array([float(count) for count in values["counts"]])
    known = None if values["known"] is None else np.array(values["known"], np.float64)
    if (
        counts.shape != (layout.parts,)
        or (np.abs(counts) > 2.0**53).any()
        or (counts != np.rint(counts)).any()
    ):
        raise FILE.malformed("counts that are not those of its groups and classes")
    if known is not None and (
        known.shape not in ((), (layout.kinds,)) or not ((known >= 0) & (known < 2.0**53)).all()
    ):
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
