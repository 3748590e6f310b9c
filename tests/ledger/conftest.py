"""Places to keep a ledger in, and forked children."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa


def _address(request: pytest.FixtureRequest, kind: str, folder: Path) -> str:
    """A file, or a part of a server that no other test uses."""
    if kind == "sqlite":
        return str(folder / "budget.db")
    url, name = str(request.getfixturevalue("postgres_url")), f"t{uuid.uuid4().hex}"
    with closing(psycopg.connect(url, autocommit=True)) as link:
        link.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(psycopg.sql.Identifier(name)))
    return f"{url}?options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgresql"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address of each kind that outlives its process."""
    return _address(request, request.param, tmp_path)


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address on a server of PostgreSQL."""
    return _address(request, "postgresql", tmp_path)


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


@contextmanager
def _after_statements(deed: Callable[[int, Any], object]) -> Iterator[None]:
    count = 0

    def counted(link: sa.Connection, *_: object) -> None:
        nonlocal count
        count += 1
        deed(count, link.connection.dbapi_connection)

    sa.event.listen(sa.Engine, "after_cursor_execute", counted)
    try:
        yield
    finally:
        sa.event.remove(sa.Engine, "after_cursor_execute", counted)


@pytest.fixture(scope="session")
def after_statements() -> Callable[[Callable[[int, Any], object]], AbstractContextManager[None]]:
    """Does something after each statement of a block, with its number and the driver's link."""
    return _after_statements
