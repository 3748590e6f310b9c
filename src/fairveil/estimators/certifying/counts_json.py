"""What JSON files of released counts have in common: certificates and private tables, from which
all is computed again.

Guarantees (tests/estimators/test_estimators_certificate_json.py,
test_estimators_private_table_json.py):
1. Whatever a file holds, reading it gives its object and findings, or an error that says what is
   malformed; never another.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..._json import MALFORMED, Document
from ...core.events import NonPrivate, NoOp
from ...errors import FairveilError, InputError
from ...facts import Cells
from ...fairness import Notion
from ...fairness.notions import SelectionRateRatio
from ...fairness.notions import from_dict as notion_of
from ...methods.counts import CountNoise, noise_of
from ...statement.check import Finding
from ...statement.document import PrivacyStatement
from ...tables import keys

T = TypeVar("T")
NOISES = ("none", "gaussian", "discrete-laplace")


@dataclass(frozen=True)
class CountsFile:
    """One kind of file: `what` it is in words, and the `fields` of the document that says that it
    is one."""

    what: str
    fields: frozenset[str]
    version: int = 1

    @property
    def format(self) -> str:
        """What the document says that it is."""
        return f"fairveil {self.what}"

    @property
    def document(self) -> Document:
        """How it is read."""
        return Document(
            self.what, f"Write {self.what}s with write() or to_json().", largest=1 << 26
        )

    def is_one(self, text: str) -> bool:
        """Whether a document says that it is one."""
        try:
            values = self.document.json(text)
        except FairveilError:
            return False
        return isinstance(values, dict) and values.get("format") == self.format

    def examine(
        self,
        text: str,
        read: Callable[[Any], T],
        findings: Callable[[T, Mapping[str, Any]], list[Finding]],
    ) -> tuple[T, list[Finding]]:
        """What it holds, and all that contradicts it; malformed documents are an error."""
        values = self.document.json(text)
        try:
            self._require_format(values)
            found = read(values)
            contradictions = findings(found, values)
            if values["checksum"] != checksum(values):
                contradictions.append(
                    Finding(True, "the content is not what the checksum was made of")
                )
            return found, contradictions
        except InputError:
            raise
        # A stranger's file may be wrong in any way; each is a malformed one and never a traceback.
        except (FairveilError, *MALFORMED) as error:
            raise self.malformed(
                str(error) if isinstance(error, FairveilError) else type(error).__name__
            ) from None

    def _require_format(self, values: object) -> None:
        if (
            not isinstance(values, dict)
            or values.get("format") != self.format
            or values.get("version") != self.version
        ):
            raise self.malformed(f"no {self.format!r} of version {self.version}")
        if set(values) != self.fields:
            raise self.malformed(f"fields {sorted(set(values) ^ self.fields)} too many or too few")

    def agreeing(self, examined: tuple[T, list[Finding]]) -> T:
        """What was examined; an error that names the first contradiction, if there is one."""
        found, contradictions = examined
        grave = [finding.sentence for finding in contradictions if finding.grave]
        if grave:
            remedy = (
                "Ask its author for the file again; `fairveil verify FILE` lists all that does not "
                "fit."
            )
            raise InputError.expected(
                "one that follows from its counts", of=self.what, got=grave[0], remedy=remedy
            )
        return found

    def statement(self, values: Mapping[str, Any]) -> PrivacyStatement:
        """That of the release."""
        return PrivacyStatement.from_json(json.dumps(values["statement"]))

    def noise(self, values: Mapping[str, Any]) -> CountNoise:
        """Of each count."""
        noise = values["noise"]
        if (
            set(noise) != {"kind", "scale"}
            or noise["kind"] not in NOISES
            or not 0.0 <= float(noise["scale"]) < 1e12
        ):
            raise self.malformed("noise of no known distribution")
        return CountNoise(str(noise["kind"]), float(noise["scale"]))

    def line(self, value: object) -> str:
        """Words that can be printed."""
        if not isinstance(value, str) or not value.isprintable():
            raise self.malformed("words that cannot be printed")
        return value

    def malformed(self, got: str) -> InputError:
        """The error of such a file."""
        return self.document.refusal(f"a well-formed {self.what}", got)  # type: ignore[return-value]


def checksum(values: Mapping[str, Any]) -> str:
    """SHA-256 of the content in one spelling. Shows an accident, proves no author."""
    content = {name: value for name, value in values.items() if name != "checksum"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def groups_to_dict(cells: Cells) -> dict[str, Any]:
    """The groups that were counted."""
    columns = [[keys.to_json(value, of="group") for value in column] for column in cells.columns]
    return {"names": list(cells.names), "columns": columns}


def columns_of(groups: Mapping[str, Any]) -> tuple[tuple[Any, ...], ...]:
    """The values of each sensitive column, of `groups_to_dict`."""
    return tuple(
        tuple(keys.plain(value, of="group") for value in column) for column in groups["columns"]
    )


def of_release(statement: PrivacyStatement, noise: CountNoise) -> list[Finding]:
    """What in a statement contradicts one release of counts with this noise."""
    out = [Finding(one.grave, f"statement: {one.sentence}") for one in statement.check()]
    if len(statement.events) > 1:
        out.append(Finding(True, "the statement lists more than the one release of these counts"))
    event = statement.events[0] if len(statement.events) == 1 else NoOp()
    law = noise_of(event, statement.promise.neighbours)
    private = statement.is_private and not isinstance(event, NonPrivate)
    same = (
        law is not None
        and law.kind == noise.kind
        and math.isclose(law.scale, noise.scale, rel_tol=1e-9)
    )
    if not same or (not private and noise.kind != "none"):
        other = "another release" if law is None else f"{law.kind} {law.scale:g}"
        said = f"the noise is said to be {noise.kind} {noise.scale:g}, the statement says {other}"
        out.append(Finding(True, said))
    return out


def notion_from(values: object) -> Notion:
    """A notion, ratios of selection rates among them."""
    if isinstance(values, dict) and values.get("notion") == SelectionRateRatio.kind:
        return SelectionRateRatio.from_dict(values)
    return notion_of(values)
