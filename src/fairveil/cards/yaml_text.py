"""Plain values as YAML: block style for mappings and lists, and every text quoted, so that no value
is read as another kind."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
"""Keys that YAML 1.1 reads as something else."""


def yaml_text(value: object, indent: int = 0) -> str:
    """A mapping or list of plain values.

    >>> print(yaml_text({"name": "no", "values": [1, {"a": 0.5}]}), end="")
    name: "no"
    values:
    - 1
    - a: 0.5
    """
    space = " " * indent
    if isinstance(value, Mapping):
        return "".join(_line(f"{space}{_key(key)}:", one, indent) for key, one in value.items())
    assert isinstance(value, Sequence)
    assert not isinstance(value, str)
    out = []
    for one in value:
        if isinstance(one, Mapping | list | tuple) and one:
            inner = yaml_text(one, indent + 2)
            out.append(f"{space}- {inner[indent + 2 :]}")
        else:
            out.append(f"{space}- {_scalar(one)}\n")
    return "".join(out)


def _line(head: str, value: object, indent: int) -> str:
    if isinstance(value, Mapping) and value:
        return f"{head}\n{yaml_text(value, indent + 2)}"
    if isinstance(value, list | tuple) and value:
        return f"{head}\n{yaml_text(value, indent)}"
    return f"{head} {_scalar(value)}\n"


def _key(key: object) -> str:
    text = str(key)
    return (
        text
        if PLAIN.fullmatch(text) and text.lower() not in WORDS
        else json.dumps(text, ensure_ascii=False)
    )


def _scalar(value: object) -> str:
    """As JSON writes it, which YAML 1.2 reads alike; lists and mappings here are empty ones."""
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)
    return json.dumps(value, ensure_ascii=False)
