"""Released groups on disk: a folder with the counts and the statement, or one file with both,
signed if there is a key.

Never pickle. Checksums show damage, not authorship; a signature says who stands by counts and
statement together.

Guarantees (tests/estimators/test_estimators_released_file.py):
1. No field of a signed file can be changed without the signature being refused; spaces and the
   order of fields can.
2. `examine` recomputes what follows: the price, from the events, and the distribution of the
   counts, from price and groups.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..._json import Document, Node
from ..._reading import read_text
from ..._types import ColumnsLike
from ...errors import ChecksumError, SignatureError
from ...facts import Reports
from ...learning.counts import CountNoise
from ...learning.released import clusters
from ...learning.released.group_counts import GroupCounts, noise_of
from ...models.folders import LARGEST_TEXT, read_folder, write_folder
from ...models.model import known_classes
from ...statement import document, signing
from ...statement.check import Finding, canonical
from ...statement.document import PrivacyStatement
from ...statement.signing import Signature
from ...tables import keys
from ..reading import coding_json
from ..saving import values as files_json
from .released_counts import ReleasedCounts

Released = TypeVar("Released", bound=ReleasedCounts)

FORMAT, VERSION = "fairveil-released-groups", 1
GROUPS_FILE, STATEMENT_FILE = "groups.json", "statement.json"
CONTENT = ("cells", "classes", "coding", "clusters", "counts", "sizes", "noise")
OPTIONAL = ("reports",)
FIELDS = ("format", "version", *CONTENT, "statement_sha256")
FILE_FORMAT, FILE_VERSION = "fairveil released groups", 1
FILE_FIELDS = ("format", "version", "statement", "groups", "checksum", "signature")
RECOMPUTED = (
    "epsilon",
    "delta",
    "accounting",
    "stamps",
    "checksum",
    "noise of the counts",
    "totals of two groups",
)
ON_TRUST = ("the counts", "the clusters", "the facts", "that the events happened")
DOCUMENT = Document(
    GROUPS_FILE, "It is not what was saved: save the released groups again.", largest=LARGEST_TEXT
)
FILE_DOCUMENT = Document(
    "released groups", "Ask the attribute's holder for the file again.", largest=LARGEST_TEXT
)
NOISES = ("none", "discrete-laplace")
SLACK = 1e-9


def save(
    released: ReleasedCounts, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write a folder, whole or not at all."""
    statement = released.privacy.to_json().encode()
    content = {"format": FORMAT, "version": VERSION, **_content(released)}
    content["statement_sha256"] = hashlib.sha256(statement).hexdigest()
    text = json.dumps(content, allow_nan=False, sort_keys=True) + "\n"
    files = {GROUPS_FILE: text.encode(), STATEMENT_FILE: statement}
    return write_folder(path, files, replaces=GROUPS_FILE if overwrite else None)


def _content(released: ReleasedCounts) -> dict[str, Any]:
    return {
        "cells": files_json.cells_to_dict(released.cells),
        "classes": [keys.to_json(value, of="classes") for value in released.classes],
        "coding": coding_json.to_dict(released.coding),
        "clusters": clusters.to_dict(released.clusters),
        "counts": released.counts.raw.tolist(),
        "sizes": released.counts.sizes.tolist(),
        "noise": [released.counts.noise.kind, released.counts.noise.scale],
        **(
            {}
            if released.counts.reports is None
            else {"reports": released.counts.reports.to_dict()}
        ),
    }


def load(
    path: str | os.PathLike[str], key: str | os.PathLike[str] | None, kind: type[Released]
) -> Released:
    """The inverse of `save`, and of `write`. `key`: the public key that must have signed it."""
    if Path(path).is_file():
        text = text_of(path)
        if key is not None:
            require_signed(text, signing.public_key(key), str(path))
        return read(text, kind)[0]
    if key is not None:
        signing.verify_signature(path, key)
    files = read_folder(path, (GROUPS_FILE, STATEMENT_FILE))
    content = DOCUMENT.node(files[GROUPS_FILE])
    if content.mapping().get("format") != FORMAT or content.mapping().get("version") != VERSION:
        content.refuse(f"{FORMAT!r}, version {VERSION}", content.mapping().get("format"))
    content.only(FIELDS, OPTIONAL)
    found = hashlib.sha256(files[STATEMENT_FILE]).hexdigest()
    if found != content["statement_sha256"].text():
        remedy = "A file is damaged or from another folder: save the released groups again."
        raise ChecksumError.expected(
            "the statement of these counts", of=STATEMENT_FILE, got=found, remedy=remedy
        )
    return _released(
        content, PrivacyStatement.from_json(files[STATEMENT_FILE].decode("utf-8", "replace")), kind
    )


def _released(content: Node, statement: PrivacyStatement, kind: type[Released]) -> Released:
    cells: Any = files_json.cells_from_dict(content["cells"])
    classes = known_classes(
        [keys.plain(value.value, of="classes") for value in content["classes"].list()]
    )
    coding = coding_json.from_dict(content["coding"])
    made = clusters.from_dict(content["clusters"])
    sizes = np.array(content["sizes"].numbers(length=made.count))
    raw = np.array([line.numbers(length=made.count) for line in content["counts"].list()])
    if cells is None or len(raw) != cells.count:
        content["counts"].refuse("a line of counts for each group", len(raw))
    if len(made.trees) != len(classes) or len(made.centre) != coding.layout.width:
        content["clusters"].refuse(
            "a tree for each class, on the features of the coding", len(made.trees)
        )
    told = content["reports"] if "reports" in content.mapping() else None
    reports = None if told is None else Reports.from_node(told, cells.keys)
    counts = GroupCounts(raw, sizes, _noise(content["noise"]), reports)
    return kind(statement, cells, classes, coding, made, counts)


def write(
    released: ReleasedCounts, path: Path, private: object, note: str | None
) -> Signature | None:
    """One file with counts and statement. `private`: the key that signs both, or None."""
    statement, groups = released.privacy.to_json(), _content(released)
    signed = (
        None
        if private is None
        else signing.signed_text(statement, private, note=note, files=_signed(groups))
    )
    content = {
        "format": FILE_FORMAT,
        "version": FILE_VERSION,
        "statement": json.loads(statement),
        "groups": groups,
        "checksum": _checksum(groups),
        "signature": None if signed is None else json.loads(signed.to_json()),
    }
    document.write(path, json.dumps(content, allow_nan=False) + "\n")
    return signed


def text_of(path: str | os.PathLike[str]) -> str:
    """The file's text."""
    remedy = "Pass the file that the attribute's holder sent."
    return read_text(path, what="a file of released groups", most=LARGEST_TEXT, remedy=remedy)


def read(text: str, kind: type[Released]) -> tuple[Released, Signature | None]:
    """What `write` wrote, and its signature, which is not held against a key here: see
    `require_signed`."""
    content = FILE_DOCUMENT.node(text)
    if (
        content.mapping().get("format") != FILE_FORMAT
        or content.mapping().get("version") != FILE_VERSION
    ):
        content.refuse(f"{FILE_FORMAT!r}, version {FILE_VERSION}", content.mapping().get("format"))
    content.only(FILE_FIELDS)
    groups = content["groups"].only(CONTENT, OPTIONAL)
    if content["checksum"].text() != _checksum(groups.value):
        remedy = "The file is damaged: ask the attribute's holder for it again."
        raise ChecksumError.expected(
            "the counts that were written", of="groups", got="others", remedy=remedy
        )
    signature = content["signature"]
    found = None if signature.is_null else Signature.from_json(json.dumps(signature.value))
    return _released(
        groups, PrivacyStatement.from_json(json.dumps(content["statement"].value)), kind
    ), found


def require_signed(text: str, public: object, of: str) -> Signature:
    """The signature, made with the private half of this key over these counts and this statement;
    else an error."""
    content = FILE_DOCUMENT.json(text)
    _, found = read(text, ReleasedCounts)
    expected, remedy = "a signature", "Ask the attribute's holder to sign it."
    if found is None:
        raise SignatureError.expected(expected, of=of, got=None, remedy=remedy)
    signing.verify_text(json.dumps(content["statement"]), found, public, of)
    if found.files != _signed(content["groups"]):
        expected, got = "the signed counts", "others, or such that were changed since"
        raise SignatureError.expected(expected, of=of, got=got, remedy=remedy, quote=False)
    return found


def examine(text: str) -> tuple[ReleasedCounts, list[Finding]]:
    """The release, and what in it does not fit together."""
    released, _ = read(text, ReleasedCounts)
    found = list(released.privacy.check())
    counts, promise = released.counts, released.privacy.promise
    if promise.protects != "sensitive_features":
        found.append(
            Finding(True, "the statement is not about sensitive features, which the counts are of")
        )
    elif len(released.privacy.events) != 1:
        found.append(
            Finding(
                True, "the counts are one release, and the statement has another number of events"
            )
        )
    elif (law := noise_of(released.privacy.events[0])) is None or law.kind != counts.noise.kind:
        found.append(Finding(True, "the event of the statement is not one of such counts"))
    elif not math.isclose(law.scale, counts.noise.scale, rel_tol=SLACK):
        words = (
            f"noise of scale {counts.noise.scale:.6g} is stated; that of the event is "
            f"{law.scale:.6g}"
        )
        found.append(Finding(True, f"the counts are not of the event: {words}"))
    if counts.one_group and not (counts.raw.sum(axis=0) == counts.sizes).all():
        found.append(
            Finding(True, "the counts of two groups do not add up to the sizes of the clusters")
        )
    return released, found


def _signed(groups: ColumnsLike) -> tuple[tuple[str, str], ...]:
    return ((GROUPS_FILE, f"sha256:{_checksum(groups)}"),)


def _checksum(groups: ColumnsLike) -> str:
    return hashlib.sha256(canonical(groups).encode()).hexdigest()


def _noise(node: Node) -> CountNoise:
    kind, scale = node.list(2)
    if kind.text() not in NOISES:
        kind.refuse(f"one of {NOISES}", kind.value)
    value = scale.number()
    if kind.text() != "none" and value <= 0:
        scale.refuse("a scale above 0", value)
    return CountNoise(kind.text(), value)
