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
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..._codec import Kind
from ..._json import Document, Node
from ..._reading import read_text
from ..._types import ColumnsLike
from ...core.events import NoOp
from ...errors import ChecksumError, SignatureError
from ...facts import Reports
from ...learning.counts import CountNoise, noise_of
from ...learning.released import MOST_NODES, NO_CHILD, Clusters, GroupCounts, Tree
from ...models.folders import LARGEST_TEXT, read_folder, write_folder
from ...models.model import known_classes
from ...statement import document, signing
from ...statement.check import Finding, canonical
from ...statement.document import PrivacyStatement
from ...statement.signing import Signature
from ..reading.coded_files import CODINGS
from .released_counts import ReleasedCounts

Released = TypeVar("Released", bound=ReleasedCounts)

FORMAT, VERSION = "fairveil-released-groups", 2
GROUPS_FILE, STATEMENT_FILE = "groups.json", "statement.json"
FIELDS = ("format", "version", "groups", "statement_sha256")
TREE = ("feature", "left", "right")
FILE_FORMAT, FILE_VERSION = "fairveil released groups", 2
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


def _check_tree(found: dict[str, Any], node: Node) -> None:
    """Nodes lead to later ones."""
    feature, size = found["feature"], len(found["threshold"])
    if not size or size > MOST_NODES or any(found[name].shape != (size,) for name in TREE):
        node.refuse("as many of each as nodes", size)
    at, is_leaf = np.arange(size), feature == NO_CHILD
    children = np.stack([found["left"], found["right"]])
    if (feature < NO_CHILD).any() or ((children <= at) | (children >= size))[:, ~is_leaf].any():
        node.refuse("a tree whose nodes lead to later ones", size)
    found["leaf"] = np.where(is_leaf, np.cumsum(is_leaf) - 1, NO_CHILD)


def _check_clusters(found: dict[str, Any], node: Node) -> None:
    axes = found["axes"]
    if found["centre"].ndim != 1 or axes.ndim != 2 or len(axes) != len(found["centre"]):
        node["axes"]["shape"].refuse(f"{len(found['centre'])} lines", list(axes.shape))
    if any((tree.feature >= axes.shape[1]).any() for tree in found["trees"]):
        node["trees"].refuse(f"features below {axes.shape[1]}", "others")


def _check_noise(found: dict[str, Any], node: Node) -> None:
    node["kind"].one_of(NOISES)
    if not (0.0 < found["scale"] < math.inf or found["kind"] == "none"):
        node["scale"].refuse("a scale above 0", found["scale"])


def _check_whole(found: dict[str, Any], node: Node) -> None:
    """Counts, clusters, coding and groups are of one release."""
    known_classes(found["classes"])
    made, counts, cells = found["clusters"], found["counts"], found["cells"]
    if counts.raw.shape != (cells.count, made.count) or counts.sizes.shape != (made.count,):
        node["counts"].refuse("a line of counts for each group", list(counts.raw.shape))
    if not (np.isfinite(counts.raw).all() and np.isfinite(counts.sizes).all()):
        node["counts"].refuse("finite counts", "others")
    width = found["coding"].layout.width
    if len(made.trees) != len(found["classes"]) or len(made.centre) != width:
        trees = "a tree for each class, on the features of the coding"
        node["clusters"].refuse(trees, len(made.trees))
    if counts.reports is not None and counts.reports.groups != cells.keys:
        node["counts"]["reports"].refuse("reports of these groups", "others")


CODEC = CODINGS.with_kinds(
    Kind(ReleasedCounts, without=("privacy",), check=_check_whole),
    Kind(Clusters, check=_check_clusters),
    Kind(Tree, without=("leaf",), check=_check_tree),
    Kind(GroupCounts),
    Kind(CountNoise, check=_check_noise),
    Kind(Reports),
)


def save(
    released: ReleasedCounts, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write a folder, whole or not at all."""
    statement = released.privacy.to_json().encode()
    content = {"format": FORMAT, "version": VERSION, "groups": _content(released)}
    content["statement_sha256"] = hashlib.sha256(statement).hexdigest()
    text = json.dumps(content, allow_nan=False, sort_keys=True) + "\n"
    files = {GROUPS_FILE: text.encode(), STATEMENT_FILE: statement}
    return write_folder(path, files, replaces=GROUPS_FILE if overwrite else None)


def _content(released: ReleasedCounts) -> dict[str, Any]:
    plain = {one.name: getattr(released, one.name) for one in fields(ReleasedCounts)}
    found: dict[str, Any] = CODEC.write(ReleasedCounts(**plain))
    return found


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
    content.only(FIELDS)
    found = hashlib.sha256(files[STATEMENT_FILE]).hexdigest()
    if found != content["statement_sha256"].text():
        remedy = "A file is damaged or from another folder: save the released groups again."
        raise ChecksumError.expected(
            "the statement of these counts", of=STATEMENT_FILE, got=found, remedy=remedy
        )
    return _released(
        content["groups"],
        PrivacyStatement.from_json(files[STATEMENT_FILE].decode("utf-8", "replace")),
        kind,
    )


def _released(content: Node, statement: PrivacyStatement, kind: type[Released]) -> Released:
    found = CODEC.read(content, ReleasedCounts, privacy=statement)
    return kind(*(getattr(found, one.name) for one in fields(ReleasedCounts)))


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
    groups = content["groups"]
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
    elif (
        isinstance(event := released.privacy.events[0], NoOp)
        or (law := noise_of(event, promise.neighbours)) is None
        or law.kind != counts.noise.kind
    ):
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
