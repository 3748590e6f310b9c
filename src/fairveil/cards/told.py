"""What is known of a model from its files: fit, statement, report and certificate. Nothing else is
said on a card."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._json import Document
from .._reading import MIB, read_bytes
from ..errors import InputError
from ..estimators import Certificate
from ..estimators.reading.fitted_parts import parts_of
from ..estimators.reports.constraint_report import ConstraintReport
from ..privacy.statement.statement import PrivacyStatement
from ..privacy.statement.words import items

REPORT = Document(
    "report", "Take the report.json that `fairveil fit` or fairveil.report.write wrote."
)
FORMAT = "fairveil-report"
LARGEST = 64 * MIB


@dataclass(frozen=True, eq=False)
class Told:
    """A fitted estimator and what lies beside it. `report`: the JSON twin of its report."""

    estimator: Any
    statement: PrivacyStatement
    constraints: ConstraintReport | None
    certificate: Certificate | None
    report: Mapping[str, Any] | None

    @property
    def items(self) -> dict[str, str]:
        """The statement in words, by heading."""
        return dict(items(self.statement))

    @property
    def held_out(self) -> Mapping[str, Any] | None:
        """The report's table of people whom the fit did not see, with exact numbers."""
        for table in (self.report or {}).get("tables", ()):
            if table.get("of") == "held-out people":
                return dict(table)
        return None


def told_of(estimator: object, certificate: object = None, report: object = None) -> Told:
    """Checked: `certificate` as an object or a path, `report` as a path of the twin or its
    content."""
    statement = parts_of(estimator).privacy
    if not isinstance(statement, PrivacyStatement):
        remedy = "Pass a fitted estimator of Fairveil, or fairveil.load(folder)."
        raise InputError.expected(
            "a fitted estimator of Fairveil",
            of="model",
            got=type(estimator).__name__,
            remedy=remedy,
        )
    found = statement.check()
    if any(one.grave for one in found):
        remedy = "Look at fairveil verify."
        raise InputError.expected(
            "a statement that agrees with itself", of="statement", got=str(found[0]), remedy=remedy
        )
    constraints = parts_of(estimator).constraint_report
    kept = constraints if isinstance(constraints, ConstraintReport) else None
    page = _report(report)
    if page is not None and page.get("statement") != statement.to_dict():
        remedy = (
            "Its numbers are of another fit: pass the report that was written with this model, or "
            "none."
        )
        raise InputError.expected(
            "the report of this model", of="report", got="another statement", remedy=remedy
        )
    return Told(estimator, statement, kept, _certificate(certificate), page)


def _certificate(given: object) -> Certificate | None:
    if given is None or isinstance(given, Certificate):
        return given
    raw = read_bytes(
        _path(given, "certificate"),
        what="a certificate",
        most=LARGEST,
        remedy="Pass a certificate's file.",
    )
    return Certificate.from_json(raw.decode("utf-8", "replace"))


def _report(given: object) -> Mapping[str, Any] | None:
    if given is None:
        return None
    if isinstance(given, Mapping):
        content: Any = given
    else:
        raw = read_bytes(
            _path(given, "report"), what="a report", most=LARGEST, remedy="Pass report.json."
        )
        content = REPORT.node(raw).mapping()
    if content.get("format") != FORMAT:
        raise REPORT.refusal(f"an object whose 'format' is {FORMAT!r}", content.get("format"))
    return dict(content)


def _path(given: object, of: str) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise InputError.expected(
            "a path", of=of, got=type(given).__name__, remedy="Pass the path of its file."
        )
    return Path(given)
