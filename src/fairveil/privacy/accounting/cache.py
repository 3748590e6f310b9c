"""Scales that were found before, in the user's cache directory: $XDG_CACHE_HOME/fairveil or
~/.cache/fairveil.

Only a starting point is kept: whoever recalls one prices it again, so a wrong or foreign file costs
time and never privacy. Files hold public numbers only. A cache that cannot be read or written is no
cache, and no error.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..._json import Document
from ..._reading import read_bytes
from ...core.events import Event, to_json_dict
from ...core.promise import Promise
from ...errors import FairveilError

ACCOUNTANT = 2
"""Raised when the accountant's prices change, which forgets what older ones found."""


def folder() -> Path | None:
    """Where answers are kept; None when there is no home directory."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    except RuntimeError:
        return None
    return root / "fairveil" / "calibration"


def key(promise: Promise, probes: Sequence[Event], precision: float) -> str:
    """A name for the question: the promise and the plan at a few scales."""
    asked = {
        "accountant": ACCOUNTANT,
        "promise": promise.to_dict(),
        "precision": precision,
        "probes": [to_json_dict(event) for event in probes],
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def recall(name: str) -> float | None:
    """The scale kept under this name, when there is a well-formed one."""
    where = folder()
    if where is None:
        return None
    try:
        text = read_bytes(where / f"{name}.json", what="a scale", most=4096)
        kept = Document("calibration cache", "", largest=4096, deepest=2).json(text)
    except FairveilError:
        return None
    scale = kept.get("scale") if isinstance(kept, dict) else None
    good = isinstance(scale, float) and math.isfinite(scale) and scale > 0
    return scale if good else None


def remember(name: str, scale: float) -> None:
    """Keep a scale: written beside, then moved into place, so that a reader never sees half a
    file."""
    where = folder()
    if where is None:
        return
    try:
        where.mkdir(parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=where, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"scale": scale}, file)
            os.replace(beside, where / f"{name}.json")
        except BaseException:
            os.unlink(beside)
            raise
    except OSError:
        return
