"""Plain values as TOML 1.0: the little that a schema needs, written so that `tomllib` reads the
same values and types back."""

from __future__ import annotations

import re
from collections.abc import Mapping

BARE = re.compile(r"[A-Za-z0-9_-]+")
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def _letter(letter: str) -> str:
    if letter in SHORT:
        return SHORT[letter]
    if ord(letter) < 0x20 or ord(letter) == 0x7F:
        return f"\\u{ord(letter):04x}"
    return letter


def value_text(value: object) -> str:
    r"""A value of TOML on one line.

    >>> print(value_text(['a"b', 1, 1.0, True]))
    ["a\"b", 1, 1.0, true]
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return '"' + "".join(map(_letter, value)) + '"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    raise TypeError(f"TOML has no value for {type(value).__name__}")


def key_text(key: str) -> str:
    """A key: bare where TOML allows it, quoted elsewhere."""
    return key if BARE.fullmatch(key) else value_text(key)


def document(values: Mapping[str, object]) -> str:
    """A whole document. Lists of mappings become arrays of tables, at the end, in their order."""
    tables = {key: value for key, value in values.items() if _is_tables(value)}
    lines = [
        f"{key_text(key)} = {value_text(value)}"
        for key, value in values.items()
        if key not in tables
    ]
    for key, rows in tables.items():
        assert isinstance(rows, list)
        for row in rows:
            lines += ["", f"[[{key_text(key)}]]"]
            lines += [f"{key_text(name)} = {value_text(value)}" for name, value in row.items()]
    return "\n".join(lines) + "\n"


def _is_tables(value: object) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)
    )
