"""Places to keep a ledger in, lines to put there, and processes that write."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairveil.privacy.ledger.stores.entries import CREATED, FIRST_PREVIOUS, RESERVED, Entry
from fairveil.privacy.ledger.stores.opening import store_of
from fairveil.privacy.ledger.stores.store import Store


class Place:
    """Where a ledger is kept: `open` as often as one likes."""

    def __init__(self, kind: str, url: str | None) -> None:
        self.kind, self.url = kind, url
        self._memory: Store | None = None

    def open(self, *, create: bool = False, read_only: bool = False) -> Store:
        if self.kind == "memory":
            self._memory = self._memory or store_of(None, create=True)
            return self._memory
        return store_of(self.url, create=create, read_only=read_only)


@pytest.fixture
def postgres_place(postgres_url: str) -> Place:
    """Part of the server that no other test uses."""
    name = f"t{uuid.uuid4().hex}"
    with closing(psycopg.connect(postgres_url, autocommit=True)) as link:
        link.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(psycopg.sql.Identifier(name)))
    return Place("postgres", f"{postgres_url}?options=-csearch_path%3D{name}")


def _place(request: pytest.FixtureRequest, folder: Path) -> Place:
    if request.param == "postgres":
        found: Place = request.getfixturevalue("postgres_place")
        return found
    return Place(request.param, str(folder / "budget.db"))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind of place, empty."""
    return _place(request, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind that outlives its process."""
    return _place(request, tmp_path)


@pytest.fixture(scope="session")
def line() -> Callable[..., Entry]:
    """The line after a head, or a first one."""

    def made(head: Entry | None = None, /, **changes: Any) -> Entry:
        if head is None:
            new = Entry(
                0, CREATED, "", "now", "me", "1.0", "", "records", "{}", 0, 0, 0, 0, FIRST_PREVIOUS
            )
        else:
            previous, spent = head.hash, head.spent + 1
            text = ("now", "me", "1.0", "why", "records", "{}")
            new = Entry(
                head.number + 1, RESERVED, f"s{head.number}", *text, 1, 0, spent, 0, previous
            )
        return replace(new, **changes).sealed()

    return made


@pytest.fixture(scope="session")
def in_child() -> Callable[[Callable[[], object]], Callable[[], str]]:
    """Begins an action in a forked child; the answer waits for its end and is its result or error,
    as text."""

    def begin(action: Callable[[], object]) -> Callable[[], str]:
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            # a fork beside threads: such a one is tested
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                told = str(action())
            except BaseException as error:  # the parent is to hear of everything
                told = f"{type(error).__name__}: {error}"
            os.write(writer, told.encode())
            os._exit(0)
        os.close(writer)

        def answer() -> str:
            with os.fdopen(reader, "rb") as pipe:
                told = pipe.read().decode()
            os.waitpid(child, 0)
            return told

        return answer

    return begin
