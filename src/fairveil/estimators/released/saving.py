"""Released groups on disk: a folder with the counts and the statement. Never pickle; checksums show damage, not authorship."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..._json import Document, Node
from ...errors import ChecksumError, complaint
from ...learning.counts.noise import CountNoise
from ...learning.released import clusters
from ...learning.released.group_counts import GroupCounts
from ...models.folders import LARGEST_TEXT, read_folder, write_folder
from ...models.model import known_classes
from ...privacy.statement.statement import PrivacyStatement
from ...tables import keys
from ..reading import coding_json
from ..saving import values as files_json
from .groups import ReleasedGroups

FORMAT, VERSION = "fairveil-released-groups", 1
GROUPS_FILE, STATEMENT_FILE = "groups.json", "statement.json"
FIELDS = ("format", "version", "cells", "classes", "coding", "clusters", "counts", "sizes", "noise", "statement_sha256")
DOCUMENT = Document(GROUPS_FILE, "It is not what was saved: save the released groups again.", largest=LARGEST_TEXT)
NOISES = ("none", "discrete-laplace")


def save(released: ReleasedGroups, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a folder, whole or not at all."""
    statement = released.privacy.to_json().encode()
    content = {
        "format": FORMAT,
        "version": VERSION,
        "cells": files_json.cells_to_dict(released.cells),
        "classes": [keys.to_json(value, of="classes") for value in released.classes],
        "coding": coding_json.to_dict(released.coding),
        "clusters": clusters.to_dict(released.clusters),
        "counts": released.counts.raw.tolist(),
        "sizes": released.counts.sizes.tolist(),
        "noise": [released.counts.noise.kind, released.counts.noise.scale],
        "statement_sha256": hashlib.sha256(statement).hexdigest(),
    }
    text = json.dumps(content, allow_nan=False, sort_keys=True) + "\n"
    files = {GROUPS_FILE: text.encode(), STATEMENT_FILE: statement}
    return write_folder(path, files, replaces=GROUPS_FILE if overwrite else None)


def load(path: str | os.PathLike[str]) -> ReleasedGroups:
    """The inverse of `save`."""
    files = read_folder(path, (GROUPS_FILE, STATEMENT_FILE))
    content = DOCUMENT.node(files[GROUPS_FILE])
    if content.mapping().get("format") != FORMAT or content.mapping().get("version") != VERSION:
        content.refuse(f"{FORMAT!r}, version {VERSION}", content.mapping().get("format"))
    content.only(FIELDS)
    found = hashlib.sha256(files[STATEMENT_FILE]).hexdigest()
    if found != content["statement_sha256"].text():
        remedy = "A file is damaged or from another folder: save the released groups again."
        raise ChecksumError(complaint(expected="the statement of these counts", of=STATEMENT_FILE, got=found, remedy=remedy))
    cells: Any = files_json.cells_from_dict(content["cells"])
    classes = known_classes([keys.plain(value.value, of="classes") for value in content["classes"].list()])
    coding = coding_json.from_dict(content["coding"])
    made = clusters.from_dict(content["clusters"])
    sizes = np.array(content["sizes"].numbers(length=made.count))
    raw = np.array([line.numbers(length=made.count) for line in content["counts"].list()])
    if cells is None or len(raw) != cells.count:
        content["counts"].refuse("a line of counts for each group", len(raw))
    if len(made.trees) != len(classes) or len(made.centre) != coding.layout.width:
        content["clusters"].refuse("a tree for each class, on the features of the coding", len(made.trees))
    statement = PrivacyStatement.from_json(files[STATEMENT_FILE].decode("utf-8", "replace"))
    return ReleasedGroups(statement, cells, classes, coding, made, GroupCounts(raw, sizes, _noise(content["noise"])))


def _noise(node: Node) -> CountNoise:
    kind, scale = node.list(2)
    if kind.text() not in NOISES:
        kind.refuse(f"one of {NOISES}", kind.value)
    value = scale.number()
    if kind.text() != "none" and value <= 0:
        scale.refuse("a scale above 0", value)
    return CountNoise(kind.text(), value)
