"""Forked processes and threads that come and go: each has connections of its own
(privacy/ledger/stores/connections.py)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from fairveil.errors import LedgerError
from fairveil.privacy.ledger.stores import connections
from fairveil.privacy.ledger.stores.entries import Entry
from fairveil.privacy.ledger.stores.store import Store

Line = Callable[..., Entry]
Child = Callable[[Callable[[], object]], Callable[[], str]]


def begun(place: Any, line: Line) -> Store:
    store: Store = place.open(create=True)
    store.create("census", line())
    return store


def add(store: Store, line: Line) -> Entry:
    with store.writing("census") as page:
        new = line(page.head())
        page.append(new)
    return new


def numbers(place: Any) -> list[int]:
    store = place.open()
    lines = list(store.entries("census"))
    assert store.kept_head("census")[0] == lines[-1].number
    return [entry.number for entry in lines]


def test_what_a_child_writes_stays_when_its_parent_leaves(
    lasting: Any, line: Line, in_child: Child
) -> None:
    # SQLite in a child believes that it holds its parent's locks: once the parent had left, the
    # second line was lost.
    store = begun(lasting, line)
    add(store, line)
    written, left = os.pipe(), os.pipe()

    def stay() -> None:
        add(store, line)
        os.write(written[1], b".")
        os.read(left[0], 1)
        add(store, line)

    answer = in_child(stay)
    os.read(written[0], 1)
    store.last("census")
    store.close()
    os.write(left[1], b".")
    assert answer() == "None"
    assert numbers(lasting) == [0, 1, 2, 3]
    for end in (*written, *left):
        os.close(end)


def test_forks_beside_threads_that_write(
    lasting: Any, line: Line, in_child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a fork that lost patience would be refused the file
    monkeypatch.setattr(connections, "FORK_PATIENCE", 600.0)
    store = begun(lasting, line)

    def write(times: int) -> None:
        for _ in range(times):
            add(store, line)

    threads = [threading.Thread(target=write, args=(40,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    answers = [in_child(lambda: write(5)) for _ in range(6)]
    assert [answer() for answer in answers] == ["None"] * 6
    for thread in threads:
        thread.join()
    assert numbers(lasting) == list(range(1 + 3 * 40 + 6 * 5))


def test_a_child_of_a_block_cannot_write_in_it_nor_end_it(
    lasting: Any, line: Line, in_child: Child
) -> None:
    store = begun(lasting, line)

    def append(page: Any) -> None:
        with pytest.raises(LedgerError, match="a child of it"):
            page.append(line(page.head()))
        if lasting.kind == "sqlite":
            with pytest.raises(LedgerError, match="a fork inside of a use"):
                lasting.open()
        else:
            assert lasting.open().last("census").number == 0

    reader, writer = os.pipe()
    parent = os.getpid()
    try:
        with store.writing("census") as page:
            assert in_child(lambda: append(page))() == "None"
            if os.fork() != 0:  # the child goes on to the end of the block as if it were its own
                page.append(line(page.head()))
    except LedgerError as error:
        if os.getpid() != parent:
            os.write(writer, str(error).encode())
    finally:
        if os.getpid() != parent:
            os._exit(0)
    os.wait()
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert "a child of it" in pipe.read()
    assert numbers(lasting) == [0, 1]
    add(store, line)
    assert numbers(lasting) == [0, 1, 2]


def test_a_fork_waits_for_a_block_to_end_but_not_for_ever(
    lasting: Any, line: Line, in_child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = begun(lasting, line)
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with store.writing("census") as page:
            inside.set()
            go_on.wait()
            page.append(line(page.head()))

    def last() -> int:
        return store.last("census").number

    for patience, told in (
        (600.0, "1"),
        (0.1, "a fork inside of a use" if lasting.kind == "sqlite" else "1"),
    ):
        monkeypatch.setattr(connections, "FORK_PATIENCE", patience)
        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait()
        if patience > 1:
            threading.Timer(0.2, go_on.set).start()
        assert told in in_child(last)()
        go_on.set()
        thread.join()
        inside.clear()
        go_on.clear()
    assert numbers(lasting) == [0, 1, 2]


def test_connections_of_threads_that_ended_are_closed(lasting: Any, line: Line) -> None:
    store = begun(lasting, line)
    for _ in range(20):
        thread = threading.Thread(target=add, args=(store, line))
        thread.start()
        thread.join()
    held = store._connections._held  # type: ignore[attr-defined]
    assert len(held) <= 2
    store.close()
    assert not held
    assert store.last("census").number == 20
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    store.close()
    if descriptors:
        assert len(os.listdir("/proc/self/fd")) < descriptors
