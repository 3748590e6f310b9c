"""Are a file's tables and rules those that its version has? Somebody, or a damaged page, may have
taken them away.

Guarantees (tests/privacy/ledger/test_ledger_damage.py):
1. A line is only added where the file has every table, index and trigger of its version, word for
   word, and no other trigger.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from functools import lru_cache

from ....errors import LedgerError
from . import creating

SMALL = 16 << 20
"""Bytes of a database whose pages and indexes are checked before the first line is added: a few
milliseconds a megabyte."""
ALL_RULES = "SELECT type, name, tbl_name, sql FROM sqlite_master"
Rule = tuple[object, ...]


def require_rules(found: Iterable[Rule], shown: str) -> None:
    """Refuse tables without the rules that keep lines from being changed."""
    there = set(found)
    ours = _rules()
    missing = sorted(str(name) for _, name, _, _ in ours - there)
    added = sorted(str(name) for kind, name, _, _ in there - ours if kind == "trigger")
    if missing or added:
        remedy = (
            "Nothing was written. Look at `fairveil ledger check`, and restore an export or a copy."
        )
        got = (
            f"a file in which {', '.join([*missing, *added])[:200]} was changed, taken away or "
            f"added"
        )
        got = "".join(letter if letter.isprintable() else "?" for letter in got)
        raise LedgerError.expected("the rules of a ledger", of=shown, got=got, remedy=remedy)


@lru_cache(maxsize=1)
def _rules() -> frozenset[Rule]:
    with closing(sqlite3.connect(":memory:")) as link:
        for statement in creating.sqlite_statements():
            link.execute(statement)
        return frozenset(link.execute(ALL_RULES).fetchall())
