"""An audit of privacy as a section of a page: what it found, what it would have found, and its
picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .. import _checks
from ..figures import CurvesFigure
from ..figures.checked import line, several


class Audited(Protocol):
    """A finished audit, such as `fairveil.audit.PrivacyAudit`."""

    def section(self) -> Mapping[str, Any]:
        """Its `facts` (label, words), its `curves`, and all its `numbers`."""
        ...


@dataclass(frozen=True)
class AuditSection:
    """What an audit found: `facts`, label and words, the verdict first; the claimed and the
    measured curve; every number as plain JSON values. `report.privacy_audit` makes it."""

    facts: tuple[tuple[str, str], ...]
    curves: CurvesFigure
    numbers: dict[str, Any]

    def __post_init__(self) -> None:
        facts = tuple((str(label), str(words)) for label, words in self.facts)
        for label, words in facts:
            line(label=label, words=words)
        _checks.normalise(self, facts=facts)
        several(CurvesFigure, "curves", (self.curves,))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "facts": [{"label": label, "words": words} for label, words in self.facts],
            **self.numbers,
        }


def privacy_audit(found: Audited) -> AuditSection:
    """The section of an audit."""
    made = found.section()
    return AuditSection(tuple(made["facts"]), made["curves"], dict(made["numbers"]))
