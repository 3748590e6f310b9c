"""From an address to the store that it names."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from ...._urls import IN_QUERY, without_password
from ....errors import InputError
from .sqlite import SQLiteStore
from .store import MemoryStore, Store

SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*)://")
SERVERS = ("postgresql", "postgres")
MEMORY = (":memory:", b":memory:", "file::memory:", b"file::memory:")
"""What SQLite keeps in memory: here it would be a file of that name, which outlives the process
that thought otherwise."""


def store_of(url: str | os.PathLike[str] | None, *, create: bool, read_only: bool = False) -> Store:
    """A file (a path, or sqlite:///...), a server (postgresql://...), or a new one in memory
    (None)."""
    if url is None:
        return MemoryStore()
    given: object = url
    if not isinstance(given, str | os.PathLike):
        raise _unknown(type(given).__name__)
    if os.fspath(url) in MEMORY:
        raise _unknown(f"{os.fspath(url)!r}, SQLite's name of a database in memory")
    if not isinstance(url, str):
        return SQLiteStore(url, create=create, read_only=read_only)
    scheme = SCHEME.match(url)
    if scheme is None:
        if not url or IN_QUERY.search(url) or re.match(r"\w+:[^/\\]*@|postgres(ql)?:", url):
            raise _unknown("no path and no scheme://")
        return SQLiteStore(url, create=create, read_only=read_only)
    name = scheme["scheme"].lower()
    if name in SERVERS:
        from .postgres import PostgresStore

        return PostgresStore(url, create=create, read_only=read_only)
    if name != "sqlite":
        raise _unknown(f"{name}://")
    return SQLiteStore(_file_of(url, url[scheme.end() :]), create=create, read_only=read_only)


def _file_of(url: str, rest: str) -> str:
    """sqlite:///people.db starts in the working folder, sqlite:////data/people.db at the root."""
    path = unquote(rest.removeprefix("/"))
    if not rest.startswith("/") or path in ("", ":memory:") or "?" in rest:
        remedy = (
            "Write sqlite:///people.db or sqlite:////data/people.db (a ? of the name as %3F); None "
            "is a ledger in memory."
        )
        raise InputError.expected(
            "sqlite:///FILE", of="url", got=without_password(url), remedy=remedy
        )
    return path


def _unknown(got: str) -> InputError:
    remedy = (
        "Pass a path, sqlite:///FILE, postgresql://USER:PASSWORD@HOST/DATABASE, or None for one in "
        "memory."
    )
    return InputError.expected(
        "an address of a file or of PostgreSQL", of="url", got=got, remedy=remedy
    )
