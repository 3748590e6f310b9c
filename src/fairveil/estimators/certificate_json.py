"""Certificates as JSON files, and how one is computed again: from counts, noise, confidence and notions, and from nothing else.

What is computed again: every rate, bound and verdict, the people needed, the noise from the statement's event, the
statement's own epsilon. Taken on trust: that the counts were made so, the model, and the assumptions. A signature says who
stands by a file.

Guarantees (tests/estimators/test_estimators_certificate_json.py):
1. `read(to_json)` gives the same certificate.
2. A file in which any count, bound, rate, verdict, confidence, notion, group or noise was changed is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from .._json import Document
from ..errors import FairveilError, InputError, complaint
from ..facts import Cells
from ..fairness import Notion, keys
from ..fairness.notions import from_dict as notion_of
from ..fairness.ratios import SelectionRateRatio
from ..learning.certificate import Certified, NotionBound, RateInterval
from ..learning.certificate_plan import noise_of
from ..learning.count_noise import CountNoise
from ..privacy import statement_json
from ..privacy.events import NonPrivate, NoOp
from ..privacy.statement_checks import Finding
from .certificate import Certificate

FORMAT = "fairveil certificate"
FORMAT_VERSION = 1
DOCUMENT = Document("certificate", "Write certificates with write() or to_json().", largest=1 << 26)
FIELDS = frozenset(
    (
        *("format", "version", "checksum", "certified", "verdict", "confidence", "model", "assumptions"),
        *("notions", "groups", "classes", "counts", "noise", "bounds", "rates", "statement"),
    )
)
TOLERANCE = 1e-6
"""By how much a bound that is computed again may differ: the last steps of a search on another processor."""
RECOMPUTED = ("rates", "bounds", "verdicts", "people needed", "noise", "the statement's epsilon", "checksum")
ON_TRUST = ("counts", "model", "assumptions", "groups", "classes", "what the statement takes on trust")


def to_dict(certificate: Certificate) -> dict[str, Any]:
    """Plain JSON values, with a checksum."""
    cells = certificate.cells
    out: dict[str, Any] = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "certified": certificate.certified,
        "verdict": certificate.verdict,
        "confidence": certificate.confidence,
        "model": certificate.model,
        "assumptions": list(certificate.assumptions),
        "notions": [notion.to_dict() for notion in certificate.notions],
        "groups": {
            "names": list(cells.names),
            "columns": [[keys.to_json(value, of="group") for value in column] for column in cells.columns],
        },
        "classes": [keys.to_json(value, of="class") for value in certificate.classes],
        "counts": [float(count) for count in certificate.counts],
        "noise": {"kind": certificate.noise.kind, "scale": certificate.noise.scale},
        "bounds": [_numbers(asdict(one)) for one in certificate.bounds],
        "rates": [_numbers(asdict(one)) for one in certificate.rates],
        "statement": certificate.privacy_.to_dict(),
    }
    return out | {"checksum": checksum(out)}


def checksum(values: Mapping[str, Any]) -> str:
    """SHA-256 of the content in one spelling. Shows an accident, proves no author."""
    content = {name: value for name, value in values.items() if name != "checksum"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def is_certificate(text: str) -> bool:
    """Whether a document says that it is one."""
    try:
        values = DOCUMENT.json(text)
    except FairveilError:
        return False
    return isinstance(values, dict) and values.get("format") == FORMAT


def examine(text: str) -> tuple[Certificate, list[Finding]]:
    """A certificate, and all that contradicts it; malformed documents are an error."""
    values = DOCUMENT.json(text)
    try:
        certificate = _read(values)
        found = findings(certificate)
        said, words = values["certified"], values["verdict"]
        if said is not certificate.certified or words != certificate.verdict:
            found.append(Finding(True, "the verdict in words is not that of the bounds"))
        if values["checksum"] != checksum(values):
            found.append(Finding(True, "the content is not what the checksum was made of"))
        return certificate, found
    except InputError:
        raise
    # A stranger's file may be wrong in any way; each is a malformed certificate and never a traceback.
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


def read(text: str) -> Certificate:
    """A certificate that agrees with itself; an error that names the first contradiction, if there is one."""
    certificate, found = examine(text)
    grave = [finding.sentence for finding in found if finding.grave]
    if grave:
        remedy = "Ask its author for the file again; `fairveil verify FILE` lists all that does not fit."
        raise InputError(complaint(expected="one that follows from its counts", of="certificate", got=grave[0], remedy=remedy))
    return certificate


def findings(certificate: Certificate) -> list[Finding]:
    """Compare what is stated with what follows from the counts."""
    out = [Finding(one.grave, f"statement: {one.sentence}") for one in certificate.privacy_.check()]
    event = certificate.privacy_.events[0] if len(certificate.privacy_.events) == 1 else NoOp()
    if len(certificate.privacy_.events) > 1:
        out.append(Finding(True, "the statement lists more than the one release of these counts"))
    law = noise_of(event, certificate.privacy_.promise.neighbours)
    noise = certificate.noise
    private = certificate.privacy_.is_private and not isinstance(event, NonPrivate)
    if (
        law.kind != noise.kind
        or not math.isclose(law.scale, noise.scale, rel_tol=1e-9)
        or (not private and noise.kind != "none")
    ):
        out.append(
            Finding(True, f"the noise is said to be {noise.kind} {noise.scale:g}, the statement says {law.kind} {law.scale:g}")
        )
    if certificate.found is not None:
        fresh = certificate.recomputed
        pairs: list[tuple[str, Sequence[Any], Sequence[Any]]] = [
            ("bound", certificate.found.notions, fresh.notions),
            ("rate", certificate.found.rates, fresh.rates),
        ]
        for kind, stated, again in pairs:
            if len(stated) != len(again):
                out.append(Finding(True, f"{len(stated)} {kind}s are stated, {len(again)} follow from the notions"))
                continue
            for at, (one, other) in enumerate(zip(stated, again, strict=True)):
                wrong = [name for name, value in asdict(one).items() if not _same(value, asdict(other)[name])]
                if wrong:
                    out.append(Finding(True, f"{kind} {at + 1}: {', '.join(wrong)} do not follow from the counts"))
    return out


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None or isinstance(one, str):
        return one is other or (type(one) is type(other) and one == other)
    if isinstance(one, int) and isinstance(other, int):
        return abs(one - other) <= 0.1 * max(one, other)  # people needed are a guess
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _read(values: Any) -> Certificate:
    if not isinstance(values, dict) or values.get("format") != FORMAT or values.get("version") != FORMAT_VERSION:
        raise _malformed(f"no {FORMAT!r} of version {FORMAT_VERSION}")
    if set(values) != FIELDS:
        raise _malformed(f"fields {sorted(set(values) ^ FIELDS)} too many or too few")
    groups, noise = values["groups"], values["noise"]
    columns = tuple(tuple(keys.plain(value, of="group") for value in column) for column in groups["columns"])
    statement, untouched = statement_json.read(json.dumps(values["statement"]))
    if not untouched:
        raise _malformed("a statement that was changed")
    confidence = values["confidence"]
    if not isinstance(confidence, float) or not 0.0 < confidence < 1.0:
        raise _malformed("a confidence that is none")
    kinds = ("none", "gaussian", "discrete-laplace")
    if set(noise) != {"kind", "scale"} or noise["kind"] not in kinds or not 0.0 <= float(noise["scale"]) < 1e12:
        raise _malformed("noise of no known distribution")
    certificate = Certificate(
        notions=tuple(_notion(one) for one in values["notions"]),
        cells=Cells(columns, names=tuple(groups["names"])),
        classes=tuple(keys.plain(value, of="class") for value in values["classes"]),
        counts=np.array([float(count) for count in values["counts"]]),
        noise=CountNoise(str(noise["kind"]), float(noise["scale"])),
        confidence=confidence,
        privacy_=statement,
        model=_line(values["model"]),
        assumptions=tuple(_line(one) for one in values["assumptions"]),
        found=Certified(
            tuple(NotionBound(**one) for one in values["bounds"]), tuple(RateInterval(**one) for one in values["rates"])
        ),
    )
    counts = certificate.counts
    if counts.shape != (certificate.layout.parts,) or (np.abs(counts) > 2.0**53).any() or (counts != np.rint(counts)).any():
        raise _malformed("counts that are not those of its notions and groups")
    return certificate


def _notion(values: Any) -> Notion:
    if isinstance(values, dict) and values.get("notion") == SelectionRateRatio.kind:
        return SelectionRateRatio.from_dict(values)
    return notion_of(values)


def _line(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise _malformed("words that cannot be printed")
    return value


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    """Infinite numbers have no place in JSON: a ratio of two empty rates."""
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()}


def _malformed(got: str) -> InputError:
    return DOCUMENT.refusal("a well-formed certificate", got)  # type: ignore[return-value]
