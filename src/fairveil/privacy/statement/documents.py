"""Privacy statements as JSON files: strict reading, whole-file writing."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from ..._json import MALFORMED, Document, shown
from ...core import events as event_tree
from ...core.events import Composed, Event
from ...core.promise import Promise
from ...errors import FairveilError, StatementError
from .contents import StatementContents
from .parts import Audit, Cap, GroupGuarantee, PublicFact, Receipt, StatedBound
from .releases import Release

Stated = TypeVar("Stated", bound=StatementContents)

FORMAT = "fairveil privacy statement"
FORMAT_VERSION = 1
DOCUMENT = Document(
    "privacy statement",
    "Write statements with write() or to_json().",
    StatementError,
    largest=1 << 26,
)
LARGEST_WHOLE = 2**53
"""No count of a real plan comes near; a larger number in a file could only keep the reader busy."""

FIELDS = frozenset(
    (
        *("format", "version", "checksum", "created"),
        *("promise", "epsilon", "delta", "accounting", "events", "plan", "cap"),
        *("facts", "bounds", "not_covered", "tuning", "earlier_releases", "audit"),
        *("noise", "arithmetic", "user_code", "stamps", "versions"),
    )
)
LATER = frozenset(("groups", "ledger", "releases", "notes"))
"""Fields that a file need not have."""
RECEIPT = frozenset(("dataset", "spend", "entry", "hash"))
RELEASE = frozenset(("name", "mechanism", "numbers", "rows", "times"))


def to_dict(statement: StatementContents) -> dict[str, Any]:
    """Plain JSON values of everything in the statement."""
    out: dict[str, Any] = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "promise": statement.promise.to_dict(),
        "epsilon": _plain(statement.epsilon),
        "delta": statement.delta,
        "accounting": {"neighbours": statement.neighbours, "route": statement.route},
        "stamps": list(statement.stamps),
        "events": event_tree.to_json_dict(Composed(statement.events)),
        "plan": None
        if statement.plan is None
        else event_tree.to_json_dict(Composed(statement.plan)),
        "cap": None if statement.cap is None else asdict(statement.cap),
        "facts": [asdict(fact) for fact in statement.facts],
        "bounds": [asdict(bound) for bound in statement.bounds],
        "not_covered": list(statement.not_covered),
        "tuning": statement.tuning,
        "earlier_releases": statement.earlier_releases,
        "audit": None if statement.audit is None else asdict(statement.audit),
        "noise": statement.noise,
        "arithmetic": statement.arithmetic,
        "user_code": statement.user_code,
        "versions": dict(statement.versions),
        "created": statement.created,
    }
    if statement.groups:
        out["groups"] = [_told(group) for group in statement.groups]
    if statement.ledger is not None:
        out["ledger"] = asdict(statement.ledger)
    if statement.releases:
        out["releases"] = [
            asdict(release) | {"numbers": list(release.numbers)} for release in statement.releases
        ]
    if statement.notes:
        out["notes"] = list(statement.notes)
    out["checksum"] = checksum(out)
    return out


def checksum(values: Mapping[str, Any]) -> str:
    """SHA-256 of the content in one canonical spelling, without the date. Shows an accident, proves
    no author."""
    content = {name: value for name, value in values.items() if name not in ("checksum", "created")}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def read(text: str, kind: type[Stated]) -> tuple[Stated, bool]:
    """The statement of this class in a JSON document, and whether its content is what the checksum
    was made of."""
    try:
        values = DOCUMENT.json(text)
        _check_counts(values)
        return _statement(values, kind), values["checksum"] == checksum(values)
    except StatementError:
        raise
    # A stranger's file may be wrong in any way; each is a malformed statement and never a
    # traceback.
    except (FairveilError, *MALFORMED) as error:
        # A refusal of ours says what is wrong; of the rest the kind is enough.
        found = (
            str(error)
            if isinstance(error, FairveilError)
            else f"what does not fit ({type(error).__name__})"
        )
    raise _malformed("a well-formed statement", "privacy statement", found)


def write(path: Path, text: str) -> Path:
    """Write beside the target, flush to disk, then rename: readers see the old file or the new
    one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def _statement(values: object, kind: type[Stated]) -> Stated:
    fields = _fields(
        values,
        FIELDS | LATER.intersection(_mapping(values, "privacy statement")),
        "privacy statement",
    )
    if (
        fields["format"] != FORMAT
        or fields["version"] != FORMAT_VERSION
        or fields["version"] is True
    ):
        raise _malformed(
            f"{FORMAT!r}, version {FORMAT_VERSION}", "format", (fields["format"], fields["version"])
        )
    accounting = _fields(fields["accounting"], frozenset(("neighbours", "route")), "accounting")
    cap = fields["cap"]
    if cap is not None:
        cap = Cap(**_fields(cap, frozenset(("kind", "order", "reserve")), "cap"))
    audit = fields["audit"]
    if audit is not None:
        audit = Audit(**_fields(audit, frozenset(("epsilon", "confidence", "attack")), "audit"))
    fact_names = frozenset(("name", "value", "origin"))
    bound_names = frozenset(("question", "norm", "sensitivity", "reason", "origin"))
    return kind(
        promise=Promise.from_dict(_mapping(fields["promise"], "promise")),
        epsilon=_epsilon(fields["epsilon"]),
        delta=fields["delta"],
        neighbours=accounting["neighbours"],
        route=accounting["route"],
        events=_events(fields["events"]),
        plan=None if fields["plan"] is None else _events(fields["plan"]),
        cap=cap,
        facts=tuple(
            PublicFact(**_fields(fact, fact_names, "fact"))
            for fact in _list(fields["facts"], "facts")
        ),
        bounds=tuple(
            StatedBound(**_fields(bound, bound_names, "bound"))
            for bound in _list(fields["bounds"], "bounds")
        ),
        not_covered=tuple(_list(fields["not_covered"], "not_covered")),
        tuning=fields["tuning"],
        earlier_releases=fields["earlier_releases"],
        audit=audit,
        noise=fields["noise"],
        arithmetic=fields["arithmetic"],
        user_code=fields["user_code"],
        stamps=tuple(_list(fields["stamps"], "stamps")),
        versions=_versions(fields["versions"]),
        created=fields["created"],
        groups=tuple(_group(group) for group in _list(fields.get("groups", []), "groups")),
        ledger=Receipt(**_fields(fields["ledger"], RECEIPT, "ledger"))
        if "ledger" in fields
        else None,
        releases=tuple(_release(one) for one in _list(fields.get("releases", []), "releases")),
        notes=tuple(_list(fields.get("notes", []), "notes")),
    )


def _release(value: object) -> Release:
    fields = _fields(value, RELEASE, "release")
    return Release(**{**fields, "numbers": tuple(_list(fields["numbers"], "numbers"))})


def _told(group: GroupGuarantee) -> dict[str, Any]:
    """A limit is told where there is one."""
    told = {**asdict(group), "epsilon": _plain(group.epsilon)}
    return {name: value for name, value in told.items() if name != "limit" or value is not None}


def _group(value: object) -> GroupGuarantee:
    limited = frozenset({"limit"} if isinstance(value, dict) and "limit" in value else ())
    fields = _fields(
        value, frozenset(("name", "cell", "column", "epsilon", "fixed")) | limited, "group"
    )
    return GroupGuarantee(**{**fields, "epsilon": _epsilon(fields["epsilon"])})


def _events(values: object) -> tuple[Event, ...]:
    whole = event_tree.from_json_dict(values)
    if not isinstance(whole, Composed):
        raise _malformed("one 'composed' event around all others", "events", whole.kind)
    return whole.events


def _plain(epsilon: float) -> float | str:
    return "inf" if math.isinf(epsilon) else epsilon


def _epsilon(value: object) -> Any:
    return math.inf if value == "inf" else value


def _versions(value: object) -> tuple[tuple[str, str], ...]:
    named = _mapping(value, "versions")
    if not all(
        isinstance(text, str) and text and (name + text).isprintable()
        for name, text in named.items()
    ):
        raise _malformed("one word a name", "versions", value)
    return tuple(named.items())


def _fields(value: object, names: frozenset[str], of: str) -> dict[str, Any]:
    mapping = _mapping(value, of)
    if set(mapping) != names:
        raise _malformed(f"the fields {sorted(names)}", of, sorted(mapping))
    return dict(mapping)


def _mapping(value: object, of: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _malformed("an object", of, value)
    return value


def _list(value: object, of: str) -> list[Any]:
    if not isinstance(value, list):
        raise _malformed("a list", of, value)
    return value


def _check_counts(values: object) -> None:
    waiting = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif type(value) is int and abs(value) > LARGEST_WHOLE:
            raise _malformed(f"whole numbers up to {LARGEST_WHOLE}", "privacy statement", value)


def _malformed(expected: str, of: str, got: object) -> StatementError:
    text = got if isinstance(got, str) and len(got) <= 300 else shown(got)
    return StatementError.expected(expected, of=of, got=text, remedy=DOCUMENT.remedy)
