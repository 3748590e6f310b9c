"""What `fairveil verify` says of a privacy statement, and the way to it that loads nothing else.

What somebody must read to believe the answer is `check`, `rule` and, where groups are named, `groups`;
and the accountant of `core`, where events have no closed form. `verify` answers for a plain statement,
and leaves everything else (keys, certificates, tables, refusals, help) to the command line.
"""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import check, form
from .form import Finding

WHAT_IT_PROVES = (
    "This proves that the statement is consistent, not who wrote it nor that the events happened."
)
UNCHECKED = "note: there is a signature, which was not checked: pass --key holder.pub"


def verify(words: Sequence[str]) -> int | None:
    """Answers `fairveil verify FILE` or `fairveil verify FILE --json`, and returns the exit status;
    None, and nothing is printed, where these words or this file are for the command line."""
    given = [word for word in words if word != "--json"]
    if len(given) != 1 or given[0].startswith("-"):
        return None
    path = Path(given[0])
    file = path / "statement.json" if path.is_dir() else path
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > form.LARGEST:
            return None
        doc = form.read(file.read_bytes().decode("utf-8"))
    except (OSError, ValueError):
        return None
    findings = check.findings(doc)
    signed = file.with_name(file.name + ".sig").is_file()
    if "--json" in words:
        told = as_json(doc, findings, {"valid": None} if signed else None, WHAT_IT_PROVES)
    else:
        told = "\n".join(lines(doc, findings, (UNCHECKED,) if signed else (), WHAT_IT_PROVES))
    sys.stdout.write(f"{told}\n")
    return 1 if any(one.grave for one in findings) else 0


def lines(
    doc: dict[str, Any],
    findings: Sequence[Finding],
    signed: Sequence[str],
    proves: str,
    *,
    refused: bool = False,
) -> list[str]:
    """The answer in lines: the verdict and what it is worth, what is claimed, and what was noticed."""
    grave = any(one.grave for one in findings)
    verdict = f"Consistent: the events cost no more than the stated epsilon. {proves}"
    if grave:
        verdict = "Inconsistent."
    elif refused:
        verdict = "Consistent, but the signature does not hold."
    return [
        verdict,
        *claim(doc),
        *(f"{'CONTRADICTION' if one.grave else 'note'}: {one.sentence}" for one in findings),
        *signed,
        f"Recomputed: {', '.join(check.RECOMPUTED)}; taken on trust: {', '.join(check.ON_TRUST)}.",
    ]


def claim(doc: dict[str, Any]) -> list[str]:
    """What a statement claims, in a few lines."""
    promise, epsilon = doc["promise"], doc["epsilon"]
    whose = promise["protects"].replace("_", " ")
    unit = promise.get("unit")
    each = "one row each" if unit is None else f"all rows of one {unit['name']}"
    spent = f"epsilon = {epsilon} at delta = {doc['delta']} was spent, of {promise['epsilon']}"
    told = [
        "Stated: nobody has a guarantee." if epsilon == "inf" else f"Stated: {spent}.",
        f"Protected: {whose}, {each}, {promise['neighbours']}.",
    ]
    if doc["stamps"]:
        told.append(f"Flags: {', '.join(doc['stamps'])}.")
    for group in doc.get("groups", ()):
        told.append(f"Group {group['name']}: epsilon = {group['epsilon']}.")
    return told


def as_json(doc: dict[str, Any], findings: Sequence[Finding], signature: Any, proves: str) -> str:
    """The answer as a JSON document."""
    out = {
        "consistent": not any(one.grave for one in findings),
        "epsilon": doc["epsilon"],
        "delta": doc["delta"],
        "ledger": doc.get("ledger"),
        "findings": [
            {"grave": one.grave, "code": one.code, "sentence": one.sentence} for one in findings
        ],
        "recomputed": list(check.RECOMPUTED),
        "taken_on_trust": list(check.ON_TRUST),
        "signature": signature,
        "proves": proves,
    }
    return json.dumps(out, indent=2, allow_nan=False)
