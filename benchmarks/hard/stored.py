"""Runs in a file of JSON lines: what is there is not fitted again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Run = dict[str, Any]
Key = tuple[Any, ...]


def key_of(run: Run) -> Key:
    """What makes two runs the same one."""
    names = ("case", "method", "notion", "asked", "epsilon", "protects", "seed", "most", "knobs")
    return tuple(run[name] for name in names)


def read(file: Path | None) -> list[Run]:
    """Every run of the file; a last line that was cut off is passed over."""
    if file is None or not file.exists():
        return []
    found = []
    for line in file.read_text("utf-8").splitlines():
        try:
            run = json.loads(line)
        except json.JSONDecodeError:
            continue
        run["epsilon"] = float(run["epsilon"])
        found.append(run)
    return list({key_of(run): run for run in found}.values())


def append(file: Path | None, runs: Iterable[Run]) -> None:
    """Written at once, so that a run that is interrupted loses one fit."""
    if file is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    cut_off = file.exists() and not file.read_bytes().endswith(b"\n")
    with file.open("a", encoding="utf-8") as out:
        out.write("\n" if cut_off else "")
        for run in runs:
            plain = {**run, "epsilon": run["epsilon"] if math.isfinite(run["epsilon"]) else "inf"}
            out.write(json.dumps(plain) + "\n")
